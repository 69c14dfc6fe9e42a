"""After an edit only what read the edited code is made again, and the outcome is that of a run without a cache."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from d9mlint.base.entry_report import EntryReport
from d9mlint.config.settings import load_settings
from d9mlint.fix.builders import context
from d9mlint.interp.entry_run import Analyzer
from d9mlint.pipeline import check
from d9mlint.project.entry_points import Entry


def outcome(directory: Path, cache: bool = True) -> bytes:
    """All that a run reports, with the fixes."""
    result = check([str(directory)], load_settings(str(directory), overrides={"cache": cache, "jobs": 1}))
    return msgspec.json.encode(
        [(item.finding, item.fingerprint) for item in result.items], enc_hook=str
    ) + msgspec.json.encode(result.coverage)


def same(directory: Path) -> bytes:
    """What a run reports, which has to be the same with and without the cache."""
    cached = outcome(directory)
    assert cached == outcome(directory, cache=False)
    return cached


def project(directory: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (directory / name).parent.mkdir(exist_ok=True)
        (directory / name).write_text(text)


DRAWS = {
    "pyproject.toml": "",
    "train.py": "import torch\nimport augment\nprint(torch.rand(2), augment.flip())\n",
    "augment.py": "import numpy as np\nimport random\n\ndef flip():\n    return np.random.rand()\n",
    "other.py": "import random\nprint(random.random())\n",
}
SAVES = {
    "pyproject.toml": "",
    "train.py": (
        "import numpy as np\nimport torch\nfrom torch import nn\n\nmodel = nn.Linear(2, 2).cuda()\n"
        "optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n"
        "for epoch in range(3):\n    model(torch.ones(2).cuda() * np.random.rand()).sum().backward()\n    optimizer.step()\n"
        "    torch.save({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': epoch}, 'c.pt')\n"
    ),
    "resume.py": "import torch\n\ndef load(path):\n    return path\n",
}


def test_a_fix_is_built_again_where_something_that_it_read_has_changed(tmp_path: Path) -> None:
    """The fix of one file follows findings in another, and what other files do with checkpoints."""
    project(tmp_path, DRAWS)
    before = same(tmp_path)
    assert b"numpy.random.seed" in before or b"np.random.seed" in before
    # One more generator to seed at the start of the program, whose own file stays as it is.
    project(tmp_path, {"augment.py": DRAWS["augment.py"].replace("np.random.rand()", "random.random()")})
    after = same(tmp_path)
    assert b"random.seed" in after
    assert after != before


def test_a_fix_is_built_again_where_another_file_begins_to_load_checkpoints(tmp_path: Path) -> None:
    project(tmp_path, SAVES)
    before = same(tmp_path)
    assert b"np.random.get_state" in before
    project(tmp_path, {"resume.py": SAVES["resume.py"].replace("return path", "return torch.load(path)")})
    assert same(tmp_path) != before


def test_only_the_fixes_that_read_an_edited_file_are_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, DRAWS)
    outcome(tmp_path)
    parsed: list[str] = []
    parse = context.parse
    monkeypatch.setattr(
        context,
        "parse",
        lambda source, *more: (parsed.append(Path(source.path).name), parse(source, *more))[1],
    )
    for name, expected in {"augment.py": {"train.py", "augment.py"}, "other.py": {"other.py"}}.items():
        with (tmp_path / name).open("a") as stream:
            stream.write("# A comment.\n")
        parsed.clear()
        outcome(tmp_path)
        assert set(parsed) == expected


LAYERS = {
    "pyproject.toml": "",
    "lib.py": (
        "import torch\nimport random\nimport os\n\n\ndef rand(n):\n    noise = torch.rand(n)\n    return noise\n\n\n"
        "def pick(items):\n    first = random.choice(items)\n    return first\n\n\n"
        "def names():\n    found = os.listdir('data')\n    return found\n\n\n"
        "class Flip:\n    def __init__(self, p):\n        self.p = p\n\n    def apply(self, x):\n"
        "        if random.random() < self.p:\n            return -x\n        return x\n"
    ),
    "train.py": (
        "import torch\nfrom lib import rand, Flip\n\ntorch.backends.cudnn.benchmark = True\n"
        "model = torch.nn.Linear(3, 3).cuda()\n"
        "for step in range(3):\n    loss = model(rand(3).cuda()).sum()\n    loss.backward()\nprint(Flip(0.5).apply(loss))\n"
    ),
    "choose.py": "from lib import pick\n\nprint(pick([1, 2, 3]))\n",
    "lists.py": "import numpy as np\nfrom lib import names\n\nprint(np.array(names()))\n",
}
EDITS = {
    "a comment above everything": ("lib.py", "import torch\n", "# A comment.\nimport torch\n", set()),
    "blank lines between functions": ("lib.py", "\n\ndef pick", "\n\n\n\ndef pick", set()),
    "white space inside of a call": ("lib.py", "torch.rand(n)", "torch.rand( n )", set()),
    "a statement in a function": (
        "lib.py",
        "    first = random",
        "    kind = type(items)\n    first = random",
        {"choose.py"},
    ),
    "a draw in a method": (
        "lib.py",
        "        if random.random()",
        "        torch.rand(2)\n        if random.random()",
        {"train.py"},
    ),
    "a statement of the module": (
        "lib.py",
        "import os\n",
        "import os\nSIZE = 3\n",
        {"train.py", "choose.py", "lists.py"},
    ),
    "a default": ("lib.py", "def rand(n):", "def rand(n=3):", {"train.py", "choose.py", "lists.py"}),
    "a comment in an entry point": ("train.py", "torch.backends", "# Fast.\ntorch.backends", set()),
}


@pytest.mark.parametrize("edit", EDITS)
def test_only_runs_that_read_the_edited_code_are_made_again(
    edit: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, LAYERS)
    outcome(tmp_path)
    name, old, new, expected = EDITS[edit]
    assert LAYERS[name].count(old) == 1
    project(tmp_path, {name: LAYERS[name].replace(old, new)})
    made: list[str] = []
    run_entry = Analyzer.run_entry

    def counted(self: Analyzer, entry: Entry) -> EntryReport:
        made.append(entry.file.relative)
        return run_entry(self, entry)

    monkeypatch.setattr(Analyzer, "run_entry", counted)
    cached = outcome(tmp_path)
    assert set(made) == expected
    monkeypatch.undo()
    assert cached == outcome(tmp_path, cache=False)
    # What was kept is known at its new places.
    project(tmp_path, {name: f"# One more.\n{LAYERS[name].replace(old, new)}"})
    same(tmp_path)


def test_all_parts_of_a_project_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {"pyproject.toml": ""}
    for release in range(8):
        files[f"part{release}/requirements.txt"] = f"torch==2.{release}.0\n"
        files[f"part{release}/train.py"] = f"import torch\n\nprint(torch.rand({release}))\n"
    project(tmp_path, files)
    outcome(tmp_path)
    made: list[str] = []
    run_entry = Analyzer.run_entry

    def counted(self: Analyzer, entry: Entry) -> EntryReport:
        made.append(entry.file.relative)
        return run_entry(self, entry)

    monkeypatch.setattr(Analyzer, "run_entry", counted)
    project(tmp_path, {"part0/train.py": "import torch\n\nprint(torch.rand(9))\n"})
    outcome(tmp_path)
    assert made == ["part0/train.py"]


CHECKPOINT = {
    "pyproject.toml": "",
    "recompute.py": (
        "import torch\n\n\nclass Checkpoint(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, run, x):\n        ctx.run = run\n        ctx.save_for_backward(x)\n"
        "        return run(x)\n\n    @staticmethod\n    def backward(ctx, grad):\n"
        "        x = ctx.saved_tensors[0].detach().requires_grad_()\n        y = ctx.run(x)\n"
        "        return None, torch.autograd.grad(y, x, grad)[0]\n"
    ),
    "train.py": (
        "import torch\nfrom torch import nn\nfrom recompute import Checkpoint\n\ntorch.manual_seed(0)\n"
        "block = nn.Sequential(nn.Linear(8, 8), nn.Dropout(0.1))\n"
        "Checkpoint.apply(block, torch.randn(4, 8, requires_grad=True)).sum().backward()\n"
    ),
}


def test_a_function_that_is_looked_at_and_not_run_is_read_too(tmp_path: Path) -> None:
    """A rule reads the backward pass, which nothing in the program calls."""
    project(tmp_path, CHECKPOINT)
    once = CHECKPOINT["recompute.py"].replace("y = ctx.run(x)", "y = x + 1")
    project(tmp_path, {"recompute.py": once})
    assert b"DET411" not in same(tmp_path)
    project(tmp_path, CHECKPOINT)
    assert b"DET411" in same(tmp_path)


ELSEWHERE = {
    "pyproject.toml": "",
    "jobs/train.py": "from parts import weights\n\nprint(weights())\n",
    "common/parts.py": "import torch\n\n\ndef others():\n    return torch.randn(3)\n",
}


def test_a_file_that_begins_to_define_what_is_imported_is_found(tmp_path: Path) -> None:
    project(tmp_path, ELSEWHERE)
    assert b"DET101" not in same(tmp_path)
    parts = ELSEWHERE["common/parts.py"]
    project(tmp_path, {"common/parts.py": parts.replace("others", "weights")})
    assert b"DET101" in same(tmp_path)
    # Two files of that name may be meant.
    project(tmp_path, {"more/parts.py": parts})
    assert b"DET101" not in same(tmp_path)


def test_pins_in_a_directory_that_is_ignored_count(tmp_path: Path) -> None:
    draws = (
        "import albumentations as A, cv2\n\nt = A.Compose([A.Rotate()])\n"
        "cv2.imwrite('y.png', t(image=cv2.imread('x.png')))\n"
    )
    project(tmp_path, {"pyproject.toml": "", ".gitignore": "env/\n", "train.py": draws})
    project(tmp_path, {"env/requirements.txt": "albumentations==1.3.1\n"})
    assert b"DET103" in same(tmp_path)
    project(tmp_path, {"env/requirements.txt": "albumentations==2.0.8\n"})
    assert b"DET106" in same(tmp_path)


DECIDED_ELSEWHERE = {
    "the variable of a loader": (
        "import torch\nfrom torch.utils.data import DataLoader\n\n\ndef count(n):\n"
        "    loader = DataLoader(torch.arange(n), num_workers=2)\n\n    def other():\n        return 1\n\n"
        "    return len(loader.dataset)\n\n\nprint(count(3))\n",
        "return 1",
        "return loader",
    ),
    "a set that stays empty": (
        "import torch\n\nSKIPPED = []\n\n\ndef draw(name):\n    if name in SKIPPED:\n        print(torch.rand(2))\n\n\n"
        "def other(name):\n    return 1\n\n\ndraw(input())\n",
        "return 1",
        "SKIPPED.append(name)",
    ),
    "an array that is reduced": (
        "import os\nimport numpy as np\n\n\ndef most():\n"
        "    sizes = np.array([int(name) for name in os.listdir('data')])\n\n"
        "    def other():\n        return 1\n\n    return sizes.max()\n\n\nprint(most())\n",
        "return 1",
        "return sizes",
    ),
    "a dictionary with attributes": (
        "import torch\n\n\nclass Config(dict):\n    def __init__(self, *args):\n        super().__init__(*args)\n"
        "        self.__dict__ = self\n\n\nif Config({'draw': False}).draw:\n    print(torch.rand(1))\n",
        "self.__dict__ = self\n",
        "self.__dict__ = self\n        self.draw = True\n",
    ),
}


@pytest.mark.parametrize("what", DECIDED_ELSEWHERE)
def test_other_code_of_a_file_that_decides_has_been_read(what: str, tmp_path: Path) -> None:
    text, old, new = DECIDED_ELSEWHERE[what]
    project(tmp_path, {"pyproject.toml": "", "train.py": text})
    before = outcome(tmp_path)
    project(tmp_path, {"train.py": text.replace(old, new)})
    assert same(tmp_path) != before
