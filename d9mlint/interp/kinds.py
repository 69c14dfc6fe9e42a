"""Of which classes values are: what ``isinstance`` answers, where that is certain."""

from __future__ import annotations

import collections.abc
import numbers
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.library import records
from d9mlint.interp.library_modules import MODULE
from d9mlint.interp.tensors import TENSOR

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge import Knowledge

ARRAY = "numpy.ndarray"
"""The class of the arrays of NumPy."""
_LITERALS = {
    "builtins.int": int,
    "builtins.str": str,
    "builtins.float": float,
    "builtins.bool": bool,
    "builtins.bytes": bytes,
    "builtins.list": list,
    "builtins.tuple": tuple,
    "builtins.dict": dict,
    "builtins.set": set,
    "pathlib.Path": type(None),
    ARRAY: type(None),
    TENSOR: type(None),
    MODULE: type(None),
}
"""Classes of which literals are, or are not; `None` is of none of the last."""
_ITEMS = {"l": "builtins.list", "t": "builtins.tuple", "s": "builtins.set"}


_PROTOCOLS = (
    "Sequence",
    "MutableSequence",
    "Iterable",
    "Sized",
    "Collection",
    "Container",
    "Mapping",
    "MutableMapping",
)
_ABSTRACT: dict[str, type] = {
    **{
        f"{module}.{name}": getattr(collections.abc, name)
        for module in (collections.abc.__name__, "typing")
        for name in _PROTOCOLS
    },
    **{f"typing.{name}": one for name, one in (("List", list), ("Tuple", tuple), ("Dict", dict))},
    **{f"numbers.{name}": getattr(numbers, name) for name in ("Number", "Complex", "Real", "Integral")},
}
"""Classes of which numbers, texts and containers are, by what these can do."""
_CONTAINERS = {"l": list, "t": tuple, "s": set}


_MAPPINGS = ("builtins.dict", "collections.abc.Mapping", "collections.abc.MutableMapping", "typing.Mapping")


def computes(kb: Knowledge, api: str) -> bool:
    """Whether an op computes something of its arguments and does nothing else."""
    package, _, name = api.rpartition(".")
    if kb.role(f"?.{name}", "computes") is not None:
        return True
    if kb.role(f"{package}.*", "computes") is None or kb.rng(api):
        return False
    return kb.role(api, "changes-state") is None


def instance_of(interp: Interp, value: v.Value, cls: v.Value) -> bool | None:
    """Whether a value is an instance of a class or of one of several; None for unknown."""
    if isinstance(cls, v.Items):
        answers = [instance_of(interp, value, one) for one in cls.elts]
        if any(one is True for one in answers):
            return True
        return None if cls.open or any(one is None for one in answers) else False
    if isinstance(value, v.AnyOf):
        kinds = {instance_of(interp, one, cls) for one in value.values}
        return kinds.pop() if len(kinds) == 1 else None
    if isinstance(cls, v.Cls):
        return _of_project_class(value, cls)
    if not isinstance(cls, v.Ext):
        return None
    name = interp.kb.canonical(cls.name)
    if isinstance(value, v.Lit):
        kind = _LITERALS.get(name) or _ABSTRACT.get(name)
        if kind is None or (name in _ABSTRACT and isinstance(value.value, v.Sentinel)):
            return None
        return False if kind is type(None) else isinstance(value.value, kind)
    if isinstance(value, v.Items) and name in _ABSTRACT:
        return issubclass(_CONTAINERS[value.kind], _ABSTRACT[name])
    if isinstance(value, v.Items):
        return _ITEMS[value.kind] == name if name in _LITERALS else None
    if isinstance(value, v.Mapping) and (not value.attributes or value.cls is not None):
        return name in _MAPPINGS if name in _LITERALS or name in _MAPPINGS else None
    if isinstance(value, v.Mapping):
        # Configurations with attributes are no texts, paths or lists; libraries may derive their classes from `dict`.
        return False if name in _LITERALS and name not in (*_MAPPINGS, MODULE) else None
    if isinstance(value, v.Inst):
        bases = [interp.kb.canonical(base) for base in value.cls.external_bases()]
        module = name == MODULE and any(b.startswith(("torch.nn.", "lightning.")) for b in bases)
        if module or name in bases:
            return True
        return _is_derived(interp, bases, name) if bases else False if name in _LITERALS else None
    if isinstance(value, v.Obj) and value.type == TENSOR and not value.likely:
        return name == TENSOR if name in _LITERALS else None
    if isinstance(value, v.Obj) and (made := interp.kb.role(value.api, "allocates")) is not None:
        own = ARRAY if made.library == "numpy" else TENSOR
        return name == own if name in _LITERALS or name in _MAPPINGS else None
    if isinstance(value, v.Obj) and value.api.rpartition(".")[2].islower() and computes(interp.kb, value.api):
        # A tensor is an instance of no other class that calls are known to give.
        return False if name in interp.kb.result_classes and not name.endswith("Tensor") else None
    if (
        isinstance(value, v.Obj)
        and value.api.startswith("torch.nn.")
        and value.api.rpartition(".")[2][:1].isupper()
    ):
        # A module of the library.
        if name in (MODULE, value.api):
            return True
        return False if name in _LITERALS else _is_derived(interp, [value.api], name)
    if isinstance(value, (v.Func, v.Mod)):
        return False if name in _LITERALS else None
    return None


def stays_instance(interp: Interp, value: v.Value, cls: v.Value, answer: bool) -> bool:
    """Whether an option is an instance of a class, or is none, whatever it is given, because its type says so."""
    kind = _OF_KINDS.get(value.kind) if isinstance(value, v.Lit) else None
    return kind is not None and instance_of(interp, kind, cls) is answer


_OF_KINDS = {"int": v.Lit(1), "float": v.Lit(0.5), "str": v.Lit("text"), "bool": v.Lit(True)}


def _is_derived(interp: Interp, classes: list[str], name: str) -> bool | None:
    """Whether a class of modules is one that others, or a class with these bases, are derived from; None for unknown."""
    known = [interp.kb.role(one, "derived-from") for one in classes]
    if any(role is not None and name in role.more for role in known):
        return True
    return None if None in known or interp.kb.role(name, "derived-from") is None else False


def has_weight(interp: Interp, layer: v.Value, name: str) -> bool | None:
    """Whether an attribute of a layer of a library is a weight; False where it is nothing instead, None for unknown."""
    role = interp.kb.role(layer.api, "draws-weight") if isinstance(layer, v.Obj) else None
    if role is None or name not in ("weight", role.arg):
        return None
    given = layer.args.get(role.arg, role.pos) if isinstance(layer, v.Obj) and name == role.arg else v.TRUE
    return True if given is None else v.truth(given) if not v.option_of(given) else None


def class_of(interp: Interp, value: v.Value) -> v.Value | None:
    """The class of an object that the program makes, or of a module of a library; None for unknown."""
    if isinstance(value, v.Inst):
        return value.cls if value.node is not None else None
    if not isinstance(value, v.Obj) or value.type == TENSOR:
        return None
    if (record := records.type_of(value)) is not None:
        return record
    return v.Ext(value.api) if interp.kb.role(value.api, "derived-from") is not None else None


TYPE = "builtins.type"


def kind_of_container(value: v.Value) -> str:
    """The class by which a value makes one of its kind, of a list, a tuple or a dictionary; an empty text for others."""
    if isinstance(value, v.Items):
        return {"l": "builtins.list", "t": "builtins.tuple"}.get(value.kind, "")
    return (
        "builtins.dict" if isinstance(value, v.Mapping) and value.cls is None and not value.attributes else ""
    )


def same_class(interp: Interp, left: v.Value, right: v.Value) -> bool | None:
    """Whether two values are the same class, as far as one is that of a module of a library; None for unknown."""
    names = [_name_of(interp, one) for one in (left, right)]
    if None in names:
        return None
    return names[0] == names[1] if any(isinstance(one, v.Ext) for one in (left, right)) else None


def _name_of(interp: Interp, cls: v.Value) -> str | None:
    if isinstance(cls, v.Cls):
        return cls.cls.name
    name = interp.kb.canonical(cls.name) if isinstance(cls, v.Ext) else ""
    return name if name and interp.kb.role(name, "derived-from") is not None else None


def subclass_of(interp: Interp, value: v.Value, cls: v.Value) -> bool | None:
    """Whether a class derives from a class or from one of several; None for unknown."""
    if isinstance(value, v.AnyOf):
        kinds = {subclass_of(interp, one, cls) for one in value.values}
        return kinds.pop() if len(kinds) == 1 else None
    return instance_of(interp, v.Inst(value, v.NO_ARGS), cls) if isinstance(value, v.Cls) else None


def is_class(value: v.Value) -> bool | None:
    """Whether a value is a class; None for unknown."""
    if isinstance(value, v.Cls):
        return True
    return False if isinstance(value, (v.Lit, v.Items, v.Func, v.Mod, v.Inst, v.Mapping)) else None


def is_abstract(value: v.Value) -> bool | None:
    """Whether a class leaves an abstract method to those that derive from it; None for unknown."""
    if not isinstance(value, v.Cls):
        return None
    abstract = {name for cls in value.mro() for name, one in cls.env.vars.items() if _is_left_open(one)}
    return any(_is_left_open(value.find(name)) for name in abstract)


def _is_left_open(value: v.Value | None) -> bool:
    return isinstance(value, v.Func) and any(
        isinstance(one, v.Ext) and one.name.rpartition(".")[2] == "abstractmethod" for one in value.decorated
    )


def _of_project_class(value: v.Value, cls: v.Cls) -> bool | None:
    if isinstance(value, v.Mapping):
        return cls in value.cls.mro() if value.cls is not None else None
    if isinstance(value, v.Inst):
        if cls in value.cls.mro():
            return True
        return (
            False
            if all(isinstance(one, (v.Cls, v.Ext)) for k in value.cls.mro() for one in k.bases)
            else None
        )
    return False if isinstance(value, (v.Lit, v.Items, v.Func, v.Mod)) else None
