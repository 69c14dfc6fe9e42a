"""Baselines: known findings of an old project, by fingerprints that are free of line numbers."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from d9mlint.base.errors import UsageError
from d9mlint.base.files import write_output
from d9mlint.base.findings import Finding, fingerprint
from d9mlint.base.paths import read_limited, relative_to

if TYPE_CHECKING:
    from d9mlint.knowledge.schema import RulePage

VERSION = 1
KEYS = ("fingerprint", "path", "code", "scope")

_SURROGATE = re.compile("[\ud800-\udfff]")


def fingerprints(findings: Sequence[Finding], root: str) -> list[str]:
    """The fingerprint of each finding; equal ones of a file are numbered in file order."""
    seen: dict[tuple[str, str, str, str], int] = {}
    result: list[str] = []
    for f in findings:
        key = (f.code, relative_to(f.path, root), f.scope, f.subject)
        count = seen.get(key, 0)
        seen[key] = count + 1
        result.append(fingerprint(*key, count))
    return result


def former_fingerprints(
    findings: Sequence[Finding], root: str, rules: Mapping[str, RulePage]
) -> dict[int, list[str]]:
    """The fingerprints, by the id of the finding, that findings had when their rules had other codes."""
    found: dict[int, list[str]] = {}
    for code in sorted({f.code for f in findings if rules[f.code].replaces}):
        mine = [f for f in findings if f.code == code]
        for old in rules[code].replaces:
            marks = fingerprints([msgspec.structs.replace(f, code=old) for f in mine], root)
            for f, mark in zip(mine, marks, strict=True):
                found.setdefault(id(f), []).append(mark)
    return found


def read_baseline(path: str) -> frozenset[str]:
    """The fingerprints in a baseline file. Raises UsageError when it is missing or malformed."""
    return frozenset(str(entry["fingerprint"]) for entry in _entries(path))


def _entries(path: str) -> list[dict[str, Any]]:
    try:
        data = json.loads(read_limited(path, 256_000_000).decode("utf-8"))
    except FileNotFoundError:
        raise UsageError(f"The baseline {path} does not exist; --update-baseline creates it.") from None
    except (OSError, ValueError) as error:
        raise UsageError(f"The baseline {path} cannot be read: {error}.") from error
    except RecursionError as error:
        raise UsageError(f"The baseline {path} cannot be read: it is nested too deeply.") from error
    findings = data.get("findings") if isinstance(data, dict) else None
    if not isinstance(findings, list) or data.get("version") != VERSION:
        raise UsageError(f"{path} is not a baseline of this version; --update-baseline writes a new one.")
    if not all(isinstance(f, dict) and all(isinstance(f.get(key), str) for key in KEYS) for f in findings):
        raise UsageError(f"{path}: an entry has no fingerprint, code, path or scope.")
    return findings


def stale(path: str, present: Iterable[str], root: str, reported: Iterable[str]) -> list[dict[str, Any]]:
    """The entries that match no finding any more, as far as their files were ``reported`` on or are gone."""
    looked_at = {relative_to(p, root) for p in reported}
    marks = set(present)
    return [
        e
        for e in _entries(path)
        if e["fingerprint"] not in marks
        and (e["path"] in looked_at or not os.path.exists(os.path.join(root, e["path"])))
    ]


def prune_baseline(path: str, present: Iterable[str], root: str, reported: Iterable[str]) -> int:
    """Remove the stale entries and return their number."""
    gone = {e["fingerprint"] for e in stale(path, present, root, reported)}
    if gone:
        _write(path, [e for e in _entries(path) if e["fingerprint"] not in gone])
    return len(gone)


def add_to_baseline(path: str, findings: Iterable[tuple[Finding, str]], root: str) -> int:
    """Add findings to a baseline, which need not exist, and return their number."""
    new = [_entry(f, mark, root) for f, mark in findings]
    _write(path, [*(_entries(path) if os.path.exists(path) else ()), *new])
    return len(new)


def _entry(finding: Finding, mark: str, root: str) -> dict[str, Any]:
    return {
        "fingerprint": mark,
        "code": finding.code,
        "path": relative_to(finding.path, root),
        "scope": finding.scope,
    }


def write_baseline(
    path: str, findings: Iterable[tuple[Finding, str]], root: str, reported: Iterable[str]
) -> None:
    """Write the findings as the new baseline: sorted, readable, and stable under line moves.

    What an older baseline says of files that still exist and were not ``reported`` on now is kept.
    """
    entries = [_entry(f, mark, root) for f, mark in findings]
    if os.path.exists(path):
        looked_at = {relative_to(p, root) for p in reported}
        entries += [
            e
            for e in _entries(path)
            if e["path"] not in looked_at and os.path.exists(os.path.join(root, e["path"]))
        ]
    _write(path, entries)


def _write(path: str, entries: list[dict[str, Any]]) -> None:
    entries = sorted(entries, key=lambda e: (e["path"], e["code"], e["scope"], e["fingerprint"]))
    text = json.dumps({"version": VERSION, "findings": entries}, indent=1, ensure_ascii=False) + "\n"
    # Bytes of names that are not UTF-8 are escaped, so that the same names are read from it.
    text = _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)
    try:
        write_output(path, text.encode("utf-8"))
    except OSError as error:
        raise UsageError(f"The baseline {path} cannot be written: {error.strerror or error}.") from error
