"""``--verify``: from findings and names to evidence, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from d9mlint.base.errors import UsageError
from d9mlint.base.findings import Finding
from d9mlint.evidence.model import NOT_RUN, Evidence
from d9mlint.knowledge import KnowledgeError, load
from d9mlint.verify import plan, settings
from d9mlint.verify.recipes import Recipe, load_recipes
from d9mlint.verify.session import (
    RUNS,
    SCALES,
    THOROUGH_RUNS,
    THOROUGH_SCALES,
    Interrupted,
    NoDevice,
    Options,
    measure,
)
from d9mlint.verify.workspace import ended_by_signals


class Wanted(NamedTuple):
    """What the command line asks to measure, beside what findings flag. ``runs`` is 0 where it is not given."""

    ops: tuple[str, ...] = ()
    every: bool = False
    runs: int = 0
    thorough: bool = False
    device: str = "auto"
    require_device: bool = False
    seed: int = 0
    timeout: float = 120.0
    settings: tuple[str, ...] = ()

    def options(self) -> Options:
        """How to measure."""
        usual = THOROUGH_RUNS if self.thorough else RUNS
        scales = THOROUGH_SCALES if self.thorough else SCALES
        return Options(self.device, self.runs or usual, scales, self.seed, self.timeout, self.require_device)


class Session(NamedTuple):
    """What came of it: the evidence (None where there was nothing to run), the findings it was asked for, and
    whether it was ended early."""

    evidence: Evidence | None
    findings: tuple[Finding, ...]
    interrupted: bool = False


def verify(findings: Sequence[Finding], wanted: Wanted, progress: Callable[[str], None]) -> Session:
    """Run what findings flag and what is named. Raises UsageError."""
    try:
        recipes = load_recipes()
    except KnowledgeError as error:
        raise UsageError(f"A recipe cannot be used: {error}") from error
    flagged = tuple(f for f in findings if plan.can_be_run(f, recipes))
    chosen = plan.for_findings(flagged, recipes)
    if wanted.every:
        chosen = _merged(recipes, chosen)
    if wanted.ops:
        chosen = _merged(plan.named(wanted.ops, recipes, load()), chosen)
    probes = settings.named(wanted.settings)
    probes += [probe for probe in settings.for_findings(findings) if probe not in probes]
    flagged += tuple(f for f in findings if settings.for_findings([f]) and f not in flagged)
    if not chosen and not probes:
        return Session(None, flagged)
    controls = [recipe for recipe in recipes if recipe.control]
    try:
        with ended_by_signals():
            return Session(measure(chosen, controls, wanted.options(), progress, probes), flagged)
    except NoDevice as error:
        raise UsageError(f"--require-device: {error}.") from error
    except Interrupted as error:
        return Session(error.args[0], flagged, interrupted=True)


def _merged(first: Sequence[Recipe], second: Sequence[Recipe]) -> list[Recipe]:
    known = {recipe.id for recipe in first}
    return [*first, *(recipe for recipe in second if recipe.id not in known)]


def failure(evidence: Evidence) -> str:
    """Why the session is no evidence at all; empty where it is."""
    if not evidence.machines:
        reasons = dict.fromkeys(m.reason for m in evidence.measurements if m.outcome == NOT_RUN)
        reasons |= dict.fromkeys(s.reason for s in evidence.settings if s.outcome == NOT_RUN)
        return f"{'; '.join(reasons)}."
    if evidence.untrusted:
        return f"A control of {' and '.join(evidence.untrusted)} failed: its measurements are not evidence."
    return ""
