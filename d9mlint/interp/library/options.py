"""Command-line and configuration libraries: what value an option has when the program is started plainly."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from d9mlint.interp import values as v
from d9mlint.interp.context import PARSED
from d9mlint.interp.data import PATH, element
from d9mlint.interp.enumerations import enumerates
from d9mlint.interp.heap import Cells
from d9mlint.interp.library.config_files import (
    STORED,
    Composed,
    composed,
    config_value,
    constants,
    folder_of,
    found_by_end,
    hydra_configs,
    load_literal,
    parse_file,
)
from d9mlint.interp.library.field_copies import is_bare_field
from d9mlint.interp.library.given_files import in_any, is_path
from d9mlint.interp.library.own_paths import end_of, literal_path
from d9mlint.interp.library.set_by_name import may_be_none
from d9mlint.interp.methods import named_from
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

NAMESPACE = "argparse.Namespace"
PARSER = "argparse.ArgumentParser"

Model = Callable[["Interp", str, v.Args, Any], "v.Value | None"]
MethodModel = Callable[["Interp", v.Value, str, v.Args, Any], "v.Value | None"]


def new_parser(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value:
    """``argparse.ArgumentParser(parents=[...])``."""
    parser = v.Obj(PARSER, "", args, node)
    parser.file = interp.frame.file
    if interp.kb.canonical(api) != PARSER or args.star or args.dstar or "parents" in args.kw:
        parser.attrs[OPEN] = v.TRUE
    parser.data = options = Cells(parser)
    usual = args.get("argument_default")
    if usual is not None:
        parser.attrs[_USUAL] = usual
    parents = args.get("parents")
    for parent in parents.elts if isinstance(parents, v.Items) else []:
        if isinstance(parent, v.Obj) and isinstance(parent.data, dict):
            options.update(parent.data)
    return parser


OPEN: Final = "has other options"
"""Attribute of a parser that may have more options than are known."""
OTHER_THAN: Final = "@other than"
"""The attribute of what an option is given in the place of its default: that default."""
_USUAL: Final = "default of the options that name none"


def _options(owner: v.Value) -> Cells | None:
    if isinstance(owner, v.Obj) and isinstance(owner.data, Cells):
        return owner.data
    if isinstance(owner, v.Inst):
        # A project subclass of ArgumentParser keeps its options on itself.
        kept = owner.attrs.get("@options")
        if kept is None:
            kept = v.Mapping({})
            owner.attrs["@options"] = kept
        return kept.items if isinstance(kept, v.Mapping) else None
    return None


def _is_parser(interp: Interp, owner: v.Value) -> bool:
    if isinstance(owner, v.Obj):
        return owner.type == PARSER
    if isinstance(owner, v.Inst):
        bases = owner.cls.external_bases()
        return any(base.rpartition(".")[2] in _PARSER_CLASSES for base in bases)
    return False


_PARSER_CLASSES = frozenset(
    {"ArgumentParser", "ArgParser", "HfArgumentParser", "Tap", "LightningArgumentParser"}
)


def add_argument(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``parser.add_argument('--seed', type=int, default=0)``."""
    options = _options(owner) if _is_parser(interp, owner) else None
    if options is None:
        return None
    flags = [a.value for a in args.pos if isinstance(a, v.Lit) and isinstance(a.value, str)]
    dest = args.get("dest")
    if isinstance(owner, v.Obj) and (len(flags) < len(args.pos) or args.star or args.dstar or not flags):
        owner.attrs[OPEN] = v.TRUE
    long = next((f for f in flags if f.startswith("--")), flags[0] if flags else "")
    key = dest.value if isinstance(dest, v.Lit) else long.lstrip("-").replace("-", "_")
    if not key:
        return v.NONE
    label = long or str(key)
    kept = args.get("type")
    if isinstance(kept, v.Cls) and isinstance(owner, v.Obj) and not enumerates(interp, kept):
        owner.attrs[f"{_CLASS} {key}"] = _with_subclasses(interp, kept)
    default = args.get("default")
    action = args.get("action")
    kind = action.value if isinstance(action, v.Lit) else ""
    if not kind and _is_required(label, args):
        # It is always given: its default is never used.
        default = _one_of(interp, args, node, args.get("choices"))
    elif default is None:
        if kind == "store_true":
            default = v.FALSE
        elif kind == "store_false":
            default = v.TRUE
        elif not label.startswith("-"):
            default = _one_of(interp, args, node, args.get("choices"))
        else:
            default = (owner.attrs.get(_USUAL) if isinstance(owner, v.Obj) else None) or v.NONE
    elif isinstance(default, v.Lit) and isinstance(default.value, str):
        default = _path_made(interp, args, default, node) or default
    choices = args.get("choices")
    # What is the only choice is no choice.
    fixed = (
        isinstance(choices, v.Items)
        and not choices.open
        and len(choices.elts) == 1
        and v.is_none(default) is False
    )
    launched = next((f"option:{one}" for one in flags if interp.kb.role(f"option:{one}", _LAUNCHED)), "")
    if launched and isinstance(default, v.Lit):
        options[str(key)] = v.Obj(launched, v.GIVEN)
    else:
        options[str(key)] = default if fixed else as_option(interp, default, label, choices)
        if isinstance(owner, v.Obj) and _is_never_none(args, kind):
            options[str(key)] = _never_none(options[str(key)])
        if isinstance(owner, v.Obj):
            options[str(key)] = of_kind(options[str(key)], _kind(args, kind))
    return v.NONE


def _kind(args: v.Args, action: str) -> str:
    """The class of Python of what an option is given: what ``type`` makes of a text, or True or False."""
    if action in ("store_true", "store_false"):
        return "bool"
    if action not in ("", "store") or (args.get("action") is not None and not action):
        return ""
    made, count = args.get("type"), args.get("nargs")
    if args.dstar or (count is not None and not (isinstance(count, v.Lit) and count.value == "?")):
        return ""
    return conversion(made) if made is not None else "str"


def conversion(made: v.Value | None) -> str:
    """The class of Python that is the type of an option; an empty text for other types."""
    return made.name.rpartition(".")[2] if isinstance(made, v.Ext) and made.name in _CONVERSIONS else ""


def of_kind(value: v.Value, kind: str) -> v.Value:
    """The default of an option with the class of what is given instead."""
    if not kind or not isinstance(value, v.Lit) or not value.option or isinstance(value.value, v.Sentinel):
        return value
    return v.Lit(value.value, value.option, value.instead, value.choices, value.never_none, kind)


def _is_required(label: str, args: v.Args) -> bool:
    """Whether an option has to be given: one that is said to be required, or an argument without a flag of which there is
    not said that it may be missing."""
    required, count = args.get("required"), args.get("nargs")
    if required is not None:
        return v.truth(required) is True
    if label.startswith("-") or args.dstar:
        return False
    return count is None or (isinstance(count, v.Lit) and count.value not in ("?", "*"))


def _is_never_none(args: v.Args, kind: str) -> bool:
    """Whether an option has a value other than None whenever it is given: what ``type`` makes of a text, or True or
    False."""
    if kind in ("store_true", "store_false"):
        return True
    if kind not in ("", "store") or (args.get("action") is not None and not kind):
        return False
    nargs, made = args.get("nargs"), args.get("type")
    if args.dstar or (nargs is not None and not (isinstance(nargs, v.Lit) and nargs.value != "?")):
        return False
    return made is None or (isinstance(made, v.Ext) and made.name in _CONVERSIONS)


_CONVERSIONS: Final = frozenset({"builtins.int", "builtins.float", "builtins.str", "builtins.bool"})
"""Types that make no text None."""


def _never_none(value: v.Value) -> v.Value:
    """The default of an option that is not given None, unless it is None itself."""
    if (
        not isinstance(value, v.Lit)
        or not value.option
        or value.value is None
        or isinstance(value.value, v.Sentinel)
    ):
        return value
    return v.Lit(value.value, value.option, value.instead, value.choices, never_none=True)


_LISTS: Final = frozenset({"builtins.list", "builtins.tuple", "builtins.range", "builtins.sorted"})
_LAUNCHED: Final = "given-by-launcher"
"""The role of options that the program gives which starts the processes: their defaults decide nothing."""


def _one_of(interp: Interp, args: v.Args, node: Any, choices: v.Value | None) -> v.Value:
    """The value of an option that has to be given."""
    known = _literals(choices)
    if 1 < len(known) <= v.MAX_ALTERNATIVES:
        return v.join(known)
    return _typed(interp, args, node)


def _typed(interp: Interp, args: v.Args, node: Any = None) -> v.Value:
    """The value of an option that is given: its type may be known, or a function of the program makes a list of a text."""
    made = args.kw.get("type")
    path = _path_made(interp, args, v.Obj(v.GIVEN), node)
    if path is not None:
        return path
    if isinstance(made, v.Func) and len(made.fn.params) == 1:
        found = interp.call(made, v.Args([v.Obj(v.GIVEN)]), node)
        if all(
            isinstance(one, v.Items) or getattr(one, "api", "") in _LISTS for one in v.alternatives(found)
        ):
            return v.Items("l", [v.join([element(interp, one) for one in v.alternatives(found)])], True)
    if made is None and not args.dstar and not any(name in args.kw for name in _SEVERAL):
        # What the command line gives is a text.
        made = v.Ext("builtins.str")
    one = v.Obj(v.GIVEN, "", v.Args([made] if isinstance(made, v.Ext) and made.name in _CONVERSIONS else []))
    return v.Items("l", [one], True) if _is_list(args) and conversion(made or v.Ext("builtins.str")) else one


def _is_list(args: v.Args) -> bool:
    """Whether an option that is given has a list of values, each of which is made of a text."""
    count = args.kw.get("nargs")
    several = isinstance(count, v.Lit) and (count.value in ("+", "*") or isinstance(count.value, int))
    return several and not args.dstar and "action" not in args.kw


_SEVERAL: Final = ("nargs", "multiple", "action")
"""Arguments of options that may have several values, or none."""


def _path_made(interp: Interp, args: v.Args, text: v.Value, node: Any) -> v.Value | None:
    """The path that the ``type`` of an option makes of a text, of its default too; None for other types."""
    made = args.kw.get("type")
    if isinstance(made, v.Obj):
        # `click.Path(path_type=Path)`
        made = made.args.kw.get("path_type")
    if not isinstance(made, v.Ext) or interp.kb.result_type(made.name) != PATH:
        return None
    if args.dstar or any(name in args.kw for name in _SEVERAL):
        return None
    return interp.call(made, v.Args([text]), node)


def _literals(choices: v.Value | None) -> list[v.Lit]:
    """The values that an option takes, where they are known."""
    if isinstance(choices, v.Obj) and choices.api == _CHOICE:
        choices = choices.args.get("choices", 0)
    if not isinstance(choices, v.Items) or choices.open:
        return []
    known = [one for one in choices.elts if isinstance(one, v.Lit)]
    return known if len(known) == len(choices.elts) else []


_CHOICE: Final = "click.Choice"


def as_option(interp: Interp, default: v.Value, label: str, choices: v.Value | None = None) -> v.Value:
    """A default as the value of the option ``label``, which takes no other values than ``choices``."""
    if isinstance(default, v.Lit):
        return v.Lit(default.value, label, choices=tuple(one.value for one in _literals(choices)))
    if _is_sentinel(interp, default):
        return v.Lit(v.Sentinel(default), label)
    if isinstance(default, v.Items) and not default.elts:
        # A list that is empty until the option is given says nothing about the program's course.
        return v.Items(default.kind, [], open=True)
    return default


def _is_sentinel(interp: Interp, value: v.Value) -> bool:
    """Whether nothing can be done with a value but to compare it."""
    if isinstance(value, v.Obj):
        return value.api == v.OBJECT
    if isinstance(value, v.Ext):
        return interp.kb.role(value.name, "sentinel") is not None
    cls = value.cls if isinstance(value, v.Inst) else value
    return (
        isinstance(cls, v.Cls)
        and all(isinstance(base, v.Ext) and base.name == v.OBJECT for base in cls.bases)
        and all(name.startswith("__") and name not in _ACTS for name in cls.env.vars)
        and not (isinstance(value, v.Inst) and value.attrs)
    )


_ACTS: Final = frozenset({"__init__", "__call__", "__getattr__", "__getitem__", "__iter__"})
"""Methods of what is more than a sign."""


def is_absent(interp: Interp, value: v.Value | None) -> bool:
    """Whether the value of an option is that of one which is in the namespace only if it is given."""
    return (
        isinstance(value, v.Lit)
        and isinstance(value.value, v.Sentinel)
        and isinstance(value.value.stands_for, v.Ext)
        and interp.kb.role(value.value.stands_for.name, "left-out") is not None
    )


def as_default(value: v.Value, name: str) -> v.Value:
    """A literal that a configuration holds, as what it has by default."""
    return v.Lit(value.value, name) if isinstance(value, v.Lit) and not value.option else value


def section(owner: v.Value, name: str) -> v.Value:
    """A part of a configuration; of one with the defaults of a library it has what the program gives it."""
    if not isinstance(owner, v.Mapping):
        return v.UNKNOWN
    found: v.Value | None = owner.items.get(name)
    if found is None and owner.option == v.LIBRARY_DEFAULTS:
        found = owner.items[name] = v.Mapping({}, open=True, attributes=True)
        found.option = v.LIBRARY_DEFAULTS
    return found or v.UNKNOWN


def same_parser(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """Argument groups and sub-parsers add to the parser they belong to."""
    return owner if _is_parser(interp, owner) else None


def set_defaults(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``parser.set_defaults(seed=1)``."""
    options = _options(owner) if _is_parser(interp, owner) else None
    if options is None:
        return None
    if isinstance(owner, v.Obj) and (args.pos or args.dstar):
        owner.attrs[OPEN] = v.TRUE
    first = args.pos[0] if args.pos else None
    named = (
        {key: one for key, one in first.items.items() if isinstance(key, str)}
        if isinstance(first, v.Mapping)
        else {}
    )
    for key, value in {**named, **args.kw}.items():
        known = options.get(key)
        if known is not None and isinstance(value, v.Func):
            # Each sub-parser has its own command: the command line says which of them is called.
            options[key] = v.join([known, value])
        else:
            options[key] = as_option(interp, value, f"--{key}")
    return v.NONE


def stop(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``parser.error(message)`` and ``parser.exit()`` end the program."""
    if not _is_parser(interp, owner):
        return None
    interp.state.alive = False
    interp.state.raised = True
    return v.NONE


def parse_args(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``parse_args`` and relatives: a namespace of option defaults."""
    options = _options(owner) if _is_parser(interp, owner) else None
    if options is None:
        return None
    space = v.Obj(NAMESPACE, "", args, node)
    space.owner = owner
    fixed = not_given(options, args)
    absent = {key: value for key, value in options.items() if is_absent(interp, value)}
    space.attrs.update({key: fixed.get(key, value) for key, value in options.items() if key not in absent})
    if isinstance(owner, v.Obj) and OPEN in owner.attrs:
        may_be_none(space.attrs)
    elif (given := args.get("namespace", 1)) is not None:
        may_be_none(space.attrs, _held_by(given))
    if absent:
        space.data = absent
    if name == "parse_known_args":
        return v.Items("t", [space, v.UNKNOWN])
    return space


def _held_by(namespace: v.Value) -> Callable[[Any], bool]:
    """Whether an object that is given as the namespace may have an attribute of a name: options get no defaults there."""
    if isinstance(namespace, v.Inst) and not namespace.cls.external_bases() and v.MORE not in namespace.attrs:
        return lambda name: _has(namespace, name)
    if isinstance(namespace, v.Obj) and namespace.type == NAMESPACE:
        return lambda name: name in namespace.attrs
    if isinstance(namespace, v.Mapping) and namespace.attributes and not namespace.open:
        return lambda name: name in namespace.items
    return lambda name: v.is_none(namespace) is not True


def _has(instance: v.Inst, name: str) -> bool:
    """Whether an instance may have an attribute; of a field without a default, nothing is known where it has none."""
    found = instance.cls.find(name)
    if is_bare_field(found):
        return instance.attrs.get(name, v.UNKNOWN) is not v.UNKNOWN
    return found is not None or name in instance.attrs


def not_given(options: Mapping[str, v.Value], args: v.Args) -> dict[str, v.Lit]:
    """The options that a list of words in the program, which stands for the command line, does not give, with their
    defaults: these are what they are."""
    words = args.get("args", 0)
    if not isinstance(words, v.Items) or words.open:
        return {}
    texts = [one.value for one in words.elts if isinstance(one, v.Lit)]
    given = {one.partition("=")[0] for one in texts if isinstance(one, str) and one.startswith("-")}
    found = {key: one for key, one in options.items() if isinstance(one, v.Lit) and one.option}
    # A short name of an option, or another one, is not known here.
    if len(texts) < len(words.elts) or not given <= {one.option for one in found.values()}:
        return {}
    return {
        key: v.Lit(one.value)
        for key, one in found.items()
        if one.option not in given and not isinstance(one.value, v.Sentinel)
    }


def holds_option(space: v.Obj, name: object) -> v.Lit:
    """Whether an option is in a namespace."""
    absent = space.data.get(name) if isinstance(space.data, dict) else None
    return v.Lit(name in space.attrs, v.option_of(absent) if absent is not None else "")


def hf_parse(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``HfArgumentParser((A, B)).parse_args_into_dataclasses()``: instances with their defaults."""
    if not (isinstance(owner, v.Obj) and owner.api.rpartition(".")[2] == "HfArgumentParser"):
        return None
    given = owner.args.get("dataclass_types", 0)
    classes = given.elts if isinstance(given, v.Items) else [given] if given is not None else []
    made = [parsed(interp, cls, v.NO_ARGS, node) if cls is not v.UNKNOWN else v.UNKNOWN for cls in classes]
    return v.Items("t", made, open=name == "parse_args_into_dataclasses" and not made)


def parsed(interp: Interp, cls: v.Value, args: v.Args, node: Any) -> v.Value:
    """An instance of a class that a library makes from what the command line or a file gives: the defaults of its fields
    are those of options."""
    with interp.within(PARSED):
        return interp.call(cls, args, node)


def add_class(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``parser.add_arguments(Options, dest="options")`` of simple_parsing, ``add_class_arguments(Options, "options")``
    of jsonargparse: the options are the fields of an object."""
    options = _options(owner) if _is_parser(interp, owner) else None
    first = args.pos[0] if args.pos else None
    key = args.get("dest", 1) or args.kw.get("nested_key")
    if options is None or not isinstance(first, v.Cls) or not isinstance(key, v.Lit):
        return None
    if name == "add_class_arguments" and not has_fields(first):
        options[key.value] = v.Obj(_CLASS, "", v.Args([first]))
    else:
        options[key.value] = parsed(interp, first, v.NO_ARGS, node)
    return v.NONE


_CLASS: Final = "class of an option"
"""What an option has for a value whose object ``instantiate_classes`` makes, with the class; before the name of such an
option, the attribute of the parser that holds it."""


def add_subclasses(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``parser.add_subclass_arguments(Base, "model")`` of jsonargparse."""
    options = _options(owner) if _is_parser(interp, owner) else None
    first, key = args.get("baseclass", 0), args.get("nested_key", 1)
    if options is None or not isinstance(first, v.Cls) or not isinstance(key, v.Lit):
        return None
    options[key.value] = v.Obj(_CLASS, "", v.Args([_with_subclasses(interp, first)]))
    return v.NONE


def _with_subclasses(interp: Interp, cls: v.Cls) -> v.Value:
    """A class, or one of those that derive from it, in its module and in the running one."""
    modules = dict.fromkeys((cls.mod, interp.frame.mod))
    found = [one for mod in modules for one in mod.env.all().values() if isinstance(one, v.Cls)]
    return v.candidates(dict.fromkeys([cls, *(one for one in found if cls in one.mro())]))


def instantiate(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``parser.instantiate_classes(config)`` of jsonargparse: the options with the objects of those that name classes."""
    space = args.get("cfg", 0) if _is_parser(interp, owner) else None
    if not isinstance(space, v.Obj) or space.api != NAMESPACE or not isinstance(owner, v.Obj):
        return None
    made = v.Obj(NAMESPACE, "", args, node)
    made.owner = owner
    made.attrs.update(space.attrs)
    for key, value in list(space.attrs.items()):
        cls = owner.attrs.get(f"{_CLASS} {key}")
        if isinstance(value, v.Obj) and value.api == _CLASS:
            cls = value.args.pos[0]
        if cls is not None:
            made.attrs[key] = parsed(interp, cls, v.NO_ARGS, node)
    return made


def as_options(instance: v.Inst, depth: int = 0) -> None:
    """What the fields of an instance hold are defaults now: the command line or a file may give others."""
    for name in {name for cls in instance.cls.mro() for name in cls.fields}:
        value = instance.attrs.get(name)
        if isinstance(value, v.Lit) and not value.option:
            instance.attrs[name] = v.Lit(value.value, name)
        elif isinstance(value, v.Inst) and depth < _MOST_NESTED:
            as_options(value, depth + 1)


_MOST_NESTED = 4


def make_namespace(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value:
    """``argparse.Namespace(a=1)``, ``SimpleNamespace``, ``EasyDict`` and what behaves like them."""
    items = dict(args.kw)
    first = args.pos[0] if args.pos else None
    if isinstance(first, v.Mapping):
        items = {**{k: x for k, x in first.items.items() if isinstance(k, str)}, **items}
    if isinstance(first, v.Obj) and first.type == NAMESPACE:
        items = {**first.attrs, **items}
    return v.Mapping(items, open=args.dstar or (first is not None and not items), attributes=True)


# ----------------------------------------------------------------------------- absl, tf.app, click, typer


FLAGS = tuple(
    f"{head}.FLAGS"
    for head in (
        "absl.flags",
        "tensorflow.flags",
        "tensorflow.app.flags",
        "tensorflow.compat.v1.flags",
        "tensorflow.compat.v1.app.flags",
    )
)
"""Where the values of flags are looked up, by the names under which programs import it."""


def define_flag(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value:
    """``flags.DEFINE_integer('seed', 0, ...)`` of absl and TF1."""
    name = args.get("name", 0)
    default = args.get("default", 1)
    if isinstance(name, v.Lit) and isinstance(name.value, str):
        choices = args.get("enum_values", 2) if api.endswith("_enum") else None
        value = as_option(interp, default if default is not None else v.NONE, f"--{name.value}", choices)
        value = of_kind(value, _KINDS_OF_FLAGS.get(api.rpartition("_")[2], ""))
        required = args.kw.get("required")
        if required is not None and v.truth(required) is True:
            value = _one_of(interp, args, node, args.get("enum_values", 2))
        holder = v.Obj("absl.flags.FlagHolder", "", args, node)
        holder.attrs["value"] = value
        for head in FLAGS:
            interp.set_library_attribute(f"{head}.{name.value}", value)
        return holder
    return v.UNKNOWN


_KINDS_OF_FLAGS: Final = {
    "integer": "int",
    "float": "float",
    "string": "str",
    "enum": "str",
    "bool": "bool",
    "boolean": "bool",
}


def require_flags(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value:
    """``flags.mark_flag_as_required('mode')`` and ``flags.mark_flags_as_required(['mode', 'config'])``."""
    given = args.get("flag_name", 0) or args.get("flag_names", 0)
    for name in given.elts if isinstance(given, v.Items) else [given]:
        if isinstance(name, v.Lit) and isinstance(name.value, str):
            for head in FLAGS:
                interp.set_library_attribute(f"{head}.{name.value}", v.Obj(v.GIVEN))
    return v.NONE


def option_params(interp: Interp, func: v.Func) -> v.Args:
    """Arguments with which a click, typer, fire or hydra entry function is called: its options' defaults, or
    ``ChosenArgs``."""
    by_name: dict[str, v.Value] = {}
    chosen: list[Composed] = []
    for decorator in func.decorated:
        if not isinstance(decorator, v.Obj):
            continue
        last = decorator.api.rpartition(".")[2]
        if last == "option":
            _click_option(interp, decorator.args, by_name)
        elif last == "main" and decorator.api.startswith("hydra"):
            params = func.fn.params
            if params:
                chosen = hydra_configs(interp, func, decorator.args)
                found = chosen[0].value
                known = not isinstance(found, v.Mapping) or found.items
                stored = None if known else _stored(interp, decorator.args, decorator.node)
                by_name[params[0].name] = stored or found
    for param in func.fn.params:
        if param.name in by_name or param.kind in "vw":
            continue
        default = func.defaults.get(param.name)
        if default is None:
            declared = _declared(interp, func, param)
            if declared is not None:
                by_name[param.name] = parsed(interp, declared, v.NO_ARGS, None)
            continue
        if isinstance(default, v.Obj) and default.api.rpartition(".")[2] in ("Option", "Argument"):
            given = default.args.get("default", 0)
            default = given if given is not None else v.Obj(v.GIVEN)
            if isinstance(default, v.Lit) and isinstance(default.value, str):
                note = param.annotation
                made = named_from(interp, func, note.id) if isinstance(note, m.Name) else None
                kept = v.Args([], {"type": made or v.UNKNOWN})
                default = _path_made(interp, kept, default, None) or default
        if isinstance(default, v.Lit):
            option = "--" + param.name.replace("_", "-")
            value = v.Lit(None if default.value is ... else default.value, option)
            by_name[param.name] = of_kind(value, _annotated(param))
        else:
            by_name[param.name] = default
    if chosen and (chosen[1:] or chosen[0].chosen):
        others = [({**by_name, func.fn.params[0].name: one.value}, one.chosen) for one in chosen[1:]]
        return ChosenArgs(by_name, chosen[0].chosen, others)
    return v.Args([], by_name)


def _annotated(param: m.Param) -> str:
    """The class of Python that a parameter is declared to be of."""
    name = param.annotation.id if isinstance(param.annotation, m.Name) else ""
    return name if f"builtins.{name}" in _CONVERSIONS else ""


class ChosenArgs(v.Args):
    """Arguments of a function that a configuration gives which the command line has to complete: what it is taken to
    choose (``data=mnist``), and the arguments with what it may choose instead."""

    __slots__ = ("chosen", "others")

    def __init__(
        self,
        kw: dict[str, v.Value],
        chosen: tuple[str, ...],
        others: list[tuple[dict[str, v.Value], tuple[str, ...]]],
    ) -> None:
        super().__init__([], kw)
        self.chosen = chosen
        self.others = others


def call_with_choices(interp: Interp, func: v.Func, args: ChosenArgs, node: Any) -> v.Value:
    """A function is called with each configuration that it may have; what stands afterwards is that of the first. How
    often functions may run is bounded for each of them: what others need must not cut off the first."""
    outer = interp.assumed
    variants, spent, settled = interp.variants, interp.spent, interp.settled
    for kw, chosen in args.others:
        interp.assumed = (*outer, *chosen[1:])
        interp.variants, interp.spent, interp.settled = {}, {}, {}
        start_otherwise(interp, chosen[0], partial(interp.call, func, v.Args([], kw), node))
    interp.assumed = (*outer, *args.chosen)
    interp.variants, interp.spent, interp.settled = {}, {}, {}
    result = interp.call(func, v.Args([], args.kw), node)
    interp.assumed = outer
    interp.variants, interp.spent, interp.settled = variants, spent, settled
    return result


def start_otherwise(interp: Interp, option: str, run: Callable[[], object]) -> None:
    """What the program does with an option; nothing of it holds without."""
    state = interp.state
    rngs, modes, env = state.rng.save(), state.modes.save(), state.env.save()

    def nothing() -> None:
        pass

    def otherwise() -> None:
        run()

    interp.branch([nothing, otherwise], keep=0, option=option)
    state = interp.state
    state.rng.restore(rngs)
    state.modes.restore(modes)
    state.env.restore(env)


def _declared(interp: Interp, func: v.Func, param: m.Param) -> v.Cls | None:
    """The class with fields that a parameter is declared to be an object of: its fields are options."""
    note = param.annotation
    name = note.id if isinstance(note, m.Name) else note.value if isinstance(note, m.Const) else None
    found = named_from(interp, func, name) if isinstance(name, str) else None
    return found if isinstance(found, v.Cls) and has_fields(found) else None


def has_fields(cls: v.Cls) -> bool:
    """Whether a class, or one that it is derived from, declares fields."""
    return any(one.fields for one in cls.mro())


def store_config(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``ConfigStore.instance().store(name="config", node=Config)``."""
    label, value, group = args.get("name", 0), args.get("node", 1), args.get("group", 2)
    if isinstance(label, v.Lit) and value is not None:
        below = f"{group.value}/" if isinstance(group, v.Lit) and group.value else ""
        if below or group is None or v.is_none(group) is True:
            interp.set_library_attribute(f"{STORED}.{below}{label.value}", value)
    return v.NONE


def _stored(interp: Interp, args: v.Args, node: Any) -> v.Value | None:
    """The configuration that the program stored under the name of the one with which a function is called."""
    name = args.get("config_name", 1)
    found = interp.library_attribute(f"{STORED}.{name.value}") if isinstance(name, v.Lit) else None
    made = _made(interp, found, node)
    if isinstance(made, v.Inst):
        _choose(interp, made, node)
    return made


def _made(interp: Interp, stored: v.Value | None, node: Any) -> v.Inst | v.Mapping | None:
    """The configuration that a class, or an object, is which the program stored."""
    if isinstance(stored, v.Cls):
        stored = parsed(interp, stored, v.NO_ARGS, node)
    if isinstance(stored, v.Inst):
        as_options(stored)
    return stored if isinstance(stored, v.Inst | v.Mapping) else None


def _choose(interp: Interp, config: v.Inst, node: Any) -> None:
    """Give the parts of a configuration that are left to a group what its list of defaults chooses of what the program
    stored for it, or else what they are declared to be: ``optimizer: Adam = MISSING``."""
    listed = config.attrs.get(_DEFAULTS)
    for entry in listed.elts if isinstance(listed, v.Items) else ():
        for group, choice in entry.items.items() if isinstance(entry, v.Mapping) else ():
            if isinstance(choice, v.Lit) and group in config.attrs:
                stored = interp.library_attribute(f"{STORED}.{group}/{choice.value}")
                made = _made(interp, stored, node)
                if made is not None:
                    config.attrs[group] = made
    for cls in config.cls.mro():
        for stmt in cls.cls.body:
            if isinstance(stmt, m.AnnAssign) and isinstance(stmt.target, m.Name):
                name, note = stmt.target.id, stmt.annotation
                declared = cls.mod.env.read(note.id) if isinstance(note, m.Name) else None
                if (
                    is_left_open(config.attrs.get(name))
                    and isinstance(declared, v.Cls)
                    and has_fields(declared)
                ):
                    config.attrs[name] = parsed(interp, declared, v.NO_ARGS, node)


_DEFAULTS = "defaults"
_LEFT_OPEN = "???"


def is_left_open(value: v.Value | None) -> bool:
    """Whether this stands for what has to be given: ``omegaconf.MISSING``."""
    if isinstance(value, v.Ext):
        return value.name.rpartition(".")[2] == "MISSING"
    return isinstance(value, v.Lit) and value.value == _LEFT_OPEN


def _click_option(interp: Interp, args: v.Args, into: dict[str, v.Value]) -> None:
    names = [a.value for a in args.pos if isinstance(a, v.Lit) and isinstance(a.value, str)]
    long = next((n for n in names if n.startswith("--")), names[0] if names else "")
    plain = next((n for n in names if not n.startswith("-")), "")
    key = plain or long.split("/")[0].lstrip("-").replace("-", "_")
    if not key:
        return
    default = args.get("default")
    if default is None or v.is_none(default):
        is_flag = args.get("is_flag")
        required = args.get("required")
        if (isinstance(is_flag, v.Lit) and is_flag.value) or "/" in long:
            default = v.FALSE
        elif isinstance(required, v.Lit) and required.value:
            default = _typed(interp, args)
        else:
            default = v.NONE
    elif isinstance(default, v.Lit) and isinstance(default.value, str):
        # The type makes the value of a default that is a text, too.
        path = _path_made(interp, args, default, None)
        if path is not None:
            default = path
        elif isinstance(args.kw.get("type"), v.Func):
            made = _typed(interp, args)
            default = default if isinstance(made, v.Obj) else made
    into[key] = of_kind(as_option(interp, default, long or key, args.get("type")), _click_kind(args))


def _click_kind(args: v.Args) -> str:
    """The class of Python of what an option of click is given, where its type is written."""
    return "" if args.dstar or any(name in args.kw for name in _SEVERAL) else conversion(args.kw.get("type"))


# -------------------------------------------------------------------------------------- configuration


_READING = frozenset({"read", "read_text", "read_bytes"})
"""Methods of files and paths that give all that is in a file."""
_OPENING = "open"
"""The method of a path that gives the file."""


def _opened(value: v.Value | None) -> v.Value | None:
    """The path with which something is made, such as a file that is open; or that path itself."""
    of_path = not isinstance(value, v.Obj) or is_path(value) or not value.args.pos
    return value if of_path or not isinstance(value, v.Obj) else value.args.pos[0]


def load_config(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``yaml.safe_load(open('config.yaml'))``, ``OmegaConf.load('c.yaml')``, ``json.load(...)``, ``toml.loads(...)``."""
    first = args.pos[0] if args.pos else None
    if isinstance(first, v.Obj) and first.api.rpartition(".")[2] in _READING and first.owner is not None:
        # The text of a file that is open, or of a path.
        first = first.owner
    if isinstance(first, v.Obj) and first.owner is not None and first.api.rpartition(".")[2] == _OPENING:
        first = first.owner
    path, opened = literal_path(first), _opened(first)
    if path is None:
        path = literal_path(opened)
    data = load_literal(interp, path) if path is not None else None
    value = config_value(data, path or "") if data is not None else in_any(interp, api, opened)
    if value is not None and data is not None and not api.startswith("omegaconf"):
        value = constants(value)
    if value is None and path is None and "/" in end_of(opened):
        path = found_by_end(interp, opened)
        data = parse_file(path) if path is not None else None
        value = config_value(data, path or "") if data is not None else None
    if value is None:
        return None
    if isinstance(value, v.Mapping) and api.startswith("omegaconf"):
        value.attributes = True
    return value


HYDRA_PATH = "hydra.initialize.config_path"
"""Where the directory that ``hydra.initialize`` was given stands among the library attributes of the program."""


def hydra_initialize(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``hydra.initialize(config_path="conf")``: relative to the calling file."""
    given = args.get("config_dir" if api.endswith("_dir") else "config_path", 0)
    path = literal_path(given)
    if path is not None:
        given = v.Lit(os.path.normpath(os.path.join(interp.frame.file.directory, path)))
    interp.set_library_attribute(HYDRA_PATH, given or v.UNKNOWN)
    return None


def hydra_compose(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``hydra.compose(config_name="config", overrides=["seed=1"])``."""
    base, name = interp.library_attribute(HYDRA_PATH), args.get("config_name", 0)
    overrides = args.get("overrides", 1)
    if base is None or not isinstance(name, v.Lit) or not isinstance(name.value, str):
        return None
    folder = folder_of(interp, base, name.value, interp.frame.file.directory)
    elts = overrides.elts if isinstance(overrides, v.Items) else []
    texts = [one.value for one in elts if isinstance(one, v.Lit) and isinstance(one.value, str)]
    config = composed(interp, folder, name.value, texts)
    if isinstance(config, v.Mapping) and (len(texts) < len(elts) or (overrides is not None and not elts)):
        config.open = True
    return config
