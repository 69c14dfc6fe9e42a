"""Which recipes a session runs: those of findings, those that are named, or all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from d9mlint.errors import UsageError, nearest
from d9mlint.verify.recipes import Recipe
from d9mlint.verify.session import OP_DB

if TYPE_CHECKING:
    from d9mlint.findings import Finding
    from d9mlint.knowledge import Knowledge


def can_be_run(finding: Finding, recipes: Sequence[Recipe]) -> bool:
    """Whether a finding is about an op, or about a setting that some recipe stands for."""
    return bool(finding.op) or any(_serves(recipe, finding) for recipe in recipes)


def _serves(recipe: Recipe, finding: Finding) -> bool:
    return finding.op in recipe.ops if finding.op else finding.subject in recipe.settings


def for_findings(findings: Iterable[Finding], recipes: Sequence[Recipe]) -> list[Recipe]:
    """The recipes of findings, in the order of the table; for PyTorch ops without one, torch's own
    operator database."""
    chosen: set[str] = set()
    weak: dict[str, Recipe] = {}
    for finding in findings:
        own = [r for r in recipes if _serves(r, finding)]
        # An entry of the knowledge base may join several APIs: the finding's own is enough.
        chosen.update(r.id for r in [r for r in own if r.api == finding.subject] or own)
        if not own and finding.subject.startswith("torch."):
            weak.setdefault(finding.subject, from_op_db(finding.subject, finding.op))
    return [*(r for r in recipes if r.id in chosen), *(weak[name] for name in sorted(weak))]


def named(names: Iterable[str], recipes: Sequence[Recipe], known: Knowledge) -> list[Recipe]:
    """The recipes that names mean: a recipe, an op of the knowledge base, an API under any of its names, or
    its last word. Raises UsageError for a name that means nothing."""
    chosen: set[str] = set()
    weak: list[Recipe] = []
    for name in names:
        own = _meant(name, recipes, known)
        chosen.update(own)
        if own:
            continue
        if not name.startswith("torch."):
            words = {word for r in recipes for word in (r.id, r.api, _last(r.api))}
            raise UsageError(f"There is no recipe for {name}.{nearest(name, words)}")
        weak.append(from_op_db(known.canonical(name)))
    return [*(r for r in recipes if r.id in chosen), *weak]


def _meant(name: str, recipes: Sequence[Recipe], known: Knowledge) -> list[str]:
    exact = [r.id for r in recipes if name in (r.id, r.api) or name in r.ops or name in r.settings]
    if exact:
        return exact
    entries = {entry.id for entry in known.ops(name)}
    canonical = known.canonical(name)
    return [
        r.id
        for r in recipes
        if entries.intersection(r.ops) or canonical == r.api or _last(r.api) == name.rstrip("_")
    ]


def _last(api: str) -> str:
    """``index_add`` of ``torch.Tensor.index_add_``."""
    return api.partition(" ")[0].partition("(")[0].rpartition(".")[2].rstrip("_")


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
