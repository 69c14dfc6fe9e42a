"""Statements that raise for certain: they are a name that nothing defines or the call of one, import one where that is
caught, or call a function that comes to one on all of its paths, that only raises or that takes other arguments than are
given, or unpack what a function gives, or what each round of a loop is given, into another number of variables, compute
with a variable that is None, or read an item of an object that has none.

A name that is only handed on, as ``DataLoader(dataset)``, ends the path in a module that others import, but not in a program
itself: of one that somebody shows in part, the rest counts.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.attribute_kinds import value_of
from d9mlint.interp.emptiness import RANGES
from d9mlint.interp.enumerations import enumerates
from d9mlint.interp.given_instead import others
from d9mlint.interp.known_attributes import lacks
from d9mlint.interp.library.loaders import LOADER
from d9mlint.interp.passed_on import ENUMERATE, inside, passed_on
from d9mlint.interp.unset_attributes import SET_BY_NAME, is_unset
from d9mlint.interp.without_items import has_no_items
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import memoized
from d9mlint.ir.endings import evaluated
from d9mlint.ir.liveness import may_be_shared
from d9mlint.ir.scopes import bound_names, own_names, target_names, times_stored
from d9mlint.ir.traversal import nodes, statements

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

_MAP = "builtins.map"
_DEFINED = frozenset(dir(builtins)) | frozenset({"copyright", "credits", "exit", "license", "quit"})
# Of Python 2, which the program may be run with.
_DEFINED |= frozenset(
    [
        "apply",
        "basestring",
        "buffer",
        "cmp",
        "coerce",
        "execfile",
        "file",
        "intern",
        "long",
        "raw_input",
        "reduce",
        "reload",
        "unichr",
        "unicode",
        "xrange",
    ]
)
# What programs are given that start others: notebooks, shells, profilers, translations.
_DEFINED |= frozenset(
    [
        "_",
        "c",
        "dbutils",
        "display",
        "get_config",
        "get_ipython",
        "profile",
        "sc",
        "snakemake",
        "spark",
        "sqlContext",
    ]
)
_BY_TEXT = frozenset(
    {"__builtins__", "__dict__", "builtins", "exec", "get_ipython", "globals", "locals", "vars"}
)
"""Names by which code defines others as text."""


def must_raise(interp: Interp, node: m.Expr | None) -> bool:
    """Whether evaluating an expression raises: it is a name that the program defines nowhere or the call of one, reads an
    attribute that nothing has set, or is the call of a function or class of the project that only raises, or with arguments
    that it does not take; so are calls among what it evaluates in all cases."""
    if interp.entry is None or interp.guessing or interp.uncertain or interp.frame.file.notebook:
        return False
    if node is None or _raises(interp, node):
        return node is not None
    return any(
        _reads_unset(interp, one) if isinstance(one, m.Name) else one is not node and _raises(interp, one)
        for one in _asked(interp, node)
    )


def _asked(interp: Interp, node: m.Expr) -> Iterator[m.Expr]:
    """The names, calls and subscripts that an expression evaluates in all cases and of which more than the form says
    whether they raise."""
    for one in _that_may_raise(node):
        if isinstance(one, m.Comp):
            yield from _of_each_element(interp, one)
        else:
            yield one


@memoized
def _that_may_raise(node: m.Expr) -> tuple[m.Expr, ...]:
    """These names and calls as far as the expression alone tells them, and the comprehensions among what it evaluates;
    memoised while the expression lives."""
    return tuple(one for one in evaluated(node) if _is_asked(one))


def _is_asked(node: m.Expr) -> bool:
    """Whether a name is that of an attribute, or a call is one of a name or of a method of what a call makes, or it is a
    comprehension."""
    if isinstance(node, m.Name):
        return "." in node.id
    if isinstance(node, m.Comp):
        return True
    if isinstance(node, m.Subscript):
        return isinstance(node.value, m.Name)
    called = node.func if isinstance(node, m.Call) else None
    return isinstance(called, m.Name) or (isinstance(called, m.Attr) and isinstance(called.value, m.Call))


def _reads_unset(interp: Interp, node: m.Name) -> bool:
    if not is_unset(interp, node):
        return False
    interp.gap("undefined-name", f"`{'.'.join(node.id.split('.')[:2])}` is not set", node)
    interp.state.lost = True
    return True


def _raises(interp: Interp, node: m.Expr) -> bool:
    if isinstance(node, m.Subscript):
        return _reads_item(interp, node)
    called = node.func if isinstance(node, m.Call) else node
    if not isinstance(called, (m.Name, m.Attr)):
        return False
    if isinstance(called, m.Attr):
        return isinstance(node, m.Call) and _of_new_object(interp, node)
    name = called.id.partition(".")[0]
    found = interp.lookup(name)
    if found is None:
        if _is_undefined(interp, name):
            interp.gap("undefined-name", f"`{name}` is defined nowhere", node)
            interp.state.lost = True
            return True
        return False
    if isinstance(found, v.Mod) and isinstance(node, m.Call):
        found = value_of(interp, called)
    elif v.is_none(found):
        return isinstance(node, m.Call) and name != called.id and _is_method_of_none(interp, called, name)
    elif name != called.id and not isinstance(found, v.Inst):
        return False
    if isinstance(found, v.Func) and isinstance(node, m.Call):
        if _is_plain(found) and _refuses(interp, found, node, called.id):
            return True
        return _is_plain(found) and _only_raises(found)
    if isinstance(found, v.Cls) and isinstance(node, m.Call):
        init = _constructor(interp, found)
        return init is not None and _refuses(interp, init, node, called.id, bound=1)
    if isinstance(found, v.Inst) and isinstance(node, m.Call):
        method = _method(interp, called)
        if method is None or _takes_instead(interp, called, node):
            return False
        return _refuses(interp, method, node, called.id, bound=1)
    return False


def _reads_item(interp: Interp, node: m.Subscript) -> bool:
    """Whether an item is read of a variable that is None, or holds an object that has no items."""
    name = node.value
    if not isinstance(name, m.Name) or interp.exhausted or interp.muted or interp.importing:
        return False
    value = value_of(interp, name)
    if v.is_none(value):
        if "." in name.id or not _stays_none(interp, name):
            return False
        why = "is None"
    elif has_no_items(interp, name, value) and not others(interp, value):
        why = "is not subscriptable"
    else:
        return False
    interp.gap("failing-subscript", f"`{name.id}` {why}", node)
    interp.state.lost = True
    return True


def _is_method_of_none(interp: Interp, called: m.Name, name: str) -> bool:
    if called.id.count(".") > 1 or not _stays_none(interp, m.Name(name, called.start, called.end)):
        return False
    if hasattr(None, called.id.partition(".")[2]):
        return False
    interp.gap("failing-call", f"`{name}` is None", called)
    interp.state.lost = True
    return True


def _of_new_object(interp: Interp, node: m.Call) -> bool:
    """Whether ``N().run(...)`` raises: what makes the object, or the call of its method."""
    func = node.func
    made = func.value if isinstance(func, m.Attr) else None
    if not isinstance(func, m.Attr) or not isinstance(made, m.Call) or not isinstance(made.func, m.Name):
        return False
    if _raises(interp, made):
        return True
    cls = interp.lookup(made.func.id)
    if not isinstance(cls, v.Cls) or any(one.decorated or one.metaclass is not None for one in cls.mro()):
        return False
    init = cls.find("__init__")
    if cls.find("__new__") is not None or (isinstance(init, v.Func) and _sets(init, func.name)):
        return False
    method = _method_of(cls, func.name)
    return method is not None and _refuses(interp, method, node, f"{made.func.id}.{func.name}", bound=1)


def _constructor(interp: Interp, cls: v.Cls) -> v.Func | None:
    """The method that is given all arguments of which instances of a class of the project are made."""
    if any(one.decorated or one.cls.keywords for one in cls.mro()) or cls.find("__new__") is not None:
        return None
    if enumerates(interp, cls):
        return None
    for one in cls.mro():
        if "__init__" in one.env.vars:
            return _method_of(one, "__init__")
        if not all(isinstance(base, v.Cls) for base in one.bases):
            # What its own class does not say, that of a library may.
            return None
    return None


def _sets(method: v.Func, name: str) -> bool:
    """Whether a method names an attribute, which it may set, or may set attributes by their names."""
    words = {part for one in nodes(method.fn.body) if isinstance(one, m.Name) for part in one.id.split(".")}
    return name in words or bool({"setattr", "__dict__", "__setattr__"} & words)


def _method(interp: Interp, called: m.Name) -> v.Func | None:
    """The method of an object of the project that a call runs, where nothing but its class says which."""
    value, name = _owner(interp, called)
    if not isinstance(value, v.Inst) or name in value.attrs:
        return None
    return _method_of(value.cls, name or _when_called(value.cls))


def _owner(interp: Interp, called: m.Name) -> tuple[v.Value, str]:
    """The object of which a call runs a method, and the name of the method, if the call has one."""
    owner, _, name = called.id.rpartition(".")
    return value_of(interp, m.Name(owner or called.id, called.start, called.end)), name if owner else ""


def _when_called(cls: v.Cls) -> str:
    """The method of a class that runs where an object of it is called: PyTorch hands on what a module is called with."""
    return "__call__" if cls.find("__call__") is not None else "forward"


def _takes_instead(interp: Interp, called: m.Name, node: m.Call) -> bool:
    """Whether an object that stands there if an option is given may take the arguments of a call."""
    value, name = _owner(interp, called)
    for one in others(interp, value):
        cls = one.value.cls if isinstance(one.value, v.Inst) else None
        method = _method_of(cls, name or _when_called(cls)) if cls is not None else None
        if method is None or not _why_refused(method, node, bound=1):
            return True
    return False


def _method_of(cls: v.Cls, name: str) -> v.Func | None:
    """The method of a class of the project with some name, which nothing decorates."""
    func = cls.find(name)
    if not isinstance(func, v.Func) or func.decorated or func.fn.decorators or func.cls is None:
        return None
    return func if func.fn.params and func.fn.params[0].kind in ("p", "a") else None


def unpacks_other_number(interp: Interp, stmt: m.Assign, value: v.Value) -> bool:
    """Whether a function of the project gives a tuple of another length than the variables that it is unpacked into."""
    call = stmt.value
    if not isinstance(call, m.Call) or not isinstance(value, v.Items) or value.kind != "t" or value.open:
        return False
    if interp.entry is None or interp.guessing or interp.uncertain or interp.frame.file.notebook:
        return False
    if not isinstance(call.func, m.Name) or not isinstance(interp.lookup(call.func.id), v.Func):
        return False
    targets = [one for one in stmt.targets if isinstance(one, m.Seq)]
    wrong = any(
        len(one.elts) != len(value.elts) and not any(isinstance(part, m.Star) for part in one.elts)
        for one in targets
    )
    if wrong:
        interp.gap("failing-call", f"`{call.func.id}()` gives {len(value.elts)} values", call)
    return wrong


def rounds_take_other_number(
    interp: Interp, stmt: m.For, iterated: v.Value, elements: list[v.Value] | None
) -> bool:
    """Whether a loop takes each element apart into another number of variables than it has parts: a tuple that is seen, what
    a function of the project makes of each element, or the batch that it puts together for a loader."""
    if interp.entry is None or interp.guessing or interp.uncertain or interp.frame.file.notebook:
        return False
    target, over = stmt.target, passed_on(iterated)
    if isinstance(over, v.Obj) and over.api == ENUMERATE and isinstance(target, m.Seq) and target.elts[1:]:
        target, over = target.elts[1], passed_on(inside(over) or v.UNKNOWN)
        elements = None
    elif elements:
        # With numbers before them, elements are seen in pairs.
        over = elements[0]
    if elements is None and isinstance(over, v.Items) and over is not iterated:
        # It is what a progress bar, or the numbers, are put around: its elements are taken apart.
        over = over.elts[0] if over.elts and not over.open else v.UNKNOWN
    if not isinstance(target, m.Seq) or any(isinstance(part, m.Star) for part in target.elts):
        return False
    given = _parts_given(over) if isinstance(over, v.Obj) else None
    if isinstance(over, v.Items) and over.kind == "t" and not over.open and over is not iterated:
        given = len(over.elts)
    if given is None or given == len(target.elts):
        return False
    interp.gap("failing-call", f"the loop is given {given} values in each round", stmt.iter)
    return True


def _parts_given(value: v.Obj) -> int | None:
    """How many parts each element has that a loader or ``map`` gives, where a function of the project makes it and all that
    gives is tuples of one length."""
    made = value.args.get("collate_fn", 6) if value.api == LOADER else None
    if value.api == _MAP and value.args.pos:
        made = value.args.pos[0]
    if not isinstance(made, v.Func) or made.decorated or made.fn.is_generator:
        return None
    given = [one.value for one in statements(made.fn.body) if isinstance(one, m.Return)]
    numbers = {
        len(one.elts)
        if isinstance(one, m.Seq) and one.kind == "t" and not any(isinstance(x, m.Star) for x in one.elts)
        else None
        for one in given
    }
    return numbers.pop() if len(numbers) == 1 else None


def asked_first(test: m.Expr) -> m.Expr:
    """What a test evaluates before anything else."""
    while isinstance(test, (m.BoolOp, m.Compare, m.Unary)):
        test = test.operand if isinstance(test, m.Unary) else test.left
    return test


def has_raised(interp: Interp, node: m.Expr | None = None) -> bool:
    """Whether evaluating an expression has raised: it calls a function that comes to an undefined name, or reads one itself
    in all cases, in a module that others import."""
    if interp.state.lost and not interp.state.alive:
        return True
    if node is None or interp.frame.missed is None:
        return False
    missed, interp.frame.missed = interp.frame.missed, None
    file = interp.frame.file
    if file.path not in interp.imported_files:
        return False
    if interp.entry is None or interp.guessing or interp.uncertain or file.notebook:
        return False
    name = missed.id.partition(".")[0]
    if not any(one is missed for one in _in_all_cases(interp, node)) or not _is_undefined(interp, name):
        return False
    if interp.may_set_in(file, name):
        return False
    interp.gap("undefined-name", f"`{name}` is defined nowhere", node)
    interp.state.lost = True
    return True


_REFUSE_NONE = frozenset(
    f"builtins.{name}"
    for name in ("enumerate", "float", "int", "iter", "len", "list", "range", "set", "sorted", "sum", "tuple")
)
"""Functions of Python that raise where they are given None first."""


def computes_with_none(interp: Interp, node: m.BinOp, left: v.Value, right: v.Value) -> None:
    """The running path ends where a number is computed from a variable that is None."""
    if isinstance(left, v.Lit) and isinstance(right, v.Lit):
        given = next(
            (part for part, one in ((node.left, left), (node.right, right)) if one.value is None), None
        )
        other = right if given is node.left else left
        if given is not None and isinstance(other.value, (int, float)):
            _end_with_none(interp, node, given)


def called_with_none(interp: Interp, node: m.Call, func: v.Value, given: v.Value) -> None:
    """The running path ends where a function of Python is given a variable that is None and cannot be."""
    if (
        isinstance(func, v.Ext)
        and func.name in _REFUSE_NONE
        and isinstance(given, v.Lit)
        and given.value is None
    ):
        _end_with_none(interp, node, node.args[0])


def _end_with_none(interp: Interp, node: m.Expr, given: m.Expr) -> None:
    if interp.entry is None or interp.guessing or interp.uncertain or interp.frame.file.notebook:
        return
    if not isinstance(given, m.Name):
        return
    stmt = interp.statement
    whole = stmt.iter if isinstance(stmt, m.For) else getattr(stmt, "value", None)
    if (
        whole is None
        or not any(one is given for one in _in_all_cases(interp, whole))
        or not _stays_none(interp, given)
    ):
        return
    interp.gap("failing-call", f"`{given.id}` is None", node)
    end_lost(interp)


def _stays_none(interp: Interp, name: m.Name) -> bool:
    """Whether a variable that is None now is that whenever the running code reads it: nothing else is stored in it."""
    value, (first, *rest) = interp.lookup(name.id.partition(".")[0]), name.id.split(".")
    if v.option_of(value_of(interp, name) if rest else value or v.UNKNOWN):
        return False
    if len(rest) == 1 and isinstance(value, v.Inst):
        plain = all(lacks(interp, base, rest[0]) for base in value.cls.external_bases())
        return plain and not interp.stores_attribute(rest[0]) and not interp.mentions(SET_BY_NAME)
    function = interp.frame.function
    if rest or first not in own_names(function):
        return False
    return (
        not may_be_shared(interp.whole(interp.frame.file), function, {first})
        and times_stored(function, first) == 1
        and any(_stores_none(stmt, first) for stmt in statements(function.body))
    )


def _stores_none(stmt: m.Stmt, name: str) -> bool:
    """Whether a statement says that a variable is None. What a parameter or variable gets from a list may have been stored
    there at a place that is not known."""
    return (
        isinstance(stmt, m.Assign)
        and isinstance(stmt.value, m.Const)
        and stmt.value.value is None
        and any(isinstance(one, m.Name) and one.id == name for one in stmt.targets)
    )


def _in_all_cases(interp: Interp, node: m.Expr) -> Iterator[m.Expr]:
    """The names in an expression that are read, and the calls that are made, whenever it is evaluated, also for each element
    of a comprehension that surely has one."""
    for one in evaluated(node):
        if isinstance(one, m.Comp):
            yield from _of_each_element(interp, one)
        else:
            yield one


def _of_each_element(interp: Interp, node: m.Comp) -> Iterator[m.Expr]:
    """What a comprehension evaluates at least once, where what it goes through has elements and it leaves none out: all but
    what is the element itself, or is taken from it."""
    if node.kind == "g" or not all(
        not one.ifs and _has_elements(interp, one.iter) for one in node.generators
    ):
        return
    targets = set[str]()
    for clause in node.generators:
        target_names(clause.target, targets)
    for part in (node.elt, *([node.value] if node.value is not None else [])):
        for one in _in_all_cases(interp, part):
            named = nodes([one.func if isinstance(one, m.Call) else one])
            if not any(isinstance(x, m.Name) and x.id.partition(".")[0] in targets for x in named):
                yield one


def _has_elements(interp: Interp, node: m.Expr) -> bool:
    """Whether an expression is a display with elements, or a range up to a number above zero, whatever options are given."""
    if isinstance(node, m.Seq):
        return any(not isinstance(one, m.Star) for one in node.elts)
    if not isinstance(node, m.Call) or len(node.args) != 1 or node.keywords:
        return False
    last = node.args[0]
    if not isinstance(node.func, m.Name) or not isinstance(last, m.Name | m.Const):
        return False
    ranges = interp.lookup(node.func.id)
    number = value_of(interp, last) if isinstance(last, m.Name) else v.Lit(last.value)
    known = isinstance(number, v.Lit) and type(number.value) is int and number.value > 0
    return isinstance(ranges, v.Ext) and ranges.name in RANGES and known and not v.option_of(number)


def end_lost(interp: Interp, lost: bool = True) -> None:
    """The running path ends, since a function that it calls asks for a name that nothing defines, or ends the program."""
    if interp.entry is None or interp.guessing or interp.uncertain or interp.frame.file.notebook:
        return
    interp.state.alive = False
    interp.state.raised = True
    interp.state.lost = lost


def defines_no(interp: Interp, mod: v.Mod, name: str, stmt: m.ImportFrom) -> bool:
    """Whether importing a name from a module of the project raises: the module is known, and defines no such name."""
    here, there = interp.frame.file, mod.file
    if there is None or there.facts.problem is not None or there.facts.unread or here.notebook:
        return False
    if interp.entry is None or interp.importing or interp.guessing or interp.uncertain or interp.muted:
        return False
    if interp.exhausted or mod.env.stars or mod.env.read("__getattr__") is not None:
        return False
    if not stmt.level and (
        interp.modules.is_library(stmt.module) or interp.modules.named(stmt.module) != [there]
    ):
        # What is meant may be another module.
        return False
    if not _BY_TEXT.isdisjoint(there.facts.words) or name in bound_names(interp.whole(there)):
        return False
    if interp.uses_word(name, besides=here):
        return False
    interp.gap("undefined-name", f"`{stmt.module or mod.name}` defines no `{name}`", stmt)
    return True


def _is_undefined(interp: Interp, name: str) -> bool:
    file = interp.frame.file
    if name in _DEFINED or name.startswith("__") or interp.exhausted or interp.muted or interp.importing:
        return False
    if file.facts.unread or not _BY_TEXT.isdisjoint(file.facts.words):
        return False
    bound = bound_names(interp.whole(file))
    if name in bound:
        return False
    # Others may define it: for all files, or for those that import all of theirs.
    if interp.mentions(["builtins"], besides=file):
        return False
    return "*" not in bound or not interp.uses_word(name, besides=file)


def _is_plain(func: v.Func) -> bool:
    """Whether a function is no method, and nothing decorates it."""
    return not (func.decorated or func.fn.decorators) and func.receiver is None and func.cls is None


def _only_raises(func: v.Func) -> bool:
    """Whether a function computes something at most, and raises."""
    body = func.fn.body
    if not body or not isinstance(body[-1], m.Raise):
        return False
    return all(isinstance(one, (m.ExprStmt, m.Assign)) for one in body[:-1])


def _refuses(interp: Interp, func: v.Func, node: m.Call, name: str, bound: int = 0) -> bool:
    """Whether a function takes other arguments than it is called with; the first ones may be bound."""
    why = _why_refused(func, node, bound)
    if why:
        interp.gap("failing-call", f"`{name}()` is called with{why}", node)
    return bool(why)


def _why_refused(func: v.Func, node: m.Call, bound: int) -> str:
    params, names = func.fn.params, [one.name for one in node.keywords]
    starred = any(isinstance(one, m.Star) for one in node.args)
    placed = [one for one in params if one.kind in ("p", "a")][bound:]
    known = {one.name for one in params if one.kind in ("a", "k")}
    unexpected = [one for one in names if one and one not in known]
    if unexpected and not any(one.kind == "w" for one in params):
        return f" `{unexpected[0]}`, which it does not take"
    given = sum(not isinstance(one, m.Star) for one in node.args)
    if given > len(placed) and not any(one.kind == "v" for one in params):
        return " more arguments than it takes"
    if starred or not all(names):
        return ""
    missing = placed[given:]
    lacks = any(one.default is None and one.name not in names for one in missing)
    return "out an argument that it needs" if lacks else ""
