"""DET106, DET109 (optuna), DET110, DET111: generators and environments that need their own seed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Reporter
from d9mlint.interp import values as v
from d9mlint.interp.calls import owner_types
from d9mlint.interp.data import is_entropy
from d9mlint.interp.places import Where
from d9mlint.interp.rng import all_hold, any_holds, is_quiet
from d9mlint.interp.state import Site
from d9mlint.interp.text import call_text

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RngEntry


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to constructors of generators and environments."""

    def any_call(interp: Interp, call: CallEvent) -> None:
        for entry in interp.kb.rng(call.api):
            targets = interp.targets
            if entry.versions and targets is not None and not targets.matches(entry.library, entry.versions):
                continue
            if entry.kind == "generator":
                _generator(interp, call, entry, reporter)
            elif entry.kind == "unseeded-op":
                _unseeded_op(interp, call, entry, reporter)
            elif entry.kind == "own-sampler":
                _sampler(interp, call, entry, reporter)

    if reporter.on("DET106", "DET109", "DET110"):
        hooks.any_call.append(any_call)
    if reporter.on("DET106"):
        _seeded_later(hooks, reporter)
    if reporter.on("DET111"):
        _environments(hooks, reporter)


def _seed_argument(call: CallEvent, entry: RngEntry) -> v.Value | None:
    value = (
        call.args.get(entry.seed_arg, entry.seed_pos)
        if entry.seed_arg or entry.seed_pos is not None
        else None
    )
    if value is None and entry.seed_default is not msgspec.UNSET and entry.seed_default is not None:
        return v.Lit(entry.seed_default)
    return value


def _generator(interp: Interp, call: CallEvent, entry: RngEntry, reporter: Reporter) -> None:
    value = _seed_argument(call, entry)
    if value is not None and is_entropy(value):
        reporter.report(
            interp,
            "DET107",
            call.node,
            f"the seed passed to `{call_text(call)}` differs between runs",
            "use a fixed number, or make the seed an option and log it",
            subject=call.api,
        )
        return
    takes_seed = bool(entry.seed_arg) or entry.seed_pos is not None
    if takes_seed and value is not None and v.is_none(value) is not True:
        return
    if entry.none_seed != "entropy" or is_quiet(call.args, entry) or (call.args.dstar and takes_seed):
        return
    option = v.option_of(value) if value is not None else ""
    why = f" by default (`{option}` is None)" if option else ""
    reporter.report(
        interp,
        "DET106",
        call.node,
        f"`{call_text(call)}` without a seed{why} is seeded from OS entropy and differs between runs",
        f"give `{option}` a fixed default" if option else _how_to_seed(entry),
        subject=call.api,
        severity=Severity.WARNING if option or interp.state.aside else None,
        remedy=(entry.seed_arg, "0", str(entry.seed_pos))
        if takes_seed and entry.seed_pos is not None and not option
        else (),
    )


def _how_to_seed(entry: RngEntry) -> str:
    return f"pass `{entry.seed_arg}=0`" if entry.seed_arg and entry.seed_pos is None else "pass a seed"


def _seeded_later(hooks: Hooks, reporter: Reporter) -> None:
    """A generator that is created without a seed and then given one, or a state, is a seeded one."""

    @hooks.on_method(*reporter.knowledge.seeding_methods)
    def seeded(interp: Interp, call: CallEvent) -> None:
        value = call.args.pos[0] if call.args.pos else next(iter(call.args.kw.values()), None)
        if value is None:
            value = v.UNKNOWN if call.args.star or call.args.dstar else v.NONE
        if call.owner is None or v.is_none(value) is True:
            return
        for one in v.alternatives(call.owner):
            if isinstance(one, v.Obj) and one.node is not None and one.file is not None:
                site = Site(one.file.path, one.node.start, one.node.end)
                interp.notes.setdefault("generators-seeded", set()).add(site)

    def end(interp: Interp) -> None:
        for site in interp.notes.get("generators-seeded", ()):
            reporter.withdraw("DET106", site)

    hooks.ends.append(end)


def _sampler(interp: Interp, call: CallEvent, entry: RngEntry, reporter: Reporter) -> None:
    value = _seed_argument(call, entry)
    if value is not None and v.is_none(value) is not True:
        return
    if all_hold(call.args, entry.when) is False:
        return
    reporter.report(
        interp,
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


def _unseeded_op(interp: Interp, call: CallEvent, entry: RngEntry, reporter: Reporter) -> None:
    if all_hold(call.args, entry.when) is False or any_holds(call.args, entry.unless) is not False:
        return
    value = _seed_argument(call, entry)
    if value is not None and not (isinstance(value, v.Lit) and value.value in (0, None)):
        return
    reporter.report(
        interp,
        "DET110",
        call.node,
        f"`{call_text(call)}` ignores the global seed unless it also gets its own seed",
        f"pass a non-zero `{entry.seed_arg or 'seed'}=`",
        subject=call.api,
        remedy=(entry.seed_arg, "1") if entry.seed_arg else (),
    )


def _environments(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_method("reset", "seed", "sample")
    def use(interp: Interp, call: CallEvent) -> None:
        name = call.api.rpartition(".")[2]
        if isinstance(call.owner, v.Member) and call.owner.name in _SPACES:
            if name == "seed":
                interp.notes["space-seeded"] = True
            elif name == "sample" and "envs" in interp.notes:
                interp.notes.setdefault("space-sample", Where(interp, call.node, call.owner.name))
            return
        if name == "sample":
            return
        types = owner_types(interp, call.owner) if call.owner is not None else []
        if any(t.startswith(("torch.", "random.", "numpy.", "tf.")) for t in types):
            return
        value = call.args.get("seed", 0)
        if value is None or v.is_none(value) is True:
            if name == "reset" and "envs" in interp.notes:
                option = v.option_of(value) if value is not None else ""
                interp.notes.setdefault("env-reset", Where(interp, call.node, "reset", option))
            return
        interp.notes["env-seeded"] = True

    def any_call(interp: Interp, call: CallEvent) -> None:
        if any(entry.kind == "environment" for entry in interp.kb.rng(call.api)):
            interp.notes["envs"] = True
            if "seed" in call.args.kw:
                interp.notes["env-seeded"] = True
        # Anything of an RL library that takes a seed may seed its environments.
        seed = call.args.kw.get("seed")
        if seed is not None and v.is_none(seed) is not True and call.api.startswith(_RL_LIBRARIES):
            interp.notes["env-seeded"] = True

    def end(interp: Interp) -> None:
        sample = interp.notes.get("space-sample")
        if sample is not None and "space-seeded" not in interp.notes:
            reporter.report(
                interp,
                "DET111",
                sample,
                f"`{sample.subject}.sample()` draws from the space's own generator, which is never seeded",
                f"call `env.{sample.subject}.seed(0)` once",
                subject="space",
            )
        place = interp.notes.get("env-reset")
        if place is None or "env-seeded" in interp.notes:
            return
        option = place.option
        why = f" by default (`{option}` is None)" if option else ""
        reporter.report(
            interp,
            "DET111",
            place,
            f"environment is never seeded{why}: `reset()` uses OS entropy, and global seeds do not affect it",
            "call `env.reset(seed=0)` once after creating it",
            subject="environment",
            severity=Severity.WARNING if option else None,
        )

    hooks.any_call.append(any_call)
    hooks.ends.append(end)


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
