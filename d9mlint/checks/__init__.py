"""The checks, one module a family, run over a linked program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from d9mlint.checks.base import Reporter
from d9mlint.interp.hooks import Hooks
from d9mlint.interp.library.loaders import on_iterate

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.interp.link import Program


def run(program: Program, codes: Iterable[str]) -> list[Finding]:
    """Run the checks of the given rule codes over a program; findings in their total order."""
    from d9mlint.checks import (
        activity,
        checkpoints,
        data,
        kernels,
        loading,
        memory,
        ops,
        order,
        seeds,
        settings,
        settings_tf,
        tfdata,
    )

    wanted = frozenset(codes)
    hooks = Hooks()
    reporter = Reporter(program, wanted)
    hooks.iterations.append(on_iterate)
    activity.register(hooks)
    for family in (
        seeds,
        settings,
        settings_tf,
        data,
        loading,
        tfdata,
        order,
        memory,
        ops,
        kernels,
        checkpoints,
    ):
        family.register(hooks, reporter)
    program.run(hooks)
    return reporter.findings()
