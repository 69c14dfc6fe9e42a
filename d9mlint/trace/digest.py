"""A 64-bit digest of tensors, computed where the tensor is. Runs in traced processes: it needs torch.

In the memory of the host it is XXH3 over the bytes, where the package xxhash is installed: reading them once is
all that it costs. Everywhere else it is a sum that any device can compute.

Definition of the sum. The content of a tensor is its elements in logical (row-major) order as bytes, padded with zeros
to 64-bit words ``x``. Word ``i = j * BLOCK + c`` adds

    G(j) * (x * U(c) + (x >> 32) * V(c))   modulo 2**64, with an arithmetic shift,

where U, V and G are odd numbers drawn by ``splitmix64`` from the position. The sum is exact integer
arithmetic, so the order in which a device adds up has no influence. It is a universal hash of the 32-bit
halves of the words: two contents that differ collide with probability 2**-(64 - k), where ``k`` is the number
of trailing zero bits common to all differences; a last-bit change gives k = 0, a flipped sign of float32
k = 31. XOR and norms miss permutations and sign flips; this sum depends on the position of every word.

What describes a tensor beside its content (dtype, shape, layout) enters through ``finish``, or as the seed of
XXH3.
"""

from __future__ import annotations

import ctypes
import struct
import sys
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

import torch

from d9mlint.trace.weights import BLOCK, G_SEED, MASK, U_SEED, V_SEED, splitmix64, weight

xxh3: Callable[..., int] | None
xxh3_in_parts: Callable[..., Any]
try:
    from xxhash import xxh3_64, xxh3_64_intdigest
except ImportError:
    xxh3 = None
else:
    xxh3, xxh3_in_parts = xxh3_64_intdigest, xxh3_64

HOST = "xxh3 of all" if xxh3 is not None else "sum"
"""How content in the memory of the host is digested; several results are digested together. Recordings are comparable
where this is the same: a change of a digest changes this."""
ROWS = 256
"""Blocks that are worked on together on a device: 32 MiB of words and as much scratch memory."""


def signed(number: int) -> int:
    """The same 64 bits as an int64."""
    number &= MASK
    return number - (1 << 64) if number >> 63 else number


class _Weights:
    """U and V of a device as int64 tensors of ``BLOCK`` elements, built once."""

    def __init__(self) -> None:
        self._tables: dict[torch.device, tuple[torch.Tensor, torch.Tensor]] = {}

    def __getitem__(self, device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
        found = self._tables.get(device)
        if found is None:
            with torch.inference_mode(False):
                u, v = (_table(seed, BLOCK).to(device) for seed in (U_SEED, V_SEED))
            found = self._tables[device] = (u, v)
        return found


def _table(seed: int, size: int, first: int = 0) -> torch.Tensor:
    """``weight(seed, first + n)`` for n < size, with the arithmetic of ``splitmix64`` on int64 tensors."""
    z = torch.arange(first, first + size, dtype=torch.int64, device="cpu") + (seed << 40)
    z = z + signed(0x9E3779B97F4A7C15)
    z = (z ^ _logical_shift(z, 30)) * signed(0xBF58476D1CE4E5B9)
    z = (z ^ _logical_shift(z, 27)) * signed(0x94D049BB133111EB)
    return (z ^ _logical_shift(z, 31)) | 1


def _logical_shift(z: torch.Tensor, by: int) -> torch.Tensor:
    return (z >> by) & ((1 << (64 - by)) - 1)


weights = _Weights()


def words(tensor: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor | None]:
    """The content of a dense tensor as int64 words, and the last, padded word where bytes are left over."""
    flat = tensor.detach()
    if not flat.is_contiguous():
        flat = flat.contiguous()
    flat = flat.reshape(-1)
    size = flat.element_size()
    if flat.storage_offset() * size % 8:
        flat = flat.clone()
    nbytes = flat.numel() * size
    left = nbytes % 8
    if not left:
        return flat.view(torch.int64), None
    whole = (nbytes - left) // size
    tail = torch.zeros(8, dtype=torch.uint8, device=flat.device)
    tail[:left].copy_(flat[whole:].view(torch.uint8))
    return flat[:whole].view(torch.int64), tail.view(torch.int64)


def host_digest(tensor: torch.Tensor, description: str) -> int:
    """The digest of a dense tensor on the CPU by XXH3; it is complete."""
    size = tensor.nbytes
    address = tensor.data_ptr() if size else 0
    if not size or address == tensor.storage_offset() * tensor.element_size():
        # Without elements, or its storage has been freed, as FSDP does between uses.
        return finish(0, description)
    assert xxh3 is not None
    if tensor.is_contiguous():
        return xxh3(_bytes(address, size), salt_of(description))
    scratch = getattr(_scratch, "memory", None)
    if scratch is None:
        with torch.inference_mode(False):
            scratch = _scratch.memory = torch.empty(CHUNK, dtype=torch.uint8, device="cpu")
    address = scratch.data_ptr()
    state = xxh3_in_parts(seed=salt_of(description))
    for piece in _pieces(tensor):
        size = piece.nbytes
        scratch[:size].view(piece.dtype).view(piece.shape).copy_(piece)
        state.update(_bytes(address, size))
    found: int = state.intdigest()
    return found


CHUNK = 1 << 20
"""Bytes of a tensor that is not contiguous which are copied at a time. One copy of it all, even if freed at once, would
raise the peak of memory: the program's next tensors go elsewhere in the heap."""
_scratch = threading.local()


def _pieces(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """A tensor in row-major order, in parts of at most ``CHUNK`` bytes."""
    if tensor.nbytes <= CHUNK:
        yield tensor
        return
    rows = CHUNK // (tensor.nbytes // tensor.shape[0])
    if rows:
        yield from tensor.split(rows)
    else:
        for part in tensor:
            yield from _pieces(part)


def _bytes(address: int, size: int) -> Any:
    return bytes_of(size)(address)


def bytes_of(size: int) -> Callable[[int], Any]:
    """What gives access to so many bytes at an address."""
    found = _buffers.get(size)
    if found is None:
        found = _buffers[size] = (ctypes.c_char * size).from_address
    return found


_buffers: dict[int, Callable[[int], Any]] = {}


def content_sum(tensor: torch.Tensor) -> torch.Tensor:
    """The sum of the definition over a dense tensor, as an int64 scalar on its device; no synchronization."""
    body, tail = words(tensor)
    total = _sum_of_words(body)
    if tail is not None:
        count = body.numel()
        j, c = divmod(count, BLOCK)
        u, v = weights[body.device]
        last = (tail * u[c : c + 1] + (tail >> 32) * v[c : c + 1])[0] * signed(weight(G_SEED, j))
        total = total + last
    return total


def _sum_of_words(x: torch.Tensor) -> torch.Tensor:
    if x.device.type == "cpu":
        return torch.tensor(signed(_sum_on_host(x)), dtype=torch.int64, device="cpu")
    kernel = _kernel(x.device) if x.is_cuda else None
    if kernel is not None:
        return kernel(x)
    return _sum_on_device(x)


def _kernel(device: torch.device) -> Callable[[torch.Tensor], torch.Tensor] | None:
    """The sum as a Triton kernel; None where Triton is not installed, cannot
    compile for the device or cannot be loaded beside TensorFlow."""
    global _found
    if _found is False:
        _found = None
        if "tensorflow" in sys.modules and "triton" not in sys.modules:
            # Both register the same options of LLVM: the second of them to be loaded aborts the process.
            return None
        try:
            from d9mlint.trace.triton_digest import sum_of_words

            # On a device that the program uses: the memory of another one would be taken for its context.
            probe = torch.arange(3, dtype=torch.int64, device=device)
            if int(sum_of_words(probe)) == int(_sum_on_device(probe)):
                _found = sum_of_words
        except Exception:
            # Triton raises errors of its own, of the compiler and of the driver: the eager form does the same.
            _found = None
    return _found


_found: Callable[[torch.Tensor], torch.Tensor] | Literal[False] | None = False


def _sum_on_device(x: torch.Tensor) -> torch.Tensor:
    """The sum over words with torch's own operations, for any device."""
    count = x.numel()
    u, v = weights[x.device]
    total = torch.zeros((), dtype=torch.int64, device=x.device)
    rows, rest = divmod(count, BLOCK)
    blocks = x[: rows * BLOCK].view(rows, BLOCK)
    for first in range(0, rows, ROWS):
        part = blocks[first : first + ROWS]
        sums = (part * u).sum(1) + ((part >> 32) * v).sum(1)
        total = total + (sums * _row_weights(first, part.shape[0], x.device)).sum()
    if rest:
        last = x[rows * BLOCK :]
        sums = (last * u[:rest]).sum() + ((last >> 32) * v[:rest]).sum()
        total = total + sums * signed(weight(G_SEED, rows))
    return total


def _row_weights(first: int, count: int, device: torch.device) -> torch.Tensor:
    return _table(G_SEED, count, first).to(device)


def _sum_on_host(x: torch.Tensor) -> int:
    """The sum over words on the CPU: the dot product of integers reads them once and needs no scratch memory."""
    u, v = weights[x.device]
    count = x.numel()
    if count <= BLOCK:
        first = int(torch.dot(x, u[:count])) + int(torch.dot(x >> 32, v[:count]))
        return first * weight(G_SEED, 0)
    total = 0
    with torch.inference_mode(False):
        high = torch.empty(BLOCK, dtype=torch.int64, device="cpu")
    for j, start in enumerate(range(0, count, BLOCK)):
        block = x[start : start + BLOCK]
        size = block.numel()
        if size < BLOCK:
            u, v, high = u[:size], v[:size], high[:size]
        torch.bitwise_right_shift(block, 32, out=high)
        total += (int(torch.dot(block, u)) + int(torch.dot(high, v))) * weight(G_SEED, j)
    return total


def finish(total: int, description: str) -> int:
    """The digest of a tensor from the sum over its content and its description."""
    return splitmix64((total + salt_of(description)) & MASK)


_salts: dict[str, int] = {}


def salt_of(description: str) -> int:
    """The number for what describes a tensor."""
    found = _salts.get(description)
    if found is None:
        data = description.encode()
        found = _salts[description] = splitmix64(zlib.crc32(data) | (zlib.adler32(data) << 32))
    return found


def combine(digests: Sequence[int]) -> int:
    """One digest of several, in this order."""
    if xxh3 is not None:
        return xxh3(struct.pack(f"<{len(digests)}Q", *digests), len(digests))
    total = len(digests)
    for digest in digests:
        total = splitmix64((total * 0x9E3779B97F4A7C15 + digest) & MASK)
    return total


class Part(NamedTuple):
    """A dense tensor inside of a value, or None where the value has no content here (meta tensors), and what
    describes it."""

    tensor: torch.Tensor | None
    description: str


def parts(value: torch.Tensor) -> list[Part]:
    """The dense tensors that a tensor of any layout or subclass consists of."""
    layout, dtype = value.layout, value.dtype
    text = f"{dtype}{tuple(value.shape) if not _ragged(value) else 'nested'}{layout}"
    if _is_wrapper(value):
        return _wrapped(value)
    if value.device.type == "meta" or _is_fake(value):
        return [Part(None, "meta" + text)]
    if value.is_quantized:
        return _quantized(value, text)
    if layout == torch.strided and not value.is_nested:
        dense = value.detach()
        if dense.is_conj() or dense.is_neg():
            dense = dense.resolve_conj().resolve_neg()
        return [Part(dense, text)]
    if value.is_nested:
        return [part for one in value.unbind() for part in parts(one)] or [Part(None, text)]
    if layout == torch.sparse_coo:
        value = value.detach()
        return [Part(value._indices(), f"{text}{value.is_coalesced()}"), Part(value._values(), text)]
    if layout in (torch.sparse_csr, torch.sparse_bsr):
        inner = (value.crow_indices(), value.col_indices(), value.values())
        return [Part(one.detach(), text) for one in inner]
    if layout in (torch.sparse_csc, torch.sparse_bsc):
        inner = (value.ccol_indices(), value.row_indices(), value.values())
        return [Part(one.detach(), text) for one in inner]
    # Opaque layouts such as that of oneDNN.
    return [Part(value.detach().to_dense(), text)]


def _ragged(value: torch.Tensor) -> bool:
    return bool(value.is_nested)


def _is_fake(value: torch.Tensor) -> bool:
    return type(value).__name__ == "FakeTensor" or type(value).__name__ == "FunctionalTensor"


def _is_wrapper(value: torch.Tensor) -> bool:
    kind = type(value)
    if kind is torch.Tensor or kind is torch.nn.Parameter or _is_fake(value):
        return False
    return hasattr(kind, "__tensor_flatten__") or hasattr(value, "to_local")


def _wrapped(value: Any) -> list[Part]:
    """A wrapper subclass is what it wraps."""
    name = type(value).__name__
    if hasattr(value, "to_local"):
        local = value._local_tensor if hasattr(value, "_local_tensor") else value.to_local()
        spec = f"{name}{tuple(value.shape)}{getattr(value, 'placements', '')}"
        return [Part(p.tensor, spec + p.description) for p in parts(local)]
    names, _ = value.__tensor_flatten__()
    found = []
    for attribute in names:
        inner = getattr(value, attribute)
        if isinstance(inner, torch.Tensor):
            found += [Part(p.tensor, f"{name}.{attribute}{p.description}") for p in parts(inner)]
    return found or [Part(None, name)]


def _quantized(value: torch.Tensor, text: str) -> list[Part]:
    found = [Part(value.int_repr(), text)]
    if value.qscheme() in (torch.per_tensor_affine, torch.per_tensor_symmetric):
        return [Part(found[0].tensor, f"{text}{value.q_scale()!r}{value.q_zero_point()}")]
    scales, zeros = value.q_per_channel_scales(), value.q_per_channel_zero_points()
    return [*found, Part(scales, text), Part(zeros, f"{text}{value.q_per_channel_axis()}")]


def digest(value: torch.Tensor) -> int:
    """The digest of a tensor as a number: waits for its device."""
    guard = torch._C.DisableTorchFunction()
    with guard, torch.no_grad():
        found = []
        for tensor, description in parts(value):
            if tensor is None or not tensor.numel():
                found.append(finish(0, description))
            elif xxh3 is not None and tensor.device.type == "cpu":
                found.append(host_digest(tensor, description))
            else:
                found.append(finish(int(content_sum(tensor).item()), description))
    return found[0] if len(found) == 1 else combine(found)
