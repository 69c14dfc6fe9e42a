"""A 64-bit digest of bytes on the host. Standard library only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence


def digest_bytes(data: bytes) -> int:
    """The digest of some bytes."""
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")


def combine(digests: Sequence[int]) -> int:
    """One digest of several, in this order."""
    if len(digests) == 1:
        return digests[0]
    return digest_bytes(b"".join(d.to_bytes(8, "little") for d in digests))
