"""Runs the programs of ``tests/measured/programs`` on a GPU and notes which of their ops differ. By hand:

    python tests/breadth/gpu_programs.py tests/measured/h100-torch-2.11.json            # all programs
    python tests/breadth/gpu_programs.py tests/measured/h100-torch-2.11.json gru cumsum_1d

Each program seeds everything and trains a small model of one kind of layer. It is run under ``d9mlint trace --replay``,
which executes every op twice; three times in fresh processes, whose last lines (a loss and a digest of the weights) are
compared; and twice under ``torch.use_deterministic_algorithms(True)``. ``tests/measured`` holds the linter to it.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).resolve().parents[1] / "measured" / "programs"
RUNS = 3
TIMEOUT = 150
IN_MODE = """
import runpy, sys, torch
torch.use_deterministic_algorithms(True)
runpy.run_path(sys.argv[1], run_name="__main__")
"""


def execute(command: list[str], directory: str) -> tuple[int, str, str]:
    """Run a program: exit status, last line of its output and last line of its errors."""
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}
    done = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False
    )
    last = [(text.strip().splitlines() or [""])[-1] for text in (done.stdout, done.stderr)]
    return done.returncode, *last


def measured(program: Path) -> dict[str, Any]:
    """What a program does on the GPU, in the words of ``tests/measured/README.md``."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report.json")
        trace = [sys.executable, "-m", "d9mlint", "trace", "--replay", "--output-format", "json"]
        status, _, error = execute([*trace, "-o", str(report), str(program)], directory)
        if status != 0:
            return {"failed": error}
        sites = json.loads(report.read_text())["sites"]
        ends = {execute([sys.executable, str(program)], directory)[1] for _ in range(RUNS)}
        in_mode = [execute([sys.executable, "-c", IN_MODE, str(program)], directory) for _ in range(2)]
    raised = next((error for status, _, error in in_mode if status), "")
    return {
        "differs": sorted({(row_of(site), site["name"]) for site in sites}),
        "distinct": len(ends),
        "mode": raised.partition(", but you set")[0] or len({end for _, end, _ in in_mode}),
    }


def row_of(site: dict[str, Any]) -> int:
    """The innermost row of the program from which an op was called; of a backward op that of its forward op."""
    row: int = (site["forward"] or site["path"])[0]["row"]
    return row


def main() -> int:
    """0 when all programs ran."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("file", type=Path)
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--jobs", type=int, default=6, help="programs at once")
    given = parser.parse_args()
    known = json.loads(given.file.read_text()) if given.file.exists() else {}
    paths = [path for path in sorted(PROGRAMS.glob("*.py")) if path.stem in (given.programs or [path.stem])]
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for path, found in zip(paths, pool.map(measured, paths), strict=True):
            print(path.stem, found, flush=True)
            failed += "failed" in found
            known[path.stem] = found
            lines = [f"  {json.dumps(name)}: {json.dumps(known[name])}" for name in sorted(known)]
            given.file.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
