"""Repeats one TensorFlow operation on the inputs that it has just been given. Runs in traced processes."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from typing import Any

import numpy
import tensorflow

from d9mlint.trace import tf_names
from d9mlint.verify.compare import Array, Tally

RUNS = 10


class Confirmation:
    """Replays the operation of a target and writes what came of it; then ``leave`` ends the process."""

    def __init__(self, path: str, leave: Callable[[str], None]) -> None:
        self._path = path
        self._leave = leave

    def __call__(self, kind: str, inputs: Any, attrs: Any, outputs: Any, contents: Any) -> None:
        """Replay, write, end. An operation that writes to variables cannot be repeated."""
        if not contents:
            result = confirm(kind, inputs, attrs, len(outputs))
            with open(self._path + ".part", "w", encoding="utf-8") as stream:
                json.dump(result, stream)
            os.replace(self._path + ".part", self._path)
        self._leave("confirmed")


def confirm(kind: str, inputs: Any, attrs: Any, outputs: int, runs: int = RUNS) -> dict[str, Any]:
    """How results differ over replays: as the program is set, and once more in deterministic mode."""
    described = [
        {
            "name": f"input {n}",
            "dtype": tensor.dtype.name,
            "shape": list(tensor.shape),
            "device": "cuda" if "GPU" in tensor.device else "cpu",
            "digest": "",
        }
        for n, tensor in enumerate(inputs)
        if hasattr(tensor, "numpy")
    ]
    versions = {"tensorflow": tensorflow.__version__}
    result: dict[str, Any] = {"op": f"tf.{kind}", "runs": runs, "inputs": described, "versions": versions}
    result.update(_session(kind, inputs, attrs, outputs, runs))
    result["deterministic_already"] = False
    tensorflow.config.experimental.enable_op_determinism()
    result["deterministic"] = _session(kind, inputs, attrs, outputs, runs)
    return result


def _session(kind: str, inputs: Any, attrs: Any, outputs: int, runs: int) -> dict[str, Any]:
    tallies: list[Tally] = []
    together: dict[tuple[str, ...], None] = {}
    values: dict[str, Any] | None = None
    try:
        for _ in range(runs):
            results = [_array(t) for t in tf_names.execute(kind, inputs, attrs, outputs)]
            together[tuple(array.digest for array in results)] = None
            if not tallies:
                tallies = [Tally(array) for array in results]
                continue
            for tally, array in zip(tallies, results, strict=True):
                if values is None and array.data != tally.first.data:
                    values = _first_difference(tally.first, array)
                tally.add(array)
    except tensorflow.errors.OpError as error:
        return {"distinct": 0, "outputs": [], "raises": str(error.message).splitlines()[0], "values": None}
    found = [tally.summary(f"out{n}") for n, tally in enumerate(tallies)]
    for output in found:
        output.pop("digests")
    return {"distinct": len(together), "outputs": found, "raises": None, "values": values}


def _array(tensor: Any) -> Array:
    value = numpy.ascontiguousarray(tensor.numpy())
    return Array(tensor.dtype.name, tuple(value.shape), value.tobytes())


def _first_difference(one: Array, other: Array) -> dict[str, Any] | None:
    dtype = tensorflow.as_dtype(one.dtype).as_numpy_dtype
    a, b = (numpy.frombuffer(x.data, dtype=dtype).reshape(x.shape) for x in (one, other))
    width = numpy.dtype(dtype).itemsize
    raw = [numpy.frombuffer(x.data, dtype=numpy.uint8).reshape(-1, width) for x in (one, other)]
    place = int(numpy.flatnonzero((raw[0] != raw[1]).any(axis=1))[0])
    index = [int(i) for i in numpy.unravel_index(place, one.shape)] if one.shape else []
    return {"index": index, "values": [repr(v.reshape(-1)[place].item()) for v in (a, b)]}
