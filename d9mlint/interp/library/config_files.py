"""Configuration files next to the code: YAML and JSON read by a literal path, and hydra's defaults list."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from d9mlint.base.paths import boundary, is_inside, read_limited
from d9mlint.base.yaml_limits import load_yaml
from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp


def config_value(data: Any, label: str, prefix: str = "") -> v.Value:
    """Plain data as abstract values; leaves are options named by their dotted key."""
    if isinstance(data, dict):
        return v.Mapping(
            {str(k): config_value(x, label, f"{prefix}{k}.") for k, x in data.items()}, attributes=True
        )
    if isinstance(data, list):
        return v.Items("l", [config_value(x, label, f"{prefix}{i}.") for i, x in enumerate(data)])
    if isinstance(data, str) and "${" in data:
        return v.UNKNOWN
    if data is None or isinstance(data, (bool, int, float, str)):
        return v.Lit(data, prefix.rstrip("."))
    return v.UNKNOWN


def parse_file(path: str) -> Any:
    """The content of a YAML or JSON file, or None when it cannot be read as such."""
    try:
        text = read_limited(path).decode("utf-8")
    except (OSError, UnicodeDecodeError):
        return None
    try:
        if path.endswith(".json"):
            return json.loads(text)
        return load_yaml(text)
    except Exception:
        # Any malformed configuration is simply not known; it is not ours to report.
        return None


def load_literal(interp: Interp, path: str) -> Any:
    """A configuration file by a path as written in the code: next to the entry point, the file, or the root."""
    if not path.endswith((".yaml", ".yml", ".json")):
        return None
    bases = [interp.entry_directory, interp.frame.file.directory, interp.modules.root]
    for base in dict.fromkeys(b for b in bases if b):
        full = os.path.normpath(os.path.join(base, path))
        if os.path.isfile(full) and is_inside(full, boundary(interp.modules.root)):
            interp.config_files.add(full)
            return parse_file(full)
    return None


def hydra_config(interp: Interp, func: v.Func, args: v.Args) -> v.Value:
    """The configuration that ``@hydra.main(config_path=..., config_name=...)`` composes by default."""
    path, name = args.get("config_path", 0), args.get("config_name", 1)
    if not isinstance(name, v.Lit) or not isinstance(name.value, str):
        return v.UNKNOWN
    relative = path.value if isinstance(path, v.Lit) and isinstance(path.value, str) else ""
    base = os.path.normpath(os.path.join(func.file.directory, relative))
    data = _compose(interp, base, name.value, 0)
    return v.UNKNOWN if data is None else config_value(data, name.value)


def composed(interp: Interp, base: str, name: str, overrides: list[str]) -> v.Value:
    """The configuration that ``hydra.compose`` gives with overrides as they are written on the command line."""
    groups: dict[str, str] = {}
    values: list[tuple[str, str]] = []
    for override in overrides:
        key, equals, value = override.lstrip("+~").partition("=")
        if equals and os.path.isdir(os.path.join(base, key)):
            groups[key] = value
        elif equals:
            values.append((key, value))
    data = _compose(interp, base, name, 0, groups)
    if not isinstance(data, dict):
        return v.UNKNOWN
    for key, value in values:
        into = data
        *above, last = key.split(".")
        for part in above:
            inner = into.setdefault(part, {})
            if not isinstance(inner, dict):
                break
            into = inner
        else:
            try:
                into[last] = load_yaml(value)
            except Exception:
                # Hydra's own grammar is wider than YAML: what it means is not known then.
                into[last] = "${" + value
    return config_value(data, name)


def _compose(
    interp: Interp, base: str, name: str, depth: int, choices: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """A hydra config with its ``defaults`` list merged in order (``_self_`` where it stands, else last);
    ``choices`` replace those of the list."""
    full = os.path.join(base, name if name.endswith((".yaml", ".yml")) else name + ".yaml")
    if depth > 8 or not os.path.isfile(full) or not is_inside(full, boundary(interp.modules.root)):
        return None
    interp.config_files.add(full)
    own = parse_file(full)
    if not isinstance(own, dict):
        return None
    defaults = own.pop("defaults", None)
    result: dict[str, Any] = {}
    merged_self = False
    for item in defaults if isinstance(defaults, list) else []:
        if item == "_self_":
            _merge(result, own)
            merged_self = True
        elif isinstance(item, str):
            part = _compose(interp, base, item, depth + 1)
            if isinstance(part, dict):
                _merge(result, part)
        elif isinstance(item, dict):
            for group, choice in item.items():
                group = str(group).replace("optional ", "").replace("override ", "")
                choice = choices.get(group, choice)
                if not isinstance(choice, str) or group.startswith("hydra/"):
                    continue
                part = _compose(interp, os.path.join(base, group), choice, depth + 1)
                if isinstance(part, dict):
                    package = group.partition("@")[2] or group
                    target = result
                    for key in package.split("/"):
                        target = target.setdefault(key, {})
                        if not isinstance(target, dict):
                            break
                    else:
                        _merge(target, part)
    if not merged_self:
        _merge(result, own)
    return result


def _merge(into: dict[str, Any], other: dict[str, Any]) -> None:
    for key, value in other.items():
        if isinstance(value, dict) and isinstance(into.get(key), dict):
            _merge(into[key], value)
        else:
            into[key] = value
