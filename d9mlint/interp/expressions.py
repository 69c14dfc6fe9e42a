"""Abstract values of expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from d9mlint.interp import order_single, rng, shapes, shares, tensors, text_parts
from d9mlint.interp import values as v
from d9mlint.interp.assignment import assign, parts_of
from d9mlint.interp.clocks import timed
from d9mlint.interp.conditions import compared, condition, narrowed, truth
from d9mlint.interp.constant_tests import other_part
from d9mlint.interp.containers import CONTAINERS, keep_order, named, parts
from d9mlint.interp.context import EACH_ELEMENT
from d9mlint.interp.data import (
    DIFFERS_BY,
    ENTROPY_FIELDS,
    MODULE,
    MOST_OF_OWN_CODE,
    PATH,
    UNKNOWN_KEY,
    added,
    are_classes,
    binary,
    chosen_of,
    computed,
    cut_out,
    element,
    elements,
    elements_of_own_code,
    entropy,
    is_entropy,
    is_graph_tensor,
    keep_items,
    more_given,
    own_code,
    part_of,
    rest_of,
    spread,
    subscript,
    unpacked,
)
from d9mlint.interp.device_names import either_given
from d9mlint.interp.devices import DEVICE, type_off_cuda
from d9mlint.interp.emptiness import is_empty
from d9mlint.interp.events import InstanceReadEvent, LookedAtEvent
from d9mlint.interp.failing import called_with_none, computes_with_none, end_lost, has_raised
from d9mlint.interp.frames import Frame
from d9mlint.interp.given_instead import (
    given_by_default,
    goes_on_with_numbers,
    names_other_gpu,
    switch,
    unless_option,
)
from d9mlint.interp.heap import HEAP
from d9mlint.interp.kinds import class_of, has_weight
from d9mlint.interp.library import coroutines, given_files, own_dicts, own_paths
from d9mlint.interp.library.known_options import is_no_option
from d9mlint.interp.library.options import NAMESPACE
from d9mlint.interp.library.records import field_names as record_fields
from d9mlint.interp.library.rows import among, columns
from d9mlint.interp.library.set_by_name import may_be_none
from d9mlint.interp.library_modules import is_module
from d9mlint.interp.methods import bind_method, given_by_descriptor, is_decorated
from d9mlint.interp.missing_items import present, take_over
from d9mlint.interp.order_identifiers import chosen, keyed
from d9mlint.interp.order_kinds import is_number, sample
from d9mlint.interp.orders import INDEX, Loop, Order, filled_in, is_set, merge
from d9mlint.interp.passed_on import ENUMERATE
from d9mlint.interp.tensors import TENSOR, is_switch
from d9mlint.interp.usage import base_argument, kept_argument
from d9mlint.ir import nodes as m
from d9mlint.ir.many_rounds import takes_by_name
from d9mlint.ir.traversal import alike, called_name, nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

MAX_YIELDS = 16
"""So many values that a generator yields are kept."""


def _name(interp: Interp, node: m.Name) -> v.Value:
    if "." not in node.id:
        value = interp.lookup(node.id)
        if value is None:
            interp.frame.missed = node
            return v.UNKNOWN
        return value
    parts = parts_of(node.id)
    value = interp.lookup(parts[0])
    if value is None:
        interp.frame.missed = node
        return v.UNKNOWN
    for part in parts[1:]:
        value = attribute(interp, value, part, node)
    return value


def attribute(interp: Interp, value: v.Value, name: str, node: Any = None) -> v.Value:
    """``value.name``."""
    kind = type(value)
    if kind is v.Ext:
        return _ext_attribute(interp, value, name)  # type: ignore[arg-type]
    if name == _FIELDS and (fields := record_fields(value)):
        return v.Items("t", [v.Lit(one) for one in fields])
    if kind is v.Inst:
        return _inst_attribute(interp, value, name, node)  # type: ignore[arg-type]
    if isinstance(value, v.Mod):
        return _mod_attribute(interp, value, name)
    if isinstance(value, v.Cls):
        found = value.find(name)
        if found is None and value.metaclass is not None:
            of_metaclass = value.metaclass.find(name)
            if of_metaclass is not None:
                return bind_method(interp, of_metaclass, value, value.metaclass, node)
        if found is None:
            return value if name == "value" else _class_extra(value, name)
        if isinstance(found, v.Func) and is_decorated(found, "builtins.classmethod"):
            return found.bind(value)
        return given_by_descriptor(interp, found, v.NONE, value, node) if isinstance(found, v.Inst) else found
    if isinstance(value, v.Obj):
        if name in value.attrs:
            return value.attrs[name]
        if value.api in CONTAINERS:
            part = named(value, name)
            if part is not None:
                return part
        if value.type == NAMESPACE:
            if name == "__dict__":
                return v.Mapping(value.attrs)
            if is_no_option(interp, value, name, node):
                end_lost(interp)
        if value.type == TENSOR:
            return _tensor_attribute(interp, value, name)
        if is_entropy(value) and (
            name in ENTROPY_FIELDS or interp.kb.role(value.api, "free-memory") is not None
        ):
            return rest_of(interp, value, name)
        if value.type == PATH and name in ("parent", "parents"):
            known = name == "parent" and own_paths.path_of(value) is not None
            return own_paths.above(value, 1) if known else value
        if value.type == PATH and (part := own_paths.name_part(value, name)) is not None:
            return part
        if name == "dataset" and interp.kb.role(value.type or value.api, "takes-items") is not None:
            return value.args.get("dataset", 0) or v.UNKNOWN
        if name == "sampler" and value.type == "torch.utils.data.DataLoader":
            sampler = value.args.get("sampler", 3)
            if sampler is not None and all(isinstance(one, v.Obj) for one in v.alternatives(sampler)):
                return sampler
        places = tensors.second(interp, value) if name == "indices" else None
        if places is not None:
            return places
        if name == "__class__" and (cls := class_of(interp, value)) is not None:
            return cls
        if name == "module" and is_module(interp, value):
            # What is put around a model stands for it.
            return value
        if rng.gives_new_seed(interp, f"{value.api}.@{name}"):
            seed = v.Obj(f"{value.api}.{name}", "", value.args, value.node)
            seed.file, seed.data = value.file, entropy(interp)
            return seed
        if (kept := kept_argument(interp, value, name)) is not None:
            return kept
        if name == "type" and value.api == DEVICE and (text := type_off_cuda(value)) is not None:
            return text
        if has_weight(interp, value, name) is False:
            return v.NONE
        if name.endswith(_KEPT) and (fitted := _fitted(interp, value, name)) is not None:
            return fitted
        made = interp.kb.attribute_type(value.type, name)
        return _typed_attribute(interp, value, name, made) if made else v.Member(value, name)
    if isinstance(value, v.Mapping):
        if value.cls is not None and (own := own_dicts.attribute(interp, value, name, node)) is not None:
            return own
        if value.attributes and name in value.items:
            return present(value.items[name])
        if value.attributes and name == "__dict__":
            return v.Mapping(value.items, value.open)
        held = given_files.look_up(value, name) if value.attributes and value.files[0] else None
        return v.Member(value, name) if held is None else held
    if isinstance(value, v.Super):
        return _super_attribute(interp, value, name)
    if isinstance(value, v.AnyOf):
        return v.join(
            [attribute(interp, one, name, node) for one in value.values if not _is_none_lit(one)]
            or [v.UNKNOWN],
            max(v.MAX_ALTERNATIVES, len(value.values)),
        )
    if isinstance(value, v.Partial) and name == "func":
        return value.func
    if isinstance(value, v.Func) and name in ("__name__", "__qualname__"):
        return v.Lit(value.fn.name)
    if name == "value" and _is_member(value):
        return value
    return v.Member(value, name)


def _fitted(interp: Interp, value: v.Obj, name: str) -> v.Value | None:
    """What an attribute of a library object is that it keeps when it is fitted: one like what it was made with; or a list of
    pairs, which it also has by their names."""
    roles = interp.kb.by_role(f"{value.type}.@{name}")
    role = roles.get("wraps")
    given = value.args.get(role.arg, role.pos) if role is not None else None
    if isinstance(given, (v.Inst, v.Obj, v.AnyOf)):
        return given
    role = roles.get("keeps-pairs")
    held = value.args.get(role.arg, role.pos) if role is not None and value.api == value.type else None
    if role is None or not isinstance(held, v.Items) or held.kind != "l" or held.open:
        return None
    pairs = [one.elts for one in held.elts if isinstance(one, v.Items) and one.kind == "t" and not one.open]
    named = {one[0].value: one[1] for one in pairs if len(one) == _PAIR and isinstance(one[0], v.Lit)}
    if len(named) < len(held.elts):
        return None
    return v.Mapping(dict(named), attributes=True) if "by-name" in role.more else held


def _typed_attribute(interp: Interp, value: v.Obj, name: str, made: str) -> v.Value:
    """An attribute of a library object of which the class is known."""
    result = v.Obj(f"{value.type}.{name}", made, value.args, value.node)
    result.file, result.owner = value.file, value
    entry = interp.kb.tensor(result.api) if made == TENSOR else None
    if entry is not None:
        grad = False if entry.grad == "none" else None
        sizes = (None,) * entry.rank if isinstance(entry.rank, int) and entry.rank > 0 else None
        result.start_with(shapes.NOTHING._replace(grad=grad, sizes=sizes))
    order = interp.orders.of(v.Member(value, name)) if interp.orders.any else None
    return interp.orders.carried(result, order)


_PAIR = 2
_KEPT = ("_", "steps")
"""How attributes of estimators end that hold what these were made with."""
_FIELDS = "_fields"
_SAME_TENSOR = frozenset({"T", "mT", "H", "mH", "real", "imag"})


def _tensor_attribute(interp: Interp, value: v.Obj, name: str) -> v.Value:
    """An attribute of a tensor, or of a batch of data."""
    form = value.form or shapes.NOTHING
    if name in ("data", "grad") or name in _SAME_TENSOR:
        same = form.sizes is None or name in ("data", "grad")
        sizes = form.sizes if same or form.sizes is None else (None,) * len(form.sizes)
        grad = False if name in ("data", "grad") else form.grad
        zero = form.zero and name != "grad"
        made = tensors.make(
            f"{TENSOR}.{name}", form._replace(sizes=sizes, grad=grad, zero=zero), value.likely
        )
        made.args = v.Args([value])
        return made
    other = tensors.second(interp, value) if name == "indices" else None
    if other is not None:
        return other
    if name == "values" and tensors.second(interp, value) is not None:
        return tensors.make(tensors.PART, form, value.likely)
    if value.api == tensors.BATCH and name not in ("device", "dtype", "shape", "ndim"):
        method = name in _BATCH_METHODS or interp.kb.tensor(f"{TENSOR}.{name}") is not None
        return v.Member(value, name) if method or name.endswith("_") else value
    return v.Member(value, name)


# Methods of what may be a tensor or a mapping; any other attribute of a batch is data.
_BATCH_METHODS = frozenset(
    {*dir(dict), "size", "dim", "numel", "item", "numpy", "tolist", "mean", "sum", "max", "min", "type"}
)


def _is_none_lit(value: v.Value) -> bool:
    return isinstance(value, v.Lit) and value.value is None


_EXT: dict[str, dict[str, v.Ext]] = {}


def _ext_attribute(interp: Interp, value: v.Ext, name: str) -> v.Value:
    by_name = _EXT.setdefault(value.name, {})
    known = by_name.get(name)
    if known is None:
        known = by_name[name] = v.Ext(f"{value.name}.{name}")
    # Something may be stored on a library module by the program itself.
    held = interp.library_attribute(known.name)
    if held is None:
        made = interp.kb.attribute_type(interp.kb.canonical(value.name), name)
        if made:
            return v.Obj(known.name, made)
        if (
            name == "value"
            and value.name.rpartition(".")[2][:1].isupper()
            and not interp.kb.gives(known.name)
        ):
            # The class of a library that is a member of an enumeration.
            return value
        if name == "__name__" and interp.kb.role(interp.kb.canonical(value.name), "derived-from") is not None:
            return v.Lit(value.name.rpartition(".")[2])
        text = interp.kb.role(known.name, "stands-for-text")
        return v.of_library(known.name) if text is None else v.Lit(text.more[0])
    return held


def _mod_attribute(interp: Interp, mod: v.Mod, name: str) -> v.Value:
    found = mod.env.read(name)
    if found is not None:
        return found
    if name == "__dict__":
        # Models are often looked up in a package by name; what it imports from elsewhere is found there too.
        return v.Mapping({**mod.env.all(), MODULE: mod}, open=True)
    sub = interp.submodule(mod, name)
    if sub is not None:
        return sub
    if mod.file is None and not name.startswith("__"):
        # A directory without ``__init__.py`` defines nothing: a library that has its name is meant.
        return v.of_library(f"{mod.name}.{name}")
    return v.Ext(f"{mod.env.stars[-1]}.{name}") if mod.env.stars else v.UNKNOWN


_SET_BY_TEXT = ("setattr", "exec", "__dict__.update")
"""Parts of names by which code gives objects attributes whose names it computes."""


_BY_NAME = "__getattr__"
_PLAIN = frozenset({"object", "builtins.object", *own_dicts.DICTS})


def _inst_attribute(interp: Interp, inst: v.Inst, name: str, node: Any) -> v.Value:
    held: v.Value | None = dict.get(inst.attrs, name)
    if held is None:
        found = inst.cls.find(name)
        if isinstance(found, v.Func):
            # Methods are hardly ever shadowed by attributes, see ``_store``.
            return bind_method(interp, found, inst, inst.cls, node)
    inst.attrs.note_read(name)
    if held is not None:
        if type(held) is v.Obj or type(held) is v.AnyOf:
            interp.listeners.tell(InstanceReadEvent(held, node))
        return held
    if name == "__class__":
        return inst.cls
    if name == "__dict__":
        # Libraries give objects of classes that are derived from theirs further attributes.
        more = bool(inst.cls.external_bases())
        if not more and interp.mentions(_SET_BY_TEXT):
            more = v.PERHAPS_MORE
        return v.Mapping(inst.attrs, open=more)
    if found is not None:
        return bind_method(interp, found, inst, inst.cls, node)
    if name == "module":
        return inst
    made = base_argument(interp, inst, name) or _made_by_base(interp, inst, name)
    return made or _given_by_method(interp, inst, name, node) or v.Member(inst, name)


def _given_by_method(interp: Interp, inst: v.Inst, name: str, node: Any) -> v.Value | None:
    """What the ``__getattr__`` of a class gives that no library has a part in: the attribute of another object, as of one
    that it is put around, or what a table holds. None where that is not known."""
    found = inst.cls.find(_BY_NAME)
    if not isinstance(found, v.Func) or name.startswith("__"):
        return None
    if not _PLAIN.issuperset(map(interp.kb.canonical, inst.cls.external_bases())):
        return None
    given = interp.call(found.bind(inst), v.Args([v.Lit(name)]), node)
    if not interp.state.alive:
        # There is no such attribute that is known of.
        interp.state.alive = True
        return None
    held = [one for one in v.alternatives(given) if one is not v.UNKNOWN and not _is_none_lit(one)]
    if not held or any(isinstance(one, v.Member) and one.owner is inst for one in held):
        return None
    return v.join(held)


def _made_by_base(interp: Interp, inst: v.Inst, name: str) -> v.Value | None:
    """What a property gives of the library's class that a class is derived from: what the attribute behind it holds, or
    else an object of the class that is known."""
    for base in map(interp.kb.canonical, inst.cls.external_bases()):
        made = interp.kb.attribute_type(base, name)
        if made:
            behind: v.Value | None = inst.attrs.get(f"_{name}")
            if behind is not None:
                return behind
            result = v.Obj(f"{base}.{name}", made)
            result.file, result.owner = interp.frame.file, inst
            return result
    return None


def _super_attribute(interp: Interp, sup: v.Super, name: str) -> v.Value:
    receiver = sup.receiver
    cls = receiver.cls if isinstance(receiver, v.Inst | v.Mapping) else receiver
    if not isinstance(cls, v.Cls):
        cls = sup.cls
    mro = cls.mro()
    after = mro[mro.index(sup.cls) + 1 :] if sup.cls in mro else sup.cls.mro()[1:]
    for base in after:
        HEAP.act.names.add(name)
        found = base.env.vars.get(name)
        if found is not None:
            return bind_method(interp, found, receiver, base, None)
    return v.Member(sup, name)


def _is_member(value: v.Value) -> bool:
    """Whether a value is a member of an enumeration, which is known by its value, if it is asked for that: literals, tuples
    and classes have no such attribute."""
    if isinstance(value, v.Lit):
        return isinstance(value.value, (str, int, float))
    return isinstance(value, (v.Items, v.Partial))


def _class_extra(cls: v.Cls, name: str) -> v.Value:
    return v.Lit(cls.cls.name) if name in ("__name__", "__qualname__") else v.Member(cls, name)


def _attr(interp: Interp, node: m.Attr) -> v.Value:
    value = interp.eval(node.value)
    for part in parts_of(node.name):
        value = attribute(interp, value, part, node)
    return value


def _const(interp: Interp, node: m.Const) -> v.Value:
    return v.Lit(node.value)


def _call(interp: Interp, node: m.Call) -> v.Value:
    func = interp.eval(node.func)
    pos: list[v.Value] = []
    star, in_order = False, False
    for arg in node.args:
        if isinstance(arg, m.Star):
            given = interp.eval(arg.value)
            value = spread(given)
            if (interp.orders.any or is_set(given)) and _collects(interp, func):
                interp.orders.decide(interp.orders.iterated(interp, given, arg.value))
            if isinstance(value, v.Items) and len(node.args) == 1 and _is_zip(func):
                found = columns(value)
                if found is not None:
                    return found
            if interp.orders.any and len(node.args) == 1 and _is_zip(func):
                order = interp.orders.of(value)
                if order is not None:
                    # Each column has the order of the rows.
                    return v.Items("t", [interp.orders.carried(v.Obj("builtins.tuple"), order)], open=True)
            if isinstance(value, v.Items) and not star and value.kind != "s" and not value.open:
                pos.extend(value.elts)
            else:
                # What is known of a list that a loop fills are some of the modules in the container.
                collects = _collects(interp, func)
                listed = isinstance(value, v.Items) and value.kind != "s" and _all_known(value)
                in_order = collects and listed and (in_order or not star)
                if isinstance(value, v.Items) and collects:
                    pos.extend(value.elts)
                elif isinstance(value, v.Items) and value.open and len(node.args) == 1 and _is_zip(func):
                    # Each of its elements gives an element of each row.
                    pos.extend(value.elts)
                elif isinstance(value, v.Items) and len(node.args) == 1 and _flattens(interp, func):
                    pos.append(value)
                elif isinstance(value, v.Obj) and collects:
                    pos.extend(parts(value) or among(interp, value))
                star = more_given(value) if star is not True else True
        elif star:
            value = interp.eval(arg)
            if in_order:
                pos.append(value)
            elif star is not True and not tensors.detached(value):
                star = True
        else:
            pos.append(interp.eval(arg))
    kw: dict[str, v.Value] = {}
    dstar = False
    for keyword in node.keywords:
        value = interp.eval(keyword.value)
        if keyword.name is not None:
            kw[keyword.name] = value
        else:
            of_library = _is_of_library(func)
            held, more = unpacked(value, of_some_files=not of_library)
            named = {k: x for k, x in held.items() if isinstance(k, str) and k not in kw}
            kw.update({k: present(x) for k, x in named.items()} if of_library else named)
            if more:
                dstar = more_given(value) if dstar is not True else True
    args = v.Args(pos, kw, star, dstar)
    if pos and not star:
        called_with_none(interp, node, func, pos[0])
    if isinstance(func, v.Func) and func.fn.name == "__init__" and not _takes(func, args):
        func = _library_base(interp, node) or func
    if has_raised(interp):
        return v.UNKNOWN
    interp.lost = interp.exits = False
    result = interp.call(func, args, node)
    if in_order:
        keep_order(result)
    if (interp.lost or interp.exits) and isinstance(func, (v.Func, v.Cls)):
        end_lost(interp, interp.lost)
    return result


def _is_zip(func: v.Value) -> bool:
    return isinstance(func, v.Ext) and func.name == "builtins.zip"


def _flattens(interp: Interp, func: v.Value) -> bool:
    """Whether a function puts the elements of all its arguments one after the other."""
    entry = interp.kb.order(interp.kb.canonical(func.name)) if isinstance(func, v.Ext) else None
    return entry is not None and entry.flattens == "starred"


def _takes(func: v.Func, args: v.Args) -> bool:
    """Whether a method of the project takes these arguments."""
    kinds = [param.kind for param in func.fn.params]
    names = {param.name for param in func.fn.params if param.kind in "ak"}
    places = sum(kind in "pa" for kind in kinds) - (func.receiver is not None)
    return ("w" in kinds or names.issuperset(args.kw)) and ("v" in kinds or len(args.pos) <= places)


def _library_base(interp: Interp, node: m.Call) -> v.Value | None:
    """The ``super().__init__`` of a call whose arguments no base of the project takes: that of a library's class which
    stands before it."""
    if not isinstance(node.func, m.Attr):
        return None
    bound = interp.eval(node.func.value)
    if not isinstance(bound, v.Super) or not bound.cls.bases or not isinstance(bound.cls.bases[0], v.Ext):
        return None
    return v.Member(bound, "__init__")


def _collects(interp: Interp, func: v.Value) -> bool:
    """Whether a callable takes any number of modules, in their order."""
    if isinstance(func, v.Ext):
        return interp.kb.canonical(func.name) in CONTAINERS
    return (
        isinstance(func, v.Cls)
        and func.find("__init__") is None
        and any(interp.kb.canonical(base) in CONTAINERS for base in func.external_bases())
    )


def _all_known(layers: v.Items) -> bool:
    """Whether a list of modules has none of which nothing is known; of those that a loop adds it has one round."""
    return bool(layers.elts) and all(isinstance(one, (v.Obj, v.Inst)) for one in layers.elts)


def _seq(interp: Interp, node: m.Seq) -> v.Value:
    elts: list[v.Value] = []
    starred: list[Order | None] = []
    is_open = False
    for elt in node.elts:
        if isinstance(elt, m.Star):
            value = interp.eval(elt.value)
            if isinstance(value, v.Items):
                if not is_empty(interp, value):
                    elts.extend(value.elts)
                is_open = is_open or value.open
            else:
                elts += among(interp, value) or sample(interp, value, elt.value) or [v.UNKNOWN]
                is_open = True
            starred.append(interp.orders.iterated(interp, value, elt.value))
        else:
            elts.append(interp.eval(elt))
    result = v.Items(node.kind, elts, is_open)
    if starred and node.kind != "s":
        return interp.orders.carried(result, merge(starred))
    return result


_KEEPING = frozenset({"builtins", "collections", "functools", "types"})
"""Modules whose functions keep keywords for others, which know their own defaults."""


def _is_of_library(func: v.Value) -> bool:
    """Whether a call is one of a library, of whose defaults nothing is known: what may be missing is taken to be given."""
    if isinstance(func, v.Ext):
        return func.name.partition(".")[0] not in _KEEPING
    return isinstance(func, v.Obj | v.Member)


def _dict(interp: Interp, node: m.Dict) -> v.Value:
    result = v.Mapping({})
    for key, item in zip(node.keys, node.values, strict=False):
        value = interp.eval(item)
        if key is None:
            held, more = unpacked(value)
            if more:
                may_be_none(result.items)
            take_over(result.items, held)
            result.open = result.open or more
            if not isinstance(value, v.Mapping):
                keep_items(result.items, value, item)
            continue
        known = interp.eval(key)
        if isinstance(known, v.Lit):
            result.items[known.value] = value
        elif isinstance(known, v.Ext):
            result.items[known.name] = value
        else:
            # An unknown key keeps its value reachable under a key of its own.
            result.items[UNKNOWN_KEY, len(result.items)] = value
            result.open = True
            if interp.orders.any:
                keyed(interp.orders, result, known)
    return result


def _binop(interp: Interp, node: m.BinOp) -> v.Value:
    left, right = interp.eval(node.left), interp.eval(node.right)
    computes_with_none(interp, node, left, right)
    result = binary(interp, node.op, left, right, node)
    if node.op == "|" and result is v.UNKNOWN and are_classes((left, right)):
        return v.candidates((left, right))
    if node.op == "+":
        result = added(result, left, right)
    elif node.op in _COMPUTING:
        result = computed(result, left, right)
        if result is v.UNKNOWN and isinstance(left, v.Obj) and isinstance(right, v.Lit):
            # A part of the processors.
            result = left if interp.kb.role(left.api, "processor-count") is not None else result
        if result is v.UNKNOWN and node.op == "//":
            result = shares.share(interp, node) or result
    result = timed(interp, result, left, right)
    if interp.orders.any or (node.op == "%" and any(map(is_set, filled_in(right)))):
        return interp.orders.operated(interp, node, (left, right), result)
    return result


_COMPUTING = frozenset({"-", "*", "//", "%"})


def _boolop(interp: Interp, node: m.BoolOp) -> v.Value:
    left = interp.eval(node.left)
    known = truth(interp, left)
    if known is not None and not v.option_of(left):
        return interp.eval(node.right) if known == (node.op == "and") else left
    if known is None:
        right = narrowed(interp, node.left, node.op == "and", lambda: interp.eval(node.right))
        return right if _is_never_true(node, right) else v.join((left, right))
    outcome = [left]
    needed = known == (node.op == "and")
    runs: list[Callable[[], None]] = [lambda: outcome.append(interp.eval(node.right)), lambda: None]
    option = v.option_of(left)
    interp.branch(runs, keep=0 if needed else 1, option=option)
    right = outcome[-1]
    if (
        needed
        and node.op == "or"
        and isinstance(right, v.Lit)
        and isinstance(left, v.Lit)
        and not right.option
    ):
        # `option or default`: what stands there if the option is not given.
        return given_by_default(interp, right, option)
    return right if needed or _is_never_true(node, right) else left


def _is_never_true(node: m.BoolOp, right: v.Value) -> bool:
    """Whether ``left and right`` is false whatever ``left`` is, because ``right`` is False."""
    return node.op == "and" and isinstance(right, v.Lit) and right.value is False and not right.option


def _unary(interp: Interp, node: m.Unary) -> v.Value:
    value = interp.eval(node.operand)
    if node.op == "not":
        known = truth(interp, value)
        return v.UNKNOWN if known is None else v.Lit(not known, v.option_of(value))
    if isinstance(value, v.Lit) and isinstance(value.value, (int, float)):
        if node.op == "-":
            return v.Lit(-value.value, value.option)
        return value if node.op == "+" else v.UNKNOWN
    return value if isinstance(value, v.Obj) else v.UNKNOWN


def _compare(interp: Interp, node: m.Compare) -> v.Value:
    test, values = compared(interp, node)
    if test.answer is not None:
        return v.Lit(test.answer, test.option)
    result = _compared(interp, node, values)
    return interp.orders.tested(node, values, result) if interp.orders.any else result


def _compared(interp: Interp, node: m.Compare, values: list[v.Value]) -> v.Value:
    """What a comparison gives whose answer is not known."""
    if len(values) == 2 and node.ops[0] in _TENSOR_COMPARISONS:
        for one in values:
            if isinstance(one, v.Obj) and one.type == TENSOR:
                return tensors.make("operator", tensors.of_comparison(interp, *values), one.likely)
        if any(
            isinstance(one, v.Obj) and one.api.startswith("?.") and shapes.form(one).sizes for one in values
        ):
            made = v.Obj("?.operator", "", v.Args(list(values)))
            made.start_with(tensors.of_comparison(interp, *values))
            return made
        if any(map(is_graph_tensor, values)):
            made = v.Obj(shapes.OPERATOR, "", v.Args(list(values)))
            made.start_with(shapes.Form(dtype="bool"))
            return made
    return v.UNKNOWN


_TENSOR_COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})


def _ifexp(interp: Interp, node: m.IfExp) -> v.Value:
    test = condition(interp, node.test)
    outcome: list[v.Value] = [v.UNKNOWN, v.UNKNOWN]

    def body() -> None:
        outcome[0] = narrowed(interp, node.test, True, lambda: interp.eval(node.body))

    def orelse() -> None:
        outcome[1] = narrowed(interp, node.test, False, lambda: interp.eval(node.orelse))

    if test.answer is None:
        interp.branch([body, orelse])
        return v.join(outcome)
    if test.option:
        interp.branch([body, orelse], keep=0 if test.answer else 1, option=test.option)
    else:
        other_part(interp, node, test.answer)
        (body if test.answer else orelse)()
    chosen = outcome[0] if test.answer else outcome[1]
    if test.option:
        goes_on_with_numbers(interp, chosen, outcome[bool(test.answer)], test.option)
    is_chain = isinstance(node.orelse, m.IfExp)
    other = outcome[bool(test.answer)]
    if (
        test.option
        and isinstance(chosen, v.Lit)
        and (not chosen.option or is_chain)
        and not names_other_gpu(interp, chosen, other)
    ):
        # Each option of a chain gives another value.
        option = either_given(test.option, chosen.option) if chosen.option else test.option
        nothing = is_switch(v.Lit(chosen.value)) or chosen.instead is not None
        return switch(interp, chosen, other, option) if nothing else v.Lit(chosen.value, option)
    return unless_option(interp, chosen, other, test.option)


def _subscript(interp: Interp, node: m.Subscript) -> v.Value:
    value = interp.eval(node.value)
    if isinstance(node.index, m.Slice):
        part = node.index
        bounds = _bounds(interp, part)
        if isinstance(value, (v.Items, v.Lit)) or (isinstance(value, v.Obj) and value.api in CONTAINERS):
            result = cut_out(value, bounds)
        else:
            of_tensor = isinstance(value, v.Obj) and value.type == shapes.TENSOR
            rows = _of_bounds(part, *bounds) if of_tensor else v.UNKNOWN
            result = part_of(interp, value, subscript(interp, value, rows, node))
        index: v.Value = v.UNKNOWN
    else:
        index = interp.eval(node.index)
        result = subscript(interp, value, index, node)
        if isinstance(node.index, m.Seq) and any(isinstance(one, m.Slice) for one in node.index.elts):
            # Columns of an array, not an element.
            result = part_of(interp, value, result)
        if result is v.UNKNOWN:
            result = chosen_of(interp, value)
    if interp.orders.any:
        return interp.orders.subscripted(interp, value, index, node, result)
    return result


def _is_key(value: Any) -> bool:
    return isinstance(value, (str, int, bytes)) and not isinstance(value, bool)


def _lambda(interp: Interp, node: m.Lambda) -> v.Value:
    return interp.make_function(interp.frame.file.facts.functions[node.function])


def _comp(interp: Interp, node: m.Comp) -> v.Value:
    outer = interp.frame
    env = v.Env(outer.env if not outer.is_class else outer.env.parent or outer.env)
    first = node.generators[0]
    iterated = interp.eval(first.iter)
    alone = len(node.generators) == 1
    known = elements(interp, iterated, first.iter) if alone else [] if is_empty(interp, iterated) else None
    if known is None and alone:
        inside = [one for one in (node.elt, node.value) if one is not None]
        known = text_parts.counted(interp, iterated, first.target, inside)
        known = text_parts.empty_each(iterated, node) if known is None else known
    rounds_in_all = 1
    if known is not None and (
        interp.may_unroll(len(known)) or (interp.may_unroll(len(known), many=True) and takes_by_name(node))
    ):
        rounds_in_all = max(1, len(known))
    else:
        known = elements_of_own_code(iterated) if alone else None
    interp.frame = Frame(outer.mod, outer.file, env, outer.label, outer.caller, outer.call_site, outer.func)
    interp.frame.returns, interp.frame.jumps = outer.returns, outer.jumps
    alive = interp.state.alive
    results: list[v.Value] = []
    keys: list[v.Value] = []
    is_open = True
    counts = all(called_name(one.iter) == "range" for one in node.generators)

    def evaluate() -> None:
        with interp.within(*([] if counts else [EACH_ELEMENT])):
            results.append(interp.eval(node.elt))
            if node.value is not None:
                keys.append(results[-1])
                results[-1] = interp.eval(node.value)

    picks = alone and order_single.picks_one(interp, iterated, first)
    loops: list[Loop | None] = [
        None if picks else interp.orders.enter(interp, iterated, first.iter, comp=node)
    ]
    interp.orders.begin_rounds(interp, None)
    if known is not None:
        is_open = False
        interp.steps += len(known)
        rounds, interp.rounds = interp.rounds, interp.rounds * rounds_in_all
        for one in known:
            assign(interp, first.target, one)
            passes = [condition(interp, test).answer for test in first.ifs]
            if False in passes:
                continue
            is_open = is_open or None in passes
            evaluate()
        interp.rounds = rounds
    else:
        for index, gen in enumerate(node.generators):
            source = iterated
            if index:
                source = interp.eval(gen.iter)
                if is_empty(interp, source):
                    is_open = False
                    break
                loops.append(interp.orders.enter(interp, source, gen.iter, comp=node))
            one = element(interp, source)
            if interp.orders.any:
                one = interp.orders.element(interp, source, loops[-1], one, gen.target)
            assign(interp, gen.target, one)
            for test in gen.ifs:
                interp.eval(test)
        else:
            evaluate()
    turns = interp.orders.end_rounds()
    interp.frame = outer
    if interp.state.lost and alive:
        # There may be no rounds.
        interp.state.alive, interp.state.lost = True, False
    order = (
        merge((turns, *(loop.order for loop in loops if loop is not None))) if turns or any(loops) else None
    )
    if order is not None and node.kind == "d":
        # A number by order of arrival under each name.
        for value in results:
            index_order = interp.orders.deep(value)
            if index_order is not None and index_order.kind == INDEX:
                interp.orders.arrived(interp, node, index_order)
    for loop in loops:
        if loop is not None:
            if node.kind != "d":
                # Numbers of the loop beside what belongs to them.
                results = [
                    interp.orders.remaining(one, loops) if isinstance(one, v.Items) else one
                    for one in results
                ]
            interp.orders.leave(loop)
            break
    if node.kind == "d":
        names = [
            key.value for key in keys if isinstance(key, v.Lit) and not key.option and _is_key(key.value)
        ]
        held: dict[Any, v.Value] = (
            dict(zip(names, results, strict=True))
            if not is_open and len(names) == len(results)
            else {(UNKNOWN_KEY, index): one for index, one in enumerate(results)}
        )
        made = interp.orders.carried(v.Mapping(held, open=is_open or len(names) < len(results)), order)
        for key in keys if interp.orders.any else ():
            keyed(interp.orders, made, key)
        return made
    if interp.orders.any:
        chosen(interp.orders, *results)
    if node.kind == "s" and interp.frame.dispatching:
        return v.UNKNOWN
    result = v.Items("l" if node.kind == "g" else node.kind, results, is_open)
    if node.kind == "g" and isinstance(iterated, v.Items):
        result.maker = iterated.maker
    if node.kind != "s" and is_open and known is None and alone and _takes_each(interp, node, iterated):
        each = tensors.each_of(iterated, results[0])
        result.elts = results = [each]
    if node.kind != "s":
        if results == [v.UNKNOWN]:
            result.elts = [one for one in _of_kind(interp, node, iterated) if _is_number(one)] or results
        return interp.orders.carried(result, order)
    if len(results) == 1 and not isinstance(results[0], v.Lit):
        result.elts = _of_kind(interp, node, iterated) or results
    return result


def _takes_each(interp: Interp, node: m.Comp, iterated: v.Value) -> bool:
    """Whether a comprehension gives each of the numbers of a sequence, or of its positions, none of them twice."""
    target = node.generators[0].target
    counted = isinstance(iterated, v.Obj) and iterated.api == ENUMERATE
    if counted and isinstance(target, m.Seq) and target.elts:
        target = target.elts[0]
    elif counted:
        return False
    if not isinstance(target, m.Name) or not _keeps_apart(node.elt, target.id):
        return False
    return counted or tensors.are_all_different(interp, iterated)


def _keeps_apart(given: m.Expr, name: str) -> bool:
    """Whether an expression has another value for each number: the number itself, moved, or a multiple of it."""
    if isinstance(given, m.Name):
        return given.id == name
    if not isinstance(given, m.BinOp) or given.op not in ("+", "-", "*"):
        return False
    for one, other in ((given.left, given.right), (given.right, given.left)):
        if _keeps_apart(one, name):
            written = other.value if isinstance(other, m.Const) else None
            moved = given.op != "*" and isinstance(other, m.Name) and other.id != name
            return moved or (isinstance(written, int) and (given.op != "*" or written != 0))
    return False


def _is_number(value: v.Value) -> bool:
    return isinstance(value, v.Obj) and value.api == "builtins.int"


def _of_kind(interp: Interp, node: m.Comp, iterated: v.Value) -> list[v.Value]:
    """An element of a set comprehension, where it is a number or one of what is iterated."""
    first = node.generators[0]
    if isinstance(first.target, m.Name):
        one = sample(interp, iterated, first.iter)
        if isinstance(node.elt, m.Name) and first.target.id == node.elt.id:
            return one
        if one and _is_number(one[0]):
            return one if len(node.generators) == 1 and is_number(node.elt, {first.target.id}) else []
    elif (
        len(node.generators) == 1
        and isinstance(first.target, m.Seq)
        and isinstance(node.elt, (m.Name, m.Seq))
    ):
        taken = sample(interp, iterated, first.iter)
        whole = taken[0] if taken else v.UNKNOWN
        if isinstance(whole, v.Items) and len(whole.elts) == len(first.target.elts):
            parts = {
                target.id: part
                for target, part in zip(first.target.elts, whole.elts, strict=True)
                if isinstance(target, m.Name)
            }
            given = node.elt.elts if isinstance(node.elt, m.Seq) else [node.elt]
            found = [
                parts.get(part.id, v.UNKNOWN) if isinstance(part, m.Name) else v.UNKNOWN for part in given
            ]
            if all(one is not v.UNKNOWN for one in found):
                return [v.Items("t", found)] if isinstance(node.elt, m.Seq) else found
    return []


def _fstring(interp: Interp, node: m.FString) -> v.Value:
    values = [interp.eval(part) for part in node.parts]
    if all(isinstance(x, v.Lit) and isinstance(x.value, (str, int)) for x in values):
        option = next((x.option for x in values if isinstance(x, v.Lit) and x.option), "")
        return v.Lit("".join(str(x.value) for x in values if isinstance(x, v.Lit)), option)
    several = _one_of_texts(values)
    if several is not None:
        return several
    if any(isinstance(value, v.Obj) and value.type == tensors.TENSOR for value in values):
        interp.listeners.tell(LookedAtEvent(values))
    text = v.text(values[0], values[-1])
    text.attrs[v.WRITTEN] = v.Items("t", values)
    if all(one is not v.UNKNOWN for one in values):
        text.attrs[v.PARTS] = v.Items("t", values)
    differing = next((value for value in values if isinstance(value, v.Obj) and is_entropy(value)), None)
    if differing is not None:
        text.data = differing.data
        text.attrs[DIFFERS_BY] = differing
    written = interp.orders.any or any(map(is_set, values))
    return interp.orders.formatted(interp, values, text, node) if written else text


def _one_of_texts(values: list[v.Value]) -> v.Value | None:
    """What a formatted string is where one of its parts is one of several texts, as what an option has to be; None for any
    other."""
    chosen = [at for at, value in enumerate(values) if isinstance(value, v.AnyOf)]
    if len(chosen) != 1 or not all(
        isinstance(one, v.Lit) and isinstance(one.value, (str, int))
        for value in values
        for one in v.alternatives(value)
    ):
        return None
    at = chosen[0]
    texts: list[v.Value] = []
    for one in v.alternatives(values[at]):
        written = [*values[:at], one, *values[at + 1 :]]
        option = next((v.option_of(x) for x in written if v.option_of(x)), "")
        texts.append(v.Lit("".join(str(x.value) for x in written if isinstance(x, v.Lit)), option))
    return v.join(texts)


def _star(interp: Interp, node: m.Star) -> v.Value:
    interp.eval(node.value)
    return v.UNKNOWN


def _wait(interp: Interp, node: m.Wait) -> v.Value:
    value = interp.eval(node.value) if node.value is not None else v.NONE
    if node.kind == "await":
        if node.value is not None:
            coroutines.waited(interp, node.value)
        return value
    if interp.orders.any or isinstance(value, v.Items):
        interp.orders.yielded(interp, node, value)
    frame = interp.frame
    if node.kind == "from" and isinstance(value, v.Items):
        frame.yielded.extend(value.elts)
        return v.UNKNOWN
    one = element(interp, value) if node.kind == "from" else value
    if len(frame.yielded) < MAX_YIELDS or (
        len(frame.yielded) < MOST_OF_OWN_CODE and own_code(one) is not None
    ):
        frame.yielded.append(one)
    if frame.on_yield is not None and node.kind == "yield":
        frame.on_yield(one)
    return v.UNKNOWN


def _walrus(interp: Interp, node: m.Walrus) -> v.Value:
    value = interp.eval(node.value)
    interp.bind(node.target, value)
    return value


def _slice(interp: Interp, node: m.Slice) -> v.Value:
    return _of_bounds(node, *_bounds(interp, node))


def _bounds(interp: Interp, node: m.Slice) -> tuple[v.Value, v.Value, v.Value]:
    lower, upper, step = (
        v.NONE if one is None else interp.eval(one) for one in (node.lower, node.upper, node.step)
    )
    return lower, upper, step


def _of_bounds(node: m.Slice, lower: v.Value, upper: v.Value, step: v.Value) -> v.Value:
    """What stands for a slice, whose bounds are evaluated."""
    if step is not v.NONE:
        return v.ANY_SLICE
    first, end = _bound(lower, 0), _bound(upper, None)
    if first is not None and (end == first + 1 if end is not None else upper is v.NONE and first == -1):
        return v.SLICE_OF_ONE if end != 0 else v.ANY_SLICE
    follows = _is_next(node.upper, node.lower, "+") or _is_next(node.lower, node.upper, "-")
    return v.SLICE_OF_ONE if follows else v.ANY_SLICE


def _bound(value: v.Value, missing: int | None) -> int | None:
    """The number that bounds a slice, where the program says it."""
    if value is v.NONE:
        return missing
    return value.value if isinstance(value, v.Lit) and type(value.value) is int and not value.option else None


def _is_next(node: m.Expr | None, other: m.Expr | None, op: str) -> bool:
    """Whether two expressions differ by one: ``k + 1`` and ``k``."""
    if not isinstance(node, m.BinOp) or node.op != op or other is None:
        return False
    one = isinstance(node.right, m.Const) and node.right.value == 1
    return one and alike(node.left, other) and not any(isinstance(part, m.Call) for part in nodes([other]))


def _other(interp: Interp, node: Any) -> v.Value:
    return v.UNKNOWN


def _dots(interp: Interp, node: m.Dots) -> v.Value:
    return v.ELLIPSIS


EVAL: dict[type, Callable[[Interp, Any], v.Value]] = {
    m.Name: _name,
    m.Attr: _attr,
    m.Const: _const,
    m.Call: _call,
    m.Seq: _seq,
    m.Dict: _dict,
    m.BinOp: _binop,
    m.BoolOp: _boolop,
    m.Unary: _unary,
    m.Compare: _compare,
    m.IfExp: _ifexp,
    m.Subscript: _subscript,
    m.Lambda: _lambda,
    m.Comp: _comp,
    m.FString: _fstring,
    m.Star: _star,
    m.Wait: _wait,
    m.Walrus: _walrus,
    m.Slice: _slice,
    m.Other: _other,
    m.Bytes: _other,
    m.Dots: _dots,
}
