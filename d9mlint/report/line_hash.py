"""The fingerprint by which GitHub code scanning knows a line again: ``primaryLocationLineHash``.

It is a polynomial hash (base 37, modulo 2**64) of the 100 characters from the start of a line on, without
blanks and tabs, with every line end as one line feed, and with a mark (65535) and zeros after the end of
the file; equal hashes are numbered in file order. Characters are UTF-16 code units.
"""

from __future__ import annotations

import array
import sys

BLOCK = 100
BASE = 37
END = 65535
_MASK = (1 << 64) - 1


def line_hashes(data: bytes) -> dict[int, str]:
    """The fingerprint of every line of a file, by 1-based row."""
    units = array.array("H", data.decode("utf-8", "replace").encode("utf-16-le", "surrogatepass"))
    if sys.byteorder == "big":
        units.byteswap()
    kept: list[int] = []
    starts: list[int] = []
    at_start, after_return = True, False
    for unit in [*units, END]:
        if unit in (32, 9) or (after_return and unit == 10):
            after_return = False
            continue
        after_return = unit == 13
        if at_start:
            starts.append(len(kept))
        unit = 10 if unit == 13 else unit
        at_start = unit == 10
        kept.append(unit)
    kept += [0] * BLOCK
    counts: dict[int, int] = {}
    result: dict[int, str] = {}
    for row, start in enumerate(starts, 1):
        value = 0
        for unit in kept[start : start + BLOCK]:
            value = (value * BASE + unit) & _MASK
        counts[value] = counts.get(value, 0) + 1
        result[row] = f"{value:x}:{counts[value]}"
    return result
