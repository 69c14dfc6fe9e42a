"""The start of a program: where seeds and switches go so that they hold for all that the program does."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable, Iterable, Sequence

from d9mlint.base.findings import Edit
from d9mlint.fix.builders import changes
from d9mlint.fix.builders.code import Code

_OF_A_BLOCK = frozenset(
    {"enable_op_determinism", "manual_seed", "seed", "set_random_seed", "use_deterministic_algorithms"}
)
"""Names of calls at the start of a program beside which further ones go."""


class Start:
    """Collects the statements of one block, with the imports that they need, for a place in a program.

    ``offsets`` are places of the entry point's own file that the block has to come before, ``own`` tells whether a module of
    that top-level name may be one of the project. The block stands before ``anchor`` where that is given.
    """

    def __init__(
        self, code: Code, offsets: Iterable[int], own: Callable[[str], bool], anchor: ast.stmt | None = None
    ) -> None:
        self.code = code
        self.anchor, self.behind = (anchor, False) if anchor is not None else _place(code, offsets)
        if isinstance(self.anchor, (ast.Import, ast.ImportFrom)) and not self.behind:
            self.anchor = _first_own(code, self.anchor, own)
        self._lines: list[str] = []
        self._imports: list[str] = []

    def name(self, module: str) -> str:
        """The name by which the block can use a module; its import is added where it is missing."""
        assert self.anchor is not None
        before = self.code.start(self.anchor) if not self.behind else self.code.end(self.anchor)
        if self.code.top(self.anchor) is not self.anchor:
            before = self.code.start(self.code.top(self.anchor))
        name, statement = changes.module_name(self.code, module, self.anchor, before)
        if statement and statement not in self._imports:
            self._imports.append(statement)
        return name

    def add(self, line: str) -> None:
        """Add a statement to the block."""
        if line not in self._lines:
            self._lines.append(line)

    def edits(self) -> tuple[Edit, ...] | None:
        """The edits that write the block."""
        anchor = self.anchor
        if anchor is None or not self._lines or self._imports_too_early(anchor):
            return None
        at_top = self.code.top(anchor) is anchor
        if self.behind:
            block = changes.insert_after(self.code, anchor, ["", *self._lines])
            if block is None or not block[0].content.startswith("\n"):
                return None
            (edit,) = block
            if not self._followed_by_blank(edit.start):
                block = (Edit(edit.start, edit.end, f"{edit.content}\n"),)
            return changes.with_imports(self.code, self._imports, block)
        if at_top and changes.is_import(anchor):
            return changes.insert_before(self.code, anchor, [*self._imports, "", *self._lines], blank=True)
        if at_top and self._imports and not any(changes.is_import(s) for s in self.code.tree.body):
            return changes.insert_before(self.code, anchor, [*self._imports, "", *self._lines], blank=True)
        block = changes.insert_before(self.code, anchor, self._lines, commented=True)
        if block is None:
            return None
        return changes.with_imports(self.code, self._imports, block)

    def _imports_too_early(self, anchor: ast.stmt) -> bool:
        """Whether the block imports a library of which the file sets something in the environment later: most read it
        when they are imported."""
        names = {one.split()[1].partition(".")[0] for one in self._imports}
        if names <= {*sys.stdlib_module_names, "numpy"}:
            return False
        code = self.code
        set_at = [
            one for one in code.nodes if isinstance(one, ast.stmt) and changes.sets_environment(code, one)
        ]
        return any(
            code.start(one) > code.start(anchor) or not isinstance(code.scope(one), ast.Module)
            for one in set_at
        )

    def _followed_by_blank(self, offset: int) -> bool:
        rest = self.code.source.raw[offset:].splitlines()[1:2]
        cells = self.code.source.cells
        if cells and offset >= self.code.source.cell_at(offset).end - 1:
            return True
        return not rest or not rest[0].strip()


def _place(code: Code, offsets: Iterable[int]) -> tuple[ast.stmt | None, bool]:
    """The statement that a block goes beside, and whether it goes behind it."""
    known = [(index, offset) for offset in offsets if (index := code.top_at(offset)) is not None]
    if not known:
        return None, False
    index, _ = min(known)
    stmt = code.tree.body[index]
    if isinstance(stmt, ast.ClassDef):
        return None, False
    if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef)) and all(
        offset >= code.start(stmt.body[0]) for i, offset in known if i == index
    ):
        # A launcher calls the function. Defaults and decorators run where it is defined.
        return _first(code, stmt.body), False
    if code.is_main_guard(stmt):
        assert isinstance(stmt, ast.If)
        inside = [o for i, o in known if i == index]
        first = _first(code, stmt.body)
        if min(inside) < code.start(first):
            # An import in the guard draws.
            first = stmt.body[0]
        return (first, False) if min(inside) >= code.start(stmt.body[0]) else (stmt, False)
    last = None
    for other in code.tree.body[:index]:
        if changes.is_import(other):
            last = other
    if last is None or not isinstance(last, (ast.Import, ast.ImportFrom)):
        return stmt, False
    if changes.is_import(stmt):
        return stmt, False
    following = code.tree.body[code.tree.body.index(last) + 1]
    if (
        isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Call)
        and isinstance(following.value.func, ast.Attribute)
        and following.value.func.attr in _OF_A_BLOCK
    ):
        # It joins the block that is there.
        return following, False
    return last, True


def _first_own(code: Code, stmt: ast.stmt, own: Callable[[str], bool]) -> ast.stmt:
    """The first of the imports of the project's modules that stand in front of one whose module draws, and that one: what
    else they do when they are imported need not be known."""
    if stmt not in code.tree.body:
        return stmt
    for other in reversed(code.tree.body[: code.tree.body.index(stmt)]):
        if code.start(other) < code.front:
            break
        if isinstance(other, ast.ImportFrom):
            names = ["" if other.level else (other.module or "").partition(".")[0]]
        elif isinstance(other, ast.Import):
            names = [one.name.partition(".")[0] for one in other.names]
        else:
            break
        if all(not name or own(name) for name in names):
            stmt = other
        elif not changes.is_standard_import(other):
            break
    return stmt


def _first(code: Code, body: list[ast.stmt]) -> ast.stmt:
    for stmt in body[:-1]:
        if not (
            code.is_docstring(stmt)
            or isinstance(stmt, (ast.Global, ast.Nonlocal, ast.Import, ast.ImportFrom))
        ):
            return stmt
    return body[-1]


def environment(code: Code, values: Sequence[tuple[str, str]]) -> tuple[Edit, ...] | None:
    """Set environment variables before the first import of anything that may read them."""
    anchor = next(
        (s for s in code.tree.body if not (code.is_docstring(s) or changes.is_standard_import(s))), None
    )
    if anchor is None:
        return None
    name, needed = changes.module_name(code, "os", anchor, code.start(anchor))
    lines = [needed, ""] if needed else []
    for key, value in values:
        lines.append(f'{name}.environ["{key}"] = "{value}"')
    previous = code.tree.body[: code.tree.body.index(anchor)]
    above = code.source.row_column(code.start(anchor))[0] - 1
    if previous and not needed and code.source.line(above).strip():
        lines.insert(0, "")
    return changes.insert_before(code, anchor, lines, blank=True)


def with_one_import(code: Code, edits: Sequence[Edit]) -> list[Edit]:
    """Edits of which the first is that of ``environment``, without an import of ``os`` further down where it adds one. In
    a notebook that stays: its cells may be run one by one."""
    same = list(edits)
    if not same or code.source.cells or not same[0].content.lstrip().startswith("import os\n"):
        return same
    for stmt in code.tree.body:
        plain = isinstance(stmt, ast.Import) and [(x.name, x.asname) for x in stmt.names] == [("os", None)]
        if not plain or code.start(stmt) < same[0].end:
            continue
        (away,) = changes.delete_statement(code, stmt)
        end = code.end(stmt)
        if away.content or away.end <= end or code.source.raw[end : code.line_end(end)].strip():
            # Something stands beside it.
            return same
        near = [one for one in same if one.start < away.end and away.start < one.end]
        if not near:
            return [*same, away]
        if len(near) > 1 or (near[0].start, near[0].end) != (end, end):
            return same
        # What goes behind the import takes its place.
        above = code.source.raw[: away.start].endswith("\n\n")
        content = near[0].content.lstrip("\n") if above else near[0].content.removeprefix("\n")
        return [Edit(away.start, end, content) if one is near[0] else one for one in same]
    return same


def assignments(code: Code, variable: str) -> list[ast.stmt]:
    """The statements that set an environment variable by its literal name."""
    found: list[ast.stmt] = []
    for node in code.nodes:
        if (
            isinstance(node, ast.Assign)
            and len(node.targets) == 1
            and isinstance(node.targets[0], ast.Subscript)
            and code.qualified(node.targets[0].value) == "os.environ"
            and _is(node.targets[0].slice, variable)
        ) or (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Call)
            and code.qualified(node.value.func) in ("os.environ.setdefault", "os.putenv")
            and node.value.args
            and _is(node.value.args[0], variable)
        ):
            found.append(node)
    return found


def _is(node: ast.expr, text: str) -> bool:
    return isinstance(node, ast.Constant) and node.value == text


def assigned_value(stmt: ast.stmt) -> ast.expr | None:
    """The value that such a statement sets."""
    if isinstance(stmt, ast.Assign):
        return stmt.value
    if isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call) and len(stmt.value.args) == 2:
        return stmt.value.args[1]
    return None
