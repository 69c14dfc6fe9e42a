"""Configuration files of the project that are given to a program on its command line: they name the classes that a library
makes objects of (``class_path``), the arguments of these (``init_args``), and arguments of the call itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.heap import Cells
from d9mlint.interp.library.config_files import YAML, config_value, files_below, parse_file
from d9mlint.interp.library.options import PARSER, new_parser

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import Made, RunnerEntry

CLASS, ARGUMENTS = "class_path", "init_args"
_SUBCOMMANDS = ("fit", "train")


class Named(NamedTuple):
    """A class that configuration files name, by its path, and the arguments that they give it, where all agree."""

    path: str
    arguments: dict[str, v.Value]


def found(interp: Interp, entry: RunnerEntry) -> list[dict[str, Any]]:
    """The files beside the program, and in directories below, that configure what a library makes: they have at least two
    of the parts that it reads, or name a class."""
    parts = {one.part for one in entry.makes if one.part} | {one.part for one in entry.from_files}
    known: list[dict[str, Any]] = []
    for path in files_below(interp, interp.entry_directory, YAML):
        interp.config_files.add(path)
        data = parse_file(path)
        if not isinstance(data, dict):
            continue
        for name in _SUBCOMMANDS:
            part = data.get(name)
            data = {**data, **part} if isinstance(part, dict) else data
        if len(parts & data.keys()) > 1 or any(_path_in(data, one) for one in entry.makes):
            known.append(data)
    return known


def _path_in(config: dict[str, Any], made: Made) -> str:
    part = config.get(made.part) if made.part else None
    path = part.get(CLASS) if isinstance(part, dict) else None
    return path if isinstance(path, str) else ""


def classes(configs: list[dict[str, Any]], made: Made) -> list[Named]:
    """The classes that the files name for a part, each once."""
    named: dict[str, list[dict[str, Any]]] = {}
    for config in configs:
        if path := _path_in(config, made):
            given = config[made.part].get(ARGUMENTS)
            named.setdefault(path, []).append(given if isinstance(given, dict) else {})
    return [Named(path, _agreed(given, f"{made.part}.{ARGUMENTS}.")) for path, given in sorted(named.items())]


def with_arguments(entry: RunnerEntry, configs: list[dict[str, Any]], args: v.Args) -> v.Args:
    """The arguments of a call, with those that the files give instead."""
    kw = dict(args.kw)
    for one in entry.from_files:
        given = [config[one.part] for config in configs if one.part in config]
        if not given or len(given) < len(configs):
            continue
        if all(isinstance(each, dict) for each in given):
            usual = kw.get(one.arg)
            items = dict(usual.items) if isinstance(usual, v.Mapping) else {}
            more = usual.open if isinstance(usual, v.Mapping) else usual is not None
            kw[one.arg] = v.Mapping({**items, **_agreed(given, "")}, more)
        elif all(type(each) is int for each in given) or (
            isinstance(given[0], bool) and all(each is given[0] for each in given)
        ):
            kw[one.arg] = v.Lit(given[0])
    return v.Args(args.pos, kw, args.star, args.dstar)


def with_defaults(interp: Interp, entry: RunnerEntry, inst: v.Inst, args: v.Args, node: Any) -> v.Args:
    """The arguments of a call, with those that a derived class gives options as their defaults."""
    hook = inst.cls.find(entry.parser_hook)
    if not isinstance(hook, v.Func):
        return args
    parser = new_parser(interp, PARSER, v.NO_ARGS, node)
    interp.call(hook.bind(inst), v.Args([parser]), node)
    options = parser.data if isinstance(parser, v.Obj) and isinstance(parser.data, Cells) else {}
    kw = dict(args.kw)
    for one in entry.from_files:
        given = {
            key.removeprefix(f"{one.part}."): value
            for key, value in options.items()
            if isinstance(key, str) and key.startswith(f"{one.part}.")
        }
        if given:
            usual = kw.get(one.arg)
            items = dict(usual.items) if isinstance(usual, v.Mapping) else {}
            more = usual.open if isinstance(usual, v.Mapping) else usual is not None
            kw[one.arg] = v.Mapping({**items, **given}, more)
        elif one.part in options:
            kw[one.arg] = options[one.part]
    return v.Args(args.pos, kw, args.star, args.dstar)


def _agreed(given: list[dict[str, Any]], prefix: str) -> dict[str, v.Value]:
    """The items of mappings by name; one that is not the same in all of them is not known, nor is one that names a class."""
    items: dict[str, v.Value] = {}
    for name in sorted({str(name) for one in given for name in one}):
        values = [one.get(name, _ABSENT) for one in given]
        same = all(type(one) is type(values[0]) and one == values[0] for one in values)
        option = f"{prefix}{name}." if prefix else ""
        items[name] = (
            config_value(values[0], "", option) if same and not _names_class(values[0]) else v.UNKNOWN
        )
    return items


def _names_class(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_names_class, value))
    return isinstance(value, dict) and (CLASS in value or any(map(_names_class, value.values())))


_ABSENT = object()
