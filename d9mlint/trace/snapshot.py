"""The state of a training program at each optimizer step: what a checkpoint has to keep. Runs in traced processes.

Before each step: parameters, buffers, optimizer state, hyperparameters, schedulers, gradient scalers, averaged
models, generators, and the numbers that modules, samplers and datasets keep as attributes. Objects are found
through the garbage collector, so nothing of the program is replaced. Names carry no identity: two objects of one
class and role share a name with different numbers, and are compared as a set.
"""

from __future__ import annotations

import functools
import gc
import os
import random
import sys
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import torch

from d9mlint.trace import journal, names
from d9mlint.trace.outputs import WRITING
from d9mlint.trace.recorder import Recorder, flatten
from d9mlint.trace.watch import Watch, number, numpy_state, python_state

_NUMBERS = (bool, int, float, str)
_MODULE_ATTRIBUTES_LEFT_OUT = ("training", "in_features", "out_features")


class Snapshots:
    """Adds the records of one process. ``stop``: end the program before the step after this one."""

    def __init__(self, recorder: Recorder, watch: Watch, stop: int) -> None:
        from torch.optim.optimizer import register_optimizer_step_pre_hook

        self._recorder = recorder
        self._watch = watch
        self._stop = stop
        self._known: dict[type, str] = {}
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []
        self._counts: dict[str, int] = {}
        self._said: dict[str, str] = {}
        register_optimizer_step_pre_hook(self._before)
        recorder.stepped.append(self._after)

    def _before(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        recorder = self._recorder
        if not recorder.on:
            return
        if self._stop and recorder.step >= self._stop:
            recorder.leave("resume")
        self._own_work(lambda: self._take(optimizer))

    def _after(self, optimizer: Any) -> None:
        def generators() -> None:
            for name, state in self._generators():
                self._number(f"{name} after the step", state(), always=True)

        self._own_work(generators)

    def _own_work(self, work: Callable[[], None]) -> None:
        if self._recorder.capturing:
            return
        stream = self._recorder.stream()
        busy, stream.busy = stream.busy, True
        try:
            with names.no_torch_function(), torch.no_grad():
                work()
        except Exception as error:
            self._recorder.failed(error)
        finally:
            stream.busy = busy

    # Records

    def _tensors(self, name: str, tensors: list[torch.Tensor]) -> None:
        recorder = self._recorder
        value = recorder.stream().digester.add(*tensors)
        path = recorder.sites.here(1)
        recorder.add(journal.STATE, name, path=path, shape=recorder.shape(tensors), value=value)

    def _number(self, name: str, digest: int, text: str = "", always: bool = False) -> None:
        """A record with a number for its content; again only where it has changed."""
        seen = f"{digest}{text}"
        if not always and self._said.get(name) == seen:
            return
        self._said[name] = seen
        recorder = self._recorder
        recorder.add(journal.STATE, name, path=recorder.sites.here(1), args=text, value=digest)

    def _value(self, name: str, value: Any) -> None:
        text = repr(value)
        self._number(name, number(text.encode()), text[:200])

    def _values(self, found: dict[str, list[str]]) -> None:
        """Values of several objects under one name: their order says nothing."""
        for name, values in found.items():
            text = ", ".join(sorted(values))
            self._number(name, number(text.encode()), text[:200])

    # What there is

    def _take(self, optimizer: Any) -> None:
        found = self._objects()
        modules = _roots(found["module"])
        labels: dict[int, str] = {}
        for root in modules:
            for name, parameter in root.named_parameters():
                labels.setdefault(id(parameter), f"{type(root).__name__}.{name}")
        optimized = self._optimizer(optimizer, labels)
        self._modules(modules, optimized)
        self._attributes("scheduler", found["scheduler"])
        self._attributes("data", found["data"])
        loaders = [one for one in found["data"] if isinstance(one, torch.utils.data.DataLoader)]
        self._values({"dataset:": [_dataset(one.dataset) for one in loaders]} if loaders else {})
        for scaler in found["scaler"]:
            self._scaler(scaler)
        for name, state in self._generators(found):
            self._number(f"generator: {name}", state())

    def _optimizer(self, optimizer: Any, labels: dict[int, str]) -> set[int]:
        kind = type(optimizer).__name__
        optimized: set[int] = set()
        hyper: dict[str, list[str]] = {}
        for index, group in enumerate(optimizer.param_groups):
            for key, value in group.items():
                if key != "params" and _plain(value):
                    hyper.setdefault(f"hyperparameter: `{key}` of group {index} of {kind}", []).append(
                        repr(_plain_value(value))
                    )
            for place, parameter in enumerate(group["params"]):
                optimized.add(id(parameter))
                label = labels.get(id(parameter), f"{place} of group {index} of {kind}")
                self._tensors(f"parameter: {label}", [parameter])
                state = optimizer.state.get(parameter) or {}
                for key, value in state.items():
                    tensors: list[torch.Tensor] = []
                    flatten(value, tensors)
                    name = f"optimizer: `{key}` of {label} in {kind}"
                    if tensors:
                        self._tensors(name, tensors)
                    elif _plain(value):
                        self._value(name, _plain_value(value))
        self._values(hyper)
        return optimized

    def _modules(self, roots: list[Any], optimized: set[int]) -> None:
        attributes: dict[str, list[str]] = {}
        for root in roots:
            kind = type(root).__name__
            rest = [p for p in root.parameters() if id(p) not in optimized]
            owned = any(id(p) in optimized for p in root.parameters())
            if rest:
                role = "frozen" if owned else "averaged"
                more = [] if owned else list(root.buffers())
                self._tensors(f"{role}: parameters of {self._numbered(root, role)}", [*rest, *more])
            if owned:
                for name, buffer in root.named_buffers():
                    self._tensors(f"buffer: {kind}.{name}", [buffer])
            for name, module in root.named_modules():
                place = f"{kind}.{name}" if name else kind
                for key, value in vars(module).items():
                    if not key.startswith("_") and key not in _MODULE_ATTRIBUTES_LEFT_OUT and _plain(value):
                        attributes.setdefault(f"attribute: `{key}` of {place}", []).append(
                            repr(_plain_value(value))
                        )
        self._values(attributes)

    def _attributes(self, role: str, objects: list[Any]) -> None:
        found: dict[str, list[str]] = {}
        for one in objects:
            kind = type(one).__name__
            for key, value in vars(one).items():
                if not key.startswith("_") and _plain(value):
                    found.setdefault(f"{role}: `{key}` of {kind}", []).append(repr(_plain_value(value)))
        self._values(found)

    def _scaler(self, scaler: Any) -> None:
        if not scaler.is_enabled():
            return
        kind = type(scaler).__name__
        self._value(f"scaler: `scale` of {kind}", float(scaler.get_scale()))
        tracker = getattr(scaler, "_growth_tracker", None)
        if isinstance(tracker, torch.Tensor):
            self._value(f"scaler: `growth_tracker` of {kind}", int(tracker))

    def _generators(
        self, found: dict[str, list[Any]] | None = None
    ) -> Iterator[tuple[str, Callable[[], int]]]:
        yield "torch CPU generator", _torch_state
        yield "python generator", python_state
        if "numpy.random" in sys.modules:
            yield "numpy generator", numpy_state
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            for index, generator in enumerate(torch.cuda.default_generators):
                yield f"torch generator of cuda:{index}", functools.partial(_state_of, generator)
        if found is None:
            return
        for one in found["generator"]:
            kind = f"{type(one).__module__.partition('.')[0]}.{type(one).__name__}"
            yield self._numbered(one, kind, kind), functools.partial(_state_of, one)

    def _numbered(self, one: Any, role: str, kind: str = "") -> str:
        """The class of an object, with a number where others of its class and role were seen before it."""
        known = self._numbers.get(id(one))
        kind = kind or type(one).__name__
        if known is None:
            count = self._counts[f"{role} {kind}"] = self._counts.get(f"{role} {kind}", 0) + 1
            known = self._numbers[id(one)] = count
            try:
                # A later object may have the identity of one that is gone.
                weakref.finalize(one, self._numbers.pop, id(one), None).atexit = False
            except TypeError:
                # Generators of NumPy and torch have no weak references: they are small, and kept.
                self._kept.append(one)
        return kind if known == 1 else f"{kind} #{known}"

    def _objects(self) -> dict[str, list[Any]]:
        """The objects of the program by role."""
        found: dict[str, list[Any]] = {
            role: [] for role in ("module", "scheduler", "scaler", "data", "generator")
        }
        known = self._known
        for one in gc.get_objects():
            kind = type(one)
            role = known.get(kind)
            if role is None:
                role = known[kind] = _role(kind)
            if role:
                found[role].append(one)
        seen: set[int] = set()
        for one in found["data"]:
            generator = vars(one).get("generator")
            if isinstance(generator, torch.Generator) and id(generator) not in seen:
                seen.add(id(generator))
                found["generator"].append(generator)
        found["generator"] = [g for g in found["generator"] if g is not random._inst]
        if "numpy.random" in sys.modules:
            own = getattr(sys.modules["numpy.random"].mtrand, "_rand", None)
            found["generator"] = [g for g in found["generator"] if g is not own]
        return found


def _role(kind: type) -> str:
    """What an object of a class is to a checkpoint; empty for nothing."""
    if issubclass(kind, torch.nn.Module):
        return "module"
    if issubclass(kind, torch.utils.data.Sampler | torch.utils.data.Dataset | torch.utils.data.DataLoader):
        return "data"
    if issubclass(kind, random.Random) and not issubclass(kind, random.SystemRandom):
        return "generator"
    module, name = str(kind.__module__), kind.__qualname__
    if module.startswith("numpy.random") and name in ("Generator", "RandomState"):
        return "generator"
    bases = {f"{base.__module__}.{base.__qualname__}" for base in kind.__mro__}
    if "torch.optim.lr_scheduler.LRScheduler" in bases or "torch.optim.lr_scheduler._LRScheduler" in bases:
        return "scheduler"
    if "torch.amp.grad_scaler.GradScaler" in bases or "torch.cuda.amp.grad_scaler.GradScaler" in bases:
        return "scaler"
    return ""


def _dataset(dataset: Any) -> str:
    """What a loader reads from."""
    iterable = isinstance(dataset, torch.utils.data.IterableDataset)
    return f"{'iterable' if iterable else 'indexed'} {type(dataset).__name__}"


def _roots(modules: list[Any]) -> list[Any]:
    """The modules that are no part of another one."""
    inner = {id(child) for module in modules for child in vars(module).get("_modules", {}).values()}
    return [module for module in modules if id(module) not in inner and "_modules" in vars(module)]


def _plain(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return bool(value.numel() == 1) and value.device.type != "meta"
    if isinstance(value, (list, tuple)):
        return 0 < len(value) <= 16 and all(isinstance(item, _NUMBERS) for item in value)
    return isinstance(value, _NUMBERS)


def _plain_value(value: Any) -> Any:
    return value.item() if isinstance(value, torch.Tensor) else value


def _torch_state() -> int:
    return number(torch.default_generator.get_state().numpy().tobytes())


def _state_of(generator: Any) -> int:
    if isinstance(generator, torch.Generator):
        return number(generator.get_state().numpy().tobytes())
    if isinstance(generator, random.Random):
        return number(repr(generator.getstate()).encode())
    if hasattr(generator, "bit_generator"):
        return numpy_state(generator)
    return number(repr(generator.get_state(legacy=False)).encode())


class Files:
    """Which files are written and read, and after which step: it tells with which step a resumed run begins."""

    def __init__(self, recorder: Recorder, watch: Watch) -> None:
        self._recorder = recorder
        self._written: dict[str, tuple[int, int]] = {}
        self._read: dict[str, tuple[int, int]] = {}
        self._busy = False
        sys.addaudithook(self._audit)
        save = torch.save

        def saved(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
            # A path is opened by C++ code, which no audit hook sees.
            self._note(self._written, f)
            return save(obj, f, *args, **kwargs)

        watch.replace(torch, "save", saved)
        watch.replace(torch.serialization, "save", saved)
        recorder.ending.append(self.summary)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            name, mode, flags = args
            writes = bool(flags & WRITING) if isinstance(flags, int) else any(c in str(mode) for c in "wax+")
            self._note(self._written if writes else self._read, name)
        elif event == "os.rename":
            self._note(self._written, args[1])

    def _note(self, where: dict[str, tuple[int, int]], name: Any) -> None:
        if self._busy or not self._recorder.on or not isinstance(name, (str, bytes, os.PathLike)):
            return
        if where is self._read and self._recorder.step:
            return
        self._busy = True
        try:
            path = self._recorder.sites.here(1)
            if path:
                where[os.path.abspath(os.fsdecode(name))] = (self._recorder.step, path)
        except (OSError, ValueError, TypeError):
            pass
        finally:
            self._busy = False

    def summary(self) -> dict[str, Any]:
        """The files with the step and the call path of the last access."""
        texts = self._recorder.sites.texts
        return {
            kind: {name: [step, texts[path]] for name, (step, path) in found.items()}
            for kind, found in (("written", self._written), ("read", self._read))
        }
