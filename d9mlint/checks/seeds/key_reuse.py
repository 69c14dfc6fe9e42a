"""DET114: JAX keys that are used twice, so that two draws give the same numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.checks.base import Rule, argument_node
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, Loop, LoopEvent
from d9mlint.interp.library.keys import KEY
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import marks_path
from d9mlint.interp.places import Where
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


_MOST = 128
"""So many used keys are followed in one path: each makes calls differ that would otherwise be the same."""
_HELP = "split it first and use each key once: `key, subkey = jax.random.split(key)`"


class Use(NamedTuple):
    """Where a key was used: the place, the call, the key's name, the loops around it, and whether in a branch."""

    place: Where
    call: str
    name: str
    loops: tuple[str, ...]
    branching: int


class Keys(Rule):
    """DET114: keys that are used again."""

    codes = ("DET114",)
    used = marks_path(Use)
    """Uses by the key's own number."""

    @on_call_if(lambda rule, api: "draws-with-key" in rule.run.kb.by_role(api))
    def call(self, call: CallEvent) -> None:
        """Something is called that draws with a key."""
        roles = self.run.kb.by_role(call.api)
        draws = roles.get("draws-with-key")
        if draws is None or (call.owner is not None and not isinstance(call.owner, (v.Inst, v.Obj))):
            return
        value = call.args.get(draws.arg, draws.pos)
        node = argument_node(call.node, draws.arg, draws.pos)
        if isinstance(value, v.Mapping):
            for one in value.items.values():
                self._use(call, one, node)
        elif value is not None:
            self._use(call, value, node)

    @on(LoopEvent)
    def loop(self, event: LoopEvent) -> None:
        """A loop begins or ends."""
        if not event.begins:
            self._round(event.loop)

    def _use(self, call: CallEvent, value: v.Value, node: m.Expr | None) -> None:
        if not isinstance(value, v.Obj) or not _is_key(self.run, value):
            return
        key = str(value.birth)
        name = node.id if isinstance(node, m.Name) else "this key"
        known = self.used.get(key)
        if known is not None:
            if self.run.here(call.node) == known.place.site and not _given_again(self.run, call, name):
                return
            self._again(Where(self.run, call.node, call.api), name, known.call)
            return
        if len(self.used.items()) >= _MOST:
            return
        loops = tuple(loop.key for loop in self.run.loops)
        use = Use(Where(self.run, call.node, call.api), call_text(call), name, loops, self.run.branching)
        self.used[key] = use
        if isinstance(node, m.Name) and _in_comprehension(self.run, call.node, name):
            self._again(use.place, name, "")

    def _again(self, place: Where, name: str, by: str) -> None:
        """A key is used again: by another call, or in the next round of a loop where ``by`` is empty."""
        shown = f"`{name}`" if name.isidentifier() or "." in name else name
        first = f"was already used by `{by}`" if by else "is used again in every round of the loop"
        self.report(
            "DET114",
            place,
            f"{shown} {first}: the same random numbers are drawn again",
            _HELP
            if by
            else "give each round its own key: `jax.random.fold_in(key, step)`, or split it in the loop",
            subject=place.subject,
        )

    def _round(self, loop: Loop) -> None:
        """A loop's body has run: a key from before the loop that it used, and still has, is used in each round."""
        held: set[int] | None = None
        for key, use in self.used.items():
            if loop.key not in use.loops:
                continue
            birth = int(key)
            if birth > loop.start or use.branching > self.run.branching:
                continue
            if held is None:
                held = _held(loop)
            if birth in held:
                self._again(use.place, use.name, "")


def _is_key(interp: RunView, value: v.Value) -> bool:
    return isinstance(value, v.Obj) and (
        value.type == KEY or interp.kb.role(value.api, "makes-key") is not None
    )


def _given_again(interp: RunView, call: CallEvent, name: str) -> bool:
    """Whether the same call is run again with a key that its function was given.

    A function that is handed to a library is looked at more often than the library calls it, with the keys of the
    scope around it. Two networks that start from the same weights are made by `init` with the same key.
    """
    return name.partition(".")[0] in interp.frame.env.vars and not call.api.endswith(".init")


def _held(loop: Loop) -> set[int]:
    """The objects, by birth, that the variables around a loop hold, and the attributes of objects in them.

    What the loop itself binds is a new object in each round.
    """
    found: set[int] = set()
    env = loop.frame.env
    targets = nodes([loop.stmt.target]) if isinstance(loop.stmt, m.For) else ()
    bound = {env.vars.get(one.id) for one in targets if isinstance(one, m.Name)} if env is not None else set()
    own = {value.birth for value in bound if isinstance(value, v.Obj)}
    while env is not None:
        for value in env.vars.values():
            if isinstance(value, v.Obj):
                found.add(value.birth)
            elif isinstance(value, v.Inst):
                found |= {one.birth for one in dict.values(value.attrs) if isinstance(one, v.Obj)}
        env = env.parent
    return found - own


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
