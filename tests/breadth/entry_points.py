"""Entry points are independent: checked over real projects with several of them. Run by hand:

    python tests/breadth/entry_points.py DIRECTORY...      # each DIRECTORY is a project of its own

What is found for an entry point must be the same: alone and after others whose imports it takes over, in any order,
beside an added script that seeds and sets modes, without or under another name of a script that it does not
import, and in 1, 2 and 7 processes (there the bytes of all findings). Compared are code and place of each
finding by entry point, but for files that are imported by another file in one variant and in the other not. One
line a project; a line for each difference; the exit status is 1 where there is one.
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from d9mlint import knowledge
from d9mlint.analysis import analyze
from d9mlint.base.entry_report import EntryReport
from d9mlint.checks.registry import Rules
from d9mlint.config.targets import find_targets
from d9mlint.frontend.extract import extract
from d9mlint.interp.entry_run import Analyzer, Project, ProjectFile
from d9mlint.ir.nodes import FileFacts
from d9mlint.store.executors import Serial
from d9mlint.store.executors.processes import Processes

ROOT = "/project"
ADDED = "aaa_added.py"
SEEDS = (
    "import random\nimport numpy as np\nimport torch\nrandom.seed(0)\nnp.random.seed(0)\ntorch.manual_seed(0)\n"
    "torch.use_deterministic_algorithms(True)\ntorch.backends.cudnn.benchmark = True\n"
)
WORKERS = (1, 2, 7)

Files = Mapping[str, FileFacts]
Name = tuple[str, str]
"""An entry point: the path of its file below the root, and its function."""
Found = frozenset[tuple[str, str, int, int]]
"""Codes and places."""


class Change(NamedTuple):
    """A variant of a project: what is done to it, its files, and the new names of entry points."""

    what: str
    files: Files
    names: Mapping[str, str]


def analyzer(files: Files) -> Analyzer:
    """What makes the reports of a project."""
    known = knowledge.load()
    targets = find_targets("/nowhere", torch_version="2.6", tensorflow_version="2.15")
    read = [ProjectFile(f"{ROOT}/{name}", name, facts) for name, facts in files.items()]
    project = Project(read, ROOT, [known])
    return Analyzer(project, known, targets, "cuda", Rules(known, known.rules))


def found(report: EntryReport) -> Found:
    """What a report says, without what may name other entry points."""
    return frozenset((one.code, one.path, one.start, one.end) for one in report.findings)


def reports(made: Analyzer, order: Iterable[int]) -> dict[Name, EntryReport]:
    """The reports of entry points, made one after the other."""
    entries = made.project.entries
    return {
        (entries[index].file.relative, entries[index].function or ""): made.run_entry_at(index)
        for index in order
    }


def is_imported(made: Analyzer, path: str) -> bool:
    """Whether another file imports a file, by its path below the root."""
    return f"{ROOT}/{path}" in made.project.imported


def read(directory: Path, most: int) -> Files:
    """The facts of a project's files; nothing where there are more than ``most``."""
    paths = sorted(path for path in directory.rglob("*.py") if path.is_file())
    if len(paths) > most:
        return {}
    return {
        path.relative_to(directory).as_posix(): extract(
            path.read_text(encoding="utf-8", errors="replace"), ""
        )
        for path in paths
    }


def changes(files: Files, known: Mapping[Name, EntryReport], some: int) -> Iterable[Change]:
    """A script more, one less, one under another name: scripts that no entry point imports."""
    chance = random.Random(0)
    paths = sorted(files)
    runs = {name: {paths[index] for index in report.files} for name, report in known.items()}
    imported = [module for module in paths if sum(module in read for read in runs.values()) > 1]
    names = [
        Path(one).with_suffix("").as_posix().replace("/", ".").removesuffix(".__init__") for one in imported
    ]
    added = SEEDS + "".join(f"try:\n    import {one}\nexcept ImportError:\n    pass\n" for one in names)
    yield Change("adding a script", {**files, ADDED: extract(added, "")}, {})
    alone = [
        name
        for name in known
        if not any(name[0] in read for other, read in runs.items() if other[0] != name[0])
    ]
    for name, _ in chance.sample(alone, min(some, len(alone))):
        left = {path: facts for path, facts in files.items() if path != name}
        yield Change(f"deleting {name}", left, {})
        head, _, last = name.rpartition("/")
        new = f"{head}/zzz_{last}" if head else f"zzz_{last}"
        yield Change(f"renaming {name}", {**left, new: files[name]}, {new: name})


def differences(files: Files, some: int) -> Iterable[str]:
    """What differs between variants of a project."""
    first = analyzer(files)
    count = len(first.project.entries)
    known = reports(first, range(count))
    for index in range(count):
        for name, report in reports(analyzer(files), [index]).items():
            if found(report) != found(known[name]):
                yield f"{name}: alone {sorted(found(report) ^ found(known[name]))}"
    orders = [list(range(count))[::-1], random.Random(1).sample(range(count), count)]
    for order in orders:
        for name, report in reports(analyzer(files), order).items():
            if found(report) != found(known[name]):
                yield f"{name}: in another order {sorted(found(report) ^ found(known[name]))}"
    for change in changes(files, known, some):
        made = analyzer(change.files)
        for (path, function), report in reports(made, range(len(made.project.entries))).items():
            old = known.get((change.names.get(path, path), function))
            if old is None or is_imported(made, path) is not is_imported(first, old.relative):
                # A module that another file imports is no script of its own any more: see DET101.
                continue
            new, name = f"{ROOT}/{path}", f"{ROOT}/{old.relative}"
            now = {(c, name if p == new else p, start, end) for c, p, start, end in found(report)}
            if now != found(old):
                yield f"{path}: {change.what} {sorted(now ^ found(old))}"
    all_bytes = {
        msgspec.json.encode(analyze(analyzer(files), Serial() if jobs == 1 else Processes(jobs)).findings())
        for jobs in WORKERS
    }
    if len(all_bytes) > 1:
        yield f"findings differ between {WORKERS} processes"


def main() -> int:
    """Check what the command line names."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("directories", nargs="+", type=Path)
    parser.add_argument("--some", type=int, default=3, help="so many scripts are deleted and renamed")
    parser.add_argument("--most", type=int, default=400, help="larger projects (in files) are left out")
    chosen = parser.parse_args()
    bad = 0
    for directory in chosen.directories:
        files = read(directory.resolve(), chosen.most)
        count = len(analyzer(files).project.entries) if files else 0
        if count < 2:
            print(f"{directory.name}: {count} entry points, left out", flush=True)
            continue
        told = list(differences(files, chosen.some))
        bad += bool(told)
        print(
            f"{directory.name}: {len(files)} files, {count} entry points, {len(told)} differences", flush=True
        )
        for line in told:
            print(f"    {line}", flush=True)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
