"""For which releases of libraries a program was written, as far as the names that it uses tell."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp.events import CallEvent, ImportEvent
from d9mlint.interp.listening import on

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import InferredEntry

_RENAMED = {"tensorflow.": "tf."}


class ReleaseNames:
    """Listens for names that later releases do not have."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp

    @on(CallEvent)
    def called(self, call: CallEvent) -> None:
        """A name is called."""
        self._used(call.api)
        for told, arguments in self._interp.kb.inferred_by_arguments(call.api):
            if any(name in call.args.kw for name in arguments):
                self._tell(told)

    @on(ImportEvent)
    def imported(self, event: ImportEvent) -> None:
        """A module is imported."""
        name = event.name
        for old, new in _RENAMED.items():
            if name.startswith(old):
                name = new + name[len(old) :]
        self._used(f"{name}.")

    def _used(self, name: str) -> None:
        told = self._interp.kb.inferred(name)
        if told is not None:
            self._tell(told)

    def _tell(self, told: InferredEntry) -> None:
        self._interp.tell_releases(({told.library: told.version}, told.implies))
