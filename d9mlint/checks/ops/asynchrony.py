"""DET409, DET410, DET502: results of asynchronous work that are used before the work is known to have ended.

Work that was started marks the path with its place, and so does what has waited for it; the tensor that the work
writes is marked itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.checks.base import Rule, argument_node
from d9mlint.interp import values as v
from d9mlint.interp.activity import may_use_cuda
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.data import TENSOR
from d9mlint.interp.devices import on_accelerator
from d9mlint.interp.events import (
    CallEvent,
    ContextEvent,
    EndEvent,
    ItemEvent,
    ItemWriteEvent,
    LoopEvent,
    OperatorEvent,
    ResultEvent,
)
from d9mlint.interp.listening import on
from d9mlint.interp.memory import Tick, marks_path, marks_values, remembered
from d9mlint.interp.places import Where
from d9mlint.interp.storage import root
from d9mlint.interp.tensors import device as device_of
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Role, RoleEntry

_WORK = "async:"
"""Marks a tensor that work writes, with the place of the work."""
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


class Asynchrony(Rule):
    """DET409, DET410, DET502: work that is not waited for."""

    codes = ("DET409", "DET410", "DET502")
    entered = remembered(tuple[int, ...])
    """Times at which the side streams whose blocks are running were entered."""
    early = remembered(list[Started])
    """Copies that are read too early."""
    started = marks_path(Started)
    done = marks_path(bool)
    filled = marks_path(Where)
    """By the place of the work: what was started and waited for, and pinned buffers that were filled."""
    contents = marks_values()

    # ---------------------------------------------------------------------------------- starting

    @on(ResultEvent)
    def result(self, event: ResultEvent) -> None:
        """A call gave something."""
        call, result = event
        for entry in self.run.kb.roles(call.api):
            if entry.role == "async-copy" and all_hold(call.args, entry.when, call.owner) is True:
                self._copy(entry, call, result)
            elif entry.role == "async-collective" and all_hold(call.args, entry.when) is True:
                self._collective(entry, call)

    def _copy(self, entry: RoleEntry, call: CallEvent, result: v.Value) -> None:
        name = call.api.rpartition(".")[2]
        into = name == "copy_"
        source = call.args.get(entry.arg, entry.pos) if into else call.owner
        target = call.owner if into else result
        device = None if into else call.args.get(entry.arg, entry.pos)
        to_host = _on_host(target) if into else device is not None and _names_host(device)
        if to_host:
            known = device_of([source])
            if _on_host(source) or known == "cpu":
                return
            written = into or _is_written(argument_node(call.node, entry.arg, entry.pos))
            if not written and not known and not _on_device(self.run, source):
                # Where the program keeps its device in a variable, what it moves is data that are on the host.
                return
            memory = root(self.run, target) if into else result
            if isinstance(memory, v.Obj):
                self._start(_COPY, call, memory)
            return
        buffer = root(self.run, source)
        if buffer is None or not _is_pinned(buffer) or (into and not _on_device(self.run, target)):
            return
        key = _key(buffer)
        if key:
            self.started[key] = Started(_PINNED, Where(self.run, call.node, call.api), call_text(call))
            self.done.pop(key)

    def _collective(self, entry: RoleEntry, call: CallEvent) -> None:
        value = call.args.get(entry.arg or "tensor", entry.pos)
        parts = value.elts if isinstance(value, v.Items) else [value]
        tensors = [one for part in parts if (one := root(self.run, part)) is not None]
        self._start(_COLLECTIVE, call, *tensors)

    def _start(self, kind: str, call: CallEvent, *tensors: v.Obj) -> None:
        if not isinstance(call.node, m.Call):
            return
        key = f"{self.run.frame.file.path}:{call.node.start}"
        self.started[key] = Started(kind, Where(self.run, call.node, call.api), call_text(call))
        for tensor in tensors:
            self.contents[tensor] = f"{_WORK}{key}"

    @on(ContextEvent)
    def context(self, event: ContextEvent) -> None:
        """The block of a side stream begins or ends."""
        context, stmt, begins = event
        if not _side_stream(self.run, context):
            return
        if begins:
            self.entered = (*self.entered, Tick(self.run.now))
            return
        if not self.entered:
            return
        key = f"{self.run.frame.file.path}:{stmt.start}"
        place = Where(self.run, stmt.items[0].context, "torch.cuda.stream")
        *outer, since = self.entered
        self.entered = tuple(outer)
        self.started[key] = Started(_STREAM, place, "stream", since, self.run.now)

    # ----------------------------------------------------------------------------------- waiting

    @on(CallEvent)
    def call(self, call: CallEvent) -> None:
        """Something is called."""
        roles = self.run.kb.by_role(call.api)
        if not roles and call.owner is None:
            return
        name = call.api.rpartition(".")[2]
        if not (name.endswith("_") and self.run.loops) and not self.started and not self.entered:
            # Nothing can be too early yet, nor is a buffer filled that a later round may fill again.
            return
        owner = root(self.run, call.owner)
        if "reads" in roles:
            for value in call.args.values():
                for one in v.alternatives(value):
                    self.read(one)
        if owner is not None:
            key = _key(owner)
            if name in _FINISHING and key in self.started:
                self.done[key] = True
                return
            if name.endswith("_") and not name.endswith("__") and name != "requires_grad_":
                self.written(owner, call.node)
            elif "views" not in roles and "looks-only" not in roles:
                # A copy back to the device follows on the stream of the first one.
                kinds = (_STREAM, _COLLECTIVE) if name in ("to", "cuda") else _KINDS
                if self.read(call.owner, kinds):
                    return
        if "synchronizes" in roles or (name == "to" and _waits_for_host(call.args, roles)):
            self._finish(_KINDS)
        elif "waits" in roles:
            self._finish((_COLLECTIVE,) if name == "wait" else (_STREAM,))
        elif name in ("wait", "wait_stream") and call.owner is not None and owner is None:
            self._finish((_COLLECTIVE, _STREAM))

    def _finish(self, kinds: tuple[str, ...]) -> None:
        for key, started in self.started.items():
            if started.kind in kinds:
                self.done[key] = True

    # ----------------------------------------------------------------------------------- reading

    @on(OperatorEvent)
    def operator(self, event: OperatorEvent) -> None:
        """An operator is applied."""
        self.read(event.left)
        self.read(event.right)

    @on(ItemEvent)
    def item(self, event: ItemEvent) -> None:
        """An element is read."""
        self.read(event.owner)

    @on(ItemWriteEvent)
    def write_item(self, event: ItemWriteEvent) -> None:
        """An element is written."""
        owner, _, value, node = event
        self.read(value)
        if self.run.loops or self.started:
            memory = root(self.run, owner)
            if memory is not None:
                self.written(memory, node)

    def read(self, value: v.Value | None, kinds: tuple[str, ...] = _KINDS) -> bool:
        """A tensor is computed with, or looked at by the host: whether that is too early."""
        if not isinstance(value, (v.Obj, v.Member)) or not self.started:
            return False
        memory = root(self.run, value)
        if memory is None:
            return False
        state = memory.data
        if isinstance(state, str) and state.startswith(_WORK):
            key = state[len(_WORK) :]
            started = self.started.get(key)
            if started is not None and started.kind in kinds and key not in self.done:
                self._used(started)
                self.done[key] = True
                return True
        if (
            not self.entered
            and not _fetched(memory)
            and (memory.type == TENSOR or _on_device(self.run, memory))
        ):
            for key, started in self.started.items():
                if started.start < memory.birth < started.end and key not in self.done:
                    self._used(started)
                    self.done[key] = True
                    return True
        return False

    def written(self, memory: v.Obj, node: Any) -> None:
        """The host, or a kernel, writes into a tensor."""
        key = _key(memory)
        if self.entered and memory.birth < self.entered[-1] and memory.type == TENSOR:
            return
        if not _is_pinned(memory) or not key:
            return
        if self.run.loops:
            self.filled[key] = Where(self.run, node, memory.api)
        started = self.started.get(key)
        if started is not None and key not in self.done:
            self._reused(Where(self.run, node, memory.api), started, "")
            self.done[key] = True

    @on(LoopEvent)
    def round(self, event: LoopEvent) -> None:
        """A loop's body has run: a pinned buffer that it filled and sent is filled again in the next round."""
        loop, begins = event
        if begins:
            return
        for key, started in self.started.items():
            if started.kind != _PINNED:
                continue
            filled = self.filled.get(key)
            path, _, allocated = key.rpartition(":")
            if filled is None or key in self.done:
                continue
            if loop.holds(filled.site.path, filled.site.start) and not loop.holds(path, int(allocated)):
                self._reused(filled, started, " in the next round")
                self.done[key] = True

    # --------------------------------------------------------------------------------- reporting

    def _used(self, started: Started) -> None:
        if started.kind == _COPY:
            self.early.append(started)
            if self.run.entry is None:
                self._copied(started)
        elif started.kind == _STREAM:
            self.report(
                "DET410",
                started.place,
                "a tensor that is computed on this stream is used on another one that did not wait for it: "
                "its contents depend on timing",
                "call `torch.cuda.current_stream().wait_stream(stream)` after the block",
                subject=started.place.subject,
            )
        else:
            self.report(
                "DET502",
                started.place,
                f"the tensor of the asynchronous `{started.call}` is used before `wait()`: "
                "it may hold the old values, or some of both",
                "call `wait()` on the returned handle before the tensor is used",
                subject=started.place.subject,
            )

    def _copied(self, started: Started) -> None:
        self.report(
            "DET409",
            started.place,
            f"`{started.call}(non_blocking=True)` to the CPU is read before a synchronization: "
            "the copy may not have arrived",
            _SYNCHRONIZE,
            subject=started.place.subject,
        )

    def _reused(self, place: Where, started: Started, when: str) -> None:
        self.report(
            "DET409",
            place,
            f"this pinned buffer is overwritten{when} while the asynchronous `{started.call}` may still read it",
            "synchronize before the buffer is filled again, or use one buffer for each copy in flight",
            subject="pinned buffer",
        )

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Copies count where there is a GPU to copy from; a collective that nothing waits for is never known to end."""
        if self.run.entry is None:
            return
        if may_use_cuda(self.run):
            for started in self.early:
                self._copied(started)
        for key, started in self.started.items():
            if started.kind == _COLLECTIVE:
                if key not in self.done:
                    self.report(
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


def _side_stream(interp: RunView, context: v.Value) -> bool:
    if not isinstance(context, v.Obj) or interp.kb.role(context.api, "stream") is None:
        return False
    stream = context.args.get("stream", 0)
    if isinstance(stream, v.Obj) and stream.api in _NOT_THESE:
        return False
    return not (context.api.endswith(".stream") and stream is not None and v.is_none(stream) is True)


def _waits_for_host(args: v.Args, roles: dict[Role, RoleEntry]) -> bool:
    """Whether a move to the CPU returns when the copy, and what was started before it, is done."""
    device, entry = args.get("device", 0), roles.get("async-copy")
    blocks = entry is None or all_hold(args, entry.when) is False
    return blocks and device is not None and _names_host(device)


def _names_host(device: v.Value) -> bool:
    """Whether a device value is the CPU for certain, and not because no option says otherwise."""
    if isinstance(device, v.Lit):
        return isinstance(device.value, str) and device.value.startswith("cpu") and not device.option
    if isinstance(device, v.Obj) and device.api == "torch.device":
        first = device.args.get("type", 0)
        return first is not None and _names_host(first)
    return False


def _is_written(device: m.Expr | None) -> bool:
    """Whether a device is named where it is used: ``"cpu"``, ``torch.device("cpu")``."""
    if isinstance(device, m.Call):
        return bool(device.args) and all(isinstance(one, m.Const) for one in device.args)
    return isinstance(device, m.Const)


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


def _on_device(interp: RunView, value: v.Value | None) -> bool:
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
