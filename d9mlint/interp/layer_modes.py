"""Layers of the program's own in Keras: in which mode they are called.

A layer takes `training` from its caller, else from the layer that calls it, else its parameter's default.
`fit` calls the layers of a model with ``training=True``, and with ``training=False`` too where it validates; `predict`
and `evaluate` with ``training=False``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.containers import MOST, added
from d9mlint.interp.context import EITHER_MODE, INFERENCE_CONTEXT, TRAINING_CONTEXT
from d9mlint.interp.methods import bind_method
from d9mlint.interp.shapes import Form

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

_MODES = frozenset({TRAINING_CONTEXT, INFERENCE_CONTEXT, EITHER_MODE})
_TRAINING: dict[str, v.Value] = {TRAINING_CONTEXT: v.TRUE, INFERENCE_CONTEXT: v.FALSE, EITHER_MODE: v.UNKNOWN}
_PARAMETER = "training"
CALL = "call"
"""The method in which a layer computes."""
_LAYER = "@layer"
"""Attribute of what layers of the program gave while a model was built: each layer, and what it was called with."""
_RESULT, _INPUT = "what a layer gives", "what a model is given"
"""``Obj.api`` of what nothing else is known of."""


def is_layer(interp: Interp, inst: v.Inst) -> bool:
    """Whether an instance is a layer or model whose mode its caller decides."""
    return any(
        interp.kb.role(interp.kb.canonical(base), "takes-mode") is not None
        for base in inst.cls.external_bases()
    )


def call_layer(interp: Interp, method: v.Value, inst: v.Inst, args: v.Args, node: Any) -> v.Value:
    """A layer is called: ``method`` is its `call`."""
    bound = bind_method(interp, method, inst, inst.cls, node)
    if not isinstance(method, v.Func) or not is_layer(interp, inst):
        return interp.call(bound, args, node)
    params = method.fn.params[1:]
    at = next((number for number, one in enumerate(params) if one.name == _PARAMETER), None)
    placed = at is not None and at < len(args.pos)
    given = args.get(_PARAMETER, at) if placed or _PARAMETER in args.kw else None
    if given is None or v.is_none(given) is True:
        mode = interp.contexts.innermost(_MODES)
        if mode is not None and at is not None and not placed:
            args = v.Args(args.pos, {**args.kw, _PARAMETER: _TRAINING[mode]}, args.star, args.dstar)
        result = interp.call(bound, args, node)
    else:
        truth = None if v.option_of(given) else v.truth(given)
        with interp.within(
            EITHER_MODE if truth is None else TRAINING_CONTEXT if truth else INFERENCE_CONTEXT
        ):
            result = interp.call(bound, args, node)
    if interp.entry is None or not any(_is_symbolic(interp, one) for one in args.pos):
        return result
    return _in_model(result, inst, args)


def _is_symbolic(interp: Interp, value: v.Value) -> bool:
    """Whether a value stands for what a model is called with, or is computed from that by layers."""
    seen: list[v.Value] = [value]
    for one in seen:
        if isinstance(one, v.Items):
            seen += one.elts
        elif isinstance(one, v.Obj):
            if interp.kb.role(one.api, "model-input") is not None or _LAYER in one.attrs:
                return True
            seen += one.args.pos
        if len(seen) > MOST:
            break
    return False


def _in_model(result: v.Value, inst: v.Inst, args: v.Args) -> v.Value:
    """What a layer gives while a model is built: the model is followed back through it."""
    if isinstance(result, v.Items):
        return v.Items(result.kind, [_in_model(one, inst, args) for one in result.elts], result.open)
    given = v.Obj(_RESULT, "", args, None) if result is v.UNKNOWN else result
    if isinstance(given, v.Obj):
        before = given.attrs.get(_LAYER)
        known = before.elts if isinstance(before, v.Items) else []
        given.attrs[_LAYER] = v.Items("l", [*known, v.Partial(inst, args)][:MOST])
    return given


def mode_of(role: RoleEntry, args: v.Args) -> str:
    """In which mode a method calls the layers of its receiver."""
    if role.role == "calls-in-inference":
        return INFERENCE_CONTEXT
    given = (args.get(name) for name in role.more)
    validates = args.dstar or any(one is not None and v.is_none(one) is not True for one in given)
    return EITHER_MODE if validates else TRAINING_CONTEXT


def run_model(interp: Interp, model: v.Obj, mode: str, node: Any) -> None:
    """A method of a model of Keras calls its layers: those of the program are run, each once in a mode."""
    with interp.within(mode):
        for inst, args in own_layers(interp, model):
            run_layer(interp, inst, args, node, mode)


def call_model(interp: Interp, model: v.Obj, training: v.Value | None, node: Any) -> None:
    """A model of Keras is called: so are the layers of the program in it."""
    if interp.kb.role(model.api, "takes-mode") is None:
        return
    truth = None if training is None or v.option_of(training) else v.truth(training)
    modes = [] if truth is None else [TRAINING_CONTEXT if truth else INFERENCE_CONTEXT]
    with interp.within(*modes):
        for inst, args in own_layers(interp, model):
            interp.call(inst, args, node)


def run_layer(interp: Interp, inst: v.Inst, args: v.Args, node: Any, mode: str) -> None:
    """Run a layer of the program once in a mode."""
    method = inst.cls.find(CALL)
    if method is None or (inst, mode) in interp.modes_run:
        return
    interp.memory.changed()
    interp.modes_run.add((inst, mode))
    call_layer(interp, method, inst, args, node)


def own_layers(interp: Interp, model: v.Obj) -> list[tuple[v.Inst, v.Args]]:
    """The layers of the program's own in a model of Keras, and what each is called with."""
    found: dict[v.Inst, v.Args] = {}
    seen: dict[int, v.Value] = {}
    _collect(interp, model, found, seen)
    return list(found.items())


def _collect(interp: Interp, value: v.Value, found: dict[v.Inst, v.Args], seen: dict[int, v.Value]) -> None:
    if id(value) in seen or len(seen) > _VALUES:
        return
    seen[id(value)] = value
    if isinstance(value, v.Items):
        for one in value.elts:
            _collect(interp, one, found, seen)
    elif isinstance(value, v.Inst):
        if is_layer(interp, value):
            found.setdefault(value, v.Args([v.UNKNOWN]))
    elif isinstance(value, v.Obj):
        made = value.attrs.get(_LAYER)
        for one in made.elts if isinstance(made, v.Items) else ():
            if isinstance(one, v.Partial) and isinstance(one.func, v.Inst):
                found.setdefault(one.func, one.args)
                for given in one.args.pos:
                    _collect(interp, given, found, seen)
        role = interp.kb.role(value.api, "takes-mode")
        if role is not None and role.arg:
            first = value.args.get(role.arg, role.pos)
            layers = [*(first.elts if isinstance(first, v.Items) else ()), *added(value)]
            _in_order(interp, layers, found, seen)
            return
        held = value.args.values() if value.owner is None else [*value.args.values(), value.owner]
        for one in held:
            _collect(interp, one, found, seen)


_VALUES = 400
"""How many values are looked through for the layers of a model."""


def _in_order(
    interp: Interp, layers: list[v.Value], found: dict[v.Inst, v.Args], seen: dict[int, v.Value]
) -> None:
    """The layers of a model that calls each with what the one before gives. No gradient is taken of what the first is
    given."""
    given = v.Obj(_INPUT)
    given.start_with(Form(grad=False))
    value: v.Value = given
    for one in layers:
        if isinstance(one, v.Inst) and is_layer(interp, one):
            found.setdefault(one, v.Args([value]))
            if one.cls.find("build") is not None or any(
                not isinstance(kept, v.Lit) for kept in one.attrs.values()
            ):
                value = v.UNKNOWN
        else:
            _collect(interp, one, found, seen)
            if not isinstance(one, v.Obj) or interp.kb.role(one.api, "no-weights") is None:
                value = v.UNKNOWN
