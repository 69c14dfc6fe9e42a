"""Files and module names: which project file an import means.

Python decides by ``sys.path``, which depends on how a program is started. Searched here, in this order:
the directory above the importing file's outermost package, the importing file's own directory, the
directory of the entry point, the project root, its ``src`` and ``lib`` directories, and the directories
between the file and the root; then in those that the program itself adds to ``sys.path``.
"""

from __future__ import annotations

import posixpath
import sys
from collections.abc import Sequence
from typing import NamedTuple

from d9mlint.base.files import is_below
from d9mlint.ir import nodes as m
from d9mlint.ir.nodes import FileFacts, Function
from d9mlint.ir.traversal import nodes, statements

_BIND_ANY_NAME = frozenset({"globals", "exec", "__getattr__"})
"""Words of modules that may have names that are not written in them."""


class ModuleFile:
    """A file of the project. ``path`` is absolute, ``relative`` below the root, both with slashes."""

    __slots__ = (
        "directory",
        "facts",
        "is_package",
        "notebook",
        "path",
        "relative",
        "statements",
        "stem",
    )

    def __init__(self, path: str, relative: str, facts: FileFacts) -> None:
        self.path = path
        self.relative = relative
        self.facts = facts
        self.directory = posixpath.dirname(path)
        name = posixpath.basename(path)
        self.stem = name.rpartition(".")[0] or name
        self.is_package = name == "__init__.py"
        self.notebook = name.endswith(".ipynb")
        # Statements of each function, counted when they are first asked for.
        self.statements: list[int] = []

    def index_of(self, function: Function) -> int:
        """The place of a function among the functions of the file's facts, which keep it alive."""
        return self.facts.indices[id(function)]

    def defines(self, names: Sequence[str]) -> bool:
        """Whether the statements of the module itself bind these names, as far as they are written in it."""
        facts = self.facts
        if facts.problem is not None:
            # A file that cannot be parsed has no functions, and no module body.
            return False
        bound = {one.name for one in facts.functions if one.parent == 0 and one.cls < 0}
        bound |= {one.name for one in facts.classes if one.parent == 0 and one.cls < 0}
        for stmt in facts.functions[0].body:
            if isinstance(stmt, m.Assign):
                bound.update(one.id for one in nodes(stmt.targets) if isinstance(one, m.Name))
        return bool(names) and bound.issuperset(names)

    def lacks(self, names: Sequence[str]) -> bool:
        """Whether one of these names surely cannot be imported from the module: it does not occur in the file."""
        facts = self.facts
        if facts.problem is not None:
            return False
        known = {*facts.words, *(one.name for one in facts.functions), *(one.name for one in facts.classes)}
        if not known.isdisjoint(_BIND_ANY_NAME):
            return False
        stars = any(
            isinstance(stmt, m.ImportFrom) and any(alias.name == "*" for alias in stmt.names)
            for stmt in statements(facts.functions[0].body)
        )
        return not stars and not known.issuperset(names)

    def __repr__(self) -> str:
        return f"ModuleFile({self.relative})"


class Found(NamedTuple):
    """An import's target: a file, or the directory of a namespace package (file None)."""

    file: ModuleFile | None
    directory: str


class Modules:
    """All project files and the resolution of imports among them."""

    def __init__(
        self, files: Sequence[ModuleFile], root: str, libraries: frozenset[str] = frozenset()
    ) -> None:
        self.root = root
        # Libraries that are known or that the project asks for, by the first part of their names.
        self.libraries = libraries | sys.stdlib_module_names
        self.files = sorted(files, key=lambda f: f.path)
        self.by_path = {f.path: f for f in self.files}
        self.directories: set[str] = set()
        for file in self.files:
            if file.notebook:
                continue
            directory = file.directory
            while directory not in self.directories:
                self.directories.add(directory)
                parent = posixpath.dirname(directory)
                if parent == directory or directory == root:
                    break
                directory = parent
        self._by_name: dict[str, list[ModuleFile]] | None = None
        self._lower_case: dict[str, list[ModuleFile]] | None = None
        self._package_roots: dict[str, str] = {}
        self._roots: dict[tuple[str, str, bool], tuple[str, ...]] = {}
        self._found: dict[tuple[str, str, str], Found | None] = {}
        # Folders whose packages the packaging beside them installs.
        self._packaged = [
            file.directory for file in self.files if posixpath.basename(file.path) == "setup.py"
        ]
        # Paths of the other files that a file imports at its top level, and anywhere (see ``entry_points.imports_of``).
        self.imports: dict[str, tuple[frozenset[str], frozenset[str]]] = {}

    def name_of(self, file: ModuleFile) -> str:
        """The name by which a file is imported from the directory above its outermost package."""
        base = self.package_root(file.directory)
        relative = file.path[len(base) + 1 :]
        name = relative.rpartition(".")[0].replace("/", ".")
        return name.removesuffix(".__init__")

    def package_root(self, directory: str) -> str:
        """The first directory upwards that is no package."""
        root = self._package_roots.get(directory)
        if root is None:
            parent = posixpath.dirname(directory)
            inside = parent != directory and self._is_package(directory)
            root = self._package_roots[directory] = self.package_root(parent) if inside else directory
        return root

    def _is_package(self, directory: str) -> bool:
        return posixpath.join(directory, "__init__.py") in self.by_path

    def search_path(self, directory: str, entry_directory: str, library: bool = False) -> tuple[str, ...]:
        """Directories in which a top-level name is looked for by a file in ``directory``.

        The directories above it are on the path only if the program puts them there: the name of a
        ``library`` is not looked for in them, nor in packages, unless the program is started in one."""
        key = (directory, entry_directory, library)
        known = self._roots.get(key)
        if known is not None:
            return known
        roots = [entry_directory or directory, self.package_root(directory), directory]
        roots += [self.root, posixpath.join(self.root, "src"), posixpath.join(self.root, "lib")]
        above = directory
        if not library:
            # The layout of a project that has this folder alone.
            roots.append(posixpath.join(directory, "src"))
        while not library and is_below(above, self.root) and above != self.root:
            above = posixpath.dirname(above)
            roots += [above, posixpath.join(above, "src")]
        if library:
            roots = [one for one in roots if one == entry_directory or not self._is_package(one)]
        result = tuple(dict.fromkeys(roots))
        self._roots[key] = result
        return result

    def at(self, base: str, parts: Sequence[str]) -> Found | None:
        """The module or package ``parts`` below the directory ``base``."""
        target = posixpath.join(base, *parts) if parts else base
        init = self.by_path.get(posixpath.join(target, "__init__.py"))
        if init is not None:
            return Found(init, target)
        module = self.by_path.get(target + ".py")
        if module is not None:
            return Found(module, target)
        if target in self.directories and parts:
            return Found(None, target)
        return None

    def in_other_case(self, base: str, parts: Sequence[str]) -> Found | None:
        """The one file below a directory whose name is that of a module but for the case of its letters. Python never
        takes it; version control on a file system that ignores case keeps such a name where a file is renamed."""
        found = self._by_lower_case().get(posixpath.join(base, *parts).lower(), [])
        found = [file for file in found if is_below(file.path, base)]
        return self.found(found[0]) if parts and len(found) == 1 else None

    def _by_lower_case(self) -> dict[str, list[ModuleFile]]:
        """The modules by their paths in lower case, without the ending."""
        if self._lower_case is None:
            self._lower_case = {}
            for file in self.files:
                if not file.notebook:
                    self._lower_case.setdefault(self.found(file).directory.lower(), []).append(file)
        return self._lower_case

    def absolute(self, file: ModuleFile, entry_directory: str, name: str) -> Found | None:
        """The project module that ``import name`` means in ``file``; None for a library."""
        return self.absolute_in(file.directory, entry_directory, name)

    def absolute_in(self, directory: str, entry_directory: str, name: str) -> Found | None:
        """The project module that ``import name`` means in a file of ``directory``; None for a library."""
        key = (directory, entry_directory, name)
        if key in self._found:
            return self._found[key]
        parts = name.split(".")
        result: Found | None = None
        bases = [
            one
            for one in self.search_path(directory, entry_directory, parts[0] in self.libraries)
            if one == entry_directory or not self._is_own_package(one, parts[0], directory)
        ]
        for base in bases:
            found = self.at(base, parts)
            if found is not None and found.file is not None:
                result = found
                break
            if found is not None and result is None:
                result = found
        if result is None and len(parts) > 1 and parts[0] not in self.libraries:
            # One name alone may be that of a library.
            result = next(filter(None, (self.in_other_case(base, parts) for base in bases)), None)
        if result is None and len(parts) > 1 and self.root not in bases:
            # A file of just this name is meant, also where the project is a package itself.
            found = self.at(self.root, parts)
            result = found if found is not None and found.file is not None else None
        if result is None and parts[0] not in self.libraries:
            result = self._installed(parts)
        self._found[key] = result
        return result

    def _installed(self, parts: Sequence[str]) -> Found | None:
        """The one module of this name in a package that is installed from a folder of the project."""
        bases = (one for root in self._packaged for one in (root, posixpath.join(root, "src")))
        packages = (base for base in bases if self._is_package(posixpath.join(base, parts[0])))
        found = [one for one in (self.at(base, parts) for base in packages) if one is not None and one.file]
        return found[0] if len(found) == 1 else None

    def _is_own_package(self, base: str, name: str, directory: str) -> bool:
        """Whether a file of ``directory`` lies in the package of this name, which has a longer one, as ``loggers.clearml``:
        the library is meant for which the package is."""
        return self._is_package(base) and is_below(directory, posixpath.join(base, name))

    def anywhere(self, name: str, directory: str = "") -> Found | None:
        """The one file in the tree that an import in a file of ``directory`` may mean by its name, wherever it is: for
        programs that extend ``sys.path`` when they run, or are started with a ``PYTHONPATH``."""
        top, found = name.partition(".")[0], self.named(name)
        found = [
            file
            for file in found
            if not self._is_own_package(_above(file, name.count(".") + 1), top, directory)
        ]
        if len(found) > 1:
            # What lies in a package is imported by the name of that.
            parts = name.count(".") + 1
            found = [file for file in found if not self._is_package(_above(file, parts))]
        if len(found) != 1:
            return None
        return self.found(found[0])

    def anywhere_in_other_case(self, name: str) -> Found | None:
        """The one file in the tree whose name is this, which is no library's, but for the case of its letters."""
        if name in self.libraries:
            return None
        end = "/" + name.lower()
        found = [file for path, some in self._by_lower_case().items() if path.endswith(end) for file in some]
        return self.found(found[0]) if len(found) == 1 else None

    def found(self, file: ModuleFile) -> Found:
        """A file as the target of an import."""
        return Found(file, file.directory if file.is_package else file.path.removesuffix(".py"))

    def named(self, name: str) -> list[ModuleFile]:
        """The files in the tree whose paths end like the name of a module that is no library."""
        return [] if name.partition(".")[0] in self.libraries else self._ending_in(name)

    def directories_with(self, name: str) -> dict[str, Found]:
        """The directories in which a module of this name lies, whether or not a library has it too."""
        count = name.count(".") + 1
        return {_above(file, count): self.found(file) for file in self._ending_in(name)}

    def _ending_in(self, name: str) -> list[ModuleFile]:
        """The files in the tree whose paths end like the name of a module."""
        parts = name.split(".")
        if self._by_name is None:
            self._by_name = {}
            for file in self.files:
                own = posixpath.basename(file.directory) if file.is_package else file.stem
                if not file.notebook:
                    self._by_name.setdefault(own, []).append(file)
        tails = ("/" + "/".join(parts) + ".py", "/" + "/".join(parts) + "/__init__.py")
        return [file for file in self._by_name.get(parts[-1], ()) if file.path.endswith(tails)]

    def is_library(self, name: str) -> bool:
        """Whether an absolute import of this name means a library where only a directory without
        ``__init__.py`` has it too: Python prefers a package to such a directory, wherever they are."""
        return name.partition(".")[0] in self.libraries

    def relative(self, file: ModuleFile, level: int, module: str) -> Found | None:
        """The project module that ``from ..module import`` means in ``file``."""
        base = file.directory
        for _ in range(level - 1):
            base = posixpath.dirname(base)
        parts = module.split(".") if module else []
        found = self.at(base, parts)
        if found is None and not parts:
            return Found(None, base)
        return found or self.in_other_case(base, parts)


def _above(file: ModuleFile, parts: int) -> str:
    """The directory in which a file is looked for by a name of so many parts."""
    directory = file.directory
    for _ in range(parts - (0 if file.is_package else 1)):
        directory = posixpath.dirname(directory)
    return directory
