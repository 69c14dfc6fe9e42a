"""Elements of memory that are not written where something raises, and the program goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.places import running
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import fails
from d9mlint.ir.scopes import heads
from d9mlint.ir.traversal import nodes, parents

if TYPE_CHECKING:
    from collections.abc import Iterable

    from d9mlint.interp.view import RunView


def goes_on_without(run: RunView, node: Any, memory: v.Obj) -> tuple[int, int] | None:
    """Where a statement begins and ends that goes on without writing an element of memory which is made before it, if the
    value of the element raises."""
    function = running(run)
    if function is None or not isinstance(node, m.Subscript) or not isinstance(node.value, m.Name):
        return None
    above = parents(function)
    one: Any = node
    found: m.Try | m.With | None = None
    while (user := above.get(id(one))) is not None:
        if found is None:
            found = _caught(run, user, one, node)
        elif isinstance(user, m.While):
            # It tries again.
            return None
        elif isinstance(user, m.For):
            break
        one = user
    made = memory.node if memory.file is run.frame.file else None
    if found is None or made is None or found.start <= made.start < found.end:
        return None
    return found.start, found.end


def _caught(run: RunView, user: Any, one: Any, write: m.Subscript) -> m.Try | m.With | None:
    """The statement, among those around a write and those before it in its loop, that keeps what raises from going on."""
    if isinstance(user, m.Try):
        return user if any(x is one for x in user.body) and _swallows(run, user, write) else None
    if isinstance(user, m.With):
        return user if any(x is one for x in user.body) and _suppresses(run, user) else None
    if isinstance(user, m.For) and heads([write.index]) & heads([user.target]):
        before = user.body[: next((i for i, x in enumerate(user.body) if x is one), 0)]
        return next(
            (x for x in before if isinstance(x, m.Try) and _leaves(x) and _swallows(run, x, write)), None
        )
    return None


def _swallows(run: RunView, stmt: m.Try, write: m.Subscript) -> bool:
    """Whether a handler goes on with the memory as it is. Who leaves a loop with the first success tries again."""
    tried = [*stmt.body, *stmt.orelse]
    if not _has(stmt.body, m.Call) or any(x.kind == "break" for x in nodes(tried) if isinstance(x, m.Jump)):
        return False
    return any(not _ends(run, one) and not _handles(one, write) for one in stmt.handlers)


def _leaves(stmt: m.Try) -> bool:
    """Whether a handler begins the next round."""
    last = [one.body[-1] for one in stmt.handlers if one.body]
    return any(isinstance(one, m.Jump) and one.kind == "continue" for one in last)


def _ends(run: RunView, handler: m.Handler) -> bool:
    """Whether a handler ends the function or the program, or deals with a person who stops it."""
    if isinstance(handler.type, m.Name) and handler.type.id == "KeyboardInterrupt":
        return True
    last = handler.body[-1] if handler.body else None
    if isinstance(last, m.ExprStmt) and isinstance(last.value, m.Call):
        func = run.value_of(last.value.func)
        return isinstance(func, v.Ext) and func.name.rpartition(".")[2] in ("exit", "_exit", "quit", "abort")
    return isinstance(last, m.Return) or fails(handler.body)


def _handles(handler: m.Handler, write: m.Subscript) -> bool:
    """Whether a handler names the memory: it may write the element itself."""
    return bool(heads([write.value]) & heads(handler.body))


def _suppresses(run: RunView, stmt: m.With) -> bool:
    made = [run.value_of(one.context.func) for one in stmt.items if isinstance(one.context, m.Call)]
    return any(
        isinstance(one, v.Ext) and run.kb.role(run.kb.canonical(one.name), "suppresses") is not None
        for one in made
    )


def _has(body: Iterable[Any], kind: type) -> bool:
    return any(isinstance(one, kind) for one in nodes(list(body)))
