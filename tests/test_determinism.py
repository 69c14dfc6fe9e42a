"""The linter is what it asks of others: the same bytes out of the same input, however it is run."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import blocks, further_paths, page_paths, split_files

Run = Callable[..., Any]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of all the examples of the rules: large enough to be read by several processes."""
    root = tmp_path_factory.mktemp("tree")
    (root / "pyproject.toml").write_text("[project]\nname = 'tree'\n")
    for page in [*page_paths(), *further_paths()]:
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language == "python":
                for name, text in split_files(block.text).items():
                    path = root / f"{page.parent.name}_{page.stem}" / f"b{block.line}" / name
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text, encoding="utf-8")
    filler = "".join(f"def f{i}(x):\n    return [x + {i}, {{'k': x}}]\n\n\n" for i in range(400))
    for i in range(12):
        (root / f"filler{i}.py").write_text(filler)
    return root


@pytest.mark.parametrize(
    "form", ["json", *(pytest.param(form, marks=pytest.mark.full) for form in ("full", "sarif"))]
)
def test_same_bytes_for_any_number_of_jobs_hash_seed_and_state_of_the_cache(
    run: Run, tree: Path, form: str
) -> None:
    shutil.rmtree(tree / ".d9mlint_cache", ignore_errors=True)
    options = ("--select=ALL", "--min-confidence=low", "--output-format", form)
    runs = {
        "cold, 2 jobs, seed 0": run(*options, "--jobs=2", cwd=tree, env={"PYTHONHASHSEED": "0"}),
        "warm, 1 job, seed 1": run(*options, "--jobs=1", cwd=tree, env={"PYTHONHASHSEED": "1"}),
    }
    # Facts from the cache, the rest anew.
    for result in (tree / ".d9mlint_cache").glob("run-*.bin"):
        result.unlink()
    runs["warm facts, seed 1"] = run(*options, "--jobs=2", cwd=tree, env={"PYTHONHASHSEED": "1"})
    runs["no cache, 1 job"] = run(*options, "--no-cache", "--jobs=1", cwd=tree, env={"PYTHONHASHSEED": "7"})
    first = runs["cold, 2 jobs, seed 0"]
    assert first.code == 1
    for name, other in runs.items():
        assert other == first, name


def test_the_cache_forgets_what_has_changed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    code = "import torch\nimport yaml\n\nconfig = yaml.safe_load(open('c.yaml'))\nif config['on']:\n    "
    (tmp_path / "train.py").write_text(code + "torch.backends.cudnn.benchmark = True\n")
    assert run("--select=DET301", cwd=tmp_path).code == 1
    assert run("--select=DET301", cwd=tmp_path).code == 1
    assert run("--select=DET309", cwd=tmp_path).code == 0
    (tmp_path / "train.py").write_text(code + "torch.backends.cudnn.benchmark = False\n")
    assert run("--select=DET301", cwd=tmp_path).code == 0
    (tmp_path / "other.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    assert run("--select=DET301", cwd=tmp_path).code == 1


def test_a_configuration_file_that_is_read_on_the_way_counts(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text(
        "import torch\nimport yaml\n\nwith open('conf/c.yaml') as f:\n    config = yaml.safe_load(f)\n"
        "torch.backends.cudnn.benchmark = config['benchmark']\n"
    )
    (tmp_path / "conf").mkdir()
    for value, code in (("true", 1), ("false", 0), ("true", 1)):
        (tmp_path / "conf/c.yaml").write_text(f"benchmark: {value}\n")
        assert run("--select=DET301", cwd=tmp_path).code == code


@pytest.mark.parametrize("damage", [b"", b"\x00" * 100, b"{}"])
def test_a_damaged_cache_is_made_anew(run: Run, tmp_path: Path, damage: bytes) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    first = run("--select=DET301", cwd=tmp_path)
    for path in (tmp_path / ".d9mlint_cache").rglob("*"):
        if path.is_file():
            path.write_bytes(damage)
    assert run("--select=DET301", cwd=tmp_path) == first


def test_a_cache_that_can_not_be_written_is_done_without(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "train.py").write_text("import torch\ntorch.backends.cudnn.benchmark = True\n")
    (tmp_path / ".d9mlint_cache").write_text("a file is in the way")
    got = run("--select=DET301", cwd=tmp_path)
    assert got.code == 1 and "Traceback" not in got.err
