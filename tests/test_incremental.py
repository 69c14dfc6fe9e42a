"""After an edit only what read the edited code is made again, and the outcome is that of a run without a cache."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from d9mlint.config.settings import load_settings
from d9mlint.fix.builders import context
from d9mlint.pipeline import check


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
    "resume.py": "import torch\n\ndef load(path):\n    return torch.load(path, weights_only=False)\n",
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
    project(tmp_path, {"resume.py": SAVES["resume.py"].replace(", weights_only=False", "")})
    assert same(tmp_path) != before


def test_only_the_fixes_that_read_an_edited_file_are_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project(tmp_path, DRAWS)
    outcome(tmp_path)
    parsed: list[str] = []
    parse = context.parse
    monkeypatch.setattr(
        context, "parse", lambda source: (parsed.append(Path(source.path).name), parse(source))[1]
    )
    for name, expected in {"augment.py": {"train.py", "augment.py"}, "other.py": {"other.py"}}.items():
        with (tmp_path / name).open("a") as stream:
            stream.write("# A comment.\n")
        parsed.clear()
        outcome(tmp_path)
        assert set(parsed) == expected
