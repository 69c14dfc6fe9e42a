"""The cache of single analysis runs: after an edit only the runs that read the edited code are made again.

A report is kept under what it read: the functions whose code its run went through (a module's own statements are one
of them), the configuration files that it opened, and the names of all project files (imports are looked up among
them). Where code that it read has only moved, so do the places in it. The key of the whole cache covers the rest: this
tool, the rules, the targets, the device.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from d9mlint.base.entry_report import EntryReport
from d9mlint.ir.edited import Edited, edited
from d9mlint.ir.nodes import FileFacts
from d9mlint.store.cache_dir import CacheDir
from d9mlint.store.moved import after_edits
from d9mlint.store.results import file_digest

KEPT = 4
"""How many projects' reports are kept in one cache directory, with a file for each part; the oldest go."""

INTERVAL = 30.0
"""Seconds after which the reports that a run has made are written while it goes on."""

SHARE = 50
"""Writing them takes at most this part of a run: a fiftieth."""


class KnownFile(NamedTuple):
    """A file of the project: its path, a digest of what a run sees of it, and its facts."""

    path: str
    code: str
    facts: FileFacts


class _State(msgspec.Struct, array_like=True, frozen=True):
    """A file when the reports were made: its path, digests of what a run saw of it and of all that is in it."""

    path: str
    code: str
    digest: str


class _Kept(msgspec.Struct, array_like=True):
    key: str
    # The project's files in their order: reports mean them by their places.
    files: list[_State]
    configs: dict[str, str]
    # By entry point, or by module and its reached functions.
    reports: dict[str, EntryReport]


class EntryCache:
    """Reports of one project under one key. Every failure is a miss.

    ``facts_of`` gives the facts of an earlier state of a file by its digest, where they are still known. ``parts`` are
    the project's parts with settings or targets that differ: each has a cache."""

    def __init__(
        self,
        place: CacheDir,
        key: str,
        files: Sequence[KnownFile],
        facts_of: Callable[[str], FileFacts | None],
        parts: int = 1,
    ) -> None:
        self._place = place
        self._most = KEPT * parts
        self._name = f"entries-{key}.bin"
        self._key = key
        self._files = files
        self._facts_of = facts_of
        self._old = self._read()
        old = self._old
        before = old.files if old is not None else []
        self._changed = {
            index
            for index, file in enumerate(files)
            if index >= len(before) or (before[index].path, before[index].code) != (file.path, file.code)
        }
        self._edits: dict[int, Edited | None] = {}
        self._configs = {p: d for p, d in old.configs.items() if file_digest(p) == d} if old else {}
        self._kept: dict[str, EntryReport] = {}
        self.made = 0
        self._written = time.monotonic()
        self._took = 0.0

    def get(self, name: str) -> EntryReport | None:
        """The report of a run that would do the same again."""
        report = self._old.reports.get(name) if self._old is not None else None
        if report is None or any(path not in self._configs for path in report.config_files):
            return None
        entered = self._changed & report.functions_entered().keys() if self._changed else set()
        edits = {index: (self._files[index].path, self._edit(index)) for index in entered}
        report = after_edits(report, edits)
        if report is None:
            return None
        if edits:
            self.made += 1
        self._kept[name] = report
        return report

    def _edit(self, index: int) -> Edited | None:
        """What was changed in a file since its reports were made; None where that is not known."""
        if index not in self._edits:
            before, now = self._old.files if self._old is not None else [], self._files[index]
            same = index < len(before) and before[index].path == now.path
            facts = self._facts_of(before[index].digest) if same else None
            self._edits[index] = edited(facts, now.facts) if facts is not None else None
        return self._edits[index]

    def put(self, name: str, report: EntryReport) -> None:
        """Keep a report. From time to time what is kept is written: a run that does not come to its end need not
        begin anew."""
        self.made += 1
        if not report.failure:
            self._kept[name] = report
        begun = time.monotonic()
        if begun - self._written > max(INTERVAL, SHARE * self._took):
            self.write(finished=False)
            self._written = time.monotonic()
            self._took = self._written - begun

    def write(self, *, finished: bool = True) -> None:
        """Write what was kept. Until a run is ``finished``, it has not yet asked for all that is known."""
        if not self.made:
            return
        if not finished and self._old is not None:
            for name in self._old.reports.keys() - self._kept.keys():
                self.get(name)
        configs = {path: file_digest(path) for r in self._kept.values() for path in r.config_files}
        files = [_State(file.path, file.code, file.facts.digest) for file in self._files]
        kept = _Kept(self._key, files, configs, self._kept)
        self._place.write_typed(self._name, kept, self._most)

    def _read(self) -> _Kept | None:
        kept = self._place.read_typed(self._name, _Kept)
        return kept if kept is not None and kept.key == self._key else None
