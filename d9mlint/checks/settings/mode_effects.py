"""What PyTorch's deterministic mode may change in a program: ops that it makes deterministic, and what is not known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.checks.coverage import PLAIN
from d9mlint.interp.argtests import all_hold, any_holds
from d9mlint.interp.calls import COMMON_METHODS, MAX_GUESSES

if TYPE_CHECKING:
    from d9mlint.interp.events import CallEvent
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import OpEntry

CALLED = ".__call__"
OPS = ("DET401", "DET404", "DET407", "DET408")
"""The rules that report ops which the mode may change, each at its place."""
_BY_SWITCH = ("DET302", "DET405")
"""The rules of ops that are not reported by themselves, or not by default."""


def may_change(kb: Knowledge, api: str) -> bool:
    """Whether calls of a name are to be looked at: the mode may change what they do."""
    name = api.removesuffix(CALLED)
    return name.startswith("?") or bool(_switched(kb, name)) or not _is_unchanged(kb, name)


def changes(run: RunView, call: CallEvent) -> list[tuple[str, ...]]:
    """What the mode may change in one of these calls: for each thing the other modes with which it does not."""
    name = call.api.removesuffix(CALLED)
    if name == "?":
        return [()]
    if name.startswith("?."):
        # Of methods of the project, what may be meant is run unless too many are.
        method = name.rpartition(".")[2]
        candidates = run.methods_named(method)
        return [()] if candidates and (method in COMMON_METHODS or len(candidates) > MAX_GUESSES) else []
    found = [tuple(entry.unless_mode) for entry in _switched(run.kb, name) if _applies(entry, call)]
    known = run.kb.role(name, "mode-changes-nothing")
    if known is not None and known.when:
        return found if all_hold(call.args, known.when, call.owner) is True else [()]
    return found if _is_unchanged(run.kb, name) else [()]


def _is_unchanged(kb: Knowledge, name: str) -> bool:
    """Whether it is known without its arguments that the mode changes nothing of a call, but for known ops: of the
    packages and classes that a name is in, the innermost decides of which anything is known."""
    known = kb.role(name, "mode-changes-nothing")
    if known is not None:
        return not known.when
    while name:
        if kb.role(name, "mode-may-change") is not None:
            return False
        if name in PLAIN or kb.role(name, "mode-changes-nothing") is not None:
            return True
        name = name.rpartition(".")[0]
    return False


def _switched(kb: Knowledge, name: str) -> list[OpEntry]:
    return [entry for entry in kb.ops(name) if _is_switched(entry)]


def _is_switched(entry: OpEntry) -> bool:
    return entry.rule in _BY_SWITCH and "cuda" in entry.devices


def _applies(entry: OpEntry, call: CallEvent) -> bool:
    if all_hold(call.args, entry.when, call.owner) is False:
        return False
    return any_holds(call.args, entry.unless, call.owner) is not True
