"""What the facts of a text say."""

from __future__ import annotations

import pytest

from d9mlint.frontend.extract import extract
from d9mlint.ir import nodes as m


def facts(text: str) -> m.FileFacts:
    found = extract(text, "digest")
    assert found.problem is None
    return found


def body(text: str) -> list[m.Stmt]:
    return facts(text).functions[0].body


def expression(text: str) -> m.Expr:
    (statement,) = body(f"x = {text}\n")
    assert isinstance(statement, m.Assign)
    return statement.value


def test_a_file_says_what_it_is() -> None:
    found = facts("import a.b\n\ndef f(x):\n    return x.y(key=b'')")
    assert (found.schema, found.digest, found.lines) == (m.SCHEMA, "digest", 4)
    assert found.words == ["a", "b", "f", "key", "x", "y"]
    assert facts("").lines == 0
    assert facts("\r\n\r").lines == 2


def test_words_leave_out_keywords_and_what_strings_say() -> None:
    assert facts("def f(): return 'a' f'b{c}' if None else True\n").words == ["c", "f"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("None", None),
        ("True", True),
        ("-1", -1),
        ("+0x1F", 31),
        ("1_000", 1000),
        ("-1.5e3", -1500.0),
        ("'a' \"b\" '''c'''", "abc"),
        ("'\\n\\x41\\N{BULLET}'", "\nA\u2022"),
        ("r'\\n'", "\\n"),
        ("'a\\\n b'", "a b"),
        ("'''a\r\nb'''", "a\nb"),
        ("9223372036854775807", 2**63 - 1),
    ],
)
def test_literals(text: str, value: object) -> None:
    constant = expression(text)
    assert isinstance(constant, m.Const)
    assert (constant.value, type(constant.value)) == (value, type(value))


@pytest.mark.parametrize("text", ["...", "1j", "9223372036854775808", "'\\ud800'", "0x" + "f" * 5000])
def test_literals_without_a_value(text: str) -> None:
    assert isinstance(expression(text), m.Other)


def test_bytes_have_no_value() -> None:
    assert isinstance(expression("b'a' rb'b'"), m.Bytes)


def test_names_and_attributes() -> None:
    assert expression("a . b.c") == m.Name("a.b.c", 4, 11)
    assert expression("(a).b") == m.Name("a.b", 4, 9)
    called = expression("a(1).b.c")
    assert isinstance(called, m.Attr)
    assert called.name == "b.c"
    assert isinstance(called.value, m.Call)


def test_calls() -> None:
    call = expression("f(1, *a, k=2, **b)")
    assert call == m.Call(
        m.Name("f", 4, 5),
        [m.Const(1, 6, 7), m.Star(m.Name("a", 10, 11))],
        [m.Keyword("k", m.Const(2, 15, 16)), m.Keyword(None, m.Name("b", 20, 21))],
        4,
        22,
    )


def test_chains_keep_their_order() -> None:
    assert expression("a - b - c") == m.BinOp(
        "-", m.BinOp("-", m.Name("a", 4, 5), m.Name("b", 8, 9), 4, 9), m.Name("c", 12, 13), 4, 13
    )
    logical = expression("a and b or c")
    assert isinstance(logical, m.BoolOp)
    assert logical.op == "or"
    compared = expression("a < b is not c not in d")
    assert isinstance(compared, m.Compare)
    assert compared.ops == ["<", "is not", "not in"]


def test_f_strings_keep_text_and_expressions() -> None:
    string = expression("f'a{b!r:>{c}}{{{d}' 'e'")
    assert isinstance(string, m.FString)
    kept = [
        p.value if isinstance(p, m.Const) else p.id for p in string.parts if isinstance(p, (m.Const, m.Name))
    ]
    assert kept == ["a", "b", "c", "{", "d", "e"]


def test_subscripts() -> None:
    several = expression("a[1:2, b]")
    assert isinstance(several, m.Subscript)
    assert isinstance(several.index, m.Seq)
    assert isinstance(several.index.elts[0], m.Slice)
    single = expression("a[b]")
    assert isinstance(single, m.Subscript)
    assert isinstance(single.index, m.Name)


def test_comprehensions() -> None:
    made = expression("{a: b for a, b in c if d for e in f}")
    assert isinstance(made, m.Comp)
    assert (made.kind, len(made.generators), len(made.generators[0].ifs)) == ("d", 2, 1)


def test_statements_stay_in_order_and_docstrings_and_pass_are_dropped() -> None:
    text = (
        "'doc'\nimport a\nfrom ..b import c as d\na = b = 1\na += 2\na: int = 3\ndel a, b\npass\nf(a); g(b)\n"
    )
    kinds = [type(s).__name__ for s in body(text)]
    assert kinds == [
        "Import",
        "ImportFrom",
        "Assign",
        "AugAssign",
        "AnnAssign",
        "Delete",
        "ExprStmt",
        "ExprStmt",
    ]
    imported = body(text)[1]
    assert imported == m.ImportFrom("b", 2, [m.Alias("c", "d")], 15, 37)


def test_elif_is_an_if_alone_in_orelse() -> None:
    (statement,) = body("if a: b()\nelif c: d()\nelse: e()\n")
    assert isinstance(statement, m.If)
    (inner,) = statement.orelse
    assert isinstance(inner, m.If)
    assert (statement.start, statement.end, inner.start, inner.end) == (0, 4, 10, 16)
    assert len(inner.orelse) == 1


def test_functions_classes_and_lambdas_know_what_is_around_them() -> None:
    found = facts(
        "class A(B, metaclass=C):\n"
        "    @d\n"
        "    async def m(self, a, /, b=1, *c, e: int, **f):\n"
        "        def inner(): yield 1\n"
        "        return lambda: b\n"
    )
    functions = {f.qualname: f for f in found.functions}
    assert sorted(functions) == ["", "A.m", "A.m.<lambda>", "A.m.inner"]
    method, inner = functions["A.m"], functions["A.m.inner"]
    assert (method.is_async, method.is_generator, inner.is_generator) == (True, False, True)
    assert [p.kind for p in method.params] == ["p", "p", "a", "v", "k", "w"]
    assert (method.parent, method.cls, inner.cls) == (0, 0, -1)
    assert found.functions[inner.parent] is method
    assert isinstance(method.decorators[0], m.Name)
    (cls,) = found.classes
    assert (cls.name, len(cls.bases), [k.name for k in cls.keywords]) == ("A", 1, ["metaclass"])
    assert isinstance(cls.body[0], m.FunctionDef)
    assert found.functions[cls.body[0].function] is method


def test_match() -> None:
    (statement,) = body(
        "match a:\n case 1 | 'b': c()\n case [d, *_] if d: e()\n case K(f=g): h()\n case _: i()\n"
    )
    assert isinstance(statement, m.Match)
    literal, guarded, bound, last = statement.cases
    assert [v.value for v in literal.values if isinstance(v, m.Const)] == [1, "b"]
    assert (guarded.binds, guarded.guard is None, bound.binds) == (["d"], False, ["g"])
    assert [c.irrefutable for c in statement.cases] == [False, False, False, True]
    assert last.values == []


def test_a_body_ends_where_its_last_statement_does() -> None:
    text = "def f():\n    a(\n    )  # c\n\n\nb()\n"
    assert text[: facts(text).functions[1].end_of_body].endswith(")")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("f(a)  # noqa\n", (1, False, 1, 1)),
        ("f(a,  # NoQA: DET1\n  b)\n", (1, False, 1, 2)),
        ("f(a,\n  b)  # d9mlint: ignore[x]\n", (2, False, 1, 2)),
        ("# noqa\n\nf(a,\n  b)\n", (1, True, 3, 4)),
        ("f(a,\n  # noqa\n  b)\n", (2, True, 1, 3)),
        ("if f(a,\n  b):  # noqa\n    c()\n", (2, False, 1, 2)),
        ("if a:\n    b()\nelse:  # noqa\n    c()\n", (3, False, 3, 3)),
        ("@a(\n  1)\ndef f(\n  b,  # noqa\n): pass\n", (4, False, 1, 5)),
        ("f(f'''{\na # noqa\n}''')\n", (2, False, 1, 3)),
        ("a()\n# noqa", (2, True, 2, 2)),
    ],
)
def test_comments_belong_to_statements(text: str, expected: tuple[int, bool, int, int]) -> None:
    (comment,) = facts(text).comments
    assert (comment.row, comment.own_line, comment.first, comment.last) == expected
    assert text.startswith(comment.text, comment.start)


def test_other_comments_are_not_kept() -> None:
    assert facts("a()  # no, qa\nb('# noqa')\n").comments == []


@pytest.mark.parametrize(
    ("text", "message", "place"),
    [
        ("print 'a'\n", "Missing parentheses in call to 'print'", "print 'a'"),
        ("a = 1\nfor b in c print(b)\n", "", "print"),
        ("x = (1,\n", "'(' was never closed", "("),
        ("x = 'abc\n", "unterminated string literal", "'"),
        ("x = '\\N{no such name}'\n", "unknown Unicode character name", None),
        ("a\x00b\n", "null bytes", None),
        ("f(a=1, b=2, a=3)\n", "keyword argument repeated: a", "a"),
        ("class A(B, m=1, m=2): pass\n", "keyword argument repeated: m", "m"),
        ("def f(a, *, a): pass\n", "duplicate argument 'a' in function definition", "a, *, a"),
        ("f = lambda a, a: 1\n", "duplicate argument 'a' in function definition", "a, a"),
        ("return 1\n", "'return' outside function", "return"),
        ("def f():\n    class A:\n        return 1\n", "'return' outside function", "return"),
        ("for a in b:\n    pass\nelse:\n    break\n", "'break' outside loop", "break"),
        ("while a:\n    def f():\n        continue\n", "'continue' not properly in loop", "continue"),
        ("nonlocal a\n", "nonlocal declaration not allowed at module level", "nonlocal"),
    ],
)
def test_syntax_errors_are_told_as_python_tells_them(text: str, message: str, place: str | None) -> None:
    problem = extract(text, "").problem
    assert problem is not None
    assert problem.code == "DET001"
    assert message in problem.message
    assert place is None or text[problem.start : problem.end] == place
    assert 0 <= problem.start <= problem.end <= len(text)


def test_what_the_compiler_takes_is_no_syntax_error() -> None:
    text = (
        "f(a=1, b=g(a=2), **c, **d)\nfor a in b:\n    while c:\n        break\n    else:\n        continue\n"
        "    if c:\n        break\n\n\nclass A:\n    for a in b:\n        break\n\n"
        "    def f(self, a, *b, c, **d):\n        for b in a:\n            class C:\n                pass\n\n"
        "            try:\n                continue\n            finally:\n                g = lambda a: a\n\n"
        "        def g():\n            nonlocal a\n            return a\n\n        return g\n"
    )
    compile(text, "<text>", "exec")
    assert extract(text, "").problem is None


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "+".join(["a"] * 20_000),
        "x = " + "-" * 20_000 + "a",
        "x = " + "not " * 20_000 + "a",
        "x = a" + ".b()" * 20_000,
        "x = " + "(" * 20_000 + ")" * 20_000,
        "x = " + "f(1, " * 20_000 + ")" * 20_000,
        "x = " + "lambda: " * 20_000 + "a",
        "x = " + "a if b else " * 20_000 + "c",
        "if a: b\n" + "elif a: b\n" * 20_000,
        "x = " + "+".join(["a"] * 1_000),
        "x = a" + ".b()" * 500,
    ],
)
def test_monstrous_code_is_a_problem_of_its_file(text: str) -> None:
    problem = extract(text, "").problem
    assert problem is not None
    assert problem.code == "DET002"
    assert "to be analyzed" in problem.message


def test_long_code_of_a_usual_kind_is_read() -> None:
    assert facts("x = [\n" + "    [1, -2.5, a.b(c)],\n" * 2_000 + "]\n")
    assert facts("x = (" + "'a'\n" * 1_000 + ")\n")
    assert facts("x = " + " + ".join(["'a'"] * 300) + "\n")
    assert facts("if a: b\n" + "elif a: b\n" * 300)


def test_the_depth_of_the_caller_does_not_matter() -> None:
    text = "x = a" + ".b()" * 300 + "\n"

    def deep(n: int) -> m.FileFacts:
        return deep(n - 1) if n else extract(text, "")

    assert deep(500) == deep(0)
