"""Lints many files that nobody wrote for this linter, tree by tree, and prints what happened. Run by hand:

    python tests/breadth/many_files.py --limit 1200 PATH...      # each PATH is a tree of its own
    python tests/breadth/many_files.py --mutate 5000 PATH...     # damaged variants of the files below PATH

A tree is a package, the standard library with its tests, or a folder of notebooks. Each is linted by the
command line in a process of its own. One line a tree: files, exit status, DET001, DET002, DET004, elapsed and
CPU seconds of all processes, peak memory of the largest one; then the files that took the most CPU time to
parse and to analyze, and each DET002 and DET004. The exit status is 1 when a run crashed or did not end.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

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


def lint(tree: Path, limit: float) -> bool:
    """Lint one tree and print its lines; whether the run ended as it must."""
    command = [sys.executable, "-m", "d9mlint", "-v", "--no-cache", "--exit-zero", "--output-format", "json"]
    began = time.monotonic()
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        process = subprocess.Popen([*command, str(tree)], stdout=out, stderr=err)
        timer = threading.Timer(limit, process.kill)
        timer.start()
        _, wait_status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(wait_status)
        out.seek(0)
        err.seek(0)
        findings = json.load(out) if process.returncode == 0 else []
        notes = err.read().decode(errors="replace")
    status = "time" if process.returncode == -signal.SIGKILL else str(process.returncode)
    codes = Counter(str(finding["code"]) for finding in findings)
    files = sum(1 for pattern in ("*.py", "*.ipynb") for _ in tree.rglob(pattern))
    counts = " ".join(f"{code}={codes[code]}" for code in ("DET001", "DET002", "DET004"))
    print(
        f"{tree.name}: files={files} status={status} {counts} elapsed={time.monotonic() - began:.0f}s "
        f"cpu={used.ru_utime + used.ru_stime:.0f}s peak={used.ru_maxrss // 1024}MB",
        flush=True,
    )
    for line in notes.splitlines():
        if line.startswith("most CPU time") or status != "0":
            print(f"    {line}")
    for finding in findings:
        if finding["code"] in ("DET002", "DET004"):
            print(f"    {finding['filename']}: {finding['code']} {finding['message'].splitlines()[0]}")
    return status == "0"


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
    parser.add_argument("--mutate", type=int, default=0, help="lint so many damaged variants instead")
    chosen = parser.parse_args()
    if not chosen.mutate:
        ended = [lint(path.resolve(), chosen.limit) for path in chosen.paths]  # every one of them
        return 0 if all(ended) else 1
    sources = sorted(file for path in chosen.paths for file in path.rglob("*.py"))[:50]
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "pyproject.toml").touch()
        mutate(sources, chosen.mutate, Path(name))
        return 0 if lint(Path(name), chosen.limit) else 1


if __name__ == "__main__":
    sys.exit(main())
