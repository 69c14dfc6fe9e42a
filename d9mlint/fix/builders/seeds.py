"""Fixes of seeds: a block at the start of the program, fixed numbers for seeds that differ between runs."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable
from typing import NamedTuple

from d9mlint.base.findings import ALSO, BY_METHOD, BY_RESET, NUMBER, REPEATED, Finding, Fix, Step
from d9mlint.fix.builders import changes
from d9mlint.fix.builders.arguments import GENERATOR, torch_generator, wished
from d9mlint.fix.builders.code import Code
from d9mlint.fix.builders.context import SAFE, Context, made
from d9mlint.fix.builders.start import Start

MISSING = frozenset({"DET101", "DET102", "DET103", "DET104", "DET108", "DET113"})
_IN_CONFIG = "in configuration"
"""The remedy where the last step of the flow is what an estimator takes its seed from, or an estimator without that."""
_IN_GRAPH = "in graph"
"""The remedy where the seed is for the graph that the last step of the flow makes the default one."""
_OF_OPTION = "of option"
"""The remedy where the seed is an option, by the expression that gives it, which the last step of the flow parses."""
_KNOWN = frozenset({"torch", "torch_cuda", "numpy", "python", "tensorflow", "keras"})
_SEED_CALL = re.compile(r"(\w+)\.([\w.]+)\((seed=|)(?:seed|0)\)")
_SEEDS_WORKERS = ">=1.3"
"""The releases of Lightning whose ``seed_everything`` takes ``workers=``."""
LIGHTNING = ("lightning", "lightning.pytorch", "pytorch_lightning")
_NUMBERS = frozenset({"int", "abs", "float", "round", "hash", "str", "bytes", "min", "max", "divmod", "pow"})


def _rng(finding: Finding) -> str:
    """The RNG that a finding says is not seeded; empty for other findings."""
    if finding.code in MISSING:
        if finding.remedy[:1] == (ALSO,):
            return finding.remedy[1]
        # Where the remedy is another one, a seed would hide the mistake.
        return finding.subject if not finding.remedy else ""
    if finding.code not in _NAMING or finding.remedy[:1] != ("rng",):
        return ""
    # Of an argument of that name, it is the value, which is no name.
    return finding.remedy[1] if finding.remedy[1].isidentifier() else ""


_NAMING = frozenset({"DET107", "DET109", "DET207", "DET701"})
"""Rules whose remedy may be a seed of the generator that it names."""


_DRAWING = frozenset({"DET109", "DET207"})
"""Rules of other draws that a seed decides which is set before them."""


def seed_block(context: Context, finding: Finding) -> Fix | None:
    """Seed at the start of the entry point every RNG that its run draws from unseeded: one block for all findings."""
    if finding.remedy[:1] == (_OF_OPTION,):
        return _seed_of_option(context, finding)
    if finding.code in MISSING and len(finding.remedy) == 2:
        # What draws seeds everything that it draws from.
        return wished(context, finding)
    if finding.remedy == (_IN_GRAPH,):
        return _seed_in_graph(context, finding)
    if finding.remedy == (_IN_CONFIG,):
        return _seed_in_configuration(context, finding)
    entry = context.entry(finding)
    code = context.code(entry)
    if code is None or not _rng(finding) or context.entry_offset(finding) is None:
        return None
    group = [f for f in context.of_entry(entry) if _rng(f)]
    drawing = [f for f in context.of_entry(entry) if _rng(f) or f.code in _DRAWING]
    offsets = [o for f in drawing if (o := context.entry_offset(f)) is not None]
    seed = next((s for f in group if f.code == "DET108" and (s := _late_seed(context, f))), "0")
    start = Start(code, offsets, context.is_own)
    rng = _rng(finding)
    if start.anchor is None or (rng not in _KNOWN and not _SEED_CALL.fullmatch(_library_seed(context, rng))):
        return None
    # Seeds that are set too late are those of the same RNGs.
    # What an imported module has made may have taken its seed from the generator of its library before the block.
    rngs = {name for f in group if (name := _rng(f)) in _KNOWN or context.entry_offset(f) is not None}
    rngs.update(f.remedy[2] for f in group if f.remedy[:1] == (ALSO,))
    for line in _lines(context, finding, code, start, rngs, seed):
        start.add(line)
    return made(f"seed at the start of {finding.entry_point}", start.edits(), path=entry)


class _Found(NamedTuple):
    """A step of a flow, and the code of its file."""

    step: Step
    code: Code


def _last_step(context: Context, finding: Finding) -> _Found | None:
    """The last step of a flow. What a finding says of other programs stands behind it, at the place of the finding."""
    place = (finding.path, finding.start, finding.end)
    for step in reversed(finding.flow):
        if (step.path, step.start, step.end) != place:
            code = context.code(step.path)
            return _Found(step, code) if code is not None else None
    return None


def _seed_of_option(context: Context, finding: Finding) -> Fix | None:
    """Seed with an option, right below where it is parsed, every RNG that is drawn from without."""
    found, seed = _last_step(context, finding), finding.remedy[1]
    call = found.code.call(found.step.start, found.step.end) if found is not None else None
    if found is None or call is None or not seed:
        return None
    last, code = found
    start = Start(code, (), context.is_own, code.statement(call), below=True)
    group = [f for f in context.of_entry(context.entry(finding)) if f.remedy == finding.remedy]
    rngs = {f.subject for f in group if _last_step(context, f) == found}
    for line in _lines(context, finding, code, start, rngs, seed):
        start.add(line)
    return made(f"seed with `{seed}`", start.edits(), path=last.path)


def _seed_in_graph(context: Context, finding: Finding) -> Fix | None:
    """Seed a graph of TensorFlow where the last step of the flow has made it the default one."""
    found = _last_step(context, finding)
    node = found.code.at(found.step.start, found.step.end) if found is not None else None
    if found is None or node is None:
        return None
    last, code = found
    stmt = code.statement(node)
    within = isinstance(stmt, ast.With)
    if not within and not isinstance(stmt, ast.Expr):
        return None
    start = Start(code, (), context.is_own, stmt.body[0] if isinstance(stmt, ast.With) else stmt, not within)
    if "tensorflow.compat.v1" in _imported(code) and "tensorflow" not in _imported(code):
        call = f"{start.name('tensorflow.compat.v1')}.set_random_seed"
    elif context.matches(finding, "tensorflow", "<2.0"):
        call = f"{start.name('tensorflow')}.set_random_seed"
    else:
        call = f"{start.name('tensorflow')}.random.set_seed"
    start.add(f"{call}(0)")
    return made("seed the graph", start.edits(), path=last.path)


def _seed_in_configuration(context: Context, finding: Finding) -> Fix | None:
    """Give an estimator of TensorFlow a configuration with a seed, or the configuration that it has one."""
    found = _last_step(context, finding)
    call = found.code.call(found.step.start, found.step.end) if found is not None else None
    if found is None or call is None or not isinstance(call.func, ast.Attribute):
        return None
    last, code = found
    if call.func.attr == "RunConfig":
        return made(
            "seed the estimator", changes.set_argument(code, call, "tf_random_seed", "0", 1), path=last.path
        )
    value = f"{ast.unparse(call.func.value)}.RunConfig(tf_random_seed=0)"
    return made("seed the estimator", changes.set_argument(code, call, "config", value, 2), path=last.path)


def _imported(code: Code) -> set[str]:
    """The modules whose names a file has, through star imports too."""
    return {*code.imported().values(), *(one for _, names in code.starred() for one in names.values())}


def _late_seed(context: Context, finding: Finding) -> str:
    """The number that a late seeding call is given, which is the last step of the flow."""
    found = _last_step(context, finding)
    call = found.code.call(found.step.start, found.step.end) if found is not None else None
    if call is not None and len(call.args) == 1:
        value = call.args[0]
        if (
            isinstance(value, ast.Constant)
            and isinstance(value.value, int)
            and not isinstance(value.value, bool)
        ):
            return str(value.value)
    return ""


def _lines(
    context: Context, finding: Finding, code: Code, start: Start, rngs: set[str], seed: str
) -> Iterable[str]:
    modules = {target.partition(".")[0] for target in code.imported().values()}
    covered: set[str] = set()
    if rngs & {"tensorflow", "keras"}:
        line, covered = _tensorflow(context, finding, code, start, rngs, seed)
        yield line
    lightning = next((m for m in ("lightning", "pytorch_lightning") if m in modules), "")
    if lightning and rngs & {"torch", "torch_cuda"}:
        bound = next((m for m in LIGHTNING if m in code.imported().values()), "")
        if bound:
            call = f"{start.name(bound)}.seed_everything"
        else:
            home = "lightning.pytorch" if lightning == "lightning" else lightning
            call = start.name(f"{home}.seed_everything")
        workers = ", workers=True" if context.matches(finding, "lightning", _SEEDS_WORKERS) else ""
        yield f"{call}({seed}{workers})"
        return
    framework = _of_framework(context, finding, modules) if rngs & {"torch", "torch_cuda"} else ""
    if framework:
        yield f"{start.name(framework)}({seed})"
        return
    if "python" in rngs - covered:
        yield f"{start.name('random')}.seed({seed})"
    if "numpy" in rngs - covered:
        yield f"{start.name('numpy')}.random.seed({seed})"
    if rngs & {"torch", "torch_cuda"}:
        yield f"{start.name('torch')}.manual_seed({seed})"
    for rng in sorted(rngs - _KNOWN):
        # A generator that a library keeps for itself, by the call that its knowledge entry recommends.
        found = _SEED_CALL.fullmatch(_library_seed(context, rng))
        if found is not None:
            yield f"{start.name(found[1])}.{found[2]}({found[3]}{seed})"


def _of_framework(context: Context, finding: Finding, modules: set[str]) -> str:
    """The function with which a framework that a file imports seeds PyTorch, where its knowledge entry says its module."""
    for one in context.known.generators["torch"].frameworks:
        function = one.seed.removesuffix("(seed)")
        used = not modules.isdisjoint(one.modules)
        if (
            used
            and "." in function
            and (not one.versions or context.matches(finding, one.library, one.versions))
        ):
            return function
    return ""


def _library_seed(context: Context, rng: str) -> str:
    """The call that seeds a library's own generator; empty where it has to stand elsewhere than at the start."""
    entry = context.known.generators.get(rng)
    return "" if entry is None or entry.where else entry.seed


def _tensorflow(
    context: Context, finding: Finding, code: Code, start: Start, rngs: set[str], seed: str
) -> tuple[str, set[str]]:
    """The line that seeds TensorFlow and Keras, and the other RNGs that it seeds with them."""
    imported = _imported(code)
    both = {"python", "numpy"}
    packages = {name.partition(".")[0] for name in imported}
    # Keras itself, or a package that is Keras under another name.
    call = _library_seed(context, "keras").partition("(")[0]
    names = {one: call.replace("keras", one, 1) for one in sorted(packages) if call}
    canonical = context.known.canonical
    keras = next((one for one, name in names.items() if canonical(name) == canonical(call)), "")
    seeds_all = context.matches(finding, "tensorflow", ">=2.7")
    if keras and seeds_all and "tensorflow" not in packages:
        return f"{start.name(keras)}.utils.set_random_seed({seed})", both
    if "tensorflow.compat.v1" in imported and "tensorflow" not in imported:
        return f"{start.name('tensorflow.compat.v1')}.set_random_seed({seed})", set()
    name = start.name("tensorflow")
    if context.matches(finding, "tensorflow", "<2.0"):
        return f"{name}.set_random_seed({seed})", set()
    if seeds_all:
        return f"{name}.keras.utils.set_random_seed({seed})", both
    return f"{name}.random.set_seed({seed})", set()


def fixed_seed(context: Context, finding: Finding) -> Fix | None:
    """DET107: a fixed number in place of the clock, the process id, or nothing; a seed for what a seed is drawn from."""
    if _rng(finding):
        return seed_block(context, finding)
    code = context.own(finding)
    if code is None or REPEATED in finding.remedy:
        return None
    node = code.at(finding.start, finding.end) or code.call(finding.start, finding.end)
    if not isinstance(node, (ast.Call, ast.Attribute)):
        return None
    call = node if isinstance(node, ast.Call) else None
    name = call.func.attr if call is not None and isinstance(call.func, ast.Attribute) else ""
    if finding.remedy == ("anti-seed",):
        # `seed()` of torch and of its generators takes no argument; its sibling does, and does not give the seed.
        if not isinstance(code.parents.get(node), ast.Expr):
            return None
        new = {"seed": "manual_seed", "seed_all": "manual_seed_all"}.get(name)
        renamed = changes.rename_called(code, call, new) if call is not None and new else None
        filled = changes.append_argument(code, call, "0") if call is not None and not call.args else None
        return made("seed with a fixed number", (*renamed, *filled) if renamed and filled else None)
    if finding.remedy[:1] == ("seed",) and call is not None:
        given = [*call.args, *(k.value for k in call.keywords)]
        if finding.remedy[1:] != ("",):
            name = finding.remedy[1].removesuffix("=")
            return made("seed with a fixed number", changes.set_argument(code, call, name, "0"))
        if not given:
            return made("seed with a fixed number", changes.append_argument(code, call, "0"))
        if len(given) == 1 and isinstance(given[0], ast.Constant) and given[0].value is None:
            return made("seed with a fixed number", (changes.replace(code, given[0], "0"),))
        return None
    whole = _whole_number(code, node) if finding.remedy == (NUMBER,) else None
    if whole is None:
        return None
    return made("use a fixed number", (changes.replace(code, whole, "0"),))


def _whole_number(code: Code, node: ast.expr) -> ast.expr | None:
    """The expression that a source of entropy is turned into a number by; None where it is used otherwise."""
    whole: ast.expr = node
    while True:
        above = code.parents.get(whole)
        if (
            isinstance(above, (ast.BinOp, ast.UnaryOp))
            or (isinstance(above, (ast.Attribute, ast.Subscript)) and above.value is whole)
            or (isinstance(above, ast.Call) and above.func is whole)
            or (isinstance(above, ast.Call) and whole in above.args and _converts(code, above))
        ):
            whole = above
        else:
            break
    return (
        whole
        if isinstance(above, (ast.Call, ast.keyword, ast.Assign, ast.AnnAssign, ast.NamedExpr))
        else None
    )


def _converts(code: Code, call: ast.Call) -> bool:
    name = code.qualified(call.func)
    return name in _NUMBERS or name in ("int.from_bytes", "operator.index", "numpy.uint32", "numpy.int64")


def remove_call(context: Context, finding: Finding) -> Fix | None:
    """DET112: a seeding call that repeats what another has done."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    if not isinstance(code.parents[call], ast.Expr):
        return None
    return made("remove the call", changes.delete_statement(code, code.statement(call)), SAFE)


# --------------------------------------------------------------------------------------- environments


def seeded_environment(context: Context, finding: Finding) -> Fix | None:
    """DET111: seed an environment, or a space of it, once, where it is made."""
    found = context.call(finding)
    if found is None:
        return None
    code, call = found
    # One that is handed to a library is seeded there, and what a library wraps by what it says.
    if not isinstance(call.func, ast.Attribute) or finding.subject == "handed":
        return None
    by_method = BY_METHOD in finding.remedy
    if not by_method and BY_RESET not in finding.remedy:
        return None
    owner = call.func.value
    space = ""
    if finding.subject == "space":
        if not isinstance(owner, ast.Attribute):
            return None
        space, owner = owner.attr, owner.value
    elsewhere = any(step.path != finding.path for step in finding.flow if not step.beside)
    made_at = _assignment(code, call, ast.unparse(owner), elsewhere)
    env = ast.unparse(owner)
    at_once = made_at is not None and code.scope(made_at) is code.scope(call) and not code.in_loop(call)
    if made_at is not None and (space or by_method or not at_once):
        line = f"{env}.{space}.seed(0)" if space else f"{env}.{'seed(0)' if by_method else 'reset(seed=0)'}"
        behind = _where_paths_meet(code, made_at, call, env)
        return made("seed the environment once", changes.insert_after(code, behind, [line]))
    if space or by_method or code.in_loop(call) or made_at is None or not _is_run_once(code, call):
        # One seed for every call would begin the same episode each time.
        return None
    return made("pass `seed=0`", changes.set_argument(code, call, "seed", "0", 0))


def _is_run_once(code: Code, node: ast.AST) -> bool:
    """Whether a statement of a function is run once, as far as its file shows: it is called in no loop, and nothing else
    is done with it."""
    scope = code.scope(node)
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return True
    for one in code.nodes:
        named = isinstance(one, ast.Name) and one.id == scope.name
        if named or (isinstance(one, ast.Attribute) and one.attr == scope.name):
            above = code.parents.get(one)
            if not isinstance(above, ast.Call) or above.func is not one or code.in_loop(above):
                return False
    return True


def _assignment(code: Code, user: ast.AST, name: str, elsewhere: bool) -> ast.stmt | None:
    """The only statement that gives a variable or attribute a value that is called for, as far as that is one that
    is run before its user, which may be called ``elsewhere``, in another file."""
    found: list[ast.stmt] = []
    for node in code.nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.value, ast.Call):
            if ast.unparse(node.targets[0]) == name:
                found.append(node)
    if not name.startswith("self."):
        scope = code.scope(user)
        # What a function assigns itself hides what the module assigns.
        own = [s for s in found if code.scope(s) is scope]
        found = own or [
            s for s in found if code.scope(s) is code.tree and _is_given(code, scope, name, elsewhere)
        ]
    return found[-1] if len(found) == 1 else None


def _is_given(code: Code, scope: ast.AST, name: str, elsewhere: bool) -> bool:
    """Whether a variable of the module is what a function has by this name, as far as the file shows: no call gives a
    parameter of the name anything else, as one in another file does."""
    if not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return True
    names = [one.arg for one in (*scope.args.posonlyargs, *scope.args.args)]
    if name not in (*names, *(one.arg for one in scope.args.kwonlyargs)):
        return True
    if elsewhere:
        return False
    position = names.index(name) if name in names else None
    for node in code.nodes:
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == scope.name:
            given = changes.argument(node, name, position)
            if given is not None and ast.unparse(given) != name:
                return False
    return True


def _where_paths_meet(code: Code, made_at: ast.stmt, user: ast.AST, name: str) -> ast.stmt:
    """The statement behind which a variable or attribute holds what it was assigned, on whichever path: the assignment,
    or the outermost branch that it stands in if the other paths leave something in the variable too."""
    scope = code.scope(made_at)
    params = scope.args if isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef)) else None
    given = params is not None and any(
        one.arg == name for one in ast.walk(params) if isinstance(one, ast.arg)
    )
    if not given and not any(
        ast.unparse(target) == name
        for node in code.nodes
        if isinstance(node, ast.Assign) and node is not made_at and not _is_none(node.value)
        for target in node.targets
    ):
        return made_at
    found = made_at
    for above in code.ancestors(made_at):
        if not isinstance(above, (ast.If, ast.Try)) or user in ast.walk(above):
            # A handler, or a case, stands between a statement and what it is part of.
            if isinstance(above, ast.stmt) or above is scope:
                break
            continue
        found = above
    return found


def _is_none(value: ast.expr) -> bool:
    return isinstance(value, ast.Constant) and value.value is None


def sampling_params(context: Context, finding: Finding) -> Fix | None:
    """DET701: the seed of an engine or of sampling parameters; one at the start of the program for other generation."""
    return seed_block(context, finding) if _rng(finding) else wished(context, finding)


def seeded_split(context: Context, finding: Finding) -> Fix | None:
    """DET109, DET207: a seed or generator for what splits, samples or shuffles, or a seed at the start where it does so
    again and again, or takes none."""
    if _rng(finding):
        return seed_block(context, finding)
    return torch_generator(context, finding) if finding.subject == GENERATOR else wished(context, finding)


BUILDERS: dict[str, Callable[[Context, Finding], Fix | None]] = {
    **dict.fromkeys(MISSING, seed_block),
    "DET107": fixed_seed,
    "DET109": seeded_split,
    "DET111": seeded_environment,
    "DET112": remove_call,
    "DET207": seeded_split,
    "DET701": sampling_params,
}
