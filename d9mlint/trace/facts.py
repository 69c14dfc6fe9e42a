"""The fact by which the linter knows next time what a trace has found: YAML for ``knowledge = [...]``. No framework is
imported here.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

from d9mlint.trace import causes
from d9mlint.trace.compare import Difference, Frame
from d9mlint.trace.journal import BACKWARD
from d9mlint.trace.model import Report

CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
"""The variable without which operations of cuBLAS raise in deterministic mode, although they have an implementation."""

_GENERATORS = {
    "torch CPU generator": "torch",
    "python generator": "python",
    "numpy generator": "numpy",
    "TensorFlow generator": "tensorflow",
}
_LIBRARIES = {"Python's `random`": "python", "`numpy.random`": "numpy"}
_ORDERS = {
    "hash seed": ("DET210", "a set"),
    "addresses": ("DET210", "a set of objects"),
    "listing": ("DET209", "a directory listing"),
}
_RESULT = "?"
"""Stands for what a call returns."""
_KEY = "behaviour"
"""As the knowledge base spells it."""
_RUN = "run-to-run difference seen by d9mlint trace"


def fact(report: Report) -> str:
    """The YAML of a fact, for a file that ``knowledge = [...]`` names; empty where the linter has reported the place, or
    where it is not known which call of a library it is about."""
    difference = report.difference
    if difference is None or report.finding is not None or report.known or not difference.place:
        return ""
    if difference.verdict == "op" and report.confirmation is not None:
        return _op(difference, report.confirmation)
    if difference.verdict == "rng":
        return _draw(difference)
    return _order(difference)


def _op(difference: Difference, found: dict[str, Any]) -> str:
    if found["distinct"] < 2:
        return ""
    side = difference.side
    api = api_at(difference.place[0], side.name)
    if not api:
        return ""
    mode = found["deterministic"]
    if mode["raises"] and CUBLAS in mode["raises"]:
        # Whether it differs in deterministic mode has not been seen.
        return ""
    if mode["raises"]:
        behavior = "raises"
    else:
        behavior = "deterministic_alternative" if mode["distinct"] == 1 else "silent"
    framework = "tensorflow" if side.name.startswith("tf.") else "torch"
    device = next((one["device"] for one in found["inputs"] if one.get("device")), "cpu")
    passes = "backward" if side.flags & BACKWARD else "forward"
    version = (found.get("versions") or {}).get(framework, "0")
    lines = [
        "ops:",
        f"  - id: {api}.traced",
        # The release that is known is that of the framework.
        f"    library: {framework}",
        f"    apis: [{api}]",
        f"    devices: [{device}]",
        f"    passes: {passes}",
        "    history:",
        f"      - {{versions: '>={version}', {_KEY}: {behavior}}}",
        "    confidence: medium",
        f"    provenance: ['{_RUN}: {side.name}, {found['distinct']} distinct results in {found['runs']} replays']",
    ]
    if _library(api) != framework and framework == "torch":
        lines.insert(6, "    rule: DET407")
    return "\n".join(lines) + "\n"


def unseeded(difference: Difference) -> str:
    """The library whose global generator was used without a seed, where that is the reason for a difference."""
    generator = _GENERATORS.get(difference.side.name, "")
    if not generator and difference.cause is not None and difference.cause.kind == "draw":
        generator = next((g for text, g in _LIBRARIES.items() if text in difference.cause.text), "")
    return generator if difference.verdict == "rng" and "without a seed" in difference.reason else ""


def _draw(difference: Difference) -> str:
    """A call of a library that draws from a global generator."""
    generator = unseeded(difference)
    if not generator:
        return ""
    api = api_at(difference.place[0], difference.side.name)
    if not api:
        return ""
    lines = [
        "rng:",
        f"  - id: {api}.traced",
        f"    apis: [{api}]",
        "    kind: draw",
        f"    library: {_library(api)}",
        f"    draws: [{generator}]",
        "    confidence: medium",
        f"    provenance: ['{_RUN}: {difference.side.name}']",
    ]
    return "\n".join(lines) + "\n"


def _order(difference: Difference) -> str:
    """A call of a library that gives elements in arbitrary order."""
    cause = difference.cause
    if cause is None or cause.kind not in _ORDERS:
        return ""
    rule, of = _ORDERS[cause.kind]
    frame = (cause.path or difference.place)[0]
    api = api_at(frame, "") if cause.kind == "listing" else iterated_at(frame)
    if not api or _library(api) in (*sys.stdlib_module_names, "torch", "tensorflow", "numpy"):
        return ""
    lines = [
        "orders:",
        f"  - id: {api}.traced",
        f"    apis: [{api}]",
        "    role: source",
        f"    library: {_library(api)}",
        f"    rule: {rule}",
        f"    what: 'result depends on the order of `{{name}}()`, which is that of {of}'",
        "    help: sort the elements",
        "    confidence: medium",
        f"    provenance: ['{_RUN}: {cause.text}']",
    ]
    return "\n".join(lines) + "\n"


def iterated_at(frame: Frame) -> str:
    """The canonical name of the library call whose result the loop at a line goes through, there or by the only name
    that it was assigned to. Empty where that is not certain."""
    tree = _parsed(frame)
    if tree is None:
        return ""
    loops = [iterated for _, iterated in causes.loops(tree) if iterated.lineno == frame.row]
    if len(loops) != 1:
        return ""
    value: ast.expr | None = loops[0]
    if not isinstance(value, ast.Call):
        value = _assigned(tree, _dotted(loops[0]))
    return _canonical(_called(value, _imports(tree, os.path.dirname(frame.filename))))


Span = tuple[int, int, int, int]
"""The row and column at which a part of a file begins and ends. Columns count bytes from 0, as Python does."""


def running_at(frame: Frame) -> list[Span]:
    """What is running at a line, where Python says it: a part of the line, and the call that ends with it."""
    tree = _parsed(frame)
    if tree is None or not frame.columns:
        return []
    start, row, end = frame.columns
    return [(frame.row, start, row, end), *(_span(call) for call in _running(tree, frame))]


def made_at(frame: Frame) -> list[Span]:
    """Where the objects are made that are called at a line, such as layers: each is assigned once in the file."""
    tree = _parsed(frame)
    if tree is None:
        return []
    made = [_assigned(tree, _dotted(call.func)) for call in _running(tree, frame)]
    return [_span(one) for one in made if isinstance(one, ast.Call)]


def _span(node: ast.expr) -> Span:
    return node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0


def _running(tree: ast.AST, frame: Frame) -> list[ast.Call]:
    calls = list(_calls(tree, frame.row))
    if not frame.columns:
        return calls
    # No two calls end at the same place.
    return [call for call in calls if (call.end_lineno, call.end_col_offset) == frame.columns[1:]]


def _assigned(tree: ast.AST, name: str) -> ast.expr | None:
    """What is assigned to a name, where that is done once in the file."""
    found = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and any(_dotted(target) == name for target in node.targets)
    ]
    return found[0] if name and len(found) == 1 else None


def _called(value: ast.expr | None, imported: dict[str, str]) -> str:
    """The name of the library's function or class that an expression calls."""
    head, _, rest = _dotted(value.func).partition(".") if isinstance(value, ast.Call) else ("", "", "")
    if head not in imported:
        return ""
    return f"{imported[head]}.{rest}" if rest else imported[head]


def _parsed(frame: Frame) -> ast.Module | None:
    try:
        with open(frame.filename, encoding="utf-8") as stream:
            return ast.parse(stream.read())
    except (OSError, SyntaxError, ValueError):
        return None


def _library(api: str) -> str:
    return {"tf": "tensorflow"}.get(api.partition(".")[0], api.partition(".")[0])


def api_at(frame: Frame, operation: str) -> str:
    """The canonical name of the library call at a line: the one that was running, or where Python does not say which,
    the one that is named like the operation, or the only one. Empty where that is not certain, and for functions of
    the project."""
    tree = _parsed(frame)
    if tree is None:
        return ""
    imported = _imports(tree, os.path.dirname(frame.filename))
    base = base_of(operation)
    calls = _running(tree, frame)
    found, certain = [], True
    for name in filter(None, (_dotted(call.func) for call in calls)):
        head, _, rest = name.partition(".")
        if head in imported:
            found.append(f"{imported[head]}.{rest}" if rest else imported[head])
        elif rest and _alike(name, base):
            # A method of a tensor.
            found.append(f"torch.Tensor.{name.rpartition('.')[2]}")
        elif made := _called(_assigned(tree, name), imported):
            # An object of a library, such as a module.
            found.append(made)
        elif head == _RESULT:
            # A method of what a library returns may be what runs.
            certain = False
    alike = [name for name in found if _alike(name, base)]
    chosen = alike or [name for name in found if _library(name) not in ("torch", "tensorflow", "numpy")]
    candidates = dict.fromkeys(chosen or found)
    known = len(candidates) == 1 and (certain or bool(alike))
    return _canonical(next(iter(candidates))) if known else ""


def _canonical(name: str) -> str:
    return "tf" + name.removeprefix("tensorflow") if name.startswith("tensorflow.") else name


def base_of(operation: str) -> str:
    """``aten.index_add_.default`` is ``index_add``; ``tf.CropAndResizeGradImage`` is ``cropandresizegradimage``."""
    parts = operation.split(".")
    base = parts[1] if len(parts) > 1 else parts[0]
    return re.sub(r"(_backward|_grad)$", "", base.strip("_")).lower()


def _alike(name: str, base: str) -> bool:
    own = name.rpartition(".")[2].lower().strip("_")
    return own == base or own.replace("_", "") == base.replace("_", "") or base.startswith(own + "_")


def _calls(tree: ast.AST, row: int) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.lineno <= row <= (node.end_lineno or node.lineno):
            yield node


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _dotted(node.value)
        return f"{inner}.{node.attr}" if inner else f"{_RESULT}.{node.attr}"
    return ""


def _imports(tree: ast.AST, directory: str) -> dict[str, str]:
    """The names that a module imports from libraries."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if not _of_project(alias.name, directory):
                    head = alias.name.partition(".")[0]
                    found[alias.asname or head] = alias.name if alias.asname else head
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            if not _of_project(node.module, directory):
                for alias in node.names:
                    found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def _of_project(module: str, directory: str) -> bool:
    head = module.partition(".")[0]
    tops = [directory, os.getcwd()]
    return any(
        os.path.exists(os.path.join(top, name)) for top in tops for name in (f"{head}.py", head) if top
    )
