"""What the static analysis adds to the report of a difference. Needs no framework."""

from __future__ import annotations

from pathlib import Path

import pytest

from d9mlint.analysis import AnalysisJob, Task
from d9mlint.cli.trace_finding import with_finding
from d9mlint.trace.compare import Cause, Difference, Frame, Side
from d9mlint.trace.facts import fact
from d9mlint.trace.journal import BACKWARD
from d9mlint.trace.model import DIVERGED, Report
from d9mlint.trace.report import remedy

PROGRAM = """\
import torch
import words

torch.manual_seed(0)
numbers = {word: number for number, word in enumerate(set(words.ALL.split()))}
ids = torch.tensor([numbers[word] for word in words.ALL.split()])
table = torch.nn.Embedding(10, 4)
opt = torch.optim.SGD(table.parameters(), lr=0.1)
table(ids).sum().backward()
opt.step()
"""
OTHER = "import torch\n\nmodel = torch.nn.Linear(2, 2)\nopt = torch.optim.SGD(model.parameters(), lr=0.1)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("[tool.d9mlint]\n")
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "words.py").write_text("ALL = 'the quick brown fox'\n")
    for number in range(3):
        (tmp_path / f"other{number}.py").write_text(OTHER)
    return tmp_path


def report(project: Path, row: int, cause: str) -> Report:
    file = str(project / "train.py")
    path = (Frame(file, row, "<module>"),)
    side = Side("input", "new tensor", path, (), "int64[4]", "", "0" * 16, 0)
    found = Cause(cause, "because", ()) if cause else None
    difference = Difference("input", "main", "main", 0, 0, 1, side, side, "differs", found)
    return Report(DIVERGED, ("python", file), "full", "", (), difference=difference, source=file)


@pytest.mark.parametrize(
    ("row", "cause", "named"), [(5, "", 5), (6, "", 0), (6, "hash seed", 5), (6, "listing", 0)]
)
def test_the_finding_at_the_place_or_the_only_one_about_the_cause(
    project: Path, row: int, cause: str, named: int
) -> None:
    found = with_finding(report(project, row, cause))
    assert (found.finding.row if found.finding else 0) == named
    assert found.finding is None or found.finding.code == "DET210"
    assert found.difference is not None and found.difference.place[0].row == (named or row)


def test_a_draw_without_a_seed_has_the_finding_that_the_seed_is_missing(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    loop = "for x in torch.utils.data.DataLoader([1, 2], shuffle=True):\n    print(x)\n"
    program.write_text(OTHER + loop + "print(model(torch.ones(1, 2)))\n")
    path = (Frame(str(program), 5, "<module>"),)
    side = Side("generator", "torch CPU generator", path, (), "", "", "0" * 16, 0)
    reason = "the torch CPU generator is used without a seed"
    difference = Difference("rng", "main", "main", 0, 0, 1, side, side, reason, None)
    one = Report(DIVERGED, ("python",), "full", "", (), difference=difference, source=str(program))
    found = with_finding(one)
    assert found.finding is not None and (found.finding.code, found.finding.row) == ("DET101", 3)
    assert found.difference is not None and found.difference.place[0].row == 5
    seeded = difference._replace(reason="the torch CPU generator was seeded differently")
    assert with_finding(one._replace(difference=seeded)).finding is None


RACE = """\
import torch

torch.manual_seed(0)
index = torch.randint(0, 1000, (SIZE,))
total = torch.zeros(1000)
total.index_put_((index,), torch.randn(SIZE, dtype=DTYPE), accumulate=True)
"""


@pytest.mark.parametrize(("dtype", "code"), [("float32", "DET401"), ("float64", "")])
def test_of_an_op_that_the_linter_knows_there_is_a_finding_or_a_note_but_no_fact(
    dtype: str, code: str, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    lines = "import torch\nimport sys\n" + RACE.replace("SIZE", "int(sys.argv[1])")
    program.write_text(lines.replace("DTYPE", f"torch.{dtype}"))
    path = (Frame(str(program), 8, "<module>"),)
    side = Side("operation", "aten.index_put_.default", path, (), "", "", "0" * 16, 0)
    difference = Difference("op", "main", "main", 0, 0, 1, side, side, "differs", None)
    mode = {"distinct": 1, "raises": None}
    replays = {"distinct": 7, "runs": 10, "inputs": [], "versions": {}, "deterministic": mode}
    one = Report(DIVERGED, ("python",), "full", "", (), difference=difference, confirmation=replays)
    assert "torch.Tensor.index_put_" in fact(one)
    found = with_finding(one._replace(source=str(program)))
    assert fact(found) == ""
    # The number of elements is not known: the finding has low confidence.
    assert (found.finding.code if found.finding else "") == code
    assert any("d9mlint knows" in note for note in found.notes) is (not code)


SEGMENT = """\
import torch
import torch.nn as nn
import torch.nn.functional as F

torch.manual_seed(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.down = nn.AvgPool2d(2)
        self.up = nn.Upsample(scale_factor=2, mode="bilinear")

    def forward(self, x):
        x = self.down(x)
        x = self.up(x)
        return x


net = Net().cuda()
conv = nn.Conv2d(3, 5, 1).cuda()
optimizer = torch.optim.Adam(conv.parameters(), lr=1e-3)
for step in range(4):
    x = torch.randn(8, 3, 64, 64, device="cuda")
    y = torch.randint(0, 5, (8, 64, 64), device="cuda")
    optimizer.zero_grad()
    loss = F.cross_entropy(net(conv(x)), y)
    loss = loss + F.interpolate(net(conv(x)), scale_factor=2, mode="bicubic").sum() + F.cross_entropy(conv(x), y)
    loss.backward()
    optimizer.step()
"""
CALLED = "    loss = F.cross_entropy(net(conv(x)), y)"


def diverged(program: Path, name: str, text: str, backward: bool = True, columns: bool = True) -> Report:
    """The report of an operation that differs in a call of the program."""
    rows = program.read_text().splitlines()
    row = next(n for n, line in enumerate(rows, 1) if text in line)
    start = rows[row - 1].index(text)
    inner = Frame(str(program), row, "Net.forward", (start, row, start + len(text)) if columns else ())
    outer = next(n for n, line in enumerate(rows, 1) if line.startswith(CALLED))
    path = (inner,) if row == outer else (inner, Frame(str(program), outer, "<module>"))
    side = Side("operation", name, () if backward else path, path if backward else (), "", "", "0" * 16, 0)
    side = side._replace(flags=BACKWARD if backward else 0)
    difference = Difference("op", "main", "autograd 1", 0, 0, 1, side, side, "differs", None)
    return Report(DIVERGED, ("python",), "full", "", (), difference=difference, source=str(program))


@pytest.mark.parametrize(
    ("name", "text", "subject"),
    [
        # The layer of the call, although the line that calls the model has a finding too.
        ("aten.upsample_bilinear2d_backward", "self.up(x)", "nn.Upsample"),
        ("aten.nll_loss2d_forward", "F.cross_entropy(net(conv(x)), y)", "F.cross_entropy"),
        # Two calls of one line.
        (
            "aten.upsample_bicubic2d_backward",
            'F.interpolate(net(conv(x)), scale_factor=2, mode="bicubic")',
            "F.interpolate",
        ),
        # Its line has findings about other calls, and none is about it.
        ("aten.convolution_backward", "conv(x)", ""),
        ("aten.avg_pool2d_backward", "self.down(x)", ""),
    ],
)
@pytest.mark.parametrize("columns", [True, False])
def test_a_finding_is_about_the_operation_that_differs(
    name: str, text: str, subject: str, columns: bool, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(SEGMENT)
    found = with_finding(diverged(program, name, text, name.endswith("_backward"), columns))
    assert (found.finding.message.split("`")[1] if found.finding else "") == subject


def test_where_the_line_is_not_known_the_only_finding_that_names_the_operation_counts(tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(SEGMENT)
    one = diverged(program, "aten.upsample_bilinear2d_backward", "optimizer.step()")
    found = with_finding(one)
    assert found.finding is not None and "nn.Upsample" in found.finding.message


@pytest.mark.parametrize(("version", "raises"), [("2.0.1", True), ("2.11.0", False)])
def test_the_finding_is_for_the_releases_that_the_program_ran_with(
    version: str, raises: bool, tmp_path: Path
) -> None:
    program = tmp_path / "train.py"
    program.write_text(SEGMENT)
    one = diverged(program, "aten.upsample_bilinear2d_backward", "self.up(x)")
    found = with_finding(one._replace(versions={"torch": version})).finding
    assert found is not None and f"(torch {version})" in found.message
    assert ("raises RuntimeError" in found.message) is raises


ATTENTION = """\
import torch

attention = torch.nn.MultiheadAttention(8, 2, device="cuda")
x = torch.randn(4, 2, 8, device="cuda")
y = attention(x, x, x, need_weights=False)[0].sum()
y.backward()
"""


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("aten._scaled_dot_product_cudnn_attention_backward", True),
        ("aten.native_dropout_backward", False),
    ],
)
def test_the_note_says_what_is_known_of_the_operation(name: str, known: bool, tmp_path: Path) -> None:
    program = tmp_path / "train.py"
    program.write_text(ATTENTION)
    frame = Frame(str(program), 5, "<module>", (4, 5, 4 + len("attention(x, x, x, need_weights=False)")))
    side = Side("operation", name, (), (frame,), "", "", "0" * 16, BACKWARD)
    difference = Difference("op", "main", "autograd 1", 0, 0, 1, side, side, "differs", None)
    mode = {"distinct": 1, "raises": None}
    replays = {"distinct": 7, "runs": 10, "inputs": [], "versions": {}, "raises": None, "deterministic": mode}
    one = Report(DIVERGED, ("python",), "full", "", (), difference=difference, confirmation=replays)
    found = with_finding(one._replace(source=str(program)))
    assert found.finding is None and found.known
    text = " ".join(found.notes)
    assert "none of them applies here" not in text
    assert ("cuDNN backend is chosen" in text) is known
    assert ("none of them names this operation" in text) is not known
    assert ("Allow another backend in sdpa_kernel." in remedy(found)) is known


def test_other_programs_of_the_project_are_not_analyzed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    analyzed: list[str] = []
    run = AnalysisJob.run

    def noted(self: AnalysisJob, task: Task) -> object:
        result = run(self, task)
        analyzed.append(Path(result[0].entry).name)
        return result

    monkeypatch.setattr(AnalysisJob, "run", noted)
    with_finding(report(project, 5, ""))
    assert "train.py" in analyzed and not any(name.startswith("other") for name in analyzed)
