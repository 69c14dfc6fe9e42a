"""Options that a program asks for and that no parser has: ``args.rate`` raises AttributeError where nothing defines it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.library.options import OPEN, PARSER, holds_option
from d9mlint.interp.naming import running
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes, parents, statements, variables

if TYPE_CHECKING:
    from collections.abc import Iterator

    from d9mlint.interp.interpreter import Interp

_OWN = frozenset(
    {
        "add_argument",
        "parse_args",
        "parse_known_args",
        "print_help",
        "print_usage",
        "error",
        "exit",
        "set_defaults",
    }
)
"""Methods of a parser that hand it to nothing else."""
_GROUPS = frozenset({"add_argument_group", "add_mutually_exclusive_group"})
_BY_TEXT = frozenset({"setattr", "__dict__", "vars", "exec", "Namespace"})
"""Names by which a program gives a namespace attributes whose names are not written, or makes one itself."""
_COMPUTED = (m.Call, m.Keyword, m.BinOp, m.Unary, m.Subscript, m.Attr, m.Seq, m.FString)
"""Expressions whose parts are all evaluated."""


def is_no_option(interp: Interp, space: v.Obj, name: str, node: Any) -> bool:
    """Whether the running statement asks a namespace for an option that its parser does not have."""
    file, parser = interp.frame.file, space.owner
    if interp.entry is None or interp.guessing or interp.uncertain or interp.speculating or interp.muted:
        return False
    if interp.exhausted or interp.importing or file.notebook or name.startswith("_"):
        return False
    if not isinstance(parser, v.Obj) or parser.type != PARSER or OPEN in parser.attrs:
        return False
    held = holds_option(space, name)
    if space.args.pos[1:] or "namespace" in space.args.kw or held.value or held.option:
        return False
    if not _is_evaluated(interp, node) or not _is_closed(interp, parser):
        return False
    if any(_may_set(interp.whole(one), name) for one in interp.run_files()):
        return False
    interp.gap("undefined-name", f"no option of the parser is `{name}`", node)
    return True


def _is_evaluated(interp: Interp, node: Any) -> bool:
    """Whether an expression is surely evaluated where the running statement is."""
    function, stmt = running(interp), interp.statement
    if function is None or not isinstance(stmt, (m.ExprStmt, m.Assign, m.Return)):
        return False
    above = parents(function)
    parent = above.get(id(node))
    while isinstance(parent, _COMPUTED):
        parent = above.get(id(parent))
    return parent is stmt


def _is_closed(interp: Interp, parser: v.Obj) -> bool:
    """Whether nothing but the function that makes a parser gives it options."""
    file, made = parser.file, parser.node
    if file is None or made is None:
        return False
    around = [one for one in interp.whole(file).functions if one.start <= made.start < one.end_of_body]
    function = max(around, key=lambda one: one.start, default=None)
    if function is None:
        return False
    return all(_keeps(function, name) for name in _given(function, made))


def _given(function: m.Function, made: Any) -> list[str]:
    """The variables that hold what a call gives; an empty name for anything else."""
    parent = parents(function).get(id(made))
    if not isinstance(parent, m.Assign):
        return [""]
    return [one.id if isinstance(one, m.Name) and "." not in one.id else "" for one in parent.targets]


def _keeps(function: m.Function, name: str) -> bool:
    """Whether a function hands what a variable holds, a parser or a group of its options, to nothing else."""
    above = parents(function)
    for one in variables(function).get(name, ()):
        user = above.get(id(one))
        method = one.id.partition(".")[2]
        if isinstance(user, m.Assign) and not method and user.value is not one:
            continue
        if not isinstance(user, m.Call) or user.func is not one:
            return False
        if method in _GROUPS:
            if not isinstance(above.get(id(user)), (m.Attr, m.ExprStmt)):
                if not all(group and _keeps(function, group) for group in _given(function, user)):
                    return False
        elif method not in _OWN:
            return False
    return bool(name)


def _may_set(facts: m.FileFacts, name: str) -> bool:
    """Whether code of a file may give something an attribute of this name."""
    if not _BY_TEXT.isdisjoint(facts.words):
        return True
    return name in facts.words and any(map(name.__eq__, _named(facts)))


def _named(facts: m.FileFacts) -> Iterator[str]:
    """The attributes that a file assigns to, and its texts."""
    for function in facts.functions:
        for stmt in statements(function.body):
            if isinstance(stmt, (m.Assign, m.AnnAssign, m.AugAssign, m.For)):
                for one in stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]:
                    for part in nodes([one]):
                        if isinstance(part, m.Attr):
                            yield part.name.rpartition(".")[2]
                        elif isinstance(part, m.Name) and "." in part.id:
                            yield part.id.rpartition(".")[2]
        yield from (
            one.value
            for one in nodes(function.body)
            if isinstance(one, m.Const) and isinstance(one.value, str)
        )
