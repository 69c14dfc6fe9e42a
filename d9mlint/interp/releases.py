"""For which releases of libraries a program was written, as far as the names that it uses tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp.events import CallEvent, ImportEvent
from d9mlint.interp.listening import on, on_call_if
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import InferredEntry

_RENAMED = {"tensorflow.": "tf."}


class ReleaseNames:
    """Listens for names that later releases do not have."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp
        self.kb = interp.kb

    @on_call_if(
        lambda names, api: names.kb.inferred(api) is not None or any(names.kb.inferred_by_arguments(api))
    )
    def called(self, call: CallEvent) -> None:
        """A name is called."""
        self._used(call.api)
        for entry, arguments in self.kb.inferred_by_arguments(call.api):
            if any(name in call.args.kw for name in arguments):
                self._infer(entry)

    @on(ImportEvent)
    def imported(self, event: ImportEvent) -> None:
        """A module is imported, or names of one."""
        name = f"{event.name}."
        for old, new in _RENAMED.items():
            if name.startswith(old):
                name = new + name[len(old) :]
        self._used(name)
        stmt = event.node
        if isinstance(stmt, m.ImportFrom) and not self._interp.branching:
            # A name has to be there as well: the program does not start without it.
            for alias in stmt.names:
                self._used(f"{name}{alias.name}")

    def _used(self, name: str) -> None:
        entry = self.kb.inferred(name)
        if entry is not None:
            self._infer(entry)

    def _infer(self, entry: InferredEntry) -> None:
        self._interp.infer_releases(({entry.library: entry.version}, entry.implies))
