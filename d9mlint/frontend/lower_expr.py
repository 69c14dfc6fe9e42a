"""Expressions of libcst, lowered to those of ``facts.model``.

Every function takes the tokens of its node, in order. Starts are read after the children have been
lowered (see ``Cursor.operator_before``); a node's own parentheses are outside its span.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from d9mlint.frontend.cursor import EXPR, Cursor, Node, Refused
from d9mlint.frontend.tokens import Desync
from d9mlint.ir.nodes import (
    Attr,
    BinOp,
    BoolOp,
    Call,
    Compare,
    Const,
    Dict,
    Dots,
    Expr,
    IfExp,
    Keyword,
    Name,
    Other,
    Seq,
    Slice,
    Star,
    Subscript,
    Unary,
    Wait,
    Walrus,
)
from d9mlint.ir.traversal import nodes

_SINGLETONS: dict[str, bool | None] = {"True": True, "False": False, "None": None}

OPERATORS: dict[type, str] = {
    cst.Add: "+",
    cst.Subtract: "-",
    cst.Multiply: "*",
    cst.Divide: "/",
    cst.FloorDivide: "//",
    cst.Modulo: "%",
    cst.Power: "**",
    cst.LeftShift: "<<",
    cst.RightShift: ">>",
    cst.BitOr: "|",
    cst.BitAnd: "&",
    cst.BitXor: "^",
    cst.MatrixMultiply: "@",
    cst.AddAssign: "+",
    cst.SubtractAssign: "-",
    cst.MultiplyAssign: "*",
    cst.MatrixMultiplyAssign: "@",
    cst.DivideAssign: "/",
    cst.ModuloAssign: "%",
    cst.BitAndAssign: "&",
    cst.BitOrAssign: "|",
    cst.BitXorAssign: "^",
    cst.LeftShiftAssign: "<<",
    cst.RightShiftAssign: ">>",
    cst.PowerAssign: "**",
    cst.FloorDivideAssign: "//",
    cst.Minus: "-",
    cst.Plus: "+",
    cst.BitInvert: "~",
    cst.Not: "not",
    cst.And: "and",
    cst.Or: "or",
}
# Comparison operators: as written, and how many of the words are tokens.
COMPARISONS: dict[type, tuple[str, int]] = {
    cst.LessThan: ("<", 0),
    cst.GreaterThan: (">", 0),
    cst.Equal: ("==", 0),
    cst.LessThanEqual: ("<=", 0),
    cst.GreaterThanEqual: (">=", 0),
    cst.NotEqual: ("!=", 0),
    cst.In: ("in", 1),
    cst.NotIn: ("not in", 2),
    cst.Is: ("is", 1),
    cst.IsNot: ("is not", 2),
}


def lower(c: Cursor, node: Node) -> Expr:
    """Any expression."""
    return EXPR[node.__class__](c, node)


def optional(c: Cursor, node: Node | None) -> Expr | None:
    """An expression that may be absent."""
    return None if node is None else EXPR[node.__class__](c, node)


def _name(c: Cursor, node: Node) -> Expr:
    i = c.i + len(node.lpar)
    value: str = node.value
    if c.texts[i] != value:
        raise Desync
    c.i = i + 1 + len(node.rpar)
    if value in _SINGLETONS:
        return Const(_SINGLETONS[value], c.starts[i], c.ends[i])
    return Name(value, c.starts[i], c.ends[i])


def _attribute(c: Cursor, node: Node) -> Expr:
    """A chain of attributes at once: most are chains rooted in a name."""
    lpar = len(node.lpar)
    c.i += lpar
    first = c.i
    chain = [node]
    value = node.value
    while value.__class__ is cst.Attribute:
        c.i += len(value.lpar)
        chain.append(value)
        value = value.value
    root = EXPR[value.__class__](c, value)
    i = c.i
    texts = c.texts
    names = []
    for link in reversed(chain):
        name = link.attr.value
        if texts[i] != name:
            raise Desync
        names.append(name)
        i += 1
        end = c.ends[i - 1]
        i += len(link.rpar)
    c.i = i
    if root.__class__ is Name:
        return Name(f"{root.id}.{'.'.join(names)}", c.starts[first], end)
    return Attr(root, ".".join(names), c.starts[first], end)


def arguments(c: Cursor, nodes: Sequence[Node]) -> tuple[list[Expr], list[Keyword]]:
    """The arguments of a call or the bases of a class."""
    args: list[Expr] = []
    keywords: list[Keyword] = []
    texts = c.texts
    for arg in nodes:
        if arg.keyword is not None:
            name = arg.keyword.value
            if texts[c.i] != name:
                raise Desync
            if keywords and any(one.name == name for one in keywords):
                raise Refused(f"keyword argument repeated: {name}", c.starts[c.i], c.ends[c.i])
            c.i += 1
            value = arg.value
            keywords.append(Keyword(name, EXPR[value.__class__](c, value)))
        elif arg.star == "":
            value = arg.value
            args.append(EXPR[value.__class__](c, value))
        elif arg.star == "*":
            args.append(Star(lower(c, arg.value)))
        else:
            keywords.append(Keyword(None, lower(c, arg.value)))
    return args, keywords


def _call(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    first = c.i
    func = node.func
    callee = EXPR[func.__class__](c, func)
    c.word("(")
    args, keywords = arguments(c, node.args)
    i = c.word(")")
    c.i += len(node.rpar)
    return Call(callee, args, keywords, c.starts[first], c.ends[i])


def elements(c: Cursor, nodes: Sequence[Node]) -> list[Expr]:
    """The elements of a display."""
    return [EXPR[n.__class__](c, n) for n in nodes]


def _element(c: Cursor, node: Node) -> Expr:
    value = node.value
    return EXPR[value.__class__](c, value)


def _starred(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    first = c.i
    value = Star(lower(c, node.value))
    c.operator_before(first, "*")
    c.i += len(node.rpar)
    return value


def _tuple(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    first = c.i
    elts = elements(c, node.elements)
    if not elts:  # "()": an empty span behind the parenthesis
        start = end = c.ends[first - 1]
    else:
        last = c.i - 1
        if not isinstance(node.elements[-1].comma, cst.MaybeSentinel):
            c.operator_after(last, ",")
        start, end = c.starts[first], c.ends[last]
    c.i += len(node.rpar)
    return Seq("t", elts, start, end)


def _list(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    first = c.word("[")
    elts = elements(c, node.elements)
    last = c.word("]")
    c.i += len(node.rpar)
    return Seq("l", elts, c.starts[first], c.ends[last])


def _set(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    first = c.word("{")
    elts = elements(c, node.elements)
    last = c.word("}")
    c.i += len(node.rpar)
    return Seq("s", elts, c.starts[first], c.ends[last])


def _dict(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    first = c.word("{")
    keys: list[Expr | None] = []
    values: list[Expr] = []
    for element in node.elements:
        keys.append(lower(c, element.key) if element.__class__ is cst.DictElement else None)
        values.append(lower(c, element.value))
    last = c.word("}")
    c.i += len(node.rpar)
    return Dict(keys, values, c.starts[first], c.ends[last])


def _binary(c: Cursor, node: Node) -> Expr:
    """A chain ``a + b + c`` leans to the left as far as it is long: no recursion along it."""
    chain, openings = [node], []
    c.i += len(node.lpar)
    openings.append(c.i)
    left = node.left
    while left.__class__ is cst.BinaryOperation:
        c.i += len(left.lpar)
        openings.append(c.i)
        chain.append(left)
        left = left.left
    c.limit(len(chain))
    result = EXPR[left.__class__](c, left)
    while chain:
        link = chain.pop()
        first = openings.pop()
        right = EXPR[link.right.__class__](c, link.right)
        result = BinOp(OPERATORS[link.operator.__class__], result, right, c.starts[first], c.ends[c.i - 1])
        c.i += len(link.rpar)
    return result


def _boolean(c: Cursor, node: Node) -> Expr:
    """A chain ``a and b and c`` leans to the left, too."""
    chain = [node]
    c.i += len(node.lpar)
    left = node.left
    while left.__class__ is cst.BooleanOperation:
        c.i += len(left.lpar)
        chain.append(left)
        left = left.left
    c.limit(len(chain))
    result = lower(c, left)
    while chain:
        link = chain.pop()
        op = OPERATORS[link.operator.__class__]
        c.word(op)
        result = BoolOp(op, result, lower(c, link.right))
        c.i += len(link.rpar)
    return result


def _unary(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    op = OPERATORS[node.operator.__class__]
    operand = node.expression
    if op == "not":
        c.word("not")
        result: Expr = Unary(op, lower(c, operand))
    else:
        first = c.i
        value = lower(c, operand)
        start = c.operator_before(first, op)
        if operand.__class__ in (cst.Integer, cst.Float) and op != "~" and value.__class__ is Const:
            result = _signed(op, value, start)
        else:
            result = Unary(op, value)
    c.i += len(node.rpar)
    return result


def _signed(op: str, value: Const, start: int) -> Const:
    number = value.value
    assert isinstance(number, (int, float))
    return Const(-number if op == "-" else number, start, value.end)


def _comparison(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    left = lower(c, node.left)
    ops: list[str] = []
    comparators: list[Expr] = []
    for target in node.comparisons:
        op, words = COMPARISONS[target.operator.__class__]
        c.i += words
        ops.append(op)
        comparators.append(lower(c, target.comparator))
    c.i += len(node.rpar)
    return Compare(left, ops, comparators)


_CHAINS = {"all": "and", "any": "or"}


def tested(c: Cursor, test: Expr) -> Expr:
    """A test, of which ``all([a, b])`` is ``a and b``, and ``any([a, b])`` is ``a or b``, where the elements call nothing: a
    list has all of them computed."""
    if isinstance(test, Unary) and test.op == "not":
        return Unary(test.op, tested(c, test.operand))
    links: list[BoolOp] = []
    while isinstance(test, BoolOp):
        links.append(test)
        test = test.left
    if links:
        test = tested(c, test)
        for link in reversed(links):
            test = BoolOp(link.op, test, tested(c, link.right))
        return test
    if not isinstance(test, Call) or not isinstance(test.func, Name) or len(test.args) != 1 or test.keywords:
        return test
    op, given = _CHAINS.get(test.func.id), test.args[0]
    if op is None or not isinstance(given, Seq) or not given.elts or not c.only_called(test.func.id):
        return test
    if any(isinstance(one, (Call, Star, Wait, Walrus)) for one in nodes(given.elts)):
        return test
    chain, *others = (tested(c, one) for one in given.elts)
    for one in others:
        chain = BoolOp(op, chain, one)
    return chain


def _ifexp(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    body = lower(c, node.body)
    c.word("if")
    test = tested(c, lower(c, node.test))
    c.word("else")
    orelse = lower(c, node.orelse)
    c.i += len(node.rpar)
    return IfExp(test, body, orelse)


def _subscript(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    first = c.i
    value = lower(c, node.value)
    c.word("[")
    inner = c.i
    elts = [lower(c, n.slice) for n in node.slice]
    last = c.word("]")
    c.i += len(node.rpar)
    if len(elts) == 1 and isinstance(node.slice[0].comma, cst.MaybeSentinel):
        index = elts[0]
    else:
        index = Seq("t", elts, c.starts[inner], c.ends[last - 1])
    return Subscript(value, index, c.starts[first], c.ends[last])


def _index(c: Cursor, node: Node) -> Expr:
    value = lower(c, node.value)
    if isinstance(value, Other) and node.value.__class__ is cst.Ellipsis:
        return Dots(value.start, value.end)
    return Star(value) if node.star else value


def _slice(c: Cursor, node: Node) -> Expr:
    return Slice(optional(c, node.lower), optional(c, node.upper), optional(c, node.step))


def _await(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    c.word("await")
    value = lower(c, node.expression)
    c.i += len(node.rpar)
    return Wait("await", value)


def _yield(c: Cursor, node: Node) -> Expr:
    c.yields = True
    c.i += len(node.lpar)
    c.word("yield")
    kind = "yield"
    value = node.value
    if value.__class__ is cst.From:
        c.word("from")
        kind, value = "from", value.item
    lowered = optional(c, value)
    c.i += len(node.rpar)
    return Wait(kind, lowered)


def _walrus(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    first = c.i
    target = lower(c, node.target)
    value = lower(c, node.value)
    end = c.ends[c.i - 1]
    c.i += len(node.rpar)
    return Walrus(target.id if isinstance(target, Name) else "", value, c.starts[first], end)


def _ellipsis(c: Cursor, node: Node) -> Expr:
    c.i += len(node.lpar)
    i = c.word("...")
    c.i += len(node.rpar)
    return Other(c.starts[i], c.ends[i])


EXPR.update(
    {
        cst.Name: _name,
        cst.Attribute: _attribute,
        cst.Call: _call,
        cst.Element: _element,
        cst.StarredElement: _starred,
        cst.Tuple: _tuple,
        cst.List: _list,
        cst.Set: _set,
        cst.Dict: _dict,
        cst.BinaryOperation: _binary,
        cst.BooleanOperation: _boolean,
        cst.UnaryOperation: _unary,
        cst.Comparison: _comparison,
        cst.IfExp: _ifexp,
        cst.Subscript: _subscript,
        cst.Index: _index,
        cst.Slice: _slice,
        cst.Await: _await,
        cst.Yield: _yield,
        cst.NamedExpr: _walrus,
        cst.Ellipsis: _ellipsis,
    }
)
