"""How a program names the sizes of what it allocates, and which loops count up to them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.scopes import assigned_names
from d9mlint.ir.traversal import called_name, nodes, statements, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.view import RunView

Size = tuple[str, int]
"""A size: of which variable, in which dimension; -1 for a variable that is the number itself."""


def assignments(interp: RunView, name: str) -> Iterator[m.Expr]:
    """What the running function, or the module, assigns to a name."""
    return (value for value, _ in assignments_in_parts(interp, name))


def assignments_in_parts(interp: RunView, name: str) -> Iterator[tuple[m.Expr, int | None]]:
    """The same, with the place of the name among the targets that a value is divided between."""
    frame = interp.frame
    for body in (frame.body, frame.file.facts.functions[0].body):
        given = _given_in(body).get(name)
        if given is not None:
            yield from given
            return


@memoized
def _given_in(body: list[m.Stmt]) -> dict[str, list[tuple[m.Expr, int | None]]]:
    """What a body assigns to each name, in order, with its place among the targets; memoised while the body lives."""
    found: dict[str, list[tuple[m.Expr, int | None]]] = {}
    for node in statements(body):
        if isinstance(node, m.Assign):
            targets, given = node.targets, node.value
        elif isinstance(node, m.AnnAssign) and node.value is not None:
            targets, given = [node.target], node.value
        else:
            continue
        for target in targets:
            if isinstance(target, m.Name):
                found.setdefault(target.id, []).append((given, None))
            if not isinstance(target, m.Seq):
                continue
            each = _each(target, given)
            for position, one in enumerate(target.elts):
                if isinstance(one, m.Name):
                    part = (each[position], None) if each else (given, position)
                    found.setdefault(one.id, []).append(part)
    return found


def _each(target: m.Seq, value: m.Expr) -> list[m.Expr]:
    """What each of several targets gets where the elements are written out: ``step, start = 0, time.time()``."""
    parts = [*target.elts, *value.elts] if isinstance(value, m.Seq) else []
    written = not any(isinstance(one, m.Star) for one in parts) and len(parts) == 2 * len(target.elts)
    return value.elts if isinstance(value, m.Seq) and written else []


def names_of_size(interp: RunView, memory: v.Obj, node: m.Subscript, dimension: int) -> set[Size]:
    """What the program may call the size of a dimension of an allocation."""
    found: set[Size] = set()
    if isinstance(node.value, m.Name):
        found.add((node.value.id, dimension))
    given = memory.node.args[0] if isinstance(memory.node, m.Call) and memory.node.args else None
    if isinstance(given, m.Name) and memory.api.endswith("_like"):
        found.add((given.id, dimension))
    elif isinstance(given, m.Name) and given.id.endswith(".shape"):
        found.add((given.id.removesuffix(".shape"), dimension))
    elif isinstance(given, m.Seq):
        found |= size_of(interp, given.elts[dimension]) if dimension < len(given.elts) else set()
    elif given is not None and not memory.api.endswith("_like"):
        place = dimension if isinstance(memory.node, m.Call) and memory.api.startswith("torch.") else 0
        if isinstance(memory.node, m.Call) and place < len(memory.node.args):
            found |= size_of(interp, memory.node.args[place])
    return found


def size_of(interp: RunView, node: Any, deep: bool = True) -> set[Size]:
    """Of what an expression is the size."""
    if isinstance(node, m.Call) and isinstance(node.func, m.Name) and len(node.args) == 1:
        given = node.args[0]
        if node.func.id == "len" and isinstance(given, m.Name):
            return {(given.id, 0)}
        number = whole_number(given)
        if node.func.id.endswith(".size") and number is not None:
            return {(node.func.id.removesuffix(".size"), number)}
    elif (
        isinstance(node, m.Subscript) and isinstance(node.value, m.Name) and node.value.id.endswith(".shape")
    ):
        number = whole_number(node.index)
        if number is not None:
            return {(node.value.id.removesuffix(".shape"), number)}
    elif isinstance(node, m.Name):
        found: set[Size] = {(node.id, -1)}
        written = list(assignments(interp, node.id)) if deep else []
        return found | (size_of(interp, written[0], False) if len(written) == 1 else set())
    return set()


def is_size(interp: RunView, node: Any, deep: bool = True) -> bool:
    """Whether an expression of the running function is written as a size of an array or container: a whole number."""
    if isinstance(node, m.Subscript):
        return _is_shape(node.value) and not isinstance(node.index, m.Slice)
    if isinstance(node, m.Call):
        name = node.func.id if isinstance(node.func, m.Name) else ""
        return name == "len" or (name.endswith(".size") and bool(node.args))
    if not isinstance(node, m.Name) or not deep:
        return False
    given = list(assignments_in_parts(interp, node.id))
    return bool(given) and all(
        is_size(interp, value, False) if position is None else _is_shape(value) for value, position in given
    )


def _is_shape(node: Any) -> bool:
    """Whether an expression is written as all sizes of an array."""
    if isinstance(node, m.Call):
        return isinstance(node.func, m.Name) and node.func.id.endswith(".size") and not node.args
    name = node.id if isinstance(node, m.Name) else f".{node.name}" if isinstance(node, m.Attr) else ""
    return name.endswith(".shape")


def counts(interp: RunView, loop: Any, name: str) -> bool:
    """Whether a loop of the running function counts in a variable of this name, one by one."""
    stmt = loop.stmt
    if loop.frame is not interp.frame or not isinstance(stmt, m.For) or not isinstance(stmt.iter, m.Call):
        return False
    called = stmt.iter.func
    target = stmt.target
    if isinstance(called, m.Name) and called.id == "enumerate" and isinstance(target, m.Seq) and target.elts:
        target = target.elts[0]
    elif not (isinstance(called, m.Name) and called.id in ("range", "trange")):
        return False
    return isinstance(target, m.Name) and target.id == name


def counts_elements(interp: RunView, loop: Any, name: str, counter: str) -> bool:
    """Whether a loop of the running function counts in a variable up to the number of elements with which a list is made:
    ``for i in range(n)`` where the list is ``[x] * n``, or ``[... for _ in range(n)]``."""
    if not counts(interp, loop, counter) or counter in assigned_names(loop.stmt):
        return False
    made = list(assignments(interp, name))
    if len(made) != 1:
        return False
    sizes = _rounds(interp, loop.stmt.iter) & _elements(interp, made[0])
    changed = assigned_names(loop.stmt)
    return any(size[0].partition(".")[0] not in changed for size in sizes)


def _rounds(interp: RunView, over: m.Expr) -> set[Size]:
    """What the program may call the number of rounds of a loop, or of a comprehension."""
    if isinstance(over, m.Name):
        return {(over.id, 0)}
    called = called_name(over)
    if not isinstance(over, m.Call) or over.keywords or not over.args:
        return set()
    if called == "enumerate":
        return _rounds(interp, over.args[0]) if len(over.args) == 1 else set()
    if called not in ("range", "trange") or len(over.args) > 2:
        return set()
    return (
        set() if len(over.args) == 2 and whole_number(over.args[0]) != 0 else size_of(interp, over.args[-1])
    )


def _elements(interp: RunView, made: m.Expr) -> set[Size]:
    """What the program may call the number of elements of a list that is made so."""
    if isinstance(made, m.Comp):
        whole = made.kind == "l" and len(made.generators) == 1 and not made.generators[0].ifs
        return _rounds(interp, made.generators[0].iter) if whole else set()
    if not isinstance(made, m.BinOp) or made.op != "*":
        return set()
    for one, times in ((made.left, made.right), (made.right, made.left)):
        if (
            isinstance(one, m.Seq)
            and one.kind == "l"
            and len(one.elts) == 1
            and not isinstance(one.elts[0], m.Star)
        ):
            return size_of(interp, times)
    return set()


def is_whole(part: Any) -> bool:
    """Whether a part of an index is ``:``."""
    return isinstance(part, m.Slice) and part.lower is part.upper is part.step is None


def comes_to_all(interp: RunView, memory: v.Obj, base: m.Name, parts: list[Any]) -> bool:
    """Whether the loops that are running bring ``base[i, j] = ...``, or ``base[i][j] = ...``, to every element, each of
    them counting up to the size of a dimension, and nothing else in them looks at what is written."""
    if interp.branching:
        return False
    counting = []
    for dimension, part in enumerate(parts):
        if is_whole(part):
            continue
        loop = next((one for one in interp.loops if counts(interp, one, getattr(part, "id", ""))), None)
        if loop is None or not _counts_to(interp, loop, memory, base, dimension):
            return False
        counting.append(loop)
    around = [one for one in interp.loops if one.start > memory.birth]
    if not around or any(one not in counting for one in around):
        return False
    outer = around[0].stmt
    named = [one.id for one in nodes(outer.body) if isinstance(one, m.Name)]
    looks = sum(one == base.id or one.startswith(f"{base.id}.") for one in named)
    return looks - named.count(f"{base.id}.shape") == 1 and not any(
        isinstance(one, (m.Jump, m.Return)) for one in statements(outer.body)
    )


def indexed(node: m.Subscript) -> tuple[m.Name | None, list[Any]]:
    """The name whose element is selected, and the parts of the index, those of ``name[i][j]`` one after another."""
    parts: list[Any] = []
    inner: Any = node
    while isinstance(inner, m.Subscript):
        parts = [*(inner.index.elts if isinstance(inner.index, m.Seq) else [inner.index]), *parts]
        inner = inner.value
    return (inner if isinstance(inner, m.Name) else None), parts


def _counts_to(interp: RunView, loop: Any, memory: v.Obj, base: m.Name, dimension: int) -> bool:
    """Whether a loop counts from zero to the size of a dimension of what was allocated."""
    called, target = loop.stmt.iter, loop.stmt.target
    args = called.args
    if called.keywords or not args:
        return False
    if isinstance(target, m.Seq):
        sizes = {(args[0].id, 0)} if len(args) == 1 and isinstance(args[0], m.Name) else set()
        last = None
    else:
        if len(args) > 2 or (len(args) == 2 and whole_number(args[0]) != 0):
            return False
        last = args[-1]
        sizes = size_of(interp, last)
    given = _size_given(memory, dimension)
    if given is None:
        return False
    number = whole_number(given)
    if number is not None:
        return last is not None and whole_number(last) == number
    own = {(base.id, dimension)} | size_of(interp, given)
    return bool(sizes & own)


def _size_given(memory: v.Obj, dimension: int) -> Any:
    """The expression that an allocation is given for the size of a dimension; None where there is no such argument."""
    args = memory.node.args if isinstance(memory.node, m.Call) else []
    if args and isinstance(args[0], m.Seq):
        args = args[0].elts
    return args[dimension] if dimension < len(args) else None
