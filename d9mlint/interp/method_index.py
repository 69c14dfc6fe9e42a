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

    __slots__ = ("_last", "_layers")

    def __init__(self) -> None:
        self._layers: list[Layer] = []
        # The layer that methods are added to, where nothing has been put behind it.
        self._last: Layer | None = None

    def add(self, cls: v.Cls, method: v.Func) -> None:
        """A class of the project defines a method."""
        if self._last is None:
            self._last = Layer()
            self._layers.append(self._last)
        self._last.methods.setdefault(method.fn.name, []).append((cls, method))

    def take_over(self, layer: Layer) -> None:
        """An import that added these was taken over."""
        self._last = None
        self._layers.append(layer)

    def named(self, name: str) -> list[Method]:
        """Methods of this name in the classes seen so far."""
        return [one for layer in self._layers for one in layer.methods.get(name, ())]

    def mark(self) -> int:
        """A point in time, for ``close`` and ``before``."""
        self._last = None
        return len(self._layers)

    def close(self, mark: int) -> Layer:
        """What was added since then, as one layer."""
        self._last = None
        layer = Layer(tuple(self._layers[mark:]))
        self._layers[mark:] = [layer]
        return layer

    def before(self, mark: int, name: str) -> list[Method]:
        """Methods of this name that had been seen then."""
        return [one for layer in self._layers[:mark] for one in layer.methods.get(name, ())]

    def drop(self, paths: Collection[str]) -> None:
        """Forget the classes of some files."""
        self._last = None
        self._layers = [layer.without(paths) for layer in self._layers]
