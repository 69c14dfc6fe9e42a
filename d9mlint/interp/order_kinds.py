"""What the elements of a set are: numbers, whose hashes are the same in every run, texts, or objects.

Hashes of numbers are not randomized. Those of ``str`` and ``bytes`` are, and so are those of tuples that contain
them. An object without its own ``__hash__`` is hashed by its address.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from d9mlint.interp import (
    annotated_kinds,
    attribute_kinds,
    columns,
    compared_elements,
    made_tables,
    number_uses,
)
from d9mlint.interp import values as v
from d9mlint.interp.argtests import any_holds
from d9mlint.interp.library.records import fields
from d9mlint.interp.library_modules import is_module
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

NUMBER, FLOAT, TEXT, OBJECT, CELL, ANY = "number", "float", "text", "object", "cell", "any"
HASHING = "builtins.hash"
TEXTS_ADDED = "@texts added"
"""Attribute of an object of a library to which texts were added, such as the nodes of a graph."""
_BY_ADDRESS: Final = "hashed-by-address"
_DEPTH = 6


def kind_of_elements(interp: Interp, value: v.Value, node: m.Expr | None = None, depth: int = 0) -> str:
    """What iterating a value gives, ``""`` for unknown."""
    if depth > _DEPTH:
        return ""
    if isinstance(value, v.Items):
        return _together([kind_of(interp, one, depth + 1) for one in value.elts])
    if isinstance(value, v.Mapping):
        keys = [k for k in value.items if not isinstance(k, tuple)]
        if value.open or len(keys) < len(value.items):
            return ""
        return _together([kind_of(interp, v.Lit(k), depth + 1) for k in keys])
    if isinstance(value, v.Lit):
        # `choice(10)` chooses among numbers.
        return TEXT if isinstance(value.value, str) else NUMBER if isinstance(value.value, int) else ""
    if isinstance(value, v.Obj) and value.api == v.GIVEN:
        return kind_of(interp, value, depth + 1)
    if isinstance(value, v.Obj):
        parts = _tuple_parts(value, node)
        if parts is not None:
            return _together([kind_of_elements(interp, part, one, depth + 1) for part, one in parts])
        kind = _elements(interp, value, depth)
        return _HASHED.get(kind, kind)
    if isinstance(value, v.Member):
        return _of_attribute(interp, value) or _of_column(interp, value.owner, value.name, depth)
    if isinstance(value, v.AnyOf):
        # A list that is empty has none.
        several = [one for one in value.values if not isinstance(one, v.Items) or one.open or one.elts]
        kinds = {kind_of_elements(interp, one, node, depth + 1) for one in several}
        return kinds.pop() if len(kinds) == 1 else ""
    if value is v.UNKNOWN and node is not None:
        return annotated_kinds.of_parameter(interp, node, inside=True) or (NUMBER if _is_column(node) else "")
    return ""


_OF_TYPES = {"builtins.int": NUMBER, "builtins.float": NUMBER, "builtins.bool": NUMBER, "builtins.str": TEXT}
"""What the types of options make of a text."""


def _tuple_parts(value: v.Obj, node: m.Expr | None) -> list[tuple[v.Value, m.Expr | None]] | None:
    """What the parts of the tuples that are iterated come from, with the expressions where these are written; None where
    that is not known."""
    given = value.args.pos
    written: list[m.Expr | None] = [None] * len(given)
    if isinstance(node, m.Call) and len(node.args) == len(given):
        written = [None if isinstance(one, m.Star) else one for one in node.args]
    if value.api == "builtins.zip" and given and (not value.args.star or _is_given_rows(value.node)):
        return list(zip(given, written, strict=True))
    if value.api == "builtins.enumerate" and given:
        return [(_NUMBERED, None), (given[0], written[0])]
    if value.api == "builtins.map" and len(given) == 2 and isinstance(given[0], v.Ext):
        # The rows of a table or an array have what is in all of it.
        return [(given[1], written[1])] if given[0].name in _OF_ROWS else None
    return None


# What has numbers as its elements.
_NUMBERED = v.Obj("builtins.range")
_OF_ROWS = frozenset({"builtins.tuple", "builtins.list", "builtins.frozenset"})


def _is_given_rows(node: Any) -> bool:
    """Whether a call is given the elements of one list and nothing else: ``zip(*rows)``."""
    return isinstance(node, m.Call) and len(node.args) == 1 and isinstance(node.args[0], m.Star)


def _is_column(node: m.Expr) -> bool:
    """Whether an expression is a column (``pairs[:, 0]``) of what a variable holds: lists and frames have none that is
    written so, and arrays hold numbers."""
    return (
        isinstance(node, m.Subscript)
        and isinstance(node.value, m.Name)
        and "." not in node.value.id
        and isinstance(node.index, m.Seq)
        and any(isinstance(one, m.Slice) for one in node.index.elts)
    )


_NUMBERED_BY = "numbered"
_HASHED = {"path": TEXT, "row": "", _NUMBERED_BY: "", FLOAT: NUMBER}
"""Kinds, as far as their hashes go."""


def raw_kind(interp: Interp, value: v.Obj) -> str:
    """What a library object is, also ``float``."""
    if value.api == "builtins.float":
        return FLOAT
    method = _is_method(value)
    entry = (interp.kb.order(value.api, True) if method else None) or interp.kb.order(value.api)
    return entry.value if entry is not None else ""


def raw_kind_of_elements(interp: Interp, value: v.Obj) -> str:
    """What the elements of a library object are, also ``float``, ``path`` and ``row``."""
    return _elements(interp, value, 0)


def _elements(interp: Interp, value: v.Obj, depth: int) -> str:
    if value.api == "builtins.map" and value.args.pos:
        func = value.args.pos[0]
        if isinstance(func, v.Func):
            return _of_lambda(interp, func)
        return _of_call(interp, func.name) if isinstance(func, v.Ext) else ""
    if value.api in _NUMBERS and (value.api != "builtins.round" or value.args.get("ndigits", 1) is None):
        # `permutation(len(words))` has the numbers below, and nothing of the words.
        return NUMBER
    if value._attrs is not None and TEXTS_ADDED in value._attrs:
        return TEXT
    if value.type == "torch.Tensor":
        # Tensors are hashed by address, the numbers in them are not.
        return NUMBER if value.api.endswith((".tolist", ".numpy")) else ""
    method = _is_method(value)
    entry = interp.kb.order(value.api, method)
    if value.owner is not None and value.api.endswith(".__getitem__"):
        name = value.args.get("", 0)
        names = name.elts if isinstance(name, v.Items) else [name]
        columns_named = [one.value for one in names if isinstance(one, v.Lit) and isinstance(one.value, str)]
        if columns_named and len(columns_named) == len(names):
            kinds = [_of_column(interp, value.owner, one, depth) for one in columns_named]
            return kinds[0] if len(kinds) == 1 else _together([_HASHED.get(one, one) for one in kinds])
        return (
            _elements(interp, value.owner, depth + 1)
            if isinstance(value.owner, v.Obj) and depth < _DEPTH
            else ""
        )
    named = made_tables.labels(interp, value)
    if named is not None:
        return kind_of_elements(interp, named, None, depth + 1)
    if entry is None:
        return TEXT if value.type in _TEXTS else ""
    if entry.dtype:
        kind = _of_dtype(value.args.get(entry.dtype, entry.dtype_pos))
        if kind is not None:
            return kind
    if entry.elements == "in-tensor":
        # Going through a tensor gives tensors.
        return ""
    if entry.elements == "same-in-array" and not _is_of_numpy(value):
        return ""
    if entry.elements in ("same", "same-in-array"):
        owner = value.owner
        if value.api.endswith(".tolist") and _is_of_tensor(interp, owner):
            return FLOAT
        if isinstance(owner, v.Obj) and depth < _DEPTH:
            return _elements(interp, owner, depth + 1)
        return kind_of_elements(interp, owner, None, depth + 1) if owner is not None else ""
    if entry.elements == "of-argument":
        given = value.args.get(entry.like, entry.like_pos)
        return _below_or_in(interp, value, given, depth) if given is not None else ""
    if entry.elements == "argument":
        like = value.args.get(entry.like, entry.like_pos)
        # Without a node to begin with, some functions of graphs begin with all of them.
        if like is None or any(v.is_none(one) is True for one in v.alternatives(like)):
            return ""
        return kind_of(interp, like, depth + 1)
    if entry.elements:
        return entry.elements if any_holds(value.args, entry.unless) is False else ""
    if entry.value == TEXT:
        return TEXT
    if entry.role in ("carry", "end", "sink") and value.args.pos and not method:
        inner = value.args.pos[0]
        if isinstance(inner, v.Obj):
            if inner.type == "torch.Tensor" and value.api.startswith("numpy."):
                # An array of a tensor has the numbers in it.
                return NUMBER
            return _elements(interp, inner, depth + 1) if depth < _DEPTH else ""
        if entry.role == "sink" and isinstance(inner, v.Lit) and isinstance(inner.value, str):
            # A text given to a library names something, such as a file: its letters are not in what that gives.
            return ""
        return _below_or_in(interp, value, inner, depth)
    return ""


def _below_or_in(interp: Interp, value: v.Obj, given: v.Value, depth: int) -> str:
    """What is in something, or the numbers below a number: ``choice(rows.shape[0])``."""
    written = value.node.args if isinstance(value.node, m.Call) else []
    if written and given is v.UNKNOWN and value.args.pos[:1] == [given] and is_number(written[0], set()):
        return NUMBER
    return kind_of_elements(interp, given, None, depth + 1)


def _of_lambda(interp: Interp, func: v.Func) -> str:
    """What a lambda gives that calls a method of what it is given, or one of the built-in functions that make numbers."""
    for stmt in interp.body(func) if func.fn.name == "<lambda>" else ():
        made = stmt.value if isinstance(stmt, m.Return) else None
        if is_number(made, set()):
            return NUMBER
        if isinstance(made, m.Call):
            method = isinstance(made.func, m.Attr) or receiver(made) != ""
            return _of_call(interp, f"{'?' if method else 'builtins'}.{called_name(made)}", method)
    return ""


def _is_of_numpy(value: v.Obj) -> bool:
    """Whether a value is what a function of NumPy gave, or an array of a tensor, as methods of arrays made it."""
    while isinstance(value.owner, v.Obj) and not value.api.endswith(".numpy"):
        value = value.owner
    return value.api.startswith("numpy.") or value.api.endswith(".numpy")


def _is_of_tensor(interp: Interp, value: v.Value | None) -> bool:
    """Whether a value is what a method that only tensors have gave, as methods of arrays made it."""
    while isinstance(value, v.Obj):
        entry = interp.kb.order(value.api, True)
        if entry is not None and entry.elements == "in-tensor":
            return True
        if not value.api.endswith(".__getitem__") and (entry is None or entry.elements != "same-in-array"):
            return False
        value = value.owner
    return False


def _of_attribute(interp: Interp, value: v.Member) -> str:
    """What the elements of an attribute of a library object are, where the class of that is known."""
    if not isinstance(value.owner, v.Obj):
        return ""
    name = f"{value.owner.type or value.owner.api}.{value.name}"
    entry = interp.kb.order(name, True)
    return _HASHED.get(entry.elements, entry.elements) if entry is not None and name in entry.apis else ""


def _of_column(interp: Interp, table: v.Value, name: str, depth: int) -> str:
    """What the elements of a column are, where the program says so when it reads the table or converts its columns, or
    makes the table of them."""
    made = made_tables.column(interp, table, name)
    if made is not None:
        return kind_of_elements(interp, made, None, depth + 1)
    for _ in range(_DEPTH):
        if not isinstance(table, v.Obj):
            break
        role = interp.kb.role(table.api, "types-columns")
        named = (
            [table.args.get(role.arg, role.pos), *map(table.args.get, role.more)] if role is not None else []
        )
        for one in named:
            kind = _of_dtype(one.items.get(name) if isinstance(one, v.Mapping) else one)
            if kind is not None:
                return kind
        table = table.owner if table.owner is not None else v.UNKNOWN
    return ""


def _of_dtype(named: v.Value | None) -> str | None:
    """What elements of an element type are that an argument names; None where it names none."""
    if isinstance(named, v.Lit) and isinstance(named.value, str):
        name = named.value
    elif isinstance(named, v.Ext):
        name = named.name.rpartition(".")[2]
    else:
        return None if named is None else ""
    if name.startswith(("int", "uint", "bool", "long")):
        return NUMBER
    if name.startswith(("float", "double", "half")):
        return FLOAT
    return TEXT if name.startswith(("str", "<U", "U", "S", "bytes", "unicode")) else ""


def one_of(interp: Interp, value: v.Obj) -> v.Value | None:
    """An element of a library object, as far as its kind is known."""
    divides = interp.kb.role(value.api, "divides")
    if divides is not None and divides.pos is not None:
        return _part(interp, value.args.get(divides.arg, divides.pos))
    kind = _elements(interp, value, 0)
    if kind == _NUMBERED_BY:
        return v.Items("t", [v.UNKNOWN, v.Obj(_SAMPLES[NUMBER])])
    if kind == TEXT:
        return v.Obj("builtins.str")
    if kind == "path":
        return v.Obj("pathlib.Path", "pathlib.Path")
    if kind == "row":
        return v.Obj("str.split", "list")
    if kind in (NUMBER, FLOAT) and not value.api.startswith(_COUNTING):
        return v.Obj("builtins.int" if kind == NUMBER else "builtins.float")
    return None


def some_of(interp: Interp, value: v.Value, node: m.Expr | None) -> list[v.Value]:
    """An element of what a list grows by, as far as its kind is known."""
    one = one_of(interp, value) if isinstance(value, v.Obj) else None
    return [one] if one is not None else sample(interp, value, node)


def _part(interp: Interp, whole: v.Value | None) -> v.Value | None:
    """One of the parts of an array, which has elements of the same kind."""
    if not isinstance(whole, v.Obj) or not _elements(interp, whole, 0):
        return None
    part = v.Obj(f"{whole.type}.__getitem__", whole.type)
    part.owner = whole
    return part


# Numbers of which more than that is known elsewhere, or nothing need be.
_COUNTING = ("builtins.range", "numpy.", "torch.", "tf.")

_SAMPLES = {TEXT: "builtins.str", NUMBER: "builtins.int", OBJECT: "builtins.id"}


def sample(interp: Interp, value: v.Value, node: m.Expr | None) -> list[v.Value]:
    """An element of something that is known to have texts, numbers or objects."""
    parts = _tuple_parts(value, node) if isinstance(value, v.Obj) else None
    if parts is not None:
        found = [sample(interp, part, one) for part, one in parts]
        return [v.Items("t", [one[0] if one else v.UNKNOWN for one in found])] if any(found) else []
    if _has_numbers_with_each(interp, value):
        return [v.Items("t", [v.UNKNOWN, v.Obj(_SAMPLES[NUMBER])])]
    kind = kind_of_elements(interp, value, node)
    if not kind and (
        number_uses.are_numbers(interp, node)
        or compared_elements.have_numbers(interp.frame.body, node)
        or _joins_numbers(interp, node)
    ):
        kind = NUMBER
    elif not kind and _is_of_column(interp, value):
        if not columns.are_texts(interp, node):
            return [columns.cell()]
        kind = TEXT
    elif not kind and isinstance(node, m.BinOp) and node.op == "+":
        # Two lists one after the other.
        sides = [sample(interp, interp.value_of(one), one) for one in (node.left, node.right)]
        if all(map(columns.has_cells, sides)):
            return sides[0]
    if not kind and isinstance(node, m.BinOp) and node.op in _ARITHMETIC:
        # `np.arange(3) + start`: an array, if one of them is.
        arrays = [node.left] if node.op == "%" else [node.left, node.right]
        if any(_is_array_of_numbers(interp, interp.value_of(one)) for one in arrays):
            kind = NUMBER
    api = _SAMPLES.get(kind)
    return [v.Obj(api)] if api is not None else []


def _has_numbers_with_each(interp: Interp, value: v.Value) -> bool:
    """Whether the elements of a value are pairs of something and a number, as the nodes of a graph with their degrees."""
    if isinstance(value, v.AnyOf):
        return all(_has_numbers_with_each(interp, one) for one in value.values)
    if isinstance(value, v.Member):
        entry = interp.kb.order(f"?.{value.name}", True)
        return entry is not None and entry.elements == _NUMBERED_BY
    return isinstance(value, v.Obj) and _elements(interp, value, 0) == _NUMBERED_BY


def numbers_of(interp: Interp, value: v.Value, node: m.Expr | None) -> list[v.Value]:
    """A number, for something that has nothing but numbers; nothing for anything else."""
    return [v.Obj(_SAMPLES[NUMBER])] if kind_of_elements(interp, value, node) == NUMBER else []


_ARITHMETIC = frozenset({"+", "-", "*", "/", "//", "%", "**"})


def _is_array_of_numbers(interp: Interp, value: v.Value) -> bool:
    """Whether a value is an array of NumPy with numbers in it, of which operators give another one."""
    return isinstance(value, v.Obj) and _is_of_numpy(value) and kind_of_elements(interp, value) == NUMBER


def _joins_numbers(interp: Interp, node: m.Expr | None) -> bool:
    """Whether a variable holds an array to which nothing but numbers is joined."""
    parts = number_uses.joined(interp, node)
    return bool(parts) and all(kind_of_elements(interp, interp.value_of(one), one) == NUMBER for one in parts)


def _is_of_column(interp: Interp, value: v.Value) -> bool:
    """Whether a value is a column of a table, or all that is in one: ``names.tolist()`` of labels is not."""
    for _ in range(_DEPTH):
        if not columns.is_column(value):
            return False
        entry = interp.kb.order(value.api, True) if isinstance(value, v.Obj) and _is_method(value) else None
        if entry is None or entry.elements != "same" or not isinstance(value, v.Obj) or value.owner is None:
            break
        value = value.owner
    return True


def counted(interp: Interp, node: m.Expr | None) -> v.Value:
    """A number for an expression of constants and names that loops of the running function count in."""
    if node is None or isinstance(node, m.Const):
        return v.UNKNOWN
    body = interp.frame.body
    counters: set[str] = set()
    tables = _tables_of_numbers(body)
    for one in nodes(body):
        if (
            isinstance(one, m.Assign)
            and isinstance(one.value, m.Subscript)
            and _names(one.value.value, tables)
        ):
            counters |= {target.id for target in one.targets if isinstance(target, m.Name)}
        if isinstance(one, m.For) and isinstance(one.iter, m.Call) and isinstance(one.iter.func, m.Name):
            target = one.target
            if one.iter.func.id == "enumerate" and isinstance(target, m.Seq) and target.elts:
                target = target.elts[0]
            elif one.iter.func.id not in ("range", "trange"):
                continue
            if isinstance(target, m.Name):
                counters.add(target.id)
    counters |= _taken_from_numbers(interp, node, body)
    counters -= _assigned_otherwise(body, counters, tables)
    return v.Obj("builtins.int") if is_number(node, counters) else v.UNKNOWN


def _taken_from_numbers(interp: Interp, node: m.Expr, body: list[m.Stmt]) -> set[str]:
    """The variables of an expression with which loops of a function go through arrays and lists of numbers, and through
    nothing else."""
    asked = {one.id for one in nodes([node]) if isinstance(one, m.Name)}
    taken: set[str] = set()
    others: set[str] = set()
    for one in nodes(body):
        if isinstance(one, m.For):
            targets = asked & {named.id for named in nodes([one.target]) if isinstance(named, m.Name)}
            if targets:
                numbers = kind_of_elements(interp, interp.value_of(one.iter), one.iter) == NUMBER
                (taken if numbers else others).update(targets)
    return taken - others


def _tables_of_numbers(body: list[m.Stmt]) -> set[str]:
    """Dictionaries that a function begins empty and in which it stores numbers only, by name."""
    made = {
        target.id
        for one in nodes(body)
        if isinstance(one, m.Assign) and isinstance(one.value, m.Dict) and not one.value.values
        for target in one.targets
        if isinstance(target, m.Name)
    }
    if not made:
        return made
    counters = {
        one.target.elts[0].id
        for one in nodes(body)
        if isinstance(one, m.For)
        and isinstance(one.target, m.Seq)
        and one.target.elts
        and isinstance(one.target.elts[0], m.Name)
        and isinstance(one.iter, m.Call)
        and _names(one.iter.func, {"enumerate"})
    }
    for one in nodes(body):
        if isinstance(one, m.Assign):
            for target in one.targets:
                if isinstance(target, m.Name) and not isinstance(one.value, m.Dict):
                    made.discard(target.id)
                elif isinstance(target, m.Subscript) and isinstance(target.value, m.Name):
                    if not is_number(one.value, counters):
                        made.discard(target.value.id)
        elif isinstance(one, m.Call):
            # A method may store anything, and so may whoever is given the dictionary.
            made -= {arg.id for arg in one.args if isinstance(arg, m.Name) and not _names(one.func, {"len"})}
            made.discard(receiver(one))
    return made


def _assigned_otherwise(body: list[m.Stmt], names: set[str], tables: set[str]) -> set[str]:
    """Those of some names that are also assigned something that is not taken from tables of numbers."""
    return {
        target.id
        for one in nodes(body)
        if isinstance(one, m.Assign)
        and not (isinstance(one.value, m.Subscript) and _names(one.value.value, tables))
        and not is_number(one.value, names)
        for target in one.targets
        if isinstance(target, m.Name)
    }


def _names(node: m.Expr, names: set[str]) -> bool:
    return isinstance(node, m.Name) and node.id in names


_NUMERIC_CALLS = frozenset({"int", "len", "float", "ord", "round"})


def is_number(node: m.Expr | None, names: set[str]) -> bool:
    """Whether an expression is a number, or a tuple of numbers, where these names are."""
    if isinstance(node, m.Const):
        return isinstance(node.value, (int, float))
    if isinstance(node, m.Name):
        return node.id in names
    if isinstance(node, m.Seq):
        return node.kind == "t" and all(is_number(elt, names) for elt in node.elts)
    if isinstance(node, m.BinOp):
        return is_number(node.left, names) and is_number(node.right, names)
    if isinstance(node, m.Unary):
        return is_number(node.operand, names)
    if isinstance(node, m.Subscript):
        # `rows.shape[0]`, of whatever has one.
        shape = node.value.id.rpartition(".")[2] if isinstance(node.value, m.Name) else ""
        if isinstance(node.value, m.Attr):
            shape = node.value.name
        return shape == "shape" and not isinstance(node.index, m.Slice)
    return isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id in _NUMERIC_CALLS


def kind_of(interp: Interp, value: v.Value, depth: int = 0) -> str:
    """What a value is, ``""`` for unknown."""
    if depth > _DEPTH:
        return ""
    if isinstance(value, v.Lit):
        if isinstance(value.value, (str, bytes)):
            return TEXT
        return NUMBER
    if isinstance(value, v.Items):
        kinds = [kind_of(interp, one, depth + 1) for one in value.elts]
        # Lists and sets are open where a loop makes them, and have such elements as the ones that are known.
        numbers = not value.open or (value.kind != "t" and bool(kinds))
        return NUMBER if numbers and all(k == NUMBER for k in kinds) else TEXT if TEXT in kinds else ""
    if isinstance(value, v.Member):
        record = value.owner
        if isinstance(record, v.Obj) and value.name in record.args.kw:
            if interp.kb.role(record.api, "keeps-keywords") is not None:
                return kind_of(interp, record.args.kw[value.name], depth + 1)
        entry = interp.kb.order(f"?.{value.name}", True)
        if record is v.UNKNOWN and attribute_kinds.is_stored(interp, value.name):
            # It may be that of an object of the program.
            return ""
        return _HASHED.get(entry.value, entry.value) if entry is not None else ""
    if isinstance(value, v.Ext):
        return TEXT if value.name == "sys.argv" else ""
    if isinstance(value, v.Obj):
        if value.api == v.GIVEN:
            made = value.args.get("", 0)
            return _OF_TYPES.get(made.name, "") if isinstance(made, v.Ext) else ""
        if value.api == "builtins.id":
            return OBJECT
        if value.type == "pathlib.Path":
            return TEXT
        held = fields(value)
        if held is not None:
            return kind_of(interp, v.Items("t", held), depth + 1)
        if value.api in ("builtins.tuple", "builtins.frozenset"):
            return kind_of_elements(interp, value, None, depth + 1)
        if value.type in ("torch.Tensor", "torch.nn.Parameter"):
            # `item()` gives a number, `mean()` a tensor. Lists have no hash: what has one is a number in them.
            return NUMBER if raw_kind(interp, value) == NUMBER or value.api.endswith(".tolist") else OBJECT
        if interp.kb.role(value.api, _BY_ADDRESS) is not None or is_module(interp, value):
            return OBJECT
        known = _of_call(interp, value.api, _is_method(value))
        if not known and interp.kb.role(value.api, "tensor") is not None:
            return OBJECT
        if not known and value.api.startswith("numpy.") and _elements(interp, value, depth) == NUMBER:
            # Arrays have no hash: what has one is a number in them.
            return NUMBER
        return known
    if isinstance(value, v.Inst):
        if attribute_kinds.has_texts(interp, value.cls):
            return TEXT
        if value.cls.find("__hash__") is None and value.cls.find("__eq__") is None:
            inherited = _of_builtin(interp, value, depth)
            if inherited is not None:
                return inherited
        if any(map(_compares_addresses, value.cls.decorated)):
            return OBJECT
        decides = attribute_kinds.hashed_by(interp, value)
        kinds = [one if isinstance(one, str) else kind_of(interp, one, depth + 1) for one in decides]
        if kinds and (TEXT in kinds or "" not in kinds):
            return _together(kinds)
        if value.cls.find("__hash__") is not None or value.cls.decorated:
            return ""
        bases = map(interp.kb.canonical, value.cls.external_bases())
        if any(interp.kb.role(base, _BY_ADDRESS) is None for base in bases):
            return ""
        return OBJECT if value.cls.find("__eq__") is None else ""
    if isinstance(value, (v.Func, v.Cls)):
        return OBJECT
    if isinstance(value, v.AnyOf):
        return _together([kind_of(interp, one, depth + 1) for one in value.values])
    return ""


def _of_builtin(interp: Interp, value: v.Inst, depth: int) -> str | None:
    """What an object is that is hashed like the tuple, text or number from whose class its own inherits; None where that
    inherits from another class."""
    held = fields(value)
    if held is not None:
        return kind_of(interp, v.Items("t", held), depth + 1)
    bases = value.cls.external_bases()
    if "builtins.tuple" in bases and value.args.pos:
        return kind_of_elements(interp, value.args.pos[0], None, depth + 1)
    return next((_OF_TYPES[one] for one in bases if one in _OF_TYPES), None)


def _compares_addresses(decorator: v.Value) -> bool:
    """Whether a decorator of data classes leaves out the comparison of fields, which their hash goes by."""
    equal = decorator.args.get("eq") if isinstance(decorator, v.Obj) else None
    return isinstance(equal, v.Lit) and equal.value is False


def _together(kinds: list[str]) -> str:
    if TEXT in kinds:
        return TEXT
    if OBJECT in kinds:
        return OBJECT
    return NUMBER if kinds and all(kind == NUMBER for kind in kinds) else ""


def _is_method(value: v.Obj) -> bool:
    owner = value.api.rpartition(".")[0]
    return (
        value.owner is not None
        or owner in ("?", "str", "list", "dict", "set", "tuple")
        or owner.rpartition(".")[2][:1].isupper()
    )


_NUMBERS = frozenset(
    {"builtins.int", "builtins.float", "builtins.len", "builtins.ord", "builtins.round", "builtins.bool"}
)
_TEXTS = frozenset(
    {"builtins.str", "builtins.repr", "builtins.chr", "builtins.bytes", "builtins.hex", "builtins.format"}
)


def _of_call(interp: RunView, api: str, method: bool = False) -> str:
    """What calling a library function gives."""
    if api in _NUMBERS:
        return NUMBER
    if api in _TEXTS:
        return TEXT
    entry = (interp.kb.order(api, True) if method else None) or interp.kb.order(api)
    return _HASHED.get(entry.value, entry.value) if entry is not None else ""


def gives_text(interp: RunView, api: str) -> bool:
    """Whether calling a library function gives a text."""
    return _of_call(interp, api) == TEXT


def is_text(interp: Interp, value: v.Value, node: m.Expr | None) -> bool:
    """Whether a value is surely a text, or contains one, as far as its hash goes."""
    kind = kind_of(interp, value)
    if kind and v.is_none(value) is not True:
        return kind == TEXT
    if isinstance(node, (m.FString, m.Bytes)):
        return True
    if isinstance(node, m.Seq) and node.kind == "t":
        elements = value.elts if isinstance(value, v.Items) else [v.UNKNOWN] * len(node.elts)
        return any(
            is_text(interp, elements[i] if i < len(elements) else v.UNKNOWN, elt)
            for i, elt in enumerate(node.elts)
        )
    if isinstance(node, m.BinOp) and node.op in "+%":
        return any(isinstance(side, m.FString) or _is_text_constant(side) for side in (node.left, node.right))
    if node is None or annotated_kinds.of_parameter(interp, node, inside=False) == TEXT:
        return node is not None
    return isinstance(node, m.Name) and _is_text_by_class(interp, node)


def _is_text_by_class(interp: Interp, node: m.Name) -> bool:
    """Whether the class shows that an attribute is a text, or that an instance is hashed by texts."""
    owner, dot, name = node.id.rpartition(".")
    if dot:
        cls = attribute_kinds.class_of(interp, m.Name(owner, node.start, node.end))
        return cls is not None and attribute_kinds.of_attribute(interp, cls, name) == TEXT
    cls = attribute_kinds.class_of(interp, node)
    return cls is not None and attribute_kinds.has_texts(interp, cls)


def _is_text_constant(node: m.Expr) -> bool:
    return isinstance(node, m.Const) and isinstance(node.value, str)


def takes_key_by_address(interp: Interp, key: v.Value | None) -> bool:
    """Whether a sort key is ``id`` or ``hash``, or a lambda that returns an ``id``, also as a part of its result."""
    for one in v.alternatives(key) if key is not None else ():
        if isinstance(one, v.Ext) and one.name in ("builtins.id", HASHING):
            return True
        if isinstance(one, v.Func) and one.fn.name == "<lambda>":
            for stmt in interp.body(one):
                if isinstance(stmt, m.Return) and _gives_address(stmt.value):
                    return True
    return False


def _gives_address(expr: m.Expr | None) -> bool:
    """Whether the address of an object is in a value. What is looked up by one does not hold it."""
    if isinstance(expr, m.Call) and isinstance(expr.func, m.Name):
        plain = "." not in expr.func.id
        return expr.func.id == "id" or (plain and any(map(_gives_address, expr.args)))
    if isinstance(expr, m.Seq):
        return any(map(_gives_address, expr.elts))
    if isinstance(expr, m.BinOp | m.BoolOp):
        return _gives_address(expr.left) or _gives_address(expr.right)
    if isinstance(expr, m.Unary):
        return _gives_address(expr.operand)
    return isinstance(expr, m.IfExp) and (_gives_address(expr.body) or _gives_address(expr.orelse))
