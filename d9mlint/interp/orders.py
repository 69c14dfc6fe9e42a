"""The order of elements as a taint.

A sequence, a mapping or a library object carries an ``Order`` where the order of its elements is arbitrary, with
the places that this comes from. It is made by the sources of ``rules/knowledge/orders.yaml`` and by iterating a
set; calls, comprehensions, operators and loops hand it on; sorting ends it. Where it decides a result, its places
are noted as decided, and the rules report them when the run has ended.

A loop over an arbitrary order makes what it adds to older containers arbitrary too. Inside of it a count is an
``index``: a number that depends on the order as long as the loop runs.

Orders are part of the tracked heap: a call is not replayed where an order that it read is another one.
"""

from __future__ import annotations

import operator
import sys
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

from d9mlint.interp import (
    annotated_kinds,
    columns,
    compared_elements,
    number_uses,
    order_cells,
    order_coded,
    order_cuts,
    order_encoded,
    order_files,
    order_folders,
    order_growth,
    order_identifiers,
    order_inside,
    order_keyed,
    order_labels,
    order_lone,
    order_looks,
    order_positions,
    order_shares,
    order_single,
    order_sorting,
    order_sums,
    order_tables,
    order_ties,
    shapes,
    tensors,
)
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold, any_holds
from d9mlint.interp.clocks import is_time
from d9mlint.interp.heap import FIELD, HEAP
from d9mlint.interp.idle import is_idle_dataset, takes_nothing
from d9mlint.interp.library.queues import filled_by_several, is_endless
from d9mlint.interp.order_identifiers import IDENTIFIER
from d9mlint.interp.order_kinds import (
    ANY,
    CELL,
    NUMBER,
    OBJECT,
    TEXT,
    is_text,
    kind_of,
    kind_of_elements,
    takes_key_by_address,
)
from d9mlint.interp.order_names import returns_names
from d9mlint.interp.order_reductions import (
    PASSED_THROUGH,
    REDUCED,
    is_only_returned,
    use_of_array,
    use_of_returned,
)
from d9mlint.interp.order_sorting import LENGTH, SORTING
from d9mlint.interp.passed_on import ENUMERATE, passed_on
from d9mlint.interp.places import Where, function, running
from d9mlint.interp.reduced_sets import is_reduced
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo
from d9mlint.ir.forms import FORM
from d9mlint.ir.growing import GROWING
from d9mlint.ir.liveness import is_only_tested
from d9mlint.ir.scopes import assigned_names, carried_names, target_names
from d9mlint.ir.traversal import alike, called_name, nodes, parents, receiver, statements, tries

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from d9mlint.interp.frames import Frame
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import OrderEntry
    from d9mlint.project.modules import ModuleFile

SEQUENCE, NESTED, INNER, HASH = "sequence", "nested", "inner", "hash"
INDEX = order_files.NUMBERED
"""What is arbitrary: the order of the elements; that and the order in each element; only the latter; a number; a
value of ``hash``."""

TENSOR = "torch.Tensor"
MIXED = -1
ALWAYS = sys.maxsize
"""The loop of a number that depends on an order also where its loop has ended."""
SHUFFLED = sys.maxsize // 2
"""What is added to the site of an order that has been shuffled: what was in one order with it is so no longer."""
MAX_PARTS = 64
MAX_NESTING = 3

Key = tuple[str, str, int, int]
"""What names a place that an order comes from: rule, path, start and end."""


class Order(NamedTuple):
    """An arbitrary order. ``loop`` is the start of the loop that an index belongs to; ``site`` the place of the call
    of the project that gave it: what one call gave came about together. It is a negative number for a folder, see
    ``order_folders``, and ``MIXED`` where several were merged."""

    keys: tuple[Key, ...]
    kind: str = SEQUENCE
    loop: int = 0
    site: int = 0

    def goes_with(self, other: Order) -> bool:
        """Whether both are one order: they came about at one place, or are two listings of one folder."""
        if self.site == other.site:
            return self.keys == other.keys or self.site < MIXED
        return self.keys == other.keys and min(self.site, other.site) < MIXED and 0 in (self.site, other.site)

    def together(self, others: list[Order]) -> Order:
        """This order and others as one."""
        return merge((self, *others)) or self


class Origin(NamedTuple):
    """Where an order came about. ``elements`` says what a set has: ``text``, ``object``, ``cell`` or nothing known;
    ``any`` where the order differs in each process whatever they are. ``lone``
    is whether one entry alone is taken, of those that a pattern or the folder of an item may have only one of. ``reduced``
    is whether a set is what another one has in common with something, or has not. ``names`` is whether the function in
    which it comes about returns the names in a listing and nothing else of it. ``inside`` is whether it is that of sets
    which are elements of something that is gone through."""

    place: Where
    what: str
    help: str
    sortable: bool = False
    elements: str = ""
    confidence: str = "high"
    node: Any = None
    lone: bool = False
    reduced: bool = False
    names: bool = False
    inside: bool = False


class Numbered(NamedTuple):
    """A variable of a module, or an attribute (with a dot before its name) of instances of a class in a file, with numbers
    by order of arrival: they count if anything reads it."""

    file: ModuleFile
    name: str
    order: Order


class Loop:
    """A loop that runs over an arbitrary order. Objects born before ``start`` are older than it; ``before`` are the
    values that names had, which the loop assigns and its rounds carry on. ``given`` is the name that it gives each
    element, unless it is among the names ``assigned`` in its body. ``draws`` is whether it draws something, ``figures``
    whether it begins or ends figures, ``zeroes`` whether it sets gradients to zero: then each round has its own.
    ``graph_draws`` is whether it adds draws to a graph of TensorFlow, ``graphs`` whether each of its rounds has its own
    graph. ``cuts`` are where statements start that end it after so many rounds. ``stmt`` is the loop, if it is a ``for``
    statement. ``taken`` are names of what is taken in each round. ``entry`` is the variable that stands for another
    element in each round, and ``drawn`` are tests that one round alone passes which then draws something. ``site`` is
    that of the order of what it runs over, and ``numbers`` the order of its variable where that is the number of the
    element that each round takes."""

    __slots__ = (
        "assigned",
        "before",
        "counters",
        "cuts",
        "drawn",
        "draws",
        "entry",
        "env",
        "figures",
        "given",
        "graph_draws",
        "graphs",
        "names",
        "numbers",
        "order",
        "site",
        "start",
        "stmt",
        "taken",
        "zeroes",
    )

    def __init__(
        self,
        order: Order,
        env: v.Env,
        before: dict[str, v.Value],
        stmt: m.For | m.While | None,
        start: int | None = None,
    ) -> None:
        HEAP.clock += 1
        self.start = start if start is not None else HEAP.clock
        self.order = order
        self.env = env
        self.before = before
        self.given = ""
        self.stmt = stmt if isinstance(stmt, m.For) else None
        self.assigned = assigned_names(stmt) if stmt is not None else frozenset[str]()
        self.names, self.counters = order_sums.names_of(stmt)
        inner = self.counters | _counted_up(stmt)
        self.taken = self.assigned - inner if start is not None else order_sums.given_by(stmt)
        self.site = order.site
        self.draws = self.figures = self.zeroes = self.graph_draws = self.graphs = False
        self.cuts: frozenset[int] = frozenset()
        self.entry: order_lone.Entry | None = None
        self.drawn: set[int] = set()
        self.numbers: Order | None = None


class Rounds(NamedTuple):
    """A loop that is running: its scope, the values that names had which its rounds carry on, when it began, how many loops
    over arbitrary orders there were then, and its statement, None for a comprehension."""

    env: v.Env
    before: dict[str, v.Value]
    start: int
    loops: int
    stmt: m.For | m.While | None


_TO_LIST = "add the number of the item with each result, and sort by it or collect by key"
_TO_FILE = (
    "let each task return its result or write its own file, and write the results in the order of the items"
)


class Orders:
    """The orders of one run. ``excused`` are places that another rule reports, or that turn out to be harmless;
    ``holders`` are attributes of datasets of the project that were given an arbitrary order; ``kept`` is data in arbitrary
    order that the program may still sort, ``settled`` what it has sorted; ``keyed`` are the orders that the key functions
    of sorts look at, by the nodes of the sorts, and ``ranked`` the identifiers that they give; ``cells`` are those
    of sets that functions give for each element of a column, by the nodes of the calls; ``turning`` is whether any
    loop has been found to deal with whatever is ready first; ``tied`` are sorts by a length, which several elements may
    have; ``fractions`` are operators with a float, by their nodes; ``fed`` is what layers with weights were given whose
    gradients are recorded; ``pairs`` are comparisons of arrays, element by element, by their nodes; ``named`` are orders,
    with the calls that gave them, of names that a function has listed; ``folders`` are those that were listed;
    ``lone`` are running loops that are not among
    ``loops``, because one round of each comes to what is running now; ``remedy`` is what to do about a set that the call
    which is running goes through, where a fixed order of the elements alone does not help."""

    def __init__(self, knowledge: Knowledge) -> None:
        self.kb = knowledge
        self.origins: dict[Key, Origin] = {}
        self.decided: dict[Key, None] = {}
        self.excused: set[Key] = set()
        self.holders: list[tuple[v.Inst, str]] = []
        self.kept: list[v.Obj] = []
        self.settled: list[v.Obj] = []
        self.numbered: list[Numbered] = []
        self.keyed: dict[int, Order] = {}
        self.ranked: dict[int, Order] = {}
        self.cells: dict[int, Order] = {}
        self.tied: set[int] = set()
        self.turning = False
        self.fractions: set[int] = set()
        self.fed: dict[Key, None] = {}
        self.pairs: set[int] = set()
        self.named: set[tuple[Key, int]] = set()
        self.folders: order_folders.Folders = {}
        self.loops: list[Loop] = []
        self.lone: list[order_lone.Lone] = []
        self.rounds: list[Rounds] = []
        self.remedy = ""

    @property
    def any(self) -> bool:
        """Whether anything in the run has had an arbitrary order. It stays true."""
        return bool(self.origins)

    def key(self) -> Any:
        """What a remembered call depends on besides what it reads."""
        if not self.origins:
            return 0
        begun = self.rounds[-1].start if self.turning and self.rounds else 0
        return (1, begun, *(loop.start for loop in self.loops))

    # ------------------------------------------------------------------------------------- reading

    def _begun(self) -> Iterator[Loop]:
        """The loops that are running, also those of which one round alone comes here."""
        yield from self.loops
        for one in self.lone:
            yield one.loop

    def of(self, value: v.Value | None) -> Order | None:
        """The order that a value carries."""
        if type(value) in _PLAIN:
            return None
        if isinstance(value, (v.Obj, v.Items, v.Mapping)):
            order = value.order
            if value.birth < HEAP.act.start:
                HEAP.read(value, FIELD, value, "order", order)
            if order is None or order.kind == IDENTIFIER:
                return None
            if (
                order.kind == INDEX
                and order.loop != ALWAYS
                and all(x.start != order.loop for x in self._begun())
            ):
                return None
            return order
        if isinstance(value, v.AnyOf):
            return self.merged(value.values)
        if isinstance(value, v.Member) and isinstance(value.owner, (v.Obj, v.Member)):
            # `frame.values`: an attribute that has the elements of its object.
            entry = self.kb.order(f"?.{value.name}", True)
            if entry is None:
                # `frame.id`: a column of a table.
                if isinstance(value.owner, v.Member):
                    return None
                has = self.kb.result_type(f"{value.owner.type}.column[]") and not self.kb.result_type(
                    f"{value.owner.type}.{value.name}"
                )
                return self.of(value.owner) if has else None
            return self.of(value.owner) if entry.role == "carry" else None
        return None

    def merged(self, values: Any) -> Order | None:
        """The orders of several values together."""
        return merge(self.of(one) for one in values)

    def deep(self, value: v.Value | None, depth: int = 0) -> Order | None:
        """The order of a value and, for a short sequence, of its elements."""
        own = self.of(value)
        if isinstance(value, v.Items) and value.kind != "s" and depth < MAX_NESTING:
            return merge((own, *(self.deep(part, depth + 1) for part in value.elts[:MAX_PARTS])))
        if isinstance(value, v.Mapping) and 0 < depth < MAX_NESTING:
            return merge((own, *(self.deep(x, depth + 1) for x in list(value.items.values())[:MAX_PARTS])))
        return own

    def remaining(self, value: v.Value, loops: Sequence[Loop | None], depth: int = 0) -> v.Value:
        """What remains of a round of loops, also when they have ended: a number that they have given depends on their order
        there too."""
        if not self.origins or depth == MAX_NESTING:
            return value
        if isinstance(value, v.AnyOf):
            given = [self.remaining(one, loops, depth + 1) for one in value.values]
            return value if all(map(operator.is_, given, value.values)) else v.join(given)
        if isinstance(value, v.Items) and value.kind == "t":
            given = [self.remaining(one, loops, depth + 1) for one in value.elts]
            if all(map(operator.is_, given, value.elts)):
                return value
            return self.carried(v.Items("t", given, value.open), self.of(value))
        order = self.of(value) if isinstance(value, v.Obj) else None
        if (
            order is None
            or order.kind != INDEX
            or all(one is None or one.start != order.loop for one in loops)
        ):
            return value
        return self.carried(v.UNKNOWN, order._replace(loop=ALWAYS))

    def handed_out(self, value: v.Value, depth: int = 0) -> Order | None:
        """The order of what a caller that is not known gets: it looks up in a mapping by key, so that only the orders in
        its items count."""
        if isinstance(value, v.AnyOf):
            return merge(self.handed_out(one, depth) for one in value.values)
        own = self.of(value)
        if (isinstance(value, v.Mapping) or _counts_keys(value)) and own is not None and own.kind == SEQUENCE:
            own = None
        inner: Any = ()
        if depth < MAX_NESTING:
            if isinstance(value, v.Items) and value.kind != "s":
                inner = value.elts[:MAX_PARTS]
            elif isinstance(value, v.Mapping):
                inner = list(value.items.values())[:MAX_PARTS]
        return merge((own, *(self.handed_out(one, depth + 1) for one in inner)))

    def iterated(self, interp: Interp, value: v.Value, node: Any, loop: m.For | None = None) -> Order | None:
        """The order in which a value is iterated; that of a set comes about here."""
        if isinstance(value, v.AnyOf):
            return merge(self.iterated(interp, one, node, loop) for one in value.values)
        if isinstance(value, v.Items) and value.kind == "s":
            return self._of_set(interp, value, node, loop)
        order = self.of(value) if self.origins else None
        return None if order is not None and order.kind in (INDEX, INNER, SORTING) else order

    def iterated_inside(self, interp: Interp, value: v.Items, node: Any) -> Order | None:
        """The order in which one of the sets is iterated that something goes through which has them as elements."""
        return self._of_set(interp, value, node, None, inside=True)

    def _of_set(
        self, interp: Interp, value: v.Items, node: Any, loop: m.For | None, inside: bool = False
    ) -> Order | None:
        if not value.open and len(value.elts) < 2:
            return None
        kind = kind_of_elements(interp, value, node) or annotated_kinds.of_elements(interp, node)
        if kind == NUMBER or (not kind and loop is not None and number_uses.gives_numbers(interp, loop)):
            return None
        if not kind and compared_elements.have_numbers(interp.frame.body, node):
            return None
        if not kind and columns.are_texts(interp, node):
            kind = TEXT
        elif not kind and columns.has_cells(value.elts):
            kind = CELL
        order = self.made(interp, "DET210", node, "", self.remedy, elements=kind, inside=inside)
        # An import may have been followed by another run, in which other things were made.
        return (
            order if interp.importing or inside else order._replace(site=order_folders.number_of_set(value))
        )

    def _are_numbers(self, order: Order | None) -> None:
        """What a set of unknown elements gave turns out to be numbers, whose hashes are the same in every run."""
        for key in order.keys if order is not None and order.kind == SEQUENCE else ():
            if key[0] == "DET210" and self.origins[key].elements in ("", CELL):
                self.excused.add(key)

    # ------------------------------------------------------------------------------------- sources

    def made(
        self,
        interp: Interp,
        rule: str,
        node: Any,
        what: str,
        help: str,
        *,
        sortable: bool = False,
        elements: str = "",
        confidence: str = "high",
        subject: str = "set",
        kind: str = SEQUENCE,
        lone: bool = False,
        names: bool = False,
        inside: bool = False,
    ) -> Order:
        """An order that comes about here."""
        if not hasattr(node, "start"):
            node = _placed(node) or interp.statement
        site = interp.here(node)
        key = (rule, site.path, site.start, site.end)
        known = self.origins.get(key)
        place = Where(interp, node, subject) if known is None or known.place.aside else known.place
        if known is None or len(place.given) < len(known.place.given):
            # It also comes about where fewer options have to be given.
            reduced = rule == "DET210" and is_reduced(interp, node)
            self.origins[key] = Origin(
                place, what, help, sortable, elements, confidence, node, lone, reduced, names, inside
            )
        elif elements == TEXT and known.elements in ("", CELL):
            # Of the callers of a function, this one passes texts.
            self.origins[key] = known._replace(elements=elements)
        return Order((key,), kind)

    def put(self, value: v.Value, order: Order | None) -> None:
        """Let a value carry an order from now on."""
        if isinstance(value, (v.Obj, v.Items, v.Mapping)) and value.order != order:
            HEAP.write(value, FIELD, value, "order", order, value.order)
            value.order = order

    def computed(self, interp: Interp, layer: str, args: v.Args, result: v.Obj) -> v.Value:
        """What a layer computes from data, which is in the order of that. What it learns depends on the order, too."""
        order = self.merged(args.values())
        if order is None or order.kind != SEQUENCE:
            return result
        known = interp.kb.tensor(layer)
        if known is not None and known.grad == "weights" and not tensors.no_gradient(interp):
            self.fed.update(dict.fromkeys(order.keys))
        return self.carried(result, order)

    def carried(self, value: v.Value, order: Order | None) -> v.Value:
        """A result that has this order: the value itself if it is new, else one that stands for it."""
        if order is None:
            return value
        if isinstance(value, (v.Obj, v.Items, v.Mapping)):
            self.put(value, merge((value.order, order)))
            return value
        if value is v.UNKNOWN or isinstance(value, (v.Member, v.AnyOf)):
            result = v.Obj("?", "?")
            result.order = order
            return result
        return value

    def behind_options(self, value: v.Value) -> Order | None:
        """The order that a value carries, as far as it comes about only where options are given."""
        order = self.of(value)
        keys = [key for key in order.keys if self._is_aside(key)] if order is not None else []
        return order._replace(keys=tuple(keys)) if order is not None and keys else None

    def _is_aside(self, key: Key) -> bool:
        origin = self.origins.get(key)
        return origin is not None and bool(origin.place.aside)

    # ------------------------------------------------------------------------------------- deciding

    def decide(self, order: Order | None) -> None:
        """A result depends on this order."""
        if order is not None and order.kind != IDENTIFIER:
            for key in order.keys:
                self.decided[key] = None

    def decide_loops(self, since: int | None = None) -> None:
        """Something happens here whose result depends on the order of the loops around it, but for those that had begun at
        a time from which on each round does the same."""
        for loop in self.loops:
            if since is None or loop.start > since:
                self.decide(loop.order)
        for one in self.lone:
            one.loop.drawn.add(id(one.test))

    def add_draw(self, since: int | None) -> None:
        """A draw is added to a graph: likewise, unless each round has its own graph, with its own seed and numbering."""
        for loop in self.loops:
            if since is None or loop.start > since:
                loop.graph_draws = True

    def around(self, birth: int) -> Order | None:
        """The order of the loops that are younger than an object."""
        return merge(loop.order for loop in self.loops if birth < loop.start)

    # ------------------------------------------------------------------------------------- loops

    def enter(
        self, interp: Interp, value: v.Value, node: Any, stmt: m.For | None = None, comp: m.Comp | None = None
    ) -> Loop | None:
        """A loop over a value begins."""
        order = self.iterated(interp, value, node, stmt)
        numbered = order_positions.taken_by_number(interp, value, node, stmt, comp) if self.origins else None
        if numbered is not None and numbered.kind not in (SEQUENCE, NESTED):
            numbered = None
        order = order or numbered
        if order is None or (stmt is not None and _sorts_walk(interp, value, stmt)):
            return None
        if stmt is not None and order_looks.takes_no_element(interp, stmt, _is_enumerated(value)):
            return None
        env = interp.frame.env
        before = {}
        if stmt is not None:
            before = {name: env.vars[name] for name in carried_names(stmt) if name in env.vars}
        site = order.site
        if site < MIXED:
            site = order_folders.through(self.folders, site, stmt, comp)
        loop = Loop(Order(order.keys, site=site), env, before, stmt)
        self.loops.append(loop)
        if numbered is not None:
            loop.numbers = Order(order.keys, INDEX, loop.start, order.site)
        if stmt is not None:
            loop.cuts = order_cuts.cuts(stmt, _is_enumerated(value))
            loop.entry = order_lone.entry(interp, value, stmt) if numbered is None else None
            for name in _counted_up(stmt):
                if _is_int(before.get(name)):
                    index = v.Obj("?", "?")
                    index.order = Order(loop.order.keys, INDEX, loop.start, loop.site)
                    env.vars[name] = index
        return loop

    def count_through(self, interp: Interp, stmt: m.While) -> Loop | None:
        """A loop begins that may take the elements of something one by one, by a number that it counts up itself."""
        found = order_positions.counted_through(interp, stmt) if self.origins else None
        if found is None or found[1].kind not in (SEQUENCE, NESTED):
            return None
        name, order = found
        env = interp.frame.env
        before = {one: env.vars[one] for one in carried_names(stmt) if one in env.vars}
        loop = Loop(Order(order.keys, site=order.site), env, before, stmt)
        self.loops.append(loop)
        loop.numbers = Order(order.keys, INDEX, loop.start, order.site)
        env.vars[name] = self.carried(v.Obj(shapes.NUMBER), loop.numbers)
        return loop

    def _gives(self, interp: Interp, name: str) -> Order | None:
        """The order of the loop of this function that gives elements this name."""
        env = interp.frame.env
        return next((one.order for one in reversed(self.loops) if one.given == name and one.env is env), None)

    def leave(self, loop: Loop) -> None:
        """A loop ends."""
        drawn = loop.graph_draws and not loop.graphs
        if (loop.draws and not loop.figures) or drawn or len(loop.drawn) > 1:
            self.decide(loop.order)
        if loop in self.loops:
            del self.loops[self.loops.index(loop) :]

    def element(
        self, interp: Interp, iterated: v.Value, loop: Loop | None, element: v.Value, target: m.Expr
    ) -> v.Value:
        """What a loop over a value gives: folders of a walk have arbitrary names, a count is an index."""
        if loop is not None and loop.numbers is not None:
            return self.carried(element, loop.numbers)
        if loop is not None and isinstance(target, m.Name) and target.id not in loop.assigned:
            loop.given = target.id
        walk = _walk_of(interp, iterated) or _sorted_walk(interp, iterated)
        if walk is not None:
            return self._walked(walk)
        if loop is not None:
            counted = Order(loop.order.keys, INDEX, loop.start, loop.site)
            numbered = self._numbered(iterated, element, counted)
            if numbered is not None:
                return numbered
        order = self.of(iterated)
        if order is not None and order.kind == SORTING:
            return self.carried(element if isinstance(element, v.Obj) else v.UNKNOWN, order)
        if order is not None and order.kind in (NESTED, INNER) and not isinstance(iterated, v.Mapping):
            inner_order = Order(order.keys)
            if isinstance(target, m.Seq):
                # The items of a mapping: names, and lists in arbitrary order.
                rest = [self.carried(v.UNKNOWN, inner_order) for _ in target.elts[1:]]
                return v.Items("t", [v.UNKNOWN, *rest])
            return self.carried(element, inner_order)
        return element

    def _numbered(self, iterated: v.Value, element: v.Value, counted: Order) -> v.Value | None:
        """An element of what numbers its elements, with the order that such a number has; None for other things."""
        if _is_enumerated(iterated):
            index = v.Obj("?", "?")
            index.order = counted
            inner = element.elts[1] if isinstance(element, v.Items) and len(element.elts) == 2 else v.UNKNOWN
            return v.Items("t", [index, inner])
        if not _is_zipped(iterated) or not any(map(_numbers_rounds, iterated.args.pos)):
            return None
        given = element.elts if isinstance(element, v.Items) else [v.UNKNOWN] * len(iterated.args.pos)
        return v.Items(
            "t",
            [
                self.carried(v.UNKNOWN, counted) if _numbers_rounds(part) else one
                for one, part in zip(given, iterated.args.pos, strict=False)
            ],
        )

    def element_for_task(self, iterated: v.Value, element: v.Value) -> v.Value:
        """What a function gets that is called for each element: a number depends on the order of what has these elements, as
        does what the function makes of it."""
        order = self.of(iterated) if self.origins else None
        if order is None or order.kind not in (SEQUENCE, NESTED):
            return element
        return self._numbered(iterated, element, Order(order.keys, INDEX, ALWAYS, order.site)) or element

    def is_number_of_task(self, value: v.Value) -> bool:
        """Whether a function gives a number, alone or beside other things, that ``element_for_task`` has given to it."""
        order = self.deep(value) if self.origins else None
        return order is not None and order.kind == INDEX and order.loop == ALWAYS

    def _walked(self, walk: v.Obj) -> v.Value:
        parts: list[v.Value] = [v.UNKNOWN]
        for _ in range(3 if walk.api.endswith("fwalk") else 2):
            names = v.Obj(order_single.NAMES_OF_WALK, "list")
            names.order = walk.order
            parts.append(names)
        return v.Items("t", parts)

    # ------------------------------------------------------------------------------------- calls

    def call(
        self,
        interp: Interp,
        api: str,
        args: v.Args,
        node: Any,
        result: v.Value,
        owner: v.Value | None = None,
    ) -> v.Value:
        """The result of a library call, with the order that it has."""
        entry = interp.kb.order(api, owner is not None)
        if entry is not None and entry.gives in ("set", "sets"):
            result = order_inside.made_sets(interp, entry, result)
        elif entry is not None and entry.gives == "element" and owner is None:
            result = order_inside.chosen_set(args, result)
        elif entry is not None and entry.role == "fill" and owner is not None:
            order_inside.note_texts(interp, args, owner)
        self.remedy = entry.help if entry is not None and entry.role == "carry" else ""
        try:
            if owner is not None:
                order_cells.called(interp, api, args, node, result, owner)
                if self.folders:
                    self._changed(api, owner)
            if not self.origins:
                return self._called(interp, entry, api, args, node, result, owner)
            ranked = order_identifiers.ranked(interp, entry, api, args, node, owner)
            result = self._called(interp, entry, api, args, node, result, owner)
            return order_identifiers.called(self, entry, api, args, result, owner, ranked)
        finally:
            self.remedy = ""

    def _called(
        self,
        interp: Interp,
        entry: OrderEntry | None,
        api: str,
        args: v.Args,
        node: Any,
        result: v.Value,
        owner: v.Value | None,
    ) -> v.Value:
        if not self.origins and (
            entry is None
            or (
                entry.role in _LATE
                and not (entry.key and entry.key in args.kw)
                and not _any_set(args, owner)
                and not order_encoded.converts(entry, args)
                and entry.flattens in ("", "arrays")
                and not (interp.sharing and entry.role == "grow")
                and not (interp.sharing_files and entry.role == "write")
            )
        ):
            return result
        role = entry.role if entry is not None else ""
        if entry is not None and order_encoded.converts(entry, args):
            self.decide(order_encoded.order_of(interp, entry, args, node))
        if entry is not None and entry.library and not _is_of(interp, entry.library, owner):
            entry, role = None, ""
        if entry is not None and role != "type" and not _applies(entry, args, owner):
            role = entry.otherwise or ("" if role != "sink" and not entry.looked_up else "carry")
            if entry.gives == "turns" and entry.elements == OBJECT:
                return order_inside.waited_for(interp, args, node, api, result)
        elif entry is not None and entry.looked_up:
            args = order_sorting.look_up(self, entry, args)
        if entry is not None and entry.tested:
            for argument, place in entry.tested.items():
                order_sorting.settle(self, args.get(argument, place), asked=True)
        if entry is not None and entry.numbers and self.origins and args.pos:
            if order_single.has_elements_of_set(interp, _argument_node(node, 0), running(interp)):
                self._are_numbers(self.of(args.pos[0]))
        if entry is not None and entry.prompts:
            for given_text in args.values():
                self.decide(order_inside.order_of_texts(interp, given_text))
        if role == "source":
            assert entry is not None
            if entry.pattern is not None:
                given = node.args[entry.pattern] if len(getattr(node, "args", ())) > entry.pattern else None
                if order_single.names_one(interp, given, running(interp)):
                    return result
                named = args.pos[entry.pattern] if len(args.pos) > entry.pattern else None
                if order_identifiers.of(named) is not None and order_single.is_item(interp, node):
                    # What this run has just given a name that no other file has.
                    return result
            return self._source(interp, entry, api, args, node, result, owner)
        if entry is None and self.origins:
            self.decide(order_files.named_by_number(interp, args, node))
        if entry is not None and entry.key and takes_key_by_address(interp, args.kw.get(entry.key)):
            place = node if role == "end" else getattr(node, "func", node)
            order = self.made(interp, entry.rule, place, entry.what, entry.help, subject=entry.id)
            if role == "settle" and owner is not None:
                self.put(owner, order)
                return result
            return self.carried(result, order)
        if entry is not None and entry.key in args.kw:
            at = entry.iterated
            written = node.args[at] if len(getattr(node, "args", ())) > at else node
            given = owner if owner is not None else args.get("", at)
            if self._keeps_ties(interp, entry, args, node, given or v.UNKNOWN, written):
                # Of elements that are equally long, the first one stays the first.
                if role == "settle":
                    return result
                if given is not None and len(args.pos) == at + 1 and owner is None:
                    # Of several that are the longest, `max` gives the first one.
                    return self.carried(result, self.iterated(interp, given, written))
        if role == "end":
            if api == LENGTH:
                return self._counted(interp, args, node, result)
            if api == "builtins.sorted" and self.origins and args.pos:
                ranked = order_sorting.positions(self.keyed.pop(id(node), None))
                given = args.pos[0]
                order_sorting.settle(self, given)
                inner = None if isinstance(given, v.Mapping) else self._inner(self.of(given))
                return self.carried(result, inner or ranked)
            found = None
            if entry is not None and entry.gives == "element" and owner is None and self.origins:
                found = order_positions.found_by_key(interp, args, node, entry.key)
            if found is not None:
                return self.carried(v.Obj(shapes.NUMBER), found)
            if entry is not None and entry.sorts:
                self._sorted(owner if owner is not None else args.get("", 0), args)
            elif owner is not None and v.truth(args.kw.get("inplace", v.FALSE)):
                self.put(owner, None)
            return result
        if role == "argsort":
            ranked = merge((self.of(owner), self._given(interp, args, node, True)))
            for value in (owner, *args.values()):
                order_sorting.settle(self, value)
            return self.carried(result, order_sorting.positions(ranked))
        if role == "sum":
            if isinstance(args.get("start", 1), v.Items):
                # Lists, one behind the other.
                return self.carried(result, self._given(interp, args, node, True))
            self._added(interp, args)
            return result
        if role == "tally":
            given = [self.of(value) for value in args.values()]
            first, second = given[:2] if len(given) > 1 else (None, None)
            if first is not None and second is not None and _are_one(first, second):
                # Both are in one order: the pairs are the same in any.
                return result
            if self.origins and interp.unread(node):
                return result
            role = "sink"
        if role == "pair":
            return self._zipped(interp, args, node, result)
        if role == "type" and entry is not None and entry.of_file and self.origins:
            # Which file it is may depend on an order.
            return self.carried(result, self._given(interp, args, node, False))
        if role == "points":
            self._placed(args)
            return result
        if role == "type" and entry is not None and entry.finds and self.origins:
            found = self._place_found(interp, args, node, owner)
            return self.carried(v.Obj(shapes.NUMBER), found) if found is not None else result
        if role == "type" and owner is not None and self.origins:
            # The same number, taken out of the tensor that it is.
            held = self.of(owner)
            return (
                self.carried(result, held)
                if held is not None and held.kind == order_positions.PLACE
                else result
            )
        if role == "type" or (role == "" and owner is None and not self.origins):
            return result
        if api == _MAPPING and args.pos and _is_numbered(args.pos[0]):
            # `dict(enumerate(names))`, `dict(zip(names, range(9)))`
            numbered = self.of(args.pos[0])
            if numbered is not None:
                self.arrived(interp, node, numbered)
        if role in ("", "carry", "sink") and self.origins and order_sorting.taken(self, args, owner):
            return result
        if role == "sink" and entry is not None and entry.gives in ("shuffled", "permuted") and self.origins:
            mixed = self._mixed(args)
            if mixed is not None:
                mixed = mixed._replace(site=SHUFFLED + getattr(node, "start", 0))
                if entry.gives == "permuted":
                    return self.carried(result, mixed)
                self.put(args.pos[0], mixed)
                return result
        if owner is not None:
            if api.endswith(_STEPS) and (walk := _walk_of(interp, owner)) is not None:
                return self._walked(walk)
            return self._method(interp, entry, role, api, args, node, result, owner)
        stores = role == "sink" and entry is not None and not entry.until_sorted
        given = self._given(
            interp, args, node, role in ("carry", "sink", "draw"), tables=role != "", stores=stores
        )
        if entry is not None and entry.flattens not in ("", "arrays"):
            given = merge((given, order_inside.chained(interp, entry, args, node)))
        if stores and self.origins and interp.kb.role(api, "stores-data") is not None:
            given = merge((given, order_inside.of_state(interp, args)))
        if role == "sink":
            if api == "builtins.next":
                walk = _walk_of(interp, args.pos[0]) if args.pos else None
                if walk is not None:
                    return self._walked(walk)
            if given is not None and (
                _taken_from_one(interp, node) or order_positions.is_given_by_test(node)
            ):
                return result
            if (
                api == "builtins.next"
                and given is not None
                and given.kind == SEQUENCE
                and self._exhausts(node)
            ):
                self._take_turns(given)
                return result
            if api == "builtins.next" and given is not None and isinstance(_argument_node(node, 0), m.Call):
                # `next(iter(files))`: no other part of the program goes on with what is left.
                if self._is_of_listing(given) and order_looks.is_only_raised(interp, node, running(interp)):
                    return result
            if given is not None and order_labels.is_taken_by_label(interp, node, args, running(interp)):
                # What stands under a label may have an order inside.
                given = merge(self._inner_of(one) for one in args.values())
            given = merge((given, self._accumulated(interp, node)))
            if given is not None and entry is not None and entry.reducible:
                if order_labels.is_counted_by_label(interp, node, running(interp)):
                    return result
                use = use_of_array(interp, node, args.get("", 0), running(interp))
                if use == REDUCED:
                    if entry.flattens:
                        order_sorting.settle(self, result)
                    return result
                if use == PASSED_THROUGH:
                    return self.carried(result, given)
            if given is not None and entry is not None and entry.table:
                if order_tables.is_in_any_order(interp, node, running(interp)):
                    return self.carried(result, given)
            if given is not None and entry is not None and takes_nothing(interp, entry, node):
                return result
            return self._decisive(entry, given, result)
        elif role == "draw":
            self.decide(given)
            for loop in self.loops:
                loop.draws = True
        elif role == "figure":
            for loop in self.loops:
                loop.figures = True
        elif role == "show":
            self._shown(interp, given)
            if given is not None and not self.loops and all(_is_all(interp, x) for x in args.pos):
                # Nothing but texts of a set, or rows, in their order: that is what the program puts out.
                self.decide(self._of_each_process(given))
            for chosen in filter(None, (self._chosen(interp, one) for one in args.pos)):
                self.decide(self._of_each_process(chosen))
            if any(not isinstance(value, v.Lit) for value in args.pos):
                for loop in self.loops:
                    self._shown(interp, loop.order, within=True)
            file = args.kw.get("file")
            if file is not None and not isinstance(file, v.Ext):
                self.decide(merge((given, self._written_sets(interp, args.pos, node))))
                if self.loops:
                    self._written(interp, file, node)
        elif role == "carry" or role == "":
            if api == ENUMERATE and args.pos and isinstance(args.pos[0], v.Items) and args.pos[0].kind != "s":
                # The elements that it hands out have their orders themselves.
                given = self.of(args.pos[0])
            if is_set(result) or (given is not None and given.kind == INDEX and role == ""):
                return result
            if given is not None and given.site < MIXED and api in _LEAVING_OUT:
                given = given._replace(site=0)
            folded = entry is not None and entry.commutes and _is_folded(interp, node)
            return self.carried(result, merge((given, None if folded else self._accumulated(interp, node))))
        return result

    def _mixed(self, args: v.Args) -> Order | None:
        """The order of what is shuffled as a whole: all of its elements are there afterwards, in an order that depends on
        the one before."""
        value = args.pos[0] if args.pos and not args.star else None
        order = self.of(value) if isinstance(value, (v.Obj, v.Items)) and not is_set(value) else None
        return order if order is not None and order.kind in (SEQUENCE, NESTED) else None

    def _inner_of(self, value: v.Value) -> Order | None:
        """The orders of the items of a mapping, or that of another value."""
        if isinstance(value, v.Mapping):
            return merge(self.deep(one) for one in list(value.items.values())[:MAX_PARTS])
        return self.of(value)

    def _changed(self, api: str, owner: v.Value) -> None:
        """What is added to a listing, or taken out of it, is not in the folder, or still there."""
        order = self.of(owner) if api.rpartition(".")[2] in _CHANGING else None
        if order is not None and order.site < MIXED:
            self.put(owner, order._replace(site=0))

    def _decisive(self, entry: OrderEntry | None, given: Order | None, result: v.Value) -> v.Value:
        """A call whose result depends on this order, unless the program sorts it afterwards."""
        if entry is not None and entry.until_sorted and given is not None and isinstance(result, v.Obj):
            self.kept.append(result)
            return self.carried(result, given)
        self.decide(given)
        return result

    def _source(
        self,
        interp: Interp,
        entry: OrderEntry,
        api: str,
        args: v.Args,
        node: Any,
        result: v.Value,
        owner: v.Value | None,
    ) -> v.Value:
        from d9mlint.interp.text import node_text

        if entry.gives == "taken" and not filled_by_several(owner):
            return result
        name = node_text(node, api)
        order = self.made(
            interp,
            entry.rule,
            node,
            entry.what.replace("{name}", name),
            _help(interp, entry, node, owner),
            sortable=entry.sortable,
            confidence=entry.confidence,
            subject=api if not api.startswith("?.") else api[2:],
            kind=IDENTIFIER if entry.gives == "identifier" else SEQUENCE,
            elements=ANY if entry.each_process else "",
            lone=(entry.sortable or entry.one_folder) and order_single.may_be_lone(interp, entry, node),
            names=entry.rule == "DET209" and returns_names(interp, node, running(interp)),
        )
        if entry.gives in ("turns", "taken"):
            self._take_turns(order)
            return result
        folder = order_folders.listed(entry, args, owner)
        # An import may have been followed by another run.
        if folder is not None and not interp.importing:
            order = order._replace(site=order_folders.number(self.folders, entry, folder, interp.here(node)))
        return self.carried(result, order)

    def _take_turns(self, order: Order) -> None:
        """The rounds of the innermost loop that is running, in this function or in one that called it, have an
        arbitrary order from here on."""
        self.turning = True
        if self.rounds:
            begun = self.rounds[-1]
            self.loops.append(Loop(Order(order.keys), begun.env, begun.before, begun.stmt, begun.start))

    def _empties(self, node: Any) -> bool:
        """Whether the innermost loop goes on until a container is empty of which each round takes an element: whatever
        comes first, all of them are dealt with."""
        stmt = self.rounds[-1].stmt if self.rounds else None
        taken = receiver(node) if isinstance(node, m.Call) else ""
        if not isinstance(stmt, m.While) or not taken or all(one is not node for one in nodes(stmt.body)):
            return False
        if any(isinstance(one, m.Return) or _breaks(one) for one in nodes(stmt.body)):
            return False
        return any(isinstance(one, m.Name) and one.id == taken for one in nodes([stmt.test]))

    def _exhausts(self, node: Any) -> bool:
        """Whether the innermost loop takes one element in each round, from an iterator that is made before it, until
        there is none: nothing ends it but what handles that."""
        stmt = self.rounds[-1].stmt if self.rounds else None
        given = _argument_node(node, 0)
        if not isinstance(stmt, m.While) or not isinstance(given, m.Name) or len(node.args) > 1:
            return False
        if given.id.partition(".")[0] in assigned_names(stmt) or not _is_true(stmt.test):
            return False
        ends = {id(one) for one in nodes(stmt.body) if isinstance(one, m.Return) or _breaks(one)}
        guards = [one for one in tries(stmt) if any(part is node for part in nodes(one.body))]
        ends.difference_update(id(part) for one in guards for h in one.handlers for part in nodes(h.body))
        return not ends and any(part is node for part in nodes(stmt.body))

    def begin_rounds(self, interp: Interp, stmt: m.For | m.While | None) -> None:
        """A loop or a comprehension begins whose rounds may turn out to have an arbitrary order, see ``end_rounds``."""
        env = interp.frame.env
        before = {}
        if stmt is not None:
            before = {name: env.vars[name] for name in carried_names(stmt) if name in env.vars}
        HEAP.clock += 1
        self.rounds.append(Rounds(env, before, HEAP.clock, len(self.loops), stmt))

    def end_rounds(self) -> Order | None:
        """The loop ends; the order that its rounds have turned out to have."""
        begun = self.rounds.pop()
        order = merge(loop.order for loop in self.loops[begun.loops :] if loop.start == begun.start)
        del self.loops[begun.loops :]
        return order

    def _given(
        self,
        interp: Interp,
        args: v.Args,
        node: Any,
        iterates: bool,
        tables: bool = True,
        stores: bool = False,
    ) -> Order | None:
        """The order of the arguments of a call. Sets among them are iterated by what keeps or uses their order;
        unless ``tables``, values of dictionaries are looked up by key. What ``stores`` them stores dictionaries in
        dictionaries, too."""
        found: Order | None = None
        for index, value in enumerate(args.pos):
            if type(value) not in _PLAIN:
                order = self._argument(interp, value, node, index, iterates, tables, stores)
                if order is not None:
                    found = order if found is None else merge((found, order))
        for name, value in args.kw.items():
            if type(value) not in _PLAIN:
                order = self._argument(interp, value, node, name, iterates, tables, stores)
                if order is not None:
                    found = order if found is None else merge((found, order))
        return found

    def _argument(
        self,
        interp: Interp,
        value: v.Value,
        node: Any,
        place: int | str,
        iterates: bool,
        tables: bool,
        stores: bool,
    ) -> Order | None:
        if iterates and is_set(value):
            return self.iterated(interp, value, _argument_node(node, place))
        if not self.origins:
            return None
        if not tables and isinstance(value, (v.Mapping, v.AnyOf)):
            return self._by_position(value)
        if isinstance(value, v.AnyOf):
            # What is None unless a branch has filled it, for one.
            return merge(
                self._argument(interp, one, node, place, iterates, tables, stores)
                if isinstance(one, (v.Items, v.Mapping)) and not is_set(one)
                else self.of(one)
                for one in value.values
            )
        if iterates and isinstance(value, v.Mapping):
            # The columns of a frame, the fields of what is saved.
            fields = list(value.items.values())[:MAX_PARTS]
            return merge((self.of(value), *(self.deep(x, int(stores)) for x in fields)))
        return self.deep(value) if isinstance(value, v.Items) else self.of(value)

    def _method(
        self,
        interp: Interp,
        entry: OrderEntry | None,
        role: str,
        api: str,
        args: v.Args,
        node: Any,
        result: v.Value,
        owner: v.Value,
    ) -> v.Value:
        name = api.rpartition(".")[2]
        if role == "settle":
            if self.origins:
                self.put(owner, self._inner(self.of(owner)))
                order_sorting.settle(self, owner)
            return result
        if role == "write" and order_files.is_shared(interp, owner, node):
            self.decide(self._arrived_first(interp, node, _TO_FILE))
        if role == "grow":
            self._grown(interp, name, args, node, owner)
            # Tables do not grow: they give a longer one.
            longer = isinstance(owner, v.Obj) and isinstance(result, v.Obj) and result is not owner
            return self.carried(result, self.of(owner)) if longer else result
        if role == "fill":
            return self._filled(interp, args, node, result, owner)
        if role == "accumulate":
            loop = self.loop_older_than(owner) if self.loops else None
            if loop is not None and order_sums.is_float(interp, owner):
                self.decide(loop.order)
            return result
        if role == "sink" and name in ("pop", "popitem", "popleft"):
            if args.pos and order_positions.belongs(self.of(args.pos[0]), self.of(owner)):
                # What was looked for is taken out, wherever it is.
                return result
            taken = None
            if is_set(owner):
                taken = self.iterated(interp, owner, _owner_node(node))
            elif not isinstance(owner, v.Mapping) and name != "popitem" and not (args.pos and _named(args)):
                taken = self.of(owner)
            if taken is not None and taken.kind == SEQUENCE and self._empties(node):
                self._take_turns(taken)
            else:
                self.decide(taken)
            return result
        iterates = role in ("carry", "sink", "fit", "gradients") or (role == "step" and name != "update")
        given = self._given(interp, args, node, iterates) if self.origins or _any_set(args) else None
        if not self.origins:
            return result
        if role == "sink":
            if self.loops and entry is not None and entry.appends and all_hold(args, entry.appends):
                self._appended(interp, node)
            if given is not None and entry is not None and takes_nothing(interp, entry, node):
                return result
            place = self.of(owner)
            if entry is not None and entry.finds and place is not None and given is None:
                if place.kind == SEQUENCE and order_positions.is_index(running(interp), node):
                    return self.carried(v.Obj(shapes.NUMBER), place._replace(kind=order_positions.PLACE))
            return self._decisive(entry, merge((given, place)), result)
        if role == "zero-gradients":
            for loop in self.loops:
                loop.zeroes = True
            return result
        if role in ("step", "fit", "gradients"):
            self.decide(given)
            if role == "fit":
                built = self.of(owner)
                if built is not None and built.kind in (SEQUENCE, NESTED):
                    self.decide(built)
            made = oldest_part(owner) if self.loops and role != "gradients" else 0
            for loop in self.loops:
                # Gradients of one round alone decide something where a step is taken, and what is made in each round
                # begins anew.
                if made < loop.start and (role != "gradients" or not loop.zeroes):
                    self.decide(loop.order)
            return result
        if role == "write":
            self.decide(given)
            if self.loops:
                self._written(interp, owner, node)
            return result
        if role == "show":
            self._shown(interp, given)
            return result
        of_owner = self.of(owner)
        if role == "" and given is not None and given.kind == INDEX:
            given = None
        if role == "carry" or (of_owner is not None and isinstance(owner, v.Obj)):
            return self.carried(result, merge((of_owner, given)))
        return result

    def _place_found(self, interp: Interp, args: v.Args, node: Any, owner: v.Value | None) -> Order | None:
        """``sizes.argmax()``, where that is an index: it belongs to the order of the sizes, unless several elements may be
        the largest, of which the first one is found."""
        given = [*([owner] if owner is not None else []), *args.values()]
        order = self.of(given[0]) if len(given) == 1 else None
        if order is None or order.kind != SEQUENCE or not order_positions.is_index(running(interp), node):
            return None
        array = given[0].args.get("", 0) if isinstance(given[0], v.Obj) else given[0]
        if isinstance(array, v.Items) and any(order_ties.ties(interp, one) for one in array.elts):
            return None
        return order._replace(kind=order_positions.PLACE)

    def _sorted(self, value: v.Value | None, args: v.Args) -> None:
        """``frame.sort_values("id")``: the data, and what it was made from, is sorted."""
        order_sorting.settle(self, value)
        if value is not None and v.truth(args.kw.get("inplace", v.FALSE)):
            self.put(value, None)

    def _added(self, interp: Interp, args: v.Args) -> None:
        """``sum(losses)``: floats are added in their order."""
        order = self.of(args.pos[0]) if args.pos else None
        if order is not None and order.kind == SEQUENCE and order_sums.are_floats(interp, args.pos[0]):
            self.decide(order)

    def _of_each_process(self, order: Order) -> Order | None:
        """The part of an order that differs in each process, as that of a set of texts or of objects."""
        kinds = [(key, self.origins[key].elements) for key in order.keys]
        keys = tuple(
            key for key, kind in kinds if kind in (TEXT, ANY) or (kind == OBJECT and key[0] == "DET210")
        )
        return order._replace(keys=keys) if keys and order.kind == SEQUENCE else None

    def _chosen(self, interp: Interp, value: v.Value) -> Order | None:
        """The order that decides which element a value is, the smallest or largest of some that may be equal."""
        entry = interp.kb.order(value.api) if isinstance(value, v.Obj) and value.owner is None else None
        return self.of(value) if entry is not None and entry.gives == "element" else None

    def _inner(self, order: Order | None) -> Order | None:
        """What sorting the elements leaves: the order inside of each."""
        return Order(order.keys, INNER) if order is not None and order.kind in (NESTED, INNER) else None

    def _keeps_ties(
        self, interp: Interp, entry: OrderEntry, args: v.Args, node: Any, given: v.Value, source: m.Expr
    ) -> bool:
        """Whether a sort is by nothing but what several elements may have, such as a length."""
        by_function = id(node) in self.tied
        self.tied.discard(id(node))
        if by_function or not (self.origins or isinstance(given, v.Items)):
            return by_function
        written = next((one.value for one in getattr(node, "keywords", ()) if one.name == entry.key), None)
        return order_ties.keeps_ties(interp, args.kw[entry.key], written, given, source)

    def _counted(self, interp: Interp, args: v.Args, node: Any, result: v.Value) -> v.Value:
        """``len(ids)`` of something that the loop makes longer is an index."""
        if not self.loops or not args.pos or not isinstance(node, m.Call) or not node.args:
            return result
        loop = self.loop_older_than(args.pos[0])
        written = node.args[0]
        if loop is not None and isinstance(written, m.Name) and _grows(interp, written.id):
            index = v.Obj("?", "?")
            index.order = Order(loop.order.keys, INDEX, loop.start, loop.site)
            return index
        return result

    def loop_older_than(self, value: v.Value) -> Loop | None:
        """The innermost loop that began when a value was there already."""
        if not isinstance(value, (v.Obj, v.Items, v.Mapping, v.Inst)):
            return None
        return next((x for x in reversed(self.loops) if value.birth < x.start), None)

    def _zipped(self, interp: Interp, args: v.Args, node: Any, result: v.Value) -> v.Value:
        """``zip(a, b)``: what came about together stays together; anything else is paired at random."""
        written = node.args if isinstance(node, m.Call) else []
        orders = [
            self.iterated(interp, value, written[i] if i < len(written) else node)
            for i, value in enumerate(args.pos)
        ]
        known = [order for order in orders if order is not None]
        if not known:
            return result
        together = merge(known)
        first = known[0]
        # Numbers count the pairs, as those of an enumeration do.
        paired = [
            order
            for order, value in zip(orders, args.pos, strict=True)
            if order or not _numbers_rounds(value)
        ]
        if args.star or any(x is None or not x.goes_with(first) for x in paired):
            self.decide(together)
        return self.carried(result, together)

    def _placed(self, args: v.Args) -> None:
        """``scatter(x, y)``: points are the same in any order, unless their coordinates are in different ones."""
        across, up = args.get("x", 0), args.get("y", 1)
        if across is None or up is None:
            return
        first, second = self.of(across), self.of(up)
        if first is not None and second is not None:
            if not first.goes_with(second):
                self.decide(merge((first, second)))
        elif _counts_up(across if first is None else up):
            self.decide(first or second)

    def _accumulated(self, interp: Interp, node: Any) -> Order | None:
        """``data = concatenate([data, x])`` in a loop: the order of the loop is that of the data."""
        stmt = interp.statement
        if not self.loops or not isinstance(stmt, m.Assign) or stmt.value is not node:
            return None
        names = {t.id for t in stmt.targets if isinstance(t, m.Name)}
        loop = self.loops[-1]
        if loop.env is not interp.frame.env:
            return None
        given: Any = stmt.value
        names &= {one.id for one in nodes([given]) if isinstance(one, m.Name)}
        if loop.stmt is not None:
            names &= carried_names(loop.stmt)
        kept = any(name in loop.before or _begun_in_another_round(interp, loop, stmt, name) for name in names)
        return loop.order if kept else None

    def _shown(self, interp: Interp, order: Order | None, within: bool = False) -> None:
        """Printed: what a function has collected and returned counts, the names in a folder do not."""
        if order is None or order.kind == INDEX:
            return
        if order.kind == HASH or order.site >= SHUFFLED:
            # It has nothing in it that does not differ. What is shuffled is asked for in its new order.
            self.decide(order)
            return
        running = {(frame.func.file.path, frame.func.key[1]) for frame in interp.stack() if frame.func}
        running.add(function(interp))
        for key in order.keys:
            place = self.origins[key].place
            if (
                key[0] == "DET215"
                or (key[0] == "DET211" and not within)
                or (
                    place.function not in running
                    and place.function[1] != 0
                    and (key, order.site) not in self.named
                )
            ):
                self.decided[key] = None

    def _written(self, interp: Interp, owner: v.Value, node: Any) -> None:
        """Something is written to a file in a loop; one that is opened in each round has no order, unless what is
        written is added to it."""
        if isinstance(owner, v.Ext):
            return
        for one in (owner, *owner.args.pos[:1]) if isinstance(owner, v.Obj) else ():
            opened = interp.kb.order(one.api) if isinstance(one, v.Obj) else None
            if isinstance(one, v.Obj) and opened is not None and opened.appends:
                if all_hold(one.args, opened.appends):
                    self._appended(interp, one.node)
        if isinstance(owner, (v.Obj, v.Inst, v.Items, v.Mapping)):
            self.decide(self.around(owner.birth))
            return
        name = receiver(node).partition(".")[0] if isinstance(node, m.Call) else ""
        for loop in self.loops:
            if loop.env is not interp.frame.env or name not in loop.before:
                if name and name not in _assigned_in(interp, name):
                    self.decide(loop.order)

    def _appended(self, interp: Interp, node: Any) -> None:
        """Something is added to a file; in loops around that do not choose the file their order counts."""
        file = _argument_node(node, 0)
        for loop in self.loops:
            if file is not node and not order_files.is_chosen_by(interp, loop, file):
                self.decide(loop.order)

    def _filled(self, interp: Interp, args: v.Args, node: Any, result: v.Value, owner: v.Value) -> v.Value:
        """Something is added to an object of a library, such as a graph or a linear program, in its order."""
        given = self._given(interp, args, node, True)
        around = self.around(owner.birth) if self.loops and isinstance(owner, v.Obj) else None
        order = merge(
            one for one in (given, around) if one is not None and one.kind in (SEQUENCE, NESTED, INNER)
        )
        if order is not None:
            self.put(owner, merge((self.of(owner), Order(order.keys))))
        return self.carried(result, given) if given is not None else result

    def _grown(self, interp: Interp, name: str, args: v.Args, node: Any, owner: v.Value) -> None:
        """Something is added to a container."""
        if not self.origins and not _any_set(args) and not interp.sharing:
            return
        order: Order | None = None
        if name in ("extend", "extendleft", "update"):
            if not is_set(owner):
                order = self._given(interp, args, node, not isinstance(owner, v.Items) or owner.kind != "s")
        elif not is_set(owner):
            for value in args.values():
                inner = self.deep(value)
                if inner is not None and inner.kind == INDEX:
                    # An id, a label: it counts wherever it is kept.
                    self.decide(inner)
        if is_set(owner):
            return
        if self.loops:
            func = node.func if isinstance(node, m.Call) else None
            held: m.Expr | None = func.value if isinstance(func, m.Attr) else None
            if isinstance(func, m.Name) and "." in func.id:
                # `self.values.append(value)`
                held = m.Name(func.id.rpartition(".")[0], func.start, func.end)
            owner, around = self._kept(interp, owner, held)
            order = merge((order, around))
        if interp.sharing and _is_shared(interp, owner) and not _tells_of_failure(interp, node):
            order = merge((order, self._arrived_first(interp, node)))
        if order is not None and order.kind != INDEX:
            self.put(owner, merge((self.of(owner), order)))

    def _kept(self, interp: Interp, owner: v.Value, inner: Any) -> tuple[v.Value, Order | None]:
        """The container of which something is made longer that is written so, and the order in which loops do that."""
        kept, kind = _kept_in(interp, owner, inner)
        if not isinstance(kept, (v.Obj, v.Items, v.Mapping)):
            return owner, None
        around = self.around(kept.birth)
        if around is not None and interp.guessing and _is_of_unknown(interp, kept):
            # Each round may have another object.
            return kept, None
        if around is not None and kind == NESTED:
            if not all(order_keyed.has_own_item(interp, loop, inner) for loop in self._since(kept.birth)):
                around = Order(around.keys, NESTED)
        elif around is not None:
            # A list that no other round adds to has no order of the rounds.
            shared = [
                one for one in self._since(kept.birth) if not order_keyed.has_own_item(interp, one, inner)
            ]
            around = merge(one.order for one in shared)
        return kept, around

    def _since(self, birth: int) -> Iterator[Loop]:
        """The loops that are younger than a container."""
        return (loop for loop in self.loops if birth < loop.start)

    def item_grown(self, interp: Interp, stmt: m.AugAssign, held: v.Value, value: v.Value) -> None:
        """``lists[index] += value``: the list that is there grows, or one of which nothing is known."""
        given = self.iterated(interp, value, stmt.value)
        if given is not None and isinstance(held, v.Items):
            self.put(held, merge((held.order, Order(given.keys))))
        if self.loops:
            kept, around = self._kept(interp, held, stmt.target)
            if around is not None:
                self.put(kept, merge((self.of(kept), around)))

    def _arrived_first(self, interp: Interp, node: Any, help: str = _TO_LIST) -> Order:
        """The order in which several threads add to a list that they share, or to a file."""
        from d9mlint.interp.text import node_text

        name = node_text(node, "append")
        return self.made(
            interp,
            "DET211",
            node,
            f"`{name}` adds what any of several tasks has ready first, and that order is kept",
            help,
            subject="thread",
        )

    def decide_arrival(self, interp: Interp, target: m.Expr) -> None:
        """Several tasks add floating-point numbers to one that they share."""
        from d9mlint.interp.text import with_keys

        self.decide(
            self.made(
                interp,
                "DET211",
                target,
                f"several tasks add floating-point numbers to `{with_keys(target)}` in the order in which they are ready",
                "return the number of each task, and add them up in a fixed order",
                subject="thread",
            )
        )

    # ------------------------------------------------------------------------------------- expressions

    def subscripted(
        self, interp: Interp, value: v.Value, index: v.Value, node: m.Subscript, result: v.Value
    ) -> v.Value:
        """``value[index]``: a position in an arbitrary order decides, a key does not. What a list of positions or names
        selects comes in the order of the list."""
        order_identifiers.chosen(self, index)
        at = self.of(index)
        if at is not None:
            self.decide(self._chosen(interp, index))
        if at is not None and at.kind == order_positions.PLACE:
            if order_positions.belongs(at, self.of(value)):
                return result
            self.decide(at)
        if isinstance(index, v.Items) and isinstance(node.value, m.Name) and "." not in node.value.id:
            for part in index.elts:
                # Lists beside other indices choose rows and columns of an array, by their numbers.
                self._are_numbers(self.of(part))
        # None has no items.
        held = [one for one in v.alternatives(value) if v.is_none(one) is not True]
        value = held[0] if len(held) == 1 else value
        if isinstance(value, v.Items) and isinstance(node.index, m.Name):
            # The elements of lists and tuples have numbers.
            self._are_numbers(self._gives(interp, node.index.id))
        if self.loops and isinstance(value, v.Mapping) and _numbers_keys(interp, value):
            self.decide(self.around(value.birth))
        identifier = order_identifiers.of(value)
        if identifier is not None:
            return self.carried(result, identifier) if isinstance(value, v.Obj) else result
        selected = self._selected(value, index)
        if selected is not None and not _stored_back(interp, node):
            kept = v.Obj("?", value.type if isinstance(value, v.Obj) else "?") if result is value else result
            return self.carried(kept, merge((self.of(value), selected)))
        order = self.of(value)
        if order is None:
            order = self.deep(index)
            numbered = order is not None and order.kind in (INDEX, SORTING)
            return self.carried(result, order) if numbered else result
        if order.kind == INDEX:
            return result
        if order_sorting.covers(self.of(index), order):
            order_sorting.settle(self, value.owner if isinstance(value, v.Member) else value)
            return result
        if order.kind == SORTING or (isinstance(value, v.Member) and value.name == "str"):
            # Some of the positions; a part of each text.
            return self.carried(result, order)
        if order_sorting.SORT_KEY in interp.contexts:
            if isinstance(value, v.Mapping):
                # What a dict holds for a key is found there in whatever order its keys are.
                return result
            self.keyed[id(interp.sorting)] = merge((order, self.keyed.get(id(interp.sorting)))) or order
            return result
        if order.kind in (NESTED, INNER):
            return self.carried(result, Order(order.keys))
        if order.kind == HASH:
            return self.carried(result, order)
        walk = _walk_of(interp, value)
        if walk is not None:
            # The first folder is the one that is walked; the order of its names is arbitrary.
            return self._walked(walk) if isinstance(index, v.Lit) and index.value == 0 else result
        if isinstance(value, v.Items):
            if isinstance(index, v.Lit) and isinstance(index.value, str):
                return result
            if _triple_of_walk(value):
                return result
        elif held and all(isinstance(one, v.Mapping) or _counts_keys(one) for one in held):
            return result
        else:
            if result is not value and self._belongs(index, order):
                return result
            if at is not None and at.kind == INDEX:
                # The number of an element of something that is in another order.
                self.decide(order)
            by_key = isinstance(index, v.Lit) and isinstance(index.value, str)
            sequence = isinstance(value, v.Obj) and _is_sequence(interp, value)
            if by_key or not (sequence or isinstance(node.index, (m.Slice, m.Const))):
                chosen = self.carried(result, order)
                if isinstance(index, v.Items) and isinstance(chosen, v.Obj) and chosen.owner is None:
                    # What sorts some columns of a frame sorts the frame.
                    chosen.owner = value
                return chosen
        if isinstance(node.index, m.Slice) and node.index.lower is node.index.upper is None:
            # All of them, forwards or backwards.
            return self.carried(result, order)
        if order_single.is_known_single(running(interp), node.value) or _asked_for_form(interp, node):
            return result
        if order_shares.is_share(running(interp), node):
            return self.carried(result, order)
        if self._belongs(index, order):
            return result
        if self._is_of_listing(order) and order_looks.is_only_shown(interp, node, running(interp)):
            self._shown(interp, order)
            return v.UNKNOWN if result is value else result
        if order_looks.is_only_raised(interp, node, running(interp)):
            return result
        self.decide(order)
        return result

    def _is_of_listing(self, order: Order) -> bool:
        """Whether an order is that of listings, of which one entry may stand for all."""
        return all(key[0] == "DET209" for key in order.keys)

    def _belongs(self, index: v.Value, order: Order) -> bool:
        """Whether an index is the number of the round of a loop over something in the same order: what it takes belongs to
        what the loop gives in this round."""
        at = self.of(index)
        return at is not None and at.kind == INDEX and at.goes_with(order)

    def unpacked(self, interp: Interp, target: m.Seq, value: v.Value) -> None:
        """``first, second = value``: the order decides which entry of a listing, or element of a set, gets which name."""
        named = [
            one
            for one in map(_unstarred, target.elts)
            if isinstance(one, m.Name) and not one.id.startswith("_")
        ]
        if isinstance(value, v.Items) and value.kind == "s":
            stmt = interp.statement
            written = stmt.value if isinstance(stmt, m.Assign) and target in stmt.targets else None
            if named and written is not None and len(target.elts) > 1:
                self.decide(self.iterated(interp, value, written))
            return
        order = self.of(value)
        if order is None or order.kind != SEQUENCE or any(key[0] != "DET209" for key in order.keys):
            return
        if not named or len(target.elts) == 1 or not _has_entries(interp, value):
            return
        if _walk_of(interp, value) is None:
            self.decide(order)

    def _selected(self, value: v.Value, index: v.Value) -> Order | None:
        """The order of the columns, rows or items of an array or table that a list of them selects."""
        if isinstance(value, (v.Items, v.Mapping, v.Lit, v.Inst)):
            return None
        axes = index.elts if isinstance(index, v.Items) and index.kind == "t" else [index]
        order = merge(self.of(one) for one in axes if isinstance(one, (v.Items, v.Obj)))
        return order if order is not None and order.kind == SEQUENCE else None

    def operated(
        self, interp: Interp, node: m.BinOp, sides: tuple[v.Value, v.Value], result: v.Value
    ) -> v.Value:
        """``left op right``."""
        left, right = sides
        if order_sums.makes_float(self, interp, node, sides):
            self.fractions.add(id(node))
            if result is v.UNKNOWN and order_sums.is_number(interp, node, sides):
                result = v.Obj("builtins.float")
        identifier = order_identifiers.operated(interp, node, left, right)
        if identifier is not None and not isinstance(result, (v.Lit, v.Items)):
            result = order_identifiers.made_from(result, identifier)
        order = merge((self.of(left), self.of(right)))
        if node.op == "%" and _is_literal_text(left):
            order = merge((order, self._written_sets(interp, filled_in(right), node.right)))
        if order is None and self.loops and node.op == "+" and isinstance(node.left, m.Name):
            loop = self.loops[-1]
            if loop.env is interp.frame.env and _is_literal_text(loop.before.get(node.left.id)):
                order = loop.order
        if order is None or isinstance(result, v.Lit):
            return result
        if result is v.UNKNOWN and node.op in "+%" and any(kind_of(interp, one) == TEXT for one in sides):
            result = v.Obj("builtins.str")
        if order.kind == HASH and node.op in ("%", "&", "//", ">>", "^", "/", "*", "+", "-"):
            self.decide(order)
        if isinstance(result, v.Items) and result.kind == "s":
            return result
        return self.carried(result, order)

    def formatted(self, interp: Interp, values: list[v.Value], result: v.Value, node: m.FString) -> v.Value:
        """An f-string."""
        order = merge((self.merged(values), self._written_sets(interp, values, node)))
        for value in values if order is None else ():
            order = order or order_identifiers.of(value)
        return self.carried(result, order) if order is not None else result

    def _written_sets(self, interp: Interp, values: list[v.Value], node: Any) -> Order | None:
        """The order of the elements of sets in a text that has all of them."""
        return merge(self.iterated(interp, one, node) for one in values if is_set(one))

    def augmented(
        self, interp: Interp, stmt: m.AugAssign, old: v.Value, value: v.Value, new: v.Value
    ) -> v.Value:
        """``target op= value``: the new value of the target."""
        order = merge((self.of(old), self.of(value)))
        if isinstance(new, v.Items) and new.kind == "s":
            return new
        if isinstance(old, v.Obj) and stmt.op == "+":
            added = interp.kb.order(f"{old.type}.__iadd__", True)
            if added is not None and added.role == "fill":
                self._filled(interp, v.Args([value]), stmt.value, v.UNKNOWN, old)
                return old
        if isinstance(old, v.Items) and stmt.op == "+":
            around = self.around(old.birth) if self.loops else None
            if is_set(value):
                order = merge((order, self.iterated(interp, value, stmt.value)))
            order = merge((order, around))
            return self.carried(new, order)
        if self.loops and not is_time(interp, value):
            around = self._summed(interp, stmt, old, value)
            if around is not None:
                return self.carried(v.UNKNOWN if isinstance(new, v.Lit) else new, around)
        if order is not None and order.kind == HASH:
            self.decide(order)
        return self.carried(new, order) if order is not None and not isinstance(new, v.Lit) else new

    def _summed(self, interp: Interp, stmt: m.AugAssign, old: v.Value, value: v.Value) -> Order | None:
        """A text, a count or a sum that grows in a loop."""
        target = stmt.target
        counted = isinstance(value, v.Lit) and isinstance(value.value, int) and stmt.op == "+"
        if isinstance(target, m.Name) and "." not in target.id:
            for loop in reversed(self.loops):
                if loop.env is interp.frame.env and target.id in loop.before:
                    before = loop.before[target.id]
                    if _is_literal_text(before) and stmt.op == "+":
                        return loop.order
                    if counted:
                        return Order(loop.order.keys, INDEX, loop.start, loop.site)
                    if stmt.op in "+-" and order_sums.is_exact(before) and order_sums.is_exact(value):
                        return None
                    if stmt.op in "+-*" and (
                        any(order_sums.is_float(interp, x) for x in (before, value))
                        or order_sums.gives_fraction(self, interp, stmt.value)
                        or order_sums.is_sum_of_floats(self, interp, stmt.value, value)
                    ):
                        self.decide(loop.order)
                    return None
            return None
        if not isinstance(target, m.Name):
            return None
        # The innermost loop whose rounds share the object.
        found = order_sums.loop_of(self, interp, target.id)
        if found is not None and order_keyed.has_own_item(interp, found, target):
            owner = interp.lookup(target.id.partition(".")[0])
            others = self._since(getattr(owner, "birth", HEAP.clock))
            shared = [one for one in others if not order_keyed.has_own_item(interp, one, target)]
            found = shared[-1] if shared else None
        if found is not None:
            if stmt.op in "+-*" and any(order_sums.is_float(interp, x) for x in (old, value)):
                self.decide(found.order)
            if counted:
                return Order(found.order.keys, INDEX, found.start, found.site)
        return None

    def assigned(self, interp: Interp, stmt: m.Assign, value: v.Value) -> v.Value:
        """``target = value`` in a loop over an arbitrary order: what the target then holds."""
        order_sums.assigned(self, interp, stmt, value)
        return order_growth.grown(self, interp, stmt, value)

    def item_summed(self, interp: Interp, stmt: m.AugAssign, owner: v.Value, value: v.Value) -> None:
        """``owner[index] += value``."""
        if self.loops:
            order_sums.item_summed(self, interp, stmt, owner, value)

    def stored(self, interp: Interp, owner: v.Value, index: v.Value, value: v.Value) -> None:
        """``owner[index] = value``."""
        stmt = interp.statement
        if (
            self.loops
            and isinstance(stmt, m.Assign)
            and isinstance(stmt.value, m.Name)
            and "." in stmt.value.id
        ):
            # `self.ids[word] = self.count`, and then `self.count += 1`.
            holder = interp.lookup(stmt.value.id.partition(".")[0])
            loop = self.loop_older_than(holder) if holder is not None else None
            if loop is not None and stmt.value.id in _counted_up(running(interp)):
                self.decide(loop.order)
        order_identifiers.keyed(self, owner, index, value)
        for one in (index, value):
            order = self.deep(one)
            if order is not None and order.kind == INDEX:
                # A number by order of arrival, kept under a name or used as a position.
                target = stmt.targets[0] if isinstance(stmt, m.Assign) and len(stmt.targets) == 1 else None
                written = target.value if one is value and isinstance(target, m.Subscript) else None
                self._number(interp, written if isinstance(owner, v.Mapping) else None, order)
            if (
                one is value
                and order is not None
                and order.kind == SEQUENCE
                and isinstance(owner, v.Obj)
                and isinstance(index, v.Lit)
                and interp.kb.result_type(f"{owner.type}.column[]")
            ):
                # A column of a table: its rows come in the order of what is stored.
                self.put(owner, merge((self.of(owner), order)))
        if self.loops and isinstance(owner, v.Member) and isinstance(owner.owner, v.Obj) and _adds_row(stmt):
            # `frame.loc[len(frame)] = row`
            around = self.around(owner.owner.birth)
            if around is not None:
                self.put(owner.owner, merge((self.of(owner.owner), around)))
        order = self.of(index)
        if order is not None and order.kind == HASH and not isinstance(owner, v.Mapping):
            self.decide(order)
        if order is not None and order.kind == SEQUENCE and isinstance(index, v.Items):
            if isinstance(owner, v.Obj) and isinstance(stmt, m.Assign) and self._numbers_all(interp, value):
                # `place[ids] = np.arange(len(ids))`: which number is stored where depends on the order of the list.
                self.decide(order)
        if isinstance(owner, v.Items) and (isinstance(value, v.Lit) or isinstance(stmt, m.AugAssign)):
            # Every round writes the same into a list, whose places stay what they are, or adds to what is there.
            return
        if (
            isinstance(owner, v.Items)
            and self.loops
            and order_sums.is_numbered(self, interp, stmt, owner, index)
        ):
            return
        if isinstance(owner, v.Items) and isinstance(index, v.Lit) and _is_chosen(interp, stmt):
            # `if name.endswith("seg"): paths[0] = name`: the place is that of the kind, as a variable is.
            return
        if (
            isinstance(owner, v.Mapping)
            and owner.factory is None
            and (isinstance(stmt, m.AugAssign) or _replaces(stmt))
        ):
            # What is there already stays where it is.
            return
        if self.loops and (isinstance(owner, (v.Mapping, v.Items)) or _counts_keys(owner)):
            around = self.around(owner.birth)
            if around is not None:
                self.put(owner, merge((self.of(owner), around)))

    def _numbers_all(self, interp: Interp, value: v.Value) -> bool:
        """Whether a value is different numbers, in an order that is not arbitrary."""
        if not isinstance(value, v.Obj) or self.of(value) is not None:
            return False
        return _counts_up(value) or interp.kb.role(value.api, "all-different") is not None

    def returned(
        self, interp: Interp, func: v.Func, args: v.Args, value: v.Value, node: Any, before: int
    ) -> None:
        """A call of the project has given something; ``before`` is the time at which it began."""
        if self.loops and isinstance(node, m.Call):
            for name in annotated_kinds.taken_as_numbers(func, node):
                self._are_numbers(self._gives(interp, name))
        parts = value.elts if isinstance(value, v.Items) and value.kind == "t" else [value]
        for index, one in enumerate(parts):
            if self._is_kept(one) and one.birth > before:
                if is_only_returned(interp, func.file, func.fn, one.node):
                    part = None if one is value else index
                    if use_of_returned(interp, node, part, running(interp)):
                        # The caller asks for its form, or counts pairs; nobody else has it.
                        self.settled.append(one)
        site = getattr(node, "start", 0)
        whole = [*v.alternatives(value)]
        inside = [x for one in whole if isinstance(one, v.Items) and one.kind == "t" for x in one.elts]
        for one in (*whole, *inside):
            if isinstance(one, (v.Obj, v.Items, v.Mapping)) and one.birth > before and one.order is not None:
                if not self._was_given(one.order, func, args):
                    # Nobody else has seen it yet.
                    shuffled = SHUFFLED if one.order.site >= SHUFFLED else 0
                    given = order_folders.of_call(one.order.site, site)
                    one.order = one.order._replace(site=given or site + shuffled)
                for key in one.order.keys:
                    origin = self.origins[key]
                    if origin.names and origin.place.function == (func.file.path, func.key[1]):
                        self.named.add((key, one.order.site))

    def _was_given(self, order: Order, func: v.Func, args: v.Args) -> bool:
        """Whether something that a call was given, or that its object keeps, has this order, or names the folder which has
        it: it did not come about there."""
        given = [*args.pos, *args.kw.values()]
        if isinstance(func.receiver, v.Inst):
            given += func.receiver.attrs.values()
        if any(x.goes_with(order) for x in map(self.of, given) if x is not None):
            return True
        if any(
            isinstance(x, v.Items) and x.kind == "s" and order_folders.number_of_set(x) == order.site
            for x in given
        ):
            return True
        folder = self.folders.get(order.site)
        here = (func.file.path, func.key[1])
        if folder is None or any(self.origins[key].place.function != here for key in order.keys):
            return False
        return order_folders.is_fixed(folder[1]) or any(order_folders.are_alike(folder[1], x) for x in given)

    def _is_kept(self, value: v.Value) -> TypeGuard[v.Obj]:
        return isinstance(value, v.Obj) and any(one is value for one in self.kept)

    def set_attribute(self, interp: Interp, owner: v.Inst, name: str, value: v.Value) -> None:
        """An attribute of an instance: a dataset's items are taken by position, those of a dictionary by key."""
        order = self._by_position(value)
        if order is not None and order.kind == SEQUENCE and owner.cls.find("__getitem__") is not None:
            if not is_idle_dataset(interp, owner):
                self.holders.append((owner, name))

    def _by_position(self, value: v.Value | None) -> Order | None:
        """The order of a value whose elements are taken by position, not by key."""
        if value is None:
            return None
        return merge(self.of(one) for one in v.alternatives(value) if not isinstance(one, v.Mapping))

    def yielded(self, interp: Interp, node: m.Wait, value: v.Value) -> None:
        """``yield`` in a loop over an arbitrary order, or ``yield from`` something in one."""
        frame: Frame | None = interp.frame
        while frame is not None and frame.func is None:
            frame = frame.caller
        if frame is None or frame.func is None:
            return
        order = self.iterated(interp, value, node.value) if node.kind == "from" else None
        for loop in self.loops:
            if loop.env is frame.env or loop.env is interp.frame.env:
                order = merge((order, loop.order))
        if order is None:
            return
        if frame.func.fn.name == "__iter__":
            self.decide(order)
        frame.yields = merge((frame.yields, order))

    def compared(self, interp: Interp, node: m.Compare, left: v.Value, rights: list[v.Value]) -> None:
        """A comparison: by size with a value of ``hash``, or a test for an element."""
        for op, value in zip(node.ops, rights, strict=True):
            if op in ("in", "not in"):
                order_sorting.settle(self, value)
        if self.origins and any(op in _EQUALITIES for op in node.ops):
            for value in (left, *rights):
                self.decide(self._chosen(interp, value))
        order_identifiers.chosen(self, left, *rights)
        if self.loops and len(rights) == 1:
            for written, value in zip((node.left, *node.comparators), (left, *rights), strict=True):
                at = self.of(value)
                if at is not None and at.kind == INDEX and order_cuts.shares_out(interp, node, written):
                    self.decide(at)
        if id(node) in self.pairs:
            first, second = self.of(left), self.of(rights[0])
            paired = first is not None and second is not None and _are_one(first, second)
            if not paired and not any(isinstance(value, v.Lit) for value in (left, *rights)):
                # How often they agree, place by place, is the same in any order that both have.
                self.decide(self.merged((left, *rights)))
        if any(op in ("<", ">", "<=", ">=") for op in node.ops):
            for value in (left, *rights):
                order = self.of(value)
                if order is not None and order.kind == HASH:
                    self.decide(order)

    def tested(self, node: m.Compare, values: list[v.Value], result: v.Value) -> v.Value:
        """What a comparison of arrays gives, element by element: in the order that they have."""
        return self.carried(result, self.merged(values)) if id(node) in self.pairs else result

    def hashed(self, interp: Interp, node: Any, given: v.Value, result: v.Value) -> v.Value:
        """``hash(text)``."""
        written = node.args[0] if isinstance(node, m.Call) and node.args else None
        frame: Frame | None = interp.frame
        while frame is not None and frame.func is None:
            frame = frame.caller
        if frame is not None and frame.func is not None and frame.func.fn.name in ("__hash__", "__eq__"):
            return result
        if not is_text(interp, given, written) or not isinstance(result, v.Obj):
            return result
        result.order = self.made(interp, "DET213", node, "", "", subject="hash", kind=HASH)
        return result

    def arrived(self, interp: Interp, node: Any, order: Order) -> None:
        """A mapping has numbers by order of arrival: what a variable of a module holds counts if anything reads it."""
        stmt, frame = interp.statement, interp.frame
        if (
            isinstance(stmt, m.Assign)
            and stmt.value is node
            and len(stmt.targets) == 1
            and isinstance(stmt.targets[0], m.Name)
            and frame.func is None
            and not frame.is_class
        ):
            self.numbered.append(Numbered(frame.file, stmt.targets[0].id, order))
        else:
            stored = isinstance(stmt, m.Assign) and stmt.value is node and len(stmt.targets) == 1
            target = stmt.targets[0] if isinstance(stmt, m.Assign) and stored else None
            if isinstance(target, m.Name) and frame.func is not None and "." not in target.id:
                if is_only_tested(interp.whole(frame.file), frame.func.fn, target.id):
                    return
                if order_coded.is_only_code(interp, frame.func.fn, target.id):
                    return
            self._number(interp, target, order)

    def _number(self, interp: Interp, target: m.Expr | None, order: Order) -> None:
        """A mapping that is stored in ``target`` has numbers by order of arrival: those in an attribute of an instance
        count if anything reads it."""
        name = target.id.split(".") if isinstance(target, m.Name) else []
        holder = interp.lookup(name[0]) if len(name) == 2 else None
        if isinstance(holder, v.Inst) and not self._is_read_by_library(holder.cls):
            self.numbered.append(Numbered(holder.cls.file, f".{name[1]}", order))
        else:
            self.decide(order)

    def _is_read_by_library(self, cls: v.Cls) -> bool:
        """Whether a class is derived from one of a library whose methods may read attributes that it adds."""
        bases = map(self.kb.canonical, cls.external_bases())
        return any(self.kb.role(base, "base-only") is None for base in bases)

    def finish(
        self,
        is_read: Callable[[ModuleFile, str], bool],
        is_attribute_read: Callable[[ModuleFile, str], bool],
        trains: bool,
    ) -> list[Key]:
        """At the end of a run, which trains or not: the places whose order has decided something."""
        if trains:
            self.decided.update(self.fed)
        for file, variable, numbers in self.numbered:
            attribute = variable.startswith(".")
            if is_attribute_read(file, variable[1:]) if attribute else is_read(file, variable):
                self.decide(numbers)
        for inst, name in self.holders:
            order = self._by_position(inst.attrs.get(name))
            if order is not None and order.kind == SEQUENCE:
                if self._is_read_by_library(inst.cls) or is_attribute_read(inst.cls.file, name):
                    self.decide(order)
        for order in order_sorting.unsettled(self):
            self.decide(order)
        return [key for key in self.decided if key not in self.excused]


def _replaces(stmt: m.Stmt | None) -> bool:
    """Whether a statement writes an item that it has read: ``table[key] = clean(table[key])``."""
    if not isinstance(stmt, m.Assign) or len(stmt.targets) != 1:
        return False
    target, read = stmt.targets[0], list(nodes([stmt.value]))
    if not isinstance(target, m.Subscript) or any(
        isinstance(one, (m.IfExp, m.BoolOp, m.Lambda)) for one in read
    ):
        return False
    return any(isinstance(one, m.Subscript) and alike(one, target) for one in read)


def _is_chosen(interp: Interp, stmt: m.Stmt | None) -> bool:
    """Whether a statement of the innermost loop runs for elements that pass a test."""
    return bool(interp.loops) and any(
        isinstance(one, m.If) and any(inner is stmt for inner in nodes([*one.body, *one.orelse]))
        for one in nodes([interp.loops[-1].stmt])
    )


def _adds_row(stmt: m.Stmt | None) -> bool:
    """Whether a statement stores something behind all that is there: the index is the length of what is written to."""
    if not isinstance(stmt, m.Assign) or len(stmt.targets) != 1:
        return False
    target = stmt.targets[0]
    if not isinstance(target, m.Subscript) or not isinstance(target.value, m.Name):
        return False
    index = target.index
    if isinstance(index, m.Seq) and index.elts:
        index = index.elts[0]
    counted = index.args if isinstance(index, m.Call) and called_name(index) == "len" else ()
    holder = target.value.id.rpartition(".")[0]
    return any(isinstance(one, m.Name) and one.id in (holder, f"{holder}.index") for one in counted)


_EQUALITIES = frozenset({"==", "!=", "in", "not in"})
_LATE = frozenset(
    {
        "carry",
        "sink",
        "show",
        "end",
        "sum",
        "step",
        "fit",
        "write",
        "grow",
        "accumulate",
        "settle",
        "type",
        "draw",
        "figure",
        "tally",
        "points",
        "gradients",
        "zero-gradients",
    }
)
"""Roles that mean nothing before anything has an arbitrary order, sets among the arguments apart."""
_COUNT = "itertools.count"
_MAPPING = "builtins.dict"
_RANGES = frozenset({"builtins.range", "builtins.enumerate"})


def _counts_up(value: v.Value) -> bool:
    """Whether a value is the numbers of a range in their order, or a list of them."""
    if isinstance(value, v.Items):
        return value.kind != "s" and not value.open and all(isinstance(one, v.Lit) for one in value.elts)
    if not isinstance(value, v.Obj):
        return False
    return value.api in _RANGES or (value.api == "builtins.list" and any(map(_counts_up, value.args.pos)))


_PLAIN = frozenset({v.Lit, v.Ext, v.Func, v.Cls, v.Unknown, v.Mod, v.Partial})


def oldest_part(value: v.Value, depth: int = 0) -> int:
    """When the oldest part of a value was made, as of an optimizer the model that it is for; 0 where that is not known."""
    if isinstance(value, v.Lit | v.Ext | v.Cls | v.Func):
        return HEAP.clock
    if depth > _MOST_PARTS or not isinstance(value, v.Obj | v.Items | v.Mapping | v.Inst):
        return 0
    parts: list[v.Value] = []
    if isinstance(value, v.Obj):
        parts = [*value.args.values(), *value.attrs.values()]
        if value.args.star or value.args.dstar:
            return 0
    elif isinstance(value, v.Inst):
        parts = list(value.attrs.values())
    else:
        parts = list(value.elts if isinstance(value, v.Items) else value.items.values())
    return min([value.birth, *(oldest_part(one, depth + 1) for one in parts)])


_MOST_PARTS = 6
_CHANGING = frozenset({"append", "extend", "insert", "pop", "remove"})
"""Methods after which a list has not one element for each entry of a folder."""
_LEAVING_OUT = frozenset(
    {
        "builtins.filter",
        "builtins.reversed",
        "itertools.islice",
        "itertools.filterfalse",
        "itertools.compress",
    }
)
"""What gives not all entries of a listing, or not in its order."""


def _are_one(first: Order, second: Order) -> bool:
    """Whether both are the same of one order."""
    return (first.kind, first.loop) == (second.kind, second.loop) and first.goes_with(second)


def merge(orders: Any) -> Order | None:
    """Several orders as one; the order of elements counts more than a number."""
    found = [order for order in orders if order is not None]
    if len(found) > 1:
        # What is made from an identifier and something else has the order of that.
        found = [order for order in found if order.kind != IDENTIFIER] or found[:1]
    if len(found) < 2:
        return found[0] if found else None
    for kind in (NESTED, SEQUENCE, INNER, HASH, SORTING, order_positions.PLACE):
        some = [order for order in found if order.kind == kind]
        if some:
            sites = {order.site for order in some}
            keys = tuple(sorted({key for order in some for key in order.keys}))
            return Order(keys, kind, 0, sites.pop() if len(sites) == 1 else MIXED)
    inner = max(order.loop for order in found)
    return Order(tuple(sorted({key for order in found for key in order.keys})), INDEX, inner)


def _argument_node(node: Any, place: int | str) -> Any:
    """The expression of an argument, by position or name; the call where it is not written out."""
    if not isinstance(node, m.Call):
        return node
    if isinstance(place, int):
        return node.args[place] if place < len(node.args) else node
    return next((keyword.value for keyword in node.keywords if keyword.name == place), node)


def is_set(value: v.Value) -> bool:
    """Whether a value is a set, or may be one."""
    if type(value) is v.Items:
        return value.kind == "s"
    return isinstance(value, v.AnyOf) and any(is_set(one) for one in value.values)


def _unstarred(target: m.Expr) -> m.Expr:
    return target.value if isinstance(target, m.Star) else target


def filled_in(value: v.Value) -> list[v.Value]:
    """What ``text % value`` puts into a text."""
    return value.elts if isinstance(value, v.Items) and value.kind == "t" else [value]


def _is_collection(value: v.Value) -> bool:
    """Whether a value is surely a list, a set or a dictionary."""
    if isinstance(value, v.Obj):
        return value.api in _LISTS or _counts_keys(value)
    return isinstance(value, (v.Items, v.Mapping))


def _is_shared(interp: Interp, owner: v.Value) -> bool:
    """Whether a list is one that several tasks add to at the same time."""
    if isinstance(owner, v.Obj):
        held = interp.kb.role(owner.api, "shared-list") is not None
        return held and owner.birth < interp.sharing
    if not isinstance(owner, v.Items) or owner.kind != "l" or interp.among_processes:
        return False
    return owner.birth < interp.sharing


def _tells_of_failure(interp: Interp, node: Any) -> bool:
    """Whether a call in a handler is given the exception, or something that is made of it."""
    func = interp.frame.func
    body = func.fn.body if func is not None else interp.frame.file.facts.functions[0].body
    if not isinstance(node, m.Call):
        return False
    named = {one.id for one in nodes([*node.args]) if isinstance(one, m.Name)}
    return any(
        handler.name in named and any(one is node for one in nodes(list(handler.body)))
        for stmt in statements(body)
        if isinstance(stmt, m.Try)
        for handler in stmt.handlers
    )


def _is_all(interp: Interp, value: v.Value | None, depth: int = 0) -> bool:
    """Whether a value is surely a list, a set or a dictionary, or all the rows of a table that a call gives in another
    order in each process: of a part of them, nothing is said."""
    if isinstance(value, v.Items) and depth:
        return any(_is_all(interp, one, depth + 1) for one in value.elts[:MAX_PARTS])
    if not isinstance(value, v.Obj) or _is_collection(value) or value.order is None or depth > _MOST_PARTS:
        return not depth and value is not None and _is_collection(value)
    entry = interp.kb.order(value.api, value.owner is not None)
    if entry is not None and entry.role == "end" and entry.key and entry.gives == "sequence":
        # All of them, sorted by what several may have alike.
        return _is_all(interp, value.args.get("", entry.iterated))
    if entry is None or entry.role != "carry":
        return entry is not None and entry.each_process
    if entry.value == TEXT and len(value.args.pos) == 1 and is_set(value.args.pos[0]):
        # `", ".join(words)`
        return True
    return any(_is_all(interp, one, depth + 1) for one in (value.owner, *value.args.values()))


def _any_set(args: v.Args, owner: v.Value | None = None) -> bool:
    return (owner is not None and is_set(owner)) or any(is_set(value) for value in args.values())


def _placed(node: Any) -> Any:
    """The first part of an expression without a place of its own that has one."""
    if isinstance(node, m.BoolOp):
        return node.left if hasattr(node.left, "start") else _placed(node.left)
    if isinstance(node, m.IfExp):
        return node.body if hasattr(node.body, "start") else _placed(node.body)
    if isinstance(node, m.Star):
        return node.value if hasattr(node.value, "start") else _placed(node.value)
    return None


def _is_of(interp: Interp, library: str, owner: v.Value | None) -> bool:
    """Whether the receiver of a method may be an object of a library."""
    if isinstance(owner, v.Obj) and "." in owner.type and not owner.type.startswith("?"):
        return owner.type.startswith(f"{library}.")
    if isinstance(owner, v.Lit) and owner.option and owner.value is None:
        # What has methods is given with the option.
        return interp.uses(library)
    return interp.uses(library) and not isinstance(owner, (v.Items, v.Mapping, v.Lit, v.Inst, v.Cls, v.Super))


def _applies(entry: OrderEntry, args: v.Args, owner: v.Value | None = None) -> bool:
    """Whether the conditions of an entry hold; where one is not known, an order is arbitrary."""
    if isinstance(owner, v.Obj) and all_hold(owner.args, entry.made_with) is False:
        return False
    if entry.when and not all_hold(args, entry.when):
        return False
    if entry.unless and any_holds(args, entry.unless):
        return False
    for test in entry.texts:
        given = args.get(test.arg, test.pos)
        if isinstance(given, v.Items) and given.elts and all(isinstance(x, v.Lit) for x in given.elts):
            given = v.Lit(" ".join(str(x.value) for x in given.elts if isinstance(x, v.Lit)))
        if not isinstance(given, v.Lit) or not isinstance(given.value, str):
            return False
        text = given.value.lower()
        if not all(word in text for word in test.has) or any(word in text for word in test.lacks):
            return False
        if any(word in text for word in test.totals) and not any(word in text for word in test.groups):
            return False
    return True


def _is_enumerated(value: v.Value) -> bool:
    """Whether the elements of a value are numbered, also where something passes them on."""
    value = passed_on(value)
    return isinstance(value, v.Obj) and value.api == "builtins.enumerate"


def _is_numbered(value: v.Value) -> bool:
    """Whether each of several elements is paired with a number."""
    value = passed_on(value)
    return _is_enumerated(value) or (_is_zipped(value) and any(map(_numbers_rounds, value.args.pos)))


def _is_zipped(value: v.Value) -> TypeGuard[v.Obj]:
    return isinstance(value, v.Obj) and value.api == "builtins.zip"


def _numbers_rounds(value: v.Value) -> bool:
    """Whether a value is the numbers of a range, or a list of them."""
    if not isinstance(value, v.Obj):
        return False
    return value.api == "builtins.range" or (
        value.api == "builtins.list" and any(map(_numbers_rounds, value.args.pos))
    )


_STEPS = (".__next__", ".next")
"""The ends of the methods that ``next()`` calls, the second one that of Python 2."""


def _walk_of(interp: Interp, value: v.Value) -> v.Obj | None:
    """The walk over folders that a value is, or passes on."""
    for _ in range(4):
        if not isinstance(value, v.Obj):
            return None
        entry = interp.kb.order(value.api, value.api.count(".") > 0 and value.api.startswith("pathlib."))
        if entry is not None and entry.gives == "walk":
            return value
        if value.api not in _WRAPPERS or not value.args.pos:
            return None
        value = value.args.pos[0]
    return None


_WRAPPERS = frozenset(
    {
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "tqdm.notebook.tqdm",
        "builtins.iter",
        "builtins.list",
        "rich.progress.track",
    }
)


def _sorted_walk(interp: Interp, value: v.Value) -> v.Obj | None:
    """The walk whose folders are sorted: the names in each stay arbitrary."""
    if not isinstance(value, v.Obj) or value.api != "builtins.sorted" or not value.args.pos:
        return None
    return _walk_of(interp, value.args.pos[0])


def _triple_of_walk(value: v.Items) -> bool:
    return value.kind == "t" and any(
        isinstance(x, v.Obj) and x.api == order_single.NAMES_OF_WALK for x in value.elts
    )


def _sorts_walk(interp: Interp, value: v.Value, loop: m.For) -> bool:
    """Whether a loop over a walk sorts the folders that come next, so that only names stay arbitrary."""
    if _walk_of(interp, value) is None or not isinstance(loop.target, m.Seq) or len(loop.target.elts) < 3:
        return False
    folders = loop.target.elts[1]
    if not isinstance(folders, m.Name):
        return False
    for node in nodes(loop.body):
        if isinstance(node, m.Call) and called_name(node) == "sort" and receiver(node) == folders.id:
            return True
        if isinstance(node, m.Assign) and called_name(node.value) in ("sorted", "natsorted"):
            for target in node.targets:
                if isinstance(target, m.Subscript) and isinstance(target.index, m.Slice):
                    if isinstance(target.value, m.Name) and target.value.id == folders.id:
                        return True
    return False


def _stored_back(interp: Interp, node: m.Subscript) -> bool:
    """Whether the statement stores what it makes of a selection under the same selection."""
    stmt = interp.statement
    if not isinstance(stmt, (m.Assign, m.AugAssign)):
        return False
    targets = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
    selecting = {one.id for one in nodes([node.index]) if isinstance(one, m.Name)}
    return any(
        isinstance(target, m.Subscript)
        and any(isinstance(one, m.Name) and one.id in selecting for one in nodes([target.index]))
        for target in targets
    )


def _numbers_keys(interp: Interp, value: v.Mapping) -> bool:
    """Whether a mapping gives each key that is asked for the next number: ``ids = defaultdict(lambda: len(ids))``."""
    factory = value.factory
    if isinstance(factory, v.Member):
        return isinstance(factory.owner, v.Obj) and factory.owner.api == _COUNT
    if not isinstance(factory, v.Func) or factory.fn.name != "<lambda>":
        return False
    given = [one.value for one in interp.body(factory) if isinstance(one, m.Return)]
    return len(given) == 1 and called_name(given[0]) == "len"


def _is_sequence(interp: Interp, value: v.Obj) -> bool:
    """Whether a library object is surely taken apart by position."""
    entry = interp.kb.order(value.api, value.type == "list" or value.api.startswith(("pathlib.", "?.")))
    return (
        value.type == "list"
        or value.api in _LISTS
        or (entry is not None and entry.role == "source" and entry.sortable)
    )


_LISTS = frozenset(
    {"builtins.list", "builtins.tuple", "builtins.reversed", order_single.NAMES_OF_WALK, "?.readlines"}
)


def _begun_in_another_round(interp: Interp, loop: Loop, stmt: m.Assign, name: str) -> bool:
    """Whether a statement stands in one branch and the other one begins what it goes on with:
    ``if first: data = x else: data = append(data, x)``. An inner loop that asks for its own round, ``if i == 0``, begins
    it in each round of the loop around it."""
    inner = interp.loops[-1].stmt if interp.loops else None
    walked: set[str] = set()
    if isinstance(inner, m.For) and inner is not loop.stmt:
        target_names(inner.target, walked)
    for one in nodes([inner]) if inner is not None else ():
        if isinstance(one, m.If) and one.orelse:
            asked = {part.id for part in nodes([one.test]) if isinstance(part, m.Name)}
            if asked and asked <= walked:
                continue
            branches = [list(nodes(one.body)), list(nodes(one.orelse))]
            here = [any(inner is stmt for inner in branch) for branch in branches]
            if here[0] != here[1] and any(
                isinstance(inner, m.Assign)
                and any(isinstance(target, m.Name) and target.id == name for target in inner.targets)
                for inner in branches[here[0]]
            ):
                return True
    return False


def _counts_keys(value: v.Value) -> TypeGuard[v.Obj]:
    """Whether a value is a counter, which has its keys in the order in which they came first."""
    return isinstance(value, v.Obj) and value.type == "collections.Counter"


def _taken_from_one(interp: Interp, node: Any) -> bool:
    """Whether a call gets a list of which the function knows that it has one entry."""
    return bool(getattr(node, "args", None)) and order_single.is_known_single(running(interp), node.args[0])


def _asked_for_form(interp: Interp, node: m.Subscript) -> bool:
    """``masks[0].shape``: the shape or dtype of one of several arrays, which is taken to be that of all."""
    return any(
        isinstance(one, m.Attr) and one.value is node and one.name in FORM
        for one in nodes([interp.statement])
    )


_counters: dict[int, tuple[object, frozenset[str]]] = memo()


def _counted_up(stmt: m.For | m.While | m.Function | None) -> frozenset[str]:
    """Names, also dotted, to which a whole number is added somewhere in a body."""
    if stmt is None:
        return frozenset()
    known = _counters.get(id(stmt))
    if known is None or known[0] is not stmt:
        names = {
            one.target.id
            for one in nodes(stmt.body)
            if isinstance(one, m.AugAssign)
            and one.op == "+"
            and isinstance(one.target, m.Name)
            and isinstance(one.value, m.Const)
            and isinstance(one.value.value, int)
        }
        known = _counters[id(stmt)] = (stmt, frozenset(names))
    return known[1]


def _is_int(value: v.Value | None) -> bool:
    return isinstance(value, v.Lit) and isinstance(value.value, int) and not isinstance(value.value, bool)


_grown: dict[int, tuple[object, frozenset[str]]] = memo()


def _grows(interp: Interp, name: str) -> bool:
    """Whether the running function makes a container longer."""
    fn = running(interp)
    if fn is None:
        return False
    known = _grown.get(id(fn))
    if known is None or known[0] is not fn:
        names: set[str] = set()
        for node in nodes(fn.body):
            if isinstance(node, m.Call) and called_name(node) in GROWING:
                names.add(receiver(node))
            elif isinstance(node, m.Assign):
                for target in node.targets:
                    if isinstance(target, m.Subscript) and isinstance(target.value, m.Name):
                        names.add(target.value.id)
        known = _grown[id(fn)] = (fn, frozenset(names))
    return name in known[1]


def _assigned_in(interp: Interp, name: str) -> frozenset[str]:
    """The name, if a loop of the running function assigns it."""
    fn = running(interp)
    if fn is None:
        return frozenset()
    for node in nodes(fn.body):
        if isinstance(node, m.For) and name in assigned_names(node):
            return frozenset({name})
    return frozenset()


def _is_true(test: Any) -> bool:
    return isinstance(test, m.Const) and bool(test.value)


def _breaks(stmt: Any) -> bool:
    return isinstance(stmt, m.Jump) and stmt.kind == "break"


def _has_entries(interp: Interp, value: v.Value) -> bool:
    """Whether the elements of a value are the entries of a listing, or made of one each: no parts of it, as those that
    splitting gives are."""
    if isinstance(value, v.Items):
        return value.kind == "l"
    if not isinstance(value, v.Obj):
        return False
    entry = interp.kb.order(value.api)
    return value.api.startswith("builtins.") or (entry is not None and entry.role == "source")


def _help(interp: Interp, entry: OrderEntry, node: Any, owner: v.Value | None) -> str:
    """The remedy for what takes something in an arbitrary order."""
    if entry.help_now and _takes_what_is_there(interp, node):
        return entry.help_now
    return entry.help_endless if entry.help_endless and is_endless(owner) else entry.help


def _takes_what_is_there(interp: Interp, node: Any) -> bool:
    """Whether a loop or branch around a call asks the same object what it holds at the moment."""
    function_ = running(interp)
    taken = receiver(node) if isinstance(node, m.Call) else ""
    above = parents(function_) if function_ is not None and taken else {}
    while (node := above.get(id(node))) is not None:
        asked = (
            node.test if isinstance(node, (m.While, m.If)) else node.iter if isinstance(node, m.For) else None
        )
        if asked is not None and any(
            isinstance(one, m.Call) and receiver(one) == taken for one in nodes([asked])
        ):
            return True
    return False


def _owner_node(node: Any) -> Any:
    func = node.func if isinstance(node, m.Call) else node
    return func.value if isinstance(func, m.Attr) else func


def _kept_in(interp: Interp, owner: v.Value, inner: Any) -> tuple[v.Value, str]:
    """The container that something is added to: of ``groups[key].append(x)`` it is ``groups``, unless each round makes the
    list under its key."""
    if isinstance(inner, m.Call) and isinstance(inner.func, m.Name):
        parts = inner.func.id.split(".")
        if parts[-1] == "setdefault":
            # What is there may be of an earlier round.
            found = interp.eval(m.Name(".".join(parts[:-1]), inner.start, inner.end))
            return found, NESTED
    if isinstance(inner, m.Subscript) and isinstance(inner.value, m.Name):
        groups = interp.eval(inner.value)
        if isinstance(groups, v.Mapping) and (
            groups.factory is not None
            or (_is_under_unknown_key(groups, owner) and not _is_made_in_round(interp, inner))
        ):
            # What is there may be of an earlier round.
            return groups, NESTED
    if isinstance(owner, (v.Items, v.Mapping)):
        return owner, SEQUENCE
    while isinstance(inner, m.Subscript):
        inner = inner.value
        if isinstance(inner, m.Name):
            return interp.eval(inner), NESTED
    return owner, SEQUENCE


def _is_of_unknown(interp: Interp, container: v.Value) -> bool:
    """Whether a container is kept by what stands for the receivers of a class of which nothing is known."""
    return any(
        container is one
        for blank in interp.blanks.values()
        for held in blank.attrs.values()
        for one in v.alternatives(held)
    )


def _is_under_unknown_key(groups: v.Mapping, owner: v.Value) -> bool:
    return any(
        isinstance(key, tuple) and any(one is owner for one in v.alternatives(held))
        for key, held in groups.items.items()
    )


def _is_made_in_round(interp: Interp, item: m.Subscript) -> bool:
    """Whether each round of the innermost loop over an arbitrary order that reaches an item stores something new there."""
    stmt = interp.orders.loops[-1].stmt
    if stmt is None:
        return False
    stores = [
        one
        for one in nodes(stmt.body)
        if isinstance(one, m.Assign) and any(alike(target, item) for target in one.targets)
    ]
    branches = [
        list(nodes(block))
        for one in nodes(stmt.body)
        if isinstance(one, m.If)
        for block in (one.body, one.orelse)
    ]
    return any(
        all(
            any(inner is item for inner in branch)
            for branch in branches
            if any(inner is store for inner in branch)
        )
        for store in stores
    )


def _named(args: v.Args) -> bool:
    return isinstance(args.pos[0], v.Lit) and isinstance(args.pos[0].value, str)


def _is_literal_text(value: v.Value | None) -> bool:
    return isinstance(value, v.Lit) and isinstance(value.value, str)


__all__ = [
    "HASH",
    "INDEX",
    "NESTED",
    "NUMBER",
    "OBJECT",
    "SEQUENCE",
    "TEXT",
    "Key",
    "Order",
    "Orders",
    "Origin",
    "filled_in",
    "is_set",
    "merge",
]


def _is_folded(interp: Interp, node: Any) -> bool:
    """``best = np.maximum(best, x)``: what is built up is an argument itself, not only a part of one."""
    stmt = interp.statement
    names = {t.id for t in stmt.targets if isinstance(t, m.Name)} if isinstance(stmt, m.Assign) else set()
    return isinstance(node, m.Call) and any(isinstance(one, m.Name) and one.id in names for one in node.args)
