"""DET303: a switch that is named or assigned to and not called, or called though it is no function."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from d9mlint.base.findings import CALLED, Severity
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import BareNameEvent, CallEvent, OtherAttributeEvent
from d9mlint.interp.listening import Listening, on
from d9mlint.interp.text import node_text, written
from d9mlint.ir import nodes as m


class NotCalled(Rule):
    """DET303: a switch that is used as if it were of another kind: nothing is set."""

    codes = ("DET303",)

    @on(BareNameEvent)
    def bare(self, event: BareNameEvent) -> None:
        """A name stands alone."""
        value, node = event
        called = self._arguments(value.name) if isinstance(value, v.Ext) else ""
        if isinstance(value, v.Ext) and called:
            name = value.name.rpartition(".")[2]
            self.report(
                "DET303",
                node,
                f"`{name}` is not called: the parentheses are missing",
                f"write `{name}{called}`",
                subject=self.run.kb.canonical(value.name),
                severity=Severity.ERROR,
                remedy=(CALLED, called),
            )

    @on(OtherAttributeEvent)
    def assigned(self, event: OtherAttributeEvent) -> None:
        """An attribute is set: a function that is a switch is then replaced by the value."""
        called = self._arguments(event.name)
        if not called or not isinstance(event.value, v.Lit) or event.value.value in _OFF:
            return
        text = written(event.node) if isinstance(event.node, (m.Name, m.Attr)) else event.name
        self.report(
            "DET303",
            event.node,
            f"`{text} = {event.value.value!r}` assigns to the function and does not call it: nothing is enabled",
            f"write `{text}{called}`",
            subject=event.name,
            severity=Severity.ERROR,
        )

    def also(self) -> Iterable[tuple[Listening, Callable[[CallEvent], None]]]:
        """Switches that are attributes may be called."""
        names = {name for one in self.run.kb.settings() if one.kind == "attribute" for name in one.names}
        return [(Listening(CallEvent, tuple(sorted(names))), self.called)]

    def called(self, event: CallEvent) -> None:
        """An attribute is called."""
        if not isinstance(event.node, m.Call):
            return
        text, given = node_text(event.node, event.api), event.args.pos[0] if event.args.pos else v.UNKNOWN
        value = repr(given.value) if isinstance(given, v.Lit) else "value"
        self.report(
            "DET303",
            event.node,
            f"`{text}` is an attribute and no function: the call raises TypeError",
            f"write `{text} = {value}`",
            subject=event.api,
            severity=Severity.ERROR,
        )

    def _arguments(self, name: str) -> str:
        """The arguments with which a function is called that is a switch; empty for other names."""
        role = self.run.kb.role(self.run.kb.canonical(name), "enables-mode")
        return role.more[0] if role is not None else ""


_OFF = (False, None, "default")
"""What is given to a switch that is to be off."""
