"""Tensors that a function makes and fills with random numbers, and that are no parameters:
``nn.init.normal_(torch.empty(4))``. Loaded weights do not replace them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import argument_node
from d9mlint.checks.ops.given import receiver_node
from d9mlint.interp import values as v
from d9mlint.interp.naming import running
from d9mlint.interp.storage import made_at, root
from d9mlint.interp.tensors import TENSOR
from d9mlint.ir import nodes as m
from d9mlint.ir.derived import derived_names, elements, holds
from d9mlint.ir.traversal import called_name, nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RngEntry

_PASSED_ON = frozenset({"views", "copies", "async-copy"})


def fills_new_tensor(run: RunView, entry: RngEntry, node: Any) -> bool:
    """Whether a call draws into a tensor that the running function has made, outside the constructors of models, and of
    which it makes no parameter."""
    function = running(run)
    if not entry.in_place or entry.library != "torch" or function is None or not isinstance(node, m.Call):
        return False
    if any(frame.func is not None and frame.func.fn.name == "__init__" for frame in run.stack()):
        return False
    target = receiver_node(node) if entry.method else argument_node(node, "tensor", 0)
    while isinstance(target, m.Call) and _gives_receiver(run, target):
        target = receiver_node(target)
    if target is None:
        return False
    meant = list(v.alternatives(run.value_of(target)))
    if not all(_is_new_here(run, one, function) for one in meant):
        return False
    return not _becomes_parameter(run, function, node)


def _gives_receiver(run: RunView, call: m.Call) -> bool:
    """Whether a method of a tensor gives it in another form or at another place."""
    return not _PASSED_ON.isdisjoint(run.kb.by_role(f"{TENSOR}.{called_name(call)}"))


def _is_new_here(run: RunView, value: v.Value, function: m.Function) -> bool:
    """Whether a value is a tensor that the function has made of nothing, and no parameter."""
    if not isinstance(value, v.Obj) or run.kb.role(value.api, "holds") is not None:
        return False
    made = root(run, value)
    site = made_at(made) if made is not None else None
    if made is None or site is None or site.path != run.frame.file.path:
        return False
    if not function.start <= site.start < function.end_of_body:
        return False
    entry = run.kb.tensor(made.api)
    return run.kb.role(made.api, "allocates") is not None or (entry is not None and entry.device == "new")


def _becomes_parameter(run: RunView, function: m.Function, node: m.Call) -> bool:
    """Whether the function makes a parameter of what a call has filled, or writes it over another tensor."""
    names = derived_names(function, [node.start], lambda _: "")
    for value in _kept_in_tensors(run, function):
        if holds(value, [node.start]) or not names.isdisjoint(elements(value, lambda _: "")):
            return True
    return False


def _kept_in_tensors(run: RunView, function: m.Function) -> Iterator[m.Expr]:
    """What a function makes parameters or buffers of, or writes over tensors that there are."""
    role = run.kb.role
    for one in nodes(function.body):
        if isinstance(one, m.Call):
            func = run.value_of(one.func) if isinstance(one.func, m.Name) else None
            name = called_name(one)
            methods = (f"{TENSOR}.{name}", f"torch.nn.Module.{name}")
            known = isinstance(func, v.Ext) and role(run.kb.canonical(func.name), "holds") is not None
            if known or role(methods[0], "overwrites") is not None or role(methods[1], "holds") is not None:
                yield from one.args
                yield from (keyword.value for keyword in one.keywords)
        elif isinstance(one, m.Assign) and any(_is_memory(target) for target in one.targets):
            yield one.value


def _is_memory(target: m.Expr) -> bool:
    """Whether a target is the memory of a tensor, or a part of what an object holds: ``w.data``, ``layer.weight[0]``."""
    inner = target.value if isinstance(target, m.Subscript) else target
    name = inner.id if isinstance(inner, m.Name) else inner.name if isinstance(inner, m.Attr) else ""
    return "." in name and (isinstance(target, m.Subscript) or name.endswith(".data"))
