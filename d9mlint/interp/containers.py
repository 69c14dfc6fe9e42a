"""Containers of modules: what iterating or indexing an ``nn.ModuleList`` or ``nn.Sequential`` gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_LISTS = ("torch.nn.ModuleList", "torch.nn.ParameterList")
CONTAINERS = frozenset({*_LISTS, "torch.nn.Sequential"})
_ADDED = "@added"


def parts(value: v.Obj) -> list[v.Value]:
    """The modules that are known to be in a container, in their order."""
    if value.api not in CONTAINERS:
        return []
    given = value.args.pos
    if value.api in _LISTS:
        first = value.args.get("modules", 0)
        given = first.elts if isinstance(first, v.Items) else parts(first) if isinstance(first, v.Obj) else []
    added = value.attrs.get(_ADDED)
    return [*given, *added.elts] if isinstance(added, v.Items) else given


def any_part(value: v.Obj) -> v.Value:
    """One of the modules in a container: of many, one of each kind."""
    kinds: dict[Any, v.Value] = {}
    for part in parts(value):
        kind = part.cls if isinstance(part, v.Inst) else part.api if isinstance(part, v.Obj) else part
        kinds.setdefault(kind, part)
    return v.join(list(kinds.values())[: v.MAX_ALTERNATIVES])


def add(interp: Interp, owner: v.Value, name: str, args: v.Args, node: Any) -> v.Value | None:
    """``modules.append(m)``, ``modules.extend(ms)``, ``modules.add_module(name, m)``."""
    if not isinstance(owner, v.Obj):
        return None
    last = args.pos[-1] if args.pos else v.UNKNOWN
    known = owner.attrs.get(_ADDED)
    before = known.elts if isinstance(known, v.Items) else []
    new = last.elts if name == "extend" and isinstance(last, v.Items) else [last]
    owner.attrs[_ADDED] = v.Items("l", [*before, *new][:64], True)
    return owner


CONTAINER_METHODS = {
    f"{api}.{name}": add for api in CONTAINERS for name in ("append", "extend", "insert", "add_module")
}
