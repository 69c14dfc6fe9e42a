"""DET302 and DET305: training on CUDA without deterministic algorithms, or without the variable that they need."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, TypeVar

from d9mlint.base.findings import ITEM_OF, VARIABLE, WARNS, Confidence, Severity, Step
from d9mlint.base.options import given_in_words, giving_help
from d9mlint.base.terminal import listed
from d9mlint.checks.base import MODE as RAISING
from d9mlint.checks.base import Rule
from d9mlint.checks.settings.mode_effects import (
    CALLED,
    OPS,
    changes,
    has_known_ops,
    is_unknown_result,
    may_change,
    passes_back_alone,
    wraps_loader,
)
from d9mlint.interp import values as v
from d9mlint.interp.activity import (
    CUDA,
    TORCH_TRAIN_EARLY,
    TORCH_TRAIN_FRESH,
    may_use_cuda,
    only_tries_gradient,
    takes_steps,
    trains_on_cuda,
    when_on_cuda,
    when_selected,
    where,
)
from d9mlint.interp.context import SPAWNED
from d9mlint.interp.events import (
    CallEvent,
    DecoratorEvent,
    EndEvent,
    EnvironmentEvent,
    IterationEvent,
    ObjectCallEvent,
)
from d9mlint.interp.library.records import TUPLE_TYPE
from d9mlint.interp.library_modules import MODULE, is_module, makes_module
from d9mlint.interp.listening import on, on_call, on_call_if
from d9mlint.interp.memory import marks_path, noted, remembered, remembered_once, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.state import Setting, Site
from d9mlint.interp.switches import CUBLAS, DETERMINISTIC, OF_CUDNN
from d9mlint.interp.tensors import TENSOR, detached, is_still, no_gradient
from d9mlint.interp.text import node_text
from d9mlint.interp.weights_on_cpu import are_on_cpu
from d9mlint.ir.traversal import called_name
from d9mlint.ir.unread import UNKNOWN as UNREAD
from d9mlint.project.entry_points import has_main_guard

if TYPE_CHECKING:
    from d9mlint.interp.memory import Table
    from d9mlint.interp.weights_on_cpu import are_on_cpu
from d9mlint.interp.view import RunView

K = TypeVar("K", bound=Hashable)

_UNKNOWN, _COMPUTES, _VARIES = range(3)
"""Grounds for that the mode may change something in a call: nobody knows its ops; neither, but it is given tensors that have
a gradient, or models; it is known to vary."""

MODE = "torch.use_deterministic_algorithms(True)"
CUBLAS_HELP = f'set os.environ["{CUBLAS}"] = ":4096:8" before torch is imported'
CUBLAS_VALUES = (":4096:8", ":16:8")


class DeterministicMode(Rule):
    """DET302: training on CUDA without deterministic algorithms. DET305: the variable that they need."""

    codes = ("DET302", "DET305")
    # The mode makes some ops raise.
    fixed_with = OPS
    call = remembered_once(Where)
    calls = remembered_table(Site, Where)
    """Where the mode is turned on."""
    before = remembered(bool)
    """Whether the program trains before it turns the mode on, on the same way."""
    off = remembered(bool)
    in_process = remembered(bool)
    """Whether a process that the program starts afresh sets the mode itself."""
    late = remembered(bool)
    used = marks_path(bool)
    changed = remembered_table(tuple[str, ...], int)
    """What deterministic mode may change of what the program calls, by the modes with which it does not; how much speaks
    for it."""
    layers = remembered_table(tuple[str, int, tuple[str, ...]], int)
    """The modules of libraries whose backward pass alone it may change, by where they are made, with the same modes."""
    passed_back = remembered_table(tuple[str, int], bool)
    """Whether any call of such a module has a backward pass, by where it is made: of one that is not in the table nothing
    is known."""
    wrappers = remembered_table(tuple[str, int], int)
    iterated = remembered_table(tuple[str, int], bool)
    """What code that is not known makes of loaders, by where that is, and what of it is iterated."""
    reasons = noted(list[tuple[Hashable, Step, int]])
    """What the first of each of these was, by its key, and how much speaks for it."""
    hidden = remembered_table(str, bool)
    """What gave models, called with gradients, of which nobody knows what ops they call."""

    @on_call_if(lambda rule, api: may_change(rule.run.kb, api))
    def doubtful(self, call: CallEvent) -> None:
        """Something is called in which the mode may change something."""
        name = call.api.removesuffix(CALLED)
        if name != call.api and makes_module(self.run, name):
            # Where it was made, it has been looked at.
            return
        if self.changed.get(()) != _VARIES and self._speaks_more(grounds := self._grounds(call)):
            made = self.run.here(call.node)
            for excused in changes(self.run, call):
                if not excused and wraps_loader(self.run, call):
                    self._note(self.wrappers, (made.path, made.end), call, grounds)
                elif passes_back_alone(self.run, call):
                    self._note(self.layers, (made.path, made.end, excused), call, grounds)
                else:
                    self._note(self.changed, excused, call, grounds)

    def _speaks_more(self, grounds: int) -> bool:
        """Whether more speaks for something than for what was noted before."""
        return () not in self.changed or self.changed[()] < grounds

    def _grounds(self, call: CallEvent) -> int:
        """How much speaks for that the mode changes something in a call."""
        if has_known_ops(self.run, call):
            return _VARIES
        values = (call.owner or v.NONE, *call.args.values())
        given = (one for value in values for one in v.alternatives(value))
        return _COMPUTES if any(_has_gradient(self.run, one) for one in given) else _UNKNOWN

    def _note(self, of: Table[K, int], key: K, call: CallEvent, grounds: int) -> None:
        """Note that the mode may change something in a call."""
        if key not in of or grounds > of[key]:
            of[key] = grounds
            name = self._made_by(call) or call.api.removesuffix(CALLED)
            name = called_name(call.node) if name.startswith("?") else name
            text = f"`{name}`" if name else "what is called here"
            if name == UNREAD:
                text = "a line that cannot be parsed"
            reason = (
                f"{text} may differ between runs without the mode"
                if grounds == _VARIES
                else f"the ops of {text} are not known"
            )
            self.reasons.add((key, Step(*self.run.here(call.node), reason, beside=True), grounds))

    def _made_by(self, call: CallEvent) -> str:
        """What has made the model that a method gives back, as ``to`` does, or an empty text for other methods."""
        method, owner = call.api.rpartition(".")[2], call.owner
        if (
            not isinstance(owner, v.Obj)
            or self.run.kb.role(f"{MODULE}.{method}", "mode-changes-nothing") is None
        ):
            return ""
        while isinstance(owner.owner, v.Obj):
            owner = owner.owner
        return owner.api

    @on(ObjectCallEvent)
    def called(self, event: ObjectCallEvent) -> None:
        """What a function of a library gave is called: nobody knows what it is, but that a type of tuples holds values."""
        if event.obj.api == TUPLE_TYPE:
            return
        layer = is_module(self.run, event.obj)
        still = layer and (is_still(self.run, event.obj, event.args) or are_on_cpu(self.run, event.obj))
        if layer and event.obj.node is not None and event.obj.file is not None:
            module = (event.obj.file.path, event.obj.node.end)
            self.passed_back[module] = not still or bool(self.passed_back.get(module))
        on_tensors = any(isinstance(one, v.Obj) and one.type == TENSOR for one in event.args.values())
        grounds = _COMPUTES if on_tensors else _UNKNOWN
        if not still and is_unknown_result(self.run, event.obj) and self._speaks_more(grounds):
            self.changed[()] = grounds
            # What a function was given from outside was made by no call.
            given = f"`{node_text(event.node, event.obj.api)}`"
            what = given if event.obj.node is None else f"the result of `{event.obj.api}`"
            step = Step(*self.run.here(event.node), f"the ops of {what} are not known", beside=True)
            self.reasons.add(((), step, grounds))
        made: v.Value | None = event.obj
        while isinstance(made, v.Obj):
            if self.run.kb.role(made.api, "hides-ops") is not None and not no_gradient(self.run):
                self.hidden[made.api] = True
            # What a method of it gives, as `cuda()`, is the model still.
            made = made.owner

    @on(IterationEvent)
    def loops(self, event: IterationEvent) -> None:
        """Something is iterated."""
        over = event.value
        if isinstance(over, v.Obj) and over.node is not None and over.file is not None:
            made = (over.file.path, over.node.end)
            if made in self.wrappers:
                self.iterated[made] = True

    @on(DecoratorEvent)
    def decorated(self, event: DecoratorEvent) -> None:
        """Something is decorated: what then runs may be other code."""
        decorator = event.decorator
        if (
            isinstance(decorator, v.Ext)
            and may_change(self.run.kb, decorator.name)
            and () not in self.changed
        ):
            self.changed[()] = _UNKNOWN
            reason = f"the ops of what `{decorator.name}` decorates are not known"
            self.reasons.add(((), Step(*self.run.here(event.node), reason, beside=True), _UNKNOWN))

    @on_call("torch.use_deterministic_algorithms", "torch.set_deterministic")
    def mode(self, call: CallEvent) -> None:
        """The mode is set."""
        value = call.args.get("mode", 0) or call.args.get("d", 0) or v.UNKNOWN
        self.in_process = self.in_process or SPAWNED in self.run.contexts
        if v.truth(value) is False:
            self.off = not v.option_of(value)
        else:
            place, site = Where(self.run, call.node, call.api), self.run.here(call.node)
            self.calls[site] = place
            self.before = self.before or TORCH_TRAIN_EARLY in self.run.marks
            if self.call is None:
                self.call = place

    @on_call("torch.set_deterministic_debug_mode")
    def debug_mode(self, call: CallEvent) -> None:
        """The mode is set by the name of a level."""
        level = call.args.get("debug_mode", 0)
        self.off = isinstance(level, v.Lit) and level.value in ("default", 0) and not v.option_of(level)

    @on_call_if(lambda _, api: api.endswith(".cuda"))
    def cuda(self, call: CallEvent) -> None:
        """CUDA is used: cuBLAS reads its variable then."""
        self.used.setdefault("cuda", True)

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        if event.name == CUBLAS and "cuda" in self.used:
            self.late = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        self._missing_mode()
        self._cublas()

    def _missing_mode(self) -> None:
        place = trains_on_cuda(self.run)
        if self.run.entry is None or place is None:
            return
        if not may_use_cuda(self.run):
            self.silent("DET302", place, "the program is not seen to use CUDA")
            return
        setting = self.run.mode(DETERMINISTIC)
        fresh, process = where(self.run, TORCH_TRAIN_FRESH), ""
        by_trainer = self.run.switches.torch_unknown or self.run.switches.torch_on
        early = self._too_late(setting)
        if by_trainer and early is None and not setting.option:
            self.silent("DET302", place, "the program turns deterministic mode on, or may")
            return
        if fresh is not None and not self.in_process and not self.off:
            # What the program itself sets does not reach the process in which it trains.
            is_set = setting.value is not False
            process = fresh.subject if place.site == fresh.site or is_set else ""
            # Where nothing sets the mode, the program may train at the same place in its own process too.
            place = fresh if is_set else place
            setting = Setting(False, None) if process else setting
        elif early is not None:
            place, setting = early, Setting(False, None)
        elif setting.value is None or setting.value:
            self.silent("DET302", place, "deterministic mode is on at the end of the program, or may be")
            return
        elif (self.off or self.run.switches.reset is not None) and not setting.option:
            self.silent("DET302", place, "DET303 reports the call that turns deterministic mode off")
            return
        elif self.call is not None and not setting.option and where(self.run, TORCH_TRAIN_EARLY) is None:
            self.silent("DET302", place, "deterministic mode is on where the program trains, or may be")
            return
        if setting.option and place.aside == setting.option:
            self.silent("DET302", place, "what lets the program train turns deterministic mode on too")
            return
        when = when_selected(place.option) or when_on_cuda(self.run)
        cudnn = self._is_on(OF_CUDNN["deterministic"])
        if early is not None and early.aside and not when:
            when = f" when {given_in_words(early.aside)}"
        does = "trains" if takes_steps(self.run, place) else "computes gradients"
        if early is not None and self.before and self.call is not None:
            message = f"`{place.entry}` {does} on CUDA before `{self.call.subject}` turns deterministic mode on{when}"
        elif setting.option:
            given = given_in_words(setting.option)
            message = f"`{place.entry}` {does} on CUDA without deterministic algorithms unless {given}"
        elif cudnn:
            message = f"`cudnn.deterministic` covers only cuDNN, not PyTorch's own CUDA kernels{',' if when else ''}{when}"
        else:
            message = f"`{place.entry}` {does} on CUDA without {_mode_name(self.run)}{when}"
        # Options whose content is unknown may hold the switch of a trainer; by default it is off.
        unless = "" if setting.option or process else self.run.switches.torch_unless
        # Before there is a mode, the help is about a later release.
        warns = self.run.kb_matches("torch", ">=1.11") or self.run.kb_matches("torch", "<1.7")
        switch = self.run.trainer_switch(place.site)
        trainer = switch.help if switch is not None else ""
        item = switch.item if switch is not None and not setting.option else None
        if trainer and self.run.kb_matches("lightning", "<1.7"):
            # Its trainers take True and False alone.
            warns = False
        help = (
            _with_variable(self.run, giving_help(setting.option), place.aside)
            if setting.option
            else (trainer or _mode_help(self.run, cudnn, process, place.aside)) + self._of_hidden()
        )
        matters, reason = self._matters()
        self.report(
            "DET302",
            place if reason is None else place.with_flow((*place.flow, reason)),
            message + unless,
            help,
            subject="torch",
            severity=Severity.ADVICE if _is_trial(self.run) else None,
            confidence=Confidence.MEDIUM if unless else None,
            entry_wide=True,
            only_with=() if matters else OPS,
            alone="no op that the program runs is known to vary without the mode",
            # The argument that switches the mode off is reported where it is given.
            cause=self._switched_off() if trainer and not process else (),
            remedy=(
                RAISING,
                *((WARNS,) if not setting.option and warns else ()),
                *(("option",) if setting.option else ("trainer",) if trainer else ()),
                *((f"{ITEM_OF}{item[0]}={item[1]}",) if item is not None else ()),
                *(("process",) if process else ()),
                *((VARIABLE,) if help.startswith(CUBLAS_HELP) else ()),
            ),
        )

    def _switched_off(self) -> tuple[str, ...]:
        """What DET312 reports of the mode, behind the rule."""
        reported = self.reporter.subjects("DET312")
        return ("DET312", *(one for one in reported if not one.endswith("(benchmark)")))

    def _too_late(self, setting: Setting) -> Where | None:
        """Where the program trains before it turns deterministic mode on, which it does not turn off, or on a way on which
        it does not: another command, or another branch, turns it on."""
        by_trainer = self.run.switches.torch_unknown or self.run.switches.torch_on
        is_set = self.call is not None or by_trainer or setting.site is not None
        if not is_set or self.off or self.in_process:
            return None
        place = where(self.run, TORCH_TRAIN_EARLY)
        if place is not None and setting.site is not None and place.site == setting.site:
            # The call that trains turns it on first.
            return None
        if place is None or not setting.option:
            return None if setting.value is False else place
        # Whoever gives the option trains here too, or somewhere else.
        return None if (place.site.path, place.site.end) in self.run.switches.trained_in_mode else place

    def _of_hidden(self) -> str:
        """What to do where models may have ops that raise in the mode."""
        models = sorted(self.hidden.known())
        if not models or self.run.kb_matches("torch", "<1.11"):
            return ""
        return (
            f"; ops of what {listed([f'`{api}`' for api in models])} gives may raise RuntimeError in this mode: "
            "`warn_only=True` names them"
        )

    def _matters(self) -> tuple[bool, Step | None]:
        """Whether deterministic mode may change something beside the ops that are reported, and the first such thing for
        which most speaks."""
        if self.run.exhausted:
            return True, None
        found: list[tuple[Hashable, tuple[str, ...]]] = [
            *((made, ()) for made in self.wrappers.known() if made not in self.iterated),
            *((modes, modes) for modes in self.changed.known()),
            *(
                ((path, end, modes), modes)
                for path, end, modes in self.layers.known()
                if self.passed_back.get((path, end)) is not False
            ),
        ]
        deciding = {key for key, modes in found if not any(map(self._is_on, modes))}
        reasons = [(grounds, step) for key, step, grounds in self.reasons if key in deciding]
        _, first = max(reasons, key=lambda one: one[0], default=(_UNKNOWN, None))
        return bool(deciding), first

    def _is_on(self, mode: str) -> bool:
        """Whether another mode is on wherever the program trains, as in a process that it starts, or at its end."""
        switches = self.run.switches
        if mode in switches.trained_with or mode in switches.trained_without:
            return mode not in switches.trained_without
        return bool(self.run.mode(mode).value)

    def _without_variable(self, now: Setting | None) -> tuple[str, Where | None]:
        """Where the mode is turned on with which the program trains without the variable, where another command, or
        another branch, is the one that sets it, and the option that leads to the training."""
        without = self.run.switches.without_variable
        ways = [(without[site], self.calls[site]) for site in sorted(without.known()) if site in self.calls]
        known = now is None or now.value is not None
        return min(
            (one for one in ways if one[0] or not known), key=lambda one: bool(one[0]), default=("", None)
        )

    def _cublas(self) -> None:
        place = self.call
        if (
            self.run.entry is None
            or place is None
            or self.run.targets is None
            or not self.run.targets.matches("torch", "<2.10")
        ):
            return
        if self.run.switches.reset is not None:
            self.silent("DET305", place, "DET303 reports what turns deterministic mode off again")
            return
        uses = may_use_cuda(self.run) or CUDA in self.run.marks
        if not uses:
            self.silent("DET305", place, "the program is not seen to use CUDA")
            return
        now = self.run.state.env.get(CUBLAS)
        option, lacking = self._without_variable(now)
        if lacking is not None:
            place, now = lacking, None
        if self.run.targets.matches("torch", "<1.7") or (
            place.subject == "torch.use_deterministic_algorithms"
            and self.run.targets.matches("torch", "<1.8")
        ):
            # There is no such mode in this release, so nothing checks the variable.
            return
        if self.run.mode("torch.warn_only").value is True and (
            now is None or now.value not in (None, *CUBLAS_VALUES)
        ):
            message = "`CUBLAS_WORKSPACE_CONFIG` is not set: with `warn_only=True` matrix products only warn and may differ"
        elif now is None:
            message = "`CUBLAS_WORKSPACE_CONFIG` is not set: CUDA matrix products raise RuntimeError in deterministic mode"
        elif now.value is not None and now.value not in CUBLAS_VALUES:
            message = (
                f"invalid `CUBLAS_WORKSPACE_CONFIG={now.value}`: "
                "matrix products raise RuntimeError in deterministic mode"
            )
        elif self.late:
            message = (
                "`CUBLAS_WORKSPACE_CONFIG` is set after CUDA was used: "
                "cuBLAS may already have allocated its workspaces"
            )
        else:
            self.silent("DET305", place, "`CUBLAS_WORKSPACE_CONFIG` is set before CUDA is used")
            return
        target = self.run.targets.version("torch")
        when = f" when {given_in_words(option)}" if lacking is not None and option else ""
        self.report(
            "DET305",
            place,
            f"{message}{when} (torch {target.version})",
            CUBLAS_HELP,
            subject=CUBLAS,
            targets=(f"torch {target.version}", target.source),
            entry_wide=True,
        )


def _mode_name(interp: RunView) -> str:
    """What the targeted torch calls the switch."""
    if interp.kb_matches("torch", "<1.7"):
        return "deterministic algorithms"
    return "`torch.set_deterministic(True)`" if interp.kb_matches("torch", "<1.8") else f"`{MODE}`"


def _mode_help(interp: RunView, cudnn: bool, process: str, aside: str) -> str:
    """How to make the targeted torch deterministic: the switch has had other names, and once none. ``process`` is the
    function that a new process runs, which has to set the mode itself."""
    place = (
        f"at the start of `{process}()`, which runs in new processes"
        if process
        else "before the model is built"
    )
    older = interp.targets is not None and interp.targets.differs("torch", ">=1.8")
    if interp.kb_matches("torch", "<1.7") or (older and interp.kb_matches("torch", ">=1.8")):
        # The newer releases of that half of the help are not those of the targets.
        call = f"call `{MODE}` {place}"
        newer = f"with torch 1.8 or later, {call if _has_variable(interp, aside) else f'{CUBLAS_HELP} and {call}'}"
        return newer if cudnn else f"set `torch.backends.cudnn.deterministic = True`; {newer}"
    switch = "torch.set_deterministic(True)" if interp.kb_matches("torch", "<1.8") else MODE
    return _with_variable(interp, f"call `{switch}` {place}", aside)


def _with_variable(interp: RunView, help: str, aside: str) -> str:
    """How to enable the mode, with the variable of cuBLAS where that needs it."""
    return f"{CUBLAS_HELP} and {help}" if _needs_variable(interp, aside) else help


def _needs_variable(interp: RunView, aside: str) -> bool:
    """Whether matrix products raise in the mode because the program does not set the variable, at least with some of
    the releases that it may be run with: newer ones set what is needed themselves."""
    if interp.targets is None or not interp.targets.may_match("torch", ">=1.7,<2.10"):
        return False
    return not _has_variable(interp, aside)


def _has_variable(interp: RunView, aside: str) -> bool:
    """Whether the program sets the variable to a value that makes matrix products deterministic, or may do so, where it
    trains; ``aside`` is the option that has to be given for it to come there."""
    now = interp.state.env.get(CUBLAS)
    if now is not None and (now.value is None or aside) and interp.switches.early_without_variable:
        # Another command, or another branch, sets it.
        return False
    return now is not None and now.value in (None, *CUBLAS_VALUES)


def _is_trial(run: RunView) -> bool:
    """Whether what runs is the trial of a module, behind the test of its name: it takes a gradient and does not use it."""
    entry = run.entry
    return (
        entry is not None and has_main_guard(entry) and bool(entry.facts.classes) and only_tries_gradient(run)
    )


def _has_gradient(run: RunView, value: v.Value) -> bool:
    """Whether a value is a model, or a tensor of which a gradient may be taken."""
    if isinstance(value, v.Obj) and value.type == TENSOR:
        return not detached(value)
    if isinstance(value, v.Inst):
        return value.cls.find("forward") is not None
    return isinstance(value, v.Obj) and is_module(run, value)
