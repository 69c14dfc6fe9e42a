"""The light level: what a training step begins with and ends with. Runs in traced processes.

No operation is recorded: batches, the loss, gradients and parameters are digested once in each step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from d9mlint.trace import journal, names
from d9mlint.trace.recorder import Recorder
from d9mlint.trace.watch import Watch, number, numpy_state, python_state


class Steps:
    """Adds the records of the light level."""

    def __init__(self, recorder: Recorder, watch: Watch) -> None:
        self._recorder = recorder
        self._states: dict[str, Callable[[], int]] = {
            "torch CPU generator": _torch_state,
            "python generator": python_state,
            "numpy generator": numpy_state,
        }
        self._last = {name: state() for name, state in self._states.items()}
        recorder.stepped.append(self.stepped)
        backward = torch.autograd.backward

        def called(tensors: Any, *args: Any, **kwargs: Any) -> Any:
            if recorder.on:
                self.loss(tensors)
            return backward(tensors, *args, **kwargs)

        watch.replace(torch.autograd, "backward", called)

    def _generators(self) -> None:
        """Note the generators that have moved since the last look: they explain a value that differs."""
        for name, state in self._states.items():
            found = state()
            if found != self._last[name]:
                self._last[name] = found
                self._recorder.add(journal.NOTE, name, path=self._recorder.sites.here(1), value=found)

    def loss(self, tensors: Any) -> None:
        """``backward()`` is called."""
        self._generators()
        roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        self._add("loss", roots)

    def stepped(self, optimizer: Any) -> None:
        """An optimizer has taken a step: its gradients are still there."""
        self._generators()
        parameters = [p for group in optimizer.param_groups for p in group["params"]]
        for index, parameter in enumerate(parameters):
            if parameter.grad is not None:
                self._add(f"gradient of parameter {index}", [parameter.grad])
        for index, parameter in enumerate(parameters):
            self._add(f"parameter {index}", [parameter])

    def _add(self, name: str, tensors: list[torch.Tensor]) -> None:
        recorder = self._recorder
        if recorder.capturing:
            return
        with names.no_torch_function(), torch.no_grad():
            value = recorder.stream().digester.add(*tensors)
            shape = recorder.shape(tensors)
        recorder.add(journal.STATE, name, path=recorder.sites.here(1), shape=shape, value=value)


def _torch_state() -> int:
    return number(torch.default_generator.get_state().numpy().tobytes())
