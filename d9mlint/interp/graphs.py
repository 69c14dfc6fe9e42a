"""Graphs of TensorFlow: each has its own seed, and none has that of eager execution.

``tf.set_random_seed`` seeds the graph that is the default one where it is called, and ``tf.random.set_seed`` likewise
where there is one. ``with graph.as_default()`` and ``with Session(graph=graph)`` make another one the default; so do
``reset_default_graph`` and the ``clear_session`` of Keras in programs that build graphs. Under eager execution, ``with
Session()`` makes the graph the default one that a program has without making any: no seed of eager execution is for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.state import SEEDED, UNSEEDED, Rng, Site

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

GENERATOR = "tensorflow"
GRAPHS = frozenset({"tf.Graph", "tf.compat.v1.Graph"})
SESSIONS = frozenset({"tf.Session", "tf.compat.v1.Session"})
RESETS = ("tf.reset_default_graph", "tf.compat.v1.reset_default_graph", "tf.keras.backend.clear_session")
"""What replaces the default graph, in programs that build graphs."""


FIRST_GRAPH = "tensorflow: first graph"
"""Stands among the RNGs for the graph that a program has without making one, where it executes eagerly otherwise."""
_MADE = frozenset({f"{one}.as_default" for one in GRAPHS})
_WITHIN = _MADE | SESSIONS
"""Contexts in which a graph is the default one."""


class GraphSeed(NamedTuple):
    """``Obj.data`` of a graph: how it was seeded when it was last left."""

    level: Rng


def entered(interp: Interp, context: v.Obj, node: Any) -> Callable[[], None] | None:
    """Make the graph of a context the default one; what restores the one before, None where it is not replaced."""
    graph = context.args.get("graph", 1) if context.api in SESSIONS else context.owner
    if context.api in SESSIONS and (graph is None or v.is_none(graph)):
        return _enter_first(interp, node) if is_eager(interp) else None
    if not isinstance(graph, v.Obj) or graph.api not in GRAPHS:
        return None
    outer = interp.state.level(GENERATOR)
    for loop in interp.orders.loops:
        loop.graphs = loop.graphs or loop.start < graph.birth
    known = graph.data.level if isinstance(graph.data, GraphSeed) else _new(outer)
    interp.state.rng[GENERATOR] = known._replace(graph=interp.here(node))

    def leave() -> None:
        inner = interp.state.level(GENERATOR)
        graph.data = GraphSeed(inner)
        interp.state.rng[GENERATOR] = outer if outer.level == SEEDED else _another(inner, outer)

    return leave


def is_eager(interp: Interp) -> bool:
    """Whether the program executes eagerly here: it builds no graphs as in TensorFlow 1, and is in no graph."""
    switches = interp.switches
    return not (built(interp) or switches.tf_graph_unknown or interp.contexts.within(_WITHIN))


def _enter_first(interp: Interp, node: Any) -> Callable[[], None]:
    """Make the graph the default one that the program has without making one."""
    table = interp.state.rng
    outer = interp.state.level(GENERATOR)
    known = table[FIRST_GRAPH] if FIRST_GRAPH in table else _new(outer)
    table[GENERATOR] = known._replace(graph=interp.here(node))

    def leave() -> None:
        inner = interp.state.level(GENERATOR)
        interp.state.rng.update({FIRST_GRAPH: inner, GENERATOR: outer})

    return leave


def of_estimator(interp: Interp, configured: Site | None, build: Callable[[], object]) -> None:
    """Let an estimator build its graph, for which its configuration has no seed; ``configured`` is where that is made, or
    the estimator that has none."""
    outer = interp.state.level(GENERATOR)
    interp.state.rng[GENERATOR] = _new(outer)._replace(graph=configured, estimator=True)
    build()
    interp.state.rng[GENERATOR] = outer


def built(interp: Interp) -> bool:
    """Whether the program builds graphs, as in TensorFlow 1."""
    return interp.switches.tf_graph or interp.kb_matches("tensorflow", "<2.0")


def reset(interp: Interp, node: Any) -> None:
    """The default graph is replaced by a new one."""
    new = _new(interp.state.level(GENERATOR))
    if not built(interp):
        interp.state.rng[FIRST_GRAPH] = new
        return
    for loop in interp.orders.loops:
        loop.graphs = True
    interp.state.rng[GENERATOR] = new._replace(graph=interp.here(node))


def _new(known: Rng) -> Rng:
    """The state of a graph that the program makes, beside one that is ``known``."""
    return _another(known)._replace(new_graph=True)


def _another(known: Rng, level: Rng | None = None) -> Rng:
    """The state of a graph that is not seeded (or is in the state ``level``), beside one that is ``known``."""
    if known.level != SEEDED:
        return level or Rng(UNSEEDED)
    return Rng(UNSEEDED, level.option if level else "", known.site, elsewhere=True)
