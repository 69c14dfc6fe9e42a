"""The methods of a project's classes, by name: which ones a call on an object of which nothing is known may mean.

A large package has tens of thousands of methods, and each program that imports it knows them all. What an import
adds is therefore one layer, which every run that takes the import over shares.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from d9mlint.interp import values as v

Method = tuple["v.Cls", "v.Func"]


class Layer:
    """Methods that were seen one after the other. It does not change any more once other layers follow it."""

    __slots__ = ("_merged", "_parts")

    def __init__(self, parts: tuple[Layer, ...] = ()) -> None:
        self._parts = parts
        self._merged: dict[str, list[Method]] | None = None if parts else {}

    @property
    def methods(self) -> dict[str, list[Method]]:
        """The methods by name, each name's in the order in which they were seen."""
        if self._merged is None:
            merged: dict[str, list[Method]] = {}
            for part in self._parts:
                for name, found in part.methods.items():
                    merged.setdefault(name, []).extend(found)
            self._merged, self._parts = merged, ()
        return self._merged

    def without(self, paths: Collection[str]) -> Layer:
        """The same without the classes of some files."""
        if not any(cls.file.path in paths for found in self.methods.values() for cls, _ in found):
            return self
        layer = Layer()
        for name, found in self.methods.items():
            kept = [one for one in found if one[0].file.path not in paths]
            if kept:
                layer.methods[name] = kept
        return layer


class MethodIndex:
    """The methods that a run has seen."""

    __slots__ = ("_found", "_last", "_layers", "_shared")

    def __init__(self) -> None:
        self._layers: list[Layer] = []
        # The layer that methods are added to, where nothing has been put behind it.
        self._last: Layer | None = None
        # Layers that are no part of an import that is being recorded.
        self._shared: set[Layer] = set()
        # Methods by a name in the first so many layers.
        self._found: dict[str, tuple[int, list[Method]]] = {}

    def add(self, cls: v.Cls, method: v.Func) -> None:
        """A class of the project defines a method."""
        if self._last is None:
            self._last = Layer()
            self._layers.append(self._last)
        self._last.methods.setdefault(method.fn.name, []).append((cls, method))
        self._found.pop(method.fn.name, None)

    def take_over(self, layer: Layer, shared: bool = False) -> None:
        """An import that added these was taken over: as a part of what is being recorded, unless it is ``shared``."""
        self._last = None
        self._layers.append(layer)
        if shared:
            self._shared.add(layer)

    def named(self, name: str) -> list[Method]:
        """Methods of this name in the classes seen so far."""
        count, found = self._found.get(name, (0, []))
        if count < len(self._layers):
            new = [one for layer in self._layers[count:] for one in layer.methods.get(name, ())]
            found = [*found, *new] if new else found
            self._found[name] = len(self._layers), found
        return found

    def mark(self) -> int:
        """A point in time, for ``close`` and ``before``."""
        self._last = None
        return len(self._layers)

    def close(self, mark: int) -> Layer:
        """What was added since then, as one layer, behind those that are shared."""
        self._last = None
        added = self._layers[mark:]
        layer = Layer(tuple(one for one in added if one not in self._shared))
        self._layers[mark:] = [*(one for one in added if one in self._shared), layer]
        self._found.clear()
        return layer

    def before(self, mark: int, name: str) -> list[Method]:
        """Methods of this name that had been seen then."""
        return [one for layer in self._layers[:mark] for one in layer.methods.get(name, ())]

    def drop(self, paths: Collection[str]) -> None:
        """Forget the classes of some files."""
        self._last = None
        self._layers = [layer.without(paths) for layer in self._layers]
        self._found.clear()
