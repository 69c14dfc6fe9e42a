"""Models and optimizers whose states a checkpoint has, and that a resumed run is not given, though others are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.checks.checkpoints.first_again import Fate, fate
from d9mlint.checks.checkpoints.trained import models_in
from d9mlint.interp import values as v
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.storage import made_at

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.places import Where
    from d9mlint.interp.state import Site
    from d9mlint.interp.view import RunView


class Part(NamedTuple):
    """A model or an optimizer that is trained, which the program calls so, and the key of its state in a checkpoint."""

    name: str
    key: str
    is_model: bool

    @property
    def state(self) -> str:
        """What is saved of it, in words."""
        return f"the weights of `{self.name}`" if self.is_model else f"the state of `{self.name}`"


class UnreadParts:
    """Knows under which keys the states of models and optimizers are saved, and which of them are given one."""

    run: RunView
    memory: Memory
    loads = remembered(list["tuple[Where, frozenset[str]]"])
    """Where something is loaded, and the loops around."""
    entries = remembered(list["tuple[str, Site, str]"])
    """The entries of files that models and optimizers were given as their states."""
    stepped = remembered_table(tuple["Site", str], tuple[str, bool])
    """Where optimizers were made that take steps in loops, and what they are called."""
    trained_models = remembered(set["tuple[str, Site, frozenset[Site], str]"])
    """What the program calls the models that loops train, where they and their parts were made, and the loops."""
    under_keys = remembered(set["tuple[str, frozenset[str], frozenset[Site]]"])
    """A key of a dictionary that is saved, all its keys, and where that was made whose state is there, and its parts."""
    given_ones = remembered(set["Site"])
    """Where models, their parts, and optimizers were made that are given a state."""

    def notes_parts(self, made: Iterable[v.Value]) -> None:
        """Something is saved."""
        for one in made:
            if not isinstance(one, v.Mapping) or one.open:
                continue
            keys = frozenset(key for key in dict.keys(one.items) if isinstance(key, str))
            for key in keys:
                found = frozenset(self._owners(one.items[key]))
                if found:
                    self.under_keys.add((key, keys, found))

    def gives_state(self, owner: v.Value | None) -> None:
        """Something is given a state."""
        self.given_ones.update(models_in(self.run, [owner or v.UNKNOWN]))
        self.given_ones.update(_made(owner))

    def _owners(self, state: v.Value) -> Iterator[Site]:
        """Where that was made, and its parts, which has a state that is saved."""
        for one in v.alternatives(state):
            owner = one.attrs.get("@owner") if isinstance(one, v.Obj) else None
            if owner is not None:
                yield from models_in(self.run, [owner])
                yield from _made(owner)

    def unread_parts(self, training: set[str]) -> list[Part]:
        """The models and optimizers, trained in some loops, whose states stand in a checkpoint of which others are given
        theirs, where no file of the program reads their keys."""
        read = {key for _, _, key in self.entries}
        given, found = set(self.given_ones), dict[Part, None]()
        trained = [
            *(
                (name, frozenset({site, *parts}), True)
                for name, site, parts, loop in self.trained_models
                if loop in training
            ),
            *(
                (self.stepped[site, loop][0], frozenset({site}), False)
                for site, loop in self.stepped.known()
                if loop in training and self.stepped[site, loop][1]
            ),
        ]
        for key, keys, sites in self.under_keys:
            if read.isdisjoint(keys) or not given.isdisjoint(sites):
                continue
            for name, parts, is_model in trained:
                if name and given.isdisjoint(parts) and not sites.isdisjoint(parts):
                    found[Part(name, key, is_model)] = None
        unread = {one.key for one in found}
        unread = {key for key in unread if fate(self.run, key) is Fate.UNREAD}
        return sorted(one for one in found if one.key in unread)

    def place_of(self, parts: list[Part]) -> Where:
        """Where the checkpoint is loaded that has the states of some of its parts."""
        keys = {
            key for one in parts for known, among, _ in self.under_keys if known == one.key for key in among
        }
        sites = {site for _, site, key in self.entries if key in keys}
        return next((place for place, _ in self.loads if place.site in sites), self.loads[0][0])


def _made(value: v.Value | None) -> Iterator[Site]:
    for one in v.alternatives(value) if value is not None else ():
        site = made_at(one) if isinstance(one, v.Obj) else None
        if site is not None:
            yield site
