"""Paths of a project: its root and boundary; and reading the files that it names: only regular ones, only so much
of them, and only inside the boundary."""

from __future__ import annotations

import errno
import itertools
import os
import re
import stat
from collections.abc import Sequence

from d9mlint.base.errors import UsageError
from d9mlint.base.files import is_below

MARKERS = ("pyproject.toml", "d9mlint.toml", ".git", "setup.py", "setup.cfg")
"""A directory that holds one of these is a project's root."""
REQUIREMENTS = ("requirements.txt", "environment.yml", "environment.yaml", "Pipfile")
"""So is one that holds one of these, where none above it is marked."""

TESTS = re.compile(r"(^|/)(tests?/.*|test_[^/]*|[^/]*_test)\.py$")
"""Where test runners look for tests, in paths relative to the project's root."""

LARGEST = 1_000_000
"""Bytes of the largest configuration file that is read; larger ones are data."""

_OTHER_KINDS = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a directory",
}


class TooLarge(OSError):
    """The file has more bytes than are read."""


def is_inside(path: str, directory: str) -> bool:
    """Whether a path is a directory or inside of it once all links are resolved, compared by components."""
    return is_below(_resolved(path), _resolved(directory))


def _resolved(path: str) -> str:
    real = os.path.realpath(path)
    return real if os.sep == "/" else real.replace(os.sep, "/")


def read_limited(path: str, limit: int = LARGEST) -> bytes:
    """The content of a regular file of at most ``limit`` bytes.

    Raises OSError for any other file, TooLarge among them. A FIFO, a socket or a device is never opened, so
    that nobody waits for it, and a file that is replaced by one in between is not read either.
    """
    _must_be_regular(path, os.stat(path).st_mode)
    flags = (
        os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
    )
    with open(os.open(path, flags), "rb") as stream:
        _must_be_regular(path, os.fstat(stream.fileno()).st_mode)
        data = stream.read(limit + 1)
    if len(data) > limit:
        raise TooLarge(errno.EFBIG, "the file is too large", path)
    return data


def _must_be_regular(path: str, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = _OTHER_KINDS.get(stat.S_IFMT(mode), "not a regular file")
        raise OSError(errno.EINVAL, f"it is {kind}", path)


def absolute(path: str, cwd: str | None = None) -> str:
    """An absolute path with slashes, without following links."""
    if cwd is None and not os.path.isabs(path):
        try:
            cwd = os.getcwd()
        except OSError as error:
            raise UsageError(f"The working directory cannot be read: {error.strerror or error}.") from error
    full = os.path.normpath(os.path.join(cwd or "", path))
    return full.replace(os.sep, "/") if os.sep != "/" else full


def relative_to(path: str, base: str) -> str:
    """A path relative to ``base`` with slashes; the absolute path when it is not below it."""
    prefix = base.rstrip("/") + "/"
    return path[len(prefix) :] if path.startswith(prefix) else path


def common_directory(arguments: Sequence[str]) -> str:
    """The innermost directory that holds all arguments."""
    directories = [a if os.path.isdir(a) else os.path.dirname(a) for a in arguments]
    try:
        return absolute(os.path.commonpath(directories))
    except ValueError:
        return directories[0]


def find_root(directory: str) -> str:
    """The project root at or above a directory.

    Where no marker shows it: the directory that says what to install, or else the outermost package that the
    directory is a part of, or the directory itself.
    """
    above = list(itertools.takewhile(lambda path: not is_huge(path), parents(directory)))
    for markers in (MARKERS, REQUIREMENTS):
        for candidate in above:
            if any(os.path.lexists(os.path.join(candidate, marker)) for marker in markers):
                return candidate
    packages = itertools.takewhile(lambda path: os.path.lexists(os.path.join(path, "__init__.py")), above)
    return [directory, *packages][-1]


def boundary(directory: str) -> str:
    """The directory that a project's own configuration may reach into: the top of the git repository around
    ``directory``, or the project's root without git."""
    for candidate in parents(directory):
        if os.path.lexists(os.path.join(candidate, ".git")):
            return candidate
    return find_root(directory)


def parents(directory: str) -> list[str]:
    """A directory and everything above it, innermost first."""
    result = [directory]
    while os.path.dirname(directory) != directory:
        directory = os.path.dirname(directory)
        result.append(directory)
    return result


def is_huge(directory: str) -> bool:
    """Whether a directory is no project but everybody's: the root, a home, the temporary directory."""
    known = {
        absolute(p)
        for p in (os.path.expanduser("~"), os.environ.get("TMPDIR", "/tmp"), "/tmp", "/home", "/usr")
    }
    return os.path.dirname(directory) == directory or directory in known
