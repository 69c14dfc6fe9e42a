"""Places in a run: where something happens, the calls that lead there, and the function around it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.base.findings import Step
from d9mlint.base.options import A_GPU
from d9mlint.interp.given_together import needed
from d9mlint.interp.state import Site
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.view import RunView


def given_beside(interp: RunView) -> tuple[str, ...]:
    """The options that have to be given to come here, beside the one that has led aside."""
    return tuple(
        one
        for one in dict.fromkeys([*interp.asides, *needed(interp.given)])
        if one and one not in (interp.state.noted_aside, A_GPU)
    )


class Where:
    """A remembered place in a run: its site, the flow to it, and the function around it.

    ``function`` is that function as (path of the file, index in the file's facts)."""

    __slots__ = (
        "aside",
        "assumed",
        "entry",
        "flow",
        "function",
        "guessed",
        "option",
        "order",
        "others",
        "scope",
        "site",
        "subject",
    )

    def __init__(self, interp: RunView, node: Any, subject: str = "", option: str = "") -> None:
        self.site: Site = _called(interp.here(node), node)
        self.flow = flow(interp)
        self.scope = scope(interp)
        self.function = function(interp)
        self.entry = interp.entry.relative if interp.entry is not None else None
        self.subject = subject
        self.option = option
        self.guessed = interp.guessing > 0
        self.aside = interp.state.noted_aside
        # The other options that have to be given, too.
        self.others = given_beside(interp)
        self.assumed = interp.assumed
        self.order = interp.steps

    @property
    def given(self) -> tuple[str, ...]:
        """The options that have to be given."""
        return (self.aside, *self.others) if self.aside else ()

    def with_flow(self, flow: tuple[Step, ...]) -> Where:
        """The same place with another flow. A place may be remembered by an import: it stays what it is."""
        new = Where.__new__(Where)
        for slot in Where.__slots__:
            setattr(new, slot, getattr(self, slot))
        new.flow = flow
        return new

    def called_by(self, frame: Frame, steps: int) -> Where:
        """The place of the call that began ``frame``, to which so many steps of the flow lead."""
        if frame.caller is None or frame.call_site is None:
            return self
        new = self.with_flow(self.flow[:steps])
        new.site = frame.call_site
        new.scope, new.function = _scope_of(frame.caller), _function_of(frame.caller)
        return new

    def replayed(self, replay: Replay) -> Where:
        """The same place of an import in another run, which takes it over."""
        new = self.with_flow(replay.flow + self.flow[replay.dropped :])
        new.entry = replay.run.entry.relative if replay.run.entry is not None else None
        new.aside, new.others = replay.run.state.noted_aside, ()
        new.assumed = replay.run.assumed
        new.order = self.order + replay.later
        return new


class Replay(NamedTuple):
    """How a run that takes an import over differs from the one that remembered it: the run, its flow into the import,
    the length of the flow that was remembered, and by how many steps the import begins later."""

    run: RunView
    flow: tuple[Step, ...]
    dropped: int
    later: int


class Moment(int):
    """A time of the run, in its steps."""

    __slots__ = ()

    def replayed(self, replay: Replay) -> Moment:
        """The same time of an import in another run, which takes it over."""
        return Moment(self + replay.later)


def _called(site: Site, node: Any) -> Site:
    """The place of a call; that of the method's name where the receiver is a call itself (``a.b().c()``)."""
    if isinstance(node, m.Call) and isinstance(node.func, m.Attr) and isinstance(node.func.value, m.Call):
        return site._replace(start=node.func.end - len(node.func.name.rpartition(".")[2]))
    return site


def scope(interp: RunView) -> str:
    """Qualified name of the function that is running, empty at module level."""
    return _scope_of(interp.frame)


def _scope_of(frame: Frame | None) -> str:
    while frame is not None and frame.func is None and frame.is_class:
        frame = frame.caller
    return frame.func.fn.qualname if frame is not None and frame.func is not None else ""


def function(interp: RunView) -> tuple[str, int]:
    """The function that is running, by file and index; a module body has index 0."""
    return _function_of(interp.frame)


def _function_of(frame: Frame | None) -> tuple[str, int]:
    while frame is not None:
        if frame.func is not None:
            return (frame.func.file.path, frame.func.file.index_of(frame.func.fn))
        if not frame.is_class:
            return (frame.file.path, 0)
        frame = frame.caller
    return ("", 0)


def flow_into(interp: RunView, name: str) -> tuple[Step, ...]:
    """The flow to the present place and into the import of a module that stands here."""
    site = interp.here()
    step = Step(site.path, site.start, site.end, f"import of {name} starts here")
    return (*flow(interp), step) if site.end else flow(interp)


def flow(interp: RunView) -> tuple[Step, ...]:
    """The calls from the entry point to the present place."""
    steps: list[Step] = []
    for frame in calls(interp):
        name = frame.label
        text = f"{name} starts here" if name.startswith("import of") else f"{name}() is called here"
        if frame.call_site is not None:
            steps.append(Step(frame.call_site.path, frame.call_site.start, frame.call_site.end, text))
    return tuple(steps)


def running(interp: RunView) -> m.Function | None:
    """The function that is running, or the module's body."""
    frame: Frame | None = interp.frame
    while frame is not None and frame.func is None and frame.is_class:
        frame = frame.caller
    if frame is None:
        return None
    return frame.function


def calls(interp: RunView) -> list[Frame]:
    """What the steps of the flow begin."""
    return [
        one
        for one in interp.stack()
        if one.caller is not None and one.call_site is not None and not one.is_class and one.call_site.end
    ]
