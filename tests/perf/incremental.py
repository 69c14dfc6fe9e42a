"""What an edit costs beside a cold run of the same tree: CPU seconds of all processes. Run by hand:

    python tests/perf/incremental.py DIRECTORY [ROUNDS]

Edits are made in a copy: none; a comment behind the last line and one before the first, which moves all code of the
file; a function's body in a leaf (a file that no other file imports); and in a central module (of those with a
function the one that most other files import), once with the same effects and once with a draw of random numbers
more. Each figure is a ratio to the cold run, net of a fixed cost: that of the
same command after the same edit in a project of one file. Medians of the rounds (3).
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

ONE = "import torch\n\n\ndef draw():\n    return torch.rand(3)\n\n\nif __name__ == '__main__':\n    print(draw())\n"
TARGETS = {
    "nothing changed": 1,
    "a comment": 2,
    "a comment that moves code": 2,
    "body of a leaf": 5,
    "body of a central module": 30,
    "effects of a central module": 60,
}


def cpu_seconds(command: list[str], directory: str) -> float:
    """CPU seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(f"{command}: exit status {done.returncode}")
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def has_body(path: Path) -> bool:
    """Whether a file has a function with statements to put one between."""
    import ast

    try:
        tree = ast.parse(path.read_text(encoding="utf-8", errors="replace"))
    except (SyntaxError, ValueError, RecursionError):
        return False
    return any(isinstance(one, ast.FunctionDef) and len(one.body) > 1 for one in ast.walk(tree))


def insert(path: Path, statement: str) -> None:
    """Put a statement at the beginning of the file's last function, behind its docstring, or at the file's end."""
    import ast

    text = path.read_text(encoding="utf-8")
    functions = [
        one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef) and len(one.body) > 1
    ]
    if not functions:
        path.write_text(f"{text}\n{statement}\n", encoding="utf-8")
        return
    first = max(functions, key=lambda one: one.lineno).body[1]
    lines = text.splitlines(keepends=True)
    lines.insert(first.lineno - 1, f"{' ' * first.col_offset}{statement}\n")
    path.write_text("".join(lines), encoding="utf-8")


def importers(tree: Path) -> dict[Path, int]:
    """How many other files import each file, directly."""
    from d9mlint.frontend.extract import extract
    from d9mlint.ir import nodes as m
    from d9mlint.ir.traversal import nodes
    from d9mlint.project.modules import ModuleFile, Modules

    files = [
        ModuleFile(
            str(path), path.relative_to(tree).as_posix(), extract(path.read_text(errors="replace"), "")
        )
        for path in sorted(tree.rglob("*.py"))
    ]
    modules = Modules(files, str(tree))
    count = {Path(file.path): 0 for file in files}
    for file in files:
        found: set[str] = set()
        for node in nodes([stmt for one in file.facts.functions for stmt in one.body]):
            if isinstance(node, m.ImportFrom):
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
                for name in names:
                    target = (
                        modules.relative(file, node.level, name)
                        if node.level
                        else modules.absolute(file, file.directory, name)
                    )
                    if target is not None and target.file is not None:
                        found.add(target.file.path)
            elif isinstance(node, m.Import):
                for alias in node.names:
                    target = modules.absolute(file, file.directory, alias.name)
                    if target is not None and target.file is not None:
                        found.add(target.file.path)
        for path in found - {file.path}:
            count[Path(path)] += 1
    return count


def edits(central: Path, leaf: Path) -> dict[str, Callable[[], None]]:
    """The edits by their names."""

    def comment() -> None:
        with central.open("a", encoding="utf-8") as stream:
            stream.write("\n# one line more\n")

    def comment_above() -> None:
        text = central.read_text(encoding="utf-8")
        central.write_text(f"# One line more.\n{text}", encoding="utf-8")

    return {
        "nothing changed": lambda: None,
        "a comment": comment,
        "a comment that moves code": comment_above,
        "body of a leaf": lambda: insert(leaf, "_unused = 1 + 1"),
        "body of a central module": lambda: insert(central, "_unused = 1 + 1"),
        "effects of a central module": lambda: insert(central, "import random as _r; _r.random()"),
    }


def measure(tree: Path, work: str, central: Path, leaf: Path, rounds: int) -> dict[str, float]:
    """Median CPU seconds of a cold run, and of the run after each edit."""
    lint = [sys.executable, "-m", "d9mlint", "--exit-zero", "-q", str(tree)]
    taken: dict[str, list[float]] = {}
    for _ in range(rounds):
        shutil.rmtree(tree / ".d9mlint_cache", ignore_errors=True)
        taken.setdefault("cold", []).append(cpu_seconds(lint, work))
        for name, edit in edits(central, leaf).items():
            edit()
            taken.setdefault(name, []).append(cpu_seconds(lint, work))
    return {name: statistics.median(values) for name, values in taken.items()}


def main() -> int:
    """Measure and print."""
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    rounds = int(sys.argv[2]) if len(sys.argv) == 3 else 3
    with tempfile.TemporaryDirectory() as work:
        tree, one = Path(work) / "tree", Path(work) / "one"
        shutil.copytree(
            sys.argv[1], tree, symlinks=True, ignore=shutil.ignore_patterns(".git", ".d9mlint_cache")
        )
        one.mkdir()
        for top in (tree, one):
            (top / "pyproject.toml").touch()
        single = one / "a.py"
        single.write_text(ONE)
        count = importers(tree)
        central = max(filter(has_body, count), key=lambda path: (count[path], str(path)))
        leaves = [path for path, by in count.items() if not by and "def " in path.read_text(errors="replace")]
        leaf = sorted(leaves or [central], key=os.path.getsize)[len(leaves) // 2]
        fixed = measure(one, work, single, single, rounds)
        spent = measure(tree, work, central, leaf, rounds)
        print(
            f"central: {central.relative_to(tree)} ({count[central]} importers); leaf: {leaf.relative_to(tree)}"
        )
    whole = spent["cold"] - fixed["cold"]
    print(f"{'':30} {'CPU s':>8} {'fixed':>8} {'net, of cold':>13} {'aim':>6}")
    for name, seconds in spent.items():
        net = 100 * (seconds - fixed[name]) / whole
        aim = f"{TARGETS[name]} %" if name in TARGETS else ""
        print(f"{name:30} {seconds:8.2f} {fixed[name]:8.2f} {net:11.1f} % {aim:>6}")
    return 0


if __name__ == "__main__":
    os.environ.setdefault("PYTHONHASHSEED", "0")
    sys.exit(main())
