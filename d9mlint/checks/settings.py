"""DET301-DET305, DET309, DET310, DET312: PyTorch's determinism switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Applicability, Fix, Severity
from d9mlint.checks.base import Reporter, argument_node, replace_fix, silent
from d9mlint.interp import values as v
from d9mlint.interp.activity import CUDA, TORCH_TRAIN, TRAINER_SWITCH, infers, may_use_cuda, where
from d9mlint.interp.places import Where
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m
from d9mlint.knowledge.versions import compare, parse, split

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp

BENCHMARK = "torch.backends.cudnn.benchmark"
DETERMINISTIC = "torch.deterministic"
MODE = "torch.use_deterministic_algorithms(True)"
LIGHTNING_TRAINERS = (
    "lightning.Trainer",
    "lightning.pytorch.Trainer",
    "lightning.pytorch.trainer.Trainer",
    "pytorch_lightning.Trainer",
    "lightning.Fabric",
)
A_GPU = "a GPU"
CUBLAS_VALUES = (":4096:8", ":16:8")


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to switches being set."""
    if reporter.on("DET301"):
        _benchmark(hooks, reporter)
    if reporter.on("DET302", "DET305"):
        hooks.ends.append(lambda interp: _missing_mode(interp, reporter))
        hooks.ends.append(lambda interp: _cublas(interp, reporter))
    _disabled(hooks, reporter)
    if reporter.on("DET303"):
        hooks.env.append(lambda interp, name, value, node: _hazard(interp, reporter, name, value, node))
    _deprecated(hooks, reporter)
    _trainers(hooks, reporter)
    if reporter.on("DET310"):
        _autotuning(hooks, reporter)

    @hooks.on_call("torch.use_deterministic_algorithms", "torch.set_deterministic")
    def mode(interp: Interp, call: CallEvent) -> None:
        value = call.args.get("mode", 0) or call.args.get("d", 0) or v.UNKNOWN
        warn = call.args.get("warn_only", 1)
        interp.set_mode(DETERMINISTIC, value, call.node)
        interp.set_mode("torch.warn_only", warn if warn is not None else v.FALSE, call.node)
        if v.truth(value) is not False:
            interp.notes.setdefault(
                "mode-call",
                (Where(interp, call.node, call.api), dict(interp.state.env), dict(interp.state.flags)),
            )

    @hooks.on_call("torch.set_deterministic_debug_mode")
    def debug_mode(interp: Interp, call: CallEvent) -> None:
        value = call.args.get("debug_mode", 0)
        known = value.value if isinstance(value, v.Lit) else None
        on = v.UNKNOWN if known is None else v.Lit(known not in ("default", 0))
        interp.set_mode(DETERMINISTIC, on, call.node)


# ------------------------------------------------------------------------------------------- DET301


def _benchmark(hooks: Hooks, reporter: Reporter) -> None:
    def assigned(interp: Interp, name: str, value: v.Value, node: Any) -> None:
        if interp.device == "cpu" or not _is_true(value):
            reason = (
                "the configuration says that the program runs on the CPU"
                if _is_true(value)
                else "it is not True"
            )
            silent(interp, "DET301", interp.statement, reason)
            return
        place = Where(interp, interp.statement, BENCHMARK)
        option = v.option_of(value) or _own_option(interp)
        interp.notes.setdefault("benchmark", []).append((place, option))
        _report_benchmark(interp, reporter, place, option, _true_fix(interp.statement))

    hooks.attributes.setdefault(BENCHMARK, []).append(assigned)

    @hooks.on_call("torch.backends.cudnn.flags", "torch.backends.cudnn.set_flags")
    def flags(interp: Interp, call: CallEvent) -> None:
        name = "_benchmark" if call.api.endswith("set_flags") else "benchmark"
        value = call.args.get(name, 1)
        if value is not None and interp.device != "cpu" and _is_true(value):
            node = argument_node(call.node, name, 1)
            fix = replace_fix(node, "False", "set `benchmark` to `False`") if _literal_true(node) else None
            option = v.option_of(value) or _own_option(interp)
            _report_benchmark(interp, reporter, Where(interp, call.node, BENCHMARK), option, fix)

    def end(interp: Interp) -> None:
        # Surely switched off again before anything was trained: the program does not run with it.
        setting = interp.state.modes.get("torch.cudnn.benchmark")
        if interp.entry is not None and setting is not None and setting.value is False and not setting.option:
            for place, _ in interp.notes.get("benchmark", []):
                silent(interp, "DET301", place, "`cudnn.benchmark` is set to False again in any case")
                reporter.withdraw("DET301", place.site)
        elif interp.entry is not None and infers(interp):
            # In inference alone, the benchmark is a choice: it is reported without a fix that is made unasked.
            for place, option in interp.notes.get("benchmark", []):
                if reporter.withdraw("DET301", place.site):
                    _report_benchmark(interp, reporter, place, option, None, Severity.WARNING)

    hooks.ends.append(end)


def _is_true(value: v.Value) -> bool:
    return any(isinstance(one, v.Lit) and one.value is True for one in v.alternatives(value)) or (
        isinstance(value, v.Lit) and value.value == 1 and not isinstance(value.value, bool)
    )


def _literal_true(node: Any) -> bool:
    return isinstance(node, m.Const) and node.value is True


def _true_fix(node: Any) -> Fix | None:
    """False instead of True, where an assignment writes it."""
    if isinstance(node, m.Assign) and len(node.targets) == 1 and _literal_true(node.value):
        return replace_fix(node.value, "False", "set `benchmark` to `False`")
    if isinstance(node, m.ExprStmt) and isinstance(node.value, m.Call):
        last = node.value.args[-1] if node.value.args else None
        if _literal_true(last):
            return replace_fix(last, "False", "set `benchmark` to `False`")
    return None


def _own_option(interp: Interp) -> str:
    """The program's option that decides that this runs; whether there is a GPU is none."""
    return next((one for one in reversed(interp.options) if one != A_GPU), "")


def _report_benchmark(
    interp: Interp,
    reporter: Reporter,
    place: Where,
    option: str,
    fix: Fix | None,
    severity: Severity | None = None,
) -> None:
    """Report the benchmark. Where an option of the program decides, the program already has the remedy."""
    by = f" (unless `{option}` says otherwise)" if option else ""
    reporter.report(
        interp,
        "DET301",
        place,
        f"`cudnn.benchmark = True`{by}: autotuning may select different algorithms in each run",
        f"run with another value of `{option}`" if option else "set `torch.backends.cudnn.benchmark = False`",
        subject=BENCHMARK,
        severity=Severity.WARNING if option else severity,
        fix=None if option else fix,
    )


# ---------------------------------------------------------------------------------- DET302 and DET305


def _missing_mode(interp: Interp, reporter: Reporter) -> None:
    place = where(interp, TORCH_TRAIN)
    if interp.entry is None or place is None:
        return
    if not may_use_cuda(interp):
        silent(interp, "DET302", place, "the program is not seen to use CUDA")
        return
    if interp.notes.get("mode-unknown") or interp.notes.get("mode-on"):
        silent(interp, "DET302", place, "the program turns deterministic mode on, or may")
        return
    setting = interp.mode(DETERMINISTIC)
    if setting.value is None or setting.value:
        silent(interp, "DET302", place, "deterministic mode is on at the end of the program, or may be")
        return
    if "mode-call" in interp.notes and not setting.option:
        silent(interp, "DET302", place, "DET303 reports the call that turns deterministic mode off")
        return
    cudnn = interp.state.modes.get("torch.cudnn.deterministic")
    if setting.option:
        message = f"`{place.entry}` trains on CUDA without deterministic algorithms unless `{setting.option}` is given"
    elif cudnn is not None and cudnn.value:
        message = "`cudnn.deterministic` covers only cuDNN, not PyTorch's own CUDA kernels"
    else:
        message = f"`{place.entry}` trains on CUDA without `{MODE}`"
    reporter.report(
        interp,
        "DET302",
        place,
        message,
        f"pass `{setting.option}`"
        if setting.option
        else _mode_help(interp, cudnn is not None and bool(cudnn.value)),
        subject="torch",
        entry_wide=True,
        remedy=("option",) if setting.option else (),
    )


def _mode_help(interp: Interp, cudnn: bool) -> str:
    """How to make the targeted torch deterministic: the switch has had other names, and once none."""
    trainer = str(interp.notes.get(TRAINER_SWITCH) or "")
    if trainer:
        return trainer
    if interp.kb_matches("torch", "<1.7"):
        newer = f"with torch 1.8 or later, call `{MODE}` before the model is built"
        return newer if cudnn else f"set `torch.backends.cudnn.deterministic = True`; {newer}"
    if interp.kb_matches("torch", "<1.8"):
        return "call `torch.set_deterministic(True)` before the model is built"
    return f"call `{MODE}` before the model is built"


def _cublas(interp: Interp, reporter: Reporter) -> None:
    found = interp.notes.get("mode-call")
    if (
        interp.entry is None
        or found is None
        or interp.targets is None
        or not interp.targets.matches("torch", "<2.10")
    ):
        return
    place, _env, _flags = found
    uses = may_use_cuda(interp) or CUDA in interp.state.flags
    if not uses:
        silent(interp, "DET305", place, "the program is not seen to use CUDA")
        return
    now = interp.state.env.get("CUBLAS_WORKSPACE_CONFIG")
    if interp.targets.matches("torch", "<1.7") or (
        place.subject == "torch.use_deterministic_algorithms" and interp.targets.matches("torch", "<1.8")
    ):
        # There is no such mode in this release, so nothing checks the variable.
        return
    if interp.mode("torch.warn_only").value is True and (
        now is None or now.value not in (None, *CUBLAS_VALUES)
    ):
        message = "`CUBLAS_WORKSPACE_CONFIG` is not set: with `warn_only=True` matrix products only warn and may differ"
    elif now is None:
        message = "`CUBLAS_WORKSPACE_CONFIG` is not set: CUDA matrix products raise RuntimeError in deterministic mode"
    elif now.value is not None and now.value not in CUBLAS_VALUES:
        message = f"invalid `CUBLAS_WORKSPACE_CONFIG={now.value}`: matrix products raise RuntimeError in deterministic mode"
    elif ("late-env", "CUBLAS_WORKSPACE_CONFIG") in interp.notes:
        message = "`CUBLAS_WORKSPACE_CONFIG` is set after CUDA was used: cuBLAS may already have allocated its workspaces"
    else:
        silent(interp, "DET305", place, "`CUBLAS_WORKSPACE_CONFIG` is set before CUDA is used")
        return
    target = interp.targets.version("torch")
    reporter.report(
        interp,
        "DET305",
        place,
        f"{message} (torch {target.version})",
        'set os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8" before torch is imported',
        subject="CUBLAS_WORKSPACE_CONFIG",
        targets=(f"torch {target.version}", target.source),
        entry_wide=True,
    )


# ------------------------------------------------------------------------------------------- DET303


def _disabled(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_call("torch.use_deterministic_algorithms")
    def mode(interp: Interp, call: CallEvent) -> None:
        value = call.args.get("mode", 0)
        warn = call.args.get("warn_only", 1)
        off = isinstance(value, v.Lit) and not value.value
        if isinstance(warn, v.Lit) and warn.value is True and not off:
            option = f" (default of `{warn.option}`)" if warn.option else ""
            reporter.report(
                interp,
                "DET303",
                call.node,
                f"`warn_only=True`{option} leaves non-deterministic ops, including attention backward, enabled",
                "remove `warn_only`, and replace the ops that then raise",
                subject=call.api,
            )


def _hazard(interp: Interp, reporter: Reporter, name: str, value: v.Value, node: Any) -> None:
    """A variable is set to a value that the knowledge base knows to make results vary."""
    setting = interp.kb.setting(f"env:{name}")
    if setting is None or not isinstance(value, v.Lit) or str(value.value) not in setting.hazards:
        return
    if interp.targets is not None and not interp.targets.matches(setting.library, setting.versions):
        return
    effect = setting.effect[:1].lower() + setting.effect[1:]
    wanted = setting.value_for_determinism
    reporter.report(
        interp,
        "DET303",
        node,
        f"`{name}={value.value}` allows results that differ between runs: {effect}",
        "do not set it"
        if wanted == "unset"
        else f"set it to {wanted if isinstance(wanted, str) else wanted[0]}",
        subject=name,
        remedy=(wanted if isinstance(wanted, str) else wanted[0],),
    )


# -------------------------------------------------------------------------------------------- DET304

RENAMED = {
    "torch.set_deterministic": "use_deterministic_algorithms",
    "torch.is_deterministic": "are_deterministic_algorithms_enabled",
}


def _missing(interp: Interp, reporter: Reporter, name: str, node: Any, consequence: str) -> None:
    """A call, attribute or variable that the targeted release does not have yet."""
    setting = interp.kb.setting(name)
    if setting is None or not setting.versions or interp.targets is None:
        return
    target = interp.targets.version(setting.library)
    first = next((value for operator, value in split(setting.versions)[1] if operator == ">="), "")
    if not first or not target.version or compare(parse(target.version), parse(first)) >= 0:
        return
    shown = name.removeprefix("env:")
    exists = "is not read by" if shown != name else "does not exist in"
    reporter.report(
        interp,
        "DET304",
        node,
        f"`{shown}` {exists} {setting.library} {target.version}: {consequence}",
        f"use {setting.library} {first} or later",
        subject=shown,
        severity=Severity.WARNING if shown != name else Severity.ERROR,
        targets=(f"{setting.library} {target.version}", target.source),
    )


OLD_SWITCHES = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC")


def _newer(hooks: Hooks, reporter: Reporter) -> None:
    """What the facts say to exist from some release on: calls, attributes and variables."""

    def called(interp: Interp, call: CallEvent) -> None:
        _missing(interp, reporter, call.api, call.node, "the call raises AttributeError")

    def assigned(interp: Interp, name: str, value: v.Value, node: Any) -> None:
        _missing(interp, reporter, name, interp.statement, "setting it has no effect")

    def exported(interp: Interp, name: str, value: v.Value, node: Any) -> None:
        # Switches of older releases of TensorFlow have their own findings; without effect, a hazard is none.
        setting = interp.kb.setting(f"env:{name}")
        if setting is not None and name not in OLD_SWITCHES and not setting.hazards:
            _missing(interp, reporter, f"env:{name}", node, "setting it has no effect")

    for setting in reporter.knowledge.settings():
        for name in setting.names if ">=" in setting.versions else ():
            if setting.kind == "call":
                hooks.on_call(name)(called)
            elif setting.kind == "attribute":
                hooks.attributes.setdefault(name, []).append(assigned)
    hooks.env.append(exported)


def _deprecated(hooks: Hooks, reporter: Reporter) -> None:
    _newer(hooks, reporter)

    @hooks.on_call(*RENAMED)
    def renamed(interp: Interp, call: CallEvent) -> None:
        if interp.targets is None or interp.targets.matches("torch", "<1.8"):
            return
        target = interp.targets.version("torch")
        gone = interp.targets.matches("torch", ">=1.10")
        new = RENAMED[call.api]
        fix = None
        if isinstance(call.node, m.Call) and isinstance(call.node.func, m.Name) and "." in call.node.func.id:
            prefix = call.node.func.id.rpartition(".")[0]
            fix = replace_fix(call.node.func, f"{prefix}.{new}", f"call {new}")
        state = "was removed in torch 1.10" if gone else "is deprecated"
        reporter.report(
            interp,
            "DET304",
            call.node,
            f"`{call_text(call)}` {state} (torch {target.version})",
            f"use `torch.{new}`",
            subject=call.api,
            severity=Severity.ERROR if gone else Severity.WARNING,
            fix=fix,
            targets=(f"torch {target.version}", target.source),
        )


# -------------------------------------------------------------------------------------------- DET312


def _trainers(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_call(*LIGHTNING_TRAINERS)
    def lightning(interp: Interp, call: CallEvent) -> None:
        deterministic = call.args.kw.get("deterministic")
        if deterministic is not None:
            _note_mode(interp, deterministic, call.node)
        elif call.args.dstar:
            interp.notes["mode-unknown"] = True
        benchmark = call.args.kw.get("benchmark")
        if benchmark is not None and _is_true(benchmark):
            node = argument_node(call.node, "benchmark")
            fix = replace_fix(node, "False", "set `benchmark` to `False`") if _literal_true(node) else None
            text = "`benchmark=True`: autotuning may select different algorithms in each run"
            _trainer(interp, reporter, call, "benchmark", text, fix)

    @hooks.on_call("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
    def arguments(interp: Interp, call: CallEvent) -> None:
        full = call.args.kw.get("full_determinism")
        if full is not None:
            _note_mode(interp, full, call.node)

    @hooks.on_call(
        "transformers.enable_full_determinism",
        "transformers.trainer_utils.enable_full_determinism",
        "monai.utils.set_determinism",
    )
    def helpers(interp: Interp, call: CallEvent) -> None:
        if call.api.startswith("transformers"):
            _note_mode(interp, v.TRUE, call.node)


def _note_mode(interp: Interp, value: v.Value, node: Any) -> None:
    known = v.truth(value)
    if known is None:
        interp.notes["mode-unknown"] = True
    elif known:
        interp.notes["mode-on"] = True
    interp.set_mode(DETERMINISTIC, v.UNKNOWN if known is None else v.Lit(known, v.option_of(value)), node)


def _trainer(
    interp: Interp, reporter: Reporter, call: CallEvent, argument: str, text: str, fix: Fix | None = None
) -> None:
    reporter.report(
        interp,
        "DET312",
        call.node,
        text,
        f"set `{argument}=" + ("False`" if argument == "benchmark" else "True`"),
        subject=f"{call.api}({argument})",
        fix=fix,
    )


# -------------------------------------------------------------------------------------------- DET310


def _autotuning(hooks: Hooks, reporter: Reporter) -> None:
    def tuned(interp: Interp, node: Any, what: str, api: str, inductor: bool = True) -> None:
        if interp.device == "cpu":
            return
        place = Where(interp, node, api)
        if inductor:
            interp.notes.setdefault("autotuned", []).append((place, what, interp.state))
        else:
            _report_tuned(interp, reporter, place, what)

    @hooks.on_call("torch.compile")
    def compile_(interp: Interp, call: CallEvent) -> None:
        mode = call.args.kw.get("mode")
        if isinstance(mode, v.Lit) and str(mode.value).startswith("max-autotune"):
            tuned(interp, call.node, f'`torch.compile(mode="{mode.value}")`', call.api)

    def attribute(interp: Interp, name: str, value: v.Value, node: Any) -> None:
        if _is_true(value):
            tuned(interp, interp.statement, f"`{name} = True`", name)

    for name in ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise", "coordinate_descent_tuning"):
        hooks.attributes.setdefault(f"torch._inductor.config.{name}", []).append(attribute)

    @hooks.on_call("triton.autotune")
    def triton(interp: Interp, call: CallEvent) -> None:
        configs = call.args.get("configs", 0)
        if isinstance(configs, v.Items) and not configs.open and len(configs.elts) < 2:
            return
        tuned(interp, call.node, "`triton.autotune`", call.api, inductor=False)

    def end(interp: Interp) -> None:
        switch = interp.state.modes.get("torch.inductor.deterministic")
        mode = interp.mode(DETERMINISTIC)
        env = interp.state.env.get("TORCHINDUCTOR_DETERMINISTIC")
        new = interp.targets is None or interp.targets.matches("torch", ">=2.10")
        if new and (
            (switch is not None and switch.value)
            or (mode.value and interp.entry)
            or (env is not None and env.value == "1")
        ):
            return
        for place, what, _ in interp.notes.get("autotuned", []):
            _report_tuned(interp, reporter, place, what)

    hooks.ends.append(end)


def _report_tuned(interp: Interp, reporter: Reporter, place: Where, what: str) -> None:
    reporter.report(
        interp,
        "DET310",
        place,
        f"{what} selects kernels by timing: another run may select others, which sum in a different order",
        "use one fixed configuration, or Inductor's deterministic mode (torch 2.10 and later)",
        subject=place.subject,
        severity=Severity.WARNING,
    )


__all__ = ["Applicability", "register"]
