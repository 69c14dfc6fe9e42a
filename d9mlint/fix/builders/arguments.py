"""Fixes that write, change or rename an argument or a call where a finding stands."""

from __future__ import annotations

import ast
from collections.abc import Callable

from d9mlint.base.findings import CALLED, NO_GENERATOR, RAISES, RENAMED, REPEATED, Edit, Finding, Fix
from d9mlint.fix.builders import changes
from d9mlint.fix.builders.code import Code
from d9mlint.fix.builders.context import SAFE, Context, made

GENERATOR = "torch.utils.data.random_split"


def wished(context: Context, finding: Finding) -> Fix | None:
    """Give the reported call the argument that the check names: ``remedy`` is its name, value and position."""
    if len(finding.remedy) < 2:
        return None
    name, value, *rest = finding.remedy
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    position = int(rest[0]) if rest else None
    value, imports = _imported(code, call, value)
    if rest and len(call.args) == position and not call.keywords and not _starred(call):
        return made(f"pass `{value}`", changes.append_argument(code, call, value))
    edits = changes.set_argument(code, call, name, value, position)
    return made(f"pass `{name}={value}`", edits and changes.with_imports(code, imports, edits))


def _imported(code: Code, call: ast.Call, value: str) -> tuple[str, list[str]]:
    """A value by the name that its package has in a file, and the imports that it needs there."""
    package, dot, rest = value.partition(".")
    if not dot or not package.isidentifier():
        return value, []
    name, needed = changes.module_name(code, package, call, code.start(code.top(call)))
    return f"{name}.{rest}", [needed] if needed else []


def _starred(call: ast.Call) -> bool:
    return any(isinstance(a, ast.Starred) for a in call.args)


def torch_generator(context: Context, finding: Finding) -> Fix | None:
    """Its own seeded generator for a loader, sampler or split."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    imports, edits = generator_edits(code, call, finding)
    return made("pass a seeded `generator=`", edits and changes.with_imports(code, imports, edits))


def generator_edits(
    code: Code, call: ast.Call, finding: Finding
) -> tuple[list[str], tuple[Edit, ...] | None]:
    """The imports and the edits that give a call a seeded torch generator. None in a loop, where every round would
    draw the same, and where the call takes none."""
    if code.in_loop(call) or not {REPEATED, NO_GENERATOR}.isdisjoint(finding.remedy):
        return [], None
    name, needed = changes.module_name(code, "torch", call, code.start(code.top(call)))
    edits = changes.set_argument(code, call, "generator", f"{name}.Generator().manual_seed(0)")
    return [needed] if needed else [], edits


def literal(context: Context, finding: Finding) -> Fix | None:
    """DET303: the switch the other way round."""
    code = context.own(finding)
    node = code.at(finding.start, finding.end) if code else None
    if code is None or node is None or RAISES in finding.remedy:
        return None
    if finding.remedy[:1] == (RENAMED,):
        return _renamed(code, node, finding.remedy[1])
    if isinstance(node, (ast.Name, ast.Attribute)):
        # A switch that is named and not called, or assigned to.
        if finding.remedy[:1] != (CALLED,):
            return None
        tail, end = finding.remedy[1], code.end(node)
        return made(f"call it: `{code.text(node)}{tail}`", (Edit(end, end, tail),))
    if isinstance(node, ast.Assign):
        return _assigned(code, node, finding)
    if not isinstance(node, ast.Call):
        return None
    name = finding.subject.rpartition(".")[2]
    if name == "disable_op_determinism":
        return made("enable op determinism", changes.rename_called(code, node, "enable_op_determinism"))
    if name == "set_deterministic_debug_mode":
        value = changes.argument(node, "debug_mode", 0)
        edits = (changes.replace(code, value, '"error"'),) if isinstance(value, ast.Constant) else None
        return made('set the debug mode to `"error"`', edits)
    if name == "use_deterministic_algorithms":
        return _mode(code, node)
    return None


def _renamed(code: Code, node: ast.AST, name: str) -> Fix | None:
    """The name that was meant, in place of that of an attribute that is set."""
    if not isinstance(node, ast.Attribute):
        return None
    end = code.end(node)
    return made(f"write `{name}`", (Edit(end - len(node.attr), end, name),))


def _mode(code: Code, call: ast.Call) -> Fix | None:
    edits: list[Edit] = []
    value = changes.argument(call, "mode", 0)
    if isinstance(value, ast.Constant) and value.value is False:
        edits.append(changes.replace(code, value, "True"))
    warn = changes.argument(call, "warn_only")
    if isinstance(warn, ast.Constant) and warn.value is True:
        edits.append(changes.replace(code, warn, "False"))
    return made("enable deterministic algorithms", edits)


def _assigned(code: Code, stmt: ast.Assign, finding: Finding) -> Fix | None:
    value = stmt.value
    if finding.remedy:
        # An environment variable whose value makes results vary.
        wanted = finding.remedy[0]
        if wanted == "unset":
            return made("do not set it", changes.delete_statement(code, stmt))
        if isinstance(value, ast.Constant):
            return made(f"set it to {wanted}", (changes.replace(code, value, f'"{wanted}"'),))
        return None
    if isinstance(value, ast.Constant) and value.value is False:
        return made("set it to `True`", (changes.replace(code, value, "True"),))
    return None


def trainer_flag(context: Context, finding: Finding) -> Fix | None:
    """DET312: ``deterministic=True``, ``full_determinism=True``."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    name = finding.subject.rpartition("(")[2].rstrip(")")
    value = changes.argument(call, name)
    if not isinstance(value, ast.Constant) or name == "benchmark":
        return None
    return made(f"set `{name}=True`", (changes.replace(code, value, "True"),))


def zeros(context: Context, finding: Finding) -> Fix | None:
    """DET309: memory that is filled."""
    code = context.own(finding)
    if code is None:
        return None
    node = code.at(finding.start, finding.end)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is False:
        # Filling takes time, and indices that were never written raise then.
        return made("set it to `True`", (changes.replace(code, node.value, "True"),))
    call = code.call(finding.start, finding.end)
    if call is None or any(k.arg in ("memory_format", None) for k in call.keywords):
        return None
    if isinstance(call.func, ast.Attribute) and call.func.attr in _FILLED:
        new = _FILLED[call.func.attr]
        return made(f"use `{new}`", changes.rename_called(code, call, new), SAFE)
    return None


_FILLED = {"empty": "zeros", "empty_like": "zeros_like", "new_empty": "new_zeros"}


def compile_mode(context: Context, finding: Finding) -> Fix | None:
    """DET310: a mode that does not choose kernels by timing."""
    code = context.own(finding)
    if code is None:
        return None
    node = code.at(finding.start, finding.end)
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and node.value.value is True:
        return made("do not autotune", (changes.replace(code, node.value, "False"),))
    call = code.call(finding.start, finding.end)
    mode = changes.argument(call, "mode") if call is not None else None
    if isinstance(mode, ast.Constant) and str(mode.value).startswith("max-autotune"):
        return made('compile with `mode="default"`', (changes.replace(code, mode, '"default"'),))
    return None


def one_thread(context: Context, finding: Finding) -> Fix | None:
    """DET311: one thread where several are asked for."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    names = ("intra_op_parallelism_threads", "inter_op_parallelism_threads")
    values = [changes.argument(call, "num_threads", 0 if call.args else None)]
    values += [changes.argument(call, name) for name in names]
    edits = [
        changes.replace(code, value, "1")
        for value in values
        if isinstance(value, ast.Constant) and value.value != 1
    ]
    return made("use one thread", edits)


def gated(context: Context, finding: Finding) -> Fix | None:
    """DET313: gradients that wait for each other."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    if finding.subject.endswith("gradients") and "compute" not in finding.subject:
        edits = changes.set_argument(code, call, "gate_gradients", "True", 4)
        return made("pass `gate_gradients=True`", edits)
    gate = changes.argument(call, "gate_gradients")
    if isinstance(gate, ast.Attribute) and gate.attr == "GATE_NONE":
        end = code.end(gate)
        return made("use `GATE_OP`", (Edit(end - len("GATE_NONE"), end, "GATE_OP"),))
    return None


def ordered_stage(context: Context, finding: Finding) -> Fix | None:
    """DET206: a tf.data stage that keeps the order of its elements."""
    code = context.own(finding)
    node = code.at(finding.start, finding.end) if code else None
    if code is None:
        return None
    if isinstance(node, ast.Assign):
        value: ast.expr | None = node.value
    else:
        call = code.call(finding.start, finding.end)
        value = changes.argument(call, "deterministic") if call is not None else None
    if isinstance(value, ast.Constant) and value.value is False:
        return made("keep the order of elements", (changes.replace(code, value, "True"),), SAFE)
    return None


def one_worker(context: Context, finding: Finding) -> Fix | None:
    """DET208: one worker in place of several."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    edits: list[Edit] = []
    # The names of Keras 1, in which a model that is fed has one worker at least.
    first = changes.argument(call, "nb_worker")
    workers = changes.argument(call, "workers") or first
    processes = changes.argument(call, "use_multiprocessing") or changes.argument(call, "pickle_safe")
    if "0" in finding.remedy and first is not None:
        return None
    if workers is not None and not isinstance(workers, ast.Constant):
        # A variable is set elsewhere; without processes, so many threads would race.
        return None
    if isinstance(processes, ast.Constant) and processes.value is True:
        edits.append(changes.replace(code, processes, "False"))
    if "0" in finding.remedy:
        none = changes.set_argument(code, call, "workers", "0")
        return made("pass `workers=0`", (*edits, *none)) if none is not None else None
    if workers is not None and isinstance(workers.value, int) and workers.value > 1:
        edits.append(changes.replace(code, workers, "1"))
    return made("use one worker", edits)


def op_argument(context: Context, finding: Finding) -> Fix | None:
    """DET407: ``deterministic=True`` for an op that has such an argument in the version at hand."""
    entry = context.op(finding)
    if entry is None or not any(c.arg == "deterministic" and c.equals is False for c in entry.when):
        return None
    if not any(
        h.behaviour == "deterministic_alternative" and context.matches(finding, entry.library, h.versions)
        for h in entry.history
    ):
        return None
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    return made("pass `deterministic=True`", changes.set_argument(code, call, "deterministic", "True"))


def reseeded_worker(context: Context, finding: Finding) -> Fix | None:
    """DET212: a seed that differs between workers and is the same in every run."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    if len(call.args) + len(call.keywords) != 1 or _starred(call):
        return None
    given = call.args[0] if call.args else call.keywords[0].value
    name, needed = changes.module_name(code, "torch", call, code.start(code.top(call)))
    seed = f"{name}.initial_seed()"
    if not finding.subject.startswith("torch."):
        seed += " % 2**32"
    edits = changes.with_imports(code, [needed] if needed else [], (changes.replace(code, given, seed),))
    return made("derive the seed from `torch.initial_seed()`", edits)


BUILDERS: dict[str, Callable[[Context, Finding], Fix | None]] = {
    "DET106": wished,
    "DET110": wished,
    "DET202": torch_generator,
    "DET206": ordered_stage,
    "DET208": one_worker,
    "DET212": reseeded_worker,
    "DET303": literal,
    "DET309": zeros,
    "DET310": compile_mode,
    "DET311": one_thread,
    "DET312": trainer_flag,
    "DET313": gated,
    "DET406": wished,
    "DET407": op_argument,
}
