"""Other processes and threads: with which RNG state and modes they start."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from d9mlint.interp import values as v
from d9mlint.interp.context import SPAWNED, THREAD
from d9mlint.interp.devices import RANK
from d9mlint.interp.library.queues import SEVERAL
from d9mlint.interp.state import MODE, RNG, State, StateTable
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import target_names
from d9mlint.ir.traversal import called_name, nodes, parents

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

T = TypeVar("T")


def _spawn(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``torch.multiprocessing.spawn(fn, args=(...))``: a fresh interpreter; nothing of the parent's state."""
    func = args.get("fn", 0)
    given = args.get("args", 1)
    rest = list(given.elts) if isinstance(given, v.Items) else []
    star = not isinstance(given, v.Items) and given is not None
    if func is not None:
        outer, interp.spawned = interp.spawned, func.fn.name if isinstance(func, v.Func) else interp.spawned
        with interp.within(SPAWNED):
            _in_state(interp, _fresh(interp), func, v.Args([v.Obj(RANK), *rest], star=star), node)
        interp.spawned = outer
    return v.NONE


def in_new_process(interp: Interp, name: str, node: Any, run: Callable[[], T]) -> T:
    """What runs in processes that are started anew: nothing of the parent's state. ``name`` is what begins there."""
    outer, interp.spawned = interp.spawned, name
    with interp.within(SPAWNED):
        found = _run_in_state(interp, _fresh(interp), run, node)
    interp.spawned = outer
    return found


def first_in(args: v.Args) -> str:
    """The name of the function that is handed over in a call to begin a process, or of the constructor of a class, or its
    first method where it has none; empty where there is none."""
    for value in args.values():
        for one in v.alternatives(value):
            while isinstance(one, v.Partial):
                one = one.func
            if isinstance(one, v.Func) and one.fn.name.isidentifier():
                return one.fn.name
            if isinstance(one, v.Cls):
                methods = [name for name, x in one.env.all().items() if isinstance(x, v.Func)]
                own = isinstance(one.find("__init__"), v.Func) or not methods
                return f"{one.cls.name}.{'__init__' if own else methods[0]}"
    return ""


def remote(interp: Interp, member: v.Member, args: v.Args, node: Any) -> v.Value | None:
    """``function.remote(...)`` and ``Actor.remote(...)`` of what a decorator lets run in processes of a library, and
    ``actor.method.remote(...)``. An actor keeps the state of its process between calls: methods of one that seeds anything
    are not followed. None for any other method; what a call of a function gives is not known yet."""
    owner = member.owner
    if not isinstance(owner, (v.Func, v.Cls)):
        return None
    whole = owner.receiver.cls if isinstance(owner, v.Func) and isinstance(owner.receiver, v.Inst) else owner
    if not whole.decorated or not _runs_elsewhere(interp, whole, member.name):
        return None
    if isinstance(owner, v.Func):
        if isinstance(whole, v.Func) or not any(_seeds(interp, one) for one in whole.mro()):
            in_new_process(interp, owner.fn.name, node, lambda: interp.call(owner, args, node))
        return v.UNKNOWN
    return in_new_process(interp, f"{owner.cls.name}.__init__", node, lambda: interp.call(owner, args, node))


def _runs_elsewhere(interp: Interp, decorated: v.Func | v.Cls, method: str) -> bool:
    for one in decorated.decorated:
        api = one.name if isinstance(one, v.Ext) else one.api if isinstance(one, v.Obj) else ""
        role = interp.kb.role(interp.kb.canonical(api), "new-process") if api else None
        if role is not None and method in role.more:
            return True
    return False


def _seeds(interp: Interp, cls: v.Cls) -> bool:
    """Whether a method of a class calls anything that seems to seed."""
    interp.whole(cls.file)
    return any(
        isinstance(one, m.Call) and "seed" in called_name(one).lower()
        for method in cls.env.all().values()
        if isinstance(method, v.Func)
        for one in nodes(method.fn.body)
    )


def _process(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``Process(target=f, args=(...))`` and ``Thread``: run when made, forked from the present state."""
    func = args.get("target", 1)
    given = args.get("args", 3)
    rest = list(given.elts) if isinstance(given, v.Items) else []
    if func is not None:
        star = given is not None and not isinstance(given, v.Items)
        if api != "threading.Thread" and interp.mode(_STARTS_AFRESH).value is True:
            name = func.fn.name if isinstance(func, v.Func) else interp.spawned
            passed = v.Args(rest, star=star, dstar=args.get("kwargs", 4) is not None)
            in_new_process(interp, name, node, lambda: _call_each(interp, func, passed, node))
            return v.Obj(api, "", args, node)
        state = interp.state.copy()
        outer = interp.sharing
        interp.sharing = _shared_since(interp, node) if api == "threading.Thread" else 0
        _in_state(interp, state, func, v.Args(rest, star=star, dstar=args.get("kwargs", 4) is not None), node)
        interp.sharing = outer
    return v.Obj(api, "", args, node)


_STARTS_AFRESH = "python.starts_afresh"
"""Stands for a start method of processes by which nothing of the program's state is in them."""
_AFRESH = ("spawn", "forkserver")


def _set_start_method(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``multiprocessing.set_start_method(name)``: how processes are started from now on."""
    method = args.get("method", 0)
    if isinstance(method, v.Lit) and not v.option_of(method):
        interp.set_mode(_STARTS_AFRESH, v.Lit(method.value in _AFRESH), node)
    else:
        interp.set_mode(_STARTS_AFRESH, v.UNKNOWN, node)
    return v.NONE


def _context_process(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``Process`` of ``multiprocessing.get_context(name)``."""
    method = owner.args.get("method", 0) if isinstance(owner, v.Obj) else None
    outer = interp.state.modes.get(_STARTS_AFRESH)
    if method is not None:
        _set_start_method(interp, name, v.Args([method]), node)
    made = _process(interp, "multiprocessing.Process", args, node)
    if method is not None:
        interp.reset_mode(_STARTS_AFRESH, outer)
    return made


def _shared_since(interp: Interp, node: Any) -> int:
    """The time at which the loop began that makes several threads of one function: they share what is older. None of it
    where what is given to a thread is chosen by the round of the loop."""
    rounds = interp.orders.rounds
    if not rounds or not several_at_once(interp, node) or not isinstance(node, m.Call):
        return 0
    given = [one.value for one in node.keywords if one.name in ("target", "kwargs")]
    given += [one for one in node.args if not isinstance(one, m.Seq)]
    own = any(
        isinstance(one, (m.Subscript, m.Attr, m.Call, m.Lambda)) for part in given for one in nodes([part])
    )
    passed = [one for one in node.keywords if one.name == "args"]
    own = own or any(isinstance(one, (m.Subscript, m.Call)) for part in passed for one in nodes([part.value]))
    dotted = any(
        isinstance(one, m.Name) and not one.id.startswith("self.") and "." in one.id for one in given
    )
    function = running_function(interp)
    turns: set[str] = set()
    for one in nodes(function.body) if function is not None else ():
        if isinstance(one, (m.For, m.Generator)):
            target_names(one.target, turns)
    for one in nodes([part.value for part in passed]):
        if isinstance(one, m.Name) and one.id.partition(".")[0] in turns:
            own = own or isinstance(interp.eval(one), (v.Items, v.Mapping, v.Inst, v.AnyOf))
    return 0 if own or dotted else rounds[-1].start


def _start(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``start()`` of the project's own ``Thread`` or ``Process``: its ``run`` starts from the present state."""
    run = owner.cls.find("run") if isinstance(owner, v.Inst) else None
    if not isinstance(run, v.Func):
        return None
    _in_state(interp, interp.state.copy(), run.bind(owner), v.NO_ARGS, node)
    return v.NONE


def _fresh(interp: Interp) -> State:
    """The state of a new interpreter: modules imported (and what their bodies seeded), environment inherited."""
    state = State(interp.state.default_level)
    state.aside = interp.state.aside
    state.rng = StateTable(RNG, interp.module_rng)
    state.modes = StateTable(MODE, interp.module_modes)
    state.env = interp.state.env.copy()
    return state


def _in_state(interp: Interp, state: State, func: v.Value, args: v.Args, node: Any) -> None:
    _run_in_state(interp, state, lambda: _call_each(interp, func, args, node), node)


def _call_each(interp: Interp, func: v.Value, args: v.Args, node: Any) -> list[v.Value]:
    return [interp.call(one, args, node) for one in v.alternatives(func)]


def _run_in_state(interp: Interp, state: State, run: Callable[[], T], node: Any) -> T:
    outer, workers = interp.state, interp.workers
    interp.state = state
    here = interp.here(node)
    interp.workers = (SEVERAL if several_at_once(interp, node) else 1, f"{here.path}:{here.start}")
    with interp.within(THREAD):
        found = run()
    # What the child did has happened (it trained), but seeds and modes stay its own.
    for name, site in interp.state.flags.held.items():
        if not name.startswith("draw:"):
            outer.flags.setdefault(name, site)
    interp.state, interp.workers = outer, workers
    return found


def several_at_once(interp: RunView, node: Any) -> bool:
    """Whether a thread or process is made or started in a loop that does not wait for it, or in a comprehension."""
    function = running_function(interp)
    if function is None:
        return False
    above = parents(function)
    while node is not None and not isinstance(node, (m.For, m.While)):
        if isinstance(node, m.Wait) and node.kind == "await":
            return False
        if isinstance(node, m.Comp):
            return True
        node = above.get(id(node))
    if not interp.frame.jumps or (isinstance(node, m.For) and _is_once(interp, node.iter)):
        return False
    # The join of strings has an argument.
    return node is not None and not any(
        isinstance(one, m.Call) and called_name(one) == "join" and not one.args for one in nodes(node.body)
    )


def _is_once(interp: RunView, iterated: Any) -> bool:
    """Whether a loop counts to a number that is one here, whatever options are given."""
    if not isinstance(iterated, m.Call) or called_name(iterated) != "range" or len(iterated.args) != 1:
        return False
    count = interp.eval(iterated.args[0]) if isinstance(iterated.args[0], (m.Name, m.Const)) else None
    return isinstance(count, v.Lit) and count.value == 1 and not v.option_of(count)


def running_function(interp: RunView) -> m.Function | None:
    """The project function that is running, or the module body."""
    frame: Any = interp.frame
    while frame is not None:
        if frame.func is not None:
            found: m.Function = frame.func.fn
            return found
        if not frame.is_class:
            return frame.file.facts.functions[0] if frame.file.facts.functions else None
        frame = frame.caller
    return None


PROCESS_MODELS = {
    "torch.multiprocessing.spawn": _spawn,
    "torch.multiprocessing.start_processes": _spawn,
    "torch_xla.distributed.xla_multiprocessing.spawn": _spawn,
    "multiprocessing.Process": _process,
    "torch.multiprocessing.Process": _process,
    "threading.Thread": _process,
    "multiprocessing.set_start_method": _set_start_method,
}
PROCESS_METHODS = {
    "multiprocessing.get_context.Process": _context_process,
    **{
        f"{base}.start": _start
        for base in ("threading.Thread", "multiprocessing.Process", "torch.multiprocessing.Process")
    },
}
