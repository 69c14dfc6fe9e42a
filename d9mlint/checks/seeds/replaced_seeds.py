"""DET107: calls that seed an RNG from entropy beside what they are for, so that its earlier seed is lost."""

from __future__ import annotations

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import AnyDrawEvent, CallEvent, SeedEvent
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.rng import seed_value, takes_over
from d9mlint.interp.text import node_text


class ReplacedSeeds(Rule):
    """DET107: what is drawn after a call that has seeded an RNG from entropy."""

    codes = ("DET107",)
    places = remembered_table(str, Where)
    """Where an RNG was seeded like that, and nothing has seeded it since."""
    texts = remembered_table(str, tuple[str, str, str, str])
    """What a message says of that, the remedy, the argument with which it is put into the code, and the RNG that the seed
    is taken from where that is seeded."""
    reported = remembered(set[str])
    """The RNGs of which one such call is reported that takes no seed: the seed that it needs reaches all later ones."""

    @on(SeedEvent)
    def seeded(self, event: SeedEvent) -> None:
        """An RNG is seeded."""
        entry, args, node, rngs = event
        value = seed_value(args, entry)
        lost = entry.seed_from and value is not None and v.is_none(value) and not takes_over(self.run, entry)
        if lost and self.run.entry is None:
            return
        for rng in rngs:
            self.places.pop(rng)
            if lost and rng not in self.reported:
                self.places[rng] = Where(self.run, node, entry.apis[0])
                title = self.run.kb.generators[rng].title
                source = self.run.kb.generators[entry.seed_from]
                taken = entry.seed_arg
                self.texts[rng] = (
                    f"`{node_text(node, entry.apis[0])}`{f' without `{taken}=`' if taken else ''} seeds {title} from OS "
                    f"entropy, as {source.title} is not seeded: an earlier seed is lost, and what is drawn afterwards "
                    "differs between runs",
                    f"{f'pass `{taken}={entry.seed_value}`, or ' if taken else ''}call `{entry.instead}` before it",
                    f"{taken}=" if taken else "",
                    entry.seed_from,
                )

    @on(AnyDrawEvent)
    def drawn(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        self._lost(event.rng)

    @on_call_if(lambda rule, api: api.rpartition(".")[2] in rule.run.kb.redrawing)
    def used(self, call: CallEvent) -> None:
        """What the call has given draws itself, unless it is not to shuffle."""
        owner = call.owner
        while isinstance(owner, v.Member):
            owner = owner.owner
        if isinstance(owner, v.Obj) and v.truth(call.args.get("shuffle", 2) or v.Lit(True)) is not False:
            for entry in self.run.kb.rng(owner.api):
                for rng in entry.seeds if entry.seed_from else ():
                    self._lost(rng)

    def _lost(self, rng: str) -> None:
        """What an RNG draws differs between runs."""
        if rng in self.places:
            message, help, keyword, source = self.texts[rng]
            cause = () if keyword else (self.run.kb.generators[source].rule, source)
            place = self.places[rng]
            remedy = ("seed", keyword) if keyword else ("rng", source)
            self.report("DET107", place, message, help, subject=place.subject, remedy=remedy, cause=cause)
            self.places.pop(rng)
            if not keyword:
                self.reported.add(rng)
