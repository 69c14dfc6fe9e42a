"""How severe findings are in a module that others import, where it is run by itself."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import lint

ENVIRONMENT = """
import gymnasium as gym


def make():
    return gym.make("CartPole-v1")


if __name__ == "__main__":
    env = make()
    print(env.reset())
    {then}
"""
SPLIT = """
import pandas as pd
from sklearn.model_selection import train_test_split


def parts(table):
    return train_test_split(table)


if __name__ == "__main__":
    left, right = parts(pd.read_csv("table.csv"))
    print(left.head())
    {then}
"""
SEEDED = """
import numpy as np

np.random.seed(0)
np.save("parts.npy", parts(pd.read_csv("table.csv"))[0])
"""


@pytest.mark.parametrize(
    ("module", "code", "then", "severity"),
    [
        (ENVIRONMENT, "DET111", "pass", "warning"),
        (ENVIRONMENT, "DET111", "open('state.txt', 'w').write(str(env.reset()))", "error"),
        (SPLIT, "DET109", "pass", "warning"),
        (SPLIT, "DET109", "left.to_csv('left.csv')", "error"),
        (
            SPLIT,
            "DET109",
            "from sklearn.svm import SVC; print(SVC().fit(left, right).score(left, right))",
            "error",
        ),
    ],
)
def test_what_a_module_shows_by_itself_is_no_error(
    tmp_path: Path, module: str, code: str, then: str, severity: str
) -> None:
    (tmp_path / "parts.py").write_text(module.format(then=then), encoding="utf-8")
    user = (
        "import pandas as pd\nfrom parts import parts\n" + SEEDED if "parts(" in module else "import parts\n"
    )
    (tmp_path / "train.py").write_text(user, encoding="utf-8")
    found = {one.finding.severity for one in lint(tmp_path, {}).items if one.finding.code == code}
    assert found == ({severity} if severity else set())


def test_the_same_is_an_error_in_a_program_that_others_do_not_import(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(SPLIT.format(then="pass"), encoding="utf-8")
    found = {one.finding.severity for one in lint(tmp_path, {}).items if one.finding.code == "DET109"}
    assert found == {"error"}


def test_the_same_is_an_error_where_another_program_keeps_it(tmp_path: Path) -> None:
    (tmp_path / "parts.py").write_text(SPLIT.format(then="pass"), encoding="utf-8")
    user = "import pandas as pd\nfrom parts import parts\n" + SEEDED.replace("np.random.seed(0)", "")
    (tmp_path / "train.py").write_text(user, encoding="utf-8")
    found = {one.finding.severity for one in lint(tmp_path, {}).items if one.finding.code == "DET109"}
    assert found == {"error"}


DRAWN = "import random\n{imports}\nnames = open('names.txt').read().split()\ndrawn = random.sample(names, 3)\n{then}\n"


@pytest.mark.parametrize(
    ("imports", "then", "severity"),
    [
        ("", "texts = [open(one).read() for one in drawn]", "warning"),
        ("", "assert drawn[0] != drawn[1]\nprint('they differ')", ""),
        (
            "import matplotlib.pyplot as plt\nfrom PIL import Image",
            "plt.imshow(Image.open(drawn[0]))\nplt.show()",
            "warning",
        ),
        ("", "print(drawn)", "error"),
        ("", "open('drawn.txt', 'w').write(' '.join(drawn))", "error"),
        ("import logging", "logging.info(drawn)", "error"),
        ("import sys", "sys.stdout.write(drawn[0])", "error"),
        ("import subprocess", "subprocess.run(['cp', *drawn, 'there'])", "error"),
        ("import pandas as pd", "pd.DataFrame(drawn).to_sql('drawn', 'sqlite://')", "error"),
        ("from somewhere import put", "put(drawn)", "error"),
        (
            "from flask import Flask",
            "app = Flask(__name__)\n@app.route('/')\ndef first():\n    return random.choice(names)\napp.run()",
            "error",
        ),
    ],
)
def test_a_program_that_leaves_nothing_makes_no_error(
    tmp_path: Path, imports: str, then: str, severity: str
) -> None:
    (tmp_path / "names.py").write_text(DRAWN.format(imports=imports, then=then), encoding="utf-8")
    found = {one.finding.severity for one in lint(tmp_path, {}).items if one.finding.code == "DET103"}
    assert found == ({severity} if severity else set())
