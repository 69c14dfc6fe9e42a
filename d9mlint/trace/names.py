"""The private names of torch that tracing uses, in one place. Runs in traced processes.

``check`` compares what is installed with what is needed here; a test does so too. Public names are used
directly where they are needed.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from types import CodeType
from typing import Any, NamedTuple

import torch

OLDEST = (2, 4)
"""The oldest release that is named as supported. The suite runs with 2.13; its tests of tracing have been run with 2.4.0."""


class Unsupported(Exception):
    """The installed release of torch lacks a name that tracing needs; the text says which."""


class _Need(NamedTuple):
    name: str
    look: Callable[[], Any]


NEEDS = (
    _Need("torch._C._storage_id", lambda: torch._C._storage_id),
    _Need("torch._C._autograd._get_sequence_nr", lambda: torch._C._autograd._get_sequence_nr),
    _Need("torch._C._current_autograd_node", lambda: torch._C._current_autograd_node),
    _Need("torch._C.DisableTorchFunction", lambda: torch._C.DisableTorchFunction),
    _Need("torch.UntypedStorage._weak_ref", lambda: torch.UntypedStorage._weak_ref),
    _Need("torch.UntypedStorage._expired", lambda: torch.UntypedStorage._expired),
    _Need("torch.UntypedStorage._free_weak_ref", lambda: torch.UntypedStorage._free_weak_ref),
    _Need("torch._use_cudnn_ctc_loss", lambda: torch._use_cudnn_ctc_loss),
    _Need("torch._ops.OpOverload._schema", lambda: torch.ops.aten.add.Tensor._schema),
    _Need(
        "torch.utils.data.dataloader._BaseDataLoaderIter.__next__",
        lambda: _loader_iterator().__next__,
    ),
    _Need(
        "torch.optim.optimizer.register_optimizer_step_post_hook",
        lambda: import_module("torch.optim.optimizer").register_optimizer_step_post_hook,
    ),
    _Need(
        "torch.utils._python_dispatch.TorchDispatchMode",
        lambda: import_module("torch.utils._python_dispatch").TorchDispatchMode,
    ),
    _Need("torch._dynamo.eval_frame.skip_code", lambda: skip_in_dynamo((lambda: None).__code__)),
)


def missing() -> list[str]:
    """The needed names that the installed release lacks."""
    found = []
    for need in NEEDS:
        try:
            need.look()
        except (AttributeError, ImportError):
            found.append(need.name)
    return found


def check() -> None:
    """Raise Unsupported where the installed release cannot be traced."""
    lacking = missing()
    if lacking:
        oldest = ".".join(map(str, OLDEST))
        raise Unsupported(
            f"d9mlint trace supports PyTorch {oldest} and newer; PyTorch {torch.__version__} has no "
            + ", ".join(lacking)
        )


storage_id: Callable[[torch.Tensor], int] = torch._C._storage_id
sequence_number: Callable[[], int] = torch._C._autograd._get_sequence_nr
current_node: Callable[[], Any] = torch._C._current_autograd_node
no_torch_function: Callable[[], Any] = torch._C.DisableTorchFunction
expired: Callable[[int], bool] = torch.UntypedStorage._expired
free_weak_reference: Callable[[int], None] = torch.UntypedStorage._free_weak_ref

use_cudnn_ctc_loss: Callable[..., bool] = torch._use_cudnn_ctc_loss

RUNS_BACKWARD: tuple[CodeType, ...] = (torch.autograd.backward.__code__, torch.autograd.grad.__code__)
"""What calls the autograd engine."""


def weak_reference(tensor: torch.Tensor) -> int:
    """A weak reference to a tensor's storage: while it is held, no other storage gets the same identity."""
    reference: int = tensor.untyped_storage()._weak_ref()
    return reference


def node_number(node: Any) -> int:
    """The sequence number of an autograd node; it is that of the forward operation that made it."""
    number: int = node._sequence_nr()
    return number


def synchronize(device: torch.device) -> None:
    """Wait for all that has been started on a device, on whichever stream."""
    module: Any = getattr(torch, device.type, None)
    if hasattr(module, "synchronize"):
        module.synchronize(device)


def _loader_iterator() -> Any:
    import torch.utils.data.dataloader as dataloader

    return dataloader._BaseDataLoaderIter


def loader_iterator() -> Any:
    """The class whose ``__next__`` hands out the batches of every DataLoader."""
    return _loader_iterator()


def skip_in_dynamo(code: CodeType) -> None:
    """Have torch.compile leave code of ours alone: it runs inside of compiled programs."""
    _skip_code()(code)


@functools.cache
def _skip_code() -> Callable[[CodeType], object]:
    from torch._C._dynamo import eval_frame

    if hasattr(eval_frame, "skip_code"):
        old: Callable[[CodeType], object] = eval_frame.skip_code
        return old
    try:
        action, set_strategy = eval_frame._FrameAction, eval_frame.set_code_exec_strategy
        strategy = eval_frame._FrameExecStrategy(action.SKIP, action.DEFAULT)
    except AttributeError:
        # There in every release; it imports the compiler.
        found: Callable[[CodeType], object] = import_module("torch._dynamo.eval_frame").skip_code
        return found
    return lambda code: set_strategy(code, strategy)
