"""Traces clean programs many times: every run must be equal. Prints one line for a program and the sum.

python tests/breadth/trace_clean.py [RUNS]     # 1000 unless given, spread over the programs of one process
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAMS = Path(__file__).parents[1] / "trace" / "programs" / "clean"


def alarms(program: Path, runs: int) -> int:
    """How many of some traced runs of a program were not equal."""
    found = 0
    for _ in range(runs):
        with tempfile.TemporaryDirectory() as directory:
            shutil.copy(program, directory)
            report = Path(directory) / "report.json"
            command = [sys.executable, "-m", "d9mlint", "trace", "--output-format", "json", "-o", str(report)]
            subprocess.run([*command, program.name], cwd=directory, capture_output=True)
            outcome = json.loads(report.read_text()) if report.exists() else {"outcome": "no report"}
            if outcome["outcome"] != "equal":
                found += 1
                print(json.dumps(outcome.get("difference") or outcome.get("reason")), file=sys.stderr)
    return found


def main() -> int:
    """Returns 1 where a run was not equal."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 1000
    programs = [p for p in sorted(PROGRAMS.glob("*.py")) if not p.name.startswith(("ddp", "fsdp"))]
    total = 0
    for number, program in enumerate(programs):
        share = runs // len(programs) + (number < runs % len(programs))
        found = alarms(program, share)
        total += found
        print(f"{program.stem}: {share} runs, {found} not equal", flush=True)
    print(f"{runs} runs, {total} not equal")
    return 1 if total else 0


if __name__ == "__main__":
    sys.exit(main())
