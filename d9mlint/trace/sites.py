"""Which line of the user's program is running. Runs in traced processes; standard library only."""

from __future__ import annotations

import itertools
import os
import site
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from types import CodeType, FrameType
from typing import Any

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep

_LIBRARIES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")

_ENGINE = 2
"""The mark of code that runs a backward pass."""

GRAPH = "<eval_with_key>"
"""How the file names of captured graphs begin."""


def _library_directories() -> tuple[str, ...]:
    paths = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    paths += site.getsitepackages() if hasattr(site, "getsitepackages") else []
    paths.append(site.getusersitepackages())
    return tuple({os.path.realpath(p) + os.sep for p in paths if p} | {p + os.sep for p in paths if p})


class Sites:
    """Numbers for the call paths of user code. A path is the user's frames from the innermost outwards, each
    ``file:line:function``, joined with tabs; the innermost also says which columns of its line are running, as
    ``file:line,column,end line,end column:function``. ``redirected`` has pairs of a directory and the one that stands
    for it in this run."""

    def __init__(self, roots: tuple[str, ...] = (), redirected: Sequence[Sequence[str]] = ()) -> None:
        self.texts: list[str] = [""]
        self.of_engine: set[int] = set()
        """The paths whose innermost line runs a backward pass: no line of the user is behind the operation itself."""
        self._paths: dict[tuple[int, ...], int] = {(): 0}
        self._numbers: dict[str, int] = {"": 0}
        self._user: dict[int, int] = {}
        self._codes: list[CodeType] = []
        self._files: dict[str, str] = {}
        self._libraries = _library_directories()
        self._roots = roots
        self._redirected = redirected

    def engine(self, codes: Iterable[CodeType]) -> None:
        """Name the functions that run a backward pass."""
        for code in codes:
            self._codes.append(code)
            self._user[id(code)] = _ENGINE

    def here(self, depth: int) -> int:
        """The number of the path of the caller, ``depth`` frames up."""
        frame: FrameType | None = sys._getframe(depth)
        user = self._user
        key: list[int] = []
        while frame is not None:
            code = frame.f_code
            known = user.get(id(code))
            if known is None:
                known = self._look(code)
            if known:
                if known != _ENGINE:
                    key.append(id(code))
                    key.append(frame.f_lasti)
                elif not key:
                    key.append(_ENGINE)
            frame = frame.f_back
        found = self._paths.get(tuple(key))
        if found is None:
            found = self._add(depth + 1, tuple(key))
        return found

    def importing(self, depth: int) -> bool:
        """Whether the caller, ``depth`` frames up, is a library that the user's line imports."""
        frame: FrameType | None = sys._getframe(depth)
        while frame is not None:
            code = frame.f_code
            if code.co_filename.startswith("<frozen importlib"):
                return True
            known = self._user.get(id(code))
            if known == 1 or (known is None and self._look(code)):
                return False
            frame = frame.f_back
        return False

    def _look(self, code: CodeType) -> bool:
        """Whether code is the user's. The code object is kept: its identity is the key."""
        self._codes.append(code)
        name = code.co_filename
        result = self._is_user(name)
        self._user[id(code)] = result
        return result

    def _is_user(self, name: str) -> bool:
        if name.startswith(GRAPH):
            return True
        if name.startswith("<"):
            # Code from exec() and the like: a dataclass, a namedtuple, a template. "<stdin>" is the program.
            return name == "<stdin>"
        path = os.path.abspath(name)
        if path.startswith(_HERE):
            return False
        if any(path.startswith(root) for root in self._roots):
            return True
        return not path.startswith(self._libraries) and not any(part in path for part in _LIBRARIES)

    def _add(self, depth: int, key: tuple[int, ...]) -> int:
        frame: FrameType | None = sys._getframe(depth)
        texts: list[str] = []
        while frame is not None:
            if self._user.get(id(frame.f_code)) == 1:
                texts += self._describe(frame, innermost=not texts)
            frame = frame.f_back
        text = "\t".join(texts)
        number = self._numbers.get(text)
        if number is None:
            number = self._numbers[text] = len(self.texts)
            self.texts.append(text)
        self._paths[key] = number
        if key[:1] == (_ENGINE,):
            self.of_engine.add(number)
        return number

    def _describe(self, frame: FrameType, innermost: bool) -> list[str]:
        code = frame.f_code
        name = getattr(code, "co_qualname", code.co_name)
        if code.co_filename.startswith(GRAPH):
            return _graph_lines(frame, self._is_user)
        if any(used.startswith("__compiled_fn") for used in code.co_names):
            # What torch.compile has put in the place of a function has no lines.
            return []
        columns = _columns(frame) if innermost else ""
        return [f"{self._file(code.co_filename)}:{frame.f_lineno}{columns}:{name}"]

    def _file(self, name: str) -> str:
        found = self._files.get(name)
        if found is None:
            found = os.path.abspath(name)
            for original, own in self._redirected:
                if found.startswith(own + os.sep):
                    found = original + found[len(own) :]
            self._files[name] = found
        return found


def _columns(frame: FrameType) -> str:
    """The part of the source that a frame runs; empty where Python does not say so (before 3.11)."""
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is None:
        return ""
    _, end, column, last = next(itertools.islice(positions(), frame.f_lasti // 2, None), (None,) * 4)
    return "" if end is None or column is None or last is None else f",{column},{end},{last}"


def without_columns(text: str) -> str:
    """A path that says only lines."""
    parts = [part.rsplit(":", 2) for part in text.split("\t") if part]
    return "\t".join(f"{name}:{row.partition(',')[0]}:{function}" for name, row, function in parts)


def _graph_lines(frame: FrameType, is_user: Any) -> list[str]:
    """The user's lines behind a line of a graph that torch.compile has captured: its nodes keep the stack."""
    module = frame.f_locals.get("self")
    graph = getattr(module, "graph", None)
    numbers: dict[int, int] = getattr(module, "_lineno_map", None) or {}
    start = getattr(module, "_prologue_start", 0) or 0
    if graph is None:
        return []
    nodes = list(graph.nodes)
    index = numbers.get(frame.f_lineno - start, numbers.get(frame.f_lineno))
    trace = nodes[index].meta.get("stack_trace") if index is not None and index < len(nodes) else None
    if not trace:
        trace = _by_name(frame, nodes)
    return _stack_lines(trace or "", is_user)


def _by_name(frame: FrameType, nodes: list[Any]) -> str | None:
    """The stack of the node that a line assigns: ``mul_1 = ...`` is the node ``mul_1``."""
    import linecache

    line = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
    name = line.partition("=")[0].split(":")[0].strip()
    for node in nodes:
        if node.name == name:
            trace: str | None = node.meta.get("stack_trace")
            return trace
    return None


def _stack_lines(trace: str, is_user: Any) -> list[str]:
    """The user's frames of a formatted stack, innermost first."""
    import re

    found = re.findall(r'File "([^"]+)", line (\d+), in (\S+)', trace)
    return [f"{name}:{row}:{function}" for name, row, function in reversed(found) if is_user(name)]
