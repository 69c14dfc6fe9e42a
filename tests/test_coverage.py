"""What was not followed is said, for each entry point, and named entry points are followed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from d9mlint.base.findings import Confidence
from d9mlint.config.settings import Settings
from d9mlint.pipeline import Result, check
from d9mlint.report import render
from d9mlint.report.common import Options
from d9mlint.report.coverage import coverage_data, coverage_line, idle_line, left_out_line

TRAIN = """\
import argparse

import torch
import unheard_of
from nets import Net
from .gone import helper

BUILDERS = {}


def unused():
    return 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--device")
    parser.add_argument("--name")
    args = parser.parse_args()
    torch.manual_seed(0)
    model = Net().to(torch.device(args.device or input()))
    other = BUILDERS[args.name](3)
    unheard_of.fit(model)
    unheard_of.log("text")
    print(model(torch.randn(2)))
"""
NETS = "import torch\n\n\nclass Net(torch.nn.Module):\n    def forward(self, x):\n        return x\n"
OP = "def add(out, index, source):\n    return out.index_add_(0, index, source)\n"


def lint(root: Path, files: dict[str, str], **values: object) -> Result:
    (root / "pyproject.toml").touch()
    for name, text in files.items():
        (root / name).write_text(text)
    return check([str(root)], Settings(cache=False, **values))  # type: ignore[arg-type]


def test_what_is_not_followed_is_listed(tmp_path: Path) -> None:
    (data,) = coverage_data(lint(tmp_path, {"train.py": TRAIN, "nets.py": NETS}))
    assert data["entry"] == "train.py" and data["files"] == 2
    assert data["statements"]["not_followed"] == 1
    found = {(one["row"], one["kind"]) for one in data["not_followed"]}
    assert found == {
        (6, "project-import"),
        (21, "device"),
        (22, "dynamic-call"),
        (23, "library-call"),
    }
    assert any(
        "unheard_of.fit" in one["message"] and "a model" in one["message"] for one in data["not_followed"]
    )


def test_a_library_that_transforms_data_is_named(tmp_path: Path) -> None:
    text = (
        "from torchvision.datasets import ImageFolder\nfrom torchvision.transforms import Compose, ToTensor\n"
        "from unheard_of import Blur\n\nif __name__ == '__main__':\n"
        "    print(ImageFolder('x', transform=Compose([Blur(), ToTensor()]))[0])\n"
        "    print(Compose([Blur(), ToTensor()])(3))\n"
    )
    (data,) = coverage_data(lint(tmp_path, {"train.py": text}))
    said = {one["message"] for one in data["not_followed"]}
    assert "nothing is known of `unheard_of.Blur`, which transforms data" in said
    assert not any("ToTensor" in one for one in said)


DATA = """
import numpy as np


class Data:
    def __init__(self, names, size):
        self.names = names

    def __getitem__(self, index):
        return np.random.rand(3)
"""
CELLS = ["from data import Data", "data = Data(%s)", "print(data[0])"]


@pytest.mark.parametrize(
    ("given", "codes"), [("['a']", []), ("['a'], 3", ["DET102"]), ("*open('names')", ["DET102"])]
)
def test_a_notebook_that_its_modules_have_left_behind(tmp_path: Path, given: str, codes: list[str]) -> None:
    source = [cell % given if "%s" in cell else cell for cell in CELLS]
    cells = [
        {"cell_type": "code", "source": one, "outputs": [], "execution_count": 1, "metadata": {}}
        for one in source
    ]
    notebook = json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})
    result = lint(tmp_path, {"data.py": DATA, "look.ipynb": notebook})
    assert [item.finding.code for item in result.items] == codes
    kinds = [one["kind"] for data in coverage_data(result) for one in data["not_followed"]]
    assert kinds == ([] if codes else ["failing-call"])


def test_it_is_advice_that_changes_no_exit_code(tmp_path: Path) -> None:
    result = lint(tmp_path, {"train.py": TRAIN, "nets.py": NETS}, select=("DET004",))
    assert {item.finding.severity.value for item in result.items} == {"advice"}
    assert len(result.items) == 4 and result.incomplete == 0
    assert not lint(tmp_path, {}).items


@pytest.mark.parametrize("output_format", ["full", "concise", "html"])
def test_the_summary_says_so(tmp_path: Path, output_format: str) -> None:
    result = lint(tmp_path, {"train.py": TRAIN, "nets.py": NETS})
    text = render(result, output_format, Options(str(tmp_path), False, 120, False))
    assert "4 places in 1 program were not followed" in text
    assert ("23:5" in text) == (output_format == "html")


def test_sarif_has_notifications(tmp_path: Path) -> None:
    result = lint(tmp_path, {"train.py": TRAIN, "nets.py": NETS})
    log = json.loads(render(result, "sarif", Options(str(tmp_path), False, 120, False)))
    notes = log["runs"][0]["invocations"][0]["toolExecutionNotifications"]
    assert len(notes) == 4 and {note["level"] for note in notes} == {"note"}


def test_machine_formats_say_it_on_standard_error(tmp_path: Path) -> None:
    lint(tmp_path, {"train.py": TRAIN, "nets.py": NETS})
    command = [sys.executable, "-m", "d9mlint", "--output-format", "json", "."]
    for _ in range(2):  # the second run reads the cache
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, "[]\n")
        assert "4 places in 1 program were not followed" in done.stderr
    shown = subprocess.run(
        [sys.executable, "-m", "d9mlint", "graph", "--coverage", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert "train.py:23:5: unknown library call" in shown.stdout and shown.returncode == 0


def test_a_program_that_is_followed_says_nothing(tmp_path: Path) -> None:
    text = "import torch\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n    print(torch.randn(3))\n"
    assert coverage_line(lint(tmp_path, {"train.py": text})) == ""


KERNEL = """import torch
import triton
import triton.language as tl


@triton.jit
def add(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.atomic_add(out_ptr, tl.sum(tl.load(x_ptr + tl.arange(0, BLOCK))))


out = torch.zeros(1, device="cuda")
add[(8,)](torch.ones(1000, device="cuda"), out, BLOCK=128, num_warps=4)
"""


def test_a_kernel_that_is_started_on_a_grid_is_followed(tmp_path: Path) -> None:
    result = lint(tmp_path, {"train.py": KERNEL})
    assert coverage_line(result) == ""
    assert [step.message for item in result.items for step in item.finding.flow] == ["add() is called here"]


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ('f"cuda:{rank}"', []),
        ('f"{kind}:{rank}" if rank else kind', []),
        ("sys.argv[1]", ["device"]),
        ('f"{sys.argv[1]}:{rank}"', ["device"]),
    ],
)
def test_a_device_is_known_where_its_number_is_not(tmp_path: Path, name: str, kinds: list[str]) -> None:
    text = (
        "import os\nimport sys\nimport torch\nrank = int(os.environ['LOCAL_RANK'])\n"
        f"kind = 'cuda' if torch.cuda.is_available() else 'cpu'\ndevice = torch.device({name})\n"
        "print(torch.ones(2, device=device))\n"
    )
    (data,) = coverage_data(lint(tmp_path, {"train.py": text}))
    assert [one["kind"] for one in data["not_followed"]] == kinds


@pytest.mark.parametrize(
    ("device", "kinds"),
    [
        ("Accelerator().device", []),
        ("other.load().device", ["device"]),
        ("other.load().dtype", []),
        ("other.load().device).to(other.load().dtype", ["device"]),
        ("other.load().device).to(other.load()", ["device"]),
    ],
)
def test_the_device_of_a_launcher_is_known(tmp_path: Path, device: str, kinds: list[str]) -> None:
    text = (
        "import other\nimport torch\nfrom accelerate import Accelerator\ntorch.manual_seed(0)\n"
        f"print(torch.nn.Linear(2, 2).to({device}))\n"
    )
    (data,) = coverage_data(lint(tmp_path, {"train.py": text}))
    assert [one["kind"] for one in data["not_followed"]] == kinds


@pytest.mark.parametrize(
    ("base", "what"),
    [
        ("gymnasium.Env", "an environment"),
        ("torch.utils.data.Dataset", "a dataset"),
        ("object", ""),
    ],
)
def test_an_unknown_library_that_is_given_an_object_of_the_program_is_named(
    tmp_path: Path, base: str, what: str
) -> None:
    text = (
        "import gymnasium\nimport torch\nimport unheard_of\n\n\n"
        f"class Own({base}):\n    def step(self, action):\n        return action\n\n\n"
        "torch.manual_seed(0)\nunheard_of.play([Own()])\nprint(torch.rand(3), Own())\n"
    )
    (data,) = coverage_data(lint(tmp_path, {"train.py": text}))
    said = [one["message"] for one in data["not_followed"]]
    assert said == ([f"nothing is known of `unheard_of.play`, which receives {what}"] if what else [])


def test_a_tree_without_entry_points_says_so(tmp_path: Path) -> None:
    result = lint(tmp_path, {"ops.py": OP})
    assert result.no_entry and "No entry point" in coverage_line(result)
    (item,) = result.items
    assert item.finding.confidence is Confidence.MEDIUM
    assert item.finding.flow[0].message.startswith("no entry point reaches `add()`")


def test_the_configuration_names_entry_points(tmp_path: Path) -> None:
    files = {"jobs.py": "import torch\n\n\ndef run(seed=None):\n    return torch.randn(3)\n"}
    assert not lint(tmp_path, files).items
    named = lint(tmp_path, files, entry_points=("jobs.py:run",))
    assert [item.finding.code for item in named.items] == ["DET101"]
    assert named.coverage[0].function == "run" and not named.no_entry
    as_module = lint(tmp_path, files, entry_points=("jobs:run",))
    assert [i.finding for i in as_module.items] == [i.finding for i in named.items]
    misspelled = lint(tmp_path, files, entry_points=("jobs.py:runs",))
    assert misspelled.warnings[0].endswith("entry-points names jobs.py:runs, and it has no runs.")
    wrong = lint(tmp_path, files, entry_points=("job.py",))
    assert any("job.py" in warning for warning in wrong.warnings)


def test_an_imported_module_that_does_not_parse_costs_that_module(run: Any, project: Any) -> None:
    files = {
        "train.py": "import random\nimport layers\n\nprint(random.random())\n",
        "layers.py": "def pool(x:\n",
    }
    got = run("--output-format", "concise", cwd=project(files))
    assert got.code == 1 and "internal error" not in got.err
    assert "DET001" in got.out and "DET103" in got.out


WEIGHTS = "import torch\n\n\ndef weights():\n    return torch.randn(3)\n"
USER = "from parts import weights\n\nprint(weights())\n"


def tree(root: Path, files: dict[str, str]) -> Result:
    for name in files:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
    return lint(root, files)


def test_an_import_that_a_search_path_must_lead_to_is_found_by_its_name(tmp_path: Path) -> None:
    result = tree(tmp_path, {"jobs/train.py": USER, "common/lib/parts.py": WEIGHTS})
    assert [(item.finding.code, item.finding.path.rpartition("/")[2]) for item in result.items] == [
        ("DET101", "parts.py")
    ]


def test_a_library_of_that_name_is_none_of_the_files(tmp_path: Path) -> None:
    other = WEIGHTS.replace("weights", "others")
    result = tree(tmp_path, {"jobs/train.py": USER, "common/lib/parts.py": other})
    assert not result.items
    assert [one["not_followed"] for one in coverage_data(result)] == [[]]


def test_an_import_that_may_mean_several_files_is_said(tmp_path: Path) -> None:
    files = {"jobs/train.py": USER, "a/parts.py": WEIGHTS, "b/c/parts.py": WEIGHTS}
    result = tree(tmp_path, files)
    assert not result.items
    (data,) = coverage_data(result)
    (gap,) = data["not_followed"]
    assert (gap["row"], gap["kind"]) == (1, "project-import")
    assert gap["message"] == "`parts` may be one of 2 files: a/parts.py, b/c/parts.py"


def test_findings_in_functions_that_no_program_calls_are_counted(tmp_path: Path) -> None:
    files = {
        "ops.py": OP + "\n\ndef twice(x):\n    return 2 * x\n",
        "main.py": "from ops import twice\n\nprint(twice(2))\n",
    }
    result = lint(tmp_path, files)
    assert not result.items
    line = idle_line(result)
    assert (
        line == "1 finding in functions that no program calls is advice; `--min-severity advice` shows all."
    )
    assert line in render(result, "concise", Options(str(tmp_path), False, 120, False))
    shown = lint(tmp_path, files, min_severity="advice")
    assert [(item.finding.code, item.finding.severity.value) for item in shown.items] == [
        ("DET401", "advice")
    ]
    assert not idle_line(shown)
    called = lint(
        tmp_path, {**files, "main.py": "from ops import add, twice\n\nprint(add(twice(2), 3, 4))\n"}
    )
    assert not idle_line(called)
    # What is not sure enough is not shown as advice either.
    unsure = "import lightgbm\n\n\ndef score(params, data):\n    return lightgbm.cv(params, data, seed=0)\n"
    files["ops.py"] += "\n\n" + unsure
    assert idle_line(lint(tmp_path, files)) == line
    assert not idle_line(lint(tmp_path, files, min_severity="advice"))
    assert idle_line(lint(tmp_path, files, min_confidence="low")).startswith("2 findings ")


def test_files_that_git_ignores_are_counted(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    program = "print(1)\n"
    names = (
        "kept.py",
        "mine.py",
        "sub/other.py",
        "sub/tracked.py",
        "made/deep.py",
        "made/in/deeper.py",
        "env/lib.py",
    )
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(program, encoding="utf-8")
    (tmp_path / "env" / "pyvenv.cfg").write_text("", encoding="utf-8")
    (tmp_path / ".gitignore").write_text("mine.py\nsub/*.py\nmade/\nenv/\n", encoding="utf-8")
    subprocess.run(["git", "-C", str(tmp_path), "add", "-f", "sub/tracked.py"], check=True)
    result = lint(tmp_path, {})
    line = left_out_line(result)
    assert line == (
        "3 files with Python code are not read because of .gitignore; `--no-respect-gitignore` includes them."
    )
    assert line in render(result, "concise", Options(str(tmp_path), False, 120, False))
    assert not left_out_line(lint(tmp_path, {}, respect_gitignore=False))
    command = [
        sys.executable,
        "-m",
        "d9mlint",
        "--no-cache",
        "--output-format",
        "json",
        str(tmp_path / "sub"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (json.loads(done.stdout), "note: 1 file with Python code is not read" in done.stderr) == ([], True)


def test_the_count_goes_to_standard_error_for_machine_readable_formats(tmp_path: Path) -> None:
    lint(
        tmp_path,
        {"ops.py": OP + "\n\ndef twice(x):\n    return 2 * x\n", "main.py": "import ops\n\nops.twice(2)\n"},
    )
    command = [sys.executable, "-m", "d9mlint", "--no-cache", "--output-format", "json", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert json.loads(done.stdout) == []
    assert "note: 1 finding in functions that no program calls is advice" in done.stderr
