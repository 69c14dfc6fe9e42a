"""The sum of the digest's definition as one Triton kernel. Runs in traced processes that use CUDA.

Equal to ``digest.content_sum`` by construction: the same integers, added in whatever order. The weights are
computed from the position instead of being read, so every word is read once and nothing else is.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from d9mlint.trace.weights import BLOCK, G_SEED, U_SEED, V_SEED

TILE = 1024
"""Words that one program of the kernel adds up."""


@triton.jit
def _odd_weight(z):  # type: ignore[no-untyped-def]
    """``digest.weight`` of positions: splitmix64 with logical shifts of signed numbers."""
    z = z + (-7046029254386353131)
    z = (z ^ ((z >> 30) & 0x3FFFFFFFF)) * (-4658895280553007687)
    z = (z ^ ((z >> 27) & 0x1FFFFFFFFF)) * (-7723592293110705685)
    return (z ^ ((z >> 31) & 0x1FFFFFFFF)) | 1


@triton.jit  # type: ignore[untyped-decorator]
def _kernel(  # type: ignore[no-untyped-def]
    words,
    out,
    count,
    block: tl.constexpr,
    tile: tl.constexpr,
    u: tl.constexpr,
    v: tl.constexpr,
    g: tl.constexpr,
):
    """Add the sum over one tile of words to ``out``."""
    place = tl.program_id(0).to(tl.int64) * tile + tl.arange(0, tile).to(tl.int64)
    x = tl.load(words + place, mask=place < count, other=0)
    column = place % block
    row = place // block
    low = x * _odd_weight(column + u)
    high = (x >> 32) * _odd_weight(column + v)
    # Addition of integers wraps and is associative: the order of the atomics has no influence.
    tl.atomic_add(out, tl.sum((low + high) * _odd_weight(row + g), 0))


def sum_of_words(x: torch.Tensor) -> torch.Tensor:
    """The sum of the definition over int64 words, as an int64 scalar on their device."""
    out = torch.zeros(1, dtype=torch.int64, device=x.device)
    count = x.numel()
    if count:
        kernel: Any = _kernel
        # Triton starts a kernel on the current device, which need not be that of the tensor.
        with torch.cuda.device_of(x):
            kernel[(triton.cdiv(count, TILE),)](
                x, out, count, BLOCK, TILE, U_SEED << 40, V_SEED << 40, G_SEED << 40
            )
    return out[0]
