"""The weights of a module by their names, which a loop freezes one by one: ``for name, p in model.named_parameters()``.

A loop that asks for the name is run once for each part of the module. What is known of the names in it is how they begin,
and, of layers of libraries, of which pieces they consist.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from d9mlint.interp import tensors
from d9mlint.interp import values as v
from d9mlint.interp.containers import NAMELESS, container_of, is_in_order, parts
from d9mlint.interp.known_texts import text_of_pieces
from d9mlint.interp.shapes import Form
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

_REQUIRES = "requires_grad"
_PAIR = 2
_DEEPEST = 6


def rounds(interp: Interp, stmt: m.For, iterated: v.Value) -> list[v.Value] | None:
    """The names and weights in each part of a module, for a loop that decides by the names which require grad; None where
    it does not, or not all parts are known."""
    if not isinstance(iterated, v.Obj) or not iterated.api.endswith("named_parameters"):
        return None
    module = iterated.attrs.get(tensors.MODULE_OF)
    if module is None or iterated.args.pos or iterated.args.kw or not _asks_for_names(stmt):
        return None
    return _weights(interp, module)


def _asks_for_names(stmt: m.For) -> bool:
    target = stmt.target
    if not isinstance(target, m.Seq) or len(target.elts) != _PAIR or not isinstance(target.elts[0], m.Name):
        return False
    read: set[str] = set()
    sets = False
    for one in nodes(stmt.body):
        if isinstance(one, m.Name):
            head, _, rest = one.id.partition(".")
            read.add(head)
            sets = sets or rest in (_REQUIRES, f"{_REQUIRES}_")
    return sets and target.elts[0].id in read


def _weights(interp: Interp, module: v.Value) -> list[v.Value] | None:
    held = parts_of(interp, module)
    if held is None:
        return None
    found: list[v.Value] = []
    for name, part in held:
        if isinstance(part, v.Obj) and part.api == tensors.PARAMETER:
            found.append(v.Items("t", [v.Lit(name), part]))
            continue
        if has_no_weights(interp, part):
            continue
        one = tensors.make(tensors.PARAMETER, Form(grad=True))
        one.attrs[tensors.MODULE_OF] = part
        whole = part.owner if isinstance(part, v.Member) else part
        pieces = _inner(interp, whole) if isinstance(part, v.Member) else _pieces(interp, part, 0)
        found.append(v.Items("t", [text_of_pieces(f"{name}.", pieces), one]))
    return found or None


def parts_of(interp: RunView, module: v.Value) -> list[tuple[str, v.Value]] | None:
    """The parts of a module that may have weights, and its own parameters, by name; None where there may be others."""
    container = container_of(module)
    if container is not None:
        return [(str(at), one) for at, one in enumerate(parts(container))] if is_in_order(container) else None
    if isinstance(module, v.Inst):
        bases = module.cls.external_bases()
        if not bases or any(interp.kb.role(interp.kb.canonical(one), "base-only") is None for one in bases):
            return None
        held = [(name, one) for name, one in module.attrs.items() if not name.startswith("@")]
        if any(name.startswith(NAMELESS) for name, _ in held):
            return None
        return [(name, one) for name, one in held if _may_have_weights(one)]
    if isinstance(module, v.Obj):
        role = interp.kb.role(module.api, "known-parts")
        return None if role is None else [(name, v.Member(module, name)) for name in role.more]
    return None


def _may_have_weights(value: v.Value) -> bool:
    """Whether an attribute may be a module, or is a parameter."""
    return any(
        not isinstance(one, (v.Lit, v.Items, v.Mapping, v.Func, v.Cls, v.Mod))
        and not (isinstance(one, v.Obj) and one.type == tensors.TENSOR and one.api != tensors.PARAMETER)
        for one in v.alternatives(value)
    )


def has_no_weights(interp: RunView, part: v.Value) -> bool:
    """Whether a part is a layer of a library that only computes."""
    tensor = interp.kb.tensor(part.api) if isinstance(part, v.Obj) else None
    return tensor is not None and tensor.grad not in (None, "weights")


def _inner(interp: RunView, module: v.Value) -> Sequence[str] | None:
    role = interp.kb.role(module.api, "names-in-parts") if isinstance(module, v.Obj) else None
    return None if role is None else role.more


def _pieces(interp: RunView, module: v.Value, depth: int) -> Sequence[str] | None:
    """The pieces of which the names of a module's weights consist, beside numbers; None where that is not known."""
    inner = _inner(interp, module)
    if inner is not None:
        return inner
    held = parts_of(interp, module) if depth < _DEEPEST else None
    if held is None:
        return None
    found: set[str] = set()
    for name, part in held:
        if isinstance(part, v.Obj) and part.api == tensors.PARAMETER:
            found.add(name)
            continue
        below = [_pieces(interp, one, depth + 1) for one in v.alternatives(part)]
        if None in below:
            return None
        found.update((name, *(piece for one in below for piece in one or ())))
    return sorted(found)
