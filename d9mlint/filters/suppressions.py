"""Suppression comments: which findings they hide, and which of them hide nothing.

Comments come from the facts, so a ``# noqa`` inside a string is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.base.errors import nearest
from d9mlint.base.findings import Applicability, Edit, Finding, Fix, Severity

if TYPE_CHECKING:
    from d9mlint.base.source import Source
    from d9mlint.ir.nodes import Comment
    from d9mlint.knowledge.schema import RulePage

UNUSED = "DET003"

_NOQA = re.compile(r"#\s*(?i:noqa)\b(?:\s*:\s*(?P<codes>[A-Z]+[0-9]+(?:[\s,]+[A-Z]+[0-9]+)*))?")
_PRAGMA = re.compile(
    r"#\s*d9mlint\s*:\s*(?P<verb>ignore|file-ignore|disable|enable|[\w-]+)(?:\s*\[(?P<codes>[^\]]*)\])?"
)
_NOQA_CODES = re.compile(r"[A-Z]+[0-9]+")
VERBS = ("ignore", "file-ignore", "disable", "enable")


class Suppression(NamedTuple):
    """One pragma: the rows it covers, the codes it names (None: all), and where it is written.

    ``words`` are the codes or names as written, with their offsets in the text; ``unknown`` those that
    name no rule, of which ``foreign`` may be another tool's.
    """

    verb: str
    first: int
    last: int
    codes: frozenset[str] | None
    words: tuple[tuple[str, str | None], ...]
    start: int
    end: int
    comment: Comment


class Hidden(NamedTuple):
    """A finding that a comment hides."""

    finding: Finding
    reason: str


def suppressions(
    comments: Iterable[Comment], rules: Mapping[str, RulePage], source: Source
) -> list[Suppression]:
    """All pragmas of a file, in order; a ``disable`` lasts up to its ``enable`` or the end of the file. Codes and
    names that rules had mean the rules of today."""
    names = {p.name: c for c, p in rules.items()}
    names |= _replaced(rules)
    found: list[Suppression] = []
    last_row = source.lines
    for comment in comments:
        for match in _NOQA.finditer(comment.text):
            words = None
            if match["codes"] is not None:
                written = _NOQA_CODES.findall(match["codes"])
                words = [(w, w if w in rules else names.get(w)) for w in written]
            elif comment.own_line and match.start():
                # It keeps other tools from the line of text in which it stands, as one that is too long.
                continue
            found.append(_make("noqa", comment, match, words, comment.first, comment.last))
        for match in _PRAGMA.finditer(comment.text):
            verb = match["verb"]
            words = None
            if match["codes"] is not None:
                written = [w for w in re.split(r"[\s,]+", match["codes"]) if w]
                words = [(w, w if w in rules else names.get(w)) for w in written]
            first, last = {
                "file-ignore": (1, last_row),
                "disable": (comment.row, last_row),
            }.get(verb, (comment.first, comment.last))
            found.append(_make(verb, comment, match, words, first, last))
    return _close_ranges(found)


def _make(
    verb: str,
    comment: Comment,
    match: re.Match[str],
    words: list[tuple[str, str | None]] | None,
    first: int,
    last: int,
) -> Suppression:
    codes = None if words is None else frozenset(c for _, c in words if c is not None)
    start, end = comment.start + match.start(), comment.start + match.end()
    return Suppression(verb, first, last, codes, tuple(words or ()), start, end, comment)


def _close_ranges(found: list[Suppression]) -> list[Suppression]:
    result: list[Suppression] = []
    for i, one in enumerate(found):
        if one.verb == "disable":
            for later in found[i + 1 :]:
                if later.verb == "enable" and (later.codes is None or later.codes == one.codes):
                    one = one._replace(last=later.comment.row)
                    break
        result.append(one)
    return result


def apply(
    findings: Sequence[Finding],
    found: Sequence[Suppression],
    source: Source,
) -> tuple[list[Finding], list[Hidden], frozenset[tuple[int, str]]]:
    """Split a file's findings into those that stay and those that are hidden.

    The third value holds (index of the suppression, code) of all that hid something.
    """
    kept: list[Finding] = []
    hidden: list[Hidden] = []
    used: set[tuple[int, str]] = set()
    active = [(i, s) for i, s in enumerate(found) if s.verb in ("noqa", "ignore", "file-ignore", "disable")]
    for finding in findings:
        row = source.row_column(finding.start)[0]
        reason = None
        for i, one in active:
            if one.first <= row <= one.last and (one.codes is None or finding.code in one.codes):
                used.add((i, finding.code))
                reason = reason or one.comment.text
        if reason is None:
            kept.append(finding)
        else:
            hidden.append(Hidden(finding, reason))
    return kept, hidden, frozenset(used)


def unused(
    path: str,
    found: Sequence[Suppression],
    used: frozenset[tuple[int, str]],
    enabled: frozenset[str],
    rules: Mapping[str, RulePage],
    source: Source,
) -> list[Finding]:
    """DET003 for every pragma that hid nothing, as far as its rules are enabled, and for unknown rules."""
    result: list[Finding] = []
    now = _replaced(rules)
    for i, one in enumerate(found):
        verb = one.verb
        if verb not in ("noqa", *VERBS):
            text = f"unknown directive `{verb}`.{nearest(verb, VERBS)}"
            result.append(
                _finding(path, one, text, "use `ignore`, `file-ignore`, `disable` or `enable`", None)
            )
            continue
        if (verb == "enable" and not one.words) or UNUSED in (one.codes or ()):
            continue
        if one.codes is None and not one.words:
            if verb != "noqa" and not any(k == i for k, _ in used):
                text = f"unused {_shown(verb)} comment"
                result.append(_finding(path, one, text, "remove it", _removal(one, (), source)))
            continue
        stale = [
            w
            for w, c in one.words
            # An `enable` hides nothing.
            if verb != "enable"
            and c is not None
            and ((c in enabled and (i, c) not in used) or rules[c].retired)
        ]
        old = [w for w, _ in one.words if w in now and w not in stale]
        strange = [w for w, c in one.words if c is None and (verb != "noqa" or w.startswith("DET"))]
        if stale:
            text = f"unused {_shown(verb)} comment: {', '.join(stale)}"
            kept = [w for w, _ in one.words if w not in stale]
            result.append(_finding(path, one, text, "remove it", _removal(one, kept, source)))
        if old and not stale:
            new = {w: now[w] if w.isupper() else rules[now[w]].name for w in old}
            text = "; ".join(f"{w} is now {now[w]} ({rules[now[w]].name})" for w in old)
            written = list(dict.fromkeys(new.get(w, w) for w, _ in one.words))
            fix = _removal(one, written, source, "use today's codes and names")
            result.append(_finding(path, one, text, f"write {', '.join(new.values())}", fix))
        if strange:
            known = [*rules, *(p.name for p in rules.values())]
            hint = nearest(strange[0], known)
            text = f"unknown rule {', '.join(strange)}.{hint}"
            result.append(_finding(path, one, text, "name an existing rule", None))
    return result


def _replaced(rules: Mapping[str, RulePage]) -> dict[str, str]:
    return {word: code for code, page in rules.items() for word in page.replaces}


def _shown(verb: str) -> str:
    return "`noqa`" if verb == "noqa" else f"`d9mlint: {verb}`"


def _finding(path: str, one: Suppression, message: str, help: str, fix: Fix | None) -> Finding:
    return Finding(
        UNUSED,
        path,
        one.start,
        one.end,
        message,
        help,
        Severity.WARNING,
        subject=one.verb + " " + " ".join(w for w, _ in one.words),
        fix=fix,
    )


def _removal(
    one: Suppression, kept: Sequence[str], source: Source, message: str = "remove the unused codes"
) -> Fix:
    """The edit that takes unused codes, or the whole pragma, away. A reason after it goes with it."""
    text = source.text
    comment_end = one.comment.start + len(one.comment.text)
    if kept:
        written = text[one.start : one.end]
        listed = re.search(r"(?<=\[)[^\]]*" if "[" in written else r"(?<=:)\s*[A-Za-z][\w\s,]*\Z", written)
        assert listed is not None
        space = re.match(r"\s*", listed.group())
        content = (space.group() if space else "") + ", ".join(kept)
        edit = Edit(one.start + listed.start(), one.start + listed.end(), content)
        return Fix(Applicability.SAFE, message, (edit,))
    following = text.find("#", one.end, comment_end)
    start, end = one.start, comment_end if following < 0 else following
    if end == comment_end:
        while start > 0 and text[start - 1] in " \t":
            start -= 1
        if start == 0 or text[start - 1] in "\r\n":
            # Nothing else is on the line: it goes as a whole.
            end += 2 if text.startswith("\r\n", end) else 1 if end < len(text) else 0
    return Fix(Applicability.SAFE, "remove the unused suppression", (Edit(start, end, ""),))
