"""Executors: the same report from each, lost workers, and clusters that are not there."""

from __future__ import annotations

import importlib.util
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from executor_jobs import Doubling, Sleeping, Unfit, Waiting

from d9mlint.base.errors import UsageError
from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check
from d9mlint.store.executors import Executor, Processes, Serial, executor_for

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

PROGRAM = """\
import os
import torch
import yaml
import shared
config = yaml.safe_load(open("config.yaml"))
if __name__ == "__main__":
    x = torch.rand({number})
    for name in os.listdir("."):
        print(name, shared.draw(), x)
    if config["benchmark"]:
        torch.backends.cudnn.benchmark = True
"""
SHARED = """\
import numpy as np


def draw():
    return np.random.rand(3)


def unused(words):
    return [word for word in set("a b c".split())]
"""
FILES = {
    **{f"run_{number}.py": PROGRAM.format(number=number) for number in range(9)},
    "shared.py": SHARED,
    "config.yaml": "benchmark: true\n",
    "facts.yaml": "ops: []\n",
    "pyproject.toml": '[project]\nname = "x"\ndependencies = ["torch==2.4"]\n[tool.d9mlint]\nknowledge = ["facts.yaml"]\n',
    # What is linted is not imported by any worker.
    **{f"{name}.py": "raise SystemExit(70)\n" for name in ("msgspec", "distributed", "ray", "pickle")},
}
CLUSTERS = [
    pytest.param(
        name,
        marks=[
            pytest.mark.full,
            pytest.mark.skipif(importlib.util.find_spec(module) is None, reason=f"needs the extra {name}"),
        ],
    )
    for name, module in (("dask", "distributed"), ("ray", "ray"))
]


@pytest.mark.parametrize("executor", ["processes", *CLUSTERS])
def test_the_report_is_the_same(run: Run, project: Project, executor: str) -> None:
    root = project(FILES)
    options = ("--output-format=json", "--no-cache", "--select=ALL", "--min-severity=advice", "--jobs=2")
    expected = run(*options, "--executor=serial", cwd=root)
    assert expected.code == 1 and expected.out.count("DET101") >= 9 and expected.out.count("DET301") >= 9
    assert run(*options, f"--executor={executor}", cwd=root) == expected


@pytest.fixture
def cluster() -> Iterator[Callable[[str], Executor]]:
    made: list[Any] = []

    def make(name: str) -> Executor:
        if name == "dask":
            from d9mlint.store.executors.dask import Dask

            made.append(Dask("", 2))
        elif name == "ray":
            from d9mlint.store.executors.ray import Ray

            os.environ["PYTHONPATH"] = str(Path(__file__).parent)
            made.append(Ray("", 2))
        else:
            return Processes(2)
        return made[-1]

    before = os.environ.get("PYTHONPATH")
    yield make
    for one in made:
        one.close()
    os.environ.pop("PYTHONPATH", None)
    if before is not None:
        os.environ["PYTHONPATH"] = before


@pytest.mark.parametrize("name", ["processes", *CLUSTERS])
def test_a_lost_worker_costs_no_result(cluster: Callable[[str], Executor], tmp_path: Path, name: str) -> None:
    executor = cluster(name)
    expected = [2 * number for number in range(20)]
    assert executor.map(Doubling(str(tmp_path / "once"), os.getpid(), False), range(20)) == expected
    executor.warnings()
    assert executor.map(Doubling(str(tmp_path / "always"), os.getpid(), True), range(20)) == expected
    (said,) = executor.warnings()
    assert "main process" in said and executor.warnings() == []
    if name != "processes":
        with pytest.raises(UsageError, match=r"A worker on \S+: /data/project is missing there\."):
            executor.map(Unfit("", 0, False), range(20))


def test_results_are_handed_on_while_earlier_tasks_still_run(tmp_path: Path) -> None:
    marker = tmp_path / "second part"

    def finished(place: int, results: Sequence[int]) -> None:
        if place:
            marker.touch()

    assert Processes(2).map(Waiting(str(marker), 0, False), range(8), finished)[0] == 1


def test_what_is_interrupted_does_not_wait_for_its_processes(tmp_path: Path) -> None:
    began: list[float] = []

    def interrupt(number: int, frame: object) -> None:
        if not began and len(list(tmp_path.iterdir())) == 2:
            began.append(time.monotonic())
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    # Asked again until both processes work, however long it takes to start them.
    signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    try:
        with pytest.raises(KeyboardInterrupt):
            Processes(2).map(Sleeping(str(tmp_path), 0, False), [300] * 8)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert time.monotonic() - began[0] < 200 and multiprocessing.active_children() == []


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks at processes in /proc")
def test_workers_end_when_the_run_is_killed(tmp_path: Path) -> None:
    script = (
        "from executor_jobs import Noting\n"
        "from d9mlint.store.executors import Processes\n"
        f"Processes(2).map(Noting({str(tmp_path)!r}, 0, False), [300] * 8)\n"
    )
    killed = subprocess.Popen([sys.executable, "-c", script], cwd=Path(__file__).parent)
    try:
        workers = _wait(lambda: [int(one.name) for one in tmp_path.iterdir()], lambda found: len(found) == 2)
    finally:
        killed.kill()
        killed.wait()
    assert not _wait(lambda: [pid for pid in workers if _lives(pid)], lambda found: not found)


def _wait(look: Callable[[], list[int]], enough: Callable[[list[int]], bool]) -> list[int]:
    """What is seen when it is enough, or after five minutes."""
    end = time.monotonic() + 300
    while not enough(found := look()) and time.monotonic() < end:
        time.sleep(0.1)
    return found


def _lives(pid: int) -> bool:
    """Whether a process does anything: one that nobody waits for may remain as a name."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.full
@pytest.mark.skipif(importlib.util.find_spec("distributed") is None, reason="needs the extra dask")
def test_a_cluster_at_an_address(run: Run, project: Project, cluster: Callable[[str], Any]) -> None:
    root = project(FILES)
    options = ("--output-format=json", "--no-cache", "--jobs=2")
    host = cluster("dask")
    host.connect()
    address = host._client.scheduler.address
    expected = run(*options, "--executor=serial", cwd=root)
    assert run(*options, f"--executor=dask:{address}", cwd=root) == expected
    # It was not this command's to end.
    assert host.map(Doubling("", os.getpid(), False), [1, 2]) == [2, 4]


@pytest.mark.parametrize("name", ["dask", "ray"])
def test_a_cluster_that_is_not_there(run: Run, project: Project, name: str) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        done = run("--no-cache", f"--executor={name}:{address}", cwd=project(FILES))
    assert done.code == 2 and done.out == ""
    if importlib.util.find_spec("distributed" if name == "dask" else "ray") is None:
        assert f"--executor {name} needs its library" in done.err
    else:
        assert (
            done.err == f"error: --executor {name}: there is no cluster at {address}: Connection refused.\n"
        )


def test_a_cluster_without_its_library(run: Run, project: Project, tmp_path: Path) -> None:
    root = project(FILES)
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    (hidden / "distributed.py").write_text("raise ImportError('No module named distributed')\n")
    done = run("--no-cache", "--executor=dask", cwd=root, env={"PYTHONPATH": str(hidden)})
    assert done.code == 2
    assert "pip install 'dask[distributed]'" in done.err and done.err.count("\n") == 1


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("dusk", "executor must be one of serial, processes, dask, ray, not 'dusk'. Did you mean dask?"),
        ("serial:8", "executor serial takes no address."),
        ("dask:", "executor dask needs an address after the colon."),
    ],
)
def test_executors_that_there_are_not(run: Run, project: Project, value: str, said: str) -> None:
    done = run(f"--executor={value}", cwd=project({"a.py": ""}))
    assert (done.code, done.err) == (2, f"error: command line: {said}\n")


@pytest.mark.parametrize("value", ["dask", "dask:tcp://10.0.0.1:8786", "ray:auto"])
def test_a_project_does_not_choose_a_cluster(
    run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory, value: str
) -> None:
    root = project({"a.py": "import torch\n", "d9mlint.toml": f'executor = "{value}"\n'})
    done = run(cwd=root)
    assert done.code == 2 and done.err.count("\n") == 1
    assert f"d9mlint.toml:1: a project's configuration cannot choose the executor {value}" in done.err
    # The command line goes before it, and a configuration outside of the project is the user's.
    assert run("--executor=serial", cwd=root).code == 0
    own = tmp_path_factory.mktemp("own") / "d9mlint.toml"
    own.write_text(f'executor = "{value}"\n')
    (root / "d9mlint.toml").write_text('executor = "serial"\n')
    shown = run("--config", str(own), "--show-settings", cwd=root)
    assert shown.code == 0 and f'executor = "{value}"' in shown.out


def test_the_default_is_as_many_processes_as_may_work() -> None:
    assert isinstance(executor_for(1, "processes"), Serial)
    assert isinstance(executor_for(2, "processes"), Processes)
    assert isinstance(executor_for(2, "serial"), Serial)


@pytest.mark.parametrize("jobs", [1, 2])
def test_progress_counts_programs(tmp_path: Path, jobs: int) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    for number in range(8):
        (tmp_path / f"run{number}.py").write_text("import torch\n\nprint(torch.rand(3))\n")
        (tmp_path / f"part{number}.py").write_text("def never(x):\n    return x.cumsum(0)\n")
    said: list[str] = []
    settings = load_settings(str(tmp_path), isolated=True, overrides={"cache": False, "jobs": jobs})
    check([str(tmp_path)], settings, progress=said.append)
    programs = [line for line in said if line.startswith("analyzing programs: ")]
    assert programs[0] == "analyzing programs: 0 of 8"
    assert programs[-1] == "analyzing programs: 8 of 8"
    assert len(programs) > 3
    assert said[-1] == "analyzing other modules: 8 of 8"


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("stage", ["programs", "other modules"])
def test_what_an_ended_run_has_made_is_not_made_again(tmp_path: Path, jobs: int, stage: str) -> None:
    root = tmp_path / "project"
    root.mkdir()
    (root / "pyproject.toml").write_text("")
    for number in range(8):
        (root / f"run{number}.py").write_text("import torch\n\nprint(torch.rand(3))\n")
        (root / f"part{number}.py").write_text("def never(x):\n    return x.cumsum(0)\n")
    overrides = {"cache-dir": str(tmp_path / "cache"), "jobs": jobs}
    settings = load_settings(str(root), isolated=True, overrides=overrides)
    last = ""

    def end(said: str) -> None:
        nonlocal last
        before, last = last, said
        counted = f"analyzing {stage}: "
        if before.startswith(counted) and said.startswith(counted) and not said.endswith(": 0 of 8"):
            done = int(said.removeprefix(counted).split()[0])
            if done >= 4:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check([str(root)], settings, progress=end)
    done = int(last.split(": ")[1].split()[0])
    assert done >= 4
    # An end before anything is made takes nothing away, nor does a changed program anything but its own report.
    (root / "run0.py").write_text("import torch\n\nprint(torch.rand(4))\n")
    again: list[str] = []

    def end_at_once(said: str) -> None:
        again.append(said)
        if said.startswith(f"analyzing {stage}: "):
            raise KeyboardInterrupt

    for _ in range(2):
        again.clear()
        with pytest.raises(KeyboardInterrupt):
            check([str(root)], settings, progress=end_at_once)
        kept = done - 1 if stage == "programs" else done
        assert f"analyzing {stage}: {kept} of 8" in again
    whole = check([str(root)], settings)
    fresh = load_settings(str(root), isolated=True, overrides={"cache": False, "jobs": 1})
    assert whole.items == check([str(root)], fresh).items
