"""The knowledge of d9mlint: rule pages and versioned facts about libraries, loaded from ``rules/``."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from d9mlint.knowledge.errors import KnowledgeError
from d9mlint.knowledge.loader import Compiled, load_compiled
from d9mlint.knowledge.patterns import Patterns
from d9mlint.knowledge.schema import (
    CallKind,
    DeviceEntry,
    GeneratorEntry,
    HazardEntry,
    HookEntry,
    InferredEntry,
    NamedFile,
    NamedItems,
    OpEntry,
    OrderEntry,
    RngEntry,
    Role,
    RoleEntry,
    RulePage,
    RunnerEntry,
    SettingEntry,
    TensorEntry,
)

if TYPE_CHECKING:
    from d9mlint.knowledge.layers import LayerFile

__all__ = ["Knowledge", "KnowledgeError", "RulePage", "load"]


COLUMN = ".column[]"
_EARLIER = "tf.compat.v1."
_MODULE = "(_*[a-z0-9][^.]*)"
"""The name of a module, which no class has."""
K = TypeVar("K")


def _patterns(names: Mapping[K, list[str]]) -> dict[K, re.Pattern[str]]:
    """What matches any of the names of each kind, in which ``*`` stands for any characters."""
    return {
        kind: re.compile("|".join(map(fnmatch.translate, some)) or r"(?!)") for kind, some in names.items()
    }


def seed_argument(entry: RngEntry) -> str:
    """The argument that seeds what draws from a global generator without, where a method gives it one later; empty for
    other entries."""
    return entry.unless[0].arg if entry.kind == "split" and entry.seeded_by and entry.unless else ""


class Knowledge:
    """The knowledge base, indexed for look-ups by name. All look-ups take names as a program imports them."""

    def __init__(self, compiled: Compiled, layers: Sequence[Compiled] = ()) -> None:
        self.digest = compiled.digest
        self.newest = compiled.newest
        self.built_for = compiled.built_for
        self.tested_with = compiled.tested_with
        self.allowed_by = compiled.allowed_by
        self.cpu_builds = compiled.cpu_builds
        self.recorded = compiled.recorded
        pages = [page for layer in (compiled, *layers) for page in layer.rules]
        self.rules: dict[str, RulePage] = {page.code: page for page in pages}
        self._names = {page.name: page for page in pages}
        self._exact = compiled.exact | {name: to for layer in layers for name, to in layer.exact.items()}
        # By the first part of a name, so that most names are compared with none; the longest first.
        self.customary = compiled.customary
        """What the names stand for under which modules are usually imported."""
        self._prefixes: dict[str, list[tuple[str, str]]] = {}
        for prefix, target in sorted(compiled.prefixes.items(), key=lambda item: -len(item[0])):
            self._prefixes.setdefault(prefix.partition(".")[0], []).append((prefix, target))
        # Packages that give what the modules below them define, by the first parts of their names.
        self._exporting: dict[str, list[tuple[re.Pattern[str], list[str]]]] = {}
        for package, target in sorted(compiled.exporting.items(), key=lambda item: -len(item[0])):
            pattern = re.compile(re.escape(package).replace(r"\*", _MODULE))
            given = self._exporting.setdefault(package.partition(".")[0], [])
            given.append((pattern, target.split("*")))
        self._canonical: dict[str, str] = {}
        # What the interpreter has put together of methods, by the types of their receivers and their names.
        self.methods_known: dict[tuple[tuple[str, ...], str], Any] = {}
        self._rng: dict[str, tuple[RngEntry, ...]] = {}
        self._rng_methods: dict[str, tuple[RngEntry, ...]] = {}
        self._rng_wild: Patterns[RngEntry] = Patterns()
        self.layers = (compiled, *layers)
        self.redrawing = frozenset(
            name for layer in self.layers for one in layer.rng if one.seed_from for name in one.used_by
        )
        """Methods that draw from an RNG which the call that gave their receiver has seeded."""
        self.generators: dict[str, GeneratorEntry] = {
            entry.id: entry for layer in self.layers for entry in layer.generators
        }
        self._replacing: dict[str, list[GeneratorEntry]] = {}
        self._seeded_with: dict[str, list[str]] = {}
        for generator in self.generators.values():
            for name in generator.seeded_with:
                self._seeded_with.setdefault(name, []).append(generator.id)
            for name in generator.replaces:
                self._replacing.setdefault(name, []).append(generator)
        self._results = dict(compiled.results)
        self._results_given: dict[str, tuple[tuple[str, str], ...]] = {}
        self.result_classes = frozenset(compiled.results.values())
        self._seeders = _patterns(compiled.seeders)
        self._names_of_calls = compiled.calls
        self._called = _patterns(compiled.calls)
        self._call_is: dict[tuple[CallKind, str], bool] = {}
        described: list[RngEntry | OpEntry | HazardEntry] = [*compiled.rng, *compiled.ops, *compiled.hazards]
        self._libraries = frozenset(
            api.partition(".")[0] for entry in described if entry.library != "python" for api in entry.apis
        )
        self._may_seed: dict[tuple[str, bool], bool] = {}
        self._names_that_seed: dict[str, Mapping[str, frozenset[str]]] = {}
        self._result_patterns: Patterns[str] = Patterns()
        self._attribute_patterns: Patterns[str] = Patterns()
        # Names of attributes of which a table says what class they are.
        self._attributes = frozenset(api.rpartition(".@")[2] for api in compiled.results if ".@" in api)
        tables = tuple(api.removesuffix(COLUMN) for api in compiled.results if api.endswith(COLUMN))
        self.table_methods = frozenset(
            api.rpartition(".")[2]
            for api, given in compiled.results.items()
            if given == "self" and api.rpartition(".")[0] in tables
        )
        """Methods of tables that give another table of the same class."""
        self._hazards: dict[str, tuple[HazardEntry, ...]] = {}
        self._hazard_patterns: Patterns[HazardEntry] = Patterns()
        self.hazards = tuple({e.id: e for layer in self.layers for e in layer.hazards}.values())
        self._ops: dict[str, tuple[OpEntry, ...]] = {}
        self._op_methods: dict[str, tuple[OpEntry, ...]] = {}
        self._losses: dict[str, tuple[OpEntry, ...]] = {}
        self.trained_by: set[str] = set()
        """Attributes of layers that decide whether their own variables are trained."""
        self._settings: dict[str, SettingEntry] = {}
        self._roles: dict[str, tuple[RoleEntry, ...]] = {}
        self._role_methods: dict[str, tuple[RoleEntry, ...]] = {}
        self._by_role: dict[str, dict[Role, RoleEntry]] = {}
        self._orders: dict[str, OrderEntry] = {}
        self._order_prefixes: list[tuple[str, OrderEntry]] = []
        self._tensors: dict[str, TensorEntry] = {}
        self._devices: dict[str, DeviceEntry] = {}
        self._runners: dict[str, tuple[RunnerEntry, ...]] = {}
        self._runner_patterns: Patterns[RunnerEntry] = Patterns()
        self._hooks: dict[str, HookEntry | None] = {}
        self._hook_patterns: Patterns[HookEntry] = Patterns()
        self.calling_libraries: set[str] = set()
        """Libraries, as `name.*`, of which some entry asks whether they call the function that is running."""
        self.training_methods: dict[str, None] = {}
        self.adding_methods: set[str] = set()
        """The methods of trainers that train, in the order of the entries."""
        self.evaluating_methods: dict[str, None] = {}
        """Those that only evaluate."""
        self._ops_by_id: dict[str, OpEntry] = {}
        self._order_functions: dict[str, OrderEntry | None] = {}
        self._order_methods: dict[str, OrderEntry | None] = {}
        self._inferred: dict[str, InferredEntry] = {}
        self._inferred_prefixes: list[tuple[str, InferredEntry]] = []
        self._inferred_heads: set[str] = set()
        self._inferred_methods: dict[str, InferredEntry] = {}
        self.release_words: dict[str, set[str]] = {}
        self._inferred_arguments: dict[str, list[tuple[InferredEntry, str]]] = {}
        self._inferred_files: dict[str, list[tuple[InferredEntry, NamedFile]]] = {}
        self.inferred_items: list[tuple[InferredEntry, NamedItems]] = []
        self._inferred_namings: dict[str, NamedItems] = {}
        self._index(compiled)
        # Top-level names of the libraries that something is known of.
        self.libraries = frozenset(
            name.partition(".")[0]
            for known in (self._rng, self._ops, compiled.exact, compiled.prefixes)
            for name in known
        )
        self.importable = self.libraries | self._libraries
        """Top-level names of libraries that facts of any kind are known of: a folder of this name is not meant."""
        for layer in layers:
            self._make_way(layer)
            self._index(layer)
        owners = (name.rpartition(".")[0] for known in (self._rng, self._roles) for name in known)
        classes = (owner for owner in owners if owner.rpartition(".")[2][:1].isupper())
        self._classes = frozenset([*classes, *self._inferred_arguments])
        """Classes of which some method is known, or some argument."""
        self.declared = frozenset(name for layer in layers for name in (*layer.exact, *_apis(layer)))
        """Names that a user's own knowledge is about; functions of the project among them are not looked into."""

    def _make_way(self, layer: Compiled) -> None:
        """Forget what is known about the names that a layer speaks of."""
        for api in (api for rng in layer.rng for api in rng.apis):
            name = self.canonical(api)
            self._rng.pop(name, None)
            bare = name.rpartition(".")[2]
            kept = tuple(
                e for e in self._rng_methods.get(bare, ()) if name not in map(self.canonical, e.apis)
            )
            self._rng_methods[bare] = kept
        for api in (api for op in layer.ops for api in op.apis):
            name = self.canonical(api)
            gone = self._ops.pop(name, ())
            bare = name.rpartition(".")[2]
            self._op_methods[bare] = tuple(op for op in self._op_methods.get(bare, ()) if op not in gone)
            for loss in (loss for op in gone for loss in op.losses):
                self._losses[loss] = tuple(op for op in self._losses[loss] if op not in gone)

    def _index(self, compiled: Compiled) -> None:
        for entry in compiled.rng:
            for api in entry.apis:
                if "*" in api:
                    self._rng_wild.add(api, entry, entry.not_apis)
                    continue
                name = self.canonical(api)
                self.calling_libraries.update(one for one in entry.unless_inside if one.endswith(".*"))
                if entry not in self._rng.get(name, ()):
                    self._rng[name] = (*self._rng.get(name, ()), entry)
                if entry.method:
                    bare = name.rpartition(".")[2]
                    if entry not in self._rng_methods.get(bare, ()):
                        self._rng_methods[bare] = (*self._rng_methods.get(bare, ()), entry)
        for op in compiled.ops:
            for api in op.apis:
                name = self.canonical(api)
                self._ops[name] = (*self._ops.get(name, ()), op)
                if name.startswith(("torch.Tensor.", "tf.Variable.")):
                    bare = name.rpartition(".")[2]
                    self._op_methods[bare] = (*self._op_methods.get(bare, ()), op)
            for loss in op.losses:
                self._losses[loss] = (*self._losses.get(loss, ()), op)
            self.trained_by.update(test.arg for test in op.untrained)
        for role in compiled.roles:
            for api in role.apis:
                name = api if api.endswith(".*") else self.canonical(api)
                self._roles[name] = (*self._roles.get(name, ()), role)
                if role.method:
                    bare = name.rpartition(".")[2]
                    self._role_methods[bare] = (*self._role_methods.get(bare, ()), role)
        for hazard in compiled.hazards:
            for api in hazard.apis:
                if "*" in api:
                    self._hazard_patterns.add(api, hazard)
                else:
                    name = self.canonical(api)
                    self._hazards[name] = (*self._hazards.get(name, ()), hazard)
        for api, result in compiled.results.items():
            if "*" in api:
                (self._attribute_patterns if ".@" in api else self._result_patterns).add(api, result)
            elif api.endswith(")"):
                name, _, argument = api[:-1].partition("(")
                self._results_given[name] = (*self._results_given.get(name, ()), (argument, result))
        for order in compiled.orders:
            for api in order.apis:
                if api.endswith(".*"):
                    self._order_prefixes.append((api[:-1], order))
                else:
                    self._orders[api if api.startswith("*.") else self.canonical(api)] = order
        self._order_prefixes.sort(key=lambda item: -len(item[0]))
        for setting in compiled.settings:
            for api in setting.names:
                self._settings[f"env:{api}" if setting.kind == "env" else api] = setting
        self._index_values(compiled)

    def _index_values(self, compiled: Compiled) -> None:
        for tensor in compiled.tensors:
            for api in tensor.apis:
                names = [api] if "." in api else [f"torch.{api}", f"torch.Tensor.{api}"]
                self._tensors.update((self.canonical(name), tensor) for name in names)
        for release in compiled.inferred:
            self._inferred.update((name, release) for name in release.apis)
            self._inferred_prefixes += [(prefix, release) for prefix in release.prefixes]
            self._inferred_heads.update(prefix.partition(".")[0] for prefix in release.prefixes)
            self._inferred_methods.update((name, release) for name in release.methods)
            if release.project:
                for name in (*release.apis, *release.prefixes, *release.later):
                    head, _, rest = name.rstrip(".").partition(".")
                    words = self.release_words.setdefault("tensorflow" if head == "tf" else head, set())
                    words.add(rest.rpartition(".")[2] or head)
            for api in release.arguments:
                self._inferred_arguments.setdefault(self.canonical(api), []).append((release, api))
                if release.project:
                    head = api.partition(".")[0]
                    words = self.release_words.setdefault("tensorflow" if head == "tf" else head, set())
                    words.update(release.arguments[api])
            for file in release.files:
                for api in file.apis:
                    self._inferred_files.setdefault(self.canonical(api), []).append((release, file))
            self.inferred_items += [(release, items) for items in release.items]
            for items in release.items:
                self._inferred_namings.update((self.canonical(api), items) for api in items.apis)
        for device in compiled.devices:
            self._devices.update((self.canonical(api), device) for api in device.apis)
        for runner in compiled.runners:
            self.training_methods.update(dict.fromkeys(runner.trains))
            self.adding_methods.update(runner.adds)
            self.evaluating_methods.update(dict.fromkeys(runner.evaluates))
            for api in runner.apis:
                if "*" in api:
                    self._runner_patterns.add(api, runner)
                else:
                    name = self.canonical(api)
                    self._runners[name] = (*self._runners.get(name, ()), runner)
        for hook in compiled.hooks:
            for api in hook.apis:
                if "*" in api:
                    self._hook_patterns.add(api, hook)
                else:
                    self._hooks[self.canonical(api)] = hook

    def canonical(self, dotted: str) -> str:
        """The one name by which the knowledge base knows an API."""
        known = self._canonical.get(dotted)
        if known is None:
            known = self._canonical[dotted] = self._canonicalise(dotted)
        return known

    def _canonicalise(self, dotted: str) -> str:
        name = dotted
        for _ in range(6):
            replaced = self._exact.get(name)
            if replaced is None:
                for prefix, target in self._prefixes.get(name.partition(".")[0], ()):
                    if name.startswith(prefix):
                        replaced = target + name[len(prefix) :]
                        break
            if replaced is None:
                replaced = self._exported(name)
            if replaced is None or replaced == name:
                break
            name = replaced
        return name

    def _exported(self, name: str) -> str | None:
        """The name under which a package gives a function or a class of a module below it, or what belongs to one. A module
        that has such a name gets one that nothing is known of."""
        for package, (first, *rest) in self._exporting.get(name.partition(".")[0], ()):
            if found := package.match(name):
                parts = name[found.end() :].split(".")
                at = next((at for at, part in enumerate(parts) if part.lstrip("_")[:1].isupper()), -1)
                between = (module + text for module, text in zip(found.groups(), rest, strict=False))
                return "".join([first, *between, ".".join(parts[at:])])
        return None

    def gives(self, dotted: str) -> bool:
        """Whether a module of a library is known to give this name."""
        name = self.canonical(dotted)
        return bool(
            dotted in self._exact
            or name in self._classes
            or self.rng(name)
            or self.ops(name)
            or self.runners(name)
        )

    def rng(self, dotted: str) -> tuple[RngEntry, ...]:
        """What a function or class does to random number generators; empty for most."""
        name = self.canonical(dotted)
        found = self._rng.get(name)
        if found is None:
            found = self._rng[name] = self._rng_wild.of(name)
        return found

    def hazards_of(self, name: str) -> tuple[HazardEntry, ...]:
        """Hazards in the arguments of a call, by its canonical name; empty for most."""
        found = self._hazards.get(name)
        if found is None:
            found = self._hazards[name] = self._hazard_patterns.of(name)
        return found

    def result_type(self, api: str) -> str:
        """The class of what calling ``api`` gives; empty where nothing is known. ``self`` in the table is the class
        whose method it is."""
        found = self._results.get(api)
        if found is None:
            found = next(iter(self._result_patterns.of(api)), "")
            self._results[api] = found
        return api.rpartition(".")[0] if found == "self" else found

    def call_is(self, kind: CallKind, api: str) -> bool:
        """Whether a call is known to do this by the name alone of what is called."""
        found = self._call_is.get((kind, api))
        if found is None:
            names = self._called.get(kind)
            last = api.rpartition(".")[2]
            found = names is not None and bool(names.match(api) or names.match(last))
            self._call_is[kind, api] = found
        return found

    def calls(self, kind: CallKind) -> list[str]:
        """The names of what is known to do this."""
        return self._names_of_calls.get(kind, [])

    def results_given(self, api: str) -> tuple[tuple[str, str], ...]:
        """Arguments of ``api`` and the class of what it gives where they are true."""
        return self._results_given.get(api, ())

    def attribute_type(self, owner: str, name: str) -> str:
        """The class of an attribute of a library's class or module; empty where nothing is known."""
        if name not in self._attributes:
            return ""
        wanted = f"{owner}.@{name}"
        found = self._results.get(wanted) or next(iter(self._attribute_patterns.of(wanted)), "")
        return owner if found == "self" else found

    @cached_property
    def seeding_methods(self) -> list[str]:
        """Methods by which generators and objects with one are seeded after they were made."""
        entries = {entry.id: entry for found in self._rng.values() for entry in found}
        return sorted({method for entry in entries.values() for method in entry.seeded_by})

    @cached_property
    def seeds_given_later(self) -> list[str]:
        """The arguments for a seed of what a method, or an attribute of that name, gives one after it was made."""
        entries = {entry.id: entry for found in self._rng.values() for entry in found}
        return sorted({seed_argument(entry) for entry in entries.values()} - {""})

    def may_seed(self, name: str, method: bool) -> bool:
        """Whether a function, or a method, of which only the name is known is named like one that seeds."""
        found = self._may_seed.get((name, method))
        if found is None:
            names = self._seeders.get("methods" if method else "functions")
            found = names is not None and names.match(name.lower()) is not None
            self._may_seed[name, method] = found
        return found

    def names_that_seed(self, rng: str) -> Mapping[str, frozenset[str]]:
        """The last parts of the names of what seeds a generator, with the libraries that have it as programs name them
        when they import them."""
        found = self._names_that_seed.get(rng)
        if found is None:
            roots: dict[str, set[str]] = {}
            for name, entries in self._rng.items():
                if any(rng in self.seeded_with(one) for entry in entries for one in entry.seeds):
                    roots.setdefault(name.rpartition(".")[2], set()).add(name.partition(".")[0])
            found = self._names_that_seed[rng] = {
                name: frozenset(one for root in libraries for one in self._imported_as(root))
                for name, libraries in roots.items()
            }
        return found

    def _imported_as(self, root: str) -> set[str]:
        """A library, and other names of which some part is the same."""
        same = {root}
        same.update(name.partition(".")[0] for name, own in self._exact.items() if own.startswith(root + "."))
        for prefix, given in self._prefixes.items():
            if any(target.partition(".")[0] == root for _, target in given):
                same.add(prefix)
        return same

    def is_seed(self, argument: str) -> bool:
        """Whether libraries take a seed under this name of an argument."""
        names = self._seeders.get("arguments")
        return names is not None and names.match(argument) is not None

    def is_of_known_library(self, api: str) -> bool:
        """Whether a name is of a library of which facts are known."""
        return api.partition(".")[0] in self._libraries

    def seeded_with(self, rng: str) -> list[str]:
        """A generator, and those whose seed is the same."""
        return [rng, *self._seeded_with.get(rng, ())]

    def replacing(self, generator: str) -> list[GeneratorEntry]:
        """Generators that are meant instead of this one in functions with certain decorators."""
        return self._replacing.get(generator, [])

    def rng_methods(self, name: str) -> tuple[RngEntry, ...]:
        """Entries of methods with this bare name."""
        return self._rng_methods.get(name, ())

    def ops(self, dotted: str) -> tuple[OpEntry, ...]:
        """Ops without run-to-run guarantee under this name."""
        return self._ops.get(self.canonical(dotted), ())

    def op_entries(self) -> list[OpEntry]:
        """All ops without run-to-run guarantee, each once."""
        return self._all_ops

    @cached_property
    def _all_ops(self) -> list[OpEntry]:
        return list({entry.id: entry for entries in self._ops.values() for entry in entries}.values())

    def op(self, id: str) -> OpEntry | None:
        """The op with this id."""
        if not self._ops_by_id:
            self._ops_by_id.update((entry.id, entry) for entry in self.op_entries())
        return self._ops_by_id.get(id)

    def rng_entries(self) -> list[RngEntry]:
        """What all known functions do to random number generators, each entry once."""
        return self._all_rng

    @cached_property
    def _all_rng(self) -> list[RngEntry]:
        return list({e.id: e for layer in self.layers for e in layer.rng}.values())

    @cached_property
    def generator_classes(self) -> frozenset[str]:
        """The classes of objects that are random generators."""
        made = (api for one in self._all_rng if one.kind == "generator" for api in one.apis)
        return frozenset(self.result_type(api) or api for api in made)

    def role_entries(self) -> list[RoleEntry]:
        """The parts that calls of libraries play, each entry once."""
        return self._all_roles

    @cached_property
    def _all_roles(self) -> list[RoleEntry]:
        return list({e.id: e for layer in self.layers for e in layer.roles}.values())

    @cached_property
    def named_libraries(self) -> frozenset[str]:
        """Top-level names of the libraries of which some part is known that their calls play."""
        return frozenset(api.partition(".")[0] for entry in self._all_roles for api in entry.apis)

    @cached_property
    def starts_named(self) -> list[RoleEntry]:
        """Frameworks that start what files define under certain names."""
        return [one for one in self._all_roles if one.role == "starts-named"]

    def op_methods(self, name: str) -> tuple[OpEntry, ...]:
        """Ops that are tensor or variable methods with this bare name."""
        return self._op_methods.get(name, ())

    def losses(self, name: str) -> tuple[OpEntry, ...]:
        """Ops that the ``compile`` of a model takes for a loss under this name."""
        return self._losses.get(name, ())

    @cached_property
    def libraries_that_color(self) -> frozenset[str]:
        """The libraries that draw something in a color which they are given, by the first parts of their names."""
        coloring = (one for one in self._all_roles if one.role == "colored-by")
        return frozenset(api.partition(".")[0] for entry in coloring for api in entry.apis)

    def roles(self, dotted: str) -> tuple[RoleEntry, ...]:
        """The roles that calls of a function or method play; ``?.name`` is a method of an unknown receiver."""
        name = self.canonical(dotted)
        found = self._roles.get(name)
        if found is None:
            head, _, bare = name.rpartition(".")
            if head == "?":
                found = self._role_methods.get(bare, ())
            else:
                found = self._roles.get(f"{head}.*", ())
            self._roles[name] = found
        return found

    def role(self, dotted: str, role: Role) -> RoleEntry | None:
        """The entry that gives a function or method this role, if one does."""
        found = self._by_role.get(dotted)
        return (self.by_role(dotted) if found is None else found).get(role)

    def by_role(self, dotted: str) -> dict[Role, RoleEntry]:
        """The roles that calls of a function or method play, each with the first entry that gives it."""
        found = self._by_role.get(dotted)
        if found is None:
            found = self._by_role[dotted] = {}
            for entry in self.roles(dotted):
                found.setdefault(entry.role, entry)
        return found

    def order(self, api: str, method: bool = False) -> OrderEntry | None:
        """What a canonical name has to do with the order of elements; ``method`` for a method or attribute."""
        known = self._order_methods if method else self._order_functions
        if api in known:
            return known[api]
        found = self._orders.get(api)
        if found is None and method:
            found = self._orders.get("*." + api.rpartition(".")[2])
        if found is None and not method:
            found = next((entry for prefix, entry in self._order_prefixes if api.startswith(prefix)), None)
        known[api] = found
        return found

    def tensor(self, canonical: str) -> TensorEntry | None:
        """What is known of the tensor that a call gives: by the names of TensorFlow 1, what is known by those of today."""
        found = self._tensors.get(canonical)
        if found is None and canonical.startswith(_EARLIER):
            found = self._tensors.get(self.canonical("tf." + canonical[len(_EARLIER) :]))
        return found

    def device(self, canonical: str) -> DeviceEntry | None:
        """The device that the value of a call or attribute names."""
        return self._devices.get(canonical)

    def inferred(self, name: str) -> InferredEntry | None:
        """The release that the use of a name implies."""
        if name.startswith("tensorflow."):
            name = "tf" + name[len("tensorflow") :]
        found = self._inferred.get(name)
        if found is None and name.partition(".")[0] in self._inferred_heads:
            found = next((one for prefix, one in self._inferred_prefixes if name.startswith(prefix)), None)
        if found is None and name.startswith(("tf.", "keras.", "?.")):
            found = self._inferred_methods.get(name.rpartition(".")[2])
        return found

    def inferred_by_arguments(self, canonical: str) -> Iterable[tuple[InferredEntry, list[str]]]:
        """Releases that the use of one of these arguments of a call implies."""
        every = f"{canonical.partition('.')[0]}.*"
        for name in (canonical, every):
            for release, api in self._inferred_arguments.get(name, ()):
                yield release, release.arguments[api]

    def inferred_by_files(self, canonical: str) -> Sequence[tuple[InferredEntry, NamedFile]]:
        """Releases that the name of a file implies which a call is given."""
        return self._inferred_files.get(canonical, ())

    def names_items(self, canonical: str) -> NamedItems | None:
        """The items of a result that a call is given names for, where their keys imply releases."""
        return self._inferred_namings.get(canonical)

    def runners(self, dotted: str) -> tuple[RunnerEntry, ...]:
        """What trains models or moves them to a device under this name, for different versions."""
        name = self.canonical(dotted)
        found = self._runners.get(name)
        if found is None:
            found = self._runners[name] = self._runner_patterns.of(name)
        return found

    def hooks(self, dotted: str) -> HookEntry | None:
        """Which methods a library calls of an object whose class is derived from the one of this name."""
        name = self.canonical(dotted)
        if name not in self._hooks:
            self._hooks[name] = next(iter(self._hook_patterns.of(name)), None)
        return self._hooks[name]

    def setting(self, name: str) -> SettingEntry | None:
        """A setting by its dotted name, or ``env:NAME``."""
        return self._settings.get(name)

    def mode_of(self, name: str) -> str | None:
        """The mode of the abstract state that the assignment of a library's attribute sets: the id of its entry."""
        setting = self._settings.get(name)
        return setting.id if setting is not None and setting.kind == "attribute" else None

    def settings(self) -> list[SettingEntry]:
        """All settings, each once."""
        return list({entry.id: entry for entry in self._settings.values()}.values())

    def rule(self, code_or_name: str) -> RulePage | None:
        """A rule page by code (any case) or name."""
        return self.rules.get(code_or_name.upper()) or self._names.get(code_or_name)


def _apis(layer: Compiled) -> Iterator[str]:
    for rng in layer.rng:
        yield from rng.apis
    for op in layer.ops:
        yield from op.apis
    for hazard in layer.hazards:
        yield from hazard.apis


@lru_cache(maxsize=2)
def load(root: Path | None = None) -> Knowledge:
    """The knowledge base, read once a process. Raises KnowledgeError."""
    return Knowledge(load_compiled(root))


def load_layers(layers: Sequence[Compiled]) -> Knowledge:
    """The knowledge base with layers on top. Raises KnowledgeError."""
    return Knowledge(load_compiled(), layers) if layers else load()


def load_with(files: Sequence[LayerFile], top: str) -> Knowledge:
    """The knowledge base with a user's own files on top, for the project in ``top``. Raises KnowledgeError."""
    if not files:
        return load()
    from d9mlint.knowledge.layers import check_rules, parse_file

    compiled = load_compiled()
    generators = [entry.id for entry in compiled.generators]
    layers: list[Compiled] = []
    for file in files:
        layers.append(parse_file(file, top, generators))
        generators += [entry.id for entry in layers[-1].generators]
    check_rules(layers, files, compiled)
    return Knowledge(compiled, layers)
