"""Models that a module makes when it is imported, and keeps in a variable that nothing reads: their weights decide
nothing. Layers that are only kept, whose weights are made when they are first called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import values as v
from d9mlint.interp.naming import kept_layer, module_variable
from d9mlint.ir import nodes as m
from d9mlint.ir.liveness import is_dead_besides

if TYPE_CHECKING:
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.view import RunView
    from d9mlint.project.modules import ModuleFile

Variable = tuple[str, str]
"""The path of a module, and a variable of it."""
Class = tuple[str, int]
"""A class by its path and where its name starts."""


class Kept(NamedTuple):
    """The variable that keeps a model, and the classes whose constructors make it."""

    variable: Variable
    classes: tuple[Class, ...] = ()


class Keeper(NamedTuple):
    """What keeps a layer: a variable of a module, or an attribute of the instances of some classes."""

    file: ModuleFile
    name: str
    classes: frozenset[tuple[str, int]] | None = None


def keeper(run: RunView, node: Any) -> Keeper | None:
    """What keeps the layer that an expression makes, and nothing else does."""
    found = module_variable(run, node) or kept_layer(run, node)
    return Keeper(*found) if found is not None else None


def uses_kept(run: RunView, kept: Keeper) -> bool:
    """Whether anything that runs may use the layer that something keeps."""
    if kept.classes is None:
        return run.reads_variable(kept.file, kept.name)
    return run.reads_attribute(kept.file, kept.name, kept.classes)


def kept(run: RunView, node: Any) -> Kept | None:
    """What keeps the model whose weights are drawn here, and nothing else of it."""
    variable = kept_in(run, node)
    if variable is None:
        return None
    receivers = [frame.func.receiver for frame in run.stack() if frame.func is not None]
    return Kept(variable, tuple(class_of(one) for one in receivers if isinstance(one, v.Inst)))


def class_of(instance: v.Inst) -> Class:
    """The class of an instance."""
    return instance.cls.file.path, instance.cls.cls.start


def kept_in(run: RunView, node: Any) -> Variable | None:
    """The variable of a module that keeps the model that is made here, or whose weights are."""
    frames = run.stack()
    at = next((i for i in reversed(range(len(frames))) if frames[i].func is None), None)
    if at is None or frames[at].is_class:
        return None
    called = frames[at + 1] if at + 1 < len(frames) else None
    if called is not None and not _makes_module(run, called):
        return None
    site = called.call_site if called is not None else run.here(node)
    file = frames[at].file
    if site is None or site.path != file.path:
        return None
    for stmt in file.facts.functions[0].body:
        if isinstance(stmt, m.Assign) and isinstance(stmt.value, m.Call) and stmt.value.start == site.start:
            targets = [one.id for one in stmt.targets if isinstance(one, m.Name) and "." not in one.id]
            whole = stmt.value.end == site.end and len(targets) == len(stmt.targets) == 1
            return (file.path, targets[0]) if whole else None
    return None


def _makes_module(run: RunView, frame: Frame) -> bool:
    """Whether a function that runs is the constructor of a model."""
    func = frame.func
    if func is None or func.fn.name != "__init__" or not isinstance(func.receiver, v.Inst):
        return False
    return is_model(run, func.receiver)


def is_model(run: RunView, instance: v.Inst) -> bool:
    """Whether an instance is one of a class of models, or another one whose objects a library uses: no constructor of
    such runs the program."""
    roles = [run.kb.role(run.kb.canonical(base), "base-only") for base in instance.cls.external_bases()]
    return any(role is not None and role.library != "python" for role in roles)


def is_read(run: RunView, variable: Variable, outside: bool = False) -> bool:
    """Whether anything that runs may read a variable; ``outside`` of the body of its module."""
    path, name = variable
    return run.reads_variable(run.modules.by_path[path], name, outside)


def is_dead_store(run: RunView) -> bool:
    """Whether the body of a module does not read itself what the statement that is running stores."""
    stmt = run.statement
    if run.frame.func is not None or not isinstance(stmt, m.Assign):
        return False
    return is_dead_besides(run.frame.function, stmt, frozenset(), kept=False)
