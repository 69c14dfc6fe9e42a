"""For which releases of libraries a program was written, as far as the names that it uses tell, those of its files, and
what it reads of results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.events import CallEvent, EndEvent, ImportEvent, ItemEvent
from d9mlint.interp.file_names import ends_of, template_of
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import Memory, remembered_table
from d9mlint.interp.places import running
from d9mlint.interp.usage import flatten
from d9mlint.ir import nodes as m
from d9mlint.ir.optional_imports import optional_imports
from d9mlint.knowledge.versions import at_least

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import InferredEntry, NamedFile, NamedItems

_RENAMED = {"tensorflow.": "tf."}
_NAMED = "@named"
"""Attribute of what has results: the names under which these have items."""


class ReleaseNames:
    """Listens for names that later releases do not have, and for imports of names that earlier ones do not have."""

    replaceable = remembered_table(str, bool)
    """The names among them without which the program goes on: they show nothing about the release."""
    named = remembered_table(tuple[str, str], bool)
    """The names that calls are given under which a result has items, by the attribute; empty for one that is not known."""
    read = remembered_table(tuple[str, str], bool)
    """The items that the program reads in any case, by the attribute and their keys, where it is not known of what."""
    earlier = remembered_table(str, bool)
    """Whether it reads items that what they are read of has in earlier releases alone, by the entry."""
    later = remembered_table(str, bool)
    """Whether the program uses names of later releases, by the entry that they rule out."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp
        self.kb = interp.kb

    @property
    def memory(self) -> Memory:
        """Where the fields are remembered."""
        return self._interp.memory

    @on_call_if(
        lambda names, api: (
            names.kb.inferred(api) is not None
            or any(names.kb.inferred_by_arguments(api))
            or bool(names.kb.inferred_by_files(api))
        )
    )
    def called(self, call: CallEvent) -> None:
        """A name is called."""
        self.used(call.api)
        for entry, arguments in self.kb.inferred_by_arguments(call.api):
            if any(name in call.args.kw for name in arguments) and not self._is_doubtful(entry):
                self._infer(entry)
        for entry, file in self.kb.inferred_by_files(call.api):
            if self._is_refused(call, file):
                self._infer(entry)

    @on_call_if(lambda names, api: names.kb.names_items(api) is not None)
    def names(self, call: CallEvent) -> None:
        """A call is given names under which a result has items."""
        items = self.kb.names_items(call.api)
        given = None if items is None else call.args.get(items.arg, items.pos)
        if items is None or given is None or v.is_none(given):
            return
        known = {_name_of(one) for one in flatten(given)}
        if isinstance(given, (v.Items, v.Mapping)) and given.open:
            known.add("")
        for name in known:
            self.named[items.attribute, name] = True
        if isinstance(call.owner, v.Obj):
            call.owner.attrs[_NAMED] = v.Items("l", [v.Lit(name) for name in sorted(known)])

    @on_call_if(lambda names, api: any(_is_of_later(api, entry) for entry, _ in names.kb.inferred_items))
    def later_called(self, call: CallEvent) -> None:
        """A name of later releases is called."""
        self._note_later(call.api)

    @on(ItemEvent)
    def item(self, event: ItemEvent) -> None:
        """An item is read: without it the program does not go on, unless it is on one of several ways."""
        owner, key = event.owner, event.key
        if not isinstance(owner, v.Member) or not isinstance(key, v.Lit) or self._may_be_left_out(owner):
            return
        named = _named_by(owner)
        for entry, items in self.kb.inferred_items:
            if owner.name != items.attribute or key.value not in items.keys:
                continue
            if named is None:
                self.read[items.attribute, key.value] = True
            elif _is_of_earlier(items, named, key.value):
                self.earlier[entry.id] = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """Which items the program reads of what it has named is known."""
        for entry, items in self.kb.inferred_items:
            named = {name for attribute, name in self.named.known() if attribute == items.attribute}
            read = [key for attribute, key in self.read.known() if attribute == items.attribute]
            if entry.id not in self.later and (
                entry.id in self.earlier or any(_is_of_earlier(items, named, key) for key in read)
            ):
                self._infer(entry)

    @on(ImportEvent)
    def imported(self, event: ImportEvent) -> None:
        """A module is imported, or names of one."""
        name = f"{event.name}."
        for old, new in _RENAMED.items():
            if name.startswith(old):
                name = new + name[len(old) :]
        stmt = event.node
        parts = [f"{name}{one.name}" for one in stmt.names] if isinstance(stmt, m.ImportFrom) else []
        function = running(self._interp)
        if function is not None and stmt.start in optional_imports(function):
            self._note_replaceable(name, *parts)
            return
        self._note_later(*(parts or [name]))
        self.used(name, stmt)
        if not self._interp.branching:
            # A name has to be there as well: the program does not start without it.
            for part in parts:
                self.used(part, stmt)

    def used(self, name: str, imported_by: Any = None) -> None:
        """A name is used, or imported by a statement."""
        entry = self.kb.inferred(name)
        if entry is None:
            return
        if imported_by is None and (self._is_replaceable(name) or self._is_doubtful(entry)):
            return
        self._infer(entry)
        if entry.since and imported_by is not None and self._is_needed(imported_by):
            self._interp.infer_releases(({at_least(entry.library): entry.since}, {}))

    def _is_doubtful(self, entry: InferredEntry) -> bool:
        """Whether a call does not show the release, because another way leads around it."""
        return entry.certain and bool(self._interp.branching or self._interp.tried)

    def _may_be_left_out(self, read: v.Member) -> bool:
        """Whether what is read of something is not read in each run that has it."""
        if self._interp.tried:
            return True
        of: v.Value | None = read
        while isinstance(of, v.Member):
            of = of.owner
        return self._interp.in_doubt(of.birth) if isinstance(of, v.Obj) else bool(self._interp.branching)

    def _note_later(self, *names: str) -> None:
        for entry, _ in self.kb.inferred_items:
            if any(_is_of_later(name, entry) for name in names):
                self.later[entry.id] = True

    def _note_replaceable(self, *names: str) -> None:
        for name in names:
            if self.kb.inferred(name) is not None:
                self.replaceable[name.rstrip(".")] = self.replaceable[self.kb.canonical(name.rstrip("."))] = (
                    True
                )

    def _is_replaceable(self, name: str) -> bool:
        parts = name.split(".")
        return any(self.replaceable.get(".".join(parts[: end + 1])) for end in range(1, len(parts)))

    def _is_needed(self, stmt: Any) -> bool:
        """Whether a module does not load without what a statement imports: it is no part of another statement."""
        body = self._interp.frame.file.facts.functions[0].body
        return not self._interp.branching and any(one is stmt for one in body)

    def _is_refused(self, call: CallEvent, file: NamedFile) -> bool:
        """Whether later releases refuse the name of the file that a call is given: it is known, and ends otherwise."""
        name = call.args.get(file.arg, file.pos)
        if name is None or _is_elsewhere(name):
            return False
        ends: Iterable[str] = ends_of(self._interp, name)
        if not ends:
            ends = [one for one in template_of(self._interp, name)[-1:] if isinstance(one, str)]
        return (
            bool(ends)
            and not any(one.endswith(tuple(file.ends)) or _may_end(one, file.ends) for one in ends)
            and all_hold(call.args, file.when, call.owner) is True
        )

    def _infer(self, entry: InferredEntry) -> None:
        self._interp.infer_releases(entry.releases)


def _is_elsewhere(name: v.Value) -> bool:
    """Whether a name is that of a place in the network, which releases read and write in their own ways."""
    text = name.value if isinstance(name, v.Lit) else v.beginning_of(name)
    return "://" in str(text)


def _may_end(known: str, ends: list[str]) -> bool:
    """Whether the part of a name that is known may be the last part of one of its ends."""
    return any(one.endswith(known) for one in ends)


def _name_of(value: v.Value) -> str:
    """The name by which a result has what a call is given; empty where it is not known."""
    if isinstance(value, v.Lit):
        return value.value if isinstance(value.value, str) and not value.option else ""
    if isinstance(value, v.Func):
        return value.fn.name
    if isinstance(value, v.Ext):
        return value.name.rpartition(".")[2]
    return value.api.rpartition(".")[2] if isinstance(value, v.Obj) and not value.args.values() else ""


def _named_by(value: v.Value) -> set[str] | None:
    """The names that what a value was read of, or given by, was given; None where none are known."""
    while isinstance(value, (v.Member, v.Obj)):
        if isinstance(value, v.Obj) and isinstance(held := value.attrs.get(_NAMED), v.Items):
            return {str(one.value) for one in held.elts if isinstance(one, v.Lit)}
        if value.owner is None:
            break
        value = value.owner
    return None


def _is_of_earlier(items: NamedItems, named: set[str], key: str) -> bool:
    """Whether earlier releases alone have an item with a key of what was given some names."""
    return items.keys[key] in named and "" not in named and named.isdisjoint(items.keys)


def _is_of_later(name: str, entry: InferredEntry) -> bool:
    """Whether a name is one of those of later releases, which rule an entry out."""
    head, _, rest = name.rstrip(".").partition(".")
    return f"{'tensorflow' if head == 'tf' else head}.{rest}.".startswith(tuple(entry.later))
