"""Containers of modules: what iterating or indexing an ``nn.ModuleList``, ``nn.ModuleDict`` or ``nn.Sequential`` gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.library_modules import is_module

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_LISTS = ("torch.nn.ModuleList", "torch.nn.ParameterList")
_DICTS = ("torch.nn.ModuleDict", "torch.nn.ParameterDict")
SEQUENTIAL = "torch.nn.Sequential"
CONTAINERS = frozenset({*_LISTS, *_DICTS, SEQUENTIAL})
BASE = "base class"
LAYER = "@layer"
"""Under this name, which no attribute has, an instance keeps what the constructor of its library base gave."""
DRAWING = "@drawing"
"""Under this name it keeps that of a library module that draws random numbers when it is called."""
NAMELESS = "added part"
"""Under this name, which no attribute has, a module of the project keeps the parts that it was given under unknown names."""
_ADDED = "@added"
_REPLACED = "@replaced"
_IN_ORDER = "@in order"
_ROUND = "@round"
"""Attribute of a module: the loop that makes one in each of its rounds, of which only one is run."""
MOST = 64
"""So many modules of a container are known at most."""
_DEEPEST = 3


def parts(value: v.Obj) -> list[v.Value]:
    """The modules that are known to be in a container, in their order."""
    if value.api not in CONTAINERS:
        return []
    given, names = value.args.pos, _names(value)
    if value.api in _LISTS:
        first = value.args.get("modules", 0)
        given = first.elts if isinstance(first, v.Items) else parts(first) if isinstance(first, v.Obj) else []
    elif names is not None:
        given = list(names.items.values())
    elif value.api in _DICTS:
        given = []
    added = value.attrs.get(_ADDED)
    held = [*given, *added.elts] if isinstance(added, v.Items) else given
    replaced = value.attrs.get(_REPLACED)
    if isinstance(replaced, v.Mapping):
        held = [replaced.items.get(at, one) for at, one in enumerate(held)]
    return held


def replace(container: v.Obj, index: v.Value, new: v.Value, surely: bool) -> None:
    """``modules[index] = new``, where it is known which module that is."""
    held = parts(container)
    at = index.value if isinstance(index, v.Lit) and type(index.value) is int else None
    if at is None or not -len(held) <= at < len(held):
        return
    before = container.attrs.get(_REPLACED)
    known = before.items if isinstance(before, v.Mapping) else {}
    now = new if surely else v.join((held[at], new))
    container.attrs[_REPLACED] = v.Mapping({**known, at % len(held): now})


def known_layers(value: v.Obj) -> list[v.Value] | None:
    """The layers of a library that a list of modules is made of, where these are all, and none is made by a loop."""
    first = value.args.get("modules", 0) if value.api in _LISTS else None
    if not isinstance(first, v.Items) or first.open or not value.attrs.keys().isdisjoint((_ADDED, _REPLACED)):
        return None
    known = all(isinstance(one, v.Obj) and _ROUND not in one.attrs for one in first.elts)
    return first.elts if first.elts and known else None


def in_places(value: v.Value, count: int) -> list[v.Value] | None:
    """The modules of a list of modules that is unpacked into so many variables: those that are known are all of them where
    they are as many."""
    container = container_of(value)
    held = parts(container) if container is not None and container.api not in _DICTS else []
    return held if len(held) == count else None


def made_in_round(interp: Interp, module: v.Obj | v.Inst) -> None:
    """Note of a module that a loop makes one in each round, where only one round of it is run."""
    loop = interp.loops.repeated(interp.repeating)
    if loop:
        module.attrs[_ROUND] = v.Lit(loop)


def keep_order(value: v.Value) -> None:
    """Note of a container that the modules which are known of it are in their order, with none between them."""
    container = container_of(value)
    if container is not None:
        container.attrs[_IN_ORDER] = v.TRUE


def is_in_order(container: v.Obj) -> bool:
    """Whether a container calls the modules that are known of it one after another."""
    return not container.args.star or _IN_ORDER in container.attrs


def is_known(container: v.Obj) -> bool:
    """Whether it is known what a container was made with. What was added to it is known to be there, but may be more."""
    first = container.args.get("modules", 0) if container.api != SEQUENTIAL else None
    return is_in_order(container) and (
        first is None or isinstance(first, v.Items | v.Mapping) or is_made_of(first)
    )


def is_made_of(value: v.Value) -> bool:
    """Whether a value is a container that is known in this way."""
    inner = container_of(value)
    return inner is not None and is_known(inner)


def rounds(container: v.Obj) -> list[tuple[list[v.Value], bool]]:
    """The modules in a container, in their order, and together those that a round of a loop has added: whether there may
    be more such rounds."""
    found: list[tuple[list[v.Value], bool]] = []
    own, last = _loop_of(container), None
    for part in parts(container):
        loop = _loop_of(part)
        if found and loop is not None and loop == last:
            found[-1][0].append(part)
        else:
            found.append(([part], loop not in (None, own)))
        last = loop
    return found


def _loop_of(value: v.Value) -> object:
    made = value.attrs.get(_ROUND) if isinstance(value, v.Obj | v.Inst) else None
    return made.value if isinstance(made, v.Lit) else None


def container_of(value: v.Value) -> v.Obj | None:
    """The container that a value is, or from whose class that of an instance is derived."""
    base = value.attrs.get(BASE) if isinstance(value, v.Inst) else value
    return base if isinstance(base, v.Obj) and base.api in CONTAINERS else None


def layer_behind(value: v.Value) -> v.Obj | None:
    """The layer without weights of a library from whose class that of an instance is derived."""
    base = value.attrs.get(LAYER) if isinstance(value, v.Inst) else None
    return base if isinstance(base, v.Obj) else None


def any_part(value: v.Obj) -> v.Value:
    """One of the modules in a container: of many, one of each kind."""
    kinds: dict[Any, v.Value] = {}
    known = parts(value)
    for part in [*known, *(_unknown(value) if known else ())]:
        for one in v.alternatives(part):
            kinds.setdefault(_kind(one), one)
    return v.join(list(kinds.values())[: v.MAX_CANDIDATES], v.MAX_CANDIDATES)


def _unknown(container: v.Obj) -> list[v.Value]:
    """What stands for the modules with which a container may be made besides those that are known."""
    return [] if is_known(container) else [v.UNKNOWN]


def _kind(part: v.Value, depth: int = 0) -> Any:
    """What modules that are alike have in common: their class, and that of the modules in them."""
    if not isinstance(part, v.Obj):
        return part.cls if isinstance(part, v.Inst) else part
    held = parts(part) if depth < _DEEPEST else []
    return part.api, *(_kind(one, depth + 1) for one in held)


def _names(value: v.Obj) -> v.Mapping | None:
    """The modules that a container was given under names, all at once."""
    given = value.args.pos
    first = value.args.get("modules", 0) if value.api in _DICTS else given[0] if len(given) == 1 else None
    return first if isinstance(first, v.Mapping) else None


def named(value: v.Obj, name: object) -> v.Value | None:
    """The module that a container was given under a name: an item of an ``nn.ModuleDict``, and an attribute of it and of an
    ``nn.Sequential``."""
    return by_name(value).get(name)


def by_name(value: v.Obj) -> Mapping[Any, v.Value]:
    """The modules that a container was given under names."""
    names = _names(value)
    return names.items if names is not None else {}


def is_dict(value: v.Value) -> bool:
    """Whether a container has its modules under names."""
    return isinstance(value, v.Obj) and value.api in _DICTS


def put(owner: v.Obj, new: list[v.Value]) -> None:
    """Add modules to a container."""
    known = owner.attrs.get(_ADDED)
    before = known.elts if isinstance(known, v.Items) else []
    owner.attrs[_ADDED] = v.Items("l", [*before, *new][:MOST], True)


def add(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``modules.append(m)``, ``modules.extend(ms)``, ``modules.add_module(name, m)``, ``modules.update(ms)``."""
    container = container_of(owner)
    if container is None:
        return None
    last = args.pos[-1] if args.pos else v.UNKNOWN
    if name == "extend" and isinstance(last, v.Items):
        put(container, last.elts)
    elif name == "update" and isinstance(last, v.Mapping):
        put(container, list(last.items.values()))
    else:
        put(container, [last])
    return owner


def layers(model: v.Obj, depth: int = 0) -> list[v.Obj]:
    """The layers of a library that a model was made with or given later, and theirs; itself first."""
    found = [model]
    later = model.attrs.get(_ADDED)
    given = [*model.args.values(), *([later] if later is not None else [])]
    for value in given if depth < _DEEPEST else ():
        for one in value.elts if isinstance(value, v.Items) else (value,):
            if isinstance(one, v.Obj):
                found += layers(one, depth + 1)
    return found[:MOST]


def added(model: v.Obj) -> list[v.Value]:
    """The layers that a model was given later."""
    later = model.attrs.get(_ADDED)
    return later.elts if isinstance(later, v.Items) else []


_DRAWING = frozenset({"dropout", "init"})
"""Kinds of what layers draw, when they are called or when they are built."""


def add_layer(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``model.add(layer)``: those are kept that draw, those that may have others in them, and the program's own."""
    layer = args.get("layer", 0)
    if isinstance(owner, v.Obj) and isinstance(layer, v.Inst):
        put(owner, [layer])
    if isinstance(owner, v.Obj) and isinstance(layer, v.Obj):
        if layer.api == owner.api or any(entry.kind in _DRAWING for entry in interp.kb.rng(layer.api)):
            put(owner, [layer])
    return None


def children(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``module.children()``, ``.modules()`` and ``.named_children()``, of containers and of project modules."""
    held: list[v.Value] = []
    container = container_of(owner)
    if container is not None:
        held = [*parts(container), *_unknown(container)]
    elif isinstance(owner, v.Inst):
        held = [one for value in owner.attrs.values() for one in v.alternatives(value) if _is_module(one)]
    elif name.endswith("children") and isinstance(whole := _whole(owner), v.Obj) and is_module(interp, whole):
        # Parts of a model of a library, as its attributes are.
        held = [v.Member(whole, name)]
    if not held:
        return None
    if name.startswith("named_"):
        held = [v.Items("t", [v.UNKNOWN, one]) for one in held]
    known = container is owner and not container.args.star and name == "children"
    return v.Items("l", held, not known)


def _whole(part: v.Value) -> v.Value:
    """What a value is an attribute of, or an attribute of an attribute."""
    while isinstance(part, v.Member):
        part = part.owner
    return part


def _is_module(value: v.Value) -> bool:
    if isinstance(value, v.Inst):
        return value.cls.find("forward") is not None
    return isinstance(value, v.Obj) and value.api.startswith("torch.nn.") and value.type == value.api


def of_dict(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``modules.items()`` and ``modules.values()`` of an ``nn.ModuleDict``."""
    container = container_of(owner)
    if container is None:
        return None
    one = any_part(container)
    return v.Items("l", [v.Items("t", [v.UNKNOWN, one]) if name == "items" else one], True)


CONTAINER_METHODS = {
    **{
        f"{api}.{name}": add
        for api in CONTAINERS
        for name in ("append", "extend", "insert", "add_module", "update")
    },
    "tf.keras.Sequential.add": add_layer,
    **{f"{api}.{name}": of_dict for api in _DICTS for name in ("items", "values")},
    **{f"*.{name}": children for name in ("children", "named_children")},
}
