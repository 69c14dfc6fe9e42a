"""What has no elements, whatever options are given: a loop over it has no round."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.heap import HEAP, Tracked
from d9mlint.interp.passed_on import PASS_THROUGH, inside, passed_on
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.heap import Activation
    from d9mlint.interp.interpreter import Interp

RANGE = "builtins.range"
RANGES = frozenset(
    {RANGE, "tqdm.trange", "tqdm.auto.trange", "tqdm.notebook.trange", "tqdm.autonotebook.trange"}
)
"""What counts up as a range does."""
_EACH_OF_FIRST = PASS_THROUGH | {
    "builtins.sorted",
    "builtins.list",
    "builtins.tuple",
    "itertools.accumulate",
    "itertools.pairwise",
}
_EACH_OF_SECOND = frozenset(
    {"builtins.filter", "itertools.filterfalse", "itertools.takewhile", "itertools.dropwhile"}
)
_EACH_OF_REST = frozenset({"builtins.map", "itertools.starmap"})
"""Those whose first argument is a function, with all of the others."""
_SHORTEST = frozenset({"builtins.zip", "itertools.product"})
_ALL = frozenset({"itertools.chain", "itertools.zip_longest"})
GOING_THROUGH = _EACH_OF_FIRST | _EACH_OF_SECOND | _EACH_OF_REST | _SHORTEST | _ALL
"""What gives elements of its arguments and puts nothing into these."""
_DEPTH = 4
"""So many objects are put around one another at most."""


def is_empty(interp: Interp, value: v.Value, depth: int = 0) -> bool:
    """Whether going through a value gives nothing."""
    if isinstance(value, v.Items | v.Mapping):
        return _has_nothing(value) and _found_empty(value)
    if isinstance(value, v.Lit):
        return value.value in ("", b"") and not value.option
    if isinstance(value, v.AnyOf):
        return all(is_empty(interp, one, depth) for one in value.values)
    if not isinstance(value, v.Obj):
        return False
    if value.api in RANGES:
        return _has_no_number(value) or _ends_where_it_begins(interp, value)
    if value.form is not None and value.form.sizes:
        return value.form.sizes[0] == 0
    return depth < _DEPTH and _passes_nothing_on(interp, value, depth + 1)


def _found_empty(value: v.Items | v.Mapping) -> bool:
    """A container is empty in the first round of a loop that is run once for all of them; where a round fills it, the next
    one is run too."""
    act = HEAP.act
    if value.birth < act.start:
        act.found_empty.add(value)
    return True


def filled(round_: Activation, before: dict[str, v.Value], now: dict[str, v.Value]) -> set[Any]:
    """Where something is after a round of a loop that found an empty container there: in this container, or in what has been
    put in its place as an attribute or variable. The variables of the running function are given apart."""
    empty = round_.found_empty
    if not empty:
        return set()
    found: set[Any] = {one.birth for one in round_.written if one in empty and not _has_nothing(one)}
    for place, (_, _, _, _, new) in round_.writes.items():
        read = round_.reads.get(place)
        if read is not None and isinstance(read[4], Tracked) and read[4] in empty and not _has_nothing(new):
            found.add(place)
    found.update(
        name
        for name, value in before.items()
        if isinstance(value, Tracked) and value in empty and not _has_nothing(now.get(name))
    )
    return found


def _has_nothing(value: object) -> bool:
    """Whether a value is a container that is known to be empty, or one of several."""
    if isinstance(value, v.AnyOf):
        return all(map(_has_nothing, value.values))
    if isinstance(value, v.Items):
        return not value.elts and not value.open
    return isinstance(value, v.Mapping) and not value.items and not value.open


def _passes_nothing_on(interp: Interp, value: v.Obj, depth: int) -> bool:
    args = value.args.pos
    if value.args.star:
        return False
    if value.api in _EACH_OF_FIRST:
        inner = inside(value)
        return inner is not None and is_empty(interp, inner, depth)
    if value.api in _EACH_OF_SECOND:
        return len(args) > 1 and is_empty(interp, args[1], depth)
    if value.api in _EACH_OF_REST:
        return any(is_empty(interp, one, depth) for one in args[1:])
    if value.api in _SHORTEST:
        return any(is_empty(interp, one, depth) for one in args)
    return value.api in _ALL and bool(args) and all(is_empty(interp, one, depth) for one in args)


def _has_no_number(counting: v.Obj) -> bool:
    """Whether a range has no number."""
    args = counting.args
    if args.star or args.dstar or (args.kw and counting.api == RANGE) or not 1 <= len(args.pos) <= _BOUNDS:
        return False
    numbers = [_number(one, counting.node, at) for at, one in enumerate(args.pos)]
    if None in numbers or (len(numbers) == _BOUNDS and numbers[2] == 0):
        return False
    return not range(*(one for one in numbers if one is not None))


def empty_by_default(value: v.Value) -> str:
    """The option by whose default a range, or a progress bar around one, has no number."""
    counting = passed_on(value)
    if (
        not isinstance(counting, v.Obj)
        or counting.api not in RANGES
        or counting.args.star
        or counting.args.kw
    ):
        return ""
    bounds = [one for one in counting.args.pos if isinstance(one, v.Lit) and type(one.value) is int]
    if len(bounds) < len(counting.args.pos) or not 1 <= len(bounds) < _BOUNDS:
        return ""
    numbers = range(*(one.value for one in bounds))
    return "" if numbers else next((one.option for one in bounds if one.option), "")


_BOUNDS = 3


def _ends_where_it_begins(interp: Interp, counting: v.Obj) -> bool:
    """Whether a range that the running function counts has no number because its bounds are the same unknown numbers with
    known ones added: ``range(first, first + n)`` where ``n`` is 0."""
    call, function = counting.node, interp.frame.func
    if call is None or len(counting.args.pos) != 2 or len(call.args) != 2 or call.keywords:
        return False
    if counting.file is not interp.frame.file:
        return False
    if function is not None and not function.fn.start <= call.start < function.fn.end:
        return False
    first, last = (_sum_of(interp, one, 1) for one in call.args)
    if first is None or last is None:
        return False
    return first.unknown == last.unknown and last.known <= first.known


class _Sum(NamedTuple):
    """A sum: how often each unknown number is in it, by the name of the variable, and the known rest."""

    unknown: dict[str, int]
    known: int


def _sum_of(interp: Interp, node: m.Expr, sign: int) -> _Sum | None:
    """What an expression adds up."""
    if isinstance(node, m.Const):
        return _Sum({}, sign * node.value) if type(node.value) is int else None
    if isinstance(node, m.Name):
        value = interp.eval(node)
        if isinstance(value, v.Lit) and not value.option:
            return _Sum({}, sign * value.value) if type(value.value) is int else None
        return _Sum({node.id: sign}, 0)
    if not isinstance(node, m.BinOp) or node.op not in ("+", "-"):
        return None
    left, right = (
        _sum_of(interp, node.left, sign),
        _sum_of(interp, node.right, -sign if node.op == "-" else sign),
    )
    if left is None or right is None:
        return None
    names = left.unknown.keys() | right.unknown.keys()
    both = {name: left.unknown.get(name, 0) + right.unknown.get(name, 0) for name in names}
    return _Sum({name: count for name, count in both.items() if count}, left.known + right.known)


def _number(value: v.Value, call: m.Call | None, at: int) -> int | None:
    """A bound of a range. The product of any whole number with zero is zero."""
    if isinstance(value, v.Lit):
        return value.value if isinstance(value.value, int) and not value.option else None
    if call is None or at >= len(call.args):
        return None
    written = call.args[at]
    if isinstance(written, m.BinOp) and written.op == "*":
        sides = (written.left, written.right)
        return 0 if any(isinstance(one, m.Const) and one.value == 0 for one in sides) else None
    return None
