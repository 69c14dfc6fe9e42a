"""DET411: functions that are run again in the backward pass with other random numbers than in the forward pass."""

from __future__ import annotations

import re
from typing import Any

from d9mlint.base.findings import Confidence
from d9mlint.checks.base import Rule
from d9mlint.checks.drawing import draws
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent, DecoratorEvent
from d9mlint.interp.listening import on, on_call_if, on_method
from d9mlint.interp.places import Where
from d9mlint.interp.text import call_text
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

_FUNCTION = "torch.autograd.Function"
_APPLY = f"{_FUNCTION}.apply"
_ENABLE = "gradient_checkpointing_enable"
_OPTION = "preserve_rng_state"
_KEEPING = re.compile(r"rng|rand|seed|generator", re.IGNORECASE)
_WRONG = "the gradients are those of another dropout mask and wrong, although runs agree"


class Recomputation(Rule):
    """DET411: checkpointing, of libraries and by hand."""

    codes = ("DET411",)

    @on_method(_ENABLE)
    def enabled(self, call: CallEvent) -> None:
        """A model shall recompute. Of which class it is need not be known: ``from_pretrained`` gives many."""
        entry = self.run.kb.role(f"?.{_ENABLE}", "checkpoints")
        if entry is not None and self.run.kb.role(call.api, "checkpoints") is None:
            _library(self, call, call.args.get(entry.arg, entry.pos), entry.arg)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "recomputes") is not None)
    def recomputed(self, call: CallEvent) -> None:
        """A function is wrapped to run again in the backward pass, and nothing restores a random number state."""
        entry = self.run.kb.role(call.api, "recomputes")
        if entry is not None and draws(self.run, call.args.get(entry.arg, entry.pos)):
            self._draws_again(call.node, call_text(call), call.api)

    @on(DecoratorEvent)
    def decorated(self, event: DecoratorEvent) -> None:
        """A function is decorated so."""
        name = self.run.kb.canonical(event.decorator.name) if isinstance(event.decorator, v.Ext) else ""
        if name and self.run.kb.role(name, "recomputes") is not None and draws(self.run, event.decorated):
            self._draws_again(event.node, name, name)

    def _draws_again(self, node: Any, text: str, api: str) -> None:
        self.report(
            "DET411",
            node,
            f"`{text}` runs the function again in the backward pass with other random numbers; {_WRONG}",
            "draw with stateless functions, from a seed that is an argument of the function",
            subject=api,
        )

    @on_call_if(lambda rule, api: api == _APPLY or rule.run.kb.role(api, "checkpoints") is not None)
    def call(self, call: CallEvent) -> None:
        """A function is run again in the backward pass."""
        entry = self.run.kb.role(call.api, "checkpoints")
        if entry is not None and all_hold(call.args, entry.when) is not False:
            _library(self, call, call.args.get(entry.arg, entry.pos), entry.arg)
        if call.api == _APPLY and isinstance(call.owner, v.Cls):
            if _FUNCTION in map(self.run.kb.canonical, call.owner.external_bases()):
                _by_hand(self, call.owner, call)


def _library(rule: Rule, call: CallEvent, given: v.Value | None, argument: str) -> None:
    """``checkpoint(f, x, preserve_rng_state=False)``, or the same in a dictionary of options."""
    option = call.args.kw.get(_OPTION)
    if isinstance(given, v.Mapping) and argument != "function":
        option, given = given.items.get(_OPTION), None
    if not isinstance(option, v.Lit) or option.value is not False:
        return
    confidence = None
    if argument == "function":
        drawn = draws(rule.run, given)
        if drawn is not None and not drawn:
            return
        confidence = Confidence.MEDIUM if drawn is None else None
    rule.report(
        "DET411",
        call.node,
        f"`{_OPTION}=False`: the backward pass recomputes with other random numbers; {_WRONG}",
        f"leave `{_OPTION}` at `True`",
        subject=call.api,
        confidence=confidence,
    )


def _by_hand(rule: Rule, cls: v.Cls, call: CallEvent) -> None:
    """A custom autograd function whose backward pass calls again what its forward pass called."""
    forward, backward = cls.find("forward"), cls.find("backward")
    if not isinstance(forward, v.Func) or not isinstance(backward, v.Func):
        return
    if len(forward.fn.params) < 2 or not backward.fn.params:
        return
    kept = _kept_callables(forward, rule.run.body(forward))
    body = rule.run.body(backward)
    again = _called_again(backward, body, kept)
    if again is None or any(_KEEPING.search(name) for name in _names(body)):
        return
    node, parameter = again
    position = [param.name for param in forward.fn.params].index(parameter) - 1
    drawn = draws(rule.run, call.args.get(parameter, position))
    if drawn is not None and not drawn:
        return
    place = Where(rule.run, call.node, _APPLY)
    place.site = place.site._replace(path=backward.file.path, start=node.start, end=node.end)
    rule.report(
        "DET411",
        place,
        f"`{_written(node)}` runs again in the backward pass without the random number state of the forward "
        f"pass; {_WRONG}",
        "save the RNG state in `forward` and restore it around the call, or use `torch.utils.checkpoint.checkpoint`",
        subject=_APPLY,
        confidence=None if drawn else Confidence.MEDIUM,
    )


def _kept_callables(forward: v.Func, body: list[m.Stmt]) -> dict[str, str]:
    """Attributes of the context that ``forward`` sets to a parameter which it also calls, with the parameter."""
    context = forward.fn.params[0].name
    params = {param.name for param in forward.fn.params[1:]}
    called: set[str] = set()
    kept: dict[str, str] = {}
    for node in nodes(list(body)):
        if isinstance(node, m.Call) and isinstance(node.func, m.Name):
            called.add(node.func.id)
        if isinstance(node, m.Assign) and isinstance(node.value, m.Name) and node.value.id in params:
            for target in node.targets:
                if isinstance(target, m.Name) and target.id.startswith(f"{context}."):
                    kept[target.id[len(context) + 1 :]] = node.value.id
    return {
        name: parameter
        for name, parameter in kept.items()
        if parameter in called or f"{context}.{name}" in called
    }


def _called_again(backward: v.Func, body: list[m.Stmt], kept: dict[str, str]) -> tuple[m.Call, str] | None:
    """The call in ``backward`` of what was kept, and the parameter of ``forward`` that it came from."""
    names = {f"{backward.fn.params[0].name}.{name}": parameter for name, parameter in kept.items()}
    for node in nodes(list(body)):
        if isinstance(node, m.Assign) and isinstance(node.value, m.Name) and node.value.id in names:
            for target in node.targets:
                if isinstance(target, m.Name):
                    names.setdefault(target.id, names[node.value.id])
    found: list[tuple[m.Call, str]] = [
        (node, names[node.func.id])
        for node in nodes(list(body))
        if isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id in names
    ]
    return min(found, key=lambda one: one[0].start) if found else None


def _names(body: list[m.Stmt]) -> set[str]:
    return {
        node.id if isinstance(node, m.Name) else node.name
        for node in nodes(list(body))
        if isinstance(node, (m.Name, m.Attr))
    }


def _written(node: m.Call) -> str:
    """The called name as it is written."""
    return node.func.id if isinstance(node.func, m.Name) else "the function"
