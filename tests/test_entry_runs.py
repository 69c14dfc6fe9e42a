"""Entry points are independent: what is found for one never depends on the others."""

from __future__ import annotations

import gc
import itertools
import random
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import msgspec
import pytest

from d9mlint import knowledge
from d9mlint.analysis import Runs, analyze
from d9mlint.base.entry_report import EntryReport
from d9mlint.base.findings import Confidence, Severity, Step
from d9mlint.checks.merge import merge
from d9mlint.checks.registry import Rules
from d9mlint.config.targets import find_targets
from d9mlint.frontend.extract import extract
from d9mlint.interp import import_cache, interpreter, memo
from d9mlint.interp.activity import TRAIN, TRAINS_ON, TRAINS_OTHERWISE, note
from d9mlint.interp.entry_run import Analyzer, Project, ProjectFile, start_models
from d9mlint.interp.import_cache import ImportLog
from d9mlint.interp.interpreter import Interp
from d9mlint.interp.values import Mod
from d9mlint.ir import bodies, nodes
from d9mlint.ir.limits import with_deep_stack
from d9mlint.project.modules import ModuleFile
from d9mlint.store.executors import executor_for

ROOT = "/project"


def run(files: Mapping[str, str], torch: str = "2.6") -> Runs:
    """The reports of a project, in the order of its files."""
    facts = [ProjectFile(f"{ROOT}/{name}", name, extract(text, "")) for name, text in files.items()]
    known = knowledge.load()
    targets = find_targets("/nowhere", torch_version=torch, tensorflow_version="2.15")
    return analyze(Analyzer(Project(facts, ROOT, [known]), known, targets, "cuda", Rules(known, known.rules)))


def of_entry(runs: Runs, name: str) -> EntryReport:
    return next(report for report in runs.entries if report.entry == f"{ROOT}/{name}")


def codes(runs: Runs, name: str) -> set[str]:
    return {finding.code for finding in of_entry(runs, name).findings}


ENVIRONMENT = {
    "pkg/__init__.py": "",
    "pkg/world.py": "import gymnasium as gym\nenv = gym.make('CartPole-v1')\n",
    "run_a.py": "from pkg.world import env\nprint(env.reset())\n",
    "run_b.py": "from pkg.world import env\nprint(env.reset())\n",
}


def test_an_environment_made_in_a_shared_module_is_reported_for_every_entry_point() -> None:
    both = run(ENVIRONMENT)
    assert "DET111" in codes(both, "run_a.py") and "DET111" in codes(both, "run_b.py")
    alone = run({name: text for name, text in ENVIRONMENT.items() if name != "run_a.py"})
    assert of_entry(alone, "run_b.py").findings == of_entry(both, "run_b.py").findings


def test_what_a_run_has_made_is_freed_when_it_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    left: list[int] = []
    run_entry_at = Analyzer.run_entry_at

    def counted(self: Analyzer, index: int) -> EntryReport:
        left.append(sum(type(one) is Interp for one in gc.get_objects()))
        return run_entry_at(self, index)

    monkeypatch.setattr(Analyzer, "run_entry_at", counted)
    run(ENVIRONMENT)
    assert left == [0, 0]


LIBRARIES = {
    "a.py": "import tensorflow as tf\nimport data\nprint(tf.add(data.pipeline(), 1))\n",
    "b.py": "import data, layers, step\nprint(step.train(layers.make(), data.pipeline()))\n",
    "c.py": "import data, step\nprint(step.train(data.pipeline(), data.pipeline()))\n",
    "data.py": "import tensorflow as tf\n\ndef pipeline():\n    return tf.zeros(3)\n",
    "layers.py": "import tensorflow as tf\n\ndef make():\n    return tf.keras.layers.Dense(1)\n",
    "step.py": (
        "import tensorflow as tf\n\ndef train(model, x):\n    with tf.GradientTape() as tape:\n"
        "        loss = model(x)\n    return tape.gradient(loss, model.trainable_variables)\n"
    ),
}


def test_frames_of_a_run_lie_in_one_block_of_memory() -> None:
    def down(count: int) -> int:
        return 1 + down(count - 1) if count else 0

    assert with_deep_stack(lambda: down(500)) == 500
    with pytest.raises(ZeroDivisionError):
        with_deep_stack(lambda: 1 // down(0))
    with pytest.raises(RecursionError):
        with_deep_stack(lambda: down(100_000))


def test_a_library_that_was_imported_before_is_imported_by_the_next_run_too() -> None:
    together = run(LIBRARIES)
    for name in ("a.py", "b.py", "c.py"):
        alone = run({one: text for one, text in LIBRARIES.items() if len(one) > 4 or one == name})
        assert of_entry(alone, name).findings == of_entry(together, name).findings
    assert "DET306" in codes(together, "c.py")


DETERMINISM = {
    "pkg/__init__.py": "",
    "pkg/setup.py": "from fwr13y.d9m.tensorflow import enable_determinism\nenable_determinism()\n",
    **{
        f"run_{name}.py": (
            "import tensorflow as tf\nimport pkg.setup\n"
            "tf.keras.utils.set_random_seed(0)\n"
            "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
            "model.compile('sgd', 'mse')\nmodel.fit(tf.zeros((4, 2)), tf.zeros((4, 1)))\n"
        )
        for name in "ab"
    },
}


def test_determinism_enabled_in_a_shared_module_holds_for_every_entry_point() -> None:
    for runs in (run(DETERMINISM), run({n: t for n, t in DETERMINISM.items() if n != "run_a.py"})):
        assert "DET306" not in codes(runs, "run_b.py")


@pytest.mark.parametrize(
    ("calls", "seeded"),
    [
        ("cfg = Config()\nsetup(cfg)\ncfg.seed = True\nsetup(cfg)\n", True),
        ("cfg = Config()\nsetup(cfg)\nsetup(cfg)\n", False),
        ("a = make()\na.seed = True\nb = make()\nsetup(b)\n", False),
        ("a = make()\na.seed = True\nb = make()\nsetup(a)\n", True),
        ("change(setup)\n", True),
        ("GLOBAL.seed = True\nread()\n", True),
        ("read()\nGLOBAL.seed = True\nread()\n", True),
        ("read()\nread()\n", False),
        ("Config.seed = True\nsetup(Config())\n", True),
        ("setup(Config())\nConfig.seed = True\nsetup(Config())\n", True),
        ("holder = Holder()\nsetup(holder.inner)\nholder.inner.seed = True\nsetup(holder.inner)\n", True),
        ("setup_dict({'seed': False})\nsetup_dict({'seed': True})\n", True),
        ("setup_dict({'seed': False})\nsetup_dict({'seed': False})\n", False),
        ("setup_list([False])\nsetup_list([True])\n", True),
        ("flags = [False]\nsetup_list(flags)\nflags[0] = True\nsetup_list(flags)\n", True),
        ("mark(one)\nmark(two)\nsetup(two)\n", True),
        ("mark(one)\nsetup(two)\n", False),
        ("closure(False)()\nclosure(True)()\n", True),
        ("closure(False)()\nclosure(False)()\n", False),
    ],
)
def test_a_call_is_taken_over_only_where_it_would_do_the_same(calls: str, seeded: bool) -> None:
    program = (
        "import torch\n"
        "class Config:\n    seed = False\n"
        "class Holder:\n    def __init__(self):\n        self.inner = Config()\n"
        "GLOBAL = Config()\none = Config()\ntwo = Config()\n"
        "def make():\n    return Config()\n"
        "def mark(config):\n    config.seed = True\n"
        "def setup(config):\n    if config.seed:\n        torch.manual_seed(0)\n"
        "def setup_dict(config):\n    if config['seed']:\n        torch.manual_seed(0)\n"
        "def setup_list(config):\n    for one in config:\n        if one:\n            torch.manual_seed(0)\n"
        "def read():\n    if GLOBAL.seed:\n        torch.manual_seed(0)\n"
        "def change(then):\n    config = Config()\n    then(config)\n    config.seed = True\n    then(config)\n"
        "def closure(flag):\n    def inner():\n        if flag:\n            torch.manual_seed(0)\n"
        "    return inner\n" + calls + "print(torch.rand(3))\n"
    )
    assert ("DET101" not in codes(run({"main.py": program}), "main.py")) is seeded


def _steps(choose: random.Random, functions: int, depth: int = 0) -> Iterable[str]:
    """Some statements: draws, seeds, calls, functions that are replaced, and branches that options decide."""
    for _ in range(choose.randint(1, 3)):
        kind = choose.choice(
            ["draw", "seed", "call", "call", "hook", "box", "if", "return", "loop", "with", "up"]
            if depth < 2
            else ["draw", "call", "up"]
        )
        option = f"o.{choose.choice('ab')}"
        inner = (
            [f"    {line}" for line in _steps(choose, functions, depth + 1)]
            if kind in ("if", "loop", "with")
            else []
        )
        if kind == "if":
            other = [f"    {line}" for line in _steps(choose, functions, depth + 1)]
            yield from (f"if {choose.choice(['', 'not '])}{option}:", *inner, "else:", *other)
        elif kind == "loop":
            yield from ("for _ in range(100):", f"    if {option}:", "        continue", *inner)
        elif kind == "with":
            context = choose.choice(["no_grad()", "enable_grad()", "device('meta')", "device('cpu')"])
            yield from (f"with torch.{context}:", *inner)
        elif kind == "up":
            # Whether the first is reported depends on gradients, the second on the default device.
            yield choose.choice(["up(layer(torch.rand(2, 3, 3, 3).cuda()))", "print(torch.empty(3) + 1)"])
        elif kind == "return":
            yield from (f"if {option}:", "    return 0")
        elif kind == "box":
            held = choose.choice(["Held(True)", "Held(False)", "BOX.get('a', Held(False))"])
            key = choose.choice(["'a'", "'b'", "o.name"])
            yield choose.choice(
                [f"BOX[{key}] = {held}", "look()", "for held in BOX.values(): held.on = False"]
            )
        elif kind == "hook" and functions:
            hooks = choose.choice(["Hooks", "torch"])
            yield choose.choice([f"{hooks}.hook = f{choose.randrange(functions)}", "Hooks.hook(o)"])
        elif kind == "call" and functions:
            yield f"f{choose.randrange(functions)}(o)"
        else:
            # How severe the second draw is depends on whether an option leads to it.
            draw = choose.choice(["print(torch.rand(3))", "print(np.random.default_rng().random())"])
            yield "torch.manual_seed(0)" if kind == "seed" else draw


@pytest.mark.parametrize("seed", range(40))
def test_calls_taken_over_on_paths_that_options_open_find_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    choose = random.Random(seed)
    lines = ["import argparse", "import numpy as np", "import torch", ""]
    lines += ["def nothing(o):", "    pass", "class Hooks:", "    hook = nothing"]
    lines += ["class Held:", "    def __init__(self, on):", "        self.on = on", "BOX = {}"]
    lines += ["layer = torch.nn.Linear(3, 3).cuda()"]
    lines += [
        "def up(x):",
        "    torch.nn.functional.interpolate(x, size=9, mode='bilinear').sum().backward()",
    ]
    lines += [
        "def look():",
        "    for held in BOX.values():",
        "        if held.on:",
        "            torch.manual_seed(0)",
    ]
    for i in range(4):
        lines += [f"def f{i}(o):", *(f"    {line}" for line in _steps(choose, i))]
    lines += [
        "def main(o):",
        *(f"    {line}" for line in (*_steps(choose, 4), *_steps(choose, 4), "f3(o)", "f3(o)")),
    ]
    lines += ["parser = argparse.ArgumentParser()"]
    lines += [f"parser.add_argument('--{name}', action='store_true')" for name in "ab"]
    lines += ["main(parser.parse_args())"]
    files = {"main.py": "\n".join(lines) + "\n"}
    found = of_entry(run(files), "main.py").findings
    monkeypatch.setattr(memo, "replay", lambda *_: None)
    assert of_entry(run(files), "main.py").findings == found


UP = "def act(x):\n    return torch.nn.functional.interpolate(layer(x), size=9, mode='bilinear')\n"
UP += "x = torch.rand(2, 3, 3, 3).cuda()\n"
LAYER = "torch.manual_seed(0)\nlayer = torch.nn.Linear(3, 3).cuda()\n"
TRAIN_WITH = "made = act(data)\nopt = torch.optim.SGD(layer.parameters(), 0.1)\nfor epoch in range(3):\n"
TRAIN_WITH += "    for x in made:\n        layer(x).sum().backward()\n        opt.step()\n"
SAMPLED = "def act(data):\n    sampler = torch.utils.data.DistributedSampler(data, shuffle=True)\n"
SAMPLED += "    return torch.utils.data.DataLoader(data, sampler=sampler)\ndata = open('x')\n"
ADDED = "def act():\n    print(torch.zeros(5).index_add(0, torch.tensor([0, 0]), torch.full((2,), 0.5)))\n"
OPTION = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--fast', action='store_true')\n"
OPTION += "o = p.parse_args()\n"


@pytest.mark.parametrize(
    ("before", "first", "then", "code"),
    [
        (LAYER + UP, "with torch.no_grad():\n    act(x)", "act(x).sum().backward()", "DET302"),
        (
            LAYER + UP,
            "torch.set_grad_enabled(False)\nact(x)",
            "with torch.enable_grad():\n    act(x).sum().backward()",
            "DET302",
        ),
        (LAYER + SAMPLED, "with torch.no_grad():\n    act(data)", TRAIN_WITH, "DET203"),
        (
            "def act():\n    print(torch.empty(3) + 1)\n",
            "with torch.device('meta'):\n    act()",
            "act()",
            "DET309",
        ),
        (
            f"torch.set_default_device('cuda')\n{ADDED}",
            "with torch.device('cpu'):\n    act()",
            "act()",
            "DET401",
        ),
        (
            "import tensorflow as tf\ndef act(x):\n    return tf.math.unsorted_segment_sum(x, [0, 1, 1], 2)\n"
            "x = tf.constant([[0.5, 2.0], [1.5, 3.0], [0.1, 0.2]])\n",
            "with tf.device('/CPU:0'):\n    act(x)",
            "print(act(x))",
            "DET403",
        ),
        (
            "import tensorflow as tf\ndef act(x):\n    return tf.gather(x, [0, 0])\n"
            "x = tf.Variable(tf.ones([3, 2]))\n",
            "act(x)",
            "with tf.GradientTape() as tape:\n    y = act(x)\nprint(tape.gradient(y, x))",
            "DET403",
        ),
        (
            "import threading\ntorch.manual_seed(0)\ndef act():\n    print(torch.rand(3))\n",
            "t = threading.Thread(target=act)\nt.start()",
            "act()\nt.join()",
            "DET211",
        ),
        (
            f"{OPTION}import time\ndef act():\n    return int(time.time())\n",
            "if not o.fast:\n    print(act())",
            "torch.manual_seed(act())\nprint(torch.rand(3))",
            "DET107",
        ),
    ],
    ids=["no_grad", "enable_grad", "evaluation", "meta", "cpu", "tf-cpu", "tape", "thread", "option"],
)
def test_a_call_that_asks_what_is_active_is_taken_over_only_where_the_answer_is_the_same(
    before: str, first: str, then: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"main.py": f"import torch\n{before}{first}\n{then}\n"}
    found = of_entry(run(files), "main.py").findings
    monkeypatch.setattr(memo, "replay", lambda *_: None)
    assert of_entry(run(files), "main.py").findings == found
    assert code in {finding.code for finding in found}
    # What is reported is what is done then: nothing of the kind is found where it is left out.
    alone = of_entry(run({"main.py": f"import torch\n{before}{first}\n"}), "main.py").findings
    assert code not in {finding.code for finding in alone}


def test_a_call_that_asks_nothing_is_taken_over_whatever_is_active() -> None:
    program = "import argparse, torch\ndef helper(x):\n    y = x + 1\n    y = y * 2\n    return y\n"
    program += "".join(f"with context({i}), torch.no_grad():\n    helper(1)\n" for i in range(2))
    alike = program.replace(", torch.no_grad()", "")
    mixed = program.replace(", torch.no_grad()", "", 1)
    steps = [of_entry(run({"main.py": text}), "main.py").steps for text in (alike, mixed)]
    assert steps[0] == steps[1]


def test_an_import_is_taken_over_only_where_the_same_option_leads_to_it() -> None:
    body = "import stamp, torch\ntorch.manual_seed(stamp.SEED)\nprint(torch.rand(3))\n"
    inner = "".join(f"    {line}\n" for line in body.splitlines())
    files = {
        "a.py": f"{OPTION}if not o.fast:\n{inner}",
        "b.py": body,
        "stamp.py": "import time\nSEED = int(time.time())\n",
    }
    both = run(files)
    for name, other in (("a.py", "b.py"), ("b.py", "a.py")):
        alone = run({one: text for one, text in files.items() if one != other})
        assert of_entry(both, name).findings == of_entry(alone, name).findings
    assert "--fast" in of_entry(both, "a.py").findings[0].message
    assert "--fast" not in of_entry(both, "b.py").findings[0].message


@pytest.mark.parametrize(
    ("calls", "reported"),
    [
        ("print(stack(sorted(names())))\nprint(stack(names()))\n", True),
        ("print(stack(names()))\nprint(stack(sorted(names())))\n", True),
        ("print(stack(sorted(names())))\nprint(stack(sorted(names())))\n", False),
        ("found = names()\nfound.sort()\nprint(stack(found))\n", False),
        ("a = names()\nb = names()\nb.sort()\nstack(b)\nstack(a)\n", True),
        ("found = names()\nprint(stack(['a']))\nprint(stack(found))\n", True),
        ("box = Box(sorted(names()))\nbox.stack()\nbox.names = names()\nbox.stack()\n", True),
        ("box = Box(names())\nbox.names.sort()\nbox.stack()\nBox(['a']).stack()\n", False),
        ("kept = []\nfor n in ['a', 'b']:\n    keep(kept, n)\nprint(stack(kept))\n", False),
        ("kept = []\nfor n in names():\n    keep(kept, n)\nprint(stack(kept))\n", True),
        (
            "kept = []\nfor n in ['a', 'b']:\n    keep([], n)\nfor n in names():\n    keep(kept, n)\nprint(stack(kept))\n",
            True,
        ),
        (
            "old = []\nfor n in names():\n    keep(old, n)\n    new = []\n    keep(new, n)\n    stack(new)\n",
            False,
        ),
        (
            "old = []\nfor n in names():\n    new = []\n    keep(new, n)\n    keep(old, n)\nprint(stack(old))\n",
            True,
        ),
        ("ids = {}\nfor n in names():\n    ids[n] = 1\nprint(stack([ids['a']]))\n", False),
        ("ids = {}\nfor n in names():\n    ids[n] = 1\nprint(stack(list(ids)))\n", True),
    ],
)
def test_an_order_is_part_of_what_a_call_reads(calls: str, reported: bool) -> None:
    program = (
        "import os\nimport numpy as np\n"
        "class Box:\n    def __init__(self, names):\n        self.names = names\n"
        "    def stack(self):\n        return np.stack(self.names)\n"
        "def names():\n    return os.listdir('data')\n"
        "def stack(names):\n    return np.stack([np.load(n) for n in names])\n"
        "def keep(into, name):\n    into.append(name)\n" + calls
    )
    assert ("DET209" in codes(run({"main.py": program}), "main.py")) is reported


LIBRARY = {
    "lib/__init__.py": "from lib.models import build\n",
    "lib/registry.py": "TABLE = {}\ndef register(f):\n    TABLE[f.__name__] = f\n    return f\n",
    "lib/models.py": (
        "import torch\nfrom lib.registry import register\nfrom lib import state\n"
        "@register\ndef build():\n    return torch.nn.Linear(2, 2)\n"
        "@register\ndef other():\n    return torch.nn.Conv2d(1, 1, 1)\n"
    ),
    "lib/state.py": "class Options:\n    seed = None\nOPTIONS = Options()\nDEFAULTS = {'seed': None}\nCOUNT = 0\n",
    "lib/noisy.py": "print('imported', __name__)\nimport lib.models\n",
    "lib/seeding.py": "import torch\nimport lib.state\ntorch.manual_seed(0)\n",
    "lib/files.py": "import os\nFILES = os.listdir('data')\ndef find():\n    return [f for f in os.listdir('more')]\n",
    "lib/arrays.py": "import numpy as np\nfrom lib.files import FILES\nDATA = np.array(FILES)\n",
    "lib/util.py": (
        "import torch\nfrom lib.state import OPTIONS, DEFAULTS\n"
        "def prepare():\n    if OPTIONS.seed is not None:\n        torch.manual_seed(OPTIONS.seed)\n"
        "def prepare_dict():\n    if DEFAULTS['seed'] is not None:\n        torch.manual_seed(DEFAULTS['seed'])\n"
    ),
}


def lines(*rows: str) -> str:
    return "\n".join(rows) + "\n"


ENTRIES = {
    "plain.py": lines(
        "import lib",
        "print(lib.build()(1))",
    ),
    "seeds.py": lines(
        "import lib.seeding",
        "import lib",
        "print(lib.build()(1))",
    ),
    "options.py": lines(
        "from lib.state import OPTIONS",
        "from lib.util import prepare",
        "OPTIONS.seed = 1",
        "prepare()",
        "import lib",
        "print(lib.build()(1))",
    ),
    "no_options.py": lines(
        "from lib.util import prepare",
        "prepare()",
        "import lib",
        "print(lib.build()(1))",
    ),
    "dicts.py": lines(
        "from lib.state import DEFAULTS",
        "from lib.util import prepare_dict",
        "DEFAULTS['seed'] = 1",
        "prepare_dict()",
        "import lib",
        "print(lib.build()(1))",
    ),
    "no_dicts.py": lines(
        "from lib.util import prepare_dict",
        "prepare_dict()",
        "import lib",
        "print(lib.build()(1))",
    ),
    "patches.py": lines(
        "import torch, lib.models",
        "lib.models.build = lambda: 1",
        "print(lib.models.build(), torch.rand(2))",
    ),
    "registry.py": lines(
        "import torch",
        "from lib.registry import TABLE",
        "import lib.models",
        "TABLE.clear()",
        "TABLE['build'] = len",
        "print(TABLE['build'](torch.rand(1)))",
    ),
    "uses_registry.py": lines(
        "from lib.registry import TABLE",
        "import lib.noisy",
        "print(TABLE['build']())",
    ),
    "arrays.py": lines(
        "from lib.arrays import DATA",
        "from lib.files import find",
        "print(DATA, find())",
    ),
    "sorts.py": lines(
        "from lib.files import FILES",
        "FILES.sort()",
        "from lib.arrays import DATA",
        "print(DATA)",
    ),
    "environment.py": lines(
        "import os",
        "os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'",
        "import torch",
        "torch.use_deterministic_algorithms(True)",
        "import lib.noisy",
        "m = lib.build().cuda()",
        "m(1).sum().backward()",
    ),
    "modes.py": lines(
        "import torch",
        "import lib.noisy",
        "torch.use_deterministic_algorithms(True)",
        "m = lib.build().cuda()",
        "m(1).sum().backward()",
    ),
}


def reports(entries: Mapping[str, str]) -> dict[str, EntryReport]:
    """The report of each entry point, with files by name: their places change with the others."""
    files = {**LIBRARY, **entries}
    runs, names = run(files), sorted(files)
    found = {name: of_entry(runs, name) for name in entries}
    return {
        name: msgspec.structs.replace(
            report,
            reached={names[i]: functions for i, functions in report.functions_reached().items()},
            files=[names[i] for i in report.files],
            entered={names[i]: functions for i, functions in report.functions_entered().items()},
        )
        for name, report in found.items()
    }


def test_adding_removing_and_reordering_entry_points_changes_no_report() -> None:
    alone = {name: reports({name: text})[name] for name, text in ENTRIES.items()}
    assert len({tuple(f.code for f in report.findings) for report in alone.values()}) > 2
    assert reports(ENTRIES) == alone
    for first, second in itertools.permutations(ENTRIES, 2):
        pair = reports({first: ENTRIES[first], second: ENTRIES[second]})
        assert pair == {first: alone[first], second: alone[second]}, (first, second)


@pytest.mark.parametrize(
    ("files", "entries"),
    [
        # A helper that comes back to the script for one function does not make the script a library.
        (
            {"train.py": "from tools import save\n", "tools.py": "def save():\n    import train\n"},
            {"train.py"},
        ),
        ({"a.py": "import b\n", "b.py": "import c\n", "c.py": "import a\n"}, {"a.py", "b.py", "c.py"}),
        # What brings the cycle in is the entry point, and so it is for the modules of a package.
        ({"main.py": "import a\n", "a.py": "import b\n", "b.py": "import a\n"}, {"main.py"}),
        ({"p/__init__.py": "from p import a\n", "p/a.py": "import p\n"}, set()),
    ],
)
def test_scripts_that_import_each_other_are_run(files: dict[str, str], entries: set[str]) -> None:
    draw = "import torch\nprint(torch.rand(3))\n"
    runs = run(
        {name: text + (draw if text.startswith(("import", "from")) else "") for name, text in files.items()}
    )
    assert {Path(report.entry).relative_to(ROOT).as_posix() for report in runs.entries} == entries


def test_renaming_entry_points_changes_no_codes() -> None:
    """Another name is another place in the order of runs."""
    expected = {name: sorted(f.code for f in report.findings) for name, report in reports(ENTRIES).items()}
    names = list(ENTRIES)
    for seed in range(5):
        shuffled = names[:]
        random.Random(seed).shuffle(shuffled)
        renamed = {f"{index:02}_{name}": ENTRIES[name] for index, name in enumerate(shuffled)}
        found = {
            name[3:]: sorted(f.code for f in report.findings) for name, report in reports(renamed).items()
        }
        assert found == expected


TABLES = {
    "table.py": "TABLE = {}\n",
    "fills.py": (
        "import torch\nfrom table import TABLE\ndef build():\n    return torch.nn.Linear(2, 2)\nTABLE['build'] = build\n"
    ),
    "reads.py": (
        "import torch\nfrom table import TABLE\nSEED = TABLE.get('seed')\n"
        "def setup():\n    if SEED is not None:\n        torch.manual_seed(SEED)\n"
    ),
}


@pytest.mark.parametrize("imported", ["fills", "reads"])
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("import fills\nfrom table import TABLE\nprint(TABLE['build']())\n", {"DET101"}),
        ("from table import TABLE\nimport fills\nprint(TABLE['build']())\n", {"DET101"}),
        (
            "from table import TABLE\nimport fills, torch\nTABLE.pop('build')\nprint(TABLE.get('build'))\n",
            set(),
        ),
        (
            "from table import TABLE\nTABLE['seed'] = 1\nimport reads, torch\nreads.setup()\nprint(torch.rand(2))\n",
            set(),
        ),
        ("import reads, torch\nreads.setup()\nprint(torch.rand(2))\n", {"DET101"}),
    ],
)
def test_an_import_writes_to_what_an_import_inside_of_it_has_made(
    text: str, expected: set[str], imported: str
) -> None:
    # The first name runs before the other program that imports a module, the second one after it.
    for name in ("a.py", "zz.py"):
        found = run({**TABLES, "main.py": f"import {imported}\nprint(1)\n", name: text})
        assert codes(found, name) == expected, name


def modules_taken_over(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules whose imports are taken over from now on, as this happens."""
    taken: list[str] = []
    take_over: Callable[..., object] = import_cache._take_over
    monkeypatch.setattr(
        import_cache,
        "_take_over",
        lambda interp, known: taken.append(known.mod.name) or take_over(interp, known),
    )
    return taken


def test_imports_taken_over_and_imports_run_again_give_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    shared = run({**LIBRARY, **ENTRIES})
    taken = modules_taken_over(monkeypatch)
    assert run({**LIBRARY, **ENTRIES}) == shared
    assert "lib.models" in taken or "lib" in taken
    monkeypatch.setattr(import_cache, "_still_true", lambda interp, known: False)
    assert run({**LIBRARY, **ENTRIES}) == shared


def test_imports_that_draw_and_save_in_loops_are_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {
        "tables.py": (
            "import json, random\nchosen = random.Random(3)\nrows = []\ni = 0\n"
            "while i < 4:\n    for j in range(3):\n        rows.append(chosen.random())\n    i += 1\n"
            "json.dump({'rows': rows, 'names': ['a', 'b']}, open('tables.json', 'w'))\n"
        ),
        **{f"{name}.py": "import torch, tables\nprint(torch.rand(2), tables.rows)\n" for name in ("a", "b")},
    }
    taken = modules_taken_over(monkeypatch)
    shared = run(files)
    assert taken == ["tables"]
    monkeypatch.setattr(import_cache, "_still_true", lambda interp, known: False)
    assert run(files) == shared


SEEDS = {
    "setup.py": (
        "import os, random, numpy as np, torch\n"
        "os.environ['CUBLAS_WORKSPACE_CONFIG'] = ':4096:8'\n"
        "def seed_all(seed):\n    random.seed(seed)\n    torch.manual_seed(seed)\n"
        "seed_all(3)\nnp.random.seed(int.from_bytes(os.urandom(4), 'big'))\n"
        "torch.backends.cudnn.deterministic = True\ntorch.use_deterministic_algorithms(True)\n"
    ),
    "draws.py": "import random, torch, setup\nfirst = torch.rand(3) + random.random()\n",
    "a.py": "import torch, draws\nprint(torch.rand(2), draws.first)\n",
    "b.py": (
        "import torch\nfrom multiprocessing import get_context\n"
        "def work(i):\n    return torch.rand(i)\n"
        "if __name__ == '__main__':\n    import draws\n"
        "    print(get_context('spawn').Pool(2).map(work, [1, 2]))\n"
    ),
    "c.py": (
        "import torch, draws\nfrom multiprocessing import get_context\n"
        "def work(i):\n    return torch.rand(i)\n"
        "if __name__ == '__main__':\n    print(get_context('spawn').Pool(2).map(work, [1, 2]))\n"
    ),
    "d.py": "import random\nprint(random.random())\nimport draws\nprint(random.random(), draws.first)\n",
    "e.py": "import random\nrandom.seed(1)\nprint(random.random())\nimport draws\nprint(draws.first)\n",
    "f.py": "import torch, draws\nprint(torch.rand(2))\n",
}
"""Modules that seed, set modes and draw when they are imported."""


def test_imports_that_seed_and_set_modes_are_taken_over(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = modules_taken_over(monkeypatch)
    shared = run(SEEDS)
    assert taken.count("draws") >= 2
    assert codes(shared, "a.py") == codes(shared, "f.py") == {"DET107"}
    assert codes(shared, "d.py") == {"DET107", "DET108"} and codes(shared, "e.py") == {"DET107"}
    monkeypatch.setattr(import_cache, "_still_true", lambda interp, known: False)
    assert run(SEEDS) == shared


def test_of_many_circumstances_of_an_import_those_met_last_are_remembered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    files = {"flags.py": "level = 0\n", "lib.py": "import flags\nlevel = flags.level + 1\n"}
    for name, level in {"a1": 1, "a2": 1, "b1": 2, "b2": 2, "c1": 3, "c2": 3, "d": 1}.items():
        files[f"{name}.py"] = (
            f"import torch, flags\nflags.level = {level}\nimport lib\nprint(torch.rand(lib.level))\n"
        )
    monkeypatch.setattr(import_cache, "MAX_VARIANTS", 2)
    taken: list[str] = []
    take_over: Callable[..., object] = import_cache._take_over

    def counted(interp: Interp, known: import_cache.Imported) -> object:
        taken.append(f"{known.mod.name} of {interp.entry.relative}" if interp.entry is not None else "")
        return take_over(interp, known)

    monkeypatch.setattr(import_cache, "_take_over", counted)
    some = run(files)
    assert [one for one in taken if one.startswith("lib ")] == [
        "lib of a2.py",
        "lib of b2.py",
        "lib of c2.py",
    ]
    monkeypatch.setattr(import_cache, "MAX_VARIANTS", 64)
    assert run(files) == some


CIRCLE = {
    "ring/__init__.py": "from ring import first\n",
    "ring/first.py": "import ring.second\ndef make(x):\n    return ring.second.more(x)\n",
    "ring/second.py": (
        "from ring import third\nTABLE = {}\ndef more(x):\n    return third.least(x).cumsum(0)\n"
    ),
    "ring/third.py": "import torch, ring.first\nring.first.SCALE = 2\ndef least(x):\n    return torch.rand(2) * x\n",
    "user.py": (
        "from ring import second\nsecond.TABLE['a'] = 1\nimport torch, spare\n"
        "def unused(x):\n    spare.unused()\n    return second.more(x.cuda())\n"
    ),
    "spare.py": "import torch, user\ndef unused():\n    torch.backends.cudnn.benchmark = True\n",
}
"""Modules that import each other, with code that no program reaches."""


def test_imports_that_are_forgotten_between_runs_change_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {**LIBRARY, **ENTRIES, **CIRCLE}
    expected = run(files)
    assert {f.path for report in expected.unreached for f in report.findings} >= {f"{ROOT}/spare.py"}
    ran: list[str] = []
    run_file = Interp.run_file
    monkeypatch.setattr(
        Interp, "run_file", lambda self, file, name: ran.append(name) or run_file(self, file, name)
    )
    assert run(files) == expected
    once = len(ran)
    ran.clear()
    monkeypatch.setattr(import_cache, "MOST_REMEMBERED", 0)
    assert run(files) == expected
    assert len(ran) > once, "no import was forgotten"


def test_reports_and_steps_do_not_depend_on_memory() -> None:
    """No identity of an object decides anything: freed addresses may be used again in any pattern."""
    program = (
        "import torch\n"
        "def setup(config):\n    if config['seed']:\n        torch.manual_seed(0)\n"
        "def deep(n, config):\n    setup(config)\n    return [dict(config, n=n), {'seed': False}]\n"
        "for i in range(12):\n    deep(i, {'seed': False, 'i': i})\n"
        "setup({'seed': False})\nsetup({'seed': True})\nprint(torch.rand(3))\n"
    )
    files = {**LIBRARY, **ENTRIES, "memory.py": program}
    expected = run(files)
    assert "DET101" not in codes(expected, "memory.py")
    for pattern in range(4):
        kept = [bytearray(64 + 16 * (i % 40)) for i in range(2000 * pattern)]
        del kept[::2]
        gc.collect() if pattern % 2 else gc.disable()
        try:
            assert run(files) == expected
        finally:
            gc.enable()
        del kept


def test_bodies_that_are_decoded_again_for_each_run_change_no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    files = {**LIBRARY, **ENTRIES}
    expected = run(files)
    decoded: list[str] = []
    body = nodes.Function.__dict__["body"].func
    monkeypatch.setattr(
        nodes.Function.__dict__["body"], "func", lambda self: decoded.append(self.qualname) or body(self)
    )
    assert run(files) == expected
    once = len(decoded)
    decoded.clear()
    monkeypatch.setattr(bodies, "MOST_KEPT", 0)
    monkeypatch.setattr(bodies, "MOST_OPENED", 0)
    assert run(files) == expected
    assert len(decoded) > once, "no body was let go"


def _levels(body: str, n: int) -> str:
    return "".join(body.format(i=i, below=i - 1) for i in range(1, n + 1))


@pytest.mark.parametrize(
    ("first", "level", "last"),
    [
        (
            "class A:\n    def __init__(self, x):\n        self.x = x\ndef f0(a):\n    return a.x\n",
            "def f{i}(a):\n    f{below}(A(1))\n    return f{below}(A(2))\n",
            "A(0)",
        ),
        (
            "def f0(a):\n    return a\n",
            "def f{i}(a):\n    f{below}({{'a': 1}})\n    return f{below}(dict(a, b=1))\n",
            "{}",
        ),
        (
            "def f0(a):\n    return a()\n",
            "def f{i}(a):\n    f{below}(lambda: 1)\n    return f{below}(lambda: a)\n",
            "lambda: 1",
        ),
        (
            "def f0(a):\n    return a\n",
            "def f{i}(a):\n    f{below}(a + 1)\n    return f{below}(a * 2)\n",
            "1",
        ),
        (
            "class f0:\n    def __init__(self, a):\n        self.a = a\n",
            "class f{i}:\n    def __init__(self, a):\n        self.a = f{below}(a)\n        self.b = f{below}(a)\n",
            "1",
        ),
    ],
    ids=["instances", "dicts", "lambdas", "numbers", "modules"],
)
def test_calls_inside_one_another_cost_no_more_than_their_number(first: str, level: str, last: str) -> None:
    def steps(n: int) -> int:
        text = f"import torch\n{first}{_levels(level, n)}print(f{n}({last}), torch.rand(3))\n"
        runs = run({"main.py": text})
        assert "DET101" in codes(runs, "main.py")
        return of_entry(runs, "main.py").steps

    assert steps(10) < 1_500 and steps(14) < 3_000


@pytest.mark.parametrize("depth", [4, 7])
def test_loops_inside_one_another_are_bounded(depth: int) -> None:
    loops = "".join("    " * i + f"for x{i} in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9):\n" for i in range(depth))
    comprehension = "1"
    for i in range(depth):
        comprehension = f"[{comprehension} for y{i} in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9)]"
    text = f"import torch\n{loops}{'    ' * depth}z = torch.rand(3)\nprint(z, {comprehension})\n"
    runs = run({"main.py": text})
    assert of_entry(runs, "main.py").steps < 2_000 and "DET101" in codes(runs, "main.py")


def test_reports_are_the_same_from_any_number_of_processes() -> None:
    facts = [
        ProjectFile(f"{ROOT}/{name}", name, extract(text, ""))
        for name, text in {**LIBRARY, **ENTRIES}.items()
    ]
    known = knowledge.load()
    targets = find_targets("/nowhere", torch_version="2.6", tensorflow_version="2.15")
    expected = run({**LIBRARY, **ENTRIES})
    for jobs in (1, 2, 7):
        analyzer = Analyzer(Project(facts, ROOT, [known]), known, targets, "cuda", Rules(known, known.rules))
        assert analyze(analyzer, executor_for(jobs)) == expected


def lint(directory: Path, *options: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "d9mlint", "--output-format", "json", *options, str(directory)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, 1), done.stderr
    return done.stdout


def test_after_an_edit_the_cache_gives_what_a_run_without_it_gives(tmp_path: Path) -> None:
    """Whatever is edited: an entry point, a leaf, a module that all import, or a comment."""
    for name, text in {**LIBRARY, **ENTRIES}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert lint(tmp_path) == lint(tmp_path, "--no-cache")
    edits = {
        "plain.py": "import torch\ntorch.manual_seed(0)\nimport lib\nprint(lib.build()(1))\n",
        "lib/noisy.py": "import torch\ntorch.manual_seed(0)\nimport lib.models\n",
        "lib/state.py": LIBRARY["lib/state.py"].replace("seed = None", "seed = 3"),
        "lib/models.py": "# A comment.\n" + LIBRARY["lib/models.py"],
        "new.py": "import lib\nprint(lib.build()(1))\n",
    }
    for name, text in edits.items():
        (tmp_path / name).write_text(text)
        assert lint(tmp_path) == lint(tmp_path, "--no-cache"), name
    (tmp_path / "plain.py").unlink()
    assert lint(tmp_path) == lint(tmp_path, "--no-cache")


def test_what_an_import_reports_is_reported_for_every_entry_point() -> None:
    files = {
        "pkg/__init__.py": "import pkg.names\n",
        "pkg/names.py": "import numpy as np\nNAMES = np.random.default_rng()\n",
        "run_a.py": "import pkg\nprint(pkg.names.NAMES)\n",
        "run_b.py": "def main():\n    import pkg\n    print(pkg.names.NAMES)\nmain()\n",
    }
    both = run(files)
    for name in ("run_a.py", "run_b.py"):
        alone = run({n: t for n, t in files.items() if n.startswith("pkg") or n == name})
        assert of_entry(alone, name).findings == of_entry(both, name).findings
        assert "DET106" in codes(both, name)


def test_what_only_might_be_done_is_no_effect_of_an_import() -> None:
    facts = [ProjectFile(f"{ROOT}/run.py", "run.py", extract("x = 1\n", ""))]
    known = knowledge.load()
    project = Project(facts, ROOT, [known])
    interp = Interp(project.modules, known, entry=project.modules.files[0])
    start_models(interp)
    interp.run_file(project.modules.files[0], "__main__")
    interp.frame = interp.base_frame(Mod("__main__", project.modules.files[0]), project.modules.files[0])
    interp.import_log = ImportLog()
    with interp.fork():
        note(interp, TRAIN, None)
    assert (interp.places, interp.import_log.places) == ({}, {})
    note(interp, TRAIN, None)
    assert set(interp.places) == set(interp.import_log.places) == {TRAIN, TRAINS_ON, TRAINS_OTHERWISE}


def test_an_import_that_does_too_much_is_cut_and_named() -> None:
    body = "".join(
        f"def f{i}(a, b):\n    f{i - 1}([a], {{'b': b}})\n    f{i - 1}({{}}, [b])\n" for i in range(1, 18)
    )
    files = {
        "pkg/__init__.py": "",
        "pkg/heavy.py": f"def f0(a, b):\n    for x in a:\n        b = [x, b, a]\n    return b\n{body}"
        "for i in range(1000):\n" + "".join(f"    f17([{i}, i], {{'{i}': i}})\n" for i in range(300)),
        "main.py": "import torch\nimport pkg.heavy\nprint(torch.rand(3))\n",
        "other.py": "import torch\nimport pkg.heavy\nprint(torch.rand(3))\n",
    }
    runs = run(files)
    for name in ("main.py", "other.py"):
        report = of_entry(runs, name)
        assert "DET101" in codes(runs, name)
        if report.cuts:
            assert {cut.path for cut in report.cuts} == {f"{ROOT}/pkg/heavy.py"}
    assert of_entry(runs, "main.py").cuts == of_entry(runs, "other.py").cuts


SHARED = {
    "one.py": "class One:\n    pass\n\nOne.made = lambda: 1\n",
    "two.py": "import logging\n\nclass Two:\n    pass\n\nTwo.built = lambda: 2\nlogging.two = Two\n",
    "base.py": "import random\n\nclass Maker:\n    def make():\n        return 1\n",
    "package/__init__.py": "from package import a, b\nfrom base import Maker\n\nnumber = Maker.make()\n",
    "package/a.py": "def f():\n    return 1\n",
    "package/b.py": "def g():\n    return 2\n",
    "run_a.py": "import one\nimport package\nprint(package.a.f())\n",
    "run_b.py": "import two\nimport package\nprint(package.b.g())\n",
}


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The modules that programs run, by name, as often as they do."""
    names: list[str] = []
    run_file = Interp.run_file

    def counted(self: Interp, file: ModuleFile, name: str) -> Mod:
        if self.entry is not None:
            names.append(name)
        return run_file(self, file, name)

    monkeypatch.setattr(Interp, "run_file", counted)
    return names


def alike(files: Mapping[str, str], *programs: str) -> Runs:
    """The reports of a project, whose programs are shown to be reported as if each were the only one."""
    together = run(files)
    for name in programs:
        alone = run({n: text for n, text in files.items() if n == name or n not in programs})
        assert of_entry(alone, name).findings == of_entry(together, name).findings, name
    return together


def test_an_import_with_a_loop_is_run_once(ran: list[str]) -> None:
    files = {
        "looped.py": "import torch\nnames = []\nfor name in ('a', 'b'):\n    names.append(name)\n",
        "run_a.py": "import looped\nprint(torch.rand(2) if looped.names else 0)\n",
        "run_b.py": "import looped\nprint(len(looped.names))\n",
    }
    alike(files, "run_a.py", "run_b.py")
    ran.clear()
    run(files)
    assert ran.count("looped") == 1


LAZY = {
    "log.py": (
        "import logging, random, sys\nhandler = None\n"
        "def get(name):\n    global handler\n    if handler is None:\n        handler = logging.StreamHandler()\n"
        "        handler.flush = sys.stderr.flush\n    return logging.getLogger(name)\n"
        "generator = None\n"
        "def shared():\n    global generator\n    if generator is None:\n        generator = random.Random()\n"
        "    return generator\n"
    ),
    "one.py": "import log\nlogger = log.get('one')\n",
    "two.py": "import log\nlogger = log.get('two')\n",
    "three.py": "import log\nlogger = log.get('three')\n",
    "first.py": "import log\ngenerator = log.shared()\n",
    "second.py": "import log\ngenerator = log.shared()\n",
    "run_a.py": "import one, three\nprint(three.logger)\n",
    "run_b.py": "import two, three\nprint(three.logger)\n",
    "run_c.py": "import first, second\nprint(second.generator)\n",
    "run_d.py": (
        "import torch, log\nlog.shared()\nimport second\nlog.generator.seed(0)\n"
        "print(torch.full((2,), second.generator.random()))\n"
    ),
    "run_e.py": (
        "import torch, log\nlog.shared()\nimport second\nprint(torch.full((2,), second.generator.random()))\n"
    ),
}
"""What the module that is imported first makes for all others."""


def test_an_import_is_run_once_for_programs_that_made_the_same_object_before_it(ran: list[str]) -> None:
    runs = alike(LAZY, "run_a.py", "run_b.py", "run_c.py", "run_d.py", "run_e.py")
    assert codes(runs, "run_d.py") == set()
    assert codes(runs, "run_e.py") != set()
    ran.clear()
    run(LAZY)
    assert ran.count("three") == 1
    # It keeps the object, which each program goes on to change.
    assert ran.count("second") > 1


@pytest.fixture
def remembered(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The functions that are run, by their index in their file, as often as they are."""
    indices: list[int] = []
    remember = memo.remember
    monkeypatch.setattr(
        memo, "remember", lambda function, *more: indices.append(function[1]) or remember(function, *more)
    )
    return indices


LOOPING = (
    "import torch\nclass A:\n    pass\nclass B:\n    pass\n"
    "def names(some):\n    found = []\n    for cls in some:\n        found.append(cls.__name__)\n    return found\n"
    "both = (A, B)\nfirst = names(both)\nsecond = names(both)\nthird = names(both)\n"
)


def test_a_function_whose_own_variables_stand_for_several_classes_is_run_once(remembered: list[int]) -> None:
    run({"main.py": LOOPING})
    assert remembered == [1]


@pytest.mark.parametrize("last", ["draw", "nothing"])
def test_a_function_around_that_has_been_replaced_is_called_by_those_in_its_scope(last: str) -> None:
    text = (
        "import torch\ndef nothing():\n    return 0\ndef draw():\n    return torch.rand(2)\n"
        "def program():\n    def inner():\n        return chosen()\n"
        f"    chosen = nothing\n    print(inner())\n    chosen = {last}\n    print(inner())\nprogram()\n"
    )
    assert codes(run({"main.py": text}), "main.py") == ({"DET101"} if last == "draw" else set())


def test_an_import_is_run_once_for_programs_that_replaced_what_it_never_looks_for(ran: list[str]) -> None:
    run(SHARED)
    assert [ran.count(name) for name in ("package", "package.a", "package.b")] == [1, 1, 1]


def test_an_import_that_looks_for_what_a_program_has_replaced_is_run_again() -> None:
    text = (
        "import random\nimport base\n\ndef draw():\n    return random.random()\n\n"
        "base.Maker.make = draw\nimport package\nprint(package.number)\n"
    )
    runs = run({**SHARED, "run_c.py": text})
    assert "DET103" in codes(runs, "run_c.py")
    assert codes(runs, "run_a.py") == codes(runs, "run_b.py") == set()


def test_a_module_is_a_program_of_its_own_once_nothing_imports_it() -> None:
    files = {
        "world.py": "import torch\n\nnoise = torch.rand(3)\nprint(noise)\n",
        "run.py": "import torch\n\ntorch.manual_seed(0)\nimport world\n\nprint(world.noise)\n",
        "other.py": "import torch\n\nprint(torch.rand(3))\n",
    }
    imported = run(files)
    assert {report.relative for report in imported.entries} == {"run.py", "other.py"}
    assert "DET101" not in codes(imported, "run.py")
    alone = run({name: text for name, text in files.items() if name != "run.py"})
    assert {report.relative for report in alone.entries} == {"world.py", "other.py"}
    assert "DET101" in codes(alone, "world.py")
    assert codes(alone, "other.py") == codes(imported, "other.py")


MAIN = "if __name__ == '__main__':\n"
ADDS = "torch.zeros(5).cuda().index_add(0, torch.tensor([0, 0]).cuda(), torch.full((2,), 0.5).cuda())"


@pytest.mark.parametrize(
    ("does", "expected"),
    [
        (f"TOTAL = {ADDS}\n", {"DET401"}),
        ("torch.set_num_threads(1)\nTOTAL = 1\n", set()),
        ("net = torch.nn.ReflectionPad2d(1).cuda()\nTOTAL = net(torch.zeros(1, 1, 3, 3).cuda())\n", set()),
        ("import random\nTOTAL = random.random() + random.randint(0, 5)\n", {"DET103"}),
        ("net = torch.nn.Linear(3, 3)\nTOTAL = net(torch.rand(2, 3))\nprint(TOTAL)\n", {"DET101"}),
        ("net = torch.nn.Dropout(0.5)\nTOTAL = net(torch.ones(3))\nprint(TOTAL)\n", {"DET101"}),
    ],
)
def test_an_import_that_rules_note_something_of_is_run_once(
    does: str, expected: set[str], ran: list[str]
) -> None:
    files = {
        "pkg/__init__.py": "from pkg import first\nfrom pkg.second import TOTAL\n",
        "pkg/first.py": "import pkg\n",
        "pkg/second.py": f"import torch\nimport pkg.first\n{does}",
        "run_a.py": "import pkg\nprint(pkg.TOTAL)\n",
        "run_b.py": "import os\ndef main():\n    import pkg\n    print(pkg.TOTAL)\nmain()\n",
    }
    found = run(files)
    assert [ran.count(name) for name in ("pkg", "pkg.first", "pkg.second")] == [1, 1, 1]
    for name in ("run_a.py", "run_b.py"):
        assert codes(found, name) >= expected
    alike(files, "run_a.py", "run_b.py")


def test_a_draw_of_an_import_is_seen_from_each_program_that_seeds_later(ran: list[str]) -> None:
    files = {
        "pkg/__init__.py": "from pkg import draws\n",
        "pkg/draws.py": "import random\nimport torch\nSTART = [random.random(), torch.rand(2)]\nEND = random.random()\n",
        "run_a.py": "import random\nimport pkg\nrandom.seed(0)\nprint(pkg.draws.START)\n",
        "run_b.py": "import random\ndef main():\n    import pkg\n    random.seed(0)\n    print(pkg.draws.END)\nmain()\n",
        "run_c.py": "import random, torch\nprint(random.random())\nimport pkg\nrandom.seed(0)\nprint(pkg)\n",
    }
    found = run(files)
    assert [ran.count(name) for name in ("pkg", "pkg.draws")] == [2, 2]
    for name in ("run_a.py", "run_b.py", "run_c.py"):
        assert codes(found, name) >= {"DET101", "DET108"}
    alike(files, "run_a.py", "run_b.py", "run_c.py")


@pytest.mark.parametrize("seeds", ["", "import random\nrandom.seed(0)\n"])
def test_what_is_remembered_does_not_grow_with_the_number_of_programs(
    seeds: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An import that seeds is not remembered, and then nothing that can be used with it alone."""
    caches: list[import_cache.ImportCache] = []
    made = import_cache.ImportCache.__init__
    monkeypatch.setattr(
        import_cache.ImportCache, "__init__", lambda self: (caches.append(self), made(self))[1]
    )

    def kept(programs: int) -> int:
        caches.clear()
        files = {
            "pkg/__init__.py": f"{seeds}from pkg import first, second\n",
            "pkg/first.py": "import pkg\nfrom pkg import second\n",
            "pkg/second.py": "import pkg.first\nNAMES = [1, 2]\n",
        }
        run(files | {f"run_{i}.py": f"import pkg\nprint(pkg, {i})\n" for i in range(programs)})
        return sum(len(variants) for cache in caches for variants in cache._known.values())

    assert kept(6) == kept(2)


def test_the_packages_around_a_module_are_imported_before_it(ran: list[str]) -> None:
    files = {
        "pkg/__init__.py": "import torch\ntorch.manual_seed(0)\nfrom pkg import nets\n",
        "pkg/nets.py": "from pkg import tools\n",
        "pkg/tools/__init__.py": "from pkg import nets\n",
        "pkg/tools/noise.py": "import torch\ndef noise():\n    return torch.rand(3)\n",
        "pkg/train.py": "from .tools.noise import noise\nprint(noise())\n",
        "pkg/sub/eval.py": "from ..tools.noise import noise\nprint(noise())\n",
        "pkg/sub/__init__.py": "",
        "script.py": "from pkg.tools.noise import noise\nprint(noise())\n",
    }
    programs = ("pkg/train.py", "pkg/sub/eval.py", "script.py")
    found = alike(files, *programs)
    assert [codes(found, name) for name in programs] == [set(), set(), set()]
    ran.clear()
    unseeded = run({**files, "pkg/__init__.py": "import torch\nfrom pkg import nets\n"})
    assert [codes(unseeded, name) for name in programs] == [{"DET101"}] * 3
    assert [ran.count(name) for name in ("pkg", "pkg.nets", "pkg.tools", "pkg.tools.noise")] == [1, 1, 1, 1]


@pytest.mark.parametrize(("name", "expected"), [("train", set()), ("other", {"DET101"})])
def test_a_program_that_imports_the_file_it_was_started_with_runs_it_again(
    name: str, expected: set[str]
) -> None:
    files = {
        "train.py": (
            f"import torch\nif __name__ == '{name}':\n    torch.manual_seed(0)\n"
            "import helper\nprint(torch.rand(3))\n"
        ),
        "helper.py": "import train\n",
    }
    assert codes(run(files), "train.py") == expected


def test_an_import_that_extends_the_search_path_is_run_once(ran: list[str]) -> None:
    files = {
        "pkg/__init__.py": "import sys\nsys.path.append(sys.argv[1])\nimport elsewhere\nfrom pkg import b\n",
        "pkg/b.py": "import elsewhere\nimport pkg\n",
        "far/away/elsewhere.py": f"import torch\nTOTAL = {ADDS}\n",
        "run_a.py": f"{MAIN}    import pkg\n",
        "run_b.py": f"{MAIN}    import pkg\n    print(1)\n",
        "run_c.py": f"import sys\n{MAIN}    sys.path.append(sys.argv[1])\n    import pkg\n",
        "run_d.py": f"{MAIN}    import elsewhere\n",
    }
    found = run(files)
    assert ran.count("pkg.b") == 2
    assert [codes(found, f"run_{name}.py") for name in "abcd"] == [{"DET401"}] * 3 + [set()]
    alike(files, "run_a.py", "run_b.py", "run_c.py", "run_d.py")


def test_an_import_that_calls_a_method_that_any_class_may_have_is_taken_over_only_where_they_are_the_same() -> (
    None
):
    files = {
        "user.py": "import third\nthird.make().add_all()\n",
        "maker.py": (f"import torch\nclass Maker:\n    def add_all(self):\n        print({ADDS})\n"),
        "run_a.py": f"{MAIN}    import user\n",
        "run_b.py": f"{MAIN}    import maker\n    import user\n",
        "run_c.py": f"{MAIN}    import user\n    import maker\n",
    }
    found = alike(files, "run_a.py", "run_b.py", "run_c.py")
    assert [codes(found, f"run_{name}.py") for name in "abc"] == [set(), {"DET401"}, set()]


@pytest.mark.parametrize("helper", ["import train\n", "def again():\n    import train\nagain()\n"])
def test_what_the_started_file_does_twice_is_one_finding(helper: str) -> None:
    files = {
        "train.py": (
            "import torch\nimport helper\ntorch.backends.cudnn.benchmark = True\n"
            "if __name__ == '__main__':\n    print(torch.nn.Linear(3, 3).cuda()(torch.ones(3).cuda()))\n"
        ),
        "helper.py": helper,
    }
    found = [f for f in run(files).findings() if f.code == "DET301"]
    assert [f.path for f in found] == [f"{ROOT}/train.py"]


def test_findings_that_differ_in_their_flow_only_are_joined_in_any_order() -> None:
    [one] = [f for f in of_entry(run(ENVIRONMENT), "run_a.py").findings if f.code == "DET111"]
    others = [
        msgspec.structs.replace(one, flow=(Step(f"{ROOT}/{name}", 0, 1, "starts here"),)) for name in "ba"
    ]
    assert merge([others]) == merge([others[::-1]]) == [others[1]]


def test_what_reads_alike_at_one_place_is_said_once() -> None:
    [one] = [f for f in of_entry(run(ENVIRONMENT), "run_a.py").findings if f.code == "DET111"]
    other = msgspec.structs.replace(one, subject="another", entry_point="")
    third = msgspec.structs.replace(one, subject="a third", message="something else")
    assert merge([[one, other, third]]) == merge([[third, other], [one]])
    assert len(merge([[one, other, third]])) == 2


def test_what_one_program_shows_is_not_hidden_behind_the_advice_of_another() -> None:
    [one] = [f for f in of_entry(run(ENVIRONMENT), "run_a.py").findings if f.code == "DET111"]
    advice = msgspec.structs.replace(one, severity=Severity.ADVICE, message="it depends on earlier draws")
    shown = msgspec.structs.replace(one, confidence=Confidence.MEDIUM, entry_point="run_b.py")
    unsure = msgspec.structs.replace(shown, confidence=Confidence.LOW)
    assert [f.severity for f in merge([[advice], [shown]])] == [shown.severity]
    assert merge([[advice], [shown]]) == merge([[shown], [advice]])
    assert [f.severity for f in merge([[advice], [unsure]])] == [Severity.ADVICE]


def test_the_name_of_a_library_is_not_looked_for_in_a_package() -> None:
    files = {
        "pkg/__init__.py": "",
        "pkg/random.py": "def random():\n    return 4\n",
        "pkg/types.py": "import pkg.use\n",
        "pkg/use.py": "import random\nimport types\ndef draw():\n    print(random.random())\n",
        "main.py": "from pkg.use import draw\ndraw()\n",
        "pkg/inside.py": "import random\nif __name__ == '__main__':\n    print(random.random())\n",
    }
    found = run(files)
    assert codes(found, "main.py") == {"DET103"}
    # Python looks in the directory of the file that it is started with first.
    assert codes(found, "pkg/inside.py") == set()


WORK = "".join(f"x{k} = {k}\n" for k in range(60))
LARGE = {
    # 60 steps, then another module: together more than an import may take, each alone less.
    "large.py": f"{WORK}import part\n",
    "part.py": f"import torch\n{WORK}{WORK}\ndef switch(on):\n    torch.backends.cudnn.benchmark = on\n",
    "a.py": "import large\nfrom part import switch\nswitch(True)\n",
    "b.py": "import sys\nimport large\nlarge.part.switch(True)\n",
    "c.py": "import part\npart.switch(True)\n",
    "d.py": f"{WORK}import part\npart.switch(True)\n",
}


def test_an_import_has_a_budget_besides_that_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MAX_STEPS", 125)
    runs = run(LARGE)
    for name in "cd":
        report = of_entry(runs, f"{name}.py")
        assert not report.cuts and "DET301" in {finding.code for finding in report.findings}
        assert report.steps > 125
    for name in "ab":
        report = of_entry(runs, f"{name}.py")
        assert ["steps for an import" in cut.reason for cut in report.cuts] == [True]
        # The program goes on, and what it calls is followed.
        assert "DET301" in {finding.code for finding in report.findings}


def test_an_import_that_was_cut_is_the_same_for_every_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MAX_STEPS", 125)
    together = run(LARGE)
    for names in ("a", "b", "ab", "c", "ac", "d", "bcd"):
        left = [name for name in LARGE if len(name) > 4 or name[0] in names]
        some = run({name: LARGE[name] for name in sorted(left, reverse=True)})
        for name in left:
            if len(name) == 4:
                one, other = of_entry(some, name), of_entry(together, name)
                assert one.findings == other.findings
                assert (one.cuts, one.steps, one.gaps) == (other.cuts, other.steps, other.gaps)


def test_what_an_import_takes_is_bounded_for_all_imports_of_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MAX_STEPS", 100)
    monkeypatch.setattr(interpreter, "MAX_RUN_STEPS", 250)
    modules = {f"m{k}.py": WORK for k in range(6)}
    imports = "import torch\n" + "".join(f"import {name[:2]}\n" for name in modules)
    report = of_entry(run({**modules, "run.py": f"{imports}print(torch.rand(3))\n"}), "run.py")
    assert any("for an import" in cut.reason for cut in report.cuts)


def ring(size: int) -> dict[str, str]:
    """A package whose modules import one another in circles; no program reaches their functions."""
    files = {"ring/__init__.py": ""}
    for i in range(size):
        one, other = (i + 1) % size, (i + 3) % size
        files[f"ring/m{i}.py"] = (
            f"import torch\nimport ring.m{one}\nfrom ring import m{other}\n\n"
            f"class Base:\n    def scale(self):\n        return {i}\n\n"
            f"def total(x, index, source):\n    return x.cuda().index_add_(0, index, source) + m{other}.Base().scale()\n"
        )
    return files


def unreached(files: Mapping[str, str]) -> dict[str, list[str]]:
    """The findings in unreached code, by the files that are looked at."""
    return {r.relative: [repr(finding) for finding in r.findings] for r in run(files).unreached}


def test_modules_that_import_one_another_in_circles_run_once_for_all_unreached_code(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names: list[str] = []
    run_file = Interp.run_file

    def counted(self: Interp, file: ModuleFile, name: str) -> Mod:
        names.append(name)
        return run_file(self, file, name)

    monkeypatch.setattr(Interp, "run_file", counted)
    found = unreached(ring(9))
    assert all("DET4" in "".join(found[f"ring/m{i}.py"]) for i in range(9))
    # Once as an import, once to be judged.
    assert {names.count(f"ring.m{i}") for i in range(9)} == {2}


def test_unreached_code_does_not_depend_on_other_files() -> None:
    files = ring(5)
    found = unreached(files)
    assert unreached(dict(reversed(files.items()))) == found
    more = {"a.py": "from ring import m3\nimport ring.m1\n", "z.py": "def f():\n    from ring import m4\n"}
    again = unreached({**more, **files})
    assert {name: again[name] for name in found} == found
    for name in list(files)[1:]:
        part = {n: text for n, text in files.items() if n != name}
        after = unreached({**part, name: f"{files[name]}\n\ndef more():\n    return 1\n"})
        assert {n: len(x) for n, x in after.items()} == {n: len(x) for n, x in found.items()}


def test_the_order_of_imports_is_part_of_what_unreached_code_has_read(tmp_path: Path) -> None:
    """An import that closes a circle where nothing runs it decides which module is imported first."""
    files = {
        "a.py": "import settings\n\nsettings.fast = False\nimport b\n",
        "b.py": "import settings\n\nfast = settings.fast\nif False:\n    import far\n",
        "far.py": "value = 1\n",
        "settings.py": "fast = True\n",
        "use.py": "import torch\nimport b\n\ndef start():\n    torch.backends.cudnn.benchmark = b.fast\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    found = [lint(tmp_path)]
    assert found[0] == lint(tmp_path, "--no-cache")
    for text in ("import a\n", "value = 1\n"):
        (tmp_path / "far.py").write_text(text)
        found.append(lint(tmp_path))
        assert found[-1] == lint(tmp_path, "--no-cache")
    assert found[0] == found[2] != found[1]


def test_what_is_wrong_in_another_program_is_said_of_that_one() -> None:
    main = (
        "import torch\nfrom torch import nn\nfrom common import fit\n\nif __name__ == '__main__':\n"
        "    torch.manual_seed(0)\n    {}\n    fit(nn.Linear(8, 8).cuda())\n"
    )
    cudnn = "torch.backends.cudnn.deterministic = True"
    files = {
        "common.py": (
            "import torch\n\n\ndef fit(model):\n    for x, at in torch.load('batches'):\n"
            "        torch.zeros(4, 8).cuda().index_add(0, at.cuda(), model(x.cuda())).sum().backward()\n"
        ),
        "first.py": main.format(cudnn),
        "second.py": main.format("pass"),
        "third.py": main.format(cudnn),
    }
    found = {f.code: f for f in run(files).findings()}
    assert found["DET401"].message.endswith("(also when second.py, third.py run)")
    assert found["DET302"].message.endswith("PyTorch's own CUDA kernels (also when third.py runs)")
    assert found["DET302"].flow[-1].message.startswith("`second.py` computes gradients on CUDA without ")


def test_a_program_with_few_ops_that_vary_is_named_beside_one_with_many() -> None:
    files = {
        "common.py": "def fit(net, x):\n    for _ in range(3):\n        net(x).sum().backward()\n",
        "few.py": (
            "import torch\nfrom common import fit\ntorch.manual_seed(0)\n"
            "fit(torch.nn.Embedding(100, 4).cuda(), torch.randint(0, 100, (400,)).cuda())\n"
        ),
        "many.py": (
            "import torch\nfrom common import fit\ntorch.manual_seed(0)\n"
            "fit(torch.nn.Conv2d(3, 4, 3).cuda(), torch.ones(4, 3, 8, 8).cuda())\n"
        ),
    }
    [found] = [f for f in run(files, "2.11").findings() if f.code == "DET302"]
    assert found.message.startswith("`many.py` computes gradients on CUDA without ")
    assert found.message.endswith("(also when few.py runs)")
    assert found.flow[-1].message.startswith(
        "when few.py runs, of its ops only `torch.nn.Embedding` may differ"
    )

    [alone] = [
        f
        for f in run({k: files[k] for k in ("common.py", "few.py")}, "2.11").findings()
        if f.code == "DET302"
    ]
    assert "; of its ops only `torch.nn.Embedding` may differ between runs" in alone.message

    files["second.py"] = files["few.py"]
    del files["many.py"]
    [found] = [f for f in run(files, "2.11").findings() if f.code == "DET302"]
    assert found.message.endswith("(also when second.py runs)")


def test_an_op_of_an_object_of_unknown_class_is_named_without_one() -> None:
    text = (
        "import torch\n\n\ndef fit(net, words):\n"
        "    mask = net.weight.data.new().resize_((9, 4)).bernoulli_(0.5)\n"
        "    torch.nn.functional.embedding(words, net.weight * mask).sum().backward()\n\n\n"
        "torch.manual_seed(0)\nfit(torch.nn.Embedding(9, 4).cuda(), torch.randint(0, 9, (400,)).cuda())\n"
    )
    [found] = [f for f in run({"train.py": text}, "1.2").findings() if f.code == "DET302"]
    assert "; of its ops only `new.resize_` may differ" in found.message
    assert found.flow[-1].message.startswith("`new.resize_` may differ between runs with ")


def test_a_program_that_never_resumes_is_not_named_beside_one_that_does() -> None:
    keep = (
        "import torch\n\n\ndef save(epoch, net, opt):\n"
        "    torch.save({'epoch': epoch + 1, 'net': net.state_dict(), 'opt': opt.state_dict()}, 'last.pt')\n\n\n"
        "def resume(net, opt):\n    saved = torch.load('last.pt')\n    net.load_state_dict(saved['net'])\n"
        "    opt.load_state_dict(saved['opt'])\n    return saved['epoch']\n"
    )
    program = (
        "import os\nimport torch\nfrom keep import resume, save\n\nif __name__ == '__main__':\n"
        "    torch.manual_seed(0)\n    net = torch.nn.Linear(2, 2)\n"
        "    opt = torch.optim.SGD(net.parameters(), lr=0.1)\n    first = {}\n"
        "    for epoch in range(first, 4):\n        net(torch.randn(3, 2)).sum().backward()\n        opt.step()\n"
        "        save(epoch, net, opt)\n"
    )
    again = program.format("resume(net, opt) if os.path.exists('last.pt') else 0")
    files = {"keep.py": keep, "once.py": program.format("0"), "resumes.py": again}
    [found] = [f for f in run(files).findings() if f.code == "DET601"]
    assert (found.entry_point, "also when" in found.message) == ("resumes.py", False)
    # The files of two programs that go on from them, or of one that leaves that to whoever has them, are named.
    [both] = [f for f in run(files | {"other.py": again}).findings() if f.code == "DET601"]
    assert both.message.endswith("(also when resumes.py runs)")
    [alone] = [f for f in run(files | {"resumes.py": ""}).findings() if f.code == "DET601"]
    assert alone.entry_point == "once.py"


@pytest.mark.parametrize("called", [False, True])
def test_a_program_that_never_calls_a_layer_is_not_named_beside_one_that_does(called: bool) -> None:
    net = (
        "import torch\nfrom torch_geometric.nn import GINConv\n\n\nclass Net(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.conv = GINConv(torch.nn.Linear(4, 4))\n\n"
        "    def forward(self, data):\n        return self.conv(data.x, data.edge_index)\n"
    )
    data = "Data(x=torch.ones(3, 4), edge_index=torch.ones(2, 3, dtype=torch.int64)).to('cuda')"
    start = "import torch\nfrom torch_geometric.data import Data\n\nfrom net import Net\n\n"
    train = (
        f"{start}torch.manual_seed(0)\nmodel = Net().to('cuda')\n"
        f"optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\nmodel({data}).sum().backward()\noptimizer.step()\n"
    )
    show = (
        f"{start}print(torch.device('cuda' if torch.cuda.is_available() else 'cpu'))\nmodel = Net()\n"
        "model.load_state_dict(torch.load('model.pt'))\nprint(sum(one.numel() for one in model.parameters()))\n"
    )
    if called:
        show += f"print(model.to('cuda')({data}))\n"
    files = {"net.py": net, "train.py": train, "show.py": show}
    [found] = [one for one in run(files).findings() if one.code == "DET407"]
    assert found.message.endswith("(also when show.py runs)") == called


TRIED_OUT = {
    "data.py": (
        "import os\nimport numpy as np\ndef load(d):\n    out = []\n    for f in os.listdir(d):\n"
        "        out.append(np.load(f))\n    return out\n"
        "if __name__ == '__main__':\n    print(np.array(load('x')))\n"
    ),
    "main.py": (
        "import argparse\nimport numpy as np\nfrom data import load\np = argparse.ArgumentParser()\n"
        "p.add_argument('--keep', action='store_true')\nif __name__ == '__main__':\n    if p.parse_args().keep:\n"
        "        np.save('o.npy', np.array(load('x')))\n"
    ),
}


def test_a_program_is_named_before_a_guard_that_tries_a_module_out() -> None:
    [found] = [f for f in run(TRIED_OUT).findings() if f.code == "DET209"]
    assert found.entry_point == "main.py"
    assert found.message.endswith("(also when data.py runs)")
    assert any("only if `--keep`" in step.message for step in found.flow)
    # In no order of the reports.
    runs = run(TRIED_OUT)
    assert Runs(runs.entries[::-1], runs.unreached).findings() == runs.findings()


def test_a_program_that_another_one_imports_is_named_too() -> None:
    common = "import numpy as np\n\n\ndef noise():\n    print(np.random.rand(3))\n"
    guarded = (
        "from common import noise\n\n\ndef main():\n    noise()\n\n\nif __name__ == '__main__':\n    main()\n"
    )
    files = {"common.py": common, "a.py": guarded, "b.py": "from common import noise\n\nnoise()\n"}
    for third, named in (
        ("", "(also when b.py runs)"),
        ("import a\n\nprint(a)\n", "(also when a.py runs)"),
        ("import a\n\na.main()\n", "(also when a.py, c.py run)"),
    ):
        [found] = [f for f in run(files | {"c.py": third}).findings() if f.code == "DET102"]
        assert found.message.endswith(named), third
    # Of a program that seeds what it draws from, it is not true.
    seeds = guarded.replace("    noise()", "    import numpy\n    numpy.random.seed(0)\n    noise()")
    [found] = [f for f in run(files | {"a.py": seeds}).findings() if f.code == "DET102"]
    assert "also when" not in found.message


def test_what_is_printed_before_a_program_fails_is_no_result() -> None:
    program = (
        "import random\nif __name__ == '__main__':\n    try:\n        if random.random() > 0.5:\n"
        "            print('large')\n    except Exception as error:\n        print(error)\n        {}\n"
    )
    for end, severity in (("raise", Severity.WARNING), ("pass", Severity.ERROR)):
        [found] = [f for f in run({"a.py": program.format(end)}).findings() if f.code == "DET103"]
        assert found.severity is severity, end


def test_a_test_that_imports_a_program_does_not_change_which_one_is_named() -> None:
    load = TRIED_OUT["data.py"].partition("if __name__")[0]
    evaluating = (
        "import numpy as np\nfrom data import load\ndef evaluate():\n    print(np.array(load('x')))\n"
        "if __name__ == '__main__':\n    evaluate()\n"
    )
    files = TRIED_OUT | {"data.py": load, "eval.py": evaluating}
    [found] = [f for f in run(files).findings() if f.code == "DET209"]
    assert found.entry_point == "eval.py"
    using = "from eval import evaluate\ndef test_it():\n    evaluate()\n"
    for name in ("tests/test_eval.py", "tests/conftest.py", "test_eval.py", "checks.py"):
        text = using if name != "checks.py" else f"import pytest\n{using}"
        assert [f for f in run(files | {name: text}).findings() if f.path == found.path] == [found], name
    [found] = [f for f in run(files | {"used.py": using}).findings() if f.code == "DET209"]
    assert found.entry_point == "main.py"


def test_a_guard_that_trains_is_named_before_a_program_that_needs_an_option() -> None:
    trains = (
        "    import torch\n    net = torch.nn.Linear(3, 1)\n    optim = torch.optim.SGD(net.parameters(), 0.1)\n"
        "    for row in np.array(load('x')):\n        optim.zero_grad()\n"
        "        net(torch.as_tensor(row)).sum().backward()\n        optim.step()\n"
    )
    data = TRIED_OUT["data.py"].replace("    print(np.array(load('x')))\n", trains)
    [found] = [f for f in run(TRIED_OUT | {"data.py": data}).findings() if f.code == "DET209"]
    assert found.entry_point == "data.py"


def test_a_program_among_the_tests_is_named_last() -> None:
    """Several programs reach one draw: the first by name is in the folder of the tests."""
    program = "from parts.noise import noise\n\nprint(noise())\n"
    noise = "import numpy as np\n\n\ndef noise():\n    return np.random.rand(3)\n"
    alone = "import numpy as np\n\nprint(np.random.rand(3))\n"
    files = {
        "parts/__init__.py": "",
        "parts/noise.py": noise,
        "test/a.py": program,
        "test/alone.py": alone,
        "work.py": program,
    }
    found = [f for f in run(files).findings() if f.code == "DET102"]
    assert [(f.entry_point, f.message.partition(" (")[2]) for f in found] == [
        ("work.py", "entry point work.py) (also when test/a.py runs)"),
        ("test/alone.py", "entry point test/alone.py)"),
    ]
