"""Sizes as recipes ask for them, and what they ask of the call that they are to run."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

MOST = 1 << 24
"""Elements of a tensor of a call's own shape; larger ones are reduced."""


def size(scale: float, low: int, high: int) -> int:
    """The size at ``scale`` (0: ``low``, 1: ``high``), geometrically between; powers of two stay such."""
    if scale <= 0 or low == high:
        return low
    if scale >= 1:
        return high
    between = low * math.pow(high / low, scale)
    if low & (low - 1) == 0 and high & (high - 1) == 0:
        return 1 << round(math.log2(between))
    return round(between)


def growth(multiprocessors: int) -> int:
    """How many times more elements a GPU gets than one of 64 multiprocessors: a power of two from 1 to 4."""
    return min(4, max(1, 1 << round(math.log2(max(multiprocessors, 1) / 64)))) if multiprocessors > 64 else 1


def sizes(scale: float, multiprocessors: int | None) -> dict[str, Any]:
    """``N`` and ``M`` of recipes: a size, and a number of elements, which grows with the GPU. Without
    ``multiprocessors`` it is a CPU, where the third argument, if given, is the upper end."""
    grow = growth(multiprocessors) if multiprocessors is not None else 1

    def sized(low: int, high: int, cpu: int | None = None) -> int:
        return size(scale, low, cpu if multiprocessors is None and cpu is not None else high)

    def many(low: int, high: int, cpu: int | None = None) -> int:
        return sized(low, high * grow, cpu)

    return {"N": sized, "M": many}


def asked(
    given: Mapping[str, Any],
    normal: Callable[..., Any],
    integers: Callable[..., Any],
    tensor: Callable[[Any, str], Any],
) -> dict[str, Callable[..., Any]]:
    """``known``, ``options``, ``shape``, ``index`` and ``optional`` of recipes, see ``recipes.Recipe``, with what was
    taken from a call (``evidence.Given``). ``normal`` and ``integers`` draw tensors; ``tensor`` makes one of a
    sequence or tensor in a dtype (empty: that which it has)."""
    values, indices, dtypes = (given.get(name, {}) for name in ("values", "index", "dtypes"))
    absent = given.get("absent", ())
    shapes = reduced(given.get("shapes", {}), [values, *indices.values()], given.get("most") or MOST)

    def known(name: str, value: Any, default: Any = None) -> Any:
        return values.get(name, default if name in absent else value)

    def options(**usual: Any) -> dict[str, Any]:
        found = {name: values.get(name, value) for name, value in usual.items() if name not in absent}
        return {name: value for name, value in found.items() if value is not None}

    def shape(name: str, *sizes: int) -> tuple[int, ...]:
        return shapes.get(name, sizes)

    def index(name: str, high: int, *sizes: int, low: int = 0) -> Any:
        own = indices[name] if name in indices else integers(high - low, *shape(name, *sizes)) + low
        return tensor(own, dtypes.get(name, ""))

    def optional(name: str) -> Any:
        return normal(*shapes[name]) if name in shapes else None

    return {"known": known, "options": options, "shape": shape, "index": index, "optional": optional}


def spread(value: Any, count: int) -> tuple[Any, ...]:
    """A number for each of several dimensions: those that are given, or the one for all."""
    found = tuple(value) if isinstance(value, (list, tuple)) else (value,)
    return found * count if len(found) == 1 else found


def along(shape: Sequence[int], dim: int, length: int) -> tuple[int, ...]:
    """A shape with another length of one dimension."""
    found = list(shape)
    found[dim] = length
    return tuple(found)


def reduced(
    shapes: Mapping[str, Sequence[int]], kept: Iterable[Any] = (), most: int = MOST
) -> dict[str, tuple[int, ...]]:
    """Shapes of at most ``most`` elements each. A side is halved wherever a tensor has it, so that what fits together
    still does; sides that are named among options or have literal elements (``kept``) are halved last."""
    found = {name: tuple(shape) for name, shape in shapes.items()}
    named = set(_numbers(list(kept))) | {len(one) for one in kept if isinstance(one, (list, tuple))}
    while large := [shape for shape in found.values() if math.prod(shape) > most]:
        sides = [side for side in large[0] if side > 1]
        side = max([side for side in sides if side not in named] or sides)
        found = {n: tuple(-(-side // 2) if s == side else s for s in shape) for n, shape in found.items()}
    return found


def _numbers(value: Any) -> list[int]:
    if isinstance(value, Mapping):
        return _numbers(list(value.values()))
    if isinstance(value, (list, tuple)):
        return [number for one in value for number in _numbers(one)]
    return [value] if isinstance(value, int) else []
