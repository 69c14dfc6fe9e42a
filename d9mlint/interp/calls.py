"""Calls: project functions, classes and instances, library APIs, and values that may be any of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from d9mlint.interp import (
    callers,
    collated,
    columns,
    dimension_tests,
    enumerations,
    given_instead,
    graph_devices,
    graphs,
    idle,
    layer_modes,
    made_again,
    memo,
    optimizers,
    order_cells,
    parted,
    recursion,
    rng,
    tensors,
    unbound,
    unknown_models,
)
from d9mlint.interp import values as v
from d9mlint.interp.accepting import accepts, may_be_called
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.called_methods import (
    ANY_METHOD,
    Called,
    given_before,
    join,
    may_inherit,
    run_when_called,
    waiting,
    waits_for,
)
from d9mlint.interp.containers import (
    BASE,
    DRAWING,
    SEQUENTIAL,
    container_of,
    is_in_order,
    layer_behind,
    made_in_round,
    parts,
    rounds,
)
from d9mlint.interp.context import (
    CALLED_BACK,
    CPU_CONTEXT,
    DIFFERENTIATED,
    EACH_ELEMENT,
    FROZEN,
    GRADIENT_MODES,
    HANDED,
    LOADER_WORKER,
    NEVER_TAKEN,
    OTHER_DEVICE,
    PARSED,
    PLAYED,
    QUIET,
    RESTORED,
    REUSED,
    STRUCTURE,
    TAKEN_UP,
    TRAINING_CONTEXT,
)
from d9mlint.interp.data import (
    BUFFER,
    GIVEN_LATER,
    PART_OF,
    TENSOR,
    UNKNOWN_KEY,
    derive,
    differing,
    element,
    entropy,
    is_entropy,
    put_on_device,
)
from d9mlint.interp.device_names import ACCELERATORS, DEVICES
from d9mlint.interp.devices import DEFAULT_DEVICE, DEVICE, Runner, runner, runner_of
from d9mlint.interp.devices import named as named_device
from d9mlint.interp.emptiness import GOING_THROUGH, is_empty
from d9mlint.interp.events import (
    AnswerEvent,
    CallEvent,
    DecoratedCallEvent,
    DecoratorEvent,
    DeviceEvent,
    InstanceEvent,
    IterationEvent,
    ObjectCallEvent,
    RegisterEvent,
    RepeatedEvent,
    ResultEvent,
    RoundEvent,
)
from d9mlint.interp.failing import has_raised
from d9mlint.interp.frames import MAX_DEPTH, MAX_IMPORT_STEPS, Frame
from d9mlint.interp.heap import HEAP
from d9mlint.interp.kinds import TYPE, kind_of_container
from d9mlint.interp.library import (
    asked_states,
    bindings,
    carried,
    command_line_files,
    commands,
    configs,
    configured_parts,
    coroutines,
    dispatching,
    environments,
    estimators,
    experiments,
    file_calls,
    functional_modules,
    hooks,
    inputs,
    kept_arguments,
    own_dicts,
    own_gradients,
    own_methods,
    process_groups,
    processes,
    records,
    reflection,
    replacing,
    rows,
    trees,
)
from d9mlint.interp.library.builtins import (
    METHOD_MODELS,
    MODELS,
    MethodModel,
    configuration,
    handed_back,
    map_each,
    saved_state,
)
from d9mlint.interp.library.gradients import with_marks
from d9mlint.interp.library.keys import KEY
from d9mlint.interp.library.loaders import LOADER, given_batches
from d9mlint.interp.library.options import PARSER, ChosenArgs, call_with_choices, load_config, option_params
from d9mlint.interp.library.python_files import configuration_in_file
from d9mlint.interp.library.weights import load_file, loaded_between
from d9mlint.interp.library_modules import MODULE, is_module, stands_for_engine
from d9mlint.interp.methods import (
    BINDING,
    NEW,
    OF_CLASS,
    STATIC,
    bind_method,
    is_decorated,
    named_from,
    with_accessor,
)
from d9mlint.interp.missing_items import found_or
from d9mlint.interp.order_identifiers import leading
from d9mlint.interp.order_kinds import HASHING, TEXT, kind_of_elements
from d9mlint.interp.order_sorting import SORT_KEY
from d9mlint.interp.order_ties import ties
from d9mlint.interp.state import State, effect, join_states
from d9mlint.interp.trail import FUNCTIONS
from d9mlint.interp.usage import (
    INHERITED_USES,
    flatten,
    handed_over,
    keep_base,
    set_training,
    use_base,
    use_object,
)
from d9mlint.interp.weights_on_cpu import MODELS_MOVED
from d9mlint.ir import nodes as m
from d9mlint.ir.edited import SMALL_BODY
from d9mlint.ir.endings import ends_program
from d9mlint.ir.traversal import is_none, nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import Rng, Setting
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RngEntry, Role, RoleEntry, RunnerEntry

CALL_STEPS = 4
"""What following a call takes beside the statements of its body, in steps."""
MAX_VARIANTS = 32
"""A function that was called with this many different arguments is run with unknown numbers from then on."""
MAX_RUNS = 32
"""A function is run at least so often in different circumstances,"""
MAX_RUN_STEPS = 12_000
"""and for at least so many steps in all; then once more with unknown texts and numbers, and that stands for all
other calls: what else its circumstances say makes no more difference than they did before."""
MAX_GUESSES = 3
"""A method of an unknown receiver is looked for in at most this many project classes."""


def call(interp: Interp, func: v.Value, args: v.Args, node: Any) -> v.Value:
    """The value of calling ``func``."""
    if type(func) is v.Ext:
        return call_external(interp, func.name, args, node)
    if interp.given_instead:
        return given_instead.call(interp, func, args, node, _call)
    return _call(interp, func, args, node)


def _call(interp: Interp, func: v.Value, args: v.Args, node: Any) -> v.Value:
    if isinstance(func, v.Func):
        if func.decorated and dispatching.dispatches(func):
            return call(interp, v.join(dispatching.chosen(interp, func, args), v.MAX_CANDIDATES), args, node)
        before = HEAP.clock
        if func.fn.is_async and not func.fn.is_generator:
            with coroutines.as_task(interp, node):
                result = call_function(interp, func, args, node)
        else:
            result = call_function(interp, func, args, node)
        if interp.orders.any:
            interp.orders.returned(interp, func, args, result, node, before)
        if func.decorated and commands.is_group(func):
            commands.start(interp, func)
        return result
    if isinstance(func, v.Member):
        return call_member(interp, func, args, node)
    if isinstance(func, v.Cls):
        member = enumerations.by_value(interp, func, args)
        return _call_class(interp, func, args, node) if member is None else member
    if isinstance(func, v.Partial):
        merged = v.Args(
            [*func.args.pos, *args.pos],
            {**func.args.kw, **args.kw},
            v.more_of(func.args.star, args.star),
            v.more_of(func.args.dstar, args.dstar),
        )
        return call(interp, func.func, merged, node)
    if isinstance(func, v.AnyOf):
        return _call_any(interp, func, args, node)
    if isinstance(func, v.Inst):
        return call_instance(interp, func, args, node)
    if isinstance(func, v.Obj):
        return (
            _start(interp, func, args, node)
            if func.api == v.KERNEL
            else call_object(interp, func, args, node)
        )
    if isinstance(func, v.Lit) and func.instead is not None:
        # Nothing cannot be called: the option is given where this runs.
        return call(interp, func.instead, args, node)
    return _call_unknown(interp, func, args, node)


def _start(interp: Interp, kernel: v.Obj, args: v.Args, node: Any) -> v.Value:
    """Start a kernel: it gets addresses in place of tensors, and what it is compiled for beside what it is given."""
    interp.listeners.tell_any_call(CallEvent(v.KERNEL, args, node))
    call(interp, kernel.args.pos[0], v.Args(star=True, dstar=True), node)
    return v.NONE


def _call_unknown(interp: Interp, func: v.Value, args: v.Args, node: Any) -> v.Value:
    """Call what is not known: what it is given may be called by it."""
    interp.listeners.tell_any_call(CallEvent("?", args, node))
    if func is v.UNKNOWN and isinstance(node, m.Call) and isinstance(node.func, m.Call):
        methods, complete = reflection.named_methods(interp, node.func)
        named = [one for one in methods if accepts(one, args)]
        if named:
            return _call_any(interp, v.AnyOf((*named, *([] if complete else [v.UNKNOWN]))), args, node)
    _may_fill(args)
    callbacks(interp, "", args, node)
    if func is v.UNKNOWN and isinstance(node, m.Call) and isinstance(node.func, (m.Name, m.Attr)):
        called = node.func.id if isinstance(node.func, m.Name) else node.func.name
        rng.may_seed(interp, called, args, node, method="." in called or isinstance(node.func, m.Attr))
    return v.UNKNOWN


def _may_fill(args: v.Args, goes_through: bool = False) -> None:
    """Code that is not known is given an empty list or dictionary, or a method of one: it may fill it. What only goes
    through its arguments may do so by the method."""
    for one in args.values():
        if isinstance(one, v.Member):
            one = one.owner
        elif goes_through:
            continue
        if (isinstance(one, v.Items) and one.kind != "t" and not one.elts) or (
            isinstance(one, v.Mapping) and not one.items
        ):
            one.open = True


def _call_any(interp: Interp, func: v.AnyOf, args: v.Args, node: Any) -> v.Value:
    if func.option and may_be_called(interp, func.values[0], args):
        return _call_chosen(interp, func, args, node)
    results: list[v.Value] = []
    runs: list[Callable[[], None]] = []
    callables = [
        one
        for value in func.values
        for one in v.alternatives((value.instead or value) if isinstance(value, v.Lit) else value)
        if not isinstance(one, v.Lit) and one is not v.UNKNOWN
    ]
    before = interp.state
    loaded: dict[str, Setting] = {}
    for one in [one for one in callables if may_be_called(interp, one, args)] or callables:

        def run(one: v.Value = one) -> None:
            results.append(call(interp, one, args, node))
            loaded.update(loaded_between(before, interp.state))

        runs.append(run)
    if not runs:
        return v.UNKNOWN
    if len(runs) > v.MAX_CANDIDATES:
        return _call_unknown(interp, v.UNKNOWN, args, node)
    if v.UNKNOWN in func.values:
        interp.may_happen(runs)
        results.append(v.UNKNOWN)
    elif len(runs) == 1:
        runs[0]()
    else:
        with tensors.of_one_of(interp, func.values):
            interp.branch(runs)
        _each_is_loaded(interp, func, loaded)
    return v.join(results, max(v.MAX_ALTERNATIVES, len(results)))


def _call_chosen(interp: Interp, func: v.AnyOf, args: v.Args, node: Any) -> v.Value:
    """Call what an option's default chooses; the others run only when the option is given."""
    before = interp.state.copy()
    loaded: dict[str, Setting] = {}

    def run(one: v.Value, given: v.Args) -> v.Value:
        result = call(interp, one, given, node)
        loaded.update(loaded_between(before, interp.state))
        return result

    spans = [HEAP.clock]
    result = run(func.values[0], args)
    spans.append(HEAP.clock)
    for other in func.values[1:]:
        if not accepts(other, args):
            # The option cannot name it: the call would raise.
            continue
        result = given_instead.beside(interp, result, before, partial(run, other), args, func.option)
        spans.append(HEAP.clock)
    given_instead.part(interp, spans)
    _each_is_loaded(interp, func, loaded)
    return result


def _each_is_loaded(interp: Interp, func: v.AnyOf, loaded: dict[str, Setting]) -> None:
    """A method of one of several models has loaded weights: of models of which the program makes only one, it has loaded
    those of the one that there is."""
    if not loaded:
        return
    if interp.partings.of_one([tensors.birth_of(one) for one in func.values]):
        for name, setting in loaded.items():
            interp.state.modes[name] = setting


# --------------------------------------------------------------------------------- project functions


MANAGED = "@contextmanager"
"""``Obj.api`` of what a generator function gives that ``contextlib.contextmanager`` decorates."""
_MANAGERS = frozenset({"contextlib.contextmanager", "contextlib.asynccontextmanager"})


def _is_manager(decorator: v.Value) -> bool:
    return isinstance(decorator, v.Ext) and decorator.name in _MANAGERS


def is_managed(context: v.Value) -> bool:
    """Whether a context manager is a generator function of the project."""
    return isinstance(context, v.Obj) and context.api == MANAGED


def manage(interp: Interp, context: v.Value, body: Callable[[v.Value], None], node: Any) -> None:
    """Run such a function with the body of the ``with`` statement at its ``yield``."""
    assert isinstance(context, v.Obj)
    func, given = context.args.pos
    assert isinstance(func, v.Func)
    assert isinstance(given, v.Partial)
    runs = 0
    outer, contexts, active = interp.frame, interp.contexts.copy(), dict(interp.active)

    def at_yield(value: v.Value) -> None:
        nonlocal runs
        runs += 1
        frame, interp.frame = interp.frame, outer
        inner, interp.active = interp.active, dict(active)
        inner_contexts, interp.contexts = interp.contexts, contexts.copy()
        body(value)
        interp.frame, interp.active, interp.contexts = frame, inner, inner_contexts

    call_function(interp, func, given.args, node, at_yield)
    if not runs:
        body(v.UNKNOWN)


def _has_no_such_choice(frame: Frame, end: State) -> bool:
    """Whether a function ends without returning only where an option has another value than its default and those for which
    the function returns something."""
    if end.usual or not any(s.usual for _, s in frame.returns):
        return False
    return bool(frame.returns_aside) or not all(s.usual for _, s in frame.returns)


def call_function(
    interp: Interp,
    func: v.Func,
    args: v.Args,
    node: Any,
    on_yield: Callable[[v.Value], None] | None = None,
) -> v.Value:
    """Run a project function; the same call from the same state is run once."""
    fn = func.fn
    if interp.stopped or has_raised(interp):
        # The rest of an expression of which a part has raised, too, is not evaluated.
        return v.UNKNOWN
    if func.decorated:
        interp.listeners.tell(DecoratedCallEvent(func, args, node))
    if fn.is_generator and on_yield is None and any(_is_manager(d) for d in func.decorated):
        # It runs when it is entered.
        return v.Obj(MANAGED, "", v.Args([func, v.Partial(func, args)]))
    if interp.frame.depth > MAX_DEPTH:
        interp.cut("calls nested too deeply", node)
        return v.UNKNOWN
    if interp.importing and interp.import_steps > MAX_IMPORT_STEPS:
        interp.cut("an import does too much", node)
        return v.UNKNOWN
    name = func.key
    if interp.entry is None and node is not None:
        callers.note_call(interp, func, args)
        if not interp.gradient_calls.get(name):
            interp.gradient_calls[name] = tensors.no_gradient(interp) is not True
    running = name
    if name in interp.active and (
        deeper := recursion.level_inside(name, args, interp.active) if _is_run_seldom(interp, func) else None
    ):
        running = deeper
    elif name in interp.active:
        later = recursion.other_arguments(func.receiver, args, interp.active[name])
        running = recursion.again(name)
        if later is None or running in interp.active:
            # What a call gives whose recursion was cut here holds only in the same recursion.
            interp.recursions.add(name if later is None else running)
            return v.UNKNOWN
        args = later
    if func.decorated and not (args.pos or args.kw or args.star or args.dstar) and takes_options(func):
        args = option_params(interp, func)
    if func.decorated and isinstance(args, ChosenArgs):
        return call_with_choices(interp, func, args, node)
    own = (name, made_again.called_by(func))
    variants = interp.variants.setdefault(own, set())
    if len(variants) >= MAX_VARIANTS:
        # More numbers say nothing new.
        args = _widened(args, (int, float))
    given = memo.shapes(args)
    variants.add(given)
    key = (
        name,
        id(func.env),
        memo.shape(func.receiver),
        given,
        _doubts(interp, func.receiver, args),
        interp.repeating > 0,
        interp.guessing > 0,
        interp.uncertain > 0,
        interp.muted,
        bool(interp.decorated),
        interp.orders.key(),
        interp.sharing,
        interp.sharing_files,
        interp.tasks,
        interp.among_processes,
    )
    outcomes = interp.memo.setdefault(key, [])
    arguments = (func.receiver or v.NONE, *args.pos, *(x for _, x in sorted(args.kw.items())))
    for known in reversed(outcomes) if on_yield is None else ():
        if (
            memo.is_bound_alike(known)
            and interp.circumstances_hold(known.circumstances, (func, node))
            and known.effect.holds(interp.state)
            and known.recursions <= interp.active.keys()
        ):
            loops = tuple(loop.start for loop in interp.orders.loops) if interp.orders.loops else ()
            late = given_instead.noted_since(interp, known.end)
            value = memo.replay(known, arguments, interp.reruns, loops, interp.given_instead, late)
            if value is not None:
                known.effect.apply(interp.state)
                interp.lost, interp.exits = known.effect.lost, known.effect.exits
                interp.trail.append(known.trail)
                interp.recursions |= known.recursions
                if known.in_loops:
                    interp.listeners.tell(RepeatedEvent(known.in_loops))
                return value
    if (
        interp.entry is None
        and on_yield is None
        and not interp.importing
        and not interp.speculating
        and (name in interp.visited or name not in interp.judged)
        and fn.name != "__init__"
        and len(fn.body) > SMALL_BODY
    ):
        # Over unreached code every function is looked at once, with its module: following all calls again
        # would cost the square of the code and find nothing new. What a rule tries out it looks at itself.
        return v.UNKNOWN
    spent = interp.spent.setdefault(own, [0, 0]) if on_yield is None else [0, 0]
    settled = spent[0] >= MAX_RUNS and spent[1] >= MAX_RUN_STEPS
    if settled:
        general = interp.settled.get(own)
        if general is not None:
            general.effect.apply(interp.state)
            interp.trail.append(general.trail)
            return memo.repeat(general, arguments)
        args = _widened(args, (str, bytes, int, float))
        interp.cut("a function is called in too many different circumstances", node)
    interp.visited.add(name)
    outer_trail, interp.trail = interp.trail, [FUNCTIONS.number(name)]
    outer_trail.append(interp.trail)
    steps_before = interp.steps
    interp.steps += CALL_STEPS
    interp.import_steps += CALL_STEPS
    act, start = HEAP.push(), interp.state.copy()
    rebound = len(HEAP.rebound)
    outer_recursions, interp.recursions = interp.recursions, set()
    rounds, interp.rounds = interp.rounds, 1
    env = v.Env(func.env)
    bind_arguments(interp, func, args, env)
    outer, node_before = interp.frame, interp.statement
    frame = Frame(func.mod, func.file, env, fn.qualname, outer, interp.here(node), func)
    frame.on_yield = on_yield
    interp.frame = frame
    interp.active[running] = v.Args([func.receiver or v.NONE, *args.pos], args.kw)
    decorators = [
        interp.kb.canonical(d.name) if isinstance(d, v.Ext) else d.api
        for d in func.decorated
        if isinstance(d, (v.Ext, v.Obj))
    ]
    for decorator in func.decorated:
        if is_gradient_switch(decorator):
            decorators += _gradient_context(decorator.args.get("mode", 0))
    with interp.within(*decorators):
        interp.block(fn.body)
    if frame.asides:
        interp.come_back(0)
    del interp.active[running]
    trail, interp.trail = interp.trail, outer_trail
    interp.frame, interp.statement = outer, node_before
    left = list(frame.returns)
    ends = [s for _, s in left]
    if interp.state.alive:
        ends.append(interp.state)
        if (not left or fn.name != "<lambda>") and not _has_no_such_choice(frame, interp.state):
            left.append((v.NONE, interp.state))
    # Where it only raises, what it did before that stays: the program may end here, or go on where that is caught.
    if ends:
        interp.state = join_states(ends)
        if frame.parted:
            interp.partings.close(interp, frame.parted, ends)
    runs_at_once = not (fn.is_generator or fn.is_async)
    lost = not ends and interp.state.lost and runs_at_once
    exits = not ends and not lost and runs_at_once and ends_program(fn)
    interp.state.alive, interp.state.lost = True, False
    if fn.is_generator:
        yielded: v.Value = v.UNKNOWN
        if frame.yielded:
            yielded = v.Items("l", frame.yielded, True)
            yielded.maker = func.key
        result: v.Value = interp.orders.carried(yielded, frame.yields)
    elif not left:
        result = v.UNKNOWN
    else:
        main = [value for value, s in left if s.usual]
        behind = list[tuple[v.Value, str]]()
        if not interp.state.usual or not main or len(main) == len(left):
            result = v.join(value for value, _ in left)
        else:
            result = v.join(main)
            # What is returned where an option's default has left the function before.
            behind = [(value, s.aside) for value, s in left if not s.usual]
        for value, option in (*behind, *frame.returns_aside):
            given_instead.goes_on_with_numbers(interp, result, value, option)
            result = given_instead.unless_option(interp, result, value, option)
    if interp.orders.any and interp.entry is None and node is None and outer.caller is None:
        # Who calls it is not known, nor that the order is of no account there.
        interp.orders.decide(interp.orders.handed_out(result))
    if name in interp.recursions or recursion.again(name) in interp.recursions:
        result = recursion.closed(result, act.start, running == recursion.again(name))
    HEAP.pop()
    interp.rounds = rounds
    interp.recursions.discard(running)
    if not interp.stopped and on_yield is None:
        done = effect(act, start, interp.state)._replace(lost=lost, exits=exits)
        found = memo.remember(
            name,
            act,
            result,
            done,
            arguments,
            func.env,
            frozenset(interp.recursions),
            trail,
            interp.circumstances(act, (func, node)),
        )
        if settled:
            interp.settled[own] = found
        elif not HEAP.rebound_since(rebound, act.start) and not given_instead.has_changed(interp, act):
            # What replaces functions is run again: names that are looked for after it mean something else.
            outcomes.append(found)
            del outcomes[: -memo.MAX_OUTCOMES]
    spent[0] += 1
    spent[1] += interp.steps - steps_before
    interp.recursions |= outer_recursions
    interp.lost, interp.exits = lost, exits
    return result


def _is_run_seldom(interp: Interp, func: v.Func) -> bool:
    """Whether a function has been run in so few circumstances that it may be run for each of some elements."""
    spent = interp.spent.get((func.key, made_again.called_by(func)))
    return spent is None or spent[0] < MAX_RUNS


def _doubts(interp: Interp, receiver: v.Value | None, args: v.Args) -> bool | tuple[int, ...]:
    """Whether what a call does may not happen, with the objects to which it does happen where they exist: by number."""
    if not interp.branching:
        return False
    given = enumerate((receiver, *args.pos, *(one for _, one in sorted(args.kw.items()))))
    return tuple(at for at, one in given if isinstance(one, v.Inst) and not interp.in_doubt(one.birth))


def _widened(args: v.Args, kinds: tuple[type[Any], ...]) -> v.Args:
    """Arguments of which literals of some kinds are not known; those that say yes or no stay."""

    def widened(value: v.Value) -> v.Value:
        wide = isinstance(value, v.Lit) and isinstance(value.value, kinds)
        return v.UNKNOWN if wide and not isinstance(value.value, bool) else value  # type: ignore[union-attr]

    pos = [widened(value) for value in args.pos]
    return v.Args(pos, {k: widened(x) for k, x in args.kw.items()}, args.star, args.dstar)


def takes_options(func: v.Func) -> bool:
    """Whether a decorator fills a function's parameters from the command line or a configuration."""
    for decorator in func.decorated:
        if isinstance(decorator, v.Obj):
            last = decorator.api.rpartition(".")[2]
            if last in ("option", "argument", "command", "wrap") or decorator.api == "hydra.main":
                return True
    return False


def bind_arguments(interp: Interp, func: v.Func, args: v.Args, env: v.Env) -> None:
    """Give parameters their values; what is not given has its default. Where a library calls a function with unknown
    arguments, it gives nothing for ``labels=labels``, which keeps a variable of the program for the function."""
    pos = list(args.pos)
    if func.receiver is not None:
        pos.insert(0, func.receiver)
    kw = dict(args.kw)
    any_arguments = args.star and args.dstar and not args.pos and not kw
    of_data = is_of_data(args)
    index = 0
    for param in func.fn.params:
        name = param.name
        if param.kind == "v":
            env.vars[name] = v.Items("t", pos[index:], args.star)
            if args.star is v.OF_DATA:
                env.vars[name] = v.Items("t", [*pos[index:], tensors.batch("")], open=True)
            index = len(pos)
        elif param.kind == "w":
            env.vars[name] = v.Mapping(kw, args.dstar)
            if args.dstar is v.OF_DATA:
                env.vars[name] = v.Mapping({**kw, (UNKNOWN_KEY, 0): tensors.batch("")}, open=True)
        elif param.kind in ("p", "a") and index < len(pos):
            env.vars[name] = pos[index]
            index += 1
        elif param.kind != "p" and name in kw:
            env.vars[name] = found_or(kw.pop(name), func.defaults.get(name))
        elif args.star or args.dstar:
            known = any_arguments and isinstance(param.default, m.Name) and param.default.id == name
            env.vars[name] = func.defaults.get(name, v.UNKNOWN) if known else v.UNKNOWN
            if of_data:
                env.vars[name] = _of_data(func.defaults.get(name))
            if name in func.drawn:
                rng.use_default(interp, [one for one in func.drawn[name] if one.rng == "own"])
        else:
            fixed = bindings.bound(interp, func, name)
            env.vars[name] = func.defaults.get(name, v.UNKNOWN) if fixed is None else fixed
            if name in func.drawn and fixed is None:
                rng.use_default(interp, func.drawn[name])
        if env.vars[name] is v.UNKNOWN and param.annotation is not None:
            env.vars[name] = annotated(interp, func, param.annotation)
        if env.vars[name] is v.UNKNOWN and _is_forward_input(func, param):
            tensor = v.Obj("parameter", TENSOR)
            tensor.likely = True
            env.vars[name] = tensor
        if env.vars[name] is v.UNKNOWN and name in _KEY_NAMES and interp.uses("jax"):
            env.vars[name] = v.Obj("parameter", KEY)


def is_of_data(args: v.Args) -> bool:
    """Whether a call may have further arguments, and all of these are loaded data."""
    return bool(args.star or args.dstar) and all(
        one is v.OF_DATA for one in (args.star, args.dstar) if one is not False
    )


def _of_data(default: v.Value | None) -> v.Value:
    """A parameter that is given loaded data, or nothing where it has a default: other defaults than ``None`` say that it is
    something else."""
    if default is not None and v.is_none(default) is not True:
        return v.UNKNOWN
    return tensors.batch("") if default is None else v.join([default, tensors.batch("")])


# Names that parameters have in JAX programs when they are keys of its random numbers.
_KEY_NAMES = frozenset({"key", "rng", "rng_key", "prng_key", "subkey"})


def _is_forward_input(func: v.Func, param: m.Param) -> bool:
    return (
        func.fn.name == "forward"
        and func.cls is not None
        and param.kind in ("p", "a")
        and param.default is None
        and param.name != "self"
        and func.receiver is not None
    )


def annotated(interp: Interp, func: v.Func, annotation: m.Expr) -> v.Value:
    """What an annotation says of a parameter that nothing else is known of: a tensor or a project class."""
    if isinstance(annotation, m.Const) and isinstance(annotation.value, str):
        name = annotation.value
    elif isinstance(annotation, m.Name):
        name = annotation.id
    elif isinstance(annotation, m.Const):
        # `size: 32`, where `size=32` was meant.
        return v.UNKNOWN
    else:
        return _one_of(interp, func, annotation)
    value = named_from(interp, func, name)
    if isinstance(value, v.Cls):
        return blank_instance(interp, value)
    if isinstance(value, v.Ext):
        canonical = interp.kb.canonical(value.name)
        if canonical == TENSOR:
            tensor = v.Obj("parameter", TENSOR)
            tensor.likely = True
            return tensor
        if (
            canonical.startswith(("torch.", "tf.", "numpy.random."))
            and canonical.rpartition(".")[2][:1].isupper()
        ):
            return v.Obj("parameter", canonical)
        made = interp.kb.result_type(canonical) if interp.kb.is_of_known_library(canonical) else ""
        if made and canonical.rpartition(".")[2][:1].isupper():
            return v.Obj("parameter", made)
    return v.UNKNOWN


def _one_of(interp: Interp, func: v.Func, annotation: m.Expr) -> v.Value:
    """What an annotation says that names several classes, ``Union[A, B]`` or ``A | None``: where all those of libraries
    are of one type."""
    named = list(_members(annotation))
    found = [annotated(interp, func, one) for one in named if not is_none(one)]
    types = {one.type if isinstance(one, v.Obj) else "" for one in found}
    if len(types) != 1 or "" in types:
        return v.UNKNOWN
    return v.candidates([found[0], v.NONE]) if len(found) < len(named) else found[0]


def _members(annotation: m.Expr) -> Iterator[m.Expr]:
    if isinstance(annotation, m.BinOp) and annotation.op == "|":
        yield from _members(annotation.left)
        yield from _members(annotation.right)
    elif isinstance(annotation, m.Subscript) and isinstance(annotation.value, m.Name):
        name = annotation.value.id.rpartition(".")[2]
        inner = annotation.index
        if name == "Optional":
            yield from (inner, m.Const(None, annotation.start, annotation.end))
        elif name == "Union":
            yield from inner.elts if isinstance(inner, m.Seq) else (inner,)
    elif isinstance(annotation, m.Name | m.Const):
        yield annotation


def blank_instance(interp: Interp, cls: v.Cls) -> v.Inst:
    """An instance of which only the class is known; dataclass defaults stand for its fields."""
    known = interp.blanks.get(cls)
    if interp.import_log is not None:
        interp.import_log.blanks.setdefault(cls, known)
    if known is None:
        known = interp.blanks[cls] = v.Inst(cls)
        if cls.find("__init__") is None and cls.fields:
            _dataclass_fields(interp, known, v.NO_ARGS)
    return known


def decorate(interp: Interp, decorator: v.Value, value: v.Value, node: Any) -> v.Value:
    """Apply a decorator: project ones are called, and what takes gradients; other library ones are remembered on the
    function."""
    if (gradients := _differentiated(interp, decorator, value, node)) is not None:
        return gradients
    if (accessed := with_accessor(decorator, value)) is not None:
        return accessed
    if isinstance(decorator, (v.Ext, v.Obj, v.Member)) or decorator is v.UNKNOWN:
        interp.listeners.tell(DecoratorEvent(decorator, value, node))
        _tell_registered(interp, decorator, value)
        if isinstance(value, v.Func):
            value.decorated = (*value.decorated, decorator)
            commands.register(decorator, value)
            bindings.keep(interp, decorator, value)
            dispatching.keep(interp, decorator, value)
            _answer_later(interp, decorator, value)
            if isinstance(decorator, v.Member):
                _experiment(interp, decorator, value, node)
        reflection.keep(decorator, value)
        return value
    outer = interp.decorated
    if isinstance(value, v.Func):
        interp.decorated = outer | {value.key}
    result = call(interp, decorator, v.Args([value]), node)
    interp.decorated = outer
    return value if result is v.UNKNOWN or isinstance(result, v.Lit) else result


def _tell_registered(interp: Interp, decorator: v.Value, value: v.Value) -> None:
    name = reflection.registry_of(decorator)
    if (
        name
        and isinstance(value, (v.Func, v.Cls))
        and interp.kb.call_is("registers-code", name.partition("@")[0])
    ):
        interp.listeners.tell(RegisterEvent(name, value))


def _differentiated(interp: Interp, decorator: v.Value, value: v.Value, node: Any) -> v.Value | None:
    """What a decorator makes of a function that takes its gradients, with options or without; None for others."""
    if not isinstance(value, v.Func) or value.cls is not None or not isinstance(decorator, (v.Ext, v.Obj)):
        return None
    api = interp.kb.canonical(decorator.name) if isinstance(decorator, v.Ext) else decorator.api
    if interp.kb.role(api, "differentiates") is None:
        return None
    options = decorator.args.kw if isinstance(decorator, v.Obj) else {}
    return call_external(interp, api, v.Args([value], options), node)


def _answer_later(interp: Interp, decorator: v.Value, handler: v.Func) -> None:
    """A function is registered with a server, which calls it when the program has started: where the program itself does
    that, or serves the application of a module that it imports."""
    owner = decorator.owner if isinstance(decorator, v.Obj | v.Member) else None
    api = commands.registering(decorator)
    starting = interp.kb.role(api, "registers-start")
    given = decorator.args if isinstance(decorator, v.Obj) else v.NO_ARGS
    starts = starting is not None and all_hold(given, starting.when) is not False
    if starts or interp.kb.role(api, "registers") is not None:
        # A function of the library registers with what the program serves, a method with its own application.
        if not interp.importing and (owner is None or interp.entry is interp.frame.file):
            interp.later(partial(commands.answer, interp, handler), first=starts)
        else:
            commands.keep_handler(owner, handler, first=starts)


def _experiment(interp: Interp, decorator: v.Member, func: v.Func, node: Any) -> None:
    """An experiment is given a function that configures it, or that it runs."""
    roles = experiments.roles(interp, decorator)
    if "configures" in roles:
        experiments.take(interp, decorator.owner, _local_variables(interp, decorator.owner, func, node))
    if "names-configuration" in roles:
        chosen = experiments.chosen_by(func.fn.name)
        interp.branch(
            [_nothing, partial(_name_configuration, interp, decorator.owner, func, node)],
            keep=0,
            option=chosen,
        )
    if "changes-configuration" in roles:
        given = experiments.given_to_hook(decorator.owner)
        as_given = given.version
        changes = call(interp, func, v.Args([given, v.UNKNOWN, v.UNKNOWN]), node)
        experiments.change(interp, decorator.owner, given, as_given, changes)
    if "names-main" in roles:
        experiments.name_main(decorator.owner, func)
    started = roles.get("configured")
    # It starts with its file only where that is the program.
    if started is not None and interp.entry is interp.frame.file and not interp.importing:
        assert isinstance(decorator.owner, v.Obj)
        api = f"{decorator.owner.type}.{decorator.name}"
        experiments.start(interp, decorator.owner, started, v.NO_ARGS, interp.kb.rng(api), node)


def _nothing() -> None:
    pass


def _name_configuration(interp: Interp, owner: v.Value, func: v.Func, node: Any) -> None:
    """An experiment is given a function whose local variables may be chosen as its configuration."""
    experiments.keep_named(owner, func.fn.name, _local_variables(interp, owner, func, node))


def _local_variables(interp: Interp, owner: v.Value, func: v.Func, node: Any) -> v.Mapping:
    """What the local variables of a function are when it ends; its parameters are parts of the configuration."""
    kept = experiments.configuration(owner)
    parameters = {param.name for param in func.fn.params}
    known = (
        {name: value for name, value in kept.items.items() if name in parameters} if kept is not None else {}
    )
    env = v.Env(func.env)
    bind_arguments(interp, func, v.Args([], known, dstar=True), env)
    outer, statement = interp.frame, interp.statement
    interp.frame = Frame(func.mod, func.file, env, func.fn.qualname, outer, interp.here(node), func)
    interp.frame.keeps_locals = True
    interp.visited.add(func.key)
    interp.block(func.fn.body)
    ends = [state for _, state in interp.frame.returns]
    if interp.state.alive:
        ends.append(interp.state)
    if ends:
        interp.state = join_states(ends)
    interp.state.alive = True
    interp.frame, interp.statement = outer, statement
    return v.Mapping({name: value for name, value in env.vars.items() if name not in parameters})


def decorate_class(interp: Interp, decorator: v.Value, value: v.Value, node: Any) -> v.Value:
    """Apply a class decorator: project ones are called, registries of libraries keep the class."""
    bindings.keep(interp, decorator, value)
    _tell_registered(interp, decorator, value)
    if reflection.keep(decorator, value) or not isinstance(decorator, (v.Func, v.Partial, v.Inst, v.Cls)):
        return value
    result = call(interp, decorator, v.Args([value]), node)
    return result if isinstance(result, v.Cls) else value


# ------------------------------------------------------------------------------ classes and instances


def _call_class(interp: Interp, cls: v.Cls, args: v.Args, node: Any) -> v.Value:
    """What calling a class gives: its metaclass may give an object that was made before."""
    found = cls.metaclass.find("__call__") if cls.metaclass is not None else None
    if isinstance(found, v.Func):
        given = call(interp, found.bind(cls), args, node)
        if given is not v.UNKNOWN or not interp.state.alive:
            return given
    return instantiate(interp, cls, args, node)


def instantiate(interp: Interp, cls: v.Cls, args: v.Args, node: Any) -> v.Value:
    """Make an instance: run ``__init__``, fill dataclass fields, or run what a library base does."""
    if (
        interp.frame.file.notebook
        and not interp.guessing
        and not interp.uncertain
        and _raises(cls, args, node)
    ):
        # It has stayed behind the modules that it imports: a script that fails is repaired, a notebook is kept.
        interp.gap("failing-call", f"`{cls.cls.name}()` is called without an argument that it needs", node)
        interp.state.alive = False
        interp.state.raised = True
        return v.UNKNOWN
    dictionary = own_dicts.make(interp, cls, args, node)
    if dictionary is not None:
        return dictionary
    new = cls.find(NEW)
    if isinstance(new, v.Func) and not _is_made_otherwise(interp, cls):
        return _made_by_new(interp, new, cls, args, node)
    inst = _new_instance(interp, cls, args, node)
    _initialize(interp, inst, args, node)
    return inst


def _new_instance(interp: Interp, cls: v.Cls, args: v.Args, node: Any) -> v.Inst:
    """An instance of which nothing has been set yet."""
    inst = v.Inst(cls, args, node if isinstance(node, m.Call) else None)
    if interp.repeating and cls.find("forward") is not None:
        made_in_round(interp, inst)
    interp.listeners.tell(InstanceEvent(inst))
    return inst


def _initialize(interp: Interp, inst: v.Inst, args: v.Args, node: Any, by_new: bool = False) -> None:
    """What the constructor of an instance sets. The library's class that the class is derived from is made here, unless the
    ``__new__`` of the class has done so."""
    cls = inst.cls
    init = cls.find("__init__")
    if init is not None:
        call(interp, bind_method(interp, init, inst, cls, node), args, node)
    elif cls.fields and not cls.external_bases():
        _dataclass_fields(interp, inst, args, PARSED in interp.contexts)
    else:
        if cls.fields:
            _dataclass_fields(interp, inst, args, not functional_modules.sets_up(interp, cls))
        if not by_new:
            _make_base(interp, inst, args, node)
    post = cls.find("__post_init__")
    if post is not None and init is None:
        call(interp, bind_method(interp, post, inst, cls, node), v.NO_ARGS, node)
    functional_modules.set_up(interp, inst, node)
    _forget_devices(inst)


def _make_base(interp: Interp, inst: v.Inst, args: v.Args, node: Any) -> None:
    """What the library's class makes of its arguments from which the class of an instance is derived."""
    for base in inst.cls.external_bases()[:1]:
        given = _given_by_parser(interp, interp.kb.canonical(base), inst, args, node)
        keep_base(interp, inst, call_external(interp, base, given, node))
        _call_when_made(interp, inst, interp.kb.canonical(base), node)
    records.fill(inst, args)


def _is_made_otherwise(interp: Interp, cls: v.Cls) -> bool:
    """Whether calling a class gives a class, or a member that there is."""
    return enumerations.enumerates(interp, cls) or "builtins.type" in cls.external_bases()


def _made_by_new(interp: Interp, new: v.Func, cls: v.Cls, args: v.Args, node: Any) -> v.Value:
    """What a class gives that has a ``__new__``: what that gives, initialized if it is an instance of the class."""
    given = call(interp, new, v.Args([cls, *args.pos], args.kw, args.star, args.dstar), node)
    if not interp.state.alive:
        return v.UNKNOWN
    made = [one for one in v.alternatives(given) if not _may_be_instance(one, cls)]
    if not made:
        # What the library's class makes of what it is given behaves as the class says.
        inst = _new_instance(interp, cls, args, node)
        _initialize(interp, inst, args, node, by_new=records.is_record(cls))
        return inst
    for one in made:
        if isinstance(one, v.Inst) and cls in one.cls.mro():
            if one.args is v.NO_ARGS and one.node is None:
                one.args, one.node = args, node if isinstance(node, m.Call) else None
            _initialize(interp, one, args, node, by_new=True)
    return v.join(made)


def _may_be_instance(value: v.Value, cls: v.Cls) -> bool:
    """Whether a value is not known, or is what a library made for a class."""
    return (
        value is v.UNKNOWN
        or isinstance(value, v.Member)
        or (isinstance(value, v.Obj) and any(one is cls for one in value.args.values()))
    )


def _allocated(interp: Interp, cls: v.Cls, args: v.Args, node: Any) -> v.Inst:
    """``object.__new__(cls)``, ``super().__new__(cls, ...)`` where the base is a library's: it makes an instance of the
    class. Where nothing else does, what it is given is what the library's class is made with."""
    inst = _new_instance(interp, cls, v.NO_ARGS, None)
    if cls.find("__init__") is None and (cls.external_bases() or records.is_record(cls)):
        inst.args, inst.node = args, node if isinstance(node, m.Call) else None
        _make_base(interp, inst, args, node)
    return inst


def _class_to_make(interp: Interp, name: str, args: v.Args) -> v.Cls | None:
    """The class of the program of which a method of a library's class makes an instance."""
    cls = args.pos[0] if name == NEW and args.pos else None
    if not isinstance(cls, v.Cls) or (interp.making and cls is interp.making[-1].metaclass):
        return None
    return cls


def _raises(cls: v.Cls, args: v.Args, node: Any) -> bool:
    """Whether making an instance raises TypeError: its constructor is known, and an argument is missing."""
    if not isinstance(node, m.Call) or not isinstance(node.func, m.Name):
        return False
    if node.func.id.rpartition(".")[2] != cls.cls.name:
        # A library makes it, or it has another name here.
        return False
    if any(one.decorated or one.metaclass is not None for one in cls.mro()):
        return False
    init = cls.find("__init__")
    return (
        isinstance(init, v.Func)
        and not init.decorated
        and cls.find("__new__") is None
        and not accepts(init.bind(v.Inst(cls)), args)
    )


def _forget_devices(inst: v.Inst) -> None:
    """Where the buffers of a module are is known while it is made: later it may be moved with all of them."""
    for name, value in inst.attrs.items():
        if isinstance(value, v.Obj) and value.api == BUFFER and value.form is not None and value.form.device:
            buffer = v.Obj(BUFFER, value.type, value.args, value.node)
            buffer.start_with(value.form._replace(device=""))
            inst.attrs[name] = buffer


def _dataclass_fields(interp: Interp, inst: v.Inst, args: v.Args, options: bool = True) -> None:
    """Give the fields their values; their defaults are those of ``options`` of the program, or of arguments."""
    names: list[str] = []
    for cls in reversed(inst.cls.mro()):
        names += [name for name in cls.fields if name not in names]
    for index, name in enumerate(names):
        given = args.kw.get(name)
        if given is None and index < len(args.pos):
            given = args.pos[index]
        if given is v.UNKNOWN or (given is None and (args.star or args.dstar)):
            of_data = given is None and is_of_data(args) and inst.cls.find(name) is None
            inst.attrs[name] = tensors.batch("") if of_data else _as_declared(inst.cls, name)
            continue
        if given is None:
            default = inst.cls.find(name)
            given = v.UNKNOWN if default is None else field_default(interp, default)
            if options and isinstance(given, v.Lit) and not given.option:
                given = v.Lit(given.value, name)
        inst.attrs[name] = given


def _as_declared(cls: v.Cls, name: str) -> v.Value:
    """What is known of a field that is given something unknown: it is declared to hold a text, or nothing."""
    for one in cls.mro():
        for stmt in one.cls.body if name in one.fields else ():
            if isinstance(stmt, m.AnnAssign) and isinstance(stmt.target, m.Name) and stmt.target.id == name:
                text = isinstance(stmt.annotation, m.Name) and stmt.annotation.id == "str"
                return v.Obj(v.TEXT, v.TEXT) if text else v.UNKNOWN
    return v.UNKNOWN


def field_default(interp: Interp, default: v.Value) -> v.Value:
    """The default of a dataclass field, also when written as ``field(default=...)``."""
    if isinstance(default, v.Obj) and default.api.rpartition(".")[2] in ("field", "Field", "ib", "attrib"):
        found = default.args.get("default", 0 if default.api.startswith("pydantic") else None)
        if found is not None:
            return found
        factory = default.args.get("default_factory") or default.args.get("factory")
        return call(interp, factory, v.NO_ARGS, default.node) if factory is not None else v.UNKNOWN
    return default


def call_instance(interp: Interp, inst: v.Inst, args: v.Args, node: Any) -> v.Value:
    """``instance(...)``: its ``__call__``, or a module's ``forward`` / ``call``."""
    args = inputs.moved(interp, inst, args, node)
    return hooks.call_with(interp, inst, args, node, lambda given: _call_instance(interp, inst, given, node))


def _call_instance(interp: Interp, inst: v.Inst, args: v.Args, node: Any) -> v.Value:
    for name in ("__call__", "forward", "call"):
        found = inst.cls.find(name)
        if found is not None and name == "forward" and tensors.frozen(inst):
            with interp.within(FROZEN):
                return call(interp, bind_method(interp, found, inst, inst.cls, node), args, node)
        if found is not None:
            if name == layer_modes.CALL:
                _build(interp, inst, node)
                return layer_modes.call_layer(interp, found, inst, args, node)
            return call(interp, bind_method(interp, found, inst, inst.cls, node), args, node)
    container = container_of(inst)
    if container is not None and container.api == SEQUENTIAL:
        return call_object(interp, container, args, node)
    layer = layer_behind(inst)
    if layer is not None:
        return call_object(interp, layer, args, node)
    _draw_as_base(interp, inst, args, node)
    run_when_called(interp, inst, node)
    return call_member(interp, v.Member(inst, "__call__"), args, node)


def _draw_as_base(interp: Interp, inst: v.Value, args: v.Args, node: Any) -> None:
    """An instance does what the module of a library does from whose class its own is derived, which may draw."""
    drawing = inst.attrs.get(DRAWING) if isinstance(inst, v.Inst) else None
    if isinstance(drawing, v.Obj):
        use_object(interp, drawing, args, node)


def _build(interp: Interp, inst: v.Inst, node: Any) -> None:
    """A layer makes its weights when it is called for the first time."""
    found = inst.cls.find("build")
    if not isinstance(found, v.Func) or _BUILT in inst.attrs or not inst.cls.external_bases():
        return
    inst.attrs[_BUILT] = v.TRUE
    call(interp, bind_method(interp, found, inst, inst.cls, node), v.Args([v.UNKNOWN]), node)


_BUILT = "built"


def run_methods(
    interp: Interp,
    inst: v.Inst,
    node: Any,
    caller: RunnerEntry | None = None,
    method: str = "",
    mode: str = "",
) -> None:
    """Run the methods of an instance that a library will call, in a ``method`` of the ``caller`` if that is known: each
    once, with unknown arguments, but for batches of data. What is known of the ``caller`` says which are called without
    gradients. Layers of Keras are called in a ``mode``, once in each."""
    without: frozenset[str] = frozenset()
    if mode and layer_modes.is_layer(interp, inst):
        with interp.within(mode):
            layer_modes.run_layer(interp, inst, _ANY_INPUT, node, mode)
        without = frozenset({layer_modes.CALL})
    called = Called(interp, inst.cls, method)
    evaluates = caller is not None and method in caller.evaluates
    known = {*caller.batches, *caller.without_gradient} if caller is not None else set[str]()
    without |= _called_by_others(interp, inst, called) - known
    first = True
    for cls in inst.cls.mro():
        for name, member in list(cls.env.all().items()):
            if not isinstance(member, v.Func) or inst.cls.find(name) is not member or name in without:
                continue
            if name not in _PROTOCOL and (name.startswith("__") or name not in called):
                continue
            quiet = evaluates or (caller is not None and name in caller.without_gradient)
            if (inst, name, quiet) in interp.methods_run:
                continue
            if first:
                first = False
                interp.memory.changed()
                # Whoever calls the methods of a module puts it into a mode.
                set_training(interp, inst, None)
            interp.methods_run.add((inst, name, quiet))
            data = caller.batches.get(name) if caller is not None else None
            kw: dict[str, v.Value] = {data: tensors.batch("")} if data else {}
            played = (PLAYED,) if environments.INSIDE in inst.attrs else ()
            with interp.within(*((QUIET,) if quiet else ()), *played):
                given = call(interp, member.bind(inst), v.Args(kw=kw, star=not kw, dstar=True), node)
                _run_given(interp, given, list(called.of_given(name)), node)


def _run_given(interp: Interp, given: v.Value, names: list[str], node: Any) -> None:
    """Run the methods that a library calls of the objects which a method gives, also in lists and dictionaries."""
    for one in flatten(given) if names else ():
        if not isinstance(one, v.Inst):
            continue
        for name in names:
            method = one.cls.find(name)
            if isinstance(method, v.Func) and (one, name, False) not in interp.methods_run:
                interp.methods_run.add((one, name, False))
                call(interp, method.bind(one), _ANY, node)


def _called_by_others(interp: Interp, inst: v.Inst, called: Called) -> frozenset[str]:
    """The methods of an instance that others of its methods call, with arguments that are seen there, and that a library
    does not call for their names."""
    found: set[str] = set()
    for cls in inst.cls.mro():
        for name, member in cls.env.all().items():
            if not isinstance(member, v.Func) or not member.fn.params or inst.cls.find(name) is not member:
                continue
            own = member.fn.params[0].name
            for node in nodes(interp.body(member)):
                if isinstance(node, m.Call) and isinstance(node.func, m.Name):
                    first, _, other = node.func.id.partition(".")
                    if first == own and other != name and not called.hooks(other):
                        found.add(other)
    return frozenset(found)


_ANY_INPUT = v.Args([v.UNKNOWN], star=True)


def _make_objects(
    interp: Interp, api: str, args: v.Args, node: Any, configured: list[dict[str, Any]]
) -> None:
    """What trains is given classes, or finds them by names that the program does not have: it makes objects of them. Files
    that are given on the command line may name them."""
    found = runner_of(interp, api, args)
    for made in found.entry.makes if found is not None else ():
        given = args.get(made.arg, made.pos) or v.NONE
        classes = [(one, _ANY) for one in v.alternatives(given) if isinstance(one, v.Cls)]
        if v.is_none(given) is True or (
            isinstance(given, v.Ext) and interp.kb.canonical(given.name) == made.base
        ):
            derived = _derived(interp, made.base)
            for one in command_line_files.classes(configured, made):
                # A class that is imported may be named without its module.
                known = [cls for cls in derived if cls.cls.name == one.path]
                cls = known[0] if len(known) == 1 else reflection.at_path(interp, one.path, node)
                if isinstance(cls, v.Cls):
                    # What they do not give comes from another part, or from the command line.
                    whole = accepts(cls, v.Args(kw=one.arguments))
                    classes.append((cls, v.Args(kw=one.arguments, dstar=not whole)))
            classes = classes or [(cls, _ANY) for cls in derived]
            if not classes and made.unknown:
                unknown_models.made(interp, made.unknown, args, node)
        if len(classes) == 1:
            _use_class(interp, *classes[0], node, found)
        elif 1 < len(classes) <= v.MAX_ALTERNATIVES:
            # One of them is chosen when the program is started.
            interp.branch([partial(_use_class, interp, *one, node, found) for one in classes])


def _use_class(interp: Interp, cls: v.Cls, args: v.Args, node: Any, found: Runner | None) -> None:
    if found is not None and found.entry.from_files:
        args = configured_parts.given(interp, cls, args, node, annotated)
    made = call(interp, cls, args, node)
    if isinstance(made, v.Inst):
        run_methods(
            interp,
            made,
            node,
            found.entry if found is not None else None,
            ANY_METHOD if found is not None else "",
        )


def _derived(interp: Interp, base: str) -> list[v.Cls]:
    """The classes of the program that are derived from one of a library, without those that others are derived from."""
    started = interp.frame
    while started.caller is not None:
        started = started.caller
    classes = {
        id(cls): cls
        for mod in (started.mod, *interp.loaded.values())
        if mod.file is not None
        for cls in mod.env.all().values()
        if isinstance(cls, v.Cls) and any(interp.kb.canonical(one) == base for one in cls.external_bases())
    }
    bases = {id(one) for cls in classes.values() for one in cls.mro()[1:]}
    return [cls for key, cls in classes.items() if key not in bases]


_PROTOCOL = frozenset({"__getitem__", "__iter__", "__call__", "__len__", "__next__"})

# ------------------------------------------------------------------------------------- library calls


def call_external(
    interp: Interp, name: str, args: v.Args, node: Any, base_of: v.Inst | None = None
) -> v.Value:
    """A library function or class, or the constructor of the one that the class of ``base_of`` is derived from."""
    receiver = args.pos[0] if args.pos and name.endswith(_INIT) else None
    if name == _CALL_OF_TYPE and args.pos and isinstance(args.pos[0], v.Cls):
        return instantiate(interp, args.pos[0], args.rest(), node)
    if name.endswith(_OF_NEW):
        if (cls := _class_to_make(interp, NEW, args)) is not None:
            return _allocated(interp, cls, args.rest(), node)
        if interp.making and args.pos and args.pos[0] is interp.making[-1].metaclass:
            return interp.making[-1]
    if isinstance(receiver, v.Inst):
        # The base class is named: ``Base.__init__(self, ...)``.
        given = v.Args(args.pos[1:], args.kw, args.star, args.dstar)
        keep_base(interp, receiver, call_external(interp, name.removesuffix(_INIT), given, node, receiver))
        return v.NONE
    layer = layer_behind(args.pos[0]) if args.pos and name.endswith(".forward") else None
    if layer is not None:
        # The same for a layer: ``Base.forward(self, ...)``.
        return call_object(interp, layer, v.Args(args.pos[1:], args.kw, args.star, args.dstar), node)
    if isinstance(receiver, v.Mapping) and receiver.cls is not None:
        return own_dicts.inherited(interp, receiver, "__init__", args.rest(), node)
    if (of_class := unbound.bound(interp, name, args, node)) is not None:
        return call_member(interp, *of_class, node)
    api = interp.kb.canonical(name)
    if api != name:
        # It may be the old name of something that later releases have under another one.
        interp.release_names.used(name)
    return interp.orders.call(interp, api, args, node, _call_external(interp, name, api, args, node, base_of))


def _given_by_parser(interp: Interp, api: str, inst: v.Inst, args: v.Args, node: Any) -> v.Args:
    """The arguments of the constructor of a library's class, with defaults that the class derived from it gives options."""
    for one in interp.kb.runners(api):
        if one.parser_hook:
            args = command_line_files.with_defaults(interp, one, inst, args, node)
    return args


def _call_external(
    interp: Interp, name: str, api: str, args: v.Args, node: Any, base_of: v.Inst | None
) -> v.Value:
    if base_of is not None:
        args = _given_by_parser(interp, api, base_of, args, node)
    runners = interp.kb.runners(api)
    configured: list[dict[str, Any]] = []
    for one in runners:
        if one.from_files:
            configured = command_line_files.found(interp, one)
            args = command_line_files.with_arguments(one, configured, args)
    roles = interp.kb.by_role(api)
    if (plays := roles.get("resets-environment")) is not None:
        args = environments.named(interp, args, node, plays.arg, plays.pos)
    if (saves := roles.get("asks-states")) is not None:
        args = asked_states.in_dictionary(interp, saves, args, node)
    if args.pos and (seeds := roles.get("seeds-attribute")) is not None:
        environments.seed_attribute(interp, seeds, args.pos[0], args.rest())
    event = CallEvent(api, args, node, None, base_of)
    interp.listeners.tell_call(event)
    entries = interp.kb.rng(api)
    if any(one.file_calls for one in entries):
        entries = file_calls.seeding(interp, entries, args)
    package = name.partition(".")[0]
    unseeded = rng.apply(interp, entries, args, node, package=package) if entries else False
    if interp.orders.origins and interp.kb.is_of_known_library(api):
        for argument, given in args.kw.items():
            if isinstance(given, v.Obj) and given.order is not None and interp.kb.is_seed(argument):
                rng.differs(interp, given)
    rng.use_given(interp, api, args, node)
    if not entries:
        rng.may_seed(interp, api, args, node, method=False)
    if runners:
        _make_objects(interp, api, args, node, configured)
    trained = roles.get("trains-parameters")
    if trained is not None:
        unknown_models.optimized(interp, args.get(trained.arg, trained.pos), node)
    of_argument = roles.get("calls-method-of")
    if of_argument is not None:
        own_methods.run_of_argument(interp, of_argument, args, node, passes_on=False)
    written = roles.get("exports")
    if written is not None:
        unknown_models.exported(interp, args.get(written.arg, written.pos), node)
    mapped = map_each(interp, api, args, node)
    if mapped is not None:
        return mapped
    model = MODELS.get(api)
    contained: list[v.Value] = []
    if model is not None:
        modelled = model(interp, api, args, node)
        if isinstance(modelled, v.Obj) and modelled.type in (LOADER, PARSER):
            modelled.package = package
        if modelled is not None:
            return modelled
    elif (same := _given_back(roles.get("gives-back"), args)) is not None:
        return same
    elif (tree := trees.mapped(interp, roles.get("calls-for-leaves"), args, node)) is not None:
        return tree
    elif "reads-configuration" in roles:
        held = load_config(interp, api, args, node)
        if held is not None:
            return held
    elif (role := roles.get("wraps")) is not None:
        # The result acts like the argument.
        wrapped = args.get(role.arg, role.pos)
        if isinstance(wrapped, (v.Inst, v.Obj, v.Func, v.Cls, v.AnyOf, v.Partial, v.Member)):
            inputs.take_in(interp, api, wrapped, args)
            return wrapped
    elif (role := roles.get("configuration")) is not None:
        return configuration(role, args)
    elif roles and (config := configs.built(interp, roles, args, node)) is not None:
        return config
    elif (found := configuration_in_file(interp, api, args, node)) is not None:
        return found
    elif (kept := functional_modules.keep_fields(interp, api, v.NONE, args, node)) is not None:
        return kept
    elif (restored := functional_modules.restore(interp, api, args, node)) is not None:
        return restored
    elif (keeps := roles.get("keeps-constructor")) is not None:
        kept_arguments.keep(interp, None, keeps, args)
        return v.NONE
    elif (asks := roles.get("gives-states")) is not None:
        states = asked_states.given(interp, asks, args, node)
        if states is not None:
            return states
    elif (fills := roles.get("takes-states")) is not None:
        asked_states.give_back(interp, fills, args, node)
    elif (reads := roles.get("loads-checkpoint")) is not None and reads.arg:
        asked_states.fill(interp, reads, args, node)
    elif (role := roles.get("gives-rng-state")) is not None:
        return saved_state(interp, role, api, args, node)
    elif (generator := _generator_for(interp, api, args, node)) is not None:
        return generator
    elif (grouped := process_groups.asked(interp, api)) is not None:
        return grouped
    else:
        if not interp.kb.gives(api) and interp.kb.tensor(api) is None:
            _may_fill(args, api in GOING_THROUGH)
        load_file(interp, api, args)
        if (binds := roles.get("binds-parameters")) is not None:
            bindings.bind(interp, binds, args, node)
        handed = (HANDED,) if "differentiates" in roles else ()
        contained = _environments(interp, api, args, node)
        with interp.within(*handed):
            if (process := roles.get("new-process")) is None:
                if not (contained and environments.process_of(interp, api, args)):
                    callbacks(interp, api, args, node)
            elif process.more:
                return _decorated(interp, name, args, node)
            else:
                _call_elsewhere(interp, api, args, node)
        moved = runner_of(interp, api, args)
        if moved is not None and moved.entry.returns:
            return _handed_back(args, moved)
    if (picks := roles.get("picks")) is not None and (best := rows.picked(interp, picks, args)) is not None:
        return best
    result = v.Obj(api, _class_of(interp, api, args), args, node if isinstance(node, m.Call) else None)
    result.file = interp.frame.file
    result.package = package
    result.something = "gives-something" in roles or (
        "gives-in-workers" in roles and bool(interp.contexts.within(_WORKERS))
    )
    if contained:
        result.attrs[environments.INSIDE] = v.join(contained)
    estimators.made(interp, result)
    if tensors.is_tensor(interp, api, result.type == TENSOR):
        result.start_with(tensors.of_call(interp, api, args))
        if api not in tensors.LOADING and not api.startswith("tf."):
            result.type = TENSOR
    if interp.repeating and is_module(interp, result):
        made_in_round(interp, result)
    kinds: set[str] = {
        entry.kind for entry in entries if entry.kind != "entropy" or all_hold(args, entry.when) is True
    }
    source = next(filter(None, map(differing, args.values())), None) if api.startswith(_DERIVING) else None
    if source is not None and "tells-form" in roles:
        source = None
    if (
        source is not None
        or rng.entropy_result(kinds, unseeded and "draw" in kinds)
        or rng.gives_new_seed(interp, api)
    ):
        result.data = entropy(interp, entries)
        derive(result, source)
    interp.listeners.tell(ResultEvent(event, result))
    if (pair := roles.get("gives-pair")) is not None and all_hold(args, pair.when):
        other = v.Obj(api, result.type, args, result.node)
        other.file, other.package = result.file, result.package
        return v.Items("t", [result, other])
    return result


def _generator_for(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """The generator that a function gives for a seed: the global one for None, or what it was given, if that is one."""
    role = interp.kb.role(api, "gives-generator")
    if role is None or args.star or args.dstar:
        return None
    kind, everyones = role.more
    seed = args.get(role.arg, role.pos) or v.NONE
    if v.is_none(seed):
        # An option that is left out may be given.
        return None if v.option_of(seed) else v.Ext(everyones)
    if isinstance(seed, v.Ext) and interp.kb.canonical(seed.name) == everyones:
        return seed
    if isinstance(seed, v.Obj) and seed.type == kind:
        return seed
    if isinstance(seed, v.Lit) or is_entropy(seed):
        return call_external(interp, kind, v.Args([seed]), node)
    return None


def _decorated(interp: Interp, name: str, args: v.Args, node: Any) -> v.Value:
    """A decorator that is called: with what it decorates, or with settings."""
    first = args.pos[0] if args.pos else None
    if isinstance(first, (v.Func, v.Cls)):
        first.decorated = (*first.decorated, v.Ext(name))
        return first
    return v.Obj(name, "", args, node if isinstance(node, m.Call) else None)


def _call_elsewhere(interp: Interp, api: str, args: v.Args, node: Any) -> None:
    """A library runs the functions that it is given, or objects of the classes, in processes that it starts."""

    def work() -> None:
        callbacks(interp, api, args, node)
        for value in args.pos:
            for one in v.alternatives(value):
                if isinstance(one, v.Cls):
                    _use_class(interp, one, _ANY, node, None)

    if first := processes.first_in(interp, args):
        alone = processes.leaves_script_out(interp, api)
        processes.in_new_process(interp, first, node, work, alone)
    else:
        work()


def _environments(interp: Interp, api: str, args: v.Args, node: Any) -> list[v.Value]:
    """The environments that a vector makes, or that a wrapper is put around."""
    afresh = environments.begins_with(interp, api, args, "spawns-environments")
    first = afresh or environments.begins_with(interp, api, args, "starts-environments")
    if not first:
        return environments.inside(interp, api, args, node)

    def work() -> list[v.Value]:
        found = environments.inside(interp, api, args, node)
        for one in found:
            for inst in environments.played(one):
                run_methods(interp, inst, node)
        return found

    begin = processes.in_new_process if afresh else processes.in_started
    return begin(interp, first, node, work)


def _class_of(interp: Interp, api: str, args: v.Args) -> str:
    """The class of what a library function gives, which an argument may decide."""
    for argument, made in interp.kb.results_given(api):
        given = args.get(argument)
        if given is not None and v.truth(given) is True:
            return made
    return parted.type_kept(interp, api, args) or interp.kb.result_type(api) or api


_CALL_OF_TYPE = "builtins.type.__call__"
_INIT, _OF_NEW = ".__init__", ".__new__"


def _handed_back(args: v.Args, moved: Runner) -> v.Value:
    """What a library function gives back of its arguments, on a device."""
    given = [args.get(one.arg, one.pos) or v.NONE for one in moved.entry.returns]
    for value in given:
        put_on_device(value, moved.device)
    return given[0] if len(given) == 1 else v.Items("t", given)


# Functions whose result carries on what their arguments know of entropy: conversions and hashes.
_DERIVING = ("array.", "base64.", "builtins.", "math.", "hashlib.", "struct.", "zlib.", "binascii.", "numpy.")


def callbacks(
    interp: Interp, api: str, args: v.Args, node: Any, owner: v.Value | None = None
) -> v.Value | None:
    """Functions handed to a library are run by it; so are the methods of objects it trains. Returns what a function
    gives that is handed to an executor."""
    if owner is not None and args.pos and isinstance(args.pos[0], v.Ext) and args.pos[0].name == HASHING:
        each = _each(interp, api, args, node, owner)
        if each is not None:
            interp.orders.decide(interp.orders.of(call(interp, args.pos[0], each, node)))
        return None
    kinds = set(map(type, args.values()))
    held = v.Mapping in kinds and _is_held(interp, api, owner)
    if (_CALLED.isdisjoint(kinds) and v.Mapping not in kinds) or not _calls_back(api):
        return None
    replacing.given(interp, api, args, owner)
    if _CALLED.isdisjoint(kinds) and not held:
        return None
    if interp.kb.role(api, "calls-at-use") is not None or interp.kb.role(api, estimators.ROLE) is not None:
        return None
    stage = api.rpartition(".")[2] in _PIPELINE_STAGES and not processes.is_pool(owner)
    pipeline = stage or interp.kb.role(api, "applies-to-items") is not None
    contexts = [*([CPU_CONTEXT] if pipeline else []), *_called_by(interp, api)]
    each = _each(interp, api, args, node, owner)
    run = partial(_called_back, interp, api, args, node, owner, each)
    name = f"{owner.type}{api[1:]}" if isinstance(owner, v.Obj) and api.startswith("*.") else api
    if stage and idle.is_dropped(interp, node, name):
        if interp.kb.role(name, "reads-later") is not None:
            # Python calls it for elements alone.
            return None
        contexts.append(NEVER_TAKEN)
    if each is not None:
        contexts.append(EACH_ELEMENT)
    of_any = interp.kb.by_role(f"?{api[1:]}" if api.startswith("*.") else api)
    if "reads-no-variables" in of_any:
        contexts.append(TAKEN_UP)
    if interp.kb.role(name, "keeps-functions") is not None:
        return None
    if interp.kb.role(name, "shows-structure") is not None:
        contexts.append(STRUCTURE)
    if "calls-later" in of_any or interp.kb.role(name, "calls-later") is not None:
        _put_off(interp, contexts, run)
        return None
    if "may-call" in of_any:
        interp.branch([lambda: None, lambda: _drop(run())])
        return None
    outer = interp.sorting
    if interp.orders.any and _is_keyed(interp, api, owner):
        contexts.append(SORT_KEY)
        interp.sorting = node
    if contexts:
        with interp.within(*contexts):
            given = run()
    elif isinstance(owner, v.Obj) and processes.is_pool(owner):
        elsewhere = processes.is_process_pool(owner)
        since = processes.shared_by_tasks(interp, owner, api, node)
        files = processes.files_of_tasks(interp, owner, api, args, node)
        with processes.sharing(interp, since, files, elsewhere):
            given = processes.in_workers(interp, owner, args, node, run) if elsewhere else run()
    else:
        given = run()
    interp.sorting = outer
    return given


def _called_back(
    interp: Interp, api: str, args: v.Args, node: Any, owner: v.Value | None, each: v.Args | None
) -> v.Value | None:
    with interp.within(CALLED_BACK):
        return _callbacks(interp, api, args, node, owner, each)


def _called_by(interp: Interp, api: str) -> tuple[str, ...]:
    """The context of what a library calls, where some entry asks for it."""
    library = f"{api.partition('.')[0]}.*"
    return (library,) if library in interp.kb.calling_libraries else ()


# Arguments that are called, or that hold what is: a library does nothing with others that the program would notice.
_CALLED = frozenset({v.Func, v.Partial, v.Inst, v.Items, v.AnyOf, v.Obj, v.Cls, v.Member})


# Builtins that call what they are given; the others (`callable`, `isinstance`, `print`) only look at it.
_CALLING_BUILTINS = frozenset(
    {"map", "filter", "sorted", "min", "max", "list", "tuple", "any", "all", "sum", "next"}
)
_LOOKING_ON = (
    "inspect.",
    "functools.",
    "typing.",
    "logging.",
    "warnings.",
    "pickle.",
    "weakref.",
    "types.",
    "dataclasses.",
)
_SHUFFLE = ".shuffle"
"""Ends the names of those that put what a list holds into another order."""


def _calls_back(api: str) -> bool:
    """Whether a library function may call the functions it is given."""
    head, _, last = api.partition(".")
    if head == "builtins":
        return last in _CALLING_BUILTINS
    return not api.startswith(_LOOKING_ON) and not api.endswith(_SHUFFLE)


def _drop(given: object) -> None:
    """Nothing reads what a handler gives."""


def _put_off(interp: Interp, contexts: list[str], run: Callable[[], object]) -> None:
    """Run what a library calls for elements when they are asked for, of which it is not followed by whom and where: when the
    program has seeded all that it seeds."""
    frame = interp.frame

    def later() -> None:
        interp.frame, kept = frame, interp.frame
        with interp.within(*contexts):
            run()
        interp.frame = kept

    interp.later(later)


# Stages of input pipelines run on the CPU, and no gradient is taken through them.
_PIPELINE_STAGES = frozenset({"map", "interleave", "flat_map", "filter", "from_generator", "set_transform"})


_LATER = frozenset({"*.submit", "*.apply_async"})
"""Methods of executors that start a call, whose result is given later."""


def _callbacks(
    interp: Interp, api: str, args: v.Args, node: Any, owner: v.Value | None, each: v.Args | None
) -> v.Value | None:
    found = runner(interp, owner) if owner is not None else None
    method = api.rpartition(".")[2]
    if api in _LATER and args.pos and isinstance(args.pos[0], (v.Func, v.Partial, v.Cls)):
        answer = call(interp, args.pos[0], processes.given_to_task(api, args) or _ANY, node)
        return interp.orders.remaining(answer, interp.orders.loops) if interp.orders.loops else answer
    if hands_over_training(interp, api, args):
        _train_elsewhere(interp, args, node)
    if interp.kb.call_is("fits-estimator", api):
        first, data = args.get("estimator", 0), v.Args(args.pos[1:3], {}, args.star, args.dstar)
        for one in flatten(first) if first is not None else ():
            if isinstance(one, v.Inst):
                _fit(interp, one, data, node)
            elif isinstance(one, v.Obj):
                _fit_library(interp, one, data, node)
    if each is not None and owner is None:
        if any(is_empty(interp, one) for one in args.pos[1:]):
            return None
        for one in v.alternatives(args.pos[0]):
            if (
                isinstance(one, (v.Func, v.Partial, v.Inst, v.Obj, v.Cls, v.Member))
                and getattr(one, "key", "") not in interp.decorated
            ):
                call(interp, one, each, node)
        return None
    if _is_held(interp, api, owner):
        _call_held(interp, args, node)
    made = runner_of(interp, api, args)
    for called in made.entry.calls if made is not None else ():
        for one in v.alternatives(args.get(called.arg, called.pos) or v.NONE):
            if isinstance(one, v.Inst):
                run_methods(interp, one, node)
    caller = found.entry if found is not None else None
    later: v.Value | None = None
    rounds = interp.kb.role(api, "repeats")
    carry = carried.carry_of(interp, rounds, args) if rounds is not None else None
    for value in args.values():
        for one in v.alternatives(value):
            if isinstance(one, v.Func) and one.key in interp.decorated:
                # A decorator gives a library what it wraps or registers; it does not run yet.
                continue
            for other in given_instead.functions(interp, one):
                given_instead.run_beside(interp, other.value, each or _ANY, node, other.option)
            if isinstance(value, v.AnyOf) and value.option and one is not value.values[0]:
                if isinstance(one, (v.Func, v.Partial)) and not _is_keyed(interp, api, owner):
                    given_instead.run_beside(interp, one, each or _ANY, node, value.option)
                    continue
            if isinstance(one, v.Cls) and processes.is_for_tasks(owner, api, value, args):
                # Workers make an object for each task.
                call(interp, one, processes.of_task(interp, owner, api, args), node)
            elif isinstance(one, (v.Func, v.Partial)):
                if _is_keyed(interp, api, owner):
                    _rank(interp, api, one, args, node, owner)
                    continue
                passed = processes.of_task(interp, owner, api, args) if value is args.get("func", 0) else _ANY
                passed = processes.launched_with(interp, api, value, args, owner) or passed
                if rounds is not None and carry is not None:
                    passed = carried.given_to_first(interp, rounds, carry)
                elif rounds is not None:
                    passed = carried.tensors_of_round(rounds, args) or passed
                given = call(interp, one, each or passed, node)
                if passed.pos and interp.orders.is_number_of_task(given):
                    later = v.Items("l", [given], True)
                if rounds is not None and carry is not None:
                    interp.listeners.tell(RoundEvent(carried.handed_on(rounds, given)))
                if is_managed(given):
                    # It enters the context manager of which it is given the function.
                    manage(interp, given, lambda _: None, node)
                _serve(interp, given, node)
                if interp.kb.role(api, "starts") is not None:
                    interp.listeners.tell(AnswerEvent(given))
                if each is not None:
                    order_cells.given(interp, node, given)
                if interp.orders.any and not api.startswith("builtins."):
                    interp.orders.decide(interp.orders.of(given))
            elif isinstance(one, v.Member) and each is not None:
                call_member(interp, one, each, node)
            elif isinstance(one, (v.Inst, v.Obj, v.Cls)) and _serve(interp, one, node):
                continue
            elif isinstance(one, v.Obj) and estimators.is_estimator(one):
                estimators.handed_over(interp, one, node)
            elif isinstance(one, v.Obj) and one._attrs is not None and commands.HANDLERS in one.attrs:
                if owner is not None:
                    commands.include(owner, one)
                elif not interp.importing:
                    commands.serve(interp, one)
            elif interp.kb.call_is("runs-methods", api) and (insts := list(environments.played(one))):
                for inst in insts:
                    if made is None or not waits_for(interp, inst, made.entry, method):
                        run_methods(interp, inst, node, caller, method)
            elif isinstance(one, v.Obj) and interp.kb.call_is("runs-methods", api):
                for batches in given_batches(interp, one):
                    interp.listeners.tell(IterationEvent(batches))
                for inst in _held_callbacks(interp, one):
                    run_methods(interp, inst, node, caller, method)
            elif (
                isinstance(one, v.Inst)
                and interp.kb.call_is("calls-objects", api)
                and (one.cls.find("__call__") is not None or one.cls.find("forward") is not None)
            ):
                call_instance(interp, one, v.Args(star=True, dstar=True), node)
            elif isinstance(one, v.Items):
                for held in flatten(one):
                    if isinstance(held, (v.Cls, v.Inst)):
                        # Routes, each with the class that answers there; models, which a server calls.
                        _serve(interp, held, node)
                started = list(commands.started_in(interp, api, one))
                if started:
                    programs = [partial(commands.run_started, interp, func) for func in started]
                    interp.later(partial(commands.run_commands, interp, (), programs))
                for elt in one.elts:
                    if elt in started:
                        continue
                    if isinstance(elt, (v.Func, v.Partial)):
                        call(interp, elt, v.Args(star=True, dstar=True), node)
                    elif (
                        isinstance(elt, v.Inst)
                        and interp.kb.call_is("runs-methods", api)
                        and _is_called_back(interp, elt)
                        and (made is None or not waits_for(interp, elt, made.entry))
                    ):
                        run_methods(interp, elt, node, caller, method)
                    elif isinstance(elt, v.Obj) and interp.kb.call_is("runs-methods", api):
                        for inst in _held_callbacks(interp, elt):
                            run_methods(interp, inst, node, caller, method)
    return later


def _is_held(interp: Interp, api: str, owner: v.Value | None) -> bool:
    """Whether a method calls functions in mappings, and methods of objects, that it is given."""
    return owner is not None and interp.kb.role(f"?{api[1:]}", "calls-held") is not None


def _call_held(interp: Interp, args: v.Args, node: Any) -> None:
    """Call functions in mappings, as in ``compile(loss={"boxes": distance})``, and methods of objects."""
    for value in args.values():
        for one in v.alternatives(value):
            held = flatten(one)
            for inst in held:
                if isinstance(inst, v.Inst):
                    run_methods(interp, inst, node)
            for func in held if isinstance(one, v.Mapping) else ():
                if isinstance(func, (v.Func, v.Partial)):
                    given = call(interp, func, _ANY, node)
                    if interp.orders.any:
                        interp.orders.decide(interp.orders.of(given))


def _each(interp: Interp, api: str, args: v.Args, node: Any, owner: v.Value | None) -> v.Args | None:
    """What a function is called with that a call runs for each element of something."""
    kind = owner.type if isinstance(owner, v.Obj) else ""
    if isinstance(owner, v.Member) and isinstance(owner.owner, v.Obj):
        # ``table.column`` is ``table["column"]``.
        kind = interp.kb.result_type(f"{owner.owner.type}.column[]")
    name = api if owner is None else f"{kind}{api[1:]}" if kind else ""
    if args.star or interp.kb.role(name, "calls-for-each") is None:
        return None
    if owner is None:
        return v.Args([element(interp, one) for one in args.pos[1:]]) if len(args.pos) > 1 else None
    part = interp.kb.result_type(f"{owner.type}.part[]") if isinstance(owner, v.Obj) else ""
    if part:
        return v.Args([v.Obj(part, part), *args.pos[1:]], args.kw)
    if kind_of_elements(interp, owner) == TEXT:
        return v.Args([v.Obj("builtins.str")])
    return v.Args([columns.cell()]) if columns.is_column(owner) else None


def _serve(interp: Interp, given: v.Value, node: Any) -> bool:
    """Run the methods of what a library is handed to call them: an object of a class that is there for nothing else, what
    one of its methods makes of it, or the class, of which the library makes objects. Whether there is such an object."""
    served = False
    for one in v.alternatives(given):
        inst = one.owner if isinstance(one, v.Obj) else one
        cls = inst.cls if isinstance(inst, v.Inst) else inst
        if not isinstance(cls, v.Cls) or not any(
            interp.kb.role(base, "serves") is not None for base in cls.external_bases()
        ):
            continue
        served = True
        if isinstance(inst, v.Inst):
            run_methods(interp, inst, node)
        else:
            interp.later(partial(answer_by, interp, cls, node))
    return served


def answer_by(interp: Interp, cls: v.Cls, node: Any) -> None:
    """A server or another framework makes an object of a class, calls its methods and hands on what they give."""
    made = call(interp, cls, _ANY, node)
    if isinstance(made, v.Inst):
        run_methods(interp, made, node)
        interp.listeners.tell(AnswerEvent(v.UNKNOWN))


def _is_called_back(interp: Interp, inst: v.Inst) -> bool:
    """Whether an object is of a class whose methods a trainer calls that is given a list of such objects."""
    return any(interp.kb.role(base, "called-back") is not None for base in inst.cls.external_bases())


def _held_callbacks(interp: Interp, given: v.Obj) -> list[v.Inst]:
    """The objects of the program that a library calls which a callback of it was made with: ``CallbackList([one])``."""
    held = [one for value in given.args.values() for one in flatten(value)]
    return [one for one in held if isinstance(one, v.Inst) and _is_called_back(interp, one)]


def _is_keyed(interp: Interp, api: str, owner: v.Value | None) -> bool:
    """Whether a call sorts elements, or chooses among them, by what a function gives for each."""
    entry = interp.kb.order(api, owner is not None)
    return entry is not None and bool(entry.key)


def _rank(
    interp: Interp, api: str, key: v.Func | v.Partial, args: v.Args, node: Any, owner: v.Value | None
) -> None:
    """The key function of a sort is called for its elements: it may give an identifier, or what several of them give."""
    entry = interp.kb.order(api, owner is not None)
    sequence = owner if owner is not None or entry is None else args.get("", entry.iterated)
    one = element(interp, sequence) if isinstance(sequence, v.Items) and sequence.elts else None
    given = call(interp, key, v.Args([one]) if one is not None else _ANY, node)
    if ties(interp, given):
        interp.orders.tied.add(id(node))
    ranked = leading(given)
    if ranked is not None:
        interp.orders.ranked[id(node)] = ranked


_ANY = v.Args(star=True, dstar=True)


def hands_over_training(interp: RunView, api: str, args: v.Args) -> bool:
    """Whether a call is given a model, an optimizer and a loader: whoever gets these trains. A function of a library of
    which nothing is known may take them out of the containers that it is given."""
    kinds = set(map(type, args.values()))
    contained = not kinds.isdisjoint((v.Items, v.Mapping)) and rng.of_unknown_library(interp.kb, api)
    if len(args.values()) < 3 and not contained and v.AnyOf not in kinds:
        return False
    given = handed_over(args) if contained else list(_alternatives(args))
    return len(given) > 2 and _has_optimizer(given) and _has_loader(given) and has_model(interp, given)


def _alternatives(args: v.Args) -> Iterator[v.Value]:
    return (one for value in args.values() for one in v.alternatives(value))


def can_train(interp: RunView, args: v.Args, method: str) -> bool:
    """Whether a call is given what an object that it makes trains with: an optimizer, a model and a loader, or a loader
    alone if the object is then fitted."""
    given = handed_over(args)
    if _has_optimizer(given):
        return True
    return _has_loader(given) and (method.startswith("fit") or has_model(interp, given))


def _has_optimizer(given: list[v.Value]) -> bool:
    return any(isinstance(one, v.Obj) and one.api.startswith("torch.optim.") for one in given)


def _has_loader(given: list[v.Value]) -> bool:
    return any(isinstance(one, v.Obj) and one.type == LOADER for one in given)


def has_model(interp: RunView, given: Iterable[v.Value | None]) -> bool:
    """Whether one of several values is a module that is a model, or a part of one."""
    return any(
        (isinstance(one, v.Inst) and one.cls.find("forward") is not None)
        or (isinstance(one, v.Obj) and is_module(interp, one))
        for one in given
    )


def _train_elsewhere(interp: Interp, args: v.Args, node: Any) -> None:
    """A training loop in a library: it iterates the loaders, and calls the model and the loss."""
    given = handed_over(args)
    for one in given:
        if isinstance(one, v.Obj) and one.type == LOADER:
            interp.listeners.tell(IterationEvent(one))
    for one in given:
        if isinstance(one, v.Inst) and one.cls.find("forward") is not None:
            set_training(interp, one, None)
            call_instance(interp, one, v.Args(star=True, dstar=True), node)
        elif isinstance(one, v.Obj) and one.api.startswith(("torch.nn.", "torchvision.models")):
            call_object(interp, one, v.Args(star=True), node)


def owner_types(interp: RunView, owner: v.Value) -> list[str]:
    """Canonical names of the library classes an object is known to be of; ``?`` for unknown."""
    if isinstance(owner, v.Obj):
        known = unknown_models.learned(interp.kb, owner)
        return [owner.type if known is None else str(known.value)]
    if isinstance(owner, v.Inst):
        return [interp.kb.canonical(base) for base in owner.cls.external_bases()]
    if isinstance(owner, v.Cls):
        return [interp.kb.canonical(base) for base in owner.external_bases()]
    if isinstance(owner, v.Super):
        mro = owner.cls.mro()
        return [interp.kb.canonical(b.name) for cls in mro for b in cls.bases if isinstance(b, v.Ext)]
    if isinstance(owner, v.Items):
        return [{"t": "tuple", "l": "list", "s": "set"}[owner.kind]]
    if isinstance(owner, v.Mapping):
        return ["dict"]
    if isinstance(owner, v.Lit):
        return [type(owner.value).__name__]
    return ["?"]


def _receiver(owner: v.Value) -> v.Value:
    return owner.receiver if isinstance(owner, v.Super) else owner


def _package(interp: RunView, owner: v.Value) -> str:
    """The package from which the program imports the class of an object; empty for unknown."""
    if isinstance(owner, v.Obj):
        return unknown_models.package(interp.kb, owner)
    if isinstance(owner, v.Inst):
        bases = owner.cls.external_bases()
    elif isinstance(owner, v.Super):
        bases = [b.name for cls in owner.cls.mro() for b in cls.bases if isinstance(b, v.Ext)]
    else:
        return ""
    return bases[0].partition(".")[0] if bases else ""


def call_member(interp: Interp, member: v.Member, args: v.Args, node: Any) -> v.Value:
    """A method that no project code defines."""
    owner, name = member.owner, member.name
    if isinstance(owner, v.Func) and name == "register":
        made = dispatching.register(interp, owner, args, node)
        if made is not None:
            return made
    if isinstance(owner, v.Super) and isinstance(owner.receiver, v.Mapping):
        return own_dicts.inherited(interp, owner.receiver, name, args, node)
    if (elsewhere := processes.remote(interp, member, args, node)) is not None:
        return elsewhere
    if isinstance(owner, v.Super) and name == "__call__" and isinstance(owner.receiver, v.Cls):
        return instantiate(interp, owner.receiver, args, node)
    cls = _class_to_make(interp, name, args) if isinstance(owner, (v.Super, v.Cls)) else None
    if cls is not None:
        return _allocated(interp, cls, args.rest(), node)
    if isinstance(owner, v.Super) and name == "__init__":
        for base in owner_types(interp, owner)[:1]:
            built = owner.receiver if isinstance(owner.receiver, v.Inst) else None
            made = call_external(interp, base, args, node, built)
            if built is not None:
                keep_base(interp, built, made)
                _call_when_made(interp, built, base, node)
        return v.NONE
    if isinstance(owner, v.Super) and name in INHERITED_USES and isinstance(owner.receiver, v.Inst):
        base = owner.receiver.attrs.get(BASE)
        if isinstance(base, v.Obj) and base.type == LOADER and name == "__iter__":
            # It is iterated in its own way: what makes its items may run in workers.
            interp.listeners.tell(IterationEvent(base))
            return base
        use_base(interp, owner.receiver, node)
    if isinstance(owner, v.Super) and name in ("forward", "__call__") and isinstance(owner.receiver, v.Inst):
        run_when_called(interp, owner.receiver, node)
    container = container_of(owner.receiver) if isinstance(owner, v.Super) and name == "forward" else None
    if container is not None and container.api == SEQUENTIAL:
        return call_object(interp, container, args, node)
    inherited = layer_behind(_receiver(owner)) if name in ("forward", "__call__") else None
    if inherited is not None:
        return call_object(interp, inherited, args, node)
    if name == "forward" and isinstance(owner, v.Obj) and is_module(interp, owner):
        return call_object(interp, owner, args, node)
    if name == "forward" and isinstance(owner, v.Super):
        _draw_as_base(interp, _receiver(owner), args, node)
    if isinstance(owner, v.Obj) and owner.type == owner.api:
        unknown_models.learn(interp, owner, name, args, node)
    types = owner_types(interp, owner) or ["object"]
    if isinstance(owner, v.Obj) and stands_for_engine(interp, owner, name):
        types = [MODULE]
    result = _call_member(interp, owner, name, types, args, node)
    return interp.orders.call(interp, interp.kb.canonical(f"{types[0]}.{name}"), args, node, result, owner)


def _call_when_made(interp: Interp, inst: v.Inst, base: str, node: Any) -> None:
    """The constructor of a class of a library calls methods of the object, unless files show that they ran before."""
    role = interp.kb.role(base, "calls-when-made")
    for name in role.more if role is not None else ():
        if isinstance(inst.cls.find(name), v.Func):
            interp.branch([_nothing, partial(_call_method, interp, inst, name, node)])


def _call_method(interp: Interp, inst: v.Inst, name: str, node: Any) -> None:
    found = inst.cls.find(name)
    if found is not None:
        call(interp, bind_method(interp, found, inst, inst.cls, node), v.NO_ARGS, node)


class _Method(NamedTuple):
    """What the knowledge base says of a method by the types of its receiver and its name: the canonical name, the
    random numbers that it draws, all names that it may go by, the models that may stand for it, and whether it
    draws what a call of the receiver draws."""

    api: str
    entries: tuple[RngEntry, ...]
    names: tuple[str, ...]
    models: tuple[MethodModel, ...]
    uses: bool
    applies: RoleEntry | None
    """It runs a method of the receiver's class and gives what that gives,"""
    initializes: RoleEntry | None
    """or weights."""
    layers: RoleEntry | None
    """It calls the layers of its receiver in a mode,"""
    hooks: RoleEntry | None
    """gives its receiver a function to call,"""
    runs: RoleEntry | None
    """or methods of the receiver's class,"""
    steps: RoleEntry | None
    """or such methods with the model that the receiver was made with,"""
    on_class: RoleEntry | None
    """or a method of a class that is its receiver."""
    seeds: RoleEntry | None
    """It seeds a generator that its receiver makes itself."""
    keeps: RoleEntry | None
    """It keeps the arguments of the constructor in its receiver,"""
    keeps_given: RoleEntry | None
    """or one of those that it is given."""
    something: bool
    """What it gives is never None."""


def _method(interp: Interp, types: tuple[str, ...], name: str) -> _Method:
    kb = interp.kb
    known: _Method | None = kb.methods_known.get((types, name))
    if known is not None:
        return known
    api = f"{types[0]}.{name}"
    entries: tuple[RngEntry, ...] = ()
    for one in types:
        entries = kb.rng(f"{one}.{name}")
        if entries:
            api = f"{one}.{name}"
            break
    if not entries:
        entries = tuple(e for e in kb.rng_methods(name) if _may_be_method_of(types, e.apis, name))
    names = tuple(kb.canonical(one) for one in dict.fromkeys(f"{t}.{name}" for t in types))
    models = tuple(
        METHOD_MODELS[key] for key in (*(f"{t}.{name}" for t in types), f"*.{name}") if key in METHOD_MODELS
    )
    if any(name in entry.hands_back for one in types for entry in kb.runners(one)):
        models = (handed_back, *models)
    patterns = {pattern for one in types for entry in kb.rng(one) for pattern in entry.used_by}
    uses = any(fnmatchcase(name, pattern) for pattern in patterns)
    applies = next((role for one in names if (role := kb.role(one, "applies")) is not None), None)
    initializes = next((role for one in names if (role := kb.role(one, "initializes")) is not None), None)
    layers = next(
        (role for one in names for kind in _IN_MODE if (role := kb.role(one, kind)) is not None), None
    )
    hooks = kb.role(f"?.{name}", "registers-hook")
    runs = next((role for one in names if (role := kb.role(one, "calls-methods")) is not None), None)
    steps = next((role for one in names if (role := kb.role(one, "calls-with-model")) is not None), None)
    on_class = next((role for one in names if (role := kb.role(one, "calls-on-class")) is not None), None)
    seeds = next((role for one in names if (role := kb.role(one, "seeds-attribute")) is not None), None)
    keeps = next((role for one in names if (role := kb.role(one, "keeps-constructor")) is not None), None)
    given = next((role for one in names if (role := kb.role(one, "keeps-given")) is not None), None)
    something = any(kb.role(one, "gives-something") is not None for one in names)
    known = _Method(
        kb.canonical(api),
        entries,
        names,
        models,
        uses,
        applies,
        initializes,
        layers,
        hooks,
        runs,
        steps,
        on_class,
        seeds,
        keeps,
        given,
        something,
    )
    kb.methods_known[types, name] = known
    return known


_IN_MODE: tuple[Role, ...] = ("calls-in-training", "calls-in-inference")


def _call_member(
    interp: Interp, owner: v.Value, name: str, types: list[str], args: v.Args, node: Any
) -> v.Value:
    method = _method(interp, tuple(types), name)
    entries = method.entries
    event = CallEvent(method.api, args, node, owner)
    optimizers.take_step(owner, name, args)
    interp.listeners.tell_method(event, name, method.names)
    started = interp.kb.role(method.api, "configured")
    if started is not None:
        experiments.start(interp, owner, started, args, entries, node)
    draws = bool(entries) and started is None
    unseeded = draws and rng.apply(interp, entries, args, node, package=_package(interp, owner), owner=owner)
    rng.use_given(interp, method.api, args, node)
    if not entries:
        rng.may_seed(interp, name, args, node, method=True)
    experiments.configure(interp, method.api, owner, args)
    if name in inputs.MOVING:
        inputs.follow(interp, owner, name, args)
    inputs.may_move(interp, owner, name)
    if name == "update" and isinstance(owner, v.Obj) and owner.api == tensors.BATCH:
        collated.update(owner, args.values())
    through = method.applies or method.initializes
    if through is not None and isinstance(owner, v.Inst):
        given = functional_modules.run(interp, owner, through, args, node)
        if given is not None and method.applies is not None:
            return given
    if method.runs is not None and isinstance(owner, v.Inst):
        given = own_methods.run(interp, owner, method.runs, args, node)
        if given is not None:
            return given
    elif method.runs is not None and isinstance(owner, v.Cls):
        # The library makes the object, and gives something else.
        own_methods.run(interp, blank_instance(interp, owner), method.runs, args, node)
    if (of_argument := interp.kb.role(method.api, "calls-method-of")) is not None:
        own_methods.run_of_argument(interp, of_argument, args, node, passes_on=True)
    if method.steps is not None and isinstance(owner, v.Inst):
        own_methods.run_with_model(interp, owner, method.steps, node)
    if isinstance(owner, (v.Obj, v.Inst)) and (
        name in interp.kb.training_methods or name in interp.kb.evaluating_methods
    ):
        trainer = runner(interp, owner)
        if trainer is not None:
            before = given_before(owner, args, trainer.entry)
            for inst in (*waiting(interp, owner, name, trainer.entry), *before):
                run_methods(interp, inst, node, trainer.entry, name)
    if name in interp.kb.adding_methods and isinstance(owner, (v.Obj, v.Inst)) and args.pos:
        trainer = runner(interp, owner)
        if trainer is not None and name in trainer.entry.adds:
            for one in v.alternatives(args.pos[0]):
                added = call(interp, one, v.NO_ARGS, node) if isinstance(one, v.Cls) else one
                if isinstance(added, v.Inst):
                    join(owner, added)
    if method.on_class is not None and isinstance(owner, v.Cls):
        given = own_gradients.apply(interp, owner, method.on_class, args, node)
        if given is not None:
            return given
    if method.seeds is not None:
        environments.seed_attribute(interp, method.seeds, _receiver(owner), args)
    if method.keeps is not None:
        kept = kept_arguments.keep(interp, _receiver(owner), method.keeps, args)
        if kept is not None:
            return kept
    if method.keeps_given is not None:
        kept_arguments.keep_given(interp, _receiver(owner), method.keeps_given, args, node)
    if method.hooks is not None:
        handle = hooks.register(interp, owner, method.hooks, args, node)
        if handle is not None:
            return handle
    mode = layer_modes.mode_of(method.layers, args) if method.layers is not None else ""
    if mode and isinstance(owner, v.Obj):
        layer_modes.run_model(interp, owner, mode, node)
    for model in method.models:
        result = model(interp, owner, name, args, node)
        if result is not None:
            return result
    role = interp.kb.role(method.api, "wraps")
    if role is not None:
        # The result acts like the argument.
        wrapped = args.get(role.arg, role.pos)
        if isinstance(wrapped, (v.Inst, v.Obj, v.AnyOf)):
            return wrapped
    kept = functional_modules.keep_fields(interp, method.api, owner, args, node)
    kept = kept or functional_modules.restore(interp, method.api, args, node)
    if kept is not None:
        return kept
    load_file(interp, method.api, args, owner)
    receiver = _receiver(owner)
    if isinstance(receiver, (v.Obj, v.Inst)) and environments.INSIDE in receiver.attrs:
        environments.hand_on(interp, receiver, name, args, node)
    if method.uses and isinstance(owner, v.Obj):
        use_object(interp, owner, v.NO_ARGS, node)
    if types == ["?"] or isinstance(owner, v.Obj):
        guess_method(interp, owner, name, args, node)
    called_when_done = name == "add_done_callback" and processes.when_done(
        interp, owner, name, args, None, node
    )
    later = None if called_when_done else callbacks(interp, f"*.{name}", args, node, owner)
    if name == "apply_async":
        processes.when_done(interp, owner, name, args, later, node)
    estimators.used(interp, owner, name, node)
    if isinstance(owner, v.Obj) and name.startswith("fit") and interp.kb.call_is("fits-parts", owner.api):
        _fit_parts(interp, owner, args, node)
    if isinstance(owner, v.Inst) and (
        mode or (interp.kb.call_is("runs-methods", f"*.{name}") and may_inherit(interp, owner.cls))
    ):
        trainer = runner(interp, owner)
        run_methods(interp, owner, node, trainer.entry if trainer is not None else None, name, mode)
    if isinstance(owner, v.Obj) and any(name in entry.chained for entry in interp.kb.runners(owner.api)):
        return owner
    if isinstance(owner, v.Cls):
        restored = _restored(interp, owner, types, name, args, node)
        if restored is not None:
            return restored
    made = interp.kb.result_type(event.api) or event.api
    result_obj = v.Obj(event.api, made, args, node if isinstance(node, m.Call) else None)
    result_obj.file = interp.frame.file
    # A lookup, as in `frame.get(column)`, may find nothing.
    result_obj.something = method.something or (
        isinstance(owner, v.Obj) and owner.something and name != "get"
    )
    if (
        not isinstance(owner, v.Obj)
        or owner.type != TENSOR
        or name == "size"
        or name in dimension_tests.COUNTING
    ):
        # A size is that of its tensor, and so is a number of dimensions.
        result_obj.owner = owner
    if isinstance(owner, v.Obj) and owner.form is not None and name in _HELD:
        # One of the tensors in a container, such as a loaded state dict.
        held = tensors.make(tensors.BATCH, owner.form, likely=True)
        if owner.api in tensors.LOADING and args.pos and isinstance(args.pos[0], v.Lit):
            tensors.loaded_item(held, args.pos[0], owner)
        if "@owner" in owner.attrs:
            held.attrs[PART_OF] = owner
        return held
    if later is not None:
        result_obj.attrs[GIVEN_LATER] = later
    if name == "state_dict":
        result_obj.attrs["@owner"] = owner
        result_obj.start_with(tensors.of_method(interp, v.UNKNOWN, name, args))
    elif name in ("parameters", "named_parameters"):
        result_obj.attrs[tensors.MODULE_OF] = owner
    if isinstance(owner, v.Obj) and owner.type == TENSOR and result_obj.type == event.api:
        result_obj.type = TENSOR
        result_obj.likely = owner.likely
        result_obj.start_with(tensors.of_method(interp, owner, name, args))
        collated.move(owner, result_obj)
        if name.endswith("_"):
            tensors.write(interp, owner, name, *args.values())
    elif (
        name in _CERTAIN_METHODS or _moves_loaded(owner, name) or tensors.tells(interp, owner, name, args)
    ) and (
        # Of unknown class, or what a method of something unknown gives; no class but that of tensors takes such arguments.
        types[0].startswith("?")
        or (isinstance(owner, v.Obj) and owner.form is not None)
        or tensors.takes_only(interp, name, args)
    ):
        result_obj.start_with(tensors.of_method(interp, owner, name, args))
    kinds: set[str] = {entry.kind for entry in entries}
    if name == "update" and isinstance(owner, v.Obj) and owner.api.startswith(_DERIVING):
        # What a digest is computed from.
        if any(map(differing, args.values())):
            owner.data = entropy(interp)
    source = differing(owner) if isinstance(owner, v.Obj) else None
    if source is not None or rng.entropy_result(kinds, unseeded and "draw" in kinds):
        result_obj.data = entropy(interp, entries)
        derive(result_obj, source)
    interp.listeners.tell(ResultEvent(event, result_obj))
    return result_obj


def _restored(
    interp: Interp, cls: v.Cls, types: list[str], name: str, args: v.Args, node: Any
) -> v.Value | None:
    """An instance of a model of the project that a method of the library's class makes with the weights of a checkpoint."""
    roles = (interp.kb.role(one, "restores") for one in types)
    role = next((one for one in roles if one is not None and name in one.more), None)
    init = cls.find("__init__")
    if role is None or not isinstance(init, v.Func) or cls.find("forward") is None:
        return None
    params = [one for one in init.fn.params[1:] if one.kind in ("a", "k")]
    # The configuration is that of the checkpoint.
    loaded = v.Obj(f"{types[0]}.{role.arg}.{name}", f"{types[0]}.{role.arg}", args)
    placed = [args.kw.get(role.arg, loaded), *args.pos[1:]]
    ordinary = [one.name for one in params if one.kind == "a"]
    given = dict(zip(ordinary, placed, strict=False))
    for one in params:
        if one.name not in given and (one.name in args.kw or one.default is None or args.dstar):
            given[one.name] = args.kw.get(one.name, v.UNKNOWN)
    with interp.within(RESTORED):
        made = instantiate(interp, cls, v.Args(kw=given), node)
    if isinstance(made, v.Inst):
        # It is put into evaluation mode.
        set_training(interp, made, v.FALSE)
    return made


def _fit_parts(interp: Interp, whole: v.Obj, args: v.Args, node: Any) -> None:
    """A pipeline, a search or an ensemble is fitted: so are the project's own estimators that it holds."""
    for given in whole.args.values():
        for one in flatten(given):
            if isinstance(one, v.Inst):
                _fit(interp, one, args, node)
            elif isinstance(one, v.Obj) and one is not whole:
                _fit_library(interp, one, args, node)


def _fit_library(interp: Interp, one: v.Obj, args: v.Args, node: Any) -> None:
    """An estimator of a library is fitted."""
    found = runner(interp, one)
    if interp.kb.call_is("fits-parts", one.api):
        _fit_parts(interp, one, args, node)
    elif found is not None and _FIT in found.entry.trains:
        call_member(interp, v.Member(one, _FIT), args, node)


_FIT = "fit"


def _fit(interp: Interp, estimator: v.Inst, args: v.Args, node: Any) -> None:
    for name in ("fit", "transform", "predict"):
        method = estimator.cls.find(name)
        if isinstance(method, v.Func):
            given = args if name == "fit" else v.Args(star=True)
            call(interp, method.bind(estimator), given, node)


_HELD = frozenset({"get", "pop", "setdefault", "values", "items"})
"""Methods of a container that give what it holds."""

_WORKERS = frozenset({LOADER_WORKER})


def _moves_loaded(owner: v.Value, name: str) -> bool:
    """Whether a method moves what a file holds: a tensor, or a model."""
    return name == "to" and isinstance(owner, v.Obj) and owner.api in tensors.LOADING


# Methods that only tensors have: what they give is known whatever the receiver.
_CERTAIN_METHODS = frozenset(
    {
        "detach",
        "cuda",
        "cpu",
        "long",
        "float",
        "half",
        "double",
        "bfloat16",
        "argmax",
        "argsort",
        "unsqueeze",
        "requires_grad_",
    }
)


def _may_be_method_of(types: tuple[str, ...], apis: list[str], name: str) -> bool:
    """Whether a method entry may be meant on a receiver of these types: an unknown receiver, or a match."""
    if types == ("?",):
        # Methods with a trailing underscore or a telling name are a tensor's wherever they stand.
        return name.endswith("_") or name in ("manual_seed",)
    owners = {a.rpartition(".")[0] for a in apis if a.rpartition(".")[2] == name}
    return any(t in owners for t in types)


def guess_method(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> None:
    """An unknown receiver's method: if few project classes define it, any of them may be meant."""
    if name in COMMON_METHODS or name.startswith("__") or interp.stopped:
        return
    candidates = interp.methods_named(name)
    if len(candidates) > MAX_GUESSES:
        return
    # What a decorator makes of a method may take other arguments.
    candidates = [
        (cls, func)
        for cls, func in candidates
        if not all(isinstance(one, v.Ext) and one.name in BINDING for one in func.decorated)
        or accepts(bind_method(interp, func, cls, cls, node), args)
    ]
    if not candidates:
        return
    runs: list[Callable[[], None]] = []
    for cls, func in candidates:

        def run(cls: v.Cls = cls, func: v.Func = func) -> None:
            bound = func
            if not is_decorated(func, STATIC):
                bound = func.bind(cls if is_decorated(func, OF_CLASS) else blank_instance(interp, cls))
            call_function(interp, bound, args, node)

        runs.append(run)
    interp.guessing += 1
    interp.may_happen(runs)
    interp.guessing -= 1


COMMON_METHODS = frozenset(
    [
        "get",
        "items",
        "keys",
        "values",
        "append",
        "extend",
        "update",
        "pop",
        "copy",
        "add",
        "remove",
        "insert",
        "join",
        "split",
        "strip",
        "format",
        "replace",
        "lower",
        "upper",
        "startswith",
        "endswith",
        "read",
        "write",
        "close",
        "open",
        "load",
        "save",
        "dump",
        "step",
        "train",
        "eval",
        "to",
        "cuda",
        "cpu",
        "forward",
        "backward",
        "fit",
        "run",
        "reset",
        "zero_grad",
        "parameters",
        "named_parameters",
        "state_dict",
        "load_state_dict",
        "size",
        "view",
        "reshape",
        "mean",
        "sum",
        "max",
        "min",
        "log",
        "exp",
        "item",
        "detach",
        "numpy",
        "float",
        "half",
        "double",
        "long",
        "int",
        "bool",
        "permute",
        "transpose",
        "squeeze",
        "unsqueeze",
        "contiguous",
        "clone",
        "repeat",
        "expand",
        "apply",
        "map",
        "filter",
        "sort",
        "index",
        "count",
        "find",
        "info",
        "debug",
        "warning",
        "error",
        "print_help",
        "parse_args",
        "add_argument",
        "start",
        "stop",
        "wait",
        "send",
        "recv",
        "put",
        "next",
        "reset_parameters",
        "__call__",
        "build",
        "predict",
        "evaluate",
        "compile",
        "summary",
        "call",
        "shape",
        "dtype",
        "device",
        "type",
        "norm",
        "std",
        "var",
        "flatten",
        "render",
        "sample",
        "seed",
        "action_space",
    ]
)


def call_object(interp: Interp, obj: v.Obj, args: v.Args, node: Any) -> v.Value:
    """Calling a library object: a layer, a transform, a compiled function."""
    if is_entropy(obj) and not args.pos:
        # `value.hex()` where `value.hex` is a field of other kinds of values.
        return obj
    if obj.api in GRADIENT_MODES and len(args.pos) == 1 and isinstance(args.pos[0], v.Func):
        # `torch.no_grad()(function)` runs nothing yet.
        function = args.pos[0]
        wrapped = function.bind(function.receiver)
        wrapped.decorated = (*function.decorated, obj)
        return wrapped
    interp.calls_objects = True
    return hooks.call_with(interp, obj, args, node, lambda given: _call_library(interp, obj, given, node))


def _call_library(interp: Interp, obj: v.Obj, args: v.Args, node: Any) -> v.Value:
    if obj.api.startswith("torch.nn.") and tensors.frozen(obj):
        with interp.within(FROZEN):
            return _call_object(interp, obj, args, node)
    called_by = _called_by(interp, obj.api)
    if called_by:
        with interp.within(*called_by):
            return _call_object(interp, obj, args, node)
    return _call_object(interp, obj, args, node)


def _for_texts(interp: Interp, obj: v.Obj, args: v.Args, node: Any) -> v.Value | None:
    """What a function gives that is called for each element of arrays, of which some hold texts; None for other objects."""
    role = interp.kb.role(obj.api, "vectorizes")
    function = obj.args.get(role.arg, role.pos) if role is not None else None
    if not isinstance(function, (v.Func, v.Partial, v.Ext)):
        return None
    texts = [kind_of_elements(interp, one) == TEXT for one in args.pos]
    if not any(texts):
        return None
    each: list[v.Value] = [
        v.Obj("builtins.str") if text else v.UNKNOWN for text, one in zip(texts, args.pos, strict=True)
    ]
    given = call(interp, function, v.Args(each), node)
    result = v.Obj(f"{obj.api}.__call__", "", args, node if isinstance(node, m.Call) else None)
    result.order = interp.orders.of(given)
    return result


_PLAIN_METHODS = frozenset({*dir(list), *dir(set)})
_TEXT_METHODS = frozenset({*dir(str), *dir(bytes)})
"""Methods of what a file may hold beside tensors and models. Some models encode tensors, and texts encode themselves."""


def _is_tensor(value: v.Value) -> bool:
    return isinstance(value, v.Obj) and value.type == TENSOR


def _given_back(role: RoleEntry | None, args: v.Args) -> v.Value | None:
    """The argument that a call with this role gives back as it is: none for other calls."""
    return args.get(role.arg, role.pos) if role is not None else None


def _call_object(interp: Interp, obj: v.Obj, args: v.Args, node: Any) -> v.Value:
    if obj.api == TYPE and obj.args.pos and (kind := kind_of_container(obj.args.pos[0])):
        return call_external(interp, kind, args, node)
    if obj.api == tensors.BATCH and isinstance(node, m.Call) and isinstance(node.func, (m.Name, m.Attr)):
        # `batch.name` is what is in it by that name until it is called.
        dotted = node.func.id if isinstance(node.func, m.Name) else node.func.name
        name = dotted.rpartition(".")[2]
        plain = name in _TEXT_METHODS and not any(map(_is_tensor, args.values()))
        if plain or name in _PLAIN_METHODS or interp.kb.role(f"{TENSOR}.{name}", "views") is not None:
            return call_member(interp, v.Member(obj, name), args, node)
        inputs.may_move(interp, obj, name)
    args = inputs.moved(interp, obj, args, node)
    interp.listeners.tell(ObjectCallEvent(obj, args, node))
    if commands.COMMANDS in obj.attrs:
        commands.start(interp, obj)
    record = records.make(interp, obj, args, node)
    if record is None:
        record = _given_back(interp.kb.role(f"{obj.api}.__call__", "gives-back"), args)
    if record is not None:
        return record
    role = interp.kb.role(obj.api, "differentiates")
    function = obj.args.get(role.arg, role.pos) if role is not None else None
    if isinstance(function, (v.Func, v.Partial)):
        # The library gives something else than the function does.
        with interp.within(*([DIFFERENTIATED] if role is not None and role.more else [])):
            call(interp, function, with_marks(role, obj, args) if role is not None else args, node)
        gradients = v.Obj(f"{obj.api}.__call__", "", args, None)
        gradients.owner = obj
        return gradients
    role = interp.kb.role(obj.api, "calls-at-use")
    function = obj.args.get(role.arg, role.pos) if role is not None and role.arg else None
    if isinstance(function, (v.Func, v.Partial, v.Cls)):
        call(interp, function, args, node)
        task = v.Obj(f"{obj.api}.__call__", "", args, None)
        task.owner = obj
        return task
    if (vectorized := _for_texts(interp, obj, args, node)) is not None:
        return vectorized
    if obj.api == SEQUENTIAL and args.pos and is_in_order(obj) and parts(obj):
        value = args.pos[0]
        for group, repeated in rounds(obj):
            given = value
            for part in group:
                value = call(interp, part, v.Args([value]), node)
            if repeated and tensors.detached(given) and not tensors.detached(value):
                # What a later round of the loop has added is called with what requires grad.
                for part in group:
                    value = call(interp, part, v.Args([value]), node)
        return value
    training = args.kw.get("training")
    layer_modes.call_model(interp, obj, training, node)
    if training is not None and any(v.truth(one) for one in v.alternatives(training)):
        # With that argument a layer draws whether or not the program trains; Keras 3 drew its seed when it was made.
        with interp.within(TRAINING_CONTEXT):
            made = tuple(e for e in interp.kb.rng(obj.api) if e.kind == "dropout" and e.at != "use")
            rng.apply(interp, made, obj.args, obj.node or node, package=obj.package)
            use_object(interp, obj, args, node)
    else:
        use_object(interp, obj, args, node)
    if any(entry.at == "use" for entry in interp.kb.ops(obj.api)):
        # What a module was made with, and what its parts were replaced by, decide as much as what it is given.
        parts_set = {name: part for name, part in obj.attrs.items() if name.isidentifier()}
        both = v.Args(args.pos, {**obj.args.kw, **parts_set, **args.kw}, args.star, args.dstar)
        interp.listeners.tell_any_call(CallEvent(f"{obj.api}.__call__", both, node, None))
    event = CallEvent(f"{obj.type}.__call__", args, node, obj)
    interp.listeners.tell_named(event)
    entries = interp.kb.rng(event.api)
    if entries:
        rng.apply(interp, entries, args, node)
    if obj.api.startswith(("torch.nn.", "torchvision.")) or interp.kb.tensor(obj.api) is not None:
        result = v.Obj(f"{obj.api}.__call__", TENSOR, args, None)
        result.likely = True
        result.start_with(tensors.of_module(interp, obj, args))
        if tensors.gives_second(interp, obj):
            result.owner = obj
        return interp.orders.computed(interp, obj.api, args, result) if interp.orders.any else result
    callbacks(interp, "", args, node)
    given = v.Obj(f"{obj.api}.__call__", interp.kb.result_type(event.api), args, None)
    given.owner = obj
    # What was made to give results in arbitrary order does so when it is called.
    own = interp.orders.of(obj)
    entry = interp.kb.order(given.api, False) if interp.orders.any and own is None else None
    if entry is not None and entry.role == "carry":
        return interp.orders.call(interp, given.api, args, node, given)
    asked = interp.kb.order(event.api, True) if interp.orders.any else None
    if asked is not None and asked.prompts:
        return interp.orders.call(interp, event.api, args, node, given, obj)
    return interp.orders.carried(given, own)


class Entered(NamedTuple):
    """What entering a context manager gives: the ``as`` value and the names it adds to the context."""

    value: v.Value
    names: list[str]


def _names_cpu(value: v.Value) -> bool:
    """Whether a device of TensorFlow or PyTorch is surely the CPU."""
    return isinstance(value, v.Lit) and isinstance(value.value, str) and "cpu" in value.value.lower()


def _device(interp: Interp, device: v.Obj, node: Any) -> list[str]:
    """What stands for a device of TensorFlow or PyTorch among what is active: nothing for a name that leaves the kind of
    device to what is around it."""
    kinds = frozenset[str]()
    if device.api == graph_devices.DEVICE:
        named = device.args.get("device_name", 0) or v.UNKNOWN
        if graph_devices.is_function(named):
            named = call(interp, named, v.Args([v.UNKNOWN]), node)
            kinds = graph_devices.kinds_of(interp, named) - {graph_devices.UNKNOWN}
        else:
            kinds = graph_devices.kinds_of(interp, named)
        interp.listeners.tell(DeviceEvent(kinds, node))
        if kinds == {""} and v.is_none(named) is False:
            return []
    if _names_cpu(device.args.pos[0]):
        return [CPU_CONTEXT]
    interp.flag(OTHER_DEVICE, node)
    return [OTHER_DEVICE]


def enter(
    interp: Interp,
    context: v.Value,
    node: Any,
    after: list[Callable[[], None]],
    restores: list[Callable[[], None]],
    recorded: Setting | None,
) -> Entered:
    """``with context``: library contexts are remembered by name; ``fork_rng`` restores the RNG, and what switches
    gradients on or off when it is made restores what was ``recorded`` of them before. What runs ``after`` the body
    is kept, and what ``restores`` the state on each way out of it."""
    names: list[str] = []
    devices: list[list[str]] = []
    value: v.Value = context
    for one in v.alternatives(context):
        devices.append([])
        if isinstance(one, v.Obj):
            names.append(one.api)
            if one.api in (graph_devices.DEVICE, "torch.device") and one.args.pos:
                devices[-1] = _device(interp, one, node)
            if one.api == DEVICE and (place := named_device(interp, one)) in DEVICES:
                restores.append(_made_there(interp, place, node))
            if is_gradient_switch(one):
                names += _gradient_context(one.args.get("mode", 0))
                restores.append(partial(interp.reset_mode, QUIET, recorded))
            reuses = interp.kb.role(one.api, "reuses-variables")
            if reuses is not None and all_hold(one.args, reuses.when) is True:
                names.append(REUSED)
            switched = [entry for entry in interp.kb.rng(one.api) if entry.at == "use" and entry.sets]
            if switched:
                modes = interp.state.modes.save()
                for entry in switched:
                    rng.switch(interp, entry, one.args, node)
                restores.append(lambda modes=modes: interp.state.modes.restore(modes))  # type: ignore[misc]
            left = graphs.entered(interp, one, node)
            if left is not None:
                restores.append(left)
            if one.api in ("torch.random.fork_rng", "torch.fork_rng"):
                kept = interp.state.rng.save()
                restores.append(lambda kept=kept: _restore(interp, kept))  # type: ignore[misc]
        elif isinstance(one, v.Ext):
            names.append(interp.kb.canonical(one.name))
        elif isinstance(one, v.Inst):
            found = one.cls.find("__enter__")
            if found is not None:
                value = call(interp, bind_method(interp, found, one, one.cls, node), v.NO_ARGS, node)
            leave = one.cls.find("__exit__")
            if leave is not None:
                bound = bind_method(interp, leave, one, one.cls, node)
                after.append(lambda bound=bound: _leave(interp, bound, node))  # type: ignore[misc]
    # It is the CPU only where each of the contexts that it may be is.
    surely_cpu = all(CPU_CONTEXT in each for each in devices)
    names += [name for each in devices for name in each if name != CPU_CONTEXT or surely_cpu]
    return Entered(value, names)


def _made_there(interp: Interp, place: str, node: Any) -> Callable[[], None]:
    """``with torch.device("cuda")``: what is made inside is there. Gives what restores the default device."""
    before = interp.state.modes.get(DEFAULT_DEVICE)
    interp.set_mode(DEFAULT_DEVICE, v.Lit(place), node)
    if place in ACCELERATORS:
        # Models that are made inside stay there.
        interp.flag(MODELS_MOVED, node)
        interp.set_mode(MODELS_MOVED, v.TRUE, node)
    return partial(interp.reset_mode, DEFAULT_DEVICE, before)


def _restore(interp: Interp, kept: dict[str, Rng]) -> None:
    """The RNGs that there were are what they were."""
    table = interp.state.rng
    for name, known in kept.items():
        if table.held.get(name) is not known:
            table[name] = known


def is_gradient_switch(context: v.Value) -> TypeGuard[v.Obj]:
    """Whether a context switches gradients on or off when it is made, and restores that when it is left, or as soon
    as it decorates a function."""
    return isinstance(context, v.Obj) and context.api in (
        "torch.set_grad_enabled",
        "torch.autograd.set_grad_enabled",
    )


def _gradient_context(mode: v.Value | None) -> list[str]:
    """What ``with torch.set_grad_enabled(mode)`` stands for."""
    known = v.truth(mode) if mode is not None and not v.option_of(mode) else None
    return [] if known is None else ["torch.enable_grad" if known else "torch.no_grad"]


def _leave(interp: Interp, bound: v.Value, node: Any) -> None:
    if interp.state.alive:
        call(interp, bound, v.Args([v.NONE, v.NONE, v.NONE]), node)
