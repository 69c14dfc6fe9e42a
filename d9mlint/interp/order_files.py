"""Files that the rounds of a loop add to: whether each round chooses its own, or all of them add to one."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.file_names import ends_of, template_of
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import own_names, target_names
from d9mlint.ir.traversal import called_name, nodes, receiver, statements

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Loop, Order

_MOST_CALLS = 6
_EXTENSION = re.compile(r".*\.[A-Za-z]\w{1,5}")
NUMBERED = "index"
"""The kind of the order that the number of an element has."""


def is_shared(interp: Interp, owner: v.Value, node: Any) -> bool:
    """Whether what is written here is added to a file that several tasks write at the same time: it was opened before they
    began, or each of them opens it to add to it. What is the same in each of them, and what is written at a position that
    is looked up, has no order."""
    if not interp.sharing_files or not isinstance(node, m.Call):
        return False
    given: list[Any] = [*node.args, *node.keywords]
    if not any(isinstance(one, (m.Name, m.Attr)) for one in nodes(given)) or _looks_up(interp, node):
        return False
    if not isinstance(node.func, m.Name) or _is_taken_from_several(interp, receiver(node)):
        return False
    parts = (owner, *owner.args.pos[:1]) if isinstance(owner, v.Obj) else ()
    return any(isinstance(one, v.Obj) and _adds_to_one(interp, one) for one in parts)


def named_by_number(interp: Interp, args: v.Args, node: Any) -> Order | None:
    """The order by which the files are numbered of which a call gets the name, where nothing is done with what it gives: it
    writes them, whatever function it is."""
    stmt = interp.statement
    if not isinstance(stmt, m.ExprStmt) or stmt.value is not node:
        return None
    for given in args.values():
        for one in given.elts if isinstance(given, v.Items) else (given,):
            order = interp.orders.of(one)
            if order is None or order.kind != NUMBERED:
                continue
            ends = ends_of(interp, one) or {
                part for part in template_of(interp, one)[-1:] if isinstance(part, str)
            }
            if ends and all(map(_EXTENSION.fullmatch, ends)):
                return order if _gets_more(interp, node) else None
    return None


def _gets_more(interp: Interp, node: Any) -> bool:
    """Whether a call is given what the rounds of a loop over an arbitrary order take or make, besides numbers."""
    changing = set[str]().union(*(loop.names for loop in interp.orders.loops))
    for one in nodes([node]):
        if isinstance(one, m.Name) and one.id.partition(".")[0] in changing:
            held = interp.orders.of(interp.value_of(one))
            if held is None or held.kind != NUMBERED:
                return True
    return False


def _adds_to_one(interp: Interp, file: v.Obj) -> bool:
    """Whether several tasks add to an opened file."""
    entry = interp.kb.order(file.api)
    if entry is None or not entry.appends or not all_hold(file.args, entry.when):
        return False
    if file.birth < interp.sharing_files:
        return True
    named = file.node.args[0] if isinstance(file.node, m.Call) and file.node.args else None
    return bool(all_hold(file.args, entry.appends)) and _is_one_name(interp, named)


def _is_one_name(interp: Interp, named: m.Expr | None) -> bool:
    """Whether an expression is a text that is written there or in a variable of the module."""
    function = interp.frame.func
    if isinstance(named, m.Name) and "." not in named.id and function is not None:
        outside = named.id not in own_names(function.fn) and function.fn.name.isidentifier()
        return outside and isinstance(interp.value_of(named), v.Lit)
    return isinstance(named, m.Const)


def _is_taken_from_several(interp: Interp, name: str) -> bool:
    """Whether a variable of the running function has an item of something."""
    function = interp.frame.func
    return function is not None and any(
        isinstance(one, (m.Assign, m.AnnAssign, m.With))
        and name in _assigned(one)
        and any(isinstance(part, m.Subscript) for part in _sources(one))
        for one in statements(function.fn.body)
    )


def _looks_up(interp: Interp, node: m.Call) -> bool:
    """Whether the function that writes to a file goes to a position in it."""
    function = interp.frame.func
    calls = (
        [one for one in nodes(function.fn.body) if isinstance(one, m.Call)] if function is not None else []
    )
    return any(called_name(one) == "seek" and receiver(one) == receiver(node) for one in calls)


def is_chosen_by(interp: Interp, loop: Loop, file: m.Expr) -> bool:
    """Whether the rounds of a loop may choose which file an expression names, also where they call what opens it."""
    frame: Frame | None = interp.frame
    asked: list[Any] = [file]
    for _ in range(_MOST_CALLS):
        names = {one.id for one in nodes(asked) if isinstance(one, m.Name)}
        if frame is None or not names:
            return bool(names)
        if loop.env is frame.env:
            heads = {name.partition(".")[0] for name in names}
            return not loop.names or bool(heads & loop.names) or _is_changed(interp, loop, frame, names)
        if frame.func is None:
            return True
        names |= _made_from(frame.func.fn, names)
        heads = {name.partition(".")[0] for name in names}
        given = _given(frame, heads)
        around = heads - own_names(frame.func.fn) if frame.env.parent is loop.env else set[str]()
        if given is None or around & loop.names:
            return True
        if _is_changed(interp, loop, frame, names):
            return True
        asked, frame = given, frame.caller
    return True


def _made_from(function: m.Function, names: set[str]) -> set[str]:
    """What the variables of a function are made from that these are made from."""
    found = {name.partition(".")[0] for name in names}
    waiting = set(found)
    while waiting:
        name = waiting.pop()
        for one in statements(function.body):
            if name in _assigned(one):
                used = {part.id for part in _sources(one) if isinstance(part, m.Name)}
                waiting |= {part.partition(".")[0] for part in used} - {x.partition(".")[0] for x in found}
                found |= used
    return found


def _assigned(stmt: m.Stmt) -> set[str]:
    names: set[str] = set()
    targets: list[Any] = []
    if isinstance(stmt, m.Assign):
        targets += stmt.targets
    elif isinstance(stmt, (m.AnnAssign, m.AugAssign, m.For)):
        targets.append(stmt.target)
    elif isinstance(stmt, m.With):
        targets += [item.target for item in stmt.items]
    for target in targets:
        target_names(target, names)
    return names


def _sources(stmt: Any) -> Iterator[Any]:
    if isinstance(stmt, m.With):
        return nodes([item.context for item in stmt.items])
    return nodes([stmt.iter if isinstance(stmt, m.For) else stmt.value])


def _given(frame: Frame, names: set[str]) -> list[m.Expr] | None:
    """What the caller of a function gives it for parameters; None where that is not known."""
    function, call = frame.func, frame.began()
    if function is None or call is None or any(isinstance(one, m.Star) for one in call.args):
        return None
    bound = 1 if function.receiver is not None else 0
    given: list[m.Expr] = []
    for index, param in enumerate(function.fn.params):
        if param.name not in names:
            continue
        if param.kind not in "pak":
            return None
        if index < bound:
            given.append(call.func)
        elif param.kind != "k" and index - bound < len(call.args):
            given.append(call.args[index - bound])
        else:
            given += [one.value for one in call.keywords if one.name in (param.name, None)]
    return given


def _is_changed(interp: Interp, loop: Loop, frame: Frame, names: set[str]) -> bool:
    """Whether an attribute among some names may be another one in each round."""
    for name in names:
        head, _, attribute = name.partition(".")
        owner = frame.env.vars.get(head) if attribute else None
        if not isinstance(owner, v.Inst) or owner.birth > loop.start:
            if isinstance(owner, v.Inst):
                return True
            continue
        held = owner.attrs.get(attribute)
        if isinstance(held, (v.Obj, v.Items, v.Mapping, v.Inst)) and held.birth > loop.start:
            return True
        for fn in interp.whole(owner.cls.file).functions:
            if fn.name != "__init__" and any(
                isinstance(target, m.Name) and target.id.endswith(f".{attribute}")
                for one in statements(fn.body)
                if isinstance(one, m.Assign)
                for target in one.targets
            ):
                return True
    return False
