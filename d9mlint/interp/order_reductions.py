"""Arrays of which the program reads nothing but what is the same whatever the order of their elements: the largest one, or
whether one is there; and those whose elements it takes one after the other, as of the list that they were."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold, any_holds
from d9mlint.interp.naming import called_in_library
from d9mlint.interp.number_uses import gives_number
from d9mlint.interp.order_dimensions import is_reduced_along_rows
from d9mlint.interp.order_positions import is_index
from d9mlint.interp.passed_on import PASS_THROUGH
from d9mlint.interp.shapes import is_whole_number
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import blocks_within
from d9mlint.ir.forms import targets_of
from d9mlint.ir.liveness import may_be_shared, stored_names
from d9mlint.ir.traversal import called_name, nodes, parents, statements, variables

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import OrderEntry
    from d9mlint.project.modules import ModuleFile

FORM = frozenset({"shape", "dtype", "size", "ndim"})
"""Attributes of arrays that say nothing of the order of their elements."""
_COUNTING = frozenset({"builtins.int", "builtins.len", "builtins.ord"})
"""What gives whole numbers."""
_DEEPEST = 8
"""From an array to what is computed for its rows, and on from there, the search goes at most so often."""
_PASSING = PASS_THROUGH - {"builtins.reversed", "itertools.islice", "itertools.cycle"}
"""What passes on all elements of a sequence, in their order."""
REDUCED, PASSED_THROUGH = "reduced", "passed through"


def use_of_array(interp: Interp, node: Any, given: v.Value | None, fn: m.Function | None) -> str:
    """``REDUCED`` where the function that makes an array of something asks only for such values of it, as
    ``np.array(sizes).max()`` does; ``PASSED_THROUGH`` where it also goes through its elements, or
    counts them in pairs with others, or does so with what it computes for each of them; else nothing."""
    return _use_of(interp, node, fn, _are_whole(given), 0) if isinstance(node, m.Call) else ""


def _use_of(interp: Interp, node: Any, fn: m.Function | None, whole: bool, depth: int) -> str:
    """The same of an expression that is an array, of whole numbers or not."""
    if fn is None or depth > _DEEPEST:
        return ""
    use = _use(interp, node, fn, whole, depth)
    return use or _joint_use(interp, named_uses(interp, interp.frame.file, fn, node), fn, whole, depth)


def use_of_returned(interp: Interp, node: Any, part: int | None, fn: m.Function | None) -> str:
    """The same of an array that a call gives, or of one of several, to each of which the function gives a name."""
    if part is None:
        return use_of_array(interp, node, None, fn)
    stmt = parents(fn).get(id(node)) if fn is not None else None
    target = stmt.targets[0] if isinstance(stmt, m.Assign) and len(stmt.targets) == 1 else None
    if (
        fn is None
        or not isinstance(stmt, m.Assign)
        or not isinstance(target, m.Seq)
        or part >= len(target.elts)
    ):
        return ""
    name = target.elts[part]
    if not all(isinstance(one, m.Name) for one in target.elts) or not isinstance(name, m.Name):
        return ""
    uses = _uses_of_name(interp, interp.frame.file, fn, name, stmt)
    return _joint_use(interp, uses, fn, False, 0)


def _joint_use(interp: Interp, uses: list[m.Name], fn: m.Function, whole: bool, depth: int) -> str:
    found = {_use(interp, one, fn, whole, depth) for one in uses}
    if not found or "" in found:
        return ""
    return REDUCED if found == {REDUCED} else PASSED_THROUGH


def is_only_returned(interp: Interp, file: ModuleFile, fn: m.Function, node: Any) -> bool:
    """Whether a function does nothing with an array that it makes here but return it and ask for its form."""
    above = parents(fn)
    if id(node) not in above:
        return False
    uses = [node] if _is_returned(node, above) else named_uses(interp, file, fn, node)
    return any(_is_returned(one, above) for one in uses) and all(
        _is_returned(one, above) or one.id.partition(".")[2] in FORM for one in uses
    )


def _is_returned(node: Any, above: dict[int, Any]) -> bool:
    """Whether an expression is what a function returns, or one of several things."""
    holder = above.get(id(node))
    if isinstance(holder, m.Seq):
        holder = above.get(id(holder))
    return isinstance(holder, m.Return) and "." not in getattr(node, "id", "")


def named_uses(interp: RunView, file: ModuleFile, fn: m.Function, node: Any) -> list[m.Name]:
    """Where a function uses the variable in which it keeps this; nothing where others may use it."""
    above = parents(fn)
    kept = targets_of(node, above) or []
    target = kept[0] if len(kept) == 1 else None
    if not isinstance(target, m.Name) or "." in target.id:
        return []
    stmt = next(one for one in _around(node, above) if isinstance(one, m.Assign))
    if stmt.value is node and stmt.targets[0] is not target:
        # It is taken apart: `(name,) = array`.
        return []
    return _uses_of_name(interp, file, fn, target, stmt)


def _uses_of_name(
    interp: RunView, file: ModuleFile, fn: m.Function, target: m.Name, stmt: m.Assign
) -> list[m.Name]:
    above = parents(fn)
    # What stands before it reads what the variable was before, unless a loop comes back to that.
    repeated = any(isinstance(one, (m.For, m.While)) for one in _around(stmt, above))
    # What gives it another value reads nothing of this one.
    uses = [
        one for one in variables(fn).get(target.id, ()) if one is not target and not _is_given(one, above)
    ]
    earlier, later = _other_values(stmt, target.id, fn)
    if later is not None:
        given = set(map(id, nodes(later.targets)))
        uses = [one for one in uses if stmt.end <= one.start < later.end and id(one) not in given]
    elif not repeated:
        uses = [one for one in uses if one.start >= stmt.end]
    elif earlier is not None:
        uses = [one for one in uses if not earlier.start <= one.start < stmt.end]
    return [] if uses and may_be_shared(interp.whole(file), fn, {target.id}) else uses


def _is_given(name: m.Name, above: dict[int, Any]) -> bool:
    """Whether a statement gives a variable a value where it is named."""
    holder = above.get(id(name))
    return isinstance(holder, m.Assign) and any(one is name for one in holder.targets)


def _other_values(stmt: m.Assign, name: str, fn: m.Function) -> tuple[m.Assign | None, m.Assign | None]:
    """The first statement in the block of this one that gives a name another value before it, and the next one behind it:
    what stands behind that reads the other value."""
    holder, block = _block_of(stmt, fn)
    values = [one for one in block if isinstance(one, m.Assign) and name in stored_names(one)]
    at = next((index for index, one in enumerate(values) if one is stmt), 0)
    later = values[at + 1] if at + 1 < len(values) else None
    if later is not None and holder is not None:
        places = [index for index, one in enumerate(block) if one is stmt or one is later]
        if any(isinstance(one, m.Jump) for one in statements(block[places[0] : places[1]])):
            later = None
    elif later is None and isinstance(holder, m.If):
        later = _value_behind(holder, name, fn)
    return (values[0] if at else None), later


def _value_behind(branch: m.If, name: str, fn: m.Function) -> m.Assign | None:
    """The next statement behind an ``if`` that gives a name another value, whichever branch is taken."""
    holder, block = _block_of(branch, fn)
    at = next((index for index, one in enumerate(block) if one is branch), len(block))
    for index in range(at + 1, len(block)):
        one = block[index]
        if isinstance(one, m.Assign) and name in stored_names(one):
            return None if any(isinstance(x, m.Jump) for x in statements(block[at:index])) else one
    return _value_behind(holder, name, fn) if isinstance(holder, m.If) else None


def _block_of(stmt: m.Stmt, fn: m.Function) -> tuple[Any, Sequence[m.Stmt]]:
    """What a statement stands in, and the statements beside it."""
    holder = parents(fn).get(id(stmt))
    blocks = (
        [fn.body] if holder is None else () if isinstance(holder, (m.Try, m.Match)) else blocks_within(holder)
    )
    return holder, next((one for one in blocks if any(x is stmt for x in one)), ())


def _around(node: Any, above: dict[int, Any]) -> Iterator[Any]:
    """What a node stands in, from the inside to the outside."""
    while (node := above.get(id(node))) is not None:
        yield node


def _are_whole(given: v.Value | None) -> bool:
    """Whether these are whole numbers, whose sum is exact."""
    return isinstance(given, v.Items) and bool(given.elts) and all(map(_is_whole, given.elts))


def _is_whole(one: v.Value) -> bool:
    if isinstance(one, v.Lit):
        return type(one.value) is int
    return isinstance(one, v.Obj) and one.api in _COUNTING


def _use(interp: Interp, node: m.Expr, fn: m.Function, whole: bool, depth: int) -> str:
    """How an expression that is an array, or names something of one, is used."""
    above = parents(fn)
    user = above.get(id(node))
    if _is_searched(interp, node, fn):
        return PASSED_THROUGH
    if is_reduced_along_rows(interp, node, fn, _settings) or (whole and _is_marked(node, above)):
        return REDUCED
    if isinstance(node, m.Name) and "." in node.id:
        if isinstance(user, m.Call) and user.func is node and "." not in node.id.partition(".")[2]:
            if rows_of(interp, user) == "receiver" and _use_of(interp, user, fn, whole, depth + 1):
                return PASSED_THROUGH
    else:
        if _is_gone_through(interp, node, above) or _is_numbered(interp, node, above):
            return PASSED_THROUGH
        if isinstance(user, m.Compare) and user.comparators == [node] and user.ops[0] in ("in", "not in"):
            return REDUCED
        if _is_reduced(interp, node, above, whole):
            return REDUCED
        return PASSED_THROUGH if _keeps_pairs(interp, node, fn, whole, depth) else ""
    return REDUCED if _is_reduced(interp, node, above, whole) else ""


def _is_marked(node: m.Expr, above: dict[int, Any]) -> bool:
    """Whether one number is stored at all places that an array names: ``found[ids] = True``."""
    user = above.get(id(node))
    stmt = above.get(id(user))
    if not isinstance(user, m.Subscript) or user.index is not node:
        return False
    if isinstance(stmt, m.AugAssign):
        return stmt.target is user and isinstance(stmt.value, m.Const)
    stored = stmt.value if isinstance(stmt, m.Assign) and any(one is user for one in stmt.targets) else None
    return isinstance(stored, m.Const)


def _is_searched(interp: Interp, node: m.Expr, fn: m.Function) -> bool:
    """Whether a call finds the largest element of all of an array, and its position is used only as an index, as in
    ``names[np.argmax(sizes)]``, or what stands there is taken out of the array. Whether both are in one order is asked
    there."""
    above = parents(fn)
    user = above.get(id(node))
    if isinstance(user, m.Subscript) and user.value is node:
        index = user.index
        named = variables(fn).get(index.id, ()) if isinstance(index, m.Name) else ()
        given = [above[id(one)] for one in named if _is_given(one, above)]
        index = _as_computed(given[0].value if len(given) == 1 else index)
        return isinstance(index, m.Call) and _finds(interp, index)
    call = above.get(id(user)) if isinstance(user, m.Attr) else user
    return isinstance(call, m.Call) and _finds(interp, call, node) and is_index(fn, call)


def _as_computed(number: m.Expr) -> m.Expr:
    """A number without what makes another type of it: ``int(at)``, ``at.item()``."""
    while isinstance(number, m.Call):
        if isinstance(number.func, m.Attr) and number.func.name == "item":
            number = number.func.value
        elif called_name(number) == "int" and len(number.args) == 1:
            number = number.args[0]
        else:
            break
    return number


def _finds(interp: Interp, call: m.Call, array: m.Expr | None = None) -> bool:
    """Whether a call gives the position of the largest of all elements of an array, or of this one."""
    given = call.args[0] if len(call.args) == 1 else None
    method = given is None
    if method:
        given = call.func.value if isinstance(call.func, m.Attr) else call.func
    if call.keywords or len(call.args) > 1 or (array is not None and array is not given):
        return False
    entry = interp.kb.order(f"?.{called_name(call)}" if method else called_in_library(interp, call), method)
    return entry is not None and entry.finds and entry.otherwise == "type"


def _is_gone_through(interp: Interp, node: m.Expr, above: dict[int, Any]) -> bool:
    """Whether a loop goes through an expression, also with a progress bar around it or side by side with something else:
    what is then in another order is paired by chance, which is noted there."""
    user = above.get(id(node))
    while isinstance(user, m.Call) and any(one is node for one in user.args):
        called = called_in_library(interp, user)
        entry = interp.kb.order(called)
        if called not in _PASSING and (entry is None or entry.role != "pair"):
            return False
        node, user = user, above.get(id(user))
    return isinstance(user, (m.For, m.Generator)) and user.iter is node


def _is_numbered(interp: Interp, node: m.Expr, above: dict[int, Any]) -> bool:
    """Whether an element of an array is taken by the number of the round of a loop over a listing: ``rows[i]`` in
    ``for i, name in enumerate(names)``. Whether both are in one order is asked there."""
    user = above.get(id(node))
    number = user.index if isinstance(user, m.Subscript) and user.value is node else None
    if not isinstance(number, m.Name):
        return False
    for loop in _around(user, above):
        if isinstance(loop, m.For) and (over := _numbered_by(loop, number.id)) is not None:
            if not isinstance(over, m.Name) or (isinstance(node, m.Name) and node.id == over.id):
                return False
            return interp.orders.of(interp.value_of(over)) is not None
    return False


def _numbered_by(loop: m.For, name: str) -> m.Expr | None:
    """What a loop has a number for each element of, with this name."""
    target, over = loop.target, loop.iter
    while isinstance(over, m.Call) and called_name(over) == "tqdm" and over.args:
        over = over.args[0]
    if not isinstance(over, m.Call) or len(over.args) != 1:
        return None
    inner, kind = over.args[0], called_name(over)
    if kind == "enumerate" and isinstance(target, m.Seq):
        first = target.elts[0]
        return inner if isinstance(first, m.Name) and first.id == name else None
    if kind != "range" or not isinstance(target, m.Name) or target.id != name:
        return None
    return inner.args[0] if isinstance(inner, m.Call) and called_name(inner) == "len" and inner.args else None


def _keeps_pairs(interp: Interp, node: m.Expr, fn: m.Function, whole: bool, depth: int) -> bool:
    """Whether the pairs of this array and another sequence are counted, or it is only used for something with a row for each
    of its rows of which that is so."""
    above = parents(fn)
    user = above.get(id(node))
    if isinstance(user, m.Compare) and len(user.ops) == 1 and not _is_with_number(interp, user, node):
        # Where both are in one order, it is the same in any how often they agree.
        interp.orders.pairs.add(id(user))
        return user.ops[0] in ("==", "!=") and bool(_use_of(interp, user, fn, True, depth + 1))
    if isinstance(user, (m.Compare, m.BinOp)):
        if isinstance(user, m.Compare):
            interp.orders.pairs.add(id(user))
            whole = True
        return _is_with_number(interp, user, node) and bool(_use_of(interp, user, fn, whole, depth + 1))
    if isinstance(user, m.Subscript):
        return _takes_columns(user, node) and bool(_use_of(interp, user, fn, whole, depth + 1))
    call = above.get(id(user)) if isinstance(user, (m.Attr, m.Keyword)) else user
    if not isinstance(call, m.Call):
        return False
    if isinstance(user, m.Attr):
        keeps = call.func is user and rows_of(interp, call) == "receiver"
    elif _is_tallied(interp.kb.order(called_in_library(interp, call)), node, call):
        return True
    else:
        keeps = any(one is node for one in call.args[:1]) and rows_of(interp, call) == "argument"
    return keeps and bool(_use_of(interp, call, fn, False, depth + 1))


def _is_with_number(interp: Interp, node: m.Compare | m.BinOp, array: m.Expr) -> bool:
    """Whether a comparison or a computation of an array has nothing else but a number."""
    sides = [node.left, node.right] if isinstance(node, m.BinOp) else [node.left, *node.comparators]
    others = [one for one in sides if one is not array]
    return len(others) == 1 and _is_number(interp, others[0])


def _is_number(interp: Interp, node: m.Expr) -> bool:
    """Whether an expression is one value: a constant, or a variable with a number, which a loop may count up later."""
    if isinstance(node, m.Const) or gives_number(interp.frame.body, node):
        return True
    return isinstance(node, m.Name) and is_whole_number(interp.value_of(node))


def _takes_columns(node: m.Subscript, array: m.Expr) -> bool:
    """Whether something of each row of an array is taken: ``rows[:, 1]``."""
    index = node.index.elts if isinstance(node.index, m.Seq) and node.value is array else []
    return bool(index) and isinstance(index[0], m.Slice) and index[0] == m.Slice(None, None, None)


def rows_of(interp: Interp, call: m.Call) -> str:
    """Of which array a call gives a row for each row: its ``argument``, as in ``model.predict(rows)``, or ``receiver``."""
    called = called_in_library(interp, call)
    is_method = isinstance(call.func, m.Attr) or (isinstance(call.func, m.Name) and "." in call.func.id)
    name = f"?.{called_name(call)}" if is_method and not called else called
    entry = interp.kb.order(name, is_method and not called)
    if entry is None or not entry.rows:
        return ""
    # Without conditions no argument is looked at.
    return "" if entry.when and all_hold(_settings(interp, call), entry.when) is not True else entry.rows


def is_met(interp: Interp, entry: OrderEntry, call: m.Call) -> bool:
    """Whether nothing that a call is given is known to make what the facts say of it untrue."""
    if not entry.when and not entry.unless:
        return True
    given = _settings(interp, call)
    return all_hold(given, entry.when) is not False and any_holds(given, entry.unless) is not True


def _settings(interp: Interp, call: m.Call) -> v.Args:
    """What a call is given, as far as no other call gives it: an array that is made there may be the one whose use is asked
    for, and to look at it is to ask that again."""
    if any(isinstance(arg, m.Star) for arg in call.args) or any(one.name is None for one in call.keywords):
        return v.Args([v.UNKNOWN])

    def known(given: m.Expr) -> v.Value:
        made = any(isinstance(one, m.Call) for one in nodes([given]))
        return v.UNKNOWN if made else interp.value_of(given)

    named = {one.name: known(one.value) for one in call.keywords if one.name is not None}
    return v.Args([known(arg) for arg in call.args], named)


def _is_tallied(entry: OrderEntry | None, node: m.Expr, call: m.Call) -> bool:
    """Whether a call counts the pairs of this and another sequence: the order is nothing to it where both have the same."""
    if entry is None or entry.role != "tally":
        return False
    weights = {test.arg for test in entry.unless}
    return not any(one.name in weights or not one.name for one in call.keywords) and (
        any(one is node for one in call.args) or any(one.value is node for one in call.keywords)
    )


def _is_reduced(interp: Interp, node: m.Expr, above: dict[int, Any], whole: bool) -> bool:
    """Whether an expression that is an array, or names something of one, is used for such a value only. What an array of
    tests is used for counts in its place: ``(sizes > 3).any()``, ``np.all(np.isfinite(sizes))``."""
    func: m.Expr = node
    user = above.get(id(node))
    name = node.id.partition(".")[2] if isinstance(node, m.Name) else ""
    if not name and isinstance(user, m.Attr):
        func, name = user, user.name
        user = above.get(id(user))
    if name in FORM:
        return True
    if not name and isinstance(user, m.Compare):
        return _is_with_number(interp, user, node) and _is_reduced(interp, user, above, True)
    if not isinstance(user, m.Call):
        return False
    if name and user.func is func and rows_of(interp, user) == "receiver":
        return _is_reduced(interp, user, above, whole)
    if name:
        called = user.func is func and not user.args and not user.keywords
        entry = interp.kb.order(f"?.{name}", True) if called else None
    else:
        if not user.args or user.args[0] is not node or not isinstance(user.func, m.Name):
            return False
        function = interp.eval(user.func)
        entry = interp.kb.order(interp.kb.canonical(function.name)) if isinstance(function, v.Ext) else None
        if len(user.args) > 1 or user.keywords:
            # What else it is given makes no difference where the facts say which argument does.
            tests = entry.unless if entry is not None and entry.role == "end" else []
            if not tests or any_holds(_settings(interp, user), tests) is not False:
                return False
    if entry is not None and entry.elementwise:
        return _is_reduced(interp, user, above, True)
    return entry is not None and (entry.reduces == "any" or (entry.reduces == "whole" and whole))
