"""What decides from outside what a program does: options, environment variables, and settings of configurations."""

from __future__ import annotations

A_GPU = "a GPU"
"""Stands for an option where whether there is a GPU decides."""
GPU_TEST = "the test for a GPU"
"""What a message calls it."""
_OR = " or "
_AND = " and "
_MOST = 3
"""So many options are named together at most."""


def either(option: str, other: str) -> str:
    """One of two options, as one name."""
    known = dict.fromkeys((*option.split(_OR), *other.split(_OR)))
    return _OR.join(known) if len(known) <= _MOST else option


def both(option: str, other: str) -> str:
    """Two options that have to be given together, as one name."""
    known = dict.fromkeys((*all_of(option), *all_of(other)))
    return _AND.join(known) if len(known) <= _MOST else option


def all_of(option: str) -> list[str]:
    """The options that have to be given together; each may be one of several."""
    return option.split(_AND)


def each_of(option: str) -> list[str]:
    """All options that a name stands for."""
    return [one for part in all_of(option) for one in part.split(_OR)]


def quoted(option: str) -> str:
    """An option, or several of which one or all count, as a message names it."""
    return _AND.join(_OR.join(map(_quoted, part.split(_OR))) for part in all_of(option))


def _quoted(option: str) -> str:
    return GPU_TEST if option == A_GPU else f"`{option}`"


def given_in_words(option: str) -> str:
    """That an option is given, in words. An environment variable is set, a part of a configuration chosen, and what a
    configuration holds has a value already: a file or a class gives it."""
    if option == A_GPU:
        return f"{GPU_TEST} gives another result"
    names, are = quoted(option), "are" if _AND in option else "is"
    if option.startswith("-"):
        return f"{names} {are} given"
    if is_choice(option):
        return f"{names} {are} chosen"
    return f"{names} {are} set" if option.startswith("$") else f"{names} {are} set to another value"


def is_choice(option: str) -> bool:
    """Whether an option is what the command line says to choose a part of a configuration: ``trainer=cuda``."""
    return "=" in option and not option.startswith(("-", "$"))


def giving_help(option: str) -> str:
    """What to do so that an option has another value than by default."""
    return f"{'pass' if option.startswith('-') or is_choice(option) else 'set'} {quoted(option)}"
