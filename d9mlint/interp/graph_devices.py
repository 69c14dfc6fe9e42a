"""Which kinds of device the devices of TensorFlow are: it takes names, and functions that give one for an operation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.view import RunView

DEVICE = "tf.device"
GPU, UNKNOWN = "gpu", "?"
_KINDS = ("cpu", GPU)
_PLACES = ("job:", "replica:", "task:")
"""What a name may hold beside a kind: which process is meant, not which of its devices."""
_DEEPEST = 3


def is_function(device: v.Value) -> bool:
    """Whether a function of the program says the device of each operation."""
    return any(isinstance(one, v.Func | v.Partial) for one in v.alternatives(device))


def kinds_of(interp: RunView, device: v.Value) -> frozenset[str]:
    """The kinds of device that a value may name: ``cpu``, ``gpu`` or another name; empty where it leaves the kind to what
    is around it, and ``UNKNOWN``."""
    return frozenset(kind for one in v.alternatives(device) for kind in _kinds(interp, one, 0))


def _kinds(interp: RunView, device: v.Value, depth: int) -> Iterator[str]:
    if isinstance(device, v.Lit):
        yield _of_name(device.value) if isinstance(device.value, str) else ""
        return
    if not isinstance(device, v.Obj) or depth > _DEEPEST:
        yield UNKNOWN
        return
    role = interp.kb.role(device.api, "places-on-devices")
    if role is not None:
        # A function of the library that says one of the devices which it is given.
        yield ""
        given = [device.args.get(role.arg, role.pos), *(device.args.get(name) for name in role.more)]
        for value in given:
            for one in v.alternatives(value) if value is not None else ():
                yield from _kinds(interp, one, depth + 1)
        return
    text = v.template_of(device)
    kind = _of_name(text)
    yield kind if kind in _KINDS or (text and not kind) else UNKNOWN


def _of_name(name: str) -> str:
    """The kind of device in a name such as ``/job:worker/task:0/device:GPU:0``."""
    parts = [part.lower().removeprefix("device:") for part in name.split("/")]
    kinds = [part for part in parts if part and not part.startswith(_PLACES)]
    return next((known for known in _KINDS for kind in kinds if known in kind), kinds[-1] if kinds else "")
