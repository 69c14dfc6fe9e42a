"""Notebooks with statements that cannot be parsed: the rest is judged."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from support import lint

from d9mlint.base.notebooks import statements
from d9mlint.base.source import read_source
from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check

OLD = "[one for one in dat if lambda x: len(x) > 2]"
"""Python 3.8 and older take this."""


def found(tmp_path: Path, *cells: str) -> list[tuple[str, int, int]]:
    """Code, cell and row of what is reported."""
    written = [{"cell_type": "code", "source": cell, "metadata": {}, "outputs": []} for cell in cells]
    data = {"nbformat": 4, "nbformat_minor": 5, "metadata": {}, "cells": written}
    (tmp_path / "a.ipynb").write_text(json.dumps(data))
    first, again = (_check(tmp_path) for _ in range(2))
    assert first == again
    return first


def _check(tmp_path: Path) -> list[tuple[str, int, int]]:
    settings = load_settings(str(tmp_path), overrides={"jobs": 1, "cache-dir": str(tmp_path / "cache")})
    source = read_source(str(tmp_path / "a.ipynb"))
    findings = [item.finding for item in check([str(tmp_path)], settings).items]
    places = [(f.code, source.location(f.start)) for f in findings]
    return [(code, place.cell or 0, place.row) for code, place in places]


def test_the_other_cells_and_the_rest_of_the_cell_are_judged(tmp_path: Path) -> None:
    cells = (
        "import random",
        f"dat = [[1, 2, 3]]\nnames = list({{'a', 'b'}})\nprint(names)\nkept = {OLD}\n",
        "print(random.random())",
    )
    assert found(tmp_path, *cells) == [("DET210", 2, 2), ("DET001", 2, 4), ("DET103", 3, 1)]


def test_each_statement_that_is_not_read_is_reported(tmp_path: Path) -> None:
    cells = (
        "x = 1\nprint x",
        "@wraps\ndef f():\n    print 'a'\nprint(x)\nfor i in x:\n    exec 'a'\nelse:\n    pass",
    )
    assert found(tmp_path, *cells) == [("DET001", 1, 2), ("DET001", 2, 3), ("DET001", 2, 6)]


@pytest.mark.parametrize(
    "statement",
    [
        "print 'seed', random.seed(0)",
        "print random.seed(0)",
        "if 1:\n    print 'x'\n    random.seed(0)",
        "print set_seed(0)",
        "from labtools import set_seed; set_seed(0); print 'x'",
    ],
)
def test_a_seed_in_it_may_have_been_set(tmp_path: Path, statement: str) -> None:
    cells = ("import random\nfrom labtools import set_seed", statement, "print(random.random())")
    assert [code for code, *_ in found(tmp_path, *cells)] == ["DET001"]


def test_of_a_function_only_the_line_is_left_out(tmp_path: Path) -> None:
    cells = (
        "import random\ndef f(flag):\n    if flag:\n    g(flag)\n    for i in range(3):\n        print i\n"
        "    return random.random()",
        "class C:\n    a = random.random()\n    print a\n    def f(self):\n        try:\n            print self\n"
        "        except ValueError:\n            print 'no', \\\n                'x'\n        return random.gauss(0, 1)",
        "print(f(1), C().f())",
    )
    assert found(tmp_path, *cells) == [
        ("DET001", 1, 4),
        ("DET001", 1, 6),
        ("DET103", 2, 2),
        ("DET001", 2, 3),
        ("DET001", 2, 6),
        ("DET001", 2, 8),
    ]
    broken = "def f(\n    print 'a'\n    print(random.random())"
    assert found(tmp_path, "import random", broken, "f()") == [("DET001", 2, 1)]


def test_statements_that_follow_each_other_in_one_cell_are_reported_together(tmp_path: Path) -> None:
    printed = "train 8449\n\nval 2785\n>>> x\nx = 1\ntest 2785\n"
    assert found(tmp_path, printed, "epoch 1", "y = 2") == [
        ("DET001", 1, 1),
        ("DET001", 1, 6),
        ("DET001", 2, 1),
    ]
    settings = load_settings(str(tmp_path), overrides={"jobs": 1, "cache": False})
    helps = [item.finding.help for item in check([str(tmp_path)], settings).items]
    assert helps == ["3 statements skipped; fix the errors", *["statement skipped; fix the error"] * 2]


def test_a_line_in_a_function_may_set_a_seed(tmp_path: Path) -> None:
    cells = (
        "import random",
        "def f(flag):\n    if flag:\n        print random.seed(0)\n    return 3",
        "f(3)\nprint(random.random())",
    )
    assert [code for code, *_ in found(tmp_path, *cells)] == ["DET001"]
    (tmp_path / "a.ipynb").unlink()


def test_variables_in_it_are_not_known_afterwards(tmp_path: Path) -> None:
    listed = "import os\nnames = os.listdir('.')"
    kept = "open('x', 'w').write(','.join(names))"
    assert ("DET209", 1, 2) in found(tmp_path, listed, "print 'x'", kept)
    assert [code for code, *_ in found(tmp_path, listed, "names.sort(); print names", kept)] == ["DET001"]


def test_it_changes_nothing_that_is_reported_of_the_rest(tmp_path: Path) -> None:
    cells = [
        "import os, random\nimport torch",
        "x = torch.rand(3)\nprint(x, random.random())",
        "print(list({'a', 'b'}))",
    ]
    whole = {(code, cells[cell - 1].split("\n")[row - 1]) for code, cell, row in found(tmp_path, *cells)}
    assert len(whole) == 3
    for at in range(4):
        broken = [*cells[:at], "print 'x'", *cells[at:]]
        now = {(code, broken[cell - 1].split("\n")[row - 1]) for code, cell, row in found(tmp_path, *broken)}
        assert now == {*whole, ("DET001", "print 'x'")}


def test_nothing_is_reported_inside_of_it(tmp_path: Path) -> None:
    assert found(tmp_path, "import random", "print random.random()\n") == [("DET001", 2, 1)]


@pytest.mark.parametrize(
    "cells",
    [
        ("import random", "print random.random()", "print(random.random())"),
        ("import random\ndef f():\n    return random.random()", "print f(), random.random()", "print(f())"),
        ("import torch", "print torch.rand(2)", "print(torch.rand(2))"),
        ("import torch", "print torch.rand(2)", "torch.manual_seed(0)\nprint(torch.rand(2))"),
    ],
)
def test_a_draw_in_it_is_not_the_first_one(tmp_path: Path, cells: tuple[str, ...]) -> None:
    without = [(c, cell + (cell > 1), row) for c, cell, row in found(tmp_path, cells[0], *cells[2:])]
    assert found(tmp_path, *cells) == sorted([("DET001", 2, 1), *without], key=lambda f: f[1:])


@pytest.mark.parametrize(
    "cell",
    [
        "print a " + ",a" * 150_000,
        "print 1\nimport a " + ",a" * 60_000,
        "print " + "'''\n'''," * 60_000,
        "print 'x'\n" * 20_000,
        "x = 1\n" * 20_000 + "print 'x'",
    ],
    ids=["names", "imported names", "strings", "statements", "others"],
)
def test_it_is_read_in_time_proportional_to_its_length(tmp_path: Path, cell: str) -> None:
    began = time.process_time()
    found_in = [cell for _, cell, _ in found(tmp_path, "import random", cell, "print(random.random())")]
    assert found_in[0] == 2 and len(found_in) <= 3
    assert time.process_time() - began < 20


def test_a_notebook_of_thousands_of_cells_is_not_read_in_part(tmp_path: Path) -> None:
    assert len(found(tmp_path, *["x = 1"] * 1901, *["print 'x'"] * 99)) == 99
    assert len(found(tmp_path, *["x = 1"] * 1902, *["print 'x'"] * 99)) == 1


def test_a_notebook_of_which_nothing_can_be_read_is_one_finding(tmp_path: Path) -> None:
    assert found(tmp_path, "print 'a'", "print 'b'") == [("DET001", 1, 1)]


def test_a_module_is_read_in_part_where_few_statements_do_not_parse(tmp_path: Path) -> None:
    def of(text: str) -> list[str]:
        (tmp_path / "a.py").write_text(text)
        return [i.finding.code for i in lint(tmp_path, {}).items]

    drawn = "import random\n\ndef f(flag):\n    {0}\n    return random.random()\n\nprint(f(1))\n"
    assert of(drawn.format("if flag:\n    g(flag)")) == ["DET001", "DET103"]
    assert of(drawn.format("print flag\n    random.seed(0)")) == ["DET001"]
    assert of(drawn.format("print flag\n    " * 3 + "pass")) == ["DET001"] * 3 + ["DET103"]
    assert of(drawn.format("print flag\n    " * 4 + "pass")) == ["DET001"]
    assert of("import random\nprint(random.random()\n") == ["DET001"]


def test_the_line_in_the_words_of_a_problem_is_that_of_the_text(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import random\n\nx = 1\n\ndef f(flag):\n    if flag:\n    g(flag)\n")
    (one,) = [i.finding for i in lint(tmp_path, {}).items]
    assert one.message == "expected an indented block after 'if' statement on line 6"


def test_statements_of_a_cell() -> None:
    text = (
        "# a\nx = (1,\n2)\n@d\n# b\ndef f():\n\n  pass\nif x:\n  y = '''\nz\n'''\nelse:\n  1\nw = 1 + \\\n2\n"
    )
    assert [text[start:end].splitlines()[-1] for start, end in statements(text)] == [
        "2)",
        "  pass",
        "  1",
        "2",
    ]
    assert statements("") == [] and statements("  x\n  y") == [(0, 7)]


@pytest.mark.parametrize("beside", [[], ["print 'x'"]])
def test_a_cell_whose_first_line_is_indented_is_read_as_ipython_reads_it(
    tmp_path: Path, beside: list[str]
) -> None:
    cells = (
        "import random",
        "    # drawn\n    %matplotlib inline\n    for i in range(3):\n        print(random.random())",
        "  x = 1\n\nprint(random.choice('ab'))",
        *beside,
        "print(1)\n    print(random.random())",
    )
    last = 4 + len(beside)
    assert [one for one in found(tmp_path, *cells) if one[0] != "DET001" or one[1] == last] == [
        ("DET103", 2, 4),
        ("DET001", last, 2),
    ]


def test_what_follows_an_indented_cell_is_where_it_was(tmp_path: Path) -> None:
    cells = (
        "  import random\n  random.seed(0)",
        "x = 1\n    y = (2",
        "import random\nprint(random.random())",
    )
    assert found(tmp_path, *cells) == [("DET001", 2, 2)]
    assert found(tmp_path, "  import random\n", cells[1], cells[2])[-1] == ("DET103", 3, 2)
