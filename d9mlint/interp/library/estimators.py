"""Estimators: objects that call the function which builds their graph each time they train, evaluate or predict, and tell
it for which of these."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from d9mlint.interp import graphs, rng
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.storage import made_at

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

ROLE: Final = "calls-in-modes"
_BUILT = "@graph"
"""Attribute of an estimator: whether its graph was built."""
_MODE = "mode"
"""The argument that the function takes the mode with."""


def made(interp: Interp, estimator: v.Obj) -> None:
    """An estimator is made: its graph is built where it is used, at the latest at the program's end."""
    if interp.kb.role(estimator.api, ROLE) is None or _function(interp, estimator) is None:
        return
    estimator.attrs[_BUILT] = v.FALSE
    frame = interp.frame

    def later() -> None:
        if v.truth(estimator.attrs[_BUILT]) is False:
            interp.frame, kept = frame, interp.frame
            _build(interp, estimator, "", estimator.node)
            interp.frame = kept

    interp.later(later)


def used(interp: Interp, estimator: v.Value | None, method: str, node: Any) -> None:
    """A method of something is called."""
    if isinstance(estimator, v.Obj) and is_estimator(estimator):
        role = interp.kb.role(f"{estimator.api}.{method}", "works-in-mode")
        if role is not None:
            _build(interp, estimator, role.more[0], node)


def handed_over(interp: Interp, estimator: v.Obj, node: Any) -> None:
    """A library gets an estimator, which it may use in any mode."""
    _build(interp, estimator, "", node)


def is_estimator(value: v.Obj) -> bool:
    """Whether something calls a function of the project that builds its graph."""
    return value._attrs is not None and _BUILT in value.attrs


def _function(interp: Interp, estimator: v.Obj) -> v.Value | None:
    role = interp.kb.role(estimator.api, ROLE)
    found = estimator.args.get(role.arg, role.pos) if role is not None else None
    return found if isinstance(found, (v.Func, v.Partial, v.Inst)) else None


def _build(interp: Interp, estimator: v.Obj, mode: str, node: Any) -> None:
    """Call the function that builds the graph, in a mode or in any."""
    function = _function(interp, estimator)
    if function is not None:
        estimator.attrs[_BUILT] = v.TRUE
        takes = bool(mode) and _takes_mode(function)
        given = v.Args([], {_MODE: v.Lit(mode)} if takes else {}, star=not takes, dstar=True)
        unseeded = _without_seed(interp, estimator)
        if unseeded is None:
            interp.call(function, given, node)
        else:
            graphs.of_estimator(interp, made_at(unseeded), lambda: interp.call(function, given, node))


def _without_seed(interp: Interp, estimator: v.Obj) -> v.Obj | None:
    """The configuration of an estimator that has no seed for its graphs, or the estimator where it has none; None where
    it has, or may have one."""
    role = interp.kb.role(estimator.api, "graph-seed")
    if role is None or estimator.args.star or estimator.args.dstar:
        return None
    if any(graphs.GENERATOR in one.seeds for one in rng.valid(interp, interp.kb.rng(estimator.api), "")):
        # It has one by default in this release.
        return None
    given = estimator.args.get(role.arg, role.pos)
    if given is None or v.is_none(given):
        return estimator
    known = interp.kb.rng(given.api) if isinstance(given, v.Obj) else ()
    seeds = [one for one in known if graphs.GENERATOR in one.seeds]
    if isinstance(given, v.Obj) and seeds and all(all_hold(given.args, one.when) is False for one in seeds):
        return given
    return None


def _takes_mode(function: v.Value | None) -> bool:
    if isinstance(function, v.Partial):
        return _MODE not in function.args.kw and _takes_mode(function.func)
    if isinstance(function, v.Inst):
        return _takes_mode(function.cls.find("__call__"))
    return isinstance(function, v.Func) and any(one.name == _MODE for one in function.fn.params)
