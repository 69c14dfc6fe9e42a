"""Environments of reinforcement learning: classes of the project that are registered under a name, and what libraries put
around environments: wrappers, and vectors of several."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.library.processes import UNNAMED, asked_again, first_in

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import RoleEntry

_REGISTRY = "gymnasium.registry"
_OF_MAKE = frozenset(
    {"id", "max_episode_steps", "autoreset", "apply_api_compatibility", "disable_env_checker"}
)
"""Arguments of ``make`` that are not handed on to the environment."""
INSIDE = "@environments"
"""The attribute of a vector or wrapper, also of one whose class the project derives, that holds what is in it."""
_HANDED_ON = frozenset({"reset", "reset_async", "step", "step_async", "seed"})
_ANY = v.Args(star=True, dstar=True)
_Starts = Literal["spawns-environments", "starts-environments"]
_STARTS: tuple[_Starts, ...] = ("spawns-environments", "starts-environments")


def _register(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value:
    """``register(id="Car-v0", entry_point="package.module:Car", kwargs={...})``."""
    name, target = args.get("id", 0), args.get("entry_point", 1)
    if isinstance(name, v.Lit) and isinstance(name.value, str) and target is not None:
        spec = v.Obj("gymnasium.envs.registration.EnvSpec", "", args, node)
        spec.attrs["entry_point"] = target
        interp.set_library_attribute(f"{_REGISTRY}.{name.value}", spec)
    return v.NONE


def _make(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``make("Car-v0")`` of an environment of the project."""
    name = args.get("id", 0)
    if not isinstance(name, v.Lit) or not isinstance(name.value, str):
        return None
    # A module may stand before the name: it registers the environment.
    module, _, plain = name.value.rpartition(":")
    if module:
        interp.import_parents(interp.frame.file, module.split("."))
    spec = interp.library_attribute(f"{_REGISTRY}.{plain}")
    creator = _creator(interp, spec.attrs["entry_point"]) if isinstance(spec, v.Obj) else None
    if creator is None or not isinstance(spec, v.Obj):
        return None
    given: dict[str, v.Value] = {}
    known = spec.args.get("kwargs", 9)
    if isinstance(known, v.Mapping):
        given = {key: value for key, value in known.items.items() if isinstance(key, str)}
    given.update({key: value for key, value in args.kw.items() if key not in _OF_MAKE})
    made = interp.call(creator, v.Args([], given, dstar=args.dstar), node)
    return made if isinstance(made, v.Inst) else None


def _creator(interp: Interp, target: v.Value) -> v.Value | None:
    """The class or function of the project that an entry point names, or is."""
    if isinstance(target, (v.Cls, v.Func)):
        return target
    if not isinstance(target, v.Lit) or not isinstance(target.value, str):
        return None
    module, _, name = target.value.partition(":")
    mod = interp.import_parents(interp.frame.file, module.split(".")) if name else None
    found = mod.env.read(name) if mod is not None and mod.file is not None else None
    return found if isinstance(found, (v.Cls, v.Func)) else None


def inside(interp: Interp, api: str, args: v.Args, node: Any) -> list[v.Value]:
    """The environments that a vector makes, or that a wrapper is put around; nothing where a call does neither."""
    role = interp.kb.role(api, "contains-environment")
    if role is None:
        return []
    given = args.get(role.arg, role.pos)
    found: list[v.Value] = []
    for one in v.alternatives(given) if given is not None else ():
        for part in one.elts if isinstance(one, v.Items) else [one]:
            if isinstance(part, (v.Func, v.Partial, v.Cls)):
                part = interp.call(part, _arguments(args), node)
            elif isinstance(part, v.Lit):
                # A name: it is one of the project's environments, or else nothing is known of it.
                named = _make(interp, api, v.Args([part], _arguments(args).kw), node)
                if named is None:
                    continue
                part = named
            found += v.alternatives(part)
    return found


def named(interp: Interp, args: v.Args, node: Any, arg: str, pos: int | None) -> v.Args:
    """The arguments of what takes an environment or its name, with the environment in the place of the name where the
    project has registered it."""
    given = args.get(arg, pos)
    if not isinstance(given, v.Lit):
        return args
    made = _make(interp, "", v.Args([given]), node)
    if made is None:
        return args
    if arg in args.kw or pos is None:
        return args.replaced(v.Args(None, {arg: made}))
    return v.Args([*args.pos[:pos], made, *args.pos[pos + 1 :]], args.kw, args.star, args.dstar)


def seed_attribute(interp: Interp, role: RoleEntry, receiver: v.Value, args: v.Args) -> None:
    """A method of the library's class seeds the generator that an object makes itself."""
    seed = args.get(role.arg, role.pos)
    if (
        not isinstance(receiver, v.Inst)
        or seed is None
        or (v.is_none(seed) is True and not v.option_of(seed))
    ):
        return
    for base in map(interp.kb.canonical, receiver.cls.external_bases()):
        for name in role.more:
            if made := interp.kb.attribute_type(base, name):
                seeded = v.Obj(f"{base}.{name}", made, v.Args([seed]))
                seeded.file, seeded.owner = interp.frame.file, receiver
                receiver.attrs[name] = seeded


def played(value: v.Value) -> Iterator[v.Inst]:
    """The objects of the project in what a library plays with: an environment, or all that a vector or wrapper holds."""
    for one in v.alternatives(value):
        if isinstance(one, v.Inst):
            yield one
        if isinstance(one, (v.Obj, v.Inst)) and INSIDE in one.attrs:
            yield from played(one.attrs[INSIDE])


def begins_with(interp: Interp, api: str, args: v.Args, name: _Starts) -> str:
    """What runs first in the processes that a vector starts for its environments as a role says; empty where it starts
    none so."""
    role = interp.kb.role(api, name)
    if role is None or all_hold(args, role.when) is not True:
        return ""
    given = args.get(role.arg, role.pos)
    made = [
        part
        for one in (v.alternatives(given) if given is not None else ())
        for part in (one.elts if isinstance(one, v.Items) else [one])
    ]
    return first_in(interp, v.Args(made)) or UNNAMED


def _arguments(args: v.Args) -> v.Args:
    """What a vector calls the function, or the class, with that makes its environments."""
    known = args.kw.get("env_kwargs")
    if isinstance(known, v.Mapping):
        given = {key: value for key, value in known.items.items() if isinstance(key, str)}
        return v.Args([], given, dstar=known.open)
    return v.NO_ARGS if known is None else _ANY


def is_own(value: v.Value) -> bool:
    """Whether an environment, or all that is in a vector or wrapper, is of a class of the project that is reset by its own
    code."""
    if isinstance(value, v.Inst) and isinstance(value.cls.find("reset"), v.Func):
        return True
    if not isinstance(value, (v.Obj, v.Inst)) or INSIDE not in value.attrs:
        return False
    return all(is_own(one) for one in v.alternatives(value.attrs[INSIDE]))


def hand_on(interp: Interp, owner: v.Obj | v.Inst, name: str, args: v.Args, node: Any) -> None:
    """A method of a vector or wrapper calls that of what is in it."""
    if name not in _HANDED_ON:
        return
    name = name.removesuffix("_async")
    process = process_of(interp, owner.api, owner.args) if isinstance(owner, v.Obj) else ""
    if process:
        asked_again(interp, process, lambda: _hand_on(interp, owner, name, args, node))
    else:
        _hand_on(interp, owner, name, args, node)


def process_of(interp: Interp, api: str, args: v.Args) -> str:
    """What runs first in the processes that a vector starts for its environments; empty where it starts none."""
    return next(filter(None, (begins_with(interp, api, args, one) for one in _STARTS)), "")


def _hand_on(interp: Interp, owner: v.Obj | v.Inst, name: str, args: v.Args, node: Any) -> None:
    if isinstance(owner, v.Inst):
        _transform(interp, owner, name, node)
    for one in v.alternatives(owner.attrs[INSIDE]):
        if isinstance(one, v.Inst) and isinstance(method := one.cls.find(name), v.Func):
            given: dict[str, v.Value] = {}
            if name == "reset":
                given = {key: one if v.is_none(one) is True else v.UNKNOWN for key, one in args.kw.items()}
            interp.call(method.bind(one), v.Args([], given, star=name != "reset"), node)
        elif isinstance(one, (v.Obj, v.Inst)) and INSIDE in one.attrs:
            hand_on(interp, one, name, args, node)


def _transform(interp: Interp, wrapper: v.Inst, name: str, node: Any) -> None:
    """The library's ``step`` of a wrapper calls other methods of it on what goes in or comes out: ``observation(seen)``."""
    for base in wrapper.cls.external_bases():
        role = interp.kb.role(f"{interp.kb.canonical(base)}.{name}", "calls-aside")
        for other in role.more if role is not None else ():
            if isinstance(method := wrapper.cls.find(other), v.Func):
                interp.call(method.bind(wrapper), v.Args([v.UNKNOWN]), node)


ENVIRONMENT_MODELS = {
    "gymnasium.register": _register,
    "gymnasium.envs.registration.register": _register,
    "gymnasium.envs.register": _register,
    "gymnasium.make": _make,
}
