"""Whether what a call makes is ever asked for something that it draws: by syntax, and the functions that names stand for."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assignments, own_names
from d9mlint.ir.traversal import nodes, parents, variables, whole_number

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Drawn

_DEEPEST = 4
"""Through so many calls a value is followed."""


def is_displayed(run: RunView, node: Any) -> bool:
    """Whether a notebook shows what a call in a cell gives, or a method of it, and nothing else takes it."""
    frame = run.frame
    if not frame.file.notebook or frame.func is not None:
        return False
    above = parents(frame.function)
    user = above.get(id(node))
    while (
        isinstance(user, (m.Attr, m.Call)) and (user.value if isinstance(user, m.Attr) else user.func) is node
    ):
        if isinstance(user, m.Call) and (
            user.keywords or any(whole_number(one) is None for one in user.args)
        ):
            # It may be given the name of a file to write.
            return False
        node, user = user, above.get(id(user))
    return isinstance(user, m.ExprStmt)


class _Code(NamedTuple):
    """A function, with all that stands in its file."""

    facts: m.FileFacts
    function: m.Function


class _Fixed(NamedTuple):
    """The names whose values are fixed in the first rounds, for how many of these that is so, and from where on."""

    names: frozenset[str]
    rounds: int


_NOTHING = _Fixed(frozenset(), 0)


def never_asked(run: RunView, node: Any, entry: Drawn) -> str:
    """Why nothing is drawn with what a call makes, or only what the program has fixed; empty where something may be."""
    frame = run.frame
    facts = run.whole(frame.file)
    function = frame.function
    parent = parents(function).get(id(node))
    if isinstance(parent, m.ExprStmt):
        return "nothing is done with what it makes"
    if not isinstance(parent, m.Assign) or len(parent.targets) != 1:
        return ""
    target = parent.targets[0]
    if not isinstance(target, m.Name) or "." in target.id:
        return ""
    if function is facts.functions[0] and frame.file.path in run.imported_files:
        return ""
    look = _Look(run, entry)
    # What is fixed of one object that the name stands for is not of the others.
    fixed = look.fixed(function, target.id) if assignments(function.body, target.id) == 1 else _NOTHING
    if not look.is_quiet(_Code(facts, function), target.id, fixed, False):
        return ""
    return "nothing is seen to be drawn with what it makes, other than values that the program has fixed"


class _Look:
    def __init__(self, run: RunView, entry: Drawn) -> None:
        self._run = run
        self._entry = entry

    def fixed(self, function: m.Function, name: str) -> _Fixed:
        """What the body of a function surely fixes of the object that a name stands for."""
        names: frozenset[str] | None = None
        rounds = 0
        for stmt in function.body:
            call = stmt.value if isinstance(stmt, m.ExprStmt) else None
            if not isinstance(call, m.Call) or not isinstance(call.func, m.Name):
                continue
            owner, _, method = call.func.id.partition(".")
            given = call.args[0] if call.args else None
            if owner != name or method not in self._entry.fixes:
                continue
            if not isinstance(given, m.Dict):
                return _NOTHING
            keys = [one.value if isinstance(one, m.Const) else None for one in given.keys]
            texts = frozenset(one for one in keys if isinstance(one, str))
            names = texts if names is None else names & texts
            rounds += 1
        return _Fixed(names or frozenset(), rounds)

    def is_quiet(self, code: _Code, name: str, fixed: _Fixed, draws: bool, depth: int = 0) -> bool:
        """Whether a function draws nothing with what a variable holds: an object that is given functions that draw, or
        what draws itself (``draws``)."""
        facts, function = code
        if depth > _DEEPEST or _is_shared(facts, function, name):
            return False
        above = parents(function)
        for one in variables(function).get(name, ()):
            parent = above.get(id(one))
            if isinstance(parent, m.Assign) and one in parent.targets:
                continue
            attribute = one.id.partition(".")[2]
            if not attribute:
                if not self._is_handed_on(code, one, fixed, draws, depth):
                    return False
                continue
            called = isinstance(parent, m.Call) and parent.func is one
            if draws and any(fnmatchcase(attribute, pattern) for pattern in self._entry.draws):
                if not (called and isinstance(parent, m.Call) and _is_named(parent, fixed.names)):
                    return False
            elif not draws and attribute in (*self._entry.runs, *self._entry.gives):
                if not isinstance(parent, m.Call) or parent.func is not one:
                    return False
                if attribute in self._entry.gives:
                    if not self._gives_quietly(code, parent, depth):
                        return False
                elif not self._runs_quietly(code, parent, fixed, depth):
                    return False
        return True

    def _is_handed_on(self, code: _Code, name: m.Name, fixed: _Fixed, draws: bool, depth: int) -> bool:
        """Whether a variable is given to a function of the project that draws nothing with it."""
        above = parents(code.function)
        parent, keyword = above.get(id(name)), ""
        if isinstance(parent, m.Keyword):
            keyword, parent = parent.name or "", above.get(id(parent))
            if not keyword:
                return False
        if not isinstance(parent, m.Call) or not isinstance(parent.func, m.Name):
            return False
        called = self._function(code, parent.func)
        if called is None:
            return False
        param = keyword
        if not keyword:
            at = next((at for at, one in enumerate(parent.args) if one is name), None)
            if at is None or any(isinstance(one, m.Star) for one in parent.args[:at]):
                return False
            params = called.function.params
            param = params[at].name if at < len(params) and params[at].kind in "pa" else ""
        if param not in {one.name for one in called.function.params if one.kind in "pak"}:
            return False
        inner = fixed if draws else _NOTHING
        return self.is_quiet(called, param, inner, draws, depth + 1)

    def _gives_quietly(self, code: _Code, call: m.Call, depth: int) -> bool:
        if call.args or call.keywords:
            return False
        parent = parents(code.function).get(id(call))
        if isinstance(parent, m.ExprStmt):
            return True
        if isinstance(parent, m.Attr):
            return not any(fnmatchcase(parent.name, pattern) for pattern in self._entry.draws)
        target = parent.targets[0] if isinstance(parent, m.Assign) and len(parent.targets) == 1 else None
        if not isinstance(target, m.Name) or "." in target.id:
            return False
        if assignments(code.function.body, target.id) != 1:
            return False
        return self.is_quiet(code, target.id, _NOTHING, True, depth + 1)

    def _runs_quietly(self, code: _Code, call: m.Call, fixed: _Fixed, depth: int) -> bool:
        given = call.args[0] if call.args else None
        called = self._function(code, given) if given is not None else None
        if called is None or not called.function.params or called.function.params[0].kind not in "pa":
            return False
        rounds = next((one.value for one in call.keywords if one.name == self._entry.rounds), None)
        if rounds is None and len(call.args) > 1:
            rounds = call.args[1]
        number = rounds.value if isinstance(rounds, m.Const) else None
        stands = any(isinstance(one, m.ExprStmt) and one.value is call for one in code.function.body)
        enough = stands and isinstance(number, int) and number <= fixed.rounds
        first = called.function.params[0].name
        return self.is_quiet(called, first, fixed if enough else _NOTHING, True, depth + 1)

    def _function(self, code: _Code, node: m.Expr) -> _Code | None:
        """The function of the project that an expression stands for."""
        facts, function = code
        if isinstance(node, m.Lambda):
            return _Code(facts, facts.functions[node.function])
        if not isinstance(node, m.Name) or "." in node.id:
            return None
        mine = next(at for at, one in enumerate(facts.functions) if one is function)
        found = [one for one in facts.functions if one.name == node.id and one.parent in (0, mine)]
        if len(found) == 1 and found[0].cls < 0 and not found[0].decorators:
            return _Code(facts, found[0])
        if found or node.id in own_names(function) or facts is not self._run.whole(self._run.frame.file):
            return None
        value = self._run.value_of(node)
        if not isinstance(value, v.Func) or value.receiver is not None or value.fn.decorators:
            return None
        return _Code(self._run.whole(value.file), value.fn)


def _is_shared(facts: m.FileFacts, function: m.Function, name: str) -> bool:
    """Whether a function of the file may read a variable of another one."""
    functions = facts.functions
    mine = next(at for at, one in enumerate(functions) if one is function)
    inner: set[int] = {mine}
    for at, one in enumerate(functions):
        # A function stands behind the one around it.
        if at != mine and one.parent in inner:
            inner.add(at)
            if name in variables(one) and name not in own_names(one):
                return True
    return any(name in one.names for one in nodes(function.body) if isinstance(one, m.ScopeDecl))


def _is_named(call: m.Call, names: frozenset[str]) -> bool:
    given = call.args[0] if call.args else None
    return isinstance(given, m.Const) and given.value in names
