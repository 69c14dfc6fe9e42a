"""How the cost of an analysis grows with a program. Run by hand:

    python tests/perf/growth.py [NAME...]

Programs of growing size are made by generators and analyzed from their entry point. Printed are the steps of the analysis
(the same on every machine) and its CPU seconds, for each size, and the growth exponent between the last two sizes:
1 is linear, 2 quadratic. Patterns that double with each level have exponents far above; they must end
at a bound, which the last column says.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple

from d9mlint import knowledge
from d9mlint.analysis import analyze
from d9mlint.checks.registry import Rules
from d9mlint.config.targets import find_targets
from d9mlint.frontend.extract import extract
from d9mlint.interp.entry_run import Analyzer, Project, ProjectFile

ROOT = "/project"
CLASS = "class A:\n    def __init__(self, x):\n        self.x = x\n\n"
Program = Mapping[str, str]


class Growth(NamedTuple):
    """Programs by size."""

    make: Callable[[int], Program]
    sizes: tuple[int, ...]


def one(text: str) -> Program:
    """A program of one file."""
    return {"main.py": f"import torch\n{text}\nif __name__ == '__main__':\n    main()\n"}


def levels(first: str, level: str, last: str) -> Callable[[int], Program]:
    """Functions that call the one below them: ``level`` is the body of ``f{i}`` with ``{j}`` for the one below."""

    def make(size: int) -> Program:
        parts = [f"def f0(a):\n    return {first}\n"]
        for i in range(1, size + 1):
            body = level.replace("{j}", str(i - 1))
            parts.append(f"def f{i}(a):\n    {body}\n")
        return one(CLASS + "\n".join(parts) + f"\ndef main():\n    print(f{size}({last}))\n")

    return make


def chain(size: int) -> Program:
    """Functions that call the next."""
    parts = [f"def f{i}(x):\n    y = x + {i}\n    return f{i - 1}(y)\n" for i in range(1, size + 1)]
    calls = "\n".join(f"    f{i}(torch.rand(3))" for i in range(0, size + 1, 10))
    return one("def f0(x):\n    return x\n" + "\n".join(parts) + f"\ndef main():\n{calls}\n")


def hierarchy(size: int) -> Program:
    """Classes that are derived from one another, each method from the class above."""
    parts = ["class C0:\n    def m(self):\n        return 0\n"]
    parts += [
        f"class C{i}(C{i - 1}):\n    def n{i}(self):\n        return self.m()\n" for i in range(1, size + 1)
    ]
    calls = "\n".join(f"    C{i}().n{i}()" for i in range(1, size + 1))
    return one("\n".join(parts) + f"\ndef main():\n{calls}\n")


def modules(size: int) -> Program:
    """Modules that are imported and used by one script."""
    files = {
        f"m{i}.py": f"import torch\n\ndef run(x):\n    return torch.relu(x) + {i}\n" for i in range(size)
    }
    imports = "".join(f"import m{i}\n" for i in range(size))
    calls = "\n".join(f"    m{i}.run(torch.rand(3))" for i in range(size))
    return {**files, **one(f"{imports}\ndef main():\n{calls}\n")}


def entries(size: int) -> Program:
    """Scripts that import one package of thirty modules."""
    files = {
        f"pkg/m{i}.py": f"import torch\n\ndef run(x):\n    return torch.relu(x) + {i}\n" for i in range(30)
    }
    files["pkg/__init__.py"] = "".join(f"from pkg import m{i}\n" for i in range(30))
    script = "import pkg\nimport torch\nif __name__ == '__main__':\n    print(pkg.m1.run(torch.rand(3)))\n"
    return {**files, **{f"run_{i}.py": script for i in range(size)}}


def tree_of_modules(size: int) -> Program:
    """Classes each of which makes two of the one below."""
    parts = ["class M0:\n    def __init__(self):\n        self.w = torch.rand(3)\n"]
    parts += [
        f"class M{i}:\n    def __init__(self):\n        self.a = M{i - 1}()\n        self.b = M{i - 1}()\n"
        for i in range(1, size + 1)
    ]
    return one("\n".join(parts) + f"\ndef main():\n    M{size}()\n")


def loops(size: int) -> Program:
    """Loops over ten numbers inside one another."""
    lines = [f"{'    ' * (i + 1)}for x{i} in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9):" for i in range(size)]
    return one("def main():\n" + "\n".join(lines) + f"\n{'    ' * (size + 1)}y = x0 + x{size - 1}\n")


def comprehensions(size: int) -> Program:
    """Comprehensions over ten numbers inside one another."""
    inner = "0"
    for i in range(size):
        inner = f"[{inner} for x{i} in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)]"
    return one(f"def main():\n    y = {inner}\n")


def items(size: int) -> Program:
    """One large dictionary."""
    return one(
        "TABLE = {"
        + ", ".join(f"'k{i}': {i}" for i in range(size))
        + "}\ndef main():\n    print(TABLE['k1'])\n"
    )


LINEAR = (50, 100, 200)
DEEP = (6, 10, 14, 20, 30)
PROGRAMS = {
    "functions": Growth(chain, LINEAR),
    "classes": Growth(hierarchy, (25, 50, 100)),
    "modules": Growth(modules, LINEAR),
    "entry points": Growth(entries, (10, 20, 40)),
    "dictionary": Growth(items, (1000, 4000, 16000)),
    "two objects a level": Growth(levels("a", "f{j}(A(1)); return f{j}(A(2))", "A(0)"), DEEP),
    "two dictionaries a level": Growth(levels("a", "f{j}({'a': 1}); return f{j}(dict(a=a, b=1))", "1"), DEEP),
    "two lambdas a level": Growth(levels("a", "f{j}(lambda: 1); return f{j}(lambda: a)", "1"), DEEP),
    "two numbers a level": Growth(levels("a", "f{j}(a + 1); return f{j}(a * 2)", "1"), DEEP),
    "tree of modules": Growth(tree_of_modules, (6, 9, 12, 15)),
    "nested loops": Growth(loops, (2, 3, 4, 5, 6)),
    "nested comprehensions": Growth(comprehensions, (2, 3, 4, 5, 6)),
}


def measure(program: Program) -> tuple[int, float, bool]:
    """Steps and CPU seconds of an analysis, and whether it was cut."""
    facts = [ProjectFile(f"{ROOT}/{name}", name, extract(text, "")) for name, text in program.items()]
    known = knowledge.load()
    targets = find_targets("/nowhere", torch_version="2.6", tensorflow_version="2.15")
    analyzer = Analyzer(Project(facts, ROOT, [known]), known, targets, "cuda", Rules(known, known.rules))
    began = time.process_time()
    runs = analyze(analyzer)
    return (
        sum(report.steps for report in runs.reports),
        time.process_time() - began,
        any(report.cuts or report.failure for report in runs.reports),
    )


def exponent(sizes: tuple[int, ...], values: list[float]) -> float:
    """The growth exponent between the last two sizes."""
    return math.log(max(values[-1], 1e-9) / max(values[-2], 1e-9)) / math.log(sizes[-1] / sizes[-2])


def main() -> int:
    """Measure and print."""
    print(f"{'program':26} {'sizes':22} {'steps':40} {'of steps':>8} {'CPU s':>7} {'of CPU':>7}")
    for name, (make, sizes) in PROGRAMS.items():
        if sys.argv[1:] and name not in sys.argv[1:]:
            continue
        found = [measure(make(size)) for size in sizes]
        steps, seconds, cut = ([one[i] for one in found] for i in range(3))
        print(
            f"{name:26} {' '.join(map(str, sizes)):22} {' '.join(map(str, steps)):40} "
            f"{exponent(sizes, [float(x) for x in steps]):8.2f} {seconds[-1]:7.2f} "
            f"{exponent(sizes, [float(x) for x in seconds]):7.2f}{'  cut' if cut[-1] else ''}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
