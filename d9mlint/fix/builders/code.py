"""A file that a fix is built for: its syntax tree, places as offsets, and what its names are bound to."""

from __future__ import annotations

import ast
import warnings
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from d9mlint.base.source import Source
from d9mlint.ir.nodes import Unread
from d9mlint.ir.unread import UNKNOWN, changed_names, is_inside, without

Scope = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef | ast.Module
MOST_PARSED = 2_000_000
"""Characters of a file that is parsed for its fixes: a larger one is generated code."""


class Code:
    """The syntax tree of a source, with parents and with places as offsets into ``Source.text``.

    ``is_own`` says whether a top-level module name is one of the project, ``exported`` what the names stand for that
    ``from module import *`` binds, as far as the module is one of the project, ``goes_first`` whether a module has to be
    imported, or a function has to be called, before others are imported.
    """

    def __init__(
        self,
        source: Source,
        tree: ast.Module,
        is_own: Callable[[str], bool],
        exported: Callable[[ast.ImportFrom], Mapping[str, str]],
        goes_first: Callable[[str], bool],
    ) -> None:
        self.source = source
        self.is_own = is_own
        self._exported = exported
        self.tree = tree
        self.parents: dict[ast.AST, ast.AST] = {}
        # All nodes in the order of ast.walk, and those with a place by the row that they start in.
        self.nodes: list[ast.AST] = [tree]
        self._rows: dict[int, list[ast.AST]] = {}
        for node in self.nodes:
            row = getattr(node, "lineno", 0)
            if row:
                self._rows.setdefault(row, []).append(node)
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
                self.nodes.append(child)
        self._names: dict[ast.AST, frozenset[str]] = {}
        self._imported: dict[str, str] | None = None
        self._goes_first = goes_first

    # ------------------------------------------------------------------------------------- places

    def start(self, node: ast.AST) -> int:
        """The offset at which a node starts; the first decorator's ``@`` for a definition that has any."""
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.decorator_list:
            first = self._offset(node.decorator_list[0].lineno, node.decorator_list[0].col_offset)
            return self.source.text.rindex("@", 0, first)
        return self._offset(node.lineno, node.col_offset)  # type: ignore[attr-defined]

    def end(self, node: ast.AST) -> int:
        """The offset behind a node."""
        return self._offset(node.end_lineno, node.end_col_offset)  # type: ignore[attr-defined]

    def _offset(self, row: int, column: int) -> int:
        start = self.source.starts[row - 1]
        line = self.source.text[start : start + column]
        if line.isascii():
            return start + column
        # Python counts bytes of UTF-8.
        encoded = self.source.text[start : start + column].encode("utf-8", "surrogatepass")[:column]
        return start + len(encoded.decode("utf-8", "ignore"))

    def text(self, node: ast.AST) -> str:
        """A node as it is written."""
        return self.source.raw[self.start(node) : self.end(node)]

    def line_start(self, offset: int) -> int:
        """The offset of the first character of the line that holds an offset."""
        return self.source.starts[self.source.row_column(offset)[0] - 1]

    def line_end(self, offset: int) -> int:
        """The offset behind the last character of the line that holds an offset, before its line end."""
        row = self.source.row_column(offset)[0]
        return self.source.starts[row - 1] + len(self.source.line(row))

    def at(self, start: int, end: int) -> ast.AST | None:
        """The outermost node that stands exactly there."""
        row = self.source.row_column(start)[0]
        for node in self._rows.get(row, ()):
            if self.start(node) == start and self.end(node) == end:
                return node.value if isinstance(node, ast.Expr) else node
        return None

    def call(self, start: int, end: int) -> ast.Call | None:
        """The call that stands exactly there or is the last of a chain, or what is awaited or assigned there when
        that is one."""
        node = self.at(start, end)
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.Await, ast.Return)) and node.value is not None:
            node = node.value
        if isinstance(node, ast.Call):
            return node
        for other in self.nodes if node is None else ():
            # The place of a call in a chain is from the name of the method on.
            if (
                isinstance(other, ast.Call)
                and isinstance(other.func, ast.Attribute)
                and self.end(other) == end
            ):
                if self.end(other.func) - len(other.func.attr) == start:
                    return other
        return None

    # ------------------------------------------------------------------------------------ structure

    def statement(self, node: ast.AST) -> ast.stmt:
        """The innermost statement around a node."""
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def top(self, node: ast.AST) -> ast.stmt:
        """The statement of the module body around a node."""
        while not isinstance(self.parents[node], ast.Module):
            node = self.parents[node]
        assert isinstance(node, ast.stmt)
        return node

    def top_at(self, offset: int) -> int | None:
        """The index of the statement of the module body that holds an offset."""
        for index, stmt in enumerate(self.tree.body):
            if self.start(stmt) <= offset < self.end(stmt):
                return index
        return None

    def body_of(self, stmt: ast.stmt) -> list[ast.stmt]:
        """The list of statements that a statement is one of."""
        parent = self.parents[stmt]
        for name in ("body", "orelse", "finalbody"):
            found = getattr(parent, name, None)
            if isinstance(found, list) and any(one is stmt for one in found):
                return found
        return [stmt]

    def ancestors(self, node: ast.AST) -> Iterator[ast.AST]:
        """The nodes around a node, from the inside out."""
        while node in self.parents:
            node = self.parents[node]
            yield node

    def scope(self, node: ast.AST) -> Scope:
        """The function, lambda, class or module whose code a node is part of."""
        for above in self.ancestors(node):
            if isinstance(
                above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.Module)
            ):
                return above
        return self.tree

    def runs_at_import(self, start: int, end: int) -> bool:
        """Whether what stands there runs when the module does: in no function's body, as defaults are."""
        node = self.at(start, end)
        if node is None:
            return False
        for parent in self.ancestors(node):
            if isinstance(parent, ast.Lambda) and node is parent.body:
                return False
            if isinstance(parent, (ast.FunctionDef, ast.AsyncFunctionDef)) and node in parent.body:
                return False
            node = parent
        return True

    def first_action(self) -> int | None:
        """Where the first statement of the module body is that neither imports nor defines anything; in a main guard,
        where its body starts. None where there is none."""
        passive = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        for stmt in self.tree.body:
            if not isinstance(stmt, passive) and not self.is_docstring(stmt):
                if isinstance(stmt, ast.If) and self.is_main_guard(stmt):
                    return self.start(stmt.body[0])
                return self.start(stmt)
        return None

    @cached_property
    def front(self) -> int:
        """The offset behind the statements of the module that have to stand before all other imports."""
        first = [self.end(stmt) for stmt in self.tree.body if any(map(self._goes_first, self._uses(stmt)))]
        return max(first, default=0)

    def _uses(self, stmt: ast.stmt) -> list[str]:
        """The modules that a statement imports, with the packages that they are in, or the function that it calls."""
        if isinstance(stmt, ast.Import):
            names = [one.name for one in stmt.names]
        elif isinstance(stmt, ast.ImportFrom):
            names = [stmt.module or ""] if not stmt.level else []
        elif isinstance(stmt, ast.Expr) and isinstance(stmt.value, ast.Call):
            return [self.qualified(stmt.value.func)]
        else:
            return []
        return [*names, *(name.partition(".")[0] for name in names)]

    def is_import_at(self, offset: int) -> bool:
        """Whether the statement at module level there imports something."""
        index = self.top_at(offset)
        return index is not None and isinstance(self.tree.body[index], (ast.Import, ast.ImportFrom))

    def in_loop(self, node: ast.AST) -> bool:
        """Whether a node is run again and again in its own function."""
        child = node
        for above in self.ancestors(node):
            if isinstance(above, (ast.For, ast.AsyncFor)) and child is not above.iter:
                return True
            if isinstance(above, ast.While):
                return True
            if isinstance(above, (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
                return True
            if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
                return False
            child = above
        return False

    # ---------------------------------------------------------------------------------------- names

    def bound(self, scope: ast.AST) -> frozenset[str]:
        """All names that are bound somewhere in a scope or in scopes inside it."""
        found = self._names.get(scope)
        if found is None:
            found = self._names[scope] = frozenset(_bound(scope))
        return found

    def assigned(self, name: ast.Name) -> list[ast.expr]:
        """The values that are assigned to a name in the scope that it stands in."""
        return [
            node.value
            for node in ast.walk(self.scope(name))
            if isinstance(node, ast.Assign)
            and any(isinstance(t, ast.Name) and t.id == name.id for t in node.targets)
        ]

    def is_main_guard(self, stmt: ast.stmt) -> bool:
        """Whether a statement is ``if __name__ == "__main__":``."""
        return isinstance(stmt, ast.If) and any(
            isinstance(n, ast.Compare)
            and isinstance(n.ops[0], ast.Eq)
            and {"__name__", "'__main__'"} == {ast.unparse(n.left), ast.unparse(n.comparators[0])}
            for n in ast.walk(stmt.test)
        )

    def is_docstring(self, stmt: ast.stmt) -> bool:
        """Whether a statement is the docstring of the body that it stands in."""
        return (
            isinstance(stmt, ast.Expr)
            and isinstance(stmt.value, ast.Constant)
            and isinstance(stmt.value.value, str)
            and self.body_of(stmt)[0] is stmt
        )

    def qualified(self, func: ast.expr) -> str:
        """The dotted name of a called expression with the imports of the module resolved; empty for others."""
        parts: list[str] = []
        while isinstance(func, ast.Attribute):
            parts.append(func.attr)
            func = func.value
        if not isinstance(func, ast.Name):
            return ""
        return ".".join([self.imported().get(func.id, func.id), *reversed(parts)])

    def is_of_module(self, func: ast.expr) -> bool:
        """Whether an expression is an attribute of something that is imported."""
        while isinstance(func, ast.Attribute):
            func = func.value
        return isinstance(func, ast.Name) and func.id in self.imported()

    def imported(self) -> dict[str, str]:
        """What the names that imports bind anywhere in the file stand for."""
        if self._imported is not None:
            return self._imported
        found: dict[str, str] = {}
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    head = alias.name.partition(".")[0]
                    found[alias.asname or head] = alias.name if alias.asname else head
            elif isinstance(node, ast.ImportFrom) and not node.level:
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
        self._imported = found
        return found

    def starred(self) -> Iterator[tuple[ast.ImportFrom, Mapping[str, str]]]:
        """The imports of all names of modules of the project, with what each name stands for: empty where it is not
        an import there."""
        for stmt in self.tree.body:
            if isinstance(stmt, ast.ImportFrom) and stmt.names[0].name == "*":
                yield stmt, self._exported(stmt)

    def public(self) -> frozenset[str]:
        """The names that the module binds itself and gives to those who import all of its names."""
        listed = [
            stmt.value
            for stmt in self.tree.body
            if isinstance(stmt, ast.Assign)
            and isinstance(stmt.targets[0], ast.Name)
            and stmt.targets[0].id == "__all__"
        ]
        if listed and isinstance(listed[-1], (ast.List, ast.Tuple)):
            return frozenset(
                one.value
                for one in listed[-1].elts
                if isinstance(one, ast.Constant) and isinstance(one.value, str)
            )
        bound = (name for stmt in self.tree.body for name in _of_module(stmt))
        return frozenset(name for name in bound if not name.startswith(("_", "*")))

    def calls(self, names: Sequence[str]) -> Iterator[ast.Call]:
        """The calls of functions or classes by their qualified names, in order."""
        for node in self.nodes:
            if isinstance(node, ast.Call) and self.qualified(node.func) in names:
                yield node


def parse(
    source: Source,
    is_own: Callable[[str], bool],
    unread: Sequence[Unread],
    exported: Callable[[ast.ImportFrom], Mapping[str, str]],
    goes_first: Callable[[str], bool],
) -> Code | None:
    """The code of a source without what is not read of it; None where Python's own parser cannot read it."""
    if source.problem is not None or len(source.text) > MOST_PARSED:
        return None
    if unread:
        source = source.with_text(without(source.text, unread))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(source.text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    made = {name for stmt in tree.body for name in _made(stmt)}
    starts = [source.starts[stmt.lineno - 1] for stmt in tree.body]
    for one in reversed(unread):
        if is_inside(source.raw, one.start):
            continue
        stmt = _in_place_of(source, one, changed_names(source.raw, one, made))
        tree.body.insert(bisect_right(starts, one.start), stmt)
    return Code(source, tree, is_own, exported, goes_first)


def _made(stmt: ast.stmt) -> Iterator[str]:
    """The names that a statement gives to modules, functions and classes."""
    if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        yield stmt.name
    elif isinstance(stmt, (ast.Import, ast.ImportFrom)):
        for alias in stmt.names:
            yield alias.asname or alias.name.partition(".")[0]


def _in_place_of(source: Source, one: Unread, names: list[str]) -> ast.stmt:
    """A statement that assigns something to the names which a part that is not read may assign to."""
    stmt: ast.stmt = ast.Pass()
    if names:
        targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in names]
        stmt = ast.Assign(targets, ast.Name(UNKNOWN, ast.Load()))
    first, column = source.row_column(one.start)
    last, _ = source.row_column(max(one.end - 1, one.start))
    for node in ast.walk(stmt):
        if isinstance(node, (ast.stmt, ast.expr)):
            node.lineno, node.col_offset = first, column - 1
            node.end_lineno, node.end_col_offset = last, len(source.line(last).encode("utf-8", "replace"))
    return stmt


def _of_module(stmt: ast.AST) -> Iterator[str]:
    """The names of the module that a statement at its top binds, without those of functions and classes in it."""
    if isinstance(stmt, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
        yield from _made(stmt)
    elif isinstance(stmt, ast.Name) and isinstance(stmt.ctx, ast.Store):
        yield stmt.id
    else:
        for child in ast.iter_child_nodes(stmt):
            yield from _of_module(child)


def _bound(scope: ast.AST) -> Iterator[str]:
    for node in ast.walk(scope):
        if isinstance(node, ast.Name) and isinstance(node.ctx, (ast.Store, ast.Del)):
            yield node.id
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
        elif isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, (ast.ExceptHandler, ast.MatchAs, ast.MatchStar)) and node.name:
            yield node.name
