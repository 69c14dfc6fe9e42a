"""Transforms that have a generator of their own and are called by themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import lint

HEAD = (
    "import cv2\nimport numpy as np\nimport albumentations as A\nnp.random.seed(0)\nx = cv2.imread('x.png')\n"
)
DRAWS = {
    "angle": "t = A.Rotate(limit=45, p=1.0)\ncv2.imwrite('y.png', t(image=x)['image'])\n",
    "chance": "t = A.HorizontalFlip()\ncv2.imwrite('y.png', t(image=x)['image'])\n",
    "in a function": (
        "def turned(image, turn):\n    return turn(image=image)['image']\n\n"
        "cv2.imwrite('y.png', turned(x, A.RandomRotate90(p=1)))\n"
    ),
}
SAME = {
    "always": "t = A.HorizontalFlip(p=1.0)\ncv2.imwrite('y.png', t(image=x)['image'])\n",
    "no parameter": "t = A.CenterCrop(8, 8)\ncv2.imwrite('y.png', t(image=x)['image'])\n",
    "never called": "t = A.Rotate(limit=45)\nprint(x)\n",
}


def found(tmp_path: Path, text: str, version: str) -> set[str]:
    (tmp_path / "requirements.txt").write_text(f"albumentations=={version}\n", encoding="utf-8")
    (tmp_path / "augment.py").write_text(HEAD + text, encoding="utf-8")
    return {one.finding.code for one in lint(tmp_path, {}).items}


@pytest.mark.parametrize(
    ("version", "code"),
    [("2.0.8", "DET106"), ("1.4.21", "DET106"), ("1.4.20", "DET103"), ("1.3.1", "DET103")],
)
@pytest.mark.parametrize("case", DRAWS)
def test_a_transform_that_is_called_by_itself_draws(
    tmp_path: Path, case: str, version: str, code: str
) -> None:
    assert found(tmp_path, DRAWS[case], version) == {code}


@pytest.mark.parametrize("version", ["2.0.8", "1.4.21", "1.4.20", "1.3.1"])
@pytest.mark.parametrize("case", SAME)
def test_a_transform_that_always_does_the_same_is_silent(tmp_path: Path, case: str, version: str) -> None:
    assert found(tmp_path, SAME[case], version) == set()


def test_a_transform_with_a_seed_of_its_own_or_in_a_seeded_compose_is_silent(tmp_path: Path) -> None:
    text = "t = A.Rotate(limit=45)\nt.set_random_seed(0)\ncv2.imwrite('y.png', t(image=x)['image'])\n"
    assert found(tmp_path, text, "2.0.8") == set()
    text = "t = A.Compose([A.Rotate(limit=45)], seed=0)\ncv2.imwrite('y.png', t(image=x)['image'])\n"
    assert found(tmp_path, text, "2.0.8") == set()
    text = "import random\nrandom.seed(0)\n" + DRAWS["angle"]
    assert found(tmp_path, text, "1.3.1") == set()


@pytest.mark.parametrize(
    ("pins", "seed", "help", "assumed"),
    [
        (
            "",
            "",
            "pass `seed=0`; with albumentations < 1.4.21, call `random.seed(seed)` instead",
            "newest known",
        ),
        (
            "",
            "import random\nrandom.seed(0)\n",
            "pass `seed=0`; with albumentations < 1.4.21, the seed of Python `random` reaches it",
            "newest known",
        ),
        (
            "albumentations>=1.3\n",
            "",
            "pass `seed=0`; with albumentations < 1.4.21, call `random.seed(seed)` instead",
            "the newest version allowed by requirements.txt:1 (>=1.3)",
        ),
        (
            "albumentations>=1.4.21\n",
            "",
            "pass `seed=0`",
            "the newest version allowed by requirements.txt:1 (>=1.4.21)",
        ),
    ],
)
def test_the_remedy_says_what_to_do_with_other_releases(
    tmp_path: Path, pins: str, seed: str, help: str, assumed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("d9mlint.config.targets.installed", dict)
    (tmp_path / "requirements.txt").write_text(pins, encoding="utf-8")
    text = seed + HEAD + "t = A.Compose([A.Rotate()])\ncv2.imwrite('y.png', t(image=x)['image'])\n"
    (tmp_path / "augment.py").write_text(text, encoding="utf-8")
    (one,) = [item.finding for item in lint(tmp_path, {}).items]
    assert (one.code, one.help) == ("DET106", help)
    assert one.targets[1] == assumed
