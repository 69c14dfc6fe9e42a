"""By arithmetic: every PyTorch recipe that is said to differ on CUDA provokes its race at full size there.

No GPU is needed: a recipe's own inputs are built at the size that a GPU would get, and the values that meet at each
address are counted. This shows that the order of work can matter, not that it does.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest

from d9mlint.verify.recipes import Recipe, load_recipes

pytestmark = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")

RECIPES = {recipe.id: recipe for recipe in load_recipes() if recipe.library == "torch"}
MULTIPROCESSORS = 132
"""Of an H100."""
SAID_TO_DIFFER = ("nondet", "autotune", "nondet_in_process")
CHILD = f"""
import json, sys, types
import msgspec, torch
from d9mlint.verify import torch_addresses, torch_backend
from d9mlint.verify.recipes import function, load_recipes
from d9mlint.verify.scope import sizes

torch.set_num_threads(2)
backend = torch_backend.TorchBackend("cpu")
for recipe in load_recipes():
    race = recipe.race
    if recipe.library != "torch" or race is None or not (race.addends or race.kernel):
        continue
    data = msgspec.to_builtins(recipe)
    # As on a GPU: dev is the CPU, and the sizes are those of a GPU.
    scope = backend._scope(torch.float32, 1.0, 0, {{}}) | sizes(1.0, {MULTIPROCESSORS})
    exec(function("make", "", recipe.make), scope)
    exec(function("fn", "i", recipe.fn), scope)
    row = {{"id": recipe.id}}
    try:
        made = scope["make"]()
        names = torch_addresses.scope(made, scope["fn"]) | {{"SM": {MULTIPROCESSORS}}}
        row["kernel"] = [condition for condition in race.kernel if not eval(condition, names)]
        if race.addends:
            row |= torch_addresses.contention(data["race"], made, scope["fn"])
            row["provokes"] = torch_addresses.provokes(row)
    except Exception as error:
        row["error"] = f"{{type(error).__name__}}: {{error}}"
    print(json.dumps(row), flush=True)
"""
# The backward operations that attention really records here, at a small size.
BACKENDS = """
import json
import torch
from d9mlint.verify import torch_backend
from d9mlint.verify.recipes import function, load_recipes

backend = torch_backend.TorchBackend("cpu")
for recipe in load_recipes():
    if recipe.library != "torch" or "SDPBackend." not in recipe.fn or recipe.needs:
        continue
    for dtype in recipe.dtypes:
        scope = backend._scope(getattr(torch, dtype), 0.0, 0, {})
        exec(function("make", "", recipe.make), scope)
        exec(function("fn", "i", recipe.fn), scope)
        made = scope["make"]()
        for name in recipe.grad:
            made[name].requires_grad_()
        nodes, left = set(), [scope["fn"](type("Inputs", (), made)).grad_fn]
        while left:
            node = left.pop()
            if node is not None and node.name() not in nodes:
                nodes.add(node.name())
                left += [inner for inner, _ in node.next_functions]
        print(json.dumps([recipe.id, dtype, sorted(nodes)]))
"""


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, Any]]:
    done = subprocess.run([sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    return {row["id"]: row for row in map(json.loads, done.stdout.splitlines())}


def has_arithmetic(recipe: Recipe) -> bool:
    race = recipe.race
    return race is not None and bool(race.addends or race.kernel or race.reason)


def test_every_recipe_that_is_said_to_differ_says_why() -> None:
    said = [r for r in RECIPES.values() if r.expect.cuda in (*SAID_TO_DIFFER, "cond")]
    assert [r.id for r in said if r.race is None] == []
    counted_kinds = ("add", "store", "scan", "clock", "library")
    assert [r.id for r in said if r.race and r.race.kind in counted_kinds and not has_arithmetic(r)] == []
    # What a closed library decides can be stated, and not counted.
    assert [r.id for r in said if r.race and r.race.kind in ("add", "store") and not r.race.addends] == []


def test_the_arithmetic_can_be_evaluated(counted: dict[str, dict[str, Any]]) -> None:
    assert {name: row["error"] for name, row in counted.items() if "error" in row} == {}


def test_the_racy_kernel_is_taken(counted: dict[str, dict[str, Any]]) -> None:
    assert {name: row["kernel"] for name, row in counted.items() if row.get("kernel")} == {}


def test_enough_values_meet_at_one_address(counted: dict[str, dict[str, Any]]) -> None:
    weak = {
        name: {k: row[k] for k in ("most", "addresses", "enough")}
        for name, row in counted.items()
        if "provokes" in row
        and not row["provokes"]
        and RECIPES[name].expect.cuda in (*SAID_TO_DIFFER, "cond")
    }
    assert weak == {}


def test_what_is_listed_without_a_race_has_none(counted: dict[str, dict[str, Any]]) -> None:
    """Documented as nondeterministic, though two addends have one sum and counts are exact."""
    pools = counted["adaptive_max_pool1d_backward"]
    assert pools["most"] <= 2
    assert counted["histc"]["most"] < 1 << 24
    assert {RECIPES[name].expect.cuda for name in ("adaptive_max_pool1d_backward", "histc")} == {
        "det_in_practice"
    }


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("counts(torch.tensor([0, 2, 2, 2]))", [1, 0, 3]),
        ("scattered(torch.tensor([[0, 1], [0, 0]]))", [2, 0, 1, 1]),
        ("bins(5, 2)", [1, 1, 2, 1, 1]),
        ("bins(8, 4)", [1] * 8),
        ("bins(2, 5)", [3, 3]),
        ("windows(5, 3, 2)", [1, 1, 2, 1, 1]),
        ("windows(4, 3, 1, 1)", [2, 3, 3, 2]),
        ("taps(2, 2.0, 2)", [4, 4]),
        ("outer(torch.tensor([1, 2]), torch.tensor([1, 3]))", [[1, 3], [2, 6]]),
        ("reach(lambda x: x[:, :, ::2] + x[:, :, 1::2], 4)", [1, 1, 1, 1]),
        ("corners(torch.tensor([[-1.0, -1.0], [0.0, -1.0]]), 2, 2)", [2, 1, 0, 0]),
    ],
)
def test_addends_are_counted(expression: str, expected: list[Any]) -> None:
    import torch

    from d9mlint.verify import torch_addresses

    names = torch_addresses.scope({}, lambda i: i)
    assert eval(expression, names | {"torch": torch}).tolist() == expected


def test_attention_runs_on_the_backend_that_its_recipe_names() -> None:
    done = subprocess.run([sys.executable, "-c", BACKENDS], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {name for name, _, _ in found} == {"sdpa_flash_attention_backward", "sdpa_math_backward"}
    for name, dtype, nodes in found:
        fused = [node for node in nodes if "ScaledDotProduct" in node]
        expected = ["ScaledDotProductFlashAttentionForCpuBackward0"] if "flash" in name else []
        assert fused == expected, (name, dtype, nodes)
    # A CPU has no kernels of the others; the plain one would run there under their names.
    pinned = {r.id: r.needs for r in RECIPES.values() if "SDPBackend." in r.fn}
    assert {name for name, needs in pinned.items() if not needs} == {name for name, _, _ in found}
    assert all(needs == ("cuda",) for needs in pinned.values() if needs)
