"""What reading a file calls: a library that calls the functions which its files name, behind a text such as ``!apply:``.

Such a file seeds where it names a function that does. Where it is not known which file a program reads, it may be any of
those beside the program, or else of the project.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from d9mlint.base.paths import read_limited
from d9mlint.interp import values as v
from d9mlint.interp.library.config_files import YAML, files_below, found_in
from d9mlint.interp.library.given_files import is_path, stamp
from d9mlint.interp.library.own_paths import literal_path

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RngEntry


def seeding(interp: Interp, entries: tuple[RngEntry, ...], args: v.Args) -> tuple[RngEntry, ...]:
    """Entries of which those that seed what a file names have only the generators that one of the files can seed."""
    kept: list[RngEntry] = []
    for entry in entries:
        files = _files(interp, args) if entry.file_calls else ()
        if not files:
            kept.append(entry)
            continue
        names = {name for one in files for name in _called(one, stamp(one), entry.file_calls)}
        seeds = [one for one in entry.seeds if any(_may_seed(interp, name, one) for name in names)]
        if seeds:
            kept.append(msgspec.structs.replace(entry, seeds=seeds))
    return tuple(kept)


def _files(interp: Interp, args: v.Args) -> tuple[str, ...]:
    """The files that a call may read; none where the project has no such file."""
    first = args.pos[0] if args.pos else None
    if isinstance(first, v.Obj) and not is_path(first) and first.args.pos:
        # A file that is open.
        first = first.args.pos[0]
    path = literal_path(first)
    bases = [interp.entry_directory, interp.frame.file.directory, interp.modules.root]
    if path is not None and (not isinstance(first, v.Lit) or not first.option):
        full = found_in(interp, path, bases)
        return (full,) if full is not None else ()
    for folder in dict.fromkeys((interp.entry_directory, interp.modules.root)):
        found = tuple(files_below(interp, folder, YAML)) if folder else ()
        if found:
            interp.config_files.update(found)
            return found
    return ()


@lru_cache(maxsize=256)
def _called(path: str, stamped: tuple[int, int], before: str) -> frozenset[str]:
    """The functions that a file names behind a text."""
    try:
        text = read_limited(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return frozenset()
    return frozenset(re.findall(rf"{re.escape(before)}([\w.]+)", text))


def _may_seed(interp: Interp, name: str, rng: str) -> bool:
    """Whether a function seeds a generator, or is named like one that does."""
    known = interp.kb.rng(name)
    if known:
        return any(rng in one.seeds for one in known)
    return interp.kb.may_seed(name.rpartition(".")[2], False)
