"""Other processes and threads: with which RNG state and modes they start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from d9mlint.interp import values as v
from d9mlint.interp.context import SPAWNED, THREAD
from d9mlint.interp.data import element
from d9mlint.interp.devices import RANK
from d9mlint.interp.heap import HEAP
from d9mlint.interp.library.commands import registering
from d9mlint.interp.library.queues import SEVERAL, Workers
from d9mlint.interp.places import running
from d9mlint.interp.state import MODE, REPLACED, RNG, SEEDED, UNSEEDED, Rng, State, StateTable
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import target_names
from d9mlint.ir.traversal import called_name, nodes, parents, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Role

T = TypeVar("T")


def _spawn(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``torch.multiprocessing.spawn(fn, args=(...))``: a fresh interpreter; nothing of the parent's state."""
    func = args.get("fn", 0)
    passed = handed_on(args.get("args", 1), None)
    passed = v.Args([v.Obj(RANK), *passed.pos], star=passed.star)
    if func is not None:
        method = args.get("start_method", 5)
        begin = _in_copy if isinstance(method, v.Lit) and method.value == "fork" else in_new_process
        begin(interp, _named(interp, func), node, lambda: _call_each(interp, func, passed, node))
    return v.NONE


def handed_on(given: v.Value | None, named: v.Value | None) -> v.Args:
    """The arguments of a function that is called with a sequence of positional ones and a mapping of those by name."""
    if isinstance(given, v.AnyOf):
        given = _either(given)
    known = isinstance(given, v.Items) and given.kind != "s"
    pos = list(given.elts) if known else []  # type: ignore[union-attr]
    star = given is not None and v.is_none(given) is not True and (not known or given.open)  # type: ignore[union-attr]
    if named is None or v.is_none(named) is True:
        return v.Args(pos, star=star)
    if not isinstance(named, v.Mapping):
        return v.Args(pos, star=star, dstar=True)
    return v.Args(pos, {k: x for k, x in named.items.items() if isinstance(k, str)}, star, named.open)


def _either(given: v.AnyOf) -> v.Value:
    """One sequence in place of several that are equally long."""
    several = [one.elts for one in given.values if isinstance(one, v.Items) and not one.open]
    if len(several) < len(given.values) or len(set(map(len, several))) > 1:
        return v.UNKNOWN
    return v.Items("t", [v.join(column) for column in zip(*several, strict=True)])


_POOLS = frozenset({"Pool", "ThreadPool", "ProcessPoolExecutor", "ThreadPoolExecutor"})
_MAPPING = frozenset({"map", "imap", "imap_unordered", "map_async"})
_STARMAPPING = frozenset({"starmap", "starmap_async"})
_TASKS = _MAPPING | _STARMAPPING | {"submit", "apply", "apply_async"}


def of_thread(args: v.Args) -> v.Args:
    """The arguments of the function that a thread or a process is made with."""
    return handed_on(args.get("args", 3), args.get("kwargs", 4))


def is_pool(value: v.Value | None) -> bool:
    """Whether a value is a pool of workers."""
    return isinstance(value, v.Obj) and value.type.rpartition(".")[2] in _POOLS


@contextmanager
def sharing(interp: Interp, since: int, files: int, among_processes: bool = False) -> Iterator[None]:
    """What runs inside shares with others that run at the same time the lists that were made before a time; processes, only
    those that a manager holds. ``files`` is that time for opened files."""
    outer = interp.sharing, interp.sharing_files, interp.among_processes
    interp.sharing, interp.sharing_files, interp.among_processes = since, files, among_processes
    try:
        yield
    finally:
        interp.sharing, interp.sharing_files, interp.among_processes = outer


def files_of_tasks(interp: Interp, pool: v.Obj, api: str, args: v.Args, node: Any) -> int:
    """The time until which files were opened to which the tasks write that a method of a pool starts. 0 where each may have
    its own."""
    if _has_one_worker(pool):
        return 0
    if api.rpartition(".")[2] not in (*_MAPPING, *_STARMAPPING):
        return files_since(interp, node)
    given = [element(interp, one) for one in args.pos[1:]]
    return 0 if any(_may_hold_file(interp, one) for one in given) else HEAP.clock


def files_since(interp: Interp, node: Any) -> int:
    """The time at which the loop began that starts several tasks, threads or processes; 0 where the round of the loop may
    choose the file of each, or where there is no such loop."""
    begun = begun_for_several(interp, node)
    if not begun or _is_waited_for(interp, node):
        return 0
    of_loops, given = turns(interp), [*node.args, *node.keywords]
    chosen = [
        one
        for one in nodes(given)
        if isinstance(one, (m.Subscript, m.Attr, m.Call))
        or (isinstance(one, m.Name) and one.id.partition(".")[0] in of_loops)
    ]
    return 0 if any(_may_hold_file(interp, interp.value_of(one)) for one in chosen) else begun


def _may_hold_file(interp: Interp, value: v.Value, depth: int = 0) -> bool:
    """Whether a value is an opened file or what writes to one, or may have one: an instance, or a method of it."""
    for one in v.alternatives(value):
        if isinstance(one, v.Func):
            one = one.receiver or v.NONE
        if isinstance(one, v.Inst):
            return True
        held: list[v.Value] = []
        if isinstance(one, v.Obj):
            opened = interp.kb.order(one.api)
            if opened is not None and opened.appends:
                return True
            held = one.args.pos[:1]
        elif isinstance(one, v.Items | v.Mapping):
            held = list(one.elts if isinstance(one, v.Items) else one.items.values())[:_MOST_HELD]
        if depth < _DEEPEST and any(_may_hold_file(interp, part, depth + 1) for part in held):
            return True
    return False


_MOST_HELD = 8
_DEEPEST = 3


def shared_by_tasks(interp: Interp, pool: v.Obj, api: str, node: Any) -> int:
    """The time until which lists were made that the tasks share which a method of a pool of threads starts: they add to
    them in the order in which they get there. 0 where none do."""
    if _has_one_worker(pool):
        return 0
    name = api.rpartition(".")[2]
    if name in (*_MAPPING, *_STARMAPPING):
        return HEAP.clock
    return since_loop(interp, node)


def begun_for_several(interp: Interp, node: Any) -> int:
    """The time at which the loop began that starts several tasks or threads at once by a call; 0 where there is none."""
    rounds = interp.orders.rounds
    several = bool(rounds) and isinstance(node, m.Call) and several_at_once(interp, node)
    return rounds[-1].start if several else 0


def since_loop(interp: Interp, node: Any) -> int:
    """The time at which the loop began that starts several tasks; 0 where what a task is given may hold a list that is
    its own, or where there is no such loop."""
    begun = begun_for_several(interp, node)
    if not begun or _is_waited_for(interp, node):
        return 0
    parts = [*node.args, *(one.value for one in node.keywords)]
    chosen = [one for one in parts if isinstance(one, (m.Subscript, m.Attr, m.Call))]
    return 0 if any(isinstance(interp.value_of(one), _HOLDERS) for one in chosen) else begun


_WAITING = frozenset({"result", "get", "wait"})


def _is_waited_for(interp: Interp, node: m.Call) -> bool:
    """Whether the loop that starts a task waits for it before it starts the next one."""
    function = running(interp)
    above = parents(function) if function is not None else {}
    user, names = above.get(id(node)), set[str]()
    if isinstance(user, m.Attr):
        return user.name in _WAITING
    if isinstance(user, m.Assign):
        names = {one.id for one in user.targets if isinstance(one, m.Name)}
    while user is not None and not isinstance(user, (m.For, m.While)):
        user = above.get(id(user))
    calls = [one for one in nodes(user.body) if isinstance(one, m.Call)] if user is not None else []
    return any(called_name(one) in _WAITING and receiver(one) in names for one in calls)


def _has_one_worker(pool: v.Obj) -> bool:
    number = pool.args.get("max_workers", 0) or pool.args.get("processes", 0)
    return isinstance(number, v.Lit) and number.value == 1


def when_done(
    interp: Interp, pool: v.Value | None, api: str, args: v.Args, given: v.Value | None, node: Any
) -> bool:
    """Call the function that is given to be called with each result, when that is there. Whether the call starts a task or
    waits for one with such a function."""
    name = api.rpartition(".")[2]
    if name == "apply_async" and is_pool(pool):
        called, result = args.get("callback", 3), given
    elif name == "add_done_callback":
        called, result = args.get("fn", 0), pool
    else:
        return False
    if called is None:
        return False
    alone = isinstance(pool, v.Obj) and _has_one_worker(pool)
    since, files = (0, 0) if alone else (since_loop(interp, node), files_since(interp, node))
    with sharing(interp, since, files):
        for one in v.alternatives(called):
            if isinstance(one, (v.Func, v.Partial, v.Member)):
                interp.call(one, v.Args([result or v.UNKNOWN]), node)
    return True


_HOLDERS = (v.Items, v.Mapping, v.Inst, v.AnyOf)


def is_process_pool(value: v.Value | None) -> bool:
    """Whether the workers are processes."""
    return (
        isinstance(value, v.Obj)
        and value.type.rpartition(".")[2] in ("Pool", "ProcessPoolExecutor")
        and ".dummy." not in value.type
    )


def starts_tasks(owner: v.Value | None, api: str) -> bool:
    """Whether a method of a pool has its workers call a function."""
    return is_pool(owner) and api.rpartition(".")[2] in _TASKS


def is_for_tasks(owner: v.Value | None, api: str, value: v.Value, args: v.Args) -> bool:
    """Whether a value is what the workers of a pool call for each task that a method of the pool is given."""
    return starts_tasks(owner, api) and value is (args.pos[0] if args.pos else args.kw.get("func"))


def of_task(interp: Interp, owner: v.Value | None, api: str, args: v.Args) -> v.Args:
    """The arguments with which workers call the function that a method of their pool is given."""
    if not isinstance(owner, v.Obj) or not is_pool(owner) or args.star or args.dstar:
        return _ANY
    if (handed := given_to_task(api, args)) is not None:
        return handed
    name = api.rpartition(".")[2]
    if name in _MAPPING and owner.type.endswith("Executor"):
        return v.Args([_element(interp, one) for one in args.pos[1:]])
    given = args.get("iterable", 1)
    if given is None or name not in (*_MAPPING, *_STARMAPPING):
        return _ANY
    one = _element(interp, given)
    return v.Args([one]) if name in _MAPPING else handed_on(one, None)


def _element(interp: Interp, value: v.Value) -> v.Value:
    return interp.orders.element_for_task(value, element(interp, value))


def given_to_task(api: str, args: v.Args) -> v.Args | None:
    """The arguments of a task that a method of an executor is given by themselves; None for other methods."""
    name = api.rpartition(".")[2]
    if name == "submit":
        return args.rest()
    return handed_on(args.get("args", 1), args.get("kwds", 2)) if name in ("apply", "apply_async") else None


def launched_with(
    interp: RunView, api: str, func: v.Value, args: v.Args, owner: v.Value | None
) -> v.Args | None:
    """The arguments with which a library runs a function that it is given with them; None where it is not known to."""
    name = f"{owner.type}{api[1:]}" if isinstance(owner, v.Obj) and api.startswith("*.") else api
    role = interp.kb.role(name, "passes-on")
    if role is None or func is not args.get(role.arg, role.pos):
        return None
    sequence = interp.kb.role(name, "passes-sequence")
    if sequence is not None:
        named = next((args.get(one, (sequence.pos or 0) + 1) for one in sequence.more), None)
        passed = handed_on(args.get(sequence.arg, sequence.pos), named)
    elif "rest" in role.more:
        kept = {name: one for name, one in args.kw.items() if name != role.arg}
        passed = v.Args(args.pos[1:], kept, args.star, args.dstar)
    else:
        passed = v.NO_ARGS
    known = {"receiver": owner or v.UNKNOWN, "rank": v.Obj(RANK)}
    takes_any = not isinstance(func, v.Func) or bool(func.fn.params)
    first = [
        known[one] if one in known else args.get(one) or v.UNKNOWN
        for one in role.more
        if one != "rest" and (one in known or takes_any)
    ]
    return v.Args([*first, *passed.pos], passed.kw, passed.star, passed.dstar)


_ANY = v.Args(star=True, dstar=True)


def _named(interp: Interp, func: v.Value) -> str:
    """The name of what begins in a process."""
    return first_in(interp, v.Args([func])) or interp.spawned


UNNAMED = "the function"
"""What begins in a copy of the program where that has no name, such as a lambda."""


def in_new_process(
    interp: Interp, name: str, node: Any, run: Callable[[], T], without_script: bool = False
) -> T:
    """What runs in processes that are started anew: nothing of the parent's state. ``name`` is what begins there;
    ``without_script`` is whether they do not run the script of the program again."""
    with interp.within(SPAWNED), in_process(interp, name):
        return _run_in_state(interp, _fresh(interp, without_script), run, node)


def _in_copy(interp: Interp, name: str, node: Any, run: Callable[[], T]) -> T:
    """What runs in processes that are copies of this one, made by ``fork``: some generators begin anew in them, whatever
    the program has seeded."""
    state = interp.state.copy()
    if interp.entry is not None:
        for generator in interp.kb.generators.values():
            if generator.forked == "entropy":
                state.rng[generator.id] = Rng(UNSEEDED)
    with in_process(interp, name or UNNAMED):
        return _run_in_state(interp, state, run, node)


@contextmanager
def in_process(interp: Interp, name: str) -> Iterator[None]:
    """Around what runs in another process than what runs around it. ``name`` is what begins there."""
    HEAP.clock += 1
    outer = interp.spawned, interp.process_began
    interp.spawned, interp.process_began = name, HEAP.clock
    try:
        yield
    finally:
        interp.spawned, interp.process_began = outer


def asked_again(interp: Interp, name: str, run: Callable[[], T]) -> T:
    """What a process does later for the program that has started it. What it draws was looked at when it began, with what it
    had seeded then."""
    state = interp.state.copy()
    for generator in interp.kb.generators.values():
        state.rng[generator.id] = Rng(SEEDED)
    outer, interp.state = interp.state, state
    with interp.within(THREAD), in_process(interp, name):
        found = run()
    _take_over(interp.state, outer)
    interp.state = outer
    return found


def in_started(interp: Interp, name: str, node: Any, run: Callable[[], T]) -> T:
    """What runs in processes that are started as the program has chosen."""
    begin = in_new_process if interp.mode(_STARTS_AFRESH).value is True else _in_copy
    return begin(interp, name, node, run)


def leaves_script_out(interp: Interp, api: str) -> bool:
    """Whether the processes in which a library runs functions do not run the script of the program again: they get what a
    function needs of it, and import what stands in modules."""
    role = interp.kb.role(api, "leaves-script-out") if interp.entry is not None else None
    if role is None or interp.entry is None or not role.more:
        return role is not None
    return any(
        isinstance(one, m.Call) and called_name(one) in role.more
        for function in interp.whole(interp.entry).functions
        for one in nodes(function.body)
    )


def first_in(interp: Interp, args: v.Args) -> str:
    """The name of the function that is handed over in a call to begin a process, of the one that a lambda calls, of the
    method that runs where an instance is, or of the constructor of a class, or its first method where it has none; empty
    where there is none."""
    for value in args.values():
        for one in v.alternatives(value):
            while isinstance(one, v.Partial):
                one = one.func
            if isinstance(one, v.Func) and not one.fn.name.isidentifier():
                one = _called_by(interp, one)
            if isinstance(one, v.Func) and one.fn.name.isidentifier():
                return one.fn.name
            if isinstance(one, v.Cls):
                methods = [name for name, x in one.env.all().items() if isinstance(x, v.Func)]
                own = isinstance(one.find("__init__"), v.Func) or not methods
                return f"{one.cls.name}.{'__init__' if own else methods[0]}"
            if isinstance(one, v.Inst) and isinstance(one.cls.find("__call__"), v.Func):
                return f"{one.cls.cls.name}.__call__"
    return ""


def _called_by(interp: Interp, func: v.Func) -> v.Value:
    """The function or class of which a lambda gives what a call gives, by its name."""
    body = interp.body(func)
    call = body[0].value if len(body) == 1 and isinstance(body[0], m.Return) else None
    name = call.func.id if isinstance(call, m.Call) and isinstance(call.func, m.Name) else ""
    found = func.env.vars.get(name) or func.mod.env.read(name)
    return found if found is not None and isinstance(found, v.Func | v.Cls) else v.UNKNOWN


def remote(interp: Interp, member: v.Member, args: v.Args, node: Any) -> v.Value | None:
    """``function.remote(...)`` and ``Actor.remote(...)`` of what a decorator lets run in processes of a library, and
    ``actor.method.remote(...)``; ``task.submit(...)`` of what it lets run in this one, and ``Actor.options(...)``, which
    gives the same. An actor keeps the state of its process between calls: what the methods of one draw that seeds anything
    is taken to be seeded. None for any other method; what a call of a function gives is not known yet."""
    owner = member.owner
    if not isinstance(owner, (v.Func, v.Cls)):
        return None
    whole = owner.receiver.cls if isinstance(owner, v.Func) and isinstance(owner.receiver, v.Inst) else owner
    if not whole.decorated:
        return None
    if isinstance(owner, v.Func) and _has_method(interp, whole, "calls-decorated", member.name):
        interp.call(owner, args, node)
        return v.UNKNOWN
    if _has_method(interp, whole, "gives-decorated", member.name):
        return owner
    if not _has_method(interp, whole, "new-process", member.name):
        return None
    alone = any(leaves_script_out(interp, interp.kb.canonical(registering(one))) for one in whole.decorated)
    if isinstance(whole, v.Func):
        in_new_process(interp, whole.fn.name, node, lambda: interp.call(owner, args, node), alone)
        return v.UNKNOWN
    state = _fresh(interp, alone)
    if isinstance(owner, v.Func):
        _go_on_in(interp, owner.receiver, state)
        name = owner.fn.name
        if any(_seeds(interp, one) for one in whole.mro()):
            for generator in interp.kb.generators.values():
                state.rng[generator.id] = Rng(SEEDED)
    else:
        name = f"{owner.cls.name}.__init__"

    def run() -> v.Value:
        made = interp.call(owner, args, node)
        _keep_modes(interp, owner.receiver if isinstance(owner, v.Func) else made)
        return made

    with interp.within(SPAWNED), in_process(interp, name):
        made = _run_in_state(interp, state, run, node)
    return v.UNKNOWN if isinstance(owner, v.Func) else made


_MODES = "modes of its process"
"""Attribute of an actor for what its constructor and its methods have set in the process in which it is."""


def _keep_modes(interp: Interp, actor: v.Value | None) -> None:
    """An actor stays in its process: the modes and environment variables that it has set there hold when its methods are
    called."""
    if not isinstance(actor, v.Inst):
        return
    modes = [one for one in interp.state.modes.items() if one not in interp.process_start().modes.items()]
    variables = interp.state.env.items()
    if modes or variables:
        actor.attrs[_MODES] = v.Lit((tuple(modes), tuple(variables)))


def _go_on_in(interp: Interp, actor: v.Value | None, state: State) -> None:
    """Let a state be that of the process of an actor."""
    kept = actor.attrs.get(_MODES) if isinstance(actor, v.Inst) else None
    if isinstance(kept, v.Lit):
        modes, variables = kept.value
        state.modes.update(modes)
        state.env.update(variables)


def _has_method(interp: Interp, decorated: v.Func | v.Cls, role_of: Role, method: str) -> bool:
    """Whether a decorator with a role gives what it decorates a method of this name."""
    for one in decorated.decorated:
        api = registering(one)
        role = interp.kb.role(interp.kb.canonical(api), role_of) if api else None
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
    """``Process(target=f, args=(...))`` and ``Thread``: run when made, from the present state."""
    func = args.get("target", 1)
    if func is None:
        return v.Obj(api, "", args, node)
    passed = of_thread(args)
    among_processes = api != "threading.Thread"
    with sharing(interp, _shared_since(interp, node), files_since(interp, node), among_processes):
        if among_processes:
            begin = _begin([api])
            begin(interp, _named(interp, func), node, lambda: _call_each(interp, func, passed, node))
        else:
            _in_state(interp, interp.state.copy(), func, passed, node)
    return v.Obj(api, "", args, node)


def _timer(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``Timer(interval, f, args, kwargs)``: a thread that waits first."""
    func = args.get("function", 1)
    if func is not None:
        passed = handed_on(args.get("args", 2), args.get("kwargs", 3))
        _in_state(interp, interp.state.copy(), func, passed, node)
    return v.Obj(api, "", args, node)


def _to_thread(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``asyncio.to_thread(f, *args, **kwargs)``: what awaiting it gives is what the function does."""
    func = args.get("func", 0)
    if func is None or args.star:
        return None
    return v.join(interp.call(one, args.rest(), node) for one in v.alternatives(func))


def _in_executor(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``loop.run_in_executor(executor, f, *args)``."""
    func = args.get("func", 1)
    if not isinstance(func, (v.Func, v.Partial)) or args.star:
        return None
    return interp.call(func, v.Args(args.pos[2:]), node)


_STARTS_AFRESH = "python.starts_afresh"
"""Stands for a start method of processes by which nothing of the program's state is in them."""
_AFRESH = ("spawn", "forkserver")
_CLASSES = {
    "fork": "multiprocessing.context.ForkProcess",
    "spawn": "multiprocessing.context.SpawnProcess",
    "forkserver": "multiprocessing.context.ForkServerProcess",
}
"""Classes of processes that are always started in one way."""


def context_class(value: v.Value) -> v.Value:
    """The class that ``Process`` of a context of ``multiprocessing`` is; any other value itself."""
    if not isinstance(value, v.Member) or value.name != "Process":
        return value
    context = value.owner
    if not isinstance(context, v.Obj) or context.type != "multiprocessing.get_context":
        return value
    method = context.args.get("method", 0)
    chosen = str(method.value) if isinstance(method, v.Lit) and not v.option_of(method) else ""
    return v.Ext(_CLASSES.get(chosen, "multiprocessing.Process"))


def _begin(names: Iterable[str]) -> Callable[[Interp, str, Any, Callable[[], T]], T]:
    """How a process is started whose class has, or inherits from, one of these names."""
    for name in names:
        if name in _CLASSES.values():
            return _in_copy if name == _CLASSES["fork"] else in_new_process
    return in_started


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
    return _with_context(interp, owner, node, lambda: _process(interp, "multiprocessing.Process", args, node))


def _with_context(interp: Interp, context: v.Value | None, node: Any, run: Callable[[], T]) -> T:
    """What a context of ``multiprocessing`` starts; where it names no method, the program's one counts."""
    method = context.args.get("method", 0) if isinstance(context, v.Obj) else None
    if method is None or v.is_none(method):
        return run()
    outer = interp.state.modes.get(_STARTS_AFRESH)
    _set_start_method(interp, "", v.Args([method]), node)
    found = run()
    interp.reset_mode(_STARTS_AFRESH, outer)
    return found


def _context_pool(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``Pool`` of ``multiprocessing.get_context(name)``."""
    made = v.Obj("multiprocessing.Pool", "", args, node)
    made.owner = owner
    return made


def in_workers(interp: Interp, pool: v.Obj, args: v.Args, node: Any, run: Callable[[], T]) -> T:
    """What the processes of a pool run for a method with these arguments, each after the function that the pool was given
    for its start."""
    start = pool.args.get("initializer", 1 if pool.type.endswith("Pool") else 2)
    given = pool.args.get("initargs", 2 if pool.type.endswith("Pool") else 3)

    def work() -> T:
        if isinstance(start, (v.Func, v.Partial, v.Ext)):
            interp.call(start, handed_on(given, None), node)
        return run()

    def begin() -> T:
        return in_started(interp, first_in(interp, args) or interp.spawned, node, work)

    context = pool.owner if pool.owner is not None else pool.args.get("mp_context", 1)
    return _with_context(interp, context, node, begin)


def _shared_since(interp: Interp, node: Any) -> int:
    """The time at which the loop began that makes several threads of one function: they share what is older. None of it
    where what is given to a thread is chosen by the round of the loop."""
    begun = begun_for_several(interp, node)
    if not begun:
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
    of_loops = turns(interp)
    for one in nodes([part.value for part in passed]):
        if isinstance(one, m.Name) and one.id.partition(".")[0] in of_loops:
            own = own or isinstance(interp.value_of(one), _HOLDERS)
    return 0 if own or dotted else begun


def turns(interp: Interp) -> set[str]:
    """The variables of the loops in the running function."""
    function = running(interp)
    found: set[str] = set()
    for one in nodes(function.body) if function is not None else ():
        if isinstance(one, (m.For, m.Generator)):
            target_names(one.target, found)
    return found


def _start(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``start()`` of the project's own ``Thread`` or ``Process``."""
    run = owner.cls.find("run") if isinstance(owner, v.Inst) else None
    if not isinstance(owner, v.Inst) or not isinstance(run, v.Func):
        return None
    own, bases = run.bind(owner), owner.cls.external_bases()
    if "threading.Thread" in bases:
        _in_state(interp, interp.state.copy(), own, v.NO_ARGS, node)
        return v.NONE
    begin = _begin(bases)
    begin(interp, f"{owner.cls.cls.name}.run", node, lambda: interp.call(own, v.NO_ARGS, node))
    return v.NONE


def _fresh(interp: Interp, without_script: bool = False) -> State:
    """The state of a new interpreter: modules imported (and what their bodies seeded), environment inherited."""
    state = State(interp.state.default_level)
    state.aside = interp.state.aside
    start = interp.process_start()
    state.rng = StateTable(RNG, start.imported_rng if without_script else start.rng)
    state.modes = StateTable(MODE, start.modes)
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
    count = SEVERAL if several_at_once(interp, node) else 1
    own = _own(interp, node) if count > 1 else ()
    interp.workers = Workers(count, f"{here.path}:{here.start}", begun_for_several(interp, node), own)
    with interp.within(THREAD):
        found = run()
    _take_over(interp.state, outer)
    interp.state, interp.workers = outer, workers
    return found


def _own(interp: Interp, node: Any) -> tuple[v.Value, ...]:
    """What each of the workers that are made in the rounds of a loop is given as its own: the element at its number, as
    ``queues[rank]``, or the one that the loop has come to."""
    function = running(interp)
    if not isinstance(node, m.Call) or function is None:
        return ()
    above = parents(function)
    loop: Any = node
    while loop is not None and not isinstance(loop, (m.For, m.While, m.Comp)):
        loop = above.get(id(loop))
    turns: set[str] = set()
    if isinstance(loop, m.For):
        target_names(loop.target, turns)
    elif isinstance(loop, m.Comp):
        target_names(loop.generators[-1].target, turns)
    found: list[v.Value] = []
    for one in nodes([*node.args, *(part.value for part in node.keywords)]) if turns else ():
        turn = one.index if isinstance(one, m.Subscript) else one
        if isinstance(turn, m.Name) and turn.id in turns:
            found += (value for value in v.alternatives(interp.value_of(one)) if isinstance(value, v.Obj))
    return tuple(found)


def _take_over(child: State, program: State) -> None:
    """What a process did has happened (it trained), but seeds and modes stay its own."""
    for name, site in child.flags.held.items():
        if not name.startswith("draw:"):
            program.flags.setdefault(name, site)
    for name, setting in child.modes.starting(REPLACED):
        # What reads it elsewhere is noted as well.
        if setting.value is True and name not in program.modes:
            program.modes[name] = setting


def several_at_once(interp: RunView, node: Any) -> bool:
    """Whether a thread or process is made or started in a loop that does not wait for it, or in a comprehension."""
    function = running(interp)
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
    count = interp.value_of(iterated.args[0]) if isinstance(iterated.args[0], (m.Name, m.Const)) else None
    return isinstance(count, v.Lit) and count.value == 1 and not v.option_of(count)


PROCESS_MODELS = {
    "torch.multiprocessing.spawn": _spawn,
    "torch.multiprocessing.start_processes": _spawn,
    "torch_xla.distributed.xla_multiprocessing.spawn": _spawn,
    "multiprocessing.Process": _process,
    "torch.multiprocessing.Process": _process,
    **dict.fromkeys(_CLASSES.values(), _process),
    "threading.Thread": _process,
    "threading.Timer": _timer,
    "asyncio.to_thread": _to_thread,
    "multiprocessing.set_start_method": _set_start_method,
}
PROCESS_METHODS = {
    "*.run_in_executor": _in_executor,
    "multiprocessing.get_context.Process": _context_process,
    "multiprocessing.get_context.Pool": _context_pool,
    **{
        f"{base}.start": _start
        for base in (
            "threading.Thread",
            "multiprocessing.Process",
            "torch.multiprocessing.Process",
            *_CLASSES.values(),
        )
    },
}
