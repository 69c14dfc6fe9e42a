"""What a library gives under a public name is known by the name of the module that defines it."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

from test_alive import compiled
from test_alive_names import base, known_names

from d9mlint.knowledge import Knowledge
from d9mlint.knowledge.loader import Compiled

__all__ = ["base", "compiled"]

LIBRARIES = (
    "accelerate",
    "gymnasium",
    "lightning",
    "numpy",
    "scipy",
    "sklearn",
    "tensorflow",
    "torch",
    "transformers",
)

# Two of these frameworks cannot be imported in one process.
DEFINED = """
import importlib, inspect, json, sys

library, *names = json.load(sys.stdin)
found = {}
for name in names:
    path, _, last = name.replace("tf.", "tensorflow.", 1).rpartition(".") if name.startswith("tf.") else name.rpartition(".")
    try:
        at = importlib.import_module(library)
        for part in path.split(".")[1:]:
            at = getattr(at, part, None) or importlib.import_module(f"{at.__name__}.{part}")
        given = getattr(at, last)
    except Exception:
        continue
    if inspect.isclass(given) and given.__qualname__ == last and isinstance(given.__module__, str):
        found[name] = f"{given.__module__}.{last}"
print(json.dumps(found))
"""

UNIMPORTABLE = ("multiprocessing.", "torch._C.", "torch.utils.", "tensorflow.core.", "tensorflow.python.")
"""Modules from which nobody imports what others give."""


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.full
def test_defining_module_is_known(library: str, compiled: Compiled, base: Knowledge) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    root = "tf" if library == "tensorflow" else library
    names = sorted(name for name in known_names(compiled) if name.startswith(f"{root}.") and "*" not in name)
    done = subprocess.run(
        [sys.executable, "-P", "-c", DEFINED],
        input=json.dumps([library, *names]),
        capture_output=True,
        text=True,
        check=True,
    )
    known = {base.canonical(name) for name in names}
    defined: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    assert len(defined) > 1
    wrong = {
        name: module
        for name, module in defined.items()
        if base.canonical(module) not in known and not module.startswith(UNIMPORTABLE)
    }
    assert wrong == {}


@pytest.mark.parametrize(
    ("name", "public"),
    [
        ("catboost.core.CatBoostRegressor.fit", "catboost.CatBoostRegressor.fit"),
        ("datasets.arrow_dataset.Dataset.shuffle", "datasets.Dataset.shuffle"),
        ("gym.core.Env", "gymnasium.Env"),
        ("jax._src.random.normal", "jax.random.normal"),
        ("keras.engine.training.Model", "tf.keras.Model"),
        ("keras.src.layers.core.dense.Dense", "tf.keras.layers.Dense"),
        ("keras.src.utils.rng_utils.set_random_seed", "tf.keras.utils.set_random_seed"),
        ("lightgbm.engine.train", "lightgbm.train"),
        ("lightgbm.sklearn.LGBMRegressor", "lightgbm.LGBMRegressor"),
        ("numpy.random.mtrand.RandomState.rand", "numpy.random.RandomState.rand"),
        ("optax._src.transform.add_noise", "optax.add_noise"),
        ("pandas.core.frame.DataFrame.sample", "pandas.DataFrame.sample"),
        ("pandas.io.parsers.readers.read_csv", "pandas.read_csv"),
        ("sklearn.metrics.cluster._supervised.v_measure_score", "sklearn.metrics.v_measure_score"),
        ("tensorflow.python.keras.layers.core.Dense", "tf.keras.layers.Dense"),
        ("torch.nn.modules.Linear", "torch.nn.Linear"),
        ("torch.nn.modules.linear.Linear.reset_parameters", "torch.nn.Linear.reset_parameters"),
        ("torch.optim.lr_scheduler.StepLR", "torch.optim.lr_scheduler.StepLR"),
        ("transformers.models.bert.modeling_bert.BertModel", "transformers.BertModel"),
        ("xgboost.sklearn.XGBClassifier", "xgboost.XGBClassifier"),
    ],
)
def test_defined_below_a_package(name: str, public: str, base: Knowledge) -> None:
    assert base.canonical(name) == public
