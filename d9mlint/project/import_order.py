"""In which order modules can be imported, each after those that it imports: read from the import statements, whatever
program asks for them."""

from __future__ import annotations

import hashlib
from functools import cached_property
from typing import TYPE_CHECKING

from d9mlint.ir.bodies import passing
from d9mlint.project.entry_points import components, imports_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from d9mlint.project.modules import ModuleFile, Modules


class Needed:
    """Files by the numbers of their components (see ``ImportOrder``), as the bits of a number: each of thousands of files
    needs thousands."""

    __slots__ = ("_bits", "_numbers")

    def __init__(self, numbers: Mapping[str, int], bits: int) -> None:
        self._numbers = numbers
        self._bits = bits

    def __contains__(self, path: object) -> bool:
        number = self._numbers.get(path) if isinstance(path, str) else None
        return number is not None and self._bits >> number & 1 == 1


class ImportOrder:
    """The imports at the top level of a project's modules, and what follows from them. Nothing is computed before it is
    asked for."""

    def __init__(self, modules: Modules) -> None:
        self._modules = modules
        # What the code of a file imports, in its functions too, by its path.
        self._by_code: dict[str, frozenset[str]] = {}

    @cached_property
    def _imports(self) -> dict[str, frozenset[str]]:
        return {file.path: self._imported(file, top_level=True) for file in passing(self._modules.files)}

    @cached_property
    def _components(self) -> list[frozenset[str]]:
        """Files that import each other, directly or through others, and single files; each behind those that it needs."""
        return list(components(self._imports))

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {path: number for number, some in enumerate(self._components) for path in some}

    @cached_property
    def _needs(self) -> list[tuple[int, str]]:
        """What each component needs, itself too, as bits; and what stands for all that, as text."""
        needs: list[tuple[int, str]] = []
        for number, some in enumerate(self._components):
            inner = {self._numbers[to] for path in some for to in self._imports[path]} - {number}
            bits = 1 << number
            for other in inner:
                bits |= needs[other][0]
            names = sorted(self._modules.by_path[path].relative for path in some)
            needs.append((bits, _digest([*names, "", *sorted(needs[other][1] for other in inner)])))
        return needs

    def _imported(self, file: ModuleFile, *, top_level: bool) -> frozenset[str]:
        """Paths of the files that a file imports, and of the packages around them, which Python imports before."""
        found = set(imports_of(self._modules, file, top_level=top_level))
        for path in [*found, file.path]:
            found.update(self._packages(self._modules.by_path[path]))
        found.discard(file.path)
        return frozenset(found)

    def _imported_by_code(self, file: ModuleFile) -> frozenset[str]:
        known = self._by_code.get(file.path)
        if known is None:
            known = self._by_code[file.path] = self._imported(file, top_level=False)
        return known

    def _packages(self, file: ModuleFile) -> Iterator[str]:
        parts = self._modules.name_of(file).split(".")
        root = self._modules.package_root(file.directory)
        for count in range(1, len(parts)):
            package = self._modules.at(root, parts[:count])
            if package is not None and package.file is not None:
                yield package.file.path

    def circle(self, file: ModuleFile) -> frozenset[str]:
        """The files that import each other, directly or through others, this one among them."""
        return self._components[self._numbers[file.path]]

    def needed(self, file: ModuleFile) -> Needed:
        """The files that importing this one imports, by its statements and those of what it imports, and itself."""
        return Needed(self._numbers, self._needs[self._numbers[file.path]][0])

    def needed_by_code(self, file: ModuleFile) -> tuple[Sequence[ModuleFile], Needed]:
        """What a file's own code may import, in its functions too: each file behind those that it needs, and of those
        that need each other by their paths."""
        bits = 0
        for path in self._imported_by_code(file):
            bits |= self._needs[self._numbers[path]][0]
        text = bin(bits)[:1:-1]
        found: list[ModuleFile] = []
        at = text.find("1")
        while at >= 0:
            found += [self._modules.by_path[path] for path in sorted(self._components[at])]
            at = text.find("1", at + 1)
        return found, Needed(self._numbers, bits)

    def digest(self, file: ModuleFile) -> str:
        """What stands for the order of what a file's own code may import."""
        numbers = {self._numbers[path] for path in self._imported_by_code(file)}
        return _digest(sorted(self._needs[number][1] for number in numbers))


def _digest(texts: Iterable[str]) -> str:
    return hashlib.sha1("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
