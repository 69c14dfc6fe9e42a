"""Files of settings in sections: ``parser = ConfigParser(); parser.read("config.ini"); parser.getint("train", "seed")``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from d9mlint.interp import values as v
from d9mlint.interp.library.given_files import SECTIONS, look_up
from d9mlint.interp.library.options import load_config

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_LIBRARY: Final = "configparser"
_SWITCHES: Final = {
    **dict.fromkeys(("1", "yes", "true", "on"), True),
    **dict.fromkeys(("0", "no", "false", "off"), False),
}


def _read(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``parser.read("config.ini")`` and ``parser.read_file(open("config.ini"))``."""
    if not isinstance(owner, v.Obj):
        return None
    given = args.pos[0] if args.pos else next(iter(args.kw.values()), None)
    if isinstance(given, v.Items) and not given.open and len(given.elts) == 1:
        given = given.elts[0]
    found = load_config(interp, _LIBRARY, v.Args([given]), node) if given is not None else None
    if isinstance(found, v.Mapping) and SECTIONS not in owner.attrs:
        for one in (found, *found.items.values()):
            if isinstance(one, v.Mapping):
                # More may be set, and the file may have changed.
                one.open = True
        owner.attrs[SECTIONS] = found
    else:
        # What several files have is not put together.
        owner.attrs[SECTIONS] = v.UNKNOWN
    return None


def _item(held: v.Mapping, key: str) -> v.Value | None:
    """What a file has under a key, or one of several files."""
    return held.items.get(key) or (look_up(held, key) if held.files[0] else None)


def _converted(convert: Callable[[str], Any]) -> Callable[..., v.Value | None]:
    """A method that gives a setting, as a text or something else."""

    def get(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
        held = owner.attrs.get(SECTIONS) if isinstance(owner, v.Obj) else None
        section, option = args.get("section", 0), args.get("option", 1)
        if not isinstance(held, v.Mapping) or not isinstance(section, v.Lit) or not isinstance(option, v.Lit):
            return None
        settings = _item(held, str(section.value))
        found = _item(settings, str(option.value).lower()) if isinstance(settings, v.Mapping) else None
        if found is None:
            return args.kw.get("fallback")
        # What is switched on or off in a file that the program always reads is no option.
        made = [_as(convert, one, constant=not held.files[0]) for one in v.alternatives(found)]
        return v.join(made) if v.UNKNOWN not in made else None

    return get


def _as(convert: Callable[[str], Any], value: v.Value, constant: bool) -> v.Value:
    if not isinstance(value, v.Lit) or not isinstance(value.value, str):
        return v.UNKNOWN
    try:
        made = convert(value.value)
    except (KeyError, ValueError):
        return v.UNKNOWN
    return v.Lit(made, "" if constant and isinstance(made, bool) else value.option)


_METHODS: Final = {
    "read": _read,
    "read_file": _read,
    "get": _converted(str),
    "getint": _converted(int),
    "getfloat": _converted(float),
    "getboolean": _converted(lambda text: _SWITCHES[text.lower()]),
}
SETTINGS_METHODS: Final = {
    f"{_LIBRARY}.{kind}.{name}": model
    for kind in ("ConfigParser", "RawConfigParser", "SafeConfigParser")
    for name, model in _METHODS.items()
}
