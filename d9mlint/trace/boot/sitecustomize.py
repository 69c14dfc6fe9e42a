"""Starts the tracer in every Python process of a traced program; Python imports this file on its own.

The directory is on PYTHONPATH only for this. It is removed from ``sys.path`` here, and a ``sitecustomize`` of
the user's environment runs as it would have.
"""

import importlib.machinery
import importlib.util
import os
import sys

_here = os.path.dirname(os.path.abspath(__file__))
sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != _here]


def _start() -> None:
    settings = os.environ.get("D9MLINT_TRACE")
    if not settings:
        return
    package = os.path.dirname(os.path.dirname(_here))
    if "d9mlint" not in sys.modules:
        # By its place: the traced program's environment need not have d9mlint installed.
        spec = importlib.util.spec_from_file_location(
            "d9mlint", os.path.join(package, "__init__.py"), submodule_search_locations=[package]
        )
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["d9mlint"] = module
        spec.loader.exec_module(module)
    from d9mlint.trace.inject import start

    start(settings)


_start()

_next = importlib.machinery.PathFinder.find_spec("sitecustomize")
if _next is not None and _next.loader is not None:
    _module = importlib.util.module_from_spec(_next)
    sys.modules["sitecustomize"] = _module
    _next.loader.exec_module(_module)
