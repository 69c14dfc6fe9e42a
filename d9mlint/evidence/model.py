"""Evidence: what was measured when ops were run several times, on which machine, and what it says of a finding.

Plain data and JSON; nothing here imports a framework. ``d9mlint.verify`` measures, this module keeps,
reads back and joins. Equal results are only that: equal in so many runs at one size.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Annotated, Any

import msgspec

from d9mlint.base.errors import UsageError
from d9mlint.base.known_calls import CallCondition
from d9mlint.base.paths import read_limited

SCHEMA = 2
"""Raised by one whenever the meaning of a field below changes."""

DIFFERS, EQUAL, NOT_RUN = "differs", "equal", "not run"
"""Outcomes of a measurement."""
OneOfOutcomes = Annotated[str, msgspec.Meta(pattern="^(differs|equal|not run)$")]
NOW = "measured now"
"""Where evidence is from, when it is not from a file."""


class Given(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a recipe took from a call of the program.

    ``values`` of options, ``shapes`` of tensors, elements of an ``index`` and ``dtypes`` of indices by the recipe's
    names (``words``: the keywords of options whose names are others); ``absent`` are options that the call leaves out;
    ``call`` is the digest of the call. ``unknown`` are inputs
    and options whose shape or value in the call is not known, ``not_taken`` arguments of the call that the recipe does
    not have. ``whole``: whether there are none of both, and the dtype is known, so that the call itself was run;
    ``scaled``: whether shapes were reduced, to ``most`` elements each (0: the usual bound).
    """

    values: dict[str, Any] = {}
    shapes: dict[str, tuple[int, ...]] = {}
    index: dict[str, tuple[int | float, ...]] = {}
    dtypes: dict[str, str] = {}
    words: dict[str, str] = {}
    call: str = ""
    absent: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()
    not_taken: tuple[str, ...] = ()
    whole: bool = False
    scaled: bool = False
    most: int = 0

    def __bool__(self) -> bool:
        return bool(self.values or self.shapes or self.index)


class Output(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One output or gradient of an op over all runs.

    ``name``: ``out0`` or ``grad:x``; ``distinct``: how many different results, byte for byte. The others
    are the largest values over the runs, each against the first: ``v_ermv`` the mean relative difference
    of an element, ``v_c`` the share of elements that differ, ``ulp`` the largest distance of an element in
    units in the last place (None for integers; 0.0 where nothing differs). ``v_ermv`` and ``v_c`` follow
    Shanmugavelu et al., "Impacts of floating-point non-associativity on reproducibility for HPC and deep
    learning applications" (2024), with the first run in the place of a deterministic one.

    Of a collective the outputs are ``rank0``, ``rank1``, ... over the runs, and, where all ranks must hold the
    same, ``ranks``: the results that the ranks had in one run, at most, with distances from that of rank 0.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    distinct: int
    v_ermv: float | None = None
    v_c: float = 0.0
    ulp: int | None = None


class Mode(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The same runs under deterministic mode.

    ``outcome``: ``equal`` (all runs agree, with uninitialised memory left unfilled), ``raises`` (with the
    message), ``unchanged`` (the runs still differ), ``differs`` (they differ, and those without the mode did
    not), ``memory fill`` (they agree only while deterministic mode fills uninitialized memory: the op reads it),
    ``not run`` (with the reason). ``time_ratio``: the median time of a run over that without the mode;
    ``time_spread``: the smallest and the largest ratio of two runs. Both are None where runs are too short or
    too few to compare.
    """

    outcome: Annotated[str, msgspec.Meta(pattern="^(equal|raises|unchanged|differs|memory fill|not run)$")]
    message: str = ""
    distinct: int = 0
    time_ratio: float | None = None
    time_spread: tuple[float, float] | None = None


class Measurement(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """One op at one size and dtype, run ``runs`` times.

    ``recipe`` is the id of the recipe, or ``op_db:NAME`` for a sample of torch's own operator database
    (``weak``: small generic inputs that were not built to provoke a race). ``op_ids`` are the knowledge
    entries and ``settings`` the settings that it stands for. ``scale`` is 0 for the smallest size of the
    recipe and 1 for the full one; ``sizes`` are the shapes of the inputs. ``process``: ``same`` when all runs
    were in one process, ``fresh`` when each had its own. ``cause`` of a difference: ``rng`` (it is gone
    when the generators are restored before each run) or ``uninitialized memory`` (it is gone when memory is
    filled), each where chance explains it with a probability below 1e-4; ``not determined`` where more runs
    would have been needed; else empty. ``seconds`` is the median of a run. A difference in any run, with or
    without deterministic mode, makes the outcome ``differs``. ``exact``: it stands for no other API than its own;
    ``form``: conditions on the calls that it stands for; ``given``: what was taken from the call of a finding;
    ``addends``: how many values met at the address with the most of them.
    """

    recipe: str
    api: str
    library: str
    phase: str
    dtype: str
    outcome: OneOfOutcomes
    reason: str = ""
    op_ids: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    scale: float = 1.0
    sizes: dict[str, tuple[int, ...]] = {}
    process: str = "same"
    runs: int = 0
    outputs: tuple[Output, ...] = ()
    cause: str = ""
    seconds: float | None = None
    mode: Mode | None = None
    weak: bool = False
    expected: str = ""
    exact: bool = False
    form: tuple[CallCondition, ...] = ()
    given: Given = Given()
    addends: int | None = None

    @property
    def distinct(self) -> int:
        """The largest number of distinct results over outputs and gradients."""
        return max((o.distinct for o in self.outputs), default=0)

    @property
    def worst(self) -> Output | None:
        """The output that differs most: by distinct results, then by share of elements."""
        return max(self.outputs, key=lambda o: (o.distinct, o.v_c), default=None)


class Setting(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """A short synthetic training run, executed ``runs`` times in fresh processes without and with a remedy.

    ``probe`` is its name, ``title`` what is run, ``remedy`` what the second series does, ``claim`` what is compared.
    ``codes`` and ``subjects`` (all where empty) name the findings that it is about. ``outcome``: ``fixed`` (runs
    differ, and agree with the remedy), ``not fixed`` (they differ with it too), ``equal`` (they agree without it),
    ``raises`` (with the remedy: the reason), ``not run`` (with the reason). ``without`` and ``with_remedy`` count
    distinct results. Time is the ratio of medians, with the smallest and largest ratio of two runs, and None where
    runs are too short; ``memory`` are the medians of the peaks in bytes, without and with the remedy.
    """

    probe: str
    title: str
    remedy: str
    library: str
    outcome: Annotated[str, msgspec.Meta(pattern="^(fixed|not fixed|equal|raises|not run)$")]
    claim: str = "runs"
    reason: str = ""
    codes: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    runs: int = 0
    without: int = 0
    with_remedy: int = 0
    seconds: float | None = None
    time_ratio: float | None = None
    time_spread: tuple[float, float] | None = None
    memory: tuple[int, int] | None = None


class Control(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A recipe of a library (empty: of all) whose answer is known. ``expected``: ``differs``, ``equal``, or
    ``race`` (a race known to be seen on this kind of device: where it is not seen, equal results of other
    ops say little)."""

    recipe: str
    library: str = ""
    expected: Annotated[str, msgspec.Meta(pattern="^(differs|equal|race)$")]
    outcome: OneOfOutcomes
    detail: str = ""

    @property
    def passed(self) -> bool:
        """Whether the control came out as it must."""
        return self.outcome == (DIFFERS if self.expected == "race" else self.expected)


class Machine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where and with what a library's ops were run. ``kind``: ``cuda`` or ``cpu``; ``name``: the device;
    ``versions``: of the libraries, drivers and compilers that bear on the bits; ``threads``: of the CPU."""

    library: str
    kind: Annotated[str, msgspec.Meta(pattern="^(cuda|cpu)$")]
    name: str
    versions: dict[str, str] = {}
    threads: int = 0


class Evidence(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A session of measurements with its controls. Without passing controls of a library, what was measured
    with it is no evidence."""

    schema: int = SCHEMA
    tool: str
    created: str
    runs: int
    seed: int
    timeout: float
    machines: tuple[Machine, ...]
    controls: tuple[Control, ...]
    measurements: tuple[Measurement, ...]
    settings: tuple[Setting, ...] = ()

    def trusted(self, library: str) -> bool:
        """Whether the comparison itself was seen to work: what must differ did, what must not did not."""
        sure = [c for c in self._controls(library) if c.expected != "race"]
        return {c.expected for c in sure} == {DIFFERS, EQUAL} and all(c.passed for c in sure)

    def race_seen(self, library: str) -> bool:
        """Whether a race that is known to be there was seen; only then do equal results say something."""
        return all(c.passed for c in self._controls(library) if c.expected == "race")

    def _controls(self, library: str) -> list[Control]:
        return [c for c in self.controls if c.library in ("", library)]

    @property
    def untrusted(self) -> tuple[str, ...]:
        """The libraries whose controls did not come out as they must."""
        measured = {m.library for m in self.measurements}
        return tuple(
            m.library for m in self.machines if m.library in measured and not self.trusted(m.library)
        )

    @property
    def controls_passed(self) -> bool:
        """Whether the controls of every library came out as they must."""
        return bool(self.machines) and not self.untrusted

    def machine(self, library: str) -> Machine | None:
        """The machine that ops of a library were run on."""
        return next((m for m in self.machines if m.library == library), None)


class _Header(msgspec.Struct):
    schema: int


def load(path: str | Path) -> Evidence:
    """Evidence from a file. Raises UsageError that names the file and what is wrong with it."""
    try:
        data = read_limited(str(path), 256_000_000)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}.") from error
    try:
        # First, because the fields of another schema are others.
        schema = msgspec.json.decode(data, type=_Header).schema
        if schema != SCHEMA:
            raise UsageError(f"{path} has evidence of schema {schema}; this version reads {SCHEMA}.")
        return msgspec.json.decode(data, type=Evidence)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not an evidence file of this version: {error}.") from error


def document(evidence: Evidence) -> bytes:
    """Evidence as JSON, with a line for each measurement, so that a diff of two files can be read."""
    fields = []
    for name in evidence.__struct_fields__:
        value = getattr(evidence, name)
        if isinstance(value, tuple):
            items = b",\n  ".join(map(msgspec.json.encode, value))
            text = b"[\n  " + items + b"\n ]" if value else b"[]"
        else:
            text = msgspec.json.encode(value)
        fields.append(msgspec.json.encode(name) + b": " + text)
    return b"{\n " + b",\n ".join(fields) + b"\n}\n"


def write(path: str | Path, evidence: Evidence) -> None:
    """Write evidence as JSON, all of it or nothing. Raises UsageError."""
    _replace(Path(path), document(evidence))


def check_writable(path: str | Path) -> None:
    """Find out before a long session whether a file can be written at its end. Raises UsageError."""
    _replace(Path(path), None)


def _replace(target: Path, text: bytes | None) -> None:
    """Write a file by way of another beside it; with no text, try as far as can be done without a trace."""
    part = target.parent / f".{target.name}.{os.getpid()}"
    try:
        if target.exists() and not target.is_file():
            # A device such as /dev/stdout is not to be replaced by a file.
            with target.open("ab") as stream:
                stream.write(text or b"")
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(text or b"")
        if text is None:
            part.unlink()
        else:
            os.replace(part, target)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        raise UsageError(f"{target} cannot be written: {error.strerror or error}.") from error
