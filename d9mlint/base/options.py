"""What decides from outside what a program does: options, environment variables, and settings of configurations."""

from __future__ import annotations

_OR = " or "
_MOST = 3
"""So many options are named together at most."""


def either(option: str, other: str) -> str:
    """One of two options, as one name."""
    known = dict.fromkeys((*option.split(_OR), *other.split(_OR)))
    return _OR.join(known) if len(known) <= _MOST else option


def quoted(option: str) -> str:
    """An option, or one of several, as a message names it."""
    return _OR.join(f"`{one}`" for one in option.split(_OR))


def given_in_words(option: str) -> str:
    """That an option is given, in words. An environment variable is set, and what a configuration holds has a value
    already: a file or a class gives it."""
    names = quoted(option)
    if option.startswith("-"):
        return f"{names} is given"
    return f"{names} is set" if option.startswith("$") else f"{names} is set to another value"


def giving_help(option: str) -> str:
    """What to do so that an option has another value than by default."""
    return f"{'pass' if option.startswith('-') else 'set'} {quoted(option)}"
