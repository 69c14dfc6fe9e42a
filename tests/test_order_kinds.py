"""What the elements of a set are decides how sure a finding is: texts are surely hashed at random."""

from __future__ import annotations

from pathlib import Path

import pytest

from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check

TEXTS = {
    "lines": "[line.strip().split()[0] for line in open('a')]",
    "all lines": "open('a').readlines()",
    "words": "open('a').read().lower().split()",
    "letters": "open('a').read()",
    "rows": "[row[1] for row in csv.reader(open('a'))]",
    "fields": "[row['label'] for row in csv.DictReader(open('a'))]",
    "names of files": "[name.split('_')[0] for name in os.listdir('a')]",
    "names of paths": "[path.stem for path in pathlib.Path('a').glob('*')]",
    "keys of JSON": "json.load(open('a')).keys()",
    "matches": "re.findall('x', open('a').read())",
    "lines of a path": "pathlib.Path('a').read_text().splitlines()",
    "output": "subprocess.check_output(['ls']).decode().splitlines()",
    "converted": "pandas.read_csv('a')['id'].astype(str).tolist()",
    "lower case": "pandas.read_csv('a')['id'].str.lower().tolist()",
    "pairs": "[tuple(line.split()) for line in open('a')]",
}
UNKNOWN = {
    "column": ("pandas.read_csv('a')['id']", "advice"),
    "values of JSON": ("json.load(open('a'))['names']", "warning"),
}
"""With what is said: most columns that a set is made of hold numbers."""


def _found(directory: Path, expression: str) -> list[tuple[str, str]]:
    text = f"import csv, json, os, pandas, pathlib, re, subprocess\nprint(list(set({expression}))[0])\n"
    (directory / "program.py").write_text(text)
    settings = load_settings(str(directory), overrides={"cache": False, "jobs": 1, "select": ["DET210"]})
    return [(i.finding.severity.value, i.finding.message) for i in check([str(directory)], settings).items]


@pytest.mark.parametrize("expression", TEXTS.values(), ids=TEXTS.keys())
def test_texts(expression: str, tmp_path: Path) -> None:
    [(severity, message)] = _found(tmp_path, expression)
    assert severity == "error"
    assert "set of strings" in message


@pytest.mark.parametrize(("expression", "expected"), UNKNOWN.values(), ids=UNKNOWN.keys())
def test_what_may_be_text_is_no_error(expression: str, expected: str, tmp_path: Path) -> None:
    [(severity, message)] = _found(tmp_path, expression)
    assert severity == expected
    assert "contains strings" in message
