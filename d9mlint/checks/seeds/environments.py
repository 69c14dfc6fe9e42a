"""DET111: environments that seed themselves."""

from __future__ import annotations

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_once
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.text import call_text
from d9mlint.ir.forms import asked_for_form


class Environments(Rule):
    """DET111: environments that seed themselves."""

    codes = ("DET111",)
    made = remembered(bool)
    seeded = remembered(bool)
    """Whether something is seeded of which it is not known which environments it stands for."""
    seeded_ones = remembered(set[Site])
    """Where environments are made that are seeded."""
    resets = remembered(dict[frozenset[Site], Where])
    """The first reset without a seed, by where the environments are made that it can be about."""
    made_seeded = remembered(bool)
    """Whether an environment is made with a seed."""
    space_seeded = remembered(bool)
    sample = remembered_once(Where)
    reset = remembered_once(Where)
    handed = remembered_once(Where)
    """An environment that a library resets, not the program."""
    remedy = remembered(str)

    @on_method("reset", "seed", "sample")
    def use(self, call: CallEvent) -> None:
        """An environment, or something else, is reset, seeded or sampled."""
        name = call.api.rpartition(".")[2]
        space = _space(call.owner)
        if space:
            if name == "seed":
                self.space_seeded = True
            elif name == "sample" and self.made and self.sample is None and not self._form_only(call):
                self.sample = Where(self.run, call.node, space)
            return
        owner = call.owner
        for entry in self.run.kb.rng(call.api) if isinstance(owner, v.Obj) else ():
            # A space that the program makes for its own environment.
            if entry.kind == "seeder" and OWN in entry.seeds:
                self.space_seeded = True
                return
            if (
                entry.kind == "sampler"
                and OWN in entry.draws
                and self.sample is None
                and not self._form_only(call)
            ):
                seed = owner.args.kw.get(entry.seed_arg) if isinstance(owner, v.Obj) else None
                if seed is None or v.is_none(seed) is True:
                    self.sample = Where(self.run, call.node, call_text(call).removesuffix(".sample"))
        if name == "sample":
            return
        types = owner_types(self.run, call.owner) if call.owner is not None else []
        if any(t.startswith(("torch.", "random.", "numpy.", "tf.")) for t in types):
            return
        ones = self._made_at(owner)
        value = call.args.get("seed", 0)
        if value is None or v.is_none(value) is True:
            if name == "reset" and self.made:
                option = v.option_of(value) if value is not None else ""
                place = Where(self.run, call.node, "reset", option)
                if self.reset is None:
                    self.reset = place
                if ones:
                    self.resets.setdefault(ones, place)
            return
        if ones:
            self.seeded_ones.update(ones)
        else:
            self.seeded = True

    def _form_only(self, call: CallEvent) -> bool:
        """Whether the program only asks for the shape of a sample."""
        frame = self.run.frame
        function = frame.func.fn if frame.func is not None else frame.file.facts.functions[0]
        return asked_for_form(function, call.node)

    def _made_at(self, owner: v.Value | None) -> frozenset[Site]:
        """Where the environments are made that a value can be; nothing where it can be anything else, or one that is
        made of others."""
        found: set[Site] = set()
        for one in v.alternatives(owner) if owner is not None else ():
            site = made_at(one) if isinstance(one, v.Obj) else None
            if site is None:
                return frozenset()
            assert isinstance(one, v.Obj)
            single = any(entry.kind == "environment" for entry in self.run.kb.rng(one.api)) and not any(
                isinstance(part, (v.Items, v.Func, v.Partial, v.Obj, v.Inst)) for part in one.args.values()
            )
            if not single:
                return frozenset()
            found.add(site)
        return frozenset(found)

    @on_call_if(lambda rule, api: bool(rule.run.kb.rng(api)) or api.startswith(_RL_LIBRARIES))
    def call(self, call: CallEvent) -> None:
        """Something of a library is called."""
        for entry in self.run.kb.rng(call.api):
            if entry.kind != "environment":
                continue
            self.made = True
            given = call.args.get(entry.seed_arg or "seed", entry.seed_pos)
            if given is not None and v.is_none(given) is not True:
                # It seeds what it makes, and no environment that is made elsewhere.
                self.made_seeded = True
                return
            if entry.at == "use" and self.handed is None:
                self.handed = Where(self.run, call.node, call.api)
                self.remedy = entry.why
        # Anything of an RL library that takes a seed may seed its environments.
        seed = call.args.kw.get("seed")
        if seed is not None and v.is_none(seed) is not True and call.api.startswith(_RL_LIBRARIES):
            self.seeded = self.seeded or not self._made_at(call.owner)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What is ever seeded is known."""
        sample = self.sample
        if sample is not None and not self.space_seeded:
            self.report(
                "DET111",
                sample,
                f"`{sample.subject}.sample()` draws from the space's own generator, which is never seeded",
                f"call `{sample.subject if '.' in sample.subject else f'env.{sample.subject}'}.seed(0)` once",
                subject="space",
            )
        if self.seeded:
            return
        if self.seeded_ones:
            # The seed of one environment does not reach another.
            for ones, reset in self.resets.items():
                if self.seeded_ones.isdisjoint(ones) and not self.made_seeded:
                    self._never_seeded(reset)
            return
        place = (None if self.made_seeded else self.reset) or self.handed
        if place is not None:
            self._never_seeded(place)

    def _never_seeded(self, place: Where) -> None:
        option = place.option
        why = f" by default (`{option}` is None)" if option else ""
        self.report(
            "DET111",
            place,
            f"environment is never seeded{why}: `reset()` uses OS entropy, and global seeds do not affect it",
            self.remedy or "call `env.reset(seed=0)` once after creating it",
            subject="handed" if place is self.handed else "environment",
            severity=Severity.WARNING if option else None,
        )


def _space(owner: v.Value | None) -> str:
    """The space of an environment that a value is: an attribute or, with several agents, what a method gives."""
    if isinstance(owner, v.Member):
        return owner.name if owner.name in _SPACES else ""
    name = owner.api.rpartition(".")[2] if isinstance(owner, v.Obj) else ""
    return f"{name}(agent)" if name in _SPACES else ""


_SPACES = ("action_space", "observation_space", "single_action_space", "single_observation_space")
OWN = "own"
_RL_LIBRARIES: tuple[str, ...] = (
    "stable_baselines3.",
    "sb3_contrib.",
    "gym.",
    "gymnasium.",
    "ray.",
    "tianshou.",
    "pettingzoo.",
    "envpool.",
)
