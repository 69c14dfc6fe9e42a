"""In which order modules can be imported, each after those that it imports: read from the import statements, whatever
program asks for them."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

from d9mlint.project.entry_points import components, imports_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from d9mlint.project.modules import ModuleFile, Modules


class ImportOrder:
    """The imports at the top level of a project's modules, and what follows from them. Nothing is computed before it is
    asked for."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        self._needs: dict[int, frozenset[str]] = {}
        self._digests: dict[int, str] = {}

    @cached_property
    def _imports(self) -> dict[str, frozenset[str]]:
        return {file.path: self._imported(file, top_level=True) for file in self._modules.files}

    @cached_property
    def _cycles(self) -> list[frozenset[str]]:
        return list(components(self._imports))

    @cached_property
    def _cycle_of(self) -> dict[str, int]:
        return {path: number for number, cycle in enumerate(self._cycles) for path in cycle}

    def _imported(self, file: ModuleFile, *, top_level: bool) -> frozenset[str]:
        """Paths of the files that a file imports, and of the packages around them, which Python imports before."""
        found = set(imports_of(self._modules, file, top_level=top_level))
        for path in [*found, file.path]:
            found.update(self._packages(self._modules.by_path[path]))
        found.discard(file.path)
        return frozenset(found)

    def _packages(self, file: ModuleFile) -> Iterator[str]:
        parts = self._modules.name_of(file).split(".")
        root = self._modules.package_root(file.directory)
        for count in range(1, len(parts)):
            package = self._modules.at(root, parts[:count])
            if package is not None and package.file is not None:
                yield package.file.path

    def cycle(self, file: ModuleFile) -> frozenset[str]:
        """The files that import each other, directly or through others, this one among them."""
        return self._cycles[self._cycle_of[file.path]]

    def needed(self, file: ModuleFile) -> frozenset[str]:
        """The files that importing this one imports, by its statements and those of what it imports, and itself."""
        return self._needed(self._cycle_of[file.path])

    def _needed(self, number: int) -> frozenset[str]:
        known = self._needs.get(number)
        if known is None:
            # Components come behind those that they import: no recursion over long chains.
            for one in range(number + 1):
                if one not in self._needs:
                    cycle = self._cycles[one]
                    inner = {self._cycle_of[to] for path in cycle for to in self._imports[path]} - {one}
                    self._needs[one] = cycle.union(*(self._needs[other] for other in inner))
                    text = [*sorted(cycle), *sorted(self._digests[other] for other in inner)]
                    self._digests[one] = hashlib.sha1(
                        "\0".join(text).encode("utf-8", "surrogatepass")
                    ).hexdigest()
            known = self._needs[number]
        return known

    def before(self, file: ModuleFile) -> Sequence[ModuleFile]:
        """What a file's own code may import, in its functions too: each file behind those that it needs, and of those
        that need each other by their paths."""
        wanted: set[str] = set()
        for path in self._imported(file, top_level=False):
            wanted |= self._needed(self._cycle_of[path])
        return [
            self._modules.by_path[path]
            for number in sorted({self._cycle_of[path] for path in wanted})
            for path in sorted(self._cycles[number])
        ]

    def digest(self, file: ModuleFile) -> str:
        """What stands for the order of ``before``."""
        numbers = {self._cycle_of[path] for path in self._imported(file, top_level=False)}
        for number in numbers:
            self._needed(number)
        text = "\0".join(sorted(self._digests[number] for number in numbers))
        return hashlib.sha1(text.encode()).hexdigest()[:12]
