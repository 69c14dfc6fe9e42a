"""DET601 and DET602: checkpoints that do not carry, or do not restore, everything a run goes on from."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Reporter
from d9mlint.interp import values as v
from d9mlint.interp.places import Where
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import children

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RngEntry

STATES = {
    "torch.get_rng_state": "torch",
    "torch.random.get_rng_state": "torch",
    "torch.cuda.get_rng_state": "cuda",
    "torch.cuda.get_rng_state_all": "cuda",
    "numpy.random.get_state": "numpy",
    "random.getstate": "python",
}
RESTORES = {
    "torch.set_rng_state": "torch",
    "torch.cuda.set_rng_state": "cuda",
    "torch.cuda.set_rng_state_all": "cuda",
    "numpy.random.set_state": "numpy",
    "random.setstate": "python",
}
NAMES = {"torch": "torch", "cuda": "CUDA", "numpy": "NumPy", "python": "Python"}
RESTORE_CALLS = {
    "torch": "torch.set_rng_state",
    "cuda": "torch.cuda.set_rng_state_all",
    "numpy": "np.random.set_state",
    "python": "random.setstate",
}
_EPOCH = re.compile(r"epoch|step|iter|itr", re.IGNORECASE)
_OPTIMIZER = re.compile(r"optim|(^|[._])opt([._]|$|_?[a-z]?$)", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched|lr_s", re.IGNORECASE)
_SCALER = re.compile(r"scaler|amp", re.IGNORECASE)


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to saving, loading and what the program uses."""
    if not reporter.on("DET601", "DET602"):
        return

    def drawn(interp: Interp, rng: str, entry: RngEntry) -> None:
        if entry.kind not in ("init", "split") and rng in ("torch", "numpy", "python"):
            interp.notes.setdefault("uses", set()).add(rng)

    hooks.any_draw.append(drawn)

    def used(interp: Interp, call: CallEvent) -> None:
        if call.api.startswith("torch.optim.lr_scheduler."):
            interp.notes.setdefault("uses", set()).add("scheduler")
        elif call.api.rpartition(".")[2] == "GradScaler" and call.api.startswith("torch."):
            interp.notes.setdefault("uses", set()).add("scaler")
        state = STATES.get(call.api)
        if state is not None:
            interp.notes.setdefault("saved-states", set()).add(state)
        restore = RESTORES.get(call.api)
        if restore is not None:
            interp.notes.setdefault("restored-states", set()).add(restore)

    hooks.any_call.append(used)

    @hooks.on_call("torch.save")
    def save(interp: Interp, call: CallEvent) -> None:
        content = call.args.get("obj", 0)
        if content is None:
            return
        if not isinstance(content, v.Mapping | v.Items):
            # One state alone, in a file of its own: the rest may stand in others.
            return
        found = contents(content, _written(call.node))
        if "optimizer" in found and "unknown" not in found:
            interp.notes.setdefault("checkpoints", []).append((Where(interp, call.node, "torch.save"), found))

    @hooks.on_call("torch.load")
    def load(interp: Interp, call: CallEvent) -> None:
        interp.notes.setdefault("loads", []).append(Where(interp, call.node, "torch.load"))

    hooks.ends.append(lambda interp: _end(interp, reporter))


def _end(interp: Interp, reporter: Reporter) -> None:
    from d9mlint.interp.activity import may_use_cuda, trains

    open_world = interp.entry is None
    uses = set(interp.notes.get("uses", ()))
    if open_world:
        # Who calls this is not known. What trains with an optimizer draws from torch: shuffling, dropout.
        uses.add("torch")
    elif "torch" in uses and may_use_cuda(interp):
        uses.add("cuda")
    told: set[tuple[str, str]] = set()
    for place, found in interp.notes.get("checkpoints", []):
        # Several files from one place (last, best, every n epochs) are reported once.
        if (place.site.path, place.scope) in told:
            continue
        if not open_world and not trains(interp):
            continue
        lacks = [] if "epoch" in found else ["the epoch or step"]
        wanted = [*(["epoch"] if lacks else []), *(p for p in ("scheduler", "scaler") if p in uses - found)]
        wanted += [rng for rng in NAMES if rng in uses - found]
        lacks += [
            f"the {what} state" for what in ("scheduler", "scaler") if what in uses and what not in found
        ]
        lacks += _states([rng for rng in NAMES if rng in uses and rng not in found])
        if lacks:
            told.add((place.site.path, place.scope))
            reporter.report(
                interp,
                "DET601",
                place,
                f"checkpoint does not save {_listed(lacks)}; a resumed run diverges from an uninterrupted one",
                "save the missing state and restore it when resuming",
                subject="torch.save",
                remedy=tuple(wanted),
            )
    if open_world:
        # What is saved here may be restored elsewhere.
        return
    missing = set(interp.notes.get("saved-states", ())) - set(interp.notes.get("restored-states", ()))
    if missing:
        for place in interp.notes.get("loads", [])[:1]:
            rngs = [rng for rng in NAMES if rng in missing]
            states = f"{_listed(_states(rngs))} {'is' if len(rngs) == 1 else 'are'}"
            reporter.report(
                interp,
                "DET602",
                place,
                f"{states} saved but never restored, so resumed training continues from a different state",
                f"restore on load with {_listed([f'`{RESTORE_CALLS[rng]}`' for rng in rngs])}",
                subject="torch.load",
                remedy=tuple(rngs),
            )


def _states(rngs: list[str]) -> list[str]:
    """RNG states as one item of a sentence; empty for none."""
    if not rngs:
        return []
    names = _listed([NAMES[rng] for rng in rngs])
    return [f"the {names} RNG state" + ("s" if len(rngs) > 1 else "")]


def _listed(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else ", ".join(parts[:-1]) + " and " + parts[-1]


def _written(node: Any) -> list[str]:
    """Names written in the saved expression: keys and variables."""
    if not isinstance(node, m.Call) or not node.args:
        return []
    names: list[str] = []
    stack: list[Any] = [node.args[0]]
    while stack:
        one = stack.pop()
        if isinstance(one, m.Name):
            names.append(one.id)
        stack.extend(children(one))
    return names


def contents(value: v.Value, written: list[str]) -> set[str]:
    """What a saved value carries: ``optimizer``, ``scheduler``, ``scaler``, ``epoch``, RNG names; ``unknown``
    when there may be more than can be seen."""
    found: set[str] = set()
    _collect(value, "", found, 0)
    for name in written:
        last = name.rpartition(".")[2]
        if _EPOCH.search(last):
            found.add("epoch")
    return found


def _collect(value: v.Value, key: str, found: set[str], depth: int) -> None:
    if depth > 4:
        return
    if isinstance(value, v.Mapping):
        if value.open and depth == 0:
            found.add("unknown")
        for name, item in value.items.items():
            _collect(item, str(name), found, depth + 1)
        return
    if isinstance(value, v.Items):
        for item in value.elts:
            _collect(item, key, found, depth + 1)
        return
    if _EPOCH.search(key):
        found.add("epoch")
    if isinstance(value, v.AnyOf):
        for one in value.values:
            _collect(one, key, found, depth + 1)
        return
    if isinstance(value, v.Obj):
        state = STATES.get(value.api)
        if state is not None:
            found.add(state)
        owner = value.attrs.get("@owner")
        kind = owner.type if isinstance(owner, v.Obj) else value.type
        text = f"{key}.{_receiver(value.node)}"
        if kind.startswith("torch.optim.lr_scheduler") or _SCHEDULER.search(text):
            found.add("scheduler")
        elif kind.startswith("torch.optim.") or _OPTIMIZER.search(text):
            found.add("optimizer")
        elif kind.endswith("GradScaler") or _SCALER.search(text):
            found.add("scaler")
    elif value is v.UNKNOWN or isinstance(value, v.Member | v.Inst):
        if _SCHEDULER.search(key):
            found.add("scheduler")
        elif _OPTIMIZER.search(key):
            found.add("optimizer")
        elif _SCALER.search(key):
            found.add("scaler")
        elif re.search(r"rng|random", key, re.IGNORECASE):
            found.update(STATES.values())


def _receiver(node: Any) -> str:
    if isinstance(node, m.Call) and isinstance(node.func, m.Name):
        return node.func.id.rpartition(".")[0]
    return ""
