"""Facts of a user's own: YAML files that the configuration names, and `d9mlint knows`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

FACTS = """\
sources:
  wiki: https://wiki.example/seeds
aliases:
  acme.nn.Shuffled: torch.utils.data.RandomSampler
  acme.reset: torch.manual_seed
rng:
  - apis: [helpers.seed_all, acme.fix]
    kind: seeder
    seeds: [torch, numpy, python]
    seed_arg: n
    seed_pos: 0
    provenance: [wiki]
ops:
  - apis: [acme.nn.scatter_rows]
    devices: [cuda]
    passes: both
"""
HELPERS = "import ctypes\n\n\ndef seed_all(n):\n    ctypes.CDLL('fast.so').seed(n)\n"
CONFIGURATION = '[tool.d9mlint]\nknowledge = ["facts.yaml"]\n'


def codes(run: Run, root: Path, *arguments: str) -> list[str]:
    done = run("--output-format", "json", *arguments, cwd=root)
    assert done.code in (0, 1), done.err
    return [finding["code"] for finding in json.loads(done.out)]


@pytest.mark.parametrize(
    ("line", "own", "alone"),
    [
        ("from helpers import seed_all\nseed_all(3)", [], ["DET101"]),
        ("import helpers as h\nh.seed_all(n=3)", [], ["DET101"]),
        ("import acme\nacme.fix(3)", [], ["DET101"]),
        ("from acme import reset\nreset(3)", [], ["DET101"]),
        ("import acme\nacme.fixed(3)", ["DET101"], ["DET101"]),
        ("def seed_all(n): pass\nseed_all(3)", ["DET101"], ["DET101"]),
    ],
)
def test_seeding_helpers(run: Run, project: Project, line: str, own: list[str], alone: list[str]) -> None:
    code = f"import torch\n{line}\nprint(torch.rand(3))\n"
    root = project(
        {"train.py": code, "helpers.py": HELPERS, "facts.yaml": FACTS, "pyproject.toml": CONFIGURATION}
    )
    assert codes(run, root, "--select=DET1") == own
    assert codes(run, root, "--select=DET1", "--isolated") == alone


def test_ops(run: Run, project: Project) -> None:
    code = "import torch\nfrom acme import nn as ann\ny = ann.scatter_rows(torch.rand(9, device='cuda'))\nprint(y)\n"
    root = project({"train.py": code, "facts.yaml": FACTS, "d9mlint.toml": 'knowledge = ["facts.yaml"]\n'})
    assert codes(run, root, "--select=DET4") == ["DET401"]
    assert codes(run, root, "--select=DET4", "--isolated") == []
    assert codes(run, root, "--select=DET4", "--isolated", "--knowledge=facts.yaml") == ["DET401"]


def test_hazards_and_generators(run: Run, project: Project) -> None:
    facts = """\
    generators:
      - {id: acme, title: "acme's generator", library: acme, seed: "acme.seed(0)"}
    rng:
      - {apis: [acme.seed], kind: seeder, seeds: [acme], seed_pos: 0}
      - {apis: [acme.noise], kind: draw, draws: [acme]}
    hazards:
      - apis: [acme.Engine]
        rule: DET310
        message: "`{call}` picks its kernels by timing them"
        help: "pass tuned=False"
        when: [{arg: tuned, default: true, equals: true}]
    """
    code = "import acme\nprint(acme.noise())\nacme.Engine()\nacme.Engine(tuned=False)\n"
    root = project({"train.py": code, "facts.yaml": textwrap.dedent(facts), "pyproject.toml": CONFIGURATION})
    assert codes(run, root) == ["DET113", "DET310"]
    (root / "train.py").write_text(code.replace("\n", "\nacme.seed(1)\n", 1))
    assert codes(run, root) == ["DET310"]
    (root / "facts.yaml").write_text("rng:\n  - {apis: [a.b], kind: draw, draws: [acne]}\n")
    assert "facts.yaml:2: there is no generator `acne`" in run(cwd=root).err


def test_what_is_said_of_a_name_replaces_what_is_known_of_it(run: Run, project: Project) -> None:
    facts = "rng:\n  - {apis: [torch.rand], kind: stateless}\n"
    code = "import torch\nx = torch.rand(3)\ny = torch.randn(3)\nprint(x, y)\n"
    root = project({"train.py": code, "facts.yaml": facts, "pyproject.toml": CONFIGURATION})
    out = run("--output-format=concise", "--select=DET101", cwd=root).out
    assert "train.py:3:5" in out
    assert "train.py:2:5" in run("--output-format=concise", "--select=DET101", "--isolated", cwd=root).out


def test_changed_facts_are_read_again(run: Run, project: Project) -> None:
    """The cache holds what was found with other facts."""
    code = "import acme\nimport torch\nacme.fix(1)\nprint(torch.rand(2))\n"
    root = project({"train.py": code, "facts.yaml": FACTS, "pyproject.toml": CONFIGURATION})
    assert codes(run, root, "--select=DET101") == []
    (root / "facts.yaml").write_text(FACTS.replace("acme.fix", "acme.fox"))
    assert codes(run, root, "--select=DET101") == ["DET101"]
    (root / "facts.yaml").write_text(FACTS)
    assert codes(run, root, "--select=DET101") == []


def test_each_project_of_a_run_has_its_own_facts(run: Run, project: Project) -> None:
    code = "import acme\nimport torch\nacme.fix(1)\nprint(torch.rand(2))\n"
    root = project(
        {
            "one/train.py": code,
            "one/facts.yaml": FACTS,
            "one/pyproject.toml": CONFIGURATION,
            "two/train.py": code,
            "pyproject.toml": "[tool.d9mlint]\n",
        }
    )
    out = run("--output-format=concise", "--select=DET101", cwd=root).out
    assert "two/train.py:4" in out and "one/train.py" not in out


STARTS = """\
aliases:
  acme.shortcuts.job: acme.jobs.job
roles:
  - {role: starts, library: acme, apis: [acme.jobs.job, acme.App.task, acme.Flow]}
  - {role: starts-named, library: acme, apis: [acme], more: [run_round]}
"""
DRAW = "    import torch\n    return torch.rand(3)\n"


@pytest.mark.parametrize(
    "code",
    [
        f"from acme.jobs import job\n\n\n@job\ndef train():\n{DRAW}",
        f"from acme import jobs\n\n\n@jobs.job(retries=2)\ndef train():\n{DRAW}",
        f"from acme.shortcuts import job\n\n\n@job\ndef train():\n{DRAW}",
        f"import acme\n\napp = acme.App()\n\n\n@app.task\ndef train():\n{DRAW}",
        "import acme\nimport torch\n\n\nclass Train(acme.Flow):\n    def step(self):\n        return torch.rand(3)\n",
        f"import acme\n\n\ndef run_round():\n{DRAW}",
    ],
)
def test_frameworks_that_start_programs(run: Run, project: Project, code: str) -> None:
    root = project({"steps.py": code, "facts.yaml": STARTS, "pyproject.toml": CONFIGURATION})
    assert codes(run, root, "--select=DET101") == ["DET101"]
    assert codes(run, root, "--select=DET101", "--isolated") == []
    # A function that the framework does not start is no program.
    other = code.replace("run_round", "run_trial").replace("acme", "acmes").replace("jobs", "works")
    (root / "steps.py").write_text(other)
    assert codes(run, root, "--select=DET101") == []


@pytest.mark.parametrize(
    "options", [["--executor=serial"], ["--executor=processes", "--jobs=2", "--no-cache"]]
)
def test_programs_of_frameworks_are_found_by_the_facts_of_their_project(
    run: Run, project: Project, options: list[str]
) -> None:
    code = f"from acme.jobs import job\n\n\n@job\ndef train():\n{DRAW}"
    root = project(
        {
            "one/steps.py": code,
            "one/facts.yaml": STARTS,
            "one/pyproject.toml": CONFIGURATION,
            "two/steps.py": code,
            "pyproject.toml": "[tool.d9mlint]\n",
        }
    )
    out = run("--output-format=concise", "--select=DET101", *options, cwd=root).out
    assert "one/steps.py:7" in out and "two/steps.py" not in out
    (root / "one/facts.yaml").write_text(STARTS.replace("acme.jobs.job,", "acme.jobs.work,"))
    assert "steps.py" not in run("--output-format=concise", "--select=DET101", *options, cwd=root).out
    (root / "one/facts.yaml").write_text(STARTS)
    assert run("--output-format=concise", "--select=DET101", *options, cwd=root).out == out


def test_the_graph_has_the_programs_of_frameworks(run: Run, project: Project) -> None:
    code = f"from acme.jobs import job\n\n\n@job\ndef train():\n{DRAW}"
    root = project({"steps.py": code, "facts.yaml": STARTS, "pyproject.toml": CONFIGURATION})
    graph = json.loads(run("graph", "--output-format=json", cwd=root).out)
    assert [entry["entry"] for entry in graph["entries"]] == ["steps.py"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rgn: []\n", ":1: unknown key `rgn`."),
        ("rng:\n  - apis: [a.b]\n    kind: seder\n", ":3: `kind`: `seder` is none of"),
        ("rng:\n  - apis: [a.b]\n    kind: seeder\n    sede: 1\n", ":4: unknown key `sede`"),
        ("ops: {}\n", ":1: `ops` is a list of entries"),
        ("- 1\n", ":1: a mapping is expected"),
        ("rng: [\n", ":2: no valid YAML"),
        ("aliases: {a: [1]}\n", ":1: an alias is a name with the name it stands for"),
    ],
)
def test_mistakes_are_named_by_file_and_line(run: Run, project: Project, text: str, message: str) -> None:
    root = project({"train.py": "", "facts.yaml": text, "pyproject.toml": CONFIGURATION})
    done = run(cwd=root)
    assert done.code == 2
    assert f"facts.yaml{message}" in done.err
    assert done.err.count("\n") == 1


def test_a_missing_file_is_named_with_the_place_that_names_it(run: Run, project: Project) -> None:
    root = project({"train.py": "", "pyproject.toml": CONFIGURATION})
    done = run(cwd=root)
    assert done.code == 2
    assert "pyproject.toml:2: knowledge file" in done.err


def test_nothing_of_a_file_outside_of_the_project_is_quoted(
    run: Run, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("other") / "secret.yaml"
    secret.write_text("password: hunter2\n")
    configuration = f"[tool.d9mlint]\nknowledge = [{json.dumps(str(secret))}]\n"
    root = project({"train.py": "", "pyproject.toml": configuration})
    done = run(cwd=root)
    assert done.code == 2
    assert "outside of the project" in done.err and "password" not in done.err + done.out


@pytest.mark.parametrize("name", ["F.interpolate", "torch.nn.functional.interpolate", "interpolate"])
def test_what_is_known_about_an_op(run: Run, project: Project, name: str) -> None:
    done = run("knows", name, cwd=project({}))
    assert done.code == 0
    assert "torch >=2.1: deterministic in deterministic mode" in done.out
    assert "only when mode is 'bilinear'" in done.out


def test_what_is_known_about_generators_settings_and_own_functions(run: Run, project: Project) -> None:
    root = project({"facts.yaml": FACTS, "pyproject.toml": CONFIGURATION})
    assert "seeds: python" in run("knows", "random.seed", cwd=root).out
    assert "for determinism: :4096:8, :16:8" in run("knows", "CUBLAS_WORKSPACE_CONFIG", cwd=root).out
    own = run("knows", "helpers.seed_all", cwd=root).out
    assert "seeds: torch, numpy, python with the argument n" in own
    assert "source: https://wiki.example/seeds" in own
    (entry,) = json.loads(run("knows", "acme.fix", "--output-format=json", cwd=root).out)
    assert (entry["fact"], entry["apis"]) == ("rng", ["helpers.seed_all", "acme.fix"])
    nothing = run("knows", "torch.nn.functional.interpolat", cwd=root)
    assert nothing.code == 1
    assert "Did you mean torch.nn.functional.interpolate?" in nothing.out


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("imutils.paths.list_images", "gives elements in arbitrary order, reported as DET209"),
        ("torch.sort", "its result does not depend on the order"),
        ("fastai.vision.all.vision_learner", "trains in: fit, fit_one_cycle"),
        ("pytorch_lightning.LightningModule", "in fit: training_step"),
        ("torch.zeros", "requires no gradient unless an argument asks for it"),
        ("numpy", "seeded by numpy.random.seed(seed), reported as DET102"),
        ("keras.utils.multi_gpu_model", "only releases of keras up to 2.4 have it"),
        ("datasets.load_dataset", "gives an object of datasets.Dataset"),
        ("PIL.Image.open", "draws no random numbers"),
        ("keras.layers.Dense", "another name of tf.keras.layers.Dense"),
    ],
)
def test_what_is_known_of_other_kinds(run: Run, project: Project, name: str, words: str) -> None:
    done = run("knows", name, cwd=project({}))
    assert done.code == 0
    assert words in done.out


def test_every_entry_can_be_shown(run: Run, project: Project) -> None:
    """Each condition and effect has words, and each kind of entry is among those that are asked for."""
    from d9mlint import knowledge
    from d9mlint.cli.knows import _facts, _shown
    from d9mlint.knowledge.loader import ENTRIES

    facts = _facts(knowledge.load())
    assert len(facts) == len(ENTRIES)
    for _, entries in facts:
        assert entries
        for entry in entries:
            assert len(list(_shown(entry))) >= 2


def test_the_example_of_the_readme(run: Run, project: Project) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    facts = text.partition("### Facts of your own")[2].partition("```yaml\n")[2].partition("```")[0]
    code = """\
    import torch
    from acme.data import Loader, load
    from acme.ops import scatter_rows
    from acme.utils import seed_all
    seed_all(1)
    loader = Loader(load(), num_workers=2)
    print(scatter_rows(torch.rand(3).cuda()))
    """
    root = project({"train.py": textwrap.dedent(code), "facts.yaml": facts, "pyproject.toml": CONFIGURATION})
    found = codes(run, root, "--min-severity=advice")
    assert "DET401" in found and "DET201" in found and "DET101" not in found
    # Of a helper that is only named like one, it is not known whether it seeds.
    assert "DET101" in codes(run, root, "--isolated", "--min-severity=advice")
