"""Weights that are loaded over all initial ones of a model: ``model.load_state_dict(torch.load(path))``.

What is known is a mode of the path for each place at which a loaded module or parameter was made, so that a load that
only may happen is none where the paths meet again. The modules themselves are marked too: others may have been made at
the same places.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.containers import CONTAINERS, added, container_of, parts
from d9mlint.interp.data import CHANGED, TENSOR
from d9mlint.interp.given_instead import is_made_where_given, others
from d9mlint.interp.library.saved_states import is_saved_state
from d9mlint.interp.library_modules import is_module, makes_module
from d9mlint.interp.state import Setting, Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.tensors import LOADED_FROM, LOADING

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.state import State
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import RoleEntry

LOADED = "weights loaded:"
"""How the names of such modes begin."""
OF_ONE_MODULE = "_load_from_state_dict"
"""The method by which a module of PyTorch fills what it holds itself; programs call it for each part of a model."""
LOADING_METHODS = (
    "load_state_dict",
    OF_ONE_MODULE,
    "load_weights",
    "restore",
    "set_weights",
    "from_pretrained",
    "load_from_checkpoint",
)
"""Methods that load weights."""
_LISTS = frozenset({"builtins.list", "builtins.tuple"})
_MARK = "@loaded"
_MOST_NESTED = 4
_SETTING = "set_weights"
"""The method that puts arrays which the program has in the place of all weights; it refuses fewer of them."""
_LENIENT = ("by_name", "skip_mismatch")
"""Arguments of ``load_weights`` that may leave some weights as they are, where they are true."""


def load(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``model.load_state_dict(state)``, ``model.load_weights(path)`` and ``model.set_weights(arrays)``."""
    model = owner.receiver if isinstance(owner, v.Super) else owner
    state = args.pos[0] if args.pos else next(iter(args.kw.values()), None)
    if (
        state is not None
        and not args.star
        and not args.dstar
        and (_all_of(args, name) or (name == "load_state_dict" and is_saved_state(interp, node)))
        and not are_initial(state)
        and not _is_changed(state)
        and _is_settled(interp, state)
        and (name != _SETTING or all(_is_from_file(interp, one) for one in v.alternatives(state)))
    ):
        # Only in Keras the layers of a model are arguments of the calls that make it.
        mark_loaded(interp, model, name in ("load_weights", _SETTING))
    return None


def load_file(interp: Interp, api: str, args: v.Args, owner: v.Value | None = None) -> None:
    """``load_model(model, path)`` and ``Checkpointer(model).load(path)``, as the facts have them."""
    for model in filled(interp.kb, api, args, owner):
        mark_loaded(interp, model, False)


def filled(kb: Knowledge, api: str, args: v.Args, owner: v.Value | None = None) -> Sequence[v.Value]:
    """The models into which a function, or a method of what was made with them, loads all weights: one, or those in a
    mapping of names."""
    role = kb.role(api, "loads-weights")
    if role is None or args.star or args.dstar or not is_meant(role, args, owner):
        return ()
    if all_hold(args, role.when, owner) is False:
        return ()
    made_with = owner.args.get(role.arg, role.pos) if isinstance(owner, v.Obj) else None
    given = made_with or args.get(role.arg, role.pos)
    if isinstance(given, v.Mapping):
        return list(given.items.values())
    return () if given is None else (given,)


def is_meant(role: RoleEntry, args: v.Args, owner: v.Value | None) -> bool:
    """Whether a model is one that a function completes: where a fact names what has to have made it, that has to be seen,
    and where it names the argument for the file, that has to be given."""
    if role.more and all(v.truth(args.kw.get(name) or v.NONE) is False for name in role.more):
        return False
    return not any(test.mentions for test in role.when) or all_hold(args, role.when, owner) is True


def loaded_places(state: State) -> frozenset[Site]:
    """Where the modules were made whose initial weights do not count any more."""
    return frozenset(
        setting.site
        for _, setting in state.modes.starting(LOADED)
        if setting.value is True and setting.site is not None
    )


def loaded_if_given(state: State) -> frozenset[tuple[Site, str]]:
    """The same where an option is given, with the option."""
    return frozenset(
        (setting.site, setting.option)
        for _, setting in state.modes.starting(LOADED)
        if setting.option and setting.site is not None
    )


def loaded_between(before: State, after: State) -> dict[str, Setting]:
    """The modes of the weights that were loaded between two states of a path."""
    held = after.modes.held
    if held is before.modes.held:
        return {}
    return {
        name: setting
        for name, setting in held.items()
        if name.startswith(LOADED) and setting.value is True and before.modes.get(name) != setting
    }


def is_loaded(model: v.Value) -> bool:
    """Whether all weights of a module have been loaded."""
    return isinstance(model, (v.Inst, v.Obj)) and _MARK in model.attrs


def _all_of(args: v.Args, name: str) -> bool:
    if name == "load_state_dict":
        strict = args.get("strict", 1)
        return strict is None or v.truth(strict) is True
    return all(value is None or v.truth(value) is False for value in (args.get(one) for one in _LENIENT))


def are_initial(state: v.Value) -> bool:
    """Whether a state is, or was made from, that of a module whose weights nobody has loaded, and nothing else is in it."""
    return any(
        isinstance(one, v.Obj)
        and (owner := one.attrs.get("@owner")) is not None
        and not is_loaded(owner)
        and CHANGED not in one.attrs
        for one in v.alternatives(state)
    )


def _is_changed(state: v.Value) -> bool:
    return any(isinstance(one, v.Obj) and CHANGED in one.attrs for one in v.alternatives(state))


def _is_from_file(interp: Interp, state: v.Value) -> bool:
    """Whether arrays are what a file holds, or an item of that: others may be computed from initial weights."""
    while isinstance(state, v.Obj) and state.api in _LISTS and len(state.args.pos) == 1:
        state = state.args.pos[0]
    if not isinstance(state, v.Obj):
        return False
    if LOADED_FROM in state.attrs or state.api in LOADING:
        return True
    return any(interp.kb.role(state.api, name) is not None for name in ("reads-data", "reads-arrays"))


def _is_settled(interp: Interp, state: v.Value) -> bool:
    """Whether a state that another module has is a loaded one on every path that comes here."""
    modes = interp.state.modes
    for one in v.alternatives(state):
        owner = one.attrs.get("@owner") if isinstance(one, v.Obj) and CHANGED not in one.attrs else None
        if owner is None:
            continue
        seen: dict[v.Value, None] = {}
        _reach(interp, owner, seen, False)
        for part in seen:
            site = made_at(part) if isinstance(part, v.Obj) else None
            if site is not None and (known := modes.get(_mode(site))) is not None and known.value is not True:
                return False
    return True


def _mode(site: Site) -> str:
    return f"{LOADED}{site.path}:{site.start}"


def all_loaded(interp: Interp, model: v.Value, args: v.Args) -> None:
    """A model was made from a checkpoint, which has all of its weights unless it is asked for less."""
    strict = args.kw.get("strict")
    if (strict is None or v.is_none(strict) or v.truth(strict) is True) and not args.dstar:
        mark_loaded(interp, model, False)


def set_all(interp: Interp, model: v.Value) -> None:
    """All weights of a model are written over."""
    mark_loaded(interp, model, False)


def mark_loaded(interp: Interp, model: v.Value, graphs: bool) -> None:
    """All weights of a model come from a file, here where it runs."""
    if not isinstance(model, (v.Inst, v.Obj)) or interp.uncertain or interp.guessing:
        return
    seen: dict[v.Value, None] = {}
    for meant in (model, *_instead(interp, model)):
        _reach(interp, meant, seen, graphs)
    for one in seen:
        assert isinstance(one, (v.Inst, v.Obj))
        one.attrs[_MARK] = v.TRUE
        site = made_at(one) if isinstance(one, v.Obj) else None
        if site is not None:
            interp.state.modes[_mode(site)] = Setting(True, site)


def _instead(interp: Interp, model: v.Inst | v.Obj) -> list[v.Inst | v.Obj]:
    """What a variable stands for where options are given that have another model made than by default: that one is loaded
    then."""
    return [
        one.value
        for one in others(interp, model)
        if isinstance(one.value, (v.Inst, v.Obj))
        and (
            interp.partings.parted(one.value.birth)
            or is_made_where_given(interp, one.option, one.value.birth)
        )
    ]


def places_left(run: RunView, model: v.Value, graphs: bool = False) -> set[Site] | None:
    """Where a module and all that it has registered were made, without the parts whose weights have been loaded; None
    where a part of it is not known. In ``graphs``, as those of Keras are, the layers are arguments of calls."""
    seen: dict[v.Value, None] = {}
    _reach(run, model, seen, graphs)
    left: set[Site] = set()
    any_made = False
    for one in seen:
        if isinstance(one, v.Inst):
            if not is_loaded(one) and any(held is v.UNKNOWN for held in one.attrs.values()):
                return None
        elif isinstance(one, v.Obj) and (site := made_at(one)) is not None:
            any_made = True
            if not is_loaded(one):
                left.add(site)
    return left if any_made else None


def places_within(run: RunView, module: v.Value) -> set[Site]:
    """Where a module and all that it has registered, or wraps, were made."""
    sites = (made_at(one) for one in layers_within(run, module))
    return {site for site in sites if site is not None}


def layers_within(run: RunView, module: v.Value) -> list[v.Obj]:
    """The modules of libraries, and the parameters, that a module has registered, or wraps, with itself."""
    seen: dict[v.Value, None] = {}
    _reach(run, module, seen, True)
    return [one for one in seen if isinstance(one, v.Obj)]


def _reach(interp: RunView, value: v.Value, seen: dict[v.Value, None], graphs: bool) -> None:
    """A module, and all modules and parameters that it has registered."""
    while isinstance(value, v.Member):
        # A part of a module of a library.
        value = value.owner
    if value in seen or not isinstance(value, (v.Inst, v.Obj)):
        return
    seen[value] = None
    for held in _held(interp, value, graphs):
        for one in v.alternatives(held):
            _reach(interp, one, seen, graphs)


def _held(interp: RunView, value: v.Inst | v.Obj, graphs: bool) -> Iterator[v.Value]:
    tracks = isinstance(value, v.Inst) and _is_keras_layer(interp, value)
    for name, held in list(value.attrs.items()):
        if not name.startswith("@"):
            for one in _spread(held) if tracks else v.alternatives(held):
                # Nothing by the default of an option: what stands there if it is given is a part, too.
                given = v.alternatives(one.instead) if isinstance(one, v.Lit) and one.instead else (one,)
                yield from (each for each in given if _registers(interp, each))
    if isinstance(value, v.Obj):
        holder = interp.kb.role(value.api, "holds")
        if value.api in CONTAINERS:
            yield from parts(value)
        elif graphs and value.type != TENSOR:
            yield from _given(value)
            yield from added(value)
        elif holder is not None:
            yield value.args.get(holder.arg or "data", holder.pos or 0) or v.UNKNOWN


def _is_keras_layer(interp: RunView, value: v.Inst) -> bool:
    """Whether an instance is a layer or a model of Keras, whose parts are also those in its lists and mappings."""
    kb = interp.kb
    return any(kb.role(kb.canonical(base), "takes-mode") is not None for base in value.cls.external_bases())


def _spread(value: v.Value, depth: int = 0) -> Iterator[v.Value]:
    """What a list or a mapping holds, and all other values themselves."""
    inner = (
        value.elts
        if isinstance(value, v.Items)
        else value.items.values()
        if isinstance(value, v.Mapping)
        else None
    )
    if inner is None or depth == _MOST_NESTED:
        yield from v.alternatives(value)
        return
    for one in list(inner):
        yield from _spread(one, depth + 1)


def _given(value: v.Obj) -> Iterator[v.Value]:
    """The layers that a model of Keras is made from, and those that they are called with."""
    stack = [*value.args.values(), *([value.owner] if value.owner is not None else [])]
    while stack:
        one = stack.pop()
        if isinstance(one, v.Items):
            stack += one.elts
        else:
            yield one


def _registers(interp: RunView, value: v.Value) -> bool:
    """Whether a module takes a value of an attribute for a part of it. Lists and plain tensors are none."""
    if isinstance(value, v.Member):
        return isinstance(value.owner, v.Obj) and is_module(interp, value.owner)
    if isinstance(value, v.Inst):
        bases = value.cls.external_bases()
        named = any("Module" in base or makes_module(interp, interp.kb.canonical(base)) for base in bases)
        torch = named or value.cls.find("forward") is not None or container_of(value) is not None
        return torch or _is_keras_layer(interp, value)
    if not isinstance(value, v.Obj):
        return False
    return value.type != TENSOR or interp.kb.role(value.api, "holds") is not None
