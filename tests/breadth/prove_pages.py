"""Runs the examples of the rules on a CPU, several fresh processes each, and compares what they compute. By hand:

    python tests/breadth/prove_pages.py                     # all rules
    python tests/breadth/prove_pages.py DET102 DET210       # some
    python tests/breadth/prove_pages.py --table PROOF.md    # also a table in this file

The blocks of the pages and of ``tests/cases/DETnnn/`` are run. The processes of a block differ in hash seed, in the order
in which its directories are listed, in the clock and in their process id (see ``page_runner.py``). A block without a line
marked ``# error`` has to give the same each time, one with such a line must not. What an advice (``# advice``) is about
holds under a condition that the processes may bring about, so its program may do both. The verdicts:

    shown       a hazard whose results differ, or something that an advice is about
    equal       a program without a finding whose results are equal
    needs: X    what cannot be shown here says what it needs (cuda, a release, a library, another claim)
    not shown   a hazard whose results were equal
    WRONG       a program without a finding whose results differ; the exit status is 1
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import Block, blocks, expectations, further_paths, page_paths, split_files

RUNS = 3
TIMEOUT = 120
AGAIN = 77
PRELOADED = ("numpy", "torch", "tensorflow", "keras", "sklearn", "pandas", "lightning", "transformers")
RUNNER = Path(__file__).with_name("page_runner.py")

# What the rules say that is no difference between two runs on this CPU.
OTHER_CLAIMS = {
    "DET001": "a claim about files that cannot be parsed",
    "DET003": "a claim about comments",
    "DET112": "a claim about redundant calls",
    "DET114": "a claim about one run: keys give equal numbers where independent ones are meant",
    "DET201": "a claim about one run: workers repeat each other's numbers",
    "DET203": "a claim about one run: every epoch has the same order",
    "DET205": "a source in arbitrary order",
    "DET206": "a race, which need not strike",
    "DET212": "a claim about one run: workers repeat each other's numbers",
    "DET302": "cuda",
    "DET303": "cuda",
    "DET304": "releases that lack a name",
    "DET305": "cuda",
    "DET306": "cuda",
    "DET307": "cuda",
    "DET308": "cuda",
    "DET301": "cuda",
    "DET310": "cuda",
    "DET312": "cuda",
    "DET313": "tensorflow 1",
    "DET314": "a run until its time limit",
    "DET315": "cuda",
    "DET401": "cuda",
    "DET402": "cuda",
    "DET403": "cuda",
    "DET404": "cuda",
    "DET405": "cuda",
    "DET406": "cuda",
    "DET407": "cuda",
    "DET408": "cuda",
    "DET409": "cuda",
    "DET410": "cuda",
    "DET411": "a claim about gradients",
    "DET501": "horovod on several GPUs",
    "DET502": "several processes",
    "DET603": "an interrupted run",
    "DET702": "an inference engine on a GPU",
    "DET801": "another machine",
    "DET802": "another device",
    "DET803": "another machine",
    "DET804": "another world size",
}
SAME_HERE = ("DET1", "DET2", "DET502", "DET6", "DET7", "DET803", "DET804")
"""Families whose claims do not depend on the device: their programs are run on the CPU instead of CUDA."""


class Outcome(NamedTuple):
    """A block's verdict (``differs``, ``equal``, ``not run``) and the reason where it was not run."""

    verdict: str
    reason: str = ""


def example_blocks(path: Path) -> list[Block]:
    """The Python blocks of a file that are programs as they stand."""
    return [
        block
        for block in with_releases(blocks(path.read_text(encoding="utf-8")))
        if block.language == "python" and "ignore" not in block.info
    ]


def with_releases(found: list[Block]) -> Iterator[Block]:
    """The blocks; one with fixed code is for the releases that the block before it is for."""
    info: tuple[str, ...] = ()
    for block in found:
        if "fixed" in block.info:
            block = block._replace(info=(*block.info, *(word for word in info if "=" in word)))
        info = block.info
        yield block


def is_hazard(block: Block) -> bool:
    """Whether a line of the block is marked as an error."""
    return "# error: [" in block.text


def is_advice(block: Block) -> bool:
    """Whether a line of the block is marked as an advice."""
    return "# advice: [" in block.text


def on_cpu(text: str) -> str:
    """A program that uses the CPU where it names CUDA."""
    text = re.sub(r"(?<=[\"'])cuda(:\d)?(?=[\"'])", "cpu", text)
    text = re.sub(r"(?<=[\"'])nccl(?=[\"'])", "gloo", text)
    return re.sub(r"\.cuda\((\w*)\)", ".cpu()", text)


def entries(files: dict[str, str]) -> list[str]:
    """The files of a program that are run: those with a ``__main__`` guard, or else the first."""
    guarded = [name for name, text in files.items() if name.endswith(".py") and "__main__" in text]
    return guarded or ["train.py" if "train.py" in files else next(iter(files))]


class Answer(NamedTuple):
    """How a program ended: its exit status (None where it took too long) and what it wrote."""

    status: int | None
    out: str
    error: str


class Servers:
    """Processes that have imported a program's libraries and fork for each run, one for each hash seed."""

    def __init__(self) -> None:
        self.started: dict[tuple[int, tuple[str, ...]], subprocess.Popen[str]] = {}

    def get(self, seed: int, modules: tuple[str, ...]) -> subprocess.Popen[str]:
        """The server of a hash seed with these modules."""
        found = self.started.get((seed, modules))
        if found is None or found.poll() is not None:
            environment = {
                **os.environ,
                "PYTHONHASHSEED": str(seed),
                "OMP_NUM_THREADS": "2",
                "TF_CPP_MIN_LOG_LEVEL": "3",
                "TOKENIZERS_PARALLELISM": "false",
                "CUDA_VISIBLE_DEVICES": "",
                "PYTHONDONTWRITEBYTECODE": "1",
                "PYTHONUNBUFFERED": "1",
            }
            found = subprocess.Popen(
                [sys.executable, str(RUNNER), *modules],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            self.started[seed, modules] = found
        return found

    def execute(self, name: str, code: str, workplace: Path, number: int, weak: bool) -> Answer:
        """Run one program of a block."""
        text = "".join(path.read_text() for path in workplace.rglob("*.py"))
        # What is read when a library is imported is set by the program itself.
        late = code in ("DET305", "DET307", "DET308")
        modules = tuple(one for one in PRELOADED if re.search(rf"\b{one}\b", text) and not late)
        server = self.get(number, modules)
        request = {
            "cwd": str(workplace),
            "program": name,
            "code": code,
            "env": {
                "PROVE_RUN": str(number + 1),
                "PROVE_WEAK": "1" if weak else "",
                "PROVE_ARGUMENTS": required(workplace / name),
            },
            "timeout": TIMEOUT,
        }
        assert server.stdin is not None and server.stdout is not None
        for _ in range(8):
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            answer = json.loads(server.stdout.readline())
            if answer["status"] != AGAIN:
                break
        status = answer["status"]
        return Answer(None if status == "timeout" else status, answer["out"], answer["error"])

    def stop(self) -> None:
        """End all servers."""
        for server in self.started.values():
            server.kill()
            server.wait()
        self.started.clear()


SERVERS = Servers()


def why(done: Answer, made: list[str]) -> str:
    """What a program that stopped needs; ``made`` are the files that it lacked, which were made with other contents."""
    lines = [line for line in done.error.strip().splitlines() if line.strip()]
    last = lines[-1] if lines else f"exit status {done.status}"
    found = re.search(r"No module named '([^']+)'|Requirement '([\w-]+)[^']*' not met", last)
    if found:
        return f"module {found[1] or found[2]}"
    if any(word in last for word in ("CUDA", "NVIDIA", "cuda", "gpu backend")):
        return "cuda"
    if "internet connection" in last:
        return "a model from the network"
    absent = re.search(r"File not found: filepath=(\S+?)\.? ", last)
    if absent or made:
        return f"the content of {absent[1] if absent else made[0]}"
    if not done.status:
        return "a program that stays in its process"
    return last[:100]


def required(program: Path) -> str:
    """Arguments for the options that a program demands: the name of its other module, or a number."""
    options = re.findall(r'add_argument\("(--[\w-]+)", required=True\)', program.read_text(encoding="utf-8"))
    others = sorted(path.stem for path in program.parent.glob("*.py") if path != program)
    return " ".join(f"{option} {others[0] if others else 1}" for option in options)


def run_program(
    name: str, files: dict[str, str], code: str, directory: Path, runs: int, weak: bool
) -> Outcome:
    """Run one entry of a block several times and compare the digests."""
    seen: set[str] = set()
    claims: set[str] = set()
    for number in range(runs):
        workplace = directory / f"{Path(name).stem}{number}{'w' if weak else ''}"
        for path, text in files.items():
            place = workplace / path
            place.parent.mkdir(parents=True, exist_ok=True)
            plain = expectations(text)[0]
            place.write_text(on_cpu(plain) if code.startswith(SAME_HERE) else plain, encoding="utf-8")
        # Every directory of the program has the same length, so that no text shows its place.
        done = SERVERS.execute(name, code, workplace, number, weak)
        if done.status is None:
            return Outcome("not run", "more time")
        found = re.search(r"^PROVE (\d+) (\w+)$", done.out, re.MULTILINE)
        if done.status or not found:
            made = workplace.with_name(f"{workplace.name}.made")
            return Outcome("not run", why(done, made.read_text().split() if made.exists() else []))
        claims |= set(re.findall(r"^PROVE-CLAIM (.*)$", done.out, re.MULTILINE))
        if code == "DET601" and claims:
            return Outcome("equal" if claims == {"lacks: "} else "differs", " ".join(claims))
        if found[1] != "0":
            seen.add(found[2])
        if len(seen) > 1:
            return Outcome("differs")
    return Outcome("equal") if seen else Outcome("not run", "output: it prints, trains and writes nothing")


def run(block: Block, code: str, directory: Path, runs: int = RUNS) -> Outcome:
    """Run a block's programs several times and compare what they compute."""
    files = split_files(block.text)
    if not all(name.endswith(".py") for name in files):
        return Outcome("not run", "a notebook")
    # What torch 1 did, TensorFlow 1, and Keras 2 of TensorFlow before 2.16, does not come out of their successors.
    release = next(
        (word for word in block.info if re.match(r"(torch|tensorflow)=1\.|tensorflow=2\.(\d|1[0-5])$", word)),
        "",
    )
    if "import tensorflow.compat.v1" in block.text or "tf.Session" in block.text or "contrib" in block.text:
        release = release or "tensorflow 1"
    hazard = is_hazard(block)
    outcomes: list[Outcome] = []
    for name in entries(files):
        outcome = run_program(name, files, code, directory, runs, weak=False)
        if hazard and outcome.verdict != "differs" and outcome.reason[:6] in ("", "output"):
            outcome = run_program(name, files, code, directory, runs, weak=True)
        outcomes.append(outcome)
        if outcome.verdict == "differs" and (hazard or not release):
            return outcome
    stopped = [one for one in outcomes if one.verdict == "not run"]
    if release and (stopped or hazard or any(one.verdict == "differs" for one in outcomes)):
        return Outcome("not run", release)
    if stopped and (hazard or len(stopped) == len(outcomes)):
        return stopped[0]
    return Outcome("equal")


def verdict(code: str, block: Block, outcome: Outcome) -> str:
    """The word for what came out of a block."""
    if is_hazard(block):
        if outcome.verdict == "differs":
            return f"shown{': ' + outcome.reason if outcome.reason else ''}"
        if "torch.cuda." in block.text and outcome.verdict == "equal":
            return "needs: cuda"
        if code in OTHER_CLAIMS:
            return f"needs: {OTHER_CLAIMS[code]}"
        return f"needs: {outcome.reason}" if outcome.verdict == "not run" else "not shown"
    if outcome.verdict == "not run":
        return f"needs: {outcome.reason}"
    if outcome.verdict == "equal":
        return "equal"
    return "shown" if is_advice(block) else "WRONG"


def table(results: dict[str, Counter[str]]) -> str:
    """The results of each rule as a table in Markdown."""
    lines = ["| rule | shown | equal | needs | not shown | wrong |", "|---|---|---|---|---|---|"]
    for code, counts in sorted(results.items()):
        needs: Counter[str] = Counter()
        for word, count in counts.items():
            if word.startswith("needs: "):
                needs[word.removeprefix("needs: ").replace("|", "/")] += count
        told = "; ".join(
            f"{reason} ({count})" if count > 1 else reason for reason, count in sorted(needs.items())
        )
        shown = sum(count for word, count in counts.items() if word.startswith("shown"))
        cells = [str(counts[word] or "") for word in ("equal", "not shown", "WRONG")]
        lines.append(f"| {code} | {shown or ''} | {cells[0]} | {told} | {cells[1]} | {cells[2]} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run the blocks of the rules that are asked for, and print a line for each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("codes", nargs="*")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--table", type=Path)
    options = parser.parse_args()
    results: dict[str, Counter[str]] = defaultdict(Counter)
    paths = [(path.name[:6], path) for path in page_paths()]
    paths += [(path.parent.name, path) for path in further_paths()]
    for code, path in sorted(paths):
        if options.codes and code not in options.codes:
            continue
        for block in example_blocks(path):
            if OTHER_CLAIMS.get(code) == "cuda" and is_hazard(block):
                outcome = Outcome("not run", "cuda")
            else:
                with tempfile.TemporaryDirectory(prefix="prove-") as directory:
                    outcome = run(block, code, Path(directory), options.runs)
            word = verdict(code, block, outcome)
            results[code][word] += 1
            kind = "error" if is_hazard(block) else "ok"
            print(f"{code} {path.name}:{block.line:<4} {kind:5} {word}", flush=True)
    SERVERS.stop()
    print(table(results))
    if options.table:
        options.table.write_text(table(results), encoding="utf-8")
    return 1 if any(counts["WRONG"] for counts in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
