"""``d9mlint knows NAME``: every fact of the knowledge base about a name."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from d9mlint.base import terminal
from d9mlint.base.errors import UsageError, nearest
from d9mlint.cli.own import known_here

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import Condition, HazardEntry, OpEntry, RngEntry, RoleEntry, SettingEntry

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


def _facts(known: Knowledge) -> tuple[tuple[str, Iterable[Any]], ...]:
    """All entries by the kind of fact."""
    return (
        ("op", known.op_entries()),
        ("rng", known.rng_entries()),
        ("hazard", known.hazards),
        ("role", known.role_entries()),
        ("setting", known.settings()),
    )


def _names_of(entry: OpEntry | RngEntry | HazardEntry | RoleEntry | SettingEntry) -> list[str]:
    from d9mlint.knowledge.schema import HazardEntry, SettingEntry

    if isinstance(entry, SettingEntry):
        return entry.names
    return [*entry.apis, *entry.attributes, *entry.env] if isinstance(entry, HazardEntry) else entry.apis


def _about(known: Knowledge, wanted: str) -> list[tuple[str, Any]]:
    """The entries about a name: exact ones; failing that, those about names that end with it."""
    full = known.canonical(wanted)

    def matching(fits: Any) -> list[tuple[str, Any]]:
        return [
            (kind, entry)
            for kind, entries in _facts(known)
            for entry in entries
            if any(fits(api) for api in _names_of(entry))
        ]

    exact = matching(lambda api: api in (wanted, full) or known.canonical(api) == full)
    wild = [("rng", entry) for entry in known.rng(wanted)] if not exact else []
    tail = f".{wanted}"
    return exact or wild or matching(lambda api: api.endswith(tail))


def _shown(entry: OpEntry | RngEntry | HazardEntry | RoleEntry | SettingEntry) -> Iterator[str]:
    from d9mlint.knowledge.schema import HazardEntry, OpEntry, RngEntry, RoleEntry

    if isinstance(entry, OpEntry):
        yield from _op(entry)
    elif isinstance(entry, RngEntry):
        yield from _rng(entry)
    elif isinstance(entry, HazardEntry):
        yield from _hazard(entry)
    elif isinstance(entry, RoleEntry):
        yield ", ".join(entry.apis)
        yield f"  {entry.role} of {entry.library}" + (f", in the argument {entry.arg}" if entry.arg else "")
        yield from _conditions("only when", entry.when)
    else:
        yield from _setting(entry)
    if entry.note:
        yield f"  note: {entry.note}"
    for source in entry.provenance:
        yield f"  source: {source}"


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
