"""What becomes of something that an expression of a function gives and that is asked for nothing but some attributes and its
length: it is dropped, stays in variables of the function, or stands in what that returns. By syntax alone.

Where something stands in a tuple, a list or a dictionary is a path: the positions and keys that lead there, the outermost
first.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence, Set
from typing import Any

from d9mlint.ir import nodes as m
from d9mlint.ir.liveness import declares
from d9mlint.ir.traversal import parents, variables

Path = tuple[int | str, ...]
"""Where something stands in containers: empty for the thing itself."""
Taker = Callable[[m.Call, Any, Path], frozenset[str] | None]
"""What says which attributes of what a call gives may be asked without taking elements of what one of its arguments holds
at a path; None where the call may take elements itself."""
Method = Callable[[str], bool]
"""What says whether a method of the thing takes no elements of it, unless those of its result are taken."""


class Kept:
    """What becomes of something in one function, or in the body of a module."""

    def __init__(
        self,
        function: m.Function,
        takes: Taker,
        passed: Set[int],
        goes_on: Method = lambda name: False,
        parts: Sequence[str] = (),
        never: Container[int] = frozenset(),
    ) -> None:
        """``parts`` are the names of the attributes that give the same as the positions of a tuple that is followed,
        ``never`` is what never runs, by id."""
        self._never = never
        self._parts = parts
        self._function = function
        self._takes = takes
        self._goes_on = goes_on
        self._passed = passed
        self._above = parents(function)
        self.places: dict[str, Path] = {}
        """The variables that hold it, each with where it stands in what they hold."""
        self.returned: set[tuple[Path, frozenset[str]]] = set()
        """Where it, or what it is given to, stands in what the function returns, with the attributes that may be asked."""
        self.passed_over = False
        """Whether one of the uses that do not count was met."""

    def follow(self, node: Any, names: frozenset[str], path: Path = ()) -> bool:
        """Whether nothing that an expression gives is asked for more than attributes of these names and its length, as far
        as this function is concerned; what it holds at a path counts."""
        if id(node) in self._passed and not path:
            self.passed_over = True
            return True
        parent = self._above.get(id(node))
        if isinstance(parent, (m.ExprStmt, m.Delete)):
            return True
        if isinstance(parent, m.Return):
            self.returned.add((path, names))
            return True
        if isinstance(parent, m.Keyword):
            parent = self._above.get(id(parent))
        if isinstance(parent, m.Call):
            return parent.func is not node and self._given(parent, node, path)
        if isinstance(parent, m.Attr):
            return self._asked(parent, parent.name, names, path)
        if isinstance(parent, m.Compare):
            return all(op in ("is", "is not") for op in parent.ops)
        if isinstance(parent, m.IfExp):
            return parent.test is not node and self.follow(parent, names, path)
        if isinstance(parent, m.Subscript):
            return parent.value is node and self._element(parent, names, path)
        if isinstance(parent, m.Seq):
            at = next(i for i, one in enumerate(parent.elts) if one is node)
            plain = parent.kind != "s" and not any(isinstance(one, m.Star) for one in parent.elts)
            return plain and self.follow(parent, names, (at, *path))
        if isinstance(parent, m.Dict):
            key = next((k for k, one in zip(parent.keys, parent.values, strict=True) if one is node), None)
            return (
                isinstance(key, m.Const)
                and isinstance(key.value, (int, str))
                and self.follow(parent, names, (key.value, *path))
            )
        if isinstance(parent, m.Assign) and parent.value is node:
            return all(self._stored(target, names, path) for target in parent.targets)
        if isinstance(parent, m.AnnAssign) and parent.value is node:
            return self._stored(parent.target, names, path)
        return False

    def _given(self, call: m.Call, argument: Any, path: Path) -> bool:
        if _counts(call):
            return True
        names = self._takes(call, argument, path)
        return names is not None and self.follow(call, names)

    def _attribute(self, node: m.Attr | m.Name, name: str, names: frozenset[str]) -> bool:
        call = self._above.get(id(node))
        if isinstance(call, m.Call) and call.func is node and self._goes_on(name):
            return self.follow(call, names)
        return name.partition(".")[0] in names

    def _asked(self, node: m.Attr | m.Name, name: str, names: frozenset[str], path: Path) -> bool:
        """The same of an attribute of what holds it at a path."""
        if not path:
            return self._attribute(node, name, names)
        part, _, further = name.partition(".")
        if len(path) > 1 or part not in self._parts:
            return False
        if self._parts.index(part) != path[0]:
            return True
        return self._attribute(node, further, names) if further else self.follow(node, names)

    def _element(self, part: m.Subscript, names: frozenset[str], path: Path) -> bool:
        key = part.index.value if isinstance(part.index, m.Const) else None
        if not path or not isinstance(key, (int, str)) or (isinstance(key, int) and key < 0):
            return False
        return self.follow(part, names, path[1:]) if key == path[0] else True

    def _stored(self, target: m.Expr, names: frozenset[str], path: Path) -> bool:
        if isinstance(target, m.Seq):
            if not path or not isinstance(path[0], int) or any(isinstance(x, m.Star) for x in target.elts):
                return False
            return path[0] < len(target.elts) and self._stored(target.elts[path[0]], names, path[1:])
        if not isinstance(target, m.Name) or "." in target.id:
            return False
        if target.id in self.places:
            return self.places[target.id] == path
        if declares(self._function, {target.id}):
            return False
        self.places[target.id] = path
        return all(self._used(one, names, path) for one in variables(self._function)[target.id])

    def _used(self, use: m.Name, names: frozenset[str], path: Path) -> bool:
        if id(use) in self._never or self._is_target(use):
            return True
        asked = use.id.partition(".")[2]
        if not asked:
            return self.follow(use, names, path)
        parent = self._above.get(id(use))
        return (not path and _counts(parent)) or self._asked(use, asked, names, path)

    def _is_target(self, use: m.Name) -> bool:
        """Whether an assignment stores something in a variable here."""
        child: Any = use
        parent = self._above.get(id(use))
        while isinstance(parent, m.Seq):
            child, parent = parent, self._above.get(id(parent))
        if isinstance(parent, (m.AnnAssign, m.For, m.Generator)):
            return parent.target is child
        return isinstance(parent, m.Assign) and any(target is child for target in parent.targets)


def _counts(call: Any) -> bool:
    """Whether a call asks for the length of something."""
    if not isinstance(call, m.Call) or len(call.args) != 1:
        return False
    return isinstance(call.func, m.Name) and call.func.id == "len"
