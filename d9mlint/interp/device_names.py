"""Names of devices, and those of what is used together."""

from __future__ import annotations

from collections.abc import Collection

from d9mlint.base.options import A_GPU, either

ACCELERATORS = ("cuda", "xpu", "mps")
DEVICES = ("cpu", *ACCELERATORS)


def given_option(option: str) -> str:
    """The option that a person gives to the program; whether there is a GPU is none."""
    return "" if option == A_GPU else option


def either_given(option: str, other: str) -> str:
    """Two options, one of which has to be given; that there is a GPU is none."""
    return either(option, other) if given_option(option) and given_option(other) else option


_BY_DEFAULT = "cpu by the default of "


def by_default(option: str) -> str:
    """The device of what is on the CPU unless an option of the program says otherwise. It is none of ``DEVICES``: what
    is only known to be there may be on an accelerator too."""
    return _BY_DEFAULT + option


def selecting_option(device: str) -> str:
    """The option whose default is all that puts something on the CPU, or an empty string."""
    return device[len(_BY_DEFAULT) :] if device.startswith(_BY_DEFAULT) else ""


def together(found: Collection[str]) -> str:
    """The device of what is used together: an accelerator before one that an option selects, and that before the CPU."""
    for wanted in (ACCELERATORS.__contains__, selecting_option):
        known = [one for one in found if wanted(one)]
        if known:
            return min(known)
    return "cpu" if "cpu" in found else ""


def common(one: str, other: str) -> str:
    """The device of what is on one of two."""
    if one == other:
        return one
    either = sorted({one, other} - {"cpu"})
    return either[0] if len(either) == 1 and selecting_option(either[0]) else ""
