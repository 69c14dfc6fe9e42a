"""How long the language server takes to answer for an edited file: `python tests/perf/bench_server.py PROJECT FILE...`.

Each file gets a new function at its end a few times, as while typing. CPU seconds are those of this process: parsing the
file (`edit`), the answer for it (`quick`), and, once, the answer for all files (`complete`). Without files, the five
smallest modules of the project with at least 20 lines that are imported by others and import none of them.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

from d9mlint.server.engine import Engine

ROUNDS = 5
LIMIT = 0.3


def leaves(engine: Engine) -> list[str]:
    """Small modules that import no other module of the project."""
    project = engine.project
    inside = {file.stem for file in project.modules.files}
    found = []
    for file in project.modules.files:
        facts = file.facts
        if (
            file.path in project.imported
            and not inside & set(facts.words) - {file.stem}
            and facts.lines >= 20
        ):
            found.append((facts.lines, file.path))
    return [path for _, path in sorted(found)[:5]]


def main(root: str, files: list[str]) -> int:
    began = time.process_time()
    engine = Engine(str(Path(root).resolve()))
    engine.complete(lambda: False)
    print(f"open and analyze: {time.process_time() - began:.2f} CPU s")
    worst = 0.0
    for path in [str(Path(file).resolve()) for file in files] or leaves(engine):
        text = Path(path).read_text()
        took = []
        for number in range(ROUNDS + 1):
            new = f"{text}\n\ndef added_{number}(x):\n    import random\n    return random.random() + {number}\n"
            start = time.process_time()
            engine.edit(path, new.encode())
            parsed = time.process_time()
            engine.quick(path, lambda: False)
            took.append((time.process_time() - start, parsed - start))
        whole = statistics.median(one for one, _ in took[1:])
        parsing = statistics.median(one for _, one in took[1:])
        worst = max(worst, whole)
        engine.edit(path, None)
        start = time.process_time()
        engine.complete(lambda: False)
        rest = time.process_time() - start
        name = path.removeprefix(engine.root + "/")
        print(
            f"{name}: {whole * 1000:.0f} ms ({parsing * 1000:.0f} ms of it parsing); all files: {rest:.2f} s",
            flush=True,
        )
    print(f"slowest answer: {worst * 1000:.0f} ms CPU; the aim for a leaf module is {LIMIT * 1000:.0f} ms")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
