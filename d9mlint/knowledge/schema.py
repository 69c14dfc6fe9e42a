"""Typed form of the knowledge base in ``rules/``.

The entries know APIs by their canonical dotted names (``torch.nn.functional.dropout``, ``tf.random.normal``,
``numpy.random.rand``); ``Knowledge.canonical`` turns any public or private alias into that form.
"""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Any, Literal

import msgspec

SCHEMA = 14
"""Raised by one whenever the meaning or the shape of any struct below changes."""

Device = Literal["cpu", "cuda", "xpu", "mps"]
"""The devices that facts tell apart. ROCm counts as ``cuda``: PyTorch names it so, and the facts about it
are unknown where they differ."""
Behaviour = Literal["deterministic_alternative", "raises", "silent", "deterministic"]
Pass = Literal["forward", "backward", "both"]
Sureness = Literal["high", "medium", "low"]
RngKind = Literal[
    "anti-seed",
    "augment",
    "distribution",
    "draw",
    "dropout",
    "entropy",
    "environment",
    "generator",
    "init",
    "mask",
    "own-sampler",
    "sampler",
    "sampling",
    "seeder",
    "shuffle",
    "split",
    "stateless",
    "tf-shuffle",
    "transform",
    "unseeded-op",
]
CallKind = Literal[
    "calls-objects",
    "draws-nothing",
    "fits-estimator",
    "fits-in-processes",
    "fits-parts",
    "registers-code",
    "runs-methods",
    "saves-models",
    "shows",
    "tells",
    "writes-functions",
    "writes-methods",
]
Role = Literal[
    "adds-to-run",
    "all-different",
    "allocates",
    "always-draws",
    "applies",
    "applies-function",
    "applies-to-items",
    "asks-for-gpu",
    "asks-for-group",
    "asserts",
    "async-collective",
    "async-copy",
    "averages",
    "base-only",
    "binds-parameters",
    "reruns-script",
    "runs-graph",
    "runs-no-methods",
    "enumerates",
    "begins-anew",
    "begins-episode",
    "builds-with",
    "called-back",
    "calls-at-use",
    "calls-decorated",
    "gives-decorated",
    "calls-in-steps",
    "calls-in-modes",
    "calls-in-inference",
    "calls-in-training",
    "calls-aside",
    "calls-method-of",
    "calls-for-leaves",
    "calls-for-each",
    "calls-held",
    "calls-later",
    "calls-methods",
    "calls-on-class",
    "calls-quietly",
    "calls-when-made",
    "calls-with-model",
    "changes-configuration",
    "changes-fields",
    "changes-state",
    "checkpoints",
    "chosen-by-name",
    "clock",
    "text-of-time",
    "date",
    "shared-list",
    "table",
    "colored-by",
    "compiles",
    "compares-fields",
    "computes",
    "configuration",
    "configuration-file",
    "configured",
    "configures",
    "contains-environment",
    "takes-generator",
    "takes-into-run",
    "copies",
    "delays",
    "derived-for-libraries",
    "derived-from",
    "differentiates",
    "discards-batches",
    "divides",
    "draws-fraction",
    "draws-in-steps",
    "draws-weight",
    "draws-with-key",
    "enables-mode",
    "ends-with-part",
    "equals-no-text",
    "evaluates-within",
    "exports",
    "false-in-programs",
    "fills-parameters",
    "fits-data",
    "folds-key",
    "splits-key",
    "form-only",
    "free-memory",
    "freezes-weights",
    "given-by-launcher",
    "goes-first",
    "gives-address",
    "gives-batches",
    "gives-back",
    "gives-duplicates",
    "gives-generator",
    "gives-gradients",
    "gives-seed",
    "gives-setting",
    "gives-number-held",
    "gives-loaded",
    "gives-number",
    "gives-indices",
    "gives-positions",
    "gives-pair",
    "gives-something",
    "gives-in-workers",
    "graph-gradient",
    "graph-seed",
    "has-parts",
    "followed",
    "follows-count",
    "hands-on",
    "has-only",
    "hashed-by-address",
    "held-as-given",
    "held-in-file",
    "held-in-memory",
    "hides-ops",
    "holds",
    "goes-on",
    "goes-on-with",
    "holds-states",
    "holds-training",
    "initializes",
    "initializes-variables",
    "item-method",
    "iterates",
    "keeps-argument",
    "keeps-arguments",
    "names-rows",
    "rows-by-name",
    "labels-elements",
    "counts-by-label",
    "by-label",
    "puts-in-rows",
    "reduces-rows",
    "reduces-rows-with-positions",
    "keeps-cells",
    "keeps-constructor",
    "keeps-fields",
    "keeps-functions",
    "keeps-given",
    "keeps-keywords",
    "keeps-no-state",
    "keeps-statistics",
    "known-parts",
    "leaves-out",
    "keeps-pairs",
    "leaves-out-items",
    "hands-out",
    "leaves-script-out",
    "leaves-weights",
    "left-out",
    "loads-checkpoint",
    "loads-weights",
    "loads-when-trained",
    "looks-only",
    "merges-configurations",
    "batch-size",
    "machine-sized",
    "makes-group",
    "makes-key",
    "makes-no-group",
    "makes-scaler",
    "makes-table",
    "makes-text",
    "manages-states",
    "may-call",
    "mode-changes-nothing",
    "mode-may-change",
    "moves-in-place",
    "moves-items",
    "moves-models",
    "model-input",
    "keeps-figure",
    "named-by",
    "read-by",
    "made-by-configuration",
    "made-of",
    "names-configuration",
    "names-in-parts",
    "names-dimension",
    "names-last-checkpoint",
    "names-main",
    "new-process",
    "no-gpu",
    "no-variable",
    "starts-workers",
    "needs-no-workers",
    "no-weights",
    "not-subscriptable",
    "optimizes",
    "orders-by-column",
    "ordered-by-epoch",
    "replaces-samplers",
    "out-of-memory",
    "overwrites",
    "own-estimators",
    "own-gradients",
    "parses-class",
    "parts",
    "passes-on",
    "passes-sequence",
    "places-on-devices",
    "plain-object",
    "processor-count",
    "queue",
    "quiet-datasets",
    "rank",
    "ranks",
    "reads",
    "reads-arrays",
    "reads-configuration",
    "reads-command-line",
    "reads-data",
    "reads-trained",
    "reads-later",
    "reads-no-variables",
    "reads-text",
    "rearranges",
    "picks",
    "sets-parameters",
    "chooses",
    "parallel-stage",
    "recomputes",
    "registers",
    "registers-start",
    "registers-hook",
    "only-decorates",
    "starts",
    "starts-named",
    "flattens",
    "removes-single",
    "reorders",
    "repeats",
    "resets-environment",
    "restores",
    "gives-rng-state",
    "puts-back",
    "trains-without-rng",
    "restores-rng",
    "fills-from-file",
    "restores-like",
    "restores-run",
    "numbers-saved",
    "restores-model",
    "restores-weights",
    "gives-keys",
    "gives-layers",
    "asks-states",
    "assigns-variables",
    "groups-ops",
    "gives-arguments",
    "gives-states",
    "gives-weights",
    "resumes-epochs",
    "takes-bindings",
    "takes-states",
    "trains-in-epochs",
    "resumes-training",
    "reuses-variables",
    "rounds-down",
    "zero-gradient",
    "resizes",
    "runs-python",
    "same-elements",
    "samples-actions",
    "saves-checkpoint",
    "saves-by-clock",
    "saves-in-epochs",
    "saves-in-training",
    "saves-loader",
    "saves-run",
    "saves-states",
    "saves-trained",
    "saves-trained-variables",
    "saves-variables",
    "seeds-attribute",
    "seeds-environment",
    "seeds-workers",
    "seeded-by-method",
    "sentinel",
    "serves",
    "sets-stop",
    "sets-up",
    "shaped-as-index",
    "shows-structure",
    "spawns-environments",
    "starts-environments",
    "sized-by",
    "stacks-rows",
    "starts-evaluated",
    "starts-in-training",
    "starts-ranks",
    "stays-on-cpu",
    "stops-by-return",
    "stores-arrays",
    "stores-data",
    "stream",
    "suppresses",
    "synchronizes",
    "takes-configuration",
    "takes-gradients",
    "takes-item",
    "takes-items",
    "takes-inputs",
    "takes-several",
    "tells-form",
    "tensor",
    "tested-class",
    "takes-mode",
    "tells-class",
    "times-kernels",
    "times-no-kernels",
    "types-columns",
    "trains",
    "trains-class",
    "trains-estimator",
    "trains-parameters",
    "unchanged-by-call",
    "updated-by-index",
    "updates",
    "updates-weights",
    "vectorizes",
    "views",
    "waits",
    "without-gradient",
    "worker-seed",
    "world-size",
    "wraps",
    "writes",
    "writes-cells",
    "writes-data",
    "writes-where",
    "ignores",
    "splits-examples",
    "stands-for-text",
    "works-in-mode",
    "works-when-built",
]
Level = Literal["error", "warning", "advice"]
OrderRole = Literal[
    "source",
    "carry",
    "end",
    "sum",
    "sink",
    "show",
    "step",
    "fit",
    "write",
    "grow",
    "fill",
    "accumulate",
    "settle",
    "push",
    "draw",
    "figure",
    "argsort",
    "pair",
    "points",
    "tally",
    "gradients",
    "zero-gradients",
    "type",
]
Element = Literal[
    "",
    "number",
    "float",
    "text",
    "path",
    "object",
    "row",
    "numbered",
    "same",
    "same-in-array",
    "in-tensor",
    "argument",
    "of-argument",
]
SettingKind = Literal["argument", "attribute", "call", "config", "env", "flag", "option", "package", "param"]


class _Entry(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base of what is read from YAML: unknown keys are errors."""


class Other(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Another argument that a condition compares with: its value or, with ``size``, the length of that
    dimension of a tensor. A number is multiplied by ``times`` first, and ``plus`` is added to a whole one."""

    arg: str
    pos: int | None = None
    default: Any = msgspec.UNSET
    size: int | None = None
    times: float = 1.0
    plus: int = 0


class SizeSum(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether the sizes of a tensor, each times its weight (``2`` or ``24/10``), add up to more than ``above``."""

    weights: list[str]
    above: int


class Uneven(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether one of the last two sizes of a tensor, less ``minus`` and divided by ``by``, is no multiple of ``into``: the
    image whose map is pooled to ``into`` rows and columns."""

    by: int
    into: int
    minus: int = 0


class Multiple(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a number, or the size of the last dimension of a tensor, is a multiple of ``of``, divided by ``parts``
    first."""

    of: int
    parts: Other | None = None


class Condition(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A test of one argument of a call, evaluated statically to yes, no or unknown.

    The argument is found by ``arg`` (keyword) or ``pos`` (0-based position among the positional arguments
    of a call of the *function* form; for methods the receiver is not counted). ``arg: self`` is the receiver
    of a method, or the first input of a function. ``default`` is the value when the argument is not given;
    ``{arg: name, pos: n}`` stands for the value of another argument, also where None is given. ``item`` is a key of
    an argument that is a mapping, or an attribute or named argument of an object; ``name@0`` is the argument of the call
    that made the object, at this position or, with ``name@``, at none; ``*`` stands for each item of a mapping or sequence,
    of which one that lacks the rest of the key is enough. Exactly one of the tests is set:

    ``equals`` / ``not_equals``: a literal; ``one_of``: a list of literals; ``all_equal``: a number, or a
    sequence of nothing but it; ``given``: whether the argument is present at all (an explicit None counts as
    absent); ``truthy``; ``is_a``: a literal of this Python type (or one of a list); ``greater``: a number it
    must exceed; ``same_as``: another argument, which it is seen to be, or to be equal to; ``alike``: of the elements of a
    sequence, whether all are seen to be so; ``nonzero``: how many numbers of a sequence are not 0;
    ``less_than`` / ``greater_than``: another argument, component by component,
    one is enough;
    ``stem``: a name, or a path whose last part is this name, with or without ``.py``;
    ``mentions``: the value is, or contains, this text or name (the last part of a dotted one), which commas may
    separate from others; ``combines``: a number, which is seen to be at least that of the ways in which one element each
    of the sequences that another argument, a mapping, holds can be put together; ``contains``: a text, or a sequence with
    one, that has this part; ``runs``: a command, as a text or a list of words, that starts a program or a Python module of
    this name; ``words``: a command that has these words in a row; ``length``: of a sequence; ``has``: it is an object with a
    method of this name;
    ``made_by``: it is what a call of one of these names
    gives, the last part of dotted ones, or an object of a class that is derived from one;
    ``rank``, ``dtype`` (a name, ``floating``, ``complex``, ``integer``, or ``whole`` for integers and truth
    values, also where they have become floating-point numbers; ``along`` is the argument, at its position in the function
    form, that names a dimension, which says how many there are at least),
    ``elements`` (at least so many), ``last_size`` (of its last dimension), ``single`` (it has one element
    along the dimension that another argument names; an index has as many dimensions as the receiver), ``sizes``, ``uneven``,
    ``multiple``,
    ``distinct`` (no element is there twice, as far as is seen, or none of the ``rows`` along the last dimension, or
    none twice ``in rows`` along that dimension, which ``along`` has to name) and
    ``lone`` beside ``along``: other dimensions of one element do not count for ``rank``.
    ``requires_grad``: of a tensor; ``sparse``: it is seen to be one of a sparse layout.

    A test with ``if_unknown: false`` does not hold where nothing is known of its argument.
    Instead of an argument and its test, ``all_of``, ``any_of`` or ``none_of`` hold conditions.
    """

    arg: str = ""
    pos: int | None = None
    item: str = ""
    default: Any = msgspec.UNSET
    equals: Any = msgspec.UNSET
    not_equals: Any = msgspec.UNSET
    all_equal: Any = msgspec.UNSET
    one_of: list[Any] | msgspec.UnsetType = msgspec.UNSET
    given: bool | msgspec.UnsetType = msgspec.UNSET
    truthy: bool | msgspec.UnsetType = msgspec.UNSET
    is_a: str | list[str] | None = None
    greater: float | msgspec.UnsetType = msgspec.UNSET
    same_as: Other | None = None
    alike: bool | msgspec.UnsetType = msgspec.UNSET
    less_than: Other | None = None
    greater_than: Other | None = None
    stem: str | None = None
    mentions: str | None = None
    contains: str | None = None
    runs: str | None = None
    words: str | None = None
    length: int | list[int] | None = None
    nonzero: int | None = None
    combines: Other | None = None
    has: str | None = None
    made_by: list[str] | None = None
    rank: int | list[int] | None = None
    along: Other | None = None
    lone: bool = False
    if_unknown: Literal[False] | msgspec.UnsetType = msgspec.UNSET
    dtype: str | list[str] | None = None
    elements: int | None = None
    distinct: bool | Literal["rows", "in rows"] | msgspec.UnsetType = msgspec.UNSET
    requires_grad: bool | msgspec.UnsetType = msgspec.UNSET
    sparse: bool | msgspec.UnsetType = msgspec.UNSET
    last_size: int | None = None
    single: Other | None = None
    sizes: SizeSum | None = None
    uneven: Uneven | None = None
    multiple: Multiple | None = None
    all_of: list[Condition] | None = None
    any_of: list[Condition] | None = None
    none_of: list[Condition] | None = None


CONDITION_TESTS = tuple(
    name
    for name in Condition.__struct_fields__
    if name not in ("arg", "pos", "item", "default", "along", "lone", "if_unknown")
)
"""The names of the tests of which a condition has exactly one."""


class Effect(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A mode or an environment variable that a call sets.

    ``name`` is a mode (``torch.deterministic``, ``torch.cudnn.deterministic``, ``torch.cudnn.benchmark``,
    ``torch.warn_only``, ``torch.fill_uninitialized_memory``, ``tf.deterministic``, ...) or ``env:VARIABLE``.
    ``value`` is the literal it is set to, or ``{arg: name, pos: n, default: v}`` for "what that argument is".
    It holds when all of ``when`` hold, on versions in ``versions``.
    """

    name: str
    value: Any
    when: list[Condition] = []
    versions: str = ""


class FrameworkSeed(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The call with which a framework seeds a generator, and the others that it draws from, as in its samplers and
    workers. A program uses it that imports one of these ``modules``; ``versions`` are releases of the ``library``."""

    library: str
    modules: list[str]
    seed: str
    versions: str = ""


class GeneratorEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A random number generator that a library keeps for all its calls, by the name that ``seeds`` and ``draws``
    of other entries use.

    ``torch`` is the CPU generator and, through ``torch.manual_seed``, every device's; ``torch_cuda`` is what
    ``torch.cuda.manual_seed(_all)`` alone seeds. ``title`` is what messages call it, ``seed`` the call that they
    recommend, ``where`` the place of that call unless it is the start of the program; ``rule`` reports draws
    without a seed. ``starts`` says how it begins: from ``entropy``, or from a ``constant``, so that it needs no
    seed. ``forked`` says how it begins in a child that ``fork`` makes: as a ``copy``, or from ``entropy`` again.
    ``seeded_from`` is the generator from which it takes its seed when it is first drawn from, ``seeded_with`` those
    whose seed is its seed too. In functions
    with one of the decorators ``inside`` it is meant where the generators that it ``replaces`` are named. In programs that
    use one of these ``frameworks`` the call of the framework is recommended.
    """

    id: str
    title: str
    library: str
    seed: str
    where: str = ""
    rule: str = "DET113"
    starts: Literal["entropy", "constant"] = "entropy"
    forked: Literal["copy", "entropy"] = "copy"
    seeded_from: str = ""
    seeded_with: list[str] = []
    inside: list[str] = []
    replaces: list[str] = []
    frameworks: list[FrameworkSeed] = []
    note: str = ""
    provenance: list[str] = []


class Callback(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A function that a call is given and that the library runs: it ``draws`` from one of these generators."""

    arg: str
    pos: int | None = None
    draws: list[str]


class Drawn(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is done with what a call makes where something is drawn: methods that ``run`` a function, whose argument has
    methods that ``draw`` (names with ``*``), in as many ``rounds`` as an argument says; methods that ``give`` such an
    argument; and methods that ``fix`` what is drawn in one round, by a dictionary."""

    runs: list[str]
    rounds: str
    gives: list[str]
    draws: list[str]
    fixes: list[str]


class HazardEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call, an attribute or a variable whose value makes results of a library vary.

    ``apis`` are calls and methods (of receivers whose class is known), ``attributes`` module attributes that are
    assigned, ``env`` environment variables that are set; for the last two a condition names the argument
    ``value``. It is a hazard when all of ``when`` hold for certain and none of ``unless`` does, and a function
    that is given as ``callback`` draws; with ``drawn`` it is none where it is seen that nothing is asked of what the call
    makes. ``rule`` reports it with ``message`` and ``help``, in which ``{call}`` is
    the call as written and ``{value}`` the value.

    What the rest of the program does can take it back: a call of one of ``unless_called`` (names with ``*``,
    anywhere in the program), an attribute of ``unless_assigned`` that some object of a library is given,
    a variable of ``unless_env`` that has one of these values there, a mode of
    ``unless_mode`` that is on, a generator of ``unless_seeded`` that is seeded. With ``unless_in_memory`` it is none where
    the call is seen to give what is held in memory alone. With ``only_called`` it is a hazard
    only in a program that makes one of these calls somewhere. With ``made_by`` the generators of ``unless_seeded`` are
    those of which a receiver keeps the states when one of these calls makes it: they count as they are there, where it
    is reported, and ``late`` is the rule that reports it if they are seeded after that. An entry with one of these says
    nothing about code that no entry point reaches. ``devices``: only a program that may use one of them.

    ``only_env``: only where these variables have one of these values; an empty one stands for a variable that is
    not set.

    With ``decorates`` the names are those of decorators: it is judged where a function that one is applied to is called with
    some of these arguments, by the keywords of both.

    ``for_each`` is the severity in place of ``severity`` in the body of a ``for`` statement or a comprehension that goes
    through something, or in what it calls: one that counts may only try again.

    ``once``: one remedy is for all such calls of a program, of which the first is reported.

    ``literal``: a value that is the default of an option of the program is none that it has chosen; it is not
    reported. ``subject`` is what the finding is about, where that is not the call as written. ``help_beside`` replaces
    ``help`` where all of ``beside`` hold, or may. ``passes`` is the argument that the fix passes, with its value.
    """

    id: str
    library: str
    rule: str
    message: str
    help: str
    passes: dict[str, int] = {}
    beside: list[Condition] = []
    help_beside: str = ""
    apis: list[str] = []
    attributes: list[str] = []
    env: list[str] = []
    when: list[Condition] = []
    unless: list[Condition] = []
    callback: Callback | None = None
    decorates: list[str] = []
    drawn: Drawn | None = None
    unless_called: list[str] = []
    unless_assigned: list[str] = []
    only_called: list[ReadAt] = []
    unless_env: dict[str, list[str]] = {}
    only_env: dict[str, list[str]] = {}
    unless_mode: list[str] = []
    unless_seeded: list[str] = []
    unless_in_memory: bool = False
    made_by: list[str] = []
    late: str = ""
    devices: list[Device] = []
    versions: str = ""
    once: bool = False
    literal: bool = False
    subject: str = ""
    severity: Level | None = None
    for_each: Level | None = None
    confidence: Sureness | None = None
    note: str = ""
    provenance: list[str] = []


class RngEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call does to random number generators.

    ``seeds``: RNGs it seeds, with ``seed_arg`` / ``seed_pos`` naming the argument that carries the seed;
    ``seed_default`` is its default (UNSET: required), and ``seed_value`` what a remedy passes; ``instead`` is what to
    use where nothing seeds it. ``none_seed`` says what a None seed does: ``entropy`` (reseeds from the operating
    system), ``ignored`` (nothing is seeded), ``fixed`` (a fixed seed is used) or ``raises``. ``seed_from``: an RNG
    whose seed it takes for None, if that is seeded; the call does more than to seed, so that it matters only if
    something is drawn afterwards.
    ``draws``: RNGs it draws from (``own``: a generator of its own; ``entropy``: the operating system or the
    clock). ``at`` says when: ``call`` (the call itself draws), ``construct`` (the constructor draws, as weights
    do), ``use`` (the object draws when it is called, iterated or trained, as dropout and samplers do; when it is
    called alone if it is not ``iterated``).
    ``at_first_use``: what the call makes draws where it is given to a call of a library too, as an initializer is.
    ``unless``: arguments which, when given, make it draw from them instead of the global RNG; ``when``:
    conditions under which it draws at all. ``quiet_parts``: what an object made of nothing but these parts (its
    first argument) draws decides nothing. ``seed_attribute``: the seed is this attribute of that argument, as of a
    configuration; ``random_seeds``: values of it that mean a random one. ``seeded_by``: methods by which an object
    is seeded after it was made; ``used_by``: methods that draw what a call of it draws. ``why`` is what a message says
    of the cause, where the kind does not say it.
    ``kind`` is a finer class for the checks: ``seeder``, ``anti-seed``,
    ``draw``, ``init``, ``dropout``, ``shuffle``, ``split``, ``sampler``, ``transform``, ``generator``,
    ``entropy``, ``environment``, ``stateless``, ``unseeded-op``, ``sampling`` (generation by a model).
    ``only_env``: it holds only where these environment variables have one of these values (an empty one: are not
    set).
    ``file_calls``: the text behind which a file that it reads names functions, which it calls: it seeds what these seed.
    ``unless_inside``: contexts in which it need not draw: of ``with`` or a decorator, or, with ``library.*``, anything
    that this library calls, or ``@reused``, where variables are taken that there are.
    ``package``: it holds for what the program imports from this package, and replaces there what is said of the same names
    without one: Keras before 2.4 was no other name for ``tf.keras``.
    ``in_place``: it changes an argument, its receiver or a graph; what it gives is not all that it does.
    ``permutes``: asked by the first of these arguments for a share of one, and given none but these, it draws each row
    once.
    ``trains``: it draws while it trains its receiver, or what it is given.
    ``built_later``: what it makes draws when it is first called, as layers of Keras do, which make their weights then: one
    that the program only keeps draws nothing.
    ``assigned`` is true when the names are attributes that are assigned the seed.
    ``method`` is true when the names are methods that are recognised on an instance
    (``torch.Tensor.uniform_``, ``gymnasium.Env.reset``). Names may end in ``.*``. ``not_apis`` are names that
    a pattern among ``apis`` matches and that are something else. ``bodies`` are names of checkpoints, which may end in
    ``*``, that have none of the layers which a call draws for what its first argument names.
    """

    id: str
    apis: list[str]
    kind: RngKind
    library: str
    seeds: list[str] = []
    seed_arg: str = ""
    seed_pos: int | None = None
    seed_default: Any = msgspec.UNSET
    seed_value: str = "0"
    instead: str = ""
    none_seed: Literal["entropy", "ignored", "fixed", "raises"] = "entropy"
    seed_from: str = ""
    seed_attribute: str = ""
    random_seeds: list[Any] = []
    seeded_by: list[str] = []
    used_by: list[str] = []
    draws: list[str] = []
    at: Literal["call", "construct", "use"] = "call"
    at_first_use: bool = False
    iterated: bool = True
    unless: list[Condition] = []
    when: list[Condition] = []
    quiet_parts: list[str] = []
    sets: list[Effect] = []
    does_not_seed: list[str] = []
    file_calls: str = ""
    only_env: dict[str, list[str]] = {}
    unless_inside: list[str] = []
    not_apis: list[str] = []
    bodies: list[str] = []
    package: str = ""
    in_place: bool = False
    permutes: list[str] = []
    trains: bool = False
    built_later: bool = False
    assigned: bool = False
    versions: str = ""
    method: bool = False
    why: str = ""
    note: str = ""
    confidence: Sureness = "high"
    provenance: list[str] = []


class RoleEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What part calls of a library play in what a rule follows through a program.

    ``role`` is one of a fixed vocabulary; ``roles.yaml`` says what each means. ``apis`` are canonical names; a
    name that ends in ``.*`` stands for all directly below it. With ``method`` the names are methods that are
    recognized on a receiver of unknown class too. ``arg`` and ``pos`` name the argument that the role is about,
    ``more`` further ones by keyword, ``when`` the conditions under which the call plays it, ``versions`` the releases of the
    library in which it does, for those who ask.
    """

    id: str
    role: Role
    library: str
    apis: list[str]
    method: bool = False
    arg: str = ""
    pos: int | None = None
    more: list[str] = []
    when: list[Condition] = []
    versions: str = ""
    note: str = ""
    provenance: list[str] = []


class OpHistory(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an op does in a range of versions of its library.

    ``behaviour`` under deterministic mode: ``deterministic_alternative``, ``raises``, ``silent`` (may vary
    and nothing is said) or ``deterministic`` (its default algorithm is already).

    ``alert`` compares with released binaries: ``kept`` where the kernel's alert is still in them although the
    op does not reach it in this range (it is replaced in Python, or before the kernel is chosen); ``none``
    where an op raises without an alert of its own, from code that is no kernel. ``switch`` is the call that
    brings the behaviour about, where it is not the switch that the release has for all ops. ``silenced_by`` is an
    environment variable that takes the error back: the op then varies, and nothing is said. ``strict_only`` is true where
    the deterministic implementation is not used when the mode only warns.
    """

    versions: str
    behaviour: Behaviour
    alert: Literal["own", "kept", "none"] = "own"
    switch: str = ""
    silenced_by: str = ""
    strict_only: bool = False
    note: str = ""


class RemedyWhen(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to do about an op where all of ``when`` hold for its call, or for the one that made the module which is used."""

    when: list[Condition]
    remedy: str


class OpEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An op without run-to-run guarantee.

    ``passes`` is ``forward``, ``backward`` or ``both``; ``devices`` are those on which it behaves so. The op
    is affected when all of ``when`` hold and none of ``unless`` does; ``condition`` says the same in words,
    including what no argument shows. ``static`` is false when the condition cannot be judged from the call
    alone (then a finding has low confidence). ``practical`` is false where the documentation lists the op but
    it was not seen to differ, or it needs rare inputs. ``if_unknown`` is the confidence of a finding where a
    condition is unknown; ``unless_unknown`` where that is only one of ``unless``, if it differs (``medium-if-given``:
    medium for what a function is given that no entry point reaches, else low). ``unless_called`` are
    conditions on the arguments of calls of the module that the op makes: it is not affected where each of its calls
    fulfils one. ``untrained`` are conditions on the arguments of a layer whose gradient is that of its own variable, with
    one of which it has none; an attribute of the layer with the name of the argument decides it later.
    ``default_mode`` is ``deterministic`` for an op that does not vary without the mode, and ``random`` for one
    that draws its numbers from the clock or the operating system. ``alerts`` are the names by which PyTorch refuses
    the op, or the sentences by which TensorFlow does. ``operations`` are the operations of ``torch.ops.aten`` that differ,
    where neither an alert nor the API has their name. ``unless_env`` are environment variables with the values (``*``
    stands for any text) that make the op deterministic, ``unless_mode`` are modes that do, and ``unless_off`` modes
    that do when they are switched off; ``only_env`` those with which the entry holds at all (an empty value: the
    variable is not set). ``through`` are the inputs whose gradient the backward pass computes, where it is not the
    first one. ``hardware`` is what messages call the devices of a library whose kernels are not all CUDA's.
    ``repeats`` are indices: the op is affected where one of them is seen to be an array that may name an
    element several times (of a function or layer: where none is seen to name each once). With ``only_seen`` it is
    affected only where the program is seen to run on a GPU, and a gradient to be taken of what it works on.
    ``overwritten`` are an index and the values that are written there: the result is seen to vary where several of the
    places may well be one, and the values are not computed from the places.
    ``in_place`` is true where it changes what it is given though its name does not end in ``_``.
    ``parts`` are the names of the tensors that it gives, where only the last of them varies; with ``graded``, where the
    backward pass runs only if a gradient is taken of the one of this name.
    ``at`` is ``use`` for a module whose inputs decide: it is judged where it is called. ``only_tensors`` is
    true for methods whose name tells that the receiver is a tensor: no other common class has one of that name.
    ``losses`` are the names by which the ``compile`` of a model takes it for a loss. ``remedy_old`` is the remedy in
    releases that have no deterministic mode, ``remedy_off`` the one where one of these modes is switched off, ``remedy_on``
    where one is on that the remedy asks for, and ``remedy_when`` those that hold for some arguments alone: the first of
    which all conditions are seen to hold takes the place of ``remedy``.
    """

    id: str
    library: str
    apis: list[str]
    devices: list[Device]
    passes: Pass
    history: list[OpHistory]
    condition: str = ""
    when: list[Condition] = []
    unless: list[Condition] = []
    static: bool = True
    practical: bool = True
    only_tensors: bool = False
    losses: list[str] = []
    unless_env: dict[str, list[str]] = {}
    only_env: dict[str, list[str]] = {}
    unless_mode: list[str] = []
    unless_off: list[str] = []
    unless_called: list[Condition] = []
    untrained: list[Condition] = []
    default_mode: Literal["nondeterministic", "deterministic", "random"] = "nondeterministic"
    alerts: list[str] = []
    operations: list[str] = []
    remedy: str = ""
    remedy_old: str = ""
    remedy_off: dict[str, str] = {}
    remedy_on: dict[str, str] = {}
    remedy_when: list[RemedyWhen] = []
    note: str = ""
    confidence: Sureness = "high"
    if_unknown: Literal["medium", "low"] = "medium"
    unless_unknown: Literal["", "medium", "low", "medium-if-given"] = ""
    rule: str = ""
    at: Literal["call", "use"] = "call"
    through: list[Other] = []
    repeats: list[Other] = []
    overwritten: list[Other] = []
    only_seen: bool = False
    in_place: bool = False
    parts: list[str] = []
    graded: str = ""
    hardware: str = ""
    provenance: list[str] = []


class ReadAt(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls that read an environment variable for good, when all of ``when`` hold."""

    apis: list[str]
    when: list[Condition] = []


class SettingEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An environment variable, flag, attribute or argument that bears on determinism.

    ``hazards`` are the exact values of an environment variable that make results vary: setting one is a finding.
    ``hazard_values`` say in words what else is a hazard. ``read_at`` are the calls that read a variable: set after
    one of them, it has no effect. After one of ``unread_after`` they do not read it, until that is called with other
    arguments. ``read_by_import`` are the libraries that read a variable when the first of them is imported: set after
    that, it has its new value only for processes that start later.
    """

    id: str
    kind: SettingKind
    names: list[str]
    library: str
    versions: str = ""
    effect: str = ""
    default: str = ""
    value_for_determinism: str | list[str] = ""
    hazard_values: list[str] = []
    hazards: list[str] = []
    must_be_set: str = ""
    read_at: list[ReadAt] = []
    unread_after: list[ReadAt] = []
    read_by_import: list[str] = []
    note: str = ""
    confidence: Sureness = "high"
    provenance: list[str] = []


class TextTest(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A test of a literal string argument, without regard to case: it contains all of ``has``, none of ``lacks``, and
    none of ``totals`` unless it contains one of ``groups`` too."""

    arg: str
    pos: int | None = None
    has: list[str] = []
    lacks: list[str] = []
    totals: list[str] = []
    groups: list[str] = []


class OrderEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a call has to do with the order of what it is given or gives.

    ``apis`` are canonical names; ``list.sort`` is a method of a known type, ``*.sort`` one of any receiver or an
    attribute, ``numpy.*`` everything of a library that has no entry of its own.

    ``role``: a ``source`` gives elements in arbitrary order; ``carry`` keeps the order of what it is given (or of
    its receiver); ``pair`` takes sequences side by side; ``end`` gives something that does not depend on it, and
    ``sum`` does so unless the elements are floats; a ``sink`` makes it count; so does ``show`` where the function in
    which the order came about has returned; a ``step`` changes a model, and a ``write`` something that is older than
    the loop, so that they count in a loop over arbitrary order; a ``fit`` is a step for which the order of what the model
    was built with counts, too; ``grow`` adds to its receiver, ``fill`` adds its
    arguments in their order to an object of a library, and ``accumulate``
    adds to the numbers in it; ``settle`` sorts its receiver in place, and ``argsort`` gives the positions that sort;
    ``push`` adds to a heap, ``points`` draws points at the coordinates ``x`` and ``y``, and ``draw`` adds to the
    present figure, which ``figure`` begins or ends; a ``type`` says only what kind of value is given.

    ``rule`` is the rule of a source, ``what`` its message (``{name}`` is the call as written) and ``help`` the
    remedy, ``help_now`` that where the program takes what is there at the moment, ``help_endless`` that where the workers
    never end; ``sortable`` allows the fix
    ``sorted(...)``. ``gives`` is ``walk`` for triples of a folder and two listings, and ``turns`` where the rounds of
    the loop around the call deal with whatever is ready first; ``taken`` is that for what several workers have put
    into a queue, and ``identifier`` a value that differs between runs, so
    that sorting by it gives an arbitrary order, and ``element`` the smallest or largest one; ``set`` is a set, and ``sets``
    are several; a sink whose first argument is ``shuffled`` in place, or that gives all its elements ``permuted``, makes the
    order count where that of the argument counts. ``pattern`` is the
    position of an argument that names one entry where it has no wildcard characters; a listing of ``one_folder`` gives the
    entries of a folder, and none of those below. ``key`` names the argument that
    is a sort key, and ``iterated`` is the position of what is sorted or chosen from by it. ``library`` must have been
    imported for a method of an unknown receiver to be meant. It holds when all of ``when`` and
    the tests of ``texts`` hold, and none of ``unless``; ``made_with`` are conditions on the arguments of the call
    that gave the receiver, where it is known. ``value`` is the kind of what is given, ``elements`` that of its
    elements: ``number``, ``float``, ``text``, ``path``, ``row`` for a sequence or mapping of texts, ``numbered`` for
    a pair of something and a number, ``same`` for
    that of the receiver's elements, ``same-in-array`` for that where it is an array of NumPy, ``in-tensor`` for a
    tensor, whose elements are tensors until they are converted, ``argument`` for that
    of the argument ``like`` itself, which is the first one unless that is named, ``of-argument`` for that of its elements,
    or, for what is hashed by address,
    ``object``; the argument ``dtype`` may name another. A
    sink that is ``until_sorted`` gives something
    that the program may still sort, by an entry with ``sorts``; it is a ``table`` or, where it is ``reducible``, an
    array. What is ``elementwise`` says of each element of an array whether something holds. A sink that is
    ``lazy`` takes elements when it is iterated, not before: these attributes of what it gives do not depend on
    their order. What ``commutes`` gives, when it is applied to its own result and one value after the other, the
    same whatever their order. Where all of ``appends`` hold, what is written is added to the file that the first
    argument names. ``converts`` names the argument that is a function, which makes of a set in the data what is saved.
    ``tested`` are arguments, with their positions, of which it only matters which elements they
    have: data that the program tests for its elements is not taken to be kept for its order. ``looked_up`` are
    arguments whose elements are looked up by a key, unless ``unless`` holds: their order is not that of the
    result. What takes ``numbers`` raises where it is given texts; a sink that ``finds`` gives the position of an
    element in its receiver, and a ``type`` that does so that of one in its receiver or first argument. Of what ``ties``,
    several elements may give the same, so that a sort by it leaves them in the order in which they were. A ``type`` that
    is ``of_file`` is read from the file whose name it is given.
    What ``shows`` its arguments gives them to a person to look at, or ``as_data``, as lines of text or as an answer that a
    program may read; what ``answers`` names in a page also what a model has found. The order of a source differs in
    ``each_process``, whatever its elements are, or may stay what it was. What is given has a row for each of the ``rows`` of
    the first argument, or of the receiver. What ``flattens`` puts the elements of each element of its first ``argument``
    one after the other, or those of each argument, ``starred`` where a sequence of them is given, and ``arrays`` where
    they are no sets. Of what ``prompts`` a
    model, it counts what the texts say, and not in which order they are given. What ``compares`` its arguments asks
    which of their elements are equal, and nothing else of them. Where the
    conditions do not hold, the role is the one given as ``otherwise``.
    """

    id: str
    apis: list[str]
    role: OrderRole
    rule: Literal["", "DET209", "DET210", "DET211", "DET213", "DET215"] = ""
    gives: Literal[
        "sequence", "walk", "turns", "taken", "identifier", "element", "set", "sets", "shuffled", "permuted"
    ] = "sequence"
    pattern: int | None = None
    one_folder: bool = False
    what: str = ""
    help: str = ""
    help_now: str = ""
    help_endless: str = ""
    sortable: bool = False
    key: str = ""
    iterated: int = 0
    library: str = ""
    when: list[Condition] = []
    unless: list[Condition] = []
    made_with: list[Condition] = []
    texts: list[TextTest] = []
    value: Element = ""
    elements: Element = ""
    like: str = ""
    like_pos: int = 0
    dtype: str = ""
    dtype_pos: int | None = None
    lazy: list[str] = []
    until_sorted: bool = False
    sorts: bool = False
    commutes: bool = False
    appends: list[Condition] = []
    converts: str = ""
    tested: dict[str, int] = {}
    looked_up: dict[str, int] = {}
    numbers: bool = False
    finds: bool = False
    of_file: bool = False
    reduces: Literal["", "any", "whole"] = ""
    reducible: bool = False
    elementwise: bool = False
    ties: bool = False
    table: bool = False
    shows: bool = False
    answers: bool = False
    as_data: bool = False
    each_process: bool = False
    rows: Literal["", "argument", "receiver"] = ""
    flattens: Literal["", "argument", "starred", "arrays"] = ""
    prompts: bool = False
    compares: bool = False
    otherwise: Literal["", "end", "points", "type"] = ""
    confidence: Sureness = "high"
    note: str = ""
    provenance: list[str] = []


class Ranks(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An argument that tells how many dimensions a tensor has: for each of these values of it, how many."""

    arg: str
    pos: int
    of: dict[str, int]


class TensorEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is known of the tensor that a call gives. ``apis`` without a dot are functions of ``torch`` and methods
    of tensors; a class of ``torch.nn`` stands for calls of its modules.

    ``grad`` says whether it requires grad: ``none`` (no, unless ``requires_grad=`` says so), ``leaf`` (yes, unless
    that says no), as its ``first`` input or one of its ``inputs`` does, ``weights``: the module has parameters, or
    ``unknown``.
    ``device``: as its ``inputs`` or the ``first`` of them, where a ``new`` tensor is made, as the ``argument`` says,
    ``unknown``, or a name. ``sizes``: those of its first ``input``, of as many dimensions (``rank``; ``reordered`` where
    arguments name some of them), one more (``longer``, ``widened`` where that has one element) or less (``shorter``), those
    that are left where arguments name some or none (``reduced``), or where ``along`` names one, those of more than one
    element (``squeezed``), those that the ``equation`` or ``pattern`` of the call names for its result, those of sequences
    of which windows are pooled (``line``), ``given`` as arguments, or as ``repeated`` or
    ``expanded`` by them, as the ``first``, ``second``, ``steps`` or ``size``
    argument, by a ``range``, by nested lists (``data``), of all inputs together (``broadcast``), of a ``product`` of
    matrices, several ``joined`` or ``stacked`` along a dimension, what
    flattening leaves (``flat``;
    ``flat-module`` starts at the second dimension), those of ``positions`` of elements, one in a row, or those of the
    ``index`` that it is given, which has as many dimensions as the input. ``rank`` is the number of dimensions where it
    is always the same, or beside ``rank`` what is usual where that of the input is not known, ``spatial`` the argument
    of the module that says how many there are besides those of the batch and the channels, ``ranks`` an argument whose
    values are each for one number of dimensions. ``dtype``: that of the ``input``, what an ``argument``
    says, that of the first input (``like``) or float32 (``stated``) unless an argument says another, that of what
    a test chooses from (``chosen``), that of the input if it is no integer, else some ``floating`` one
    (``fractions``), that of ``summed`` numbers, int64 for integers, or a name.
    ``distinct``: no element is there twice in a row or column, always, where it is so
    of the ``input``, or where it is so of that and it is repeated in dimensions of one element only (``apart``);
    of ``positions`` where the input has one dimension, and of what is made of the ``one-column`` of such; where it is so
    of the input or that has the positions of what is true in one dimension (``column``); where the positions are ``found``
    at which a vector is true, as there is nothing to choose from (``found-rows`` where each is a row); where the ``numbers``
    of the sequence or array are all different that it is made of. None of its rows along the last dimension is there twice
    where that is so of the elements of one of the vectors that are stacked there (``stacked-rows``), or of the parts of
    rows that are joined (``joined-rows``).
    ``repeats``: several of its elements may well be equal, as of numbers that are drawn from a few, or rounded, or where
    that is so of the ``input``, or where some of the ``numbers`` are equal of the sequence that it is made of.
    ``whole``: its elements are whole numbers whatever their type, always or where those of the ``input``, or of all its
    ``inputs``, are. ``sparse``: its layout is sparse, always, where that of the ``input`` is, or
    where that of one of its ``inputs`` is, as sparse tensors are not joined with dense ones.
    ``second``: the call gives a pair, if ``second_when`` holds, whose second tensor holds ``positions``, or such as are
    ``distinct``, or is the ``state`` of as many dimensions as the first (of three where that is not known), or two such
    ``states``, of which the arguments ``layers`` and ``sides`` say how long the first dimension is. ``last`` is the
    argument of the module that says how long the last dimension is.
    ``unless`` are conditions on the arguments of the call, or of that which made the module: where one may hold, nothing
    is known. ``along`` is the argument that names a dimension of which one element is left, or none unless the next
    argument keeps it. With ``module`` the names make modules without weights, which give the tensor when they are
    called. ``items`` is the rank of the tensors in a dictionary that the call gives. ``tells`` are conditions on the
    arguments of a method that no other common class takes: something unknown whose method is called so is a tensor.
    """

    id: str
    apis: list[str]
    grad: Literal["none", "leaf", "first", "inputs", "weights", "unknown"] = "inputs"
    device: Literal["inputs", "first", "new", "argument", "unknown", "cpu", "cuda", "xpu", "mps"] = "inputs"
    sizes: Literal[
        "unknown",
        "input",
        "rank",
        "reordered",
        "permuted",
        "longer",
        "widened",
        "repeated",
        "expanded",
        "shorter",
        "reduced",
        "squeezed",
        "along",
        "equation",
        "pattern",
        "line",
        "given",
        "given-or-data",
        "first",
        "second",
        "steps",
        "size",
        "range",
        "data",
        "broadcast",
        "product",
        "joined",
        "stacked",
        "flat",
        "flat-module",
        "positions",
        "index",
    ] = "unknown"
    rank: int | None = None
    spatial: Other | None = None
    last: Other | None = None
    layers: Other | None = None
    sides: Other | None = None
    ranks: Ranks | None = None
    dtype: str = ""
    distinct: (
        bool
        | Literal[
            "input",
            "apart",
            "positions",
            "one-column",
            "column",
            "found",
            "found-rows",
            "numbers",
            "stacked-rows",
            "joined-rows",
        ]
    ) = False
    whole: bool | Literal["input", "inputs"] = False
    repeats: bool | Literal["input", "numbers"] = False
    sparse: bool | Literal["input", "inputs"] = False
    second: Literal["", "positions", "distinct", "state", "states"] = ""
    second_when: list[Condition] = []
    unless: list[Condition] = []
    along: Other | None = None
    module: bool = False
    items: int | None = None
    tells: list[Condition] = []
    note: str = ""
    provenance: list[str] = []


class DeviceEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls, attributes and environment variables (``os.environ.NAME``) whose value names a device. ``gives`` is
    that device; ``owner`` stands for the one on which the object works that has the attribute, ``argument`` for the one
    that the argument ``device_type``, or the first, names."""

    id: str
    apis: list[str]
    gives: Literal["cpu", "cuda", "xpu", "mps", "owner", "argument", "default"]
    note: str = ""
    provenance: list[str] = []


class NamedFile(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls that are given the name of a file as an argument, which later releases take only with one of some ``ends``;
    ``when`` are conditions on the other arguments."""

    apis: list[str]
    arg: str
    pos: int
    ends: list[str]
    when: list[Condition] = []


class NamedItems(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Calls that are given names, as those of metrics, under which an ``attribute`` of what they work on has items: the
    ``keys`` of items that only earlier releases have for a name, as ``acc`` for ``accuracy``."""

    apis: list[str]
    arg: str
    pos: int
    attribute: str
    keys: dict[str, str]


class InferredEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Names that only releases up to ``version`` of a library have: a program that uses them, and pins nothing, was
    written for it. Or names that only releases from ``since`` on have: where a program imports them in any case, older
    releases that prose states do not count.

    ``prefixes`` are beginnings of names, ``methods`` names of methods, ``arguments`` names of arguments by call,
    ``files`` calls with names of files that later releases refuse, ``items`` what is read of results that have other
    keys in later releases; these tell nothing of a program that uses a name of ``later`` releases.
    ``implies`` are the releases of other libraries that such a program was written for, unless their own names tell
    more. With ``project`` a module that any file of a project imports tells it for all of its programs, unless one
    imports a module of later releases: ``later`` are the beginnings of their names. With ``certain``, only a call that
    the program makes on each of its ways tells it: programs for several releases ask which one they have. With
    ``likelier``, they leave the entry as it is, and without them the project was more likely written for these earlier
    releases, by library."""

    id: str
    library: str
    version: str = ""
    since: str = ""
    apis: list[str]
    prefixes: list[str] = []
    methods: list[str] = []
    arguments: dict[str, list[str]] = {}
    files: list[NamedFile] = []
    items: list[NamedItems] = []
    implies: dict[str, str] = {}
    project: bool = False
    certain: bool = False
    later: list[str] = []
    likelier: dict[str, str] = {}
    provenance: list[str] = []

    @property
    def releases(self) -> tuple[dict[str, str], dict[str, str]]:
        """The newest release that has the names, and the releases that it implies."""
        return {self.library: self.version} if self.version else {}, self.implies


class Asked(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An argument that names a device, or its key ``item`` (``A.B`` of a configuration in another one), which is
    ``default`` where the program does not set it. With ``means``, it is one that says whether that device is used."""

    arg: str
    pos: int | None = None
    item: str = ""
    default: str = ""
    means: str = ""


class Made(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An argument that is a class of which an object is made, and used; where it is not given, or is ``base``, the
    command line or a configuration names a class that is derived from ``base``. ``unknown``: the name under which is
    said what making an object draws where the program has no such class. ``part``: the part of a configuration file that
    names it as ``class_path``, with its arguments as ``init_args``."""

    arg: str
    pos: int | None = None
    base: str
    unknown: str = ""
    part: str = ""


class FileArgument(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An argument whose value configuration files of the project replace: by that of their key ``part``, or, where that is
    a mapping, by its items."""

    arg: str
    part: str


class RunnerEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Objects that train models or move them to a device. ``apis`` are classes and functions; ``*`` stands for a part
    of a name.

    ``device`` is where they work unless one of ``cpu`` holds of their arguments, or of those of the object that is
    their argument ``settings``, or of the attributes that it was given later. ``asked`` are arguments that name the
    device, of the constructor or of a method that trains; ``mode`` is a mode that names it where no argument does.
    ``trains`` are the methods that train, ``evaluates`` those that do not, which call what they call with gradients
    switched off; ``without_gradient`` are the methods of a model that are called so when it trains too.
    ``batches`` are methods of a model with the name of the argument that is a batch of data. ``returns`` are positions
    or names of the arguments that a call gives back, moved to the device, and ``calls`` those of objects whose methods
    it calls, and ``makes`` those of classes of which it makes such objects. It ``keeps`` the objects that a method is
    given for a later one that is given none. ``hands_back`` are methods that give what they are given, moved to the
    device. ``from_files`` are arguments that
        configuration files of the project replace, and the method ``parser_hook`` of a derived class, by the defaults that
    it gives options. ``chained`` are the methods that give the object itself,
    and ``adds`` those that add an object, or one of the class that they are given, to those that it was made with.
    ``inputs``: the module that it wraps (see the role ``wraps``) is called with inputs that it moves to the device.
    ``constructs``: making one trains. ``switch`` says how to make it deterministic, in the releases ``switches`` if they
    are named, ``switch_in`` names the argument that takes this in a dictionary, with the item, and ``resets`` in which
    releases making one turns deterministic mode off unless its argument asks for it; ``environment`` are the variables that
    making it deterministic sets.
    """

    id: str
    apis: list[str]
    library: str
    versions: str = ""
    device: Literal["cpu", "cuda", "xpu", "mps", "unknown"] = "cuda"
    cpu: list[Condition] = []
    settings: Other | None = None
    asked: list[Asked] = []
    mode: str = ""
    trains: list[str] = []
    evaluates: list[str] = []
    without_gradient: list[str] = []
    batches: dict[str, str] = {}
    returns: list[Other] = []
    calls: list[Other] = []
    chained: list[str] = []
    adds: list[str] = []
    makes: list[Made] = []
    keeps: bool = False
    hands_back: list[str] = []
    from_files: list[FileArgument] = []
    parser_hook: str = ""
    inputs: bool = False
    constructs: bool = False
    switch: str = ""
    switch_in: dict[str, str] = {}
    switches: str = ""
    resets: str = ""
    environment: dict[str, str] = {}
    note: str = ""
    provenance: list[str] = []


class HookEntry(_Entry, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Classes of which a program derives its own, so that a library calls their methods. ``called`` are names of these
    methods (``*`` stands for any characters) by the method of the library that calls them, or by ``__call__``, which
    stands for a call of the object; ``always`` are called by each. With ``only`` the library calls no method of another
    name, and these classes have no method that trains. Of the objects that a method gives, the library calls the methods
    that ``gives`` lists for it."""

    id: str
    apis: list[str]
    library: str
    called: dict[str, list[str]]
    always: list[str] = []
    gives: dict[str, list[str]] = {}
    only: bool = False
    note: str = ""
    provenance: list[str] = []

    def calls(self, name: str, method: str) -> bool:
        """Whether the library calls the method of a name in its own ``method``; where that is "", in any of them."""
        by = self.called.values() if not method else [self.called.get(method, [])]
        return any(fnmatchcase(name, one) for names in (self.always, *by) for one in names)


class RulePage(msgspec.Struct, frozen=True, kw_only=True):
    """One Markdown page of ``rules/``: its front matter and its sections by title, in order. ``fixable`` is given
    by its blocks of fixed code: ``no``, ``safe``, ``unsafe`` or ``both``.

    The advice of a rule is shown when the rule was asked for; with ``show_advice`` it is shown by default.

    A rule in ``preview`` runs only where previews are enabled. ``replaces`` are codes and names that it had, or that
    rules had which it took over. ``retired`` is the version that stopped to run the rule; its page explains it still.
    """

    code: str
    name: str
    family: str
    summary: str
    severity: str
    confidence: str
    default: bool
    fixable: str
    since: str
    libraries: list[str]
    path: str
    markdown: str
    sections: dict[str, str]
    show_advice: bool = False
    preview: bool = False
    replaces: list[str] = []
    retired: str = ""
