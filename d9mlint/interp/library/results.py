"""Small facts about libraries that the abstract run needs: result types, and who calls back whom."""

from __future__ import annotations

TENSOR = "torch.Tensor"

_TORCH_NOT_TENSOR = frozenset(
    [
        "device",
        "dtype",
        "load",
        "save",
        "manual_seed",
        "seed",
        "initial_seed",
        "compile",
        "jit",
        "set_default_dtype",
        "set_grad_enabled",
        "no_grad",
        "enable_grad",
        "inference_mode",
        "is_tensor",
        "is_grad_enabled",
        "set_default_tensor_type",
        "get_rng_state",
        "set_rng_state",
        "set_num_threads",
        "get_num_threads",
        "numel",
        "finfo",
        "iinfo",
        "use_deterministic_algorithms",
        "set_printoptions",
        "autocast",
        "are_deterministic_algorithms_enabled",
        "set_deterministic",
        "get_default_dtype",
        "typename",
        "set_default_device",
        "hub",
        "set_float32_matmul_precision",
        "qr",
        "eig",
        "symeig",
        "mode",
        "kthvalue",
        "cummax",
        "cummin",
    ]
)
_DATASET_METHODS = frozenset(
    [
        "map",
        "batch",
        "shuffle",
        "repeat",
        "prefetch",
        "cache",
        "filter",
        "take",
        "skip",
        "shard",
        "interleave",
        "padded_batch",
        "flat_map",
        "apply",
        "enumerate",
        "zip",
        "concatenate",
        "window",
        "unbatch",
        "with_options",
        "snapshot",
        "rebatch",
        "ragged_batch",
        "from_tensor_slices",
        "from_tensors",
        "from_generator",
        "list_files",
        "range",
        "random",
        "sample_from_datasets",
        "choose_from_datasets",
        "make_csv_dataset",
        "parallel_interleave",
    ]
)


def result_type(api: str) -> str:
    """The class of what calling ``api`` gives; ``api`` itself (a class, or unknown) where nothing is known."""
    head, _, last = api.rpartition(".")
    if head == "torch":
        if last.islower() and last not in _TORCH_NOT_TENSOR:
            return TENSOR
        return api
    if head in ("torch.nn.functional", "torch.fft", "torch.linalg", "torch.special", "torch.sparse"):
        return TENSOR
    if head.startswith("tf.data") and (last in _DATASET_METHODS or last.endswith("Dataset")):
        return "tf.data.Dataset"
    if head == "datasets.Dataset" and last in _DATASET_METHODS | {
        "select",
        "train_test_split",
        "remove_columns",
    }:
        return "datasets.Dataset"
    return api


_RUNNERS = frozenset(
    [
        "fit",
        "train",
        "run",
        "learn",
        "test",
        "validate",
        "predict",
        "fit_generator",
        "launch",
        "cli",
        "LightningCLI",
        "Trainer",
        "main_loop",
        "fit_one_cycle",
        "fine_tune",
        "Learner",
        "evaluate",
        "train_model",
        "tune",
        "Runner",
        "MapDataset",
        "loop",
        "fit_transform",
        "Seq2SeqTrainer",
        "SFTTrainer",
        "DPOTrainer",
        "GRPOTrainer",
        "spawn",
        "Process",
        "Thread",
        "start_processes",
        "prepare",
    ]
)


def callback_instances(api: str) -> bool:
    """Whether a library call runs the methods of the project objects it is given."""
    return api.rpartition(".")[2] in _RUNNERS


def calls_argument(api: str) -> bool:
    """Whether a library function or method calls an object that it is given as it calls a function."""
    return api.rpartition(".")[2] in _CALLING


_CALLING = frozenset(
    [
        "optimize",
        "minimize",
        "map",
        "map_batches",
        "interleave",
        "flat_map",
        "filter",
        "apply",
        "from_generator",
        "submit",
        "imap",
        "imap_unordered",
        "starmap",
        "apply_async",
        "map_async",
        "set_transform",
        "with_transform",
        "fmin",
        "differential_evolution",
        "basinhopping",
    ]
)


def is_estimator(api: str) -> bool:
    """Whether a library class has the interface of scikit-learn: it fits the estimators that it is made with."""
    return api.startswith(("sklearn.", "imblearn.", "skopt.", "dask_ml."))


def is_validation(api: str) -> bool:
    """Whether a library function fits the estimator that it is given, on parts of the data."""
    return api.startswith("sklearn.model_selection.") and api.rpartition(".")[2] in _VALIDATING


_VALIDATING = frozenset(
    [
        "cross_val_score",
        "cross_val_predict",
        "cross_validate",
        "learning_curve",
        "validation_curve",
        "permutation_test_score",
    ]
)
