"""Values that a function assigns to a name and that nothing reads: dead stores, by syntax alone.

A variable that another function of the file names, or that the scope declares ``global`` or ``nonlocal``, may be read at
any time, as may all variables of a file that asks for them by text (``locals()``, ``exec``). What a module leaves in its
variables may be read by whoever imports it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from itertools import chain
from typing import Any, NamedTuple

from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import body_that_holds, memo, memoized
from d9mlint.ir.growing import GROWING
from d9mlint.ir.scopes import bound_by, own_names, target_names
from d9mlint.ir.traversal import children, loop_elements, nodes, parents

_BY_TEXT = frozenset({"locals", "globals", "vars", "eval", "exec", "dir"})
"""Functions that reach variables without naming them, where they are called,"""
_OF_GIVEN = frozenset({"vars", "dir"})
"""and those that look at an object instead where they are given one: ``vars(args)``."""
_ANY = "*"
"""Stands, among the names that are read, for all variables."""
ATTRIBUTES_BY_TEXT = frozenset({"getattr", "vars", "__dict__", "__getstate__", "asdict", "pickle"})
"""Names in files that may reach attributes without naming them."""
_PICKLE = "pickle"
_ORDERLESS = frozenset({"len", "sorted", "min", "max", "set", "frozenset"})
"""Functions that give the same for the elements of a sequence in any order."""
_NONE: frozenset[str] = frozenset()
_shared: dict[int, tuple[object, frozenset[str]]] = memo()
_constants: dict[int, tuple[object, Mapping[str, bool]]] = memo()
_decided: dict[tuple[int, frozenset[tuple[str, bool]]], tuple[object, frozenset[int]]] = memo()
_besides: dict[tuple[int, frozenset[int], bool], tuple[m.Function, frozenset[int]]] = memo()


class _Exits(NamedTuple):
    """Variables that are live where ``break``, ``continue``, ``return`` or an exception leads to."""

    end: frozenset[str] = _NONE
    repeat: frozenset[str] = _NONE
    leave: frozenset[str] = _NONE
    raised: frozenset[str] = _NONE


@memoized
def dead_stores(function: m.Function) -> frozenset[int]:
    """Where the assignments of a function, or of a module's body, start whose value it does not read itself."""
    return _found(function)


@memoized
def tests(function: m.Function) -> list[m.Name]:
    """The parameters of a function, and attributes of them, whose truth its branches ask for and that it does not
    assign: ``if self.training:``."""
    return _tested(function)


def _tested(function: m.Function) -> list[m.Name]:
    found = {
        one.id: one
        for branch in nodes(function.body)
        if isinstance(branch, (m.If, m.IfExp)) and (one := asked(branch.test)[0]) is not None
    }
    if not found:
        return []
    given = {one.name for one in function.params} - _declared(function)
    stored: set[str] = set()
    for one in nodes(function.body):
        if isinstance(one, (m.Assign, m.AnnAssign, m.AugAssign, m.For)):
            targets = one.targets if isinstance(one, m.Assign) else [one.target]
            stored.update(x.id for x in nodes(targets) if isinstance(x, m.Name))
        elif isinstance(one, m.Walrus):
            stored.add(one.target)
    return [
        one
        for name, one in found.items()
        if name.partition(".")[0] in given and not any(name == x or name.startswith(f"{x}.") for x in stored)
    ]


def constants(module: m.Function, function: m.Function) -> Mapping[str, bool]:
    """The variables of a function that are always true, or never, where no other function assigns them: it assigns one
    constant to them and nothing else, at the top of its body. With those of the module that it reads."""
    known = _constants.get(id(function))
    if known is None or known[0] is not function:
        found = _assigned_once(function)
        if function is not module and function.parent <= 0:
            of_module, own = _assigned_once(module), own_names(function)
            found = {**{name: truth for name, truth in of_module.items() if name not in own}, **found}
        known = _constants[id(function)] = (function, found)
    return known[1]


def declared_global(facts: m.FileFacts) -> Set[str]:
    """The variables of a file that a function of it declares to be those of an outer one."""
    return {name for one in facts.functions for name in _declared(one)}


def _assigned_once(function: m.Function) -> dict[str, bool]:
    if _ANY in _read_by(function):
        return {}
    times = Counter(param.name for param in function.params)
    for node in nodes(function.body):
        bound: set[str] = set()
        bound_by(node, bound)
        times.update(bound)
    return {
        target.id: bool(one.value.value)
        for one in function.body
        if isinstance(one, m.Assign) and isinstance(one.value, m.Const)
        for target in one.targets
        if isinstance(target, m.Name) and times[target.id] == 1
    }


def is_dead(function: m.Function, stmt: m.Assign | m.AnnAssign, decided: Mapping[str, bool]) -> bool:
    """Whether the function does not read what an assignment of it stores where some names are true or false."""
    key = id(function), frozenset(decided.items())
    known = _decided.get(key)
    if known is None or known[0] is not function:
        known = _decided[key] = (function, _found(function, decided))
    return stmt.start in known[1]


def is_dead_besides(function: m.Function, stmt: m.Assign, passed: Set[int], kept: bool) -> bool:
    """Whether the function does not read what an assignment of it stores, but for some uses, by id. What a module has
    ``kept`` others may read. Memoised while the function lives."""
    key = id(function), frozenset(passed), kept
    known = _besides.get(key)
    if known is None or known[0] is not function:
        known = _besides[key] = (function, _found(function, passed=passed, kept=kept))
    return stmt.start in known[1]


def asked(test: m.Expr, outcome: bool = True) -> tuple[m.Name | None, bool]:
    """The name that a test asks for the truth of, and what that is where the test holds; None for other tests."""
    while isinstance(test, m.Unary) and test.op == "not":
        test, outcome = test.operand, not outcome
    return (test if isinstance(test, m.Name) else None), outcome


def deciding(function: m.Function, node: m.Expr) -> list[tuple[m.Name, bool]]:
    """What decides a test whatever an expression in it gives, with the outcome that does: in ``rand() < p and training``
    that is ``training``, where it is false."""
    above, found = parents(function), []
    child: Any = node
    while (parent := above.get(id(child))) is not None:
        if isinstance(parent, m.BoolOp):
            if parent.left is child:
                name, outcome = asked(parent.right)
                if name is not None:
                    found.append((name, outcome is (parent.op == "or")))
        elif isinstance(parent, m.Call):
            if parent.func is not child:
                break
        elif not isinstance(parent, (m.Attr, m.Subscript, m.Compare, m.Unary)) or (
            isinstance(parent, m.Subscript) and parent.value is not child
        ):
            break
        child = parent
    return found


def stored_names(stmt: m.Assign | m.AnnAssign) -> set[str]:
    """The plain names that an assignment stores in."""
    names: set[str] = set()
    _stored(stmt, names)
    return names


def readers(facts: m.FileFacts, name: str) -> list[int] | None:
    """The functions of a file that name a variable of its module, by index, the module's body only where it does more
    than assign it; None where a variable may be reached without its name, or by a class."""
    for cls in facts.classes:
        if name in _read([*cls.body, *cls.bases, *cls.decorators]):
            return None
    found: list[int] = []
    for index, function in enumerate(facts.functions):
        body = body_that_holds(function, name, *_BY_TEXT)
        named = [
            one
            for one in nodes([*body, *function.decorators])
            if isinstance(one, m.Name) and one.id.partition(".")[0] == name
        ]
        if any(map(_reaches_all, nodes([*body, *function.decorators]))):
            return None
        stores = [
            target
            for one in nodes(body)
            if isinstance(one, m.Assign)
            for target in one.targets
            if isinstance(target, m.Name) and target.id == name
        ]
        tests = sum(text == name for text in _tested_for_elements(body))
        if len(named) > (len(stores) if index == 0 else 0) + tests:
            found.append(index)
    return found


def attribute_readers(
    facts: m.FileFacts, name: str, items: bool = False, of: frozenset[int] | None = None
) -> list[int] | None:
    """The functions of a file that read attributes of a name, by index; None where a class or a text names one. With
    ``items``, to store an item in what an attribute holds is to assign it, and neither to ask what is in it nor to go
    through it without a look at its elements is to read it. With ``of``, attributes of a method's own object count only in
    the classes that begin at these places."""
    if name in facts.words and any(_reads_attribute(cls.body, name, items) for cls in facts.classes):
        return None
    found: list[int] = []
    for index, function in enumerate(facts.functions):
        body = body_that_holds(function, name)
        parts = [*body, *function.decorators, *(x.default for x in function.params if x.default)]
        if any(isinstance(one, m.Const) and one.value == name for one in nodes(parts)):
            return None
        if name in facts.words and _reads_attribute(parts, name, items, _own_object(facts, index, of)):
            found.append(index)
    return found


def _own_object(facts: m.FileFacts, index: int, of: frozenset[int] | None) -> str:
    """What a function calls the object of the method that it is, or is a part of, unless that may be of one of some
    classes, by where these begin; empty otherwise."""
    function = facts.functions[index]
    if of is None:
        return ""
    inner: set[str] = set()
    while function.cls < 0 and function.parent > 0:
        inner |= own_names(function)
        function = facts.functions[function.parent]
    if function.cls < 0 or facts.classes[function.cls].start in of or function.name == "<lambda>":
        return ""
    if any(isinstance(one, m.Name) and one.id == "staticmethod" for one in function.decorators):
        return ""
    own = function.params[0].name if function.params else ""
    return "" if own in inner else own


def may_read_of_module(facts: m.FileFacts, name: str) -> bool:
    """Whether a file may read a variable of another module: it imports the name, or all names, or asks something else than
    its own objects for an attribute of it."""
    if not ATTRIBUTES_BY_TEXT.isdisjoint(facts.words):
        return True
    for function in facts.functions:
        for one in nodes(
            [*function.body, *function.decorators, *(x.default for x in function.params if x.default)]
        ):
            if isinstance(one, m.ImportFrom):
                if any(alias.name in (name, "*") for alias in one.names):
                    return True
            elif isinstance(one, m.Name):
                head, *rest = one.id.split(".")
                if name in rest and head not in ("self", "cls"):
                    return True
            elif isinstance(one, m.Attr) and name in one.name.split("."):
                return True
    return any(
        name in text.split(".")[1:]
        for cls in facts.classes
        for one in nodes([*cls.body, *cls.bases, *cls.decorators])
        if (text := one.id if isinstance(one, m.Name) else f".{one.name}" if isinstance(one, m.Attr) else "")
    )


def reaches_by_text(facts: m.FileFacts) -> bool:
    """Whether a file may reach attributes without naming them: what it imports as a module has to be used."""
    found = ATTRIBUTES_BY_TEXT.intersection(facts.words)
    if found != {_PICKLE}:
        return bool(found)
    return any(
        (isinstance(one, m.Name) and one.id.partition(".")[0] == _PICKLE)
        or (isinstance(one, m.Import) and any(x.name == _PICKLE and x.asname for x in one.names))
        or (isinstance(one, m.ImportFrom) and one.module == _PICKLE)
        for function in facts.functions
        for one in nodes(function.body)
    ) or any(_PICKLE in _read(cls.body) for cls in facts.classes)


def names(function: m.Function, name: str) -> bool:
    """Whether a function uses a name, as a variable, attribute or text."""
    for one in nodes([*body_that_holds(function, name), *function.decorators]):
        if isinstance(one, (m.Name, m.Attr)):
            if name in (one.id if isinstance(one, m.Name) else one.name).split("."):
                return True
        elif isinstance(one, m.Const) and one.value == name:
            return True
    return False


def _reads_attribute(parts: Iterable[Any], name: str, items: bool, besides: str = "") -> bool:
    """Whether some nodes do more with attributes of a name than assign, delete or count them, with ``items`` also than add
    or test for elements. The attribute of what is called ``besides`` is not meant."""
    parts = list(parts)
    named = 0
    asked = chain(_tested_for_elements(parts), _grown(parts), _gone_through(parts)) if items else ()
    own = f"{besides}.{name}"
    stored = sum("." in text and text.rpartition(".")[2] == name and text != own for text in asked)
    for one in nodes(parts):
        if isinstance(one, (m.Name, m.Attr)):
            first, *rest = (one.id if isinstance(one, m.Name) else f".{one.name}").split(".")
            named += name in (rest[1:] if besides and first == besides else rest)
        else:
            for target in _stored_or_counted(one):
                if items and isinstance(target, m.Subscript):
                    target = target.value
                if isinstance(target, (m.Name, m.Attr)):
                    text = target.id if isinstance(target, m.Name) else f".{target.name}"
                    stored += "." in text and text.rpartition(".")[2] == name and text != own
    return named > stored


def _stored_or_counted(node: Any) -> list[m.Expr]:
    """What a statement assigns or deletes, or what a call takes the length of."""
    if isinstance(node, (m.Assign, m.Delete)):
        return node.targets
    if isinstance(node, m.AnnAssign):
        return [node.target]
    counts = isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id == "len"
    return node.args[:1] if counts else []


def _tested_for_elements(parts: Iterable[Any]) -> Iterator[str]:
    """The variables and attributes that some nodes ask what is in them: ``word in self.words``."""
    for one in nodes(parts):
        for op, asked in zip(one.ops, one.comparators, strict=True) if isinstance(one, m.Compare) else ():
            if op in ("in", "not in") and isinstance(asked, (m.Name, m.Attr)):
                yield asked.id if isinstance(asked, m.Name) else f".{asked.name}"


def _grown(parts: Iterable[Any]) -> Iterator[str]:
    """The variables and attributes to which statements add elements: ``self.layers.append(layer)``."""
    for one in nodes(parts):
        if (
            isinstance(one, m.ExprStmt)
            and isinstance(one.value, m.Call)
            and isinstance(one.value.func, m.Name)
        ):
            owner, _, method = one.value.func.id.rpartition(".")
            if owner and method in GROWING:
                yield owner


def _gone_through(parts: list[Any]) -> Iterator[str]:
    """The variables and attributes that loops go through of which they read no element."""
    every = list(nodes(parts))
    pairs = [
        (target.id, over.id if isinstance(over, m.Name) else f".{over.name}")
        for one in every
        if isinstance(one, m.For)
        for target, over in loop_elements(one.target, one.iter)
        if "." not in target.id and isinstance(over, (m.Name, m.Attr))
    ]
    if not pairs or any(isinstance(one, _INNER) or _reaches_all(one) for one in every):
        return
    named = Counter(one.id.partition(".")[0] for one in every if isinstance(one, m.Name))
    targets = Counter(target for target, _ in pairs)
    for target, over in pairs:
        if named[target] == targets[target]:
            yield over


_INNER = (m.FunctionDef, m.ClassDef, m.Lambda, m.ScopeDecl)
"""What may read variables of the function around it, or lets others read them."""


def is_only_tested(facts: m.FileFacts, function: m.Function, name: str) -> bool:
    """Whether a function only assigns one of its variables and asks what is in it."""
    if may_be_shared(facts, function, {name}) or name in _declared(function):
        return False
    if _ANY in _read_by(function):
        return False
    read = [one for one in nodes(function.body) if isinstance(one, m.Name)]
    stores = 0
    for one in nodes(function.body):
        if isinstance(one, m.Assign):
            stores += sum(isinstance(target, m.Name) and target.id == name for target in one.targets)
    tests = sum(text == name for text in _tested_for_elements(function.body))
    return sum(one.id.partition(".")[0] == name for one in read) == stores + tests


def may_be_shared(facts: m.FileFacts, function: m.Function, names: set[str]) -> bool:
    """Whether anything but the function itself may read some of its variables."""
    known = _shared.get(id(function))
    if known is None or known[0] is not function:
        known = _shared[id(function)] = (function, _elsewhere(facts, function))
    return not known[1].isdisjoint(names | {_ANY})


def _elsewhere(facts: m.FileFacts, function: m.Function) -> frozenset[str]:
    """The names that the rest of a file reads, or declares as those of another scope: of a function's variables, what is
    defined in it."""
    is_module = function is facts.functions[0]
    shared = set[str]() if is_module else _read_by(function) & {_ANY}

    def sees(other: m.Function | m.Class) -> bool:
        return other is not function and (is_module or function.start <= other.start < function.end_of_body)

    for other in filter(sees, facts.functions):
        shared |= _read_by(other) - own_names(other)
        shared |= _read([*other.decorators, *(x.default for x in other.params if x.default)])
        shared |= _declared(other)
    for cls in filter(sees, facts.classes):
        shared |= _read([*cls.body, *cls.bases, *cls.decorators, *(x.value for x in cls.keywords)])
    return frozenset(shared)


def declares(function: m.Function, names: set[str]) -> bool:
    """Whether a function declares some names as those of another scope, or may reach variables without naming them."""
    return not _declared(function).isdisjoint(names) or _ANY in _read_by(function)


@memoized
def _declared(function: m.Function) -> frozenset[str]:
    """The names that a function declares as those of another scope; memoised while it lives."""
    scopes = (one.names for one in nodes(function.body) if isinstance(one, m.ScopeDecl))
    return frozenset(chain.from_iterable(scopes))


@memoized
def _read_by(function: m.Function) -> frozenset[str]:
    """All variables that the body of a function names; memoised while it lives."""
    return frozenset(_read(function.body))


def _found(
    function: m.Function,
    decided: Mapping[str, bool] | None = None,
    passed: Set[int] = frozenset(),
    kept: bool = True,
) -> frozenset[int]:
    stored: set[str] = set()
    for node in nodes(function.body):
        if isinstance(node, (m.Assign, m.AnnAssign)):
            _stored(node, stored)
    stored -= _declared(function)
    if not stored or _ANY in _read_by(function):
        return frozenset()
    left = frozenset(stored) if kept and function.name == "<module>" else _NONE
    analysis = _Liveness(frozenset(stored), decided or {}, passed=passed)
    analysis.block(function.body, left, _Exits(leave=left))
    return frozenset(analysis.dead - analysis.live)


def unread_change(function: m.Function, stmt: m.ExprStmt, name: str, kept: bool) -> bool:
    """Whether nothing in a function reads in which order a variable holds its elements after a statement has put them into
    another one, other than that statement itself in a later round. What is ``kept`` others may read behind it."""
    if _ANY in _read_by(function):
        return False
    names = frozenset({name})
    analysis = _Liveness(names, {}, stmt.start)
    left = names if kept else _NONE
    analysis.block(function.body, left, _Exits(leave=left))
    return not analysis.live_after


def _ordered(parts: list[Any]) -> Iterator[Any]:
    """Some nodes and those below them, without what is only counted, sorted or asked for its largest element."""
    stack = list(parts)
    while stack:
        node = stack.pop()
        if isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id in _ORDERLESS:
            if len(node.args) == 1 and not node.keywords and isinstance(node.args[0], m.Name):
                continue
        yield node
        stack += children(node)


def _sorts(call: m.Expr, names: frozenset[str]) -> bool:
    """Whether a call sorts what a variable holds, by all of its elements."""
    if not isinstance(call, m.Call) or call.args or call.keywords or not isinstance(call.func, m.Name):
        return False
    return call.func.id in {f"{name}.sort" for name in names}


class _Liveness:
    """The analysis of one scope, against the direction of the program. A store is dead where it is in ``dead`` and not
    in ``live``: the body of a loop is looked at several times."""

    def __init__(
        self,
        names: frozenset[str],
        decided: Mapping[str, bool],
        changing: int = -1,
        passed: Set[int] = frozenset(),
    ) -> None:
        self.names = names
        self.decided = decided
        # Uses that do not count, by id.
        self.passed = passed
        # Where the statement begins that puts elements into another order, and whether that is read afterwards.
        self.changing = changing
        self.live_after = False
        self.dead: set[int] = set()
        self.live: set[int] = set()

    def block(self, body: list[m.Stmt], live: frozenset[str], exits: _Exits) -> frozenset[str]:
        """What is live before some statements, given what is live after them."""
        for stmt in reversed(body):
            live = self._statement(stmt, live, exits) | exits.raised
        return live

    def _uses(self, parts: Iterable[Any]) -> frozenset[str]:
        parts = list(parts)
        if self.changing >= 0:
            return frozenset(_named(_ordered(parts))) & self.names
        if self.passed:
            parts = [one for one in nodes(parts) if id(one) not in self.passed]
            return frozenset(_named(parts)) & self.names
        read = frozenset(_read(parts)) & self.names
        return read & _named(self._reached(parts)) if read and self.decided else read

    def _outcome(self, test: m.Expr) -> bool | None:
        """Whether a test holds, where that is known."""
        if isinstance(test, m.Const):
            return bool(test.value)
        if isinstance(test, m.BoolOp):
            sides = self._outcome(test.left), self._outcome(test.right)
            decides = test.op == "or"
            return decides if decides in sides else None if None in sides else not decides
        name, outcome = asked(test)
        truth = self.decided.get(name.id) if name is not None else None
        return truth if truth is None else truth is outcome

    def _reached(self, parts: Iterable[Any]) -> list[Any]:
        """What is evaluated of some nodes where tests have known outcomes."""
        closed = [
            one.orelse if holds else one.body
            for one in nodes(parts)
            if isinstance(one, m.IfExp) and (holds := self._outcome(one.test)) is not None
        ]
        never = {id(one) for one in nodes(closed)}
        return [one for one in nodes(parts) if id(one) not in never]

    def _statement(self, stmt: m.Stmt, live: frozenset[str], exits: _Exits) -> frozenset[str]:
        if isinstance(stmt, (m.Assign, m.AnnAssign)):
            return self._assignment(stmt, live)
        if isinstance(stmt, m.If):
            holds = self._outcome(stmt.test)
            if holds is not None:
                return self.block(stmt.body if holds else stmt.orelse, live, exits) | self._uses([stmt.test])
            both = self.block(stmt.body, live, exits) | self.block(stmt.orelse, live, exits)
            return both | self._uses([stmt.test])
        if isinstance(stmt, (m.For, m.While)):
            return self._loop(stmt, live, exits)
        if isinstance(stmt, m.Try):
            return self._try(stmt, live, exits)
        if isinstance(stmt, m.With):
            # A context may pass over an exception.
            inner = self.block(stmt.body, live, exits._replace(raised=exits.raised | live))
            return inner | self._uses([x for item in stmt.items for x in (item.context, item.target) if x])
        if isinstance(stmt, m.Match):
            found = live | self._uses([stmt.subject])
            for case in stmt.cases:
                found |= self.block(case.body, live, exits) | self._uses([case.guard] if case.guard else [])
            return found
        if isinstance(stmt, m.Return):
            return exits.leave | self._uses([stmt.value] if stmt.value is not None else [])
        if isinstance(stmt, m.Raise):
            return exits.raised | exits.leave | self._uses([stmt])
        if isinstance(stmt, m.Jump):
            return exits.end if stmt.kind == "break" else exits.repeat
        if stmt.start == self.changing:
            self.live_after = self.live_after or bool(live | exits.raised)
            return live
        if self.changing >= 0 and isinstance(stmt, m.ExprStmt) and _sorts(stmt.value, self.names):
            return live - self.names
        return live | self._uses([stmt])

    def _assignment(self, stmt: m.Assign | m.AnnAssign, live: frozenset[str]) -> frozenset[str]:
        if stmt.value is None:
            return live
        targets = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
        written: set[str] = set()
        _stored(stmt, written)
        dead = all(map(_is_plain, targets)) and written <= self.names and not written & live
        (self.dead if dead else self.live).add(stmt.start)
        # What stands in an index or before a dot is read.
        others = [one for one in targets if not (isinstance(one, m.Name) and "." not in one.id)]
        names: set[str] = set()
        for one in others:
            target_names(one, names)
        read = self._uses(others) - (names & written)
        return (live - written) | read | self._uses([stmt.value])

    def _loop(self, stmt: m.For | m.While, live: frozenset[str], exits: _Exits) -> frozenset[str]:
        after = self.block(stmt.orelse, live, exits)
        head = after | self._uses([stmt.test] if isinstance(stmt, m.While) else [])
        given: set[str] = set()
        if isinstance(stmt, m.For):
            target_names(stmt.target, given)
        while True:
            inner = exits._replace(end=live, repeat=head)
            found = head | (self.block(stmt.body, head, inner) - given)
            if found == head:
                break
            head = found
        return (
            head
            if isinstance(stmt, m.While)
            else head | self._uses([stmt.iter]) | (self._uses([stmt.target]) - given)
        )

    def _try(self, stmt: m.Try, live: frozenset[str], exits: _Exits) -> frozenset[str]:
        final = self.block(stmt.final, live | exits.raised | exits.leave | exits.end | exits.repeat, exits)
        after = final if stmt.final else live
        if stmt.final:
            exits = _Exits(*(one | final for one in exits))
        handled = exits.raised
        for handler in stmt.handlers:
            handled |= self.block(handler.body, after, exits)
            handled |= self._uses([handler.type] if handler.type is not None else [])
        inner = exits._replace(raised=handled)
        return self.block(stmt.body, self.block(stmt.orelse, after, exits), inner) | handled


def _is_plain(target: m.Expr) -> bool:
    """Whether an assignment to a target stores in variables alone, and in nothing that an object holds."""
    if isinstance(target, m.Seq):
        return all(map(_is_plain, target.elts))
    if isinstance(target, m.Star):
        return _is_plain(target.value)
    return isinstance(target, m.Name) and "." not in target.id


def _stored(stmt: m.Assign | m.AnnAssign, names: set[str]) -> None:
    for target in stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]:
        target_names(target, names)


def _read(parts: Iterable[Any]) -> set[str]:
    """All variables that some nodes name, and those below them, and ``_ANY`` where they may reach others."""
    held = list(nodes(parts))
    found = _named(held)
    if not found.isdisjoint(_BY_TEXT) and any(map(_reaches_all, held)):
        found.add(_ANY)
    return found


def _reaches_all(node: Any) -> bool:
    """Whether a call may reach variables without naming them."""
    if not isinstance(node, m.Call) or not isinstance(node.func, m.Name):
        return False
    # `vars(sys.modules[__name__])` are those of the module.
    given = node.func.id in _OF_GIVEN and node.args and not isinstance(node.args[0], m.Subscript)
    return node.func.id in _BY_TEXT and not given


def _named(parts: Iterable[Any]) -> set[str]:
    """The variables that some nodes name themselves."""
    found: set[str] = set()
    for node in parts:
        if isinstance(node, m.Name):
            found.add(node.id.partition(".")[0])
        elif isinstance(node, m.Walrus):
            found.add(node.target)
    return found


def gives(value: Any, node: Any) -> bool:
    """Whether what an expression gives is made from a node of it, and nothing else receives that: by operators, in
    displays and comprehensions, and by methods of it (``torch.randn(3).cuda()``)."""
    if value is node:
        return True
    if isinstance(value, m.Call):
        return isinstance(value.func, m.Attr) and gives(value.func.value, node)
    if isinstance(value, (m.Attr, m.Subscript, m.Star)):
        return gives(value.value, node)
    if isinstance(value, m.BinOp):
        return gives(value.left, node) or gives(value.right, node)
    if isinstance(value, m.Unary):
        return gives(value.operand, node)
    if isinstance(value, m.IfExp):
        return gives(value.body, node) or gives(value.orelse, node)
    if isinstance(value, m.Seq):
        return any(gives(one, node) for one in value.elts)
    if isinstance(value, m.Dict):
        return any(gives(one, node) for one in value.values)
    if isinstance(value, m.Comp):
        return gives(value.elt, node) or (value.value is not None and gives(value.value, node))
    return False
