"""Checkpoints with the number of an epoch that nothing reads: the loop that goes on begins with the first one again."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, parents, receiver, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView

_EPOCH = "epoch"
_FIRST = (0, 1)


def begins_anew(loop: Loop) -> bool:
    """Whether a loop counts from a first number that is written there: ``for epoch in range(epochs)``."""
    over = loop.stmt.iter if isinstance(loop.stmt, m.For) else None
    if not isinstance(over, m.Call) or called_name(over) != "range" or over.keywords:
        return False
    if any(isinstance(one, m.Star) for one in over.args):
        return False
    first = over.args[0] if len(over.args) > 1 else None
    return first is None or (isinstance(first, m.Const) and first.value in _FIRST)


def epoch_keys(mapping: v.Mapping) -> Iterator[str]:
    """The keys under which a dictionary that is saved has the number of an epoch."""
    for key in dict.keys(mapping.items):
        if (
            isinstance(key, str)
            and key.lower().endswith(_EPOCH)
            and not isinstance(mapping.items[key], v.Lit)
        ):
            yield key


def fate(run: RunView, key: str) -> Fate:
    """What becomes of what the program reads under a key."""
    by_path = run.modules.by_path
    paths = {*run.imported_files, *([run.entry.path] if run.entry is not None else [])}
    return _Reader([run.whole(by_path[path]) for path in sorted(paths) if path in by_path]).fate(key)


class Fate(Enum):
    """What becomes of what is read under a key of a checkpoint: nothing reads it; it is shown, saved again or tested to end
    a loop; or it may say where a loop begins, or which of its rounds are passed over."""

    UNREAD = 0
    SHOWN = 1
    USED = 2


class _Reader:
    """Follows what is read under a key through the variables of some files, by syntax alone. What it does not follow is
    taken to be used."""

    def __init__(self, files: list[m.FileFacts]) -> None:
        self.files = files
        self.own = {one.name for facts in files for one in facts.functions}
        self.followed: set[tuple[int, str]] = set()

    def fate(self, key: str) -> Fate:
        read = [
            (facts, function, one)
            for facts in self.files
            for function in facts.functions
            for one in _reads(function, key)
        ]
        if not read:
            return Fate.UNREAD
        return Fate.USED if any(self._is_used(*one) for one in read) else Fate.SHOWN

    def _is_used(self, facts: m.FileFacts, function: m.Function, node: Any) -> bool:
        """Whether the value of an expression may say where a loop begins."""
        above = parents(function)
        part: int | None = None
        computed = False
        while (parent := above.get(id(node))) is not None:
            if isinstance(parent, m.Call):
                if not any(node is one for one in parent.args) or called_name(parent) in self.own:
                    return True
            elif isinstance(parent, m.Keyword):
                parent = above[id(parent)]
                if called_name(parent) in self.own:
                    return True
            elif isinstance(parent, m.Dict):
                # It is saved again.
                return False
            elif isinstance(parent, m.BinOp):
                other = parent.right if parent.left is node else parent.left
                computed |= not isinstance(other, m.Const) and not (parent.op == "%" and parent.right is node)
            elif isinstance(parent, m.Assign):
                return computed or any(self._is_used_as(facts, function, one, part) for one in parent.targets)
            elif isinstance(parent, m.Return):
                return computed or self._is_taken(facts, function)
            elif isinstance(parent, m.ExprStmt):
                return False
            elif isinstance(parent, m.If):
                if not parent.body:
                    # `pass`: with nothing else, the test decides nothing.
                    return bool(parent.orelse)
                last = parent.body[-1]
                return not isinstance(last, m.Return | m.Raise | m.Jump) or _goes_on(last)
            elif isinstance(parent, m.Seq):
                part = next(at for at, one in enumerate(parent.elts) if one is node)
            elif not isinstance(parent, m.FString | m.Compare | m.BoolOp | m.Unary):
                return True
            node = parent
        return True

    def _is_used_as(self, facts: m.FileFacts, function: m.Function, target: Any, part: int | None) -> bool:
        if isinstance(target, m.Seq):
            if (
                part is None
                or part >= len(target.elts)
                or any(isinstance(one, m.Star) for one in target.elts)
            ):
                return True
            target = target.elts[part]
        if not isinstance(target, m.Name):
            return True
        _, dot, name = target.id.rpartition(".")
        # An attribute may be read in any file, and a variable of a module in any function there.
        files = self.files if dot else [facts]
        known = (0 if dot else id(function), name)
        if known in self.followed:
            return False
        self.followed.add(known)
        return any(
            self._is_used(one, other, use)
            for one in files
            for other in one.functions
            for use in (_attributes(other, name) if dot else _uses(other, name))
        )

    def _is_taken(self, home: m.FileFacts, function: m.Function) -> bool:
        """Whether a call of a function is more than a statement."""
        for facts in self.files:
            for other in facts.functions:
                above = parents(other)
                for one in nodes(other.body):
                    if isinstance(one, m.Call) and called_name(one) == function.name:
                        if facts is home and function.cls < 0 and receiver(one):
                            # A function of the file itself is called by its name alone.
                            continue
                        if not isinstance(above.get(id(one)), m.ExprStmt):
                            return True
        return False


def _goes_on(jump: Any) -> bool:
    return isinstance(jump, m.Jump) and jump.kind == "continue"


def _reads(function: m.Function, key: str) -> Iterator[Any]:
    """The expressions that read what is stored under a key."""
    named = [one for one in nodes(function.body) if isinstance(one, m.Const) and one.value == key]
    if not named:
        return
    above = parents(function)
    stored = {id(one) for node in nodes(function.body) for one in _stored(node)}
    for one in named:
        if id(one) not in stored:
            parent = above.get(id(one))
            is_key = isinstance(parent, m.Subscript) or (isinstance(parent, m.Call) and parent.args[0] is one)
            yield parent if is_key else one


def _attributes(function: m.Function, name: str) -> Iterator[Any]:
    """Where a function reads an attribute of any object."""
    for one in nodes(function.body):
        path = one.id if isinstance(one, m.Name) else "." + one.name if isinstance(one, m.Attr) else ""
        if path.endswith("." + name) and not _is_target(function, one):
            yield one


def _uses(function: m.Function, name: str) -> Iterator[m.Name]:
    """Where a function reads a variable, but for loops that assign it in each round."""
    above = parents(function)
    for one in variables(function).get(name, ()):
        if one.id != name or _is_target(function, one):
            continue
        node: Any = one
        while (parent := above.get(id(node))) is not None:
            if isinstance(parent, m.For) and node is not parent.iter and _binds(parent.target, name):
                break
            node = parent
        else:
            yield one


def _binds(target: m.Expr, name: str) -> bool:
    return any(isinstance(one, m.Name) and one.id == name for one in nodes([target]))


def _is_target(function: m.Function, node: Any) -> bool:
    """Whether a name is assigned where it stands."""
    above = parents(function)
    parent = above.get(id(node))
    while isinstance(parent, m.Seq):
        node, parent = parent, above.get(id(parent))
    if isinstance(parent, m.Assign):
        return any(one is node for one in parent.targets)
    return isinstance(parent, m.For | m.AugAssign) and parent.target is node


def _stored(node: object) -> Iterator[m.Expr]:
    """The keys under which a node stores something."""
    if isinstance(node, m.Dict):
        yield from (one for one in node.keys if one is not None)
    elif isinstance(node, m.Assign):
        yield from (one.index for one in node.targets if isinstance(one, m.Subscript))
