"""For which release of a library a program was written: its pins say so, or the names that it uses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.knowledge.versions import matches

if TYPE_CHECKING:
    from d9mlint.config.targets import Target
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp

_UNPINNED = ("installed", "newest known", "not known")
_RENAMED = {"tensorflow.": "tf."}


def register(hooks: Hooks) -> None:
    """Listen to names that later releases do not have."""

    def called(interp: Interp, call: CallEvent) -> None:
        _used(interp, call.api)

    def imported(interp: Interp, name: str, node: Any) -> None:
        for old, new in _RENAMED.items():
            if name.startswith(old):
                name = new + name[len(old) :]
        _used(interp, f"{name}.")

    hooks.any_call.append(called)
    hooks.imports.append(imported)


def _used(interp: Interp, name: str) -> None:
    told = interp.kb.inferred(name)
    if told is not None and ("release", told.library) not in interp.notes:
        interp.notes["release", told.library] = told.version


def release(interp: Interp, library: str) -> str:
    """The release that the program was written for, as far as its names tell; "" where something pins it."""
    if interp.targets is None or interp.targets.version(library).source not in _UNPINNED:
        return ""
    return str(interp.notes.get(("release", library)) or "")


def named(interp: Interp, library: str) -> tuple[str, str]:
    """The version of a library to name, and how it is known."""
    told = release(interp, library)
    if told:
        return told, "inferred from the names that the program uses"
    assert interp.targets is not None
    target: Target = interp.targets.version(library)
    return target.version, target.source


def is_release(interp: Interp, library: str, spec: str) -> bool:
    """Whether the release to judge by is in a range."""
    told = release(interp, library)
    return matches(spec, told) if told else interp.kb_matches(library, spec)
