"""By arithmetic: every recipe that is said to differ on CUDA provokes its race at full size there.

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

LIBRARIES = ("torch", "tensorflow")
RECIPES = {recipe.id: recipe for recipe in load_recipes()}
MULTIPROCESSORS = 132
"""Of an H100."""
SAID_TO_DIFFER = ("nondet", "autotune", "nondet_in_process", "cond")
BACKEND = {
    "torch": """
import torch
from d9mlint.verify import torch_addresses as addresses, torch_backend
torch.set_num_threads(2)
backend = torch_backend.TorchBackend("cpu")
def scope_of():
    return backend._scope(torch.float32, 1.0, 0, {})
""",
    "tensorflow": """
import tensorflow as tf
from d9mlint.verify import tensorflow_addresses as addresses, tensorflow_backend
backend = tensorflow_backend.TensorFlowBackend("cpu")
def scope_of():
    return backend._scope(tf.float32, 1.0, 0, {})
""",
}
CHILD = f"""
import json, sys
import msgspec
from d9mlint.verify.contention import provokes
from d9mlint.verify.recipes import function, load_recipes
from d9mlint.verify.scope import sizes

library, backend = sys.argv[1:]
exec(backend)
for recipe in load_recipes():
    race = recipe.race
    if recipe.library != library or race is None or not (race.addends or race.kernel):
        continue
    data = msgspec.to_builtins(recipe)
    # As on a GPU: dev is the CPU, and the sizes are those of a GPU.
    scope = scope_of() | sizes(1.0, {MULTIPROCESSORS})
    exec(function("make", "", recipe.make), scope)
    exec(function("fn", "i", recipe.fn), scope)
    row = {{"id": recipe.id}}
    try:
        made = scope["make"]()
        names = addresses.scope(made, scope["fn"]) | {{"SM": {MULTIPROCESSORS}}}
        row["kernel"] = [condition for condition in race.kernel if not eval(condition, names)]
        if race.addends:
            row |= addresses.contention(data["race"], made, scope["fn"])
            row["provokes"] = provokes(row)
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


# The arithmetic of a call whose own arguments a recipe takes is about these arguments.
CALLS = """
import json
import msgspec
from d9mlint.verify import torch_backend
from d9mlint.verify.recipes import load_recipes

backend = torch_backend.TorchBackend("cpu")
recipes = {recipe.id: msgspec.to_builtins(recipe) for recipe in load_recipes()}
for name, given in {
    "adaptive_avg_pool3d_backward": {"shapes": {"x": [2, 3, 14, 14, 14]}, "values": {"out": 4}},
    "interpolate_bilinear_antialias_backward": {
        "shapes": {"x": [1, 2, 8, 6]}, "values": {"size": [8, 6]}, "absent": ["factor", "align"]
    },
    "interpolate_bicubic_antialias_backward": {"shapes": {"x": [1, 2, 8, 8]}, "values": {"factor": 0.25}},
    "gather_backward": {"shapes": {"x": [3, 4], "i": [3, 9]}, "values": {"dim": 1}},
    "index_put_accumulate": {"shapes": {"x": [5, 2], "i": [1], "s": [1, 2]}},
}.items():
    program = backend.program({**recipes[name], "given": given}, "float32", 1.0, 0)
    program.run()
    print(json.dumps([name, program.addends]))
"""


Counted = tuple[str, dict[str, dict[str, Any]]]


@pytest.fixture(scope="module", params=LIBRARIES)
def counted(request: pytest.FixtureRequest) -> Counted:
    """A library, and what was counted of its recipes."""
    library = request.param
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    done = subprocess.run(
        [sys.executable, "-c", CHILD, library, BACKEND[library]], capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return library, {row["id"]: row for row in map(json.loads, done.stdout.splitlines())}


def has_arithmetic(recipe: Recipe) -> bool:
    race = recipe.race
    return race is not None and bool(race.addends or race.kernel or race.reason)


@pytest.mark.parametrize("library", LIBRARIES)
def test_every_recipe_that_is_said_to_differ_says_why(library: str) -> None:
    said = [r for r in RECIPES.values() if r.library == library and r.expect.cuda in SAID_TO_DIFFER]
    assert said and [r.id for r in said if r.race is None] == []
    counted_kinds = ("add", "store", "scan", "clock", "library")
    assert [r.id for r in said if r.race and r.race.kind in counted_kinds and not has_arithmetic(r)] == []
    # What a closed library decides can be stated, and not counted.
    assert [r.id for r in said if r.race and r.race.kind in ("add", "store") and not r.race.addends] == []


@pytest.mark.full
def test_the_arithmetic_can_be_evaluated(counted: Counted) -> None:
    library, rows = counted
    assert {name: row["error"] for name, row in rows.items() if "error" in row} == {}
    expected = {
        r.id
        for r in RECIPES.values()
        if r.library == library and r.race and (r.race.addends or r.race.kernel)
    }
    assert set(rows) == expected


def test_the_racy_kernel_is_taken(counted: Counted) -> None:
    assert {name: row["kernel"] for name, row in counted[1].items() if row.get("kernel")} == {}


def test_enough_values_meet_at_one_address(counted: Counted) -> None:
    weak = {
        name: {k: row[k] for k in ("most", "addresses", "enough")}
        for name, row in counted[1].items()
        if "provokes" in row and not row["provokes"] and RECIPES[name].expect.cuda in SAID_TO_DIFFER
    }
    assert weak == {}


def test_what_is_listed_without_a_race_has_none(counted: Counted) -> None:
    """Documented as nondeterministic, though two addends have one sum and counts are exact."""
    library, rows = counted
    if library == "tensorflow":
        assert RECIPES["tf_debug_numeric_summary"].expect.cuda == "det_in_practice"
        return
    assert rows["adaptive_max_pool1d_backward"]["most"] <= 2
    assert rows["histc"]["most"] < 1 << 24
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
    torch = pytest.importorskip("torch")

    from d9mlint.verify import torch_addresses

    names = torch_addresses.scope({}, lambda i: i)
    assert eval(expression, names | {"torch": torch}).tolist() == expected


TENSORFLOW_CASES = [
    ("counts(np.array([0, 2, 2, 2]))", [1, 0, 3]),
    ("each((1, 2), 5)", [[5, 5]]),
    ("reach(lambda x: x[:, :, ::2] + x[:, :, 1::2], 4)", [1, 1, 1, 1]),
    ('reach(lambda x: tf.image.resize(x, (1, 6), method="nearest"), 2)', [3, 3]),
    ("outer(np.array([1, 2]), np.array([1, 3]))", [[1, 3], [2, 6]]),
    # A box around the whole image at its own size reads each pixel four times: floor and ceiling are the same.
    ("crops(np.array([[0, 0, 1, 1.]]), np.array([0]), (2, 2), (1, 2, 2))", [[[4, 4], [4, 4]]]),
    # Half a pixel in: rows 0 and 1 of columns 0 and 1.
    ("crops(np.array([[0, .25, 1, .75]]), np.array([0]), (2, 2), (1, 2, 3))", [[[2, 4, 2], [2, 4, 2]]]),
    ('ones("x")', [0, 1, 2, 0]),
    ('units("w")', [3, 4, 3]),
]


@pytest.mark.full
def test_addends_are_counted_for_tensorflow() -> None:
    if importlib.util.find_spec("tensorflow") is None:
        pytest.skip("tensorflow is not installed")
    code = (
        "import json, sys, tensorflow as tf\n"
        "from d9mlint.verify import tensorflow_addresses as addresses\n"
        "line = lambda v: tf.reshape(tf.constant(v), (1, -1, 1))\n"
        "pool = lambda i: tf.nn.max_pool1d(i.x, 2, 1, 'VALID')\n"
        "conv = lambda i: tf.nn.conv1d(i.x, i.w, 1, 'SAME')\n"
        "inputs = {'ones': (pool, {'x': line([4., 5., 6., 3.])}),\n"
        "  'unit': (conv, {'x': line([3., 3., 3., 3.]), 'w': tf.reshape(tf.constant([1., 2., 1.]), (3, 1, 1))})}\n"
        "for text in json.loads(sys.argv[1]):\n"
        "    call, values = inputs.get(text[:4], (None, {}))\n"
        "    print(json.dumps(eval(text, addresses.scope(values, call)).tolist()))\n"
    )
    texts = json.dumps([text for text, _ in TENSORFLOW_CASES])
    done = subprocess.run([sys.executable, "-c", code, texts], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found == [expected for _, expected in TENSORFLOW_CASES]


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.full
def test_the_addends_of_a_call_are_those_of_its_own_arguments() -> None:
    done = subprocess.run([sys.executable, "-c", CALLS], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    found = dict(json.loads(line) for line in done.stdout.splitlines())
    # 14 in 4 bins: two of three bins overlap in one element, along each of three axes.
    assert found["adaptive_avg_pool3d_backward"] == 8
    assert found["interpolate_bilinear_antialias_backward"] == 1
    assert found["interpolate_bicubic_antialias_backward"] == 4
    assert found["gather_backward"] is not None
    assert found["index_put_accumulate"] == 1


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
@pytest.mark.full
def test_attention_runs_on_the_backend_that_its_recipe_names() -> None:
    done = subprocess.run([sys.executable, "-c", BACKENDS], capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr[-2000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert {name for name, _, _ in found} == {"sdpa_flash_attention_backward", "sdpa_math_backward"}
    for name, dtype, nodes in found:
        fused = [node for node in nodes if "ScaledDotProduct" in node]
        expected = ["ScaledDotProductFlashAttentionForCpuBackward0"] if "flash" in name else []
        assert fused == expected, (name, dtype, nodes)
    # A CPU has no kernels of the others; the plain one would run there under their names.
    pinned = {r.id: r.needs for r in RECIPES.values() if r.library == "torch" and "SDPBackend." in r.fn}
    assert {name for name, needs in pinned.items() if not needs} == {name for name, _, _ in found}
    assert all(needs == ("cuda",) for needs in pinned.values() if needs)
