"""Random values that only color what the program draws in a picture: results do not depend on them.

By syntax, with the names of what is called resolved as the program has them: a draw colors something where all that its
value comes to, through numbers, sequences, variables, attributes of the object whose method draws and what functions of
the file return, are arguments that name a color (role ``colored-by``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.naming import running
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.growing import GROWING
from d9mlint.ir.liveness import reaches_by_text
from d9mlint.ir.scopes import own_names, target_names
from d9mlint.ir.traversal import nodes, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry

_MOST_VARIABLES = 4
"""A color is followed through so many variables."""
_CONVERTING = frozenset({"builtins.int", "builtins.float", "builtins.str", "builtins.map"})


def colors_only(run: RunView, node: Any) -> bool:
    """Whether what an expression of the running function gives does nothing but color what the program draws."""
    function = running(run)
    if function is None or not any(map(run.uses, sorted(run.kb.libraries_that_color))):
        return False
    return _Colors(run).all_color(function, node, 0)


class _Colors:
    def __init__(self, run: RunView) -> None:
        self._run = run

    def all_color(self, function: m.Function, node: Any, depth: int) -> bool:
        """Follow a value from an expression upwards to where it is used."""
        above = parents(function)
        given: Any = None
        child, parent = node, above.get(id(node))
        name = ""
        while parent is not None:
            if isinstance(parent, m.Keyword):
                name = parent.name or ""
            elif isinstance(parent, m.Call):
                answer = self._given(function, parent, child, name, depth)
                if answer is not None:
                    return answer
                name = ""
            elif isinstance(parent, (m.Assign, m.AnnAssign)):
                targets = parent.targets if isinstance(parent, m.Assign) else [parent.target]
                return all(self._stored(function, target, depth) for target in targets)
            elif isinstance(parent, m.Return):
                return self._returned(function, depth)
            elif isinstance(parent, m.For):
                return parent.iter is child and self._stored(
                    function, _gets(parent.target, child, given), depth
                )
            elif isinstance(parent, m.Generator):
                return parent.iter is child and self._in_comprehension(
                    function, above.get(id(parent)), _gets(parent.target, child, given), depth
                )
            elif isinstance(parent, m.Comp):
                if parent.elt is not child and parent.value is not child:
                    return False
            elif isinstance(parent, m.Subscript):
                if parent.value is not child:
                    return False
            elif not isinstance(parent, (m.Seq, m.IfExp, m.Attr, m.BinOp, m.Star, m.FString, m.Dict)):
                return False
            given, child, parent = child, parent, above.get(id(parent))
        return False

    def _in_comprehension(self, function: m.Function, comp: Any, target: m.Expr, depth: int) -> bool:
        """Whether the elements that a comprehension goes through are colors."""
        names: set[str] = set()
        target_names(target, names)
        read = [
            one
            for one in nodes([comp])
            if isinstance(one, m.Name) and one is not target and one.id.partition(".")[0] in names
        ]
        return (
            bool(read)
            and depth < _MOST_VARIABLES
            and all(self.all_color(function, one, depth + 1) for one in read)
        )

    def _given(self, function: m.Function, call: m.Call, child: Any, name: str, depth: int) -> bool | None:
        """What a call makes of a value: a color (True), something else (False), or what may still be one (None)."""
        if call.func is child:
            # A method of it, such as `tolist`.
            return None
        func = call.func
        owner, _, method = func.id.rpartition(".") if isinstance(func, m.Name) else ("", "", "")
        if method in GROWING and owner:
            return self._stored(function, m.Name(owner, call.start, call.end), depth, inside=True)
        found = self._run.value_of(func) if isinstance(func, m.Name) else None
        role = self._role(func, found)
        if role is not None:
            if name:
                return name in (role.arg, *role.more)
            return role.pos is not None and any(one is child for one in call.args[role.pos : role.pos + 1])
        if not isinstance(found, v.Ext):
            return False
        api = self._run.kb.canonical(found.name)
        entry = self._run.kb.order(api)
        carries = entry is not None and entry.role in ("carry", "sink")
        return None if carries or api in _CONVERTING else False

    def _role(self, func: m.Expr, found: v.Value | None) -> RoleEntry | None:
        if isinstance(found, v.Ext):
            return self._run.kb.role(found.name, "colored-by")
        if isinstance(found, (v.Func, v.Cls)):
            return None
        name = func.id if isinstance(func, m.Name) else func.name if isinstance(func, m.Attr) else ""
        return self._run.kb.role(f"?.{name.rpartition('.')[2]}", "colored-by") if name else None

    def _stored(self, function: m.Function, target: m.Expr, depth: int, inside: bool = False) -> bool:
        """Whether a value colors something in all that is done with what it is stored in: a variable, or what one holds."""
        if isinstance(target, m.Seq):
            return all(self._stored(function, one, depth) for one in target.elts)
        if isinstance(target, m.Subscript):
            target, inside = target.value, True
        if not isinstance(target, m.Name) or depth >= _MOST_VARIABLES:
            return False
        owner, _, attribute = target.id.rpartition(".")
        if owner:
            of_self = function.cls >= 0 and bool(function.params) and function.params[0].name == owner
            return of_self and self._keeps_color(attribute, depth)
        # What a function keeps of a color and never reads is lost when it ends.
        own = function.parent >= 0 and target.id in own_names(function)
        lost = depth > 0 and own and not (inside and _is_given(function, target.id))
        return self._colors_all(self._read(function, target.id), depth, lost)

    def _keeps_color(self, attribute: str, depth: int) -> bool:
        """Whether a value colors something in all that is done with the attribute that it is stored in, of any object."""
        file = self._run.frame.file
        facts = self._run.whole(file)
        read = ((fn, one) for fn in facts.functions for one in _reads_attribute(fn, attribute))
        return (
            not reaches_by_text(facts)
            and self._colors_all(read, depth)
            and not self._run.uses_word(attribute, besides=file)
        )

    def _returned(self, function: m.Function, depth: int) -> bool:
        """Whether what a function returns colors something wherever it is called: all that names it calls it."""
        if depth >= _MOST_VARIABLES or function.parent < 0 or function.decorators or function.is_generator:
            return False
        file = self._run.frame.file
        facts = self._run.whole(file)
        called: list[tuple[m.Function, m.Call]] = []
        for fn in facts.functions:
            above = parents(fn)
            for one in _names_function(fn, function):
                call = above.get(id(one))
                if not isinstance(call, m.Call) or call.func is not one:
                    return False
                called.append((fn, call))
        return (
            bool(called)
            and not reaches_by_text(facts)
            and all(self.all_color(fn, call, depth + 1) for fn, call in called)
            and not self._run.uses_word(function.name, besides=file)
        )

    def _colors_all(
        self, read: Iterable[tuple[m.Function, m.Expr]], depth: int, if_unread: bool = False
    ) -> bool:
        """Whether all that is done with a value, where it is read, is to color something."""
        uses = 0
        for fn, one in read:
            parent = parents(fn).get(id(one))
            if isinstance(parent, m.Subscript) and parent.value is one:
                stmt = parents(fn).get(id(parent))
                if isinstance(stmt, m.Assign) and any(x is parent for x in stmt.targets):
                    continue
            elif (
                isinstance(parent, m.Call)
                and parent.func is one
                and isinstance(one, m.Name)
                and one.id.rpartition(".")[2] in GROWING
            ):
                continue
            if not self.all_color(fn, one, depth + 1):
                return False
            uses += 1
        return uses > 0 or if_unread

    def _read(self, function: m.Function, name: str) -> Iterator[tuple[m.Function, m.Name]]:
        """Where a variable of a function, or of a module, may be read."""
        yield from _reads(function, name)
        # Other code is read only where the function itself does nothing else with it: an edit of it makes the run anew.
        for one in self._run.whole(self._run.frame.file).functions:
            if one is not function and name not in own_names(one):
                yield from _reads(one, name)


def _reads(fn: m.Function, name: str) -> Iterator[tuple[m.Function, m.Name]]:
    assigned = _targets(fn)
    yield from ((fn, one) for one in variables(fn).get(name, ()) if id(one) not in assigned)
    for default in (*fn.decorators, *(x.default for x in fn.params if x.default)):
        for one in nodes([default]):
            if isinstance(one, m.Name) and one.id.partition(".")[0] == name:
                yield fn, one


def _is_given(function: m.Function, name: str) -> bool:
    """Whether a variable of a function may hold something that the function is given, or finds elsewhere."""
    return any(param.name == name for param in function.params) or any(
        not isinstance(one.value, (m.Seq, m.Dict, m.Comp, m.Call))
        for one in nodes(function.body)
        if isinstance(one, m.Assign) and any(isinstance(x, m.Name) and x.id == name for x in one.targets)
    )


def _names_function(fn: m.Function, named: m.Function) -> Iterator[m.Expr]:
    """Where a function names another one of its file, or a method as what any object has."""
    if named.cls >= 0:
        yield from _reads_attribute(fn, named.name)
    else:
        yield from (one for _, one in _reads(fn, named.name))


def _reads_attribute(fn: m.Function, attribute: str) -> Iterator[m.Expr]:
    """Where a function reads an attribute of this name, of any object."""
    assigned = _targets(fn)
    yield from (one for one in _attributes(fn).get(attribute, ()) if id(one) not in assigned)


@memoized
def _attributes(fn: m.Function) -> dict[str, list[m.Name | m.Attr]]:
    """Where a function names each attribute, of any object; memoised while it lives."""
    found: dict[str, list[m.Name | m.Attr]] = {}
    for one in nodes([*fn.body, *fn.decorators, *(x.default for x in fn.params if x.default)]):
        if isinstance(one, (m.Name, m.Attr)):
            parts = one.id.split(".")[1:] if isinstance(one, m.Name) else one.name.split(".")
            for name in dict.fromkeys(parts):
                found.setdefault(name, []).append(one)
    return found


def _gets(target: m.Expr, iterated: Any, given: Any) -> m.Expr:
    """The part of a loop's target that gets the elements of what ``enumerate`` and ``zip`` are given."""
    if (
        not isinstance(iterated, m.Call)
        or not isinstance(iterated.func, m.Name)
        or not isinstance(target, m.Seq)
    ):
        return target
    place = next((i for i, one in enumerate(iterated.args) if one is given), 0)
    if iterated.func.id == "enumerate":
        place = 1
    elif iterated.func.id != "zip":
        return target
    return target.elts[place] if place < len(target.elts) else target


@memoized
def _targets(function: m.Function) -> frozenset[int]:
    """The names that a function assigns where it does so, by id; memoised while it lives."""
    found: set[int] = set()
    for one in nodes(function.body):
        targets = one.targets if isinstance(one, m.Assign) else [one.target] if isinstance(one, m.For) else []
        for target in targets:
            if isinstance(target, (m.Name, m.Seq)):
                found.update(id(inner) for inner in nodes([target]) if isinstance(inner, m.Name))
    return frozenset(found)
