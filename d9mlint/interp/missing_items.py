"""Items that a program takes out of a dict on one of several paths: behind them the key is there or not."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from d9mlint.interp import values as v

_API = "an item that may be missing"
_MISSING = v.Obj(_API)
"""Stands beside the literals that an item holds where it is there."""


def _is_mark(value: v.Value) -> bool:
    return isinstance(value, v.Obj) and value.api == _API


def may_be_missing(value: v.Value) -> bool:
    """Whether an item was taken out on one of several paths."""
    return isinstance(value, v.AnyOf) and any(map(_is_mark, value.values))


def present(value: v.Value) -> v.Value:
    """What an item holds where it is there."""
    return found_or(value, None)


def found_or(value: v.Value, default: v.Value | None) -> v.Value:
    """What is found for a key: the item, or the default where the item may be missing."""
    if not may_be_missing(value):
        return value
    known = [one for one in v.alternatives(value) if not _is_mark(one)]
    option = value.option if isinstance(value, v.AnyOf) else ""
    if option and isinstance(default, v.Lit):
        # The option has this value by default.
        return v.Lit(default.value, option)
    return v.join(known if default is None else [*known, default])


def maybe_missing(values: list[v.Value]) -> v.Value:
    """An item that holds one of these literals, or that is not there."""
    return v.AnyOf((*v.alternatives(v.join(values)), _MISSING))


def is_there(value: v.Value) -> v.Value:
    """Whether an item is there."""
    if not may_be_missing(value):
        return v.TRUE
    option = value.option if isinstance(value, v.AnyOf) else ""
    return v.Lit(False, option) if option else v.UNKNOWN


def there_if_given(value: v.Value, option: str) -> v.Value | None:
    """An item that is there only where an option is given, which is not so by default; None for what is not followed."""
    known = v.alternatives(present(value))
    followed = all(
        isinstance(one, v.Lit) or one is v.UNKNOWN or (isinstance(one, v.Obj) and one.api == v.GIVEN)
        for one in known
    )
    return v.AnyOf((_MISSING, *known), option) if followed else None


def take_over(into: MutableMapping[Any, v.Value], held: Mapping[Any, v.Value]) -> None:
    """A dict takes over items: where one may be missing, what stood under its key may stay."""
    for key, value in held.items():
        into[key] = found_or(value, into[key]) if may_be_missing(value) and key in into else value


def take_out(owner: v.Mapping, key: v.Lit, always: bool) -> bool:
    """Take the item of a key out of a dict, ``always`` or on one of several paths; False where it is not known what that
    leaves."""
    if always:
        owner.items.pop(key.value, None)
        return True
    found: v.Value | None = owner.items.get(key.value)
    if found is None or not all(isinstance(one, v.Lit) or _is_mark(one) for one in v.alternatives(found)):
        return False
    owner.items[key.value] = v.AnyOf((*v.alternatives(present(found)), _MISSING))
    return True
