"""Functions that torch takes apart in another way while a dispatch mode is active. Runs in traced processes.

They are called so that they run the operations that they run without a mode.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from d9mlint.trace import names

_ARGUMENTS = ("log_probs", "targets", "input_lengths", "target_lengths", "blank")
_LENGTHS = _ARGUMENTS[2:4]
_PLAIN = (torch.Tensor, torch.nn.Parameter)


def ctc_loss(original: Callable[..., Any]) -> Callable[..., Any]:
    """``torch.ctc_loss`` that passes on lists for lengths that are tensors, as torch does where cuDNN cannot take them
    as tensors. While a mode is active torch keeps the tensors, and then raises RuntimeError for lengths that are not on
    the device of ``log_probs``, or uses another algorithm."""

    def called(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(_ARGUMENTS, args, strict=False)), **kwargs}
        if not _become_lists(given):
            return original(*args, **kwargs)
        lengths = {name: given[name].detach().reshape(-1).tolist() for name in _LENGTHS}
        places = dict(enumerate(_ARGUMENTS))
        args = tuple(lengths.get(places.get(place, ""), value) for place, value in enumerate(args))
        return original(*args, **{name: lengths.get(name, value) for name, value in kwargs.items()})

    return called


def _become_lists(given: dict[str, Any]) -> bool:
    tensors: list[Any] = [given.get(name) for name in _ARGUMENTS[:4]]
    if not all(type(tensor) in _PLAIN and tensor.device.type != "meta" for tensor in tensors):
        return False
    if not all(_is_integral(given[name].dtype) for name in _LENGTHS):
        return False
    if not tensors[0].is_cuda:
        return True
    return not names.use_cudnn_ctc_loss(*tensors, given.get("blank", 0))


def _is_integral(dtype: torch.dtype) -> bool:
    return not (dtype.is_floating_point or dtype.is_complex or dtype == torch.bool)
