"""DET301: cuDNN's benchmark mode."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Fix, Severity
from d9mlint.base.options import given_in_words, quoted
from d9mlint.checks.base import Rule, argument_node, replace_fix
from d9mlint.checks.settings.literals import is_true, literal_true
from d9mlint.checks.settings.mode_effects import is_unknown_result, may_be_timed, may_change
from d9mlint.interp import values as v
from d9mlint.interp.activity import TORCH_TRAIN_CUDA, infers, where
from d9mlint.interp.data import own_option
from d9mlint.interp.device_names import given_option
from d9mlint.interp.devices import DEVICE, named
from d9mlint.interp.events import (
    AttributeEvent,
    CallEvent,
    DecoratorEvent,
    EndEvent,
    ObjectCallEvent,
)
from d9mlint.interp.listening import on, on_attribute, on_call, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

BENCHMARK = "torch.backends.cudnn.benchmark"


class Benchmark(Rule):
    """DET301: cuDNN's benchmark mode."""

    codes = ("DET301",)
    places = remembered(list[tuple[Where, str, bool, Fix | None]])
    """Where it is set, by which option of the program, whether that option is there for nothing else, and the fix."""

    timed = remembered(bool)
    """Whether cuDNN may have kernels to select from: something is a convolution or recurrent, or is not known."""

    for_devices = remembered_table(str, bool)
    """Options that decide on which device the program works: their other value is no remedy."""

    @on_call(DEVICE)
    def device(self, call: CallEvent) -> None:
        """A device is named."""
        self._chooses(call.args)

    @on_method("cuda")
    def moved_to_gpu(self, call: CallEvent) -> None:
        """Something is moved to a GPU."""
        option = own_option(self.run.options)
        if option:
            self.for_devices[option] = True

    @on_method("to")
    def moved(self, call: CallEvent) -> None:
        """Something is moved to a device."""
        self._chooses(call.args)

    def _chooses(self, args: v.Args) -> None:
        for value in args.values():
            option = given_option(v.option_of(value))
            if option and named(self.run, value):
                self.for_devices[option] = True

    @on_call_if(lambda rule, api: may_change(rule.run.kb, api))
    def computes(self, call: CallEvent) -> None:
        """Something is called that may run convolutions."""
        if not self.timed:
            self.timed = may_be_timed(self.run, call)

    @on(ObjectCallEvent)
    def called(self, event: ObjectCallEvent) -> None:
        """What a function of a library gave is called."""
        if not self.timed:
            self.timed = is_unknown_result(self.run, event.obj)

    @on(DecoratorEvent)
    def decorated(self, event: DecoratorEvent) -> None:
        """Something is decorated: what then runs may be other code."""
        if isinstance(event.decorator, v.Ext) and may_change(self.run.kb, event.decorator.name):
            self.timed = True

    @on_attribute(BENCHMARK)
    def assigned(self, event: AttributeEvent) -> None:
        """The attribute is set."""
        value = event.value
        if self.run.device != "cuda" or not is_true(value):
            reason = (
                f"the configuration says that the program runs on {self.run.device}"
                if is_true(value)
                else "it is not True"
            )
            self.silent("DET301", self.run.statement, reason)
            return
        place = Where(self.run, self.run.statement, BENCHMARK)
        decided = given_option(v.option_of(value))
        option = decided or own_option(self.run.options)
        alone = bool(decided) or _is_all_that_is_chosen(self.run, self.run.statement)
        fix = _true_fix(self.run.statement)
        self.places.append((place, option, alone, fix))
        _report_benchmark(self, place, option, alone, fix)

    @on_call("torch.backends.cudnn.flags", "torch.backends.cudnn.set_flags")
    def flags(self, call: CallEvent) -> None:
        """The same as a function or context."""
        name = "_benchmark" if call.api.endswith("set_flags") else "benchmark"
        value = call.args.get(name, 1)
        if value is not None and self.run.device == "cuda" and is_true(value):
            node = argument_node(call.node, name, 1)
            fix = replace_fix(node, "False", "set `benchmark` to `False`") if literal_true(node) else None
            decided = given_option(v.option_of(value))
            option, alone = decided or own_option(self.run.options), bool(decided)
            _report_benchmark(self, Where(self.run, call.node, BENCHMARK), option, alone, fix)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        always = self._in_any_case()
        for place, fix in always:
            self.reporter.withdraw("DET301", place.site)
            _report_benchmark(self, place, "", False, fix)
        for place, option, alone, fix in self.places:
            if alone and option and option in self.for_devices and not place.aside:
                self.reporter.withdraw("DET301", place.site)
                _report_benchmark(self, place, option, False, fix)
        # Surely switched off again before anything was trained: the program does not run with it.
        setting = self.run.state.modes.get("torch.cudnn.benchmark")
        if (
            self.run.entry is not None
            and setting is not None
            and setting.value is False
            and not setting.option
        ):
            for place, *_ in self.places:
                self.silent("DET301", place, "`cudnn.benchmark` is set to False again in any case")
                self.reporter.withdraw("DET301", place.site)
        elif self.run.entry is not None and not self.timed and not self.run.exhausted and self._trains():
            # Linear layers and the like have nothing to be timed.
            for place, option, alone, fix in self.places:
                if self.reporter.withdraw("DET301", place.site):
                    _report_benchmark(self, place, option, alone, fix, Severity.ADVICE)
        elif self.run.entry is not None and infers(self.run):
            # In inference alone, the benchmark is a choice: it is reported without a fix that is made unasked.
            sites = {place.site for place, _ in always}
            choices = [
                (place, option, alone) for place, option, alone, _ in self.places if place.site not in sites
            ]
            for place, option, alone in (*choices, *((place, "", False) for place, _ in always)):
                if self.reporter.withdraw("DET301", place.site):
                    _report_benchmark(self, place, option, alone, None, Severity.WARNING)

    def _trains(self) -> bool:
        """Whether the program trains with PyTorch on a GPU, or may."""
        return where(self.run, TORCH_TRAIN_CUDA) is not None

    def _in_any_case(self) -> list[tuple[Where, Fix | None]]:
        """Where it is set whatever the value is of the option that decides what runs, with the fix."""
        given = {(place.site, place.aside) for place, *_ in self.places if place.aside}
        return [
            (place, fix)
            for place, option, _, fix in self.places
            if not place.aside and (place.site, option) in given
        ]


def _true_fix(node: Any) -> Fix | None:
    """False instead of True, where an assignment writes it."""
    if isinstance(node, m.Assign) and len(node.targets) == 1 and literal_true(node.value):
        return replace_fix(node.value, "False", "set `benchmark` to `False`")
    if isinstance(node, m.ExprStmt) and isinstance(node.value, m.Call):
        last = node.value.args[-1] if node.value.args else None
        if literal_true(last):
            return replace_fix(last, "False", "set `benchmark` to `False`")
    return None


def _is_all_that_is_chosen(interp: RunView, node: Any) -> bool:
    """Whether a statement stands in a branch that does nothing but set attributes to literals: what decides between the
    branches is there for that."""
    return any(
        any(stmt is node for stmt in branch)
        and all(isinstance(stmt, m.Assign) and isinstance(stmt.value, m.Const) for stmt in branch)
        for one in nodes(interp.frame.body)
        if isinstance(one, m.If)
        for branch in (one.body, one.orelse)
    )


def _report_benchmark(
    rule: Rule, place: Where, option: str, alone: bool, fix: Fix | None, severity: Severity | None = None
) -> None:
    """Report the benchmark. Where an option of the program is there to decide, the program already has the remedy."""
    by, remedy = "", "set `torch.backends.cudnn.benchmark = False`"
    if place.aside:
        by = f" when {given_in_words(place.aside)}"
        remedy = f"leave {quoted(place.aside)} at its default" if alone and place.aside == option else remedy
    elif option:
        by = f" (unless {quoted(option)} says otherwise)"
        remedy = f"run with another value of {quoted(option)}" if alone else remedy
    untimed = severity is Severity.ADVICE
    rule.report(
        "DET301",
        place,
        f"`cudnn.benchmark = True`{by}: autotuning may select different algorithms in each run"
        f"{', but no convolution is seen to run' if untimed else ''}",
        remedy,
        subject=BENCHMARK,
        severity=Severity.WARNING if option and not untimed else severity,
        fix=None if option and alone else fix,
    )
