"""The view of the second run where there are no overlays: links, and copies of what was there before."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from d9mlint.trace import command, isolation
from d9mlint.trace.isolation import Change, own_directory, snapshot
from d9mlint.trace.program import program


def test_links_to_what_is_left_alone_and_copies_of_what_was_there(tmp_path: Path) -> None:
    cwd, scratch = tmp_path / "cwd", tmp_path / "scratch"
    (cwd / "data").mkdir(parents=True)
    (cwd / "runs" / "old").mkdir(parents=True)
    scratch.mkdir()
    (cwd / "data" / "x.txt").write_text("data")
    (cwd / "runs" / "old" / "a.pt").write_text("old")
    (cwd / "runs" / "new.pt").write_text("made by the first run")
    (cwd / "log.txt").write_text("before\nafter\n")
    copy = tmp_path / "copy"
    copy.write_text("before\n")
    changes = [
        Change(str(cwd / "log.txt"), "file", str(copy)),
        Change(str(cwd / "runs" / "new.pt"), None),
    ]
    view = own_directory(str(cwd), changes, str(scratch))
    work = Path(view.cwd)
    assert view.redirected == ((str(cwd), view.cwd),)
    assert (work / "data" / "x.txt").read_text() == "data"
    assert (work / "log.txt").read_text() == "before\n"
    assert not (work / "runs" / "new.pt").exists()
    (work / "log.txt").write_text("second run")
    (work / "runs" / "other.pt").write_text("second run")
    assert (cwd / "log.txt").read_text() == "before\nafter\n"
    assert sorted(p.name for p in (cwd / "runs").iterdir()) == ["new.pt", "old"]


def test_new_files_of_other_languages_are_seen(tmp_path: Path) -> None:
    before = snapshot(str(tmp_path))
    (tmp_path / "made.bin").write_bytes(b"1")
    assert set(snapshot(str(tmp_path))) - set(before) == {str(tmp_path / "made.bin")}


def test_absolute_paths_outside_of_the_working_directory_are_redirected(tmp_path: Path) -> None:
    cwd, far, scratch = tmp_path / "cwd", tmp_path / "far", tmp_path / "scratch"
    for directory in (cwd, far / "sub", scratch):
        directory.mkdir(parents=True)
    (far / "old.txt").write_text("old")
    (far / "out.txt").write_text("made by the first run")
    (cwd / "in.txt").write_text("input")
    view = own_directory(str(cwd), [Change(str(far / "out.txt"), None)], str(scratch))
    code = f"""
import json, os, pathlib, shutil, sys
from d9mlint.trace.redirect import redirect
redirect(json.loads(sys.argv[1]))
far = pathlib.Path({str(far)!r})
assert not far.joinpath("out.txt").exists() and not os.path.exists(far / "out.txt")
assert far.joinpath("old.txt").read_text() == "old"
with open(far / "out.txt", "w") as stream:
    stream.write("second run")
os.makedirs(far / "new" / "deep")
far.joinpath("new", "deep", "a.bin").write_bytes(b"1")
os.replace(far / "out.txt", far / "new" / "moved.txt")
shutil.copy(far / "new" / "moved.txt", far / "out.txt")
shutil.rmtree(far / "new" / "deep")
assert sorted(os.listdir(far)) == ["new", "old.txt", "out.txt", "sub"]
assert sorted(e.name for e in os.scandir(bytes(far))) == [b"new", b"old.txt", b"out.txt", b"sub"]
inside = pathlib.Path({str(cwd)!r})
assert inside.joinpath("in.txt").read_text() == "input"
inside.joinpath("log.txt").write_text("second run")
os.unlink(far / "old.txt")
"""
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(view.redirected)],
        cwd=view.cwd,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(p.name for p in far.iterdir()) == ["old.txt", "out.txt", "sub"]
    assert (far / "out.txt").read_text() == "made by the first run"
    assert [p.name for p in cwd.iterdir()] == ["in.txt"]


@pytest.mark.full
def test_the_second_run_keeps_apart_without_overlays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    far = tmp_path / "far"
    far.mkdir()
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    monkeypatch.setattr(isolation, "_overlay", lambda *_: None)
    Path("train.py").write_text(
        "import os, torch\n"
        "torch.manual_seed(0)\n"
        f"far = {str(far)!r}\n"
        "count = len(open(far + '/log.txt').read()) if os.path.exists(far + '/log.txt') else 0\n"
        "open(far + '/log.txt', 'a').write('x')\n"
        "torch.save({'pid': os.getpid()}, far + '/saved.pt')\n"
        "torch.save({'pid': os.getpid()}, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'here.pt'))\n"
        "print(torch.ones(2).mul(count).sum().item(), os.getpid())\n"
        "torch.rand(1).add(torch.tensor(float(os.environ.get('PYTHONHASHSEED') == '1')))\n"
    )
    report = command.trace(program(["train.py"], None), command.Options(), lambda _: None)
    assert report.difference is not None and report.difference.place[0].row == 9, report.reason
    assert report.difference.place[0].filename == os.path.abspath("train.py")
    assert (far / "log.txt").read_text() == "x"
    import torch

    first = torch.load(far / "saved.pt")["pid"]
    assert torch.load("here.pt")["pid"] == first
    assert sorted(p.name for p in far.iterdir()) == ["log.txt", "saved.pt"]
