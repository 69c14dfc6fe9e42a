"""Which recipes a session runs: those of findings, those that are named, or all."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.known_calls import USE
from d9mlint.evidence.verdicts import fits, is_own_kernel, last_word, of_own_api
from d9mlint.verify.recipes import Recipe
from d9mlint.verify.session import OP_DB
from d9mlint.verify.taking import of_call

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.knowledge import Knowledge

WHOLE = {"F": "torch.nn.functional", "nn": "torch.nn", "Tensor": "torch.Tensor", "tensorflow": "tf"}
"""Names under which programs import what stands before the first dot."""


def can_be_run(finding: Finding, recipes: Sequence[Recipe]) -> bool:
    """Whether a finding is about an op or a kernel, or about a setting that some recipe stands for."""
    known = any(_serves(recipe, finding) for recipe in recipes)
    return bool(finding.op) or is_own_kernel(finding) or known


def _serves(recipe: Recipe, finding: Finding) -> bool:
    return (finding.op in recipe.ops if finding.op else finding.subject in recipe.settings) and fits(
        recipe, finding
    )


def for_findings(findings: Iterable[Finding], recipes: Sequence[Recipe]) -> list[Recipe]:
    """The recipes of findings, in the order of the table, each after those that take the arguments of a flagged
    call; for PyTorch ops without one, torch's own operator database."""
    chosen: set[str] = set()
    weak: dict[str, Recipe] = {}
    calls: dict[str, dict[str, Recipe]] = {}
    for finding in findings:
        own = of_own_api([r for r in recipes if _serves(r, finding)], finding.subject)
        chosen.update(r.id for r in own)
        for recipe in own:
            made = of_call(recipe, finding)
            if made is not None:
                calls.setdefault(recipe.id, {})[made.id] = made
        if not own and finding.op and finding.subject.startswith("torch."):
            weak.setdefault(finding.subject, from_op_db(finding.subject, finding.op))
    ordered = [one for r in recipes if r.id in chosen for one in (*calls.get(r.id, {}).values(), r)]
    return [*ordered, *(weak[name] for name in sorted(weak))]


def named(names: Iterable[str], recipes: Sequence[Recipe], known: Knowledge) -> list[Recipe]:
    """The recipes that names mean: a recipe, an op of the knowledge base, a setting, an API under any of its
    names or the end of one. Raises UsageError for a name that means nothing."""
    chosen: set[str] = set()
    weak: dict[str, Recipe] = {}
    for name in names:
        full = _full(name)
        own = _meant(name, full, recipes, known)
        chosen.update(own)
        if own:
            continue
        if not re.fullmatch(r"torch(\.\w+)+", full):
            raise UsageError(_unknown(name, recipes))
        full = known.canonical(full)
        weak[full] = from_op_db(full)
    return [*(r for r in recipes if r.id in chosen), *weak.values()]


def _unknown(name: str, recipes: Sequence[Recipe]) -> str:
    plain = {one.partition(" ")[0].partition("(")[0] for r in recipes for one in (r.id, r.api)}
    near = nearest(name, plain | {one.rpartition(".")[2] for one in plain})
    other = " Ops of PyTorch without one go by their full names, such as torch.nn.functional.gelu."
    return (
        f"There is no recipe for {name.strip() or 'an empty name'}.{near}{other if name.islower() else ''}"
        " See `d9mlint recipe --all`."
    )


def _full(name: str) -> str:
    """A name with the abbreviations of programs written out: ``F.pad``, ``aten::index_add``, ``index add``."""
    name = re.sub(r"[\s-]+", "_", name.strip()).rpartition("::")[2]
    name = name.removeprefix("torch.ops.aten.").removesuffix(".default")
    head, dot, rest = name.partition(".")
    return f"{WHOLE.get(head, head)}.{rest}" if dot else name


def _meant(name: str, full: str, recipes: Sequence[Recipe], known: Knowledge) -> set[str]:
    """Ids of the recipes that a name means. An API is meant by its end as it is written; failing that in any
    case, or by another form of the op: ``torch.nn.Dropout`` has the recipes of ``torch.nn.functional.dropout``.
    """
    ids = {r.id for r in recipes if name in (r.id, *r.ops)}
    ends = list(filter(None, {tuple(_words(full)), tuple(_words(known.canonical(full)))}))
    root = full.partition(".")[0] if "." in full else ""
    same_word = {
        r.id for r in recipes if last_word(r.api) == last_word(full) and r.api.startswith(root) and ends
    }
    found = _ending(ends, full, recipes, known, str)
    if not root and full.islower():
        found |= same_word
    return ids | (found or (set() if ids else _ending(ends, full, recipes, known, str.lower) or same_word))


def _ending(
    ends: Sequence[Sequence[str]],
    full: str,
    recipes: Sequence[Recipe],
    known: Knowledge,
    fold: Callable[[str], str],
) -> set[str]:
    """Ids of the recipes that stand for an API or a setting with one of these ends. Where an entry of the
    knowledge base has the API and its recipes do not, they are those of the same op, or else all."""

    def means(api: str) -> bool:
        words = list(map(fold, _words(api)))
        return any(words[-len(end) :] == list(map(fold, end)) for end in ends)

    found = [r for r in recipes if any(map(means, (r.api, *r.settings)))]
    libraries = {r.library for r in found}
    ids = {r.id for r in found}
    for entry in known.op_entries():
        own = [r for r in recipes if entry.id in r.ops] if any(map(means, entry.apis)) else []
        if not any(r in found for r in own):
            same = {r.id for r in own if last_word(r.api) == last_word(full)}
            ids.update(same or (r.id for r in own if r.library not in libraries))
    return ids


def _words(name: str) -> list[str]:
    """``torch``, ``Tensor`` and ``index_add`` of ``torch.Tensor.index_add_``; a remark behind does not count."""
    bare = name.partition(" ")[0].partition("(")[0]
    return [word for word in bare.rstrip("_").split(".") if word]


def from_op_db(api: str, op: str = "") -> Recipe:
    """A recipe that stands for the samples of torch's operator database."""
    return Recipe(
        id=f"{OP_DB}{api}",
        api=api,
        phase="forward+backward",
        make="",
        fn="",
        ops=(op,) if op else (),
        library="torch",
    )


def told(recipe: Recipe) -> str:
    """A recipe as text: what it is about, what is known of it, and its code."""
    if recipe.id.startswith(OP_DB):
        return f"{recipe.api} has no recipe: samples from torch's own operator database are run.\n"
    known = {
        "stands for": ", ".join((*recipe.ops, *recipe.settings)),
        "dtypes": ", ".join(recipe.dtypes),
        "gradients": ", ".join(recipe.grad),
        "processes": {"same": "", "fresh": "one for each run", "both": "one, then one for each run"}[
            recipe.process
        ],
        "needs": ", ".join(recipe.needs),
        "takes": "; ".join(f"{api}({', '.join(_parameters(one))})" for api, one in recipe.call.items()),
        "mechanism": recipe.mechanism,
        "source": recipe.source,
        "note": recipe.note,
        "control": recipe.control,
    }
    lines = [f"{recipe.id}: {recipe.api}, {recipe.phase}"]
    lines += [f"  {label + ':':<11} {' '.join(said.split())}" for label, said in known.items() if said]
    for label, code in (("inputs", recipe.make), ("run", recipe.fn)):
        lines += [f"  {label}:", *(f"      {line}" for line in code.splitlines())]
    return "\n".join(lines) + "\n"


def _parameters(taken: Mapping[str, int | tuple[str, int]]) -> list[str]:
    """The parameters of an API that a recipe takes of a call of it."""
    return [name if isinstance(one, int) else one[0].removeprefix(USE) for name, one in taken.items()]
