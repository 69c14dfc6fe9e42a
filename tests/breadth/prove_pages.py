"""Runs the examples of the rule pages on a CPU and compares what they print. Run by hand:

    python tests/breadth/prove_pages.py                 # all pages
    python tests/breadth/prove_pages.py DET102 DET210   # some

Each block is run in several fresh processes that differ in hash seed, in the order in which directories are listed,
in the clock and in their process id. A block without a line marked ``# error`` has to print the same each time. A
block with one should not: one line a block says whether it did, or why it cannot be shown here (``needs: cuda``, a
file or a library that is missing). The exit status is 1 when a block that should be equal was not.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import RULES, Block, blocks, expectations, split_files

RUNS = 4
TIMEOUT = 120

SHUFFLED = """
import os, random, time
_rng = random.Random(int(os.environ["PROVE_RUN"]))
_listdir, _scandir = os.listdir, os.scandir
def listdir(path="."):
    names = _listdir(path)
    _rng.shuffle(names)
    return names
class scandir:
    def __init__(self, path="."):
        with _scandir(path) as entries:
            self.entries = list(entries)
        _rng.shuffle(self.entries)
        self.entries = iter(self.entries)
    def __iter__(self): return self
    def __next__(self): return next(self.entries)
    def __enter__(self): return self
    def __exit__(self, *error): pass
    def close(self): pass
if os.environ.get("PROVE_LISTING"):
    os.listdir, os.scandir = listdir, scandir
_time, _shift = time.time, 1000.0 * int(os.environ["PROVE_RUN"])
time.time = lambda: _time() + _shift
"""

# Rules that say something else than that two runs print different things.
OTHER_CLAIMS = {
    "DET105": "the assignment has no effect",
    "DET109": "advice where torch is seeded",
    "DET112": "redundant",
    "DET114": "equal numbers where independent ones are meant",
    "DET205": "order",
    "DET302": "needs: cuda",
    "DET303": "needs: cuda",
    "DET304": "removed names",
    "DET305": "needs: cuda",
    "DET306": "needs: cuda",
    "DET308": "the variable has no effect",
    "DET411": "wrong gradients",
    "DET601": "a resumed run",
    "DET602": "a resumed run",
    "DET603": "a resumed run",
    "DET801": "another machine",
    "DET802": "another device",
    "DET803": "another machine",
    "DET804": "another world size",
}


class Outcome(NamedTuple):
    """A block's verdict (differs, equal, not run) and the reason where it was not run."""

    verdict: str
    reason: str = ""


def examples(code: str, path: Path) -> list[Block]:
    """The Python blocks of a page that are programs as they stand."""
    found = []
    for block in blocks(path.read_text(encoding="utf-8")):
        if block.language == "python" and not {"ignore", "fixed"} & set(block.info):
            found.append(block)
    return found


def is_hazard(block: Block) -> bool:
    """Whether a line of the block is marked as an error."""
    return "# error: [" in block.text


def run(block: Block, directory: Path, runs: int = RUNS) -> Outcome:
    """Run a block's program several times and compare what it prints."""
    if "device=cuda" in block.info or '"cuda"' in block.text or ".cuda(" in block.text:
        return Outcome("not run", "needs: cuda")
    files = split_files(block.text)
    if not all(name.endswith(".py") for name in files):
        return Outcome("not run", "no plain program")
    main = "train.py" if "train.py" in files else next(iter(files))
    seen: set[str] = set()
    for number in range(runs):
        workplace = directory / f"run{number}"
        workplace.mkdir(parents=True)
        for name, text in files.items():
            (workplace / name).parent.mkdir(parents=True, exist_ok=True)
            (workplace / name).write_text(expectations(text)[0], encoding="utf-8")
        boot = directory / "boot"
        boot.mkdir(exist_ok=True)
        (boot / "sitecustomize.py").write_text(SHUFFLED)
        for name in ("a.txt", "b.txt", "c.txt"):
            (workplace / "data").mkdir(exist_ok=True)
            (workplace / "data" / name).write_text(name)
        # Directories are shuffled after the libraries were found.
        environment = {
            **os.environ,
            "PYTHONHASHSEED": str(number),
            "PROVE_RUN": str(number + 1),
            "PROVE_LISTING": "1",
            "PYTHONPATH": str(boot),
            "OMP_NUM_THREADS": "2",
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TOKENIZERS_PARALLELISM": "false",
        }
        try:
            done = subprocess.run(
                [sys.executable, main],
                cwd=workplace,
                env=environment,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Outcome("not run", "takes too long")
        if done.returncode:
            lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
            return Outcome("not run", lines[-1][:90])
        seen.add(re.sub(r"0x[0-9a-f]+|run\d+", "", done.stdout))
    if seen == {""}:
        return Outcome("not run", "prints nothing")
    return Outcome("differs" if len(seen) > 1 else "equal")


def main() -> int:
    """Run the blocks of the pages that are asked for, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("codes", nargs="*")
    parser.add_argument("--runs", type=int, default=RUNS)
    options = parser.parse_args()
    counts: Counter[str] = Counter()
    wrong = 0
    for path in sorted(RULES.glob("DET*.md")):
        code = path.name[:6]
        if options.codes and code not in options.codes:
            continue
        for block in examples(code, path):
            with tempfile.TemporaryDirectory(prefix="prove-") as directory:
                outcome = run(block, Path(directory), options.runs)
            kind = "error" if is_hazard(block) else "ok"
            expected = "differs" if kind == "error" else "equal"
            if outcome.verdict == expected:
                verdict = "proven"
            elif outcome.verdict == "not run":
                verdict = f"not run: {outcome.reason}"
            elif kind == "ok":
                verdict, wrong = "WRONG: results differ", wrong + 1
            else:
                verdict = f"equal: {OTHER_CLAIMS.get(code, 'not shown')}"
            counts[f"{kind}: {verdict.partition(':')[0]}"] += 1
            print(f"{code} line {block.line:4} {kind:5} {verdict}", flush=True)
    for text, count in sorted(counts.items()):
        print(f"{count:4} {text}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
