"""The message of DET208 says what the workers of a Keras model share, and who draws."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import lint

PROGRAM = """\
import numpy as np
import tensorflow as tf


class Noisy(tf.keras.utils.Sequence):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return np.random.rand(8, 4), np.zeros(8)


class Shuffled(tf.keras.utils.Sequence):
    def __init__(self):
        self.order = np.arange(64)

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return np.zeros((8, 4)) + self.order[index * 8 : (index + 1) * 8, None], np.zeros(8)

    def on_epoch_end(self):
        np.random.shuffle(self.order)


if __name__ == "__main__":
    tf.keras.utils.set_random_seed(0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    CALL
"""
SHARED = "workers share RNG state"
COPIED = "every process gets a copy of the RNG states"
BETWEEN = "`on_epoch_end` draws in a thread"


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("model.fit(Noisy(), workers=4)", SHARED),
        ("model.fit(Noisy(), workers=4, use_multiprocessing=False)", SHARED),
        ("model.fit(Noisy(), workers=4, use_multiprocessing=True)", COPIED),
        ("model.predict(Noisy(), workers=4)", SHARED),
        ("model.predict(Noisy(), workers=4, use_multiprocessing=True)", COPIED),
        ("tf.keras.utils.OrderedEnqueuer(Noisy(), use_multiprocessing=True).start(4)", COPIED),
        ("model.fit(Shuffled(), workers=4)", BETWEEN),
        ("model.fit(Shuffled(), workers=4, use_multiprocessing=True)", BETWEEN),
        ("model.fit(Shuffled(), validation_data=Shuffled(), workers=4)", BETWEEN),
        ("model.fit(Shuffled(), validation_data=Noisy(), workers=4)", SHARED),
    ],
)
def test_message(tmp_path: Path, call: str, said: str) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.replace("CALL", call))
    settings = {"select": ["DET208"], "tensorflow-version": "2.12"}
    messages = [one.finding.message for one in lint(tmp_path, settings).items]
    assert [said in one for one in messages] == [True], messages
