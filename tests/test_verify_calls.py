"""What a user's call is decides what is run: shapes, options and constructor arguments, in many spellings."""

from __future__ import annotations

import ast
import importlib.util
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
from support import finding

from d9mlint.base.findings import Finding
from d9mlint.base.known_calls import KnownCall, Operand
from d9mlint.config.settings import load_settings
from d9mlint.evidence.model import Control, Evidence, Given, Machine, Measurement
from d9mlint.evidence.verdicts import serving, verdict
from d9mlint.pipeline import check as lint
from d9mlint.verify import plan, taking
from d9mlint.verify.recipes import Recipe, load_recipes
from d9mlint.verify.scope import MOST, reduced, spread
from d9mlint.verify.session import Options, measure

RECIPES = load_recipes()
RECIPE = {recipe.id: recipe for recipe in RECIPES}
RUN = """
import json, sys
from d9mlint.verify.measure import backend

framework = backend(sys.argv[1], "cpu")
for recipe in json.load(sys.stdin):
    try:
        program = framework.program(recipe, recipe["dtypes"][0], 1.0, 0)
        outputs = program.run()[1]
        row = {"sizes": program.sizes, "outputs": {name: array.shape for name, array in outputs.items()}}
    except Exception as error:
        row = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(row), flush=True)
"""


def needs(library: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec(library) is None
    return pytest.mark.skipif(missing, reason=f"{library} is not installed")


def run(library: str, recipes: list[Recipe]) -> list[dict[str, Any]]:
    """What comes of recipes when they are run once."""
    done = subprocess.run(
        [sys.executable, "-c", RUN, library],
        input=msgspec.json.encode(recipes).decode(),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines()]


class Case(NamedTuple):
    """A line of a program, which recipe is run for it, with inputs of which sizes and which outputs; ``whole``: whether it
    is the call itself."""

    line: str
    recipe: str
    sizes: dict[str, list[int]]
    outputs: list[int]
    whole: bool = True


TORCH = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import scatter as put_there
from torch.nn import Upsample as Bigger
from torch.nn.functional import interpolate

torch.manual_seed(0)


class Pool(nn.AdaptiveMaxPool2d):
    def __init__(self, size):
        super().__init__(size, return_indices=False)


class Net(nn.Module):
    def __init__(self, width, layers=2):
        super().__init__()
        self.rnn = nn.LSTM(width, hidden_size=6, num_layers=layers, bidirectional=True, batch_first=True)
        self.parts = nn.ModuleList([nn.AvgPool3d(3, stride=(1, 2, 2), padding=1), nn.ReflectionPad3d(2)])

    def forward(self, x, v):
        y, _ = self.rnn(x)
        for part in self.parts:
            v = part(v)
        return y.sum() + v.sum()


x = torch.randn(2, 3, 16, 12, requires_grad=True).cuda()
v = torch.randn(1, 2, 9, 8, 7, requires_grad=True).cuda()
flat = torch.zeros(40, 5).cuda()
rows = torch.randint(0, 40, (300,), device="cuda")
many = torch.randint(0, 40, (300, 5), device="cuda")
net = Net(4).cuda()
Pool(3)(x).sum().backward()
net(torch.randn(3, 7, 4).cuda(), v).backward()
optimizer = torch.optim.SGD(net.parameters(), 0.1)
optimizer.step()
"""
TORCH_CASES = [
    Case(
        "nn.AdaptiveMaxPool2d((5, None))(x).sum().backward()",
        "adaptive_max_pool2d_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 5, 12],
    ),
    Case(
        "F.fractional_max_pool2d(x, kernel_size=2, output_size=(5, 4)).sum().backward()",
        "fractional_max_pool2d_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 5, 4],
    ),
    Case(
        "interpolate(x, [9, 9], mode='bilinear', align_corners=True).sum().backward()",
        "interpolate_bilinear_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 9, 9],
    ),
    Case(
        "Bigger(None, 1.5, 'bicubic')(x).sum().backward()",
        "interpolate_bicubic_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 24, 18],
    ),
    Case(
        "nn.UpsamplingBilinear2d(scale_factor=2)(x).sum().backward()",
        "interpolate_bilinear_backward",
        {"x": [2, 3, 16, 12]},
        [2, 3, 32, 24],
    ),
    Case(
        "F.interpolate(torch.randn(1, 2, 9, 8, 7, requires_grad=True).cuda(), scale_factor=(2, 1, 3), mode='trilinear')"
        ".sum().backward()",
        "interpolate_trilinear_backward",
        {"x": [1, 2, 9, 8, 7]},
        [1, 2, 18, 8, 21],
    ),
    Case(
        "F.grid_sample(x, torch.zeros(2, 4, 6, 2).cuda(), padding_mode='border').sum().backward()",
        "grid_sample_2d_backward",
        {"x": [2, 3, 16, 12], "grid": [2, 4, 6, 2]},
        [2, 3, 4, 6],
    ),
    Case(
        "F.max_pool3d(torch.randn(1, 2, 9, 8, 7, requires_grad=True).cuda(), (2, 3, 2), stride=2).sum().backward()",
        "max_pool3d_backward",
        {"x": [1, 2, 9, 8, 7]},
        [1, 2, 4, 3, 3],
    ),
    Case(
        "F.max_unpool2d(x, torch.randint(0, 768, (2, 3, 16, 12), device='cuda'), 2)",
        "max_unpool2d",
        {"o": [2, 3, 16, 12], "ix": [2, 3, 16, 12]},
        [2, 3, 32, 24],
    ),
    Case(
        "flat.index_add_(1, torch.randint(0, 5, (9,), device='cuda'), torch.randn(40, 9).cuda(), alpha=2)",
        "index_add",
        {"x": [40, 5], "i": [9], "s": [40, 9]},
        [40, 5],
    ),
    Case(
        "put_there(flat, 0, many, torch.randn(300, 5).cuda())",
        "scatter_duplicates",
        {"x": [40, 5], "i": [300, 5], "s": [300, 5]},
        [40, 5],
    ),
    Case(
        "flat.scatter_add_(dim=0, index=many, src=torch.randn(300, 5).cuda())",
        "scatter_add_2d",
        {"x": [40, 5], "i": [300, 5], "s": [300, 5]},
        [40, 5],
    ),
    Case(
        "F.cross_entropy(x, torch.randint(0, 3, (2, 16, 12), device='cuda'), ignore_index=2, reduction='sum')",
        "cross_entropy_2d_forward",
        {"x": [2, 3, 16, 12], "y": [2, 16, 12]},
        [],
    ),
    Case(
        "F.ctc_loss(torch.randn(300, 2, 20, requires_grad=True).cuda(),"
        " torch.randint(1, 20, (2, 30), device='cuda'), (300, 250), (30, 25), zero_infinity=True).backward()",
        "ctc_loss_native_backward",
        {"x": [300, 2, 20], "y": [2, 30], "il": [2], "tl": [2]},
        [],
    ),
    Case(
        "nn.EmbeddingBag(30, embedding_dim=4, mode='max').cuda()(torch.randint(0, 30, (8, 6), device='cuda'))"
        ".sum().backward()",
        "embedding_bag_max_backward",
        {"w": [30, 4], "i": [8, 6]},
        [8, 4],
        False,
    ),
    Case(
        "F.embedding_bag(torch.randint(0, 30, (8, 6), device='cuda'), torch.randn(30, 4, requires_grad=True).cuda(),"
        " mode='max').sum().backward()",
        "embedding_bag_max_backward",
        {"w": [30, 4], "i": [8, 6]},
        [8, 4],
    ),
    Case("torch.cumsum(torch.randn(5000).cuda(), dim=-1)", "cumsum_float", {"x": [5000]}, [5000]),
    Case(
        "torch.median(torch.randn(30, 8).cuda(), 1, keepdim=True)",
        "median_indices_ties",
        {"x": [30, 8]},
        [30, 1],
    ),
]
TENSORFLOW = """\
import tensorflow as tf
from tensorflow import math as m
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(0)
x = tf.random.normal([30, 8])
ids = tf.random.uniform([30], maxval=5, dtype=tf.int32)
image = tf.Variable(tf.ones([2, 12, 10, 3]))
weight = tf.Variable(tf.zeros([20, 4]))
logits = tf.Variable(tf.zeros([6, 11]))
with tf.GradientTape() as tape:
    tape.watch([image, weight, logits])
    total = 0.0
"""
TENSORFLOW_CASES = [
    Case(
        "m.unsorted_segment_sum(x, ids, num_segments=5)",
        "tf_unsorted_segment_sum",
        {"x": [30, 8], "i": [30]},
        [5, 8],
    ),
    Case(
        "tf.math.segment_prod(data=x, segment_ids=tf.constant([0] * 30))",
        "tf_segment_prod",
        {"x": [30, 8]},
        [],
        False,
    ),
    Case("tf.gather(weight, [3, 3, 7], axis=0)", "tf_gather", {"x": [20, 4], "i": [3]}, [3, 4]),
    Case("tf.gather(weight, tf.constant([3, 3, 7]))", "tf_gather", {"x": [20, 4], "i": [3]}, [3, 4]),
    Case("tf.nn.embedding_lookup(params=weight, ids=ids)", "tf_embedding_lookup", {"i": [30]}, [30, 4]),
    Case(
        "tf.scatter_nd(tf.random.uniform([30, 1], maxval=9, dtype=tf.int32), x, [9, 8])",
        "tf_scatter_nd",
        {"s": [30, 8], "i": [30, 1]},
        [9, 8],
    ),
    Case(
        "tf.tensor_scatter_nd_add(tf.zeros([5, 8]), tf.reshape(ids, [30, 1]), updates=x)",
        "tf_tensor_scatter_nd_add",
        {"x": [5, 8], "s": [30, 8]},
        [5, 8],
        False,
    ),
    Case(
        "tf.math.bincount(ids, weights=tf.ones([30]), minlength=5)",
        "tf_bincount",
        {"i": [30], "w": [30]},
        [5],
    ),
    Case(
        "tf.image.resize(image, (24, 15), method='bilinear')",
        "tf_resize_bilinear",
        {"x": [2, 12, 10, 3]},
        [2, 24, 15, 3],
    ),
    Case(
        "tf.image.adjust_contrast(tf.ones([2, 12, 10, 3]), 0.5)",
        "tf_adjust_contrast",
        {"x": [2, 12, 10, 3]},
        [2, 12, 10, 3],
    ),
    Case(
        "tf.nn.depthwise_conv2d(image, tf.ones([3, 3, 3, 2]), [1, 2, 2, 1], 'SAME')",
        "tf_depthwise_conv2d",
        {"x": [2, 12, 10, 3], "w": [3, 3, 3, 2]},
        [2, 6, 5, 6],
    ),
    Case(
        "layers.DepthwiseConv2D(kernel_size=3, strides=2, depth_multiplier=2)(image)",
        "tf_depthwise_conv2d_layer",
        {"x": [2, 12, 10, 3]},
        [2, 5, 4, 6],
    ),
    Case(
        "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.constant([1, 2, 3, 4, 5, 6]), logits=logits)",
        "tf_sparse_softmax_xent",
        {"x": [6, 11], "y": [6]},
        [6],
    ),
    Case(
        "tf.nn.softmax_cross_entropy_with_logits(tf.ones([6, 11]), logits)",
        "tf_softmax_xent",
        {"x": [6, 11], "y": [6, 11]},
        [6],
    ),
    Case(
        "tf.image.crop_and_resize(image, tf.ones([4, 4]), tf.zeros([4], tf.int32), crop_size=[5, 6])",
        "tf_crop_and_resize",
        {"x": [2, 12, 10, 3], "b": [4, 4], "k": [4]},
        [4, 5, 6, 3],
        False,
    ),
    Case(
        "tf.linalg.svd(tf.ones([3, 9, 1]), compute_uv=False)", "tf_svd_one_column", {"x": [3, 9, 1]}, [3, 1]
    ),
]


def _shown(line: str) -> str:
    """A line whose result is read, where it has one."""
    return f"print({line})" if isinstance(ast.parse(line).body[0], ast.Expr) else line


def made_for(tmp_path: Path, text: str, cases: list[Case], indent: str) -> list[Recipe]:
    """The first recipe that is run for each line."""
    start = text.count("\n") + 1
    lines = [
        f"{indent}total += tf.reduce_sum({case.line})" if indent else _shown(case.line) for case in cases
    ]
    (tmp_path / "train.py").write_text(
        "\n".join([text.rstrip("\n"), *lines, "tape.gradient(total, logits)" if indent else ""])
    )
    source = (tmp_path / "train.py").read_text()
    settings = load_settings(str(tmp_path), overrides={"cache": False, "min-confidence": "low"})
    found: dict[int, list[Finding]] = {}
    for item in lint([str(tmp_path)], settings, each_op=True).items:
        if item.finding.op:
            found.setdefault(source.count("\n", 0, item.finding.start) + 1, []).append(item.finding)
    made = []
    for number, case in enumerate(cases):
        chosen = [r for one in found.get(start + number, []) for r in plan.for_findings([one], RECIPES)]
        own = [r for r in chosen if r.id.startswith(f"{case.recipe} [")]
        assert own, f"{case.line}: {[r.id for r in chosen]}"
        made.append(own[0])
    return made


def compare(cases: list[Case], recipes: list[Recipe], rows: list[dict[str, Any]]) -> None:
    for case, recipe, row in zip(cases, recipes, rows, strict=True):
        assert "error" not in row, f"{case.line}: {row['error']}"
        assert {name: row["sizes"].get(name) for name in case.sizes} == case.sizes, case.line
        assert not case.outputs or case.outputs == row["outputs"]["out0"], case.line
        assert recipe.given.whole is case.whole, f"{case.line}: {recipe.given}"


@needs("torch")
def test_the_call_of_a_torch_program_is_what_is_run(tmp_path: Path) -> None:
    recipes = made_for(tmp_path, TORCH, TORCH_CASES, "")
    compare(TORCH_CASES, recipes, run("torch", recipes))


@needs("tensorflow")
def test_the_call_of_a_tensorflow_program_is_what_is_run(tmp_path: Path) -> None:
    recipes = made_for(tmp_path, TENSORFLOW, TENSORFLOW_CASES, "    ")
    compare(TENSORFLOW_CASES, recipes, run("tensorflow", recipes))


def called(*positional: Any, use: KnownCall | None = None, **named: Any) -> KnownCall:
    """A call with these arguments: operands, and literals."""
    every = {**{str(n): value for n, value in enumerate(positional)}, **named}
    return KnownCall(
        literals={name: value for name, value in every.items() if not isinstance(value, Operand)},
        tensors={name: value for name, value in every.items() if isinstance(value, Operand)},
        present=tuple(every),
        complete=True,
        use=use,
    )


def floats(*shape: int) -> Operand:
    return Operand(shape=shape, dtype="float32")


class Direct(NamedTuple):
    """A call of an op that no rule reports by itself, such as a convolution."""

    subject: str
    call: KnownCall
    recipe: str
    sizes: dict[str, list[int]]
    outputs: list[int]
    whole: bool = True


TORCH_DIRECT = [
    Direct(
        "torch.nn.Conv2d",
        called(6, 4, (3, 5), stride=2, groups=2, bias=False, use=called(floats(2, 6, 9, 9))),
        "conv2d_backward",
        {"x": [2, 6, 9, 9], "w": [4, 3, 3, 5]},
        [2, 4, 4, 3],
    ),
    Direct(
        "torch.nn.Conv1d",
        called(6, 4, kernel_size=3, padding="same", device="cuda"),
        "conv1d_backward",
        {"x": [8, 6, 4096], "w": [4, 6, 3], "b": [4]},
        [8, 4, 4096],
        False,
    ),
    Direct(
        "torch.nn.Conv2d",
        called(6, 4, 3, padding_mode="reflect", use=called(floats(2, 6, 9, 9))),
        "conv2d_backward",
        {"x": [2, 6, 9, 9], "w": [4, 6, 3, 3]},
        [2, 4, 7, 7],
        False,
    ),
    Direct(
        "torch.nn.functional.conv3d",
        called(floats(1, 2, 5, 6, 7), floats(4, 2, 3, 3, 3), floats(4), 2, dilation=1),
        "conv3d_backward",
        {"x": [1, 2, 5, 6, 7], "w": [4, 2, 3, 3, 3], "b": [4]},
        [1, 4, 2, 2, 3],
    ),
    Direct(
        "torch.nn.LazyConvTranspose2d",
        called(8, 4, stride=(2, 1), output_padding=(1, 0), use=called(input=floats(2, 6, 5, 5))),
        "conv_transpose2d",
        {"x": [2, 6, 5, 5], "w": [6, 8, 4, 4], "b": [8]},
        [2, 8, 13, 8],
    ),
    Direct(
        "torch.conv_transpose1d",
        called(floats(2, 6, 5), weight=floats(6, 3, 4), stride=3),
        "conv_transpose1d",
        {"x": [2, 6, 5], "w": [6, 3, 4]},
        [2, 3, 16],
    ),
    Direct(
        "torch.nn.functional.scaled_dot_product_attention",
        called(
            floats(2, 3, 8, 4),
            floats(2, 3, 9, 4),
            value=floats(2, 3, 9, 5),
            attn_mask=floats(8, 9),
            scale=0.5,
        ),
        "sdpa_math_backward",
        {"q": [2, 3, 8, 4], "k": [2, 3, 9, 4], "v": [2, 3, 9, 5], "mask": [8, 9]},
        [2, 3, 8, 5],
    ),
    Direct(
        "torch.nn.MultiheadAttention",
        called(
            12,
            num_heads=3,
            dropout=0.25,
            use=called(floats(7, 2, 12), floats(9, 2, 12), floats(9, 2, 12), need_weights=False),
        ),
        "multi_head_attention_backward",
        {"x": [7, 2, 12], "k": [9, 2, 12], "v": [9, 2, 12]},
        [7, 2, 12],
    ),
    Direct(
        "torch.nn.TransformerEncoderLayer",
        called(12, 3, 24, norm_first=True, use=called(src=floats(7, 2, 12))),
        "transformer_encoder_layer_backward",
        {"x": [7, 2, 12]},
        [7, 2, 12],
    ),
    Direct(
        "torch.nn.GRU",
        called(5, 6, bidirectional=True, use=called(floats(7, 2, 5), floats(2, 2, 6))),
        "gru_backward",
        {"x": [7, 2, 5], "h": [2, 2, 6]},
        [7, 2, 12],
    ),
    Direct(
        "torch.repeat_interleave",
        called(floats(3, 4), Operand(shape=(3,), dtype="int64", values=(1, 0, 2)), dim=0),
        "repeat_interleave_backward",
        {"x": [3, 4], "r": [3]},
        [3, 4],
    ),
    Direct(
        "torch.matmul",
        called(floats(5, 6, 7), floats(7, 2)),
        "matmul_splitk",
        {"a": [5, 6, 7], "b": [7, 2]},
        [5, 6, 2],
    ),
]
TENSORFLOW_DIRECT = [
    Direct(
        "tf.nn.conv2d",
        called(floats(2, 9, 9, 6), floats(3, 3, 6, 4), strides=[1, 2, 2, 1], padding="VALID"),
        "tf_conv2d",
        {"x": [2, 9, 9, 6], "w": [3, 3, 6, 4]},
        [2, 4, 4, 4],
    ),
    Direct(
        "tf.keras.layers.Conv2D",
        called(4, 5, padding="same", activation="relu", use_bias=False, use=called(floats(2, 9, 9, 6))),
        "tf_conv2d_layer",
        {"x": [2, 9, 9, 6]},
        [2, 9, 9, 4],
    ),
    Direct(
        "tf.keras.layers.Conv2D",
        called(4, kernel_size=(3, 3), input_shape=(28, 28, 1)),
        "tf_conv2d_layer",
        {"x": [8, 28, 28, 1]},
        [8, 26, 26, 4],
        False,
    ),
    Direct(
        "tf.keras.layers.Conv2DTranspose",
        called(filters=4, kernel_size=2, strides=2, use=called(inputs=floats(2, 5, 5, 3))),
        "tf_conv2d_transpose_layer",
        {"x": [2, 5, 5, 3]},
        [2, 10, 10, 4],
    ),
    Direct(
        "tf.nn.conv2d_transpose",
        called(floats(2, 5, 5, 3), floats(2, 2, 4, 3), [2, 10, 10, 4], 2),
        "tf_conv2d_transpose",
        {"x": [2, 5, 5, 3], "w": [2, 2, 4, 3]},
        [2, 10, 10, 4],
    ),
    Direct(
        "tf.compat.v1.nn.fused_batch_norm",
        called(floats(2, 5, 5, 3), floats(3), floats(3), is_training=False, epsilon=0.01),
        "tf_fused_batch_norm",
        {"x": [2, 5, 5, 3], "s": [3]},
        [2, 5, 5, 3],
        False,
    ),
    Direct(
        "tf.nn.max_pool2d",
        called(floats(2, 8, 8, 3), [2, 2], 2, "VALID"),
        "tf_max_pool2d",
        {"x": [2, 8, 8, 3]},
        [2, 4, 4, 3],
    ),
    Direct(
        "tf.keras.layers.Dense",
        called(7, "relu", use=called(floats(4, 5))),
        "tf_dense_layer",
        {"x": [4, 5]},
        [4, 7],
    ),
    Direct(
        "tf.keras.losses.CategoricalCrossentropy",
        called(from_logits=True, label_smoothing=0.1, use=called(floats(4, 5), floats(4, 5))),
        "tf_softmax_xent_keras_class",
        {"x": [4, 5], "y": [4, 5]},
        [],
    ),
    Direct(
        "tf.sparse.sparse_dense_matmul",
        called(Operand(), floats(30, 4)),
        "tf_sparse_dense_matmul",
        {"b": [30, 4]},
        [512, 4],
        False,
    ),
    Direct(
        "tf.Variable.scatter_add",
        called(floats(30, 4), Operand()),
        "tf_variable_scatter_add",
        {"v": [30, 4]},
        [30, 4],
        False,
    ),
]


@pytest.mark.parametrize(
    ("library", "cases"),
    [
        pytest.param("torch", TORCH_DIRECT, marks=needs("torch")),
        pytest.param("tensorflow", TENSORFLOW_DIRECT, marks=needs("tensorflow")),
    ],
)
def test_constructors_and_functions_are_run_as_they_are_called(library: str, cases: list[Direct]) -> None:
    recipes = [
        taking.of_call(RECIPE[case.recipe], finding(case.subject, "an.op", call=case.call)) for case in cases
    ]
    made = [recipe for recipe in recipes if recipe is not None]
    assert len(made) == len(cases)
    for case, recipe, row in zip(cases, made, run(library, made), strict=True):
        assert "error" not in row, f"{case.subject}: {row['error']}"
        assert {name: row["sizes"].get(name) for name in case.sizes} == case.sizes, case
        assert not case.outputs or case.outputs == row["outputs"]["out0"], case
        assert recipe.given.whole is case.whole, recipe.given


def test_what_is_left_of_a_call_is_said() -> None:
    one = finding(
        "torch.nn.Conv2d",
        "torch.conv",
        call=called(6, 4, 3, padding_mode="reflect", use=called(floats(2, 6, 9, 9))),
    )
    recipe = taking.of_call(RECIPE["conv2d_backward"], one)
    assert recipe is not None
    assert recipe.given.not_taken == ("padding_mode",)
    row = Measurement(
        recipe=recipe.id,
        api=recipe.api,
        library="torch",
        phase="forward",
        dtype="float32",
        outcome="equal",
        op_ids=("torch.conv",),
        runs=5,
        given=recipe.given,
    )
    unknown = finding("torch.nn.Conv2d", "torch.conv", call=KnownCall())
    generic = msgspec.structs.replace(row, recipe="conv2d_backward", given=Given())
    evidence = Evidence(
        tool="d9mlint",
        created="2026-01-01",
        runs=5,
        seed=0,
        timeout=600,
        machines=(Machine(library="torch", kind="cuda", name="H200"),),
        controls=tuple(Control(recipe=kind, expected=kind, outcome=kind) for kind in ("differs", "equal")),
        measurements=(row, generic),
    )
    summary = verdict(one, serving(one, evidence), evidence, "measured now")["summary"]
    assert "run with this call's in_channels=6, out_channels=4, kernel_size=3, x 2x6x9x9" in summary
    assert "the recipe does not take its padding_mode" in summary
    assert "this call was run" not in summary
    summary = verdict(unknown, serving(unknown, evidence), evidence, "measured now")["summary"]
    assert "measured with default shapes: this call was not measured" in summary


def test_calls_at_one_place_are_told_by_what_they_share() -> None:
    one, other = called(3, True, x=floats(2, 3)), called(3, 1, x=floats(2, 4), bias=None)
    both = one.agreed(other)
    assert both.literals == {"0": 3}
    assert both.tensors == {"x": Operand(dtype="float32")}
    assert set(both.present) == {"0", "1", "x", "bias"} and not both.complete
    assert one.agreed(called(3, True, x=floats(2, 3))) == one
    used = msgspec.structs.replace(one, use=called(floats(5)))
    assert used.agreed(one).use is None


def test_large_shapes_are_reduced_together() -> None:
    found = reduced({"x": (1 << 20, 512), "i": (1 << 26,), "s": (1 << 26, 512)}, [{"dim": 0}])
    assert all(math.prod(shape) <= MOST for shape in found.values())
    assert found["i"] == found["s"][:1] and found["x"][1] == found["s"][1]
    # Channels are an option of the convolution: they stay.
    kept = reduced({"x": (64, 512, 224, 224)}, [{"in_channels": 512}])
    assert kept["x"][1] == 512 and math.prod(kept["x"]) <= MOST
    assert reduced({"x": (3, 4)}) == {"x": (3, 4)}
    assert reduced({"x": (1 << 30,), "y": ()}, most=1 << 10) == {"x": (1 << 10,), "y": ()}
    assert (spread(3, 2), spread([1, 2], 2)) == ((3, 3), (1, 2))


@needs("torch")
def test_a_call_that_is_too_large_is_run_smaller() -> None:
    large = called(floats(8, 16, 8192, 64), floats(8, 16, 8192, 64), floats(8, 16, 8192, 64))
    recipe = taking.of_call(
        RECIPE["sdpa_math_backward"],
        finding("torch.nn.functional.scaled_dot_product_attention", "an.op", call=large),
    )
    assert recipe is not None
    (row,) = measure([recipe], [], Options(device="cpu", runs=2), lambda _: None).measurements
    assert (row.outcome, row.given.scaled) == ("equal", True)
    assert math.prod(row.sizes["q"]) <= row.given.most < MOST


def check_signatures(library: str) -> list[str]:
    """Parameters of recipes that the API does not have, or has in another place."""
    code = """
import importlib, inspect, json, sys

asked = json.load(sys.stdin)

def resolved(api):
    words = api.split(".")
    found = importlib.import_module({"tf": "tensorflow"}.get(words[0], words[0]))
    for number, word in enumerate(words[1:], 2):
        if not hasattr(found, word):
            importlib.import_module(".".join(words[:number]))
        found = getattr(found, word)
    return found

def parameters(function, skipped=0):
    try:
        found = list(inspect.signature(function).parameters.values())[skipped:]
    except (TypeError, ValueError):
        return None
    return None if any(p.kind is p.VAR_POSITIONAL for p in found) else found

for api, named in asked:
    made = resolved(api)
    own = parameters(made) if inspect.isclass(made) or inspect.isfunction(made) else None
    use = parameters(getattr(made, "forward", None) or made.call, 1) if inspect.isclass(made) else None
    for keyword, position in named:
        known = use if keyword.startswith("use.") else own
        keyword = keyword.removeprefix("use.")
        if known is None:
            continue
        at = {p.name: None if p.kind is p.KEYWORD_ONLY else n for n, p in enumerate(known)}
        if at.get(keyword, position if position > 90 else -1) not in (None, position):
            print(f"{api}({keyword}) is at {at.get(keyword)}, not {position}")
"""
    asked = [
        (api, [(name, p) if isinstance(p, int) else p for name, p in parameters.items()])
        for recipe in RECIPES
        if recipe.library == library
        for api, parameters in recipe.call.items()
    ]
    done = subprocess.run(
        [sys.executable, "-c", code], input=json.dumps(asked), capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


@pytest.mark.parametrize("library", [pytest.param(one, marks=needs(one)) for one in ("torch", "tensorflow")])
def test_parameters_of_recipes_are_those_of_the_api(library: str) -> None:
    assert check_signatures(library) == []


def test_modules_in_attributes_loops_and_subclasses_are_known(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TORCH)
    settings = load_settings(str(tmp_path), overrides={"cache": False, "min-confidence": "low"})
    found = [item.finding for item in lint([str(tmp_path)], settings, each_op=True).items if item.finding.op]
    made = {r.id.partition(" ")[0]: r.given for r in plan.for_findings(found, RECIPES) if r.given}
    assert {name: given.values for name, given in made.items()} == {
        "lstm_backward": {"size": 4, "hidden": 6, "num_layers": 2, "bidirectional": True, "first": True},
        "avg_pool3d_backward": {"kernel": 3, "stride": [1, 2, 2], "padding": 1},
        "reflect_pad3d_backward": {"pad": 2},
        "adaptive_max_pool2d_backward": {"out": 3, "return_indices": False},
    }
    assert made["lstm_backward"].shapes == {"x": (3, 7, 4)}
    # The first module of a list that is written out is called with what the loop began with; what it gives is not followed.
    assert made["avg_pool3d_backward"].shapes == {"x": (1, 2, 9, 8, 7)}
    assert made["adaptive_max_pool2d_backward"].shapes == {"x": (2, 3, 16, 12)}
    assert {name for name, given in made.items() if given.whole} == {
        "lstm_backward",
        "avg_pool3d_backward",
        "adaptive_max_pool2d_backward",
    }
    assert made["reflect_pad3d_backward"].unknown == ("x",)


PROGRAM = {
    "a.py": """\
import torch

torch.manual_seed(0)
pool = torch.nn.AdaptiveMaxPool2d((5, 4))
x = torch.randn(2, 3, 16, 12, requires_grad=True).cuda()
pool(x).sum().backward()
torch.optim.SGD([x], 0.1).step()
""",
    "b.py": """\
import tensorflow as tf

tf.random.set_seed(0)
print(tf.math.bincount(tf.constant([0, 1, 1, 2]), weights=tf.ones([4]), minlength=5))
""",
}


@needs("torch")
@needs("tensorflow")
@pytest.mark.full
def test_the_report_has_the_shapes_of_the_call(tmp_path: Path) -> None:
    for name, text in PROGRAM.items():
        (tmp_path / name).write_text(text)
    command = ["--verify", "--device", "cpu", "--select", "DET401,DET403", "--output-format", "json", "."]
    done = subprocess.run(
        [sys.executable, "-m", "d9mlint", *command],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent)},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 1, done.stderr
    evidence_by_file = {Path(item["filename"]).name: item["evidence"] for item in json.loads(done.stdout)}
    assert set(evidence_by_file) == set(PROGRAM)
    for name, sizes in {"a.py": {"x": [2, 3, 16, 12]}, "b.py": {"i": [4], "w": [4]}}.items():
        own = [m for m in evidence_by_file[name]["measurements"] if m.get("given")]
        assert [m["sizes"] for m in own] == [sizes]
        assert "this call was run" in evidence_by_file[name]["summary"]
    (outputs,) = [m["outputs"] for m in evidence_by_file["a.py"]["measurements"] if m.get("given")]
    assert outputs[0]["shape"] == [2, 3, 5, 4]
