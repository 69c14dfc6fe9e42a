"""JAX keys: splitting a key gives new ones, of which each is an object of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

KEY = "jax.random.key"
"""The class of keys."""
_MOST = 16


def is_key(run: RunView, value: v.Value) -> bool:
    """Whether a value is a key, or an array of keys."""
    return isinstance(value, v.Obj) and (value.type == KEY or run.kb.role(value.api, "makes-key") is not None)


def _split(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``jax.random.split(key, num=2)``: so many keys, where the number is known and small."""
    count = args.get("num", 1)
    number = 2 if count is None else count.value if isinstance(count, v.Lit) else None
    known = isinstance(number, int) and not isinstance(number, bool) and 0 < number <= _MOST
    keys: list[v.Value] = []
    for _ in range(number if known and isinstance(number, int) else 1):
        key = v.Obj(api, KEY, args, node)
        key.file = interp.frame.file
        keys.append(key)
    return v.Items("t", keys, False) if known else None


KEY_MODELS = {"jax.random.split": _split}
