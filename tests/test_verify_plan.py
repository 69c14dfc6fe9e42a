"""What is run for a name and for a finding, and how a verdict tells what was run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import finding

from d9mlint import knowledge
from d9mlint.base.errors import UsageError
from d9mlint.base.findings import Finding
from d9mlint.base.known_calls import CallCondition, KnownCall, Operand, holds
from d9mlint.config.settings import load_settings
from d9mlint.evidence.model import (
    DIFFERS,
    EQUAL,
    NOT_RUN,
    Control,
    Evidence,
    Machine,
    Measurement,
    Mode,
    Output,
)
from d9mlint.evidence.verdicts import serving, verdict
from d9mlint.pipeline import check as lint
from d9mlint.verify import plan, taking
from d9mlint.verify.recipes import load_recipes

RECIPES = load_recipes()
CONTROLS = tuple(Control(recipe=kind, expected=kind, outcome=kind) for kind in ("differs", "equal"))


def run_for(*names: str) -> list[str]:
    return [recipe.id for recipe in plan.named(names, RECIPES, knowledge.load())]


@pytest.mark.parametrize(
    "name",
    [
        "index_add",
        "index_add_",
        "torch.index_add",
        "torch.Tensor.index_add_",
        "Tensor.index_add_",
        "aten::index_add",
        "torch.ops.aten.index_add.default",
        "index add",
        "index-add",
        "INDEX_ADD",
        " index_add ",
    ],
)
def test_an_op_has_many_spellings(name: str) -> None:
    assert "index_add" in run_for(name)
    assert all(one.startswith("index_add") for one in run_for(name))


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("F.interpolate", "nn.functional.interpolate", "interpolate"), "interpolate_bicubic_backward"),
        (("nn.Upsample", "torch.nn.Upsample"), "interpolate_nearest_backward"),
        (("nn.Conv2d", "Conv2d", "F.conv2d", "torch.nn.functional.conv2d", "conv2d"), "conv2d_backward"),
        (("tf.nn.conv2d", "tensorflow.nn.conv2d", "conv2d"), "tf_conv2d"),
        (("keras.layers.Conv2D", "tf.keras.layers.Conv2D", "layers.Conv2D", "Conv2D"), "tf_conv2d_layer"),
        (("cudnn.benchmark", "torch.backends.cudnn.benchmark"), "conv2d_benchmark"),
        (("ctc_loss", "F.ctc_loss", "nn.CTCLoss"), "ctc_loss_native_backward"),
        (("nn.Dropout", "F.dropout", "dropout"), "dropout_unseeded"),
        (("torch.matmul", "matmul"), "matmul_splitk"),
        (("tf.matmul", "matmul"), "tf_matmul_control"),
        (("torch.take_backward", "take_backward", "torch.take"), "take_backward"),
    ],
)
def test_names_are_taken_as_programs_write_them(names: tuple[str, ...], expected: str) -> None:
    assert [name for name in names if expected not in run_for(name)] == []


def test_a_name_means_no_more_than_it_says() -> None:
    assert run_for("tf.nn.conv2d") == run_for("tensorflow.nn.conv2d") == ["tf_conv2d"]
    assert run_for("keras.layers.Conv2D") == ["tf_conv2d_layer"]
    assert run_for("nn.Conv2d") == ["conv2d_backward", "depthwise_conv2d_backward", "conv2d_benchmark"]
    assert run_for("nn.Dropout") == run_for("F.dropout")


def test_other_ops_of_torch_are_in_its_own_database() -> None:
    assert run_for("F.gelu") == run_for("torch.nn.functional.gelu") == ["op_db:torch.nn.functional.gelu"]
    assert run_for("nn.GELU", "torch.nn.GELU") == ["op_db:torch.nn.GELU"]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("indx_add", "Did you mean index_add?"),
        ("gelu", "by their full names, such as torch.nn.functional.gelu"),
        ("numpy.sum", "There is no recipe for numpy.sum."),
        ("", "There is no recipe for an empty name."),
        ("torch.", "There is no recipe for torch.."),
        ("x[idx]", "There is no recipe for x[idx]."),
    ],
)
def test_a_name_that_means_nothing_is_refused(name: str, says: str) -> None:
    with pytest.raises(UsageError) as refused:
        run_for(name)
    assert says in str(refused.value)
    assert "See `d9mlint recipe --all`." in str(refused.value)


def d9mlint(*arguments: str) -> subprocess.CompletedProcess[str]:
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-m", "d9mlint", *arguments]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=600, check=False)


def test_recipes_are_listed() -> None:
    listed = d9mlint("recipe", "--all").stdout.splitlines()
    assert [line.split()[0] for line in listed] == [recipe.id for recipe in RECIPES]
    one = d9mlint("recipe", "take_backward", "F.gelu").stdout
    assert one.startswith("take_backward: torch.take, backward\n  stands for: torch.take_backward, ")
    assert "      return torch.take(i.x,i.i)\n" in one
    assert "  takes:      torch.take(input, index); torch.Tensor.take(self, index)\n" in one
    assert "torch.nn.functional.gelu has no recipe" in one
    assert d9mlint("recipe").returncode == 2


@pytest.mark.parametrize("option", ["--diff", "--fix-only", "--add-noqa", "--update-baseline"])
def test_what_prints_no_findings_is_refused_beside_verify(option: str) -> None:
    done = d9mlint("--verify", option, "tests/example_project")
    assert done.returncode == 2
    assert f"{option} does not report findings" in done.stderr


def measured(recipe: str, api: str, outcome: str = EQUAL, distinct: int = 1, **fields: Any) -> Measurement:
    output = Output(name="out0", dtype="float32", shape=(8,), distinct=distinct)
    about = {"library": "torch", "phase": "forward", "dtype": "float32", "runs": 5, "outputs": (output,)}
    return Measurement(recipe=recipe, api=api, outcome=outcome, **{**about, **fields})


RECIPE = {recipe.id: recipe for recipe in RECIPES}


def evidence_of(*rows: Measurement) -> Evidence:
    return Evidence(
        tool="d9mlint",
        created="2026-01-01",
        runs=5,
        seed=0,
        timeout=600,
        machines=(Machine(library="torch", kind="cuda", name="H200", versions={"torch": "2.11.0+cu128"}),),
        controls=CONTROLS,
        measurements=rows,
    )


def judged(one: Finding, *rows: Measurement) -> dict[str, Any]:
    evidence = evidence_of(*rows)
    return verdict(one, serving(one, evidence), evidence, "measured now")


def summary(one: Finding, *rows: Measurement) -> str:
    return str(judged(one, *rows)["summary"])


def test_another_form_of_the_op_is_not_another_op() -> None:
    gather = finding("torch.Tensor.gather", "torch.gather_backward")
    assert [r.id for r in plan.for_findings([gather], RECIPES)] == ["gather_backward", "gather_rows_backward"]
    rows = (
        measured("take_along_dim_backward", "torch.take_along_dim", DIFFERS, 5, op_ids=(gather.op,)),
        measured("gather_backward", "torch.gather", op_ids=(gather.op,)),
    )
    assert summary(gather, *rows).startswith("equal in 5 runs at this size on H200, torch 2.11.0 (float32")


def test_what_was_run_for_a_setting_is_named() -> None:
    setting = finding("torch.backends.cudnn.deterministic")
    rows = [
        measured("conv2d", "torch.nn.Conv2d", settings=(setting.subject,)),
        measured("ctc", "torch.nn.CTCLoss (cuDNN)", DIFFERS, 5, settings=(setting.subject,)),
        measured("conv3d", "torch.nn.Conv3d", NOT_RUN, 0, settings=(setting.subject,)),
    ]
    told = summary(setting, *rows)
    assert told.startswith(
        "confirmed: 5 of 5 runs distinct on H200, torch 2.11.0 (torch.nn.CTCLoss (cuDNN): out0 8"
    )
    assert told.endswith("; recipes for it: 1 differ, 1 equal, 1 not run")


def test_a_condition_of_what_was_run_is_named() -> None:
    loop = finding("tf.compat.v1.while_loop")
    row = measured("loop", "tf.compat.v1.while_loop (unordered adds)", settings=(loop.subject,))
    assert "(tf.compat.v1.while_loop (unordered adds): float32)" in summary(loop, row)


def test_a_finding_about_another_version_is_told() -> None:
    fields = {"op_ids": ("torch.take_backward",)}
    row = measured("take_backward", "torch.take", **fields)
    said = "the finding is about torch 2.4"
    for target, other in (("torch 2.4", True), ("torch 2.11", False), ("torch 2.11.0", False)):
        one = finding("torch.take", "torch.take_backward", targets=(target, "pinned in requirements.txt:1"))
        assert (said in summary(one, row)) is other


def test_the_size_at_which_deterministic_mode_was_asked_is_told() -> None:
    mode = Mode(outcome="memory fill")
    fields = {"settings": ("torch.empty",)}
    rows = [
        measured("empty", "torch.empty", DIFFERS, 5, scale=0.0, **fields),
        measured("empty", "torch.empty", DIFFERS, 4, mode=mode, cause="uninitialized memory", **fields),
    ]
    told = summary(finding("torch.empty"), *rows)
    assert "4 of 5 runs distinct" in told and "cause: uninitialized memory; deterministic mode: " in told


def test_why_there_is_no_recipe() -> None:
    assert summary(finding("torch_geometric.nn.GCNConv", "pyg.aggregation")) == (
        "not run: recipes cover PyTorch and TensorFlow ops, not torch_geometric"
    )
    assert summary(finding("triton.autotune")) == "not run: it is one of the program's own kernels"
    assert summary(finding("torch.nosuch", "torch.nosuch")) == "not run: no recipe for it"


PUT = "torch.put_accumulate_cpu"


def call(*present: str, literals: dict[str, Any] | None = None, **tensors: Operand) -> KnownCall:
    """A call of three positions, or of those named; ``t0`` is the tensor at position 0."""
    known = {name.removeprefix("t"): tensor for name, tensor in tensors.items()}
    names = (*(present or ("0", "1", "2")), *(k for k in literals or {} if not k.isdecimal()))
    return KnownCall(
        literals=literals or {}, tensors=known, present=tuple(dict.fromkeys(names)), complete=True
    )


def put(**fields: Any) -> Finding:
    """``torch.put(z, i, z, accumulate=True)`` of three float64 elements with unique indices."""
    z = Operand(shape=(3,), dtype="float64")
    index = Operand(shape=(3,), dtype="int64", values=(0, 1, 2))
    known = call(literals={"accumulate": True}, t0=z, t1=index, t2=z)
    return finding("torch.put", PUT, **{"call": known, **fields})


def generic(outcome: str = DIFFERS, distinct: int = 5, **fields: Any) -> Measurement:
    sizes = {"x": (1000,), "i": (1 << 22,)}
    fields = {"op_ids": (PUT,), "sizes": sizes, **fields}
    return measured("put_accumulate", "torch.Tensor.put_", outcome, distinct, **fields)


def test_evidence_of_an_op_is_not_evidence_of_a_call() -> None:
    unknown = put(call=None)
    assert judged(unknown, generic())["verdict"] == "can differ"
    assert summary(unknown, generic()) == (
        "the op can differ: 5 of 5 runs distinct on H200, torch 2.11.0 (measured with default shapes: float32, 1-D, "
        "4.2M elements); this call was not measured"
    )


def test_another_dtype_is_named() -> None:
    assert judged(put(), generic())["verdict"] == "can differ"
    assert "this call was not measured: it has float64" in summary(put(), generic())
    # Where its own dtype was measured, that counts.
    own = generic(EQUAL, 1, dtype="float64")
    assert judged(put(), generic(), own)["verdict"] == "equal"


def test_the_call_itself_outweighs_the_op() -> None:
    recipe = taking.of_call(RECIPE["put_accumulate"], put())
    assert recipe is not None
    assert (recipe.dtypes, recipe.given.index, recipe.given.whole) == (("float64",), {"i": (0, 1, 2)}, True)
    assert recipe.given.shapes == {"x": (3,), "i": (3,), "s": (3,)}
    same = generic(EQUAL, 1, dtype="float64", given=recipe.given, addends=1)
    told = judged(put(), generic(), same)
    assert told["verdict"] == "equal"
    assert (
        "this call was run; the op can differ: 5 of 5 runs distinct (float32, 1-D, 4.2M elements)"
        in told["summary"]
    )
    assert "at most one value arrives at one address" in told["summary"]
    differs = generic(dtype="float64", given=recipe.given)
    assert judged(put(), differs)["verdict"] == "confirmed"
    # What another call gave is not about this one.
    other = put(call=call(literals={"accumulate": True}, t0=Operand(shape=(4,), dtype="float64")))
    assert [m.given.whole for m in serving(other, evidence_of(generic(), differs))] == [False]


def test_what_a_recipe_does_not_take_leaves_the_call_unmeasured() -> None:
    other = put(call=msgspec.structs.replace(put().call, present=("0", "1", "2", "accumulate", "out")))
    made = taking.of_call(RECIPE["put_accumulate"], other)
    assert made is not None
    assert not made.given.whole
    # A mask names no element twice.
    mask = Operand(shape=(3,), dtype="bool")
    masked = finding(
        "torch.Tensor.__getitem__",
        "torch.getitem_backward",
        call=call("0", "1", t0=Operand(shape=(3,)), t1=mask),
    )
    assert taking.of_call(RECIPE["getitem_index_backward"], masked) is None


def test_what_calls_give_is_what_recipes_ask_for() -> None:
    for recipe in RECIPES:
        for given in recipe.call.values():
            asked = set(re.findall(r"(?:known|shape|index|optional)\('(\w+)'", recipe.make))
            for named in re.findall(r"options\((.*)\)", recipe.make):
                asked |= set(re.findall(r"(?:^|,)(\w+)=", named))
            assert set(given) <= asked, recipe.id


def test_the_form_of_a_call_chooses_the_recipe() -> None:
    op = "torch.replication_pad1d3d_backward.function"
    for pads, expected in (((1, 1), "replicate_pad1d_backward"), ((1,) * 6, "replicate_pad3d_backward")):
        known = call("0", "1", literals={"1": list(pads), "mode": "replicate"}, t0=Operand())
        one = finding("torch.nn.functional.pad", op, call=known)
        chosen = plan.for_findings([one], RECIPES)
        assert {r.id.partition(" ")[0] for r in chosen} == {expected}
        made = chosen[0].given
        assert (made.values, made.whole) == ({"pad": list(pads)}, False)
        row = measured(chosen[0].id, chosen[0].api, DIFFERS, 5, op_ids=(op,), given=made, form=chosen[0].form)
        wrong = RECIPE["replicate_pad1d_backward" if "3d" in expected else "replicate_pad3d_backward"]
        foreign = measured(wrong.id, wrong.api, DIFFERS, 5, op_ids=(op,), form=wrong.form)
        told = judged(one, row, foreign)
        assert told["verdict"] == "can differ"
        assert [m["recipe"] for m in told["measurements"]] == [row.recipe]
        assert (
            f"run with this call's pad={list(pads)!r}; the rest of the call is not known" in told["summary"]
        )


def test_a_view_is_not_the_write_through_it() -> None:
    overlap = RECIPE["inplace_internal_overlap"]
    row = measured(overlap.id, overlap.api, DIFFERS, 5, op_ids=overlap.ops, exact=overlap.exact)
    for api in ("torch.Tensor.expand", "torch.as_strided", "torch.Tensor.as_strided"):
        view = finding(api, overlap.ops[0])
        assert overlap.id not in [r.id for r in plan.for_findings([view], RECIPES)]
        assert judged(view, row)["verdict"] == "not run"


def test_a_number_written_to_all_places_can_not_race() -> None:
    known = call(literals={"2": 1.0}, t0=Operand(), t1=Operand())
    one = finding("torch.Tensor.__setitem__", "torch.index_put_overwrite.setitem", call=known)
    assert [r.id for r in plan.for_findings([one], RECIPES) if not r.id.startswith("op_db:")] == []


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"arg": "accumulate", "pos": 3, "equals": True}, True),
        ({"arg": "accumulate", "pos": 3, "equals": False}, False),
        ({"arg": "mode", "equals": "x"}, None),
        ({"arg": "mode", "default": "x", "equals": "x"}, True),
        ({"arg": "mode", "default": "y", "one_of": ("x", "z")}, False),
        ({"arg": "mode", "given": True}, False),
        ({"arg": "accumulate", "given": True}, True),
        ({"arg": "source", "pos": 2, "given": True}, None),
        ({"arg": "index", "pos": 1, "rank": 1}, True),
        ({"arg": "index", "pos": 1, "rank": 2}, False),
        ({"arg": "source", "pos": 2, "rank": 1}, None),
        ({"arg": "index", "pos": 1, "tensor": True}, True),
        ({"arg": "accumulate", "tensor": True}, False),
        ({"arg": "sizes", "pos": 4, "length": 2}, False),
    ],
)
def test_conditions_on_calls_have_three_answers(condition: dict[str, Any], expected: bool | None) -> None:
    known = call(
        "0",
        "1",
        "2",
        "4",
        literals={"accumulate": True, "4": [1, 2, 3]},
        t1=Operand(shape=(3,), dtype="int64"),
    )
    assert holds(known, CallCondition(**condition)) is expected


CALLS = """\
import torch
import torch.nn.functional as F


def main(sizes):
    z = torch.zeros(3, dtype=torch.float64, device="cuda")
    i = torch.tensor([0, 1, 1])
    z[i] = 1.0
    z.cuda().put_(i, torch.randn(sizes), accumulate=True)
    y = torch.put(z, i, z, accumulate=True)
    model = torch.nn.Linear(8, 8).cuda()
    v = F.pad(model(torch.rand(2, 3, 8, 8).cuda()), (1, 1, 1, 1), mode="reflect")
    v.sum().backward()
    torch.optim.SGD(model.parameters(), 0.1).step()


if __name__ == "__main__":
    import sys

    main(int(sys.argv[1]))
"""


def test_what_is_literal_in_a_call_is_known(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(CALLS)
    settings = load_settings(
        str(tmp_path), overrides={"cache": False, "torch-version": "2.4", "min-confidence": "low"}
    )
    calls = {i.finding.subject: i.finding.call for i in lint([str(tmp_path)], settings).items if i.finding.op}
    # A number written to all places has no order.
    assert "torch.Tensor.__setitem__" not in calls
    index = Operand(shape=(3,), dtype="int64", values=(0, 1, 1))
    three = Operand(shape=(3,), dtype="float64")
    assert calls["torch.put"] == call(literals={"accumulate": True}, t0=three, t1=index, t2=three)
    method = calls["torch.Tensor.put_"]
    assert method is not None
    assert (method.tensors["1"], method.tensors["2"]) == (index, Operand(dtype="float32"))
    pad = calls["torch.nn.functional.pad"]
    assert pad is not None
    assert pad.literals == {"1": [1, 1, 1, 1], "mode": "reflect"}


MOVED = """\
import torch

torch.manual_seed(0)
n = 1024
z = torch.zeros(n, 8).cuda()
index = torch.randint(0, n, (100,), device="cpu").to("cuda")
z.index_add_(0, index, torch.randn(100, 8).double().float().cuda() * 2)
torch.save(z, "z.pt")
"""


def test_shapes_of_a_call_are_known_through_variables_and_moves(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(MOVED)
    settings = load_settings(str(tmp_path), overrides={"cache": False, "torch-version": "2.4"})
    (found,) = [i.finding.call for i in lint([str(tmp_path)], settings).items if i.finding.op]
    assert found is not None
    assert found.tensors == {
        "0": Operand(shape=(1024, 8), dtype="float32"),
        "2": Operand(shape=(100,), dtype="int64"),
        "3": Operand(shape=(100, 8), dtype="float32"),
    }


INDICES = """\
import torch

torch.manual_seed(0)
z = torch.zeros(70)
z.index_put_((torch.randint(0, 70, (100000,)),), torch.randn(100000), accumulate=True)
w = torch.randn(8, 9, requires_grad=True)
w[torch.randint(0, 8, (50000,))].sum().backward()
torch.save([z, w.grad], "z.pt")
"""


def test_calls_with_indices_are_measured_with_their_own(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(INDICES)
    settings = load_settings(str(tmp_path), overrides={"cache": False, "device": "cpu"})
    found = [i.finding for i in lint([str(tmp_path)], settings).items if i.finding.op]
    made = [r.given for r in plan.for_findings(found, RECIPES) if r.given.whole]
    assert [given.shapes for given in made] == [
        {"x": (70,), "i": (100000,), "s": (100000,)},
        {"x": (8, 9), "i": (50000,)},
    ]


TF1 = """\
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
x = tf.placeholder(tf.float32, [4])
y = tf.while_loop(lambda k, v: k < 4, lambda k, v: (k + 1, v + x[k]), [0, 0.0])
w = tf.Variable([1.0])
loss = tf.reduce_sum(w * y[1])
g = tf.gradients(loss, [w])
opt = tf.train.GradientDescentOptimizer(0.1)
train = opt.minimize(loss, gate_gradients=tf.train.Optimizer.GATE_NONE)
with tf.Session() as session:
    session.run(train)
"""
PIPELINES = {
    "tf_data_map_parallel",
    "tf_data_interleave_parallel",
    "tf_data_stateful_map",
    "tf_data_py_function",
}
TF2 = """\
import tensorflow as tf


def augment(x):
    return tf.random.normal(tf.shape(x)) + 1


def main():
    tf.random.set_seed(0)
    data = tf.data.Dataset.range(8)
    slow = data.map(lambda k: k + 1, num_parallel_calls=4, deterministic=False)
    drawn = data.map(augment, num_parallel_calls=4)
    for one, other in zip(slow, drawn):
        print(one, other)


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (
            TF1,
            {"DET406": {"tf_while_loop_v1"}, "DET313": {"tf_v1_gradients_ungated", "tf_v1_minimize_ungated"}},
        ),
        (TF2, {"DET206": PIPELINES}),
    ],
)
def test_findings_about_graphs_and_pipelines_are_run(
    tmp_path: Path, program: str, expected: dict[str, set[str]]
) -> None:
    (tmp_path / "train.py").write_text(program)
    settings = load_settings(str(tmp_path), overrides={"cache": False, "select": tuple(expected)})
    items = lint([str(tmp_path)], settings).items
    found: dict[str, set[str]] = {}
    for item in items:
        ids = {r.id for r in plan.for_findings([item.finding], RECIPES)}
        found.setdefault(item.finding.code, set()).update(ids)
    assert found == expected
