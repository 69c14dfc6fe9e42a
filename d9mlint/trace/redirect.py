"""Sends what a program writes under some directories to other ones, where no overlay file system can. Runs in traced
processes; standard library only.

The functions of ``os`` and ``open`` get the other path. Libraries that open files in C code are not reached, apart
from ``torch.save`` and ``torch.jit.save``.
"""

from __future__ import annotations

import builtins
import functools
import io
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_ONE_PATH = (
    "open",
    "stat",
    "lstat",
    "access",
    "mkdir",
    "rmdir",
    "remove",
    "unlink",
    "listdir",
    "scandir",
    "truncate",
    "chmod",
    "utime",
    "readlink",
    "mkfifo",
    "statvfs",
    "chdir",
)
_TWO_PATHS = ("rename", "replace", "link", "symlink")


class Redirected:
    """Pairs of a directory and the one that stands for it. The longest match wins."""

    def __init__(self, pairs: Sequence[Sequence[str]]) -> None:
        self._pairs = sorted(((a, b) for a, b in pairs), key=lambda pair: -len(pair[0]))

    def __call__(self, path: Any) -> Any:
        """The path to use for an absolute path; others stay as they are."""
        try:
            text = os.fspath(path)
        except TypeError:
            # A file descriptor.
            return path
        name = os.fsdecode(text)
        if not os.path.isabs(name):
            return path
        name = os.path.normpath(name)
        for original, own in self._pairs:
            if name == original or name.startswith(original.rstrip(os.sep) + os.sep):
                found = own + name[len(original.rstrip(os.sep)) :]
                return os.fsencode(found) if isinstance(text, bytes) else found
        return path


def redirect(pairs: Sequence[Sequence[str]]) -> None:
    """Redirect from now on."""
    mapped = Redirected(pairs)
    wrappers: dict[Callable[..., Any], Callable[..., Any]] = {}
    for names, wrap in ((_ONE_PATH, _first), (_TWO_PATHS, _both)):
        for name in names:
            if hasattr(os, name):
                original = getattr(os, name)
                wrappers[original] = wrap(original, mapped)
                _replace(name, original, wrappers[original])
    opened = _first(builtins.open, mapped)
    _redirect_pathlib({**wrappers, builtins.open: opened})
    builtins.open = opened
    io.open = opened


def _replace(name: str, original: Callable[..., Any], wrapper: Callable[..., Any]) -> None:
    for known in (os.supports_fd, os.supports_dir_fd, os.supports_follow_symlinks):
        if original in known:
            known.add(wrapper)
    setattr(os, name, wrapper)


def _redirect_pathlib(wrappers: Mapping[Callable[..., Any], Callable[..., Any]]) -> None:
    """Before Python 3.11, paths keep the functions that they call in a class."""
    import pathlib

    accessor = getattr(pathlib, "_NormalAccessor", None)
    for name, function in list(vars(accessor).items()) if accessor is not None else ():
        function = getattr(function, "__func__", function)
        wrapper = wrappers.get(function) if callable(function) else None
        if wrapper is not None:
            setattr(accessor, name, staticmethod(wrapper))


def _first(function: Callable[..., Any], mapped: Redirected) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if args and kwargs.get("dir_fd") is None:
            args = (mapped(args[0]), *args[1:])
        return function(*args, **kwargs)

    return call


def _both(function: Callable[..., Any], mapped: Redirected) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not any(kwargs.get(name) is not None for name in ("dir_fd", "src_dir_fd", "dst_dir_fd")):
            args = (*(mapped(one) for one in args[:2]), *args[2:])
        return function(*args, **kwargs)

    return call


def redirect_torch(torch: Any, pairs: Sequence[Sequence[str]]) -> None:
    """``torch.save`` and ``torch.jit.save`` open a path in C++."""
    mapped = Redirected(pairs)
    for owners in ((torch, torch.serialization), (torch.jit,)):
        wrapper = _saving(owners[0].save, mapped)
        for owner in owners:
            owner.save = wrapper


def _saving(save: Callable[..., Any], mapped: Redirected) -> Callable[..., Any]:
    @functools.wraps(save)
    def redirected(obj: Any, f: Any, *args: Any, **kwargs: Any) -> Any:
        return save(obj, mapped(f) if isinstance(f, (str, bytes, os.PathLike)) else f, *args, **kwargs)

    return redirected
