"""DET209, DET210, DET211, DET213, DET215: orders that are arbitrary and decide a result. See ``interp.orders``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Applicability, Confidence, Edit, Fix, Severity
from d9mlint.checks.base import Rule
from d9mlint.interp.activity import TRAIN, where
from d9mlint.interp.events import EndEvent
from d9mlint.interp.listening import on
from d9mlint.interp.order_inside import HELP, MESSAGES, UNKNOWN_ELEMENTS
from d9mlint.interp.order_kinds import CELL, OBJECT, TEXT

if TYPE_CHECKING:
    from d9mlint.interp.orders import Key, Origin

CODES = ("DET209", "DET210", "DET211", "DET213", "DET215")


class Order(Rule):
    """Reports at the end of a run what has decided something."""

    codes = CODES

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        trains = where(self.run, TRAIN) is not None
        for key in self.run.orders.finish(self.run.reads_variable, self.run.reads_attribute, trains):
            _report(self, key, self.run.orders.origins[key])
        for key, origin in self.run.orders.origins.items() if self.run.silences is not None else ():
            if key not in self.run.orders.decided:
                self.silent(
                    key[0],
                    origin.place,
                    "the order is arbitrary, but was not seen to decide a result",
                )
            elif key in self.run.orders.excused:
                self.silent(key[0], origin.place, "another rule reports it")


def _report(rule: Rule, key: Key, origin: Origin) -> None:
    code = key[0]
    if code == "DET213":
        rule.report(
            code,
            origin.place,
            "`hash()` of text differs between runs (hash randomization), and a result depends on it",
            "use a stable hash: `zlib.crc32(text.encode())` or `hashlib`",
            subject="hash",
        )
    elif origin.what:
        rule.report(
            code,
            origin.place,
            origin.what,
            origin.help,
            subject=origin.place.subject,
            severity=Severity.ADVICE if origin.lone else None,
            confidence=None if origin.confidence == "high" else Confidence(origin.confidence),
            fix=_sort(origin.node) if origin.sortable else None,
        )
    else:
        known = origin.elements in (TEXT, OBJECT)
        rule.report(
            code,
            origin.place,
            MESSAGES.get(origin.elements, UNKNOWN_ELEMENTS) if origin.inside else _SETS[origin.elements],
            origin.help or (HELP if origin.inside else _remedy(origin)),
            subject="set",
            severity=None if known else Severity.ADVICE if origin.elements == CELL else Severity.WARNING,
            confidence=None if known else Confidence.MEDIUM,
            remedy=(origin.elements,) if known and not origin.inside else (),
        )


_SETS = {
    TEXT: "iteration order of this set of strings differs between runs (hash randomization)",
    OBJECT: "iteration order of this set differs between runs: its objects are hashed by address",
    CELL: "iteration order of this set of values of a table differs between runs if the column contains strings (hash "
    "randomization)",
    "": "iteration order of this set differs between runs if it contains strings (hash randomization)",
}
_REMEDIES = {
    TEXT: "use `sorted(...)`, or `dict.fromkeys(...)` to keep the order of first appearance",
    OBJECT: "use `dict.fromkeys(...)`, which keeps the order of first appearance",
}
_ANY = (
    "use `dict.fromkeys(...)`, which keeps the order of first appearance, or `sorted(...)` if the elements can be "
    "compared"
)
_REDUCED = {
    TEXT: "use `sorted(...)`",
    OBJECT: "use a list comprehension over elements in a fixed order instead of a set operation",
}
_ANY_REDUCED = (
    "use `sorted(...)` if the elements can be compared, or a list comprehension over elements in a fixed order instead "
    "of a set operation"
)


def _remedy(origin: Origin) -> str:
    """What gives the elements a fixed order. The keys of a dictionary can hold a union, ``[*a, *b]``, which has a fixed
    order where ``a`` and ``b`` are no sets, but a dictionary has no difference, and that of its keys is a set again."""
    if origin.reduced:
        return _REDUCED.get(origin.elements, _ANY_REDUCED)
    return _REMEDIES.get(origin.elements, _ANY)


def _sort(node: Any) -> Fix:
    edits = (Edit(node.start, node.start, "sorted("), Edit(node.end, node.end, ")"))
    return Fix(Applicability.SAFE, "sort the entries", edits)
