"""What decides from outside what a program does: options, environment variables, and settings of configurations."""

from __future__ import annotations


def given_in_words(option: str) -> str:
    """That an option is given, in words. An environment variable is set, and what a configuration holds has a value
    already: a file or a class gives it."""
    if option.startswith("-"):
        return f"`{option}` is given"
    return f"`{option}` is set" if option.startswith("$") else f"`{option}` is set to another value"


def giving_help(option: str) -> str:
    """What to do so that an option has another value than by default."""
    return f"{'pass' if option.startswith('-') else 'set'} `{option}`"
