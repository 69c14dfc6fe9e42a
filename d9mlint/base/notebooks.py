"""Jupyter notebooks as one text: code cells joined, lines that are not Python made comments.

Everything is length-preserving, so an offset in the joined text is an offset in the cells as written.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

PYTHON_CELL_MAGICS = frozenset({"time", "timeit", "capture", "prun", "python", "python3", "ipytest", "memit"})
"""``%%`` magics whose cell body is Python run in the kernel (or as good as)."""

_AUTOMAGIC = (
    r"[ \t]*(?:cd|pushd|ls|ll|cat|cp|mv|rm|mkdir|rmdir|man|less|more|pip|conda|mamba|uv|matplotlib|load_ext"
    r"|reload_ext|autoreload)"
    r"[ \t]+(?!(?:in|is|and|or|not|if|else|for)\b)(?:-+[A-Za-z]|[\w~./\"'$])"
)
"""A line magic that IPython knows without its ``%``, with an argument: no line of Python."""
_CANDIDATE = re.compile(rf"^[ \t]*(?:%|!|\?)|\?[ \t]*$|=[ \t]*[%!]|^{_AUTOMAGIC}", re.MULTILINE)
_BARE = re.compile(_AUTOMAGIC)
_NESTING = re.compile(
    r"[(\[{]|[-+~*/%@&|^<>=.:]|\b(?:lambda|not|await|if|elif|else|and|or|in|is|for|yield)\b|['\"]"
)
_HELP = re.compile(r"^[ \t]*[%\w.*]+\?{1,2}[ \t]*$")
_ASSIGNED = re.compile(r"^([\w.,\[\]'\" \t*()]+?=[ \t]*)([%!].*)$")
_INSTALL = re.compile(
    r"[!%][ \t]*(?:python3?[ \t]+-m[ \t]+)?pip3?[ \t]+(?=install[ \t].*(?:==|\w\[\w))|%tensorflow_version[ \t]+(?=1)",
    re.ASCII,
)
INSTALLS, CHOOSES = "pip insta ", "tensorflow_versi "
"""How commands that install releases begin in a text as Python, where each is a tuple of one string: two letters give room
for the quotes and the comma."""
RECORDS = "recorded "
"""How the string begins, in a tuple that is the last line of a text as Python, that says what a notebook records of the run
that gave its outputs: the release of Python, and a line that libraries print, with underscores for its spaces."""
_BACKEND = re.compile(r"\AUsing \w+ backend(?=\.\s*\Z)")
_TIME = re.compile(r"^([ \t]*)%time[ \t](?=[ \t]*[^\s-])")
# A quote that nothing closes reaches to the end of its line: looking for its end from every quote on takes
# time that grows with the square of the line.
_TOKEN = re.compile(r"\"\"\"|'''|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|#.*|[\[\](){}]")
MOST_OPEN = 200
"""Python refuses more nested brackets; behind them nothing is looked for."""
MOST_PARSED = 100_000


class NotebookError(ValueError):
    """The bytes are no notebook."""


class Cell(NamedTuple):
    """A code cell: its 1-based number among all cells, its half-open span in the joined text, and the
    1-based row of the joined text at which it starts."""

    number: int
    start: int
    end: int
    row: int


def cell_texts(data: bytes) -> tuple[str, str, tuple[Cell, ...]]:
    """The joined code cells as written, the same as Python, and where each cell is.

    Raises NotebookError for bytes that are no notebook. A notebook in another language has no cells.
    """
    notebook = load_notebook(data)
    if not _is_python(notebook):
        return "", "", ()
    raw: list[str] = []
    python: list[str] = []
    cells: list[Cell] = []
    offset, row = 0, 1
    for number, cell in enumerate(notebook["cells"], 1):
        if cell.get("cell_type") != "code":
            continue
        written = cell_source(cell)
        end = "" if written.endswith("\n") else "\n"
        code = as_python(written)
        if begin := block_around(code):
            # Between two cells, so that places in them stay.
            raw.append(re.sub(".", "#", begin))
            python.append(begin)
            offset += len(begin)
            row += begin.count("\n")
        cells.append(Cell(number, offset, offset + len(written), row))
        raw.append(written + end)
        python.append(code + end)
        offset += len(written) + len(end)
        row += (written + end).count("\n")
    record = _record(notebook) if cells else ""
    if record:
        # Behind all cells, so that their places stay.
        raw.append("#" * (len(record) - 1) + "\n")
        python.append(record)
    return "".join(raw), "".join(python), tuple(cells)


_CODE = re.compile(r"^([ \t]*)[^\s#]", re.MULTILINE)


def block_around(code: str) -> str:
    """What makes a block of code whose first line is indented: IPython takes its indentation away from all lines. Empty for
    other code."""
    first = _CODE.search(code)
    return f"if True:\n{first[1]}pass\n" if first is not None and first[1] else ""


def _record(notebook: dict[str, Any]) -> str:
    """A line of Python with what a notebook records of its run; empty where that is nothing."""
    info = notebook.get("metadata")
    language = info.get("language_info") if isinstance(info, dict) else None
    version = language.get("version") if isinstance(language, dict) else None
    words: list[str] = []
    if isinstance(version, str) and re.fullmatch(r"\d+(\.\d+)+", version, re.ASCII):
        words.append(version)
    found = (_BACKEND.match(line) for cell in notebook["cells"] for line in _printed(cell))
    words += sorted({line[0].replace(" ", "_") for line in found if line is not None})
    return f'("{RECORDS}{" ".join(words)}",)\n' if words else ""


def _printed(cell: dict[str, Any]) -> Iterator[str]:
    """The lines that a cell has printed."""
    outputs = cell.get("outputs")
    for output in outputs if isinstance(outputs, list) else ():
        text = output.get("text") if isinstance(output, dict) else None
        for one in text if isinstance(text, list) else [text]:
            yield from one.splitlines() if isinstance(one, str) else ()


def load_notebook(data: bytes) -> dict[str, Any]:
    """The notebook as JSON data. Raises NotebookError when it is none. An empty file is a new notebook, without cells."""
    if not data.removeprefix(codecs.BOM_UTF8).strip():
        return {"cells": []}
    try:
        notebook: Any = json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise NotebookError(f"not UTF-8 at byte {error.start}") from error
    except RecursionError as error:
        raise NotebookError("nested too deeply") from error
    except ValueError as error:
        raise NotebookError(f"not JSON: {error}") from error
    cells = notebook.get("cells") if isinstance(notebook, dict) else None
    if not isinstance(cells, list):
        raise NotebookError("no list of cells (notebook formats before 4 are not supported)")
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or not _is_text(cell.get("source", "")):
            raise NotebookError(f"cell {number} is malformed")
    return dict(notebook)


_JSON = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')


def file_rows(data: bytes) -> dict[int, tuple[int, ...]]:
    """For each code cell by number, the 1-based row of the file in which each of its rows is written."""
    text = data.decode("utf-8-sig", "replace")
    rows: dict[int, list[int]] = {}
    # What is open around a token: for a list the index, for an object the last key.
    path: list[int | str] = []
    key = False
    row, position, begun = 1, 0, True
    for token in _JSON.finditer(text):
        row += text.count("\n", position, token.start())
        position = token.start()
        word = token.group()
        if word in "{[":
            if word == "[" and len(path) == 3 and path[0] == "cells" and path[2] == "source":
                begun = True
            path.append("" if word == "{" else 0)
            key = word == "{"
        elif word in "}]":
            path = path[:-1]
            key = False
        elif word == ",":
            last = path[-1] if path else ""
            if isinstance(last, int):
                path[-1] = last + 1
            key = isinstance(last, str)
        elif word == ":":
            key = False
        elif key and word.startswith('"'):
            path[-1] = _text_of(word)
        elif len(path) in (3, 4) and path[0] == "cells" and path[2] == "source" and word.startswith('"'):
            cell = path[1]
            assert isinstance(cell, int)
            found = rows.setdefault(cell + 1, [])
            begun = begun or len(path) == 3
            parts = _text_of(word).split("\n")
            for number, part in enumerate(parts):
                begun = begun or number > 0
                if begun and (part or number < len(parts) - 1):
                    found.append(row)
                    begun = False
            begun = begun or not parts[-1]
    return {cell: tuple(found) for cell, found in rows.items()}


def _text_of(word: str) -> str:
    try:
        text = json.loads(word)
    except ValueError:
        return ""
    return text if isinstance(text, str) else ""


def cell_source(cell: dict[str, Any]) -> str:
    """The source of a cell as one string with ``\\n`` line ends."""
    source = cell.get("source", "")
    text: str = source if isinstance(source, str) else "".join(source)
    # A lone carriage return would make Python count other lines than the notebook does; one character
    # stays one character.
    return text.replace("\r", " ") if "\r" in text else text


def _is_text(source: Any) -> bool:
    return isinstance(source, str) or (isinstance(source, list) and all(isinstance(x, str) for x in source))


def _is_python(notebook: dict[str, Any]) -> bool:
    metadata = notebook.get("metadata")
    if not isinstance(metadata, dict):
        return True
    for key, field in (("language_info", "name"), ("kernelspec", "language")):
        part = metadata.get(key)
        language = part.get(field) if isinstance(part, dict) else None
        if isinstance(language, str):
            return "python" in language.lower()
    return True


def as_python(text: str) -> str:
    """A cell with magics, shell lines and help requests made comments of the same length."""
    if not _CANDIDATE.search(text) or _parses(text):
        return text
    lines = text.split("\n")
    first = next((i for i, line in enumerate(lines) if line.strip()), 0)
    if lines[first].startswith("%%"):
        name = re.split(r"\W", lines[first][2:], maxsplit=1)[0]
        if name not in PYTHON_CELL_MAGICS:
            return "\n".join(_blank(line) for line in lines)
    out: list[str] = []
    state = ""
    continued = False
    for line in lines:
        if continued or (not state and _is_magic(line)):
            out.append(_blank(line) if continued else _neutral(line))
            continued = line.endswith("\\")
            continue
        match = _ASSIGNED.match(line) if not state else None
        if match:
            continued = line.endswith("\\")
            out.append(match.group(1) + _blank(match.group(2), "0"))
            continue
        out.append(line)
        state = _open_after(line, state)
    return "\n".join(out)


def _parses(text: str) -> bool:
    import ast
    import warnings

    if not _is_shallow(text):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return True


_GOES_ON = re.compile(r"(?:else|elif|except|finally)\b|[)\]}]")


def statements(text: str) -> list[tuple[int, int]]:
    """The half-open spans of the top-level statements of a cell, by indentation and brackets: they need not parse."""
    begins: list[int] = []
    offset = 0
    state = ""
    decorated = False
    for line in text.split("\n"):
        begun = not state and line[:1].strip() and not line.startswith("#") and not _GOES_ON.match(line)
        if begun and not decorated:
            begins.append(offset)
        if begun:
            decorated = line.startswith("@")
        state = _open_after(line, state)
        offset += len(line) + 1
    if not begins:
        return [(0, len(text))] if text.strip() else []
    return [(0 if start == begins[0] else start, end) for start, end in pairwise([*begins, len(text)])]


def logical_lines(text: str) -> list[tuple[int, int]]:
    """The half-open spans of lines with what is open at their ends, from their first character on, without empty lines and
    comments."""
    found: list[tuple[int, int]] = []
    offset = begin = 0
    state = ""
    for line in text.split("\n"):
        if not state:
            begin = offset + len(line) - len(line.lstrip())
        state = _open_after(line, state)
        end = offset + len(line)
        if begin < end and not state and text[begin] != "#":
            found.append((begin, end))
        offset = end + 1
    if state:
        found.append((begin, len(text)))
    return found


def as_statement(text: str) -> str:
    """Lines as a statement that does nothing, and comments, of the same length."""
    first, *rest = text.split("\n")
    return "\n".join([_blank(first, "0"), *map(_blank, rest)])


def as_comments(text: str) -> str:
    """Lines as comments of the same length."""
    return "\n".join(_blank(line) for line in text.split("\n"))


def _is_shallow(text: str) -> bool:
    """Whether Python's parser, which recurses in native code, can be given a cell in this process: whatever
    nests needs a bracket, an operator or a word, and no run of lines without an empty one has many."""
    if len(text) > MOST_PARSED:
        return False
    return all(len(_NESTING.findall(part)) < 2000 for part in re.split(r"\n(?=\S)", text))


def _is_magic(line: str) -> bool:
    return line.lstrip().startswith(("%", "!", "?")) or bool(_HELP.match(line)) or _is_bare_magic(line)


def _is_bare_magic(line: str) -> bool:
    """Whether IPython takes a line that no Python can be for a magic without its ``%``."""
    return bool(_BARE.match(line)) and not _parses(line.strip())


def _neutral(line: str) -> str:
    """A magic as a comment; inside a block as a statement, so that the block is not empty."""
    timed = _TIME.match(line)
    if timed:
        # "%time f(x)" runs f(x) in the kernel.
        return f"{timed.group(1)}0    ;{line[timed.end() :]}"
    if _INSTALL.match(line) and "\\" not in line:
        return _command(line)
    indent = len(line) - len(line.lstrip())
    return line[:indent] + _blank(line[indent:], "0" if indent else "")


def _command(line: str) -> str:
    """A command that installs releases as a tuple of one string, of the same length."""
    begin = INSTALLS if "pip" in line.partition("install")[0] else CHOOSES
    rest = line[line.index("install") + 8 :] if begin == INSTALLS else line.split(None, 1)[1]
    text = re.sub("[\"']", " ", begin + rest)
    return f"'{text}',".ljust(len(line))


def _blank(text: str, statement: str = "") -> str:
    kept = text.rstrip("\\") if statement or text.endswith("\\") else text
    filler = " " * (len(text) - len(kept))
    if not kept:
        return filler
    result = (statement + "#" + kept[len(statement) + 1 :])[: len(kept)]
    return result + filler


def _open_after(line: str, state: str) -> str:
    """What is open at the end of a line: brackets, or the quotes of a string; ``\\`` for a continued line."""
    stack = state.rstrip("\\")
    position = 0
    while True:
        if stack and stack[-1] in "\"'":
            quotes = '"""' if stack[-1] == '"' else "'''"
            end = line.find(quotes, position)
            if end < 0:
                return stack
            position, stack = end + 3, stack[:-1]
        match = _TOKEN.search(line, position)
        if match is None:
            return stack + "\\" if line.endswith("\\") else stack
        token, position = match.group(), match.end()
        if token in ('"""', "'''"):
            stack += token[0]
        elif token in "[({":
            if len(stack) < MOST_OPEN:
                stack += token
        elif token in "])}":
            stack = stack[:-1]
