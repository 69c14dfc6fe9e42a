"""Recipes for TensorFlow, run for real on a CPU, and what op determinism makes of them."""

from __future__ import annotations

import subprocess
import sys
import threading
from typing import Any

import msgspec
import pytest
from support import needs

from d9mlint.evidence.model import DIFFERS, EQUAL, Evidence, Measurement
from d9mlint.knowledge import load
from d9mlint.knowledge.loader import entries as read_entries
from d9mlint.knowledge.loader import rules_directory
from d9mlint.knowledge.schema import OpEntry
from d9mlint.verify.launcher import Server
from d9mlint.verify.recipes import Recipe, load_recipes
from d9mlint.verify.session import Options, measure

RECIPES = {recipe.id: recipe for recipe in load_recipes() if recipe.library == "tensorflow"}
WITHOUT_RECIPE = {
    "keras_cv.global_generator",
    "tf.keras_fit_workers",
    "tf.bincount.counts",
    "tf.ctc_loss_backward.first",
    "tf.extract_patches_backward.disjoint",
    "tf.gather_backward.crf",
    "tf.gather_backward.crf.contrib",
    "tf.gather_backward.sampled",
    "tf.gather_backward.sequence",
    "tf.segment_reduction.ones",
    "tf.sparse_softmax_xent.legacy_sequence_loss",
    "tf.sparse_softmax_xent.legacy_sequence_loss.buckets",
    "tf.sparse_softmax_xent.legacy_sequence_loss.by_example",
    "tf.sparse_softmax_xent.log_prob",
    "tf.sparse_softmax_xent.sequence_loss",
    "tf.sparse_softmax_xent.sequence_loss.class",
    "tf.while_loop.bidirectional_dynamic_rnn",
    "tf.while_loop.dynamic_decode",
    "tf.while_loop.dynamic_rnn",
    "tf.while_loop.raw_rnn",
}
"""Entries that no recipe can stand for; why is said at the end of the file of recipes."""
RACES = ("tf_variable_scatter_add", "tf_data_map_parallel", "tf_crop_and_resize")
"""Differ from run to run on a CPU with two threads."""
TRIES = 15
"""Sessions in which each race has to strike once: nearly always it does in the first."""

needs_tensorflow = needs("tensorflow")


def entries() -> set[str]:
    """The ids of the knowledge base's entries for TensorFlow and Keras."""
    path = rules_directory() / "knowledge" / "ops" / "tensorflow.yaml"
    return {entry.id for entry in read_entries(str(path), path.read_text(encoding="utf-8"), OpEntry)}


def test_every_entry_has_a_recipe_or_a_reason() -> None:
    covered = {op for recipe in RECIPES.values() for op in recipe.ops}
    assert entries() - covered == WITHOUT_RECIPE
    assert covered <= entries()
    text = (rules_directory() / "recipes" / "tensorflow.yaml").read_text(encoding="utf-8")
    reasons = text.partition("# Without a recipe:")[2]
    assert all(f"# {entry}: " in reasons for entry in WITHOUT_RECIPE)


def test_recipes_name_apis_of_their_entries() -> None:
    known = load()
    for recipe in RECIPES.values():
        assert recipe.id.startswith("tf_")
        # A condition may stand behind it: under which what is run differs.
        api = recipe.api.partition(" (")[0]
        assert not recipe.ops or {entry.id for entry in known.ops(api)}.intersection(recipe.ops), recipe.id


def test_controls_of_both_kinds() -> None:
    kinds = [recipe.control for recipe in RECIPES.values() if recipe.control]
    assert kinds.count("equal") >= 3
    assert {r.id for r in RECIPES.values() if r.control == "differs"} == {
        "tf_dropout_unseeded",
        "tf_one_bit_control",
    }


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[str, list[dict[str, Any]]]]:
    """Trouble and answers of every recipe at its smallest size, in every dtype, two runs each."""
    found: dict[str, tuple[str, list[dict[str, Any]]]] = {}

    def work(own: list[Recipe], directory: str) -> None:
        with Server("tensorflow", directory) as server:
            for recipe in own:
                job = {
                    "recipe": msgspec.to_builtins(recipe),
                    "device": "cpu",
                    "mode": "",
                    "cases": [(n, {"dtype": dtype, "scale": 0.0}) for n, dtype in enumerate(recipe.dtypes)],
                    "runs": 2,
                    "seed": 0,
                }
                end = server.run(job, 600)
                found[recipe.id] = (end.trouble, [line for line in end.lines if "started" not in line])

    recipes = list(RECIPES.values())
    workers = [
        threading.Thread(target=work, args=(recipes[k::2], str(tmp_path_factory.mktemp(f"jobs{k}"))))
        for k in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return found


@needs_tensorflow
@pytest.mark.parametrize("recipe", RECIPES.values(), ids=lambda recipe: recipe.id)
def test_recipe_runs(recipe: Recipe, small: dict[str, tuple[str, list[dict[str, Any]]]]) -> None:
    trouble, lines = small[recipe.id]
    assert not trouble
    assert len(lines) == len(recipe.dtypes)
    for line in lines:
        assert "error" not in line, line
        names = [output["name"] for output in line["outputs"]]
        assert names[0] == "out0"
        for name in recipe.grad:
            assert any(n == f"grad:{name}" or n.startswith(f"grad:{name}.") for n in names)
        assert recipe.dtypes[line["case"]] in {
            *line["dtypes"].values(),
            *(o["dtype"] for o in line["outputs"]),
        }
        if recipe.expect.cpu == "det":
            assert all(output["distinct"] == 1 for output in line["outputs"])


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    """A session of a few recipes between the controls of TensorFlow."""
    chosen = ["tf_dropout_unseeded", "tf_keras_dense_unseeded", "tf_fractional_avg_pool", "tf_max_pool2d_xla"]
    options = Options(device="cpu", runs=3, scales=(0.0,), timeout=600)
    controls = [recipe for recipe in RECIPES.values() if recipe.control]
    return measure([RECIPES[name] for name in chosen], controls, options, lambda line: None)


def row(evidence: Evidence, recipe: str) -> Measurement:
    return next(m for m in evidence.measurements if m.recipe == recipe)


@needs_tensorflow
def test_controls_pass(evidence: Evidence) -> None:
    assert evidence.controls_passed
    assert {c.recipe: c.outcome for c in evidence.controls}["tf_dropout_unseeded"] == DIFFERS


@needs_tensorflow
def test_the_machine_is_described(evidence: Evidence) -> None:
    machine = evidence.machine("tensorflow")
    assert machine is not None
    assert machine.kind == "cpu"
    assert machine.threads >= 2
    assert {"tensorflow", "keras", "python", "cpu"} <= machine.versions.keys()


@needs_tensorflow
def test_random_numbers_are_told_from_a_race(evidence: Evidence) -> None:
    for recipe in ("tf_dropout_unseeded", "tf_keras_dense_unseeded"):
        assert (row(evidence, recipe).outcome, row(evidence, recipe).cause) == (DIFFERS, "rng")


@needs_tensorflow
def test_op_determinism_refuses_a_draw_without_a_seed(evidence: Evidence) -> None:
    mode = row(evidence, "tf_dropout_unseeded").mode
    assert mode is not None
    assert mode.outcome == "raises"
    assert mode.message.startswith(
        "RuntimeError: Random ops require a seed to be set when determinism is enabled"
    )


@needs_tensorflow
def test_op_determinism_refuses_a_kernel_without_an_alternative(evidence: Evidence) -> None:
    measured = row(evidence, "tf_max_pool2d_xla")
    assert measured.outcome == EQUAL
    assert measured.mode is not None
    assert measured.mode.outcome == "raises"
    assert measured.mode.message.startswith("UnimplementedError: ")


@needs_tensorflow
def test_op_determinism_does_not_see_every_draw(evidence: Evidence) -> None:
    for recipe in ("tf_fractional_avg_pool", "tf_keras_dense_unseeded"):
        mode = row(evidence, recipe).mode
        assert mode is not None
        assert mode.outcome == "unchanged"


@pytest.fixture(scope="module")
def races() -> dict[str, Measurement]:
    """Known races between threads at full size. A race need not strike on a busy machine: asked again."""
    found: dict[str, Measurement] = {}
    for _ in range(TRIES):
        left = [
            msgspec.structs.replace(RECIPES[name], dtypes=("float32",))
            for name in RACES
            if name not in found or (found[name].outcome, found[name].cause) != (DIFFERS, "")
        ]
        if left:
            options = Options(device="cpu", runs=4, scales=(1.0,), timeout=600)
            found |= {m.recipe: m for m in measure(left, [], options, lambda line: None).measurements}
    return found


@needs_tensorflow
@pytest.mark.parametrize("recipe", RACES)
@pytest.mark.full
def test_race_between_threads_is_found_and_op_determinism_ends_it(
    recipe: str, races: dict[str, Measurement]
) -> None:
    measured = races[recipe]
    assert (measured.outcome, measured.cause) == (DIFFERS, "")
    assert measured.mode is not None
    assert measured.mode.outcome == EQUAL


@needs_tensorflow
@pytest.mark.full
def test_the_process_that_forks_does_not_start_a_device() -> None:
    code = (
        "import tensorflow, d9mlint.verify.tensorflow_backend\n"
        "from tensorflow.python.eager import context\n"
        "made = context._context\n"
        "print(bool(made and (made._initialized or made._physical_devices)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
