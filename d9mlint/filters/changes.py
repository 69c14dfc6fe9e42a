"""Which rows of a file differ from a git revision: ``--diff-from``.

git is asked for the files of the revision and for their content, and for nothing else: the index and the working
tree are left alone. So no patch has to be parsed, no option of the user's (``diff.*``, colors, external programs,
text conversion) has a say, and no program that the repository's own configuration names is run (``core.fsmonitor``,
filters, a transport that fetches missing objects). Rows are compared as the analysis counts them, which for a notebook
are the rows of its code cells. Where it is unknown what a row was, it counts as changed.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from d9mlint.base.errors import UsageError
from d9mlint.base.files import is_below
from d9mlint.base.paths import absolute
from d9mlint.base.source import Source, make_source

DEEPEST = 24
"""So often are the parts of two texts divided before what is left counts as changed."""

_KEPT = (
    "GIT_CEILING_DIRECTORIES",
    "GIT_DISCOVERY_ACROSS_FILESYSTEM",
    "GIT_EXEC_PATH",
    # Where the user's own settings are, such as which repositories of other users are safe.
    "GIT_CONFIG",
)
_OPTIONS = ("--no-pager", "--no-replace-objects", "--literal-pathspecs", "-c", "safe.bareRepository=explicit")


class Changes(NamedTuple):
    """How a file differs: not at all (``same``), or in these rows (1-based, both ends included); None: in all."""

    same: bool
    rows: tuple[tuple[int, int], ...] | None = None

    def touch(self, first: int, last: int) -> bool:
        """Whether any of the rows from ``first`` to ``last`` differs."""
        if self.same:
            return False
        return self.rows is None or any(a <= last and first <= b for a, b in self.rows)


_SAME = Changes(True)
_ALL = Changes(False)


def changes(revision: str, root: str, sources: Mapping[str, Source]) -> dict[str, Changes]:
    """How each of the files, by absolute path, differs from a git revision. Raises UsageError."""
    top = os.path.realpath(absolute(_text(_git(root, "rev-parse", "--show-toplevel"))))
    tree = _text(
        _git(
            root,
            "rev-parse",
            "--verify",
            "--quiet",
            "--end-of-options",
            f"{revision}^{{tree}}",
            said=revision,
        )
    )
    before = _files(root, tree)
    result: dict[str, Changes] = {}
    wanted: dict[str, str] = {}
    for path, source in sources.items():
        real = os.path.realpath(path)
        entry = before.get(os.path.relpath(real, top)) if is_below(real, top) else None
        if entry is None or (source.problem is not None and not source.data):
            result[path] = _ALL
        elif _object_name(source.data, len(entry)) == entry:
            result[path] = _SAME
        else:
            wanted[path] = entry
    contents = _contents(root, wanted.values())
    for path, name in wanted.items():
        old = contents.get(name)
        result[path] = _ALL if old is None else compare(make_source(path, old), sources[path])
    return result


def compare(old: Source, new: Source) -> Changes:
    """The rows of the new text that are not in the old one, by lines; their line ends do not count."""
    if old.problem is not None or new.problem is not None:
        return _ALL
    return Changes(False, tuple(changed_rows(_lines(old), _lines(new))))


def changed_rows(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The rows of ``after`` (1-based, both ends included) that no common sequence of lines accounts for.

    A patience diff: lines that are unique on both sides and in the same order divide the texts, again and again
    up to ``DEEPEST``. Its time grows with the number of lines whatever they are; a finer comparison would find
    fewer changed rows, never more.
    """
    found: list[tuple[int, int]] = []
    pending = [(0, len(before), 0, len(after), 0)]
    while pending:
        a, a_end, b, b_end, depth = pending.pop()
        while a < a_end and b < b_end and before[a] == after[b]:
            a, b = a + 1, b + 1
        while a < a_end and b < b_end and before[a_end - 1] == after[b_end - 1]:
            a_end, b_end = a_end - 1, b_end - 1
        if b == b_end:
            continue
        anchors = _anchors(before[a:a_end], after[b:b_end]) if depth < DEEPEST else []
        if not anchors:
            found.append((b + 1, b_end))
            continue
        start = (a, b)
        for x, y in (*((a + i, b + j) for i, j in anchors), (a_end, b_end)):
            pending.append((start[0], x, start[1], y, depth + 1))
            start = (x, y)
    return sorted(found)


def _anchors(before: Sequence[str], after: Sequence[str]) -> list[tuple[int, int]]:
    """The longest run of lines, each unique on both sides, that come in the same order: their two indices."""
    once = {line: i for i, line in enumerate(before)}
    counts = Counter(before)
    other = Counter(after)
    pairs = [(once[x], j) for j, x in enumerate(after) if other[x] == 1 and counts.get(x) == 1]
    ends: list[int] = []
    last: list[int] = []
    previous: list[int] = []
    for k, (i, _) in enumerate(pairs):
        at = bisect_left(ends, i)
        previous.append(last[at - 1] if at else -1)
        ends[at : at + 1] = [i]
        last[at : at + 1] = [k]
    chosen: list[tuple[int, int]] = []
    k = last[-1] if last else -1
    while k >= 0:
        chosen.append(pairs[k])
        k = previous[k]
    return chosen[::-1]


def _lines(source: Source) -> list[str]:
    return [source.line(row) for row in range(1, source.lines + 1)]


def _files(root: str, tree: str) -> dict[str, str]:
    """The regular files of a tree: the object that holds the content by path, below the top of the repository."""
    found: dict[str, str] = {}
    for entry in _git(root, "ls-tree", "-r", "-z", "--full-tree", tree).split(b"\0"):
        about, _, path = entry.partition(b"\t")
        words = about.split()
        if len(words) == 3 and words[0].startswith(b"100"):
            found[os.fsdecode(path)] = words[2].decode("ascii")
    return found


def _object_name(data: bytes, length: int) -> str:
    """The name that git gives to a file's content; ``length`` tells its two kinds of names apart."""
    kind = hashlib.sha256 if length == 64 else hashlib.sha1
    return kind(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def _contents(root: str, names: Iterable[str]) -> dict[str, bytes]:
    """The content of objects, without those that this clone does not have."""
    unique = sorted(set(names))
    if not unique:
        return {}
    given = "".join(f"{name}\n" for name in unique).encode()
    # A partial clone may lack objects, over which git ends: what it printed by then holds.
    out = _git(root, "cat-file", "--batch", given=given, partly=True)
    found: dict[str, bytes] = {}
    at = 0
    while at < len(out):
        end = out.find(b"\n", at)
        words = out[at:end].split()
        if end < 0 or len(words) < 2:
            break
        at = end + 1
        if len(words) == 3:
            size = int(words[2])
            if words[1] == b"blob" and at + size < len(out):
                found[words[0].decode("ascii")] = out[at : at + size]
            at += size + 1
    return found


def _text(out: bytes) -> str:
    return os.fsdecode(out).removesuffix("\n")


def _environment() -> dict[str, str]:
    """The environment without what points git to another repository, or lets it fetch or ask for anything."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("GIT_") or k.startswith(_KEPT)}
    return {
        **kept,
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }


def _git(directory: str, *arguments: str, given: bytes = b"", said: str = "", partly: bool = False) -> bytes:
    try:
        done = subprocess.run(
            ["git", *_OPTIONS, "-C", directory, *arguments],
            input=given,
            capture_output=True,
            env=_environment(),
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"git cannot be run: {getattr(error, 'strerror', None) or error}.") from error
    if done.returncode and not partly:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        if said and not lines:
            raise UsageError(f"{said} is not a revision of this git repository.")
        raise UsageError(f"git {arguments[0]}: {lines[-1] if lines else 'unknown error'}.")
    return done.stdout
