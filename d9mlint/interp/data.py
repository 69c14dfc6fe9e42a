"""Operators, items and iteration over abstract values."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Mapping, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.options import A_GPU
from d9mlint.interp import collated, enumerations, made_again, made_tables, parted, shapes, tensors
from d9mlint.interp import values as v
from d9mlint.interp.asked_items import is_asked_for_form
from d9mlint.interp.columns import TABLES
from d9mlint.interp.containers import (
    BASE,
    CONTAINERS,
    any_part,
    by_name,
    container_of,
    is_dict,
    known_layers,
    named,
    parts,
    put,
    replace,
)
from d9mlint.interp.context import ASKED_FOR_FORM
from d9mlint.interp.emptiness import RANGES, is_empty
from d9mlint.interp.events import ItemEvent, ItemWriteEvent, IterationEvent, OperatorEvent
from d9mlint.interp.given_instead import unless_option
from d9mlint.interp.library import given_files, index_updates, replacements
from d9mlint.interp.library.given_files import SECTIONS, look_up
from d9mlint.interp.library.own_paths import above, path_of
from d9mlint.interp.library.records import fields
from d9mlint.interp.library.rows import among
from d9mlint.interp.library.set_by_name import as_defaults, scope_of, set_in_scope
from d9mlint.interp.library.strings import format_percent
from d9mlint.interp.methods import bind_method
from d9mlint.interp.missing_items import maybe_missing, present, take_over
from d9mlint.interp.named_sizes import counts_elements
from d9mlint.interp.option_keys import has_no_choice
from d9mlint.interp.order_kinds import NUMBER, kind_of_elements, numbers_of, one_of, raw_kind_of_elements
from d9mlint.interp.passed_on import ENUMERATE, PASS_THROUGH, inside
from d9mlint.interp.read_back import is_read_back
from d9mlint.interp.storage import taken
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from d9mlint.interp.context import Active
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RngEntry, Role


class Entropy(NamedTuple):
    """``Obj.data`` of a value that differs from run to run; it survives arithmetic and conversions. ``option`` names
    the option of the program whose default lets it be made, ``parent`` the generator from which the worker process got
    its seed in which it was drawn, ``given`` the option that has to be given for it to be made."""

    option: str = ""
    parent: str = ""
    given: str = ""


ENTROPY_FIELDS = frozenset(
    {"int", "hex", "bytes", "fields", "time", "time_low", "node", "microsecond", "second", "minute", "hour"}
)
"""Fields of a UUID and of a time that differ from run to run as it does."""

DIFFERS_BY = "@differs by"
"""Attribute of a text that is put together: the part of it that differs from run to run."""
DERIVED_FROM = "@derived from"
"""Attribute of what is computed from something that differs from run to run: what gave that."""
TENSOR = tensors.TENSOR
PATH = "pathlib.Path"
BUFFER = "torch.nn.Module.register_buffer"
MAX_BITS = 1024
MAX_COPIES = 16
MAX_ELEMENTS = 10_000
MOST_OF_OWN_CODE = 512
"""Of so many elements with functions and classes of the project each is looked at."""
ENVIRON = frozenset({"os.environ", "os.environb"})


COUNTED_FROM = "@counted from"
"""The attribute of a number that a loop counts that has the key of the loaded number that the loop begins with, or the
default of the option that another number is loaded by."""


COUNTED_AFTER = "@counted after"
"""The attribute of a number that a loop counts that has the key of the loaded number after which the loop begins."""
ENDED = "@ended"
"""The attribute of the number after one that such a loop counts, with that key."""
NEXT_COUNTED = "@next counted"
"""The attribute of the number after one that has ``COUNTED_FROM``, with the same."""


def counted(first: v.Value) -> v.Obj | None:
    """A number that a loop counts which begins with one that was loaded, or that an option has loaded."""
    key = first if isinstance(first, v.Lit) and first.option else tensors.loaded_as(first)
    before = tensors.key_before(first) if key is None else None
    if key is None and before is None:
        return None
    number = v.Obj(shapes.NUMBER)
    if key is not None:
        number.attrs[COUNTED_FROM] = key
    elif before is not None:
        number.attrs[COUNTED_AFTER] = before
    return number


def added(made: v.Value, left: v.Value, right: v.Value) -> v.Value:
    """The sum of two values: what is known of the number after one that was loaded, or that a loop counts."""
    if isinstance(left, v.Lit):
        left, right = right, left
    if not isinstance(right, v.Lit) or type(right.value) is not int or right.value != 1 or right.option:
        return made
    loaded = tensors.loaded_as(left)
    attributes = left.attrs if isinstance(left, v.Obj) else {}
    counted, begun = attributes.get(COUNTED_AFTER), attributes.get(COUNTED_FROM)
    if loaded is None and counted is None and begun is None:
        return made
    number = made if isinstance(made, v.Obj) and made is not left else v.Obj(shapes.NUMBER)
    if loaded is not None:
        number.attrs[tensors.NEXT_OF] = loaded
        number.attrs[tensors.NEXT_BY] = v.Lit(tensors.loaded_by_call(left))
    if counted is not None:
        number.attrs[ENDED] = counted
    if begun is not None:
        number.attrs[NEXT_COUNTED] = begun
    return number


def computed(made: v.Value, left: v.Value, right: v.Value) -> v.Value:
    """What any other operation makes of two values: what is known of a number that is computed from one that was loaded,
    or that is loaded if an option is given."""
    first = next((one for one in map(_read, (left, right)) if one is not None), None)
    if first is None or isinstance(made, v.Lit | v.Items):
        return made
    number = (
        made if isinstance(made, v.Obj) and made is not left and made is not right else v.Obj(shapes.NUMBER)
    )
    number.attrs[tensors.COMPUTED_FROM] = first
    return number


def _read(value: v.Value) -> v.Value | None:
    if isinstance(value, v.Lit):
        return value if value.option and type(value.value) is int else None
    if isinstance(value, v.Obj):
        if value._attrs is None and value.api != shapes.NUMBER:
            return None
    elif not isinstance(value, v.AnyOf):
        return None
    loaded = tensors.loaded_as(value) or tensors.key_before(value)
    return tensors.READ if loaded is not None else tensors.computed_from(value)


def is_entropy(value: v.Value) -> bool:
    """Whether a value is known to differ from run to run."""
    return isinstance(value, v.Obj) and isinstance(value.data, Entropy)


def differing(value: v.Value, depth: int = 3) -> v.Obj | None:
    """What makes a value differ from run to run, if something does: itself, or one of the elements of a sequence."""
    if isinstance(value, v.Obj):
        return value if isinstance(value.data, Entropy) else None
    if not depth or not isinstance(value, (v.Items, v.AnyOf)):
        return None
    held = value.elts if isinstance(value, v.Items) else value.values
    return next(filter(None, (differing(one, depth - 1) for one in held)), None)


def derive(value: v.Obj, source: v.Obj | None) -> None:
    """Note what a value that differs from run to run was computed from."""
    if source is not None:
        value.attrs[DERIVED_FROM] = source


def origin(value: v.Obj) -> v.Obj:
    """What gave first what a value that differs from run to run was computed from: the value itself, or another one."""
    while True:
        source = value.attrs.get(DERIVED_FROM) or value.attrs.get(DIFFERS_BY)
        if not isinstance(source, v.Obj) or source is value:
            return value
        value = source


def rest_of(interp: Interp, value: v.Obj, part: str | int | None) -> v.Value:
    """An item or attribute of something that differs from run to run: it does too, unless it is all memory there is."""
    asked = interp.kb.role(value.api, "free-memory")
    known = asked is not None and part is not None and part in (asked.arg, asked.pos)
    return v.UNKNOWN if known else value


def entropy(interp: Interp, drawn: tuple[RngEntry, ...] = ()) -> Entropy:
    """What marks a value that is made now as one that differs from run to run; ``drawn`` are the entries of its call."""
    parents = (interp.state.level(rng).parent for entry in drawn for rng in entry.draws)
    option = own_option(interp.options)
    aside = interp.state.aside
    return Entropy("" if option == aside else option, next(filter(None, parents), ""), aside)


def own_option(options: Active) -> str:
    """The program's option that decides what runs; whether there is a GPU is none."""
    return options.innermost_but(A_GPU)


_CONSTANTS = {"pi": math.pi, "tau": math.tau, "e": math.e}
_WITH_CONSTANTS = frozenset({"math", "numpy", "torch"})
"""Modules that have these constants."""


def _constant(value: v.Value) -> v.Value:
    """A constant of a library as the number that it is."""
    if not isinstance(value, v.Ext):
        return value
    module, _, name = value.name.rpartition(".")
    return v.Lit(_CONSTANTS[name]) if name in _CONSTANTS and module in _WITH_CONSTANTS else value


_OF_TENSORS = ("?.", "torch.")
"""How the names begin of what methods of something unknown give, and functions of torch."""


def binary(interp: Interp, op: str, left: v.Value, right: v.Value, node: Any) -> v.Value:
    """``left op right``: literals are folded, tensors and entropy stay what they are."""
    left, right = _constant(left), _constant(right)
    if (
        isinstance(left, v.Lit)
        and isinstance(right, v.Lit)
        and not (op == "%" and isinstance(left.value, str))
    ):
        return _fold(op, left, right)
    if op == "+" and (texts := _added_texts(left, right)) is not None:
        return texts
    if op == "%" and isinstance(left, v.Lit) and isinstance(left.value, str):
        return format_percent(left, right)
    if op == "/" and any(isinstance(side, v.Obj) and side.type == PATH for side in (left, right)):
        return v.Obj(PATH, "", v.Args([left, right]))
    interp.listeners.tell(OperatorEvent(op, left, right, node))
    if op != "*" or not (v.is_zero(left) or v.is_zero(right)):
        for side in (left, right):
            if is_entropy(side):
                return side
    for side in (left, right):
        if isinstance(side, v.Obj) and side.type == TENSOR:
            return tensors.make("operator", tensors.of_operator(interp, left, right, op), side.likely)
    for side in (left, right):
        known = (
            shapes.form(side)
            if isinstance(side, v.Obj) and side.api.startswith(_OF_TENSORS)
            else shapes.NOTHING
        )
        if known.device or known.single is not None:
            # Of all that has a device, or a dimension of one element that `unsqueeze` adds, only tensors have operators.
            return tensors.make("operator", tensors.of_operator(interp, left, right, op), likely=True)
    for side in (left, right):
        if is_graph_tensor(side):
            made = v.Obj(shapes.OPERATOR, "", v.Args([left, right]))
            shape = shapes.of_operator(left, right, op)
            sizes = None if op == "@" else shape.sizes
            distinct, begins = tensors.places_of_rows(left, right, op)
            whole = tensors.keeps_whole(left, right, op)
            made.start_with(shapes.Form(sizes, shape.dtype, distinct=distinct, whole=whole, begins=begins))
            return made
    if op == "+" and isinstance(left, v.Items) and isinstance(right, v.Items):
        return joined(left.kind, [*left.elts, *right.elts], left.open or right.open)
    if op == "+" and (added := _added_to_each(left, right)) is not None:
        return added
    if op == "*" and isinstance(left, v.Items) and left.kind != "s" and isinstance(right, v.Lit):
        count = right.value if isinstance(right.value, int) and not isinstance(right.value, bool) else 1
        copies = max(0, min(count, MAX_COPIES))
        return v.Items(left.kind, left.elts * copies, left.open or count > copies)
    if op == "*" and isinstance(left, v.Items) and left.kind != "s":
        return v.Items(left.kind, left.elts, True)
    if op == "+" and isinstance(left, v.Items):
        # No list is added to a number.
        return v.UNKNOWN if _is_plain_number(right) else v.Items(left.kind, [*left.elts, v.UNKNOWN], True)
    if op in ("|", "&", "-", "^") and (_is_view(left) or (isinstance(left, v.Items) and left.kind == "s")):
        # Lists have no such operators: one stands for the keys of a dictionary. What they give is a set.
        left_elts = left.elts if isinstance(left, v.Items) else []
        if op == "&":
            # What it has in common with numbers are numbers.
            left_elts = numbers_of(interp, right, None) or left_elts
        right_elts = right.elts if isinstance(right, v.Items) and op in "|^" else []
        return joined("s", [*left_elts, *right_elts], True)
    if op == "+" and isinstance(left, v.Lit) and isinstance(left.value, str):
        text = v.text(left, right)
        text.attrs[v.WRITTEN] = v.Items("t", [left, right])
        return text
    if op == "+" and path_of(left) is not None and isinstance(right, v.Lit):
        # `os.path.dirname(__file__) + "/conf"`
        text = v.text(left, right)
        text.attrs[v.PARTS] = v.Items("t", [left, right])
        return text
    if op == "+" and isinstance(left, v.Obj) and left.api == v.TEXT and left.owner is None:
        # `str(x)` begins with the text of x, whatever that is.
        text = v.text(left.args.get("", 0) or v.UNKNOWN, right)
        before = left.attrs.get(v.WRITTEN)
        if isinstance(before, v.Items):
            text.attrs[v.WRITTEN] = v.Items("t", [*before.elts, right])
        return text
    if op == "|" and are_mappings(left) and are_mappings(right):
        (first, more), (then, others) = unpacked(left), unpacked(right)
        if isinstance(right, v.Mapping) or not others:
            both = dict(first)
            take_over(both, then)
            return v.Mapping(both, more or others)
    if op in _WHOLE and shapes.is_whole_number(left) and shapes.is_whole_number(right):
        return v.Lit(0) if op == "*" and (v.is_zero(left) or v.is_zero(right)) else v.Obj(shapes.NUMBER)
    return v.UNKNOWN


def _added_texts(left: v.Value, right: v.Value) -> v.Value | None:
    """The sum of two texts of which one has several known values."""
    if v.option_of(left) or v.option_of(right):
        return None
    pairs = [(one, other) for one in v.alternatives(left) for other in v.alternatives(right)]
    sums = [
        _fold("+", one, other)
        for one, other in pairs
        if isinstance(one, v.Lit) and isinstance(other, v.Lit) and isinstance(one.value, str)
    ]
    return v.join(sums) if len(sums) == len(pairs) else None


_WHOLE = frozenset({"+", "-", "*", "//", "%"})
"""Operators that make whole numbers of whole numbers."""


def _is_only_column(node: Any, index: v.Value) -> bool:
    """Whether of what a call gives the first column is taken and nothing else: ``tf.where(test)[:, 0]``. It has no other
    then, or else the others would be needed too."""
    if not isinstance(node, m.Subscript) or not isinstance(node.value, m.Call):
        return False
    return (
        isinstance(index, v.Items)
        and len(index.elts) == 2
        and isinstance(index.elts[0], v.Obj)
        and index.elts[0].api == v.SLICE
        and isinstance(index.elts[1], v.Lit)
        and index.elts[1].value == 0
    )


def is_graph_tensor(value: v.Value) -> bool:
    """Whether a value is a tensor of TensorFlow."""
    if not isinstance(value, v.Obj) or not value.api.startswith("tf."):
        return False
    return value.form is not None or value.type == shapes.TF_TENSOR


def _is_view(value: v.Value) -> bool:
    """Whether a value is what ``keys()`` or ``items()`` of a dictionary gives."""
    if isinstance(value, v.Items):
        # What numbers were computed with has become an array: `[1.0, 2.0] * weight - labels`.
        return value.kind == "l" and not any(map(_is_plain_number, value.elts))
    if not isinstance(value, v.Obj) or value.args.pos or value.args.kw:
        return False
    owner, _, method = value.api.rpartition(".")
    return method in ("keys", "items") and not owner.startswith(TABLES)


def _is_plain_number(value: v.Value) -> bool:
    return isinstance(value, v.Lit) and isinstance(value.value, (int, float))


def _fold(op: str, left: v.Lit, right: v.Lit) -> v.Value:
    a, b = left.value, right.value
    option = left.option or right.option
    try:
        if isinstance(a, (int, float)) and isinstance(b, (int, float)):
            if op == "+":
                return _number(a + b, option)
            if op == "-":
                return _number(a - b, option)
            if op == "*":
                # Whatever option is given, a whole number times zero is zero.
                stays = type(a) is type(b) is int and (v.is_zero(left) or v.is_zero(right))
                return _number(a * b, "" if stays else option)
            if op == "//" and b:
                return _number(a // b, option)
            if op == "%" and b:
                return _number(a % b, option)
            if op == "/" and b:
                return _number(a / b, option)
            if op == "**" and abs(b) <= 64 and abs(a) <= 1024:
                return _number(a**b, option)
            if isinstance(a, int) and isinstance(b, int):
                return _fold_bits(op, a, b, option)
        if isinstance(a, str) and isinstance(b, str) and op == "+" and len(a) + len(b) < 4096:
            return v.Lit(a + b, option)
    except (ArithmeticError, TypeError, ValueError):
        pass
    return v.UNKNOWN


def _fold_bits(op: str, a: int, b: int, option: str) -> v.Value:
    if op == "<<" and 0 <= b <= MAX_BITS:
        return _number(a << b, option)
    if op == ">>" and b >= 0:
        return _number(a >> b, option)
    if op == "|":
        return _number(a | b, option)
    if op == "&":
        return _number(a & b, option)
    if op == "^":
        return _number(a ^ b, option)
    return v.UNKNOWN


def _number(value: float, option: str) -> v.Value:
    """A number as a value; unknown where repeated multiplication would make it fill the memory."""
    return v.Lit(value, option) if isinstance(value, float) or value.bit_length() <= MAX_BITS else v.UNKNOWN


def joined(kind: str, elts: list[v.Value], is_open: bool) -> v.Items:
    """Elements one after another; where they are very many, what is known is that there are more."""
    return v.Items(kind, elts[:MAX_ELEMENTS], is_open or len(elts) > MAX_ELEMENTS)


def _added_to_each(left: v.Value, right: v.Value) -> v.Value | None:
    """What a list and one of several lists give, one after another; None for other values."""
    several, other = (left, right) if isinstance(left, v.AnyOf) else (right, left)
    if not isinstance(several, v.AnyOf) or not isinstance(other, v.Items):
        return None
    pairs = [(one, other) if several is left else (other, one) for one in several.values]
    found = [
        joined(one.kind, [*one.elts, *two.elts], one.open or two.open)
        for one, two in pairs
        if isinstance(one, v.Items) and isinstance(two, v.Items)
    ]
    return v.AnyOf(tuple(found), several.option) if len(found) == len(pairs) else None


CHANGED = "@changed"
"""Marks the state of a module into which something else has been put."""
PART_OF = "@part_of"
"""Of a tensor: the state of a module from which it was taken."""


def changed(state: v.Value) -> None:
    """Other weights are put into what may be the state of a module: ``state.update(loaded)``, ``state[name] = weight``."""
    if isinstance(state, v.Obj) and "@owner" in state.attrs:
        state.attrs[CHANGED] = v.TRUE


def elements(interp: Interp, value: v.Value, node: m.Expr | None) -> list[v.Value] | None:
    """All elements of a value in iteration order, or None when they are not all known."""
    if is_empty(interp, value):
        return []
    if isinstance(value, v.Items) and value.elts and not value.open and value.kind != "s":
        return value.elts
    if (
        isinstance(value, v.Mapping)
        and value.items
        and not value.goes_on()
        and all(isinstance(k, str) for k in value.items)
    ):
        return [v.Lit(key) for key in value.items]
    if isinstance(value, v.AnyOf):
        # One of several of the same length.
        known = [elements(interp, one, node) for one in _with_items(value)]
        first = known[0] if known else None
        if first is None or any(one is None or len(one) != len(first) for one in known):
            return None
        return [v.join(places) for places in zip(*(one or [] for one in known), strict=True)]
    held = fields(value)
    if held is not None:
        return held
    parted_into = value.attrs.get(v.BATCH_PARTS) if isinstance(value, v.Obj) else None
    if isinstance(parted_into, v.Items):
        return parted_into.elts
    layers = known_layers(value) if isinstance(value, v.Obj) else None
    if layers is not None:
        interp.listeners.tell(IterationEvent(value))
        return layers
    other = tensors.second(interp, value)
    return None if other is None else [tensors.make(tensors.PART, shapes.form(value)), other]


def _with_items(value: v.AnyOf) -> list[v.Value]:
    """What a value may be of which items are read. None has no items: where one is read, it is another value."""
    return [one for one in value.values if v.is_none(one) is not True]


def _item_of_class(cls: v.Cls) -> v.Func | None:
    """The method that gives ``Models[name]`` of a class: that of its metaclass, or else that of the class."""
    of_metaclass = cls.metaclass.find("__getitem__") if cls.metaclass is not None else None
    found = of_metaclass or cls.find("__class_getitem__")
    return found.bind(cls) if isinstance(found, v.Func) else None


def _field_at(held: list[v.Value], index: v.Value) -> v.Value:
    at = index.value if isinstance(index, v.Lit) and isinstance(index.value, int) else None
    return held[at] if at is not None and -len(held) <= at < len(held) else v.join(held)


def rounds_of_literals(value: v.Value) -> list[v.Value] | None:
    """What each round of a loop gets over ``enumerate(...)``, ``zip(...)``, ``itertools.product(...)`` or a progress bar
    around sequences of texts and numbers that are all known; None for any other."""
    if not isinstance(value, v.Obj) or value.args.star or value.args.dstar:
        return None
    if value.api in _SIDE_BY_SIDE and value.args.pos and value.args.kw.keys() <= {"strict"}:
        given = [_literals(one) for one in value.args.pos]
        known = [one for one in given if one is not None]
        if len(known) < len(given):
            return None
        together = zip(*known, strict=False) if value.api == _ZIP else itertools.product(*known)
        return [v.Items("t", list(one)) for one in itertools.islice(together, _MOST_TOGETHER)]
    inner = inside(value) if value.api in _WHOLE_INSIDE else None
    if inner is None:
        return None
    rounds = _literals(inner) or rounds_of_literals(inner)
    if value.api != ENUMERATE:
        return rounds
    if rounds is None or value.args.get("start", 1) is not None:
        return None
    return [v.Items("t", [v.Lit(at), one]) for at, one in enumerate(rounds)]


def _literals(value: v.Value) -> list[v.Value] | None:
    """The elements of a sequence of which all are known texts and numbers."""
    if not isinstance(value, v.Items) or value.kind == "s" or value.open or not value.elts:
        return None
    return value.elts if all(isinstance(one, v.Lit) for one in value.elts) else None


_ZIP = "builtins.zip"
_PRODUCT = "itertools.product"
_SIDE_BY_SIDE = frozenset({_ZIP, _PRODUCT})
_WHOLE_INSIDE = PASS_THROUGH - {"builtins.reversed", "itertools.islice", "itertools.cycle"}
"""What passes on all elements, in their order."""
_MOST_TOGETHER = 64
"""Rounds of which more are not listed: loops of fewer are run round by round."""


def elements_of_own_code(value: v.Value) -> list[v.Value] | None:
    """The known elements of a sequence, of which each brings its own function or class of the project, as those of a
    registry do: running all of them runs each of these once. None where there are few, or too many."""
    if not isinstance(value, v.Items) or len(value.elts) > MOST_OF_OWN_CODE:
        return None
    if sum(len(v.alternatives(one)) for one in value.elts) <= v.MAX_ALTERNATIVES:
        return None
    codes = [own_code(one) for one in value.elts]
    return value.elts if None not in codes and len(set(codes)) == len(codes) else None


def own_code(value: v.Value) -> Hashable | None:
    """The function or class of the project that a value is, or is an instance of, or that is part of a pair."""
    if isinstance(value, v.Func):
        return value.key
    if isinstance(value, v.Cls):
        return id(value.cls)
    if isinstance(value, v.Inst):
        return id(value.cls.cls)
    if isinstance(value, v.AnyOf):
        # An instance that was made in one way or another.
        first, *others = map(own_code, value.values)
        return first if all(one == first for one in others) else None
    if isinstance(value, v.Items) and value.kind == "t":
        return next((code for code in map(own_code, value.elts) if code is not None), None)
    return None


def element(interp: Interp, value: v.Value) -> v.Value:
    """What iterating a value gives."""
    if isinstance(value, v.Items):
        return v.candidates(value.elts) if value.elts else v.UNKNOWN
    if isinstance(value, v.Mapping):
        return v.UNKNOWN
    if isinstance(value, v.Inst):
        interp.listeners.tell(IterationEvent(value))
        found = value.cls.find("__iter__")
        if found is not None:
            given = interp.call(bind_method(interp, found, value, value.cls, None), v.NO_ARGS, None)
            if isinstance(given, v.Items) or (isinstance(given, v.Obj) and given.api in PASS_THROUGH):
                return element(interp, given)
            following = given.cls.find("__next__") if isinstance(given, v.Inst) else None
            return v.UNKNOWN if following is None else _given_by(interp, given, following)
        inherited = container_of(value) or inherited_loader(value)
        if inherited is not None:
            return element(interp, inherited)
        # Without `__iter__`, its items are those of the numbers from 0 on.
        found = value.cls.find("__getitem__")
        return v.UNKNOWN if found is None else _given_by(interp, value, found, v.Obj(shapes.NUMBER))
    if isinstance(value, v.Member):
        interp.listeners.tell(IterationEvent(value))
    if isinstance(value, v.Obj):
        if value.api in PASS_THROUGH:
            inner = inside(value)
            one = element(interp, inner) if inner is not None else v.UNKNOWN
            return v.Items("t", [v.Obj(shapes.NUMBER), one]) if value.api == ENUMERATE else one
        if value.api == _ZIP or (value.api == _PRODUCT and "repeat" not in value.args.kw):
            return v.Items("t", [element(interp, x) for x in value.args.pos], value.args.star)
        interp.listeners.tell(IterationEvent(value))
        if value.api in RANGES:
            number = counted(value.args.pos[0]) if len(value.args.pos) > 1 else None
            return number or v.Obj(shapes.NUMBER)
        if parts(value):
            return any_part(value)
        if value.type == LOADER:
            made = tensors.batch(loader_device(value))
            made.attrs[tensors.BATCH_OF] = value
            collated.fill(interp, made, value)
            return made
        if value.api.endswith("parameters") and tensors.MODULE_OF in value.attrs:
            return _parameter(value)
        if value.form is not None and value.type != TENSOR:
            return tensors.make(tensors.BATCH, value.form, likely=True)
        if value.type == TENSOR:
            if value.api == tensors.BATCH:
                return value
            # Lists of numbers are in a list of a matrix.
            listed = value.api.endswith(LISTED)
            if (
                listed
                and value.form is not None
                and value.form.sizes is not None
                and len(value.form.sizes) == 1
            ):
                return v.Obj("builtins.float")
            api = value.api if listed else "torch.Tensor.__iter__"
            return tensors.make(api, tensors.row(value), value.likely)
        of_task = _of_tasks(interp, value)
        if of_task is not None:
            return of_task
        chosen = among(interp, value)
        if chosen:
            return v.candidates(chosen)
        part = parted.part(interp, value, None)
        return part or (value if is_entropy(value) else _typed(interp, value))
    if isinstance(value, v.AnyOf):
        held = [one for one in _with_items(value) if not is_empty(interp, one)]
        return v.join([element(interp, one) for one in held])
    if isinstance(value, v.Cls):
        return enumerations.any_member(interp, value) or v.UNKNOWN
    return v.UNKNOWN


GIVEN_LATER = "@given later"
"""The attribute of what an executor gives for a function that holds what the function gives, in a list if it calls the
function for each of several elements."""


def _of_tasks(interp: Interp, value: v.Obj) -> v.Value | None:
    """What a task has given, of those that an executor has started together; a task, of those that are handed out as they
    end."""
    later = value.attrs.get(GIVEN_LATER) if value._attrs is not None else None
    if isinstance(later, v.Items) and later.kind == "l":
        return element(interp, later)
    role = interp.kb.role(value.api, "hands-out")
    given = value.args.get(role.arg, role.pos) if role is not None else None
    return element(interp, given) if isinstance(given, v.Items) else None


def _given_by(interp: Interp, value: v.Value, method: v.Value, *given: v.Value) -> v.Value:
    """What a method of an object gives that is iterated."""
    if not isinstance(value, v.Inst):
        return v.UNKNOWN
    return interp.call(bind_method(interp, method, value, value.cls, None), v.Args(list(given)), None)


def class_of_batch(interp: RunView, batch: v.Obj) -> str:
    """The class of what a loader gives, where it is not that of tensors or of containers of them; empty otherwise."""
    loader = batch.attrs.get(tensors.BATCH_OF)
    if not isinstance(loader, v.Obj):
        return ""
    collate = loader.args.get("collate_fn", 6)
    if isinstance(collate, v.Obj):
        return interp.kb.result_type(f"{collate.api}.__call__")
    return interp.kb.result_type(f"{loader.package}.@batch")


def _typed(interp: Interp, value: v.Obj) -> v.Value:
    """What is known of the elements of a library object: texts, paths, numbers, rows of texts, chunks."""
    for source in (value.api, value.type):
        made = interp.kb.result_type(f"{source}.element[]")
        if made:
            return v.Obj(f"{source.removesuffix(ITERATED)}{ITERATED}", made)
    behind_key = interp.kb.result_type(f"{value.type}.pair[]")
    if behind_key:
        group = v.Obj(f"{value.type}{ITERATED}", behind_key)
        group.owner = value
        return v.Items("t", [v.UNKNOWN, group])
    found = one_of(interp, value)
    return found if found is not None else v.UNKNOWN


_NAMES = ".__dict__"
MODULE = ("module",)
"""The key under which the names of a module keep the module."""
_ANY_NAME = "@named"
"""Stands for a name that the program computes."""


_MAX_NAMED = 40
"""Of more definitions than these, one that is picked by its name stays unknown."""


def _defines(owner: v.Mod, mod: v.Mod) -> bool:
    """Whether a module is this one, or one of the package that this one is."""
    if mod is owner or owner.file is None or not owner.file.is_package:
        return mod is owner
    return mod.file is not None and mod.file.path.startswith(owner.file.directory + "/")


def _may_be_named(value: v.Value, found: list[v.Cls | v.Func]) -> bool:
    """Whether a name given from outside may stand for this, which a module has beside its classes and functions: something
    unknown, or a class that it imports from a library and derives none from."""
    if not isinstance(value, v.Ext):
        return value is v.UNKNOWN
    if not value.name.rpartition(".")[2][:1].isupper():
        # A library's module, or a function.
        return False
    return not any(isinstance(one, v.Cls) and value.name in one.external_bases() for one in found)


def member_by_name(interp: Interp, module: v.Ext | v.Mod, name: v.Value) -> v.Value:
    """What a module has under a name: where that is not known, one of those that it is known to have."""
    if isinstance(module, v.Mod):
        return _defined_by_name(module, name)
    if isinstance(name, v.Lit) and isinstance(name.value, str):
        return interp.attribute(module, name.value, None)
    one = f"{interp.kb.canonical(module.name)}.{_ANY_NAME}"
    known = any(interp.kb.role(one, role) is not None for role in _BY_NAME)
    return v.Ext(one) if known else v.UNKNOWN


def _defined_by_name(owner: v.Mod, name: v.Value) -> v.Value:
    """Objects built by name: anything callable that the module, or the package, defines may be meant, or imports where it
    defines nothing; of several names that files have, those that are there. How it is called tells more."""
    named = owner.env.all().items()
    meant = [one.value for one in v.alternatives(name) if isinstance(one, v.Lit)]
    listed = [
        x for key, x in named if isinstance(name, v.AnyOf) and len(meant) == len(name.values) and key in meant
    ]
    if listed and all(isinstance(one, (v.Cls, v.Func)) for one in listed):
        return v.candidates(listed)
    held = [x for key, x in named if isinstance(x, (v.Cls, v.Func)) and v.may_be(name, key)]
    found = [x for x in held if _defines(owner, x.mod)] or held
    if not 0 < len(found) <= _MAX_NAMED:
        return v.UNKNOWN
    # A function may do anything, and whether it is the one that runs is not known.
    only = all(isinstance(one, v.Cls) for one in found) and not any(
        _may_be_named(one, found) for key, one in named if not key.startswith("__")
    )
    return v.candidates(found) if only else v.AnyOf((*found, v.UNKNOWN))


def chosen_in_module(interp: Interp, owner: v.Mod, name: v.Lit, chosen: v.Value) -> v.Value:
    """What a module has under the default of an option, which may as well name another of its classes and functions that is
    like it: a class with a common base, a function with the same parameters. A list in a configuration says which ones it
    is."""
    listed = any(part.isdigit() for part in name.option.split("."))
    if not name.option or listed or not isinstance(chosen, (v.Cls, v.Func)):
        return chosen
    inside = _defines(owner, chosen.mod)
    others: list[tuple[str, v.Value]] = []
    for at, one in owner.env.all().items():
        if isinstance(one, (v.Cls, v.Func)) and are_alike(chosen, one):
            if one.mod is chosen.mod or (inside and _defines(owner, one.mod)):
                others.append((at, one))
    return _dispatched(interp, others, name, chosen)


def are_alike(one: v.Cls | v.Func, other: v.Value) -> bool:
    """Whether something is a class with a base that another one has, too, or a function with the same parameters."""
    if isinstance(one, v.Func):
        return isinstance(other, v.Func) and [p.name for p in one.fn.params] == [
            p.name for p in other.fn.params
        ]
    if not isinstance(other, v.Cls):
        return False
    own = {*one.mro()[1:], *one.external_bases()} - {"object"}
    return not own.isdisjoint((*other.mro()[1:], *other.external_bases()))


_BY_NAME: tuple[Role, ...] = ("quiet-datasets", "chosen-by-name")


def part_of(interp: Interp, value: v.Value, found: v.Value) -> v.Value:
    """A slice of a value, of which an item is ``found``: of an array or a list that a library gave, one like it."""
    if not isinstance(value, v.Obj) or value.type == TENSOR or not raw_kind_of_elements(interp, value):
        return found
    if found is value or not (found is v.UNKNOWN or (isinstance(found, v.Obj) and found.args is v.NO_ARGS)):
        return found
    part = v.Obj(value.api, value.type, value.args, value.node)
    part.owner = value.owner
    return part


def chosen_of(interp: Interp, value: v.Value) -> v.Value:
    """What is chosen from an array of numbers by positions, columns or a mask: numbers like them."""
    if not isinstance(value, v.Obj) or not value.api.startswith("numpy.") or value.type == TENSOR:
        return v.UNKNOWN
    return part_of(interp, value, v.UNKNOWN) if raw_kind_of_elements(interp, value) == NUMBER else v.UNKNOWN


def has_elements(interp: Interp, value: v.Obj) -> bool:
    """Whether something is known of what a library object is taken apart into."""
    if value.type == TENSOR or one_of(interp, value) is not None or parted.part(interp, value, None):
        return True
    if not is_dict(value) and parts(value):
        return True
    return any(map(interp.kb.result_type, (f"{value.api}.element[]", f"{value.type}.pair[]")))


ITERATED = ".__iter__"
LISTED = ".tolist"
"""How the names of methods end that give the numbers in a tensor, in lists."""


LOADER = "torch.utils.data.DataLoader"
MOVED = "@device"
"""Attribute of a loader whose batches a library moves: the device."""


def inherited_loader(value: v.Value) -> v.Obj | None:
    """The loader as which an instance is iterated whose class is derived from that of loaders: it has no other way."""
    if isinstance(value, v.Inst):
        base = value.attrs.get(BASE)
        if isinstance(base, v.Obj) and base.type == LOADER and value.cls.find("__iter__") is None:
            return base
    return None


def loader_device(loader: v.Obj) -> str:
    """On which device the batches of a loader are."""
    moved = loader.attrs.get(MOVED)
    return "cpu" if moved is None else str(moved.value) if isinstance(moved, v.Lit) else ""


def put_on_device(value: v.Value, device: str) -> None:
    """A library moves what it is given: the batches of a loader are on its device from now on."""
    for one in v.alternatives(value):
        if isinstance(one, v.Obj) and one.type == LOADER:
            one.attrs[MOVED] = v.Lit(device) if device else v.UNKNOWN


def spread(value: v.Value) -> v.Value:
    """What ``*value`` gives: of one of several lists of the same length, one list of what may be at each place."""
    if not isinstance(value, v.AnyOf):
        return value
    several = [one for one in value.values if isinstance(one, v.Items) and one.kind != "s" and not one.open]
    several = [one for one in several if one.order is None]
    if len(several) < len(value.values) or len({len(one.elts) for one in several}) != 1:
        return value
    return v.Items("t", [v.join(places) for places in zip(*(one.elts for one in several), strict=True)])


def are_mappings(value: v.Value) -> bool:
    """Whether a value is a mapping, or one of several."""
    return all(isinstance(one, v.Mapping) for one in v.alternatives(value))


def unpacked(value: v.Value, of_some_files: bool = True) -> tuple[Mapping[Any, v.Value], bool]:
    """What ``**value`` gives, and whether it may give more: of one of several mappings, the items that all of them have,
    and those that some have. ``of_some_files`` names what only some of the files have that a program may be given."""
    if isinstance(value, v.Mapping):
        held = given_files.whole(value) if of_some_files else value
        return held.items, held.open
    if not are_mappings(value):
        return {}, True
    several = [given_files.whole(one) for one in v.alternatives(value) if isinstance(one, v.Mapping)]
    is_open = any(one.open for one in several)
    found: dict[Any, v.Value] = {}
    more = is_open
    for key in dict.fromkeys(key for one in several for key in one.items):
        there = [one.items[key] for one in several if key in one.items]
        if len(there) == len(several):
            found[key] = v.join(there)
        elif not is_open:
            found[key] = maybe_missing(there)
        else:
            more = True
    return found, more


def more_given(value: v.Value) -> bool:
    """What ``**value`` or ``*value`` gives beside what is known: nothing but data, where it is a batch that was loaded, or
    where all that it holds without a known name or place needs no gradients."""
    if isinstance(value, v.Obj):
        return v.OF_DATA if tensors.detached(value) else True
    held = value.elts if isinstance(value, v.Items) and value.kind != "s" else []
    more = _under_unknown_keys(value) if isinstance(value, v.Mapping) else held
    return v.OF_DATA if more and all(map(tensors.detached, more)) else True


def keep_items(into: MutableMapping[Any, v.Value], value: v.Value, node: Any) -> None:
    """A dictionary takes over the items of one that is not known: where that was loaded, they need no gradients."""
    key = (UNKNOWN_KEY, getattr(node, "start", 0))
    if isinstance(value, v.Obj) and value.form is not None and value.api == tensors.BATCH:
        into[key] = tensors.make(tensors.BATCH, value.form, True)
    elif not tensors.detached(value) and any(_is_unknown_key(name) for name, _ in into.items()):
        into[key] = v.UNKNOWN


def _parameter(parameters: v.Obj) -> v.Value:
    """One of ``module.parameters()``, or of ``module.named_parameters()`` with its name."""
    module = parameters.attrs[tensors.MODULE_OF]
    one = tensors.make(tensors.PARAMETER, shapes.Form(grad=True))
    one.attrs[tensors.MODULE_OF] = module
    return v.Items("t", [v.UNKNOWN, one]) if parameters.api.endswith("named_parameters") else one


def _takes_types(interp: Interp, cls: v.Cls) -> bool:
    """Whether an item of a class can only be the class itself, for some types: nothing else defines what it is."""
    if cls.find("__class_getitem__") is not None or any(one.metaclass is not None for one in cls.mro()):
        return False
    bases = (interp.kb.canonical(one) for one in cls.external_bases() if one != "object")
    return all(interp.kb.role(one, "has-only") is not None for one in bases)


_UNION = "typing.Union"
_ANNOTATED = "typing.Annotated"


def are_classes(values: Iterable[v.Value]) -> bool:
    """Whether values are classes of the project, or each one of some."""
    found = [one for value in values for one in v.alternatives(value)]
    return bool(found) and all(isinstance(one, v.Cls) for one in found)


def subscript(interp: Interp, value: v.Value, index: v.Value, node: m.Subscript) -> v.Value:
    """``value[index]``."""
    interp.listeners.tell(ItemEvent(value, index, node))
    if isinstance(value, v.Mapping):
        if isinstance(index, v.Lit):
            at_key: v.Value | None = value.items.get(index.value)
            if at_key is None and value.factory is not None:
                made = value.items[index.value] = interp.call(value.factory, v.NO_ARGS, node)
                at_key = v.join((*_under_unknown_keys(value), made))
            elif at_key is None and value.files[0]:
                at_key = look_up(value, index.value)
            if at_key is None and index.option:
                # The default names nothing that is there: the option has to be given.
                return v.UNKNOWN if has_no_choice(value, index) else _any_of(interp, value)
            if at_key is None:
                return at_unknown_key(interp, value)
            module = value.items.get(MODULE)
            if isinstance(module, v.Mod):
                return chosen_in_module(interp, module, index, present(at_key))
            return _dispatched(interp, value.items.items(), index, present(at_key))
        if value.factory is not None:
            key = ("unknown key", node.start)
            if key not in value.items:
                value.items[key] = interp.call(value.factory, v.NO_ARGS, node)
            return v.join(value.items.values())
        return _any_of(interp, value, index)
    if isinstance(value, v.Obj) and isinstance(held := value.attrs.get(SECTIONS), v.Mapping):
        return subscript(interp, held, index, node)
    if isinstance(value, v.Items):
        if isinstance(index, v.Lit) and isinstance(index.value, int) and not value.open:
            try:
                return _dispatched(interp, enumerate(value.elts), index, value.elts[index.value])
            except IndexError:
                return v.UNKNOWN
        return v.candidates(value.elts) if value.elts else v.UNKNOWN
    if isinstance(value, v.Ext):
        if value.name == "sys.modules" and isinstance(index, v.Lit) and isinstance(index.value, str):
            own = interp.frame.mod
            mod = (
                own
                if index.value == own.name
                else interp.import_parents(interp.frame.file, index.value.split("."))
            )
            return mod or v.UNKNOWN
        if is_environ(interp, value) and isinstance(index, v.Lit):
            setting = interp.state.env.get(str(index.value))
            if setting and setting.value is not None:
                return v.Lit(setting.value, setting.option)
            # Some variables number devices.
            ranked = interp.kb.device(f"os.environ.{index.value}") is not None and setting is None
            return v.Obj(f"os.environ.{index.value}") if ranked else v.UNKNOWN
        if value.name == _UNION and isinstance(index, v.Items) and are_classes(index.elts):
            return v.candidates(index.elts)
        if value.name == _ANNOTATED and isinstance(index, v.Items) and are_classes(index.elts[:1]):
            return index.elts[0]
        if value.name.endswith(_NAMES):
            return member_by_name(interp, v.Ext(value.name.removesuffix(_NAMES)), index)
        return v.UNKNOWN if is_environ(interp, value) else value
    if isinstance(value, v.Func) and value.decorated:
        # ``kernel[grid](x)``: no function has items as it was written.
        return v.Obj(v.KERNEL, "", v.Args([value]))
    if isinstance(value, v.Cls) and (method := _item_of_class(value)) is not None:
        given = interp.call(method, v.Args([index]), node)
        if given is not v.UNKNOWN:
            return given
    if isinstance(value, v.Cls) and _takes_types(interp, value):
        # ``class Agent(Base[int])``
        return value
    if isinstance(value, v.Cls):
        member = enumerations.by_name(interp, value, index)
        if member is not None:
            return member
    if isinstance(value, v.Inst):
        found = value.cls.find("__getitem__")
        if found is not None and inherits_items(value.cls) and not is_number(index):
            # It gives a part of the dataset.
            found = None if is_graph_dataset(value.cls.external_bases()) else found
        if found is not None:
            bound = bind_method(interp, found, value, value.cls, node)
            form_only = isinstance(found, v.Func) and is_asked_for_form(interp, node, value, found)
            with interp.within(*[ASKED_FOR_FORM] * form_only):
                return interp.call(bound, v.Args([index]), node)
        container = container_of(value)
        if container is not None:
            return subscript(interp, container, index, node)
        held = fields(value)
        if held is not None:
            return _field_at(held, index)
        return value if _is_part(value.cls.external_bases(), index) else v.UNKNOWN
    if isinstance(value, v.Obj):
        if value.type == PATH and isinstance(index, v.Lit) and path_of(value) is not None:
            # `Path(__file__).parents[1]`
            return above(value, index.value + 1) if type(index.value) is int and index.value >= 0 else value
        if _is_part([value.api], index) or value.type == PATH:
            return value
        if isinstance(index, v.Lit) and isinstance(index.value, str) and index.value in value.attrs:
            return value.attrs[index.value]
        held = fields(value)
        if held is not None:
            return _field_at(held, index)
        if value.type == TENSOR and value.api == tensors.BATCH and isinstance(index, v.Lit):
            return collated.part(value, index.value)
        if isinstance(index, v.Lit) and index.value in (0, 1, -1, -2):
            other = tensors.second(interp, value)
            if other is not None:
                first = index.value in (0, -2)
                return tensors.make(tensors.PART, shapes.form(value), value.likely) if first else other
        if value.type == TENSOR:
            made = tensors.make(tensors.PART, tensors.of_item(interp, value, index), value.likely)
            taken(interp, made, value)
            return made
        if value.form is not None:
            only = _is_only_column(node, index) and tensors.are_positions(interp, value)
            known = tensors.of_item(interp, value, index) if is_graph_tensor(value) else value.form
            if known.sizes is None and known.single is None and isinstance(index, v.Items):
                known = known._replace(single=shapes.dimension_of_item(index))
            made = tensors.make(tensors.BATCH, known._replace(distinct=True) if only else known, True)
            if value.api in tensors.LOADING and isinstance(index, v.Lit):
                tensors.loaded_item(made, index, value)
            if "@owner" in value.attrs:
                made.attrs[PART_OF] = value
            return made
        if is_read_back(interp, value, index):
            return tensors.loaded_item(v.Obj("?", "?"), index, value)
        if is_dict(value) and isinstance(index, v.Lit):
            found = named(value, index.value)
            if found is not None:
                return _dispatched(interp, by_name(value).items(), index, found)
        held = parts(value)
        if held:
            if isinstance(index, v.Lit) and isinstance(index.value, int) and abs(index.value) < len(held):
                return _dispatched(interp, enumerate(held), index, held[index.value])
            return any_part(value)
        place = index.value if isinstance(index, v.Lit) else None
        part = parted.part(interp, value, place if isinstance(place, int) else None)
        if part is None and isinstance(place, int):
            part = parted.of_result(interp, value, place)
            # What an object has of all its methods is not the class of an element.
            if isinstance(part, v.Obj) and part.type in (value.api, value.type):
                part = None
        if part is not None:
            return part
        if is_entropy(value):
            return rest_of(interp, value, place if isinstance(place, (int, str)) else None)
        column = isinstance(index, v.Lit) and isinstance(index.value, str)
        if column or not isinstance(index, v.Lit):
            found = _selected(interp, value, "column" if column else "rows", index)
            if found is not v.UNKNOWN:
                return found
        return _typed(interp, value)
    if isinstance(value, v.Member) and isinstance(value.owner, v.Obj):
        updated = index_updates.place(interp, value, index)
        if updated is not None:
            return updated
        return _selected(interp, value.owner, value.name, v.UNKNOWN)
    if isinstance(value, v.AnyOf):
        held = [one for one in _with_items(value) if not is_empty(interp, one)]
        return v.join([subscript(interp, one, index, node) for one in held])
    return v.UNKNOWN


def _dispatched(interp: Interp, held: Iterable[tuple[Any, v.Value]], key: v.Lit, chosen: v.Value) -> v.Value:
    """What a table, a list or a container of modules gives at the default of an option, which may as well name another
    function, class or object that is ``held`` there."""
    if not key.option:
        return chosen
    others = [one for at, one in held if one is not chosen and (not key.choices or at in key.choices)]
    if len(others) >= MAX_COMMANDS:
        return chosen
    for other in others:
        chosen = unless_option(interp, chosen, other, key.option)
    return chosen


MAX_COMMANDS = 24
"""How many functions a table holds at most, if each of them is taken for a command of the program."""


def cut_out(value: v.Items | v.Lit | v.Obj, bounds: Sequence[v.Value]) -> v.Value:
    """``value[lower:upper:step]`` of a sequence, a string or a container of modules."""
    numbers: list[Any] = [one.value if isinstance(one, v.Lit) else ... for one in bounds]
    known = all(x is None or (isinstance(x, int) and not isinstance(x, bool)) for x in numbers)
    if isinstance(value, v.Lit):
        if known and numbers[2] != 0 and isinstance(value.value, str):
            option = value.option or next((v.option_of(one) for one in bounds if v.option_of(one)), "")
            return v.Lit(value.value[slice(*numbers)], option)
        return v.UNKNOWN
    if isinstance(value, v.Obj):
        return value
    if known and numbers[2] != 0 and not value.open:
        return v.Items(value.kind, value.elts[slice(*numbers)])
    return v.Items(value.kind, list(value.elts), True)


def _selected(interp: Interp, whole: v.Obj, what: str, index: v.Value) -> v.Value:
    """A part of a frame or a dataset: a column, rows, or what an indexer like ``loc`` selects."""
    made = interp.kb.result_type(f"{whole.type}.{what}[]")
    if not made:
        return v.UNKNOWN
    part = v.Obj(f"{whole.type}.__getitem__", made, v.Args([index]))
    part.owner = whole
    return part


# Datasets that give a dataset when they are indexed by anything but a number.
_GRAPH_DATASETS = ("torch_geometric.data.", "torch_geometric.datasets.", "ogb.")


def _is_part(names: list[str], index: v.Value) -> bool:
    return not (isinstance(index, v.Lit) and isinstance(index.value, int)) and is_graph_dataset(names)


def inherits_items(cls: v.Cls) -> bool:
    """Whether the ``__getitem__`` of a class is that of a library, which may call a method of the class for the number of
    an item."""
    found = cls.find("__getitem__")
    return found is None or (isinstance(found, v.Func) and found.fn.name != "__getitem__")


def is_graph_dataset(names: list[str]) -> bool:
    """Whether one of these library classes is a dataset of graphs."""
    return any(
        name.startswith(_GRAPH_DATASETS) and (name.endswith("Dataset") or ".datasets." in name)
        for name in names
    )


UNKNOWN_KEY = "unknown key"
"""The first part of keys that stand for keys that are not known."""


def _is_unknown_key(key: Any) -> bool:
    """Whether a key stands for keys that are not known; among the attributes of an object it is a text."""
    if isinstance(key, tuple):
        return key[:1] == (UNKNOWN_KEY,)
    return isinstance(key, str) and key.startswith(f"@{UNKNOWN_KEY} ")


def _under_unknown_keys(value: v.Mapping) -> list[v.Value]:
    return [x for key, x in value.items.items() if _is_unknown_key(key)]


def at_unknown_key(interp: Interp, value: v.Mapping) -> v.Value:
    """What an open mapping holds under a key that it is not known to have: tensors, sequences in arbitrary order, numbers
    and lists of them, lists, sets and memory that are filled later, several such sets, objects of classes, or what differs
    from run to run, where all that was put under unknown keys are; else what came in arbitrary order."""
    if not value.open:
        return v.UNKNOWN
    held = _under_unknown_keys(value)
    # What is looked up in is not empty.
    held = [x for x in held if not isinstance(x, v.Mapping) or x.items or x.open] or held
    held = [_any_number(x) for one in held for x in _sets_in(one) or (one,)]
    known = all(
        shapes.form(x) != shapes.NOTHING
        or _is_arbitrary(x)
        or _has_numbers(interp, x)
        or is_counted(x)
        or (isinstance(x, v.Obj) and x.api == _FRACTION)
        or _are_objects(x)
        or _is_filled_later(x)
        or _holds_sets(x)
        or (isinstance(x, v.Obj) and interp.kb.role(x.api, "allocates") is not None)
        or differing(x) is not None
        for x in held
    )
    if held and not known:
        # Of the others nothing is known.
        return v.join([*filter(_is_arbitrary, held), v.UNKNOWN])
    if not held:
        return v.UNKNOWN
    # The key may be one of those that are known, too.
    held = [*held, *(x for x in value.items.values() if shapes.form(x).grad)][: v.MAX_ALTERNATIVES]
    # A set into which nothing is seen to be put may be filled where that is not seen.
    bare = any(
        isinstance(x, v.Items) and x.kind == "s" and not x.elts
        for one in held
        for x in (one, *_sets_within(one))
    )
    return v.join((*held, v.UNKNOWN) if bare else held)


def _any_number(value: v.Value) -> v.Value:
    """Some number of the kind of one that was put under an unknown key: under other keys there may be others."""
    known = type(value.value) if isinstance(value, v.Lit) and not value.option else None
    if known is int or known is float:
        return v.Obj(shapes.NUMBER if known is int else _FRACTION)
    return value


def _sets_in(value: v.Value) -> list[v.Value]:
    """The sets of which a value is one, or what was there under its key by then."""
    found = [one for one in v.alternatives(value) if one is not v.UNKNOWN]
    return found if all(isinstance(one, v.Items) and one.kind == "s" for one in found) else []


def _parts_of(value: v.Value) -> list[v.Value]:
    """What a sequence of known elements, or a mapping, holds."""
    if isinstance(value, v.Mapping):
        return list(value.items.values())
    return list(value.elts) if isinstance(value, v.Items) and value.kind in "lt" and not value.open else []


def _sets_within(value: v.Value) -> list[v.Value]:
    """The sets that a sequence or a mapping holds."""
    return [one for one in _parts_of(value) if isinstance(one, v.Items) and one.kind == "s"]


def _holds_sets(value: v.Value) -> bool:
    """Whether a value is a sequence or a mapping of sets, and of constants and lists that are filled later: under another
    key the constants may be others."""
    parts = _parts_of(value)
    if not _sets_within(value) or not all(
        isinstance(one, v.Lit) or one is v.UNKNOWN or _is_filled_later(one) for one in parts
    ):
        return False
    if any(isinstance(one, v.Lit) for one in parts):
        if isinstance(value, v.Items):
            value.elts = [v.UNKNOWN if isinstance(one, v.Lit) else one for one in parts]
        elif isinstance(value, v.Mapping):
            value.items.update({key: v.UNKNOWN for key, one in value.items.items() if isinstance(one, v.Lit)})
            value.open = value.open or True
    return True


def _has_numbers(interp: Interp, value: v.Value, depth: int = 0) -> bool:
    """Whether a value holds numbers of arrays, in a list of any length or in a mapping of such lists."""
    if isinstance(value, v.Mapping):
        inner = list(value.items.values())
        return depth < _MOST_NESTED and all(_has_numbers(interp, one, depth + 1) for one in inner)
    if not isinstance(value, v.Items) or not all(isinstance(one, v.Obj) for one in value.elts):
        return False
    if kind_of_elements(interp, value) != NUMBER:
        return False
    if not value.open:
        # Another key may have another number of them.
        value.open = True
    return True


_MOST_NESTED = 2


def is_counted(value: v.Value) -> bool:
    """Whether a value is a number that the program made of something or counted: which one, is not known."""
    return isinstance(value, v.Obj) and value.api in _NUMBERS


_NUMBERS = (shapes.NUMBER, "builtins.len")
_FRACTION = "builtins.float"
"""What stands for a floating-point number that the program makes of something."""


def _is_filled_later(value: v.Value) -> bool:
    """Whether a value is a set, or a list that was empty when it was put there: what is read is what has been added to it
    by then."""
    if not isinstance(value, v.Items) or value.kind not in "ls":
        return False
    if value.kind == "s":
        return True
    if value.elts and not value.open:
        return False
    value.open = True
    return True


def _are_objects(value: v.Value) -> bool:
    """Whether a value is an object of a class, of the program or of a library, or a list of such."""
    if isinstance(value, (v.Items, v.AnyOf)):
        held = value.elts if isinstance(value, v.Items) else value.values
        return bool(held) and all(map(_are_objects, held))
    if isinstance(value, v.Obj):
        return value.type == value.api and value.api.rpartition(".")[2][:1].isupper()
    return isinstance(value, v.Inst)


def _is_arbitrary(value: v.Value) -> bool:
    """Whether a value is a sequence or a library object in arbitrary order, if it is not None."""
    held = [one for one in v.alternatives(value) if v.is_none(one) is not True]
    return bool(held) and all(isinstance(one, (v.Items, v.Obj)) and one.order is not None for one in held)


def _any_of(interp: Interp, value: v.Mapping, index: v.Value = v.UNKNOWN) -> v.Value:
    """A value of a mapping under an unknown key: of an open one, its functions and classes may be what is meant."""
    module = value.items.get(MODULE)
    if isinstance(module, v.Mod):
        return _defined_by_name(module, index)
    meant = [
        x
        for key, x in value.items.items()
        if v.may_be(index, key) or isinstance(key, tuple) or _is_unknown_key(key)
    ]
    if meant and not value.open:
        return v.candidates(meant)
    held = [one for x in meant for one in v.alternatives(x)]
    callables = [x for x in held if isinstance(x, (v.Func, v.Cls, v.Ext, v.Partial))]
    return v.candidates([*callables, v.UNKNOWN]) if callables else at_unknown_key(interp, value)


def is_environ(interp: Interp, value: v.Value) -> bool:
    """Whether a value is ``os.environ``, under any name by which a library exports it."""
    return isinstance(value, v.Ext) and interp.kb.canonical(value.name) in ENVIRON


def _is_text(index: v.Value) -> bool:
    return isinstance(index, v.Lit) and isinstance(index.value, str)


def is_number(index: v.Value) -> bool:
    """Whether an index is the number of an element."""
    if isinstance(index, v.Lit):
        return type(index.value) is int
    return isinstance(index, v.Obj) and index.api == shapes.NUMBER


def _is_each(interp: Interp, target: Any) -> bool:
    """Whether ``x[i]`` is stored in each round of a loop over ``range(len(x))``, ``enumerate(x)``, or over the keys or items
    of ``x``: at the end it is all elements of ``x`` that were."""
    return _is_own(interp, target) and _runs_for_all(interp.loops[-1].stmt, interp.statement)


def _is_own(interp: Interp, target: Any) -> bool:
    """Whether ``x[i]`` is stored in a loop over the numbers or keys of ``x``, which no round leaves."""
    stmt = interp.loops[-1].stmt if interp.loops else None
    if not isinstance(stmt, m.For) or not isinstance(target, m.Subscript):
        return False
    if not isinstance(target.value, m.Name) or not isinstance(target.index, m.Name):
        return False
    held = _held_of(stmt)
    return (
        held is not None
        and (held[0].id, held[1].id) == (target.value.id, target.index.id)
        and not any(isinstance(one, m.Jump) for one in nodes(stmt.body))
    )


def _is_each_counted(interp: Interp, target: Any) -> bool:
    """The same for ``x[i]`` in a loop over ``range(n)``, where ``x`` is made as a list of ``n`` elements."""
    loop = interp.loops[-1] if interp.loops else None
    if loop is None or not isinstance(target, m.Subscript) or not isinstance(loop.stmt, m.For):
        return False
    if not isinstance(target.value, m.Name) or not isinstance(target.index, m.Name):
        return False
    return (
        _runs_for_all(loop.stmt, interp.statement)
        and counts_elements(interp, loop, target.value.id, target.index.id)
        and not any(isinstance(one, m.Jump) for one in nodes(loop.stmt.body))
    )


def _runs_for_all(loop: m.For | m.While, stmt: m.Stmt | None) -> bool:
    """Whether a statement in the body of a loop runs in each round, or in those whose element is of some class."""
    if any(one is stmt for one in loop.body):
        return True
    return any(
        isinstance(one, m.If)
        and called_name(one.test) in _OF_CLASS
        and any(each is stmt for each in one.body)
        for one in loop.body
    )


def _is_tested(interp: Interp) -> bool:
    """Whether the running statement stands under a test in its loop."""
    return not any(one is interp.statement for one in interp.loops[-1].stmt.body)


_OF_CLASS = frozenset({"isinstance", "hasattr", "is_tensor"})


def _held_of(loop: m.For) -> tuple[m.Name, m.Name] | None:
    """What a loop goes through, by number or by key, and the variable of that number or key."""
    over, counter = loop.iter, loop.target
    while (
        isinstance(over, m.Call) and called_name(over) in ("list", "tuple", "sorted") and len(over.args) == 1
    ):
        over = over.args[0]
    if isinstance(over, m.Name):
        return (over, counter) if isinstance(counter, m.Name) else None
    name = called_name(over)
    if not isinstance(over, m.Call):
        return None
    if name in ("keys", "items") and not over.args and isinstance(over.func, m.Name):
        if name == "items" and isinstance(counter, m.Seq):
            counter = counter.elts[0]
        over = m.Name(over.func.id.rpartition(".")[0], over.func.start, over.func.end)
    elif name == "enumerate" and isinstance(counter, m.Seq) and len(over.args) == 1:
        over, counter = over.args[0], counter.elts[0]
    elif name == "range" and len(over.args) == 1 and called_name(over.args[0]) == "len":
        inner = over.args[0]
        over = inner.args[0] if isinstance(inner, m.Call) and len(inner.args) == 1 else inner
    else:
        return None
    return (over, counter) if isinstance(over, m.Name) and isinstance(counter, m.Name) else None


def happens_once(interp: Interp, owner: v.Items | v.Mapping) -> bool:
    """Whether what runs now changes a list or a dict once: it is in no branch, and in no loop that is not unrolled."""
    jumps = interp.frame.jumps
    once = len(jumps) == interp.frame.unrolled and not any(jumps) and not interp.branching
    # A loop of a caller changes it in each of its rounds.
    return once and owner.birth > interp.repeating


def takes_away(interp: Interp, owner: v.Items) -> bool:
    """Whether it is known of an element that is taken out of a list now which are left."""
    return not owner.open and owner.kind == "l" and owner.order is None and happens_once(interp, owner)


def position(owner: v.Items, index: v.Value) -> int | None:
    """The place in a list whose elements are all known that a number stands for, counted from the start."""
    if owner.open or not isinstance(index, v.Lit) or not isinstance(index.value, int):
        return None
    size = len(owner.elts)
    return max(index.value + size, 0) if index.value < 0 else min(index.value, size)


def set_item(interp: Interp, owner: v.Value, index: v.Value, value: v.Value, node: Any) -> None:
    """``owner[index] = value``."""
    changed(owner)
    interp.listeners.tell(ItemWriteEvent(owner, index, value, node))
    if interp.orders.any:
        interp.orders.stored(interp, owner, index, value)
    tensors.write(interp, owner, "", value)
    if isinstance(value, v.Inst) and not isinstance(owner, (v.Mapping, v.Items)):
        replacements.into(interp, owner, value)
    if is_environ(interp, owner):
        if isinstance(index, v.Lit):
            interp.set_env(str(index.value), value, node)
    elif isinstance(owner, v.Mapping):
        scope = scope_of(interp, node)
        if scope is not None:
            set_in_scope(scope, index, value)
        if isinstance(index, v.Lit) and not isinstance(index.value, (list, dict)):
            if interp.branching and index.value in owner.items:
                value = v.join((owner.items[index.value], value))
            owner.items[index.value] = value
        else:
            owner.open = True
            as_defaults(owner.items, index, value)
            key = (UNKNOWN_KEY, getattr(node, "start", 0))
            before = owner.items.get(key)
            if isinstance(value, (v.Func, v.Cls)) and before is not None:
                # What a decorator registers under names that are not known.
                value = made_again.candidates(before, value)
            owner.items[key] = value
    elif isinstance(owner, v.Items):
        if _replaces_set(owner, index, value, not interp.branching):
            return
        if _is_each(interp, node) or _is_each_counted(interp, node):
            owner.elts = [v.join((*owner.elts, value)) if interp.branching else value] * len(owner.elts)
        else:
            owner.open = v.FEWER if v.is_slice(index) else True
            owner.elts = [*owner.elts, value][-16:]
    elif isinstance(owner, v.Obj) and owner.api == tensors.BATCH and not _is_text(index):
        each = _is_each(interp, node)
        if v.is_slice(index):
            collated.update(owner, [value])
        elif each or is_number(index) or _is_own(interp, node):
            collated.put(owner, index, value, each and (not interp.branching or _is_tested(interp)))
    elif isinstance(owner, v.Obj) and is_dict(owner):
        put(owner, [value])
    elif isinstance(owner, v.Obj) and owner.api in CONTAINERS:
        replace(owner, index, value, not interp.branching)
    elif isinstance(owner, v.Obj) and isinstance(index, v.Lit) and isinstance(index.value, str):
        if interp.branching:
            # On another path something else may be there, which the library may have put there.
            before = owner.attrs.get(index.value)
            if before is None:
                known = owner.api == tensors.BATCH and owner.type == TENSOR
                before = (
                    collated.part(owner, index.value) if known else _selected(interp, owner, "column", index)
                )
            value = v.join((before, value))
        owner.attrs[index.value] = value
    elif isinstance(owner, v.Obj | v.Member):
        made_tables.changed(owner)
    elif isinstance(owner, v.Inst):
        found = owner.cls.find("__setitem__")
        if found is not None:
            interp.call(bind_method(interp, found, owner, owner.cls, node), v.Args([index, value]), node)
    elif isinstance(owner, v.AnyOf) and isinstance(index, v.Lit):
        # What another variable calls this may be the one that is not changed.
        for one in owner.values:
            if isinstance(one, v.Mapping) and isinstance(index.value, str):
                before = one.items.get(index.value)
                one.items[index.value] = value if before is None else v.join((before, value))
            elif isinstance(one, v.Items):
                _replaces_set(one, index, value, False)


def _replaces_set(owner: v.Items, index: v.Value, value: v.Value, certain: bool) -> bool:
    """Whether a value is put in the place of a set that a list is known to have there, which it then is."""
    if owner.kind != "l" or owner.open or not isinstance(index, v.Lit) or type(index.value) is not int:
        return False
    at = index.value
    if not -len(owner.elts) <= at < len(owner.elts) or isinstance(value, v.Lit):
        return False
    before = owner.elts[at]
    if not any(isinstance(one, v.Items) and one.kind == "s" for one in v.alternatives(before)):
        return False
    elts = list(owner.elts)
    elts[at] = value if certain else v.join((before, value))
    owner.elts = elts
    return True
