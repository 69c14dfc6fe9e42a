"""How well a run uses two processes: ``python tests/perf/bench_parallel.py DIRECTORY [JOBS]``.

Wall time on a busy machine says little, so CPU seconds are split by process: what the main process does alone, and the
share of each worker. On idle cores the run takes as long as the main process and the longest shares; the ratio to
one process follows from that.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import defaultdict

from d9mlint import analysis
from d9mlint.config.discover import absolute
from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check
from d9mlint.store import gather


def measure(directory: str, jobs: int) -> tuple[float, float]:
    """CPU seconds of all processes, and those on the longest way through them."""
    shares = tempfile.NamedTemporaryFile()  # noqa: SIM115
    handle = os.open(shares.name, os.O_WRONLY | os.O_APPEND)
    original = analysis.AnalysisJob.run
    parsing: dict[str, float] = {}
    gathered = gather.gather

    def run(self: analysis.AnalysisJob, task: analysis.Task) -> object:
        result = original(self, task)
        kind = "entries" if task.reached is None else "unreached"
        os.write(handle, f"{kind} {os.getpid()} {result[1]}\n".encode())
        return result

    def gather_timed(*args: object, **options: object) -> object:
        options["spent"] = parsing.__setitem__
        return gathered(*args, **options)  # type: ignore[arg-type]

    analysis.AnalysisJob.run = run  # type: ignore[method-assign, assignment]
    gather.gather = gather_timed  # type: ignore[assignment]
    began = time.perf_counter()
    own = time.process_time()
    settings = load_settings(directory, isolated=True, overrides={"cache": False, "jobs": jobs})
    result = check([directory], settings)
    own = time.process_time() - own
    wall = time.perf_counter() - began
    analysis.AnalysisJob.run = original  # type: ignore[method-assign]
    gather.gather = gathered
    by_process: dict[str, dict[int, float]] = defaultdict(lambda: defaultdict(float))
    with open(shares.name) as stream:
        for line in stream:
            kind, pid, seconds = line.split()
            by_process[kind][int(pid)] += float(seconds)
    parse = sum(parsing.values())
    total = own + parse
    longest = own + parse / jobs
    steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in result.timings.items())
    print(f"{jobs} process(es): wall {wall:.1f} s ({steps})")
    print(f"  main process {own:.1f} CPU s, parsing {parse:.1f} CPU s")
    for kind, processes in by_process.items():
        others = [seconds for pid, seconds in processes.items() if pid != os.getpid()]
        total += sum(others)
        longest += max(others, default=0.0)
        here = processes.get(os.getpid(), 0.0)
        print(
            f"  {kind}: here {here:.1f}, workers {' + '.join(f'{s:.1f}' for s in sorted(others)) or '-'} CPU s"
        )
    print(f"  all processes {total:.1f} CPU s, longest way {longest:.1f} CPU s", flush=True)
    return total, longest


def main() -> None:
    """Measure with one process and with several."""
    directory = absolute(sys.argv[1])
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 2
    alone, _ = measure(directory, 1)
    total, longest = measure(directory, jobs)
    print(
        f"{alone / longest:.2f} times as fast on {jobs} idle cores; {total / alone:.2f} times the CPU seconds"
    )


if __name__ == "__main__":
    main()
