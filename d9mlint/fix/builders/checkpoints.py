"""Fixes of checkpoints: what a resumed run needs is saved, and what was saved is restored."""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator
from typing import NamedTuple, TypeGuard

from d9mlint.base.findings import LOADED_AT, Edit, Finding, Fix
from d9mlint.fix.builders import changes
from d9mlint.fix.builders.code import Code
from d9mlint.fix.builders.context import Context, made
from d9mlint.knowledge.rng_states import whole_state_given

# RNG: key in the checkpoint, module, what gives the state, what restores it from ``{0}``.
STATES = {
    "torch": ("torch_rng_state", "torch", "get_rng_state()", "set_rng_state({0}.cpu())"),
    "cuda": (
        "cuda_rng_state",
        "torch",
        "cuda.get_rng_state_all()",
        "cuda.set_rng_state_all([state.cpu() for state in {0}])",
    ),
    "numpy": ("numpy_rng_state", "numpy", "random.get_state()", "random.set_state({0})"),
    "python": ("python_rng_state", "random", "getstate()", "setstate({0})"),
}


def complete(context: Context, finding: Finding) -> Fix | None:
    """DET601: put what is missing into the dictionary that is saved, and restore it where that is loaded. None where one
    part of it cannot be found."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    wanted = [part for part in finding.remedy if not part.startswith(LOADED_AT)]
    if not call.args or not wanted:
        return None
    saved = _dictionary(code, call)
    if saved is None:
        return None
    if "numpy" in wanted and _loads_weights_only(context, finding, code):
        # NumPy's state holds an array, which such a load refuses.
        return None
    reached = {int(part.removeprefix(LOADED_AT)) for part in finding.remedy if part.startswith(LOADED_AT)}
    resumed = _resumed(code, saved.keys, reached)
    alike = [
        one
        for one in code.calls((code.qualified(call.func),))
        if one is not call and _dictionary(code, one) is not None
    ]
    if resumed is not None and alike:
        # The file that is loaded may be one that another call has saved.
        return None
    if resumed is None and (
        reached or any(code.calls(("torch.load",))) or context.others_contain(code.source.path, "torch.load")
    ):
        # What is saved would be restored nowhere.
        return None
    entries: list[tuple[str, str]] = []
    restored: list[str] = []
    imports: list[str] = []
    for part in wanted:
        value = key = ""
        if part in STATES:
            key, module, getter, restore = STATES[part]
            for user in (call, resumed.stmt) if resumed is not None else (call,):
                name, needed = changes.module_name(code, module, user, code.start(code.top(user)))
                if needed and needed not in imports:
                    imports.append(needed)
                if user is call:
                    value = f"{name}.{getter}"
                else:
                    restored.append(f"{name}.{restore.format(resumed.item(key))}" if resumed else "")
        elif part == "epoch":
            # With it a loop would have to go on from another number.
            key, value = "epoch", "" if resumed is not None else _loop_variable(code, call)
        else:
            key = part
            owner = _made(code, call, part)
            value = f"{owner}.state_dict()" if owner else ""
            if resumed is not None and owner:
                if not resumed.sees(code, part, owner):
                    return None
                restored.append(f"{owner}.load_state_dict({resumed.item(key)})")
        if not value or key in saved.keys:
            return None
        entries.append((key, value))
    edits = saved.with_entries(code, call, entries)
    if edits is None:
        return None
    if resumed is not None:
        after = changes.insert_after(code, resumed.stmt, restored)
        if after is None:
            return None
        edits += after
        return made("save and restore the missing state", changes.with_imports(code, sorted(imports), edits))
    return made("save the missing state", changes.with_imports(code, sorted(imports), edits))


class _Resumed(NamedTuple):
    """Where a checkpoint is loaded: the statement behind which everything is loaded that is given its state, and the
    variable that holds the checkpoint."""

    stmt: ast.stmt
    variable: str

    def item(self, key: str) -> str:
        """An item of the checkpoint."""
        return f'{self.variable}["{key}"]'

    def sees(self, code: Code, part: str, owner: str) -> bool:
        """Whether a scheduler or scaler was made before."""
        scope = code.scope(self.stmt)
        for one in _makings(code, part):
            if ast.unparse(one.targets[0]) != owner:
                continue
            if code.scope(one) is scope or isinstance(one.targets[0], ast.Name):
                return code.scope(one) is scope and code.start(one) < code.start(self.stmt)
            classes = [
                next((above for above in code.ancestors(node) if isinstance(above, ast.ClassDef)), None)
                for node in (one, self.stmt)
            ]
            return classes[0] is not None and classes[0] is classes[1]
        return False


def _resumed(code: Code, keys: Collection[str], reached: Collection[int]) -> _Resumed | None:
    """Where the only resumed run of a file loads the checkpoint, which has some keys: in one of the places that the program
    is known to reach, if there are any."""
    found: list[tuple[int, _Resumed]] = []
    for load in code.calls(("torch.load",)):
        stmt = code.statement(load)
        if reached and code.start(load) not in reached:
            continue
        if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or stmt.value is not load:
            continue
        if not isinstance(stmt.targets[0], (ast.Name, ast.Attribute)):
            continue
        variable = ast.unparse(stmt.targets[0])
        given = [
            one
            for one in ast.walk(code.scope(load))
            if isinstance(one, ast.Call)
            and isinstance(one.func, ast.Attribute)
            and one.func.attr == "load_state_dict"
            and len(one.args) > 0
            and _key_of(one.args[0], variable) in keys
        ]
        body = code.body_of(stmt)
        beside = [
            one for one in map(code.statement, given) if one in body and code.start(one) > code.start(stmt)
        ]
        last = max(beside, key=code.start, default=stmt)
        if given:
            found.append((len({ast.unparse(one.args[0]) for one in given}), _Resumed(last, variable)))
    # What gives weights alone their place evaluates them.
    most = [one for count, one in found if count > 1]
    return most[0] if len(most) == 1 else None


def _key_of(item: ast.expr, variable: str) -> str | None:
    """The key under which a variable holds an item, or the dictionary that the item stands in."""
    key: object = None
    while isinstance(item, ast.Subscript):
        key = item.slice.value if isinstance(item.slice, ast.Constant) else None
        item = item.value
    return key if isinstance(key, str) and ast.unparse(item) == variable else None


class _Saved(NamedTuple):
    """A dictionary that is saved: the display or the call of ``dict`` that makes it, whether statements put further items
    into it, and the keys that are known."""

    made: ast.Dict | ast.Call
    grows: bool
    keys: frozenset[str]

    def with_entries(
        self, code: Code, call: ast.Call, entries: list[tuple[str, str]]
    ) -> tuple[Edit, ...] | None:
        """The edits that put further items into it before a call saves it."""
        if self.grows:
            variable = ast.unparse(call.args[0])
            lines = [f'{variable}["{key}"] = {value}' for key, value in entries]
            return changes.insert_before(code, code.statement(call), lines)
        if isinstance(self.made, ast.Call):
            return changes.append_argument(
                code, self.made, ", ".join(f"{key}={value}" for key, value in entries)
            )
        return _added(code, self.made, [f'"{key}": {value}' for key, value in entries])


def _dictionary(code: Code, call: ast.Call) -> _Saved | None:
    """The dictionary that is saved; None where it may be made in several ways."""
    value = call.args[0]
    if _makes_dictionary(value, code):
        return _Saved(value, False, frozenset(_keys_in(value)))
    if not isinstance(value, ast.Name):
        return None
    assigned = [
        (one, one.value)
        for one in ast.walk(code.scope(call))
        if isinstance(one, ast.Assign) and _names(one, value.id)
    ]
    # What stands before the call in the same block is what the variable holds there.
    stmt = code.statement(call)
    block = [one for one in code.body_of(stmt) if code.start(one) < code.start(stmt)]
    here = [made for one, made in assigned if one in block]
    made = here[-1] if here else assigned[0][1] if len(assigned) == 1 else None
    if made is None or not _makes_dictionary(made, code):
        return None
    steps = _steps(code, call)
    keys = {*_keys_in(made), *(key for _, several in steps for key in several)}
    return _Saved(made, bool(steps), frozenset(keys))


def _makes_dictionary(value: ast.expr, code: Code) -> TypeGuard[ast.Dict | ast.Call]:
    """Whether an expression makes a dictionary of keys that are written there."""
    if isinstance(value, ast.Dict):
        return True
    return (
        isinstance(value, ast.Call)
        and not value.args
        and bool(value.keywords)
        and code.qualified(value.func) in ("dict", "builtins.dict")
    )


def _names(stmt: ast.Assign, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in stmt.targets)


def _keys_in(value: ast.expr) -> Iterator[str]:
    """The keys that an expression for a dictionary writes."""
    if isinstance(value, ast.Dict):
        for key in value.keys:
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                yield key.value
    elif isinstance(value, ast.Call):
        yield from (one.arg for one in value.keywords if one.arg is not None)
        for one in value.args:
            yield from _keys_in(one)


def _steps(code: Code, call: ast.Call) -> list[tuple[ast.expr, list[str]]]:
    """What puts further items into the dictionary that is saved, with their keys as far as they are written."""
    name, found = ast.unparse(call.args[0]), list[tuple[ast.expr, list[str]]]()
    for node in ast.walk(code.scope(call)):
        if isinstance(node, ast.Subscript):
            if isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == name:
                key = node.slice.value if isinstance(node.slice, ast.Constant) else None
                found.append((node, [key] if isinstance(key, str) else []))
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            if node.func.attr == "update" and ast.unparse(node.func.value) == name:
                found.append((node, list(_keys_in(node))))
    return found


def _loads_weights_only(context: Context, finding: Finding, code: Code) -> bool:
    """Whether the file loads checkpoints and lets torch choose, which refuses everything but weights from 2.6."""
    if context.matches(finding, "torch", "<2.6"):
        return False
    for load in code.calls(("torch.load",)):
        value = changes.argument(load, "weights_only")
        if not isinstance(value, ast.Constant) or value.value is not False:
            return True
    # Checkpoints are often loaded by another module than the one that saves them.
    return context.others_contain(code.source.path, "torch.load", "weights_only=False")


def _loop_variable(code: Code, node: ast.AST) -> str:
    """The variable of the loop over epochs or steps around a node."""
    for above in code.ancestors(node):
        if isinstance(above, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            names = [a.arg for a in above.args.args if "epoch" in a.arg]
            return names[0] if names else ""
        if (
            isinstance(above, ast.For)
            and isinstance(above.target, ast.Name)
            and changes.is_counted(code, above)
        ):
            return above.target.id
    return ""


def _made(code: Code, call: ast.Call, part: str) -> str:
    """The variable that holds the scheduler or scaler: assigned from its constructor where the checkpoint sees it."""
    scopes = {code.scope(call), code.tree}
    names: set[str] = set()
    for node in _makings(code, part):
        target = node.targets[0]
        if isinstance(target, ast.Attribute) or (isinstance(target, ast.Name) and code.scope(node) in scopes):
            names.add(ast.unparse(target))
    return names.pop() if len(names) == 1 else ""


def _makings(code: Code, part: str) -> Iterator[ast.Assign]:
    """The statements that make schedulers or scalers."""
    for node in code.nodes:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name = code.qualified(node.value.func)
            if name.endswith("GradScaler") if part == "scaler" else ".lr_scheduler." in name:
                yield node


def _added(code: Code, saved: ast.Dict, entries: list[str]) -> tuple[Edit, ...]:
    """The edits that write entries behind those of a dictionary display, in its layout."""
    close = code.end(saved) - 1
    if not saved.values:
        return (Edit(close, close, ", ".join(entries)),)
    last = saved.values[-1]
    raw = code.source.raw
    tail = raw[code.end(last) : close]
    comma = code.end(last)
    position = comma
    found = False
    while position < close:
        if raw[position] == "#":
            position = code.line_end(position)
        elif raw[position] == ",":
            comma, found = position + 1, True
            position += 1
        else:
            if raw[position] == ")":
                comma = position + 1
            position += 1
    if "\n" not in tail and "\r" not in tail:
        text = ", ".join(entries)
        return (Edit(comma, comma, f" {text}" if found else f", {text}"),)
    key = saved.keys[-1] or last
    first = code.line_start(code.start(key))
    margin = raw[first : code.start(key)]
    indent = margin if not margin.strip() else " " * 4
    lines = "".join(f"\n{indent}{entry}," for entry in entries)
    end = code.line_end(comma)
    if found:
        return (Edit(end, end, lines),)
    if end == comma:
        return (Edit(comma, comma, f",{lines}"),)
    return (Edit(comma, comma, ","), Edit(end, end, lines))


def restored(context: Context, finding: Finding) -> Fix | None:
    """DET602: restore behind the load what this file saves, by the keys under which it is saved."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    stmt = code.statement(call)
    if not isinstance(stmt, ast.Assign) or len(stmt.targets) != 1 or stmt.value is not call:
        return None
    target = stmt.targets[0]
    if not isinstance(target, (ast.Name, ast.Attribute)):
        return None
    keys = _saved_keys(context, code)
    lines: list[str] = []
    imports: list[str] = []
    for rng in finding.remedy:
        if rng not in keys or rng not in STATES:
            return None
        _, module, _, restore = STATES[rng]
        name, needed = changes.module_name(code, module, call, code.start(code.top(call)))
        if needed and needed not in imports:
            imports.append(needed)
        lines.append(f"{name}.{restore.format(f'{ast.unparse(target)}[{keys[rng]!r}]')}".replace("'", '"'))
    block = changes.insert_after(code, stmt, lines) if lines else None
    if block is None:
        return None
    return made("restore the RNG states", changes.with_imports(code, sorted(imports), block))


def _saved_keys(context: Context, code: Code) -> dict[str, str]:
    """The keys under which RNG states stand in the dictionaries of a file."""
    pairs: list[tuple[ast.expr | None, ast.expr]] = []
    for node in code.nodes:
        if isinstance(node, ast.Dict):
            pairs += zip(node.keys, node.values, strict=True)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Subscript):
            pairs.append((node.targets[0].slice, node.value))
    found: dict[str, str] = {}
    for key, value in pairs:
        if isinstance(value, ast.Call) and isinstance(key, ast.Constant):
            rng = whole_state_given(context.known, context.known.canonical(code.qualified(value.func)))
            if rng and isinstance(key.value, str):
                found.setdefault(rng, key.value)
    return found


BUILDERS: dict[str, Callable[[Context, Finding], Fix | None]] = {"DET601": complete, "DET602": restored}
