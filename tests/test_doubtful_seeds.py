"""A seeding helper of which only the name is known."""

from __future__ import annotations

from pathlib import Path

from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check

PROGRAM = """import numpy as np
import torch
from labtools.misc import {helper}

{helper}({given})
print(torch.randn(3), np.random.rand())
"""


def _found(directory: Path, helper: str, given: str, **settings: object) -> list[tuple[str, str, str]]:
    (directory / "train.py").write_text(PROGRAM.format(helper=helper, given=given))
    overrides = {"cache": False, "jobs": 1, **settings}
    result = check([str(directory)], load_settings(str(directory), overrides=overrides))
    return [(i.finding.code, i.finding.severity.value, i.finding.message) for i in result.items]


def test_draws_after_it_are_advice_that_names_it(tmp_path: Path) -> None:
    found = _found(tmp_path, "setup_seed", "7", select=["DET101", "DET102"])
    assert [(code, severity) for code, severity, _ in found] == [("DET101", "advice"), ("DET102", "advice")]
    assert all("`labtools.misc.setup_seed`" in message for _, _, message in found)


def test_by_default_nothing_is_shown_for_it(tmp_path: Path) -> None:
    assert _found(tmp_path, "set_random_seed", "7") == []


def test_a_helper_of_another_name_or_without_a_value_is_none(tmp_path: Path) -> None:
    for helper, given in (("start_run", "7"), ("set_random_seed", "None"), ("set_random_seed", "")):
        found = _found(tmp_path, helper, given)
        assert [(code, severity) for code, severity, _ in found] == [("DET101", "error"), ("DET102", "error")]
