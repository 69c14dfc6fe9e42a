"""What stops the whole job: a wrong request, not a wrong file."""

from __future__ import annotations

from collections.abc import Iterable


class UsageError(Exception):
    """The request cannot be carried out (a missing path, an unknown code, a bad setting): exit code 2."""


LONGEST = 200
"""No known word is near to a longer one, and looking for one would take long."""


def nearest(word: str, known: Iterable[str]) -> str:
    """A clause that names the nearest known word, or an empty string when none is near."""
    import difflib

    if len(word) > LONGEST:
        return ""
    matches = difflib.get_close_matches(word, sorted(set(known)), n=1, cutoff=0.5)
    if not matches:
        folded = {k.lower(): k for k in sorted(set(known), reverse=True)}
        matches = difflib.get_close_matches(word.lower(), list(folded), n=1, cutoff=0.5)
        matches = [folded[m] for m in matches]
    return f" Did you mean {matches[0]}?" if matches else ""
