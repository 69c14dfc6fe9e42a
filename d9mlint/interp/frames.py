"""Activations: what runs when a module body, a class body or a function does."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import call_at

if TYPE_CHECKING:
    from d9mlint.interp.equal_tests import Chosen
    from d9mlint.interp.given_options import Asked, Written
    from d9mlint.interp.heap import Overwritten
    from d9mlint.interp.orders import Order
    from d9mlint.interp.partings import Open
    from d9mlint.interp.state import Site, State
    from d9mlint.project.modules import ModuleFile

MAX_DEPTH = 60
"""Calls deeper than this are not followed."""
MAX_IMPORT_STEPS = 20_000
"""Steps of one module body, and of what it calls, before its calls are no longer followed."""


class BudgetExceeded(Exception):
    """Calls are no longer followed, and the statements that were left take as many steps again: enough."""


class Aside(NamedTuple):
    """A path that goes on where an option's default does not. ``loops`` is how many loops of the function were running,
    0 where the default returns; ``variables`` is what the variables are by default, ``born`` when the path began;
    ``narrowed`` is what tests say of the values that stand somewhere, with what stood there."""

    option: str
    loops: int
    born: int
    variables: dict[str, v.Value]
    overwritten: Overwritten
    narrowed: list[tuple[dict[Any, v.Value], Any, v.Value | None, v.Value]]


class Jumped(NamedTuple):
    """A path that has left a round of a loop: its state, its variables (None where they are joined elsewhere), and
    whether it ``leaves`` the loop too."""

    state: State
    variables: dict[str, v.Value] | None
    leaves: bool


class Frame:
    """One activation: a module body, class body or function call."""

    __slots__ = (
        "asides",
        "asked_then",
        "call_site",
        "caller",
        "chosen",
        "class_fact",
        "depth",
        "dispatching",
        "env",
        "file",
        "func",
        "jumps",
        "keeps_locals",
        "label",
        "missed",
        "mod",
        "on_yield",
        "parted",
        "returns",
        "returns_aside",
        "unrolled",
        "written",
        "yielded",
        "yields",
    )

    def __init__(
        self,
        mod: v.Mod,
        file: ModuleFile,
        env: v.Env,
        label: str,
        caller: Frame | None,
        call_site: Site | None,
        func: v.Func | None = None,
    ) -> None:
        self.mod = mod
        self.file = file
        self.env = env
        self.label = label
        self.caller = caller
        self.call_site = call_site
        self.func = func
        self.depth: int = caller.depth + 1 if caller else 0
        # A name that was read last and is not known.
        self.missed: m.Name | None = None
        self.returns: list[tuple[v.Value, State]] = []
        # What is returned if an option is given, with the option.
        self.returns_aside: list[tuple[v.Value, str]] = []
        # The paths that have left a round of each loop that is running.
        self.jumps: list[list[Jumped]] = []
        # The paths that the run is on since an option's default left a loop's round or the function.
        self.asides: list[Aside] = []
        # Branches of which one has returned.
        self.parted: list[Open] = []
        # How many of the loops that are running go over a known sequence, element by element.
        self.unrolled = 0
        # How many of the branches that are running are for a set, of which nothing says that one comes.
        self.dispatching = 0
        # What tests chose, by their texts.
        self.chosen: dict[str, Chosen] = {}
        # The branches that were run for one value of an option.
        self.asked_then: list[Asked] = []
        # What was written where options have other values than by default.
        self.written: list[Written] = []
        # The class whose body runs.
        self.class_fact: m.Class | None = None
        # Whether the local variables are what the function gives, as those of a configuration.
        self.keeps_locals = False
        # The order in which a generator yields, where it is arbitrary.
        self.yields: Order | None = None
        # What a generator function has yielded, and what runs at its `yield` when it is a context manager.
        self.yielded: list[v.Value] = []
        self.on_yield: Callable[[v.Value], None] | None = None

    @property
    def is_class(self) -> bool:
        """Whether the body of a class runs."""
        return self.class_fact is not None

    @property
    def function(self) -> m.Function:
        """The function that runs, or the body of the module, also where that of a class runs."""
        return self.func.fn if self.func is not None else self.file.facts.functions[0]

    @property
    def body(self) -> list[m.Stmt]:
        """The statements that run: of a function, a class or a module."""
        return self.class_fact.body if self.class_fact is not None else self.function.body

    def began(self) -> m.Call | None:
        """The call in the caller that began it, where the program has it."""
        if self.caller is None or self.call_site is None:
            return None
        return call_at(self.caller.body, self.call_site.start, self.call_site.end)
