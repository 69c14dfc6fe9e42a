"""Names, aliases, orders, devices, releases and runners of the knowledge base are read by programs that use them."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import programs
from support import ROOT, lint
from test_alive import EVERYTHING, codes_by_file, compiled, expected_rules, file_name, rng_program

from d9mlint.knowledge import Knowledge
from d9mlint.knowledge.loader import Compiled
from d9mlint.knowledge.schema import OrderEntry, RunnerEntry

__all__ = ["compiled"]


@pytest.fixture(scope="module")
def base(compiled: Compiled) -> Knowledge:
    return Knowledge(compiled)


# ---------------------------------------------------------------------------------------------- names


def test_every_name_is_found_as_it_is_looked_up(compiled: Compiled, base: Knowledge) -> None:
    """No entry stands under a name that an alias replaces before it is looked up."""
    found: dict[str, bool] = {}
    for kind, entries, look_up in (
        ("rng", compiled.rng, base.rng),
        ("ops", compiled.ops, base.ops),
        ("hazards", compiled.hazards, base.hazards_of),
        ("roles", compiled.roles, base.roles),
        ("runners", compiled.runners, base.runners),
    ):
        for entry in entries:
            for api in entry.apis:
                name = base.canonical(programs.example_name(api))
                found[f"{kind}: {entry.id}: {api}"] = entry.id in {
                    one.id for one in look_up(name)
                } or getattr(entry, "method", False)
    for hook in compiled.hooks:
        found |= {
            f"hooks: {hook.id}: {api}": base.hooks(programs.example_name(api)) is hook for api in hook.apis
        }
    for device in compiled.devices:
        found |= {
            f"devices: {device.id}: {api}": base.device(base.canonical(api)) is device for api in device.apis
        }
    for tensor in compiled.tensors:
        for api in tensor.apis:
            names = [api] if "." in api else [f"torch.{api}", f"torch.Tensor.{api}"]
            found[f"tensors: {tensor.id}: {api}"] = any(
                base.tensor(base.canonical(name)) is tensor for name in names
            )
    for release in compiled.inferred:
        names = [*release.apis, *(f"{prefix}anything" for prefix in release.prefixes)]
        found |= {f"inferred: {release.id}: {name}": base.inferred(name) is release for name in names}
    for order in compiled.orders:
        for api in order.apis:
            method = api.startswith("*.") or api.partition(".")[0] in ("list", "dict", "set", "str", "tuple")
            name = api if method else base.canonical(api.replace(".*", ".anything"))
            one = base.order(name, method)
            found[f"orders: {order.id}: {api}"] = one is not None and one.id == order.id
    assert [name for name, right in found.items() if not right] == []


def test_no_entry_stands_behind_one_that_says_the_same(compiled: Compiled, base: Knowledge) -> None:
    """Of several entries for one name the first is taken whose conditions hold: no two have the same."""
    hidden = []
    for role in compiled.roles:
        part = (role.role, role.arg, role.pos, role.when, role.versions)
        for api in role.apis:
            names = [programs.example_name(api), *([f"?.{api.rpartition('.')[2]}"] if role.method else [])]
            alike = [
                [
                    one
                    for one in base.roles(name)
                    if (one.role, one.arg, one.pos, one.when, one.versions) == part
                ]
                for name in names
            ]
            if all(role not in same[:1] for same in alike):
                hidden.append(f"{role.id}: {api}")
    for runner in compiled.runners:
        for api in runner.apis:
            same = [
                one for one in base.runners(programs.example_name(api)) if one.versions == runner.versions
            ]
            if runner not in same[:1]:
                hidden.append(f"{runner.id}: {api}")
    assert hidden == []


def test_every_result_is_found(compiled: Compiled, base: Knowledge) -> None:
    """No pattern stands behind a wider one."""
    wrong = []
    for name, result in compiled.results.items():
        owner, _, attribute = name.partition(".@")
        if attribute:
            found = base.attribute_type(owner, attribute)
        else:
            owner = programs.example_name(name).rpartition(".")[0]
            found = base.result_type(programs.example_name(name))
        if found != (owner if result == "self" else result):
            wrong.append(f"{name}: {found}")
    assert wrong == []


def test_every_generator_is_used(compiled: Compiled) -> None:
    """A generator is drawn from, or seeded, by some entry, or stands for one that is."""
    drawn = {rng for entry in compiled.rng for rng in entry.draws}
    drawn |= {rng for entry in compiled.hazards if entry.callback for rng in entry.callback.draws}
    # One that starts alike is none that a draw is reported of: its seeds are.
    alike = {one.id for one in compiled.generators if one.starts == "constant"}
    drawn |= {rng for entry in compiled.rng for rng in entry.seeds if rng in alike or rng == "torch_cuda"}
    assert [one.id for one in compiled.generators if one.id not in drawn and not one.inside] == []


# -------------------------------------------------------------------------------------------- aliases


def known_names(compiled: Compiled) -> set[str]:
    """All names that facts or the code of d9mlint say something about."""
    names = set(compiled.results)
    for entry in (*compiled.rng, *compiled.ops, *compiled.hazards, *compiled.roles, *compiled.orders):
        names.update(entry.apis)
    for entry in (*compiled.tensors, *compiled.devices, *compiled.inferred, *compiled.runners):
        names.update(entry.apis)
    for setting in compiled.settings:
        names.update(setting.names)
    for path in (ROOT / "d9mlint").rglob("*.py"):
        names.update(re.findall(r'"([a-z_0-9]+(?:\.\w+)+)"', path.read_text(encoding="utf-8")))
    return names


def test_every_alias_leads_to_something_known(compiled: Compiled, base: Knowledge) -> None:
    names = known_names(compiled)
    wild = {name for name in names if "*" in name}
    # A class is known by what is known of its methods.
    owners = {name.rpartition(".")[0] for name in wild}
    wild |= {owner for owner in owners if owner.rpartition(".")[2][:1].isupper()}
    patterns = [re.compile(re.escape(name).replace(r"\*", ".*")) for name in wild]
    dead = []
    for name, target in compiled.exact.items():
        end = base.canonical(name)
        known = end in names or any(one.startswith(f"{end}.") for one in names)
        if name == target or not (known or any(pattern.fullmatch(end) for pattern in patterns)):
            dead.append(name)
    dead += [
        prefix
        for prefix, target in compiled.prefixes.items()
        if prefix == target or not any(name.startswith(target) for name in (*names, *compiled.exact))
    ]
    # A package may give what the modules below itself define, and another alias may lead on.
    names |= compiled.prefixes.keys() | compiled.exporting.keys()
    for package, target in compiled.exporting.items():
        given = re.compile(re.escape(target).replace(r"\*", "[a-z0-9_]+"))
        dead += [] if any(one != package and given.match(one) for one in names) else [package]
    assert dead == []


def test_an_alias_means_what_its_target_means(compiled: Compiled, base: Knowledge, tmp_path: Path) -> None:
    """Calls by another name get the finding of the entry on random numbers that stands under the known one."""
    texts: dict[str, str] = {}
    rules: dict[str, set[str]] = {}
    for name in compiled.exact:
        end = base.canonical(name)
        for entry in compiled.rng:
            if end in entry.apis and not entry.versions and name.partition(".")[0] != "tf":
                text, wanted = rng_program(msgspec.structs.replace(entry, apis=[name]))
                texts[file_name(name)] = text
                rules[file_name(name)] = wanted or expected_rules(compiled, entry)
                break
    assert len(texts) > 15
    found = codes_by_file(tmp_path, texts)
    seeds = {"DET101", "DET102", "DET103", "DET104", "DET113"}
    wrong = []
    for name, wanted in rules.items():
        read = not found[name] & seeds if wanted == {"-"} else "DET302" not in found[name]
        if not wanted & {"-", "-DET302"}:
            read = bool(found[name] & wanted)
        if not read:
            wrong.append(f"# {name}: {sorted(found[name])} instead of {sorted(wanted)}\n{texts[name]}")
    assert wrong == [], "\n".join(wrong)


# --------------------------------------------------------------------------------------------- orders


def source_program(entry: OrderEntry, api: str) -> str:
    given = programs.arguments(entry.when)
    if entry.texts:
        given = {**given, entry.texts[0].arg: repr(" ".join(entry.texts[0].has) + "x")}
        name = entry.texts[0].arg
        first = given.pop(name)
    else:
        first = "'data'" if entry.pattern is None else "'data/*'"
    imports = [f"import {entry.library}"] if entry.library else []
    if api.startswith("*."):
        before = ["def run(thing):", f"    torch.save(list(thing{api[1:]}({first})), 'kept.pt')"]
        return programs.program([*imports, "import torch"], ["print(run)"], before)
    if api.startswith("pathlib.Path."):
        done = f"pathlib.Path('data').{api.rpartition('.')[2]}('*')"
        return programs.program(["import pathlib", "import torch"], [f"torch.save(list({done}), 'kept.pt')"])
    line, called = programs.imported(api)
    done = programs.call(called, given, first)
    if entry.gives == "taken":
        line, queue = programs.imported(api.rpartition(".")[0])
        lines = [
            f"line = {queue}()",
            "for number in range(4):",
            "    threading.Thread(target=work, args=(line, number)).start()",
            f"torch.save([line.{api.rpartition('.')[2]}() for _ in range(4)], 'kept.pt')",
        ]
        before = ["def work(line, number):", "    line.put(number)"]
        return programs.program([line, "import threading", "import torch"], lines, before)
    if entry.gives == "identifier":
        kept = f"torch.save(sorted({done} for _ in range(4)), 'kept.pt')"
        return programs.program([line, "import torch"], [kept])
    if entry.gives == "turns":
        lines = [
            "kept = []",
            "while things.any():",
            f"    kept.append({done})",
            "torch.save(kept, 'kept.pt')",
        ]
        return programs.program([line, "import torch, things"], lines)
    if api == "joblib.Parallel":
        done = f"{programs.call(called, given)}(joblib.delayed(abs)(i) for i in range(9))"
    return programs.program([line, "import torch"], [f"torch.save(list({done}), 'kept.pt')"])


def test_every_source_of_an_order_is_reported(compiled: Compiled, tmp_path: Path) -> None:
    sources = {
        f"{entry.id}.{number}": (entry, api)
        for entry in compiled.orders
        if entry.role == "source"
        for number, api in enumerate(entry.apis)
    }
    texts = {file_name(key): source_program(entry, api) for key, (entry, api) in sources.items()}
    found = codes_by_file(tmp_path, texts)
    wrong = [
        f"# {entry.id} {api}: {sorted(found[file_name(key)])} instead of {entry.rule}\n{texts[file_name(key)]}"
        for key, (entry, api) in sources.items()
        if entry.rule not in found[file_name(key)]
    ]
    assert wrong == [], "\n".join(wrong)


# ----------------------------------------------------------------------- devices, releases and runners


def test_every_device_is_one(compiled: Compiled, tmp_path: Path) -> None:
    texts = {}
    for entry in compiled.devices:
        for number, api in enumerate(entry.apis):
            imports, value = ["import torch"], ""
            if api.startswith("os.environ."):
                imports, value = ["import os", "import torch"], f"int(os.environ['{api.rpartition('.')[2]}'])"
            elif api.startswith("option:"):
                option = api.removeprefix("option:")
                imports += ["import argparse", "parser = argparse.ArgumentParser()"]
                imports.append(f"parser.add_argument('{option}', type=int, default=0)")
                value = f"parser.parse_args().{option.strip('-').replace('-', '_')}"
            else:
                owner, _, name = api.rpartition(".")
                line, called = programs.imported(owner if entry.gives == "owner" else api)
                imports.append(line)
                value = f"{called}().{name}" if entry.gives == "owner" else f"{called}()"
                if entry.gives == "argument":
                    value = f"{called}('cuda', (2,))"
                elif entry.gives == "default":
                    imports.append("torch.set_default_device('cuda')")
            body = [
                f"model = torch.nn.Linear(2, 2).to({value})",
                "optimizer = torch.optim.SGD(model.parameters())",
                "model(make()).sum().backward()",
                "optimizer.step()",
            ]
            texts[file_name(f"{entry.id}{number}")] = programs.program(
                [*imports, "from data import make"], body
            )
    found = codes_by_file(tmp_path, texts, device="")
    assert {name for name, codes in found.items() if "DET302" not in codes} == set()


PROGRAMS_OF_OLD_RELEASES = {
    "tensorflow": (
        "import tensorflow as tf",
        [
            "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])",
            "model.compile('sgd', 'mse')",
            "model.fit(tf.ones([4, 2]), tf.ones([4, 1]))",
        ],
    ),
    "gensim": ("import gensim", ["print(gensim.models.Word2Vec([['a']], seed=1, workers=1).wv)"]),
    "transformers": (
        "import transformers",
        [
            "model = transformers.Wav2Vec2ForCTC.from_pretrained('facebook/wav2vec2-base')",
            "transformers.Trainer(model, transformers.TrainingArguments('out')).train()",
        ],
    ),
    "pymoo": (
        "import numpy as np\nfrom pymoo.optimize import minimize",
        [
            "np.random.seed(0)",
            "print(minimize(np.load('problem.npy'), 1, ('n_gen', 5)).F, np.random.default_rng().random())",
        ],
    ),
    "albumentations": (
        "import albumentations",
        ["print(albumentations.Compose([albumentations.HorizontalFlip()])(image=albumentations)['image'])"],
    ),
    "lightning": (
        "import lightning, torch",
        [
            "class Model(lightning.LightningModule):",
            "    def __init__(self):",
            "        super().__init__()",
            "        self.layer = torch.nn.Linear(4, 1)",
            "    def training_step(self, batch, index):",
            "        return self.layer(batch).sum()",
            "lightning.Trainer().fit(Model(), [torch.ones(2, 4)])",
        ],
    ),
    "keras": (
        "import keras",
        [
            "from data import make",
            "model = {module}.Sequential([{module}.layers.Dense(1)])",
            "model.compile('sgd', 'mse')",
            "model.fit(make(), workers=4, use_multiprocessing=True)",
        ],
    ),
}
"""A program for each library whose finding names the release, or has another code in later ones."""
LATER = {"albumentations": "DET106", "lightning": "DET302", "pymoo": "DET109"}
"""The code of what such a program has in later releases only."""
EARLIER = {"keras": "DET208"}
"""And in old ones only."""
OLD_AND_LATER = frozenset({"albumentations-1.4"})
"""Releases whose programs have the code of later ones already: ``tests/test_project_releases.py``."""


def test_names_of_old_releases_tell_the_release(compiled: Compiled, tmp_path: Path) -> None:
    """The switch that a program lacks is that of the release for which it was written."""
    wrong = []
    # What says no more than since when a name is there overrules prose alone: tests/cases/releases-that-prose-states.md.
    for entry in (one for one in compiled.inferred if not one.since and one.id not in OLD_AND_LATER):
        for number, name in enumerate([*entry.apis, *entry.prefixes]):
            directory = tmp_path / f"{entry.id}{number}"
            directory.mkdir()
            used = name + "thing" if name.endswith(".") else name
            head = (
                "import tensorflow as tf" if used.startswith("tf.") else f"import {used.rpartition('.')[0]}"
            )
            # The programs use no name of a later release.
            releases = {entry.library: entry.version, **entry.implies, **entry.likelier}
            library = next(name for name in PROGRAMS_OF_OLD_RELEASES if name in releases)
            line, body = PROGRAMS_OF_OLD_RELEASES[library]
            body = [one.format(module=used.partition(".")[0]) for one in body]
            text = programs.program([head, line], [f"print({used}())", *body])
            (directory / "train.py").write_text(text)
            (directory / "pyproject.toml").write_text("")
            items = lint(directory, EVERYTHING).items
            if library in LATER:
                if not items or any(item.finding.code == LATER[library] for item in items):
                    wrong.append(f"{entry.id}: {used}")
            elif library in EARLIER:
                if not any(item.finding.code == EARLIER[library] for item in items):
                    wrong.append(f"{entry.id}: {used}")
            elif releases[library] not in " ".join(str(item.finding) for item in items):
                wrong.append(f"{entry.id}: {used}")
    assert not wrong, "\n".join(wrong)


def runner_program(entry: RunnerEntry, api: str) -> str:
    line, called = programs.imported(programs.example_name(api))
    if entry.settings:
        made = f"it = {called}(model, make())"
    elif entry.returns:
        made = f"it = {called}(model)"
    else:
        made = f"it = {called}(1)"
    body = ["model = torch.nn.Linear(2, 2)", made]
    if not entry.constructs and entry.trains:
        body.append(f"it.{entry.trains[0]}(model(make()).sum())")
    return programs.program([line, "import torch", "from data import make"], body)


def test_every_runner_trains(compiled: Compiled, tmp_path: Path) -> None:
    # One that enables deterministic mode and seeds by itself is reported where weights are drawn before: DET108.
    entries = [one for one in compiled.runners if (one.trains or one.constructs) and one.device == "cuda"]
    texts = {
        file_name(f"{entry.id}{number}"): runner_program(entry, api)
        for entry in entries
        if not entry.versions.startswith("<")
        for number, api in enumerate(entry.apis)
    }
    found = codes_by_file(tmp_path, texts, device="")
    wrong = [
        f"{sorted(codes)}\n{texts[name]}"
        for name, codes in found.items()
        if not codes & {"DET108", "DET302", "DET306", "DET312"}
    ]
    assert wrong == [], "\n".join(wrong)


def test_every_wrapper_moves_inputs(compiled: Compiled, tmp_path: Path) -> None:
    """What a model on several devices is called with is on these devices, wherever it was made."""
    texts = {}
    for entry in compiled.runners:
        if not entry.inputs:
            continue
        device = (
            f", {entry.asked[0].arg}=0"
            if entry.device == "unknown"
            else ", device_ids=[0]"
            if entry.cpu
            else ""
        )
        for number, api in enumerate(entry.apis):
            mesh = device if "fully_shard" not in api else ", mesh=init_device_mesh('cuda', (2,))"
            line, called = programs.imported(api)
            texts[file_name(f"{entry.id}{number}")] = programs.program(
                [line, "import torch", "from torch.distributed.device_mesh import init_device_mesh"],
                [
                    "model = torch.nn.Sequential(torch.nn.Conv2d(3, 3, 3), torch.nn.ReflectionPad2d(1))",
                    f"model = {called}(model{mesh})",
                    "model(torch.ones(2, 3, 8, 8)).sum().backward()",
                ],
            )
    found = codes_by_file(tmp_path, texts, device="")
    assert texts and {name for name, codes in found.items() if "DET401" not in codes} == set()
