"""Facts that hold only with some values of environment variables, such as the backend of Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.devices import named
from d9mlint.interp.state import Setting

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

NOT_SET = ""
"""The value that stands for a variable that the program does not set."""
KERAS_BACKEND = "KERAS_BACKEND"
DEFAULT_BACKEND = "tensorflow"
_OTHER_BACKENDS = ("torch", "jax")
EARLIER_BACKENDS = ("theano", "cntk")
"""Those that Keras had beside TensorFlow before 2.4."""


READ = "read: "
"""How marks begin that hold what a library has read of a variable that the program sets after that."""


def before_change(interp: Interp, name: str) -> None:
    """A variable is about to be set or deleted: what a library that is imported has read of it stays as it is."""
    entry = interp.kb.setting(f"env:{name}")
    if entry is not None and any(interp.uses(library) for library in entry.read_by_import):
        old = interp.state.env.get(name)
        interp.state.modes.setdefault(f"{READ}{name}", Setting(NOT_SET, None) if old is None else old)


def read_anew(interp: Interp, name: str) -> None:
    """A call of a library sets a variable and what the library has read of it."""
    interp.state.modes.pop(f"{READ}{name}", None)


def effective(interp: RunView, name: str) -> Setting | None:
    """The value of a variable that its library goes by; None where the program has not set it in time."""
    read = interp.state.modes.get(f"{READ}{name}")
    if read is None:
        return interp.state.env.get(name)
    return None if read.value == NOT_SET else read


def permits(interp: RunView, only: dict[str, list[str]]) -> bool | None:
    """Whether the variables have, where the program is now, values with which a fact holds; None for unknown."""
    unknown = False
    for name, values in only.items():
        setting = effective(interp, name)
        value = NOT_SET if setting is None else setting.value
        if (
            setting is None
            and name == KERAS_BACKEND
            and (backend := keras_backend(interp)) != DEFAULT_BACKEND
        ):
            value = backend
        if value is None:
            unknown = True
        elif value not in values:
            return False
    return None if unknown else True


def keras_backend(interp: RunView) -> str:
    """The backend of Keras as the program sets it; TensorFlow where it does not, empty for unknown.

    Keras 2 has no other from 2.4 on, and ``tf.keras`` never had one. What ``~/.keras/keras.json`` and the shell say is not
    known; but where a project asks for Keras and one other backend alone, they say that one, as Keras would not start
    without.
    """
    earlier = interp.kb_matches("keras", "<2.4")
    if interp.kb_matches("keras", "<3") and (not earlier or interp.uses("tensorflow")):
        return DEFAULT_BACKEND
    setting = effective(interp, KERAS_BACKEND)
    if setting is None:
        return _required_backend(interp, EARLIER_BACKENDS if earlier else _OTHER_BACKENDS)
    return setting.value or ""


def _required_backend(interp: RunView, among: tuple[str, ...]) -> str:
    targets = interp.targets
    if targets is None or not targets.requires("keras") or targets.requires(DEFAULT_BACKEND):
        return DEFAULT_BACKEND
    others = [name for name in among if targets.requires(name)]
    used = interp.uses("tensorflow") or len(others) != 1
    return DEFAULT_BACKEND if used else others[0]


def of_keras(api: str) -> bool:
    """Whether a function or class is one of Keras."""
    return "keras" in api.split(".")[:2]


def keras_device(interp: RunView) -> str:
    """The device on which Keras trains with PyTorch: the one that the program sets, or a GPU where PyTorch has one."""
    if interp.targets is not None and interp.targets.cpu_only("torch"):
        return "cpu"
    setting = effective(interp, "KERAS_TORCH_DEVICE")
    if setting is None or setting.value is None:
        return "cuda"
    return named(interp, v.Lit(setting.value.replace("gpu", "cuda"))) or "cuda"
