"""Arrays whose rows are the elements of a sequence, and reductions along the rows: the largest of each column is the same in
any order of these, and its position is not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.naming import called_in_library
from d9mlint.interp.order_single import only_value
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, parents, variables

if TYPE_CHECKING:
    from collections.abc import Callable

    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

    Given = Callable[[Interp, m.Call], v.Args]

_PLAIN, _WITH_POSITIONS = "reduces-rows", "reduces-rows-with-positions"


def is_reduced_along_rows(interp: Interp, array: m.Expr, fn: m.Function, given: Given) -> bool:
    """Whether a call reduces an array along its rows and only what it gives in any order of them is used. ``given`` says
    what a call is given."""
    role = _reducing(interp, array, fn, given)
    call = _call_of(array, fn)
    if role is None or call is None:
        return False
    args = given(interp, call)
    named = [args.get(name, role.pos if name == role.arg else None) for name in (role.arg, *role.more[:1])]
    dimensions = [one for one in named if one is not None]
    if args.star or args.dstar:
        return False
    if not dimensions:
        return True
    if not all(isinstance(one, v.Lit) and one.value == 0 for one in dimensions):
        return False
    return role.role == _PLAIN or _takes_values(call, fn, role.more[1:])


def _call_of(array: m.Expr, fn: m.Function) -> m.Call | None:
    """The call of a method of an array, or that gets it as its first argument."""
    user = parents(fn).get(id(array))
    if isinstance(user, m.Attr):
        call = parents(fn).get(id(user))
        return call if isinstance(call, m.Call) and call.func is user else None
    if not isinstance(user, m.Call):
        return None
    called = isinstance(array, m.Name) and "." in array.id and user.func is array
    return user if called or user.args[:1] == [array] else None


def _reducing(interp: Interp, array: m.Expr, fn: m.Function, given: Given) -> RoleEntry | None:
    """What is known of the call that reduces an array with elements of a sequence as its rows, in the same library."""
    call = _call_of(array, fn)
    made = only_value(fn, array.id.partition(".")[0]) if isinstance(array, m.Name) else array
    if call is None or not isinstance(made, m.Call):
        return None
    role = interp.kb.role(called_in_library(interp, made), "puts-in-rows")
    if role is None or (role.arg and not _is_first(given(interp, made), role)):
        return None
    function = call.args[:1] == [array]
    name = called_in_library(interp, call) if function else f"?.{called_name(call)}"
    entries = interp.kb.roles(name)
    return next(
        (one for one in entries if one.role in (_PLAIN, _WITH_POSITIONS) and one.library == role.library),
        None,
    )


def _is_first(args: v.Args, role: RoleEntry) -> bool:
    """Whether the dimension that a call makes is the first one."""
    named = [args.get(role.arg, role.pos), *(args.kw.get(name) for name in role.more)]
    return all(one is None or (isinstance(one, v.Lit) and one.value == 0) for one in named)


def _takes_values(call: m.Call, fn: m.Function, names: list[str]) -> bool:
    """Whether of a pair of values and positions only the values are used."""
    above = parents(fn)
    user = above.get(id(call))
    if isinstance(user, m.Attr):
        return user.name.partition(".")[0] in names
    if isinstance(user, m.Subscript):
        return user.value is call and isinstance(user.index, m.Const) and user.index.value == 0
    target = user.targets[0] if isinstance(user, m.Assign) and len(user.targets) == 1 else None
    if isinstance(target, m.Seq) and len(target.elts) == 2:
        unread = target.elts[1]
        return isinstance(unread, m.Name) and len(variables(fn).get(unread.id, ())) == 1
    return False
