"""The digest of tensors: what differs has another digest, what is equal has the same one."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from textwrap import dedent

import pytest

torch = pytest.importorskip("torch")

from d9mlint.trace import digest as digests  # noqa: E402
from d9mlint.trace.digest import (  # noqa: E402
    _sum_on_device,
    content_sum,
    digest,
)
from d9mlint.trace.hashing import Digester  # noqa: E402
from d9mlint.trace.weights import BLOCK, G_SEED, MASK, U_SEED, V_SEED, weight  # noqa: E402

DTYPES = (
    torch.float64,
    torch.float32,
    torch.float16,
    torch.bfloat16,
    torch.float8_e4m3fn,
    torch.float8_e5m2,
    torch.complex64,
    torch.complex128,
    torch.bool,
    torch.uint8,
    torch.int8,
    torch.int16,
    torch.int32,
    torch.int64,
)


@pytest.fixture(autouse=True, params=["xxh3", "sum"])
def host(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """With xxhash, and as it is without."""
    kind: str = request.param
    if kind == "sum":
        monkeypatch.setattr(digests, "xxh3", None)
    elif digests.xxh3 is None:
        pytest.skip("xxhash is not installed")
    return kind


def sample(dtype: torch.dtype, count: int = 37, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    if dtype is torch.bool:
        return torch.rand(count, generator=generator) > 0.5
    if dtype.is_floating_point or dtype.is_complex:
        values = torch.randn(count, generator=generator, dtype=torch.float64)
        return values.to(dtype)
    return torch.randint(-100, 100, (count,), generator=generator).to(dtype)


def reference(data: bytes) -> int:
    """The definition, word by word."""
    data += b"\0" * (-len(data) % 8)
    total = 0
    for i in range(len(data) // 8):
        x = int.from_bytes(data[8 * i : 8 * i + 8], "little", signed=True)
        j, c = divmod(i, BLOCK)
        total += weight(G_SEED, j) * (x * weight(U_SEED, c) + (x >> 32) * weight(V_SEED, c))
    return total & MASK


@pytest.mark.parametrize("count", [1, 2, 3, 1000, 2 * BLOCK, 2 * BLOCK + 1, 5 * BLOCK + 3])
def test_the_sum_is_the_definition(count: int) -> None:
    tensor = sample(torch.float32, count)
    assert int(content_sum(tensor)) & MASK == reference(tensor.numpy().tobytes())


@pytest.mark.parametrize("count", [1, 1000, BLOCK, 3 * BLOCK + 7])
def test_the_form_for_devices_is_the_same(count: int) -> None:
    words = torch.randint(-(1 << 62), 1 << 62, (count,), generator=torch.Generator().manual_seed(0)) * 3
    assert int(_sum_on_device(words)) == int(content_sum(words))


@pytest.mark.full
def test_the_triton_kernel_is_the_same_through_its_interpreter() -> None:
    # Not imported here: Triton aborts a process that has loaded TensorFlow, whose LLVM has options of the same names.
    if importlib.util.find_spec("triton") is None:
        pytest.skip("triton is not installed")
    code = (
        "import torch; from d9mlint.trace.digest import content_sum; from d9mlint.trace.weights import BLOCK;"
        "from d9mlint.trace.triton_digest import sum_of_words\n"
        "for count in (1, 1023, 1024, 1025, BLOCK, BLOCK + 1, 2 * BLOCK + 5):\n"
        "    words = torch.randint(-(1 << 62), 1 << 62, (count,)) * 3\n"
        "    assert int(sum_of_words(words)) == int(content_sum(words)), count\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_one_bit_anywhere_changes_the_digest(dtype: torch.dtype) -> None:
    tensor = sample(dtype)
    data = tensor.view(torch.uint8)
    seen = {digest(tensor)}
    bits = 1 if dtype is torch.bool else 8
    for place in range(0, data.numel(), max(1, data.numel() // 29)):
        for bit in range(bits):
            data[place] ^= 1 << bit
            seen.add(digest(tensor))
            data[place] ^= 1 << bit
    assert len(seen) == 1 + bits * len(range(0, data.numel(), max(1, data.numel() // 29)))
    assert digest(tensor) in seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16, torch.complex64], ids=str)
def test_flipped_signs_change_the_digest(dtype: torch.dtype) -> None:
    tensor = sample(dtype, 500)
    seen = {digest(tensor), digest(-tensor)}
    for pair in range(0, 400, 2):
        other = tensor.clone()
        other[pair : pair + 2] = -other[pair : pair + 2]
        seen.add(digest(other))
    assert len(seen) == 202


def test_permutations_change_the_digest() -> None:
    tensor = sample(torch.float32, 64)
    generator = torch.Generator().manual_seed(1)
    seen = {digest(tensor[torch.randperm(64, generator=generator)]) for _ in range(500)}
    swapped = tensor.clone()
    swapped[[3, 4]] = swapped[[4, 3]]
    assert len(seen | {digest(tensor), digest(swapped)}) == 502


def test_nan_payloads_and_signs_of_zero_count() -> None:
    words = torch.tensor([0x7FC00000, 0x7FC00001], dtype=torch.int32).view(torch.float32)
    assert digest(words[:1]) != digest(words[1:])
    assert digest(torch.tensor([0.0])) != digest(torch.tensor([-0.0]))


def test_dtype_and_shape_count() -> None:
    zeros = torch.zeros(8)
    same_bytes = [zeros, zeros.view(2, 4), zeros.view(4, 2), zeros.int(), torch.zeros(4, dtype=torch.float64)]
    empty = [torch.zeros(0), torch.zeros(0, 3), torch.zeros(3, 0), torch.zeros(0, dtype=torch.int64)]
    assert len({digest(t) for t in (*same_bytes, *empty)}) == 9


def test_layout_in_memory_does_not_count() -> None:
    tensor = sample(torch.float32, 48).view(4, 12)
    transposed = tensor.t().contiguous().t()
    assert not transposed.is_contiguous()
    assert digest(transposed) == digest(tensor)
    assert digest(tensor[:, 1::2]) == digest(tensor[:, 1::2].clone())
    conjugate = torch.conj(torch.complex(tensor, tensor + 1))
    assert conjugate.is_conj()
    assert digest(conjugate) == digest(conjugate.resolve_conj()) != digest(torch.complex(tensor, tensor + 1))
    flat = torch.arange(20.0)
    for offset in range(8):
        assert digest(flat[offset : offset + 9]) == digest(flat[offset : offset + 9].clone())


@pytest.mark.parametrize("dtype", [torch.float32, torch.bool, torch.complex128, torch.bfloat16])
@pytest.mark.parametrize("shape", [(3, 5), (1, 700_001), (700_001, 1), (900, 901), (2, 3, 1201, 101)])
def test_large_values_are_digested_in_parts_as_in_one_piece(
    shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    torch.manual_seed(0)
    plain = torch.randn(shape).to(dtype)
    for strided in (
        torch.stack((plain, plain), -1)[..., 0],
        plain.transpose(0, -1).contiguous().transpose(0, -1),
        torch.cat((plain, plain), -1)[..., : shape[-1]],
    ):
        assert digest(strided) == digest(plain)
    row = plain[..., :1]
    assert digest(row.expand(*shape)) == digest(row.expand(*shape).contiguous())


def test_a_value_that_takes_no_memory_takes_none_to_digest() -> None:
    pytest.importorskip("xxhash")
    program = """
        import resource
        import torch
        from d9mlint.trace.digest import digest

        digest(torch.zeros(4, 4).t())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        digest(torch.zeros(1).expand(64, 1024, 1024))
        print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    """
    done = subprocess.run([sys.executable, "-c", dedent(program)], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 64 * 1024


def test_sparse_nested_quantized_and_meta() -> None:
    dense = torch.tensor([[0.0, 1.0], [2.0, 0.0]])
    other = torch.tensor([[0.0, 1.0], [0.0, 2.0]])
    values = []
    for one in (dense, other):
        layouts = [one.to_sparse(), one.to_sparse_csr(), one.to_sparse_csc()]
        values += [digest(t) for t in layouts]
        values.append(digest(one))
    nested = [torch.nested.nested_tensor([torch.ones(2), torch.ones(n)]) for n in (3, 4)]
    jagged = [torch.nested.nested_tensor([torch.ones(2), torch.ones(n)], layout=torch.jagged) for n in (3, 4)]
    values += [digest(t) for t in (*nested, *jagged)]
    quantized = [torch.quantize_per_tensor(dense, scale, 0, torch.qint8) for scale in (0.1, 0.2)]
    values += [digest(t) for t in quantized]
    values.append(digest(torch.quantize_per_channel(dense, torch.ones(2), torch.zeros(2), 0, torch.qint8)))
    values += [digest(torch.empty(n, device="meta")) for n in (2, 3)]
    assert len(set(values)) == len(values)
    assert digest(dense.to_sparse()) == digest(dense.clone().to_sparse())


def test_a_wrapper_subclass_is_what_it_wraps() -> None:
    from torch.testing._internal.two_tensor import TwoTensor

    one, two = sample(torch.float32, 8), sample(torch.float32, 8, seed=1)
    assert digest(TwoTensor(one, two)) == digest(TwoTensor(one.clone(), two.clone()))
    assert len({digest(TwoTensor(one, two)), digest(TwoTensor(two, one)), digest(one)}) == 3
    assert digest(torch.nn.Parameter(one)) == digest(one)


def test_deferred_digests_are_the_same() -> None:
    digester = Digester()
    tensors = [sample(dtype, count) for dtype in DTYPES for count in (1, 7, 64, 5000, 40_000)]
    tensors += [torch.zeros(0), torch.ones(4, 4).t(), torch.ones(3).to_sparse()]
    open_values = [digester.add(tensor) for tensor in tensors]
    before = [digest(tensor) for tensor in tensors]
    for tensor in tensors:
        if tensor.layout is torch.strided and tensor.numel():
            # What is written later must not count. Not all releases fill every dtype.
            tensor.view(torch.uint8).zero_() if tensor.is_contiguous() else tensor.zero_()
    digester.flush()
    assert [v if isinstance(v, int) else v.result for v in open_values] == before


def test_another_thread_flushes_while_one_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "xxh3", None)
    digester = Digester()
    tensors = [torch.full((16,), float(n)) for n in range(3000)]
    found: list[object] = []
    thread = threading.Thread(target=lambda: found.extend(digester.add(t) for t in tensors))
    thread.start()
    while thread.is_alive():
        digester.flush()
    digester.flush()
    assert [getattr(value, "result", value) for value in found] == [digest(t) for t in tensors]


def test_results_of_a_race_are_told_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    size = 1 << 20
    index = torch.randint(0, 5000, (size,), generator=generator)
    source = torch.randn(size, generator=generator)
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        results = [
            torch.zeros(5000).index_put_((index,), source, accumulate=True).numpy().tobytes()
            for _ in range(12)
        ]
    finally:
        torch.set_num_threads(threads)
    digests = [digest(torch.frombuffer(bytearray(data), dtype=torch.float32)) for data in results]
    assert len(set(digests)) == len(set(results))


def test_triton_is_not_loaded_beside_tensorflow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(digests, "_found", False)
    monkeypatch.setitem(sys.modules, "tensorflow", None)
    # PyTorch may have loaded it in this process.
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    monkeypatch.delitem(sys.modules, "d9mlint.trace.triton_digest", raising=False)
    asked: list[str] = []
    monkeypatch.setattr(sys, "meta_path", [Asked(asked), *sys.meta_path])
    assert digests._kernel(torch.device("cuda")) is None
    assert asked == []


class Asked:
    """Notes the modules that an import asks for."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        self.names.append(name)
