"""The cache's directory: what it never touches, what `clean` removes, and what damage to it does."""

from __future__ import annotations

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import RULES

from d9mlint.config.settings import load_settings
from d9mlint.knowledge.loader import load_compiled
from d9mlint.pipeline import check
from d9mlint.report import render
from d9mlint.report.common import Options
from d9mlint.store.cache_dir import CacheDir, own_directory

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

CODE = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"


def tree(root: Path) -> dict[str, bytes | str]:
    """All files below a directory, and where links lead to, without the cache itself."""
    found: dict[str, bytes | str] = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if ".d9mlint_cache" not in name and (path.is_file() or path.is_symlink()):
            found[name] = os.readlink(path) if path.is_symlink() else path.read_bytes()
    return found


def cache_dir(value: str) -> str:
    return f"[tool.d9mlint]\ncache-dir = {value!r}\n"


@pytest.mark.parametrize("value", [".", "data/deep", "new"])
def test_a_directory_that_was_there_before_is_neither_marked_nor_removed(
    run: Run, project: Project, value: str
) -> None:
    root = project(
        {
            "pyproject.toml": cache_dir(value),
            "train.py": CODE,
            "data/facts-of-mine.pack": "mine",
            "data/facts-0123456789abcdef.bin": "mine",
            "data/deep/.gitignore": "mine\n",
            "src/model.py": CODE,
            "src/runs/1": "mine",
        }
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    before = tree(root)
    first = run("--select=DET301", cwd=root)
    assert first.code == 1 and first.err == ""
    assert (root / value / ".d9mlint_cache/CACHEDIR.TAG").is_file()
    assert run("--select=DET301", cwd=root) == first
    assert tree(root) == before
    assert run("clean", cwd=root).code == 0
    assert tree(root) == before
    assert not (root / value / ".d9mlint_cache").exists()
    assert run("--select=DET301", cwd=root) == first


def test_clean_leaves_what_it_did_not_write(run: Run, project: Project) -> None:
    root = project({"train.py": CODE})
    run(cwd=root)
    cache = root / ".d9mlint_cache"
    mine = {"notes.txt": "mine", "facts-notes.bin": "mine", "run-0.bin.old": "mine"}
    for name, text in mine.items():
        (cache / name).write_text(text)
    (cache / "keep").mkdir()
    (cache / "run-abcdef.bin").mkdir()
    got = run("clean", cwd=root)
    assert got.code == 0 and "was not written by d9mlint" in got.out
    assert {p.name: p.read_text() for p in cache.iterdir() if p.name in mine} == mine
    assert (cache / "keep").is_dir() and (cache / "run-abcdef.bin").is_dir()
    assert not [p for p in cache.glob("*-*.bin") if p.is_file() and p.name not in mine]


@pytest.mark.parametrize("kind", ["files of others", "a link", "a file"])
def test_a_cache_directory_of_others_is_not_used(
    run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory, kind: str
) -> None:
    root = project({"train.py": CODE})
    cache = root / ".d9mlint_cache"
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "mine").write_text("mine")
    if kind == "a link":
        cache.symlink_to(elsewhere)
    elif kind == "a file":
        cache.write_text("mine")
    else:
        cache.mkdir()
        (cache / "mine").write_text("mine")
    before = {p: p.lstat().st_mtime_ns for p in [*root.rglob("*"), *elsewhere.rglob("*"), elsewhere]}
    got = run("--select=DET301", cwd=root)
    assert got.code == 1 and "DET301" in got.out
    assert got.err.startswith("warning: The cache directory ") and got.err.count("\n") == 1
    cleaned = run("clean", cwd=root)
    assert cleaned.code == 2 and "nothing was removed" in cleaned.err
    after = {p: p.lstat().st_mtime_ns for p in [*root.rglob("*"), *elsewhere.rglob("*"), elsewhere]}
    assert after == before


@pytest.mark.parametrize("key", ["cache-dir", "baseline"])
@pytest.mark.parametrize("value", ["{outside}", "../{outside.name}", "link", "link/deeper", "~/x"])
def test_a_project_does_not_choose_places_outside_of_itself(
    run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory, key: str, value: str
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    root = project({"train.py": CODE})
    (root / "link").symlink_to(outside)
    value = f"../{os.path.relpath(outside, root.parent)}" if value.startswith("../") else value
    value = value.format(outside=outside)
    (root / "pyproject.toml").write_text(f"[tool.d9mlint]\n{key} = {value!r}\n")
    environment = {"HOME": str(outside), "XDG_CACHE_HOME": ""}
    got = run("--update-baseline", cwd=root, env=environment)
    assert got.code == 2 and got.out == ""
    assert f"pyproject.toml:2: {key} " in got.err and "outside of the project" in got.err
    assert f"--{key}" in got.err
    assert run("clean", cwd=root, env=environment).code == 2
    assert not [p for p in outside.rglob("*") if ".cache" not in p.parts]
    # On the command line it is the user who says so.
    given = outside / "x"
    assert run(f"--{key}", given, "--update-baseline", "--baseline", outside / "b.json", cwd=root).code == 0


def test_the_git_repository_is_the_boundary_and_the_user_may_go_beyond(
    run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = project({"repo/one/pyproject.toml": cache_dir("../shared"), "repo/one/train.py": CODE})
    assert run(cwd=root / "repo/one").code == 2
    (root / "repo/.git").mkdir()
    assert run("--select=DET301", cwd=root / "repo/one").code == 1
    assert (root / "repo/shared/.d9mlint_cache/CACHEDIR.TAG").is_file()
    # The user's cache home, and a configuration file of the user's, outside of the repository.
    home = tmp_path_factory.mktemp("home")
    (root / "repo/one/pyproject.toml").write_text(cache_dir(f"{home}/c/own"))
    assert run("--select=DET301", cwd=root / "repo/one", env={"XDG_CACHE_HOME": f"{home}/c"}).code == 1
    assert (home / "c/own/.d9mlint_cache").is_dir()
    (root / "repo/one/pyproject.toml").write_text("")
    (root / "d9mlint.toml").write_text(f"cache-dir = {str(home / 'mine')!r}\n")
    assert run("--select=DET301", cwd=root / "repo/one").code == 1
    assert (home / "mine/.d9mlint_cache").is_dir()
    assert run("clean", "--cache-dir", home / "mine", cwd=root / "repo/one").code == 0
    assert not (home / "mine/.d9mlint_cache").exists() and (home / "mine").is_dir()


def test_where_the_cache_is() -> None:
    assert own_directory("", "/p") == "/p/.d9mlint_cache"
    assert own_directory("/p/.cache", "/p") == "/p/.cache/.d9mlint_cache"
    assert own_directory("/p/.d9mlint_cache", "/p") == "/p/.d9mlint_cache"


def test_names_and_links_lead_nowhere_else(tmp_path: Path) -> None:
    cache = CacheDir(str(tmp_path / ".d9mlint_cache"))
    for name in ("../run-abcd.bin", "run-abcd.bin/../../x", "x", "run-.bin", ".gitignore"):
        with pytest.raises(ValueError, match="no name"):
            cache.write(name, [b""])
    victim = tmp_path / "victim"
    victim.write_bytes(b"mine")
    cache.write_sealed("run-abcd.bin", b"result")
    (tmp_path / ".d9mlint_cache/run-abcd.bin").unlink()
    (tmp_path / ".d9mlint_cache/run-abcd.bin").symlink_to(victim)
    assert cache.read("run-abcd.bin") is None
    cache.write_sealed("run-abcd.bin", b"result")
    assert victim.read_bytes() == b"mine" and cache.read_sealed("run-abcd.bin") == b"result"
    os.unlink(tmp_path / ".d9mlint_cache/run-abcd.bin")
    os.mkfifo(tmp_path / ".d9mlint_cache/run-abcd.bin")
    assert cache.read("run-abcd.bin") is None


def test_what_is_sealed_is_of_its_name(tmp_path: Path) -> None:
    cache = CacheDir(str(tmp_path / ".d9mlint_cache"))
    cache.write_sealed("run-aaaa.bin", b"result of a")
    (tmp_path / ".d9mlint_cache/run-aaaa.bin").rename(tmp_path / ".d9mlint_cache/run-bbbb.bin")
    assert cache.read_sealed("run-bbbb.bin") is None


def damage(data: bytes, random_: random.Random) -> bytes:
    """The same with one to three bits changed, or cut short."""
    changed = bytearray(data)
    if changed and random_.random() < 0.2:
        del changed[random_.randrange(len(changed)) :]
    for _ in range(random_.choice([1, 1, 3]) if changed else 0):
        changed[random_.randrange(len(changed))] ^= 1 << random_.randrange(8)
    return bytes(changed)


def test_damage_to_any_file_of_the_cache_is_a_miss(project: Project) -> None:
    """A sample; ``tests/breadth/damaged_cache.py`` does it 10,000 times."""
    root = project({"train.py": CODE, "lib.py": "import numpy as np\nx = np.random.rand(3)  # noqa: DET1\n"})
    settings = load_settings(str(root), overrides={"select": ["ALL"], "jobs": 1})
    plain = Options(str(root))
    expected = render(check([str(root)], settings), "json", plain)
    assert expected != "[]\n"
    random_ = random.Random(0)
    for _ in range(60):
        files = [p for p in (root / ".d9mlint_cache").iterdir() if p.is_file()]
        assert {"CACHEDIR.TAG", "facts", "run"} <= {p.name.partition("-")[0] for p in files}
        for path in files:
            path.write_bytes(damage(path.read_bytes(), random_))
        result = check([str(root)], settings)
        assert render(result, "json", plain) == expected and result.warnings == ()


def test_a_file_of_the_cache_that_does_not_fit_into_memory_is_a_miss(project: Project) -> None:
    root = project({"train.py": CODE})
    settings = load_settings(str(root), overrides={"jobs": 1})
    expected = check([str(root)], settings).items
    for path in (root / ".d9mlint_cache").glob("*.bin"):
        os.truncate(path, 1 << 40)
    result = check([str(root)], settings)
    assert result.items == expected and result.warnings == ()


def test_a_file_that_is_too_large_for_a_run_is_not_read_for_the_cache_either(project: Project) -> None:
    code = "import yaml, torch\nwith open('c.yaml') as f:\n    print(yaml.safe_load(f), torch.rand(3))\n"
    root = project({"train.py": code, "c.yaml": ""})
    os.truncate(root / "c.yaml", 1 << 40)
    settings = load_settings(str(root), overrides={"jobs": 1, "select": ["DET101"]})
    for _ in range(2):
        assert [item.finding.code for item in check([str(root)], settings).items] == ["DET101"]


def test_a_configuration_file_that_is_added_is_read(project: Project) -> None:
    code = "from lightning.pytorch.cli import LightningCLI\nLightningCLI(seed_everything_default=False)\n"
    root = project({"train.py": code, "files/empty.txt": ""})
    settings = load_settings(str(root), overrides={"jobs": 1, "select": ["DET101"]})
    for _ in range(2):
        assert [item.finding.code for item in check([str(root)], settings).items] == ["DET101"]
    (root / "files/seed.yaml").write_text("seed_everything: 1\ntrainer: {max_epochs: 1}\n")
    assert not check([str(root)], settings).items


def test_damage_to_the_compiled_knowledge_is_a_miss(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    rules = project({"DET301-x.md": (RULES / "DET301-cudnn-benchmark.md").read_text()})
    expected = load_compiled(rules)
    (path,) = (tmp_path / "home/d9mlint").glob("knowledge-*.bin")
    mine = path.with_name("knowledge-mine.bin")
    mine.write_text("mine")
    content = path.read_bytes()
    random_ = random.Random(0)
    for _ in range(100):
        path.write_bytes(damage(content, random_))
        assert load_compiled(rules) == expected
        assert path.read_bytes() == content
    assert mine.read_text() == "mine"
