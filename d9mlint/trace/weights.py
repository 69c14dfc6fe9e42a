"""Weights of the words of a tensor's digest, see ``digest``."""

from __future__ import annotations

MASK = (1 << 64) - 1

BLOCK = 1 << 14
"""Words that share one weight G: few enough for a core's cache and for torch to stay on the calling thread."""

U_SEED, V_SEED, G_SEED = 0x1D9A, 0x2D9B, 0x3D9C


def splitmix64(number: int) -> int:
    """A well-mixed 64-bit number (Steele, Lea, Flood 2014)."""
    number = (number + 0x9E3779B97F4A7C15) & MASK
    number = ((number ^ (number >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    number = ((number ^ (number >> 27)) * 0x94D049BB133111EB) & MASK
    return number ^ (number >> 31)


def weight(seed: int, index: int) -> int:
    """The odd weight of a position."""
    return splitmix64((seed << 40) + index) | 1
