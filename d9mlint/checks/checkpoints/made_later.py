"""Optimizers that are created after the state in a checkpoint was given to another one, which takes no steps."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.memory import remembered
from d9mlint.interp.storage import made_at

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.places import Where
    from d9mlint.interp.state import Site
    from d9mlint.interp.view import RunView


class Given(NamedTuple):
    """Where an optimizer is given a state, where that was made, of which class, and when."""

    place: Where
    made: Site
    type: str
    birth: int


class Stepped(NamedTuple):
    """An optimizer that takes steps in a loop: where it was made, of which class, and when, what the program calls it, and
    whether it was made of another one, for which it stands."""

    made: Site
    type: str
    birth: int
    name: str
    loop: str
    stands: bool


class MadeLater:
    """Knows which optimizers are given states, and which take steps."""

    run: RunView
    memory: Memory
    kept = remembered(set["Site"])
    """Where that was made whose state is saved."""
    optimizers_given = remembered(list[Given])
    any_given = remembered(bool)
    """Whether an optimizer is given a state of which it is not known where it was made."""
    optimizers_stepped = remembered(set[Stepped])

    def optimizer_given(self, owner: v.Value | None, place: Where) -> None:
        """An optimizer is given a state."""
        for one in v.alternatives(owner or v.UNKNOWN):
            site = made_at(one) if isinstance(one, v.Obj) else None
            if isinstance(one, v.Obj) and site is not None:
                self.optimizers_given.append(Given(place, site, one.type, one.birth))
            else:
                self.any_given = True

    def optimizer_steps(self, optimizer: v.Obj, name: str) -> None:
        """An optimizer takes a step."""
        site = made_at(optimizer)
        given = [one for value in optimizer.args.values() for one in v.alternatives(value)]
        stands = any(isinstance(one, v.Obj) and one.type == optimizer.type for one in given)
        if site is not None and name:
            self.optimizers_stepped.update(
                Stepped(site, optimizer.type, optimizer.birth, name, loop.key, stands)
                for loop in self.run.loops
                if optimizer.birth < loop.start
            )

    def made_later(self, loops: set[str]) -> tuple[str, Where] | None:
        """What the program calls an optimizer that takes steps in some loops, and whose state is saved, and where that is
        given to an earlier one of its class, which takes none."""
        filled = {one.made for one in self.optimizers_given}
        stepped = {one.made for one in self.optimizers_stepped}
        if self.any_given or not filled or any(one.stands for one in self.optimizers_stepped):
            return None
        for one in sorted(self.optimizers_stepped):
            if one.loop not in loops or one.made not in self.kept or one.made in filled:
                continue
            for given in self.optimizers_given:
                if given.made in stepped or given.type != one.type or given.birth >= one.birth:
                    continue
                if not self.run.of_other_branches(given.birth, one.birth):
                    return one.name, given.place
        return None
