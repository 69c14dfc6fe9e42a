"""Loaders and datasets that nothing iterates: a loader of which the program reads the dataset only, a dataset from which
nothing but further datasets are made, and one that nothing but such loaders are given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.asked_items import changes_own_only
from d9mlint.interp.naming import called_in_library, is_private, needs_form_only, running
from d9mlint.interp.passed_on import ENUMERATE, PASS_THROUGH
from d9mlint.ir import nodes as m
from d9mlint.ir.forms import rounds_ask_for_form
from d9mlint.ir.liveness import declares, may_be_shared, only_asked_for
from d9mlint.ir.traversal import called_name, nodes, parents
from d9mlint.project.entry_points import is_main_test

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import OrderEntry

_KEPT = frozenset({"dataset", "batch_size", "num_workers", "drop_last"})
"""Attributes of loaders that are as they were given: to read them starts no worker and draws no order."""


def is_idle(run: RunView, node: Any, asked: frozenset[str] = _KEPT) -> bool:
    """Whether a loader is made that the function which makes it keeps for itself, and does not iterate but to ask the
    batches for their form; it asks the loader for the attributes ``asked`` at most."""
    function = running(run)
    if function is None or not isinstance(node, m.Call):
        return False
    file = run.frame.file
    alone = run.entry is file and file.path not in run.imported_files and _is_program(function)
    for_form = _asked_for_form(run, function)
    if id(node) in for_form:
        return _makes_items_only(run, node)
    kept = only_asked_for(function, node, asked, alone, for_form)
    if not kept or may_be_shared(run.whole(file), function, {kept}):
        return False
    return not for_form or _makes_items_only(run, node)


def is_idle_dataset(interp: Interp, dataset: v.Inst) -> bool:
    """Whether nothing takes items of a dataset that is being made: the function which makes it keeps it for itself, and
    asks for its length at most, or gives it to loaders that are idle."""
    node, frame = dataset.node, interp.frame.caller
    if node is None:
        return False
    while frame is not None and (
        frame.is_class or all(one is not node for one in nodes(frame.function.body))
    ):
        frame = frame.caller
    if frame is None:
        return False
    running_now, interp.frame = interp.frame, frame
    try:
        function, file = frame.function, frame.file
        alone = interp.entry is file and file.path not in interp.imported_files and _is_program(function)
        wrapped = {
            id(x)
            for one in nodes(function.body)
            if isinstance(one, m.Call)
            and (entry := interp.kb.order(called_in_library(interp, one), False)) is not None
            and takes_nothing(interp, entry, one)
            for x in (*one.args, *(keyword.value for keyword in one.keywords))
        }
        kept = only_asked_for(function, node, frozenset(), alone, wrapped)
        return kept != "" and not may_be_shared(interp.whole(file), function, {kept})
    finally:
        interp.frame = running_now


def takes_nothing(run: RunView, entry: OrderEntry, node: Any) -> bool:
    """Whether a call makes something that takes elements of its data where it is iterated, and nothing iterates it."""
    return bool(entry.lazy) and is_idle(run, node, frozenset(entry.lazy))


def _asked_for_form(run: RunView, function: m.Function) -> set[int]:
    """The expressions whose elements a function asks for nothing but their form, by id: it goes through them in a loop,
    or takes the first."""
    found = set[int]()
    for one in nodes(function.body):
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
        elif isinstance(one, m.Call) and called_name(one) == "next" and len(one.args) == 1:
            walk = one.args[0]
            if isinstance(walk, m.Call) and called_name(walk) == "iter" and len(walk.args) == 1:
                if needs_form_only(run, one):
                    found.add(id(walk.args[0]))
    return found


def _makes_items_only(run: RunView, node: m.Call) -> bool:
    """Whether a loader's dataset is not seen to change anything where it makes its items."""
    given = next(iter(node.args), None) or next((x.value for x in node.keywords if x.name == "dataset"), None)
    dataset = run.value_of(given) if isinstance(given, m.Name) else v.UNKNOWN
    if not isinstance(dataset, v.Inst):
        return True
    method = dataset.cls.find("__getitem__")
    return not isinstance(method, v.Func) or changes_own_only(dataset.cls, method)


def _is_program(function: m.Function) -> bool:
    """Whether the body of a module does more than define: it has a loop or a ``with`` statement, or says what runs where
    the module is started."""
    return any(
        isinstance(one, (m.For, m.While, m.With)) or (isinstance(one, m.If) and is_main_test(one.test))
        for one in nodes(function.body)
    )


def is_dropped(run: RunView, node: Any, api: str) -> bool:
    """Whether nothing ever takes an element of the dataset that a method of another one gives: it is dropped, or kept by
    the running function for itself, and so is all that is made from it."""
    function, file = running(run), run.frame.file
    if function is None or not isinstance(node, m.Call):
        return False
    if function.name == "<module>" and file.path in run.imported_files:
        return False
    names: set[str] = set()
    dropped = _is_dropped(run, function, node, run.kb.result_type(api) or api, names)
    if not dropped or not names:
        return dropped
    return not declares(function, names) and not may_be_shared(run.whole(file), function, names)


def _is_dropped(run: RunView, function: m.Function, node: Any, cls: str, names: set[str]) -> bool:
    above = parents(function)
    parent = above.get(id(node))
    if isinstance(parent, m.ExprStmt):
        return True
    if isinstance(parent, m.Assign):
        target = parent.targets[0]
        if parent.value is not node or len(parent.targets) != 1:
            return False
        if not isinstance(target, m.Name) or "." in target.id:
            return False
        if target.id in names:
            return True
        names.add(target.id)
        return all(_use_is_dropped(run, function, one, target.id, cls, names) for one in nodes(function.body))
    if isinstance(parent, m.Keyword):
        parent = above.get(id(parent))
    elif isinstance(parent, m.Attr):
        # The next method in a chain.
        call = above.get(id(parent))
        if not isinstance(call, m.Call) or call.func is not parent or not _gives(run, cls, parent.name):
            return False
        return _is_dropped(run, function, call, cls, names)
    if not isinstance(parent, m.Call) or parent.func is node or not isinstance(parent.func, m.Name):
        return False
    method = run.value_of(parent.func)
    owner = method.owner if isinstance(method, v.Member) else None
    if not isinstance(method, v.Member) or not isinstance(owner, v.Obj) or owner.type != cls:
        return False
    return _gives(run, cls, method.name) and _is_dropped(run, function, parent, cls, names)


def _use_is_dropped(
    run: RunView, function: m.Function, one: Any, name: str, cls: str, names: set[str]
) -> bool:
    """Whether a node does not take elements of the dataset in a variable."""
    if isinstance(one, m.Walrus):
        return one.target != name
    if not isinstance(one, m.Name):
        return True
    first, _, method = one.id.partition(".")
    if first != name:
        return True
    above = parents(function)
    parent = above.get(id(one))
    if not method:
        stored = isinstance(parent, m.Assign) and any(target is one for target in parent.targets)
        return stored or _is_dropped(run, function, one, cls, names)
    called = isinstance(parent, m.Call) and parent.func is one and _gives(run, cls, method)
    return called and _is_dropped(run, function, parent, cls, names)


def _gives(run: RunView, cls: str, method: str) -> bool:
    """Whether a method of a class gives another object of it."""
    return "." not in method and run.kb.result_type(f"{cls}.{method}") == cls
