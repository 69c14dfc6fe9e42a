"""The versions of libraries that a program is meant for: versions decide what an op does.

Each comes from the first of these that knows: the command line or the settings, the project's own pins, the names
that the program uses, the installed library, the newest release that the knowledge base knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import cached_property, lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any

import msgspec

from d9mlint.config.markers import holds
from d9mlint.config.pins import DISTRIBUTIONS, Pin, Pins, Problem, library_name, pinned, read_pins
from d9mlint.knowledge.versions import (
    at_least,
    at_most,
    compare,
    is_lower_bound,
    is_upper_bound,
    matches,
    parse,
    split,
)

_INFERRED = "inferred from the names that the program uses"
_RECORDED = "the newest with which the notebook can have run, as it records"
_FOR_PYTHON = "the newest for Python "
_THAT_ALLOWS = "the newest that allows "
_NEWEST_KNOWN = "newest known"
_NOT_KNOWN = "not known"
INSTALLED = "=="
"""Begins a release that a program installs itself, among those that are inferred."""
_UNPINNED = ("installed", _NEWEST_KNOWN, _NOT_KNOWN, _INFERRED, _RECORDED)
_RELEASE = re.compile(r"\d+(?:\.\d+)*(?:\.\*)?", re.ASCII)
_NEWEST = "9999"
"""Taken for the version of a library of which no release is known."""


class Target(msgspec.Struct, frozen=True):
    """The version of a library that counts, the oldest one the project admits, and how that is known.

    ``older`` are the known releases before ``version`` that the project's range admits too, newest first.
    """

    version: str
    low: str
    source: str
    older: tuple[str, ...] = ()


class Targets:
    """Target versions by library. Nothing is read before the first question."""

    def __init__(
        self,
        root: Path,
        given: Mapping[str, str],
        prefix: str = "",
        inferred: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root
        self._prefix = prefix
        self._given = {name: version for name, version in given.items() if version}
        self._inferred = dict(inferred or {})
        self._known: dict[str, Target] = {}

    def __getstate__(self) -> dict[str, Any]:
        """All that answers depend on, so that they are the same in a process on another machine."""
        return {**self.__dict__, "_pins": self._pins, "_installed": self._installed}

    @cached_property
    def _installed(self) -> dict[str, str]:
        return installed()

    @cached_property
    def _pins(self) -> Pins:
        found = read_pins(self.root)
        if not self._prefix:
            return found
        return found._replace(
            pins=tuple(pin._replace(file=self._prefix + pin.file) for pin in found.pins),
            problems=tuple(problem._replace(file=self._prefix + problem.file) for problem in found.problems),
        )

    @property
    def libraries(self) -> frozenset[str]:
        """Names by which what the project asks for is imported, as far as they follow from the distribution's."""
        return frozenset(pin.library.replace("-", "_").lower() for pin in self._pins.pins)

    @property
    def files(self) -> tuple[str, ...]:
        """The pin files that were read, relative to the root."""
        return self._pins.files

    @property
    def warnings(self) -> tuple[Problem, ...]:
        """What in them could not be understood."""
        return self._pins.problems

    def with_inferred(self, inferred: Mapping[str, str]) -> Targets:
        """The targets of a program whose names show for which releases it was written, as far as nothing else
        does, or a range leaves it open; the same targets where they add nothing new."""
        new: dict[str, str] = {}
        for library, version in inferred.items():
            if is_lower_bound(library):
                if self._inferred.get(library) != version and self._overrules(library, version):
                    new[library] = version
                continue
            if version.startswith(INSTALLED):
                if library not in self._given and self._inferred.get(library) != version:
                    new[library] = version
                continue
            if is_upper_bound(library):
                if (
                    self._inferred.get(library) != version
                    and library.removesuffix(at_most("")) not in self._given
                ):
                    new[library] = version
                continue
            target = self.version(library)
            is_inferred = target.source == _INFERRED or _is_recorded(target)
            if is_inferred and compare(parse(target.version), parse(version)) <= 0:
                continue
            if _is_unpinned(target) or _up_to(version, target):
                new[library] = version
        if not new:
            return self
        other = Targets(self.root, self._given, self._prefix, {**self._inferred, **new})
        other.__dict__["_pins"] = self._pins
        return other

    def admits(self, likely: Mapping[str, str]) -> bool:
        """Whether what is given and pinned leaves room for some releases by library, or for older ones."""
        for library, version in likely.items():
            target, release = self.version(library), parse(version)
            is_older = compare(parse(target.version)[: len(release)], release) <= 0
            if not is_older and not _is_unpinned(target) and not _up_to(version, target):
                return False
        return True

    def _overrules(self, bound: str, version: str) -> bool:
        """Whether the oldest release that a program can use changes what is taken for its version."""
        changed = Targets(self.root, self._given, self._prefix, {**self._inferred, bound: version})
        changed.__dict__["_pins"] = self._pins
        library = bound.removesuffix(at_least(""))
        return changed.version(library) != self.version(library)

    def unknown(self) -> list[str]:
        """What is to be said about versions of the frameworks that the user chose, or their pins allow, and of which
        nothing is known. Of an installed one nothing is said: new releases come out all the time."""
        said: list[str] = []
        for library, name in (("torch", "PyTorch"), ("tensorflow", "TensorFlow")):
            target, known = self.version(library), releases(library)
            if not known or _is_unpinned(target) or not target.version:
                continue
            newest, oldest = known[0], known[-1]
            numbers = (*parse(target.version), 0)[:2]
            if compare(numbers, parse(newest)) > 0:
                said.append(
                    f"{name} {target.version} ({target.source}) is newer than {newest}, the newest release that is known: "
                    "it is judged by what is known of that one."
                )
            elif compare(numbers, parse(oldest)) < 0:
                said.append(
                    f"{name} {target.version} ({target.source}) is older than {oldest}, the oldest release that is known."
                )
        return said

    def version(self, library: str) -> Target:
        """The version of a library to judge by."""
        found = self._known.get(library)
        if found is None:
            found = self._known[library] = self._find(library)
        return found

    def matches(self, library: str, spec: str) -> bool:
        """Whether the target version is in a range; a library that the range names replaces ``library``."""
        named, clauses = split(spec)
        version = self.version(named or library).version
        return not clauses or matches(spec, version or _NEWEST)

    def may_match(self, library: str, spec: str) -> bool:
        """Whether the target version is in a range, or another release that the project admits: any, where its files
        name none and what is installed here, or the newest release, stands for them."""
        if self.matches(library, spec):
            return True
        target = self.version(library)
        free = _is_unpinned(target) and target.source != _INFERRED and not _is_recorded(target)
        return any(matches(spec, old) for old in (releases(library) if free else target.older))

    def requires(self, library: str) -> bool:
        """Whether the project's files ask for a library, in whatever version."""
        return bool(self._builds(library))

    def asks_for(self, patterns: Iterable[str]) -> bool:
        """Whether they ask for a library, or an extra of one, whose name is like one of these."""
        names = {asked.library for asked in self._pins.asked if holds(asked.marker)}
        names.update(name for name in self._inferred if name.endswith("]"))
        return any(fnmatchcase(name, pattern) for pattern in patterns for name in names)

    @property
    def trained_on_gpus(self) -> bool:
        """Whether a README says that the program was trained, or is run, on a GPU."""
        return self._pins.trained_on_gpus

    def cpu_only(self, library: str) -> bool:
        """Whether all that they ask for are builds of a library for the CPU."""
        return self._builds(library) == {True}

    def cpu_build(self, library: str) -> bool:
        """Whether what they ask for is the build of a library for the CPU. Where nothing says what it is but the release,
        a README that speaks of GPUs means another one."""
        split = _cpu_builds().get(library)
        if split is None or self.cpu_only(library):
            return self.cpu_only(library)
        pins = [pin for pin in pinned(self._pins.pins, library) if not pin.below and pin.kind != "readme"]
        names = {
            name for name in self._pins.distributions if library_name(name.rpartition(":")[2]) == library
        }
        return (
            bool(pins)
            and names == {library}
            and not self._pins.gpus
            and all(pin.settled and matches(split, pin.spec[2:].removesuffix(".*")) for pin in pins)
        )

    def _builds(self, library: str) -> set[bool]:
        """Whether the requirements of a library that hold here are builds for the CPU."""
        return {asked.cpu for asked in self._pins.asked if asked.library == library and holds(asked.marker)}

    def differs(self, library: str, spec: str) -> str:
        """The newest older release that the project admits too and for which the range answers differently;
        "" when there is none."""
        named, clauses = split(spec)
        target = self.version(named or library)
        answer = not clauses or matches(spec, target.version)
        return next((old for old in target.older if matches(spec, old) != answer), "")

    def otherwise(self, library: str, spec: str) -> str:
        """The newest release for which a range answers differently and with which the program may be run: one that the
        project admits too or, where nothing says which release it uses, any; "" when there is none."""
        target = self.version(library)
        if target.source not in (_NEWEST_KNOWN, _NOT_KNOWN):
            return self.differs(library, spec)
        answer = self.matches(library, spec)
        return next((release for release in releases(library) if matches(spec, release) != answer), "")

    def key(self) -> tuple[tuple[str, ...], ...]:
        """What the answers depend on, for caches."""
        pins = tuple((pin.library, pin.spec, pin.place, pin.marker, pin.open_in) for pin in self._pins.pins)
        return (
            *sorted(self._given.items()),
            ("inferred",),
            *sorted(self._inferred.items()),
            ("pins",),
            *pins,
            ("distributions", *sorted(self._pins.distributions), str(self._pins.gpus)),
            ("gpus", str(self._pins.trained_on_gpus)),
            *(("asked", one.library, str(one.cpu), one.marker) for one in self._pins.asked),
            ("installed",),
            *sorted(self._installed.items()),
        )

    def __repr__(self) -> str:
        return f"Targets{self.key()!r}"

    def _find(self, library: str) -> Target:
        if library in self._given:
            version = self._given[library]
            return Target(version, version, "set by an option or in the configuration")
        pins = tuple(pinned(self._pins.pins, library))
        oldest = self._inferred.get(at_least(library), "")
        if (
            oldest
            and pins
            and all(pin.kind == "readme" for pin in pins)
            and _is_before(_pinned(pins), oldest)
        ):
            pins = ()
        inferred = self._inferred.get(library)
        if inferred is not None and inferred.startswith(INSTALLED):
            version = inferred.removeprefix(INSTALLED)
            return Target(version, version, "which the notebook installs")
        recorded, recorder = self._inferred.get(at_most(library)), _RECORDED
        if recorded is None:
            recorded, recorder = self._for_python(library)
        allowed, allower = self._allowed(library)
        if allowed is not None and (recorded is None or compare(parse(allowed), parse(recorded)) < 0):
            recorded, recorder = allowed, allower
        is_recorded = (
            recorded is not None
            and not (oldest and compare(parse(recorded), parse(oldest)) < 0)
            and (inferred is None or compare(parse(recorded), parse(inferred)) < 0)
        )
        if is_recorded:
            inferred = recorded
        if pins:
            if pins[0].open_in and inferred is not None:
                # The newest release does not run the program, so that the one which is stated has to be installed.
                pins = (pins[0]._replace(spec=f"=={pins[0].spec[2:]}", open_in=""), *pins[1:])
            target = _pinned(pins)
            if target.older and (needed := self._needed(library, pins[0].spec)) is not None:
                return needed
            inside = _up_to(inferred, target) if inferred is not None else ()
            if not inside:
                return target
            has = "that has the names that the program uses"
            if is_recorded:
                has = recorder.removeprefix("the newest ").partition(",")[0]
            source = f"{target.source} {has}"
            return Target(inside[0], target.low, source, inside[1:])
        companion = self._companion(library) or self._needed(library)
        if companion is not None and not (oldest and _is_before(companion, oldest)):
            return companion
        if inferred is not None:
            return Target(inferred, inferred, recorder if is_recorded else _INFERRED)
        have = self._installed.get(library)
        if have is not None and not (oldest and _is_before(Target(have, have, ""), oldest)):
            return Target(have, have, "installed")
        newest = releases(library)
        return Target(newest[0], newest[0], _NEWEST_KNOWN) if newest else Target("", "", _NOT_KNOWN)

    def _for_python(self, library: str) -> tuple[str | None, str]:
        """The newest release of a library for the release of Python that the project uses, or without which the program
        does not run, and what says so."""
        pin = next((one for one in pinned(self._pins.pins, "python") if one.settled), None)
        if pin is not None:
            series, why = ".".join(pin.spec[2:].split(".")[:2]), f"pinned in {pin.place}"
        else:
            series, why = self._inferred.get(at_most("python"), ""), "for which the program is written"
        release = _recorded().get(series, {}).get(library) if series else None
        return release, f"{_FOR_PYTHON}{series}, {why}" if series else ""

    def _allowed(self, library: str) -> tuple[str | None, str]:
        """The newest release of a library that allows the release which is pinned of another one, and what says so."""
        for follower, leaders in _allowed_by().items():
            if library not in leaders:
                continue
            pin = next((one for one in pinned(self._pins.pins, follower) if not one.aside), None)
            if pin is None or not pin.settled:
                continue
            chosen = pin.spec[2:].removesuffix(".*")
            if release := _built_with(leaders[library], chosen):
                return release, f"{_THAT_ALLOWS}{follower} {chosen}, pinned in {pin.place}"
        return None, ""

    def _companion(self, library: str) -> Target | None:
        """Keras and torchvision follow TensorFlow and PyTorch where only those are given, pinned, or limited by Python."""
        leader = {"keras": "tensorflow", "torchvision": "torch"}.get(library)
        installed = self._inferred.get(leader or "", "").startswith(INSTALLED)
        if leader is None:
            return None
        target = self.version(leader)
        is_given = leader in self._given or installed or any(pinned(self._pins.pins, leader))
        if not is_given and not _is_recorded(target):
            return None
        own = _companions(library, leader, target.version)
        low = _companions(library, leader, target.low)
        return Target(own, low, f"matching {leader} {target.version}, {target.source}")

    def _needed(self, library: str, spec: str = "") -> Target | None:
        """The release of a library for which a pinned release of another one is built, as torchvision is for PyTorch,
        where a range of the project has it too."""
        for follower, leaders in _built_for().items():
            if library not in leaders:
                continue
            chosen = self._given.get(follower)
            place = "set by an option or in the configuration"
            if chosen is None:
                pin = next((one for one in pinned(self._pins.pins, follower) if not one.aside), None)
                if pin is not None and not pin.settled and not spec:
                    bounded = _bounded(leaders[library], pin)
                    if bounded is not None:
                        return bounded
                if pin is None or not pin.settled:
                    continue
                chosen, place = pin.spec[2:].removesuffix(".*"), f"pinned in {pin.place}"
            version = _built_with(leaders[library], chosen)
            if version and (not spec or admits(spec, version) or admits(spec, f"{version}.9")):
                return Target(version, version, f"which {follower} {chosen} needs, {place}")
        return self._tested(library) if not spec else None

    def _tested(self, library: str) -> Target | None:
        """The newest release of a library with which the pinned release of another one was tested."""
        for follower, leaders in _tested_with().items():
            pin = next((one for one in pinned(self._pins.pins, follower) if not one.aside), None)
            if library not in leaders or pin is None:
                continue
            target = _pinned((pin,))
            version = _built_with(leaders[library], target.version)
            if version and version != next(iter(leaders[library].values())):
                source = f"the newest with which {follower} {target.version} was tested, {target.source}"
                return Target(version, version, source)
        return None


def find_targets(
    root: str | Path,
    given: Mapping[str, str] | None = None,
    *,
    torch_version: str = "",
    tensorflow_version: str = "",
    prefix: str = "",
) -> Targets:
    """The targets of the project in ``root``; what is given (by library, or by name) goes before its pins. ``prefix`` goes
    before the names of its pin files where these are shown."""
    explicit = {"torch": torch_version, "tensorflow": tensorflow_version}
    return Targets(Path(root), {**{k: v for k, v in explicit.items() if v}, **(given or {})}, prefix)


@lru_cache(maxsize=1)
def installed() -> dict[str, str]:
    """The installed versions of the libraries that the knowledge base tells apart; none is imported."""
    names = {library: [library] for library in _table()}
    for distribution, library in DISTRIBUTIONS.items():
        names.setdefault(library, [library]).append(distribution)
    found: dict[str, str] = {}
    for library, distributions in names.items():
        for distribution in distributions:
            try:
                version = metadata.version(distribution)
            except (metadata.PackageNotFoundError, ValueError, OSError):
                continue
            if version and parse(version):
                found[library] = version.partition("+")[0]
                break
    return found


def releases(library: str) -> tuple[str, ...]:
    """The known releases of a library, newest first."""
    return tuple(_table().get(library, "").split())


def _table() -> Mapping[str, str]:
    from d9mlint.knowledge import load

    return load().newest


def _built_for() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    from d9mlint.knowledge import load

    return load().built_for


def _tested_with() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    from d9mlint.knowledge import load

    return load().tested_with


def _allowed_by() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    from d9mlint.knowledge import load

    return load().allowed_by


def _recorded() -> Mapping[str, Mapping[str, str]]:
    from d9mlint.knowledge import load

    return load().recorded


def _cpu_builds() -> Mapping[str, str]:
    from d9mlint.knowledge import load

    return load().cpu_builds


def _built_with(pairs: Mapping[str, str], release: str) -> str:
    """What the longest beginning of a release that a table has is built for; "" when it has none."""
    parts = release.split(".")
    beginnings = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((pairs[name] for name in beginnings if name in pairs), "")


def admits(spec: str, release: str) -> bool:
    """Whether a range of pip has a release in it. Bounds that are no releases (``<2.1rc1``, ``>=2.1.post1``) are judged by
    ``packaging``, which is imported for them only: it takes as long as all of d9mlint's start."""
    if all(_RELEASE.fullmatch(version) for _, version in split(spec)[1]):
        return matches(spec, release)
    from packaging.specifiers import InvalidSpecifier, SpecifierSet

    try:
        return SpecifierSet(spec).contains(release)
    except InvalidSpecifier:
        # As conda and poetry write them.
        return matches(spec, release)


def _is_recorded(target: Target) -> bool:
    """Whether a release is the newest with which the program can have run."""
    return target.source == _RECORDED or target.source.startswith((_FOR_PYTHON, _THAT_ALLOWS))


def _is_unpinned(target: Target) -> bool:
    """Whether no file and no option names a release."""
    return target.source in _UNPINNED or _is_recorded(target)


def _pinned(pins: tuple[Pin, ...]) -> Target:
    """The first of the pins of a library as a target: of a range the newest release that is known to be in it, of
    files that contradict each other the newest release that they pin."""
    pin = pins[0]
    named = _contradicting(pins)
    if len(named) > 1:
        newest, *older = ordered = sorted(named, key=parse, reverse=True)
        places = dict.fromkeys(named[version] for version in ordered)
        source = f"the newest of those pinned in {', '.join(places)}"
        return Target(newest, older[-1], source, tuple(older))
    if pin.exact:
        version = pin.spec[2:]
        return Target(version, version, f"pinned in {pin.place}")
    inside = tuple(release for release in releases(pin.library) if admits(pin.spec, release))
    bounds = [version for operator, version in split(pin.spec)[1] if operator in (">=", "~=", "==", ">")]
    lowest = max(bounds, key=parse).removesuffix(".*") if bounds else ""
    source = f"the newest version allowed by {pin.place} ({pin.spec})"
    if pin.open_in:
        source = f"the newest version: {pin.open_in} names none ({pin.place} names {lowest})"
    if not releases(pin.library) and all(operator in (">", ">=", "!=") for operator, _ in split(pin.spec)[1]):
        # The newest release is later than any that could be named.
        return Target("", lowest, source)
    if not inside:
        # No known release is in the range: a patch release such as >=2.1.2,<2.2, or one too new to be known.
        uppers = [version for operator, version in split(pin.spec)[1] if operator in ("<=", "<")]
        version = lowest or (uppers[0] if uppers else "")
        return Target(version, version, source)
    if not lowest or compare(parse(lowest), parse(inside[-1])) < 0:
        lowest = inside[-1]
    return Target(inside[0], lowest, source, inside[1:])


def _bounded(pairs: Mapping[str, str], pin: Pin) -> Target | None:
    """What releases in a range are built for; None where the newest that is known is among them."""
    inside = [release for release in pairs if admits(pin.spec, release) or admits(pin.spec, f"{release}.9")]
    if not inside or inside[0] == next(iter(pairs)):
        return None
    source = f"which {pin.library} {inside[0]} needs, the newest version allowed by {pin.place} ({pin.spec})"
    return Target(pairs[inside[0]], pairs[inside[-1]], source, tuple(pairs[one] for one in inside[1:]))


def _contradicting(pins: tuple[Pin, ...]) -> dict[str, str]:
    """The releases that equally good files pin, each with the place where it is pinned."""
    first = pins[0]
    named: dict[str, str] = {}
    for pin in pins:
        alike = (pin.aside, pin.below, pin.kind) == (first.aside, first.below, first.kind)
        if alike and pin.kind != "lock" and pin.settled:
            if not any(admits(pin.spec, version) for version in named):
                named[pin.spec[2:].removesuffix(".*")] = pin.place
    return named


def _is_before(target: Target, release: str) -> bool:
    """Whether a target is older than a release."""
    return compare(parse(target.version), parse(release)) < 0


def _up_to(version: str, target: Target) -> tuple[str, ...]:
    """The older releases that a range allows, as far as they are no newer than a version; empty where its newest one
    is not, either."""
    if compare(parse(target.version), parse(version)) <= 0:
        return ()
    return tuple(old for old in target.older if compare(parse(old), parse(version)) <= 0)


def _companions(library: str, leader: str, version: str) -> str:
    """The release of a library that goes with one of its leader."""
    numbers = (*parse(version), 0, 0)[:2]
    known = releases(library)
    pairs = _built_for().get(library, {}).get(leader)
    if pairs is not None:
        # Of a release of PyTorch that is too new to be known, the newest of torchvision.
        return next(
            (own for own, built in pairs.items() if compare(parse(built), numbers) <= 0),
            known[-1] if known else "",
        )
    if numbers >= (2, 16):
        return known[0] if known else "3.0"
    if numbers >= (2, 4):
        return f"2.{numbers[1]}"
    return "2.4" if numbers == (2, 3) else "2.3" if numbers >= (2, 1) else "2.2"
