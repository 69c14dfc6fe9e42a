"""Which rules run, and which of their findings are shown: decided here and nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from d9mlint.base.errors import UsageError, nearest
from d9mlint.base.findings import SWITCHED
from d9mlint.base.paths import relative_to
from d9mlint.config.gitignore import Ignore, make_ignore

if TYPE_CHECKING:
    from d9mlint.base.findings import Finding
    from d9mlint.config.settings import Settings
    from d9mlint.knowledge.schema import RulePage

ALWAYS = frozenset({"DET001", "DET002"})
"""Files that could not be judged are reported whatever rules are chosen, unless they are ignored by name."""

_SEVERITY = {"advice": 0, "warning": 1, "error": 2}
_CONFIDENCE = {"low": 0, "medium": 1, "high": 2}


class Selection(NamedTuple):
    """``codes`` are the rules that run; ``explicit`` those that were asked for, not on by default; ``advising``
    those whose advice is shown all the same."""

    codes: frozenset[str]
    explicit: frozenset[str]
    advising: frozenset[str] = frozenset()


def select(rules: Mapping[str, RulePage], settings: Settings) -> Selection:
    """Decide which rules run. The longest selector that names a rule wins; ``ignore`` wins a tie, except
    that what the command line selects beats what a file ignores. Raises UsageError for unknown rules."""
    chosen = _weights(rules, settings, "select", "extend-select")
    dropped = _weights(rules, settings, "ignore", "extend-ignore")
    cli = any(settings.origins.get(k) == "command line" for k in ("select", "extend-select"))
    file = not any(settings.origins.get(k) == "command line" for k in ("ignore", "extend-ignore"))
    tie = cli and file
    codes: set[str] = set()
    for code, page in rules.items():
        if page.retired or (page.preview and not settings.preview):
            continue
        weight = chosen.get(code, 0 if not settings.select and page.default else -1)
        if code in ALWAYS:
            weight = max(weight, 0)
        against = dropped.get(code, -1)
        if weight > against or (tie and weight == against and weight >= 0):
            codes.add(code)
    lowered = _weights(rules, settings, "severity")
    advising = frozenset(code for code in codes if rules[code].show_advice or code in lowered)
    return Selection(frozenset(codes), frozenset(codes & set(chosen)), advising)


def fixed_codes(rules: Mapping[str, RulePage], settings: Settings) -> frozenset[str]:
    """The rules whose fixes are offered; the longest selector wins, ``unfixable`` a tie."""
    wanted = _weights(rules, settings, "fixable")
    refused = _weights(rules, settings, "unfixable")
    return frozenset(code for code in wanted if wanted[code] > refused.get(code, -1))


def _weights(rules: Mapping[str, RulePage], settings: Settings, *keys: str) -> dict[str, int]:
    """For each rule that a selector under these keys names, how specific the most specific one is."""
    result: dict[str, int] = {}
    for key in keys:
        origin = settings.origins.get(key, key)
        for selector in getattr(settings, key.replace("-", "_")):
            # An entry of a table has its own line.
            place = settings.origins.get(f"{key}.{selector}", origin)
            for code in expand(selector, rules, f"{place}: {key}"):
                result[code] = max(result.get(code, -1), weight(selector))
    return result


def weight(selector: str) -> int:
    """How specific a selector is: ALL, a family, then code prefixes by length; a name is a whole code."""
    if selector == "ALL":
        return 1
    if re.fullmatch(r"[A-Z]+[0-9]*", selector):
        return 2 + len(selector)
    return 3 if re.fullmatch(r"[a-z]+", selector) else 2 + len("DET000")


def expand(selector: str, rules: Mapping[str, RulePage], place: str) -> list[str]:
    """The codes that a selector names. Raises UsageError, naming ``place``, when there is none."""
    if selector == "ALL":
        return sorted(rules)
    if selector in rules:
        return [selector]
    if (now := _replaced(rules).get(selector)) is not None:
        return [now]
    if re.fullmatch(r"[A-Z]+[0-9]*", selector):
        codes = [c for c in sorted(rules) if c.startswith(selector)]
    else:
        codes = [c for c, p in sorted(rules.items()) if selector in (p.name, p.family)]
    if not codes:
        known = ["ALL", *rules, *(word for p in rules.values() for word in (p.name, p.family, *p.replaces))]
        prefix = selector.upper()
        meant = re.fullmatch(r"[A-Z]+[0-9]*", prefix) and any(code.startswith(prefix) for code in rules)
        hint = f" Did you mean {prefix}?" if meant else nearest(selector, known)
        raise UsageError(f"{place}: unknown rule {selector}.{hint}")
    return codes


def _replaced(rules: Mapping[str, RulePage]) -> dict[str, str]:
    """The codes of today's rules by the codes and names that they replace."""
    return {word: code for code, page in rules.items() for word in page.replaces}


_SELECTORS = ("select", "extend-select", "ignore", "extend-ignore", "fixable", "unfixable")


def outdated(rules: Mapping[str, RulePage], settings: Settings) -> list[str]:
    """What is to be said of selectors that have another name now, or no effect."""
    now = _replaced(rules)
    names = {page.name: code for code, page in rules.items()}
    said: list[str] = []
    for place, key, selector in _written(settings):
        code = selector if selector in rules else names.get(selector)
        if selector in now:
            said.append(f"{place}: {selector} is now {now[selector]} ({rules[now[selector]].name}).")
        elif code is not None and (version := rules[code].retired):
            said.append(f"{place}: {selector} was retired in d9mlint {version} and has no effect.")
        elif code is not None and rules[code].preview and not settings.preview and key.endswith("select"):
            said.append(f"{place}: {selector} is a preview rule and has no effect without `preview`.")
    return said


def _written(settings: Settings) -> list[tuple[str, str, str]]:
    """Every selector with its place and its key."""
    found = [
        (f"{settings.origins.get(key, key)}: {key}", key, selector)
        for key in _SELECTORS
        for selector in getattr(settings, key.replace("-", "_"))
    ]
    entries = [
        *(("per-file-ignores", pattern, chosen) for pattern, chosen in settings.per_file_ignores.items()),
        *(("severity", selector, (selector,)) for selector in settings.severity),
    ]
    for key, entry, selectors in entries:
        origin = settings.origins.get(f"{key}.{entry}", settings.origins.get(key, key))
        found += [(f"{origin}: {key}", key, selector) for selector in selectors]
    return found


class FileIgnores:
    """``per-file-ignores``: which rules are not reported in which files."""

    def __init__(self, rules: Mapping[str, RulePage], settings: Settings, root: str) -> None:
        place = settings.origins.get("per-file-ignores", "per-file-ignores")
        base = settings.base or root
        self._entries: list[tuple[Ignore, frozenset[str]]] = [
            (
                make_ignore(base, [pattern]),
                frozenset(
                    code
                    for selector in selectors
                    for code in expand(
                        selector, rules, settings.origins.get(f"per-file-ignores.{pattern}", place)
                    )
                ),
            )
            for pattern, selectors in settings.per_file_ignores.items()
        ]
        self._base = base

    def codes(self, path: str) -> frozenset[str]:
        """The rules that are not reported in a file."""
        if not self._entries or relative_to(path, self._base) == path:
            return frozenset()
        directories: list[str] = []
        for part in relative_to(path, self._base).split("/")[:-1]:
            directories.append(f"{directories[-1] if directories else self._base.rstrip('/')}/{part}")
        return frozenset(
            code
            for ignore, codes in self._entries
            if ignore.verdict(path, False) or any(ignore.verdict(d, True) for d in directories)
            for code in codes
        )


def shown(
    findings: Iterable[Finding], selection: Selection, settings: Settings, *, each_op: bool = False
) -> list[Finding]:
    """The findings that are severe and sure enough. Advice is shown when its rule was asked for, was given this
    severity, or shows it by default, unless a least severity was asked for; with ``each_op`` also where it is about
    an op whose remedy another finding asks for."""
    least = _SEVERITY[settings.min_severity or "warning"]
    sure = _CONFIDENCE[settings.min_confidence]
    asked = frozenset[str]() if settings.min_severity else selection.explicit | selection.advising
    return [
        f
        for f in findings
        if f.code in selection.codes
        and (f.severity.rank >= least or f.code in asked or (each_op and SWITCHED in f.remedy))
        and f.confidence.rank >= sure
    ]
