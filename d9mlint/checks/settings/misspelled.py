"""DET303: a switch whose name is misspelled."""

from __future__ import annotations

import difflib

from d9mlint.base.findings import RENAMED
from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import OtherAttributeEvent
from d9mlint.interp.listening import on

_ALIKE = 0.9
"""How alike two names have to be, 1 for equal ones: one letter in twelve may be another or missing."""


class Misspelled(Rule):
    """DET303: an attribute of a library module is set that it does not have, beside one that is a switch."""

    codes = ("DET303",)

    @on(OtherAttributeEvent)
    def set(self, event: OtherAttributeEvent) -> None:
        """An attribute is set: Python makes it where the module has none."""
        module, _, name = event.name.rpartition(".")
        if v.truth(event.value) is not True:
            return
        switches = self._switches(module)
        if name in switches:
            return
        meant = difflib.get_close_matches(name, switches, n=1, cutoff=_ALIKE)
        if meant:
            self.report(
                "DET303",
                event.node,
                f"`{name}` is no attribute of `{module}`: the assignment has no effect",
                f"write `{meant[0]}`",
                subject=f"{module}.{meant[0]}",
                remedy=(RENAMED, meant[0]),
            )

    def _switches(self, module: str) -> list[str]:
        """The attributes of a module that make results equal where they are true."""
        return [
            name.rpartition(".")[2]
            for entry in self.run.kb.settings()
            if entry.kind == "attribute" and entry.value_for_determinism == "True"
            for name in entry.names
            if name.rpartition(".")[0] == module
        ]
