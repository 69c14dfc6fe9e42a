"""Analysis runs that are cut off are reported, whatever cut them, and never called clean."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from d9mlint.config.settings import Settings
from d9mlint.interp import entry_run, interpreter
from d9mlint.pipeline import Result, check
from d9mlint.report import render
from d9mlint.report.common import Options

DEEP = (
    "\n".join(f"def f{k}(x):\n    return f{k + 1}(x)\n" for k in range(100))
    + "\ndef f100(x):\n    return x\n"
)
SEEDED = "import torch\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n    print(torch.rand(3))\n"
LONG = "def f(x, y):\n" + "    x = x + y\n" * 50 + "    return x\n"


def lint(root: Path, files: dict[str, str], **values: object) -> Result:
    (root / "pyproject.toml").touch()
    for name, text in files.items():
        (root / name).write_text(text)
    return check([str(root)], Settings(cache=False, **values))  # type: ignore[arg-type]


def only(result: Result) -> str:
    """The message of the one finding, which is DET004 and stands beside no other."""
    assert [item.finding.code for item in result.items] == ["DET004"]
    assert result.incomplete == 1
    return result.items[0].finding.message


def test_calls_that_nest_too_deeply(tmp_path: Path) -> None:
    result = lint(tmp_path, {"deep.py": f"{DEEP}\nif __name__ == '__main__':\n    f0(1)\n"})
    assert "nested too deeply" in only(result)
    assert result.items[0].finding.flow[0].path.endswith("deep.py")


def test_a_budget_that_is_used_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interpreter, "MAX_STEPS", 1000)
    calls = "".join(f"    print(f({k}, torch.zeros({k})))\n" for k in range(30))
    result = lint(tmp_path, {"long.py": f"import torch\n\n{LONG}\nif __name__ == '__main__':\n{calls}"})
    message = only(result)
    assert "1,000 steps" in message and "findings may be missing" in message


def test_a_program_has_fewer_steps_in_a_very_large_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "MAX_STEPS", 2000)
    calls = "".join(f"    print(f({k}, torch.zeros({k})))\n" for k in range(30))
    files = {"long.py": f"import torch\n\n{LONG}\nif __name__ == '__main__':\n{calls}"}
    assert not lint(tmp_path, files).items
    monkeypatch.setattr(entry_run, "MOST_FILES", 4)
    files |= {f"other{k}.py": f"x = {k}\n" for k in range(3)}
    assert not lint(tmp_path, files).items
    assert "500 steps" in only(lint(tmp_path, files | {f"more{k}.py": f"x = {k}\n" for k in range(5)}))


def test_what_is_left_when_the_budget_is_used_up_is_bounded_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreter, "MAX_STEPS", 300)
    result = lint(tmp_path, {"long.py": "x = 1\nprint(x)\n" * 2000})
    assert "300 steps" in only(result)


def test_code_that_no_entry_point_reaches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entry_run, "UNREACHED_STEPS", 300)
    monkeypatch.setattr(entry_run, "LEAST_STEPS", 100)
    functions = "".join(LONG.replace("def f", f"def f{k}") for k in range(20))
    result = lint(tmp_path, {"library.py": functions, "train.py": SEEDED})
    assert "no entry point reaches" in only(result)


@pytest.mark.parametrize("error", [RecursionError("x"), ZeroDivisionError("a defect")])
def test_an_exception(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    eval_ = interpreter.Interp.eval

    def failing(self: interpreter.Interp, node: object) -> object:
        if getattr(node, "id", "") == "fails":
            raise error
        return eval_(self, node)  # type: ignore[arg-type]

    monkeypatch.setattr(interpreter.Interp, "eval", failing)
    message = only(lint(tmp_path, {"a.py": "print(fails)\n", "train.py": SEEDED}))
    assert ("nested too deeply" if isinstance(error, RecursionError) else "a defect") in message


def test_every_output_says_so_and_the_exit_code_does_not_change(tmp_path: Path) -> None:
    program = f"{DEEP}\nif __name__ == '__main__':\n    f0(1)\n"
    result = lint(tmp_path, {"deep.py": program})
    for form in ("full", "concise", "grouped"):
        assert "1 analysis run cut off (DET004)" in render(result, form, Options(str(tmp_path)))
    ignored = lint(tmp_path, {}, ignore=("DET004",))
    assert ignored.items == ()
    text = render(ignored, "full", Options(str(tmp_path)))
    assert "No findings" in text and "1 analysis run cut off" in text
    command = [
        sys.executable,
        "-m",
        "d9mlint",
        "--output-format",
        "json",
        "--fail-on",
        "advice",
        str(tmp_path),
    ]
    for _ in range(2):  # the second time from the cache
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert [f["code"] for f in json.loads(done.stdout)] == ["DET004"]
        assert "1 analysis run cut off" in done.stderr
        assert done.returncode == 0


def test_a_program_that_is_followed_to_its_end_is_complete(tmp_path: Path) -> None:
    result = lint(tmp_path, {"train.py": SEEDED})
    assert (result.items, result.incomplete) == ((), 0)
    assert "cut off" not in render(result, "full", Options(str(tmp_path)))


BOMBS = {
    "product": "x = 9 ** 60\n" + "x = x * x\n" * 60 + "print(x)\n",
    "product in place": "x = 9 ** 60\n" + "x *= x\n" * 60,
    "list": "x = [1, 2]\n" + "x = x + x\n" * 60,
    "list in place": "x = [1, 2]\n" + "x += x\n" * 60,
    "nested list": "x = [1]\n" + "x = [x, x]\n" * 200 + "def f(a):\n    return a\nf(x)\nprint(x)\n",
    "nested tuple": "x = (1,)\n" + "x = (x, x)\n" * 200 + "def f(a):\n    return a\nf(x)\n",
    "nested mapping": "x = {'a': 1}\n" + "x = {'a': x, 'b': x}\n" * 200 + "def f(a):\n    return a\nf(x)\n",
    "string": "x = 'ab'\n" + "x = x + x\n" * 60 + "print(f'{x}{x}')\n",
    "width": "x = '%999999999d' % 1\ny = f'{1:>999999999}'\nz = 'a' * 999999999\nw = [0] * 999999999\n",
    "comprehensions": "x = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n" + "x = [[y for y in x] for z in x]\n" * 40,
    "loops": "r = [1, 2, 3, 4, 5, 6, 7, 8, 9]\n"
    + "".join(" " * k + f"for a{k} in r:\n" for k in range(12))
    + " " * 12
    + "print(r)\n",
    "branches": "".join(
        f"if a{k}:\n    x{k} = 1\nelse:\n    x{k} = [x{max(k - 1, 0)}]\n" for k in range(200)
    ),
    "calls": "".join(f"def f{k}(x):\n    return f{k + 1}([x, 1]), f{k + 1}((x, 2))\n" for k in range(40))
    + "def f40(x):\n    return x\nf0(1)\n",
    "shift": "x = 1 << 999999999999\ny = 10 ** 999999999\nz = 10.0 ** 999999\n",
}


SLOW = ("calls", "branches", "comprehensions", "width", "loops")


@pytest.mark.parametrize("name", [pytest.param(n, marks=pytest.mark.full) if n in SLOW else n for n in BOMBS])
def test_values_do_not_grow_without_bound(name: str, tmp_path: Path) -> None:
    """In another process, with limits of CPU time and memory far above what the analysis takes."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "bomb.py").write_text(BOMBS[name])
    limits = "import resource as r; r.setrlimit(r.RLIMIT_CPU, (240, 240)); r.setrlimit(r.RLIMIT_AS, (4 << 30, 4 << 30)); "
    code = f"{limits}import sys; from d9mlint.cli.app import run; sys.exit(run(sys.argv[1:]))"
    command = [sys.executable, "-c", code, "--no-cache", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode in (0, 1), (done.returncode, done.stdout, done.stderr)
    assert "internal error" not in done.stdout


CALLS = """
import torch

seen = {}


def note(name):
    torch.manual_seed(0)
    seen[name] = len(seen)
    for known in seen:
        x = known
"""


def test_a_function_that_finds_other_circumstances_at_every_call(tmp_path: Path) -> None:
    """It is not run for ever, that is said, and what it does to the program still counts at its later calls."""
    body = "    x = x + 1\n" * 100
    calls = "".join(f"note('name {k}')\n" for k in range(400))
    result = lint(tmp_path, {"a.py": f"{CALLS}{body}\n{calls}\nprint(torch.rand(3))\n"})
    assert "called in too many different circumstances" in only(result)


WRAPPED = """
import functools

import torch


def measured(fn):
    @functools.wraps(fn)
    def wrapper(*args, **kwargs):
        with torch.autograd.profiler.record_function(fn.__name__):
            return fn(*args, **kwargs)

    return wrapper
"""


def test_a_wrapper_of_many_functions_is_not_one_function_that_is_called_too_often(tmp_path: Path) -> None:
    """What it gives is that of the function that it calls, and the analysis is not cut off."""
    body = "    x = x + 1\n" * 400
    parts = "".join(f"@measured\ndef part{k}(x):\n{body}    return x\n" for k in range(40))
    calls = "".join(f"x = part{k}(x)\n" for k in range(40))
    start = "@measured\ndef start():\n    return torch.rand(3)\n"
    result = lint(
        tmp_path, {"a.py": f"{WRAPPED}{parts}{start}x = torch.ones(3)\n{calls}print(x + start())\n"}
    )
    assert [item.finding.code for item in result.items] == ["DET101"]


PARTIAL = """
import functools
import torch
import torch.nn.functional as F


def activation(slope):
    return functools.partial(F.leaky_relu, negative_slope=slope)


def noise(p):
    return functools.partial(F.dropout, p=p)


def block(x, act):
"""


@pytest.mark.parametrize(("last", "codes"), [("activation(0.2)", []), ("noise(0.2)", ["DET101"])])
def test_a_function_that_is_given_the_same_partial_call_does_the_same(
    last: str, codes: list[str], tmp_path: Path
) -> None:
    """Each call makes it, and it is the function and the arguments that tell it apart."""
    body = "    x = act(x)\n" + "    x = x + 1\n" * 400
    calls = "    x = block(x, activation(0.2))\n" * 40
    start = "if __name__ == '__main__':\n    x = torch.ones(3)\n"
    program = f"{PARTIAL}{body}    return x\n\n\n{start}{calls}    print(block(x, {last}))\n"
    result = lint(tmp_path, {"a.py": program})
    assert ([item.finding.code for item in result.items], result.incomplete) == (codes, 0)
