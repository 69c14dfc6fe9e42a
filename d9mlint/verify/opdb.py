"""torch's own operator database, for ops without a recipe: small generic inputs, so weak evidence.

Each run of the samples starts from the same random state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_unflatten

SAMPLES = 8
"""Samples of an op that are run: the database holds up to hundreds for one."""
PREFIXES = ("torch.Tensor.", "torch.")


class NoSamples(ValueError):
    """The database does not know the op, or has no sample for the device and dtype."""


def samples(
    api: str, device: torch.device, dtype: torch.dtype
) -> tuple[dict[str, Any], tuple[str, ...], Callable[[dict[str, Any]], list[Any]]]:
    """Inputs by name, the names of those with gradients, and the call that runs an op on all its samples.

    Raises NoSamples, and ImportError where torch's testing package cannot be imported.
    """
    calls = list(_calls(api, device, dtype))
    if not calls:
        raise NoSamples(f"torch's operator database has no sample of {api} for {device.type} and {dtype}")
    inputs: dict[str, Any] = {}
    grad: list[str] = []
    plans: list[tuple[Callable[..., Any], list[Any], Any]] = []
    for number, (op, arguments) in enumerate(calls):
        leaves, structure = tree_flatten(arguments)
        for place, leaf in enumerate(leaves):
            if isinstance(leaf, torch.Tensor):
                name = f"sample{number}.{place}"
                inputs[name] = leaf.detach()
                if leaf.requires_grad:
                    grad.append(name)
        plans.append((op, leaves, structure))

    def run(copies: dict[str, Any]) -> list[Any]:
        results = []
        for number, (op, leaves, structure) in enumerate(plans):
            filled = [copies.get(f"sample{number}.{place}", leaf) for place, leaf in enumerate(leaves)]
            args, kwargs = tree_unflatten(filled, structure)
            results.append(op(*args, **kwargs))
        return results

    return inputs, tuple(grad), run


def _calls(
    api: str, device: torch.device, dtype: torch.dtype
) -> Iterator[tuple[Callable[..., Any], tuple[Any, Any]]]:
    """Callables with (args, kwargs), the largest samples first where there are too many."""
    name = next((api[len(p) :] for p in PREFIXES if api.startswith(p)), api)
    names = {name, name.rstrip("_")} if not name.startswith("__") else {name}
    from torch.testing._internal.common_methods_invocations import op_db

    found: list[tuple[Callable[..., Any], tuple[Any, Any]]] = []
    for info in op_db:
        if names & {info.name, *(alias.name for alias in info.aliases)} and info.supports_dtype(
            dtype, device.type
        ):
            gradients = info.supports_autograd
            for sample in info.sample_inputs(device, dtype, requires_grad=gradients):
                found.append((info.op, ((sample.input, *sample.args), sample.kwargs)))
    if not found and name.startswith("nn.") and not name.startswith("nn.functional."):
        found = list(_modules(name, device, dtype))
    found.sort(
        key=lambda call: -sum(t.numel() for t in tree_flatten(call[1])[0] if isinstance(t, torch.Tensor))
    )
    yield from found[:SAMPLES]


def _modules(
    name: str, device: torch.device, dtype: torch.dtype
) -> Iterator[tuple[Callable[..., Any], tuple[Any, Any]]]:
    """Modules of the database with their inputs; a module's parameters stay the same over all runs."""
    from torch.testing._internal.common_modules import module_db

    for info in module_db:
        if info.name != name:
            continue
        for sample in info.module_inputs_func(
            info, device=device, dtype=dtype, requires_grad=True, training=True
        ):
            made = sample.constructor_input
            module = info.module_cls(*made.args, **made.kwargs).to(device)
            module = module.to(dtype) if dtype.is_floating_point else module
            yield module, (tuple(sample.forward_input.args), dict(sample.forward_input.kwargs))
