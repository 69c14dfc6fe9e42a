"""Keys that options choose, in what a program looks them up in."""

from __future__ import annotations

from d9mlint.interp import values as v


def has_no_choice(held: v.Mapping | v.Items, key: v.Value) -> bool:
    """Whether a dictionary or a sequence of known texts has none of those that an option may choose."""
    several = v.alternatives(key)
    texts = list(held.items) if isinstance(held, v.Mapping) else [_text(one) for one in held.elts]
    if held.open or not texts or not all(isinstance(one, str) for one in texts):
        return False
    chosen = [one for one in several if isinstance(one, v.Lit) and (len(several) > 1 or one.choices)]
    return len(chosen) == len(several) and not any(
        one in texts for known in chosen for one in (known.value, *known.choices)
    )


def _text(value: v.Value) -> str | None:
    return value.value if isinstance(value, v.Lit) and isinstance(value.value, str) else None
