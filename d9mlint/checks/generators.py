"""DET106, DET109 (optuna), DET110, DET111: generators and environments that need their own seed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import msgspec

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule
from d9mlint.checks.seeds import entropy_source, source_place
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import Listening, on, on_method
from d9mlint.interp.memory import remembered, remembered_once
from d9mlint.interp.places import Where
from d9mlint.interp.rng import all_hold, any_holds, is_quiet
from d9mlint.interp.state import Site
from d9mlint.interp.text import call_text

if TYPE_CHECKING:
    from d9mlint.knowledge.schema import RngEntry


class OwnGenerators(Rule):
    """DET106, DET109, DET110: generators, samplers and ops that need their own seed."""

    codes = ("DET106", "DET109", "DET110")

    @on(CallEvent)
    def call(self, call: CallEvent) -> None:
        """Something is made."""
        for entry in self.run.kb.rng(call.api):
            targets = self.run.targets
            if entry.versions and targets is not None and not targets.matches(entry.library, entry.versions):
                continue
            if entry.kind == "generator":
                _generator(self, call, entry)
            elif entry.kind == "unseeded-op":
                _unseeded_op(self, call, entry)
            elif entry.kind == "own-sampler":
                _sampler(self, call, entry)


def _seed_argument(call: CallEvent, entry: RngEntry) -> v.Value | None:
    value = (
        call.args.get(entry.seed_arg, entry.seed_pos)
        if entry.seed_arg or entry.seed_pos is not None
        else None
    )
    if value is None and entry.seed_default is not msgspec.UNSET and entry.seed_default is not None:
        return v.Lit(entry.seed_default)
    return value


def _generator(rule: Rule, call: CallEvent, entry: RngEntry) -> None:
    value = _seed_argument(call, entry)
    source = entropy_source(value)
    if source is not None:
        # However many generators are given it, what has to change is one place.
        rule.report(
            "DET107",
            source_place(rule.run, source, call.node),
            f"`{call_text(call)}` is seeded from `{source.api}`, which changes every run",
            "use a fixed number, or make the seed an option and log it",
            subject=source.api,
        )
        return
    takes_seed = bool(entry.seed_arg) or entry.seed_pos is not None
    if takes_seed and value is not None and v.is_none(value) is not True:
        return
    if entry.none_seed != "entropy" or is_quiet(call.args, entry) or (call.args.dstar and takes_seed):
        return
    option = v.option_of(value) if value is not None else ""
    why = f" by default (`{option}` is None)" if option else ""
    rule.report(
        "DET106",
        call.node,
        f"`{call_text(call)}` without a seed{why} is seeded from OS entropy and differs between runs",
        f"give `{option}` a fixed default" if option else _how_to_seed(entry),
        subject=call.api,
        severity=Severity.WARNING if option or rule.run.state.aside else None,
        remedy=(entry.seed_arg, "0", str(entry.seed_pos))
        if takes_seed and entry.seed_pos is not None and not option
        else (),
    )


def _how_to_seed(entry: RngEntry) -> str:
    if not entry.seed_arg and entry.seed_pos is None and entry.seeded_by:
        return f"call its method `{entry.seeded_by[0]}(0)`"
    return f"pass `{entry.seed_arg}=0`" if entry.seed_arg and entry.seed_pos is None else "pass a seed"


class SeededLater(Rule):
    """DET106: a generator that is created without a seed and then given one, or a state, is a seeded one."""

    codes = ("DET106",)
    sites = remembered(set[Site])

    def also(self) -> Iterable[tuple[Listening, Callable[[CallEvent], None]]]:
        return [(Listening(CallEvent, tuple(self.run.kb.seeding_methods), method=True), self.seeded)]

    def seeded(self, call: CallEvent) -> None:
        """A generator is given a seed."""
        value = call.args.pos[0] if call.args.pos else next(iter(call.args.kw.values()), None)
        if value is None:
            value = v.UNKNOWN if call.args.star or call.args.dstar else v.NONE
        if call.owner is None or v.is_none(value) is True:
            return
        for one in v.alternatives(call.owner):
            if isinstance(one, v.Obj) and one.node is not None and one.file is not None:
                site = Site(one.file.path, one.node.start, one.node.end)
                self.sites.add(site)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What is ever seeded is known."""
        for site in self.sites:
            self.reporter.withdraw("DET106", site)


def _sampler(rule: Rule, call: CallEvent, entry: RngEntry) -> None:
    value = _seed_argument(call, entry)
    if value is not None and v.is_none(value) is not True:
        return
    if all_hold(call.args, entry.when) is False:
        return
    rule.report(
        "DET109",
        call.node,
        f"`{call_text(call)}` without `{entry.seed_arg or 'seed'}=`: "
        + (
            entry.why
            or "its own generator is seeded from OS entropy, so that suggested values differ between runs"
        ),
        f"pass `{entry.seed_arg or 'seed'}=0`",
        subject=call.api,
        remedy=(entry.seed_arg or "seed", "0"),
    )


def _unseeded_op(rule: Rule, call: CallEvent, entry: RngEntry) -> None:
    if all_hold(call.args, entry.when) is False or any_holds(call.args, entry.unless) is not False:
        return
    value = _seed_argument(call, entry)
    if value is not None and not (isinstance(value, v.Lit) and value.value in (0, None)):
        return
    rule.report(
        "DET110",
        call.node,
        f"`{call_text(call)}` ignores the global seed unless it also gets its own seed",
        f"pass a non-zero `{entry.seed_arg or 'seed'}=`",
        subject=call.api,
        remedy=(entry.seed_arg, "1") if entry.seed_arg else (),
    )


class Environments(Rule):
    """DET111: environments that seed themselves."""

    codes = ("DET111",)
    made = remembered(bool)
    seeded = remembered(bool)
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
        if isinstance(call.owner, v.Member) and call.owner.name in _SPACES:
            if name == "seed":
                self.space_seeded = True
            elif name == "sample" and self.made and self.sample is None:
                self.sample = Where(self.run, call.node, call.owner.name)
            return
        if name == "sample":
            return
        types = owner_types(self.run, call.owner) if call.owner is not None else []
        if any(t.startswith(("torch.", "random.", "numpy.", "tf.")) for t in types):
            return
        value = call.args.get("seed", 0)
        if value is None or v.is_none(value) is True:
            if name == "reset" and self.made and self.reset is None:
                option = v.option_of(value) if value is not None else ""
                self.reset = Where(self.run, call.node, "reset", option)
            return
        self.seeded = True

    @on(CallEvent)
    def call(self, call: CallEvent) -> None:
        """Something of a library is called."""
        for entry in self.run.kb.rng(call.api):
            if entry.kind != "environment":
                continue
            self.made = True
            if "seed" in call.args.kw:
                self.seeded = True
            elif entry.at == "use" and self.handed is None:
                self.handed = Where(self.run, call.node, call.api)
                self.remedy = entry.why
        # Anything of an RL library that takes a seed may seed its environments.
        seed = call.args.kw.get("seed")
        if seed is not None and v.is_none(seed) is not True and call.api.startswith(_RL_LIBRARIES):
            self.seeded = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What is ever seeded is known."""
        sample = self.sample
        if sample is not None and not self.space_seeded:
            self.report(
                "DET111",
                sample,
                f"`{sample.subject}.sample()` draws from the space's own generator, which is never seeded",
                f"call `env.{sample.subject}.seed(0)` once",
                subject="space",
            )
        place = self.reset or self.handed
        if place is None or self.seeded:
            return
        option = place.option
        why = f" by default (`{option}` is None)" if option else ""
        self.report(
            "DET111",
            place,
            f"environment is never seeded{why}: `reset()` uses OS entropy, and global seeds do not affect it",
            self.remedy or "call `env.reset(seed=0)` once after creating it",
            subject="environment" if self.reset is not None else "handed",
            severity=Severity.WARNING if option else None,
        )


_SPACES = ("action_space", "observation_space", "single_action_space", "single_observation_space")
_RL_LIBRARIES = (
    "stable_baselines3.",
    "sb3_contrib.",
    "gym.",
    "gymnasium.",
    "ray.",
    "tianshou.",
    "pettingzoo.",
    "envpool.",
)
