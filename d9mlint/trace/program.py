"""The command of a traced program, and the settings of its processes. No framework is imported here."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from d9mlint.base.errors import UsageError

BOOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "boot")


class Program(NamedTuple):
    """A program as it is started: its command, and the file or directory of its source for the static
    analysis (empty where it is not known)."""

    command: tuple[str, ...]
    source: str


def program(arguments: Sequence[str], module: str | None) -> Program:
    """The program that arguments name: ``train.py ARGS``, a module, or a launcher such as torchrun.
    Raises UsageError."""
    if module is not None:
        return Program((sys.executable, "-m", module, *arguments), _module_source(module))
    if not arguments:
        raise UsageError("Name a program to trace: d9mlint trace train.py [ARGS].")
    first = arguments[0]
    if first.endswith(".py") or (os.path.isfile(first) and not os.access(first, os.X_OK)):
        if not os.path.isfile(first):
            raise UsageError(f"{first} does not exist.")
        return Program((sys.executable, *arguments), os.path.abspath(first))
    launcher = shutil.which(first) or shutil.which(first, path=os.path.dirname(sys.executable))
    if launcher is None:
        raise UsageError(f"{first} is neither a Python file nor a command.")
    return Program((launcher, *arguments[1:]), _script_source(arguments[1:]))


def _module_source(module: str) -> str:
    path = module.replace(".", os.sep)
    for found in (f"{path}.py", os.path.join(path, "__main__.py")):
        if os.path.isfile(found):
            return os.path.abspath(found)
    return ""


def _script_source(arguments: Sequence[str]) -> str:
    """The script behind a launcher: the first argument that is a Python file, or the module after ``-m``."""
    for number, argument in enumerate(arguments):
        if argument.endswith(".py") and os.path.isfile(argument):
            return os.path.abspath(argument)
        if argument in ("-m", "--module") and number + 1 < len(arguments):
            found = _module_source(arguments[number + 1])
            if found:
                return found
    return ""


def with_absolute_script(found: Program) -> Program:
    """The same program for another working directory: its script by an absolute path."""
    command = [
        os.path.abspath(part) if part.endswith(".py") and os.path.isfile(part) else part
        for part in found.command
    ]
    return found._replace(command=tuple(command))


class Perturbation(NamedTuple):
    """What is changed on purpose in a run."""

    hash_seed: str = ""
    listing: bool = False
    clock: int = 0
    memory: bool = False
    entropy: bool = False
    """The random bytes of the operating system are the same in every such run."""
    addresses: bool = False
    """Objects have the same addresses in every such run."""
    still: bool = False
    """The clock shows the same in every such run."""


NONE = Perturbation()
SECOND = Perturbation("1", True, 90_061, True)
"""A day, an hour, a minute and a second later."""


def environment(
    settings: Mapping[str, Any], path: str, perturbation: Perturbation, base: Mapping[str, str]
) -> dict[str, str]:
    """Write the settings of a run and return the environment that starts the tracer in its processes."""
    with open(path, "w", encoding="utf-8") as stream:
        changed = {name: getattr(perturbation, name) for name in ("listing", "clock", "entropy", "still")}
        json.dump({**settings, **changed}, stream, indent=1)
    env = dict(base)
    env["D9MLINT_TRACE"] = path
    env["PYTHONPATH"] = os.pathsep.join([BOOT, *([env["PYTHONPATH"]] if env.get("PYTHONPATH") else [])])
    if perturbation.hash_seed:
        env["PYTHONHASHSEED"] = perturbation.hash_seed
        if base.get("PYTHONHASHSEED") == perturbation.hash_seed:
            env["PYTHONHASHSEED"] = str(int(perturbation.hash_seed) + 1)
    if perturbation.memory:
        # glibc fills memory that it hands out and takes back with this byte: what is read uninitialized differs.
        env["MALLOC_PERTURB_"] = "165"
    return env
