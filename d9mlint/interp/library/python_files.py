"""Python files that are run by their path: loaded as modules, run as scripts, or read as configurations."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from d9mlint.interp import values as v
from d9mlint.interp.library.options import FLAGS, as_default, load_config
from d9mlint.interp.text import written

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.project.modules import ModuleFile

_MOST_BASES: Final = 8
"""How deeply configurations may be based on others."""
_BASE: Final = "_base_"
"""The variable of a configuration that names those on which it is based."""
_MAKES: Final = "get_config"
"""The function that gives the configuration of a file which a flag names."""


def _module_at(interp: Interp, path: v.Value | None, directory: str = "") -> v.Mod | None:
    """The module of a file of the project by the path that the code gives."""
    file = file_at(interp, path, directory)
    return interp.import_found(interp.modules.found(file), file.stem) if file is not None else None


def file_at(interp: Interp, path: v.Value | None, directory: str = "") -> ModuleFile | None:
    """A Python file of the project by the path that the code gives: from where the program is started, from the file that
    names it, or from the root."""
    if not isinstance(path, v.Lit) or not isinstance(path.value, str) or not path.value.endswith(".py"):
        return None
    bases = (
        [directory]
        if directory
        else [interp.entry_directory, interp.frame.file.directory, interp.modules.root]
    )
    for base in dict.fromkeys(one for one in bases if one):
        full = posixpath.normpath(posixpath.join(base, path.value))
        file = interp.modules.by_path.get(full)
        if file is not None and file is not interp.frame.file:
            return file
    return None


def _run_file(interp: Interp, path: v.Value | None, node: Any) -> v.Mod | None:
    """The module of a file of the project that a call runs."""
    mod = _module_at(interp, path)
    if mod is None and not (isinstance(path, v.Lit) and isinstance(path.value, str)):
        interp.gap("dynamic-call", f"which file `{written(node)}` runs is decided at run time", node)
    return mod


def _load_source(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``imp.load_source("config", "config.py")``."""
    return _run_file(interp, args.get("pathname", 1), node)


def _of_spec(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``importlib.util.module_from_spec(spec)``: its loader is going to run it."""
    spec = args.get("spec", 0)
    return _run_file(interp, spec.args.get("location", 1), node) if isinstance(spec, v.Obj) else None


def _load_module(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``SourceFileLoader("config", "config.py").load_module()``."""
    return _run_file(interp, owner.args.get("path", 1), node) if isinstance(owner, v.Obj) else None


def variables(interp: Interp, path: v.Value | None) -> dict[Any, v.Value] | None:
    """The variables of a Python file of the project; None where it is not known."""
    mod = _module_at(interp, path)
    return dict(mod.env.all()) if mod is not None else None


def _run_path(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``runpy.run_path("config.py")`` gives the variables of the file."""
    mod = _run_file(interp, args.get("path_name", 0), node)
    return v.Mapping(dict(mod.env.all()), open=True) if mod is not None else None


def configuration_in_file(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``Config.fromfile("config.py")``: the variables of the file, and of those that it is based on."""
    role = interp.kb.role(api, "configuration-file")
    path = args.get(role.arg, role.pos) if role is not None else None
    if path is None:
        return None
    mod = _module_at(interp, path)
    if mod is not None:
        return _defaults(_based(interp, mod, _MOST_BASES), "")
    found = load_config(interp, api, v.Args([path]), node)
    if isinstance(found, v.Mapping):
        found.attributes = True
    return found


def _based(interp: Interp, mod: v.Mod, depth: int) -> v.Mapping:
    assert mod.file is not None
    own = mod.env.all()
    found = v.Mapping({}, attributes=True)
    for path in _texts(own.get(_BASE)):
        base = _module_at(interp, path, mod.file.directory) if depth else None
        if base is None:
            found.open = True
        else:
            _merge(found, _based(interp, base, depth - 1))
    kept = {name: value for name, value in own.items() if not name.startswith("_") and _is_data(value)}
    _merge(found, v.Mapping(kept))
    return found


def _texts(value: v.Value | None) -> Iterator[v.Value]:
    if isinstance(value, v.Items):
        yield from value.elts
    elif value is not None:
        yield value


def _is_data(value: v.Value) -> bool:
    return not isinstance(value, (v.Mod, v.Func, v.Cls, v.Ext))


def _merge(into: v.Mapping, other: v.Mapping) -> None:
    """What a configuration says replaces what those say on which it is based; dictionaries are merged."""
    into.open = into.open or other.open
    for name, value in other.items.items():
        old = into.items.get(name)
        if isinstance(value, v.Mapping):
            anew = value.items.get("_delete_")
            merged = v.Mapping({}, attributes=True)
            if isinstance(old, v.Mapping) and anew is None:
                _merge(merged, old)
            _merge(merged, value)
            value = merged
        into.items[name] = value


def _defaults(config: v.Mapping, prefix: str) -> v.Mapping:
    """A configuration whose values are what it has by default."""
    for name, value in list(config.items.items()):
        if isinstance(value, v.Mapping):
            _defaults(value, f"{prefix}{name}.")
        else:
            config.items[name] = as_default(value, f"{prefix}{name}")
    return config


def _define_file(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``config_flags.DEFINE_config_file("config", "configs/default.py")``: what the function of that file gives."""
    name = args.get("name", 0)
    mod = _module_at(interp, args.get("default", 1))
    make = mod.env.read(_MAKES) if mod is not None else None
    if not isinstance(name, v.Lit) or not isinstance(make, v.Func):
        return None
    config = interp.call(make, v.NO_ARGS, node)
    if not isinstance(config, v.Mapping):
        return None
    _defaults(config, f"--{name.value}.")
    for head in FLAGS:
        interp.set_library_attribute(f"{head}.{name.value}", config)
    holder = v.Obj("absl.flags.FlagHolder", "", args, node)
    holder.attrs["value"] = config
    return holder


PYTHON_FILE_MODELS = {
    "runpy.run_path": _run_path,
    "imp.load_source": _load_source,
    "importlib.util.module_from_spec": _of_spec,
    "ml_collections.config_flags.DEFINE_config_file": _define_file,
    "ml_collections.config_flags.config_flags.DEFINE_config_file": _define_file,
}
PYTHON_FILE_METHODS = {"importlib.machinery.SourceFileLoader.load_module": _load_module}
