"""Fixes of switches and environment variables that hold for a whole program."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from d9mlint.base.findings import (
    ITEM_OF,
    RAISES,
    RECURRENT,
    UNCOVERED,
    VARIABLE,
    WARNED,
    Confidence,
    Edit,
    Finding,
    Fix,
)
from d9mlint.fix.builders import changes
from d9mlint.fix.builders.code import Code
from d9mlint.fix.builders.context import SAFE, Context, made
from d9mlint.fix.builders.seeds import MISSING, seed_block
from d9mlint.fix.builders.start import Start, assigned_value, assignments, environment, with_one_import

CUBLAS = ("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
CUBLAS_OF_RECURRENT = ("CUBLAS_WORKSPACE_CONFIG", ":16:8")
"""What the page of cuDNN's recurrent layers asks for, and every release of deterministic mode takes too."""
BLOCKING = ("CUDA_LAUNCH_BLOCKING", "1")
"""What it asks for with CUDA 10.1, for which PyTorch was built before 1.5."""
TRAINERS = {
    "lightning.Trainer": "deterministic",
    "lightning.pytorch.Trainer": "deterministic",
    "pytorch_lightning.Trainer": "deterministic",
    "transformers.TrainingArguments": "full_determinism",
    "transformers.Seq2SeqTrainingArguments": "full_determinism",
    "trl.SFTConfig": "full_determinism",
    "trl.DPOConfig": "full_determinism",
    "trl.GRPOConfig": "full_determinism",
}


def _start(context: Context, finding: Finding, group: Sequence[Finding] = ()) -> Start | None:
    """The start of the program that a finding is about, before all that a group of findings is about."""
    code = context.code(context.entry(finding))
    if code is None or context.entry_offset(finding) is None:
        return None
    offsets = [o for f in (finding, *group) if (o := context.entry_offset(f)) is not None]
    start = Start(code, offsets, context.is_own)
    return start if start.anchor is not None else None


def _behavior(context: Context, finding: Finding) -> str:
    """What the reported op does in deterministic mode in the targeted release."""
    entry = context.op(finding)
    if entry is None or entry.library != "torch" or any(c.arg == "deterministic" for c in entry.when):
        return ""
    return next(
        (h.behaviour for h in entry.history if context.matches(finding, entry.library, h.versions)), ""
    )


def deterministic_mode(context: Context, finding: Finding) -> Fix | None:
    """DET302, and DET401 for ops that have a deterministic implementation: the mode by the name that it has in the
    targeted release, with the cuBLAS variable where that is needed; a trainer's own argument where there is one
    trainer. None where the program would raise RuntimeError: such an op has to be replaced first."""
    entry = context.entry(finding)
    own = _behavior(context, finding) if finding.code == "DET401" else "deterministic_alternative"
    if not entry or own != "deterministic_alternative" or "option" in finding.remedy:
        return None
    group = [f for f in context.of_entry(entry) if f.code in ("DET302", "DET401")]
    raising = [f for f in context.of_entry(entry) if f.code in ("DET401", "DET404")]
    # Whether an op of low confidence raises depends on what is unknown, such as the rank of its inputs.
    certain = {f.op: f for f in raising if f.confidence is not Confidence.LOW}
    if any(_behavior(context, f) == "raises" for f in certain.values()):
        return None
    if any(RAISES in f.remedy or "process" in f.remedy for f in group):
        return None
    warns = any(WARNED in f.remedy for f in group)
    start = _start(context, finding, group)
    if start is None:
        return None
    where, trainers = start.code, _trainers(context, finding, start.code)
    path = entry
    if "trainer" in finding.remedy and not warns and (switched := _defaults(context, finding)) is not None:
        return switched
    if not trainers and "trainer" in finding.remedy:
        path, where, trainers = _trainers_elsewhere(context, finding, entry, start.code)
        if not trainers:
            # What the help says cannot be written, and nothing else is.
            return None
    edits: list[Edit] | None
    names = {TRAINERS[where.qualified(one.func)] for one in trainers}
    own_loop = finding.code == "DET302" and "trainer" not in finding.remedy
    if not own_loop and (len(trainers) == 1 or (len(names) == 1 and "trainer" in finding.remedy)):
        name = names.pop()
        if warns and name != "deterministic":
            return None
        value = '"warn"' if warns else "True"
        changed = [changes.set_argument(where, one, name, value) for one in trainers]
        edits = [edit for found in changed if found is not None for edit in found]
        return made(f"pass `{name}={value}`", edits if None not in changed else None, path=path)
    if "trainer" in finding.remedy and context.matches(finding, "lightning", "<2.0"):
        # What the trainer is made from cannot be changed here, and it sets the mode itself.
        return None
    if context.matches(finding, "torch", "<1.7"):
        # There is no such mode yet.
        return None
    switch = (
        "set_deterministic" if context.matches(finding, "torch", "<1.8") else "use_deterministic_algorithms"
    )
    start.add(f"{start.name('torch')}.{switch}(True{', warn_only=True' if warns else ''})")
    edits = list(start.edits() or ())
    if not edits:
        return None
    if context.may_match(finding, "torch", ">=1.7,<2.10") and not assignments(start.code, CUBLAS[0]):
        variable = environment(start.code, [_workspace(finding, *group)])
        if variable is not None:
            variable, edits = _behind(start.code, variable, edits)
            # Where both would replace one text, the variable follows in the next round.
            edits = _joined([*variable, *edits]) or edits
            edits = with_one_import(start.code, edits)
    return made("enable deterministic algorithms", edits, path=entry)


def _defaults(context: Context, finding: Finding) -> Fix | None:
    """The switch in the dictionary of arguments that the reported call passes; None where it takes none, or that is written
    elsewhere."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    path = finding.path
    word = next((one.removeprefix(ITEM_OF) for one in finding.remedy if one.startswith(ITEM_OF)), "")
    if not word:
        return None
    name, _, item = word.partition("=")
    given = changes.argument(call, name)
    if given is None:
        edits = changes.set_argument(code, call, name, f"{{{item}}}")
        return made(f"pass `{name}={{{item}}}`", edits, path=path)
    if not isinstance(given, ast.Dict):
        return None
    start = code.start(given) + 1
    text = f"{item}, " if given.keys else item
    return made(f"add `{item}`", (Edit(start, start, text),), path=path)


def _trainers(context: Context, finding: Finding, code: Code) -> list[ast.Call]:
    """The calls in a file that make trainers, or their arguments, which take the switch in the targeted release."""
    return [
        call
        for call in code.calls(tuple(TRAINERS))
        if all(
            not one.switches or context.matches(finding, one.library, one.switches)
            for one in context.known.runners(code.qualified(call.func))
        )
    ]


def _trainers_elsewhere(
    context: Context, finding: Finding, entry: str, code: Code
) -> tuple[str, Code, list[ast.Call]]:
    """The first of the files on the way to a finding in which trainers, or their arguments, are made, with these calls."""
    for path in dict.fromkeys(
        (finding.path, *(step.path for step in reversed(finding.flow) if not step.beside))
    ):
        other = context.code(path) if path != entry else None
        found = _trainers(context, finding, other) if other is not None else []
        if other is not None and found:
            return path, other, found
    return entry, code, []


def _behind(code: Code, variable: tuple[Edit, ...], edits: list[Edit]) -> tuple[tuple[Edit, ...], list[Edit]]:
    """Edits of which the one that imports torch above a variable of the environment is written right behind it."""
    (first, *others) = variable
    early = [one for one in edits if one.start < first.start and one.content.strip() == "import torch"]
    if not early or others or not first.content.endswith("\n"):
        return variable, edits
    followed = code.source.raw.startswith(("import ", "from "), first.end)
    content = f"{first.content}import torch\n{'' if followed else chr(10)}"
    return (Edit(first.start, first.end, content),), [one for one in edits if one not in early]


def _joined(edits: list[Edit]) -> list[Edit] | None:
    """Edits of one file, where what is inserted at one place is inserted in the order of the edits; None where one of
    two edits at one place replaces text."""
    found: dict[int, Edit] = {}
    for edit in edits:
        before = found.get(edit.start)
        if before is not None and (before.end, edit.end) != (edit.start, edit.start):
            return None
        found[edit.start] = (
            edit if before is None else Edit(edit.start, edit.end, before.content + edit.content)
        )
    return list(found.values())


def cublas(context: Context, finding: Finding) -> Fix | None:
    """DET305, DET405: the cuBLAS variable, before anything that reads it is imported."""
    entry = context.entry(finding)
    code = context.code(entry)
    if code is None:
        return None
    if finding.code != "DET405":
        return _variable(code, entry, *_workspace(finding))
    return _variable(code, entry, *(CUBLAS_OF_RECURRENT if VARIABLE in finding.remedy else BLOCKING))


def _workspace(*findings: Finding) -> tuple[str, str]:
    """The variable that gives cuBLAS its workspace, with the value that some findings ask for."""
    return CUBLAS_OF_RECURRENT if any(RECURRENT in f.remedy for f in findings) else CUBLAS


def _variable(code: Code, entry: str, name: str, value: str) -> Fix | None:
    """Set a variable at the start of a file; a statement that sets it further down is taken away."""
    edits: list[Edit] = []
    late = assignments(code, name)
    block = environment(code, [(name, value)])
    if block is None:
        return None
    for stmt in late:
        if code.start(stmt) < block[0].start:
            # Early enough, so its value is what is wrong.
            old = assigned_value(stmt)
            if not isinstance(old, ast.Constant) or old.value == value:
                return None
            return made(f"set `{name}={value}`", (changes.replace(code, old, f'"{value}"'),), path=entry)
        edits += changes.delete_statement(code, stmt)
    edits = with_one_import(code, [*block, *edits])
    return made(f"set `{name}={value}` before the imports", edits, path=entry)


def op_determinism(context: Context, finding: Finding) -> Fix | None:
    """DET306: op determinism by the switch of the targeted release. None where the program would raise RuntimeError: what
    starts from entropy has to be seeded first."""
    if "process" in finding.remedy or "option" in finding.remedy or RAISES in finding.remedy:
        return None
    start = _start(context, finding)
    if start is None:
        return None
    entry = context.entry(finding)
    if context.matches(finding, "tensorflow", ">=2.8"):
        if any(seed_block(context, f) is None for f in context.of_entry(entry) if _draws_by_ops(f)):
            # An op that draws without a seed raises RuntimeError with the switch: the seed is set by hand first.
            return None
        if any(_is_refused(context, f) for f in context.of_entry(entry)):
            return None
        start.add(f"{start.name('tensorflow')}.config.experimental.enable_op_determinism()")
        return made("enable op determinism", start.edits(), path=entry)
    if not context.matches(finding, "tensorflow", ">=1.14") or UNCOVERED in finding.remedy:
        return None
    if not context.matches(finding, "tensorflow", ">=2.1"):
        return _variable(start.code, entry, "TF_CUDNN_DETERMINISTIC", "1")
    if context.matches(finding, "tensorflow", ">=2.5") and not any(
        assignments(start.code, name) for name in TF_VARIABLES_OF_2_5
    ):
        block = environment(start.code, [(name, "1") for name in TF_VARIABLES_OF_2_5])
        title = f"set `{'` and `'.join(TF_VARIABLES_OF_2_5)}` before the imports"
        return made(title, block, path=entry) if block is not None else None
    return _variable(start.code, entry, "TF_DETERMINISTIC_OPS", "1")


TF_VARIABLES_OF_2_5 = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_USE_FRONTEND")
"""What releases 2.5 to 2.7 need: without the second one, they may select another convolution of cuDNN."""


def _draws_by_ops(finding: Finding) -> bool:
    """Whether a finding is about ops of TensorFlow that draw before it is seeded."""
    return finding.code in MISSING and finding.subject == "tensorflow"


def _is_refused(context: Context, finding: Finding) -> bool:
    """Whether a finding is about an op of TensorFlow that raises with op determinism in the targeted release."""
    op = (
        context.op(finding) if finding.code == "DET403" and finding.confidence is not Confidence.LOW else None
    )
    return op is not None and any(
        one.behaviour == "raises" and context.matches(finding, op.library, one.versions) for one in op.history
    )


def unset(context: Context, finding: Finding) -> Fix | None:
    """DET307: do not set a variable that works against deterministic mode."""
    code = context.own(finding)
    node = code.at(finding.start, finding.end) if code else None
    if code is None or node is None:
        return None
    stmt = code.statement(node)
    if stmt not in assignments(code, finding.subject):
        return None
    return made("do not set it", changes.delete_statement(code, stmt), SAFE)


def earlier(context: Context, finding: Finding) -> Fix | None:
    """DET308: set a variable before the imports that read it."""
    code = context.own(finding)
    node = code.at(finding.start, finding.end) if code else None
    if code is None or node is None or (finding.entry_point and context.entry(finding) != finding.path):
        return None
    if finding.remedy:
        return None
    stmt = code.statement(node)
    value = assigned_value(stmt)
    if stmt not in assignments(code, finding.subject) or not isinstance(value, ast.Constant):
        return None
    if not isinstance(value.value, str):
        return None
    block = environment(code, [(finding.subject, value.value)])
    if block is None or block[0].start >= code.start(stmt) or '"' in value.value or "\\" in value.value:
        return None
    edits = with_one_import(code, [*block, *changes.delete_statement(code, stmt)])
    return made("set it before the imports", edits)


def fusion(context: Context, finding: Finding) -> Fix | None:
    """DET501: no fusion of tensors in Horovod."""
    entry = context.entry(finding) or finding.path
    code = context.code(entry)
    return _variable(code, entry, finding.subject, "0") if code is not None else None


def replaced_switch(context: Context, finding: Finding) -> Fix | None:
    """DET304: the call that replaced a variable."""
    code = context.own(finding)
    node = code.at(finding.start, finding.end) if code else None
    if code is None or node is None or not context.matches(finding, "tensorflow", ">=2.8"):
        return None
    stmt = code.statement(node)
    if stmt not in assignments(code, finding.subject) or context.entry(finding) != finding.path:
        return None
    if any(c for c in code.calls(("tensorflow.config.experimental.enable_op_determinism",))):
        return made("remove it", changes.delete_statement(code, stmt))
    imports = [
        s
        for s in code.tree.body
        if isinstance(s, ast.Import) and any(a.name == "tensorflow" for a in s.names)
    ]
    if not imports:
        return None
    last = max((s for s in code.tree.body if changes.is_import(s)), key=code.start)
    name, _ = changes.module_name(code, "tensorflow", last)
    line = f"{name}.config.experimental.enable_op_determinism()"
    block = changes.insert_after(code, last, ["", line])
    if block is None or code.start(stmt) <= block[0].start <= code.end(stmt):
        return None
    return made("call `enable_op_determinism()`", (*block, *changes.delete_statement(code, stmt)))


BUILDERS: dict[str, Callable[[Context, Finding], Fix | None]] = {
    "DET302": deterministic_mode,
    "DET304": replaced_switch,
    "DET305": cublas,
    "DET401": deterministic_mode,
    "DET405": cublas,
    "DET306": op_determinism,
    "DET307": unset,
    "DET308": earlier,
    "DET501": fusion,
}
