"""Measure everything on this machine, in calls of limited length: run it again until it says that nothing is left.

    python rules/evidence/measure.py NAME.json [--device cuda:0] [--minutes 9]

Where several processes may use the machine at once, each measures a part into its own file, and they are joined:

    python rules/evidence/measure.py part1.json --part 1/2 & python rules/evidence/measure.py part2.json --part 2/2
    python rules/evidence/measure.py NAME.json --join part1.json part2.json

Each call measures what the file lacks, a few recipes at a time between their controls, and keeps what it has by then.
The last one lists what contradicts documentation or source, and the published measurements.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import msgspec

from d9mlint.base.errors import UsageError
from d9mlint.evidence import wording
from d9mlint.evidence.model import DIFFERS, EQUAL, Evidence, load, write
from d9mlint.verify.recipes import load_recipes
from d9mlint.verify.session import NoDevice, Options, measure
from d9mlint.verify.settings import PROBES
from d9mlint.verify.workspace import ended_by_signals

BATCH = 4
"""Recipes between two looks at the clock."""
LAST = 90.0
"""Seconds before the end of a call from which no further batch is started."""
PUBLISHED = {"index_add_square": DIFFERS, "scatter_reduce_square": DIFFERS, "conv_transpose2d": EQUAL}
"""Of Shanmugavelu et al. 2024, measured on an H100."""


def main() -> int:
    """0 when all is measured, 3 when another call is needed, 2 when nothing could be."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("--device", default="cuda:0", help="cpu, or the GPU that is required")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--library", choices=["torch", "tensorflow"], default="torch")
    parser.add_argument("--part", type=part, help="K/N: the K-th of N parts, measured beside the others")
    parser.add_argument("--join", type=Path, nargs="+", help="other files that FILE takes in first")
    given = parser.parse_args()
    end = time.monotonic() + 60 * given.minutes - LAST
    try:
        known = load(given.file) if given.file.exists() else None
        for other in given.join or ():
            known = joined(known, load(other))
        if known is not None and given.join:
            write(given.file, known)
        with ended_by_signals():
            known, left = work(known, given, end)
    except (UsageError, NoDevice) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if left:
        print(f"{left} left: run the same command again")
        return 3
    report(known)
    return 0


def part(text: str) -> tuple[int, int]:
    """``K/N`` as two numbers. Raises ValueError."""
    number, _, of = text.partition("/")
    if not 1 <= int(number) <= int(of):
        raise ValueError(text)
    return int(number), int(of)


def work(known: Evidence | None, given: argparse.Namespace, end: float) -> tuple[Evidence, int]:
    """Measure what is left until the time is up; the evidence, and how many are left."""
    every = load_recipes()
    controls = [r for r in every if r.control]
    options = Options(device=given.device, timeout=120, require_device=given.device != "cpu")
    number, of = given.part or (1, 1)
    own_recipes = [r for r in every if r.library == given.library][number - 1 :: of]
    own_probes = [p for p in PROBES if p.library == given.library][number - 1 :: of]
    while True:
        done = {m.recipe for m in known.measurements} | {s.probe for s in known.settings} if known else set()
        recipes = [r for r in own_recipes if r.id not in done]
        probes = [p for p in own_probes if p.id not in done]
        left = len(recipes) + len(probes)
        if known is not None and (not left or time.monotonic() > end):
            return known, left
        if recipes:
            found = measure(recipes[:BATCH], controls, options, say)
        else:
            found = measure([], [], options, say, probes[:1])
        known = joined(known, timeless(found) if given.part else found)
        write(given.file, known)


def timeless(found: Evidence) -> Evidence:
    """Evidence without times: those of a machine that measures several parts say nothing."""
    none = {"time_ratio": None, "time_spread": None}
    rows = [
        msgspec.structs.replace(m, seconds=None, mode=m.mode and msgspec.structs.replace(m.mode, **none))
        for m in found.measurements
    ]
    settings = [msgspec.structs.replace(s, seconds=None, **none) for s in found.settings]
    return msgspec.structs.replace(found, measurements=tuple(rows), settings=tuple(settings))


def joined(known: Evidence | None, found: Evidence) -> Evidence:
    """Two sessions on one machine as one; a control counts as it came out worst. Raises UsageError."""
    if known is None:
        return found
    if known.machines and found.machines and known.machines != found.machines:
        raise UsageError("The file is of another machine or of other versions: name a new one.")
    worst = {(c.library, c.recipe): c for c in found.controls}
    worst |= {
        (c.library, c.recipe): c for c in known.controls if (c.library, c.recipe) not in worst or not c.passed
    }
    new = {m.recipe for m in found.measurements} - {m.recipe for m in known.measurements}
    probes = {s.probe for s in found.settings} - {s.probe for s in known.settings}
    return msgspec.structs.replace(
        known,
        machines=known.machines or found.machines,
        controls=tuple(worst[key] for key in sorted(worst)),
        measurements=(*known.measurements, *(m for m in found.measurements if m.recipe in new)),
        settings=(*known.settings, *(s for s in found.settings if s.probe in probes)),
    )


def report(evidence: Evidence) -> None:
    """What was measured against what is documented and published."""
    ops = wording.ops(evidence)
    for heading, pairs in wording.contradictions(evidence, ops).items():
        print(f"{heading}:")
        for title, words in pairs:
            print(f"  {title}: {words}")
    for recipe, outcome in PUBLISHED.items():
        seen = {m.outcome for m in evidence.measurements if m.recipe == recipe}
        came = DIFFERS if DIFFERS in seen else EQUAL if EQUAL in seen else "not run"
        print(f"published: {recipe} {outcome}; here: {came}")
    for title, words in wording.settings(evidence):
        print(f"setting: {title}: {words}")
    print(wording.control_failure(evidence) or wording.controls(evidence))


def say(message: str) -> None:
    """Show how far it is."""
    print(message, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
