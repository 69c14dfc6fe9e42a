"""Models of which no source was found: what an optimizer of PyTorch is given the parameters of, or what is compiled and
fitted as a model of Keras is, has initial weights, which were drawn when it was made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import rng
from d9mlint.interp import values as v
from d9mlint.interp.argtests import any_holds
from d9mlint.interp.environment import of_keras
from d9mlint.interp.events import DrawEvent, LateSeedEvent
from d9mlint.interp.library.inputs import MOVING
from d9mlint.interp.library.weights import LOADING_METHODS, is_loaded
from d9mlint.interp.state import SEEDED, UNSEEDED, Rng, Site
from d9mlint.interp.usage import flatten
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import RngEntry
    from d9mlint.project.modules import ModuleFile

MADE = ".@made"
"""Under this name behind that of a base class the knowledge base says what making a model draws whose class is not known."""
_MODULE = "torch.nn.Module.@made"
LEARNED, _PACKAGE, _LOADED = "@learned", "@learned from", "@loaded since"
"""Attributes of an object of an unknown class: that of which it is seen to be, the package that has it, and whether the
object was given weights."""
_ASKED = ("parameters", "named_parameters")
_DEEPEST = 4


class Making(NamedTuple):
    """A call that makes a model: in which file, and the arguments of it that are known."""

    node: m.Call
    file: ModuleFile
    args: v.Args


def optimized(interp: Interp, params: v.Value | None, node: Any) -> None:
    """An optimizer is given parameters: those of a model that is not known were drawn, and it is noted that it is not
    followed. Where several models are given, one may have only parameters that are not drawn."""
    if interp.entry is None or params is None:
        return
    asked = list(asked_parameters(params))
    unknown = [one for one in asked if _is_unknown(interp, one.owner)]
    if not unknown:
        return
    interp.gap("dynamic-call", "the model whose parameters an optimizer is given is not known", node)
    if len(asked) > 1:
        return
    making = _making(interp, unknown[0])
    if making is None:
        return
    _draw(interp, interp.kb.rng(_MODULE), making, node)


def exported(interp: Interp, model: v.Value | None, node: Any) -> None:
    """A model is written in another form: one of an unknown class has drawn its weights where an argument says that it gets
    no others. What says nothing is most often trained."""
    made = _maker(model)
    if interp.entry is None or not isinstance(made, v.Obj) or not _is_unknown(interp, made):
        return
    if made.node is None or made.file is None or not _names_class(made.api) or _LOADED in made.attrs:
        return
    entries = [one for one in interp.kb.rng(_MODULE) if any(test.arg in made.args.kw for test in one.unless)]
    _draw(interp, entries, Making(made.node, made.file, made.args), node)


def _draw(interp: Interp, entries: Iterable[RngEntry], making: Making, node: Any) -> None:
    """What making a model drew, as it turns out at a node."""
    with interp.in_file(making.file):
        for entry in entries:
            if any_holds(making.args, entry.unless) is False:
                for one in entry.draws:
                    seed = _seeded_since(interp, one, making, node)
                    if seed is None:
                        rng.draw(interp, one, entry, making.node)
                    elif not interp.exhausted:
                        interp.listeners.tell(DrawEvent(one, Rng(UNSEEDED), entry, making.node))
                        interp.listeners.tell(LateSeedEvent(one, entry, making.node, interp.here(seed), seed))


def learned(kb: Knowledge, owner: v.Obj) -> v.Lit | None:
    """The class of which an object of an unknown one is seen to be."""
    if owner.type != owner.api or owner.api.partition(".")[0] in kb.libraries:
        return None
    known = owner.attrs.get(LEARNED)
    return known if isinstance(known, v.Lit) else None


def package(kb: Knowledge, owner: v.Obj) -> str:
    """The package from which the class of an object comes."""
    known = owner.attrs.get(_PACKAGE) if learned(kb, owner) is not None else None
    return str(known.value) if isinstance(known, v.Lit) else owner.package


def learn(interp: Interp, owner: v.Obj, name: str, args: v.Args, node: Any) -> None:
    """A method of an object of an unknown class is called: what that shows of the class, and does with the weights."""
    kb, method = interp.kb, f"?.{name}"
    if name in LOADING_METHODS:
        owner.attrs[_LOADED] = v.TRUE
        return
    role = kb.role(method, "tells-class")
    if role is not None and _is_unresolved(kb, owner):
        at = role.pos
        placed = [] if at is None else args.pos[at : at + 1]
        library = _given(interp, [*placed, *(args.kw.get(one) for one in role.more)])
        if library:
            owner.attrs[LEARNED], owner.attrs[_PACKAGE] = v.Lit(role.arg), v.Lit(library)
    known = learned(kb, owner)
    if (
        known is None
        or owner.node is None
        or owner.file is None
        or interp.entry is None
        or kb.role(method, "trains-class") is None
        or _LOADED in owner.attrs
    ):
        return
    making = Making(owner.node, owner.file, owner.args)
    entries = rng.valid(interp, kb.rng(f"{known.value}{MADE}"), package(kb, owner))
    if not any(fnmatchcase(owner.api.lower(), one) for entry in entries for one in entry.not_apis):
        _draw(interp, entries, making, node)


def _given(interp: Interp, values: list[v.Value | None]) -> str:
    """The package of the objects of Keras that a method is given, or that the program uses where it is given their names."""
    texts = 0
    for one in (part for value in values if value is not None for part in flatten(value)):
        if isinstance(one, v.Obj) and of_keras(one.api):
            return one.package or "tensorflow"
        texts += isinstance(one, v.Lit) and isinstance(one.value, str)
    if texts > 1 and not interp.uses("torch"):
        return next((one for one in ("tensorflow", "keras") if interp.uses(one)), "")
    return ""


def made(interp: Interp, name: str, args: v.Args, node: Any) -> None:
    """A call makes a model of a class that the command line or a configuration names: ``name`` is that under which the
    knowledge base says what this draws."""
    if interp.entry is None:
        return
    for entry in interp.kb.rng(name):
        if any_holds(args, entry.unless) is False:
            for one in entry.draws:
                rng.draw(interp, one, entry, node)


def _seeded_since(interp: Interp, generator: str, making: Making, node: Any) -> m.Call | None:
    """The call with which the program seeds a generator for the first time, if it is between the statement that makes a
    model and the one that gives an optimizer its parameters."""
    level = interp.state.level(generator)
    first, again = (f"{one}:{generator}" in interp.state.flags for one in ("seeded", "seeded again"))
    if (
        level.level != SEEDED
        or level.site is None
        or not first
        or again
        or making.file is not interp.frame.file
    ):
        return None
    function = interp.frame.function
    for body in (function.body, *(one.body for one in function.body if isinstance(one, m.If))):
        made = _index(body, making.node)
        used = _index(body, node)
        if made is None or used is None or not isinstance(body[made], m.Assign):
            continue
        for one in body[made + 1 : used]:
            call = one.value if isinstance(one, m.ExprStmt) else None
            if isinstance(call, m.Call) and _seeds(interp, call, level.site):
                return call
    return None


def _index(body: Sequence[m.Stmt], node: Any) -> int | None:
    """Which of some statements a node is part of."""
    return next((i for i, one in enumerate(body) if one.start <= node.start and node.end <= one.end), None)


def _seeds(interp: Interp, call: m.Call, site: Site) -> bool:
    """Whether a call is the one at a place, or is of the function that this is in."""
    if interp.frame.file.path == site.path and call.start <= site.start < call.end:
        return True
    called = interp.eval(call.func) if isinstance(call.func, m.Name) else None
    return (
        isinstance(called, v.Func)
        and called.file.path == site.path
        and any(one.start <= site.start < one.end for one in called.fn.body)
    )


def asked_parameters(value: v.Value, depth: int = 0) -> Iterator[v.Obj]:
    """What asking a module for its parameters gave, among what an optimizer is given."""
    if isinstance(value, v.Items):
        held = value.elts
    elif isinstance(value, v.Mapping):
        held = list(value.items.values())
    elif isinstance(value, v.Obj) and value.owner is not None:
        if value.api.rpartition(".")[2] in _ASKED:
            yield value
        return
    elif isinstance(value, v.Obj):
        held = list(value.args.values())
    else:
        return
    for one in held if depth < _DEEPEST else ():
        yield from asked_parameters(one, depth + 1)


def _maker(value: v.Value | None) -> v.Value | None:
    """The object that methods were called on until a value came out: ``net`` of ``net.to(device)``."""
    for _ in range(_DEEPEST):
        if not isinstance(value, v.Obj) or value.owner is None or is_loaded(value):
            break
        value = value.owner
    return value


def _is_unknown(interp: Interp, owner: v.Value | None) -> bool:
    made = _maker(owner)
    if not isinstance(made, v.Obj):
        return made is v.UNKNOWN
    return _is_unresolved(interp.kb, made) and not is_loaded(made)


def _is_unresolved(kb: Knowledge, made: v.Obj) -> bool:
    """Whether an object is made by something of which nothing is known."""
    return (
        made.node is not None
        and made.api == made.type
        and made.api.partition(".")[0] not in kb.libraries
        and not kb.gives(made.api)
        and not kb.roles(made.api)
    )


def _making(interp: Interp, asked: v.Obj) -> Making | None:
    """The call of a class that made a model: of what a function gives, some or all weights may have been loaded."""
    made = _maker(asked.owner)
    if isinstance(made, v.Obj):
        if made.node is None or made.file is None or not _names_class(made.api):
            return None
        return Making(made.node, made.file, made.args)
    node = asked.node
    if asked.file is not interp.frame.file or not isinstance(node, m.Call):
        return None
    found = _stored(interp, node)
    if found is None or not _makes(interp, found):
        return None
    named: dict[str, v.Value] = {one.name: v.Obj(v.GIVEN) for one in found.keywords if one.name}
    return Making(
        found, interp.frame.file, v.Args([], named, False, any(not one.name for one in found.keywords))
    )


def _stored(interp: Interp, node: m.Call) -> m.Call | None:
    """The call whose result the running code stores under the name on which a method is called, where there is one, or
    all are of the same class."""
    if isinstance(node.func, m.Name):
        name = node.func.id.rpartition(".")[0]
    elif isinstance(node.func, m.Attr) and isinstance(node.func.value, m.Name):
        name = node.func.value.id
    else:
        return None
    function = interp.frame.function
    found: list[m.Call] = []
    for one in nodes(function.body):
        if not isinstance(one, m.Assign) or not any(_is_name(target, name) for target in one.targets):
            continue
        value = _unmoved(one.value)
        if _is_name(value, name) or (isinstance(value, m.Call) and _changes(value, name)):
            # It is moved, or wrapped.
            continue
        if not isinstance(value, m.Call):
            return None
        found.append(value)
    called = {one.func.id if isinstance(one.func, m.Name) else "" for one in found}
    alike = len(found) == 1 or (len(called) == 1 and "" not in called)
    return min(found, key=lambda one: one.start) if found and alike else None


def _changes(call: m.Call, name: str) -> bool:
    """Whether a call gives back an object, or a wrapper of it: ``net.train()``, ``DataParallel(net)``."""
    if not any(_is_name(one, name) for one in call.args):
        return isinstance(call.func, m.Name) and call.func.id.startswith(name + ".")
    called = call.func.id if isinstance(call.func, m.Name) else getattr(call.func, "name", "")
    return _names_class(called)


def _is_name(node: Any, name: str) -> bool:
    return isinstance(node, m.Name) and node.id == name


def _unmoved(node: m.Expr) -> m.Expr:
    """``Net()`` of ``Net().to(device)``, and ``net`` of ``net.cuda()``."""
    while isinstance(node, m.Call):
        if isinstance(node.func, m.Attr) and node.func.name in MOVING:
            node = node.func.value
        elif isinstance(node.func, m.Name) and node.func.id.rpartition(".")[2] in MOVING:
            return m.Name(node.func.id.rpartition(".")[0], node.func.start, node.func.end)
        else:
            break
    return node


def _makes(interp: Interp, call: m.Call) -> bool:
    """Whether what is called is a class by its name, or is looked up at run time."""
    func = call.func
    if isinstance(func, m.Name):
        known = interp.eval(func)
        if known is not v.UNKNOWN and not isinstance(known, v.Member):
            return False
        return _names_class(func.id) or _is_looked_up(interp, func.id)
    if isinstance(func, m.Attr):
        return _names_class(func.name)
    return isinstance(func, (m.Call, m.Subscript))


def _is_looked_up(interp: Interp, name: str) -> bool:
    """Whether the running function takes what it calls out of a table, or from a function that finds it."""
    function = interp.frame.function
    stored = [
        one.value
        for one in nodes(function.body)
        if isinstance(one, m.Assign) and any(_is_name(target, name) for target in one.targets)
    ]
    return len(stored) == 1 and isinstance(stored[0], (m.Call, m.Subscript))


def _names_class(dotted: str) -> bool:
    last = dotted.rpartition(".")[2]
    return last[:1].isupper() and not last.isupper()
