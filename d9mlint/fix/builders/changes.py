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
        margins = [raw[code.line_start(code.start(one)) : code.start(one)] for one in given[1:]]
        if len(margins) > 1 and not any(m.strip() for m in margins) and "#" not in raw[behind:close]:
            # Each argument stands on its own line.
            return (Edit(behind, behind, f",\n{margins[-1]}{text}"),)
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
    code: Code, stmt: ast.stmt, lines: list[str], *, blank: bool = False, commented: bool = False
) -> tuple[Edit, ...] | None:
    """Put statements before a statement, on the same line where that is written behind a colon.

    ``commented``: above the comment that belongs to the statement, if there is one.
    """
    start = code.start(stmt)
    indent = _indent(code, stmt)
    if indent is None:
        if any("\n" in line or line.endswith(":") or line.startswith((" ", "\t")) for line in lines):
            return None
        return (Edit(start, start, "".join(f"{line}; " for line in lines)),)
    text = "".join(f"{indent}{line}\n" if line else "\n" for line in lines)
    at = code.source.starts[_comment_row(code, stmt, indent) - 1] if commented else code.line_start(start)
    return (Edit(at, at, text + ("\n" if blank else "")),)


def insert_above(code: Code, stmt: ast.stmt, lines: list[str]) -> tuple[Edit, ...] | None:
    """Put a definition before a statement of the module, above the comments that belong to it, two lines apart from what
    is above."""
    if _indent(code, stmt) is None:
        return None
    row = _comment_row(code, stmt, "")
    first = _first_row(code, stmt)
    above = [code.source.line(r).strip() for r in range(max(first, row - 2), row)]
    blank = 0
    while blank < len(above) and not above[-1 - blank]:
        blank += 1
    missing = 2 - blank if len(above) > blank else 0
    at = code.source.starts[row - 1]
    return (Edit(at, at, "\n" * missing + "".join(f"{line}\n" for line in lines)),)


def _first_row(code: Code, stmt: ast.stmt) -> int:
    """The first row of the file, or of the cell that a statement is in."""
    if code.source.cells:
        return code.source.row_column(code.source.cell_at(code.start(stmt)).start)[0]
    return 1


def _comment_row(code: Code, stmt: ast.stmt, indent: str) -> int:
    """The row in which a statement starts, with the decorators and the comment right above it. A comment at the very
    top is that of the file."""
    row = code.source.row_column(code.start(stmt))[0]
    for decorator in getattr(stmt, "decorator_list", []):
        row = min(row, code.source.row_column(code.start(decorator))[0])
    first = _first_row(code, stmt)
    commented = row
    while commented > first and code.source.line(commented - 1).startswith(f"{indent}#"):
        commented -= 1
    return commented if commented > first else row


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
                    if not any(names.get(name, module) != module for _, names in code.starred()):
                        return name, ""
    for star, names in code.starred():
        if code.end(star) <= limit:
            for name, target in names.items():
                if target == module and name not in taken | code.bound(code.tree):
                    return name, ""
    head, _, last = module.rpartition(".")
    name = ALIASES.get(module, last)
    others = code.bound(code.tree) - frozenset(
        bound for bound, target in code.imported().items() if target == module
    )
    # An import of all names that follows would give the name another meaning, or the new import would to what uses it.
    others |= {one for _, names in code.starred() for one, target in names.items() if target != module}
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


def with_imports(code: Code, lines: list[str], edits: tuple[Edit, ...]) -> tuple[Edit, ...]:
    """Edits together with the imports that they need, each among the imports of its group.

    A module that imports nothing gets them behind its docstring.
    """
    if not lines:
        return edits
    before = min(edit.start for edit in edits)
    front = code.front if code.front <= before else 0
    section = [one for one in _import_section(code, before) if code.start(one) >= front]
    placed: dict[int, list[str]] = {}
    above: list[str] = []
    for line in lines:
        found = _import_place(code, section, line)
        if found is None:
            above.append(line)
        else:
            at, text = found
            others = placed.setdefault(at, [])
            # A new group is set apart once.
            others.append(text.replace("\n\n", "\n") if others else text)
    if above:
        at, text = _first_imports(code, above, front)
        placed.setdefault(at, []).insert(0, text)
    inserted = [Edit(at, at, "".join(parts)) for at, parts in placed.items()]
    # What is inserted at one place is one edit, in which the imports come first.
    joined: list[Edit] = []
    for edit in edits:
        same = next((e for e in inserted if e.start == edit.start == edit.end), None)
        if same is not None:
            inserted.remove(same)
            edit = Edit(edit.start, edit.end, same.content + edit.content)
        joined.append(edit)
    return (*inserted, *joined)


def _import_section(code: Code, before: int) -> list[ast.stmt]:
    """The imports at the start of a module, each alone on its lines, and what sets the environment between them, as
    far as they are run before an offset."""
    found: list[ast.stmt] = []
    for stmt in code.tree.body:
        if not (is_import(stmt) or isinstance(stmt, (ast.Expr, ast.Assign, ast.AnnAssign))):
            break
        stop = code.line_end(code.end(stmt))
        rest = code.source.text[code.end(stmt) : stop].strip()
        if stop > before or _indent(code, stmt) is None or (rest and not rest.startswith("#")):
            break
        if is_future(stmt):
            continue
        if isinstance(stmt, (ast.Import, ast.ImportFrom)) or sets_environment(code, stmt):
            found.append(stmt)
    return found


def sets_environment(code: Code, stmt: ast.stmt) -> bool:
    """Whether a statement writes an environment variable, which imports that follow may read."""
    written = stmt.targets[0] if isinstance(stmt, ast.Assign) else None
    if isinstance(written, ast.Subscript):
        return code.qualified(written.value) == "os.environ"
    if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
        return code.qualified(stmt.value.func) in ("os.environ.setdefault", "os.environ.update", "os.putenv")
    return False


def _import_place(code: Code, section: list[ast.stmt], line: str) -> tuple[int, str] | None:
    """Where an import goes among those of a module, and what is written there; None for one that comes before them.

    As isort does it: the standard library first, then other packages, then the project's own modules; in a
    group that is sorted at its place, in another at its end.
    """
    standard = _is_standard(line.split()[1])
    group: list[ast.stmt] = []
    row = 0
    for stmt in section:
        if group and code.source.row_column(code.start(stmt))[0] - row > 1:
            # A blank line or a comment ends a group.
            break
        row = code.source.row_column(code.end(stmt))[0]
        if _group(code, stmt) == (0 if standard else 1):
            group.append(stmt)
    if not group:
        earlier = [s for s in section if _group(code, s) == 0 or not is_import(s)]
        if standard or not earlier:
            return None
        return code.line_end(code.end(earlier[-1])), f"\n\n{line}"
    (new,) = ast.parse(line).body
    keys = [_sort_key(stmt) for stmt in group]
    if keys == sorted(keys) and _sort_key(new) < keys[0]:
        return code.line_start(code.start(group[0])), f"{line}\n"
    last = group[-1]
    if keys == sorted(keys):
        last = [stmt for stmt, key in zip(group, keys, strict=True) if key <= _sort_key(new)][-1]
    return code.line_end(code.end(last)), f"\n{line}"


def _group(code: Code, stmt: ast.stmt) -> int:
    """0 for the standard library, 1 for other packages, 2 for the project's own, 3 for what is no import."""
    if not isinstance(stmt, (ast.Import, ast.ImportFrom)):
        return 3
    if is_standard_import(stmt):
        return 0
    if isinstance(stmt, ast.ImportFrom):
        own = stmt.level > 0 or code.is_own((stmt.module or "").partition(".")[0])
    else:
        own = any(code.is_own(a.name.partition(".")[0]) for a in stmt.names)
    return 2 if own else 1


def _sort_key(stmt: ast.stmt) -> tuple[bool, str]:
    name = stmt.names[0].name if isinstance(stmt, ast.Import) else getattr(stmt, "module", "") or ""
    return isinstance(stmt, ast.ImportFrom), name.lower()


def _first_imports(code: Code, lines: list[str], front: int) -> tuple[int, str]:
    """What is written, and where, for imports before the first statement that is no docstring, behind ``front``."""
    stmt = next(
        (s for s in code.tree.body if code.start(s) >= front and not (code.is_docstring(s) or is_future(s))),
        code.tree.body[-1],
    )
    first = [line for line in lines if _is_standard(line.split()[1])]
    others = [line for line in lines if line not in first]
    text = "\n".join("".join(f"{line}\n" for line in part) for part in (first, others) if part)
    if front and not is_import(stmt):
        return code.line_end(front), "\n" + text.removesuffix("\n")
    apart = not is_import(stmt) or _group(code, stmt) > (1 if others else 0)
    return code.line_start(code.start(stmt)), f"{text}\n" if apart else text


def is_standard_import(stmt: ast.stmt) -> bool:
    """Whether a statement only imports modules of the standard library."""
    if isinstance(stmt, ast.Import):
        return all(_is_standard(a.name) for a in stmt.names)
    if isinstance(stmt, ast.ImportFrom):
        return not stmt.level and _is_standard(stmt.module or "")
    return False


def _is_standard(module: str) -> bool:
    return module.partition(".")[0] in sys.stdlib_module_names


_COUNTING = frozenset({"range", "trange", "count"})


def is_counted(code: Code, loop: ast.For) -> bool:
    """Whether the variable of a loop is the number of its round, also where a progress bar shows the rounds."""
    given: ast.expr | None = loop.iter
    while isinstance(given, ast.Call):
        if code.qualified(given.func).rpartition(".")[2] in _COUNTING:
            return True
        given = given.args[0] if given.args else None
    return False
