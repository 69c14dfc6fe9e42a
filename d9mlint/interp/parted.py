"""What calls give that divide what they are given, or take samples of it: parts of the same class as the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import tensors
from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def part(run: RunView, whole: v.Obj, at: int | None) -> v.Value | None:
    """What a call that divides its arguments gives in a place, or in any of them; None for other calls, and where nothing is
    known of what was given."""
    roles = run.kb.by_role(whole.api)
    role = roles.get("divides") or roles.get("rearranges")
    if role is None or whole.args.star:
        return None
    if role.pos is not None:
        return _of(run, whole, whole.args.get(role.arg, role.pos))
    given, each = whole.args.pos, max(len(role.more), 1)
    if not given or (role.role == "rearranges" and len(given) == 1):
        return None
    if at is not None:
        place = at // each if at >= 0 else len(given) - 1 - (-1 - at) // each
        return _of(run, whole, given[place]) if 0 <= place < len(given) else None
    found = [_of(run, whole, one) for one in given]
    known = [one for one in found if one is not None]
    return v.join([*known, *[v.UNKNOWN] * (len(known) < len(found))]) if known else None


def of_result(run: RunView, whole: v.Obj, at: int) -> v.Value | None:
    """One of several things that a call of a library gives, where its class is known."""
    divided = part(run, whole, at)
    if divided is not None:
        return divided
    made = run.kb.result_type(f"{whole.api}.element[{at}]")
    if not made or (at and made == run.kb.result_type(whole.api)):
        # What is said of all that a module has is not said of the parts of what its functions give.
        return None
    found = v.Obj(whole.api, made, whole.args, whole.node)
    found.file = whole.file
    return found


def type_kept(run: RunView, api: str, args: v.Args) -> str:
    """The class of what a call gives that takes the elements of its one argument in another order; empty for others."""
    if run.kb.role(api, "rearranges") is None or len(args.pos) != 1 or args.star:
        return ""
    given = args.pos[0]
    return given.type if isinstance(given, v.Obj) and _is_of_known_class(run, given) else ""


def _of(run: RunView, whole: v.Obj, given: v.Value | None) -> v.Obj | None:
    if not isinstance(given, v.Obj) or not _is_of_known_class(run, given):
        return None
    found = v.Obj(f"{given.type}.__getitem__", given.type)
    found.owner, found.data, found.order = given, whole.data, whole.order
    return found


def _is_of_known_class(run: RunView, value: v.Obj) -> bool:
    """Whether a value is an object, such as a table, of a class of which more is known than its elements."""
    return value.type != tensors.TENSOR and value.type in run.kb.result_classes
