"""What the linter does not know and a trace has found: the YAML that is printed makes the linter report it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from d9mlint.trace.compare import Cause, Difference, Frame, Side
from d9mlint.trace.facts import api_at, fact
from d9mlint.trace.model import DIVERGED, Report
from d9mlint.trace.report import remedy


def difference(
    program: Path, row: int, verdict: str, name: str, reason: str = "", flags: int = 0, cause: str = ""
) -> Difference:
    frame = (Frame(str(program), row, "<module>"),)
    side = Side("operation", name, frame, (), "float32[4]", "", "0" * 16, flags)
    explained = Cause("draw", cause, frame) if cause else None
    return Difference(verdict, "main", "main", 0, 0, 1, side, side, reason, explained)  # type: ignore[arg-type]


def confirmation(raises: str | None = None, distinct: int = 1) -> dict[str, object]:
    mode = {"distinct": distinct, "raises": raises}
    inputs = [{"name": "self", "device": "cpu"}]
    versions = {"torch": "2.13.0"}
    return {"distinct": 7, "runs": 10, "inputs": inputs, "versions": versions, "deterministic": mode}


def codes(program: Path, text: str) -> list[str]:
    """What is reported where a fact is given as ``knowledge = [...]``."""
    configuration = program.parent / "d9mlint.toml"
    if text:
        (program.parent / "facts.yaml").write_text(text)
        configuration.write_text('knowledge = ["facts.yaml"]\n')
    else:
        configuration.unlink(missing_ok=True)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "d9mlint"),
            *("--output-format=json", "--no-cache", "--torch-version=2.13.0", str(program)),
        ],
        cwd=program.parent,
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode in (0, 1), done.stderr
    return [found["code"] for found in json.loads(done.stdout)]


def test_an_op_that_was_seen_to_differ_is_reported_next_time(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import torch\n"
        "import fastscatter\n"
        "torch.manual_seed(0)\n"
        "x = torch.randn(8)\n"
        "print(fastscatter.segment_sum(x, 3))\n"
    )
    found = difference(program, 5, "op", "fastscatter.segment_sum.default")
    report = Report(DIVERGED, (), "full", "", (), difference=found, confirmation=confirmation(distinct=5))
    text = fact(report)
    assert "apis: [fastscatter.segment_sum]" in text and "behaviour: silent" in text
    assert codes(program, "") == []
    (reported,) = codes(program, text)
    assert reported.startswith("DET4")


def test_a_variable_that_is_not_set_is_no_missing_implementation(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import torch\nprint(torch.mm(torch.ones(2, 2), torch.ones(2, 2)))\n")
    raises = "this operation is not deterministic because it uses CuBLAS: set CUBLAS_WORKSPACE_CONFIG=:4096:8"
    replays = {**confirmation(raises, distinct=5), "raises": None}
    found = difference(program, 2, "op", "aten.mm.default")
    report = Report(DIVERGED, (), "full", "", (), difference=found, confirmation=replays)
    assert fact(report) == ""
    assert remedy(report).startswith("set CUBLAS_WORKSPACE_CONFIG=:4096:8")


def test_a_draw_of_a_library_is_reported_next_time(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("from augmenter import jitter\nprint(jitter([1, 2]))\n")
    found = difference(
        program,
        2,
        "rng",
        "new tensor",
        "`numpy.random` is used without a seed",
        cause="`numpy.random` is drawn from here",
    )
    text = fact(Report(DIVERGED, (), "full", "", (), difference=found))
    assert "apis: [augmenter.jitter]" in text and "draws: [numpy]" in text
    assert codes(program, "") == []
    assert codes(program, text) == ["DET102"]


@pytest.mark.parametrize(
    ("kind", "row", "api", "rule"),
    [("hash seed", 4, "corpus.words", "DET210"), ("listing", 6, "corpus.files", "DET209")],
)
def test_an_order_of_a_library_is_reported_next_time(
    kind: str, row: int, api: str, rule: str, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(
        "import torch\n"
        "import corpus\n"
        "words = corpus.words('a b c')\n"
        "x = torch.tensor([float(ord(word)) for word in words])\n"
        "print(x.cumsum(0))\n"
        "names = corpus.files('data')\n"
        "print(torch.tensor([float(open(name).read()) for name in names]).cumsum(0))\n"
    )
    found = difference(program, row, "input", "new tensor")
    found = found._replace(cause=Cause(kind, "the order is arbitrary", found.place))
    text = fact(Report(DIVERGED, (), "full", "", (), difference=found))
    assert f"apis: [{api}]" in text
    assert codes(program, "") == []
    assert codes(program, text) == [rule]


def test_an_order_of_python_is_no_fact_about_a_library(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import os\nfor name in os.listdir('data'):\n    print(name)\n")
    found = difference(program, 2, "input", "new tensor")
    for kind in ("hash seed", "listing", "clock"):
        one = found._replace(cause=Cause(kind, "the order is arbitrary", found.place))
        assert fact(Report(DIVERGED, (), "full", "", (), difference=one)) == ""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("import lib\nnet = lib.Pool()\nnet(1)\n", "lib.Pool"),
        ("import lib\nnet = lib.Pool()\nnet = lib.Other()\nnet(1)\n", ""),
        (
            "import lib\nclass A:\n    def f(self):\n        self.net = lib.Pool()\n        self.net(1)\n",
            "lib.Pool",
        ),
    ],
)
def test_an_object_of_a_library_is_called(program: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(program)
    assert api_at(Frame(str(path), program.count("\n"), "f"), "aten.mm") == expected


@pytest.mark.parametrize(
    ("line", "operation", "expected"),
    [
        ("F.grid_sample(a, b)", "aten.grid_sampler_2d_backward", "torch.nn.functional.grid_sample"),
        ("x.cumsum(0)", "aten.cumsum", "torch.Tensor.cumsum"),
        ("x.cumsum(0) + F.relu(x)", "aten.cumsum", "torch.Tensor.cumsum"),
        ("F.relu(F.gelu(x))", "aten.mm", ""),
        ("mine.go(x)", "aten.mm", ""),
        ("tensorflow.image.crop_and_resize(x)", "tf.CropAndResize", "tf.image.crop_and_resize"),
        ("lib.go(torch.ones(2))", "lib.kernel", "lib.go"),
        ("go_on()", "aten.mm", ""),
        ("lib.make(x).shuffle(3)", "TensorFlow generator", ""),
        ("lib.make(x).cumsum(0)", "aten.cumsum", "torch.Tensor.cumsum"),
    ],
)
def test_the_call_that_an_operation_belongs_to(
    line: str, operation: str, expected: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("")
    program = tmp_path / "train.py"
    program.write_text(
        "import torch, lib, mine, tensorflow\nimport torch.nn.functional as F\ndef go_on(): ...\n" + line
    )
    assert api_at(Frame(str(program), 4, "f"), operation) == expected


@pytest.mark.parametrize(
    ("running", "operation", "expected"),
    [
        ("lib.make(x)", "aten.mm", "lib.make"),
        ("lib.make(x).shuffle(3)", "TensorFlow generator", ""),
        ("lib.use(lib.make(x).shuffle(3))", "aten.mm", "lib.use"),
        ("lib.use(lib.make(x).shuffle(3)) @ y", "aten.mm", ""),
    ],
)
def test_the_call_that_was_running_is_the_one(
    running: str, operation: str, expected: str, tmp_path: Path
) -> None:
    line = "z = lib.use(lib.make(x).shuffle(3)) @ y"
    program = tmp_path / "train.py"
    program.write_text("import lib\n" + line)
    start = line.index(running)
    frame = Frame(str(program), 2, "f", (start, 2, start + len(running)))
    assert api_at(frame, operation) == expected


def test_nothing_is_printed_for_what_the_linter_reports_or_nobody_knows(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text("import lib\nlib.go(1)\n")
    one = difference(program, 2, "op", "lib.kernel")
    assert fact(Report(DIVERGED, (), "full", "", (), difference=one)) == ""
    confirmed = Report(DIVERGED, (), "full", "", (), difference=one, confirmation=confirmation())
    assert "deterministic_alternative" in fact(confirmed)
    other = one._replace(verdict="scalar")
    assert fact(confirmed._replace(difference=other)) == ""
