"""Damage every kind of file of the cache at random, 10,000 times: the report has the same bytes each time.

``python tests/breadth/damaged_cache.py [COUNT] [SEED]``. Exits with status 1 and shows the damage otherwise.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support import RULES
from test_cache_dir import damage

from d9mlint.config.settings import load_settings
from d9mlint.knowledge.loader import load_compiled
from d9mlint.pipeline import check
from d9mlint.report import render
from d9mlint.report.common import Options

FILES = {
    "train.py": "import torch\nimport lib\n\ntorch.backends.cudnn.benchmark = True\nprint(torch.rand(2), lib.x)\n",
    "lib.py": "import os\nimport numpy as np\nx = [np.random.rand(3), os.listdir('.')]  # noqa: DET1\n",
}


def main(count: int, seed: int) -> int:
    """Run, and return the exit status."""
    random_ = random.Random(seed)
    done: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as directory:
        os.environ["XDG_CACHE_HOME"] = f"{directory}/home"
        root, rules = Path(directory, "project"), Path(directory, "rules")
        root.mkdir()
        rules.mkdir()
        for name, text in {"pyproject.toml": "", **FILES}.items():
            (root / name).write_text(text)
        page = "DET301-cudnn-benchmark.md"
        (rules / page).write_text((RULES / page).read_text())
        settings = load_settings(str(root), overrides={"select": ["ALL"], "jobs": 1})
        options = Options(str(root))

        def lint() -> str:
            return render(check([str(root)], settings), "json", options)

        expected, knowledge = lint(), load_compiled(rules)
        while sum(done.values()) < count:
            path = random_.choice(
                sorted(Path(directory, "home").rglob("*.bin")) + sorted(root.rglob("*-*.bin"))
            )
            kind = path.name.partition("-")[0]
            before = path.read_bytes()
            after = damage(before, random_)
            path.write_bytes(after)
            same = load_compiled(rules) == knowledge if kind == "knowledge" else lint() == expected
            done[kind] += 1
            if not same:
                print(f"{path.name}: another result from {after!r}, which was {before!r}")
                return 1
    print(f"{sum(done.values())} damaged files, same results: {dict(sorted(done.items()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main(*(int(a) for a in [*sys.argv[1:], *["10000", "0"][len(sys.argv) - 1 :]])))
