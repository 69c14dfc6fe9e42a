"""DET802: Inductor draws other numbers than eager mode, unless it is set to use eager's generator."""

from __future__ import annotations

from typing import Any

from d9mlint.checks.base import Rule
from d9mlint.checks.drawing import draws
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, DecoratorEvent, EndEvent
from d9mlint.interp.listening import on, on_call
from d9mlint.interp.memory import remembered
from d9mlint.interp.places import Where

_FALLBACK = "torch.inductor.fallback_random"


class Compiler(Rule):
    """DET802: Inductor draws other numbers than eager mode, unless it is set to use eager's generator."""

    codes = ("DET802",)
    places = remembered(list[Where])

    def compiled(self, function: v.Value | None, options: v.Value | None, node: Any) -> None:
        """A function is compiled."""
        drawn = draws(self.run, function)
        if not drawn or not drawn & {"torch", "torch_cuda"}:
            return
        if isinstance(options, v.Mapping):
            fallback = options.items.get("fallback_random")
            if fallback is not None and v.truth(fallback) is not False:
                return
        self.places.append(Where(self.run, node, "torch.compile"))

    @on_call("torch.compile")
    def call(self, call: CallEvent) -> None:
        """Something is called."""
        self.compiled(call.args.get("model", 0), call.args.kw.get("options"), call.node)

    @on(DecoratorEvent)
    def decorator(self, event: DecoratorEvent) -> None:
        """A decorator is applied."""
        used, function, node = event
        if isinstance(used, v.Ext) and self.run.kb.canonical(used.name) == "torch.compile":
            self.compiled(function, None, node)
        elif isinstance(used, v.Obj) and used.api == "torch.compile":
            self.compiled(function, used.args.kw.get("options"), node)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        if self.run.state.modes.get(_FALLBACK) is not None and self.run.mode(_FALLBACK).value in (True, None):
            return
        for place in self.places:
            self.report(
                "DET802",
                place,
                "the compiled function draws other random numbers than the same code without compilation",
                "set `torch._inductor.config.fallback_random = True` where the two are compared",
                subject=place.subject,
            )
