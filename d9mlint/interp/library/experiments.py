"""Experiments that keep a configuration and the function that they run when they are started: of sacred."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from d9mlint.interp import rng
from d9mlint.interp import values as v
from d9mlint.interp.data import is_entropy
from d9mlint.interp.library.config_files import config_value, load_literal
from d9mlint.interp.library.options import as_default, start_otherwise
from d9mlint.interp.library.own_paths import literal_path

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RngEntry, Role, RoleEntry

_CONFIGURATION = "@configuration"
_NAMED = "@named"
_MAIN = "@main"


def roles(interp: Interp, decorator: v.Member) -> dict[Role, RoleEntry]:
    """What a method of a library's object, as a decorator, does with functions."""
    owner = decorator.owner
    return interp.kb.by_role(f"{owner.type}.{decorator.name}") if isinstance(owner, v.Obj) else {}


def configure(interp: Interp, api: str, owner: v.Value, args: v.Args) -> None:
    """``experiment.add_config(seed=1)``, of a mapping or of a file, and ``experiment.add_named_config("fast", seed=1)``."""
    roles = interp.kb.by_role(api)
    if "configures" in roles:
        take(interp, owner, _given(interp, args))
    elif (named := roles.get("names-configuration")) is not None:
        name = args.get(named.arg, named.pos)
        if isinstance(name, v.Lit):
            rest = {key: value for key, value in args.kw.items() if key != named.arg}
            positional = args.pos if named.arg in args.kw else args.pos[1:]
            keep_named(
                owner, str(name.value), _given(interp, v.Args(positional, rest, args.star, args.dstar))
            )


def _given(interp: Interp, args: v.Args) -> v.Mapping:
    """A configuration as keyword arguments, a mapping or a file."""
    given = v.Mapping(dict(args.kw), args.star or args.dstar)
    first = args.pos[0] if args.pos else None
    path = literal_path(first)
    if path is not None:
        first = config_value(load_literal(interp, path), path)
    if isinstance(first, v.Mapping):
        given = v.Mapping({**first.items, **given.items}, given.open or first.open)
    elif first is not None:
        given.open = True
    return given


def take(interp: Interp, owner: v.Value, given: v.Mapping) -> None:
    """An experiment is given a part of its configuration."""
    kept = configuration(owner)
    if kept is None:
        return
    for key, value in given.items.items():
        kept.items[key] = v.UNKNOWN if interp.branching else value
    kept.open = kept.open or given.open


def configuration(owner: v.Value) -> v.Mapping | None:
    """What an experiment was configured with so far; None for what is none."""
    if not isinstance(owner, v.Obj):
        return None
    kept = owner.attrs.get(_CONFIGURATION)
    if not isinstance(kept, v.Mapping):
        kept = owner.attrs[_CONFIGURATION] = v.Mapping({})
    return kept


def keep_named(owner: v.Value, name: str, given: v.Mapping) -> None:
    """An experiment has a configuration that may be chosen by its name."""
    if isinstance(owner, v.Obj):
        kept = owner.attrs.get(_NAMED)
        owner.attrs[_NAMED] = v.Mapping({**(kept.items if isinstance(kept, v.Mapping) else {}), name: given})


def chosen_by(name: str) -> str:
    """What the command line has to say for a configuration to be chosen."""
    return f"with {name}"


def given_to_hook(owner: v.Value) -> v.Mapping:
    """The configuration with which functions are called that change it."""
    kept = configuration(owner)
    return v.Mapping(dict(kept.items) if kept is not None else {}, open=True)


def change(interp: Interp, owner: v.Value, given: v.Mapping, as_given: int, changes: v.Value) -> None:
    """A function gives what it changes of the configuration of an experiment; ``as_given`` is the version of the
    configuration when it was given to it."""
    if v.is_none(changes) is not True and not (changes is given and given.version == as_given):
        take(interp, owner, changes if isinstance(changes, v.Mapping) else v.Mapping({}, open=True))


def name_main(owner: v.Value, func: v.Func) -> None:
    """A function becomes the one that an experiment runs."""
    if isinstance(owner, v.Obj):
        owner.attrs[_MAIN] = func


def main_of(owner: v.Value) -> v.Func | None:
    """The function that an experiment runs."""
    found = owner.attrs.get(_MAIN) if isinstance(owner, v.Obj) else None
    return found if isinstance(found, v.Func) else None


def start(
    interp: Interp, owner: v.Value, role: RoleEntry, args: v.Args, entries: tuple[RngEntry, ...], node: Any
) -> None:
    """An experiment is started: it seeds by its configuration, and runs its function; and so with each configuration that
    may be chosen when the program is started."""
    for part in _parts(interp, owner):
        _seed_part(interp, part, entries, node)
    started = _started_with(owner, role, args)
    for name, given in _choices(owner, role, args).items():
        chosen = v.Args([], {**started.kw, **_items(given)}, dstar=started.dstar or given.open)
        start_otherwise(interp, chosen_by(name), partial(_run, interp, owner, chosen, entries, node))
    _run(interp, owner, started, entries, node)


def _run(
    interp: Interp, owner: v.Value, configuration: v.Args, entries: tuple[RngEntry, ...], node: Any
) -> None:
    """An experiment seeds, and runs its function, whose parameters are parts of the configuration."""
    rng.apply(interp, entries, configuration, node)
    func = main_of(owner)
    if func is not None:
        known = {p.name: configuration.kw[p.name] for p in func.fn.params if p.name in configuration.kw}
        interp.call(func, v.Args([], known, dstar=True), node)


def _parts(interp: Interp, owner: v.Value, depth: int = 0) -> list[v.Obj]:
    """What an experiment is made of that has a configuration, with its parts."""
    role = interp.kb.role(owner.api, "has-parts") if isinstance(owner, v.Obj) and depth < _DEPTH else None
    if role is None or not isinstance(owner, v.Obj):
        return []
    given = owner.args.get(role.arg, role.pos)
    found = [one for one in given.elts if isinstance(one, v.Obj)] if isinstance(given, v.Items) else []
    return [inner for part in found for inner in (part, *_parts(interp, part, depth + 1))]


_DEPTH = 4


def _seed_part(interp: Interp, part: v.Obj, entries: tuple[RngEntry, ...], node: Any) -> None:
    """A part draws from generators of its own, whose seed is in its configuration or comes from that of the whole."""
    kept = configuration(part)
    for entry in entries:
        seed = kept.items.get(entry.seed_arg) if kept is not None else None
        if seed is not None and is_entropy(seed):
            rng.apply(interp, (entry,), v.Args([], {entry.seed_arg: seed}), node)


def _items(given: v.Mapping) -> dict[str, v.Value]:
    """What a configuration holds."""
    return {str(key): as_default(value, str(key)) for key, value in given.items.items()}


def _named(owner: v.Value) -> dict[str, v.Mapping]:
    """The configurations that may be chosen, by their names."""
    kept = owner.attrs.get(_NAMED) if isinstance(owner, v.Obj) else None
    found = kept.items.items() if isinstance(kept, v.Mapping) else ()
    return {str(name): given for name, given in found if isinstance(given, v.Mapping)}


def _choices(owner: v.Value, role: RoleEntry, args: v.Args) -> dict[str, v.Mapping]:
    """The configurations of which who starts the program may choose one."""
    if role.more or args.get(role.arg, role.pos) is not None or args.star or args.dstar:
        return {}
    return dict(list(_named(owner).items())[: v.MAX_ALTERNATIVES])


def _chosen(owner: v.Value, role: RoleEntry, args: v.Args) -> list[v.Mapping] | None:
    """The configurations that a call chooses; None where they are not known."""
    named = _named(owner)
    chosen: list[v.Mapping] = []
    for one in role.more:
        given = args.kw.get(one)
        if given is None or v.is_none(given) is True:
            continue
        names = given.elts if isinstance(given, v.Items) and not given.open else None
        found = (
            [named.get(str(name.value)) for name in names if isinstance(name, v.Lit)]
            if names is not None
            else []
        )
        known = [mapping for mapping in found if mapping is not None]
        if names is None or len(known) != len(names):
            return None
        chosen += known
    return chosen


def _started_with(owner: v.Value, role: RoleEntry, args: v.Args) -> v.Args:
    """The configuration with which an experiment is started, as arguments: its own, and what the call changes of it."""
    kept = configuration(owner)
    items = _items(kept) if kept is not None else {}
    known = kept is not None and not kept.open and not (args.star or args.dstar)
    changed = args.get(role.arg, role.pos) if role.arg else None
    chosen = _chosen(owner, role, args)
    if chosen is None:
        return v.Args([], {}, dstar=True)
    for given in chosen:
        items.update({str(key): value for key, value in given.items.items()})
        known = known and not given.open
    if isinstance(changed, v.Mapping):
        items.update({str(key): value for key, value in changed.items.items()})
        known = known and not changed.open
    elif changed is not None and v.is_none(changed) is not True:
        items, known = {}, False
    return v.Args([], items, dstar=not known)
