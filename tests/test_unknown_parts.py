"""A dataset of which a part is not known."""

from __future__ import annotations

from pathlib import Path

from d9mlint.config.settings import load_settings
from d9mlint.pipeline import check

PROGRAM = """import torch
from torch.utils.data import DataLoader, Dataset

from elsewhere import transform


class Items(Dataset):
    def __init__(self, change):
        self.change = change

    def __getitem__(self, index):
        return self.change(torch.ones(3)) if self.change is not None else torch.ones(3)

    def __len__(self):
        return 8


if __name__ == "__main__":
    torch.manual_seed(0)
    print(list(DataLoader(Items({change}), num_workers=2)))
"""


def _found(directory: Path, change: str, program: str = PROGRAM) -> list[tuple[str, str]]:
    (directory / "train.py").write_text(program.format(change=change))
    overrides = {"cache": False, "jobs": 1, "select": ["DET201"]}
    result = check([str(directory)], load_settings(str(directory), overrides=overrides))
    return [(i.finding.severity.value, i.finding.message) for i in result.items]


def test_what_it_draws_is_said_only_where_all_of_it_is_known(tmp_path: Path) -> None:
    ((severity, message),) = _found(tmp_path, "None")
    assert severity == "advice" and "draws nothing from global generators now" in message
    for change in ("transform()", "eval(input())"):
        ((severity, message),) = _found(tmp_path, change)
        assert severity == "advice" and "calls what could not be resolved" in message


def test_a_library_of_which_nothing_is_known_is_named(tmp_path: Path) -> None:
    for library, said in (
        ("meshes_of_others", "calls `meshes_of_others`, of which"),
        ("PIL", "draws nothing"),
        ("six", "draws nothing"),
    ):
        program = PROGRAM.replace("import torch\n", f"import {library}\nimport torch\n", 1).replace(
            "return self.change", f"{library}.load(index)\n        return self.change", 1
        )
        ((severity, message),) = _found(tmp_path, "None", program)
        assert severity == "advice" and said in message


def test_seeds_of_workers_are_those_of_torch(tmp_path: Path) -> None:
    change = "abs"
    drawing = PROGRAM.replace("import torch\n", "import random\n\nimport torch\n", 1).replace(
        "return self.change(torch.ones(3))", "return random.random() + self.change(torch.ones(3))"
    )
    ((_, message),) = _found(tmp_path, change, drawing)
    assert "worker seeds depend on how many random numbers were drawn earlier" in message
    ((_, message),) = _found(tmp_path, change, drawing.replace("    torch.manual_seed(0)\n", ""))
    assert "torch is never seeded, so worker seeds differ between runs" in message
