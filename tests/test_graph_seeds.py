"""Fixes of missing seeds in programs that build graphs of TensorFlow 1."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

DRAWS = """noise = tf.random_normal([3])
with tf.Session() as session:
    print(session.run(noise))
"""
IN_A_GRAPH = "import tensorflow as tf\n\ntf.set_random_seed(1)\ntf.reset_default_graph()\n" + DRAWS


def test_the_call_of_the_release_that_the_program_was_written_for_is_inserted(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": "import tensorflow as tf\n\n" + DRAWS})
    run("--fix", "--unsafe-fixes", ".", cwd=root)
    assert "tf.set_random_seed(0)" in (root / "train.py").read_text()


def test_a_seed_of_another_graph_is_not_inserted_once_more(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    root = project({"train.py": IN_A_GRAPH})
    run("--fix", "--unsafe-fixes", ".", cwd=root)
    assert (root / "train.py").read_text() == IN_A_GRAPH


def test_a_graph_beside_eager_execution_is_seeded_where_it_becomes_the_default_one(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    lines = [
        "import tensorflow.compat.v1 as tf",
        "",
        "if __name__ == '__main__':",
        "    with tf.Session() as session:",
        "        print(session.run(tf.random.normal([3])))",
        "",
    ]
    root = project({"train.py": "\n".join(lines), "requirements.txt": "tensorflow==2.15.0\n"})
    run("--fix", "--unsafe-fixes", ".", cwd=root)
    lines.insert(4, "        tf.set_random_seed(0)")
    assert (root / "train.py").read_text() == "\n".join(lines)


def test_an_estimator_is_seeded_by_its_configuration(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path]
) -> None:
    text = (
        "import tensorflow as tf\n\n\ndef model_fn(features, labels, mode):\n"
        "    loss = tf.reduce_mean(tf.layers.dense(features, 1))\n"
        "    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=tf.train.AdamOptimizer().minimize(loss))\n\n\n"
        "tf.estimator.Estimator(model_fn{}).train(lambda: tf.ones([4, 2]))\n"
    )
    root = project(
        {
            "bare.py": text.format(""),
            "configured.py": text.format(", config=tf.estimator.RunConfig('out')"),
            "requirements.txt": "tensorflow==1.15\n",
        }
    )
    run("--fix", "--unsafe-fixes", "--select", "DET104", ".", cwd=root)
    assert (root / "bare.py").read_text() == text.format(", config=tf.estimator.RunConfig(tf_random_seed=0)")
    seeded = ", config=tf.estimator.RunConfig('out', tf_random_seed=0)"
    assert (root / "configured.py").read_text() == text.format(seeded)
