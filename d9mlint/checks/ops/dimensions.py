"""Whether what an op is called on has more than one dimension, as the function around it says: a size of each of several is
unpacked (``b, t, d = x.shape``), or a second dimension is named (``x.gather(1, index)``), of the input or of the result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from d9mlint.checks.base import argument_node, called_api
from d9mlint.checks.ops.given import receiver_node
from d9mlint.interp.events import CallEvent
from d9mlint.interp.tensors import TENSOR
from d9mlint.interp.view import RunView
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, whole_number
from d9mlint.knowledge.schema import OpEntry, RoleEntry

_SIZES = (".shape", ".size")
_ELEMENTWISE = frozenset({"+", "-", "*", "/", "//", "%", "**"})
_STEPS = 12
"""So many values are followed that have as many dimensions as each other."""


def has_more(run: RunView, call: CallEvent, entry: OpEntry) -> bool:
    """Whether an op that varies with one dimension alone surely has an input with more, where its value does not say so."""
    func = run.frame.func
    if func is None or not isinstance(call.node, m.Call):
        return False
    if not any(test.rank == 1 and test.along is not None for test in entry.when):
        return False
    return _Function(run, func.fn).has_second(call.node, _STEPS)


class _Function:
    """What the body of a function says of the dimensions of its variables."""

    def __init__(self, run: RunView, function: m.Function) -> None:
        self._run = run
        self._nodes = list(nodes(function.body))
        self._params = {one.name for one in function.params}
        # Variables that have them where what is assigned to them has.
        self._assumed: set[str] = set()

    def has_second(self, node: m.Expr, left: int) -> bool:
        """Whether the value of an expression has two dimensions or more. A name stands for one value in the function."""
        if not left:
            return False
        if isinstance(node, m.Call):
            first = self._kept(node)
            if self._names_second(node) or (first is not None and self.has_second(first, left - 1)):
                return True
            return any(
                self._is_known(name, left - 1) for name in self._names_of(node) if name not in self._assumed
            )
        if isinstance(node, m.Subscript):
            # Each slice leaves a dimension.
            index = (
                node.index.elts if isinstance(node.index, m.Seq) and node.index.kind == "t" else [node.index]
            )
            slices = sum(isinstance(part, m.Slice) for part in index)
            return slices > 1 or (slices == len(index) and self.has_second(node.value, left - 1))
        if isinstance(node, m.BinOp) and node.op in _ELEMENTWISE:
            return any(self.has_second(side, left - 1) for side in (node.left, node.right))
        return isinstance(node, m.Name) and "." not in node.id and self._is_known(node.id, left)

    def _is_known(self, name: str, left: int) -> bool:
        if name in self._assumed:
            return True
        values = [one for one in self._nodes if isinstance(one, m.Assign) and name in _targets(one)]
        if values and left and name not in self._params:
            # It has them at first, and what is computed from it has.
            self._assumed.add(name)
            given = all(self.has_second(one.value, left - 1) for one in values)
            self._assumed.discard(name)
            if given:
                return True
        looked_at = (
            below.id
            for one in self._nodes
            if isinstance(one, (m.If, m.IfExp))
            for below in nodes([one.test])
            if isinstance(below, m.Name)
        )
        if not left or len(values) > 1 or any(one.startswith(f"{name}.") for one in looked_at):
            return False
        if self._is_unpacked(name) or self._is_indexed(name):
            return True
        for one in self._nodes:
            if not isinstance(one, m.Call) or not _is_first(one, name):
                continue
            if self._names_second(one):
                return True
            # A value with as many dimensions as this one.
            if self._kept(one) is not None and any(
                self._is_known(other, left - 1)
                for other in self._names_of(one)
                if other not in {name, *self._assumed}
            ):
                return True
        return False

    def _is_unpacked(self, name: str) -> bool:
        """``b, t, d = name.shape`` or ``b, t, d = name.size()``."""
        for one in self._nodes:
            if not isinstance(one, m.Assign):
                continue
            source = one.value.func if isinstance(one.value, m.Call) and not one.value.args else one.value
            if isinstance(source, m.Name) and source.id in {f"{name}{end}" for end in _SIZES}:
                return any(isinstance(target, m.Seq) and len(target.elts) > 1 for target in one.targets)
        return False

    def _is_indexed(self, name: str) -> bool:
        """``name[:, 0]``: two dimensions are taken from, not counting new ones."""
        for one in self._nodes:
            if isinstance(one, m.Subscript) and isinstance(one.value, m.Name) and one.value.id == name:
                index = one.index.elts if isinstance(one.index, m.Seq) and one.index.kind == "t" else []
                if sum(isinstance(part, m.Slice) or whole_number(part) is not None for part in index) > 1:
                    return True
        return False

    def _names_of(self, node: m.Call) -> Iterator[str]:
        """The variables that a call's result is assigned to."""
        for one in self._nodes:
            if isinstance(one, m.Assign) and one.value is node:
                yield from _targets(one)

    def _role(self, node: m.Call) -> RoleEntry | None:
        kb = self._run.kb
        if isinstance(node.func, m.Name):
            # Maybe a function of a module; a method otherwise.
            found = kb.role(called_api(self._run, node), "names-dimension")
            if found is not None:
                return found
        return kb.role(f"{TENSOR}.{called_name(node)}", "names-dimension")

    def _names_second(self, node: m.Call) -> bool:
        role = self._role(node)
        number = whole_number(argument_node(node, role.arg, role.pos)) if role is not None else None
        return number is not None and (number >= 1 or number <= -2)

    def _kept(self, node: m.Call) -> m.Expr | None:
        """The input of a call whose result has as many dimensions."""
        kb = self._run.kb
        name = called_api(self._run, node) if isinstance(node.func, m.Name) else ""
        method = kb.tensor(name) is None
        entry = kb.tensor(f"{TENSOR}.{called_name(node)}" if method else name)
        if entry is None or entry.sizes not in ("input", "rank"):
            return None
        others = node.args if method else node.args[1:]
        if any(whole_number(one) is None for one in others):
            # Another tensor may bring dimensions.
            return None
        return receiver_node(node) if method else node.args[0] if node.args else None


def _is_first(node: m.Call, name: str) -> bool:
    """Whether a call is a method of a variable, or is given it first."""
    if isinstance(node.func, m.Name) and node.func.id.rpartition(".")[0] == name:
        return True
    return bool(node.args) and isinstance(node.args[0], m.Name) and node.args[0].id == name


def _targets(node: m.Assign) -> list[str]:
    parts: list[Any] = []
    for target in node.targets:
        parts += target.elts if isinstance(target, m.Seq) else [target]
    return [one.id for one in parts if isinstance(one, m.Name)]
