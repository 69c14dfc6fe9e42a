"""The private names of TensorFlow that tracing uses, in one place. Runs in traced processes.

``check`` compares what is installed with what is needed here; a test does so too.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, NamedTuple

OLDEST = "2.16"
"""The oldest release that is accepted. The suite runs with 2.21; its tests of tracing have been run with 2.16.2."""


class Unsupported(Exception):
    """The installed release of TensorFlow lacks a name that tracing needs; the text says which."""


class _Need(NamedTuple):
    module: str
    name: str


NEEDS = (
    _Need("tensorflow.python.framework.op_callbacks", "add_op_callback"),
    _Need("tensorflow.python.eager.backprop", "_gradient_function"),
    _Need("tensorflow.python.eager.execute", "quick_execute"),
    _Need("tensorflow.python.eager.context", "context"),
    _Need("tensorflow.python.framework.ops", "EagerTensor"),
    _Need("tensorflow.python.pywrap_tfe", "TFE_Py_RegisterGradientFunction"),
    _Need("tensorflow.python.ops.gen_resource_variable_ops", "read_variable_op"),
)


def missing() -> list[str]:
    """The needed names that the installed release lacks."""
    found = []
    for need in NEEDS:
        try:
            if not hasattr(import_module(need.module), need.name):
                found.append(f"{need.module}.{need.name}")
        except ImportError:
            found.append(need.module)
    return found


def check() -> None:
    """Raise Unsupported where the installed release cannot be traced."""
    lacking = missing()
    if lacking:
        import tensorflow

        raise Unsupported(
            f"d9mlint trace supports TensorFlow {OLDEST} and newer; TensorFlow {tensorflow.__version__} has no "
            + ", ".join(lacking)
        )


def add_op_callback(callback: Callable[..., Any]) -> None:
    """Call a function after every operation of the running thread, eager or in a graph that is built."""
    import_module("tensorflow.python.framework.op_callbacks").add_op_callback(callback)


def around_gradients(around: Callable[[Callable[..., Any], tuple[Any, ...]], Any]) -> None:
    """Have the gradient function of each operation called through ``around(function, arguments)``."""
    function = import_module("tensorflow.python.eager.backprop")._gradient_function

    def gradient(*args: Any) -> Any:
        return around(function, args)

    import_module("tensorflow.python.pywrap_tfe").TFE_Py_RegisterGradientFunction(gradient)


def execute(name: str, inputs: Any, attrs: Any, outputs: int) -> Any:
    """Execute an operation without telling the callbacks."""
    context = import_module("tensorflow.python.eager.context").context()
    quick = import_module("tensorflow.python.eager.execute").quick_execute
    return quick(name, outputs, list(inputs), attrs, context)


def eager_tensor() -> Any:
    """The class of tensors that have a value."""
    return import_module("tensorflow.python.framework.ops").EagerTensor


def variable_value(handle: Any) -> Any:
    """The value of the variable behind a resource; None for other resources and without a value."""
    data = getattr(handle, "_handle_data", None)
    if data is None or not data.is_set or len(data.shape_and_type) != 1:
        return None
    dtype = data.shape_and_type[0].dtype
    try:
        return execute("ReadVariableOp", [handle], ("dtype", dtype), 1)[0]
    except Exception:
        # Not a variable, or one without a value yet: TensorFlow has many classes of errors for this.
        return None
