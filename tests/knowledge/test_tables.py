"""The facts agree with what released wheels say: alert sites, messages and variables, extracted beforehand."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import comparison
import elf
import msgspec
import pytest
import wheels

from d9mlint.knowledge.loader import Compiled, load_compiled

TABLES = sorted((Path(__file__).parent / "tables").glob("*.json"))
REQUIRED = {
    *("torch-2.6.0", "torch-2.8.0", "torch-2.10.0", "torch-2.13.0", "torch-2.15.0", "torch-2.15.0-macos"),
    *("tensorflow-2.6.0", "tensorflow-2.8.0", "tensorflow-2.15.0", "tensorflow-2.21.0", "torchvision-0.16.2"),
}


@pytest.fixture(scope="module")
def facts() -> Compiled:
    return load_compiled()


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def table(name: str) -> dict[str, Any]:
    return read(next(path for path in TABLES if path.stem == name))


def test_the_releases_that_matter_are_there() -> None:
    assert sorted(REQUIRED - {path.stem for path in TABLES}) == []


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.stem)
def test_facts_agree_with_the_wheel(path: Path, facts: Compiled) -> None:
    found = read(path)
    assert len(found["sha256"]) == 64
    assert found["version"] in found["wheel"]
    assert comparison.differences(found, facts.ops, facts.settings) == []


def test_a_claim_that_an_op_still_raises_is_found(facts: Compiled) -> None:
    old = [
        msgspec.structs.replace(
            op, history=[msgspec.structs.replace(op.history[0], versions=">=1.7", behaviour="raises")]
        )
        if op.id == "torch.reflection_pad2d_backward"
        else op
        for op in facts.ops
    ]
    wrong = comparison.differences(table("torch-2.8.0"), old, facts.settings)
    assert wrong == [
        "torch.reflection_pad2d_backward: raises in 2.8.0, but the wheel has no alert 'reflection_pad2d_backward_cuda'"
    ]


def test_an_op_that_raises_and_is_not_known_to_is_found(facts: Compiled) -> None:
    ops = [op for op in facts.ops if "median" not in op.id]
    wrong = comparison.differences(table("torch-2.13.0"), ops, facts.settings)
    assert wrong == ["no op has the alert 'median CUDA with indices output' of 2.13.0"]
    ops = [op for op in facts.ops if op.id != "tf.timestamp"]
    wrong = comparison.differences(table("tensorflow-2.21.0"), ops, facts.settings)
    assert wrong == ["no op has the alert 'Timestamp cannot be called when determinism is enabled' of 2.21.0"]


def test_a_version_bound_that_is_too_early_is_found(facts: Compiled) -> None:
    ops = [
        msgspec.structs.replace(
            op, history=[msgspec.structs.replace(op.history[-1], versions=">=2.7", behaviour="raises")]
        )
        if op.id == "tf.fake_quant_backward"
        else op
        for op in facts.ops
    ]
    assert comparison.differences(table("tensorflow-2.8.0"), ops, facts.settings) == []
    (wrong,) = comparison.differences(table("tensorflow-2.7.0"), ops, facts.settings)
    assert wrong.startswith("tf.fake_quant_backward: raises in 2.7.0, but the wheel has no alert")


def test_a_variable_that_no_setting_knows_is_found(facts: Compiled) -> None:
    settings = [s for s in facts.settings if "TF_DETERMINISTIC_OPS" not in s.names]
    wrong = comparison.differences(table("tensorflow-2.21.0"), facts.ops, settings)
    assert wrong == ["no setting is named TF_DETERMINISTIC_OPS of 2.21.0"]


def test_the_scanner_finds_the_alerts_of_the_installed_library() -> None:
    torch = pytest.importorskip("torch")
    library = Path(torch.__file__).parent / "lib" / "libtorch_cpu.so"
    name = f"torch-{torch.__version__.partition('+')[0]}"
    if not library.exists() or platform.machine() != "x86_64" or name not in {p.stem for p in TABLES}:
        pytest.skip("no library for x86-64 Linux of a release with a table")
    found = wheels.scan_library(library)["alerts"]
    assert found == table(name)["libraries"]["libtorch_cpu.so"]["alerts"]
    assert found["put_"] == ["put_"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        # The text is loaded into an argument register, or into another one that is copied into it at once.
        (b"\x48\x8d\x35%s\x90\x90\x90\xe8", "some_kernel"),
        (b"\x48\x8d\x15%s\x48\x89\xd6\xe8", "some_kernel"),
        (b"\x48\x8d\x15%s\x48\x89\xd3\xe8", None),
    ],
)
def test_the_text_of_a_call_is_found(code: bytes, expected: str | None) -> None:
    library = object.__new__(elf.Library)
    start, length = 1024, len(code) - 2 + 4
    code = b"\x90" * 512 + code % (length - 7).to_bytes(4, "little") + b"some_kernel\0" + b"\0" * 16
    vars(library)["data"] = code
    vars(library)["sections"] = {"": elf.Section("", start, 0, len(code), 4, 0)}
    assert library.argument(start + 512 + length - 1) == expected
