"""Settings shown on synthetic training runs, on the CPU, and what is said of them."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from support import needs

from d9mlint.base.errors import UsageError
from d9mlint.base.findings import Finding, Severity
from d9mlint.evidence import wording
from d9mlint.evidence.model import EQUAL, NOT_RUN, Evidence, Machine, Setting
from d9mlint.evidence.verdicts import setting_verdict
from d9mlint.verify import settings, settings_session, workspace
from d9mlint.verify.session import Options, measure
from d9mlint.verify.settings import PROBES, RESUME

needs_torch = needs("torch")
PROBE = {probe.id: probe for probe in PROBES}
ON_A_CPU = ("deterministic_mode", "python_seed", "resume_numpy_rng", "resume_scheduler", "resume_loader_rng")


def once(digest: str, seconds: float = 0.1, reference: str | None = None) -> dict[str, Any]:
    return {"digest": digest, "seconds": seconds, "memory": 100 << 20, "reference": reference}


@pytest.fixture(scope="module")
def shown() -> dict[str, Setting]:
    return measured(PROBE[name] for name in (*ON_A_CPU, "cudnn_benchmark", "ddp_nccl"))


def measured(probes: Iterable[settings.Probe]) -> dict[str, Setting]:
    """What is measured of settings on a CPU. A race need not strike on a busy machine: asked again."""
    found: dict[str, Setting] = {}
    left = list(probes)
    for _ in range(15):
        evidence = measure([], [], Options(device="cpu", timeout=600), lambda message: None, left)
        found |= {setting.probe: setting for setting in evidence.settings}
        left = [probe for probe in left if found[probe.id].outcome == EQUAL]
        if not left:
            break
    return found


@needs_torch
@pytest.mark.parametrize("name", ON_A_CPU)
def test_a_remedy_fixes_what_it_is_for(shown: dict[str, Setting], name: str) -> None:
    found = shown[name]
    assert (found.outcome, found.with_remedy) == ("fixed", 1), found.reason
    assert found.without > 1
    assert found.runs >= 3
    assert found.memory is not None


@needs_torch
def test_what_a_cpu_cannot_show_is_not_run(shown: dict[str, Setting]) -> None:
    assert (shown["cudnn_benchmark"].outcome, shown["cudnn_benchmark"].reason) == (NOT_RUN, "needs a GPU")
    assert (shown["ddp_nccl"].outcome, shown["ddp_nccl"].reason) == (NOT_RUN, "needs two GPUs")


@needs_torch
@pytest.mark.full
@pytest.mark.parametrize(
    "probe", [p for p in PROBES if not p.needs and p.library == "torch"], ids=lambda p: p.id
)
def test_every_setting_of_torch_is_shown_on_a_cpu(probe: settings.Probe) -> None:
    found = measured([probe])[probe.id]
    assert found.outcome == "fixed", found.reason


def test_programs_exist_under_the_names_of_probes() -> None:
    for library in ("torch", "tensorflow"):
        source = Path(settings.__file__).with_name(f"{library}_settings.py").read_text()
        for probe in PROBES:
            if probe.library == library and not probe.id.startswith("resume_"):
                assert f"\ndef {probe.id}(" in source


@pytest.mark.parametrize(
    ("bare", "treated", "outcome"),
    [
        ("abc", "aaa", "fixed"),
        ("aaa", "aaa", "equal"),
        ("abc", "aba", "not fixed"),
        ("aaa", "aba", "not fixed"),
    ],
)
def test_verdicts_over_both_series(bare: str, treated: str, outcome: str) -> None:
    series = [[once(d) for d in one] for one in (bare, treated)]
    found = settings_session.judge(PROBE["deterministic_mode"], *series)
    assert (found.outcome, found.without, found.with_remedy) == (outcome, len(set(bare)), len(set(treated)))


def test_a_resumed_run_is_compared_with_the_uninterrupted_one() -> None:
    probe = PROBE["resume_optimizer"]
    same = settings_session.judge(probe, [once("b", reference="a")] * 3, [once("a", reference="a")] * 3)
    assert (same.outcome, same.claim, same.time_spread) == ("fixed", RESUME, None)
    assert wording.setting(same) == (
        "confirmed: differs from the uninterrupted run; with `save and restore all of it`: equal to the uninterrupted run"
    )


def test_the_cost_of_a_remedy_has_a_spread() -> None:
    slow = [once("a", seconds) for seconds in (0.2, 0.22, 0.24)]
    fast = [once(digest, seconds) for digest, seconds in zip("abc", (0.1, 0.1, 0.12), strict=True)]
    found = settings_session.judge(PROBE["deterministic_mode"], fast, slow)
    assert wording.setting_cost(found) == ["1.7-2.4x runtime", "peak memory 100 -> 100 MiB"]
    noise = [once(digest, 0.001) for digest in "abc"]
    assert settings_session.judge(PROBE["deterministic_mode"], noise, noise).time_spread is None


def test_a_finding_about_a_program_gets_its_setting() -> None:
    def finding(code: str, subject: str, op: str = "") -> Finding:
        about = {"path": "a.py", "start": 0, "end": 1, "message": "m", "help": "", "severity": Severity.ERROR}
        return Finding(code=code, subject=subject, op=op, **about)

    def probes(*found: Finding) -> list[str]:
        return [probe.id for probe in settings.for_findings(found)]

    assert probes(finding("DET302", "torch")) == ["deterministic_mode"]
    assert probes(finding("DET301", "torch.backends.cudnn.benchmark")) == ["cudnn_benchmark"]
    assert len(probes(finding("DET601", "torch.save"))) == 7
    # An op has recipes.
    assert probes(finding("DET401", "torch", op="torch.put_overwrite")) == []
    assert probes(finding("DET102", "numpy")) == []
    shown = settings_session.judge(
        PROBE["deterministic_mode"], [once("a"), once("b")], [once("a"), once("a")]
    )
    machine = Machine(library="torch", kind="cpu", name="CPU", versions={"torch": "2.13.0+cpu"})
    evidence = Evidence(
        tool="",
        created="",
        runs=5,
        seed=0,
        timeout=1,
        machines=(machine,),
        controls=(),
        measurements=(),
        settings=(shown,),
    )
    told = setting_verdict(shown, evidence, "measured now")
    assert (told["verdict"], told["kind"]) == ("confirmed", "cpu")
    assert told["summary"].startswith(
        "confirmed: 2 of 2 runs distinct; with `torch.use_deterministic_algorithms(True)`"
    )


def test_a_full_disk_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1 << 20))
    with (
        pytest.raises(UsageError, match=r"no space left in .* \(1 MiB free, 64 needed\): set TMPDIR"),
        workspace.workspace(),
    ):
        pass

    def refuse(*arguments: Any, **options: Any) -> str:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    with (
        pytest.raises(UsageError, match=r"no temporary directory can be created \(Permission denied\)"),
        workspace.workspace(),
    ):
        pass
