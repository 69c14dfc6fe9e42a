"""When values that meet at one address make a race likely to show. No framework is imported here.

Two values added to zero have one sum in any order; a third one, or a start other than zero, is needed for the order
to show. Of values that are stored, two suffice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

FEWEST_ADDRESSES = 64
"""Contended addresses that make a race likely to show in some run."""
MANY = 64
"""Addends that make it likely at a single address."""


def summary(race: Mapping[str, Any], addends: Any) -> dict[str, int]:
    """``most``: addends of the address with the most; ``addresses``: how many have enough for the order to show.
    ``addends`` is an array of any library that has the addends of each address."""
    enough = 2 if race["kind"] == "store" or race["onto"] == "values" else 3
    return {"most": int(addends.max()), "addresses": int((addends >= enough).sum()), "enough": enough}


def provokes(found: Mapping[str, int]) -> bool:
    """Whether a race with this contention is likely to show: many contended addresses, or many addends at one."""
    return found["addresses"] >= FEWEST_ADDRESSES or (found["addresses"] > 0 and found["most"] >= MANY)
