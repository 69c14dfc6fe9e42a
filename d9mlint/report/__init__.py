"""Reports: a result as text for people and for other programs, one module a format."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from d9mlint.pipeline import Result
    from d9mlint.report.common import Options


def render(result: Result, output_format: str, options: Options) -> str:
    """A result in one of the formats, ending with a newline."""
    from d9mlint.base.paths import boundary
    from d9mlint.report.common import rebased

    if output_format in ("sarif", "gitlab"):
        result = rebased(result, boundary(result.root))
    elif output_format not in ("json", "json-lines"):
        result = rebased(result, options.cwd)
    module = importlib.import_module(f"d9mlint.report.{output_format.replace('-', '_')}")
    text: str = module.render(result, options)
    return text
