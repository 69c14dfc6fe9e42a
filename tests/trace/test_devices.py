"""What only programs on a GPU do: graphs are captured, streams run beside each other, copies lag behind. The device is
replaced by functions."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from d9mlint.trace import confirm, digest, names  # noqa: E402
from d9mlint.trace.hashing import Digester  # noqa: E402
from d9mlint.trace.recorder import FULL, Recorder, plan_of, wait_for_copy  # noqa: E402
from d9mlint.trace.replay import Replay  # noqa: E402
from d9mlint.trace.sites import Sites  # noqa: E402
from d9mlint.trace.steps import Steps  # noqa: E402
from d9mlint.trace.watch import Watch  # noqa: E402


class Graph:
    """What a CUDA graph offers; ``work`` is what it runs."""

    def __init__(self, work: Any = None) -> None:
        self.work = work

    def capture_begin(self, pool: Any = None) -> None:
        if pool == "invalid":
            raise RuntimeError("capture failed")

    def capture_end(self) -> None:
        pass

    def replay(self) -> None:
        self.work()


def recorded(recorder: Recorder) -> list[str]:
    return [recorder._tables.names.texts[one[3]] for one in recorder._pending]


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(str(tmp_path / "one.journal"), {"key": "main"}, FULL, Sites())


@pytest.fixture
def watch(recorder: Recorder, monkeypatch: pytest.MonkeyPatch) -> Watch:
    for name in ("capture_begin", "capture_end", "replay"):
        monkeypatch.setattr(Graph, name, getattr(Graph, name))
    watch = Watch(recorder.sites)
    watch.graphs(recorder, Graph)
    return watch


def test_operations_that_are_captured_are_left_alone(recorder: Recorder, watch: Watch) -> None:
    recorder.replay = Replay(recorder)
    graph = Graph()
    flushed = []
    with recorder.mode:
        value = torch.ones(3)
        value.exp()
        graph.capture_begin(pool=None)
        stream = recorder.stream()
        stream.digester.flush = lambda: flushed.append(1)  # type: ignore[method-assign]
        value.cos()
        recorder.batch([value], "DataLoader batch")
        recorder.compiled([value], [value], "compiled function")
        recorder.optimizer_step(None)
        assert not flushed
        graph.capture_end()
        value.sin()
    recorder.on = False
    assert recorded(recorder) == ["aten.ones", "aten.exp", "NoneType.step", "aten.sin"]
    assert recorder.replay._count == 3


def test_the_light_level_reads_nothing_during_a_capture(recorder: Recorder, watch: Watch) -> None:
    steps = Steps.__new__(Steps)
    steps._recorder = recorder
    graph = Graph()
    with pytest.raises(RuntimeError):
        graph.capture_begin(pool="invalid")
    graph.capture_begin()
    steps._add("loss", [torch.ones(1)])
    graph.capture_end()
    steps._add("loss", [torch.ones(1)])
    recorder.on = False
    assert recorded(recorder) == ["loss"]


def test_what_a_graph_may_have_written_is_digested_at_its_next_read(recorder: Recorder, watch: Watch) -> None:
    with recorder.mode:
        value = torch.zeros(3)
        # A graph writes without operations.
        graph = Graph(lambda: value.numpy().fill(2))
        value.exp()
        graph.replay()
        value.exp()
        value.exp()
    recorder.on = False
    assert recorded(recorder) == ["aten.zeros", "aten.exp", "aten.exp self", "aten.exp", "aten.exp"]


class OnDevice(torch.Tensor):
    """A tensor that says that it is on a GPU."""

    is_cpu = False
    device = torch.device("cuda:1")


@pytest.mark.parametrize(("lags", "device", "waits"), [(True, 1, 1), (True, 0, 0), (False, 1, 0)])
def test_the_host_waits_for_a_copy_that_does_not(
    lags: bool, device: int, waits: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited: list[Any] = []
    monkeypatch.setattr(names, "synchronize", waited.append)
    source = torch.ones(2).as_subclass(OnDevice) if device else torch.ones(2)
    plan = plan_of(torch.ops.aten._to_copy.default)
    wait_for_copy(plan, (source,), {"non_blocking": lags, "device": "cpu"}, torch.ones(2))
    plan = plan_of(torch.ops.aten.copy_.default)
    target = torch.ones(2)
    wait_for_copy(plan, (target, source, lags), {}, target)
    assert waited == [torch.device("cuda:1")] * 2 * waits


def test_operations_without_such_a_copy_never_wait() -> None:
    assert not plan_of(torch.ops.aten.add.Tensor).lags
    assert plan_of(torch.ops.aten.copy_.default).lags


def test_sums_of_all_streams_are_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[Any] = []
    monkeypatch.setattr(torch.cuda, "synchronize", waited.append)
    names.synchronize(torch.device("cuda:1"))
    names.synchronize(torch.device("meta"))
    assert waited == [torch.device("cuda:1")]
    monkeypatch.setattr(names, "synchronize", waited.append)
    digester = Digester()
    digester._sums.append(torch.tensor(3))
    digester._fetch()
    assert waited[1:] == [torch.device("cpu")] and digester._sums == [3]


def test_other_memory_is_left_on_the_device_of_an_operation(monkeypatch: pytest.MonkeyPatch) -> None:
    devices: list[Any] = []
    monkeypatch.setattr(confirm, "JUNK", 8)
    full = torch.full
    monkeypatch.setattr(torch, "full", lambda *a, **k: devices.append(k["device"]) or full(*a, **k))
    plan = plan_of(torch.ops.aten.exp.default)
    confirm.confirm(
        lambda value: value, (torch.ones(2, device="meta").as_subclass(OnMeta),), {}, plan, runs=1
    )
    assert torch.device("meta") in devices and torch.device("cpu") in devices


class OnMeta(torch.Tensor):
    """A tensor of another device that can be read."""

    def cpu(self, *args: Any) -> Any:
        return torch.ones(2)


def test_the_kernel_is_tried_on_the_device_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[Any] = []
    module = type(torch)("d9mlint.trace.triton_digest")
    module.sum_of_words = lambda words: tried.append(words.device) or 0  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(digest, "_found", False)
    monkeypatch.setattr(digest, "_sum_on_device", lambda words: 0)
    monkeypatch.delitem(sys.modules, "tensorflow", raising=False)
    assert digest._kernel(torch.device("cpu")) is module.sum_of_words
    assert tried == [torch.device("cpu")]
