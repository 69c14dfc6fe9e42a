"""Which journals the processes of a program write, and what is in them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from d9mlint.trace import journal
from d9mlint.trace.tables import Tables

RECORDER = """\
import os, sys
import torch
from d9mlint.trace import recorder
from d9mlint.trace.sites import Sites

def in_child(work):
    pid = os.fork()
    if pid == 0:
        work()
        found.finish()
        os._exit(0)
    assert os.waitpid(pid, 0)[1] == 0

found = recorder.Recorder(sys.argv[1], {"key": "rank 0"}, "full", Sites((os.getcwd(),)))
"""


def recorded(directory: Path, code: str) -> list[journal.Journal]:
    """The journals that a program leaves in a directory."""
    done = subprocess.run(
        [sys.executable, "-c", code, str(directory / "0.journal")],
        cwd=directory,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return list(journal.journals(str(directory)))


def test_a_journal_without_content_is_no_file(tmp_path: Path) -> None:
    writer = journal.Writer(str(tmp_path / "a.journal"), {"key": "main"})
    writer.close()
    assert not writer.open and os.listdir(tmp_path) == []


def test_entries_of_tables_are_written_once(tmp_path: Path) -> None:
    path = str(tmp_path / "a.journal")
    tables = Tables(paths=[""])
    writer = journal.Writer(path, {"key": "main"}, tables)
    tables.names.number("aten.add")
    writer.records(b"")
    size = os.path.getsize(path)
    writer.records(b"")
    assert os.path.getsize(path) == size + journal.CHUNK.size
    tables.names.number("aten.mul")
    tables.shapes.number("float32[2]")
    tables.paths.append("/p/t.py:3:<module>")
    writer.records(b"")
    writer.failed(ValueError("of the tracer"))
    writer.close()
    found = journal.Journal(path).update()
    assert found.header["key"] == "main"
    assert found.tables["name"] == ["", "aten.add", "aten.mul"]
    assert found.tables["shape"] == ["", "float32[2]"]
    assert found.tables["path"] == ["", "/p/t.py:3:<module>"]
    assert found.events[0]["failed"] == "ValueError: of the tracer"
    assert found.end is None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_forked_processes_write_their_own_journals(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = RECORDER + (
        "def nested():\n"
        "    in_child(lambda: found.add(5, 'grandchild'))\n"
        "    found.add(5, 'child')\n"
        "in_child(lambda: None)\n"
        "found.add(5, 'parent')\n"
        "found.flush()\n"
        "in_child(nested)\n"
        "found.failed(ValueError('of the tracer'))\n"
        "found.finish()\n"
    )
    found = {one.header["key"]: one for one in recorded(tmp_path, code)}
    assert {key: [one.text("name", r.name) for r in one.records] for key, one in found.items()} == {
        "rank 0": ["parent"],
        "rank 0/fork 1": ["child"],
        "rank 0/fork 1/fork 0": ["grandchild"],
    }
    assert found["rank 0"].events[0]["failed"] == "ValueError: of the tracer"
    assert found["rank 0/fork 1"].header["worker"] and not found["rank 0"].header.get("worker")


def test_a_disk_that_is_full_ends_the_recording_and_not_the_program(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = RECORDER + (
        "import resource, signal\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "found.add(5, 'before')\n"
        "found.flush()\n"
        "size = os.path.getsize(sys.argv[1])\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (size + 50, resource.RLIM_INFINITY))\n"
        "found.add(5, 'lost')\n"
        "found.optimizer_step(found)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))\n"
        "found.add(5, 'after')\n"
        "found.finish()\n"
    )
    (found,) = recorded(tmp_path, code)
    assert [found.text("name", r.name) for r in found.records] == ["before"]
    assert found.end is None


def test_a_thread_that_is_starting_does_not_disturb_another_one(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    code = RECORDER + (
        "import threading\n"
        "made, go = threading.Event(), threading.Event()\n"
        "class Slow(recorder.Digester):\n"
        "    def __init__(self):\n"
        "        made.set()\n"
        "        go.wait(60)\n"
        "        super().__init__()\n"
        "found.add(5, 'main')\n"
        "recorder.Digester = Slow\n"
        "thread = threading.Thread(target=lambda: found.add(5, 'thread'))\n"
        "thread.start()\n"
        "made.wait(60)\n"
        "found.flush()\n"
        "go.set()\n"
        "thread.join()\n"
        "found.finish()\n"
    )
    (found,) = recorded(tmp_path, code)
    assert [found.text("name", r.name) for r in found.records] == ["main", "thread"]
    assert found.events == [] and found.end is not None
