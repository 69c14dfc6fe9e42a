"""For which releases of libraries a program was written, as far as the names that it uses tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import InferredEntry

_RENAMED = {"tensorflow.": "tf."}


def register(hooks: Hooks) -> None:
    """Listen to names that later releases do not have."""

    def imported(interp: Interp, name: str, node: Any) -> None:
        for old, new in _RENAMED.items():
            if name.startswith(old):
                name = new + name[len(old) :]
        _used(interp, f"{name}.")

    hooks.any_call.append(_called)
    hooks.imports.append(imported)


def _called(interp: Interp, call: CallEvent) -> None:
    _used(interp, call.api)
    for told, arguments in interp.kb.inferred_by_arguments(call.api):
        if any(name in call.args.kw for name in arguments):
            _tell(interp, told)


def _used(interp: Interp, name: str) -> None:
    told = interp.kb.inferred(name)
    if told is not None:
        _tell(interp, told)


def _tell(interp: Interp, told: InferredEntry) -> None:
    interp.tell_releases(({told.library: told.version}, told.implies))
