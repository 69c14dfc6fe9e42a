"""DET303: switches that are turned off, or set to a value that makes results vary."""

from __future__ import annotations

from d9mlint.base.findings import WARNED
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.device_names import given_option
from d9mlint.interp.events import AttributeEvent, CallEvent, EndEvent, EnvironmentEvent
from d9mlint.interp.listening import on, on_attribute, on_call, on_call_if
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where

CUDNN = "torch.backends.cudnn.deterministic"
_COMPUTES = (".__call__", ".backward")


class Disabled(Rule):
    """DET303: switches that are turned off, or to a value that makes results vary."""

    codes = ("DET303",)
    cudnn = remembered(list[Where])
    """Where cuDNN's deterministic algorithms are turned off."""
    computed = remembered(bool)
    """Whether anything was computed while they were off."""

    @on_attribute(CUDNN)
    def cudnn_set(self, event: AttributeEvent) -> None:
        """The attribute is set."""
        if isinstance(event.value, v.Lit) and not event.value.value:
            self.cudnn.append(Where(self.run, self.run.statement, CUDNN))

    @on_call_if(lambda _, api: api.endswith(_COMPUTES))
    def computes(self, call: CallEvent) -> None:
        """An op that is known computes, or a gradient is computed."""
        if self.cudnn and not self.computed:
            self.computed = self.run.mode("torch.cudnn.deterministic").value is not True

    @on_call("torch.use_deterministic_algorithms")
    def mode(self, call: CallEvent) -> None:
        """The mode is set."""
        value = call.args.get("mode", 0)
        warn = call.args.get("warn_only", 1)
        off = isinstance(value, v.Lit) and not value.value
        if isinstance(warn, v.Lit) and warn.value is True and not off:
            named = given_option(warn.option)
            option = f" (default of `{named}`)" if named else ""
            message = f"`warn_only=True`{option} leaves non-deterministic ops, including attention backward, enabled"
            self._only_warns(call, message, "remove `warn_only`, and replace the ops that then raise")

    @on_call("torch.set_deterministic_debug_mode")
    def level(self, call: CallEvent) -> None:
        """The mode is set by the name or the number of a level."""
        value = call.args.get("debug_mode", 0)
        if isinstance(value, v.Lit) and not value.option and value.value in ("warn", 1):
            message = f"debug mode {value.value!r} does not enforce deterministic algorithms"
            self._only_warns(call, message, "call `torch.use_deterministic_algorithms(True)`")

    def _only_warns(self, call: CallEvent, message: str, help: str) -> None:
        self.report("DET303", call.node, message, help, subject=call.api, remedy=(WARNED,))

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """The program has ended: a trainer may have turned the mode off, and what was turned off may have been turned on
        before anything was computed."""
        setting = self.run.mode("torch.cudnn.deterministic")
        if setting.value is True and not setting.option and not self.computed:
            for one in self.cudnn:
                self.silent("DET303", one, "`cudnn.deterministic` is set to True before anything is computed")
                self.reporter.withdraw("DET303", one.site)
        place = self.run.switches.reset
        if place is None or self.run.targets is None:
            return
        target = self.run.targets.version("lightning")
        self.report(
            "DET303",
            place,
            f"`{place.subject}` without `deterministic=True` turns deterministic mode off (lightning {target.version})",
            "pass `deterministic=True` to the `Trainer`",
            subject="torch.use_deterministic_algorithms",
            targets=(f"lightning {target.version}", target.source),
        )

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set to a value that the knowledge base knows to make results vary."""
        name, value, node = event
        setting = self.run.kb.setting(f"env:{name}")
        if setting is None or not isinstance(value, v.Lit) or str(value.value) not in setting.hazards:
            return
        if self.run.targets is not None and not self.run.targets.matches(setting.library, setting.versions):
            return
        effect = setting.effect[:1].lower() + setting.effect[1:]
        wanted = setting.value_for_determinism
        self.report(
            "DET303",
            node,
            f"`{name}={value.value}` allows results that differ between runs: {effect}",
            "do not set it"
            if wanted == "unset"
            else f"set it to {wanted if isinstance(wanted, str) else wanted[0]}",
            subject=name,
            remedy=(wanted if isinstance(wanted, str) else wanted[0],),
        )
