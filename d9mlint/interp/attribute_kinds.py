"""What the attributes of a class of the program are, texts or numbers, as its code shows it: by annotations, by what its
methods store in them, and by what they have at first.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memo, memoized
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

NUMBER, TEXT = "number", "text"
_ANNOTATIONS = {"str": TEXT, "bytes": TEXT, "int": NUMBER, "float": NUMBER, "bool": NUMBER}
_CALLS = {"str": TEXT, "repr": TEXT, "int": NUMBER, "float": NUMBER, "len": NUMBER, "bool": NUMBER}
_known: dict[int, tuple[m.Class, dict[str, str]]] = memo()


def of_attribute(interp: Interp, cls: v.Cls, name: str) -> str:
    """What an attribute of instances of a class is, ``""`` for unknown."""
    for one in cls.mro():
        found = _of_class(interp, one).get(name)
        if found is not None:
            return found
    return ""


def has_texts(interp: Interp, cls: v.Cls) -> bool:
    """Whether the fields by which instances of a class are compared, and so hashed, have texts among them."""
    if not cls.decorated and not cls.external_bases():
        return False
    if cls.find("__hash__") is not None or cls.find("__eq__") is not None:
        return False
    return any(
        isinstance(stmt, m.AnnAssign) and of_annotation(stmt.annotation) == TEXT
        for one in cls.mro()
        for stmt in one.cls.body
    )


def hashed_by(interp: Interp, inst: v.Inst) -> list[v.Value | str]:
    """What decides the hash of an instance: values, or kinds as the code shows them; empty where that is not known."""
    method = inst.cls.find("__hash__")
    if method is not None:
        if not isinstance(method, v.Func) or not method.fn.params:
            return []
        returned = [one.value for one in interp.body(method) if isinstance(one, m.Return)]
        return _hashed(interp, inst, returned[0], method.fn.params[0].name) if len(returned) == 1 else []
    if inst.cls.find("__eq__") is not None or not _compares_fields(interp, inst.cls):
        return []
    names = [
        stmt.target.id
        for one in inst.cls.mro()
        for stmt in one.cls.body
        if isinstance(stmt, m.AnnAssign) and isinstance(stmt.target, m.Name)
    ]
    return [_attribute(interp, inst, name) for name in names]


def _compares_fields(interp: Interp, cls: v.Cls) -> bool:
    """Whether a base class or a decorator of a library has instances compared, and hashed, by their fields."""
    names = [
        one.api if isinstance(one, v.Obj) else one.name
        for one in cls.decorated
        if isinstance(one, (v.Obj, v.Ext))
    ]
    names += cls.external_bases()
    return bool(names) and all(interp.kb.role(name, "compares-fields") is not None for name in names)


def _hashed(interp: Interp, inst: v.Inst, node: m.Expr | None, owner: str) -> list[v.Value | str]:
    """The values in an expression, which a method gives as the hash of its instance."""
    if (
        isinstance(node, m.Call)
        and isinstance(node.func, m.Name)
        and node.func.id == "hash"
        and len(node.args) == 1
    ):
        return _hashed(interp, inst, node.args[0], owner)
    if isinstance(node, m.Seq) and node.kind == "t":
        return [part for elt in node.elts for part in _hashed(interp, inst, elt, owner)]
    if isinstance(node, m.BinOp):
        return [part for side in (node.left, node.right) for part in _hashed(interp, inst, side, owner)]
    if isinstance(node, m.Const):
        return [_of_value(node, ())]
    if isinstance(node, m.Name):
        first, _, name = node.id.partition(".")
        if first == owner and name and "." not in name:
            return [_attribute(interp, inst, name)]
    return [""]


def _attribute(interp: Interp, inst: v.Inst, name: str) -> v.Value | str:
    held: v.Value | None = inst.attrs.get(name)
    return held if held is not None and held is not v.UNKNOWN else of_attribute(interp, inst.cls, name)


def is_stored(interp: Interp, name: str) -> bool:
    """Whether a constructor of the program stores something in an attribute of this name."""
    return any(
        name in _names_stored(constructor.fn)
        for _, constructor in interp.methods_named("__init__")
        if constructor.fn.params
    )


@memoized
def _names_stored(fn: m.Function) -> frozenset[str]:
    return frozenset(name for name, _, _ in _stored(fn))


def value_of(interp: Interp, node: m.Name) -> v.Value:
    """The value of a name, looked at without running anything: properties are unknown."""
    first, *rest = node.id.split(".")
    value = interp.lookup(first)
    if value is None:
        return v.UNKNOWN
    if not isinstance(value, v.Inst):
        return interp.eval(node)
    for part in rest:
        if not isinstance(value, v.Inst):
            return v.UNKNOWN
        value = value.attrs.get(part, v.UNKNOWN)
    return value


def class_of(interp: Interp, node: m.Expr) -> v.Cls | None:
    """The class of the program whose instance a variable or an attribute is, also as the annotation of a parameter says."""
    if not isinstance(node, m.Name):
        return None
    value = value_of(interp, node)
    if isinstance(value, v.Inst):
        return value.cls
    fn = interp.frame.func.fn if interp.frame.func is not None else None
    for param in fn.params if fn is not None and value is v.UNKNOWN else ():
        if param.name == node.id and isinstance(param.annotation, m.Name):
            named = interp.lookup(param.annotation.id)
            return named if isinstance(named, v.Cls) else None
    return None


def _of_class(interp: Interp, cls: v.Cls) -> dict[str, str]:
    facts = interp.whole(cls.file)
    known = _known.get(id(cls.cls))
    if known is None or known[0] is not cls.cls:
        said: dict[str, str] = {}
        kinds: dict[str, set[str]] = {}
        for stmt in cls.cls.body:
            if isinstance(stmt, m.AnnAssign) and isinstance(stmt.target, m.Name):
                said[stmt.target.id] = of_annotation(stmt.annotation)
            elif isinstance(stmt, m.Assign):
                for target in stmt.targets:
                    if isinstance(target, m.Name):
                        kinds.setdefault(target.id, set()).add(_of_value(stmt.value, ()))
        for fn in facts.functions:
            if fn.cls >= 0 and facts.classes[fn.cls] is cls.cls and fn.params:
                for name, kind, sure in _stored(fn):
                    if sure:
                        said[name] = kind
                    kinds.setdefault(name, set()).add(kind)
        found = {name: TEXT for name, given in kinds.items() if TEXT in given and NUMBER not in given}
        known = _known[id(cls.cls)] = (cls.cls, found | said)
    return known[1]


def _stored(fn: m.Function) -> Iterator[tuple[str, str, bool]]:
    """What a method stores in attributes of its instance: the name, what it is, and whether an annotation says so."""
    owner = fn.params[0].name
    for one in nodes(fn.body):
        if isinstance(one, m.AnnAssign) and isinstance(one.target, m.Name):
            first, _, name = one.target.id.partition(".")
            if first == owner and name and "." not in name:
                yield name, of_annotation(one.annotation), True
        elif isinstance(one, m.Assign):
            for target in one.targets:
                first, _, name = target.id.partition(".") if isinstance(target, m.Name) else ("", "", "")
                if first == owner and name and "." not in name:
                    yield name, _of_value(one.value, fn.params), False


def _of_value(node: m.Expr, params: list[m.Param] | tuple[()]) -> str:
    if isinstance(node, m.FString):
        return TEXT
    if isinstance(node, m.Const):
        if isinstance(node.value, str):
            return TEXT
        return "" if node.value is None else NUMBER
    if isinstance(node, m.Call) and isinstance(node.func, m.Name):
        return _CALLS.get(node.func.id, "")
    if isinstance(node, m.Name):
        for param in params:
            if param.name == node.id and param.annotation is not None:
                return of_annotation(param.annotation)
    return ""


def of_annotation(node: m.Expr) -> str:
    """What ``str`` says, also as a part of ``str | None``; nothing where it may be several."""
    if isinstance(node, m.Const) and isinstance(node.value, str):
        return _ANNOTATIONS.get(node.value, "")
    if isinstance(node, m.Name):
        return _ANNOTATIONS.get(node.id, "")
    if (
        isinstance(node, m.BinOp)
        and node.op == "|"
        and isinstance(node.right, m.Const)
        and node.right.value is None
    ):
        return of_annotation(node.left)
    if isinstance(node, m.Subscript) and isinstance(node.value, m.Name):
        if node.value.id.endswith("Optional"):
            return of_annotation(node.index)
        if node.value.id.lower().endswith("tuple"):
            parts = node.index.elts if isinstance(node.index, m.Seq) else [node.index]
            # Dots stand for more of the same.
            kinds = {of_annotation(one) for one in parts if not isinstance(one, m.Dots)}
            return kinds.pop() if len(kinds) == 1 else ""
    return ""
