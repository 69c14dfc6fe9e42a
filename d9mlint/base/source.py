"""Sources: the bytes of a file, its text, and where things are in it.

Offsets count characters of ``Source.text`` from 0; rows and columns are 1-based and columns count
characters. Lines end where Python ends them: at ``\\n``, ``\\r\\n`` and ``\\r``.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from bisect import bisect_right
from typing import NamedTuple

from d9mlint.base.notebooks import Cell, NotebookError, cell_texts
from d9mlint.base.paths import TooLarge, read_limited

MAX_BYTES = 8_000_000
"""A larger Python file is data, not code: reported, not read."""
MAX_NOTEBOOK_BYTES = 256_000_000
"""Notebooks carry their outputs, which are dropped."""

_COOKIE = re.compile(rb"^[ \t\f]*#.*?coding[:=][ \t]*([-\w.]+)")
_BLANK = re.compile(rb"^[ \t\f]*(?:#.*)?$")
_LINE_END = re.compile(r"\r\n|\r|\n")
_BOM = b"\xef\xbb\xbf"


class Location(NamedTuple):
    """A place for people: 1-based row and column; ``cell`` is the 1-based notebook cell or None."""

    row: int
    column: int
    cell: int | None


class Trouble(NamedTuple):
    """Why a file cannot be analyzed: ``code`` DET001 or DET002, a message, a place in the text, and what to do about it
    where that is not what the code says."""

    code: str
    message: str
    start: int
    end: int
    remedy: str = ""


_ENCODE = "save it as UTF-8"


class Source:
    """A file as it was read. ``raw`` differs from ``text`` only in notebooks, where ``text`` has magics
    and shell lines replaced by comments of the same length."""

    __slots__ = (
        "_data",
        "_packed",
        "_raw",
        "_starts",
        "_text",
        "cells",
        "digest",
        "encoding",
        "path",
        "problem",
    )

    def __init__(
        self,
        path: str,
        data: bytes,
        text: str,
        encoding: str,
        cells: tuple[Cell, ...] | None = None,
        problem: Trouble | None = None,
        raw: str | None = None,
    ) -> None:
        self.path = path
        self._data = data
        # The bytes, compressed, where they were let go.
        self._packed: bytes | None = None
        self._text: str | None = text
        self._raw = raw
        self.encoding = encoding
        self.cells = cells
        self.problem = problem
        # A notebook and a module of equal bytes have different texts.
        kind = b"\0notebook" if cells is not None else b""
        self.digest = hashlib.blake2b(data + kind, digest_size=20).hexdigest()
        self._starts: list[int] | None = None

    def __repr__(self) -> str:
        return f"Source({self.path})"

    def with_text(self, text: str) -> Source:
        """The same file with another text of the same length."""
        return Source(self.path, self.data, text, self.encoding, self.cells, self.problem, self.raw)

    @property
    def data(self) -> bytes:
        """The bytes of the file."""
        return self._data if self._packed is None else zlib.decompress(self._packed)

    @property
    def text(self) -> str:
        """The text that is analyzed."""
        if self._text is None:
            self._text = self.fresh_text()
        return self._text

    @property
    def raw(self) -> str:
        """The text as it was written."""
        return self.text if self._raw is None else self._raw

    def fresh_text(self) -> str:
        """The text, which is not kept where it was let go."""
        return self.data.decode(self.encoding) if self._text is None else self._text

    def contains(self, text: str) -> bool:
        """Whether the text holds another one."""
        if self._text is None and self.encoding.startswith("utf-8"):
            return text.encode() in self.data
        return text in self.fresh_text()

    def let_go(self) -> None:
        """Keep no text that the bytes give again, and these compressed: a project has thousands of files, and few are asked
        for theirs."""
        if self.problem is None and self.cells is None:
            self._text = self._starts = None
            if self._packed is None:
                self._packed, self._data = zlib.compress(self._data, 1), b""

    @property
    def starts(self) -> list[int]:
        """Offsets at which the lines start."""
        if self._starts is None:
            self._starts = line_starts(self.text)
        return self._starts

    @property
    def newline(self) -> str:
        """The line end of the first line; ``\\n`` when there is none."""
        match = _LINE_END.search(self.text)
        return match.group() if match else "\n"

    @property
    def lines(self) -> int:
        """How many lines the text has."""
        return len(self.starts)

    def row_column(self, offset: int) -> tuple[int, int]:
        """The row and column of an offset in the text, cells joined."""
        offset = min(max(offset, 0), len(self.text))
        row = bisect_right(self.starts, offset)
        return row, offset - self.starts[row - 1] + 1

    def line(self, row: int) -> str:
        """A line as written, without its line end; ``row`` counts over joined cells."""
        start = self.starts[row - 1]
        end = self.starts[row] if row < len(self.starts) else len(self.text)
        return self.raw[start:end].rstrip("\r\n")

    def location(self, offset: int) -> Location:
        """The place of an offset, within its cell in a notebook."""
        row, column = self.row_column(offset)
        if not self.cells:
            return Location(row, column, None)
        cell = self.cell_at(offset)
        return Location(row - cell.row + 1, column, cell.number)

    def cell_at(self, offset: int) -> Cell:
        """The cell that holds an offset of a notebook that has cells."""
        assert self.cells
        index = bisect_right([c.start for c in self.cells], offset) - 1
        return self.cells[max(index, 0)]


def line_starts(text: str) -> list[int]:
    """Offsets at which the lines of a text start; the first is 0."""
    return [0, *(m.end() for m in _LINE_END.finditer(text))]


def read_bytes(path: str) -> bytes | Trouble:
    """The content of a file, up to the largest size that is analyzed, or why it cannot be read."""
    limit = MAX_NOTEBOOK_BYTES if path.endswith(".ipynb") else MAX_BYTES
    try:
        return read_limited(path, limit)
    except TooLarge:
        return _too_large(limit)
    except (OSError, ValueError) as error:
        message = f"the file cannot be read: {getattr(error, 'strerror', None) or error}"
        return Trouble("DET002", message, 0, 0, "make it a file that can be read")


def _too_large(limit: int) -> Trouble:
    return Trouble("DET002", f"the file is too large to be analyzed (over {limit // 1_000_000} MB)", 0, 0)


def read_source(path: str) -> Source:
    """Read a file. What cannot be read or decoded becomes ``Source.problem``, never an exception."""
    data = read_bytes(path)
    if isinstance(data, Trouble):
        return Source(path, b"", "", "utf-8", problem=data)
    return make_source(path, data)


def make_source(path: str, data: bytes) -> Source:
    """A source of bytes that are at hand, as from standard input."""
    notebook = path.endswith(".ipynb")
    limit = MAX_NOTEBOOK_BYTES if notebook else MAX_BYTES
    if len(data) > limit:
        return Source(path, b"", "", "utf-8", problem=_too_large(limit))
    if notebook:
        return _notebook(path, data)
    encoding, problem = detect_encoding(data)
    if problem is not None:
        return Source(path, data, "", "utf-8", problem=problem)
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        return _undecodable(path, data, encoding, error)
    except (UnicodeError, ValueError) as error:
        message = f"the file cannot be decoded as {encoding}: {error}"
        return Source(path, data, "", "utf-8", problem=Trouble("DET002", message, 0, 0, _ENCODE))
    if "\0" in text:
        at = text.index("\0")
        trouble = Trouble("DET001", "source code cannot contain null bytes", at, at + 1)
        return Source(path, data, text, encoding, problem=trouble)
    return Source(path, data, text, encoding)


def _undecodable(path: str, data: bytes, encoding: str, error: UnicodeDecodeError) -> Source:
    """The text is kept with replacement characters, so that the place can be shown."""
    codec = error.encoding
    body = data[len(_BOM) :] if encoding == "utf-8-sig" and data.startswith(_BOM) else data
    start = len(body[: error.start].decode(codec, "replace"))
    value = body[error.start] if error.start < len(body) else 0
    message = f"the file cannot be decoded as {codec}: byte 0x{value:02x} ({error.reason})"
    text = body.decode(codec, "replace")
    return Source(path, data, text, "utf-8", problem=Trouble("DET002", message, start, start + 1, _ENCODE))


def detect_encoding(data: bytes) -> tuple[str, Trouble | None]:
    """The encoding that PEP 263 gives a file: a byte order mark, a cookie in its first two lines, UTF-8."""
    bom = data.startswith(_BOM)
    head = data[3:2048] if bom else data[:2048]
    for line in re.split(rb"\r\n|\r|\n", head, maxsplit=2)[:2]:
        match = _COOKIE.match(line)
        if match:
            return _known_encoding(match.group(1).decode("ascii", "replace"), bom)
        if not _BLANK.match(line):
            break
    return ("utf-8-sig" if bom else "utf-8"), None


def _known_encoding(name: str, bom: bool) -> tuple[str, Trouble | None]:
    import codecs

    try:
        info = codecs.lookup(name)
    except (LookupError, ValueError):
        return "utf-8", Trouble("DET001", f"unknown encoding: {name}", 0, 0)
    if info.name in ("idna", "punycode"):
        # Names of hosts; decoding them takes time that grows with the square of their length.
        return "utf-8", Trouble("DET002", f"{name} is not an encoding of source code", 0, 0)
    if not getattr(info, "_is_text_encoding", True):
        return "utf-8", Trouble("DET001", f"{name} is not a text encoding", 0, 0)
    if bom:
        if info.name != "utf-8":
            message = f"the file starts with a UTF-8 byte order mark but declares {name}"
            return "utf-8-sig", Trouble("DET001", message, 0, 0)
        return "utf-8-sig", None
    return info.name, None


def _notebook(path: str, data: bytes) -> Source:
    try:
        raw, text, cells = cell_texts(data)
    except NotebookError as error:
        trouble = Trouble("DET002", f"the notebook cannot be read: {error}", 0, 0)
        return Source(path, data, "", "utf-8", cells=(), problem=trouble)
    return Source(path, data, text, "utf-8", cells=cells, raw=raw)
