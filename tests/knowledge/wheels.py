"""What a released wheel says about determinism: alert sites, switch sites, messages and variables.

PyTorch refuses an op by ``at::Context::alertNotDeterministic("name")`` and switches to another algorithm where
``at::Context::deterministicAlgorithms()`` is true; the calls of both are found in the machine code of the
wheel's libraries. TensorFlow refuses an op with an error whose text names determinism; the texts and the
environment variables are found among the strings.
"""

from __future__ import annotations

import hashlib
import json
import re
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import elf
import macho

ALERT = "alertNotDeterministic"
SWITCH = "Context23deterministicAlgorithmsEv"
MESSAGE = rb"[Dd]eterminis(?:m|tic|tically)\b"
_NAME = re.compile(r"[A-Za-z_]\w{3,}")
_VARIABLE = re.compile(r"(?:TF|XLA|TORCH|PYTORCH|CUBLAS|CUDNN|NCCL|NVTE)_[A-Z0-9_]*")
_DETERMINISM = re.compile(rb"TF_[A-Z0-9_]*(?:DETERMINIS|USE_AUTOTUNE|USE_FRONTEND)[A-Z0-9_]*")


def short_name(mangled: str) -> str:
    """The last part of a mangled nested name that says something: ``structured_x::impl`` is ``structured_x``."""
    found = re.match(r"_ZNK?((?:\d+\w+)+)", mangled)
    if found is None:
        return mangled
    parts: list[str] = []
    text = found[1]
    while text[:1].isdigit():
        size = re.match(r"\d+", text)
        assert size is not None
        start = size.end()
        parts.append(text[start : start + int(size[0])])
        text = text[start + int(size[0]) :]
    return parts[-2] if len(parts) > 1 and parts[-1] in ("impl", "run", "operator()") else parts[-1]


def _where(library: elf.Library, site: int) -> str:
    """A name for the function around a call: its symbol, else what its strings say, else its source file."""
    symbol = library.symbol(site)
    if symbol:
        return short_name(symbol)
    start, end = library.function(site)
    near = [text for _, _, text in library.references(start, min(end, start + 20000))]
    files = sorted(
        {text.rpartition("/")[2] for text in near if re.search(r"/native/.*\.(cu|cpp|cuh|h)$", text)}
    )
    names = sorted({text for text in near if _NAME.fullmatch(text) and "_" in text})
    return ",".join(names[:4] or files[:2]) or "?"


def scan_library(path: Path) -> dict[str, Any]:
    """Alert and switch sites of one library of PyTorch or of an extension of it."""
    library = elf.Library(path)
    try:
        alerts: dict[str, list[str]] = {}
        switches: dict[str, int] = {}
        if library.imports(ALERT):
            for site in library.calls(ALERT):
                name = library.argument(site) or "?"
                alerts.setdefault(name, []).append(_where(library, site))
        if library.imports(SWITCH):
            for site in library.calls(SWITCH):
                where = _where(library, site)
                switches[where] = switches.get(where, 0) + 1
        return {
            "alerts": {name: sorted(set(places)) for name, places in sorted(alerts.items())},
            "switches": dict(sorted(switches.items())),
        }
    finally:
        library.close()


def _messages(path: Path) -> tuple[list[str], list[str]]:
    """Sentences about determinism, and names of environment variables, among the strings of a library."""
    library = elf.Library(path)
    try:
        said = elf.texts(library.data, MESSAGE)
        variables = elf.texts(library.data, _DETERMINISM.pattern)
    finally:
        library.close()
    sentences = [text for text in said if text.count(" ") >= 3]
    return sentences, [text for text in variables if _VARIABLE.fullmatch(text)]


def scan(wheel: Path) -> dict[str, Any]:
    """Everything that a wheel says, as it is stored in ``tables/``."""
    package, version = wheel.name.split("-")[:2]
    table: dict[str, Any] = {
        "package": package,
        "version": version.partition("+")[0],
        "wheel": wheel.name,
        "sha256": _digest(wheel),
        "libraries": {},
        "messages": [],
        "variables": [],
    }
    messages: set[str] = set()
    variables: set[str] = set()
    with zipfile.ZipFile(wheel) as archive, tempfile.TemporaryDirectory(dir=wheel.parent) as folder:
        for name in sorted(archive.namelist()):
            last = name.rpartition("/")[2]
            if last == "libtorch_cpu.dylib":
                path = Path(archive.extract(name, folder))
                called = macho.Image(path).arguments(ALERT)
                table["libraries"][last] = {
                    "alerts": {text: [] for text in sorted(set(called))},
                    "switches": {},
                }
                path.unlink()
            if not re.search(r"\.so(\.\d+)*$", last) or not _of_interest(package, last):
                continue
            path = Path(archive.extract(name, folder))
            if package.startswith("tensorflow"):
                found = _messages(path)
                messages.update(found[0])
                variables.update(found[1])
            else:
                sites = scan_library(path)
                if sites["alerts"] or sites["switches"]:
                    table["libraries"][last] = sites
            path.unlink()
    table["messages"] = sorted(messages)
    table["variables"] = sorted(variables)
    return table


def _of_interest(package: str, library: str) -> bool:
    if package == "torch":
        return library.startswith(("libtorch_cuda", "libtorch_cpu", "libtorch.so"))
    if package.startswith("tensorflow"):
        return library.startswith(("libtensorflow", "_pywrap_tensorflow"))
    return True


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def store(table: dict[str, Any], folder: Path) -> Path:
    """Write a table where the tests find it."""
    system = "-macos" if "macosx" in table["wheel"] else ""
    path = folder / f"{table['package']}-{table['version']}{system}.json"
    path.write_text(json.dumps(table, indent=1, ensure_ascii=True) + "\n", encoding="utf-8")
    return path
