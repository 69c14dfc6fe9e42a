"""DET309: memory that is read before anything was written to it.

What is known of an allocation is kept in its ``data``: nothing while no element was written; ``written`` where
all may have been, or something may have been done to it that is not followed; ``part:D:N:I,J-K`` where of the ``N``
rows of dimension ``D`` only ``I`` and ``J`` to ``K`` were (``N`` is ``ANY`` where it is not known: rows are counted
from both ends); ``rows:LOOP`` where a loop is writing row after row, followed
by ``|part:...`` where it does not come to all of them; ``mask:PLACE`` where only elements that a comparison selects were;
``try:START-END`` where a statement at that place goes on without those whose computation raises; ``reported`` when it was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.settings.caught_writes import goes_on_without
from d9mlint.interp import shapes
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import (
    CallEvent,
    EndEvent,
    ItemEvent,
    ItemUpdateEvent,
    ItemWriteEvent,
    IterationEvent,
    ObjectAttributeEvent,
    OperatorEvent,
)
from d9mlint.interp.library.own_gradients import is_followed
from d9mlint.interp.listening import on, on_call_if, on_call_with_objects, on_object_attribute
from d9mlint.interp.memory import marks_values, remembered
from d9mlint.interp.named_sizes import Size, counts, is_whole, names_of_size, size_of
from d9mlint.interp.places import Where
from d9mlint.interp.storage import behind, followed, has_known_items, root, viewed, whole_of
from d9mlint.interp.text import call_text, node_text
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_names
from d9mlint.ir.traversal import called_name, nodes, whole_number

if TYPE_CHECKING:
    from collections.abc import Iterable

    from d9mlint.interp.frames import Frame
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry
    from d9mlint.project.modules import ModuleFile

_ROW = "rows:"
_PART = "part:"
_MASK = "mask:"
_TRY = "try:"
_PARTLY = (_ROW, _PART, _MASK, _TRY)
_MOST_ROWS = 10_000
"""Of larger dimensions it is not followed which rows are written."""
ANY = _MOST_ROWS + 1
"""Stands for a number of rows that is not known, but large enough."""
_MOST_FROM_END = 8
"""Rows at an end of such a dimension that are taken to be none of the other end."""
_META = frozenset({"torch.device", "accelerate.init_empty_weights", "torch._subclasses.FakeTensorMode"})
_FILLING = frozenset({"fills-parameters", "writes-where"})
_OBJECTS = frozenset({"object", "O", "builtins.object", "numpy.object_"})


class UninitializedMemory(Rule):
    """DET309: what happens to memory that nothing was written to."""

    codes = ("DET309",)
    filled = remembered(bool)
    """Whether parameters may be filled through the module that they belong to."""
    parameters = remembered(list[tuple[Where, str, str]])
    contents = marks_values()

    # ------------------------------------------------------------------------------------ reading

    def read(self, value: v.Value | None, whole: bool = True) -> None:
        """Elements of a value are read; all of them, or some."""
        memory = _watched(self.run, value)
        if memory is None:
            return
        state = memory.data
        if whole_of(value) is not value:
            # Other items than this one may have been written, and in a loop this one in an earlier round.
            whole = False
            if any(loop.start > memory.birth for loop in self.run.loops):
                return
        if state is not None and (not whole or not _misses_rows(self.run, state)):
            return
        self.contents[memory] = "reported"
        node = memory.node
        if node is None or memory.file is None:
            return
        place = Where(self.run, node, memory.api)
        place.site = place.site._replace(path=memory.file.path)
        name = node_text(node, memory.api)
        zeros = "numpy.zeros" if memory.api.startswith("numpy.") else "torch.zeros"
        some = f"{_written_rows(state)} " if isinstance(state, str) else ""
        message = f"`{name}` is read before {some or 'it is '}written: its contents are uninitialized"
        if some:
            message = f"`{name}` is read when only {some}was written: the rest is uninitialized"
        if isinstance(state, str) and state.startswith(_TRY):
            message = f"`{name}` is read with elements that an exception left unwritten: their contents are uninitialized"
        elif isinstance(state, str) and f":{ANY}:" in state:
            message = f"`{name}` is read although {_left_out(state)} was never written: its contents are uninitialized"
        help = f"use `{zeros}`, or write every element before reading"
        if _is_parameter(self.run, value):
            if self.run.entry is None and not _filled_by_nobody(self.run, memory.file, node):
                # Whoever builds the module may fill its parameters.
                return
            if self.run.entry is None or _is_being_made(self.run):
                self.parameters.append((place, message, help))
            elif not self.filled:
                # What fills it after that changes nothing, such as the best weights, loaded once training ends.
                self.report("DET309", place, message, help, subject=place.subject)
        else:
            self.report("DET309", place, message, help, subject=memory.api)

    @on(OperatorEvent)
    def operator(self, event: OperatorEvent) -> None:
        """An operator is applied."""
        self.read(event.left)
        self.read(event.right)

    @on(ItemEvent)
    def item(self, event: ItemEvent) -> None:
        """An element is read."""
        if _is_state(event.owner):
            self.filled = True
        self._address(event.owner)
        memory = _watched(self.run, event.owner)
        if memory is None:
            return
        if memory.data is None and has_known_items(self.run, event.owner):
            if _is_number(memory, event):
                self.read(event.owner)
            elif isinstance(event.owner, v.Obj) and event.owner.type == shapes.TENSOR:
                # What is done to the item is followed.
                return
        if memory.data is None or str(memory.data).startswith((_PART, _MASK, _TRY)):
            # A view may be written through, which is not followed.
            self.contents[memory] = "written"

    def _address(self, value: v.Value | None) -> None:
        """The address of memory is taken, by an attribute of an array or by one of that: who gets it may write there."""
        while isinstance(value, v.Member):
            memory = _watched(self.run, value.owner)
            if (
                memory is not None
                and self.run.kb.role(f"{memory.api}.{value.name}", "gives-address") is not None
            ):
                self.contents[memory] = "written"
            value = value.owner

    def _lose(self, value: v.Value | None) -> None:
        """It is no longer followed what is done to an item."""
        memory = _watched(self.run, value) if whole_of(value) is not value else None
        if memory is not None and memory.data is None:
            self.contents[memory] = "written"

    # ------------------------------------------------------------------------------------ writing

    @on(ItemUpdateEvent)
    def update_item(self, event: ItemUpdateEvent) -> None:
        """``owner[index] += value`` reads what it adds to."""
        self._one_of(event.owner)
        self.read(event.owner, whole=False)
        self.read(event.value)

    @on(ItemWriteEvent)
    def write_item(self, event: ItemWriteEvent) -> None:
        """An element is written."""
        owner, index, value, node = event
        self._one_of(owner)
        memory = _watched(self.run, owner)
        if memory is None:
            return
        if value is not owner and not _is_counted(self.run, node):
            self.read(value)
        state = memory.data
        if state in ("written", "reported") or not isinstance(owner, (v.Obj, v.Member)):
            return
        caught = goes_on_without(self.run, node, memory)
        if caught is not None and (state is None or str(state).startswith(_PARTLY)):
            self.contents[memory] = f"{_TRY}{caught[0]}-{caught[1]}"
        elif str(state).startswith(_TRY):
            # What was left out may be written now.
            self.contents[memory] = "written"
        else:
            self.contents[memory] = _after_write(self.run, memory, owner, state, index, node)

    def _one_of(self, owner: v.Value) -> None:
        """One of several allocations is written to, which one is not known: each may have been."""
        if isinstance(owner, v.AnyOf):
            for one in owner.values:
                memory = _watched(self.run, one)
                if memory is not None:
                    self.contents[memory] = "written"

    @on_object_attribute("data")
    def replaced(self, event: ObjectAttributeEvent) -> None:
        """The memory of a tensor is replaced."""
        memory = _watched(self.run, event.owner)
        if memory is not None:
            self.contents[memory] = "written"

    # -------------------------------------------------------------------------------------- calls

    @on_call_if(lambda rule, api: not _FILLING.isdisjoint(rule.run.kb.by_role(api)))
    def fills(self, event: CallEvent) -> None:
        """Something is called that fills parameters, or elements where a condition holds."""
        roles = self.run.kb.by_role(event.api)
        if "fills-parameters" in roles:
            self.filled = True
        partly = roles.get("writes-where")
        if partly is not None and _writes_some(event.args):
            new = not _is_given(event.args, partly)
            into = None if new else _watched(self.run, event.args.get(partly.arg, partly.pos))
            written = argument_node(event.node, partly.arg, partly.pos)
            if _writes_others(self.run, event.node, written):
                return
            given = f"without `{partly.arg}=`" if new else ""
            if into is not None and not into.data:
                given = f"into `{into.api}()`"
            if given:
                self.report(
                    "DET309",
                    event.node,
                    f"`{call_text(event)}` with `where=` and {given}: elements where the condition is false are "
                    "uninitialized",
                    f"pass `{partly.arg}=`, filled with what these elements shall be",
                    subject=event.api,
                )

    @on_call_with_objects
    def call(self, event: CallEvent) -> None:
        """Something is called."""
        roles = self.run.kb.by_role(event.api)
        given = () if "saves-checkpoint" in roles or "copies" in roles else event.args.values()
        if any(map(_is_state, (event.owner, *given))):
            # What a state dictionary holds are the parameters, which may be filled there.
            self.filled = True
        owner = _watched(self.run, event.owner)
        name = event.api.rpartition(".")[2]
        for one in (event.owner, *given):
            self._address(one)
        if owner is not None and "gives-address" in roles:
            self.contents[owner] = "written"
        if owner is not None and not roles.keys() & {"views", "copies", "looks-only"}:
            changes = name.endswith("_") and not name.endswith("__") and "updates" not in roles
            # Parts may be written, which is not followed.
            if changes or not roles.keys().isdisjoint(("writes", "parts")):
                self.contents[owner] = "written"
            else:
                self.read(event.owner)
        if not roles.keys().isdisjoint(("holds", "views", "copies")):
            for one in (event.owner, *event.args.values()):
                self._lose(one)
        applied = roles.get("calls-on-class")
        if not roles.keys().isdisjoint(("looks-only", "holds", "views", "copies")) or (
            applied is not None and is_followed(event.owner, applied)
        ):
            return
        reads = "reads" in roles and "parts" not in roles and "writes" not in roles and not name.endswith("_")
        reads = reads and not (name[:1].isupper() and _is_filled_later(self.run))
        updates = roles.get("updates")
        updated = event.args.get(updates.arg, updates.pos) if updates is not None and updates.arg else None
        # Elements that were written may be the ones that are updated.
        self.read(updated, whole=False)
        ignored = roles.get("ignores")
        unread = None
        if ignored is not None and all_hold(event.args, ignored.when) is True:
            unread = ignored.arg if ignored.arg in event.args.kw else ignored.pos
        for at, value in enumerate(event.args.pos):
            if type(value) in _MAY_HOLD and value is not updated and at != unread:
                self._hand_over(value, reads)
        for key, value in event.args.kw.items():
            if type(value) in _MAY_HOLD and value is not updated and key != unread:
                self._hand_over(value, reads and key != "out")

    def _hand_over(self, value: v.Value, reads: bool) -> None:
        """An argument is given to a call that only ``reads`` it, or may fill it: an initializer, a collective, ``out=``."""
        if isinstance(value, v.Items):
            given: Iterable[v.Value] = value.elts
        else:
            given = value.items.values() if isinstance(value, v.Mapping) else v.alternatives(value)
        for one in given:
            memory = _watched(self.run, one)
            if memory is None:
                continue
            if reads:
                self.read(one)
            elif memory.data is None or str(memory.data).startswith(_PARTLY):
                self.contents[memory] = "written"

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Parameters and buffers may be filled through the module that they belong to."""
        if self.filled:
            return
        for place, message, help in self.parameters:
            self.report("DET309", place, message, help, subject=place.subject)

    @on(IterationEvent)
    def iterated(self, event: IterationEvent) -> None:
        """The parameters of a module are looked at one by one: they may be filled."""
        value = event.value
        self._lose(value)
        if isinstance(value, v.Obj) and not self.filled:
            if value.api.rpartition(".")[2] in (
                "parameters",
                "named_parameters",
                "buffers",
                "modules",
                "named_buffers",
            ):
                self.filled = True


def _is_being_made(run: RunView) -> bool:
    """Whether an instance is made now, whose parameters may be filled when it is there."""
    frame: Frame | None = run.frame
    while frame is not None and (frame.func is None or frame.func.fn.name != "__init__"):
        frame = frame.caller
    return frame is not None


def _is_state(value: v.Value | None) -> bool:
    """Whether a value is the state dictionary of a module."""
    return isinstance(value, v.Obj) and value.api.endswith(".state_dict")


def _is_filled_later(interp: RunView) -> bool:
    """Whether the running function writes elements of what the running statement makes, as ``table.loc[row, column]``."""
    made = interp.statement
    if not isinstance(made, m.Assign) or not isinstance(made.targets[0], m.Name):
        return False
    return _writes_items(interp, made.targets[0].id)


def _writes_items(interp: RunView, name: str, since: int = 0) -> bool:
    """Whether the running function writes elements of a variable, behind a place in the file."""
    return any(
        isinstance(target, m.Subscript)
        and isinstance(target.value, m.Name)
        and f"{target.value.id}.".startswith(f"{name}.")
        for one in nodes(interp.frame.body)
        if isinstance(one, m.Assign) and one.start >= since
        for target in one.targets
    )


def _writes_others(interp: RunView, node: m.Call, into: m.Expr | None) -> bool:
    """Whether elements of what a call writes to, or gives, are written behind it: those where its condition is false."""
    made = interp.statement
    if into is None and isinstance(made, m.Assign) and made.value is node:
        into = made.targets[0]
    return isinstance(into, m.Name) and _writes_items(interp, into.id, node.end)


def _writes_some(args: v.Args) -> bool:
    """Whether a call writes only where a condition holds."""
    where = args.kw.get("where")
    return where is not None and v.truth(where) is not True


def _is_given(args: v.Args, role: RoleEntry) -> bool:
    """Whether a call is given the memory that it writes to."""
    return bool(
        role.arg in args.kw or (role.pos is not None and role.pos < len(args.pos)) or args.star or args.dstar
    )


def _is_parameter(interp: RunView, value: v.Value | None) -> bool:
    while value is not None:
        if isinstance(value, v.Obj) and interp.kb.role(value.api, "holds") is not None:
            return True
        value = value.owner if isinstance(value, v.Member) else behind(value) or viewed(value)
    return False


def _filled_by_nobody(interp: RunView, file: ModuleFile, node: m.Call) -> bool:
    """Whether a parameter that a class makes in code that no entry point reaches is one that nothing in the project
    may fill: the class is named nowhere, and no other method of it hands the parameter to a call."""
    if file.path in interp.imported_files:
        return False
    facts = interp.whole(file)
    made = next(
        (fn for fn in facts.functions if fn.cls >= 0 and any(x is node for x in nodes(fn.body))), None
    )
    if made is None or made.name != "__init__" or facts.classes[made.cls].decorators:
        return False
    attribute = _kept_as(made, node)
    if not attribute:
        return False
    name = facts.classes[made.cls].name
    bodies = [statement for fn in facts.functions for statement in fn.body]
    bases = [base for cls in facts.classes for base in cls.bases]
    named = sum(isinstance(x, m.Name) and x.id.partition(".")[0] == name for x in nodes([*bodies, *bases]))
    supers = sum(
        called_name(x) == "super" and any(isinstance(arg, m.Name) and arg.id == name for arg in x.args)
        for x in nodes(bodies)
        if isinstance(x, m.Call)
    )
    if named > supers:
        return False
    others = (fn for fn in facts.functions if fn.cls == made.cls and fn.name not in ("__init__", "forward"))
    return not any(_hands_on(fn, attribute) for fn in others)


def _kept_as(made: m.Function, node: m.Call) -> str:
    """The attribute under which a constructor keeps what a call gives, empty where that is not seen."""
    for one in nodes(made.body):
        if isinstance(one, m.Assign) and any(x is node for x in nodes([one.value])):
            target = one.targets[0]
            return target.id.partition(".")[2] if isinstance(target, m.Name) else ""
        if called_name(one) in ("register_parameter", "register_buffer") and any(
            x is node for x in nodes([one])
        ):
            first = one.args[0] if one.args else None
            return first.value if isinstance(first, m.Const) and isinstance(first.value, str) else ""
    return ""


def _hands_on(fn: m.Function, attribute: str) -> bool:
    """Whether a method passes an attribute of its instance to a call, assigns it, or calls a method of it."""
    full = f"self.{attribute}"
    for one in nodes(fn.body):
        given = [*one.args, *(k.value for k in one.keywords)] if isinstance(one, m.Call) else []
        targets = one.targets if isinstance(one, m.Assign) else []
        called = one.func.id if isinstance(one, m.Call) and isinstance(one.func, m.Name) else ""
        if called.startswith(f"{full}.") or any(
            isinstance(x, m.Name) and (x.id == full or x.id.startswith(f"{full}."))
            for x in (*given, *targets)
        ):
            return True
    return False


_MAY_HOLD = frozenset({v.Obj, v.Member, v.Items, v.Mapping, v.AnyOf})
"""What may be uninitialized memory, or some of several values that are. Most arguments are none of it."""


def _watched(interp: RunView, value: v.Value | None) -> v.Obj | None:
    """The uninitialized memory that a value uses, None for anything else."""
    value = whole_of(value)
    if not isinstance(value, (v.Obj, v.Member)) or not followed(interp, value):
        return None
    memory = root(interp, value)
    if memory is None or interp.kb.role(memory.api, "allocates") is None or memory.data == "reported":
        return None
    args = memory.args
    if memory.api.startswith("torch.") and memory.api.endswith("Tensor"):
        # torch.Tensor(2, 3) allocates; torch.Tensor(list) copies.
        first = args.pos[0] if args.pos else v.NONE
        if len(args.pos) < 2 and not (isinstance(first, v.Lit) and isinstance(first.value, int)):
            return None
    sizes = _sizes(memory)
    if (sizes is not None and 0 in sizes) or _has_zero(memory):
        return None
    if "buffer" in args.kw or interp.contexts.within(_META):
        return None
    device = args.kw.get("device")
    if isinstance(device, v.Lit) and device.value == "meta":
        return None
    return None if _holds_objects(args) else memory


def _has_zero(memory: v.Obj) -> bool:
    """Whether a size that is written out is zero where others are not known: ``torch.empty(1, 0, *rest)``."""
    first, args = memory.args.get("size", 0), memory.args
    given = first.elts if isinstance(first, v.Items) else args.pos if args.star else []
    return any(isinstance(one, v.Lit) and type(one.value) is int and one.value == 0 for one in given)


def _is_number(memory: v.Obj, event: ItemEvent) -> bool:
    """Whether an item of an array is a number, which is no view of it."""
    sizes, key = _sizes(memory), event.key
    keys = key.elts if isinstance(key, v.Items) else [key]
    return (
        memory is event.owner
        and memory.api.startswith("numpy.")
        and sizes is not None
        and len(keys) == len(sizes)
        and all(map(shapes.is_whole_number, keys))
    )


def _holds_objects(args: v.Args) -> bool:
    """Whether an array is one of Python objects, which is filled with None."""
    dtype = args.get("dtype", 1)
    if isinstance(dtype, v.Lit):
        return dtype.value in _OBJECTS
    return isinstance(dtype, v.Ext) and dtype.name in _OBJECTS


# ------------------------------------------------------------------------------------------ parts


def _misses_rows(interp: RunView, state: Any) -> bool:
    if not isinstance(state, str):
        return False
    if state.startswith(_TRY):
        # Where it raised, the rest of the statement does not run.
        first, _, last = state[len(_TRY) :].partition("-")
        return interp.statement is None or not int(first) <= interp.statement.start < int(last)
    if state.startswith(_ROW):
        key, _, part = state[len(_ROW) :].partition("|")
        return bool(part) or any(loop.key == key for loop in interp.loops)
    return state.startswith((_PART, _MASK)) and not _may_be_all(state)


def _may_be_all(state: str) -> bool:
    """Whether of a dimension of unknown size several rows were written, one after the other from the first one: it may
    have no more, as the coordinates of points."""
    _, _, rows = state.partition(f":{ANY}:")
    first, _, last = rows.partition("-")
    return first == "0" and last.isdecimal() and 0 < int(last) < ANY // 2


def _written_rows(state: str) -> str:
    if state.startswith(_MASK):
        return "what a comparison selects "
    part = state.partition("|")[2] if state.startswith(_ROW) else state
    if not part or state.startswith(_TRY):
        return "some of its rows"
    _, dimension, size, rows = part.split(":")
    return f"index {rows} of {size} in dimension {dimension}"


def _left_out(state: str) -> str:
    """The rows of a dimension of unknown size that were not written, as a phrase."""
    _, dimension, _, rows = state.rpartition("|")[2].split(":")
    written = _numbers(rows)
    left = [row if row < ANY // 2 else row - ANY for row in range(ANY) if row not in written]
    shown = ", ".join(map(str, left[:_MOST_FROM_END])) if len(left) <= _MOST_FROM_END else "a part"
    return (
        f"index {shown} of dimension {dimension}" if shown != "a part" else f"a part of dimension {dimension}"
    )


def _after_write(
    interp: RunView, memory: v.Obj, owner: v.Value, state: Any, index: v.Value, node: Any
) -> str:
    """What is known after ``owner[index] = ...``."""
    direct = owner is memory or isinstance(owner, v.Member) or behind(owner) is not None
    if not direct and isinstance(owner, v.Obj) and interp.kb.role(owner.api, "holds") is None:
        # Through a view: which rows these are is not followed.
        return "written"
    if isinstance(node, m.Subscript) and isinstance(node.index, m.Compare) and len(node.index.ops) == 1:
        # In a loop each round may select others.
        again = any(loop.start > memory.birth for loop in interp.loops)
        return f"{_MASK}{node.start}" if state is None and not again else "written"
    sizes = _sizes(memory)
    found = _one_index(interp, index, node)
    if owner is memory and (
        found is None or sizes is None or found[0] >= len(sizes) or sizes[found[0]] is None
    ):
        rows = _rows_from_ends(interp, memory, index, node)
        if rows is not None:
            # A dimension whose size is not known.
            return _with_rows(state, rows[0], ANY, rows[1])
    if found is None:
        return "written"
    dimension, selected = found
    size = sizes[dimension] if sizes is not None and dimension < len(sizes) else None
    if selected is None:
        component = _component(node, dimension)
        loop = next((one for one in reversed(interp.loops) if counts(interp, one, component)), None)
        if loop is None:
            return "written"
        here = f"{_ROW}{loop.key}"
        if isinstance(state, str) and state.partition("|")[0] == here:
            return state
        counted = _counted_rows(interp, loop)
        if counted is None or size is None or size > _MOST_ROWS or not counted <= set(range(size)):
            return here if state is None else "written"
        part = _with_rows(state, dimension, size, counted)
        return f"{here}|{part}" if part != "written" else here if state is None else "written"
    if size is None or not 0 < size <= _MOST_ROWS:
        return "written"
    if isinstance(selected, int):
        if not -size <= selected < size:
            return "written"
        selected = slice(selected % size, selected % size + 1)
    return _with_rows(state, dimension, size, set(range(size)[selected]))


def _with_rows(state: Any, dimension: int, size: int, rows: set[int]) -> str:
    """What is known when more rows of a dimension have been written."""
    if isinstance(state, str):
        part = state.partition("|")[2] if state.startswith(_ROW) else state
        kind, *known = part.split(":")
        if f"{kind}:" != _PART or known[:2] != [str(dimension), str(size)]:
            return "written"
        rows |= _numbers(known[2])
    if len(rows) == size:
        return "written"
    return f"{_PART}{dimension}:{size}:{_as_ranges(sorted(rows))}" if rows else "written"


def _numbers(ranges: str) -> set[int]:
    """The numbers of ``I,J-K``."""
    found: set[int] = set()
    for one in ranges.split(","):
        first, _, last = one.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _as_ranges(rows: list[int]) -> str:
    ranges: list[list[int]] = []
    for row in rows:
        if ranges and ranges[-1][1] == row - 1:
            ranges[-1][1] = row
        else:
            ranges.append([row, row])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)


def _one_index(interp: RunView, index: v.Value, node: Any) -> tuple[int, int | slice | None] | None:
    """The dimension, and the row or rows of it where they are known, that an index selects; None for anything else."""
    if not isinstance(node, m.Subscript):
        return None
    parts = node.index.elts if isinstance(node.index, m.Seq) else [node.index]
    values = index.elts if isinstance(node.index, m.Seq) and isinstance(index, v.Items) else [index]
    if len(parts) != len(values):
        return None
    found: tuple[int, int | slice | None] | None = None
    for dimension, (part, value) in enumerate(zip(parts, values, strict=True)):
        if is_whole(part):
            continue
        if found is not None:
            return None
        if isinstance(part, m.Slice):
            bounds = [_bound(interp, one) for one in (part.lower, part.upper, part.step)]
            if any(one is v.UNKNOWN for one in bounds) or bounds[2] == 0:
                return None
            found = (dimension, slice(*bounds))
        elif isinstance(value, v.Lit) and isinstance(value.value, int) and not isinstance(value.value, bool):
            found = (dimension, value.value)
        elif isinstance(part, m.Name) and (value is v.UNKNOWN or shapes.is_whole_number(value)):
            found = (dimension, None)
        else:
            return None
    return found


def _is_counted(interp: RunView, node: Any) -> bool:
    """Whether as many rows are written as a variable counts, from the first one: what grows is copied into a larger
    allocation, as far as it has been filled."""
    if not isinstance(node, m.Subscript):
        return False
    part = node.index.elts[0] if isinstance(node.index, m.Seq) and node.index.elts else node.index
    if not isinstance(part, m.Slice) or part.step is not None or _bound(interp, part.lower) not in (None, 0):
        return False
    return isinstance(part.upper, m.Name) and _bound(interp, part.upper) is v.UNKNOWN


def _bound(interp: RunView, node: Any) -> Any:
    """A bound of a slice: a number, None where there is none, UNKNOWN."""
    if node is None:
        return None
    if any(isinstance(one, (m.Call, m.Subscript)) for one in nodes([node])):
        return v.UNKNOWN
    names = {one.id.partition(".")[0] for one in nodes([node]) if isinstance(one, m.Name)}
    if any(names & set(assigned_names(loop.stmt)) for loop in interp.loops):
        return v.UNKNOWN
    value = interp.value_of(node)
    # What an option gives by default, another run may set otherwise.
    return (
        value.value
        if isinstance(value, v.Lit) and type(value.value) is int and not value.option
        else v.UNKNOWN
    )


# --------------------------------------------------------------------- dimensions of unknown size


End = tuple[bool, int]
"""A row: whether it is counted from the end, and its number."""


def _rows_from_ends(interp: RunView, memory: v.Obj, index: v.Value, node: Any) -> tuple[int, set[int]] | None:
    """The dimension, and the rows of ``ANY``, that ``owner[index] = ...`` writes in all rounds of its loop, where they
    are counted from the two ends."""
    if not isinstance(node, m.Subscript) or memory.file is not interp.frame.file:
        return None
    parts = node.index.elts if isinstance(node.index, m.Seq) else [node.index]
    whole = [is_whole(one) for one in parts]
    if whole.count(False) != 1:
        return None
    dimension = whole.index(False)
    part = parts[dimension]
    sizes = names_of_size(interp, memory, node, dimension)
    first: End | None
    last: End | None
    if isinstance(part, m.Slice):
        if part.step is not None:
            return None
        first, last = _end(interp, part.lower, sizes, (False, 0)), _end(interp, part.upper, sizes, (True, 0))
    else:
        number = whole_number(part)
        if number is not None:
            first = (number < 0, number)
            last = (number < 0, number + 1)
        else:
            first, last = _counted_ends(interp, part, sizes)
    if first is None or last is None:
        return None
    if max(abs(first[1]), abs(last[1])) > _MOST_FROM_END:
        return None
    start, stop = (number + ANY if from_end else number for from_end, number in (first, last))
    if not 0 <= start < stop <= ANY:
        return None
    return dimension, set(range(start, stop))


def _counted_ends(interp: RunView, part: Any, sizes: set[Size]) -> tuple[End | None, End | None]:
    """The first row, and the one after the last, to which a loop comes that counts in ``part``, or in what a constant
    is added to there."""
    offset = 0
    if isinstance(part, m.BinOp) and part.op in ("+", "-"):
        number = whole_number(part.right)
        if number is None:
            return None, None
        part, offset = part.left, number if part.op == "+" else -number
    loop = interp.loops[-1] if interp.loops else None
    # An `if` in the loop may leave out any row, and an inner loop may have another number of rounds.
    if (
        loop is None
        or interp.branching
        or not isinstance(part, m.Name)
        or not counts(interp, loop, part.id)
        or part.id in assigned_names(loop.stmt)
    ):
        return None, None
    called = loop.stmt.iter
    if called_name(called) != "range" or called.keywords or not 0 < len(called.args) < 3:
        return None, None
    bounds = [_end(interp, one, sizes, None) for one in called.args]
    first: End | None = bounds[0] if len(bounds) == 2 else (False, 0)
    moved = [one if one is None else (one[0], one[1] + offset) for one in (first, bounds[-1])]
    return moved[0], moved[1]


def _end(interp: RunView, node: Any, sizes: set[Size], default: End | None) -> End | None:
    """A bound as a row counted from one of the ends."""
    if node is None:
        return default
    number = whole_number(node)
    if number is not None:
        return number < 0, number
    if isinstance(node, m.BinOp) and node.op in ("+", "-"):
        inner, number = _end(interp, node.left, sizes, None), whole_number(node.right)
        if inner is None or number is None:
            return None
        return inner[0], inner[1] + (number if node.op == "+" else -number)
    return (True, 0) if size_of(interp, node) & sizes else None


def _component(node: Any, dimension: int) -> str:
    part = node.index.elts[dimension] if isinstance(node.index, m.Seq) else node.index
    return part.id if isinstance(part, m.Name) else ""


def _counted_rows(interp: RunView, loop: Any) -> set[int] | None:
    """The numbers that a loop over a range counts to, None where they are not known."""
    called, target = loop.stmt.iter, loop.stmt.target
    if not isinstance(target, m.Name) or called_name(called) != "range" or called.keywords:
        return None
    bounds = [_bound(interp, one) for one in called.args]
    if not 0 < len(bounds) <= 3 or any(one is v.UNKNOWN for one in bounds) or bounds[2:] == [0]:
        return None
    if target.id in assigned_names(loop.stmt):
        return None
    counted = range(*bounds)
    return set(counted) if len(counted) <= _MOST_ROWS else None


def _sizes(memory: v.Obj) -> shapes.Sizes | None:
    """The sizes that an allocation was given."""
    if memory.form is not None and memory.form.sizes is not None:
        return memory.form.sizes
    if memory.api.endswith("Tensor"):
        return tuple(_number(one) for one in memory.args.pos)
    if not memory.api.endswith((".empty", ".ndarray", ".new_empty")):
        return None
    given = memory.args.get("shape", 0)
    if isinstance(given, v.Lit) and len(memory.args.pos) > 1 and memory.api.endswith(".new_empty"):
        return tuple(_number(one) for one in memory.args.pos)
    elts = given.elts if isinstance(given, v.Items) and not given.open else [given]
    return tuple(_number(one) for one in elts)


def _number(value: v.Value | None) -> int | None:
    return value.value if isinstance(value, v.Lit) and isinstance(value.value, int) else None
