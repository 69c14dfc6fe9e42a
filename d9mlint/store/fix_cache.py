"""The cache of fixes: after an edit only those are built again that read what has changed.

A fix is kept under its finding, with what was read to build it. The key of the whole cache covers the rest: this
tool, the rules, the targets, the names of all project files.
"""

from __future__ import annotations

import msgspec

from d9mlint.base.known_fix import KnownFix
from d9mlint.store.cache_dir import CacheDir

KEPT = 4
"""How many projects' fixes are kept in one cache directory; the oldest go."""


class _Kept(msgspec.Struct, array_like=True):
    key: str
    # By the digest of the finding.
    fixes: dict[str, KnownFix]


class FixCache:
    """Fixes of one project under one key. Every failure is a miss."""

    def __init__(self, place: CacheDir, key: str) -> None:
        self._place = place
        self._key = key
        self._name = f"fixes-{key}.bin"
        self._known = self._read()

    @property
    def known(self) -> dict[str, KnownFix]:
        """What the last run has kept, by the digests of the findings."""
        return self._known

    def keep(self, fixes: dict[str, KnownFix]) -> None:
        """Keep these and no others."""
        if fixes == self._known:
            return
        self._known = fixes
        self._place.write_typed(self._name, _Kept(self._key, fixes), KEPT)

    def _read(self) -> dict[str, KnownFix]:
        kept = self._place.read_typed(self._name, _Kept)
        return kept.fixes if kept is not None and kept.key == self._key else {}
