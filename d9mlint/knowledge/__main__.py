"""``python -m d9mlint.knowledge``: check all of ``rules/`` and name every mistake by its place."""

from __future__ import annotations

import sys
from pathlib import Path

from d9mlint.base.errors import UsageError, nearest
from d9mlint.evidence import model as evidence
from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.loader import compile_rules, rules_directory
from d9mlint.verify.recipes import load_recipes


def main(arguments: list[str]) -> int:
    """0 when all is well, 1 when there is a mistake."""
    root = Path(arguments[0]) if arguments else rules_directory()
    try:
        found = compile_rules(root)
        recipes = load_recipes(root)
        known = {op.id for op in found.ops}
        for recipe in recipes:
            for op in recipe.ops:
                if op not in known:
                    text = f"recipe {recipe.id} stands for {op}, which is no entry.{nearest(op, known)}"
                    file = f"recipes/{recipe.library}.yaml"
                    raise KnowledgeError(file, _line(root / file, recipe.id), text)
        for path in sorted((root / "evidence").glob("*.json")):
            evidence.load(path)
    except (KnowledgeError, UsageError) as error:
        print(error)
        return 1
    names = {api for op in found.ops for api in op.apis}
    print(
        f"{len(found.rules)} rules, {len(found.rng)} entries on random numbers, {len(found.ops)} ops "
        f"({len(names)} names), {len(found.settings)} settings, {len(recipes)} recipes: all good"
    )
    return 0


def _line(path: Path, recipe: str) -> int:
    """The line on which a recipe begins."""
    rows = path.read_text(encoding="utf-8").splitlines()
    return next((n for n, row in enumerate(rows, 1) if row.split()[-2:] == ["id:", recipe]), 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
