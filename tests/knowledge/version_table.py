"""Write ``rules/knowledge/VERSIONS.md``: what ops and settings do in releases of PyTorch and TensorFlow.

    python tests/knowledge/version_table.py

The table is generated from the facts; a test checks that it is current and that the linter says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from d9mlint.knowledge.loader import Compiled, load_compiled
from d9mlint.knowledge.schema import OpEntry, SettingEntry
from d9mlint.knowledge.versions import matches

PAGE = Path(__file__).resolve().parent.parent.parent / "rules" / "knowledge" / "VERSIONS.md"
TORCH = ("1.7", "1.9", "1.10", "1.12", "1.13", "2.1", "2.3", "2.6", "2.7", "2.10", "2.13", "2.15")
TENSORFLOW = ("1.14", "2.0", "2.1", "2.4", "2.5", "2.6", "2.7", "2.8", "2.11", "2.21")
MARKS = {
    "raises": "raises",
    "deterministic_alternative": "switches",
    "silent": "varies",
    "deterministic": "same",
}
# The ops by the name under which a reader looks for them, each with its entry.
TORCH_OPS = {
    "nn.Conv2d": "torch.conv",
    "nn.ConvTranspose2d": "torch.conv_transpose",
    "index_add": "torch.index_add",
    "index_select, backward": "torch.index_select_backward",
    "index_put, overwrite": "torch.index_put_overwrite",
    "index_copy": "torch.index_copy",
    "index_reduce, prod or mean": "torch.index_reduce",
    "put_, overwrite": "torch.put_overwrite.method",
    "put_, accumulate": "torch.put_accumulate_cuda.method",
    "scatter, overwrite": "torch.scatter_overwrite.method",
    "scatter, reduce='multiply'": "torch.scatter_reduce_argument.method",
    "scatter_add, one dimension": "torch.scatter_add",
    "gather, one dimension, backward": "torch.gather_backward",
    "scatter_reduce, sum or mean": "torch.scatter_reduce_sum_mean.method",
    "scatter_reduce, prod": "torch.scatter_reduce_prod.method",
    "repeat_interleave, backward": "torch.repeat_interleave_backward.method",
    "cumsum, one dimension": "torch.cumsum",
    "cumprod, one dimension": "torch.cumprod",
    "histc": "torch.histc",
    "bincount, weights": "torch.bincount",
    "bincount": "torch.bincount.unweighted",
    "kthvalue": "torch.kthvalue",
    "median with indices": "torch.median",
    "nn.EmbeddingBag, max, backward": "torch.embedding_bag_backward",
    "nn.EmbeddingBag, sum or mean, backward": "torch.embedding_bag_backward.other_modes",
    "nn.Embedding, backward": "torch.embedding_backward",
    "nn.NLLLoss, several dimensions": "torch.nll_loss2d.named",
    "nn.CTCLoss, own kernel, backward": "torch.ctc_loss_backward",
    "nn.MaxPool3d, backward": "torch.max_pool3d_backward",
    "nn.MaxPool3d(return_indices=True), backward": "torch.max_pool3d_backward.indices",
    "nn.AvgPool3d, backward": "torch.avg_pool3d_backward",
    "nn.AdaptiveAvgPool2d, backward": "torch.adaptive_avg_pool2d_backward",
    "nn.AdaptiveMaxPool2d, backward": "torch.adaptive_max_pool2d_backward",
    "nn.FractionalMaxPool2d, backward": "torch.fractional_max_pool_backward",
    "nn.MaxUnpool2d": "torch.max_unpool",
    "interpolate linear, backward": "torch.interpolate_linear",
    "interpolate bilinear, backward": "torch.interpolate_bilinear",
    "interpolate trilinear, backward": "torch.interpolate_trilinear",
    "interpolate bicubic, backward": "torch.interpolate_bicubic",
    "nn.ReflectionPad1d, backward": "torch.reflection_pad12d_backward",
    "nn.ReflectionPad2d, backward": "torch.reflection_pad2d_backward",
    "nn.ReplicationPad2d, backward": "torch.replication_pad2d_backward",
    "grid_sample, backward": "torch.grid_sample_backward",
}
TENSORFLOW_OPS = {
    "tf.nn.conv2d": "tf.conv_autotune",
    "tf.nn.max_pool2d, backward": "tf.max_pool_backward",
    "tf.nn.max_pool_with_argmax, backward": "tf.max_pool_with_argmax_grad",
    "tf.nn.bias_add, backward": "tf.bias_add_backward",
    "tf.nn.ctc_loss, backward": "tf.ctc_loss_backward",
    "tf.nn.depthwise_conv2d, backward": "tf.depthwise_conv_backward",
    "tf.nn.dilation2d, backward": "tf.dilation2d_backward",
    "tf.image.resize bilinear, backward": "tf.resize_bilinear_backward",
    "tf.image.resize nearest, backward": "tf.resize_nearest_backward",
    "tf.image.adjust_contrast": "tf.adjust_contrast",
    "tf.image.crop_and_resize, backward": "tf.crop_and_resize_backward",
    "tf.image.extract_patches, backward": "tf.extract_patches_backward",
    "tf.nn.softmax_cross_entropy_with_logits": "tf.softmax_xent",
    "tf.nn.sparse_softmax_cross_entropy_with_logits": "tf.sparse_softmax_xent",
    "tf.math.unsorted_segment_sum": "tf.segment_reduction",
    "tf.gather, backward": "tf.gather_backward.gather",
    "tf.gather_nd, backward": "tf.gather_nd_backward",
    "tf.scatter_nd": "tf.scatter_nd",
    "tf.Variable.scatter_add": "tf.variable_scatter",
    "tf.math.bincount": "tf.bincount",
    "tf.sparse.sparse_dense_matmul": "tf.sparse_dense_matmul",
    "tf.linalg.svd": "tf.svd",
    "tf.quantization.fake_quant_with_min_max_vars, backward": "tf.fake_quant_backward",
    "tf.timestamp": "tf.timestamp",
}
TORCH_SETTINGS = (
    *("torch.use_deterministic_algorithms", "torch.set_deterministic", "torch.set_deterministic_debug_mode"),
    *("torch.cudnn.deterministic", "torch.cudnn.benchmark", "env.CUBLAS_WORKSPACE_CONFIG"),
    *("torch.mkldnn.deterministic", "torch.fill_uninitialized_memory", "torch.inductor.deterministic"),
    *(
        "env.TORCHINDUCTOR_DETERMINISTIC",
        "env.TORCHINDUCTOR_BATCH_INVARIANT",
        "torch.inductor.fallback_random",
    ),
    *("torch.compile.mode", "torch.sdpa_kernel", "torch.dataloader.worker_init_fn"),
    *("torch.dataloader.generator", "torch.dataloader.in_order"),
)
TENSORFLOW_SETTINGS = (
    *("tf.enable_op_determinism", "tf.disable_op_determinism", "env.TF_DETERMINISTIC_OPS"),
    *("env.TF_CUDNN_DETERMINISTIC", "tfdeterminism.patch", "env.TF_CUDNN_USE_AUTOTUNE"),
    *("env.TF_CUDNN_USE_FRONTEND", "env.TF_DETERMINISTIC_ORDER", "env.TF_DETERMINISTIC_ALLOCATOR"),
    *("env.TF_USE_DETERMINISTIC_SEGMENT_REDUCTIONS", "env.TF_DISABLE_SCATTER_OP_DETERMINISM"),
    *("env.TF_DISABLE_SPARSE_SOFTMAX_XENT", "tf.threads"),
)


_INTRODUCTION = """\
On CUDA, with the determinism switch of the release on: `torch.use_deterministic_algorithms(True)` (before 1.8
`torch.set_deterministic`), `TF_CUDNN_DETERMINISTIC=1` in TensorFlow 1.14 to 2.0, `TF_DETERMINISTIC_OPS=1` in 2.1 to
2.7, `enable_op_determinism()` from 2.8 on. **raises**: refused with an error. **switches**: another algorithm with
equal results. **varies**: results may differ, and nothing is said. **same**: the only algorithm gives equal results.
Empty: the op does not exist, or no fact is known. The bounds are held to the alert sites of released binaries.
"""


def behaviour(op: OpEntry, version: str) -> str:
    """The mark of an op in a release; empty where no entry speaks of it."""
    for item in op.history:
        if matches(item.versions, version):
            return MARKS[item.behaviour]
    return ""


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _op_table(facts: Compiled, ops: dict[str, str], releases: Sequence[str]) -> list[str]:
    known = {op.id: op for op in facts.ops}
    rows = [_row(["op", *releases]), _row(["---"] * (len(releases) + 1))]
    return rows + [
        _row([f"`{name.partition(',')[0]}`{name[name.find(',') :] if ',' in name else ''}", *cells])
        for name, op in ops.items()
        for cells in [[behaviour(known[op], version) for version in releases]]
    ]


def _setting_table(facts: Compiled, ids: Sequence[str], releases: Sequence[str]) -> list[str]:
    known = {setting.id: setting for setting in facts.settings}
    rows = [_row(["setting", *releases, "for determinism"]), _row(["---"] * (len(releases) + 2))]
    return rows + [_setting_row(known[one], releases) for one in ids]


def _setting_row(setting: SettingEntry, releases: Sequence[str]) -> str:
    wanted = setting.value_for_determinism
    value = wanted if isinstance(wanted, str) else " or ".join(wanted)
    cells = ["yes" if matches(setting.versions, version) else "" for version in releases]
    return _row([f"`{setting.names[0]}`", *cells, value.replace("|", "\\|")])


def page(facts: Compiled) -> str:
    """The whole page."""
    return "\n".join(
        [
            "<!-- Generated by tests/knowledge/version_table.py from the facts; do not edit. -->",
            "# What changes between releases",
            "",
            _INTRODUCTION,
            "## PyTorch",
            "",
            *_op_table(facts, TORCH_OPS, TORCH),
            "",
            "## TensorFlow",
            "",
            *_op_table(facts, TENSORFLOW_OPS, TENSORFLOW),
            "",
            "## Settings of PyTorch",
            "",
            "The releases that have a setting, or in which it matters.",
            "",
            *_setting_table(facts, TORCH_SETTINGS, TORCH),
            "",
            "## Settings of TensorFlow",
            "",
            *_setting_table(facts, TENSORFLOW_SETTINGS, TENSORFLOW),
            "",
        ]
    )


if __name__ == "__main__":
    PAGE.write_text(page(load_compiled()), encoding="utf-8")
    print(
        f"{PAGE}: {len(TORCH_OPS) + len(TENSORFLOW_OPS)} ops, {len(TORCH_SETTINGS) + len(TENSORFLOW_SETTINGS)} settings"
    )
