"""DET314: checkpoints that a library saves when a time has passed, where the program reads the last one or leaves no
others."""

from __future__ import annotations

from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.checkpoints.path_names import path_name
from d9mlint.interp import values as v
from d9mlint.interp.activity import trains
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site


class TimedCheckpoints(Rule):
    """DET314: checkpoints that a library saves when a time has passed, where the program reads the last one or leaves no
    others."""

    codes = ("DET314",)
    timed = remembered_table(Site, tuple[Where, v.Value])
    """Where something is made that saves by the clock, and the folder in which it does."""
    trained = remembered_table(Site, bool)
    """Those among them with which steps were run since, in a loop."""
    saved = remembered_table(Site, bool)
    """Those with which the program has saved something itself."""
    read_last = remembered(set[Site])
    """Those of whose files the program reads the last one."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-by-clock") is not None)
    def made(self, call: CallEvent) -> None:
        """Something is made that saves by the clock."""
        role = self.run.kb.role(call.api, "saves-by-clock")
        folder = call.args.get(role.arg, role.pos) if role is not None else None
        if role is None or folder is None or all_hold(call.args, role.when) is not True:
            return
        place = Where(self.run, argument_node(call.node, role.more[0]) or call.node, call.api)
        self.timed[place.site] = place, folder

    @on_method("run")
    def steps(self, call: CallEvent) -> None:
        """A session runs something."""
        if self.run.loops:
            for site in self.timed.known():
                self.trained[site] = True

    @on_method("save")
    def saves(self, call: CallEvent) -> None:
        """The program saves something itself."""
        for site in self.timed.known():
            self.saved[site] = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "names-last-checkpoint") is not None)
    def read(self, call: CallEvent) -> None:
        """The last checkpoint of a folder is asked for."""
        folder = call.args.get("checkpoint_dir", 0)
        for site in self.timed.known():
            place, written = self.timed[site]
            role = self.run.kb.role(place.subject, "saves-by-clock")
            if role is None or folder is None or site not in self.trained or site in self.saved:
                continue
            interval, *contexts = role.more
            # Sessions save the last state when they are closed.
            if contexts and not any(one in self.run.contexts for one in contexts):
                continue
            if self._is_same(folder, written):
                self.read_last.add(site)
                self._report(
                    place,
                    f"the program reads the last of them{' before the session is closed' if contexts else ''}: the weights "
                    "in it differ between runs",
                    "read the last checkpoint after the session is closed, which saves the last state, or save after a "
                    "fixed number of steps"
                    if contexts
                    else _by_steps(interval),
                )

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if self.run.entry is None or not trains(self.run):
            return
        for site in self.timed.known():
            place, _ = self.timed[site]
            role = self.run.kb.role(place.subject, "saves-by-clock")
            # Sessions save the last state when they are closed, which all others do not.
            if role is None or role.more[1:] or site in self.saved or site in self.read_last:
                continue
            if site in self.trained:
                self._report(
                    place,
                    "the program saves no last state: the weights that it leaves differ between runs",
                    _by_steps(role.more[0]),
                )

    def _report(self, place: Where, what: str, help: str) -> None:
        self.report(
            "DET314",
            place,
            f"the clock decides after which steps checkpoints are saved, and {what}",
            help,
            subject=place.subject,
        )

    def _is_same(self, one: v.Value, other: v.Value) -> bool:
        """Whether two values are seen to name the same folder."""
        if v.same(one, other):
            return True
        names = path_name(self.run, one), path_name(self.run, other)
        return names[0] is not None and names[1] is not None and names[0].key() == names[1].key()


def _by_steps(interval: str) -> str:
    """What to do where an argument names the seconds between two checkpoints."""
    return f"pass `{interval}=0`, and save after a fixed number of steps"
