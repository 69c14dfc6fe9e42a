"""DET603: resumed runs that see other batches than an uninterrupted one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Confidence
from d9mlint.checks.base import Reporter, argument_node
from d9mlint.checks.checkpoints import contents
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.places import Where
from d9mlint.interp.text import call_text, node_text
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import assigned_names
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks, Loop
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

_POSITION = re.compile(
    r"batch|sampler|loader|consumed|cursor|position|offset|samples|seen|data|indices", re.IGNORECASE
)
_INSIDE = "saved-within-epoch"
_KEPT = "position-kept"
_HELP = "skip in the first epoch only: `skip = start_step if epoch == start_epoch else 0`"


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to loops over loaders and to what a checkpoint holds."""
    if not reporter.on("DET603"):
        return
    # Keys of running loops over batches, and over the rest of an epoch.
    batches: set[str] = set()

    def any_call(interp: Interp, call: CallEvent) -> None:
        for entry in interp.kb.roles(call.api):
            if entry.role == "discards-batches" and all_hold(call.args, entry.when, call.owner) is True:
                interp.notes[_KEPT] = True
                _skipped_here(interp, reporter, entry, call)
            elif entry.role == "saves-loader":
                interp.notes[_KEPT] = True

    def loop(interp: Interp, loop: Loop, begins: bool) -> None:
        if not begins or not isinstance(loop.stmt, m.For):
            return
        batches.discard(loop.key)
        header: list[Any] = [loop.stmt.iter]
        for node in nodes(header):
            value = interp.eval(node) if isinstance(node, m.Name) else None
            if isinstance(value, v.Obj):
                if value.type == LOADER and not _skips_by_hand(loop.stmt):
                    batches.add(loop.key)
                entry = interp.kb.role(value.api, "discards-batches")
                if entry is not None and all_hold(value.args, entry.when) is True:
                    _skipped_again(interp, reporter, value, loop)

    def save(interp: Interp, call: CallEvent) -> None:
        content = call.args.get("obj", 0)
        inner = [one for one in interp.loops if one.key in batches]
        if (
            interp.entry is None
            or not inner
            or interp.loops[0] is inner[0]
            or not isinstance(content, v.Mapping)
        ):
            return
        if content.open or "optimizer" not in contents(content, []):
            return
        if not any(isinstance(key, str) and _POSITION.search(key) for key in dict.keys(content.items)):
            interp.notes.setdefault(_INSIDE, []).append(Where(interp, call.node, "torch.save"))

    def end(interp: Interp) -> None:
        if _KEPT in interp.notes or not interp.notes.get("loads"):
            return
        for place in interp.notes.get(_INSIDE, []):
            reporter.report(
                interp,
                "DET603",
                place,
                "checkpoint is saved within an epoch without the position in the data: a resumed run repeats the batches "
                "of the epoch",
                "save the position (`StatefulDataLoader`, or the number of batches with the seed of the order) and skip "
                "to it when resuming, or save at the end of epochs",
                subject="torch.save",
                confidence=Confidence.MEDIUM,
            )

    def imported(interp: Interp, name: str, stmt: Any) -> None:
        if interp.kb.role(f"import:{name}", "saves-loader") is not None:
            interp.notes[_KEPT] = True

    hooks.any_call.append(any_call)
    hooks.imports.append(imported)
    hooks.loops.append(loop)
    hooks.on_call("torch.save")(save)
    hooks.ends.append(end)


def _skips_by_hand(stmt: m.For) -> bool:
    """Whether a loop over batches passes over some of them."""
    return any(isinstance(node, m.Jump) and node.kind == "continue" for node in nodes(list(stmt.body)))


def _skipped_again(interp: Interp, reporter: Reporter, skipping: v.Obj, loop: Loop) -> None:
    """A loader without its first batches, made before a loop over epochs, is iterated in it."""
    around = interp.loops[:-1] if interp.loops and interp.loops[-1] is loop else interp.loops
    if (
        not any(one.start > skipping.birth for one in around)
        or skipping.node is None
        or skipping.file is None
    ):
        return
    place = Where(interp, skipping.node, skipping.api)
    place.site = place.site._replace(path=skipping.file.path)
    _report(interp, reporter, place, node_text(skipping.node, skipping.api), skipping.api)


def _skipped_here(interp: Interp, reporter: Reporter, entry: RoleEntry, call: CallEvent) -> None:
    """Batches are left out in every round of a loop over epochs, by a number that does not depend on the round."""
    epochs = [one for one in interp.loops if one.frame.env is interp.frame.env]
    if not epochs or interp.branching:
        return
    count = argument_node(call.node, entry.arg, entry.pos)
    if count is None or isinstance(count, m.IfExp):
        return
    value = call.args.get(entry.arg, entry.pos)
    if isinstance(value, v.Lit) and not value.value:
        return
    expression: list[Any] = [count]
    used = {one.id.partition(".")[0] for one in nodes(expression) if isinstance(one, m.Name)}
    if any(used & set(assigned_names(one.stmt)) for one in epochs) or not used:
        return
    _report(interp, reporter, Where(interp, call.node, call.api), call_text(call), call.api)


def _report(interp: Interp, reporter: Reporter, place: Where, name: str, api: str) -> None:
    reporter.report(
        interp,
        "DET603",
        place,
        f"`{name}` leaves out the first batches of every epoch, not only of the one that is resumed",
        _HELP,
        subject=api,
    )
