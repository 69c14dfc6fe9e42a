"""YAML of strangers: read only where reading it cannot take time or memory out of proportion.

An alias stands for a whole value, so some hundred bytes can mean billions of values; merge keys copy; a
number in base 60 takes time that grows with the square of its digits. All of it is counted on the events
of the parser, before anything is built.
"""

from __future__ import annotations

import re
from typing import Any

MOST_VALUES = 200_000
"""Values that a document may have, those behind each alias counted every time."""

DEEPEST = 100
"""How deep values may nest; what builds them recurses."""

LONGEST_NUMBER = 300
"""Characters of the longest plain scalar that may be a number or a date."""

MOST_LONG_NUMBERS = 1000
"""Integers that may have more digits than a machine word: their hashes are known to whoever writes them, and a mapping of
keys with equal hashes takes time that grows with the square of their number."""

_LONG = re.compile(r"[-+]?(?:[0-9_:]{19,}|0x[0-9a-fA-F_]{16,}|0b[01_]{61,})")
_NUMERIC = frozenset("+-.:_0123456789abcdefoxABCDEFOX")


class YamlLimitError(ValueError):
    """A document that is not read; the message says why."""


def load_yaml(text: str) -> Any:
    """The value of a YAML document. Raises YamlLimitError or yaml.YAMLError, and ValueError for bad scalars."""
    import yaml

    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    check_yaml(text)
    return yaml.load(text, Loader=loader)


def check_yaml(text: str) -> None:
    """Raises YamlLimitError for a document that would take too much to build, yaml.YAMLError for no YAML."""
    import yaml

    parser: Any = getattr(yaml, "CLoader", yaml.Loader)
    sizes: dict[str, int] = {}
    open_values: list[tuple[str | None, int]] = []  # the anchor of each, and the total where it began
    total = long = 0
    for event in yaml.parse(text, Loader=parser):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            open_values.append((event.anchor, total))
            if len(open_values) > DEEPEST:
                raise YamlLimitError(f"values are nested more than {DEEPEST} levels deep")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            anchor, began = open_values.pop()
            if anchor:
                sizes[anchor] = total - began + 1
        elif isinstance(event, yaml.ScalarEvent):
            if event.anchor:
                sizes[event.anchor] = 1
            if len(event.value) > LONGEST_NUMBER and (event.tag or _NUMERIC.issuperset(event.value)):
                raise YamlLimitError("a number has too many digits")
            long += _LONG.fullmatch(event.value) is not None
            if long > MOST_LONG_NUMBERS:
                raise YamlLimitError(f"it has more than {MOST_LONG_NUMBERS:,} integers of 19 and more digits")
        elif isinstance(event, yaml.AliasEvent):
            if event.anchor not in sizes:
                raise YamlLimitError("an alias stands inside of what it refers to")
            total += sizes[event.anchor]
        else:
            continue
        total += 1
        if total > MOST_VALUES:
            raise YamlLimitError(f"it has more than {MOST_VALUES:,} values with its aliases")
