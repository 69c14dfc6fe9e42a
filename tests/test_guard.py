"""Texts that would bring the parser down, or keep it busy without end, are refused before it sees them."""

from __future__ import annotations

import sys
import time

import pytest

from d9mlint.frontend import worker
from d9mlint.frontend.guard import is_simple, too_complex
from d9mlint.frontend.tokens import split
from d9mlint.store.gather import gather
from tests.test_facts_gather import File

PATTERNS = {
    "class": ("A(", ")"),
    "class with keyword": ("A(b=", ")"),
    "class, positional and keyword": ("A(", ", b=1)"),
    "mapping": ('{"k": ', "}"),
    "sequence": ("[", "]"),
    "tuple": ("(", ",)"),
    "group": ("(", ")"),
    "or": ("(a.b | ", ")"),
    "star": ("[*_, ", "]"),
    "mixed": ('A({"k": [', "]})"),
    "as": ("([", "] as z)"),
    "line breaks": ("A(\n", "\n)"),
}
CHAINS = {
    "lambda": "lambda a, b: ",
    "lambda with defaults": "lambda a, b=(1, 2), *c: ",
    "conditional and lambda": "a if b else lambda p, q: ",
    "conditional": "a if b else ",
    "minus": "-",
    "minus and spaces": "- ",
    "minus and line breaks": "-\\\n",
    "tilde": "~",
    "not": "not ",
    "await": "await ",
    "power": "a ** ",
    "sum": "a + ",
    "line breaks": "a + \\\n",
    "or": "a or ",
    "comparison": "a < ",
    "strings": "'a' ",
    "assignments": "a = ",
}
SUFFIXES = {
    "attribute": ".a",
    "call": "()",
    "subscript": "[0]",
    "mixed": ".a(1)[2]",
    "call with a comma": "(1, 2)",
}


def refused(text: str) -> str | None:
    return too_complex(text, split(text))


@pytest.mark.parametrize("name", PATTERNS)
def test_nested_patterns_are_refused(name: str) -> None:
    opening, closing = PATTERNS[name]
    text = f"match x:\n    case {opening * 24}a{closing * 24}: pass\n"
    assert "pattern" in (refused(text) or "")
    assert refused(text.replace(" x:\n", " x :\n").replace("case", "case   ")) is not None
    assert refused(f"match x:\n    case {opening * 3}a{closing * 3}: pass\n") is None


def test_patterns_as_people_write_them_are_read() -> None:
    text = """match event:
        case {"a": {"b": {"c": {"d": {"e": {"f": [Point(x=0), *_]}}}}}} if CALL: pass
"""
    text = text.replace("CALL", "f(" * 50 + ")" * 50)
    assert refused(text) is None
    assert (
        refused("case = " + "f(" * 60 + ")" * 60 + "\nmatch = " + "{1: " * 60 + "2" + "}" * 60 + "\n") is None
    )


def test_targets_of_del_are_refused() -> None:
    assert "`del`" in (refused("del " + "(" * 30 + "a" + ",)" * 30 + "\n") or "")
    assert "`del`" in (refused("if a: pass\nelse:\n  del a, " + "([" * 30 + "a" + ",],)" * 30 + "\n") or "")
    assert refused("del (((a, b), c), [d]), e[f(g(h(i)))]\n") is None


@pytest.mark.parametrize("name", CHAINS)
def test_long_chains_are_refused(name: str) -> None:
    link = CHAINS[name]
    assert refused(f"x = {link * 9000}a\n") is not None
    assert refused(f"x = [{link * 9000}a]\n") is not None
    assert refused(f"x = {link * 30}a\n") is None


@pytest.mark.parametrize("name", SUFFIXES)
def test_long_suffix_chains_are_refused(name: str) -> None:
    assert refused("x" + SUFFIXES[name] * 9000 + "\n") is not None
    assert refused("x" + SUFFIXES[name] * 30 + "\n") is None


def test_nesting_counts_through_brackets() -> None:
    """A hundred levels with less than the longest chain in each are as deep as all together."""
    text = "x = " + ("-" * 1000 + "(") * 100 + "a" + ")" * 100 + "\n"
    assert refused(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "x = f'{" + "(" * 300 + "1" + ")" * 300 + "}'\n",
        "x = f'{" + "-" * 9000 + "1}'\n",
        "x = f'a {1} {" + "lambda a, b: " * 4000 + "1}'\n",
        "@" + "(" * 300 + "a" + ")" * 300 + "\ndef f(): pass\n",
        "def f(x: " + "A[" * 300 + "b" + "]" * 300 + "): pass\n",
        "def f[T: " + "A[" * 300 + "b" + "]" * 300 + "](): pass\n",
        "".join(" " * k + "if x:\n" for k in range(200)) + " " * 200 + "pass\n",
        "if a: pass\n" + "elif a: pass\n" * 9000,
        "f(a)\n" * 300_000,
        "x" + "[0]" * 700 + "\n" + ("x" + ".a(1)[2]" * 300 + "\n") * 200,
        ("x = " + 'f"""{' * 300 + "a" + '}"""' * 300 + "\n") * 20,
    ],
    ids=[
        "brackets",
        "chain",
        "lambda",
        "decorator",
        "annotation",
        "type",
        "blocks",
        "elif",
        "tokens",
        "work",
        "formatted",
    ],
)
def test_other_shapes_are_refused(text: str) -> None:
    assert refused(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        "X = [" + "[1, 2, 3, {'a': (4, 5)}],\n" * 20_000 + "]\n",
        "x = (" + "'abc'\n" * 2000 + ")\n",
        "f(" + "a=1, " * 10_000 + ")\n",
        "@d(1)\n" * 2000 + "def f(): pass\n",
        'x = f"""' + "It's a template of many words, with {name} and {{ braces }}.\n" * 3000 + '"""\n',
        "x = f'" + "{a}" * 5000 + "'\n",
        "def f(a):\n" + "    return a\n" * 20_000,
        "try: pass\n" + "except A as e: pass\n" * 3000,
        "match x:\n" + "    case A(b=1) | C(): pass\n" * 3000,
    ],
    ids=["data", "strings", "arguments", "decorators", "template", "fields", "lines", "handlers", "cases"],
)
def test_large_and_flat_texts_are_read(text: str) -> None:
    assert refused(text) is None


def test_counting_takes_time_in_proportion() -> None:
    """No text keeps the guard itself busy: 200 KB of each within seconds."""
    began = time.process_time()
    for piece in (
        "(",
        "{'a':",
        "case ",
        "lambda ",
        "f'{",
        "-",
        "\n ",
        "# ",
        "'",
        "\\\n",
        "match x:\n case (",
        "if x:\n\t",
    ):
        text = piece * (200_000 // len(piece))
        refused("match x:\n case " + text)
        is_simple(text, split(text))
    assert time.process_time() - began < 60


@pytest.mark.skipif(sys.platform == "win32", reason="no timers of CPU time")
def test_a_run_over_every_shape_ends_and_says_which_files_it_left_out() -> None:
    """The same shapes at the sizes that the guard admits, and above: none takes more than some seconds."""
    files = [
        File(f"p{k}", f"match x:\n case {o * n}a{c * n}: pass\n")
        for k, (o, c) in PATTERNS.items()
        for n in (3, 40)
    ]
    files += [File(f"c{k}", f"x = {link * n}a\n") for k, link in CHAINS.items() for n in (300, 9000)]
    files += [File(f"s{k}", f"x{link * n}\n") for k, link in SUFFIXES.items() for n in (300, 9000)]
    found = gather(files, jobs=2)
    failed = [
        f.path
        for f, facts in zip(files, found, strict=True)
        if facts.problem and facts.problem.code == "DET002"
    ]
    assert len(failed) >= len(files) // 2
    late = [facts.problem.message for facts in found if facts.problem and "CPU time" in facts.problem.message]
    assert late == []
    assert worker.CPU_LIMIT <= 60


def test_the_python_that_checks_syntax_survives_what_the_guard_admits() -> None:
    """Error messages come from CPython's own parser, which has limits of its own."""
    for link in CHAINS.values():
        text = f"x = {link * 150}a )\n"
        assert refused(text) is None
        problem = gather([File("x", text)], jobs=1)[0].problem
        assert problem is not None and problem.code == "DET001"
