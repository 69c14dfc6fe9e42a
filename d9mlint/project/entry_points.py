"""Entry points: the files and functions that a person or a launcher starts."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from d9mlint.base.paths import TESTS, boundary, is_inside, read_limited
from d9mlint.base.toml import load_toml
from d9mlint.ir import nodes as m
from d9mlint.ir.bodies import passing
from d9mlint.ir.scopes import own_names
from d9mlint.ir.traversal import nodes, variables
from d9mlint.knowledge import Knowledge
from d9mlint.project.frameworks import is_loaded_by_framework, is_looked_for
from d9mlint.project.modules import Found, ModuleFile, Modules

NOT_ENTRIES = frozenset(
    {"setup.py", "conftest.py", "noxfile.py", "versioneer.py", "__init__.py", "fabfile.py"}
)
TEST_LIBRARIES = frozenset(
    {
        "pytest",
        "unittest",
        "absl.testing",
        "nose",
        "hypothesis",
        "fastapi.testclient",
        "starlette.testclient",
        "flask.testing",
        "flask_testing",
        "django.test",
        "aiohttp.test_utils",
    }
)


class Entry(NamedTuple):
    """An entry point. ``function`` names the function a console script calls, else None; ``kind`` is
    ``main`` (a ``__main__`` guard), ``script``, ``console``, ``notebook``, ``package`` (``__main__.py``) or
    ``named`` (by the configuration)."""

    file: ModuleFile
    kind: str
    function: str | None = None


def find_entries(
    modules: Modules,
    imported: frozenset[str],
    layered: Sequence[Knowledge],
    named: Iterable[tuple[str, str]] = (),
) -> list[Entry]:
    """All entry points of a project, in path order; ``imported`` are the files that other files import, ``layered`` what
    each part of the project knows of frameworks, ``named`` the files that the configuration names, with the function to
    call."""
    entries: list[Entry] = []
    console: dict[str, list[str]] = {}
    for path, function in _console_scripts(modules):
        if function not in console.setdefault(path, []):
            console[path].append(function)
    wanted: dict[str, list[str]] = {}
    for path, function in named:
        wanted.setdefault(path, []).append(function)
    for file in passing(modules.files):
        if file.path in wanted and file.facts.problem is None:
            entries += [Entry(file, "named", function or None) for function in sorted(wanted[file.path])]
            continue
        if file.facts.problem is not None or is_test(file):
            continue
        name = os.path.basename(file.path)
        called = console.get(file.path, [])
        alone = [function for function in called if _only_calls(file, function)]
        if file.notebook:
            entries.append(Entry(file, "notebook"))
        elif name == "__main__.py":
            entries.append(Entry(file, "package"))
        elif name in NOT_ENTRIES:
            pass
        elif alone:
            # An installed command calls the same without the guard: what goes at its start has to be in the function.
            entries.append(Entry(file, "console", alone[0]))
        elif has_main_guard(file):
            entries.append(Entry(file, "main"))
        elif file.path not in imported and (
            _acts(file.facts.functions[0].body)
            or _computes(file)
            or runs_what_it_imports(modules, file)
            or any(is_loaded_by_framework(known, modules, file) for known in layered)
        ):
            entries.append(Entry(file, "script"))
        started = bool(entries) and entries[-1].file is file
        entries += [
            Entry(file, "console", function)
            for function in called
            if not started or (function not in alone and not _names(file, function))
        ]
    return entries


def has_main_guard(file: ModuleFile) -> bool:
    """Whether the module has ``if __name__ == "__main__":`` at its top level."""
    return any(isinstance(s, m.If) and is_main_test(s.test) for s in file.facts.functions[0].body)


def _only_calls(file: ModuleFile, function: str) -> bool:
    """Whether all that the module does when it is started is to call this without arguments, and perhaps exit with what
    it returns."""
    guards = [s.body for s in file.facts.functions[0].body if isinstance(s, m.If) and is_main_test(s.test)]
    return bool(guards) and all(len(body) == 1 and _is_call_of(body[0], function) for body in guards)


def _names(file: ModuleFile, function: str) -> bool:
    """Whether a module uses a function that it defines: what it does when it is started may call it."""
    return any(function in variables(one) for one in file.facts.functions if one.name != function)


def _is_call_of(stmt: m.Stmt, function: str) -> bool:
    value = stmt.value if isinstance(stmt, m.ExprStmt) else stmt.exc if isinstance(stmt, m.Raise) else None
    while isinstance(value, m.Call) and len(value.args) == 1 and _root_name(value.func) in _EXITS:
        value = value.args[0]
    return (
        isinstance(value, m.Call)
        and isinstance(value.func, m.Name)
        and value.func.id == function
        and not value.args
        and not value.keywords
    )


_EXITS = frozenset({"sys", "exit", "quit", "SystemExit"})
"""What a program ends by, and the module that has its name."""


def calls_its_own(file: ModuleFile) -> bool:
    """Whether all that the module does when it is started is one call of a function that it defines, as ``main()``."""
    guards = [s.body for s in file.facts.functions[0].body if isinstance(s, m.If) and is_main_test(s.test)]
    return bool(guards) and all(len(body) == 1 and _calls_own_function(file, body[0]) for body in guards)


def _calls_own_function(file: ModuleFile, stmt: m.Stmt) -> bool:
    """Whether a statement calls a function that the module defines at its top level, by its name."""
    functions = file.facts.functions
    called = stmt.value.func if isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call) else None
    return isinstance(called, m.Name) and any(
        isinstance(one, m.FunctionDef) and functions[one.function].name == called.id
        for one in functions[0].body
    )


def is_main_test(test: m.Expr) -> bool:
    """Whether an expression compares ``__name__`` with ``"__main__"``."""
    if isinstance(test, m.BoolOp):
        return is_main_test(test.left) or is_main_test(test.right)
    if not isinstance(test, m.Compare) or len(test.comparators) != 1:
        return False
    sides = (test.left, test.comparators[0])
    names = {s.id for s in sides if isinstance(s, m.Name)}
    return "__name__" in names and any(isinstance(s, m.Const) and s.value == "__main__" for s in sides)


def serves(file: ModuleFile) -> bool:
    """Whether a module makes something of a library or of the project and has it take functions and parts of the program:
    ``@app.get("/")``, ``app.include_router(router)``."""
    functions = file.facts.functions
    own = _known_by_name(file)
    made = {
        target.id
        for stmt in functions[0].body
        if isinstance(stmt, m.Assign)
        and isinstance(stmt.value, m.Call)
        and _root_name(stmt.value.func) in own
        for target in stmt.targets
        if isinstance(target, m.Name)
    }
    calls: list[m.Expr] = []
    for stmt in functions[0].body if made else ():
        if isinstance(stmt, m.FunctionDef):
            calls += functions[stmt.function].decorators
        elif isinstance(stmt, m.ExprStmt):
            calls.append(stmt.value)
    return any(isinstance(one, m.Call) and _root_name(one.func) in made for one in calls)


def is_test(file: ModuleFile) -> bool:
    """Test modules are run by a test runner; a library's own tests are no training programs."""
    for stmt in _imports(file.facts.functions[0].body):
        names = [a.name for a in stmt.names] if isinstance(stmt, m.Import) else [stmt.module]
        if any(name in TEST_LIBRARIES for name in names) and (
            TESTS.search(file.relative) or _uses(file, stmt)
        ):
            return True
    return _is_collected(file)


def _uses(file: ModuleFile, stmt: m.Import | m.ImportFrom) -> bool:
    """Whether a module reads what it imports, or has tests: editors put in imports that nothing needs, as of
    ``unittest.loader`` for a variable ``loader``."""
    if _has_tests(file):
        return True
    # A statement may import other modules too, as in `import sys, unittest`.
    names = {
        alias.asname or alias.name.partition(".")[0]
        for alias in stmt.names
        if isinstance(stmt, m.ImportFrom) or alias.name in TEST_LIBRARIES
    }
    names -= own_names(file.facts.functions[0])
    functions = file.facts.functions
    heads: list[Any] = []
    for function in functions:
        heads += [*function.decorators, *(param.default for param in function.params if param.default)]
    for cls in file.facts.classes:
        heads += [*cls.bases, *cls.decorators, *cls.body]
    if "*" in names or any(isinstance(x, m.Name) and x.id.partition(".")[0] in names for x in nodes(heads)):
        return True
    readers = [
        one
        for one in functions
        if any(name in variables(one) and not _is_own(functions, one, name) for name in names)
    ]
    if not _is_started(file):
        return bool(readers)
    # A program may have a command that looks for the tests of its project.
    return any(one is functions[0] or _runs_own_tests(one, stmt, names) for one in readers)


def _is_started(file: ModuleFile) -> bool:
    return os.path.basename(file.path) == "__main__.py" or has_main_guard(file)


def _runs_own_tests(function: m.Function, stmt: m.Import | m.ImportFrom, names: set[str]) -> bool:
    """Whether a function calls the ``main`` of a library for tests, which runs those of its module: ``unittest.main()``,
    or ``main()`` where that is imported."""
    mains = {alias.asname or alias.name for alias in stmt.names if alias.name == "main"}
    return any(
        isinstance(one, m.Call)
        and isinstance(one.func, m.Name)
        and (one.func.id in mains or (one.func.id.endswith(".main") and _root_name(one.func) in names))
        for one in nodes(function.body)
    )


def _is_own(functions: list[m.Function], function: m.Function, name: str) -> bool:
    """Whether a name is that of a variable of a function, or of one around it, but the module."""
    while function.parent >= 0:
        if name in own_names(function):
            return True
        function = functions[function.parent]
    return False


_COLLECTED = re.compile(r"test_.*\.py|.*_test\.py")
"""The names of files in which pytest looks for tests."""


def _is_collected(file: ModuleFile) -> bool:
    """Whether a file has tests that pytest finds by their names and that nothing in the file calls."""
    if not _COLLECTED.fullmatch(os.path.basename(file.path)) or has_main_guard(file):
        return False
    return _has_tests(file)


def _has_tests(file: ModuleFile) -> bool:
    """Whether a file has functions with names of tests, which nothing at its top level calls."""
    functions = file.facts.functions
    tests = {fn.name for fn in functions if fn.parent <= 0 and fn.cls < 0 and fn.name.startswith("test_")}
    called = {
        one.func.id
        for one in nodes(functions[0].body)
        if isinstance(one, m.Call) and isinstance(one.func, m.Name)
    }
    return bool(tests) and tests.isdisjoint(called)


def _imports(body: list[m.Stmt]) -> Iterator[m.Import | m.ImportFrom]:
    for stmt in body:
        if isinstance(stmt, (m.Import, m.ImportFrom)):
            yield stmt
        elif isinstance(stmt, m.If):
            yield from _imports(stmt.body)
            yield from _imports(stmt.orelse)
        elif isinstance(stmt, m.Try):
            yield from _imports(stmt.body)
            for handler in stmt.handlers:
                yield from _imports(handler.body)


def imported_files(modules: Modules, layered: Sequence[Knowledge]) -> frozenset[str]:
    """Paths of the files that some other file imports at its top level or in a function.

    Scripts that import each other and that nothing else imports are started all the same: they are not among them.
    In a package, such a cycle is how its modules belong together. Nor is a file among them that frameworks find in its
    package, by what a part of the project knows of them (``layered``).
    """
    imports = {file.path: imports_of(modules, file) for file in passing(modules.files)}
    # What a test has of a server is started without it.
    found = frozenset(
        path
        for importer, targets in imports.items()
        for path in targets
        if not (is_test(modules.by_path[importer]) and serves(modules.by_path[path]))
    )
    for cycle in components(imports):
        if len(cycle) == 1:
            continue
        package = any(os.path.basename(path) == "__init__.py" for path in cycle)
        if not package and not any(targets & cycle for path, targets in imports.items() if path not in cycle):
            found -= cycle
    return found - {
        path
        for path in found
        if any(is_looked_for(known, modules, modules.by_path[path], imports) for known in layered)
    }


def used_files(modules: Modules) -> frozenset[str]:
    """Paths of the files that some other file imports which is no test: what only tests import may be a program all the
    same, as without them."""
    used: set[str] = set()
    for file in passing(modules.files):
        more = imports_of(modules, file) - used
        if more and not TESTS.search(file.relative) and not is_test(file):
            used |= more
    return frozenset(used)


def imports_of(modules: Modules, file: ModuleFile, *, top_level: bool = False) -> frozenset[str]:
    """Paths of the other files that a file imports, in its functions too or at its ``top_level`` alone."""
    known = modules.imports.get(file.path)
    if known is None:
        by_function = [
            frozenset(path for stmt in _imports(function.body) for path in _imported_by(modules, file, stmt))
            if function.imports
            else frozenset[str]()
            for function in file.facts.functions
        ]
        # A file that cannot be parsed has no functions, and no module body.
        known = modules.imports[file.path] = (
            frozenset().union(*by_function[:1]),
            frozenset().union(*by_function),
        )
    return known[0 if top_level else 1]


def _imported_by(modules: Modules, file: ModuleFile, stmt: m.Import | m.ImportFrom) -> Iterator[str]:
    """Paths of the other files that a statement imports."""
    targets: list[Found | None]
    if isinstance(stmt, m.Import):
        targets = [modules.absolute(file, "", a.name) for a in stmt.names]
    else:
        look_up = (
            partial(modules.relative, file, stmt.level) if stmt.level else partial(modules.absolute, file, "")
        )
        found = look_up(stmt.module)
        targets = [found]
        if found is not None and (found.file is None or found.file.is_package):
            # What a module that is no package offers is no file.
            parts = ((a.name, look_up(".".join(filter(None, (stmt.module, a.name))))) for a in stmt.names)
            # The case of letters counts here: a class often has the name of its module.
            targets += [one for name, one in parts if one is not None and one.directory.endswith(f"/{name}")]
    for target in targets:
        if target is not None and target.file is not None and target.file is not file:
            yield target.file.path


def components(imports: Mapping[str, frozenset[str]]) -> Iterator[frozenset[str]]:
    """The largest sets of files that import each other, directly or through others, single files too; each behind those
    that it imports (Tarjan's algorithm, without recursion: chains of imports may be long)."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_: dict[str, None] = {}
    for start in imports:
        if start in numbers:
            continue
        pending = [(start, iter(sorted(imports[start])))]
        numbers[start] = lowest[start] = len(numbers)
        open_[start] = None
        while pending:
            path, targets = pending[-1]
            target = next(targets, None)
            if target is None:
                pending.pop()
                if pending:
                    lowest[pending[-1][0]] = min(lowest[pending[-1][0]], lowest[path])
                if lowest[path] == numbers[path]:
                    cycle = {open_.popitem()[0]}
                    while path not in cycle:
                        cycle.add(open_.popitem()[0])
                    yield frozenset(cycle)
            elif target not in numbers:
                numbers[target] = lowest[target] = len(numbers)
                open_[target] = None
                pending.append((target, iter(sorted(imports[target]))))
            elif target in open_:
                lowest[path] = min(lowest[path], numbers[target])


def _acts(body: list[m.Stmt]) -> bool:
    """Whether a module body does something when run: loops, calls for their effect, contexts."""
    for stmt in body:
        if isinstance(stmt, (m.For, m.While, m.With)):
            return True
        if isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call):
            return True
        if isinstance(stmt, m.If) and (_acts(stmt.body) or _acts(stmt.orelse)):
            return True
        if isinstance(stmt, m.Try) and any(map(_acts, (stmt.body, stmt.orelse, stmt.final))):
            return True
        if isinstance(stmt, m.Match) and any(_acts(case.body) for case in stmt.cases):
            return True
    return False


def runs_what_it_imports(modules: Modules, file: ModuleFile) -> bool:
    """Whether all that a module does is to import others, of which one calls a function that it defines, outside of a guard:
    ``import train`` runs ``main()`` of it then."""
    body = file.facts.functions[0].body
    if not all(isinstance(stmt, (m.Import, m.ImportFrom)) or _is_text(stmt) for stmt in body):
        return False
    imported = (modules.by_path[path] for path in imports_of(modules, file, top_level=True))
    return any(
        one.facts.problem is None
        and not is_test(one)
        and not one.is_package
        and any(_calls_own_function(one, stmt) for stmt in one.facts.functions[0].body)
        for one in imported
    )


def _is_text(stmt: m.Stmt) -> bool:
    return isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Const)


def _computes(file: ModuleFile) -> bool:
    """Whether a module body keeps what code of the project, or of a library outside of Python's own, gives it:
    such a file is run for that. Constants, paths, loggers and type variables make no program."""
    body = file.facts.functions[0].body
    own = _known_by_name(file)
    if not own:
        return False
    classes = [c.body for c in file.facts.classes if c.parent <= 0]
    defaults = [p.default for fn in file.facts.functions for p in fn.params if fn.parent <= 0 and p.default]
    return any(_calls(stmt, own) for part in (body, *classes) for stmt in part) or _called(defaults, own)


def _known_by_name(file: ModuleFile) -> set[str]:
    """What a module defines, or imports from the project or from a library outside of Python's own."""
    own = {fn.name for fn in file.facts.functions if fn.parent <= 0} | {c.name for c in file.facts.classes}
    for stmt in _imports(file.facts.functions[0].body):
        if isinstance(stmt, m.ImportFrom):
            if stmt.level or stmt.module.partition(".")[0] not in _PLAIN_MODULES:
                own |= {alias.asname or alias.name for alias in stmt.names}
        else:
            own |= {
                alias.asname or alias.name.partition(".")[0]
                for alias in stmt.names
                if alias.name.partition(".")[0] not in _PLAIN_MODULES
            }
    return own


_PLAIN_MODULES = sys.stdlib_module_names - {"random", "secrets"}


def _calls(stmt: m.Stmt, names: set[str]) -> bool:
    """Whether a statement that runs with its module calls something of these names, and keeps the result."""
    if isinstance(stmt, (m.If, m.Try)):
        return any(_calls(one, names) for one in (*stmt.body, *stmt.orelse))
    if not isinstance(stmt, (m.Assign, m.AnnAssign, m.AugAssign)) or stmt.value is None:
        return False
    return _called([stmt.value], names)


def _called(values: Iterable[m.Expr], names: set[str]) -> bool:
    return any(isinstance(node, m.Call) and _root_name(node.func) in names for node in nodes(list(values)))


def _root_name(node: m.Expr) -> str:
    while isinstance(node, (m.Attr, m.Subscript, m.Call)):
        node = node.func if isinstance(node, m.Call) else node.value
    return node.id.partition(".")[0] if isinstance(node, m.Name) else ""


_SCRIPT = re.compile(r"""["']?[\w.-]+["']?\s*=\s*["']?([\w.]+):(\w+)""")


def _console_scripts(modules: Modules) -> Iterator[tuple[str, str]]:
    """(file path, function) of the console scripts that the project's packaging declares."""
    for name in ("pyproject.toml", "setup.cfg", "setup.py"):
        path = os.path.join(modules.root, name)
        try:
            if not is_inside(path, boundary(modules.root)):
                continue
            text = read_limited(path).decode("utf-8", "replace")
        except OSError:
            continue
        for module, function in _declared(name, text):
            parts = module.split(".")
            for base in (modules.root, modules.root + "/src"):
                found = modules.at(base, parts)
                if found is not None and found.file is not None:
                    yield found.file.path, function
                    break


def is_built(modules: Modules, file: ModuleFile) -> bool:
    """Whether a file is part of a package that is installed for others: the packaging beside it names or finds it."""
    root = modules.package_root(file.directory)
    package = file.directory[len(root) :].strip("/").partition("/")[0]
    if package in ("", "src"):
        return False
    for text in _packaging(modules, root):
        named = _distributed(package) in map(_distributed, _quoted(text))
        if named or b"find_packages" in text or b"packages.find" in text or b"find:" in text:
            return True
    return False


def may_be_built(modules: Modules, file: ModuleFile) -> bool:
    """Whether a file is part of a package, and packaging beside that builds something."""
    root = modules.package_root(file.directory)
    return root != file.directory and any(_packaging(modules, root))


def _packaging(modules: Modules, root: str) -> Iterator[bytes]:
    """The files of packaging beside the packages of a directory that build something."""
    above = [os.path.dirname(root)] if os.path.basename(root) == "src" else []
    for place in (root, *above):
        for name, mark in _BUILT:
            path = os.path.join(place, name)
            try:
                text = read_limited(path) if is_inside(path, boundary(modules.root)) else b""
            except OSError:
                continue
            if mark in text:
                yield text


_BUILT = (("pyproject.toml", b"[build-system]"), ("setup.cfg", b"[metadata]"), ("setup.py", b"setup("))
_TEXT = re.compile(r"""["'=]\s*(?:[\w.-]*/)*([\w.-]+)\s*(?:["']|$)""", re.MULTILINE)


def _quoted(text: bytes) -> list[str]:
    return _TEXT.findall(text.decode("utf-8", "replace"))


def _distributed(name: str) -> str:
    """A name as packages are found by it."""
    return name.lower().replace("-", "_").replace(".", "_")


def _declared(name: str, text: str) -> list[tuple[str, str]]:
    if name == "pyproject.toml":
        data = _toml(text)
        tables: list[Any] = [
            data.get("project", {}).get("scripts", {}),
            data.get("tool", {}).get("poetry", {}).get("scripts", {}),
        ]
        values = [
            x for table in tables if isinstance(table, dict) for x in table.values() if isinstance(x, str)
        ]
        return [(x.partition(":")[0], x.partition(":")[2].partition(".")[0]) for x in values if ":" in x]
    where = text.find("console_scripts")
    return _SCRIPT.findall(text[where : where + 5000]) if where >= 0 else []


def _toml(text: str) -> dict[str, Any]:
    try:
        return load_toml(text)
    except (ValueError, RecursionError):
        return {}
