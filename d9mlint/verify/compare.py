"""Byte-for-byte comparison of arrays and how far apart they are. Runs in child processes: it needs NumPy."""

from __future__ import annotations

import hashlib
import math
from typing import Any, NamedTuple

import numpy as np

_FLOATS = {
    "float16": (np.uint16, 15),
    "bfloat16": (np.uint16, 15),
    "float32": (np.uint32, 31),
    "float64": (np.uint64, 63),
}
_PARTS = {"complex64": "float32", "complex128": "float64"}


class Array(NamedTuple):
    """An array on the host as its bytes, C-contiguous, so that NaN payloads and the sign of zero count."""

    dtype: str
    shape: tuple[int, ...]
    data: bytes

    @property
    def digest(self) -> str:
        """SHA-256 of dtype, shape and bytes."""
        return hashlib.sha256(f"{self.dtype}{self.shape}".encode() + self.data).hexdigest()


class Distance(NamedTuple):
    """How far ``b`` is from ``a``: mean relative difference of an element, share of elements that differ,
    largest distance in units in the last place. None where the dtype has no such distance."""

    v_ermv: float | None
    v_c: float
    ulp: int | None


def distance(a: Array, b: Array) -> Distance:
    """The distance of two arrays. Elements where either is NaN count as different when their bytes are, and
    have no ulp; the relative difference leaves out elements where ``a`` is zero or either is not finite."""
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return Distance(None, 1.0, None)
    total = int(np.prod(a.shape, dtype=np.int64))
    if a.data == b.data or total == 0:
        return Distance(0.0 if _real(a.dtype) else None, 0.0, 0 if _real(a.dtype) else None)
    width = len(a.data) // total
    differ = (_rows(a.data, width) != _rows(b.data, width)).any(axis=1)
    share = float(differ.mean())
    kind = _PARTS.get(a.dtype, a.dtype)
    if kind not in _FLOATS:
        return Distance(None, share, None)
    parts = 2 if a.dtype in _PARTS else 1
    unsigned, sign = _FLOATS[kind]
    chosen: Any = np.repeat(differ, parts)
    bits_a, bits_b = (np.frombuffer(x.data, unsigned)[chosen] for x in (a, b))
    values_a, values_b = _values(bits_a, kind), _values(bits_b, kind)
    numbers = ~(np.isnan(values_a) | np.isnan(values_b))
    keys_a, keys_b = _ordered(bits_a[numbers], sign), _ordered(bits_b[numbers], sign)
    gap = np.where(keys_a > keys_b, keys_a - keys_b, keys_b - keys_a)
    usable = np.isfinite(values_a) & np.isfinite(values_b) & (values_a != 0)
    with np.errstate(over="ignore"):
        relative = np.abs(values_a[usable] - values_b[usable]) / np.abs(values_a[usable])
        mean = float(relative.sum() / (total * parts))
    # JSON has no infinity.
    return Distance(mean if math.isfinite(mean) else None, share, int(gap.max()) if gap.size else None)


def _real(dtype: str) -> bool:
    return dtype in _FLOATS or dtype in _PARTS


def _rows(data: bytes, width: int) -> Any:
    return np.frombuffer(data, np.uint8).reshape(-1, width)


def _values(bits: Any, kind: str) -> Any:
    if kind == "bfloat16":
        # The upper half of a float32.
        return (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)
    return bits.view(kind).astype(np.float64)


def _ordered(bits: Any, sign: int) -> Any:
    """Unsigned keys in the order of the numbers, neighbours one apart, both zeros equal."""
    wide = bits.astype(np.uint64)
    magnitude = wide & np.uint64((1 << sign) - 1)
    middle = np.uint64(1 << 63)
    return np.where(wide >> np.uint64(sign) == 1, middle - magnitude, middle + magnitude)


class Tally:
    """What is known of one output after some runs: its first value, all digests, the largest distances."""

    def __init__(self, first: Array) -> None:
        self.first = first
        self.digests = {first.digest: None}
        start = distance(first, first)
        self.v_ermv, self.v_c, self.ulp = start

    def add(self, array: Array) -> None:
        """Take in the result of one more run."""
        self.digests[array.digest] = None
        found = distance(self.first, array)
        self.v_ermv = _largest(self.v_ermv, found.v_ermv)
        self.v_c = max(self.v_c, found.v_c)
        self.ulp = _largest(self.ulp, found.ulp)

    def summary(self, name: str) -> dict[str, Any]:
        """The fields of ``evidence.Output`` and the digests, for counting over processes."""
        return {
            "name": name,
            "dtype": self.first.dtype,
            "shape": list(self.first.shape),
            "distinct": len(self.digests),
            "v_ermv": self.v_ermv,
            "v_c": self.v_c,
            "ulp": self.ulp,
            "digests": list(self.digests),
        }


def _largest(a: Any, b: Any) -> Any:
    """The larger of two, where None is no number."""
    return b if a is None else a if b is None else max(a, b)
