"""Measurements grouped by op, and in words: the same for text and for HTML.

Equal results are reported as equal in so many runs at one size, and as nothing else.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from d9mlint.base.terminal import clean, count, listed
from d9mlint.evidence.model import DIFFERS, EQUAL, NOT_RUN, Control, Evidence, Machine, Measurement, Setting

WEAK = "small generic inputs that were not built to provoke a difference"
DEFINITIONS = (
    "V_ermv: mean relative difference of an element from the first run; V_c: share of elements that differ."
)
ADVICE = ", but you set 'torch.use_deterministic_algorithms(True)'"
"""From here on torch's messages are the same for all ops."""
EXPECTED_EQUAL = ("det", "det_in_practice")
CAUSES = {
    "rng": "RNG state: equal when it is restored before each run",
    "uninitialized memory": "uninitialized memory",
    "not determined": "not determined",
}
LABELS = {"cuda": "CUDA", "cudnn": "cuDNN"}


class Series(NamedTuple):
    """One op with one dtype and one way of running it: ``main`` is the largest size that ran (the largest
    at all where none did), ``others`` the rest from small to large."""

    dtype: str
    process: str
    main: Measurement
    others: tuple[Measurement, ...]

    @property
    def points(self) -> list[Measurement]:
        """All measurements from small to large."""
        return sorted([*self.others, self.main], key=_size_key)

    @property
    def label(self) -> str:
        """The dtype, with the number of processes where each run had its own."""
        several = f"{self.main.runs} processes" if self.main.runs else "fresh processes"
        return plain(self.dtype) + (f", {several}" if self.process == "fresh" else "")


class Op(NamedTuple):
    """What was measured of one recipe. ``name`` is shown: the API, and the recipe's id where several
    recipes have the same API and phase. ``outcome``: ``differs`` if anything did, ``equal`` if all that
    ran were, ``not run``."""

    recipe: str
    name: str
    phase: str
    weak: bool
    outcome: str
    series: tuple[Series, ...]

    @property
    def measurements(self) -> list[Measurement]:
        """All measurements of the op."""
        return [m for s in self.series for m in s.points]

    @property
    def title(self) -> str:
        """Name and phase."""
        return f"{self.name}, {self.phase}" if self.phase else self.name


def ops(evidence: Evidence) -> list[Op]:
    """All ops in the order in which they were measured."""
    recipes: dict[tuple[str, str], list[Measurement]] = {}
    for m in evidence.measurements:
        recipes.setdefault((m.library, m.recipe), []).append(m)
    shared: dict[tuple[str, str], int] = {}
    for own in recipes.values():
        shared[own[0].api, own[0].phase] = shared.get((own[0].api, own[0].phase), 0) + 1
    return [_op(own, shared[own[0].api, own[0].phase] > 1) for own in recipes.values()]


def _op(own: Sequence[Measurement], ambiguous: bool) -> Op:
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for m in own:
        groups.setdefault((m.dtype, m.process), []).append(m)
    series = []
    for (dtype, process), members in groups.items():
        ordered = sorted(members, key=_size_key)
        main = next((m for m in reversed(ordered) if m.outcome != NOT_RUN), ordered[-1])
        series.append(Series(dtype, process, main, tuple(m for m in ordered if m is not main)))
    outcomes = {m.outcome for m in own}
    outcome = next((o for o in (DIFFERS, EQUAL) if o in outcomes), NOT_RUN)
    first = own[0]
    name = plain(first.api) + (f" ({plain(first.recipe)})" if ambiguous else "")
    return Op(first.recipe, name, plain(first.phase), any(m.weak for m in own), outcome, tuple(series))


def _size_key(m: Measurement) -> tuple[float, int]:
    return (m.scale, elements(m))


def elements(m: Measurement) -> int:
    """The number of elements of all inputs; 0 where no input was built."""
    return sum(math.prod(shape) for shape in m.sizes.values())


def plain(text: str) -> str:
    """Text of a measurement on one line, without control characters."""
    return clean(" ".join(text.split()))


def short(number: float) -> str:
    """``262K`` for 262144."""
    for unit, size in (("G", 1e9), ("M", 1e6), ("K", 1e3)):
        if number >= size:
            value = number / size
            return f"{value:.0f}{unit}" if value >= 9.95 else f"{value:.1f}".removesuffix(".0") + unit
    return f"{number:.0f}"


def shapes(m: Measurement) -> list[str]:
    """Shapes of the inputs, equal ones named once: ``x 1000x8``, ``i and j 262144``. Those of torch's own
    database are counted."""
    if m.weak and m.sizes:
        most = max(math.prod(shape) for shape in m.sizes.values())
        return [f"{count(len(m.sizes), 'tensor')} of up to {count(most, 'element')}"]
    by_shape: dict[tuple[int, ...], list[str]] = {}
    for name, shape in m.sizes.items():
        by_shape.setdefault(tuple(shape), []).append(plain(name))
    return [f"{listed(names)} {'x'.join(map(str, shape)) or 'scalar'}" for shape, names in by_shape.items()]


def sizes(m: Measurement) -> str:
    """The same on one line."""
    return ", ".join(shapes(m))


def result(m: Measurement, distinct: int | None = None) -> str:
    """The answer of a measurement, or of one of its outputs, in words."""
    if m.outcome == NOT_RUN:
        return f"not run: {plain(m.reason)}" if m.reason else "not run"
    if m.outcome == DIFFERS and not m.outputs:
        return "differs"
    number = m.distinct if distinct is None else distinct
    if number > 1:
        return f"{number} of {m.runs} distinct"
    if m.outcome == DIFFERS and distinct is None and m.mode is not None:
        return f"{equal(m)}, {m.mode.distinct} of {m.runs} distinct under deterministic mode"
    return f"{equal(m)} at this size"


def equal(m: Measurement) -> str:
    """That all runs gave the same result."""
    return f"equal in {count(m.runs, 'run')}"


def main_result(series: Series) -> str:
    """The answer at the largest size, with the smaller sizes where they say the same."""
    said = result(series.main)
    if not series.others or by_size(series):
        return said
    return f"{said} and {len(series.others)} smaller"


def by_size(series: Series) -> str:
    """The answers at all sizes where they are not all equal: ``1 of 5 at 1K, 5 of 5 at 262K``."""
    points = series.points
    if not series.others or {(m.outcome, m.runs) for m in points} == {(EQUAL, series.main.runs)}:
        return ""
    if all(m.outcome == NOT_RUN and m.reason == series.main.reason for m in points):
        return ""
    return ", ".join(_at_size(m, m.distinct) for m in points)


def smaller(series: Series, output: str | None = None) -> str:
    """The same without the main measurement; of one output: empty where that was equal at every size."""
    counts = {id(m): m.distinct if output is None else _distinct(m, output) for m in series.points}
    if not by_size(series) or (output is not None and max(counts.values()) < 2):
        return ""
    return ", ".join(_at_size(m, counts[id(m)]) for m in series.others)


def _distinct(m: Measurement, output: str) -> int:
    return next((o.distinct for o in m.outputs if o.name == output), 0)


def _at_size(m: Measurement, distinct: int) -> str:
    number = elements(m)
    where = f"at {short(number)}" if number else f"at scale {m.scale:g}"
    return f"{result(m)} ({where})" if m.outcome == NOT_RUN else f"{distinct} of {m.runs} {where}"


def number(value: float | None) -> str:
    """A measure with two digits; ``-`` where there is none."""
    return "-" if value is None else f"{value:.2g}"


def ulps(value: int | None) -> str:
    """A distance in units in the last place."""
    if value is None:
        return "-"
    return f"{value:,}" if value < 1_000_000 else f"{value:.1e}"


def mode_runs(m: Measurement) -> tuple[str, tuple[float, float] | None]:
    """What deterministic mode does, in words, and the smallest and largest ratio of times where known."""
    mode = m.mode
    if mode is None:
        return "", None
    message = plain(mode.message).partition(ADVICE)[0]
    told = f": {message}" if message else ""
    words = {
        "equal": equal(m),
        "raises": f"raises{told}",
        "differs": f"{mode.distinct} of {m.runs} distinct",
        "unchanged": f"unchanged, {mode.distinct} of {m.runs} distinct" if mode.distinct else "unchanged",
        "memory fill": "equal only because memory is filled: the op reads uninitialized memory",
        "not run": f"not run{told}",
    }.get(mode.outcome, plain(mode.outcome) + told)
    ratios = mode.time_spread
    timed = (
        ratios is not None and all(map(math.isfinite, ratios)) and mode.outcome not in ("raises", "not run")
    )
    return words, ratios if timed else None


def cost(ratios: Iterable[tuple[float, float]]) -> str:
    """Ratios of times as a range: ``1.2-1.9x runtime``; empty where there are none."""
    known = list(ratios)
    if not known:
        return ""
    ends = dict.fromkeys(f"{ratio:.1f}" for ratio in (min(low for low, _ in known), max(h for _, h in known)))
    return f"{'-'.join(ends)}x runtime"


def modes(op: Op) -> list[tuple[str, str]]:
    """What deterministic mode does: (series it holds for, or empty for all; words)."""
    pairs: dict[str, list[tuple[str, tuple[float, float] | None]]] = {}
    for s in op.series:
        judged = next((m for m in [s.main, *reversed(s.others)] if m.mode is not None), None)
        if judged is not None:
            words, ratios = mode_runs(judged)
            pairs.setdefault(words, []).append((s.label, ratios))
    everyone = len(pairs) == 1 and len(next(iter(pairs.values()))) == len(op.series)
    lines = []
    for words, members in pairs.items():
        timed = cost(ratios for _, ratios in members if ratios is not None)
        said = f"{words}, {timed}" if timed else words
        lines.append(("" if everyone else ", ".join(label for label, _ in members), said))
    return lines


def grouped(op: Op, words: Callable[[Series], str]) -> list[tuple[str, str]]:
    """What ``words`` say of each series, the same only once: (series, or empty for all; words)."""
    by_words: dict[str, list[str]] = {}
    for s in op.series:
        if words(s):
            by_words.setdefault(words(s), []).append(s.label)
    return [
        ("" if len(labels) == len(op.series) else ", ".join(labels), said)
        for said, labels in by_words.items()
    ]


def causes(op: Op) -> list[tuple[str, str]]:
    """Causes of differences: (series, or empty for all; words)."""

    def cause(s: Series) -> str:
        found = dict.fromkeys(m.cause for m in s.points if m.cause and m.outcome == DIFFERS)
        return "; ".join(CAUSES.get(c, plain(c)) for c in found)

    return grouped(op, cause)


def setting(s: Setting) -> str:
    """The answer of a setting: without the remedy, and with it."""
    if s.outcome == NOT_RUN:
        return f"not run: {plain(s.reason)}"
    total = s.runs if s.claim == "runs" else s.runs + 1
    same = "equal" if s.claim == "runs" else "equal to the uninterrupted run"
    if s.claim == "runs":
        bare = (
            f"{s.without} of {total} runs distinct" if s.without > 1 else f"equal in {count(s.runs, 'run')}"
        )
    else:
        bare = "differs from the uninterrupted run" if s.without > 1 else same
    if s.outcome == "raises":
        return f"{bare}; with `{s.remedy}`: raises {plain(s.reason)}"
    if s.claim == "runs":
        cured = (
            f"equal in {count(s.runs, 'run')}"
            if s.with_remedy == 1
            else f"{s.with_remedy} of {total} distinct"
        )
    else:
        cured = same if s.with_remedy == 1 else "differs from the uninterrupted run"
    start = "confirmed: " if s.outcome in ("fixed", "not fixed") and s.without > 1 else ""
    return f"{start}{bare}; with `{plain(s.remedy)}`: {cured}"


def setting_cost(s: Setting) -> list[str]:
    """What the remedy costs, where that could be measured: time as a range of ratios, memory as two peaks."""
    found = [cost([s.time_spread])] if s.time_spread is not None else []
    if s.memory is not None and s.claim == "runs" and max(s.memory) >= 1 << 20:
        before, after = (f"{number / (1 << 20):.0f}" for number in s.memory)
        found.append(f"peak memory {before} -> {after} MiB")
    return found


def settings(evidence: Evidence) -> list[tuple[str, str]]:
    """Settings with what came of them."""
    return [(plain(s.title), "; ".join([setting(s), *setting_cost(s)])) for s in evidence.settings]


def machine(m: Machine) -> str:
    """A machine with its versions on one line."""
    versions = dict(m.versions)
    names = [plain(m.name) or m.kind]
    if m.kind == "cpu":
        threads = f", {count(m.threads, 'thread')}" if m.threads else ""
        names = [n for n in [plain(versions.pop("cpu", "")) or plain(m.name)] if n.lower() not in ("", "cpu")]
        names.append(f"CPU{threads}: CPU evidence, which does not apply to GPUs")
    told = [f"{plain(LABELS.get(k, k))} {plain(_version(k, v))}" for k, v in versions.items() if v]
    return ", ".join(names) + (f" ({', '.join(told)})" if told else "")


def session(evidence: Evidence) -> str:
    """How the ops were run. A recipe may ask for more runs than the session."""
    numbers = {m.runs for m in evidence.measurements if m.outcome != NOT_RUN} or {evidence.runs}
    least, most = min(numbers), max(numbers)
    runs = count(most, "run") if least == most else f"{least} to {count(most, 'run')}"
    return f"{runs} of each op, seed {evidence.seed}; outputs and gradients compared byte for byte"


def _version(key: str, value: str) -> str:
    """cuDNN gives its version as one number: 91002 for 9.10.2, 8902 for 8.9.2."""
    if key != "cudnn" or not value.isdecimal() or len(value) not in (4, 5):
        return value
    major = 10_000 if len(value) == 5 else 1000
    return f"{int(value) // major}.{int(value) % major // 100}.{int(value) % 100}"


def control_failure(evidence: Evidence) -> str:
    """Why the other lines are not evidence; empty where all controls passed."""
    lost = evidence.untrusted
    if not lost:
        return ""
    lines = "the other lines" if len(lost) == len(evidence.machines) else f"the lines of {listed(lost)}"
    sure = [c for c in evidence.controls if c.expected != "race" and c.library in ("", *lost)]
    failed = [_failed(c) for c in sure if not c.passed]
    if failed:
        one = "A control" if len(failed) == 1 else f"{len(failed)} controls"
        return f"{one} failed ({'; '.join(failed)}): {lines} are not evidence."
    missing = [word for word in (DIFFERS, EQUAL) if word not in {c.expected for c in sure}]
    wanted = {DIFFERS: "must differ", EQUAL: "must be equal"}
    return f"No control that {' or '.join(wanted[w] for w in missing)} was run: {lines} are not evidence."


def _failed(c: Control) -> str:
    wanted = {DIFFERS: "must differ", EQUAL: "must be equal"}.get(c.expected, plain(c.expected))
    came = {DIFFERS: "differs", EQUAL: "was equal", NOT_RUN: "was not run"}.get(c.outcome, plain(c.outcome))
    return f"{plain(c.recipe)} {wanted} and {came}" + (f": {plain(c.detail)}" if c.detail else "")


def race_failure(evidence: Evidence) -> str:
    """That a known race was not seen, if so."""
    missed = [plain(c.recipe) for c in evidence.controls if c.expected == "race" and not c.passed]
    if not missed:
        return ""
    return f"A known race was not reproduced, so equal results are weak evidence here ({', '.join(missed)})."


def controls(evidence: Evidence) -> str:
    """The controls on one line, where they passed."""

    def tally(wanted: str, verb: str) -> str:
        own = [c for c in evidence.controls if c.expected == wanted]
        return f"{sum(c.passed for c in own)}/{len(own)} {verb}" if own else ""

    seen = [plain(c.recipe) for c in evidence.controls if c.expected == "race" and c.passed]
    races = f"; known race{'s' if len(seen) > 1 else ''} {listed(seen)} reproduced" if seen else ""
    parts = [tally(EQUAL, "equal"), tally(DIFFERS, "different")]
    return "controls passed: " + ", ".join(p for p in parts if p) + races


def contradictions(evidence: Evidence, every: Iterable[Op]) -> dict[str, list[tuple[str, str]]]:
    """Ops that measured against what documentation or source say: titles with answers, by what is said.

    Without passing controls nothing is contradicted; small generic inputs contradict no documented
    difference, nor do the inputs of one call of the program, nor does a random generator contradict documented
    equality.
    """
    found: dict[str, list[tuple[str, str]]] = {}
    for op in every:
        if any(m.library in evidence.untrusted for m in op.measurements):
            continue
        ran = [m for m in op.measurements if m.outcome != NOT_RUN]
        of_a_call = any(m.given for m in ran)
        if op.outcome == EQUAL and not op.weak and not of_a_call and all(m.expected == "nondet" for m in ran):
            runs = min(m.runs for m in ran)
            told = f"equal in {count(runs, 'run')}{_span(ran)}"
            found.setdefault("documented to differ, equal here at every size", []).append((op.title, told))
        against = [
            m for m in ran if m.outcome == DIFFERS and m.cause != "rng" and m.expected in EXPECTED_EQUAL
        ]
        if against:
            worst = max(against, key=lambda m: (m.distinct, *_size_key(m)))
            where = f" at {short(elements(worst))}" if worst.sizes else ""
            cause = f" ({CAUSES.get(worst.cause, plain(worst.cause))})" if worst.cause else ""
            told = f"{result(worst)}{where}{cause}"
            found.setdefault("documented to be equal, differ here", []).append((op.title, told))
    return dict(sorted(found.items()))


def _span(measured: Iterable[Measurement]) -> str:
    told = sorted({elements(m) for m in measured} - {0})
    if not told:
        return ""
    return f" at {short(told[0])} to {short(told[-1])}" if len(told) > 1 else f" at {short(told[0])}"
