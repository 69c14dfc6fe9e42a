"""DET114: JAX keys that are used twice, so that two draws give the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.findings import Severity, Step
from d9mlint.checks.base import Rule, argument_node
from d9mlint.interp import values as v
from d9mlint.interp.context import HANDED
from d9mlint.interp.events import CallEvent, Loop, LoopEvent, ResultEvent, RoundEvent
from d9mlint.interp.library.carried import carry_of, keys_in
from d9mlint.interp.library.keys import is_key
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import Tick, marks_path, remembered, remembered_table
from d9mlint.interp.places import Where, calls
from d9mlint.interp.state import Site
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import ends_after
from d9mlint.ir.scopes import assigned_names, heads, target_names
from d9mlint.ir.traversal import nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


_NESTED = 2
_PAIR = 2
"""Into so many keys one is split where no number is given."""
_BY_NUMBER = "<0.5"
"""The releases of JAX in which the keys of a split depend on how many there are, unless a setting says otherwise."""
_MOST = 128
"""So many used keys are followed in one path: each makes calls differ that would otherwise be the same."""
_DEEPEST = 4
"""So deep objects are looked for in the attributes of others."""
_AT = " at "
_HELP = "split it first and use each key once: `key, subkey = jax.random.split(key)`"


Slot = tuple[int, str]
"""A variable of a scope, or an attribute of an object: the birth of what holds it, and its name."""


class GivenIn(NamedTuple):
    """The call in a loop of a function that is given a key: the loop, the function, and the place of the call."""

    loop: str
    function: str
    place: Where


class Use(NamedTuple):
    """Where a key was used: the place, the call, the key's name, the loops around it, whether in a branch, the variable
    or attribute that it was read from, the object whose method it was given to, when, what folds something into the
    key before it draws, the calls that stand in these loops of functions that are given the key, into how many keys it
    is split, as far as that is known, which of the loops are run round by round, whether the key is one of several that
    an index picks, and the function that code which no entry point reaches is in: nobody calls it."""

    place: Where
    call: str
    name: str
    loops: tuple[str, ...]
    branching: int
    slot: Slot | None
    owner: int
    time: Tick
    folding: str
    calls: tuple[GivenIn, ...]
    parts: int | None
    unrolled: tuple[str, ...]
    picked: bool
    uncalled: tuple[str, int] | None


class Rounds(NamedTuple):
    """A call of a library that calls a function in rounds: when it began, the keys that the first round is given, by birth,
    and those of them that nothing had used."""

    began: Tick
    carried: tuple[Tick, ...]
    unused: tuple[Tick, ...]


class Keys(Rule):
    """DET114: keys that are used again."""

    codes = ("DET114",)
    used = marks_path(Use)
    """Uses by the key's own number, and where they stand."""
    repeated = remembered(tuple[Rounds, ...])
    """The calls that are running and call a function again and again."""
    first_given = remembered_table(tuple[str, str], Step)
    """Which call of a function is the first that is given a key again, by the key's number and the call in words."""

    @on_call_if(lambda rule, api: "draws-with-key" in rule.run.kb.by_role(api))
    def call(self, call: CallEvent) -> None:
        """Something is called that draws with a key."""
        roles = self.run.kb.by_role(call.api)
        draws = roles.get("draws-with-key")
        if (
            draws is None
            or HANDED in self.run.contexts
            or (call.owner is not None and not isinstance(call.owner, (v.Inst, v.Obj)))
        ):
            return
        value = call.args.get(draws.arg, draws.pos)
        node = argument_node(call.node, draws.arg, draws.pos)
        if isinstance(value, v.Mapping):
            for one in value.items.values():
                self._use(call, one, node)
        elif value is not None:
            self._use(call, value, node)

    @on_call_if(lambda rule, api: "repeats" in rule.run.kb.by_role(api))
    def rounds(self, call: CallEvent) -> None:
        """A library begins to call a function in rounds."""
        role = self.run.kb.role(call.api, "repeats")
        carry = carry_of(self.run, role, call.args) if role is not None else None
        carried = [Tick(key.birth) for key in keys_in(self.run, carry)] if carry is not None else []
        used = {int(of.partition(_AT)[0]) for of, _ in self.used.items()}
        unused = tuple(key for key in carried if key not in used)
        self.repeated = (*self.repeated, Rounds(Tick(self.run.now), tuple(carried), unused))

    @on(RoundEvent)
    def next_round(self, event: RoundEvent) -> None:
        """The first round has ended: a key that it used and hands on is used in each round."""
        rounds = self.repeated[-1] if self.repeated else None
        if rounds is None:
            return
        kept = {str(key.birth) for key in keys_in(self.run, event.carry) if key.birth in rounds.unused}
        uses = [use for of, use in self.used.items() if of.partition(_AT)[0] in kept]
        for use in (one for one in uses if not one.picked):
            self._again(use.place, use.name, "")

    @on(ResultEvent)
    def rounds_end(self, event: ResultEvent) -> None:
        """It has called it."""
        if "repeats" in self.run.kb.by_role(event.call.api) and self.repeated:
            self.repeated = self.repeated[:-1]

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins or ends."""
        if not event.begins:
            self._round(event.loop)

    def _use(self, call: CallEvent, value: v.Value, node: m.Expr | None) -> None:
        if not isinstance(value, v.Obj) or not is_key(self.run, value):
            return
        key = str(value.birth)
        name = node.id if isinstance(node, m.Name) else "this key"
        owner = call.owner.birth if isinstance(call.owner, (v.Inst, v.Obj)) else 0
        # Where branches have met in each of which the key was used, one of these uses was made, if any.
        folds = self.run.kb.role(call.api, "folds-key")
        folding = folds.id if folds is not None else ""
        uncalled = _uncalled(self.run)
        uses = [
            use
            for of, use in self.used.items()
            if of.partition(_AT)[0] == key and use.folding == folding and use.uncalled == uncalled
        ]
        parts = _parts(self.run, call)
        met = [use for use in uses if not self.run.exclusive(use.time) and not self.run.instead(use.time)]
        known = next((use for use in met if not _other_number(use.parts, parts)), None)
        if known is None and met and not self.run.kb_matches("jax", _BY_NUMBER):
            known = met[0]
        if known is not None:
            apart = _other_number(known.parts, parts)
            if owner and owner == known.owner and call.api.endswith(".init"):
                # A second copy of the first weights: a target network begins as the network that it follows.
                return
            place = Where(self.run, call.node, call.api)
            same = place.site == known.place.site
            if same and not _given_again(self.run, call, name):
                return
            given = self._giving(known) if same and place.flow == known.place.flow else None
            if given is not None:
                self._given_in_rounds(given, place.subject)
                return
            step = _parting(place, known.place)
            if _alternative(place, known.place, step):
                return
            giving = _giving_step(self.run, place, step, value)
            if giving is None:
                self._again(place, name, known.call, apart)
            else:
                self._given_again(place, giving, name, known.call, key, apart)
            return
        if len(self.used.items()) >= _MOST:
            return
        loops = tuple(loop.key for loop in self.run.loops)
        place = Where(self.run, call.node, call.api)
        # A run that takes an import over has no branches of it.
        time = Tick(0 if self.run.importing else self.run.now)
        use = Use(
            place,
            call_text(call),
            name,
            loops,
            self.run.branching,
            _slot(self.run, node),
            owner,
            time,
            folding,
            _given_in(self.run, place, value),
            parts,
            _unrolled(self.run),
            _is_picked(self.run, node),
            uncalled,
        )
        self.used[f"{key}{_AT}{use.place.site.start}"] = use
        # What a round is given, it may hand on otherwise.
        in_rounds = (
            bool(self.repeated)
            and not use.picked
            and value.birth <= self.repeated[-1].began
            and not any(value.birth in rounds.carried for rounds in self.repeated)
        )
        if in_rounds or (isinstance(node, m.Name) and _in_comprehension(self.run, call.node, name)):
            self._again(use.place, name, "")

    def _giving(self, use: Use) -> GivenIn | None:
        """The call in a running loop by which its next round gives a function the key of an earlier use."""
        running = {loop.key for loop in self.run.loops}
        return next((one for one in use.calls if one.loop in running), None)

    def _again(self, place: Where, name: str, by: str, apart: bool = False) -> None:
        """A key is used again: by another call, or in the next round of a loop where ``by`` is empty. ``apart`` is whether
        both calls split it, into different numbers of keys."""
        shown = f"`{name}`" if name.isidentifier() or "." in name else name
        first = f"was already used by `{by}`" if by else "is used again in every round of the loop"
        self.report(
            "DET114",
            place,
            f"{shown} {_split_by(by) if apart else f'{first}: the same random numbers are drawn again'}",
            _HELP
            if by
            else "give each round its own key: `jax.random.fold_in(key, step)`, or split it in the loop",
            subject=place.subject,
            severity=Severity.ADVICE if apart else None,
        )

    def _given_in_rounds(self, given: GivenIn, subject: str) -> None:
        """A function with its own loop is given the same key in every round of another one."""
        self.report(
            "DET114",
            given.place,
            f"the key that `{given.function}()` is given is the same in every round of the loop: the same random numbers "
            "are drawn again",
            "give each call its own key: `jax.random.fold_in(key, step)`, or split it in the loop",
            subject=subject,
        )

    def _given_again(
        self, place: Where, step: int, name: str, by: str, key: str, apart: bool = False
    ) -> None:
        """A function is given a key that was used before the call: the caller spends it again. Of several calls that are
        given it, the first one is reported."""
        frame = calls(self.run)[step]
        again = (key, place.flow[step].message)
        if self.first_given.get(again) not in (None, place.flow[step]):
            return
        self.first_given[again] = place.flow[step]
        called = f"`{frame.label}()`"
        back = frame.func is not None and _gives_back(frame.func.fn, name)
        self.report(
            "DET114",
            place.called_by(frame, step),
            f"the key that {called} is given "
            + (
                _split_by(by)
                if apart
                else f"was already used by `{by}`: the same random numbers are drawn again"
            ),
            f"go on with the key that {called} returns, or split the key before the call"
            if back
            else "split the key before the call, and give each call its own",
            subject=place.subject,
            severity=Severity.ADVICE if apart else None,
        )

    def _round(self, loop: Loop) -> None:
        """A loop's body has run: a key from before the loop that it used, and still has, is used in each round. So is
        one that it made, used and left where the next round draws."""
        uses = [
            (int(name.partition(_AT)[0]), use)
            for name, use in self.used.items()
            if loop.key in use.loops
            and use.branching <= self.run.branching
            and not any(ends_after(loop.stmt, at) for at in _places_in(loop, use.place))
        ]
        if not uses:
            return
        held, holders, read = _held(self.run, loop)
        for birth, use in uses:
            if birth > loop.start or (
                loop.key in use.unrolled and _is_for_some_rounds(self.run, loop, use.place)
            ):
                continue
            now = held.get(use.slot) if use.slot is not None else None
            again = now == birth and use.slot is not None and use.slot[0] in holders
            if again or (now is None and birth in read):
                given = next((one for one in use.calls if one.loop == loop.key), None)
                if given is not None and use.loops[-1] != loop.key:
                    self._given_in_rounds(given, use.place.subject)
                else:
                    self._again(use.place, use.name, "")
            elif now:
                for later, other in uses:
                    if later == now > loop.start:
                        self._again(use.place, use.name, other.call)


def _places_in(loop: Loop, place: Where) -> list[int]:
    """Where a use may stand in the text of a loop: the call itself, or the one of a function that leads to it."""
    sites: list[Site | Step] = [place.site, *place.flow]
    return [one.start for one in sites if one.path == loop.path]


def _parts(interp: RunView, call: CallEvent) -> int | None:
    """Into how many keys a call splits one, None where that is not known, or where it does not split it."""
    role = interp.kb.role(call.api, "splits-key")
    if role is None or call.args.star or call.args.dstar:
        return None
    number = call.args.get(role.arg, role.pos)
    if number is None:
        return _PAIR
    if isinstance(number, v.Lit) and isinstance(number.value, int) and not number.option:
        return number.value
    return None


def _other_number(one: int | None, other: int | None) -> bool:
    """Whether a key is split into different numbers of keys."""
    return one is not None and other is not None and one != other


def _split_by(by: str) -> str:
    return (
        f"was already split by `{by}`: keys at the same position of both splits give the same random numbers"
    )


def _given_again(interp: RunView, call: CallEvent, name: str) -> bool:
    """Whether the same call is run again with a key that its function was given.

    A function that is handed to a library is looked at more often than the library calls it, with the keys of the
    scope around it. Two networks that start from the same weights are made by `init` with the same key.
    """
    return name.partition(".")[0] in interp.frame.env.vars and not call.api.endswith(".init")


def _parting(place: Where, first: Where) -> int:
    """At which step the flow to a place leaves that to another one."""
    pairs = zip(place.flow, first.flow, strict=False)
    shorter = min(len(place.flow), len(first.flow))
    return next((at for at, (one, other) in enumerate(pairs) if one != other), shorter)


def _alternative(place: Where, first: Where, step: int) -> bool:
    """Whether one call leads to both places, of several functions that may be what it calls."""
    if step >= min(len(place.flow), len(first.flow)):
        return False
    one, other = place.flow[step], first.flow[step]
    return (one.path, one.start, one.end) == (other.path, other.start, other.end)


def _is_given(interp: RunView, place: Where, step: int, key: v.Obj) -> bool:
    """Whether functions are given a key from this step of the flow on, and do not find it by themselves."""
    frames = calls(interp)[step:]
    if not frames or len(frames) + step != len(place.flow):
        return False
    for frame in frames:
        params = frame.func.fn.params if frame.func is not None else []
        if not any(frame.env.vars.get(one.name) is key for one in params):
            return False
    return True


def _giving_step(interp: RunView, place: Where, step: int, key: v.Obj) -> int | None:
    """From which step of the flow on, at this one or behind it, functions are given a key: what calls the first of them
    finds it by itself, as a method does that reads an attribute, or was not given it again. None where the last function
    finds it."""
    return next((at for at in range(step, len(place.flow)) if _is_given(interp, place, at, key)), None)


def _given_in(interp: RunView, place: Where, key: v.Obj) -> tuple[GivenIn, ...]:
    """The calls in loops that lead to a place by functions that are given a key."""
    if len(interp.loops) < _NESTED:
        return ()
    frames = calls(interp)
    found: list[GivenIn] = []
    for loop in interp.loops[:-1]:
        if loop.frame is interp.loops[-1].frame:
            continue
        step = next((at for at, frame in enumerate(frames) if frame.caller is loop.frame), None)
        if step is not None and _is_given(interp, place, step, key):
            frame = frames[step]
            found.append(GivenIn(loop.key, frame.label, place.called_by(frame, step)))
    return tuple(found)


def _uncalled(run: RunView) -> tuple[str, int] | None:
    """The function in which code stands that no entry point reaches. Several may find the same object, as the methods of a
    test: that they run one after the other is not known."""
    if run.entry is not None:
        return None
    return next((frame.func.key for frame in run.stack() if frame.func is not None), None)


def _unrolled(interp: RunView) -> tuple[str, ...]:
    """The running loops of functions all of whose loops are run round by round."""
    frames = [loop.frame for loop in interp.loops]
    return tuple(
        loop.key
        for loop in interp.loops
        if loop.frame.unrolled == sum(frame is loop.frame for frame in frames)
    )


def _is_for_some_rounds(interp: RunView, loop: Loop, place: Where) -> bool:
    """Whether a loop that has been run round by round comes to a place in a branch that depends on what a round is given:
    then it is known in which of them."""
    depth = len(calls(interp))
    here = place.flow[depth] if len(place.flow) > depth else place.site
    if here.path != loop.path:
        return False
    given = set(assigned_names(loop.stmt))
    if isinstance(loop.stmt, m.For):
        target_names(loop.stmt.target, given)
    return any(
        any(isinstance(one, m.Name) and one.id.partition(".")[0] in given for one in nodes([stmt.test]))
        and any(
            isinstance(one, m.Call) and one.start <= here.start and one.end == here.end
            for one in nodes([*stmt.body, *stmt.orelse])
        )
        for stmt in statements(loop.stmt.body)
        if isinstance(stmt, m.If)
    )


def _is_picked(interp: RunView, node: m.Expr | None) -> bool:
    """Whether a key is one of several, by an index that is no constant: the next round may take another one."""
    if isinstance(node, m.Name) and interp.frame.func is not None:
        bound = [stmt for stmt in statements(interp.frame.func.fn.body) if isinstance(stmt, m.Assign)]
        return any(
            _is_picked(interp, stmt.value)
            for stmt in bound
            if isinstance(stmt.value, m.Subscript)
            and any(isinstance(one, m.Name) and one.id == node.id for one in stmt.targets)
        )
    return isinstance(node, m.Subscript) and not isinstance(node.index, m.Const)


def _gives_back(fn: m.Function, name: str) -> bool:
    """Whether a function makes a new key of the one that it is given, and returns it."""
    returned = [
        one.value for one in statements(fn.body) if isinstance(one, m.Return) and one.value is not None
    ]
    targets = [one for stmt in statements(fn.body) if isinstance(stmt, m.Assign) for one in stmt.targets]
    return all(
        any(isinstance(one, m.Name) and one.id == name for one in nodes(part)) for part in (returned, targets)
    )


def _slot(interp: RunView, node: m.Expr | None) -> Slot | None:
    """The variable or attribute that a name reads, None for what is not known."""
    if not isinstance(node, m.Name) or interp.frame.env is None:
        return None
    first, *rest = node.id.split(".")
    if not rest:
        return interp.frame.env.birth, first
    found = interp.frame.env.vars.get(first)
    for name in rest[:-1]:
        found = found.attrs.get(name) if isinstance(found, v.Inst) else None
    return (found.birth, rest[-1]) if isinstance(found, v.Inst) else None


def _held(run: RunView, loop: Loop) -> tuple[dict[Slot, int], set[int], set[int]]:
    """What the variables around a loop hold, and the attributes of objects in them: objects, by birth; 0 for others. Also
    which of these scopes and objects the next round may read, by birth, and the objects that the loop's own code has a
    name for.

    What the loop itself binds is a new object in each round. A variable of a scope around the function may still hold the
    key that the function was given, and that the loop replaces under the function's own name.
    """
    found: dict[Slot, int] = {}
    read: dict[Slot, int] = {}
    holders: set[int] = set()
    env = loop.frame.env
    targets = nodes([loop.stmt.target]) if isinstance(loop.stmt, m.For) else ()
    bound = {env.vars.get(one.id) for one in targets if isinstance(one, m.Name)} if env is not None else set()
    own = {value.birth for value in bound if isinstance(value, v.Obj)}
    named = heads([loop.stmt])
    nearer: set[str] = set()
    while env is not None:
        _note(found, env.birth, env.vars, own)
        holders.add(env.birth)
        if env is not loop.frame.env:
            seen = named - nearer
            reached = set(dict.keys(env.vars))
        elif loop.frame.func is None:
            seen = reached = set(dict.keys(env.vars))
        else:
            seen = reached = named | _names_within(run, env.vars)
        _note(read, env.birth, {name: env.vars[name] for name in seen if name in env.vars}, own)
        for name, value in dict.items(env.vars):
            if not isinstance(value, v.Inst):
                continue
            _note(found, value.birth, value.attrs, own)
            if name in reached:
                _reach(value, holders)
                _note(read, value.birth, value.attrs, own)
        nearer.update(dict.keys(env.vars))
        env = env.parent
    return found, holders, set(read.values())


def _names_within(run: RunView, variables: dict[str, v.Value]) -> set[str]:
    """What the functions that a function defines name: it may be its variables."""
    found: set[str] = set()
    for value in dict.values(variables):
        given = value.args.pos if isinstance(value, v.Obj) else [value]
        for one in given:
            if isinstance(one, v.Func):
                found |= heads(run.body(one))
    return found


def _reach(value: v.Value, found: set[int], depth: int = 0) -> None:
    """An object, and those that its attributes hold."""
    if isinstance(value, v.Inst) and value.birth not in found and depth < _DEEPEST:
        found.add(value.birth)
        for one in dict.values(value.attrs):
            _reach(one, found, depth + 1)


def _note(found: dict[Slot, int], holder: int, values: dict[str, v.Value], own: set[int]) -> None:
    for name, value in dict.items(values):
        birth = value.birth if isinstance(value, v.Obj) else 0
        found[holder, name] = 0 if birth in own else birth


def _in_comprehension(interp: RunView, call: Any, name: str) -> bool:
    """Whether a call with this name as its key stands in a comprehension that does not bind the name."""
    statement = interp.statement
    if statement is None or not isinstance(call, m.Call):
        return False
    for node in nodes([statement]):
        if isinstance(node, m.Comp) and node.start <= call.start and call.end <= node.end:
            if isinstance(node.generators[0].iter, m.Call) and node.generators[0].iter.start <= call.start:
                if call.end <= node.generators[0].iter.end:
                    continue
            targets: list[Any] = [part.target for part in node.generators]
            bound = {one.id for one in nodes(targets) if isinstance(one, m.Name)}
            return name.partition(".")[0] not in bound
    return False
