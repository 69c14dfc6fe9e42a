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
    folded = {k.lower(): k for k in sorted(set(known), reverse=True)}
    lower = word.lower()
    if lower in folded:
        return f" Did you mean {folded[lower]}?"
    # A word with a number in it is a code: one with more or fewer digits is another thing, not a slip.
    digits = any(c.isdigit() for c in lower)
    candidates = [k for k in folded if not digits or 0 <= len(k) - len(lower) < 2]
    matches = difflib.get_close_matches(lower, candidates, n=1, cutoff=0.75)
    return f" Did you mean {folded[matches[0]]}?" if matches else ""
