"""What `help:` says works as written: for the framework, its version, and what the program already has."""

from __future__ import annotations

from pathlib import Path
from textwrap import indent

import pytest
from support import lint

from d9mlint.base.findings import Finding


def findings(tmp_path: Path, text: str, code: str) -> list[Finding]:
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    return [
        one.finding for one in lint(tmp_path, {"min-severity": "advice"}).items if one.finding.code == code
    ]


TRAINERS = {
    "transformers": (
        "from transformers import Trainer, TrainingArguments, AutoModelForSequenceClassification as M, set_seed\n"
        "set_seed(0)\nTrainer(M.from_pretrained('x'), TrainingArguments('out')).train()\n",
        "full_determinism=True",
    ),
    "lightning": (
        "import lightning as L, torch\nfrom torch import nn\n\n\nclass M(L.LightningModule):\n"
        "    def training_step(self, batch, i):\n        return batch.sum()\n\n\n"
        "L.seed_everything(0)\nL.Trainer().fit(M())\n",
        "deterministic=True",
    ),
    "option": (
        "import argparse, torch\nfrom torch import nn\np = argparse.ArgumentParser()\n"
        "p.add_argument('--deterministic', action='store_true')\nargs = p.parse_args()\ntorch.manual_seed(0)\n"
        "if args.deterministic:\n    torch.use_deterministic_algorithms(True)\n"
        "nn.Linear(2, 2).cuda()(torch.zeros(1, 2).cuda()).sum().backward()\n",
        "pass `--deterministic`",
    ),
    "plain": (
        "import torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
        "nn.Linear(2, 2).cuda()(torch.zeros(1, 2).cuda()).sum().backward()\n",
        "torch.use_deterministic_algorithms(True)",
    ),
}


@pytest.mark.parametrize(("options", "unless"), [("{deterministic: true}", True), ("{max_epochs: 2}", False)])
def test_a_switch_that_unpacked_options_may_hold_is_set_there(
    tmp_path: Path, options: str, unless: bool
) -> None:
    for name, trainer in {"a": "{max_epochs: 1}", "b": options}.items():
        (tmp_path / f"{name}.yaml").write_text(f"trainer: {trainer}\n", encoding="utf-8")
    text = TRAINERS["lightning"][0].replace(
        "L.Trainer()", "L.Trainer(**yaml.safe_load(open(sys.argv[1]))['trainer'])"
    )
    (found,) = findings(tmp_path, f"import sys, yaml\n{text}", "DET302")
    assert found.help.endswith("set `deterministic=True` in `yaml.safe_load(...)['trainer']`")
    assert ("unless" in found.message) is unless


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", 'pass `trainer_defaults={"deterministic": True}` to `LightningCLI`'),
        (", trainer_defaults={'max_epochs': 3}", 'add `"deterministic": True` to `trainer_defaults`'),
        (", trainer_defaults=usual", 'add `"deterministic": True` to `usual`'),
    ],
)
@pytest.mark.parametrize("cli", ["LightningCLI", "Own"])
def test_a_dictionary_that_is_passed_already_gets_an_item(
    tmp_path: Path, given: str, expected: str, cli: str
) -> None:
    text = (
        "import lightning as L\nfrom lightning.pytorch.cli import LightningCLI\nfrom torch import nn\n\n\n"
        "class M(L.LightningModule):\n    def __init__(self):\n        super().__init__()\n"
        "        self.net = nn.Conv2d(3, 3, 3)\n\n"
        "    def training_step(self, batch, i):\n        return self.net(batch).sum()\n\n\n"
        "class Own(LightningCLI):\n    pass\n\n\n"
        f"usual = {{'max_epochs': 3}}\n{cli}(M, seed_everything_default=1{given})\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    assert found.help == expected
    written = [one.content for one in found.fix.edits] if found.fix is not None else []
    fixes = {"": ", trainer_defaults={...}", ", trainer_defaults=usual": ""}
    assert written == [
        one.replace("...", '"deterministic": True') for one in [fixes.get(given, "..., ")] if one
    ]


@pytest.mark.parametrize("name", TRAINERS)
def test_the_mode_is_switched_on_where_the_program_trains(tmp_path: Path, name: str) -> None:
    text, expected = TRAINERS[name]
    (found,) = findings(tmp_path, text, "DET302")
    assert expected in found.help


@pytest.mark.parametrize(
    ("pins", "needed"),
    [
        ("torch>=1.13.1\ntorchvision==0.14.1\n", True),
        ("torchaudio==2.0.2\n", True),
        ("torch>=1.13.1\ntorchvision==0.28.0\n", False),
        ("torch>=1.13.1\ntorchvision>=0.14.1\n", True),
        ("torch>=2.1,<=2.13\n", True),
        ("torch>=2.10\n", False),
        ("numpy\n", True),
    ],
)
def test_what_cublas_needs_depends_on_the_releases_that_the_project_admits(
    tmp_path: Path, pins: str, needed: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(pins)
    for name in ("plain", "option"):
        (found,) = findings(tmp_path, TRAINERS[name][0], "DET302")
        assert ("CUBLAS_WORKSPACE_CONFIG" in found.help) is needed


@pytest.mark.parametrize(("release", "named"), [("4.18.0", False), ("4.19.0", True)])
def test_the_trainer_of_transformers_has_a_switch_from_a_release_on(
    tmp_path: Path, release: str, named: bool
) -> None:
    text = TRAINERS["transformers"][0]
    (tmp_path / "requirements.txt").write_text(f"transformers=={release}\ntorch==1.11.0\n")
    (found,) = findings(tmp_path, text, "DET302")
    assert ("full_determinism" in found.help) is named
    assert ("use_deterministic_algorithms" in found.help) is not named
    edits = found.fix.edits if found.fix else ()
    assert any("full_determinism" in edit.content for edit in edits) is named and edits


@pytest.mark.parametrize("library", ["setfit", "sentence_transformers"])
def test_the_arguments_of_setfit_have_no_switch(tmp_path: Path, library: str) -> None:
    """Those of the trainer of Sentence Transformers, which it makes, have."""
    prefix, model = (
        ("", "SetFitModel") if library == "setfit" else ("SentenceTransformer", "SentenceTransformer")
    )
    text = (
        f"from {library} import {model} as M, {prefix}Trainer as Trainer, {prefix}TrainingArguments as A\n\n"
        "trainer = Trainer(model=M('x'), args=A(output_dir='o'), train_dataset=open('d'))\ntrainer.train()\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    assert ("full_determinism" in found.help) is (library != "setfit")
    assert "TrainingArguments" not in str(found.flow) and f"{library}.{model}" in str(found.flow)
    if library == "setfit":
        assert found.fix is not None


MATRIX = (
    "import os\nimport torch\nfrom torch import nn\ntorch.manual_seed(0)\n"
    "nn.Linear(2, 2).cuda()(torch.zeros(1, 2).cuda()).sum().backward()\n"
)
VARIABLE = 'os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"'


@pytest.mark.parametrize(
    ("version", "text", "named"),
    [
        ("2.9", MATRIX, True),
        ("1.7", MATRIX, True),
        ("2.10", MATRIX, False),
        ("1.6", MATRIX, True),
        ("2.9", MATRIX.replace("\nimport torch", f"\n{VARIABLE}\nimport torch"), False),
        ("2.9", MATRIX.replace("\nimport torch", f"\n{VARIABLE.replace('4096', '1')}\nimport torch"), True),
    ],
)
def test_the_variable_of_cublas_is_named_where_the_mode_needs_it(
    tmp_path: Path, version: str, text: str, named: bool
) -> None:
    (tmp_path / "d9mlint.toml").write_text(f'torch-version = "{version}"\n')
    (found,) = findings(tmp_path, text, "DET302")
    assert (f"set {VARIABLE} before torch is imported and call" in found.help) is named


RAISES = {
    "op": ("    print(torch.median(x, 0))\n", "first fix `torch.median` (DET401), which raises RuntimeError"),
    "two ops": (
        "    print(torch.median(x, 0))\n    x = x * nn.CTCLoss()(x.view(300, 8, 29), y, n, n)\n",
        "first fix `nn.CTCLoss` (DET404) and `torch.median` (DET401), which raise RuntimeError",
    ),
    "none": ("    print(x.sum())\n", ""),
}


@pytest.mark.parametrize("name", RAISES)
def test_ops_that_raise_in_the_mode_are_fixed_before_it_is_switched_on(tmp_path: Path, name: str) -> None:
    line, first = RAISES[name]
    (tmp_path / "d9mlint.toml").write_text('torch-version = "2.13"\n')
    text = (
        "import torch\nfrom torch import nn\n\n\ndef main(y, n):\n    torch.manual_seed(0)\n"
        f"    x = torch.ones(300 * 8 * 29, device='cuda', requires_grad=True)\n{line}    (x * x).sum().backward()\n\n\n"
        "if __name__ == '__main__':\n    main(torch.load('y.pt'), torch.load('n.pt'))\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    assert found.help.startswith(first or "call") and bool(first) is ("; then call `torch" in found.help)


UNCHANGED = (
    "import torch\nfrom torch import nn\n\n\ndef main(x):\n    torch.manual_seed(0)\n    model = nn.Embedding(9, 2).cuda()\n"
    "    a = torch.load('a.pt').to_sparse().cuda()\n    y = {y}\n    y.sum().backward()\n\n\n"
    "if __name__ == '__main__':\n    main(torch.ones(9, 2, device='cuda', requires_grad=True))\n"
)


@pytest.mark.parametrize(
    ("version", "y", "said"),
    [
        ("2.13", "torch.sparse.mm(a, model.weight)", "`torch.sparse.mm` (DET401): fix it too"),
        (
            "2.13",
            "torch.sparse.addmm(x, a, x) + torch.sparse.mm(a, x)",
            "`torch.sparse.addmm` (DET401) and `torch.sparse.mm` (DET401): fix them too",
        ),
        ("2.13", "torch.sparse.mm(a, x) + torch.median(x, 0)[0]", "`torch.sparse.mm` (DET401): fix it too"),
        ("1.6", "torch.sparse.mm(a, model.weight)", "`torch.sparse.mm` (DET401): fix it too"),
        ("1.6", "torch.nn.functional.interpolate(x.view(1, 1, 9, 2), scale_factor=2, mode='bilinear')", ""),
        ("2.13", "torch.zeros(9, device='cuda').index_add_(0, torch.ones(9).long().cuda(), x[:, 0])", ""),
    ],
)
def test_ops_that_the_mode_does_not_change_are_named(tmp_path: Path, version: str, y: str, said: str) -> None:
    (tmp_path / "d9mlint.toml").write_text(f'torch-version = "{version}"\n')
    (found,) = findings(tmp_path, UNCHANGED.format(y=y), "DET302")
    assert found.help.endswith(f"; deterministic mode does not change {said}") or not said
    assert ("does not change" in found.help) is bool(said)
    assert ("; then call" in found.help) is ("median" in y)


def test_ops_that_differ_on_mps_alone_are_not_named_for_cuda(tmp_path: Path) -> None:
    (tmp_path / "d9mlint.toml").write_text('torch-version = "2.13"\n')
    text = (
        "import torch\nfrom somewhere import words\nfrom torch import nn\n\n\ndef main(x):\n    torch.manual_seed(0)\n"
        "    device = (torch.device('cuda') if torch.cuda.is_available() else torch.device('mps')\n"
        "              if torch.backends.mps.is_available() else torch.device('cpu'))\n"
        "    model = nn.Embedding(9, 2).to(device)\n    model(x.to(device)).sum().backward()\n\n\n"
        "if __name__ == '__main__':\n    main(words())\n"
    )
    (op,) = findings(tmp_path, text, "DET401")
    assert "on MPS" in op.message
    (found,) = findings(tmp_path, text, "DET302")
    assert "does not change" not in found.help


def test_one_workspace_is_asked_for(tmp_path: Path) -> None:
    text = MATRIX.replace("nn.Linear(2, 2).cuda()(torch.zeros(1, 2).cuda())", "nn.{layer}(2, 2).cuda()(x)[0]")
    text = text.replace("nn.{", "x = torch.zeros(5, 1, 2).cuda()\nnn.{", 1)
    for version, layer, value in (
        ("2.9", "LSTM", ":16:8"),
        ("2.9", "Linear", ":4096:8"),
        ("1.7", "LSTM", ":16:8"),
    ):
        (tmp_path / "d9mlint.toml").write_text(f'torch-version = "{version}"\n')
        found = [
            one for code in ("DET302", "DET405") for one in findings(tmp_path, text.format(layer=layer), code)
        ]
        for one in found:
            assert one.fix is not None and value in one.help
            assert any(f'"{value}"' in edit.content for edit in one.fix.edits)
        assert len(found) == (1 if layer == "Linear" else 2)
        switch = "set_deterministic" if version == "1.7" else "use_deterministic_algorithms"
        (found,) = findings(
            tmp_path, text.format(layer=layer).replace("\nx =", f"\ntorch.{switch}(True)\nx ="), "DET305"
        )
        assert value in found.help and found.fix is not None


CTC = (
    "import torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n\nclass Net(nn.Module):\n"
    "    def __init__(self):\n        super().__init__()\n        self.criterion = {made}\n\n"
    "    def forward(self, x, y, n):\n        {context}:\n            return {loss}(x, y, n, n)\n\n\n"
    "if __name__ == '__main__':\n    torch.manual_seed(0)\n    {first}\n"
    "    x = torch.randn(300, 8, 29, device='cuda', requires_grad=True).log_softmax(2)\n"
    "    Net().cuda()(x, torch.load('y.pt'), torch.load('n.pt')).backward()\n"
)


@pytest.mark.parametrize("loss", ["F.ctc_loss", "self.criterion"])
@pytest.mark.parametrize(
    ("context", "first", "cudnn"),
    [
        ("with torch.backends.cudnn.flags(enabled=False)", "pass", False),
        ("with torch.backends.cudnn.flags(deterministic=True)", "pass", False),
        ("with torch.backends.cudnn.flags(enabled=True)", "pass", True),
        ("if True", "torch.backends.cudnn.enabled = False", False),
        ("if True", "torch.backends.cudnn.deterministic = True", False),
        ("if True", "pass", True),
    ],
)
def test_the_conditions_of_cudnn_are_no_remedy_where_it_is_off(
    tmp_path: Path, loss: str, context: str, first: str, cudnn: bool
) -> None:
    made = "nn.CTCLoss()" if loss.startswith("self") else "None"
    text = CTC.format(loss=loss, made=made, context=context, first=first)
    (found,) = findings(tmp_path, text, "DET404")
    assert ("cudnn.deterministic" in found.help) is cudnn and "on the CPU" in found.help
    assert ("what cuDNN takes" in found.help) is (cudnn or ".cudnn.deterministic" in first)


def test_a_program_of_tensorflow_1_is_given_no_call_of_tensorflow_2(tmp_path: Path) -> None:
    text = (
        "import tensorflow as tf\nx = tf.placeholder(tf.float32, [None, 3])\nw = tf.Variable(tf.zeros([3, 1]))\n"
        "loss = tf.reduce_mean(tf.matmul(x, w))\nstep = tf.train.AdamOptimizer().minimize(loss)\n"
        "tf.set_random_seed(0)\nwith tf.Session() as s:\n    s.run(step, {x: [[1, 2, 3]]})\n"
    )
    (found,) = findings(tmp_path, text, "DET306")
    assert "enable_op_determinism" not in found.help
    assert "`tfdeterminism.patch()`" in found.help and "`bias_add`" in found.help
    assert "2." not in found.message


def test_a_program_of_tensorflow_1_is_given_its_own_seed(tmp_path: Path) -> None:
    text = (
        "import tensorflow as tf\nw = tf.Variable(tf.random_normal([3, 1]))\n"
        "with tf.Session() as s:\n    s.run(tf.global_variables_initializer())\n    print(s.run(w))\n"
    )
    found = findings(tmp_path, text, "DET104")
    assert found and all("tf.set_random_seed" in one.help for one in found)


def test_a_graph_that_the_program_makes_is_seeded_where_it_is_made(tmp_path: Path) -> None:
    """A seed at the start of the program is for the graph that is the default one there."""
    text = (
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n{}w = tf.Variable(tf.random_normal([3, 1]))\n"
        "with tf.Session() as s:\n    s.run(tf.global_variables_initializer())\n    print(s.run(w))\n"
    )
    (found,) = findings(tmp_path, text.format("tf.reset_default_graph()\n"), "DET104")
    assert found.help == (
        "call `tf.compat.v1.set_random_seed(seed)` where this graph is the default one, before its operations are made"
    )
    assert found.fix is not None and [one.content for one in found.fix.edits] == ["\ntf.set_random_seed(0)"]
    (found,) = findings(tmp_path, text.format(""), "DET104")
    assert found.help == "call `tf.compat.v1.set_random_seed(seed)` at the start of train.py"
    assert found.fix is not None


def test_a_seed_that_comes_late_in_a_graph_of_the_program_is_not_moved_before_the_graph(
    tmp_path: Path,
) -> None:
    """A seed at the start of the program would go with the graph that is replaced, and the same be reported again."""
    text = (
        "import tensorflow.compat.v1 as tf\ntf.disable_v2_behavior()\n{}w = tf.Variable(tf.random_normal([3, 1]))\n"
        "tf.set_random_seed(7)\nwith tf.Session() as s:\n    s.run(tf.global_variables_initializer())\n    print(s.run(w))\n"
    )
    (found,) = findings(tmp_path, text.format("tf.reset_default_graph()\n"), "DET108")
    assert found.help == "set the seed where this graph is the default one, before its operations are made"
    assert found.fix is None
    (found,) = findings(tmp_path, text.format(""), "DET108")
    assert found.help == "move the seed to the start of the program"
    assert found.fix is not None


def test_a_seed_that_is_assigned_is_to_be_called(tmp_path: Path) -> None:
    text = "import torch\n\nseed = 3\ntorch.manual_seed = seed\nprint(torch.randn(3))\n"
    (found,) = findings(tmp_path, text, "DET101")
    assert "`torch.manual_seed = seed` assigns to the function and does not call it" in found.message
    assert found.help == "write `torch.manual_seed(seed)`"
    # A call at the start of the program would come after the assignment in other programs, and raise TypeError.
    assert found.fix is None


BENCHMARK = "torch.backends.cudnn.benchmark = True"


def test_the_benchmark_in_training_has_a_safe_fix(tmp_path: Path) -> None:
    text = (
        f"import torch\nfrom torch import nn\n{BENCHMARK}\n"
        "nn.Conv1d(2, 2, 1).cuda()(torch.zeros(1, 2, 3).cuda()).sum().backward()\n"
    )
    (found,) = findings(tmp_path, text, "DET301")
    assert found.severity == "error" and found.fix is not None


def test_the_benchmark_of_an_own_option_or_of_inference_is_a_warning(tmp_path: Path) -> None:
    option = (
        "import argparse, torch\nfrom torch import nn\np = argparse.ArgumentParser()\n"
        "p.add_argument('--deterministic', action='store_true')\nargs = p.parse_args()\n"
        f"if not args.deterministic:\n    {BENCHMARK}\n"
        "nn.Conv1d(2, 2, 1).cuda()(torch.zeros(1, 2, 3).cuda()).sum().backward()\n"
    )
    (found,) = findings(tmp_path, option, "DET301")
    assert found.severity == "warning" and found.fix is None and "--deterministic" in found.help
    inference = (
        f"import torch\nfrom torch import nn\n{BENCHMARK}\nnet = nn.Linear(2, 2).cuda()\n"
        "net.load_state_dict(torch.load('m.pt'))\nwith torch.no_grad():\n    print(net(torch.zeros(1, 2).cuda()))\n"
    )
    (found,) = findings(tmp_path, inference, "DET301")
    assert found.severity == "warning" and found.fix is None


def test_the_entry_point_that_trains_is_named_first(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import torch\n\n\ndef noisy(x):\n    return x + torch.randn(3)\n")
    (tmp_path / "a_eval.py").write_text("import torch\nfrom net import noisy\nprint(noisy(torch.zeros(3)))\n")
    text = "import torch\nfrom net import noisy\nw = torch.zeros(3, requires_grad=True)\n(w * noisy(w)).sum().backward()\n"
    (found,) = findings(tmp_path, text, "DET101")
    assert found.entry_point == "train.py" and "a_eval.py" in found.message


def test_only_the_entry_point_whose_session_runs_the_step_trains(tmp_path: Path) -> None:
    """The graph of a program that samples has the step too."""
    (tmp_path / "model.py").write_text(
        "import tensorflow as tf\nx = tf.placeholder(tf.float32, [None, 3])\nw = tf.Variable(tf.zeros([3, 1]))\n"
        "cost = tf.reduce_mean(tf.matmul(x, w))\nstep = tf.train.AdamOptimizer().minimize(cost)\n"
    )
    (tmp_path / "sample.py").write_text(
        "import tensorflow as tf\nimport model\nwith tf.Session() as s:\n    print(s.run(model.cost, {}))\n"
    )
    (found,) = findings(
        tmp_path,
        "import tensorflow as tf\nimport model\nwith tf.Session() as s:\n    s.run([model.step, model.cost], {})\n",
        "DET306",
    )
    assert "`train.py` trains" in found.message and "sample.py" not in found.message


def test_a_transform_with_its_own_seed_is_told_to_use_it(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("albumentations==2.0.8\n")
    (found,) = findings(
        tmp_path,
        "import albumentations as A\nt = A.Compose([A.HorizontalFlip()])\nprint(t(image=None))\n",
        "DET106",
    )
    assert found.help == "pass `seed=0`"


GENERATORS = {
    "for each item": (
        "class Flip:\n    def __call__(self, x):\n        rng = np.random.default_rng()\n"
        "        return x[::-1] if rng.random() > 0.5 else x\n\n\nprint(Flip()(np.ones(3)))\n"
    ),
    "in the rounds of a loop": (
        "def shuffled(x):\n    return np.random.default_rng().permutation(x)\n\n\n"
        "for epoch in range(3):\n    print(shuffled(np.ones(3)))\n"
    ),
    "in the body of a loop": "for epoch in range(3):\n    rng = np.random.default_rng()\n    print(rng.random())\n",
    "by a function that gives it": (
        "def make():\n    return np.random.default_rng()\n\n\nfor epoch in range(3):\n    print(make().random())\n"
    ),
}


@pytest.mark.parametrize("use", GENERATORS)
def test_a_generator_that_is_made_again_and_again_gets_no_fixed_seed(tmp_path: Path, use: str) -> None:
    """Every one of them would draw the same numbers."""
    (found,) = findings(tmp_path, f"import numpy as np\n\n\n{GENERATORS[use]}", "DET106")
    assert found.help.startswith("make the generator once, with a seed, or") and found.fix is None


@pytest.mark.parametrize("rounds", [True, False])
def test_a_sampler_that_is_made_in_each_round_may_get_another_seed(tmp_path: Path, rounds: bool) -> None:
    text = (
        "import optuna\n\n\ndef studied():\n    study = optuna.create_study(sampler=optuna.samplers.RandomSampler())\n"
        "    return study.ask().suggest_int('x', 0, 9)\n\n\n"
    )
    text += "for _ in range(9):\n    print(studied())\n" if rounds else "print(studied())\n"
    (found,) = findings(tmp_path, text, "DET109")
    assert ("a different number in each round" in found.help) is rounds
    assert (found.remedy == ()) is rounds


def test_a_transform_that_is_made_for_each_item_gets_no_fixed_seed(tmp_path: Path) -> None:
    """It would change every item in the same way."""
    (tmp_path / "requirements.txt").write_text("albumentations==2.0.8\n")
    (found,) = findings(
        tmp_path,
        "import albumentations as A\n\n\ndef build():\n    return A.Compose([A.Rotate(limit=45)])\n\n\n"
        "for image in range(3):\n    print(build()(image=image))\n",
        "DET106",
    )
    assert found.help.startswith("make `A.Compose` once, with a seed, or")


@pytest.mark.parametrize(
    "text",
    [
        "def make():\n    return np.random.default_rng()\n\n\nrng = make()\n"
        "for epoch in range(3):\n    print(rng.random())\n",
        "rng = np.random.default_rng()\nfor epoch in range(3):\n    print(rng.random())\n",
        "class Flip:\n    def __init__(self):\n        self.rng = np.random.default_rng()\n\n"
        "    def __call__(self, x):\n        return x + self.rng.random()\n\n\nprint(Flip()(np.ones(3)))\n",
    ],
)
def test_a_generator_that_is_made_once_gets_a_seed(tmp_path: Path, text: str) -> None:
    (found,) = findings(tmp_path, f"import numpy as np\n\n{text}", "DET106")
    assert found.help == "pass a seed" and found.fix is not None


PIPELINES = {
    "options.deterministic = False\nds = ds.with_options(options)\n": "set `deterministic` to True",
    "ds = ds.map(abs, num_parallel_calls=4, deterministic=False)\n": "pass `deterministic=True`",
    "ds = ds.map(lambda x: x + tf.random.uniform([]), num_parallel_calls=4)\n": "use stateless random ops",
}


@pytest.mark.parametrize("stage", PIPELINES)
def test_the_order_of_a_pipeline_is_kept_and_its_draws_are_stateless(tmp_path: Path, stage: str) -> None:
    text = (
        "import tensorflow as tf\ntf.random.set_seed(0)\noptions = tf.data.Options()\n"
        f"ds = tf.data.Dataset.range(9)\n{stage}for x in ds:\n    print(x)\n"
    )
    (found,) = findings(tmp_path, text, "DET206")
    assert found.help.startswith(PIPELINES[stage])


@pytest.mark.parametrize(
    ("version", "function", "expected"),
    [
        (
            "2.3",
            "lambda x: x + tf.random.uniform([])",
            "stateless random ops with a seed per element, or leave out",
        ),
        ("2.15", "lambda x: x + tf.random.uniform([])", "per element, or enable op determinism"),
        ("2.3", "lambda x: tf.numpy_function(draw, [x], tf.float64)", "leave out `num_parallel_calls`"),
        ("2.15", "lambda x: tf.numpy_function(draw, [x], tf.float64)", "enable op determinism"),
    ],
)
def test_draws_of_a_parallel_stage_are_ordered_by_what_the_release_has(
    tmp_path: Path, version: str, function: str, expected: str
) -> None:
    """Op determinism is there from TensorFlow 2.8 on; functions of Python have no stateless ops."""
    (tmp_path / "d9mlint.toml").write_text(f'tensorflow-version = "{version}"\n')
    text = (
        "import numpy as np\nimport tensorflow as tf\n\n\ndef draw(x):\n    return x + np.random.rand()\n\n\n"
        "tf.random.set_seed(0)\nnp.random.seed(0)\n"
        f"for x in tf.data.Dataset.range(9).map({function}, num_parallel_calls=4):\n    print(x)\n"
    )
    (found,) = findings(tmp_path, text, "DET206")
    assert expected in found.help and ("stateless" in found.help) is ("uniform" in function)


@pytest.mark.parametrize("version", ["2.3", "2.15"])
def test_threads_are_limited_where_there_is_no_op_determinism(tmp_path: Path, version: str) -> None:
    (tmp_path / "d9mlint.toml").write_text(f'tensorflow-version = "{version}"\nextend-select = ["DET311"]\n')
    text = (
        "import tensorflow as tf\n\nif __name__ == '__main__':\n"
        "    tf.config.threading.set_inter_op_parallelism_threads(4)\n"
        "    tf.keras.Sequential([tf.keras.layers.Dense(1)]).fit([[1.0]], [[1.0]])\n"
    )
    (found,) = findings(tmp_path, text, "DET311")
    assert ("op determinism" in found.help) is (version == "2.15")


PARAMETERS = (
    "import torch\nfrom torch import nn\ntorch.manual_seed(0)\nnet = nn.Linear(4, 4)\n"
    "step = torch.optim.SGD({}, lr=0.1)\nprint(step)\n"
)


@pytest.mark.parametrize(
    "written",
    [
        "[*{*net.parameters()}]",
        "list(set([*net.parameters()]))",
        "list({*net.children()} | {*net.modules()})",
    ],
)
def test_tensors_and_modules_are_not_to_be_sorted(tmp_path: Path, written: str) -> None:
    """They cannot be compared, or not to one number."""
    (found,) = findings(tmp_path, PARAMETERS.format(written), "DET210")
    assert found.fix is None or not any("sorted" in edit.content for edit in found.fix.edits)
    assert "dict.fromkeys" in found.help and "sorted" not in found.help
    assert not findings(tmp_path, PARAMETERS.format("[*dict.fromkeys(net.parameters())]"), "DET210")


def test_filling_memory_again_is_no_safe_fix(tmp_path: Path) -> None:
    """It takes time, and makes an index that was never written raise."""
    text = (
        "import torch\ntorch.use_deterministic_algorithms(True)\n"
        "torch.utils.deterministic.fill_uninitialized_memory = False\nprint(torch.empty(4).fill_(1))\n"
    )
    (found,) = findings(tmp_path, text, "DET309")
    assert found.fix is not None and found.fix.applicability == "unsafe"


def test_an_order_that_tensorflow_1_draws_is_seeded_as_tensorflow_1_is(tmp_path: Path) -> None:
    text = (
        "import tensorflow as tf\nfiles = tf.data.Dataset.list_files('*.tfrecord', shuffle=True)\n"
        "step = files.make_one_shot_iterator().get_next()\nwith tf.Session() as s:\n    print(s.run(step))\n"
    )
    (tmp_path / "requirements.txt").write_text("tensorflow-gpu==1.13.1\n", encoding="utf-8")
    (found,) = findings(tmp_path, text, "DET207")
    assert "`tf.set_random_seed(0)`" in found.help


LOOKUP = (
    "import tensorflow as tf\nx = tf.placeholder(tf.int32, [None])\ntable = tf.Variable(tf.zeros([9, 3]))\n"
    "loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(table, x)))\n"
    "step = tf.train.AdamOptimizer().minimize(loss)\n"
    "with tf.Session() as s:\n    s.run(step, {x: [1, 2, 3]})\n"
)
LABELS = LOOKUP.replace(
    "tf.square(tf.nn.embedding_lookup(table, x))",
    "tf.nn.sparse_softmax_cross_entropy_with_logits(labels=x, logits=table)",
)


@pytest.mark.parametrize(
    ("release", "text", "expected"),
    [
        ("1.15.2", LOOKUP, "tf.one_hot"),
        ("1.15.2", LABELS, "tf.nn.log_softmax"),
        (
            "2.7.0",
            LOOKUP.replace("import tensorflow as tf", "import tensorflow.compat.v1 as tf"),
            "TF_DETERMINISTIC_OPS",
        ),
    ],
)
def test_a_remedy_is_for_the_release_in_use(tmp_path: Path, release: str, text: str, expected: str) -> None:
    (tmp_path / "requirements.txt").write_text(f"tensorflow=={release}\n", encoding="utf-8")
    (tmp_path / "d9mlint.toml").write_text('min-severity = "advice"\n')
    found = findings(tmp_path, text, "DET403")[0]
    assert expected in found.help
    assert "enable_op_determinism" not in found.help


@pytest.mark.parametrize(("release", "bilinear"), [("2.3.0", False), ("2.4.0", True), ("2.12.0", True)])
def test_bilinear_resizing_is_no_remedy_before_it_is_deterministic(
    tmp_path: Path, release: str, bilinear: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(f"tensorflow=={release}\n", encoding="utf-8")
    text = (
        "import tensorflow as tf\n"
        "model = tf.keras.Sequential([tf.keras.layers.Conv2D(3, 3), tf.keras.layers.UpSampling2D()])\n"
        "model.compile('sgd', 'mse')\nmodel.fit(tf.ones((1, 8, 8, 3)), tf.ones((1, 12, 12, 3)))\n"
    )
    (found,) = findings(tmp_path, text, "DET403")
    assert ("bilinear" in found.help) == bilinear
    assert "use " in found.help and "Conv2DTranspose" in found.help


GATHERED = (
    "import sys, torch\nfrom torch import nn\ntorch.manual_seed(0)\nnet = nn.Linear(4, 2).cuda()\n"
    "at = torch.load(sys.argv[1]).cuda()\nloss = torch.gather(net(torch.ones(8, 4).cuda()), 0, at).sum()\nloss.backward()\n"
)


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("0.4.1", "with torch >= 1.9, call torch.use_deterministic_algorithms(True)."),
        ("1.4.0", "with torch >= 1.9, call torch.use_deterministic_algorithms(True)."),
        ("2.4.0", "Call torch.use_deterministic_algorithms(True)."),
    ],
)
def test_a_release_without_deterministic_mode_is_given_the_first_that_has_it(
    tmp_path: Path, release: str, expected: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch=={release}\n", encoding="utf-8")
    (found,) = findings(tmp_path, GATHERED, "DET401")
    assert found.help == expected


@pytest.mark.parametrize("switch", ["", "torch.use_deterministic_algorithms(True)\n"])
@pytest.mark.parametrize(
    ("release", "expected"),
    [
        (
            "0.15.1",
            "with torchvision >= 0.16, call torch.use_deterministic_algorithms(True) with a working torch.compile.",
        ),
        ("0.20.0", "Call torch.use_deterministic_algorithms(True) with a working torch.compile."),
    ],
)
def test_a_release_that_ignores_deterministic_mode_is_given_the_first_that_obeys_it(
    tmp_path: Path, release: str, expected: str, switch: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"torchvision=={release}\n", encoding="utf-8")
    text = (
        f"import torch, torchvision\ntorch.manual_seed(0)\n{switch}"
        "model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights='DEFAULT').cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for images, targets in torch.load('data.pt'):\n"
        "    loss = sum(model(images, targets).values())\n    loss.backward()\n    optimizer.step()\n"
    )
    found = findings(tmp_path, text, "DET407")
    assert [one.help for one in found] == ([expected] if not switch or release == "0.15.1" else [])


@pytest.mark.parametrize(("release", "other"), [("1.2.0", True), ("1.13.1", False)])
def test_a_release_without_deterministic_mode_is_given_an_op_that_it_has(
    tmp_path: Path, release: str, other: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch=={release}\n", encoding="utf-8")
    (found,) = findings(tmp_path, GATHERED.replace("torch.gather", "torch.index_select"), "DET401")
    assert found.help.startswith("use `torch.nn.functional.embedding(index, input)`") == other
    assert "torch.use_deterministic_algorithms(True)" in found.help


def test_a_place_that_varies_for_two_reasons_is_reported_once(tmp_path: Path) -> None:
    text = (
        "import sys, torch\nfrom torch import nn\ntorch.manual_seed(0)\nnet = nn.Linear(4, 2).cuda()\n\n\n"
        "def chosen(rows, at):\n    return rows.index_select(0, at)\n\n\n"
        "at = torch.load(sys.argv[1]).cuda()\nout = net(torch.ones(8, 4).cuda())\n"
        "(chosen(out, at).sum() + chosen(torch.load(sys.argv[2]), at).sum()).backward()\n"
    )
    assert len(findings(tmp_path, text, "DET401")) == 1


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("'--seed', type=int, default=1", "call `torch.manual_seed(args.seed)` after the options are parsed"),
        ("'--manual-seed', type=int", "give `--manual-seed` a number as its default value, and call "),
        ("'--seeds', default='seeds.txt'", "call `torch.manual_seed(seed)` at the start of train.py"),
    ],
)
def test_an_option_that_is_named_like_a_seed_is_the_seed(tmp_path: Path, option: str, expected: str) -> None:
    text = (
        f"import argparse, torch\np = argparse.ArgumentParser()\np.add_argument({option})\nargs = p.parse_args()\n"
        "torch.save(torch.rand(3), 'numbers.pt')\n"
    )
    (found,) = findings(tmp_path, text, "DET101")
    assert found.help.startswith(expected)
    assert ("does not seed it" in found.message) == ("at the start" not in expected)


@pytest.mark.parametrize("seeded", ["np.random", "random"])
def test_an_option_that_seeds_on_one_path_is_not_said_to_seed_nothing(tmp_path: Path, seeded: str) -> None:
    text = (
        "import argparse, random\nimport numpy as np\np = argparse.ArgumentParser()\np.add_argument('--seed', type=int)\n"
        "p.add_argument('--path')\nargs = p.parse_args()\nif args.path:\n"
        f"    {seeded}.seed(args.seed)\nprint(np.random.rand())\n"
    )
    (found,) = findings(tmp_path, text, "DET102")
    assert found.help.endswith("call `numpy.random.seed(args.seed)` after the options are parsed")
    assert ("does not seed it" in found.message) == (seeded == "random")


def test_an_algorithm_that_seeds_itself_is_given_its_own_seed(tmp_path: Path) -> None:
    text = (
        "import gymnasium as gym\nfrom stable_baselines3 import DQN\n"
        "model = DQN('MlpPolicy', gym.make('CartPole-v1'))\nmodel.learn(2000)\nmodel.save('model')\n"
    )
    (found,) = findings(tmp_path, text, "DET101")
    assert "pass `seed=0` to `DQN`" in found.help
    assert findings(tmp_path, text.replace("v1')", "v1'), seed=0"), "DET101") == []


def test_a_model_that_takes_its_seed_from_its_options_is_given_one_there(tmp_path: Path) -> None:
    text = (
        "from simpletransformers.classification import ClassificationArgs, ClassificationModel\n"
        "model = ClassificationModel('bert', 'bert-base-cased', args=ClassificationArgs(), use_cuda=False)\n"
        "model.train_model('train.csv')\n"
    )
    (found,) = findings(tmp_path, text, "DET101")
    assert found.help.startswith("give `manual_seed` of `args` a fixed number")
    assert findings(tmp_path, text.replace("Args()", "Args(manual_seed=4)"), "DET101") == []


def test_a_release_without_a_switch_is_given_none(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("tensorflow==1.4.0\n", encoding="utf-8")
    text = (
        "import tensorflow as tf\nx = tf.placeholder(tf.float32, [None, 3])\nw = tf.Variable(tf.zeros([3, 1]))\n"
        "loss = tf.reduce_mean(tf.matmul(x, w))\nstep = tf.train.AdamOptimizer().minimize(loss)\n"
        "tf.set_random_seed(0)\nwith tf.Session() as s:\n    s.run(step, {x: [[1, 2, 3]]})\n"
    )
    (found,) = findings(tmp_path, text, "DET306")
    assert "TensorFlow 1.14 or newer" in found.help
    assert found.fix is None


@pytest.mark.parametrize(
    ("release", "wanted", "other"),
    [
        ("2.3.0", "tf.nn.log_softmax", "TF_DETERMINISTIC_OPS"),
        ("2.6.0", "TensorFlow 2.7 or newer", "TF_DETERMINISTIC_OPS"),
        ("2.7.0", "TF_DETERMINISTIC_OPS", "log_softmax"),
        ("2.15.0", "enable_op_determinism", "log_softmax"),
    ],
)
def test_the_switch_is_the_remedy_from_the_release_on_that_obeys_it(
    tmp_path: Path, release: str, wanted: str, other: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"tensorflow=={release}\n", encoding="utf-8")
    text = (
        "import tensorflow as tf\n\n\ndef loss(labels, logits):\n"
        "    return tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)\n"
    )
    (found,) = findings(tmp_path, text, "DET403")
    assert wanted in found.help
    assert other not in found.help


def test_op_determinism_is_recommended_with_what_it_refuses(tmp_path: Path) -> None:
    text = (
        "import keras\nimport keras_cv\nimport tensorflow as tf\nkeras.utils.set_random_seed(0)\n{before}"
        "model = keras.Sequential([keras_cv.layers.Resizing(4, 4), keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\nmodel.fit(tf.ones((2, 4, 4, 3)), tf.ones((2,)))\n"
    )
    generator = "tf.random.set_global_generator(tf.random.Generator.from_seed(1))"
    (found,) = findings(tmp_path, text.format(before=""), "DET306")
    assert "`Resizing` then raises RuntimeError" in found.help and generator in found.help
    (found,) = findings(tmp_path, text.format(before=f"{generator}\n"), "DET306")
    assert "Resizing" not in found.help


BENCHMARKS = {
    "its own option": ("if args.fast:\n    cudnn.benchmark = True\n", "leave `--fast` at its default"),
    "the default of its own option": (
        "if not args.safe:\n    cudnn.benchmark = True\n",
        "run with another value of `--safe`",
    ),
    "the default of an option for the device": (
        "device = torch.device('cpu' if args.safe else 'cuda')\nif not args.safe:\n    cudnn.benchmark = True\n",
        "benchmark = False`",
    ),
    "the text of an option for the device": (
        "device = 'cpu' if args.safe else 'cuda'\nmodel = torch.nn.Conv2d(1, 1, 1).to(device)\n"
        "if not args.safe:\n    cudnn.benchmark = True\n",
        "benchmark = False`",
    ),
    "an option for what is moved": (
        "if not args.safe:\n    cudnn.benchmark = True\n\nmodel = torch.nn.Conv2d(1, 1, 1)\n"
        "if not args.safe:\n    model.cuda()\n",
        "benchmark = False`",
    ),
    "an option of something else": (
        "if args.cuda:\n    torch.cuda.manual_seed(0)\n    cudnn.benchmark = True\n",
        "benchmark = False`",
    ),
    "a method that is not the default": (
        "def prepare():\n    cudnn.benchmark = True\n\n\nif args.kind == 'b':\n    prepare()\n",
        "benchmark = False`",
    ),
}


@pytest.mark.parametrize("name", BENCHMARKS)
def test_an_option_is_named_as_the_remedy_where_it_is_there_for_that(tmp_path: Path, name: str) -> None:
    lines, expected = BENCHMARKS[name]
    head = (
        "import argparse\n\nimport torch\nfrom torch.backends import cudnn\n\np = argparse.ArgumentParser()\n"
        "p.add_argument('--fast', action='store_true')\np.add_argument('--safe', action='store_true')\n"
        "p.add_argument('--cuda', type=int, default=1)\np.add_argument('--kind', default='a')\n"
        "args = p.parse_args()\n"
    )
    (found,) = findings(tmp_path, head + lines, "DET301")
    assert found.help.endswith(expected)
    assert ("is given" in found.message) is (name in ("its own option", "a method that is not the default"))


def test_a_new_process_is_seeded_in_what_it_runs(tmp_path: Path) -> None:
    text = (
        "import torch, torch.multiprocessing as mp\n\n\ndef work(rank):\n    print(torch.rand(3))\n\n\n"
        "if __name__ == '__main__':\n    torch.manual_seed(0)\n    mp.spawn(work)\n"
    )
    (found,) = findings(tmp_path, text, "DET101")
    # A seed behind the test of `__name__`, where fixes write them, would change nothing.
    assert "at the start of `work()`" in found.help and found.fix is None


SPARED = (
    "import torch\nfrom torch import nn\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
    "    model = nn.Sequential(nn.Conv3d(1, 4, 3), nn.MaxPool3d(2), nn.{more}).cuda()\n"
    "    model(torch.ones(1, 1, 6, 6, 6).cuda()).sum().backward()\n"
)


@pytest.mark.parametrize(
    ("version", "more", "said"),
    [
        (
            "2.12",
            "Linear(2, 2)",
            "call `torch.use_deterministic_algorithms(True, warn_only=True)` before the model is built "
            "(in deterministic mode `nn.MaxPool3d` raises RuntimeError without it)",
        ),
        (
            "1.10",
            "Linear(2, 2)",
            "first replace `nn.MaxPool3d`, which raises RuntimeError in deterministic mode "
            "(pass return_indices=True with torch >= 2.13 and take the first of its two results, or pool in 2-D); then ",
        ),
        (
            "2.12",
            "AdaptiveAvgPool3d(3)",
            "first fix `nn.AdaptiveAvgPool3d` (DET401) and replace `nn.MaxPool3d`, which raise RuntimeError "
            "in deterministic mode; then call `torch.use_deterministic_algorithms(True)`",
        ),
        ("2.12", "Identity()), nn.Sequential(nn.Identity()", "(True, warn_only=True)"),
    ],
)
def test_the_mode_only_warns_where_an_op_raises_that_is_deterministic_without_it(
    tmp_path: Path, version: str, more: str, said: str
) -> None:
    (tmp_path / "d9mlint.toml").write_text(f'torch-version = "{version}"\n')
    (found,) = findings(tmp_path, SPARED.format(more=more), "DET302")
    assert said in found.help
    fixed = found.fix.edits[0].content if found.fix is not None else ""
    assert ("warn_only=True" in fixed) is ("warn_only=True" in said)


def test_the_option_is_named_with_which_an_op_runs_that_only_raises(tmp_path: Path) -> None:
    (tmp_path / "d9mlint.toml").write_text('torch-version = "2.12"\n')
    text = (
        "import argparse\n\nimport torch\nfrom torch import nn\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--pool', default='mean')\nargs = parser.parse_args()\ntorch.manual_seed(0)\n"
        "model = nn.Conv3d(1, 4, 3)\nif args.pool == 'max':\n    model = nn.Sequential(model, nn.MaxPool3d(2))\n"
        "model.cuda()(torch.ones(1, 1, 6, 6, 6).cuda()).sum().backward()\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    only = "`nn.MaxPool3d`, run only if `--pool` has another value than its default, raises RuntimeError without it"
    assert only in found.help
    (tmp_path / "d9mlint.toml").write_text('torch-version = "1.9"\n')
    (found,) = findings(tmp_path, text, "DET302")
    assert "another value than its default, which raises RuntimeError in deterministic mode" in found.help
    (tmp_path / "d9mlint.toml").write_text('torch-version = "2.12"\n')
    text = text.replace("model.cuda()", "nn.MaxPool3d(1)(model.cuda()").replace(".sum()", ").sum()")
    (found,) = findings(tmp_path, text, "DET302")
    assert "`nn.MaxPool3d` raises RuntimeError without it" in found.help


def test_an_op_that_is_to_be_fixed_is_not_to_be_replaced_as_well(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch import nn\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
        "    model, criterion = nn.Linear(4, 4).cuda(), nn.CTCLoss()\n    x = torch.ones(5, 2, 4).cuda()\n"
        "    sizes = torch.ones(2, 3, dtype=torch.long).cuda(), torch.tensor([5, 5]), torch.tensor([3, 3])\n"
        "    criterion(model(x).log_softmax(-1), *sizes).backward()\n"
        "    with torch.no_grad():\n        print(criterion(model(x).log_softmax(-1), *sizes))\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    assert "first fix `nn.CTCLoss` (DET404), which raises RuntimeError in deterministic mode" in found.help
    text = text.replace("nn.CTCLoss()", "nn.CTCLoss()\n    pool = nn.MaxPool3d(2)")
    text += "    pool(nn.Conv3d(1, 4, 3).cuda()(torch.ones(1, 1, 6, 6, 6).cuda())).sum().backward()\n"
    (found,) = findings(tmp_path, text, "DET302")
    assert "first fix `nn.CTCLoss` (DET404) and replace `nn.MaxPool3d`, which raise" in found.help


def test_ops_of_all_programs_that_a_finding_is_about_are_named(tmp_path: Path) -> None:
    (tmp_path / "steps.py").write_text("def step(loss):\n    loss.backward()\n")
    text = SPARED.replace("    model(torch", "    step(model(torch").replace(".sum().backward()", ".sum())")
    text = text.replace("import torch\n", "import torch\nfrom steps import step\n", 1).format(
        more="Identity()"
    )
    (tmp_path / "b.py").write_text(text)
    plain = text.replace(", nn.MaxPool3d(2)", "")
    (found,) = findings(tmp_path, plain, "DET302")
    (again,) = findings(tmp_path, plain.replace("Conv3d", "Linear"), "DET302")
    assert "`nn.MaxPool3d` raises" in found.help and "`nn.MaxPool3d` raises" in again.help


ARGUMENTS = (
    "from transformers import Trainer, {name} as Arguments, AutoModelForSequenceClassification as M\n\n\n"
    "def run():\n    args = {made}\n    Trainer(M.from_pretrained('x'), args).train()\n"
)


@pytest.mark.parametrize(
    ("made", "name", "edited"),
    [
        ("Arguments('out')", "TrainingArguments", "pipeline.py"),
        ("getattr(M, 'x')", "TrainingArguments", ""),
    ],
)
def test_the_edit_of_a_trainer_is_what_its_help_says(
    tmp_path: Path, made: str, name: str, edited: str
) -> None:
    (tmp_path / "pipeline.py").write_text(ARGUMENTS.format(name=name, made=made))
    text = "from transformers import set_seed\nfrom pipeline import run\n\nset_seed(0)\nrun()\n"
    (found,) = findings(tmp_path, text, "DET302")
    assert "full_determinism=True" in found.help
    assert (Path(found.fixed_path).name if found.fix is not None else "") == edited
    if found.fix is not None:
        assert [one.content for one in found.fix.edits] == [", full_determinism=True"]


RESETS = {
    "inherited seed": (
        "self.env.reset()",
        "ob, reward, done, info = env.step(1)",
        "call `env.seed(0)` once",
    ),
    "no seed": ("self.env.reset()", "env.step(1)", "give this `reset` a parameter `seed`"),
}


@pytest.mark.parametrize("name", RESETS)
def test_an_environment_is_seeded_as_its_reset_admits(tmp_path: Path, name: str) -> None:
    reset, step, expected = RESETS[name]
    text = (
        "import gym\n\n\nclass Stack(gym.Wrapper):\n    def reset(self):\n"
        f"        return {reset}\n\n\nif __name__ == '__main__':\n"
        f"    env = Stack(gym.make('Pong-v4'))\n    print(env.reset())\n    {step}\n"
    )
    (found,) = findings(tmp_path, text, "DET111")
    assert found.help.startswith(expected)


@pytest.mark.parametrize(
    ("tested", "expected"),
    [
        ("reset(seed=1)", "call `env.reset(seed=0)` once after creating it"),
        ("seed(1)", "call `env.seed(0)` once after creating it: this `reset` takes no seed"),
    ],
)
def test_an_environment_is_seeded_as_the_program_seeds_another(
    tmp_path: Path, tested: str, expected: str
) -> None:
    text = (
        "import gym\n\ntest = gym.make('Pong-v4')\n"
        f"test.{tested}\nenv = gym.make('Pong-v4')\nprint(env.reset())\n"
        "state, reward, done, info = env.step(0)\nprint(state)\n"
    )
    (found,) = findings(tmp_path, text, "DET111")
    assert found.help == expected


@pytest.mark.parametrize(
    ("library", "required", "expected"),
    [
        ("gym", "gym==0.17.3", "call `env.seed(0)` once after creating it: this `reset` takes no seed"),
        ("gym", "gym<0.22", "call `env.seed(0)` once after creating it: this `reset` takes no seed"),
        ("gym", "gym==0.22.0", "call `env.reset(seed=0)` once after creating it"),
        ("gymnasium", "gym==0.17.3", "call `env.reset(seed=0)` once after creating it"),
        ("gymnasium", "numpy", "call `env.reset(seed=0)` once after creating it"),
        (
            "gym",
            "numpy",
            "call `env.reset(seed=0)` once after creating it; before gym 0.22, call its method `seed` instead",
        ),
    ],
)
def test_an_environment_is_seeded_as_its_release_does(
    tmp_path: Path, library: str, required: str, expected: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"{required}\n")
    text = f"import {library}\n\nenv = {library}.make('Pong-v4')\nstate = env.reset()\nprint(state)\n"
    (found,) = findings(tmp_path, text, "DET111")
    assert found.help == expected


@pytest.mark.parametrize(
    ("resets", "expected"),
    [
        (
            "[env.reset() for env in envs]",
            "call `env.reset(seed=...)` once for each environment, with a different seed",
        ),
        (
            "[envs[i].reset() for i in range(2)]",
            "call `env.reset(seed=...)` once for each environment, with a different",
        ),
        ("[envs[0].reset() for _ in range(2)]", "call `env.reset(seed=0)` once after creating it"),
    ],
)
def test_each_of_several_environments_gets_a_seed(tmp_path: Path, resets: str, expected: str) -> None:
    text = f"import gymnasium\n\nenvs = [gymnasium.make('Pong-v4') for _ in range(2)]\nprint({resets})\n"
    (found,) = findings(tmp_path, text, "DET111")
    assert found.help.startswith(expected)
    assert not found.fix


@pytest.mark.parametrize(
    ("name", "release", "expected"),
    [
        (
            "self.tests",
            "gym==0.17.3",
            "call `self.tests.seed(0)` once after creating it: this `reset` takes no seed",
        ),
        ("self.tests", "gym==0.26.2", "call `self.tests.reset(seed=0)` once after creating it"),
        ("world", "gym==0.26.2", "call `world.reset(seed=0)` once after creating it"),
        ("self.all['a']", "gym==0.26.2", "call `env.reset(seed=0)` once after creating it"),
    ],
)
def test_an_environment_is_named_as_the_program_writes_it(
    tmp_path: Path, name: str, release: str, expected: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"{release}\n")
    text = (
        "import gym\n\n\nclass Play:\n    def __init__(self):\n        self.all = {}\n"
        f"        {name} = gym.make('Pong-v4')\n        print({name}.reset())\n\n\nPlay()\n"
    )
    (found,) = findings(tmp_path, text, "DET111")
    assert found.help == expected


@pytest.mark.parametrize(
    ("sampled", "expected"),
    [
        ("envs.action_space", "call `envs.action_space.seed(0)` once"),
        ("[envs][0].action_space", "call `env.action_space.seed(0)` once"),
    ],
)
def test_a_space_is_named_as_the_program_writes_it(tmp_path: Path, sampled: str, expected: str) -> None:
    text = (
        "import gymnasium as gym\n\nenvs = gym.make_vec('CartPole-v1', num_envs=2)\nenvs.reset(seed=0)\n"
        f"print(envs.step({sampled}.sample()))\n"
    )
    (found,) = findings(tmp_path, text, "DET111")
    assert found.help == expected


def test_a_seed_that_a_method_is_given_is_not_one_number_for_all_calls(tmp_path: Path) -> None:
    text = (
        "import random\n\n\nclass Car:\n    def reset(self, seed=None):\n        random.seed(seed)\n"
        "        return random.random()\n\n\nif __name__ == '__main__':\n    print(Car().reset())\n"
    )
    (found,) = findings(tmp_path, text, "DET107")
    assert found.help.startswith("seed only if `seed` is not None")


def test_a_seed_is_passed_by_the_name_that_it_has(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("lightning==2.1.0\n")
    text = "from lightning.pytorch.cli import LightningCLI\nfrom models import Model\n\nLightningCLI(Model, run=False)\n"
    (found,) = findings(tmp_path, text, "DET107")
    assert found.help == "pass `seed_everything_default=0`"


def test_the_mode_is_set_in_the_processes_that_train(tmp_path: Path) -> None:
    text = (
        "import torch\nimport torch.multiprocessing as mp\n\n\ndef train(rank):\n    torch.manual_seed(0)\n"
        "    torch.nn.Linear(2, 2).cuda()(torch.zeros(1, 2).cuda()).sum().backward()\n\n\n"
        'if __name__ == "__main__":\n    mp.spawn(train, nprocs=2)\n'
    )
    (found,) = findings(tmp_path, text, "DET302")
    assert "at the start of `train()`, which runs in new processes" in found.help


@pytest.mark.parametrize(
    ("imported", "name", "seed"),
    [
        ("import tensorflow as tf", "tf.keras", "tf.keras.utils.set_random_seed"),
        ("from tensorflow import keras", "keras", "tf.keras.utils.set_random_seed"),
        ("import tf_keras", "tf_keras", "tf_keras.utils.set_random_seed"),
        ("import keras", "keras", "keras.utils.set_random_seed"),
    ],
)
def test_keras_is_seeded_by_the_name_under_which_it_is_imported(
    tmp_path: Path, imported: str, name: str, seed: str
) -> None:
    text = (
        f"{imported}\nmodel = {name}.Sequential([{name}.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
        "model.fit([[1.0]], epochs=3)\nmodel.save('model.h5')\n"
    )
    (tmp_path / "requirements.txt").write_text("tensorflow==2.17.0\n")
    (found,) = findings(tmp_path, text, "DET104")
    assert found.help.startswith(f"call `{seed}(seed)` at the start of")


@pytest.mark.parametrize(
    ("flags", "fixed"),
    [
        ("--xla_gpu_deterministic_ops=true", True),
        ("--xla_gpu_autotune_level=2 --xla_gpu_max_kernel_unroll=32", False),
    ],
)
def test_flags_that_end_a_program_where_they_are_read_are_not_moved(
    tmp_path: Path, flags: str, fixed: bool
) -> None:
    text = (
        "import os\n\nimport jax\n\nkey = jax.random.key(0)\n"
        f'os.environ["XLA_FLAGS"] = "{flags}"\nprint(jax.random.normal(key))\n'
    )
    (found,) = findings(tmp_path, text, "DET308")
    assert (found.fix is not None) is fixed
    assert ("it aborts on them" in found.help) is not fixed


MADE_IN_A_FUNCTION = """\
import torch
from torch.utils.data import DataLoader, TensorDataset, random_split

data = TensorDataset(torch.arange(8.0))


def parts():
    return random_split(data, [4, 4])


def loader():
    return DataLoader(data, shuffle=True)


{}
    for part in parts():
        print(part[0])
    for batch in loader():
        print(batch)
"""


@pytest.mark.parametrize("code", ["DET109", "DET202"])
@pytest.mark.parametrize(
    ("calls", "repeated"), [("for epoch in range(int(input())):", True), ("if data:", False)]
)
def test_no_generator_is_seeded_anew_in_each_round(
    tmp_path: Path, code: str, calls: str, repeated: bool
) -> None:
    (found,) = findings(tmp_path, MADE_IN_A_FUNCTION.format(calls), code)
    assert ("seeded once, before the loop" in found.help) is repeated
    assert (found.fix is None) is repeated


@pytest.mark.parametrize("in_ranks", [True, False])
def test_random_states_are_saved_and_restored_by_each_rank(tmp_path: Path, in_ranks: bool) -> None:
    wrapped = "nn.parallel.DistributedDataParallel(net)" if in_ranks else "net"
    text = (
        "import torch\nfrom torch import nn\n\n\ndef main():\n    torch.manual_seed(0)\n"
        "    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout())\n"
        "    adam = torch.optim.Adam(net.parameters())\n"
        f"    model = {wrapped}\n    for epoch in range(3):\n"
        "        model(torch.ones(8, 4)).mean().backward()\n        adam.step()\n"
        '        state = {"model": net.state_dict(), "adam": adam.state_dict(), "epoch": epoch}\n'
        '        torch.save(state, "last.pt")\n\n\nif __name__ == "__main__":\n    main()\n'
    )
    (found,) = findings(tmp_path, text, "DET601")
    assert ("of each rank on that rank" in found.help) is in_ranks
    assert bool(found.remedy) is not in_ranks


RESUMED = """\
import torch
from other import resume
from torch import nn


def unused(net, adam):
    state = torch.load("last.pt")
    net.load_state_dict(state["model"])
    adam.load_state_dict(state["adam"])


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
    adam = torch.optim.Adam(net.parameters())
    {}(net, adam)
    for epoch in range(3):
        net(torch.ones(8, 4)).mean().backward()
        adam.step()
        torch.save({{"model": net.state_dict(), "adam": adam.state_dict(), "epoch": epoch}}, "last.pt")


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("called", ["unused", "resume"])
def test_states_are_restored_only_where_the_program_resumes(tmp_path: Path, called: str) -> None:
    (tmp_path / "other.py").write_text(
        'import torch\n\n\ndef resume(net, adam):\n    state = torch.load("last.pt")\n'
        '    net.load_state_dict(state["model"])\n    adam.load_state_dict(state["adam"])\n'
    )
    (found,) = findings(tmp_path, RESUMED.format(called), "DET601")
    assert (found.fix is None) is (called == "resume")


@pytest.mark.parametrize("called", ["resume", "unused", "weights"])
def test_states_are_restored_by_the_function_that_the_program_calls(tmp_path: Path, called: str) -> None:
    resume = (
        'def resume(net, adam):\n    state = torch.load("last.pt")\n'
        '    net.load_state_dict(state["model"])\n    adam.load_state_dict(state["adam"])\n\n\n'
    )
    weights = 'def weights(net, adam):\n    state = torch.load("last.pt")\n    net.load_state_dict(state["model"])\n\n\n'
    text = RESUMED.format(called).replace("from other import resume\n", "")
    text = text.replace("def main", f"{resume}{weights}def main")
    (found,) = findings(tmp_path, text, "DET601")
    assert (found.fix is None) is (called == "weights")
    if found.fix is not None:
        *_, restored = found.fix.edits
        assert text.rfind("def ", 0, restored.start) == text.index(f"def {called}")


@pytest.mark.parametrize(
    ("beside", "help"),
    [
        ("    print(torch.ones(2))", ""),
        (
            "    torch.rand(2)",
            "; restore the RNG states right before the loop that trains, after `torch.rand`",
        ),
        (
            "    torch.manual_seed(1)",
            "; restore the RNG states right before the loop that trains, after `torch.manual_seed`",
        ),
        ("        torch.rand(2)", "; save it at the end of the round, after `torch.rand`"),
    ],
)
def test_states_are_not_restored_where_something_is_drawn_before_the_loop(
    tmp_path: Path, beside: str, help: str
) -> None:
    resume = (
        'def resume(net, adam):\n    state = torch.load("last.pt")\n'
        '    net.load_state_dict(state["model"])\n    adam.load_state_dict(state["adam"])\n\n\n'
    )
    text = RESUMED.format("resume").replace("from other import resume\n", "")
    text = text.replace("def main", f"{resume}def main")
    in_round = beside.startswith("        ")
    mark = '"last.pt")\n\n\nif' if in_round else "(net, adam)\n    for"
    first, last = mark.split("\n", 1)
    assert mark in text
    text = text.replace(mark, f"{first}\n{beside}\n{last}")
    (found,) = findings(tmp_path, text, "DET601")
    assert (found.fix is None) is bool(help)
    assert found.help == f"save the missing state and restore it when resuming{help}"


GOES_ON = """\
import os

import torch
from torch import nn


def main():
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 4), nn.Dropout())
    adam = torch.optim.Adam(net.parameters())
    first = 0
    if os.path.exists("last.pt"):
        state = torch.load("last.pt")
        net.load_state_dict(state{0}["net"])
        adam.load_state_dict(state{0}["adam"])
        first = state["epoch"]
    for epoch in range(first, 9):
        net(torch.ones(4, 4)).mean().backward()
        adam.step()
{1}


main()
"""
NESTED = '{"parts": {"net": net.state_dict(), "adam": adam.state_dict()}, "epoch": epoch + 1}'
STORED = {
    "call": (
        "",
        'torch.save(dict(net=net.state_dict(), adam=adam.state_dict(), epoch=epoch + 1), "last.pt")',
        ", torch_rng_state=torch.get_rng_state()",
    ),
    "nested": ('["parts"]', f'torch.save({NESTED}, "last.pt")', ', "torch_rng_state": torch.get_rng_state()'),
    "updated by keyword": (
        "",
        'state = {"epoch": epoch + 1}\nstate.update(net=net.state_dict(), adam=adam.state_dict())\n'
        'torch.save(state, "last.pt")',
        '        state["torch_rng_state"] = torch.get_rng_state()\n',
    ),
    "updated with a dictionary": (
        "",
        'state = dict(epoch=epoch + 1)\nstate.update({"net": net.state_dict(), "adam": adam.state_dict()})\n'
        'torch.save(state, "last.pt")',
        '        state["torch_rng_state"] = torch.get_rng_state()\n',
    ),
    "in branches": (
        "",
        'if epoch:\n    state = {"net": net.state_dict(), "adam": adam.state_dict(), "epoch": epoch + 1}\n'
        'else:\n    state = {"net": net.state_dict(), "adam": adam.state_dict(), "epoch": epoch + 1}\n'
        'torch.save(state, "last.pt")',
        "",
    ),
}


@pytest.mark.parametrize("name", STORED)
def test_a_state_is_added_however_the_dictionary_is_made(tmp_path: Path, name: str) -> None:
    part, saved, expected = STORED[name]
    text = GOES_ON.format(part, indent(saved, " " * 8))
    (found,) = findings(tmp_path, text, "DET601")
    if not expected:
        assert found.fix is None
        return
    assert found.fix is not None
    save, restore = found.fix.edits
    assert save.content == expected
    assert restore.content.strip() == 'torch.set_rng_state(state["torch_rng_state"].cpu())'


@pytest.mark.parametrize("late", [False, True])
def test_the_state_of_a_scheduler_is_saved_after_the_step_of_its_round(tmp_path: Path, late: bool) -> None:
    save = (
        '    state = {"net": net.state_dict(), "adam": adam.state_dict(), "epoch": epoch}\n'
        '    torch.save(state, "last.pt")\n'
    )
    step = "    plan.step()\n"
    text = (
        "import torch\n\nnet = torch.nn.Linear(2, 2)\nadam = torch.optim.Adam(net.parameters())\n"
        "plan = torch.optim.lr_scheduler.StepLR(adam, 2)\nfor epoch in range(9):\n"
        f"    net(torch.ones(2, 2)).sum().backward()\n    adam.step()\n{save + step if late else step + save}"
    )
    (found,) = findings(tmp_path, text, "DET601")
    assert (found.fix is None) is late
    assert (
        found.help is not None
        and found.help.endswith("; save it at the end of the round, after `plan.step`") is late
    )


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("study.optimize(abs, timeout=600)", "use `n_trials=`"),
        ("study.optimize(abs, 100, 600)", "leave `timeout=` out"),
        ("study.optimize(abs, n_trials=int(input()), timeout=600)", "leave `timeout=` out"),
        ("study.optimize(abs, n_trials=None, timeout=600)", "use `n_trials=`"),
        ("hyperopt.fmin(abs, 0, timeout=600)", "use `max_evals=`"),
        ("hyperopt.fmin(abs, 0, max_evals=9, timeout=600)", "leave `timeout=` out"),
        ("L.Trainer(max_time='00:01:00:00')", "use `max_steps=`"),
        ("L.Trainer(max_time='00:01:00:00', max_epochs=3)", "leave `max_time=` out"),
        ("L.Trainer(max_time='00:01:00:00', max_epochs=-1)", "use `max_steps=`"),
    ],
)
def test_a_limit_that_the_call_has_already_is_not_asked_for(tmp_path: Path, call: str, expected: str) -> None:
    text = f"import hyperopt, optuna\nimport lightning as L\n\nstudy = optuna.create_study()\n{call}\n"
    (found,) = findings(tmp_path, text, "DET314")
    assert expected in found.help


@pytest.mark.parametrize(
    ("optimizer", "release"),
    [
        ("Adam(1e-3, decay=1e-4)", "2.10"),
        ("Adam(lr=1e-3, decay=1e-4)", "2.10"),
        ("Adam(lr=1e-3)", "2.15"),
        ("legacy.Adam(lr=1e-3, decay=1e-4)", "2.15"),
    ],
)
def test_the_release_is_one_that_takes_the_arguments_of_an_optimizer(
    tmp_path: Path, optimizer: str, release: str
) -> None:
    """Since Keras 2.11 `decay` raises ValueError, but for the optimizers under their old names."""
    text = (
        "import tensorflow as tf\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        f'model.compile(loss="mse", optimizer=tf.keras.optimizers.{optimizer})\nmodel.fit([[0.0]], [0.0])\n'
    )
    (found,) = findings(tmp_path, text, "DET306")
    inferred = "inferred" in found.targets[1]
    assert (found.targets[0] if inferred else "") == (f"tensorflow {release}" if release else "")


@pytest.mark.parametrize(
    ("arguments", "release", "warns"),
    [
        ("", "", True),
        ("progress_bar_refresh_rate=0", "", False),
        ("terminate_on_nan=True", "", False),
        ("reload_dataloaders_every_epoch=True", "", False),
        ("", "1.6.5", False),
        ("progress_bar_refresh_rate=0", "1.7.0", True),
    ],
)
def test_trainers_before_lightning_1_7_are_not_asked_to_warn(
    tmp_path: Path, arguments: str, release: str, warns: bool
) -> None:
    """`deterministic="warn"` raises TypeError before Lightning 1.7, which removed arguments of its trainer."""
    text = (
        "import pytorch_lightning as pl\nimport torch\nfrom torch import nn\n\n\nclass Model(pl.LightningModule):\n"
        "    def __init__(self):\n        super().__init__()\n"
        "        self.layers = nn.Sequential(nn.Conv3d(1, 2, 3), nn.MaxPool3d(2))\n\n"
        "    def training_step(self, batch, i):\n        return self.layers(batch).mean()\n\n"
        "    def configure_optimizers(self):\n        return torch.optim.Adam(self.parameters())\n\n\n"
        f"trainer = pl.Trainer(gpus=1, {arguments})\n"
        'trainer.fit(Model(), torch.utils.data.DataLoader(torch.load("volumes.pt")))\n'
    )
    if release:
        (tmp_path / "requirements.txt").write_text(f"pytorch-lightning=={release}\n", encoding="utf-8")
    (found,) = findings(tmp_path, text, "DET302")
    assert ('deterministic="warn"' in found.help) is warns
    assert warns or "`deterministic=True`" in found.help


@pytest.mark.parametrize(
    ("result", "old"),
    [
        ("pl.TrainResult(loss)", True),
        ("pl.EvalResult(checkpoint_on=loss)", True),
        ("loss", False),
        ("{'loss': loss}", False),
    ],
)
def test_results_of_steps_tell_the_release_of_lightning(tmp_path: Path, result: str, old: bool) -> None:
    """Lightning 0.9 alone has `TrainResult` and `EvalResult`: its `seed_everything` has no argument `workers`."""
    text = (
        "import pytorch_lightning as pl\nimport torch\n\n\nclass Model(pl.LightningModule):\n"
        "    def __init__(self):\n        super().__init__()\n        self.layer = torch.nn.Conv2d(3, 3, 3)\n\n"
        f"    def training_step(self, batch, i):\n        loss = self.layer(batch).mean()\n        return {result}\n\n\n"
        "pl.Trainer(gpus=1).fit(Model(), torch.utils.data.DataLoader(torch.ones(8, 3, 8, 8)))\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    assert ("pass `deterministic=True`" in found.help) is not old
    (seeded,) = findings(tmp_path, text, "DET101")
    assert seeded.fix is not None
    assert any("workers=True" in edit.content for edit in seeded.fix.edits) is not old


@pytest.mark.parametrize(("frozen", "said"), [("", True), ("with torch.no_grad():\n        ", False)])
def test_the_mode_may_raise_in_a_model_that_is_downloaded_as_code(
    tmp_path: Path, frozen: str, said: bool
) -> None:
    text = (
        "import torch\nfrom torch import nn\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
        "    body = torch.hub.load('owner/name', 'net').cuda()\n    head = nn.Conv2d(1, 1, 3).cuda()\n"
        f"    x = torch.ones(1, 1, 6, 6).cuda()\n    {frozen}x = body(x)\n    head(x).sum().backward()\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    assert ("ops of what `torch.hub.load` gives may raise RuntimeError in this mode" in found.help) is said


BUFFER = "from stable_baselines3 import SAC\nmodel = SAC.load('last.zip', env='Pendulum-v1')\n"
LEARN = "model.learn(1000, reset_num_timesteps=False)\n"


@pytest.mark.parametrize(
    "given", ["", "model.load_replay_buffer('b')\n", "model.replay_buffer = open('b')\n"]
)
def test_a_replay_buffer_is_loaded_where_the_program_does_not(tmp_path: Path, given: str) -> None:
    (found,) = findings(tmp_path, f"{BUFFER}{given}{LEARN}", "DET602")
    assert ("the replay buffer and the torch and NumPy RNG states" in found.message) == (not given)
    assert ("load it with `load_replay_buffer()`" in found.help) == (not given)


def test_an_algorithm_without_a_replay_buffer_is_given_none(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, f"{BUFFER}{LEARN}".replace("SAC", "PPO"), "DET602")
    assert "buffer" not in found.message + found.help


MADE = "from stable_baselines3.common.env_util import make_vec_env\nenv = make_vec_env('Pendulum-v1')\n"
ENVIRONMENTS = {
    "an algorithm trains in it": (
        "from stable_baselines3 import SAC\nSAC('MlpPolicy', env).learn(10)\n",
        "pass `seed=0` to `make_vec_env`, or to `SAC`",
    ),
    "a loaded algorithm plays in it": (
        "from stable_baselines3 import SAC\nprint(SAC.load('a.zip').predict(env.reset()))\n",
        "pass `seed=0` to `make_vec_env`",
    ),
    "a callback evaluates in it": (
        "from stable_baselines3 import SAC\nfrom stable_baselines3.common.callbacks import EvalCallback\n"
        "SAC('MlpPolicy', make_vec_env('Pendulum-v1', seed=1)).learn(10, callback=EvalCallback(env))\n",
        "pass `seed=0` to `make_vec_env`",
    ),
}


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_an_algorithm_seeds_only_the_environment_that_it_is_given(tmp_path: Path, name: str) -> None:
    text, expected = ENVIRONMENTS[name]
    (found,) = (one for one in findings(tmp_path, MADE + text, "DET111") if one.subject != "space")
    assert found.help == expected


IN_PROCESSES = (
    "import torch\nimport torch.multiprocessing as mp\n\n\nclass Net(torch.nn.Module):\n    def __init__(self):\n"
    + (
        "        super().__init__()\n        self.layer = torch.nn.Linear(2, 2)\n\n    def forward(self, x):\n"
        "        return self.layer(x)\n\n\ndef train(rank, net):\n"
    )
)
STEP = "    net(torch.zeros(1, 2)).sum().backward()\n    torch.save(net.state_dict(), 'net.pt')\n\n\n"
GUARDED = 'if __name__ == "__main__":\n'
SEEDED = "call `torch.manual_seed(seed)`"
AT_START = f"{SEEDED} at the start of train.py"
CHILD = (
    "at the start of `train()`, which runs in new processes, with a different seed in each unless all have to draw "
    "the same numbers"
)
PLACES = {
    "in the program": (
        f"{IN_PROCESSES}    torch.manual_seed(rank)\n    Net()\n{STEP}{GUARDED}    mp.spawn(train, (Net(),))\n",
        AT_START,
    ),
    "in the processes": (
        f"{IN_PROCESSES}    net = Net()\n{STEP}{GUARDED}    mp.spawn(train, (None,))\n",
        f"{SEEDED} {CHILD}",
    ),
    "in both": (
        f"{IN_PROCESSES}    net = Net()\n{STEP}{GUARDED}    mp.spawn(train, (None,))\n    print(Net()(torch.ones(2)))\n",
        f"{AT_START}, and {CHILD}",
    ),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_seed_is_set_in_the_process_that_draws(tmp_path: Path, name: str) -> None:
    text, expected = PLACES[name]
    (found,) = findings(tmp_path, text, "DET101")
    assert found.help == expected


@pytest.mark.parametrize(
    ("line", "help", "fixed"),
    [
        (
            "torch.use_deterministic_algorithms = True",
            "write `torch.use_deterministic_algorithms(True)`",
            False,
        ),
        ("torch.set_deterministic_debug_mode", 'write `set_deterministic_debug_mode("error")`', True),
        (
            "torch.backends.cudnn.deterministic(True)",
            "write `torch.backends.cudnn.deterministic = True`",
            False,
        ),
    ],
)
def test_a_switch_is_used_as_what_it_is(tmp_path: Path, line: str, help: str, fixed: bool) -> None:
    (found,) = findings(tmp_path, f"import torch\n\n{line}\nprint(torch.ones(3))\n", "DET303")
    assert (found.help, found.fix is not None) == (help, fixed)


ARRIVED = """\
import multiprocessing as mp

import torch


def act(rank, queue):
    queue.put(torch.full((4,), float(rank)))


if __name__ == "__main__":
    torch.manual_seed(0)
    queue = mp.Queue()
    for rank in range(4):
        mp.Process(target=act, args=(rank, queue)).start()
    items = []
    {loop}
        items.append(queue.{take})
    torch.save(torch.stack(items), "items.pt")
"""


@pytest.mark.parametrize(
    ("loop", "take", "fixed_number"),
    [
        ("for _ in range(4):", "get()", False),
        ("while not queue.empty():", "get()", True),
        ("for _ in range(queue.qsize()):", "get()", True),
        ("for _ in range(4):", "get_nowait()", True),
    ],
    ids=["so many", "until it is empty", "as many as there are", "at once"],
)
def test_sorting_does_not_help_where_what_has_arrived_is_taken(
    tmp_path: Path, loop: str, take: str, fixed_number: bool
) -> None:
    (found,) = findings(tmp_path, ARRIVED.format(loop=loop, take=take), "DET211")
    assert found.help is not None and ("fixed number" in found.help) is fixed_number
    assert ("sort by it" in found.help) is not fixed_number


POOLED = """\
from concurrent.futures import {pool} as Pool

import numpy as np
import torch


def work(index):
    {seed}return index + {draw}


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    with Pool(4) as pool:
        print(list(pool.map(work, range(8))))
"""


@pytest.mark.parametrize(
    ("pool", "draw", "expected"),
    [
        ("ProcessPoolExecutor", "torch.rand(1)", "seed for every item, in the function: `torch.manual_seed("),
        ("ThreadPoolExecutor", "torch.rand(1)", "its own `generator=torch.Generator().manual_seed("),
        ("ProcessPoolExecutor", "np.random.rand()", "`rng = np.random.default_rng([seed, index])`"),
    ],
)
def test_workers_draw_for_each_item_from_the_library_that_they_use(
    tmp_path: Path, pool: str, draw: str, expected: str
) -> None:
    (found,) = findings(tmp_path, POOLED.format(pool=pool, draw=draw, seed=""), "DET211")
    assert found.help is not None and expected in found.help
    assert ("which process draws" in found.message) is pool.startswith("Process")


@pytest.mark.parametrize(
    ("module", "seed", "draw", "expected"),
    [
        (
            "torch",
            "torch.manual_seed",
            "torch.rand(2)",
            "`generator=torch.Generator().manual_seed(seed + index)`",
        ),
        ("random", "random.seed", "random.random()", "`rng = random.Random(seed + index)`"),
        ("numpy", "numpy.random.seed", "numpy.random.rand()", "`rng = np.random.default_rng([seed, index])`"),
    ],
)
def test_a_thread_beside_the_program_is_given_a_generator_of_its_library(
    tmp_path: Path, module: str, seed: str, draw: str, expected: str
) -> None:
    text = (
        f"import threading\nimport {module}\n\n{seed}(0)\nthread = threading.Thread(target=lambda: print({draw}))\n"
        f"thread.start()\nprint({draw})\nthread.join()\n"
    )
    (found,) = findings(tmp_path, text, "DET211")
    assert found.help is not None and expected in found.help


def test_a_process_may_seed_for_each_item(tmp_path: Path) -> None:
    seed = "torch.manual_seed(7 + index)\n    "
    text = POOLED.format(pool="ProcessPoolExecutor", draw="torch.rand(1)", seed=seed)
    assert not findings(tmp_path, text, "DET211")


@pytest.mark.parametrize(
    ("workers", "expected"),
    [(1, "put a last item that ends the loop"), (4, "a fixed number of items of each worker")],
)
def test_a_level_of_a_queue_is_no_number_of_items(tmp_path: Path, workers: int, expected: str) -> None:
    start = "mp.Process(target=act, args=(0, queue)).start()"
    text = ARRIVED.format(loop="while not queue.empty():", take="get()").replace(
        "    for rank in range(4):\n        mp.Process(target=act, args=(rank, queue)).start()\n",
        f"    {start}\n" * workers,
    )
    model = (
        "model = torch.nn.Linear(4, 1)\n    for _ in range(3):\n        while not queue.empty():\n"
        "            model(queue.get()).sum().backward()\n"
        '    torch.save([model.state_dict(), items], "items.pt")\n'
    )
    text = text.replace('torch.save(torch.stack(items), "items.pt")\n', model)
    found = [one for one in findings(tmp_path, text, "DET211") if "queue.empty()" in one.message]
    assert found and all(one.help is not None and expected in one.help for one in found)


@pytest.mark.parametrize(
    ("target", "begins"),
    [
        ("work", "`work()`"),
        ("lambda: work()", "`work()`"),
        ("lambda: print(random.random())", "the function"),
        ("Work()", "`Work.__call__()`"),
    ],
)
def test_a_forked_process_is_seeded_in_what_it_runs(tmp_path: Path, target: str, begins: str) -> None:
    text = (
        "import random\nfrom multiprocessing import Process\n\n\ndef work():\n    print(random.random())\n\n\n"
        "class Work:\n    def __call__(self):\n        print(random.random())\n\n\n"
        f"if __name__ == '__main__':\n    random.seed(0)\n    Process(target={target}).start()\n"
    )
    (found,) = findings(tmp_path, text, "DET103")
    assert found.help is not None and f"at the start of {begins}, which runs in new processes" in found.help
    assert found.fix is None


@pytest.mark.parametrize(
    ("made", "begins"),
    [
        ("lambda: make(1)", "`make()`"),
        ("partial(make, 1)", "`make()`"),
        ("lambda: Noop(gym.make('CartPole-v1'))", "`Noop.__init__()`"),
        ("lambda: gym.wrappers.TimeLimit(Noop(gym.make('CartPole-v1')), 9)", "the function"),
    ],
)
def test_environments_in_processes_are_seeded_in_what_makes_them(
    tmp_path: Path, made: str, begins: str
) -> None:
    text = (
        "from functools import partial\n\nimport gymnasium as gym\nimport numpy as np\n\n\n"
        "class Noop(gym.Wrapper):\n    def __init__(self, env):\n        super().__init__(env)\n\n"
        "    def reset(self, **kwargs):\n        obs, info = self.env.reset(**kwargs)\n"
        "        for _ in range(np.random.randint(1, 9)):\n            obs, _, _, _, info = self.env.step(0)\n"
        "        return obs, info\n\n\n"
        "def make(number):\n    return Noop(gym.make('CartPole-v1'))\n\n\n"
        "if __name__ == '__main__':\n"
        f"    envs = gym.vector.AsyncVectorEnv([{made} for _ in range(4)])\n"
        "    print(envs.reset(seed=0))\n"
    )
    (found,) = findings(tmp_path, text, "DET102")
    assert found.help is not None and f"at the start of {begins}, which runs in new processes" in found.help


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("graph.subgraph(keep).nodes", "add the nodes to a new graph in a fixed order"),
        ("keep", "use `sorted(...)`"),
    ],
)
def test_a_fixed_order_does_not_help_a_subgraph(tmp_path: Path, use: str, expected: str) -> None:
    text = (
        "import json\n\nimport networkx as nx\n\ngraph = nx.Graph()\nfor a, b in json.load(open('edges.json')):\n"
        "    graph.add_edge(a, b)\nkeep = {str(one) for one in graph.nodes}\n"
        f"json.dump(list({use}), open('o.json', 'w'))\n"
    )
    (found,) = findings(tmp_path, text, "DET210")
    assert found.help is not None and expected in found.help


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        (
            "mp.spawn(work, nprocs=2)",
            "call `torch.manual_seed(seed)` at the start of `work()`, which runs in new processes",
        ),
        (
            "mp.Process(target=work, args=(0,)).start()",
            "at the start of `work()`, which runs in new processes",
        ),
        ("work(0)", "move the seed to the start of the program"),
    ],
)
def test_a_seed_that_a_process_draws_is_replaced_in_what_the_process_runs(
    tmp_path: Path, start: str, expected: str
) -> None:
    text = (
        "import torch\nimport torch.multiprocessing as mp\n\n\ndef work(rank):\n"
        "    seed = torch.randint(100, (1,))\n    torch.manual_seed(seed[0])\n    torch.save(torch.rand(3), 'a.pt')\n\n\n"
        f"if __name__ == '__main__':\n    {start}\n"
    )
    (found,) = findings(tmp_path, text, "DET108")
    assert found.help is not None and expected in found.help
    assert (found.fix is None) is ("new processes" in expected)


@pytest.mark.parametrize(("more", "said"), [("", True), (", reduction='none'", False)])
def test_an_op_that_may_raise_in_deterministic_mode_is_named_beside_the_remedy(
    tmp_path: Path, more: str, said: bool
) -> None:
    text = (
        "import importlib\nimport sys\n\nimport torch\nimport torch.nn.functional as F\n"
        "from torch.utils.data import DataLoader\n\ntorch.manual_seed(0)\n"
        "given = importlib.import_module(sys.argv[1])\nm = given.net().cuda()\n"
        "for x, y in DataLoader(given.data()):\n"
        f"    F.cross_entropy(m(x.cuda()), y.cuda(){more}).sum().backward()\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    notes = [step for step in found.flow if "may raise RuntimeError" in step.message]
    assert [text[step.start : step.end].partition("(")[0] for step in notes] == ["F.cross_entropy"] * said
    assert all("`F.cross_entropy`" in step.message for step in notes)


@pytest.mark.parametrize(
    ("scores", "labels", "said"),
    [
        ("m(x)", "y", True),
        ("torch.flatten(m(x), 1)", "y", False),
        ("nn.Linear(4, 2).cuda()(m(x).view(len(x), -1))", "y", False),
        ("m(x)", "y.view(-1)", False),
        ("torchvision.models.resnet18().cuda()(x)", "y", False),
        ("torchvision.models.segmentation.fcn_resnet50().cuda()(x)", "y", True),
        ("m(x).squeeze()", "y", True),
    ],
)
def test_a_loss_of_one_row_of_scores_for_each_label_does_not_raise_in_deterministic_mode(
    tmp_path: Path, scores: str, labels: str, said: bool
) -> None:
    text = (
        "import importlib\nimport sys\n\nimport torch\nimport torchvision\nfrom torch import nn\n"
        "from torch.utils.data import DataLoader\n\ntorch.manual_seed(0)\n"
        "given = importlib.import_module(sys.argv[1])\nm = given.net().cuda()\ncriterion = nn.CrossEntropyLoss()\n"
        "for x, y in DataLoader(given.data()):\n    x, y = x.cuda(), y.cuda()\n"
        f"    criterion({scores}, {labels}).backward()\n"
    )
    found = findings(tmp_path, text, "DET302")
    assert len(found) == 1
    notes = [step.message for step in found[0].flow if "may raise RuntimeError" in step.message]
    assert notes == ["`criterion` may raise RuntimeError in deterministic mode"] * said


@pytest.mark.parametrize(("device", "said"), [("cuda", True), ("cpu", False)])
def test_states_of_the_gpu_are_named_where_the_device_is_not_known(
    tmp_path: Path, device: str, said: bool
) -> None:
    (tmp_path / "d9mlint.toml").write_text(f'device = "{device}"\n')
    text = (
        "import torch\n\n\nclass Trainer:\n    def __init__(self, model, device):\n"
        "        self.model, self.device = model, device\n\n    def fit(self, loader, optimizer):\n"
        "        for epoch, x in enumerate(loader):\n"
        "            self.model(x + torch.randn(x.shape, device=self.device)).sum().backward()\n"
        "            optimizer.step()\n"
        '            state = {"model": self.model.state_dict(), "adam": optimizer.state_dict(), "epoch": epoch}\n'
        '            torch.save(state, "last.pt")\n'
    )
    (found,) = findings(tmp_path, text, "DET601")
    assert ("the torch and CUDA RNG states" in found.message) is said


@pytest.mark.parametrize(("in_dataset", "outside"), [(True, False), (False, True), (True, True)])
def test_an_iterator_whose_dataset_draws_is_not_saved(
    tmp_path: Path, in_dataset: bool, outside: bool
) -> None:
    crop = "tf.image.random_crop(x, [2])"
    text = (
        "import tensorflow as tf\n\nmodel = tf.keras.Sequential([tf.keras.layers.Dense(1)])\n"
        "optimizer = tf.keras.optimizers.Adam()\nstep = tf.Variable(0)\ntf.keras.utils.set_random_seed(0)\n"
        "data = tf.data.Dataset.from_tensor_slices(tf.zeros((9, 3))).shuffle(9)\n"
        f"data = data.map(lambda x: {crop if in_dataset else 'x[:2]'})\n"
        "saved = tf.train.Checkpoint(model=model, optimizer=optimizer, step=step)\n"
        'saved.restore(tf.train.latest_checkpoint("states"))\nfor epoch in range(int(step), 9):\n'
        "    for x in data.batch(3):\n        with tf.GradientTape() as tape:\n"
        f"            loss = tf.reduce_sum(model(x{' + tf.random.normal([3, 2])' if outside else ''}))\n"
        "        weights = model.trainable_variables\n"
        "        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))\n"
        '    step.assign_add(1)\n    saved.save("states/last")\n'
    )
    (found,) = findings(tmp_path, text, "DET601")
    assert found.help is not None and "iterate the dataset through an iterator" in found.help
    assert ("draw from a `tf.random.Generator`" in found.help) is outside
    assert ("`stateless_random_*` ops" in found.help) is in_dataset


@pytest.mark.parametrize(
    ("rounds", "expected"),
    [("while True", "give each worker its own queue"), ("for _ in range(25)", "put the number of the item")],
)
def test_a_stream_without_an_end_is_not_to_be_sorted(tmp_path: Path, rounds: str, expected: str) -> None:
    text = (
        "from multiprocessing import Process, Queue\n\nimport numpy as np\n\n\ndef work(queue, seed):\n"
        f"    rng = np.random.default_rng(seed)\n    {rounds}:\n        queue.put(rng.random(4))\n\n\n"
        "if __name__ == '__main__':\n    queue = Queue(10)\n    for seed in range(4):\n"
        "        Process(target=work, args=(queue, seed), daemon=True).start()\n    total = 0.0\n"
        "    for step in range(100):\n        total = total * 0.5 + queue.get().sum()\n    print(total)\n"
    )
    (found,) = findings(tmp_path, text, "DET211")
    assert found.help.startswith(expected)


def test_a_number_that_the_launcher_gives_is_named_as_the_option(tmp_path: Path) -> None:
    (tmp_path / "d9mlint.toml").write_text('extend-select = ["DET804"]\n')
    text = (
        "import argparse\n\nimport torch\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--local_rank', type=int, default=0)\n"
        "args = parser.parse_args()\ntorch.manual_seed(args.local_rank)\nprint(torch.randn(3))\n"
    )
    (found,) = findings(tmp_path, text, "DET804")
    assert "`--local_rank`" in found.message


@pytest.mark.parametrize(
    ("backend", "said"), [("torch", False), ("jax", False), ("tensorflow", True), ("", True)]
)
def test_the_release_of_tensorflow_is_no_ground_where_keras_runs_on_another_backend(
    tmp_path: Path, backend: str, said: bool
) -> None:
    (tmp_path / "requirements.txt").write_text("tensorflow==2.21.0\nkeras==3.15.1\n")
    chosen = f'import os\n\nos.environ["KERAS_BACKEND"] = "{backend}"\n' if backend else ""
    text = (
        f"{chosen}import keras\nimport numpy as np\n\nmodel = keras.Sequential([keras.layers.Dense(4)])\n"
        'model.compile("adam", "mse")\nmodel.fit(np.ones((8, 8)), np.ones((8, 4)))\nmodel.save("model.keras")\n'
    )
    (found,) = findings(tmp_path, text, "DET104")
    assert bool(found.targets) is said


@pytest.mark.parametrize(
    ("workers", "code", "expected"),
    [
        ("0", "DET103", "call `random.seed(seed)` at"),
        ("2", "DET101", "call `torch.manual_seed(seed)` at"),
        ("int(sys.argv[1])", "DET103", "call `random.seed(seed)` and `torch.manual_seed(seed)` at"),
    ],
)
def test_what_seeds_the_workers_of_a_loader_is_named_where_it_may_have_some(
    tmp_path: Path, workers: str, code: str, expected: str
) -> None:
    text = (
        "import random\nimport sys\n\nfrom torch.utils.data import DataLoader\n\n\ndef pick(items):\n"
        "    return random.choice(items)\n\n\nif __name__ == '__main__':\n"
        f"    print(list(DataLoader(range(16), batch_size=4, num_workers={workers}, collate_fn=pick)))\n"
    )
    (found,) = findings(tmp_path, text, code)
    assert found.help.startswith(expected)


@pytest.mark.parametrize(
    ("written", "offered"),
    [
        ("set(names) - {'a'}", False),
        ("set(names) & {'a', 'b'}", False),
        ("set(names) | {'a'}", True),
        ("set(names)", True),
        ("set(names).difference(['a'])", False),
        ("set(names).union(['a'])", True),
        ("set().union(names)", True),
        ("every | {'a'}", False),
        ("every.union(['a'])", False),
        ("rest", False),
        ("every", True),
    ],
)
def test_a_dictionary_is_not_offered_for_a_difference_or_a_union_of_named_sets(
    tmp_path: Path, written: str, offered: bool
) -> None:
    text = "import numpy as np\nnp.random.seed(0)\nnames = ['b', 'a', 'c']\n"
    text += f"rest = set(names) - {{'a'}}\nevery = set(names)\nprint(np.random.choice(list({written})))\n"
    (found,) = findings(tmp_path, text, "DET210")
    assert "sorted(...)" in found.help
    assert ("dict.fromkeys" in found.help) is offered


@pytest.mark.parametrize(
    ("written", "offered"),
    [
        ("for row in rows:\n    every.update(row)\n", False),
        ("for row in rows:\n    every |= row\n", False),
        ("for row in read():\n    every.update(row)\n", False),
        ("for line in lines:\n    every.update(line.split())\n", True),
        ("for line in lines:\n    every.update(set(line.split()))\n", True),
        ("for line in lines:\n    every |= {word for word in line.split()}\n", True),
        ("every = set().union(*rows)\n", False),
        ("every = set(chain(*rows))\n", False),
        ("every = {word for row in rows for word in row}\n", False),
        ("every = set(chain(*lists))\n", True),
        ("every = {word for part in lists for word in part}\n", True),
        ("every = filled(rows)\n", False),
    ],
)
def test_a_dictionary_is_not_offered_for_a_set_that_is_filled_from_sets(
    tmp_path: Path, written: str, offered: bool
) -> None:
    text = (
        "from itertools import chain\n\nfrom reader import read\n\n\ndef filled(parts):\n    found = set()\n"
    )
    text += "    for part in parts:\n        found.update(part)\n    return found\n\n\nlines = list(open('a.txt'))\n"
    text += "lists = [line.split() for line in lines]\nrows = [set(line.split()) for line in lines]\nevery = set()\n"
    (found,) = findings(tmp_path, f"{text}{written}open('b.txt', 'w').write(' '.join(every))\n", "DET210")
    assert "sorted(...)" in found.help
    assert ("dict.fromkeys" in found.help) is offered


@pytest.mark.parametrize(
    ("release", "made", "code", "given"),
    [
        (release, made, code, release != "1.5.0")
        for release in ("1.5.0", "1.6.0")
        for made, code in (
            ("DataLoader(range(16), shuffle=True)", "DET202"),
            ("DataLoader(range(16), sampler=SubsetRandomSampler(range(16)))", "DET202"),
            ("random_split(range(16), [8, 8])", "DET109"),
        )
    ],
)
def test_a_generator_is_passed_from_the_release_on_in_which_it_is_taken(
    tmp_path: Path, release: str, made: str, code: str, given: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch=={release}\n")
    text = (
        "from torch.utils.data import DataLoader, SubsetRandomSampler, random_split\n\n"
        f"if __name__ == '__main__':\n    print(list({made}))\n"
    )
    (found,) = findings(tmp_path, text, code)
    assert ("generator=" in found.help) is given
    assert ("torch.manual_seed(0)" in found.help) is not given
    assert (found.fix is not None) is given


def test_a_pipeline_is_not_said_to_take_a_generator(tmp_path: Path) -> None:
    text = "from transformers import pipeline\nwrite = pipeline('summarization')\nprint(write('x', do_sample=True))\n"
    (found,) = findings(tmp_path, text, "DET701")
    assert found.help == "call `torch.manual_seed(seed)` first"


def test_what_shuffles_without_a_seed_of_its_own_is_not_given_one(tmp_path: Path) -> None:
    text = (
        "import random\nfrom datasets import load_dataset\nrandom.seed(0)\ndata = load_dataset('x')['train']\n"
        "for batch in data.to_tf_dataset(shuffle=True):\n    print(batch)\n"
    )
    (found,) = findings(tmp_path, text, "DET207")
    assert found.message.startswith("`to_tf_dataset` without a global TensorFlow seed")
    assert found.help == "call `tf.random.set_seed(0)` first"
    assert found.fix is not None and "set_random_seed(0)" in str(found.fix.edits)


@pytest.mark.parametrize("release", ["1.4.0", "1.6.0"])
def test_the_mode_of_a_later_torch_is_offered_with_the_variable_that_it_needs(
    tmp_path: Path, release: str
) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch=={release}\n", encoding="utf-8")
    text = (
        "import os\n\n{first}import torch\nfrom torch import nn\n\n{then}if __name__ == '__main__':\n"
        "    torch.manual_seed(0)\n    nn.Linear(2, 2).cuda()(torch.ones(1, 2).cuda()).sum().backward()\n"
    )
    variable = 'os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"'
    call = "call `torch.use_deterministic_algorithms(True)` before the model is built"
    (found,) = findings(tmp_path, text.format(first="", then=""), "DET302")
    assert found.help.endswith(
        f"; with torch 1.8 or later, set {variable} before torch is imported and {call}"
    )
    (found,) = findings(tmp_path, text.format(first=f"{variable}\n", then=""), "DET302")
    assert found.help.endswith(f"; with torch 1.8 or later, {call}")
    (found,) = findings(
        tmp_path, text.format(first="", then="torch.backends.cudnn.deterministic = True\n"), "DET302"
    )
    assert found.help.startswith(f"with torch 1.8 or later, set {variable}")
    # What the help says leaves nothing to report with the later release.
    (tmp_path / "requirements.txt").write_text("torch==2.4.0\n", encoding="utf-8")
    followed = text.format(first=f"{variable}\n", then="torch.use_deterministic_algorithms(True)\n")
    assert not findings(tmp_path, followed, "DET305") and not findings(tmp_path, followed, "DET302")


PIXELS = (
    "import sys\n\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n\n"
    "if __name__ == '__main__':\n    torch.manual_seed(0)\n    net = nn.Conv2d(3, 2, 3).cuda()\n"
    "    y, w = torch.ones(2, 6, 6).long().cuda(), torch.tensor([1.0, 9.0]).cuda()\n    options = dict([sys.argv[1:]])\n"
    "    loss = {made}\n    {more}\n    loss(net(torch.ones(2, 3, 8, 8).cuda()), y).backward()\n"
)


@pytest.mark.parametrize(
    ("made", "more", "reduced"),
    [
        ("nn.CrossEntropyLoss()", "", "mean"),
        ("nn.NLLLoss(weight=None)", "", "mean"),
        ("nn.CrossEntropyLoss(ignore_index=-100, label_smoothing=0.1)", "", "mean"),
        ("nn.CrossEntropyLoss(weight=w)", "", ""),
        ("nn.CrossEntropyLoss(w)", "", ""),
        ("nn.CrossEntropyLoss()", "loss.weight = w", ""),
        ("nn.CrossEntropyLoss(ignore_index=255)", "", ""),
        ("nn.CrossEntropyLoss(weight=w if len(sys.argv) > 3 else None)", "", ""),
        ("nn.CrossEntropyLoss(**options)", "", ""),
        ("nn.CrossEntropyLoss(reduction='sum', weight=w)", "", "sum"),
        ("nn.CrossEntropyLoss(reduction=sys.argv[1])", "", ""),
        ("nn.CrossEntropyLoss(size_average=False)", "", ""),
        ("lambda x, y: F.cross_entropy(x, y)", "", "mean"),
        ("lambda x, y: F.cross_entropy(x, y, w)", "", ""),
        ("lambda x, y: F.nll_loss(x, y, reduction='sum')", "", "sum"),
    ],
)
def test_the_mean_of_all_losses_is_offered_only_where_it_is_that_of_the_reduction(
    tmp_path: Path, made: str, more: str, reduced: str
) -> None:
    (found,) = findings(tmp_path, PIXELS.format(made=made, more=more), "DET401")
    offered = f", or pass reduction='none' and take {reduced}()" if reduced else ""
    assert found.help == f"Flatten to 2-D first (permute the class axis last, reshape(-1, C)){offered}."


def test_the_mean_of_all_losses_is_not_offered_where_one_of_several_losses_is_weighted(
    tmp_path: Path,
) -> None:
    several = "    for loss in (nn.CrossEntropyLoss(), nn.CrossEntropyLoss(weight=w)):\n        loss"
    text = PIXELS.replace("    loss(", several + "(").format(made="None", more="")
    (found,) = findings(tmp_path, text, "DET401")
    assert "reduction='none'" not in found.help


def test_an_op_whose_result_nothing_reads_is_named_where_the_mode_is_the_remedy(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch import nn\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
        "    net, loss_of = nn.Conv2d(3, 2, 3).cuda(), nn.CrossEntropyLoss()\n"
        "    net(torch.ones(2, 3, 8, 8).cuda()).sum().backward()\n"
        "    loss = loss_of(net(torch.ones(2, 3, 8, 8).cuda()), torch.ones(2, 6, 6).long().cuda())\n"
    )
    assert not findings(tmp_path, text, "DET401")
    (found,) = findings(tmp_path, text, "DET302")
    assert "(in deterministic mode `loss_of` raises RuntimeError without it)" in found.help
    assert "warn_only=True" in found.help
    assert len(findings(tmp_path, f"{text}    print(loss)\n", "DET401")) == 1


def test_the_mode_of_a_later_torch_only_warns_of_what_raises_there(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Net(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.conv = nn.Conv2d(3, 4, 3, padding=1)\n"
        "        self.pool = nn.MaxPool2d(2, return_indices=True)\n        self.unpool = nn.MaxUnpool2d(2)\n\n"
        "    def forward(self, x):\n        y, i = self.pool(self.conv(x))\n        return self.unpool(y, i)\n\n\n"
        "torch.manual_seed(0)\nnet = Net().cuda()\nnet(torch.ones(2, 3, 8, 8).cuda()).sum().backward()\n"
        "torch.save(net.state_dict(), 'net.pt')\n"
    )
    (tmp_path / "requirements.txt").write_text("torch==1.4.0\n", encoding="utf-8")
    (found,) = findings(tmp_path, text, "DET302")
    assert "with torch 1.11 or later" in found.help
    assert "`torch.use_deterministic_algorithms(True, warn_only=True)`" in found.help
    # A release with the mode in which the op does not raise.
    (tmp_path / "requirements.txt").write_text("torch==1.10.0\n", encoding="utf-8")
    (found,) = findings(tmp_path, text, "DET302")
    assert "warn_only" not in found.help


def test_a_seed_goes_in_front_of_the_handlers_of_a_server(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom fastapi import FastAPI\n\napp = FastAPI()\n\n\n@app.get('/noise')\ndef noise():\n"
        "    return torch.randn(3).tolist()\n"
    )
    (found,) = findings(tmp_path, text, "DET101")
    assert found.fix is not None
    assert all(edit.start < text.index("app = FastAPI()") for edit in found.fix.edits)


def test_what_replaces_a_pooling_layer_of_volumes_does_not_raise_itself(tmp_path: Path) -> None:
    """`MaxPool3d` has a deterministic gradient since release 2.13, and only with `return_indices=True`."""
    text = (
        "import torch\ntorch.use_deterministic_algorithms(True)\n"
        "pool = torch.nn.FractionalMaxPool3d(2, output_size=1).cuda()\n"
        'pool(torch.ones(1, 3, 8, 8, 8, device="cuda", requires_grad=True)).sum().backward()\n'
    )
    (found,) = findings(tmp_path, text, "DET402")
    assert "MaxPool3d(return_indices=True) with torch >= 2.13" in found.help


@pytest.mark.parametrize(
    ("imported", "made", "call"),
    [
        (
            "from detectron2.config import get_cfg\nfrom detectron2.engine import DefaultTrainer",
            "DefaultTrainer(get_cfg())",
            "detectron2.utils.env.seed_all_rng({})",
        ),
        (
            "import pytorch_lightning as pl\nfrom torch import nn",
            "print(nn.Linear(2, 2).weight)",
            "seed_everything({}, workers=True)",
        ),
        ("from torch import nn", "print(nn.Linear(2, 2).weight)", "torch.manual_seed({})"),
    ],
)
def test_a_framework_is_seeded_by_its_own_function(
    tmp_path: Path, imported: str, made: str, call: str
) -> None:
    (found,) = findings(tmp_path, f"{imported}\n\n{made}\n", "DET101")
    assert found.help == f"call `{call.format('seed')}` at the start of train.py"
    option = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--seed', type=int, default=1)\n"
    text = f"{imported}\n{option}args = p.parse_args()\n{made}\n"
    (found,) = findings(tmp_path, text, "DET101")
    assert found.help == f"call `{call.format('args.seed')}` after the options are parsed"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "from detectron2.config import get_cfg\nfrom detectron2.engine import default_setup\n"
            "default_setup(get_cfg(), None)\n",
            "give `SEED` of `cfg` a fixed number",
        ),
        (
            "from mmengine.runner import Runner\nRunner(model=dict(type='A'), work_dir='w').train()\n",
            "give `seed` of `randomness` a fixed number",
        ),
        ("from mmengine.runner import set_random_seed\nset_random_seed(None)\n", "pass a fixed number"),
    ],
)
def test_a_seed_that_a_configuration_holds_is_set_there(tmp_path: Path, text: str, expected: str) -> None:
    (found,) = findings(tmp_path, text, "DET107")
    assert found.help == expected


@pytest.mark.parametrize(("release", "raises"), [("1.6.0", False), ("1.9.1", True)])
def test_an_op_of_another_library_raises_only_where_there_is_a_mode(
    tmp_path: Path, release: str, raises: bool
) -> None:
    (tmp_path / "requirements.txt").write_text(f"torch=={release}\n")
    text = (
        "import torch\nfrom torch_scatter import scatter\n\ntorch.manual_seed(0)\nnet = torch.nn.Linear(2, 2).cuda()\n"
        "for x, index in torch.load('data.pt'):\n    y = scatter(net(x.cuda()), index.cuda(), dim=0, reduce='add')\n"
        "    y.pow(2).sum().backward()\nprint(net.weight.grad)\n"
    )
    (found,) = findings(tmp_path, text, "DET407")
    assert "no deterministic implementation" in found.message
    assert ("raises RuntimeError in deterministic mode" in found.message) is raises


@pytest.mark.parametrize(
    ("size", "modes"),
    [("*size", ["linear", "bilinear", "trilinear"]), ("1, 1, 8, 8", ["bilinear"]), ("1, 1, 8", ["linear"])],
)
def test_the_remedy_is_said_for_each_mode_that_may_be_meant(
    tmp_path: Path, size: str, modes: list[str]
) -> None:
    text = (
        "import json\nimport torch\nimport torch.nn.functional as F\n\n"
        "class Resize(torch.nn.Module):\n    def __init__(self, n):\n        super().__init__()\n"
        "        self.mode = 'linear'\n        if n == 2:\n            self.mode = 'bi' + self.mode\n"
        "        elif n == 3:\n            self.mode = 'tri' + self.mode\n\n"
        "    def forward(self, x):\n        return F.interpolate(x, scale_factor=0.75, mode=self.mode)\n\n"
        "size = json.load(open('config.json'))['size']\nresize = Resize(len(size))\n"
        f"x = torch.ones({size}).cuda().requires_grad_()\nresize(x).sum().backward()\nprint(x.grad)\n"
    )
    found = findings(tmp_path, text, "DET401")
    assert [f'with "{one}"' in found[0].help for one in ("linear", "bilinear", "trilinear")] == [
        one in modes and len(modes) > 1 for one in ("linear", "bilinear", "trilinear")
    ]
    assert ("no deterministic implementation" in found[0].message) == (modes == ["linear"])


@pytest.mark.parametrize(
    ("readme", "older"),
    [
        ("PyTorch 1.5.0 to 1.10.2", True),
        ("PyTorch 1.8 to 1.10.2", False),
        ("PyTorch 1.5+", True),
        ("PyTorch 2.1+", False),
    ],
)
def test_the_remedy_is_for_the_first_release_of_a_range_too(tmp_path: Path, readme: str, older: bool) -> None:
    (tmp_path / "README.md").write_text(f"# Net\n\n## Requirements\n\n- {readme}\n", encoding="utf-8")
    text = (
        "import torch\n\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(2, 2).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "model(torch.ones(3, 2).cuda()).sum().backward()\noptimizer.step()\ntorch.save(model.state_dict(), 'x.pt')\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    assert ("with torch 1.8 or later" in found.help) == older
    assert ("torch.backends.cudnn.deterministic" in found.help) == older


STEPS = """
import os

import torch
from torch.utils.data import DataLoader, TensorDataset


def endless(loader):
    while True:
        for batch in loader:
            yield batch


torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
batches = endless(DataLoader(TensorDataset(torch.ones(100, 4)), batch_size=4, shuffle=True))
start = 0
if os.path.exists("last.pt"):
    saved = torch.load("last.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    torch.set_rng_state(saved["rng"])
    start = saved["step"]
for step in range(start, 1000):
    (x,) = next(batches)
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
    if step % 100 == 0:
        states = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "rng": torch.get_rng_state()}
        torch.save({**states, "step": NUMBER}, "last.pt")
"""


@pytest.mark.parametrize(("number", "repeated"), [("step", True), ("step + 1", False)])
def test_the_number_of_a_step_and_the_position_in_the_data_are_two_causes(
    tmp_path: Path, number: str, repeated: bool
) -> None:
    found = findings(tmp_path, STEPS.replace("NUMBER", number), "DET603")
    helps = ["save the number of the next step", "save the position"][0 if repeated else 1 :]
    assert sorted(one.help.startswith(tuple(helps)) for one in found) == [True] * len(helps)
    assert len({one.help for one in found}) == len(helps)


@pytest.mark.parametrize(
    "call",
    [
        "lightgbm.LGBMClassifier(device='gpu')",
        "lightgbm.train({'device': 'cuda'}, data)",
        "catboost.CatBoostClassifier(task_type='GPU')",
    ],
)
def test_what_varies_of_trees_is_no_gradient(tmp_path: Path, call: str) -> None:
    text = f"import catboost\nimport lightgbm\n\n\ndef fit(data):\n    return {call}\n\n\nfit(load()).save('trees')\n"
    (found,) = findings(tmp_path, text, "DET407")
    assert "its result may differ between runs" in found.message


WITHIN = """
import os
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters())
first = 0
if SAVED:
    saved = torch.load("last.pt")
    model.load_state_dict(saved["model"])
    optimizer.load_state_dict(saved["optimizer"])
    first = FIRST
for epoch in range(first, 10):
    for (x,) in DataLoader(TensorDataset(torch.ones(100, 4)), batch_size=4):
        optimizer.zero_grad()
        model(x).sum().backward()
        optimizer.step()
        states = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**states, "epoch": NUMBER}, "last.pt")
"""


@pytest.mark.parametrize("saved", ["os.path.exists('last.pt')", "len(sys.argv) > 1", "True"])
@pytest.mark.parametrize(
    ("first", "number", "passed"),
    [
        ("saved['epoch']", "epoch", False),
        ("saved['epoch'] + 1", "epoch", True),
        ("1 + saved['epoch']", "epoch", True),
        ("saved['epoch']", "epoch + 1", True),
        ("saved['epoch'] + 1", "epoch + 1", True),
    ],
)
def test_what_a_run_does_that_is_resumed_within_an_epoch(
    tmp_path: Path, saved: str, first: str, number: str, passed: bool
) -> None:
    text = WITHIN.replace("SAVED", saved).replace("FIRST", first).replace("NUMBER", number)
    found = [one for one in findings(tmp_path, text, "DET603") if "position" in one.message]
    ends = "leaves out the rest of the epoch" if passed else "repeats the batches of the epoch"
    assert [one.message.endswith(ends) for one in found] == [True]


def test_a_model_that_is_given_from_outside_is_named_as_it_is_called(tmp_path: Path) -> None:
    text = (
        "import lightning as L\nfrom lightning.pytorch.cli import LightningCLI\nfrom torch import nn\n\n\n"
        "class M(L.LightningModule):\n    def __init__(self, model: nn.Module):\n        super().__init__()\n"
        "        self.model = model\n\n    def training_step(self, batch, i):\n        return self.model(batch).sum()\n\n\n"
        "LightningCLI(M, seed_everything_default=1)\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    assert [one.message for one in found.flow if one.beside] == ["the ops of `self.model` are not known"]


@pytest.mark.parametrize(
    ("made", "computed", "named"),
    [
        ("torch.nn.Linear(3, 3)", "somelib.loss(model(x), table)", "somelib.loss"),
        ("Net(3)", "model(x).sum()", "the result of `otherlib.Net"),
        ("torch.nn.Linear(3, 3)", "model(x).sum()", "somelib.table"),
    ],
)
def test_unknown_ops_are_named_where_a_gradient_is_taken_before_others(
    tmp_path: Path, made: str, computed: str, named: str
) -> None:
    text = (
        "import somelib\nimport torch\nfrom otherlib import Net\n\ntorch.manual_seed(0)\nsomelib.configure(1)\n"
        f"table = somelib.table(3).rows()\nmodel = {made}.cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), 0.1)\nx = torch.ones(1, 3).cuda()\n"
        f"for _ in range(10):\n    loss = {computed}\n    loss.backward()\n    optimizer.step()\n"
    )
    (found,) = findings(tmp_path, text, "DET302")
    (note,) = [one.message for one in found.flow if one.beside]
    assert named in note and note.endswith("are not known")


@pytest.mark.parametrize(
    ("layer", "begins"),
    [
        (
            "UpSampling2D(2)",
            "first fix `UpSampling2D` (DET403), which raises UnimplementedError with op determinism; then call "
            "`tf.config.experimental.enable_op_determinism()`",
        ),
        (
            "UpSampling2D(2, interpolation='bilinear')",
            "call `tf.config.experimental.enable_op_determinism()`",
        ),
    ],
)
def test_op_determinism_comes_after_what_raises_with_it(tmp_path: Path, layer: str, begins: str) -> None:
    (tmp_path / "requirements.txt").write_text("tensorflow==2.11.1\n", encoding="utf-8")
    text = (
        "import tensorflow as tf\nfrom tensorflow.keras.layers import Conv2D, UpSampling2D\n\n"
        "tf.keras.utils.set_random_seed(0)\n"
        f"model = tf.keras.Sequential([Conv2D(3, 3, input_shape=(8, 8, 3)), {layer}])\n"
        "model.compile('sgd', 'mse')\nmodel.fit(tf.ones((4, 8, 8, 3)), tf.ones((4, 12, 12, 3)))\n"
    )
    (found,) = findings(tmp_path, text, "DET306")
    assert found.help.startswith(begins)


def test_no_line_is_to_be_removed_that_sets_the_default(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, "import torch\n\ntorch.backends.cudnn.deterministic = False\n", "DET303")
    assert found.help == "set it to `True`"


@pytest.mark.parametrize(
    ("default", "first", "said", "help"),
    [
        (
            "None",
            "",
            "by default (`--seed` is None) and without a NumPy seed: the result differs between runs",
            "give `--seed` a fixed default, or call `numpy.random.seed(seed)` first",
        ),
        (
            "None",
            "if args.seed is not None:\n    numpy.random.seed(args.seed)\n",
            "and without a NumPy seed, unless `--seed` is given: the result differs between runs",
            "give `--seed` a fixed default",
        ),
        ("None", "numpy.random.seed(0)\n", "", ""),
        ("0", "", "", ""),
    ],
)
@pytest.mark.parametrize("seed", ["args.seed", "seed"])
def test_an_option_that_is_the_seed_of_a_split_gets_a_default(
    tmp_path: Path, default: str, first: str, said: str, help: str, seed: str
) -> None:
    text = (
        "import argparse\n\nimport numpy\nfrom sklearn.model_selection import train_test_split\n\n"
        f"parser = argparse.ArgumentParser()\nparser.add_argument('--seed', type=int, default={default})\n"
        f"args = parser.parse_args()\n{first}seed: int = args.seed\n"
        f"print(train_test_split(numpy.arange(10), random_state={seed}))\n"
    )
    found = findings(tmp_path, text, "DET109")
    expected = [(f"`train_test_split` without `random_state=` {said}", help, "warning")] if said else []
    assert [(one.message, one.help, one.severity.value) for one in found] == expected
    assert all(one.fix is None for one in found)
