"""Modules whose weights are kept outside of them (``flax.linen``), and the states of training that hold both."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.library.gradients import with_weights
from d9mlint.interp.methods import bind_method

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import RoleEntry


def sets_up(interp: Interp, cls: v.Cls) -> bool:
    """Whether a class is one of modules that are set up before they are used."""
    bases = cls.external_bases()
    return any(interp.kb.role(interp.kb.canonical(base), "sets-up") is not None for base in bases)


def set_up(interp: Interp, inst: v.Inst, node: Any) -> None:
    """An instance was made whose library calls one of its methods before any other."""
    for base in inst.cls.external_bases():
        role = interp.kb.role(interp.kb.canonical(base), "sets-up")
        for name in role.more if role is not None else ():
            found = inst.cls.find(name)
            if isinstance(found, v.Func):
                interp.call(bind_method(interp, found, inst, inst.cls, node), v.NO_ARGS, node)


def run(interp: Interp, inst: v.Inst, role: RoleEntry, args: v.Args, node: Any) -> v.Value | None:
    """``module.apply(weights, x, method=...)`` runs a method of the module; what that gives, None where none is known.

    It gives that and the collections that it changed where the first argument in ``more`` names some.
    """
    method = args.kw.get(role.arg) or v.Lit("__call__")
    if v.is_none(method):
        method = v.Lit("__call__")
    if isinstance(method, v.Lit) and isinstance(method.value, str):
        method = inst.cls.find(method.value) or v.UNKNOWN
    if isinstance(method, v.Partial) or not isinstance(method, v.Func):
        return None
    own = {role.arg, *role.more}
    given = v.Args(
        args.pos[role.pos or 0 :],
        {name: value for name, value in args.kw.items() if name not in own},
        args.star,
        args.dstar,
    )
    bound = method if method.receiver is not None else bind_method(interp, method, inst, inst.cls, node)
    with interp.within(*with_weights(interp, [*args.pos[: role.pos or 1], *args.kw.values()])):
        result = interp.call(bound, given, node)
    changed = args.kw.get(role.more[0]) or v.FALSE
    return result if v.truth(changed) is False or v.is_none(changed) else v.Items("t", [result, v.UNKNOWN])


def keep_fields(interp: Interp, api: str, owner: v.Value, args: v.Args, node: Any) -> v.Value | None:
    """What a function makes whose attributes are its keyword arguments, or what a method gives that is like its receiver
    but for those; None for all others."""
    roles = interp.kb.by_role(api)
    made: v.Inst | v.Obj | None = None
    if "keeps-fields" in roles:
        kind = api.rpartition(".")[0]
        made = v.Inst(owner, args, node) if isinstance(owner, v.Cls) else v.Obj(kind, kind, args, node)
    elif "changes-fields" in roles and isinstance(owner, v.Inst):
        made = v.Inst(owner.cls, owner.args, owner.node)
    elif "changes-fields" in roles and isinstance(owner, v.Obj) and owner.type == api.rpartition(".")[0]:
        made = v.Obj(owner.api, owner.type, owner.args, owner.node)
    if made is None:
        return None
    if isinstance(made, v.Obj):
        made.file = interp.frame.file
    if "changes-fields" in roles and isinstance(owner, (v.Inst, v.Obj)):
        for name, value in owner.attrs.items():
            made.attrs[name] = value
    for name, value in args.kw.items():
        made.attrs[name] = value
    return made


def training_role(kb: Knowledge, value: v.Value) -> RoleEntry | None:
    """What is known of an object that holds the state of a training, by its class; None for others."""
    if isinstance(value, v.Inst):
        kinds = [kb.canonical(base) for base in value.cls.external_bases()]
    else:
        kinds = [value.type] if isinstance(value, v.Obj) else []
    return next(filter(None, (kb.role(kind, "holds-training") for kind in kinds)), None)


def restore(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """What a function gives that restores an object which holds the state of a training: one like its argument, in which all
    that is no function has been read. None for all others."""
    role = interp.kb.role(api, "restores-like")
    given = [args.get(role.arg, role.pos), *(args.kw.get(name) for name in role.more)] if role else []
    like: v.Value = next((one for one in given if one is not None), v.UNKNOWN)
    read = v.Obj(api, api, args, node)
    read.file = interp.frame.file
    made: list[v.Value] = []
    for one in v.alternatives(like):
        if not isinstance(one, (v.Inst, v.Obj)) or training_role(interp.kb, one) is None:
            return None
        again: v.Inst | v.Obj
        if isinstance(one, v.Inst):
            again = v.Inst(one.cls, one.args, one.node)
        else:
            again = v.Obj(one.api, one.type, one.args, one.node)
            again.file = one.file
        for name, value in one.attrs.items():
            is_function = isinstance(value, (v.Func, v.Member, v.Partial))
            again.attrs[name] = value if is_function else interp.attribute(read, name, node)
        made.append(again)
    return v.join(made)
