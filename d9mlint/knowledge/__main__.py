"""``python -m d9mlint.knowledge``: check all of ``rules/`` and name every mistake by file and line."""

from __future__ import annotations

import sys
from pathlib import Path

from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.loader import compile_rules, rules_directory


def main(arguments: list[str]) -> int:
    """0 when all is well, 1 when there is a mistake."""
    root = Path(arguments[0]) if arguments else rules_directory()
    try:
        found = compile_rules(root)
    except KnowledgeError as error:
        print(error)
        return 1
    names = {api for op in found.ops for api in op.apis}
    print(
        f"{len(found.rules)} rules, {len(found.rng)} entries on random numbers, {len(found.ops)} ops "
        f"({len(names)} names), {len(found.settings)} settings: all good"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
