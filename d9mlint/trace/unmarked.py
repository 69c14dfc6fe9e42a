"""What the schemas of torch's operations leave out: arguments that are written although no schema marks them, and
tensors that are returned although nobody writes all of them. Plain data.
"""

from __future__ import annotations

from typing import NamedTuple


class Written(NamedTuple):
    """An argument of an operation that it writes. ``is_result``: what it holds then is a value that the program goes on
    with; else it is memory that a library works in, which is not compared."""

    op: str
    argument: str
    is_result: bool


class Group(NamedTuple):
    """Arguments that are written for the same reason."""

    source: str
    written: tuple[Written, ...]


WRITTEN = (
    Group(
        "cuDNN API, cudnnRNNBackwardData_v8: reserveSpace is an input and an output. On an H100 (cuDNN 9.19) a second "
        "backward pass with the same reserve differs, one with a copy of it is equal.",
        (Written("_cudnn_rnn_backward", "reserve", False),),
    ),
    Group(
        "MIOpen API, miopenRNNBackwardData: reserveSpace is an input and an output.",
        (Written("miopen_rnn_backward", "reserve", False),),
    ),
    Group(
        "Run on a CPU with torch 2.13 (oneDNN): the workspace has other contents after each backward pass.",
        (Written("mkldnn_rnn_layer_backward", "workspace", False),),
    ),
    Group(
        "cuDNN API, cudnnSetDropoutDescriptor: the states of the generators are kept in the memory that the caller "
        "gives, and are advanced by every use of the descriptor in training.",
        (
            Written("_cudnn_rnn", "dropout_state", False),
            Written("_cudnn_rnn_backward", "dropout_state", False),
        ),
    ),
    Group(
        "MIOpen API, miopenSetDropoutDescriptor: the same.",
        (
            Written("miopen_rnn", "dropout_state", False),
            Written("miopen_rnn_backward", "dropout_state", False),
        ),
    ),
    Group(
        "aten/src/ATen/native/cudnn/RNN.cpp: copies the weights into one buffer and lets them be views of it.",
        (Written("_cudnn_rnn_flatten_weight", "weight_arr", True),),
    ),
    Group(
        "aten/src/ATen/native/Normalization.cpp, native/cudnn/BatchNorm.cpp, native/miopen/BatchNorm_miopen.cpp, "
        "native/cuda/Normalization.cu: the running statistics are updated in training.",
        tuple(
            Written(op, argument, True)
            for op in (
                "native_batch_norm",
                "cudnn_batch_norm",
                "miopen_batch_norm",
                "batch_norm_update_stats",
                "batch_norm_gather_stats",
                "batch_norm_gather_stats_with_counts",
            )
            for argument in ("running_mean", "running_var")
        ),
    ),
)


class NoResult(NamedTuple):
    """What is returned, or kept for a backward pass, beside results. ``names``: as schemas spell them."""

    source: str
    names: frozenset[str] = frozenset()
    places: frozenset[tuple[str, int]] = frozenset()
    """Operations whose returns have no names, and which of them."""


NO_RESULT = (
    NoResult(
        "aten/src/ATen/native/transformers/cuda/attention.cu, native/cudnn/MHA.cpp: the state of the generator for the "
        "backward pass; without dropout, memory that nobody writes.",
        frozenset(("rng_state", "unused", "philox_seed", "philox_offset")),
    ),
    NoResult(
        "aten/src/ATen/native/transformers/cuda/flash_attn/flash_api.cpp: rounded up to blocks; only made for tests.",
        frozenset(("debug_attn_mask",)),
    ),
    NoResult(
        "aten/src/ATen/native/LossCTC.cpp and native/cuda/LossCTC.cu: the alphas of a sample end at its lengths; what "
        "comes after them is not written.",
        frozenset(("log_alpha",)),
        frozenset((("_ctc_loss", 1),)),
    ),
    NoResult(
        "cuDNN, MIOpen and oneDNN API: memory of the library between the forward and the backward pass, with padding.",
        frozenset(("reserve", "reserveSpace", "workspace")),
    ),
)

BY_ARGUMENT = {(one.op, one.argument): one.is_result for group in WRITTEN for one in group.written}
"""Whether what an operation writes into an argument is a result."""
NAMES = frozenset[str]().union(*(one.names for one in NO_RESULT))
PLACES = frozenset[tuple[str, int]]().union(*(one.places for one in NO_RESULT))
