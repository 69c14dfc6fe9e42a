"""Sizes as recipes ask for them."""

from __future__ import annotations

import math
from typing import Any

MOST = 1 << 26
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
