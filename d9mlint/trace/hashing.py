"""Digests of what operations write, gathered without waiting for a device. Runs in traced processes."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from d9mlint.trace import digest as digests
from d9mlint.trace import names
from d9mlint.trace.digest import (
    bytes_of,
    combine,
    content_sum,
    finish,
    host_digest,
    parts,
    salt_of,
    signed,
    weights,
)
from d9mlint.trace.weights import G_SEED, MASK, weight

SMALL = 1 << 15
"""Bytes up to which a tensor on the CPU is copied now and digested later, with all others of its kind, where
xxhash is not installed."""
ARENA = 1 << 17
"""Bytes of such copies that are kept: 16384 words, which torch works on without other threads."""


class Value:
    """A digest that is not known yet: ``result`` is set by ``Digester.flush``. A part is a digest, or the place
    of a sum and what describes its tensor."""

    __slots__ = ("parts", "result")

    def __init__(self) -> None:
        self.result: int | None = None
        self.parts: list[int | tuple[int, str]] = []


class _Kind(NamedTuple):
    """The salt of the digest of a tensor, the size of an element, and its bytes at an address: None where its
    content takes more to read."""

    salt: int
    itemsize: int
    bytes_at: Callable[[int], Any] | None


class Digester:
    """Takes the content of tensors as it is now; ``flush`` completes the digests. One for each thread; another
    thread may flush it."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        size = ARENA // 8 if digests.xxh3 is None else 0
        with torch.inference_mode(False):
            self._arena = torch.zeros(size, dtype=torch.int64, device="cpu")
        self._address = self._arena.data_ptr()
        self._used = 0
        self._starts: list[int] = []
        self._slots: list[int] = []
        self._sums: list[int | torch.Tensor] = []
        self._open: list[Value] = []
        self._texts: dict[tuple[torch.dtype, torch.Size], str] = {}
        self._kinds: dict[tuple[torch.dtype, torch.Size], _Kind] = {}

    def add(self, *tensors: torch.Tensor) -> Value | int:
        """The digest of some tensors together, in this order."""
        if digests.xxh3 is not None:
            known = self._on_host(tensors)
            if known is not None:
                return known[0] if len(known) == 1 else combine(known)
        with self._lock:
            return self._add(tensors)

    def _on_host(self, tensors: tuple[torch.Tensor, ...]) -> list[int] | None:
        """The digests of tensors by XXH3; None where one of them is not in the memory of the host."""
        xxh3, kinds, plain, parameter = digests.xxh3, self._kinds, torch.Tensor, torch.nn.Parameter
        assert xxh3 is not None
        found: list[int] = []
        for tensor in tensors:
            cls = type(tensor)
            if (
                (cls is plain or cls is parameter)
                and tensor.is_cpu
                and tensor.layout is torch.strided
                and not tensor.is_nested
                and tensor.is_contiguous()
                and not tensor.is_neg()
            ):
                kind = kinds.get((tensor.dtype, tensor.shape)) or self._kind(tensor)
                address = tensor.data_ptr()
                # Not without elements, and not where the storage has been freed, as FSDP does between uses.
                if kind.bytes_at is not None and address != tensor.storage_offset() * kind.itemsize:
                    found.append(xxh3(kind.bytes_at(address), kind.salt))
                    continue
            for inner, description in parts(tensor):
                if inner is None or not inner.numel():
                    found.append(finish(0, description))
                elif inner.is_cpu:
                    found.append(host_digest(inner, description))
                else:
                    return None
        return found

    def _kind(self, tensor: torch.Tensor) -> _Kind:
        """What all dense tensors of a dtype and a shape have in common."""
        bytes_at = None
        if tensor.nbytes and not tensor.is_quantized and not tensor.is_complex():
            bytes_at = bytes_of(tensor.nbytes)
        kind = _Kind(salt_of(self._text(tensor)), tensor.element_size(), bytes_at)
        self._kinds[tensor.dtype, tensor.shape] = kind
        return kind

    def _add(self, tensors: tuple[torch.Tensor, ...]) -> Value | int:
        at_once = digests.xxh3 is not None
        found: list[int | tuple[int, str]] = []
        waits = False
        for tensor in tensors:
            kind = type(tensor)
            if (
                (kind is torch.Tensor or kind is torch.nn.Parameter)
                and tensor.layout is torch.strided
                and tensor.is_cpu
                and tensor.is_contiguous()
                and not tensor.is_quantized
                and not tensor.is_conj()
                and not tensor.is_neg()
                and not tensor.is_nested
            ):
                if at_once:
                    found.append(host_digest(tensor, self._text(tensor)))
                    continue
                size = tensor.nbytes
                slot = self._copy(tensor, size) if size <= SMALL else self._sum(content_sum(tensor))
                found.append((slot, self._text(tensor)))
                waits = True
            else:
                for inner, description in parts(tensor):
                    if inner is None or not inner.numel():
                        found.append(finish(0, description))
                    elif at_once and inner.is_cpu:
                        found.append(host_digest(inner, description))
                    else:
                        found.append((self._sum(content_sum(inner)), description))
                        waits = True
        if not waits:
            known = [part for part in found if isinstance(part, int)]
            return known[0] if len(known) == 1 else combine(known)
        value = Value()
        value.parts = found
        self._open.append(value)
        return value

    def _text(self, tensor: torch.Tensor) -> str:
        key = (tensor.dtype, tensor.shape)
        found = self._texts.get(key)
        if found is None:
            found = self._texts[key] = f"{tensor.dtype}{tuple(tensor.shape)}{tensor.layout}"
        return found

    def _copy(self, tensor: torch.Tensor, size: int) -> int:
        if not size:
            return -1
        words = (size + 7) >> 3
        if self._used + words > ARENA // 8:
            self._settle()
        start = self._used
        address = self._address + (start << 3)
        if size & 7:
            # The padding of the last word.
            ctypes.memset(address + ((words - 1) << 3), 0, 8)
        ctypes.memmove(address, tensor.data_ptr(), size)
        self._used = start + words
        self._starts.append(start)
        self._slots.append(len(self._sums))
        self._sums.append(0)
        return len(self._sums) - 1

    def _sum(self, total: torch.Tensor) -> int:
        # On the CPU the number is there; on a device the scalar stays until the next flush.
        self._sums.append(int(total.item()) & MASK if total.device.type == "cpu" else total)
        return len(self._sums) - 1

    def _settle(self) -> None:
        """Turn the copies in the arena into sums, all at once."""
        if not self._starts:
            return
        used = self._used
        u, v = weights[self._arena.device]
        starts = torch.tensor(self._starts, dtype=torch.int64, device="cpu")
        ends = torch.cat((starts[1:], torch.tensor([used], device="cpu")))
        # 0, 1, 2, ... from each start on.
        index = torch.ones(used, dtype=torch.int64, device="cpu")
        index[0] = 0
        index[starts[1:]] -= (ends - starts)[:-1]
        index = torch.cumsum(index, 0)
        x = self._arena[:used]
        # Not u[index]: that would wake other threads.
        u, v = u.index_select(0, index), v.index_select(0, index)
        running = torch.cumsum(x * u + (x >> 32) * v, 0)
        until = running[ends - 1]
        until[1:] -= until[:-1].clone()
        found = (until * signed(weight(G_SEED, 0))).tolist()
        for slot, total in zip(self._slots, found, strict=True):
            self._sums[slot] = total & MASK
        self._starts.clear()
        self._slots.clear()
        self._used = 0

    def flush(self) -> None:
        """Complete every digest. One copy from each device."""
        with self._lock:
            self._flush()

    def _flush(self) -> None:
        if not self._open:
            return
        with names.no_torch_function(), torch.inference_mode(False), torch.no_grad():
            self._settle()
            self._fetch()
        for value in self._open:
            found = [p if isinstance(p, int) else finish(self._total(p[0]), p[1]) for p in value.parts]
            value.result = found[0] if len(found) == 1 else combine(found)
        self._open.clear()
        self._sums.clear()

    def _total(self, slot: int) -> int:
        if slot < 0:
            return 0
        total = self._sums[slot]
        assert isinstance(total, int)
        return total

    def _fetch(self) -> None:
        waiting: dict[torch.device, list[int]] = {}
        for slot, total in enumerate(self._sums):
            if isinstance(total, torch.Tensor):
                waiting.setdefault(total.device, []).append(slot)
        for device, slots in waiting.items():
            # The sums were started on the streams of their operations, which need not be the one of this thread.
            names.synchronize(device)
            stacked = torch.stack([t for s in slots if isinstance(t := self._sums[s], torch.Tensor)])
            for slot, number in zip(slots, stacked.tolist(), strict=True):
                self._sums[slot] = number & MASK
