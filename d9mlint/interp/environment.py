"""Facts that hold only with some values of environment variables, such as the backend of Keras."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.devices import named

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

NOT_SET = ""
"""The value that stands for a variable that the program does not set."""
KERAS_BACKEND = "KERAS_BACKEND"
DEFAULT_BACKEND = "tensorflow"
_OTHER_BACKENDS = ("torch", "jax")


def permits(interp: RunView, only: dict[str, list[str]]) -> bool | None:
    """Whether the variables have, where the program is now, values with which a fact holds; None for unknown."""
    unknown = False
    for name, values in only.items():
        setting = interp.state.env.get(name)
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

    Keras 2 has no other. What ``~/.keras/keras.json`` and the shell say is not known; but where a project asks for
    Keras and one other backend alone, they say that one, as Keras would not start without.
    """
    if interp.kb_matches("keras", "<3"):
        return DEFAULT_BACKEND
    setting = interp.state.env.get(KERAS_BACKEND)
    if setting is None:
        return _required_backend(interp)
    return setting.value or ""


def _required_backend(interp: RunView) -> str:
    targets = interp.targets
    if targets is None or not targets.requires("keras") or targets.requires(DEFAULT_BACKEND):
        return DEFAULT_BACKEND
    others = [name for name in _OTHER_BACKENDS if targets.requires(name)]
    used = interp.uses("tensorflow") or len(others) != 1
    return DEFAULT_BACKEND if used else others[0]


def of_keras(api: str) -> bool:
    """Whether a function or class is one of Keras."""
    return "keras" in api.split(".")[:2]


def keras_device(interp: RunView) -> str:
    """The device on which Keras trains with PyTorch: the one that the program sets, or a GPU where PyTorch has one."""
    if interp.targets is not None and interp.targets.cpu_only("torch"):
        return "cpu"
    setting = interp.state.env.get("KERAS_TORCH_DEVICE")
    if setting is None or setting.value is None:
        return "cuda"
    return named(interp, v.Lit(setting.value.replace("gpu", "cuda"))) or "cuda"
