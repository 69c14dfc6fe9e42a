"""The facts about ops and settings: complete, well formed, and true of the installed PyTorch."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from d9mlint import knowledge
from d9mlint.knowledge.loader import Compiled, load_compiled
from d9mlint.knowledge.schema import Condition, OpEntry, Other
from d9mlint.knowledge.versions import matches, split

DATA = Path(__file__).parent / "data"

# In the list of torch.use_deterministic_algorithms, but not what the installed torch does.
DOCS_ARE_BEHIND = {
    (
        "torch.nn.functional.interpolate",
        "raises",
    ): "linear raises; bilinear, trilinear and bicubic came later",
    ("torch.nn.ReflectionPad2d", "raises"): "has a deterministic kernel since 2.7 and no alert",
    ("torch.cumsum", "raises"): "deterministic under the mode since 2.6; the docs were corrected in 2.14",
}


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return load_compiled()


def listed(name: str) -> list[str]:
    return [line for line in (DATA / name).read_text().splitlines() if not line.startswith("#")]


def test_no_fact_is_lost(compiled: Compiled) -> None:
    have = {f"op {op.id}" for op in [*compiled.ops, *compiled.hazards]}
    have |= {f"setting {s.id}" for s in compiled.settings}
    assert sorted(set(listed("knowledge_ids.txt")) - have) == []


def test_no_name_is_lost(compiled: Compiled) -> None:
    have = {api for op in [*compiled.ops, *compiled.hazards] for api in op.apis}
    assert sorted(set(listed("op_names.txt")) - have) == []


def test_every_op_is_well_formed(compiled: Compiled) -> None:
    rules = {page.code for page in compiled.rules}
    for op in compiled.ops:
        assert op.history and op.apis and op.remedy and op.provenance, op.id
        assert not op.rule or op.rule in rules, op.id
        for item in op.history:
            split(item.versions)


IMPERATIVES = re.compile(
    r"(?:Allocate|Allow|Call|Compute|Enable|Flatten|Give|Leave|Multiply|Pad|Pass|Pool|"
    r"Put|Read|Reduce|Resize|Run|Satisfy|Set|Sort|Sum|Take|Train|Use)\b",
    re.IGNORECASE,
)
"""Verbs with which a remedy begins."""


def test_every_remedy_says_what_to_do(compiled: Compiled) -> None:
    odd = {}
    for op in compiled.ops:
        # Parts may say for which release or purpose they are: `TF >= 2.8: call this`, `For global pooling use this`.
        text = re.sub(r"^(?:TF [^:]*: |For [a-z ]+ (?=use ))", "", op.remedy)
        if text != "none needed" and not IMPERATIVES.match(text):
            odd[op.id] = op.remedy
    assert odd == {}


def test_histories_do_not_overlap(compiled: Compiled) -> None:
    for op in compiled.ops:
        library = split(op.history[0].versions)[0] or op.library
        for release in compiled.newest.get(library, "").split():
            answers = [item.behaviour for item in op.history if matches(item.versions, release)]
            assert len(answers) <= 1, f"{op.id} on {release}: {answers}"


def test_one_call_form_has_one_entry_for_each_condition(compiled: Compiled) -> None:
    """The same API may stand in several entries only if conditions, device or pass tell them apart."""
    seen: dict[Any, str] = {}
    for op in compiled.ops:
        conditions = repr((op.when, op.unless))
        for api in op.apis:
            key = (api, conditions, tuple(op.devices), op.passes, op.condition)
            assert key not in seen, f"{api} in {op.id} and {seen[key]}"
            seen[key] = op.id


def _torch_object(name: str) -> Any:
    torch = pytest.importorskip("torch")
    pytest.importorskip("torch.nn.attention.flex_attention")
    found: Any = torch
    for part in name.split(".")[1:]:
        found = getattr(found, part, None)
    return found


def _signatures(name: str) -> list[list[str]]:
    """The argument names of each overload, without the receiver of a method."""
    torch = pytest.importorskip("torch")
    try:
        names = [p.name for p in inspect.signature(_torch_object(name)).parameters.values()]
        if names and not {"args", "kwargs"} & set(names):
            return [names[1:] if names[0] == "self" else names]
    except (TypeError, ValueError):
        pass
    schemas = torch._C._jit_get_schemas_for_operator(f"aten::{name.rpartition('.')[2]}")
    first = 1 if name.startswith("torch.Tensor.") else 0
    return [[a.name for a in s.arguments][first:] for s in schemas if "out" not in s.overload_name]


def torch_ops(compiled: Compiled) -> list[OpEntry]:
    return [op for op in compiled.ops if op.library == "torch" and not op.only_env]


def test_torch_names_exist(compiled: Compiled) -> None:
    pytest.importorskip("torch")
    names = {api for op in torch_ops(compiled) for api in op.apis if api.startswith("torch.")}
    assert sorted(name for name in names if _torch_object(name) is None) == []


def arguments(conditions: list[Condition]) -> list[Condition | Other]:
    """All arguments that conditions name: inside combinations, and those they compare with."""
    found: list[Condition | Other] = []
    for one in conditions:
        inner = [*(one.all_of or []), *(one.any_of or []), *(one.none_of or [])]
        others = [other for other in (one.less_than, one.greater_than) if other is not None]
        found += [one] if one.arg not in ("", "self") else []
        found += [other for other in others if other.arg != "self"]
        found += arguments(inner)
    return found


def _position_is_right(condition: Condition | Other, signature: list[str]) -> bool:
    if condition.arg not in signature:
        return True
    return condition.pos is None or signature.index(condition.arg) == condition.pos


def _alike(one: Condition | Other, other: Condition | Other) -> bool:
    """Whether two conditions differ in positions only."""
    if not isinstance(one, Condition) or not isinstance(other, Condition):
        return one == other
    apart = [msgspec.structs.replace(c, pos=None, single=c.single and c.single.arg) for c in (one, other)]
    return apart[0] == apart[1]


def test_conditions_name_arguments_as_torch_does(compiled: Compiled) -> None:
    pytest.importorskip("torch")
    for op in torch_ops(compiled):
        for api in op.apis:
            signatures = _signatures(api)
            if not signatures:
                continue
            conditions = arguments([*op.when, *op.unless])
            for condition in conditions:
                known = [s for s in signatures if condition.arg in s]
                # A form without the argument at all behaves as its default says.
                assert known or repr(condition.default) != "UNSET", f"{op.id}: {api} has no {condition.arg}"
                # Functions and methods of one entry have a condition each.
                forms = [c for c in conditions if _alike(c, condition)]
                assert not known or any(_position_is_right(c, s) for c in forms for s in known), (
                    f"{op.id}: {condition.arg} of {api} is not at {condition.pos}"
                )


def documented() -> list[tuple[str, str]]:
    """The ops that the installed torch documents, and what it says the mode does with them."""
    torch = pytest.importorskip("torch")
    text = torch.use_deterministic_algorithms.__doc__
    parts = re.split(r"operations will (act\s+deterministically|throw a)", text.partition("In addition")[0])
    found = []
    for said, part in zip(parts[1::2], parts[2::2], strict=True):
        behaviour = "deterministic_alternative" if said.startswith("act") else "raises"
        names = re.findall(r"\* :\w+:`([\w.]+)`", part)
        found += [(name, behaviour) for name in names]
    return found


def test_every_op_that_torch_documents_is_known_to_behave_so() -> None:
    torch = pytest.importorskip("torch")
    kb = knowledge.load()
    version = torch.__version__.partition("+")[0]
    ops = documented()
    assert len(ops) > 40
    wrong = []
    for name, behaviour in ops:
        known = {
            item.behaviour
            for op in kb.ops(name)
            for item in op.history
            if matches(item.versions, version) and op.devices != ["mps"]
        }
        if behaviour not in known and (name, behaviour) not in DOCS_ARE_BEHIND:
            wrong.append((name, behaviour, sorted(known)))
    assert wrong == []
