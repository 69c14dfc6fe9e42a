"""Programs in Markdown, linted, and compared with what their comments expect.

On a line of code: ``# error: [DET209]`` for a finding that starts there, ``# advice: [DET201]`` for one that is
advice, ``# ok`` for none,
``# todo-error: [DET209]`` for one that is known to be missed, ``# todo-ok: [DET209]`` for one that is known
to be wrong; a todo that starts to pass fails the run.
"""

from __future__ import annotations

import ctypes
import difflib
import importlib.util
import json
import os
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from d9mlint.base.findings import Finding, Severity
from d9mlint.config.settings import load_settings
from d9mlint.fix_rounds import fix
from d9mlint.pipeline import Result, check

ROOT = Path(__file__).resolve().parent.parent
RULES = ROOT / "rules"
CASES = ROOT / "tests" / "cases"

_EXPECT = re.compile(r"[ \t]*# (?:(error|advice|todo-error|todo-ok): \[([^\]]*)\]|ok\b.*|expect-none)[ \t]*$")
ADVICE = "advice"
_FENCE = re.compile(r"^```(\S*)[ \t]*(.*)$")


class Block(NamedTuple):
    """A fenced block: its language, the words after it, its text, the 1-based line of its first line of
    text, and the nearest heading of each level above it."""

    language: str
    info: tuple[str, ...]
    text: str
    line: int
    headings: tuple[str, ...]


class Program(NamedTuple):
    """A program to lint: texts by path without expectations, the expected codes by (path, row), those that
    are known to be missed and to be wrong, and settings."""

    name: str
    files: dict[str, str]
    errors: dict[tuple[str, int], set[str]]
    todos: dict[tuple[str, int], set[str]]
    wrong: dict[tuple[str, int], set[str]]
    settings: dict[str, Any]


def needs(library: str) -> pytest.MarkDecorator:
    """Skips tests where a library is not installed. The library is not imported: every worker collects all modules,
    and few of them run tests that start programs with it."""
    return pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"{library} is not installed")


def obey_permissions() -> None:
    """Let a process of the superuser obey the modes of files as everybody else must, from its next ``exec`` on:
    a ``preexec_fn``. Without effect for other users."""
    if os.geteuid() == 0:
        for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
            if ctypes.CDLL(None).prctl(24, capability, 0, 0, 0):  # PR_CAPBSET_DROP
                os._exit(125)


def blocks(text: str) -> list[Block]:
    """All fenced blocks of a Markdown text."""
    found: list[Block] = []
    headings: list[str] = []
    inside: list[str] | None = None
    fence = ("", "", 0)
    for number, line in enumerate(text.splitlines(), 1):
        match = _FENCE.match(line)
        if inside is None and match:
            fence, inside = (match[1], match[2], number + 1), []
        elif inside is not None and line == "```":
            found.append(
                Block(fence[0], tuple(fence[1].split()), "\n".join(inside) + "\n", fence[2], tuple(headings))
            )
            inside = None
        elif inside is not None:
            inside.append(line)
        elif line.startswith("#"):
            level = len(line) - len(line.lstrip("#"))
            headings = [*headings[: level - 1], *[""] * (level - 1 - len(headings)), line.lstrip("# ")]
    assert inside is None, f"a block that starts at line {fence[2]} is not closed"
    return found


def split_files(text: str) -> dict[str, str]:
    """The files of a block, each begun by ``# file: name``; ``train.py`` when nothing is said."""
    files: dict[str, list[str]] = {}
    current = "train.py"
    for line in text.splitlines():
        match = re.match(r"# file: (\S+)$", line)
        if match:
            current = match[1]
            files[current] = []
        else:
            files.setdefault(current, []).append(line)
    return {name: "\n".join(lines) + "\n" if lines else "" for name, lines in files.items()}


def expectations(text: str) -> tuple[str, dict[str, dict[int, set[str]]]]:
    """A text without its expectations, and the codes of each kind of expectation by row."""
    kinds: dict[str, dict[int, set[str]]] = {"error": {}, "todo-error": {}, "todo-ok": {}}
    lines: list[str] = []
    for row, line in enumerate(text.splitlines(), 1):
        while match := _EXPECT.search(line):
            line = line[: match.start()]
            if match[1]:
                codes = {c.strip() for c in match[2].split(",")}
                if match[1] == "advice":
                    codes = {f"{code} {ADVICE}" for code in codes}
                kinds["error" if match[1] == "advice" else match[1]].setdefault(row, set()).update(codes)
        lines.append(line)
    return "\n".join(lines) + ("\n" if lines else ""), kinds


def make_program(name: str, files: dict[str, str], settings: dict[str, Any]) -> Program:
    """A program of texts that carry expectations. A notebook's cells are divided by ``# %%`` lines."""
    texts: dict[str, str] = {}
    places: dict[str, dict[tuple[str, int], set[str]]] = {"error": {}, "todo-error": {}, "todo-ok": {}}
    for path, text in files.items():
        if path.endswith((".py", ".ipynb")):
            if path.endswith(".ipynb"):
                cells = re.split(r"^# %%.*\n", text, flags=re.MULTILINE)
                text = "".join(cells)
                texts[path] = notebook([expectations(c)[0] for c in cells if c])
            code, kinds = expectations(text)
            texts.setdefault(path, code)
            for kind, rows in kinds.items():
                places[kind].update({(path, row): codes for row, codes in rows.items()})
        else:
            texts[path] = text
    return Program(name, texts, places["error"], places["todo-error"], places["todo-ok"], settings)


def notebook(cells: list[str]) -> str:
    """A notebook with these code cells."""
    made = [
        {
            "cell_type": "code",
            "metadata": {},
            "outputs": [],
            "execution_count": None,
            "source": c.splitlines(True),
        }
        for c in cells
    ]
    return json.dumps({"cells": made, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=1) + "\n"


def write_program(program: Program, directory: Path) -> None:
    """Write a program's files, and a pyproject.toml that marks its root when it has none of its own."""
    for path, text in program.files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8", newline="")
    if not (directory / "pyproject.toml").exists():
        (directory / "pyproject.toml").write_text("")


def lint(directory: Path, settings: dict[str, Any]) -> Result:
    """Lint a directory with configuration keys set as on the command line, without a cache."""
    overrides = {"cache": False, "jobs": 1, "preview": True, **settings}
    return check([str(directory)], load_settings(str(directory), overrides=overrides))


def mismatches(program: Program, directory: Path, only: set[str] | None = None) -> list[str]:
    """What differs from the expectations, a line each; ``only`` limits it to some codes."""
    result = lint(directory, program.settings)
    found: dict[tuple[str, int], set[str]] = {}
    for item in result.items:
        f = item.finding
        row = result.sources[f.path].row_column(f.start)[0]
        if only is None or f.code in only:
            place = (str(Path(f.path).relative_to(directory.resolve())), row)
            advice = f"{f.code} {ADVICE}"
            expected = f.severity.value == ADVICE and advice in program.errors.get(place, ())
            found.setdefault(place, set()).add(advice if expected else f.code)
    lines: list[str] = []
    for place in sorted({*found, *program.errors, *program.todos, *program.wrong}):
        got, wanted = found.get(place, set()), program.errors.get(place, set())
        todo = program.todos.get(place, set())
        false = program.wrong.get(place, set())
        where = f"{place[0]}:{place[1]}"
        lines += [f"{where}: expected {code}, which is not reported" for code in sorted(wanted - got)]
        lines += [
            f"{where}: {code} is reported and not expected" for code in sorted(got - wanted - todo - false)
        ]
        lines += [f"{where}: the todo for {code} passes now, make it an error" for code in sorted(todo & got)]
        lines += [
            f"{where}: {code} is not reported any more, remove the todo" for code in sorted(false - got)
        ]
    return lines


def block_settings(info: tuple[str, ...]) -> dict[str, Any]:
    """Settings from the words after a fence: ``torch=2.4 tensorflow=2.15 device=cuda``."""
    names = {"torch": "torch-version", "tensorflow": "tensorflow-version", "device": "device"}
    pairs = (word.split("=", 1) for word in info if "=" in word)
    return {names[key]: value for key, value in pairs}


class Example(NamedTuple):
    """A block of a rule page or of ``tests/cases/DETnnn/``, and the block before it where it shows fixed code."""

    code: str
    path: Path
    block: Block
    before: Block | None


def examples(paths: Iterable[Path]) -> list[Example]:
    """The Python blocks of files; the rule's code is the name of the folder or the beginning of the file's."""
    found = []
    for path in paths:
        previous: Block | None = None
        for block in blocks(path.read_text(encoding="utf-8")):
            if block.language != "python" or "ignore" in block.info:
                continue
            rule = (path.name if path.name.startswith("DET") else path.parent.name)[:6]
            found.append(Example(rule, path, block, previous if "fixed" in block.info else None))
            previous = block
    return found


def page_paths() -> list[Path]:
    """The rule pages, in order."""
    return sorted(RULES.glob("DET*.md"))


def further_paths() -> list[Path]:
    """The files of further examples of rules, in order."""
    return sorted(CASES.glob("DET*/*.md"))


def example_mismatches(example: Example, directory: Path) -> list[str]:
    """What a block does otherwise than its comments say, or than its fix shows."""
    code, path, block, before = example
    settings = {"extend-select": [code], **block_settings(block.info)}
    if before is not None:
        return _fix_mismatches(example, before, directory)
    program = make_program(code, split_files(block.text), settings)
    write_program(program, directory)
    mentioned = {code} | {c.split()[0] for codes in program.errors.values() for c in codes}
    wrong = mismatches(program, directory, only=mentioned)
    return [f"{path.name}:{block.line}", *wrong] if wrong else []


def _fix_mismatches(example: Example, before: Block, directory: Path) -> list[str]:
    code, path, block, _ = example
    overrides = {
        "select": [code, "DET101", "DET301"] if code == "DET003" else [code],
        "cache": False,
        "jobs": 1,
        "preview": True,
    }
    overrides.update(block_settings(before.info))
    program = make_program(code, split_files(before.text), {})
    write_program(program, directory)
    settings = load_settings(str(directory), overrides=overrides)
    fixed = fix(
        lambda overlay: check([str(directory)], settings, overlay=overlay), {}, "unsafe" in block.info
    )
    wrong: list[str] = []
    for name, text in split_files(block.text).items():
        wanted = expectations(text)[0]
        place = directory / name
        got = fixed.changes.get(place.resolve().as_posix(), place.read_bytes()).decode()
        if got != wanted:
            wrong += [
                f"{path.name}:{block.line}",
                *difflib.unified_diff(wanted.splitlines(), got.splitlines()),
            ]
    return wrong


def until_it_strikes(trace: Callable[[], dict[str, Any]], verdict: str) -> dict[str, Any]:
    """The report of a trace. On a busy machine a race need not strike, and the time for the runs that show the cause of
    other data may not be enough: the program is traced again, nearly always once at most."""
    for _ in range(14 if verdict == "op" else 2):
        report = trace()
        difference, replayed = report["difference"], report["confirmation"]
        settled = True
        if verdict == "op":
            settled = difference and (replayed is None or replayed["distinct"] > 1)
        elif verdict == "input":
            settled = difference and difference["cause"]
        if settled:
            return report
    return trace()


def finding(subject: str, op: str = "", **fields: Any) -> Finding:
    """A finding at the start of a file, for tests that need no linted program."""
    code = "DET401" if op else "DET303"
    return Finding(
        code=code,
        path="a.py",
        start=0,
        end=1,
        message="m",
        help="",
        severity=Severity.ERROR,
        subject=subject,
        op=op,
        **fields,
    )
