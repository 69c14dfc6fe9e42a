"""The release of a library for which a project was written, as far as the names in its files tell."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import lint

PLAIN = """
import tensorflow as tf

tf.random.set_seed(0)
model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
model.compile("sgd", "mse")
model.fit(tf.ones((4, 3)), tf.ones((4, 2)))
"""


@pytest.mark.parametrize(
    ("made", "release"),
    [
        ("tf.optimizers.Adam(lr=0.1)", "2.15"),
        ("tf.keras.optimizers.Adam(lr=0.1)", "2.15"),
        ("SGD(lr=0.1)", "2.15"),
        ("tf.keras.optimizers.SGD(0.1, decay=0.1)", "2.10"),
        ("tf.keras.optimizers.SGD(learning_rate=0.1)", ""),
        ("dict(lr=0.1)", ""),
    ],
)
def test_arguments_in_one_file_tell_the_release_for_all(tmp_path: Path, made: str, release: str) -> None:
    used = f"import tensorflow as tf\nfrom tensorflow.keras.optimizers import SGD\n\nprint({made}, SGD)\n"
    (tmp_path / "made.py").write_text(used)
    (tmp_path / "plain.py").write_text(PLAIN)
    found = [item.finding for item in lint(tmp_path, {"select": ["DET306"]}).items]
    messages = [one.message for one in found if one.path.endswith("plain.py")]
    assert len(messages) == 1
    assert any(f"TensorFlow {one} " in messages[0] for one in ("2.10", "2.15")) == bool(release)
    assert f"TensorFlow {release}" in messages[0]


@pytest.mark.parametrize(
    ("handler", "is_old"),
    [
        ("except ImportError:\n    import tf_slim as slim", False),
        ("except:\n    slim = None", False),
        ("except (KeyError, ImportError):\n    slim = None", False),
        ("except ImportError:\n    raise SystemExit(1)", True),
        ("except KeyError:\n    slim = None", True),
    ],
)
def test_what_a_file_can_do_without_says_nothing_about_the_release(
    tmp_path: Path, handler: str, is_old: bool
) -> None:
    used = f"try:\n    import tensorflow.contrib.slim as slim\n{handler}\n\nprint(slim)\n"
    (tmp_path / "network.py").write_text(used)
    (tmp_path / "plain.py").write_text(PLAIN.replace("tf.random.set_seed(0)\n", ""))
    found = [item.finding for item in lint(tmp_path, {"select": ["DET306"]}).items]
    messages = [one.message for one in found if one.path.endswith("plain.py")]
    assert len(messages) == 1
    assert ("TensorFlow 1.15 " in messages[0]) == is_old


@pytest.mark.parametrize(
    ("made", "release"),
    [
        ("A.Flip()", "1.4.23"),
        ("A.RandomResizedCrop(height=8, width=8)", "1.4.24"),
        ("A.RandomSizedCrop((4, 8), height=8, width=8)", "1.4.24"),
        ("A.CoarseDropout(max_holes=8)", "1.4.24"),
        ("A.RandomResizedCrop(size=(8, 8))", ""),
        ("A.Resize(height=8, width=8)", ""),
    ],
)
def test_a_transform_says_which_releases_of_albumentations_take_it(
    tmp_path: Path, made: str, release: str
) -> None:
    used = f"import albumentations as A\n\nflip = A.Compose([A.HorizontalFlip(), {made}])\n"
    (tmp_path / "program.py").write_text(f"{used}print(flip(image=open('x').read())['image'])\n")
    (found,) = (item.finding for item in lint(tmp_path, {"select": ["DET106"]}).items)
    assert found.targets[0] == f"albumentations {release or '2.0'}"
    assert ("inferred" in found.targets[1]) == bool(release)
