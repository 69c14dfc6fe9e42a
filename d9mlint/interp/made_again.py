"""Functions and classes that one statement makes in each call of a function, and that a table keeps.

A table of what has been made, under keys that are not known, would hold another class after each call, and no call
would find it as the one before left it. What closes over the same is kept once, and what closes over other data is
kept a few times: the rest is one that is not known.
"""

from __future__ import annotations

from d9mlint.interp import values as v

Name = tuple[str, int]
"""A function or class: its file, and its index or place there."""
Code = tuple[Name, tuple[Name, ...]]
"""The code of a function, with the functions and classes that it closes over: a wrapper is other code for each of those."""
MAX_MADE = 6
"""So many functions or classes are kept that the same statement made and that call the same."""


def candidates(before: v.Value, value: v.Func | v.Cls) -> v.Value:
    """What a table holds under a name that is not known, after ``value`` has been put there, too."""
    held = v.alternatives(before)
    made = [one for one in held if _same_statement(one, value)]
    if any(_Comparison(exact=True).same(one, value) for one in made):
        return before
    if sum(_Comparison(exact=False).same(one, value) for one in made) >= MAX_MADE:
        return before if v.UNKNOWN in held else v.candidates((before, v.UNKNOWN))
    return v.candidates((before, value))


def called_by(func: v.Func) -> tuple[Name, ...]:
    """The functions and classes that a function made in a call closes over."""
    found: list[Name] = []
    env: v.Env | None = func.env
    while env is not None and env.parent is not None:
        for one in env.vars.values():
            if isinstance(one, v.Func):
                found.append(one.key)
            elif isinstance(one, v.Cls):
                found.append((one.file.path, one.cls.start))
        env = env.parent
    return tuple(found)


def _same_statement(a: v.Value, b: v.Value) -> bool:
    if isinstance(a, v.Func) and isinstance(b, v.Func):
        return a.fn is b.fn and a.mod is b.mod
    return isinstance(a, v.Cls) and isinstance(b, v.Cls) and a.cls is b.cls and a.mod is b.mod


class _Comparison:
    """Whether two functions or classes do the same: they are of the same code, and what they close over is the same.
    If it need not be ``exact``, only the functions and classes have to be the same that they close over."""

    def __init__(self, exact: bool) -> None:
        self._exact = exact
        # What is being compared already, as two classes are that name each other.
        self._begun: set[tuple[int, int]] = set()

    def same(self, a: v.Value | None, b: v.Value | None) -> bool:
        """Whether two values are the same."""
        if a is b:
            return True
        if a is None or b is None:
            return False
        if isinstance(a, (v.Func, v.Cls)) or isinstance(b, (v.Func, v.Cls)):
            return self._same_code(a, b)
        if isinstance(a, v.AnyOf) and isinstance(b, v.AnyOf) and len(a.values) == len(b.values):
            return all(self.same(x, y) for x, y in zip(a.values, b.values, strict=True))
        return v.interchangeable(a, b) or (not self._exact and _is_data(a) and _is_data(b))

    def _same_code(self, a: v.Value, b: v.Value) -> bool:
        if not _same_statement(a, b):
            return False
        if (id(a), id(b)) in self._begun:
            return True
        self._begun.add((id(a), id(b)))
        if isinstance(a, v.Func) and isinstance(b, v.Func):
            return (
                self.same(a.receiver, b.receiver)
                and self._all(a.decorated, b.decorated)
                and self._named(a.defaults, b.defaults)
                and self._scopes(a.env, b.env)
            )
        assert isinstance(a, v.Cls)
        assert isinstance(b, v.Cls)
        return (
            self._all(a.bases, b.bases)
            and self._all(a.decorated, b.decorated)
            and self.same(a.metaclass, b.metaclass)
            and self._scopes(a.env, b.env)
        )

    def _scopes(self, a: v.Env | None, b: v.Env | None) -> bool:
        """Whether two scopes, and those around them up to one that is around both, hold the same."""
        while a is not b:
            if a is None or b is None or a.globals_ != b.globals_ or a.stars != b.stars:
                return False
            if (id(a), id(b)) in self._begun:
                return True
            self._begun.add((id(a), id(b)))
            if not self._named(a.all(), b.all()):
                return False
            a, b = a.parent, b.parent
        return True

    def _all(self, a: tuple[v.Value, ...], b: tuple[v.Value, ...]) -> bool:
        return len(a) == len(b) and all(self.same(x, y) for x, y in zip(a, b, strict=True))

    def _named(self, a: dict[str, v.Value], b: dict[str, v.Value]) -> bool:
        return a.keys() == b.keys() and all(self.same(one, b[name]) for name, one in a.items())


def _is_data(value: v.Value) -> bool:
    """Whether a value is what a function computes with: nothing that it calls by its name."""
    if isinstance(value, (v.Items, v.AnyOf)):
        return all(map(_is_data, value.elts if isinstance(value, v.Items) else value.values))
    return not isinstance(value, (v.Func, v.Cls, v.Ext, v.Partial))
