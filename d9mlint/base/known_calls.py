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


USE = "use."
"""What names of arguments begin with that are those of a call of what the call has made."""


class KnownCall(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A call's arguments by keyword, and by position as ``"0"``, ``"1"``, ...; a method's receiver is ``"0"``.

    ``literals`` holds numbers, strings, booleans, None and sequences of them; ``tensors`` what is known to be a
    tensor. ``present`` names every argument of the call, known or not; ``complete`` says that it names all, so
    that what is absent has its default. ``use`` is what the module or layer that the call makes is called with,
    as far as all its calls agree; None where none is seen.
    """

    literals: dict[str, Any] = {}
    tensors: dict[str, Operand] = {}
    present: tuple[str, ...] = ()
    complete: bool = False
    use: KnownCall | None = None

    def name(self, keyword: str, position: int | None) -> str | None:
        """Under which name an argument is present; None where it is not."""
        if keyword in self.present:
            return keyword
        place = "" if position is None else str(position)
        return place if place in self.present else None

    def part(self, keyword: str) -> tuple[KnownCall | None, str]:
        """The call that has an argument, and its keyword there: ``use.input`` is one of the module that is made."""
        return (self.use, keyword.removeprefix(USE)) if keyword.startswith(USE) else (self, keyword)

    def agreed(self, other: KnownCall) -> KnownCall:
        """What is known of both of two calls that stand at one place."""
        if self == other:
            return self
        own, others = self.use, other.use
        return KnownCall(
            literals={
                k: v for k, v in self.literals.items() if k in other.literals and _same(v, other.literals[k])
            },
            tensors={k: _common(v, other.tensors[k]) for k, v in self.tensors.items() if k in other.tensors},
            present=tuple(dict.fromkeys((*self.present, *other.present))),
            complete=self.complete and other.complete and set(self.present) == set(other.present),
            use=own.agreed(others) if own is not None and others is not None else None,
        )

    @property
    def digest(self) -> str:
        """What two equal calls have in common."""
        return hashlib.sha256(msgspec.json.encode(self, order="sorted")).hexdigest()[:16]

    def dtypes(self) -> frozenset[str]:
        """The dtypes of the tensors: of the floating ones where any is known, for the others are indices. Empty
        where a tensor of unknown dtype could be the one that matters."""
        calls = [self, *([self.use] if self.use is not None else [])]
        known = {tensor.dtype for call in calls for tensor in call.tensors.values()}
        floating = {dtype for dtype in known if dtype and not _is_index(dtype)}
        unknown = "" in known or not all(
            name in call.tensors or name in call.literals for call in calls for name in call.present
        )
        return frozenset(floating or (() if unknown else known))


def _same(one: Any, other: Any) -> bool:
    """Whether two literals are equal and of one type: True is not 1."""
    return type(one) is type(other) and bool(one == other)


def _common(one: Operand, other: Operand) -> Operand:
    """What is known of both of two tensors."""
    return Operand(
        shape=one.shape if one.shape == other.shape else None,
        dtype=one.dtype if one.dtype == other.dtype else "",
        values=one.values if one.values == other.values else None,
        random=one.random and other.random,
    )


def _is_index(dtype: str) -> bool:
    return dtype.startswith(("int", "uint", "bool"))


class CallCondition(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True
):
    """A test of one argument, by keyword ``arg`` and position ``pos`` (a method's receiver is position 0);
    ``use.input`` is an argument of the call of the module that the call makes.

    Exactly one test is set: ``equals``, ``one_of``, ``given`` (present, and not None), ``length`` (of a literal
    sequence), ``rank`` (of a tensor), ``tensor`` (it is one, or one of its kind may be passed).
    ``default`` is the value of an argument that is not given. ``at`` are the positions of the argument in other APIs
    than the first one; null for those whose name says that the condition holds.
    """

    arg: str
    pos: int | None = None
    at: dict[str, int | None] = {}
    default: Any = msgspec.UNSET
    equals: Any = msgspec.UNSET
    one_of: tuple[Any, ...] | msgspec.UnsetType = msgspec.UNSET
    given: bool | msgspec.UnsetType = msgspec.UNSET
    length: int | msgspec.UnsetType = msgspec.UNSET
    rank: int | msgspec.UnsetType = msgspec.UNSET
    tensor: bool | msgspec.UnsetType = msgspec.UNSET


def holds(call: KnownCall, test: CallCondition, api: str = "") -> bool | None:
    """Whether a condition holds for a call of an API."""
    position = test.at.get(api, test.pos)
    if api in test.at and position is None:
        return True
    part, keyword = call.part(test.arg)
    if part is None:
        return None
    call, name = part, part.name(keyword, position)
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


def all_hold(call: KnownCall, tests: Sequence[CallCondition], api: str = "") -> bool | None:
    """Conjunction of conditions."""
    answers = [holds(call, test, api) for test in tests]
    if False in answers:
        return False
    return None if None in answers else True
