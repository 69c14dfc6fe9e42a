"""What a recipe takes of the call of a finding: options, shapes and indices, under its own names."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import msgspec

from d9mlint.base.known_calls import USE
from d9mlint.evidence.model import Given
from d9mlint.verify.scope import MOST

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.base.known_calls import KnownCall, Operand
    from d9mlint.verify.recipes import Recipe

_ASKED = {
    kind: re.compile(rf"\b(?:{words})\('(\w+)'")
    for kind, words in (("index", "index"), ("tensor", "shape|index|optional"), ("option", "known"))
}
"""Which names a recipe asks for as indices, as tensors and as options."""
_IDLE = frozenset({"device", "name"})
"""Arguments that decide where a result lies or what it is called, and nothing that is computed."""


def of_call(recipe: Recipe, finding: Finding) -> Recipe | None:
    """A recipe with what is known of a finding's call; None where nothing is that it could take."""
    call, parameters = finding.call, recipe.call.get(finding.subject)
    if call is None or not parameters:
        return None
    taking = _Taking(recipe, call)
    for name, parameter in parameters.items():
        keyword, position = parameter if isinstance(parameter, tuple) else (name, parameter)
        if not taking.take(name, keyword, position):
            return None
    for test in recipe.form:
        taking.places.add(_place(call, test.arg, test.at.get(finding.subject, test.pos)))
    given = taking.given()
    if not given:
        return None
    return msgspec.structs.replace(
        recipe,
        id=f"{recipe.id} [{call.digest[:8]}]",
        dtypes=tuple(taking.dtypes) if len(taking.dtypes) == 1 else recipe.dtypes[:1],
        control="",
        given=given,
    )


class _Taking:
    """What has been taken of a call until now; ``places``: where it stood."""

    def __init__(self, recipe: Recipe, call: KnownCall) -> None:
        self.call = call
        self.dtypes = call.dtypes()
        self.places: set[str] = set()
        self._asked = {kind: set(names.findall(recipe.make)) for kind, names in _ASKED.items()}
        self._found = Given()

    def take(self, name: str, keyword: str, position: int | None) -> bool:
        """Take an argument; whether the recipe can stand for a call with it."""
        part, own = self.call.part(keyword)
        if part is None:
            self._add(unknown=name)
            return True
        place = part.name(own, position)
        self.places.add(_place(self.call, keyword, position))
        tensor = part.tensors.get(place or "")
        if tensor is not None:
            # A mask is no index: it names no element twice.
            return self._tensor(name, tensor)
        if place in part.literals:
            self._literal(name, own, part.literals[place])
        elif place is None and part.complete:
            self._add(absent=name)
        else:
            self._add(unknown=name)
        return True

    def _tensor(self, name: str, tensor: Operand) -> bool:
        is_index = name in self._asked["index"]
        if is_index and tensor.dtype == "bool":
            return False
        fits = is_index or (name in self._asked["tensor"] and _has_dtype(tensor, self.dtypes))
        if tensor.shape is None or not fits:
            self._add(unknown=name)
            return True
        self._add(shapes={name: tensor.shape})
        if is_index:
            # Which elements an index names decides whether it can race at all.
            known = tensor.values is not None
            self._add(
                dtypes={name: tensor.dtype} if tensor.dtype else {},
                index={name: tensor.values} if known else {},
                unknown="" if known or tensor.random else name,
            )
        return True

    def _literal(self, name: str, keyword: str, value: Any) -> None:
        if value is None or name in self._asked["option"] or name not in self._asked["tensor"]:
            self._add(values={name: value}, words={name: keyword} if keyword != name else {})
            return
        # A sequence of numbers is as good as a tensor.
        sides = _sides(value)
        is_index = name in self._asked["index"]
        if len(sides) == 1 and is_index:
            self._add(index={name: tuple(value)})
        elif is_index or not sides:
            self._add(unknown=name)
        self._add(shapes={name: sides} if sides else {})

    def _add(self, absent: str = "", unknown: str = "", **found: dict[str, Any]) -> None:
        old = self._found
        self._found = msgspec.structs.replace(
            old,
            absent=(*old.absent, absent) if absent else old.absent,
            unknown=(*old.unknown, unknown) if unknown else old.unknown,
            **{field: {**getattr(old, field), **more} for field, more in found.items()},
        )

    def given(self) -> Given:
        """All of it."""
        found, call = self._found, self.call
        if not found.shapes.keys() - self._asked["index"]:
            # Indices have their dtype, which is not that of what they name.
            self.dtypes = frozenset()
        there = {
            *call.present,
            *(USE + place for place in (call.use.present if call.use is not None else ())),
        }
        left = {place.removeprefix(USE) for place in there - self.places} - _IDLE
        not_taken = sorted(f"argument {int(place) + 1}" if place.isdecimal() else place for place in left)
        return msgspec.structs.replace(
            found,
            call=call.digest if found else "",
            not_taken=tuple(not_taken),
            whole=not (found.unknown or not_taken) and len(self.dtypes) == 1 and bool(found.shapes),
            scaled=any(math.prod(shape) > MOST for shape in found.shapes.values()),
        )


def _place(call: KnownCall, keyword: str, position: int | None) -> str:
    """Where an argument stands in a call, or in that of the module that it makes; empty where it is not given."""
    part, own = call.part(keyword)
    place = part.name(own, position) if part is not None else None
    return "" if place is None else place if part is call else USE + place


def _has_dtype(tensor: Operand, dtypes: frozenset[str]) -> bool:
    """Whether a tensor may be of the dtype that is measured, and not one of numbers or truth values beside it."""
    return not tensor.dtype or not dtypes or tensor.dtype in dtypes


def _sides(literal: Any) -> tuple[int, ...]:
    """The shape of nested sequences of numbers; empty for anything else."""
    sides = []
    while isinstance(literal, list) and literal:
        sides.append(len(literal))
        literal = literal[0]
    return tuple(sides) if isinstance(literal, (int, float)) else ()
