"""Statements."""

from __future__ import annotations

import libcst as cst

from d9mlint.frontend.cursor import STMT, Cursor, Node, Refused
from d9mlint.frontend.lower_def import block, type_alias
from d9mlint.frontend.lower_expr import OPERATORS, lower, optional, tested
from d9mlint.frontend.tokens import Desync
from d9mlint.ir.nodes import (
    Alias,
    AnnAssign,
    Assert,
    Assign,
    AugAssign,
    Const,
    Delete,
    Expr,
    ExprStmt,
    For,
    Handler,
    If,
    Import,
    ImportFrom,
    Jump,
    Name,
    Raise,
    Return,
    ScopeDecl,
    Seq,
    Stmt,
    Try,
    While,
    With,
    WithItem,
)


def _line(c: Cursor, node: Node, out: list[Stmt]) -> None:
    """The simple statements of one line."""
    for statement in node.body:
        STMT[statement.__class__](c, statement, out)


def _span(c: Cursor, first: int) -> tuple[int, int]:
    """The span from a token to the last one taken."""
    start, end = c.starts[first], c.ends[c.i - 1]
    if c.extents is not None:
        c.extents.append((start, end))
    return start, end


def _expr(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.i
    value = lower(c, node.value)
    start, end = _span(c, first)
    if not (isinstance(value, Const) and isinstance(value.value, str)):
        out.append(ExprStmt(value, start, end))


def _assign(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.i
    targets = [lower(c, t.target) for t in node.targets]
    value = lower(c, node.value)
    out.append(Assign(targets, value, *_span(c, first)))


def _ann_assign(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.i
    target = lower(c, node.target)
    annotation = lower(c, node.annotation.annotation)
    value = optional(c, node.value)
    out.append(AnnAssign(target, annotation, value, *_span(c, first)))


def _aug_assign(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.i
    target = lower(c, node.target)
    value = lower(c, node.value)
    out.append(AugAssign(target, OPERATORS[node.operator.__class__], value, *_span(c, first)))


def _type_alias(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.i
    name, value = type_alias(c, node)
    out.append(Assign([name], value, *_span(c, first)))


def _return(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.word("return")
    if c.cls >= 0 or not c.function:
        raise Refused("'return' outside function", c.starts[first], c.ends[first])
    value = optional(c, node.value)
    out.append(Return(value, *_span(c, first)))


def _pass(c: Cursor, node: Node, out: list[Stmt]) -> None:
    _span(c, c.word("pass"))


def _break(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.word("break")
    if not c.loops:
        raise Refused("'break' outside loop", c.starts[first], c.ends[first])
    out.append(Jump("break", *_span(c, first)))


def _continue(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.word("continue")
    if not c.loops:
        raise Refused("'continue' not properly in loop", c.starts[first], c.ends[first])
    out.append(Jump("continue", *_span(c, first)))


def _delete(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.word("del")
    target = lower(c, node.target)
    targets = target.elts if isinstance(target, Seq) and target.kind == "t" else [target]
    out.append(Delete(targets, *_span(c, first)))


def _raise(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.word("raise")
    exc = optional(c, node.exc)
    if node.cause is not None:
        c.word("from")
        lower(c, node.cause.item)
    out.append(Raise(exc, *_span(c, first)))


def _assert(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.word("assert")
    test = lower(c, node.test)
    optional(c, node.msg)
    out.append(Assert(test, *_span(c, first)))


def _scope(c: Cursor, node: Node, out: list[Stmt]) -> None:
    kind = "global" if node.__class__ is cst.Global else "nonlocal"
    first = c.word(kind)
    if kind == "nonlocal" and not c.function and c.cls < 0:
        message = "nonlocal declaration not allowed at module level"
        raise Refused(message, c.starts[first], c.ends[first])
    names = [item.name.value for item in node.names]
    for name in names:
        c.word(name)
    out.append(ScopeDecl(kind, names, *_span(c, first)))


def _dotted(c: Cursor, node: Node) -> str:
    value = lower(c, node)
    if not isinstance(value, Name):
        raise Desync
    return value.id


def _aliases(c: Cursor, nodes: list[Node]) -> list[Alias]:
    names = []
    for node in nodes:
        name = _dotted(c, node.name)
        asname = None
        if node.asname is not None:
            c.word("as")
            asname = _dotted(c, node.asname.name)
        names.append(Alias(name, asname))
    return names


def _import(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.i
    if node.__class__ is not cst.Import:
        c.word("lazy")
    c.word("import")
    names = _aliases(c, node.names)
    out.append(Import(names, *_span(c, first)))


def _import_from(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.i
    if node.__class__ is not cst.ImportFrom:
        c.word("lazy")
    c.word("from")
    while c.texts[c.i] == "...":  # three dots of a relative import look like an ellipsis
        c.i += 1
    module = "" if node.module is None else _dotted(c, node.module)
    last = c.word("import")
    if node.names.__class__ is cst.ImportStar:
        names = [Alias("*", None)]
        c.operator_after(last, "*")
    else:
        if node.lpar is not None:
            c.word("(")
        names = _aliases(c, node.names)
        if node.rpar is not None:
            c.word(")")
    out.append(ImportFrom(module, len(node.relative), names, *_span(c, first)))


# --------------------------------------------------------------------------------- compound statements


def _else(c: Cursor, node: Node | None) -> list[Stmt]:
    """The body of an ``else``."""
    if node is None:
        return []
    first = c.word("else")
    _span(c, first)
    return block(c, node.body)


def _if(c: Cursor, node: Node, out: list[Stmt]) -> None:
    """A chain of ``elif`` is a nest in both trees, but need not be a recursion here."""
    arms: list[tuple[Expr, list[Stmt], int, int]] = []
    word = "if"
    current = node
    while current.__class__ is cst.If:
        first = c.word(word)
        test = tested(c, lower(c, current.test))
        start, end = _span(c, first)
        arms.append((test, block(c, current.body), start, end))
        current = current.orelse
        word = "elif"
    c.limit(len(arms))
    orelse = _else(c, current)
    for test, body, start, end in reversed(arms):
        orelse = [If(test, body, orelse, start, end)]
    out.extend(orelse)


def _loop(c: Cursor, node: Node) -> list[Stmt]:
    """The body of a loop."""
    c.loops += 1
    body = block(c, node)
    c.loops -= 1
    return body


def _for(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.i
    if node.asynchronous is not None:
        c.word("async")
    c.word("for")
    target = lower(c, node.target)
    c.word("in")
    iterated = lower(c, node.iter)
    start, end = _span(c, first)
    body = _loop(c, node.body)
    out.append(For(target, iterated, body, _else(c, node.orelse), start, end))


def _while(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.word("while")
    test = tested(c, lower(c, node.test))
    start, end = _span(c, first)
    body = _loop(c, node.body)
    out.append(While(test, body, _else(c, node.orelse), start, end))


def _try(c: Cursor, node: Node, out: list[Stmt]) -> None:
    start, end = _span(c, c.word("try"))
    body = block(c, node.body)
    handlers = [_handler(c, h) for h in node.handlers]
    orelse = _else(c, node.orelse)
    final: list[Stmt] = []
    if node.finalbody is not None:
        _span(c, c.word("finally"))
        final = block(c, node.finalbody.body)
    out.append(Try(body, handlers, orelse, final, start, end))


def _handler(c: Cursor, node: Node) -> Handler:
    first = c.word("except")
    caught = optional(c, node.type)
    name = None
    if node.name is not None:
        c.word("as")
        name = _dotted(c, node.name.name)
    _span(c, first)
    return Handler(caught, name, block(c, node.body))


def _with(c: Cursor, node: Node, out: list[Stmt]) -> None:
    first = c.i
    if node.asynchronous is not None:
        c.word("async")
    c.word("with")
    parenthesised = node.lpar.__class__ is cst.LeftParen
    if parenthesised:
        c.word("(")
    items = []
    for item in node.items:
        context = lower(c, item.item)
        target = None
        if item.asname is not None:
            c.word("as")
            target = lower(c, item.asname.name)
        items.append(WithItem(context, target))
    if parenthesised:
        c.word(")")
    start, end = _span(c, first)
    out.append(With(items, block(c, node.body), start, end))


STMT.update(
    {
        cst.SimpleStatementLine: _line,
        cst.Expr: _expr,
        cst.Assign: _assign,
        cst.AnnAssign: _ann_assign,
        cst.AugAssign: _aug_assign,
        cst.Return: _return,
        cst.Pass: _pass,
        cst.Break: _break,
        cst.Continue: _continue,
        cst.Del: _delete,
        cst.Raise: _raise,
        cst.Assert: _assert,
        cst.Global: _scope,
        cst.Nonlocal: _scope,
        cst.Import: _import,
        cst.ImportFrom: _import_from,
        cst.If: _if,
        cst.For: _for,
        cst.While: _while,
        cst.Try: _try,
        cst.With: _with,
    }
)
for _name, _lowering in (
    ("TryStar", _try),
    ("TypeAlias", _type_alias),
    ("LazyImport", _import),
    ("LazyImportFrom", _import_from),
):
    if hasattr(cst, _name):
        STMT[getattr(cst, _name)] = _lowering
