"""Short training runs of TensorFlow, each with a setting that it is about. Run in child processes only."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy
import tensorflow as tf

STEPS = 4
State = list[Any]


class NotRun(Exception):
    """The program cannot run here; the text says why."""


def run(name: str, remedy: bool, device: str) -> tuple[State, State | None]:
    """Run a program: the arrays that must agree between runs; there is no reference run."""
    if device == "cpu":
        tf.config.set_visible_devices([], "GPU")
    return PROGRAMS[name](remedy), None


def tf_op_determinism(remedy: bool) -> State:
    """An image that is cropped: the gradients of overlapping boxes are added to it in the order of arrival."""
    keras.utils.set_random_seed(0)
    if remedy:
        tf.config.experimental.enable_op_determinism()
    generator = numpy.random.default_rng(0)
    image = tf.Variable(generator.standard_normal((2, 64, 64, 8)).astype(numpy.float32))
    corner = generator.random((256, 2)) * 0.4
    ends = corner + 0.2 + generator.random((256, 2)) * 0.4
    boxes = tf.constant(numpy.concatenate([corner, ends], 1).astype(numpy.float32))
    owners = tf.constant(generator.integers(0, 2, 256), tf.int32)
    weight = tf.constant(generator.standard_normal((256, 16, 16, 8)).astype(numpy.float32))
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.image.crop_and_resize(image, boxes, owners, (16, 16)) * weight)
        image.assign_sub(0.1 * tape.gradient(loss, image))
    return [image.numpy()]


def tf_seed(remedy: bool) -> State:
    if remedy:
        keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(numpy.ones((32, 8)), numpy.ones((32, 1)), epochs=2, verbose=0)
    return [numpy.asarray(weight) for weight in model.get_weights()]


def tf_autotune(remedy: bool) -> State:
    if remedy:
        os.environ["TF_CUDNN_USE_AUTOTUNE"] = "0"
    keras.utils.set_random_seed(0)
    image = tf.random.stateless_normal((16, 64, 64, 8), (0, 0))
    kernel = tf.Variable(tf.random.stateless_normal((3, 3, 8, 32), (0, 1)))
    for _ in range(STEPS):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(tf.nn.conv2d(image, kernel, 1, "SAME")))
        kernel.assign_sub(tape.gradient(loss, kernel))
    return [kernel.numpy()]


def digest(state: State) -> bytes:
    """All bytes of a state."""
    return b"".join(str((a.dtype, a.shape)).encode() + numpy.ascontiguousarray(a).tobytes() for a in state)


def peak_memory(device: str) -> int | None:
    """Bytes of the device's memory in use at the peak; None on a CPU."""
    if device == "cpu":
        return None
    return int(tf.config.experimental.get_memory_info("GPU:0")["peak"])


PROGRAMS: dict[str, Callable[[bool], State]] = {
    f.__name__: f for f in (tf_op_determinism, tf_seed, tf_autotune)
}
