"""Tests of ``if`` statements: what they decide, by which option, and what holds inside their branches."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from d9mlint.interp import dimension_tests, known_texts
from d9mlint.interp import values as v
from d9mlint.interp.accepting import are_keywords
from d9mlint.interp.device_names import either_given
from d9mlint.interp.drawn_fractions import only_outcome
from d9mlint.interp.dtype_tests import never_of_type
from d9mlint.interp.emptiness import RANGES, is_empty
from d9mlint.interp.events import LookedAtEvent, OutcomeEvent
from d9mlint.interp.kinds import has_weight, instance_of, same_class
from d9mlint.interp.known_attributes import has
from d9mlint.interp.library.options import NAMESPACE, OTHER_THAN, holds_option
from d9mlint.interp.library_modules import is_module, makes_module
from d9mlint.interp.missing_items import is_there, may_be_missing
from d9mlint.interp.option_keys import has_no_choice
from d9mlint.interp.order_identifiers import chosen
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_in, assigned_names, changes_only_if, only_tested
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.frames import Aside
    from d9mlint.interp.interpreter import Interp


R = TypeVar("R")
Place = m.Name | m.Subscript
"""What a test can say something about: a name, a dotted name, an item."""


_PLAIN = frozenset({"object", "abc.ABC", "torch.nn.Module"})
"""Classes of libraries without a length or truth."""


class Outcome(NamedTuple):
    """``answer`` True, False or None for unknown; ``option`` names the option whose default decided it."""

    answer: bool | None
    option: str = ""


def condition(interp: Interp, node: m.Expr) -> Outcome:
    """What a test gives."""
    if isinstance(node, m.Unary) and node.op == "not":
        inner = condition(interp, node.operand)
        return Outcome(None if inner.answer is None else not inner.answer, inner.option)
    if isinstance(node, m.BoolOp):
        left = condition(interp, node.left)
        decisive = node.op == "or"
        if left.answer is decisive and not left.option:
            return left
        right = (
            condition(interp, node.right)
            if left.answer is not None
            else narrowed(interp, node.left, not decisive, lambda: condition(interp, node.right))
        )
        if right.answer is decisive and not right.option:
            return right
        if left.answer is decisive:
            return left
        if right.answer is decisive:
            return right
        if left.answer is None or right.answer is None:
            return Outcome(None)
        if left.option and right.option:
            return Outcome(not decisive, either_given(left.option, right.option))
        return Outcome(not decisive, left.option or right.option)
    if isinstance(node, m.Compare):
        return compared(interp, node)[0]
    value = interp.eval(node)
    if interp.orders.any:
        chosen(interp.orders, value)
    return Outcome(truth(interp, value), v.option_of(value))


def truth(interp: Interp, value: v.Value) -> bool | None:
    """Whether a value counts as true, or None for unknown. An object is true unless its class says otherwise: those of
    the project are known, and generators, losses and optimizers of libraries are plain objects."""
    if isinstance(value, v.AnyOf):
        answers = {truth(interp, one) for one in value.values}
        return answers.pop() if len(answers) == 1 else None
    if isinstance(value, v.Items) and value.kind == "l" and not value.elts and value.birth < interp.repeating:
        # An earlier round of the loop may have filled it.
        return None
    known = v.truth(value)
    if known is not None:
        return known
    if isinstance(value, v.Ext):
        return False if interp.kb.role(value.name, "false-in-programs") is not None else None
    if isinstance(value, v.Inst):
        own = all(base in _PLAIN for base in value.cls.external_bases())
        return True if own and not any(value.cls.find(name) for name in ("__bool__", "__len__")) else None
    if isinstance(value, v.Obj):
        if value.api in RANGES and is_empty(interp, value):
            return False
        is_class = value.api.rpartition(".")[2][:1].isupper()
        plain = is_class and interp.kb.role(value.api, "plain-object") is not None
        plain = plain or (value.something and interp.kb.role(value.api, "gives-in-workers") is not None)
        return plain or any(entry.kind == "generator" for entry in interp.kb.rng(value.api)) or None
    return None


def is_for_types(interp: Interp, test: m.Expr) -> bool:
    """Whether a test is for what tells a type checker from the program: ``if TYPE_CHECKING``."""
    if not isinstance(test, m.Name):
        return False
    value = interp.eval(test)
    return isinstance(value, v.Ext) and truth(interp, value) is False


def compared(interp: Interp, node: m.Compare) -> tuple[Outcome, list[v.Value]]:
    """What a comparison gives, and the values that are compared."""
    values = [interp.eval(node.left), *(interp.eval(c) for c in node.comparators)]
    if any(isinstance(value, v.Obj) for value in values):
        drawn = only_outcome(interp, node, *values) if len(values) == _PAIR else None
        if drawn is None or drawn.option:
            interp.listeners.tell(LookedAtEvent(values))
        else:
            interp.listeners.tell(OutcomeEvent(drawn.drawn))
        if drawn is not None:
            return Outcome(drawn.answer, drawn.option), values
    if interp.orders.any:
        interp.orders.compared(interp, node, values[0], values[1:])
    if len(node.ops) == 1 and node.ops[0] in ("in", "not in"):
        held = _in_namespace(*values)
        if held is not None:
            return Outcome(held.value == (node.ops[0] == "in"), held.option), values
        if _lacks(interp, node, *values) or _stays_empty(interp, node, values[1]):
            return Outcome(node.ops[0] == "not in"), values
    op = node.ops[0]
    dimensions = dimension_tests.outcome(op, *values) if len(node.ops) == 1 else None
    if dimensions is not None:
        return Outcome(dimensions), values
    if len(node.ops) == 1 and op in _WHERE_UNEQUAL:
        if _never_equal(interp, op, *values) or never_of_type(op, *values):
            return Outcome(_WHERE_UNEQUAL[op]), values
        if isinstance(values[0], v.Member) and v.is_none(values[1]):
            layer, name = values[0].owner, values[0].name
            if has_weight(interp, layer, name):
                return Outcome(_WHERE_UNEQUAL[op]), values
        same = _is_class(interp, op, *values)
        if same is not None:
            return Outcome(same != _WHERE_UNEQUAL[op]), values
    if node.ops[0] in ("==", "!=") and len(node.ops) == 1 and isinstance(node.left, m.BinOp):
        # `epoch + 1 % 5 == 0`, where `(epoch + 1) % 5` was meant.
        number, least = values[1], _least(interp, node.left)
        if (
            least is not None
            and isinstance(number, v.Lit)
            and type(number.value) is int
            and not number.option
        ):
            if number.value < least:
                return Outcome(node.ops[0] == "!="), values
    return _compare(node, values), values


_PAIR = 2
_WHERE_UNEQUAL = {"==": False, "!=": True, "is": False, "is not": True, "in": False, "not in": True}
"""What comparisons give where no value equals the other."""


def _never_equal(interp: Interp, op: str, left: v.Value, right: v.Value) -> bool:
    """Whether one of two values is a text, or the second a collection of texts, and the other equals no text."""
    if op not in ("in", "not in"):
        if isinstance(left, v.Lit):
            left, right = right, left
        texts = [right]
    else:
        texts = right.elts if isinstance(right, v.Items) and not right.open else [v.UNKNOWN]
    if not all(isinstance(one, v.Lit) and isinstance(one.value, str) for one in texts):
        return False
    if isinstance(left, v.Inst):
        # What other libraries' classes compare is not known.
        modules = (makes_module(interp, base) for base in left.cls.external_bases())
        return left.cls.find("__eq__") is None and all(modules)
    return isinstance(left, v.Obj) and (
        is_module(interp, left) or interp.kb.role(left.api, "equals-no-text") is not None
    )


def _is_class(interp: Interp, op: str, left: v.Value, right: v.Value) -> bool | None:
    """Whether a value is a class, or one of several; None where that is not known."""
    if not isinstance(left, (v.Ext, v.Cls)):
        return None
    if op not in ("in", "not in"):
        return same_class(interp, left, right)
    if not isinstance(right, v.Items) or right.open or not right.elts:
        return None
    answers = {same_class(interp, left, one) for one in right.elts}
    return True if True in answers else None if None in answers else False


def stays(interp: Interp, stmt: m.For | m.While, name: str, known: v.Value) -> bool:
    """Whether a loop never changes a number: it assigns that only inside of branches whose tests are false, or multiplies
    zero."""
    if not isinstance(known, v.Lit) or type(known.value) not in (int, float):
        return False
    tests = changes_only_if(stmt).get(name)
    if tests and all(_is_false(interp, stmt, known, test) for test in tests):
        return True
    zero = known.value == 0 and not known.option
    assigned = list(assigned_in([stmt], name))
    if any(isinstance(one, m.Walrus) and one.target == name for one in (nodes([stmt]) if assigned else ())):
        return False
    return bool(assigned) and all(
        (zero and _multiplies(one, name)) or any(_is_never(interp, stmt, *asked) for asked in tests)
        for one, tests in assigned
    )


def _multiplies(stmt: m.Stmt, name: str) -> bool:
    """Whether a statement multiplies a number: ``epsilon *= decay``, ``epsilon = epsilon * decay``."""
    if isinstance(stmt, m.AugAssign):
        return stmt.op in ("*", "/") and isinstance(stmt.target, m.Name)
    value = (
        stmt.value
        if isinstance(stmt, m.Assign) and all(isinstance(one, m.Name) for one in stmt.targets)
        else None
    )
    if not isinstance(value, m.BinOp) or value.op not in ("*", "/"):
        return False
    factors = [value.left, value.right] if value.op == "*" else [value.left]
    return any(isinstance(one, m.Name) and one.id == name for one in factors)


def _is_never(interp: Interp, stmt: m.For | m.While, asked: m.Name, wanted: bool) -> bool:
    """Whether a variable that a loop does not change is never what a test asks."""
    if "." in asked.id or asked.id in assigned_names(stmt):
        return False
    value = interp.lookup(asked.id)
    answer = v.truth(value) if isinstance(value, v.Lit) and not value.option else None
    return answer is (not wanted)


def _is_false(interp: Interp, stmt: m.For | m.While, known: v.Lit, test: m.Compare) -> bool:
    limit = test.comparators[0]
    if not isinstance(limit, m.Const) and (not isinstance(limit, m.Name) or limit.id in assigned_names(stmt)):
        return False
    outcome = _pair(test.ops[0], known, interp.eval(limit))
    return outcome.answer is False and not outcome.option


def _least(interp: Interp, node: m.Expr) -> int | None:
    """The least that an expression gives which adds numbers to one that a running loop counts up."""
    if isinstance(node, m.BinOp) and node.op == "+":
        left = _least(interp, node.left)
        right = _least(interp, node.right) if left is not None else None
        return None if left is None or right is None else left + right
    if isinstance(node, m.Name) and "." not in node.id:
        return _counted_from(interp, node.id)
    known = interp.eval(node)
    return known.value if isinstance(known, v.Lit) and type(known.value) is int and not known.option else None


def _counted_from(interp: Interp, name: str) -> int | None:
    """The first number of a range that a running loop of the function goes through with a variable, which nothing else
    in the loop assigns."""
    for loop in reversed(interp.loops):
        stmt = loop.stmt
        if loop.frame is not interp.frame or not isinstance(stmt, m.For):
            continue
        if isinstance(stmt.target, m.Name) and stmt.target.id == name:
            over = loop.over
            if (
                not isinstance(over, v.Obj)
                or over.api not in RANGES
                or over.args.star
                or name in assigned_names(stmt)
            ):
                return None
            bounds = over.args.pos
            first = bounds[0] if len(bounds) == _WITH_FIRST else v.Lit(0) if len(bounds) == 1 else v.UNKNOWN
            number = first.value if isinstance(first, v.Lit) and not first.option else None
            return number if type(number) is int else None
    return None


_WITH_FIRST = 2


def _in_namespace(key: v.Value, held: v.Value) -> v.Lit | None:
    """Whether an option is in a namespace that holds some of them only if they are given, or an item in a dictionary to
    which an option adds it."""
    if not isinstance(key, v.Lit):
        return None
    if isinstance(held, v.Obj) and held.type == NAMESPACE:
        found = holds_option(held, key.value)
        return found if found.option else None
    if isinstance(held, v.Mapping) and not isinstance(key.value, (list, dict)) and key.value in held.items:
        there = is_there(held.items[key.value])
        return there if isinstance(there, v.Lit) and there.option else None
    return None


def _lacks(interp: Interp, node: m.Compare, key: v.Value, held: v.Value) -> bool:
    """Whether a dictionary of known items lacks a key that the code names, or a collection whatever an option may choose.
    An earlier round of a loop may have added it, and so may have done whoever fills one that began empty, other than that of
    the keyword arguments of a function."""
    if isinstance(held, v.Mapping | v.Items) and held.birth >= interp.repeating and has_no_choice(held, key):
        return True
    return (
        isinstance(held, v.Mapping)
        and not held.open
        and (bool(held.items) or are_keywords(interp, node.comparators[0], held))
        and held.birth >= interp.repeating
        and all(isinstance(one, str) for one in held.items)
        and isinstance(node.left, m.Const)
        and isinstance(key, v.Lit)
        and key.value not in held.items
    )


def _stays_empty(interp: Interp, node: m.Compare, held: v.Value) -> bool:
    """Whether a collection began empty, and nobody in the file that asks what it holds adds anything."""
    asked = node.comparators[0]
    return (
        isinstance(held, v.Items)
        and not held.elts
        and not held.open
        and isinstance(asked, m.Name)
        and only_tested(interp.whole(interp.frame.file), asked.id.rpartition(".")[2])
    )


def _compare(node: m.Compare, values: list[v.Value]) -> Outcome:
    """What a comparison gives; a chain is as true as all of its parts."""
    parts = [_pair(op, *values[at : at + 2]) for at, op in enumerate(node.ops)]
    if len(parts) == 1:
        return parts[0]
    for decided in (False, None, True):
        found = [part for part in parts if part.answer is decided]
        if found:
            options = [part.option for part in found]
            # Of several parts that are false, one that no option decides is enough.
            return Outcome(decided, min(options) if decided is False else max(options))
    return Outcome(None)


def _pair(op: str, left: v.Value, right: v.Value) -> Outcome:
    if isinstance(left, v.AnyOf) or isinstance(right, v.AnyOf):
        each = _of_each(op, left, right) if op in _WHERE_UNEQUAL else None
        if each is not None:
            return Outcome(each)
    option = v.option_of(left) or v.option_of(right)
    if op in ("is", "is not", "==", "!=") and isinstance(right, v.Lit) and right.value is None:
        none = v.is_none(left)
        if isinstance(left, v.Lit) and left.never_none:
            option = right.option
        return Outcome(None if none is None else none == (op in ("is", "==")), option)
    identical = _identical(left, right) if op in ("is", "is not", "==", "!=") else None
    if identical is not None:
        return Outcome(identical == (op in ("is", "==")), option)
    if op in ("is", "is not", "==", "!=") and (
        _is_no_collection(left, right) or _is_no_collection(right, left)
    ):
        return Outcome(op in ("is not", "!="))
    if op in ("in", "not in"):
        found = _contains(left, right)
        return Outcome(None if found is None else found == (op == "in"), option)
    if op in ("==", "!=") and isinstance(right, v.Lit) and not v.may_be(left, right.value):
        return Outcome(op == "!=", option)
    if isinstance(left, v.Lit) and isinstance(right, v.Lit):
        return Outcome(_literals(op, left.value, right.value), option)
    return Outcome(None)


def _of_each(op: str, left: v.Value, right: v.Value) -> bool | None:
    """What a comparison gives where one of its values, or both, is one of several texts that the program names, as far
    as it gives the same for each."""
    answer: bool | None = None
    for one, other in itertools.product(v.alternatives(left), v.alternatives(right)):
        found = _pair(op, one, other).answer if _is_named(one) and _is_named(other) else None
        if found is None or answer not in (None, found):
            return None
        answer = found
    return answer


def _is_named(value: v.Value) -> bool:
    """Whether a value is a text that no option chooses, or a sequence of such texts."""
    if isinstance(value, v.Items):
        return not value.open and all(map(_is_named, value.elts))
    return isinstance(value, v.Lit) and not value.option and isinstance(value.value, str)


def _identical(left: v.Value, right: v.Value) -> bool | None:
    """Whether one of two values is the other, where one is an object that only says that there is no value."""
    found = [
        one.value.stands_for if isinstance(one, v.Lit) and isinstance(one.value, v.Sentinel) else one
        for one in (left, right)
    ]
    if found == [left, right] and not any(isinstance(one, v.Obj) and one.api == v.OBJECT for one in found):
        return None
    if v.same(*found):
        return True
    return False if any(isinstance(one, v.Lit) for one in found) else None


def _is_no_collection(one: v.Value, other: v.Value) -> bool:
    """Whether the first of two values is a number, a text or a truth value, and the second a tuple, list or set: these are
    never equal. What an option gives may be either."""
    return (
        isinstance(other, v.Items)
        and isinstance(one, v.Lit)
        and not one.option
        and isinstance(one.value, (bool, int, float, str))
    )


def _contains(left: v.Value, right: v.Value) -> bool | None:
    if isinstance(left, v.Obj) and left.api == v.TEXT:
        held = list(known_texts.each(right)) if isinstance(right, (v.Items, v.Lit)) else [None]
        known = isinstance(right, v.Items) and not right.open
        return False if known and not any(one is None or v.may_be(left, one) for one in held) else None
    if not isinstance(left, v.Lit):
        return None
    if isinstance(right, v.Obj) and right.api == v.TEXT and isinstance(left.value, str):
        return known_texts.has_in(right, left.value)
    if isinstance(right, v.Items) and not right.open and all(isinstance(e, v.Lit) for e in right.elts):
        return any(isinstance(e, v.Lit) and e.value == left.value for e in right.elts)
    if isinstance(right, v.Mapping) and left.value in right.items:
        return None if may_be_missing(right.items[left.value]) else True
    if isinstance(right, v.Lit) and isinstance(right.value, str) and isinstance(left.value, str):
        return left.value in right.value
    return None


def _literals(op: str, left: Any, right: Any) -> bool | None:
    try:
        if op in ("==", "is"):
            return bool(left == right)
        if op in ("!=", "is not"):
            return bool(left != right)
        if op == "<":
            return bool(left < right)
        if op == "<=":
            return bool(left <= right)
        if op == ">":
            return bool(left > right)
        if op == ">=":
            return bool(left >= right)
    except TypeError:
        return None
    return None


def narrowed(interp: Interp, test: m.Expr, outcome: bool, run: Callable[[], R]) -> R:
    """Run something while names tested by ``test`` have values that agree with its ``outcome``."""
    undo: list[tuple[dict[Any, v.Value], str, v.Value | None, v.Value]] = []
    for name, value in _implied(interp, test, outcome):
        _put(interp, name, value, undo)
    result = run()
    for one in reversed(undo):
        _put_back(*one)
    return result


def _put(
    interp: Interp,
    name: Place,
    value: v.Value,
    undo: list[tuple[dict[Any, v.Value], str, v.Value | None, v.Value]],
) -> None:
    """Let what a test reads have a value. ``undo`` gets where it was put, with what stood there."""
    scope = _scope_of(interp, name) or _scope_to_be(interp, name, undo)
    if scope is not None:
        into, key, old = scope
        into[key] = value
        undo.append((into, key, old, value))


def _put_back(into: dict[Any, v.Value], key: str, old: v.Value | None, value: v.Value) -> None:
    """What a test has said holds no longer, unless something else has been written there: ``if x is None: x = 1`` gives an
    option that has no value a default."""
    now = into.get(key)
    if now is not value:
        if isinstance(now, v.Lit) and _is_default(now, old, value):
            into[key] = v.Lit(now.value, v.option_of(old or v.NONE))
        return
    if old is not None:
        into[key] = old
    elif not isinstance(value, v.Mapping) or not value.items:
        del into[key]


def _is_default(now: v.Lit, old: v.Value | None, value: v.Value) -> bool:
    """Whether a number or a text has been written where an option had none."""
    known = not now.option and now.value is not None and type(now.value) is not bool
    left_out = isinstance(old, v.Lit) and old.value is None and bool(old.option)
    return known and left_out and v.is_none(value) is True


def _scope_to_be(
    interp: Interp, name: Place, undo: list[tuple[dict[Any, v.Value], str, v.Value | None, v.Value]]
) -> tuple[dict[Any, v.Value], str, None] | None:
    """Where an attribute would stand of which nothing is known, of a configuration or an instance, or of what it has
    in an attribute of which nothing is known either: that is a configuration, too."""
    if not isinstance(name, m.Name) or "." not in name.id:
        return None
    first, *between, key = name.id.split(".")
    owner = interp.lookup(first)
    for part in between:
        into = _attributes(interp, owner, part)
        if into is None:
            owner = None if owner is None else interp.attribute(owner, part)
        else:
            owner = into[part] = v.Mapping({}, open=True, attributes=True)
            undo.append((into, part, None, owner))
    into = _attributes(interp, owner, key)
    return None if into is None else (into, key, None)


def _attributes(interp: Interp, owner: v.Value | None, name: str) -> dict[Any, v.Value] | None:
    """The attributes of a configuration or an instance, of which nothing says what this one is."""
    if isinstance(owner, v.Inst) or (isinstance(owner, v.Obj) and owner.type == NAMESPACE):
        into = owner.attrs
    elif isinstance(owner, v.Mapping) and owner.attributes:
        into = owner.items
    else:
        return None
    found = interp.attribute(owner, name)
    return into if isinstance(found, v.Member) and found.owner is owner else None


def asks_for_set(test: m.Expr) -> bool:
    """Whether a test is ``isinstance(x, set)``, also for several types of sets."""
    if not isinstance(test, m.Call) or not isinstance(test.func, m.Name) or len(test.args) != 2:
        return False
    kinds = test.args[1].elts if isinstance(test.args[1], m.Seq) else [test.args[1]]
    named = {kind.id.rpartition(".")[2] for kind in kinds if isinstance(kind, m.Name)}
    return (
        test.func.id == "isinstance" and bool(named) and named <= {"set", "frozenset", "Set", "AbstractSet"}
    )


def narrow(interp: Interp, test: m.Expr, outcome: bool, stops: bool = False) -> None:
    """From here on: plain names of the running scope have values that agree with the ``outcome`` of ``test``. Where the
    program ``stops`` otherwise, so have options, wherever they are read."""
    everywhere = stops and not interp.branching and interp.state.usual
    settled = _settled(interp, test, outcome) if everywhere else []
    for name, value in _implied(interp, test, outcome):
        if isinstance(name, m.Name) and name.id in interp.frame.env.vars:
            interp.frame.env.vars[name.id] = value
    known = _implied(interp, test, outcome, by_default=True) if everywhere else []
    for name, value in [*known, *settled]:
        _set_option(interp, name, value)


def _set_option(interp: Interp, name: Place, value: v.Value) -> None:
    scope = _scope_of(interp, name)
    if scope is not None:
        scope[0][scope[1]] = value


def narrow_aside(interp: Interp, test: m.Expr, outcome: bool, aside: Aside) -> None:
    """Until a path ends on which an option has been given: what is no variable of the running scope has values, too, that
    agree with the ``outcome`` of ``test``."""
    for name, value in _implied(interp, test, outcome):
        if isinstance(name, m.Name) and name.id in interp.frame.env.vars:
            continue
        _put(interp, name, value, aside.narrowed)


def widen(aside: Aside) -> None:
    """A path has ended on which an option has been given."""
    for one in reversed(aside.narrowed):
        _put_back(*one)


def _settled(interp: Interp, test: m.Expr, outcome: bool) -> list[tuple[Place, v.Value]]:
    """The options of which a test leaves one value, with that value, which is no default any more: whoever gives
    another one stops the program."""
    if isinstance(test, m.Unary) and test.op == "not":
        return _settled(interp, test.operand, not outcome)
    if isinstance(test, m.BoolOp):
        if (test.op == "and") == outcome:
            return _settled(interp, test.left, outcome) + _settled(interp, test.right, outcome)
        return []
    compared = test.left if isinstance(test, m.Compare) and len(test.ops) == 1 else test
    if not isinstance(compared, m.Name | m.Subscript):
        return []
    known = interp.eval(compared)
    if not isinstance(known, v.Lit) or not known.option:
        return []
    values: list[v.Value] = []
    if isinstance(test, m.Compare):
        values = _left(test.ops[0], known.value, interp.eval(test.comparators[0]), outcome)
    elif type(known.value) is bool:
        values = [v.Lit(outcome)]
    elif not outcome and (not known.value or type(known.value) is int):
        values = [v.Lit(known.value and 0)]
    only = values[0] if len(values) == 1 else None
    return [(compared, v.Lit(only.value))] if isinstance(only, v.Lit) else []


def _left(op: str, known: Any, other: v.Value, outcome: bool) -> list[v.Value]:
    """The values that a comparison leaves of an option that has ``known`` by default, if that is known."""
    if isinstance(other, v.Lit) and _EQUAL.get(op) is outcome:
        return [other]
    if isinstance(other, v.Items) and _AMONG.get(op) is outcome and not other.open:
        return other.elts
    # No count is negative.
    count = type(known) is int and known >= 0
    if count and isinstance(other, v.Lit) and _NOT_POSITIVE.get((op, other.value)) is outcome:
        return [v.Lit(0)]
    return []


_EQUAL = {"==": True, "is": True, "!=": False, "is not": False}
_AMONG = {"in": True, "not in": False}
_NOT_POSITIVE = {(">", 0): False, ("<=", 0): True, (">=", 1): False, ("<", 1): True}


def _implied(
    interp: Interp, test: m.Expr, outcome: bool, by_default: bool = False
) -> list[tuple[Place, v.Value]]:
    """What an outcome of a test says of what it reads; with ``by_default``, only of options of which it says that they have
    another value than by default."""
    if isinstance(test, m.Unary) and test.op == "not":
        return _implied(interp, test.operand, not outcome, by_default)
    if isinstance(test, m.BoolOp):
        if (test.op == "and") == outcome:
            first = _implied(interp, test.left, outcome, by_default)
            return first + _implied(interp, test.right, outcome, by_default)
        return []
    read = _place(test)
    if by_default:
        place = read if read is not None else _place(test.left) if isinstance(test, m.Compare) else None
        known = interp.eval(place) if place is not None else v.UNKNOWN
        if not isinstance(known, v.Lit) or not known.option:
            return []
        if isinstance(test, m.Compare):
            values = [known, *(interp.eval(one) for one in test.comparators)]
            if _compare(test, values).answer is not (not outcome):
                return []
    if read is not None:
        return _narrow_truth(interp, read, outcome)
    single = _of_one(test, outcome)
    if single is not None:
        return _narrow_to_one(interp, single)
    left = _place(test.left) if isinstance(test, m.Compare) and len(test.ops) == 1 else None
    if isinstance(test, m.Compare) and left is not None:
        known = interp.eval(left)
        other = interp.eval(test.comparators[0])
        equal = (
            (test.ops[0] in ("==", "is")) == outcome if test.ops[0] in ("==", "is", "!=", "is not") else None
        )
        if isinstance(other, v.Lit) and equal is not None:
            return _narrow_equal(left, known, other, equal)
        if equal is None and isinstance(known, v.Lit) and known.option:
            # Of a default that has this outcome too, nothing new is said.
            usual = _compare(test, [known, other]).answer is outcome
            return [] if usual else [(left, _other_than(known))]
    return _narrow_attribute(interp, test, outcome) if isinstance(test, m.Call) else []


_ASKED = ("object", "name")
"""What ``hasattr`` is called with, and ``isinstance`` with a class for the name."""
_ASKING = ("hasattr", "isinstance")


def _narrow_attribute(interp: Interp, test: m.Call, outcome: bool) -> list[tuple[Place, v.Value]]:
    """What ``hasattr(x, "name")`` says of a name that stands for one of several objects of the project, and
    ``isinstance(x, kind)`` of one that stands for one of several values, or for an unknown one."""
    if not isinstance(test.func, m.Name) or test.func.id not in _ASKING or len(test.args) != len(_ASKED):
        return []
    place, name = test.args
    if not isinstance(place, m.Name):
        return []
    known = interp.eval(place)
    unsure = known is v.UNKNOWN or (isinstance(known, v.Obj) and known.likely)
    if unsure and outcome and test.func.id == "isinstance":
        return _of_class(interp, place, interp.eval(name))
    if not isinstance(known, v.AnyOf) or known.option:
        return []
    if test.func.id == "isinstance":
        return _narrow_kind(interp, place, known, interp.eval(name), outcome)
    if not isinstance(name, m.Const) or not isinstance(name.value, str):
        return []
    other = not outcome
    kept = [
        one
        for one in known.values
        if not isinstance(one, v.Inst) or has(interp, one, name.value) is not other
    ]
    return [(place, v.join(kept))] if kept and len(kept) < len(known.values) else []


def _of_class(interp: Interp, place: m.Name, cls: v.Value) -> list[tuple[Place, v.Value]]:
    """What is known of a value of which nothing was known but that it is of a class which decides what ops do."""
    name = interp.kb.canonical(cls.name) if isinstance(cls, v.Ext) else ""
    return [(place, v.Obj(name))] if interp.kb.role(name, "tested-class") is not None else []


def _narrow_kind(
    interp: Interp, place: m.Name, known: v.AnyOf, kind: v.Value, outcome: bool
) -> list[tuple[Place, v.Value]]:
    other = not outcome
    kept = [one for one in known.values if instance_of(interp, one, kind) is not other]
    return [(place, v.join(kept))] if kept and len(kept) < len(known.values) else []


_ONE_AT_MOST = {
    ("==", 1): True,
    ("<=", 1): True,
    ("<", 2): True,
    ("!=", 1): False,
    (">", 1): False,
    (">=", 2): False,
}
"""Comparisons of a number of elements, with the outcome that leaves one at most."""


def _of_one(test: m.Expr, outcome: bool) -> m.Name | None:
    """The name of a collection of which a test of its length says that it has one element at most."""
    if not isinstance(test, m.Compare) or len(test.ops) != 1 or not isinstance(test.left, m.Call):
        return None
    called, number = test.left, test.comparators[0]
    if not isinstance(called.func, m.Name) or called.func.id != "len" or not isinstance(number, m.Const):
        return None
    if type(number.value) is not int or _ONE_AT_MOST.get((test.ops[0], number.value)) is not outcome:
        return None
    return called.args[0] if len(called.args) == 1 and isinstance(called.args[0], m.Name) else None


def _narrow_to_one(interp: Interp, name: m.Name) -> list[tuple[Place, v.Value]]:
    known = interp.eval(name)
    if isinstance(known, v.Items) and known.kind == "s":
        return [(name, v.Items("s", [v.join(known.elts) if known.elts else v.UNKNOWN], False))]
    if getattr(known, "order", None) is not None:
        return [(name, v.Items("l", [v.UNKNOWN], False))]
    return []


def _place(test: m.Expr) -> Place | None:
    """What an expression reads, if a test can say something about it: ``config.get("seed")`` reads an item."""
    if isinstance(test, m.Name | m.Subscript):
        return test
    if not isinstance(test, m.Call) or not isinstance(test.func, m.Name) or not test.args:
        return None
    owner, dot, called = test.func.id.rpartition(".")
    attribute = test.func.id == "getattr" and len(test.args) > 1
    key = test.args[1 if attribute else 0]
    if not isinstance(key, m.Const) or not isinstance(key.value, str):
        return None
    if attribute:
        of = test.args[0]
        return m.Name(f"{of.id}.{key.value}", test.start, test.end) if isinstance(of, m.Name) else None
    return (
        m.Subscript(m.Name(owner, test.start, test.end), key, test.start, test.end)
        if dot and called == "get"
        else None
    )


def _narrow_truth(interp: Interp, name: Place, outcome: bool) -> list[tuple[Place, v.Value]]:
    known = interp.eval(name)
    if isinstance(known, v.AnyOf):
        left = [x for x in known.values if truth(interp, x) is not (not outcome)]
        return [(name, v.join(left))] if left and len(left) < len(known.values) else []
    if not isinstance(known, v.Lit):
        return []
    if type(known.value) is bool and (known.instead is None or not outcome):
        return [(name, v.Lit(outcome))] if known.option or known.value is not outcome else []
    if bool(known.value) == outcome:
        return []
    return [(name, _given(known) if outcome else v.UNKNOWN)]


def _given(known: v.Lit) -> v.Value:
    """What stands in the place of a value that it has by the default of an option where that is given."""
    return _other_than(known) if known.instead is None else known.instead


def _other_than(known: v.Lit) -> v.Obj:
    made = v.Obj(v.GIVEN)
    made.attrs[OTHER_THAN] = known
    return made


def _narrow_equal(name: Place, known: v.Value, other: v.Lit, equal: bool) -> list[tuple[Place, v.Value]]:
    if equal:
        # Here the option has this value, whatever it has by default.
        return [(name, v.Lit(other.value))]
    if isinstance(known, v.AnyOf):
        left = [x for x in known.values if not (isinstance(x, v.Lit) and x.value == other.value)]
        return [(name, v.join(left))] if left and len(left) < len(known.values) else []
    if isinstance(known, v.Lit) and known.value == other.value:
        return [(name, _given(known))]
    return []


def _scope_of(interp: Interp, name: Place) -> tuple[dict[Any, v.Value], str, v.Value] | None:
    """The dict, key and present value that a (dotted) name or an item is read from."""
    if isinstance(name, m.Subscript):
        holder, index = interp.eval(name.value), interp.eval(name.index)
        if isinstance(index, v.Lit):
            held = (
                holder.items
                if isinstance(holder, v.Mapping)
                else holder.attrs
                if isinstance(holder, v.Obj)
                else {}
            )
            if index.value in held:
                return held, index.value, held[index.value]
        return None
    parts = name.id.split(".")
    if len(parts) == 1:
        env: v.Env | None = interp.frame.env
        while env is not None:
            known = env.read(parts[0])
            if known is not None:
                return env.vars, parts[0], known
            env = env.parent
        return None
    owner = interp.lookup(parts[0])
    for part in parts[1:-1]:
        if owner is None:
            return None
        owner = interp.attribute(owner, part)
    key = parts[-1]
    if isinstance(owner, (v.Inst, v.Obj)) and key in owner.attrs:
        return owner.attrs, key, owner.attrs[key]
    if isinstance(owner, v.Mapping) and key in owner.items:
        return owner.items, key, owner.items[key]
    if isinstance(owner, v.Mod):
        present = owner.env.read(key)
        if present is not None:
            return owner.env.vars, key, present
    if isinstance(owner, v.Ext):
        # The value of a flag.
        stored = interp.library_attribute(f"{owner.name}.{key}")
        if stored is not None:
            return interp.library_attributes, f"{owner.name}.{key}", stored
    return None
