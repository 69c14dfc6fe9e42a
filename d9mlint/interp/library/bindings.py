"""Configurations that bind parameters of functions to values by their names (``train.batch_size = 32``): of gin.

What the files of the project bind stays known as the text of the values, in one mode of the state: a function whose
parameters may be bound, and which is called without them, is run again where another file was read before.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.base.paths import read_limited
from d9mlint.interp import values as v
from d9mlint.interp.argtests import plain
from d9mlint.interp.library.config_files import config_value, found_in
from d9mlint.interp.state import Setting

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

BOUND = "bound parameters"
"""The mode that holds the bindings."""
_BINDING = re.compile(r"^([A-Za-z_][\w./]*)\s*=\s*(.*)$")
_INCLUDE = re.compile(r"^include\s+(['\"])(.+)\1\s*$")
_MACRO = re.compile(r"^%([A-Za-z_][\w.]*)$")
_REFERENCE = re.compile(r"^@(?:[\w.]+/)*(?:\w+\.)*(\w+)$")
"""Names a function or class whose parameters may be bound: what is bound is the function itself."""
_NAMED = "functions whose parameters may be bound"
"""Before the names of such, among the library attributes."""
_MOST_LINES = 200
"""A value has no more lines."""
_MOST_FILES = 20


def bind(interp: Interp, role: RoleEntry, args: v.Args, node: Any) -> None:
    """A call reads files with bindings, or is given the bindings themselves."""
    given = _texts(args.get(role.arg, role.pos))
    if "text" in role.more:
        found = dict(_bindings("\n".join(given)))
    else:
        found = {}
        for path in given:
            found |= _of_file(interp, path, [])
        for name in role.more:
            found |= dict(_bindings("\n".join(_texts(args.get(name, 1)))))
    if not found:
        return
    interp.state.modes[BOUND] = Setting(tuple(sorted((_known(interp) | found).items())), interp.here(node))


def _known(interp: Interp) -> dict[str, str]:
    """What is bound so far; nothing where paths meet that have bound different values."""
    setting = interp.state.modes.get(BOUND)
    return dict(setting.value) if setting is not None and isinstance(setting.value, tuple) else {}


def bound(interp: Interp, func: v.Func, param: str) -> v.Value | None:
    """What a parameter of a function is bound to that a call does not give."""
    name = _name(interp, func)
    if not name:
        return None
    known = _known(interp)
    key = f"{name}.{param}"
    text = known.get(key)
    for _ in range(_MOST_FILES):
        macro = _MACRO.match(text) if text is not None else None
        if macro is None:
            break
        text = known.get(macro[1], known.get(f"{macro[1]}.value"))
    return None if text is None else _value(interp, text, key)


def keep(interp: Interp, decorator: v.Value, value: v.Value) -> None:
    """A function or class is decorated, which bindings may then name."""
    own = value.fn.name if isinstance(value, v.Func) else value.cls.name if isinstance(value, v.Cls) else ""
    name = _name_by(interp, decorator, own) if own else ""
    if name:
        interp.set_library_attribute(f"{_NAMED}.{name}", value)


def _value(interp: Interp, text: str, label: str) -> v.Value:
    named = _REFERENCE.match(text)
    if named is not None:
        return interp.library_attribute(f"{_NAMED}.{named[1]}") or v.UNKNOWN
    try:
        data = ast.literal_eval(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        # What a function gives, or a reference or macro in a collection.
        return v.UNKNOWN
    return config_value(_as_lists(data), label, f"{label}.")


def _as_lists(data: Any) -> Any:
    if isinstance(data, (list, tuple)):
        return [_as_lists(one) for one in data]
    if isinstance(data, dict):
        return {key: _as_lists(one) for key, one in data.items()}
    return data


def _name(interp: Interp, func: v.Func) -> str:
    """The name under which parameters of a function, or of a class by its constructor, are bound; empty where they are
    not."""
    decorated, own = func.decorated, func.fn.name
    if isinstance(func.receiver, v.Inst) and own == "__init__":
        cls = func.receiver.cls
        decorated, own = cls.decorated, cls.cls.name
    return next(filter(None, (_name_by(interp, one, own) for one in decorated)), "")


def _name_by(interp: Interp, decorator: v.Value, own: str) -> str:
    """The name that a decorator gives, under which parameters are bound; empty for other decorators."""
    api = decorator.name if isinstance(decorator, v.Ext) else getattr(decorator, "api", "")
    if not api or interp.kb.role(interp.kb.canonical(api), "takes-bindings") is None:
        return ""
    named = decorator.args.get("name_or_fn", 0) if isinstance(decorator, v.Obj) else None
    return named.value if isinstance(named, v.Lit) and isinstance(named.value, str) else own


def _texts(value: v.Value | None) -> list[str]:
    """A text, or the texts of a list, as far as they are known."""
    known = plain(value) if value is not None else None
    parts = known if isinstance(known, (list, tuple)) else [known]
    return [one for one in parts if isinstance(one, str)]


def _of_file(interp: Interp, path: str, inside: list[str]) -> dict[str, str]:
    """The bindings of a file, beside the program, in the project's root or beside the file that includes it."""
    if len(inside) > _MOST_FILES:
        return {}
    bases = [interp.entry_directory, interp.modules.root, *(os.path.dirname(one) for one in inside)]
    full = found_in(interp, path, bases)
    if full is None or full in inside:
        return {}
    try:
        text = read_limited(full).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    found: dict[str, str] = {}
    for name, value in _bindings(text):
        found |= {name: value} if name else _of_file(interp, value, [*inside, full])
    return found


def _bindings(text: str) -> Iterator[tuple[str, str]]:
    """The names and values in a text, without scopes and modules; without a name, the files that it includes."""
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        line = lines[at].strip()
        at += 1
        included = _INCLUDE.match(line)
        if included is not None:
            yield "", included[2]
        found = _BINDING.match(line)
        if found is None:
            continue
        name, value = found[1].rpartition("/")[2], found[2].rstrip("\\").strip()
        for end in range(at, min(at + _MOST_LINES, len(lines) + 1)):
            whole = "\n".join([value, *lines[at:end]])
            if _is_whole(whole):
                value, at = whole, end
                break
        if "/" not in found[1]:
            # In a scope a parameter may have another value.
            yield (
                ".".join(name.split(".")[-2:]),
                value.partition(" #")[0].strip() if "\n" not in value else value,
            )


def _is_whole(value: str) -> bool:
    if value.startswith(("@", "%")):
        return True
    try:
        ast.parse(f"({value}\n)", mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return bool(value.strip())
