"""The private names of torch that tracing uses exist and do what the tracer takes them for."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from d9mlint.trace import names  # noqa: E402


def test_every_name_is_there() -> None:
    assert names.missing() == []
    names.check()


def test_a_missing_name_gives_a_clear_message(monkeypatch: pytest.MonkeyPatch) -> None:
    need = names._Need("torch._C._gone", lambda: torch._C._gone)
    monkeypatch.setattr(names, "NEEDS", (*names.NEEDS, need))
    with pytest.raises(names.Unsupported, match=r"has no torch\._C\._gone"):
        names.check()


def test_a_storage_keeps_its_identity_over_views_and_not_over_copies() -> None:
    tensor = torch.ones(4)
    assert names.storage_id(tensor) == names.storage_id(tensor[1:]) != names.storage_id(tensor.clone())


def test_an_identity_is_not_reused_while_a_weak_reference_is_held() -> None:
    tensor = torch.ones(4)
    key, pointer = names.storage_id(tensor), names.weak_reference(tensor)
    assert not names.expired(pointer)
    del tensor
    assert names.expired(pointer)
    assert key not in {names.storage_id(t) for t in [torch.ones(4) for _ in range(50)]}
    names.free_weak_reference(pointer)


def test_sequence_numbers_lead_from_backward_to_forward() -> None:
    first = names.sequence_number()
    result = torch.ones(2, requires_grad=True).exp()
    assert names.sequence_number() == first + 1
    assert names.node_number(result.grad_fn) == first
    assert names.current_node() is None


def test_code_that_is_skipped_is_not_compiled() -> None:
    compiled = []

    def backend(graph: object, _: object) -> object:
        compiled.append(graph)
        return graph

    def skipped(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    def other(x: torch.Tensor) -> torch.Tensor:
        return x + 1

    names.skip_in_dynamo(skipped.__code__)
    assert torch.compile(skipped, backend=backend)(torch.ones(2)).tolist() == [2.0, 2.0]
    assert compiled == []
    torch.compile(other, backend=backend)(torch.ones(2))
    assert len(compiled) == 1
