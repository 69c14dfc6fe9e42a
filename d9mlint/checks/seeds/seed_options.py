"""Options of a program that are named like a seed: what is not seeded is seeded with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, SeedEvent
from d9mlint.interp.library.options import not_given
from d9mlint.interp.listening import on, on_method
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.view import RunView

_ENDING = "seed"


class SeedOption(NamedTuple):
    """An option that is named like a seed."""

    label: str
    value: str
    """The expression that gives its value; empty where no variable holds the parsed options at once."""
    given: bool
    """Whether it is a number by default."""
    site: Site
    """The call that gives the parsed options."""
    order: int


class SeedOptions:
    """Knows the option that the program means as its seed."""

    run: RunView
    memory: Memory
    options = remembered(list[SeedOption])
    takes_options = remembered(bool)
    """Whether the program parses a command line that has options."""

    seeded_by_option = remembered(set[tuple[str, str]])
    """The options that seed a generator somewhere, perhaps not on each path, with the generator."""

    @on(SeedEvent)
    def seeded_by(self, event: SeedEvent) -> None:
        """Generators are seeded, perhaps with what an option gives."""
        seed = event.args.get(event.entry.seed_arg, event.entry.seed_pos)
        if isinstance(seed, v.Lit) and seed.option:
            self.seeded_by_option.update((seed.option, rng) for rng in event.rngs)

    @on_method("parse_args", "parse_known_args")
    def options_parsed(self, call: CallEvent) -> None:
        """The command line is parsed."""
        owner = call.owner
        known = owner.data if isinstance(owner, v.Obj) and isinstance(owner.data, dict) else {}
        self.takes_options = self.takes_options or bool(known)
        found = [
            (len(key), key, one)
            for key, one in known.items()
            if key.lower().endswith(_ENDING) and isinstance(one, v.Lit) and one.option
        ]
        for _, key, one in sorted(found, key=lambda each: each[:2])[:1]:
            number = isinstance(one.value, int) and not isinstance(one.value, bool)
            # Without a number, an option that a list of words in the program leaves out gives none.
            if number or (one.value is None and key not in not_given(known, call.args)):
                kept, site = self._kept(call.node)
                value = f"{kept}.{key}" if kept else ""
                self.options.append(SeedOption(one.option, value, number, site, self.run.steps))

    def seed_option(self, drawn: Where) -> SeedOption | None:
        """The option that the program means as its seed, where it is parsed before something is drawn."""
        return next((one for one in self.options if one.order < drawn.order), None)

    def _kept(self, node: Any) -> tuple[str, Site]:
        """The variable that holds the parsed options first, and the call that gives it them: the function that parses them
        may only return them."""
        site, stmt, frame = self.run.here(node), self.run.statement, self.run.frame
        while isinstance(stmt, m.Return) and stmt.value is node and frame.caller and frame.call_site:
            site, frame = frame.call_site, frame.caller
            around = (
                one
                for one in nodes(frame.body)
                if isinstance(one, (m.Assign, m.Return))
                and isinstance(one.value, m.Call)
                and one.value.start == site.start
            )
            stmt = next(around, None)
            node = stmt.value if stmt is not None else None
        return _target(stmt, node), site


def _target(stmt: Any, node: Any) -> str:
    """The variable that an assignment gives what a call gives, or the first part of that."""
    if not isinstance(stmt, m.Assign) or stmt.value is not node or len(stmt.targets) != 1:
        return ""
    target = stmt.targets[0]
    if isinstance(target, m.Seq) and target.elts:
        target = target.elts[0]
    return target.id if isinstance(target, m.Name) else ""
