"""Which files a run reads, and which of them it reports on.

Arguments filter what is reported, not what is read: ``d9mlint train.py`` sees the same program as
``d9mlint .``. So the project's root is looked for first, its files are read, and the arguments say only
which of them may have findings.
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.paths import (
    absolute,
    boundary,
    common_directory,
    find_root,
    is_huge,
    is_inside,
    parents,
    relative_to,
)
from d9mlint.config.git_index import Tracked
from d9mlint.config.gitignore import Ignore, ignored, make_ignore, read_ignore, read_lines

# fmt: off
DEFAULT_EXCLUDE = (
    ".bzr", ".direnv", ".eggs", ".git", ".git-rewrite", ".hg", ".ipynb_checkpoints", ".mypy_cache", ".nox",
    ".pants.d", ".pyenv", ".pytest_cache", ".pytype", ".ruff_cache", ".svn", ".tox", ".venv*", ".virtual_documents",
    ".vscode", ".d9mlint_cache", "__pycache__", "__pypackages__", "_build", "buck-out", "build", "dist",
    "node_modules", "site-packages", "venv", "wandb", "mlruns", "*.egg-info", "*{{*",
)
# fmt: on
"""Names that hold no code of the project itself."""

CODE_SUFFIXES = (".py", ".ipynb")
DOCKERFILE = "Dockerfile"
SETUP = "setup.py"
CONFIG_SUFFIXES = (
    ".yaml",
    ".yml",
    ".json",
    ".toml",
    ".cfg",
    ".ini",
    ".txt",
    ".lock",
    "Pipfile",
    DOCKERFILE,
)
"""Files that say how a program is run, or for which versions it is meant."""

PIN_DIRECTORY = re.compile(
    r"(?:^|[-_.])(?:conda|conf|configs?|configuration|dependencies|deps|devcontainer|docker|envs?|environments?|etc|install|"
    r"misc|reqs?|requirements?|setup)(?:[-_.]|$)",
    re.IGNORECASE,
)
"""Directories that usually hold files of the project above them that pin versions: ``docker``, ``conda_envs``."""
_SCRIPT_DIRECTORY = re.compile(
    r"(?:^|[-_.])(?:bash|clusters?|experiments?|hpc|jobs?|launch|runs?|sbatch|scripts?|sh|shell|slurm|submit)(?:[-_.]|$)",
    re.IGNORECASE,
)
"""Directories that usually hold scripts which run the project: ``jobs``, ``slurm_scripts``."""

ENVIRONMENT_MARKER = "pyvenv.cfg"
"""A directory that holds this file is a virtual environment, whatever its name."""


class Discovery(NamedTuple):
    """``files`` are all files to read and ``reported`` those that may have findings; both sorted, absolute,
    with slashes. ``root`` is the project's root. ``left_out`` counts the files that would be reported if git did not ignore
    them, in directories that it does not ignore. ``configs`` are the names of configuration files by
    directory. ``outside`` are links that lead out of the project and were not named: they are not read. ``warnings`` say
    which directories could not be read."""

    root: str
    files: tuple[str, ...]
    reported: frozenset[str]
    configs: dict[str, list[str]]
    outside: frozenset[str] = frozenset()
    warnings: tuple[str, ...] = ()
    left_out: int = 0


def discover(
    arguments: Sequence[str],
    *,
    exclude: Iterable[str] = DEFAULT_EXCLUDE,
    exclude_base: str | None = None,
    respect_gitignore: bool = True,
    force_exclude: bool = False,
) -> Discovery:
    """Find the files of the project around ``arguments``.

    ``exclude`` are patterns in the language of ``.gitignore``, relative to ``exclude_base`` (default: the
    root). Files that are named themselves are taken all the same, unless
    ``force_exclude``. Raises UsageError for a path that does not exist.
    """
    named = [absolute(a) for a in arguments]
    for argument, path in zip(arguments, named, strict=True):
        if not os.path.exists(path):
            raise UsageError(_missing(argument, path))
        if os.path.isdir(path):
            try:
                os.scandir(path).close()
            except OSError as error:
                raise UsageError(f"{argument} cannot be read: {error.strerror or error}.") from error
    common = common_directory(named)
    root = find_root(common)
    walker = Walker(root, make_ignore(exclude_base or root, exclude), respect_gitignore)
    files: set[str] = set()
    if is_huge(root):
        for path in named:
            if not os.path.isdir(path):
                files |= set(walker.walk(os.path.dirname(path), deep=False))
    else:
        files |= set(walker.walk(root))
    reported: set[str] = set()
    for path in named:
        if not os.path.isdir(path):
            if not path.endswith(".pyi") and not (force_exclude and walker.excluded(path)):
                reported.add(path)
        elif is_huge(root):
            reported |= set(walker.walk(path))
        else:
            prefix = path.rstrip("/") + "/"
            below = {f for f in files if f.startswith(prefix)}
            # A directory that is itself excluded was not walked, but it was asked for.
            reported |= below or set(walker.walk(path))
    for directory in pin_directories(root):
        # Pins count also where the directory is ignored: see ``config/pins.py``.
        walker.look_for_configs(directory)
    outside = walker.outside.difference(named)
    warnings = tuple(
        f"{relative_to(p, root)} cannot be read: {why}." for p, why in sorted(walker.unreadable.items())
    )
    return Discovery(
        root,
        tuple(sorted(files | reported)),
        frozenset(reported),
        walker.configs,
        frozenset(outside),
        warnings,
        sum(any(is_inside(path, top) for top in named) for path in walker.left_out - reported),
    )


def holds_pins(directory: str) -> bool:
    """Whether a directory's name is one of those that usually hold pin files of the project above it."""
    return PIN_DIRECTORY.search(os.path.basename(directory)) is not None


def pin_directories(root: str) -> list[str]:
    """The directories of a project that usually hold its pin files. Virtual environments are none of them."""
    return _directories(root, holds_pins)


def script_directories(root: str) -> list[str]:
    """The directories of a project that usually hold scripts which run it."""
    return _directories(root, lambda directory: _SCRIPT_DIRECTORY.search(directory) is not None)


def _directories(root: str, wanted: Callable[[str], bool]) -> list[str]:
    try:
        with os.scandir(root) as entries:
            found = sorted(e.path for e in entries if e.is_dir(follow_symlinks=False) and wanted(e.name))
    except OSError:
        return []
    return [path for path in found if not os.path.lexists(os.path.join(path, ENVIRONMENT_MARKER))]


class Walker:
    """Walks directories: sorted, honouring excludes and ignore files, never following directory links."""

    def __init__(self, root: str, exclude: Ignore, respect_gitignore: bool) -> None:
        self.root = root
        self.exclude = exclude
        self.respect_gitignore = respect_gitignore
        self.configs: dict[str, list[str]] = {}
        self.outside: set[str] = set()
        self.left_out: set[str] = set()
        """The files that git ignores, in the directories that were walked and in those that it ignores there."""
        self.boundary = boundary(root)
        self.unreadable: dict[str, str] = {}
        self._tracked: dict[str, Tracked] = {}

    def walk(self, top: str, deep: bool = True) -> list[str]:
        """All Python files and notebooks at or below ``top``."""
        found: list[str] = []
        stack: tuple[Ignore, ...] = self._above(top) if self.respect_gitignore else ()
        tracked = self._tracked_around(top)
        # With each directory, whether it is ignored: then only what git tracks in it is taken.
        pending = [(top, stack, False)]
        while pending:
            directory, outer, is_ignored = pending.pop()
            try:
                entries = _scan(directory)
            except OSError as error:
                self.unreadable[directory] = error.strerror or str(error)
                continue
            names = {e.name for e in entries}
            self._note_configs(directory, entries)
            inner = outer
            if self.respect_gitignore and ".gitignore" in names:
                inner = (*outer, read_ignore(directory))
            if directory != top and ENVIRONMENT_MARKER in names:
                continue
            for entry in entries:
                path = f"{directory.rstrip('/')}/{entry.name}"
                try:
                    is_directory = entry.is_dir(follow_symlinks=False)
                    if is_directory and not deep:
                        continue
                    if is_directory or (entry.name.endswith(CODE_SUFFIXES) and _is_file(entry, self.root)):
                        if self.exclude.verdict(path, is_directory):
                            continue
                        left_out = is_ignored or ignored(inner, path, is_directory)
                        if left_out and not (tracked and tracked.holds(path, is_directory)):
                            self.left_out.update(self._code_in(path) if is_directory else (path,))
                            continue
                        if is_directory:
                            pending.append((path, inner, left_out))
                        else:
                            found.append(path)
                            if entry.is_symlink() and not is_inside(path, self.boundary):
                                self.outside.add(path)
                except OSError:
                    continue
        return sorted(found)

    def _code_in(self, directory: str) -> list[str]:
        """The files with code in a directory that git ignores: not those in further ones, of which there may be many, nor
        those of a virtual environment."""
        try:
            entries = _scan(directory)
        except OSError:
            return []
        if any(one.name == ENVIRONMENT_MARKER for one in entries):
            return []
        code = [
            one
            for one in entries
            if one.name.endswith(CODE_SUFFIXES) and not self.exclude.verdict(one.path, False)
        ]
        return [one.path for one in code if _is_file(one, self.root)]

    def look_for_configs(self, directory: str) -> None:
        """Note the configuration files of a directory that may have been excluded."""
        if directory not in self.configs:
            with contextlib.suppress(OSError):
                self._note_configs(directory, _scan(directory))

    def _note_configs(self, directory: str, entries: Iterable[os.DirEntry[str]]) -> None:
        names = [e.name for e in entries if _configures(e.name)]
        if names:
            self.configs[directory] = names

    def excluded(self, path: str, is_directory: bool = False) -> bool:
        """Whether a file or directory, or a directory that it is in, is excluded."""
        base = self.root.rstrip("/") + "/"
        above = [p for p in parents(os.path.dirname(path)) if p.startswith(base)]
        if self.exclude.verdict(path, is_directory) or any(self.exclude.verdict(p, True) for p in above):
            return True
        stack = self._above(os.path.dirname(path)) if self.respect_gitignore else ()
        if not ignored(stack, path, is_directory) and not any(ignored(stack, p, True) for p in above):
            return False
        tracked = self._tracked_around(os.path.dirname(path))
        return tracked is None or not tracked.holds(path, is_directory)

    def _tracked_around(self, top: str) -> Tracked | None:
        """What git tracks in the repository that a directory is in."""
        if not self.respect_gitignore or (root := _repository(top)) is None:
            return None
        return self._tracked.setdefault(root, Tracked(root))

    def _above(self, top: str) -> tuple[Ignore, ...]:
        """The ignore files that lie above a directory, up to the repository's root."""
        root = _repository(top)
        if root is None:
            return ()
        above = parents(top)
        chain = [read_ignore(d) for d in reversed(above[1 : above.index(root) + 1]) if _has_ignore(d)]
        excluded = os.path.join(root, ".git", "info", "exclude")
        if os.path.isfile(excluded):
            chain.insert(0, make_ignore(root, read_lines(excluded)))
        return tuple(chain)


def _configures(name: str) -> bool:
    """Whether a file may configure or pin."""
    return name == SETUP or name.endswith(CONFIG_SUFFIXES) or name.startswith(DOCKERFILE)


def _repository(top: str) -> str | None:
    """The root of the repository that a directory is in."""
    return next((d for d in parents(top) if os.path.lexists(os.path.join(d, ".git"))), None)


def _scan(directory: str) -> list[os.DirEntry[str]]:
    """The directories and the files of interest in a directory; it may hold a million images besides.

    Raises OSError.
    """
    wanted = (*CODE_SUFFIXES, *CONFIG_SUFFIXES, ".gitignore")
    with os.scandir(directory) as entries:
        found = [
            e
            for e in entries
            if e.name.endswith(wanted) or e.name.startswith(DOCKERFILE) or e.is_dir(follow_symlinks=False)
        ]
    return sorted(found, key=lambda e: e.name)


def _is_file(entry: os.DirEntry[str], root: str) -> bool:
    """Whether something in a directory is read. Links to files inside the root would be read twice. FIFOs and
    devices count: they are reported, though never opened."""
    if not entry.is_symlink():
        return True
    return os.path.exists(entry.path) and not os.path.isdir(entry.path) and not is_inside(entry.path, root)


def _has_ignore(directory: str) -> bool:
    return os.path.isfile(os.path.join(directory, ".gitignore"))


def _missing(argument: str, path: str) -> str:
    directory = os.path.dirname(path)
    if os.path.lexists(path):
        return f"{argument} is a broken symbolic link."
    while not os.path.isdir(directory):
        path, directory = directory, os.path.dirname(directory)
    try:
        names = os.listdir(directory)
    except OSError:
        names = []
    return f"{argument} does not exist.{nearest(os.path.basename(path), names)}"
