"""TensorFlow as the measurement sees it. Runs in child processes only."""

from __future__ import annotations

import contextlib
import hashlib
import os
import platform
import random
import types
from collections.abc import Callable, Mapping
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy
import tensorflow as tf
from tensorflow.python.eager import context

from d9mlint.verify.clock import timed
from d9mlint.verify.compare import Array
from d9mlint.verify.hardware import driver, limit_memory, multiprocessors, processor
from d9mlint.verify.recipes import function
from d9mlint.verify.scope import along, asked, sizes, spread
from d9mlint.verify.tensorflow_addresses import contention

VARIABLES = (
    "TF_CUDNN_DETERMINISTIC",
    "TF_CUDNN_USE_AUTOTUNE",
    "TF_CUDNN_USE_FRONTEND",
    "TF_DETERMINISTIC_OPS",
    "TF_ENABLE_ONEDNN_OPTS",
    "TF_XLA_FLAGS",
    "XLA_FLAGS",
    "NVIDIA_TF32_OVERRIDE",
)
"""Environment variables that bear on the bits: recorded with the machine where they are set."""


class TensorFlowBackend:
    """One device of TensorFlow: ``auto``, ``cpu``, ``cuda`` or ``cuda:N``. Raises LookupError."""

    fills_memory = False

    def __init__(self, device: str) -> None:
        gpus = [] if device == "cpu" else tf.config.list_physical_devices("GPU")
        self.device = _resolved(device, len(gpus))
        self.kind = self.device.partition(":")[0]
        # TensorFlow takes every GPU that it sees.
        self._gpu = gpus[int(self.device.partition(":")[2])] if self.kind == "cuda" else None
        tf.config.set_visible_devices([self._gpu] if self._gpu else [], "GPU")
        if self._gpu:
            tf.config.experimental.set_memory_growth(self._gpu, True)
        self.threads = max(2, _processors())
        if _processors() < 2:
            # Races between threads need two of them.
            tf.config.threading.set_inter_op_parallelism_threads(self.threads)
            tf.config.threading.set_intra_op_parallelism_threads(self.threads)
        tf.get_logger().setLevel("ERROR")
        self._deterministic = False
        self._generators: list[tuple[Any, Any]] = []

    def describe(self) -> dict[str, Any]:
        """The fields of ``evidence.Machine``, and ``device``, the name of the device in jobs."""
        versions = {
            "tensorflow": tf.__version__,
            "keras": keras.__version__,
            "python": platform.python_version(),
        }
        name = "CPU"
        if self._gpu:
            details = tf.config.experimental.get_device_details(self._gpu)
            name = str(details.get("device_name", "GPU"))
            built = tf.sysconfig.get_build_info()
            versions |= {part: str(built.get(f"{part}_version", "unknown")) for part in ("cuda", "cudnn")}
            versions["driver"] = driver()
        else:
            versions["cpu"] = processor()
        versions |= {f"env {v}": os.environ[v] for v in VARIABLES if v in os.environ}
        return {
            "device": self.device,
            "library": "tensorflow",
            "kind": self.kind,
            "name": name,
            "versions": versions,
            "threads": self.threads,
        }

    def program(self, recipe: dict[str, Any], dtype: str, scale: float, seed: int) -> TensorFlowProgram:
        """Build the inputs of a recipe."""
        scope = self._scope(tf.as_dtype(dtype), scale, seed, recipe.get("given", {}))
        exec(function("make", "", recipe["make"]), scope)
        exec(function("fn", "i", recipe["fn"]), scope)
        with tf.device(scope["dev"]):
            inputs: dict[str, Any] = scope["make"]()
        self._generators = [
            (state, tf.identity(state)) for value in inputs.values() for state in _generator_states(value)
        ]
        # An optional input that a call leaves out has no gradient.
        grad = tuple(name for name in recipe["grad"] if inputs[name] is not None)
        found = TensorFlowProgram(self, inputs, grad, scope, seed)
        race = recipe.get("race") or {}
        if race.get("addends") and recipe.get("given"):
            # Of a call that the arithmetic does not fit, nothing is said; it is run all the same.
            with contextlib.suppress(Exception), tf.device("/CPU:0"):
                found.addends = contention(race, inputs, scope["fn"])["most"]
        return found

    def _scope(self, dtype: Any, scale: float, seed: int, given: Mapping[str, Any]) -> dict[str, Any]:
        """The names that recipes use."""
        generator = numpy.random.default_rng(seed)
        cpu_only = self.kind == "cpu"
        count = None if cpu_only else multiprocessors(int(self.device.partition(":")[2]))

        def normal(*shape: int) -> Any:
            return tf.cast(tf.constant(generator.standard_normal(shape)), dtype)

        def mixed(*shape: int) -> Any:
            magnitude = 10 ** generator.uniform(-3, 3, shape)
            return tf.cast(tf.constant(generator.standard_normal(shape) * magnitude), dtype)

        def integers(high: int, *shape: int) -> Any:
            return tf.constant(generator.integers(0, high, shape))

        def tensor(values: Any, dtype: str) -> Any:
            return tf.cast(values, dtype) if dtype else tf.convert_to_tensor(values)

        return {
            "tf": tf,
            "np": numpy,
            "dev": "/CPU:0" if cpu_only else "/GPU:0",
            "dtype": dtype,
            "g": generator,
            **sizes(scale, count),
            "rn": normal,
            "rmix": mixed,
            "ri": integers,
            **asked(given, normal, integers, tensor),
            "along": along,
            "spread": spread,
        }

    def restore(self, seed: int) -> None:
        """Seed every generator of the process. With op determinism on, TensorFlow's own seed stays unset: that
        a draw without a seed is refused then is what is to be seen."""
        keras.utils.set_random_seed(seed % 2**32)
        if self._deterministic:
            tf.random.set_seed(None)
        for state, start in self._generators:
            state.assign(start)

    def random_state(self) -> str | None:
        """A digest of the states of the generators that can be seen: not of those inside of the kernels of a
        traced function, which recipes do without."""
        seeds = getattr(context.context(), "_rng", None)
        if seeds is None:
            return None
        states = [random.getstate(), numpy.random.get_state(), seeds.getstate()]
        states += [state.numpy().tolist() for state, _ in self._generators]
        return hashlib.sha256(repr(states).encode()).hexdigest()

    def use_deterministic_mode(self, fill: bool) -> None:
        """Switch op determinism on. It cannot be switched off again, and fills no memory."""
        tf.config.experimental.enable_op_determinism()
        self._deterministic = True

    def refuses(self, error: BaseException) -> bool:
        """Whether an error says that op determinism has no way to run an op."""
        kinds = (tf.errors.OpError, RuntimeError, ValueError)
        return self._deterministic and isinstance(error, kinds) and "determinis" in str(error).lower()

    def limit_memory(self, extra: int) -> None:
        """Let this process take so many bytes more; of a GPU, TensorFlow says how many before it starts it only."""
        if self.kind == "cpu":
            limit_memory(extra)

    def out_of_memory(self, error: BaseException) -> bool:
        """Whether an error is a want of memory."""
        return isinstance(error, tf.errors.ResourceExhaustedError)

    def lost(self, error: BaseException) -> bool:
        """Whether the device cannot be used any more in this process."""
        return isinstance(error, tf.errors.OpError) and "CUDA_ERROR" in str(error)

    def wait(self) -> None:
        """Wait until the device has done its work."""
        if self._gpu:
            tf.test.experimental.sync_devices()


class TensorFlowProgram:
    """Inputs, and what is run on them. Tensors cannot be written to; variables start each run anew."""

    def __init__(
        self,
        framework: TensorFlowBackend,
        inputs: dict[str, Any],
        grad: tuple[str, ...],
        scope: dict[str, Any],
        seed: int,
    ) -> None:
        self._framework = framework
        self._inputs = types.SimpleNamespace(**inputs)
        self._call: Callable[[Any], Any] = scope["fn"]
        self._device: str = scope["dev"]
        self._leaves = {
            f"grad:{name}{end}": leaf for name in grad for end, leaf in _leaves(inputs[name]).items()
        }
        self._start = [(v, tf.identity(v)) for value in inputs.values() for v in _variables(value)]
        self._generator = numpy.random.default_rng(seed + 1)
        self._upstream: list[Any] = []
        self._inputs_on_gpu = any("GPU" in value.device for value in inputs.values() if _eager(value))
        self.on_device = True
        self.addends: int | None = None
        self.sizes = {name: tuple(value.shape) for name, value in inputs.items() if _eager(value)}
        self.dtypes = {name: value.dtype.name for name, value in inputs.items() if _eager(value)}

    def run(self) -> tuple[float, dict[str, Array]]:
        """Run once from the same values: seconds, and the bytes of every output and gradient by name."""
        for variable, value in self._start:
            variable.assign(value)
        with tf.device(self._device):
            seconds, found = timed(self._once, self._framework.wait)
        # What has no tensors, such as a pipeline of data or a session of TensorFlow 1, does not tell.
        places = [value.device for value in found.values() if _eager(value)]
        self.on_device = not self._inputs_on_gpu or not places or any("GPU" in place for place in places)
        return seconds, {name: _array(value) for name, value in found.items()}

    def _once(self) -> dict[str, Any]:
        """Forward, and backward with a random upstream gradient: one of ones hides the order of sums."""
        if not self._leaves:
            return _outputs(self._call(self._inputs))
        leaves = list(self._leaves.values())
        with tf.GradientTape(watch_accessed_variables=False) as tape:
            tape.watch(leaves)
            found = _outputs(self._call(self._inputs))
        ends = [out for out in found.values() if _eager(out) and out.dtype.is_floating]
        for end in ends[len(self._upstream) :]:
            noise = self._generator.standard_normal(end.shape)
            self._upstream.append(tf.cast(tf.constant(noise), end.dtype))
        gradients = tape.gradient(ends, leaves, output_gradients=self._upstream[: len(ends)])
        for name, gradient in zip(self._leaves, gradients, strict=True):
            if gradient is None:
                raise ValueError(f"no {name} comes out of the recipe")
            # The gradient of a lookup is a list of rows, whose sum is what an optimizer uses.
            found[name] = tf.convert_to_tensor(gradient)
        return found


def _resolved(device: str, count: int) -> str:
    """The device's full name. Raises LookupError where TensorFlow does not see it."""
    if device == "cpu" or (device == "auto" and not count):
        return "cpu"
    name = "cuda:0" if device in ("auto", "cuda") else device
    if int(name.partition(":")[2]) >= count:
        raise LookupError(f"tensorflow sees no {name} here" + (f" ({count} GPUs)" if count else " (no GPU)"))
    return name


def _processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _eager(value: Any) -> bool:
    """Whether a value is a tensor or variable that holds numbers, and not a place in a graph."""
    return isinstance(value, (tf.Tensor, tf.Variable)) and not hasattr(value, "graph")


def _outputs(value: Any) -> dict[str, Any]:
    """The arrays in a result, in order."""
    flat = [
        item
        for item in tf.nest.flatten(value)
        if _eager(item) or isinstance(item, (numpy.ndarray, numpy.generic))
    ]
    return {f"out{number}": item for number, item in enumerate(flat)}


def _variables(value: Any) -> list[Any]:
    """The variables that a run may write to: a variable itself, the weights of a layer."""
    if isinstance(value, keras.layers.Layer):
        return [weight.value for weight in value.weights]
    return [value] if isinstance(value, tf.Variable) and _eager(value) else []


def _generator_states(value: Any) -> list[Any]:
    """The states of a layer's own random generators."""
    if not isinstance(value, keras.layers.Layer):
        return []
    weights = {id(weight) for weight in value.weights}
    return [variable.value for variable in value.variables if id(variable) not in weights]


def _leaves(value: Any) -> dict[str, Any]:
    """What gets gradients, by what its name ends in: a tensor or variable itself, the weights of a layer."""
    if isinstance(value, keras.layers.Layer):
        return {f".{weight.name}": weight.value for weight in value.trainable_weights}
    return {"": value}


def _array(value: Any) -> Array:
    host = value if isinstance(value, (numpy.ndarray, numpy.generic)) else value.numpy()
    return Array(tf.as_dtype(host.dtype).name, tuple(host.shape), numpy.ascontiguousarray(host).tobytes())
