"""Rules that come, change and go: previews, new codes and names, retired rules."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support import RULES

from d9mlint.config.selection import outdated, select
from d9mlint.config.settings import load_settings
from d9mlint.knowledge import KnowledgeError
from d9mlint.knowledge.loader import compile_rules

Run = Callable[..., Any]
Project = Callable[[dict[str, str]], Path]

FACTS = """\
rules:
  - code: ACM001
    name: acme-fast-mode
    summary: the fast mode of acme selects kernels by timing
    replaces: [ACM900, acme-quick]
    match:
      - apis: [acme.Engine]
        when: [{arg: fast, default: true, equals: true}]
        message: "`{call}(fast={fast})` selects kernels by timing"
        help: "pass `fast=False`"
  - code: ACM002
    name: acme-engine
    summary: an engine
    preview: true
    match:
      - apis: [acme.Engine]
        message: "`{call}` is an engine"
        help: "pass nothing"
"""
CODE = "import acme\n\nacme.Engine()\n"


def found(run: Run, root: Path, *arguments: str) -> tuple[list[str], str]:
    done = run("--output-format", "json", *arguments, cwd=root)
    assert done.code in (0, 1), done.err
    return [f"{one['code']}:{one['location']['row']}" for one in json.loads(done.out)], done.err


@pytest.fixture
def root(project: Project) -> Path:
    return project({"run.py": CODE, "facts.yaml": FACTS, "d9mlint.toml": 'knowledge = ["facts.yaml"]\n'})


def test_a_preview_rule_runs_only_on_request(run: Run, root: Path) -> None:
    # The cache is on: what previews are enabled for is no other run's result.
    assert found(run, root) == (["ACM001:3"], "")
    assert found(run, root, "--preview")[0] == ["ACM001:3", "ACM002:3"]
    assert found(run, root, "--no-preview")[0] == ["ACM001:3"]
    codes, said = found(run, root, "--select=ACM002")
    assert codes == []
    assert "select: ACM002 is a preview rule and has no effect without `preview`." in said
    # A prefix takes what there is of it.
    assert found(run, root, "--select=ACM") == (["ACM001:3"], "")
    (root / "d9mlint.toml").write_text('knowledge = ["facts.yaml"]\npreview = true\nselect = ["ACM002"]\n')
    assert found(run, root) == (["ACM002:3"], "")
    assert "(preview)" in run("rule", "--all", cwd=root).out
    assert "preview, on by default with --preview" in run("rule", "ACM002", cwd=root).out


@pytest.mark.parametrize("word", ["ACM900", "acme-quick"])
def test_former_codes_and_names_select(run: Run, root: Path, word: str) -> None:
    codes, said = found(run, root, f"--select={word}")
    assert codes == ["ACM001:3"]
    assert f"warning: command line: select: {word} is now ACM001 (acme-fast-mode)." in said
    assert found(run, root, f"--ignore={word}")[0] == []
    text = f'knowledge = ["facts.yaml"]\n[per-file-ignores]\n"run.py" = ["{word}"]\n'
    (root / "d9mlint.toml").write_text(text)
    codes, said = found(run, root)
    assert codes == []
    assert f"d9mlint.toml:3: per-file-ignores: {word} is now ACM001" in said
    assert run("rule", word, cwd=root).out.startswith("# ACM001 acme-fast-mode")


def test_former_codes_and_names_suppress(run: Run, root: Path) -> None:
    lines = [
        "acme.Engine()  # noqa: ACM900",
        "acme.Engine()  # d9mlint: ignore[acme-quick] measured",
        "acme.Engine()  # noqa: ACM001, ACM900",
        "acme.Engine(fast=False)  # noqa: ACM900",
    ]
    file = root / "run.py"
    file.write_text("import acme\n\n" + "\n".join(lines) + "\n")
    done = run("--output-format=concise", cwd=root)
    assert "DET003 [*] ACM900 is now ACM001 (acme-fast-mode)" in done.out
    assert "DET003 [*] unused `noqa` comment: ACM900" in done.out
    assert "ACM001 `" not in done.out
    assert run("--fix", cwd=root).code == 0
    assert file.read_text().splitlines()[2:] == [
        "acme.Engine()  # noqa: ACM001",
        "acme.Engine()  # d9mlint: ignore[acme-fast-mode] measured",
        "acme.Engine()  # noqa: ACM001",
        "acme.Engine(fast=False)",
    ]


def test_former_codes_end_a_range_and_are_replaced_there(run: Run, root: Path) -> None:
    file = root / "run.py"
    lines = [
        "import acme",
        "",
        "# d9mlint: disable[ACM900]",
        "acme.Engine()",
        "# d9mlint: enable[acme-quick]",
    ]
    file.write_text("\n".join([*lines, "acme.Engine()", "# d9mlint: enable[acme-fats-mode]"]) + "\n")
    done = run("--output-format=concise", cwd=root)
    assert [line.split()[0] for line in done.out.splitlines()[:4]] == [f"run.py:{n}:1:" for n in (3, 5, 6, 7)]
    assert "unknown rule acme-fats-mode. Did you mean acme-fast-mode?" in done.out
    assert run("--fix", cwd=root).code == 1
    assert file.read_text().splitlines()[2:6:2] == [
        "# d9mlint: disable[ACM001]",
        "# d9mlint: enable[acme-fast-mode]",
    ]
    # The code that another one had is what a slip is near to.
    assert "Did you mean ACM900?" in run("--select=acm900", cwd=root).err


def test_a_baseline_of_the_former_code_holds(run: Run, root: Path) -> None:
    now = root / "facts.yaml"
    before = FACTS.replace("ACM001", "ACM900").replace("    replaces: [ACM900, acme-quick]\n", "")
    now.write_text(before)
    assert run("--baseline=known.json", "--update-baseline", cwd=root).code == 0
    now.write_text(FACTS)
    done = run("--baseline=known.json", "--output-format=concise", cwd=root)
    assert done.code == 0, done.out
    assert "ACM001" not in done.out and "no longer" not in done.out
    (root / "run.py").write_text(CODE + "acme.Engine()\n")
    assert found(run, root, "--baseline=known.json")[0] == ["ACM001:4"]


def test_a_retired_rule_is_explained_and_never_runs(tmp_path: Path) -> None:
    rules = tmp_path / "rules"
    shutil.copytree(RULES, rules, ignore=shutil.ignore_patterns("site", "recipes", "evidence"))
    page = next(rules.glob("DET301-*.md"))
    page.write_text(page.read_text().replace("---\n", "---\nretired: 0.2.0\n", 1))
    pages = {one.code: one for one in compile_rules(rules).rules}
    settings = load_settings(str(tmp_path), isolated=True, overrides={"select": ["DET301", "DET30"]})
    assert "DET301" not in select(pages, settings).codes
    assert "DET302" in select(pages, settings).codes
    assert outdated(pages, settings) == [
        "command line: select: DET301 was retired in d9mlint 0.2.0 and has no effect."
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("replaces: [DET302]", "`DET302` is already used in"),
        ("replaces: [cudnn-nondeterministic-default]", "is already used in"),
        ("replaces: DET250", "`replaces` is a list of codes and names that rules had"),
        ("replaces: [det250x!]", "`replaces` is a list of codes and names that rules had"),
        ("preview: perhaps", "preview"),
    ],
)
def test_what_a_page_may_say_of_it(tmp_path: Path, line: str, said: str) -> None:
    name = "cudnn-nondeterministic-default"
    front = "family: settings\nsummary: s\nseverity: error\nconfidence: high\ndefault: true\nsince: 0.1.0\nlibraries: []\n"
    for code, own, extra in (("DET302", name, ""), ("DET303", "other", f"{line}\n")):
        text = f"---\ncode: {code}\nname: {own}\n{front}{extra}---\n# {code} {own}\n"
        (tmp_path / f"{code}-{own}.md").write_text(text)
    with pytest.raises(KnowledgeError) as caught:
        compile_rules(tmp_path)
    assert said in str(caught.value)


@pytest.mark.parametrize("other", ["ACM900", "acme-quick", "acme-fast-mode"])
def test_one_rule_has_one_severity(run: Run, root: Path, other: str) -> None:
    config = (root / "d9mlint.toml").read_text()
    (root / "d9mlint.toml").write_text(f'{config}[severity]\nACM001 = "advice"\n{other} = "error"\n')
    done = run(cwd=root)
    assert done.code == 2
    assert (
        f"d9mlint.toml:4: severity: ACM001 and {other} are the same rule (ACM001, acme-fast-mode), with the severities "
        "advice and error. Keep one of them." in done.err
    )
    (root / "d9mlint.toml").write_text(
        f'{config}[severity]\nACM = "advice"\n{other} = "error"\nACM001 = "error"\n'
    )
    assert found(run, root)[0] == ["ACM001:3"]
    # What is nearer replaces what it inherits from, under whichever name.
    (root / "base.toml").write_text(f'[severity]\n{other} = "error"\n')
    (root / "d9mlint.toml").write_text(f'extend = "base.toml"\n{config}[severity]\nACM001 = "advice"\n')
    assert run("--output-format", "json", cwd=root).code == 0


def test_another_rule_cannot_take_a_code_of_d9mlint(run: Run, root: Path) -> None:
    (root / "facts.yaml").write_text(FACTS.replace("ACM900", "DET301"))
    done = run(cwd=root)
    assert done.code == 2
    assert "facts.yaml:5: `replaces` is without codes that begin with DET" in done.err
