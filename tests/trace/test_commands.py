"""How programs are started: modules, launchers, numbers of steps, levels; and what is left when a run is ended."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

import pytest
from support import needs

from tests.trace.test_programs import environment

pytestmark = needs("torch")

PROGRAM = """\
import sys
import torch

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(4):
    x = torch.randn(8, 4)
    if step == 2 and "--late" in sys.argv:
        torch.seed()
        x = torch.randn(8, 4)
    loss = model(x).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
LATE = 10
"""The line of the seed that differs, in step 3."""


def traced(directory: Path, *arguments: str) -> dict[str, Any]:
    report = directory / "report.json"
    done = subprocess.run(
        [*(sys.executable, "-m", "d9mlint", "trace", "--output-format=json", "-o", str(report)), *arguments],
        cwd=directory,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert report.exists(), done.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def package(directory: Path) -> None:
    (directory / "pkg").mkdir()
    (directory / "pkg" / "__init__.py").write_text("")
    (directory / "pkg" / "train.py").write_text(PROGRAM)


@pytest.mark.full
def test_a_module_that_is_ended_before_the_difference_is_equal_at_the_light_level(tmp_path: Path) -> None:
    package(tmp_path)
    report = traced(tmp_path, "--level", "light", "--steps", "2", "-m", "pkg.train", "--late")
    assert (report["outcome"], report["level"]) == ("equal", "light")
    assert [run["steps"] for run in report["runs"]] == [2, 2]
    assert report["notes"] == ["both runs were ended after 2 steps"]


@pytest.mark.full
def test_a_module_diverges_at_its_line_and_step(tmp_path: Path) -> None:
    package(tmp_path)
    report = traced(tmp_path, "-m", "pkg.train", "--late")
    difference = report["difference"]
    place = difference["place"][0]
    assert (difference["verdict"], difference["step"]) == ("rng", 3)
    assert (Path(place["filename"]).name, place["row"]) == ("train.py", LATE)


@pytest.mark.full
def test_the_light_level_names_the_step(tmp_path: Path) -> None:
    package(tmp_path)
    difference = traced(tmp_path, "--level=light", "-m", "pkg.train", "--late")["difference"]
    assert (difference["verdict"], difference["step"]) == ("rng", 3)


@pytest.mark.full
@pytest.mark.parametrize(
    "launcher",
    [
        ("torchrun", "--standalone", "--nproc-per-node", "1", "train.py"),
        ("torchrun", "--standalone", "--nproc-per-node", "1", "-m", "pkg.train"),
        ("accelerate", "launch", "--cpu", "--num_processes", "1", "train.py"),
    ],
    ids=["torchrun", "torchrun -m", "accelerate launch"],
)
def test_launchers(launcher: tuple[str, ...], tmp_path: Path) -> None:
    package(tmp_path)
    (tmp_path / "train.py").write_text(PROGRAM)
    report = traced(tmp_path, *launcher, "--late")
    difference = report["difference"]
    assert difference is not None, report["reason"]
    assert (difference["verdict"], difference["step"]) == ("rng", 3)
    assert difference["place"][0]["row"] == LATE


@pytest.mark.full
def test_the_finding_of_the_static_analysis_comes_with_its_fix(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nmodel = torch.nn.Linear(4, 1)\nprint(model.weight)\n")
    finding = traced(tmp_path, "train.py")["finding"]
    assert (finding["code"], finding["row"]) == ("DET101", 2)
    assert finding["fix"] and "seed" in finding["help"]


@pytest.mark.parametrize(
    ("arguments", "module", "left"),
    [
        (["-m", "pkg.train", "--late", "-o", "x"], "pkg.train", ("--late", "-o", "x")),
        (["--level", "light", "-mpkg.train", "--steps", "2"], "pkg.train", ("--steps", "2")),
        (["--no-perturb", "train.py", "-m", "x"], None, ("train.py", "-m", "x")),
        (["-o", "-m", "train.py"], None, ("train.py",)),
    ],
)
def test_options_end_where_those_of_the_program_begin(
    arguments: list[str], module: str | None, left: tuple[str, ...]
) -> None:
    from d9mlint.cli.trace import trace

    given = trace.make_context("trace", arguments).params
    assert (given["module"], given["program"]) == (module, left)


# What is left

WAITS = """\
import multiprocessing, os, sys, time
import torch

torch.ones(2).sum()
if {condition}:
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    worker = context.Process(target=lambda: (ready.set(), time.sleep(1000)))
    worker.start()
    # A signal that comes while a process is forked may be swallowed by what runs after a fork.
    ready.wait()
    with open({pids!r} + ".part", "w") as stream:
        stream.write(f"{{os.getpid()}} {{worker.pid}}")
    os.replace({pids!r} + ".part", {pids!r})
    {then}
"""
SLEEPS = "import subprocess; subprocess.Popen(['sleep', '1000']); time.sleep(1000)"


def marked(mark: str, *more: str) -> list[int]:
    """The processes that have these entries in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                variables = (entry / "environ").read_bytes().split(b"\0")
            except OSError:
                continue
            if all(text.encode() in variables for text in (f"D9MLINT_TEST={mark}", *more)):
                found.append(int(entry.name))
    return found


def commanded(mark: str, *more: str) -> bool:
    """Whether one of the marked processes is the command of ``SLEEPS``."""
    for pid in marked(mark, *more):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{pid}/comm").read_text().strip() == "sleep":
                return True
    return False


def gone(pids: list[int]) -> bool:
    limit = time.monotonic() + 300
    while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < limit:
        time.sleep(0.1)
    return not any(Path(f"/proc/{pid}").exists() for pid in pids)


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
def test_nothing_is_left_when_the_second_run_is_ended(number: int, tmp_path: Path) -> None:
    temporary, mark = tmp_path / "tmp", uuid.uuid4().hex
    temporary.mkdir()
    second = "os.environ.get('PYTHONHASHSEED') == '1'"
    (tmp_path / "train.py").write_text(
        WAITS.format(condition=second, pids=str(tmp_path / "pids"), then=SLEEPS)
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "d9mlint", "trace", "train.py"],
        cwd=tmp_path,
        env={
            **{k: v for k, v in os.environ.items() if k != "PYTHONHASHSEED"},
            "TMPDIR": str(temporary),
            "D9MLINT_TEST": mark,
        },
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    limit = time.monotonic() + 600
    # What the second run writes is not seen from here: it starts a command when its worker waits.
    while not commanded(mark, "PYTHONHASHSEED=1") and time.monotonic() < limit:
        time.sleep(0.2)
    assert len(marked(mark, "PYTHONHASHSEED=1")) == 3
    # As a terminal does it: the whole group gets the signal.
    os.killpg(process.pid, number)
    assert process.wait(timeout=900) == 128 + number
    limit = time.monotonic() + 300
    while marked(mark) and time.monotonic() < limit:
        time.sleep(0.1)
    assert marked(mark) == []
    assert [p.name for p in temporary.iterdir() if p.name.startswith("d9mlint")] == []


@pytest.mark.full
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="looks at /proc")
def test_nothing_is_left_when_the_program_crashes(tmp_path: Path) -> None:
    temporary, pids = tmp_path / "tmp", tmp_path / "pids"
    temporary.mkdir()
    (tmp_path / "train.py").write_text(WAITS.format(condition="True", pids=str(pids), then="os.abort()"))
    done = subprocess.run(
        [sys.executable, "-m", "d9mlint", "trace", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "TMPDIR": str(temporary)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 2
    assert f"the first run was killed by signal {int(signal.SIGABRT)}" in done.stdout
    assert gone([int(pid) for pid in pids.read_text().split()])
    assert [p.name for p in temporary.iterdir() if p.name.startswith("d9mlint")] == []


@pytest.mark.skipif(not hasattr(signal, "sigtimedwait"), reason="waits for signals")
def test_a_session_that_was_stopped_for_a_while_sends_the_program_no_signal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from d9mlint.trace import runner

    class Garbage:
        si_signo, si_code = 1 << 20, 0

    wait, returned = signal.sigtimedwait, [Garbage]
    monkeypatch.setattr(signal, "sigtimedwait", lambda *a: returned.pop() if returned else wait(*a))
    code = [sys.executable, "-c", "import time; time.sleep(0.5); raise SystemExit(7)"]
    assert runner.run(code, env=os.environ, cwd=os.getcwd()) == runner.Ended(7)
    assert not returned


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="sends signals")
def test_a_signal_between_two_runs_ends_the_session_too(tmp_path: Path) -> None:
    code = (
        "import os, signal, tempfile\n"
        "from d9mlint.trace.runner import Interrupted, interruptible\n"
        "from d9mlint.verify.workspace import workspace\n"
        "try:\n"
        "    with interruptible(), workspace('d9mlint-trace-') as directory:\n"
        "        assert os.listdir(tempfile.gettempdir())\n"
        "        os.kill(os.getpid(), signal.SIGTERM)\n"
        "        raise SystemExit('not interrupted')\n"
        "except Interrupted as error:\n"
        "    raise SystemExit(128 + error.args[0])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TMPDIR": str(tmp_path)}, timeout=600
    )
    assert done.returncode == 128 + signal.SIGTERM
    assert list(tmp_path.iterdir()) == []
