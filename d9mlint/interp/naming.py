"""Random values that only name something the program makes: a file, a folder, a run, an address.

By syntax, with the names of what is called resolved as the program has them: a draw names something where all that its
value comes to, through text, paths, local variables and parameters of functions of the program, are arguments that name
what is written (role ``named-by``).
"""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.containers import CONTAINERS
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import calls_before_failing
from d9mlint.ir.forms import asked_for_form
from d9mlint.ir.growing import GROWING
from d9mlint.ir.scopes import own_names
from d9mlint.ir.traversal import called_name, nodes, parents

if TYPE_CHECKING:
    from collections.abc import Callable

    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Role, RoleEntry
    from d9mlint.project.modules import ModuleFile

_MOST_VARIABLES = 4
"""A name is followed through so many variables."""
_MOST_FUNCTIONS = 3
"""A name is followed into so many functions that call each other."""
_TEXT_OPERATORS = frozenset({"+", "%", "/"})
_SCALING = frozenset({"*", "+", "-"})
"""Operators by which a random number is made larger with a constant before it is put into a name."""
_SHOWING = ("builtins.print", "logging.")


def names_only(run: RunView, node: Any) -> bool:
    """Whether what an expression of the running function gives does nothing but name what the program makes."""
    function = running(run)
    if function is None:
        return False
    uses = _Uses(run)
    return uses.all_name(function, node, 0) and uses.named


def names_with_draws_only(run: RunView, node: Any) -> bool:
    """Whether all that the running function does with a generator, which an expression gives, is to draw what does nothing
    but name what the program makes."""
    function, stmt = running(run), run.statement
    if function is None:
        return False
    uses = _Uses(run)
    above = parents(function)
    method = above.get(id(node))
    call = above.get(id(method))
    if isinstance(method, m.Attr) and isinstance(call, m.Call) and call.func is method:
        return uses.all_name(function, call, 0) and uses.named
    if not isinstance(stmt, m.Assign) or stmt.value is not node or len(stmt.targets) != 1:
        return False
    target = stmt.targets[0]
    if not isinstance(target, m.Name) or "." in target.id:
        return False
    read = [
        one
        for one in nodes(function.body)
        if isinstance(one, m.Name) and one.id.partition(".")[0] == target.id and one is not target
    ]
    calls = [above.get(id(one)) for one in read]
    if not all(isinstance(call, m.Call) and call.func is one for one, call in zip(read, calls, strict=True)):
        return False
    return (
        is_private(run, function, {target.id})
        and all(uses.all_name(function, call, 0) for call in calls)
        and uses.named
    )


def is_left_in_program(run: RunView, node: Any) -> bool:
    """Whether a program that no other file imports keeps what an expression gives in a variable of its module that it does
    not read."""
    stmt, frame = run.statement, run.frame
    if frame.func is not None or frame.is_class or run.entry is not frame.file:
        return False
    if not isinstance(stmt, m.Assign) or not liveness.gives(stmt.value, node):
        return False
    # Code of a notebook that does not parse may read any variable.
    if frame.file.path in run.imported_files or frame.file.facts.unread:
        return False
    if not liveness.is_dead_besides(frame.function, stmt, frozenset(), kept=False):
        return False
    return not liveness.may_be_shared(run.whole(frame.file), frame.function, liveness.stored_names(stmt))


def module_variable(run: RunView, node: Any) -> tuple[ModuleFile, str] | None:
    """The variable of a module in which the running statement keeps what an expression gives, and nowhere else."""
    stmt, frame = run.statement, run.frame
    if not isinstance(stmt, m.Assign) or stmt.value is not node or frame.func is not None or frame.is_class:
        return None
    names = [one.id for one in stmt.targets if isinstance(one, m.Name) and "." not in one.id]
    return (frame.file, names[0]) if len(names) == len(stmt.targets) == 1 else None


def kept_layer(run: RunView, node: Any) -> tuple[ModuleFile, str, frozenset[tuple[str, int]]] | None:
    """The attribute in which a method keeps a layer that an expression makes, alone or in containers, with the file of its
    class, and the classes of the instance by where these begin: bases of libraries read no attributes that they
    do not know."""
    func = run.frame.func
    kept = _kept_as(run.statement)
    if func is None or not isinstance(func.receiver, v.Inst) or kept is None:
        return None
    target, value = kept
    owner, _, name = target.partition(".")
    if owner != "self" or not name or "." in name:
        return None
    above, child = parents(func.fn), node
    while child is not value:
        part, child = child, above.get(id(child))
        if isinstance(child, m.Call) and called_in_library(run, child) in CONTAINERS:
            continue
        if not (isinstance(child, m.Seq) or _is_element(child, part)):
            return None
    cls = func.receiver.cls
    plain = all(isinstance(base, (v.Cls, v.Ext)) for one in cls.mro() for base in one.bases)
    known = all(run.kb.role(run.kb.canonical(one), "base-only") for one in cls.external_bases())
    classes = frozenset((one.file.path, one.cls.start) for one in cls.mro())
    return (func.file, name, classes) if plain and known else None


def _kept_as(stmt: Any) -> tuple[str, m.Expr] | None:
    """What a statement stores a value in, or adds it to, with the value."""
    if isinstance(stmt, m.Assign) and len(stmt.targets) == 1 and isinstance(stmt.targets[0], m.Name):
        return stmt.targets[0].id, stmt.value
    call = stmt.value if isinstance(stmt, m.ExprStmt) else None
    if isinstance(call, m.Call) and isinstance(call.func, m.Name) and call.args and not call.keywords:
        owner, _, method = call.func.id.rpartition(".")
        return (owner, call.args[-1]) if method in GROWING else None
    return None


def _is_element(whole: Any, part: Any) -> bool:
    """Whether an expression gives what a dict display holds under a key, or what a comprehension makes in each round."""
    if isinstance(whole, m.Dict):
        return any(one is part for key, one in zip(whole.keys, whole.values, strict=True) if key is not None)
    return isinstance(whole, m.Comp) and part is (whole.elt if whole.value is None else whole.value)


def for_others(run: RunView, node: Any) -> Callable[[], bool]:
    """What says at the end of a program whether something was made for others: a module that other files import keeps what
    the expression gives in a variable that the program does not read, or an object does in an attribute."""
    kept, attribute = module_variable(run, node), kept_layer(run, node)

    def answer() -> bool:
        if attribute is not None:
            return run.entry is not None and not run.reads_attribute(*attribute, by_run=True)
        if kept is None or run.entry is None or kept[0].path not in run.imported_files:
            return False
        return not run.reads_variable(*kept)

    return answer


def running(run: RunView) -> m.Function | None:
    """The function that is running, or the module's body; None in the body of a class."""
    frame = run.frame
    if frame.is_class:
        return None
    return frame.function


def needs_form_only(run: RunView, node: Any) -> bool:
    """Whether all that the program does with what an expression of the running function gives is to ask for its form."""
    function = running(run)
    if function is None:
        return False
    kept = asked_for_form(function, node)
    return kept is not None and is_private(run, function, kept)


def is_private(run: RunView, function: m.Function, names: set[str]) -> bool:
    """Whether no other code of the file sees these variables of the function that is running."""
    return not names or not liveness.may_be_shared(run.whole(run.frame.file), function, names)


def called_in_library(run: RunView, call: m.Call) -> str:
    """The canonical name of what a call calls, where that is a function or class of a library that it names."""
    found = run.value_of(call.func) if isinstance(call.func, m.Name) else None
    return run.kb.canonical(found.name) if isinstance(found, v.Ext) else ""


def written_arguments(run: RunView, call: m.Call) -> v.Args:
    """What a call is given, as far as it is known: nothing of it where arguments are unpacked."""
    if any(isinstance(arg, m.Star) for arg in call.args) or any(one.name is None for one in call.keywords):
        return v.Args([v.UNKNOWN])
    return v.Args(
        [run.value_of(arg) for arg in call.args],
        {one.name: run.value_of(one.value) for one in call.keywords if one.name is not None},
    )


def printed_before_failing(run: RunView, function: m.Function) -> frozenset[int]:
    """The expressions, by id, that a function only prints in handlers behind which the program fails."""
    found: set[int] = set()
    for call in calls_before_failing(function):
        inner = [one for one in nodes([call]) if isinstance(one, m.Call) and one is not call]
        if run.kb.call_is("tells", _called(run, call)) and all(_makes_text(run, one) for one in inner):
            found.update(map(id, nodes([call])))
    return frozenset(found)


def _called(run: RunView, call: m.Call) -> str:
    """The same as ``called_in_library``, also for a method of what a function of a library gives: a logger."""
    return _name_of(run, run.value_of(call.func) if isinstance(call.func, m.Name) else None)


def _name_of(run: RunView, called: v.Value | None) -> str:
    if isinstance(called, v.Member) and isinstance(called.owner, v.Obj):
        return f"{called.owner.type or called.owner.api}.{called.name}"
    return run.kb.canonical(called.name) if isinstance(called, v.Ext) else ""


def _in_module(func: v.Func, name: str) -> v.Value | None:
    """What stands behind a dotted name in a function that is not running, if it is one of the scopes around it."""
    head, *rest = name.split(".")
    if head in own_names(func.fn):
        return None
    env: v.Env | None = func.env
    found: v.Value | None = None
    while env is not None and found is None:
        found = env.read(head)
        env = env.parent
    if found is None:
        found = v.Ext(f"builtins.{head}") if hasattr(builtins, head) else None
    for part in rest:
        if isinstance(found, v.Ext):
            found = v.Ext(f"{found.name}.{part}")
        elif isinstance(found, v.Obj):
            found = v.Member(found, part)
        else:
            found = found.env.read(part) if isinstance(found, v.Mod) else None
    return found


def _parameter(fn: m.Function, call: m.Call, child: Any) -> str | None:
    """The parameter of a function that a call gives an argument; None for unknown."""
    if isinstance(child, m.Keyword):
        return child.name if any(one.name == child.name and one.kind != "p" for one in fn.params) else None
    if any(isinstance(one, m.Star) for one in call.args):
        return None
    index = next((number for number, one in enumerate(call.args) if one is child), None)
    taken = [one.name for one in fn.params if one.kind in "pa"]
    return taken[index] if index is not None and index < len(taken) else None


def _makes_text(run: RunView, call: m.Call) -> bool:
    """Whether a call gives a text or number, and does nothing else: a function of Python, or a method of a text."""
    if isinstance(call.func, m.Attr):
        return isinstance(call.func.value, (m.Const, m.FString))
    return called_in_library(run, call) in _TEXTS


_TEXTS = frozenset(
    f"builtins.{name}" for name in ("str", "repr", "len", "format", "round", "int", "float", "type")
)


class _Uses:
    def __init__(self, run: RunView) -> None:
        self._run = run
        self.named = False
        """Whether a value names something; a name may be printed too."""
        self._func: v.Func | None = None
        """The function of the program that is looked at, where it is not the running one."""
        self._depth = 0
        self._returned = False
        """Whether that function gives the name."""

    def _value_of(self, node: m.Expr) -> v.Value | None:
        if not isinstance(node, m.Name):
            return None
        return self._run.value_of(node) if self._func is None else _in_module(self._func, node.id)

    def all_name(self, function: m.Function, node: Any, depth: int, text: bool = False) -> bool:
        """Follow a value from an expression upwards to where it is used; ``text`` is whether it is a name already."""
        above = parents(function)
        named = False
        child, parent = node, above.get(id(node))
        while parent is not None:
            if isinstance(parent, m.FString):
                text = True
            elif isinstance(parent, m.BinOp):
                other = parent.left if parent.right is child else parent.right
                if text or self._is_text(other):
                    if parent.op not in _TEXT_OPERATORS:
                        return False
                    text = True
                elif parent.op not in _SCALING or not _is_number(other):
                    return False
            elif isinstance(parent, m.Keyword):
                named = True
                child, parent = parent, above.get(id(parent))
                continue
            elif isinstance(parent, m.Call):
                if text and self._is_shown(parent, child):
                    return True
                answer = self._given(parent, child, named)
                if answer is False and parent.func is not child:
                    answer = self._given_to_function(parent, child, text)
                named = False
                if answer is not None:
                    self.named = self.named or answer
                    return answer
                text = True
            elif isinstance(parent, m.Comp):
                if parent.elt is not child:
                    return False
            elif isinstance(parent, m.Subscript):
                if parent.value is not child:
                    return False
            elif isinstance(parent, (m.ExprStmt, m.WithItem)):
                self.named = self.named or text
                return text
            elif isinstance(parent, m.Return) and self._func is not None:
                self._returned = True
                return text
            elif isinstance(parent, (m.Assign, m.AnnAssign)):
                targets = parent.targets if isinstance(parent, m.Assign) else [parent.target]
                return all(self._stored(function, target, depth, text) for target in targets)
            elif not isinstance(parent, (m.Seq, m.IfExp, m.Attr)):
                return False
            child, parent = parent, above.get(id(parent))
        return False

    def _is_text(self, node: m.Expr) -> bool:
        """Whether an expression surely gives text or a path."""
        if isinstance(node, m.Const):
            return isinstance(node.value, str)
        if isinstance(node, m.BinOp):
            return self._is_text(node.left) or self._is_text(node.right)
        if isinstance(node, m.Call):
            return self._role(node.func, "makes-text") is not None
        return isinstance(node, m.FString)

    def _given(self, call: m.Call, child: Any, named: bool) -> bool | None:
        """What a call makes of a value: a name (True), something else (False), or text (None)."""
        if self._role(call.func, "makes-text") is not None:
            return None
        role = self._role(call.func, "named-by")
        if role is None:
            return False
        if call.func is child:
            return role.arg == "self"
        if named:
            if not isinstance(child, m.Keyword) or child.name not in (role.arg, *role.more):
                return False
        elif role.pos is None or not any(one is child for one in call.args[role.pos : role.pos + 1]):
            return False
        given = v.Args(
            [_literal(one) for one in call.args], {k.name: _literal(k.value) for k in call.keywords if k.name}
        )
        return all_hold(given, role.when) is True

    def _given_to_function(self, call: m.Call, child: Any, text: bool) -> bool | None:
        """What a function of the program makes of a value that it is given: the same, by all that it does with it."""
        func = self._value_of(call.func)
        if not isinstance(func, v.Func) or func.decorated or func.receiver is not None:
            return False
        if self._depth >= _MOST_FUNCTIONS or func.fn.is_generator or func.fn.is_async:
            return False
        name = _parameter(func.fn, call, child)
        if name is None:
            return False
        outer = self._func, self._returned
        self._func, self._returned, self._depth = func, False, self._depth + 1
        self._run.body(func)
        answer = self._all_uses_name(func.fn, name, 0, text)
        returned = self._returned
        (self._func, self._returned), self._depth = outer, self._depth - 1
        return (None if returned else True) if answer else False

    def _role(self, func: m.Expr, role: Role) -> RoleEntry | None:
        kb = self._run.kb
        name = func.id if isinstance(func, m.Name) else func.name if isinstance(func, m.Attr) else ""
        if isinstance(func, m.Attr) and name == "__init__" and called_name(func.value) == "super":
            method = self._run.frame.func if self._func is None else self._func
            bases = method.cls.external_bases() if method is not None and method.cls is not None else []
            return kb.role(kb.canonical(bases[0]), role) if bases else None
        found = self._value_of(func)
        if isinstance(found, v.Ext):
            return kb.role(kb.canonical(found.name), role)
        if isinstance(found, (v.Func, v.Cls)) or (isinstance(func, m.Name) and "." not in name):
            return None
        return kb.role(f"?.{name.rpartition('.')[2]}", role)

    def _is_shown(self, call: m.Call, child: Any) -> bool:
        """Whether a call prints an argument, or writes it into a log."""
        called = _name_of(self._run, self._value_of(call.func))
        return call.func is not child and called.startswith(_SHOWING)

    def _stored(self, function: m.Function, target: m.Expr, depth: int, text: bool) -> bool:
        """Whether a value names something in all that is done with what it is stored in."""
        if isinstance(target, m.Subscript):
            holder = self._value_of(target.value)
            key = target.index.value if isinstance(target.index, m.Const) else None
            names = (
                isinstance(holder, v.Ext)
                and self._run.kb.role(f"{holder.name}.{key}", "named-by") is not None
            )
            self.named = self.named or names
            return names
        if not isinstance(target, m.Name) or "." in target.id or depth >= _MOST_VARIABLES:
            return False
        return self._all_uses_name(function, target.id, depth, text)

    def _all_uses_name(self, function: m.Function, name: str, depth: int, text: bool) -> bool:
        """Whether all that a function does with what a variable holds is to name something."""
        uses = 0
        for one in nodes(function.body):
            if not isinstance(one, m.Name) or one.id.partition(".")[0] != name:
                continue
            above = parents(function).get(id(one))
            if isinstance(above, m.Assign) and any(x is one for x in above.targets):
                continue
            if isinstance(above, m.Call) and above.func is one:
                # A method of it: its arguments are not what counts.
                answer = self._given(above, one, False)
                self.named = self.named or bool(answer)
                if answer is False or (
                    answer is None and not self.all_name(function, above, depth + 1, True)
                ):
                    return False
            elif not self._is_read_back(function, one, above) and not self.all_name(
                function, one, depth + 1, text
            ):
                return False
            uses += 1
        if not uses:
            return False
        file = self._run.frame.file if self._func is None else self._func.file
        return not liveness.may_be_shared(self._run.whole(file), function, {name})

    def _is_read_back(self, function: m.Function, name: m.Name, call: Any) -> bool:
        """Whether a call reads the file whose name is in a variable, which the function has written before."""
        if not isinstance(call, m.Call) or not self._is_file_of(call, name, "read-by"):
            return False
        return any(
            self._is_file_of(one, given, "named-by")
            for one in nodes(function.body)
            if isinstance(one, m.Call)
            and one.end < name.start
            # What is asked about a file writes nothing.
            and isinstance(parents(function).get(id(one)), (m.ExprStmt, m.WithItem, m.Assign))
            for given in one.args
            if isinstance(given, m.Name) and given.id == name.id
        )

    def _is_file_of(self, call: m.Call, name: m.Name, by: Role) -> bool:
        """Whether a variable stands for the name of the file in a call."""
        role = self._role(call.func, by)
        if (
            role is None
            or role.pos is None
            or not any(one is name for one in call.args[role.pos : role.pos + 1])
        ):
            return False
        given = v.Args(
            [_literal(one) for one in call.args], {k.name: _literal(k.value) for k in call.keywords if k.name}
        )
        return all_hold(given, role.when) is True


def _is_number(node: m.Expr) -> bool:
    return isinstance(node, m.Const) and isinstance(node.value, (int, float))


def _literal(node: m.Expr) -> v.Value:
    return v.Lit(node.value) if isinstance(node, m.Const) else v.UNKNOWN
