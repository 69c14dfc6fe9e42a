"""How many values meet at one address in a recipe for TensorFlow: see ``torch_addresses``.

Expressions of ``race.addends`` see the tensors among the inputs ``i`` as NumPy arrays, and give an array. Runs in
tests.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from typing import Any

import numpy
import tensorflow as tf

from d9mlint.verify.contention import summary

Counts = Any
"""An array of the addends of each address: NumPy says only at run time of what."""


def counts(index: Any) -> Counts:
    """Addends of each address where ``index`` holds one address for each value."""
    return numpy.bincount(numpy.asarray(index).reshape(-1))


def each(addresses: Any, addends: int) -> Counts:
    """The same number of addends at every one of so many addresses, or of an array of that shape."""
    return numpy.full(addresses, addends, numpy.int64)


def reach(call: Callable[[Any], Any], length: int) -> Counts:
    """Addends of each of ``length`` inputs of a linear map of a line: the outputs that an input bears on."""
    lines = tf.reshape(tf.eye(length), (length, 1, length, 1))
    return (call(lines).numpy()[:, 0, :, 0] != 0).sum(1)


def outer(*lines: Counts) -> Counts:
    """Addends of a grid whose axes are independent."""
    found = lines[0]
    for line in lines[1:]:
        found = found[..., None] * line
    return found


def crops(boxes: Any, image: Any, size: tuple[int, int], shape: tuple[int, int, int]) -> Counts:
    """Addends of each pixel of some images (``shape``: how many, their height and width) from which ``boxes`` are
    cropped and resized to ``size``: a pixel of a crop reads the four around it."""
    height, width = shape[1:]
    axes = []
    for low, high, out, length in (
        (boxes[:, 0], boxes[:, 2], size[0], height),
        (boxes[:, 1], boxes[:, 3], size[1], width),
    ):
        steps = numpy.arange(out) / (out - 1)
        axes.append((low[:, None] + (high - low)[:, None] * steps) * (length - 1))
    found: Counts = numpy.zeros(shape, numpy.int64)
    for rows in (numpy.floor(axes[0]), numpy.ceil(axes[0])):
        for columns in (numpy.floor(axes[1]), numpy.ceil(axes[1])):
            where = (image[:, None, None], rows[:, :, None].astype(int), columns[:, None, :].astype(int))
            numpy.add.at(found, where, 1)
    return found


def scope(inputs: Mapping[str, Any], call: Callable[[Any], Any]) -> dict[str, Any]:
    """The names of ``race`` expressions: the functions above, the inputs ``i``, and two that use gradients."""

    def gradient(name: str, values: Mapping[str, Any]) -> Counts:
        source = values[name]
        weights = getattr(source, "trainable_weights", None)
        sources = [source] if weights is None else [weight.value for weight in weights]
        with tf.GradientTape() as tape:
            tape.watch(sources)
            out = call(types.SimpleNamespace(**values))
            out = out[0] if isinstance(out, (tuple, list)) else out
        found = tape.gradient(out, sources, tf.ones_like(out))
        flat = [numpy.asarray(tf.convert_to_tensor(one)).reshape(-1) for one in found]
        return numpy.concatenate(flat).round().astype(numpy.int64)

    def ones(name: str) -> Counts:
        """Addends of each element of an input to which the gradients of outputs are added as they are: its
        gradient where that of every output is one."""
        return gradient(name, inputs)

    def units(name: str) -> Counts:
        """The same for an input whose gradient is that of the outputs times other inputs: those are ones."""
        made = {
            k: tf.ones_like(v) if k != name and tf.is_tensor(v) and v.dtype.is_floating else v
            for k, v in inputs.items()
        }
        return gradient(name, made)

    names = (counts, each, reach, outer, crops)
    # Tensors and variables of a graph have no value here.
    arrays = {k: v.numpy() if hasattr(v, "numpy") else v for k, v in inputs.items()}
    return {f.__name__: f for f in names} | {
        "np": numpy,
        "tf": tf,
        "ones": ones,
        "units": units,
        "i": types.SimpleNamespace(**arrays),
    }


def contention(
    race: Mapping[str, Any], inputs: Mapping[str, Any], call: Callable[[Any], Any]
) -> dict[str, int]:
    """The contention of a recipe with these inputs."""
    return summary(race, eval(race["addends"], scope(inputs, call)))
