"""Sizes and element types of tensors, as far as a program shows them.

Only what the conditions of the knowledge base ask: how many dimensions a tensor has, how long they are, and
whether its elements are floating point numbers. Anything else is None, unknown.
"""

from __future__ import annotations

from typing import NamedTuple

from d9mlint.interp import values as v

Sizes = tuple[int | None, ...]

_SIZED = frozenset({"randn", "rand", "zeros", "ones", "empty"})
_FLAT = frozenset({"arange", "linspace", "logspace", "randperm"})
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
_INTEGERS = ("int", "uint", "bool", "qint", "quint")
# Methods whose result has the receiver's sizes.
_ALIKE = frozenset(
    {
        *(
            "to",
            "cuda",
            "cpu",
            "float",
            "double",
            "half",
            "bfloat16",
            "long",
            "int",
            "bool",
            "type",
            "type_as",
        ),
        *(
            "clone",
            "contiguous",
            "detach",
            "detach_",
            "pin_memory",
            "requires_grad_",
            "flip",
            "zero_",
            "fill_",
        ),
        *("abs", "neg", "exp", "log", "sqrt", "relu", "sigmoid", "tanh", "softmax", "log_softmax", "clamp"),
        *(
            "normal_",
            "uniform_",
            "random_",
            "cumsum",
            "cumprod",
            "add_",
            "sub_",
            "mul_",
            "div_",
            "requires_grad",
        ),
        *("scatter_add_", "scatter_", "index_add_", "index_copy_", "scatter_add", "scatter", "index_add"),
    }
)
_RESIZING = frozenset(
    {"resize_", "resize_as_", "squeeze_", "unsqueeze_", "t_", "transpose_", "set_", "swapaxes_"}
)
_CASTS = {"float": "float32", "double": "float64", "half": "float16", "bfloat16": "bfloat16"} | {
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "bool": "bool",
}


class Form(NamedTuple):
    """What is known of a tensor: its sizes (None for an unknown one) and its element type."""

    sizes: Sizes | None = None
    dtype: str | None = None


NOTHING = Form()


def form(value: v.Value) -> Form:
    """What is known of a value that should be a tensor; alternatives must agree."""
    if isinstance(value, v.AnyOf):
        forms = {form(one) for one in value.values}
        return forms.pop() if len(forms) == 1 else NOTHING
    return value.form if isinstance(value, v.Obj) and value.form is not None else NOTHING


def is_dtype(name: str, wanted: str) -> bool:
    """Whether an element type is the wanted one, or one of ``floating``, ``complex`` and ``integer``."""
    if wanted == "floating":
        return name.startswith(("float", "bfloat"))
    if wanted == "complex":
        return name.startswith("complex")
    if wanted == "integer":
        return name.startswith(_INTEGERS)
    return name == wanted


def dtype_name(value: v.Value | None) -> str | None:
    """The element type that ``torch.float64`` or ``"float64"`` names."""
    if isinstance(value, v.Lit) and isinstance(value.value, str):
        name = value.value
    elif isinstance(value, v.Ext):
        name = value.name
    else:
        return None
    name = name.rpartition(".")[2]
    return _DTYPES.get(name, name)


def of_call(api: str, args: v.Args) -> Form:
    """What is known of the tensor that a function of torch makes."""
    library, _, name = api.rpartition(".")
    if library != "torch" and api != "torch.nn.Parameter":
        return NOTHING
    given = args.kw.get("dtype")
    dtype = dtype_name(given) if given is not None else None
    first = args.get("input", 0) or v.UNKNOWN
    if name.endswith("_like") or name == "Parameter":
        old = form(args.get("data", 0) or v.UNKNOWN) if name == "Parameter" else form(first)
        return Form(old.sizes, dtype if given is not None else old.dtype)
    if args.dstar or args.star:
        return NOTHING
    if name in _SIZED:
        return Form(_given_sizes(args), dtype if given is not None else "float32")
    if name in ("full", "randint"):
        at = 1 if name == "randint" and isinstance(args.get("size", 1), v.Items) else 2
        size = args.get("size", 0 if name == "full" else at)
        made = "int64" if name == "randint" else None
        return Form(_sizes(size) if size is not None else None, dtype if given is not None else made)
    if name in _FLAT:
        made = "int64" if name == "randperm" else None
        return Form((None,), dtype if given is not None else made)
    if name == "eye":
        return Form((None, None), dtype if given is not None else "float32")
    if name in ("tensor", "as_tensor"):
        return _literal(args.get("data", 0), dtype if given is not None else None)
    return NOTHING


def of_method(owner: v.Value, name: str, args: v.Args) -> Form:
    """What is known of the tensor that a method of a tensor gives."""
    old = form(owner)
    dtype = _CASTS.get(name, old.dtype)
    if name in ("to", "type"):
        named = [dtype_name(value) for value in args.values() if isinstance(value, v.Ext)]
        dtype = named[0] if named and named[0] is not None else dtype
        if any(value is v.UNKNOWN for value in args.values()):
            dtype = None
    if name in _ALIKE:
        return Form(old.sizes, dtype)
    if name in ("view", "reshape", "repeat", "expand"):
        return Form(_given_sizes(args), old.dtype)
    if old.sizes is None:
        return NOTHING
    if name in ("permute", "transpose", "swapaxes"):
        return Form((None,) * len(old.sizes), old.dtype)
    if name == "t":
        return Form(old.sizes[::-1], old.dtype)
    if name == "unsqueeze":
        return Form((None,) * (len(old.sizes) + 1), old.dtype)
    if name in ("flatten", "ravel") and not args.values():
        return Form((None,), old.dtype)
    return NOTHING


def of_operator(left: v.Value, right: v.Value) -> Form:
    """What is known of the result of an arithmetic operator."""
    a, b = form(left), form(right)
    if isinstance(right, v.Lit):
        return Form(a.sizes)
    if isinstance(left, v.Lit):
        return Form(b.sizes)
    if a.sizes is None or b.sizes is None:
        return NOTHING
    return Form(
        (a if len(a.sizes) >= len(b.sizes) else b).sizes if len(a.sizes) != len(b.sizes) else _wider(a, b)
    )


def write(owner: v.Value, name: str) -> None:
    """A method of a tensor was called: what was known of the tensor holds no longer where it is resized."""
    if name in _RESIZING and isinstance(owner, v.Obj):
        owner.form = None


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
        return _sizes(args.pos[0])
    if any(isinstance(one, v.Items) for one in args.pos):
        return None
    return tuple(_size(one) for one in args.pos)


def _sizes(value: v.Value) -> Sizes | None:
    if isinstance(value, v.Items) and not value.open:
        return tuple(_size(one) for one in value.elts)
    return None


def _size(value: v.Value) -> int | None:
    """A size that stands in the program; an option's default is none."""
    known = isinstance(value, v.Lit) and not value.option
    if known and isinstance(value, v.Lit) and isinstance(value.value, int) and value.value >= 0:
        return int(value.value)
    return None


def _literal(data: v.Value | None, dtype: str | None) -> Form:
    """The form of ``torch.tensor`` of nested lists of numbers."""
    sizes: list[int | None] = []
    while isinstance(data, v.Items):
        if data.open or not data.elts:
            return Form(None, dtype)
        sizes.append(len(data.elts))
        data = data.elts[0]
    if not isinstance(data, v.Lit) or isinstance(data.value, str):
        return Form(None, dtype)
    kind = "bool" if isinstance(data.value, bool) else "float32" if isinstance(data.value, float) else None
    return Form(tuple(sizes), dtype or kind or ("int64" if isinstance(data.value, int) else None))
