"""What a shared library of x86-64 Linux says about itself: sections, imports, functions, call sites, strings.

Only what the wheel scanner needs, in plain Python: released wheels are stripped, so a call is found by its
machine code (a call of a PLT stub, or through the GOT) and its function by the unwind table.
"""

from __future__ import annotations

import mmap
import re
import struct
from bisect import bisect_right
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

PRINTABLE = re.compile(rb"[\x20-\x7e]+")
EXECUTABLE = 4
_BACK = 192
"""How far before a call its string argument is looked for, in bytes."""
_ARGUMENTS = (0x3D, 0x35)
"""ModRM bytes of ``lea reg, [rip + displacement]`` for the registers of the first two arguments."""


class Section(NamedTuple):
    """A section by name, address in memory, offset in the file, size, flags and link."""

    name: str
    address: int
    offset: int
    size: int
    flags: int
    link: int


class Library:
    """A mapped ELF file of a 64-bit little-endian machine."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            self.data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        if self.data[:6] != b"\x7fELF\x02\x01":
            raise ValueError(f"{path.name} is not a 64-bit little-endian ELF file")

    def close(self) -> None:
        """Unmap the file."""
        self.data.close()

    @cached_property
    def sections(self) -> dict[str, Section]:
        """All sections by name."""
        (start,) = struct.unpack_from("<Q", self.data, 40)
        size, count, names = struct.unpack_from("<HHH", self.data, 58)
        heads = [struct.unpack_from("<IIQQQQIIQQ", self.data, start + i * size) for i in range(count)]
        strings = heads[names][4]
        found = [
            Section(self._name(strings + h[0]), h[3], h[4], 0 if h[1] == 8 else h[5], h[2], h[6])
            for h in heads
        ]
        return {section.name: section for section in found}

    def _name(self, offset: int) -> str:
        return self.data[offset : self.data.find(b"\0", offset)].decode("utf-8", "replace")

    @cached_property
    def symbols(self) -> list[tuple[str, int]]:
        """The dynamic symbols in order, as name and address (0 for an import)."""
        table, strings = self.sections[".dynsym"], self.sections[".dynstr"]
        rows = struct.iter_unpack("<IBBHQQ", self.data[table.offset : table.offset + table.size])
        return [(self._name(strings.offset + row[0]), row[4]) for row in rows]

    @cached_property
    def _by_address(self) -> dict[int, str]:
        return {address: name for name, address in self.symbols if address}

    def imports(self, part: str) -> bool:
        """Whether a dynamic symbol contains ``part``, without reading the whole table."""
        strings = self.sections.get(".dynstr")
        if strings is None:
            return False
        return self.data.find(part.encode(), strings.offset, strings.offset + strings.size) >= 0

    def _slots(self, part: str) -> set[int]:
        """The GOT slots of the symbols whose name contains ``part``."""
        wanted = {index for index, (name, _) in enumerate(self.symbols) if part in name}
        slots: set[int] = set()
        for name in (".rela.plt", ".rela.dyn"):
            table = self.sections.get(name)
            if table is None:
                continue
            for where, info, _ in struct.iter_unpack(
                "<QQq", self.data[table.offset : table.offset + table.size]
            ):
                if info >> 32 in wanted:
                    slots.add(where)
        return slots

    def _stubs(self, slots: set[int]) -> set[int]:
        """The PLT stubs that jump through one of the slots."""
        stubs: set[int] = set()
        for name in (".plt", ".plt.sec", ".plt.got"):
            table = self.sections.get(name)
            if table is None:
                continue
            code = self.data[table.offset : table.offset + table.size]
            for found in re.finditer(rb"\xff\x25(....)", code, re.DOTALL):
                end = table.address + found.end()
                if end + int.from_bytes(found[1], "little", signed=True) in slots:
                    stubs.add((table.address + found.start()) & ~0xF)
        return stubs

    def calls(self, part: str) -> list[int]:
        """The addresses of all calls and tail calls of functions whose symbol contains ``part``."""
        slots = self._slots(part)
        targets = self._stubs(slots) | {a for name, a in self.symbols if a and part in name}
        sites: list[int] = []
        if not targets and not slots:
            return sites
        low, high = (min(targets), max(targets)) if targets else (0, -1)
        for section in self.sections.values():
            if not section.flags & EXECUTABLE or section.name.startswith(".plt"):
                continue
            code = self.data[section.offset : section.offset + section.size]
            base = section.address
            for opcode in (0xE8, 0xE9):
                at = code.find(opcode)
                while 0 <= at < len(code) - 5:
                    target = base + at + 5 + int.from_bytes(code[at + 1 : at + 5], "little", signed=True)
                    if low <= target <= high and target in targets:
                        sites.append(base + at)
                    at = code.find(opcode, at + 1)
            for found in re.finditer(rb"\xff[\x15\x25](....)", code, re.DOTALL):
                end = base + found.end()
                if end + int.from_bytes(found[1], "little", signed=True) in slots:
                    sites.append(base + found.start())
        return sorted(sites)

    @cached_property
    def functions(self) -> list[int]:
        """The start addresses of all functions, from the search table of the unwind information."""
        head = self.sections[".eh_frame_hdr"]
        version, pointer, count_as, entry_as = self.data[head.offset : head.offset + 4]
        if (version, count_as, entry_as) != (1, 0x03, 0x3B) or pointer & 0x0F not in (0x0B, 0x03):
            return []
        (count,) = struct.unpack_from("<I", self.data, head.offset + 8)
        table = self.data[head.offset + 12 : head.offset + 12 + 8 * count]
        return [head.address + start for start, _ in struct.iter_unpack("<ii", table)]

    def function(self, address: int) -> tuple[int, int]:
        """Start and end of the function around an address."""
        index = bisect_right(self.functions, address)
        start = self.functions[index - 1] if index else 0
        end = self.functions[index] if index < len(self.functions) else address + 1
        return start, end

    def symbol(self, address: int) -> str:
        """The mangled name of the function around an address; empty where it is not exported."""
        return self._by_address.get(self.function(address)[0], "")

    def offset(self, address: int) -> int | None:
        """Where an address stands in the file."""
        for section in self.sections.values():
            if section.address and section.address <= address < section.address + section.size:
                return section.offset + address - section.address
        return None

    def string(self, address: int) -> str | None:
        """The printable text of at least four characters that starts at an address."""
        at = self.offset(address)
        if at is None:
            return None
        found = PRINTABLE.match(self.data, at, at + 400)
        if found is None or len(found[0]) < 4 or self.data[found.end() : found.end() + 1] != b"\0":
            return None
        return found[0].decode()

    def references(self, start: int, end: int) -> Iterator[tuple[int, int, str]]:
        """Strings whose address is loaded between two addresses: where, register (ModRM), text."""
        at = self.offset(start)
        if at is None:
            return
        code = self.data[at : at + end - start]
        for found in re.finditer(
            rb"(?=[\x48\x4c]\x8d([\x05\x0d\x15\x1d\x25\x2d\x35\x3d])(....))", code, re.DOTALL
        ):
            next_one = start + found.start() + 7
            text = self.string(next_one + int.from_bytes(found[2], "little", signed=True))
            if text is not None:
                yield start + found.start(), found[1][0], text

    def argument(self, site: int) -> str | None:
        """The text that is passed to the call at ``site`` as a C string or a string view.

        Of the strings whose address is loaded shortly before, the one counts whose length is loaded too, as
        for a string view; else the last one that is loaded into an argument register, or copied into one.
        """
        end = self.offset(site)
        if end is None:
            return None
        window = self.data[max(0, end - _BACK) : end]
        loads = list(self.references(site - _BACK, site))
        for _, _, text in reversed(loads):
            if len(text).to_bytes(4, "little") in window:
                return text
        passed = [
            text
            for where, register, text in loads
            if register in _ARGUMENTS or self._moved_on(where, register)
        ]
        return passed[-1] if passed else None

    def _moved_on(self, where: int, register: int) -> bool:
        """Whether what a ``lea`` loads is copied into the register of an argument right after it, as code that was
        compiled without optimization does."""
        at = self.offset(where)
        if at is None:
            return False
        after = self.data[at + 7 : at + 10]
        copies = {0xC0 | (register & 0x38) | argument for argument in (6, 7)}
        return len(after) == 3 and after[0] & 0xFB == 0x48 and after[1] == 0x89 and after[2] in copies


def texts(data: mmap.mmap, pattern: bytes) -> list[str]:
    """All NUL-terminated printable strings of a file that contain ``pattern`` (a regular expression)."""
    found: set[str] = set()
    for match in re.finditer(pattern, data):
        start = data.rfind(b"\0", max(0, match.start() - 2000), match.start()) + 1
        end = data.find(b"\0", match.end())
        text = data[start:end]
        if len(text) <= 2000 and PRINTABLE.fullmatch(text.replace(b"\n", b" ").replace(b"\t", b" ")):
            found.add(text.decode())
    return sorted(found)
