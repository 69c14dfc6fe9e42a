"""Reading files: encodings, line ends, notebooks."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import notebook

from d9mlint.base.notebooks import as_python
from d9mlint.base.source import make_source, read_source
from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check


def test_a_byte_order_mark_is_not_part_of_the_text() -> None:
    source = make_source("/a.py", b"\xef\xbb\xbfx = 1\n")
    assert (source.text, source.encoding, source.problem) == ("x = 1\n", "utf-8-sig", None)


@pytest.mark.parametrize("cookie", ["latin-1", "iso-8859-15", "cp1252"])
def test_an_encoding_cookie_is_honoured_in_the_first_two_lines(cookie: str) -> None:
    data = f"#!/usr/bin/python\n# -*- coding: {cookie} -*-\ns = 'é'\n".encode(cookie)
    assert make_source("/a.py", data).text.endswith("s = 'é'\n")


def test_an_encoding_cookie_after_code_is_a_comment() -> None:
    source = make_source("/a.py", b"x = 1\n# coding: latin-1\n")
    assert source.encoding == "utf-8"


@pytest.mark.parametrize(
    ("data", "code", "message", "start"),
    [
        (b"x = 1\ns = '\xe9'\n", "DET002", "byte 0xe9", 11),
        (b"# coding: klingon\n", "DET001", "unknown encoding: klingon", 0),
        (b"# coding: rot13\n", "DET001", "not a text encoding", 0),
        (b"\xef\xbb\xbf# coding: latin-1\n", "DET001", "byte order mark", 0),
        (b"x = 1\0\n", "DET001", "null bytes", 5),
    ],
)
def test_what_can_not_be_decoded_is_a_problem_at_its_place(
    data: bytes, code: str, message: str, start: int
) -> None:
    problem = make_source("/a.py", data).problem
    assert problem is not None
    assert (problem.code, problem.start) == (code, start)
    assert message in problem.message


def test_the_remedy_for_a_file_in_another_encoding(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import os\n", encoding="utf-16")
    result = check([str(tmp_path)], load_settings(str(tmp_path), overrides={"cache": False, "jobs": 1}))
    assert [one.finding.help for one in result.items] == [
        "file skipped; save it as UTF-8 or add it to `extend-exclude`"
    ]


def test_a_directory_in_place_of_a_file_is_a_problem(tmp_path: Path) -> None:
    problem = read_source(str(tmp_path)).problem
    assert problem is not None and problem.code == "DET002"


def test_rows_and_columns_count_characters_and_any_line_end() -> None:
    source = make_source("/a.py", "a\r\nbé\rc\n\x0cd\u2028e".encode())
    assert source.row_column(source.text.index("é")) == (2, 2)
    assert source.row_column(source.text.index("c")) == (3, 1)
    assert source.row_column(source.text.index("e", 5)) == (4, 4)
    assert (source.newline, source.line(2)) == ("\r\n", "bé")


def test_places_in_a_notebook_are_within_the_cell() -> None:
    raw = json.loads(notebook(["a = 1\nb = 2", "c = 3\n"]))
    raw["cells"].insert(1, {"cell_type": "markdown", "metadata": {}, "source": ["# text"]})
    source = make_source("/a.ipynb", json.dumps(raw).encode())
    at = source.location(source.text.index("c"))
    assert (at.cell, at.row, at.column) == (3, 1, 1)
    assert source.location(source.text.index("b"))[:2] == (2, 1)


MAGICS = """%matplotlib inline
!pip install torch \\
    numpy
?print
if True:
    !ls
    %cd ..
files = !ls
%time x = 1
torch.rand?
y = ("%d"
     % 3)
s = '''
% not a magic
!neither
'''
z = 5 \\
    % 2
"""


def test_magics_become_comments_of_the_same_length() -> None:
    python = as_python(MAGICS)
    assert len(python) == len(MAGICS)
    assert [len(a) for a in python.splitlines()] == [len(a) for a in MAGICS.splitlines()]
    tree = ast.parse(python)
    assert "% not a magic" in ast.unparse(tree)
    names = [n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    assert names == ["files", "y", "s", "z", "x"] or sorted(names) == ["files", "s", "x", "y", "z"]


@pytest.mark.parametrize("line", ["cd ../", "pip install -q torch==2.1", "ls -la data/", "matplotlib inline"])
def test_a_magic_needs_no_percent_sign(line: str) -> None:
    tree = ast.parse(as_python(f"{line}\nx = 1\n"))
    assert [ast.unparse(one) for one in tree.body if isinstance(one, ast.Assign)] == ["x = 1"]


@pytest.mark.parametrize("line", ["cat in x", "less = 1", "pip.main()", "ls(1)", "cat -= 1"])
def test_a_name_of_a_magic_is_a_name_where_python_stands(line: str) -> None:
    text = f"%matplotlib inline\n{line}\n"
    assert as_python(text).splitlines()[1] == line


def test_a_broken_line_is_no_magic() -> None:
    with pytest.raises(SyntaxError):
        ast.parse(as_python("for x in\ncat in x y\n"))


def test_a_cell_of_another_language_holds_no_code() -> None:
    text = "%%bash\nfor f in *; do echo $f; done\n"
    assert ast.parse(as_python(text)).body == []


def test_the_body_of_a_timed_cell_is_code() -> None:
    assert len(ast.parse(as_python("%%time\nx = 1\n")).body) == 1


@given(st.text(alphabet="%!?= \nabx'\"\\()#", max_size=60))
def test_neutral_cells_keep_their_length_and_lines(text: str) -> None:
    python = as_python(text)
    assert len(python) == len(text)
    assert [i for i, c in enumerate(python) if c == "\n"] == [i for i, c in enumerate(text) if c == "\n"]


@pytest.mark.parametrize(
    "data",
    [b"{", b"[]", b'{"worksheets": []}', b'{"cells": [3]}', b'{"cells": [{"source": 5}]}', b"\xff\xfe"],
)
def test_a_malformed_notebook_is_a_problem(data: bytes) -> None:
    problem = make_source("/a.ipynb", data).problem
    assert problem is not None and problem.code == "DET002"


def test_a_notebook_of_no_bytes_has_no_cells() -> None:
    source = make_source("/a.ipynb", b"")
    assert (source.text, source.problem) == ("", None)


def test_a_notebook_in_another_language_has_no_cells() -> None:
    raw = {
        "cells": [{"cell_type": "code", "source": "x <- 1"}],
        "metadata": {"kernelspec": {"language": "R"}},
    }
    source = make_source("/a.ipynb", json.dumps(raw).encode())
    assert (source.text, source.problem) == ("", None)
