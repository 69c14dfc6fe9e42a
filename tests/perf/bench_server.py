"""How long the language server takes to answer for an edited file: `python tests/perf/bench_server.py PROJECT FILE...`.

Each file gets a new function at its end a few times, as while typing. CPU seconds are those of this process: parsing the
file (`edit`), the answer for it (`quick`), and the answer for all files (`complete`) after that function, after a
comment above all code, and after a statement in the body of its longest function. Without files, the five
smallest modules of the project with at least 20 lines that are imported by others and import none of them.

`--every` instead lets each file of the project answer a few times, and prints the slowest files and how many take longer
than the aim.
"""

from __future__ import annotations

import ast
import statistics
import sys
import time
from pathlib import Path

from d9mlint.server.engine import Engine

ROUNDS = 5
LIMIT = 0.3
SHOWN = 8


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


def in_body(text: str) -> str:
    """The text with a statement more in the body of its longest function, if it has one."""
    functions = [
        one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.FunctionDef) and len(one.body) > 3
    ]
    if not functions:
        return text
    first = max(functions, key=lambda one: len(one.body)).body[1]
    lines = text.splitlines(keepends=True)
    lines.insert(first.lineno - 1, f"{' ' * first.col_offset}added = 1\n")
    return "".join(lines)


def keystrokes(engine: Engine, path: str, text: str) -> tuple[float, float]:
    """CPU seconds until the answer for a file in which a function grows, and those of them that parsing takes."""
    took = []
    for number in range(ROUNDS + 1):
        new = f"{text}\n\ndef added_{number}(x):\n    import random\n    return random.random() + {number}\n"
        start = time.process_time()
        engine.edit(path, new.encode())
        parsed = time.process_time()
        engine.quick(path, lambda: False)
        took.append((time.process_time() - start, parsed - start))
    return statistics.median(one for one, _ in took[1:]), statistics.median(one for _, one in took[1:])


def every(engine: Engine) -> int:
    """The answers for all files."""
    found = []
    for path in sorted(engine.files):
        if path.endswith(".py"):
            whole, parsing = keystrokes(engine, path, Path(path).read_text())
            engine.edit(path, None)
            found.append((whole, parsing, path.removeprefix(engine.root + "/")))
    found.sort(reverse=True)
    for whole, parsing, name in found[:SHOWN]:
        print(f"{name}: {whole * 1000:.0f} ms, {whole / parsing:.1f} times parsing it")
    ratio = sum(one for one, *_ in found) / sum(one for _, one, _ in found)
    slow = sum(whole > LIMIT for whole, *_ in found)
    print(
        f"{len(found)} files: median {statistics.median(one for one, *_ in found) * 1000:.0f} ms CPU, {ratio:.2f} times "
        f"parsing in all, {slow} over {LIMIT * 1000:.0f} ms"
    )
    return slow > 0


def main(root: str, files: list[str]) -> int:
    began = time.process_time()
    engine = Engine(str(Path(root).resolve()))
    engine.complete(lambda: False)
    print(f"open and analyze: {time.process_time() - began:.2f} CPU s")
    if files == ["--every"]:
        return every(engine)
    worst = 0.0
    for path in [str(Path(file).resolve()) for file in files] or leaves(engine):
        text = Path(path).read_text()
        whole, parsing = keystrokes(engine, path, text)
        worst = max(worst, whole)
        rest = []
        for changed in (None, f"# A comment.\n{text}", in_body(text)):
            if changed is not None:
                engine.edit(path, None)
                engine.complete(lambda: False)
                engine.edit(path, changed.encode())
            start = time.process_time()
            engine.complete(lambda: False)
            rest.append(f"{time.process_time() - start:.2f} s")
        engine.edit(path, None)
        engine.complete(lambda: False)
        name = path.removeprefix(engine.root + "/")
        print(
            f"{name}: {whole * 1000:.0f} ms ({whole / parsing:.1f} times parsing); all files: "
            f"{rest[0]} after a new function, {rest[1]} after a comment, {rest[2]} after a new statement",
            flush=True,
        )
    print(f"slowest answer: {worst * 1000:.0f} ms CPU; the aim for a leaf module is {LIMIT * 1000:.0f} ms")
    return worst > LIMIT


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
