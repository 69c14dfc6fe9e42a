"""How the packages depend on one another. The directions are the design's; a break is a design decision, not a typo."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import d9mlint
from d9mlint import knowledge
from d9mlint.checks.registry import all_rules

ROOT = Path(d9mlint.__file__).parent

MAY_IMPORT: dict[str, frozenset[str]] = {
    name: frozenset(allowed.split())
    for name, allowed in {
        "base": "",
        "ir": "base",
        "frontend": "base ir",
        "knowledge": "base",
        "config": "base knowledge",
        "project": "base ir config knowledge",
        "interp": "base ir config knowledge project",
        "checks": "base ir config knowledge project interp",
        "store": "base ir frontend knowledge config",
        "evidence": "base knowledge",
        "filters": "base",
        "fix": "base ir knowledge config",
        "report": "base config knowledge evidence filters",
        "verify": "base knowledge evidence",
        "trace": "base verify",
        # One function of the whole static half, and what is built on it.
        "analysis": "base ir config knowledge project interp checks store",
        "pipeline": "base ir config knowledge project interp checks store evidence filters fix analysis",
        "explain": "base ir config knowledge project interp checks store analysis pipeline",
        "fix_rounds": "base knowledge fix filters report pipeline",
        "cli": "*",
        "server": "*",
        "api": "*",
    }.items()
}
"""By package or top-level module, what it may import at run time. ``*`` is the outside, which sees everything."""

MAY_MENTION = {
    # Type hints alone: what `pipeline.check` and `explain` return is rendered.
    "evidence": {"pipeline"},
    "report": {"pipeline", "explain", "interp"},
    "filters": {"ir", "knowledge"},
}
"""What a package may import besides for type hints."""

STILL_IMPORTED: set[tuple[str, str]] = set()
"""Directions that are still broken. None may be added."""

STILL_CYCLES: set[tuple[str, ...]] = set()
"""Modules that import one another, through imports in functions. None may be added."""

STILL_PRIVATE: set[tuple[str, str]] = set()
"""Private names of other packages that are still used. None may be added."""

STILL_UNTYPED: set[str] = set()
"""Modules with shared state that has no types. None may be added."""


class Imported(NamedTuple):
    """An import of one of our modules by another: at run time or for type hints alone."""

    module: str
    hint: bool


@cache
def _modules() -> dict[str, ast.Module]:
    found = {}
    for path in sorted(ROOT.rglob("*.py")):
        parts = path.relative_to(ROOT).with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def _file(module: str) -> str:
    path = ROOT / Path(*module.split("."))
    return (path / "__init__.py" if path.is_dir() else path.with_suffix(".py")).relative_to(ROOT).as_posix()


def _imports(tree: ast.AST, hint: bool = False) -> Iterator[Imported]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for one in node.body:
                yield from _imports(ast.Module([one], []), True)
            for one in node.orelse:
                yield from _imports(ast.Module([one], []), hint)
            continue
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "d9mlint":
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "d9mlint"]
        for name in names:
            parts = name.split(".")[1:]
            while parts and ".".join(parts) not in _modules():
                parts.pop()
            if parts:
                yield Imported(".".join(parts), hint)
        yield from _imports(node, hint)


def _package(module: str) -> str:
    return "cli" if module.endswith("__main__") else module.split(".")[0]


def _edges(hint: bool) -> set[tuple[str, str]]:
    return {
        (module, one.module)
        for module, tree in _modules().items()
        for one in _imports(tree)
        if one.hint is hint and one.module != module and one.module != "__init__"
    }


def _crossing(hint: bool) -> dict[tuple[str, str], list[str]]:
    """Imports of another package that its table does not allow, with the modules that make them."""
    found: dict[tuple[str, str], list[str]] = {}
    for module, other in sorted(_edges(hint)):
        source, target = _package(module), _package(other)
        allowed = MAY_IMPORT.get(source, frozenset())
        if source != target and "*" not in allowed and target not in allowed:
            found.setdefault((source, target), []).append(f"{module} imports {other}")
    return found


def test_every_package_has_its_place_in_the_table() -> None:
    assert {_package(module) for module in _modules()} - {"__init__"} <= set(MAY_IMPORT)


def test_the_table_itself_has_no_cycle() -> None:
    left = {name: set(allowed) for name, allowed in MAY_IMPORT.items() if "*" not in allowed}
    while left:
        free = {name for name, allowed in left.items() if not allowed & left.keys()}
        assert free, f"these packages may import one another: {sorted(left)}"
        for name in free:
            del left[name]


def test_packages_import_in_one_direction() -> None:
    crossing = _crossing(hint=False)
    assert {key: who for key, who in crossing.items() if key not in STILL_IMPORTED} == {}
    assert crossing.keys() >= STILL_IMPORTED, "mended: take it out of the list"


def test_type_hints_follow_the_same_direction() -> None:
    crossing = _crossing(hint=True)
    assert {k: who for k, who in crossing.items() if k[1] not in MAY_MENTION.get(k[0], ())} == {}


def _cycles(edges: set[tuple[str, str]]) -> set[tuple[str, ...]]:
    """Groups of modules that reach one another."""
    after: dict[str, set[str]] = {}
    for source, target in edges:
        after.setdefault(source, set()).add(target)

    def reached(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            for one in after.get(waiting.pop(), ()):
                if one not in seen:
                    seen.add(one)
                    waiting.append(one)
        return seen

    reach = {module: reached(module) for module in after}
    return {
        tuple(sorted(other for other in seen if module in reach.get(other, ())))
        for module, seen in reach.items()
        if module in seen
    }


def test_no_modules_import_one_another() -> None:
    """Imports in functions count: they hide a cycle, they do not take it away."""
    cycles = _cycles(_edges(hint=False))
    assert cycles - STILL_CYCLES == set()
    assert cycles >= STILL_CYCLES, "mended: take it out of the list"


def test_no_private_access_across_packages() -> None:
    """A name with a leading underscore belongs to the package that makes it."""
    made: dict[str, set[str]] = {}
    used: set[tuple[str, str, str]] = set()
    for module, tree in _modules().items():
        own = made.setdefault(_package(module), set())
        for node in ast.walk(tree):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                own.add(node.name)
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                own.add(node.id)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                own.add(node.value)  # a name in __slots__
            elif isinstance(node, ast.Attribute) and _is_private(node.attr):
                if isinstance(node.ctx, ast.Store):
                    own.add(node.attr)
                if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
                    used.add((_package(module), _file(module), node.attr))
            elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("d9mlint"):
                imported = {alias.name for alias in node.names if _is_private(alias.name)}
                used |= {(_package(module), _file(module), name) for name in imported}
    foreign = {
        (file, name)
        for package, file, name in used
        if name not in made[package]
        and any(name in names for other, names in made.items() if _may_see(package, other))
        and name not in _OF_LIBRARIES
    }
    assert foreign - STILL_PRIVATE == set()
    assert foreign >= STILL_PRIVATE, "mended: take it out of the list"


_OF_LIBRARIES = {"_replace", "_asdict", "_fields", "_make", "_exit"}
"""Public methods of named tuples and of ``os`` whose names begin with an underscore."""


def _may_see(package: str, other: str) -> bool:
    allowed = MAY_IMPORT.get(package, frozenset())
    return package != other and ("*" in allowed or other in allowed)


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def test_no_untyped_state_is_shared() -> None:
    """An attribute of type ``dict[Any, Any]`` of an object of the analysis says nothing about what it holds."""
    found = set()
    for module, tree in _modules().items():
        if _package(module) not in ("interp", "checks", "analysis", "pipeline"):
            continue
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found |= {_file(module) for base in node.bases if ast.unparse(base) == "dict[Any, Any]"}
            elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "dict[Any, Any]":
                if isinstance(node.target, ast.Attribute) and not node.target.attr.startswith("_"):
                    found.add(_file(module))
    assert found - STILL_UNTYPED == set()
    assert found >= STILL_UNTYPED, "mended: take it out of the list"


def test_rules_see_a_run_and_do_not_change_it() -> None:
    """Rules get a ``RunView``, whose attributes cannot be set; the interpreter itself is not for them."""
    changed = set()
    for module, tree in _modules().items():
        if _package(module) != "checks" or module == "checks.registry":
            continue
        for node in ast.walk(tree):
            names = {alias.name for alias in node.names} if isinstance(node, ast.ImportFrom) else set()
            changed |= {f"{module} imports {name}" for name in names & {"Interp", "HEAP"}}
            for target in _targets(node):
                text = ast.unparse(target)
                if "run." in text and text != "self.run":
                    changed.add(f"{module} sets {text}")
    assert changed == set()


def _targets(node: ast.AST) -> list[ast.expr]:
    """What a statement assigns to, attributes and items alone."""
    found: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        found = node.targets
    elif isinstance(node, (ast.AugAssign, ast.AnnAssign)):
        found = [node.target]
    elif isinstance(node, ast.Delete):
        found = node.targets
    return [one for one in found if isinstance(one, (ast.Attribute, ast.Subscript))]


def test_only_the_frontend_imports_libcst() -> None:
    users = {
        module
        for module, tree in _modules().items()
        for node in ast.walk(tree)
        if (isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "libcst")
        or (isinstance(node, ast.Import) and any(a.name.split(".")[0] == "libcst" for a in node.names))
    }
    assert {_package(module) for module in users} == {"frontend"}


def test_a_module_holds_one_rule_in_the_package_of_its_family() -> None:
    pages = knowledge.load().rules
    modules: dict[str, str] = {}
    for rule in all_rules():
        assert rule.__module__ not in modules, (
            f"{rule.__module__} has {modules[rule.__module__]} and {rule.__name__}"
        )
        modules[rule.__module__] = rule.__name__
        families = {pages[code].family for code in rule.codes}
        package = rule.__module__.split(".")[2]
        assert not families or package in families, f"{rule.__module__} is of {', '.join(families)}"


def test_no_module_gives_a_name_two_meanings() -> None:
    found: list[str] = []
    for path in sorted(ROOT.rglob("*.py")):
        seen: set[str] = set()
        for stmt in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(stmt, ast.FunctionDef | ast.ClassDef):
                names = [stmt.name]
            else:
                targets = stmt.targets if isinstance(stmt, ast.Assign) else []
                targets += [stmt.target] if isinstance(stmt, ast.AnnAssign) else []
                names = [one.id for one in targets if isinstance(one, ast.Name)]
            found += [f"{path.relative_to(ROOT)}: {name}" for name in names if name in seen]
            seen.update(names)
    assert found == []
