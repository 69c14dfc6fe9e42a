"""The file format of a recording: what a traced process writes and what ``compare`` reads. Standard library only.

A recording is a directory with one journal for each process that ran tensor operations, and ``run.json``.
A journal is a sequence of chunks, each a letter, a length and a payload:

* ``H``: JSON, once: who wrote it (rank, role, versions);
* ``T``: JSON, new entries of the string tables, by table;
* ``R``: records of 40 bytes;
* ``J``: JSON, an event with details that are not compared;
* ``E``: JSON, once: the process ended on its own. A journal without it was cut short.

Records refer to strings by their number in the process's own tables, so two journals are compared by the
strings and not by the numbers.
"""

from __future__ import annotations

import json
import os
import struct
import traceback
from collections.abc import Iterator
from typing import Any, NamedTuple

from d9mlint.trace.tables import Tables

FORMAT = 1
RECORD = struct.Struct("<BBHIIIIIQQ")
CHUNK = struct.Struct("<cI")
TABLES = ("stream", "name", "path", "shape", "args")

OP, INPUT, RNG, BATCH, STATE, STEP, NOTE = range(1, 8)
KINDS = {
    OP: "operation",
    INPUT: "input",
    RNG: "generator",
    BATCH: "batch",
    STATE: "state",
    STEP: "step",
    NOTE: "note",
}
UNINITIALIZED, COLLECTIVE, DRAWS, BACKWARD, COMPILED = 1, 2, 4, 8, 16
"""Flags of records: read from memory that no recorded operation has written, or has written only a part of it;
result of a collective; draws random numbers; ran in a backward pass; ran inside of a compiled function."""


MASK = (1 << 64) - 1
AT_IMPORT = "draw while a library is imported"
UNSEEDED = "unseeded in a graph"
"""The note of a TensorFlow operation that draws without a seed whenever its graph runs."""


class Record(NamedTuple):
    """One record, with numbers of table entries. ``forward`` is the path of the forward line of a backward
    operation; ``inputs`` says which earlier records made what was read; ``digest`` is of what was written."""

    kind: int
    flags: int
    stream: int
    name: int
    path: int
    forward: int
    shape: int
    args: int
    inputs: int
    digest: int


class Journal:
    """A journal as far as it has been written. ``update`` reads what has been added since."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.header: dict[str, Any] = {}
        self.tables: dict[str, list[str]] = {name: [""] for name in TABLES}
        self.records: list[Record] = []
        self.events: list[dict[str, Any]] = []
        self.end: dict[str, Any] | None = None
        self._offset = 0

    def update(self) -> Journal:
        """Read the whole chunks that were added. Raises OSError."""
        with open(self.path, "rb") as stream:
            stream.seek(self._offset)
            data = stream.read()
        position = 0
        while position + CHUNK.size <= len(data):
            letter, size = CHUNK.unpack_from(data, position)
            start = position + CHUNK.size
            if start + size > len(data):
                break
            self._take(letter, data[start : start + size])
            position = start + size
        self._offset += position
        return self

    def _take(self, letter: bytes, payload: bytes) -> None:
        if letter == b"R":
            self.records += map(Record._make, RECORD.iter_unpack(payload))
        elif letter == b"T":
            for name, entries in json.loads(payload).items():
                self.tables[name] += entries
        elif letter == b"J":
            self.events.append(json.loads(payload))
        elif letter == b"H":
            self.header = json.loads(payload)
        elif letter == b"E":
            self.end = json.loads(payload)

    @property
    def steps(self) -> int:
        """How many optimizer steps were taken."""
        return sum(1 for record in self.records if record.kind == STEP)

    def text(self, table: str, number: int) -> str:
        """An entry of a table; empty where a journal was cut short before it."""
        entries = self.tables[table]
        return entries[number] if number < len(entries) else ""


class Writer:
    """Writes one journal; the first chunk makes the file. Entries that were added to its tables go before the
    records that may refer to them. Not safe for threads: the recorder calls it under its lock."""

    def __init__(self, path: str, header: dict[str, Any], tables: Tables | None = None) -> None:
        self.path, self.header = path, header
        self._tables = tables
        self._file: int | None = None
        self._entries = dict.fromkeys(TABLES, 1)

    @property
    def open(self) -> bool:
        """Whether something has been written, and the journal is not closed."""
        return self._file is not None

    def json(self, letter: bytes, value: Any) -> None:
        """Write a chunk of JSON."""
        self._write(letter, json.dumps(value).encode())

    def records(self, packed: bytes) -> None:
        """Write packed records."""
        if self._tables is not None:
            self._texts(self._tables.texts())
        self._write(b"R", packed)

    def _texts(self, tables: dict[str, list[str]]) -> None:
        new = {name: entries[self._entries[name] :] for name, entries in tables.items()}
        new = {name: entries for name, entries in new.items() if entries}
        if new:
            self.json(b"T", new)
            for name, entries in new.items():
                self._entries[name] += len(entries)

    def failed(self, error: Exception) -> None:
        """Write the event that the tracer has failed."""
        text = "".join(traceback.format_exception(error))
        self.json(b"J", {"failed": f"{type(error).__name__}: {error}", "traceback": text})

    def _write(self, letter: bytes, payload: bytes) -> None:
        if self._file is None:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC
            self._file = os.open(self.path, flags, 0o600)
            self.json(b"H", {"format": FORMAT, **self.header})
        # Line buffers would split chunks: every chunk is one write.
        data = memoryview(CHUNK.pack(letter, len(payload)) + payload)
        whole = os.fstat(self._file).st_size
        try:
            while data:
                data = data[os.write(self._file, data) :]
        except OSError:
            # A full disk: a part of a chunk would take in what comes after it.
            os.ftruncate(self._file, whole)
            raise

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


def journals(directory: str) -> Iterator[Journal]:
    """The journals of a recording, read as far as they go."""
    for name in sorted(os.listdir(directory)):
        if name.endswith(".journal"):
            yield Journal(os.path.join(directory, name)).update()
