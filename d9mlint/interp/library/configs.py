"""Configurations that a program builds of several: classes of fields, mappings, files and the command line.

Which functions of libraries do that is in ``rules/knowledge/roles.yaml``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.yaml_limits import load_yaml
from d9mlint.interp import values as v
from d9mlint.interp.data import are_classes
from d9mlint.interp.library.builtins import copied_instance
from d9mlint.interp.library.options import as_options, has_fields, option_params, parsed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import Role, RoleEntry


def built(interp: Interp, roles: Mapping[Role, RoleEntry], args: v.Args, node: Any) -> v.Value | None:
    """The configuration that a function of a library gives, None where it gives none that is known."""
    if (role := roles.get("parses-class")) is not None:
        return _parsed_class(interp, role, args, node)
    if "merges-configurations" in roles:
        return _merged(interp, args, node)
    if "reads-command-line" in roles:
        return _command_line(args)
    return _created(interp, args, node) if "takes-configuration" in roles else None


def _parsed_class(interp: Interp, role: RoleEntry, args: v.Args, node: Any) -> v.Value | None:
    """``tyro.cli(Args)``, ``pyrallis.parse(config_class=Args)``, ``OmegaConf.structured(Args)``: an object with the defaults
    of its fields, or with those that the program gives: ``tyro.cli(Args, default=Args(seed=3))``."""
    default = args.kw.get(role.arg) if role.arg else None
    for value in (default, *args.values()):
        if isinstance(value, v.Inst):
            made = copied_instance(interp, value)
            as_options(made)
            return made
        if value is not None and are_classes((value,)):
            if default is not None and not v.is_none(default):
                return v.UNKNOWN
            return parsed(interp, value, v.NO_ARGS, node)
        if isinstance(value, v.Func):
            return interp.call(value, option_params(interp, value), node)
    return None


def _created(interp: Interp, args: v.Args, node: Any) -> v.Value | None:
    """``OmegaConf.create({"depth": 3})``, ``EasyDict(depth=3)``."""
    first: v.Value | None = v.Mapping({}, attributes=True)
    if args.pos:
        first = args.pos[0] if isinstance(args.pos[0], v.Items) else _taken(interp, args.pos[0], node)
    if not args.kw and not args.dstar:
        return first or _anything()
    named = _taken(interp, v.Mapping(dict(args.kw), args.dstar), node)
    if not isinstance(named, v.Mapping):
        return None
    return _over(first if isinstance(first, v.Mapping | v.Inst) else _anything(), named)


def _command_line(args: v.Args) -> v.Value:
    """``OmegaConf.from_cli()``: anything; ``OmegaConf.from_dotlist(["model.depth=3"])``: what the texts say."""
    given = args.pos[0] if args.pos else None
    whole = isinstance(given, v.Items) and not given.open
    made = v.Mapping({}, open=not whole, attributes=True)
    for one in given.elts if isinstance(given, v.Items) else ():
        if not isinstance(one, v.Lit) or not isinstance(one.value, str):
            made.open = True
            continue
        key, _, text = one.value.partition("=")
        into = made
        *above, last = key.split(".")
        for part in above:
            inner = into.items.get(part)
            if not isinstance(inner, v.Mapping):
                inner = into.items[part] = v.Mapping({}, attributes=True)
            into = inner
        into.items[last] = _of_text(text)
    return made


def _of_text(text: str) -> v.Value:
    try:
        return _plain(load_yaml(text))
    except Exception:
        # Its grammar is wider than YAML: what it means is not known then.
        return v.UNKNOWN


def _plain(data: Any) -> v.Value:
    if isinstance(data, dict):
        return v.Mapping({key: _plain(one) for key, one in data.items()}, attributes=True)
    if isinstance(data, list):
        return v.Items("l", [_plain(one) for one in data])
    interpolated = isinstance(data, str) and "${" in data
    return (
        v.Lit(data) if isinstance(data, bool | int | float | str | None) and not interpolated else v.UNKNOWN
    )


def _taken(interp: Interp, value: v.Value, node: Any) -> v.Value | None:
    """What a configuration has that is made of something; None where nothing is known of that."""
    if isinstance(value, v.Mapping):
        items = {key: _taken(interp, one, node) or one for key, one in value.items.items()}
        made = v.Mapping(items, value.open, attributes=True)
        made.option, made.files = value.option, value.files
        return made
    if isinstance(value, v.Cls) and has_fields(value):
        return parsed(interp, value, v.NO_ARGS, node)
    if isinstance(value, v.Inst) and has_fields(value.cls):
        return copied_instance(interp, value)
    if isinstance(value, v.Lit) and isinstance(value.value, str):
        found = _of_text(value.value)
        return found if isinstance(found, v.Mapping | v.Items) else None
    return None


def _said(value: v.Mapping | v.Inst) -> dict[Any, v.Value]:
    """What a configuration holds, by its keys."""
    if isinstance(value, v.Mapping):
        return dict(value.items)
    names = [name for cls in reversed(value.cls.mro()) for name in cls.fields]
    return {name: value.attrs.get(name, v.UNKNOWN) for name in names}


def _merged(interp: Interp, args: v.Args, node: Any) -> v.Value | None:
    """``OmegaConf.merge(defaults, file, command_line)``: the last one that has a key says what it holds."""
    first, *others = [_part(interp, value, node) for value in args.pos] or [None]
    if first is None and not any(isinstance(one, v.Mapping) and one.items for one in others):
        return None
    made: v.Mapping | v.Inst = _anything() if first is None else first
    for one in others:
        made = _over(made, one or _anything())
    return _over(made, _anything()) if args.star else made


def _part(interp: Interp, value: v.Value, node: Any) -> v.Mapping | v.Inst | None:
    found = _taken(interp, value, node) if isinstance(value, v.Mapping | v.Cls | v.Inst) else None
    return found if isinstance(found, v.Mapping | v.Inst) else None


def _anything() -> v.Mapping:
    return v.Mapping({}, open=True, attributes=True)


def _over(below: v.Mapping | v.Inst, above: v.Mapping | v.Inst, prefix: str = "") -> v.Mapping | v.Inst:
    """One configuration with what a later one says. What that may say besides makes defaults of what was said before."""
    if isinstance(above, v.Inst) and isinstance(below, v.Inst) and above.cls is below.cls:
        return above
    if isinstance(above, v.Mapping) and above.open:
        _as_defaults(below, prefix)
    into = below.attrs if isinstance(below, v.Inst) else below.items
    for key, value in _said(above).items():
        known = into.get(key)
        if isinstance(known, v.Mapping | v.Inst) and isinstance(value, v.Mapping | v.Inst):
            value = _over(known, value, f"{prefix}{key}.")
        into[key] = value
    if isinstance(below, v.Mapping) and isinstance(above, v.Mapping) and above.open:
        below.open = True
    return below


def _as_defaults(value: v.Mapping | v.Inst, prefix: str) -> None:
    """What the parts of a configuration hold may be replaced by the command line, or a file."""
    if isinstance(value, v.Inst):
        as_options(value)
        return
    for key, one in list(value.items.items()):
        if isinstance(one, v.Lit) and not one.option:
            value.items[key] = v.Lit(one.value, f"{prefix}{key}")
        elif isinstance(one, v.Mapping | v.Inst):
            _as_defaults(one, f"{prefix}{key}.")
