"""Names of a function that are computed from what stands at some places: by syntax alone."""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from d9mlint.ir import nodes as m
from d9mlint.ir.forms import only_form
from d9mlint.ir.scopes import own_names
from d9mlint.ir.traversal import called_name, children, nodes, statements

Looks = Callable[[str], Literal["method", "function", ""]]
"""Whether a call of this name looks at no element of its receiver (``method``), or of its first argument
(``function``)."""


class Callee(NamedTuple):
    """A function of the project that is called, the places in its file, and whether it is called as a method."""

    function: m.Function
    places: Sequence[int]
    bound: bool


def derived_names(
    function: m.Function,
    places: Sequence[int],
    looks: Looks,
    params: Iterable[str] = (),
    counting: Collection[int] = (),
    callees: Mapping[int, Callee] | None = None,
    without: Container[int] = (),
) -> set[str]:
    """The variables of a function that hold something computed from an expression at one of these places, or from one of
    these parameters. See ``elements`` for ``counting``. What is called at the places in ``callees`` tells which elements of
    a tuple that it returns are computed from what it is given. Statements ``without`` are those that never run, by their
    ids."""
    found: set[str] = set(params)
    before = -1
    while len(found) > before:
        before = len(found)
        for stmt in statements(function.body):
            if id(stmt) in without:
                continue
            if isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call):
                if stmt.value.start in places:
                    # Nothing takes what it gives: `shuffle(x)` changes what it is given.
                    given = (one.id.partition(".")[0] for one in stmt.value.args if isinstance(one, m.Name))
                    found.update(given)
                callee = callees.get(stmt.value.start) if callees else None
                if callee is not None:
                    found.update(_filled(stmt.value, callee, found, places, looks))
            for value, targets in _pairs(stmt):
                if not holds(value, places) and found.isdisjoint(elements(value, looks, counting)):
                    continue
                kept = targets
                callee = callees.get(value.start) if callees and isinstance(value, m.Call) else None
                parts = _elements_of(targets)
                if callee is not None and parts:
                    varies = _returned(value, callee, found, places, looks, len(parts))
                    kept = [one for one, derived in zip(parts, varies, strict=True) if derived]
                found.update(
                    one.id.partition(".")[0]
                    for one in nodes(kept)
                    if isinstance(one, m.Name) and one.id != "_"
                )
    return found


def _pairs(stmt: m.Stmt) -> Iterator[tuple[Any, list[Any]]]:
    """What a statement computes, each with what that is stored in: ``a, b = x, y`` are two."""
    value, targets = _parts(stmt)
    if value is None:
        return
    parts = _elements_of(targets)
    if isinstance(value, m.Seq) and len(value.elts) == len(parts) and not _has_star(value.elts):
        yield from ((one, [part]) for one, part in zip(value.elts, parts, strict=True))
        return
    yield value, targets


def _elements_of(targets: list[Any]) -> list[Any]:
    """The targets of ``a, b = ...``."""
    if len(targets) != 1 or not isinstance(targets[0], m.Seq) or _has_star(targets[0].elts):
        return []
    return list(targets[0].elts)


def _has_star(parts: Sequence[Any]) -> bool:
    return any(isinstance(one, m.Star) for one in parts)


def _filled(
    call: m.Call, callee: Callee, found: set[str], places: Sequence[int], looks: Looks
) -> Iterator[str]:
    """The variables that a call hands to a function which puts something derived into them."""
    function = callee.function
    given = given_params(call, callee, found, places, looks)
    if given is None:
        return
    derived = derived_names(function, callee.places, looks, given) - given
    assigned = {
        one.id
        for stmt in statements(function.body)
        for _, targets in _pairs(stmt)
        for target in targets
        for one in ([target] if isinstance(target, m.Name) else _elements_of([target]))
        if isinstance(one, m.Name) and "." not in one.id
    }
    for name, value in _arguments(call, callee):
        if isinstance(value, m.Name) and name in derived - assigned:
            yield value.id.partition(".")[0]


def _returned(
    call: m.Call, callee: Callee, found: set[str], places: Sequence[int], looks: Looks, count: int
) -> list[bool]:
    """Which elements of the tuple that a call gives may be computed from derived variables."""
    function = callee.function
    ends = [one for one in statements(function.body) if isinstance(one, m.Return)]
    given = given_params(call, callee, found, places, looks)
    if given is None or not ends:
        return [True] * count
    if call.start in places and not any(
        function.start <= place < function.end_of_body for place in callee.places
    ):
        # What draws is a part of the module that is called.
        if not callee.bound:
            return [True] * count
        given.add(function.params[0].name)
    # What it reads that is not its own may be a variable of that name.
    derived = derived_names(function, callee.places, looks, given | (found - own_names(function)))
    varies = [False] * count
    for end in ends:
        value = end.value
        if not isinstance(value, m.Seq) or len(value.elts) != count or _has_star(value.elts):
            return [True] * count
        for at, one in enumerate(value.elts):
            varies[at] |= holds(one, callee.places) or not derived.isdisjoint(elements(one, looks))
    return varies


def given_params(
    call: m.Call, callee: Callee, found: set[str], places: Sequence[int], looks: Looks
) -> set[str] | None:
    """The parameters of a function that are given something derived; None where that is not known."""
    if _has_star(call.args) or not all(one.name for one in call.keywords):
        return None
    pairs = _arguments(call, callee)
    if len(pairs) < len(call.args) + len(call.keywords) + callee.bound:
        return None
    return {
        name for name, value in pairs if holds(value, places) or not found.isdisjoint(elements(value, looks))
    }


def _arguments(call: m.Call, callee: Callee) -> list[tuple[str, Any]]:
    """The parameters of a function with what a call gives for them."""
    positional = [one.name for one in callee.function.params if one.kind in "pa"]
    given: list[Any] = [*([call.func] if callee.bound else []), *call.args]
    named = [(one.name, one.value) for one in call.keywords if one.name]
    return [*zip(positional, given, strict=False), *named]


def elements(expr: Any, looks: Looks, counting: Collection[int] = ()) -> Iterator[str]:
    """The variables of whose elements an expression is computed, not only of their form. At the places in ``counting`` start
    calls that look at no element of what they are given."""
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        if only_form(node) or (isinstance(node, m.Call) and node.start in counting):
            continue
        if isinstance(node, m.Comp):
            # `sum(p.numel() for p in model.parameters())`
            given = {x.id for one in node.generators for x in nodes([one.target]) if isinstance(x, m.Name)}
            parts = [node.elt, node.value, *(test for one in node.generators for test in one.ifs)]
            if given.isdisjoint(name for one in parts if one for name in elements(one, looks, counting)):
                stack += [one for one in parts if one is not None]
                continue
        if isinstance(node, m.Call) and (kind := looks(called_name(node))):
            stack += node.args if kind == "method" else [node.func, *node.args[1:]]
            stack += [one.value for one in node.keywords]
            continue
        if isinstance(node, m.Name):
            yield node.id.partition(".")[0]
        stack.extend(children(node))


def _parts(stmt: m.Stmt) -> tuple[Any, list[Any]]:
    """What a statement computes, and what that is stored in."""
    if isinstance(stmt, m.Assign):
        return stmt.value, list(stmt.targets)
    if isinstance(stmt, (m.AnnAssign, m.AugAssign)):
        return stmt.value, [stmt.target]
    if isinstance(stmt, m.For):
        return stmt.iter, [_without_label(stmt.iter, stmt.target)]
    if (
        isinstance(stmt, m.ExprStmt)
        and isinstance(stmt.value, m.Call)
        and isinstance(stmt.value.func, m.Name)
    ):
        # `x.normal_()` fills what it is called on.
        return stmt.value, [stmt.value.func] if "." in stmt.value.func.id else []
    return None, []


def _without_label(iterated: m.Expr, target: m.Expr) -> m.Expr:
    """What a loop goes through, without the number or the name that is given with each: ``for name, parameter in
    model.named_parameters()``."""
    if not isinstance(target, m.Seq) or len(target.elts) != _LABELED or not isinstance(iterated, m.Call):
        return target
    labeled, func = called_name(iterated), iterated.func
    of_state = labeled == "items" and isinstance(func, m.Attr) and isinstance(func.value, m.Call)
    if of_state or labeled == "enumerate" or labeled.startswith("named_"):
        return target.elts[1]
    return target


_LABELED = 2


def holds(expr: Any, places: Sequence[int]) -> bool:
    """Whether an expression is computed from one at these places, not only from its form."""
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        if only_form(node) and not any(isinstance(one, m.Walrus) for one in nodes([node])):
            continue
        if isinstance(node, m.Comp) and _asks_each(node):
            continue
        if getattr(node, "start", -1) in places:
            return True
        stack.extend(children(node))
    return False


def _asks_each(node: m.Comp) -> bool:
    """Whether each element is asked for its form alone: ``p.numel() for p in Net().parameters()``. How long the elements
    of a list are depends on which they are."""
    if node.value is not None or any(one.ifs for one in node.generators) or not only_form(node.elt):
        return False
    return called_name(node.elt) != "len" and not any(isinstance(one, m.Walrus) for one in nodes([node]))


def is_asserted(function: m.Function, place: int) -> bool:
    """Whether a test may look at what is computed from an expression at a place: whether it asserts, or decides by, what
    is computed from it, or what was given to a function together with that, which may have kept it there."""
    known: set[str] = set()
    before = -1
    while len(known) > before:
        before = len(known)
        for stmt in statements(function.body):
            value, targets = _parts(stmt)
            if isinstance(stmt, m.With):
                reads: list[Any] = list(stmt.items)
                targets = list(stmt.items)
            else:
                reads = [value] if value is not None else [stmt.value] if isinstance(stmt, m.ExprStmt) else []
            for call in nodes(reads):
                if isinstance(call, m.Call) and not known.isdisjoint(_names([call])):
                    known |= _names([*call.args, *(one.value for one in call.keywords)])
            if _stands_in(place, reads) or not known.isdisjoint(_names(reads)):
                known |= _names(targets)
    tests = _all_tests(function)
    return _stands_in(place, tests) or not known.isdisjoint(_names(tests))


def asserts(function: m.Function) -> bool:
    """Whether a function, such as that of a test, asserts something."""
    return any(not isinstance(one, (m.If, m.While)) and _tests(one) for one in nodes(function.body))


def _all_tests(function: m.Function) -> list[Any]:
    return [test for one in nodes(function.body) for test in _tests(one)]


def _stands_in(place: int, expressions: Sequence[Any]) -> bool:
    return any(getattr(one, "start", -1) == place for one in nodes(expressions))


def _tests(node: Any) -> list[Any]:
    """What a statement or call asserts, or decides by."""
    if isinstance(node, (m.Assert, m.If, m.While)):
        return [node.test]
    return [node] if isinstance(node, m.Call) and "assert" in called_name(node).lower() else []


def _names(expressions: Sequence[Any]) -> set[str]:
    return {one.id.partition(".")[0] for one in nodes(expressions) if isinstance(one, m.Name)} - {"_"}
