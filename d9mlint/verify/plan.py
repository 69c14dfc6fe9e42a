"""Which recipes a session runs: those of findings, those that are named, or all."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.known_calls import USE
from d9mlint.evidence.model import Given
from d9mlint.evidence.verdicts import fits, is_own_kernel, last_word, of_own_api
from d9mlint.verify.recipes import Recipe
from d9mlint.verify.scope import MOST
from d9mlint.verify.session import OP_DB

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.base.known_calls import KnownCall, Operand
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


def of_call(recipe: Recipe, finding: Finding) -> Recipe | None:
    """A recipe with what is known of a finding's call; None where nothing is that it could take."""
    call, parameters = finding.call, recipe.call.get(finding.subject)
    if call is None or not parameters:
        return None
    indices, found = set(_INDEX.findall(recipe.make)), call.dtypes()
    values: dict[str, Any] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    index: dict[str, tuple[int | float, ...]] = {}
    dtypes: dict[str, str] = {}
    absent, unknown = [], []
    taken = {_place(call, test.arg, test.at.get(finding.subject, test.pos)) for test in recipe.form}
    for name, parameter in parameters.items():
        keyword, position = parameter if isinstance(parameter, tuple) else (name, parameter)
        part, own = call.part(keyword)
        if part is None:
            unknown.append(name)
            continue
        place = part.name(own, position)
        taken.add(_place(call, keyword, position))
        tensor = part.tensors.get(place or "")
        if name in indices and tensor is not None and tensor.dtype == "bool":
            # A mask is no index: it names no element twice.
            return None
        if place is None and part.complete:
            absent.append(name)
        elif place in part.literals:
            values[name] = part.literals[place]
        elif (
            tensor is not None and tensor.shape is not None and (name in indices or _is_value(tensor, found))
        ):
            shapes[name] = tensor.shape
            if name in indices:
                dtypes |= {name: tensor.dtype} if tensor.dtype else {}
                # Which elements an index names decides whether it can race at all.
                if tensor.values is not None:
                    index[name] = tensor.values
                elif not tensor.random:
                    unknown.append(name)
        else:
            unknown.append(name)
    if not (values or shapes):
        return None
    not_taken = sorted({_shown(place) for place in _present(call) - taken if not _is_idle(place)})
    given = Given(
        values=values,
        shapes=shapes,
        index=index,
        dtypes=dtypes,
        call=call.digest,
        absent=tuple(absent),
        unknown=tuple(unknown),
        not_taken=tuple(not_taken),
        whole=not (unknown or not_taken) and len(found) == 1 and bool(shapes),
        scaled=any(math.prod(shape) > MOST for shape in shapes.values()),
    )
    return msgspec.structs.replace(
        recipe,
        id=f"{recipe.id} [{call.digest[:8]}]",
        dtypes=tuple(found) if len(found) == 1 else recipe.dtypes[:1],
        control="",
        given=given,
    )


_INDEX = re.compile(r"\bindex\('(\w+)'")
"""Which inputs of a recipe are indices."""
_IDLE = frozenset({"device", "name"})
"""Arguments that decide where a result lies or what it is called, and nothing that is computed."""


def _place(call: KnownCall, keyword: str, position: int | None) -> str:
    """Where an argument stands in a call, or in that of the module that it makes; empty where it is not given."""
    part, own = call.part(keyword)
    place = part.name(own, position) if part is not None else None
    return "" if place is None else place if part is call else USE + place


def _is_value(tensor: Operand, dtypes: frozenset[str]) -> bool:
    """Whether a tensor may be of the dtype that is measured, and not one of numbers or truth values beside it."""
    return not tensor.dtype or not dtypes or tensor.dtype in dtypes


def _present(call: KnownCall) -> set[str]:
    """Where all arguments stand."""
    return {*call.present, *(USE + place for place in (call.use.present if call.use is not None else ()))}


def _is_idle(place: str) -> bool:
    return place.removeprefix(USE) in _IDLE


def _shown(place: str) -> str:
    """An argument as a report names it."""
    bare = place.removeprefix(USE)
    return f"argument {int(bare) + 1}" if bare.isdecimal() else bare


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
