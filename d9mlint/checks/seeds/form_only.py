"""Whether a script asks what it draws for nothing but its form: by syntax alone, in the script's own file."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from d9mlint.ir import nodes as m
from d9mlint.ir.derived import Looks, derived_names, elements, holds
from d9mlint.ir.endings import leaves, never_run
from d9mlint.ir.forms import only_form
from d9mlint.ir.scopes import heads, own_names
from d9mlint.ir.traversal import called_name, nodes, statements, variables

_HANDING_ON = frozenset({"list", "tuple", "iter", "next", "enumerate", "zip", "reversed"})
"""Functions of Python that give the elements of what they are given."""
_MOST_ROUNDS = 4
"""So often parameters are looked for that are given what is drawn."""


class Known(NamedTuple):
    """What is known of calls: whether one of a name looks at no element; where those start that show the parts and sizes of
    models; where those start that read the clock; which names stand for functions in other files of the project, none of
    which prints or keeps anything that may vary; by which names the program calls what draws; the names of methods that
    ask their object for nothing but its form; and those of the places in `counting` where it is a model that is shown."""

    looks: Looks
    counting: Collection[int] = ()
    timing: Collection[int] = ()
    handled: Collection[str] = ()
    drawing: Collection[str] = ()
    sizing: Collection[str] = ()
    showing: Collection[int] = ()


def asks_form_only(
    facts: m.FileFacts, places: Sequence[int], libraries: frozenset[str], calls: Known, or_nothing: bool
) -> bool:
    """Whether functions of a file ask what is computed at some places for its form, or how long that takes, or, with
    ``or_nothing``, ask it for nothing at all, and do nothing else with it. Functions of these libraries may compute more
    from it."""
    running = _defined(facts)
    functions = {one.name: one for one in running if one.parent == 0 and one.cls < 0}
    modules = _modules(facts)
    libraries |= {modules[name] for name in calls.drawing if name in modules}
    computing = {name for name, module in modules.items() if module in libraries}
    methods = {one.name for one in facts.functions if one.cls >= 0}
    sizing = _sizing(facts, functions, computing, calls, methods)
    sizing += [
        node.start
        for function in facts.functions
        for node in nodes(function.body)
        if isinstance(node, m.Call)
        and isinstance(node.func, m.Name)
        and "." in node.func.id
        and node.func.id.rpartition(".")[2] in calls.sizing
        and not node.args
    ]
    calls = calls._replace(counting={*calls.counting, *sizing})
    timed = _timed(facts, calls)
    given: dict[str, set[str]] = {}
    starts, giving = set(places), set[str]()
    for _ in range(_MOST_ROUNDS):
        before = {name: set(params) for name, params in given.items()}, len(starts)
        asked = False
        for function in running:
            params = given.get(function.name, set())
            look = _Look(
                function, sorted(starts), params, functions, computing, calls, methods, frozenset(modules)
            )
            if not look.known and not look.is_concerned():
                continue
            if not look.is_allowed(given) or _is_shared(facts, running, function, look.known, timed):
                return False
            if not all(
                look.is_computed(one, given) for one in timed if facts.functions[one.parent] is function
            ):
                return False
            asked |= look.asks()
            if look.gives:
                giving.add(function.name)
        starts |= {
            call.start
            for function in facts.functions
            for call in nodes(function.body)
            if giving
            and isinstance(call, m.Call)
            and isinstance(call.func, m.Name)
            and call.func.id in giving
        }
        if (given, len(starts)) == before:
            return asked or or_nothing
    return False


def _timed(facts: m.FileFacts, calls: Known) -> list[m.Function]:
    """The lambdas of which it is timed how long they take: ``timeit.timeit(lambda: f(x))``."""
    timing = [
        node
        for function in facts.functions
        for node in nodes(function.body)
        if isinstance(node, m.Call) and node.start in calls.timing and node.args
    ]
    return [
        one
        for one in facts.functions
        if one.name == "<lambda>" and any(node.start < one.start < node.end for node in timing)
    ]


def _sizing(
    facts: m.FileFacts,
    functions: dict[str, m.Function],
    computing: set[str],
    calls: Known,
    methods: set[str],
) -> list[int]:
    """Where functions of the file are called that ask all that they are given for nothing but its form."""
    sizing = {
        name
        for name, function in functions.items()
        if function.params
        and _Look(function, (), _named(function), {}, computing, calls, methods).is_allowed({})
    }
    if not sizing:
        return []
    return [
        node.start
        for function in facts.functions
        for node in nodes(function.body)
        if isinstance(node, m.Call) and isinstance(node.func, m.Name) and node.func.id in sizing
    ]


def sizing_methods(files: Iterable[m.FileFacts], looks: Looks) -> set[str]:
    """The methods that the classes of these files have which ask their object for nothing but its form, as in
    ``return sum(p.numel() for p in self.parameters())``."""
    methods = [one for facts in files for one in facts.functions if one.cls >= 0]
    others = {one.name for one in methods if not _sizes_self(one, looks)}
    return {one.name for one in methods} - others


def _sizes_self(method: m.Function, looks: Looks) -> bool:
    if [one.kind for one in method.params] not in (["a"], ["p"]):
        return False
    own = method.params[0].name
    for stmt in method.body:
        if isinstance(stmt, m.Assign) and not all(map(_is_plain, stmt.targets)):
            return False
        if isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Const):
            continue
        if not isinstance(stmt, (m.Assign, m.Return)):
            return False
        if stmt.value is not None and own in elements(stmt.value, looks):
            return False
    return bool(method.body) and isinstance(method.body[-1], m.Return)


def _named(function: m.Function) -> set[str]:
    return {one.name for one in function.params}


def first_kept(facts: m.FileFacts, places: Sequence[int]) -> Sequence[int]:
    """Of the places of nested calls, the outermost one first, that at which what they give is first stored in variables."""
    kept = [
        one
        for function in facts.functions
        for one in statements(function.body)
        if isinstance(one, m.Assign) and all(isinstance(x, m.Name) and "." not in x.id for x in one.targets)
    ]
    for place in places:
        if any(one.start <= place < one.end for one in kept):
            return [place]
    return places


def outside_of_methods(facts: m.FileFacts, places: Sequence[int]) -> list[int]:
    """Of the places of nested calls, the outermost one first, those outside of methods that are called there and give what
    they draw, or fill the object that is made there."""
    methods = [one for one in facts.functions if one.cls >= 0]
    inside = {
        place: next((one for one in methods if one.start <= place < one.end_of_body), None)
        for place in places
    }
    outside = [place for place in places if inside[place] is None]
    if not outside or len(outside) == len(places) or places[0] != outside[0]:
        return [*places]
    if not _own_calls(facts).issuperset(outside):
        return [*places]
    for one in filter(None, inside.values()):
        if one.name != "__init__" and any(map(_sets_attribute, statements(one.body))):
            return [*places]
    return outside


def _own_calls(facts: m.FileFacts) -> set[int]:
    """Where calls start that make or call objects of classes of the file: what libraries run gives nobody what it draws."""
    own = {one.name for one in facts.classes}
    assigned = [
        stmt
        for function in facts.functions
        for stmt in statements(function.body)
        if isinstance(stmt, m.Assign) and all(isinstance(one, m.Name) for one in stmt.targets)
    ]
    for stmt in assigned:
        if not own.isdisjoint(heads([stmt.value])):
            own |= heads(stmt.targets)
    return {
        one.start
        for function in facts.functions
        for one in nodes(function.body)
        if isinstance(one, m.Call) and not own.isdisjoint(heads([one.func]))
    }


def _sets_attribute(stmt: m.Stmt) -> bool:
    """Whether a statement stores something in an object."""
    targets = stmt.targets if isinstance(stmt, m.Assign) else ()
    return isinstance(stmt, m.AugAssign) or any(
        not isinstance(one, m.Name) or "." in one.id for target in targets for one in _parts_of(target)
    )


def _parts_of(target: m.Expr) -> list[m.Expr]:
    return [*target.elts] if isinstance(target, m.Seq) else [target]


class _Look:
    """What a function does with what is drawn in it, or given to these parameters of it."""

    def __init__(
        self,
        function: m.Function,
        places: Sequence[int],
        params: set[str],
        functions: dict[str, m.Function],
        computing: set[str],
        calls: Known,
        methods: set[str],
        modules: frozenset[str] = frozenset(),
    ) -> None:
        self._function, self._places, self._functions, self._calls = function, places, functions, calls
        self._computing = computing | own_names(function) | set(calls.handled)
        self._methods = methods
        # A function of a module fills no module.
        self._dead = {
            id(one) for stmt in never_run(function.body, own=functions) for one in statements([stmt])
        }
        # What a function of the file is given is looked at there, and what it gives of that is at one of the places. What
        # reads the clock gives a time.
        own = {one.start for one in self._calls_of_file(function.body)}
        self._opaque = {*calls.counting, *calls.timing, *own.difference(places)}
        shown = {
            getattr(part, "start", -1)
            for node in nodes(function.body if calls.showing else [])
            if self._shows(node)
            for part in nodes([node])
        }
        drawn = [place for place in places if place not in shown]
        found = derived_names(function, drawn, calls.looks, params, self._opaque, without=self._dead)
        self.known = found - modules
        self.gives = False
        """Whether it returns some of that."""

    def is_concerned(self) -> bool:
        """Whether something is drawn here."""
        return any(self._is_drawn(stmt) for stmt in self._function.body)

    def asks(self) -> bool:
        """Whether something drawn is asked for its form here, or work with it is timed."""
        for node in nodes(self._function.body):
            if isinstance(node, m.Call) and node.start in self._calls.timing:
                return True
            if (self._shows(node) or only_form(node) or self._asks_each(node)) and self._is_drawn(node):
                return True
            if (only_form(node) or self._counts(node) or self._asks_each(node)) and any(
                isinstance(x, m.Name) and self._is_known(x) for x in nodes([node])
            ):
                return True
        return False

    def _asks_each(self, node: Any) -> bool:
        """Whether each part of something is asked for its form: ``p.numel() for p in model.parameters()``."""
        return isinstance(node, m.Comp) and only_form(node.elt) and not self._reads(node)

    def _shows(self, node: Any) -> bool:
        """Whether an expression shows the parts and sizes of a model, and is no fixed text."""
        return isinstance(node, m.Call) and node.start in self._calls.showing

    def _counts(self, node: Any) -> bool:
        """Whether an expression shows the parts and sizes of a model."""
        return isinstance(node, m.Call) and node.start in self._calls.counting

    def is_allowed(self, given: dict[str, set[str]]) -> bool:
        """Whether elements of it go into variables, and to functions of the file, alone; these are noted in ``given``."""
        for stmt in statements(self._function.body):
            if id(stmt) in self._dead:
                continue
            if not all(self._hand_on(one, given) for one in self._calls_of_file(_own_parts(stmt))):
                return False
            if isinstance(stmt, m.Assign) and all(map(_is_plain, stmt.targets)):
                if self._reads(stmt.value) and not self._only_computes(stmt.value, given):
                    return False
            elif isinstance(stmt, m.Assign) and all(self._is_set(one, stmt.value) for one in stmt.targets):
                if not self._only_computes(stmt.value, given):
                    return False
            elif isinstance(stmt, m.For) and _is_plain(stmt.target):
                if self._reads(stmt.iter) and not self._only_computes(stmt.iter, given):
                    return False
            elif isinstance(stmt, m.Return) and self._function.name in self._functions:
                if stmt.value is not None and self._reads(stmt.value):
                    if not self._only_computes(stmt.value, given):
                        return False
                    self.gives = True
            elif isinstance(stmt, m.ExprStmt) and isinstance(stmt.value, m.Call):
                call = stmt.value
                name = call.func.id if isinstance(call.func, m.Name) else ""
                if self._counts(call):
                    continue
                if name.partition(".")[0] in self.known and name.rpartition(".")[2] in self._methods:
                    return False
                if name in self._calls.handled or name in self.known:
                    if not self._only_computes(call, given):
                        return False
                elif name not in self._functions:
                    if any(map(self._reads, [*call.args, *(one.value for one in call.keywords)])):
                        return False
            elif isinstance(stmt, m.ExprStmt):
                # What is computed here is dropped.
                if self._reads(stmt.value) and not self._only_computes(stmt.value, given):
                    return False
            elif isinstance(stmt, m.For):
                # What each of the elements is asked for is seen where the loop's variable stands.
                if not _is_plain(stmt.target) or not self._only_computes(_counted(stmt.iter), given):
                    return False
            elif any(map(self._reads, _own_parts(stmt))):
                return False
        return True

    def is_computed(self, function: m.Function, given: dict[str, set[str]]) -> bool:
        """Whether a lambda in this function does nothing with it but to compute."""
        return all(
            isinstance(one, m.Return) and (one.value is None or self._only_computes(one.value, given))
            for one in function.body
        )

    def _calls_of_file(self, parts: Any) -> Iterator[m.Call]:
        """The calls of functions of the file."""
        for one in nodes(parts):
            if isinstance(one, m.Call) and isinstance(one.func, m.Name) and one.func.id in self._functions:
                yield one

    def _is_known(self, name: m.Name) -> bool:
        return name.id.partition(".")[0] in self.known

    def _is_set(self, target: Any, value: m.Expr) -> bool:
        """Whether an attribute of something drawn is set to what is not drawn, or computed from the same thing."""
        if not isinstance(target, m.Name) or "." not in target.id or holds(value, self._places):
            return False
        owner = target.id.partition(".")[0]
        read = elements(value, self._calls.looks, self._opaque)
        return owner in self.known and self.known.intersection(read) <= {owner}

    def _is_drawn(self, expr: Any) -> bool:
        return any(getattr(one, "start", -1) in self._places for one in nodes([expr]))

    def _reads(self, expr: Any) -> bool:
        """Whether elements of what is drawn are part of an expression."""
        if only_form(expr) or self._counts(expr):
            return False
        read = elements(expr, self._calls.looks, self._opaque)
        return holds(expr, self._places) or any(name in self.known for name in read)

    def _only_computes(self, expr: Any, given: dict[str, set[str]]) -> bool:
        for call in nodes([expr]):
            if isinstance(call, (m.Lambda, m.Comp)):
                return False
            if not isinstance(call, m.Call) or not isinstance(call.func, m.Name):
                continue
            parts = [*call.args, *(one.value for one in call.keywords)]
            if not any(map(self._reads, parts)):
                continue
            head = call.func.id.partition(".")[0]
            if call.func.id in self._functions:
                if not self._hand_on(call, given):
                    return False
            elif head not in self._computing and head not in self.known and head not in _HANDING_ON:
                return False
        return True

    def _hand_on(self, call: m.Call, given: dict[str, set[str]]) -> bool:
        """Note which parameters of a function of the file are given something drawn."""
        assert isinstance(call.func, m.Name)
        params = self._functions[call.func.id].params
        for at, one in enumerate(call.args):
            if isinstance(one, m.Star):
                return False
            if self._reads(one):
                if at >= len(params) or params[at].kind not in "pa" or not self._only_computes(one, given):
                    return False
                given.setdefault(call.func.id, set()).add(params[at].name)
        named = {one.name for one in params if one.kind in "ak"}
        for keyword in call.keywords:
            if self._reads(keyword.value):
                if keyword.name not in named or not self._only_computes(keyword.value, given):
                    return False
                given.setdefault(call.func.id, set()).add(keyword.name)
        return True


def _is_plain(target: Any) -> bool:
    """Whether a target is a variable, or a few of them."""
    parts = target.elts if isinstance(target, m.Seq) else [target]
    return all(isinstance(one, m.Name) and "." not in one.id for one in parts)


def _counted(iterated: m.Expr) -> m.Expr:
    """What a loop goes through, without the numbers that it gives its elements."""
    numbered = isinstance(iterated, m.Call) and called_name(iterated) == "enumerate" and iterated.args
    return iterated.args[0] if isinstance(iterated, m.Call) and numbered else iterated


def _own_parts(stmt: m.Stmt) -> list[Any]:
    """The expressions of a statement, without the statements in it."""
    if isinstance(stmt, (m.If, m.While)):
        return [stmt.test]
    if isinstance(stmt, m.With):
        return list(stmt.items)
    if isinstance(stmt, (m.Try, m.FunctionDef, m.ClassDef)):
        return []
    return [stmt]


def _modules(facts: m.FileFacts) -> dict[str, str]:
    """The first part of the module that each name is imported from, or is."""
    found: dict[str, str] = {}
    for stmt in facts.functions[0].body:
        if isinstance(stmt, m.Import):
            for one in stmt.names:
                found[one.asname or one.name.partition(".")[0]] = one.name.partition(".")[0]
        elif isinstance(stmt, m.ImportFrom) and not stmt.level:
            for one in stmt.names:
                found[one.asname or one.name] = stmt.module.partition(".")[0]
    return found


def _defined(facts: m.FileFacts) -> list[m.Function]:
    """The functions of a file, without those that it defines where it has ended: behind `exit()`."""
    own = {one.name for one in facts.functions}
    end = next((one.start for one in facts.functions[0].body if leaves(one, own=own)), None)
    return [one for one in facts.functions if end is None or one is facts.functions[0] or one.start < end]


def _is_shared(
    facts: m.FileFacts,
    running: Sequence[m.Function],
    function: m.Function,
    names: set[str],
    timed: Sequence[m.Function],
) -> bool:
    return any(
        name in variables(one) and name not in own_names(one)
        for one in running
        if one is not function
        and one not in timed
        and (function.parent < 0 or facts.functions[one.parent] is function)
        for name in names
    )
