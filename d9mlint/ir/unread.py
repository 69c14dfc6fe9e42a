"""Texts some of whose statements cannot be parsed, such as those for another version of Python.

The cells of a notebook are run one by one: one that does not parse keeps no other from running. A module of which a few
lines do not parse is read as it is when they are fixed. Statements that cannot be read, in functions and other blocks the
lines that cannot, are made comments, and the rest is parsed. In their places stand statements that do what may be done
there as far as names tell: what is called is called with arguments that are not known, and the variables that are named
have values that are not known afterwards.
"""

from __future__ import annotations

import builtins
import keyword
import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any

import msgspec

from d9mlint.base.notebooks import (
    Cell,
    as_comments,
    as_statement,
    block_around,
    logical_lines,
    statements,
)
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import definitions, with_body

UNKNOWN = "<unread>"
"""A name that no program has, for a value that is not known."""

MOST_CELLS = 2000
"""A notebook with more cells is generated, and not read in part: each cell is parsed by itself."""
_MOST_PARTS = 10
"""How many lines of a statement are left out before it is left out as a whole."""
MOST_STATEMENTS = 2000
"""How many statements of cells that do not parse are parsed by themselves; of further cells nothing is read."""

_MOST_IN_MODULE = 3
"""A module with more statements that do not parse is for another version of Python, or a template."""

_WORD = re.compile(
    r"\"\"\".*?(?:\"\"\"|\Z)|'''.*?(?:'''|\Z)|\"(?:\\.|[^\"\\\n])*\"?|'(?:\\.|[^'\\\n])*'?|#[^\n]*|(?P<name>[^\W\d][\w.]*)",
    re.DOTALL,
)
_LINE = re.compile(r"(\bon line )(\d+)")
_CALLED = re.compile(r"[ \t]*\(")
_MAKES = frozenset({"def", "class", "import", "as"})
_PLAIN = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "exec", "print"})


def read_rest(
    text: str, cells: Sequence[Cell], facts: m.FileFacts, parse: Callable[[list[str]], list[m.FileFacts]]
) -> m.FileFacts:
    """The facts of a text without the statements that do not parse. ``facts`` are those of all of it, and the answer
    where nothing is left, or too little of a module, which has no cells; ``parse`` gives the facts of texts."""
    if len(cells) > MOST_CELLS:
        return facts
    unread: list[m.Unread] = []
    left = MOST_STATEMENTS
    whole = [] if cells or facts.problem is None else [m.Unread(facts.problem, 0, len(text))]
    for cell in whole or _refused(text, [(cell.start, cell.end) for cell in cells], parse):
        spans = statements(text[cell.start : cell.end])
        left -= len(spans)
        found: list[m.Unread] = []
        if left >= 0:
            found = _refused(text, [(cell.start + start, cell.start + end) for start, end in spans], parse)
        if whole and len(found) > _MOST_IN_MODULE:
            return facts
        for one in found or [cell]:
            smaller, used = _smaller(text, one, parse) if left >= 0 else ([one], 0)
            unread += [_of_text(part, text.count("\n", cell.start, one.start)) for part in smaller]
            left -= used
    if whole and (len(unread) > _MOST_IN_MODULE or unread == whole):
        return facts
    (now,) = parse([without(text, unread)])
    if now.problem is not None or not now.functions[0].body:
        return facts
    return _filled(msgspec.structs.replace(now, digest=facts.digest), text, unread)


def _of_text(part: m.Unread, lines: int) -> m.Unread:
    """A part with the lines that its problem names counted from so many lines before."""
    said = _LINE.sub(lambda found: f"{found[1]}{int(found[2]) + lines}", part.problem.message)
    return msgspec.structs.replace(part, problem=msgspec.structs.replace(part.problem, message=said))


def without(text: str, unread: Iterable[m.Unread]) -> str:
    """A text with the parts that are not read, which are in order, made comments of the same length."""
    kept: list[str] = []
    end = 0
    for one in unread:
        part = text[one.start : one.end]
        kept += (
            text[end : one.start],
            as_statement(part) if is_inside(text, one.start) else as_comments(part),
        )
        end = one.end
    return "".join([*kept, text[end:]])


def _refused(
    text: str, spans: list[tuple[int, int]], parse: Callable[[list[str]], list[m.FileFacts]]
) -> list[m.Unread]:
    """The parts of a text that do not parse. What makes a block of a cell is no part of it."""
    found: list[m.Unread] = []
    parts = [text[start:end] for start, end in spans]
    begins = [_begin(text, start, part) for (start, _), part in zip(spans, parts, strict=True)]
    answers = parse([begin + part for begin, part in zip(begins, parts, strict=True)])
    for (start, end), begin, facts in zip(spans, begins, answers, strict=True):
        why = facts.problem
        if why is not None:
            at = start - len(begin)
            problem = m.Problem(why.code, why.message, at + why.start, at + why.end)
            found.append(_of_text(m.Unread(problem, start, end), -begin.count("\n")))
    return found


def _begin(text: str, start: int, part: str) -> str:
    """What stands before a cell and makes a block of it."""
    begin = block_around(part)
    return begin if text.endswith(begin, 0, start) else ""


def is_inside(text: str, start: int) -> bool:
    """Whether a part stands in the block of a statement that is read, in place of one of its statements."""
    return start > 0 and text[start - 1] != "\n"


def _smaller(
    text: str, one: m.Unread, parse: Callable[[list[str]], list[m.FileFacts]]
) -> tuple[list[m.Unread], int]:
    """The lines in a statement that keep it from being read, and how often it was parsed; the statement itself where its
    first line is one of them, or where they are too many."""
    parts: list[m.Unread] = []
    now, why = text[one.start : one.end], one.problem
    for number in range(_MOST_PARTS):
        at = why.start - one.start
        lines = logical_lines(now)
        place = bisect_right([start for start, _ in lines], at) - 1
        if place < 1:
            return [one], number
        start, end = lines[place]
        if why.message.startswith("expected an indented block"):
            # What the block should be: the line behind its head.
            place -= 1
            start = lines[place][0]
        elif "indent" in why.message:
            # A comment has no place among the blocks.
            start = now.rfind("\n", 0, start) + 1
        if place < 1:
            return [one], number
        parts.append(m.Unread(why, one.start + start, one.start + end))
        part = now[start:end]
        now = now[:start] + (as_statement(part) if is_inside(now, start) else as_comments(part)) + now[end:]
        (facts,) = parse([now])
        if facts.problem is None:
            return sorted(parts, key=lambda part: part.start), number + 1
        problem = facts.problem
        why = m.Problem(problem.code, problem.message, one.start + problem.start, one.start + problem.end)
    return [one], _MOST_PARTS


def _filled(facts: m.FileFacts, text: str, unread: list[m.Unread]) -> m.FileFacts:
    """The facts with statements in the places of those that are not read."""
    module = facts.functions[0]
    body = list(module.body)
    made = {name for stmt in body for name in _definitions(facts, stmt)}
    words = set(facts.words)
    starts = [stmt.start for stmt in body]
    functions = list(facts.functions)
    # From behind, so that the places of the others stay.
    for one in reversed(unread):
        names = list(_names(text, one))
        words |= {part for name, *_ in names for part in name.split(".")}
        instead = _statements(names, made, one)
        around = _around(functions, one) if is_inside(text, one.start) else 0
        if around:
            function = functions[around]
            functions[around] = with_body(function, _in_place(function.body, one.start, instead))
        else:
            at = bisect_right(starts, one.start)
            body[at:at] = instead
    return msgspec.structs.replace(
        facts,
        packed=definitions([with_body(module, body), *functions[1:]], facts.classes),
        words=sorted(words),
        unread=unread,
        code="",
    )


def _around(functions: Sequence[m.Function], one: m.Unread) -> int:
    """The innermost function around a part; the module's body is 0."""
    around = [
        (function.start, index)
        for index, function in enumerate(functions)
        if index and function.start <= one.start < function.end_of_body
    ]
    return max(around, default=(0, 0))[1]


def _in_place(body: Sequence[m.Stmt], start: int, instead: Sequence[m.Stmt]) -> list[m.Stmt]:
    """Statements with others in place of the one that begins at an offset."""
    made: list[m.Stmt] = []
    for stmt in body:
        if isinstance(stmt, m.ExprStmt) and stmt.start == start:
            made += instead
            continue
        changed: dict[str, list[Any]] = {
            name: _in_place(inner, start, instead)
            for name in ("body", "orelse", "final")
            if (inner := getattr(stmt, name, None))
        }
        for name in ("handlers", "cases"):
            if blocks := getattr(stmt, name, None):
                changed[name] = [
                    msgspec.structs.replace(one, body=_in_place(one.body, start, instead)) for one in blocks
                ]
        made.append(msgspec.structs.replace(stmt, **changed) if changed else stmt)
    return made


def _definitions(facts: m.FileFacts, stmt: m.Stmt) -> Iterable[str]:
    """The names that a statement gives to modules, functions and classes."""
    if isinstance(stmt, (m.Import, m.ImportFrom)):
        return [alias.asname or alias.name.partition(".")[0] for alias in stmt.names]
    if isinstance(stmt, m.FunctionDef):
        return [facts.functions[stmt.function].name]
    return [facts.classes[stmt.cls].name] if isinstance(stmt, m.ClassDef) else []


def _names(text: str, one: m.Unread) -> Iterable[tuple[str, int, bool, bool]]:
    """The dotted names in a part: with their offsets, whether they are called, and whether they are defined there."""
    part = text[one.start : one.end]
    last, end, imports = (
        "",
        0,
        False,
    )  # the token before, where it ends, and whether its line imports something
    for found in _WORD.finditer(part):
        gap = part[end : found.start()]
        before, last, end = last, found.group(), found.end()
        imports = imports and "\n" not in gap and "\n" not in before
        name = found["name"]
        dotted = (gap.rstrip() or before).endswith(".")
        blank = bool(gap) and not gap.strip(" \t")
        made = (blank and before in _MAKES) or (imports and gap.rstrip(" \t").endswith(","))
        imports = imports or name == "import"
        if name is not None and name not in _PLAIN and not dotted:
            called = not made and _CALLED.match(part, end) is not None
            yield name.rstrip("."), one.start + found.start(), called, made


def changed_names(text: str, one: m.Unread, made: Collection[str]) -> list[str]:
    """The variables that may have another value behind a part. ``made`` are the names that the rest of the text gives to
    modules, functions and classes."""
    return _changed(_names(text, one), made)


def _changed(names: Iterable[tuple[str, int, bool, bool]], made: Collection[str]) -> list[str]:
    changed: dict[str, None] = {}
    for name, _, _, is_made in names:
        root = name.partition(".")[0]
        if is_made or root not in made:
            changed[root] = None
    return list(changed)


def _statements(
    names: list[tuple[str, int, bool, bool]], made: set[str], one: m.Unread
) -> list[m.ExprStmt | m.Assign]:
    start, end = one.start, one.end
    unknown = m.Name(UNKNOWN, start, end)
    calls: list[m.ExprStmt | m.Assign] = []
    for name, offset, is_called, _ in names:
        if is_called:
            func = m.Name(name, offset, offset + len(name))
            call = m.Call(func, [m.Star(unknown)], [m.Keyword(None, unknown)], offset, offset + len(name))
            calls.append(m.ExprStmt(call, start, end))
    changed = _changed(names, made)
    if changed:
        targets: list[m.Expr] = [m.Name(name, start, end) for name in changed]
        given: list[m.Expr] = [m.Name(name, start, end) for name in changed]
        calls.append(m.Assign(targets, m.Call(unknown, given, [], start, end), start, end))
    return calls
