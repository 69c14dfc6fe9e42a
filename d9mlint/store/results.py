"""The cache of whole runs: a run that would repeat an earlier one reads its findings instead.

The key covers all that bears on the findings: the content of every file of the project, the rules, this
tool's own code, and what was asked for. Configuration files that the analysis opened on its way are kept
with the result, by digest, and looked at again before it is believed; those that exist but were not
opened are part of the key by name and time, because a new one may be found where an old search failed.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from d9mlint import __version__
from d9mlint.base.coverage import Coverage
from d9mlint.base.findings import Finding
from d9mlint.base.paths import read_limited
from d9mlint.base.source import Trouble
from d9mlint.ir.nodes import SCHEMA, Comment
from d9mlint.knowledge.loader import rules_directory
from d9mlint.knowledge.schema import RulePage
from d9mlint.store.cache_dir import CacheDir

if TYPE_CHECKING:
    from d9mlint.config.discover import Discovery
    from d9mlint.config.settings import Settings

FORMAT = 3
KEPT = 16
"""How many results are kept; the oldest go."""
MANY = 64
"""More configuration files than this in one directory are data: only their names count."""


class Analysis(msgspec.Struct):
    """What the checks found in all files, before suppressions. ``comments`` by path; ``rules`` are all pages,
    so that a run that finds its result here needs no knowledge base; ``warnings`` are about files that say
    which versions the project is meant for; ``coverage`` is that of every entry point;
    ``no_entry`` is whether there is none, and functions that one would call."""

    findings: list[Finding]
    comments: dict[str, list[Comment]]
    config_files: list[str]
    rules: list[RulePage]
    warnings: list[str] = []
    coverage: list[Coverage] = []
    no_entry: bool = False


class _Entry(msgspec.Struct):
    key: str
    analysis: Analysis
    configs: dict[str, str]


def content_digest(data: bytes | Trouble) -> str:
    """A digest of a file's bytes, or of why it cannot be read."""
    content = data if isinstance(data, bytes) else repr(data).encode()
    return hashlib.blake2b(content, digest_size=20).hexdigest()


def run_key(found: Discovery, digests: Mapping[str, str], settings: Settings, knowledge: str = "") -> str:
    """The key of a run: equal keys mean equal findings. ``knowledge`` is the digest of the user's own facts."""
    return _key(found, settings, [knowledge, *(f"{path}\0{digests[path]}" for path in sorted(digests))])


def entries_key(found: Discovery, digests: Mapping[str, str], settings: Settings, knowledge: str = "") -> str:
    """The key of the reports of a project: all that bears on them but the content of its files."""
    return _key(found, settings, ["entries", knowledge, *sorted(digests)])


def _key(found: Discovery, settings: Settings, lines: Sequence[str]) -> str:
    key = hashlib.blake2b(digest_size=20)
    chosen = (
        settings.select,
        settings.extend_select,
        settings.ignore,
        settings.extend_ignore,
        settings.preview,
    )
    origins = [settings.origins.get(k, "") for k in ("select", "extend-select", "ignore", "extend-ignore")]
    device = settings.device, "device" in settings.origins
    target = (settings.torch_version, settings.tensorflow_version, *device, settings.entry_points)
    for part in (
        FORMAT,
        __version__,
        SCHEMA,
        tool_digest(),
        found.root,
        chosen,
        origins,
        target,
        *_installed(),
    ):
        key.update(repr(part).encode("utf-8", "surrogatepass") + b"\0")
    for line in (*lines, *_configs(found.configs)):
        key.update(line.encode("utf-8", "surrogatepass") + b"\0")
    return key.hexdigest()


def _installed() -> list[tuple[str, int]]:
    """When anything was last installed: the versions of installed libraries may be those of the target."""
    found: list[tuple[str, int]] = []
    for directory in sys.path:
        if directory.endswith(("site-packages", "dist-packages")) and os.path.isdir(directory):
            found.append((directory, os.stat(directory).st_mtime_ns))
    return found


def _configs(configs: Mapping[str, Sequence[str]]) -> list[str]:
    """Name, size and time of every configuration file of the project."""
    lines: list[str] = []
    for directory, names in configs.items():
        for name in names:
            path = f"{directory.rstrip('/')}/{name}"
            if len(names) > MANY:
                lines.append(path)
                continue
            try:
                stat = os.stat(path)
                lines.append(f"{path}\0{stat.st_size}\0{stat.st_mtime_ns}")
            except OSError:
                lines.append(path)
    return sorted(lines)


def tool_digest() -> str:
    """Size and time of every file of this tool and its rules: an edited tool forgets what it knew."""
    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    digest = hashlib.blake2b(digest_size=16)
    for top in (package, str(rules_directory())):
        for directory, names, files in os.walk(top):
            names[:] = sorted(n for n in names if n not in ("__pycache__", "evidence"))
            for name in sorted(files):
                if name.endswith((".py", ".md", ".yaml")):
                    stat = os.stat(os.path.join(directory, name))
                    digest.update(f"{directory}/{name}\0{stat.st_size}\0{stat.st_mtime_ns}\0".encode())
    return digest.hexdigest()


class ResultCache:
    """Results in the cache at ``directory``, which also holds the cached facts. Every failure is a miss."""

    def __init__(self, directory: str) -> None:
        self.directory = directory
        self.place = CacheDir(directory)

    def read(self, key: str) -> Analysis | None:
        """The result of an equal run, or None."""
        name = f"run-{key}.bin"
        entry = self.place.read_typed(name, _Entry)
        if entry is None or entry.key != key or any(file_digest(p) != d for p, d in entry.configs.items()):
            return None
        self.place.touch(name)
        return entry.analysis

    def write(self, key: str, analysis: Analysis) -> None:
        """Keep a result."""
        entry = _Entry(key, analysis, {p: file_digest(p) for p in analysis.config_files})
        self.place.write_typed(f"run-{key}.bin", entry, KEPT)


def file_digest(path: str) -> str:
    """A digest of a file's content, or of the names in a directory; ``missing`` where it cannot be read or is larger than
    what a run reads."""
    try:
        return content_digest(read_limited(path))
    except OSError:
        pass
    try:
        return content_digest("\0".join(sorted(os.listdir(path))).encode("utf-8", "surrogateescape"))
    except OSError:
        return "missing"
