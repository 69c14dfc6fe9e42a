"""Fixes of orders: sorted listings and sets, results in the order of their inputs, workers, epochs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import msgspec

from d9mlint.base.findings import Edit, Finding, Fix
from d9mlint.fix.builders import changes
from d9mlint.fix.builders.arguments import generator_edits
from d9mlint.fix.builders.code import Code
from d9mlint.fix.builders.context import SAFE, UNSAFE, Context, made

if TYPE_CHECKING:
    from d9mlint.knowledge import Knowledge

_SEQUENCES = frozenset({"enumerate", "tuple", "zip", "map", "filter", "iter", "reversed", "join", "next"})
_ARRAYS = frozenset({"array", "asarray", "DataFrame", "Series", "stack", "cat", "concatenate", "tensor"})
_SETS = frozenset({"set", "frozenset", "builtins.set", "builtins.frozenset"})
_CHOICES = frozenset({"sample", "choice", "choices", "extend", "cycle", "chain", "permutation"})


def as_sorted_list(context: Context, finding: Finding, fix: Fix) -> Fix:
    """The fix of a check that puts ``sorted(`` and ``)`` around a listing; ``list(x)`` is written ``sorted(x)``, and what
    ``next`` is called with remains an iterator."""
    code = context.own(finding)
    node = code.at(fix.edits[0].start, fix.edits[1].start) if code else None
    if code is None or not isinstance(node, ast.expr):
        return fix
    edits = _in_list(code, node)
    if edits is None and _is_advanced(code, node):
        edits = changes.wrap(code, node, "iter(sorted(", "))")
    more = [
        edit
        for one in _same_listings(context.known, code, node)
        for edit in _in_list(code, one) or changes.wrap(code, one, "sorted(", ")") or ()
    ]
    if edits is None and not more:
        return fix
    every = sorted((*(fix.edits if edits is None else edits), *more), key=lambda edit: (edit.start, edit.end))
    return msgspec.structs.replace(fix, edits=tuple(every))


def _same_listings(known: Knowledge, code: Code, node: ast.expr) -> list[ast.Call]:
    """The other calls in the same function that list the same, whose entries may be paired with those by their places."""
    if not isinstance(node, ast.Call):
        return []
    written = ast.dump(node)
    found: list[ast.Call] = []
    for one in ast.walk(code.scope(node)):
        if not isinstance(one, ast.Call) or one is node or ast.dump(one) != written:
            continue
        if not _in_any_order(known, code, one):
            found.append(one)
    return found


def _in_any_order(known: Knowledge, code: Code, node: ast.expr) -> bool:
    """Whether the order of an expression does not matter to anything that it is given to: a call, ``in``, a comprehension
    of which that holds, or a variable of whose uses it does."""
    above = code.parents.get(node)
    if isinstance(above, ast.Compare):
        return above.left is not node and all(isinstance(op, ast.In | ast.NotIn) for op in above.ops)
    if isinstance(above, ast.comprehension) and above.iter is node:
        whole = code.parents.get(above)
        if isinstance(whole, ast.ListComp | ast.GeneratorExp):
            return _in_any_order(known, code, whole)
        return isinstance(whole, ast.SetComp)
    if isinstance(above, ast.Assign):
        target = _assigned_to(code, node)
        uses = _uses(code, target) if isinstance(target, ast.Name) else []
        return bool(uses) and all(_in_any_order(known, code, one) for one in uses)
    if not (isinstance(above, ast.Call) and above.args[:1] == [node]):
        return False
    name = code.qualified(above.func).removeprefix("builtins.")
    if name in _IN_ANY_ORDER or (name in ("list", "tuple") and _in_any_order(known, code, above)):
        return True
    entry = known.order(name) if name else None
    if entry is None and isinstance(above.func, ast.Attribute) and not code.is_of_module(above.func):
        entry = known.order(f".{above.func.attr}", method=True)
    return entry is not None and entry.role == "end"


_IN_ANY_ORDER = frozenset({"sorted", "len", "set", "frozenset", "min", "max", "any", "all", "sum"})
"""What the order of its argument does not matter to."""


def _is_advanced(code: Code, node: ast.expr) -> bool:
    """Whether ``next`` is called with an expression, or with the variable that it is assigned to."""
    target = _assigned_to(code, node)
    users = [node] if target is None else _uses(code, target)
    return any(
        isinstance(above, ast.Call) and above.args[:1] == [one] and code.qualified(above.func) in _NEXT
        for one in users
        for above in [code.parents.get(one)]
    )


_NEXT = frozenset({"next", "builtins.next"})


def _in_list(code: Code, node: ast.expr) -> tuple[Edit, ...] | None:
    """The edit that makes ``sorted(x)`` of ``list(x)``, where an expression stands in it."""
    above = code.parents.get(node)
    if isinstance(above, ast.Call) and above.args == [node] and not above.keywords:
        if code.qualified(above.func) in ("list", "builtins.list"):
            return (changes.replace(code, above.func, "sorted"),)
    return None


def listing(context: Context, finding: Finding) -> Fix | None:
    """DET209 for what cannot be wrapped as it is: walks sort their names, scans sort by name."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    if finding.subject == "os.scandir":
        above = code.parents[call]
        if isinstance(above, (ast.withitem, ast.Assign, ast.Return)):
            return None
        variable = "entry" if "entry" not in code.bound(code.scope(call)) else "e"
        edits = changes.wrap(code, call, "sorted(", f", key=lambda {variable}: {variable}.name)")
        return made("sort the entries by name", edits, SAFE)
    if finding.subject not in ("os.walk", "os.fwalk") or "topdown" in {k.arg for k in call.keywords}:
        return None
    loop = code.parents[call]
    if not isinstance(loop, ast.For) or loop.iter is not call or len(call.args) > 1:
        return None
    target = loop.target
    if not isinstance(target, (ast.Tuple, ast.List)) or len(target.elts) < 3:
        return None
    names = [e.id for e in target.elts[1:3] if isinstance(e, ast.Name)]
    if len(set(names)) < 2:
        return None
    edits_ = changes.insert_before(code, loop.body[0], [f"{name}.sort()" for name in names])
    return made("sort the names of each directory", edits_, SAFE)


def ordered_set(context: Context, finding: Finding) -> Fix | None:
    """DET210: sort a set of text where its order is used; keep what may not be comparable in the order of first
    appearance, where it becomes a set."""
    code = context.own(finding)
    node = code.at(finding.start, finding.end) if code else None
    if code is None or not isinstance(node, ast.expr):
        return None
    if "text" not in finding.remedy:
        return made("keep the order of first appearance", _without_set(context, code, node))
    direct = _sort_here(code, node)
    if direct is not None:
        return made("sort the elements", direct)
    target = _assigned_to(code, node)
    if target is None:
        return None
    edits: list[Edit] = []
    for use in _uses(code, target):
        if code.start(use) > code.end(node) or isinstance(target, ast.Attribute):
            edits += _sort_here(code, use) or ()
    return made("sort the elements", edits)


def _assigned_to(code: Code, node: ast.expr) -> ast.Name | ast.Attribute | None:
    """The one variable or attribute that an expression is assigned to."""
    above = code.parents[node]
    target: ast.expr | None = None
    if isinstance(above, ast.Assign) and len(above.targets) == 1:
        target = above.targets[0]
    elif isinstance(above, ast.AnnAssign):
        target = above.target
    return target if isinstance(target, (ast.Name, ast.Attribute)) else None


def _without_set(context: Context, code: Code, node: ast.expr) -> tuple[Edit, ...] | None:
    """The edits that make the keys of a dictionary of what is made a set, where only the elements are used."""
    if "dict" in code.bound(code.tree):
        return None
    if isinstance(node, ast.Name):
        # It is reported where its order is used.
        values = code.assigned(node)
        if len(values) != 1:
            return None
        node = values[0]
    keys = _as_keys(code, node)
    if keys is None or _is_iterated(code, node):
        return keys
    if _used_by(code, node) in _ARRAYS | _CHOICES:
        return (
            Edit(code.start(node), keys[0].end, f"list({keys[0].content}"),
            *keys[1:],
            Edit(code.end(node), code.end(node), ")"),
        )
    above, target = code.parents[node], _assigned_to(code, node)
    if not isinstance(above, ast.Assign) or not isinstance(target, ast.Name):
        return None
    if isinstance(code.scope(above), ast.Module) and context.others_contain(code.source.path, target.id):
        # Another module may use it as a set.
        return None
    if any(isinstance(n, ast.AugAssign) and ast.unparse(n.target) == target.id for n in code.nodes):
        return None
    uses = _uses(code, target)
    return keys if uses and all(_is_iterated(code, use) or _is_asked(code, use) for use in uses) else None


def _as_keys(code: Code, node: ast.expr) -> tuple[Edit, ...] | None:
    """The edits that write ``dict.fromkeys(...)`` for an expression that makes a set of elements."""
    start, end = code.start(node), code.end(node)
    if isinstance(node, ast.Set):
        return (Edit(start, start + 1, "dict.fromkeys(["), Edit(end - 1, end, "])"))
    if isinstance(node, ast.SetComp):
        return (Edit(start, start + 1, "dict.fromkeys("), Edit(end - 1, end, ")"))
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords:
        if code.qualified(node.func) in _SETS and not isinstance(node.args[0], ast.Starred):
            return (changes.replace(code, node.func, "dict.fromkeys"),)
    return None


def _is_iterated(code: Code, node: ast.expr) -> bool:
    """Whether an expression is used for its elements alone, one after the other."""
    above = code.parents[node]
    if isinstance(above, (ast.For, ast.AsyncFor, ast.comprehension)):
        return above.iter is node
    return isinstance(above, (ast.Starred, ast.YieldFrom)) or _used_by(code, node) in {"list", *_SEQUENCES}


def _is_asked(code: Code, node: ast.expr) -> bool:
    """Whether an expression is used in a way in which a set and the keys of a dictionary are the same."""
    above = code.parents[node]
    if isinstance(above, ast.Compare):
        return all(isinstance(op, (ast.In, ast.NotIn)) for op in above.ops) and above.left is not node
    return _used_by(code, node) in ("len", "sorted", "min", "max", "sum", "any", "all", "bool", "set")


def _used_by(code: Code, node: ast.expr) -> str:
    """The last name of the function or method that an expression is an argument of."""
    above = code.parents[node]
    if not isinstance(above, ast.Call) or node not in above.args:
        return ""
    name = code.qualified(above.func).rpartition(".")[2]
    return above.func.attr if isinstance(above.func, ast.Attribute) and not name else name


def _uses(code: Code, target: ast.Name | ast.Attribute) -> list[ast.expr]:
    """Where a variable or attribute is read, in the scope that it is bound in and those inside."""
    scope = code.scope(target)
    area: ast.AST = scope
    if isinstance(target, ast.Attribute):
        area = next((a for a in code.ancestors(target) if isinstance(a, ast.ClassDef)), code.tree)
    text = ast.unparse(target)
    found: list[ast.expr] = []
    for node in ast.walk(area):
        if isinstance(node, (ast.Name, ast.Attribute)) and ast.unparse(node) == text:
            if isinstance(node.ctx, ast.Load):
                found.append(node)
            elif node is not target and not isinstance(code.parents[node], ast.AugAssign):
                # Another value may be meant further down.
                return []
    return found


def _sort_here(code: Code, node: ast.expr) -> tuple[Edit, ...] | None:
    """The edits that sort an expression where its order is used; None where it is not."""
    above = code.parents[node]
    if isinstance(above, ast.Call) and node in above.args:
        name = _used_by(code, node)
        if (in_list := _in_list(code, node)) is not None:
            return in_list
        if name in _SEQUENCES | _ARRAYS | _CHOICES:
            return changes.wrap(code, node, "sorted(")
        return None
    if isinstance(above, (ast.For, ast.AsyncFor)) and above.iter is node:
        return changes.wrap(code, node, "sorted(")
    if isinstance(above, ast.comprehension) and above.iter is node:
        return changes.wrap(code, node, "sorted(")
    if isinstance(above, ast.Starred):
        return changes.wrap(code, node, "sorted(")
    if isinstance(above, ast.YieldFrom):
        return changes.wrap(code, node, "sorted(")
    return None


def input_order(context: Context, finding: Finding) -> Fix | None:
    """DET211: results in the order in which work was handed in."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    name = finding.subject.rpartition(".")[2]
    if name == "imap_unordered":
        if not isinstance(call.func, ast.Attribute) or call.func.attr != name:
            # The finding is about what a function draws that it runs.
            return None
        return made("use `imap`", changes.rename_called(code, call, "imap"))
    if name != "as_completed" or len(call.args) != 1 or call.keywords:
        return None
    given = call.args[0]
    if not _is_ordered(code, given):
        return None
    head = Edit(code.start(call), code.start(given), "")
    tail = Edit(code.end(given), code.end(call), "")
    return made("wait for the futures in order", (head, tail))


def _is_ordered(code: Code, node: ast.expr) -> bool:
    """Whether an expression is surely a list or a dictionary."""
    if isinstance(node, (ast.List, ast.ListComp, ast.Dict, ast.DictComp)):
        return True
    if not isinstance(node, ast.Name):
        return False
    values = code.assigned(node)
    return bool(values) and all(
        isinstance(v, (ast.List, ast.ListComp, ast.Dict, ast.DictComp)) for v in values
    )


# -------------------------------------------------------------------------------------------- loaders

HELPER = "seed_worker"


def seeded_workers(context: Context, finding: Finding) -> Fix | None:
    """DET201: a ``worker_init_fn`` that seeds NumPy and ``random``, and a seeded generator. The helper is inserted once."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    if {"own", "other", "kept"} & set(finding.remedy):
        return None
    written = changes.argument(call, "worker_init_fn", 9)
    if written is not None and not (isinstance(written, ast.Constant) and written.value is None):
        # It does something else, which has to be kept.
        return None
    helper = _existing_helper(code)
    imports: list[str] = []
    edits: list[Edit] = []
    if not helper:
        same = [f for f in context.of_file(finding.path) if f.code == "DET201"]
        loaders = [n for f in same if (n := code.call(f.start, f.end)) is not None]
        helper, imports, inserted = _insert_helper(code, min((code.top(n) for n in loaders), key=code.start))
        if inserted is None:
            return None
        edits += inserted
    init = changes.set_argument(code, call, "worker_init_fn", helper, 9)
    if init is None:
        return None
    added: tuple[Edit, ...] | None = None
    if changes.argument(call, "generator", 12) is None:
        needed, added = generator_edits(code, call, finding)
        imports += [line for line in needed if added is not None and line not in imports]
    if added is None:
        return made("seed the workers", changes.with_imports(code, sorted(imports), (*edits, *init)))
    (edit,), last = added, init[0]
    if edit.start == last.start == last.end:
        # Both are written behind the last argument: as one edit.
        joined = Edit(last.start, last.end, last.content + edit.content)
        return made("seed the workers", changes.with_imports(code, sorted(imports), (*edits, joined)))
    return made("seed the workers", changes.with_imports(code, sorted(imports), (*edits, *init, edit)))


def _existing_helper(code: Code) -> str:
    for stmt in code.tree.body:
        if isinstance(stmt, ast.FunctionDef) and len(stmt.args.args) == 1 and "worker" in stmt.name:
            if "initial_seed" in ast.unparse(stmt):
                return stmt.name
    return ""


def _insert_helper(code: Code, before: ast.stmt) -> tuple[str, list[str], tuple[Edit, ...] | None]:
    """The name of the helper, the imports that it needs, and the edits that insert it before a statement."""
    name = HELPER
    while name in code.bound(code.tree):
        name = f"_{name}"
    imports: list[str] = []
    names: list[str] = []
    for module in ("torch", "numpy", "random"):
        bound, needed = changes.module_name(code, module, before, code.start(before))
        names.append(bound)
        if needed:
            imports.append(needed)
    torch, numpy, random = names
    lines = [
        f"def {name}(worker_id):",
        f"    seed = {torch}.initial_seed() % 2**32",
        f"    {numpy}.random.seed(seed)",
        f"    {random}.seed(seed)",
        "",
        "",
    ]
    return name, imports, changes.insert_above(code, before, lines)


def epoch_set(context: Context, finding: Finding) -> Fix | None:
    """DET203: tell the sampler the epoch at the start of each."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    stmt = code.statement(call)
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1:
        return None
    target = stmt.targets[0]
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return None
    sampler = ast.unparse(target) if stmt.value is call else f"{ast.unparse(target)}.sampler"
    if stmt.value is not call and not any(
        k.arg == "sampler" and k.value is call for k in _keywords(stmt.value)
    ):
        return None
    used = {ast.unparse(target), *_loaders(code, stmt, sampler)}
    for node in ast.walk(code.scope(call)):
        if (
            isinstance(node, ast.For)
            and code.start(node) > code.end(stmt)
            and isinstance(node.target, ast.Name)
            and changes.is_counted(code, node)
            and code.scope(node) is code.scope(call)
            and any(ast.unparse(one) in used for inner in node.body for one in _named(inner))
        ):
            line = f"{sampler}.set_epoch({node.target.id})"
            return made(
                "tell the sampler the epoch", changes.insert_before(code, node.body[0], [line]), UNSAFE
            )
    return None


def _loaders(code: Code, made: ast.Assign, sampler: str) -> Iterator[str]:
    """What the loaders are called that are given a sampler in the scope where it was made."""
    for node in ast.walk(code.scope(made)):
        if isinstance(node, ast.Assign) and any(
            ast.unparse(k.value) == sampler
            for k in _keywords(node.value)
            if k.arg in ("sampler", "batch_sampler")
        ):
            yield from (ast.unparse(one) for one in node.targets)


def _named(node: ast.AST) -> Iterator[ast.expr]:
    return (one for one in ast.walk(node) if isinstance(one, (ast.Name, ast.Attribute)))


def _keywords(node: ast.expr) -> list[ast.keyword]:
    return node.keywords if isinstance(node, ast.Call) else []


BUILDERS: dict[str, Callable[[Context, Finding], Fix | None]] = {
    "DET201": seeded_workers,
    "DET203": epoch_set,
    "DET209": listing,
    "DET210": ordered_set,
    "DET211": input_order,
}
