"""DET211: estimators that worker processes fit, which no seed of the program reaches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Confidence, Step
from d9mlint.checks.base import Rule
from d9mlint.checks.drawing import RANDOM_STATE, parts_of, unseeded_estimators
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call_if, on_method
from d9mlint.interp.places import Where
from d9mlint.interp.state import UNSEEDED
from d9mlint.interp.storage import made_at

if TYPE_CHECKING:
    from collections.abc import Iterator

_JOBS = "n_jobs"
_HERE = frozenset({"cv", "final_estimator"})
"""Arguments of which the program itself uses what they are given, before or after the workers."""
_DEPTH = 6


class ParallelFits(Rule):
    """DET211: estimators that worker processes fit, which no seed of the program reaches."""

    codes = ("DET211",)

    @on_call_if(lambda rule, api: rule.run.kb.call_is("fits-estimator", api))
    def scored(self, call: CallEvent) -> None:
        """A function fits an estimator on parts of the data."""
        if self._seeded() and _in_parallel(call.args):
            self._judge(call.node, call.api, call.args)

    @on_method("fit", "fit_transform")
    def fitted(self, call: CallEvent) -> None:
        """An estimator that may hold others is fitted."""
        if (
            isinstance(call.owner, v.Obj)
            and self.run.kb.call_is("fits-parts", call.owner.api)
            and self._seeded()
        ):
            for whole in self._parallel(call.owner, 0):
                self._judge(call.node, whole.api, whole.args)

    def _seeded(self) -> bool:
        """Without a seed the estimators are reported for that."""
        return self.run.state.level("numpy").level != UNSEEDED

    def _parallel(self, whole: v.Obj, depth: int) -> Iterator[v.Obj]:
        """What fits its parts in worker processes: an estimator, or parts of it."""
        if self.run.kb.call_is("fits-in-processes", whole.api) and _in_parallel(whole.args):
            yield whole
        elif depth < _DEPTH:
            for part in _parts(whole.args):
                if self.run.kb.call_is("fits-parts", part.api):
                    yield from self._parallel(part, depth + 1)

    def _judge(self, node: Any, api: str, args: v.Args) -> None:
        if args.star or args.dstar or _sets_state(args):
            return
        drawing = [one for part in _parts(args) for one in unseeded_estimators(self.run, part)]
        if not drawing:
            return
        place = Where(self.run, node, api)
        sites = {site: one for one in drawing if (site := made_at(one)) is not None}
        steps = [Step(*site, f"`{_name(one.api)}` is made here") for site, one in sites.items()]
        names = " and ".join(f"`{name}`" for name in dict.fromkeys(_name(one.api) for one in drawing))
        jobs = args.kw[_JOBS]
        written = f"({_JOBS}={jobs.value})" if isinstance(jobs, v.Lit) else ""
        self.report(
            "DET211",
            place.with_flow((*place.flow, *steps)),
            f"`{_name(api)}{written}` fits {names} in worker processes, in which NumPy is not seeded: "
            "results differ between runs",
            f"pass `{RANDOM_STATE}=0` to {names}",
            subject=api,
            confidence=Confidence.HIGH if written else Confidence.MEDIUM,
        )


def _in_parallel(args: v.Args) -> bool:
    """Whether more than one job is asked for."""
    jobs = args.kw.get(_JOBS)
    return (
        jobs is not None and v.is_none(jobs) is not True and not (isinstance(jobs, v.Lit) and jobs.value == 1)
    )


def _parts(args: v.Args) -> list[v.Obj]:
    """What the workers may be given of some arguments."""
    return parts_of(v.Args(args.pos, {name: one for name, one in args.kw.items() if name not in _HERE}))


def _sets_state(args: v.Args) -> bool:
    """Whether one of the parameters that a search tries is the seed."""
    return any(
        isinstance(value, v.Mapping)
        and any(isinstance(key, str) and key.endswith(RANDOM_STATE) for key in value.items)
        for given in (*args.pos, *args.kw.values())
        for value in (given.elts if isinstance(given, v.Items) else (given,))
    )


def _name(api: str) -> str:
    return api.rpartition(".")[2]
