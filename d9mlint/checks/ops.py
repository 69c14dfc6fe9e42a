"""DET401, DET402 and DET403: ops without run-to-run guarantee, judged by the target version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.checks.activity import TF_TRAIN, TORCH_TRAIN, may_use_cuda, where
from d9mlint.checks.base import Reporter, Where
from d9mlint.checks.text import call_text
from d9mlint.findings import Confidence, Severity
from d9mlint.program import values as v
from d9mlint.program.rng import all_hold, any_holds

if TYPE_CHECKING:
    from d9mlint.knowledge.model import OpEntry, OpHistory
    from d9mlint.program.hooks import CallEvent, Hooks
    from d9mlint.program.interp import Interp

NO_GRADIENT = frozenset({"torch.no_grad", "torch.inference_mode", "torch.autograd.no_grad", "torch.set_grad_enabled"})
# Ops that whole-program rules speak about already: convolutions (DET301, DET302), matrix products (DET305).
TOLD_ELSEWHERE = frozenset({"torch.conv", "torch.conv_transpose", "torch.cublas_matmul", "torch.bmm_sparse"})


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to all calls of ops that the knowledge base knows."""
    if not reporter.on("DET401", "DET402", "DET403"):
        return

    def any_call(it: Interp, call: CallEvent) -> None:
        name = call.api.rpartition(".")[2]
        entries = it.kb.ops(call.api)
        likely = False
        if not entries and call.owner is not None and call.api.startswith("?.") and name.endswith("_"):
            entries = it.kb.op_methods(name)
            likely = True
        for entry in entries:
            if entry.id not in TOLD_ELSEWHERE and entry.rule in ("DET401", "DET402", "DET403", ""):
                _candidate(it, call, entry, likely)

    hooks.any_call.append(any_call)
    hooks.ends.append(lambda it: _end(it, reporter))


def history(it: Interp, entry: OpEntry) -> OpHistory | None:
    """What the op does in the target version."""
    if it.targets is None:
        return None
    for item in entry.history:
        if it.targets.matches(entry.library, item.versions):
            return item
    return None


def _candidate(it: Interp, call: CallEvent, entry: OpEntry, likely: bool) -> None:
    if entry.device not in ("cuda", "both") or it.device == "cpu":
        return
    answer = all_hold(call.args, entry.when)
    if answer is False or any_holds(call.args, entry.unless) is True:
        return
    if entry.passes == "backward" and any(name in NO_GRADIENT for name in it.contexts):
        return
    past = history(it, entry)
    if past is None or past.behaviour == "deterministic":
        return
    sure = Confidence.HIGH
    if not entry.static or entry.confidence == "low" or not entry.practical:
        sure = Confidence.LOW
    elif likely or answer is None or entry.confidence == "medium":
        sure = Confidence.MEDIUM
    place = Where(it, call.node, call.api)
    it.scratch.setdefault("ops", []).append((place, call_text(call), entry, past, sure, call.api))


def _end(it: Interp, reporter: Reporter) -> None:
    """Whether the mode is on, and whether the program trains on a GPU, is known at the end of the run."""
    mode = it.mode("torch.deterministic")
    for place, text, entry, past, sure, api in it.scratch.get("ops", []):
        is_tf = entry.library in ("tensorflow", "keras")
        training = where(it, TF_TRAIN if is_tf else TORCH_TRAIN)
        if it.entry is None:
            continue
        if entry.passes == "backward" and training is None:
            continue
        if not is_tf and not may_use_cuda(it):
            continue
        if "no-gpu" in {k[1] for k in it.scratch if isinstance(k, tuple) and k[0] == "where"}:
            continue
        on = ("tf-on" in it.scratch or bool(it.scratch.get("tf-switch"))) if is_tf else bool(mode.value or it.scratch.get("mode-on"))
        unknown = not is_tf and (mode.value is None or bool(it.scratch.get("mode-unknown")))
        if unknown:
            continue
        target = it.targets.version(entry.library) if it.targets is not None else None
        version = f"{entry.library} {target.version}" if target is not None else entry.library
        code = "DET403" if is_tf else "DET401"
        if on:
            if past.behaviour != "raises":
                continue
            code = "DET403" if is_tf else "DET402"
            message = f"`{text}` raises under deterministic mode on CUDA ({version})"
            severity = Severity.ERROR
        else:
            part = {"forward": "its result", "backward": "its gradient", "both": "its result and gradient"}[entry.passes]
            message = f"`{text}` on CUDA: {part} may differ from run to run ({version})"
            if past.behaviour == "raises":
                message += "; deterministic mode does not mend it, it raises"
            severity = Severity.WARNING
        reporter.report(
            it,
            code,
            place,
            message,
            entry.remedy or "turn deterministic mode on, or use another op",
            subject=api,
            severity=severity,
            confidence=sure,
            targets=(version, target.source) if target is not None else (),
        )


__all__ = ["history", "register", "v"]
