"""Options, hints and formats that people who know other linters expect."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import ROOT

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

BENCHMARK = "import torch\n\ntorch.backends.cudnn.benchmark = True\n"
LISTING = "import os\n\nimport numpy as np\n\nnames = np.array(os.listdir('d'))\nnp.save('x.npy', names)\n"


def test_suggestions_are_close_or_absent(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK})
    for arguments in (["--frob"], ["--wobble"], ["rule", "DET99"], ["--select", "xyz3"]):
        assert "Did you mean" not in run(*arguments, cwd=root).err, arguments
    assert "Did you mean --select?" in run("--selct", cwd=root).err
    assert "Did you mean seeds?" in run("rule", "seedz", cwd=root).err
    assert "Did you mean DET301?" in run("--select", "det301", cwd=root).err
    assert "Try 'd9mlint check --help' for help." in run("--frob", cwd=root).err


def test_no_python_files_is_a_warning(run: Run, project: Project) -> None:
    got = run(cwd=project({"readme.txt": ""}))
    assert got.code == 0 and "warning: No Python files or notebooks were found in" in got.err


def test_files_checked_are_counted(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK, "b.py": "", "c.py": ""})
    assert "Found 1 finding in 1 file (1 error; 3 files checked)." in run(cwd=root).out


def test_ignoring_options_of_the_command_line(run: Run, project: Project) -> None:
    root = project(
        {"a.py": BENCHMARK, "lib/b.py": BENCHMARK, "pyproject.toml": "[tool.d9mlint]\nignore = ['DET101']\n"}
    )

    def files(*options: str) -> set[str]:
        return {
            Path(f["filename"]).name for f in json.loads(run(*options, "--output-format=json", cwd=root).out)
        }

    assert files() == {"a.py", "b.py"}
    assert files("--extend-ignore", "DET301") == set()
    assert files("--per-file-ignores", "lib/*:DET301") == {"a.py"}
    assert files("--exclude", "lib", "lib/b.py") == {"b.py"}
    assert files("--exclude", "lib", "--force-exclude", "lib/b.py") == set()


def test_suppressed_findings_can_be_shown(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK.rstrip() + "  # d9mlint: ignore[DET301]\n"})
    assert run(cwd=root).code == 0
    assert "DET301" in run("--ignore-noqa", cwd=root).out


def test_files_versions_and_verbosity(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK, "b.py": ""})
    assert [Path(line).name for line in run("--show-files", cwd=root).out.splitlines()] == ["a.py", "b.py"]
    assert run("-V", cwd=root).out.startswith("d9mlint ")
    told = run("-v", "--no-cache", cwd=root).err
    assert "2 files read, 2 files reported" in told
    assert "most CPU time in checks: a.py" in told


def test_severities_and_the_required_version_are_configured(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK, "d9mlint.toml": '[severity]\nDET3 = "error"\nDET301 = "warning"\n'})
    assert ": warning: DET301" in run("--output-format=concise", cwd=root).out
    # What is made advice is reported still, and is no reason to fail.
    (root / "d9mlint.toml").write_text('[severity]\nDET301 = "advice"\n')
    got = run("--output-format=concise", cwd=root)
    assert ": advice: DET301" in got.out and got.code == 0
    assert "DET301" not in run("--min-severity=warning", cwd=root).out
    (root / "d9mlint.toml").write_text('required-version = ">=99"\n')
    got = run(cwd=root)
    assert got.code == 2 and "d9mlint.toml:1" in got.err and "required-version is >=99" in got.err
    (root / "d9mlint.toml").write_text('[severity]\nDET301 = "bad"\n')
    assert "d9mlint.toml:2: severity: DET301 must be one of advice, warning, error" in run(cwd=root).err


def test_comments_survive_ruff_unless_noqa_is_asked_for(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK})
    assert run("--add-noqa", cwd=root).code == 0
    path = root / "a.py"
    assert path.read_text().endswith("= True  # d9mlint: ignore[DET301]\n")
    ruff = [sys.executable, "-m", "ruff", "check", "--isolated", "--select=RUF", "--fix", "-q", str(path)]
    subprocess.run(ruff, check=True)
    assert "d9mlint: ignore[DET301]" in path.read_text() and run(cwd=root).code == 0
    path.write_text(BENCHMARK)
    run("--add-noqa", "--noqa-style=noqa", cwd=root)
    assert path.read_text().endswith("= True  # noqa: DET301\n")


def test_stale_entries_of_a_baseline_are_counted_and_pruned(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK, "b.py": BENCHMARK})
    known = ("--baseline", "known.json")
    assert run(*known, "--update-baseline", cwd=root).code == 0
    (root / "a.py").write_text("import torch\n")
    (root / "b.py").unlink()
    assert "2 entries of the baseline no longer match a finding" in run(*known, cwd=root).out
    assert run(*known, "--prune-baseline", cwd=root).out == "Removed 2 entries from known.json.\n"
    assert json.loads((root / "known.json").read_text())["findings"] == []
    assert "no longer" not in run(*known, cwd=root).out


def test_update_baseline_with_diff_from_touches_changed_lines_only(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK, "b.py": f"import a\n{LISTING}"})
    git = ["git", "-c", "user.name=t", "-c", "user.email=t@t.example"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-qm", "x"]):
        subprocess.run([*git, *arguments], cwd=root, check=True)
    (root / "a.py").write_text(BENCHMARK + "\n\ndef f():\n    torch.backends.cudnn.benchmark = True\n")
    got = run("--baseline", "known.json", "--update-baseline", "--diff-from", "HEAD", cwd=root)
    assert got.out == "Added 1 finding to known.json.\n"
    entries = json.loads((root / "known.json").read_text())["findings"]
    assert [(e["path"], e["scope"]) for e in entries] == [("a.py", "f")]


def test_rules_are_listed_by_prefix_and_family(run: Run, project: Project) -> None:
    root = project({})
    listed = run("rule", "DET30", cwd=root).out.splitlines()
    assert len(listed) > 5 and all(line.startswith("DET30") for line in listed)
    assert run("rule", "seeds", cwd=root).out.startswith("DET101  missing-torch-seed: ")
    page = run("rule", "DET301", cwd=root).out
    assert page.splitlines()[2].startswith(
        "error | high confidence | on by default | fix is sometimes available"
    )
    assert "# error: [" not in page and "```python fixed" not in page


@pytest.mark.parametrize("output_format", ["sarif", "gitlab"])
def test_paths_for_a_server_start_at_the_top_of_the_repository(
    run: Run, project: Project, output_format: str
) -> None:
    root = project({"services/a/a.py": BENCHMARK, "services/a/pyproject.toml": ""})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    data: Any = json.loads(run("services/a", f"--output-format={output_format}", cwd=root).out)
    if output_format == "gitlab":
        assert [f["location"]["path"] for f in data] == ["services/a/a.py"]
        return
    place = data["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "services/a/a.py"
    rules = data["runs"][0]["tool"]["driver"]["rules"]
    assert [r["id"] for r in rules if "markdown" in r["help"]] == ["DET301"]


def test_a_fix_is_one_suggestion_for_reviewdog(run: Run, project: Project) -> None:
    root = project({"a.py": LISTING})
    data = json.loads(run("--select=DET209", "--output-format=rdjson", cwd=root).out)
    [suggestion] = data["diagnostics"][0]["suggestions"]
    assert suggestion["text"] == "sorted(os.listdir('d'))"
    assert suggestion["range"]["start"] == {"line": 5, "column": 18}


def test_hints_name_the_command_of_an_option_and_the_case_of_a_prefix(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK})
    assert "It is an option of `d9mlint verify`." in run("--verify", "--collectives", cwd=root).err
    assert "unknown rule det3. Did you mean DET3?" in run("--select", "det3", cwd=root).err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--out"], "plain,--output-format"),
        (["--output-format", "gi"], "plain,github"),
        (["--select", "DET30"], "plain,DET301"),
        (["src", "--unsafe"], "plain,--unsafe-fixes"),
        (["ch"], "plain,check"),
        (["src"], "file,src"),
        (["check", "src"], "file,src"),
        (["rule", "DET30"], "plain,DET301"),
        (["config", "per"], "plain,per-file-ignores"),
        (["--output-format", "=", "gi"], "plain,github"),
        (["--output-format=gi"], "plain,github"),
        (["--config=tr"], "file,tr"),
        (["explain", "tr"], "file,tr"),
        (["rule", "cudnn-b"], "plain,cudnn-benchmark"),
        (["knows", "F.interp"], "plain,F.interpolate"),
        (["knows", "torch.nn.functional.interp"], "plain,torch.nn.functional.interpolate"),
        (["knows", "tor"], "plain,torch."),
        (["knows", "CUBLAS"], "plain,CUBLAS_WORKSPACE_CONFIG"),
        (["recipe", "F.interp"], "plain,F.interpolate"),
        (["recipe", "F.pa"], "plain,F.pad"),
        (["recipe", "index_a"], "plain,index_add"),
        (["verify", "--op", "index_a"], "plain,index_add"),
        (["verify", "--setting", "cudnn_b"], "plain,cudnn_benchmark"),
        (["--device", "x"], "plain,xpu"),
        (["--select", "DET301,DET40"], "plain,DET301,DET401"),
    ],
)
def test_the_bare_form_is_completed_like_check(words: list[str], expected: str) -> None:
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; sys.argv[0] = 'd9mlint'; from d9mlint.__main__ import main; main()",
        ],
        env={
            **os.environ,
            "COMP_WORDS": " ".join(["d9mlint", *words]),
            "COMP_CWORD": str(len(words)),
            "_D9MLINT_COMPLETE": "bash_complete",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert expected in done.stdout.splitlines(), done


TYPED = [
    ("tr", {"trace", "train.py"}),
    ("--output-format gi", {"github", "gitlab"}),
    ("--output-format=gi", {"github", "gitlab"}),
    ("--select DET301,DET40", {"DET301,DET401", "DET301,DET402"}),
    ("--config=tr", {"train.py"}),
]
"""What stands behind the program's name, and words that are offered for the last one."""
ASK = {
    "bash": "compopt() { :; }; source script; COMP_WORDS=(d9mlint @); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); "
    '_d9mlint_completion d9mlint; echo "${COMPREPLY[*]}"',
    "fish": "source script; complete -C 'd9mlint @'",
}


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_shells_offer_what_the_program_says(run: Run, project: Project, tmp_path: Path, shell: str) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    root = project({"train.py": "", "script": run("completion", shell).out})
    program = tmp_path / "d9mlint"
    program.write_text(f"#!{sys.executable}\nfrom d9mlint.__main__ import main\nmain()\n")
    program.chmod(0o755)
    env = {
        **os.environ,
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PYTHONPATH": str(ROOT),
    }
    for words, expected in TYPED:
        split = words.replace("=", " = ").split() if shell == "bash" else words.split()
        code = ASK[shell].replace("d9mlint @", "d9mlint " + " ".join(split))
        done = subprocess.run([shell, "-c", code], cwd=root, env=env, capture_output=True, text=True)
        # fish completes whole words; bash completes file names alone by itself.
        lines = done.stdout.splitlines()
        found = {line.split("\t")[0].rpartition("=")[2] for line in lines}
        if shell == "bash":
            found = set(" ".join(lines).split()) or {"train.py"}
        assert expected <= found, (words, done)


def test_versions_of_which_nothing_is_known_are_a_warning(run: Run, project: Project) -> None:
    root = project({"a.py": BENCHMARK, "requirements.txt": "torch>=99\n"})
    for _ in range(2):  # the second time from the cache
        err = run(cwd=root).err
        assert (
            "warning: PyTorch 99 (the newest version allowed by requirements.txt:1 (>=99)) is newer than"
            in err
        )
    assert "PyTorch 0.4 (set by an option" in run("--torch-version=0.4", cwd=root).err
    assert "TensorFlow 9.9 " in run("--torch-version=2.4", "--tensorflow-version=9.9", cwd=root).err
    assert run("--torch-version=2.4", cwd=root).err == ""


def test_errors_are_colored_where_colors_are_wanted(
    run: Run, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = project({"a.py": BENCHMARK})
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run("--frob", cwd=root).err.startswith("\x1b[1;31merror\x1b[0m: Unknown option")
    monkeypatch.setenv("NO_COLOR", "1")
    assert run("--frob", cwd=root).err.startswith("error: Unknown option")


def test_the_files_of_messages_have_the_base_of_their_places(run: Run, project: Project) -> None:
    code = "import torch\n\nx = torch.rand(3)\ntorch.use_deterministic_algorithms(True)\ny = x.cuda() @ x.cuda()\n"
    root = project({"one/setup.py": "", "one/train.py": code, "one/requirements.txt": "torch>=2.4,<2.5\n"})
    shown = run("one", cwd=root).out
    assert "--> one/train.py:3" in shown and "(entry point one/train.py)" in shown
    assert "the newest version allowed by one/requirements.txt:1" in shown
    own = run(cwd=root / "one").out
    assert "(entry point train.py)" in own and "allowed by requirements.txt:1" in own
    # JSON is the same wherever it is made.
    kept = [
        json.loads(run(*where, "--output-format=json", cwd=at).out)
        for where, at in (((), root / "one"), (("one",), root))
    ]
    assert kept[0] == kept[1]


def test_verify_names_the_devices_that_it_can_use(
    run: Callable[..., Any], project: Callable[..., Path]
) -> None:
    root = project({"train.py": "import torch\n"})
    done = run("--verify", "--device", "mps", "train.py", cwd=root)
    assert done.code == 2
    assert "--verify runs ops on CUDA GPUs and on the CPU, not on mps" in done.err
    done = run("verify", "--op", "cumsum", "--device", "xpu", cwd=root)
    assert done.code == 2 and "'xpu' is not one of cuda, cuda:N, cpu" in done.err
    assert run("--device", "mps", "train.py", cwd=root).code == 0


def test_what_holds_on_a_gpu_names_the_option_that_selects_it(run: Run, project: Project) -> None:
    program = (
        "import argparse\n\nimport torch\nimport torch.nn.functional as F\n\n"
        "parser = argparse.ArgumentParser()\nparser.add_argument({option!r}, {default})\n"
        "args = parser.parse_args()\ntorch.manual_seed(0)\n{mode}"
        "device = torch.device({device})\n"
        "x = torch.ones(1, 1, 4, 4, requires_grad=True, device=device)\n"
        "F.interpolate(x, scale_factor=2, mode={kernel!r}).sum().backward()\n"
    )
    flag = {"option": "--cuda", "default": "action='store_true'", "device": "'cuda' if args.cuda else 'cpu'"}
    name = {"option": "--device", "default": "default='cpu'", "device": "args.device"}
    plain = {"mode": "", "kernel": "bilinear"}
    for given, option in ((flag, "--cuda"), (name, "--device")):
        out = run("--output-format", "concise", cwd=project({"a.py": program.format(**given, **plain)})).out
        found = [line for line in out.splitlines() if " warning: " in line]
        assert [line.split()[2] for line in found] == ["DET401", "DET302"], out
        assert all(f"when `{option}` selects a GPU" in line for line in found), out
    # An op that would raise does so for some users alone.
    raising = {"mode": "torch.use_deterministic_algorithms(True)\n", "kernel": "bicubic"}
    root = project({"a.py": program.format(**flag, **raising)})
    out = run("--output-format", "concise", "--torch-version", "2.13", cwd=root).out
    assert "warning: DET402" in out and "on CUDA when `--cuda` selects a GPU" in out, out


def test_what_always_runs_on_a_gpu_names_no_option(run: Run, project: Project) -> None:
    begin = (
        "import argparse\n\nimport torch\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--cuda', action='store_true')\nargs = parser.parse_args()\ntorch.manual_seed(0)\n"
        "net, x = torch.nn.Linear(3, 1), torch.ones(2, 3)\n"
    )
    optional = "if args.cuda:\n    net.cuda()\n    x = x.cuda()\n"
    always = "torch.nn.Linear(3, 1).cuda()(torch.ones(2, 3).cuda()).sum().backward()\n"
    end = "net(x).sum().backward()\n"
    for middle, says in ((optional, True), (optional + always, False), (always + optional, False)):
        out = run(
            "--output-format", "concise", "--select", "DET302", cwd=project({"a.py": begin + middle + end})
        ).out
        assert "gradients on CUDA" in out and ("when `--cuda` " in out) is says, (middle, out)


def test_a_remedy_names_its_release_once(run: Run, project: Project) -> None:
    text = (
        "import torch\nimport torch.nn.functional as F\n\ntorch.manual_seed(0)\n"
        "x = torch.ones(1, 1, 4, 4, requires_grad=True, device='cuda')\n"
        "F.pad(x, (1, 1, 1, 1), mode='reflect').sum().backward()\n"
    )
    out = run("--select", "DET401", "--torch-version", "2.6", cwd=project({"a.py": text})).out
    assert out.count("torch >= 2.7") == 1, out
