"""Names of libraries' APIs are knowledge, not code: what code still names is listed, and the list may only shrink."""

from __future__ import annotations

import ast
import re
import sys
from functools import cache
from pathlib import Path

import pytest
import yaml
from support import ROOT

from d9mlint import knowledge

LISTED = ROOT / "tests/data/api_names.yaml"
OTHER_HALF = ("verify", "trace")
"""These run or patch what they name."""
_DOTTED = re.compile(r"[A-Za-z_]\w*(\.\w+)+\.?")


def names_in(path: Path, libraries: frozenset[str]) -> set[str]:
    """The string literals in a module that are dotted names of libraries, but for those in docstrings."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    bodies = [
        node.body
        for node in ast.walk(tree)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef))
    ]
    texts = {id(body[0].value) for body in bodies if body and isinstance(body[0], ast.Expr)}
    return {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and id(node) not in texts
        and _DOTTED.fullmatch(node.value)
        and node.value.partition(".")[0] in libraries
    }


@cache
def names_in_code() -> dict[str, set[str]]:
    """Names by module."""
    libraries = knowledge.load().libraries | {"numpy", "tf", "torch"}
    libraries -= sys.stdlib_module_names
    found = {
        path.relative_to(ROOT / "d9mlint").as_posix(): names_in(path, libraries)
        for path in sorted((ROOT / "d9mlint").rglob("*.py"))
        if path.relative_to(ROOT / "d9mlint").parts[0] not in OTHER_HALF
    }
    return {module: names for module, names in found.items() if names}


@cache
def listed() -> dict[str, set[str]]:
    """Names by module that have a reason to be in code."""
    found: dict[str, set[str]] = {}
    for group in yaml.safe_load(LISTED.read_text(encoding="utf-8")):
        assert group["reason"].strip()
        for module, names in group["modules"].items():
            assert module not in found, f"{module} is listed twice"
            found[module] = set(names)
    return found


def unexpected(module: str, names: set[str]) -> str:
    return (
        f"d9mlint/{module} names {', '.join(sorted(names))}: facts about a library belong into rules/knowledge, or "
        "under `match` in the page of the rule. Only a model that needs code may name it, with its reason in "
        f"{LISTED.name}."
    )


def test_modules_that_name_apis_are_listed() -> None:
    others = {module: names for module, names in names_in_code().items() if module not in listed()}
    assert not others, "\n".join(unexpected(*one) for one in sorted(others.items()))


# Parametrized by the list alone: every worker collects this module, one of them reads the code.
@pytest.mark.parametrize("module", sorted(listed()))
def test_api_names_in_code_are_listed(module: str) -> None:
    code, known = names_in_code().get(module, set()), listed()[module]
    new, gone = code - known, sorted(known - code)
    assert not new, unexpected(module, new)
    assert not gone, f"d9mlint/{module} no longer names {', '.join(gone)}: remove it from {LISTED.name}."


def test_names_are_found_where_they_are_used(tmp_path: Path) -> None:
    file = tmp_path / "rule.py"
    text = """'torch.about'


def f(x):
    'tf.about'
    return x in ("torch.rand", "acme.rand", "torch", "os.path", "a torch.rand")
"""
    file.write_text(text)
    assert names_in(file, frozenset({"torch", "tf"})) == {"torch.rand"}
