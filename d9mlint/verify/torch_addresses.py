"""How many values meet at one address: the arithmetic by which a recipe shows that it provokes its race.

A recipe's ``race.addends`` is an expression over its inputs ``i`` and the functions below; it gives the number of
values that are added (or stored) at each address of the result. Runs in child processes and in tests.
"""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Mapping
from typing import Any

import torch

from d9mlint.verify.contention import summary


def counts(index: torch.Tensor) -> torch.Tensor:
    """Addends of each address where ``index`` holds one address for each value."""
    return torch.bincount(index.reshape(-1).long())


def scattered(index: torch.Tensor, dim: int = 0) -> torch.Tensor:
    """Addends where ``index`` names the position along ``dim`` and an element keeps its other coordinates."""
    moved = index.movedim(dim, -1).long()
    rows = moved.reshape(-1, moved.shape[-1])
    width = int(rows.max()) + 1
    return torch.bincount((rows + torch.arange(len(rows))[:, None] * width).reshape(-1))


def bins(length: int, out: int) -> torch.Tensor:
    """Addends of each of ``length`` inputs in adaptive pooling to ``out`` outputs."""
    found = torch.zeros(length, dtype=torch.int64)
    for k in range(out):
        found[math.floor(k * length / out) : math.ceil((k + 1) * length / out)] += 1
    return found


def windows(length: int, kernel: int, stride: int, padding: int = 0) -> torch.Tensor:
    """Addends of each of ``length`` inputs in pooling with sliding windows."""
    found = torch.zeros(length + 2 * padding + kernel, dtype=torch.int64)
    for start in range(0, length + 2 * padding - kernel + 1, stride):
        found[start : start + kernel] += 1
    return found[padding : padding + length]


def taps(length: int, factor: float, support: int) -> torch.Tensor:
    """Addends of each of ``length`` inputs in interpolation by ``factor`` that reads ``support`` neighbors."""
    out = int(length * factor)
    source = (torch.arange(out) + 0.5) / factor - 0.5
    first = source.floor().long() - support // 2 + 1
    reads = (first[:, None] + torch.arange(support)).clamp(0, length - 1)
    return torch.bincount(reads.reshape(-1), minlength=length)


def reach(call: Callable[[torch.Tensor], torch.Tensor], length: int) -> torch.Tensor:
    """Addends of each of ``length`` inputs of a linear map of a line: the outputs that an input bears on."""
    lines = torch.eye(length).reshape(length, 1, length, 1)
    return (call(lines)[:, 0, :, 0] != 0).sum(1)


def outer(*lines: torch.Tensor) -> torch.Tensor:
    """Addends of a grid whose axes are independent."""
    found = lines[0]
    for line in lines[1:]:
        found = found[..., None] * line
    return found


def corners(grid: torch.Tensor, *shape: int) -> torch.Tensor:
    """Addends of each input element of one image where ``grid`` (x first, -1 to 1) is sampled linearly."""
    axes = [((grid[..., k].reshape(-1) + 1) * size - 1) / 2 for k, size in enumerate(reversed(shape))]
    address = torch.zeros(len(axes[0]), 1, dtype=torch.int64)
    keep = torch.ones_like(address, dtype=torch.bool)
    stride = 1
    for axis, size in zip(axes, reversed(shape), strict=True):
        both = axis.floor().long()[:, None] + torch.arange(2)
        inside = (both >= 0) & (both < size)
        address = (address[:, :, None] + both[:, None, :] * stride).flatten(1)
        keep = (keep[:, :, None] & inside[:, None, :]).flatten(1)
        stride *= size
    return torch.bincount(address[keep], minlength=stride)


def scope(inputs: Mapping[str, Any], call: Callable[[Any], Any]) -> dict[str, Any]:
    """The names of ``race`` expressions: the functions above, the inputs ``i``, and ``ones(name)``."""

    def ones(name: str) -> torch.Tensor:
        """Addends of each element of an input whose gradients are routed unchanged: its gradient where that of
        every output is one."""
        copies = {k: v.detach().clone() if isinstance(v, torch.Tensor) else v for k, v in inputs.items()}
        leaf = copies[name].requires_grad_()
        out = call(types.SimpleNamespace(**copies))
        out = out[0] if isinstance(out, tuple) else out
        out.backward(torch.ones_like(out))
        assert leaf.grad is not None
        return leaf.grad.round().long()

    names = (counts, scattered, bins, windows, taps, reach, outer, corners)
    found: dict[str, Any] = {f.__name__: f for f in names}
    return found | {
        "torch": torch,
        "F": torch.nn.functional,
        "ones": ones,
        "i": types.SimpleNamespace(**inputs),
    }


def contention(
    race: Mapping[str, Any], inputs: Mapping[str, Any], call: Callable[[Any], Any]
) -> dict[str, int]:
    """The contention of a recipe with these inputs."""
    return summary(race, eval(race["addends"], scope(inputs, call)))
