"""Variables, attributes and items of dictionaries that a program begins with numbers which are written there, or with
tensors that are made of nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.data import BUFFER
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop
    from d9mlint.interp.view import RunView
    from d9mlint.project.modules import ModuleFile


def name_of(node: Any) -> str:
    """What a program calls a variable, an attribute or an item of a dictionary; empty for anything else."""
    if (
        isinstance(node, m.Subscript)
        and isinstance(node.index, m.Const)
        and isinstance(node.index.value, str)
    ):
        owner = name_of(node.value)
        return f"{owner}[{node.index.value!r}]" if owner else ""
    return node.id if isinstance(node, m.Name) else ""


def last_of(name: str) -> str:
    """The name of an attribute or the key of an item, without what it is one of."""
    return name.rpartition("[")[2].strip("]'\"") if name.endswith("]") else name.rpartition(".")[2]


def owner_of(name: str) -> str:
    """What has an attribute or an item; empty for a variable."""
    return name.rpartition("[" if name.endswith("]") else ".")[0]


def names_in(parts: Iterable[Any]) -> set[str]:
    """The variables, attributes and items that some expressions read."""
    return {name for one in nodes(parts) if (name := name_of(one))}


def stored_names(stmt: m.Stmt) -> set[str]:
    """The variables, attributes and items that a statement assigns."""
    targets = stmt.targets if isinstance(stmt, m.Assign) else []
    if isinstance(stmt, (m.AnnAssign, m.AugAssign)):
        targets = [stmt.target]
    held = [part for one in targets for part in (one.elts if isinstance(one, m.Seq) else [one])]
    return {name for one in held if (name := name_of(one))}


def set_to_number(stmt: m.Stmt) -> Iterator[str]:
    """What an assignment sets to numbers that are written there, also as ``float("inf")`` and ``np.inf``."""
    yield from (name for one, value in _pairs(stmt) if is_number(value) and (name := name_of(one)))


def _pairs(stmt: m.Stmt) -> Iterator[tuple[m.Expr, m.Expr]]:
    """What is assigned, with the value."""
    if isinstance(stmt, m.AnnAssign) and stmt.value is not None:
        yield stmt.target, stmt.value
    if not isinstance(stmt, m.Assign):
        return
    for target in stmt.targets:
        if isinstance(target, m.Seq) and isinstance(stmt.value, m.Seq):
            yield from zip(target.elts, stmt.value.elts, strict=False)
        else:
            yield target, stmt.value


def is_number(value: Any) -> bool:
    """Whether an expression is a number that is written there."""
    if isinstance(value, m.Unary):
        value = value.operand
    if isinstance(value, m.Call):
        return called_name(value) == "float" and all(isinstance(one, m.Const) for one in value.args)
    if isinstance(value, m.Name):
        return value.id.rpartition(".")[2] == "inf"
    return isinstance(value, m.Const) and type(value.value) in (int, float)


def _begins(run: RunView, value: m.Expr) -> bool:
    """Whether an expression gives a number that is written there, or a tensor that is made of nothing."""
    if is_number(value):
        return True
    while isinstance(value, m.Call) and isinstance(value.func, m.Attr):
        value = value.func.value
    made = run.value_of(value) if isinstance(value, m.Call) else None
    entry = run.kb.tensor(made.api) if isinstance(made, v.Obj) else None
    return entry is not None and entry.device == "new"


def _set_first(run: RunView, stmt: m.Stmt) -> set[str]:
    """What an assignment sets to such numbers or tensors."""
    return {name for one, value in _pairs(stmt) if (name := name_of(one)) and _begins(run, value)}


def begun(run: RunView, loop: Loop, found: set[str]) -> set[str]:
    """Those of some variables that the function of a loop begins with numbers before it, and with nothing else."""
    body = loop.frame.body
    inside = {id(stmt) for stmt in statements([loop.stmt])}
    repeated = {
        id(part)
        for stmt in statements(body)
        if isinstance(stmt, (m.For, m.While))
        for part in statements([stmt])
    }
    first = set[str]()
    for stmt in statements(body):
        stored = stored_names(stmt) & found if id(stmt) not in inside else set[str]()
        if stored:
            first |= stored
            # What something else begins it with may be what was saved.
            found -= stored - (set[str]() if id(stmt) in repeated else _set_first(run, stmt))
    return found & first


def begun_outside(
    run: RunView, loop: Loop, found: set[str], called: Iterable[str] = (), file: ModuleFile | None = None
) -> set[str]:
    """Those of some attributes, items and variables of a module that its functions and classes begin with numbers outside
    of a loop and of what that calls, and with nothing else. ``called`` are functions and methods that it calls without
    their names, or under other ones, also in another ``file``."""
    if not found:
        return found
    files = {loop.frame.file.path: loop.frame.file}
    if file is not None:
        files[file.path] = file
    for owner in {owner_of(name) for name in found} - {""}:
        for one in v.alternatives(run.value_of(m.Name(owner, loop.stmt.start, loop.stmt.end))):
            for cls in one.cls.mro() if isinstance(one, v.Inst) else ():
                files[cls.file.path] = cls.file
    facts = [run.whole(files[path]) for path in sorted(files)]
    return _Beginnings(run, facts, loop.stmt, found).names(called)


class _Beginnings:
    """What some attributes and items begin with."""

    def __init__(
        self, run: RunView, facts: list[m.FileFacts], loop: m.For | m.While, found: set[str]
    ) -> None:
        self.run = run
        self.facts = facts
        self.loop = loop
        self.found = found
        self.owners = {owner_of(name) for name in found} - {""}
        self.lasts = {last_of(name) for name in found}
        self.numbers, self.others = set[str](), set[str]()
        self.replaced = set[str]()
        """Owners that may be given anything, as what was saved."""

    def names(self, called: Iterable[str]) -> set[str]:
        """Those that begin with numbers."""
        inside = {id(stmt) for stmt in statements([self.loop])}
        functions = [one for facts in self.facts for one in facts.functions]
        reached = _reached(functions, self.loop.body, called)
        for function in functions:
            if id(function) in reached:
                continue
            for stmt in statements(function.body):
                if id(stmt) not in inside:
                    self._assigned(stmt)
            parts = list(nodes(function.body))
            if any(map(self._replaces, parts)):
                return set()
            self.numbers.update(name for one in parts for name, _ in buffers([one]))
        for facts in self.facts:
            for cls in facts.classes:
                self.numbers.update(last_of(name) for stmt in cls.body for name in set_to_number(stmt))
        return {
            one
            for one in self.found
            if (last := last_of(one)) in self.numbers
            and last not in self.others
            and owner_of(one) not in self.replaced
        }

    def _assigned(self, stmt: m.Stmt) -> None:
        """A statement outside of the loop may begin something."""
        stored = {name for name in stored_names(stmt) if last_of(name) in self.lasts}
        numbers = _set_first(self.run, stmt) if stored else stored
        for name in stored:
            (self.numbers if name in numbers else self.others).add(last_of(name))
        for target, value in _pairs(stmt):
            if (name := name_of(target)) in self.owners:
                self._made(name, value)

    def _made(self, owner: str, value: m.Expr) -> None:
        """What has some of the attributes or items is made."""
        parts: list[tuple[Any, m.Expr]] = []
        if isinstance(value, m.Dict):
            parts = [
                (one.value if isinstance(one, m.Const) else None, held)
                for one, held in zip(value.keys, value.values, strict=True)
            ]
        elif isinstance(value, m.Call):
            parts = [(one.name, one.value) for one in value.keywords]
            parts += [(None, one) for one in value.args if isinstance(one, m.Star)]
        else:
            parts = [(None, value)]
        for key, held in parts:
            if key is None:
                self.replaced.add(owner)
            elif key in self.lasts:
                (self.numbers if is_number(held) else self.others).add(str(key))

    def _replaces(self, node: Any) -> bool:
        """Whether an expression sets attributes whose names are not written; a dictionary may be given other items."""
        if isinstance(node, m.Call) and isinstance(node.func, m.Name):
            owner, _, method = node.func.id.rpartition(".")
            if owner in self.owners and node.args and any(one.startswith(f"{owner}[") for one in self.found):
                self.replaced.add(owner)
            return method == "setattr" or owner.endswith(".__dict__")
        if isinstance(node, (m.Attr, m.Subscript)):
            return called_name(node.value) == "vars"
        return isinstance(node, m.Assign) and any(name.endswith(".__dict__") for name in stored_names(node))


def buffers(parts: Iterable[Any]) -> Iterator[tuple[str, bool]]:
    """The buffers that calls give to modules, and whether the states of these hold them."""
    for one in parts:
        if (
            isinstance(one, m.Call)
            and called_name(one) == _BUFFER
            and one.args
            and isinstance(one.args[0], m.Const)
        ):
            kept = [part.value for part in one.keywords if part.name == "persistent"] or one.args[2:3]
            yield (
                str(one.args[0].value),
                not any(isinstance(part, m.Const) and part.value is False for part in kept),
            )


_BUFFER = BUFFER.rpartition(".")[2]


def _reached(functions: list[m.Function], body: list[m.Stmt], more: Iterable[str]) -> set[int]:
    """The functions that the body of a loop calls, or that one of these does, beside some that it is known to call."""
    found = set[int]()
    called = {*more, *_called(body)}
    while called:
        new = [one for one in functions if one.name in called and id(one) not in found]
        found.update(map(id, new))
        called = {name for one in new for name in _called(one.body)}
    return found


def _called(body: list[m.Stmt]) -> set[str]:
    return {name for one in nodes(body) if (name := called_name(one))}
