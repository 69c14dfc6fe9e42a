"""Sizes and element types of tensors, as far as a program shows them.

Only what the conditions of the knowledge base ask: how many dimensions a tensor has, how long they are, and
whether its elements are floating point numbers. Anything else is None, unknown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.device_names import common

if TYPE_CHECKING:
    from d9mlint.knowledge.schema import Other, Ranks, TensorEntry

Sizes = tuple[int | None, ...]

_DTYPES = {
    "double": "float64",
    "float": "float32",
    "half": "float16",
    "cdouble": "complex128",
    "cfloat": "complex64",
    "long": "int64",
    "int": "int32",
    "short": "int16",
}
FLOATING = "floating"
"""The element type of which no more is known."""
_INTEGERS = ("int", "uint", "bool", "qint", "quint")
RESIZING = frozenset(
    {"resize_", "resize_as_", "squeeze_", "unsqueeze_", "t_", "transpose_", "set_", "swapaxes_"}
)
MAX_RANK = 8
MATRIX = 2
"""How many dimensions a matrix has."""
TENSOR = "torch.Tensor"
TF_TENSOR = "tf.Tensor"


class Form(NamedTuple):
    """What is known of a tensor: its sizes (None for an unknown one) and its element type; the device it is on
    ("" for unknown), whether it requires grad (None for unknown), whether its elements are all different, where its
    sizes are not known a dimension of one element, whether its elements are whole numbers though their type may have
    others, how many dimensions it has at least where its sizes are not known, whether it is a product with zero, whether
    its rows along the last dimension are all different, whether its elements are where rows begin: multiples of a
    number, each once, whether it is seen to have a sparse layout, whether it was brought to the CPU or is computed with
    weights that are surely there: what it is used with is there too, to which accelerator its gradient goes back where it
    is computed from what has been moved from there, whether in each of its rows along the last dimension, of which there
    are two or more, no element is there twice, and whether several of its elements may well be one number, as of numbers
    that are drawn from a few or that fractions were cut to."""

    sizes: Sizes | None = None
    dtype: str | None = None
    device: str = ""
    grad: bool | None = None
    distinct: bool = False
    single: int | None = None
    whole: bool = False
    least: int = 0
    zero: bool = False
    rows: bool = False
    begins: bool = False
    sparse: bool = False
    held: bool = False
    back: str = ""
    series: bool = False
    repeats: bool = False


NOTHING = Form()


def least(known: Form) -> int:
    """How many dimensions a tensor has at least."""
    return known.least if known.sizes is None else len(known.sizes)


MASKS = frozenset({"bool", "uint8"})
"""The element types with which a tensor that is an index is a mask."""


def has_one_element(known: Form) -> bool:
    """Whether a tensor surely has a single element."""
    return known.sizes is not None and all(size == 1 for size in known.sizes)


def with_dimension(known: Form, named: v.Value | None) -> Form:
    """A tensor that surely has the dimension that an argument names."""
    return known if named is None else known._replace(least=max(known.least, _needed([named])))


def without_single(known: Form, dimension: object) -> Form:
    """A tensor of known sizes that has all its elements along a dimension, without its others, which have one each."""
    sizes = known.sizes
    if sizes is None or type(dimension) is not int or not -len(sizes) <= dimension < len(sizes):
        return known
    at = dimension % len(sizes)
    is_line = all(size == 1 for place, size in enumerate(sizes) if place != at)
    return known._replace(sizes=(sizes[at],)) if is_line and sizes[at] != 1 else known


def is_rank(known: Form, wanted: list[int]) -> bool | None:
    """Whether a tensor has one of some numbers of dimensions; None for unknown."""
    if known.sizes is not None:
        return len(known.sizes) in wanted
    if known.least > max(wanted):
        return False
    return True if known.least and set(range(known.least, _USUAL_RANK + 1)) <= set(wanted) else None


_USUAL_RANK = 5
"""The number of dimensions of a batch of volumes: more are hardly ever used."""


def form(value: v.Value | None) -> Form:
    """What is known of a value that should be a tensor; of several, what they have in common."""
    if isinstance(value, v.Obj):
        return value.form or NOTHING
    if isinstance(value, v.AnyOf):
        return _common([form(one) for one in value.values if v.is_none(one) is not True])
    if isinstance(value, v.Items) and value.elts:
        # Numbers beside tensors become tensors like them.
        forms = [form(one) for one in value.elts if not _is_written_out(one)]
        return _common(forms)
    return NOTHING


def _is_written_out(value: v.Value) -> bool:
    """Whether a value is a number, or a list of numbers."""
    if isinstance(value, v.Items):
        return bool(value.elts) and all(map(_is_written_out, value.elts))
    return isinstance(value, v.Lit) and isinstance(value.value, (bool, int, float))


def _common(forms: list[Form]) -> Form:
    if not forms:
        return NOTHING
    first, *rest = forms
    for one in rest:
        if one == first:
            continue
        sizes = (
            _wider(first, one) if first.sizes and one.sizes and len(first.sizes) == len(one.sizes) else None
        )
        first = Form(
            sizes,
            first.dtype if first.dtype == one.dtype else None,
            common(first.device, one.device),
            first.grad if first.grad is one.grad else None,
            first.distinct and one.distinct,
            _common_single(first, one),
            is_whole(first) and is_whole(one),
            0 if sizes else min(least(first), least(one)),
            first.zero and one.zero,
            first.rows and one.rows,
            first.begins and one.begins,
            series=first.series and one.series,
            repeats=first.repeats and one.repeats,
        )
    return first


def _common_single(a: Form, b: Form) -> int | None:
    """A dimension along which both tensors have one element."""
    for at in (a.single, b.single):
        if at is not None and is_single(a, at) and is_single(b, at):
            return at
    return None


def may_be_dtype(name: str, wanted: str) -> bool | None:
    """As ``is_dtype``, where of the element type no more than that it is ``floating`` may be known."""
    unsure = name == FLOATING != wanted and is_dtype(wanted, FLOATING)
    return None if unsure else is_dtype(name, wanted)


def is_dtype(name: str, wanted: str) -> bool:
    """Whether an element type is the wanted one, or one of ``floating``, ``complex`` and ``integer``."""
    if wanted == "floating":
        return name.startswith(("float", "bfloat"))
    if wanted == "complex":
        return name.startswith("complex")
    if wanted == "integer":
        return name.startswith(_INTEGERS)
    return name == wanted


WHOLE = "whole"
"""The name by which a condition means what ``is_whole`` says."""


def is_whole(known: Form) -> bool:
    """Whether the elements of a tensor are integers or truth values, or are made from such."""
    return known.whole or (
        known.dtype is not None and (known.dtype == "bool" or is_dtype(known.dtype, "integer"))
    )


def is_whole_value(value: v.Value) -> bool:
    """Whether a value is a whole number, or a tensor of nothing else."""
    if isinstance(value, v.Lit):
        number = value.value
        return isinstance(number, (bool, int)) or (isinstance(number, float) and number.is_integer())
    return is_whole(form(value))


def dtype_name(value: v.Value | None) -> str | None:
    """The element type that ``torch.float64`` or ``"float64"`` names."""
    if isinstance(value, v.Lit) and isinstance(value.value, str):
        name = value.value
    elif isinstance(value, v.Ext):
        name = value.name
    elif isinstance(value, v.Member) and value.name == "dtype":
        return form(value.owner).dtype
    else:
        return None
    name = name.rpartition(".")[2]
    return _DTYPES.get(name, name)


def dtype_of(entry: TensorEntry, old: Form, args: v.Args) -> str | None:
    """The element type of what a call gives."""
    if entry.dtype in ("argument", "like", "stated"):
        named = [
            dtype_name(x)
            for x in args.values()
            if isinstance(x, v.Ext) or _is_dtype_member(x) or _names_dtype(x)
        ]
        if named:
            return named[0]
        if entry.sizes == "data":
            data = args.get("data", 0) or args.get("value", 0)
            return _literal(data).dtype or array_dtype(data)
        if entry.dtype == "like":
            if not args.pos:
                return None
            return _listed_dtype(args.pos[0]) or form(args.pos[0]).dtype or array_dtype(args.pos[0])
        if entry.dtype == "stated":
            given = args.kw.get("dtype")
            return (
                "float32"
                if given is None and len(args.pos) < _MANY and not args.star and not args.dstar
                else None
            )
        return None if any(x is v.UNKNOWN for x in args.values()) or args.star or args.dstar else old.dtype
    given = args.kw.get("dtype")
    if given is not None and v.is_none(given) is not True:
        return dtype_name(given)
    if entry.dtype == "chosen":
        return _chosen(args)
    if entry.sizes == "data":
        return _literal(args.get("data", 0)).dtype or array_dtype(args.get("data", 0))
    if entry.sizes == "range":
        return _range_dtype(args)
    if entry.dtype == "summed":
        return "int64" if old.dtype is not None and is_dtype(old.dtype, "integer") else old.dtype
    if entry.dtype == "fractions":
        return old.dtype if old.dtype is not None and not is_dtype(old.dtype, "integer") else FLOATING
    return old.dtype if entry.dtype == "input" else entry.dtype or None


NUMPY = "numpy."
"""How the names of what NumPy gives begin."""


def array_dtype(value: v.Value | None) -> str | None:
    """The element type of an array of NumPy that the call which makes it names."""
    if not isinstance(value, v.Obj) or not value.api.startswith(NUMPY):
        return None
    for one in value.args.values():
        name = dtype_name(one) if isinstance(one, v.Ext) or _names_dtype(one) else None
        if name is not None and (_DTYPE_TEXT.fullmatch(name) or name in _DTYPES.values()):
            return name
    return None


def _listed_dtype(value: v.Value) -> str | None:
    """The element type that TensorFlow gives a list of numbers."""
    dtype = _literal(value).dtype if isinstance(value, v.Items) and _is_written_out(value) else None
    return "int32" if dtype == "int64" else dtype


_MANY = 3
"""With so many positional arguments one of them may be the element type."""
_DTYPE_TEXT = re.compile(r"(?:u?int|q?u?int|b?float|complex)\d+|bool|half|double")


def _names_dtype(value: v.Value) -> bool:
    """Whether a text names an element type."""
    text = value.value if isinstance(value, v.Lit) else None
    return isinstance(text, str) and _DTYPE_TEXT.fullmatch(text) is not None


def _chosen(args: v.Args) -> str | None:
    """The element type of ``where(test, x, y)``; without values it gives positions."""
    values = [value for value in (args.get("x", 1), args.get("y", 2)) if value is not None]
    if not values:
        return "int64"
    known = {
        _literal(value).dtype if isinstance(value, (v.Lit, v.Items)) else form(value).dtype
        for value in values
    }
    return known.pop() if len(known) == 1 else None


def _is_dtype_member(value: v.Value) -> bool:
    return isinstance(value, v.Member) and value.name == "dtype"


def sizes_of(entry: TensorEntry, old: Form, first: v.Value, args: v.Args) -> Sizes | None:
    """The sizes of what a call gives."""
    kind = entry.sizes
    if entry.rank is not None:
        known = len(old.sizes) if kind == "rank" and old.sizes is not None else entry.rank
        return (None,) * known
    if kind == "unknown":
        return None
    if kind == "input":
        return () if is_number(first) else old.sizes
    if kind == "broadcast":
        return _broadcast(first, args)
    if kind == "product":
        return _of_two(first, args, "@")
    if kind == "positions":
        return None if "as_tuple" in args.kw else (None, None if old.sizes is None else len(old.sizes))
    if kind == "index":
        return _as_index(old, args)
    if kind == "permuted":
        return _permuted(old, args)
    if kind == "widened":
        return _widened(old, args)
    if kind == "reduced":
        return _reduced(old, args)
    if kind == "along":
        return _reduced_along(entry.along, old, args)
    if kind == "squeezed":
        return _squeezed(old, args)
    if kind == "equation":
        return _of_equation(first)
    if kind == "pattern":
        return _of_pattern(args.get("pattern", 1))
    if kind == "line":
        return _pooled_line(old, first, args)
    if kind in ("repeated", "expanded"):
        return _multiplied(old, args, kind == "repeated")
    if kind in ("rank", "reordered", "longer", "shorter"):
        if old.sizes is None:
            return None
        count = len(old.sizes) + {"longer": 1, "shorter": -1}.get(kind, 0)
        return (None,) * count if 0 <= count <= MAX_RANK else None
    if kind in ("flat", "flat-module"):
        return _flat(old, args)
    if kind in ("joined", "stacked"):
        return _together(old, first, args, kind == "stacked")
    if args.dstar or args.star:
        return None
    if kind == "given":
        return _given_sizes(args)
    if kind == "given-or-data":
        if is_number(first):
            return _given_sizes(args)
        # A tuple may be one of sizes.
        return None if isinstance(first, v.Items) and first.kind == "t" else _sizes_of_data(first)
    if kind == "first":
        return _sizes(args.get("size", 0) or args.kw.get("shape"))
    if kind == "second":
        return _sizes(args.get("shape", 1))
    if kind == "steps":
        steps = args.get("steps", 2)
        return (_size(steps) if steps is not None else None,)
    if kind == "size":
        at = 1 if isinstance(args.get("size", 1), v.Items) else 2
        return _sizes(args.get("size", at))
    if kind == "range":
        return (_size(args.pos[0]) if len(args.pos) == 1 else None,)
    return _sizes_of_data(args.get("data", 0))


def _sizes_of_data(data: v.Value | None) -> Sizes | None:
    """The sizes of a tensor that is made of nested lists of numbers, or of a tensor."""
    if isinstance(data, v.Obj) and data.type == TENSOR:
        return form(data).sizes
    return _literal(data).sizes


def least_of(entry: TensorEntry, old: Form, args: v.Args) -> int:
    """How many dimensions what a call gives has at least, where its sizes are not known."""
    kind, known = entry.sizes, least(old)
    if kind == "input":
        named = args.kw.get("dim")
        return max(known, _needed([named] if named is not None else []))
    if kind == "reordered":
        return max(known, _needed_apart(list(args.values())))
    if kind == "widened":
        return max(known + 1, _needed(list(args.values())))
    if kind == "squeezed":
        return known - len(_numbers(args.values())) if _numbers(args.values()) else 0
    return {
        "rank": known,
        "joined": known,
        "longer": known + 1,
        "stacked": known + 1,
        "shorter": known - 1,
        "along": known - 1,
    }.get(kind, 0)


def _needed_apart(named: list[v.Value]) -> int:
    """How many dimensions a tensor has at least that has these, two of which are not the same: ``x.transpose(1, -1)``."""
    needed, numbers = _needed(named), sorted(_numbers(named))
    same = len(numbers) == 2 and numbers[0] < 0 <= numbers[1] and needed + numbers[0] == numbers[1]
    return needed + same


def _numbers(named: list[v.Value]) -> list[int]:
    return [
        one.value for one in named if isinstance(one, v.Lit) and not one.option and type(one.value) is int
    ]


def _needed(named: list[v.Value]) -> int:
    """How many dimensions a tensor has at least that has these."""
    numbers = _numbers(named)
    return max((at + 1 if at >= 0 else -at for at in numbers if -MAX_RANK <= at < MAX_RANK), default=0)


def with_last(sizes: Sizes, last: Other, args: v.Args) -> Sizes:
    """Sizes of which an argument of a module says the last one."""
    given = args.get(last.arg, last.pos)
    return (*sizes[:-1], _size(given)) if sizes and given is not None else sizes


def layers_of(entry: TensorEntry, module: v.Value | None) -> int | None:
    """How many states a recurrent module has: one for each layer and direction."""
    if entry.layers is None or entry.sides is None or not isinstance(module, v.Obj):
        return None
    if module.args.star or module.args.dstar:
        return None
    layers = module.args.get(entry.layers.arg, entry.layers.pos)
    sides = module.args.get(entry.sides.arg, entry.sides.pos)
    count = entry.layers.default if layers is None else _size(layers)
    both = (
        entry.sides.default
        if sides is None
        else sides.value
        if isinstance(sides, v.Lit) and not sides.option
        else None
    )
    return count * (2 if both else 1) if isinstance(count, int) and isinstance(both, bool) else None


def of_images(spatial: Other, args: v.Args) -> Sizes | None:
    """The sizes of batches of images or volumes, by the argument that says how many spatial dimensions they have."""
    given = args.get(spatial.arg, spatial.pos)
    count = spatial.default if given is None else given.value if isinstance(given, v.Lit) else None
    if not isinstance(count, int) or not 0 < count <= MAX_RANK - 2 or args.star or args.dstar:
        return None
    return (None,) * (count + 2)


def of_value(ranks: Ranks, args: v.Args) -> Sizes | None:
    """The sizes of what a call gives where an argument has a value that is for one number of dimensions."""
    if args.star or args.dstar:
        return None
    given = args.get(ranks.arg, ranks.pos)
    known = ranks.of.get(given.value) if isinstance(given, v.Lit) and isinstance(given.value, str) else None
    return None if known is None else (None,) * known


def _as_index(old: Form, args: v.Args) -> Sizes | None:
    """``torch.gather(x, 1, index)``, ``x.gather(1, index)``: the sizes of the index."""
    index = args.kw.get("index") or (args.pos[-1] if len(args.pos) > 1 and not args.star else None)
    known = form(index).sizes if index is not None and not args.dstar else None
    if known is None:
        known = (None,) * len(old.sizes) if old.sizes is not None else None
    return known


def _permuted(old: Form, args: v.Args) -> Sizes | None:
    """``x.permute(0, 2, 1)``, ``torch.permute(x, (0, 2, 1))``: as many dimensions as are named."""
    if old.sizes is not None:
        return (None,) * len(old.sizes)
    named = [one for value in args.pos for one in (value.elts if isinstance(value, v.Items) else [value])]
    count = sum(isinstance(one, v.Lit) and isinstance(one.value, int) for one in named)
    return (None,) * count if 1 < count <= MAX_RANK and not args.star else None


def _reduced(old: Form, args: v.Args) -> Sizes | None:
    """``x.mean((2, 3))``, ``torch.sum(x, dim=1, keepdim=True)``, ``x.sum()``: without the dimensions that are named, or
    without any."""
    if args.star or args.dstar:
        return None
    named = args.kw.get("dim") or args.kw.get("axis")
    others = [one for one in args.pos if form(one) == NOTHING]
    kept = args.kw.get("keepdim") or (others[1] if len(others) > 1 else None)
    dims = named if named is not None else others[0] if others else None
    if dims is None:
        return ()
    gone = _numbers(dims.elts if isinstance(dims, v.Items) else [dims])
    if old.sizes is None or not gone or len(gone) != (len(dims.elts) if isinstance(dims, v.Items) else 1):
        return None
    keeps = False if kept is None else v.truth(kept)
    if keeps is None:
        return None
    at = {one % len(old.sizes) if old.sizes else 0 for one in gone}
    if keeps:
        return tuple(1 if i in at else size for i, size in enumerate(old.sizes))
    return tuple(size for i, size in enumerate(old.sizes) if i not in at)


def _reduced_along(along: Other | None, old: Form, args: v.Args) -> Sizes | None:
    """``torch.max(x, dim=1)``, ``x.kthvalue(3, -1, True)``: without the one dimension that is named, if it is not kept."""
    if along is None or old.sizes is None or args.star or args.dstar:
        return None
    named = args.get(along.arg, along.pos)
    at = along.default if named is None else named.value if isinstance(named, v.Lit) else None
    kept = args.get("keepdim", None if along.pos is None else along.pos + 1)
    keeps = False if kept is None else v.truth(kept)
    count = len(old.sizes)
    if type(at) is not int or keeps is None or not -count <= at < count:
        return None
    return (*old.sizes[: at % count], *((1,) if keeps else ()), *old.sizes[at % count + 1 :])


def _squeezed(old: Form, args: v.Args) -> Sizes | None:
    """``x.squeeze()``, ``torch.squeeze(x, 2)``: without the dimensions of one element, or without those that are named."""
    if old.sizes is None or args.star or args.dstar:
        return None
    count = len(old.sizes)
    named = [
        one for value in args.values() for one in (value.elts if isinstance(value, v.Items) else (value,))
    ]
    named = [one for one in named if form(one) == NOTHING]
    places = _numbers(named)
    if len(places) < len(named) or not all(-count <= at < count for at in places):
        return None
    at = {one % count for one in places} if named else set(range(count))
    # A dimension of unknown length may be one of these.
    if any(old.sizes[i] is None for i in at):
        return None
    return tuple(size for i, size in enumerate(old.sizes) if i not in at or size != 1)


def _of_equation(equation: v.Value) -> Sizes | None:
    """``torch.einsum("bl,blh->bh", a, x)``: a dimension for each letter of the result, or for each that is there once."""
    if not (isinstance(equation, v.Lit) and isinstance(equation.value, str)) or equation.option:
        return None
    given, arrow, result = equation.value.replace(" ", "").partition("->")
    if "..." in (result if arrow else given):
        return None
    letters = result if arrow else [one for one in given if one.isalpha() and given.count(one) == 1]
    return (None,) * len(letters) if len(letters) <= MAX_RANK else None


_AXIS = re.compile(r"\([^()]*\)|[^\s()]+")


def _of_pattern(pattern: v.Value | None) -> Sizes | None:
    """``rearrange(x, "b c h w -> b (c h w)")``: a dimension for each name or group of names of the result."""
    if not (isinstance(pattern, v.Lit) and isinstance(pattern.value, str)) or pattern.option:
        return None
    _, arrow, result = pattern.value.partition("->")
    axes = _AXIS.findall(result)
    if not arrow or "..." in axes or len(axes) > MAX_RANK:
        return None
    return tuple(1 if one in ("1", "()") else None for one in axes)


def _pooled_line(old: Form, first: v.Value, args: v.Args) -> Sizes | None:
    """``max_pool1d(x, x.size(2))``: of two or three dimensions. A window as long as the sequence leaves one element."""
    window = args.get("kernel_size", 1)
    asked = _asked_dimension(window, first)
    count = len(old.sizes) if old.sizes is not None else _OF_LINES if least(old) == _OF_LINES else None
    if count is None and asked == _OF_LINES - 1:
        count = _OF_LINES
    if count is None or not MATRIX <= count <= _OF_LINES:
        return None
    sizes = old.sizes or (None,) * count
    return (
        *sizes[:-2],
        sizes[-2],
        1 if asked in (-1, count - 1) and not args.kw.keys() - {"kernel_size"} else None,
    )


_OF_LINES = 3


def _asked_dimension(size: v.Value | None, tensor: v.Value) -> int | None:
    """The dimension of a tensor that a number is the size of: ``x.size(2)``."""
    if not isinstance(size, v.Obj) or size.owner is not tensor or not size.api.endswith(".size"):
        return None
    named = size.args.get("dim", 0)
    return named.value if isinstance(named, v.Lit) and type(named.value) is int else None


def _dimension(args: v.Args) -> int | None:
    """The dimension that ``torch.cat(tensors, dim)`` and ``torch.stack(tensors, dim)`` name; the first one by default."""
    if args.star or args.dstar:
        return None
    named = args.get("dim", 1) or args.kw.get("axis")
    if named is None:
        return 0
    return named.value if isinstance(named, v.Lit) and type(named.value) is int else None


def _together(old: Form, tensors: v.Value, args: v.Args, stacks: bool) -> Sizes | None:
    """The sizes of several tensors as one: joined along a dimension, or stacked along a new one."""
    if old.sizes is None:
        rank = _shared_rank(tensors, stacks)
        return None if rank is None or rank + stacks > MAX_RANK else (None,) * (rank + stacks)
    count = len(old.sizes) + stacks
    at = _dimension(args)
    if count > MAX_RANK or at is None or not -count <= at < count:
        return (None,) * count if count <= MAX_RANK else None
    at %= count
    return (*old.sizes[:at], None, *old.sizes[at + (not stacks) :])


def _shared_rank(tensors: v.Value, stacks: bool) -> int | None:
    """The number of dimensions of tensors that are put together, of which one shows it: all have the same. To join them,
    empty tensors of one dimension may be among them."""
    held = tensors.elts if isinstance(tensors, v.Items) else ()
    ranks = {len(sizes) for sizes in (form(one).sizes for one in held) if sizes is not None}
    known = ranks if stacks else ranks - {1}
    return known.pop() if len(known) == 1 else None


def _widened(old: Form, args: v.Args) -> Sizes | None:
    """``unsqueeze(-1)``, ``torch.unsqueeze(x, -1)``: a dimension of one element more."""
    if old.sizes is None or len(old.sizes) >= MAX_RANK:
        return None
    places = [one.value for one in args.values() if isinstance(one, v.Lit) and isinstance(one.value, int)]
    sizes = [*old.sizes]
    if len(places) != 1 or not -len(sizes) - 1 <= places[0] <= len(sizes):
        return (None,) * (len(sizes) + 1)
    sizes.insert(places[0] if places[0] >= 0 else places[0] + len(sizes) + 1, 1)
    return tuple(sizes)


def _multiplied(old: Form, args: v.Args, repeats: bool) -> Sizes | None:
    """``repeat(1, 1, 3)``: each size times a number; ``expand(-1, 3)``: these sizes, -1 for the old ones."""
    counts = args.pos[0].elts if len(args.pos) == 1 and isinstance(args.pos[0], v.Items) else args.pos
    if args.star or args.kw or not counts or len(counts) > MAX_RANK:
        return None
    if len(counts) == 1 and not isinstance(counts[0], v.Lit):
        # Maybe a sequence.
        return None
    before: list[int | None] = [None] * len(counts)
    if old.sizes is not None and len(old.sizes) <= len(counts):
        before = [*([1] * (len(counts) - len(old.sizes))), *old.sizes]
    sizes: list[int | None] = []
    for size, count in zip(before, counts, strict=True):
        number = (
            count.value
            if isinstance(count, v.Lit) and type(count.value) is int and not count.option
            else None
        )
        if number is None:
            sizes.append(None)
        elif repeats:
            sizes.append(None if size is None else size * number)
        else:
            sizes.append(size if number == -1 else number)
    return tuple(sizes)


def is_repeated_apart(old: Form, args: v.Args) -> bool:
    """Whether ``repeat`` or ``expand`` with these arguments repeats a tensor in dimensions of one element only."""
    counts = args.pos[0].elts if len(args.pos) == 1 and isinstance(args.pos[0], v.Items) else args.pos
    if args.star or args.kw or not counts:
        return False
    if old.sizes is None and old.single is not None and -len(counts) <= old.single < len(counts):
        # A dimension that is kept as it is stands in front, so that there are as many as are counted.
        first = counts[0].value if isinstance(counts[0], v.Lit) else None
        others = (one for at, one in enumerate(counts) if at != old.single % len(counts))
        known = first == -1 or (first == 1 and old.single < 0)
        return known and all(isinstance(one, v.Lit) and one.value in (1, -1) for one in others)
    if old.sizes is None or len(counts) != len(old.sizes):
        return False
    return all(
        size == 1 or (isinstance(count, v.Lit) and count.value in (1, -1))
        for size, count in zip(old.sizes, counts, strict=True)
    )


def _flat(old: Form, args: v.Args) -> Sizes | None:
    """``flatten()``, ``flatten(1)``, ``torch.flatten(x, 1)``, ``flatten(start_dim=1)``: how many dimensions are left."""
    numbers = [x.value for x in args.pos if isinstance(x, v.Lit) and isinstance(x.value, int)]
    start = args.kw.get("start_dim")
    if isinstance(start, v.Lit):
        numbers = [start.value]
    if "end_dim" in args.kw or len(numbers) > 1 or any(x is v.UNKNOWN for x in args.pos[1:]):
        return None
    if not numbers:
        return (None,)
    at = numbers[0]
    return (None,) * (at + 1) if isinstance(at, int) and 0 <= at < MAX_RANK else None


def of_operator(left: v.Value, right: v.Value, op: str) -> Form:
    """Sizes and element type of the result of an arithmetic operator."""
    a, b = form(left), form(right)
    if op == "@":
        return _of_product(a, b)
    if isinstance(right, v.Lit):
        return Form(a.sizes, _with_number(a.dtype, right, op), least=a.least)
    if isinstance(left, v.Lit):
        return Form(b.sizes, _with_number(b.dtype, left, op), least=b.least)
    dtype = a.dtype if a.dtype == b.dtype and op != "/" else None
    if a.sizes is None or b.sizes is None:
        return Form(None, dtype, least=max(least(a), least(b)))
    if len(a.sizes) != len(b.sizes):
        return Form((a if len(a.sizes) > len(b.sizes) else b).sizes, dtype)
    return Form(_wider(a, b), dtype)


def _of_product(a: Form, b: Form) -> Form:
    """A product of matrices: of the last two dimensions of each one is summed over, or the only one of a vector."""
    dtype = a.dtype if a.dtype == b.dtype else None
    if a.sizes is None or b.sizes is None:
        return Form(None, dtype, least=max(least(a), least(b), 1) - 1)
    if len(a.sizes) < 2 or len(b.sizes) < 2:
        return Form((None,) * (max(len(a.sizes), len(b.sizes)) - 1), dtype)
    batches = max(len(a.sizes), len(b.sizes)) - 2
    return Form(((None,) * batches) + (a.sizes[-2], b.sizes[-1]), dtype)


_OPERANDS = ("other", "exponent", "end", "weight", "tensor1", "tensor2", "y")
"""Keywords under which functions of several tensors take those after the first one."""


def _operands(first: v.Value, args: v.Args) -> list[v.Value] | None:
    """The inputs of a function, or method, of several tensors; None where they are not known."""
    if args.star or args.dstar:
        return None
    others = args.pos[1:] if args.pos and args.pos[0] is first else args.pos
    return [first, *others, *(args.kw[name] for name in _OPERANDS if name in args.kw)]


def _of_two(first: v.Value, args: v.Args, op: str) -> Sizes | None:
    operands = _operands(first, args)
    return of_operator(operands[0], operands[1], op).sizes if operands and len(operands) > 1 else None


def _broadcast(first: v.Value, args: v.Args) -> Sizes | None:
    """The sizes of what is computed of several tensors, or numbers, element by element."""
    operands = _operands(first, args)
    if operands is None or len(operands) < 2:
        return None
    known = form(operands[0])
    if not isinstance(operands[0], v.Lit) and not is_number(operands[0]) and known.sizes is None:
        return None
    for one in operands[1:]:
        if isinstance(one, v.Lit) or is_number(one):
            continue
        other = form(one)
        if other.sizes is None:
            return None
        if known.sizes is None or len(known.sizes) < len(other.sizes):
            known = other
        elif len(known.sizes) == len(other.sizes):
            known = Form(_wider(known, other))
    return known.sizes


def _with_number(dtype: str | None, number: v.Lit, op: str) -> str | None:
    """The element type of a tensor and a number together."""
    if dtype is None:
        return FLOATING if isinstance(number.value, float) else None
    if not is_dtype(dtype, "integer"):
        return dtype
    if op == "/" or not isinstance(number.value, int):
        return "float32"
    return dtype if dtype != "bool" else "int64"


def of_item(old: Form, index: v.Value) -> Sizes | None:
    """The sizes of ``tensor[index]``."""
    if old.sizes is None:
        return None
    taken: list[int | None] = []
    at, chosen = 0, 0
    axes = _axes(index)
    for one in axes:
        if isinstance(one, v.Lit) and one.value is None:
            taken.append(1)
            continue
        if one is v.ELLIPSIS:
            others = sum(x is not v.ELLIPSIS and v.is_none(x) is not True for x in axes)
            end = max(at, at + len(old.sizes) - others)
            taken.extend(old.sizes[at:end])
            at = end
            continue
        at += 1
        if isinstance(one, v.Obj) and one.api == v.SLICE:
            taken.append(None)
        elif isinstance(one, v.Obj) and one.type == TENSOR and _stands_for_one(form(one)):
            chosen = max(chosen, least(form(one)))
        elif isinstance(one, v.Items) and one.kind == "l" and one.elts and all(map(is_number, one.elts)):
            chosen = max(chosen, 1)
        elif not (isinstance(one, v.Lit) and isinstance(one.value, int)):
            return None
    left = old.sizes[at:]
    # Where the dimensions of index tensors stand depends on what is between them.
    sizes = (*((None,) * (chosen + len(taken))), *left) if chosen else (*taken, *left)
    return sizes if at <= len(old.sizes) and len(sizes) <= MAX_RANK else None


def keeps_last(old: Form, index: v.Value) -> bool:
    """Whether ``tensor[index]`` has the last dimension of a tensor, which is one of one element: rows are taken."""
    if old.sizes is None or len(old.sizes) < MATRIX or old.sizes[-1] != 1:
        return False
    return not isinstance(index, v.Items) and form(index).dtype not in MASKS


def _axes(index: v.Value) -> Sequence[v.Value]:
    """What an index has for each dimension."""
    return index.elts if isinstance(index, v.Items) and index.kind == "t" else (index,)


def _stands_for_one(index: Form) -> bool:
    """Whether an index tensor of known rank stands for one dimension: a mask stands for as many as it has."""
    if index.sizes is None:
        return False
    return len(index.sizes) == 1 or (
        index.dtype is not None and is_dtype(index.dtype, "integer") and index.dtype != "bool"
    )


def least_of_item(old: Form, index: v.Value) -> int:
    """How many dimensions ``tensor[index]`` has at least."""
    kept = added = fewer = 0
    for one in _axes(index):
        if isinstance(one, v.Lit) and one.value is None:
            added += 1
        elif isinstance(one, v.Obj) and one.api == v.SLICE:
            kept += 1
        elif isinstance(one, v.Lit) and type(one.value) is int:
            fewer += 1
        elif one is not v.ELLIPSIS:
            # A mask stands for several dimensions.
            return kept + added
    return max(kept, least(old) - fewer) + added


def added_dimension(entry: TensorEntry, old: Form, args: v.Args) -> int | None:
    """The dimension of one element of what a call gives, where its sizes are not known: ``unsqueeze(1)``,
    ``argmax(1, keepdim=True)``, ``tensor([[x]])``."""
    if entry.sizes == "input":
        return old.single
    if entry.sizes == "data":
        return _literal(args.get("data", 0)).single
    if entry.sizes == "joined":
        at = _dimension(args)
        if old.single is None or at is None or at < 0:
            return None
        # What is joined along the first dimension has others.
        return old.single if 0 <= old.single != at or (at == 0 and old.single < 0) else None
    if entry.along is not None:
        return _kept_dimension(entry.along, args)
    kept = args.kw.get("keepdim")
    if entry.sizes != "widened" and (kept is None or v.truth(kept) is not True):
        return None
    named = args.kw.get("dim")
    places = [
        one.value
        for one in ([named] if named is not None else args.pos)
        if isinstance(one, v.Lit) and isinstance(one.value, int) and not isinstance(one.value, bool)
    ]
    return places[0] if len(places) == 1 else None


def _kept_dimension(along: Other, args: v.Args) -> int | None:
    """The dimension of one element that a reduction keeps: ``max(1, True)``, ``kthvalue(3, keepdim=True)``."""
    kept = args.get("keepdim", None if along.pos is None else along.pos + 1)
    named = args.get(along.arg, along.pos)
    at = named.value if isinstance(named, v.Lit) else along.default if named is None else None
    known = kept is not None and v.truth(kept) is True and type(at) is int
    return at if known and not (isinstance(named, v.Lit) and named.option) else None


def are_positions_known(elements: list[v.Value]) -> bool:
    """Whether elements are numbers that are written down, counted from the start, none of them twice."""
    found: set[int] = set()
    for one in elements:
        known = one.value if isinstance(one, v.Lit) and not one.option and one.instead is None else None
        if not isinstance(known, int) or known < 0 or known in found:
            return False
        found.add(known)
    return True


def has_equal_numbers(sequence: v.Value | None) -> bool:
    """Whether a sequence of whole numbers that are written down has one of them several times."""
    elements = sequence.elts if isinstance(sequence, v.Items) and not sequence.open else []
    numbers = [one.value for one in elements if isinstance(one, v.Lit) and type(one.value) is int]
    return len(numbers) == len(elements) and len(set(numbers)) < len(numbers)


def is_whole_number(value: v.Value) -> bool:
    """Whether a value is surely one whole number of Python, whichever."""
    if isinstance(value, v.Lit):
        return isinstance(value.value, int)
    if isinstance(value, v.AnyOf):
        return all(map(is_whole_number, value.values))
    return isinstance(value, v.Obj) and value.api in _NUMBERS


NUMBER = "builtins.int"
"""What stands for a number of which only that is known."""
OPERATOR = "tf.Tensor.operator"
"""What stands for what an operator gives of a tensor of TensorFlow."""
_NUMBERS = (NUMBER, "builtins.len")


def dimension_of_item(index: v.Value) -> int | None:
    """The dimension of one element that ``tensor[:, None]`` adds, or that ``tensor[:, k:k + 1]`` and ``tensor[:, [k]]``
    leave. Behind an ellipsis, as in ``tensor[..., None]``, dimensions are counted from the last one."""
    axes = _axes(index)
    first = _first_of_one(axes)
    if first is not None or v.ELLIPSIS not in axes:
        return first
    last = _first_of_one(axes[::-1])
    return None if last is None else -1 - last


def _first_of_one(axes: Sequence[v.Value]) -> int | None:
    for at, one in enumerate(axes):
        if _is_of_one(one):
            return at
        if one is v.ELLIPSIS or not v.is_slice(one):
            return None
    return None


def _is_of_one(index: v.Value) -> bool:
    """Whether an index gives a dimension of one element, or of none where there is none."""
    if isinstance(index, v.Items):
        return (
            index.kind == "l" and not index.open and len(index.elts) == 1 and isinstance(index.elts[0], v.Lit)
        )
    return index is v.SLICE_OF_ONE or (isinstance(index, v.Lit) and index.value is None)


def is_single(known: Form, dimension: object, beside: Form = NOTHING) -> bool | None:
    """Whether a tensor has one element along a dimension; None for unknown. It has as many dimensions as the one that it
    is used ``beside``."""
    if not isinstance(dimension, int):
        return None
    if known.sizes is not None and -len(known.sizes) <= dimension < len(known.sizes):
        size = known.sizes[dimension]
        if size is not None:
            return size == 1
    if known.single is None or known.single == dimension:
        return None if known.single is None else True
    sizes = known.sizes if known.sizes is not None else beside.sizes
    if sizes is not None:
        return True if sizes and known.single % len(sizes) == dimension % len(sizes) else None
    # The second and the last dimension are one in a matrix, of which a column takes one element in each row, as the third
    # and the last are one in a batch of matrices.
    last, named = sorted((known.single, dimension))
    as_few = max(known.least, beside.least) <= named + 1
    return True if last == -1 and named >= 1 and as_few else None


def _wider(a: Form, b: Form) -> Sizes | None:
    if a.sizes is None or b.sizes is None:
        return None
    return tuple(x if x == y else None for x, y in zip(a.sizes, b.sizes, strict=True))


def _given_sizes(args: v.Args) -> Sizes | None:
    """Sizes that are given one by one, as one sequence, or as ``size=``."""
    named = args.kw.get("size")
    if named is not None:
        return _sizes(named)
    if not args.pos:
        return None
    if len(args.pos) == 1 and not isinstance(args.pos[0], v.Lit):
        return (None,) if _is_one_size(args.pos[0]) else _sizes(args.pos[0])
    if any(isinstance(one, v.Items) for one in args.pos):
        return None
    return tuple(_size(one) for one in args.pos)


def _is_one_size(value: v.Value) -> bool:
    """Whether a value is one number that says how many elements there are: ``len(x)``, ``x.size(1)``, ``x.numel()``."""
    if not isinstance(value, v.Obj) or is_number(value):
        return is_number(value)
    name = value.api.rpartition(".")[2]
    return name in _COUNTS or (name == "size" and bool(_numbers(list(value.args.values()))))


_COUNTS = frozenset({"numel", "nelement"})
"""Methods of tensors that give the number of all elements, whatever the receiver is."""


def _sizes(value: v.Value | None) -> Sizes | None:
    if isinstance(value, v.Items) and not value.open:
        return tuple(_size(one) for one in value.elts)
    if isinstance(value, v.Member) and value.name == "shape":
        return form(value.owner).sizes
    if isinstance(value, v.Obj) and value.api == f"{TENSOR}.size" and not list(value.args.values()):
        return form(value.owner).sizes
    return None


def _size(value: v.Value) -> int | None:
    """A size that stands in the program; an option's default is none."""
    known = isinstance(value, v.Lit) and not value.option
    if known and isinstance(value, v.Lit) and isinstance(value.value, int) and value.value >= 0:
        return int(value.value)
    return None


def _range_dtype(args: v.Args) -> str | None:
    """Integers count in integers."""
    bounds = [x for x in args.pos if isinstance(x, v.Lit)]
    if len(bounds) < len(args.pos):
        return None
    return "float32" if any(isinstance(x.value, float) for x in bounds) else "int64"


_PYTHON_NUMBERS = {
    NUMBER: "int64",
    "builtins.len": "int64",
    "builtins.float": "float32",
    "builtins.bool": "bool",
}
"""What stands for numbers of Python of which only the type is known, with the element types of tensors of them."""


def is_number(value: v.Value) -> bool:
    """Whether a value is a number of Python."""
    if isinstance(value, v.Obj):
        return value.api in _PYTHON_NUMBERS
    return isinstance(value, v.Lit) and isinstance(value.value, (bool, int, float))


def _literal(data: v.Value | None) -> Form:
    """The form of ``torch.tensor`` of nested lists of numbers."""
    sizes: list[int | None] = []
    while isinstance(data, v.Items):
        if not data.elts:
            return NOTHING
        sizes.append(None if data.open else len(data.elts))
        # Rows have one length: what is known of one is known of all.
        data = next((one for one in data.elts if isinstance(one, v.Items)), data.elts[0])
    if isinstance(data, v.AnyOf) and all(map(is_number, data.values)):
        kinds = {_literal(one).dtype for one in data.values}
        return Form(tuple(sizes), kinds.pop() if len(kinds) == 1 else None)
    if isinstance(data, v.Obj) and is_number(data):
        return Form(tuple(sizes), _PYTHON_NUMBERS[data.api])
    if not isinstance(data, v.Lit):
        # Maybe a sequence: how many dimensions there are is not known.
        return Form(single=max((at for at, size in enumerate(sizes) if size == 1), default=None))
    if isinstance(data.value, str):
        return NOTHING
    kind = "bool" if isinstance(data.value, bool) else "float32" if isinstance(data.value, float) else None
    return Form(tuple(sizes), kind or ("int64" if isinstance(data.value, int) else None))
