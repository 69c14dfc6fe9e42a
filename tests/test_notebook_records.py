"""What a notebook records of its run tells for which releases it was written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support import lint, notebook

CELLS = [
    "import numpy as np\nfrom tensorflow import keras\n",
    "model = keras.Sequential([keras.layers.Dense(1)])\nmodel.compile('adam', 'mse')\n",
    "model.fit(np.ones((8, 8)), np.ones((8, 1)), shuffle=False)\n",
]


def assumed(directory: Path, python: str, printed: list[str], requirements: str = "") -> set[tuple[str, ...]]:
    """The releases of TensorFlow that the findings about a notebook assume, with how they are known."""
    made = json.loads(notebook(CELLS))
    made["metadata"]["language_info"] = {"name": "python", "version": python}
    made["cells"][0]["outputs"] = [{"output_type": "stream", "name": "stderr", "text": printed}]
    (directory / "train.ipynb").write_text(json.dumps(made))
    (directory / "requirements.txt").write_text(requirements)
    found = [one.finding for one in lint(directory, {"select": ["DET104", "DET306"]}).items]
    assert {one.code for one in found} == {"DET104", "DET306"}
    return {one.targets for one in found if one.targets[0].startswith("tensorflow")}


@pytest.mark.parametrize(
    ("python", "printed", "release"),
    [
        ("3.6.4", [], "2.6"),
        ("3.7.12", ["Using a GPU.\n"], "2.11"),
        ("3.7.12", ["Using TensorFlow backend.\n"], "2.2"),
        ("2.7.18", [], "2.1"),
    ],
)
def test_the_newest_release_is_the_one_that_the_run_can_have_had(
    tmp_path: Path, python: str, printed: list[str], release: str
) -> None:
    how = "the newest with which the notebook can have run, as it records"
    assert assumed(tmp_path, python, printed) == {(f"tensorflow {release}", how)}


def test_what_a_project_pins_counts_more(tmp_path: Path) -> None:
    known = assumed(tmp_path, "3.6.4", [], "tensorflow==2.9.0\n")
    assert known == {("tensorflow 2.9.0", "pinned in requirements.txt:1")}


def test_a_range_is_read_up_to_what_the_notebook_records(tmp_path: Path) -> None:
    ((release, how),) = assumed(tmp_path, "3.6.4", [], "tensorflow>=2.2\n")
    assert release == "tensorflow 2.6"
    assert how.endswith(" with which the notebook can have run")


def test_a_new_python_says_nothing(tmp_path: Path) -> None:
    assert not any("can have run" in how for _, how in assumed(tmp_path, "3.13.1", []))


@pytest.mark.parametrize(("python", "codes"), [("3.8.7", set()), ("3.12.1", {"DET106"})])
def test_albumentations_of_an_old_python_draws_from_the_seeded_generator(
    tmp_path: Path, python: str, codes: set[str]
) -> None:
    cells = [
        "import random\nimport albumentations\nimport numpy as np\nrandom.seed(0)\n",
        "flip = albumentations.HorizontalFlip(p=0.5)\nflip(image=np.ones((8, 8, 3)))['image']\n",
    ]
    made = json.loads(notebook(cells))
    made["metadata"]["language_info"] = {"name": "python", "version": python}
    (tmp_path / "show.ipynb").write_text(json.dumps(made))
    (tmp_path / "requirements.txt").write_text("")
    assert {one.finding.code for one in lint(tmp_path, {"select": ["DET103", "DET106"]}).items} == codes
