"""DET301-DET305, DET309, DET310, DET312: PyTorch's determinism switches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Fix, Severity
from d9mlint.checks.base import Rule, argument_node, replace_fix
from d9mlint.interp import values as v
from d9mlint.interp.activity import CUDA, TORCH_TRAIN, infers, may_use_cuda, where
from d9mlint.interp.events import AttributeEvent, CallEvent, EndEvent, EnvironmentEvent
from d9mlint.interp.listening import Listening, on, on_attribute, on_call
from d9mlint.interp.memory import marks_path, remembered, remembered_once
from d9mlint.interp.places import Where
from d9mlint.interp.switches import DETERMINISTIC, LIGHTNING_TRAINERS, TF_VARIABLES
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m
from d9mlint.knowledge.versions import compare, parse, split

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

BENCHMARK = "torch.backends.cudnn.benchmark"
MODE = "torch.use_deterministic_algorithms(True)"
A_GPU = "a GPU"
CUBLAS_VALUES = (":4096:8", ":16:8")


# ------------------------------------------------------------------------------------------- DET301


class Benchmark(Rule):
    """DET301: cuDNN's benchmark mode."""

    codes = ("DET301",)
    places = remembered(list[tuple[Where, str]])

    @on_attribute(BENCHMARK)
    def assigned(self, event: AttributeEvent) -> None:
        """The attribute is set."""
        value = event.value
        if self.run.device != "cuda" or not _is_true(value):
            reason = (
                f"the configuration says that the program runs on {self.run.device}"
                if _is_true(value)
                else "it is not True"
            )
            self.silent("DET301", self.run.statement, reason)
            return
        place = Where(self.run, self.run.statement, BENCHMARK)
        option = v.option_of(value) or _own_option(self.run)
        self.places.append((place, option))
        _report_benchmark(self, place, option, _true_fix(self.run.statement))

    @on_call("torch.backends.cudnn.flags", "torch.backends.cudnn.set_flags")
    def flags(self, call: CallEvent) -> None:
        """The same as a function or context."""
        name = "_benchmark" if call.api.endswith("set_flags") else "benchmark"
        value = call.args.get(name, 1)
        if value is not None and self.run.device == "cuda" and _is_true(value):
            node = argument_node(call.node, name, 1)
            fix = replace_fix(node, "False", "set `benchmark` to `False`") if _literal_true(node) else None
            option = v.option_of(value) or _own_option(self.run)
            _report_benchmark(self, Where(self.run, call.node, BENCHMARK), option, fix)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        # Surely switched off again before anything was trained: the program does not run with it.
        setting = self.run.state.modes.get("torch.cudnn.benchmark")
        if (
            self.run.entry is not None
            and setting is not None
            and setting.value is False
            and not setting.option
        ):
            for place, _ in self.places:
                self.silent("DET301", place, "`cudnn.benchmark` is set to False again in any case")
                self.reporter.withdraw("DET301", place.site)
        elif self.run.entry is not None and infers(self.run):
            # In inference alone, the benchmark is a choice: it is reported without a fix that is made unasked.
            for place, option in self.places:
                if self.reporter.withdraw("DET301", place.site):
                    _report_benchmark(self, place, option, None, Severity.WARNING)


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


def _own_option(interp: RunView) -> str:
    """The program's option that decides that this runs; whether there is a GPU is none."""
    return next((one for one in reversed(interp.options) if one != A_GPU), "")


def _report_benchmark(
    rule: Rule, place: Where, option: str, fix: Fix | None, severity: Severity | None = None
) -> None:
    """Report the benchmark. Where an option of the program decides, the program already has the remedy."""
    by = f" (unless `{option}` says otherwise)" if option else ""
    rule.report(
        "DET301",
        place,
        f"`cudnn.benchmark = True`{by}: autotuning may select different algorithms in each run",
        f"run with another value of `{option}`" if option else "set `torch.backends.cudnn.benchmark = False`",
        subject=BENCHMARK,
        severity=Severity.WARNING if option else severity,
        fix=None if option else fix,
    )


# ---------------------------------------------------------------------------------- DET302 and DET305


class DeterministicMode(Rule):
    """DET302: training on CUDA without deterministic algorithms. DET305: the variable that they need."""

    codes = ("DET302", "DET305")
    call = remembered_once(Where)
    late = remembered(bool)
    used = marks_path(bool)

    @on_call("torch.use_deterministic_algorithms", "torch.set_deterministic")
    def mode(self, call: CallEvent) -> None:
        """The mode is set."""
        value = call.args.get("mode", 0) or call.args.get("d", 0) or v.UNKNOWN
        if v.truth(value) is not False and self.call is None:
            self.call = Where(self.run, call.node, call.api)

    @on(CallEvent)
    def cuda(self, call: CallEvent) -> None:
        """CUDA is used: cuBLAS reads its variable then."""
        if call.api.endswith(".cuda"):
            self.used.setdefault("cuda", True)

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        if event.name == "CUBLAS_WORKSPACE_CONFIG" and "cuda" in self.used:
            self.late = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        self._missing_mode()
        self._cublas()

    def _missing_mode(self) -> None:
        place = where(self.run, TORCH_TRAIN)
        if self.run.entry is None or place is None:
            return
        if not may_use_cuda(self.run):
            self.silent("DET302", place, "the program is not seen to use CUDA")
            return
        if self.run.switches.torch_unknown or self.run.switches.torch_on:
            self.silent("DET302", place, "the program turns deterministic mode on, or may")
            return
        setting = self.run.mode(DETERMINISTIC)
        if setting.value is None or setting.value:
            self.silent("DET302", place, "deterministic mode is on at the end of the program, or may be")
            return
        if self.call is not None and not setting.option:
            self.silent("DET302", place, "DET303 reports the call that turns deterministic mode off")
            return
        cudnn = self.run.state.modes.get("torch.cudnn.deterministic")
        if setting.option:
            message = f"`{place.entry}` trains on CUDA without deterministic algorithms unless `{setting.option}` is given"
        elif cudnn is not None and cudnn.value:
            message = "`cudnn.deterministic` covers only cuDNN, not PyTorch's own CUDA kernels"
        else:
            message = f"`{place.entry}` trains on CUDA without `{MODE}`"
        self.report(
            "DET302",
            place,
            message,
            f"pass `{setting.option}`"
            if setting.option
            else _mode_help(self.run, cudnn is not None and bool(cudnn.value)),
            subject="torch",
            entry_wide=True,
            remedy=("option",) if setting.option else (),
        )

    def _cublas(self) -> None:
        place = self.call
        if (
            self.run.entry is None
            or place is None
            or self.run.targets is None
            or not self.run.targets.matches("torch", "<2.10")
        ):
            return
        uses = may_use_cuda(self.run) or CUDA in self.run.marks
        if not uses:
            self.silent("DET305", place, "the program is not seen to use CUDA")
            return
        now = self.run.state.env.get("CUBLAS_WORKSPACE_CONFIG")
        if self.run.targets.matches("torch", "<1.7") or (
            place.subject == "torch.use_deterministic_algorithms"
            and self.run.targets.matches("torch", "<1.8")
        ):
            # There is no such mode in this release, so nothing checks the variable.
            return
        if self.run.mode("torch.warn_only").value is True and (
            now is None or now.value not in (None, *CUBLAS_VALUES)
        ):
            message = "`CUBLAS_WORKSPACE_CONFIG` is not set: with `warn_only=True` matrix products only warn and may differ"
        elif now is None:
            message = "`CUBLAS_WORKSPACE_CONFIG` is not set: CUDA matrix products raise RuntimeError in deterministic mode"
        elif now.value is not None and now.value not in CUBLAS_VALUES:
            message = (
                f"invalid `CUBLAS_WORKSPACE_CONFIG={now.value}`: "
                "matrix products raise RuntimeError in deterministic mode"
            )
        elif self.late:
            message = (
                "`CUBLAS_WORKSPACE_CONFIG` is set after CUDA was used: "
                "cuBLAS may already have allocated its workspaces"
            )
        else:
            self.silent("DET305", place, "`CUBLAS_WORKSPACE_CONFIG` is set before CUDA is used")
            return
        target = self.run.targets.version("torch")
        self.report(
            "DET305",
            place,
            f"{message} (torch {target.version})",
            'set os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8" before torch is imported',
            subject="CUBLAS_WORKSPACE_CONFIG",
            targets=(f"torch {target.version}", target.source),
            entry_wide=True,
        )


def _mode_help(interp: RunView, cudnn: bool) -> str:
    """How to make the targeted torch deterministic: the switch has had other names, and once none."""
    trainer = interp.trainer_switch
    if trainer:
        return trainer
    if interp.kb_matches("torch", "<1.7"):
        newer = f"with torch 1.8 or later, call `{MODE}` before the model is built"
        return newer if cudnn else f"set `torch.backends.cudnn.deterministic = True`; {newer}"
    if interp.kb_matches("torch", "<1.8"):
        return "call `torch.set_deterministic(True)` before the model is built"
    return f"call `{MODE}` before the model is built"


# ---------------------------------------------------------------------------------- DET303 and DET309


class Disabled(Rule):
    """DET303: switches that are turned off, or to a value that makes results vary."""

    codes = ("DET303",)

    @on_call("torch.use_deterministic_algorithms")
    def mode(self, call: CallEvent) -> None:
        """The mode is set."""
        value = call.args.get("mode", 0)
        warn = call.args.get("warn_only", 1)
        off = isinstance(value, v.Lit) and not value.value
        if isinstance(warn, v.Lit) and warn.value is True and not off:
            option = f" (default of `{warn.option}`)" if warn.option else ""
            self.report(
                "DET303",
                call.node,
                f"`warn_only=True`{option} leaves non-deterministic ops, including attention backward, enabled",
                "remove `warn_only`, and replace the ops that then raise",
                subject=call.api,
            )

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set to a value that the knowledge base knows to make results vary."""
        name, value, node = event
        setting = self.run.kb.setting(f"env:{name}")
        if setting is None or not isinstance(value, v.Lit) or str(value.value) not in setting.hazards:
            return
        if self.run.targets is not None and not self.run.targets.matches(setting.library, setting.versions):
            return
        effect = setting.effect[:1].lower() + setting.effect[1:]
        wanted = setting.value_for_determinism
        self.report(
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


def _missing(rule: Rule, name: str, node: Any, consequence: str) -> None:
    """A call, attribute or variable that the targeted release does not have yet."""
    setting = rule.run.kb.setting(name)
    if setting is None or not setting.versions or rule.run.targets is None:
        return
    target = rule.run.targets.version(setting.library)
    first = next((value for operator, value in split(setting.versions)[1] if operator == ">="), "")
    if not first or not target.version or compare(parse(target.version), parse(first)) >= 0:
        return
    shown = name.removeprefix("env:")
    exists = "is not read by" if shown != name else "does not exist in"
    rule.report(
        "DET304",
        node,
        f"`{shown}` {exists} {setting.library} {target.version}: {consequence}",
        f"use {setting.library} {first} or later",
        subject=shown,
        severity=Severity.WARNING if shown != name else Severity.ERROR,
        targets=(f"{setting.library} {target.version}", target.source),
    )


class Newer(Rule):
    """DET304: what the facts say to exist from some release on: calls, attributes and variables."""

    codes = ("DET304",)

    def also(self) -> Iterable[tuple[Listening, Callable[[Any], None]]]:
        found: list[tuple[Listening, Callable[[Any], None]]] = []
        for setting in self.run.kb.settings():
            for name in setting.names if ">=" in setting.versions else ():
                if setting.kind == "call":
                    found.append((Listening(CallEvent, (name,)), self.called))
                elif setting.kind == "attribute":
                    found.append((Listening(AttributeEvent, (name,)), self.assigned))
        return found

    def called(self, call: CallEvent) -> None:
        """A call."""
        _missing(self, call.api, call.node, "the call raises AttributeError")

    def assigned(self, event: AttributeEvent) -> None:
        """An attribute is set."""
        _missing(self, event.name, self.run.statement, "setting it has no effect")

    @on(EnvironmentEvent)
    def exported(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        # Switches of older releases of TensorFlow have their own findings; without effect, a hazard is none.
        setting = self.run.kb.setting(f"env:{event.name}")
        if setting is not None and event.name not in TF_VARIABLES and not setting.hazards:
            _missing(self, f"env:{event.name}", event.node, "setting it has no effect")


class Deprecated(Rule):
    """DET304: switches by names that they no longer have."""

    codes = ("DET304",)

    @on_call(*RENAMED)
    def renamed(self, call: CallEvent) -> None:
        """A switch by its former name."""
        if self.run.targets is None or self.run.targets.matches("torch", "<1.8"):
            return
        target = self.run.targets.version("torch")
        gone = self.run.targets.matches("torch", ">=1.10")
        new = RENAMED[call.api]
        fix = None
        if isinstance(call.node, m.Call) and isinstance(call.node.func, m.Name) and "." in call.node.func.id:
            prefix = call.node.func.id.rpartition(".")[0]
            fix = replace_fix(call.node.func, f"{prefix}.{new}", f"call {new}")
        state = "was removed in torch 1.10" if gone else "is deprecated"
        self.report(
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


class Trainers(Rule):
    """DET312: options of trainers that allow results to vary."""

    codes = ("DET312",)

    @on_call(*LIGHTNING_TRAINERS)
    def lightning(self, call: CallEvent) -> None:
        """A trainer is made."""
        benchmark = call.args.kw.get("benchmark")
        if benchmark is not None and _is_true(benchmark):
            node = argument_node(call.node, "benchmark")
            fix = replace_fix(node, "False", "set `benchmark` to `False`") if _literal_true(node) else None
            text = "`benchmark=True`: autotuning may select different algorithms in each run"
            _trainer(self, call, "benchmark", text, fix)


def _trainer(rule: Rule, call: CallEvent, argument: str, text: str, fix: Fix | None = None) -> None:
    rule.report(
        "DET312",
        call.node,
        text,
        f"set `{argument}=" + ("False`" if argument == "benchmark" else "True`"),
        subject=f"{call.api}({argument})",
        fix=fix,
    )


# -------------------------------------------------------------------------------------------- DET310


_TUNED = [
    f"torch._inductor.config.{name}"
    for name in ("max_autotune", "max_autotune_gemm", "max_autotune_pointwise", "coordinate_descent_tuning")
]


class Autotuning(Rule):
    """DET310: kernels that are selected by timing."""

    codes = ("DET310",)
    places = remembered(list[tuple[Where, str]])

    def tuned(self, node: Any, what: str, api: str, inductor: bool = True) -> None:
        """Something is selected by timing."""
        if self.run.device != "cuda":
            return
        place = Where(self.run, node, api)
        if inductor:
            self.places.append((place, what))
        else:
            _report_tuned(self, place, what)

    @on_call("torch.compile")
    def compile_(self, call: CallEvent) -> None:
        """A model is compiled."""
        mode = call.args.kw.get("mode")
        if isinstance(mode, v.Lit) and str(mode.value).startswith("max-autotune"):
            self.tuned(call.node, f'`torch.compile(mode="{mode.value}")`', call.api)

    @on_attribute(*_TUNED)
    def attribute(self, event: AttributeEvent) -> None:
        """An attribute is set."""
        if _is_true(event.value):
            self.tuned(self.run.statement, f"`{event.name} = True`", event.name)

    @on_call("triton.autotune")
    def triton(self, call: CallEvent) -> None:
        """A kernel is tuned."""
        configs = call.args.get("configs", 0)
        if isinstance(configs, v.Items) and not configs.open and len(configs.elts) < 2:
            return
        self.tuned(call.node, "`triton.autotune`", call.api, inductor=False)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        switch = self.run.state.modes.get("torch.inductor.deterministic")
        mode = self.run.mode(DETERMINISTIC)
        env = self.run.state.env.get("TORCHINDUCTOR_DETERMINISTIC")
        new = self.run.targets is None or self.run.targets.matches("torch", ">=2.10")
        if new and (
            (switch is not None and switch.value)
            or (mode.value and self.run.entry)
            or (env is not None and env.value == "1")
        ):
            return
        for place, what in self.places:
            _report_tuned(self, place, what)


def _report_tuned(rule: Rule, place: Where, what: str) -> None:
    rule.report(
        "DET310",
        place,
        f"{what} selects kernels by timing: another run may select others, which sum in a different order",
        "use one fixed configuration, or Inductor's deterministic mode (torch 2.10 and later)",
        subject=place.subject,
        severity=Severity.WARNING,
    )
