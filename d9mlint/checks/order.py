"""DET209, DET210, DET211, DET213: orders that are arbitrary and decide a result. See ``interp.orders``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Applicability, Confidence, Edit, Fix, Severity
from d9mlint.checks.base import Reporter, silent
from d9mlint.interp.order_kinds import OBJECT, TEXT
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.hooks import Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.orders import Key, Origin

CODES = ("DET209", "DET210", "DET211", "DET213")


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Report at the end of a run what has decided something."""
    if not reporter.on(*CODES):
        return

    def end(interp: Interp) -> None:
        for key in interp.orders.finish():
            _report(interp, reporter, key, interp.orders.origins[key])
        for key, origin in interp.orders.origins.items() if interp.silences is not None else ():
            if key not in interp.orders.decided:
                silent(
                    interp,
                    key[0],
                    origin.place,
                    "the order is arbitrary, but was not seen to decide a result",
                )
            elif key in interp.orders.excused:
                silent(interp, key[0], origin.place, "another rule reports it")

    hooks.ends.append(end)


def _report(interp: Interp, reporter: Reporter, key: Key, origin: Origin) -> None:
    code = key[0]
    if code == "DET213":
        reporter.report(
            interp,
            code,
            origin.place,
            "`hash()` of text differs between runs (hash randomization), and a result depends on it",
            "use a stable hash: `zlib.crc32(text.encode())` or `hashlib`",
            subject="hash",
        )
    elif origin.what:
        reporter.report(
            interp,
            code,
            origin.place,
            origin.what,
            origin.help,
            subject=origin.place.subject,
            confidence=None if origin.confidence == "high" else Confidence(origin.confidence),
            fix=_sort(origin.node) if origin.sortable else None,
        )
    else:
        known = origin.elements in (TEXT, OBJECT)
        reporter.report(
            interp,
            code,
            origin.place,
            _SETS[origin.elements],
            "use `sorted(...)`, or `dict.fromkeys(...)` to keep the order of first appearance"
            if origin.elements != OBJECT
            else "use `dict.fromkeys(...)`, which keeps the order of first appearance",
            subject="set",
            severity=None if known else Severity.WARNING,
            confidence=None if known else Confidence.MEDIUM,
            remedy=(origin.elements,) if origin.elements else (),
        )


_SETS = {
    TEXT: "iteration order of this set of strings differs between runs (hash randomization)",
    OBJECT: "iteration order of this set differs between runs: its objects are hashed by address",
    "": "iteration order of this set differs between runs if it contains strings (hash randomization)",
}


def _sort(node: Any) -> Fix:
    edits = (Edit(node.start, node.start, "sorted("), Edit(node.end, node.end, ")"))
    return Fix(Applicability.SAFE, "sort the entries", edits)


def enclosing_function(interp: Interp) -> m.Function | None:
    """The project function that is running, or the module body."""
    frame: Any = interp.frame
    while frame is not None:
        if frame.func is not None:
            found: m.Function = frame.func.fn
            return found
        if not frame.is_class:
            return frame.file.facts.functions[0] if frame.file.facts.functions else None
        frame = frame.caller
    return None
