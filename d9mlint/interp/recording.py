"""What an analysis run knows at one line, noted while it runs: for ``d9mlint explain``.

An ordinary run notes nothing and pays nothing for it. A recorded run is the same run by a subclass of ``Interp``
that looks at the state whenever a statement of the line is about to run, at the values of its expressions, at its
calls, and at what rules say of places that they do not report. Nothing of it feeds back into the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from d9mlint.base.options import A_GPU, quoted
from d9mlint.interp import values as v
from d9mlint.interp.activity import GPU_BY_OPTION, NO_GPU, NO_GPU_FOR, TRAIN, accelerators
from d9mlint.interp.argtests import all_hold, any_holds, holds
from d9mlint.interp.conditions import Outcome
from d9mlint.interp.data import Entropy
from d9mlint.interp.environment import READ
from d9mlint.interp.events import CallEvent, GlobalDrawEvent
from d9mlint.interp.interpreter import Interp
from d9mlint.interp.library.bindings import BOUND
from d9mlint.interp.library.weights import LOADED
from d9mlint.interp.listening import on
from d9mlint.interp.overwritten import OVERWRITTEN
from d9mlint.interp.places import flow, scope
from d9mlint.interp.rng import NOT_DRAWN_SINCE
from d9mlint.interp.shapes import NOTHING, Form
from d9mlint.interp.state import MAYBE, REPLACED, SEEDED, Setting, Site
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.base.findings import Step
    from d9mlint.interp.orders import Order
    from d9mlint.interp.state import Rng, State
    from d9mlint.ir.nodes import FileFacts
    from d9mlint.knowledge.schema import Condition, HazardEntry, OpEntry, OrderEntry, RngEntry

MOST_VISITS = 6
"""So many different circumstances of a line are kept."""
MOST_ALTERNATIVES = 4
LEVELS = {SEEDED: "seeded", MAYBE: "maybe", 0: "unseeded"}
CALLED = ".__call__"
PYTHON = "python"
"""The library of generators that every program has."""


class Spot(NamedTuple):
    """A line: its file and its range of offsets. ``statements`` begin or go on there, ``chain`` are those around
    them in their function (by its index), outermost first, and ``nodes`` the ids of the expressions."""

    path: str
    start: int
    end: int
    function: int
    chain: tuple[Any, ...]
    statements: tuple[Any, ...]
    nodes: frozenset[int]

    @property
    def watched(self) -> frozenset[int]:
        """The ids of the statements that are looked at."""
        return frozenset(map(id, (*self.chain, *self.statements)))


class ValueFact(NamedTuple):
    """What is known of a value. ``what`` says it in words; the rest is of a tensor or its order, by which ``option``'s
    default it is so, and whether that is because there is a GPU (``with_gpu``)."""

    what: str
    device: str = ""
    grad: bool | None = None
    dtype: str = ""
    sizes: tuple[int | None, ...] | None = None
    order: tuple[tuple[str, Site], ...] = ()
    entropy: bool = False
    option: str = ""
    with_gpu: bool = False


class Level(NamedTuple):
    """How a generator is seeded: ``seeded``, ``maybe`` or ``unseeded``, where, by which option's default it is not,
    and by which helper it may be."""

    generator: str
    title: str
    level: str
    site: Site | None
    option: str = ""
    helper: str = ""


class Test(NamedTuple):
    """A condition of a knowledge entry and its answer here; ``unless`` for one that must not hold. Where the argument
    that it is about is not ``given``, and its default is not known, there is no answer."""

    condition: Condition
    answer: bool | None
    unless: bool = False
    given: bool = True


class Match(NamedTuple):
    """An entry of the knowledge base that is about a call: its kind, the rule that reports it (empty for facts that
    no rule reports), the versions it is about and whether the target version is one of them, and its conditions."""

    kind: str
    id: str
    library: str
    rule: str
    versions: str
    applies: bool
    target: str
    tests: tuple[Test, ...]
    detail: str = ""

    @property
    def holds(self) -> bool | None:
        """Whether the entry holds for the call."""
        answers = [t.answer if not t.unless or t.answer is None else not t.answer for t in self.tests]
        if not self.applies or False in answers:
            return False
        return None if None in answers else True

    @property
    def is_asked(self) -> bool:
        """Whether the call gives an argument for each condition that has no answer."""
        return all(t.given for t in self.tests if t.answer is None)


class CallFact(NamedTuple):
    """A call of the line: what is called, with what, and the entries that are about it."""

    api: str
    start: int
    end: int
    receiver: ValueFact | None
    arguments: tuple[tuple[str, ValueFact], ...]
    entries: tuple[Match, ...]


class DrawFact(NamedTuple):
    """A draw that belongs to the line, with how the generator is seeded when it happens."""

    level: Level
    entry: str
    kind: str


class ExprFact(NamedTuple):
    """An expression of the line and its value."""

    start: int
    end: int
    value: ValueFact


class Visit(NamedTuple):
    """One circumstance in which a statement of the line runs: the calls that lead there, the state before it, and
    what it does. ``changes`` are generators, modes and variables that it sets."""

    flow: tuple[Step, ...]
    scope: str
    generators: tuple[Level, ...]
    modes: tuple[tuple[str, Setting], ...]
    variables: tuple[tuple[str, Setting], ...]
    contexts: tuple[str, ...]
    options: tuple[str, ...]
    aside: str
    guessed: bool
    uncertain: bool
    loops: tuple[tuple[str, Site], ...]
    calls: tuple[CallFact, ...]
    draws: tuple[DrawFact, ...]
    values: tuple[ExprFact, ...]
    changes: tuple[str, ...]


class Blocked(NamedTuple):
    """Why a statement did not run although one around it did: at ``site``, ``reason`` in words, of the test between
    two offsets if it is one."""

    site: Site
    reason: str
    test: tuple[int, int] | None = None


class Recording(NamedTuple):
    """What was noted. ``times`` says how often statements of the line ran; ``silences`` are rules with the reason
    for which they do not report the line, ``elsewhere`` the same of other places; ``activity`` is what the program
    does, with the first place of it; ``exhausted`` whether the step budget was used up before."""

    visits: tuple[Visit, ...]
    times: int
    blocked: tuple[Blocked, ...]
    silences: tuple[tuple[str, str], ...]
    elsewhere: tuple[tuple[str, Site, str], ...]
    activity: tuple[tuple[str, Site], ...]
    devices: tuple[str, ...]
    exhausted: bool


# ------------------------------------------------------------------------------------------- the line


def statements_of(facts: FileFacts) -> Iterator[tuple[Any, tuple[Any, ...], int]]:
    """Every statement with those around it in its function, and that function's index."""

    def below(body: Iterable[Any], chain: tuple[Any, ...], function: int) -> Iterator[Any]:
        for stmt in body:
            yield stmt, chain, function
            inner = (*chain, stmt)
            if isinstance(stmt, m.ClassDef):
                yield from below(facts.classes[stmt.cls].body, inner, function)
            for name in ("body", "orelse", "final"):
                yield from below(getattr(stmt, name, ()), inner, function)
            for part in (*getattr(stmt, "handlers", ()), *getattr(stmt, "cases", ())):
                yield from below(part.body, inner, function)

    for index, fn in enumerate(facts.functions):
        yield from below(fn.body, (), index)


def _own_nodes(facts: FileFacts, stmt: Any) -> Iterator[Any]:
    """The expressions of a statement, without those of the statements inside of it."""
    if isinstance(stmt, m.FunctionDef):
        fn = facts.functions[stmt.function]
        tops: list[Any] = [*fn.decorators, *(p.default for p in fn.params if p.default is not None)]
    elif isinstance(stmt, m.ClassDef):
        cls = facts.classes[stmt.cls]
        tops = [*cls.decorators, *cls.bases, *(k.value for k in cls.keywords)]
    elif isinstance(stmt, m.With):
        tops = [x for item in stmt.items for x in (item.context, item.target) if x is not None]
    elif isinstance(stmt, (m.If, m.While)):
        tops = [stmt.test]
    elif isinstance(stmt, m.For):
        tops = [stmt.target, stmt.iter]
    elif isinstance(stmt, m.Match):
        tops = [stmt.subject]
    elif isinstance(stmt, m.Try):
        tops = []
    else:
        tops = [stmt]
    for node in nodes(tops):
        if node is not stmt:
            yield node


def _span(node: Any) -> tuple[int, int]:
    """The offsets of an expression; not every kind of node has its own."""
    inner = [one for one in nodes([node]) if hasattr(one, "start")]
    return min((one.start for one in inner), default=0), max((one.end for one in inner), default=0)


def find_spot(facts: FileFacts, path: str, start: int, end: int) -> Spot | None:
    """The line between two offsets of a file; None where no statement stands there."""
    found: list[tuple[Any, tuple[Any, ...], int]] = []
    watched: set[int] = set()
    for stmt, chain, function in statements_of(facts):
        own = list(_own_nodes(facts, stmt))
        spans = [(stmt.start, stmt.end), *((n.start, n.end) for n in own if hasattr(n, "start"))]
        if not any(first < end and last > start for first, last in spans):
            continue
        found.append((stmt, chain, function))
        # On the first line of a statement the question is about all of it, further down about what stands there.
        whole = start <= stmt.start < end
        here = [n for n in own if hasattr(n, "start") and (whole or (n.start < end and n.end > start))]
        watched.update(map(id, here))
        # What is called, also where only the end of the call stands there.
        watched.update(id(n.func) for n in here if isinstance(n, m.Call))
    if not found:
        return None
    # A lambda's body stands inside of a statement of another function: that statement is the line's.
    outer = [one for one in found if facts.functions[one[2]].name != "<lambda>"] or found
    _, chain, function = outer[0]
    return Spot(path, start, end, function, chain, tuple(stmt for stmt, _, _ in found), frozenset(watched))


# ------------------------------------------------------------------------------------- the recorded run


class Recorder:
    """Listens to one run at one line."""

    def __init__(self, spot: Spot, interp: Interp) -> None:
        self.interp = interp
        self.spot = spot
        self.watched = spot.watched
        self._inside: list[_Open] = []
        # By their circumstances without the calls that lead there; conditions of entries have no hash.
        self._visits: list[Visit] = []
        self._count = 0
        self._decided: dict[int, tuple[Site, Outcome]] = {}
        self._seen: set[int] = set()
        self._ended: dict[int, Site] = {}
        self._drawn: set[str] = set()
        self._silences: dict[tuple[str, str], None] = {}
        self._elsewhere: dict[tuple[str, Site, str], None] = {}
        self._late: dict[DrawFact, None] = {}
        self._activity: tuple[tuple[str, Site], ...] = ()
        self._devices: tuple[str, ...] = ()
        self._exhausted = False
        interp.listeners.add(self)
        interp.silences = self._silent

    def recording(self) -> Recording:
        """What was noted, when the run has ended."""
        self._end()
        visits = list(self._visits)
        if visits and self._late:
            # Objects draw where they were made, later than the line that makes them runs.
            late = [one for one in self._late if one not in visits[0].draws]
            visits[0] = visits[0]._replace(draws=(*visits[0].draws, *late))
        return Recording(
            tuple(
                one._replace(generators=tuple(x for x in one.generators if self._is_used(x.generator)))
                for one in visits
            ),
            self._count,
            tuple(self._blocked()) if not visits else (),
            tuple(self._silences),
            tuple(self._elsewhere),
            self._activity,
            self._devices,
            self._exhausted,
        )

    def _is_used(self, rng: str) -> bool:
        """Whether a generator is one of a library that the program has: a call may seed those of others too."""
        library = self.interp.kb.generators[rng].library
        return rng in self._drawn or library == PYTHON or library in self.interp.libraries

    # --------------------------------------------------------------------------------- statements

    def before(self, interp: Interp, stmt: Any) -> None:
        """A statement that is looked at is about to run."""
        self._seen.add(id(stmt))
        if any(stmt is one for one in self.spot.statements):
            self._count += 1
            self._exhausted = self._exhausted or interp.exhausted
            self._inside.append(_Open(interp))

    def after(self, interp: Interp, stmt: Any) -> None:
        """It has run."""
        if not any(stmt is one for one in self.spot.statements):
            return
        visit = self._inside.pop().visit(interp)
        known = any(visit == one._replace(flow=visit.flow) for one in self._visits)
        if not known and len(self._visits) < MOST_VISITS:
            self._visits.append(visit)

    def skipped(self, interp: Interp, stmt: Any, last: Any) -> None:
        """The path has ended before the statement."""
        self._ended.setdefault(id(stmt), interp.here(last))

    def decided(self, interp: Interp, stmt: Any, outcome: Outcome) -> None:
        """A test around the line gives this."""
        if id(stmt) in self.watched:
            old = self._decided.get(id(stmt))
            if old is None or old[1].answer == outcome.answer:
                self._decided[id(stmt)] = (interp.here(stmt), outcome)
            else:
                self._decided[id(stmt)] = (interp.here(stmt), Outcome(None))

    def value(self, interp: Interp, node: Any, value: v.Value) -> None:
        """An expression of the line has a value."""
        if self._inside:
            self._inside[-1].values[node.start, node.end] = ExprFact(node.start, node.end, describe(value))

    def _blocked(self) -> Iterator[Blocked]:
        chain = [*self.spot.chain, *self.spot.statements[:1]]
        for index, stmt in enumerate(chain):
            if id(stmt) in self._seen:
                continue
            around = chain[index - 1] if index else None
            if id(stmt) in self._ended:
                site = self._ended[id(stmt)]
                yield Blocked(site, "every path ends here, by a return, a raise, an exit or a jump")
            elif around is not None and id(around) in self._decided:
                site, outcome = self._decided[id(around)]
                if outcome.answer is not None:
                    option = f", by the default of {quoted(outcome.option)}" if outcome.option else ""
                    reason = f"this test is {str(outcome.answer).lower()}{option}"
                    yield Blocked(site, reason, _span(around.test))
            return

    # --------------------------------------------------------------------------------- what happens

    def _here(self, interp: Interp, node: Any) -> bool:
        return id(node) in self.spot.nodes or (
            interp.frame.file.path == self.spot.path
            and isinstance(node, msgspec.Struct)
            and any(node is one for one in self.spot.statements)
        )

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """Something is called."""
        interp = self.interp
        if self._inside and self._here(interp, call.node):
            self._inside[-1].calls[call.api, call.node.start, call.node.end] = _call_fact(interp, call)

    @on(GlobalDrawEvent)
    def drawn(self, event: GlobalDrawEvent) -> None:
        """A generator is drawn from."""
        interp, (rng, level, entry, node) = self.interp, event
        self._drawn.add(rng)
        if not self._here(interp, node):
            return
        fact = DrawFact(_level(interp, rng, level), entry.id, entry.kind)
        if self._inside:
            self._inside[-1].draws[fact] = None
        else:
            self._late[fact] = None

    def _silent(self, code: str, site: Site, reason: str) -> None:
        if site.path == self.spot.path and site.start < self.spot.end and site.end > self.spot.start:
            self._silences[code, reason] = None
        else:
            self._elsewhere[code, site, reason] = None

    def _end(self) -> None:
        interp = self.interp
        wanted = {TRAIN: "trains", "cuda": "uses CUDA", "cuda-api": "uses CUDA", "cuda-device": "may use CUDA",
                  "xpu": "uses XPU", "mps": "uses MPS", NO_GPU: "uses no GPU",
                  GPU_BY_OPTION: "sees a GPU only where an option names one"}  # fmt: skip
        for flag in interp.places:
            if flag.startswith(NO_GPU_FOR):
                wanted[flag] = f"uses no GPU in {flag.removeprefix(NO_GPU_FOR)}"
        found: dict[str, Site] = {}
        for flag, text in wanted.items():
            place = interp.places.get(flag)
            if place is not None:
                found.setdefault(text, place.site)
        self._activity = tuple(found.items())
        self._devices = tuple(accelerators(interp))


class _Open:
    """A statement of the line that is running."""

    def __init__(self, interp: Interp) -> None:
        self.values: dict[tuple[int, int], ExprFact] = {}
        self.calls: dict[tuple[str, int, int], CallFact] = {}
        self.draws: dict[DrawFact, None] = {}
        state = interp.state
        self._flow = flow(interp)
        self._scope = scope(interp)
        self._before = _settings(interp, state)
        self._contexts = tuple(dict.fromkeys(interp.contexts.held))
        self._options = tuple(dict.fromkeys(interp.options.held))
        self._aside = state.aside
        self._guessed = interp.guessing > 0
        self._uncertain = interp.uncertain > 0
        self._loops = tuple(x for loop in interp.orders.loops for x in _origins(loop.order))

    def visit(self, interp: Interp) -> Visit:
        """All that was noted."""
        generators, modes, variables = self._before
        after = _settings(interp, interp.state)
        changes = [
            *(f"seed of {one.title}" for one in after[0] if one not in generators),
            *(f"`{name}`" for name, x in after[1] if (name, x) not in modes),
            *(f"the variable `{name}`" for name, x in after[2] if (name, x) not in variables),
        ]
        return Visit(
            self._flow,
            self._scope,
            generators,
            modes,
            variables,
            self._contexts,
            self._options,
            self._aside,
            self._guessed,
            self._uncertain,
            self._loops,
            tuple(self.calls.values()),
            tuple(self.draws),
            tuple(sorted(self.values.values(), key=lambda one: (one.start, -one.end))),
            tuple(changes),
        )


_OF_OBJECTS = (BOUND, LOADED, OVERWRITTEN, REPLACED, NOT_DRAWN_SINCE, READ)
_State = tuple[tuple[Level, ...], tuple[tuple[str, Setting], ...], tuple[tuple[str, Setting], ...]]


def _settings(interp: Interp, state: State) -> _State:
    levels = tuple(_level(interp, rng, state.level(rng)) for rng in interp.kb.generators)
    # What the analysis remembers of single objects and functions is kept there too, and is nothing that the program has a
    # name for.
    modes = ((name, setting) for name, setting in state.modes.items() if not name.startswith(_OF_OBJECTS))
    return levels, tuple(sorted(modes, key=_name)), tuple(sorted(state.env.items(), key=_name))


def _name(item: tuple[str, Any]) -> str:
    return item[0]


def _level(interp: Interp, rng: str, level: Rng) -> Level:
    generator = interp.kb.generators[rng]
    return Level(rng, generator.title, LEVELS[level.level], level.site, level.option, level.helper)


class RecordedInterp(Interp):
    """A run that notes what it knows at one line, where the program comes to it."""

    looks_behind_constants = False
    recorder: Recorder

    def block(self, body: Iterable[m.Stmt]) -> None:
        if self.frame.file.path != self.recorder.spot.path:
            super().block(body)
            return
        watched = self.recorder.watched
        body = list(body)
        if not any(id(stmt) in watched for stmt in body):
            super().block(body)
            return
        last: Any = None
        ended = False
        for stmt in body:
            if id(stmt) not in watched:
                super().block((stmt,))
            elif self.state.alive:
                self.recorder.before(self, stmt)
                super().block((stmt,))
                self.recorder.after(self, stmt)
            else:
                self.recorder.skipped(self, stmt, last)
                return
            last = stmt if last is None or self.state.alive or not ended else last
            ended = not self.state.alive

    def eval(self, node: m.Expr) -> v.Value:
        value = super().eval(node)
        if id(node) in self.recorder.spot.nodes:
            self.recorder.value(self, node, value)
        return value

    def decide(self, stmt: m.If | m.While) -> Outcome:
        outcome = super().decide(stmt)
        self.recorder.decided(self, stmt, outcome)
        return outcome


# --------------------------------------------------------------------------------------------- calls


def _call_fact(interp: Interp, call: CallEvent) -> CallFact:
    args = call.args
    named = [*((str(i), x) for i, x in enumerate(args.pos)), *args.kw.items()]
    receiver = describe(call.owner) if call.owner is not None else None
    return CallFact(
        call.api,
        call.node.start,
        call.node.end,
        receiver,
        tuple((name, describe(x)) for name, x in named),
        tuple(matches(interp, call)),
    )


def matches(interp: Interp, call: CallEvent) -> Iterator[Match]:
    """The entries of the knowledge base that are about a call, with the answers of their conditions."""
    kb, args, owner = interp.kb, call.args, call.owner
    bare = call.api.rpartition(".")[2]
    unknown = call.api.startswith("?.")
    for rng in kb.rng(call.api) or (kb.rng_methods(bare) if unknown else ()):
        if set(rng.unless_inside).isdisjoint(interp.contexts.held):
            yield _of_rng(interp, rng, args, owner)
    used = call.api.endswith(CALLED)
    api = call.api.removesuffix(CALLED)
    for op in kb.ops(api) or (kb.op_methods(bare) if unknown else ()):
        if (op.at == "use") is used or unknown:
            yield _of_op(interp, op, args, owner)
    for hazard in kb.hazards_of(call.api):
        yield _of_hazard(interp, hazard, args, owner)
    order = kb.order(call.api, owner is not None)
    if order is not None and order.role != "type":
        yield _of_order(order, args)
    for role in {one.id: one for one in kb.roles(call.api)}.values():
        tests = tuple(Test(c, holds(args, c, owner)) for c in role.when)
        yield Match("role", role.id, role.library, "", "", True, "", tests, ROLES[role.role])


def _target(interp: Interp, library: str, versions: str) -> tuple[bool, str]:
    """Whether the target version of a library is in a range, and which one it is."""
    if interp.targets is None:
        return True, ""
    found = interp.targets.version(library)
    return not versions or interp.targets.matches(library, versions), found.version


def _tests(args: v.Args, when: Any, unless: Any, owner: v.Value | None) -> tuple[Test, ...]:
    return (
        *(Test(one, all_hold(args, [one], owner), given=_is_given(args, one)) for one in when),
        *(
            Test(one, any_holds(args, [one], owner), unless=True, given=_is_given(args, one))
            for one in unless
        ),
    )


def _is_given(args: v.Args, condition: Condition) -> bool:
    """Whether a call may give the argument that a condition is about."""
    if not condition.arg or condition.arg == "self" or args.star:
        return True
    return args.get(condition.arg, condition.pos) is not None


_KINDS = {
    "split": "DET109",
    "own-sampler": "DET109",
    "unseeded-op": "DET110",
    "environment": "DET111",
    "generator": "DET106",
    "sampling": "DET701",
    "tf-shuffle": "DET207",
    "anti-seed": "DET107",
}
"""The rules that report calls of some kinds, whatever they draw from."""


def _of_rng(interp: Interp, entry: RngEntry, args: v.Args, owner: v.Value | None) -> Match:
    applies, target = _target(interp, entry.library, entry.versions)
    rules = {interp.kb.generators[r].rule for r in entry.draws if r in interp.kb.generators}
    rule = _KINDS.get(entry.kind) or (rules.pop() if len(rules) == 1 else "")
    does = [
        *([f"seeds {', '.join(entry.seeds)}"] if entry.seeds else []),
        *([f"draws from {', '.join(entry.draws)}"] if entry.draws else []),
        *([f"sets {', '.join(effect.name for effect in entry.sets)}"] if entry.sets else []),
    ]
    tests = _tests(args, entry.when, entry.unless, owner)
    return Match(
        "rng", entry.id, entry.library, rule, entry.versions, applies, target, tests, "; ".join(does)
    )


def _of_op(interp: Interp, entry: OpEntry, args: v.Args, owner: v.Value | None) -> Match:
    past = next(
        (
            one
            for one in entry.history
            if interp.targets is not None and interp.targets.matches(entry.library, one.versions)
        ),
        None,
    )
    _, target = _target(interp, entry.library, "")
    rule = entry.rule or ("DET403" if entry.library in ("tensorflow", "keras") else "DET401")
    devices = ", ".join(entry.devices)
    passes = "forward and backward pass" if entry.passes == "both" else f"{entry.passes} pass"
    detail = f"{_BEHAVIOURS.get(past.behaviour if past is not None else '')} ({passes} on {devices})"
    tests = _tests(args, entry.when, entry.unless, owner)
    versions = past.versions if past is not None else ""
    return Match("op", entry.id, entry.library, rule, versions, past is not None, target, tests, detail)


def _of_hazard(interp: Interp, entry: HazardEntry, args: v.Args, owner: v.Value | None) -> Match:
    applies, target = _target(interp, entry.library, entry.versions)
    tests = _tests(args, entry.when, entry.unless, owner)
    return Match("hazard", entry.id, entry.library, entry.rule, entry.versions, applies, target, tests)


def _of_order(entry: OrderEntry, args: v.Args) -> Match:
    rule = entry.rule if entry.role == "source" else ""
    tests = _tests(args, entry.when, entry.unless, None)
    return Match("order", entry.id, entry.library, rule, "", True, "", tests, ORDERS[entry.role])


_BEHAVIOURS = {
    "deterministic_alternative": "varies, but not in deterministic mode",
    "raises": "varies, and raises an error in deterministic mode",
    "silent": "varies, also in deterministic mode",
    "deterministic": "deterministic",
    "": "not known in this version",
}
ORDERS = {
    "source": "gives elements in arbitrary order",
    "carry": "keeps the order of what it is given",
    "pair": "takes sequences side by side",
    "gradients": "adds gradients to those that there are",
    "zero-gradients": "sets gradients to zero",
    "points": "draws points, in whatever order they are",
    "tally": "counts the pairs of two sequences, in whatever order they are",
    "end": "its result does not depend on the order",
    "sum": "adds up what it is given, whose order decides the rounding",
    "sink": "the order of what it is given counts",
    "show": "shows what it is given",
    "step": "changes a model",
    "fit": "fits a model, whose result depends on what the model was built with",
    "write": "writes what it is given",
    "grow": "adds to its receiver",
    "fill": "puts what it is given into a place of its receiver",
    "accumulate": "adds what it is given to what it holds, whose order decides the rounding",
    "argsort": "gives the places of the elements in sorted order",
    "settle": "sorts its receiver",
    "push": "adds to a heap",
    "draw": "adds to the present figure",
    "figure": "begins or ends a figure",
    "type": "",
}
ROLES = {
    "applies": "runs a method of its receiver with weights that are kept outside of it",
    "reuses-variables": "is a context in which variables are taken that there are",
    "passes-on": "runs the function that it is given with what it is given for it",
    "passes-sequence": "takes the arguments for that function in a sequence",
    "hides-ops": "gives a model of which it is not known what ops it calls",
    "applies-to-items": "keeps functions for items of data and calls them where it is called itself",
    "initializes": "runs a method of its receiver to make its weights",
    "calls-with-model": "calls methods of its receiver with the model that it was made with",
    "ends-with-part": "makes a model whose last part is in a known attribute: no gradient goes through it to other parts",
    "not-subscriptable": "is a class of which objects have no items",
    "hashed-by-address": "is a class of which objects are hashed by their addresses",
    "has-only": "is a base class of which all attributes are known",
    "known-parts": "makes a model whose weights are in known attributes",
    "names-in-parts": "makes modules whose weights have names of known pieces",
    "made-of": "makes a model of known layers",
    "freezes-weights": "gives a model whose own weights do not require grad",
    "calls-aside": "calls methods of its receiver, and gives something else",
    "calls-method-of": "calls methods of an argument",
    "calls-for-leaves": "calls a function for each part of nested containers",
    "calls-for-each": "calls a function for each element",
    "calls-held": "calls the functions and objects that it is given, also in mappings",
    "calls-on-class": "calls a method of the class of its receiver with gradients switched off",
    "calls-methods": "calls other methods of its receiver, one after another",
    "calls-in-training": "calls the layers of its receiver with `training=True`",
    "calls-in-inference": "calls the layers of its receiver with `training=False`",
    "takes-mode": "is a layer that takes `training` from its caller",
    "builds-with": "is a layer that calls some of its arguments once, to make its weights",
    "enables-mode": "enables deterministic mode",
    "chosen-by-name": "is a class of a module of which a name chooses one",
    "moves-in-place": "moves the tensors that its receiver holds",
    "moves-items": "makes a transform that moves what it is called with to a device",
    "registers-hook": "gives its receiver a function to call",
    "updates-weights": "takes a step of training",
    "evaluates-within": "puts the modules that it is given into evaluation mode while its block runs",
    "starts-evaluated": "gives a module in evaluation mode",
    "starts-in-training": "is a class of modules that begin in training mode",
    "repeats": "calls a function in each round of a loop",
    "asks-for-group": "asks whether the program has a process group",
    "makes-group": "may make a process group",
    "makes-table": "makes a table of the columns or rows that it is given",
    "names-rows": "gives a table whose rows have names",
    "rows-by-name": "gives rows by their names",
    "labels-elements": "labels what it is given with the keys of a mapping",
    "counts-by-label": "gives how often each value is there, by the values",
    "puts-in-rows": "makes an array with a row for each element",
    "reduces-rows": "gives what is the same in any order along a dimension",
    "reduces-rows-with-positions": "gives what is the same in any order along a dimension, and where it was",
    "by-label": "takes elements by labels, or has all of them under these",
    "keeps-cells": "gives rows or columns of its receiver as they are",
    "makes-no-group": "is a library that makes no process group",
    "asks-for-gpu": "asks its library for a GPU, or says how it is to use one",
    "places-on-devices": "says for each operation one of the devices that it is given",
    "stays-on-cpu": "keeps its library on the CPU",
    "sets-up": "calls another method before any other",
    "item-method": "is a base class that makes an item with a method of the class derived from it",
    "gives-batches": "makes an iterator of batches",
    "always-draws": "draws for each item, also where nothing comes of it",
    "keeps-argument": "is the attribute in which an argument is kept",
    "keeps-arguments": "keeps its arguments in attributes",
    "keeps-constructor": "keeps the arguments of the constructor in attributes of the object",
    "keeps-given": "keeps an argument in attributes of its receiver",
    "keeps-fields": "makes an object whose attributes are its keyword arguments",
    "keeps-keywords": "keeps its keyword arguments in attributes",
    "changes-fields": "gives an object like its receiver, but for its keyword arguments",
    "allocates": "gives memory whose content is undefined",
    "made-by-configuration": "makes what a configuration names",
    "followed": "does with functions and objects that it is given what is known",
    "hands-on": "hands on to code of the program what it is given, and reads nothing of it",
    "holds": "gives an object that shares the memory of its argument",
    "views": "gives a tensor that shares the memory of what it is given",
    "suppresses": "is a context that keeps exceptions from going on",
    "false-in-programs": "is false in a program, and true for a type checker",
    "plain-object": "makes an object that counts as true",
    "equals-no-text": "makes an object that equals no text",
    "names-dimension": "names a dimension of its input",
    "starts-workers": "starts workers that prepare the batches of a sequence",
    "needs-no-workers": "is data of which Keras prepares no batches in workers",
    "no-weights": "is a layer that has no weights",
    "applies-function": "is a layer that gives what a function makes of its inputs",
    "parts": "gives several tensors that share the memory of what it is given",
    "configuration": "gives a configuration, of which what the program does not set has its default",
    "merges-configurations": "gives a configuration with the content of all that it is given",
    "parses-class": "gives an object of a class, with what the command line gives its fields",
    "reads-command-line": "gives a configuration of what the command line says",
    "takes-configuration": "gives a configuration with the content of what it is given",
    "moves-models": "moves the weights of a model that it is given",
    "leaves-weights": "leaves the weights of its receiver on their device",
    "configuration-file": "gives the configuration in the file that the argument names",
    "configured": "starts what its receiver was configured for",
    "configures": "configures its receiver",
    "changes-configuration": "decorates a function that changes the configuration of its receiver",
    "binds-parameters": "binds parameters of functions to values",
    "takes-bindings": "decorates a function whose parameters may be bound to values",
    "names-configuration": "gives its receiver a configuration that may be chosen",
    "held-as-given": "gives a dataset that is held as what it is given is",
    "held-in-file": "gives a dataset that is held in a file",
    "held-in-memory": "gives a dataset that is held in memory",
    "has-parts": "makes an object that has configured parts",
    "names-main": "names the function that its receiver runs",
    "compiles": "compiles what it is given, or a model, with Inductor",
    "times-kernels": "compiles a model with kernels that are selected by timing",
    "times-no-kernels": "runs no convolution and no recurrent layer itself",
    "copies": "gives the elements in another place or type",
    "makes-text": "makes a text or a path of what it is given",
    "reads-text": "gives a part of a text, or the text of a file",
    "named-by": "gives what it makes the name that it is given",
    "read-by": "reads the file that has the name that it is given",
    "keeps-figure": "keeps a picture that the program has drawn",
    "reruns-script": "is of a library that runs the whole script again for each action on its page",
    "colored-by": "draws in a color that it is given",
    "enumerates": "is a base class of enumerations: calling one looks up a member",
    "runs-no-methods": "is a base class of which no method runs those of a class derived from it",
    "derived-for-libraries": "is a class from which programs derive what a library calls",
    "derived-from": "is a class of modules of which all classes are known that it is derived from",
    "base-only": "is a base class that reads only attributes that it knows",
    "types-columns": "gives a table, and names the types of its columns",
    "divides": "gives parts of its arguments, which are of the same classes",
    "parallel-stage": "adds a stage to a tf.data pipeline that may compute several elements at a time",
    "sets-parameters": "sets the arguments of the estimator that it is given before it fits it",
    "picks": "gives one of the elements of its argument, or a list of some or all of them",
    "chooses": "gives one or some of the elements of its argument, or all in another order",
    "rearranges": "gives elements of its arguments in another order, in an object of the same class",
    "takes-item": "gives a function that takes what stands at a place, or under a key",
    "takes-items": "takes the items of a dataset, and nothing else of it",
    "takes-inputs": "makes a module that takes a fixed number of inputs",
    "takes-several": "gives the items of several datasets, which it is given in a list",
    "tells-form": "tells a number, a type or whether something holds, whatever the elements are",
    "gives-address": "gives the address of the memory of its receiver",
    "looks-only": "looks at sizes, types or places, at no element",
    "shows-structure": "looks at the parts and sizes of a model, at none of its weights",
    "asserts": "raises where its arguments do not agree",
    "form-only": "takes an example, of which only the form counts",
    "unchanged-by-call": "is not changed by a call",
    "keeps-statistics": "keeps statistics of what it is called with",
    "worker-seed": "gives the seed of the process, which a worker of a loader draws",
    "gives-gradients": "gives a function for the gradients with which a model is trained",
    "differentiates": "gives a function that runs the one it is given with the same arguments",
    "wraps": "gives what acts like its argument",
    "gives-back": "gives its argument back as it is",
    "reads-configuration": "gives what a file with a configuration holds",
    "updated-by-index": "has an attribute by which elements are given to a copy of it",
    "gives-duplicates": "gives an array in which a number may be several times",
    "gives-seed": "gives the number from which a generator was started, which differs between runs until it is seeded",
    "gives-number-held": "gives the number that its argument holds",
    "gives-generator": "gives a generator that is seeded with its argument, or the global one",
    "same-elements": "gives an array with the elements of its argument",
    "writes": "fills a tensor",
    "overwrites": "overwrites all elements of a tensor",
    "ignores": "does not read one of its arguments when another is zero",
    "writes-where": "writes only where its argument `where` is true",
    "reads": "computes from the elements of its arguments",
    "loads-weights": "loads all weights of a model",
    "fills-parameters": "gives access to, or values to, all parameters of a module",
    "async-copy": "copies between devices, and returns before it is done",
    "synchronizes": "waits until work that was started has ended",
    "stream": "what is started in its context runs beside the rest",
    "waits": "makes one stream, or the host, wait for another",
    "async-collective": "communicates, and returns before it is done",
    "updates": "changes a tensor by what it held before",
    "averages": "keeps an average of weights",
    "registers": "registers a function that a server, or a window, calls",
    "registers-start": "registers a function that a server calls before all others",
    "only-decorates": "changes how a function that it decorates runs, not what calls it",
    "starts": "makes a program, which a framework starts, of what it decorates or is given, or of derived classes",
    "starts-named": "is imported by files of which a framework starts what has certain names",
    "calls-decorated": "decorates a function that some of its methods call",
    "gives-decorated": "decorates a function or a class that some of its methods give with other options",
    "delays": "lets the program wait for a time",
    "serves": "has methods that the library calls which is handed an object of it, or the class",
    "called-back": "is called by a trainer at certain times",
    "restores": "makes instances of classes that are derived from it with the weights of a checkpoint",
    "calls-when-made": "calls some methods of objects of classes that are derived from it when it makes them",
    "calls-quietly": "calls some methods of classes that are derived from it with gradients switched off",
    "checkpoints": "runs a function again in the backward pass",
    "recomputes": "runs a function again in the backward pass without a random number state",
    "puts-back": "puts the states in a checkpoint back into objects",
    "trains-without-rng": "makes what trains, whose state has none of random number generators",
    "gives-rng-state": "gives the state of a random number generator",
    "restores-rng": "puts a random number generator back into an earlier state",
    "makes-key": "gives a JAX key",
    "holds-states": "makes a checkpoint of its arguments",
    "manages-states": "saves and restores a checkpoint",
    "optimizes": "makes an optimizer",
    "tells-class": "shows of what class its receiver is",
    "trains-class": "trains the weights of its receiver, where that is known to be a model",
    "exports": "writes a model in another form",
    "trains-parameters": "makes an optimizer of the parameters that it is given",
    "iterates": "gives an iterator of a dataset",
    "reads-later": "gives what takes elements of its data where elements of it are taken",
    "reorders": "shuffles a dataset in another order in each epoch",
    "own-estimators": "is a package whose estimators have no networks in them that they are not given",
    "own-gradients": "is a package whose tensors take gradients themselves",
    "no-gpu": "gives a strategy under which models run on no GPU",
    "calls-in-steps": "calls cells that it is given in each step of a loop of a graph",
    "draws-in-steps": "draws in each step of a loop of a graph",
    "draws-fraction": "draws a number that is at least zero and less than one",
    "draws-weight": "draws the weights of a layer",
    "draws-with-key": "consumes a JAX key",
    "folds-key": "draws with keys that it makes of a JAX key with `fold_in`",
    "splits-key": "makes a number of keys of a JAX key",
    "no-variable": "gives a tensor in which no trainable variable takes part",
    "sentinel": "says that no value is given",
    "leaves-out": "gives what was saved in a file, but for an attribute that is saved by itself",
    "left-out": "leaves an option out of the namespace unless it is given",
    "given-by-launcher": "is given by the launcher of the processes",
    "without-gradient": "is a class whose methods compute metrics or prepare data",
    "ranks": "gives the positions of elements in their order",
    "mode-changes-nothing": "gives the same bits in each run without deterministic mode",
    "reads-no-variables": "does not yet make its library read environment variables",
    "mode-may-change": "may run ops that are not known",
    "model-input": "gives what a model is called with",
    "gives-indices": "gives a tuple of indices that together name each position once at which something is true",
    "gives-positions": "gives each position at which something is true",
    "trains-estimator": "trains an estimator that it is given",
    "rounds-down": "gives the whole number below a value",
    "resizes": "gives an image another size, to which its elements are interpolated",
    "zero-gradient": "gives nothing but zeros as the gradient of its input",
    "shaped-as-index": "gives a tensor with the shape of the index that it is given",
    "removes-single": "removes dimensions of one entry",
    "flattens": "makes one dimension of all",
    "all-different": "gives numbers, none of which is there twice",
    "gives-pair": "gives two of what it gives otherwise",
    "gives-something": "never gives None",
    "gives-in-workers": "gives None but in worker processes of a loader",
    "tensor": "gives a tensor",
    "tested-class": "is a class that decides what ops do with its objects",
    "graph-seed": "takes the seed of its graphs from a configuration",
    "graph-gradient": "adds gradients to a graph of TensorFlow",
    "discards-batches": "gives a loader that leaves out its first batches",
    "reads-arrays": "gives arrays of a file that the program may have written",
    "reads-data": "gives what a file holds that the program may have written",
    "begins-anew": "is a dataset that each loop goes through from its beginning",
    "keeps-pairs": "keeps pairs of a name and an object that it was given",
    "leaves-out-items": "leaves out the first elements of a dataset",
    "hands-out": "gives the tasks that it is given as they end",
    "runs-graph": "runs graphs of TensorFlow",
    "saves-by-clock": "saves variables when a time has passed",
    "saves-in-epochs": "lets a trainer save checkpoints within epochs",
    "saves-states": "saves checkpoints of a trainer, or lets it do so",
    "stores-arrays": "writes its keyword arguments into a file",
    "stores-data": "writes what its argument names into a file",
    "saves-checkpoint": "writes what its argument names into a file",
    "assigns-variables": "gives the variables of a network the values of a file",
    "gives-setting": "gives the text of a setting",
    "initializes-variables": "gives the variables or tables of a graph their initial values",
    "orders-by-column": "puts the rows of a table into the order of a column",
    "gives-arguments": "gives the calls in a block further arguments",
    "groups-ops": "gives what a session runs to run all that it is given",
    "saves-variables": "saves and restores the variables of a graph",
    "saves-trained-variables": "saves and restores the trained variables of a graph",
    "saves-in-training": "writes files while a model is trained that it is given to",
    "resumes-training": "goes on with training from the checkpoint that is named",
    "goes-first": "is to be imported or called before other packages are imported",
    "queue": "makes a queue between threads or processes",
    "quiet-datasets": "is a dataset that draws nothing for an item but what its transforms draw",
    "calls-at-use": "calls the functions that it is given where it is used",
    "calls-later": "calls the functions that it is given for elements, when these are asked for",
    "keeps-functions": "keeps the functions that it is given, and calls none",
    "may-call": "calls the functions that it is given at any time after it, or never",
    "calls-in-modes": "builds its graph with the function that it is given, each time it is used",
    "works-in-mode": "lets the graph be built in a mode",
    "splits-examples": "splits examples into parts by chance",
    "vectorizes": "gives a function that calls the one that it is given for each element",
    "names-last-checkpoint": "names the last file that was saved",
    "stands-for-text": "is a name for a text",
    "gives-number": "gives one number",
    "gives-loaded": "gives a new object with the state in a file",
    "loads-checkpoint": "gives what a checkpoint holds",
    "restores-model": "gives a whole model of a file, with its optimizer",
    "restores-weights": "gives a model its weights alone",
    "gives-keys": "gives a sequence of keys of JAX",
    "gives-layers": "gives all layers of a model",
    "asks-states": "asks objects for their states",
    "restores-like": "gives what was saved, in the form of its argument",
    "holds-training": "holds the state of training",
    "gives-states": "gives the states of its arguments",
    "takes-states": "gives objects their states back",
    "gives-weights": "gives the weights of a model, without its optimizer",
    "resumes-epochs": "trains from the epoch on that is named",
    "follows-count": "makes a scheduler whose learning rate follows from the number of its steps",
    "keeps-no-state": "makes an optimizer, or a scaler, that keeps nothing from one step to the next",
    "makes-scaler": "makes a scaler of losses and keeps it",
    "loads-when-trained": "loads the checkpoint of an earlier run when training begins",
    "goes-on-with": "trains further what was trained before",
    "reads-trained": "gives what stands in a file, which can be trained further",
    "saves-trained": "saves what has trained in a file",
    "saves-run": "saves the whole state of a run",
    "fills-from-file": "gives a model that is its argument the weights in a file",
    "numbers-saved": "saves what it is given under the number that an argument names",
    "restores-run": "restores the whole state of a run",
    "takes-into-run": "is given what is saved with a run",
    "adds-to-run": "adds an object to the state of a run",
    "saves-loader": "keeps the position in the data",
    "writes-cells": "writes the cells of a table as text",
    "writes-data": "writes data into a file",
    "takes-generator": "draws from the generator that it is given",
    "compares-fields": "has objects of a class compared, and hashed, by their fields",
    "contains-environment": "makes environments, or is put around one: its methods call theirs",
    "spawns-environments": "runs its environments in new processes, which have no state of this one",
    "starts-environments": "runs its environments in processes that are copies of this one",
    "new-process": "runs functions in processes that it starts",
    "leaves-script-out": "starts processes that do not run the script of the program",
    "runs-python": "is an op that calls a function of Python",
    "seeded-by-method": "makes an environment that its method `seed` seeds, in some releases",
    "begins-episode": "begins an episode in the simulator that it is a method of",
    "seeds-attribute": "seeds the generator that its receiver makes itself",
    "seeds-environment": "seeds the simulator that it is a method of",
    "seeds-workers": "gives loaders a function that seeds their workers",
    "resets-environment": "resets the environment that it is given",
    "samples-actions": "samples random actions from the action space of the environment that it is given",
    "clock": "reads the clock",
    "text-of-time": "makes a text of a time",
    "date": "gives the date or time of the run",
    "shared-list": "gives a list that processes share",
    "table": "is a table, or a column or row of one",
    "sized-by": "gives an array of the sizes that it is given",
    "stacks-rows": "gives one row for each of the items of its first argument",
    "takes-gradients": "takes gradients of tensors that the program names",
    "trains": "takes a training step, or runs training",
    "trains-in-epochs": "trains a model for as many epochs as the argument says that is named, or for one",
    "fits-data": "computes statistics of data where it is fitted",
    "computes": "computes something of its arguments and changes nothing",
    "works-when-built": "works when a graph is built, and only computes when it runs",
    "changes-state": "changes or reads what outlives it, or runs a function",
    "sets-stop": "ends training",
    "stops-by-return": "ends training by what it returns",
    "free-memory": "asks how much memory is free",
    "ordered-by-epoch": "shuffles by the epoch that is set",
    "replaces-samplers": "puts distributed samplers in place of random ones",
    "out-of-memory": "is raised when memory is used up",
    "processor-count": "asks how many processors or devices there are",
    "goes-on": "restores what an earlier run saved, and saves it by itself",
    "batch-size": "takes so many examples for each step",
    "machine-sized": "divides work by a number",
    "starts-ranks": "lets the program run in several processes",
    "rank": "asks which of several processes this is",
    "world-size": "asks how many processes there are",
}


# --------------------------------------------------------------------------------------------- values


def describe(value: v.Value | None, depth: int = 0) -> ValueFact:
    """What is known of a value. Reads past the log of reads: the run does not notice."""
    what, form, order, entropy, option = _parts(value, depth)
    return ValueFact(
        what,
        form.device,
        form.grad,
        form.dtype or "",
        form.sizes,
        _origins(order) if order is not None else (),
        entropy,
        "" if option == A_GPU else option,
        option == A_GPU,
    )


def _parts(value: Any, depth: int) -> tuple[str, Form, Order | None, bool, str]:
    form, order, entropy, option = NOTHING, getattr(value, "order", None), False, ""
    if isinstance(value, v.Lit):
        text = repr(value.value)
        what, option = text if len(text) <= 60 else text[:57] + "...", value.option
    elif isinstance(value, v.Ext):
        what = f"`{value.name}`"
    elif isinstance(value, v.Obj):
        form = value._form or NOTHING
        entropy = isinstance(value._data, Entropy)
        if value.type == "torch.Tensor":
            what = "tensor" + (" (likely)" if value.likely else "")
        elif value.type in ("?", "") or value.type.startswith("?."):
            what = f"result of `{value.api}`" if value.api != "?" else "unknown"
        else:
            what = f"`{value.type}`" if value.type != value.api else f"result of `{value.api}`"
    elif isinstance(value, v.Func):
        what = f"function `{value.fn.qualname}` of {value.file.relative}"
    elif isinstance(value, v.Cls):
        what = f"class `{value.cls.qualname}` of {value.file.relative}"
    elif isinstance(value, v.Inst):
        what = f"instance of `{value.cls.cls.qualname}`"
    elif isinstance(value, v.Mod):
        what = f"module `{value.name}`"
    elif isinstance(value, v.Items):
        kind = {"t": "tuple", "l": "list", "s": "set"}.get(value.kind, "list")
        count = len(value._elts)
        what = f"{kind} of {'at least ' if value._open else ''}{count}"
    elif isinstance(value, v.Mapping):
        what = "dictionary"
    elif isinstance(value, v.Member):
        owner = _parts(value.owner, depth + 1)[0] if depth < 2 else "a value"
        what = f"attribute `{value.name}` of {owner}"
    elif isinstance(value, v.Partial):
        what = "partial function"
    elif isinstance(value, v.AnyOf):
        known = [describe(one, depth + 1) for one in value.values[:MOST_ALTERNATIVES]] if depth < 2 else []
        what = "one of: " + ", ".join(dict.fromkeys(one.what for one in known)) if known else "one of several"
    else:
        what = "unknown"
    return what, form, order, entropy, option


def _origins(order: Order) -> tuple[tuple[str, Site], ...]:
    return tuple((rule, Site(path, start, end)) for rule, path, start, end in order.keys)
