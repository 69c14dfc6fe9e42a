"""TensorFlow programs under ``d9mlint trace``: eager, ``tf.function`` and Keras ``fit``."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support import needs, until_it_strikes

pytestmark = needs("tensorflow")

PROGRAMS = Path(__file__).parent / "programs" / "tensorflow"
EXPECTED = re.compile(r"# diverges: (\w+)")
QUICK = {"eager_no_seed"}


def traced(directory: Path, name: str) -> dict[str, Any]:
    shutil.copy(PROGRAMS / name, directory)
    report = directory / "report.json"
    command = [*(sys.executable, "-m", "d9mlint", "trace"), "--output-format", "json", "-o", str(report)]
    run = subprocess.run(
        [*command, Path(name).name],
        cwd=directory,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert report.exists(), run.stderr
    found: dict[str, Any] = json.loads(report.read_text())
    assert run.returncode == {"equal": 0, "diverged": 1, "unknown": 2}[found["outcome"]], run.stderr
    return found


def cases(pattern: str) -> list[Any]:
    names = sorted(str(p.relative_to(PROGRAMS)) for p in PROGRAMS.glob(pattern))
    return [
        pytest.param(name, id=Path(name).stem, marks=[] if Path(name).stem in QUICK else [pytest.mark.full])
        for name in names
    ]


@pytest.mark.parametrize("name", cases("*.py"))
def test_a_hazard_is_named_with_its_line_and_verdict(name: str, tmp_path: Path) -> None:
    lines = (PROGRAMS / name).read_text().splitlines()
    row, verdict = next((n, m[1]) for n, line in enumerate(lines, 1) if (m := EXPECTED.search(line)))
    report = until_it_strikes(lambda: traced(tmp_path, name), verdict)
    difference = report["difference"]
    assert difference is not None, report["reason"]
    place = difference["place"][0]
    assert (difference["verdict"], Path(place["filename"]).name, place["row"]) == (verdict, name, row)
    if verdict == "op":
        assert report["confirmation"]["distinct"] > 1
        assert report["confirmation"]["deterministic"]["distinct"] == 1


@pytest.mark.full
@pytest.mark.parametrize("name", cases("clean/*.py"))
def test_a_clean_program_is_equal(name: str, tmp_path: Path) -> None:
    report = traced(tmp_path, name)
    assert report["outcome"] == "equal", report["difference"] or report["reason"]
    assert report["runs"][0]["operations"] == report["runs"][1]["operations"]
    assert report["runs"][0]["steps"] > 0


@pytest.mark.full
def test_every_private_name_is_there_and_a_missing_one_gives_a_clear_message(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from d9mlint.trace import tf_names

    assert tf_names.missing() == []
    need = tf_names._Need("tensorflow.python.eager.backprop", "_gone")
    monkeypatch.setattr(tf_names, "NEEDS", (*tf_names.NEEDS, need))
    with pytest.raises(tf_names.Unsupported, match=r"has no tensorflow\.python\.eager\.backprop\._gone"):
        tf_names.check()
