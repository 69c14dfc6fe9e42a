"""Lints many files that nobody wrote for this linter, tree by tree, and prints what happened. Run by hand:

    python tests/breadth/many_files.py --limit 1200 PATH...      # each PATH is a tree of its own
    python tests/breadth/many_files.py --mutate 5000 PATH...     # damaged variants of the files below PATH

A tree is a package, the standard library with its tests, or a folder of notebooks. Each is linted by the
command line in a process of its own. One line a tree: files, exit status, DET001, DET002, DET004 (of runs that were
cut off), elapsed and CPU seconds of all processes, peak memory of the largest one; then the files that took the most
CPU time to parse and to analyze, and each DET002 and DET004. The last lines compare the trees. ``--cpu`` limits what
one process of a tree may use; where it is reached, the stage that it was in is printed.

The exit status is 1 when a run crashed or did not end, a file took over 20 CPU seconds to parse, or one to analyze
took over 60 and no DET004 says what was cut.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

PIECES = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    '"',
    "'",
    '"""',
    "\\",
    "\n",
    "\t",
    "\0",
    "lambda ",
    "case ",
    "match ",
    "if ",
    ":",
    ",",
    "f'{",
    "é",
    "*",
]


MOST = {"facts": 20.0, "checks": 60.0}
"""CPU seconds that one file may take; more in checks only where DET004 says what was cut."""
_TIMED = re.compile(r"(?:^|, )(\S+) ([0-9.]+) s")


class Outcome(NamedTuple):
    """What linting a tree took, and whether it ended as it must."""

    name: str
    files: int
    good: bool
    seconds: float
    megabytes: int


def lint(tree: Path, limit: float, cpu: int = 0) -> Outcome:
    """Lint one tree and print its lines."""
    command = [sys.executable, "-m", "d9mlint", "-v", "--no-cache", "--exit-zero", "--output-format", "json"]

    def limited() -> None:
        if cpu:
            resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))

    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([*command, str(tree)], stdout=out, stderr=err, preexec_fn=limited)
        timer = threading.Timer(limit, process.kill)
        timer.start()
        _, wait_status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(wait_status)
        out.seek(0)
        err.seek(0)
        findings = json.load(out) if process.returncode == 0 else []
        notes = err.read().decode(errors="replace")
    ended = process.returncode not in (-signal.SIGKILL, -signal.SIGXCPU)
    status = str(process.returncode) if ended else "time"
    # Advice is about single places that are not followed; a warning says that a run was cut off.
    codes = Counter(str(finding["code"]) for finding in findings if finding["severity"] != "advice")
    files = sum(1 for pattern in ("*.py", "*.ipynb") for _ in tree.rglob(pattern))
    counts = " ".join(f"{code}={codes[code]}" for code in ("DET001", "DET002", "DET004"))
    print(
        f"{tree.name}: files={files} status={status} {counts} elapsed={time.monotonic() - began:.0f}s "
        f"cpu={used.ru_utime + used.ru_stime:.0f}s peak={used.ru_maxrss // 1024}MB",
        flush=True,
    )
    cut = {str(f["filename"]) for f in findings if f["code"] == "DET004" and f["severity"] != "advice"}
    slow: list[str] = []
    for line in notes.splitlines():
        if line.startswith("most CPU time") or status != "0":
            print(f"    {line[-300:]}")
        stage, _, rest = line.removeprefix("most CPU time in ").partition(": ")
        for name, seconds in _TIMED.findall(rest) if stage in MOST else ():
            reported = stage == "checks" and any(one.endswith(name) for one in cut)
            if float(seconds) > MOST[stage] and not reported:
                slow.append(f"{name} took {seconds} CPU s in {stage}")
    for finding in findings:
        if finding["code"] in ("DET002", "DET004") and finding["severity"] != "advice":
            print(f"    {finding['filename']}: {finding['code']} {finding['message'].splitlines()[0]}")
    for line in slow:
        print(f"    TOO SLOW: {line}")
    seconds = used.ru_utime + used.ru_stime
    return Outcome(tree.name, files, status == "0" and not slow, seconds, used.ru_maxrss // 1024)


def mutate(sources: list[Path], count: int, directory: Path) -> None:
    """Write damaged variants of files: pieces deleted, doubled, swapped and put in."""
    chance = random.Random(0)
    texts = [path.read_text(encoding="utf-8", errors="replace") for path in sources]
    for number in range(count):
        text = texts[number % len(texts)]
        for _ in range(chance.randint(1, 6)):
            start = chance.randrange(len(text) + 1)
            end = min(len(text), start + chance.choice((1, 5, 50, 500)))
            piece = chance.choice(
                ("", text[start:end] * 2, chance.choice(PIECES) * chance.choice((1, 3, 300)))
            )
            text = text[:start] + piece + text[end:]
        (directory / f"mutated_{number}.py").write_text(text, encoding="utf-8", errors="replace")


def main() -> int:
    """Lint what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--limit", type=float, default=1200.0, help="seconds for one tree")
    parser.add_argument("--cpu", type=int, default=0, help="CPU seconds for one process of a tree")
    parser.add_argument("--mutate", type=int, default=0, help="lint so many damaged variants instead")
    chosen = parser.parse_args()
    if not chosen.mutate:
        done = [lint(path.resolve(), chosen.limit, chosen.cpu) for path in chosen.paths]  # every one of them
        slowest, largest = max(done, key=lambda o: o.seconds), max(done, key=lambda o: o.megabytes)
        bad = [one.name for one in done if not one.good]
        print(f"{len(done)} trees, {sum(o.files for o in done)} files; failed: {', '.join(bad) or 'none'}")
        print(
            f"slowest: {slowest.name}, {slowest.seconds:.0f} CPU s; most memory: {largest.name}, {largest.megabytes} MB"
        )
        return 1 if bad else 0
    sources = sorted(file for path in chosen.paths for file in path.rglob("*.py"))[:50]
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "pyproject.toml").touch()
        mutate(sources, chosen.mutate, Path(name))
        return 0 if lint(Path(name), chosen.limit, chosen.cpu).good else 1


if __name__ == "__main__":
    sys.exit(main())
