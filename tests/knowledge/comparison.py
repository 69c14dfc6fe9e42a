"""What the facts lack or claim wrongly, held against the table of a released wheel."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from d9mlint.knowledge.schema import OpEntry, OpHistory, SettingEntry
from d9mlint.knowledge.versions import matches

# Alerts of TensorFlow: sentences that refuse an op, among others that speak of determinism.
_REFUSAL = re.compile(
    r"^(A d|D)eterministic GPU implementation of |^Determinism is not yet supported"
    r"|would have been executed is not deterministic|^Timestamp cannot be called|^When determinism is enabled"
    r"|do not yet have a deterministic XLA implementation"
)
_SWITCH_VARIABLE = re.compile(r"^TF_\w*(DETERMINIS|USE_AUTOTUNE|CUDNN_USE_FRONTEND)\w*$")
# Read by every release and for nothing that differs between runs.
_NO_SWITCH = frozenset({"TF_CUDNN_RNN_USE_AUTOTUNE"})


def device_of(table: dict[str, Any]) -> str:
    """The device whose kernels a wheel holds beside those of the CPU."""
    return "mps" if "macosx" in table["wheel"] else "cuda"


def alerts(table: dict[str, Any]) -> set[str]:
    """All names or sentences by which a library refuses an op."""
    found = {name for library in table["libraries"].values() for name in library["alerts"]}
    return found | {text for text in table["messages"] if _REFUSAL.search(text)}


def behaviour(op: OpEntry, version: str) -> OpHistory | None:
    """What the facts say that an op does in a release of its library."""
    return next((item for item in op.history if matches(item.versions, version)), None)


def differences(table: dict[str, Any], ops: Iterable[OpEntry], settings: Iterable[SettingEntry]) -> list[str]:
    """One line for each thing that the facts lack or claim wrongly; empty when they agree with the wheel."""
    package, version, device = table["package"], table["version"], device_of(table)
    library = "tensorflow" if package.startswith("tensorflow") else package
    present = alerts(table)
    ours = [op for op in ops if op.library == library and {device, "cpu"} & set(op.devices)]
    found: list[str] = []
    named: set[str] = set()
    for op in ours:
        said = behaviour(op, version)
        have = {alert for alert in present for name in op.alerts if alert == name or alert.startswith(name)}
        named |= have
        if said is None:
            continue
        if said.behaviour == "raises" and said.alert == "own":
            if not op.alerts:
                found.append(f"{op.id}: raises in {version}, and no alert is named")
            elif not have:
                found.append(f"{op.id}: raises in {version}, but the wheel has no alert {op.alerts[0]!r}")
        elif said.alert != "kept" and have and said.behaviour != "raises" and device in op.devices:
            found.append(f"{op.id}: {said.behaviour} in {version}, but the wheel has the alert {min(have)!r}")
        elif said.alert == "kept" and not have:
            found.append(f"{op.id}: its alert is said to be kept in {version}, but the wheel has none")
    found += [f"no op has the alert {alert!r} of {version}" for alert in sorted(present - named - {"?"})]
    known = {name for setting in settings for name in setting.names}
    found += [
        f"no setting is named {variable} of {version}"
        for variable in table["variables"]
        if _SWITCH_VARIABLE.match(variable) and variable not in _NO_SWITCH and variable not in known
    ]
    return found
