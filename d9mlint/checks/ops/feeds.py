"""What layers of Keras are fed with: the gradient of a model goes back as far as its first weights, not to its inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent
from d9mlint.interp.listening import on_call_if, on_method
from d9mlint.interp.memory import noted, remembered_table
from d9mlint.interp.shapes import form, is_dtype
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.tensors import detached

if TYPE_CHECKING:
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import RoleEntry

CALLED = ".__call__"


class Feed(NamedTuple):
    """What a layer is called with: where the inputs of models are made that it depends on, and whether it depends on
    nothing else."""

    inputs: frozenset[Site] = frozenset()
    whole: bool = True


ANY_INPUT = Site("", 0, 0)
"""Stands for the inputs of models of which it is not known where they are made."""
_LAYERS = 8
"""How many layers are looked through."""


def is_fixed(interp: RunView, value: v.Value) -> bool:
    """Whether no trainable variable takes part in a value."""
    if isinstance(value, (v.Lit, v.Ext)):
        return True
    if isinstance(value, v.Items):
        return not value.open and all(is_fixed(interp, one) for one in value.elts)
    if isinstance(value, v.AnyOf):
        return all(is_fixed(interp, one) for one in value.values)
    if not isinstance(value, v.Obj):
        return False
    role = interp.kb.role(value.api, "no-variable")
    if role is not None:
        return all_hold(value.args, role.when, value.owner) is True
    if not value.api.startswith("tf."):
        # Methods of arrays give arrays.
        owner = value.owner
        return isinstance(owner, v.Obj) and value.api.startswith(f"{owner.api}.") and is_fixed(interp, owner)
    # Tests and positions have no gradient. What other functions give has variables where their inputs do.
    dtype = form(value).dtype
    if dtype is not None and (is_dtype(dtype, "integer") or dtype == "bool"):
        return True
    known = interp.kb.tensor(value.api)
    inputs = list(value.args.values())
    if known is not None and known.grad == "first":
        return bool(value.args.pos) and is_fixed(interp, value.args.pos[0])
    return known is not None and known.grad == "inputs" and all(is_fixed(interp, one) for one in inputs)


def feed_of(interp: RunView, value: v.Value, depth: int = 0) -> Feed:
    """What a tensor is computed of by layers without weights."""
    if isinstance(value, v.Items) and not value.open:
        return joined([feed_of(interp, one, depth) for one in value.elts])
    if isinstance(value, v.AnyOf):
        return joined([feed_of(interp, one, depth) for one in value.values])
    if not isinstance(value, v.Obj) or depth > _LAYERS:
        return Feed(whole=isinstance(value, v.Lit))
    if interp.kb.role(value.api, "model-input") is not None:
        site = made_at(value)
        return Feed(frozenset([site])) if site is not None else Feed(whole=False)
    layer = value.owner
    if isinstance(layer, v.Obj) and value.api.endswith(CALLED) and interp.kb.role(layer.api, "no-weights"):
        return joined([feed_of(interp, one, depth + 1) for one in value.args.values()])
    if is_fixed(interp, value):
        return Feed()
    if isinstance(layer, v.Obj) and value.api.endswith(CALLED):
        return _feed_of_function(interp, layer, value, depth)
    known = interp.kb.tensor(value.api) if value.api.startswith("tf.") else None
    given = list(value.args.values()) if known is not None and known.grad == "inputs" else []
    return joined([feed_of(interp, one, depth + 1) for one in given]) if given else Feed(whole=False)


def _feed_of_function(interp: RunView, layer: v.Obj, value: v.Obj, depth: int) -> Feed:
    """What a tensor is computed of that is what a function makes of the inputs of a layer."""
    role = interp.kb.role(layer.api, "applies-function")
    function = layer.args.get(role.arg, role.pos) if role is not None else None
    if role is None or not isinstance(function, v.Func):
        return Feed(whole=False)
    more = layer.args.kw.get(role.more[0], v.Mapping({}))
    if not isinstance(more, v.Mapping) or more.open or not all(isinstance(key, str) for key in more.items):
        return Feed(whole=False)
    with interp.fork() as fork:
        made = fork.call(
            function, v.Args(list(value.args.pos), {str(k): x for k, x in more.items.items()}), None
        )
    return feed_of(interp, made, depth + 1)


def joined(feeds: list[Feed]) -> Feed:
    """What a layer is fed with that is called several times, or with several inputs."""
    return Feed(frozenset().union(*(one.inputs for one in feeds)), all(one.whole for one in feeds))


def reached_by(interp: RunView, model: v.Obj, args: v.Args) -> list[Site]:
    """Where the inputs of a model are made that it is given what may depend on variables for."""
    pairs = _given(model, args)
    if pairs is None:
        return [ANY_INPUT]
    found: list[Site] = []
    for one, value in pairs:
        if value is None or not (detached(value) or is_fixed(interp, value)):
            feed = feed_of(interp, one) if one is not None else Feed(whole=False)
            found += sorted(feed.inputs) if feed.inputs and feed.whole else [ANY_INPUT]
    return found


def left_by(interp: RunView, model: v.Obj, args: v.Args) -> list[Site]:
    """Where the inputs of a model are made that it is given what depends on no variable for."""
    given = [
        one
        for one, value in _given(model, args) or ()
        if one is not None and value is not None and (detached(value) or is_fixed(interp, value))
    ]
    return [site for one in given for site in sorted(feed_of(interp, one).inputs)]


def _given(model: v.Obj, args: v.Args) -> list[tuple[v.Value | None, v.Value | None]] | None:
    """The inputs of a model with what it is given for them; None where that is not known."""
    wanted, given = model.args.get("inputs", 0), args.get("inputs", 0)
    if isinstance(wanted, v.Items):
        if not isinstance(given, v.Items) or wanted.open or given.open or len(wanted.elts) != len(given.elts):
            return None
        return list(zip(wanted.elts, given.elts, strict=True))
    return [(wanted, given)]


class Stack(NamedTuple):
    """A model that calls its layers in order, as far as it is built."""

    weighted: bool
    """Whether one of its layers may have weights."""
    loops: tuple[str, ...]
    """The loops in which it is made."""


class Feeds:
    """Listens for what layers are fed with; a base of the rule that judges ops."""

    run: RunView
    reached = noted(list[Site])
    """Where inputs of models are made through which gradients may go to what another model gives."""
    left = noted(list[Site])
    """Where inputs of models are made for which a tape sees what depends on no variable."""
    fed_by = remembered_table(tuple[str, int], Feed)
    """What layers without weights are called with, by where they are made."""
    stacks = remembered_table(tuple[str, int], Stack)
    """Models that call their layers in order, by where they are made."""

    @property
    def memory(self) -> Memory:
        """Where the fields are remembered."""
        return self.run.memory

    @on_call_if(lambda rule, api: _in_order(rule.run, api) is not None)
    def stacked(self, call: CallEvent) -> None:
        """A model is made that calls its layers in order."""
        role = _in_order(self.run, call.api)
        if role is None or call.owner is not None or call.base_of is not None:
            return
        here = self.run.here(call.node)
        model = Site(here.path, here.start, here.end)
        loops = tuple(loop.key for loop in self.run.loops)
        given = call.args.get(role.arg, role.pos)
        stack = Stack(call.args.star or call.args.dstar, loops)
        for layers in v.alternatives(given) if given is not None and v.is_none(given) is not True else ():
            if isinstance(layers, v.Items):
                stack = stack._replace(weighted=stack.weighted or layers.open)
                for layer in layers.elts:
                    stack = self._put(model, stack, layer)
            else:
                stack = stack._replace(weighted=True)
        self.stacks[model.path, model.end] = stack

    @on_method("add")
    def layer_added(self, call: CallEvent) -> None:
        """A layer is added to a model behind those that it has."""
        layer, owner = call.args.get("layer", 0), call.owner
        if layer is None:
            return
        model = made_at(owner) if isinstance(owner, v.Obj) and _in_order(self.run, owner.api) else None
        stack = self.stacks.get((model.path, model.end)) if model is not None else None
        if model is None or stack is None:
            self._feed(layer, Feed(whole=False))
            return
        if not stack.weighted and stack.loops != tuple(loop.key for loop in self.run.loops):
            # What the other rounds of the loop add may be in front of it.
            stack = stack._replace(weighted=True)
        self.stacks[model.path, model.end] = self._put(model, stack, layer)

    def _put(self, model: Site, stack: Stack, layer: v.Value) -> Stack:
        """Put a layer behind those of a model."""
        self._feed(layer, Feed(whole=False) if stack.weighted else Feed(frozenset([model])))
        for one in v.alternatives(layer):
            if not isinstance(one, v.Obj) or self.run.kb.role(f"{one.api}.fit", "trains") is None:
                continue
            inner = made_at(one)
            if _in_order(self.run, one.api) is not None:
                self.reached.add(inner if inner is not None else ANY_INPUT)
            elif stack.weighted:
                for site in reached_by(self.run, one, v.Args([v.UNKNOWN])):
                    self.reached.add(site)
        weightless = all(self._is_weightless(one) for one in v.alternatives(layer))
        return stack._replace(weighted=stack.weighted or not weightless)

    def _feed(self, layer: v.Value, feed: Feed) -> None:
        for one in v.alternatives(layer):
            if isinstance(one, v.Obj) and self.run.kb.role(one.api, "no-weights") is not None:
                self._fed(one, [feed])

    def _fed(self, layer: v.Obj, feeds: list[Feed]) -> None:
        """A layer without weights is called with something."""
        site = made_at(layer)
        if site is not None:
            made = (site.path, site.end)
            self.fed_by[made] = joined([self.fed_by.get(made) or Feed(), *feeds])

    def _is_weightless(self, layer: v.Value) -> bool:
        if not isinstance(layer, v.Obj):
            return False
        if any(self.run.kb.role(layer.api, one) is not None for one in ("no-weights", "model-input")):
            return True
        site = made_at(layer) if _in_order(self.run, layer.api) is not None else None
        stack = self.stacks.get((site.path, site.end)) if site is not None else None
        return stack is not None and not stack.weighted


def _in_order(run: RunView, api: str) -> RoleEntry | None:
    """The role of a model that calls each layer with what the one before gives, which says which argument has them."""
    role = run.kb.role(api, "takes-mode")
    return role if role is not None and role.arg else None
