"""Functions, classes and modules of the program that are put where a library has its own."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.library_modules import MODULE, is_module

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge import Knowledge

_OF_PYTHON = frozenset({"builtins", "object", "super", "?"}) | sys.stdlib_module_names
"""What stands for Python in names, and its library."""


def is_followed(kb: Knowledge, name: str) -> bool:
    """Whether it is known what the library of a name does with what it is given, or that this matters to no program."""
    library = name.partition(".")[0]
    return library in _OF_PYTHON or kb.role(library, "followed") is not None


def in_library(interp: Interp, value: v.Value) -> v.Value:
    """What an attribute of a library's module or class holds that the program sets: only of its functions and classes it is
    known that the library calls them; where it may not be set, the library's own is there too."""
    if not isinstance(value, (v.Func, v.Partial, v.Cls)):
        return v.UNKNOWN
    return v.join((value, v.UNKNOWN)) if interp.branching else value


def into(interp: Interp, owner: v.Value, value: v.Value) -> None:
    """Something is stored in an object of a library, as an attribute or an item."""
    if interp.importing or interp.speculating:
        return
    if isinstance(value, v.Inst):
        if _may_be_model(interp, owner) and is_own_module(interp, value.cls):
            interp.placed[id(value)] = value
    elif isinstance(value, (v.Func, v.Partial)) and is_called(library_of("", owner)):
        interp.placed[id(value)] = value


def _root(owner: v.Value) -> v.Value:
    while isinstance(owner, v.Member):
        owner = owner.owner
    return owner


def _may_be_model(interp: Interp, owner: v.Value) -> bool:
    root = _root(owner)
    return root is v.UNKNOWN or (
        isinstance(root, v.Obj) and (root.api.startswith("?") or is_module(interp, root))
    )


def library_of(api: str, owner: v.Value | None) -> str:
    """A name of the library whose function is called, or a method of one of whose objects; empty where that is not known."""
    if owner is None:
        return api
    root = _root(owner)
    return root.api if isinstance(root, v.Obj) else ""


def is_called(name: str) -> bool:
    """Whether a name is that of a library: what is put into objects of Python, such as the options of a program, waits for
    the program itself."""
    head = name.partition(".")[0]
    return head.isidentifier() and head not in sys.stdlib_module_names


def is_own_module(interp: Interp, cls: v.Cls) -> bool:
    """Whether a class of the program is one of modules."""
    return any(interp.kb.canonical(base) == MODULE for base in cls.external_bases())
