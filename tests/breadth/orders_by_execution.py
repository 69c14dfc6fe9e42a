"""Run small programs with different hash seeds and shuffled listings, and compare with what is reported about them.

``python tests/breadth/orders_by_execution.py [WORD]``: all programs of ``orders_by_execution.md``, or those with this
word in their names. A hazard has to differ between runs and be reported; its twin has to be equal and silent. Exits
with status 1 otherwise.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import lint

CODES = ("DET209", "DET210", "DET211", "DET213")
RUNS = 4

SHUFFLED = """\
import concurrent.futures, os, random
_random = random.Random(int(os.environ["LISTING_SEED"]))
_listdir, _scandir, _completed = os.listdir, os.scandir, concurrent.futures.as_completed
def listdir(path="."):
    names = sorted(_listdir(path))
    _random.shuffle(names)
    return names
class Entries:
    def __init__(self, found): self.found = iter(found)
    def __iter__(self): return self
    def __next__(self): return next(self.found)
    def __enter__(self): return self
    def __exit__(self, *args): pass
    def close(self): pass
def scandir(path="."):
    with _scandir(path) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    _random.shuffle(entries)
    return Entries(entries)
def as_completed(futures, timeout=None):
    futures = list(futures)
    _random.shuffle(futures)
    return iter(futures)
os.listdir, os.scandir, concurrent.futures.as_completed = listdir, scandir, as_completed
"""


class Pair(NamedTuple):
    """A program with one place, and what stands there in the hazard and in the twin."""

    name: str
    program: str
    hazard: str
    twin: str


def pairs() -> list[Pair]:
    """The programs of ``orders_by_execution.md``."""
    found: list[Pair] = []
    for part in Path(__file__).with_suffix(".md").read_text(encoding="utf-8").split("\n## ")[1:]:
        name, _, rest = part.partition("\n")
        lines = rest.splitlines()
        program = "\n".join(line[4:] for line in lines if line.startswith("    "))
        texts = [line.partition(": ")[2] for line in lines if line.startswith(("hazard:", "twin:"))]
        found.append(Pair(name, program, texts[0], texts[1]))
    return found


def _execute(directory: Path, program: str, seed: int) -> str:
    out = directory / "out"
    for old in out.glob("*"):
        old.unlink()
    env = {
        **os.environ,
        "PYTHONHASHSEED": str(seed),
        "LISTING_SEED": str(seed),
        "PYTHONPATH": str(directory / "site"),
    }
    if "by address" in program:
        env["PYTHONMALLOC"] = "malloc"
    run = subprocess.run(
        [sys.executable, "-c", program],
        cwd=directory,
        env=env,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    if run.returncode:
        return f"failed: {run.stderr.strip().splitlines()[-1]}"
    state = hashlib.sha256(run.stdout.encode())
    for path in sorted(out.glob("*")):
        state.update(path.name.encode() + b"\0" + path.read_bytes())
    return state.hexdigest()


def _reported(directory: Path, program: str) -> bool:
    directory.mkdir()
    (directory / "main.py").write_text(program + "\n")
    return any(item.finding.code in CODES for item in lint(directory, {}).items)


def main(word: str) -> int:
    """Run everything, and return the exit status."""
    wrong = 0
    chosen = [pair for pair in pairs() if word in pair.name]
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for part in ("data/sub", "data/deep/er", "out", "site"):
            (root / part).mkdir(parents=True)
        for letter in "abcdefg":
            for kind in ("txt", "csv"):
                (root / "data" / f"{letter}.{kind}").write_text(f"{letter} {kind} ")
        (root / "site" / "sitecustomize.py").write_text(SHUFFLED)
        for number, pair in enumerate(chosen):
            for kind, text in (("hazard", pair.hazard), ("twin", pair.twin)):
                program = pair.program.replace("HERE", text)
                outcomes = {_execute(root, program, seed) for seed in range(1, RUNS + 1)}
                differs, told = len(outcomes) > 1, _reported(root / f"p{number}{kind}", program)
                failed = next((one for one in outcomes if one.startswith("failed")), "")
                if failed or differs != (kind == "hazard") or told != (kind == "hazard"):
                    wrong += 1
                    print(f"{pair.name}, {kind}: differs={differs} reported={told} {failed}")
    count = 2 * len(chosen)
    print(f"{count - wrong} of {count} programs are as they have to be")
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main("".join(sys.argv[1:2])))
