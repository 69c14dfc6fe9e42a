"""DET106, DET109: generators and estimators that are created without a seed, and given one later."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent, ObjectAttributeEvent
from d9mlint.interp.listening import Listening, on, on_call_if, on_method
from d9mlint.interp.memory import remembered
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.usage import flatten
from d9mlint.knowledge import seed_argument

_OF_PART = "__"
"""Stands between the name of a part and that of its argument: ``forest__random_state``."""
_MOST_NESTED = 8


class SeededLater(Rule):
    """DET106, DET109: what is created without a seed and then given one, or a state, is seeded."""

    codes = ("DET106", "DET109")
    sites = remembered(set[Site])
    estimators = remembered(set[Site])
    """Where estimators are created that get a seed later."""
    copied = remembered(set[Site])
    """Where those are created of which copies get one."""
    fitted = remembered(set[Site])
    """Where estimators are created that the program fits itself."""

    def also(self) -> Iterable[tuple[Listening, Callable[..., None]]]:
        kb = self.run.kb
        return [
            (Listening(CallEvent, tuple(kb.seeding_methods), method=True), self.seeded),
            (Listening(ObjectAttributeEvent, tuple(kb.seeds_given_later)), self.attribute_set),
        ]

    def seeded(self, call: CallEvent) -> None:
        """A generator or an estimator is given a seed."""
        value = call.args.pos[0] if call.args.pos else next(iter(call.args.kw.values()), None)
        if value is None:
            value = v.UNKNOWN if call.args.star or call.args.dstar else v.NONE
        if call.owner is None or v.is_none(value) is True:
            return
        for name, one in call.args.kw.items():
            self._argument(call.owner, name, one)
        for one in v.alternatives(call.owner):
            site = made_at(one) if isinstance(one, v.Obj) else None
            if site is not None:
                self.sites.add(site)

    def attribute_set(self, event: ObjectAttributeEvent) -> None:
        """An estimator is given a seed as an attribute."""
        self._argument(event.owner, event.name, event.value)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "sets-parameters") is not None)
    def parameters_set(self, call: CallEvent) -> None:
        """A search sets arguments of an estimator, perhaps to one of several values, each time before it is fitted."""
        role = self.run.kb.role(call.api, "sets-parameters")
        owner = call.args.get(role.more[0], 0) if role is not None and role.more else None
        given = call.args.get(role.arg, role.pos) if role is not None else None
        grids = given.elts if isinstance(given, v.Items) and not given.open else [given]
        known = [one for one in grids if isinstance(one, v.Mapping)]
        if owner is None or not known or len(known) < len(grids):
            return
        for name, value in known[0].items.items():
            if isinstance(name, str) and all(_is_fixed(one.items.get(name)) for one in known):
                self._argument(owner, name, value, self.copied)

    @on_method("fit", "fit_predict", "fit_transform", "partial_fit")
    def fits(self, call: CallEvent) -> None:
        """The program fits an estimator."""
        for one in v.alternatives(call.owner) if call.owner is not None else ():
            held = one.args.values() if isinstance(one, v.Obj) and not self._searches(one) else []
            for part in (one, *(inner for value in held for inner in flatten(value))):
                site = made_at(part) if isinstance(part, v.Obj) else None
                if site is not None:
                    self.fitted.add(site)

    def _searches(self, value: v.Obj) -> bool:
        return self.run.kb.role(value.api, "sets-parameters") is not None

    def _argument(self, owner: v.Value, name: str, value: v.Value, sites: set[Site] | None = None) -> None:
        """An object, or a part of it, is given an argument of its constructor."""
        path, _, last = name.rpartition(_OF_PART)
        if last not in self.run.kb.seeds_given_later or v.is_none(value) is True:
            return
        part = path.rpartition(_OF_PART)[2]
        for one in v.alternatives(owner):
            for found in _named(one, part) if part else [self._itself(one)]:
                site = made_at(found) if isinstance(found, v.Obj) else None
                if (
                    isinstance(found, v.Obj)
                    and site is not None
                    and any(seed_argument(entry) == last for entry in self.run.kb.rng(found.api))
                ):
                    (self.estimators if sites is None else sites).add(site)

    def _itself(self, value: v.Value) -> v.Value:
        """What a value is, or is a copy of."""
        role = self.run.kb.role(value.api, "wraps") if isinstance(value, v.Obj) else None
        inner = value.args.get(role.arg, role.pos) if role is not None and isinstance(value, v.Obj) else None
        return value if inner is None else inner

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What is ever seeded is known."""
        for site in self.sites:
            self._withdraw("DET106", site, "the generator is given a seed later")
        for site in (*self.estimators, *(self.copied - self.fitted)):
            self._withdraw("DET109", site, "the estimator is given a seed later")

    def _withdraw(self, code: str, site: Site, why: str) -> None:
        self.reporter.withdraw(code, site)
        if self.run.silences is not None:
            self.run.silences(code, site, why)


def _is_fixed(value: v.Value | None) -> bool:
    """Whether an argument is a number, or one of some numbers."""
    values = value.elts if isinstance(value, v.Items) and not value.open else [value]
    return bool(values) and all(isinstance(one, v.Lit) and isinstance(one.value, int) for one in values)


def _named(value: v.Value, name: str, depth: int = 0) -> Iterator[v.Value]:
    """The parts of an object that have a name: an argument, one of a list of pairs, or what is called after its class."""
    if depth > _MOST_NESTED:
        return
    if isinstance(value, v.Obj):
        for key, one in value.args.kw.items():
            if key == name:
                yield one
        held = value.args.values()
    elif isinstance(value, v.Items):
        held = value.elts
        if len(held) > 1 and isinstance(held[0], v.Lit) and held[0].value == name:
            yield from held[1:]
    else:
        held = []
    for one in held:
        if isinstance(one, v.Obj) and one.api.rpartition(".")[2].lower() == name:
            yield one
        yield from _named(one, name, depth + 1)
