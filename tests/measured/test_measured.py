"""What the linter says of small programs is what a GPU did with them: ``tests/breadth/gpu_programs.py`` has measured it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support import lint

from d9mlint.base.findings import Finding, Severity
from d9mlint.knowledge import load
from d9mlint.trace.about import is_about

HERE = Path(__file__).parent
SEEN: dict[str, dict[str, Any]] = json.loads((HERE / "h100-torch-2.11.json").read_text())
DIFFER = ("DET302", "DET401", "DET404", "DET405")
CHOSEN_BY_CUDNN = ("aten.convolution", "aten.convolution_backward")
"""The operations that only deterministic mode as a whole is about."""
EQUAL_HERE = {
    "depthwise_cnn": "cuDNN chose algorithms that are equal for these sizes",
    "embedding_text": "the race needs more rows than this batch looks up at once",
    "gather_duplicates": "what meets at one element is alike, so that the order of the sum does not show",
    "gru": "documentation of cuDNN says that it may differ",
    "interp_input_only": "cuDNN chose algorithms that are equal for these sizes",
    "lstm_ctc": "labels that repeat are too few, and cuDNN's documentation says that its networks may differ",
    "maxpool3d": "windows that share a maximum are too few",
    "maxunpool": "cuDNN chose algorithms that are equal for these sizes",
    "median_quantile": "which of equal values is the median: this input has none that are equal",
    "transformer_encoder": "the race of attention needs longer sequences",
}
"""Programs of which the linter says more than the GPU showed, and why."""


def found(name: str, directory: Path, in_mode: bool = False) -> list[Finding]:
    text = (HERE / "programs" / f"{name}.py").read_text(encoding="utf-8")
    if in_mode:
        text = text.replace("import torch\n", "import torch\n\ntorch.use_deterministic_algorithms(True)\n", 1)
    (directory / f"{name}.py").write_text(text, encoding="utf-8")
    result = lint(directory, {"torch-version": "2.11"})
    return [item.finding for item in result.items if item.finding.severity is not Severity.ADVICE]


def test_every_program_was_measured() -> None:
    programs = {path.stem for path in (HERE / "programs").glob("*.py")}
    assert programs == set(SEEN) >= set(EQUAL_HERE)


@pytest.mark.parametrize("name", sorted(SEEN))
def test_what_differs_is_reported_and_nothing_else(name: str, tmp_path: Path) -> None:
    seen, known = SEEN[name], load()
    reported = [f for f in found(name, tmp_path) if f.code in DIFFER]
    about = [entry for f in reported if (entry := known.op(f.op))]
    for row, operation in seen["differs"] or ():
        if operation in CHOSEN_BY_CUDNN:
            assert any(f.code == "DET302" for f in reported), f"row {row}: {operation}"
        else:
            assert any(is_about(operation, e.apis, e.alerts, e.operations) for e in about), (
                f"row {row}: {operation}"
            )
    if seen["distinct"] > 1:
        assert reported
    elif not seen["differs"]:
        assert bool(reported) == (name in EQUAL_HERE), [f.message for f in reported]


@pytest.mark.parametrize("name", sorted(SEEN))
def test_what_deterministic_mode_raises_is_reported(name: str, tmp_path: Path) -> None:
    raised = isinstance(SEEN[name]["mode"], str)
    reported = [f.message for f in found(name, tmp_path, in_mode=True) if f.code in ("DET402", "DET404")]
    assert bool(reported) == raised, SEEN[name]["mode"]
