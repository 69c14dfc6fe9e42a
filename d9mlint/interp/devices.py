"""Devices: which one a value names, and on which one a library's trainer works.

What libraries do is in ``rules/knowledge/devices.yaml`` and ``runners.yaml``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.argtests import any_holds, holds, item
from d9mlint.interp.device_names import ACCELERATORS, DEVICES, by_default, together

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import Condition, RunnerEntry

DEVICE = "torch.device"
DEFAULT_DEVICE = "torch.default_device"
"""The mode that holds where new tensors are made; False for the CPU, None for unknown."""
MPS = "mps"
ON_MPS = "on mps"
"""The mode that holds whether the program has put something on MPS, wherever it is run."""
RANK = "rank"
"""``api`` of the first argument of a function that is spawned once for each device."""
_FORMAT = "str.format"
_CONVERSIONS = frozenset({"builtins.int", "builtins.str", "builtins.abs"})


class Runner(NamedTuple):
    """An object that trains or moves models, and the device on which it works ("" for unknown)."""

    entry: RunnerEntry
    device: str


def selects(interp: RunView, option: str) -> bool:
    """Whether who runs the program may select a GPU by an option: one of the command line. What a file of the project
    says, or an option that GPUs decide, is as it is."""
    return interp.device == "cuda" and option.startswith("-")


def named(interp: RunView, value: v.Value | None) -> str:
    """The device that a value names ("" for unknown); of several, one that is not the CPU."""
    if isinstance(value, v.AnyOf):
        found = {named(interp, one) for one in value.values if v.is_none(one) is not True}
        place = together(found)
        return "" if place == "cpu" and len(found) > 1 else place
    if isinstance(value, v.Lit):
        if isinstance(value.value, str):
            place = _of_text(value.value)
            return by_default(value.option) if place == "cpu" and selects(interp, value.option) else place
        number = isinstance(value.value, int) and not isinstance(value.value, bool)
        return _accelerator(interp) if number else ""
    if isinstance(value, v.Obj):
        return _of_object(interp, value)
    if isinstance(value, v.Member):
        return _of_member(interp, value)
    return ""


def _accelerator(interp: RunView) -> str:
    """The accelerator that is meant where none is named."""
    return interp.device if interp.device in ACCELERATORS else "cuda"


def _of_text(text: str) -> str:
    name = text.partition(":")[0].lower()
    return "cuda" if name == "gpu" else name if name in DEVICES else ""


def _is_refused(given: v.Value | None) -> bool:
    """Whether a text names no device of PyTorch, though trainers know what it means."""
    text = given.value if isinstance(given, v.Lit) else None
    return isinstance(text, str) and text.partition(":")[0] not in DEVICES and bool(_of_text(text))


def _of_object(interp: RunView, value: v.Obj) -> str:
    if value.api == DEVICE:
        given = value.args.get("type", 0)
        # Trainers take other words too; this one raises for them.
        return "" if _is_refused(given) else named(interp, given)
    if value.api == v.TEXT or value.api in _CONVERSIONS:
        return named(interp, value.args.pos[0]) if value.args.pos else ""
    if value.api == _FORMAT and isinstance(value.owner, v.Lit):
        return _of_text(str(value.owner.value).partition("{")[0])
    if value.api == RANK:
        return _accelerator(interp)
    entry = interp.kb.device(value.api)
    if entry is None and value.api.endswith(".get") and len(value.args.pos) > 1:
        # The default of a configuration that is not there: what stands in it may name an accelerator.
        default = named(interp, value.args.pos[1])
        return default if default in ACCELERATORS else ""
    if entry is None or entry.gives == "owner":
        return ""
    if entry.gives == "argument":
        return named(interp, value.args.get("device_type", 0))
    if entry.gives == "default":
        set_to = interp.mode(DEFAULT_DEVICE).value
        return "cpu" if set_to is False else set_to if isinstance(set_to, str) else ""
    return (
        _accelerator(interp)
        if entry.gives == "cuda" and not value.api.startswith("torch.cuda.")
        else entry.gives
    )


def _of_member(interp: RunView, value: v.Member) -> str:
    owner = value.owner
    if value.name in ("type", "index"):
        return named(interp, owner)
    if isinstance(owner, v.Obj):
        if value.name == "device" and owner.form is not None and owner.form.device:
            return owner.form.device
        entry = interp.kb.device(interp.kb.canonical(f"{owner.type}.{value.name}"))
        if entry is not None:
            found = runner(interp, owner) if entry.gives == "owner" else None
            return found.device if found is not None else "" if entry.gives == "owner" else entry.gives
    return ""


def type_off_cuda(device: v.Obj) -> v.Value | None:
    """The text that is the type of a device which is surely the CPU or MPS; None for any other one, which options or what
    there is may choose."""
    given = device.args.get("type", 0)
    kinds = [
        v.Lit(one.value.partition(":")[0])
        for one in (v.alternatives(given) if given is not None else ())
        if isinstance(one, v.Lit) and isinstance(one.value, str) and not one.option
    ]
    sure = given is not None and len(kinds) == len(v.alternatives(given))
    return v.join(kinds) if sure and all(one.value in ("cpu", MPS) for one in kinds) else None


def is_on_mps(interp: RunView, value: v.Value | None) -> bool:
    """Whether a value is MPS itself, or a map of parts of a model to devices that puts all of them there. A device that is
    chosen by what there is is one of several."""
    if isinstance(value, v.Mapping):
        parts = list(value.items.values())
        return bool(parts) and not value.open and all(is_on_mps(interp, one) for one in parts)
    if isinstance(value, v.Obj) and value.api == DEVICE:
        return is_on_mps(interp, value.args.get("type", 0))
    return isinstance(value, v.Lit) and not value.option and named(interp, value) == MPS


def on_accelerator(interp: RunView, value: v.Value | None) -> bool:
    """Whether a value names an accelerator, or may."""
    return value is not None and any(named(interp, one) in ACCELERATORS for one in v.alternatives(value))


def runner(interp: RunView, owner: v.Value | None) -> Runner | None:
    """What trains or moves models, if a value is that."""
    for one in v.alternatives(owner) if owner is not None else ():
        if isinstance(one, v.Obj):
            found = runner_of(interp, one.type, one.args) or runner_of(interp, one.api, one.args)
            if found is not None:
                return found
        elif isinstance(one, v.Inst):
            for base in one.cls.external_bases():
                found = runner_of(interp, base, one.args)
                if found is not None:
                    return found
    return None


def runner_of(interp: RunView, api: str, args: v.Args) -> Runner | None:
    """What trains or moves models, by the name of the class or function that makes it and its arguments."""
    for entry in interp.kb.runners(api):
        if not entry.versions or interp.targets is None or interp.kb_matches(entry.library, entry.versions):
            return Runner(entry, _works_on(interp, entry, args))
    return None


def _cpu(interp: RunView, args: v.Args, entry: RunnerEntry) -> str:
    """The CPU, on which arguments say that a library works: always, or by the default of an option."""
    options = [_selecting(interp, args, test) for test in entry.cpu if holds(args, test)]
    return by_default(options[0]) if all(options) else "cpu"


def _selecting(interp: RunView, args: v.Args, test: Condition) -> str:
    """The option without whose default a condition does not hold; empty if there is none."""
    found = [_selecting(interp, args, one) for one in test.all_of or ()]
    value = args.get(test.arg, test.pos) if test.arg else None
    option = v.option_of(value) if value is not None else ""
    return next(filter(None, found), option if selects(interp, option) else "")


def _settings(entry: RunnerEntry, args: v.Args) -> Iterator[v.Args]:
    """The arguments of the objects that hold the settings, with the attributes that they were given later."""
    given = args.get(entry.settings.arg, entry.settings.pos) if entry.settings is not None else None
    for one in v.alternatives(given) if given is not None else ():
        if isinstance(one, (v.Obj, v.Inst)):
            later = {test.arg: one.attrs[test.arg] for test in entry.cpu if test.arg in one.attrs}
            yield v.Args(one.args.pos, {**one.args.kw, **later}, one.args.star, one.args.dstar)


def asked(interp: RunView, entry: RunnerEntry, args: v.Args) -> str:
    """The device that the arguments of a call ask for ("" for unknown, or for none)."""
    for one in entry.asked:
        given = args.get(one.arg, one.pos)
        if given is not None and one.item:
            given = item(given, one.item) or (v.Lit(one.default) if one.default else None)
        if given is not None and one.means:
            given = v.Lit(one.means) if v.truth(given) is True else None
        device = named(interp, given) if given is not None else ""
        if device:
            return device
    return ""


def _works_on(interp: RunView, entry: RunnerEntry, args: v.Args) -> str:
    for settings in _settings(entry, args):
        if any_holds(settings, entry.cpu):
            return _cpu(interp, settings, entry)
    if any_holds(args, entry.cpu):
        return _cpu(interp, args, entry)
    places = [asked(interp, entry, one) for one in (args, *_settings(entry, args))]
    places += [named(interp, args.kw.get(name)) for name in ("device", "accelerator")]
    places.append(named(interp, v.Lit(interp.mode(entry.mode).value)) if entry.mode else "")
    return next(
        (place for place in places if place), "" if entry.device == "unknown" else _by_default(interp, entry)
    )


def _by_default(interp: RunView, entry: RunnerEntry) -> str:
    """Where a library works unless it is asked otherwise: on the CPU where the project installs builds for it alone, and on
    MPS where the program has named it before, which raises on a machine with CUDA."""
    framework = entry.library if entry.library == "tensorflow" else "torch"
    if entry.device and framework == "torch" and interp.mode(ON_MPS).value is True:
        return MPS
    cpu = interp.targets is not None and interp.targets.cpu_only(framework)
    return "cpu" if cpu else entry.device
