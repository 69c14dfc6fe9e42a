"""Every setting of the knowledge base is read: a program in which it changes what is reported."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))

import programs
from test_alive import TRAINING, codes_by_file, compiled, file_name

from d9mlint.knowledge.loader import Compiled

__all__ = ["compiled"]


def env(name: str, value: str) -> str:
    return f"os.environ['{name}'] = '{value}'"


TORCH = ["import os", "import torch"]
TF = ["import os", "import tensorflow as tf"]
TF_TRAINING = [
    "model = tf.keras.Sequential([tf.keras.layers.Dense(1)])",
    "model.compile('sgd', 'mse')",
    "model.fit(tf.ones([4, 2]), tf.ones([4, 1]))",
]
RECURRENT = [
    "net = torch.nn.LSTM(3, 3).cuda()",
    "net(torch.ones(2, 1, 3).cuda())[0].sum().backward()",
]
LOADER = "for batch in DataLoader(list(range(9)), num_workers=2{}): print(batch)"
LOADERS = ["import torch", "from torch.utils.data import DataLoader"]
CLUSTER = ["import torch.distributed as dist"]

# For each setting: imports, lines, the rule that reports it there and, where it is not the newest, the release.
PROGRAMS: dict[str, tuple[list[str], list[str], str, str]] = {
    "torch.use_deterministic_algorithms": (
        TORCH,
        ["torch.use_deterministic_algorithms(False)"],
        "DET303",
        "",
    ),
    "torch.set_deterministic": (TORCH, ["torch.set_deterministic(True)"], "DET304", ""),
    "torch.set_deterministic_debug_mode": (
        TORCH,
        ["torch.set_deterministic_debug_mode('error')"],
        "DET304",
        "torch==1.9.0",
    ),
    "torch.cudnn.enabled": (TORCH, ["torch.backends.cudnn.enabled = False", *RECURRENT], "-DET405", ""),
    "torch.cudnn.deterministic": (TORCH, ["torch.backends.cudnn.deterministic = False"], "DET303", ""),
    "torch.cudnn.benchmark": (TORCH, ["torch.backends.cudnn.benchmark = True"], "DET301", ""),
    "torch.mkldnn.deterministic": (
        TORCH,
        ["torch.backends.mkldnn.deterministic = True"],
        "DET304",
        "torch==2.3.0",
    ),
    "env.CUBLAS_WORKSPACE_CONFIG": (
        TORCH,
        [env("CUBLAS_WORKSPACE_CONFIG", "x"), "torch.use_deterministic_algorithms(True)", *TRAINING],
        "DET305",
        "torch==2.4.0",
    ),
    "torch.fill_uninitialized_memory": (
        ["import torch.utils.deterministic"],
        ["torch.utils.deterministic.fill_uninitialized_memory = False"],
        "DET304",
        "torch==2.1.0",
    ),
    "torch.inductor.deterministic": (
        ["import torch._inductor.config"],
        ["torch._inductor.config.deterministic = True"],
        "DET304",
        "torch==2.9.0",
    ),
    "env.TORCHINDUCTOR_DETERMINISTIC": (
        TORCH,
        [env("TORCHINDUCTOR_DETERMINISTIC", "1")],
        "DET304",
        "torch==2.9.0",
    ),
    "torch.inductor.batch_invariant": (
        ["import torch._inductor.config"],
        ["torch._inductor.config.batch_invariant = True"],
        "DET304",
        "torch==2.12.0",
    ),
    "env.TORCHINDUCTOR_BATCH_INVARIANT": (
        TORCH,
        [env("TORCHINDUCTOR_BATCH_INVARIANT", "1")],
        "DET304",
        "torch==2.12.0",
    ),
    "torch.inductor.fallback_random": (
        ["import torch._inductor.config"],
        ["torch._inductor.config.fallback_random = True"],
        "DET304",
        "torch==1.13.0",
    ),
    "torch.compile.mode": (
        TORCH,
        ["torch.compile(torch.nn.Linear(2, 2), mode='max-autotune')(torch.ones(1, 2))"],
        "DET310",
        "",
    ),
    "torch.sdpa_kernel": (
        ["from torch.nn.attention import sdpa_kernel"],
        ["print(sdpa_kernel([]))"],
        "DET304",
        "torch==2.2.0",
    ),
    "torch.dataloader.worker_init_fn": (
        LOADERS,
        [LOADER.format(", worker_init_fn=print, generator=torch.Generator().manual_seed(0)")],
        "-DET201",
        "",
    ),
    "torch.dataloader.generator": (
        LOADERS,
        [LOADER.format(", shuffle=True, generator=torch.Generator().manual_seed(0)")],
        "-DET202",
        "",
    ),
    "torch.dataloader.in_order": (LOADERS, [LOADER.format(", in_order=False")], "DET211", ""),
    "env.PYTHONHASHSEED": (
        ["import os"],
        [env("PYTHONHASHSEED", "0"), "print(list({'a', 'b'}))"],
        "DET105",
        "",
    ),
    "env.HOROVOD_FUSION_THRESHOLD": (
        ["import os", "import horovod.torch as hvd"],
        [env("HOROVOD_FUSION_THRESHOLD", "0"), "hvd.init()"],
        "-DET501",
        "",
    ),
    "env.NCCL_ALGO": (
        ["import os", *CLUSTER],
        ["dist.init_process_group('nccl', device_id=0)", env("NCCL_ALGO", "Ring")],
        "DET308",
        "",
    ),
    "lightning.trainer": (["import lightning as L"], ["L.Trainer(benchmark=True).fit(1)"], "DET312", ""),
    "transformers.TrainingArguments": (
        ["import transformers"],
        [
            "options = transformers.TrainingArguments('out', full_determinism=True)",
            "transformers.Trainer(model, options).train()",
        ],
        "-DET302",
        "",
    ),
    "vllm.batch_invariant": (
        ["import os", "import vllm"],
        ["engine = vllm.LLM('m')", env("VLLM_BATCH_INVARIANT", "1")],
        "DET308",
        "",
    ),
    "tf.enable_op_determinism": (
        TF,
        ["tf.config.experimental.enable_op_determinism()"],
        "DET304",
        "tensorflow==2.7.0",
    ),
    "tf.disable_op_determinism": (TF, ["tf.config.experimental.disable_op_determinism()"], "DET303", ""),
    "env.TF_DETERMINISTIC_OPS": (TF, [env("TF_DETERMINISTIC_OPS", "1"), *TF_TRAINING], "DET304", ""),
    "env.TF_DETERMINISTIC_ORDER": (TF, [env("TF_DETERMINISTIC_ORDER", "1")], "DET304", "tensorflow==2.7.0"),
    "env.TF_CUDNN_DETERMINISTIC": (TF, [env("TF_CUDNN_DETERMINISTIC", "1"), *TF_TRAINING], "DET304", ""),
    "env.TF_CUDNN_USE_AUTOTUNE": (
        TF,
        [env("TF_CUDNN_USE_AUTOTUNE", "0"), "tf.config.experimental.enable_op_determinism()", *TF_TRAINING],
        "DET307",
        "",
    ),
    "env.TF_CUDNN_USE_FRONTEND": (TF, [env("TF_CUDNN_USE_FRONTEND", "1")], "DET304", "tensorflow==2.4.0"),
    "env.TF_DISABLE_exceptions": (
        TF,
        [env("TF_DISABLE_SEGMENT_REDUCTION_OP_DETERMINISM_EXCEPTIONS", "1")],
        "DET303",
        "tensorflow==2.6.0",
    ),
    "env.TF_DISABLE_DEPTHWISE_CONV": (
        TF,
        [env("TF_DISABLE_DEPTHWISE_CONV_DETERMINISM_EXCEPTIONS", "1")],
        "DET303",
        "tensorflow==2.9.0",
    ),
    "env.TF_DISABLE_SCATTER_OP_DETERMINISM": (
        TF,
        [env("TF_DISABLE_SCATTER_OP_DETERMINISM", "1")],
        "DET303",
        "",
    ),
    "env.TF_DISABLE_SPARSE_SOFTMAX_XENT": (
        TF,
        [env("TF_DISABLE_SPARSE_SOFTMAX_XENT_WITH_LOGITS_OP_DETERMINISM_EXCEPTIONS", "1")],
        "DET303",
        "tensorflow==2.6.0",
    ),
    "env.TF_USE_DETERMINISTIC_SEGMENT_REDUCTIONS": (
        TF,
        [env("TF_USE_DETERMINISTIC_SEGMENT_REDUCTIONS", "1")],
        "DET304",
        "tensorflow==2.6.0",
    ),
    "env.TF_DETERMINISTIC_ALLOCATOR": (
        TF,
        [env("TF_DETERMINISTIC_ALLOCATOR", "1")],
        "DET304",
        "tensorflow==2.6.0",
    ),
    "tf.threads": (
        TF,
        ["tf.config.threading.set_intra_op_parallelism_threads(1)"],
        "DET304",
        "tensorflow==1.13.0",
    ),
    "tf.data.deterministic": (
        TF,
        [
            "options = tf.data.Options()",
            "options.deterministic = False",
            "for item in tf.data.Dataset.range(9).with_options(options): print(item)",
        ],
        "DET206",
        "",
    ),
    "tfdeterminism.patch": (
        ["import tensorflow as tf", "from tfdeterminism import patch"],
        ["patch()"],
        "DET304",
        "",
    ),
    "env.KERAS_BACKEND": (
        ["import os", "os.environ['KERAS_BACKEND'] = 'torch'", "import keras"],
        [
            "model = keras.Sequential([keras.layers.Dense(1)])",
            "model.compile('sgd', 'mse')",
            "model.fit(print, print)",
        ],
        "DET302",
        "",
    ),
    "keras.fit.workers": (
        TF,
        ["model = tf.keras.Sequential()", "model.fit(print, workers=4, use_multiprocessing=True)"],
        "DET208",
        "tensorflow==2.15.0",
    ),
}


# What is reported without the setting, where it silences a rule.
WITHOUT = {
    "torch.cudnn.enabled": (TORCH, RECURRENT),
    "torch.dataloader.worker_init_fn": (LOADERS, [LOADER.format("")]),
    "torch.dataloader.generator": (LOADERS, [LOADER.format(", shuffle=True")]),
    "env.HOROVOD_FUSION_THRESHOLD": (["import horovod.torch as hvd"], ["hvd.init()"]),
    "transformers.TrainingArguments": (
        ["import transformers"],
        ["options = transformers.TrainingArguments('out')", "transformers.Trainer(model, options).train()"],
    ),
}


@pytest.mark.parametrize(
    "pins", sorted({pins for *_, pins in PROGRAMS.values()}), ids=lambda pins: pins or "newest"
)
def test_settings_are_read(pins: str, tmp_path: Path) -> None:
    entries = {key: one for key, one in PROGRAMS.items() if one[3] == pins}
    texts = {file_name(key): programs.program(one[0], one[1]) for key, one in entries.items()}
    texts |= {
        file_name(key) + "_without": programs.program(*WITHOUT[key]) for key in entries if key in WITHOUT
    }
    found = codes_by_file(tmp_path, texts, f"{pins}\n" if pins else "")
    wrong = []
    for key, (_, _, rule, _) in entries.items():
        name, codes = file_name(key), found[file_name(key)]
        read = rule in codes
        if rule.startswith("-"):
            read = rule[1:] not in codes and rule[1:] in found[name + "_without"]
        if not read:
            wrong.append(f"# {key}: {sorted(codes)} instead of {rule}\n{texts[name]}")
    assert not wrong, "\n".join(wrong)


def test_every_setting_has_a_program(compiled: Compiled) -> None:
    assert {entry.id for entry in compiled.settings} == set(PROGRAMS)


# For each value that a setting calls a hazard, by its first word: a program with it, as above.
HAZARDS: dict[tuple[str, str], tuple[list[str], list[str], str, str]] = {
    ("torch.use_deterministic_algorithms", "False"): PROGRAMS["torch.use_deterministic_algorithms"],
    ("torch.use_deterministic_algorithms", "warn_only=True"): (
        TORCH,
        ["torch.use_deterministic_algorithms(True, warn_only=True)", *TRAINING],
        "DET303",
        "",
    ),
    ("torch.set_deterministic_debug_mode", '"default"'): (
        TORCH,
        ["torch.set_deterministic_debug_mode('default')", *TRAINING],
        "DET303",
        "",
    ),
    ("torch.set_deterministic_debug_mode", '"warn"'): (
        TORCH,
        ["torch.set_deterministic_debug_mode('warn')", *TRAINING],
        "DET303",
        "",
    ),
    ("torch.cudnn.benchmark", "True"): (
        TORCH,
        ["torch.backends.cudnn.deterministic = True", "torch.backends.cudnn.benchmark = True"],
        "DET301",
        "",
    ),
    ("env.CUBLAS_WORKSPACE_CONFIG", ":4096:2"): (
        TORCH,
        [env("CUBLAS_WORKSPACE_CONFIG", ":4096:2"), "torch.use_deterministic_algorithms(True)", *TRAINING],
        "DET305",
        "torch==2.4.0",
    ),
    ("env.CUBLAS_WORKSPACE_CONFIG", "any"): PROGRAMS["env.CUBLAS_WORKSPACE_CONFIG"],
    ("torch.compile.mode", "max-autotune"): PROGRAMS["torch.compile.mode"],
    ("torch.compile.mode", "max-autotune-no-cudagraphs"): (
        TORCH,
        ["torch.compile(torch.nn.Linear(2, 2), mode='max-autotune-no-cudagraphs')(torch.ones(1, 2))"],
        "DET310",
        "",
    ),
    ("torch.dataloader.in_order", "False"): (LOADERS, [LOADER.format(", in_order=False")], "DET211", ""),
    ("env.PYTHONHASHSEED", "assignment"): PROGRAMS["env.PYTHONHASHSEED"],
    ("lightning.trainer", 'deterministic="warn"'): (
        ["import lightning as L"],
        ["L.Trainer(deterministic='warn').fit(1)"],
        "DET312",
        "",
    ),
    ("lightning.trainer", "benchmark=True"): PROGRAMS["lightning.trainer"],
    ("tf.enable_op_determinism", "the"): (
        TF,
        ["tf.config.experimental.enable_op_determinism", *TF_TRAINING],
        "DET306",
        "",
    ),
    ("env.TF_CUDNN_USE_AUTOTUNE", "0"): PROGRAMS["env.TF_CUDNN_USE_AUTOTUNE"],
    ("env.TF_DISABLE_exceptions", "1"): PROGRAMS["env.TF_DISABLE_exceptions"],
    ("env.TF_DISABLE_exceptions", "true"): (
        TF,
        [env("TF_DISABLE_SEGMENT_REDUCTION_OP_DETERMINISM_EXCEPTIONS", "true")],
        "DET303",
        "tensorflow==2.6.0",
    ),
    ("env.TF_DISABLE_exceptions", "True"): (
        TF,
        [env("TF_DISABLE_SEGMENT_REDUCTION_OP_DETERMINISM_EXCEPTIONS", "True")],
        "DET303",
        "tensorflow==2.6.0",
    ),
    **{
        ("env.TF_DISABLE_DEPTHWISE_CONV", value): (
            TF,
            [env("TF_DISABLE_DEPTHWISE_CONV_DETERMINISM_EXCEPTIONS", value)],
            "DET303",
            "tensorflow==2.9.0",
        )
        for value in ("1", "true", "True")
    },
    **{
        ("env.TF_DISABLE_SCATTER_OP_DETERMINISM", value): (
            TF,
            [env("TF_DISABLE_SCATTER_OP_DETERMINISM", value)],
            "DET303",
            "",
        )
        for value in ("1", "true", "True")
    },
    **{
        ("env.TF_DISABLE_SPARSE_SOFTMAX_XENT", value): (
            TF,
            [env("TF_DISABLE_SPARSE_SOFTMAX_XENT_WITH_LOGITS_OP_DETERMINISM_EXCEPTIONS", value)],
            "DET303",
            "tensorflow==2.6.0",
        )
        for value in ("1", "true", "True")
    },
    ("tf.data.deterministic", "False"): PROGRAMS["tf.data.deterministic"],
}


def hazard_name(key: tuple[str, str]) -> str:
    return f"p_{list(HAZARDS).index(key)}"


@pytest.mark.parametrize("pins", sorted({pins for *_, pins in HAZARDS.values()}), ids=lambda p: p or "newest")
def test_hazardous_values_are_reported(pins: str, tmp_path: Path) -> None:
    entries = {key: one for key, one in HAZARDS.items() if one[3] == pins}
    texts = {hazard_name(key): programs.program(one[0], one[1]) for key, one in entries.items()}
    found = codes_by_file(tmp_path, texts, f"{pins}\n" if pins else "")
    wrong = [
        f"# {key}: {sorted(found[hazard_name(key)])} instead of {rule}\n{texts[hazard_name(key)]}"
        for key, (_, _, rule, _) in entries.items()
        if rule not in found[hazard_name(key)]
    ]
    assert not wrong, "\n".join(wrong)


def test_every_hazardous_value_has_a_program(compiled: Compiled) -> None:
    values = {
        (entry.id, text.partition(" ")[0].rstrip(":,"))
        for entry in compiled.settings
        for text in [*entry.hazards, *entry.hazard_values]
    }
    assert values == set(HAZARDS)
