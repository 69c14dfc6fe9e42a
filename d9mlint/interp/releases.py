"""For which releases of libraries a program was written, as far as the names that it uses tell, and those of its files."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent, ImportEvent
from d9mlint.interp.file_names import ends_of, template_of
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import Memory, remembered_table
from d9mlint.interp.places import running
from d9mlint.ir import nodes as m
from d9mlint.ir.optional_imports import optional_imports
from d9mlint.knowledge.versions import at_least

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import InferredEntry, NamedFile

_RENAMED = {"tensorflow.": "tf."}


class ReleaseNames:
    """Listens for names that later releases do not have, and for imports of names that earlier ones do not have."""

    replaceable = remembered_table(str, bool)
    """The names among them without which the program goes on: they show nothing about the release."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp
        self.kb = interp.kb

    @property
    def memory(self) -> Memory:
        """Where the fields are remembered."""
        return self._interp.memory

    @on_call_if(
        lambda names, api: (
            names.kb.inferred(api) is not None
            or any(names.kb.inferred_by_arguments(api))
            or bool(names.kb.inferred_by_files(api))
        )
    )
    def called(self, call: CallEvent) -> None:
        """A name is called."""
        self.used(call.api)
        for entry, arguments in self.kb.inferred_by_arguments(call.api):
            if any(name in call.args.kw for name in arguments):
                self._infer(entry)
        for entry, file in self.kb.inferred_by_files(call.api):
            if self._is_refused(call, file):
                self._infer(entry)

    @on(ImportEvent)
    def imported(self, event: ImportEvent) -> None:
        """A module is imported, or names of one."""
        name = f"{event.name}."
        for old, new in _RENAMED.items():
            if name.startswith(old):
                name = new + name[len(old) :]
        stmt = event.node
        parts = [f"{name}{one.name}" for one in stmt.names] if isinstance(stmt, m.ImportFrom) else []
        function = running(self._interp)
        if function is not None and stmt.start in optional_imports(function):
            self._note_replaceable(name, *parts)
            return
        self.used(name, stmt)
        if not self._interp.branching:
            # A name has to be there as well: the program does not start without it.
            for part in parts:
                self.used(part, stmt)

    def used(self, name: str, imported_by: Any = None) -> None:
        """A name is used, or imported by a statement."""
        entry = self.kb.inferred(name)
        if entry is None:
            return
        if imported_by is None and self._is_replaceable(name):
            return
        self._infer(entry)
        if entry.since and imported_by is not None and self._is_needed(imported_by):
            self._interp.infer_releases(({at_least(entry.library): entry.since}, {}))

    def _note_replaceable(self, *names: str) -> None:
        for name in names:
            if self.kb.inferred(name) is not None:
                self.replaceable[name.rstrip(".")] = self.replaceable[self.kb.canonical(name.rstrip("."))] = (
                    True
                )

    def _is_replaceable(self, name: str) -> bool:
        parts = name.split(".")
        return any(self.replaceable.get(".".join(parts[: end + 1])) for end in range(1, len(parts)))

    def _is_needed(self, stmt: Any) -> bool:
        """Whether a module does not load without what a statement imports: it is no part of another statement."""
        body = self._interp.frame.file.facts.functions[0].body
        return not self._interp.branching and any(one is stmt for one in body)

    def _is_refused(self, call: CallEvent, file: NamedFile) -> bool:
        """Whether later releases refuse the name of the file that a call is given: it is known, and ends otherwise."""
        name = call.args.get(file.arg, file.pos)
        if name is None or _is_elsewhere(name):
            return False
        ends: Iterable[str] = ends_of(self._interp, name)
        if not ends:
            ends = [one for one in template_of(self._interp, name)[-1:] if isinstance(one, str)]
        return (
            bool(ends)
            and not any(one.endswith(tuple(file.ends)) or _may_end(one, file.ends) for one in ends)
            and all_hold(call.args, file.when, call.owner) is True
        )

    def _infer(self, entry: InferredEntry) -> None:
        self._interp.infer_releases(entry.releases)


def _is_elsewhere(name: v.Value) -> bool:
    """Whether a name is that of a place in the network, which releases read and write in their own ways."""
    text = name.value if isinstance(name, v.Lit) else v.beginning_of(name)
    return "://" in str(text)


def _may_end(known: str, ends: list[str]) -> bool:
    """Whether the part of a name that is known may be the last part of one of its ends."""
    return any(one.endswith(known) for one in ends)
