"""Facts stand where libcst says they do, and nothing libcst knows is forgotten."""

from __future__ import annotations

import inspect
import sysconfig
from collections import Counter
from pathlib import Path
from typing import Any

import libcst as cst
import msgspec
import pytest
from libcst.metadata import CodePosition, MetadataWrapper, PositionProvider

from d9mlint.base.source import line_starts
from d9mlint.frontend import codegen, module
from d9mlint.frontend.cursor import EXPR, STMT
from d9mlint.frontend.extract import extract
from d9mlint.frontend.tokens import Desync, scan, split
from d9mlint.ir import nodes as m

STDLIB = Path(sysconfig.get_paths()["stdlib"])
FILES = ["argparse.py", "dataclasses.py", "inspect.py", "random.py", "ast.py", "json/decoder.py"]

SPANS: dict[type, tuple[type, ...]] = {
    m.Call: (cst.Call,),
    m.Subscript: (cst.Subscript,),
    m.BinOp: (cst.BinaryOperation,),
    m.Walrus: (cst.NamedExpr,),
    m.Dict: (cst.Dict,),
    m.Comp: tuple(
        getattr(cst, n)
        for n in ("ListComp", "SetComp", "DictComp", "GeneratorExp", "StarredDictComp")
        if hasattr(cst, n)
    ),
    m.Lambda: (cst.Lambda,),
    m.Return: (cst.Return,),
    m.Assign: (cst.Assign, cst.TypeAlias),
    m.AugAssign: (cst.AugAssign,),
    m.AnnAssign: (cst.AnnAssign,),
    m.Import: (cst.Import,),
    m.ImportFrom: (cst.ImportFrom,),
    m.Raise: (cst.Raise,),
    m.Assert: (cst.Assert,),
    m.Delete: (cst.Del,),
    m.Function: (cst.FunctionDef,),
    m.Class: (cst.ClassDef,),
}

TRICKY = {
    "nested f-strings": "x = f'{f\"{f(a)}\"}' f\"{b!r:>{w(1)}}{{}}{c()=}\" 'd'\n",
    "f-strings of 3.12": "x = f'{a['b'](1)} {f'{c(2)}'}' + f(3)\ny = f(4)  # '\n",
    "f-string over lines": "x = f'''{\n f(1) # c ' }\n}''' + g(2)\n",
    "raw f-strings": "x = rf'\\{f(1)}' + fR\"\\d{{2}}{g(2)}\"\n",
    "escapes in f-strings": "x = f'\\N{DASH}\\'{f(1)}\\\\' + f'{g(2)!r}'\n",
    "format specifications": "x = f'{f(1):{g(2)}.{h(3)}f}{i(4):%Y-%m}{j(5):=3}' + k(6)\n",
    "walrus": "if (n := f(1)) > (m := 2): print(n := g(3))\n",
    "decorators": "@a.b(1)\n@c\n@(d)\nasync def f(x=g(1)) -> h(2): return i(3)\n",
    "match": "match f(1), 2:\n  case [a, *_] if g(a): h(1)\n  case {'k': -1, **r}: i(2)\n"
    "  case K(1, x=y.z) | (2 | None) as w: j(3)\n  case _: pass\n  case (a): k(4)\n",
    "patterns in parentheses": "match a:\n  case ('x'): b(1)\n  case (-1) | ((2)) | (None): c(2)\n"
    "  case {'k': (y.z), 3: [(4), *_]} | K((5), m=('6' '7')): d(3)\n",
    "soft keywords": "match = case = type = _ = 1\nmatch(f(1))\nprint(type, case[match(2)])\n",
    "lambda": "f(lambda a, *b, c=g(1), **d: (lambda: h(2)), key=lambda: i(3))\n",
    "continuation": "x = f(1) + \\\n    g(2) \\\n  .h(3)\n",
    "tabs": "if a:\n\tif b:\n\t\tf(1)\n\telse:\n\t\tg( 2 )\n",
    "form feed": "f(1)\n\x0c\ndef g():\n    return h(2)\n",
    "CRLF": "def f(a):\r\n    x = '''a\r\nb'''\r\n    return g(a,\r\n      h(1))  # c\r\nf(1)\r\n",
    "CR": "x = f(1)\ry = g(2)\r",
    "unicode": "größe = f(変数)\n𝔞𝔟 = g('\U0001f600', é)\n",
    "odd identifiers": "a·b = f(ªº)\nx℘ = g(a·b.℮)\n",
    "no newline at the end": "f(1); g(2)",
    "parentheses": "((a)).b(((1)))\n(((f)(1)).g)(2)\n((a + (b)) * (c))(3)\n((x))[((y))]\n",
    "signs": "-a + b(1)\n- - -1 ** -x[2]\n+1 - ~(-a * b)\nnot -a + b\n(-\n a) + b\n",
    "numbers": "x = [0xFFor 1, 1if y else 2, 1..real(1), 1_0.e1_0j, .5, 0b1, 0o7, 00, 1e-5, 10 .f(2)]\n",
    "strings": "x = f(b'a' rb'\\'') + 'b' \"c\" u'd' + r'\\\\' + '''e'f''g''' + \"\"\"\"h\"\"\" + f(1)\n",
    "stars": "a, *b = *c, f(*d, **e)\nprint(*f(1), *g(2), **{**h(3)})\nfor x, in *a, b: pass\n",
    "slices": "x[f(1):g(2):h(3), ..., ::i(4), *j]\nx[1,]\nx[()]\n",
    "comprehensions": "[f(a) for a in b if c(a) for d in e(1)]\n{a: b(1) for a, b in c}\ng(i for i in h(2))\n"
    "{a for a in b}\n"
    "async def f():\n  return [a async for a in b(1)]\n",
    "chains": "x = a and b(1) and c or d(2) or (e and f(3))\ny = a < b(1) is not c not in d(2) != e\n",
    "conditional": "x = f(1) if g(2) else h(3) if i else j\n",
    "yield": "def f():\n  x = yield\n  yield f(1), 2\n  y = yield from g(2)\n  await h(3)\n",
    "imports": "import a.b as c, d\nfrom ... import e\nfrom ....f import (g as h, i,)\nfrom . import *\n",
    "try": "try: f(1)\nexcept (A, b(1)) as e: g(2)\nexcept: raise h(3) from i(4)\nelse: j(5)\n"
    "finally: k(6)\n",
    "try star": "try: f(1)\nexcept* A as e: g(2)\n",
    "with": "with a(1) as b, c(2): d(3)\nwith (e(4) as f, g(5),): h(6)\nwith (i(7)): j(8)\nasync def f():\n"
    "  async with a(1): pass\n",
    "elif": "if a(1): b(2)\nelif c(3): d(4)\nelif e(5):\n  f(6)\nelse: g(7)\nwhile h(8): break\nelse: i(9)\n",
    "classes": "class A: x: int = f(1)\nclass B(C, *d(1), metaclass=e(2), **g): pass\nclass D(): pass\n",
    "type parameters": "def f[T: a(1), *U, **V](x: T) -> U: g(2)\nclass A[T](B[T]): h(3)\ntype X[T] = i(4)\n",
    "statements": "global a, b\ndel (a), b[f(1)]\ndel (c, d)\nassert f(1), g(2)\nx: int\nx @= h(3)\nx **= 1\n"
    "x //= 2;\n",
    "comments": "f(1,  # a ( ' \"\n  g(2) # ]\n)\n# }\nh(3)\n",
    "parameters": "def f(a, /, b: c(1) = d(2), *, e=g(3), **h): pass\ndef i(*a: *b): pass\n"
    "def j(a, *, k): pass\n",
    "empty": "",
    "only comments": "# a\n\n# b",
    "tuples": "x = ()\ny = 1,\nz = (1, f(2),)\nfor i, j in k(3), : pass\n",
    "byte order mark": "\ufefff(1)\ng(2)\n",
}


def _nodes(value: object) -> list[m._Node]:
    """All structs below a value."""
    found: list[m._Node] = []
    stack = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, list):
            stack.extend(item)
        elif isinstance(item, msgspec.Struct):
            found.append(item)  # type: ignore[arg-type]
            stack.extend(getattr(item, f) for f in item.__struct_fields__)
    return found


def _spans(facts: m.FileFacts) -> dict[type, Counter[tuple[int, int]]]:
    spans: dict[type, Counter[tuple[int, int]]] = {kind: Counter() for kind in SPANS}
    for node in _nodes(_with_bodies(facts)):
        if type(node) in spans and getattr(node, "name", "") not in ("<lambda>", "<module>"):
            spans[type(node)][node.start, node.end] += 1  # type: ignore[attr-defined]
    for function in facts.functions:
        if function.name == "<lambda>":  # its body is written down as a return statement
            (returned,) = function.body
            assert isinstance(returned, m.Return)
            spans[m.Return] -= Counter([(returned.start, returned.end)])
    return spans


def _with_bodies(facts: m.FileFacts) -> list[Any]:
    every: list[Any] = [*facts.functions, *facts.classes]
    return [*every, *(stmt for one in every for stmt in one.body)]


def _expected(text: str) -> dict[type, Counter[tuple[int, int]]]:
    """The spans of the same nodes by PositionProvider (that of the name for functions and classes).

    Of annotations of return values and type parameters no facts are kept; ``raise``'s cause, an assert's
    message and values of patterns are not, either.
    """
    wrapper = MetadataWrapper(cst.parse_module(text), unsafe_skip_copy=True)
    positions = wrapper.resolve(PositionProvider)
    starts = line_starts(text)
    mark = int(text.startswith("\ufeff"))  # libcst drops it

    def at(place: CodePosition) -> int:
        return starts[place.line - 1] + place.column + (mark if place.line == 1 else 0)

    kinds = {c: kind for kind, classes in SPANS.items() for c in classes}
    spans: dict[type, Counter[tuple[int, int]]] = {kind: Counter() for kind in SPANS}
    stack: list[cst.CSTNode] = [wrapper.module]
    while stack:
        node = stack.pop()
        for field in vars(type(node)).get("__dataclass_fields__", type(node).__dataclass_fields__):
            if (isinstance(node, cst.FunctionDef) and field in ("returns", "type_parameters")) or (
                (type(node).__name__, field)
                in {
                    ("ClassDef", "type_parameters"),
                    ("Raise", "cause"),
                    ("Assert", "msg"),
                    ("TypeAlias", "type_parameters"),
                    ("MatchCase", "pattern"),
                }
            ):
                continue
            value = getattr(node, field)
            children = value if isinstance(value, (list, tuple)) else [value]
            stack.extend(child for child in children if isinstance(child, cst.CSTNode))
        kind = kinds.get(type(node))
        if kind is None:
            continue
        place = positions[node.name if isinstance(node, (cst.FunctionDef, cst.ClassDef)) else node]
        spans[kind][at(place.start), at(place.end)] += 1
    return spans


def _compare(text: str, facts: m.FileFacts) -> None:
    assert facts.problem is None
    ours, theirs = _spans(facts), _expected(text)
    for kind in SPANS:
        assert ours[kind] == theirs[kind], (
            kind.__name__,
            [text[a:b] for a, b in (ours[kind] - theirs[kind])],
            [text[a:b] for a, b in (theirs[kind] - ours[kind])],
        )


@pytest.mark.parametrize("name", TRICKY)
def test_positions_of_tricky_code(name: str) -> None:
    text = TRICKY[name]
    _compare(text, extract(text, ""))


@pytest.mark.parametrize("name", FILES)
def test_positions_of_real_code(name: str) -> None:
    text = (STDLIB / name).read_text(encoding="utf-8")
    _compare(text, extract(text, ""))


@pytest.mark.parametrize("name", TRICKY)
def test_both_ways_to_find_tokens_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text = TRICKY[name]
    expected = extract(text, "")

    def unusable(*_: object) -> None:
        raise Desync

    monkeypatch.setattr(module, "scan", unusable)
    assert extract(text, "") == expected


def test_tokens_of_real_code_need_no_second_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real code is read in step with its tree; the slow way is for the exceptions."""

    def forbidden(_: object) -> None:
        raise AssertionError("the tokens of the text did not match the tree")

    monkeypatch.setattr(module, "scan_tree", forbidden)
    for name in FILES:
        assert extract((STDLIB / name).read_text(encoding="utf-8"), "").problem is None
    for name, text in TRICKY.items():
        if name not in ("odd identifiers",):
            assert extract(text, "").problem is None, name


def test_what_libcst_drops_is_counted() -> None:
    """PositionProvider takes form feeds and byte order marks for nothing; the text does not."""
    text = "\ufeff\x0cf(1)\na·b(2)\n\x0cg(3)  # noqa\n"
    facts = extract(text, "")
    spans = [(n.start, n.end) for n in _nodes(_with_bodies(facts)) if isinstance(n, m.Call)]
    assert [text[a:b] for a, b in sorted(spans)] == ["f(1)", "a·b(2)", "g(3)"]
    assert [text[c.start :] for c in facts.comments] == ["# noqa\n"]


def test_tokens_of_the_text_and_of_the_tree_are_equal() -> None:
    for name in FILES[:3]:
        text = (STDLIB / name).read_text(encoding="utf-8")
        by_text, by_tree = scan(text, split(text)), codegen.scan_tree(cst.parse_module(text))
        assert by_text.starts == by_tree.starts
        assert by_text.ends == by_tree.ends
        assert by_text.texts == by_tree.texts


# What takes no part in the facts: white space, punctuation, and what its parent's lowering reads itself.
TRIVIA = {
    "AsName", "AssignEqual", "Asynchronous", "BitOr", "Colon", "Comma", "Comment", "Dot", "EmptyLine",
    "LeftCurlyBrace", "LeftParen", "LeftSquareBracket", "Newline", "ParenthesizedWhitespace",
    "RightCurlyBrace", "RightParen", "RightSquareBracket", "Semicolon", "SimpleWhitespace",
    "TrailingWhitespace", "ImportStar", "ParamSlash", "ParamStar",
}  # fmt: skip
BY_PARENT = {
    "Annotation", "Arg", "AssignTarget", "ComparisonTarget", "CompFor", "CompIf", "Decorator", "DictElement",
    "Else", "ExceptHandler", "ExceptStarHandler", "Finally", "FormattedStringExpression",
    "FormattedStringText", "From", "ImportAlias", "IndentedBlock", "MatchAs", "MatchCase", "MatchClass",
    "MatchKeywordElement", "MatchList", "MatchMapping", "MatchMappingElement", "MatchOr", "MatchOrElement",
    "MatchSequenceElement", "MatchSingleton", "MatchStar", "MatchTuple", "MatchValue", "Module", "NameItem",
    "Param", "Parameters", "ParamSpec", "SimpleStatementSuite", "StarredDictElement", "SubscriptElement",
    "TemplatedStringExpression", "TemplatedStringText", "TypeParam", "TypeParameters", "TypeVar",
    "TypeVarTuple", "WithItem",
}  # fmt: skip


def test_every_class_of_libcst_is_lowered_or_known_to_be_trivia() -> None:
    from d9mlint.frontend.lower_expr import COMPARISONS, OPERATORS

    lowered = {c.__name__ for table in (EXPR, STMT, OPERATORS, COMPARISONS) for c in table}
    known = {
        name
        for name, value in vars(cst).items()
        if inspect.isclass(value) and issubclass(value, cst.CSTNode) and not inspect.isabstract(value)
    }
    known -= {name for name in known if name.startswith("Base") or name == "CSTNode"}
    assert known - lowered - TRIVIA - BY_PARENT == set()
