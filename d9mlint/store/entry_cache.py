"""The cache of single analysis runs: after an edit only the runs that read the edited file are made again.

A report is kept under what it read: the files that its run went through, the configuration files that it
opened, and the names of all project files (imports are looked up among them). The key of the whole cache
covers the rest: this tool, the rules, the targets, the device.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from d9mlint.base.entry_report import EntryReport
from d9mlint.store.cache_dir import CacheDir
from d9mlint.store.results import file_digest

KEPT = 4
"""How many projects' reports are kept in one cache directory; the oldest go."""


class _Kept(msgspec.Struct, array_like=True):
    key: str
    # Digests of the project's files in their order, as runs see them, when the reports were made.
    digests: list[str]
    configs: dict[str, str]
    # By entry point, or by module and its reached functions.
    reports: dict[str, EntryReport]


class EntryCache:
    """Reports of one project under one key. Every failure is a miss."""

    def __init__(self, place: CacheDir, key: str, digests: Sequence[str]) -> None:
        self._place = place
        self._name = f"entries-{key}.bin"
        self._key = key
        self._digests = list(digests)
        self._old = self._read()
        old = self._old
        self._changed = {
            index
            for index, digest in enumerate(self._digests)
            if old is None or index >= len(old.digests) or old.digests[index] != digest
        }
        self._configs = {p: d for p, d in old.configs.items() if file_digest(p) == d} if old else {}
        self._kept: dict[str, EntryReport] = {}
        self.made = 0

    def get(self, name: str) -> EntryReport | None:
        """The report of a run that would do the same again."""
        report = self._old.reports.get(name) if self._old is not None else None
        if report is None or not self._changed.isdisjoint(report.files):
            return None
        if any(path not in self._configs for path in report.config_files):
            return None
        self._kept[name] = report
        return report

    def put(self, name: str, report: EntryReport) -> None:
        """Keep a report."""
        self.made += 1
        if not report.failure:
            self._kept[name] = report

    def write(self) -> None:
        """Write what was kept; a cache that cannot be written is no reason to fail."""
        if not self.made:
            return
        configs = {path: file_digest(path) for r in self._kept.values() for path in r.config_files}
        kept = _Kept(self._key, self._digests, configs, self._kept)
        try:
            self._place.write_sealed(self._name, msgspec.msgpack.encode(kept))
        except (OSError, TypeError, ValueError):
            return
        for _, old in self._place.files("entries")[:-KEPT]:
            self._place.remove(old)

    def _read(self) -> _Kept | None:
        body = self._place.read_sealed(self._name)
        if body is None:
            return None
        try:
            kept = msgspec.msgpack.decode(body, type=_Kept)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            return None
        return kept if kept.key == self._key else None
