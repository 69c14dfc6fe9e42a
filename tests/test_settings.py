"""Configuration: where values come from, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from d9mlint import knowledge
from d9mlint.base.errors import UsageError
from d9mlint.config.selection import select
from d9mlint.config.settings import KEYS, Settings, config_schema, field, load_settings, show_settings
from d9mlint.pipeline import check


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_the_nearest_file_counts_and_paths_are_relative_to_it(tmp_path: Path) -> None:
    write(tmp_path / "pyproject.toml", '[tool.d9mlint]\nselect = ["DET1"]\n')
    write(tmp_path / "sub/pyproject.toml", "[tool.other]\n")
    write(tmp_path / "sub/deep/d9mlint.toml", 'baseline = "known.json"\n')
    assert load_settings(str(tmp_path / "sub")).select == ("DET1",)
    assert load_settings(str(tmp_path / "sub/deep")).baseline == str(tmp_path / "sub/deep/known.json")
    write(tmp_path / "sub/seen/d9mlint.toml", 'evidence = ["gpu.json", "../cpu.json"]\n')
    seen = (str(tmp_path / "sub/seen/gpu.json"), str(tmp_path / "sub/cpu.json"))
    assert load_settings(str(tmp_path / "sub/seen")).evidence == seen
    assert load_settings(str(tmp_path / "sub"), isolated=True).select == ()


def test_files_extend_each_other(tmp_path: Path) -> None:
    write(tmp_path / "base.toml", 'select = ["DET1"]\nignore = ["DET112"]\n')
    write(tmp_path / "sub/d9mlint.toml", 'extend = "../base.toml"\nselect = ["DET3"]\n')
    got = load_settings(str(tmp_path / "sub"))
    assert (got.select, got.ignore) == (("DET3",), ("DET112",))
    assert got.origins["ignore"] == f"{tmp_path}/base.toml:2"


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("pyproject.toml", '[tool.d9mlint]\n\nselct = []\n', r":3: unknown key selct. Did you mean select"),
        ("d9mlint.toml", 'device = "gpu"\n', r"d9mlint\.toml:1: device must be one of cuda, cpu"),
        ("d9mlint.toml", "jobs = true\n", "jobs must be a number"),
        ("d9mlint.toml", "select = 'DET1'\n", "select must be a list of strings"),
        ("d9mlint.toml", "\n\ntorch-version = 'new'\n", r":3: torch-version must be a version"),
        ("d9mlint.toml", "torch-version = 2.4\n", r'must be a version in quotes, such as "2.4", not 2.4'),
        ("d9mlint.toml", "[per-file-ignores]\n'a' = 3\n", r":2: per-file-ignores: a must be a list of rules, not 3"),
        ("d9mlint.toml", "jobs = 1\n[severity]\nDET1 = 'error'\nDET202 = 'advise'\n", r":4: severity: DET202 must be one"),
        ("d9mlint.toml", "severity.DET1 = 'error'\nseverity.DET2 = 3\n", r":2: severity: DET2 must be one"),
        ("d9mlint.toml", "torch-version = \"2.4\\n\"\n", "torch-version must be a version"),
        ("d9mlint.toml", "baseline = \"a\\u0000b\"\n", "baseline must be a path"),
        ("d9mlint.toml", "select = [\n", "not valid TOML"),
        ("d9mlint.toml", "extend = 'd9mlint.toml'\n", "extends itself"),
        ("d9mlint.toml", "extend = 'none.toml'\n", "does not exist"),
        ("pyproject.toml", "[tool]\nd9mlint = 5\n", "is not a table"),
    ],
)  # fmt: skip
def test_mistakes_are_named_with_file_and_line(tmp_path: Path, name: str, text: str, message: str) -> None:
    write(tmp_path / name, text)
    with pytest.raises(UsageError, match=message):
        load_settings(str(tmp_path))


def test_every_key_has_a_field_and_is_shown_with_its_origin(tmp_path: Path) -> None:
    write(tmp_path / "d9mlint.toml", "jobs = 3\n")
    settings = load_settings(str(tmp_path), overrides={"device": "cpu"})
    text = show_settings(settings)
    assert all(hasattr(settings, field(key)) and f"\n{key} = " in "\n" + text for key in KEYS)
    assert f"jobs = 3  # {tmp_path}/d9mlint.toml:1" in text
    assert 'device = "cpu"  # command line' in text


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("jobs = 1\n[per-file-ignores]\n'a' = ['DET101']\n\n'no such/*' = ['DET999']\n", 5),
        ("per-file-ignores = {'a' = ['DET999']}\n", 1),
        ("jobs = 1\nper-file-ignores.'a.py' = ['DET101']\nper-file-ignores.'b.py' = ['DET999']\n", 3),
        ("[severity]\nDET101 = 'advice'\nDET999 = 'error'\n", 3),
    ],
)
def test_an_unknown_rule_in_a_table_is_named_with_the_line_of_its_entry(
    tmp_path: Path, text: str, line: int
) -> None:
    write(tmp_path / "d9mlint.toml", text)
    write(tmp_path / "a.py", "x = 1\n")
    with pytest.raises(UsageError, match=rf"d9mlint\.toml:{line}: unknown rule DET999|:{line}: .*DET999"):
        check([str(tmp_path)], load_settings(str(tmp_path)))


def test_the_schema_accepts_what_the_tool_accepts_and_refuses_what_it_refuses(tmp_path: Path) -> None:
    validator = jsonschema.Draft202012Validator(config_schema())
    validator.check_schema(config_schema())
    accepted = {
        "extend": "x.toml",
        "min-severity": "advice",
        "per-file-ignores": {"a": ["DET1"]},
        "torch-version": "2.4",
        "jobs": 4,
        "severity": {"DET202": "advice"},
        "entry-points": ["train.py"],
        "fix": True,
    }
    assert not list(validator.iter_errors(accepted))
    for wrong in (
        {"jobs": -1},
        {"jobs": "4"},
        {"selct": []},
        {"min-severity": None},
        {"min-severity": "bad"},
        {"torch-version": "new"},
        {"per-file-ignores": {"a": 3}},
        {"severity": {"DET202": "worst"}},
        {"select": "DET1"},
    ):
        assert list(validator.iter_errors(wrong)), wrong
    described = config_schema()["properties"]
    assert set(described) == {*KEYS, "extend"} and all(d["description"] for d in described.values())


def codes(**keys: tuple[str, ...]) -> set[str]:
    return set(select(knowledge.load().rules, Settings(**keys)).codes)


def test_the_longest_selector_wins() -> None:
    rules = knowledge.load().rules
    assert codes() == {c for c, p in rules.items() if p.default}
    assert {c for c in codes(select=("DET3",)) if c > "DET003"} == {c for c in rules if c.startswith("DET3")}
    assert codes(select=("ALL",)) == set(rules)
    assert "DET301" in codes(select=("DET301",), ignore=("DET3",))
    assert "DET301" not in codes(select=("DET3",), ignore=("DET301",))
    assert "DET301" not in codes(select=("ALL",), ignore=("cudnn-benchmark",))
    assert codes(select=("seeds",)) - {"DET001", "DET002"} == {
        c for c, p in rules.items() if p.family == "seeds"
    }
    assert "DET112" in codes(extend_select=("DET112",)) and "DET112" not in codes()


def test_unreadable_files_are_reported_unless_ignored_by_name() -> None:
    assert {"DET001", "DET002"} < codes(select=("DET301",))
    assert "DET001" not in codes(select=("DET301",), ignore=("DET001",))


def test_an_unknown_rule_names_the_nearest() -> None:
    with pytest.raises(UsageError, match=r"unknown rule cudnn-benchmrk\. Did you mean cudnn-benchmark\?"):
        codes(select=("cudnn-benchmrk",))


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("baseline", '"known.json"', "baseline .*known.json does not exist"),
        ("evidence", '["seen.json"]', ".*seen.json cannot be read"),
        ("extend", '"base.toml"', "extended file .*base.toml does not exist"),
    ],
)
def test_a_file_that_is_missing_is_reported_with_the_line_that_names_it(
    run: Callable[..., Any], project: Callable[[dict[str, str]], Path], key: str, value: str, wanted: str
) -> None:
    root = project({"d9mlint.toml": f"# Ours.\n\n{key} = {value}\n", "a.py": "x = 1\n"})
    got = run(str(root))
    assert got.code == 2 and re.search(f"d9mlint.toml:3: {wanted}", got.err), got.err
