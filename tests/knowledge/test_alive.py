"""Nothing in the knowledge base is dead: for every entry there is a program in which a rule reads it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import programs
from support import ROOT, lint

from d9mlint.interp.unknown_models import MADE
from d9mlint.knowledge.loader import Compiled, load_compiled
from d9mlint.knowledge.schema import HazardEntry, OpEntry, RngEntry
from d9mlint.knowledge.versions import matches, split

EVERYTHING = {"select": ["DET"], "min-confidence": "low"}
DRAWS = {
    "python": ("import random", "random.random()"),
    "numpy": ("import numpy", "numpy.random.rand()"),
    "torch": ("import torch", "torch.rand(1)"),
    "torch_cuda": ("import torch", "torch.rand(1)"),
    "tensorflow": ("import tensorflow as tf", "tf.random.normal([1])"),
    "keras": ("import keras", "keras.random.normal((1,))"),
}


TRAINING = (
    'model = torch.nn.Linear(2, 2).to("cuda")',
    "optimizer = torch.optim.SGD(model.parameters())",
    'model(torch.rand(1, 2, device="cuda")).sum().backward()',
    "optimizer.step()",
)


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    return load_compiled()


def codes_by_file(
    directory: Path, texts: dict[str, str], pins: str = "", device: str = "cuda"
) -> dict[str, set[str]]:
    """The codes that are reported for each of these programs, by name."""
    for name, text in texts.items():
        (directory / f"{name}.py").write_text(text)
    (directory / "requirements.txt").write_text(pins)
    (directory / "pyproject.toml").write_text("")
    settings: dict[str, Any] = {**EVERYTHING, **({"device": device} if device else {})}
    found: dict[str, set[str]] = {name: set() for name in texts}
    for item in lint(directory, settings).items:
        found[Path(item.finding.path).stem].add(item.finding.code)
    return found


def file_name(entry_id: str) -> str:
    return "p_" + entry_id.replace(".", "_").replace("-", "_").lower()


# ------------------------------------------------------------------------------------------- hazards


HAZARDS = {
    "evaluate.rouge": """import evaluate

if __name__ == "__main__":
    print(evaluate.load("rouge").compute(predictions=["a"], references=["b"]))
""",
    "datasets.rouge": """import datasets

if __name__ == "__main__":
    print(datasets.load_metric("rouge").compute(predictions=["a"], references=["b"]))
""",
    "rllib.experiments": """import ray.tune

if __name__ == "__main__":
    print(ray.tune.run_experiments({"first": {"run": "PPO", "config": {"num_workers": 1}}}))
""",
}
"""Hazards that depend on how the receiver of a method was made, or on parts of an argument under any key."""


def hazard_program(entry: HazardEntry) -> str:
    if entry.id in HAZARDS:
        return HAZARDS[entry.id]
    if entry.env:
        value = programs.arguments(entry.when, entry.unless).get("value", "'1'")
        lines = [f"os.environ[{entry.env[0]!r}] = str({value})"]
        imports = ["import os"]
        for other in entry.only_called[:1]:
            more, calls = programs.use(other.apis[0], programs.arguments(other.when))
            imports, lines = [*imports, *more], [*lines, *calls]
        return programs.program(imports, lines)
    if entry.attributes:
        value = programs.arguments(entry.when, entry.unless).get("value", "True")
        module = entry.attributes[0].rpartition(".")[0]
        return programs.program([f"import {module}"], [f"{entry.attributes[0]} = {value}"])
    given = programs.arguments(entry.when, entry.unless)
    before: list[str] = []
    extra: list[str] = []
    if entry.callback is not None:
        line, draw = DRAWS[entry.callback.draws[0]]
        extra, before = [line], ["def function(item):", f"    return {draw}"]
        given[entry.callback.arg] = "function"
    imports, lines = programs.use(entry.apis[0], given)
    if entry.decorates:
        before = [f"@{entry.apis[0]}", "def function():", "    pass"]
        lines = [f"function({entry.decorates[0]}=1)"]
    for other in entry.only_called[:1]:
        more, calls = programs.use(other.apis[0], programs.arguments(other.when))
        imports, lines = [*imports, *more], [*lines, *calls]
    if entry.devices:
        imports, lines = [*imports, "import torch"], ["torch.zeros(1, device='cuda')", *lines]
    return programs.program([*imports, *extra], lines, before)


def test_every_hazard_is_reported(compiled: Compiled, tmp_path: Path) -> None:
    texts = {file_name(entry.id): hazard_program(entry) for entry in compiled.hazards}
    groups: dict[str, dict[str, str]] = {}
    for entry in compiled.hazards:
        group = groups.setdefault(pin(compiled, entry.library, entry.versions), {})
        group[file_name(entry.id)] = texts[file_name(entry.id)]
    found: dict[str, set[str]] = {}
    for number, (pins, programs_of_release) in enumerate(sorted(groups.items())):
        directory = tmp_path / f"run{number}"
        directory.mkdir()
        found |= codes_by_file(directory, programs_of_release, pins)
    missing = [entry.id for entry in compiled.hazards if entry.rule not in found[file_name(entry.id)]]
    assert missing == [], "\n".join(texts[file_name(one)] for one in missing)


# ------------------------------------------------------------------------------------ random numbers


def rng_program(entry: RngEntry) -> tuple[str, set[str]]:
    """A program in which a rule reads an entry, and the rules of which one reports it."""
    given = programs.arguments(entry.when, entry.unless)
    if entry.kind == "init" and entry.apis[0].endswith(".from_pretrained"):
        # A head of another size is not in the checkpoint.
        given["num_labels"] = "3"
    api = entry.apis[0].replace("tf.keras", entry.package) if entry.package else entry.apis[0]
    if entry.package:
        given = {name: value.replace("tf.keras", entry.package) for name, value in given.items()}
    imports, lines = programs.use(api, given)
    if api.endswith(MADE) and entry.library != "torch":
        # A model of which no source is found: nothing is drawn but its weights where there are no labels to shuffle with.
        imports = [
            f"from {entry.package or 'tensorflow.keras'}.optimizers import Adam",
            "from missing import Net",
        ]
        body = ["result = Net()", "result.compile(optimizer=Adam())", "result.fit([1])", "print(result)"]
        return programs.program(imports, body), set()
    if api.endswith(MADE):
        body = ["result = Net()", "torch.optim.Adam(result.parameters())", "print(result)"]
        return programs.program(["import torch", "from missing import Net"], body), {"DET101"}
    if entry.kind == "entropy":
        done = lines[-2].removeprefix("result = ")
        return programs.program([*imports, "import torch"], [f"torch.manual_seed({done})"]), {"DET107"}
    if entry.kind == "stateless":
        # What a wider pattern would take for a draw.
        return programs.program(imports, lines), {"-"}
    if entry.kind == "anti-seed":
        return programs.program(imports, lines), {"DET107"}
    if entry.kind == "seeder":
        return seeder_program(entry, given)
    if entry.kind == "generator":
        if entry.none_seed != "entropy" or entry.seed_default not in (None, _unset()):
            given[entry.seed_arg or "seed"] = "int(time.time())"
            imports, lines = programs.use(entry.apis[0], given)
            return programs.program([*imports, "import time"], lines), {"DET107"}
        used = ["print(result(image=1))"] if entry.at == "use" else []
        return programs.program(imports, [*lines, *used]), {"DET106"}
    if entry.kind == "environment":
        return programs.program(imports, [*lines, "result.reset()"]), {"DET111"}
    if entry.sets:
        body = [*lines, *TRAINING]
        return programs.program([*imports, "import torch"], body), {"-DET302"}
    if entry.kind == "own-sampler":
        return programs.program(imports, lines), {"DET109"}
    if entry.kind == "unseeded-op":
        return programs.program(imports, lines), {"DET110"}
    if entry.draws == ["own"]:
        made = lines[0].partition(" = ")[2]
        before = [
            "class Items(torch.utils.data.Dataset):",
            "    def __init__(self):",
            f"        self.change = {made}",
            "    def __getitem__(self, index):",
            "        return self.change(image=index)",
        ]
        loader = "for batch in torch.utils.data.DataLoader(Items(), num_workers=2): print(batch)"
        return programs.program([*imports, "import torch.utils.data"], [loader], before), {"DET201"}
    if entry.at == "use" and entry.kind == "dropout" and entry.apis[0].endswith(".from_pretrained"):
        # It is loaded in evaluation mode.
        imports, lines = (
            [*imports, "import torch"],
            [lines[0], "result.train()", "print(result(1))", *TRAINING],
        )
    elif entry.at == "use" and entry.method and entry.kind in ("shuffle", "transform"):
        lines = [*lines[:-1], "print(next(result))"]
    elif entry.at == "use":
        lines = [lines[0], "print(result(1))"] if len(lines) == 2 else lines
    rules = {"split": {"DET109"}, "sampling": {"DET701"}, "tf-shuffle": {"DET207"}}
    return programs.program(imports, lines), rules.get(entry.kind, set())


def expected_rules(compiled: Compiled, entry: RngEntry) -> set[str]:
    """The rules that report draws from the generators of an entry."""
    titles = {one.id: one.rule for one in compiled.generators}
    parents = {one.id: one.seeded_from for one in compiled.generators}
    rules = {titles[parents[rng] or rng] for rng in entry.draws if rng in titles}
    if any(one.seeds and entry.apis[0] in one.apis for one in compiled.rng):
        # It may seed after it has drawn.
        rules |= {"DET108"}
    if entry.id == "torch.random_split":
        # It is asked for its own generator, where nothing else draws.
        return {"DET109"}
    # What shuffles is reported where it does so alone.
    return rules | {"DET202"} if entry.kind in ("shuffle", "sampler") else rules


def _unset() -> Any:
    import msgspec

    return msgspec.UNSET


def seeder_program(entry: RngEntry, given: dict[str, str]) -> tuple[str, set[str]]:
    """A seed from the clock is told; where the seed is no argument, draws behind the call are silent."""
    if entry.seed_attribute:
        owner = ["import types_of_settings"], ["settings = types_of_settings.make()"]
        if entry.none_seed == "ignored":
            owner[0].append("import time")
            owner[1].append(f"settings.{entry.seed_attribute} = int(time.time())")
        imports, lines = programs.use(entry.apis[0], {**given, entry.seed_arg: "settings"})
        return programs.program([*imports, *owner[0]], [*owner[1], *lines]), {"DET107"}
    if entry.seed_arg:
        imports, lines = programs.use(entry.apis[0], {**given, entry.seed_arg: "int(time.time())"})
        return programs.program([*imports, "import time"], lines), {"DET107"}
    imports, lines = programs.use(entry.apis[0], given)
    drawn = [DRAWS[rng] for rng in entry.seeds if rng in DRAWS]
    body = [*lines, *(f"print({text})" for _, text in drawn)]
    return programs.program([*imports, *(line for line, _ in drawn)], body), {"-"}


def test_what_is_silent_only_with_an_entry_is_reported_without_one(tmp_path: Path) -> None:
    texts = {f"p_{rng}": programs.program([line], [f"print({text})"]) for rng, (line, text) in DRAWS.items()}
    texts["p_training"] = programs.program(["import torch"], TRAINING)
    found = codes_by_file(tmp_path, texts)
    assert all(codes & {"DET101", "DET102", "DET103", "DET104"} for codes in found.values()), found
    assert "DET302" in found["p_training"]


def test_every_entry_on_random_numbers_is_read(compiled: Compiled, tmp_path: Path) -> None:
    groups: dict[str, dict[str, tuple[str, set[str]]]] = {}
    for entry in compiled.rng:
        text, rules = rng_program(entry)
        rules = rules or expected_rules(compiled, entry)
        groups.setdefault(pin(compiled, entry.library, entry.versions), {})[entry.id] = (text, rules)
    wrong: list[str] = []
    for number, (pins, entries) in enumerate(sorted(groups.items())):
        directory = tmp_path / f"run{number}"
        directory.mkdir()
        found = codes_by_file(directory, {file_name(i): text for i, (text, _) in entries.items()}, pins)
        seeds = {"DET101", "DET102", "DET103", "DET104", "DET113"}
        for entry_id, (text, rules) in entries.items():
            codes = found[file_name(entry_id)]
            read = bool(codes & rules)
            if rules == {"-"}:
                read = not codes & seeds
            elif rules == {"-DET302"}:
                read = "DET302" not in codes
            if not read:
                wrong.append(f"# {entry_id}: {sorted(codes)} instead of {sorted(rules)}\n{text}")
    assert wrong == [], f"{len(wrong)}\n" + "\n".join(wrong)


def test_a_split_names_the_argument_that_carries_its_seed_first(compiled: Compiled) -> None:
    splits = [entry for entry in compiled.rng if entry.kind == "split"]
    first = {entry.id: entry.unless[0] if entry.unless else None for entry in splits}
    seeded = {"given", "truthy", "is_a"}
    wrong = [
        name
        for name, test in first.items()
        if test is None or not any(getattr(test, one) is not None for one in seeded) or test.arg == "shuffle"
    ]
    assert len(splits) > 50 and wrong == []


def pin(compiled: Compiled, library: str, versions: str) -> str:
    """A requirement by which a release in this range is targeted, where the newest is not in it."""
    named, clauses = split(versions)
    if not clauses:
        return ""
    releases = compiled.newest.get(named or library, "").split()
    fitting = [one for one in releases if matches(versions, one)]
    if not fitting or fitting[0] == releases[0]:
        return ""
    return f"{named or library}=={fitting[0]}\n"


# ------------------------------------------------------------------------------------------------ ops


def test_every_op_of_other_libraries_is_reported(compiled: Compiled, tmp_path: Path) -> None:
    ops = [
        op
        for op in compiled.ops
        if op.apis[0].partition(".")[0] not in ("torch", "tf", "keras", "tfa", "tensorflow_addons")
    ]
    # What only draws has its own rules; that op determinism refuses it is said in the help of DET306.
    # What ops of PyTorch do inside of other libraries has its own cases.
    # So has what is said only where more is seen than a call.
    ops = [op for op in ops if op.default_mode != "random" and op.library != "torch" and not op.only_seen]
    groups: dict[str, dict[str, tuple[str, OpEntry]]] = {}
    for op in ops:
        given = programs.arguments(op.when, op.unless)
        imports, lines = programs.use(op.apis[0], given, positional=2)
        # What only raises is reported in the mode in which it does.
        mode = ["torch.use_deterministic_algorithms(True)"] if op.default_mode == "deterministic" else []
        body = [
            "torch.set_default_device('cuda')",
            *mode,
            "it = torch.ones(4, device='cuda', requires_grad=True)",
            *lines,
            f"result({', '.join(['it', *more_arguments(op)])}).sum().backward()",
        ]
        text = programs.program([*imports, "import torch"], body)
        varies = [item.versions for item in op.history if item.behaviour in ("silent", "raises")]
        pins = pin(compiled, op.library, varies[0]) if varies else ""
        groups.setdefault(pins, {})[file_name(op.id)] = (text, op)
    wrong: list[str] = []
    for number, (pins, entries) in enumerate(sorted(groups.items())):
        directory = tmp_path / f"run{number}"
        directory.mkdir()
        found = codes_by_file(directory, {name: text for name, (text, _) in entries.items()}, pins)
        for name, (text, op) in entries.items():
            rule = op.rule or ("DET403" if op.library == "tensorflow" else "DET407")
            if rule not in found[name]:
                wrong.append(f"# {op.id}: {sorted(found[name])}\n{text}")
    assert wrong == [], "\n".join(wrong)


def more_arguments(op: OpEntry) -> list[str]:
    """What a module is called with besides a tensor, where only some calls of it make results vary: the arguments that it
    must be given, or a second tensor."""
    named = [
        f"{one.arg}=it"
        for test in op.unless_called
        for one in test.none_of or ()
        if one.arg is not None and one.given is True
    ]
    return named or ["it"] * bool(op.unless_called)


# Calls that need more than an argument for each condition, and entries of which a page or case of the named rule tells.
SNIPPETS = {
    "torch.getitem_backward": "x[torch.zeros(40000, dtype=torch.int64)]",
    "torch.repeat_interleave_backward": "torch.repeat_interleave(x, torch.zeros(200, dtype=torch.int64, device='cuda'))",
    "torch.repeat_interleave_backward.method": "x.repeat_interleave(torch.zeros(200, dtype=torch.int64, device='cuda'))",
}
PAGES = {
    "tf.data_map_parallel": "DET206",
    "tf.data_stateful_map": "DET206",
    "tf.data_shard": "DET205",
    "tf.data_shuffle": "DET207",
    "tf.keras_fit_workers": "DET208",
    "tf.keras_fit_workers.dataset": "DET208",
    "tf.v1_gate_gradients": "DET313",
    "tf.v1_gate_gradients.minimize": "DET313",
}


# The shape of the first argument decides, which a case of its own shows.
CASES = {
    "torch.nll_loss2d.function": ("tensor-facts.md", "mask).backward()  # error: [DET401]"),
    "torch.cumprod": ("sums-of-counts.md", "torch.cumprod(alpha, dim=0)  # error: [DET401]"),
    "torch.sparse_matmul": (
        "products-of-sparse-matrices.md",
        "self.edges @ self.layer(x)  # error: [DET401]",
    ),
    "torch.sparse_decomposition": (
        "products-of-sparse-matrices.md",
        "torch.svd_lowrank(edges, q=5)  # error: [DET401]",
    ),
    "torch.gather_backward.log_prob.independent": (
        "facts-torch.md",
        "several.sample()).mean()  # error: [DET402]",
    ),
    "torch.gather_backward.log_prob.mixture": ("facts-torch.md", "mixed.sample()).mean()  # error: [DET402]"),
    "tf.while_loop.dynamic_rnn": (
        "DET406/examples.md",
        "one, _ = tf.nn.dynamic_rnn(layer(keep), x, dtype=tf.float32)  # error: [DET406]",
    ),
    "tf.while_loop.bidirectional_dynamic_rnn": (
        "DET406/examples.md",
        "bidirectional_dynamic_rnn(layer(None), layer(0.5), x, dtype=tf.float32)  # error: [DET406]",
    ),
    "tf.while_loop.raw_rnn": ("DET406/examples.md", "tf.nn.raw_rnn(dropped, step)  # error: [DET406]"),
    "tf.while_loop.dynamic_decode": (
        "DET406/examples.md",
        "seq2seq.dynamic_decode(seq2seq.BasicDecoder(dropped, read, state))  # error: [DET406]",
    ),
}
NOT_SHOWN = {"tf.bias_add_backward.patch", "tfa.dense_image_warp_backward"}
"""Entries of which no program shows yet that a rule reads them; one that does fails the test."""


def varies(op: OpEntry) -> bool:
    """Whether an entry says of any release that the op varies or raises; others say that it does neither."""
    kinds = {item.behaviour for item in op.history}
    return bool(kinds & {"silent", "raises"}) or (
        op.default_mode != "deterministic" and "deterministic" not in kinds
    )


def op_program(op: OpEntry, *, mode: bool) -> str:
    given = {k: v for k, v in programs.arguments(op.when, op.unless).items() if k not in ("self", "input")}
    torch = op.apis[0].startswith("torch")
    device = next((one for one in ("cuda", "cpu") if one in op.devices), op.devices[0])
    tests = [one for test in op.when for one in (test, *(test.any_of or []))]
    rank = next((test.rank for test in tests if test.rank is not None), 2)
    sizes = ", ".join(["200"] * (rank[0] if isinstance(rank, list) else rank))
    name = op.apis[0]
    imports: list[str] = []
    if op.id in SNIPPETS:
        done = SNIPPETS[op.id]
    elif ".Tensor." in name or ".Variable." in name:
        target = f"(x * 1).{name.rpartition('.')[2]}" if torch else f"x.{name.rpartition('.')[2]}"
        done = programs.call(target, given, "x, x")
    elif name.rpartition(".")[2][:1].isupper():
        line, called = programs.imported(name)
        imports, done = [line], programs.call(called, given, "2") + "(x)"
    else:
        line, called = programs.imported(name)
        imports, done = [line], programs.call(called, given, "x, x")
    if op.only_env:
        return keras_program(op, mode=mode)
    if name.startswith("tfa"):
        imports = ["import tensorflow_addons as tfa"]
    if torch:
        switch = ["torch.use_deterministic_algorithms(True)"] if mode else []
        made = f"x = torch.rand({sizes}, device='{device}', requires_grad=True)"
        # The weights of modules are where the tensor is.
        body = [
            *switch,
            f"torch.set_default_device('{device}')",
            made,
            f"y = {done}",
            "y.sum().backward()",
            "print(y)",
        ]
        return programs.program([*imports, "import torch"], body)
    body = [
        *(["tf.config.experimental.enable_op_determinism()"] if mode else []),
        "x = tf.Variable(tf.ones([4, 4, 4, 4]))",
        "optimizer = tf.keras.optimizers.SGD()",
        "with tf.GradientTape() as tape:",
        f"    y = {done} + x",
        "optimizer.apply_gradients([(tape.gradient(y, x), x)])",
    ]
    return programs.program([*imports, "import tensorflow as tf"], body)


def keras_program(op: OpEntry, *, mode: bool) -> str:
    """A layer or op of Keras on one of its backends."""
    given = programs.arguments(op.when, op.unless)
    _, called = programs.imported(op.apis[0])
    called = called.removeprefix("tf.")
    first = [] if set(given) & {"pool_size", "output_size"} else ["2"]
    made = programs.call(called, given, ", ".join(first))
    layer = called.startswith("keras.layers.")
    body = [
        *(["torch.use_deterministic_algorithms(True)"] if mode else []),
        f"result = {made}",
        f"model = keras.Sequential([{'result, ' if layer else ''}keras.layers.Dense(2)])",
        *(["model.compile(loss=result)"] if called.startswith("keras.losses.") else []),
        "model.fit([[1.0]], [[1.0]])",
    ]
    before = [f"os.environ[{name!r}] = {values[0]!r}" for name, values in op.only_env.items()]
    imports = ["import os", *before, "import keras", "import torch"]
    return programs.program(imports, body)


def test_every_op_of_torch_and_tensorflow_is_reported(compiled: Compiled, tmp_path: Path) -> None:
    ops = [op for op in compiled.ops if op.apis[0].partition(".")[0] in ("torch", "tf", "keras", "tfa")]
    left = {op.id: op for op in ops if varies(op) and op.id not in {**PAGES, **CASES}}
    for file, text in CASES.values():
        assert text in (ROOT / "tests" / "cases" / file).read_text()
    for op_id, code in PAGES.items():
        assert next(op for op in ops if op.id == op_id).rule == code
    for mode in (False, True):
        groups: dict[tuple[str, str], list[OpEntry]] = {}
        for op in left.values():
            raising = [item.versions for item in op.history if item.behaviour == "raises"]
            ranges = [item.versions for item in op.history if item.behaviour in ("silent", "raises")]
            found = (raising if mode else ranges) or [op.history[0].versions]
            device = next((one for one in ("cuda", "cpu") if one in op.devices), "")
            groups.setdefault((pin(compiled, op.library, found[0]), device), []).append(op)
        for number, ((pins, device), entries) in enumerate(sorted(groups.items())):
            directory = tmp_path / f"run{mode:d}{number}"
            directory.mkdir()
            texts = {
                file_name(op.id): op_program(
                    op, mode=mode and any(i.behaviour == "raises" for i in op.history)
                )
                for op in entries
            }
            codes = codes_by_file(directory, texts, pins, device)
            for op in entries:
                if codes[file_name(op.id)] & ({op.rule} if op.rule else {"DET401", "DET402", "DET403"}):
                    del left[op.id]
    assert set(left) == NOT_SHOWN
