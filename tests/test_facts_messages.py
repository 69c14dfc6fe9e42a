"""What findings say where a fact decides the words."""

from __future__ import annotations

from pathlib import Path

import pytest
from support import lint


def messages(directory: Path, code: str, text: str, **settings: str) -> list[str]:
    (directory / "train.py").write_text(text)
    (directory / "pyproject.toml").write_text("")
    result = lint(directory, {"device": "cuda", **settings})
    return [item.finding.message for item in result.items if item.finding.code == code]


def test_with_warn_only_a_matrix_product_warns_and_does_not_raise(tmp_path: Path) -> None:
    text = (
        "import torch\n\nif __name__ == '__main__':\n    torch.use_deterministic_algorithms(True{})\n"
        "    print(torch.ones(2, 2, device='cuda') @ torch.ones(2, 2, device='cuda'))\n"
    )
    given = {"torch-version": "2.8"}
    (strict,) = messages(tmp_path, "DET305", text.format(""), **given)
    (lenient,) = messages(tmp_path, "DET305", text.format(", warn_only=True"), **given)
    assert "raise RuntimeError" in strict
    assert "RuntimeError" not in lenient
    assert "only warn" in lenient


def test_a_library_of_unknown_version_is_named_without_one(tmp_path: Path) -> None:
    text = (
        "import torch\nimport xformers.ops\n\nif __name__ == '__main__':\n"
        "    x = torch.ones(1, 2, 3, 4, device='cuda', requires_grad=True)\n"
        "    xformers.ops.memory_efficient_attention(x, x, x).sum().backward()\n"
    )
    (said,) = messages(tmp_path, "DET407", text)
    assert said.endswith("(xformers)")
    assert [
        one.finding.targets
        for one in lint(tmp_path, {"device": "cuda"}).items
        if one.finding.code == "DET407"
    ] == [()]


def test_the_library_whose_release_decides_is_named(tmp_path: Path) -> None:
    text = (
        "import segmentation_models_pytorch as smp\nimport torch\n\nif __name__ == '__main__':\n"
        "    model = smp.FPN('resnet34').cuda()\n    model(torch.ones(1, 3, 64, 64, device='cuda')).sum().backward()\n"
    )
    (said,) = messages(tmp_path, "DET407", text, **{"torch-version": "2.4"})
    assert said.endswith("(torch 2.4)")


def test_an_op_names_the_device_that_the_program_uses(tmp_path: Path) -> None:
    text = (
        "import torch\n\nif __name__ == '__main__':\n    torch.use_deterministic_algorithms(True)\n"
        "    print(torch.kthvalue(torch.ones(3, device='mps'), 1))\n"
    )
    (said,) = messages(tmp_path, "DET402", text, **{"torch-version": "2.13"})
    assert "on MPS" in said


def test_an_error_that_a_variable_takes_back_is_not_raised(tmp_path: Path) -> None:
    text = (
        "import os\n\nos.environ['TF_DETERMINISTIC_OPS'] = '1'\n{}\nimport tensorflow as tf\n\n"
        "print(tf.math.unsorted_segment_sum(tf.random.uniform([4, 3]), tf.constant([0, 0, 1, 1]), 2))\n"
    )
    variable = "os.environ['TF_DISABLE_SEGMENT_REDUCTION_OP_DETERMINISM_EXCEPTIONS'] = '1'\n"
    given = {"tensorflow-version": "2.6"}
    (strict,) = messages(tmp_path, "DET403", text.format(""), **given)
    (lenient,) = messages(tmp_path, "DET403", text.format(variable), **given)
    assert "raises UnimplementedError" in strict
    assert "may differ between runs even in deterministic mode" in lenient
    assert "raises" not in lenient


def test_deterministic_mode_names_the_only_op_that_needs_it(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch import nn\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
        "    model = nn.Sequential(nn.Embedding(9, 8), {}).cuda()\n"
        "    model(torch.ones(8, 2, dtype=torch.long, device='cuda')).mean().backward()\n"
    )
    given = {"torch-version": "2.12"}
    (alone,) = messages(tmp_path, "DET302", text.format("nn.Linear(8, 2)"), **given)
    (beside,) = messages(tmp_path, "DET302", text.format("nn.Conv1d(2, 2, 3)"), **given)
    assert "only `torch.nn.Embedding` may differ between runs (torch 2.12" in alone
    assert "Embedding" not in beside


def test_deterministic_mode_names_the_first_call_for_which_it_matters(tmp_path: Path) -> None:
    text = (
        "import somewhere\nimport torch\nfrom torch import nn\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
        "    model = nn.Sequential({}).cuda()\n    model(torch.ones(8, 2, 4, device='cuda')).mean().backward()\n"
    )
    for layer, said in (
        ("nn.Conv1d(2, 2, 3)", "`torch.nn.Conv1d` may differ between runs without the mode"),
        ("somewhere.Layer()", "the ops of `somewhere.Layer` are not known"),
        (
            "somewhere.Layer(), nn.Conv1d(2, 2, 3)",
            "`torch.nn.Conv1d` may differ between runs without the mode",
        ),
    ):
        (tmp_path / "train.py").write_text(text.format(layer))
        found = lint(tmp_path, {"device": "cuda", "torch-version": "2.12"}).items
        (mode,) = [one.finding for one in found if one.finding.code == "DET302"]
        assert [step.message for step in mode.flow] == [said]


@pytest.mark.parametrize("moved", ["", ".cuda()", ".train().to('cuda')"])
def test_a_model_of_unknown_ops_is_named_by_what_has_made_it(tmp_path: Path, moved: str) -> None:
    text = (
        "import torch\nfrom transformers import AutoModel\n\ntorch.manual_seed(0)\n"
        f"model = AutoModel.from_pretrained('x'){moved}\noptimizer = torch.optim.SGD(model.parameters(), 0.1)\n"
        "for i in range(3):\n    model(torch.ones(1, 3, device='cuda')).loss.backward()\n    optimizer.step()\n"
    )
    (tmp_path / "train.py").write_text(text)
    found = lint(tmp_path, {"device": "cuda"}).items
    (mode,) = [one.finding for one in found if one.finding.code == "DET302"]
    said = "the ops of `transformers.AutoModel.from_pretrained` are not known"
    assert [step.message for step in mode.flow if step.beside] == [said]


def test_a_line_that_cannot_be_parsed_may_run_any_op(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\n!pip install somewhere\n\ntorch.manual_seed(0)\nmodel = torch.nn.Linear(2, 2).cuda()\n"
        "model(torch.ones(8, 2, device='cuda')).mean().backward()\ntorch.save(model, 'model.pt')\n"
    )
    found = lint(tmp_path, {"device": "cuda", "torch-version": "2.12"}).items
    (mode,) = [one.finding for one in found if one.finding.code == "DET302"]
    assert [step.message for step in mode.flow] == ["the ops of a line that cannot be parsed are not known"]


def test_what_raises_in_the_mode_of_newer_releases_is_fixed_first(tmp_path: Path) -> None:
    text = (
        "import torch\nfrom torch import nn\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
        "    p = nn.Linear(8, 29).cuda()(torch.ones(400, 4, 8).cuda()).log_softmax(2)\n"
        "    y, sizes = torch.ones(4, 20).long().cuda(), torch.full((4,), 400).long()\n"
        "    nn.CTCLoss()(p, y, sizes, torch.full((4,), 20).long()).backward()\n"
    )
    (tmp_path / "train.py").write_text(text)
    for release in ("1.6", "2.0"):
        found = lint(tmp_path, {"device": "cuda", "torch-version": release}).items
        (mode,) = [one.finding for one in found if one.finding.code == "DET302"]
        assert mode.raising == ("`nn.CTCLoss` (DET404)",)


def test_trees_are_trained_on_a_gpu_that_need_not_be_of_cuda(tmp_path: Path) -> None:
    text = (
        "import lightgbm as lgb\n\n\ndef fit(x, y):\n    parameters = {'device': 'gpu', 'seed': 1}\n"
        "    lgb.train(parameters, lgb.Dataset(x, y)).save_model('m.txt')\n"
    )
    (said,) = messages(tmp_path, "DET407", text)
    assert said.startswith("`lgb.train` on a GPU:")


def test_a_program_without_an_optimizer_computes_gradients(tmp_path: Path) -> None:
    text = (
        "import torch\n\ntorch.manual_seed(0)\nnet = torch.nn.Conv2d(3, 4, 3).cuda()\n"
        "optimizer = torch.optim.SGD(net.parameters(), 0.1)\nnet(torch.ones(4, 3, 8, 8).cuda()).sum().backward()\n"
        "{}torch.save([one.grad for one in net.parameters()], 'x.pt')\n"
    )
    (alone,) = messages(tmp_path, "DET302", text.format(""))
    (stepped,) = messages(tmp_path, "DET302", text.format("optimizer.step()\n"))
    assert alone.startswith("`train.py` computes gradients on CUDA without ")
    assert stepped.startswith("`train.py` trains on CUDA without ")


def test_gradients_of_watched_tensors_train_nothing(tmp_path: Path) -> None:
    text = (
        "import tensorflow as tf\n\nnet = tf.keras.applications.ResNet50(weights='imagenet')\n"
        "image = tf.constant(tf.io.read_file('a'))\nwith tf.GradientTape() as tape:\n    tape.watch(image)\n"
        "    top = tf.reduce_max(net(image))\ngradient = tape.gradient(top, image)\n"
        "{}tf.io.write_file('b', tf.io.serialize_tensor(gradient))\n"
    )
    (alone,) = messages(tmp_path, "DET306", text.format(""))
    step = "tf.keras.optimizers.SGD().apply_gradients([(gradient, net.trainable_variables[0])])\n"
    (stepped,) = messages(tmp_path, "DET306", text.format(step))
    (tmp_path / "requirements.txt").write_text("tensorflow==1.15.4\n", encoding="utf-8")
    (in_eager_mode_of_old,) = messages(tmp_path, "DET306", text.format(step))
    assert alone.startswith("`train.py` computes gradients with TensorFlow ")
    assert stepped.startswith("`train.py` trains with TensorFlow ")
    assert in_eager_mode_of_old.startswith("`train.py` trains with TensorFlow 1.15.4 ")


def test_a_program_of_jax_without_an_optimizer_computes_gradients(tmp_path: Path) -> None:
    text = (
        "import os\nos.environ['CUDA_VISIBLE_DEVICES'] = '0'\nimport jax\nimport optax\n\nif __name__ == '__main__':\n"
        "    forces = jax.grad(lambda x: (x * x).sum())(jax.numpy.ones(3))\n    print({})\n"
    )
    (alone,) = messages(tmp_path, "DET310", text.format("forces"))
    (trained,) = messages(tmp_path, "DET310", text.format("optax.apply_updates(jax.numpy.ones(3), forces)"))
    (of_state,) = messages(
        tmp_path, "DET310", text.format("jax.device_get(forces).apply_gradients(grads=forces)")
    )
    assert alone.startswith("`train.py` computes gradients with JAX on a GPU")
    assert trained.startswith("`train.py` trains with JAX on a GPU")
    assert of_state.startswith("`train.py` trains with JAX on a GPU")
