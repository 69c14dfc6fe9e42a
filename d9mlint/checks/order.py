"""DET209 and DET210: listings and sets whose order affects a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.base.findings import Applicability, Confidence, Edit, Fix, Severity
from d9mlint.checks.base import Reporter, replace_fix
from d9mlint.checks.text import call_text
from d9mlint.interp import values as v
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import own_names, target_names
from d9mlint.ir.traversal import called_name, children, nodes, parents, receiver

if TYPE_CHECKING:
    from d9mlint.interp.hooks import CallEvent, Hooks
    from d9mlint.interp.interpreter import Interp

LISTINGS = ("os.listdir", "os.scandir", "os.walk", "glob.glob", "glob.iglob", "os.fwalk")
PATH_METHODS = ("glob", "rglob", "iterdir")
SILENT_CALLS = frozenset(
    [
        "sorted",
        "len",
        "set",
        "frozenset",
        "sum",
        "min",
        "max",
        "any",
        "all",
        "Counter",
        "bool",
        "isinstance",
        "natsorted",
        "humansorted",
        "os_sorted",
        "print",
        "unique",
        "fromkeys",
        "isdisjoint",
        "issubset",
        "issuperset",
        "union",
        "intersection",
        "difference",
        "intersection_update",
        "update",
        "difference_update",
        "symmetric_difference",
        "remove",
        "rmtree",
        "unlink",
        "debug",
        "info",
        "warning",
        "sort_values",
        "count",
        "index",
        "nlargest",
        "nsmallest",
        "mean",
        "std",
        "median",
        "dict",
        "type",
        "id",
        "hasattr",
        "assertEqual",
        "assertTrue",
        "set_postfix",
    ]
)
TRANSPARENT_CALLS = frozenset(
    {"list", "tuple", "iter", "reversed", "map", "filter", "tqdm", "trange", "track", "chain", "islice"}
)
VISIBLE_CALLS = frozenset(
    [
        "enumerate",
        "zip",
        "sample",
        "choice",
        "choices",
        "shuffle",
        "train_test_split",
        "permutation",
        "join",
        "array",
        "asarray",
        "DataFrame",
        "Series",
        "next",
        "random_split",
        "cycle",
        "extend",
    ]
)
# Calls that leave something behind under the name they are given.
SAVING = frozenset(
    {
        "save",
        "savez",
        "savez_compressed",
        "savetxt",
        "save_image",
        "imsave",
        "imwrite",
        "open",
        "dump",
        "to_csv",
    }
)
# Methods by which a loop over entries keeps them in the order in which they came.
KEEPING = frozenset(
    {"append", "extend", "insert", "appendleft", "write", "writelines", "writerow", "put", "concatenate"}
)


def register(hooks: Hooks, reporter: Reporter) -> None:
    """Listen to listings and sets being made."""
    if reporter.on("DET209"):

        @hooks.on_call(*LISTINGS)
        def listing(interp: Interp, call: CallEvent) -> None:
            _listing(interp, call, reporter)

        @hooks.on_method(*PATH_METHODS)
        def path_method(interp: Interp, call: CallEvent) -> None:
            if isinstance(call.owner, v.Obj) and call.owner.type.startswith("pathlib."):
                _listing(interp, call, reporter)

        @hooks.on_call("builtins.sorted")
        def sort(interp: Interp, call: CallEvent) -> None:
            first = call.args.pos[0] if call.args.pos else None
            dropped = isinstance(interp._node, m.ExprStmt) and interp._node.value is call.node
            if isinstance(first, v.Obj) and first.node is not None and not dropped:
                interp.sorted_nodes.add(id(first.node))

    if reporter.on("DET210"):

        @hooks.on_call("builtins.set", "builtins.frozenset")
        def made(interp: Interp, call: CallEvent) -> None:
            elements = call.args.pos[0] if call.args.pos else None
            if elements is not None:
                _set(interp, call.node, elements, reporter)

        hooks.sets.append(lambda interp, node, value: _set(interp, node, value, reporter))


def enclosing_function(interp: Interp) -> m.Function | None:
    """The project function that is running, or the module body."""
    frame: Any = interp.frame
    while frame is not None:
        if frame.func is not None:
            found: m.Function = frame.func.fn
            return found
        if not frame.is_class:
            return frame.file.facts.functions[0] if frame.file.facts.functions else None
        frame = frame.caller
    return None


# -------------------------------------------------------------------------------------------- DET209


def _listing(interp: Interp, call: CallEvent, reporter: Reporter) -> None:
    function = enclosing_function(interp)
    if function is None or not isinstance(call.node, m.Call):
        return
    use = Use(interp, function, walk=call.api in ("os.walk", "os.fwalk"))
    answer = use.of(call.node)
    if not answer:
        return
    if answer == "returned" and id(call.node) in interp.sorted_nodes:
        return
    if answer == "returned":
        # The caller may sort: known only at the end.
        node, name = call.node, call_text(call)
        interp.pending.append(
            lambda: None if id(node) in interp.sorted_nodes else _report(interp, reporter, call, name, place)
        )
        from d9mlint.interp.places import Where

        place: Any = Where(interp, call.node, call.api)
        return
    _report(interp, reporter, call, call_text(call), call.node)


def _report(interp: Interp, reporter: Reporter, call: CallEvent, name: str, place: Any) -> None:
    fixable = call.api not in ("os.walk", "os.fwalk", "os.scandir")
    fix = None
    if fixable:
        edits = (Edit(call.node.start, call.node.start, "sorted("), Edit(call.node.end, call.node.end, ")"))
        fix = Fix(Applicability.SAFE, "sort the entries", edits)
    reporter.report(
        interp,
        "DET209",
        place,
        f"result depends on the order of `{name}()`, which is arbitrary",
        "sort the entries" if fixable else "sort the names before use (for `os.walk`, also `dirs.sort()`)",
        subject=call.api,
        fix=fix,
    )


class Use:
    """Judges how an ordered-by-chance value is used: ``""`` harmless or unknown, ``"visible"``, ``"returned"``."""

    def __init__(
        self, interp: Interp, function: m.Function, walk: bool = False, printed: bool = False
    ) -> None:
        self.interp = interp
        self.function = function
        self.parents = parents(function)
        self.walk = walk
        # Whether printing counts: it does for results, not for the names in a folder.
        self.printed = printed
        self.depth = 0
        # Whether the value became a sequence on the way: a set that is returned as a set shows no order.
        self.listed = False

    def of(self, node: Any) -> str:
        """How the value of an expression is used."""
        parent = self.parents.get(id(node))
        self.depth += 1
        if parent is None or self.depth > 30:
            return "returned" if self.function.name == "<lambda>" else ""
        if isinstance(parent, m.Call):
            return self._argument(parent, node)
        if isinstance(parent, m.Keyword):
            return ""
        if isinstance(parent, m.Attr):
            return self._method(parent)
        if isinstance(parent, m.Subscript):
            return "visible" if parent.value is node else ""
        if isinstance(parent, m.Generator):
            return self._comprehension(parent)
        if isinstance(parent, m.For):
            return self._loop(parent) if parent.iter is node else ""
        if isinstance(parent, (m.Assign, m.AnnAssign)):
            return self._assigned(parent)
        if isinstance(parent, m.AugAssign):
            return self._name(parent.target, after=parent.end)
        if isinstance(parent, m.Return):
            return "returned"
        if isinstance(parent, m.Seq):
            return "returned" if isinstance(self.parents.get(id(parent)), m.Return) else ""
        if isinstance(parent, m.Wait):
            return "visible" if parent.kind == "from" else ""
        if isinstance(parent, (m.BinOp, m.IfExp, m.BoolOp, m.Star, m.Walrus)):
            return self.of(parent)
        return ""

    def _argument(self, call: m.Call, node: Any) -> str:
        name = called_name(call)
        if name == "print" and self.printed:
            return "visible"
        if call.func is node or name in SILENT_CALLS:
            return ""
        if name == "next" and self.walk:
            return self._top(call)
        if name in ("append", "add", "extend", "insert"):
            # Kept in a list as it is, or element by element: what happens to that list decides.
            target = receiver(call)
            return self._names(target, after=call.end) if target and name in ("append", "extend") else ""
        if name in TRANSPARENT_CALLS:
            self.listed = True
            return self.of(call)
        if name in ("enumerate", "zip"):
            return self._positions(call)
        return "visible" if name in VISIBLE_CALLS else ""

    def _top(self, call: m.Call) -> str:
        """``next(os.walk(d))``: the folder itself comes first in any case, its lists of names are by chance."""
        parent = self.parents.get(id(call))
        if isinstance(parent, m.Subscript):
            first = isinstance(parent.index, m.Const) and parent.index.value == 0
            return "" if first else self.of(parent)
        if isinstance(parent, m.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], m.Seq):
            answers = [self._name(target, after=parent.end) for target in parent.targets[0].elts[1:]]
            return next((a for a in answers if a), "")
        return "visible"

    def _positions(self, call: m.Call) -> str:
        """Numbered or paired by position: visible unless that number is only shown."""
        parent = self.parents.get(id(call))
        if isinstance(parent, m.Call) and called_name(parent) in SILENT_CALLS:
            return "" if called_name(parent) == "sorted" else "visible"
        if isinstance(parent, m.For):
            return self._loop(parent, numbered=True)
        return "visible"

    def _method(self, attr: m.Attr) -> str:
        name = attr.name.partition(".")[0]
        if name in ("sort", "index", "count", "pop", "remove", "union", "intersection", "difference"):
            return "" if name != "pop" else "visible"
        return ""

    def _comprehension(self, generator: m.Generator) -> str:
        comp = self.parents.get(id(generator))
        if not isinstance(comp, m.Comp):
            return ""
        if comp.kind in "sd":
            return ""
        self.listed = True
        return self.of(comp)

    def _loop(self, loop: m.For, numbered: bool = False) -> str:
        """A loop over entries: visible when its body keeps them in order and nothing sorts them later."""
        if self.walk and self._sorts_walk(loop):
            return ""
        kept: list[str] = []
        for node in nodes(loop.body):
            if isinstance(node, m.Call) and called_name(node) in KEEPING and receiver(node):
                if not self._made_anew(loop, node):
                    kept.append(receiver(node))
            elif isinstance(node, m.Wait) and node.kind in ("yield", "from"):
                return "visible"
            elif isinstance(node, m.Call) and numbered and called_name(node) in SAVING:
                if _uses(node, loop.target):
                    return "visible"
            elif isinstance(node, m.AugAssign) and node.op == "+" and _grows(node):
                if isinstance(node.target, m.Name):
                    kept.append(node.target.id)
            elif isinstance(node, m.Assign):
                for target in node.targets:
                    if isinstance(target, m.Subscript) and _by_count(node.value, loop if numbered else None):
                        return "visible"
                    if isinstance(target, m.Subscript) and numbered and _uses(target.index, loop.target):
                        return "visible"
        for name in dict.fromkeys(kept):
            if self._names(name, after=loop.start, appended=True):
                return "visible"
        return ""

    def _made_anew(self, loop: m.For, call: m.Call) -> bool:
        """Whether what a call adds to is opened or recreated before it in each round: it keeps nothing of the order."""
        name = receiver(call).partition(".")[0]
        around = self._tests(call, loop)
        for stmt in nodes(loop.body):
            names: set[str] = set()
            if isinstance(stmt, m.Assign):
                for target in stmt.targets:
                    target_names(target, names)
            elif isinstance(stmt, (m.AnnAssign, m.For)):
                target_names(stmt.target, names)
            elif isinstance(stmt, m.With):
                for item in stmt.items:
                    if item.target is not None:
                        target_names(item.target, names)
            if name in names and stmt.start < call.start and self._tests(stmt, loop) <= around:
                return True
        return False

    def _tests(self, node: Any, loop: m.For) -> set[int]:
        """The ``if`` statements of a loop's body that a node stands in."""
        found: set[int] = set()
        while node is not None and node is not loop:
            if isinstance(node, m.If):
                found.add(id(node))
            node = self.parents.get(id(node))
        return found

    def _sorts_walk(self, loop: m.For) -> bool:
        names = (
            [t.id for t in loop.target.elts if isinstance(t, m.Name)]
            if isinstance(loop.target, m.Seq)
            else []
        )
        if len(names) < 3:
            return False
        sorts = {receiver(n) for n in nodes(loop.body) if isinstance(n, m.Call) and called_name(n) == "sort"}
        sorts |= {
            a.id
            for n in nodes(loop.body)
            if isinstance(n, m.Call) and called_name(n) == "sorted"
            for a in n.args
            if isinstance(a, m.Name)
        }
        return names[1] in sorts and names[2] in sorts

    def _assigned(self, stmt: Any) -> str:
        targets = stmt.targets if isinstance(stmt, m.Assign) else [stmt.target]
        answers = [self._name(t, after=stmt.end) for t in targets]
        return next((a for a in answers if a), "")

    def _name(self, target: m.Expr, after: int) -> str:
        return self._names(target.id, after) if isinstance(target, m.Name) else ""

    def _names(self, name: str, after: int, appended: bool = False) -> str:
        """How a name that holds the entries is used behind an offset (anywhere, for ``self.name``)."""
        functions = [self.function]
        if name.startswith("self.") and self.function.cls >= 0:
            facts = self.interp.frame.file.facts
            functions += [f for f in facts.functions if f.cls == self.function.cls and f is not self.function]
        elif self.function is self.interp.frame.file.facts.functions[0]:
            functions += _readers(self.interp.frame.file.facts.functions, name)
        visible = ""
        if any(_is_single(node, name) for node in nodes(self.function.body)):
            return ""
        for function in functions:
            above = self.parents if function is self.function else parents(function)
            start = after if function is self.function else -1
            names = [n for n in nodes(function.body) if isinstance(n, m.Name) and n.start >= start]
            for node in sorted(names, key=lambda n: n.start):
                # What was seen of the order before it is sorted in the same function stays seen.
                shown = visible if function is self.function else ""
                if node.id == f"{name}.sort":
                    return shown
                if node.id.startswith(f"{name}.") and node.id[len(name) + 1 :] in ("pop",):
                    visible = visible or "visible"
                if node.id != name:
                    continue
                up = above.get(id(node))
                if isinstance(up, m.Call) and called_name(up) in (
                    "sorted",
                    "natsorted",
                    "humansorted",
                    "os_sorted",
                ):
                    stmt = above.get(id(up))
                    if not isinstance(stmt, m.ExprStmt):
                        return shown
                    continue
                if isinstance(up, (m.Assign, m.AnnAssign)) and node in getattr(
                    up, "targets", [getattr(up, "target", None)]
                ):
                    continue
                inner = Use(self.interp, function, self.walk, self.printed)
                inner.depth = self.depth + 1
                if isinstance(up, m.Call) and up.func is not node and _project_call(up):
                    continue
                inner.listed = self.listed
                visible = visible or inner.of(node)
                self.listed = inner.listed
        return visible


def _readers(functions: list[m.Function], name: str) -> list[m.Function]:
    """Functions in which a name is the module's: neither they nor the functions around them have their own."""
    own: set[int] = set()
    for index, function in enumerate(functions):
        # A function stands behind those around it.
        if index and (function.parent in own or name in own_names(function)):
            own.add(index)
    return [f for index, f in enumerate(functions) if index and index not in own]


def _is_single(node: Any, name: str) -> bool:
    """Whether a node compares ``len(name)`` with 1: a listing of one entry has no order."""
    return (
        isinstance(node, m.Compare)
        and called_name(node.left) == "len"
        and isinstance(node.left, m.Call)
        and any(isinstance(a, m.Name) and a.id == name for a in node.left.args)
        and any(isinstance(c, m.Const) and c.value == 1 for c in node.comparators)
    )


def _project_call(call: m.Call) -> bool:
    """A call that is none of those that are judged: what it does with the entries is not known."""
    name = called_name(call)
    return name not in SILENT_CALLS | TRANSPARENT_CALLS | VISIBLE_CALLS | KEEPING


def _grows(stmt: m.AugAssign) -> bool:
    value = stmt.value
    return isinstance(value, (m.Seq, m.Comp)) or (
        isinstance(value, m.Call) and called_name(value) in ("list", "glob")
    )


def _by_count(value: m.Expr, loop: m.For | None) -> bool:
    """Whether a stored value numbers the entries: ``len(x)``, or the index of an enumerated loop."""
    for node in [value, *nodes_of(value)]:
        if isinstance(node, m.Call) and called_name(node) == "len":
            return True
    return loop is not None and _uses(value, loop.target)


def _uses(value: m.Expr, target: m.Expr) -> bool:
    first = target.elts[0] if isinstance(target, m.Seq) and target.elts else target
    if not isinstance(first, m.Name):
        return False
    return any(
        isinstance(n, m.Name) and n.id.partition(".")[0] == first.id for n in [value, *nodes_of(value)]
    )


def nodes_of(value: m.Expr) -> list[Any]:
    """All nodes below an expression."""
    found: list[Any] = []
    stack: list[Any] = [value]
    while stack:
        for child in children(stack.pop()):
            found.append(child)
            stack.append(child)
    return found


# -------------------------------------------------------------------------------------------- DET210


def _set(interp: Interp, node: Any, elements: v.Value, reporter: Reporter) -> None:
    function = enclosing_function(interp)
    if function is None or node is None or _numbers(elements) or _int_elements(node):
        return
    use = Use(interp, function)
    answer = use.of(node)
    if not answer or (answer == "returned" and not use.listed):
        return
    strings = _strings(elements)
    reporter.report(
        interp,
        "DET210",
        node,
        "iteration order of this set of strings differs between runs (hash randomization)"
        if strings
        else "iteration order of this set differs between runs if it contains strings (hash randomization)",
        "use `sorted(...)`, or `dict.fromkeys(...)` to keep the order of first appearance",
        subject="set",
        severity=None if strings else Severity.WARNING,
        confidence=None if strings else Confidence.MEDIUM,
    )


def _numbers(value: v.Value) -> bool:
    """Whether all elements are surely numbers, whose hashes are not randomised."""
    if isinstance(value, v.Items):
        return bool(value.elts) and all(
            isinstance(e, v.Lit) and isinstance(e.value, (int, float)) for e in value.elts
        )
    return isinstance(value, v.Obj) and value.api in ("builtins.range", "numpy.arange", "torch.arange")


def _int_elements(node: Any) -> bool:
    """Whether the elements are written as ``int(...)`` or ``len(...)`` calls."""
    source = node.args[0] if isinstance(node, m.Call) and node.args else node
    if isinstance(source, m.Comp):
        return called_name(source.elt) in ("int", "len", "float", "ord", "round", "id")
    return isinstance(source, m.Call) and called_name(source) in ("range", "map") and _maps_int(source)


def _maps_int(call: m.Call) -> bool:
    return called_name(call) == "range" or (
        bool(call.args) and isinstance(call.args[0], m.Name) and call.args[0].id in ("int", "len", "float")
    )


# What gives names, lines or words.
_TEXTS = frozenset({"split", "rsplit", "splitlines", "readlines", "listdir", "glob", "iglob", "keys"})


def _strings(value: v.Value) -> bool:
    if isinstance(value, v.Obj):
        return value.api.rpartition(".")[2] in _TEXTS
    return isinstance(value, v.Items) and any(
        isinstance(e, v.Lit) and isinstance(e.value, str) for e in value.elts
    )


__all__ = ["LISTINGS", "register", "replace_fix"]
