"""Abstract values: what the analysis knows about the result of an expression.

A value is one of the classes below. They are compared by identity, but for ``Lit`` and ``Ext``, which
have no identity of their own. Anything not known is ``UNKNOWN``: three-valued answers are made from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, cast

from d9mlint.interp.heap import (
    ABSENT,
    FIELD,
    HEAP,
    MAX_CONTENTS,
    NAME,
    WHOLE,
    Access,
    Cells,
    Contents,
    Tracked,
    at,
)

if TYPE_CHECKING:
    from d9mlint.interp.orders import Order
    from d9mlint.interp.rng import Draw
    from d9mlint.interp.shapes import Form
    from d9mlint.ir.nodes import Call, Class, Function, ImportFrom
    from d9mlint.project.modules import ModuleFile

MAX_ALTERNATIVES = 6
MAX_CANDIDATES = 24
"""How many functions and classes of a table, of which a name chooses one, are kept apart."""
"""More alternatives than this are UNKNOWN."""


class Unknown:
    """Nothing is known. There is one instance, UNKNOWN."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN = Unknown()


class Lit:
    """A literal value. ``option`` names the command-line or configuration option whose default it is, or by whose default
    it is there; ``instead`` is what the program puts in its place if that is given, where that is an object; ``choices``
    are the values that the option takes, where they are known; ``never_none`` says that it has no way to be None; ``kind``
    is the class of Python of which the value is that the option is given, where its type says so."""

    __slots__ = ("choices", "instead", "kind", "never_none", "option", "value")

    def __init__(
        self,
        value: Any,
        option: str = "",
        instead: Value | None = None,
        choices: tuple[Any, ...] = (),
        never_none: bool = False,
        kind: str = "",
    ) -> None:
        self.value = value
        self.option = option
        self.instead = instead
        self.choices = choices
        self.never_none = never_none
        self.kind = kind

    def __repr__(self) -> str:
        return f"Lit({self.value!r}{', ' + self.option if self.option else ''})"


class Sentinel:
    """The value of a literal that stands for an object which says nothing but that no value was given: as what an option
    has by default, it is known by which option that is."""

    __slots__ = ("stands_for",)

    def __init__(self, stands_for: Value) -> None:
        self.stands_for = stands_for

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sentinel) and same(self.stands_for, other.stands_for)

    def __hash__(self) -> int:
        return hash(self.stands_for.name) if isinstance(self.stands_for, Ext) else id(self.stands_for)

    def __repr__(self) -> str:
        return f"Sentinel({self.stands_for!r})"


class Ext:
    """A name of a library or of builtins, by its dotted path as imported: ``torch.nn.Linear``."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"Ext({self.name})"


class Obj(Tracked):
    """What calling a library function or class gave. ``api`` is its canonical name, ``type`` the class of
    the result where it is known (``torch.Tensor``), ``args`` the call's arguments; ``node`` the call.

    ``data`` holds what a model keeps about the object (an option parser's options, a loader's dataset);
    ``owner`` is the value whose method gave it, unless that is a tensor;
    ``something`` is whether it is known not to be None; ``package`` that from which the program imports what gave it;
    ``form`` is what is known of a tensor, see ``tensors``, ``order`` that of its elements where it is arbitrary, see
    ``orders``.
    """

    __slots__ = (
        "_attrs",
        "_data",
        "_form",
        "api",
        "args",
        "file",
        "likely",
        "node",
        "order",
        "owner",
        "package",
        "something",
        "type",
    )

    def __init__(self, api: str, type: str = "", args: Args | None = None, node: Call | None = None) -> None:
        HEAP.clock += 1
        self.birth = self.version = HEAP.clock
        self.api = api
        self.type = type or api
        self.args = args or NO_ARGS
        self.node = node
        self._attrs: Cells | None = None
        self._data: Any = None
        self.file: ModuleFile | None = None
        self.likely = False
        self.order: Order | None = None
        self.owner: Value | None = None
        self.something = False
        self.package = ""
        self._form: Form | None = None

    @property
    def attrs(self) -> Cells:
        """Attributes that the program has set, or that a model knows."""
        found = self._attrs
        if found is None:
            found = self._attrs = Cells(self)
        return found

    @property
    def data(self) -> Any:
        """What a model keeps about the object."""
        if self.birth < HEAP.act.start:
            HEAP.read(self, FIELD, self, "_data", self._data)
        return self._data

    @data.setter
    def data(self, value: Any) -> None:
        if value is not self._data:
            HEAP.write(self, FIELD, self, "_data", value, self._data)
            self._data = value

    @property
    def form(self) -> Form | None:
        """What is known of a tensor."""
        if self.birth < HEAP.act.start:
            HEAP.read(self, FIELD, self, "_form", self._form)
        return self._form

    @form.setter
    def form(self, value: Form | None) -> None:
        if value is not self._form:
            HEAP.write(self, FIELD, self, "_form", value, self._form)
            self._form = value

    def start_with(self, form: Form) -> None:
        """What is known of a tensor that has just been made."""
        self._form = form

    def contents(self) -> Contents | None:
        """Its attributes, and the items that a model keeps."""
        attrs = self._attrs.contents() if self._attrs is not None else ((), ())
        data = self._data.contents() if isinstance(self._data, Cells) else (None, ())
        if attrs is None or data is None:
            return None
        return (attrs[0], data[0]), (*attrs[1], *data[1])

    def __repr__(self) -> str:
        return f"Obj({self.type})"


class Member:
    """An attribute of an object that no project code defines: ``loss.backward``."""

    __slots__ = ("name", "owner")

    def __init__(self, owner: Value, name: str) -> None:
        self.owner = owner
        self.name = name

    def __repr__(self) -> str:
        return f"Member({self.owner!r}.{self.name})"


class Env(Tracked):
    """The variables of a module, class or function call, with the scope around it.

    ``vars`` is a plain dict: only reads and writes from other activations are noted, by ``read`` and
    ``write``; a scope's own code need not be.
    """

    __slots__ = ("globals_", "outer_", "parent", "stars", "vars")

    def __init__(self, parent: Env | None) -> None:
        HEAP.clock += 1
        self.birth = self.version = HEAP.clock
        self.vars: dict[str, Value] = {}
        self.parent = parent
        self.globals_: frozenset[str] | None = None
        self.outer_: frozenset[str] | None = None
        self.stars: tuple[str, ...] = ()

    def read(self, name: str) -> Value | None:
        """A variable, None if there is none of this name."""
        found = self.vars.get(name)
        if self.birth < HEAP.act.start:
            if type(found) in FIXED:
                HEAP.act.names.add(name)
            else:
                HEAP.read(self, NAME, self, name, ABSENT if found is None else found)
        return found

    def all(self) -> dict[str, Value]:
        """All variables, to be read."""
        if self.birth < HEAP.act.start:
            HEAP.read_whole(self)
        return self.vars

    def write(self, name: str, value: Value, made: bool = True) -> None:
        """Set a variable from outside of the scope's own code. ``made`` is false for a class that is being made."""
        old = self.vars.get(name, ABSENT)
        if old is not value:
            if type(old) in FIXED and made:
                HEAP.patch(name)
            HEAP.write(self, NAME, self, name, value, old)
            self.vars[name] = value


class Mod:
    """A project module or package. ``file`` is None for a namespace package; ``path`` is its file's, or that of the
    directory with a slash behind it. ``typed`` has the names that it imports for a type checker alone, with the statement
    and the name there; ``late`` those of a module that had not come to its end, with that module and the name there."""

    __slots__ = ("env", "file", "late", "name", "path", "typed")

    def __init__(self, name: str, file: ModuleFile | None, directory: str = "") -> None:
        self.name = name
        self.file = file
        self.path = directory + "/" if file is None else file.path
        self.env = Env(None)
        self.typed: dict[str, tuple[ImportFrom, str]] = {}
        self.late: dict[str, tuple[Mod, str]] = {}

    def __repr__(self) -> str:
        return f"Mod({self.name})"


_NOTHING_DRAWN: dict[str, list[Draw]] = {}
_NO_DEFAULTS: dict[str, Value] = {}


class Func:
    """A project function, with the scope it closes over and, for a method, its receiver. ``key`` names it in
    reports: its file and its index among the file's functions. ``setter`` of a property is the function that an assignment
    calls."""

    __slots__ = (
        "cls",
        "decorated",
        "defaults",
        "drawn",
        "env",
        "file",
        "fn",
        "key",
        "mod",
        "receiver",
        "setter",
    )

    def __init__(
        self,
        mod: Mod,
        file: ModuleFile,
        fn: Function,
        env: Env,
        receiver: Value | None = None,
        key: tuple[str, int] | None = None,
    ) -> None:
        self.key = key or (file.path, file.index_of(fn))
        self.mod = mod
        self.file = file
        self.fn = fn
        self.env = env
        self.receiver = receiver
        self.cls: Cls | None = None
        self.decorated: tuple[Value, ...] = ()
        self.defaults = _NO_DEFAULTS
        # What the defaults of some parameters drew when the function was defined.
        self.drawn: dict[str, list[Draw]] = _NOTHING_DRAWN
        self.setter: Func | None = None

    def bind(self, receiver: Value | None) -> Func:
        """The same function as a method of ``receiver``, if there is one."""
        bound = Func(self.mod, self.file, self.fn, self.env, receiver, self.key)
        bound.cls = self.cls
        bound.decorated = self.decorated
        bound.defaults = self.defaults
        bound.drawn = self.drawn
        bound.setter = self.setter
        return bound

    def __repr__(self) -> str:
        return f"Func({self.fn.qualname})"


class Cls:
    """A project class. ``bases`` are values: other ``Cls``, ``Ext`` or unknown. ``made`` when its statement has ended."""

    __slots__ = (
        "_external",
        "_mro",
        "bases",
        "cls",
        "decorated",
        "env",
        "fields",
        "file",
        "made",
        "metaclass",
        "mod",
    )

    def __init__(self, mod: Mod, file: ModuleFile, cls: Class, bases: tuple[Value, ...], env: Env) -> None:
        self.mod = mod
        self.file = file
        self.cls = cls
        self.bases = bases
        self.env = env
        self.fields: list[str] = []
        self.decorated: tuple[Value, ...] = ()
        self.made = False
        self.metaclass: Cls | None = None
        self._mro: tuple[Cls, ...] = ()
        self._external: list[str] | None = None

    def mro(self) -> tuple[Cls, ...]:
        """The project classes this one inherits from, itself first, in the order in which Python looks into them."""
        if not self._mro:
            self._mro = _linearized(self)
        return self._mro

    def external_bases(self) -> list[str]:
        """Dotted names of the library classes it inherits from, nearest first, without the one that all classes inherit
        from. The list is not to be changed."""
        if self._external is None:
            self._external = [
                b.name for cls in self.mro() for b in cls.bases if isinstance(b, Ext) and b.name != OBJECT
            ]
        return self._external

    def find(self, name: str) -> Value | None:
        """A class attribute or method by name along the project part of the MRO."""
        HEAP.act.names.add(name)
        for cls in self.mro():
            found = cls.env.vars.get(name)
            if found is not None:
                return found
        return None

    def set(self, name: str, value: Value) -> None:
        """Set a class attribute from outside of the class's body. Reads of class attributes are not noted."""
        if self.made:
            HEAP.patch(f"{self.cls.qualname}.{name}")
        else:
            # Its own decorators and `__init_subclass__`: no run has the class without the attribute.
            HEAP.rebind(name)
        self.env.write(name, value, self.made)

    def __repr__(self) -> str:
        return f"Cls({self.cls.qualname})"


def _linearized(cls: Cls) -> tuple[Cls, ...]:
    """The project classes that a class inherits from: a base that several of them have follows all of these."""
    chain: dict[Cls, None] = {}
    while True:
        chain[cls] = None
        bases = [base for base in cls.bases if isinstance(base, Cls)]
        if len(bases) != 1 or bases[0] in chain:
            break
        cls = bases[0]
        if cls._mro:
            return (*chain, *cls._mro)
    if len(bases) > 1:
        # Should it be a base of one of its bases.
        cls._mro = (cls,)
        cls._mro = (cls, *_merged([*(list(base.mro()) for base in bases), bases]))
        return (*chain, *cls._mro[1:])
    return tuple(chain)


def _merged(orders: list[list[Cls]]) -> list[Cls]:
    """Classes in an order that agrees with all of several orders, as far as there is one."""
    merged: list[Cls] = []
    while orders := [order for order in orders if order]:
        heads = [order[0] for order in orders]
        later = {cls for order in orders for cls in order[1:]}
        chosen = next((head for head in heads if head not in later), heads[0])
        merged.append(chosen)
        orders = [[cls for cls in order if cls is not chosen] for order in orders]
    return merged


class Inst(Tracked):
    """An instance of a project class."""

    __slots__ = ("args", "attrs", "cls", "node")

    def __init__(self, cls: Cls, args: Args | None = None, node: Call | None = None) -> None:
        HEAP.clock += 1
        self.birth = self.version = HEAP.clock
        self.cls = cls
        self.attrs = Cells(self)
        self.args = args or NO_ARGS
        self.node = node

    def contents(self) -> Contents | None:
        """Its attributes."""
        return self.attrs.contents()

    def __repr__(self) -> str:
        return f"Inst({self.cls.cls.qualname})"


class Super:
    """``super()`` inside a method of ``cls`` with receiver ``receiver``."""

    __slots__ = ("cls", "receiver")

    def __init__(self, cls: Cls, receiver: Value) -> None:
        self.cls = cls
        self.receiver = receiver


FEWER = cast("bool", 2)
"""Another value of ``open`` that counts as true: there may also be fewer elements than are known, since some are taken out
in a loop or on one of several paths."""
PERHAPS_MORE = cast("bool", 3)
"""``Mapping.open`` of the attributes of an object, of which those are known that have been set, where code that is not
followed may set others."""
MORE = "@more"
"""The attribute of an object that says that others have been set under names that are not known."""
OF_DATA = cast("bool", 4)
"""``Args.star`` and ``Args.dstar`` of further arguments that are loaded data, which need no gradients: ``model(*batch)``,
``model(**batch)``."""


class Items(Tracked):
    """A tuple, list or set whose elements are known (``elts``); ``open`` when more may have been added, or, as ``FEWER``
    says, taken out.

    ``elts`` is replaced, never changed in place. ``maker`` is the generator function that yields them, by file and place.
    """

    __slots__ = ("_elts", "_open", "kind", "maker", "order")

    def __init__(self, kind: str, elts: list[Value], open: bool = False) -> None:
        HEAP.clock += 1
        self.birth = self.version = HEAP.clock
        self.kind = kind
        self._elts = elts
        self._open = open
        self.order: Order | None = None
        self.maker: tuple[str, int] | None = None

    @property
    def elts(self) -> list[Value]:
        """The known elements."""
        if self.birth < HEAP.act.start:
            HEAP.read_whole(self)
        return self._elts

    @elts.setter
    def elts(self, value: list[Value]) -> None:
        HEAP.write(self, FIELD, self, "_elts", value, self._elts)
        self._elts = value

    @property
    def open(self) -> bool:
        """Whether there may be more elements."""
        if self.birth < HEAP.act.start:
            HEAP.read_whole(self)
        return self._open

    @open.setter
    def open(self, value: bool) -> None:
        if value is not self._open and not (value is True and self._open):
            HEAP.write(self, FIELD, self, "_open", value, self._open)
            self._open = value

    def contents(self) -> Contents | None:
        """Its elements."""
        return (self._open, self._elts) if len(self._elts) <= MAX_CONTENTS else None

    def __repr__(self) -> str:
        return f"Items({self.kind}, {self.elts!r})"


class Mapping(Tracked):
    """A dict or configuration with known keys; ``open`` when it may have more. Attribute access works as
    item access when ``attributes`` (namespaces, OmegaConf, EasyDict)."""

    __slots__ = ("_open", "attributes", "cls", "factory", "files", "items", "option", "order")

    has_attributes = False

    def __init__(self, items: dict[Any, Value], open: bool = False, attributes: bool = False) -> None:
        HEAP.clock += 1
        self.birth = self.version = HEAP.clock
        # The attributes or items of another object stay those of that object: `vars(x)` is a live view.
        self.items = items if isinstance(items, Cells) else Cells(self, items)
        self._open = open
        self.attributes = attributes
        self.option = ""
        self.order: Order | None = None
        # The class of the project that it is of, whose methods it has; set when it is made, as ``option`` is.
        self.cls: Cls | None = None
        # What makes the value of a key that is missing; set when the mapping is made, as ``option`` is.
        self.factory: Value | None = None
        # The files of which one may hold it, by what they hold, and its key in these; set when it is made, too.
        self.files: tuple[tuple[dict[Any, Any], ...], str] = (), ""

    @property
    def open(self) -> bool:
        """Whether there may be more keys."""
        if self.birth < HEAP.act.start:
            HEAP.read(self, FIELD, self, "_open", self._open)
        return self._open

    @open.setter
    def open(self, value: bool) -> None:
        if value is not self._open and not (value is True and self._open):
            HEAP.write(self, FIELD, self, "_open", value, self._open)
            self._open = value

    def goes_on(self) -> bool:
        """Whether what goes through it is known to find more keys, or may do so."""
        return self.open and (self.open is not PERHAPS_MORE or MORE in self.items)

    def contents(self) -> Contents | None:
        """Its items, where they are its own."""
        return self.items.contents() if self.items.owner is self else None

    def __repr__(self) -> str:
        return f"Mapping({self.items!r})"


class Partial:
    """``functools.partial`` and what behaves like it."""

    __slots__ = ("args", "func")

    def __init__(self, func: Value, args: Args) -> None:
        self.func = func
        self.args = args


class AnyOf:
    """One of several values. With ``option``, the first is what the default of that option chooses."""

    __slots__ = ("option", "values")

    def __init__(self, values: tuple[Value, ...], option: str = "") -> None:
        self.values = values
        self.option = option

    def __repr__(self) -> str:
        return f"AnyOf{self.values!r}"


Value = (
    Unknown | Lit | Ext | Obj | Member | Mod | Func | Cls | Inst | Super | Items | Mapping | Partial | AnyOf
)


FIXED = frozenset({Ext, Func, Cls, Mod})
"""Values of names that are hardly ever replaced."""


_NO_POSITIONAL: list[Value] = []
_NO_KEYWORDS: dict[str, Value] = {}
"""Arguments do not change: those of all calls that have none are the same objects."""


def more_of(first: bool, second: bool) -> bool:
    """What the further arguments of two calls are together: loaded data where none of them is anything else."""
    return True if first is True or second is True else first or second


class Args:
    """Arguments of a call: positional, keyword, and whether unknown ``*`` or ``**`` ones follow."""

    __slots__ = ("dstar", "kw", "pos", "star")

    def __init__(
        self,
        pos: list[Value] | None = None,
        kw: dict[str, Value] | None = None,
        star: bool = False,
        dstar: bool = False,
    ) -> None:
        self.pos = pos or _NO_POSITIONAL
        self.kw = kw or _NO_KEYWORDS
        self.star = star
        self.dstar = dstar

    def replaced(self, later: Args) -> Args:
        """These arguments, with the keywords of a later call in place of those of the same names."""
        if not later.kw and not later.dstar:
            return self
        return Args(self.pos, {**self.kw, **later.kw}, self.star, more_of(self.dstar, later.dstar))

    def get(self, name: str, pos: int | None = None) -> Value | None:
        """The argument by keyword or position; None when surely absent, UNKNOWN when a star may carry it."""
        found = self.kw.get(name)
        if found is not None:
            return found
        if pos is not None:
            if pos < len(self.pos):
                return self.pos[pos]
            if self.star:
                return UNKNOWN
        return UNKNOWN if self.dstar else None

    def rest(self) -> Args:
        """All arguments but the first positional one."""
        return Args(self.pos[1:], self.kw, self.star, self.dstar)

    def values(self) -> list[Value]:
        """All argument values, positional first."""
        return [*self.pos, *self.kw.values()]

    def are_literals(self) -> bool:
        """Whether all that is given are numbers, texts and the like, whichever of several values each has."""
        return all(isinstance(one, Lit) for value in self.values() for one in alternatives(value))


NO_ARGS = Args()
LIBRARY_DEFAULTS = "configuration of a library"
"""``option`` of a mapping whose keys have the library's defaults until the program sets them."""
TEXT = "builtins.str"
"""``api`` of a text of which only the beginning, its first argument, and the end are known, or one of them."""
SLICE = "builtins.slice"
BATCH = "a batch"
"""``api`` of what a loader gives: a tensor, or a container of tensors, of data."""
BATCH_PARTS = "@batch parts"
"""Attribute of a batch of which some parts are known: all of them, in their order."""
GIVEN = "an option that was given"
"""``api`` of the value that an option has where a test shows that it was given."""
KERNEL = "a kernel"
"""``api`` of a function of the project that Triton or Numba compile, with the grid on which it is started."""
OBJECT = "builtins.object"
ANY_SLICE = Obj(SLICE)
SLICE_OF_ONE = Obj(SLICE)
"""A slice that is known to take one element: ``:1``, ``k:k + 1``."""
ELLIPSIS = Obj("builtins.Ellipsis")
"""``...`` as an index."""
NONE = Lit(None)
TRUE = Lit(True)
FALSE = Lit(False)


def same_access(access: Access) -> bool:
    """Whether what a remembered activation has read is there again."""
    now, then = at(*access[:4]), access[4]
    if access[1] is WHOLE:
        return bool(now == then.version) or _same_contents(access[0].contents(), then.contents)
    return now is then or same_content(now, then)


def same_shape(now: Contents | None, then: Contents | None) -> bool:
    """Whether what two objects hold is known, and may be the same."""
    return now is not None and then is not None and now[0] == then[0] and len(now[1]) == len(then[1])


def _same_contents(now: Contents | None, then: Contents | None) -> bool:
    return (
        now is not None
        and then is not None
        and same_shape(now, then)
        and all(a is b or same_content(a, b) for a, b in zip(now[1], then[1], strict=True))
    )


def same_content(now: Any, then: Any) -> bool:
    """Whether two things that were read, and are not the same object, are equal."""
    if isinstance(then, Lit):
        return (
            isinstance(now, Lit)
            and type(now.value) is type(then.value)
            and now.value == then.value
            and now.option == then.option
        )
    if isinstance(then, tuple):
        return bool(now == then)
    return isinstance(then, (int, str, Ext)) and (
        now == then if not isinstance(then, Ext) else isinstance(now, Ext) and now.name == then.name
    )


def same(a: Value, b: Value) -> bool:
    """Whether two values are known to be the same."""
    if a is b:
        return True
    if isinstance(a, Lit) and isinstance(b, Lit):
        return type(a.value) is type(b.value) and a.value == b.value and a.option == b.option
    if isinstance(a, Obj) and isinstance(b, Obj) and a.api == BATCH:
        return b.api == BATCH and a.form == b.form and a.attrs.get(BATCH_PARTS) is b.attrs.get(BATCH_PARTS)
    return isinstance(a, Ext) and isinstance(b, Ext) and a.name == b.name


def text(beginning: Value, end: Value) -> Obj:
    """A text that begins and ends with these values, as far as they are known."""
    known = [isinstance(one, Lit) and isinstance(one.value, str) for one in (beginning, end)]
    return Obj(TEXT, TEXT, Args([beginning] if known[0] else [], {"end": end} if known[1] else {}))


def of_library(name: str) -> Ext | Obj:
    """What a name of a library stands for: the release of a package is a text of which nothing else is known."""
    return text(UNKNOWN, UNKNOWN) if name.endswith(".__version__") else Ext(name)


PARTS = "@parts"
"""The parts of which a text was put together."""


WRITTEN = "@written"
"""The parts of a formatted string, or of one that is added up, of which some may not be known."""


TEMPLATE = "@template"
"""The text into which values are put with ``%``."""


def template_of(text: Obj) -> str:
    """What is known of a text that is put together, without the values that are put into it."""
    if text.owner is not None:
        # `"/gpu:{}".format(number)`
        return _as_text(text.owner) if text.api.endswith(".format") else ""
    if text.api != TEXT:
        return ""
    parts, template = text.attrs.get(PARTS), text.attrs.get(TEMPLATE)
    known = (
        parts.elts if isinstance(parts, Items) else [template] if template is not None else text.args.values()
    )
    return "".join(_as_text(one) for one in known)


def may_be(key: Value, name: Any) -> bool:
    """Whether an unknown key may be this name, as far as its beginning and its end tell. What an option has for a default
    tells nothing."""
    if not isinstance(key, Obj) or key.api != TEXT:
        return True
    end = _as_text(key.args.kw.get("end"))
    return isinstance(name, str) and name.startswith(beginning_of(key)) and name.endswith(end)


def beginning_of(text: Value) -> str:
    """How an unknown text begins, as far as that is known."""
    return _as_text(text.args.pos[0]) if isinstance(text, Obj) and text.api == TEXT and text.args.pos else ""


def _as_text(value: Value | None) -> str:
    return str(value.value) if isinstance(value, Lit) and not value.option else ""


def candidates(values: Iterable[Value]) -> Value:
    """One of the values of a table or list: of functions, classes and objects that may be called, which can all be tried,
    more are kept apart."""
    values = tuple(values)
    if not all(one is UNKNOWN or is_none(one) or may_be_called(one) for one in values):
        return (_tuple_of_any(values) if len(values) > MAX_ALTERNATIVES else None) or join(values)
    if len(values) > MAX_CANDIDATES:
        values = (*two_of_each(values), UNKNOWN)
    return join(values, MAX_CANDIDATES)


def two_of_each(values: Iterable[Value]) -> list[Value]:
    """Values without all but two instances of each class of the project: these stand for the others, as it is not known
    which one is meant."""
    kept: dict[Any, list[Value]] = {}
    for one in values:
        same = kept.setdefault(one.cls if isinstance(one, Inst) else one, [])
        if len(same) < _STANDING_FOR_ALL:
            same.append(one)
    return [one for same in kept.values() for one in same]


_STANDING_FOR_ALL = 2


def _tuple_of_any(values: tuple[Value, ...]) -> Items | None:
    """One of many tuples of the same length that pair what may be called with something: of what may be at each place."""
    tuples = [one for one in values if isinstance(one, Items) and one.kind == "t" and not one.open]
    if len(tuples) < len(values) or any(one.order is not None for one in tuples):
        return None
    if len({len(one.elts) for one in tuples}) != 1 or not all(
        any(map(may_be_called, one.elts)) for one in tuples
    ):
        return None
    return Items("t", [candidates(places) for places in zip(*(one.elts for one in tuples), strict=True)])


def names_class(name: str) -> bool:
    """Whether a dotted name is written as those of classes are."""
    return name.rpartition(".")[2][:1].isupper()


def may_be_called(value: Value) -> bool:
    """Whether a value is a function, a class, or an object of a class that may have a method for calls, or may be."""
    if isinstance(value, Obj):
        return value.type == value.api and value._form is None and names_class(value.api)
    if isinstance(value, AnyOf):
        return any(map(may_be_called, value.values))
    return isinstance(value, (Func, Cls, Ext, Partial, Inst))


def is_slice(index: Value) -> bool:
    """Whether an index is a slice of any length, or an ellipsis, which stands for slices of dimensions as they are."""
    return index is ELLIPSIS or (isinstance(index, Obj) and index.api == SLICE)


def join(values: Iterable[Value], most: int = MAX_ALTERNATIVES) -> Value:
    """One value that stands for all of them, unknown where there are more than ``most``."""
    values = tuple(values)
    if len(values) == 1:
        return values[0]
    flat: list[Value] = []
    unknown = False
    for value in values:
        for one in value.values if isinstance(value, AnyOf) else (value,):
            if one is UNKNOWN:
                unknown = True
                continue
            kind = type(one)
            for other in flat:
                if other is one or (type(other) is kind and interchangeable(one, other)):
                    break
            else:
                if len(flat) == most:
                    return _too_many(values, most)
                flat.append(one)
    if not flat:
        return UNKNOWN
    if len(flat) == 1 and not unknown:
        return flat[0]
    literals = sum(isinstance(v, Lit) for v in flat)
    if unknown:
        if literals == len(flat):
            return UNKNOWN
        flat.append(UNKNOWN)
    return AnyOf(tuple(flat)) if len(flat) <= most else _too_many(values, most)


def _too_many(values: tuple[Value, ...], most: int) -> Value:
    """What is left of many alternatives: all of them where some were kept apart before, as what a name chooses is; those
    that are no literals, if they are few; else the order that some have."""
    if most < MAX_CANDIDATES and any(isinstance(one, AnyOf) and len(one.values) > most for one in values):
        return join(values, MAX_CANDIDATES)
    others: list[Value] = []
    for value in values:
        for one in alternatives(value):
            if one is UNKNOWN or isinstance(one, Lit):
                continue
            if len(others) < most and not any(
                type(other) is type(one) and interchangeable(one, other) for other in others
            ):
                others.append(one)
    if 0 < len(others) < most:
        return AnyOf((*others, UNKNOWN))
    orders = []
    for value in _with_order(values):
        if value.birth < HEAP.act.start:
            HEAP.read(value, FIELD, value, "order", value.order)
        if value.order is not None:
            orders.append(value.order)
    if not orders:
        return _row_of_numbers(values) or _of_project(values, most)
    result = Obj("?", "?")
    result.order = orders[0].together(orders[1:])
    return result


def _of_project(values: tuple[Value, ...], most: int) -> Value:
    """What is left of many alternatives among which are objects, functions and classes of the project: these, if they are
    few, as one of them may be called."""
    own: list[Value] = []
    for value in values:
        for one in alternatives(value):
            if isinstance(one, (Inst, Func, Cls, Partial)) and all(one is not other for other in own):
                own.append(one)
    return AnyOf((*own, UNKNOWN)) if 0 < len(own) < most else UNKNOWN


def _row_of_numbers(values: tuple[Value, ...]) -> Value | None:
    """What is left of many lists of whole numbers, as of the rows of a table: one of them; None for anything else."""
    kind = ""
    for value in values:
        for one in alternatives(value):
            if not isinstance(one, Items) or one.kind == "s" or one.open or kind not in ("", one.kind):
                return None
            if not all(isinstance(part, Lit) and type(part.value) is int for part in one.elts):
                return None
            kind = one.kind
    return Items(kind, [Obj("builtins.int")], True) if kind else None


def _with_order(values: Iterable[Value]) -> Iterator[Obj | Items | Mapping]:
    for value in values:
        for one in alternatives(value):
            if isinstance(one, (Obj, Items, Mapping)):
                yield one


def interchangeable(a: Value, b: Value) -> bool:
    """Whether one of two alternatives says all that both say: the same value, or what the same call in the code gave
    for the same arguments, as long as nothing is known of either but that."""
    if a is b or same(a, b):
        return True
    if isinstance(a, Obj) and isinstance(b, Obj):
        return (
            a.api == b.api
            and a.node is b.node
            and (a.node is not None or a.api == TEXT)
            and a.type == b.type
            and a.file is b.file
            and a.likely == b.likely
            and _is_plain(a)
            and _is_plain(b)
            and _same_args(a.args, b.args)
        )
    if isinstance(a, Partial) and isinstance(b, Partial):
        return same(a.func, b.func) and _same_args(a.args, b.args)
    return isinstance(a, Member) and isinstance(b, Member) and a.name == b.name and a.owner is b.owner


def alike(a: Any, b: Any) -> bool:
    """Whether two objects are what the same call in the code gave for the same arguments, and the same is known of them."""
    return (
        isinstance(a, Obj)
        and isinstance(b, Obj)
        and a.node is b.node is not None
        and (a.api, a.type, a.likely, a.something, a.package)
        == (b.api, b.type, b.likely, b.something, b.package)
        and a.file is b.file
        and a.owner is b.owner
        and a._data is b._data
        and a._form is b._form
        and a.order is b.order
        and _same_args(a.args, b.args)
        and _same_cells(a._attrs or {}, b._attrs or {})
    )


def _same_cells(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return list(dict.keys(a)) == list(dict.keys(b)) and all(map(same, dict.values(a), dict.values(b)))


def _is_plain(value: Obj) -> bool:
    """Whether nothing is known of an object but the call that gave it."""
    return value._attrs is None and value._data is None and value._form is None and value.order is None


def _same_args(a: Args, b: Args) -> bool:
    return (
        len(a.pos) == len(b.pos)
        and (a.star, a.dstar) == (b.star, b.dstar)
        and a.kw.keys() == b.kw.keys()
        and all(same(x, y) for x, y in zip(a.pos, b.pos, strict=True))
        and all(same(value, b.kw[name]) for name, value in a.kw.items())
    )


def alternatives(value: Value) -> tuple[Value, ...]:
    """The values a value may be."""
    return value.values if isinstance(value, AnyOf) else (value,)


def truth(value: Value) -> bool | None:
    """True, False, or None for unknown."""
    if isinstance(value, Lit):
        return bool(value.value)
    if isinstance(value, Items):
        if value.elts:
            return None if value.open is FEWER else True
        return None if value.open else False
    if isinstance(value, Mapping):
        if value.items:
            return None if value.open is FEWER else True
        return None if value.open else False
    if isinstance(value, (Func, Cls, Mod, Inst, Ext, Partial)):
        return None if isinstance(value, (Inst, Ext)) else True
    if isinstance(value, AnyOf):
        answers = {truth(v) for v in value.values}
        return answers.pop() if len(answers) == 1 else None
    return None


_NEVER_NONE = frozenset(
    {GIVEN, TEXT, "datetime.timedelta", "datetime.datetime", "datetime.date"}
    | {
        f"builtins.{name}"
        for name in ("dict", "enumerate", "filter", "frozenset", "int", "list", "map", "range", "set", "zip")
    }
)
"""Objects of classes whose names are written small."""


def is_zero(value: Value) -> bool:
    """Whether a value is the number zero, or a tensor of nothing else, whatever options are given."""
    if isinstance(value, Obj):
        return value.form is not None and value.form.zero
    return (
        isinstance(value, Lit) and not value.option and type(value.value) in (int, float) and value.value == 0
    )


def is_none(value: Value) -> bool | None:
    """Whether a value is None: True, False or None for unknown."""
    if isinstance(value, Lit):
        return value.value is None
    if value is UNKNOWN or isinstance(value, Member):
        return None
    if isinstance(value, AnyOf):
        answers = {is_none(v) for v in value.values}
        return answers.pop() if len(answers) == 1 else None
    if isinstance(value, Obj):
        known = (
            value.something or value.type != value.api or value.api in _NEVER_NONE or names_class(value.api)
        )
        return False if known else None
    return False


def option_of(value: Value) -> str:
    """Name of the option whose default decided this value, or an empty string."""
    if isinstance(value, Lit):
        return value.option
    if isinstance(value, AnyOf):
        for one in value.values:
            if isinstance(one, Lit) and one.option:
                return one.option
    return ""
