"""Whether an expression is computed from what calls of some role give, such as the clock or the free memory.

It is followed by names through the assignments of the running function and the bodies of small project functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import argument_node, called_api
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.devices import RANK
from d9mlint.interp.methods import is_property
from d9mlint.interp.named_sizes import assignments_in_parts
from d9mlint.interp.naming import written_arguments
from d9mlint.interp.order_kinds import gives_text
from d9mlint.ir import nodes as m
from d9mlint.ir.forms import asked_if_none
from d9mlint.ir.results import read_by_result, returned
from d9mlint.ir.traversal import children, is_none, nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Role, RoleEntry

_DEPTH = 4
_NEVER_NONE = (m.BinOp, m.Compare, m.Comp, m.Dict, m.FString, m.Lambda, m.Seq, m.Unary)
"""Expressions that give no None."""


class _Asked:
    """What one question has looked at: an expression, or the assignments to a variable, in which nothing was found is not
    looked at again unless it may be followed further now; and what bodies of functions give."""

    def __init__(self) -> None:
        self._depths: dict[Any, int] = {}
        self.returned: dict[tuple[int, int | None, int], str] = {}
        self._assigned: dict[tuple[Any, ...], list[m.Assign | m.AugAssign]] | None = None

    def before(self, key: Any, depth: int) -> bool:
        """Whether this has been looked at, from no deeper than here."""
        if self._depths.get(key, depth + 1) <= depth:
            return True
        self._depths[key] = depth
        return False

    def assigned(self, body: Sequence[m.Stmt], place: tuple[Any, ...]) -> list[m.Assign | m.AugAssign]:
        """The statements of the running body that assign to a variable, or to an item of it."""
        if self._assigned is None:
            self._assigned = {}
            for stmt in statements(body):
                if isinstance(stmt, (m.Assign, m.AugAssign)):
                    targets = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
                    for one in {_place(target) for target in targets} - {()}:
                        self._assigned.setdefault(one, []).append(stmt)
        return self._assigned.get(place, [])


def derives(
    interp: RunView,
    expr: Any,
    role: Role,
    depth: int = 0,
    part: int | None = None,
    asked: _Asked | None = None,
) -> str:
    """The canonical name of a call of this role that an expression depends on; empty when there is none. Of what a call
    gives, only the item of the number ``part`` is asked for."""
    asked = _Asked() if asked is None else asked
    if depth > _DEPTH or expr is None or asked.before((id(expr), part), depth):
        return ""
    for node in _parts(interp, expr, role, part):
        found = ""
        if isinstance(node, m.Call):
            item = part if node is expr else None
            found = _called(interp, interp.value_of(node.func), role, depth, item, asked)
            found = found or _variable(interp, node, role, interp.value_of)
        elif isinstance(node, m.Name):
            found = _held(interp, interp.value_of(node), role) or _computed(interp, node, role, depth, asked)
            if not found:
                found = _assigned(interp, node.id, role, depth, asked)
                found = found or _changed(interp, node, role, depth, asked)
        elif isinstance(node, m.Subscript):
            call = _item_of_call(node)
            if call is not None:
                found = _called(interp, interp.value_of(call.func), role, depth, _number(node.index), asked)
            else:
                found = _variable(interp, node, role, interp.value_of)
                found = found or _item(interp, node, role, depth, asked)
                found = found or _changed(interp, node, role, depth, asked)
        if found:
            return found
    return ""


def _parts(interp: RunView, expr: Any, role: Role, part: int | None) -> Iterator[Any]:
    """An expression and all parts of it, without those that take from a result what the role is not about, without the
    variables of which it takes one item, since ``derives`` asks for that item alone, and without what a function of the
    program is given and computes nothing of its result from, or of the item of the number ``part`` of that."""
    stack: list[Any] = [expr]
    while stack:
        node = stack.pop()
        if isinstance(node, (m.Attr, m.Subscript)) and isinstance(node.value, m.Call):
            entry = _entry(interp, node.value, role)
            taken = node.name if isinstance(node, m.Attr) else node.index
            if entry is not None and (
                taken == entry.arg if isinstance(taken, str) else _is_number(taken, entry.pos)
            ):
                continue
        if _makes_text(interp, node, role):
            continue
        yield node
        call = _item_of_call(node)
        if call is not None:
            unused, asked = _unused(interp, call, _number(node.index))
            stack.extend(one for one in children(call) if one is not call.func and one not in unused)
            stack.extend(each for one in asked for each in _decides_none(interp, one, role))
        elif isinstance(node, m.Call):
            unused, asked = _unused(interp, node, part if node is expr else None)
            unused += _names_given(interp, node)
            texts = [one for one in node.args if _makes_text(interp, one, role)]
            if texts and called_api(interp, node) in _NUMBERS:
                # A number that is read from a text is one of the time still.
                stack.extend(each for one in texts for each in children(one))
            stack.extend(one for one in children(node) if one not in unused)
            stack.extend(each for one in asked for each in _decides_none(interp, one, role))
        elif (tested := asked_if_none(node)) is not None:
            stack.extend(_decides_none(interp, tested, role))
        elif not _is_item(node):
            stack.extend(children(node))


_NUMBERS = frozenset({"builtins.int", "builtins.float"})


def _makes_text(interp: RunView, node: Any, role: Role) -> bool:
    """Whether an expression makes a text of a time, as for the name of a folder: what is read from there is not decided by
    the clock."""
    if role != "clock":
        return False
    if isinstance(node, m.FString):
        return True
    if not isinstance(node, m.Call):
        return False
    func = interp.value_of(node.func)
    if isinstance(func, v.Ext):
        return gives_text(interp, interp.kb.canonical(func.name))
    if not isinstance(func, v.Member):
        return False
    of_text = isinstance(func.owner, v.Lit) and isinstance(func.owner.value, str)
    return of_text or interp.kb.role(f"?.{func.name}", "text-of-time") is not None


def _unused(interp: RunView, call: m.Call, part: int | None) -> tuple[list[Any], list[m.Expr]]:
    """The arguments of a call, of which no starred one, from which a function of the program computes nothing that it
    returns, or nothing of the item of the number ``part`` of that; and those among them of which that depends on whether
    they are None."""
    func = interp.value_of(call.func) if call.args or call.keywords else v.UNKNOWN
    if not isinstance(func, v.Func) or func.decorated or func.fn.is_generator or func.fn.is_async:
        return [], []
    if any(isinstance(one, m.Star) for one in call.args) or not all(one.name for one in call.keywords):
        return [], []
    interp.body(func)
    read = read_by_result(func.fn, part)
    if read is None:
        return [], []
    places = [one.name for one in func.fn.params if one.kind in "pa"][func.receiver is not None :]
    given: list[tuple[str, Any]] = list(zip(places, call.args, strict=False))
    names = {one.name for one in func.fn.params if one.kind in "ak"}
    given += [(one.name, one) for one in call.keywords if one.name in names]
    asked = [one.value if isinstance(one, m.Keyword) else one for name, one in given if name in read.if_none]
    return [one for name, one in given if name not in read.held], asked


def _names_given(interp: RunView, call: m.Call) -> list[Any]:
    """The arguments of a call to a library that do nothing but name what it makes or writes."""
    api = called_api(interp, call)
    entry = interp.kb.role(api, "named-by") if api else None
    if entry is None or not all_hold(written_arguments(interp, call), entry.when):
        return []
    found: list[Any] = [one for one in call.keywords if one.name in (entry.arg, *entry.more)]
    by_place = argument_node(call, entry.arg, entry.pos)
    return found if by_place is None else [*found, by_place]


def _decides_none(interp: RunView, expr: m.Expr, role: Role, depth: int = 0) -> list[m.Expr]:
    """The expressions that decide whether something is None."""
    if isinstance(expr, m.IfExp):
        either = [
            each for one in (expr.body, expr.orelse) for each in _decides_none(interp, one, role, depth)
        ]
        return [expr.test, *either]
    if isinstance(expr, m.BoolOp):
        return [expr.left, *_decides_none(interp, expr.right, role, depth)]
    if is_none(expr) or isinstance(expr, _NEVER_NONE) or v.is_none(interp.value_of(expr)) is False:
        return []
    given = list(_values(interp, expr.id, role)) if isinstance(expr, m.Name) else []
    if not given or depth == _DEPTH or any(part is not None for _, part in given):
        return [expr]
    return [each for one, _ in given for each in _decides_none(interp, one, role, depth + 1)]


def _item_of_call(node: Any) -> m.Call | None:
    """The call of which an expression takes one item, whose number is written out."""
    if isinstance(node, m.Subscript) and isinstance(node.value, m.Call) and _number(node.index) is not None:
        return node.value
    return None


def _number(index: m.Expr) -> int | None:
    return index.value if isinstance(index, m.Const) and type(index.value) is int else None


def _is_item(node: Any) -> bool:
    """Whether an expression is an item, under a key that is written out, of something that a variable holds."""
    while isinstance(node, m.Subscript) and isinstance(node.index, m.Const):
        node = node.value
        if isinstance(node, m.Name):
            return True
    return False


def _item(interp: RunView, node: m.Subscript, role: Role, depth: int, asked: _Asked) -> str:
    """The call of this role that an item of a variable depends on. Of a dictionary, tuple or list that the program writes
    out, only what it has under that key counts; of anything else, all of it."""
    if not _is_item(node):
        return ""
    found = _held(interp, interp.value_of(node), role)
    whole: Any = node
    while not found and isinstance(whole, m.Subscript):
        whole = whole.value
        found = _held(interp, interp.value_of(whole), role)
    held = _contents(interp, node, role)
    return found or next(
        filter(None, (derives(interp, one, role, depth + 1, part, asked) for one, part in held)), ""
    )


def _contents(interp: RunView, node: m.Expr, role: Role, depth: int = 0) -> list[tuple[m.Expr, int | None]]:
    """The expressions that a variable, or an item of it, may hold; with the number of the item of the call that it is."""
    held: list[tuple[m.Expr, int | None]]
    if isinstance(node, m.Name):
        held = [
            (one, part)
            for one, part in _values(interp, node.id, role)
            if not any(isinstance(x, m.Name) and x.id == node.id for x in nodes([one]))
        ]
    elif isinstance(node, m.Subscript) and isinstance(node.index, m.Const):
        key = node.index.value
        inside = _contents(interp, node.value, role, depth)
        held = [each for one in inside for each in ([one] if one[1] is not None else _under(one[0], key))]
    else:
        return [(node, None)]
    if depth == _DEPTH:
        return held
    found: list[tuple[m.Expr, int | None]] = []
    for one, part in held:
        further = isinstance(one, (m.Name, m.Subscript)) and _contents(interp, one, role, depth + 1)
        found.extend(further or [(one, part)])
    return found


def _under(whole: m.Expr, key: Any) -> list[tuple[m.Expr, int | None]]:
    """What may stand under a key: the whole where it is not written out."""
    if isinstance(whole, m.Dict):
        found: list[m.Expr] = []
        for each, value in zip(whole.keys, whole.values, strict=True):
            if not isinstance(each, m.Const):
                found.append(value)
            elif each.value == key:
                found = [value]
        return [(one, None) for one in found]
    if (
        isinstance(whole, m.Call)
        and isinstance(whole.func, m.Name)
        and whole.func.id == "dict"
        and not whole.args
    ):
        if all(one.name for one in whole.keywords):
            return [(one.value, None) for one in whole.keywords if one.name == key]
    if type(key) is int:
        part = returned(whole, key)
        if part is not whole and part is not None:
            return [(part, None)]
        return [(whole, key if isinstance(whole, m.Call) else None)]
    return [(whole, None)]


def _is_number(node: Any, number: int | None) -> bool:
    return number is not None and isinstance(node, m.Const) and node.value == number


def _entry(interp: RunView, call: m.Call, role: Role) -> RoleEntry | None:
    return interp.kb.role(called_api(interp, call), role)


def _held(interp: RunView, value: v.Value, role: Role) -> str:
    for one in v.alternatives(value):
        if isinstance(one, v.Obj) and (
            interp.kb.role(one.api, role) is not None or (role == "rank" and one.api == RANK)
        ):
            # The number of a process is what a function gets that is started once in each.
            return one.api
        if isinstance(one, v.Lit) and one.option.startswith("$"):
            # The default of a variable of the environment.
            name = f"env:{one.option[1:]}"
            if interp.kb.role(name, role) is not None:
                return name
    return ""


def _called(
    interp: RunView,
    func: v.Value,
    role: Role,
    depth: int,
    part: int | None = None,
    asked: _Asked | None = None,
) -> str:
    if isinstance(func, v.Ext):
        name = interp.kb.canonical(func.name)
        return name if interp.kb.role(name, role) is not None else ""
    if isinstance(func, v.Member) and isinstance(func.owner, v.Obj):
        name = f"{func.owner.type}.{func.name}"
        return name if interp.kb.role(name, role) is not None else ""
    if isinstance(func, v.Func) and depth < _DEPTH:
        asked = _Asked() if asked is None else asked
        key = id(func.fn), part, depth
        if key not in asked.returned:
            flow = _Flow(interp, role, _names_of(interp, func), depth, part, asked)
            asked.returned[key] = flow.follow(interp.body(func)).returned
        return asked.returned[key]
    return ""


def _computed(interp: RunView, node: m.Name, role: Role, depth: int, asked: _Asked) -> str:
    """The call of this role in the property of an object of the program that a name asks for."""
    owner, _, attribute = node.id.rpartition(".")
    held = interp.value_of(m.Name(owner, node.start, node.end)) if owner else v.UNKNOWN
    for one in v.alternatives(held):
        made = one.cls.find(attribute) if isinstance(one, v.Inst) else None
        if isinstance(made, v.Func) and is_property(made):
            return _called(interp, made, role, depth, None, asked)
    return ""


def decided(interp: RunView, expr: Any, role: Role) -> str:
    """The call of this role on which it depends what a name stands for that an ``if`` statement chooses a value for, in
    the running function or, for an attribute of ``self``, in the constructor."""
    func = interp.frame.func
    if not isinstance(expr, m.Name):
        return ""
    first = func.fn.params[0].name if func is not None and func.fn.params else ""
    if func is not None and func.cls is not None and first and expr.id.startswith(first + "."):
        made = func.cls.find("__init__")
        body = interp.body(made) if isinstance(made, v.Func) else []
        name = made.fn.params[0].name + expr.id.removeprefix(first) if isinstance(made, v.Func) else ""
        func = made if isinstance(made, v.Func) else None
    else:
        body = interp.frame.body
        name = expr.id
    resolve = interp.value_of if func is None else _names_of(interp, func)
    return _Flow(interp, role, resolve, 0).follow(body).names.get(name, "")


def _names_of(interp: RunView, func: v.Func) -> Callable[[m.Expr], v.Value]:
    """What names stand for in the body of a function that does not run."""

    def resolve(node: m.Expr) -> v.Value:
        if not isinstance(node, m.Name):
            return v.UNKNOWN
        head, *rest = node.id.split(".")
        value = func.env.vars.get(head) or func.mod.env.read(head) or v.UNKNOWN
        return v.Ext(".".join([value.name, *rest])) if rest and isinstance(value, v.Ext) else value

    return resolve


class _Flow:
    """Which names of a body, and whether what it returns, or the item of the number ``part`` of it, depend on what calls of
    a role give: they are computed from it, or an ``if`` statement that asks for it chooses them."""

    def __init__(
        self,
        interp: RunView,
        role: Role,
        resolve: Callable[[m.Expr], v.Value],
        depth: int,
        part: int | None = None,
        asked: _Asked | None = None,
    ) -> None:
        self.interp, self.role, self.resolve, self.depth, self.part = interp, role, resolve, depth, part
        self.asked = asked
        self.names: dict[str, str] = {}
        self.returned = ""

    def follow(self, body: Iterable[m.Stmt], chosen: str = "") -> _Flow:
        """Go through statements, which run where what ``chosen`` gives lets them."""
        for stmt in body:
            self._statement(stmt, chosen)
        return self

    def _statement(self, stmt: Any, chosen: str) -> None:
        if isinstance(stmt, m.Return):
            self.returned = self.returned or self._source(returned(stmt.value, self.part)) or chosen
        elif isinstance(stmt, m.Assign):
            for target in stmt.targets:
                self._assign(target, stmt.value, chosen)
        elif isinstance(stmt, (m.AnnAssign, m.AugAssign)):
            self._assign(stmt.target, stmt.value, chosen)
        elif isinstance(stmt, (m.If, m.While)):
            inside = self._source(stmt.test) or chosen
            self.follow([*stmt.body, *stmt.orelse], inside)
        else:
            self.follow((one for one in children(stmt) if not isinstance(one, m.Call)), chosen)

    def _assign(self, target: m.Expr, value: m.Expr | None, chosen: str) -> None:
        if not isinstance(target, m.Seq):
            self._name(target, self._source(value) or chosen)
            return
        asked = self._entry(value)
        numbered = not any(isinstance(one, m.Star) for one in target.elts)
        for position, one in enumerate(target.elts):
            if asked is not None and position == asked.pos:
                self._name(one, "")
            else:
                part = position if numbered else None
                self._name(one, self._source(returned(value, part), part) or chosen)

    def _name(self, target: m.Expr, source: str) -> None:
        if isinstance(target, m.Name) and source:
            self.names.setdefault(target.id, source)

    def _source(self, expr: Any, part: int | None = None) -> str:
        """What an expression depends on or, where it is a call, the item of the number ``part`` of what that gives."""
        stack: list[Any] = [] if expr is None else [expr]
        while stack:
            node = stack.pop()
            if isinstance(node, m.Name):
                head, _, rest = node.id.partition(".")
                found = self.names.get(node.id) or self.names.get(head, "")
                entry = self.interp.kb.role(found, self.role) if found else None
                if entry is not None and not (rest and rest == entry.arg):
                    return found
            elif isinstance(node, m.Call):
                item = part if node is expr else None
                func = self.resolve(node.func)
                found = _called(self.interp, func, self.role, self.depth + 1, item, self.asked)
                found = found or _variable(self.interp, node, self.role, self.resolve)
                if found:
                    return found
            elif isinstance(node, m.Subscript) and (
                found := _variable(self.interp, node, self.role, self.resolve)
            ):
                return found
            elif isinstance(node, (m.Attr, m.Subscript)) and (entry := self._entry(node.value)) is not None:
                taken = node.name if isinstance(node, m.Attr) else node.index
                if taken == entry.arg if isinstance(taken, str) else _is_number(taken, entry.pos):
                    continue
            stack.extend(children(node))
        return ""

    def _entry(self, node: Any) -> RoleEntry | None:
        func = self.resolve(node.func) if isinstance(node, m.Call) else None
        if not isinstance(func, v.Ext):
            return None
        return self.interp.kb.role(self.interp.kb.canonical(func.name), self.role)


def _variable(
    interp: RunView, node: m.Subscript | m.Call, role: Role, resolve: Callable[[m.Expr], v.Value]
) -> str:
    """``os.environ["RANK"]``, ``os.environ.get("RANK", 0)``, ``os.getenv("RANK")``: variables that launchers set are known
    by their names."""
    key: m.Expr | None
    if isinstance(node, m.Subscript):
        of_environment, key = node.value, node.index
    else:
        given = [*node.args, *(one.value for one in node.keywords)]
        of_environment, key = node.func, given[0] if given else None
    if isinstance(key, m.Const) and isinstance(of_environment, m.Name):
        owner = resolve(of_environment)
        if isinstance(owner, v.Ext) and owner.name.startswith("os."):
            name = f"env:{key.value}"
            return name if interp.kb.role(name, role) is not None else ""
    return ""


def _values(interp: RunView, name: str, role: Role) -> Iterator[tuple[m.Expr, int | None]]:
    """What a variable is assigned, with its place among the targets that it is divided between; without results of which
    the variable gets what the role is not about."""
    for value, position in assignments_in_parts(interp, name):
        entry = _entry(interp, value, role) if position is not None and isinstance(value, m.Call) else None
        if entry is None or position != entry.pos:
            yield value, position


def _assigned(interp: RunView, name: str, role: Role, depth: int, asked: _Asked) -> str:
    if asked.before(name, depth):
        return ""
    for value, position in _values(interp, name, role):
        inside: list[Any] = [value]
        if not any(isinstance(one, m.Name) and one.id == name for one in nodes(inside)):
            found = derives(interp, value, role, depth + 1, position, asked)
            if found:
                return found
    return ""


def _changed(interp: RunView, node: m.Name | m.Subscript, role: Role, depth: int, asked: _Asked) -> str:
    """The call of this role from which the running body has computed a variable, or an item of one, again:
    ``seed += rank()``, ``config["seed"] = config["seed"] + rank()``."""
    place = _place(node)
    for stmt in asked.assigned(interp.frame.body, place) if place else ():
        item = isinstance(stmt, m.AugAssign) or isinstance(node, m.Subscript)
        if stmt.start > node.start:
            continue
        inside = list(nodes([stmt.value]))
        if item or any(_place(one) == place for one in inside):
            parts = (one for one in inside if isinstance(one, (m.Name, m.Call)) and _place(one) != place)
            found = next(
                filter(None, (derives(interp, one, role, depth + 1, None, asked) for one in parts)), ""
            )
            if found:
                return found
    return ""


def _place(node: Any) -> tuple[Any, ...]:
    """The name of a variable, with the keys under which an item of it stands; empty for anything else."""
    keys: list[Any] = []
    while isinstance(node, m.Subscript) and isinstance(node.index, m.Const):
        keys.append(node.index.value)
        node = node.value
    return (node.id, *reversed(keys)) if isinstance(node, m.Name) else ()


def default(interp: RunView, expr: m.Expr | None) -> Any:
    """The literal that a name stands for where nobody gives another one: the default of a parameter of the running
    function or, for an attribute of ``self``, of the parameter of the constructor that it keeps. None for anything
    else."""
    func = interp.frame.func
    if func is None or not isinstance(expr, m.Name):
        return None
    head, _, attribute = expr.id.partition(".")
    if attribute:
        first = func.fn.params[0].name if func.fn.params else ""
        made = func.cls.find("__init__") if func.cls is not None and head == first else None
        if not isinstance(made, v.Func):
            return None
        kept = [
            one.value
            for one in nodes(list(made.fn.body))
            if isinstance(one, m.Assign)
            and any(isinstance(target, m.Name) and target.id == expr.id for target in one.targets)
        ]
        if len(kept) != 1 or not isinstance(kept[0], m.Name):
            return None
        func, head = made, kept[0].id
    known = next((one.default for one in func.fn.params if one.name == head), None)
    return known.value if isinstance(known, m.Const) else None
