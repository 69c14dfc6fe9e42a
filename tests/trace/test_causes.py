"""What is fixed in runs that look for a cause: random bytes of the operating system, and the clock."""

from __future__ import annotations

import subprocess
import sys

import pytest

START = """
from d9mlint.trace import perturb
from d9mlint.trace.sites import Sites, without_columns
noted = []
sites = Sites()
note = lambda name, path: noted.append((name, without_columns(sites.texts[path]).rsplit(":", 2)[-2]))
"""
ENTROPY = """
import os, random, secrets, uuid
values = [random.Random().random(), random.random(), random.SystemRandom().random()]
random.seed()
values += [random.random(), uuid.uuid4().hex, secrets.token_hex(8), os.urandom(4).hex()]
try:
    import numpy
    values += [numpy.random.RandomState().rand(), numpy.random.default_rng().random()]
except ImportError:
    pass
print(values, random.Random(3).random())
"""
CLOCK = """
import time
first = time.time()
time.sleep(0.01)
waited = time.perf_counter()
while time.perf_counter() < waited + 0.001:
    pass
print(repr(first), repr(time.time()), time.time_ns())
"""


def output(*parts: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", "\n".join(parts)], capture_output=True, text=True, timeout=600, check=True
    )
    return run.stdout


@pytest.mark.parametrize(("name", "program"), [("entropy", ENTROPY), ("still_clock", CLOCK)])
def test_what_is_fixed_is_equal_in_all_runs(name: str, program: str) -> None:
    fix = f"perturb.{name}(sites, note)"
    assert output(program) != output(program)
    assert output(START, fix, program) == output(START, fix, program)


def test_a_seed_is_kept_where_random_bytes_are_fixed() -> None:
    program = "import random\nrandom.seed(5)\nprint(random.random(), random.Random(7).random())"
    assert output(START, "perturb.entropy(sites, note)", program) == output(program)


def test_who_reads_random_bytes_is_noted(tmp_path: object) -> None:
    file = f"{tmp_path}/program.py"
    lines = "import random, uuid\n\nuuid.uuid4()\nrandom.Random(1)\nrandom.Random()\n"
    with open(file, "w", encoding="utf-8") as stream:
        stream.write(lines)
    program = f"import runpy; runpy.run_path({file!r}); print(noted)"
    found = output(START, "perturb.entropy(sites, note)", "noted.clear()", program)
    assert found == "[('entropy', '3'), ('entropy', '5')]\n"
