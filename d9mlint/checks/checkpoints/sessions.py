"""DET601: what the files of a `Saver` of TensorFlow 1 do not hold from which a session goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.base.options import given_in_words
from d9mlint.base.terminal import listed
from d9mlint.checks.base import Rule
from d9mlint.checks.checkpoints.filled import FilledLists
from d9mlint.checks.checkpoints.path_names import path_name
from d9mlint.checks.checkpoints.tensorflow import counts_from_zero
from d9mlint.interp import values as v
from d9mlint.interp.activity import ESTIMATOR_TRAINS, trains
from d9mlint.interp.argtests import all_hold, if_given
from d9mlint.interp.events import AnyDrawEvent, CallEvent, EndEvent, RepeatedEvent, SeedEvent
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.memory import marks_options, marks_path, remembered, remembered_table
from d9mlint.interp.places import Moment, Where
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_ORDER = "order"
_STATES = {
    "numpy": "the NumPy RNG state",
    "python": "the Python RNG state",
    _ORDER: "the position in the shuffled input",
}
_DRAWN = "drawn for a session from "
_SEEDED = "seeded for a session: "
"""Begin what loops are marked with in which an RNG is drawn from, or seeded."""
_DEEPEST = 6
_KEPT = frozenset({"init", "split", "dropout"})
"""Kinds of draws that a run which goes on repeats anyway."""


class SessionCheckpoints(FilledLists, Rule):
    """DET601: the variables of a graph that a program saves in the loop in which it trains, and restores before. DET602:
    those that it restores before a loop that counts from the beginning."""

    codes = ("DET601", "DET602")
    restored = marks_path(bool)
    """The savers that the path has restored variables with, before all loops."""
    restored_if = marks_options(str)
    """Those that it may have restored them with, and the option that decides it."""
    restored_at = remembered_table(Site, Where)
    """Where variables are restored from the last file that was saved."""
    named_at = remembered_table(Site, Where)
    """Where variables are restored from a file of a name that is known."""
    written_over = remembered(set[Site])
    """The savers that write the same file again in a loop that counts from the beginning."""
    counted_anew = remembered(set[Site])
    """The savers whose files are written in a loop that counts from the beginning."""
    saved = remembered_table(Site, Where)
    """Where savers that the path has restored from before write a file in a loop, or after it."""
    loops = remembered(set[tuple[Site, str]])
    """In, or after, which loops that is."""
    restored_from = remembered(set[tuple[Site, tuple[str, ...]]])
    """From what files savers restore variables, as far as that is known; empty for the last one that was saved."""
    restored_when = remembered_table(Site, int)
    """When they do so first,"""
    drawn_when = remembered_table(str, int)
    """and when loops have drawn last."""
    uses = remembered_table(tuple[str, str], bool)
    """The RNGs that are drawn from in a loop."""
    seeded = remembered(set[tuple[str, str]])
    """The RNGs that are seeded in a loop."""
    kept = remembered(set[str])
    """The RNGs whose state is restored, and ``order`` where a graph holds the state of an iterator."""
    going_on = remembered_table(Site, Where)
    """Where sessions are made that restore what an earlier run of the program saved, and save it themselves,"""
    may_go_on = remembered(bool)
    """and whether there are any."""
    drawn_then = remembered(set[str])
    """The RNGs that are drawn from in a loop since."""
    seeded_then = remembered(set[str])
    """The RNGs that are seeded in a loop since."""
    reordered = remembered(bool)
    """Whether examples are read in another order in each epoch."""

    @on(AnyDrawEvent)
    def drawn(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        if event.rng in _STATES and event.entry.kind not in _KEPT:
            self._drawn_in_loops(event.rng)

    @on(RepeatedEvent)
    def drawn_again(self, event: RepeatedEvent) -> None:
        """A call that draws or seeds is taken over from an earlier one."""
        for rng in event.named(_DRAWN):
            self._drawn_in_loops(rng)
        for rng in event.named(_SEEDED):
            self._seeded_in_loops(rng)

    def _drawn_in_loops(self, rng: str) -> None:
        keys = self.run.loops.marked(f"{_DRAWN}{rng}")
        for key in keys:
            self.uses[rng, key] = True
            self.drawn_when[key] = Moment(self.run.steps)
        if keys and self.may_go_on:
            self.drawn_then.add(rng)

    def _seeded_in_loops(self, rng: str) -> None:
        keys = self.run.loops.marked(f"{_SEEDED}{rng}")
        self.seeded.update((rng, key) for key in keys)
        if keys:
            self.seeded_then.add(rng)

    @on(SeedEvent)
    def seed(self, event: SeedEvent) -> None:
        """An RNG is seeded, or gets back a state that was kept."""
        if not event.entry.seed_arg:
            self.kept.update(event.rngs)
        for rng in event.rngs:
            self._seeded_in_loops(rng)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "goes-on") is not None)
    def continued(self, call: CallEvent) -> None:
        """A session is made that goes on where an earlier run has ended."""
        role = self.run.kb.role(call.api, "goes-on")
        if role is None:
            return
        option = ""
        if all_hold(call.args, role.when) is not True:
            args, options = if_given(call.args)
            if len(options) != 1 or all_hold(args, role.when) is not True:
                return
            option = options[0]
        self.may_go_on = True
        self.going_on.setdefault(
            self.run.here(call.node), lambda: Where(self.run, call.node, call.api, option)
        )

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "reorders") is not None)
    def shuffled(self, call: CallEvent) -> None:
        """Examples are shuffled."""
        role = self.run.kb.role(call.api, "reorders")
        if role is not None and all_hold(call.args, role.when):
            self.reordered = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "iterates") is not None)
    def held(self, call: CallEvent) -> None:
        """The position of an iterator becomes part of what is saved."""
        role = self.run.kb.role(call.api, "iterates")
        if role is not None and role.arg:
            self.kept.add(_ORDER)

    @on_method("restore")
    def restore(self, call: CallEvent) -> None:
        """Variables are restored."""
        site = self._saver(call.owner)
        if site is not None and not self.run.loops:
            self.restored[_key(site)] = True
            options = list(self.run.options)
            if options:
                self.restored_if[_key(site)] = options[-1]
            path = call.args.get("save_path", 1)
            self.restored_when.setdefault(site, lambda: Moment(self.run.steps))
            known = path_name(self.run, path) if path is not None else None
            if known is not None:
                self.restored_from.add((site, known.key()))
                self.named_at.setdefault(site, lambda: Where(self.run, call.node, call.api))
            if _is_last(self.run, path):
                self.restored_from.add((site, ()))
                self.restored_at.setdefault(site, lambda: Where(self.run, call.node, call.api))

    @on_method("save")
    def save(self, call: CallEvent) -> None:
        """Variables are saved."""
        site = self._saver(call.owner)
        if site is not None and self.run.loops and self._is_restored(_key(site)):
            self.saved.setdefault(site, lambda: Where(self.run, call.node, call.api))
            self.loops.update((site, loop.key) for loop in self.run.loops)
            if counts_from_zero(self.run.loops[0]):
                self.counted_anew.add(site)
                if self._writes_over(site, call):
                    self.written_over.add(site)
        elif site is not None and self._is_restored(_key(site)) and self._goes_on(site, call):
            self.saved.setdefault(site, lambda: Where(self.run, call.node, call.api))
            since = self.restored_when[site]
            self.loops.update((site, key) for key in self.drawn_when.known() if self.drawn_when[key] > since)

    def _goes_on(self, site: Site, call: CallEvent) -> bool:
        """Whether what is saved after all loops is what a later run of the program restores."""
        path = call.args.get("save_path", 1)
        known = path_name(self.run, path) if path is not None else None
        return any(
            one == site and (not key or (known is not None and key == known.key()))
            for one, key in self.restored_from
        )

    def _writes_over(self, site: Site, call: CallEvent) -> bool:
        """Whether what is saved replaces the file from which variables were restored: no number is part of its name."""
        path, number = call.args.get("save_path", 1), call.args.get("global_step", 2)
        known = path_name(self.run, path) if path is not None else None
        return (
            known is not None
            and (number is None or v.is_none(number) is True)
            and (site, known.key()) in self.restored_from
        )

    def _is_restored(self, saver: str) -> bool:
        """Whether variables may have been restored on the way here. What one option decides both is either to test or to
        train."""
        option = self.restored_if.get(saver)
        return saver in self.restored or (option is not None and option not in self.run.options)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if self.run.entry is None or not (trains(self.run) or ESTIMATOR_TRAINS in self.run.places):
            return
        for site in sorted(self.going_on.known()):
            drawn = set(self.drawn_then) - set(self.seeded_then)
            role = self.run.kb.role(self.going_on[site].subject, "goes-on")
            hook = role.more[0] if role is not None and role.more else ""
            loops = {one.loop for one in self.filled}
            self._report(self.going_on[site], drawn | ({_ORDER} if self.reordered else set()), loops, hook)
        again = {site: self.named_at[site] for site in self.written_over}
        again |= {
            site: self.restored_at[site] for site in self.restored_at.known() if site in self.counted_anew
        }
        for _, place in sorted(again.items(), key=lambda one: one[0]):
            self.report(
                "DET602",
                place,
                "variables are restored, but the loop that trains counts from the beginning again: a resumed run trains for "
                "more steps than an uninterrupted one",
                "restore the number of the step too, and let the loop begin with it",
                subject=place.subject,
            )
        for site in sorted(self.saved.known()):
            used = {
                rng
                for one, key in self.loops
                for rng, loop in self.uses.known()
                if one == site and loop == key and (rng, loop) not in self.seeded
            }
            if self.reordered:
                used.add(_ORDER)
            self._report(self.saved[site], used, {loop for one, loop in self.loops if one == site})

    def _report(self, place: Where, used: set[str], loops: set[str], hook: str = "") -> None:
        """Report what a checkpoint lacks of what is used, and of the lists that loops fill. ``hook`` keeps the position in
        the input."""
        lacks = [name for rng, name in _STATES.items() if rng in used - self.kept]
        memories = self.unsaved_lists(loops)
        if memories:
            lacks.append(f"the items of {listed([f'`{one}`' for one in memories])}")
        if lacks:
            self.report(
                "DET601",
                place,
                f"checkpoint does not save {listed(lacks)}; a resumed run diverges from an uninterrupted one"
                + (f" when {given_in_words(place.option)}" if place.option else ""),
                _remedy(sorted(used - self.kept), memories, hook),
                subject=place.subject,
            )

    def _saver(self, owner: v.Value | None) -> Site | None:
        """Where a saver of all variables was made."""
        if not isinstance(owner, v.Obj):
            return None
        role = self.run.kb.role(owner.api, "saves-variables")
        return made_at(owner) if role is not None and all_hold(owner.args, role.when) else None


def _is_last(run: RunView, value: v.Value | None, depth: int = 0) -> bool:
    """Whether a path is made of what names the last file that was saved."""
    if isinstance(value, v.AnyOf):
        return any(_is_last(run, one, depth) for one in value.values)
    if isinstance(value, v.Member):
        return _is_last(run, value.owner, depth)
    if not isinstance(value, v.Obj) or depth > _DEEPEST:
        return False
    if run.kb.role(value.api, "names-last-checkpoint") is not None:
        return True
    return any(_is_last(run, one, depth + 1) for one in (*value.args.values(), value.owner))


def _key(saver: Site) -> str:
    """What paths are marked with for a saver."""
    return f"{saver.path}:{saver.start}"


def _remedy(used: list[str], memories: list[str], hook: str) -> str:
    """What to do about what is used."""
    beside = ["the RNG state"] if set(used) - {_ORDER} else []
    beside += ["these items"] if memories else []
    it = "it" if beside == ["the RNG state"] else "them"
    done = [f"save {listed(beside)} in a file beside the checkpoint, and restore {it}"] if beside else []
    if _ORDER in used:
        done.append(
            f"pass `{hook}(estimator)` in `hooks=`, which saves the position and restores it"
            if hook
            else "compute the seed of the shuffle from the step that is restored"
        )
    return ", and ".join(done)
