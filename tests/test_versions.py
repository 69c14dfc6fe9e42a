"""Version ranges as the knowledge base writes them."""

from __future__ import annotations

import random

import pytest
from packaging.specifiers import InvalidSpecifier, SpecifierSet
from packaging.version import Version

from d9mlint.config.pins import normal_spec
from d9mlint.config.targets import admits
from d9mlint.knowledge.versions import matches, parse, split


@pytest.mark.parametrize(
    ("spec", "version", "expected"),
    [
        (">=1.7,<2.10", "2.9.1", True),
        (">=1.7,<2.10", "2.10", False),
        ("<1.8", "1.13", False),
        ("<1.8", "1.7.1", True),
        ("any", "0.1", True),
        ("", "2.13.0+cu126", True),
        ("torch>=1.13", "2.13.0+cu126", True),
        ("torch>=1.13", "1.12", False),
        ("==2.4", "2.4.0", True),
        ("==2.4", "2.4.1", False),
        ("==2.4.*", "2.4.1", True),
        ("!=2.4", "2.4.1", True),
        ("~=2.4", "2.9", True),
        ("~=2.4", "3.0", False),
        ("~=2.4.1", "2.5", False),
        ("<=2", "2.0.0", True),
    ],
)
def test_a_version_lies_in_a_range_or_not(spec: str, version: str, expected: bool) -> None:
    assert matches(spec, version) is expected


def test_ranges_mean_what_they_mean_for_pip() -> None:
    rng = random.Random(0)
    versions = [f"{a}.{b}{c}" for a in (0, 1, 2) for b in range(15) for c in ("", ".0", ".1", ".2")]
    for _ in range(4000):
        clauses = []
        for _ in range(rng.choice((1, 1, 2, 3))):
            operator = rng.choice(("==", ">=", "<=", "!=", "~=", ">", "<"))
            every = ".*" * (operator in ("==", "!=") and rng.random() < 0.4)
            clauses.append(operator + rng.choice(versions) + every)
        spec = ",".join(clauses)
        ours = normal_spec(spec)
        assert ours is not None
        for version in rng.sample(versions, 6):
            assert matches(ours, version) is SpecifierSet(spec).contains(version), (spec, version)


_SUFFIXES = ("", "", "a1", "rc1", ".dev3", ".post1", ".post1.dev2", "rc1.dev1", "+cu118")


def test_ranges_of_all_kinds_of_versions_mean_what_they_mean_for_pip() -> None:
    rng = random.Random(0)
    known = [f"{a}.{b}{c}" for a in (1, 2) for b in range(4) for c in ("", ".0", ".1")]
    compared = exact = 0
    for _ in range(6000):
        clauses = []
        for _ in range(rng.choice((1, 1, 2))):
            operator = rng.choice(("==", "===", ">=", "<=", "!=", "~=", ">", "<"))
            clauses.append(
                operator + rng.choice(("", "", "", "1!")) + rng.choice(known) + rng.choice(_SUFFIXES)
            )
        spec = ",".join(clauses)
        try:
            theirs = SpecifierSet(spec)
        except InvalidSpecifier:
            continue
        ours = normal_spec(spec)
        assert ours is not None
        if len(clauses) == 1 and operator in ("==", "==="):
            # A release that is not known, or a build of one, is judged as that release.
            assert parse(ours[2:]) == Version(clauses[0].lstrip("=")).release
            exact += 1
            continue
        if any((clause.startswith("==") and "+" in clause) or clause.startswith("===") for clause in clauses):
            continue
        for version in rng.sample(known, 6):
            assert admits(ours, version) is theirs.contains(version), (spec, version)
            compared += 1
    assert compared > 10_000
    assert exact > 300


def test_parts_are_numbers_and_what_follows_the_release_is_not_looked_at() -> None:
    assert parse("2.13.0+cu126") == (2, 13, 0)
    assert parse("v1.8.0rc1") == (1, 8, 0)
    assert parse("1!2.0") == (2, 0)
    assert parse("nightly") == ()


def test_the_library_that_a_range_names_is_told() -> None:
    assert split("tensorflow<2.16") == ("tensorflow", (("<", "2.16"),))
    assert split(" any ") == ("", ())


def test_text_that_is_no_range_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"not a version range: 'since 1\.7'"):
        matches("since 1.7", "1.8")
