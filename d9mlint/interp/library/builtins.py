"""Models of builtins and libraries: what their calls give, where the abstract run needs to know.

A model returns the result of a call, or None to let the general treatment (an ``Obj``) stand. Everything
that is a fact about random numbers or determinism lives in the knowledge base, not here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeGuard

from d9mlint.base.options import A_GPU
from d9mlint.interp import order_groups, rng, shares, submodules
from d9mlint.interp import values as v
from d9mlint.interp.accepting import are_keywords
from d9mlint.interp.assignment import set_attribute
from d9mlint.interp.containers import CONTAINER_METHODS, MOST, NAMELESS
from d9mlint.interp.context import CALLED_BACK, EACH_ELEMENT
from d9mlint.interp.data import (
    BUFFER,
    DIFFERS_BY,
    GIVEN_LATER,
    MODULE,
    TENSOR,
    UNKNOWN_KEY,
    are_mappings,
    at_unknown_key,
    changed,
    chosen_in_module,
    derive,
    differing,
    element,
    entropy,
    happens_once,
    is_counted,
    is_entropy,
    is_graph_dataset,
    keep_items,
    member_by_name,
    position,
    put_on_device,
    takes_away,
    unpacked,
)
from d9mlint.interp.device_names import ACCELERATORS
from d9mlint.interp.devices import runner
from d9mlint.interp.emptiness import is_empty
from d9mlint.interp.events import ClearedEvent, IterationEvent
from d9mlint.interp.given_instead import note as note_instead
from d9mlint.interp.given_instead import others
from d9mlint.interp.kinds import (
    class_of,
    has_weight,
    instance_of,
    is_abstract,
    is_class,
    kind_of_container,
    stays_instance,
    subclass_of,
)
from d9mlint.interp.known_attributes import has
from d9mlint.interp.library import given_files, own_paths, records, reflection
from d9mlint.interp.library import options as opt
from d9mlint.interp.library.commands import COMMAND_METHODS
from d9mlint.interp.library.config_files import STORED
from d9mlint.interp.library.environments import ENVIRONMENT_MODELS
from d9mlint.interp.library.field_copies import FIELD_METHODS, FIELD_MODELS
from d9mlint.interp.library.hooks import HOOK_METHODS
from d9mlint.interp.library.keys import KEY_MODELS
from d9mlint.interp.library.loaders import LOADER_MODELS
from d9mlint.interp.library.own_gradients import SAVING_METHODS
from d9mlint.interp.library.processes import PROCESS_METHODS, PROCESS_MODELS
from d9mlint.interp.library.python_files import PYTHON_FILE_METHODS, PYTHON_FILE_MODELS
from d9mlint.interp.library.queues import QUEUE_METHODS
from d9mlint.interp.library.reflection import (
    REFLECTION_METHODS,
    REFLECTION_MODELS,
    is_registry,
    modules_like,
    modules_with,
    register,
    registered,
)
from d9mlint.interp.library.rows import ROW_MODELS
from d9mlint.interp.library.set_by_name import (
    as_defaults,
    may_be_none,
    scope_of,
    set_in_object,
    set_in_scope,
    update_scope,
)
from d9mlint.interp.library.sets import SET_MODELS
from d9mlint.interp.library.settings_files import SETTINGS_METHODS
from d9mlint.interp.library.strings import STRING_METHODS, substituted
from d9mlint.interp.library.weights import all_loaded, load
from d9mlint.interp.library_modules import is_module
from d9mlint.interp.methods import NEW
from d9mlint.interp.missing_items import found_or, is_there, take_out, take_over
from d9mlint.interp.named_sizes import assignments
from d9mlint.interp.order_inside import order_inside, sets_in
from d9mlint.interp.order_kinds import HASHING, counted, is_text, numbers_of, sample, some_of
from d9mlint.interp.places import running
from d9mlint.interp.shapes import NUMBER, form
from d9mlint.interp.tensors import LOADED_AS, READ, detached, freeze, loaded_as, require
from d9mlint.interp.text import written
from d9mlint.interp.unbound import elements_given
from d9mlint.interp.usage import set_training
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

Model = Callable[["Interp", str, v.Args, Any], "v.Value | None"]
MethodModel = Callable[["Interp", v.Value, str, v.Args, Any], "v.Value | None"]


def _first(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    return args.pos[0] if args.pos else next(iter(args.kw.values()), None)


def _copied(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``copy.copy(x)`` and ``copy.deepcopy(x)``: what is done to the copy of an instance is not done to that."""
    found = _first(interp, api, args, node)
    deep = api.endswith("deepcopy")
    if isinstance(found, v.Inst) or (deep and isinstance(found, v.Obj)):
        return _copy_of(interp, found, deep, {})
    return found


def copied_instance(interp: Interp, inst: v.Inst) -> v.Inst:
    """A copy of an instance and of those in its parts."""
    copied = _copy_of(interp, inst, True, {})
    return copied if isinstance(copied, v.Inst) else inst


def _copy_of(interp: Interp, value: v.Value, deep: bool, made: dict[v.Value, v.Value]) -> v.Value:
    """A copy of an instance or of a module of a library, and with ``deep`` of those in its parts."""
    if not isinstance(value, (v.Inst, v.Obj, v.Items)):
        return value
    if value in made:
        return made[value]
    copied: v.Value = value
    if isinstance(value, v.Inst):
        copied = made[value] = v.Inst(value.cls, value.args, value.node)
        _copy_attributes(interp, value, copied, deep, made)
    elif isinstance(value, v.Obj) and is_module(interp, value):
        args = value.args
        given = [_copy_of(interp, one, deep, made) for one in args.pos]
        named = {name: _copy_of(interp, one, deep, made) for name, one in args.kw.items()}
        copied = v.Obj(value.api, value.type, v.Args(given, named, args.star, args.dstar), value.node)
        made[value] = copied
        copied.file, copied.package, copied.owner = value.file, value.package, value.owner
        copied.data, copied.likely, copied.something = value.data, value.likely, value.something
        _copy_attributes(interp, value, copied, deep, made)
    elif isinstance(value, v.Items) and any(isinstance(one, (v.Inst, v.Obj)) for one in value.elts):
        parts = [_copy_of(interp, one, deep, made) for one in value.elts]
        if any(new is not old for new, old in zip(parts, value.elts, strict=True)):
            copied = made[value] = v.Items(value.kind, parts, value.open)
            copied.order, copied.maker = value.order, value.maker
    if copied is not value and isinstance(copied, (v.Inst, v.Obj)):
        # Where an option is given, it is a copy of what stands in the place of the value then.
        for one in others(interp, value):
            note_instead(interp, copied, _copy_of(interp, one.value, deep, made), one.option)
    return copied


def _copy_attributes(
    interp: Interp,
    value: v.Inst | v.Obj,
    copied: v.Inst | v.Obj,
    deep: bool,
    made: dict[v.Value, v.Value],
) -> None:
    for name, one in list(value.attrs.items()):
        copied.attrs[name] = _copy_of(interp, one, deep, made) if deep else one


def _convert(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``int(x)``, ``float(x)``, ``str(x)`` ...: literals are converted, entropy stays entropy."""
    first = args.pos[0] if args.pos else None
    if first is None:
        return None
    if isinstance(first, v.Obj) and is_entropy(first):
        return _number_of(first, api) if api == NUMBER and is_text(interp, first, None) else first
    if isinstance(first, v.Lit) and first.value is not None and len(args.pos) == 1:
        kinds: dict[str, Callable[[Any], Any]] = {
            "int": int,
            "float": float,
            "str": str,
            "bool": bool,
            "abs": abs,
        }
        kind = kinds.get(api.rpartition(".")[2])
        try:
            return v.Lit(kind(first.value), first.option) if kind else None
        except (TypeError, ValueError, OverflowError):
            return None
    if isinstance(first, v.AnyOf) and any(is_entropy(x) for x in first.values):
        return first
    texts = api == v.TEXT and len(args.pos) == 1 and isinstance(first, v.AnyOf)
    if texts and all(map(_is_text, v.alternatives(first))):
        return first
    part = (
        shares.share(interp, node.args[0])
        if api == NUMBER and isinstance(node, m.Call) and node.args
        else None
    )
    if part is not None:
        return part
    if api == NUMBER and isinstance(node, m.Call) and _is_read(interp, _given(interp, node.args[:1])):
        return _read_number(interp, args, node)
    return None


def _read_number(interp: Interp, args: v.Args, node: Any) -> v.Obj:
    """A number that stands in a text."""
    number = v.Obj(NUMBER, "", args, node)
    number.file = interp.frame.file
    number.attrs[LOADED_AS] = READ
    return number


def _chosen(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """The largest, or smallest, of numbers that stand in texts."""
    given = args.pos[0] if len(args.pos) == 1 and not args.star else None
    held = given.elts if isinstance(given, v.Items) else []
    if not held or any(loaded_as(one) is not READ for one in held):
        return None
    return _read_number(interp, v.Args([]), node)


def _is_text(value: v.Value) -> bool:
    return isinstance(value, v.Lit) and isinstance(value.value, str)


def _number_of(text: v.Obj, api: str) -> v.Obj:
    """The number that a text which differs from run to run stands for: no text any more."""
    number = v.Obj(api, "", v.Args([text]), text.node)
    number.file, number.data, number.order = text.file, text.data, text.order
    number.attrs[DIFFERS_BY] = text.attrs.get(DIFFERS_BY, text)
    return number


def _given(interp: Interp, parts: list[m.Expr]) -> list[m.Expr]:
    """Expressions, or what the running function assigns to them where they are variables."""
    assigned = [one for part in parts if isinstance(part, m.Name) for one in assignments(interp, part.id)]
    return [*parts, *assigned]


def _is_read(interp: Interp, parts: list[m.Expr]) -> bool:
    """Whether an expression takes a part of a text, or the text of a file."""
    for one in nodes(parts):
        func = one.func if isinstance(one, m.Call) else one
        if isinstance(func, m.Name) and (isinstance(one, m.Call) or "." in func.id):
            name = func.id
        elif isinstance(func, m.Attr):
            name = func.name
        else:
            continue
        if interp.kb.role(f"?.{name.rpartition('.')[2]}", "reads-text") is not None:
            return True
        called = interp.value_of(func) if isinstance(one, m.Call) else None
        if isinstance(called, v.Ext) and interp.kb.role(interp.kb.canonical(called.name), "reads-text"):
            return True
    return False


def _hash(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    first = args.pos[0] if args.pos else None
    if isinstance(first, v.Lit) and isinstance(first.value, (int, float, bool)):
        return v.UNKNOWN
    result = v.Obj(HASHING, "", args, node)
    result.file = interp.frame.file
    if first is not None:
        interp.orders.hashed(interp, node, first, result)
    by_place = isinstance(first, v.Inst) and _is_hashed_by_place(first.cls)
    differs = isinstance(first, v.Lit) or (first is not None and differing(first) is not None)
    if by_place or differs or result.order is not None:
        result.data = entropy(interp)
    return result


def _is_hashed_by_place(cls: v.Cls) -> bool:
    """Whether the hash of an object is made of its address: nothing but ``object`` defines one."""
    own = any(cls.find(name) is not None for name in ("__hash__", "__eq__"))
    return not own and not cls.fields and all(base == "object" for base in cls.external_bases())


def map_each(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``map(hash, names)``: the hash of each element; ``map(set, rows)``: a set of each, ``map(list, sets)``: what is in
    each set, ``map(list, zip(*rows))``: a list of each column; ``map(renamed, table.items())``: what a function makes of
    each entry of a known table; None for what calls another function, and for other calls."""
    if api != "builtins.map" or len(args.pos) != 2 or args.star:
        return None
    function, given = args.pos
    if isinstance(function, v.Func | v.Partial) and (_are_entries(given) or _are_tensors(given)):
        with interp.within(CALLED_BACK, EACH_ELEMENT):
            return v.Items("l", [interp.call(function, v.Args([one]), node) for one in given.elts])
    if isinstance(function, v.Func | v.Partial) and _is_data(given):
        with interp.within(CALLED_BACK, EACH_ELEMENT):
            return v.Items("l", [interp.call(function, v.Args([element(interp, given)]), node)], open=True)
    if isinstance(function, v.Ext) and function.name == HASHING:
        found = sample(interp, given, _written(node, 1))
        one = found[0] if found else element(interp, given)
        return v.Items("l", [_hash(interp, HASHING, v.Args([one]), node) or v.UNKNOWN], True)
    if isinstance(function, v.Ext) and _are_rows(given) and function.name in _COPYING:
        made_of = (
            _sequence(_COPYING[function.name])(interp, function.name, v.Args([one]), None)
            for one in given.elts
        )
        return v.Items("l", [one or v.UNKNOWN for one in made_of])
    if isinstance(function, v.Ext) and function.name in _SETS:
        inner = element(interp, given)
        if isinstance(inner, v.Items) and is_empty(interp, inner):
            return None
        made = _sequence("s")(interp, function.name, v.Args([inner]), None)
        return v.Items("l", [made], True) if made is not None else None
    if isinstance(function, v.Ext | v.Member) and sets_in(given) and _keeps_order(interp, function):
        order = order_inside(interp, given, node)
        if order is not None:
            return v.Items("l", [interp.orders.carried(v.Obj("builtins.list"), order)], True)
    return None


_COPYING = {"builtins.list": "l", "builtins.tuple": "t"}


def _are_rows(value: v.Value) -> TypeGuard[v.Items]:
    """Whether a value has a few lists, of which all are known, as the columns of some rows."""
    if not isinstance(value, v.Items) or value.open or value.kind == "s" or not 0 < len(value.elts) <= _MOST:
        return False
    return all(isinstance(one, v.Items) for one in value.elts)


def _is_data(value: v.Value) -> bool:
    """Whether a value is a batch that was loaded, or a list of parts of one."""
    if isinstance(value, v.Items):
        return bool(value.open and value.kind != "s" and value.elts) and all(map(detached, value.elts))
    return isinstance(value, v.Obj) and detached(value)


def _are_entries(value: v.Value) -> TypeGuard[v.Items]:
    """Whether a value has the entries of a small table, of which all are known: texts, each with what stands behind it."""
    if not isinstance(value, v.Items) or value.open or value.kind == "s" or not 0 < len(value.elts) <= _MOST:
        return False
    return all(
        isinstance(one, v.Items) and len(one.elts) == 2 and isinstance(one.elts[0], v.Lit)
        for one in value.elts
    )


def _are_tensors(value: v.Value) -> TypeGuard[v.Items]:
    """Whether a value has a few elements, of which all are known: tensors, and containers of these or of others."""
    if not isinstance(value, v.Items) or value.open or value.kind == "s" or not 0 < len(value.elts) <= _MOST:
        return False
    return all(
        isinstance(one, (v.Items, v.Mapping)) or (isinstance(one, v.Obj) and one.type == TENSOR)
        for one in value.elts
    )


_MOST = 16
"""Of tables with more entries, and of modules with more names, these are not followed one by one."""
_SETS = frozenset({"builtins.set", "builtins.frozenset"})


def _keeps_order(interp: Interp, function: v.Ext | v.Member) -> bool:
    """Whether what a function of a library gives is in the order of its argument."""
    if isinstance(function, v.Ext):
        entry = interp.kb.order(interp.kb.canonical(function.name))
    else:
        entry = interp.kb.order(f"?.{function.name}", True)
    return entry is not None and entry.role == "carry"


def _sequence(kind: str) -> Model:
    def model(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
        if not args.pos:
            return v.Items(kind, [], False)
        first = args.pos[0]
        interp.listeners.tell(IterationEvent(first))
        if kind == "s" and interp.frame.dispatching:
            # `if isinstance(x, set): return set(...)`: it gives a set to whoever passes one, and nobody is seen to.
            return v.UNKNOWN
        if isinstance(first, v.Items):
            # What is empty may be filled by a later round of the loop that is running, which has to be noted.
            return v.Items(kind, [] if is_empty(interp, first) else list(first.elts), first.open)
        if kind == "s":
            # One of each kind of element: that of a set of numbers has an order.
            written = _written(node)
            found = sample(interp, first, written)
            if isinstance(first, v.Obj) and is_entropy(first):
                for one in found:
                    if isinstance(one, v.Obj):
                        one.data = first.data
                        derive(one, first)
            if order_groups.has_one_value(interp, written, running(interp)):
                return v.Items(kind, found or [v.UNKNOWN], False)
            return v.Items(kind, found, True)
        return None

    return model


def _written(node: Any, place: int = 0) -> m.Expr | None:
    return node.args[place] if isinstance(node, m.Call) and len(node.args) > place else None


def _set_update(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``tokens.update(words)``, ``a.union(b)``: what comes in, and the set that it gives."""
    if not isinstance(owner, v.Items):
        return None
    added: list[v.Value] = []
    if name in ("update", "union", "symmetric_difference"):
        for value in args.pos:
            added += value.elts if isinstance(value, v.Items) else sample(interp, value, _written(node))
        if args.star:
            added += elements_given(interp, node)
    if name == "intersection":
        for at, value in enumerate(args.pos):
            numbers = numbers_of(interp, value, _written(node, at))
            if numbers:
                # What it has in common with numbers are numbers.
                return v.Items("s", numbers, True)
    if name == "update":
        owner.elts = [*owner.elts, *added][:64]
        owner.open = True
        return v.NONE
    return v.Items("s", [*owner.elts, *added][:64], True)


def _defaultdict(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``defaultdict(list)``: a mapping that has more keys than are known."""
    rest = args.rest()
    found = _dict(interp, api, rest, node)
    if isinstance(found, v.Mapping):
        found.open = True
        found.factory = args.pos[0] if args.pos else None
    return found


def _len(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    first = args.pos[0] if args.pos else None
    if isinstance(first, v.Items) and not first.open and first.kind != "s":
        if not first.elts and first.kind == "l" and first.birth < interp.repeating:
            # An earlier round may have filled it.
            return None
        return v.Lit(len(first.elts))
    if isinstance(first, v.Lit) and isinstance(first.value, str | bytes):
        return v.Lit(len(first.value), first.option)
    own = [] if first is None else [method for one in v.alternatives(first) if (method := _own_length(one))]
    if own:
        interp.call(v.candidates(own), v.NO_ARGS, node)
        return None
    return v.Lit(0) if first is not None and is_empty(interp, first) else None


def _own_length(value: v.Value) -> v.Func | None:
    """The method of an object of the project that `len` calls."""
    found = value.cls.find("__len__") if isinstance(value, v.Inst) else None
    return found.bind(value) if isinstance(found, v.Func) else None


def _dict(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    first = args.pos[0] if args.pos else None
    if isinstance(first, v.Obj) and first.api == _SORTED and first.args.pos:
        # What stands behind the keys is the same in any order.
        first = first.args.pos[0] if isinstance(first.args.pos[0], v.Items) else first
    items: dict[Any, v.Value] = {}
    is_open = args.dstar
    if first is not None and are_mappings(first):
        held, more = unpacked(first)
        items.update(held)
        is_open = is_open or more
        if args.dstar:
            may_be_none(items)
    elif isinstance(first, v.Items) and all(isinstance(x, v.Items) and len(x.elts) == 2 for x in first.elts):
        pairs = [x.elts for x in first.elts if isinstance(x, v.Items)]
        is_open = is_open or first.open
        for index, (key, value) in enumerate(pairs):
            items[key.value if isinstance(key, v.Lit) else ("unknown key", index)] = value
    elif isinstance(first, v.Obj) and (named := _side_by_side(interp, first)) is not None:
        items.update(named)
    elif first is not None:
        is_open = True
        keep_items(items, first, node)
        pairs_of = sample(interp, first, None) if isinstance(first, v.Obj | v.Member | v.AnyOf) else []
        if len(pairs_of) == 1 and isinstance(pairs_of[0], v.Items) and len(pairs_of[0].elts) == 2:
            # `dict(zip(words, range(len(words))))`
            items[UNKNOWN_KEY, getattr(node, "start", 0)] = pairs_of[0].elts[1]
    take_over(items, args.kw)
    return v.Mapping(items, is_open)


def _side_by_side(interp: Interp, value: v.Obj) -> dict[str, v.Value] | None:
    """What ``zip(names, values)`` makes a table of, if the names are known: each with its value."""
    names, values = value.args.pos if len(value.args.pos) == 2 and not value.args.star else (None, None)
    if value.api != _ZIP or not isinstance(names, v.Items) or values is None:
        return None
    texts = [one.value for one in names.elts if isinstance(one, v.Lit) and isinstance(one.value, str)]
    if names.open or names.kind == "s" or not texts or len(texts) < len(names.elts):
        return None
    if (
        isinstance(values, v.Items)
        and values.kind != "s"
        and len(values.elts) == len(texts)
        and not values.open
    ):
        return dict(zip(texts, values.elts, strict=True))
    return dict.fromkeys(texts, element(interp, values))


_ZIP = "builtins.zip"
_SORTED = "builtins.sorted"


def _iter(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    first = args.pos[0] if len(args.pos) == 1 else None
    if not isinstance(first, v.Items) or not first.elts or first.order is not None:
        return None
    made = v.Items("l", list(first.elts), True)
    made.maker = first.maker
    return made


def _vars(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    first = args.pos[0] if args.pos else None
    if first is None and not args.star:
        return _locals(interp, api, args, node)
    if isinstance(first, v.Obj):
        return v.Mapping(first.attrs, open=first.type != opt.NAMESPACE)
    if isinstance(first, (v.Inst, v.Ext, v.Mod)):
        return interp.attribute(first, "__dict__", node)
    return first if isinstance(first, v.Mapping) else None


def _locals(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``locals()`` in a function: its variables as they are now, as far as they are known; those of a module elsewhere."""
    frame = interp.frame
    if frame.func is None:
        return None if frame.is_class else _globals(interp, api, args, node)
    return v.Mapping(dict(frame.env.all()), open=v.PERHAPS_MORE)


_MOST_NESTED = 4


def _as_dict(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``dataclasses.asdict(config)``, ``attr.asdict(config)``: the fields of its class, also those of fields."""
    first = args.pos[0] if len(args.pos) == 1 else None
    return _fields_of(first, 0) if isinstance(first, v.Inst) else None


def _fields_of(inst: v.Inst, depth: int) -> v.Mapping | None:
    names = [name for cls in reversed(inst.cls.mro()) for name in cls.fields]
    if not names or depth > _MOST_NESTED:
        return None
    made: dict[Any, v.Value] = {}
    for name in names:
        value = inst.attrs.get(name, v.UNKNOWN)
        inner = _fields_of(value, depth + 1) if isinstance(value, v.Inst) else None
        made[name] = value if inner is None else inner
    return v.Mapping(made, bool(inst.cls.external_bases()))


def _dumped(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``config.model_dump()`` of pydantic, also of some fields."""
    if not isinstance(owner, v.Inst) or owner.cls.find(name) is not None or args.pos or args.dstar:
        return None
    made = _fields_of(owner, 0) if _is_validated(owner.cls) else None
    kept = args.kw.get("include")
    if made is None or (args.kw and (kept is None or len(args.kw) > 1)):
        return None
    if kept is not None:
        if not isinstance(kept, v.Items) or kept.open or not all(isinstance(one, v.Lit) for one in kept.elts):
            return None
        names = [one.value for one in kept.elts if isinstance(one, v.Lit)]
        return v.Mapping({name: made.items[name] for name in names if name in made.items})
    # What its own configuration says may let it have more fields.
    made.open = any(owner.cls.find(one) is not None for one in ("model_config", "Config"))
    return made


def _validated(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``Config.model_validate(data)`` of pydantic: an instance, of whose fields no value is known."""
    if not isinstance(owner, v.Cls) or not _is_validated(owner):
        return None
    return interp.call(owner, v.Args([], {}, False, True), node)


def _is_validated(cls: v.Cls) -> bool:
    return any(base.partition(".")[0] == "pydantic" for base in cls.external_bases())


def _plain_container(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``OmegaConf.to_container(config)``: a dictionary of what is in the configuration; ``OmegaConf.to_object(config)``: an
    object of the class that it was made of."""
    first = args.pos[0] if args.pos else args.kw.get("cfg")
    if isinstance(first, v.Inst):
        return first if api.endswith("object") else _fields_of(first, 0)
    return _plainly(first) if isinstance(first, v.Mapping) else None


def _plainly(value: v.Mapping) -> v.Mapping:
    items = {key: _plainly(one) if isinstance(one, v.Mapping) else one for key, one in value.items.items()}
    return v.Mapping(items, value.open)


def _getattr(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    if len(args.pos) < 2:
        return v.UNKNOWN
    owner, name = args.pos[0], args.pos[1]
    if isinstance(name, v.Lit) and isinstance(name.value, str):
        if len(args.pos) > 2 and _is_no_attribute(interp, node, owner, name.value):
            return args.pos[2]
        if (
            len(args.pos) > 2
            and isinstance(owner, v.Mapping)
            and owner.attributes
            and name.value in owner.items
        ):
            return found_or(owner.items[name.value], args.pos[2])
        value = interp.attribute(owner, name.value, node)
        if len(args.pos) > 2 and isinstance(owner, v.Obj) and owner.type == opt.NAMESPACE:
            there = opt.holds_option(owner, name.value)
            if there.option and not there.value:
                return opt.as_option(interp, args.pos[2], there.option)
        if len(args.pos) > 2 and isinstance(value, v.Member):
            return v.join((args.pos[2], v.UNKNOWN)) if isinstance(owner, v.Inst) else v.UNKNOWN
        return chosen_in_module(interp, owner, name, value) if isinstance(owner, v.Mod) else value
    if isinstance(owner, v.AnyOf) and (found := _of_any(interp, owner, name, node)):
        return v.join(found)
    if isinstance(owner, (v.Ext, v.Mod)):
        # Where there is no such name, the default is given, as None is, or an error is raised.
        return member_by_name(interp, owner, name)
    return _part_by_name(owner, name) if isinstance(owner, v.Inst) else v.UNKNOWN


def _of_any(interp: Interp, owner: v.AnyOf, name: v.Value, node: Any) -> list[v.Value]:
    """What one of several modules has under one of several names: those go together that are there."""
    modules = [one for one in owner.values if isinstance(one, v.Mod)]
    if len(modules) < len(owner.values):
        return []
    names = [str(one.value) for one in _texts(name)]
    held = [(mod, one) for mod in modules for one in names if mod.env.vars.get(one) is not None]
    return [interp.attribute(mod, one, node) for mod, one in held]


def _part_by_name(owner: v.Inst, name: v.Value) -> v.Value:
    """``getattr(module, f"layer{i}")``, where parts were added under such names: each of them may be meant, and what else
    has a name that begins so."""
    held = {key: one for key, one in owner.attrs.items() if isinstance(key, str) and not key.startswith("@")}
    added = [one for key, one in held.items() if key.startswith(NAMELESS) and _may_begin(name, key)]
    if not added:
        return v.UNKNOWN
    named = [one for key, one in held.items() if not key.startswith(NAMELESS) and v.may_be(name, key)]
    return v.join((*added, *named), MOST)


def _nameless(name: v.Value) -> str:
    """The name of the attribute that stands for all whose names begin as an unknown one does."""
    return f"{NAMELESS} {v.beginning_of(name)}".rstrip()


def _may_begin(name: v.Value, key: str) -> bool:
    """Whether an unknown name may be one of those that an attribute stands for."""
    one, other = v.beginning_of(name), key.removeprefix(NAMELESS).strip()
    return one.startswith(other) or other.startswith(one)


def _getattribute(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``x.__getattribute__(name)``, which is ``getattr(x, name)``."""
    return _getattr(interp, "", v.Args([owner, *args.pos]), node)


def _setattr(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    if len(args.pos) == 3 and isinstance(args.pos[1], v.Lit) and isinstance(args.pos[1].value, str):
        owner = args.pos[0]
        for part in args.pos[1].value.split(".")[:-1]:
            owner = interp.attribute(owner, part, node)
        set_attribute(interp, owner, args.pos[1].value.split(".")[-1], args.pos[2], node)
    elif len(args.pos) == 3:
        # Who names the attribute may be the user.
        owner, name, value = args.pos
        if isinstance(owner, v.Inst):
            if not _add_part(interp, owner, name, value, node):
                opt.as_options(owner)
                set_in_object(owner, name, value)
        elif isinstance(owner, (v.Cls, v.Mod)):
            set_in_scope(owner.env, name, value)
        elif isinstance(owner, v.Mapping):
            as_defaults(owner.items, name, value)
        elif isinstance(owner, v.Obj) and owner.type == opt.NAMESPACE:
            as_defaults(owner.attrs, name, value)
    return v.NONE


def _dir(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``dir(args)``: the options."""
    first = args.pos[0] if args.pos else None
    if not isinstance(first, v.Obj) or first.type != opt.NAMESPACE:
        return None
    return v.Items("l", [v.Lit(name) for name in first.attrs])


def _add_part(interp: Interp, owner: v.Inst, name: v.Value, part: v.Value, node: Any) -> bool:
    """Set an attribute of a module, under a name that is not known, to what is a part of it; False if it is none."""
    is_part = (
        part.cls.find("forward") is not None
        if isinstance(part, v.Inst)
        else isinstance(part, v.Obj) and is_module(interp, part)
    )
    if is_part:
        _add(interp, owner, name, part, node)
    return is_part


def _add(interp: Interp, owner: v.Inst, name: v.Value, part: v.Value, node: Any) -> None:
    key = _nameless(name)
    known = owner.attrs.get(key)
    set_attribute(interp, owner, key, part if known is None else v.join((known, part), MOST), node)


def _add_module(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``module.add_module(name, part)`` of a module of the project: the part is an attribute, under a name that no attribute
    has where that is not known."""
    if not isinstance(owner, v.Inst) or not any("Module" in base for base in owner.cls.external_bases()):
        return None
    key, part = args.get("name", 0), args.get("module", 1)
    if part is None or args.star or args.dstar:
        return None
    if isinstance(key, v.Lit) and isinstance(key.value, str):
        set_attribute(interp, owner, key.value, part, node)
        return v.NONE
    _add(interp, owner, key or v.UNKNOWN, part, node)
    return v.NONE


def _register_module(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """That of a module, and that of a registry."""
    model = _add_module if isinstance(owner, v.Inst) else register
    return model(interp, owner, name, args, node)


def _hasattr(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    if len(args.pos) == 2 and isinstance(args.pos[1], v.Lit):
        owner, name = args.pos[0], args.pos[1].value
        if isinstance(owner, v.Obj) and owner.type == opt.NAMESPACE:
            return opt.holds_option(owner, name)
        if isinstance(owner, v.Mapping) and owner.attributes and name in owner.items:
            return is_there(owner.items[name])
        if isinstance(owner, v.Inst) and isinstance(name, str) and has(interp, owner, name) is False:
            return v.FALSE
        if (
            isinstance(owner, v.Cls)
            and interp.making
            and owner is interp.making[-1]
            and not owner.external_bases()
        ):
            # Nothing but the metaclass that makes it has given it anything.
            of_metaclass = owner.metaclass.find(name) if owner.metaclass is not None else None
            if not hasattr(type, name):
                return v.Lit(owner.find(name) is not None or of_metaclass is not None)
        if isinstance(name, str) and _is_no_attribute(interp, node, owner, name):
            return v.FALSE
        if isinstance(name, str) and (
            has_weight(interp, owner, name) is not None or _draws(interp, owner, name)
        ):
            return v.TRUE
        if isinstance(name, str) and all(_was_given(interp, one, name) for one in v.alternatives(owner)):
            return v.TRUE
        kind = _CONTAINERS.get(owner.kind) if isinstance(owner, v.Items) else None
        if kind is not None and isinstance(name, str) and hasattr(kind, name):
            return v.TRUE
    return v.UNKNOWN


def _draws(interp: Interp, owner: v.Value, method: str) -> bool:
    """Whether an object of a library's class has a method that is known to draw, as ``layer.reset_parameters``."""
    return isinstance(owner, v.Obj) and bool(owner.type) and bool(interp.kb.rng(f"{owner.type}.{method}"))


def _is_no_attribute(interp: Interp, node: Any, owner: v.Value, name: str) -> bool:
    """Whether ``getattr(kwargs, name)`` asks a dictionary of keyword arguments for an attribute, which no item of it is."""
    given = node.args[0] if isinstance(node, m.Call) and node.args else None
    return are_keywords(interp, given, owner) and not hasattr(dict, name)


def _was_given(interp: Interp, owner: v.Value, name: str) -> bool:
    """Whether an object of a library's class keeps a keyword argument that it was made with; some do not keep None."""
    if not isinstance(owner, v.Obj) or interp.kb.role(owner.api, "keeps-keywords") is None:
        return False
    given = owner.args.kw.get(name)
    return given is not None and all(
        v.is_none(one) is False or (isinstance(one, v.Obj) and bool(one.type))
        for one in v.alternatives(given)
    )


_CONTAINERS = {"l": list, "t": tuple, "s": set}
"""The types of Python whose attributes are known, by the kinds of their values."""


def _type(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``type(value)``, where its class is known."""
    return class_of(interp, args.pos[0]) if len(args.pos) == 1 and not args.star else None


def _same_kind(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``values.__class__(others)``, as ``type(values)(others)``."""
    kind = kind_of_container(owner)
    return interp.call(v.Ext(kind), args, node) if kind else None


def _isinstance(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    if len(args.pos) != 2:
        return v.UNKNOWN
    given, cls = args.pos
    answer = instance_of(interp, given, cls)
    if answer is None:
        return v.UNKNOWN
    return v.Lit(answer, "" if stays_instance(interp, given, cls, answer) else v.option_of(given))


def _issubclass(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    answer = subclass_of(interp, args.pos[0], args.pos[1]) if len(args.pos) == 2 else None
    return v.UNKNOWN if answer is None else v.Lit(answer, v.option_of(args.pos[0]))


def _isclass(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    ask = is_abstract if api.endswith("isabstract") else is_class
    answer = ask(args.pos[0]) if args.pos else None
    return v.UNKNOWN if answer is None else v.Lit(answer, v.option_of(args.pos[0]))


_MOST_MEMBERS = 200


def _isfunction(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    given = args.pos[0] if args.pos else v.UNKNOWN
    if isinstance(given, v.Func):
        return v.Lit(given.receiver is None)
    return v.Lit(False) if isinstance(given, (v.Lit, v.Items, v.Cls, v.Mod, v.Inst, v.Mapping)) else v.UNKNOWN


def _getmembers(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """The names in a module of the project, in their order, with what they stand for; those of libraries are left out where
    it is not known whether they pass the test."""
    holder, test = args.get("object", 0), args.get("predicate", 1)
    if not isinstance(holder, v.Mod) or holder.file is None or len(holder.env.all()) > _MOST_MEMBERS:
        return None
    found: list[v.Value] = []
    is_open = bool(holder.env.stars)
    for name, value in sorted(holder.env.all().items()):
        passes = None if test is None else v.truth(interp.call(test, v.Args([value]), node))
        if passes is False or not name.isidentifier():
            continue
        if passes is None and test is not None and not isinstance(value, (v.Cls, v.Func, v.Mod)):
            is_open = True
        else:
            found.append(v.Items("t", [v.Lit(name), value]))
    return v.Items("l", found, is_open)


def _super(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    if len(args.pos) == 2 and isinstance(args.pos[0], v.Cls):
        return v.Super(args.pos[0], args.pos[1])
    frame: Any = interp.frame
    while frame is not None and frame.func is None:
        frame = frame.caller
    if frame is not None and frame.func.cls is not None:
        receiver = frame.func.receiver
        if receiver is None and frame.func.fn.name == NEW and frame.func.fn.params:
            receiver = frame.env.vars.get(frame.func.fn.params[0].name)
        if receiver is not None:
            return v.Super(frame.func.cls, receiver)
    return v.UNKNOWN


def _partial(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    if not args.pos:
        return None
    return v.Partial(args.pos[0], args.rest())


def _decorator_factory(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``functools.wraps(f)`` and friends leave what they decorate as it is."""
    return v.Obj(api, "", v.NO_ARGS, node)


def _update_wrapper(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``functools.update_wrapper(wrapper, wrapped)``: an object that is put around a function has its names."""
    wrapper, wrapped = args.get("wrapper", 0), args.get("wrapped", 1)
    if isinstance(wrapper, v.Inst) and isinstance(wrapped, v.Func):
        for name in ("__name__", "__qualname__"):
            set_attribute(interp, wrapper, name, v.Lit(wrapped.fn.name), node)
        set_attribute(interp, wrapper, "__wrapped__", wrapped, node)
    return wrapper


def _import_module(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    name = args.pos[0] if args.pos else None
    package = args.get("package", 1) if api == _IMPORT_MODULE else None
    if isinstance(name, v.Lit) and isinstance(name.value, str) and name.value.startswith("."):
        name = _below(interp, name.value, package)
    if isinstance(name, v.Lit) and isinstance(name.value, str) and not name.value.startswith("."):
        parts = name.value.split(".")
        mod = interp.import_parents(interp.frame.file, parts)
        if mod is not None and api == _IMPORT and not _gives_last(args):
            top = interp.find_module(interp.frame.file, parts[0])
            return interp.import_found(top, parts[0]) if top else mod
        if mod is not None:
            return mod
        if interp.tried and _is_no_module(interp, parts):
            interp.state.alive = False
            interp.state.raised = interp.state.lost = True
            return v.UNKNOWN
        interp.external_import(name.value, node)
        return v.Ext(name.value)
    if (named := _texts(name)) and len(named) > 1:
        return v.join([_import_module(interp, api, v.Args([one]), node) or v.UNKNOWN for one in named])
    if name is not None and not isinstance(name, v.Lit):
        # `import_module(f"archs.{name}")` in a loop over the files of a folder: all of them are imported.
        like = modules_like(interp, node)
        if like != [v.UNKNOWN] or _names_library(name):
            return v.join(like, v.MAX_CANDIDATES)
        found = modules_with(interp, node)
        if found is v.UNKNOWN and isinstance(node, m.Call):
            interp.gap("dynamic-call", f"which module `{written(node)}` imports is decided at run time", node)
        return found
    return v.UNKNOWN


def _below(interp: Interp, name: str, package: v.Value | None) -> v.Value:
    """The whole name of a module that is written relative to a package."""
    if not isinstance(package, v.Lit) or not isinstance(package.value, str):
        return v.UNKNOWN
    inner = name.lstrip(".")
    parts = package.value.split(".")
    above = parts[: len(parts) - (len(name) - len(inner) - 1)]
    return v.Lit(".".join([*above, inner]), package.option) if above and inner else v.UNKNOWN


def _gives_last(args: v.Args) -> bool:
    """Whether ``__import__("a.b", fromlist=["c"])`` gives the module ``a.b``, and not ``a``."""
    names = args.get("fromlist", 3)
    return names is not None and v.truth(names) is not False


def _is_no_module(interp: Interp, parts: list[str]) -> bool:
    """Whether a dotted name begins with that of a module of the project, which is a file and has no modules below it."""
    for count in range(len(parts) - 1, 0, -1):
        found = interp.find_module(interp.frame.file, ".".join(parts[:count]))
        if found is not None:
            return found.file is not None and not found.file.is_package
    return False


def _texts(name: v.Value | None) -> list[v.Lit]:
    """The texts one of which a name is; none where it may be something else."""
    found = list(v.alternatives(name)) if name is not None else []
    texts = [one for one in found if isinstance(one, v.Lit) and isinstance(one.value, str)]
    return texts if len(texts) == len(found) else []


def _names_library(name: v.Value) -> bool:
    """Whether the name of a module is one of some that are written, or begins with one that is."""
    if isinstance(name, v.Obj) and name.api == v.TEXT:
        return bool(name.args.pos)
    return isinstance(name, v.AnyOf) and all(isinstance(one, v.Lit) for one in name.values)


def _getenv(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    name, default = args.get("key", 0), args.get("default", 1)
    if not isinstance(name, v.Lit):
        return v.UNKNOWN
    setting = interp.state.env.get(str(name.value))
    if setting is not None:
        return v.Lit(setting.value, setting.option) if setting.value is not None else v.UNKNOWN
    if isinstance(default, v.Lit):
        return v.Lit(default.value, f"${name.value}")
    if default is not None:
        # A folder of the project is where its files are unless somebody says otherwise.
        return default if own_paths.path_of(default) is not None else v.UNKNOWN
    return v.Lit(None, f"${name.value}")


def _setenv(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    name, value = args.get("key", 0), args.get("value", 1)
    if isinstance(name, v.Lit) and value is not None:
        interp.set_env(str(name.value), value, node, default_only=api.endswith("setdefault"))
    return v.NONE


def _update_env(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    first = args.pos[0] if args.pos else None
    items: dict[Any, v.Value] = dict(first.items) if isinstance(first, v.Mapping) else {}
    for key, value in {**items, **args.kw}.items():
        if isinstance(key, str):
            interp.set_env(key, value, node)
    return v.NONE


def _pop_env(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    if args.pos and isinstance(args.pos[0], v.Lit):
        interp.unset_env(str(args.pos[0].value))
    return v.UNKNOWN


def _exit(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    interp.state.alive = False
    interp.state.raised = True
    return v.NONE


def _tfds_load(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``tfds.load(name, split=["train", "test"], with_info=True)``: a dataset, some, or some with their facts."""
    split, info = args.get("split", 1), args.get("with_info", 8)
    made: v.Value = v.Obj("tensorflow_datasets.load", "tf.data.Dataset", args, node)
    if isinstance(split, v.Items):
        made = v.Items("l", [made for _ in split.elts], split.open)
    if info is not None and v.truth(info):
        return v.Items("t", [made, v.UNKNOWN])
    return made if info is None or v.truth(info) is False else v.UNKNOWN


def saved_state(interp: Interp, role: RoleEntry, api: str, args: v.Args, node: Any) -> v.Value:
    """The state of an RNG, as it is restored by ``set_state`` later."""
    saved = v.Obj(api, "", args, node)
    saved.file, saved.data = interp.frame.file, rng.Saved(interp.state.level(role.more[0]))
    return saved


def _cuda_available(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    return v.Lit(interp.device == "cuda", A_GPU)


def _any_available(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    return v.Lit(interp.device in ACCELERATORS, A_GPU)


def _other_available(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    if interp.device not in ("xpu", "mps"):
        return None
    return v.Lit(f".{interp.device}." in api, A_GPU)


_IMPORT_MODULE = "importlib.import_module"
_IMPORT = "builtins.__import__"


def _new_class(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``super().__new__(mcs, name, bases, namespace)`` in a metaclass: the class that is being made."""
    return interp.making[-1] if interp.making and isinstance(owner, v.Super) else None


def _result(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``future.result()``, ``handle.get()``: what the function has given that was handed to an executor."""
    return owner.attrs.get(GIVEN_LATER) if isinstance(owner, v.Obj) else None


def _namespace_dict(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    later = _result(interp, owner, name, args, node)
    if later is not None:
        return later
    key = args.pos[0] if args.pos else None
    absent = v.UNKNOWN if name == "pop" else v.NONE
    default = args.pos[1] if len(args.pos) > 1 else args.kw.get("default", absent)
    if isinstance(owner, v.Mapping) and isinstance(key, v.Lit):
        found: v.Value | None = owner.items.get(key.value)
        if found is not None:
            if name == "pop":
                take_out(owner, key, happens_once(interp, owner))
            # Where `pop` is given no default, the key is there.
            given = len(args.pos) > 1 or "default" in args.kw
            return found_or(found, default if given or name != "pop" else None)
        if owner.files[0] and isinstance(default, v.Mapping) and name == "get":
            # Some of the files that the program is given have it.
            there = given_files.look_up(owner, key.value)
            if isinstance(there, v.Mapping):
                return v.join((there, default))
    named = isinstance(owner, v.Mapping) and isinstance(key, v.Lit)
    callables = (
        [
            x
            for at, x in owner.items.items()
            if isinstance(x, (v.Func, v.Cls, v.Ext, v.Partial))
            and (named or isinstance(at, tuple) or v.may_be(key or v.UNKNOWN, at))
        ]
        if isinstance(owner, v.Mapping)
        else []
    )
    if named and callables and v.option_of(key or v.NONE):
        # The default of the option names nothing that is there: the option is mostly given.
        return v.candidates([*callables, default])
    if isinstance(owner, v.Mapping) and isinstance(key, v.Lit):
        if owner.open:
            found = at_unknown_key(interp, owner)
            if found is not v.UNKNOWN:
                return v.join((found, default))
            if not isinstance(default, v.Lit) or default.value is None:
                return v.UNKNOWN
            # What a configuration holds that is not known may be given for it.
            return opt.as_default(default, str(key.value)) if owner.attributes else default
        return default
    if isinstance(owner, v.Mapping):
        if name == "pop" and owner.items:
            owner.open = v.FEWER
        # A table of functions or classes looked up by an unknown name, or of objects.
        if not callables:
            if not owner.open and not owner.items and isinstance(default, v.Items) and default.kind == "s":
                # A later round of the loop that is running may find what has been put there by then.
                return v.join((default, v.UNKNOWN))
            return at_unknown_key(interp, owner)
        return v.candidates([*callables, *([v.UNKNOWN] if owner.open else [])])
    if isinstance(owner, v.Obj) and is_registry(owner) and name == "get":
        return registered(owner, key if key is not None else v.UNKNOWN)
    return None


def _setdefault(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``mapping.setdefault(key, default)``: a container that is given stays in the mapping and may grow there."""
    if not isinstance(owner, v.Mapping) or not args.pos:
        return _namespace_dict(interp, owner, name, args, node)
    key = args.pos[0]
    default = args.pos[1] if len(args.pos) > 1 else args.kw.get("default", v.NONE)
    if isinstance(key, v.Lit) and not isinstance(key.value, (list, dict)):
        if key.value not in owner.items and (not owner.open or isinstance(default, (v.Items, v.Mapping))):
            owner.items[key.value] = default
        return _namespace_dict(interp, owner, name, args, node)
    known = list(owner.items.values())
    owner.open = True
    if is_counted(default):
        owner.items[UNKNOWN_KEY, getattr(node, "start", 0)] = default
    if not isinstance(default, (v.Items, v.Mapping)):
        return _namespace_dict(interp, owner, name, args, node)
    return v.join([*known, owner.items.setdefault((UNKNOWN_KEY, getattr(node, "start", 0)), default)])


def _dict_update(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    if isinstance(owner, v.Mapping):
        for value in args.pos:
            held, more = unpacked(value)
            if more:
                as_defaults(owner.items)
                owner.open = True
            take_over(owner.items, held)
            if not isinstance(value, v.Mapping):
                keep_items(owner.items, value, node)
            scope = scope_of(interp, node)
            if scope is not None:
                update_scope(scope, value)
        take_over(owner.items, args.kw)
        owner.open = owner.open or args.dstar
        return v.NONE
    changed(owner)
    return None


def _dict_values(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    if not isinstance(owner, v.Mapping):
        return None
    module = owner.items.get(MODULE)
    if isinstance(module, v.Mod) and name != "keys":
        defined = _defined_in(module, name == "items")
        if defined is not None:
            return defined
    more = owner.goes_on() and owner.open
    held = [(key, one) for key, one in owner.items.items() if key is not v.MORE]
    if name == "items":
        pairs: list[v.Value] = [
            v.Items("t", [v.Lit(key) if isinstance(key, str) else v.UNKNOWN, one]) for key, one in held
        ]
        return v.Items("l", pairs, more)
    if name == "keys":
        return v.Items("l", [v.Lit(key) for key, _ in held if isinstance(key, (str, int, float))], more)
    return v.Items("l", [one for _, one in held], more)


def _defined_in(module: v.Mod, items: bool) -> v.Value | None:
    """``module.__dict__.items()``: a loop that looks for a class by its name finds it among what the module has. Other
    modules, and functions of libraries, are not looked for. None where there are no classes, or too many names."""
    named = module.env.all().items()
    held = {key: one for key, one in named if _may_be_looked_for(one)}
    defined = sum(isinstance(one, v.Cls | v.Func) for one in held.values())
    if not defined or (len(held) > _MOST and defined < len(held)):
        return None
    more = bool(module.env.stars)
    if not items:
        return v.Items("l", list(held.values()), more)
    return v.Items("l", [v.Items("t", [v.Lit(key), one]) for key, one in held.items()], more)


def _may_be_looked_for(value: v.Value) -> bool:
    if isinstance(value, v.Ext):
        return v.names_class(value.name)
    return not isinstance(value, v.Mod)


def _list_append(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    if isinstance(owner, v.Items):
        added = args.pos[-1] if args.pos else v.UNKNOWN
        if name == "add" and added is v.UNKNOWN:
            added = counted(interp, _written(node))
        if name in ("append", "appendleft", "add", "insert"):
            at: int | None = 0 if name == "appendleft" else len(owner.elts)
            if name == "insert":
                at = position(owner, args.pos[0]) if args.pos else None
            if len(owner.elts) < 64:
                at = len(owner.elts) if at is None else at
                owner.elts = [*owner.elts[:at], added, *owner.elts[at:]]
            owner.open = owner.open or not happens_once(interp, owner)
        elif isinstance(added, v.Items):
            owner.elts = [*owner.elts, *added.elts][:64]
            owner.open = True
        else:
            owner.elts = [*owner.elts, *(some_of(interp, added, _written(node)) or [v.UNKNOWN])][:64]
            owner.open = True
        return v.NONE
    return None


def _shrink(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``items.pop()`` and the like: of a list whose elements are all known, those are known that are left."""
    if not isinstance(owner, v.Items):
        return None
    if name == "clear":
        interp.listeners.tell(ClearedEvent(owner))
    elts = owner.elts
    sure = takes_away(interp, owner)
    at: int | None = len(elts) - 1
    if name == "popleft":
        at = 0
    elif name == "remove":
        at = _found(elts, args.pos[0]) if args.pos else None
    elif name == "pop" and args.pos:
        at = position(owner, args.pos[0])
    if sure and name == "clear":
        owner.elts = []
    elif sure and at is not None and 0 <= at < len(elts):
        owner.elts = [*elts[:at], *elts[at + 1 :]]
        return elts[at] if name.startswith("pop") else None
    else:
        owner.open = v.FEWER
    return v.candidates(elts) if name.startswith("pop") else None


def _emptied(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``mapping.clear()``, ``mapping.popitem()``: whether it holds anything is not known after it."""
    if isinstance(owner, v.Mapping):
        owner.open = v.FEWER
    return None


def _found(elts: list[v.Value], value: v.Value) -> int | None:
    """Where the first element stands that equals a literal; None if that is not known."""
    if not isinstance(value, v.Lit):
        return None
    for index, one in enumerate(elts):
        if not isinstance(one, v.Lit) or one.option:
            return None
        if one.value == value.value:
            return index
    return None


def _shuffled(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``dataset.shuffle()`` of a dataset of graphs gives one."""
    return owner if isinstance(owner, v.Obj) and is_graph_dataset([owner.api]) else None


def configuration(role: RoleEntry, args: v.Args) -> v.Value:
    """``CfgNode({...})`` of yacs: what is stored in it are defaults, like those of options. What a function gives
    that takes no content has the library's own."""
    first = args.get(role.arg, role.pos) if role.arg else None
    unknown = first is not None and not isinstance(first, v.Mapping)
    made = v.Mapping({}, open=unknown or not role.arg, attributes=True)
    made.option = "configuration" if role.arg else v.LIBRARY_DEFAULTS
    if isinstance(first, v.Mapping):
        for key, value in first.items.items():
            made.items[key] = opt.as_default(value, str(key))
    return made


def _clone(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``cfg.clone()``: nested configurations are copied too."""
    if not isinstance(owner, v.Mapping) or not owner.option:
        return None
    made = v.Mapping({}, owner.open, owner.attributes)
    made.option = owner.option
    for key, value in owner.items.items():
        inner = _clone(interp, value, name, args, node)
        made.items[key] = value if inner is None else inner
    return made


def _merge_from(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``cfg.merge_from_file("c.yaml")``, ``.merge_from_list([...])``, ``.merge_from_other_cfg(other)``: what is
    not known to be given keeps its default."""
    first = args.pos[0] if args.pos else next(iter(args.kw.values()), None)
    if not isinstance(owner, v.Mapping):
        return None
    if name == "merge_from_file" and isinstance(first, v.Lit):
        loaded = opt.load_config(interp, "yaml", v.Args([first]), node)
        if isinstance(loaded, v.Mapping):
            _merge_into(owner, loaded)
    elif name == "merge_from_other_cfg" and isinstance(first, v.Mapping):
        _merge_into(owner, first)
    elif name == "merge_from_list" and isinstance(first, v.Items) and not first.open:
        for key, value in zip(first.elts[::2], first.elts[1::2], strict=False):
            if isinstance(key, v.Lit) and isinstance(key.value, str):
                *above, last = key.value.split(".")
                into: v.Value = owner
                for part in above:
                    into = opt.section(into, part)
                if isinstance(into, v.Mapping):
                    into.items[last] = value
    return v.NONE


def _merge_into(into: v.Mapping, other: v.Mapping) -> None:
    for key, value in other.items.items():
        inner = into.items.get(key)
        if isinstance(inner, v.Mapping) and isinstance(value, v.Mapping):
            _merge_into(inner, value)
        else:
            into.items[key] = value


def _copy(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    if isinstance(owner, v.Mapping):
        return v.Mapping(dict(owner.items), owner.open, owner.attributes)
    return owner if isinstance(owner, (v.Items, v.Obj, v.Inst)) else None


def _self(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """Methods that return their receiver: ``model.to(device)``, ``model.cuda()``, ``generator.manual_seed()``."""
    if isinstance(owner, v.Inst):
        return owner
    if isinstance(owner, v.Obj) and (owner.type == "torch.Generator" or is_module(interp, owner)):
        return owner
    return owner if isinstance(owner, v.Obj) and _is_around_module(owner) else None


def _is_around_module(value: v.Obj) -> bool:
    """Whether an object of a class of a library was made with a module of the project: it is a module too."""
    if value.type == TENSOR or value.owner is not None or not v.names_class(value.api):
        return False
    given = (one for held in value.args.values() for one in v.alternatives(held))
    return any(isinstance(one, v.Inst) and one.cls.find("forward") is not None for one in given)


def _requiring_grad(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``model.requires_grad_(wanted)`` and ``tensor.requires_grad_(wanted)`` give their receiver."""
    wanted = args.get("requires_grad", 0) or v.TRUE
    module = owner.receiver if isinstance(owner, v.Super) else owner
    freeze(interp, module, wanted)
    require(interp, module, wanted)
    return _self(interp, owner, name, args, node)


def _is_trainer(interp: Interp, value: v.Inst, method: str) -> bool:
    """Whether an object is of a class of trainers, of which a method trains and nothing is known of what that calls."""
    found = runner(interp, value)
    if found is None or method not in found.entry.trains:
        return False
    return all(interp.kb.hooks(base) is None for base in value.cls.external_bases())


def _training(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``model.train()`` and ``model.eval()`` say what ``self.training`` is, in the model and in its parts."""
    model = owner.receiver if isinstance(owner, v.Super) else owner
    mode = args.get("mode", 0) if name == "train" else v.FALSE
    if isinstance(model, v.Inst) and model.cls.find("forward") is None and _is_trainer(interp, model, name):
        # It runs the methods of the trainer.
        return None
    if isinstance(model, (v.Inst, v.Obj)):
        set_training(interp, model, v.TRUE if mode is None else mode)
    return model if isinstance(model, v.Inst) else _self(interp, owner, name, args, node)


def _register_buffer(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``self.register_buffer("name", tensor)``: a tensor that is not trained."""
    key = args.get("name", 0)
    if not isinstance(owner, v.Inst) or not isinstance(key, v.Lit) or not isinstance(key.value, str):
        return None
    buffer = v.Obj(BUFFER, TENSOR, args, node)
    buffer.start_with(form(args.get("tensor", 1))._replace(grad=False))
    owner.attrs[key.value] = buffer
    return v.NONE


def _register_parameter(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``self.register_parameter(name, parameter)``, which is an attribute too."""
    key, parameter = args.get("name", 0), args.get("param", 1)
    if not isinstance(owner, v.Inst) or key is None or parameter is None:
        return None
    if isinstance(key, v.Lit):
        return _setattr(interp, "", v.Args([owner, key, parameter]), node)
    _add(interp, owner, key, parameter, node)
    return v.NONE


def _piped(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``dataset.apply(prepare)`` and ``frame.pipe(clean, ...)`` give what the function makes of the receiver."""
    given = args.get("transformation_func" if name == "apply" else "func", 0)
    if not isinstance(given, (v.Func, v.Partial)):
        return None
    made = interp.call(given, v.Args([owner, *args.pos[1:]], args.kw, args.star, args.dstar), node)
    return owner if made is v.UNKNOWN else made


def _module_apply(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``model.apply(init)`` runs the function on every submodule and returns the model."""
    if isinstance(owner, v.Inst) or (isinstance(owner, v.Obj) and is_module(interp, owner)):
        modules = submodules.within(interp, owner, inner_first=True)
        if modules is None or not interp.may_unroll(len(modules)):
            modules = [v.UNKNOWN]
        for value in args.pos:
            if isinstance(value, (v.Func, v.Partial)):
                for one in modules:
                    interp.call(value, v.Args([one]), node)
        return owner
    return None


def handed_back(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``accelerator.prepare(a, b)`` and ``fabric.setup(...)`` give back what they were given."""
    found = runner(interp, owner) if isinstance(owner, v.Obj) else None
    if found is None:
        return None
    for value in args.pos:
        put_on_device(value, found.device)
    return args.pos[0] if len(args.pos) == 1 else v.Items("t", list(args.pos), args.star)


def _next(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``next(iterator)``: what an iterator of the project does, or what iterating gives where that is known."""
    first = args.pos[0] if args.pos else v.UNKNOWN
    step = first.cls.find("__next__") if isinstance(first, v.Inst) else None
    if isinstance(first, v.Inst) and isinstance(step, v.Func):
        return interp.call(step.bind(first), v.NO_ARGS, node)
    found = element(interp, first)
    return found if isinstance(found, (v.Obj, v.Items, v.Mapping, v.Inst, v.Cls, v.Func, v.AnyOf)) else None


def _next_of(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``iterator.next()``, which older iterators have: what ``next(iterator)`` gives."""
    if not isinstance(owner, v.Obj) or owner.api != "builtins.iter":
        return None
    return _next(interp, "builtins.next", v.Args([owner]), node)


def _from_checkpoint(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    if isinstance(owner, v.Cls):
        model = interp.call(owner, v.Args(star=True, dstar=True), node)
        all_loaded(interp, model, args)
        return model
    return None


def _entry_call(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``fire.Fire(main)``, ``typer.run(main)``, ``absl.app.run(main)``, ``pyrallis``-like wrappers."""
    target = args.pos[0] if args.pos else args.kw.get("main")
    if target is None and api.startswith(("absl.app", "tf.")):
        target = interp.frame.mod.env.read("main")
    if isinstance(target, v.Func):
        kw = _fire_params(interp, target) if api == "fire.Fire" else opt.option_params(interp, target)
        pos: list[v.Value] = [v.UNKNOWN] if api.startswith(("absl.app", "tf.")) else []
        return interp.call(target, v.Args(pos, kw.kw, dstar=kw.dstar), node)
    if api == "fire.Fire" and not args.pos and "component" not in args.kw:
        target = _offered(interp)
    if isinstance(target, (v.Cls, v.Inst)):
        return _commands_of(interp, target, node)
    if isinstance(target, (v.Mapping, v.Items)):
        commands: list[Callable[[], None]] = []
        for one in target.items.values() if isinstance(target, v.Mapping) else target.elts:
            if isinstance(one, v.Func):
                commands.append(partial(_command, interp, one, node))
            elif isinstance(one, v.Cls) and isinstance(target, v.Mapping) and not target.open:
                commands.append(partial(_class_command, interp, one, node))
        _one_of(interp, commands)
        return v.UNKNOWN
    return None


def _fire_params(interp: Interp, func: v.Func) -> v.Args:
    """The defaults of a function's options, and whatever options it takes besides."""
    given = opt.option_params(interp, func)
    more = any(one.kind == "w" for one in func.fn.params)
    return v.Args(given.pos, given.kw, given.star, given.dstar or more)


def _offered(interp: Interp) -> v.Mapping:
    """What ``fire.Fire()`` offers as commands: the functions and classes of the module. One that defines none is a menu of
    those that it imports from the project."""
    mod = interp.frame.mod
    found = {name: one for name, one in mod.env.all().items() if isinstance(one, v.Func | v.Cls)}
    own = {name: one for name, one in found.items() if one.mod is mod}
    return v.Mapping(dict(own or found), open=True)


def _commands_of(interp: Interp, target: v.Cls | v.Inst, node: Any) -> v.Value:
    """Each public method of a class, or of an object, may be the command."""
    made: v.Value = target
    if isinstance(target, v.Cls):
        start = target.find("__init__")
        given = opt.option_params(interp, start) if isinstance(start, v.Func) else v.NO_ARGS
        made = opt.parsed(interp, target, given, node)
    if not isinstance(made, v.Inst):
        return v.UNKNOWN
    names = {name for cls in made.cls.mro() for name in cls.env.all() if not name.startswith("_")}
    methods = [made.cls.find(name) for name in sorted(names)]
    _one_of(
        interp,
        [partial(_command, interp, one.bind(made), node) for one in methods if isinstance(one, v.Func)],
    )
    return v.UNKNOWN


def _command(interp: Interp, func: v.Func, node: Any) -> None:
    interp.call(func, _fire_params(interp, func), node)


def _class_command(interp: Interp, cls: v.Cls, node: Any) -> None:
    _commands_of(interp, cls, node)


def _one_of(interp: Interp, commands: Sequence[Callable[[], None]]) -> None:
    """The command line says which command runs: one does not run after another."""
    interp.branch([lambda: None, *commands])


def _subclasses(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``Base.__subclasses__()``: those in the base's module and in the running one."""
    if not isinstance(owner, v.Cls):
        return None
    modules = dict.fromkeys((owner.mod, interp.frame.mod))
    found = [
        one
        for mod in modules
        for one in mod.env.all().values()
        if isinstance(one, v.Cls) and owner in one.bases
    ]
    return v.Items("l", list(dict.fromkeys(found))) if found else None


def _globals(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``globals()[name](...)``: the functions of the module, any of which may be meant, and what it has under names that
    are known."""
    env = interp.frame.mod.env
    found: dict[Any, v.Value] = {
        k: x for k, x in env.all().items() if isinstance(x, v.Func | v.Cls) and x.mod is interp.frame.mod
    }
    for one in nodes([interp.statement]) if interp.statement is not None else ():
        if isinstance(one, m.Subscript) and one.value is node:
            for name in v.alternatives(interp.eval(one.index)):
                known = (
                    env.read(name.value) if isinstance(name, v.Lit) and isinstance(name.value, str) else None
                )
                if isinstance(name, v.Lit) and known is not None:
                    found[name.value] = known
    return v.Mapping(found, open=True)


def _instantiate(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``hydra.utils.instantiate(cfg.model)``: what ``_target_`` names is called with the other keys, in each part of
    the configuration."""
    config = args.pos[0] if args.pos else args.kw.get("config")
    if isinstance(config, v.Inst):
        config = _of_fields(config)
    if not isinstance(config, v.Mapping | v.Items):
        return None
    whole = args.kw.get("_recursive_")
    extra = {name: value for name, value in args.kw.items() if not name.startswith("_") and name != "config"}
    older = _of_class(config)
    if older is not None:
        params = config.items.get("params") if isinstance(config, v.Mapping) else None
        named = {} if not isinstance(params, v.Mapping) else params.items
        is_open = params is not None and (not isinstance(params, v.Mapping) or params.open)
        given = {key: value for key, value in named.items() if isinstance(key, str)}
        func = reflection.at_path(interp, older, node)
        return interp.call(func, v.Args(args.pos[1:], {**given, **extra}, dstar=is_open), node)
    return _built(interp, config, extra, node, whole is None or v.truth(whole) is not False)


def _of_class(config: v.Value) -> str | None:
    """The class that a part of a configuration names as Hydra did before 1.1: with its arguments in ``params``."""
    if not isinstance(config, v.Mapping) or "_target_" in config.items:
        return None
    named = next((config.items[key] for key in ("class", "cls", "target") if key in config.items), None)
    return named.value if isinstance(named, v.Lit) and isinstance(named.value, str) else None


def _of_fields(config: v.Inst, depth: int = 0) -> v.Value:
    """A configuration that is an object of a class with fields, but for what has to be given."""
    if not opt.has_fields(config.cls):
        return config
    items: dict[Any, v.Value] = {}
    for name in {name: None for cls in reversed(config.cls.mro()) for name in cls.fields}:
        value = config.attrs.get(name, v.UNKNOWN)
        if isinstance(value, v.Inst) and depth < _MOST_NESTED:
            value = _of_fields(value, depth + 1)
        if not opt.is_left_open(value):
            items[name] = value
    return v.Mapping(items, attributes=True)


def _trainer_of_options(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``Trainer.from_argparse_args(options)``: a trainer with arguments of the command line. Their defaults are the
    trainer's own; on which device it works is what they are given for."""
    trainer = api.rpartition(".")[0]
    return interp.call(v.Ext(trainer), v.Args([], {"accelerator": v.UNKNOWN, **args.kw}), node)


def _built(
    interp: Interp, config: v.Value, extra: dict[str, v.Value], node: Any, whole: bool = True
) -> v.Value:
    """What a part of a configuration stands for; ``whole`` is whether the arguments of what is called are built as well."""
    if isinstance(config, v.Items):
        if not any(map(_has_target, config.elts)):
            return config
        return v.Items(
            config.kind, [_built(interp, one, {}, node, whole) for one in config.elts], config.open
        )
    if not isinstance(config, v.Mapping) or not (extra or config.open or _has_target(config)):
        return config
    if "_target_" not in config.items:
        if config.open:
            # It may be among what is not known of it.
            return v.UNKNOWN
        built = {key: _built(interp, one, {}, node, whole) for key, one in config.items.items()}
        return v.Mapping({**built, **extra}, config.open, config.attributes)
    asked = config.items.get("_recursive_")
    whole = whole if asked is None else v.truth(asked) is not False
    items = {
        key: _built(interp, value, {}, node, whole) if whole else value
        for key, value in config.items.items()
        if isinstance(key, str) and not key.startswith("_")
    }
    target = config.items["_target_"]
    if not isinstance(target, v.Lit) or not isinstance(target.value, str):
        return v.UNKNOWN
    func = reflection.at_path(interp, target.value, node)
    first = config.items.get("_args_")
    given = _built(interp, first, {}, node, whole) if whole and first is not None else first
    arguments = v.Args(
        given.elts if isinstance(given, v.Items) else [],
        {**items, **extra},
        star=given is not None and (not isinstance(given, v.Items) or given.open),
        dstar=config.open,
    )
    partial = config.items.get("_partial_")
    if isinstance(partial, v.Lit) and partial.value:
        return v.Partial(func, arguments)
    return interp.call(func, arguments, node)


def _has_target(config: v.Value) -> bool:
    """Whether a part of a configuration, or one in it, names what is called."""
    if isinstance(config, v.Items):
        return any(map(_has_target, config.elts))
    return isinstance(config, v.Mapping) and (
        "_target_" in config.items or any(map(_has_target, config.items.values()))
    )


def _locate(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``pydoc.locate("package.module.name")``."""
    path = args.pos[0] if args.pos else args.get("path", 0)
    return (
        reflection.at_path(interp, path.value.replace(":", "."), node)
        if isinstance(path, v.Lit) and isinstance(path.value, str)
        else v.UNKNOWN
    )


MODELS: dict[str, Model] = {
    "builtins.globals": _globals,
    "builtins.locals": _locals,
    **SET_MODELS,
    "builtins.staticmethod": _first,
    "hydra.utils.instantiate": _instantiate,
    **{f"hydra.utils.get_{n}": _locate for n in ("class", "method", "object")},
    "pydoc.locate": _locate,
    "pkgutil.resolve_name": _locate,
    "re.sub": substituted,
    "lightning.pytorch.Trainer.from_argparse_args": _trainer_of_options,
    **LOADER_MODELS,
    **KEY_MODELS,
    **PROCESS_MODELS,
    **ENVIRONMENT_MODELS,
    **PYTHON_FILE_MODELS,
    **own_paths.OWN_PATH_MODELS,
    **REFLECTION_MODELS,
    **ROW_MODELS,
    "hydra.initialize": opt.hydra_initialize,
    "hydra.experimental.initialize": opt.hydra_initialize,
    "hydra.initialize_config_dir": opt.hydra_initialize,
    "hydra.compose": opt.hydra_compose,
    "hydra.experimental.compose": opt.hydra_compose,
    **{f"builtins.{n}": _convert for n in ("int", "float", "str", "abs", "round", "bool")},
    "math.ceil": shares.rounded_up,
    HASHING: _hash,
    "builtins.len": _len,
    "builtins.max": _chosen,
    "builtins.min": _chosen,
    "builtins.list": _sequence("l"),
    "builtins.tuple": _sequence("t"),
    "builtins.set": _sequence("s"),
    "builtins.frozenset": _sequence("s"),
    "builtins.dict": _dict,
    "collections.OrderedDict": _dict,
    "collections.defaultdict": _defaultdict,
    "collections.deque": _sequence("l"),
    "builtins.next": _next,
    "builtins.iter": _iter,
    "builtins.vars": _vars,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.dir": _dir,
    "builtins.hasattr": _hasattr,
    "builtins.isinstance": _isinstance,
    "builtins.type": _type,
    "builtins.issubclass": _issubclass,
    "inspect.getmembers": _getmembers,
    "inspect.isclass": _isclass,
    "inspect.isfunction": _isfunction,
    "inspect.isabstract": _isclass,
    "builtins.super": _super,
    "builtins.exit": _exit,
    "builtins.quit": _exit,
    "sys.exit": _exit,
    "os._exit": _exit,
    "functools.partial": _partial,
    "types.MethodType": _partial,
    "ray.tune.with_parameters": _partial,
    "functools.wraps": _decorator_factory,
    "functools.update_wrapper": _update_wrapper,
    "copy.deepcopy": _copied,
    "copy.copy": _copied,
    "importlib.import_module": _import_module,
    "builtins.__import__": _import_module,
    "os.getenv": _getenv,
    "os.environ.get": _getenv,
    "os.putenv": _setenv,
    "os.environ.setdefault": _setenv,
    "os.environ.__setitem__": _setenv,
    "os.environ.update": _update_env,
    "os.environ.pop": _pop_env,
    "os.unsetenv": _pop_env,
    "tensorflow_datasets.load": _tfds_load,
    "torch.cuda.is_available": _cuda_available,
    "tf.test.is_gpu_available": _cuda_available,
    "torch.accelerator.is_available": _any_available,
    **dict.fromkeys(
        ("torch.xpu.is_available", "torch.mps.is_available", "torch.backends.mps.is_available"),
        _other_available,
    ),
    "argparse.ArgumentParser": opt.new_parser,
    "configargparse.ArgParser": opt.new_parser,
    "configargparse.ArgumentParser": opt.new_parser,
    "configargparse.get_argument_parser": opt.new_parser,
    "optparse.OptionParser": opt.new_parser,
    "argparse.Namespace": opt.make_namespace,
    "types.SimpleNamespace": opt.make_namespace,
    records.TUPLE_TYPE: records.define,
    "munch.Munch": opt.make_namespace,
    **{
        f"{head}.DEFINE_{kind}": opt.define_flag
        for head in ("absl.flags", "tf.app.flags", "tf.compat.v1.app.flags", "tf.compat.v1.flags", "tf.flags")
        for kind in ("integer", "string", "float", "bool", "boolean", "enum", "list")
    },
    **{
        f"{head}.mark_{name}_as_required": opt.require_flags
        for head in ("absl.flags", "tf.app.flags", "tf.compat.v1.app.flags", "tf.compat.v1.flags", "tf.flags")
        for name in ("flag", "flags")
    },
    "absl.app.run": _entry_call,
    "tf.app.run": _entry_call,
    "tf.compat.v1.app.run": _entry_call,
    "fire.Fire": _entry_call,
    "typer.run": _entry_call,
    "tyro.extras.subcommand_cli_from_dict": _entry_call,
    "omegaconf.OmegaConf.to_container": _plain_container,
    "omegaconf.OmegaConf.to_object": _plain_container,
    "dataclasses.asdict": _as_dict,
    **FIELD_MODELS,
    "attr.asdict": _as_dict,
    "attrs.asdict": _as_dict,
}

METHOD_MODELS: dict[str, MethodModel] = {
    "*.__getattribute__": _getattribute,
    "*.__class__": _same_kind,
    **CONTAINER_METHODS,
    **FIELD_METHODS,
    **submodules.MODULE_METHODS,
    **STRING_METHODS,
    **REFLECTION_METHODS,
    "*.add_module": _add_module,
    "*.register_module": _register_module,
    **COMMAND_METHODS,
    **PROCESS_METHODS,
    **HOOK_METHODS,
    **SAVING_METHODS,
    **PYTHON_FILE_METHODS,
    **SETTINGS_METHODS,
    **QUEUE_METHODS,
    "*.model_dump": _dumped,
    "*.model_validate": _validated,
    "*.dict": _dumped,
    "*.add_argument": opt.add_argument,
    "*.add_option": opt.add_argument,
    f"{STORED}.ConfigStore.store": opt.store_config,
    "*.add_arguments": opt.add_class,
    "*.add_class_arguments": opt.add_class,
    "*.add_dataclass_arguments": opt.add_class,
    "*.add_subclass_arguments": opt.add_subclasses,
    "*.instantiate_classes": opt.instantiate,
    "*.instantiate_subclasses": opt.instantiate,
    "*.add": opt.add_argument,
    "*.add_argument_group": opt.same_parser,
    "*.add_mutually_exclusive_group": opt.same_parser,
    "*.add_subparsers": opt.same_parser,
    "*.add_parser": opt.same_parser,
    "*.set_defaults": opt.set_defaults,
    "*.parse_args": opt.parse_args,
    "*.error": opt.stop,
    "*.exit": opt.stop,
    "*.parse_known_args": opt.parse_args,
    "*.parse_intermixed_args": opt.parse_args,
    "*.parse_args_into_dataclasses": opt.hf_parse,
    "*.parse_json_file": opt.hf_parse,
    "*.get": _namespace_dict,
    "*.next": _next_of,
    "*.__next__": _next_of,
    "*.__new__": _new_class,
    "*.result": _result,
    "*.__subclasses__": _subclasses,
    "*.pop": _namespace_dict,
    "*.setdefault": _setdefault,
    "*.update": _dict_update,
    "*.items": _dict_values,
    "*.keys": _dict_values,
    "*.values": _dict_values,
    "list.append": _list_append,
    "list.extend": _list_append,
    "list.insert": _list_append,
    "set.add": _list_append,
    **{
        f"set.{name}": _set_update
        for name in ("update", "union", "intersection", "difference", "symmetric_difference", "copy")
    },
    "list.appendleft": _list_append,
    "list.extendleft": _list_append,
    **{f"list.{name}": _shrink for name in ("pop", "popleft", "remove", "clear")},
    **{f"set.{name}": _shrink for name in ("remove", "discard", "clear")},
    **{f"dict.{name}": _emptied for name in ("popitem", "clear")},
    "*.copy": _copy,
    "dict.clone": _clone,
    **{f"dict.merge_from_{name}": _merge_from for name in ("file", "list", "other_cfg")},
    "*.shuffle": _shuffled,
    "*.to": _self,
    "*.cuda": _self,
    "*.cpu": _self,
    "*.half": _self,
    "*.float": _self,
    "*.double": _self,
    "*.bfloat16": _self,
    "*.train": _training,
    "*.eval": _training,
    "*.manual_seed": _self,
    "*.requires_grad_": _requiring_grad,
    "*.apply": _module_apply,
    "tf.data.Dataset.apply": _piped,
    "pandas.DataFrame.pipe": _piped,
    "pandas.Series.pipe": _piped,
    "*.register_buffer": _register_buffer,
    "*.register_parameter": _register_parameter,
    "*.load_from_checkpoint": _from_checkpoint,
    "*.load_state_dict": load,
    "*.load_weights": load,
    "*.set_weights": load,
}
