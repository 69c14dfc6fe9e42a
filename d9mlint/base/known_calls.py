"""A call as plain data, as far as the analysis knows it: literal arguments, shapes and dtypes of tensors.

What is not known is simply not there, so richer analysis makes the same questions answerable without a change
here. Questions have three answers: yes, no, and None for unknown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

MOST_VALUES = 4096
"""Literal elements of a tensor that are kept."""


class Operand(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A tensor argument. ``shape`` is None and ``dtype`` empty where unknown; ``values`` are the elements of a
    tensor of one dimension that the program writes out; ``random``: they are integers drawn at random."""

    shape: tuple[int, ...] | None = None
    dtype: str = ""
    values: tuple[int | float, ...] | None = None
    random: bool = False


class KnownCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call's arguments by keyword, and by position as ``"0"``, ``"1"``, ...; a method's receiver is ``"0"``.

    ``literals`` holds numbers, strings, booleans, None and sequences of them; ``tensors`` what is known to be a
    tensor. ``present`` names every argument of the call, known or not; ``complete`` says that it names all, so
    that what is absent has its default.
    """

    literals: dict[str, Any] = {}
    tensors: dict[str, Operand] = {}
    present: tuple[str, ...] = ()
    complete: bool = False

    def name(self, keyword: str, position: int | None) -> str | None:
        """Under which name an argument is present; None where it is not."""
        if keyword in self.present:
            return keyword
        place = "" if position is None else str(position)
        return place if place in self.present else None

    @property
    def digest(self) -> str:
        """What two equal calls have in common."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]

    def dtypes(self) -> frozenset[str]:
        """The dtypes of the tensors: of the floating ones where any is known, for the others are indices. Empty
        where a tensor of unknown dtype could be the one that matters."""
        known = {tensor.dtype for tensor in self.tensors.values()}
        floating = {dtype for dtype in known if dtype and not _is_index(dtype)}
        unknown = "" in known or not all(
            name in self.tensors or name in self.literals for name in self.present
        )
        return frozenset(floating or (() if unknown else known))


def _is_index(dtype: str) -> bool:
    return dtype.startswith(("int", "uint", "bool"))


class CallCondition(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A test of one argument, by keyword ``arg`` and position ``pos`` (a method's receiver is position 0).

    Exactly one test is set: ``equals``, ``one_of``, ``given`` (present, and not None), ``length`` (of a literal
    sequence), ``rank`` (of a tensor), ``tensor`` (it is one, or one of its kind may be passed).
    ``default`` is the value of an argument that is not given.
    """

    arg: str
    pos: int | None = None
    default: Any = msgspec.UNSET
    equals: Any = msgspec.UNSET
    one_of: tuple[Any, ...] | msgspec.UnsetType = msgspec.UNSET
    given: bool | msgspec.UnsetType = msgspec.UNSET
    length: int | msgspec.UnsetType = msgspec.UNSET
    rank: int | msgspec.UnsetType = msgspec.UNSET
    tensor: bool | msgspec.UnsetType = msgspec.UNSET


def holds(call: KnownCall, test: CallCondition) -> bool | None:
    """Whether a condition holds for a call."""
    name = call.name(test.arg, test.pos)
    if test.given is not msgspec.UNSET:
        if name is None:
            return not test.given if call.complete else None
        return None if name not in call.literals else (call.literals[name] is not None) is test.given
    if test.rank is not msgspec.UNSET:
        tensor = call.tensors.get(name or "")
        return None if tensor is None or tensor.shape is None else len(tensor.shape) == test.rank
    if test.tensor is not msgspec.UNSET:
        if name in call.tensors:
            return test.tensor
        return not test.tensor if name in call.literals else None
    if name is None:
        if not call.complete or test.default is msgspec.UNSET:
            return None
        value = test.default
    elif name in call.literals:
        value = call.literals[name]
    else:
        return None
    if test.length is not msgspec.UNSET:
        return len(value) == test.length if isinstance(value, (tuple, list)) else None
    if test.one_of is not msgspec.UNSET:
        return value in test.one_of
    return bool(value == test.equals)


def all_hold(call: KnownCall, tests: Sequence[CallCondition]) -> bool | None:
    """Conjunction of conditions."""
    answers = [holds(call, test) for test in tests]
    if False in answers:
        return False
    return None if None in answers else True
