"""Target versions: which of the things that may say a version counts, and how it is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from d9mlint.config import targets as targets_module
from d9mlint.config.markers import holds
from d9mlint.config.pins import normal_spec
from d9mlint.config.targets import Target, Targets, find_targets, releases


@pytest.fixture(autouse=True)
def _nothing_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(targets_module, "installed", dict)


def project(root: Path, **files: str) -> Targets:
    """A project with these files; ``__`` in a name is a dot, ``___`` a slash."""
    for name, text in files.items():
        path = root / name.replace("___", "/").replace("__", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return find_targets(root, {})


def test_what_is_given_goes_before_everything(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.9.0\n")
    found = find_targets(tmp_path, {"torch": "2.4", "tensorflow": ""})
    assert found.version("torch") == Target("2.4", "2.4", "set by an option or in the configuration")
    assert find_targets(tmp_path, {}).version("torch").version == "1.9.0"


def test_a_pin_names_file_and_line(tmp_path: Path) -> None:
    found = project(tmp_path, requirements__txt="# what we use\nnumpy>=1.20\ntorch==1.7.1+cu110  # old\n")
    assert found.version("torch") == Target("1.7.1", "1.7.1", "pinned in requirements.txt:3")
    assert found.files == ("requirements.txt",)


def test_a_range_open_above_of_a_library_whose_releases_are_not_known_admits_its_newest(
    tmp_path: Path,
) -> None:
    found = project(tmp_path, requirements__txt="xformers>=0.0.20\n")
    source = "the newest version allowed by requirements.txt:1 (>=0.0.20)"
    assert found.version("xformers") == Target("", "0.0.20", source)
    assert found.matches("xformers", ">=0.0.22")
    assert not found.matches("xformers", "<0.0.22")


@pytest.mark.parametrize("spec", ["==0.0.20", ">=0.0.20,<0.0.30", "~=0.0.20"])
def test_a_range_that_is_closed_above_is_judged_by_its_oldest_where_no_releases_are_known(
    spec: str, tmp_path: Path
) -> None:
    found = project(tmp_path, requirements__txt=f"xformers{spec}\n")
    assert found.version("xformers").version == "0.0.20"
    assert found.matches("xformers", "<0.0.22")


def test_a_range_gives_its_newest_release_and_its_oldest(tmp_path: Path) -> None:
    found = project(tmp_path, requirements__txt="torch>=1.7,<2.1\n")
    target = found.version("torch")
    assert (target.version, target.low) == ("2.0", "1.7")
    assert target.older[:2] == ("1.13", "1.12")
    assert target.source == "the newest version allowed by requirements.txt:1 (>=1.7,<2.1)"
    assert found.matches("torch", ">=1.7,<2.10")
    assert not found.matches("torch", "<1.13")
    assert found.differs("torch", ">=1.13,<2.6") == "1.12"
    assert found.differs("torch", ">=1.0") == ""


@pytest.mark.parametrize(
    ("line", "version", "low"),
    [
        ("torch==1.8.*", "1.8", "1.8"),
        ("torch~=1.8", "1.13", "1.8"),
        ("torch~=1.8.1", "1.8.1", "1.8.1"),
        ("torch<=1.8", "1.8", "1.0"),
        ("torch>=2.1.2,<2.2", "2.1.2", "2.1.2"),
        ("torch>=99", "99", "99"),
        ("torch<2.1rc1", "2.0", "1.0"),
        ("torch<2.1.post1,>=2", "2.1", "2"),
        ("torch>=2.1.post1,<2.3", "2.2", "2.2"),
        ("torch>=2.0,<=2.2.dev1", "2.1", "2.0"),
        ("torch>2.1rc1,<2.2", "2.1", "2.1rc1"),
        ("torch>=2.0,!=2.1+cu118,<2.2", "2.1", "2.0"),
        ("torch===2.1.0", "2.1.0", "2.1.0"),
        ("torch==2.1.0+cu118", "2.1.0", "2.1.0"),
        ("torch>=1!2.0", "1!2.0", "1!2.0"),
        ("torch (>=1.7,<1.9)", "1.8", "1.7"),
        ("torch[opt]==1.9.1 ; python_version >= '3.0'", "1.9.1", "1.9.1"),
        ("PyTorch==1.9.1", "1.9.1", "1.9.1"),
        (
            "torch @ https://example.org/whl/cu118/torch-2.1.0%2Bcu118-cp310-linux_x86_64.whl",
            "2.1.0",
            "2.1.0",
        ),
        ("https://example.org/torch-1.4.0-cp37-cp37m-linux_x86_64.whl", "1.4.0", "1.4.0"),
        ("_libgcc_mutex=0.1=main\npytorch=1.4.0=py3.7_cuda10.1.243_cudnn7.6.3_0", "1.4.0", "1.4.0"),
        ("torch==1.9.1 \\\n    --hash=sha256:00 \\\n    --hash=sha256:11", "1.9.1", "1.9.1"),
    ],
)
def test_forms_of_a_requirement(tmp_path: Path, line: str, version: str, low: str) -> None:
    target = project(tmp_path, requirements__txt=line + "\n").version("torch")
    assert (target.version, target.low) == (version, low)


def test_lines_after_a_continuation_keep_their_numbers(tmp_path: Path) -> None:
    text = "six==1.0 \\\n  --hash=sha256:00\ntorch==2.0.1\n"
    assert project(tmp_path, requirements__txt=text).version("torch").source == "pinned in requirements.txt:3"


def test_a_name_without_a_version_pins_nothing(tmp_path: Path) -> None:
    found = project(tmp_path, requirements__txt="torch\ntensorflow-gpu\n")
    newest = releases("torch")[0]
    assert found.version("torch") == Target(newest, newest, "newest known")


def test_the_installed_version_counts_only_without_a_pin(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(targets_module, "installed", lambda: {"torch": "2.3.1", "tensorflow": "2.9.0"})
    found = project(tmp_path, requirements__txt="torch==1.9\n")
    assert found.version("torch").source == "pinned in requirements.txt:1"
    assert found.version("tensorflow") == Target("2.9.0", "2.9.0", "installed")


def test_the_installed_version_is_found_without_an_import() -> None:
    code = (
        "import sys; from d9mlint.config.targets import find_targets; t = find_targets('/nowhere', {});"
        "print(t.version('numpy').source, t.key() and {'torch', 'numpy'} & set(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split()[-1] == "set()"


def test_includes_are_followed_and_may_go_in_circles(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        requirements__txt="-r requirements/base.txt\n-r gone.txt\n",
        requirements___base__txt="-c more.txt\n-r ../requirements.txt\n",
        requirements___more__txt="torch==2.2.0\n",
    )
    assert found.version("torch").source == "pinned in requirements/more.txt:1"
    assert [str(w) for w in found.warnings] == ["requirements.txt:2: includes gone.txt, which does not exist"]


def test_pins_to_test_or_document_come_last(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        requirements___docs__txt="torch==1.2\n",
        pyproject__toml='[project]\nname = "x"\ndependencies = ["torch>=2.0,<2.3"]\n'
        '[project.optional-dependencies]\ntest = ["torch==2.0.0"]\n',
    )
    assert found.version("torch").version == "2.2"


def test_pyproject_in_all_its_dialects(tmp_path: Path) -> None:
    text = """
[project]
name = "x"
dependencies = ["numpy==1.21.0"]
[project.optional-dependencies]
gpu = ["tensorflow-gpu==2.4.1; sys_platform == 'linux'", "tensorflow-macos==2.9 ; sys_platform == 'darwin'"]
[dependency-groups]
train = ["lightning>=2.0,<2.2", {include-group = "dev"}]
[tool.poetry.dependencies]
python = "^3.8"
torch = "^1.7"
transformers = {version = "~4.30", extras = ["torch"]}
torchvision = [{version = "0.9.1", python = ">=3.8"}]
[tool.poetry.group.dev.dependencies]
jax = "0.4.1"
"""
    found = project(tmp_path, pyproject__toml=text)
    assert found.version("numpy") == Target("1.21.0", "1.21.0", "pinned in pyproject.toml:4")
    assert found.version("tensorflow").version == "2.4.1"
    assert found.version("lightning").version == "2.1"
    assert (found.version("torch").version, found.version("torch").low) == ("1.8", "1.8")
    assert found.version("transformers").version == "4.30"
    assert found.version("torchvision").version == "0.9.1"
    assert found.version("jax").version == "0.4.1"
    assert not found.warnings


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("config/environment.yml", "dependencies:\n  - pytorch=1.9.0=py3.8_cpu\n"),
        ("env.yml", "name: x\ndependencies:\n- pytorch==1.9.0\n"),
        ("requirements.yml", "name: x\ndependencies:\n  - pytorch::pytorch=1.9.0\n"),
        ("deep.yaml", "channels:\n- pytorch\ndependencies:\n- pip:\n  - torch==1.9.0\n"),
        ("envs/gpu.yaml", "name: x\nchannels: [pytorch]\ndependencies:\n- pip:\n  - torch==1.9.0\n"),
        ("conda_env.yml", "channels: [pytorch]\ndependencies:\n- pytorch==1.9.0\n"),
        ("docker/requirements.txt", "torch==1.9.0\n"),
        ("docker/Dockerfile.gpu", "FROM pytorch/pytorch:1.9.0-cuda11.1\n"),
        ("docker/gpu.Dockerfile", "FROM pytorch/pytorch:1.9.0-cuda11.1\n"),
        (".devcontainer/Dockerfile", "FROM python\nRUN pip install torch==1.9.0\n"),
        ("misc/environment.yml", "dependencies:\n  - pip:\n    - torch==1.9.0+cu111\n"),
        ("pip_requirements.txt", "torch==1.9.0\n"),
    ],
)
def test_pins_in_usual_places(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text)
    (tmp_path / "setup.py").write_text(
        "from setuptools import setup\nsetup(install_requires=['torch', 'six'])\n"
    )
    target = find_targets(tmp_path).version("torch")
    assert (target.version, target.source.partition(":")[0]) == ("1.9.0", f"pinned in {name}")
    # What the root itself says goes first.
    (tmp_path / "requirements.txt").write_text("torch>=1.11,<1.13\n")
    assert find_targets(tmp_path).version("torch").version == ("1.12" if "/" in name else "1.9.0")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("training/environment.yml", "dependencies:\n- pytorch=1.9.0\n"),
        ("config/model.yml", "name: x\ndependencies: [torch==1.9.0]\n"),
        ("config/model.yaml", "dependencies:\n- torch==1.9.0\n"),
        ("model.yaml", "dependencies:\n- torch==1.9.0\n"),
        ("labels.yaml", "name: x\ndependencies:\n- torch==1.9.0\n" + "# a label\n" * 100_001),
        ("env/lib/requirements.txt", "torch==1.9.0\n"),
    ],
)
def test_other_files_pin_nothing(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text(text)
    found = find_targets(tmp_path)
    assert found.version("torch").source == "newest known"
    assert not found.warnings


def test_a_virtual_environment_pins_nothing(tmp_path: Path) -> None:
    found = project(tmp_path, env___pyvenv__cfg="home = /usr\n", env___requirements__txt="torch==1.9.0\n")
    assert found.version("torch").source == "newest known"


def test_what_another_directory_builds_for_the_cpu_is_not_the_program(tmp_path: Path) -> None:
    found = project(tmp_path, docker___requirements__txt="torch==1.9.0+cpu\n")
    assert found.version("torch").version == "1.9.0"
    assert not found.cpu_only("torch")


@pytest.mark.parametrize("directory", ["requirements.d", "reqs", "pip_requirements", "requirements"])
def test_all_texts_in_a_directory_of_requirements_are_read(tmp_path: Path, directory: str) -> None:
    (tmp_path / directory).mkdir()
    (tmp_path / directory / "base.txt").write_text("six\ntorch==1.9.0\n")
    (tmp_path / directory / "test.txt").write_text("torch==1.8.0\n")
    (tmp_path / "README.md").write_text("```\npip install torch==1.4.0\n```\n")
    target = find_targets(tmp_path).version("torch")
    assert target == Target("1.9.0", "1.9.0", f"pinned in {directory}/base.txt:2")
    # Texts in other directories may hold anything.
    (tmp_path / directory).rename(tmp_path / "configs")
    assert find_targets(tmp_path).version("torch").source == "pinned in README.md:2"


def test_files_that_contradict_each_other_give_a_range(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        config___environment__yml="dependencies:\n- pytorch=1.10\n- numpy=1.21\n",
        docker___requirements__txt="torch==1.7.1\nnumpy==1.21.4\n",
        env___requirements__txt="torch==1.9.0\n",
    )
    target = found.version("torch")
    assert (target.version, target.low, target.older) == ("1.10", "1.7.1", ("1.9.0", "1.7.1"))
    assert target.source == (
        "the newest of those pinned in config/environment.yml:2, env/requirements.txt:1, docker/requirements.txt:1"
    )
    assert found.differs("torch", ">=1.8") == "1.7.1"
    assert found.version("numpy").source == "pinned in docker/requirements.txt:2"


def test_the_usual_name_goes_before_variants(tmp_path: Path) -> None:
    both = {"requirements_old__txt": "torch==1.4\n", "requirements_new__txt": "torch==2.2.1\n"}
    assert project(tmp_path, **both).version("torch").older == ("1.4",)
    found = project(tmp_path, requirements__txt="torch==1.9.0\n")
    assert found.version("torch") == Target("1.9.0", "1.9.0", "pinned in requirements.txt:1")


def test_requirements_go_before_the_image_that_they_are_installed_in(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        config___environment__yml="dependencies:\n- pytorch=1.10\n",
        docker___Dockerfile="FROM pytorch/pytorch:1.7.1-cuda11.0\n",
    )
    assert (
        found.version("torch").source == "the newest version allowed by config/environment.yml:2 (==1.10.*)"
    )


def test_a_lock_contradicts_nothing(tmp_path: Path) -> None:
    lock = '[[package]]\nname = "torch"\nversion = "2.1.2"\n'
    found = project(tmp_path, uv__lock=lock, requirements__txt="torch==1.13\n")
    assert found.version("torch") == Target("2.1.2", "2.1.2", "pinned in uv.lock:2")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.1.2+cu118"\nsource = { registry = "x" }\n'),
        ("poetry.lock", '[[package]]\nname = "torch"\nversion = "2.1.2"\ndescription = ""\n'),
        ("pdm.lock", '[[package]]\nname = "torch"\nversion = "2.1.2"\n'),
        ("Pipfile.lock", '{"default": {"torch": {"version": "==2.1.2"}}, "develop": {}}'),
    ],
)
def test_a_lock_is_more_exact_than_a_range(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "x"\ndependencies = ["torch>=1.10"]\n')
    (tmp_path / name).write_text(text)
    target = find_targets(tmp_path, {}).version("torch")
    assert target.version == "2.1.2"
    assert target.source.startswith(f"pinned in {name}:")


def test_setup_files_and_pipfile(tmp_path: Path) -> None:
    setup = 'from setuptools import setup\n# "torch==1.0"\nsetup(install_requires=["torch==1.8.1", "six"])\n'
    (tmp_path / "a").mkdir()
    assert project(tmp_path / "a", setup__py=setup).version("torch").source == "pinned in setup.py:3"
    (tmp_path / "b").mkdir()
    cfg = "[options]\ninstall_requires =\n    six\n    tensorflow>=2.3,<2.6\n"
    assert project(tmp_path / "b", setup__cfg=cfg).version("tensorflow").version == "2.5"
    (tmp_path / "c").mkdir()
    pipfile = '[packages]\ntorch = "==1.6.0"\nkeras = "*"\n'
    assert project(tmp_path / "c", Pipfile=pipfile).version("torch").source == "pinned in Pipfile:2"


def test_texts_of_messages_in_a_setup_file_are_no_requirements(tmp_path: Path) -> None:
    message = 'raise RuntimeError("torch>=1.6.0 is required, but yours is {}.")'
    text = f'{message}\nsetup(install_requires=["torch (>=1.7, <1.9)"])\n'
    (tmp_path / "setup.py").write_text(text)
    found = find_targets(tmp_path, {})
    assert "setup.py:2 (>=1.7,<1.9)" in found.version("torch").source
    assert not list(found.warnings)


def test_dockerfiles(tmp_path: Path) -> None:
    text = (
        "FROM nvidia/cuda:8.0-cudnn5-runtime-ubuntu16.04\n"
        "RUN apt update && apt install -y python3-pip \\\n && apt autoremove\n"
        "RUN pip3 install --no-cache-dir \\\n        numpy==1.11 \\\n    # the one that works\n"
        "        'tensorflow-gpu==1.13.1' \\\n        keras\n"
        "# RUN pip install torch==1.0\nRUN echo torch==1.2\n"
    )
    found = project(tmp_path, Dockerfile=text)
    assert found.version("tensorflow").source == "pinned in Dockerfile:7"
    assert found.version("tensorflow").version == "1.13.1"
    assert "Dockerfile" not in found.version("torch").source
    (tmp_path / "image").mkdir()
    image = "FROM pytorch/pytorch:1.7.1-cuda11.0-cudnn8-runtime AS base\nCOPY . /code\n"
    assert project(tmp_path / "image", Dockerfile=image).version("torch").source == "pinned in Dockerfile:1"
    (tmp_path / "both").mkdir()
    both = project(tmp_path / "both", Dockerfile=image, requirements__txt="torch==1.6.0\n")
    assert both.version("torch") == Target("1.6.0", "1.6.0", "pinned in requirements.txt:1")


@pytest.mark.parametrize(
    ("item", "version"),
    [
        ("pytorch=1.7.1", "1.7.1"),
        ("pytorch::pytorch=1.7", "1.7"),
        ("pytorch=1.7.1=py3.8_cuda11.0.221_cudnn8.0.5_0", "1.7.1"),
        ("pytorch==1.7.1", "1.7.1"),
        ("pytorch 1.7.*", "1.7"),
        ("pytorch=1!1.7.1=py3.8", "1!1.7.1"),
        ("pytorch>=1.7,<1.9a0", "1.8"),
    ],
)
def test_conda_environments(tmp_path: Path, item: str, version: str) -> None:
    text = f"dependencies:\n  - python=3.8\n  - {item}\n  - pip:\n    - tensorflow==2.3.0\n"
    found = project(tmp_path, environment__yml=text)
    assert found.version("torch").version == version
    assert ":3" in found.version("torch").source
    assert found.version("tensorflow").source == "pinned in environment.yml:5"


def test_a_branch_in_a_conda_environment_pins_nothing(tmp_path: Path) -> None:
    found = project(tmp_path, environment__yml="dependencies:\n- pytorch=master=py_0\n")
    assert found.version("torch").source == "newest known"
    assert not found.warnings


def test_keras_and_torchvision_follow_their_frameworks(tmp_path: Path) -> None:
    found = find_targets(tmp_path, {"tensorflow": "2.12", "torch": "1.9"})
    assert found.version("keras").version == "2.12"
    assert found.version("torchvision").version == "0.10"
    assert find_targets(tmp_path, {"tensorflow": "2.16"}).matches("keras", ">=3.0")
    assert find_targets(tmp_path, {"keras": "2.3", "tensorflow": "2.16"}).version("keras").version == "2.3"


def test_torchvision_is_for_the_torch_of_the_python_of_the_project(tmp_path: Path) -> None:
    found = project(tmp_path, environment__yml="dependencies:\n- python=3.7\n")
    assert found.version("torch").version == "1.13"
    vision = found.version("torchvision")
    assert (vision.version, vision.source.partition(",")[0]) == ("0.14", "matching torch 1.13")
    other = project(tmp_path, environment__yml="dependencies:\n- numpy\n")
    assert other.version("torchvision").source == "newest known"


@pytest.mark.parametrize(
    ("lines", "version"),
    [
        ("torchvision==0.14.1", "1.13"),
        ("torch>=1.13.1\ntorchvision==0.14.1", "1.13"),
        ("torch\ntorchaudio==2.0.2", "2.0"),
        ("torchtext==0.9.*", "1.8"),
        ("torchvision==0.4.0", "1.2"),
        ("torchvision==0.4.2", "1.3"),
        ("torch==1.9.0\ntorchvision==0.14.1", "1.9.0"),
        ("torch<1.13\ntorchvision==0.14.1", "1.12"),
        ("torchvision>=0.14.1", ""),
        ("torchaudio==2.11.0", ""),
    ],
)
def test_torch_follows_a_library_that_is_built_for_one_release(
    tmp_path: Path, lines: str, version: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"{lines}\n")
    found = find_targets(tmp_path).version("torch")
    assert found.version == (version or releases("torch")[0])
    assert ("needs, pinned in requirements.txt:" in found.source) is (
        version in ("1.13", "2.0", "1.8", "1.2", "1.3")
    )


@pytest.mark.parametrize(
    ("lines", "version", "low"),
    [
        ("torchvision>=0.14,<0.16", "2.0", "1.13"),
        ("torchvision<=0.15.2", "2.0", "1.2"),
        ("torchaudio~=2.0.1", "2.0", "2.0"),
        ("torch>=1.8\ntorchvision<0.16", "", ""),
        ("pytorch-lightning==1.5.10", "1.10", "1.10"),
        ("torch\npytorch-lightning>=1.8,<2", "1.13", "1.13"),
        ("lightning==2.7.0", "", ""),
        ("torch==2.0.1\npytorch-lightning==1.5.10", "2.0.1", "2.0.1"),
        ("torch>=1.7\npytorch-lightning==1.5.10", "", ""),
        ("torch-scatter==2.1.1+pt113cu117", "1.13", "1.13"),
        ("torch-scatter==2.1.2", "", ""),
    ],
)
def test_torch_is_bounded_by_the_releases_of_others(
    tmp_path: Path, lines: str, version: str, low: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"{lines}\n")
    found = find_targets(tmp_path).version("torch")
    assert found.version.removesuffix(".*") == (version or releases("torch")[0])
    assert not low or found.low.removesuffix(".*") == low


def test_torch_follows_a_release_that_is_given(tmp_path: Path) -> None:
    found = find_targets(tmp_path, {"torchvision": "0.15.2"}).version("torch")
    assert (found.version, found.source) == (
        "2.0",
        "which torchvision 0.15.2 needs, set by an option or in the configuration",
    )


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("tensorflow>=1.2.0", "1.15"),
        ("tensorflow", "1.15"),
        ("tensorflow>=1.2,<1.10", "1.9"),
        ("tensorflow>=2.3", "2.21"),
        ("tensorflow==2.8.0", "2.8.0"),
    ],
)
def test_names_in_use_narrow_what_a_range_leaves_open(tmp_path: Path, line: str, version: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"{line}\n")
    plain = find_targets(tmp_path)
    narrowed = plain.with_inferred({"tensorflow": "1.15"}).version("tensorflow")
    assert narrowed.version == version
    assert ("the program uses" in narrowed.source) is (version == "1.15")


def test_a_range_may_name_its_library(tmp_path: Path) -> None:
    found = find_targets(tmp_path, {"torch": "1.12", "torch_scatter": "2.0"})
    assert found.matches("torch_scatter", "torch<1.13")
    assert not found.matches("torch_scatter", "torch>=1.13")
    assert found.matches("torch_scatter", "any")
    assert found.matches("torch_scatter", "")
    assert found.matches("a_library_nobody_knows", ">=1.15")


@pytest.mark.parametrize(
    ("name", "text", "warning"),
    [
        ("pyproject.toml", "[project\n", "pyproject.toml:1: not valid TOML"),
        ("environment.yml", "a: [\nb", "environment.yml:"),
        ("Pipfile.lock", '{\n"default": ', "Pipfile.lock:2: not valid JSON"),
        ("setup.cfg", "install_requires = x\n", "setup.cfg:"),
        ("requirements.txt", "six\n???\n", "requirements.txt:2: not a requirement: ???"),
        ("requirements.txt", "torch>=one\n", "requirements.txt:1: not a version range: >=one"),
    ],
)
def test_a_malformed_file_is_a_warning(tmp_path: Path, name: str, text: str, warning: str) -> None:
    (tmp_path / name).write_text(text)
    found = find_targets(tmp_path, {})
    assert found.version("torch").source == "newest known"
    assert next(str(w) for w in found.warnings).startswith(warning)


@pytest.mark.parametrize(
    "data",
    [b"\xff\xfet\x00o\x00r\x00c\x00h\x00=\x00=\x001\x00.\x009\x00\n\x00", b"\xef\xbb\xbftorch==1.9\r\n"],
)
def test_byte_order_marks(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "requirements.txt").write_bytes(data)
    assert find_targets(tmp_path, {}).version("torch").version == "1.9"


def test_odd_shapes_are_survived(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").mkdir()
    (tmp_path / "Pipfile.lock").write_text("[" * 100_000)
    (tmp_path / "poetry.lock").write_bytes(bytes(range(256)))
    (tmp_path / "pyproject.toml").write_text('project = 3\ntool = "x"\n')
    (tmp_path / "environment.yml").write_text("- 1\n")
    assert find_targets(tmp_path, {}).version("torch").source == "newest known"


def test_nothing_is_read_before_a_question_and_the_key_tells_projects_apart(tmp_path: Path) -> None:
    found = find_targets(tmp_path, {})
    (tmp_path / "requirements.txt").write_text("torch==1.9\n")
    assert found.version("torch").version == "1.9"
    other = find_targets(tmp_path / "elsewhere", {})
    assert hash(found.key()) is not None
    assert found.key() != other.key()
    assert repr(found) == repr(find_targets(tmp_path, {}))


@pytest.mark.parametrize(
    ("marker", "answer"),
    [
        ("sys_platform == 'linux'", True),
        ("sys_platform == 'darwin'", False),
        ("platform_system != 'Windows' and python_version >= '3.6'", True),
        ("python_version < '3.6' or (os_name == 'nt')", False),
        ("'lin' in sys_platform", True),
        ("sys_platform not in 'win32 darwin'", True),
        ("extra == 'gpu'", True),
        ("python_version == '2.*'", False),
        ("python_version ~= '3.0' and implementation_name == 'cpython'", True),
        ("'arm64' == platform_machine", False),
        ("python_full_version < '3.0.0rc1'", False),
        ("", True),
        ("what is this", True),
    ],
)
def test_markers(marker: str, answer: bool) -> None:
    assert holds(marker) is answer


def test_markers_are_parsed_only_where_a_version_depends_on_them(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text(
        "torch==1.9.1; sys_platform == 'darwin'\ntorch==2.0.1; sys_platform == 'linux'\n"
        "tensorflow==2.9.0\npywin32>=300; sys_platform == 'win32'\n"
    )
    code = (
        "import sys; from d9mlint.config.targets import find_targets; t = find_targets('.')\n"
        "for name in ('tensorflow', 'torch'): print(t.version(name).version, 'packaging.markers' in sys.modules)"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["2.9.0", "False", "2.0.1", "True"]


@pytest.mark.parametrize(
    ("written", "plain"),
    [
        ("^1.7", ">=1.7,<2"),
        ("^0.7.1", ">=0.7.1,<0.8"),
        ("~1.7.1", ">=1.7.1,<1.8"),
        ("1.7", "==1.7"),
        ("*", ""),
        ("<1 || >=2", ">=2"),
        ("nonsense!", None),
    ],
)
def test_ranges_of_poetry_and_conda(written: str, plain: str | None) -> None:
    assert normal_spec(written) == plain


@pytest.mark.parametrize(
    ("line", "library", "version"),
    [
        ("- **tensorflow == 2.3.0**", "tensorflow", "2.3.0"),
        ("* TensorFlow 1.12.0;", "tensorflow", "1.12.0"),
        ("1. PyTorch 1.3", "torch", "1.3"),
        ("2- PyTorch 1.3", "torch", "1.3"),
        ("- `tensorflow-gpu==1.14.0`", "tensorflow", "1.14.0"),
        ("- Python 3.6, Keras-2.2.4, CUDA 9", "keras", "2.2.4"),
        ("## Requirements\n\nPyTorch 1.6.0", "torch", "1.6.0"),
        (
            "The code is tested with Python 3.7, [Pytorch](https://pytorch.org/) v1.8 on Ubuntu 20.04.",
            "torch",
            "1.8",
        ),
        ("![](https://img.shields.io/badge/PyTorch-1.8-red.svg)", "torch", "1.8"),
        ("    pip install torch==1.7.1+cu110 numpy", "torch", "1.7.1"),
        ("```\nconda create -n tf python=3.8 tensorflow-gpu=2.2\n```", "tensorflow", "2.2"),
        ("    conda install pytorch::pytorch=1.7.1=py3.8_cuda11 numpy", "torch", "1.7.1"),
        ("## Environment\n**- Tensorflow-gpu version:\N{NO-BREAK SPACE} 1.3.0rc2**", "tensorflow", "1.3.0"),
        ("- PyTorch 1.4.0+", "torch", releases("torch")[0]),
        ("## Environment\n\ntensorflow==2.0.0rc1", "tensorflow", "2.0.0"),
        ("Works with:\npython>=3.6\nTensorflow==2.0.0", "tensorflow", "2.0.0"),
        ("Works with\n`torch==1.7.1+cu110`,\nnumpy\n\nThen run it.", "torch", "1.7.1"),
        ("torch == 1.4.0  \nnumpy==1.17  \nand some more", "torch", "1.4.0"),
        ("TORCH==1.4.0<br />\nnumpy==1.17<br>\nThe rest is usual.", "torch", "1.4.0"),
        ("- torch==1.4.0<br/>", "torch", "1.4.0"),
        ("It needs:\n```\ntorch==1.4.0\ntqdm\n```", "torch", "1.4.0"),
        ("torch==1.4.0, torchvision==0.5.0\n- and a GPU", "torch", "1.4.0"),
        ("An agent that runs, using Python and TensorFlow 2.1.0. This is how.", "tensorflow", "2.1.0"),
        ("It is a model. It uses **PyTorch 1.4.0**, which is fast.", "torch", "1.4.0"),
        ("All of the code was written in Python 3.6 and\nKeras 2.2.4.", "keras", "2.2.4"),
        ("Trained with the TensorFlow 1.14 framework on one GPU.", "tensorflow", "1.14"),
        ("It needs PyTorch (1.7.1).", "torch", "1.7.1"),
        ("本项目基于tensorflow2.3.1构建了文字识别模型", "tensorflow", "2.3.1"),
        ("这个程序很快。使用 PyTorch 1.4.0 实现。", "torch", "1.4.0"),
        ("Das Programm basiert auf PyTorch 1.4.0.", "torch", "1.4.0"),
        ("Le code utilise TensorFlow 2.3.1.", "tensorflow", "2.3.1"),
        ("El código está basado en Keras 2.2.4.", "keras", "2.2.4"),
        ("Программа использует PyTorch 1.4.0.", "torch", "1.4.0"),
        ("NetVLAD in TensorFlow 2.0 for image retrieval.", "tensorflow", "2.0"),
        ("A small U-Net, with [PyTorch](https://pytorch.org) 1.4.0.", "torch", "1.4.0"),
        ("This is a TF 1.14 implementation of a paper.", "tensorflow", "1.14"),
        ("- TF 1.14", "tensorflow", "1.14"),
        (
            "## Setup\n\nItem | Value\n:---: | :---:\nkeras | 2.2.4\ntensorflow-gpu | 1.12.0",
            "tensorflow",
            "1.12.0",
        ),
        (
            "## Environment\n\n|Item|Value|Item|Value|\n|--|--|--|--|\n|keras|2.2|OS|a|\n|TF|1.10/v1.12|Python|3.6.7|",
            "tensorflow",
            "1.12",
        ),
        ("| Library | Version |\n| --- | --- |\n| `torch` | 1.7.1 |", "torch", "1.7.1"),
        ("| Python | PyTorch | CUDA |\n| --- | --- | --- |\n| 3.6 | 1.4.0 | 10.1 |", "torch", "1.4.0"),
        ("## TensorFlow Version\n2.4\n\n## Data\n1.5", "tensorflow", "2.4"),
        ("### PyTorch version:\n\n* `v1.7.1`", "torch", "1.7.1"),
        ("**TensorFlow version:** 2.4", "tensorflow", "2.4"),
        ("It is fast.\n\nTF Version 2.4.1, Python 3.7", "tensorflow", "2.4.1"),
        ("## Versions\n\nPyTorch 1.7.1, Python 3.8", "torch", "1.7.1"),
    ],
)
def test_versions_in_a_readme_count_where_no_other_file_pins(
    tmp_path: Path, line: str, library: str, version: str
) -> None:
    found = project(tmp_path, README__md=f"# A program\n\n{line}\n").version(library)
    assert found.version.startswith(version) and "README.md:" in found.source
    pinned = project(tmp_path / "pinned", README__md=line, requirements__txt=f"{library}==2.0.1\n")
    assert pinned.version(library).source == "pinned in requirements.txt:1"


@pytest.mark.parametrize(
    ("line", "oldest"),
    [
        ("PyTorch ``1.5.0`` to ``1.10.2``", "1.5.0"),
        ("- torch 1.5 - 1.10", "1.5"),
        ("- PyTorch >= 1.5, < 1.11", "1.5"),
        ("* PyTorch >=1.5 and <=1.10.1", "1.5"),
        ("1. PyTorch versions from 1.5 up to 1.10.", "1.5"),
        ("- PyTorch (1.5.0–1.10.0)", "1.5.0"),
    ],
)
def test_a_range_in_a_readme_has_a_first_and_a_last_release(tmp_path: Path, line: str, oldest: str) -> None:
    target = project(tmp_path, README__md=f"# Net\n\n## Requirements\n\n{line}\n").version("torch")
    assert (target.low, target.version) == (oldest, "1.10")


@pytest.mark.parametrize("line", ["- PyTorch 1.5 to run it", "- pages 1.5 to 1.10", "- PyTorch 1.5-cuda10.1"])
def test_what_only_looks_like_a_range_in_a_readme_is_none(tmp_path: Path, line: str) -> None:
    target = project(tmp_path, README__md=f"# Net\n\n## Requirements\n\n{line}\n").version("torch")
    assert not target.version.startswith("1.10")


def test_a_requirement_without_a_version_admits_newer_releases_than_a_readme_states(tmp_path: Path) -> None:
    readme = "# A program\n\n## Requirements\n\n* torch==1.1.0\n"
    found = project(tmp_path, README__md=readme, requirements__txt="numpy\ntorch\n")
    newest = releases("torch")[0]
    target = found.version("torch")
    assert (target.version, target.low) == (newest, "1.1.0") and "1.1" in target.older
    assert target.source == "the newest version: requirements.txt:2 names none (README.md:5 names 1.1.0)"
    # The names that the program uses are not those of the newest release: it needs the one that is stated.
    old = found.with_inferred({"torch": "1.4"}).version("torch")
    assert old == Target("1.1.0", "1.1.0", "pinned in README.md:5")


_EXPLICIT = "# platform: linux-64\n@EXPLICIT\nhttps://repo.anaconda.com/pkgs/main/linux-64/"


@pytest.mark.parametrize(
    ("name", "text", "version", "says"),
    [
        ("requirements.txt", _EXPLICIT + "python-3.7.6-h0371630_2.conda", "2.11", "for Python 3.7"),
        ("spec-file.txt", _EXPLICIT + "python-3.6.10-h1_1.tar.bz2#0123abcd", "2.6", "for Python 3.6"),
        ("conda.txt", _EXPLICIT + "tensorflow-gpu-2.1.0-h0d30ee6_0.conda", "2.1.0", "conda.txt:3"),
        ("environment.yml", "dependencies:\n- python=3.7\n- tensorflow\n", "2.11", "environment.yml:2"),
        ("requirements.txt", "tensorflow>=2.0", releases("tensorflow")[0], "newest version allowed"),
        (
            "Pipfile",
            '[packages]\ntensorflow = "*"\n[requires]\npython_version = "3.8"\n',
            "2.13",
            "Pipfile:4",
        ),
        ("Dockerfile", "FROM python:3.7-slim\n", "2.11", "Dockerfile:1"),
        ("runtime.txt", "python-3.6.9\n", "2.6", "runtime.txt:1"),
        (".python-version", "3.6.9\n", "2.6", ".python-version:1"),
        ("README.md", "# A program\n\n- Python 3.6\n- tensorflow\n", "2.6", "README.md:3"),
    ],
)
def test_a_release_of_python_bounds_what_nothing_pins(
    tmp_path: Path, name: str, text: str, version: str, says: str
) -> None:
    (tmp_path / name).write_text(text)
    found = find_targets(tmp_path)
    assert found.version("tensorflow").version == version
    assert says in found.version("tensorflow").source
    assert not found.warnings


def test_what_an_older_python_excludes_is_not_taken_from_a_range(tmp_path: Path) -> None:
    found = project(
        tmp_path,
        environment__yml="dependencies:\n- python=3.7\n- pip:\n  - tensorflow>=2.0\n  - torch==2.4.0\n",
    )
    assert (
        found.version("tensorflow").version == "2.11"
        and "for Python 3.7" in found.version("tensorflow").source
    )
    assert found.version("torch").version == "2.4.0"
    older = found.with_inferred({"tensorflow": "1.15"})
    assert older.version("tensorflow").version == "2.11"
    free = project(tmp_path / "free", environment__yml="dependencies:\n- python=3.7\n- tensorflow\n")
    assert free.with_inferred({"tensorflow": "1.15"}).version("tensorflow").version == "1.15"
    assert free.with_inferred({"tensorflow": "2.15"}).version("tensorflow").version == "2.11"


@pytest.mark.parametrize(
    ("line", "library", "version"),
    [
        ("module add plgrid/libs/tensorflow-gpu/2.2.0-python-3.8", "tensorflow", "2.2.0"),
        ("  module load cuda/11.0 TensorFlow/2.4.1-fosscuda-2020b", "tensorflow", "2.4.1"),
        ("ml PyTorch/1.10.0-foss-2021a-CUDA-11.3.1", "torch", "1.10.0"),
        ("conda install -y tensorflow-gpu=2.2", "tensorflow", "2.2"),
        ("source env && pip install torch==1.7.1", "torch", "1.7.1"),
    ],
)
def test_versions_in_a_script_count_where_no_other_file_pins(
    tmp_path: Path, line: str, library: str, version: str
) -> None:
    (tmp_path / "jobs").mkdir()
    (tmp_path / "jobs" / "train.sh").write_text(
        f"#!/bin/bash\n#SBATCH --gres=gpu:1\n{line}\npython train.py\n"
    )
    found = project(tmp_path).version(library)
    assert found.version.startswith(version) and "jobs/train.sh:3" in found.source
    pinned = project(tmp_path, requirements__txt=f"{library}==2.0.1\n")
    assert pinned.version(library).source == "pinned in requirements.txt:1"


@pytest.mark.parametrize(
    "line", ["# module load torch/1.3.0", "module unload torch/1.3.0", "echo torch/1.3.0", "cd torch/1.3.0"]
)
def test_other_lines_of_a_script_are_no_versions(tmp_path: Path, line: str) -> None:
    (tmp_path / "train.sh").write_text(f"{line}\n")
    assert "train.sh" not in project(tmp_path).version("torch").source


@pytest.mark.parametrize(
    "line",
    [
        "| TransE-PyTorch | 11.1 | 25.33 |",
        "SyncBatchNorm works with AMP since pytorch 2.1 only.",
        "- Faster than PyTorch 1.3",
        "- The results of pytorch 1.3 differ",
        "Real output (torch 2.5.1, Python 3.11):",
        "- torch_scatter-2.0.5",
        "    conda create -n torch python=3.12 pytorch",
        "    conda run -n a train.py torch=1.7.1",
        "    pip install a && python train.py create torch=1.7.1",
        "We compared with torch==1.4.0",
        "It was compared with\ntorch==1.3.0,\ntorch==1.4.0,\nand the newest release.",
        "In all of these,\ntorch==1.4.0\nis the slowest.",
        "All of it is slower with\ntorch==1.4.0.",
        "torch==1.4.0\n0.913\ntorch==1.5.0\n0.914",
        "| torch==1.4.0 | 0.913 |",
        "The original implementation uses PyTorch 1.3.",
        "It uses PyTorch 1.3. With PyTorch 1.9, it stops.",
        "It does not work with PyTorch 1.3.",
        "It requires PyTorch 1.3 or newer.",
        "It uses features that PyTorch 1.3 has.",
        "If you use PyTorch 1.3, there is a branch.",
        "Results that use PyTorch 1.3 are worse.",
        "# It uses PyTorch 1.3",
        "需要 PyTorch 1.3 以上",
        "需要pytorch1.3或更高版本",
        "论文使用 PyTorch 1.3 实现",
        "| uses PyTorch 1.3 | 0.9 |",
        "<tr>\n<td>torch==1.4.0</td>\n<td>0.913</td>\n</tr>",
        "<td>\ntorch==1.4.0\n</td>",
        "torch==1.4.0\n------------\n\nHere it is 0.913.",
        "### torch==1.4.0",
        "    ./compare.sh a \\\n    torch==1.4.0",
        "| Framework | Accuracy |\n| --- | --- |\n| PyTorch | 1.25 |",
        "| Python | PyTorch |\n| --- | --- |\n| 3.6 | 1.4.0 |\n| 3.8 | 1.9.0 |",
        "A bug that was fixed in PyTorch 1.4.0.",
        "The original code is in PyTorch 1.4.0.",
        "A model in PyTorch 1.4.0 or newer.",
        "A model.\n\n## Results\n\nA figure in PyTorch 1.4.0.",
        "## PyTorch version\n\nThe score is\n1.3",
        "## PyTorch version of the model\n\n1.3",
        "## PyTorch score\n\n1.3",
        "PyTorch version 1.3 was slower.",
        "PyTorch version 1.3, as in the paper, was slower.",
        "PyTorch version of the model: 1.3",
        "## New versions of the model\n\nPyTorch 1.3",
    ],
)
def test_other_numbers_in_a_readme_are_no_versions(tmp_path: Path, line: str) -> None:
    found = project(tmp_path, README__md=f"# A program\n\n{line}\n")
    assert "README" not in found.version("torch").source


@pytest.mark.parametrize(
    ("line", "asked"),
    [
        ("jax[cuda12]>=0.4", True),
        ("jax[k8s, CUDA12_pip]", True),
        ("jax-cuda12-plugin", True),
        ("jax[tpu]", False),
        ("jax", False),
        ("jax[cuda12]; sys_platform == 'nowhere'", False),
    ],
)
def test_extras_are_asked_for(tmp_path: Path, line: str, asked: bool) -> None:
    (tmp_path / "requirements.txt").write_text(f"{line}\n")
    found = find_targets(tmp_path)
    assert found.asks_for(("jax[[]cuda*", "jax_cuda*")) is asked


@pytest.mark.parametrize(
    ("lines", "version", "low"),
    [
        ("tensorflow>=2.0.0b1\nnumpy==1.16.1", "2.7", "2.0.0b1"),
        ("tensorflow\nnumpy==1.23.5", "2.17", ""),
        ("tensorflow\nnumpy==1.23.1", "2.13", ""),
        ("tensorflow==2.10.1\nnumpy==1.19.5", "2.10.1", "2.10.1"),
        ("tensorflow<2.4\nnumpy==1.19.5", "2.3", ""),
        ("tensorflow>=2.9\nnumpy==1.19.5", "", "2.9"),
        ("tensorflow>=2.0\nnumpy>=1.16", "", "2.0"),
        ("tensorflow>=2.0\nnumpy==2.0.1", "", "2.0"),
    ],
)
def test_tensorflow_is_none_that_refuses_the_pinned_numpy(
    tmp_path: Path, lines: str, version: str, low: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"{lines}\n")
    found = find_targets(tmp_path).version("tensorflow")
    assert found.version == (version or releases("tensorflow")[0])
    assert not low or found.low == low
    assert ("numpy" in found.source) is (version in ("2.7", "2.17", "2.13"))


def test_a_pinned_torch_bounds_the_releases_of_torch_geometric(tmp_path: Path) -> None:
    source = "the newest that allows torch 1.7.0, pinned in requirements.txt:1"
    found = project(tmp_path, requirements__txt="torch==1.7.0\n")
    assert found.version("torch_geometric") == Target("2.2", "2.2", source)
    found = project(tmp_path, requirements__txt="torch==2.4.0\ntorch-geometric==2.3.1\n")
    assert found.version("torch_geometric").version == "2.3.1"
    found = project(tmp_path, requirements__txt="torch==2.11.0\n")
    assert found.version("torch_geometric").source == "newest known"
