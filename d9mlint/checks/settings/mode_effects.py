"""What a deterministic mode may change in a program: ops that it makes deterministic, and what is not known."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from d9mlint.checks.coverage import PLAIN
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold, any_holds
from d9mlint.interp.calls import COMMON_METHODS, MAX_GUESSES
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.library.own_gradients import is_followed
from d9mlint.interp.library_modules import is_module, makes_module
from d9mlint.interp.switches import OF_CUDNN
from d9mlint.interp.tensors import MODULE_OF, TENSOR, deciding, detached, device, no_gradient
from d9mlint.interp.unknown_models import asked_parameters
from d9mlint.interp.usage import flatten
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.events import CallEvent
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import OpEntry, Role, RoleEntry

CALLED = ".__call__"
_MODULE = "torch.nn.Module"
OPS = ("DET401", "DET404", "DET407", "DET408")
"""The rules that report ops which the mode may change, each at its place."""
_OF_CUDNN = OF_CUDNN["deterministic"]
_RECURRENT = "DET405"
"""The rule of cuDNN's recurrent kernels, which depend on a variable of cuBLAS: it reports each at its place."""
_TRAINS_MODEL: Role = "calls-with-model"
_BY_SWITCH = ("DET302", _RECURRENT)
"""The rules of ops that are not reported by themselves, or not by default."""


def may_change(kb: Knowledge, api: str) -> bool:
    """Whether calls of a name are to be looked at: the mode may change what they do."""
    name = api.removesuffix(CALLED)
    return (
        name.startswith("?")
        or bool(_switched(kb, name))
        or not _is_unchanged(kb, name)
        or kb.role(name, _TRAINS_MODEL) is not None
    )


def changes(run: RunView, call: CallEvent) -> list[tuple[str, ...]]:
    """What the mode may change in one of these calls: for each thing the other modes with which it does not."""
    name = call.api.removesuffix(CALLED)
    if name == "?":
        return [] if _makes_optimizer(run, call.args) else [()]
    if name.startswith("?."):
        # Of methods of the project, what may be meant is run unless too many are.
        method = name.rpartition(".")[2]
        if _is_part(run, call.owner):
            return []
        candidates = run.methods_named(method)
        return [()] if candidates and (method in COMMON_METHODS or len(candidates) > MAX_GUESSES) else []
    trained = run.kb.role(name, _TRAINS_MODEL)
    if trained is not None and _is_unchanged(run.kb, name):
        return [] if _is_looked_at(run, call.owner, trained) else [()]
    layers = made_of(run, name, call.args)
    if layers:
        return [_excused(entry) for layer in layers for entry in _switched(run.kb, layer)]
    found = [_excused(entry) for entry in _switched(run.kb, name) if _applies(run, entry, call)]
    settled = _is_settled(run, name, call.args, call.owner)
    if settled is not None:
        return found if settled else [()]
    applied = run.kb.role(name, "calls-on-class")
    if (applied is not None and is_followed(call.owner, applied)) or _makes_own_classes(run, name, call.args):
        return found
    owner, _, method = name.rpartition(".")
    if makes_module(run, owner):
        # Models of libraries are modules.
        name = f"{_MODULE}.{method}" if _is_unchanged(run.kb, f"{_MODULE}.{method}") else name
    elif owner.endswith(CALLED) and makes_module(run, owner.removesuffix(CALLED)):
        # What their modules give are tensors.
        name = f"{TENSOR}.{method}"
    if _is_unchanged(run.kb, name) or _works_on_cpu(run, name, call) or _is_of_optimizer(run, call):
        return found
    if run.kb.tensor(name) is not None and any("cuda" in entry.devices for entry in run.kb.ops(name)):
        # A function or layer, not a whole model: what is known to vary in it is reported at its place.
        return found
    return found if _is_set_up(run, call) else [()]


def _is_set_up(run: RunView, call: CallEvent) -> bool:
    """Whether a statement does nothing with what a function of a library gives, or a method of what one gave, and gives it
    literals alone: no tensor and no model goes through such a call, which sets up something, as the limits of a plot; if
    it is not known to run other code."""
    stmt = run.statement
    if not isinstance(stmt, m.ExprStmt) or stmt.value is not call.node:
        return False
    if any(run.kb.role(name, "mode-may-change") is not None for name in _outwards(call.api)):
        return False
    if call.args.star or call.args.dstar or not (call.owner is None or isinstance(call.owner, v.Obj)):
        return False
    return all(isinstance(one, v.Lit) for value in call.args.values() for one in flatten(value))


def _is_part(run: RunView, value: v.Value | None) -> bool:
    """Whether a value is an attribute of what a library gave of which the mode changes nothing, as the actions of an
    environment: no class of the program defines its methods."""
    while isinstance(value, v.Member):
        value = value.owner
        if isinstance(value, v.Obj):
            return not is_module(run, value) and _is_unchanged(run.kb, value.api)
    return False


def has_known_ops(run: RunView, call: CallEvent) -> bool:
    """Whether something in one of these calls is known to vary on CUDA."""
    name = call.api.removesuffix(CALLED)
    layers = (name, *made_of(run, name, call.args))
    return any("cuda" in entry.devices for layer in layers for entry in run.kb.ops(layer))


def _is_looked_at(run: RunView, trainer: v.Value | None, trained: RoleEntry) -> bool:
    """Whether what a trainer trains has been looked at where it was made: a module of the program, or of a library."""
    model = trainer.args.get(trained.arg, trained.pos) if isinstance(trainer, (v.Obj, v.Inst)) else None
    return model is not None and all(
        isinstance(one, v.Inst) or (isinstance(one, v.Obj) and is_module(run, one)) for one in flatten(model)
    )


def _makes_own_classes(run: RunView, name: str, args: v.Args) -> bool:
    """Whether a call makes the model that it trains of a class of the program that it is given, and the data likewise: what
    they call is looked at there."""
    made = [one for entry in run.kb.runners(name) if entry.constructs for one in entry.makes]
    given = [args.get(one.arg, one.pos) for one in made]
    return bool(given) and all(
        all(isinstance(cls, v.Cls) for cls in v.alternatives(one))
        for one in (given[0] or v.UNKNOWN, *given[1:])
        if one is not None
    )


def _works_on_cpu(run: RunView, name: str, call: CallEvent) -> bool:
    """Whether a function that gives a tensor where those lie that it is given, as ops do, works on the CPU."""
    entry = run.kb.tensor(name)
    where_given = entry.device in ("inputs", "first") if entry is not None else bool(run.kb.ops(name))
    if not where_given or makes_module(run, name):
        return False
    return device(deciding(run, name, call.args, call.owner)) == "cpu"


def may_be_timed(run: RunView, call: CallEvent) -> bool:
    """Whether cuDNN may select kernels for a call by timing them: a convolution or a recurrent layer is made or computed,
    or it is not known what is called."""
    name = call.api.removesuffix(CALLED)
    if name != call.api and makes_module(run, name):
        # Where it was made, it has been looked at.
        return False
    layers = made_of(run, name, call.args) or [name]
    entries = [entry for layer in layers for entry in _switched(run.kb, layer)]
    if any(_OF_CUDNN in entry.unless_mode or entry.rule == _RECURRENT for entry in entries):
        return True
    if entries or _times_nothing(run, name, call.args):
        return False
    return () in changes(run, call)


def _times_nothing(run: RunView, name: str, args: v.Args) -> bool:
    """Whether it is known of what is called, or of the class or package that it is in, that it has no kernels of cuDNN to
    select from."""
    for around in _outwards(name):
        known = run.kb.role(around, "times-no-kernels")
        if known is not None:
            return all_hold(args, known.when) is True
    return False


def is_unknown_result(run: RunView, obj: v.Obj) -> bool:
    """Whether nobody knows what an object is that a function of a library gave, and what it runs when it is called."""
    # What a method of an object gives, as `cuda()`, is that object still.
    settled = obj.owner is None and _is_settled(run, obj.api, obj.args) is True
    known = (
        v.names_class(obj.api)
        or settled
        or _computes_elsewhere(run, obj)
        or _calls_what_is_followed(run, obj)
    )
    return not known and not made_of(run, obj.api, obj.args)


def _calls_what_is_followed(run: RunView, obj: v.Obj) -> bool:
    """Whether an object, when it is called, calls a function of the program that it was given, as a task of joblib does:
    what that calls is looked at there."""
    role = run.kb.role(obj.api, "calls-at-use")
    function = obj.args.get(role.arg, role.pos) if role is not None and role.arg else None
    return isinstance(function, (v.Func, v.Partial))


def _computes_elsewhere(run: RunView, obj: v.Obj) -> bool:
    """Whether a library that no mode of PyTorch reaches gave an object, and was given no model or function that it could
    call: an interpolation of SciPy."""
    of_torch = obj.api.startswith("torch.") or obj.type == TENSOR
    return not of_torch and _is_unchanged(run.kb, obj.api) and not _may_be_run(run, obj.args.values())


def _may_be_run(run: RunView, values: Iterable[v.Value]) -> bool:
    """Whether some values hold what can be called with tensors: models, and functions of the program."""
    return any(
        isinstance(one, (v.Inst, v.Func, v.Cls)) or (isinstance(one, v.Obj) and is_module(run, one))
        for value in values
        for one in flatten(value)
    )


def _is_settled(run: RunView, api: str, args: v.Args, owner: v.Value | None = None) -> bool | None:
    """Whether the mode changes nothing of a call with its arguments, in the targeted release; None where no entry is about
    this very name."""
    entries = [one for one in run.kb.roles(api) if one.role == "mode-changes-nothing"]
    if not entries:
        return None
    return any(
        (not one.versions or run.kb_matches(one.library, one.versions))
        and all_hold(args, one.when, owner) is True
        for one in entries
    )


def may_vary(kb: Knowledge, api: str) -> bool:
    """Whether calls of a name are to be looked at: without its arguments it is not known that they give the same bits."""
    return not _is_unchanged(kb, api.removesuffix(CALLED))


def is_known_unchanged(
    run: RunView, api: str, args: v.Args = v.NO_ARGS, owner: v.Value | None = None
) -> bool:
    """Whether it is known of a call that it gives the same bits in each run, whatever mode is on."""
    known = settled(run, api, args, owner)
    return _is_unchanged(run.kb, api.removesuffix(CALLED)) if known is None else known


def settled(run: RunView, api: str, args: v.Args = v.NO_ARGS, owner: v.Value | None = None) -> bool | None:
    """Whether a call gives the same bits in each run in the targeted release; None where no entry is about what is called,
    nor about the call whose result has it as a method, unless it is a known op."""
    name = api.removesuffix(CALLED)
    known = _is_settled(run, name, args, owner)
    outer = name.rpartition(".")[0]
    while known is None and outer and not run.kb.ops(name):
        known = _is_settled(run, outer, v.NO_ARGS)
        outer = outer.rpartition(".")[0]
    return known


def _has_conditions(entry: RoleEntry) -> bool:
    return bool(entry.when or entry.versions)


def passes_back_alone(run: RunView, call: CallEvent) -> bool:
    """Whether a call makes a module of a library, in whose backward pass alone the mode may change anything: what is
    known to vary in its forward pass is no such op."""
    api = call.api
    layers = made_of(run, api, call.args) or [api]
    return makes_module(run, api) and all(
        entry.passes == "backward" for layer in layers for entry in _switched(run.kb, layer)
    )


def made_of(run: RunView, api: str, args: v.Args) -> Sequence[str]:
    """The layers of which a function of a library makes a model, where these are known."""
    role = run.kb.role(api, "made-of")
    return role.more if role is not None and all_hold(args, role.when) is True else ()


def _makes_optimizer(run: RunView, args: v.Args) -> bool:
    """Whether what is called is given the parameters of modules, or an optimizer, and no data: it makes an optimizer, an
    average, a schedule or the like, which computes element by element. What is then called with data is looked at there."""
    name = "optimizer" if "optimizer" in args.kw else "params"
    held = args.get(name, 0)
    if held is None or not (_is_parameter(held) or any(asked_parameters(held))):
        return False
    given = [value for key, value in args.kw.items() if key != name]
    return not _holds_data(run, [*(args.pos if name in args.kw else args.pos[1:]), *given])


def _is_of_optimizer(run: RunView, call: CallEvent) -> bool:
    """Whether a library makes an optimizer of what it is given, or a method of one is given no data."""
    if call.owner is None:
        return _makes_optimizer(run, call.args)
    made = call.owner
    return (
        isinstance(made, v.Obj)
        and _makes_optimizer(run, made.args)
        and not _holds_data(run, call.args.values())
    )


def _holds_data(run: RunView, values: Iterable[v.Value]) -> bool:
    return any(
        isinstance(one, v.Inst) or (isinstance(one, v.Obj) and (one.type == TENSOR or is_module(run, one)))
        for value in values
        for one in flatten(value)
    )


def wraps_loader(run: RunView, call: CallEvent) -> bool:
    """Whether what is called is given a loader, and no model or function that it could call: where its result is iterated,
    as that of a progress bar, it gives the batches."""
    given = [one for value in call.args.values() for one in flatten(value)]
    return any(isinstance(one, v.Obj) and one.type == LOADER for one in given) and not _may_be_run(run, given)


def _is_parameter(value: v.Value) -> bool:
    """Whether a value is a parameter, or a list of some."""
    held = flatten(value)
    return bool(held) and all(isinstance(one, v.Obj) and MODULE_OF in one.attrs for one in held)


def _is_unchanged(kb: Knowledge, name: str) -> bool:
    """Whether it is known without its arguments that the mode changes nothing of a call, but for known ops: of the
    packages and classes that a name is in, the innermost decides of which anything is known."""
    known = kb.role(name, "mode-changes-nothing")
    if known is not None:
        return not _has_conditions(known)
    for around in _outwards(name):
        if kb.role(around, "mode-may-change") is not None:
            return False
        known = kb.role(around, "mode-changes-nothing")
        if around in PLAIN or (known is not None and not known.versions):
            return True
    return False


def _outwards(name: str) -> Iterator[str]:
    """A name, and the classes and packages that it is in, the innermost first."""
    while name:
        yield name
        name = name.rpartition(".")[0]


def _switched(kb: Knowledge, name: str) -> list[OpEntry]:
    return [entry for entry in kb.ops(name) if _is_switched(entry)]


def _excused(entry: OpEntry) -> tuple[str, ...]:
    """The other modes with which the mode changes nothing of an op: of cuDNN's own kernels only its switch decides."""
    return (*entry.unless_mode, _OF_CUDNN) if entry.rule == _RECURRENT else tuple(entry.unless_mode)


def _is_switched(entry: OpEntry) -> bool:
    return entry.rule in _BY_SWITCH and "cuda" in entry.devices


def _applies(run: RunView, entry: OpEntry, call: CallEvent) -> bool:
    if entry.passes == "backward" and not makes_module(run, call.api.removesuffix(CALLED)):
        if no_gradient(run) or all(map(detached, call.args.values())):
            return False
    if all_hold(call.args, entry.when, call.owner) is False:
        return False
    if "cpu" not in entry.devices and _works_on_cpu(run, call.api.removesuffix(CALLED), call):
        return False
    return any_holds(call.args, entry.unless, call.owner) is not True
