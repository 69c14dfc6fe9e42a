"""Installed plugins: distributions with entry points in the group ``d9mlint.rules``.

An entry point ``acme = "acme_rules"`` names a package. The Markdown pages and YAML files in it, at any depth, are rules
and facts as in a user's own files. ``acme = "acme_rules:RULES"`` names in addition a list of rules with code; only then
is the package imported. A plugin is used where the configuration names it, so that findings are the same on every
machine, and a run that names none looks for none.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sysconfig
from collections.abc import Sequence
from importlib import metadata
from typing import Any, NamedTuple

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.files import is_below
from d9mlint.base.paths import read_limited
from d9mlint.knowledge.layers import LayerFile, files_digest

GROUP = "d9mlint.rules"


class Plugin(NamedTuple):
    """A plugin by its name: the package that it names, the object in it that lists its rules with code (empty for
    none), and its files."""

    name: str
    package: str
    rules: str
    files: tuple[LayerFile, ...]


def find_plugins(names: Sequence[str], origin: str, top: str) -> tuple[Plugin, ...]:
    """The installed plugins of these names, without importing them. Raises UsageError, with the place that names
    them, for one that is not installed or that is part of ``top``, the linted project."""
    if not names:
        return ()
    points = {point.name: point for point in metadata.entry_points(group=GROUP)}
    found: list[Plugin] = []
    for name in names:
        point = points.get(name)
        if point is None:
            known = f" Installed plugins: {', '.join(sorted(points))}." if points else ""
            raise UsageError(
                f"{origin}: plugin {name} is not installed.{nearest(name, sorted(points))}{known}"
            )
        package = point.module.partition(".")[0]
        directory = _directory(name, package, origin)
        _refuse_project(name, directory, origin, top)
        found.append(Plugin(name, point.module, point.attr, _files(name, directory, origin)))
    return tuple(found)


def plugin_files(plugins: Sequence[Plugin]) -> tuple[LayerFile, ...]:
    """All files of plugins, in order."""
    return tuple(file for plugin in plugins for file in plugin.files)


def plugins_digest(plugins: Sequence[Plugin]) -> str:
    """What differs where the files of plugins do, wherever they are installed."""
    named = [
        LayerFile(f"{plugin.name}/{os.path.basename(file.path)}", file.data)
        for plugin in plugins
        for file in plugin.files
    ]
    return files_digest(named)


def load_rules(plugins: Sequence[Plugin], kind: type[Any]) -> list[type[Any]]:
    """The rules with code of plugins, which are subclasses of ``kind``. Raises UsageError."""
    found: list[type[Any]] = []
    for plugin in plugins:
        if not plugin.rules:
            continue
        where = f"plugin {plugin.name}: {plugin.package}:{plugin.rules}"
        try:
            listed: Any = importlib.import_module(plugin.package)
            for part in plugin.rules.split("."):
                listed = getattr(listed, part)
        except Exception as error:
            # Whatever goes wrong in it is the plugin's, and is said in a line.
            raise UsageError(
                f"{where} cannot be imported: {type(error).__name__}: {error}".split("\n")[0]
            ) from error
        if not isinstance(listed, (list, tuple)):
            raise UsageError(f"{where} is not a list of rules.")
        rule: Any
        for rule in listed:
            if not (isinstance(rule, type) and issubclass(rule, kind)):
                raise UsageError(f"{where} lists {rule!r}, which is not a subclass of d9mlint.api.Rule.")
            codes: tuple[str, ...] = getattr(rule, "codes", ())
            if not codes or any(code.startswith("DET") for code in codes):
                raise UsageError(f"{where}: {rule.__name__}.codes must be codes of the plugin's own pages.")
            found.append(rule)
    return found


def _directory(name: str, package: str, origin: str) -> str:
    """The directory of a package, which is not imported for it."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise UsageError(f"{origin}: plugin {name} names {package}, which is not an installed package.")
    return os.path.realpath(next(iter(spec.submodule_search_locations)))


def _refuse_project(name: str, directory: str, origin: str, top: str) -> None:
    """What is linted is never imported, nor does it say what is reported. The environment that d9mlint runs in may
    be inside of the project; what is installed there is as trusted as d9mlint itself."""
    own = {os.path.realpath(sysconfig.get_paths()[key]) for key in ("purelib", "platlib")}
    if is_below(directory, os.path.realpath(top)) and not any(is_below(directory, one) for one in own):
        raise UsageError(
            f"{origin}: plugin {name} is part of the linted project ({directory}) and is not loaded."
        )


def _files(name: str, directory: str, origin: str) -> tuple[LayerFile, ...]:
    found: list[LayerFile] = []
    for parent, names, files in os.walk(directory):
        names[:] = sorted(one for one in names if one != "__pycache__")
        for file in sorted(files):
            if not file.endswith((".md", ".yaml", ".py")) or file in ("README.md", "CHANGELOG.md"):
                continue
            path = os.path.join(parent, file)
            try:
                found.append(LayerFile(path, read_limited(path), trusted=True))
            except OSError as error:
                raise UsageError(
                    f"{origin}: plugin {name}: {path} cannot be read: {error.strerror or error}."
                ) from error
    return tuple(found)


__all__ = ["GROUP", "Plugin", "find_plugins", "load_rules", "plugin_files", "plugins_digest"]
