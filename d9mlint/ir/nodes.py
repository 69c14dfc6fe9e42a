"""The facts of one file: a typed, versioned intermediate representation of its code.

Facts hold no judgement. They know nothing of torch or of rules: they are the program's statements in
their order, its expressions reduced to what an analysis can use, and where each of them stands. Rules,
knowledge and configuration may change without a file having to be parsed again; the cache key is
therefore (SCHEMA, libcst version, bytes of the file).

Positions are character offsets (not bytes) into ``Source.text``, half open, as ``PositionProvider``
would place them: own parentheses of an expression are outside it. Rows and columns are made only for
what is reported.

Every class is an array-like msgspec struct, so that a cached file decodes straight into these types.
"""

from __future__ import annotations

from functools import cached_property
from typing import TypeVar

import msgspec

from d9mlint.ir.limits import frames

SCHEMA = 10
"""Raised by one whenever the meaning or the shape of any struct below changes."""
T = TypeVar("T")
FRAMES = 4000
"""The nesting that encoding and decoding can follow, beyond what a lowering can make."""


class _Node(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """Base of all nodes: immutable, array-encoded, and outside the cyclic garbage collector."""


# ---------------------------------------------------------------------------------------- expressions


class Name(_Node, frozen=True, tag=1):
    """A plain name, or a chain of attributes rooted in one: ``torch.backends.cudnn.benchmark``."""

    id: str
    start: int
    end: int


class Attr(_Node, frozen=True, tag=2):
    """Attributes of an expression that is no name: ``f(x).a.b`` has value ``f(x)``, name ``a.b``."""

    value: Expr
    name: str
    start: int
    end: int


class Const(_Node, frozen=True, tag=3):
    """A literal. Concatenated strings are joined, a sign is part of a number. Ints beyond 64 bits, complex
    numbers and strings with lone surrogates are ``Other``."""

    value: bool | int | float | str | None
    start: int
    end: int


class Keyword(_Node, frozen=True):
    """One keyword argument; ``name`` is None for ``**value``."""

    name: str | None
    value: Expr


class Call(_Node, frozen=True, tag=4):
    """A call. ``*x`` among the positional arguments is a ``Star``."""

    func: Expr
    args: list[Expr]
    keywords: list[Keyword]
    start: int
    end: int


class Seq(_Node, frozen=True, tag=5):
    """A tuple, list or set display; ``kind`` is ``t``, ``l`` or ``s``."""

    kind: str
    elts: list[Expr]
    start: int
    end: int


class Dict(_Node, frozen=True, tag=6):
    """A dict display; a key is None for ``**value``."""

    keys: list[Expr | None]
    values: list[Expr]
    start: int
    end: int


class BinOp(_Node, frozen=True, tag=7):
    """``left op right``; ``op`` is the operator as written: ``+``, ``//``, ``@``, ..."""

    op: str
    left: Expr
    right: Expr
    start: int
    end: int


class BoolOp(_Node, frozen=True, tag=8):
    """``left and right`` or ``left or right``; ``op`` is ``and`` or ``or``."""

    op: str
    left: Expr
    right: Expr


class Unary(_Node, frozen=True, tag=9):
    """``op`` is ``not``, ``-``, ``+`` or ``~``. A signed number literal is a ``Const`` instead."""

    op: str
    operand: Expr


class Compare(_Node, frozen=True, tag=10):
    """``left ops[0] comparators[0] ops[1] ...``; ops as written, ``is not`` and ``not in`` with one space."""

    left: Expr
    ops: list[str]
    comparators: list[Expr]


class IfExp(_Node, frozen=True, tag=11):
    """``body if test else orelse``."""

    test: Expr
    body: Expr
    orelse: Expr


class Subscript(_Node, frozen=True, tag=12):
    """``value[index]``; several comma-separated indices are one ``Seq`` of kind ``t``."""

    value: Expr
    index: Expr
    start: int
    end: int


class Lambda(_Node, frozen=True, tag=13):
    """``function`` is an index into ``FileFacts.functions``; its body is one ``Return``."""

    function: int
    start: int
    end: int


class Generator(_Node, frozen=True):
    """One ``for target in iter if ...`` clause of a comprehension."""

    target: Expr
    iter: Expr
    ifs: list[Expr]


class Comp(_Node, frozen=True, tag=14):
    """A comprehension; ``kind`` is ``l``, ``s``, ``d`` or ``g``; ``value`` is set for ``d`` only."""

    kind: str
    elt: Expr
    value: Expr | None
    generators: list[Generator]
    start: int
    end: int


class FString(_Node, frozen=True, tag=15):
    """An f-string: constant text as ``Const``, replacement fields as their expressions."""

    parts: list[Expr]
    start: int
    end: int


class Star(_Node, frozen=True, tag=16):
    """``*value``."""

    value: Expr


class Wait(_Node, frozen=True, tag=17):
    """``await``, ``yield`` or ``yield from``, named by ``kind``: ``await``, ``yield``, ``from``."""

    kind: str
    value: Expr | None


class Walrus(_Node, frozen=True, tag=18):
    """``target := value``; target is a plain name."""

    target: str
    value: Expr
    start: int
    end: int


class Slice(_Node, frozen=True, tag=19):
    """``lower:upper:step`` inside a subscript."""

    lower: Expr | None
    upper: Expr | None
    step: Expr | None


class Other(_Node, frozen=True, tag=20):
    """Anything else (a complex number, a huge int, an ellipsis outside a subscript)."""

    start: int
    end: int


class Bytes(_Node, frozen=True, tag=21):
    """A bytes literal; its value is not kept."""

    start: int
    end: int


class Dots(_Node, frozen=True, tag=22):
    """``...`` inside a subscript."""

    start: int
    end: int


Expr = (
    Name
    | Attr
    | Const
    | Call
    | Seq
    | Dict
    | BinOp
    | BoolOp
    | Unary
    | Compare
    | IfExp
    | Subscript
    | Lambda
    | Comp
    | FString
    | Star
    | Wait
    | Walrus
    | Slice
    | Other
    | Bytes
    | Dots
)

# ----------------------------------------------------------------------------------------- statements
# ``start`` and ``end`` are those of a simple statement without its trailing comment and newline, and
# those of a compound statement's header from its keyword to its colon (exclusive of the colon).


class ExprStmt(_Node, frozen=True, tag=1):
    """An expression for its effect. Docstrings are dropped."""

    value: Expr
    start: int
    end: int


class Assign(_Node, frozen=True, tag=2):
    """``targets[0] = targets[1] = ... = value``."""

    targets: list[Expr]
    value: Expr
    start: int
    end: int


class AnnAssign(_Node, frozen=True, tag=3):
    """``target: annotation = value``; value None without one."""

    target: Expr
    annotation: Expr
    value: Expr | None
    start: int
    end: int


class AugAssign(_Node, frozen=True, tag=4):
    """``target op= value``; ``op`` without the equals sign."""

    target: Expr
    op: str
    value: Expr
    start: int
    end: int


class Return(_Node, frozen=True, tag=5):
    """``return value``."""

    value: Expr | None
    start: int
    end: int


class If(_Node, frozen=True, tag=6):
    """``elif`` is an ``If`` alone in ``orelse``."""

    test: Expr
    body: list[Stmt]
    orelse: list[Stmt]
    start: int
    end: int


class For(_Node, frozen=True, tag=7):
    """A ``for`` or ``async for`` loop."""

    target: Expr
    iter: Expr
    body: list[Stmt]
    orelse: list[Stmt]
    start: int
    end: int


class While(_Node, frozen=True, tag=8):
    """A ``while`` loop."""

    test: Expr
    body: list[Stmt]
    orelse: list[Stmt]
    start: int
    end: int


class Handler(_Node, frozen=True):
    """One ``except`` clause; ``type`` None when bare."""

    type: Expr | None
    name: str | None
    body: list[Stmt]


class Try(_Node, frozen=True, tag=9):
    """``try`` and ``try*``."""

    body: list[Stmt]
    handlers: list[Handler]
    orelse: list[Stmt]
    final: list[Stmt]
    start: int
    end: int


class WithItem(_Node, frozen=True):
    """One context manager of a ``with``."""

    context: Expr
    target: Expr | None


class With(_Node, frozen=True, tag=10):
    """A ``with`` or ``async with`` statement."""

    items: list[WithItem]
    body: list[Stmt]
    start: int
    end: int


class FunctionDef(_Node, frozen=True, tag=11):
    """``function`` is an index into ``FileFacts.functions``. The span is the header's, from ``def``."""

    function: int
    start: int
    end: int


class ClassDef(_Node, frozen=True, tag=12):
    """``cls`` is an index into ``FileFacts.classes``. The span is the header's, from ``class``."""

    cls: int
    start: int
    end: int


class Alias(_Node, frozen=True):
    """``name as asname``; asname None without one."""

    name: str
    asname: str | None


class Import(_Node, frozen=True, tag=13):
    """``import a.b as c, d``."""

    names: list[Alias]
    start: int
    end: int


class ImportFrom(_Node, frozen=True, tag=14):
    """``from ..module import names``; level is the number of dots; a star import has one Alias ``*``."""

    module: str
    level: int
    names: list[Alias]
    start: int
    end: int


class ScopeDecl(_Node, frozen=True, tag=15):
    """``global`` or ``nonlocal`` names."""

    kind: str
    names: list[str]
    start: int
    end: int


class Delete(_Node, frozen=True, tag=16):
    """``del targets``."""

    targets: list[Expr]
    start: int
    end: int


class Raise(_Node, frozen=True, tag=17):
    """``raise exc from cause``."""

    exc: Expr | None
    start: int
    end: int


class Assert(_Node, frozen=True, tag=18):
    """``assert test, message``."""

    test: Expr
    start: int
    end: int


class Case(_Node, frozen=True):
    """One ``case``: literal values the pattern names at its top level (``|`` alternatives), the names it
    binds, its guard and body; ``irrefutable`` for ``case _`` and a bare name without guard."""

    values: list[Expr]
    binds: list[str]
    irrefutable: bool
    guard: Expr | None
    body: list[Stmt]


class Match(_Node, frozen=True, tag=19):
    """A ``match`` statement."""

    subject: Expr
    cases: list[Case]
    start: int
    end: int


class Jump(_Node, frozen=True, tag=20):
    """``break`` or ``continue``. ``pass`` is dropped."""

    kind: str
    start: int
    end: int


Stmt = (
    ExprStmt
    | Assign
    | AnnAssign
    | AugAssign
    | Return
    | If
    | For
    | While
    | Try
    | With
    | FunctionDef
    | ClassDef
    | Import
    | ImportFrom
    | ScopeDecl
    | Delete
    | Raise
    | Assert
    | Match
    | Jump
)

# -------------------------------------------------------------------------------------- definitions


class Param(_Node, frozen=True):
    """A parameter; ``kind`` is ``p`` positional-only, ``a`` ordinary, ``v`` for ``*args``, ``k``
    keyword-only, ``w`` for ``**kwargs``."""

    name: str
    kind: str
    default: Expr | None
    annotation: Expr | None


class Function(_Node, frozen=True, gc=True, dict=True):
    """A function, a lambda (name ``<lambda>``) or, at index 0, the module body (name ``<module>``).

    ``qualname`` is ``Class.method`` or ``outer.inner`` (without ``<locals>``). ``parent`` is the index of
    the function around it (-1 for the module body) and ``cls`` the index of the class whose body holds
    it directly (-1 if none). The span is that of the name (of ``lambda`` for lambdas, empty for the
    module). ``end_of_body`` is the offset at which the body's last statement ends.

    The body is kept as bytes, which take a tenth of the memory, and decoded when it is asked for.
    ``statements`` counts all of its statements, and ``imports`` says whether any imports something.
    """

    name: str
    qualname: str
    params: list[Param]
    decorators: list[Expr]
    packed: msgspec.Raw
    start: int
    end: int
    end_of_body: int
    parent: int
    cls: int
    is_async: bool
    is_generator: bool
    statements: int
    imports: bool

    @cached_property
    def body(self) -> list[Stmt]:
        """The statements: the same objects until they are let go (see ``ir.bodies``)."""
        return _decoded(self)


class Class(_Node, frozen=True, gc=True, dict=True):
    """A class; ``parent`` is the index of the function around it, ``cls`` of the class around it or -1.

    The body is kept as that of a function is; ``statements`` counts all of its statements."""

    name: str
    qualname: str
    bases: list[Expr]
    keywords: list[Keyword]
    decorators: list[Expr]
    packed: msgspec.Raw
    start: int
    end: int
    parent: int
    cls: int
    statements: int

    @cached_property
    def body(self) -> list[Stmt]:
        """The statements: the same objects until they are let go (see ``ir.bodies``)."""
        return _decoded(self)


_BODY = msgspec.msgpack.Decoder(list[Stmt])
DECODED: list[Function | Class] = []
"""Functions and classes whose bodies have been decoded."""


def _decoded(one: Function | Class) -> list[Stmt]:
    body = _deeply(_BODY, one.packed)
    DECODED.append(one)
    return body


def _deeply(decoder: msgspec.msgpack.Decoder[T], packed: msgspec.Raw) -> T:
    """What bytes stand for, with room for all nesting where there is too little."""
    try:
        return decoder.decode(packed)
    except RecursionError:
        with frames(FRAMES):
            return decoder.decode(packed)


class Comment(_Node, frozen=True):
    """A comment that may be addressed to a linter (it says ``noqa`` or ``d9mlint``, in any case).

    ``own_line`` when nothing but white space stands before it. ``first`` and ``last`` are the rows
    (1-based) of the statement it belongs to: the innermost simple statement or compound header around
    it, or the one right below it for an own-line comment.
    """

    text: str
    start: int
    row: int
    own_line: bool
    first: int
    last: int


class Problem(_Node, frozen=True):
    """Why a file has no facts: ``code`` is DET001 (syntax) or DET002 (analysis failed)."""

    code: str
    message: str
    start: int
    end: int


class Unread(_Node, frozen=True):
    """A part of a text that was left out because it cannot be parsed, and why; see ``ir.unread``."""

    problem: Problem
    start: int
    end: int


class FileFacts(_Node, frozen=True, gc=True, dict=True):
    """All facts of one file. ``functions[0]`` is the module body.

    Functions and classes are kept as bytes, as their bodies are; ``count`` says how many functions there are.
    ``words`` are all identifiers the code uses (names, attributes, keyword arguments, import parts),
    sorted and without repetition: a cheap filter for what may matter to a rule. ``code`` is a digest of all that an
    analysis run can see of the file (made when facts are packed): the same after an edit that only
    touches comments behind the code, or text that is no code.
    """

    schema: int
    digest: str
    lines: int
    count: int
    packed: msgspec.Raw
    comments: list[Comment]
    words: list[str]
    problem: Problem | None
    code: str = ""
    unread: list[Unread] = []

    @cached_property
    def definitions(self) -> tuple[list[Function], list[Class]]:
        """The functions and the classes: the same objects until they are let go (see ``ir.bodies``)."""
        found = _deeply(_DEFINITIONS, self.packed)
        OPENED.append(self)
        return found

    @property
    def is_open(self) -> bool:
        """Whether the functions and classes are decoded."""
        return "definitions" in self.__dict__

    @property
    def functions(self) -> list[Function]:
        """The module's body, then all functions and lambdas of the file."""
        return self.definitions[0]

    @property
    def classes(self) -> list[Class]:
        """All classes of the file."""
        return self.definitions[1]

    @cached_property
    def indices(self) -> dict[int, int]:
        """The places of the functions by their ids."""
        return {id(fn): index for index, fn in enumerate(self.functions)}


_DEFINITIONS = msgspec.msgpack.Decoder(tuple[list[Function], list[Class]])
OPENED: list[FileFacts] = []
"""Facts whose functions and classes have been decoded."""
