"""What facts cost: CPU microseconds per line of a tree, all measured in one process.

    python tests/perf/bench_facts.py DIRECTORY [FILES]

Parsing alone and extraction (which parses, too) take turns file by file, so that whatever else the
machine does falls on both. Their ratio is to stay below 1.38. Garbage collection is off for both.
"""

from __future__ import annotations

import gc
import sys
import tempfile
import time
from pathlib import Path

import libcst

from d9mlint.base.source import Source, read_source
from d9mlint.frontend.extract import extract
from d9mlint.ir.codec import pack
from d9mlint.ir.nodes import FileFacts
from d9mlint.store.facts_cache import Cache

BUDGET = 1.38


def main() -> int:
    """Measure and print; 1 if extraction is over its budget."""
    if len(sys.argv) not in (2, 3):
        print(__doc__)
        return 2
    paths = sorted(Path(sys.argv[1]).rglob("*.py"))
    paths = paths[:: max(1, len(paths) // int(sys.argv[2]))] if len(sys.argv) == 3 else paths
    sources = [s for s in (read_source(str(path)) for path in paths) if s.problem is None]
    gc.disable()
    parse = total = 0.0
    found: list[tuple[Source, FileFacts]] = []
    for source in sources:
        start = time.process_time()
        try:
            libcst.parse_module(source.text)
        except libcst.ParserSyntaxError:
            continue
        parsed = time.process_time()
        facts = extract(source.text, source.digest)
        total += time.process_time() - parsed
        parse += parsed - start
        if facts.problem is None:
            found.append((source, facts))
    lines = sum(facts.lines for _, facts in found)
    if not lines:
        print("no code found")
        return 2
    start = time.process_time()
    packed = {source.digest: pack(source.text, facts) for source, facts in found}
    encode = time.process_time() - start
    with tempfile.TemporaryDirectory() as directory:
        Cache(directory).put(packed)
        start = time.process_time()
        cache = Cache(directory)
        known = [cache.get(source.digest) for source, _ in found]
        read = time.process_time() - start
    assert known == [facts for _, facts in found]
    size = sum(map(len, packed.values()))
    print(f"{len(found)} files, {lines:,} lines; CPU microseconds per line:")
    print(f"  libcst.parse_module   {parse / lines * 1e6:7.2f}")
    print(
        f"  extract               {total / lines * 1e6:7.2f}   {total / parse:.3f} x parse (budget {BUDGET})"
    )
    print(f"  pack                  {encode / lines * 1e6:7.2f}   {size / lines:.1f} bytes per line")
    print(f"  read from the cache   {read / lines * 1e6:7.2f}   {read / parse:.4f} x parse")
    return int(total / parse > BUDGET)


if __name__ == "__main__":
    raise SystemExit(main())
