"""``d9mlint explain FILE:LINE``: what the analysis knows at a line, and why rules report it or stay silent."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import notebook

from d9mlint.base.errors import UsageError
from d9mlint.cli.knows import condition_text
from d9mlint.config.settings import load_settings
from d9mlint.explain import explain
from d9mlint.report.explanation import Explained

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

TRAIN = """\
import os
import random
import torch
from layers import pool, scatter


def main():
    torch.manual_seed(0)
    torch.use_deterministic_algorithms(True)
    x = torch.randn(4, 8, device="cuda", requires_grad=True)
    index = torch.tensor([0, 0, 1, 1], device="cuda")
    out = torch.zeros(2, 8, device="cuda").index_add(0, index, x)
    random.shuffle([1, 2])
    random.random()
    for name in os.listdir("data"):
        print(name)
    pool(out).sum().backward()
    with torch.no_grad():
        scatter(x.cpu(), index.cpu())


if __name__ == "__main__":
    main()
"""
LAYERS = """\
import torch
import torch.nn.functional as F

FAST = False


def pool(x):
    if FAST:
        return x.scatter_add(0, x, x)
    return F.interpolate(x, scale_factor=2, mode="bilinear")


def scatter(x, index):
    return x.index_add(0, index, x)  # d9mlint: ignore[DET401]


def unused(x):
    return torch.bincount(x)
"""


def told(
    root: Path, place: str, entry: str = "", rules: tuple[str, ...] = (), **given: Any
) -> dict[str, Any]:
    """The explanation of ``file:line``, as JSON has it."""
    path, _, row = place.rpartition(":")
    settings = load_settings(str(root), overrides={"cache": False, "torch-version": "2.4", **given})
    return Explained(
        explain(str(root / path), int(row), settings, entry=entry, rules=rules), condition_text
    ).data()


def line(text: str, code: str) -> int:
    """The row of a line that holds some code."""
    return next(row for row, one in enumerate(text.splitlines(), 1) if code in one)


def of(data: dict[str, Any], code: str, run: int = 0) -> dict[str, Any]:
    """What a rule says."""
    (found,) = [rule for rule in data["runs"][run]["rules"] if rule["code"] == code]
    return dict(found)


@pytest.fixture
def program(project: Project) -> Path:
    return project({"train.py": TRAIN, "layers.py": LAYERS})


def at(root: Path, file: str, code: str, **given: Any) -> dict[str, Any]:
    text = (root / file).read_text()
    return told(root, f"{file}:{line(text, code)}", **given)


def test_the_mode_that_silences_an_op_is_shown_with_its_line(program: Path) -> None:
    data = at(program, "train.py", "index_add")
    (visit,) = data["runs"][0]["visits"]
    assert data["runs"][0]["entry_point"] == "train.py"
    assert visit["modes"]["torch.deterministic"] == {
        "value": True,
        "at": {"filename": "train.py", "row": 9, "column": 5},
        "option": None,
    }
    assert visit["generators"]["torch"]["state"] == "seeded"
    assert visit["generators"]["torch"]["at"]["row"] == 8
    assert visit["generators"]["python"]["state"] == "unseeded"
    facts = {value["code"]: value for value in visit["values"]}
    assert (facts["x"]["device"], facts["x"]["requires_grad"], facts["x"]["dtype"]) == (
        "cuda",
        True,
        "float32",
    )
    assert facts["index"]["dtype"] == "int64"
    rule = of(data, "DET401")
    assert rule["state"] == "silent"
    assert any("deterministic mode is on" in reason for reason in rule["reasons"])


def test_the_call_path_leads_into_another_module_and_conditions_have_answers(program: Path) -> None:
    data = at(program, "layers.py", "F.interpolate(")
    (run,) = data["runs"]
    (visit,) = run["visits"]
    assert [step["message"] for step in visit["call_path"]] == [
        "main() is called here",
        "pool() is called here",
    ]
    (call,) = visit["calls"]
    answers = {
        match["id"]: [c["answer"] for c in match["conditions"]]
        for match in call["knowledge"]
        if match["kind"] == "op"
    }
    conditions, exceptions = (
        answers["torch.interpolate_bilinear"][:2],
        answers["torch.interpolate_bilinear"][2:],
    )
    assert conditions == [True, True] and not any(exceptions)
    assert not any(answers["torch.interpolate_linear"])
    assert run["versions"]["torch"]["version"] == "2.4"


@pytest.mark.parametrize(
    ("code", "old"),
    [("x = tf.placeholder(tf.float32)", True), ("x = tf.keras.Input([2])", False)],
)
def test_the_releases_are_those_that_the_program_is_judged_by(project: Project, code: str, old: bool) -> None:
    root = project({"a.py": f"import tensorflow as tf\n\n{code}\nprint(tf.reduce_mean(x))\n"})
    (run,) = at(root, "a.py", "reduce_mean")["runs"]
    assert (run["versions"]["tensorflow"]["version"] == "1.15") is old


def test_a_line_that_does_not_run_names_the_test_that_decides(program: Path) -> None:
    (run,) = at(program, "layers.py", "x.scatter_add(")["runs"]
    assert run["visits"] == []
    (blocked,) = run["not_run_because"]
    assert blocked["at"]["row"] == line(LAYERS, "if FAST:")
    assert blocked["reason"] == "this test is false"


def test_code_behind_a_return_names_the_return(project: Project) -> None:
    text = "import torch\n\n\ndef main():\n    return 1\n    torch.bincount(1)\n\n\nmain()\nprint(1)\n"
    (run,) = told(project({"a.py": text}), "a.py:6")["runs"]
    assert run["not_run_because"][0]["at"]["row"] == 5


def test_what_a_rule_reports_is_reported_and_what_comes_later_refers_to_it(program: Path) -> None:
    assert of(at(program, "train.py", "random.shuffle"), "DET103")["state"] == "reported"
    later = of(at(program, "train.py", "random.random"), "DET103")
    assert later["state"] == "silent"
    assert later["reasons"] == [f"it reports the program once at train.py:{line(TRAIN, 'random.shuffle')}"]


def test_an_order_that_decides_nothing(program: Path) -> None:
    data = at(program, "train.py", "os.listdir")
    (value,) = [one for one in data["runs"][0]["visits"][0]["values"] if one["order"]]
    assert value["order"][0]["rule"] == "DET209"
    assert of(data, "DET209")["reasons"] == ["the order is arbitrary, but was not seen to decide a result"]


def test_the_device_of_the_inputs_silences_an_op(program: Path) -> None:
    data = at(program, "layers.py", "x.index_add(")
    assert data["runs"][0]["visits"][0]["contexts"] == ["torch.no_grad"]
    rule = of(data, "DET401")
    assert rule["state"] == "silent" and any("its inputs are on cpu" in reason for reason in rule["reasons"])


def test_a_comment_a_threshold_and_a_selection_are_reasons(project: Project) -> None:
    text = """\
import torch

x = torch.randn(4, 8, device="cuda", requires_grad=True)
i = torch.tensor([0, 0, 1, 1], device="cuda")
torch.zeros(2, 8, device="cuda").index_add(0, i, x).sum().backward()
torch.zeros(2, 8, device="cuda").index_add(0, i, x).sum().backward()  # d9mlint: ignore[DET401]
"""
    root = project({"train.py": text})
    assert of(told(root, "train.py:5"), "DET401")["state"] == "reported"
    hidden = of(told(root, "train.py:6"), "DET401")
    assert hidden["state"] == "suppressed" and "ignore[DET401]" in hidden["reasons"][0]
    unselected = of(told(root, "train.py:5", select=("DET1",)), "DET401")
    assert unselected["state"] == "not selected"
    held = of(told(root, "train.py:5", **{"min-severity": "error"}), "DET401")
    assert held["state"] == "held back" and "min-severity error" in held["reasons"][0]


def test_the_version_decides(project: Project) -> None:
    text = """\
import torch

x = torch.randn(8, device="cuda", requires_grad=True)
x.cumsum(0).sum().backward()
torch.bincount(torch.tensor([1, 2], device="cuda"))
"""
    root = project({"train.py": text})
    new = of(told(root, "train.py:5", **{"torch-version": "2.13"}), "DET401")
    assert new["state"] == "silent" and any("deterministic in torch 2.13" in r for r in new["reasons"])


def test_no_entry_point_reaches_it(program: Path) -> None:
    data = at(program, "layers.py", "torch.bincount")
    (run,) = data["runs"]
    assert run["entry_point"] is None and run["times"] == 1
    assert data["entry_points_that_pass_by"] == ["train.py"]
    assert data["function"] == "unused"


def test_code_that_may_seed_is_the_reason_for_code_that_no_entry_point_reaches(project: Project) -> None:
    part = """\
from datasets import Dataset
from labtools import setup_seed


def split(name):
    return Dataset.from_json(name).train_test_split(test_size=0.2)


def other():
    setup_seed(3)
"""
    root = project(
        {"main.py": "import part\n\nif __name__ == '__main__':\n    print(part)\n", "part.py": part}
    )
    held = of(told(root, "part.py:6"), "DET109")
    assert held["state"] == "held back" and held["reasons"] == [
        "`setup_seed` in part.py may seed the generator"
    ]


def test_several_entry_points_and_one_that_is_named(project: Project) -> None:
    use = "import torch\nfrom layers import unused\n\nunused(torch.tensor([1], device='{}'))\n"
    root = project({"a.py": use.format("cpu"), "b.py": use.format("cuda"), "layers.py": LAYERS})
    row = line(LAYERS, "torch.bincount")
    both = told(root, f"layers.py:{row}")["runs"]
    assert [run["entry_point"] for run in both] == ["a.py", "b.py"]
    devices = [run["visits"][0]["calls"][0]["arguments"]["0"]["device"] for run in both]
    assert devices == ["cpu", "cuda"]
    (one,) = told(root, f"layers.py:{row}", entry="b.py")["runs"]
    assert one["entry_point"] == "b.py"
    with pytest.raises(UsageError, match=r"No entry point c.py reaches"):
        told(root, f"layers.py:{row}", entry="c.py")


def test_what_is_reported_for_one_entry_point_is_not_said_of_another(project: Project) -> None:
    use = "import torch\nfrom layers import net\n\n{}torch.manual_seed(0)\nx = torch.ones(1, 1, 3, device='cuda')\n"
    use += "net().cuda()(x)[0].sum().backward()\n"
    layers = "import torch\n\n\ndef net():\n    return torch.nn.LSTM(3, 3)\n"
    off = "torch.backends.cudnn.enabled = False\n"
    root = project({"a.py": use.format(off), "b.py": use.format(""), "layers.py": layers})
    states = [
        {rule["code"]: rule["state"] for rule in run["rules"]} for run in told(root, "layers.py:5")["runs"]
    ]
    assert [state["DET405"] for state in states] == ["silent", "reported"]


def test_a_rule_that_is_asked_about_answers(program: Path) -> None:
    data = at(program, "layers.py", "torch.bincount", rules=("DET210",))
    assert of(data, "DET210")["reasons"][0].startswith("nothing on this line is what it looks for")


def test_recording_changes_nothing_that_is_found(program: Path) -> None:
    from d9mlint.explain import _loud
    from d9mlint.interp.recording import find_spot
    from d9mlint.pipeline import inspect

    seen = inspect([str(program)], load_settings(str(program), overrides={"cache": False}))
    name = f"{program}/layers.py"
    spot = find_spot(seen.plan.facts[name], name, LAYERS.index("return F."), LAYERS.index("return F.") + 20)
    assert spot is not None
    loud = _loud(seen, seen.plan.shares[0])
    plain = loud.run_entry_at(0)
    recorded, recording = loud.record_entry(0, spot)
    assert recording.times > 0
    assert (recorded.findings, recorded.steps, recorded.reached) == (
        plain.findings,
        plain.steps,
        plain.reached,
    )


def test_an_argument_that_is_not_given_is_not_called_unknown(run: Run, project: Project) -> None:
    code = (
        "import torch\nfrom transformers import TrainingArguments\n\n"
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'\n"
        "given = TrainingArguments(output_dir='o', full_determinism=input())\n"
        "left_out = TrainingArguments(output_dir='o')\nx = torch.randn(2, device=device)\n"
    )
    root = project({"train.py": code})
    asked = run("explain", "train.py:5", cwd=root).out
    assert "full_determinism is False: unknown" in asked
    assert "whether the conditions of DET312.6 are met is unknown" in asked
    absent = run("explain", "train.py:6", cwd=root).out
    assert "full_determinism is False: not given" in absent and "are met is unknown" not in absent
    assert "because the call does not give the argument that DET312.6 is about" in absent
    drawn = run("explain", "train.py:7", cwd=root).out
    assert "`device` is 'cuda', where there is a GPU" in drawn
    assert "because it is off by default, and not selected" in drawn


def test_the_command_prints_text_and_says_what_is_wrong_with_a_place(run: Run, program: Path) -> None:
    got = run("explain", "train.py:12", "--torch-version", "2.4", cwd=program)
    assert got.code == 0 and got.err == ""
    assert "mode: torch.deterministic is True, set at train.py:9" in got.out
    assert "DET401 nondeterministic-torch-op is silent" in got.out
    empty = run("explain", "train.py:5", cwd=program)
    assert empty.code == 2 and "The nearest line with one is" in empty.err
    (program / "two.py").write_text("import torch\ntorch.rand(1)\n")
    assert "two.py has 2 lines; there is no line 3." in run("explain", "two.py:3", cwd=program).err
    assert "not of the form FILE:LINE" in run("explain", "train.py", cwd=program).err


def test_a_line_of_a_notebook_cell(project: Project) -> None:
    root = project({"a.ipynb": notebook(["import torch\n", "x = 1\ntorch.randn(3)\n"])})
    from click.testing import CliRunner

    from d9mlint.cli.explain import explain as command

    done = CliRunner().invoke(
        command, [f"{root}/a.ipynb:2:2", "--output-format", "json"], standalone_mode=False
    )
    assert json.loads(done.output)["code"] == "torch.randn(3)"


def test_what_a_rule_finds_by_looking_ahead_is_reported(project: Project) -> None:
    text = """\
import torch


class Checkpoint(torch.autograd.Function):
    @staticmethod
    def forward(ctx, run, x):
        ctx.run = run
        ctx.save_for_backward(x)
        with torch.no_grad():
            return run(x)

    @staticmethod
    def backward(ctx, grad):
        x = ctx.saved_tensors[0].detach().requires_grad_()
        with torch.enable_grad():
            y = ctx.run(x)
        return None, torch.autograd.grad(y, x, grad)[0]


torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Dropout(0.1))
Checkpoint.apply(net, torch.randn(4, 8, requires_grad=True)).sum().backward()
"""
    data = told(project({"train.py": text}), f"train.py:{line(text, 'ctx.run(x)')}")
    assert of(data, "DET411")["state"] == "reported"


def test_reasons_that_lie_in_what_a_rule_is_about(project: Project) -> None:
    text = """\
import torch

net = torch.nn.Linear(4, 2).cuda()
net(torch.rand(3, 4, device="cuda")).sum().backward()


def unused():
    return torch.rand(2)
"""
    root = project({"train.py": text})
    mode = of(told(root, "train.py:3", rules=("DET305",)), "DET305")
    assert mode["state"] == "silent" and "not on here" in " ".join(mode["reasons"])
    unseeded = of(told(root, "train.py:8"), "DET101")
    assert unseeded["state"] == "silent"


def test_only_what_a_program_can_name_is_a_mode(run: Run, project: Project) -> None:
    code = (
        "import os\nimport torch\n\nmodel = torch.nn.Linear(2, 2)\nrank = os.environ.get('RANK', '0')\n"
        "if rank == '0':\n    model.load_state_dict(torch.load('w.pt'))\nprint(model.weight)\n"
    )
    root = project({"train.py": code})
    assert "weights loaded" not in run("explain", "train.py:8", cwd=root).out
    assert "the default of the environment variable `RANK`" in run("explain", "train.py:6", cwd=root).out


def test_a_part_of_an_array_in_a_file_is_an_array(project: Project) -> None:
    text = """\
import numpy as np
import torch

data = np.memmap("train.bin", dtype=np.uint16, mode="r")
for i in torch.randint(len(data) - 8, (4,)):
    torch.save(torch.from_numpy(data[i : i + 8].astype(np.int64)), "x.pt")
"""
    (visit,) = told(project({"a.py": text}), "a.py:6")["runs"][0]["visits"]
    assert [call["api"] for call in visit["calls"] if "astype" in call["api"]] == ["numpy.memmap.astype"]


def test_only_generators_of_libraries_that_the_program_has(project: Project) -> None:
    # Keras 3 draws its seeds from the generator of `random`, which is seeded here.
    text = "import random\nimport torch\n\nrandom.seed(0)\nprint(torch.rand(2))\n"
    (visit,) = told(project({"a.py": text}), "a.py:5")["runs"][0]["visits"]
    assert set(visit["generators"]) == {"torch", "torch_cuda", "python"}
    (visit,) = told(project({"b.py": f"import keras\n{text}"}), "b.py:6")["runs"][0]["visits"]
    assert visit["generators"]["keras"]["state"] == "seeded"


LONG = """\
import torch


def use(x):
    return x * 2


def other(x):
    return x


y = (
    use(
        torch.rand(2),
    )
    .sum()
)
torch.save(
    other(y),
    "y.pt",
)
"""


def test_the_first_line_of_a_long_statement_is_all_of_it_and_others_are_what_stands_there(
    run: Run, project: Project
) -> None:
    root = project({"a.py": LONG})
    first, last = line(LONG, "y = ("), line(LONG, "    .sum()") + 1
    data = told(root, f"a.py:{first}")
    assert data["statement"] == {"row": first, "end_row": last}
    assert {call["api"] for call in data["runs"][0]["visits"][0]["calls"]} >= {
        "torch.rand",
        "torch.Tensor.sum",
    }
    part = told(root, f"a.py:{line(LONG, 'other(y)')}")["runs"][0]["visits"][0]
    assert {call["code"] for call in part["calls"]} == {'torch.save(other(y), "y.pt")'}
    out = run("explain", f"a.py:{line(LONG, 'torch.rand')}", cwd=root).out
    assert "\n      use(\n  >         torch.rand(2),\n" in out.replace("    y = (", "y = (").replace(
        "        use(", "      use("
    )
    inner = run("explain", f"a.py:{line(LONG, 'return x * 2')}", cwd=root).out
    assert f"a.py:{first + 1}: use() is called here: `use(torch.rand(2))`" in inner


def test_the_test_that_keeps_a_line_from_running_and_the_call_that_does_not_run(
    run: Run, project: Project
) -> None:
    text = """\
import torch


def deep(x):
    return torch.bincount(x)


def between(x):
    return deep(x)


def main(kind):
    step = None
    if step is not None:
        between(torch.ones(2))
    elif kind == "b":
        print(2)


def nobody():
    return between(1)


main("a")
"""
    root = project({"a.py": text})
    out = run("explain", "a.py:17", cwd=root).out
    assert """because of a.py:16: the test `kind == "b"` is false""" in out
    unreached = run("explain", "a.py:5", cwd=root).out
    assert "`deep()` is called at a.py:9 in `between()`, which no entry point reaches." in unreached
    assert (
        "`between()` is called at a.py:15 in `main()`, which a.py reaches, but this line does not run"
        in unreached
    )
    assert "because of a.py:14: the test `step is not None` is false" in unreached
    assert "`between()` is called at a.py:21 in `nobody()`, which no entry point reaches." in unreached


def test_every_word_of_the_knowledge_base_has_an_explanation() -> None:
    from typing import get_args

    from d9mlint.interp import recording
    from d9mlint.knowledge.schema import OrderRole, Role

    assert set(recording.ROLES) == set(get_args(Role))
    assert set(recording.ORDERS) == set(get_args(OrderRole))


def test_an_index_that_sorts_is_explained(run: Run, project: Project) -> None:
    text = "import numpy as np\n\nprint(np.argsort(np.ones(3)))\n"
    out = run("explain", "a.py:3", cwd=project({"a.py": text}))
    assert out.code == 0 and "gives the places of the elements in sorted order" in out.out


def test_every_test_of_a_condition_has_words() -> None:
    from d9mlint.cli.knows import _TESTS
    from d9mlint.knowledge.schema import CONDITION_TESTS

    assert set(_TESTS) == set(CONDITION_TESTS) - {"all_of", "any_of", "none_of"}


def test_a_condition_on_two_arguments_is_explained(run: Run, project: Project) -> None:
    text = "import random\n\nimport numpy as np\n\nprint(random.randint(0, 3), np.random.randint(0, 5))\n"
    out = run("explain", "a.py:5", cwd=project({"a.py": text}))
    assert out.code == 0 and "only when not (a is, or is equal to, the argument b): yes" in out.out
    assert "high is, or is equal to, the argument low plus 1" in out.out
