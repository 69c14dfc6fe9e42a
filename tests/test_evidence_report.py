"""How measurements are shown: text, JSON, HTML, SVG, and verdicts beside findings."""

from __future__ import annotations

from typing import Any

from d9mlint.evidence import Control, Evidence, Machine, Measurement, Mode, Output

GPU = Machine(
    library="torch",
    kind="cuda",
    name="NVIDIA H200",
    versions={"torch": "2.11.0", "cuda": "12.8", "cudnn": "91002", "driver": "570.86.15"},
)
CPU = Machine(
    library="torch", kind="cpu", name="cpu", versions={"torch": "2.13.0", "cpu": "AMD EPYC"}, threads=2
)
CONTROLS = (
    Control(recipe="dropout_unseeded", expected="differs", outcome="differs"),
    Control(recipe="sum_all_control", expected="equal", outcome="equal"),
    Control(recipe="sort_stable", expected="equal", outcome="equal"),
    Control(recipe="index_add", expected="race", outcome="differs"),
)
TIMES = Mode(outcome="equal", time_ratio=1.8, distinct=1)


def output(name: str, distinct: int, dtype: str = "float32", **measures: Any) -> Output:
    if distinct > 1:
        measures = {"v_ermv": 1.24e-6, "v_c": 0.841, "ulp": 12, **measures}
    return Output(name=name, dtype=dtype, shape=(1000, 8), distinct=distinct, **measures)


def measured(recipe: str, api: str, *outputs: Output, phase: str = "forward", **fields: Any) -> Measurement:
    distinct = max((o.distinct for o in outputs), default=0)
    fields = {
        "library": "torch",
        "dtype": "float32",
        "outcome": "differs" if distinct > 1 else "equal",
        "runs": 5,
        "sizes": {"x": (1000, 8), "i": (262144,), "s": (262144, 8)},
        **fields,
    }
    return Measurement(recipe=recipe, api=api, phase=phase, outputs=outputs, **fields)


def sizes(n: int) -> dict[str, tuple[int, ...]]:
    return {"x": (max(n // 256, 7), 8), "i": (n,), "s": (n, 8)}


def index_add() -> list[Measurement]:
    """An op in three dtypes and three sizes."""
    found = []
    for dtype, counts in (("float32", (1, 5, 5)), ("bfloat16", (1, 3, 5)), ("float16", (1, 4, 5))):
        for scale, n, distinct in zip((0.0, 0.5, 1.0), (1024, 16384, 262144), counts, strict=True):
            found.append(
                measured(
                    "index_add",
                    "torch.Tensor.index_add_",
                    output("out0", distinct, dtype),
                    dtype=dtype,
                    scale=scale,
                    sizes=sizes(n),
                    mode=TIMES if scale == 1 else None,
                    expected="nondet",
                )
            )
    return found


def grid_sample() -> list[Measurement]:
    """Outputs and gradients of which some differ; deterministic mode raises."""
    message = (
        "grid_sampler_2d_backward_cuda does not have a deterministic implementation, but you set "
        "'torch.use_deterministic_algorithms(True)'."
    )
    return [
        measured(
            "grid_sample_2d_backward",
            "torch.nn.functional.grid_sample",
            output("out0", 1),
            output("grad:x", distinct, v_c=0.62),
            output("grad:grid", 1),
            phase="backward",
            scale=scale,
            sizes={"x": (8, 16, n, n), "grid": (8, n, n, 2)},
            mode=Mode(outcome="raises", message=message) if scale == 1 else None,
            expected="nondet",
        )
        for scale, n, distinct in ((0.0, 8, 2), (1.0, 64, 5))
    ]


def others() -> list[Measurement]:
    """Ops with the other answers."""
    return [
        *(
            measured(
                "fold_backward_control",
                "torch.nn.functional.fold",
                output("out0", 1, dtype),
                output("grad:x", 1, dtype),
                phase="backward",
                dtype=dtype,
                scale=scale,
                sizes={"x": (16, 64, n)},
                mode=Mode(outcome="equal", time_ratio=1.0, distinct=1),
                expected="det",
            )
            for dtype in ("float32", "bfloat16")
            for scale, n in ((0.0, 16), (0.5, 128), (1.0, 1024))
        ),
        measured(
            "lstsq_gelsy",
            "torch.linalg.lstsq",
            output("out0", 4, v_ermv=3.1e-5, ulp=2_400_000),
            cause="uninitialized memory",
            mode=Mode(outcome="memory fill", time_ratio=1.02),
            sizes={"a": (512, 256), "b": (512, 8)},
            expected="det",
        ),
        measured(
            "dropout_unseeded",
            "torch.nn.functional.dropout",
            output("out0", 5, v_ermv=1.0, v_c=0.5, ulp=None),
            cause="rng",
            mode=Mode(outcome="unchanged", distinct=5, time_ratio=1.0),
            sizes={"x": (65536,)},
            expected="det",
        ),
        measured(
            "put_duplicates",
            "torch.Tensor.put_",
            output("out0", 1),
            mode=Mode(outcome="not run", message="there was no time"),
            sizes={"x": (4096,), "i": (65536,), "s": (65536,)},
            expected="nondet",
        ),
        measured("scatter_reduce_amax", "torch.Tensor.scatter_reduce_", output("out0", 1), mode=TIMES),
        measured("scatter_reduce_sum", "torch.Tensor.scatter_reduce_", output("out0", 5), mode=TIMES),
        measured(
            "conv2d_benchmark",
            "torch.nn.Conv2d with cudnn.benchmark=True",
            output("out0", 2),
            phase="forward+backward",
            process="fresh",
            expected="autotune",
        ),
        measured(
            "conv2d_benchmark",
            "torch.nn.Conv2d with cudnn.benchmark=True",
            output("out0", 1),
            phase="forward+backward",
        ),
        measured("op_db:cummax", "torch.cummax", output("out0", 1), weak=True, sizes={"input": (5, 5)}),
        measured(
            "all_reduce_sum",
            "torch.distributed.all_reduce",
            outcome="not run",
            reason="needs several ranks: torchrun -m d9mlint.verify --collectives",
            sizes={},
            runs=0,
        ),
        measured("matmul_splitk", "torch.mm", outcome="not run", reason="out of memory", sizes={}, runs=0),
    ]


def evidence(*measurements: Measurement, **fields: Any) -> Evidence:
    fields = {"machines": (GPU,), "controls": CONTROLS, **fields}
    return Evidence(
        tool="d9mlint 1.0",
        created="2026-11-21T08:00:00Z",
        runs=5,
        seed=0,
        timeout=60.0,
        measurements=measurements,
        **fields,
    )


def everything(**fields: Any) -> Evidence:
    return evidence(*index_add(), *grid_sample(), *others(), **fields)
