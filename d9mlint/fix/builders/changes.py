"""The small changes that fixes are made of: arguments, statements, imports and helper functions.

Each returns edits, or None where the change cannot be written without damage. Inserted statements use the
indentation of their neighbors; comments stay where they are.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from d9mlint.base.findings import Edit
from d9mlint.fix.builders.code import Code

_COMMENT = re.compile(r"#[^\r\n]*")
ALIASES = {"numpy": "np", "tensorflow": "tf"}
"""The names under which modules are imported by custom."""


def replace(code: Code, node: ast.AST, text: str) -> Edit:
    """Write something else for an expression."""
    return Edit(code.start(node), code.end(node), text)


# ------------------------------------------------------------------------------------------ arguments


def argument(call: ast.Call, name: str, position: int | None = None) -> ast.expr | None:
    """The expression that a call gives an argument by keyword or position."""
    for keyword in call.keywords:
        if keyword.arg == name:
            return keyword.value
    if (
        position is not None
        and position < len(call.args)
        and not any(isinstance(a, ast.Starred) for a in call.args[: position + 1])
    ):
        return call.args[position]
    return None


def set_argument(
    code: Code, call: ast.Call, name: str, value: str, position: int | None = None
) -> tuple[Edit, ...] | None:
    """Give a call an argument: in place where it is written, else as the last keyword.

    None where unpacked arguments may already hold it, and where it is given something else than a constant.
    """
    written = argument(call, name, position)
    if isinstance(written, ast.Constant):
        return (replace(code, written, value),)
    if written is not None:
        # A variable is set elsewhere, perhaps by who calls this.
        return None
    if any(k.arg is None for k in call.keywords):
        return None
    if position is not None and any(isinstance(a, ast.Starred) for a in call.args):
        return None
    if position is not None and position == len(call.args) and not call.keywords and not name:
        return append_argument(code, call, value)
    return append_argument(code, call, f"{name}={value}") if name else None


def append_argument(code: Code, call: ast.Call, text: str) -> tuple[Edit, ...] | None:
    """Write one more argument behind those that a call has, in the layout that the call has."""
    raw = code.source.raw
    close = code.end(call) - 1
    given: list[ast.AST] = [*call.args, *call.keywords]
    if not given:
        return (Edit(close, close, text),)
    if len(given) == 1 and isinstance(given[0], ast.GeneratorExp):
        # f(x for x in y) takes a second argument only when the first gets parentheses of its own.
        if code.end(given[0]) == code.end(call):
            return None
    last = max(given, key=code.end)
    position = code.end(last)
    comma = -1
    while position < close:
        char = raw[position]
        if char == "#":
            found = _COMMENT.match(raw, position)
            assert found is not None
            position = found.end()
            continue
        if char == ",":
            comma = position
        position += 1
    if comma < 0:
        behind = _behind_parentheses(raw, code.end(last), close)
        return (Edit(behind, behind, f", {text}"),)
    if "\n" not in raw[comma:close] and "\r" not in raw[comma:close]:
        return (Edit(comma + 1, comma + 1, f" {text}"),)
    first = code.line_start(code.start(last))
    margin = raw[first : code.start(last)]
    indent = margin if not margin.strip() else " " * 4
    end = code.line_end(comma)
    return (Edit(end, end, f"\n{indent}{text},"),)


def _behind_parentheses(raw: str, position: int, close: int) -> int:
    """The offset behind an argument and the parentheses around it."""
    behind = position
    while position < close:
        if raw[position] == "#":
            found = _COMMENT.match(raw, position)
            assert found is not None
            position = found.end()
            continue
        position += 1
        if raw[position - 1] == ")":
            behind = position
    return behind


def wrap(code: Code, node: ast.expr, head: str, tail: str = ")") -> tuple[Edit, ...]:
    """Put a call around an expression."""
    return (
        Edit(code.start(node), code.start(node), head),
        Edit(code.end(node), code.end(node), tail),
    )


def rename_called(code: Code, call: ast.Call, name: str) -> tuple[Edit, ...] | None:
    """Call another attribute of the same object or module."""
    if not isinstance(call.func, ast.Attribute):
        return None
    end = code.end(call.func)
    return (Edit(end - len(call.func.attr), end, name),)


# ----------------------------------------------------------------------------------------- statements


def _indent(code: Code, stmt: ast.stmt) -> str | None:
    """The indentation of a statement; None where it does not start its line."""
    start = code.start(stmt)
    margin = code.source.text[code.line_start(start) : start]
    return margin if not margin.strip(" \t\f") else None


def insert_before(
    code: Code, stmt: ast.stmt, lines: list[str], *, blank: bool = False
) -> tuple[Edit, ...] | None:
    """Put statements before a statement, on the same line where that is written behind a colon."""
    start = code.start(stmt)
    indent = _indent(code, stmt)
    if indent is None:
        if any("\n" in line or line.endswith(":") or line.startswith((" ", "\t")) for line in lines):
            return None
        return (Edit(start, start, "".join(f"{line}; " for line in lines)),)
    text = "".join(f"{indent}{line}\n" if line else "\n" for line in lines)
    at = code.line_start(start)
    return (Edit(at, at, text + ("\n" if blank else "")),)


def insert_above(code: Code, stmt: ast.stmt, lines: list[str]) -> tuple[Edit, ...] | None:
    """Put a definition before a statement of the module, above the comments that belong to it, two lines apart from what
    is above."""
    if _indent(code, stmt) is None:
        return None
    row = code.source.row_column(code.start(stmt))[0]
    for decorator in getattr(stmt, "decorator_list", []):
        row = min(row, code.source.row_column(code.start(decorator))[0])
    first = 1
    if code.source.cells:
        first = code.source.row_column(code.source.cell_at(code.start(stmt)).start)[0]
    commented = row
    while commented > first and code.source.line(commented - 1).startswith("#"):
        commented -= 1
    if commented > first:
        # Comments at the very top are those of the file.
        row = commented
    above = [code.source.line(r).strip() for r in range(max(first, row - 2), row)]
    blank = 0
    while blank < len(above) and not above[-1 - blank]:
        blank += 1
    missing = 2 - blank if len(above) > blank else 0
    at = code.source.starts[row - 1]
    return (Edit(at, at, "\n" * missing + "".join(f"{line}\n" for line in lines)),)


def insert_after(code: Code, stmt: ast.stmt, lines: list[str]) -> tuple[Edit, ...] | None:
    """Put statements behind a statement."""
    end = code.end(stmt)
    stop = code.line_end(end)
    rest = code.source.text[end:stop].strip()
    indent = _indent(code, stmt)
    if indent is None or (rest and not rest.startswith("#")):
        if any("\n" in line or line.endswith(":") or line.startswith((" ", "\t")) for line in lines):
            return None
        if isinstance(stmt, (ast.FunctionDef, ast.ClassDef, ast.If, ast.For, ast.While, ast.With, ast.Try)):
            return None
        return (Edit(end, end, "".join(f"; {line}" for line in lines)),)
    return (Edit(stop, stop, "".join(f"\n{indent}{line}" if line else "\n" for line in lines)),)


def delete_statement(code: Code, stmt: ast.stmt) -> tuple[Edit, ...]:
    """Take a statement away. What stands beside it on its line stays, comments too."""
    start, end = code.start(stmt), code.end(stmt)
    body = code.body_of(stmt)
    stop = code.line_end(end)
    rest = code.source.text[end:stop].strip()
    if len(body) == 1 or _indent(code, stmt) is None or (rest and not rest.startswith("#")):
        return (Edit(start, end, "pass"),)
    if rest:
        return (Edit(start, end + code.source.text[end:stop].index("#"), ""),)
    begin = code.line_start(start)
    row = code.source.row_column(end)[0]
    starts = code.source.starts
    if row < len(starts) and not (code.source.cells and starts[row] > code.source.cell_at(start).end):
        stop = starts[row]
        first = code.source.row_column(start)[0]
        if first > 1 and row + 1 < len(starts) and not code.source.cells:
            if not code.source.line(first - 1).strip() and not code.source.line(row + 1).strip():
                # One of the blank lines around it is enough.
                stop = starts[row + 1]
        return (Edit(begin, stop, ""),)
    return (Edit(start, end, "pass"),)


# -------------------------------------------------------------------------------------------- imports


def is_import(stmt: ast.stmt) -> bool:
    """Whether a statement only imports: also ``try:`` with imports, and imports for type checking."""
    if isinstance(stmt, (ast.Import, ast.ImportFrom)):
        return True
    if isinstance(stmt, ast.Try):
        return all(is_import(s) for s in stmt.body) and bool(stmt.body)
    return isinstance(stmt, ast.If) and ast.unparse(stmt.test) in ("TYPE_CHECKING", "typing.TYPE_CHECKING")


def is_future(stmt: ast.stmt) -> bool:
    """Whether a statement imports from ``__future__``."""
    return isinstance(stmt, ast.ImportFrom) and stmt.module == "__future__"


def module_name(code: Code, module: str, user: ast.AST, before: int | None = None) -> tuple[str, str]:
    """The name by which code can use a module, and the import that it needs first, empty where none.

    ``user`` is the node beside which the name will be used, and ``before`` the offset before which it must be
    imported. A name that is bound to something else there is avoided.
    """
    limit = code.end(code.tree.body[-1]) + 1 if before is None else before
    taken = frozenset[str]()
    for scope in [user, *code.ancestors(user)]:
        if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            taken |= code.bound(scope)
    for stmt in _imports(code.tree.body):
        if code.end(stmt) <= limit:
            for alias in stmt.names:
                name = alias.asname or alias.name.partition(".")[0]
                bound = alias.name if alias.asname else name
                if bound == module and name not in taken and not _rebound(code, name):
                    return name, ""
    head, _, last = module.rpartition(".")
    name = ALIASES.get(module, last)
    others = code.bound(code.tree) - frozenset(
        bound for bound, target in code.imported().items() if target == module
    )
    while name in others | taken:
        name = f"_{name}"
    if head:
        return name, f"from {head} import {last}" + (f" as {name}" if name != last else "")
    return name, f"import {module}" + (f" as {name}" if name != module else "")


def _imports(body: list[ast.stmt]) -> Iterator[ast.Import]:
    """The imports of modules in a body, also those that are tried."""
    for stmt in body:
        if isinstance(stmt, ast.Import):
            yield stmt
        elif isinstance(stmt, ast.Try):
            yield from _imports(stmt.body)


def _rebound(code: Code, name: str) -> bool:
    """Whether the module gives a name that it imports another meaning, other than None where the import fails."""
    for node in code.nodes:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == name:
            return True
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id == name:
            if isinstance(code.scope(node), ast.Module) and not _is_fallback(code, node):
                return True
        if isinstance(node, ast.ImportFrom) and isinstance(code.scope(node), ast.Module):
            if any((a.asname or a.name) == name for a in node.names):
                return True
    return False


def _is_fallback(code: Code, node: ast.Name) -> bool:
    above = code.parents[node]
    return (
        isinstance(above, ast.Assign)
        and isinstance(above.value, ast.Constant)
        and above.value.value is None
        and isinstance(code.parents[above], ast.ExceptHandler)
    )


def insert_imports(code: Code, lines: list[str]) -> tuple[Edit, ...]:
    """Put imports before the first import of a module that has any, else behind its docstring."""
    if not lines:
        return ()
    for stmt in code.tree.body:
        if code.is_docstring(stmt) or is_future(stmt):
            continue
        start = code.line_start(code.start(stmt))
        first = [line for line in lines if _is_standard(line.split()[1])]
        others = [line for line in lines if line not in first]
        parts = [first, others] if first and others else [[*first, *others]]
        text = "\n".join("".join(f"{line}\n" for line in part) for part in parts)
        apart = not is_import(stmt) or (bool(first) and not others and not is_standard_import(stmt))
        return (Edit(start, start, f"{text}\n" if apart else text),)
    return ()


def is_standard_import(stmt: ast.stmt) -> bool:
    """Whether a statement only imports modules of the standard library."""
    if isinstance(stmt, ast.Import):
        return all(_is_standard(a.name) for a in stmt.names)
    if isinstance(stmt, ast.ImportFrom):
        return not stmt.level and _is_standard(stmt.module or "")
    return False


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names
