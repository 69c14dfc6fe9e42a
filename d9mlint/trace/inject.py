"""Starts the tracer in a process of the traced program, before any of its code. Standard library only: torch is
watched from the moment at which the program itself has imported it.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from d9mlint.trace.outputs import Outputs
from d9mlint.trace.sites import Sites
from d9mlint.trace.watch import Watch


class _AfterImport(importlib.abc.MetaPathFinder):
    """Calls functions when modules have been imported."""

    def __init__(self, calls: dict[str, Callable[[ModuleType], None]]) -> None:
        self._calls = calls
        self._looking: set[str] = set()

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        call = self._calls.get(fullname)
        if call is None or fullname in self._looking:
            return None
        self._looking.add(fullname)
        try:
            spec = importlib.util.find_spec(fullname)
        finally:
            self._looking.discard(fullname)
        if spec is None or spec.loader is None:
            return None
        spec.loader = _Loader(spec.loader, call)
        return spec


class _Loader(importlib.abc.Loader):
    """A module's own loader, and a call after it. All else is looked up in the own loader."""

    def __init__(self, loader: Any, call: Callable[[ModuleType], None]) -> None:
        self._loader = loader
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        result: ModuleType | None = self._loader.create_module(spec)
        return result

    def exec_module(self, module: ModuleType) -> None:
        spec = module.__spec__
        if spec is not None:
            # The module keeps its own loader.
            spec.loader = self._loader
            module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._call(module)


def start(path: str) -> None:
    """Start with the settings in a file."""
    with open(path, encoding="utf-8") as stream:
        settings = json.load(stream)
    redirected = settings.get("redirected") or []
    sites = Sites(tuple(settings["roots"]), redirected)
    watch = Watch(sites)
    outputs = Outputs(settings["outputs"]) if settings.get("outputs") else None
    if outputs is not None:
        outputs.watch()
    from d9mlint.trace import perturb

    if redirected:
        from d9mlint.trace.redirect import redirect

        redirect(redirected)
    perturb.listings(sites, watch.listed, bool(settings.get("listing")))
    if settings.get("still"):
        perturb.still_clock(sites, watch.listed)
    elif settings.get("clock"):
        perturb.clock(int(settings["clock"]))
    if settings.get("entropy"):
        perturb.entropy(sites, watch.listed)
    watch.python()

    def torch_imported(module: ModuleType) -> None:
        if redirected:
            from d9mlint.trace.redirect import redirect_torch

            redirect_torch(module, redirected)
        if outputs is not None:
            outputs.torch(module)
        _record(settings, sites, watch)

    def tensorflow_imported(_: ModuleType) -> None:
        _record_tensorflow(settings, sites, watch)

    finder = _AfterImport(
        {
            "torch": torch_imported,
            "tensorflow": tensorflow_imported,
            "numpy.random": watch.numpy,
            "keras.src.optimizers.base_optimizer": watch.keras,
            "torch._inductor.output_code": watch.inductor,
        }
    )
    sys.meta_path.insert(0, finder)


def _record(settings: dict[str, Any], sites: Sites, watch: Watch) -> None:
    from d9mlint.trace import names

    try:
        names.check()
    except names.Unsupported as error:
        with open(os.path.join(settings["directory"], "unsupported"), "w", encoding="utf-8") as stream:
            stream.write(str(error))
        return
    import torch

    from d9mlint.trace.digest import HOST
    from d9mlint.trace.session import begin

    header = {"key": _key(), "torch": torch.__version__, "digest": HOST, **_header(settings)}
    path = os.path.join(settings["directory"], f"{os.getpid()}.journal")
    begin(path, header, settings, sites, watch)


def _record_tensorflow(settings: dict[str, Any], sites: Sites, watch: Watch) -> None:
    from d9mlint.trace import tf_names

    try:
        tf_names.check()
    except tf_names.Unsupported as error:
        with open(os.path.join(settings["directory"], "unsupported"), "w", encoding="utf-8") as stream:
            stream.write(str(error))
        return
    import tensorflow

    from d9mlint.trace.tf_recorder import begin

    header = {
        "key": f"{_key()} (TensorFlow)",
        "tensorflow": tensorflow.__version__,
        **_header(settings),
    }
    begin(
        os.path.join(settings["directory"], f"{os.getpid()}.tensorflow.journal"),
        header,
        settings,
        sites,
        watch,
    )


def _header(settings: dict[str, Any]) -> dict[str, Any]:
    return {
        "rank": os.environ.get("RANK", ""),
        "argv": list(getattr(sys, "orig_argv", sys.argv)),
        "pid": os.getpid(),
        "python": sys.version.split()[0],
        "worker": False,
        "level": settings["level"],
    }


def _key() -> str:
    """What names this process in every run of the program."""
    rank = os.environ.get("RANK")
    parts = [f"rank {rank}"] if rank is not None else []
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing is not None and multiprocessing.parent_process() is not None:
        parts.append(multiprocessing.current_process().name)
    return ", ".join(parts) or "main"
