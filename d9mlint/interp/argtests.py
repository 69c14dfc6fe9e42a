"""Tests of a call's arguments, as entries of the knowledge base state them: three-valued."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from d9mlint.interp import commands, shapes
from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.knowledge.schema import Condition, Other, Uneven

_EACH = "*"
SELF = "self"
"""The argument name by which a condition means the receiver of a method, or the first input of a function."""


class IfGiven(NamedTuple):
    """The arguments of a call as they are if options are given whose defaults give nothing, and these options."""

    args: v.Args
    options: tuple[str, ...]


def if_given(args: v.Args, depth: int = 0) -> IfGiven:
    """What a call is given, also in what other calls of its arguments are given, if all options are given whose defaults
    are None or an empty text."""
    options: dict[str, None] = {}

    def one(value: v.Value) -> v.Value:
        if isinstance(value, v.Lit) and value.option and value.value in (None, ""):
            options[value.option] = None
            return v.Obj(v.GIVEN) if value.instead is None else value.instead
        if isinstance(value, v.Obj) and value.owner is None and depth < _CHAIN:
            inner = if_given(value.args, depth + 1)
            if inner.options:
                options.update(dict.fromkeys(inner.options))
                return v.Obj(value.api, value.type, inner.args, value.node)
        return value

    pos, kw = [one(value) for value in args.pos], {name: one(value) for name, value in args.kw.items()}
    return IfGiven(v.Args(pos, kw, args.star, args.dstar), tuple(options))


def all_hold(args: v.Args, tests: list[Condition], owner: v.Value | None = None) -> bool | None:
    """Conjunction of conditions, three-valued."""
    answers = [holds(args, test, owner) for test in tests]
    if any(a is False for a in answers):
        return False
    return None if any(a is None for a in answers) else True


def any_holds(args: v.Args, tests: list[Condition], owner: v.Value | None = None) -> bool | None:
    """Disjunction of conditions, three-valued."""
    answers = [holds(args, test, owner) for test in tests]
    if any(a is True for a in answers):
        return True
    return None if any(a is None for a in answers) else False


def holds(args: v.Args, test: Condition, owner: v.Value | None = None) -> bool | None:
    """Whether a condition on a call's arguments holds: yes, no, or None for unknown."""
    answer = _holds(args, test, owner)
    return False if answer is None and test.if_unknown is False else answer


def _holds(args: v.Args, test: Condition, owner: v.Value | None) -> bool | None:
    if test.all_of is not None:
        return all_hold(args, test.all_of, owner)
    if test.any_of is not None:
        return any_holds(args, test.any_of, owner)
    if test.none_of is not None:
        answer = any_holds(args, test.none_of, owner)
        return None if answer is None else not answer
    value = _argument(args, test.arg, test.pos, owner)
    if test.item and value is not None:
        value = item(value, test.item)
    if test.given is not msgspec.UNSET:
        if value is None:
            return not test.given
        none = v.is_none(value)
        return None if none is None else none != test.given
    if test.less_than is not None and _is_left_to(args, value, test.default, test.less_than):
        return False
    value = _or_default(args, value, test.default, owner)
    if value is None:
        return None
    if isinstance(value, v.AnyOf):
        answers = {_judge(args, test, one, owner) for one in value.values}
        return answers.pop() if len(answers) == 1 else None
    return _judge(args, test, value, owner)


def item(value: v.Value, key: str) -> v.Value | None:
    """What a mapping, or an object to which a program gave attributes or named arguments, has under a key (``a.b`` of a
    mapping in another one; ``a@0`` and ``a@``: the argument of the call that made an object, which has this position or
    none; ``*``: all items of a mapping or sequence): None for nothing, where an item has nothing, unknown where it is not
    all seen."""
    first, _, rest = key.partition(".")
    if first == _EACH:
        return _of_each(value, rest)
    first, argument, place = first.partition("@")
    found: v.Value | None
    if isinstance(value, v.Mapping):
        absent = v.UNKNOWN if value.open and value.option != v.LIBRARY_DEFAULTS else None
        found = value.items.get(first) or absent
    elif isinstance(value, v.Obj) and (first in value.attrs or first in value.args.kw):
        found = value.attrs.get(first) or value.args.kw[first]
    elif isinstance(value, v.Obj) and argument:
        found = value.args.get(first, int(place) if place else None)
    elif isinstance(value, v.Inst) and first in value.attrs:
        found = value.attrs[first]
    else:
        return None if v.is_none(value) is True else v.UNKNOWN
    return item(found, rest) if rest and found is not None else found


def _of_each(value: v.Value, key: str) -> v.Value | None:
    """What all items of a mapping or sequence have under a key: None where one has nothing."""
    if isinstance(value, (v.Mapping, v.Items)) and not value.open:
        every = list(value.items.values() if isinstance(value, v.Mapping) else value.elts)
        found = [item(one, key) for one in every]
        known = [one for one in found if one is not None]
        if found and len(known) < len(found):
            return None
        if known:
            return known[0] if len(known) == 1 else v.AnyOf(tuple(known))
    return v.UNKNOWN


def _argument(args: v.Args, name: str, pos: int | None, owner: v.Value | None) -> v.Value | None:
    if name != SELF:
        return args.get(name, pos)
    return owner if owner is not None else args.get("input", 0)


def _or_default(args: v.Args, value: v.Value | None, default: Any, owner: v.Value | None) -> v.Value | None:
    """The value, or what stands for it where it is left out; ``{arg: name}`` stands for another argument,
    also where None is passed."""
    if isinstance(default, dict):
        if value is not None and v.is_none(value) is False:
            return value
        if value is not None and v.is_none(value) is None:
            return v.UNKNOWN
        return _argument(args, str(default.get("arg", "")), default.get("pos"), owner)
    if default is not msgspec.UNSET and (value is None or _is_copied(args, value)):
        return _literal(default)
    return value


def _is_copied(args: v.Args, value: v.Value) -> bool:
    """Whether a call makes again what some object is that is not known, from attributes of that object: what such an
    argument selects is reported where the first one is made, and it is hardly ever given."""
    if not isinstance(value, v.Member):
        return False
    beside = (one for one in args.values() if isinstance(one, v.Member) and one.owner is value.owner)
    return sum(1 for _ in beside) > _PARTS_OF_A_COPY


_PARTS_OF_A_COPY = 3


def _is_left_to(args: v.Args, value: v.Value | None, default: Any, other: Other) -> bool:
    """Whether an argument that is not given is what the other one is, with which it is compared."""
    absent = value is None or v.is_none(value) is True
    return absent and not args.dstar and isinstance(default, dict) and default.get("arg") == other.arg


def _literal(value: Any) -> v.Value:
    return v.Items("list", [_literal(one) for one in value]) if isinstance(value, list) else v.Lit(value)


def _judge(args: v.Args, test: Condition, value: v.Value, owner: v.Value | None) -> bool | None:
    """One test of one known or unknown value."""
    if test.truthy is not msgspec.UNSET:
        known = v.truth(value)
        return None if known is None else known == test.truthy
    if test.is_a is not None:
        kind = _type_name(value)
        return None if not kind else kind in _list(test.is_a)
    if test.rank is not None:
        tensor = shapes.form(value)
        along = None if test.along is None else _dimension(args, test.along, owner)
        if tensor.sizes is None:
            tensor = shapes.with_dimension(tensor, along)
        elif test.lone and isinstance(along, v.Lit):
            tensor = shapes.without_single(tensor, along.value)
        return shapes.is_rank(tensor, _list(test.rank))
    if test.dtype is not None:
        if shapes.WHOLE in _list(test.dtype) and shapes.is_whole(shapes.form(value)):
            return True
        name = shapes.dtype_name(value) or shapes.form(value).dtype
        if name is None:
            return None
        fits = {shapes.may_be_dtype(name, one) for one in _list(test.dtype)}
        return True if True in fits else None if None in fits else False
    if test.distinct is not msgspec.UNSET:
        if isinstance(value, v.Items) and not value.open and test.distinct is True:
            return shapes.are_positions_known(value.elts) or None
        form = shapes.form(value)
        if test.distinct == "rows":
            return None if form == shapes.NOTHING else form.distinct or form.rows
        if test.distinct == "in rows":
            at = None if test.along is None else _dimension(args, test.along, owner)
            ends = (-1, 1) if form.sizes is None else (-1, len(form.sizes) - 1)
            return form.series and isinstance(at, v.Lit) and at.value in ends
        return None if form == shapes.NOTHING else form.distinct == test.distinct
    if test.single is not None:
        beside = shapes.form(_argument(args, SELF, None, owner))
        return shapes.is_single(shapes.form(value), _other(args, test.single, owner), beside)
    if test.requires_grad is not msgspec.UNSET:
        grad = shapes.form(value).grad
        return None if grad is None else grad == test.requires_grad
    if test.sparse is not msgspec.UNSET:
        return shapes.form(value).sparse == test.sparse
    if test.elements is not None:
        return _many(shapes.form(value).sizes, test.elements)
    if test.last_size is not None:
        sizes = shapes.form(value).sizes
        return None if not sizes or sizes[-1] is None else sizes[-1] == test.last_size
    if test.sizes is not None:
        return _weighed(shapes.form(value).sizes, test.sizes.weights, test.sizes.above)
    if test.multiple is not None:
        last = shapes.form(value).sizes
        number = last[-1] if last else plain(value)
        parts = 1 if test.multiple.parts is None else _other(args, test.multiple.parts, owner)
        if type(number) is not int or type(parts) is not int or not parts:
            return None
        return number // parts % test.multiple.of == 0
    if test.uneven is not None:
        return _uneven(shapes.form(value).sizes, test.uneven)
    if test.length is not None:
        if isinstance(value, v.Items):
            return None if value.open else len(value.elts) in _list(test.length)
        # A number has no length.
        return False if isinstance(value, v.Lit) and isinstance(value.value, (int, float)) else None
    if test.nonzero is not None:
        numbers = plain(value) if isinstance(value, v.Items) else None
        if not isinstance(numbers, list | tuple) or not all(type(one) in (int, float) for one in numbers):
            return None
        return sum(bool(one) for one in numbers) == test.nonzero
    if test.combines is not None:
        ways = _combinations(_argument(args, test.combines.arg, test.combines.pos, owner))
        count = value.value if isinstance(value, v.Lit) and type(value.value) is int else None
        # Distributions have no end of points: what is not seen to be a grid is none.
        return count is not None and ways is not None and count >= ways
    if test.same_as is not None:
        other = _argument(args, test.same_as.arg, test.same_as.pos, owner)
        other = _or_default(args, other, test.same_as.default, owner)
        if test.same_as.plus:
            if not isinstance(other, v.Lit) or type(other.value) is not int or other.option:
                return None
            other = v.Lit(other.value + test.same_as.plus)
        return are_same(value, other)
    if test.alike is not msgspec.UNSET:
        if not isinstance(value, v.Items) or value.open or not value.elts:
            return None
        answers = {are_same(one, value.elts[0]) for one in value.elts}
        return None if None in answers else (False not in answers) == test.alike
    if test.has is not None:
        return _has(value, test.has)
    if test.made_by is not None:
        return _is_made_by(value, test.made_by)
    if test.stem is not None:
        return _is_stem(value, test.stem)
    if test.runs is not None:
        return commands.runs(value, test.runs)
    if test.words is not None:
        return commands.has_words(value, test.words)
    if test.mentions is not None and isinstance(value, v.Obj):
        return True if _mentions(value, test.mentions) else None
    if test.less_than is not None and value is not v.UNKNOWN:
        other = _argument(args, test.less_than.arg, test.less_than.pos, owner)
        if value is other and test.less_than.size is None and test.less_than.times <= 1:
            return False
    literal = plain(value)
    if literal is msgspec.UNSET:
        return None
    if test.mentions is not None:
        words = (word.strip() for one in _components(literal) for word in str(one).split(","))
        return any(word.rpartition(".")[2] == test.mentions for word in words)
    if test.contains is not None:
        return any(isinstance(one, str) and test.contains in one for one in _components(literal))
    if test.all_equal is not msgspec.UNSET:
        return all(equal(one, test.all_equal) for one in _components(literal))
    if test.less_than is not None:
        return _some_less(literal, _other(args, test.less_than, owner))
    if test.greater_than is not None:
        return _some_less(_other(args, test.greater_than, owner), literal)
    if test.equals is not msgspec.UNSET:
        return equal(literal, test.equals)
    if test.not_equals is not msgspec.UNSET:
        return not equal(literal, test.not_equals)
    if not isinstance(test.one_of, msgspec.UnsetType):
        return any(equal(literal, one) for one in list(test.one_of))
    if not isinstance(test.greater, msgspec.UnsetType):
        return literal > test.greater if isinstance(literal, (int, float)) else None
    return None


def are_same(one: v.Value, other: v.Value | None) -> bool | None:
    """Whether two values are the same one, or equal numbers that no option changes."""
    if one is other and one is not v.UNKNOWN:
        return True
    if isinstance(one, v.Lit) and isinstance(other, v.Lit) and not (one.option or other.option):
        return equal(one.value, other.value)
    return None


def _combinations(value: v.Value | None) -> int | None:
    """In how many ways one element each of the sequences of a mapping, or of one of several, can be put together."""
    if isinstance(value, v.Items) and not value.open:
        found = [_combinations(one) for one in value.elts]
        return None if not found or None in found else sum(one for one in found if one is not None)
    if not isinstance(value, v.Mapping) or value.open:
        return None
    ways = 1
    for one in value.items.values():
        if not isinstance(one, v.Items) or one.open or one.kind == "s":
            return None
        ways *= len(one.elts)
    return ways


def _dimension(args: v.Args, named: Other, owner: v.Value | None) -> v.Value | None:
    """The argument that names a dimension; its position is that in the function form, which a method's is one before."""
    place = named.pos
    return args.get(named.arg, place if place is None or owner is None else place - 1)


def _has(value: v.Value, method: str) -> bool | None:
    """Whether a value has a method of this name."""
    if isinstance(value, v.Inst):
        if value.cls.find(method) is not None:
            return True
        return False if all(base == "object" for base in value.cls.external_bases()) else None
    if isinstance(value, v.Func):
        return method == "__call__"
    if isinstance(value, v.Items):
        return hasattr({"t": tuple, "s": set}.get(value.kind, list), method)
    return None


def _is_made_by(value: v.Value, names: list[str]) -> bool | None:
    """Whether a value is an object of a class that is derived from one of some names, or what a call of one gives."""
    if isinstance(value, v.Inst):
        return any(base.rpartition(".")[2] in names for base in value.cls.external_bases())
    if isinstance(value, v.Obj):
        return value.api.rpartition(".")[2] in names or value.type.rpartition(".")[2] in names
    return None if value is v.UNKNOWN else False


def _is_stem(value: v.Value, name: str) -> bool | None:
    """Whether a text is a name, or a path that ends in it. Of a text that is put together the end may be known alone."""
    whole = isinstance(value, v.Lit)
    end = value if whole else value.args.kw.get("end") if isinstance(value, v.Obj) else None
    if not isinstance(end, v.Lit) or not isinstance(end.value, str):
        return None
    _, slash, last = end.value.replace("\\", "/").rpartition("/")
    if not whole and not slash:
        return None
    return last.removesuffix(".py") == name


def _mentions(value: v.Value | None, name: str, depth: int = 0) -> bool:
    """Whether a value is what a call of this name gave, or what a chain of functions made of it: no arithmetic, and no
    object that was made with it, such as a variable, which changes."""
    if not isinstance(value, v.Obj) or depth > _CHAIN or value.api.endswith(_OPERATOR):
        return False
    last = value.api.rpartition(".")[2]
    if last == name:
        return True
    if last[:1].isupper():
        return False
    if last == "concat" and _columns_beside(value, name):
        return True
    return any(_mentions(one, name, depth + 1) for one in (value.owner, *value.args.values()))


def _columns_beside(value: v.Obj, name: str) -> bool:
    """Whether further columns are put beside what a call of this name gave: rows that differed do so still."""
    axis, joined = value.args.get("axis", 1), value.args.get("values", 0)
    if not isinstance(axis, v.Lit) or axis.value not in (1, -1) or not isinstance(joined, v.Items):
        return False
    return any(isinstance(one, v.Obj) and one.api.rpartition(".")[2] == name for one in joined.elts)


_CHAIN = 4
_OPERATOR = ".operator"
"""The end of the names of arithmetic."""


def _type_name(value: v.Value) -> str:
    """The Python type of a literal; ``object`` for what is certainly none, empty for unknown."""
    if isinstance(value, v.Lit):
        return type(value.value).__name__
    if isinstance(value, v.Items):
        return {"t": "tuple", "l": "list", "s": "set"}.get(value.kind, "list")
    if isinstance(value, v.Mapping):
        return "dict"
    if shapes.is_whole_number(value):
        return "int"
    return "object" if isinstance(value, (v.Inst, v.Func, v.Cls, v.Partial)) else ""


def _other(args: v.Args, other: Other, owner: v.Value | None) -> Any:
    """The plain value of another argument, or one of its sizes; UNSET when unknown."""
    value = _or_default(args, _argument(args, other.arg, other.pos, owner), other.default, owner)
    if value is None:
        return msgspec.UNSET
    if other.size is None:
        known = plain(value)
        # A number that is multiplied by one stays a whole number: it may name a dimension.
        return known * other.times if other.times != 1 and type(known) in (int, float) else known
    sizes = shapes.form(value).sizes
    if sizes is None or not -len(sizes) <= other.size < len(sizes):
        return msgspec.UNSET
    size = sizes[other.size]
    return msgspec.UNSET if size is None else size


def _some_less(left: Any, right: Any) -> bool | None:
    """Whether some component is less than the other side's; a single number counts for all components."""
    if left is msgspec.UNSET or right is msgspec.UNSET:
        return None
    lefts, rights = _components(left), _components(right)
    width = max(len(lefts), len(rights))
    lefts, rights = (side * width if len(side) == 1 else side for side in (lefts, rights))
    pairs = list(zip(lefts, rights, strict=False))
    if not all(isinstance(one, (int, float)) for pair in pairs for one in pair):
        return None
    return any(a < b for a, b in pairs)


def _many(sizes: shapes.Sizes | None, least: int) -> bool | None:
    if sizes is None or None in sizes:
        return None
    product = 1
    for size in sizes:
        product *= size or 0
    return product >= least


def _weighed(sizes: shapes.Sizes | None, weights: list[str], above: int) -> bool | None:
    """Whether the sizes times their weights (``24/10``: integer division of each term) exceed a number."""
    if sizes is None or len(sizes) < len(weights) or None in sizes[: len(weights)]:
        return None
    total = 0
    for size, weight in zip(sizes, weights, strict=False):
        over, _, under = weight.partition("/")
        total += int(over) * (size or 0) // int(under or 1)
    return total > above


def _uneven(sizes: shapes.Sizes | None, test: Uneven) -> bool | None:
    """Whether what is left of an image of these sizes is divided into parts that are not equal."""
    known = [size for size in (sizes or ())[-_TWO:] if size is not None]
    if any((size - test.minus) // test.by % test.into for size in known):
        return True
    return False if len(known) == _TWO else None


_TWO = 2


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _components(literal: Any) -> list[Any]:
    return literal if isinstance(literal, list) and literal else [literal]


def plain(value: v.Value) -> Any:
    """A value as plain Python data (literals, tuples and lists of them as lists); UNSET when unknown."""
    if isinstance(value, v.Lit):
        return value.value
    if isinstance(value, v.Items) and not value.open:
        parts = [plain(e) for e in value.elts]
        return msgspec.UNSET if any(p is msgspec.UNSET for p in parts) else parts
    if isinstance(value, v.Ext):
        return value.name
    return msgspec.UNSET


def equal(a: Any, b: Any) -> bool:
    """Whether two literals are equal, where True is not 1."""
    if isinstance(a, bool) != isinstance(b, bool):
        return False
    return bool(a == b)
