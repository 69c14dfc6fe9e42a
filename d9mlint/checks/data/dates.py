"""DET216: data that are computed from the date of the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.columns import CELL, TABLES
from d9mlint.interp.data import origin
from d9mlint.interp.events import ItemEvent, OperatorEvent
from d9mlint.interp.listening import on
from d9mlint.interp.places import running
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes, parents

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_DEPTH = 4


class Dates(Rule):
    """DET216: data that are computed from the date of the run."""

    codes = ("DET216",)

    @on(OperatorEvent)
    def operator(self, event: OperatorEvent) -> None:
        """An operator is applied."""
        # What is divided or added is the length of time between two times.
        api = self._dated(event.left, event.right) if event.op == "-" else ""
        if event.op == "-" and not api and self._is_of_column(event.node):
            api = self._date(event.left) or self._date(event.right)
        if api and not self._is_shown(event.node):
            self._report(event.node, f"what is computed here from `{api}()` and a table", api)

    @on(ItemEvent)
    def item(self, event: ItemEvent) -> None:
        """Rows of a table are chosen."""
        index = event.node.index if isinstance(event.node, m.Subscript) else None
        if index is None or not _is_data(self.run, event.owner):
            return
        for test in nodes([index]):
            if isinstance(test, m.Compare) and len(test.comparators) == 1:
                sides = self.run.value_of(test.left), self.run.value_of(test.comparators[0])
                api = self._dated(*sides)
                if api:
                    self._report(event.node, f"which rows are chosen here by `{api}()`", api)

    def _report(self, node: Any, what: str, api: str) -> None:
        self.report(
            "DET216",
            node,
            f"{what} depends on the date of the run: two runs on different days differ",
            "take the date from an option or from the data, such as the latest one in the table",
            subject=api,
        )

    def _dated(self, left: v.Value, right: v.Value) -> str:
        """The call that gives a date with which data are computed or compared."""
        for now, other in ((left, right), (right, left)):
            api = self._date(now)
            if api and _is_data(self.run, other):
                return api
        return ""

    def _date(self, value: v.Value) -> str:
        """The call that has given a date, or what a value is a part of."""
        for _ in range(_DEPTH):
            if isinstance(value, v.Member):
                value = value.owner
            elif isinstance(value, v.Obj):
                for one in (value, origin(value)):
                    if self.run.kb.role(one.api, "date") is not None:
                        return one.api
                if value.owner is None:
                    return ""
                value = value.owner
            else:
                return ""
        return ""

    def _is_of_column(self, node: Any) -> bool:
        """Whether an expression gives a column of times: nothing else has parts under ``dt``."""
        function = running(self.run)
        user = parents(function).get(id(node)) if function is not None else None
        return isinstance(user, m.Attr) and user.name.partition(".")[0] == "dt"

    def _is_shown(self, node: Any) -> bool:
        """Whether what an expression gives is only printed."""
        function = running(self.run)
        above = parents(function) if function is not None else {}
        child = node
        while (user := above.get(id(child))) is not None and not isinstance(user, (m.ExprStmt, m.Assign)):
            if isinstance(user, m.Call):
                func = self.run.value_of(user.func)
                if isinstance(func, v.Ext) and func.name == "builtins.print":
                    return True
            child = user
        return False


def _is_data(run: RunView, value: v.Value | None, depth: int = _DEPTH) -> bool:
    """Whether a value is a column of a table, an element of one, a part of either, or computed from one by a function of
    its library: a length of time or a fixed date is none."""
    if isinstance(value, v.Member):
        return _is_data(run, value.owner, depth)
    if not isinstance(value, v.Obj) or not depth:
        return False
    if CELL in value.attrs or run.kb.role(value.type, "table") is not None:
        return True
    if value.owner is not None:
        return _is_data(run, value.owner, depth - 1)
    return value.api.startswith(TABLES) and any(_is_data(run, one, depth - 1) for one in value.args.pos[:1])
