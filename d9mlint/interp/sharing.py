"""Module bodies that leave no trace are run for one entry point and shared by the others.

A large package is imported by every script of its project. Where the import of one of its modules (with all
that it imports in turn) neither draws, seeds, sets a mode or a variable, nor makes project objects that a
program could change, the names it defines are the same for the next entry point.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.project.modules import ModuleFile


class Imported(NamedTuple):
    """What an import did: the modules it loaded, the libraries it imported, the methods it defined."""

    mod: v.Mod
    loaded: dict[str, v.Mod]
    flags: dict[str, Any]
    methods: dict[str, list[tuple[v.Cls, v.Func]]]
    visited: set[int]


class SharedModules:
    """Imports that later runs of the same program may take over."""

    def __init__(self) -> None:
        self._known: dict[str, Imported] = {}

    def load(self, interp: Interp, file: ModuleFile, name: str) -> v.Mod:
        """The module of a file: taken over from an earlier run, or run now."""
        known = self._known.get(file.path)
        if known is not None and known.mod.name == name and not (known.loaded.keys() & interp.loaded.keys()):
            interp.loaded.update(known.loaded)
            interp.state.flags = {**known.flags, **interp.state.flags}
            for method, found in known.methods.items():
                interp.methods.setdefault(method, []).extend(found)
            interp.visited |= known.visited
            return known.mod
        if known is not None or not _in_package(interp, file):
            return interp.run_file(file, name)
        return self._record(interp, file, name)

    def _record(self, interp: Interp, file: ModuleFile, name: str) -> v.Mod:
        state = interp.state
        before = (dict(state.rng), dict(state.modes), dict(state.env))
        flags = set(state.flags)
        counts = (len(interp.pending), len(interp.flags_registry), len(interp.scratch.get("ops", ())))
        loaded = set(interp.loaded)
        methods = {method: len(found) for method, found in interp.methods.items()}
        visited = set(interp.visited)
        mod = interp.run_file(file, name)
        after = interp.state
        fresh = {path: one for path, one in interp.loaded.items() if path not in loaded}
        added = {flag: site for flag, site in after.flags.items() if flag not in flags}
        quiet = (
            (after.rng, after.modes, after.env) == before
            and all(flag.startswith("import:") for flag in added)
            and counts
            == (len(interp.pending), len(interp.flags_registry), len(interp.scratch.get("ops", ())))
            and all(_is_plain(value) for one in fresh.values() for value in one.env.vars.values())
        )
        if quiet:
            new = {
                method: found[methods.get(method, 0) :]
                for method, found in interp.methods.items()
                if len(found) > methods.get(method, 0)
            }
            self._known[file.path] = Imported(mod, fresh, added, new, interp.visited - visited)
        return mod


def _in_package(interp: Interp, file: ModuleFile) -> bool:
    """Only modules of packages: what a loose script imports hangs on where the program is started."""
    return interp.modules.package_root(file.directory) != file.directory


def _is_plain(value: v.Value) -> bool:
    """Whether a module-level value is nothing that a program is likely to change."""
    return not isinstance(value, v.Inst) and not (isinstance(value, v.Mapping) and value.attributes)
