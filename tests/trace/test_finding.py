"""What the static analysis adds to the report of a difference. Needs no framework."""

from __future__ import annotations

from pathlib import Path

import pytest

from d9mlint.analysis import AnalysisJob, Task
from d9mlint.cli.trace_finding import with_finding
from d9mlint.trace.compare import Cause, Difference, Frame, Side
from d9mlint.trace.facts import fact
from d9mlint.trace.model import DIVERGED, Report

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
    program.write_text(OTHER + "for x in torch.utils.data.DataLoader([1, 2], shuffle=True):\n    print(x)\n")
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
