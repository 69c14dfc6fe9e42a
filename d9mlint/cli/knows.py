"""``d9mlint knows NAME``: every fact of the knowledge base about a name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from d9mlint.base import terminal
from d9mlint.base.errors import UsageError, nearest
from d9mlint.cli.own import known_here

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import (
        CallKind,
        Condition,
        DeviceEntry,
        GeneratorEntry,
        HazardEntry,
        HookEntry,
        InferredEntry,
        OpEntry,
        OrderEntry,
        RngEntry,
        RoleEntry,
        RunnerEntry,
        SettingEntry,
        TensorEntry,
    )

SHORT = {
    "F": "torch.nn.functional",
    "nn": "torch.nn",
    "np": "numpy",
    "pd": "pandas",
    "pl": "lightning.pytorch",
    "tf": "tf",
}
"""The names by which programs import these, as most people write them."""

BEHAVIOURS = {
    "deterministic_alternative": "deterministic in deterministic mode",
    "raises": "raises an error in deterministic mode",
    "silent": "may differ between runs, also in deterministic mode",
    "deterministic": "deterministic",
}


def known_words(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Completions of a name about which there are facts, as far as its next dot, or by its last part."""
    from click.shell_completion import CompletionItem

    from d9mlint import knowledge

    head, dot, _ = incomplete.partition(".")
    full = SHORT.get(head, head)
    found: dict[str, None] = {}
    for name in _names(knowledge.load()):
        if dot and full != head and name.startswith(f"{full}."):
            name = head + name[len(full) :]
        if name.startswith(incomplete) and "*" not in name:
            # So many names begin alike that they are offered one part at a time.
            end = name.find(".", len(incomplete))
            found[name if end < 0 else name[: end + 1]] = None
    return [CompletionItem(name) for name in sorted(found)]


@click.command(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.argument("name", shell_complete=known_words)
@click.option("--output-format", type=click.Choice(["text", "json"]), default="text", show_default=True)
def knows(name: str, output_format: str) -> int:
    """Show every fact about an API, an environment variable or an option.

    NAME is a name as programs write it (F.interpolate, np.random.seed), a full one, or the last part of one.
    Facts of your own, from the configuration key `knowledge`, are included. The exit status is 1 where nothing
    is known.
    """
    known = known_here()
    head, dot, rest = name.strip().partition(".")
    wanted = f"{SHORT.get(head, head)}{dot}{rest}"
    if not wanted:
        raise UsageError("Give the name of an API, an environment variable or an option.")
    entries = _about(known, wanted)
    if output_format == "json":
        import msgspec

        data = [{"fact": kind, **msgspec.to_builtins(entry)} for kind, entry in entries]
        click.echo(json.dumps(data, indent=2, ensure_ascii=False))
    elif entries:
        click.echo("\n\n".join(terminal.clean_patch("\n".join(_shown(entry))) for _, entry in entries))
    else:
        hint = nearest(wanted, _names(known))
        click.echo(terminal.clean(f"Nothing is known about {name}.{hint}"))
    return 0 if entries else 1


def _names(known: Knowledge) -> list[str]:
    return [name for _, entries in _facts(known) for entry in entries for name in _names_of(entry)]


def _facts(known: Knowledge) -> tuple[tuple[str, list[Any]], ...]:
    """All entries by the kind of fact."""
    kinds = ("orders", "runners", "devices", "tensors", "hooks", "inferred", "generators")
    return (
        ("op", known.op_entries()),
        ("rng", known.rng_entries()),
        ("hazard", list(known.hazards)),
        ("role", known.role_entries()),
        ("setting", known.settings()),
        *(
            (kind.removesuffix("s"), [e for layer in known.layers for e in getattr(layer, kind)])
            for kind in kinds
        ),
    )


def _names_of(entry: Any) -> list[str]:
    """The names that an entry is about, as programs call them."""
    from d9mlint.knowledge.schema import (
        GeneratorEntry,
        HazardEntry,
        InferredEntry,
        SettingEntry,
    )

    if isinstance(entry, SettingEntry):
        return entry.names
    if isinstance(entry, GeneratorEntry):
        return [entry.id]
    if isinstance(entry, HazardEntry):
        return [*entry.apis, *entry.attributes, *entry.env]
    if isinstance(entry, InferredEntry):
        return [*entry.apis, *entry.arguments]
    names: list[str] = entry.apis
    return names


def _about(known: Knowledge, wanted: str) -> list[tuple[str, Any]]:
    """The entries about a name, also those for all names of a form; failing that, those about names that end with it."""
    full = known.canonical(wanted)

    def matching(fits: Any) -> list[tuple[str, Any]]:
        return [
            (kind, entry)
            for kind, entries in _facts(known)
            for entry in entries
            if any(fits(api) for api in _names_of(entry))
        ]

    exact = matching(lambda api: api in (wanted, full) or known.canonical(api) == full)
    formed: list[tuple[str, Any]] = [("rng", entry) for entry in known.rng(wanted)]
    formed += [("runner", entry) for entry in known.runners(wanted)]
    if "." in wanted:
        found = (
            ("order", known.order(full, method=True)),
            ("hook", known.hooks(wanted)),
            ("tensor", known.tensor(full)),
            ("inferred", known.inferred(wanted)),
            ("name", _named(known, wanted, full)),
        )
        formed += [(kind, entry) for kind, entry in found if entry is not None]
    there = {(kind, entry.id) for kind, entry in exact}
    exact += [(kind, entry) for kind, entry in formed if (kind, entry.id) not in there]
    tail = f".{wanted}"
    return exact or matching(lambda api: api.endswith(tail))


@dataclass(frozen=True)
class Named:
    """What the tables say of a name: the one that it stands for, the class of what it gives, and what it does."""

    apis: list[str]
    stands_for: str
    gives: str
    does: list[str]
    id: str = ""
    provenance: list[str] = field(default_factory=list)


_DOES: dict[CallKind, str] = {
    "calls-objects": "calls objects that it is given as it calls functions",
    "draws-nothing": "draws no random numbers",
    "fits-estimator": "fits the estimator that it is given, on parts of the data",
    "fits-in-processes": "fits copies of the estimators that it was made with in worker processes",
    "fits-parts": "fits the estimators that it was made with",
    "registers-code": "keeps a function or class under a name, to use it later",
    "runs-methods": "runs methods of the objects that it is given, or of its receiver",
    "saves-models": "writes the weights of a model into a file or sends them somewhere",
    "shows": "shows something on the screen",
    "tells": "prints what it is given, writes it into a log, or has the system do something with it",
    "writes-functions": "writes or shows results",
    "writes-methods": "writes or shows results",
}


def _named(known: Knowledge, wanted: str, full: str) -> Named | None:
    """What the tables of names, results and calls say; None where they say nothing."""
    does = dict.fromkeys(words for kind, words in _DOES.items() if known.call_is(kind, full))
    gives = known.result_type(full) if any(full in layer.results for layer in known.layers) else ""
    other = full if full != wanted else ""
    return Named([wanted], other, gives, list(does)) if does or gives or other else None


def _of_name(entry: Named) -> Iterator[str]:
    yield ", ".join(entry.apis)
    if entry.stands_for:
        yield f"  another name of {entry.stands_for}"
    if entry.gives:
        yield f"  gives an object of {entry.gives}"
    for words in entry.does:
        yield f"  {words}"


def _shown(entry: Any) -> Iterator[str]:
    from d9mlint.knowledge import schema

    words: dict[type[Any], Any] = {
        Named: _of_name,
        schema.OpEntry: _op,
        schema.RngEntry: _rng,
        schema.HazardEntry: _hazard,
        schema.RoleEntry: _role,
        schema.SettingEntry: _setting,
        schema.OrderEntry: _order,
        schema.RunnerEntry: _runner,
        schema.DeviceEntry: _device,
        schema.TensorEntry: _tensor,
        schema.HookEntry: _hook,
        schema.InferredEntry: _inferred,
        schema.GeneratorEntry: _generator,
    }
    yield from words[type(entry)](entry)
    if getattr(entry, "note", ""):
        yield f"  note: {entry.note}"
    for source in entry.provenance:
        yield f"  source: {source}"


def _role(entry: RoleEntry) -> Iterator[str]:
    from d9mlint.interp.recording import ROLES

    yield ", ".join(entry.apis)
    argument = f", in the argument {entry.arg}" if entry.arg else ""
    yield f"  {entry.role} of {entry.library}{argument}: {ROLES[entry.role]}"
    yield from _conditions("only when", entry.when)


def _order(entry: OrderEntry) -> Iterator[str]:
    from d9mlint.interp.recording import ORDERS

    yield ", ".join(entry.apis)
    words = ORDERS[entry.role] or "is known for what it gives"
    reported = f", reported as {entry.rule}" if entry.rule else ""
    yield f"  order: {words}{reported}"
    if entry.gives in ("set", "sets"):
        yield "  gives a set" if entry.gives == "set" else "  gives several sets"
    if entry.prompts:
        yield "  the order that is written in a text counts"
    if entry.compares:
        yield "  it only counts which elements are equal"
    yield from _conditions("only when", entry.when)
    yield from _conditions("not when", entry.unless)
    for test in entry.texts:
        has, lacks = (", ".join(map(repr, words)) for words in (test.has, test.lacks))
        yield f"  only when {test.arg} has one of {has}, and none of {lacks}"
    if entry.elements:
        yield f"  elements: {entry.elements}"
    if entry.help:
        yield f"  remedy: {entry.help}"


def _runner(entry: RunnerEntry) -> Iterator[str]:
    yield ", ".join(entry.apis)
    versions = f" {entry.versions}" if entry.versions else ""
    yield f"  runner of {entry.library}{versions}: works on {entry.device}"
    yield from _conditions("on the CPU where", entry.cpu)
    for word, names in (("trains in", entry.trains), ("evaluates in", entry.evaluates)):
        if names:
            yield f"  {word}: {', '.join(names)}"
    if entry.constructs:
        yield "  trains when it is made"
    for asked in entry.asked:
        yield f"  the argument {asked.arg} names the device"
    if entry.switch:
        releases = f" in {entry.library} {entry.switches}" if entry.switches else ""
        yield f"  deterministic{releases} with: {entry.switch}"


def _device(entry: DeviceEntry) -> Iterator[str]:
    yield ", ".join(entry.apis)
    meant = {
        "owner": "of the object that has it",
        "argument": "that its argument names",
        "default": "on which tensors are made where none is named",
    }
    yield f"  names the device {meant.get(entry.gives, entry.gives)}"


_GRADIENTS = {
    "none": "requires no gradient unless an argument asks for it",
    "leaf": "requires a gradient",
    "first": "requires a gradient where its first input does",
    "inputs": "requires a gradient where an input does",
    "weights": "requires a gradient where its weights do",
    "unknown": "may require a gradient",
}


def _tensor(entry: TensorEntry) -> Iterator[str]:
    yield ", ".join(_names_of(entry))
    yield f"  gives a tensor that {_GRADIENTS[entry.grad]}"
    for name in ("device", "sizes", "rank", "dtype", "distinct", "repeats", "whole", "sparse"):
        value = getattr(entry, name)
        if value not in (None, "", False, "unknown"):
            yield f"  {name}: {'always' if value is True else value}"


def _hook(entry: HookEntry) -> Iterator[str]:
    yield ", ".join(entry.apis)
    yield f"  {entry.library} calls the methods of classes that are derived from it"
    for method, names in entry.called.items():
        yield f"  in {method}: {', '.join(names)}"
    if entry.always:
        yield f"  in each of its methods: {', '.join(entry.always)}"
    for method, names in entry.gives.items():
        yield f"  of what {method} gives: {', '.join(names)}"


def _inferred(entry: InferredEntry) -> Iterator[str]:
    yield ", ".join([*_names_of(entry), *(f"{prefix}*" for prefix in entry.prefixes), *entry.methods])
    if entry.version:
        yield f"  only releases of {entry.library} up to {entry.version} have it"
    if entry.since:
        yield f"  only releases of {entry.library} from {entry.since} on have it"
    for name, arguments in entry.arguments.items():
        yield f"  of {name}, this holds for the arguments {', '.join(arguments)}"
    if entry.implies:
        implied = ", ".join(f"{library} {version}" for library, version in entry.implies.items())
        yield f"  such programs were written for {implied}"


def _generator(entry: GeneratorEntry) -> Iterator[str]:
    yield entry.id
    yield f"  generator of {entry.library}: {entry.title}, seeded by {entry.seed}, reported as {entry.rule}"
    yield f"  begins from {'entropy' if entry.starts == 'entropy' else 'a constant'} where nothing seeds it"
    if entry.seeded_from:
        yield f"  takes its seed from {entry.seeded_from} when it is first drawn from"


def _only(variables: dict[str, list[str]]) -> Iterator[str]:
    """The values of variables with which a fact holds."""
    for variable, values in variables.items():
        shown = [f"{variable}={value}" if value else f"{variable} not set" for value in values]
        yield f"  only with {' or '.join(shown)}"


def _op(entry: OpEntry) -> Iterator[str]:
    yield ", ".join(entry.apis)
    passes = {"forward": "result", "backward": "gradient", "both": "result and gradient"}[entry.passes]
    differs = any(item.behaviour != "deterministic" for item in entry.history)
    devices = ", ".join(entry.devices)
    yield f"  op of {entry.library}: its {passes} {'can differ between runs' if differs else 'is known'} on {devices}"
    if entry.condition:
        yield f"  condition: {entry.condition}"
    yield from _conditions("only when", entry.when)
    yield from _conditions("not when", [*entry.unless, *entry.untrained])
    yield from _only(entry.only_env)
    for variable, values in entry.unless_env.items():
        yield f"  not with {variable}={' or '.join(values)}"
    for item in entry.history:
        versions = f"{entry.library} {item.versions}" if item.versions else "all versions"
        note = f" ({item.note})" if item.note else ""
        yield f"  {versions}: {BEHAVIOURS[item.behaviour]}{note}"
    if entry.remedy:
        yield f"  remedy: {entry.remedy}"


_WHEN = {"call": "when it is called", "construct": "when it is built", "use": "when what it builds is used"}
_NONE_SEEDS = {"entropy": "a new random seed", "ignored": "that nothing is seeded", "raises": "an error"}


def _rng(entry: RngEntry) -> Iterator[str]:
    yield ", ".join(entry.apis)
    versions = f" {entry.versions}" if entry.versions else ""
    yield f"  {entry.kind} of {entry.library}{versions}"
    if entry.seeds:
        seed = f" with the argument {entry.seed_arg}" if entry.seed_arg else ""
        yield f"  seeds: {', '.join(entry.seeds)}{seed}"
        if entry.file_calls:
            yield f"  as far as the functions do that the file names behind `{entry.file_calls}`"
        if entry.none_seed != "fixed":
            meaning = _NONE_SEEDS[entry.none_seed]
            taken = f"the seed of {entry.seed_from}, or " if entry.seed_from else ""
            yield f"  a seed of None means {taken}{meaning}"
    if entry.draws:
        yield f"  draws from: {', '.join(entry.draws)}, {_WHEN[entry.at]}"
    yield from _only(entry.only_env)
    yield from _conditions("only when", entry.when)
    yield from _conditions("not when", entry.unless)
    for effect in entry.sets:
        yield f"  sets {effect.name} to {_literal(effect.value)}" + (
            f" on versions {effect.versions}" if effect.versions else ""
        )
    if entry.does_not_seed:
        yield f"  does not seed: {', '.join(entry.does_not_seed)}"


def _hazard(entry: HazardEntry) -> Iterator[str]:
    yield ", ".join(_names_of(entry))
    versions = f" {entry.versions}" if entry.versions else ""
    yield f"  hazard of {entry.library}{versions}, reported as {entry.rule}: {entry.message}"
    yield from _conditions("only when", entry.when)
    yield from _conditions("not when", entry.unless)
    if entry.callback:
        draws = ", ".join(entry.callback.draws)
        yield f"  only when the function in the argument {entry.callback.arg} draws from {draws}"
    for word, names in (
        ("called", entry.unless_called),
        ("set on an object:", entry.unless_assigned),
        ("in the mode", entry.unless_mode),
        ("seeded:", entry.unless_seeded),
    ):
        if names:
            yield f"  not when {word} {', '.join(names)}"
    if entry.unless_in_memory:
        yield "  not when it gives what is held in memory"
    if entry.once:
        yield "  reported once for each program"
    if entry.made_by:
        late = f", and reported as {entry.late} if it is seeded later" if entry.late else ""
        yield f"  seeded where {', '.join(entry.made_by)} makes the object{late}"
    yield from _only(entry.only_env)
    for variable, values in entry.unless_env.items():
        yield f"  not with {variable}={' or '.join(values)}"
    if entry.for_each:
        yield f"  {entry.for_each} where it is called for each element of something, else {entry.severity}"
    yield f"  remedy: {entry.help}"


def _setting(entry: SettingEntry) -> Iterator[str]:
    yield ", ".join(entry.names)
    versions = f" {entry.versions}" if entry.versions else ""
    yield f"  {entry.kind} of {entry.library}{versions}"
    wanted = entry.value_for_determinism
    for name, value in (
        ("effect", entry.effect),
        ("default", entry.default),
        ("for determinism", ", ".join(wanted) if isinstance(wanted, list) else wanted),
        ("hazards", ", ".join([*entry.hazards, *entry.hazard_values])),
        ("must be set", entry.must_be_set),
    ):
        if value:
            yield f"  {name}: {value}"


def _conditions(word: str, conditions: Iterable[Condition]) -> Iterator[str]:
    for condition in conditions:
        yield f"  {word} {condition_text(condition)}"


def condition_text(condition: Condition) -> str:
    """A condition in words; see ``Condition`` for its parts."""
    import msgspec

    for name, word in (("all_of", " and "), ("any_of", " or "), ("none_of", " nor ")):
        inner = getattr(condition, name)
        if inner:
            text = word.join(f"({condition_text(one)})" for one in inner)
            if name == "none_of":
                return f"{'neither' if len(inner) > 1 else 'not'} {text}"
            return text
    data = msgspec.to_builtins(condition)
    subject = "the receiver" if condition.arg == "self" else condition.arg
    for name, word in _TESTS.items():
        value = getattr(condition, name)
        if value not in (None, msgspec.UNSET):
            if isinstance(value, bool) and name in _YES_OR_NO:
                return f"{subject} is {'' if value else 'not '}{word}"
            if value == "in rows":
                last = f"the last dimension, if {data['along']['arg']} names it"
                return f"{subject} is known to have no element twice along {last}"
            if name == "distinct":
                return f"{subject} is known to have no two equal {value}"
            return f"{subject} {word} {_literal(data[name])}"
    raise AssertionError(f"a condition without words: {condition}")


_TESTS = {
    "equals": "is",
    "not_equals": "is not",
    "all_equal": "is nothing but",
    "one_of": "is one of",
    "is_a": "is a value of the type",
    "given": "given",
    "truthy": "true",
    "greater": "is greater than",
    "same_as": "is, or is equal to,",
    "alike": "known to have only equal elements",
    "less_than": "is less than",
    "greater_than": "is greater than",
    "stem": "is, or is a path to,",
    "mentions": "is, or is made with,",
    "contains": "has the text",
    "runs": "is a command that runs",
    "words": "is a command with the words",
    "sparse": "known to have a sparse layout",
    "length": "has the length",
    "nonzero": "has this many numbers that are not 0:",
    "combines": "is enough for all combinations in",
    "has": "has the method",
    "made_by": "is made by",
    "rank": "has the rank",
    "dtype": "has the dtype",
    "elements": "has at least this many elements:",
    "distinct": "known to have no element twice",
    "requires_grad": "known to require grad",
    "last_size": "has a last dimension of the size",
    "single": "has one element along",
    "sizes": "has sizes of which",
    "uneven": "has a height or width of which",
    "multiple": "is, or has a last dimension of, a size that,",
}
"""The tests of a condition in words."""
_YES_OR_NO = frozenset({"given", "truthy", "alike", "distinct", "requires_grad", "sparse"})


def _literal(value: Any) -> str:
    if isinstance(value, dict):
        if "arg" in value:
            more = f" plus {value['plus']}" if value.get("plus") else ""
            return f"the argument {value['arg']}{more}"
        if "weights" in value:
            return f"the sum, weighted {', '.join(value['weights'])}, is more than {value['above']}"
        if "of" in value:
            parts = f"divided by {_literal(value['parts'])}, " if value.get("parts") else ""
            return f"{parts}is a multiple of {value['of']}"
        if "into" in value:
            less = f" less {value['minus']}" if value.get("minus") else ""
            return f"what is left{less} of it, divided by {value['by']}, is no multiple of {value['into']}"
    if isinstance(value, list):
        return ", ".join(map(_literal, value))
    return repr(value) if isinstance(value, str) else str(value)
