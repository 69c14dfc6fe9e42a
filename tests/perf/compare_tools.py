"""What other linters say about programs whose results are known: the table of ``rules/site/comparison-table.md``.

    python tests/perf/compare_tools.py [--tools DIRECTORY] > rules/site/comparison-table.md

Every case is a pair: a program with a hazard, and the same program without it. A tool tells the two apart when it reports
something about the first that it does not report about the second, whatever the message says. That is generous: no
mapping of rules is needed, and a style message that happens to go away counts.

* Orders: `tests/breadth/orders_by_execution.md`. Whether each program differs between runs was found by running it.
* Fixed programs: `tests/data/irreproducible.md`, before and after `d9mlint --fix --unsafe-fixes`; run by a test.
* Rule pages: each example of `rules/DET*.md` that is followed by its fixed form. They are tests of d9mlint.

``--tools`` is the ``bin`` directory of an environment with the other tools; those that are not there are left out.
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))
sys.path.insert(0, str(ROOT / "tests/breadth"))

from orders_by_execution import pairs as order_pairs  # noqa: E402
from support import blocks  # noqa: E402


class Case(NamedTuple):
    """A program with a hazard and its twin without."""

    group: str
    name: str
    hazard: str
    twin: str


Reports = Mapping[str, collections.Counter[str]]
"""For each file, how often a tool reports which code."""


def orders() -> Iterator[Case]:
    """Pairs whose truth was found by execution."""
    for pair in order_pairs():
        yield Case(
            "orders",
            pair.name,
            pair.program.replace("HERE", pair.hazard),
            pair.program.replace("HERE", pair.twin),
        )


def fixed_programs() -> Iterator[Case]:
    """Programs of one file that differ between runs, before and after the fixes of d9mlint."""
    text = (ROOT / "tests/data/irreproducible.md").read_text(encoding="utf-8")
    for part in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, body = part.partition("\n")
        found = re.findall(r"^```python\n(.*?)^```", body, flags=re.M | re.S)
        if len(found) == 1:
            yield Case("fixed", title, found[0], d9mlint_fixed(found[0]))


def d9mlint_fixed(program: str) -> str:
    """A program after ``--fix --unsafe-fixes``."""
    with tempfile.TemporaryDirectory() as work:
        path = Path(work) / "train.py"
        path.write_text(program, encoding="utf-8")
        subprocess.run(
            [sys.executable, "-m", "d9mlint", "--fix", "--unsafe-fixes", "-q", "--no-cache", "train.py"],
            cwd=work, capture_output=True, check=False,
        )  # fmt: skip
        return path.read_text(encoding="utf-8")


def rule_pages() -> Iterator[Case]:
    """Examples that are followed by their fixed form; the marks of tests are taken out."""
    for page in sorted((ROOT / "rules").glob("DET*.md")):
        last = None
        for block in blocks(page.read_text(encoding="utf-8")):
            if block.language != "python":
                continue
            if last is not None and "fixed" in block.info:
                yield Case("pages", f"{page.stem} {block.line}", unmarked(last), unmarked(block.text))
            last = block.text


def unmarked(text: str) -> str:
    """Code without the marks that say what is expected."""
    return re.sub(r"[ \t]*#[ \t]*(?:ok|(?:todo-)?error:[ \t]*\[[A-Z0-9, ]+\])[ \t]*$", "", text, flags=re.M)


def lines_of(pattern: str) -> Callable[[str], Iterator[tuple[str, str]]]:
    """A reader of lines: groups ``file`` and ``code`` of a pattern."""

    def read(output: str) -> Iterator[tuple[str, str]]:
        for found in re.finditer(pattern, output, flags=re.M):
            yield found["file"], found["code"]

    return read


def json_of(file: str, code: str, key: str = "") -> Callable[[str], Iterator[tuple[str, str]]]:
    """A reader of a JSON list of objects."""

    def read(output: str) -> Iterator[tuple[str, str]]:
        data = json.loads(output or "[]")
        for item in data[key] if key else data:
            yield item[file], item[code] or "syntax"

    return read


LINES = lines_of(r"^(?P<file>[^:\n]+):\d+:\d+: (?P<code>\w+)")
MESSAGE = "--msg-template={path}:{line}:{column}: {msg_id}"
RUFF = "check --isolated --preview --select=ALL --no-cache --output-format=json --quiet ."
TOOLS: dict[str, tuple[str, list[str], Callable[[str], Iterator[tuple[str, str]]]]] = {
    "ruff, all rules": ("ruff", RUFF.split(), json_of("filename", "code")),
    "pylint, all checks": (
        "pylint",
        ["--enable=all", "--disable=import-error", MESSAGE, "--recursive=y", "."],
        LINES,
    ),
    "flake8 with flake8-bugbear": ("flake8", ["--isolated", "--select=E,F,W,B,C", "."], LINES),
    "dlint (flake8)": ("flake8", ["--isolated", "--select=DUO", "."], LINES),
    "bandit": ("bandit", ["-r", "-q", "-f", "json", "."], json_of("filename", "test_id", "results")),
    "TorchFix, all rules": ("torchfix", ["--select=ALL", "."], LINES),
}
"""For each row: the program, its arguments, and a reader of its output."""


def measure(cases: list[Case], tools: str) -> dict[str, dict[str, int]]:
    """For each tool, how many pairs of each group it tells apart."""
    result: dict[str, dict[str, int]] = {}
    with tempfile.TemporaryDirectory() as work:
        for number, case in enumerate(cases):
            for kind, text in (("hazard", case.hazard), ("twin", case.twin)):
                directory = Path(work) / f"{number:03}_{kind}"
                directory.mkdir()
                (directory / "train.py").write_text(text, encoding="utf-8")
        for title, (program, arguments, read) in TOOLS.items():
            found = Path(tools) / program
            if found.exists():
                result[title] = apart(cases, collect(read(run([str(found), *arguments], work)), work))
        result["d9mlint"] = apart(cases, own(cases, work))
    return result


def run(command: list[str], directory: str) -> str:
    """What a tool prints on standard output; how it exits is not looked at."""
    environment = {**os.environ, "PATH": f"{Path(command[0]).parent}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(
        command, cwd=directory, capture_output=True, text=True, check=False, env=environment
    ).stdout


def collect(reports: Iterator[tuple[str, str]], work: str) -> Reports:
    """Reports by the directory of their file."""
    counts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for file, code in reports:
        directory = os.path.relpath(os.path.join(os.path.realpath(work), file), os.path.realpath(work))
        counts[directory.split(os.sep)[0]][code] += 1
    return counts


def own(cases: list[Case], work: str) -> Reports:
    """What d9mlint reports with its default rules, each program alone."""
    from d9mlint.config.settings import Settings
    from d9mlint.pipeline import check

    counts: dict[str, collections.Counter[str]] = {}
    for number, _ in enumerate(cases):
        for kind in ("hazard", "twin"):
            directory = f"{number:03}_{kind}"
            result = check([os.path.join(work, directory)], Settings(cache=False, jobs=1))
            counts[directory] = collections.Counter(item.finding.code for item in result.items)
    return counts


def apart(cases: list[Case], reports: Reports) -> dict[str, int]:
    """How many pairs of each group have a report about the hazard that the twin has not."""
    found: dict[str, int] = collections.Counter()
    for number, case in enumerate(cases):
        empty: collections.Counter[str] = collections.Counter()
        more = reports.get(f"{number:03}_hazard", empty) - reports.get(f"{number:03}_twin", empty)
        found[case.group] += bool(more)
    return found


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--tools", default=str(Path(sys.executable).parent), metavar="DIRECTORY")
    arguments = parser.parse_args()
    cases = [*orders(), *fixed_programs(), *rule_pages()]
    sizes = collections.Counter(case.group for case in cases)
    print("| tool | orders | fixed programs | rule pages |")
    print("|---|---|---|---|")
    for title, found in measure(cases, arguments.tools).items():
        row = [f"{found[group]} of {sizes[group]}" for group in ("orders", "fixed", "pages")]
        print(f"| {title} | {' | '.join(row)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
