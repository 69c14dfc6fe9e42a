"""DET401-DET405 and DET407: ops without run-to-run guarantee, judged by the target version."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.checks.activity import TF_TRAIN, TORCH_TRAIN, may_use_cuda, where
from d9mlint.checks.base import Reporter, Where, scope
from d9mlint.checks.text import call_text
from d9mlint.facts import model as m
from d9mlint.findings import Confidence, Severity
from d9mlint.program import values as v
from d9mlint.program.context import CPU_CONTEXT
from d9mlint.program.gradients import detached
from d9mlint.program.hooks import CallEvent
from d9mlint.program.rng import all_hold, any_holds

if TYPE_CHECKING:
    from d9mlint.knowledge.model import OpEntry, OpHistory
    from d9mlint.program.hooks import Hooks
    from d9mlint.program.interp import Interp
    from d9mlint.program.state import Site

NO_GRADIENT = frozenset({"torch.no_grad", "torch.inference_mode"})
TF_LIBRARIES = frozenset({"tensorflow", "keras"})
# Libraries that run on the GPU by themselves, without torch or TensorFlow code that shows it.
OWN_DEVICE = frozenset({"catboost", "lightgbm", "xgboost", "jax", "cupy"})
CODES = frozenset({"DET401", "DET402", "DET403", "DET404", "DET405", "DET407"})
SET_ITEM = "torch.Tensor.__setitem__"
RNN_VARIABLE = "CUBLAS_WORKSPACE_CONFIG"
MODE_CALL = "use_deterministic_algorithms"
RNN_VALUES = (":16:8", ":4096:2", ":4096:8")


# Functions that fit loaded weights to a model work outside any gradient.
_LOADING = re.compile(
    r"(interpolate|resize|resample)_?(abs_)?pos|load|checkpoint|convert|state_dict", re.IGNORECASE
)


# What a prediction is compared with is data.
_TRUTH = re.compile(r"(gt|target|label)s?(_|$)", re.IGNORECASE)


class Candidate(NamedTuple):
    """An op that was called: judged at the end of the run, when modes and devices are known."""

    place: Where
    text: str
    entry: OpEntry
    past: OpHistory
    sure: Confidence
    api: str


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to all calls of ops that the knowledge base knows."""
    if not reporter.on(*CODES):
        return

    def any_call(it: Interp, call: CallEvent) -> None:
        if it.entry is None:
            return
        entries = it.kb.ops(call.api)
        likely = False
        if not entries and call.owner is not None and call.api.startswith("?."):
            name = call.api.rpartition(".")[2]
            # A trailing underscore is a tensor's even where nothing is known of the receiver.
            if name.endswith("_"):
                entries = it.kb.op_methods(name)
                likely = True
        for entry in entries:
            if _code(entry) in CODES:
                _candidate(it, call, entry, likely)

    def item(it: Interp, owner: v.Value, index: v.Value, *rest: Any) -> None:
        # `x[index] = v` and `x[index] += v` with a tensor as index: index_put_ under another spelling.
        node = rest[-1]
        if it.entry is not None and _is_tensor(owner) and any(_is_tensor(i) for i in _indices(index)):
            for entry in it.kb.ops(SET_ITEM):
                _candidate(it, CallEvent(SET_ITEM, v.NO_ARGS, node, owner), entry, likely=True)

    hooks.any_call.append(any_call)
    hooks.item_writes.append(item)
    hooks.item_updates.append(item)
    hooks.ends.append(lambda it: _end(it, reporter))


def _is_tensor(value: v.Value) -> bool:
    return isinstance(value, v.Obj) and value.type == "torch.Tensor"


def _indices(index: v.Value) -> list[v.Value]:
    return index.elts if isinstance(index, v.Items) else [index]


def _code(entry: OpEntry) -> str:
    return entry.rule or ("DET403" if entry.library in TF_LIBRARIES else "DET401")


def history(it: Interp, entry: OpEntry) -> OpHistory | None:
    """What the op does in the target version."""
    if it.targets is None:
        return None
    for item in entry.history:
        if it.targets.matches(entry.library, item.versions):
            return item
    return None


def _candidate(it: Interp, call: CallEvent, entry: OpEntry, likely: bool) -> None:
    if CPU_CONTEXT in it.contexts or any(_on_cpu(value) for value in (call.owner, *call.args.pos)):
        return
    answer = all_hold(call.args, entry.when)
    excused = any_holds(call.args, entry.unless)
    if answer is False or excused is True:
        return
    if entry.passes == "backward" and (
        any(name in NO_GRADIENT for name in it.contexts)
        or _LOADING.search(scope(it))
        or _needs_no_gradient(call)
    ):
        return
    past = history(it, entry)
    if past is None or past.behaviour == "deterministic":
        return
    sure = Confidence.HIGH
    if not entry.static or entry.confidence == "low" or not entry.practical:
        sure = Confidence.LOW
    elif (
        likely
        or answer is None
        or excused is None
        or entry.confidence == "medium"
        or _likely_only(call.owner)
    ):
        sure = Confidence.MEDIUM
    found = Candidate(Where(it, call.node, call.api), call_text(call), entry, past, sure, call.api)
    it.scratch.setdefault("ops", []).append(found)


def _needs_no_gradient(call: CallEvent) -> bool:
    """Whether what the op is applied to is data, so that its backward pass does not run."""
    if not call.api.startswith("torch.") or "embedding" in call.api or "attention" in call.api:
        return False
    first = call.owner if call.owner is not None else call.args.get("input", 0)
    if first is not None and detached(first):
        return True
    node = call.node
    if not isinstance(node, m.Call):
        return False
    written = node.func if call.owner is not None else node.args[0] if node.args else None
    return _TRUTH.match(_root(written)) is not None


def _root(node: Any) -> str:
    """The variable that an expression starts from (``x`` of ``x.float()[0]``), empty for anything else."""
    while isinstance(node, (m.Call, m.Attr, m.Subscript)):
        if isinstance(node, m.Call) and isinstance(node.func, m.Name) and "." not in node.func.id:
            return ""
        node = node.func if isinstance(node, m.Call) else node.value
    return node.id.partition(".")[0] if isinstance(node, m.Name) else ""


def _on_cpu(value: v.Value | None) -> bool:
    if isinstance(value, v.AnyOf):
        return all(_on_cpu(one) for one in value.values)
    return isinstance(value, v.Obj) and value.on_cpu


def _likely_only(owner: v.Value | None) -> bool:
    return isinstance(owner, v.Obj) and owner.likely


def _end(it: Interp, reporter: Reporter) -> None:
    if it.entry is None:
        return
    mode = it.mode("torch.deterministic")
    torch_on = bool(mode.value or it.scratch.get("mode-on"))
    torch_unknown = mode.value is None or bool(it.scratch.get("mode-unknown"))
    tf_on = "tf-on" in it.scratch or bool(it.scratch.get("tf-switch"))
    on_gpu = may_use_cuda(it)
    told: set[tuple[Site, str]] = set()
    for found in it.scratch.get("ops", []):
        library = found.entry.library
        is_tf = library in TF_LIBRARIES
        gpu = (
            ("where", "no-gpu") not in it.scratch and it.device != "cpu"
            if is_tf or library in OWN_DEVICE
            else on_gpu
        )
        gpu = gpu and found.entry.device in ("cuda", "both")
        if not gpu and not (
            torch_on and found.past.behaviour == "raises" and found.entry.device in ("cpu", "both")
        ):
            continue
        if not is_tf and torch_unknown and _code(found.entry) != "DET407":
            continue
        training = where(it, TF_TRAIN if is_tf else TORCH_TRAIN)
        if found.entry.passes == "backward" and training is None and library not in OWN_DEVICE:
            continue
        if _code(found.entry) == "DET405":
            # Networks of one family that a table offers are built at one place: they are told as one.
            if (found.place.site, found.text) in told:
                continue
            told.add((found.place.site, found.text))
        _judge(it, reporter, found, tf_on if is_tf else torch_on, gpu)


def _judge(it: Interp, reporter: Reporter, found: Candidate, on: bool, gpu: bool) -> None:
    """Report an op that varies, or that raises because the mode is on."""
    entry, past = found.entry, found.past
    code = _code(entry)
    target = it.targets.version(entry.library) if it.targets is not None else None
    version = f"{entry.library} {target.version}" if target is not None else entry.library
    severity = Severity.WARNING
    part = {"forward": "its result", "backward": "its gradient"}.get(entry.passes, "its result and gradient")
    if code == "DET405":
        setting = it.state.env.get(RNN_VARIABLE)
        if setting is not None and (setting.value is None or setting.value in RNN_VALUES):
            return
        message = f"`{found.text}` on CUDA without {RNN_VARIABLE}: cuDNN's recurrent kernels may differ from run to run"
    elif on and past.behaviour == "raises":
        if code == "DET401":
            code = "DET402"
        severity = Severity.ERROR
        message = f"`{found.text}` raises under deterministic mode{' on CUDA' if gpu else ''} ({version})"
    elif on and past.behaviour == "deterministic_alternative" and not _own_switch(entry):
        return
    elif entry.default_mode == "deterministic":
        # Known for what it does under the mode alone: without it there is nothing to say.
        return
    elif on and code != "DET404":
        message = f"`{found.text}` on CUDA: {part} may differ from run to run also under deterministic mode ({version})"
    else:
        message = f"`{found.text}` on CUDA: {part} may differ from run to run ({version})"
        if past.behaviour == "raises":
            message += "; deterministic mode does not mend it, it raises"
    targets: tuple[str, ...] = (version, target.source) if target is not None else ()
    older = _older(it, entry, past)
    if older:
        targets = (*targets, older)
    reporter.report(
        it,
        code,
        found.place,
        message,
        _remedy(entry, past, on),
        subject=found.api,
        severity=severity,
        confidence=found.sure,
        targets=targets,
        op=entry.id,
    )


def _remedy(entry: OpEntry, past: OpHistory, on: bool) -> str:
    """What to do. Where the mode raises, it is a remedy only in the releases that have another algorithm."""
    remedy = entry.remedy or "turn deterministic mode on, or use another op"
    if past.behaviour == "raises" and not on and MODE_CALL in remedy:
        better = next((h.versions for h in entry.history if h.behaviour == "deterministic_alternative"), "")
        return f"with {entry.library} {better}: {remedy}" if better else "use another op"
    return remedy


def _own_switch(entry: OpEntry) -> bool:
    """Whether an argument of the call is what makes it deterministic, whatever torch's mode."""
    return any(test.arg == "deterministic" for test in entry.when)


def _older(it: Interp, entry: OpEntry, past: OpHistory) -> str:
    """A note when an older release in the project's range behaves differently."""
    if it.targets is None:
        return ""
    older = it.targets.differs(entry.library, past.versions)
    return f"{entry.library} {older}, which the project admits too, behaves differently" if older else ""
