"""JSON, one finding a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from d9mlint.report.common import Options
from d9mlint.report.json import entry

if TYPE_CHECKING:
    from d9mlint.pipeline import Result


def render(result: Result, options: Options) -> str:
    """All findings, a JSON object a line; nothing for a clean run."""
    return "".join(json.dumps(entry(result, item), ensure_ascii=False) + "\n" for item in result.items)
