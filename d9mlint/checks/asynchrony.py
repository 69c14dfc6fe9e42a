"""DET409, DET410, DET502: results of asynchronous work that are used before the work is known to have ended.

Work that was started is a flag of the state, ``async:PLACE``, and ``done:PLACE`` once something has waited for it; the
tensor that the work writes says so in its ``data``. Flags follow the paths of the program, and what a function does
is run again where they differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.checks.base import Reporter
from d9mlint.checks.storage import root
from d9mlint.interp import values as v
from d9mlint.interp.activity import may_use_cuda
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.data import TENSOR
from d9mlint.interp.devices import on_accelerator
from d9mlint.interp.heap import HEAP
from d9mlint.interp.places import Where
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks, Loop
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

_ANY = "async"
_STARTED, _DONE, _FILLED = "async:", "done:", "filled:"
_COPY, _STREAM, _COLLECTIVE, _PINNED = "copy", "stream", "collective", "pinned"
_KINDS = (_COPY, _STREAM, _COLLECTIVE, _PINNED)
_SYNCHRONIZE = "call `torch.cuda.synchronize()` or wait for an event before reading it"
_NOT_THESE = frozenset({"torch.cuda.current_stream", "torch.cuda.default_stream"})
_FINISHING = frozenset({"wait", "synchronize", "is_completed", "result"})


class Started(NamedTuple):
    """Work that was started: its kind, where, the call, and for a stream the births of what was made in it."""

    kind: str
    place: Where
    call: str
    start: int = 0
    end: int = 0


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Follow asynchronous work."""
    if not reporter.on("DET409", "DET410", "DET502"):
        return
    work = _Work(reporter)
    hooks.any_call.append(work.call)
    hooks.results.append(work.result)
    hooks.operators.append(work.operator)
    hooks.items.append(work.item)
    hooks.item_writes.append(work.write_item)
    hooks.contexts.append(work.context)
    hooks.loops.append(work.round)
    hooks.ends.append(work.end)


class _Work:
    def __init__(self, reporter: Reporter) -> None:
        self.reporter = reporter
        # Times at which the side streams whose blocks are running were entered.
        self.entered: list[int] = []

    # ---------------------------------------------------------------------------------- starting

    def result(self, interp: Interp, call: CallEvent, result: v.Value) -> None:
        for entry in interp.kb.roles(call.api):
            if entry.role == "async-copy" and all_hold(call.args, entry.when, call.owner) is True:
                self._copy(interp, entry, call, result)
            elif entry.role == "async-collective" and all_hold(call.args, entry.when) is True:
                self._collective(interp, entry, call)

    def _copy(self, interp: Interp, entry: RoleEntry, call: CallEvent, result: v.Value) -> None:
        name = call.api.rpartition(".")[2]
        into = name == "copy_"
        source = call.args.get(entry.arg, entry.pos) if into else call.owner
        target = call.owner if into else result
        device = None if into else call.args.get(entry.arg, entry.pos)
        to_host = _on_host(target) if into else device is not None and _names_host(device)
        if to_host:
            if _on_host(source):
                return
            memory = root(interp, target) if into else result
            if isinstance(memory, v.Obj):
                self._start(interp, _COPY, call, memory)
            return
        buffer = root(interp, source)
        if buffer is None or not _is_pinned(buffer) or (into and not _on_device(interp, target)):
            return
        key = _key(buffer)
        if key:
            flags = interp.state.flags
            flags[_ANY] = True
            flags[f"{_STARTED}{key}"] = Started(_PINNED, Where(interp, call.node, call.api), call_text(call))
            flags.pop(f"{_DONE}{key}", None)

    def _collective(self, interp: Interp, entry: RoleEntry, call: CallEvent) -> None:
        value = call.args.get(entry.arg or "tensor", entry.pos)
        parts = value.elts if isinstance(value, v.Items) else [value]
        tensors = [one for part in parts if (one := root(interp, part)) is not None]
        self._start(interp, _COLLECTIVE, call, *tensors)

    def _start(self, interp: Interp, kind: str, call: CallEvent, *tensors: v.Obj) -> None:
        if not isinstance(call.node, m.Call):
            return
        key = f"{interp.frame.file.path}:{call.node.start}"
        flags = interp.state.flags
        flags[_ANY] = True
        flags[f"{_STARTED}{key}"] = Started(kind, Where(interp, call.node, call.api), call_text(call))
        for tensor in tensors:
            tensor.data = f"{_STARTED}{key}"

    def context(self, interp: Interp, context: v.Value, stmt: m.With, begins: bool) -> None:
        """The block of a side stream begins or ends."""
        if not _side_stream(interp, context):
            return
        HEAP.clock += 1
        if begins:
            self.entered.append(HEAP.clock)
            return
        if not self.entered:
            return
        key = f"{interp.frame.file.path}:{stmt.start}"
        flags = interp.state.flags
        flags[_ANY] = True
        place = Where(interp, stmt.items[0].context, "torch.cuda.stream")
        flags[f"{_STARTED}{key}"] = Started(_STREAM, place, "stream", self.entered.pop(), HEAP.clock)

    # ----------------------------------------------------------------------------------- waiting

    def call(self, interp: Interp, call: CallEvent) -> None:
        if _ANY not in interp.state.flags and not self.entered and not interp.loops:
            return
        roles = interp.kb.by_role(call.api)
        name = call.api.rpartition(".")[2]
        owner = root(interp, call.owner)
        if "reads" in roles:
            for value in call.args.values():
                for one in v.alternatives(value):
                    self.read(interp, one)
        if owner is not None:
            key = _key(owner)
            if name in _FINISHING and f"{_STARTED}{key}" in interp.state.flags:
                interp.state.flags[f"{_DONE}{key}"] = True
                return
            if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
                self.written(interp, owner, call.node)
            elif "views" not in roles and "looks-only" not in roles:
                # A copy back to the device follows on the stream of the first one.
                kinds = (_STREAM, _COLLECTIVE) if name in ("to", "cuda") else _KINDS
                if self.read(interp, call.owner, kinds):
                    return
        if "synchronizes" in roles:
            self._finish(interp, _KINDS)
        elif "waits" in roles:
            self._finish(interp, (_COLLECTIVE,) if name == "wait" else (_STREAM,))
        elif name in ("wait", "wait_stream") and call.owner is not None and owner is None:
            self._finish(interp, (_COLLECTIVE, _STREAM))

    def _finish(self, interp: Interp, kinds: tuple[str, ...]) -> None:
        flags = interp.state.flags
        for flag, started in flags.starting(_STARTED) if _ANY in flags else ():
            if isinstance(started, Started) and started.kind in kinds:
                flags[_DONE + flag[len(_STARTED) :]] = True

    # ----------------------------------------------------------------------------------- reading

    def operator(self, interp: Interp, op: str, left: v.Value, right: v.Value, node: Any) -> None:
        self.read(interp, left)
        self.read(interp, right)

    def item(self, interp: Interp, owner: v.Value, index: v.Value, node: Any) -> None:
        self.read(interp, owner)

    def write_item(self, interp: Interp, owner: v.Value, index: v.Value, value: v.Value, node: Any) -> None:
        self.read(interp, value)
        if _ANY in interp.state.flags or interp.loops:
            memory = root(interp, owner)
            if memory is not None:
                self.written(interp, memory, node)

    def read(self, interp: Interp, value: v.Value | None, kinds: tuple[str, ...] = _KINDS) -> bool:
        """A tensor is computed with, or looked at by the host: whether that is too early."""
        flags = interp.state.flags
        if _ANY not in flags or not isinstance(value, (v.Obj, v.Member)):
            return False
        memory = root(interp, value)
        if memory is None:
            return False
        state = memory.data
        if isinstance(state, str) and state.startswith(_STARTED):
            started = flags.get(state)
            if (
                isinstance(started, Started)
                and started.kind in kinds
                and _DONE + state[len(_STARTED) :] not in flags
            ):
                self._report(interp, started)
                flags[_DONE + state[len(_STARTED) :]] = True
                return True
        if (
            not self.entered
            and not _fetched(memory)
            and (memory.type == TENSOR or _on_device(interp, memory))
        ):
            for flag, started in list(flags.items()):
                if (
                    flag.startswith(_STARTED)
                    and isinstance(started, Started)
                    and started.start < memory.birth < started.end
                    and _DONE + flag[len(_STARTED) :] not in flags
                ):
                    self._report(interp, started)
                    flags[_DONE + flag[len(_STARTED) :]] = True
                    return True
        return False

    def written(self, interp: Interp, memory: v.Obj, node: Any) -> None:
        """The host, or a kernel, writes into a tensor."""
        flags = interp.state.flags
        key = _key(memory)
        if self.entered and memory.birth < self.entered[-1] and memory.type == TENSOR:
            return
        if not _is_pinned(memory) or not key:
            return
        if interp.loops:
            flags[f"{_FILLED}{key}"] = Where(interp, node, memory.api)
        started = flags.get(f"{_STARTED}{key}")
        if isinstance(started, Started) and f"{_DONE}{key}" not in flags:
            self._reused(interp, Where(interp, node, memory.api), started, "")
            flags[f"{_DONE}{key}"] = True

    def round(self, interp: Interp, loop: Loop, begins: bool) -> None:
        """A loop's body has run: a pinned buffer that it filled and sent is filled again in the next round."""
        flags = interp.state.flags
        if begins or _ANY not in flags:
            return
        for flag, started in flags.starting(_STARTED):
            if not isinstance(started, Started) or started.kind != _PINNED:
                continue
            key = flag[len(_STARTED) :]
            filled = flags.get(f"{_FILLED}{key}")
            path, _, allocated = key.rpartition(":")
            if not isinstance(filled, Where) or f"{_DONE}{key}" in flags:
                continue
            if loop.holds(filled.site.path, filled.site.start) and not loop.holds(path, int(allocated)):
                self._reused(interp, filled, started, " in the next round")
                flags[f"{_DONE}{key}"] = True

    # --------------------------------------------------------------------------------- reporting

    def _report(self, interp: Interp, started: Started) -> None:
        if started.kind == _COPY:
            interp.notes.setdefault("early-reads", []).append(started)
            if interp.entry is None:
                self._copied(interp, started)
        elif started.kind == _STREAM:
            self.reporter.report(
                interp,
                "DET410",
                started.place,
                "a tensor that is computed on this stream is used on another one that did not wait for it: "
                "its contents depend on timing",
                "call `torch.cuda.current_stream().wait_stream(stream)` after the block",
                subject=started.place.subject,
            )
        else:
            self.reporter.report(
                interp,
                "DET502",
                started.place,
                f"the tensor of the asynchronous `{started.call}` is used before `wait()`: "
                "it may hold the old values, or some of both",
                "call `wait()` on the returned handle before the tensor is used",
                subject=started.place.subject,
            )

    def _copied(self, interp: Interp, started: Started) -> None:
        self.reporter.report(
            interp,
            "DET409",
            started.place,
            f"`{started.call}(non_blocking=True)` to the CPU is read before a synchronization: "
            "the copy may not have arrived",
            _SYNCHRONIZE,
            subject=started.place.subject,
        )

    def _reused(self, interp: Interp, place: Where, started: Started, when: str) -> None:
        self.reporter.report(
            interp,
            "DET409",
            place,
            f"this pinned buffer is overwritten{when} while the asynchronous `{started.call}` may still read it",
            "synchronize before the buffer is filled again, or use one buffer for each copy in flight",
            subject="pinned buffer",
        )

    def end(self, interp: Interp) -> None:
        """Copies count where there is a GPU to copy from; a collective that nothing waits for is never known to end."""
        if interp.entry is None:
            return
        if may_use_cuda(interp):
            for started in interp.notes.get("early-reads", []):
                self._copied(interp, started)
        flags = interp.state.flags
        for flag, started in list(flags.items()):
            if isinstance(started, Started) and started.kind == _COLLECTIVE:
                if _DONE + flag[len(_STARTED) :] not in flags:
                    self.reporter.report(
                        interp,
                        "DET502",
                        started.place,
                        f"nothing waits for the asynchronous `{started.call}`: what uses its tensor may see old values",
                        "call `wait()` on the returned handle before the tensor is used",
                        subject=started.place.subject,
                    )


def _key(value: v.Obj) -> str:
    """The place where an object was made, as a name; empty when it is not known."""
    return (
        f"{value.file.path}:{value.node.start}" if value.file is not None and value.node is not None else ""
    )


def _side_stream(interp: Interp, context: v.Value) -> bool:
    if not isinstance(context, v.Obj) or interp.kb.role(context.api, "stream") is None:
        return False
    stream = context.args.get("stream", 0)
    if isinstance(stream, v.Obj) and stream.api in _NOT_THESE:
        return False
    return not (context.api.endswith(".stream") and stream is not None and v.is_none(stream) is True)


def _names_host(device: v.Value) -> bool:
    """Whether a device value is the CPU for certain, and not because no option says otherwise."""
    if isinstance(device, v.Lit):
        return isinstance(device.value, str) and device.value.startswith("cpu") and not device.option
    if isinstance(device, v.Obj) and device.api == "torch.device":
        first = device.args.get("type", 0)
        return first is not None and _names_host(first)
    return False


def _fetched(value: v.Obj) -> bool:
    """Whether a tensor was fetched from the device by ``cpu()``, which waits for it."""
    while value.type == TENSOR and value.api.rpartition(".")[2] != "cpu":
        behind = value.args.pos[0] if value.args.pos and value.api in ("torch.Tensor.data",) else None
        if not isinstance(behind, v.Obj):
            return False
        value = behind
    return value.api.rpartition(".")[2] == "cpu"


def _on_host(value: v.Value | None) -> bool:
    """Whether a tensor is known to be in the memory of the host."""
    if not isinstance(value, v.Obj):
        return False
    if _fetched(value) or _is_pinned(value):
        return True
    if value.api.startswith("torch.") and value.api.count(".") == 1 and value.type == TENSOR:
        device = value.args.kw.get("device")
        return (
            (device is None or _names_host(device))
            and any(value.api.endswith(name) for name in _MAKING)
            and not any(isinstance(one, v.Obj) and one.type == TENSOR for one in value.args.pos)
        )
    return False


_MAKING = (
    *(".empty", ".zeros", ".ones", ".full", ".tensor", ".arange", ".linspace", ".eye"),
    *(".rand", ".randn", ".randint", ".randperm", ".from_numpy"),
)


def _on_device(interp: Interp, value: v.Value | None) -> bool:
    if not isinstance(value, v.Obj):
        return False
    device = value.args.kw.get("device")
    if value.api.endswith(".cuda"):
        return True
    if value.api.endswith(".to"):
        device = value.args.get("device", 0)
    return device is not None and on_accelerator(interp, device)


def _is_pinned(value: v.Obj) -> bool:
    pinned = value.args.kw.get("pin_memory")
    return value.api.endswith(".pin_memory") or (pinned is not None and v.truth(pinned) is True)
