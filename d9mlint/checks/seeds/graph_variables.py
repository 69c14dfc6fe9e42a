"""The initial values of variables in graphs of TensorFlow, over which a saver restores others before a session uses them.

``tf.train.Saver()`` restores all variables that there are when it is made. Up to then nothing reads their initial values
where a session has only run initializers. Other libraries give the variables of a network, or all, the values of a file.
A saver of those that are trained restores all that a draw has given their values, unless one of these is not trained.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.data import differing
from d9mlint.interp.events import CallEvent
from d9mlint.interp.library.weights import layers_within
from d9mlint.interp.listening import on_call_if, on_method
from d9mlint.interp.memory import marks_path, remembered, remembered_table
from d9mlint.interp.places import Moment
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at

_TRAINED = "trainable"
"""Argument that says whether variables are trained."""

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Role


class Initial(NamedTuple):
    """Draws that give variables their initial values: where, when the last of the variables was made, and how many there
    are."""

    site: Site
    made: int
    number: int = 1


class GraphVariables:
    """Knows which initial values do not count."""

    run: RunView
    memory: Memory
    savers = remembered_table(Site, int)
    """When savers of all variables were made."""
    trained_alone = remembered(set[Site])
    """Where those of them were made that save the trained variables alone,"""
    untrained = remembered(set[Site])
    """and where variables were made that are not surely trained."""
    pending = marks_path(Initial)
    """The initial values that nothing has been restored over on this path."""
    restored_over = remembered(set[Site])
    """The draws of those over which others were restored,"""
    used_values = remembered(set[Site])
    """and of those that were not yet restored when a session ran something else than initializers."""

    def note_initial(self, site: Site) -> None:
        """A variable is given its initial value by a draw."""
        key = f"{site.path}:{site.start}"
        before = self.pending.get(key)
        self.pending[key] = Initial(site, self.run.steps, 1 + (before.number if before is not None else 0))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "holds") is not None)
    def held(self, call: CallEvent) -> None:
        """A variable is made."""
        role = self.run.kb.role(call.api, "holds")
        if role is None or role.library != "tensorflow":
            return
        given = call.args.get(role.arg, role.pos)
        drawn = differing(given) if given is not None else None
        site = made_at(drawn) if drawn is not None else None
        if site is not None:
            self.note_initial(site)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-variables") is not None)
    def saver_made(self, call: CallEvent) -> None:
        """A saver is made."""
        self._saver(call, "saves-variables")

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-trained-variables") is not None)
    def saver_of_trained_made(self, call: CallEvent) -> None:
        """A saver of the trained variables alone is made."""
        if self._saver(call, "saves-trained-variables"):
            self.trained_alone.add(self.run.here(call.node))

    def _saver(self, call: CallEvent, played: Role) -> bool:
        """Note the saver that a call makes, if it plays this part."""
        role = self.run.kb.role(call.api, played)
        if role is None or not all_hold(call.args, role.when):
            return False
        site = self.run.here(call.node)
        self.savers[site] = Moment(self.run.steps)
        return True

    @on_call_if(lambda rule, api: _makes_variables(rule.run, api))
    def variable_made(self, call: CallEvent) -> None:
        """Variables are made that may not be trained."""
        trained = call.args.get(_TRAINED)
        if trained is not None and not (isinstance(trained, v.Lit) and trained.value is True):
            self.untrained.add(self.run.here(call.node))

    @on_method("restore")
    def variables_restored(self, call: CallEvent) -> None:
        """A saver restores what it has saved."""
        saver = made_at(call.owner) if isinstance(call.owner, v.Obj) else None
        if saver is None or saver not in self.savers:
            return
        if self.untrained and saver in self.trained_alone:
            return
        for name, one in self.pending.items():
            if one.made < self.savers[saver]:
                self.pending.pop(name)
                self.restored_over.add(one.site)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "assigns-variables") is not None)
    def variables_assigned(self, call: CallEvent) -> None:
        """The variables of a network, or all, are given other values."""
        role = self.run.kb.role(call.api, "assigns-variables")
        if role is None or all_hold(call.args, role.when) is not True:
            return
        network = call.args.get(role.arg, role.pos) if role.arg else None
        if network is None and role.arg:
            return
        made = Counter(map(made_at, layers_within(self.run, network))) if network is not None else None
        for name, one in self.pending.items():
            # Another network may have been made at the same place.
            if made is None or made[one.site] >= one.number:
                self.pending.pop(name)
                self.restored_over.add(one.site)

    @on_method("run")
    def session_run(self, call: CallEvent) -> None:
        """A session may run something."""
        if self.pending and not _only_initializes(self.run, call.args.get("fetches", 0)):
            self.used_values.update(one.site for _, one in self.pending.items())

    @on_method("fit")
    def graph_fitted(self, call: CallEvent) -> None:
        """A model of another library runs its graph, if it is one that trains."""
        if self.pending and isinstance(call.owner, v.Obj):
            if any(
                "fit" in one.trains
                for one in self.run.kb.runners(call.owner.api)
                if one.library == "tensorflow"
            ):
                self.used_values.update(one.site for _, one in self.pending.items())

    def restored_values(self) -> frozenset[Site]:
        """The draws of initial values that nothing has used before others were restored over them."""
        return frozenset(set(self.restored_over) - set(self.used_values))


def _makes_variables(run: RunView, api: str) -> bool:
    """Whether a call makes variables of a graph, or says how others make theirs."""
    role = run.kb.role(api, "holds")
    if (role is not None and role.library == "tensorflow") or run.kb.role(api, "gives-arguments") is not None:
        return True
    return any(one.kind == "init" for one in run.kb.rng(api))


def _only_initializes(run: RunView, fetched: v.Value | None) -> bool:
    """Whether what a session is asked to run does nothing but give variables and tables their initial values."""
    if isinstance(fetched, v.Items):
        return not fetched.open and all(_only_initializes(run, one) for one in fetched.elts)
    if not isinstance(fetched, v.Obj):
        return False
    if run.kb.role(fetched.api, "groups-ops") is not None:
        given = fetched.args
        return not (given.star or given.dstar) and all(_only_initializes(run, one) for one in given.pos)
    return run.kb.role(fetched.api, "initializes-variables") is not None
