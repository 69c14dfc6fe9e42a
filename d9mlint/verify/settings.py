"""Probes of settings: what a finding about a whole program claims, shown on a short synthetic training run.

Each probe is a program that is run several times in fresh processes, without and with a remedy. The programs are in
``torch_settings`` and ``tensorflow_settings``, under the names of the probes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.base.errors import UsageError, nearest

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding


class Probe(NamedTuple):
    """One setting. ``codes``: the rules whose findings it is about, none where it is run by name only;
    ``subjects``: those of their findings, empty for all; ``remedy``: what the second series of runs does;
    ``claim``: what is compared; ``needs``: ``cuda``, or ``nccl`` for two GPUs; ``restart``: a forked process will not
    do, because it inherits the seeds that the frameworks drew when they were imported.
    """

    id: str
    library: str
    title: str
    remedy: str
    codes: tuple[str, ...]
    subjects: tuple[str, ...] = ()
    claim: str = "runs"
    needs: str = ""
    restart: bool = False


RESUME = "resumed and uninterrupted runs"
_ALL_STATE = "save and restore all of it"
PROBES = (
    Probe(
        "deterministic_mode",
        "torch",
        "training with an op that depends on thread order",
        "torch.use_deterministic_algorithms(True)",
        ("DET302", "DET303", "DET401"),
        ("torch", "torch.use_deterministic_algorithms"),
    ),
    Probe(
        "torch_seed",
        "torch",
        "model and dropout without a seed",
        "torch.manual_seed(0)",
        ("DET101",),
        restart=True,
    ),
    Probe(
        "numpy_seed", "torch", "NumPy augmentation without a seed", "numpy.random.seed(0)", (), restart=True
    ),
    Probe("python_seed", "torch", "`random` without a seed", "random.seed(0)", ()),
    Probe(
        "dataloader_workers",
        "torch",
        "DataLoader with workers that draw from NumPy, without a seed",
        "a seeded generator=",
        ("DET201", "DET202"),
        restart=True,
    ),
    Probe(
        "cudnn_benchmark",
        "torch",
        "convolutions with cudnn.benchmark = True",
        "torch.backends.cudnn.benchmark = False",
        ("DET301",),
        needs="cuda",
    ),
    Probe(
        "cudnn_deterministic",
        "torch",
        "convolutions with cudnn.deterministic = False",
        "torch.backends.cudnn.deterministic = True",
        ("DET303",),
        ("torch.backends.cudnn.deterministic",),
        needs="cuda",
    ),
    Probe(
        "cublas_workspace",
        "torch",
        "matrix products on several streams without CUBLAS_WORKSPACE_CONFIG",
        "CUBLAS_WORKSPACE_CONFIG=:4096:8",
        ("DET305", "DET405"),
        needs="cuda",
    ),
    Probe(
        "compile_autotune",
        "torch",
        "torch.compile(mode='max-autotune') with an empty cache",
        "torch.compile with its default mode",
        ("DET310",),
        needs="cuda",
    ),
    Probe(
        "ddp",
        "torch",
        "DistributedDataParallel on 2 ranks (gloo)",
        "torch.use_deterministic_algorithms(True) on every rank",
        (),
    ),
    Probe(
        "fsdp",
        "torch",
        "fully_shard on 2 ranks (gloo)",
        "torch.use_deterministic_algorithms(True) on every rank",
        (),
    ),
    Probe(
        "ddp_nccl",
        "torch",
        "DistributedDataParallel on 2 ranks (NCCL)",
        "torch.use_deterministic_algorithms(True) on every rank",
        (),
        needs="nccl",
    ),
    *(
        Probe(
            f"resume_{name}",
            "torch",
            f"checkpoint without {what}",
            _ALL_STATE,
            ("DET601", "DET602"),
            claim=RESUME,
            needs=needs,
        )
        for name, what, needs in (
            ("torch_rng", "the torch RNG state", ""),
            ("numpy_rng", "the NumPy RNG state", ""),
            ("python_rng", "the state of `random`", ""),
            ("loader_rng", "the state of the loader's generator", ""),
            ("optimizer", "the optimizer state", ""),
            ("scheduler", "the scheduler state", ""),
            ("cuda_rng", "the CUDA RNG state", "cuda"),
        )
    ),
    Probe(
        "tf_op_determinism",
        "tensorflow",
        "training with an op that depends on thread order",
        "tf.config.experimental.enable_op_determinism()",
        ("DET306", "DET403"),
        ("tensorflow",),
    ),
    Probe(
        "tf_seed", "tensorflow", "Keras model without a seed", "keras.utils.set_random_seed(0)", ("DET104",)
    ),
    Probe(
        "tf_autotune",
        "tensorflow",
        "convolutions with cuDNN autotuning",
        "TF_CUDNN_USE_AUTOTUNE=0",
        ("DET307",),
        needs="cuda",
    ),
)


def for_findings(findings: Iterable[Finding]) -> list[Probe]:
    """The probes that some finding is about."""
    own = list(findings)
    return [probe for probe in PROBES if any(is_about(probe.codes, probe.subjects, f) for f in own)]


def is_about(codes: tuple[str, ...], subjects: tuple[str, ...], finding: Finding) -> bool:
    """Whether a probe with these codes and subjects shows what a finding claims."""
    return finding.code in codes and not finding.op and (not subjects or finding.subject in subjects)


def named(names: Iterable[str]) -> list[Probe]:
    """Probes by their names; all of them for ``all``. Raises UsageError."""
    known = {probe.id: probe for probe in PROBES}
    chosen: dict[str, Probe] = {}
    for name in names:
        if name == "all":
            chosen |= known
        elif name in known:
            chosen[name] = known[name]
        else:
            raise UsageError(
                f"There is no setting {name}.{nearest(name, list(known))} There are: {', '.join(known)}."
            )
    return list(chosen.values())
