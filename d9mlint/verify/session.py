"""A session of measurements: controls and recipes, run one after the other, put together as evidence."""

from __future__ import annotations

import contextlib
import datetime
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import msgspec

from d9mlint import __version__
from d9mlint.evidence.model import (
    DIFFERS,
    EQUAL,
    NOT_RUN,
    Control,
    Evidence,
    Machine,
    Measurement,
    Output,
    Setting,
)
from d9mlint.verify import answers
from d9mlint.verify.answers import Case
from d9mlint.verify.launcher import START, CannotStart, End, Server
from d9mlint.verify.recipes import Recipe
from d9mlint.verify.scope import MOST
from d9mlint.verify.settings import Probe
from d9mlint.verify.settings_session import not_run, run_all, run_probe
from d9mlint.verify.workspace import workspace

RUNS, THOROUGH_RUNS = 5, 30
SCALES, THOROUGH_SCALES = (0.0, 0.5, 1.0), (0.0, 0.25, 0.5, 0.75, 1.0)
SETTING_RUNS = 3
"""Runs of a setting without and with the remedy, where the usual number is not changed."""
NO_GPU = "note: No GPU found; measured on CPU. These results do not apply to GPUs."
CONTROL_TRIES = 4
"""A race need not strike while a machine is busy: its control is asked again, up to this bound."""
MODE_ENVIRONMENT = {"CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
"""What deterministic mode asks for beside its switch, before the device is first used."""
CAUSE_SECONDS = 20.0
"""Seconds after which no further batch of runs is started to determine a cause, at most."""
AGAIN = 4
"""How often plain runs are repeated where runs under deterministic mode differed and they did not."""
OP_DB = "op_db:"
CALL_SECONDS, CALL_MEMORY = 30.0, 1 << 30
"""What a recipe with the arguments of a call may take: seconds for its runs in one process, and again for those in a process
each, and bytes of the device."""
SMALLER = (MOST, MOST >> 4, MOST >> 8)
"""Bounds of the elements of its tensors, of which the next is tried where it takes more."""


Go = Callable[[Recipe, list[Case], str], dict[Case, dict[str, Any]]]
"""Runs cases of a recipe in a mode."""


class Options(NamedTuple):
    """How to measure. ``device``: ``auto`` (a GPU where there is one), ``cpu``, ``cuda`` or ``cuda:N``;
    ``timeout``: seconds that an op may take in one process."""

    device: str = "auto"
    runs: int = RUNS
    scales: tuple[float, ...] = SCALES
    seed: int = 0
    timeout: float = 120.0
    require_device: bool = False


class NoDevice(Exception):
    """The device that is required is not there."""


class Interrupted(Exception):
    """Ctrl-C, or a signal to end, after some recipes were run. Its argument is the evidence until then."""


def measure(
    recipes: Sequence[Recipe],
    controls: Iterable[Recipe],
    options: Options,
    progress: Callable[[str], None],
    probes: Sequence[Probe] = (),
) -> Evidence:
    """Run recipes after the controls of their libraries, then probes of settings.

    Raises Interrupted, and NoDevice where a device is required and no library sees it; a library that does not is
    not run.
    """
    machines: list[Machine] = []
    judged: list[Control] = []
    rows: dict[str, list[Measurement]] = {}
    settings: list[Setting] = []
    interrupted = False
    try:
        _run_all(recipes, list(controls), probes, options, progress, machines, judged, rows, settings)
    except KeyboardInterrupt:
        if not rows and not settings:
            raise
        interrupted = True
    ran = {setting.probe for setting in settings}
    settings += [not_run(probe, "interrupted before it was done") for probe in probes if probe.id not in ran]
    left = [recipe for recipe in recipes if recipe.id not in rows]
    rows |= {recipe.id: _all_not_run(recipe, "interrupted before it was done") for recipe in left}
    evidence = Evidence(
        tool=f"d9mlint {__version__}",
        created=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        runs=options.runs,
        seed=options.seed,
        timeout=options.timeout,
        machines=tuple(machines),
        controls=tuple(judged),
        measurements=tuple(row for recipe in recipes for row in rows[recipe.id]),
        settings=tuple(settings),
    )
    if interrupted:
        raise Interrupted(evidence)
    return evidence


def _run_all(
    recipes: Sequence[Recipe],
    controls: Sequence[Recipe],
    probes: Sequence[Probe],
    options: Options,
    progress: Callable[[str], None],
    machines: list[Machine],
    judged: list[Control],
    rows: dict[str, list[Measurement]],
    settings: list[Setting],
) -> None:
    """Fill ``machines``, ``judged`` (the controls), ``rows`` (by recipe) and ``settings``. Raises NoDevice."""
    runners: dict[str, _Runner] = {}
    missing: list[str] = []
    with contextlib.ExitStack() as stack:
        directory = stack.enter_context(workspace())
        # All of them first: what is missing is reported before anything is measured.
        libraries = [*(recipe.library for recipe in recipes), *(probe.library for probe in probes)]
        for library in dict.fromkeys(libraries):
            progress(f"starting {library}")
            server = stack.enter_context(Server(library, directory))
            try:
                machine, device = _machine(server, options)
            except (CannotStart, NoDevice) as error:
                own = [recipe for recipe in recipes if recipe.library == library]
                rows |= {recipe.id: _all_not_run(recipe, str(error)) for recipe in own}
                settings += [not_run(probe, str(error)) for probe in probes if probe.library == library]
                missing += [str(error)] if isinstance(error, NoDevice) else []
                continue
            machines.append(machine)
            runners[library] = _Runner(server, directory, options, device, machine)
        if missing and not machines:
            raise NoDevice("; ".join(missing))
        if machines and all(m.kind == "cpu" for m in machines) and options.device != "cpu":
            progress(NO_GPU)
        for machine, (library, runner) in zip(machines, runners.items(), strict=True):
            measured = any(recipe.library == library for recipe in recipes)
            for control in controls:
                if measured and control.library == library and machine.kind in control.control_on:
                    progress(f"running the control {control.id} on {machine.name}")
                    judged.append(_control(runner, control))
            for recipe in recipes:
                if recipe.library == library:
                    progress(f"running {recipe.id} on {machine.name} ({len(rows) + 1} of {len(recipes)})")
                    rows[recipe.id] = runner.run(recipe)
            run_all(probes, library, runner.probe, progress, settings)


def _machine(server: Server, options: Options) -> tuple[Machine, str]:
    """The machine that a library sees, and the device to run on. Raises CannotStart and NoDevice."""
    wanted = options.device
    found = _describe(server, wanted)
    if "unavailable" in found:
        if options.require_device:
            raise NoDevice(found["unavailable"])
        found = _describe(server, "cpu")
    device = found.pop("device")
    machine = msgspec.convert(found, Machine)
    if options.require_device and machine.kind != "cuda" and wanted != "cpu":
        raise NoDevice(f"{machine.library} sees no GPU here")
    return machine, device


def _describe(server: Server, device: str) -> dict[str, Any]:
    end = server.run({"mode": "describe", "device": device}, START)
    if end.trouble or not end.lines:
        raise CannotStart(f"the device cannot be queried: {end.trouble or 'no answer'}")
    found: dict[str, Any] = end.lines[-1]["machine"]
    return found


def _control(runner: _Runner, recipe: Recipe) -> Control:
    """Run a control at its full size, again where a race was not seen at once."""
    tries = CONTROL_TRIES if recipe.control == "race" else 1
    wanted = EQUAL if recipe.control == "equal" else DIFFERS
    row = runner.single(recipe)
    while tries > 1 and row.outcome != wanted:
        tries -= 1
        row = runner.single(recipe)
    return Control(
        recipe=recipe.id,
        library=recipe.library,
        expected=recipe.control,
        outcome=row.outcome,
        detail=row.reason or f"{row.distinct} of {row.runs} distinct",
    )


class _Runner:
    """Runs recipes of one library on one device."""

    def __init__(
        self, server: Server, directory: str, options: Options, device: str, machine: Machine
    ) -> None:
        self._server = server
        self._directory = directory
        self._options = options
        self._device = device
        self._machine = machine
        self._kind = machine.kind
        self._count = 0
        self._until = 0.0

    def single(self, recipe: Recipe) -> Measurement:
        """A recipe at its first dtype and full size, without deterministic mode."""
        case = Case(recipe.dtypes[0], 1.0)
        found = self._same_process(recipe, [case], "")
        return self._measurement(recipe, case, found[case], None, "same")

    def run(self, recipe: Recipe) -> list[Measurement]:
        """All that is measured of a recipe: every dtype and size, and deterministic mode at the size that
        tells most."""
        if "ranks" in recipe.needs:
            reason = "needs several ranks: torchrun --nproc-per-node N -m d9mlint.verify --collectives"
            return _all_not_run(recipe, reason)
        if "cuda" in recipe.needs and self._kind != "cuda":
            return _all_not_run(recipe, "needs a GPU")
        if not recipe.given.shapes:
            return self._all(recipe)
        largest = max(map(math.prod, recipe.given.shapes.values()))
        rows = []
        for most in (most for most in SMALLER if most == MOST or most < largest):
            given = msgspec.structs.replace(recipe.given, most=most, scaled=largest > most)
            rows = self._all(msgspec.structs.replace(recipe, given=given))
            if any(row.outcome != NOT_RUN or not row.reason.startswith(answers.TOO_MUCH) for row in rows):
                break
        return rows

    def _all(self, recipe: Recipe) -> list[Measurement]:
        rows: list[Measurement] = []
        if recipe.process != "fresh":
            rows += self._with_mode(recipe, "same", self._options.scales)
        if recipe.process != "same":
            rows += self._with_mode(recipe, "fresh", (1.0,))
        return rows

    def probe(self, probe: Probe) -> Setting:
        """A probe of a setting, in fresh processes."""
        runs = min(self._options.runs, SETTING_RUNS) if self._options.runs == RUNS else self._options.runs
        return run_probe(self._server, probe, self._device, self._machine, runs, self._options.timeout)

    def _with_mode(self, recipe: Recipe, process: str, scales: Sequence[float]) -> list[Measurement]:
        self._until = time.monotonic() + CALL_SECONDS
        weak = recipe.id.startswith(OP_DB)
        # The shapes of a call are what they are.
        sizes = (1.0,) if weak or recipe.given.shapes else scales
        cases = [Case(dtype, scale) for dtype in recipe.dtypes for scale in sizes]
        go = self._same_process if process == "same" else self._fresh_processes
        plain = go(recipe, cases, "")
        telling = [case for dtype in recipe.dtypes if (case := answers.telling(plain, dtype)) is not None]
        mode = go(recipe, telling, "deterministic") if telling else {}
        for case in telling:
            if _hidden(plain[case], mode.get(case)):
                plain[case] = self._until_seen(recipe, case, plain[case], go)
        return [self._measurement(recipe, case, plain[case], mode.get(case), process) for case in cases]

    def _until_seen(self, recipe: Recipe, case: Case, known: dict[str, Any], go: Go) -> dict[str, Any]:
        """Plain runs again, where those under deterministic mode differed and the plain ones did not: the
        difference is there, so that the first runs were equal by chance."""
        for _ in range(AGAIN):
            result = go(recipe, [case], "")[case]
            if not _agree(result):
                return result
        return known

    def _same_process(self, recipe: Recipe, cases: list[Case], mode: str) -> dict[Case, dict[str, Any]]:
        """All runs of a case in one process. A crash costs its case and the larger ones of its dtype."""
        found: dict[Case, dict[str, Any]] = {}
        left = list(cases)
        while left:
            end = self._job(recipe, left, mode, self._runs(recipe))
            at = answers.take(end, left, found)
            if at is None:
                break
            trouble = answers.early(end, at in found)
            found.setdefault(at, {"trouble": trouble})
            for case in left:
                if case.dtype == at.dtype and case not in found:
                    found[case] = {"trouble": f"a smaller size was not survived: {trouble}"}
            left = [case for case in left if case not in found]
        return found

    def _fresh_processes(self, recipe: Recipe, cases: list[Case], mode: str) -> dict[Case, dict[str, Any]]:
        """One run of each case in each of several processes; digests are counted over all of them."""
        self._count += 1
        reference = os.path.join(self._directory, f"reference-{self._count}")
        found: dict[Case, dict[str, Any]] = {}
        failed: dict[Case, dict[str, Any]] = {}
        runs = self._runs(recipe)
        for number in range(runs):
            environment = {}
            if "compiler-cache" in recipe.needs:
                cache = os.path.join(self._directory, f"cache-{self._count}-{number}")
                environment = {"TORCHINDUCTOR_CACHE_DIR": cache, "TRITON_CACHE_DIR": f"{cache}/triton"}
            one: dict[Case, dict[str, Any]] = {}
            end = self._job(recipe, cases, mode, 1, reference, environment)
            at = answers.take(end, cases, one)
            trouble = answers.early(end, at in one)
            if at is not None:
                one.setdefault(at, {"trouble": trouble})
            for case in cases:
                result = one.get(case, {"trouble": f"a case before it was not survived: {trouble}"})
                if "outputs" not in result:
                    failed[case] = result
                known = found.get(case)
                found[case] = result if known is None else answers.joined(known, result)
            if all("outputs" not in result for result in found.values()):
                break
        # One result has nothing to be compared with.
        return {case: r if r.get("processes", 1) > 1 else failed.get(case, r) for case, r in found.items()}

    def _job(
        self,
        recipe: Recipe,
        cases: list[Case],
        mode: str,
        runs: int,
        reference: str = "",
        environment: dict[str, str] | None = None,
    ) -> End:
        name = recipe.id.removeprefix(OP_DB)
        data = {"op_db": name} if recipe.id.startswith(OP_DB) else msgspec.to_builtins(recipe)
        job = {
            "recipe": data,
            "device": self._device,
            "mode": mode,
            "cases": [(number, case._asdict()) for number, case in enumerate(cases)],
            "runs": runs,
            "seed": self._options.seed,
            "cause_seconds": min(CAUSE_SECONDS, self._options.timeout / 8),
            "reference": reference,
            "environment": {**(environment or {}), **(MODE_ENVIRONMENT if mode else {})},
        }
        if not recipe.given:
            return self._server.run(job, self._options.timeout)
        left = max(1.0, self._until - time.monotonic())
        return self._server.run({**job, "memory": CALL_MEMORY}, min(left, self._options.timeout))

    def _runs(self, recipe: Recipe) -> int:
        return max(recipe.runs, self._options.runs)

    def _measurement(
        self, recipe: Recipe, case: Case, plain: dict[str, Any], mode: dict[str, Any] | None, process: str
    ) -> Measurement:
        """A case as it is kept."""
        runs = self._runs(recipe)
        row = msgspec.structs.replace(
            _not_run(recipe, case.dtype, answers.trouble(plain)),
            scale=case.scale,
            process=process,
            expected=getattr(recipe.expect, self._kind),
        )
        if "outputs" not in plain:
            return row
        outputs = tuple(
            msgspec.convert({k: v for k, v in o.items() if k != "digests"}, Output) for o in plain["outputs"]
        )
        differs = any(o.distinct > 1 for o in outputs)
        if not differs and not plain["on_device"] and not recipe.control:
            return msgspec.structs.replace(row, reason=f"{recipe.library} ran it on the CPU")
        judged = answers.deterministic_mode(plain, mode, process) if mode is not None else None
        differs = differs or (judged is not None and judged.distinct > 1)
        return msgspec.structs.replace(
            row,
            outcome=DIFFERS if differs else EQUAL,
            sizes={name: tuple(shape) for name, shape in plain["sizes"].items()},
            runs=plain.get("processes", runs),
            outputs=outputs,
            cause=answers.cause(plain, mode) if differs else "",
            seconds=plain["seconds"],
            addends=plain.get("addends"),
            mode=judged,
        )


def _agree(found: dict[str, Any]) -> bool:
    """Whether a case ran, and all of its runs gave the same."""
    return "outputs" in found and all(o["distinct"] == 1 for o in found["outputs"])


def _hidden(plain: dict[str, Any], mode: dict[str, Any] | None) -> bool:
    """Whether a difference was seen under deterministic mode and not without it."""
    return _agree(plain) and mode is not None and "outputs" in mode and not _agree(mode)


def _not_run(recipe: Recipe, dtype: str, reason: str) -> Measurement:
    """What is known of a recipe before it has given a result."""
    return Measurement(
        recipe=recipe.id,
        api=recipe.api,
        library=recipe.library,
        phase=recipe.phase,
        dtype=dtype,
        outcome=NOT_RUN,
        reason=reason,
        op_ids=recipe.ops,
        settings=recipe.settings,
        exact=recipe.exact,
        form=recipe.form,
        given=recipe.given,
        weak=recipe.id.startswith(OP_DB),
    )


def _all_not_run(recipe: Recipe, reason: str) -> list[Measurement]:
    return [_not_run(recipe, dtype, reason) for dtype in recipe.dtypes]
