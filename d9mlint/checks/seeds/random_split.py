"""DET109: a split that depends on what was drawn before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule, seeded_generator
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call
from d9mlint.interp.naming import needs_form_only
from d9mlint.interp.state import SEEDED, UNSEEDED

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def is_unread_split(run: RunView, node: Any) -> bool:
    """Whether nothing reads the parts that a call divides something into at random, or they are only asked how long they
    are."""
    if run.frame.func is None and run.frame.file.path in run.imported_files:
        # Other files may read what a module keeps.
        return False
    return run.unread(node) or needs_form_only(run, node)


class RandomSplit(Rule):
    """DET109: a split that depends on what was drawn before."""

    codes = ("DET109",)

    @on_call("torch.utils.data.random_split")
    def split(self, call: CallEvent) -> None:
        """A dataset is split."""
        level = self.run.state.level("torch").level
        if is_unread_split(self.run, call.node):
            return
        # A program that may seed torch, as where a configuration has a seed, gets the advice that one gets which does.
        known = level in (SEEDED, UNSEEDED) or self.run.entry is not None
        if call.args.get("generator", 2) is None and known:
            seeded = level != UNSEEDED
            help, remedy = seeded_generator(self.run, call.api)
            # In code that no entry point reaches, whoever calls it may seed torch.
            otherwise = Severity.WARNING if self.run.entry is None else None
            self.report(
                "DET109",
                call.node,
                "`random_split` without `generator=`: the split "
                + (
                    "depends on every earlier random draw"
                    if seeded
                    else "differs between runs because torch is not seeded"
                ),
                help,
                subject=call.api,
                severity=Severity.ADVICE if seeded else otherwise,
                entry_wide=True,
                remedy=remedy,
            )
