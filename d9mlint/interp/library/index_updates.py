"""Arrays that are given their elements by index, and whether an index may name an element twice: ``x.at[index].add(y)``."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.shapes import is_whole_number

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

_CHAIN = 4
_EITHER_ORDER = 2
"""So many numbers have the same sum in either order."""


def place(interp: Interp, attribute: v.Member, index: v.Value) -> v.Obj | None:
    """The place of an array that ``array.at[index]`` names, which has methods that give the array with other elements there;
    None where the attribute is no such thing."""
    array = attribute.owner
    role = interp.kb.role(array.api, "updated-by-index") if isinstance(array, v.Obj) else None
    if role is None or role.arg != attribute.name:
        return None
    made = v.Obj(role.more[0], role.more[0], v.Args([index]))
    made.attrs["array"] = array
    return made


def repeats(run: RunView, index: v.Value | None, depth: int = 0) -> bool | None:
    """Whether an index is an array in which one position may be several times; None where that is not known."""
    if index is None or index is v.UNKNOWN:
        return None
    if (most := _most_equal(index)) is not None:
        return most > _EITHER_ORDER
    if isinstance(index, v.Items):
        if index.kind != "t" or index.open:
            return None
        answers = {repeats(run, one) for one in index.elts if not v.is_slice(one)}
        # Rows that are all different are so with any columns.
        arrays = [one for one in index.elts if isinstance(one, v.Obj) and not v.is_slice(one)]
        if any(are_different(run, one) for one in arrays):
            return False
        return None if None in answers else True in answers
    if isinstance(index, v.Lit) or is_whole_number(index) or are_different(run, index):
        return False
    if isinstance(index, v.Obj) and (same := _same_elements(run, index)) is not None:
        return repeats(run, same, depth + 1) if depth < _CHAIN else None
    return True if has_duplicates(run, index) else None


def _most_equal(index: v.Value) -> int | None:
    """How often the most frequent number of a list of literals is there."""
    if not isinstance(index, v.Items) or index.open or not index.elts:
        return None
    numbers = Counter(
        one.value for one in index.elts if isinstance(one, v.Lit) and isinstance(one.value, int)
    )
    return max(numbers.values()) if numbers.total() == len(index.elts) else None


def are_different(run: RunView, index: v.Value | None, depth: int = 0) -> bool:
    """Whether no position is in an array twice."""
    if not isinstance(index, v.Obj) or depth > _CHAIN:
        return False
    return tensors.are_all_different(run, index) or are_different(run, _same_elements(run, index), depth + 1)


def is_of_different(run: RunView, index: v.Value | None, depth: int = 0) -> bool:
    """Whether an array is computed of one in which no position is twice: nothing more is known of it."""
    if not isinstance(index, v.Obj) or depth > _CHAIN:
        return False
    made_of = (index.owner, *index.args.values())
    return are_different(run, index) or any(is_of_different(run, one, depth + 1) for one in made_of)


def has_duplicates(run: RunView, index: v.Value) -> bool:
    """Whether an index is one in which a number may be several times, as that of the largest element of each row."""
    role = run.kb.role(index.api, "gives-duplicates") if isinstance(index, v.Obj) else None
    return role is not None and isinstance(index, v.Obj) and all_hold(index.args, role.when) is True


def _same_elements(run: RunView, array: v.Obj) -> v.Value | None:
    """What an array has the elements of, in another form."""
    name = array.api.rpartition(".")[2]
    if isinstance(array.owner, v.Obj) and array.api == f"{array.owner.api}.{name}":
        kept = run.kb.role(f"{tensors.TENSOR}.{name}", "views") or run.kb.role(f"?.{name}", "same-elements")
        return array.owner if kept is not None else None
    role = run.kb.role(array.api, "same-elements")
    return array.args.get(role.arg, role.pos) if role is not None else None
