"""Calls of one function in a dynamic library of macOS on arm64, with the strings that are passed to it."""

from __future__ import annotations

import array
import struct
from pathlib import Path
from typing import NamedTuple

_SEGMENT, _SYMBOLS, _DYNAMIC_SYMBOLS = 0x19, 0x2, 0xB
_STUBS = 8
_BACK = 40
"""How many instructions before a call its string argument is looked for."""


class Section(NamedTuple):
    """A section by name, address, offset, size, type, and the two fields that describe stubs."""

    name: str
    address: int
    offset: int
    size: int
    kind: int
    first: int
    width: int


class Image:
    """A Mach-O file for arm64."""

    def __init__(self, path: Path) -> None:
        self.data = path.read_bytes()
        if self.data[:8] != b"\xcf\xfa\xed\xfe\x0c\x00\x00\x01":
            raise ValueError(f"{path.name} is not a Mach-O file for arm64")
        self.sections: list[Section] = []
        self._symbols = self._indirect = (0, 0)
        self._strings = 0
        (count,) = struct.unpack_from("<I", self.data, 16)
        at = 32
        for _ in range(count):
            command, size = struct.unpack_from("<II", self.data, at)
            if command == _SEGMENT:
                self._segment(at)
            elif command == _SYMBOLS:
                offset, number, self._strings = struct.unpack_from("<III", self.data, at + 8)
                self._symbols = (offset, number)
            elif command == _DYNAMIC_SYMBOLS:
                offset, number = struct.unpack_from("<II", self.data, at + 56)
                self._indirect = (offset, number)
            at += size

    def _segment(self, at: int) -> None:
        (count,) = struct.unpack_from("<I", self.data, at + 64)
        for i in range(count):
            start = at + 72 + 80 * i
            name = self.data[start : start + 16].rstrip(b"\0").decode()
            address, size, offset = struct.unpack_from("<QQI", self.data, start + 32)
            flags, first, width = struct.unpack_from("<III", self.data, start + 64)
            self.sections.append(Section(name, address, offset, size, flags & 0xFF, first, width))

    def _targets(self, part: bytes) -> set[int]:
        """The addresses of the functions whose symbol contains ``part``, and of the stubs that lead to them."""
        offset, count = self._symbols
        wanted: set[int] = set()
        found: set[int] = set()
        for i in range(count):
            name, _, _, _, value = struct.unpack_from("<IBBHQ", self.data, offset + 16 * i)
            start = self._strings + name
            if part in self.data[start : self.data.find(b"\0", start)]:
                wanted.add(i)
                found.update([value] if value else [])
        for section in self.sections:
            if section.kind != _STUBS or not section.width:
                continue
            for k in range(section.size // section.width):
                (symbol,) = struct.unpack_from("<I", self.data, self._indirect[0] + 4 * (section.first + k))
                if symbol in wanted:
                    found.add(section.address + k * section.width)
        return found

    def _string(self, address: int) -> str | None:
        for section in self.sections:
            if section.address <= address < section.address + section.size and section.offset:
                start = section.offset + address - section.address
                text = self.data[start : self.data.find(b"\0", start)][:200]
                if len(text) > 3 and all(32 <= byte < 127 for byte in text):
                    return text.decode()
        return None

    def arguments(self, part: str) -> list[str]:
        """The last string that is loaded before each call of a function whose symbol contains ``part``."""
        targets = self._targets(part.encode())
        found: list[str] = []
        for section in self.sections:
            if section.name != "__text":
                continue
            code = array.array("I")
            code.frombytes(self.data[section.offset : section.offset + section.size // 4 * 4])
            for i, word in enumerate(code):
                if word >> 26 not in (0x25, 0x05):
                    continue
                jump = word & 0x3FFFFFF
                jump -= (jump & 0x2000000) << 1
                if section.address + 4 * (i + jump) in targets:
                    found.append(self._loaded(code, i, section.address) or "?")
        return sorted(found)

    def _loaded(self, code: array.array[int], call: int, base: int) -> str | None:
        """The text of the last pair of ADRP and ADD before an instruction that gives one."""
        pages: dict[int, int] = {}
        text = None
        for i in range(max(0, call - _BACK), call):
            word = code[i]
            if word & 0x9F000000 == 0x90000000:
                page = (word >> 29 & 3) | (word >> 5 & 0x7FFFF) << 2
                page -= (page & 1 << 20) << 1
                pages[word & 31] = (base + 4 * i & ~0xFFF) + (page << 12)
            elif word & 0xFFC00000 == 0x91000000 and (word >> 5 & 31) in pages:
                text = self._string(pages[word >> 5 & 31] + (word >> 10 & 0xFFF)) or text
        return text
