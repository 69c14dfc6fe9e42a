"""DET309: tensors whose memory is read before anything was written to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.base import Reporter
from d9mlint.checks.text import node_text
from d9mlint.interp import values as v
from d9mlint.interp.places import Where

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp

EMPTY = frozenset(
    {"torch.empty", "torch.empty_like", "torch.empty_strided", "torch.Tensor.new_empty", "torch.Tensor"}
)
# Methods that look at no element.
_SHAPE_METHODS = frozenset(
    [
        "size",
        "dim",
        "numel",
        "element_size",
        "stride",
        "data_ptr",
        "requires_grad_",
        "is_contiguous",
        "get_device",
        "nelement",
        "type_as",
        "to",
        "cuda",
        "cpu",
        "detach",
        "share_memory_",
        "pin_memory",
        "view",
        "reshape",
        "expand",
        "unsqueeze",
        "squeeze",
        "permute",
        "transpose",
        "t",
        "contiguous",
        "flatten",
        "new_zeros",
        "new_ones",
        "new_empty",
        "new_tensor",
        "new_full",
        "register_hook",
        "is_cuda",
        "type",
        "numpy",
        "chunk",
        "split",
        "unbind",
        "narrow",
        "select",
        "index_select",
        "unfold",
        "diagonal",
        "as_strided",
        "storage",
        "untyped_storage",
        "resize_",
        "half",
        "float",
        "double",
        "long",
        "int",
    ]
)


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Follow what happens to uninitialised tensors."""
    if not reporter.on("DET309"):
        return

    def read(interp: Interp, value: v.Value) -> None:
        if not _is_fresh(value) or interp.entry is None:
            return
        assert isinstance(value, v.Obj)
        value.data = "told"
        node = value.node
        if node is None or value.file is None:
            return
        place = Where(interp, node, value.api)
        place.site = place.site._replace(path=value.file.path)
        reporter.report(
            interp,
            "DET309",
            place,
            f"`{node_text(node, value.api)}` is read before it is written: its contents are uninitialized",
            "use `torch.zeros`, or write every element before reading",
            subject=value.api,
        )

    def operator(interp: Interp, op: str, left: v.Value, right: v.Value, node: Any) -> None:
        read(interp, left)
        read(interp, right)

    def call(interp: Interp, event: CallEvent) -> None:
        name = event.api.rpartition(".")[2]
        owner = event.owner
        if _is_fresh(owner):
            assert isinstance(owner, v.Obj)
            if name.endswith("_") and name not in _SHAPE_METHODS:
                owner.data = "written"
            elif name in _SHAPE_METHODS:
                # A view shares the memory: what happens through it is not followed.
                if name not in ("size", "dim", "numel", "stride", "element_size"):
                    owner.data = "shared"
            else:
                read(interp, owner)
        for value in event.args.values():
            parts = value.elts if isinstance(value, v.Items) else v.alternatives(value)
            for one in parts:
                if _is_fresh(one):
                    assert isinstance(one, v.Obj)
                    # Handed to a call that may fill it: an initialiser, a collective, out=.
                    one.data = "shared"

    def item(interp: Interp, owner: v.Value, *rest: Any) -> None:
        if _is_fresh(owner):
            assert isinstance(owner, v.Obj)
            owner.data = "written"

    hooks.operators.append(operator)
    hooks.any_call.append(call)
    hooks.items.append(item)
    hooks.item_writes.append(item)
    hooks.item_updates.append(item)


def _is_fresh(value: v.Value | None) -> bool:
    if not isinstance(value, v.Obj) or value.data is not None or value.api not in EMPTY:
        return False
    if value.api == "torch.Tensor":
        # torch.Tensor(2, 3) allocates; torch.Tensor(list) copies.
        sizes = value.args.pos
        return len(sizes) > 1 or (
            bool(sizes) and isinstance(sizes[0], v.Lit) and isinstance(sizes[0].value, int)
        )
    sizes = value.args.pos[:1]
    return not (sizes and isinstance(sizes[0], v.Lit) and sizes[0].value == 0)
