"""What an object of the program carries from one pass over it to the next: attributes that a pass changes, and the next one
reads before it sets them anew."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, children, nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.project.modules import ModuleFile

PASSES = ("__iter__", "__next__")
"""The methods that go through an object."""
_MADE, _STOPS = "__init__", "StopIteration"


def carried(run: RunView, cls: v.Cls, shuffled: Iterable[str]) -> tuple[str, ...]:
    """The attributes of an object that are a state of it, of which ``shuffled`` are known to be shuffled in place. What
    other methods of its class set, or what its constructor can be given to begin with, the program can set."""
    passes = _passes(run, cls, PASSES)
    if not passes:
        return ()
    changed = {*shuffled, *(name for method in passes for name in _changed(method))}
    first = next((one for one in passes if one.fn.name == PASSES[0]), None)
    anew = set(_set_first(cls, first)) if first is not None else set()
    anew.update(_set_last(cls, passes))
    settable = {name for method in _others(cls, passes) for name in _changed(method)}
    settable.update(_begins_with(cls))
    return tuple(sorted((changed & _used(passes)) - anew - settable))


def counted(run: RunView, cls: v.Cls, methods: Iterable[str]) -> tuple[str, ...]:
    """The attributes of an object by which it says when to stop: methods change and test them, and count one of them.
    What others than these methods do more with than set it to what it is at first is saved, or restored, by them."""
    passes = _passes(run, cls, methods)
    direct = [one for one in map(cls.find, methods) if isinstance(one, v.Func)]
    # What one of them sets in any case is set in each round.
    anew = {name for method in direct for name in _set_first(cls, method)}
    changed = {name for method in passes for name in _changed(method)} - anew
    tested = {name for method in passes for name in _tested(method)}
    counts = {name for method in passes for name in _counted(method)}
    if not counts & changed & tested:
        return ()
    handled = {name for method in _others(cls, passes) for name in _handled(method)}
    return tuple(sorted((changed & tested) - handled)) if not counts & handled else ()


def updated_by(run: RunView, cls: v.Cls, methods: Iterable[str]) -> set[str]:
    """The attributes of an object that methods only compute from what they were. What others than these name for more
    than to set it to a value that is written there is saved, or restored, by them."""
    passes = _passes(run, cls, methods)
    updated, other = set[str](), set[str]()
    for method in passes:
        me = _me(method)
        other |= set(_set_first(cls, method))
        for stmt in statements(method.fn.body):
            from_itself = isinstance(stmt, m.AugAssign) or (
                isinstance(stmt, m.Assign)
                and {own(one, me) for one in stmt.targets}
                <= {own(one, me) for one in nodes([stmt.value]) if isinstance(one, m.Name)}
            )
            for one in _targets(stmt):
                plain = isinstance(one, m.Name) and from_itself
                (updated if plain else other).add(own(one, me))
    if not updated - other - {""}:
        return set()
    handled = {name for method in _others(cls, passes) for name in _handled(method)}
    return updated - other - handled - {""}


_TAKES = ("next", "pop", "popleft", "popitem")
"""Functions and methods that take something out of what they are given, or called on."""


def keeps_nothing(run: RunView, cls: v.Cls, name: str) -> bool:
    """Whether a method of the program carries nothing in its object from one call to the next: what it reads there that
    decides something, it has set before, or no method changes it."""
    method = cls.find(name)
    passes = _passes(run, cls, [name]) if isinstance(method, v.Func) else []
    if not isinstance(method, v.Func) or not passes:
        return False
    for one in passes:
        me = _me(one)
        for call in nodes(one.fn.body):
            if not isinstance(call, m.Call):
                continue
            taken = call.args if called_name(call) == _TAKES[0] else [call.func]
            if called_name(call) == "super" or (
                called_name(call) in _TAKES and any(own(part, me) for part in nodes(taken))
            ):
                return False
        # A method of what it keeps may change that.
        dropped = [stmt.value for stmt in statements(one.fn.body) if isinstance(stmt, m.ExprStmt)]
        kept = [own(call.func, me) for call in dropped if isinstance(call, m.Call)]
        if any(attribute and cls.find(attribute) is None for attribute in kept):
            return False
    carried_on = {attribute for one in passes for attribute in _changed(one)} - set(_set_first(cls, method))
    carried_on.update(attribute for one in _others(cls, passes) for attribute in _changed(one))
    return carried_on.isdisjoint(_used(passes))


_SET_WEIGHTS = ("load_state_dict", "copy_", "lerp_", "lerp", "mul_")
"""Methods of models and of their weights that set them."""


def deciding_on_weights(run: RunView, cls: v.Cls, name: str) -> set[str]:
    """The attributes of an object that a method which sets weights only computes from what they were, and tests."""
    passes = list(_called(cls, [name]))
    tested = {one for method in passes for one in _tested(method)}
    if not tested or not any(map(_sets_weights, passes)):
        return set()
    return updated_by(run, cls, [name]) & tested


def _sets_weights(method: v.Func) -> bool:
    return any(
        isinstance(one, m.Call) and called_name(one) in _SET_WEIGHTS for one in nodes(method.fn.body)
    ) or any(
        isinstance(one, m.Name) and one.id.endswith(".data")
        for stmt in statements(method.fn.body)
        for one in _targets(stmt)
    )


def called_methods(cls: v.Cls, names: Iterable[str]) -> list[v.Func]:
    """Methods of a class, and other methods of it that they call."""
    return list(_called(cls, names))


def _passes(run: RunView, cls: v.Cls, names: Iterable[str]) -> list[v.Func]:
    """Methods of a class, and other methods of it that they call. The files of its classes are looked at as wholes then."""
    passes = list(_called(cls, names))
    for one in cls.mro() if passes else ():
        run.whole(one.file)
    return passes


def _others(cls: v.Cls, passes: list[v.Func]) -> list[v.Func]:
    """All other methods of a class, but for its constructor."""
    held = [one for base in cls.mro() for one in base.env.vars.values() if isinstance(one, v.Func)]
    return [one for one in held if one.fn.name != _MADE and all(one.fn is not other.fn for other in passes)]


def _tested(method: v.Func) -> Iterator[str]:
    """The attributes that decide which way a method goes, or that are compared."""
    me = _me(method)
    for one in nodes(method.fn.body):
        parts = (
            [one.test]
            if isinstance(one, (m.If, m.IfExp, m.While))
            else [one]
            if isinstance(one, m.Compare)
            else []
        )
        yield from filter(None, (own(part, me) for part in nodes(parts) if isinstance(part, m.Name)))


def _counted(method: v.Func) -> Iterator[str]:
    """The attributes that a method counts up or down."""
    for stmt in statements(method.fn.body):
        if isinstance(stmt, m.AugAssign) and isinstance(stmt.value, m.Const):
            yield own(stmt.target, _me(method))


def _handled(method: v.Func) -> Iterator[str]:
    """The attributes that a method names for more than to set them to a value that is written there."""
    me = _me(method)
    for stmt in statements(method.fn.body):
        fixed = isinstance(stmt, m.Assign) and isinstance(stmt.value, (m.Const, m.Unary))
        bases = {id(_base(one)) for one in _targets(stmt)} if fixed else set()
        yield from (own(one, me) for one in _parts(stmt) if isinstance(one, m.Name) and id(one) not in bases)


def _called(cls: v.Cls, names: Iterable[str]) -> Iterator[v.Func]:
    """Methods of a class, and other methods of it that they call."""
    stack, seen = list(names), set[str]()
    while stack:
        name = stack.pop(0)
        found = cls.find(name) if name not in seen else None
        seen.add(name)
        if isinstance(found, v.Func) and found.fn.params:
            yield found
            me = _me(found)
            stack += [
                one.func.id.partition(".")[2]
                for one in nodes(found.fn.body)
                if isinstance(one, m.Call)
                and isinstance(one.func, m.Name)
                and one.func.id.startswith(f"{me}.")
            ]


def _me(method: v.Func) -> str:
    """What a method calls its object."""
    return method.fn.params[0].name if method.fn.params else ""


def own(node: Any, me: str) -> str:
    """The attribute of an object that an expression names, or a part of which it is; empty for none."""
    base = _base(node)
    owner, _, rest = base.id.partition(".") if isinstance(base, m.Name) else ("", "", "")
    return rest.partition(".")[0] if owner == me else ""


def _base(node: Any) -> Any:
    """``self.used`` of ``self.used[i]``."""
    while isinstance(node, (m.Subscript, m.Attr)):
        node = node.value
    return node


def _targets(stmt: m.Stmt) -> list[m.Expr]:
    if isinstance(stmt, (m.Assign, m.Delete)):
        return [part for one in stmt.targets for part in (one.elts if isinstance(one, m.Seq) else [one])]
    return [stmt.target] if isinstance(stmt, (m.AugAssign, m.AnnAssign)) else []


def _changed(method: v.Func) -> Iterator[str]:
    """The attributes that a method assigns, or parts of which it does. Those that it sets once, where they are not set
    yet, and iterators, whose position is another question, are none."""
    me = _me(method)
    once = {
        id(part) for one in statements(method.fn.body) if isinstance(one, m.If) for part in _if_unset(one, me)
    }
    for stmt in statements(method.fn.body):
        iterator = isinstance(stmt, m.Assign) and called_name(stmt.value) == "iter"
        if id(stmt) not in once and not iterator:
            yield from filter(None, (own(one, me) for one in _targets(stmt)))


def _if_unset(stmt: m.If, me: str) -> Iterator[m.Stmt]:
    """The statements that set what a test says is not set yet: an attribute, or an item of one, which is then a cache."""
    test = stmt.test
    parts = [one for one in nodes([test]) if isinstance(one, m.Compare)]
    cached = {own(held, me) for one in parts if {"in", "not in"} & set(one.ops) for held in one.comparators}
    asked = test.operand if isinstance(test, m.Unary) else test.left if isinstance(test, m.Compare) else None
    none = any(isinstance(held, m.Const) and held.value is None for one in parts for held in one.comparators)
    unset = own(asked, me) if none or isinstance(test, m.Unary) else ""
    inside = {id(one) for one in statements(stmt.body)}
    for one in statements([stmt]):
        targets = _targets(one)
        whole = unset and id(one) in inside and any(own(target, me) == unset for target in targets)
        if whole or any(
            isinstance(target, m.Subscript) and own(target, me) in cached - {""} for target in targets
        ):
            yield one


def _used(passes: list[v.Func]) -> set[str]:
    """The attributes that decide something in some methods: that they read for more than what nothing else reads."""
    flows = [flow for method in passes for flow in _reads(method)]
    found = {name for name, into in flows if not into}
    while more := {name for name, into in flows if into & found} - found:
        found |= more
    return found


def _reads(method: v.Func) -> Iterator[tuple[str, set[str]]]:
    """The attributes that a method reads, each with those into which what it computes of them goes; none where it goes
    elsewhere."""
    me = _me(method)
    for stmt in statements(method.fn.body):
        if isinstance(stmt, m.ExprStmt) and called_name(stmt.value) == "print":
            continue
        targets = _targets(stmt)
        names = {own(one, me) for one in targets}
        bases = {id(_base(one)) for one in targets}
        for part in _parts(stmt):
            name = own(part, me) if isinstance(part, m.Name) else ""
            if name and id(part) not in bases:
                yield name, set() if "" in names else names


def _parts(stmt: m.Stmt) -> Iterator[Any]:
    """The expressions of a statement, without those of statements in it."""
    inner = {id(one) for one in statements([stmt]) if one is not stmt}
    stack: list[Any] = [stmt]
    while stack:
        one = stack.pop()
        yield one
        stack += [child for child in children(one) if id(child) not in inner]


def _set_first(cls: v.Cls, method: v.Func) -> Iterator[str]:
    """The attributes that a method sets in any case, before it names them."""
    return _set_in(cls, _me(method), method.fn.body, (method.fn,))


def _set_in(cls: v.Cls, me: str, body: list[m.Stmt], seen: tuple[m.Function, ...]) -> Iterator[str]:
    """The same for a block of the methods ``seen``."""
    named = set[str]()
    for stmt in _in_turn(body):
        call = stmt.value if isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call) else None
        if call is not None and isinstance(call.func, m.Name) and call.func.id.startswith(f"{me}."):
            other = cls.find(call.func.id.partition(".")[2])
            if isinstance(other, v.Func) and other.fn not in seen:
                inner = _set_in(cls, _me(other), other.fn.body, (*seen, other.fn))
                yield from (name for name in inner if name not in named)
        if isinstance(stmt, m.If):
            asked = {own(one, me) for one in nodes([stmt.test]) if isinstance(one, m.Name)}
            either = set(_set_in(cls, me, stmt.body, seen)) & set(_set_in(cls, me, stmt.orelse, seen))
            yield from sorted(either - named - asked)
        targets = _targets(stmt) if isinstance(stmt, m.Assign) else []
        plain = {id(one) for one in targets if isinstance(one, m.Name)}
        used = {own(one, me) for one in nodes([stmt]) if isinstance(one, m.Name) and id(one) not in plain}
        for target in targets:
            name = own(target, me) if id(target) in plain else ""
            if name and name not in named | used:
                yield name
        named |= used | {own(one, me) for one in targets}


def _in_turn(body: Iterable[m.Stmt]) -> Iterator[m.Stmt]:
    """The statements of a block, one after another, with those that run in any case in a block of it."""
    for stmt in body:
        if isinstance(stmt, (m.Try, m.With)):
            yield from _in_turn(stmt.body)
        else:
            yield stmt


def _set_last(cls: v.Cls, passes: list[v.Func]) -> Iterator[str]:
    """The attributes that a pass sets, where it ends, to what they are at first."""
    made = cls.find(_MADE)
    first = dict(_constants(made.fn.body, _me(made))) if isinstance(made, v.Func) else {}
    for method in passes:
        me = _me(method)
        ends = [method.fn.body] if method.fn.name == PASSES[0] and method.fn.is_generator else []
        ends += [block for block in blocks_of(method.fn.body) if block and _stops(block[-1])]
        for block in ends:
            for name, value in _constants(block, me):
                if name in first and first[name] == value:
                    yield name


def _constants(body: Iterable[m.Stmt], me: str) -> Iterator[tuple[str, object]]:
    """The attributes that statements of a block set to constants, the last one of each counting."""
    for stmt in body:
        if isinstance(stmt, m.Assign) and isinstance(stmt.value, m.Const):
            yield from ((own(one, me), stmt.value.value) for one in stmt.targets if isinstance(one, m.Name))


def blocks_of(body: list[m.Stmt]) -> Iterator[list[m.Stmt]]:
    """All blocks of a function."""
    yield body
    for stmt in statements(body):
        for name in ("body", "orelse", "final"):
            yield getattr(stmt, name, [])
        for part in getattr(stmt, "handlers", ()):
            yield part.body


def _stops(stmt: m.Stmt) -> bool:
    """Whether a statement ends the pass over an object."""
    raised = stmt.exc if isinstance(stmt, m.Raise) else None
    return called_name(raised) == _STOPS or (isinstance(raised, m.Name) and raised.id == _STOPS)


def _begins_with(cls: v.Cls) -> Iterator[str]:
    """The attributes that a constructor begins with a number which it may be given, and need not be."""
    made = cls.find(_MADE)
    if not isinstance(made, v.Func):
        return
    numbers = {
        one.name
        for one in made.fn.params
        if isinstance(one.default, m.Const) and type(one.default.value) is int
    }
    for stmt in statements(made.fn.body):
        if isinstance(stmt, m.Assign) and isinstance(stmt.value, m.Name) and stmt.value.id in numbers:
            yield from filter(None, (own(one, _me(made)) for one in stmt.targets))


def named_elsewhere(
    run: RunView, file: ModuleFile, cls: tuple[str, int, int], names: tuple[str, ...]
) -> bool:
    """Whether a file names one of some attributes of an object, outside of the class at a place: as what it saves or
    restores."""
    path, start, end = cls
    for function in run.whole(file).functions:
        for one in nodes(function.body):
            if isinstance(one, m.Name):
                owner, _, last = one.id.rpartition(".")
            elif isinstance(one, m.Attr):
                owner, last = "?", one.name
            else:
                continue
            inside = file.path == path and start <= one.start < end
            if last in names and "" != owner != "self" and not inside:
                return True
    return False
