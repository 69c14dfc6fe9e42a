"""One run over several projects: which configuration and which pinned versions hold for each file.

As in ruff, the nearest configuration holds for a file; the same goes for pins of PyTorch, TensorFlow and JAX.
All files remain one program, so imports between the projects are followed. An entry point is analyzed with
the versions and the device of its own project; selection, ignores, severities and baselines are those of
the file in which a finding is.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.base.paths import parents
from d9mlint.config.discover import SETUP, Discovery, holds_pins
from d9mlint.config.gitignore import make_ignore
from d9mlint.config.settings import CONFIG_NAMES, KEYS, Settings, field, find_config, load_settings

if TYPE_CHECKING:
    from d9mlint.config.pins import Pin

VERSIONED = frozenset({"torch", "tensorflow", "jax"})
"""Libraries whose pins make a directory a project of its own."""
_PIN_ENDINGS = (".txt", ".toml", ".cfg", ".lock", ".yml", ".yaml", "Pipfile", "Dockerfile", SETUP)
COMMAND_LINE = "command line"


class Part(NamedTuple):
    """A project of a run: its ``directory``, the ``settings`` of its files, the directory whose ``pins`` hold,
    and its own ``files`` (those that its configuration excludes are in no part)."""

    directory: str
    settings: Settings
    pins: str
    files: frozenset[str]


def split(found: Discovery, settings: Settings) -> list[Part]:
    """The projects of a run, that of the root first; one of them where nothing below the root differs."""
    root = found.root
    configured = {root: settings}
    pinned = {root}
    for directory in _candidates(found):
        if settings.nested and _has_config(directory):
            configured[directory] = load_settings(directory, overrides=_given(settings))
        if _has_pins(directory, root):
            pinned.add(directory)
    tops = {root, *configured, *pinned}
    files: dict[str, set[str]] = {top: set() for top in sorted(tops)}
    for path in found.files:
        # Files named on the command line may lie outside of the root.
        files[next((d for d in parents(os.path.dirname(path)) if d in tops), root)].add(path)
    result: list[Part] = []
    for top, own in files.items():
        around = [d for d in parents(top) if d == root or d.startswith(root.rstrip("/") + "/")] or [root]
        at = next(d for d in around if d in configured)
        if top != root and at != root:
            own = set(_kept(sorted(own), configured[at], at))
        if own or top == root:
            pins = next(d for d in around if d in pinned)
            result.append(Part(top, configured[at], pins, frozenset(own)))
    return result


def _candidates(found: Discovery) -> Iterator[str]:
    """Directories below the root that have files which may configure or pin, and code below them."""
    code = {d for path in found.files for d in parents(os.path.dirname(path))}
    inside = found.root.rstrip("/") + "/"
    candidates: set[str] = set()
    for directory, names in found.configs.items():
        if any(name.endswith(_PIN_ENDINGS) for name in names):
            candidates.add(directory)
            if holds_pins(directory):
                candidates.add(os.path.dirname(directory))
    yield from sorted(d for d in candidates if d.startswith(inside) and d in code)


def _has_config(directory: str) -> bool:
    path = find_config(directory)
    return path is not None and os.path.dirname(path) == directory and os.path.basename(path) in CONFIG_NAMES


def _has_pins(directory: str, root: str) -> bool:
    """Whether a directory pins a framework, or what is built for one release of it, or asks for an extra of one
    (``jax[cuda12]``) that the root does not pin."""
    from d9mlint.config.markers import holds
    from d9mlint.config.pins import read_pins
    from d9mlint.knowledge import load

    built_for = load().built_for

    def pinned(pins: Iterable[Pin]) -> set[str]:
        held = [pin for pin in pins if not pin.aside and holds(pin.marker)]
        # A release of torchvision or torchaudio needs the one of PyTorch that it is built for.
        leaders = {leader for pin in held if pin.settled for leader in built_for.get(pin.library, ())}
        return ({pin.library for pin in held} | leaders) & VERSIONED

    found = read_pins(Path(directory))
    if pinned(found.pins):
        return True
    parts = [one.library.partition("[") for one in found.asked if holds(one.marker)]
    extras = {library for library, bracket, _ in parts if bracket and library in VERSIONED}
    return bool(extras) and not extras <= pinned(read_pins(Path(root)).pins)


def _given(settings: Settings) -> dict[str, object]:
    """What the command line says, which goes before every configuration."""
    return {key: getattr(settings, field(key)) for key in KEYS if settings.origins.get(key) == COMMAND_LINE}


def _kept(files: Sequence[str], settings: Settings, directory: str) -> Iterator[str]:
    """The files that a nested configuration does not exclude."""
    ignore = make_ignore(settings.base or directory, (*settings.exclude, *settings.extend_exclude))
    inside = directory.rstrip("/") + "/"
    for path in files:
        above = [d for d in parents(os.path.dirname(path)) if d.startswith(inside)]
        if not ignore.verdict(path, False) and not any(ignore.verdict(d, True) for d in above):
            yield path
