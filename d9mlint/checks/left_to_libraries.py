"""Code that only a library is seen to use: it is noted for the coverage."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.checks.base import Rule
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, EndEvent, RegisterEvent
from d9mlint.interp.library.replacements import is_followed
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import noted
from d9mlint.interp.state import Site
from d9mlint.interp.usage import handed_over

if TYPE_CHECKING:
    from d9mlint.knowledge import Knowledge

_MADE = frozenset({"__init__", "__new__", "__post_init__"})
_CALLED = frozenset({"__call__", "__getitem__", "__iter__", "__next__"})
_MOST_NAMED = 3


class _Left(NamedTuple):
    """A function, class or object of the project that a library is given, by its name; its functions, and the place."""

    library: str
    registry: str
    name: str
    functions: tuple[tuple[str, int], ...]
    site: Site


class LeftToLibraries(Rule):
    """Notes what the project registers with libraries and objects that it gives them, where the code that uses these is not
    followed."""

    left = noted(list[_Left])

    @on(RegisterEvent)
    def registered(self, event: RegisterEvent) -> None:
        """A decorator keeps a function or class."""
        registry, given = event
        if is_followed(self.run.kb, registry):
            return
        library = registry.partition(".")[0]
        fact = given.fn if isinstance(given, v.Func) else given.cls
        functions = [given.key] if isinstance(given, v.Func) else _methods(given, frozenset())
        site = Site(given.file.path, fact.start, fact.end)
        self.left.add(_Left(library, registry, fact.name, tuple(functions), site))

    @on_call_if(lambda rule, api: rule.run.entry is not None and _is_left(rule.run.kb, api))
    def call(self, call: CallEvent) -> None:
        """A function of a library is given objects."""
        for one in handed_over(call.args):
            if isinstance(one, v.Inst) and _is_used_by(self.run.kb, one.cls):
                functions = tuple(_methods(one.cls, _MADE))
                self.left.add(_Left(call.api, "", one.cls.cls.name, functions, self.run.here(call.node)))

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """The program has ended."""
        if self.run.entry is None:
            return
        used = {one.registry for one in self.left if any(map(self.run.has_run, one.functions))}
        registered: dict[tuple[str, str], list[_Left]] = {}
        given = set[tuple[tuple[str, int], ...]]()
        for one in dict.fromkeys(self.left):
            if not one.functions or any(map(self.run.has_run, one.functions)):
                continue
            if not one.registry:
                # The first place at which a library gets such an object stands for all.
                if one.functions in given or self.run.has_gap("library-call", one.site):
                    continue
                given.add(one.functions)
                text = f"`{one.library}` is given an object of `{one.name}`, whose methods are not followed"
                self.run.gap_at("left-to-library", text, one.site)
            elif one.registry not in used:
                registered.setdefault((one.site.path, one.registry), []).append(one)
        for several in registered.values():
            first = several[0]
            names = ", ".join(f"`{one.name}`" for one in several[:_MOST_NAMED])
            more = f" and {len(several) - _MOST_NAMED} more" if len(several) > _MOST_NAMED else ""
            verb, them = ("are", "them") if len(several) > 1 else ("is", "it")
            text = f"{names}{more} {verb} registered with `{first.library}`; the code that uses {them} is not followed"
            self.run.gap_at("left-to-library", text, first.site)


def _is_left(kb: Knowledge, api: str) -> bool:
    """Whether it is not known what a library does with objects that a call gives it."""
    if "." not in api or is_followed(kb, api):
        return False
    return not (kb.roles(api) or kb.call_is("writes-functions", api) or kb.call_is("tells", api))


def _is_used_by(kb: Knowledge, cls: v.Cls) -> bool:
    """Whether a class is such that a library may use its objects: derived from one of a library, or called."""
    if any(cls.find(name) is not None for name in _CALLED):
        return True
    bases = [kb.canonical(base) for base in cls.external_bases()]
    return any(
        base.partition(".")[0] not in sys.stdlib_module_names and base != "builtins.object" for base in bases
    )


def _methods(cls: v.Cls, but: frozenset[str]) -> list[tuple[str, int]]:
    """The functions that a class defines."""
    return [one.key for name, one in cls.env.all().items() if isinstance(one, v.Func) and name not in but]
