"""What operations write although their schemas do not say so. The operations of cuDNN are replaced by functions."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

from d9mlint.trace import unmarked  # noqa: E402
from d9mlint.trace.confirm import confirm  # noqa: E402
from d9mlint.trace.digest import digest  # noqa: E402
from d9mlint.trace.recorder import FULL, Recorder, plan_of  # noqa: E402
from d9mlint.trace.replay import Replay  # noqa: E402
from d9mlint.trace.sites import Sites  # noqa: E402


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(str(tmp_path / "one.journal"), {"key": "main"}, FULL, Sites())


def arguments(name: str, given: dict[str, Any]) -> tuple[Any, ...]:
    return tuple(given.get(one.name) for one in getattr(torch.ops.aten, name).default._schema.arguments)


def uses(name: str, argument: str) -> Any:
    """A function that computes with an argument and changes it."""
    arguments = [one.name for one in getattr(torch.ops.aten, name).default._schema.arguments]

    def operation(*args: Any) -> Any:
        memory = args[arguments.index(argument)]
        result = args[0] * memory.sum()
        memory += 1
        return result, result + 1, None, [result]

    return operation


@pytest.mark.parametrize(
    ("name", "argument"), [key for key, is_result in unmarked.BY_ARGUMENT.items() if not is_result]
)
def test_memory_of_a_library_is_copied_before_an_operation_runs_twice(
    recorder: Recorder, name: str, argument: str
) -> None:
    plan = plan_of(getattr(torch.ops.aten, name).default)
    memory = torch.ones(4, dtype=torch.uint8)
    args = arguments(name, {"input": torch.ones(2), argument: memory})
    replay = Replay(recorder)
    operation = uses(name, argument)
    assert replay(plan, operation, args, {}, 0, 0, 0)[0].tolist() == [4, 4]
    # Once for the program, and once on a copy.
    assert memory.tolist() == [2, 2, 2, 2]
    assert replay.summary() == {"replayed": 1, "flaky": []}
    found = confirm(operation, args, {}, plan, runs=3)
    assert (found["distinct"], memory.tolist()) == (1, [2, 2, 2, 2])


def test_all_arguments_that_are_written_unmarked_exist() -> None:
    for op, argument in unmarked.BY_ARGUMENT:
        names = [one.name for one in getattr(torch.ops.aten, op).default._schema.arguments]
        assert argument in names, (op, argument)


def test_running_statistics_are_updated_once_in_a_replay(recorder: Recorder) -> None:
    plain = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
    replayed = copy.deepcopy(plain)
    data = torch.randn(8, 3)
    plain(data).sum().backward()
    recorder.replay = Replay(recorder)
    with recorder.mode:
        replayed(data).sum().backward()
    recorder.on = False
    for name, buffer in plain.named_buffers():
        assert torch.equal(buffer, dict(replayed.named_buffers())[name]), name


def test_running_statistics_are_results(recorder: Recorder) -> None:
    """Its own record is behind what they hold, not the record of a value that enters."""
    norm = torch.nn.BatchNorm1d(3)
    with recorder.mode:
        norm(torch.ones(8, 3))
        norm.running_mean.exp()
    recorder.on = False
    names = recorder._tables.names.texts
    found = [names[one[3]] for one in recorder._pending]
    place = found.index("aten.native_batch_norm")
    assert found[place:] == ["aten.native_batch_norm", "aten.exp"]
    assert recorder._tables.shapes.texts[recorder._pending[place][6]].startswith(
        "float32[3], float32[3], float32[8, 3]"
    )


def test_a_second_execution_that_fails_is_not_one_of_the_program(recorder: Recorder) -> None:
    calls = []

    def operation(value: torch.Tensor) -> torch.Tensor:
        calls.append(value)
        if len(calls) == 2:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return value + 1

    replay = Replay(recorder)
    plan = plan_of(torch.ops.aten.exp.default)
    assert replay(plan, operation, (torch.ones(1),), {}, 0, 0, 0).item() == 2
    assert replay.summary() == {"replayed": 0, "flaky": []}


def test_alphas_after_the_end_of_a_sample_are_not_compared(recorder: Recorder) -> None:
    recorder.replay = replay = Replay(recorder)
    arguments = torch.randn(6, 2, 5).log_softmax(-1), torch.randint(1, 5, (2, 3)), [6, 4], [3, 1]
    with recorder.mode:
        for garbage in range(3):
            junk = [torch.full((84,), float(garbage)) for _ in range(8)]
            del junk
            torch.ops.aten._ctc_loss(*arguments)
    recorder.on = False
    assert not [one for one in replay.summary()["flaky"] if "ctc" in one["name"]]


def test_a_seed_that_nobody_has_written_is_no_input_that_has_changed() -> None:
    name = "_scaled_dot_product_efficient_attention_backward"
    plan = plan_of(getattr(torch.ops.aten, name).default)
    seed = torch.zeros((), dtype=torch.int64)
    args = arguments(name, {"grad_out_": torch.ones(2), "query": torch.ones(2), "philox_seed": seed})
    found = confirm(lambda *args: (args[0] + 1, None, None, None), args, {}, plan, runs=2)
    assert [one["name"] for one in found["inputs"]] == ["grad_out_", "query"]


def test_no_operation_of_a_training_step_writes_to_what_it_only_reads() -> None:
    """On the CPU: a backward pass of a recurrent layer works in the workspace of the forward pass."""
    written = set()

    class Look(TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            plan = plan_of(func)
            read = [
                (name, args[place], digest(args[place]))
                for place, name, writes, _ in plan.tensors
                if not writes and place < len(args) and isinstance(args[place], torch.Tensor)
            ]
            result = func(*args, **(kwargs or {}))
            base = plan.name.split(".")[1]
            changed = {(base, name) for name, tensor, before in read if digest(tensor) != before}
            if plan.kind == "run" and not any(writes for _, _, writes, _ in plan.tensors):
                written.update(changed)
            return result

    layers = torch.nn.ModuleList([torch.nn.LSTM(4, 4), torch.nn.GRU(4, 4), torch.nn.RNN(4, 4)])
    with Look():
        sum(layer(torch.randn(5, 2, 4))[0].sum() for layer in layers).backward()
    assert written <= unmarked.BY_ARGUMENT.keys()
