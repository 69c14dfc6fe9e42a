"""Facts of many files: in order, the same however they were come by, and whatever happens to a process."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from d9mlint.frontend import worker
from d9mlint.ir.nodes import FileFacts
from d9mlint.store import gather as gathering
from d9mlint.store import pool
from d9mlint.store.gather import gather


class File(NamedTuple):
    path: str
    text: str
    cells: None = None

    @property
    def digest(self) -> str:
        return hashlib.blake2b(self.text.encode("utf-8", "surrogatepass"), digest_size=20).hexdigest()


CODE = (
    "import torch\n\n\ndef f(x, seed=1):\n    torch.manual_seed(seed)  # noqa\n    return torch.rand(x)\n\n\n"
)


def project(count: int = 12) -> list[File]:
    files = [File(f"{k}.py", f"k = {k}\n" + CODE * (200 + 37 * (k % 5))) for k in range(count)]
    return [*files, File("bad.py", "print 'a'\n"), File("same.py", files[0].text), File("empty.py", "")]


@pytest.fixture(autouse=True)
def fresh_processes() -> Iterator[None]:
    """No process of an earlier test serves this one, none of this one a later test."""
    pool.end_idle()
    yield
    pool.end_idle()


@pytest.fixture
def in_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small projects, too, are given to several processes."""
    monkeypatch.setattr(gathering, "SHARE", 1)


def test_the_same_facts_in_the_same_order_for_any_number_of_jobs(tmp_path: Path) -> None:
    files = project()
    expected = [one for file in files for one in gather([file], jobs=1)]
    assert [facts.digest for facts in expected] == [file.digest for file in files]
    for jobs in (1, 2, 3):
        assert gather(files, jobs=jobs) == expected
    for jobs in (2, 1):  # cold, then warm
        assert gather(files, jobs=jobs, cache=str(tmp_path)) == expected


def test_only_what_is_new_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gather([File("a.py", "a = 1\n")], jobs=1, cache=str(tmp_path))
    parsed: list[str] = []
    parse = gathering._parse

    def watched(
        new: Sequence[gathering.SourceLike], *options: Any
    ) -> tuple[dict[str, tuple[bytes, bool]], dict[str, float]]:
        parsed.extend(source.path for source in new)
        return parse(new, *options)

    monkeypatch.setattr(gathering, "_parse", watched)
    gather([File("a.py", "a = 1\n"), File("b.py", "b = 1\n")], jobs=1, cache=str(tmp_path))
    gather([File("moved.py", "a = 1\n")], jobs=1, cache=str(tmp_path))
    assert parsed == ["b.py"]


def test_what_an_ended_run_has_read_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [File(f"f{number}.py", f"a = {number}\n") for number in range(5)]
    counted: list[tuple[int, int]] = []
    monkeypatch.setattr(gathering, "BATCH", 2)
    parse = gathering._parse
    calls = 0

    def ended(
        new: Sequence[gathering.SourceLike], *options: Any
    ) -> tuple[dict[str, tuple[bytes, bool]], dict[str, float]]:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise KeyboardInterrupt
        return parse(new, *options)

    monkeypatch.setattr(gathering, "_parse", ended)
    with pytest.raises(KeyboardInterrupt):
        gather(files, jobs=1, cache=str(tmp_path))
    found = gather(
        files, jobs=1, cache=str(tmp_path), progress=lambda done, total: counted.append((done, total))
    )
    assert [facts.digest for facts in found] == [file.digest for file in files]
    assert counted[-1] == (1, 1)


def test_a_warm_run_starts_no_process_and_no_run_imports_the_parser(tmp_path: Path) -> None:
    code = textwrap.dedent("""
        import sys
        from types import SimpleNamespace
        from d9mlint.store.gather import gather
        file = SimpleNamespace(path="a", text="x = 1", digest="d")
        print(gather([file], jobs=2, cache=sys.argv[1])[0].lines,
              "d9mlint.store.pool" in sys.modules, "libcst" in sys.modules)
    """)
    outputs = [subprocess.check_output([sys.executable, "-c", code, str(tmp_path)], text=True) for _ in "12"]
    assert [output.split() for output in outputs] == [["1", "True", "False"], ["1", "False", "False"]]


def test_an_unwritable_cache_is_told_once_and_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    told: list[str] = []
    found = gather([File("a", "x")], jobs=1, cache=str(tmp_path / "file" / "cache"), warn=told.append)
    assert len(told) == 1
    assert found == gather([File("a", "x")], jobs=1)


def test_code_that_would_crash_the_parser_costs_its_file_only() -> None:
    files = [*project(), File("monster.py", "x = " + "-" * 200_000 + "a\n")]
    found = gather(files, jobs=2)
    problem = found[-1].problem
    assert problem is not None
    assert problem.code == "DET002"
    assert found[:-1] == gather(files[:-1], jobs=2)


def _killing(monkeypatch: pytest.MonkeyPatch, when: str, times: int) -> None:
    """Let the process that is given a text with ``when`` in it be killed, so many times."""
    send = worker.send
    left = [times]
    lock = threading.Lock()

    def sending(stream: object, *parts: bytes) -> None:
        send(stream, *parts)  # type: ignore[arg-type]
        if when.encode() in parts[-1]:
            with lock:
                left[0] -= 1
                if left[0] >= 0:
                    os.kill(_owner(stream), signal.SIGKILL)

    def _owner(stream: object) -> int:
        return next(p.pid for p in started if p.stdin is stream)

    started: list[subprocess.Popen[bytes]] = []
    start = pool._start

    def starting() -> subprocess.Popen[bytes]:
        started.append(start())
        return started[-1]

    monkeypatch.setattr(pool, "send", sending)
    monkeypatch.setattr(pool, "_start", starting)


def test_a_file_whose_process_was_killed_is_tried_once_more(
    in_processes: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [*project(4), File("victim.py", "victim = 1\n" * 2_000)]
    expected = gather(files, jobs=2)
    _killing(monkeypatch, "victim", 1)
    assert gather(files, jobs=2) == expected


def test_a_file_that_kills_its_process_is_a_finding_and_the_others_go_on(
    in_processes: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    files = [*project(4), File("victim.py", "victim = 1\n" * 2_000)]
    expected = gather(files, jobs=2)
    with monkeypatch.context() as patch:
        _killing(patch, "victim", 99)
        found = gather(files, jobs=2, cache=str(tmp_path))
    assert found[:-1] == expected[:-1]
    problem = found[-1].problem
    assert problem is not None
    assert (problem.code, "crashed" in problem.message) == ("DET002", True)
    assert gather(files, jobs=2, cache=str(tmp_path)) == expected  # a crash is not remembered


def test_a_file_may_not_take_for_ever(in_processes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    patch = (
        "; import time, d9mlint.frontend.extract as e; f = e.extract"
        "; e.extract = lambda t, d: time.sleep(99) if 'slow' in t else f(t, d); main()"
    )
    monkeypatch.setattr(pool, "_BOOT", pool._BOOT.replace("; main()", patch))
    monkeypatch.setattr(pool.Pool.__init__, "__defaults__", (1.5,))
    found: list[FileFacts] = gather([File("a.py", "a = 1"), File("slow.py", "# slow")], jobs=2)
    assert found[0].problem is None
    problem = found[1].problem
    assert problem is not None
    assert (problem.code, "too long" in problem.message) == ("DET002", True)


def _without_processes(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "they end":
        monkeypatch.setattr(pool, "_BOOT", "{path!r}; raise SystemExit(1)")
    elif how == "no Python":
        monkeypatch.setattr(sys, "executable", "/no/such/python")
    else:

        def refuse(*_: object, **__: object) -> None:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        monkeypatch.setattr(subprocess, "Popen", refuse)


@pytest.mark.parametrize("how", ["they end", "no Python", "fork fails"])
def test_without_processes_simple_files_are_parsed_here_and_others_refused(
    how: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    simple = [
        File("a.py", CODE * 50),
        File("bad.py", "print 'a'\n"),
        File("f.py", 'x = f"{a.b} {c!r:>9}"\n'),
    ]
    risky = [
        File("deep.py", "x = " + "(" * 40 + ")" * 40 + "\n"),
        File("chain.py", "x = " + "lambda a, b: " * 300 + "0\n"),
        File("pattern.py", "match x:\n case " + "{1: " * 8 + "a" + "}" * 8 + ": pass\n"),
        File("hidden.py", """x = f"{'}"'}" + """ + "(" * 500 + " '\n"),
        File("long.py", "# more\n" * 9_000),
    ]
    expected = gather([*simple, *risky], jobs=2)
    pool.end_idle()
    with monkeypatch.context() as patch:
        _without_processes(patch, how)
        found = gather([*simple, *risky], jobs=2, cache=str(tmp_path))
    assert found[: len(simple)] == expected[: len(simple)]
    for facts in found[len(simple) :]:
        assert facts.problem is not None
        assert (facts.problem.code, "no separate process" in facts.problem.message) == ("DET002", True)
    assert gather([*simple, *risky], jobs=2, cache=str(tmp_path)) == expected  # it is not remembered


def test_no_more_threads_is_no_reason_to_parse_here(monkeypatch: pytest.MonkeyPatch) -> None:
    files = project(2)
    expected = gather(files, jobs=2)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", _no_thread)
        patch.setattr("d9mlint.frontend.extract.extract", None)
        assert gather(files, jobs=2) == expected


def _no_thread(thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_every_text_is_parsed_in_another_process_and_the_next_run_uses_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("d9mlint.frontend.extract.extract", None)
    starts = []
    new = pool._new
    monkeypatch.setattr(pool, "_new", lambda: starts.append(1) or new())
    for name in ("a", "b", "c"):
        assert gather([File(name, f"{name} = 1\n")], jobs=2)[0].problem is None
    assert len(starts) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="no timers of CPU time")
def test_cpu_time_is_limited_whatever_the_size_and_the_limit_is_not_remembered(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The limit ends native code, too, which no exception reaches."""
    patch = (
        "; import re, d9mlint.frontend.worker as w, d9mlint.frontend.extract as e; f = e.extract; w.CPU_LIMIT = 0.5"
        "; e.extract = lambda t, d: re.match('(a*)*b', 'a' * 40) if 'slow' in t else f(t, d); main()"
    )
    with monkeypatch.context() as context:
        context.setattr(pool, "_BOOT", pool._BOOT.replace("; main()", patch))
        files = [File("a.py", "a = 1"), File("slow.py", "# slow"), File("b.py", "b = 1")]
        found = gather(files, jobs=1, cache=str(tmp_path))
    pool.end_idle()
    assert [one.problem for one in found[::2]] == [None, None]
    problem = found[1].problem
    assert problem is not None
    assert (problem.code, "CPU time" in problem.message) == ("DET002", True)
    assert gather(files, jobs=1, cache=str(tmp_path))[1].problem is None
