"""Strings that are put together from known ones: names of classes, modules and commands often are."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from d9mlint.interp import known_texts
from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

LONGEST = 4096
"""Characters of a string that is put together."""

_PURE: dict[str, Callable[..., Any]] = {
    name: getattr(str, name)
    for name in (
        "capitalize",
        "count",
        "endswith",
        "find",
        "index",
        "isdigit",
        "lower",
        "lstrip",
        "partition",
        "removeprefix",
        "removesuffix",
        "replace",
        "rfind",
        "rindex",
        "rpartition",
        "rsplit",
        "rstrip",
        "split",
        "startswith",
        "strip",
        "swapcase",
        "title",
        "upper",
    )
}


def plain_value(value: v.Value) -> Any:
    """A literal or a tuple of literals as Python has it; Ellipsis for anything else."""
    if isinstance(value, v.Lit) and (value.value is None or isinstance(value.value, (str, int, float))):
        return value.value
    if isinstance(value, v.Items) and value.kind == "t" and not value.open:
        inner = [plain_value(one) for one in value.elts]
        return ... if ... in inner else tuple(inner)
    return ...


def _as_value(result: Any, option: str) -> v.Value:
    if isinstance(result, (list, tuple)):
        kind = "l" if isinstance(result, list) else "t"
        return v.Items(kind, [v.Lit(one, option) for one in result])
    return v.Lit(result, option)


def _option(*values: v.Value) -> str:
    return next((option for one in values if (option := v.option_of(one))), "")


def _method(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """A method of a known string with known arguments."""
    if not isinstance(owner, v.Lit) or args.star or args.dstar:
        return None
    pos = [plain_value(one) for one in args.pos]
    kw = {key: plain_value(one) for key, one in args.kw.items()}
    if ... in pos or ... in kw.values():
        return None
    try:
        result = _PURE[name](owner.value, *pos, **kw)
    except (TypeError, ValueError):
        return None
    if isinstance(result, str) and len(result) > LONGEST:
        return None
    return _as_value(result, _option(owner, *args.values()))


_ASKED: dict[str, Callable[[v.Obj, str], bool | None]] = {
    "startswith": known_texts.begins,
    "endswith": known_texts.ends,
}


def _asked(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``text.startswith("fc.")`` of a text of which only the beginning is known."""
    if not isinstance(owner, v.Obj) or len(args.pos) != 1:
        return None
    answers = [None if one is None else _ASKED[name](owner, one) for one in known_texts.each(args.pos[0])]
    found = known_texts.any_of(answers)
    return None if found is None else v.Lit(found, v.option_of(args.pos[0]))


def _format(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``"{}.{}".format(a, b)`` without attributes, items, widths or conversions."""
    if not isinstance(owner, v.Lit) or args.star or args.dstar:
        return None
    pos = [plain_value(one) for one in args.pos]
    kw = {key: plain_value(one) for key, one in args.kw.items()}
    if any(not isinstance(one, (str, int)) for one in (*pos, *kw.values())):
        return None
    if any(mark in owner.value for mark in (".", "[", ":", "!")) and _has_format_specs(owner.value):
        return None
    try:
        text = owner.value.format(*pos, **kw)
    except (IndexError, KeyError, ValueError, AttributeError, TypeError):
        return None
    return v.Lit(text, _option(owner, *args.values())) if len(text) <= LONGEST else None


def _has_format_specs(text: str) -> bool:
    inside = text.replace("{{", "").replace("}}", "").split("{")[1:]
    return any(set(part.partition("}")[0]) & set(".[:!") for part in inside)


def _join(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``".".join(parts)`` of known parts in a known order."""
    given = args.pos[0] if args.pos else None
    if not isinstance(owner, v.Lit) or not isinstance(given, v.Items) or given.open or given.kind == "s":
        return None
    texts = [one.value for one in given.elts if isinstance(one, v.Lit) and isinstance(one.value, str)]
    if len(texts) != len(given.elts) or sum(map(len, texts)) > LONGEST:
        return None
    return v.Lit(owner.value.join(texts), _option(owner, *given.elts))


CONVERSION = re.compile(r"%(?:\(\w*\))?[-+ #0-9.*]*[a-zA-Z%]")
"""Where ``%`` puts a value into a text."""


def format_percent(left: v.Lit, right: v.Value) -> v.Value:
    """``"%s.%s" % (a, b)`` of literals, where only strings and integers are put in."""
    given = plain_value(right)
    parts = given if isinstance(given, tuple) else (given,)
    if any(not isinstance(one, (str, int)) for one in parts) or _has_widths(left.value):
        around = CONVERSION.split(left.value)
        made = v.text(v.Lit(around[0], left.option), v.Lit(around[-1], left.option))
        made.attrs[v.TEMPLATE] = left
        made.attrs[v.WRITTEN] = v.Items("t", [left, *put_in(right)])
        return made
    try:
        text = left.value % parts
    except (TypeError, ValueError):
        return v.UNKNOWN
    return v.Lit(text, _option(left, *put_in(right))) if len(text) <= LONGEST else v.UNKNOWN


def put_in(right: v.Value) -> list[v.Value]:
    """The values that ``text % right`` puts into the text, or which it chooses some of."""
    if isinstance(right, v.Mapping):
        return list(right.items.values())
    return right.elts if isinstance(right, v.Items) else [right]


def _has_widths(text: str) -> bool:
    return any(part[:1] not in ("s", "d", "r") for part in text.replace("%%", "").split("%")[1:])


_MOST_REPEATED = 1
_LONGEST_SUBJECT = 200


def substituted(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``re.sub("^np.", "numpy.", name)`` of short literals, where the pattern has no more than one repetition."""
    given = args.values()
    texts = [one.value for one in given if isinstance(one, v.Lit) and isinstance(one.value, str)]
    if args.kw or args.star or len(texts) != len(given) or len(texts) != _SUB_ARGUMENTS:
        return None
    pattern, new, text = texts
    if len(text) > _LONGEST_SUBJECT or sum(map(pattern.count, "*+{")) > _MOST_REPEATED:
        return None
    try:
        return v.Lit(re.sub(pattern, new, text), _option(*given))
    except (re.error, IndexError):
        return None


_SUB_ARGUMENTS = 3

STRING_METHODS = {
    **{f"str.{name}": _method for name in _PURE},
    **{f"{v.TEXT}.{name}": _asked for name in _ASKED},
    "str.format": _format,
    "str.join": _join,
}
