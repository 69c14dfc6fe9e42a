"""What a rule says about a place."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from d9mlint.base.findings import Confidence, Fix, Severity
    from d9mlint.base.known_calls import KnownCall
    from d9mlint.interp.places import Replay, Where


class Violation(NamedTuple):
    """A violation of the rule ``code`` at a place of a run. Severity and confidence are the rule page's unless given.

    An ``entry_wide`` one is about a whole program: it is none in the run over unreached code. ``subject`` is what it
    is about at this place, so that two of one rule can be distinguished. ``cause`` names the rule and subject of a
    finding with the same cause and remedy: beside that one it is advice. ``raises`` is the text of an op that raises in
    deterministic mode, where it is about one, and ``unchanged`` that of one that the mode leaves as it is. ``unless`` is
    as in a ``Finding``. ``only_with`` are rules of which the same run has a finding that PyTorch's modes may reach, or else
    this one is mere advice, with ``alone`` as a note. ``library`` is what one is about that has no ``op``.
    """

    code: str
    place: Where
    message: str
    help: str
    subject: str = ""
    severity: Severity | None = None
    confidence: Confidence | None = None
    fix: Fix | None = None
    targets: tuple[str, ...] = ()
    op: str = ""
    call: KnownCall | None = None
    entry_wide: bool = False
    remedy: tuple[str, ...] = ()
    cause: tuple[str, ...] = ()
    raises: str = ""
    unchanged: str = ""
    unless: str = ""
    only_with: tuple[str, ...] = ()
    alone: str = ""
    library: str = ""

    def replayed(self, replay: Replay) -> Violation:
        """The same in another run; see ``Where.replayed``."""
        return self._replace(place=self.place.replayed(replay))
