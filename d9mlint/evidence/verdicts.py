"""What evidence says of a finding: measured now by ``--verify``, read from a file, or shipped with the rules."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import msgspec

from d9mlint.base.known_calls import CallCondition, all_hold
from d9mlint.base.terminal import listed
from d9mlint.evidence import wording
from d9mlint.evidence.model import DIFFERS, EQUAL, NOT_RUN, NOW, Evidence, Machine, Measurement, Setting, load

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.pipeline import Result

CONFIRMED, POSSIBLE = "confirmed", "can differ"
"""Verdicts are these, ``equal`` and ``not run``. What differs is confirmed where the call itself was run, or where
a setting is what was measured; else it is known of the op, and the call was not measured."""
NO_RECIPE = "no recipe for it"
RUN_LIBRARIES = ("torch", "tf", "keras")
"""First words of the APIs that recipes are about."""
MESSAGE = 160
"""Characters of deterministic mode's message in a summary."""


class HasApi(Protocol):
    """What is about an API: a recipe, or a measurement."""

    @property
    def api(self) -> str:
        """Its name, perhaps with a remark behind it: ``torch.bmm (sparse, dense)``."""

    @property
    def exact(self) -> bool:
        """Whether it stands for no other API than this one."""

    @property
    def form(self) -> tuple[CallCondition, ...]:
        """The calls that it stands for."""


About = TypeVar("About", bound=HasApi)


class Source(NamedTuple):
    """Evidence and where it is from: NOW, or the name of a file."""

    evidence: Evidence
    name: str


@functools.lru_cache(maxsize=1)
def shipped(directory: Path) -> tuple[Source, ...]:
    """The evidence in a directory of files, those of GPUs first. Raises UsageError."""
    found = [Source(load(path), f"rules/evidence/{path.name}") for path in sorted(directory.glob("*.json"))]
    return tuple(sorted(found, key=lambda s: all(m.kind == "cpu" for m in s.evidence.machines)))


def join(result: Result, sources: Sequence[Source]) -> Result:
    """A run's result with the evidence beside each finding that some of it is about."""
    return _with_evidence(result, lambda finding: _first(finding, sources))


def join_measured(result: Result, evidence: Evidence, wanted: Iterable[Finding]) -> Result:
    """A run's result with what was measured now; findings that were ``wanted`` and have no recipe say so."""
    asked = {id(finding) for finding in wanted}

    def judged(finding: Finding) -> dict[str, Any] | None:
        own = serving(finding, evidence)
        setting = _setting(finding, own, evidence)
        if setting is not None:
            return setting_verdict(setting, evidence, NOW)
        if not own and id(finding) not in asked:
            return None
        return verdict(finding, own, evidence, NOW)

    return _with_evidence(result, judged)._replace(evidence=evidence)


def _setting(finding: Finding, own: Sequence[Measurement], evidence: Evidence) -> Setting | None:
    """The setting that was shown for a finding, if any: one that differs first. Recipes that ran tell more than a
    setting that did not."""
    about = [
        s
        for s in evidence.settings
        if finding.code in s.codes and not finding.op and (not s.subjects or finding.subject in s.subjects)
    ]
    rank = {"fixed": 0, "not fixed": 1, "raises": 2, "equal": 3, NOT_RUN: 4}
    best = min(about, key=lambda s: rank[s.outcome], default=None)
    if best is not None and best.outcome == NOT_RUN and any(m.outcome != NOT_RUN for m in own):
        return None
    return best


def setting_verdict(setting: Setting, evidence: Evidence, source: str) -> dict[str, Any]:
    """A finding's evidence from a synthetic training run."""
    machine = evidence.machine(setting.library)
    kinds = {"fixed": CONFIRMED, "not fixed": CONFIRMED, "equal": EQUAL}
    place = f" on {_place(machine, setting.library)}" if machine is not None else ""
    words = [
        f"{wording.setting(setting)}{place if setting.outcome != NOT_RUN else ''} (synthetic run: {setting.title})"
    ]
    if setting.outcome in ("fixed", "not fixed", "equal"):
        words += wording.setting_cost(setting)
    if machine is not None and machine.kind == "cpu" and setting.outcome == "equal":
        words.append("CPU results do not apply to GPUs")
    return {
        "verdict": kinds.get(setting.outcome, NOT_RUN),
        "summary": "; ".join(words),
        "device": machine.name if machine else "",
        "kind": machine.kind if machine else "",
        "versions": dict(machine.versions) if machine else {},
        "controls_passed": True,
        "weak": False,
        "source": source,
        "measurements": [],
        "setting": msgspec.to_builtins(setting),
    }


def _with_evidence(result: Result, judge: Callable[[Finding], dict[str, Any] | None]) -> Result:
    items = []
    for item in result.items:
        found = judge(item.finding)
        if found is not None:
            item = item._replace(finding=msgspec.structs.replace(item.finding, evidence=found))
        items.append(item)
    return result._replace(items=tuple(items))


def _first(finding: Finding, sources: Sequence[Source]) -> dict[str, Any] | None:
    """The first source that says something of a finding. An op that is equal on a CPU says nothing of the
    GPU that the finding is about."""
    for source in sources:
        own = [m for m in serving(finding, source.evidence) if m.outcome != NOT_RUN]
        if not own or not source.evidence.trusted(own[0].library):
            continue
        found = verdict(finding, own, source.evidence, source.name)
        if found["kind"] == "cuda" or found["verdict"] in (CONFIRMED, POSSIBLE):
            return found
    return None


def serving(finding: Finding, evidence: Evidence) -> list[Measurement]:
    """The measurements that are about what a finding flags."""
    digest = finding.call.digest if finding.call is not None else ""
    found = [
        m
        for m in evidence.measurements
        if (
            (finding.op in m.op_ids if finding.op else finding.subject in m.settings)
            or m.recipe == f"op_db:{finding.subject}"
        )
        and fits(m, finding)
        # What another call gave says nothing of this one.
        and (not m.given or m.given.call == digest)
    ]
    return of_own_api(found, finding.subject)


def fits(one: HasApi, finding: Finding) -> bool:
    """Whether a recipe or a measurement may be about a finding's call, as far as that is known."""
    return finding.call is None or all_hold(finding.call, one.form, finding.subject) is not False


def of_own_api(found: Sequence[About], api: str) -> list[About]:
    """Of what an entry of the knowledge base joins, that of an API: under its full name, else under another
    form of it (``torch.gather`` for ``torch.Tensor.gather``), else all that stand for other APIs too."""
    exact = [one for one in found if one.api == api]
    alike = exact or [one for one in found if last_word(one.api) == last_word(api)]
    return alike or [one for one in found if not one.exact]


def last_word(api: str) -> str:
    """``indexadd`` of ``torch.Tensor.index_add_``: forms of an op differ in what stands before the last dot,
    in underscores and in case."""
    return api.partition(" ")[0].partition("(")[0].rpartition(".")[2].replace("_", "").lower()


def verdict(finding: Finding, own: Sequence[Measurement], evidence: Evidence, source: str) -> dict[str, Any]:
    """A finding's evidence: the verdict over its measurements, a summary in words, and the measurements."""
    best = _telling(_deciding(finding, own))
    machine = evidence.machine(best.library) if best is not None else None
    trusted = best is not None and evidence.trusted(best.library)
    if best is None:
        kind, words = NOT_RUN, f"not run: {_no_recipe(finding)}"
    elif not trusted and best.outcome != NOT_RUN:
        kind, words = NOT_RUN, "not run: a control failed, so what was measured is not evidence"
    elif best.outcome == NOT_RUN:
        kind, words = NOT_RUN, wording.result(best)
    else:
        kind = EQUAL if best.outcome == EQUAL else CONFIRMED if _is_the_call(finding, best) else POSSIBLE
        words = _summary(finding, kind, best, own, evidence, source)
    return {
        "verdict": kind,
        "summary": words,
        "device": machine.name if machine else "",
        "kind": machine.kind if machine else "",
        "versions": dict(machine.versions) if machine else {},
        "controls_passed": trusted or best is None,
        "weak": bool(own) and all(m.weak for m in own),
        "source": source,
        "measurements": [msgspec.to_builtins(m) for m in own],
    }


def _is_the_call(finding: Finding, m: Measurement) -> bool:
    """Whether a measurement is of what is flagged: a setting, or an op's very call."""
    return not finding.op or m.given.whole


def _deciding(finding: Finding, own: Sequence[Measurement]) -> Sequence[Measurement]:
    """The measurements that a verdict may rest on: those of the call itself where it ran, else those with its
    arguments, of its dtype, or all."""
    ran = [m for m in own if m.outcome != NOT_RUN]
    dtypes = finding.call.dtypes() if finding.call is not None else frozenset()
    return (
        [m for m in ran if m.given.whole]
        or [m for m in ran if m.given]
        or [m for m in ran if m.dtype in dtypes]
        or own
    )


def is_own_kernel(finding: Finding) -> bool:
    """Whether a finding is about a kernel that the program brings: nothing here knows how to call it."""
    return finding.code == "DET408" or finding.subject == "triton.autotune"


def _no_recipe(finding: Finding) -> str:
    if is_own_kernel(finding):
        return "it is one of the program's own kernels"
    library = finding.subject.partition(".")[0]
    if library in RUN_LIBRARIES:
        return NO_RECIPE
    return f"recipes cover PyTorch and TensorFlow ops, not {library}"


def _telling(own: Sequence[Measurement]) -> Measurement | None:
    """The measurement that a verdict rests on: what differs most, else the largest that was equal; first
    those of which more is known, because deterministic mode is asked at one size only."""
    rank = {DIFFERS: 2, EQUAL: 1, NOT_RUN: 0}

    def weight(m: Measurement) -> tuple[float, ...]:
        share = m.distinct / m.runs if m.runs and m.outcome == DIFFERS else 0.0
        return (rank[m.outcome], not m.weak, m.mode is not None, share, m.scale)

    return max(own, key=weight, default=None)


def _summary(
    finding: Finding, kind: str, m: Measurement, own: Sequence[Measurement], evidence: Evidence, source: str
) -> str:
    """One sentence: the answer, where, of what, how far apart, and what deterministic mode does."""
    machine = evidence.machine(m.library)
    place = _place(machine, m.library)
    differs = m.outcome == DIFFERS
    answer = f"{m.distinct} of {m.runs} runs distinct" if m.distinct > 1 else wording.result(m)
    if kind == POSSIBLE:
        start = f"the op can differ: {answer} on {place}"
    elif kind == CONFIRMED:
        start = f"{CONFIRMED if source == NOW else 'observed to differ'}: {answer} on {place}"
    else:
        start = f"{answer} on {place}" if source == NOW else f"observed {answer} on {place}"
    # What was run is named where it is not simply what is flagged: for a setting, or under a condition.
    plain = last_word(m.api) == last_word(finding.subject) and not set(m.api) & set(" (")
    shapes = "for " if m.given else "with default shapes: "
    measured = f"measured {shapes}{'' if plain else f'{m.api}, '}{_inputs(m)}" if kind == POSSIBLE else ""
    of_what = _of_what(m) if plain else f"{m.api}: {_of_what(m)}"
    parts = [f"{start} ({measured or of_what})"]
    if finding.op and not m.given.whole:
        parts.append(_not_the_call(finding, m, kind))
    if m.given.whole:
        parts.append("this call was run" + (", with its shapes reduced" if m.given.scaled else ""))
        parts += _op_differs(own)
    if m.given and m.addends is not None and m.addends <= 2 and not differs:
        values = "two values meet" if m.addends == 2 else "one value arrives"
        parts.append(f"at most {values} at one address, so their order does not matter")
    parts += _others(own)
    if m.process == "fresh":
        parts.append("each run in its own process")
    if m.cause:
        parts.append(f"cause: {wording.CAUSES.get(m.cause, m.cause)}")
    words, ratios = wording.mode_runs(m)
    if words:
        words = words if len(words) <= MESSAGE else words[: MESSAGE - 1] + "…"
        parts.append(f"deterministic mode: {words}" + (f", {wording.cost([ratios])}" if ratios else ""))
    if m.weak:
        parts.append(f"weak: {wording.WEAK}")
    if machine is not None and _is_for_other_version(finding, m.library, machine):
        parts.append(f"the finding is about {finding.targets[0]}")
    if machine is not None and machine.kind == "cpu" and not differs:
        parts.append("CPU results do not apply to GPUs")
    elif not differs and not evidence.race_seen(m.library):
        parts.append("a known race was not reproduced either")
    return "; ".join(parts)


def _inputs(m: Measurement) -> str:
    """What a recipe was run with: ``float32, 2-D, 4M elements``."""
    largest = max(m.sizes.values(), key=math.prod, default=())
    size = [f"{len(largest)}-D", f"{wording.short(math.prod(largest))} elements"] if m.sizes else []
    return ", ".join([m.dtype, *size])


def _not_the_call(finding: Finding, m: Measurement, kind: str) -> str:
    """That the call was not run, with what is known of it."""
    dtypes = finding.call.dtypes() if finding.call is not None else frozenset()
    if m.given:
        given = [f"{m.given.words.get(name, name)}={value!r}" for name, value in m.given.values.items()]
        given += [f"{name} {'x'.join(map(str, shape))}" for name, shape in m.given.shapes.items()]
        parts = [
            f"run with this call's {', '.join(given)}" + (", its shapes reduced" if m.given.scaled else "")
        ]
        if m.given.not_taken:
            parts.append(f"the recipe does not take its {listed(m.given.not_taken)}")
        if not m.given.shapes:
            parts.append("the rest of the call is not known: measured with default shapes")
        elif m.given.unknown or not m.given.not_taken:
            parts.append("the rest of the call is not known")
        return "; ".join(parts)
    if dtypes and m.dtype not in dtypes:
        return f"this call was not measured: it has {' and '.join(sorted(dtypes))}"
    missing = "this call was not measured"
    return missing if kind == POSSIBLE else f"measured with default shapes: {missing}"


def _op_differs(own: Sequence[Measurement]) -> list[str]:
    """What the op does at other sizes, beside the call itself."""
    other = _telling([m for m in own if not m.given and m.outcome == DIFFERS])
    if other is None or any(m.given.whole and m.outcome == DIFFERS for m in own):
        return []
    return [f"the op can differ: {other.distinct} of {other.runs} runs distinct ({_inputs(other)})"]


def _others(own: Sequence[Measurement]) -> list[str]:
    """How many recipes came out how, where there are several."""
    outcomes: dict[str, set[str]] = {}
    for m in own:
        outcomes.setdefault(m.recipe, set()).add(m.outcome)
    if len(outcomes) < 2:
        return []
    best = [next(o for o in (DIFFERS, EQUAL, NOT_RUN) if o in seen) for seen in outcomes.values()]
    words = {DIFFERS: "differ", EQUAL: "equal", NOT_RUN: "not run"}
    told = [f"{best.count(outcome)} {word}" for outcome, word in words.items() if outcome in best]
    return [f"recipes for it: {', '.join(told)}"]


def _is_for_other_version(finding: Finding, library: str, machine: Machine) -> bool:
    """Whether a finding is about another version of a library than the one that was run."""
    name, _, wanted = finding.targets[0].partition(" ") if finding.targets else ("", "", "")
    parts = wanted.split(".")
    return (
        name == library
        and machine.versions.get(library, "").partition("+")[0].split(".")[: len(parts)] != parts
    )


def _place(machine: Machine | None, library: str) -> str:
    if machine is None:
        return "an unknown machine"
    name = "the CPU" if machine.kind == "cpu" else machine.name
    version = machine.versions.get(library, "").partition("+")[0]
    return f"{name}, {library} {version}" if version else name


def _of_what(m: Measurement) -> str:
    """The output that differs most, with its distance, or the size of what was equal."""
    worst = m.worst
    if m.outcome != DIFFERS or worst is None:
        return ", ".join(part for part in (m.dtype, wording.sizes(m)) if part)
    shape = "x".join(map(str, worst.shape)) or "scalar"
    parts = [f"{worst.name} {shape} {worst.dtype}", f"V_c {wording.number(worst.v_c)}"]
    if m.cause == "uninitialized memory":
        # How far what was in memory is from what was in memory says nothing.
        return ", ".join(parts)
    if worst.v_ermv is not None:
        parts.append(f"V_ermv {wording.number(worst.v_ermv)}")
    if worst.ulp is not None:
        parts.append(f"{wording.ulps(worst.ulp)} ulp")
    return ", ".join(parts)
