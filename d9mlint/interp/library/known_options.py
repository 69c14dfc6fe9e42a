"""Options that a program asks for and that no parser has: ``args.rate`` raises AttributeError where nothing defines it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.library.options import OPEN, PARSER, holds_option
from d9mlint.interp.naming import running
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name, nodes, parents, variables

if TYPE_CHECKING:
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
_BY_TEXT = frozenset({"setattr", "__setattr__", "exec"})
"""Functions that may give an object an attribute whose name is not written."""
_CONTENT = "__dict__"
_CHANGING = frozenset({"update", "setdefault"})
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
    if function is None or not isinstance(stmt, (m.ExprStmt, m.Assign, m.Return, m.If)):
        return False
    above = parents(function)
    parent = above.get(id(node))
    while isinstance(parent, (*_COMPUTED, m.BoolOp, m.Compare)):
        if isinstance(parent, (m.BoolOp, m.Compare)) and parent.left is not node:
            # What stands behind the first part need not be evaluated.
            return False
        node, parent = parent, above.get(id(parent))
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
    words = facts.words
    if _BY_TEXT.isdisjoint(words) and name not in words and not {_CONTENT, "vars"}.intersection(words):
        return False
    return any(_sets(node, name) for function in facts.functions for node in nodes(function.body))


def _sets(node: Any, name: str) -> bool:
    """Whether a node may give something this attribute: by its name, by a text, or by one that is not written."""
    if isinstance(node, m.Const):
        return bool(node.value == name)
    if isinstance(node, (m.Assign, m.AnnAssign, m.AugAssign, m.For)):
        targets = nodes(list(node.targets) if isinstance(node, m.Assign) else [node.target])
        return any(_last(one) == name or _is_content_item(one) for one in targets)
    if not isinstance(node, m.Call):
        return False
    if called_name(node) in _BY_TEXT:
        return not any(isinstance(one, m.Const) for one in node.args[:2])
    return called_name(node) in _CHANGING and _is_content(node.func)


def _last(node: Any) -> str:
    """The last attribute that an expression names, if any."""
    text = node.id if isinstance(node, m.Name) else f".{node.name}" if isinstance(node, m.Attr) else ""
    return str(text.rpartition(".")[2]) if "." in text else ""


def _is_content_item(node: Any) -> bool:
    return isinstance(node, m.Subscript) and _is_content(node.value)


def _is_content(node: m.Expr) -> bool:
    """Whether an expression gives the attributes of something, or a method of these: ``x.__dict__``, ``vars(x).update``."""
    if isinstance(node, m.Call):
        return called_name(node) == "vars"
    if isinstance(node, m.Attr):
        return _CONTENT in node.name.split(".") or _is_content(node.value)
    return isinstance(node, m.Name) and _CONTENT in node.id.split(".")
