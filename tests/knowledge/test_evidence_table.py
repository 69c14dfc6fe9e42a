"""The table of what was measured on GPUs is that of the evidence."""

from __future__ import annotations

import evidence_table


def test_the_table_is_current() -> None:
    assert evidence_table.PAGE.read_text(encoding="utf-8") == evidence_table.page(), (
        "run python tests/knowledge/evidence_table.py"
    )
