"""Fixes that are built from the source: what they write, and what they leave as it is."""

from __future__ import annotations

import ast
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from support import Program, block_settings, make_program, notebook, split_files, write_program
from test_cases import FURTHER, _cases
from test_rule_pages import PAGES

from d9mlint.base.source import make_source
from d9mlint.config.settings import load_settings
from d9mlint.fix import builders
from d9mlint.fix_rounds import Fixed, fix
from d9mlint.frontend.problems import is_python
from d9mlint.pipeline import check

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

OF_PAGES = [
    make_program(
        f"{code}:{block.line}",
        split_files(block.text),
        {"extend-select": [code], **block_settings(block.info)},
    )
    for code, _, block, before in [*PAGES, *FURTHER]
    if before is None
]


def _fixed(root: Path, settings: dict[str, Any], overlay: dict[str, bytes] | None = None) -> Fixed:
    loaded = load_settings(str(root), overrides={"cache": False, "jobs": 1, **settings})
    return fix(lambda contents: check([str(root)], loaded, overlay=contents), overlay or {}, unsafe=True)


def _with_errors(programs: list[Program], *marks: pytest.MarkDecorator) -> list[Any]:
    return [pytest.param(one, id=one.name, marks=marks) for one in programs if one.errors]


@pytest.mark.parametrize("program", [*_with_errors(OF_PAGES), *_with_errors(_cases(), pytest.mark.full)])
def test_fixes_of_examples_parse_add_no_findings_and_are_stable(program: Program, tmp_path: Path) -> None:
    write_program(program, tmp_path)
    settings = {"cache": False, "jobs": 1, **program.settings}
    before = check([str(tmp_path)], load_settings(str(tmp_path), overrides=settings))
    # An example may be about a release from before those that are known.
    assert not [one for one in before.warnings if "the oldest release that is known" not in one]
    fixed = _fixed(tmp_path, program.settings)
    for path, data in fixed.changes.items():
        # What only an earlier Python reads, as a name `async`, this one does not.
        assert is_python(make_source(path, data).text) == is_python(
            make_source(path, Path(path).read_bytes()).text
        )
    old, new = (Counter(i.finding.code for i in r.items) for r in (before, fixed.result))
    # Only what is seeded can be asked to be independent of the batch.
    allowed = Counter(DET702=old["DET701"])
    assert not new - old - allowed, "findings that were not there before"
    assert not [i.finding.message for i in fixed.result.items if i.finding.fix is not None]
    assert not _fixed(tmp_path, program.settings, fixed.changes).changes


def _after(project: Project, code: str, *select: str, **settings: Any) -> str:
    """``train.py`` with all fixes of some rules applied."""
    root = project({"train.py": code})
    fixed = _fixed(root, {"select": list(select), **settings})
    return fixed.changes.get((root / "train.py").resolve().as_posix(), code.encode()).decode()


LOADER = """\
import torch
from torch.utils.data import DataLoader


def main(data):
    torch.manual_seed(0)
    for batch in {}:
        print(batch)


if __name__ == "__main__":
    main(torch.arange(8))
"""
GENERATOR = "generator=torch.Generator().manual_seed(0)"


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        ("DataLoader(data, shuffle=True)", f"DataLoader(data, shuffle=True, {GENERATOR})"),
        ("DataLoader(data, shuffle=True,)", f"DataLoader(data, shuffle=True, {GENERATOR})"),
        (
            "DataLoader(\n        data,\n        shuffle=True,  # every epoch\n    )",
            f"DataLoader(\n        data,\n        shuffle=True,  # every epoch\n        {GENERATOR},\n    )",
        ),
        (
            "DataLoader(\n        data, shuffle=(True)  # last, no comma\n    )",
            f"DataLoader(\n        data, shuffle=(True), {GENERATOR}  # last, no comma\n    )",
        ),
        (
            "DataLoader(data, shuffle=True, generator=None)",
            f"DataLoader(data, shuffle=True, {GENERATOR})",
        ),
        (
            "DataLoader(data,\\\n        shuffle=True)",
            f"DataLoader(data,\\\n        shuffle=True, {GENERATOR})",
        ),
    ],
    ids=["one line", "trailing comma", "one a line", "comment behind the last", "written None", "continued"],
)
def test_an_argument_is_written_in_the_layout_of_the_call(project: Project, call: str, wanted: str) -> None:
    got = _after(project, LOADER.format(call), "DET202")
    assert ast.dump(ast.parse(got)) == ast.dump(ast.parse(LOADER.format(wanted)))
    assert all(part in got for part in ("# every epoch", "# last, no comma") if part in call)
    if "(True)" not in call and "True,)" not in call and "(None" not in call:
        assert got == LOADER.format(wanted)


DRAW = "print(torch.randn(2))\n"


WRAPPED = """\
import gymnasium as gym


def draw(env, limit):
    if limit:
        env = gym.wrappers.TimeLimit(env, 500)
{otherwise}{behind}    return env.action_space.sample()


cart = gym.make("CartPole-v1")
cart.reset(seed=0)
print(draw(cart, cart._max_episode_steps))
"""
SEED = "env.action_space.seed(0)\n"


@pytest.mark.parametrize(
    "otherwise",
    ["", "    else:\n        env = env.unwrapped\n", "    else:\n        raise ValueError\n"],
    ids=["the other is given", "the other is assigned", "the other raises"],
)
def test_an_environment_is_seeded_where_the_paths_to_its_use_meet(project: Project, otherwise: str) -> None:
    got = _after(project, WRAPPED.format(otherwise=otherwise, behind=""), "DET111")
    assert got == WRAPPED.format(otherwise=otherwise, behind=f"    {SEED}")


SAMPLED = """\
import gymnasium as gym


def draw(env):
{wrapped}    return env.action_space.sample()


env = gym.make("CartPole-v1")
{behind}env.reset(seed=0)
{other}"""


@pytest.mark.parametrize(
    ("wrapped", "other", "at"),
    [
        ("    env = gym.wrappers.TimeLimit(env, 500)\n", "print(draw(env))\n", "wrapped"),
        ("", "print(draw(env))\n", "behind"),
        ("", "test = gym.make('CartPole-v1')\ntest.reset(seed=0)\nprint(draw(env=test))\n", ""),
    ],
    ids=["assigned by the function", "given", "another one is given"],
)
def test_a_variable_of_the_module_is_seeded_for_a_parameter_of_its_name_where_it_is_given(
    project: Project, wrapped: str, other: str, at: str
) -> None:
    parts = {"wrapped": wrapped, "behind": "", "other": other}
    wanted = {**parts, at: f"{parts[at]}{'    ' if at == 'wrapped' else ''}{SEED}"} if at else parts
    assert _after(project, SAMPLED.format(**parts), "DET111") == SAMPLED.format(**wanted)


PLAYED = """\
import gymnasium as gym


def play(env):
    return env.reset()[0]


if __name__ == "__main__":
    env = gym.make("CartPole-v1")
    print(play(env))
"""


def test_the_variable_of_a_module_is_not_what_another_program_gives_its_function(project: Project) -> None:
    train = 'import gymnasium as gym\nfrom play import play\n\ngame = gym.make("CartPole-v1")\nprint(play(game))\n'
    root = project({"play.py": PLAYED, "a_train.py": train})
    assert not _fixed(root, {"select": ["DET111"]}).changes


@pytest.mark.parametrize(
    ("code", "wanted"),
    [
        (f"import torch\n{DRAW}", f"import torch\n\ntorch.manual_seed(0)\n\n{DRAW}"),
        (
            '"""Doc."""\nfrom __future__ import annotations\n\nimport torch as T\n\nprint(T.randn(2))\n',
            '"""Doc."""\nfrom __future__ import annotations\n\nimport torch as T\n\nT.manual_seed(0)\n\n'
            "print(T.randn(2))\n",
        ),
        (
            f"import torch\nif __name__ == '__main__': {DRAW}",
            f"import torch\nif __name__ == '__main__': torch.manual_seed(0); {DRAW}",
        ),
        (
            f"import torch\n\n\ndef main():\n\t{DRAW}\n\nif __name__ == '__main__':\n\tmain()  # run\n",
            f"import torch\n\n\ndef main():\n\t{DRAW}\n\nif __name__ == '__main__':\n\ttorch.manual_seed(0)\n"
            "\tmain()  # run\n",
        ),
        (
            "from torch import randn\n\nif __name__ == '__main__':\n    print(randn(2))\n",
            "import torch\nfrom torch import randn\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n"
            "    print(randn(2))\n",
        ),
        (
            f"import torch\r\n\r\n{DRAW}".replace(")\n", ")\r\n"),
            f"import torch\r\n\r\ntorch.manual_seed(0)\r\n\r\n{DRAW}".replace(")\n", ")\r\n"),
        ),
        (
            f"try:\n    import torch\nexcept ImportError:\n    torch = None\n\nname = f'{{1:>{{4}}}}'\n{DRAW}",
            f"try:\n    import torch\nexcept ImportError:\n    torch = None\n\nname = f'{{1:>{{4}}}}'\n"
            f"torch.manual_seed(0)\n{DRAW}",
        ),
    ],
    ids=["script", "future and alias", "one-line guard", "tabs", "no module name", "CRLF", "import in try"],
)
def test_a_seed_goes_to_the_start_of_the_entry_point(project: Project, code: str, wanted: str) -> None:
    assert _after(project, code, "DET101") == wanted


@pytest.mark.parametrize(
    ("parsed", "wanted"),
    [
        ("    args = parser.parse_args()\n    return args\n", "parse_args()\n{}    return args\n"),
        ("    return parser.parse_args()\n", "args = options()\n{}"),
    ],
)
def test_what_is_not_seeded_is_seeded_with_the_option_that_is_named_like_a_seed(
    project: Project, parsed: str, wanted: str
) -> None:
    text = (
        "import argparse\nimport random\n\nimport torch\n\n\ndef options():\n    parser = argparse.ArgumentParser()\n"
        f"    parser.add_argument('--seed', type=int, default=1)\n{parsed}\n\ndef main():\n    args = options()\n"
        "    torch.save([torch.rand(3), random.random()], 'numbers.pt')\n\n\nmain()\n"
    )
    after = _after(project, text, "DET101", "DET103")
    assert wanted.format("    random.seed(args.seed)\n    torch.manual_seed(args.seed)\n") in after


def test_a_seed_of_torch_that_something_uses_is_not_replaced_by_a_generator(project: Project) -> None:
    plain = "import torch\n\ntorch.seed()\nprint(torch.rand(1))\n"
    assert "torch.manual_seed(0)" in _after(project, plain, "DET107")
    used = "import torch\n\ntorch.manual_seed(torch.seed())\nprint(torch.rand(1))\n"
    root = project({"train.py": used})
    assert not _fixed(root, {"select": ["DET107"]}).changes


def test_each_program_is_seeded_in_its_way_where_they_share_a_draw(project: Project) -> None:
    library = "import torch\n\n\ndef noise():\n    return torch.randn(3)\n"
    draw = "torch.save(noise(), 'x.pt')\n"
    options = (
        "import argparse\n\nimport torch\nfrom library import noise\n\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--seed', type=int, default=1)\nargs = parser.parse_args()\n"
    )
    plain = "import torch\nfrom library import noise\n"
    root = project({"library.py": library, "options.py": options + draw, "plain.py": f"{plain}\n{draw}"})
    changes = {
        Path(path).name: text.decode() for path, text in _fixed(root, {"select": ["DET101"]}).changes.items()
    }
    assert changes == {
        "options.py": f"{options}torch.manual_seed(args.seed)\n{draw}",
        "plain.py": f"{plain}\ntorch.manual_seed(0)\n\n{draw}",
    }


def test_findings_of_one_run_share_one_block(project: Project) -> None:
    code = (
        "import random\n\nimport numpy as np\nimport torch\n\n"
        "print(torch.randn(2), np.random.rand(), random.random())\n"
    )
    root = project({"train.py": code})
    fixed = _fixed(root, {"select": ["DET101", "DET102", "DET103"]})
    (got,) = fixed.changes.values()
    block = "random.seed(0)\nnp.random.seed(0)\ntorch.manual_seed(0)\n"
    assert got.decode() == code.replace("\nprint", f"\n{block}\nprint")
    assert fixed.number == 3 and not fixed.result.items


@pytest.mark.parametrize(
    ("guard", "inside"),
    [
        ("main()", True),
        ("sys.exit(main())", True),
        ("raise SystemExit(main())", True),
        ("print(main())", False),
    ],
)
def test_a_seed_of_an_installed_command_goes_where_the_command_runs_it(
    project: Project, guard: str, inside: bool
) -> None:
    """The command calls the function, without what the guard does."""
    code = (
        "import sys\n\nimport torch\nfrom torch import nn\n\n\ndef main():\n    print(nn.Linear(2, 2).weight)\n\n\n"
        f"if __name__ == '__main__':\n    {guard}\n"
    )
    pins = '[project]\nname = "pk"\nversion = "1"\n[project.scripts]\npk = "pk.cli:main"\n'
    root = project({"pyproject.toml": pins, "src/pk/__init__.py": "", "src/pk/cli.py": code})
    (text,) = (data.decode() for data in _fixed(root, {"select": ["DET101"]}).changes.values())
    below = "def main():" if inside else "if __name__ == '__main__':"
    assert text == code.replace(f"{below}\n", f"{below}\n    torch.manual_seed(0)\n")


def test_a_draw_in_a_module_is_seeded_in_the_file_that_runs(run: Run, project: Project) -> None:
    main = "import model\n\nif __name__ == '__main__':\n    model.draw()\n"
    module = "import torch\n\n\ndef draw():\n    print(torch.randn(2))\n"
    root = project({"main.py": main, "model.py": module})
    shown = run("--select=DET101", "--unsafe-fixes", "--no-cache", cwd=root).out
    assert "--> model.py:5:11" in shown and "    main.py\n" in shown and "torch.manual_seed(0)" in shown
    # What is not linted is not changed.
    assert run("model.py", "--select=DET101", "--fix-only", "--unsafe-fixes", "-q", cwd=root).code == 0
    assert ((root / "main.py").read_text(), (root / "model.py").read_text()) == (main, module)
    run("--select=DET101", "--fix", "--unsafe-fixes", "--no-cache", cwd=root)
    assert (root / "model.py").read_text() == module
    assert (root / "main.py").read_text() == (
        "import torch\n\nimport model\n\nif __name__ == '__main__':\n    torch.manual_seed(0)\n    model.draw()\n"
    )


def test_a_notebook_is_seeded_in_its_own_cells(project: Project) -> None:
    root = project(
        {"a.ipynb": notebook(["%matplotlib inline\nimport torch", "# draw\nprint(torch.randn(2))"])}
    )
    fixed = _fixed(root, {"select": ["DET101"]})
    (data,) = fixed.changes.values()
    source = make_source("a.ipynb", data)
    assert source.cells is not None
    texts = [source.raw[c.start : c.end] for c in source.cells]
    assert texts == [
        "%matplotlib inline\nimport torch\n\ntorch.manual_seed(0)",
        "# draw\nprint(torch.randn(2))",
    ]


BROKEN = [
    # A statement of Python 2 in a cell of its own.
    (
        ["import torch", "print 'torch', torch.__version__", "print(torch.randn(2))"],
        ["import torch\n\ntorch.manual_seed(0)", None, None],
    ),
    # The import would go into the cell that does not parse.
    (["import torch\nprint 'x'", "print(torch.randn(2))"], [None, None]),
    # What is fixed stands in such a cell, or beside one.
    (["print(list({'a', 'b'}))\nprint 'x'"], [None]),
    (["print 'x'", "print(list({'a', 'b'}))"], [None, "print(sorted({'a', 'b'}))"]),
    # It may give the name of the module another meaning, before or after.
    (
        ["import numpy as np", "print 'x'", "print(np.random.rand())"],
        ["import numpy as np\n\nnp.random.seed(0)", None, None],
    ),
    (
        ["from numpy.random import rand", "print 'x'; np = 1", "print(rand())"],
        ["import numpy as _np\nfrom numpy.random import rand\n\n_np.random.seed(0)", None, None],
    ),
]


@pytest.mark.parametrize(("cells", "expected"), BROKEN)
def test_cells_that_parse_are_fixed_and_the_others_stay(
    project: Project, cells: list[str], expected: list[str | None]
) -> None:
    root = project({"a.ipynb": notebook(cells)})
    select = ["DET101", "DET102", "DET103", "DET209", "DET210"]
    fixed = _fixed(root, {"select": select})
    after = [old if new is None else new for old, new in zip(cells, expected, strict=True)]
    data = next(iter(fixed.changes.values()), (root / "a.ipynb").read_bytes())
    assert ["".join(cell["source"]) for cell in json.loads(data)["cells"]] == after


@pytest.mark.parametrize(
    ("version", "call"),
    [
        ("2.15", "tf.keras.utils.set_random_seed(0)"),
        ("2.4", "tf.random.set_seed(0)"),
        ("1.15", "tf.set_random_seed(0)"),
    ],
)
def test_the_seed_call_exists_in_the_version(project: Project, version: str, call: str) -> None:
    code = "import tensorflow as tf\n\nprint(tf.random.uniform([2]))\n"
    got = _after(project, code, "DET104", **{"tensorflow-version": version})
    assert got == code.replace("\n\nprint", f"\n\n{call}\n\nprint")


TRAIN = """\
import torch

if __name__ == "__main__":
    torch.manual_seed(0)
    model = torch.nn.Linear(2, 1).cuda()
    model(torch.ones(1, 2).cuda()).sum().backward()
"""


@pytest.mark.parametrize(
    ("version", "call", "variable"),
    [
        ("2.12", "torch.use_deterministic_algorithms(True)", False),
        ("2.4", "torch.use_deterministic_algorithms(True)", True),
        ("1.7", "torch.set_deterministic(True)", True),
    ],
)
def test_deterministic_mode_follows_the_version(
    project: Project, tmp_path: Path, version: str, call: str, variable: bool
) -> None:
    got = _after(project, TRAIN, "DET302", "DET305", **{"torch-version": version})
    head = 'import os\n\nos.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"\n\n' if variable else ""
    assert got == head + TRAIN.replace("    torch.manual", f"    {call}\n    torch.manual")
    (project({"train.py": TRAIN}) / "d9mlint.toml").write_text(f'torch-version = "{version}"\n')
    (found,) = check([str(tmp_path)], load_settings(str(tmp_path), overrides={"select": ["DET302"]})).items
    assert f"without `{call}`" in found.finding.message


@pytest.mark.parametrize(
    ("imports", "left"),
    [
        ("import torch\nimport os\nimport sys\n", "import torch\nimport sys\n"),
        ("import torch\n\nimport os\n", "import torch\n"),
        ("import torch\nimport os\n", "import torch\n"),
        ("import torch\n\nimport os\n\nprint(1)\n", "import torch\n"),
        ("import torch\nimport os  # paths\nimport sys\n", None),
        ("import torch\nimport os, sys\n", None),
        ("import torch\nimport os as system\n", None),
    ],
)
def test_the_module_of_the_variable_is_imported_once(
    project: Project, imports: str, left: str | None
) -> None:
    body = TRAIN.partition("\n")[2]
    assert TRAIN.startswith("import torch\n")
    got = _after(project, imports + body, "DET302", **{"torch-version": "2.4"})
    head = 'import os\n\nos.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"\n\n'
    assert got.startswith(head + (imports if left is None else left))
    assert left is None or got.count("import os") == 1
    ast.parse(got)


def test_the_variable_and_an_import_of_torch_are_written_at_one_place(project: Project) -> None:
    code = "from torch import load, nn\n\nnn.Linear(2, 2).cuda()(load('x.pt').cuda()).sum().backward()\n"
    got = _after(project, code, "DET302", **{"torch-version": "2.4"})
    head = 'import os\n\nos.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"\n\n'
    assert got.startswith(head) and "torch.use_deterministic_algorithms(True)\n" in got
    own = "import train_net\n\nif __name__ == '__main__':\n    train_net.main()\n"
    body = "    nn.Linear(2, 2).cuda()(load('x.pt').cuda()).sum().backward()\n"
    root = project(
        {"main.py": own, "train_net.py": f"from torch import load, nn\n\n\ndef main(_where=None):\n{body}"}
    )
    changed = _fixed(root, {"select": ["DET302"], "torch-version": "2.4"}).changes
    (text,) = (data.decode() for path, data in changed.items() if path.endswith("main.py"))
    assert text.startswith(f"{head}import torch\n"), text
    # Also below imports of the standard library, where its own import would come before the variable.
    (root / "main.py").write_text(f"from pathlib import Path\n{own.replace('main()', 'main(Path())')}")
    changed = _fixed(root, {"select": ["DET302"], "torch-version": "2.4"}).changes
    (text,) = (data.decode() for path, data in changed.items() if path.endswith("main.py"))
    assert text.startswith(f"from pathlib import Path\n{head}import torch\n"), text


def test_no_mode_where_there_is_none_and_where_the_program_would_raise(project: Project) -> None:
    assert _after(project, TRAIN, "DET302", **{"torch-version": "1.6"}) == TRAIN
    code = f"{TRAIN}    print(torch.bincount(torch.arange(3).cuda(), torch.rand(3).cuda()))\n"
    assert _after(project, code, "DET302", "DET401", **{"torch-version": "2.4"}) == code
    # It does not depend on the selection.
    assert _after(project, code, "DET302", **{"torch-version": "2.4"}) == code
    ctc = "torch.nn.CTCLoss()(model(torch.load('x.pt')).cuda().log_softmax(2), *torch.load('y.pt'))"
    code = f"{TRAIN}    {ctc}.backward()\n"
    assert _after(project, code, "DET302", **{"torch-version": "2.4"}) == code
    taken = "torch.take(model.weight, torch.randint(0, 4, (9,)).cuda())"
    code = f"{TRAIN}    {taken}.sum().backward()\n"
    assert _after(project, code, "DET302", **{"torch-version": "2.4"}) == code
    # A model with a layer that raises, though it is deterministic.
    model = "vgg16().cuda()(torch.zeros(2, 3, 224, 224).cuda())"
    code = f"from torchvision.models import vgg16\n{TRAIN}    {model}.sum().backward()\n"
    assert "use_deterministic_algorithms(True, warn_only=True)" in _after(
        project, code, "DET302", **{"torch-version": "2.13"}
    )
    # A loss of outputs whose rank is unknown raises for images only.
    loss = "torch.nn.CrossEntropyLoss()(model(torch.load('x.pt')).cuda(), torch.load('y.pt').cuda())"
    unknown = f"{TRAIN}    {loss}.backward()\n"
    assert "use_deterministic_algorithms(True)" in _after(
        project, unknown, "DET302", **{"torch-version": "2.13"}
    )


def test_switches_with_else_are_unsafe_to_change(run: Run, project: Project) -> None:
    code = (
        "import sys\n\nimport torch\n\nif '--fast' in sys.argv:\n    torch.backends.cudnn.benchmark = True\n"
        "else:\n    torch.backends.cudnn.benchmark = False\n"
    )
    root = project({"train.py": code})
    run("--select=DET301", "--fix", "--no-cache", cwd=root)
    assert (root / "train.py").read_text() == code


def test_what_a_pool_runs_is_not_renamed(project: Project) -> None:
    """The finding is about the draw, and names the method of the pool."""
    code = """\
import random
from multiprocessing import Pool


def work(item):
    return item, random.choice([1, 2, 3])


if __name__ == "__main__":
    random.seed(0)
    with Pool(2) as pool:
        print([one for one in pool.imap_unordered(work, range(4))])
"""
    fixed = _after(project, code, "DET211")
    assert "random.choice(" in fixed and "random.imap(" not in fixed
    collected = code.replace("random.choice([1, 2, 3])", "item")
    assert "in pool.imap(work" in _after(project, collected, "DET211")


def test_fixes_can_be_chosen_by_rule(run: Run, project: Project) -> None:
    code = "import numpy as np\n\nrng = np.random.default_rng()\nprint(np.random.rand(), rng.random())\n"
    root = project({"a.py": code})
    options = ("--select=DET102,DET106", "--fix", "--unsafe-fixes", "--no-cache", "--output-format=concise")
    got = run(*options, "--unfixable=DET102", "--diff", cwd=root)
    assert "default_rng(0)" in got.out and "random.seed" not in got.out
    got = run(*options, "--fixable=DET102", "--diff", "--show-fixes", cwd=root)
    assert "default_rng(0)" not in got.out and "np.random.seed(0)" in got.out
    assert got.err == "Would fix 1 finding.\na.py: 1 x DET102 (missing-numpy-seed)\n"
    got = run(*options, "--fixable=DET1", "--unfixable=seeds", "--diff", cwd=root)
    # The prefix is longer than the family.
    assert "default_rng(0)" in got.out and "np.random.seed(0)" in got.out
    assert run("--unfixable=DET99", cwd=root).code == 2
    (root / "d9mlint.toml").write_text('unfixable = ["ALL"]\n')
    got = run(*options, cwd=root)
    assert (root / "a.py").read_text() == code and "[*]" not in got.out
    got = run(*options, "--unfixable=DET501", "--exit-non-zero-on-fix", "--show-fixes", cwd=root)
    assert got.code == 1 and got.out == "No findings in 1 file.\n"
    assert "1 x DET106 (unseeded-generator)" in got.err
    assert run(*options, "--unfixable=DET501", "--exit-non-zero-on-fix", cwd=root).code == 0


def test_a_program_is_fixed_for_the_release_that_its_names_tell(project: Project) -> None:
    """Nothing pins TensorFlow, and nothing but TensorFlow 1 has these names."""
    code = """\
import tensorflow as tf

w = tf.get_variable("w", [3, 3, 3, 1])
loss = tf.reduce_mean(tf.nn.conv2d(tf.placeholder(tf.float32, [4, 8, 8, 3]), w, 1, "SAME"))
train = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train)
"""
    fixed = _after(project, code, "DET104", "DET306")
    assert "tf.set_random_seed(0)" in fixed and "TF_CUDNN_DETERMINISTIC" in fixed
    assert "keras" not in fixed and "enable_op_determinism" not in fixed


LIGHTNING = """\
import pytorch_lightning as pl
import torch
from pytorch_lightning.callbacks import ModelCheckpoint

model = torch.nn.Linear(4, 1)
"""


@pytest.mark.parametrize(
    ("use", "call"),
    [
        ("pl.Trainer(early_stop_callback=False)", "seed_everything(0)"),
        ("pl.Trainer.from_argparse_args(None, row_log_interval=1)", "seed_everything(0)"),
        ('ModelCheckpoint(filepath="weights")', "seed_everything(0)"),
        ("pl.Trainer(enable_pl_optimizer=True)", "seed_everything(0)"),
        ("pl.Trainer.from_argparse_args(None)", "seed_everything(0, workers=True)"),
        ("pl.Trainer(gpus=1)", "seed_everything(0, workers=True)"),
        ('ModelCheckpoint(dirpath="weights")', "seed_everything(0, workers=True)"),
    ],
)
def test_a_seed_of_lightning_is_written_for_the_release_that_the_arguments_tell(
    project: Project, use: str, call: str
) -> None:
    code = f"{LIGHTNING}print(model, {use})\n"
    assert f"pl.{call}\n" in _after(project, code, "DET101")


def test_op_determinism_is_switched_on_together_with_the_seed_of_the_graph(project: Project) -> None:
    """Without a seed, an op that draws would raise. That of a graph is set where it is the default one."""
    code = """\
import tensorflow.compat.v1 as tf

if __name__ == "__main__":
    with tf.Graph().as_default(), tf.Session() as session:
        weights = tf.Variable(tf.random_normal([4, 4]))
        loss = tf.reduce_sum(tf.matmul(weights, weights))
        step = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        session.run(tf.global_variables_initializer())
        session.run(step)
"""
    releases = {"tensorflow-version": "2.10"}
    got = _after(project, code, "DET104", "DET306", **releases)
    assert "        tf.set_random_seed(0)\n        weights = " in got
    assert "enable_op_determinism()\n    with tf.Graph()" in got
    seeded = code.replace("        weights", "        tf.set_random_seed(0)\n        weights")
    assert _after(project, seeded, "DET104", "DET306", **releases) == got


def test_op_determinism_is_not_switched_on_where_a_generator_would_raise(project: Project) -> None:
    code = """\
import tensorflow as tf

if __name__ == "__main__":
    tf.keras.utils.set_random_seed(0)
    generator = {}
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(generator.normal((8, 4)), tf.ones((8, 1)))
"""
    fresh = code.format("tf.random.Generator.from_non_deterministic_state()")
    assert _after(project, fresh, "DET306", **{"tensorflow-version": "2.10"}) == fresh
    seeded = code.format("tf.random.Generator.from_seed(0)")
    got = _after(project, seeded, "DET306", **{"tensorflow-version": "2.10"})
    assert "enable_op_determinism()" in got


@pytest.mark.parametrize(("interpolation", "raises"), [("nearest", True), ("bilinear", False)])
def test_op_determinism_is_not_switched_on_where_an_op_has_no_deterministic_form(
    project: Project, interpolation: str, raises: bool
) -> None:
    code = f"""\
import tensorflow as tf

if __name__ == "__main__":
    tf.keras.utils.set_random_seed(0)
    layers = [tf.keras.layers.Conv2D(3, 1), tf.keras.layers.UpSampling2D(interpolation="{interpolation}")]
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse")
    model.fit(tf.ones((2, 4, 4, 3)), tf.ones((2, 8, 8, 3)))
"""
    got = _after(project, code, "DET306", "DET403", **{"tensorflow-version": "2.10"})
    assert (got == code) is raises


def test_the_mode_is_set_in_the_command_that_lacks_it(project: Project) -> None:
    """A note of the finding stands at a layer in another function: it does not lead to the finding."""
    command = """\
import click
import torch
from torch import nn


@click.group()
def main():
    pass


@main.command()
def first():
    torch.use_deterministic_algorithms(True)
    nn.Conv2d(3, 4, 3).cuda()(torch.ones(2, 3, 8, 8).cuda()).sum().backward()


@main.command()
def second():
    nn.Conv2d(3, 4, 3).cuda()(torch.ones(2, 3, 8, 8).cuda()).sum().backward()


main()
"""
    fixed = _after(project, command, "DET302", **{"torch-version": "2.13"})
    mode = "    torch.use_deterministic_algorithms(True)\n"
    assert fixed == command.replace("def second():\n", f"def second():\n{mode}")


def test_no_variable_is_set_that_covers_nothing_of_an_old_program(project: Project) -> None:
    code = """\
import tensorflow as tf

x = tf.placeholder(tf.float32, [4, 8, 8, 3])
loss = tf.reduce_mean(tf.LAYER)
train = tf.train.AdamOptimizer(0.1).minimize(loss)
with tf.Session() as session:
    session.run(tf.global_variables_initializer())
    session.run(train)
"""
    dense = code.replace("LAYER", "keras.layers.Dense(3)(x)")
    assert "TF_CUDNN_DETERMINISTIC" not in _after(project, dense, "DET306")
    conv = code.replace("LAYER", "keras.layers.Conv2D(3, 3)(x)")
    assert "TF_CUDNN_DETERMINISTIC" in _after(project, conv, "DET306")


def test_a_variable_is_set_before_the_import_that_another_fix_adds(project: Project) -> None:
    agent = """\
import tensorflow as tf


def fit():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    model.fit(tf.ones((8, 4)), tf.ones((8, 1)))
"""
    root = project(
        {"agent.py": agent, "train.py": "import os\nfrom agent import fit\n\nprint(os.getcwd())\nfit()\n"}
    )
    changed = _fixed(root, {"select": ["DET104", "DET306"], "tensorflow-version": "2.3"}).changes
    (text,) = (data.decode() for path, data in changed.items() if path.endswith("train.py"))
    assert text.index("TF_DETERMINISTIC_OPS") < text.index("import tensorflow") < text.index("set_seed"), text


def test_keras_of_its_own_is_seeded_as_its_release_can_be(project: Project) -> None:
    """``keras.utils.set_random_seed`` came with 2.7; before 2.4 the seeds of initial weights come from NumPy."""
    code = """\
from keras.layers import Dense, Input
from keras.models import Model

inputs = Input((3,))
model = Model({}=inputs, {}=Dense(2)(inputs))
model.compile("sgd", "mse")
model.fit([[1, 2, 3]], [[0, 1]])
"""
    fixed = _after(project, code.format("input", "output"), "DET104")
    assert "np.random.seed(0)" in fixed and "set_random_seed" not in fixed
    assert "keras.utils.set_random_seed(0)" in _after(project, code.format("inputs", "outputs"), "DET104")


def test_an_argument_for_a_generator_gets_a_seed_whatever_its_name(project: Project) -> None:
    code = """\
import numpy as np
from nltk.cluster import KMeansClusterer, euclidean_distance
from skimage.data import binary_blobs

rows = list(np.load("rows.npy"))
print(KMeansClusterer(3, euclidean_distance).cluster(rows, True))
np.save("blobs.npy", binary_blobs(64))
"""
    fixed = _after(project, code, "DET109")
    assert "KMeansClusterer(3, euclidean_distance, rng=random.Random(0))" in fixed
    assert "import random\n" in fixed
    assert "binary_blobs(64, rng=0)" in fixed


def test_a_seed_goes_before_what_the_modules_of_the_project_do_and_before_shuffling(project: Project) -> None:
    nets = "import tensorflow as tf\n\nnet = tf.keras.Sequential([tf.keras.layers.Dense(4)])\n"
    data = "data = tf.data.Dataset.from_tensor_slices([1, 2])"
    code = f"""\
import tensorflow as tf
from losses import loss
from nets import net

{data}
net.compile("sgd", loss)
net.fit(data)
"""
    late = f"""\
import tensorflow as tf

{data}.shuffle(4)

from nets import net

net.compile("sgd", "mse")
net.fit(data)
"""
    root = project({"train.py": code, "late.py": late, "nets.py": nets, "losses.py": "loss = 'mse'\n"})
    changes = _fixed(root, {"select": ["DET104", "DET207"]}).changes
    first, second = (changes[(root / name).resolve().as_posix()].decode() for name in ("train.py", "late.py"))
    seed = "tf.keras.utils.set_random_seed(0)\n"
    assert first == code.replace("from losses", f"\n{seed}\nfrom losses")
    assert second.index(seed) < second.index("data = ") and "tf.keras" not in late


def test_a_seed_that_a_caller_may_give_is_not_replaced(run: Run, project: Project) -> None:
    code = """\
import numpy as np


class Environment:
    def __init__(self):
        self.seed()

    def seed(self, seed=None):
        self.random = np.random.default_rng(seed)


print(Environment().random.random())
"""
    root = project({"train.py": code})
    found = json.loads(run("--select", "DET106", "--output-format", "json", str(root)).out)
    assert [one["code"] for one in found] == ["DET106"] and found[0]["fix"] is None


MAKES_A_LOADER = """\
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, i):
        import random

        return random.random()
# The loader.
def make():
    return DataLoader(Noise(), num_workers=2)
"""


def test_a_helper_stands_above_the_comment_of_its_loader_and_imports_are_written_once(
    project: Project,
) -> None:
    fixed = _after(project, MAKES_A_LOADER + "\n\nnext(iter(make()))\n", "DET201")
    assert fixed.count("import torch\n") == fixed.count("import numpy as np\n") == 1
    assert "        return random.random()\n\n\ndef seed_worker(worker_id):\n" in fixed
    assert "    random.seed(seed)\n\n\n# The loader.\ndef make():\n" in fixed


IMPORTS = [
    (
        "import argparse\nimport os\n\nimport torch\nfrom torch import nn\n\nfrom model import Net\n",
        "import argparse\nimport os\nimport random\n\nimport numpy as np\nimport torch\nfrom torch import nn\n\n"
        "from model import Net\n",
    ),
    (
        "import sys, torch\nfrom model import Net\n",
        "import random\n\nimport numpy as np\nimport sys, torch\nfrom model import Net\n",
    ),
    (
        "import torch\nimport argparse\nfrom PIL import Image\nimport pandas as pd\nfrom model import Net  # ours\n",
        "import torch\nimport argparse\nimport random\nfrom PIL import Image\nimport pandas as pd\n"
        "import numpy as np\nfrom model import Net  # ours\n",
    ),
    (
        "import os\nos.environ['OMP_NUM_THREADS'] = '1'\nfrom model import Net\nimport torch\n",
        "import os\nimport random\nos.environ['OMP_NUM_THREADS'] = '1'\nfrom model import Net\nimport numpy as np\n"
        "import torch\n",
    ),
    (
        "import os\n\nos.environ['OMP_NUM_THREADS'] = '1'\n\nfrom model import Net\n",
        "import os\nimport random\n\nos.environ['OMP_NUM_THREADS'] = '1'\n\nimport numpy as np\nimport torch\n\n"
        "from model import Net\n",
    ),
    (
        "#!/usr/bin/env python\n'Doc.'\nfrom __future__ import annotations\nfrom torch import nn\nimport torch\n",
        "#!/usr/bin/env python\n'Doc.'\nfrom __future__ import annotations\nimport random\n\nfrom torch import nn\n"
        "import torch\nimport numpy as np\n",
    ),
    # What has to be imported, or called, before other packages stays in front of them.
    (
        "from comet_ml import Experiment\n",
        "from comet_ml import Experiment\nimport random\n\nimport numpy as np\nimport torch\n",
    ),
    (
        "'Doc.'\nimport sys\nfrom gevent import monkey\nmonkey.patch_all()\nimport numpy as np\n",
        "'Doc.'\nimport sys\nfrom gevent import monkey\nmonkey.patch_all()\nimport random\n\nimport numpy as np\n"
        "import torch\n",
    ),
    (
        "import json\n\nimport isaacgym\nimport numpy as np\n",
        "import json\n\nimport isaacgym\nimport random\n\nimport numpy as np\nimport torch\n",
    ),
]


@pytest.mark.parametrize(("head", "wanted"), IMPORTS, ids=[str(i) for i in range(len(IMPORTS))])
def test_imports_are_written_into_their_groups(project: Project, head: str, wanted: str) -> None:
    """As isort groups them, and behind what sets the environment."""
    model = "import torch\nimport numpy, random\n\n\nclass Net:\n    def draw(self):\n        "
    model += "return torch.rand(2), numpy.random.rand(), random.random()\n"
    body = "\n\nif __name__ == '__main__':\n    # Go.\n    import model\n    # Draw.\n    print(model.Net().draw())\n"
    root = project({"train.py": head + body, "model.py": model})
    changed = _fixed(root, {"select": ["DET101", "DET102", "DET103"]}).changes
    fixed = changed[str(root / "train.py")].decode()
    assert fixed[: fixed.index("\n\nif __name__")] == wanted
    block = "    random.seed(0)\n    np.random.seed(0)\n    torch.manual_seed(0)\n"
    assert fixed.endswith(body.replace("    # Draw", f"{block}    # Draw"))


def test_what_a_loader_of_another_file_draws_is_seeded_before_it_is_used(run: Run, project: Project) -> None:
    """The call of ``__getitem__`` is shown where the loader is made, and never at a place of another file."""
    above = "".join(f"def unused_{n}():\n    return {n}\n\n\n" for n in range(9))
    root = project(
        {
            "lib.py": MAKES_A_LOADER.replace("num_workers=2", "batch_size=2"),
            "train.py": f"from lib import make\n\n{above}loader = make()\nbatch = next(iter(loader))\n",
        }
    )
    (found,) = json.loads(run("--select", "DET103", "--output-format", "json", str(root)).out)
    (step,) = [one for one in found["flow"] if "__getitem__" in one["message"]]
    assert (Path(step["filename"]).name, step["row"]) == ("lib.py", 14)
    fixed = _fixed(root, {"select": ["DET103"]})
    text = fixed.changes[str(root / "train.py")].decode()
    assert text.index("random.seed(0)") < text.index("def unused_0")
    assert not [i.finding.message for i in fixed.result.items]


def test_one_argument_a_line_stays_so_without_a_trailing_comma(project: Project) -> None:
    call = "DataLoader(data,\n        shuffle=True,\n        drop_last=True)"
    fixed = _after(project, LOADER.format(call), "DET202")
    assert fixed == LOADER.format(call.replace("last=True", f"last=True,\n        {GENERATOR}"))


def test_switches_and_seeds_of_two_rounds_are_one_block(project: Project) -> None:
    code = "import torch\n\nx = torch.rand(3).cuda()\nw = torch.rand(3, device='cuda', requires_grad=True)\n"
    code += "o = torch.optim.SGD([w], 0.1)\n(w * x).sum().backward()\no.step()\ntorch.save(w, 'w.pt')\n"
    fixed = _after(project, code, "DET101", "DET302", **{"torch-version": "2.13"})
    head = "import torch\n\n{}\n{}\n\nx = "
    calls = ("torch.use_deterministic_algorithms(True)", "torch.manual_seed(0)")
    assert any(fixed.startswith(head.format(*order)) for order in (calls, calls[::-1]))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("list(os.listdir('d'))", "sorted(os.listdir('d'))"),
        ("list(Path('d').glob('*.pt'))", "sorted(Path('d').glob('*.pt'))"),
        ("list(Path('d').glob('*.pt'))[:3]", "sorted(Path('d').glob('*.pt'))[:3]"),
        ("tuple(os.listdir('d'))", "tuple(sorted(os.listdir('d')))"),
        ("[*os.listdir('d')]", "[*sorted(os.listdir('d'))]"),
    ],
)
def test_a_list_of_a_listing_is_sorted_in_its_place(project: Project, before: str, after: str) -> None:
    head = "import os\nfrom pathlib import Path\nimport torch\n\n"
    assert (
        _after(project, f"{head}torch.save({before}, 'x.pt')\n", "DET209")
        == f"{head}torch.save({after}, 'x.pt')\n"
    )


SETS = """\
import sys

import numpy as np


class Part:
    def __init__(self, n):
        self.n = n

    def __hash__(self):
        return self.n

    def __eq__(self, other):
        return self.n == other.n


def order(items, others):
    {}


def unknown():
    with open(sys.argv[1], "rb") as stream:
        return eval(stream.read(), {{"Part": Part}})


if __name__ == "__main__":
    print([getattr(x, "n", x) for x in order(unknown(), unknown())])
"""


@pytest.mark.parametrize(
    ("body", "fixed"),
    [
        ("return list(set(items))", "return list(dict.fromkeys(items))"),
        ("return [x for x in {*items, *others}]", "return [x for x in dict.fromkeys([*items, *others])]"),
        ("return [*{x for x in items}]", "return [*dict.fromkeys(x for x in items)]"),
        (
            "return np.array({*items}, dtype=object)",
            "return np.array(list(dict.fromkeys([*items])), dtype=object)",
        ),
        (
            "kept = frozenset(items)\n    return [x for x in kept if x in kept][: len(kept)]",
            "kept = dict.fromkeys(items)\n    return [x for x in kept if x in kept][: len(kept)]",
        ),
        # It is used as a set, or made of others.
        ("kept = set(items)\n    kept.update(others)\n    return list(kept)", None),
        ("kept = set(items)\n    kept |= set(others)\n    return list(kept)", None),
        ("kept = set(items)\n    print(kept & set(others))\n    return list(kept)", None),
        ("kept = set(items)\n    print(set(others) - kept)\n    return list(kept)", None),
        (
            "kept = set(items)\n    print(len(kept) - 1)\n    return list(kept)",
            "kept = dict.fromkeys(items)\n    print(len(kept) - 1)\n    return list(kept)",
        ),
        ("return list(set(items) - set(others))", None),
        ("dict = {}\n    return list(set(items))", None),
    ],
)
def test_a_set_of_unknown_elements_becomes_keys_in_their_order(
    project: Project, body: str, fixed: str | None
) -> None:
    """They may not be comparable."""
    code = SETS.format(body)
    root = project({"train.py": code})
    (found,) = check(
        [str(root)], load_settings(str(root), overrides={"cache": False, "select": ["DET210"]})
    ).items
    # A dictionary has no difference, and what a set is filled from may be a set.
    combined = any(one in body for one in ("- set(", ") - kept", " & ", ".update("))
    start = "use `sorted(...)` if" if combined else "use `dict.fromkeys(...)`"
    assert found.finding.help.startswith(start)
    text = _after(project, code, "DET210")
    assert text == (SETS.format(fixed) if fixed else code)
    for elements in ("[Part(2), Part(1), Part(2)]", "['b', 'a', 1, 'b']"):
        if fixed is None:
            break
        namespace: dict[str, Any] = {"__name__": "train"}
        exec(text, namespace)
        items = eval(elements, namespace)
        kept = [getattr(x, "n", x) for x in namespace["order"](items, items)]
        assert kept == list(dict.fromkeys(getattr(x, "n", x) for x in items))


def test_a_library_is_not_seeded_behind_the_import_of_what_took_its_seed(project: Project) -> None:
    made = 'from monai.transforms import Compose, RandFlipd\n\nflip = Compose([RandFlipd(keys=["a"])])\n'
    used = 'print(flip({"a": np.random.rand(1, 2, 2)}))\n'
    files = {
        "flips.py": made,
        "train.py": f"import numpy as np\nfrom flips import flip\n\n{used}",
        "one.py": f"import numpy as np\n{made}{used}",
    }
    root = project(files)
    changes = _fixed(root, {"select": ["DET102", "DET113"]}).changes
    train, one = (changes[str((root / name).resolve())].decode() for name in ("train.py", "one.py"))
    assert "np.random.seed(0)" in train and "set_determinism" not in train
    assert one.index("monai.utils.set_determinism(seed=0)") < one.index("flip = Compose")


PAIRED_LISTINGS = """\
import os

import cv2
import numpy as np
import onnxruntime


def main(path):
    session = onnxruntime.InferenceSession("model.onnx")
    images = []
    for name in os.listdir(path):
        image = cv2.imread(os.path.join(path, name), cv2.IMREAD_COLOR)
        images.append(image / 255.0)
    out = np.array(session.run(None, {"input": images}))
    print(len(os.listdir(path)))
    for row, name in zip(out[0], os.listdir(path)):
        print(name, np.argmax(row))


main("images")
"""


def test_listings_that_are_paired_are_sorted_together(project: Project) -> None:
    fixed = _after(project, PAIRED_LISTINGS, "DET209")
    assert fixed.count("sorted(os.listdir(path))") == 2
    assert "for name in sorted(os.listdir(path)):" in fixed and "len(os.listdir(path))" in fixed


ASKED_LISTINGS = """\
import os
import random
import sys

import pandas as pd


def main(folder):
    images = list(os.listdir(folder))
    random.seed(0)
    random.shuffle(images)
    for name in images[10:]:
        os.remove(name)
    table = pd.read_csv("train.csv")
    rest = list(os.listdir(folder))
    table[table["id"].isin([name.lower() for name in rest])].to_csv("labels.csv")
    known = {"a", "b"}
    print("a" in os.listdir(folder), len(known.intersection(os.listdir(folder))))
    upper = {name.upper() for name in os.listdir(folder)}
    print(len(upper))


main(sys.argv[1])
"""


def test_listings_that_are_only_asked_for_elements_stay(project: Project) -> None:
    fixed = _after(project, ASKED_LISTINGS, "DET209")
    assert "images = sorted(os.listdir(folder))" in fixed
    assert fixed.count("sorted(") == 1


SETS_LATER = """\
import os


def train(backend):
    os.environ["KERAS_BACKEND"] = backend
    import keras

    model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(2)])
    model.save("model.keras")


if __name__ == "__main__":
    train("tensorflow")
"""


def test_no_seed_imports_a_library_before_its_environment_is_set(project: Project) -> None:
    assert _after(project, SETS_LATER, "DET104") == SETS_LATER
    plain = SETS_LATER.replace('    os.environ["KERAS_BACKEND"] = backend\n', "")
    assert "set_random_seed(0)" in _after(project, plain, "DET104")


def test_the_seed_of_a_generator_is_no_argument_of_what_is_given_its_class(project: Project) -> None:
    code = (
        "import random\nfrom dataclasses import dataclass, field\n\n\n@dataclass\nclass Jitter:\n"
        "    rng: random.Random = field(default_factory=random.Random)\n\n\nprint(Jitter().rng.random())\n"
    )
    assert _after(project, code, "DET106") == code


STARRED = "from net import *\n\nif __name__ == '__main__':\n    print(float(tf.random_normal([1])[0]))\n"


@pytest.mark.parametrize(
    ("module", "wanted"),
    [
        # The name is that of version 1 here, where `random.set_seed` does not exist.
        (
            "import tensorflow.compat.v1 as tf\n",
            STARRED.replace("    print", "    tf.set_random_seed(0)\n    print"),
        ),
        # One of its own names stays what it is.
        (
            "import tensorflow.compat.v1 as tf\n\nnp = 1\n",
            STARRED.replace("    print", "    tf.set_random_seed(0)\n    print"),
        ),
        # What the module does not give on is imported.
        (
            "import tensorflow.compat.v1 as _tf\n\n__all__ = ['tf']\ntf = _tf\n",
            "import tensorflow as _tf\n\n"
            + STARRED.replace("    print", "    _tf.keras.utils.set_random_seed(0)\n    print"),
        ),
    ],
)
def test_a_seed_uses_what_a_name_of_a_star_import_stands_for(
    project: Project, module: str, wanted: str
) -> None:
    root = project({"main.py": STARRED, "net.py": module})
    fixed = _fixed(root, {"select": ["DET104"], "tensorflow-version": "2.15"})
    assert fixed.changes[(root / "main.py").resolve().as_posix()].decode() == wanted


def test_an_import_above_a_star_import_gets_a_name_that_this_leaves(project: Project) -> None:
    main = "import numpy as np\n\nfrom own import *\n\nprint(np, np_rand())\n"
    own = "from numpy.random import rand\n\nnp = 3\n\n\ndef np_rand():\n    return rand()\n"
    root = project({"main.py": main, "own.py": own})
    fixed = _fixed(root, {"select": ["DET102"]})
    got = fixed.changes[(root / "main.py").resolve().as_posix()].decode()
    assert "import numpy as _np\n" in got and "_np.random.seed(0)\n" in got


@pytest.mark.parametrize(
    ("body", "seeded"),
    [
        ("print(train_test_split(x))\n", False),
        ("for _ in range(5):\n    print(train_test_split(x))\n", True),
        (
            "def parts():\n    while True:\n        yield train_test_split(x)\n\n\nprint(next(parts()))\n",
            True,
        ),
        (
            "class Parts:\n    def __getitem__(self, i):\n        return part(i)\n\n\n"
            "def part(i):\n    return train_test_split(x)[i]\n\n\nprint(Parts()[1])\n",
            True,
        ),
    ],
    ids=["once", "in a loop", "in a generator", "for each item"],
)
def test_no_constant_is_given_to_a_call_that_runs_again_and_again(
    project: Project, body: str, seeded: bool
) -> None:
    head = "import numpy as np\nfrom sklearn.model_selection import train_test_split\n"
    root = project({"split.py": f"{head}\nx = np.arange(9)\n{body}"})
    fixed = _fixed(root, {"select": ["DET109"]})
    (got,) = fixed.changes.values()
    assert ("np.random.seed(0)" in got.decode(), "random_state=0" in got.decode()) == (seeded, not seeded)
    assert not fixed.result.items


LOADS = """\
import numpy as np
from monai.data import DataLoader, Dataset
from monai.transforms import RandFlip

data = Dataset([np.zeros((1, 8, 8))] * 8, transform=RandFlip(prob=0.5))
loader = DataLoader(data, batch_size=2)
for batch in loader:
    print(batch)
"""
SEEDS_FROM_OPTION = """\
import argparse
import numpy as np
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int)
args = parser.parse_args()
loader = torch.utils.data.DataLoader([1, 2], worker_init_fn=np.random.seed(args.seed))
print(list(loader), np.random.rand())
"""


def test_a_call_that_takes_its_seed_from_entropy_stays(project: Project) -> None:
    root = project({"loads.py": LOADS, "option.py": SEEDS_FROM_OPTION})
    fixed = _fixed(root, {"select": ["DET107"]})
    (got,) = fixed.changes.values()
    seeded = LOADS.replace("as np\n", "as np\nimport torch\n").replace(
        "\ndata", "\ntorch.manual_seed(0)\n\ndata"
    )
    assert got.decode() == seeded
    assert [one.finding.code for one in fixed.result.items] == ["DET107"]


HELPED = {
    "DET111": "import gymnasium as gym\n\nenv = gym.make('CartPole-v1')\nobs, _ = env.reset()\nprint(obs)\n",
    "DET701": "from vllm import LLM, SamplingParams\n\nprint(LLM('m').generate('a', SamplingParams(temperature=0.8)))\n",
    "DET302": "import lightning as L\nfrom lightning.pytorch.cli import LightningCLI\nfrom torch import nn\n\n\n"
    "class M(L.LightningModule):\n    def __init__(self):\n        super().__init__()\n"
    "        self.net = nn.Conv2d(3, 3, 3)\n\n"
    "    def training_step(self, batch, i):\n        return self.net(batch).sum()\n\n\n"
    "LightningCLI(M, seed_everything_default=1, trainer_defaults={'max_epochs': 3})\n",
}


@pytest.mark.parametrize("code", HELPED)
def test_a_fix_does_not_depend_on_the_text_of_the_help(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.py").write_text(HELPED[code], encoding="utf-8")
    settings = load_settings(str(tmp_path), overrides={"cache": False, "jobs": 1, "select": [code]})

    def edits() -> list[Any]:
        found = [one.finding for one in check([str(tmp_path)], settings).items]
        return [one.fix and one.fix.edits for one in found]

    before, with_fixes = edits(), builders.with_fixes
    assert before and all(before)
    monkeypatch.setattr(
        builders,
        "with_fixes",
        lambda findings, *more, **named: with_fixes(
            [msgspec.structs.replace(one, help="do something") for one in findings], *more, **named
        ),
    )
    assert edits() == before
