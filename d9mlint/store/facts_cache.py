"""Facts on disk, by content: one pack file for all files of a project.

A pack is a checksummed index (digest to place) and the facts, one after another. It is read whole (some
40 bytes a line of code) and replaced whole, by renaming: a reader sees the old pack or the new one, and
of two runs that write at once the later one wins, having taken over what the earlier one wrote.

The pack's name says which facts it can hold: the schema, the code that makes them, libcst's version and
Python's (syntax errors are reported in its words). Whatever is wrong with a pack, it is an empty one.
"""

from __future__ import annotations

import hashlib
import os
import sys
import time
import zlib
from collections.abc import Mapping
from importlib.machinery import PathFinder

import msgspec

from d9mlint.ir.codec import unpack
from d9mlint.ir.nodes import SCHEMA, FileFacts
from d9mlint.store.cache_dir import CacheDir

MAGIC = b"d9mlint facts 1\n"
KEPT_DAYS = 30
"""Facts that no run has asked for in so many days are dropped when the pack is next written."""


class _Entry(msgspec.Struct, array_like=True, gc=False):
    """Where an entry's bytes are behind the index, their checksum, and the day they were last asked for."""

    offset: int
    size: int
    checksum: int
    day: int


_INDEX = msgspec.msgpack.Decoder(dict[str, _Entry])


class Cache:
    """The facts kept below ``directory``.

    ``warning`` is set, once, to what keeps the cache from being written.
    """

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.warning: str | None = None
        self._place = CacheDir(directory)
        self._name = f"facts-{version_key()}.bin"
        self._index: Mapping[str, _Entry] = {}
        self._data = memoryview(b"")
        self._away = False
        self._asked: set[str] = set()
        self._load()

    def get(self, digest: str) -> FileFacts | None:
        """The facts of the content with this digest, or None."""
        if self._away:
            self._load()
        packed = self._packed(digest)
        facts = None if packed is None else unpack(packed)
        if facts is None or facts.digest != digest:
            return None
        self._asked.add(digest)
        return facts

    def let_go(self) -> None:
        """Keep nothing in memory until something is asked for."""
        self._index, self._data, self._away = {}, memoryview(b""), True

    def put(self, new: Mapping[str, bytes]) -> None:
        """Add packed facts, by digest; on disk when this returns, unless ``warning`` says otherwise."""
        if not new:
            return
        self._load()  # another run may have written since
        today = _today()
        kept: dict[str, tuple[bytes | memoryview, int]] = {}
        for digest, entry in self._index.items():
            if digest not in new and (digest in self._asked or entry.day > today - KEPT_DAYS):
                packed = self._packed(digest)
                if packed is not None:
                    kept[digest] = (packed, today if digest in self._asked else entry.day)
        kept.update((digest, (packed, today)) for digest, packed in new.items())
        try:
            self._write(kept)
            self._drop_old_packs()
        except OSError as error:
            self.warning = f"the cache cannot be written: {self.directory}: {error.strerror or error}"

    def _packed(self, digest: str) -> memoryview | None:
        entry = self._index.get(digest)
        if entry is None:
            return None
        packed = self._data[entry.offset : entry.offset + entry.size]
        return packed if len(packed) == entry.size and zlib.crc32(packed) == entry.checksum else None

    def _load(self) -> None:
        self._index, self._data, self._away = {}, memoryview(b""), False
        read = self._place.read(self._name)
        if read is None:
            return
        content = memoryview(read)
        head = len(MAGIC) + 8
        size = int.from_bytes(content[len(MAGIC) : head - 4], "little")
        index = content[head : head + size]
        checksum = int.from_bytes(content[head - 4 : head], "little")
        if content[: len(MAGIC)] != MAGIC or len(index) != size or zlib.crc32(index) != checksum:
            return
        try:
            self._index = _INDEX.decode(index)
        except msgspec.MsgspecError:
            return
        self._data = content[head + size :]

    def _write(self, entries: Mapping[str, tuple[bytes | memoryview, int]]) -> None:
        index: dict[str, _Entry] = {}
        offset = 0
        for digest in sorted(entries):
            packed, day = entries[digest]
            index[digest] = _Entry(offset, len(packed), zlib.crc32(packed), day)
            offset += len(packed)
        encoded = msgspec.msgpack.encode(index)
        sizes = len(encoded).to_bytes(4, "little") + zlib.crc32(encoded).to_bytes(4, "little")
        self._place.write(self._name, [MAGIC, sizes, encoded, *(entries[digest][0] for digest in index)])

    def _drop_old_packs(self) -> None:
        """Packs of other versions, once nobody has used them for long."""
        oldest = (time.time() - KEPT_DAYS * 86400) * 1e9
        for used, name in self._place.files("facts"):
            if used < oldest:
                self._place.remove(name)


def version_key() -> str:
    """Names what facts depend on besides the text: this package's code, libcst and Python."""
    key = hashlib.blake2b(digest_size=8)
    key.update(f"{SCHEMA} {sys.implementation.name} {sys.version_info[:3]}".encode())
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for directory in (os.path.join(package, "frontend"), os.path.join(package, "ir")):
        for name in sorted(os.listdir(directory)):
            if name.endswith(".py"):
                key.update(_content(os.path.join(directory, name)))
    key.update(_libcst_version())
    return key.hexdigest()


def _libcst_version() -> bytes:
    """What tells one libcst from another, without importing it."""
    spec = PathFinder.find_spec("libcst")
    if spec is None or spec.origin is None:
        return b""
    package = os.path.dirname(spec.origin)
    return _content(os.path.join(package, "_version.py")) or _content(spec.origin)


def _content(path: str) -> bytes:
    try:
        with open(path, "rb") as stream:
            return stream.read()
    except OSError:
        return b""


def _today() -> int:
    return int(time.time() // 86400)
