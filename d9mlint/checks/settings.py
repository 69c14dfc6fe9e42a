"""DET301-DET305, DET309, DET310, DET312: PyTorch's determinism switches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.checks.activity import CUDA, TORCH_TRAIN, may_use_cuda, where
from d9mlint.checks.base import Reporter, Where, argument_node, replace_fix
from d9mlint.checks.text import call_text
from d9mlint.facts import model as m
from d9mlint.findings import Applicability, Fix, Severity
from d9mlint.program import values as v

if TYPE_CHECKING:
    from d9mlint.program.hooks import CallEvent, Hooks
    from d9mlint.program.interp import Interp

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
CUBLAS_VALUES = (":4096:8", ":16:8")


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to switches being set."""
    if reporter.on("DET301"):
        _benchmark(hooks, reporter)
    if reporter.on("DET302", "DET305"):
        hooks.ends.append(lambda it: _missing_mode(it, reporter))
        hooks.ends.append(lambda it: _cublas(it, reporter))
    _disabled(hooks, reporter)
    _deprecated(hooks, reporter)
    _trainers(hooks, reporter)
    if reporter.on("DET310"):
        _autotuning(hooks, reporter)

    @hooks.on_call("torch.use_deterministic_algorithms", "torch.set_deterministic")
    def mode(it: Interp, call: CallEvent) -> None:
        value = call.args.get("mode", 0) or call.args.get("d", 0) or v.UNKNOWN
        warn = call.args.get("warn_only", 1)
        it.set_mode(DETERMINISTIC, value, call.node)
        it.set_mode("torch.warn_only", warn if warn is not None else v.FALSE, call.node)
        if v.truth(value) is not False:
            it.scratch.setdefault(
                "mode-call", (Where(it, call.node, call.api), dict(it.state.env), dict(it.state.flags))
            )

    @hooks.on_call("torch.set_deterministic_debug_mode")
    def debug_mode(it: Interp, call: CallEvent) -> None:
        value = call.args.get("debug_mode", 0)
        known = value.value if isinstance(value, v.Lit) else None
        on = v.UNKNOWN if known is None else v.Lit(known not in ("default", 0))
        it.set_mode(DETERMINISTIC, on, call.node)


# ------------------------------------------------------------------------------------------- DET301


def _benchmark(hooks: Hooks, reporter: Reporter) -> None:
    def assigned(it: Interp, name: str, value: v.Value, node: Any) -> None:
        if it.device == "cpu" or not _is_true(value):
            return
        it.scratch.setdefault("benchmark", []).append(Where(it, it._node, BENCHMARK))
        _report_benchmark(it, reporter, it._node, value, _true_fix(it._node))

    hooks.attributes.setdefault(BENCHMARK, []).append(assigned)

    @hooks.on_call("torch.backends.cudnn.flags", "torch.backends.cudnn.set_flags")
    def flags(it: Interp, call: CallEvent) -> None:
        name = "_benchmark" if call.api.endswith("set_flags") else "benchmark"
        value = call.args.get(name, 1)
        if value is not None and it.device != "cpu" and _is_true(value):
            node = argument_node(call.node, name, 1)
            fix = replace_fix(node, "False", "set benchmark to False") if _literal_true(node) else None
            _report_benchmark(it, reporter, call.node, value, fix)

    def end(it: Interp) -> None:
        # Surely switched off again before anything was trained: the program does not run with it.
        setting = it.state.modes.get("torch.cudnn.benchmark")
        if it.entry is not None and setting is not None and setting.value is False and not setting.option:
            for place in it.scratch.get("benchmark", []):
                reporter.withdraw("DET301", place.site)

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
        return replace_fix(node.value, "False", "set benchmark to False")
    if isinstance(node, m.ExprStmt) and isinstance(node.value, m.Call):
        last = node.value.args[-1] if node.value.args else None
        if _literal_true(last):
            return replace_fix(last, "False", "set benchmark to False")
    return None


def _report_benchmark(it: Interp, reporter: Reporter, node: Any, value: v.Value, fix: Fix | None) -> None:
    option = v.option_of(value)
    by = f" (default of `{option}`)" if option else ""
    reporter.report(
        it,
        "DET301",
        node,
        f"cudnn.benchmark = True{by}: cuDNN times its algorithms and may choose others in the next run",
        "set `torch.backends.cudnn.benchmark = False`",
        subject=BENCHMARK,
        fix=fix,
    )


# ---------------------------------------------------------------------------------- DET302 and DET305


def _missing_mode(it: Interp, reporter: Reporter) -> None:
    place = where(it, TORCH_TRAIN)
    if it.entry is None or place is None or not may_use_cuda(it):
        return
    if it.scratch.get("mode-unknown") or it.scratch.get("mode-on"):
        return
    setting = it.mode(DETERMINISTIC)
    if setting.value is None or setting.value:
        return
    if "mode-call" in it.scratch and not setting.option:
        return
    cudnn = it.state.modes.get("torch.cudnn.deterministic")
    if setting.option:
        message = f"training on CUDA without deterministic algorithms by default: only `{setting.option}` turns them on"
    elif cudnn is not None and cudnn.value:
        message = (
            "training on CUDA with `cudnn.deterministic` alone: it covers cuDNN, not PyTorch's own kernels"
        )
    else:
        message = f"training on CUDA, and nothing that {place.entry} runs enables deterministic algorithms"
    reporter.report(
        it,
        "DET302",
        place,
        message,
        _mode_help(it, cudnn is not None and bool(cudnn.value)),
        subject="torch",
        entry_wide=True,
    )


def _mode_help(it: Interp, cudnn: bool) -> str:
    """How the targeted torch is told to be deterministic: the switch has had other names, and once none."""
    if it.kb_matches("torch", "<1.7"):
        newer = f"with torch 1.8 or later, call `{MODE}` before the model is built"
        return newer if cudnn else f"set `torch.backends.cudnn.deterministic = True`; {newer}"
    if it.kb_matches("torch", "<1.8"):
        return "call `torch.set_deterministic(True)` before the model is built"
    return f"call `{MODE}` before the model is built"


def _cublas(it: Interp, reporter: Reporter) -> None:
    found = it.scratch.get("mode-call")
    if it.entry is None or found is None or it.targets is None or not it.targets.matches("torch", "<2.10"):
        return
    place, _env, _flags = found
    uses = may_use_cuda(it) or CUDA in it.state.flags
    if not uses:
        return
    now = it.state.env.get("CUBLAS_WORKSPACE_CONFIG")
    if now is None:
        message = (
            "deterministic mode without CUBLAS_WORKSPACE_CONFIG: matrix products on CUDA raise RuntimeError"
        )
    elif now.value is not None and now.value not in CUBLAS_VALUES:
        message = f"CUBLAS_WORKSPACE_CONFIG={now.value} is refused by deterministic mode: matrix products raise RuntimeError"
    elif ("late-env", "CUBLAS_WORKSPACE_CONFIG") in it.scratch:
        message = "CUBLAS_WORKSPACE_CONFIG is set after CUDA was used: cuBLAS may have chosen its workspaces already"
    else:
        return
    target = it.targets.version("torch")
    reporter.report(
        it,
        "DET305",
        place,
        f"{message} (torch {target.version})",
        'set os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8" before torch is imported',
        subject="CUBLAS_WORKSPACE_CONFIG",
        targets=(f"torch {target.version}", target.source),
        entry_wide=True,
    )


# ---------------------------------------------------------------------------------- DET303 and DET309


def _disabled(hooks: Hooks, reporter: Reporter) -> None:
    def attribute(it: Interp, name: str, value: v.Value, node: Any) -> None:
        if isinstance(value, v.Lit) and value.value is False and not value.option:
            reporter.report(
                it,
                "DET303",
                it._node,
                "cudnn.deterministic = False lets cuDNN use nondeterministic algorithms",
                "set it to True, or remove the line",
                subject=name,
            )

    hooks.attributes.setdefault("torch.backends.cudnn.deterministic", []).append(attribute)

    def fill(it: Interp, name: str, value: v.Value, node: Any) -> None:
        if isinstance(value, v.Lit) and value.value is False:
            reporter.report(
                it,
                "DET309",
                it._node,
                "fill_uninitialized_memory = False hides reads of uninitialised memory",
                "leave it on, or make sure that every `torch.empty` is written before it is read",
                subject=name,
            )

    hooks.attributes.setdefault("torch.utils.deterministic.fill_uninitialized_memory", []).append(fill)

    @hooks.on_call("torch.use_deterministic_algorithms")
    def mode(it: Interp, call: CallEvent) -> None:
        value = call.args.get("mode", 0)
        warn = call.args.get("warn_only", 1)
        if isinstance(value, v.Lit) and value.value is False and not value.option:
            _off(it, reporter, call, "deterministic algorithms are switched off")
        elif (
            isinstance(warn, v.Lit)
            and warn.value is True
            and not (isinstance(value, v.Lit) and not value.value)
        ):
            option = f" (default of `{warn.option}`)" if warn.option else ""
            _off(
                it,
                reporter,
                call,
                f"warn_only=True{option}: ops without a deterministic version stay as they are, "
                "and so does the backward pass of attention",
                "remove warn_only, and replace the ops that then raise",
            )

    @hooks.on_call("torch.set_deterministic_debug_mode")
    def debug(it: Interp, call: CallEvent) -> None:
        value = call.args.get("debug_mode", 0)
        if isinstance(value, v.Lit) and value.value in ("default", "warn", 0, 1) and not value.option:
            _off(it, reporter, call, f"debug mode {value.value!r} does not enforce deterministic algorithms")

    @hooks.on_call("tf.config.experimental.disable_op_determinism")
    def disable(it: Interp, call: CallEvent) -> None:
        _off(it, reporter, call, "op determinism is switched off", "remove the call")


def _off(it: Interp, reporter: Reporter, call: CallEvent, message: str, help: str = f"call `{MODE}`") -> None:
    reporter.report(it, "DET303", call.node, message, help, subject=call.api)


# -------------------------------------------------------------------------------------------- DET304

RENAMED = {
    "torch.set_deterministic": "use_deterministic_algorithms",
    "torch.is_deterministic": "are_deterministic_algorithms_enabled",
}


def _deprecated(hooks: Hooks, reporter: Reporter) -> None:
    @hooks.on_call(*RENAMED)
    def renamed(it: Interp, call: CallEvent) -> None:
        if it.targets is None or it.targets.matches("torch", "<1.8"):
            return
        target = it.targets.version("torch")
        gone = it.targets.matches("torch", ">=1.10")
        new = RENAMED[call.api]
        fix = None
        if isinstance(call.node, m.Call) and isinstance(call.node.func, m.Name) and "." in call.node.func.id:
            prefix = call.node.func.id.rpartition(".")[0]
            fix = replace_fix(call.node.func, f"{prefix}.{new}", f"call {new}")
        state = "was removed in torch 1.10" if gone else "is deprecated"
        reporter.report(
            it,
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
    def lightning(it: Interp, call: CallEvent) -> None:
        deterministic = call.args.kw.get("deterministic")
        if deterministic is not None:
            _note_mode(it, deterministic, call.node)
            if isinstance(deterministic, v.Lit) and not deterministic.option:
                if deterministic.value is False:
                    _trainer(
                        it,
                        reporter,
                        call,
                        "deterministic",
                        "deterministic=False switches deterministic algorithms off",
                    )
                elif deterministic.value == "warn":
                    text = 'deterministic="warn" leaves ops without a deterministic version as they are'
                    _trainer(it, reporter, call, "deterministic", text)
        elif call.args.dstar:
            it.scratch["mode-unknown"] = True
        benchmark = call.args.kw.get("benchmark")
        if benchmark is not None and _is_true(benchmark):
            node = argument_node(call.node, "benchmark")
            fix = replace_fix(node, "False", "set benchmark to False") if _literal_true(node) else None
            text = "benchmark=True lets cuDNN choose algorithms by timing"
            _trainer(it, reporter, call, "benchmark", text, fix)

    @hooks.on_call("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
    def arguments(it: Interp, call: CallEvent) -> None:
        full = call.args.kw.get("full_determinism")
        if full is not None:
            _note_mode(it, full, call.node)
            if isinstance(full, v.Lit) and full.value is False and not full.option:
                _trainer(
                    it,
                    reporter,
                    call,
                    "full_determinism",
                    "full_determinism=False leaves deterministic mode off",
                )

    @hooks.on_call(
        "transformers.enable_full_determinism",
        "transformers.trainer_utils.enable_full_determinism",
        "monai.utils.set_determinism",
    )
    def helpers(it: Interp, call: CallEvent) -> None:
        if call.api.startswith("transformers"):
            _note_mode(it, v.TRUE, call.node)


def _note_mode(it: Interp, value: v.Value, node: Any) -> None:
    known = v.truth(value)
    if known is None:
        it.scratch["mode-unknown"] = True
    elif known:
        it.scratch["mode-on"] = True
    it.set_mode(DETERMINISTIC, v.UNKNOWN if known is None else v.Lit(known, v.option_of(value)), node)


def _trainer(
    it: Interp, reporter: Reporter, call: CallEvent, argument: str, text: str, fix: Fix | None = None
) -> None:
    reporter.report(
        it,
        "DET312",
        call.node,
        text,
        f"set `{argument}=" + ("False`" if argument == "benchmark" else "True`"),
        subject=f"{call.api}({argument})",
        fix=fix,
    )


# -------------------------------------------------------------------------------------------- DET310


def _autotuning(hooks: Hooks, reporter: Reporter) -> None:
    def tuned(it: Interp, node: Any, what: str, api: str, inductor: bool = True) -> None:
        if it.device == "cpu":
            return
        place = Where(it, node, api)
        if inductor:
            it.scratch.setdefault("autotuned", []).append((place, what, it.state))
        else:
            _report_tuned(it, reporter, place, what)

    @hooks.on_call("torch.compile")
    def compile_(it: Interp, call: CallEvent) -> None:
        mode = call.args.kw.get("mode")
        if isinstance(mode, v.Lit) and str(mode.value).startswith("max-autotune"):
            tuned(it, call.node, f'torch.compile(mode="{mode.value}")', call.api)

    def attribute(it: Interp, name: str, value: v.Value, node: Any) -> None:
        if _is_true(value):
            tuned(it, it._node, f"{name} = True", name)

    for name in ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise", "coordinate_descent_tuning"):
        hooks.attributes.setdefault(f"torch._inductor.config.{name}", []).append(attribute)

    @hooks.on_call("triton.autotune")
    def triton(it: Interp, call: CallEvent) -> None:
        configs = call.args.get("configs", 0)
        if isinstance(configs, v.Items) and not configs.open and len(configs.elts) < 2:
            return
        tuned(it, call.node, "triton.autotune", call.api, inductor=False)

    def end(it: Interp) -> None:
        switch = it.state.modes.get("torch.inductor.deterministic")
        mode = it.mode(DETERMINISTIC)
        env = it.state.env.get("TORCHINDUCTOR_DETERMINISTIC")
        new = it.targets is None or it.targets.matches("torch", ">=2.10")
        if new and (
            (switch is not None and switch.value)
            or (mode.value and it.entry)
            or (env is not None and env.value == "1")
        ):
            return
        for place, what, _ in it.scratch.get("autotuned", []):
            _report_tuned(it, reporter, place, what)

    hooks.ends.append(end)


def _report_tuned(it: Interp, reporter: Reporter, place: Where, what: str) -> None:
    if it.entry is None and it.frame is not None and reporter._seen_already(it):
        return
    reporter.report(
        it,
        "DET310",
        place,
        f"{what} chooses kernels by timing them: the next run may choose others, which add in another order",
        "use one fixed configuration, or Inductor's deterministic switch (torch 2.10 and later)",
        subject=place.subject,
        severity=Severity.WARNING,
    )


__all__ = ["Applicability", "register"]
