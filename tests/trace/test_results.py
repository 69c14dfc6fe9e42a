"""Which tensors of a result are compared."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from d9mlint.trace.compare import first_difference  # noqa: E402
from d9mlint.trace.confirm import copy_tensors  # noqa: E402
from d9mlint.trace.journal import BACKWARD, Journal  # noqa: E402
from d9mlint.trace.names import storage_id  # noqa: E402
from d9mlint.trace.recorder import FULL, Recorder, plan_of, results  # noqa: E402
from d9mlint.trace.sites import Sites  # noqa: E402

NUMBERS, BYTES = torch.zeros(2), torch.zeros(64, dtype=torch.uint8)


def test_the_workspace_of_a_recurrent_layer_is_no_result() -> None:
    plan = plan_of(torch.ops.aten.mkldnn_rnn_layer.default)
    workspaces: list[torch.Tensor] = []
    assert len(results(plan, (NUMBERS, NUMBERS, NUMBERS, BYTES), workspaces)) == 3
    assert workspaces == [BYTES]


def test_generator_states_that_attention_returns_are_no_result() -> None:
    plan = plan_of(torch.ops.aten._scaled_dot_product_flash_attention.default)
    count = torch.zeros((), dtype=torch.int64)
    returned = (NUMBERS, NUMBERS, count, count, 8, 8, count + 1, count + 2, NUMBERS)
    kept = results(plan, returned)
    assert [t.item() for t in kept if t.dtype is torch.int64] == [0, 0]
    assert len(kept) == 4


@pytest.mark.parametrize("kind", ["flash", "cudnn"])
def test_tensors_that_are_not_defined_move_no_place(kind: str) -> None:
    """Without sequences of different lengths, attention has no cumulated lengths: they are None."""
    plan = plan_of(getattr(torch.ops.aten, f"_scaled_dot_product_{kind}_attention").default)
    seed, offset = torch.zeros((), dtype=torch.int64), torch.ones((), dtype=torch.int64)
    workspaces: list[torch.Tensor] = []
    returned = (NUMBERS, NUMBERS + 1, None, None, 8, 8, seed, offset, None)
    assert [t[0].item() for t in results(plan, returned, workspaces)] == [0, 1]
    assert workspaces == [seed, offset]


@pytest.mark.parametrize("name", ["sort", "cat"])
def test_bytes_that_are_the_result_are_compared(name: str) -> None:
    plan = plan_of(getattr(torch.ops.aten, name).default)
    assert results(plan, (BYTES, torch.zeros(64, dtype=torch.int64)))[0] is BYTES


def test_bytes_of_an_operation_of_a_library_are_compared() -> None:
    torch.library.define("d9mlint_results::quantize", "(Tensor x) -> (Tensor, Tensor)")
    plan = plan_of(torch.ops.d9mlint_results.quantize.default)
    assert len(results(plan, (BYTES, NUMBERS))) == 2


def test_identities_of_storages_that_are_gone_are_given_back_soon(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path / "one.journal"), {"key": "main"}, FULL, Sites())
    most = 0
    with recorder.mode:
        value = torch.ones(4)
        for _ in range(200):
            value = value + 1
            most = max(most, len(recorder._weak))
    recorder.on = False
    assert most <= 48


@pytest.mark.parametrize(
    ("read", "expected"),
    [("whole", "uninitialized"), ("first", None), ("rest", "uninitialized"), ("filled", None)],
)
def test_what_is_left_of_fresh_memory_counts_where_it_changes_a_result(
    tmp_path: Path, read: str, expected: str | None
) -> None:
    """An operation that writes a part of fresh memory says nothing about the rest, which differs between runs."""
    mask = torch.tensor([True, True, False])
    journals = []
    for garbage in (1.0, 2.0):
        path = tmp_path / f"{garbage}.journal"
        recorder = Recorder(str(path), {"key": "main"}, FULL, Sites())
        with recorder.mode:
            value = torch.empty(3)
            value.numpy()[:] = garbage
            value[mask] = 5.0
            if read == "filled":
                value[~mask] = 6.0
            index = {"first": [0, 1], "rest": [2]}.get(read, [0, 1, 2])
            value[torch.tensor(index)].sum()
        recorder.finish()
        journals.append(Journal(str(path)).update())
    found = first_difference([(journals[0], journals[1])], complete=True)
    assert (found.verdict if found else None) == expected


def test_a_line_of_the_user_in_a_backward_pass_is_no_line_of_the_forward_pass(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path / "one.journal"), {"key": "main"}, FULL, Sites())
    with recorder.mode:
        value = torch.ones(2, requires_grad=True)
        product = value * 3
        product.register_hook(lambda gradient: gradient.exp())
        product.sum().backward()
    recorder.on = False
    names, paths = recorder._tables.names.texts, recorder._tables.paths
    backward = {
        names[one[3]]: (paths[one[4]], paths[one[5]]) for one in recorder._pending if one[1] & BACKWARD
    }
    path, forward = backward["aten.exp"]
    assert not forward and "<lambda>" in path.split("\t")[0]
    path, forward = backward["aten.mul.Tensor"]
    assert forward and "<lambda>" not in path


def test_a_view_by_the_schema_of_a_copy_is_no_operation(tmp_path: Path) -> None:
    recorder = Recorder(str(tmp_path / "one.journal"), {"key": "main"}, FULL, Sites())
    with recorder.mode:
        value = torch.ones(4, 2)
        torch.ops.aten._unsafe_view.default(value, [2, 4])
        value.clone()
    recorder.on = False
    assert [recorder._tables.names.texts[one[3]] for one in recorder._pending] == ["aten.ones", "aten.clone"]


def test_a_replay_writes_to_memory_that_arguments_share() -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    single = torch.ones(2)
    arguments = ([whole, whole.view(-1), whole.t()[1:], single, single],), {"out": whole[0]}
    (copied,), named = copy_tensors(arguments, {})
    assert [t.tolist() for t in copied] == [t.tolist() for t in arguments[0][0]]
    assert copied[0].stride() == whole.stride() and copied[2].stride() == whole.t()[1:].stride()
    torch._foreach_mul_(copied, 2)
    torch._foreach_mul_(arguments[0][0], 2)
    assert [t.tolist() for t in copied] == [t.tolist() for t in arguments[0][0]]
    assert named["out"].tolist() == whole[0].tolist() == copied[0][0].tolist()
    assert len({storage_id(t) for t in copied}) == 2
    assert not {storage_id(t) for t in copied} & {storage_id(whole), storage_id(single)}
