"""What makes a scope: functions, lambdas, classes; and comprehensions."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from d9mlint.frontend.cursor import EXPR, STMT, Cursor, Node, Refused
from d9mlint.frontend.lower_expr import arguments, lower, optional
from d9mlint.ir.bodies import function, packed, survey
from d9mlint.ir.nodes import (
    Class,
    ClassDef,
    Comp,
    Expr,
    FunctionDef,
    Generator,
    Lambda,
    Param,
    Return,
    Star,
    Stmt,
)


def parameters(c: Cursor, node: Node) -> list[Param]:
    """The parameters of a function or lambda, in their order."""
    begin = c.i
    out: list[Param] = []
    for param in node.posonly_params:
        out.append(_param(c, param, "p"))
    for param in node.params:
        out.append(_param(c, param, "a"))
    if node.star_arg.__class__ is cst.Param:
        out.append(_param(c, node.star_arg, "v"))
    for param in node.kwonly_params:
        out.append(_param(c, param, "k"))
    if node.star_kwarg is not None:
        out.append(_param(c, node.star_kwarg, "w"))
    if len(out) > 1 and len({one.name for one in out}) < len(out):
        names = [one.name for one in out]
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        message = f"duplicate argument '{twice}' in function definition"
        raise Refused(message, c.starts[begin], c.ends[c.i - 1])
    return out


def _param(c: Cursor, node: Node, kind: str) -> Param:
    name: str = node.name.value
    c.word(name)
    annotation = None if node.annotation is None else lower(c, node.annotation.annotation)
    return Param(name, kind, optional(c, node.default), annotation)


def _lambda(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    first = c.word("lambda")
    params = parameters(c, node.params)
    index = len(c.functions)
    c.functions.append(None)
    parent, outer, yields = c.function, c.qualname, c.yields
    c.function, c.yields = index, False
    c.qualname = f"{outer}.<lambda>" if outer else "<lambda>"
    cls, c.cls = c.cls, -1
    begin = c.i
    value = lower(c, node.body)
    end = c.ends[c.i - 1]
    c.functions[index] = function(
        "<lambda>",
        c.qualname,
        params,
        [],
        [Return(value, c.starts[begin], end)],
        c.starts[first],
        c.ends[first],
        end,
        parent,
        cls,
        False,
        c.yields,
    )
    c.function, c.qualname, c.yields, c.cls = parent, outer, yields, cls
    c.i += len(node.rpar)
    return Lambda(index, c.starts[first], end)


def _function(c: Cursor, node: Node, out: list[Stmt]) -> None:
    top = c.i
    decorators = _decorators(c, node.decorators)
    head = c.i
    is_async = node.asynchronous is not None
    if is_async:
        c.word("async")
    c.word("def")
    at = c.word(node.name.value)
    name: str = node.name.value
    _type_parameters(c, node)
    c.word("(")
    params = parameters(c, node.params)
    c.word(")")
    if node.returns is not None:
        lower(c, node.returns.annotation)
    start, end = c.starts[head], c.ends[c.i - 1]
    c.extent(c.starts[top], end)

    index = len(c.functions)
    c.functions.append(None)
    out.append(FunctionDef(index, start, end))
    parent, outer, cls, yields, loops = c.function, c.qualname, c.cls, c.yields, c.loops
    c.function, c.cls, c.yields, c.loops = index, -1, False, 0
    c.qualname = f"{outer}.{name}" if outer else name
    body = block(c, node.body)
    c.functions[index] = function(
        name,
        c.qualname,
        params,
        decorators,
        body,
        c.starts[at],
        c.ends[at],
        c.ends[c.i - 1],
        parent,
        cls,
        is_async,
        c.yields,
    )
    c.function, c.qualname, c.cls, c.yields, c.loops = parent, outer, cls, yields, loops


def _class(c: Cursor, node: Node, out: list[Stmt]) -> None:
    top = c.i
    decorators = _decorators(c, node.decorators)
    head = c.word("class")
    name: str = node.name.value
    at = c.word(name)
    _type_parameters(c, node)
    parenthesised = node.lpar.__class__ is cst.LeftParen
    if parenthesised:
        c.word("(")
    bases, keywords = arguments(c, node.bases)
    more, others = arguments(c, node.keywords)
    if parenthesised:
        c.word(")")
    start, end = c.starts[head], c.ends[c.i - 1]
    c.extent(c.starts[top], end)

    index = len(c.classes)
    c.classes.append(None)
    out.append(ClassDef(index, start, end))
    outer, cls, loops = c.qualname, c.cls, c.loops
    c.cls, c.loops = index, 0
    c.qualname = f"{outer}.{name}" if outer else name
    body = block(c, node.body)
    c.classes[index] = Class(
        name,
        c.qualname,
        bases + more,
        keywords + others,
        decorators,
        packed(body),
        c.starts[at],
        c.ends[at],
        c.function,
        cls,
        survey(body)[0],
    )
    c.qualname, c.cls, c.loops = outer, cls, loops


def _decorators(c: Cursor, nodes: Sequence[Node]) -> list[Expr]:
    if not nodes:
        return []
    first = c.i
    decorators = [lower(c, n.decorator) for n in nodes]
    c.operator_before(first, "@")
    return decorators


def _type_parameters(c: Cursor, node: Node) -> None:
    """Type parameters take part in nothing; only their tokens have to be passed."""
    params = getattr(node, "type_parameters", None)
    if params is None:
        return
    c.word("[")
    for element in params.params:
        param = element.param
        c.word(param.name.value)
        if getattr(param, "bound", None) is not None:
            lower(c, param.bound)
        if getattr(element, "default", None) is not None:
            lower(c, element.default)
    c.word("]")


def type_alias(c: Cursor, node: Node) -> tuple[Expr, Expr]:
    """The name and the value of a ``type`` statement."""
    c.word("type")
    name = lower(c, node.name)
    _type_parameters(c, node)
    return name, lower(c, node.value)


def block(c: Cursor, node: Node) -> list[Stmt]:
    """The statements of a body, indented or on the line of its header."""
    out: list[Stmt] = []
    for statement in node.body:
        STMT[statement.__class__](c, statement, out)
    return out


def _comprehension(c: Cursor, node: Node, kind: str) -> Expr:
    c.i += len(node.lpar)
    opening, closing = _BRACKETS[kind]
    first = c.word(opening) if opening else c.i
    value: Expr | None = None
    if node.__class__ is cst.DictComp:
        elt = lower(c, node.key)
        value = lower(c, node.value)
    elif kind == "d":
        elt = Star(lower(c, node.value))
    else:
        elt = lower(c, node.elt)
    generators: list[Generator] = []
    clause = node.for_in
    while clause is not None:
        if clause.asynchronous is not None:
            c.word("async")
        c.word("for")
        target = lower(c, clause.target)
        c.word("in")
        iterated = lower(c, clause.iter)
        ifs = []
        for condition in clause.ifs:
            c.word("if")
            ifs.append(lower(c, condition.test))
        generators.append(Generator(target, iterated, ifs))
        clause = clause.inner_for_in
    if closing:
        c.word(closing)
    end = c.ends[c.i - 1]
    c.i += len(node.rpar)
    return Comp(kind, elt, value, generators, c.starts[first], end)


_BRACKETS = {"l": ("[", "]"), "s": ("{", "}"), "d": ("{", "}"), "g": ("", "")}

EXPR.update(
    {
        cst.Lambda: _lambda,
        cst.ListComp: lambda c, n: _comprehension(c, n, "l"),
        cst.SetComp: lambda c, n: _comprehension(c, n, "s"),
        cst.DictComp: lambda c, n: _comprehension(c, n, "d"),
        cst.GeneratorExp: lambda c, n: _comprehension(c, n, "g"),
    }
)
if hasattr(cst, "StarredDictComp"):
    EXPR[cst.StarredDictComp] = lambda c, n: _comprehension(c, n, "d")
STMT.update({cst.FunctionDef: _function, cst.ClassDef: _class})
