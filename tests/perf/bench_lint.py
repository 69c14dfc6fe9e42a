"""What a whole run costs beside other tools: CPU seconds on the same tree, taken in turns.

    python tests/perf/bench_lint.py DIRECTORY [ROUNDS]

Compared are `libcst.parse_module` over all files (what every linter built on libcst pays), TorchFix and ruff (if
they are installed; ruff with all its rules, without a cache), and d9mlint: cold, with one file changed, and warm.
Every figure is the median of the rounds (3), user and system time of all processes together, so that a busy
machine and a second core change little. The ratios are what to quote.
"""

from __future__ import annotations

import importlib.util
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

PARSE = """
import sys, libcst
for name in sys.stdin.read().splitlines():
    try:
        libcst.parse_module(open(name, 'rb').read())
    except libcst.ParserSyntaxError:
        pass
"""


def cpu_seconds(command: list[str], directory: str, stdin: str = "") -> float:
    """CPU seconds of a command and its children; its output and exit code are not looked at."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(
        command,
        cwd=directory,
        input=stdin.encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> int:
    """Measure and print."""
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    rounds = int(sys.argv[2]) if len(sys.argv) == 3 else 3
    with tempfile.TemporaryDirectory() as work:
        tree = os.path.join(work, "tree")
        shutil.copytree(
            sys.argv[1], tree, symlinks=True, ignore=shutil.ignore_patterns(".git", ".d9mlint_cache")
        )
        files = sorted(str(path) for path in Path(tree).rglob("*.py"))
        lines = sum(Path(name).read_bytes().count(b"\n") for name in files)
        if not files:
            print("no code found")
            return 2
        changed = max(files, key=os.path.getsize)
        lint = [sys.executable, "-m", "d9mlint", "--exit-zero", "-q", tree]

        def edit() -> float:
            with open(changed, "a", encoding="utf-8") as stream:
                stream.write("\n# one line more\n")
            return cpu_seconds(lint, work)

        def cold() -> float:
            shutil.rmtree(os.path.join(tree, ".d9mlint_cache"), ignore_errors=True)
            return cpu_seconds(lint, work)

        cases: dict[str, Callable[[], float]] = {
            "libcst.parse_module alone": lambda: cpu_seconds(
                [sys.executable, "-c", PARSE], work, "\n".join(files)
            ),
        }
        torchfix = shutil.which(
            "torchfix", path=f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"
        )
        if torchfix:
            cases["TorchFix, all rules"] = lambda: cpu_seconds([torchfix, "--select", "ALL", tree], work)
        if importlib.util.find_spec("ruff"):
            cases["ruff, all rules"] = lambda: cpu_seconds(
                [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "ALL", tree],
                work,
            )
        cases["d9mlint, cold"] = cold
        cases["d9mlint, one file changed"] = edit
        cases["d9mlint, warm"] = lambda: cpu_seconds(lint, work)
        taken: dict[str, list[float]] = {name: [] for name in cases}
        for _ in range(rounds):
            for name, case in cases.items():
                taken[name].append(case())
    base = statistics.median(taken["libcst.parse_module alone"])
    print(f"{len(files)} files, {lines} lines, {rounds} rounds; CPU seconds (median, lowest, highest)")
    for name, values in taken.items():
        middle = statistics.median(values)
        print(
            f"{name:28} {middle:8.2f} {min(values):8.2f} {max(values):8.2f}   x{middle / base:5.2f} of parsing"
            f"   {middle / lines * 1e6:7.1f} us a line"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
