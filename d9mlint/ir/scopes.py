"""Names that statements assign: in a loop, whose later rounds see other values, or in a function, as its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo, memoized
from d9mlint.ir.traversal import called_name, nodes, parents, statements

_carried: dict[int, tuple[object, frozenset[str]]] = memo()
_assigned: dict[int, tuple[object, frozenset[str]]] = memo()
_counted: dict[int, tuple[object, frozenset[str]]] = memo()
_set_attributes: dict[int, tuple[object, frozenset[str]]] = memo()
_bound: dict[int, tuple[object, frozenset[str]]] = memo()
_stored: dict[int, tuple[object, frozenset[str]]] = memo()
_guarded: dict[int, tuple[object, dict[str, list[m.Compare]]]] = memo()
_handled: dict[int, tuple[object, frozenset[str]]] = memo()
_own: dict[int, tuple[m.Function, frozenset[str]]] = memo()
_times: dict[int, tuple[m.Function, Counter[str]]] = memo()
_in_bodies: dict[int, tuple[list[m.Stmt], Counter[str]]] = memo()


def assigned_names(stmt: m.For | m.While) -> frozenset[str]:
    """Plain names assigned anywhere in a loop's body (not in functions defined there)."""
    known = _assigned.get(id(stmt))
    if known is not None and known[0] is stmt:
        return known[1]
    result = frozenset(names_assigned(stmt.body))
    _assigned[id(stmt)] = (stmt, result)
    return result


def carried_names(stmt: m.For | m.While) -> frozenset[str]:
    """Plain names that a loop assigns and that may still hold what an earlier round gave them: not those that each round
    gives something new before it reads them. Memoised while the loop lives."""
    known = _carried.get(id(stmt))
    if known is not None and known[0] is stmt:
        return known[1]
    result = assigned_names(stmt) - _renewed(stmt.body, set())
    _carried[id(stmt)] = (stmt, result)
    return result


def _renewed(body: Sequence[m.Stmt], read: set[str]) -> set[str]:
    """Names that statements, one after the other, give something before they read them; ``read`` are those read so far,
    to which these are added."""
    renewed: set[str] = set()
    for one in body:
        new: set[str] = set()
        if isinstance(one, m.With):
            read |= heads([item.context for item in one.items]) - renewed
            _targets(one, new)
            renewed |= new - read
            renewed |= _renewed(one.body, read) - read
        elif isinstance(one, m.If):
            read |= heads([one.test]) - renewed
            renewed |= _renewed_by_each([one.body, one.orelse], read)
        elif isinstance(one, m.Try):
            renewed |= _renewed_by_each(
                [[*one.body, *one.orelse], *(each.body for each in one.handlers)], read
            )
        elif isinstance(one, (m.Assign, m.AnnAssign)) and one.value is not None:
            read |= heads([one.value]) - renewed
            _targets(one, new)
            renewed |= new - read
        read |= heads([one]) - renewed
    return renewed


def _renewed_by_each(blocks: Sequence[Sequence[m.Stmt]], read: set[str]) -> set[str]:
    """Names that each of some blocks gives something before it reads them, but for blocks that leave the round."""
    going_on = [one for one in blocks if not one or not isinstance(one[-1], (m.Jump, m.Return, m.Raise))]
    renewed = [_renewed(one, set(read)) for one in going_on]
    return set.intersection(*renewed) if renewed else set()


def heads(parts: Iterable[Any]) -> set[str]:
    """The variables that expressions or statements name, without their attributes."""
    return {one.id.partition(".")[0] for one in nodes(parts) if isinstance(one, m.Name)}


def names_assigned(body: list[m.Stmt]) -> set[str]:
    """Plain names assigned anywhere in some statements (not in functions defined there)."""
    names: set[str] = set()
    for inner in statements(body):
        _targets(inner, names)
        if isinstance(inner, m.Match):
            for case in inner.cases:
                names.update(case.binds)
    return names


def own_names(function: m.Function) -> frozenset[str]:
    """Parameters of a function and names that it assigns as its own: what it reads by them is its own too. Memoised
    while the function lives."""
    known = _own.get(id(function))
    if known is not None and known[0] is function:
        return known[1]
    names = {param.name for param in function.params}
    outer: set[str] = set()
    for stmt in statements(function.body):
        _targets(stmt, names)
        if isinstance(stmt, m.ScopeDecl):
            outer.update(stmt.names)
    result = frozenset(names - outer)
    _own[id(function)] = (function, result)
    return result


def may_read(body: list[m.Stmt], name: str) -> bool:
    """Whether the body of a function may read a parameter: it names it, or holds what may see all variables."""
    return any(
        isinstance(one, (m.FunctionDef, m.ClassDef, m.Lambda))
        or (isinstance(one, m.Name) and one.id.partition(".")[0] == name)
        or (isinstance(one, m.Call) and called_name(one) in _SEEING_ALL)
        for one in nodes(body)
    )


_SEEING_ALL = frozenset({"locals", "vars", "eval", "exec"})
"""Functions that may read variables of the one that calls them."""


def times_stored(function: m.Function, name: str) -> int:
    """In how many places a function's own variable gets a value: as a parameter, or in its body. Memoised while the
    function lives."""
    known = _times.get(id(function))
    if known is None or known[0] is not function:
        known = _times[id(function)] = (function, _count_stored(function))
    return known[1][name]


def _count_stored(function: m.Function) -> Counter[str]:
    times = Counter(param.name for param in function.params)
    for stmt in statements(function.body):
        names: set[str] = set()
        _targets(stmt, names)
        if isinstance(stmt, m.Match):
            names.update(*(case.binds for case in stmt.cases))
        times.update(names)
    times.update(one.target for one in nodes(function.body) if isinstance(one, m.Walrus))
    return times


@memoized
def imported_names(function: m.Function) -> dict[str, str]:
    """What the names stand for that the body of a function, or of a module, imports from libraries. The last import
    counts."""
    found: dict[str, str] = {}
    for stmt in statements(function.body):
        if isinstance(stmt, m.Import):
            tops = ((one.name.partition(".")[0], one) for one in stmt.names)
            found.update((one.asname, one.name) if one.asname else (top, top) for top, one in tops)
        elif isinstance(stmt, m.ImportFrom) and not stmt.level:
            found.update((one.asname or one.name, f"{stmt.module}.{one.name}") for one in stmt.names)
    return found


def library_name(facts: m.FileFacts, function: m.Function, dotted: str) -> str:
    """The full name of what a function calls by a name, as its imports and those of its module say; empty where the name
    is that of a variable."""
    first, dot, rest = dotted.partition(".")
    scope = function
    while not times_stored(scope, first):
        if first in imported_names(scope):
            return f"{imported_names(scope)[first]}{dot}{rest}"
        if scope is facts.functions[0]:
            return dotted
        scope = facts.functions[max(scope.parent, 0)]
    return ""


def bound_names(facts: m.FileFacts) -> frozenset[str]:
    """All names that code of a file binds in any scope; ``*`` where it imports all names of a module."""
    known = _bound.get(id(facts))
    if known is not None and known[0] is facts:
        return known[1]
    names: set[str] = set()
    for function in facts.functions:
        names.add(function.name)
        names.update(param.name for param in function.params)
    for cls in facts.classes:
        names.add(cls.name)
    for body in (*(one.body for one in facts.functions), *(one.body for one in facts.classes)):
        for node in nodes(list(body)):
            bound_by(node, names)
    result = frozenset(names)
    _bound[id(facts)] = (facts, result)
    return result


@memoized
def names_of_libraries(facts: m.FileFacts) -> dict[str, tuple[str, str]]:
    """What the statements of a module import under which names: the module, and its member or nothing. Names that it
    imports in several ways are left out."""
    found: dict[str, set[tuple[str, str]]] = {}
    for one in statements(facts.functions[0].body):
        if isinstance(one, m.Import):
            for alias in one.names:
                top = alias.name.partition(".")[0]
                found.setdefault(alias.asname or top, set()).add((alias.name if alias.asname else top, ""))
        elif isinstance(one, m.ImportFrom) and not one.level:
            for alias in one.names:
                found.setdefault(alias.asname or alias.name, set()).add((one.module, alias.name))
    return {name: several.pop() for name, several in found.items() if len(several) == 1}


@memoized
def declared_names(facts: m.FileFacts) -> frozenset[str]:
    """All names that functions of a file declare as those of another scope."""
    scopes = (one for fn in facts.functions for one in statements(fn.body) if isinstance(one, m.ScopeDecl))
    return frozenset(name for one in scopes for name in one.names)


def stored_attributes(facts: m.FileFacts) -> frozenset[str]:
    """All attributes that code of a file may assign more than once or at any time: not what constructors do, which is over
    when others ask, nor what the module itself does outside of loops."""
    known = _stored.get(id(facts))
    if known is not None and known[0] is facts:
        return known[1]
    names: set[str] = set()
    module, *functions = facts.functions
    parts: list[m.Stmt] = [stmt for stmt in statements(module.body) if isinstance(stmt, (m.For, m.While))]
    for function in functions:
        if function.name not in _CONSTRUCTORS or function.cls < 0:
            parts += function.body
    for stmt in statements(parts):
        for one in nodes(_all_targets(stmt)):
            if isinstance(one, (m.Attr, m.Name)):
                names.add(_attribute_path(one).rpartition(".")[2] if isinstance(one, m.Name) else one.name)
    result = frozenset(names - {""})
    _stored[id(facts)] = (facts, result)
    return result


_CONSTRUCTORS = frozenset({"__init__", "__post_init__", "__new__"})


def _all_targets(stmt: m.Stmt) -> list[m.Expr]:
    """What a statement itself assigns to."""
    if isinstance(stmt, m.Assign):
        return list(stmt.targets)
    if isinstance(stmt, (m.AnnAssign, m.AugAssign, m.For)):
        return [stmt.target]
    return [one.target for one in stmt.items if one.target is not None] if isinstance(stmt, m.With) else []


def changes_only_if(stmt: m.For | m.While) -> dict[str, list[m.Compare]]:
    """The plain names that a loop assigns only inside of branches whose tests compare them, with these comparisons."""
    known = _guarded.get(id(stmt))
    if known is not None and known[0] is stmt:
        return known[1]
    tests: dict[str, list[m.Compare]] = {}
    inside: dict[str, set[int]] = {}
    for one in statements(stmt.body):
        if not isinstance(one, m.If):
            continue
        for test in conjuncts(one.test):
            if isinstance(test, m.Compare) and isinstance(test.left, m.Name) and len(test.ops) == 1:
                tests.setdefault(test.left.id, []).append(test)
                inside.setdefault(test.left.id, set()).update(id(x) for x in statements(one.body))
    bound: set[str] = set()
    for one in statements([stmt]) if tests else ():
        names: set[str] = set()
        _targets(one, names)
        if isinstance(one, m.Match):
            names.update(name for case in one.cases for name in case.binds)
        bound.update(name for name in names if id(one) not in inside.get(name, ()))
    result = {name: found for name, found in tests.items() if name not in bound}
    _guarded[id(stmt)] = (stmt, result)
    return result


def assigned_in(
    body: Sequence[m.Stmt], name: str
) -> Iterator[tuple[m.Stmt, tuple[tuple[m.Name, bool], ...]]]:
    """The statements of a block, and of those in them, that assign a name, with the variables that are true or false where
    they run, as tests around them ask."""
    for one in body:
        names: set[str] = set()
        bound_by(one, names)
        if name in names:
            yield one, ()
        for part in ("body", "orelse", "final"):
            asked = _asked_by(one, part == "body") if isinstance(one, m.If) else ()
            for stmt, tests in assigned_in(getattr(one, part, ()), name):
                yield stmt, (*asked, *tests)
        for handler in (*getattr(one, "handlers", ()), *getattr(one, "cases", ())):
            bound_by(handler, names)
            if name in names:
                yield one, ()
            yield from assigned_in(handler.body, name)


def _asked_by(stmt: m.If, holds: bool) -> tuple[tuple[m.Name, bool], ...]:
    """The variables that a test asks, and what they are where it holds, or where it does not."""
    tests = conjuncts(stmt.test) if holds else [stmt.test]
    found: list[tuple[m.Name, bool]] = []
    for test in tests:
        turned = isinstance(test, m.Unary) and test.op == "not"
        asked = test.operand if isinstance(test, m.Unary) and turned else test
        if isinstance(asked, m.Name):
            found.append((asked, holds is not turned))
    return tuple(found)


def conjuncts(test: m.Expr) -> list[m.Expr]:
    """The tests that all hold where a test does."""
    if isinstance(test, m.BoolOp) and test.op == "and":
        return [*conjuncts(test.left), *conjuncts(test.right)]
    return [test]


def bound_by(node: Any, names: set[str]) -> None:
    _targets(node, names)
    if isinstance(node, (m.Import, m.ImportFrom)):
        names.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    elif isinstance(node, m.Handler):
        names.add(node.name or "")
    elif isinstance(node, m.Case):
        names.update(node.binds)
    elif isinstance(node, m.ScopeDecl):
        names.update(node.names)
    elif isinstance(node, m.Walrus):
        names.add(node.target)
    elif isinstance(node, m.Generator):
        target_names(node.target, names)


def assignments(body: list[m.Stmt], name: str) -> int:
    """How many of the statements of a body, and of those in them, assign a plain name; memoised while the body lives."""
    known = _in_bodies.get(id(body))
    if known is None or known[0] is not body:
        found: Counter[str] = Counter()
        for stmt in statements(body):
            names: set[str] = set()
            _targets(stmt, names)
            found.update(names)
        known = _in_bodies[id(body)] = (body, found)
    return known[1][name]


def counts_up(stmt: m.While, name: str) -> bool:
    """Whether each round of a loop adds one to a plain name, and nothing else in it assigns the name."""
    return assignments(stmt.body, name) == 1 and any(
        isinstance(one, m.AugAssign)
        and isinstance(one.target, m.Name)
        and one.target.id == name
        and one.op == "+"
        and isinstance(one.value, m.Const)
        and one.value.value == 1
        for one in stmt.body
    )


def target_names(target: m.Expr, names: set[str]) -> None:
    """Add the plain names of an assignment target."""
    if isinstance(target, m.Name):
        if "." not in target.id:
            names.add(target.id)
    elif isinstance(target, m.Seq):
        for elt in target.elts:
            target_names(elt, names)
    elif isinstance(target, m.Star):
        target_names(target.value, names)


def _targets(stmt: m.Stmt, names: set[str]) -> None:
    """Add the plain names that a statement itself assigns."""
    for target in _all_targets(stmt):
        target_names(target, names)


def counted_attributes(facts: m.FileFacts) -> frozenset[str]:
    """Attributes that functions of a file count up or down (``self.step += 1``, ``self.step = self.step + 1``), also in
    circles (``self.step = (self.step + 1) % 4``)."""
    known = _counted.get(id(facts))
    if known is not None and known[0] is facts:
        return known[1]
    names: set[str] = set()
    for function in facts.functions:
        for stmt in statements(function.body):
            if isinstance(stmt, m.AugAssign):
                names.add(_attribute_path(stmt.target).rpartition(".")[2])
            elif isinstance(stmt, m.Assign) and isinstance(stmt.value, m.BinOp) and len(stmt.targets) == 1:
                path = _attribute_path(stmt.targets[0])
                if path and path in _operands(stmt.value):
                    names.add(path.rpartition(".")[2])
    result = frozenset(names - {""})
    _counted[id(facts)] = (facts, result)
    return result


def assigned_attributes(facts: m.FileFacts) -> frozenset[str]:
    """The names of attributes that a file assigns, of whatever: ``x.name = 1``, ``setattr(x, "name", 1)``."""
    known = _set_attributes.get(id(facts))
    if known is not None and known[0] is facts:
        return known[1]
    names: set[str] = set()
    for function in facts.functions:
        for one in nodes(list(function.body)):
            if isinstance(one, m.Call) and isinstance(one.func, m.Name) and one.func.id == "setattr":
                names.update(str(arg.value) for arg in one.args[1:2] if isinstance(arg, m.Const))
        for stmt in statements(function.body):
            for target in nodes(_all_targets(stmt)):
                if isinstance(target, m.Name) and "." in target.id:
                    names.add(target.id.rpartition(".")[2])
                elif isinstance(target, m.Attr):
                    names.add(target.name.rpartition(".")[2])
    result = frozenset(names)
    _set_attributes[id(facts)] = (facts, result)
    return result


def stores_of(function: m.Function, name: str) -> list[m.Stmt]:
    """The statements of a function that assign an attribute of some name, of whatever."""
    return [
        stmt
        for stmt in statements(function.body)
        if any(
            isinstance(target, (m.Name, m.Attr)) and _last_of(target) == name
            for target in nodes(_all_targets(stmt))
        )
    ]


def _last_of(target: m.Name | m.Attr) -> str:
    """The name of an attribute; empty for a plain name."""
    text = target.name if isinstance(target, m.Attr) else _attribute_path(target)
    return text.rpartition(".")[2]


def only_tested(facts: m.FileFacts, name: str) -> bool:
    """Whether a file does nothing with what it calls ``name``, or ``x.name``, but assign it and ask what it holds: nobody
    there adds anything to it, or hands it on to somebody who may."""
    known = _handled.get(id(facts))
    if known is None or known[0] is not facts:
        known = _handled[id(facts)] = (facts, frozenset(_handled_names(facts)))
    return name not in known[1]


def _handled_names(facts: m.FileFacts) -> Iterator[str]:
    for function in facts.functions:
        above = parents(function)
        for one in nodes(list(function.body)):
            if not isinstance(one, m.Name):
                continue
            *owners, last = one.id.split(".")
            yield from owners
            child: Any = one
            parent = above.get(id(one))
            while isinstance(parent, (m.IfExp, m.BoolOp, m.Unary)):
                child, parent = parent, above.get(id(parent))
            if isinstance(parent, m.Compare | m.If | m.While):
                continue
            if isinstance(parent, m.Assign) and len(parent.targets) == 1:
                target = parent.targets[0]
                if target is child or (isinstance(target, m.Name) and target.id.rpartition(".")[2] == last):
                    continue
            yield last


def _operands(value: m.BinOp) -> Iterator[str]:
    """The attributes from which an expression of numbers is computed."""
    for side in (value.left, value.right):
        if isinstance(side, m.BinOp):
            yield from _operands(side)
        else:
            yield _attribute_path(side)


def _attribute_path(node: m.Expr) -> str:
    """The text of ``self.step``; empty for anything but an attribute of a name."""
    return node.id if isinstance(node, m.Name) and "." in node.id else ""
