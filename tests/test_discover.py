"""Which files are read and which are reported on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from d9mlint.base.errors import UsageError
from d9mlint.config.discover import discover
from d9mlint.config.gitignore import ignored, make_ignore


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def names(root: Path, *arguments: str) -> tuple[list[str], list[str]]:
    found = discover([str(root / a) for a in arguments])
    prefix = len(str(root)) + 1
    return [f[prefix:] for f in found.files], sorted(f[prefix:] for f in found.reported)


def test_arguments_filter_what_is_reported_not_what_is_read(tmp_path: Path) -> None:
    make(tmp_path, "pyproject.toml", "a.py", "pkg/b.py", "pkg/c.ipynb", "pkg/d.pyi", "pkg/e.txt")
    read, reported = names(tmp_path, "pkg")
    assert read == ["a.py", "pkg/b.py", "pkg/c.ipynb"]
    assert reported == ["pkg/b.py", "pkg/c.ipynb"]


def test_environments_and_build_outputs_are_left_out(tmp_path: Path) -> None:
    make(
        tmp_path,
        "pyproject.toml",
        "a.py",
        ".venv/x.py",
        ".virtual_documents/x.ipynb",
        "build/x.py",
        "node_modules/x.py",
        "lib/site-packages/x.py",
    )
    make(tmp_path, "anything/pyvenv.cfg", "anything/lib/x.py", ".hidden/y.py", "{{cookiecutter.name}}/x.py")
    assert names(tmp_path, ".")[0] == [".hidden/y.py", "a.py"]


def test_a_file_named_itself_is_always_taken(tmp_path: Path) -> None:
    make(tmp_path, "pyproject.toml", "a.py", "build/x.py", "script")
    assert names(tmp_path, "build/x.py", "script")[1] == ["build/x.py", "script"]


def test_an_excluded_directory_named_itself_is_walked(tmp_path: Path) -> None:
    make(tmp_path, "pyproject.toml", "a.py", "build/deep/x.py")
    assert names(tmp_path, "build") == (["a.py", "build/deep/x.py"], ["build/deep/x.py"])


def test_without_a_marker_requirements_or_the_outermost_package_are_the_root(tmp_path: Path) -> None:
    make(tmp_path, "top/pkg/__init__.py", "top/pkg/sub/__init__.py", "top/pkg/sub/a.py")
    named = str(tmp_path / "top/pkg/sub/a.py")
    assert discover([named]).root == str(tmp_path / "top/pkg")
    (tmp_path / "top/requirements.txt").touch()
    assert discover([named]).root == str(tmp_path / "top")
    (tmp_path / "pyproject.toml").touch()
    assert discover([named]).root == str(tmp_path), "a marker further up counts for more"


def test_without_a_marker_the_common_directory_is_the_root(tmp_path: Path) -> None:
    make(tmp_path, "one/a.py", "two/b.py", "two/sub/c.py")
    assert discover([str(tmp_path / "two")]).root == str(tmp_path / "two")
    assert discover([str(tmp_path / "two"), str(tmp_path / "one/a.py")]).root == str(tmp_path)


def test_a_home_directory_is_no_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    make(tmp_path, "a.py", "b.py", "other/c.py", ".git/HEAD")
    assert names(tmp_path, "a.py")[0] == ["a.py", "b.py"]


def test_links_that_dangle_or_loop_are_survived(tmp_path: Path) -> None:
    make(tmp_path, "pyproject.toml", "a.py", "pkg/b.py")
    os.symlink(tmp_path, tmp_path / "pkg" / "loop")
    os.symlink(tmp_path / "nowhere.py", tmp_path / "dangling.py")
    os.symlink(tmp_path / "self.py", tmp_path / "self.py")
    os.symlink(tmp_path / "a.py", tmp_path / "again.py")
    assert names(tmp_path, ".")[0] == ["a.py", "pkg/b.py"]


def test_a_missing_path_names_the_nearest(tmp_path: Path) -> None:
    make(tmp_path, "train.py")
    with pytest.raises(UsageError, match=r"does not exist\. Did you mean train\.py\?"):
        discover([str(tmp_path / "trian.py")])
    with pytest.raises(UsageError, match="does not exist"):
        discover([str(tmp_path / "no/such/dir/x.py")])


PATTERNS = [
    "*.py", "!keep.py", "/a", "a/", "a/b", "**/b", "a/**", "a/**/c", "?.py", "[ab].py", "[!a].py", "b*",
    "\\#x", "# c", "!a/keep.py", "a/*", "*", "!*/", "\\!x", "d e", "x ", "**/a/b.py", "a**b",
]  # fmt: skip
PATHS = [
    "a/b/c.py",
    "a/keep.py",
    "keep.py",
    "a.py",
    "b/a/b.py",
    "b.py",
    "ab.py",
    "#x",
    "d e",
    "!x",
    "c/a",
    "x",
]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("repository")
    subprocess.run(["git", "init", "-q", str(root)], check=True)
    make(root, *PATHS)
    return root


@settings(max_examples=40)
@given(chosen=st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=4))
def test_ignore_patterns_mean_what_git_means(repository: Path, chosen: list[str]) -> None:
    (repository / ".gitignore").write_text("\n".join(chosen) + "\n")
    flags = ["--others", "--ignored", "--exclude-standard"]
    done = subprocess.run(
        ["git", "-C", str(repository), "-c", "core.excludesFile=/dev/null", "ls-files", "-z", *flags],
        capture_output=True,
        text=True,
        check=True,
    )
    theirs = set(done.stdout.split("\0")) - {""}
    ignore = make_ignore(str(repository), chosen)
    ours = set()
    for path in [*PATHS, ".gitignore"]:
        parts = path.split("/")
        full = [str(repository / "/".join(parts[: i + 1])) for i in range(len(parts))]
        if any(ignored([ignore], p, i < len(full) - 1) for i, p in enumerate(full)):
            ours.add(path)
    assert ours == theirs


def test_nested_ignore_files_and_those_above_the_root(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    make(tmp_path, "sub/pyproject.toml", "sub/a.py", "sub/skip/b.py", "sub/deep/c.py", "sub/deep/d.py")
    (tmp_path / ".gitignore").write_text("skip/\nc.py\n")
    (tmp_path / "sub/deep/.gitignore").write_text("!c.py\nd.py\n")
    assert names(tmp_path, "sub")[0] == ["sub/a.py", "sub/deep/c.py"]


@pytest.mark.parametrize("version", [2, 3, 4])
def test_what_git_tracks_is_part_of_the_project_whatever_is_ignored(tmp_path: Path, version: int) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    make(
        tmp_path,
        "setup.py",
        "src/models/net.py",
        "src/models/deep/cell.py",
        "src/models.py",
        "models/other.py",
    )
    make(tmp_path, "src/näher/x.py")
    git = ["git", "-C", str(tmp_path), "-c", f"index.version={version}"]
    subprocess.run([*git, "add", "."], check=True)
    if version == 3:
        make(tmp_path, "later.py")
        subprocess.run([*git, "add", "-N", "later.py"], check=True)
    (tmp_path / ".gitignore").write_text("models/\nnäher/\nscratch.py\nlater.py\n")
    make(tmp_path, "src/models/scratch.py", "src/models/new.py", "src/models/junk/x.py", "scratch.py")
    later = ["later.py"] if version == 3 else []
    tracked = ["models/other.py", "setup.py", "src/models.py", "src/models/deep/cell.py", "src/models/net.py"]
    assert names(tmp_path, ".")[0] == sorted([*later, *tracked, "src/näher/x.py"])
    subprocess.run([*git, "rm", "-q", "--cached", "src/models/net.py"], check=True)
    assert "src/models/net.py" not in names(tmp_path, ".")[0]


def test_a_damaged_index_tracks_nothing(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    make(tmp_path, "setup.py", "models/net.py")
    subprocess.run(["git", "-C", str(tmp_path), "add", "."], check=True)
    (tmp_path / ".gitignore").write_text("models/\n")
    index = tmp_path / ".git" / "index"
    whole = index.read_bytes()
    for size in range(0, len(whole), 7):
        index.write_bytes(whole[:size])
        assert "setup.py" in names(tmp_path, ".")[0]
    index.unlink()
    os.mkfifo(index)
    assert names(tmp_path, ".")[0] == ["setup.py"]


def test_the_index_of_a_work_tree(tmp_path: Path) -> None:
    main, tree = tmp_path / "main", tmp_path / "tree"
    subprocess.run(["git", "init", "-q", str(main)], check=True)
    make(main, "setup.py", "models/net.py")
    git = ["git", "-C", str(main), "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "add", "."], check=True)
    subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    subprocess.run([*git, "worktree", "add", "-q", str(tree)], check=True)
    (tree / ".gitignore").write_text("models/\n")
    assert names(tree, ".")[0] == ["models/net.py", "setup.py"]
