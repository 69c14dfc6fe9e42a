"""``--verify`` as a user calls it: what is printed, written and left behind."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import textwrap
import time
import uuid
from pathlib import Path

import pytest
from support import needs

pytestmark = needs("torch")

PROGRAM = """
    import torch
    import torch.nn.functional as F


    def main():
        torch.manual_seed(0)
        model = torch.nn.Linear(4, 4).cuda()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        index = torch.zeros(n := int(input()), dtype=torch.long).cuda()
        places = torch.randint(0, 1000, (4194304,))
        counted = torch.put(torch.zeros(1000), places, torch.randn(4194304), accumulate=True)
        for _ in range(3):
            total = torch.zeros(n).cuda().put_(index, torch.randn(n).cuda(), accumulate=True)
            y = F.pad(model(torch.randn(2, 1, 4).cuda()), (1, 1), mode="replicate")
            optimizer.zero_grad()
            (y.mean() + total.sum() + counted.sum()).backward()
            optimizer.step()
        torch.save(model.state_dict(), "model.pt")


    if __name__ == "__main__":
        main()
"""

VERDICTS = (
    "2 findings confirmed on the CPU, 1 where the op can differ, 1 equal in 5 runs at this size, 0 not run."
)
ODD = json.dumps(
    {
        **dict.fromkeys(("tool", "created"), ""),
        **dict.fromkeys(("runs", "seed", "timeout"), 1),
        "schema": 2,
        "machines": [],
        "controls": [{"recipe": "a", "expected": "equal", "outcome": "perhaps"}],
        "measurements": [],
    }
)
"""An outcome that there is none of."""

# A child of the test that runs the command line with these recipes alone: real controls have full sizes.
DRIVER = """
    import sys, msgspec
    from d9mlint.verify import command
    from d9mlint.verify.recipes import Recipe

    own = msgspec.convert({recipes!r}, list[Recipe])
    command.load_recipes = lambda: own
    from d9mlint.cli.app import run
    sys.exit(run(sys.argv[1:]))
"""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parent.parent), **more}


def d9mlint(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "d9mlint", *arguments],
        cwd=cwd,
        env=environment(**env),
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


def driver(directory: Path, recipes: list[dict[str, object]]) -> list[str]:
    controls = [
        recipe("same", "return i.x * 2", control="equal"),
        recipe("random", "return torch.rand(8)", control="differs"),
    ]
    file = directory / "driver.py"
    file.write_text(textwrap.dedent(DRIVER).format(recipes=[*recipes, *controls]))
    return [sys.executable, str(file)]


def recipe(name: str, fn: str, **fields: object) -> dict[str, object]:
    about = {"id": name, "api": name, "phase": "forward", "library": "torch", "make": "return dict(x=rn(64))"}
    return {**about, "fn": fn, **fields}


def left_behind(mark: str) -> list[int]:
    """Processes that carry a mark in their environment."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if f"D9MLINT_TEST={mark}".encode() in (entry / "environ").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                pass
    return found


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("project")
    (directory / "train.py").write_text(textwrap.dedent(PROGRAM))
    (directory / "pyproject.toml").write_text("")
    (directory / "future.json").write_text('{"schema": 3, "nodes": []}')
    (directory / "odd.json").write_text(ODD)
    return directory


@pytest.fixture(scope="module")
def verified(project: Path) -> subprocess.CompletedProcess[str]:
    """The main job with evidence, on the CPU. A race need not strike on a busy machine: asked again."""
    for _ in range(15):
        done = d9mlint("--verify", "--device", "cpu", "--evidence", "seen.json", ".", cwd=project)
        if VERDICTS in done.stdout and "known race index_put_accumulate reproduced" in done.stdout:
            break
    return done


def test_each_finding_ends_with_a_verdict(verified: subprocess.CompletedProcess[str]) -> None:
    out = verified.stdout
    assert verified.returncode == 1, verified.stderr
    whole, put, pad = out.index("DET401 `torch.put`"), out.index("DET401 `put_`"), out.index("DET401 `F.pad`")
    known, unknown = out[whole:put], " ".join(out[put:pad].split())
    assert "note: confirmed: " in known
    assert "runs distinct on the CPU, torch 2" in known
    assert "this call was run" in known
    # The shapes of what comes from other calls are not known.
    assert "note: the op can differ: " in unknown
    assert (
        "(measured with default shapes: float32, 1-D, 4.2M elements); this call was not measured" in unknown
    )
    assert "deterministic mode: equal in 5 runs" in unknown
    assert "note: equal in 5 runs at this size on the CPU" in out[pad:]
    assert "run with this call's pad=[1, 1]; the rest of the call is not known" in " ".join(out[pad:].split())
    assert "CPU results do not apply to GPUs" in " ".join(out[pad:].split())
    ends = " ".join(out[out.index("\nVerdicts\n") :].split())
    # Two of the runs may be equal by chance.
    assert re.search(r"train.py:12:15 DET401 torch.put confirmed: [2-5] of 5 runs distinct on the CPU", ends)
    assert re.search(
        r"train.py:14:39 DET401 torch.Tensor.put_ the op can differ: [2-5] of 5 runs distinct on the CPU",
        ends,
    )
    assert "train.py:15:13 DET401 torch.nn.functional.pad equal in 5 runs at this size on the CPU" in ends
    assert VERDICTS in out


def test_what_was_measured_is_printed_with_its_controls(verified: subprocess.CompletedProcess[str]) -> None:
    out = verified.stdout
    assert "CPU evidence, which does not apply to GPUs" in out
    assert "torch.Tensor.put_ (put_accumulate), forward" in out
    assert "V_ermv" in out
    assert "controls passed: " in out
    assert "known race index_put_accumulate reproduced" in out


def test_equality_is_never_called_deterministic(verified: subprocess.CompletedProcess[str]) -> None:
    measured = verified.stdout[verified.stdout.index("Measured on ") :]
    # What is quoted is the name of a remedy.
    measured = re.sub(r"`[^`]*`", "", " ".join(measured.split()))
    assert "deterministic" not in measured.replace("deterministic mode", "")


def test_progress_says_what_is_running(verified: subprocess.CompletedProcess[str]) -> None:
    assert "running put_accumulate on CPU (2 of " in verified.stderr


def test_evidence_is_written_and_read_back(project: Path, verified: subprocess.CompletedProcess[str]) -> None:
    document = json.loads((project / "seen.json").read_text())
    assert document["runs"] == 5
    assert {c["expected"] for c in document["controls"]} == {"equal", "differs", "race"}
    assert document["machines"][0]["versions"]["torch"]
    again = d9mlint("--evidence", "seen.json", "--output-format", "json", ".", cwd=project)
    by_subject = {
        f["message"].split("`")[1]: f["evidence"] for f in json.loads(again.stdout) if f["code"] == "DET401"
    }
    assert by_subject["put_"]["verdict"] == "can differ"
    assert by_subject["put_"]["source"] == "seen.json"
    assert by_subject["torch.put"]["verdict"] == "confirmed"
    assert by_subject["torch.put"]["summary"].startswith("observed to differ: ")
    # Equal on a CPU, which does not apply to the GPU that the finding is about: what was measured on one is shown.
    assert by_subject["F.pad"]["kind"] == "cuda"
    assert by_subject["F.pad"]["source"] != "seen.json"
    (project / "d9mlint.toml").write_text('evidence = ["seen.json"]\n')
    configured = d9mlint("--config", "d9mlint.toml", "--output-format", "json", ".", cwd=project)
    (project / "d9mlint.toml").unlink()
    assert configured.stdout == again.stdout


def test_json_and_sarif_carry_the_evidence(project: Path, verified: subprocess.CompletedProcess[str]) -> None:
    options = ("--verify", "--device", "cpu", "--runs", "2", "--quiet", ".")
    found = d9mlint("--output-format", "json", *options, cwd=project)
    verdicts = {f["code"]: f["evidence"] for f in json.loads(found.stdout)}
    assert verdicts["DET401"]["verdict"] in ("confirmed", "can differ", "equal")
    assert verdicts["DET401"]["kind"] == "cpu"
    assert verdicts["DET401"]["measurements"][0]["outputs"]
    # About the whole program: a synthetic training run.
    assert verdicts["DET302"]["setting"]["probe"] == "deterministic_mode"
    assert verdicts["DET302"]["verdict"] in ("confirmed", "equal")
    assert found.stderr == ""
    again = ("--output-format", "sarif", "--evidence", "seen.json", ".")
    sarif = json.loads(d9mlint(*again, cwd=project).stdout)
    results = [r for r in sarif["runs"][0]["results"] if r["ruleId"] == "DET401"]
    assert results[0]["properties"]["evidence"]["controls_passed"] is True


@pytest.mark.full
def test_an_op_can_be_named_without_linting(project: Path) -> None:
    ops = ("--op", "put_", "--op", "torch.nn.functional.gelu")
    done = d9mlint("--verify", *ops, "--device", "cpu", "--runs", "2", cwd=project)
    assert done.returncode == 0, done.stderr
    assert "torch.Tensor.put_" in done.stdout
    assert "torch.nn.functional.gelu, forward+backward [weak]" in done.stdout
    assert "DET401" not in done.stdout


@pytest.mark.full
def test_a_name_under_which_nothing_could_be_run_is_an_error(project: Path) -> None:
    done = d9mlint("--verify", "--op", "torch.nosuch", "--device", "cpu", "--quiet", cwd=project)
    assert done.returncode == 2
    assert "has no sample of torch.nosuch" in done.stdout
    assert done.stderr == "error: none of the named ops and settings could be run.\n"


@pytest.mark.full
def test_what_fixing_leaves_is_measured(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(PROGRAM) + "torch.backends.cudnn.benchmark = True\n")
    options = ("--select", "DET301,DET401", "--device", "cpu", "--runs", "2", "--quiet", ".")
    done = d9mlint("--verify", "--fix", *options, cwd=tmp_path)
    assert "cudnn.benchmark = False" in (tmp_path / "train.py").read_text()
    assert "\nVerdicts\n" in done.stdout and "DET301" not in done.stdout


SWITCHED = """
    import tensorflow as tf

    tf.keras.utils.set_random_seed(0)
    weight = tf.Variable(tf.zeros([20, 4]))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(weight, [3, 3, 7]))
    print(tape.gradient(loss, weight))
"""


@needs("tensorflow")
@pytest.mark.full
def test_ops_that_one_switch_remedies_are_run_each(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(textwrap.dedent(SWITCHED))
    options = ("--runs", "2", "--quiet", "--output-format", "concise", ".")
    plain = ("--quiet", "--output-format", "concise", ".")
    assert "DET403" not in d9mlint(*plain, cwd=tmp_path).stdout
    evidence = str(tmp_path / "evidence.json")
    measured = d9mlint("--verify", "--evidence", evidence, *options, cwd=tmp_path)
    (line,) = (line for line in measured.stdout.splitlines() if "DET403" in line)
    assert "advice: DET403 `tf.gather`" in line and "[equal in 2 runs on the CPU]" in line
    known = d9mlint("--evidence", evidence, *plain, cwd=tmp_path)
    assert "advice: DET403 `tf.gather`" in known.stdout


@pytest.mark.full
def test_measurements_alone_as_json_and_html(tmp_path: Path) -> None:
    command = driver(tmp_path, [recipe("fine", "return i.x + 1")])

    def measured(form: str) -> subprocess.CompletedProcess[str]:
        options = ("--verify", "--op", "fine", "--runs", "2", "--device", "cpu", "--output-format", form)
        return subprocess.run(
            [*command, *options], env=environment(), capture_output=True, text=True, check=False
        )

    assert json.loads(measured("json").stdout)["measurements"][0]["recipe"] == "fine"
    assert "<svg" in measured("html").stdout
    refused = measured("sarif")
    assert refused.returncode == 2
    assert "--output-format sarif needs findings" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--verify", "--op", "tak_backward"],
            "There is no recipe for tak_backward. Did you mean take_backward?",
        ),
        (["--runs", "3", "."], "--runs requires --verify."),
        (["--all"], "--all requires --verify."),
        (["--verify", "--device", "cuda:x"], "'cuda:x' is not one of cuda, cuda:N, cpu"),
        (["--verify", "--runs", "1"], "1 is not in the range x>=2"),
        (
            ["--verify", "--op", "put_", "--device", "cuda:99", "--require-device"],
            "torch sees no cuda:99 here",
        ),
        (["--evidence", "missing.json", "."], "missing.json cannot be read: No such file or directory."),
        (["--evidence", "train.py", "."], "train.py is not an evidence file of this version"),
        (["--evidence", "future.json", "."], "future.json has evidence of schema 3; this version reads 2."),
        (["--evidence", "odd.json", "."], "odd.json is not an evidence file of this version: Expected `str`"),
        (["--verify", "--op", "put_", "--evidence", "train.py/a.json"], "train.py/a.json cannot be written"),
        (["--verify", "--op", "put_", "--evidence", "."], ". cannot be written: Is a directory."),
        (["--verify", "--op", "put_", "-o", "train.py/a.txt"], "train.py/a.txt cannot be written"),
        (["--verify", "--op", "put_", "--timeout", "inf"], "inf is not in the range"),
    ],
)
def test_wrong_requests_are_refused(project: Path, arguments: list[str], message: str) -> None:
    done = d9mlint(*arguments, cwd=project)
    assert done.returncode == 2
    assert message in done.stderr
    # Found before anything is measured.
    assert "running" not in done.stderr
    assert "Traceback" not in done.stderr


def test_nothing_to_run_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("import random\nprint(random.random())\n")
    done = d9mlint("--verify", ".", cwd=tmp_path)
    assert "None of the findings is about an op that can be run." in done.stderr
    assert done.returncode == 1


def test_a_framework_that_can_not_be_imported_is_named(project: Path, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text("raise ImportError('libcudart.so.12 is missing')\n")
    path = f"{tmp_path}{os.pathsep}{Path(__file__).resolve().parent.parent}"
    done = d9mlint("--verify", "--quiet", ".", cwd=project, PYTHONPATH=path)
    assert done.returncode == 2
    assert (
        "error: torch cannot be imported (ImportError: libcudart.so.12 is missing); install it with: pip"
        in done.stderr
    )
    # The findings are due all the same, without a word of measurements.
    assert "DET401" in done.stdout
    assert "controls" not in done.stdout
    assert "Measured on" not in done.stdout


def test_a_missing_gpu_is_said_and_the_parent_imports_no_framework(project: Path) -> None:
    code = (
        "import sys\nfrom d9mlint.cli.app import run\n"
        "status = run(['--verify', '--op', 'take_backward', '--runs', '2', '--device', 'cuda:99'])\n"
        "print(status, sorted({'torch', 'tensorflow', 'numpy'} & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.splitlines()[-1] == "0 []"
    assert "No GPU found; measured on CPU. These results do not apply to GPUs." in done.stderr


def test_a_failed_control_is_the_last_word(tmp_path: Path) -> None:
    lies = recipe("lies", "return torch.rand(4)", control="equal")
    command = driver(tmp_path, [recipe("fine", "return i.x + 1"), lies])
    done = subprocess.run(
        [*command, "--verify", "--op", "fine", "--device", "cpu"],
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "A control failed" in done.stdout
    assert "the other lines are not evidence" in done.stdout
    assert "A control of torch failed: its measurements are not evidence." in done.stderr


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux" or not shutil.which("gcc"), reason="builds a library for Linux")
def test_where_importing_starts_cuda_each_op_is_a_process_from_the_start(tmp_path: Path) -> None:
    # A driver that was started: a fork could not use it any more.
    source = tmp_path / "cuda.c"
    source.write_text("int cuDeviceGetCount(int *count) { *count = 1; return 0; }\n")
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    how = "with open('/proc/self/cmdline') as f: raise ValueError('from the start' if 'recipe' in f.read() else '')"
    done = subprocess.run(
        [
            *driver(tmp_path, [recipe("how", how)]),
            "--verify",
            "--op",
            "how",
            "--device",
            "cpu",
            "--runs",
            "2",
        ],
        env=environment(LD_LIBRARY_PATH=str(tmp_path)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert "not run: ValueError: from the start" in done.stdout, done.stderr
    assert "controls passed: " in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="processes are looked for in /proc")
@pytest.mark.parametrize(
    "how", [pytest.param(signal.SIGINT, marks=pytest.mark.full), signal.SIGTERM, signal.SIGKILL]
)
@pytest.mark.full
def test_no_process_is_left_behind(tmp_path: Path, how: signal.Signals) -> None:
    # The op starts a process of its own and hangs.
    hang = "import subprocess, time\nsubprocess.Popen(['sleep', '600'])\ntime.sleep(600)"
    mark = uuid.uuid4().hex
    process = subprocess.Popen(
        [*driver(tmp_path, [recipe("hang", hang)]), "--verify", "--op", "hang", "--device", "cpu"],
        env=environment(D9MLINT_TEST=mark),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    # This one, the server, the op and what the op has started.
    limit = time.monotonic() + 300
    while len(left_behind(mark)) < 4 and time.monotonic() < limit:
        time.sleep(0.1)
    assert len(left_behind(mark)) == 4
    process.send_signal(how)
    _, errors = process.communicate(timeout=300)
    if how is signal.SIGINT:
        assert process.returncode in (130, -signal.SIGINT)
        assert "Traceback" not in errors or "KeyboardInterrupt" in errors
    limit = time.monotonic() + 300
    while left_behind(mark) and time.monotonic() < limit:
        time.sleep(0.1)
    assert left_behind(mark) == []


@pytest.mark.parametrize(
    "how",
    [
        signal.SIGINT,
        signal.SIGTERM,
        pytest.param(signal.SIGHUP, marks=pytest.mark.full),
        pytest.param(signal.SIGQUIT, marks=pytest.mark.full),
    ],
)
@pytest.mark.full
def test_an_interrupted_session_tells_what_is_known(tmp_path: Path, how: signal.Signals) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    recipes = [recipe("fine", "return i.x + 1"), recipe("hang", "import time\ntime.sleep(600)")]
    arguments = ("--verify", "--op", "fine", "--op", "hang", "--device", "cpu")
    process = subprocess.Popen(
        [*driver(tmp_path, recipes), *arguments, "--evidence", str(tmp_path / "part.json")],
        env=environment(TMPDIR=str(scratch)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("running hang"):
            break
    process.send_signal(how)
    # A second one does not disturb the cleaning up.
    process.send_signal(how)
    out, errors = process.communicate(timeout=300)
    assert process.returncode == 130
    assert errors == "Interrupted: some ops were not run.\n"
    assert "interrupted before it was done" in out
    rows = json.loads((tmp_path / "part.json").read_text())["measurements"]
    assert {(row["recipe"], row["outcome"]) for row in rows} == {("fine", "equal"), ("hang", "not run")}
    assert list(scratch.iterdir()) == []


@pytest.mark.full
def test_a_killed_session_leaves_one_directory_that_the_next_removes(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    litter = "import tempfile, time\ntempfile.mkdtemp()\ntempfile.mkstemp()\n"
    recipes = [recipe("hang", litter + "time.sleep(600)"), recipe("litter", litter + "return i.x + 1")]
    command = [*driver(tmp_path, recipes), "--verify", "--device", "cpu", "--runs", "2", "--op"]
    process = subprocess.Popen(
        [*command, "hang"],
        env=environment(TMPDIR=str(scratch)),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(b"running hang"):
            break
    process.kill()
    process.communicate(timeout=300)
    assert [path.name.startswith("d9mlint-verify-") for path in scratch.iterdir()] == [True]
    # One that is in use stays.
    used = scratch / "d9mlint-verify-used"
    used.mkdir()
    with (used / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = subprocess.run(
            [*command, "litter"],
            env=environment(TMPDIR=str(scratch)),
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    assert list(scratch.iterdir()) == [used]


def test_verify_is_a_command_with_its_own_help(project: Path) -> None:
    for command in (["verify", "--help"], None):
        if command is None:
            run = [sys.executable, "-m", "d9mlint.verify", "--help"]
            done = subprocess.run(
                run, cwd=project, env=environment(), capture_output=True, text=True, check=False
            )
        else:
            done = d9mlint(*command, cwd=project)
        assert done.returncode == 0, done.stderr
        for option in ("--op", "--all", "--settings", "--collectives", "--runs", "--thorough", "--device"):
            assert option in done.stdout
        for option in ("--require-device", "--seed", "--timeout", "--evidence"):
            assert option in done.stdout
        assert "--add-noqa" not in done.stdout
    done = d9mlint("verify", "--collectives", cwd=project)
    assert done.returncode == 2
    assert "torchrun --standalone --nproc-per-node 3 -m d9mlint.verify --collectives" in done.stderr
    done = d9mlint("verify", "--collectives", "--all", cwd=project)
    assert (done.returncode, done.stderr) == (
        2,
        "error: --collectives cannot be combined with --every.\n".replace("every", "all"),
    )


@pytest.mark.full
def test_a_setting_is_shown_by_name(project: Path, tmp_path: Path) -> None:
    options = ("--setting", "resume_optimizer", "--setting", "cudnn_benchmark", "--device", "cpu")
    done = d9mlint("verify", *options, "--evidence", str(tmp_path / "e.json"), cwd=project)
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert (
        "checkpoint without the optimizer state confirmed: differs from the uninterrupted run; with" in text
    )
    assert "convolutions with cudnn.benchmark = True not run: needs a GPU" in text
    assert "controls" not in text
    settings = {s["probe"]: s for s in json.loads((tmp_path / "e.json").read_text())["settings"]}
    assert settings["resume_optimizer"]["outcome"] == "fixed"
    assert settings["cudnn_benchmark"]["outcome"] == "not run"
    unknown = d9mlint("verify", "--setting", "cudnn_benchmrk", cwd=project)
    assert unknown.returncode == 2
    assert "There is no setting cudnn_benchmrk. Did you mean cudnn_benchmark?" in unknown.stderr


def test_there_is_one_line_first_where_nothing_can_be_run(project: Path, tmp_path: Path) -> None:
    nowhere = d9mlint(
        "verify",
        "--op",
        "put_",
        "--device",
        "cpu",
        cwd=project,
        TMPDIR=str(tmp_path / "none"),
        TMP="",
        TEMP="",
    )
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "torch.py").write_text("raise ImportError('no CUDA runtime')\n")
    path = f"{blocked}{os.pathsep}{Path(__file__).resolve().parent.parent}"
    missing = d9mlint("verify", "--op", "put_", "--device", "cpu", cwd=project, PYTHONPATH=path)
    assert missing.returncode == 2
    assert missing.stderr.splitlines()[0].startswith(
        "error: torch cannot be imported (ImportError: no CUDA runtime)"
    )
    assert missing.stdout == ""
    gpu = d9mlint("verify", "--op", "put_", "--device", "cuda:99", "--require-device", cwd=project)
    assert (gpu.returncode, gpu.stderr.splitlines()[0]) == (
        2,
        "error: --require-device: torch sees no cuda:99 here (no GPU).",
    )
    # Where the named directory does not exist, Python takes another.
    assert nowhere.returncode == 0
