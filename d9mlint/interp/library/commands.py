"""Commands that decorators register with an object, and that run where it is called: of click, typer and others. Handlers of
an application, which run where it is served."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.events import AnswerEvent
from d9mlint.interp.library.options import option_params
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

COMMANDS = "@commands"
HANDLERS = "@handlers"
_FIRST = "@first"
"""Functions that run before each command."""


def is_command(func: v.Func) -> bool:
    """Whether decorators make a function a separate command: click, typer, hydra, sacred."""
    for decorator in func.decorated:
        name = _decorator_name(decorator)
        if name.rpartition(".")[2] in ("command", "automain") or name in ("hydra.main",):
            return True
    return False


def is_started(interp: Interp, one: v.Func | v.Cls) -> bool:
    """Whether a framework starts a function, or makes an object of a class and calls its methods: for a decorator, or for
    what the class is derived from."""
    bases = one.external_bases() if isinstance(one, v.Cls) else ()
    return _is_started(interp, [*map(registering, one.decorated), *bases])


def has_run(interp: Interp, one: v.Func | v.Cls) -> bool:
    """Whether the program has called a function, or a method of a class."""
    if isinstance(one, v.Func):
        return one.key in interp.visited
    methods = (method for name, method in one.env.all().items() if name != "__init__")
    return any(isinstance(method, v.Func) and method.key in interp.visited for method in methods)


def started_in(interp: Interp, api: str, given: v.Items) -> Iterable[v.Func]:
    """The functions that decorators of a library made programs, which a call of the same library is given alone or in
    modules."""
    library = api.partition(".")[0]
    for one in given.elts:
        for func in list(one.env.vars.values()) if isinstance(one, v.Mod) else (one,):
            if isinstance(func, v.Func) and _is_started(
                interp,
                (name for name in map(registering, func.decorated) if name.partition(".")[0] == library),
            ):
                yield func


def _is_started(interp: Interp, names: Iterable[str]) -> bool:
    return any(interp.kb.role(interp.kb.canonical(name), "starts") is not None for name in names if name)


def _decorator_name(decorator: v.Value) -> str:
    if isinstance(decorator, v.Obj):
        return decorator.api
    if isinstance(decorator, v.Member):
        return "?." + decorator.name
    return decorator.name if isinstance(decorator, v.Ext) else ""


def registering(decorator: v.Value) -> str:
    """The name of the function, or of the method of a known class, that a decorator is or that made it."""
    owner = decorator.owner if isinstance(decorator, v.Member) else None
    if isinstance(decorator, v.Member) and isinstance(owner, v.Obj):
        return f"{owner.type}.{decorator.name}"
    if isinstance(decorator, v.Obj):
        return decorator.api
    return decorator.name if isinstance(decorator, v.Ext) else ""


def register(decorator: v.Value, func: v.Func) -> None:
    """A method of an object decorates a function: the object keeps a command, or what runs before its commands."""
    owner = decorator.owner if isinstance(decorator, v.Obj | v.Member) else None
    if isinstance(owner, v.Obj):
        name = _decorator_name(decorator).rpartition(".")[2]
        if name in ("command", "callback"):
            _keep(owner, COMMANDS if name == "command" else _FIRST, [func])


def _keep(owner: v.Obj, where: str, added: Iterable[v.Value]) -> None:
    owner.attrs[where] = v.Items("l", [*_kept(owner, where), *added])


def _kept(owner: v.Obj, where: str) -> list[v.Value]:
    found = owner.attrs.get(where)
    return found.elts if isinstance(found, v.Items) else []


def add(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``app.add_typer(other)``: the commands of one object become those of another. ``cli.add_command(train)``: a group
    gets a command or a group."""
    given = args.pos[0] if args.pos else next(iter(args.kw.values()), None)
    if isinstance(owner, v.Obj) and isinstance(given, v.Obj):
        _keep(owner, COMMANDS, [given])
    elif isinstance(owner, v.Func) and isinstance(given, v.Func) and is_group(owner):
        given.decorated = (*given.decorated, v.Member(owner, "command"))
        return v.NONE
    return None


def keep_handler(owner: v.Value | None, handler: v.Func, first: bool = False) -> None:
    """A function is registered with an application of another module, which calls it before the others or after them."""
    if isinstance(owner, v.Obj):
        others = _kept(owner, HANDLERS)
        owner.attrs[HANDLERS] = v.Items("l", [handler, *others] if first else [*others, handler])


def include(owner: v.Value | None, given: v.Obj) -> None:
    """``app.include_router(router)``: the handlers of one object become those of another."""
    if isinstance(owner, v.Obj) and owner is not given:
        _keep(owner, HANDLERS, [given])


def serve(interp: Interp, owner: v.Value) -> None:
    """The handlers of an application run when the program has started, as do those that functions of its library
    register with no application that is named."""
    if not isinstance(owner, v.Obj):
        return
    for handler in (*_flat(owner, set(), HANDLERS), *_of_library(interp, owner)):
        if handler.key not in interp.visited:
            interp.later(partial(answer, interp, handler))


def serve_all(interp: Interp, mod: v.Mod) -> None:
    """Serve the applications that a module makes, which others may have imported too: who starts it may name it, and one
    of them."""
    same = [one for one in interp.loaded.values() if one.file is mod.file and one is not mod]
    for one in (mod, *same):
        for value in list(one.env.vars.values()):
            if isinstance(value, v.Obj) and value.file is mod.file and HANDLERS in value.attrs:
                serve(interp, value)


def answer(interp: Interp, handler: v.Func) -> None:
    """A handler is called with a request: with any of many."""
    interp.state.alive = True
    _forget_counts(interp, handler)
    given = interp.call(handler, v.Args(star=True, dstar=True), None)
    interp.listeners.tell(AnswerEvent(given))
    if interp.orders.any:
        interp.orders.decide(interp.orders.deep(given))


def _forget_counts(interp: Interp, handler: v.Func) -> None:
    """The numbers in variables of other scopes that a handler sets are other ones when it is called again."""
    for stmt in statements(interp.body(handler)):
        if not isinstance(stmt, m.ScopeDecl):
            continue
        for name in stmt.names:
            env: v.Env | None = handler.mod.env if stmt.kind == "global" else handler.env
            while env is not None and (value := env.read(name)) is None:
                env = env.parent
            if env is not None and isinstance(value, v.Lit) and type(value.value) in (int, float):
                env.write(name, v.UNKNOWN)


def run(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``app.run()``, of an object whose library is not known to do something else by it."""
    if isinstance(owner, v.Obj) and not interp.kb.roles(f"{owner.type}.{name}"):
        start(interp, owner)
    serve(interp, owner)
    return None


def start(interp: Interp, owner: v.Value) -> None:
    """Run the commands that are registered with an object, or with the function of a group."""
    if interp.entry is None:
        return
    found: list[v.Func] = []
    if isinstance(owner, v.Obj):
        for first in _kept(owner, _FIRST):
            if isinstance(first, v.Func):
                interp.call(first, option_params(interp, first), None)
        found = list(_flat(owner, set()))
    elif isinstance(owner, v.Func):
        found = list(_of_group(interp, owner))
    run_commands(interp, found)


def is_group(func: v.Func) -> bool:
    """Whether a decorator makes a function one with which commands are registered."""
    return any(isinstance(one, v.Obj) and one.api.rpartition(".")[2] == "group" for one in func.decorated)


def run_commands(
    interp: Interp, commands: Iterable[v.Func], started: Iterable[Callable[[], None]] = ()
) -> None:
    """Run those commands that did not run yet, and what frameworks have ``started``. Each is a separate program: none sees
    what another one has seeded."""
    starts: list[Callable[[], None]] = [
        *(partial(_run, interp, func) for func in commands if func.key not in interp.visited),
        *started,
    ]
    # A process that is begun anew imports the module, and runs none of them.
    interp.guarded += 1
    if len(starts) == 1:
        starts[0]()
    elif starts:
        interp.branch(starts)
    interp.guarded -= 1


def _run(interp: Interp, func: v.Func) -> None:
    interp.call(func, option_params(interp, func), None)


def run_started(interp: Interp, func: v.Func) -> None:
    """A framework starts a function, unless one that was started before has called it: it is a part of that then."""
    if func.key not in interp.visited:
        interp.listeners.tell(AnswerEvent(interp.call(func, option_params(interp, func), None)))


def _flat(owner: v.Obj, seen: set[int], where: str = COMMANDS) -> Iterable[v.Func]:
    if id(owner) in seen:
        return
    seen.add(id(owner))
    for one in _kept(owner, where):
        if isinstance(one, v.Func):
            yield one
        elif isinstance(one, v.Obj):
            yield from _flat(one, seen, where)


def _of_library(interp: Interp, owner: v.Obj) -> Iterable[v.Func]:
    """The handlers of the modules that are loaded which functions of an application's library registered."""
    library = owner.type.partition(".")[0]
    for mod in list(interp.loaded.values()):
        for value in list(mod.env.vars.values()):
            if isinstance(value, v.Func) and value.mod is mod:
                names = [_registers_by(one) for one in value.decorated]
                if any(
                    name.partition(".")[0] == library and interp.kb.role(name, "registers") is not None
                    for name in names
                ):
                    yield value


def _registers_by(decorator: v.Value) -> str:
    """The function of a library that made a decorator; none for a method of an object."""
    if isinstance(decorator, v.Member) or (isinstance(decorator, v.Obj) and decorator.owner is not None):
        return ""
    return _decorator_name(decorator)


def _of_group(interp: Interp, group: v.Func) -> Iterable[v.Func]:
    """The commands and groups of a group, among the functions of the modules that are loaded."""
    for mod in list(interp.loaded.values()):
        for value in list(mod.env.vars.values()):
            if isinstance(value, v.Func) and value.mod is mod and (is_command(value) or is_group(value)):
                owners = [one.owner for one in value.decorated if isinstance(one, v.Obj | v.Member)]
                if any(isinstance(one, v.Func) and one.key == group.key for one in owners):
                    yield value


COMMAND_METHODS = {"*.run": run, "*.run_server": run, "*.main": run, "*.add_typer": add, "*.add_command": add}
