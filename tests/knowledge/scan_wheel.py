"""Hold the facts to a released wheel of PyTorch, torchvision or TensorFlow.

    python tests/knowledge/scan_wheel.py WHEEL [WHEEL ...] [--store]

Extracts every alert site and determinism message of the wheel's libraries and prints what the facts lack or
claim wrongly; exits with status 1 if there is anything. ``--store`` writes the table to ``tables/``, where a
test holds the facts to it. Wheels: ``pip download --no-deps torch==2.6.0``; nothing of them is executed.
Alert names are found in torch 2.6 and later; earlier builds pass them in another way.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import comparison
import wheels

from d9mlint.knowledge.loader import load_compiled

TABLES = Path(__file__).parent / "tables"


def main() -> int:
    """The number of wheels with differences, at most 1."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wheel", nargs="+", type=Path)
    parser.add_argument("--store", action="store_true", help="write the table to tests/knowledge/tables")
    options = parser.parse_args()
    facts = load_compiled()
    status = 0
    for wheel in options.wheel:
        table = wheels.scan(wheel)
        if options.store:
            wheels.store(table, TABLES)
        wrong = comparison.differences(table, facts.ops, facts.settings)
        names = len(comparison.alerts(table))
        print(f"{wheel.name}: {names} alerts, {len(wrong)} differences")
        for line in wrong:
            print(f"  {line}")
        status = 1 if wrong else status
    return status


if __name__ == "__main__":
    raise SystemExit(main())
