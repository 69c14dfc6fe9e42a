"""Recipes: complete for the knowledge base, true to what findings are called, and strictly read."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from support import RULES, lint, needs

from d9mlint.knowledge import KnowledgeError
from d9mlint.knowledge.__main__ import main as check_rules
from d9mlint.knowledge.loader import load_compiled
from d9mlint.verify.recipes import Recipe, load_file, load_recipes

TORCH = RULES / "recipes" / "torch.yaml"
# A program with every setting that a recipe stands for, on a GPU.
SETTINGS = """\
import lightning
import torch

torch.use_deterministic_algorithms(True)
torch.backends.cudnn.benchmark = True
torch.backends.cudnn.deterministic = False
torch.utils.deterministic.fill_uninitialized_memory = False
torch._inductor.config.max_autotune = True
torch._inductor.config.max_autotune_gemm = True
torch._inductor.config.max_autotune_pointwise = True
torch._inductor.config.coordinate_descent_tuning = True
model = torch.compile(torch.nn.Linear(4, 4).cuda(), mode="max-autotune")
x = torch.zeros(4)
print(torch.empty(4) + 1)
print(torch.empty_like(x) + 1)
print(torch.empty_strided((4,), (1,)) + 1)
print(x.new_empty(4) + 1)
print(torch.Tensor(4) + 1)
lightning.Trainer(benchmark=True)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(x.cuda()).sum().backward()
    optimizer.step()
"""
GOOD = """\
schema: 1
library: torch
recipes:
- id: first
  api: torch.sum
  phase: forward
  make: return dict(x=rn(4))
  fn: return i.x.sum()
- id: second
  api: torch.mean
  phase: forward
  make: return dict(x=rn(4))
  fn: return i.x.mean()
"""


@pytest.fixture(scope="module")
def recipes() -> list[Recipe]:
    return load_file(TORCH)


OF_OLDER_GPUS = {"torch.sdpa_mem_efficient_backward.odd", "torch.sdpa_mem_efficient_backward.modules.heads"}
"""Newer GPUs do not take this kernel for such sizes; what it does with others has a recipe."""


def test_every_op_has_a_recipe_or_a_reason(recipes: list[Recipe]) -> None:
    entries = {op.id: op for op in load_compiled().ops if op.library == "torch"}
    have = {name for recipe in recipes for name in recipe.ops}
    # No backend runs on Apple's or Intel's GPUs, and what does not vary cannot be seen to. Layers of Keras run ops of
    # PyTorch that have recipes.
    lacking = [
        op.id
        for op in entries.values()
        if op.id not in have
        and not set(op.devices) <= {"mps", "xpu"}
        and op.default_mode != "deterministic"
        and not op.only_env
        and op.id not in OF_OLDER_GPUS
    ]
    assert lacking == []
    assert sorted(have - entries.keys()) == []


def test_every_name_of_an_op_exists() -> None:
    known = {op.id for op in load_compiled().ops}
    assert [(r.id, name) for r in load_recipes() for name in r.ops if name not in known] == []


def test_every_setting_is_what_some_finding_is_about(recipes: list[Recipe], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(SETTINGS)
    (tmp_path / "pyproject.toml").write_text("")
    settings = {"torch-version": "2.4", "device": "cuda", "min-confidence": "low"}
    found = {item.finding.subject for item in lint(tmp_path, settings).items}
    assert sorted({name for r in recipes for name in r.settings} - found) == []


def test_controls_of_each_kind_on_each_device(recipes: list[Recipe]) -> None:
    for device in ("cuda", "cpu"):
        kinds = [r.control for r in recipes if r.control and device in r.control_on]
        assert kinds.count("race") == 1
        assert kinds.count("differs") >= 2
        assert kinds.count("equal") >= 3
    expected = {
        "equal": lambda r: r.expect.cuda == r.expect.cpu == "det",
        "differs": lambda r: r.expect.cuda == r.expect.cpu == "nondet",
        "race": lambda r: all(getattr(r.expect, device) == "nondet" for device in r.control_on),
    }
    assert [r.id for r in recipes if r.control and not expected[r.control](r)] == []


def test_inputs_with_gradients_are_built(recipes: list[Recipe]) -> None:
    backward = [r for r in recipes if "backward" in r.phase]
    assert [r.id for r in backward if not r.grad] == []
    assert [r.id for r in recipes if r.grad and "backward" not in r.phase] == []


CHILD = """
import json, sys, warnings
import msgspec, torch
from pathlib import Path
from d9mlint.verify.recipes import load_file
from d9mlint.verify.torch_backend import TorchBackend

warnings.simplefilter("ignore")
backend = TorchBackend("cpu")
names = {str(t).removeprefix("torch."): t for t in (torch.float32, torch.float16, torch.bfloat16)}
for recipe in load_file(Path(sys.argv[1])):
    if recipe.needs:
        continue
    for scale in (0.0, 0.3, 0.5):
        for dtype in recipe.dtypes:
            row = {"id": recipe.id, "case": f"{dtype} at {scale}"}
            try:
                program = backend.program(msgspec.to_builtins(recipe), dtype, scale, 0)
                arrays = program.run()[1]
            except Exception as error:
                print(json.dumps({**row, "error": f"{type(error).__name__}: {error}"}))
                continue
            finite = True
            for array in arrays.values():
                if array.dtype in names and array.data:
                    values = torch.frombuffer(bytearray(array.data), dtype=names[array.dtype])
                    finite = finite and bool(values.isfinite().all())
            kinds = {*program.dtypes.values(), *(array.dtype for array in arrays.values())}
            row["label"] = dtype in kinds or not kinds
            print(json.dumps({**row, "finite": finite, "outputs": sorted(arrays)}))
"""


@needs("torch")
@pytest.mark.full
def test_every_recipe_runs_at_small_and_odd_sizes(recipes: list[Recipe]) -> None:
    command = [sys.executable, "-c", CHILD, str(TORCH)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
    assert done.returncode == 0, done.stderr[-2000:]
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    assert [row for row in rows if "error" in row] == []
    # A sum that overflows is infinite in any order.
    stale = {r.id for r in recipes if r.mechanism.endswith("stale memory")}
    assert [row for row in rows if not row["finite"] and row["id"] not in stale] == []
    assert [row for row in rows if not row["label"]] == [], "a dtype that nothing has"
    grads = {r.id: set(r.grad) - set(re.findall(r"optional\('(\w+)'\)", r.make)) for r in recipes}
    without = [
        row
        for row in rows
        if {n.removeprefix("grad:").partition(".")[0] for n in row["outputs"] if n.startswith("grad:")}
        != grads[row["id"]]
    ]
    assert without == []
    runnable = {r.id for r in recipes if not r.needs}
    assert {row["id"] for row in rows} == runnable


@pytest.mark.parametrize(
    ("wrong", "line", "says"),
    [
        (GOOD.replace("  fn: return i.x.mean()", "  fun: return i.x.mean()"), 9, "fun"),
        (GOOD.replace("  api: torch.mean", "  api: torch.mean\n  apis: torch.mean"), 9, "apis"),
        (GOOD.replace("return i.x.mean()", "return i.x.mean("), 9, "never closed"),
        (GOOD.replace("dict(x=rn(4))", "dict(x=)", 1), 4, "dict(x=)"),
        (GOOD + "  control: sometimes\n", 9, "sometimes"),
        (GOOD.replace("phase: forward", "phase: sideways", 1), 4, "sideways"),
        (GOOD + "  expect: {gpu: det}\n", 9, "gpu"),
        (GOOD + "  runs: many\n", 9, "runs"),
        (GOOD + "  dtypes: [float32\n", 15, ""),
        (GOOD.replace("  api: torch.mean", "   api: torch.mean"), 10, ""),
        (GOOD.replace("library: torch", "library: jax"), 1, "jax"),
        (GOOD.replace("schema: 1", "schema: 2"), 1, "2"),
        ("", 1, ""),
    ],
    ids=lambda value: None if isinstance(value, str) and len(value) > 20 else str(value),
)
def test_a_malformed_file_is_told_with_its_line(tmp_path: Path, wrong: str, line: int, says: str) -> None:
    path = tmp_path / "torch.yaml"
    path.write_text(wrong)
    with pytest.raises(KnowledgeError) as raised:
        load_file(path)
    assert (raised.value.path, raised.value.line) == (str(path), line)
    assert says in str(raised.value)


def test_two_recipes_of_one_name_are_refused(tmp_path: Path) -> None:
    directory = tmp_path / "recipes"
    directory.mkdir()
    (directory / "torch.yaml").write_text(GOOD)
    assert [recipe.id for recipe in load_recipes(tmp_path)] == ["first", "second"]
    (directory / "torch.yaml").write_text(GOOD.replace("id: second", "id: first"))
    with pytest.raises(KnowledgeError, match="first"):
        load_recipes(tmp_path)


def test_the_readme_counts_them() -> None:
    counts = [sum(r.library == library for r in load_recipes()) for library in ("torch", "tensorflow")]
    assert (
        "recipes for {} PyTorch and {} TensorFlow cases".format(*counts)
        in (RULES.parent / "README.md").read_text()
    )


def test_a_recipe_for_what_is_no_entry_is_told_with_its_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(RULES, tmp_path / "rules")
    file = tmp_path / "rules" / "recipes" / "torch.yaml"
    text = file.read_text().replace("ops: [torch.take_backward,", "ops: [torch.take_backwards,")
    file.write_text(text)
    line = text.splitlines().index("- id: take_backward") + 1
    assert check_rules([str(tmp_path / "rules")]) == 1
    said = (
        f"recipes/torch.yaml:{line}: recipe take_backward stands for torch.take_backwards, which is no entry."
    )
    assert said in "".join(capsys.readouterr())
