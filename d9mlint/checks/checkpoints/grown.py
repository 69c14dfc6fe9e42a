"""DET602: boosters that are trained further, from the file in which an earlier run has saved them."""

from __future__ import annotations

from d9mlint.base.findings import Confidence
from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.path_names import called_by_default
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent, EndEvent
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.state import Site


class GrownModels(Rule):
    """DET602: what was trained before is trained further, with random draws that begin again."""

    codes = ("DET602",)
    grown = remembered_table(Site, tuple[Where, str, frozenset[str]])
    """Where something is trained further, the argument that says so, and what the files are called that it may stand in."""
    saved_in = remembered(set[str])
    """What the files are called in which something is saved that has been trained."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "saves-trained") is not None)
    def saved(self, call: CallEvent) -> None:
        """Something that has been trained is saved."""
        role = self.run.kb.role(call.api, "saves-trained")
        file = call.args.get(role.arg, role.pos) if role is not None else None
        if file is not None:
            self.saved_in.update(called_by_default(self.run, file))

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "goes-on-with") is not None)
    def trained(self, call: CallEvent) -> None:
        """What was trained before is trained further, by a call that draws."""
        role = self.run.kb.role(call.api, "goes-on-with")
        before = call.args.get(role.arg, role.pos) if role is not None else None
        if role is None or before is None or self.run.entry is None:
            return
        if all_hold(call.args, role.when) is not True or _is_seeded(call.args, role.more):
            return
        names = set[str]()
        for one in v.alternatives(before):
            reads = self.run.kb.role(one.api, "reads-trained") if isinstance(one, v.Obj) else None
            path = one.args.get(reads.arg, reads.pos) if reads is not None and isinstance(one, v.Obj) else one
            names |= called_by_default(self.run, path) if path is not None else set()
        if names:
            place = Where(self.run, call.node, call.api)
            self.grown.setdefault(place.site, lambda: (place, role.arg, frozenset(names)))

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program saves is known."""
        for site in self.grown.known():
            place, argument, names = self.grown[site]
            if names.isdisjoint(self.saved_in):
                # Another model is made of one that was trained before.
                continue
            name = place.subject.rpartition(".")[2]
            self.report(
                "DET602",
                place,
                f"`{name}({argument}=...)` begins its random draws again, so resumed training diverges from an "
                "uninterrupted one",
                "train in parts of a fixed number of rounds in every run, each with its own seed, such as the number of "
                "rounds before it",
                subject=place.subject,
                confidence=Confidence.MEDIUM,
            )


def _is_seeded(args: v.Args, names: list[str]) -> bool:
    """Whether a seed is given that may depend on the rounds before."""
    settings = [one for value in args.values() for one in v.alternatives(value)]
    held = [dict(one.items.items()) for one in settings if isinstance(one, v.Mapping)]
    seeds = [among[name] for among in (args.kw, *held) for name in names if name in among]
    return any(not isinstance(one, v.Lit) or bool(one.option) for one in seeds)
