"""One run over several projects: the nearest configuration and the nearest pins hold for each file."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

KTHVALUE = """\
import torch

if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(8, device="cuda")
    print(torch.kthvalue(x, 2))
"""
BENCHMARK = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"


def pinned(version: str, config: str = "") -> str:
    return f'[project]\nname = "p"\ndependencies = ["torch=={version}"]\n{config}'


@pytest.fixture
def monorepo(project: Project) -> Path:
    root = project(
        {
            "services/a/pyproject.toml": pinned("2.4.0", '[tool.d9mlint]\nignore = ["DET301"]\n'),
            "services/a/a.py": KTHVALUE + "    torch.backends.cudnn.benchmark = True\n",
            "services/b/requirements.txt": "torch==2.12.0\n",
            "services/b/b.py": KTHVALUE + "    torch.backends.cudnn.benchmark = True\n",
        }
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return root


def found(run: Run, cwd: Path, *arguments: str) -> list[dict[str, Any]]:
    data: list[dict[str, Any]] = json.loads(run(*arguments, "--output-format=json", cwd=cwd).out)
    return data


def codes(findings: list[dict[str, Any]], name: str) -> set[str]:
    return {f["code"] for f in findings if Path(f["filename"]).name == name}


def test_each_project_has_its_own_versions_and_ignores(run: Run, monorepo: Path) -> None:
    both = found(run, monorepo)
    for name in ("a", "b"):
        alone = found(run, monorepo / "services" / name)
        assert codes(both, f"{name}.py") == codes(alone, f"{name}.py"), name
    assert "DET301" not in codes(both, "a.py") and "DET301" in codes(both, "b.py")
    # `kthvalue` got a deterministic implementation in torch 2.10.
    assert "DET401" in codes(both, "a.py") and "DET401" not in codes(both, "b.py")
    text = run(cwd=monorepo).out
    assert "torch 2.4.0, pinned in services/a/pyproject.toml:3" in text
    assert found(run, monorepo) == both, "the second run reads the cache"


def test_the_command_line_goes_before_nested_configurations(run: Run, monorepo: Path) -> None:
    assert "DET301" in codes(found(run, monorepo, "--ignore", "DET401"), "b.py")
    assert "DET301" in codes(found(run, monorepo, "--select", "DET301"), "a.py")
    assert "DET401" not in codes(found(run, monorepo, "--torch-version", "2.12"), "a.py")


def test_one_configuration_for_all_when_it_is_named(run: Run, monorepo: Path) -> None:
    assert "DET301" in codes(found(run, monorepo, "--isolated"), "a.py")
    assert "DET401" in codes(found(run, monorepo, "--isolated"), "a.py"), "pins are no configuration"


def test_imports_between_projects_are_followed_with_the_entry_points_versions(
    run: Run, project: Project
) -> None:
    root = project(
        {
            "app/pyproject.toml": pinned("2.4.0"),
            "app/train.py": "from shared.ops import total\n\nif __name__ == '__main__':\n    total()\n",
            "shared/__init__.py": "",
            "shared/ops.py": "import torch\n\n\ndef total():\n    torch.manual_seed(0)\n"
            "    print(torch.kthvalue(torch.randn(8, device='cuda'), 2))\n",
            "pyproject.toml": pinned("2.12.0"),
        }
    )
    [finding] = [f for f in found(run, root) if f["code"] == "DET401"]
    assert finding["filename"].endswith("shared/ops.py") and finding["entry_point"] == "app/train.py"
    assert "torch 2.4.0, pinned in app/pyproject.toml:3" in run("--select=DET401", cwd=root).out


def test_a_name_that_another_projects_version_lacks_is_no_safe_fix(run: Run, project: Project) -> None:
    script = "from shared.ops import mode\n\nif __name__ == '__main__':\n    mode()\n"
    files = {
        "old/pyproject.toml": pinned("1.7.1"),
        "old/train.py": script,
        "new/pyproject.toml": pinned("2.4.0"),
        "new/train.py": script,
        "shared/__init__.py": "",
        "shared/ops.py": "import torch\n\n\ndef mode():\n    torch.set_deterministic(True)\n",
        "pyproject.toml": pinned("2.4.0"),
    }
    [finding] = [f for f in found(run, project(files)) if f["code"] == "DET304"]
    assert finding["entry_point"] == "new/train.py" and finding["fix"]["applicability"] == "unsafe"
    files["old/pyproject.toml"] = pinned("2.4.0")
    [finding] = [f for f in found(run, project(files)) if f["code"] == "DET304"]
    assert finding["fix"]["applicability"] == "safe"


def test_nested_exclusions_and_errors(run: Run, project: Project) -> None:
    root = project(
        {
            "a/d9mlint.toml": 'extend-exclude = ["gen"]\n',
            "a/gen/x.py": BENCHMARK,
            "a/y.py": BENCHMARK,
            "a/b/d9mlint.toml": "[per-file-ignores]\n'z.py' = ['DET301']\n",
            "a/b/z.py": BENCHMARK,
        }
    )
    assert [Path(f["filename"]).name for f in found(run, root)] == ["y.py"]
    (root / "a/d9mlint.toml").write_text("no-such-key = 1\n")
    got = run(cwd=root)
    assert got.code == 2 and "a/d9mlint.toml:1: unknown key no-such-key" in got.err


JAX = """\
import jax
import jax.numpy as jnp


def loss(w):
    return (w**2).sum()


if __name__ == "__main__":
    w = jnp.ones(3)
    for step in range(3):
        value, gradients = jax.value_and_grad(loss)(w)
        w = w - 0.1 * gradients
"""


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pyproject.toml", '[project]\nname = "p"\ndependencies = ["jax[cuda12]>=0.6.1"]\n'),
        ("requirements.txt", "jax[cuda12]\n"),
        ("setup.py", "from setuptools import setup\nsetup(install_requires=['jax[cuda12]>=0.6.1'])\n"),
    ],
)
def test_a_program_is_built_for_what_the_nearest_directory_asks_for(
    run: Run, project: Project, name: str, text: str
) -> None:
    root = project({f"on_gpu/{name}": text, "on_gpu/train.py": JAX, "elsewhere/run.py": JAX})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    first = found(run, root)
    assert "DET310" in codes(first, "train.py") and "DET310" not in codes(first, "run.py")
    assert found(run, root) == first, "the second run reads the cache"
    (root / "on_gpu" / name).write_text(text.replace("[cuda12]", ""))
    assert "DET310" not in codes(found(run, root), "train.py")
    (root / "on_gpu" / name).write_text(text)
    assert "DET310" in codes(found(run, root), "train.py")


def test_an_extra_without_a_version_does_not_replace_the_pin_of_the_root(run: Run, project: Project) -> None:
    root = project({"requirements.txt": "jax==0.4.1\n", "a/requirements.txt": "jax[cuda12]\n", "a/a.py": JAX})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    assert "DET310" not in codes(found(run, root), "a.py")


@pytest.mark.parametrize("line", ["torchaudio==2.9.1", "torchvision==0.24.1"])
def test_what_is_built_for_a_release_pins_it_for_the_nearest_directory(
    run: Run, project: Project, line: str
) -> None:
    root = project({"on/requirements.txt": f"jiwer==2.5.1\n{line}\n", "on/a.py": KTHVALUE, "b.py": KTHVALUE})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    (root / "requirements.txt").write_text("torch==2.12.0\n")
    both = found(run, root)
    assert "DET401" in codes(both, "a.py") and "DET401" not in codes(both, "b.py")
    text = run(cwd=root).out
    assert f"which {line.replace('==', ' ')} needs, pinned in on/requirements.txt:2" in text
    # What names no release says nothing about that of PyTorch.
    (root / "on/requirements.txt").write_text(f"jiwer==2.5.1\n{line.partition('==')[0]}\n")
    assert "DET401" not in codes(found(run, root), "a.py")


def test_the_nearest_setup_file_pins(run: Run, project: Project) -> None:
    setup = "from setuptools import setup\nsetup(install_requires=['torch==2.12.0'])\n"
    root = project(
        {"requirements.txt": "torch==2.4.0\n", "a/setup.py": setup, "a/b/a.py": KTHVALUE, "b.py": KTHVALUE}
    )
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    both = found(run, root)
    assert "DET401" in codes(both, "b.py") and "DET401" not in codes(both, "a.py")
