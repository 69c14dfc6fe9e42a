"""What happens when a dataset, sampler, transform or other object of a library is used."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from d9mlint.interp import devices, rng, tensors
from d9mlint.interp import values as v
from d9mlint.interp.accepting import accepts
from d9mlint.interp.called_methods import run_when_called
from d9mlint.interp.containers import BASE, CONTAINERS, DRAWING, LAYER, is_in_order, parts
from d9mlint.interp.data import LOADER, inherits_items
from d9mlint.interp.events import IterationEvent
from d9mlint.interp.given_instead import TRANSFORMS, all_others
from d9mlint.interp.heap import ABSENT, HEAP, at
from d9mlint.interp.library.environments import INSIDE
from d9mlint.interp.library_modules import is_module
from d9mlint.interp.methods import bind_method
from d9mlint.interp.tensors import TENSOR, batch
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.heap import Overwritten
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Role


_HOLDING = (v.Obj, v.Inst, v.Func, v.Partial, v.Items, v.Mapping, v.AnyOf)
MODE = "training"
"""The attribute that says whether a module of the program is in training mode,"""
_TRAINING = "@training"
"""and that of a module of a library."""
MODES = frozenset({MODE, _TRAINING})
_OF_OTHERS: Final[tuple[Role, ...]] = ("takes-items", "takes-several")
_MOST_NESTED = 4
INHERITED_USES = ("__getitem__", "__getitems__", "__iter__", "__call__")
"""Methods by which items are made and transforms are applied."""


def keep_base(interp: Interp, inst: v.Inst, base: v.Value) -> None:
    """The base class of a library was given its arguments: what it does with them later, the instance does."""
    if isinstance(base, v.Obj) and base.api in CONTAINERS:
        inst.attrs[BASE] = base
    if isinstance(base, v.Obj) and interp.entry is not None and MODE not in inst.attrs:
        if all(_starts_in_training(interp, one) for one in inst.cls.external_bases()):
            inst.attrs[MODE] = v.TRUE
    if not isinstance(base, v.Obj):
        return
    layer = is_module(interp, base)
    role = interp.kb.role(base.api, "keeps-arguments")
    for pos, name in enumerate(role.more if role is not None else ()):
        value = base.args.get(name, pos)
        if value is not None or not layer:
            inst.attrs[name] = value or (v.UNKNOWN if base.args.star or base.args.dstar else v.NONE)
    if layer:
        if interp.kb.ops(base.api) and not _has_weights(interp, base.api):
            inst.attrs[LAYER] = base
        if any(entry.at == "use" for entry in interp.kb.rng(base.api)):
            inst.attrs[DRAWING] = base
        return
    if base._attrs is not None and INSIDE in base.attrs:
        inst.attrs[INSIDE] = base.attrs[INSIDE]
    if interp.kb.rng(base.api) or any(isinstance(one, (*_HOLDING, v.Lit)) for one in base.args.values()):
        inst.attrs[BASE] = base


def _starts_in_training(interp: Interp, base: str) -> bool:
    return interp.kb.role(interp.kb.canonical(base), "starts-in-training") is not None


def _has_weights(interp: RunView, api: str) -> bool:
    tensor = interp.kb.tensor(api)
    return (tensor is not None and tensor.grad == "weights") or any(
        entry.kind == "init" for entry in interp.kb.rng(api)
    )


def base_argument(interp: Interp, inst: v.Inst, name: str) -> v.Value | None:
    """What an attribute holds that the class of a library, from which that of an instance is derived, sets: the
    argument of this name."""
    base = inst.attrs.get(BASE)
    if not isinstance(base, v.Obj):
        return None
    held = base.args.kw.get(name)
    return held if isinstance(held, _HOLDING) else kept_argument(interp, base, name)


def kept_argument(interp: Interp, made: v.Obj, name: str) -> v.Value | None:
    """What an attribute of a library object holds that is an argument of its constructor, where that was given or its
    default is known."""
    role = interp.kb.role(f"{made.api}.@{name}", "keeps-argument")
    if role is None:
        return None
    given = made.args.get(role.arg, role.pos)
    if given is not None or not role.more or made.args.star or made.args.dstar:
        return given
    return _DEFAULTS.get(role.more[0]) or v.Lit(role.more[0])


_DEFAULTS: Final[dict[str, v.Value]] = {"None": v.NONE, "False": v.FALSE, "1": v.Lit(1)}
"""Defaults of arguments that are no texts, as roles write them."""


def use_base(interp: Interp, inst: v.Inst, node: Any, depth: int = 0) -> list[v.Value]:
    """What an instance inherits from a class of a library is used."""
    base = inst.attrs.get(BASE)
    if isinstance(base, v.Obj) and base.type == LOADER:
        # Its items are made where those of any other loader are: in its workers, if it has some.
        interp.listeners.tell(IterationEvent(base))
        return []
    run_when_called(interp, inst, node)
    return use(interp, base, node, depth + 1) if isinstance(base, v.Obj) else []


def use(interp: Interp, value: v.Value, node: Any, depth: int = 0) -> list[v.Value]:
    """A dataset, sampler or transform is used: project ones run, library ones draw and use their parts. Gives what
    the methods of the project give back."""
    given: list[v.Value] = []
    if depth > _MOST_NESTED:
        return given
    if isinstance(value, v.Inst):
        own = False
        for name in INHERITED_USES:
            found = value.cls.find(name)
            own = own or (found is not None and not (name == "__getitem__" and inherits_items(value.cls)))
            if found is not None:
                bound = bind_method(interp, found, value, value.cls, node)
                given.append(interp.call(bound, v.Args([] if name == "__iter__" else [v.UNKNOWN]), node))
        if not own and value.cls.find("forward") is None:
            given += use_base(interp, value, node, depth)
    elif isinstance(value, (v.AnyOf, v.Items)):
        for one in value.values if isinstance(value, v.AnyOf) else value.elts:
            given += use(interp, one, node, depth + 1)
    elif isinstance(value, v.Obj) and value.type != TENSOR:
        given += use_object(interp, value, v.NO_ARGS, node)
        given += _use_held(interp, value, node, depth)
    elif isinstance(value, v.Lit) and value.instead is not None:
        for one in v.alternatives(value.instead):
            _use_instead(interp, one, value.option, node, depth)
    _use_others(interp, value, node, depth)
    return given


def _use_held(interp: Interp, obj: v.Obj, node: Any, depth: int) -> list[v.Value]:
    """What an object of a library that is used was built from is used: also what a dataset holds that gives the items of
    others, which has been used with the whole."""
    given: list[v.Value] = []
    for one in held(interp, obj).values():
        if isinstance(one, (v.Inst, v.Items, v.AnyOf)):
            given += use(interp, one, node, depth + 1)
        elif isinstance(one, v.Obj) and depth <= _MOST_NESTED and _gives_items_of_others(interp, one):
            given += _use_held(interp, one, node, depth + 1)
    return given


def _gives_items_of_others(interp: RunView, dataset: v.Obj) -> bool:
    return any(interp.kb.role(dataset.api, role) is not None for role in _OF_OTHERS)


def _use_others(interp: Interp, value: v.Value, node: Any, depth: int) -> None:
    """What options put in the place of a dataset or transform, or of what is called with its items, is used."""
    if not isinstance(value, (v.Inst, v.Obj, v.Items)) or value.birth in interp.apart:
        return
    for one in all_others(interp, value):
        # It may hold what it stands in the place of: `Compose([flip, steps])`.
        interp.apart.add(value.birth)
        _use_instead(interp, one.value, one.option, node, depth)
        interp.apart.discard(value.birth)


def _use_instead(interp: Interp, other: v.Value, option: str, node: Any, depth: int) -> None:
    """What an option puts in the place of a dataset, transform or function is used if the option is given."""

    def nothing() -> None:
        pass

    def instead() -> None:
        if isinstance(other, (v.Func, v.Partial)):
            interp.call(other, v.Args([v.UNKNOWN]), node)
        else:
            use(interp, other, node, depth + 1)

    interp.branch([nothing, instead], keep=0, option=option)


def set_training(interp: Interp, model: v.Inst | v.Obj, mode: v.Value | None) -> None:
    """A module and its parts are put into the mode of training, or of evaluation; None where a library does that."""
    _set_training(interp, model, mode, set())


def _set_training(interp: Interp, model: v.Inst | v.Obj, mode: v.Value | None, seen: set[v.Value]) -> None:
    if model in seen:
        return
    seen.add(model)
    if isinstance(model, v.Inst):
        held = list(model.attrs.values())
    else:
        held = parts(model) if model.api in CONTAINERS else list(model.args.values())
        held += _replaced(interp, model)
    for value in [one for several in held for one in v.alternatives(several)]:
        if isinstance(value, v.Inst) or (isinstance(value, v.Obj) and is_module(interp, value)):
            _set_training(interp, value, mode, seen)
    name = MODE if isinstance(model, v.Inst) else _TRAINING
    if mode is None:
        if name in model.attrs or (isinstance(model, v.Obj) and _starts_evaluated(interp, model)):
            model.attrs[name] = v.UNKNOWN
    elif isinstance(model, v.Inst):
        if interp.in_doubt(model.birth) and not interp.joins_modes:
            before = interp.mode_before(model, model.attrs.get(name) or v.UNKNOWN)
            model.attrs[name] = v.join((before, mode))
        else:
            model.attrs[name] = mode
    elif is_module(interp, model):
        if v.truth(mode) is False and _is_evaluated(interp, model):
            # Also where it is not sure that the call runs.
            return
        if interp.in_doubt(model.birth) and not interp.joins_modes:
            before = interp.mode_before(model, model.attrs.get(name) or _first_mode(interp, model))
            mode = mode if v.truth(before) is v.truth(mode) else v.UNKNOWN
        sure = not (interp.uncertain or interp.guessing)
        model.attrs[name] = mode if sure else v.UNKNOWN


def join_modes(interp: Interp, overwritten: Overwritten, began: int) -> None:
    """A branch has ended: models that are older than it are in the mode that it has put them into, or as they were."""
    for access in [one for (_, key), one in overwritten.items() if key in MODES]:
        model, before, now = access[0], access[4], at(*access[:4])
        if model.birth > began or now is before or not isinstance(now, v.Lit):
            continue
        if not tensors.is_in_doubt(interp, model.birth) or interp.is_made_aside(model.birth):
            # Where there is such a model, it is this one to which the branch does so.
            continue
        if isinstance(model, v.Inst) and before is ABSENT:
            HEAP.put(access, v.join((v.UNKNOWN, now)))
        elif isinstance(model, v.Inst):
            HEAP.put(access, v.join((before, now)))
        elif isinstance(model, v.Obj) and access[3] == _TRAINING:
            before = _first_mode(interp, model) if before is ABSENT else before
            HEAP.put(access, now if v.truth(before) is v.truth(now) else v.UNKNOWN)


def _first_mode(interp: Interp, obj: v.Obj) -> v.Value:
    """The mode in which a library gives a module."""
    return v.FALSE if _starts_evaluated(interp, obj) else v.TRUE


def _starts_evaluated(interp: Interp, obj: v.Obj) -> bool:
    """Whether a library gives a module in the mode of evaluation."""
    return interp.kb.role(obj.api, "starts-evaluated") is not None


def has_been_switched(obj: v.Obj) -> bool:
    """Whether a module may have been put into a mode since it was made."""
    return _TRAINING in obj.attrs or MODE in obj.attrs


def _is_evaluated(interp: Interp, obj: v.Obj) -> bool:
    """Whether a module has been put into the mode of evaluation."""
    by_hand = obj.attrs.get(MODE)
    if by_hand is not None and v.truth(by_hand) is not True:
        # As in `layer.training = self.training`.
        return True
    mode = obj.attrs.get(_TRAINING)
    return _starts_evaluated(interp, obj) if mode is None else v.truth(mode) is False


def masks(interp: Interp, obj: v.Obj) -> bool:
    """Whether a layer of PyTorch draws whenever it is called in the mode that it is in."""
    return not _is_evaluated(interp, obj) and any(
        entry.kind == "dropout"
        and entry.library == "torch"
        and entry.at == "use"
        and rng.draws_now(interp, obj.args, entry)
        for entry in interp.kb.rng(obj.api)
    )


def use_object(interp: Interp, obj: v.Obj, args: v.Args, node: Any, depth: int = 0) -> list[v.Value]:
    """A library object is used: it and what it was built from draw what they draw at use. Gives what its functions give
    back, and tensors where it moves those of what it is called with."""
    entries = interp.kb.rng(obj.api)
    if entries and _is_evaluated(interp, obj):
        entries = tuple(one for one in entries if one.kind != "dropout")
    if entries and (args.kw or args.dstar):
        # What a call is given stands in place of what the object was made with. A module gets the inputs of `forward`.
        both, module = obj.args.replaced(args), is_module(interp, obj)
        entries = tuple(
            one for one in entries if (module and one.kind == "dropout") or rng.draws_now(interp, both, one)
        )
    interp.partings.used.append(obj)
    if depth == 0 and isinstance(node, m.Call):
        # What is sampled is the result of this call; with parts of the object the call only comes to what draws.
        sampling = tuple(one for one in entries if one.kind == "sampling")
        entries = tuple(one for one in entries if one.kind != "sampling")
        rng.apply(interp, sampling, obj.args, node, at="use", package=obj.package, owner=obj.owner)
    if entries:
        with interp.in_file(obj.file if obj.node is not None else None):
            rng.apply(
                interp, entries, obj.args, obj.node or node, at="use", package=obj.package, owner=obj.owner
            )
    given = _moved(interp, obj)
    if depth <= 4:
        given += _use_parts(interp, obj, args if depth == 0 else v.NO_ARGS, node, depth)
    interp.partings.used.pop()
    return given


def _moved(interp: RunView, obj: v.Obj) -> list[v.Value]:
    """A tensor on the device to which an object of a library moves what it is called with, if it does."""
    role = interp.kb.role(obj.api, "moves-items")
    device = devices.named(interp, obj.args.get(role.arg, role.pos)) if role is not None else ""
    return [batch(device)] if device else []


def _use_parts(interp: Interp, obj: v.Obj, args: v.Args, node: Any, depth: int) -> list[v.Value]:
    given: list[v.Value] = []
    for value in parts(obj) if obj.api in CONTAINERS else _called_now(interp, obj):
        for one, option in _by_option(value):
            if option:
                _use_instead(interp, one, option, node, depth)
                continue
            _use_others(interp, one, node, depth)
            if isinstance(one, v.Obj) and one.type != TENSOR:
                _note_unknown(interp, obj, one)
                given += use_object(interp, one, v.NO_ARGS, node, depth + 1)
            elif isinstance(one, (v.Func, v.Partial)) or (
                isinstance(one, v.Inst) and (one.cls.find("__call__") or one.cls.find("forward"))
            ):
                handed_on = args if _hands_on(interp, obj, one, args) else v.Args(star=True)
                given.append(interp.call(one, handed_on, node))
            elif isinstance(one, v.Inst):
                given += use_base(interp, one, node, depth)
    for layer in _replaced(interp, obj):
        use_object(interp, layer, v.NO_ARGS, node, depth + 1)
    return given


def _hands_on(interp: RunView, whole: v.Obj, part: v.Value, args: v.Args) -> bool:
    """Whether an object of which nothing is known is taken to call the model that it is made with as it is called, as what
    shares out batches does: the model takes these arguments."""
    return (
        bool(args.pos or args.kw)
        and isinstance(part, v.Inst)
        and part.cls.find("forward") is not None
        and rng.of_unknown_library(interp.kb, whole.api)
        and accepts(part, args)
    )


def _note_unknown(interp: Interp, whole: v.Obj, part: v.Obj) -> None:
    """A transform of a library of which nothing is known: whether it draws is not known either."""
    kb = interp.kb
    applies = kb.role(whole.api, "calls-at-use") is not None or any(
        entry.kind in TRANSFORMS for entry in kb.rng(whole.api)
    )
    if applies and part.node is not None and rng.of_unknown_library(kb, part.api):
        with interp.in_file(part.file):
            interp.gap("library-call", f"nothing is known of `{part.api}`, which transforms data", part.node)


def calls_unknown(run: RunView, value: v.Value, depth: int = 0) -> bool:
    """Whether something is not known among what an object calls that was made with it: a container of modules, a transform
    or a dataset that calls others."""
    if not isinstance(value, v.Obj) or depth > _MOST_NESTED:
        return False
    if value.api in CONTAINERS:
        if value.args.star and not is_in_order(value):
            return True
        given = parts(value)
    else:
        role = run.kb.role(value.api, "calls-at-use")
        if role is None or role.library == "python":
            return False
        args = held(run, value)
        if role.arg and _is_unknown(run, args.get(role.arg, role.pos)):
            return True
        given = args.values()
    listed = [one for part in given if isinstance(part, v.Items) for one in flatten(part)]
    inside = (one for part in given for one in flatten(part))
    return any(_is_unknown(run, one) for one in listed) or any(
        calls_unknown(run, one, depth + 1) for one in inside
    )


def _is_unknown(run: RunView, value: v.Value | None) -> bool:
    """Whether nothing is known of a transform, or of a list of such: also of one that Python makes of what is not known."""
    if not isinstance(value, v.Obj):
        return value is v.UNKNOWN
    if value.api.startswith(_OF_PYTHON):
        return any(_is_unknown(run, one) for one in value.args.values())
    return rng.of_unknown_library(run.kb, value.api)


_OF_PYTHON = "builtins."


def _replaced(interp: RunView, obj: v.Obj) -> list[v.Obj]:
    """The layers of a library that the program put into a module of one, as ``model.classifier = ...``."""
    if not obj.attrs or not is_module(interp, obj):
        return []
    later = [one for name, value in obj.attrs.items() if name.isidentifier() for one in flatten(value)]
    return [one for one in later if isinstance(one, v.Obj) and is_module(interp, one)]


def _called_now(interp: Interp, obj: v.Obj) -> list[v.Value]:
    """What a library object works with at a use of it: what makes its weights is called at the first one alone."""
    given = held(interp, obj)
    role = interp.kb.role(obj.api, "builds-with") if given.kw else None
    names = given.kw.keys() & set(role.more) if role is not None else set()
    if not names:
        return given.values()
    built = _BUILT in obj.attrs
    obj.attrs[_BUILT] = v.TRUE
    return [*given.pos, *(value for name, value in given.kw.items() if not (built and name in names))]


_BUILT = "@built"


def held(interp: RunView, obj: v.Obj) -> v.Args:
    """What a library object works with: what it was made with, and what the program gave it later as an attribute, as
    ``dataset.transform = ...``. The layers of a module are something else."""
    later = {name: value for name, value in obj.attrs.items() if name.isidentifier()}
    return obj.args.replaced(v.Args([], later)) if later and not is_module(interp, obj) else obj.args


def flatten(value: v.Value) -> list[v.Value]:
    """A value, and what sequences, mappings and alternatives hold."""
    if isinstance(value, v.Items):
        return [one for elt in value.elts for one in flatten(elt)]
    if isinstance(value, v.AnyOf):
        return [one for elt in value.values for one in flatten(elt)]
    if isinstance(value, v.Mapping):
        return [one for elt in value.items.values() for one in flatten(elt)]
    return [value]


def _by_option(value: v.Value, option: str = "") -> list[tuple[v.Value, str]]:
    """A value, and what sequences, mappings and alternatives hold, each with the option that has to be given for it."""
    if isinstance(value, v.Items):
        return [one for elt in value.elts for one in _by_option(elt, option)]
    if isinstance(value, v.Mapping):
        return [one for elt in value.items.values() for one in _by_option(elt, option)]
    if isinstance(value, v.AnyOf):
        first, *rest = value.values
        return [
            *_by_option(first, option),
            *(one for elt in rest for one in _by_option(elt, value.option or option)),
        ]
    if isinstance(value, v.Lit) and value.instead is not None:
        return [(value, option), *_by_option(value.instead, value.option or option)]
    return [(value, option)]


def handed_over(args: v.Args) -> list[v.Value]:
    """What a call is given: its arguments, and what lists, tuples and mappings among them hold."""
    found: list[v.Value] = []
    for value in args.values():
        _hand_over(value, found, 0)
    return found


def _hand_over(value: v.Value, found: list[v.Value], depth: int) -> None:
    for one in v.alternatives(value):
        if isinstance(one, v.Items):
            held = one.elts
        elif isinstance(one, v.Mapping):
            held = list(one.items.values())
        else:
            found.append(one)
            continue
        for part in held[:_MOST_HANDED] if depth < _DEEPEST else ():
            _hand_over(part, found, depth + 1)


_DEEPEST, _MOST_HANDED = 3, 32
"""How deep containers that a call is given are looked into, and how many elements of each."""
