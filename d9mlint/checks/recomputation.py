"""DET411: functions that are run again in the backward pass with other random numbers than in the forward pass."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from d9mlint.base.findings import Confidence
from d9mlint.checks.base import Reporter
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.places import Where
from d9mlint.interp.state import MAYBE, Rng
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RngEntry

_FUNCTION = "torch.autograd.Function"
_APPLY = f"{_FUNCTION}.apply"
_LOG = "recomputed-draws"
_OPTION = "preserve_rng_state"
_KEEPING = re.compile(r"rng|rand|seed|generator", re.IGNORECASE)
_WRONG = "the gradients are those of another dropout mask and wrong, although runs agree"


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to checkpointing, of libraries and by hand."""
    if not reporter.on("DET411"):
        return

    def any_call(interp: Interp, call: CallEvent) -> None:
        entry = interp.kb.role(call.api, "checkpoints")
        if entry is not None and all_hold(call.args, entry.when) is not False:
            _library(interp, reporter, call, call.args.get(entry.arg, entry.pos), entry.arg)
        if isinstance(call.owner, v.Cls) and _FUNCTION in map(
            interp.kb.canonical, call.owner.external_bases()
        ):
            if call.api == _APPLY:
                _by_hand(interp, reporter, call.owner, call)

    hooks.any_call.append(any_call)
    hooks.any_draw.append(_record)


def _record(interp: Interp, rng: str, entry: RngEntry) -> None:
    log = interp.notes.get(_LOG)
    if log is not None and entry.kind != "init":
        log.add(rng)


def _library(
    interp: Interp, reporter: Reporter, call: CallEvent, given: v.Value | None, argument: str
) -> None:
    """``checkpoint(f, x, preserve_rng_state=False)``, or the same in a dictionary of options."""
    option = call.args.kw.get(_OPTION)
    if isinstance(given, v.Mapping) and argument != "function":
        option, given = given.items.get(_OPTION), None
    if not isinstance(option, v.Lit) or option.value is not False:
        return
    confidence = None
    if argument == "function":
        drawn = draws(interp, given)
        if drawn is not None and not drawn:
            return
        confidence = Confidence.MEDIUM if drawn is None else None
    reporter.report(
        interp,
        "DET411",
        call.node,
        f"`{_OPTION}=False`: the backward pass recomputes with other random numbers; {_WRONG}",
        f"leave `{_OPTION}` at `True`",
        subject=call.api,
        confidence=confidence,
    )


def draws(interp: Interp, function: v.Value | None) -> set[str] | None:
    """The global RNGs that a function or module draws from when it is called; None where it is not known."""
    if isinstance(function, v.Items) and not function.open:
        found = [draws(interp, one) for one in function.elts]
        seen = {name for one in found if one for name in one}
        return seen if seen or None not in found else None
    if isinstance(function, v.AnyOf):
        return draws(interp, v.Items("t", list(function.values)))
    own = isinstance(function, (v.Func, v.Partial, v.Inst))
    if not own and not (isinstance(function, v.Obj) and function.api.startswith("torch.nn.")):
        return None
    log: set[str] = set()
    with interp.fork():
        for rng in interp.kb.generators:
            interp.state.rng[rng] = Rng(MAYBE)
        interp.notes[_LOG] = log
        interp.call(function, v.Args([v.UNKNOWN], star=True), None)  # type: ignore[arg-type]
    return log


# ----------------------------------------------------------------------- functions of the program


def _by_hand(interp: Interp, reporter: Reporter, cls: v.Cls, call: CallEvent) -> None:
    """A custom autograd function whose backward pass calls again what its forward pass called."""
    forward, backward = cls.find("forward"), cls.find("backward")
    if not isinstance(forward, v.Func) or not isinstance(backward, v.Func):
        return
    if len(forward.fn.params) < 2 or not backward.fn.params:
        return
    kept = _kept_callables(forward)
    again = _called_again(backward, kept)
    if again is None or any(_KEEPING.search(name) for name in _names(backward.fn.body)):
        return
    node, parameter = again
    position = [param.name for param in forward.fn.params].index(parameter) - 1
    drawn = draws(interp, call.args.get(parameter, position))
    if drawn is not None and not drawn:
        return
    place = Where(interp, call.node, _APPLY)
    place.site = place.site._replace(path=backward.file.path, start=node.start, end=node.end)
    reporter.report(
        interp,
        "DET411",
        place,
        f"`{_written(node)}` runs again in the backward pass without the random number state of the forward "
        f"pass; {_WRONG}",
        "save the RNG state in `forward` and restore it around the call, or use `torch.utils.checkpoint.checkpoint`",
        subject=_APPLY,
        confidence=None if drawn else Confidence.MEDIUM,
    )


def _kept_callables(forward: v.Func) -> dict[str, str]:
    """Attributes of the context that ``forward`` sets to a parameter which it also calls, with the parameter."""
    context = forward.fn.params[0].name
    params = {param.name for param in forward.fn.params[1:]}
    called: set[str] = set()
    kept: dict[str, str] = {}
    for node in nodes(list(forward.fn.body)):
        if isinstance(node, m.Call) and isinstance(node.func, m.Name):
            called.add(node.func.id)
        if isinstance(node, m.Assign) and isinstance(node.value, m.Name) and node.value.id in params:
            for target in node.targets:
                if isinstance(target, m.Name) and target.id.startswith(f"{context}."):
                    kept[target.id[len(context) + 1 :]] = node.value.id
    return {
        name: parameter
        for name, parameter in kept.items()
        if parameter in called or f"{context}.{name}" in called
    }


def _called_again(backward: v.Func, kept: dict[str, str]) -> tuple[m.Call, str] | None:
    """The call in ``backward`` of what was kept, and the parameter of ``forward`` that it came from."""
    names = {f"{backward.fn.params[0].name}.{name}": parameter for name, parameter in kept.items()}
    for node in nodes(list(backward.fn.body)):
        if isinstance(node, m.Assign) and isinstance(node.value, m.Name) and node.value.id in names:
            for target in node.targets:
                if isinstance(target, m.Name):
                    names.setdefault(target.id, names[node.value.id])
    found: list[tuple[m.Call, str]] = [
        (node, names[node.func.id])
        for node in nodes(list(backward.fn.body))
        if isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id in names
    ]
    return min(found, key=lambda one: one[0].start) if found else None


def _names(body: list[m.Stmt]) -> set[str]:
    return {
        node.id if isinstance(node, m.Name) else node.name
        for node in nodes(list(body))
        if isinstance(node, (m.Name, m.Attr))
    }


def _written(node: m.Call) -> str:
    """The called name as it is written."""
    return node.func.id if isinstance(node.func, m.Name) else "the function"
