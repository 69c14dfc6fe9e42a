"""Functions that torch takes apart in another way while a dispatch mode is active."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from d9mlint.trace.composite import ctc_loss  # noqa: E402
from d9mlint.trace.recorder import FULL, Recorder  # noqa: E402
from d9mlint.trace.sites import Sites  # noqa: E402
from d9mlint.trace.watch import Watch  # noqa: E402


def loss_and_gradient(reduction: str) -> tuple[list[float], list[float]]:
    torch.manual_seed(0)
    scores = torch.randn(6, 2, 5, requires_grad=True)
    loss = torch.nn.functional.ctc_loss(
        scores.log_softmax(-1),
        torch.randint(1, 5, (2, 3)),
        torch.tensor([6, 5]),
        target_lengths=torch.tensor([3, 2], dtype=torch.int32),
        reduction=reduction,
    )
    loss.sum().backward()
    return loss.reshape(-1).tolist(), scores.grad.reshape(-1).tolist()


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_the_lengths_of_a_ctc_loss_are_lists_as_without_a_mode(
    reduction: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = loss_and_gradient(reduction)
    monkeypatch.setattr(torch, "ctc_loss", ctc_loss(torch.ctc_loss))
    recorder = Recorder(str(tmp_path / "one.journal"), {"key": "main"}, FULL, Sites())
    with recorder.mode:
        assert loss_and_gradient(reduction) == plain
    recorder.on = False
    names = {recorder._tables.names.texts[one[3]] for one in recorder._pending}
    assert {name for name in names if "ctc" in name} == {"aten._ctc_loss", "aten._ctc_loss_backward"}


def test_the_loss_is_watched_where_operations_are_recorded(tmp_path: Path) -> None:
    """And what it is given is judged by torch alone where it cannot be a list."""
    sites = Sites()
    watch = Watch(sites)
    original = torch.ctc_loss
    recorder = Recorder(str(tmp_path / "one.journal"), {"key": "main"}, FULL, sites)
    recorder.on = False
    try:
        watch.torch(recorder)
        assert torch.ctc_loss is not original
        with pytest.raises(RuntimeError, match="input_lengths must be integral"):
            torch.ctc_loss(torch.randn(6, 2, 5), torch.ones(2, 3).long(), torch.ones(2), torch.ones(2))
        assert torch.ctc_loss(torch.randn(6, 5), torch.ones(3).long(), (6,), (3,)).dim() == 0
        single = torch.tensor(6), torch.tensor(3)
        assert torch.ctc_loss(torch.randn(6, 5), torch.ones(3).long(), *single).dim() == 0
    finally:
        for owner, name, function in reversed(watch._undo):
            setattr(owner, name, function)
