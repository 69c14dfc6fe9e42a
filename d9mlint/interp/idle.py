"""Loaders and datasets that nothing iterates: a loader of which the program reads the dataset only, a dataset from which
nothing but further datasets are made, and one that nothing but such loaders are given; iterators that nothing reads."""

from __future__ import annotations

from collections.abc import Container
from functools import partial
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.asked_items import changes_own_only
from d9mlint.interp.context import RESULT, Question
from d9mlint.interp.heap import HEAP
from d9mlint.interp.methods import BINDING
from d9mlint.interp.naming import called_in_library, is_private, needs_form_only
from d9mlint.interp.passed_on import ENUMERATE, PASS_THROUGH
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.forms import rounds_ask_for_form
from d9mlint.ir.kept import Kept, Path
from d9mlint.ir.left_out import left_out, left_out_by_module
from d9mlint.ir.liveness import declared_global
from d9mlint.ir.traversal import call_at, called_name, nodes, parents
from d9mlint.project.entry_points import is_main_test

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import Site
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import OrderEntry, RoleEntry

_DATASET = "dataset"
_KEPT = frozenset({_DATASET, "batch_size", "num_workers", "drop_last"})
"""Attributes of loaders that are as they were given: to read them starts no worker and draws no order."""


def is_idle(run: RunView, node: Any, asked: frozenset[str] = _KEPT) -> bool:
    """Whether something is made of which nothing takes elements but to ask them for their form: the function that makes it
    keeps it for itself, gives it to loaders that are idle, or returns it to a caller of which the same is true. It is asked
    for the attributes ``asked`` at most."""
    # What the constructor of a base class makes is the object whose class inherits from it.
    return (
        isinstance(node, m.Call)
        and called_name(node) != "__init__"
        and _stays_idle(run, run.frame, node, asked)
    )


def result_is_idle(run: RunView, func: v.Func, node: Any, question: Question) -> bool:
    """The answer for a call of a function to a question about what that returns, for the memo."""
    _, _, (asked, path, for_form, later) = question
    return _returns(run, node, func) and _stays_idle(run, run.frame, node, asked, path, for_form, later)


def is_idle_dataset(interp: Interp, dataset: v.Inst) -> bool:
    """Whether nothing takes items of a dataset that is being made: it is asked for its length at most, or given to loaders
    that are idle."""
    node, frame = dataset.node, interp.frame.caller
    if not isinstance(node, m.Call):
        return False
    while frame is not None and (
        frame.is_class or all(one is not node for one in nodes(frame.function.body))
    ):
        frame = frame.caller
    return frame is not None and _stays_idle(interp, frame, node, frozenset(), for_form=False)


def _stays_idle(
    run: RunView,
    frame: Frame,
    node: m.Call,
    asked: frozenset[str],
    path: Path = (),
    for_form: bool | None = None,
    later: str = "",
) -> bool:
    """Whether what a call in a frame gives stays idle, or what that holds at a path; ``for_form`` says whether it is
    nothing but that if elements are asked for their form. ``later`` is its class, where that has methods that give what
    takes elements of it later."""
    goes_on = partial(_gives_later, run, later)
    at: Frame | None = frame
    while at is not None and not at.is_class:
        with run.in_frame(at):
            function = at.function
            passed = set[int]() if later else _asked_for_form(run, function)
            kept = Kept(function, partial(_asked_of_taker, run), passed, goes_on, never=_never_run(run, at))
            if not kept.follow(node, asked, path):
                return False
            # What a module keeps others may use.
            alone = _is_alone(run, at, node) or (bool(later) and at.file.path not in run.imported_files)
            if kept.places and not (alone and is_private(run, function, set(kept.places))):
                return False
            if for_form is None and (kept.passed_over or kept.returned):
                for_form = _makes_items_only(run, node)
            if kept.passed_over and not for_form:
                return False
        if not kept.returned:
            return True
        caller, site, func = at.caller, at.call_site, at.func
        if caller is None or site is None or func is None or len(kept.returned) > 1:
            return False
        ((path, asked),) = kept.returned
        # Another caller may do something else with what the function gives.
        HEAP.act.circumstances.add((RESULT, "", (asked, path, for_form, later)))
        call = _call_at(caller, site)
        with run.in_frame(caller):
            if call is None or not _returns(run, call, func):
                return False
        at, node = caller, call
    return False


def _never_run(run: RunView, frame: Frame) -> Container[int]:
    """What a function never runs, by id, because of a constant that nothing else in the file assigns."""
    found = left_out(frame.function)
    if frame.func is not None:
        found = {**found, **left_out_by_module(frame.file.facts.functions[0], frame.function)}
    # Only here the rest of the file matters: another function may declare the variable to be that of an outer one.
    elsewhere = declared_global(run.whole(frame.file)) if found else frozenset[str]()
    return {one for one, name in found.items() if name not in elsewhere}


def _is_alone(run: RunView, frame: Frame, node: m.Call) -> bool:
    """Whether no other module may use the variables in which something is kept that a call in a frame gives."""
    if frame.func is not None:
        return True
    file = frame.file
    if run.entry is not file:
        return False
    return _is_started(frame.function, node) or (
        file.path not in run.imported_files and _is_program(run.whole(file))
    )


def _is_started(module: m.Function, node: Any) -> bool:
    """Whether a node of a module's body runs where the module is started alone, not where it is imported."""
    above = parents(module)
    while (parent := above.get(id(node))) is not None:
        if isinstance(parent, m.If) and is_main_test(parent.test):
            return any(one is node for one in parent.body)
        node = parent
    return False


def _call_at(frame: Frame, site: Site) -> m.Call | None:
    """The call that stands at a place, in what a frame runs."""
    return call_at(frame.body, site.start, site.end) if frame.file.path == site.path else None


def _returns(run: RunView, node: Any, func: v.Func) -> bool:
    """Whether a call calls a function, and gives what that gives."""
    plain = all(isinstance(one, v.Ext) and one.name in BINDING for one in func.decorated)
    if func.fn.is_generator or func.fn.is_async or not plain:
        return False
    called = (
        run.value_of(node.func) if isinstance(node, m.Call) and isinstance(node.func, m.Name) else v.UNKNOWN
    )
    return any(isinstance(one, v.Func) and one.fn is func.fn for one in v.alternatives(called))


def _asked_of_taker(run: RunView, node: m.Call, argument: Any, path: Path) -> frozenset[str] | None:
    name = called_in_library(run, node)
    entry = run.kb.order(name, False)
    if entry is not None and entry.lazy and not path:
        # The dataset of a loader does not hold the loader's sampler.
        return frozenset(entry.lazy) | (frozenset() if argument is _data(node) else {_DATASET})
    method = run.value_of(node.func) if not name and isinstance(node.func, m.Name) else None
    if isinstance(method, v.Member) and isinstance(method.owner, v.Obj):
        name = f"{method.owner.type}.{method.name}"
    role = reads_later(run, name)
    return frozenset(role.more) if role is not None else None


def reads_later(run: RunView, api: str) -> RoleEntry | None:
    """What is known of a call that gives something that takes elements of what it is made from where elements of it are
    taken."""
    return run.kb.role(api, "reads-later") or run.kb.role(run.kb.result_type(api), "reads-later")


def _gives_later(run: RunView, cls: str, method: str) -> bool:
    """Whether a method of a class gives something that takes elements of the receiver later."""
    return bool(cls) and "." not in method and reads_later(run, f"{cls}.{method}") is not None


def takes_nothing(run: RunView, entry: OrderEntry, node: Any) -> bool:
    """Whether a call makes something that takes elements of its data where it is iterated, and nothing iterates it."""
    return bool(entry.lazy) and is_idle(run, node, frozenset(entry.lazy))


@memoized
def _loops_and_steps(function: m.Function) -> tuple[m.For | m.Call, ...]:
    """The loops of a function, and where it takes the next element of something; memoised while the function lives."""
    return tuple(
        one
        for one in nodes(function.body)
        if isinstance(one, m.For)
        or (isinstance(one, m.Call) and called_name(one) == "next" and len(one.args) == 1)
    )


def _asked_for_form(run: RunView, function: m.Function) -> set[int]:
    """The expressions whose elements a function asks for nothing but their form, by id: it goes through them in a loop,
    or takes the first."""
    found = set[int]()
    for one in _loops_and_steps(function):
        if isinstance(one, m.For):
            given, numbered = one.iter, False
            while (
                isinstance(given, m.Call)
                and given.args
                and (passes := called_in_library(run, given)) in PASS_THROUGH
            ):
                numbered = numbered or passes == ENUMERATE
                given = given.args[0]
            kept = rounds_ask_for_form(function, one, numbered)
            if kept is not None and is_private(run, function, kept):
                found.add(id(given))
        else:
            walk = one.args[0]
            if isinstance(walk, m.Call) and called_name(walk) == "iter" and len(walk.args) == 1:
                if needs_form_only(run, one):
                    found.add(id(walk.args[0]))
    return found


def _makes_items_only(run: RunView, node: m.Call) -> bool:
    """Whether a loader's dataset is not seen to change anything where it makes its items."""
    given = _data(node)
    dataset = run.value_of(given) if isinstance(given, m.Name) else v.UNKNOWN
    if not isinstance(dataset, v.Inst):
        return True
    method = dataset.cls.find("__getitem__")
    return not isinstance(method, v.Func) or changes_own_only(dataset.cls, method)


def _data(loader: m.Call) -> m.Expr | None:
    return next(iter(loader.args), None) or next(
        (x.value for x in loader.keywords if x.name == _DATASET), None
    )


def _is_program(facts: m.FileFacts) -> bool:
    """Whether the body of a module does more than define: it has a loop or a ``with`` statement, or calls a function of the
    module that has one, or says what runs where the module is started."""
    module, *others = facts.functions
    if any(isinstance(one, m.If) and is_main_test(one.test) for one in nodes(module.body)) or _goes_through(
        module
    ):
        return True
    called = {called_name(one) for one in nodes(module.body) if isinstance(one, m.Call)}
    return any(one.name in called and _goes_through(one) for one in others)


def _goes_through(function: m.Function) -> bool:
    return any(isinstance(one, (m.For, m.While, m.With)) for one in nodes(function.body))


def is_dropped(run: RunView, node: Any, api: str) -> bool:
    """Whether nothing ever takes an element of what a call gives, which takes those of what it is made from no sooner."""
    role = reads_later(run, api)
    if role is None or not isinstance(node, m.Call):
        return False
    cls = run.kb.result_type(api) or api
    return _stays_idle(run, run.frame, node, frozenset(role.more), for_form=False, later=cls)
