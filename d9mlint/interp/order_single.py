"""Listings in which there is one entry: what has one entry has no order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.places import running
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.scopes import heads, target_names
from d9mlint.ir.traversal import alike, called_name, nodes, parents, statements, variables

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import OrderEntry

_values: dict[int, tuple[m.Function, dict[str, list[m.Expr]]]] = memo()
"""What functions give their variables, while they live."""
_WILD = frozenset("*?[")
_SEPARATORS = ("/", "\\")
_PATHS = frozenset({"text", "path"})
NAMES_OF_WALK = "names of a walk"
"""What stands for the names of the files, or of the folders, in one folder of a walk."""
_MOST_NAMES = 4
_AROUND = frozenset({"iter", "list", "reversed", "sorted", "tuple"})
_JOINING = frozenset({"os.path.join", "builtins.str", "pathlib.Path", "pathlib.PurePath"})


def names_one(interp: Interp, pattern: m.Expr | None, fn: m.Function | None) -> bool:
    """Whether a pattern names one file: it ends in text, and no text of it has wildcard characters. What is put into
    the text is taken for a name."""
    if pattern is None:
        return False
    pieces = list(_pieces(interp, pattern, fn, 0))
    if not pieces or any(piece is not None and not _WILD.isdisjoint(piece) for piece in pieces):
        return False
    last = pieces[-1]
    return bool(last) and last is not None and not last.endswith(_SEPARATORS)


def picks_one(interp: Interp, iterated: v.Value, clause: m.Generator) -> bool:
    """Whether a clause of a comprehension lets one element pass at most: those of a listing or a set are all different, and
    it asks each whether it equals something else."""
    if not differ(interp, iterated):
        return False
    return isinstance(clause.target, m.Name) and any(_equals(test, clause.target.id) for test in clause.ifs)


def differ(interp: Interp, iterated: v.Value) -> bool:
    """Whether the elements that a value gives are all different: those of a set, the keys of a mapping, the entries of a
    listing, the names in a folder."""
    if isinstance(iterated, v.Obj):
        return iterated.api == NAMES_OF_WALK or _listing(interp, iterated) is not None
    return isinstance(iterated, v.Mapping) or (isinstance(iterated, v.Items) and iterated.kind == "s")


def differ_by_name(interp: Interp, iterated: v.Value) -> bool:
    """Whether the paths that a value gives have different last parts: those of one folder."""
    entry = _listing(interp, iterated) if isinstance(iterated, v.Obj) else None
    if entry is None or not isinstance(iterated, v.Obj):
        return False
    if entry.pattern is None:
        return entry.one_folder
    written = getattr(iterated.node, "args", ())
    if entry.pattern >= len(written):
        return False
    text = "".join(one or "-" for one in _pieces(interp, written[entry.pattern], running(interp), 0))
    return bool(text) and _WILD.isdisjoint(text.replace("\\", "/").rpartition("/")[0]) and "**" not in text


def _listing(interp: Interp, value: v.Obj) -> OrderEntry | None:
    """What is known of the call that listed the entries that a value has, each of them once."""
    entry = interp.kb.order(value.api) or interp.kb.order(value.api, True)
    if entry is None or entry.role != "source" or value.order is None or len(value.order.keys) != 1:
        return None
    return entry if _is_of_paths(entry) else None


def _equals(test: m.Expr, name: str) -> bool:
    """Whether a test holds for one value of a variable alone."""
    if isinstance(test, m.BoolOp):
        return test.op == "and" and (_equals(test.left, name) or _equals(test.right, name))
    if not isinstance(test, m.Compare) or test.ops != ["=="]:
        return False
    sides = (test.left, test.comparators[0])
    given = [one for one in sides if isinstance(one, m.Name) and one.id == name]
    others = nodes([one for one in sides if one not in given])
    return len(given) == 1 and all(
        one.id.partition(".")[0] != name for one in others if isinstance(one, m.Name)
    )


def _pieces(interp: Interp, node: m.Expr, fn: m.Function | None, names: int) -> Iterator[str | None]:
    """The texts that a path is put together from, None for what is not known."""
    if isinstance(node, m.FString):
        for part in node.parts:
            yield from _pieces(interp, part, fn, names)
    elif isinstance(node, m.BinOp) and node.op in ("+", "/"):
        yield from _pieces(interp, node.left, fn, names)
        yield from _pieces(interp, node.right, fn, names)
    elif isinstance(node, m.Call) and is_joined(interp, node):
        for one in node.args:
            yield from _pieces(interp, one, fn, names)
    elif (text := _template(node)) is not None:
        fields = _PERCENT if isinstance(node, m.BinOp) else _BRACES
        for number, piece in enumerate(fields.split(text)):
            if number:
                yield None
            if piece:
                yield piece
    elif isinstance(node, (m.Const, m.Name)):
        value = interp.eval(node)
        if isinstance(value, v.Lit) and isinstance(value.value, (str, int)):
            yield str(value.value)
            return
        made = only_value(fn, node.id) if isinstance(node, m.Name) and names < _MOST_NAMES else None
        if made is None:
            yield None
        else:
            yield from _pieces(interp, made, fn, names + 1)
    else:
        yield None


def _template(node: m.Expr) -> str | None:
    """The text of ``"...".format(...)`` and of ``"..." % ...``."""
    text: Any = None
    if isinstance(node, m.BinOp) and node.op == "%":
        text = node.left
    elif isinstance(node, m.Call) and isinstance(node.func, m.Attr) and node.func.name == "format":
        text = node.func.value
    return text.value if isinstance(text, m.Const) and isinstance(text.value, str) else None


_BRACES = re.compile(r"\{[^{}]*\}")
_PERCENT = re.compile(r"%[-+ #0-9.]*[a-zA-Z]")


def is_joined(interp: Interp, node: m.Call) -> bool:
    """Whether a call joins texts to a path, or turns a path into text or back."""
    if not node.args or any(isinstance(one, m.Star) for one in node.args):
        return False
    called = interp.eval(node.func) if isinstance(node.func, m.Name) else None
    return isinstance(called, v.Ext) and interp.kb.canonical(called.name) in _JOINING


def only_value(fn: m.Function | None, name: str) -> m.Expr | None:
    """What a function gives a variable, if it does so in one place."""
    if fn is None or any(param.name == name for param in fn.params):
        return None
    known = _values.get(id(fn))
    if known is None or known[0] is not fn:
        found: dict[str, list[m.Expr]] = {}
        for one in statements(fn.body):
            if isinstance(one, m.Assign):
                for held in {target.id for target in one.targets if isinstance(target, m.Name)}:
                    found.setdefault(held, []).append(one.value)
        known = _values[id(fn)] = (fn, found)
    given = known[1].get(name, [])
    return given[0] if len(given) == 1 else None


def has_elements_of_set(interp: Interp, node: m.Expr | None, fn: m.Function | None) -> bool:
    """Whether an expression gives the elements of a set, as ``list(ids)`` does, and nothing that is made from them."""
    for _ in range(_MOST_NAMES):
        if isinstance(node, m.Name):
            value = interp.eval(node)
            if isinstance(value, v.Items) and value.kind == "s":
                return True
            node = only_value(fn, node.id)
        elif isinstance(node, m.Call) and node.args and isinstance(node.func, m.Name):
            called = interp.eval(node.func)
            name = interp.kb.canonical(called.name) if isinstance(called, v.Ext) else ""
            if name in _SETS:
                return True
            entry = interp.kb.order(name) if name else None
            if entry is None or entry.role not in ("carry", "sink"):
                return False
            node = node.args[0]
        elif isinstance(node, m.Comp) and node.kind == "s":
            return True
        elif isinstance(node, m.Seq) and len(node.elts) == 1 and isinstance(node.elts[0], m.Star):
            node = node.elts[0].value
        elif isinstance(node, m.Comp) and len(node.generators) == 1 and _gives_whole(node):
            node = node.generators[0].iter
            value = interp.eval(node)
            if isinstance(value, v.Items) and value.kind == "s":
                return True
        else:
            return False
    return False


def all_differ(interp: Interp, node: m.Expr | None, fn: m.Function | None) -> bool:
    """Whether an expression gives elements that are all different: those of a set or of a listing, or some of them."""
    for _ in range(_MOST_NAMES):
        if isinstance(node, m.Name):
            if fn is None or _is_changed(fn, node.id):
                return False
            node = only_value(fn, node.id)
        elif isinstance(node, m.Call) and isinstance(node.func, m.Name):
            called = interp.eval(node.func)
            name = interp.kb.canonical(called.name) if isinstance(called, v.Ext) else ""
            entry = interp.kb.order(name)
            if name in _SETS or (entry is not None and entry.role == "source" and _is_of_paths(entry)):
                return True
            if name not in _SAME or len(node.args) != 1:
                return False
            node = node.args[0]
        elif isinstance(node, m.Comp) and len(node.generators) == 1 and _gives_whole(node):
            if node.kind == "s":
                return True
            node = node.generators[0].iter
        else:
            return isinstance(node, m.Comp) and node.kind == "s"
    return False


def _is_changed(fn: m.Function, name: str) -> bool:
    """Whether a function makes a list longer that a variable has, or calls any other method of it."""
    return any(
        (isinstance(one, m.AugAssign) and isinstance(one.target, m.Name) and one.target.id == name)
        or (isinstance(one, m.Name) and one.id.startswith(f"{name}."))
        for one in nodes(fn.body)
    )


_SETS = frozenset({"builtins.set", "builtins.frozenset"})
_SAME = frozenset(f"builtins.{name}" for name in ("iter", "list", "reversed", "tuple"))


def _is_of_paths(entry: OrderEntry) -> bool:
    """Whether a call lists entries, each of them once."""
    return entry.elements in _PATHS or entry.one_folder


def _gives_whole(node: m.Comp) -> bool:
    """Whether a comprehension gives all parts of each element as they are."""
    given: set[str] = set()
    target_names(node.elt, given)
    parts: set[str] = set()
    target_names(node.generators[0].target, parts)
    return bool(parts) and parts <= given


def is_known_single(fn: m.Function | None, entries: m.Expr) -> bool:
    """Whether the function asks if a variable has one entry, or what a call gives that it writes again, and not only
    whether there is any."""
    listing: m.Expr = _inside(entries)
    while isinstance(entries, m.Call) and len(entries.args) == 1:
        # `iter(files)`, `list(files)`
        entries = entries.args[0]
    asked = [one for one in (entries, listing) if isinstance(one, (m.Name, m.Call))]
    if fn is None or not asked:
        return False
    demanded = {
        id(one) for stmt in nodes(fn.body) if isinstance(stmt, m.Assert) for one in nodes([stmt.test])
    }
    return any(
        isinstance(one, m.Compare)
        and len(one.ops) == 1
        and _asks_for_one(one.ops[0], one.comparators[0], id(one) in demanded)
        and any(_is_count_of(fn, one.left, given) for given in asked)
        for one in nodes(fn.body)
    )


def _inside(entries: m.Expr) -> m.Expr:
    """What ``list(...)`` and the like are put around."""
    while isinstance(entries, m.Call) and called_name(entries) in _AROUND and len(entries.args) == 1:
        entries = entries.args[0]
    return entries


def _is_count_of(fn: m.Function, count: m.Expr, entries: m.Name | m.Call) -> bool:
    """Whether an expression is the number of entries of this variable, or of what a call gives that is written so."""
    if isinstance(count, m.Name):
        # `count = len(os.listdir(folder))`
        count = only_value(fn, count.id) or count
    if not isinstance(count, m.Call) or called_name(count) != "len":
        return False
    if isinstance(entries, m.Name):
        return any(isinstance(given, m.Name) and given.id == entries.id for given in count.args)
    return any(_gives_the_same(fn, _inside(given), entries) for given in count.args)


def _gives_the_same(fn: m.Function, one: m.Expr, other: m.Call) -> bool:
    """Whether a function writes the same call once more, with the same arguments."""
    if isinstance(one, m.Name):
        # `files = os.listdir(folder)`
        one = only_value(fn, one.id) or one
        one = _inside(one)
    return alike(one, other) and all(_is_given_once(fn, name) for name in heads([other]))


def _is_given_once(fn: m.Function, name: str) -> bool:
    """Whether a variable has one value while a function runs."""
    given = sum(
        1
        for one in statements(fn.body)
        if isinstance(one, (m.Assign, m.AugAssign, m.For))
        for target in _targets(one)
        if target.partition(".")[0] == name
    )
    return given <= (0 if any(param.name == name for param in fn.params) else 1)


def _targets(stmt: m.Assign | m.AugAssign | m.For) -> set[str]:
    names: set[str] = set()
    for one in stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]:
        target_names(one, names)
    return names


def may_be_lone(interp: Interp, entry: OrderEntry, listing: Any) -> bool:
    """Whether one entry alone is taken of those that a computed pattern has, ``glob(f"{run}/*.json")[0]``, or the folder of
    an item, ``listdir(folder)[0]`` in a loop over folders: there may be only one."""
    place = 0 if entry.pattern is None and entry.elements == "path" else entry.pattern
    if place is not None and place < len(listing.args) and _asks_for_extension(interp, listing.args[place]):
        return is_item(interp, listing) or _gives_items(interp, listing)
    if not is_item(interp, listing):
        return False
    if place is not None and place < len(listing.args):
        pattern = listing.args[place]
        if None not in _pieces(interp, pattern, running(interp), 0):
            return False
        text = _last_name(interp, pattern).rpartition(_UNKNOWN)[2]
        return any(map(str.isalnum, text))
    given = {
        one.id.partition(".")[0]
        for one in nodes([*getattr(listing, "args", ()), _receiver(listing)])
        if isinstance(one, m.Name)
    }
    return _is_of_each(interp, given)


def _is_of_each(interp: Interp, names: set[str]) -> bool:
    """Whether variables of the running function are made from the number of an item, or from an element that a loop goes
    through, also where a function that is called there is given them."""
    for frame in reversed(interp.stack()):
        fn = frame.function
        if fn.name == _ITEM and names & _made_from(fn.body, {one.name for one in fn.params[1:]}):
            return True
        if any(
            isinstance(loop.stmt, m.For)
            and loop.frame.env is frame.env
            and names & _made_of_elements(loop.stmt)
            for loop in interp.loops
        ):
            return True
        names = _given_from_call(frame, fn, names)
        if not names:
            return False
    return False


def _given_from_call(frame: Frame, fn: m.Function, names: set[str]) -> set[str]:
    """The variables of the caller in the arguments of a call from which these variables are made."""
    call = frame.began()
    if call is None or frame.func is None or frame.caller is None:
        return set()
    own = 1 if frame.func.receiver is not None else 0
    params = [one.name for one in fn.params[own:]]
    asked = {one for one in params if names & _made_from(fn.body, {one})}
    given = [one for name, one in zip(params, call.args, strict=False) if name in asked]
    given += [one.value for one in call.keywords if one.name in asked]
    found = {one.id.partition(".")[0] for one in nodes(given) if isinstance(one, m.Name)}
    outer = frame.caller.function
    return found - {one.name for one in outer.params[:1] if outer.cls >= 0}


def _last_name(interp: Interp, pattern: m.Expr) -> str:
    """The last part of a path, with a mark for what is not known in it."""
    fn = running(interp)
    for _ in range(_MOST_NAMES):
        made = only_value(fn, pattern.id) if isinstance(pattern, m.Name) else None
        if made is not None:
            pattern = made
        elif isinstance(pattern, m.Call) and is_joined(interp, pattern):
            pattern = pattern.args[-1]
        elif isinstance(pattern, m.BinOp) and pattern.op == "/":
            pattern = pattern.right
        else:
            break
    text = "".join(_UNKNOWN if one is None else one for one in _pieces(interp, pattern, fn, 0))
    return text.replace("\\", "/").rpartition("/")[2]


def _asks_for_extension(interp: Interp, pattern: m.Expr) -> bool:
    """Whether a pattern leaves open the extension alone of a file whose name is computed: ``f"{folder}/{name}.*"``."""
    name = _last_name(interp, pattern)
    return (
        name.endswith(_ANY_EXTENSION) and _UNKNOWN in name and _WILD.isdisjoint(name[: -len(_ANY_EXTENSION)])
    )


def _gives_items(interp: Interp, listing: Any) -> bool:
    """Whether a statement gives a variable the entries of a listing, and its function only counts them and takes some by
    fixed numbers."""
    stmt, fn = interp.statement, running(interp)
    if fn is None or not isinstance(stmt, m.Assign) or not _gives_entries(stmt.value, listing):
        return False
    target = stmt.targets[0] if len(stmt.targets) == 1 else None
    if not isinstance(target, m.Name) or "." in target.id:
        return False
    above = parents(fn)
    uses = [one for one in variables(fn).get(target.id, ()) if one is not target]
    if _is_read_elsewhere(interp, fn, target.id):
        return False
    return all(_counts_or_takes(above.get(id(one)), one) for one in uses)


def _is_read_elsewhere(interp: Interp, fn: m.Function, name: str) -> bool:
    """Whether anything but a function may read one of its variables."""
    file = interp.frame.file
    imported = fn.name == "<module>" and file.path in interp.imported_files
    return imported or liveness.declares(fn, {name}) or liveness.may_be_shared(interp.whole(file), fn, {name})


def _counts_or_takes(parent: Any, used: m.Name) -> bool:
    if isinstance(parent, m.Subscript):
        return parent.value is used and isinstance(parent.index, m.Const)
    if isinstance(parent, m.Call):
        return parent.func is not used and called_name(parent) == "len"
    return (isinstance(parent, (m.If, m.While, m.IfExp)) and parent.test is used) or (
        isinstance(parent, m.Unary) and parent.op == "not"
    )


_UNKNOWN = "\0"
"""What stands for a part of a pattern that is not known."""
_ANY_EXTENSION = ".*"
_ITEM = "__getitem__"
"""The method that gives the item of a dataset with a number."""


def is_item(interp: Interp, listing: Any) -> bool:
    """Whether one entry of what a call gives is taken, and nothing else."""
    return any(
        (
            isinstance(one, m.Subscript)
            and isinstance(one.index, m.Const)
            and _gives_entries(one.value, listing)
        )
        or (
            isinstance(one, m.Call)
            and called_name(one) == "next"
            and bool(one.args)
            and _gives_entries(one.args[0], listing)
        )
        for one in nodes([interp.statement])
    )


def _gives_entries(node: m.Expr, listing: Any) -> bool:
    """Whether an expression gives the entries of a listing, or some of them."""
    if (
        isinstance(node, m.Call)
        and node is not listing
        and called_name(node) in ("list", "iter")
        and node.args
    ):
        node = node.args[0]
    if isinstance(node, m.Comp):
        return node.kind in ("l", "g") and len(node.generators) == 1 and node.generators[0].iter is listing
    return node is listing


def _made_of_elements(stmt: m.For) -> frozenset[str]:
    """The names that a loop gives its elements, and those that its body assigns what is made from them."""
    names: set[str] = set()
    target_names(stmt.target, names)
    return _made_from(stmt.body, names)


def _made_from(body: list[m.Stmt], names: set[str]) -> frozenset[str]:
    """Some names, and those that a block assigns what is made from them."""
    for one in statements(body):
        if isinstance(one, m.Assign) and any(
            isinstance(part, m.Name) and part.id.partition(".")[0] in names for part in nodes([one.value])
        ):
            for target in one.targets:
                target_names(target, names)
    return frozenset(names)


def _receiver(call: Any) -> Any:
    """What a method is called of."""
    func = getattr(call, "func", None)
    return func.value if isinstance(func, m.Attr) else func


def _asks_for_one(op: str, number: Any, demanded: bool) -> bool:
    """``== 1``, ``> 1``; where the comparison has to hold, ``> 1`` says that there are several."""
    if not isinstance(number, m.Const) or number.value not in (1, 2):
        return False
    if number.value == 1:
        return op in ("==", "<=") or (not demanded and op in ("!=", ">"))
    return op == "<" or (not demanded and op == ">=")
