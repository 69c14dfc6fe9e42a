"""Facts about tensors: whether they require grad, on which device they are, how many dimensions they have, of what
type their elements are, and whether those are all different.

What the calls of PyTorch do is in ``rules/knowledge/tensors.yaml``; sizes and element types are worked out in
``shapes``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeGuard

from d9mlint.interp import shapes
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold, any_holds
from d9mlint.interp.containers import parts
from d9mlint.interp.context import FROZEN, GRADIENT, NO_GRADIENT, QUIET, within_cpu
from d9mlint.interp.device_names import ACCELERATORS
from d9mlint.interp.device_names import together as used_together
from d9mlint.interp.devices import DEFAULT_DEVICE, named
from d9mlint.interp.heap import HEAP
from d9mlint.interp.named_sizes import is_size
from d9mlint.interp.places import running
from d9mlint.interp.shapes import NOTHING, NUMPY, Form, form
from d9mlint.interp.weights_on_cpu import are_on_cpu
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import parents

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry, TensorEntry

TENSOR = shapes.TENSOR
_EXACT = frozenset({"+", "-", "*"})
"""Operators that make whole numbers of whole numbers."""
BATCH = v.BATCH
PART = f"{TENSOR}.__getitem__"
MODULE_OF = "@module"
"""Attribute of a parameter or of an iterator over parameters: the module that it belongs to."""
FROZEN_MODULE = "@frozen"
"""Attribute of a module: whether its parameters do not require grad."""
FROZEN_AT = "@frozen at"
"""When that was said."""
FROZEN_PART = "@frozen part"
"""Whether parameters of a part of a library's module were made not to require grad."""
_FROZEN_PARTS = "@frozen parts"
"""The attributes of a library's module whose parts were frozen as a whole."""
_LAST_TRAINED = "@last trained"
"""Whether the last part of a frozen module of a library still requires grad."""
PARAMETER = "torch.nn.Parameter"
_LIBRARIES = ("torch.", "torchvision.", "segmentation_models_pytorch.", "safetensors.torch.", "torchaudio.")


def make(api: str, facts: Form, likely: bool = False) -> v.Obj:
    """A new tensor."""
    made = v.Obj(api, TENSOR)
    made.likely = likely
    made.start_with(facts)
    return made


def batch(device: str = "cpu") -> v.Obj:
    """What a loader of data gives."""
    return make(BATCH, Form(device=device, grad=False), likely=True)


def no_gradient(interp: RunView) -> bool | None:
    """Whether no gradient is recorded here; None for unknown."""
    quiet = interp.contexts.within(NO_GRADIENT, GRADIENT)
    if quiet is not None:
        return quiet
    setting = interp.state.modes.get(QUIET)
    if setting is None:
        return False
    return None if setting.value is None else bool(setting.value)


def detached(value: v.Value) -> bool:
    """Whether a value is a tensor that does not require grad."""
    if isinstance(value, v.AnyOf):
        known = [one for one in value.values if _may_be_computed(one)]
        return bool(known) and all(
            bool(one.elts) and all(map(detached, one.elts)) if isinstance(one, v.Items) else detached(one)
            for one in known
        )
    return form(value).grad is False


def _may_be_computed(value: v.Value) -> bool:
    """Whether an op may be given one of several values: none takes `None`, nor a dictionary."""
    return v.is_none(value) is not True and not isinstance(value, v.Mapping)


def is_frozen_weight(interp: RunView, value: v.Value) -> bool:
    """Whether a value is the weight of a part of a model that an adapter was put into, which leaves that part as it is:
    ``model.get_output_embeddings().weight``."""
    if isinstance(value, v.AnyOf):
        return all(is_frozen_weight(interp, one) for one in value.values)
    names: set[str] = set()
    while isinstance(value, (v.Member, v.Obj)):
        if isinstance(value, v.Member):
            names.add(value.name)
            value = value.owner
            continue
        role = interp.kb.role(value.api, "freezes-weights")
        if FROZEN_MODULE in value.attrs or role is not None:
            held = FROZEN_MODULE in value.attrs
            return (
                role is not None
                and not held
                and not names.isdisjoint(role.more)
                and bool(all_hold(value.args, role.when))
            )
        names.add(value.api.rpartition(".")[2])
        if value.owner is None:
            return False
        value = value.owner
    return False


def on_cpu(value: v.Value | None) -> bool:
    """Whether a value is a tensor on the CPU."""
    if isinstance(value, v.AnyOf):
        known = [one for one in value.values if v.is_none(one) is not True]
        return bool(known) and all(on_cpu(one) for one in known)
    return value is not None and form(value).device == "cpu"


def device(values: Iterable[v.Value | None]) -> str:
    """The device of tensors that are used together: one that is known, an accelerator before the CPU."""
    tensors = _tensors(values)
    return "cpu" if _are_held(tensors) else used_together([form(value).device for value in tensors])


def _are_held(values: Iterable[v.Value | None]) -> bool:
    """Whether one of several tensors is computed with weights that are surely on the CPU."""
    return any(form(value).held for value in _tensors(values))


def deciding(interp: RunView, api: str, args: v.Args, owner: v.Value | None = None) -> list[v.Value]:
    """What a call works on whose device is where it works: all that it is given, unless others may stay on the CPU."""
    inputs = [*([owner] if owner is not None else []), *args.values()]
    entry = interp.kb.tensor(api)
    return inputs[:1] if entry is not None and entry.device == "first" else inputs


def _tensors(values: Iterable[v.Value | None]) -> list[v.Value]:
    flat: list[v.Value] = []
    for value in values:
        if isinstance(value, v.Items):
            flat += _tensors(value.elts)
        elif isinstance(value, v.AnyOf):
            flat += _tensors(value.values)
        elif isinstance(value, v.Obj):
            flat.append(value)
    return flat


def _plain(value: v.Value) -> bool:
    """Whether an argument is no tensor, so that it says nothing of the result."""
    if isinstance(value, (v.Lit, v.Ext, v.Func, v.Cls, v.Mod)):
        return True
    return isinstance(value, v.Member) and value.name in ("dtype", "device", "shape", "ndim")


def _gradient(values: Iterable[v.Value]) -> bool | None:
    """Whether a result of these inputs requires grad."""
    answer: bool | None = False
    for value in values:
        if _plain(value):
            continue
        if isinstance(value, v.Items):
            one = _gradient(value.elts) if value.elts else (None if value.open else False)
        elif isinstance(value, v.AnyOf):
            kinds = {_gradient([x]) for x in value.values if _may_be_computed(x)}
            one = kinds.pop() if len(kinds) == 1 else None
        elif isinstance(value, v.Obj) and value.type != TENSOR and value.api.startswith(NUMPY):
            # No array of NumPy has a gradient.
            one = False
        else:
            one = form(value).grad
        if one is True:
            return True
        if one is None:
            answer = None
    return answer


def _leaf(args: v.Args, default: bool) -> bool | None:
    """What ``requires_grad=`` says."""
    wanted = args.kw.get("requires_grad")
    if wanted is None:
        return None if args.dstar else default
    return v.truth(wanted)


def _new_device(interp: Interp, args: v.Args) -> str:
    """Where a constructor makes its tensor."""
    given = args.kw.get("device")
    if given is not None and v.is_none(given) is not True:
        return named(interp, given)
    if args.dstar:
        return ""
    if within_cpu(interp.contexts):
        return "cpu"
    setting = interp.state.modes.get(DEFAULT_DEVICE)
    return "cpu" if setting is None else str(setting.value or "")


def _moved(interp: Interp, args: v.Args, old: str) -> str:
    """Where ``to`` moves a tensor."""
    for value in args.values():
        if isinstance(value, v.Ext) or (isinstance(value, v.Lit) and isinstance(value.value, bool)):
            continue
        found = named(interp, value)
        if found:
            return found
        if isinstance(value, v.Obj) and value.type == TENSOR:
            return form(value).device
        if not isinstance(value, v.Lit) and not (isinstance(value, v.Member) and value.name == "dtype"):
            return ""
    return "" if args.star or args.dstar else old


LOADING = frozenset({"torch.load", "safetensors.torch.load_file", "torch.hub.load_state_dict_from_url", "torchaudio.load",
                     "torch.utils.model_zoo.load_url"})  # fmt: skip
"""What gives tensors in containers."""
_TENSOR_CLASSES = frozenset({PARAMETER, "torch.nn.UninitializedParameter"})


def is_tensor(interp: Interp, api: str, known: bool) -> bool:
    """Whether a library call gives a tensor or a container of tensors; ``known`` where its name says so."""
    entry = interp.kb.tensor(api)
    if entry is None or api in _TENSOR_CLASSES:
        return known or entry is not None
    # Classes of `torch.nn` make modules, which give tensors when they are called.
    is_class = api.startswith("torch.nn.") and v.names_class(api)
    return entry.grad != "weights" and not (is_class or entry.module)


def of_call(interp: Interp, api: str, args: v.Args) -> Form:
    """What is known of the tensor that a library function gives."""
    entry = interp.kb.tensor(api)
    return _transfer(interp, entry, args, None) if entry or api.startswith(_LIBRARIES) else NOTHING


def of_module(interp: Interp, module: v.Obj, args: v.Args) -> Form:
    """What is known of the tensor that calling a module of a library gives."""
    known = _of_module(interp, module, args)
    return known._replace(device="cpu", held=True) if are_on_cpu(interp, module) else known


def _of_module(interp: Interp, module: v.Obj, args: v.Args) -> Form:
    entry = interp.kb.tensor(module.api)
    if entry is not None and any_holds(module.args, entry.unless) is not False:
        entry = None
    if entry is None:
        # Transforms have no weights: what they give requires grad where what they are given does.
        is_transform = module.api.startswith("torchvision.transforms.")
        # So do models whose weights are frozen.
        passes_on = is_transform or _frozen(interp, module) is True
        grad = None if not passes_on else False if _from_images(module) else _gradient(args.values())
        given = args.values()
        return Form(device=device(given), grad=_recorded(interp, grad), held=_are_held(given))
    if entry.sizes == "flat-module":
        args = v.Args(args.pos[:1], {"start_dim": module.args.get("start_dim", 0) or v.Lit(1)})
    return _transfer(interp, entry, args, None, module)


def _from_images(transform: v.Value, depth: int = 0) -> bool:
    """Whether a transform is given images that are no tensors, which it makes tensors of."""
    if isinstance(transform, v.Items):
        return depth < 4 and any(_from_images(part, depth + 1) for part in transform.elts)
    return isinstance(transform, v.Obj) and (
        transform.api.endswith((".ToTensor", ".PILToTensor"))
        or any(_from_images(part, depth + 1) for part in transform.args.values())
    )


def of_method(interp: Interp, owner: v.Value, name: str, args: v.Args) -> Form:
    """What is known of the tensor that a method of a tensor gives."""
    return _transfer(interp, interp.kb.tensor(f"{TENSOR}.{name}"), args, owner)


def tells(interp: Interp, owner: v.Value, name: str, args: v.Args) -> bool:
    """Whether only tensors have a method of this name that takes such arguments, or its owner is seen to be one."""
    entry = interp.kb.tensor(f"{TENSOR}.{name}")
    if entry is None:
        return False
    if takes_only(interp, name, args):
        return True
    # What such a method gives is a tensor too, and no array's positions can be flattened as one.
    known = isinstance(owner, v.Obj) and form(owner).sizes is not None
    return known or (entry.distinct == "one-column" and _is_one_column(interp, owner))


def takes_only(interp: Interp, name: str, args: v.Args) -> bool:
    """Whether only tensors have a method of this name that takes such arguments."""
    entry = interp.kb.tensor(f"{TENSOR}.{name}")
    return entry is not None and any_holds(args, entry.tells) is True


def _transfer(
    interp: Interp,
    entry: TensorEntry | None,
    args: v.Args,
    owner: v.Value | None,
    module: v.Obj | None = None,
) -> Form:
    inputs = [*([owner] if owner is not None else []), *args.values()]
    first = owner if owner is not None else args.get("input", 0) or args.get("data", 0) or v.UNKNOWN
    if entry is None or (module is None and entry.unless and any_holds(args, entry.unless) is not False):
        grad = _recorded(interp, _gradient(inputs))
        return Form(device=_device_with(interp, inputs), grad=grad, held=_are_held(inputs))
    old = form(first)
    dtype = shapes.dtype_of(entry, old, args)
    sizes = shapes.sizes_of(entry, old, first, args)
    if entry.spatial is not None and module is not None:
        sizes = shapes.of_images(entry.spatial, module.args)
    if entry.last is not None and module is not None and sizes is not None:
        sizes = shapes.with_last(sizes, entry.last, module.args)
    if entry.ranks is not None and sizes is None:
        sizes = shapes.of_value(entry.ranks, args if module is None else module.args)
    if entry.grad in ("none", "leaf"):
        grad = _leaf(args, entry.grad == "leaf")
    elif entry.grad == "unknown":
        grad = None
    else:
        grad = _gradient([first] if entry.grad == "first" else inputs)
        if entry.grad == "weights" and grad is not True:
            frozen = _frozen(interp, module)
            grad = grad if frozen else True if frozen is False else None
        grad = _recorded(interp, grad)
        if dtype is not None and shapes.is_dtype(dtype, "integer"):
            grad = False
    if entry.device == "inputs":
        where = _device_with(interp, inputs)
    elif entry.device == "first":
        where = _device_with(interp, inputs[:1])
    elif entry.device == "new":
        where = _new_device(interp, args)
    elif entry.device == "argument":
        where = _moved(interp, args, old.device)
    else:
        where = "" if entry.device == "unknown" else entry.device
    distinct = entry.distinct is True
    if entry.distinct == "positions":
        distinct = old.sizes is not None and len(old.sizes) == 1
    elif entry.distinct in ("found", "found-rows"):
        distinct = len(inputs) == 1 and old.sizes is not None and len(old.sizes) == 1 and not args.dstar
    elif entry.distinct == "one-column":
        distinct = _is_one_column(interp, first)
    elif entry.distinct == "numbers":
        distinct = are_all_different(interp, first)
    elif old.distinct and not distinct:
        distinct = entry.distinct == "input" or (
            entry.distinct == "apart" and shapes.is_repeated_apart(old, args)
        )
    if entry.distinct == "column" and not distinct:
        distinct = old.distinct or are_positions(interp, first)
    single = shapes.added_dimension(entry, old, args)
    if sizes is None and single is None and owner is None and _is_column(interp, first):
        single = 1
    whole = (
        entry.whole is True
        or (entry.whole == "input" and shapes.is_whole(old))
        or (entry.whole == "inputs" and all(map(shapes.is_whole_value, inputs)))
    )
    dimensions = shapes.least_of(entry, old, args) if sizes is None else 0
    zero = old.zero and entry.distinct in _SAME_ELEMENTS
    rows = (
        (entry.distinct in _JOINED and _has_different_rows(args, _JOINED[entry.distinct]))
        or (entry.distinct == "found-rows" and args.get("x", 1) is None and not (args.star or args.dstar))
        or (entry.distinct == "input" and old.rows)
    )
    sparse = (
        entry.sparse is True
        or (entry.sparse == "input" and old.sparse)
        or (entry.sparse == "inputs" and any(form(one).sparse for one in _tensors(inputs)))
    )
    # A single number may be used with what is elsewhere.
    held = (entry.device == "cpu" and owner is not None and sizes != ()) or (
        entry.device in ("inputs", "first") and _are_held(inputs if entry.device == "inputs" else inputs[:1])
    )
    return Form(
        sizes,
        dtype,
        where,
        grad,
        distinct,
        single,
        whole,
        dimensions,
        zero,
        rows,
        sparse=sparse,
        held=held,
        back=_back(inputs, grad, where),
        series=old.series and entry.sizes == "input" and entry.distinct == "input",
        repeats=not distinct and _repeats(entry, old, dtype, args),
    )


def _repeats(entry: TensorEntry, old: Form, dtype: str | None, args: v.Args) -> bool:
    """Whether several elements may well be one number: they are drawn from a few, are fractions that were cut to integers,
    were one number before, or are written down."""
    if entry.repeats == "numbers":
        return shapes.has_equal_numbers(args.pos[0] if args.pos else None)
    if old.repeats:
        return (entry.repeats == "input" or entry.distinct == "input") and not _tensors(args.values())
    if old.distinct or shapes.is_whole(old):
        return False
    cut = shapes.is_dtype(old.dtype or "", "floating") and shapes.is_dtype(dtype or "", "integer")
    return entry.repeats is True or (cut and entry.sizes == "input" and dtype not in shapes.MASKS)


def _back(values: Iterable[v.Value | None], grad: bool | None, device: str) -> str:
    """The accelerator to which the gradient of what is computed of tensors goes back: where one of them is, or one was that
    it is computed from. It is not asked where the result is there too."""
    if not grad or device in ACCELERATORS:
        return ""
    known = (one for one in map(form, _tensors(values)) if one.grad)
    return next((one.back or one.device for one in known if one.back or one.device in ACCELERATORS), "")


def gradient_device(values: Iterable[v.Value | None]) -> str:
    """Where the gradient of losses is computed: where they are, or where the tensors were that have been moved to the CPU
    for them."""
    losses = _tensors(values)
    where = device(losses)
    if where in ACCELERATORS:
        return where
    return next((form(one).back for one in losses if form(one).back), where)


def _has_different_rows(args: v.Args, ranks: tuple[int | None, ...]) -> bool:
    """Whether tensors are joined in the last dimension of the result, of which one has no element twice. ``ranks`` are those
    for which that is the dimension 1."""
    axis, joined = args.get("axis", 1), args.get("values", 0)
    if (
        not isinstance(axis, v.Lit)
        or axis.option
        or axis.value not in (1, -1)
        or not isinstance(joined, v.Items)
    ):
        return False
    different = [form(one).sizes for one in joined.elts if form(one).distinct]
    return any(axis.value == -1 or (None if one is None else len(one)) in ranks for one in different)


_JOINED: dict[bool | str, tuple[int | None, ...]] = {"stacked-rows": (1,), "joined-rows": (2, None)}
"""The ranks of what is joined along the dimension 1, which is the last one then. Rows that are joined are those of indices,
which have two dimensions."""
_SAME_ELEMENTS = ("input", "apart", "one-column")
"""What is said of ``distinct`` for what gives the elements of its input."""


def _is_one_column(interp: Interp, found: v.Value) -> bool:
    """Whether a tensor holds the positions of elements of a vector, one in a row. Where it is not known what they are
    positions of, that is a vector too: nobody lines up positions in several dimensions."""
    if not isinstance(found, v.Obj):
        return False
    unknown = found.api.startswith("?.")
    entry = interp.kb.tensor(f"{TENSOR}.{found.api.rpartition('.')[2]}" if unknown else found.api)
    if entry is None or entry.sizes != "positions":
        return False
    sizes = (None, None) if unknown and found.form is None else form(found).sizes
    return sizes is not None and sizes[1] in (None, 1)


EACH_OF = "@each of"
"""The attribute of a number in a list that stands for all numbers of the list, each once: what they are taken from."""
WRITTEN = "@written"
"""The attribute of an array of which an element has been set."""
_CONVERSIONS = 4


def each_of(numbers: v.Value, one: v.Value) -> v.Value:
    """What stands in a list for each of some numbers, of which one is known so far."""
    if one is not v.UNKNOWN and not (isinstance(one, v.Obj) and one.api == shapes.NUMBER):
        return one
    made = v.Obj(shapes.NUMBER)
    if isinstance(one, v.Obj):
        made.order = one.order
        for name, value in one.attrs.items():
            made.attrs[name] = value
    made.attrs[EACH_OF] = numbers
    return made


def are_all_different(interp: RunView, numbers: v.Value | None, depth: int = 0) -> bool:
    """Whether none of the numbers of a sequence or array is there twice."""
    if depth > _CONVERSIONS:
        return False
    if isinstance(numbers, v.Items):
        if numbers.kind == "s":
            return True
        if not numbers.open:
            return bool(numbers.elts) and shapes.are_positions_known(numbers.elts)
        # What a comprehension gives that takes each element as it is.
        one = numbers.elts[0] if len(numbers.elts) == 1 else None
        return isinstance(one, v.Obj) and EACH_OF in one.attrs
    if not isinstance(numbers, v.Obj) or numbers.api.startswith("?.") or WRITTEN in numbers.attrs:
        return False
    role = interp.kb.role(numbers.api, "all-different")
    if role is None or all_hold(numbers.args, role.when) is not True:
        return False
    if not role.arg:
        return True
    of = numbers.args.get(role.arg, role.pos)
    if (of is not None and shapes.is_whole_number(of)) or are_all_different(interp, of, depth + 1):
        return True
    unknown = of is v.UNKNOWN or (isinstance(of, v.Obj) and of.api.startswith("?."))
    return unknown and _is_given_size(interp, numbers.node, role)


def _is_given_size(interp: RunView, call: m.Call | None, role: RoleEntry) -> bool:
    """Whether a call of the running function is given the size of something."""
    function = running(interp)
    if call is None or function is None or id(call) not in parents(function):
        return False
    given = [one.value for one in call.keywords if one.name == role.arg]
    given += call.args[role.pos : role.pos + 1] if role.pos is not None else []
    return bool(given) and is_size(interp, given[0])


def are_positions(interp: Interp, value: v.Value) -> bool:
    """Whether a tensor has the positions at which something is true, each in a row."""
    role = interp.kb.role(value.api, "gives-positions") if isinstance(value, v.Obj) else None
    return role is not None and isinstance(value, v.Obj) and all_hold(value.args, role.when) is True


def _is_column(interp: Interp, array: v.Value) -> bool:
    """Whether an array has one row for each of some numbers, such as actions that were remembered, or is given that form."""
    if not isinstance(array, v.Obj):
        return False
    if interp.kb.role(array.api, "stacks-rows") is None:
        return _has_column_size(interp, array)
    items = array.args.pos[0] if array.args.pos else None
    return isinstance(items, v.Items) and all(
        _is_number(interp, one) for item in items.elts for one in v.alternatives(item)
    )


def _has_column_size(interp: Interp, array: v.Obj) -> bool:
    """Whether the sizes that an array of two dimensions is made with, or brought to, say that it has one column."""
    role = interp.kb.role(array.api, "sized-by")
    if role is None and array.owner is not None:
        role = interp.kb.role(f"?.{array.api.rpartition('.')[2]}", "sized-by")
    if role is None:
        return False
    given = array.args.get(role.arg, role.pos)
    sizes = given.elts if isinstance(given, v.Items) else array.args.pos if role.method else []
    last = sizes[1] if len(sizes) == 2 else None
    return isinstance(last, v.Lit) and last.value == 1 and not last.option


def _is_number(interp: RunView, one: v.Value) -> bool:
    """Whether an item is a number, or of a kind that is not seen, as attributes of what was remembered."""
    if isinstance(one, v.Lit):
        return isinstance(one.value, (bool, int, float))
    if not isinstance(one, v.Obj):
        return isinstance(one, (v.Member, v.Unknown))
    role = interp.kb.role(one.api, "gives-number")
    return shapes.is_whole_number(one) or (role is not None and all_hold(one.args, role.when) is True)


BATCH_OF = "@batch of"
"""The attribute of a batch that has the loader which gives it."""
LOADED_AS = "@loaded as"
"""The attribute of an item of what was loaded from a file that has its key."""
LOADED_FROM = "@loaded from"
"""The attribute of such an item that has what was loaded."""


def loaded_item(item: v.Obj, key: v.Value, loaded: v.Obj) -> v.Obj:
    """An item of what was loaded from a file, which knows its key."""
    item.attrs[LOADED_AS] = key
    item.attrs[LOADED_FROM] = loaded
    return item


def loaded_as(number: v.Value) -> v.Value | None:
    """The key of an item of a file, if a number is what was loaded under it."""
    item = _item_loaded(number)
    return item.attrs[LOADED_AS] if item is not None else None


def loaded_by_call(number: v.Value) -> str:
    """The full name of the call that has loaded a number as an item of a file, or the one before it; empty where that is
    not known."""
    for one in v.alternatives(number):
        before = one.attrs.get(NEXT_BY) if isinstance(one, v.Obj) else None
        if isinstance(before, v.Lit):
            return str(before.value)
    whole: v.Value | None = _item_loaded(number)
    while isinstance(whole, v.Obj) and LOADED_FROM in whole.attrs:
        whole = whole.attrs[LOADED_FROM]
    return whole.api if isinstance(whole, v.Obj) else ""


def _item_loaded(number: v.Value) -> v.Obj | None:
    """The item of a file that a number is, if it was loaded."""
    for one in v.alternatives(number):
        while isinstance(one, v.Obj):
            if LOADED_AS in one.attrs:
                return one
            if one.api != "builtins.int" or not one.args.pos:
                break
            one = one.args.pos[0]
    return None


READ = v.Lit("@read")
"""The key of a number that a text holds, such as the name of a file."""
COMPUTED_FROM = "@computed from loaded"
"""The attribute of a number that was computed from one that was loaded, or that an option has loaded: ``READ``, or the
number by the default of the option."""


def computed_from(number: v.Value) -> v.Value | None:
    """What is known of the loaded number from which a number was computed, if it was."""
    held = (one.attrs.get(COMPUTED_FROM) for one in v.alternatives(number) if isinstance(one, v.Obj))
    return next((one for one in held if one is not None), None)


NEXT_OF = "@next of loaded"
"""The attribute of the number after one that was loaded from a file that has its key."""
NEXT_BY = "@next of loaded by"
"""The attribute of such a number that has the full name of the call which loads the file."""


def key_before(number: v.Value) -> v.Value | None:
    """The key of an item of a file, if a number is the one after what was loaded under it."""
    held = (one.attrs.get(NEXT_OF) for one in v.alternatives(number) if isinstance(one, v.Obj))
    return next((one for one in held if one is not None), None)


def loaded_by(option: str, key: object) -> str:
    """The flag of a path on which a number under a key of a file is gone on with, if an option says so."""
    return f"number loaded:{option}:{key}"


def loaded_before(option: str, key: object) -> str:
    """The same for the number after the one under the key."""
    return f"number loaded before:{option}:{key}"


def in_place_of(flag: str, known: object) -> str:
    """Such a flag with the number in the place of which the other one stands: it does not hold for what is computed from
    that."""
    return f"{flag} for {known}"


def by_call(flag: str, api: str) -> str:
    """Such a flag where it is known which call loads the file."""
    return f"{flag} by {api}"


def gone_on_with(kept: v.Value, other: v.Value, option: str) -> str:
    """The flag of a path on which a number of a loaded file replaces one that is known, if an option says what to load."""
    if not isinstance(kept, v.Lit) or type(kept.value) is not int or kept.option:
        return ""
    key = loaded_as(other)
    if isinstance(key, v.Lit):
        return loaded_by(option, key.value)
    key = key_before(other)
    if isinstance(key, v.Lit):
        return loaded_before(option, key.value)
    return loaded_by(option, READ.value) if computed_from(other) is not None else ""


def is_switch(value: object) -> TypeGuard[v.Lit]:
    """Whether a value is nothing, or says yes or no, whatever options are given."""
    return (
        isinstance(value, v.Lit) and not value.option and (value.value is None or type(value.value) is bool)
    )


def _device_with(interp: Interp, inputs: list[v.Value]) -> str:
    return together(interp, inputs) or ("cpu" if within_cpu(interp.contexts) else "")


def together(interp: RunView, inputs: Iterable[v.Value | None]) -> str:
    """The device of what works on several values, as ``device``. In code that no entry point reaches the CPU is sure only
    where all of them are known to be there, since who calls it may have another default device, or where one was brought
    there: nothing works on that together with a tensor of a GPU."""
    values = list(inputs)
    found = device(values)
    if found != "cpu" or interp.entry is not None or all(map(_is_here, values)):
        return found
    return found if any(_holds_on_cpu(interp, one) for one in values) else ""


def _holds_on_cpu(interp: RunView, value: v.Value | None) -> bool:
    """Whether a tensor stays on the CPU that is no single number, which may be used with what is elsewhere."""
    return value is not None and form(value).sizes != () and stays_on_cpu(interp, value)


def stays_on_cpu(interp: RunView, value: v.Value | None) -> bool:
    """Whether a value is a tensor that is made on the CPU whatever the default device is, or what its methods give that
    are called there and then."""
    if not isinstance(value, v.Obj) or form(value).device != "cpu":
        return False
    if form(value).held:
        return True
    if value.api.startswith("?."):
        # What may be a tensor: the methods that were called on it, one after the other.
        called = (interp.kb.tensor(f"{TENSOR}.{name}") for name in reversed(value.api.split(".")[1:]))
        moved = next((one for one in called if one is None or one.device not in ("inputs", "first")), None)
        return moved is not None and moved.device == "cpu"
    entry, node = interp.kb.tensor(value.api), value.node
    while (entry is None or entry.device in ("inputs", "first")) and (
        isinstance(node, m.Call) and isinstance(node.func, m.Attr) and isinstance(node.func.value, m.Call)
    ):
        node = node.func.value
        func = interp.value_of(node.func)
        entry = interp.kb.tensor(interp.kb.canonical(func.name)) if isinstance(func, v.Ext) else None
    return entry is not None and entry.device == "cpu"


def _is_here(value: v.Value | None) -> bool:
    """Whether a value is on the CPU, or no tensor."""
    if value is None or _plain(value):
        return True
    if isinstance(value, v.Items):
        return not value.open and all(map(_is_here, value.elts))
    return on_cpu(value)


def requires_grad(interp: Interp, inputs: Iterable[v.Value]) -> bool | None:
    """Whether what is computed of these here requires grad; None for unknown."""
    return _recorded(interp, _gradient(inputs))


def _recorded(interp: Interp, grad: bool | None) -> bool | None:
    """Whether a result requires grad here, where its inputs have it so."""
    if grad is False:
        return False
    off = no_gradient(interp)
    return False if off else None if off is None else grad


def _frozen(interp: Interp, module: v.Obj | None) -> bool | None:
    """Whether the parameters of a module do not require grad."""
    if FROZEN in interp.contexts:
        return True
    if module is not None and _LAST_TRAINED in module.attrs and v.truth(module.attrs[_LAST_TRAINED]):
        return False
    held = module.attrs.get(FROZEN_MODULE) if module is not None else None
    if held is None or module is None:
        return False
    return frozen(module) or (None if v.truth(held) is not False else False)


def birth_of(value: v.Value | None) -> int | None:
    """When the object was made that a value is, or of which it is a method, a part or a parameter."""
    if isinstance(value, v.Func):
        value = value.receiver
    while isinstance(value, (v.Member, v.Obj)):
        within = value.owner if isinstance(value, v.Member) else value.attrs.get(MODULE_OF, value.owner)
        if within is None:
            break
        value = within
    return value.birth if isinstance(value, (v.Inst, v.Obj)) else None


@contextmanager
def of_one_of(interp: Interp, values: Sequence[v.Value]) -> Iterator[None]:
    """What is done within to each of several values in branches is surely done to the one that there is, where the program
    makes only one of them."""
    births = [birth_of(one) for one in values]
    known = tuple(one for one in births if one is not None)
    if not interp.partings.of_one(births):
        yield
        return
    outer, interp.one_of = interp.one_of, [*interp.one_of, known]
    try:
        yield
    finally:
        interp.one_of = outer


def is_in_doubt(interp: Interp, birth: int | None) -> bool:
    """Whether what is done to a module, by its birth, may not happen to it: the running branch may not, unless it is there
    for each of several objects of which the program makes one, and the module is made with one of them."""
    return interp.branching > len(interp.one_of) or any(
        birth is None or sum(not interp.partings.exclusive(birth, one) for one in births) > 1
        for births in interp.one_of
    )


def freeze(interp: Interp, module: v.Value, wanted: v.Value) -> None:
    """The parameters of a module require grad from now on, or do not: ``requires_grad_(wanted)``."""
    known = v.truth(wanted)
    for one in v.alternatives(module):
        frozen: v.Value = (
            v.UNKNOWN if known is None or is_in_doubt(interp, birth_of(one)) else v.Lit(not known)
        )
        if isinstance(one, (v.Inst, v.Obj)):
            _freeze(one, frozen, v.Lit(HEAP.clock), 0)
        elif isinstance(one, v.Member) and isinstance(one.owner, v.Obj):
            _freeze_part(interp, one.owner, one.name, known, frozen)


def _freeze_part(interp: Interp, module: v.Obj, name: str, known: bool | None, frozen: v.Value) -> None:
    """The same for what is under an attribute of a module of a library. Where all parts but the last are frozen, no gradient
    goes through it to any of them."""
    part = module.attrs.get(name)
    if isinstance(part, (v.Inst, v.Obj)):
        _freeze(part, frozen, v.Lit(HEAP.clock), 0)
    if known is not True:
        module.attrs[FROZEN_PART] = v.TRUE
    last = _last_parts(interp, module)
    if name in last:
        if v.truth(frozen) is not True and FROZEN_MODULE in module.attrs:
            module.attrs[_LAST_TRAINED] = v.TRUE
        return
    if known is not False and FROZEN_MODULE in module.attrs:
        module.attrs[FROZEN_MODULE] = v.UNKNOWN
    role = interp.kb.role(module.api, "known-parts")
    if role is None:
        return
    before = module.attrs.get(_FROZEN_PARTS)
    held = (
        {one.value for one in before.elts if isinstance(one, v.Lit)} if isinstance(before, v.Items) else set()
    )
    held = held | {name} if v.truth(frozen) is True else held - {name}
    module.attrs[_FROZEN_PARTS] = v.Items("s", [v.Lit(one) for one in sorted(held)])
    if held.issuperset(set(role.more).difference(last)):
        module.attrs[FROZEN_MODULE] = v.TRUE
        module.attrs[FROZEN_AT] = v.Lit(HEAP.clock)
        module.attrs[_LAST_TRAINED] = v.TRUE


def _freeze(module: v.Inst | v.Obj, frozen: v.Value, at: v.Lit, depth: int) -> None:
    """The same for its parts, which may be called by themselves: those that are made or put in later are not meant."""
    module.attrs[FROZEN_MODULE] = frozen
    module.attrs[FROZEN_AT] = at
    if _LAST_TRAINED in module.attrs:
        module.attrs[_LAST_TRAINED] = v.FALSE
    for _, part in _parts(module) if depth < _MOST_PARTS else ():
        if part.attrs.get(FROZEN_AT) is not at and (FROZEN_MODULE in part.attrs or v.truth(frozen) is True):
            _freeze(part, frozen, at, depth + 1)


def _parts(module: v.Inst | v.Obj) -> Iterator[tuple[str, v.Inst | v.Obj]]:
    """The modules that are in a module, with the attributes that have them."""
    inside = [("", one) for one in parts(module)] if isinstance(module, v.Obj) else []
    held = [(name, value) for name, value in module.attrs.items() if not name.startswith("@")]
    for name, value in [*inside, *held]:
        for one in v.alternatives(value):
            if isinstance(one, v.Inst) or (isinstance(one, v.Obj) and one.type != TENSOR):
                yield name, one


def _last_parts(interp: RunView, module: v.Obj) -> Sequence[str]:
    """The attributes under which a model of a library has its last part, through which no gradient goes to the others."""
    role = interp.kb.role(module.api, "ends-with-part")
    return role.more if role is not None else ()


def is_still(interp: RunView, module: v.Obj, args: v.Args) -> bool:
    """Whether a call of a module of a library has no backward pass: no gradient is recorded, or neither its parameters nor
    what it is given require grad. Those of its last part may, if that was replaced: it is looked at by itself."""
    if no_gradient(interp):
        return True
    tensor = interp.kb.tensor(module.api)
    quiet = FROZEN in interp.contexts or (tensor is not None and tensor.grad not in (None, "weights"))
    return (quiet or frozen(module, _last_parts(interp, module))) and all(map(detached, args.values()))


def may_be_frozen(module: v.Obj) -> bool:
    """Whether parameters of a module, or some of them, may not require grad."""
    held = module.attrs.get(FROZEN_MODULE)
    return FROZEN_PART in module.attrs or (held is not None and v.truth(held) is not False)


def frozen(module: v.Inst | v.Obj, but: Sequence[str] = ()) -> bool:
    """Whether the parameters of a module surely do not require grad, ``but`` for those of parts: no other part of it has
    been made, or thawed, since it was frozen."""
    held, at = module.attrs.get(FROZEN_MODULE), module.attrs.get(FROZEN_AT)
    if held is None or v.truth(held) is not True or not isinstance(at, v.Lit):
        return False
    return not _has_thawed(module, at.value, {id(module)}, but)


def _has_thawed(module: v.Inst | v.Obj, since: int, seen: set[int], but: Sequence[str] = ()) -> bool:
    """Whether a part of a module may have been made, or thawed, since then."""
    for name, one in _parts(module):
        if name in but or id(one) in seen:
            continue
        seen.add(id(one))
        held, at = one.attrs.get(FROZEN_MODULE), one.attrs.get(FROZEN_AT)
        known = held is not None and v.truth(held) is True and isinstance(at, v.Lit)
        if not known and (held is not None or one.birth > since):
            return True
        if len(seen) > _MOST_LOOKED_AT or _has_thawed(one, at.value if known else since, seen):
            return True
    return False


_MOST_PARTS = 6
_MOST_LOOKED_AT = 400


def keeps_whole(left: v.Value, right: v.Value, op: str) -> bool:
    """Whether an operator makes whole numbers of whole numbers."""
    return op in _EXACT and shapes.is_whole_value(left) and shapes.is_whole_value(right)


def of_operator(interp: Interp, left: v.Value, right: v.Value, op: str) -> Form:
    """What is known of the result of an arithmetic operator."""
    shape = shapes.of_operator(left, right, op)
    grad = _recorded(interp, _gradient((left, right)))
    if shape.dtype is not None and shapes.is_dtype(shape.dtype, "integer"):
        grad = False
    whole = keeps_whole(left, right, op)
    where = _device_with(interp, [left, right])
    zero = (op == "*" and v.is_zero(right)) or (op in ("*", "/") and v.is_zero(left))
    distinct, begins = places_of_rows(left, right, op)
    kept = form(left if isinstance(right, v.Lit) else right if isinstance(left, v.Lit) else None)
    return Form(
        shape.sizes,
        shape.dtype,
        where,
        grad,
        distinct,
        kept.single if shape.sizes is None else None,
        whole=whole,
        least=shape.least,
        zero=zero,
        begins=begins,
        held=_are_held((left, right)),
        back=_back((left, right), grad, where),
        series=_has_series(left, right, op),
        repeats=_repeat_together(left, right),
    )


def _repeat_together(left: v.Value, right: v.Value) -> bool:
    """Whether equal elements of both give equal elements: of a tensor beside a number, and of two with few numbers."""
    found = {form(one).repeats for one in (left, right) if not shapes.is_number(one)}
    return found == {True}


def _has_series(left: v.Value, right: v.Value, op: str) -> bool:
    """Whether in each row of the result of an operator no element is there twice: ``starts[:, None] + arange(length)``."""
    if op not in ("+", "-"):
        return False
    for one, other in ((left, right), (right, left)):
        known, beside = form(one), form(other)
        if known.series and isinstance(other, v.Lit):
            return True
        one_row = known.sizes is not None and (
            len(known.sizes) == 1 or (len(known.sizes) == shapes.MATRIX and known.sizes[0] == 1)
        )
        column = beside.single in (1, -1) if beside.sizes is None else beside.sizes[-1:] == (1,)
        if known.distinct and one_row and column:
            return True
    return False


def places_of_rows(left: v.Value, right: v.Value, op: str) -> tuple[bool, bool]:
    """Whether the elements of the result of an operator are all different, and whether they are where rows begin:
    ``range(rows) * length``, to which a place in each row is added."""
    for one, other in ((left, right), (right, left)):
        known = form(one)
        number = isinstance(other, v.Lit) and type(other.value) is int
        if op == "*" and known.distinct and (known.dtype is None or shapes.is_dtype(known.dtype, "integer")):
            counted = number or not isinstance(other, v.Obj) or shapes.is_whole_number(other)
            one_row = known.sizes is not None and len(known.sizes) == 1
            return number and not v.is_zero(other), counted and one_row and not v.is_zero(other)
        if op == "+" and known.distinct and number:
            return True, known.begins
        if op == "+" and known.begins and shapes.least(form(other)) <= 1:
            return True, False
        if op == "-" and one is left and known.distinct and number:
            return True, known.begins
    return False, False


def of_comparison(interp: Interp, left: v.Value, right: v.Value) -> Form:
    """What is known of the result of a comparison."""
    shape = shapes.of_operator(left, right, "+")
    return Form(shape.sizes, "bool", _device_with(interp, [left, right]), False, least=shape.least)


def of_item(interp: Interp, value: v.Obj, index: v.Value) -> Form:
    """What is known of ``tensor[index]``."""
    old = form(value)
    distinct = old.distinct
    if isinstance(index, v.Obj) and index.type == TENSOR:
        chosen = form(index)
        distinct = distinct and (chosen.distinct or chosen.dtype == "bool")
    sizes = shapes.of_item(old, index)
    single = shapes.dimension_of_item(index)
    if sizes is None and single is None and shapes.keeps_last(old, index):
        single = -1
    grad = _recorded(interp, old.grad)
    dimensions = shapes.least_of_item(old, index) if sizes is None else 0
    # Rows that are selected are what they were.
    series = old.series and not isinstance(index, v.Items)
    return Form(
        sizes,
        old.dtype,
        old.device,
        grad,
        distinct,
        single,
        old.whole,
        dimensions,
        old.zero,
        held=old.held and sizes != (),
        back=old.back,
        series=series,
        repeats=old.repeats and not (isinstance(index, v.Obj) and index.type == TENSOR),
    )


def _gives_pair(entry: TensorEntry, args: v.Args) -> bool:
    """Whether a method that gives a pair if its receiver is a tensor is surely that of one."""
    return entry.second == "distinct" or (entry.along is not None and "keepdim" in args.kw)


def gives_second(interp: RunView, module: v.Obj) -> bool:
    """Whether a module of a library gives a pair as ``second`` says."""
    entry = interp.kb.tensor(module.api)
    return entry is not None and bool(entry.second) and all_hold(module.args, entry.second_when) is True


def second(interp: RunView, value: v.Value) -> v.Value | None:
    """What is taken from a pair of tensors that a call gives besides the first one, as positions; None for anything
    else."""
    if not isinstance(value, v.Obj):
        return None
    entry, args = interp.kb.tensor(value.api), value.args
    if entry is None and value.api.startswith("?."):
        # Of methods that give all places in an order, only those of tensors give a pair.
        entry = interp.kb.tensor(f"{TENSOR}.{value.api.rpartition('.')[2]}")
        entry = entry if entry is not None and _gives_pair(entry, value.args) else None
    if entry is None and isinstance(value.owner, v.Obj) and value.api == f"{value.owner.api}.__call__":
        # What a module was made with says what calls of it give.
        entry, args = interp.kb.tensor(value.owner.api), value.owner.args
    if entry is None or not entry.second:
        return None
    if all_hold(args, entry.second_when) is not True:
        return None
    old = form(value)
    if entry.second in ("state", "states"):
        return _states(entry, old, value)
    single = shapes.added_dimension(entry, old, value.args) if entry.along is not None else None
    made = make(PART, Form(old.sizes, "int64", old.device, False, entry.second == "distinct", single))
    made.args = v.Args([value])
    return made


_OF_BATCHES = 3


def _states(entry: TensorEntry, old: Form, value: v.Obj) -> v.Value:
    """What a recurrent module gives besides its output: the last states, which have as many dimensions. Of batches, they
    have three, also where the output is that of a packed sequence."""
    count = _OF_BATCHES if old.sizes is None else len(old.sizes)
    sizes = (shapes.layers_of(entry, value.owner), *(None,) * (count - 1))
    made: list[v.Value] = []
    for _ in range(2 if entry.second == "states" else 1):
        one = make(PART, Form(sizes, old.dtype, old.device, old.grad, held=old.held), value.likely)
        one.args = v.Args([value])
        made.append(one)
    return v.Items("t", made) if entry.second == "states" else made[0]


def unpacked(value: v.Value, target: m.Seq) -> None:
    """The sizes of a tensor fall to so many targets, ``n, m = x.shape``: it has as many dimensions, or the program does
    not go on."""
    owner, count = value.owner if isinstance(value, (v.Member, v.Obj)) else None, len(target.elts)
    of_shape = isinstance(value, v.Member) and value.name == "shape"
    of_size = isinstance(value, v.Obj) and value.api in _ALL_SIZES and not list(value.args.values())
    if not (of_shape or of_size) or not isinstance(owner, v.Obj) or owner.form is None:
        return
    starred = any(isinstance(one, m.Star) for one in target.elts)
    if owner.form.sizes is None and not starred and count <= shapes.MAX_RANK:
        owner.form = owner.form._replace(sizes=(None,) * count, least=0)


_ALL_SIZES = frozenset({f"{TENSOR}.size"})
"""The methods of tensors that give all sizes where none is asked for."""


def row(value: v.Obj) -> Form:
    """What is known of one of the tensors that iterating over a tensor gives."""
    old = form(value)
    sizes = None if old.sizes is None else old.sizes[1:]
    dimensions = max(old.least - 1, 0)
    return Form(
        sizes,
        old.dtype,
        old.device,
        old.grad,
        whole=old.whole,
        least=dimensions,
        zero=old.zero,
        back=old.back,
    )


def of_later_rounds(value: v.Obj, free: bool) -> v.Obj:
    """What a variable holds in any round of a loop that assigns it, in place of the tensor that it held before: little is
    known, but that it has no gradient where it is ``free`` of one in all rounds. The tensor itself, which the caller may
    use too, stays as it is."""
    old = form(value)
    return _like(value, Form(None, None, old.device, False if free else old.grad or None))


def another(value: v.Value) -> v.Value:
    """Another tensor of which the same is known, for what stands for several; other values stand for themselves."""
    if not isinstance(value, v.Obj) or value.type != TENSOR or value.form is None:
        return value
    return _like(value, value.form)


def _like(value: v.Obj, known: Form) -> v.Obj:
    made = v.Obj(value.api, value.type, value.args, value.node)
    made.file, made.owner, made.likely = value.file, value.owner, value.likely
    made.order, made.data, made.package = value.order, value.data, value.package
    for name, held in value.attrs.items():
        made.attrs[name] = held
    made.start_with(known)
    return made


def write(interp: Interp, owner: v.Value, name: str, *written: v.Value) -> None:
    """A method changes a tensor in place, or something is written into it: what is known of it changes too."""
    if isinstance(owner, v.Obj) and owner.form is None and not name:
        if interp.kb.role(owner.api, "all-different") is not None:
            owner.attrs[WRITTEN] = v.TRUE
    if not isinstance(owner, v.Obj) or owner.form is None:
        return
    old = owner.form
    new = old
    if name in shapes.RESIZING:
        new = new._replace(sizes=None, single=None, least=0)
    if old.distinct or old.zero:
        new = new._replace(distinct=False, zero=False)
    if old.whole and name not in shapes.RESIZING and (name or not all(map(shapes.is_whole_value, written))):
        new = new._replace(whole=False)
    if written and (old.grad is False or old.device == "cpu"):
        grad = _recorded(interp, _gradient(written))
        if old.grad is False and grad is not False and not _of_integers(old):
            new = new._replace(grad=grad)
        where = device(written)
        if old.device == "cpu" and (
            (grad is True and not where) or (grad is not False and where in ACCELERATORS)
        ):
            # Its gradient goes on to where what is written comes from, which may be an accelerator.
            new = new._replace(device="")
    if new != old:
        owner.form = new


def _of_integers(known: Form) -> bool:
    """Whether the element type is one of which no tensor can require grad, whatever is written into it."""
    return known.dtype is not None and shapes.is_dtype(known.dtype, "integer")


def put(batch: v.Obj, value: v.Value, each: bool) -> None:
    """A tensor is stored as a part of a batch, or ``each`` part is such a tensor now. A part on another device than the
    batch is that of a list."""
    old, new = batch.form, shapes.form(value)
    if old is None or new == NOTHING or old.device == new.device:
        return
    if each:
        batch.form = old._replace(device=new.device)
    elif new.device:
        batch.form = old._replace(device="")


def require(interp: Interp, owner: v.Value, wanted: v.Value) -> None:
    """``tensor.requires_grad_(wanted)`` and ``tensor.requires_grad = wanted``; for a parameter of a module, it is the
    module's."""
    if isinstance(owner, v.Obj):
        module = owner.attrs.get(MODULE_OF)
        if module is not None:
            freeze(interp, module, wanted)
        owner.form = (owner.form or NOTHING)._replace(grad=v.truth(wanted))
