"""What one analysis run found, as plain data: it crosses processes, is kept in caches, and is merged."""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from d9mlint.base.coverage import Cut, Gap
from d9mlint.base.findings import Finding

_FUNCTIONS = msgspec.msgpack.Decoder(dict[int, list[int]])
_PARAMETERS = msgspec.msgpack.Decoder(dict[int, dict[int, list[str]]])
_NOTHING = zlib.compress(b"\x80", 1)


class EntryReport(msgspec.Struct):
    """What an analysis run found, reached and read. ``entry`` is the path of the entry point, or of the module
    whose unreached code was looked at. Files are meant by their place among the project's files: ``reached``
    packs the functions of each that the run reached (by their index in its facts), ``files`` are those that a program ran;
    ``entered`` packs all functions whose code was read, also where that decided nothing. Each run over a module of a
    large package reads some of every other module, and a list for each of them would be most of what a large tree
    needs of memory.
    ``config_files`` are the configuration files that were opened; ``cuts`` say where the run was cut
    off, ``gaps`` what else it did not follow, ``fails`` whether the program ends where it asks for a name that nothing
    defines, or fails otherwise, ``trains`` whether a model is trained, ``tries_out`` whether the entry point
    is the ``__main__`` guard of a module that others import, which trains nothing and saves no weights. ``releases`` are
    those of libraries for which the names in the program tell that it was written. ``states`` says what it gives states to
    that were loaded: to models alone, which it does not train, or to others, or to something else, as who goes on with
    training does, or that code which no entry point reaches may go on with it; ``device`` is what a program trains on that
    needs torch: the CPU alone, or anything else that it may put work on; ``loads`` and ``saves`` how the files end, with
    an empty text where that is not known.
    ``saves_in_training`` are the ends of files in which it saves whole models that draw whenever they are called;
    ``switched_on`` are the switches of determinism that a program which trains has on, and whether one asks trainers to seed
    the workers of their loaders.
    ``without_gradient`` packs, for a run over unreached code, which parameters of the functions that it calls are given
    tensors that do not require grad in all of these calls."""

    entry: str
    function: str
    findings: list[Finding]
    reached: bytes
    files: list[int]
    config_files: list[str]
    steps: int
    cuts: list[Cut]
    failure: str = ""
    relative: str = ""
    trains: bool = False
    tries_out: bool = False
    gaps: list[Gap] = []
    fails: bool = False
    entered: bytes = _NOTHING
    releases: dict[str, str] = {}
    states: Literal["", "evaluates", "begins", "resumes", "unreached"] = ""
    device: Literal["", "cpu", "other"] = ""
    loads: list[str] = []
    saves: list[str] = []
    saves_in_training: list[str] = []
    switched_on: list[str] = []
    without_gradient: bytes = _NOTHING

    def functions_reached(self) -> dict[int, list[int]]:
        """The functions that the run reached, of each file."""
        return _FUNCTIONS.decode(zlib.decompress(self.reached))

    def functions_entered(self) -> dict[int, list[int]]:
        """All functions whose code was read, of each file."""
        return _FUNCTIONS.decode(zlib.decompress(self.entered))

    def parameters_without_gradient(self) -> dict[int, dict[int, list[str]]]:
        """The parameters of functions that are given nothing that requires grad, of each file."""
        return _PARAMETERS.decode(zlib.decompress(self.without_gradient))


def packed(functions: dict[int, Any]) -> bytes:
    """What is known of the functions of each file, as an ``EntryReport`` holds it."""
    return zlib.compress(msgspec.msgpack.encode(functions), 1)


EVALUATED = "evaluated"
"""What programs of a project show that give loaded states to models alone, which they do not train, if no other one
goes on with training."""
OP_DETERMINISM = "op determinism"
DETERMINISTIC_MODE = "deterministic mode"
WORKSPACE = "workspace of cuBLAS"
"""What programs of a project show of which one trains with op determinism of TensorFlow, with deterministic mode of PyTorch,
or with the variable set that gives cuBLAS its workspace."""
SEEDED_WORKERS = "workers seeded by a trainer"
"""What programs of a project show that ask trainers to seed the workers of their loaders, if all that train do so."""
LESS_IF_EVALUATED = "less if evaluated"
"""Of a finding that is advice where the programs show that."""
NEVER_LOADS = "never loads"
"""Of a finding about what a program saves that loads nothing: it is not named where another one goes on with that."""
NEVER_CALLS = "never calls"
"""Of a finding about a layer that its program is not seen to call: the program is not named where another one calls it."""
MAY_SEED = "may seed "
"""Before a generator: that any file of a project may seed it."""
IF_READ = "if read "
"""Before a class and the attribute in which it keeps something: of a finding that holds if any file of a project may read
that."""

IF_SAVED = "if saved in training "
"""Before the end of a file: of a finding that holds if a program of the project saves a whole model there that draws
whenever it is called."""
NO_GRADIENT = "no gradient of "
"""Before parameters of the function around, with commas: of a finding in code that no entry point reaches, which holds if
any function of the project gives one of them a tensor that may require grad."""
NOT_GIVEN = "not given "
"""Before a parameter of the function around that is None by default: of a finding in code that no entry point reaches, which
holds if any call of the project may pass it."""
RETURNED = "returned at "
"""Before places in a tuple, with commas, or -1 for the whole: of a finding about the gradient of what the function around
returns there, which holds if any function of the project that calls it may take that."""
ON_GPU = "on a GPU"
"""Of a finding in code that no entry point reaches, which holds if any program that runs the file may use a GPU."""
AND = "; "
"""Between two conditions of a finding."""


def are_other_files(ends: Iterable[str], others: Iterable[str]) -> bool:
    """Whether files that end in one way are none of those that end in other ways."""
    return not any(one.endswith(other) or other.endswith(one) for one in ends for other in others)


def _trains_alone(report: EntryReport) -> bool:
    """Whether a program is known to train and to save what it trains without the functions that no entry point reaches."""
    followed = not report.cuts and all(gap.kind in _KNOWN_GAPS for gap in report.gaps)
    return report.trains and bool(report.saves) and followed


_KNOWN_GAPS = ("constant", "device")
"""What a program leaves out by what it says itself."""


def shown(reports: Iterable[EntryReport]) -> frozenset[str]:
    """What all programs of a project show together. One that begins its training with weights goes on with that of another
    one, unless it loads only files that none of them saves."""
    reports = list(reports)
    states = {report.states for report in reports}
    saved = {end for report in reports for end in report.saves}
    for report in reports:
        if report.states == "begins" and not (report.loads and are_other_files(report.loads, saved)):
            states.add("resumes")
    if "unreached" in states and not any(map(_trains_alone, reports)):
        states.add("resumes")
    evaluated = [EVALUATED] if "evaluates" in states and "resumes" not in states else []
    switched = {one for report in reports for one in report.switched_on}
    if any(report.trains and SEEDED_WORKERS not in report.switched_on for report in reports):
        switched.discard(SEEDED_WORKERS)
    whole = (f"{IF_SAVED}{end}" for report in reports for end in report.saves_in_training)
    return frozenset([*evaluated, *switched, *whole])
