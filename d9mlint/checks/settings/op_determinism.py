"""DET306: training with TensorFlow without op determinism."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.base.findings import RAISES, UNCOVERED, Severity
from d9mlint.base.options import given_in_words, giving_help
from d9mlint.checks.base import Rule
from d9mlint.checks.settings.mode_effects import is_known_unchanged, may_vary, settled
from d9mlint.checks.settings.tf_release import switch_for, version
from d9mlint.interp import values as v
from d9mlint.interp.activity import (
    CPU_BUILD,
    TF_TRAIN,
    TF_TRAIN_EARLY,
    TF_TRAIN_FRESH,
    of_cpu_build,
    takes_tf_steps,
    when_given_gpus,
    where,
    without_gpu,
)
from d9mlint.interp.argtests import any_holds
from d9mlint.interp.events import CallEvent, DecoratorEvent, EndEvent, ObjectCallEvent
from d9mlint.interp.library.records import TUPLE_TYPE
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered
from d9mlint.interp.state import SEEDED
from d9mlint.interp.switches import OP_DETERMINISM, TF_VARIABLES
from d9mlint.interp.usage import flatten

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import OpEntry

GENERATOR = "tensorflow_generator"
_OPS = ("DET403", "DET404")
"""The rules that report ops which op determinism may change, each at its place."""


class WithoutOpDeterminism(Rule):
    """DET306: training with TensorFlow without op determinism."""

    codes = ("DET306",)
    refused = remembered(list[str])
    """What to do about generators that start from entropy, which TensorFlow refuses with op determinism."""
    covered = remembered(bool)
    """Whether the program has an op that the switch of its release covers."""
    doubtful = remembered(bool)
    """Whether the program calls something of which it is not known that it gives the same bits in each run."""

    @on_call_if(lambda rule, api: may_vary(rule.run.kb, api))
    def called(self, call: CallEvent) -> None:
        """Something is called that may vary."""
        if not self.doubtful and not is_known_unchanged(self.run, call.api, call.args, call.owner):
            self.doubtful = True

    @on(DecoratorEvent)
    def decorated(self, event: DecoratorEvent) -> None:
        """Something is decorated: what then runs may be other code."""
        if isinstance(event.decorator, v.Ext) and not is_known_unchanged(self.run, event.decorator.name):
            self.doubtful = True

    @on(ObjectCallEvent)
    def computed(self, event: ObjectCallEvent) -> None:
        """What a function of a library gave is called: only of some is it known what that runs."""
        if event.obj.api != TUPLE_TYPE and settled(self.run, event.obj.api) is not True:
            self.doubtful = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "calls-for-each") is not None)
    def called_for_each(self, call: CallEvent) -> None:
        """A function is called for each element."""
        given = [one for value in call.args.values() for one in flatten(value) if isinstance(one, v.Ext)]
        if not all(is_known_unchanged(self.run, one.name) for one in given):
            self.doubtful = True

    @on_call_if(lambda rule, api: any(one.rule == "DET306" for one in rule.run.kb.ops(api)))
    def switchable(self, call: CallEvent) -> None:
        """An op is made or called whose remedy is the switch."""
        if not self.covered:
            entries = [one for one in self.run.kb.ops(call.api) if one.rule == "DET306"]
            self.covered = any(_covered(self.run, entry) for entry in entries)

    @on_call_if(lambda rule, api: any(map(_starts_from_entropy, rule.run.kb.ops(api))))
    def generator(self, call: CallEvent) -> None:
        """Something is made that starts from entropy."""
        if self.run.state.level(GENERATOR).level == SEEDED:
            return
        for entry in filter(_starts_from_entropy, self.run.kb.ops(call.api)):
            past = [one for one in entry.history if one.behaviour == "raises"]
            raises = any(self.run.kb_matches(entry.library, one.versions) for one in past)
            if raises and any_holds(call.args, entry.unless) is not True:
                name = call.api.rpartition(".")[2]
                self.refused.append(
                    f"`{name}` then raises RuntimeError: {entry.remedy[:1].lower()}{entry.remedy[1:].rstrip('.')}"
                )

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Whether the program trains, and whether op determinism is on, is known."""
        run = self.run
        place = where(run, TF_TRAIN)
        if run.entry is None or place is None or run.device != "cuda" or without_gpu(run, "tensorflow"):
            return
        fresh = where(run, TF_TRAIN_FRESH)
        process = aside = unless = ""
        if _switched_on(run) and fresh is not None and not _inherited(run):
            # The call in the program does not reach the process in which it trains.
            place, process = fresh, fresh.subject
        elif _switched_on(run) and (option := _opens(run)):
            if place.aside == option:
                # What lets the program train enables it too.
                return
            unless = option
        elif _switched_on(run):
            other = where(run, TF_TRAIN_EARLY)
            if other is None or not (other.aside or _by_way(run)):
                return
            # Another command, or another branch, is the one that switches it on.
            place, aside = other, other.aside
        if run.targets is None:
            return
        target = run.targets.version("tensorflow")
        spare = of_cpu_build(run, "tensorflow")
        does = "trains" if takes_tf_steps(run, place) else "computes gradients"
        self.report(
            "DET306",
            place,
            f"`{place.entry}` {does} with TensorFlow {target.version} without op determinism"
            f"{f' when {given_in_words(aside)}' if aside else ''}{f' unless {given_in_words(unless)}' if unless else ''}"
            f"{when_given_gpus(run)}{CPU_BUILD if spare else ''}",
            "; ".join([giving_help(unless) if unless else switch_for(run, process), *self.refused[:1]]),
            subject="tensorflow",
            targets=(f"tensorflow {target.version}", target.source),
            severity=Severity.ADVICE if spare else None,
            entry_wide=True,
            only_with=() if self.doubtful or run.exhausted else _OPS,
            alone="no op that the program runs is known to vary without op determinism",
            remedy=("process",)
            if process
            else ("option",)
            if unless
            else (RAISES,)
            if self.refused
            else ()
            if self.covered or not version(run, "<2.1")
            else (UNCOVERED,),
        )


def _starts_from_entropy(entry: OpEntry) -> bool:
    return entry.rule == "DET106" and entry.default_mode == "random"


def _covered(run: RunView, entry: OpEntry) -> bool:
    return any(
        one.behaviour == "deterministic_alternative" and run.kb_matches(entry.library, one.versions)
        for one in entry.history
    )


def _inherited(run: RunView) -> bool:
    """Whether new processes have the switch of the program: a variable, or a patch that is made when they import it."""
    return bool(run.switches.tf_patched) or run.switches.tf_variable


def _opens(run: RunView) -> str:
    """The option without which nothing enables op determinism."""
    by_call = run.mode(OP_DETERMINISM)
    variables = run.switches.tf_variables
    if by_call.value is not False or (run.switches.tf_on and not by_call.option):
        return ""
    if any(variables.get(name) == "" for name in TF_VARIABLES) or run.switches.tf_patched:
        return ""
    return by_call.option or next(filter(None, (variables.get(name) for name in TF_VARIABLES)), "")


def _by_way(run: RunView) -> bool:
    """Whether what switches op determinism on is done on some of the ways through the program alone."""
    settings = [run.mode(OP_DETERMINISM), *(run.state.env.get(name) for name in TF_VARIABLES)]
    return any(one is not None and one.site is not None and one.value is None for one in settings)


def _switched_on(run: RunView) -> bool:
    switches = run.switches
    if switches.tf_on:
        return True
    if version(run, "<2.1"):
        return switches.tf_patched or "TF_CUDNN_DETERMINISTIC" in switches.tf_variables
    return "TF_DETERMINISTIC_OPS" in switches.tf_variables
