"""Branches that a program leaves out because of a constant that its code contains, as ``TRAIN = False``: what it would do
in them is noted for the coverage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any

from d9mlint.base.terminal import listed
from d9mlint.interp import values as v
from d9mlint.interp.activity import GIVES_STATE, KEEPS, LOADS, RESUMES, TRAIN
from d9mlint.interp.conditions import truth
from d9mlint.interp.events import AnyDrawEvent, CallEvent
from d9mlint.interp.listening import Listeners, on
from d9mlint.interp.text import with_keys
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import leaves
from d9mlint.ir.scopes import declared_names, own_names, stored_attributes, times_stored
from d9mlint.ir.traversal import nodes, parents, statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.project.modules import ModuleFile

_NOTED = (
    ("trains", (TRAIN,)),
    ("draws random numbers", ()),
    ("saves files", (KEEPS,)),
    ("loads weights", (LOADS, GIVES_STATE, RESUMES)),
    ("reads data", ()),
)
"""What a program does, with the places that say so."""
_DRAWS, _READS = _NOTED[1][0], _NOTED[4][0]
_DEPTH = 4
"""From a name to the module that defines it, imports are followed at most so often."""


class _Done:
    """What happens in a speculation, besides what is noted as a place."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp
        self.found: set[str] = set()

    @on(AnyDrawEvent)
    def drew(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        self.found.add(_DRAWS)

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """A library function is called."""
        kb = self._interp.kb
        if kb.role(call.api, "reads-data") is not None or kb.role(call.api, "reads-arrays") is not None:
            self.found.add(_READS)


def left_out(interp: Interp, stmt: m.If, answer: bool) -> None:
    """The test of an ``if`` has this answer, whatever options are given."""
    taken, other = (stmt.body, stmt.orelse) if answer else (stmt.orelse, stmt.body)
    below = _below(interp, stmt) if any(map(leaves, taken)) else []
    if not any(isinstance(one, m.Call) for one in nodes([*other, *below])):
        return
    what = "branch" if other else "code below,"
    _note(interp, stmt, stmt.test, answer, what, lambda: interp.block([*other, *below]))


def other_part(interp: Interp, node: m.IfExp, answer: bool) -> None:
    """The same of the test of a conditional expression."""
    other = node.orelse if answer else node.body
    if any(isinstance(one, m.Call) for one in nodes([other])):
        _note(interp, other, node.test, answer, "expression", lambda: interp.eval(other))


def _note(interp: Interp, place: Any, test: m.Expr, answer: bool, what: str, run: Callable[[], Any]) -> None:
    if interp.entry is None or not interp.looks_behind_constants or interp.exhausted:
        return
    if interp.speculating or interp.muted or interp.importing:
        return
    site = interp.here(place)
    if site in interp.left_out:
        return
    interp.left_out.add(site)
    cause = _cause(interp, test, answer)
    if cause is None:
        return
    done = _speculate(interp, run)
    if done:
        value = interp.value_of(cause)
        shown = repr(value.value) if isinstance(value, v.Lit) else ""
        why = f"the test is `{shown}`" if isinstance(cause, m.Const) else f"`{with_keys(cause)}` is {shown}"
        interp.gap("constant", f"the {what} in which the program {listed(done)}, because {why}", cause)


def _below(interp: Interp, stmt: m.If) -> Sequence[m.Stmt]:
    """The statements behind one in its block."""
    function = interp.frame.function
    parent = parents(function).get(id(stmt))
    blocks = [function.body] if parent is None else [getattr(parent, name, []) for name in ("body", "orelse")]
    for block in blocks:
        for at, one in enumerate(block):
            if one is stmt:
                return block[at + 1 :]
    return []


def _speculate(interp: Interp, run: Callable[[], Any]) -> list[str]:
    """What a program would do."""
    observer = _Done(interp)
    with _unchanged(interp):
        # No rule is to report what does not run.
        interp.unobserved = Listeners()
        interp.unobserved.add(interp.activity)
        with interp.fork(observer):
            interp.places = {}
            run()
            places = interp.places
    return [word for word, flags in _NOTED if word in observer.found or any(flag in places for flag in flags)]


@contextmanager
def _unchanged(interp: Interp) -> Iterator[None]:
    """What a speculation changes in a run and the running activation besides what ``fork`` restores is afterwards what it
    was. What was read stays noted."""
    kept, orders, frame, env = dict(vars(interp)), copy(interp.orders), interp.frame, interp.frame.env
    jumps, asides, variables = frame.jumps, frame.asides, env.vars
    returns, returns_aside = frame.returns, frame.returns_aside
    for owner in (interp, orders):
        for name, held in vars(owner).items():
            if type(held) in (set, dict, list) and name not in _READ:
                setattr(owner, name, held.copy())
    interp.orders = orders
    env.vars, frame.asides, frame.jumps = dict(variables), list(asides), [list(one) for one in jumps]
    frame.returns, frame.returns_aside = list(returns), list(returns_aside)
    try:
        yield
    finally:
        vars(interp).update(kept)
        env.vars, frame.asides, frame.jumps = variables, asides, jumps
        frame.returns, frame.returns_aside = returns, returns_aside


_READ = frozenset({"trail", "config_files"})


def _cause(interp: Interp, test: m.Expr, answer: bool) -> m.Expr | None:
    """The constant, as the test names it, that gives a test its answer."""
    if isinstance(test, m.Unary) and test.op == "not":
        return _cause(interp, test.operand, not answer)
    if isinstance(test, m.BoolOp):
        parts = (one for one in (test.left, test.right) if truth(interp, interp.value_of(one)) is answer)
        return next((cause for one in parts if (cause := _cause(interp, one, answer)) is not None), None)
    if isinstance(test, m.Compare):
        sides = [test.left, *test.comparators]
        named = [one for one in sides if not all(isinstance(x, (m.Const, m.Seq)) for x in nodes([one]))]
        return _cause(interp, named[0], answer) if len(named) == 1 else None
    frame = interp.frame
    if frame.is_class or not isinstance(_constant(interp, frame.file, frame.function, test), m.Const):
        return None
    value = interp.value_of(test)
    return test if isinstance(value, v.Lit) and not value.option else None


def _constant(
    interp: Interp, file: ModuleFile, function: m.Function | None, node: m.Expr, depth: int = 0
) -> m.Expr | None:
    """The expression that alone gives a name, an attribute or an item in the code of the program its value, where that is
    known; in a function of a file, or, without one, in the module."""
    if isinstance(node, m.Subscript):
        held = _constant(interp, file, function, node.value, depth)
        if not isinstance(held, m.Dict) or not isinstance(node.index, m.Const):
            return None
        pairs = zip(held.keys, held.values, strict=True)
        found = [one for key, one in pairs if isinstance(key, m.Const) and key.value == node.index.value]
        return found[0] if len(found) == 1 else None
    if not isinstance(node, m.Name) or depth > _DEPTH:
        return node if isinstance(node, (m.Const, m.Dict)) else None
    name, _, attribute = node.id.partition(".")
    if attribute:
        owner = interp.value_of(m.Name(name, node.start, node.start + len(name)))
        if isinstance(owner, v.Mod) and owner.file is not None:
            rest = m.Name(attribute, node.start, node.end)
            return _constant(interp, owner.file, None, rest, depth + 1)
        cls = owner.cls if isinstance(owner, v.Inst) else owner
        return _of_class(interp, cls, attribute) if isinstance(cls, v.Cls) else None
    facts = interp.whole(file)
    scope = function if function is not None and name in own_names(function) else facts.functions[0]
    if name in declared_names(facts):
        return None
    origins = [
        (stmt, alias.name)
        for stmt in statements(scope.body)
        if isinstance(stmt, m.ImportFrom)
        for alias in stmt.names
        if name == (alias.asname or alias.name)
    ]
    if len(origins) + times_stored(scope, name) != 1:
        return None
    if not origins:
        return _only(_given(scope.body, name))
    ((stmt, meant),) = origins
    if stmt.level:
        module = interp.modules.relative(file, stmt.level, stmt.module)
    else:
        module = interp.find_module(file, stmt.module)
    if module is None or module.file is None:
        return None
    return _constant(interp, module.file, None, m.Name(meant, stmt.start, stmt.end), depth + 1)


def _of_class(interp: Interp, cls: v.Cls, name: str) -> m.Expr | None:
    """The same for an attribute of a class, or of its instances, that only the constructor or the body of the class sets."""
    for one in cls.mro():
        if name in stored_attributes(interp.whole(one.file)):
            return None
        made = one.env.vars.get("__init__")
        given = _given(one.cls.body, name)
        if isinstance(made, v.Func) and made.fn.params:
            given += _given(interp.body(made), f"{made.fn.params[0].name}.{name}")
        if given:
            return _only(given)
    return None


def _given(body: Sequence[m.Stmt], name: str) -> list[m.Expr]:
    """What statements assign to a name."""
    found: list[m.Expr] = []
    for stmt in statements(body):
        if isinstance(stmt, (m.Assign, m.AnnAssign)) and stmt.value is not None:
            targets = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
            found += [stmt.value for one in targets if isinstance(one, m.Name) and one.id == name]
    return found


def _only(given: list[m.Expr]) -> m.Expr | None:
    """The one constant, or dictionary, that is assigned."""
    return given[0] if len(given) == 1 and isinstance(given[0], (m.Const, m.Dict)) else None
