"""The view of the second run where there are no overlays: links, and copies of what was there before."""

from __future__ import annotations

from pathlib import Path

from d9mlint.trace.isolation import Change, own_directory, snapshot


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
    assert view.renamed == str(cwd)
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
