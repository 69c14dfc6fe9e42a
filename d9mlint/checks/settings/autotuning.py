"""DET310: kernels that are selected by timing."""

from __future__ import annotations

from typing import Any

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule
from d9mlint.checks.settings.literals import is_true
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import AttributeEvent, CallEvent, EndEvent, EnvironmentEvent
from d9mlint.interp.listening import on, on_attribute, on_call, on_call_if
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where
from d9mlint.interp.switches import DETERMINISTIC
from d9mlint.interp.text import call_text

_TUNED = ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise", "coordinate_descent_tuning")
"""Options of Inductor: attributes of its configuration, keys of ``options=``, and the last part of variables."""
_CONFIGURATION = "torch._inductor.config."
_ATTRIBUTES = [f"{_CONFIGURATION}{name}" for name in _TUNED]
_COMPILING = ("compile", "dynamo", "aoti", "export")
"""Parts of the names of functions, methods and arguments that compile."""
_VARIABLES = frozenset(f"TORCHINDUCTOR_{name.upper()}" for name in _TUNED)


class Autotuning(Rule):
    """DET310: kernels that are selected by timing."""

    codes = ("DET310",)
    places = remembered(list[tuple[Where, str, bool]])
    """What selects kernels by timing, and whether that is a call that compiles."""
    compiles = remembered(bool)
    """Whether something was called that compiles."""
    patched = remembered(bool)
    """Whether Inductor's deterministic mode is switched on for a part of the program."""

    def tuned(self, node: Any, what: str, api: str, *, inductor: bool = True, compiles: bool = False) -> None:
        """Something is selected by timing."""
        if self.run.device != "cuda":
            return
        place = Where(self.run, node, api)
        if inductor:
            self.places.append((place, what, compiles))
        else:
            _report_tuned(self, place, what)

    @on_call("torch.compile")
    def compile_(self, call: CallEvent) -> None:
        """A model is compiled."""
        mode = call.args.kw.get("mode")
        if isinstance(mode, v.Lit) and str(mode.value).startswith("max-autotune"):
            self.tuned(call.node, f'`torch.compile(mode="{mode.value}")`', call.api, compiles=True)
        options = call.args.kw.get("options")
        for name in _TUNED:
            if isinstance(options, v.Mapping) and is_true(options.items.get(name, v.UNKNOWN)):
                what = f"`torch.compile(options={{'{name}': True}})`"
                self.tuned(call.node, what, call.api, compiles=True)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "times-kernels") is not None)
    def asked(self, call: CallEvent) -> None:
        """A library compiles a model in the mode that an argument names."""
        role = self.run.kb.role(call.api, "times-kernels")
        if role is None or all_hold(call.args, role.when) is not True:
            return
        mode = call.args.get(role.arg, role.pos)
        given = f'="{mode.value}"' if isinstance(mode, v.Lit) else "="
        self.tuned(call.node, f"`{call_text(call)}({role.arg}{given})`", call.api, compiles=True)

    @on_call(f"{_CONFIGURATION}patch")
    def patch(self, call: CallEvent) -> None:
        """Options of Inductor are set for a block or a function."""
        first, second = (call.args.get("arg1", 0), call.args.get("arg2", 1))
        options = dict(call.args.kw)
        if isinstance(first, v.Mapping):
            options.update((str(key), value) for key, value in first.items.items())
        elif isinstance(first, v.Lit) and second is not None:
            options[str(first.value)] = second
        if is_true(options.get("deterministic", v.UNKNOWN)):
            self.patched = True
        for name in _TUNED:
            if is_true(options.get(name, v.UNKNOWN)):
                self.tuned(call.node, f"`{name}` of Inductor's configuration", call.api)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "compiles") is not None)
    def compiling(self, call: CallEvent) -> None:
        """A library compiles of its own accord."""
        self.compiles = True

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set, which Inductor reads when it is imported."""
        if event.name in _VARIABLES and isinstance(event.value, v.Lit) and event.value.value == "1":
            self.tuned(event.node, f"`{event.name}=1`", event.name)

    @on_attribute(*_ATTRIBUTES)
    def attribute(self, event: AttributeEvent) -> None:
        """An attribute is set."""
        if is_true(event.value):
            self.tuned(self.run.statement, f"`{event.name} = True`", event.name)

    @on_call("triton.autotune")
    def triton(self, call: CallEvent) -> None:
        """A kernel is tuned."""
        configs = call.args.get("configs", 0)
        if isinstance(configs, v.Items) and not configs.open and len(configs.elts) < 2:
            return
        self.tuned(call.node, "`triton.autotune`", call.api, inductor=False)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        switch = self.run.state.modes.get("torch.inductor.deterministic")
        mode = self.run.mode(DETERMINISTIC)
        env = self.run.state.env.get("TORCHINDUCTOR_DETERMINISTIC")
        new = self.run.targets is None or self.run.targets.matches("torch", ">=2.10")
        if new and (
            (switch is not None and switch.value)
            or self.patched
            or (mode.value and self.run.entry)
            or (env is not None and env.value == "1")
        ):
            return
        for place, what, compiles in self.places:
            if compiles or self._may_compile():
                _report_tuned(self, place, what)

    def _may_compile(self) -> bool:
        """Whether the program may give Inductor something to compile, whose options alone change nothing."""
        return self.compiles or self.run.entry is None or self.run.mentions(_COMPILING)


def _report_tuned(rule: Rule, place: Where, what: str) -> None:
    rule.report(
        "DET310",
        place,
        f"{what} selects kernels by timing: another run may select others, which sum in a different order",
        "use one fixed configuration, or Inductor's deterministic mode (torch 2.10 and later)",
        subject=place.subject,
        severity=Severity.WARNING,
    )
