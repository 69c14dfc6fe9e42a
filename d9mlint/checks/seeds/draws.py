"""DET101-DET112: what is drawn before, without or beside a seed."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from d9mlint.base.entry_report import IF_SAVED, MAY_SEED
from d9mlint.base.findings import ALSO, NUMBER, REPEATED, Confidence, Severity, Step
from d9mlint.base.options import A_GPU, all_of, each_of, given_in_words, quoted
from d9mlint.checks.asked import is_displayed
from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.drawing import LIBRARY_SEED, runs_again
from d9mlint.checks.seeds.filled_tensors import fills_new_tensor
from d9mlint.checks.seeds.form_only import (
    Known,
    asks_form_only,
    first_kept,
    outside_of_methods,
    sizing_methods,
)
from d9mlint.checks.seeds.graph_variables import GraphVariables
from d9mlint.checks.seeds.random_split import is_unread_split
from d9mlint.checks.seeds.seed_options import SeedOptions
from d9mlint.checks.seeds.tested_seeds import truth_test
from d9mlint.checks.seeds.trials import trains_on
from d9mlint.checks.seeds.unread_models import (
    Class,
    Keeper,
    Kept,
    Variable,
    class_of,
    is_dead_store,
    is_model,
    is_read,
    keeper,
    kept,
    kept_in,
    uses_kept,
)
from d9mlint.checks.seeds.waiting_generators import NO_CALL, Call, is_waiting, running_in
from d9mlint.interp import values as v
from d9mlint.interp.activity import LOADS, MODE_SET, SAVES, TRAINS_IN_ROUNDS, fits_alone, trains, where
from d9mlint.interp.calls import has_model
from d9mlint.interp.coloring import colors_only
from d9mlint.interp.context import NEVER_TAKEN, NOT_ITERATED, RESTORED, THREAD, TRAINING_CONTEXT
from d9mlint.interp.data import DERIVED_FROM, DIFFERS_BY, Entropy, differing, is_entropy, origin, own_option
from d9mlint.interp.device_names import given_option
from d9mlint.interp.events import (
    AnswerEvent,
    AttributeEvent,
    BareNameEvent,
    CallEvent,
    DoubtfulDrawEvent,
    DrawEvent,
    EndEvent,
    GlobalDrawEvent,
    InstanceEvent,
    ItemEvent,
    IterationEvent,
    LateSeedEvent,
    ObjectCallEvent,
    SeedEvent,
)
from d9mlint.interp.examples import traced_only
from d9mlint.interp.file_names import ends_of
from d9mlint.interp.given_instead import others
from d9mlint.interp.graphs import GENERATOR
from d9mlint.interp.idle import is_dropped
from d9mlint.interp.library.options import OTHER_THAN
from d9mlint.interp.library.processes import UNNAMED
from d9mlint.interp.library.weights import (
    OF_ONE_MODULE,
    filled,
    is_loaded,
    is_meant,
    places_left,
    places_within,
)
from d9mlint.interp.library_modules import model_of_layers
from d9mlint.interp.listening import Listening, on, on_call, on_call_if, on_method
from d9mlint.interp.memory import (
    Table,
    Tick,
    marks_path,
    noted,
    remembered,
    remembered_once,
    remembered_table,
)
from d9mlint.interp.naming import is_left_in_program, names_only, needs_form_only
from d9mlint.interp.only_optimized import is_only_optimized
from d9mlint.interp.order_kinds import HASHING
from d9mlint.interp.permuted import is_counted
from d9mlint.interp.places import Moment, Where, scope
from d9mlint.interp.rng import assumed, seed_value, takes_over
from d9mlint.interp.state import MAYBE, SEEDED, UNSEEDED, Rng, Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.tensors import LOADING, TENSOR
from d9mlint.interp.text import node_text, written
from d9mlint.interp.unknown_models import MADE
from d9mlint.interp.unread_orders import is_unread
from d9mlint.interp.usage import has_been_switched
from d9mlint.ir import nodes as m
from d9mlint.ir.derived import Callee, Looks, derived_names, elements, given_params, holds
from d9mlint.ir.forms import only_form
from d9mlint.ir.traversal import called_name, functions_around, nodes, parents, statements
from d9mlint.project.entry_points import has_main_guard

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import GeneratorEntry, RngEntry, RoleEntry
    from d9mlint.project.modules import ModuleFile

K = TypeVar("K")

ASSIGNED = "assigned"
"""Stands in ``remedy`` where a function that seeds is assigned a number, and so cannot be called any more."""
IN_GRAPH = "in graph"
"""Stands there where the seed has to be set in the body of the context that is the last step of the flow."""
IN_CONFIG = "in configuration"
OF_OPTION = "of option"
"""Stands there where that is the configuration of an estimator, or one without, which is to be given the seed."""
MOST_DRAWS = 6
"""So many draws before a seed are listed."""
MOST_KEPT = 4 * MOST_DRAWS
"""So many are remembered: what some of them gave may be overwritten."""
# Draws whose outcome is overwritten when a program only loads weights and evaluates.
_TRAINING_ONLY = frozenset({"init", "dropout", "shuffle", "transform", "sampler"})


class Late(NamedTuple):
    """A seed that is set after a draw: its place and text, whether it is a call that can be moved, the first draw,
    all draws that came before with their texts, the option without which it is not set, and the function of a new process
    that sets it."""

    place: Where
    text: str
    movable: bool
    draw: Where
    draws: tuple[Early, ...]
    aside: str
    spawned: str = ""


Kind = Literal[
    "",
    "weak",
    "use",
    "data",
    "order",
    "head",
    "guess",
    "viewed",
    "aside",
    "weak aside",
    "use aside",
    "head aside",
]
"""What a draw is worth: one that training alone makes matter is weak, and is one for use where it happens whenever the
model is used, one changes the data that a model is given, one is of a loader or sampler, or of the workers of a loader,
which have their own rules, one happens where a checkpoint lacks the layers of a task, one is in a call that is only
possible, of one the outcome is only shown on a screen, one is behind an option, where it may be weak, for use or of such
layers too."""


class Early(NamedTuple):
    """A draw before a seed: its place, what draws, what it is worth, the variable of a module that keeps the model
    whose weights it makes, and whether it is in a graph of TensorFlow that the program made."""

    place: Where
    text: str
    kind: Kind
    kept: Kept | None = None
    new_graph: bool = False


class Split(NamedTuple):
    """What DET109 says of a draw."""

    place: Where
    message: str
    help: str
    severity: Severity | None
    confidence: Confidence | None
    remedy: tuple[str, ...]
    unless: str


class Printed(NamedTuple):
    """What is printed of tensors, or written into files: the function that does, the names of the
    variables, what functions of the project it calls where it takes a tuple apart or drops it, and the calls that lead to
    it, by file and place."""

    function: tuple[str, int]
    names: tuple[str, ...]
    called: tuple[tuple[int, str, int, bool], ...]
    calls: tuple[tuple[str, int], ...]
    shown: tuple[tuple[int, str, int], ...] = ()
    """The functions of the project of which the results are printed as they are, and where they are called."""
    within: tuple[int, ...] = ()
    """Where the calls start in what is printed or written."""


class First(NamedTuple):
    """The first draw of its kind: its place, what draws, whether it is in a worker that gets its seed from the
    generator that counts, whether only another graph of TensorFlow is seeded, the argument of the call with which it
    seeds the generator itself, the release of the library that is assumed, whether it makes a model whose class is
    not known, whether it is in a graph of TensorFlow that the program made, the function that runs it in a new
    process, whether only some ranks have been seeded, the context that makes the graph the default one,
    whether an estimator builds it, whether a call of a model makes the layer that draws, and the RNG that seeds the
    generator if the draw is in a worker, which is not known."""

    place: Where
    text: str
    in_worker: bool = False
    elsewhere: bool = False
    own: str = ""
    targets: tuple[str, ...] = ()
    unknown: bool = False
    new_graph: bool = False
    spawned: str = ""
    some_ranks: bool = False
    graph: Site | None = None
    estimator: bool = False
    each_call: bool = False
    or_worker: str = ""


class Drawn(NamedTuple):
    """A draw, and when it was."""

    first: First
    time: Tick


_USED = _TRAINING_ONLY - {"init"}
_LOADS_CODE = "<2.6"
"""The releases of PyTorch that load more than weights, unless they are asked not to."""
_OUTERMOST = 5
"""Frames by which ways to a draw differ."""
_OF_LAYERS = frozenset({"weak", "head", "use"})
"""Kinds of draws that layers make."""
_REPLACEABLE = frozenset({"weak", "head"})
"""Kinds of draws that loaded weights may replace."""
_OF_DATA = frozenset({"weak", "order"})
"""Kinds of draws that a transform may make where its dataset is read, in the program itself or in a worker."""
_GIVING = frozenset({"draw", "init", "mask"})
"""Kinds of draws that do nothing but give a value."""
_ASIDE: dict[tuple[str, bool], Kind] = {
    ("weak", False): "weak aside",
    ("weak", True): "use aside",
    ("head", False): "head aside",
    ("head", True): "head aside",
}
"""Kinds of draws that training alone makes matter, behind an option: by the kind and whether the model is used there."""
_IF_GIVEN = frozenset({"aside", "weak aside", "use aside", "head aside"})
"""Kinds of draws that are made only if an option is given."""
_OVERWRITABLE = frozenset({"", "viewed", "aside", "weak aside", "head aside", "order"})
"""Kinds of draws whose outcome may be overwritten, or that another rule may report, but for initial weights that are made
in each run."""
_OF_WEIGHTS = frozenset({"torch", "keras", "tensorflow", "keras_numpy"})
"""Generators of initial weights of which it is known what is loaded over them."""
_OF_PARAMETERS = frozenset({"torch"})
"""Those whose modules are asked for their parameters before they are trained; others train themselves."""


class FromEntropy(NamedTuple):
    """A call that seeds an RNG from entropy: what DET107 says of it if something is drawn afterwards, and the option that
    is not given then."""

    place: Where
    message: str
    help: str
    option: str
    remedy: tuple[str, ...]


class Assigned(NamedTuple):
    """A function that seeds and that is assigned a seed, or named and not called: where, what happens there, and how it
    would be called."""

    place: Where
    reason: str
    call: str


class Initial(NamedTuple):
    """A draw of initial weights: what draws where, and whether a checkpoint may have held them."""

    first: First
    head: bool
    made: bool


_SEEDED_CONFIG = "tf.estimator.RunConfig(tf_random_seed=seed)"
_PER_PROCESS = ", with a different seed in each unless all have to draw the same numbers"
_IN_GRAPH = "where this graph is the default one, before its operations are made"


class Seeds(GraphVariables, SeedOptions, Rule):
    """DET101-DET104, DET107, DET108 and others of generators: collects draws and seeds; decides at the end of the
    entry point, when it is known what the program does."""

    first = remembered_table(tuple[str, Kind], First)
    """The first draws from each generator."""
    further = remembered_table(tuple[str, Kind, Site], First)
    """The first draws of their kind at all other places: what the first one gave may be overwritten."""
    early = remembered_table(tuple[str, Site, Kept | None], Early)
    """Draws from each generator before its seed, each place once for each variable that keeps the model."""
    models = remembered_table(tuple[Class, Variable | None], bool)
    """The classes of what is made before the seed, with the variables of modules that keep it."""
    processes = remembered_table(tuple[str, Kind, str], bool)
    """The functions that new processes run which draw from each generator; empty for the program itself."""
    has_body = remembered(bool)
    """Whether what is loaded from a checkpoint has a part of a library before the layers that are its own."""
    needed_options = remembered(set[str])
    """Options without which a seed is None where that raises."""
    doubted = remembered_table(str, bool)
    from_entropy = remembered_table(tuple[str, Site], FromEntropy)
    """Seeds from entropy, by RNG and place: they matter if something is drawn afterwards."""
    late = remembered_table(str, Late)
    tested = remembered_table(str, str)
    """By RNG, the seed whose truth the program tests before it sets it, as it is written there."""
    idle_defaults = remembered_table(str, str)
    """By option, its default, with which the program sets no seed although it would set the value of the option."""
    own_seeds = remembered_table(str, bool)
    """The options that let the program set a seed which is no value of them."""
    assigned = remembered_table(str, Assigned)
    """The first place where a function that seeds each generator is assigned a number, or named alone: nothing is seeded."""
    initial = remembered_table(tuple[str, Site], Initial)
    """The draws of initial weights from each generator, each place once."""
    loaded = remembered_once(frozenset[Site])
    """The places of initial weights over which others had been loaded wherever the program trained."""
    loaded_aside = remembered_once(frozenset[tuple[Site, str]])
    """The same where an option is given, with the option."""
    load_order = remembered(int)
    """When weights were loaded for the last time."""
    weights_of = remembered_table(tuple[str, tuple[int, ...]], Drawn)
    """The first draw of initial weights from each generator by each way to it, as far as its outermost calls tell."""
    restored = noted(list[v.Value])
    """What was asked to load a state."""
    loads_more = remembered(bool)
    """Whether weights may have been loaded into what is not known."""
    called = remembered_table(Site, int)
    """Where layers were made that were given something, and when last, while nothing had been loaded into them."""
    called_unloaded = noted(list[v.Value])
    """Models of which layers were given something, while nothing had been loaded into them."""
    called_by_default = remembered_table(Site, bool)
    """Where layers were made that were given something, with their initial weights, if no option is given."""
    drawn_aside = remembered_table(tuple[str, Site], Tick)
    """When numbers were first drawn, at each place behind an option."""
    borrowed = remembered_table(tuple[str, Site], bool)
    """Where generators took a seed from another one, and whether numbers were drawn with it."""
    seeded_again = remembered(set[Site])
    """Those of these places whose seed was replaced by one of the program's."""
    only_optimized = remembered(set[Site])
    """Where models are made that nothing but an optimizer is given."""
    made_to_use = remembered_table(tuple[str, int], bool)
    """The classes, by file and place, of which other models are made, also as parts of them."""
    unused_in = remembered_table(Site, tuple[Class, ...])
    """Where weights are drawn in the constructors of models that nothing but an optimizer is given, of which classes; of
    none where they are drawn elsewhere too."""
    optimized = noted(list[v.Value])
    """Modules whose parameters were asked for."""
    fitted = noted(list[v.Value])
    """What trains itself, or is a loss whose gradients are computed."""
    trains_parts = remembered(bool)
    """Whether the last mode that the program has put a module into is that of training."""
    built_later = remembered_table(Site, Keeper)
    """Layers that make their weights when they are first called, with what keeps them."""
    layers_asked = remembered(bool)
    """Whether the program goes through all layers of a model, or takes one of them."""
    in_generators = remembered_table(Site, Call)
    """Where generator functions of the program draw, with the first call of them; none where anything else leads there."""
    imported = remembered_table(Site, tuple[str, str])
    """Where modules that are imported draw what they keep in a variable, with that."""
    imported_splits = remembered(list[tuple[Variable, Split]])
    """What such modules draw for DET109."""
    idle = remembered_once(frozenset[Site])
    """Where the program, which has ended, has drawn or made what it has only kept."""
    masks = remembered_table(tuple[str, Site], First)
    """The first draws of layers that draw unless their model is in evaluation mode, by where the layers were made."""
    unpickled = remembered_table(str, Where)
    """Where models are first used that were loaded from files as a whole, by how the files end."""
    switched = noted(list[v.Value])
    """Modules that the program has put into a mode."""
    switches_more = remembered(bool)
    """Whether what is not known may have been put into one."""
    trains_on = remembered(bool)
    """Whether the program trains for more rounds than a smoke test does."""
    draws_for_command = remembered(bool)
    """Whether a function that takes the options of the command line draws, or calls what does."""
    unseeded = marks_path(Where)
    """Draws without a seed on this path, by generator and process."""
    trained = remembered_table(str, bool)
    """Generators from which something had been drawn without a seed where the program trained."""

    printed = remembered(list[Printed])

    shows_elsewhere = remembered(bool)
    """Whether other files print something that may differ from run to run, or data is written into a file."""

    prints_elsewhere = remembered(bool)
    """Whether other files print something that is not known."""

    keeps_figures = remembered(bool)
    """Whether the program writes pictures that it draws into files, or sends them to a logger."""

    reruns = remembered(bool)
    """Whether the script runs again whenever a person does something on its page."""

    viewed_in_functions = remembered(set[Site])
    """Where functions draw what is only shown on a screen: at the top level of a program, such a draw is reported."""

    viewed_splits = remembered(list[Split])
    """What is drawn for DET109 and only shown on a screen."""

    answers_others = remembered(bool)
    """Whether a server sends somebody what is not known."""

    counting = remembered_table(int, bool)
    """Where the entry point's own file shows the parts and sizes of models, or, where it is false, fixed texts."""

    not_counting = remembered_table(int, bool)
    """Where it prints something else too."""

    timing = remembered_table(int, bool)
    """Where it reads the clock."""

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "shows-structure") is not None)
    def counts(self, call: CallEvent) -> None:
        """The parts and sizes of a model are shown."""
        self._note_own(self.counting, call.node)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "keeps-figure") is not None)
    def figure_kept(self, call: CallEvent) -> None:
        """A picture that the program has drawn is kept."""
        self.keeps_figures = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "reruns-script") is not None)
    def rerun(self, call: CallEvent) -> None:
        """Something of a page is shown whose script is run again and again."""
        self.reruns = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "clock") is not None)
    def times(self, call: CallEvent) -> None:
        """The clock is read."""
        self._note_own(self.timing, call.node)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "calls-in-inference") is not None)
    def evaluates(self, call: CallEvent) -> None:
        """A model is evaluated, which shows how it does, or predicts what the program asks for more than its form."""
        if not needs_form_only(self.run, call.node):
            self.shows_elsewhere = True

    def _note_own(self, places: Table[int, bool], node: Any, models: bool = True) -> None:
        run = self.run
        if run.entry is not None and run.frame.file.path == run.entry.path and isinstance(node, m.Call):
            places[node.start] = models

    @on(AnswerEvent)
    def answers(self, event: AnswerEvent) -> None:
        """A server sends somebody what a function of the program gives."""
        if not isinstance(event.value, v.Lit):
            self.answers_others = True

    @on_call("builtins.print")
    def prints(self, call: CallEvent) -> None:
        """Something is printed. What a module that others import prints shows whether it is more than a smoke test."""
        run, node = self.run, call.node
        own = run.entry is not None and run.frame.file.path == run.entry.path
        if not own and isinstance(node, m.Call) and any(_may_vary(run, one) for one in call.args.pos):
            self.shows_elsewhere = True
        if not own and not all(isinstance(one, v.Lit) for one in call.args.pos):
            self.prints_elsewhere = True
        # A module is printed as its parts and their sizes.
        models = [has_model(run, [one]) for one in call.args.pos]
        structures = all(
            isinstance(one, v.Lit) or model for one, model in zip(call.args.pos, models, strict=True)
        ) and not self._by_choice(node)
        self._note_own(self.counting if structures else self.not_counting, node, any(models))
        self._note_shown(call)

    def _by_choice(self, node: Any) -> bool:
        """Whether a call is given what one of several functions gives, of which an option chooses one."""
        called = [one.func for one in nodes([node]) if isinstance(one, m.Call) and one is not node]
        return any(
            isinstance(known := self.run.value_of(one), v.AnyOf) and bool(known.option)
            for one in called
            if isinstance(one, m.Name)
        )

    def _note_shown(self, call: CallEvent) -> None:
        """What a call prints or writes of what may differ from run to run, where other files import the entry point."""
        run, node = self.run, call.node
        if run.entry is None or run.entry.path not in run.used_files or not isinstance(node, m.Call):
            return
        given = list(zip(node.args, call.args.pos, strict=False))
        by_name = {one.name: one.value for one in node.keywords if one.name}
        given += [(by_name[name], value) for name, value in call.args.kw.items() if name in by_name]
        tensors = tuple(
            sorted({name for arg, value in given for name in _shown(run, arg, value, self._looks)})
        )
        varying = [arg for arg, value in given if _may_vary(run, value)]
        self._note_printed(node, tensors, tuple(self._functions_shown(node.args)), _calls_within(varying))

    @on_call_if(lambda rule, api: rule.run.kb.call_is("writes-functions", api))
    def keeps(self, call: CallEvent) -> None:
        """Something is written into a file, or sent to a logger: no smoke test needs that where it may differ."""
        kb, owner = self.run.kb, call.owner
        if kb.call_is("shows", call.api) or _written_by(self.run, call.api) is not None:
            return
        if isinstance(owner, v.Obj) and kb.role(owner.api, "shows-structure") is not None:
            return
        if any(_may_vary(self.run, one) for one in call.args.values()):
            self.shows_elsewhere = True
            self._note_shown(call)

    @on_call_if(lambda rule, api: _written_by(rule.run, api) is not None)
    def writes(self, call: CallEvent) -> None:
        """Data is written into a file: no smoke test needs that."""
        run = self.run
        self.shows_elsewhere = True
        if run.entry is None:
            return
        given = _data_written(run, call.api, call.node)
        if given and run.entry.path in run.used_files:
            names = tuple(sorted({name for one in given for name in elements(one, self._looks)}))
            self._note_printed(call.node, names, within=_calls_within(given))

    def _note_printed(
        self,
        node: Any,
        names: tuple[str, ...],
        shown: tuple[tuple[int, str, int], ...] = (),
        within: tuple[int, ...] = (),
    ) -> None:
        place = Where(self.run, node)
        if (names or shown or within) and place.function is not None:
            called = tuple(self._called_there(place.function)) if names else ()
            calls = tuple((step.path, step.start) for step in place.flow)
            self.printed.append(Printed(place.function, names, called, calls, shown, within))

    def _functions_shown(self, given: Sequence[Any]) -> Iterator[tuple[int, str, int]]:
        """Where functions of the project are called whose results are printed as they are, and which these are."""
        for expr in given:
            for one in _parts_of_text(expr) or [expr]:
                if isinstance(one, m.Call) and isinstance(one.func, m.Name):
                    found = self.run.value_of(one.func)
                    if isinstance(found, v.Func) and not found.decorated and found.receiver is None:
                        yield one.start, *found.key

    def _called_there(self, place: tuple[str, int]) -> Iterator[tuple[int, str, int, bool]]:
        """Where a function takes what functions of the project return apart, or drops it, which these are, and whether as
        methods."""
        run = self.run
        for stmt in statements(run.modules.by_path[place[0]].facts.functions[place[1]].body):
            if not isinstance(stmt, (m.Assign, m.ExprStmt)):
                continue
            if isinstance(stmt, m.Assign) and not isinstance(stmt.targets[0], m.Seq):
                continue
            if not isinstance(call := stmt.value, m.Call) or not isinstance(call.func, m.Name):
                continue
            called = run.value_of(call.func)
            of_instance = isinstance(called, v.Inst)
            found: v.Value | None = called
            if isinstance(called, v.Inst):
                found = called.cls.find("__call__") or called.cls.find("forward")
            if isinstance(found, v.Func) and not found.decorated and (of_instance or found.receiver is None):
                yield call.start, *found.key, of_instance

    def _looks(self, name: str) -> Literal["method", "function", ""]:
        """Whether a call of this name looks at no element of the tensor that is its receiver or its first argument."""
        if self.run.kb.role(f"{TENSOR}.{name}", "looks-only") is not None:
            return "method"
        function = f"{TENSOR.rpartition('.')[0]}.{name}"
        roles = self.run.kb.by_role(function)
        return "function" if "looks-only" in roles and "wraps" not in roles else ""

    def _shows_draws(self) -> bool:
        """Whether the program prints or keeps elements that are computed from what it draws without a seed."""
        firsts = [self.first[key] for key in self.first.known()]
        firsts += [self.further[key] for key in self.further.known()]
        sites: list[tuple[Site | Step, ...]] = [(one.place.site, *one.place.flow) for one in firsts]
        files = self.run.modules.by_path

        def starts(path: str) -> list[int]:
            return [site.start for several in sites for site in several if site.path == path]

        for place, names, called, calls, shown, within in self.printed:
            path, index = place
            if not set(within).isdisjoint(starts(path)):
                return True
            for start, file, at in shown:
                body = self.run.whole(files[file]).functions[at].body
                if start in starts(path) and any(_gives_drawn(one, starts(file)) for one in statements(body)):
                    return True
            callees = {
                start: Callee(self.run.whole(files[file]).functions[at], starts(file), bound)
                for start, file, at, bound in called
            }
            function = files[path].facts.functions[index]
            given = self._given_drawn(calls, place, starts)
            if not derived_names(function, starts(path), self._looks, given, callees=callees).isdisjoint(
                names
            ):
                return True
        return False

    def _given_drawn(
        self, calls: Sequence[tuple[str, int]], place: tuple[str, int], starts: Callable[[str], list[int]]
    ) -> set[str]:
        """The parameters of a function that the calls which lead to it hand what is drawn, or computed from it."""
        files = self.run.modules.by_path
        around = [files[path].facts.functions[_index_around(files[path].facts, at)] for path, at in calls]
        around.append(files[place[0]].facts.functions[place[1]])
        paths = [*(path for path, _ in calls), place[0]]
        given: set[str] = set()
        for number, (path, at) in enumerate(calls):
            function, into = around[number], around[number + 1]
            call = next((x for x in nodes(function.body) if isinstance(x, m.Call) and x.start == at), None)
            if call is None:
                given = set()
                continue
            derived = derived_names(function, starts(path), self._looks, given)
            callee = Callee(into, starts(paths[number + 1]), into.cls >= 0)
            given = given_params(call, callee, derived, starts(path), self._looks) or set()
        return given

    def _reports_rounds(self) -> bool:
        """Whether the program trains on the batches of several epochs, and prints more than fixed texts."""
        prints = self.prints_elsewhere or bool(self.not_counting.known())
        return prints and where(self.run, TRAINS_IN_ROUNDS) is not None

    def _stops_early(self) -> bool:
        """Whether the program asks for a name that nothing defines before it prints or saves anything."""
        run = self.run
        shown = self.shows_elsewhere or self.prints_elsewhere or self.not_counting.known()
        return run.entry is not None and run.state.lost and not shown and where(run, SAVES) is None

    def _asks_form_only(self, rng: str) -> bool:
        """Whether the program asks what it draws for its form, prints or keeps nothing else of it, and saves nothing."""
        run = self.run
        shown = self.shows_elsewhere or self.answers_others
        if run.entry is None or shown or where(run, SAVES) is not None:
            return False
        kinds = {key[1] for key in self.first.known(rng)}
        if where(run, LOADS) is not None and kinds - _REPLACEABLE:
            kinds -= _REPLACEABLE
        keys = self.further.known(rng)
        firsts = [(key[1], self.first[key]) for key in self.first.known(rng)]
        firsts += [(key[1], self.further[key]) for key in keys]
        if len(keys) >= MOST_KEPT:
            return False
        starts: list[int] = []
        for kind, one in firsts:
            if kind not in kinds:
                continue
            sites: tuple[Site | Step, ...] = (*one.place.flow, one.place.site)
            mine = [site.start for site in sites if site.path == run.entry.path]
            if kind in _REPLACEABLE:
                # Layers hand on the weights that they are made of.
                mine = [*first_kept(run.whole(run.entry), mine)]
            if rng in _OF_PARAMETERS:
                # Draws of others may decide of a form.
                mine = outside_of_methods(run.whole(run.entry), mine)
            # What other files draw into weights they do not look at, as a rule.
            if not mine or (one.place.site.path != run.entry.path and kind not in _REPLACEABLE):
                return False
            starts += mine
        facts = run.whole(run.entry)
        if kinds <= _OF_LAYERS:
            # What is drawn in a method fills an attribute of an object, which is made somewhere else.
            methods = [stmt for one in facts.functions if one.cls >= 0 for stmt in one.body]
            at = [key[1] for key in self.initial.known(rng)]
            starts += [
                site.start
                for site in at
                if site.path == run.entry.path
                and not any(one.start <= site.start < one.end for one in methods)
            ]
        libraries = frozenset({rng, TENSOR.partition(".")[0]})
        handled = frozenset[str]() if self.prints_elsewhere else self._of_project(facts, run.entry)
        counting = set(self.counting.known()) - set(self.not_counting.known())
        drawing = {one.text.partition(".")[0] for _, one in firsts}
        by_path = run.modules.by_path
        paths = {run.entry.path, *(one.place.site.path for _, one in firsts)}
        sizing = sizing_methods(
            [run.whole(by_path[one]) for one in sorted(paths) if one in by_path], self._looks
        )
        showing = {one for one in counting if self.counting[one]}
        calls = Known(self._looks, counting, set(self.timing.known()), handled, drawing, sizing, showing)
        # What a module does when it is started may be to see that its own classes and functions can be called.
        runs_only = has_main_guard(run.entry) and not run.entry.notebook and not self.not_counting.known()
        return asks_form_only(facts, starts, libraries, calls, runs_only)

    def _tries_a_model(self, rng: str) -> bool:
        """Whether a program that does not train shows nothing but what a model gives with its initial weights: no result
        that is kept depends on them."""
        run = self.run
        if run.entry is None or run.exhausted or run.entry.notebook or rng not in _OF_PARAMETERS:
            return False
        return not self.shows_elsewhere and where(run, SAVES) is None and where(run, LOADS) is None

    def _of_project(self, facts: m.FileFacts, entry: ModuleFile) -> frozenset[str]:
        """What a file imports from other files of the project, by the names that it gives them."""
        found: set[str] = set()
        for function in facts.functions:
            for one in statements(function.body):
                if not isinstance(one, m.ImportFrom):
                    continue
                modules = self.run.modules
                module = (
                    modules.relative(entry, one.level, one.module)
                    if one.level
                    else modules.absolute(entry, entry.directory, one.module)
                )
                if module is not None:
                    found.update(alias.asname or alias.name for alias in one.names)
        return frozenset(found)

    @on(InstanceEvent)
    def made(self, event: InstanceEvent) -> None:
        """An instance is about to be made: of one that a checkpoint is loaded into no parts are known yet."""
        bases = map(self.run.kb.canonical, event.instance.cls.external_bases())
        if any(self.run.kb.role(one, "restores") is not None for one in bases):
            self.has_body = False
        if not is_model(self.run, event.instance):
            return
        if is_only_optimized(self.run, event.instance.node):
            self.only_optimized.add(self.run.here(event.instance.node))
        elif not self._in_only_optimized():
            self.made_to_use[class_of(event.instance)] = True
        if "torch" not in self.late:
            self.models[class_of(event.instance), kept_in(self.run, event.instance.node)] = True

    def _in_only_optimized(self) -> bool:
        """Whether this is in the constructor of a model that nothing but an optimizer is given."""
        made = self.only_optimized
        return bool(made) and any(frame.call_site in made for frame in self.run.stack())

    def _note_unused(self, node: Any) -> None:
        """Weights are drawn, which count only where a model is made otherwise of whose constructor this is a part: what
        a constructor does is followed once for models that are made alike."""
        site, parts = self.run.here(node), tuple[Class, ...]()
        if self._in_only_optimized():
            receivers = [frame.func.receiver for frame in self.run.stack() if frame.func is not None]
            parts = tuple(class_of(one) for one in receivers if isinstance(one, v.Inst))
        if self.unused_in.get(site) != ():
            self.unused_in[site] = parts

    def _does_more(self) -> bool:
        """Whether the running code of a module calls something for what that does, other than to seed or to set a mode. A
        program that only keeps what it draws is an example of how to draw."""
        return any(
            isinstance(one, m.ExprStmt) and isinstance(one.value, m.Call) and not self._is_setting(one.value)
            for one in nodes(self.run.frame.function.body)
        )

    def _is_setting(self, call: m.Call) -> bool:
        func = self.run.value_of(call.func)
        return isinstance(func, v.Ext) and bool(self.run.kb.rng(self.run.kb.canonical(func.name)))

    def _is_dropped(self, node: Any) -> bool:
        """Whether what a call in a function gives is dropped, where the function goes on with what the call was given: its
        author may have thought that this is changed."""
        stmt, func = self.run.statement, self.run.frame.func
        if func is None or not isinstance(stmt, m.ExprStmt) or stmt.value is not node:
            return False
        given = {one.id for one in getattr(node, "args", ()) if isinstance(one, m.Name)}
        return any(
            isinstance(one, m.Name) and one.id in given and one.start > stmt.end
            for one in nodes(func.fn.body)
        )

    @on(DrawEvent)
    def drawn(self, event: DrawEvent) -> None:
        """An unseeded RNG is drawn from."""
        rng, level, entry, node = event
        if NEVER_TAKEN in self.run.contexts:
            return
        asked_by, site = running_in(self.run), self.run.here(node)
        if self.in_generators.setdefault(site, lambda: asked_by) != asked_by:
            self.in_generators[site] = NO_CALL
        if not self.draws_for_command and any(_is_command(frame.func) for frame in self.run.stack()):
            self.draws_for_command = True
        if (
            entry.kind in _GIVING
            and not (entry.in_place or entry.trains)
            and (
                self.run.unread(node)
                or (is_left_in_program(self.run, node) and self._does_more())
                or names_only(self.run, node)
                or traced_only(self.run, node)
                or colors_only(self.run, node)
            )
        ):
            return
        if entry.in_place and entry.kind in _GIVING and is_unread(self.run, node):
            return
        divides = entry.kind == "split" or (entry.kind == "shuffle" and entry.at != "use")
        if divides and not entry.in_place and is_unread_split(self.run, node):
            return
        if entry.kind == "draw" and self.run.importing and (variable := kept_in(self.run, node)) is not None:
            self.imported.setdefault(self.run.here(node), lambda: variable)
        if entry.kind == "init":
            if is_only_optimized(self.run, node):
                return
            self._note_unused(node)
        if entry.kind == "split":
            if (entry.in_place or not self._is_dropped(node)) and not is_counted(self.run, entry, node):
                self._split(rng, level, entry, node)
            return
        if entry.kind == "tf-shuffle":
            self._tf_shuffle(level, entry, node)
            return
        if entry.kind == "sampling":
            self._sampling(rng, level, entry, node)
            return
        if entry.built_later and (keeps := keeper(self.run, node)) is not None:
            self.built_later.setdefault(self.run.here(node), lambda: keeps)
        if RESTORED in self.run.contexts and entry.kind == "init" and entry.library != "torch":
            # A part of a library, whose weights the checkpoint has.
            self.has_body = True
            return
        if RESTORED in self.run.contexts and not self.has_body:
            # The checkpoint may be one of this class.
            return
        kind: Kind = "weak" if entry.kind in _TRAINING_ONLY or _initialises(self.run, entry, node) else ""
        if kind == "weak" and fills_new_tensor(self.run, entry, node):
            kind = ""
        if entry.kind == "dropout" and TRAINING_CONTEXT in self.run.contexts:
            kind = ""
        if kind == "weak" and self.trains_parts and _masks(entry):
            # Also where the program does not train, as for Monte Carlo dropout.
            kind = ""
        each_call = _masks(entry) and _is_made_in_call(self.run)
        if kind == "weak" and each_call:
            # The mode of the model does not reach it.
            kind = ""
        if kind == "weak" and (_may_be_loaded(self.run, entry, node) or RESTORED in self.run.contexts):
            kind = "head"
        if (entry.kind == "shuffle" and entry.library == "torch") or level.parent:
            kind = "order"
        if self.run.guessing:
            kind = "guess"
        elif self.run.state.aside:
            kind = _ASIDE.get((kind, entry.kind in _USED), "aside")
        if kind in ("", "aside") and entry.kind == "draw" and self.run.only_viewed(node):
            kind = "viewed"
            self._note_viewed(node)
        if kind == "weak" and _masks(entry):
            self.masks.setdefault((rng, self.run.here(node)), lambda: self._here(event))
        of_data = entry.kind == "transform" or (bool(level.parent) and entry.kind not in _TRAINING_ONLY)
        if kind in _OF_DATA and of_data and NOT_ITERATED not in self.run.contexts:
            self.first.setdefault((rng, "data"), lambda: self._here(event))
        if self.run.state.aside:
            self.drawn_aside.setdefault((rng, self.run.here(node)), lambda: Tick(self.run.now))
        used = entry.kind in _USED
        if kind == "weak" and used:
            self.first.setdefault((rng, "use"), lambda: self._here(event))
        elif kind in _REPLACEABLE and not used:
            made = ".init." not in entry.apis[0] and not entry.apis[0].endswith("_")
            head = kind == "head"
            self.initial.setdefault(
                (rng, self.run.here(node)), lambda: Initial(self._here(event), head, made)
            )
            if rng == GENERATOR:
                self.note_initial(self.run.here(node))
        for one in entry.draws:
            generator = self.run.kb.generators.get(one)
            if generator is not None and generator.seeded_from == rng:
                at = (one, self.run.here(node))
                self.borrowed[at] = bool(self.borrowed.get(at)) or entry.at == "use"
        if kind == "weak" and entry.kind == "init" and not self.run.importing:
            # What an import does, every way of the program has in common.
            self.weights_of.setdefault(
                (rng, self._way()), lambda: Drawn(self._here(event), Tick(self.run.now))
            )
        place = self._noted(self.first, (rng, kind), event).place
        self.processes.setdefault((rng, kind, self._process()), lambda: True)
        site = self.run.here(node)
        if kind in _OVERWRITABLE and place.site != site:
            self._noted(self.further, (rng, kind, site), event)
        if not self.run.guessing:
            self.unseeded.setdefault(self._own(rng), place)
            known: Kind = "use" if kind == "weak" and used else kind
            in_variable = kept(self.run, node) if known in _REPLACEABLE else None
            self.early.setdefault(
                (rng, self.run.here(node), in_variable),
                lambda: Early(
                    place if place.site == site else Where(self.run, node, rng, level.option),
                    _drawn_by(node, entry),
                    known,
                    in_variable,
                    level.new_graph,
                ),
            )

    def _early(self, rng: str) -> tuple[Early, ...]:
        """The first draws from a generator before its seed."""
        draws = sorted((self.early[key] for key in self.early.known(rng)), key=lambda one: one.place.order)
        replaceable = [one for one in draws if one.kind in _REPLACEABLE][:MOST_KEPT]
        others = [one for one in draws if one.kind not in _REPLACEABLE][:MOST_KEPT]
        return tuple(sorted(replaceable + others, key=lambda one: one.place.order))

    def _noted(self, table: Table[K, First], key: K, event: DrawEvent) -> First:
        """The first draw that a table has, which is this one where it stands at the same place and needs fewer options."""
        known = table.setdefault(key, lambda: self._here(event))
        if len(known.place.given) > 1 and known.place.site == self.run.here(event.node):
            table[key] = known = _soonest([known, self._here(event)]) or known
        return known

    def _here(self, event: DrawEvent) -> First:
        where = Where(self.run, event.node, event.rng, event.level.option)
        level = event.level
        text = _drawn_by(event.node, event.entry)
        own, targets = self._own_seed(event), assumed(self.run, event.entry)
        unknown = event.entry.apis[0].endswith(MADE)
        return First(
            where,
            text,
            bool(level.parent),
            level.elsewhere,
            own,
            targets,
            unknown,
            level.new_graph,
            self._process(),
            level.some_ranks,
            level.graph,
            level.estimator,
            _masks(event.entry) and _is_made_in_call(self.run),
            level.or_worker,
        )

    def _way(self) -> tuple[int, ...]:
        """Where the outermost calls stand on the way to here."""
        return tuple(
            one.call_site.start for one in self.run.stack()[:_OUTERMOST] if one.call_site is not None
        )

    def _process(self) -> str:
        """The function that a process runs which the program has started; empty in the program itself."""
        # Only that a process or thread is running is asked, so that what a call did is not taken over from another one.
        return self.run.spawned if THREAD in self.run.contexts else ""

    def _own(self, rng: str) -> str:
        """The generator of the process that is running: what another one draws comes neither before nor after its seed."""
        process = self._process()
        return f"{rng} of {process}" if process else rng

    def _own_seed(self, event: DrawEvent) -> str:
        """The argument with which a call seeds the generator that it draws from, with a dot before its attribute that is
        the seed; empty where it has none."""
        if not isinstance(event.node, m.Call) or any(not one.name for one in event.node.keywords):
            return ""
        known = self.run.kb.rng(event.entry.apis[0])
        seeder = next((one for one in known if one.kind == "seeder" and event.rng in one.seeds), None)
        parts = (seeder.seed_arg, seeder.seed_attribute) if seeder is not None else ()
        return ".".join(one for one in parts if one)

    @on(DoubtfulDrawEvent)
    def doubtful(self, event: DoubtfulDrawEvent) -> None:
        """An RNG is drawn from that a helper may have seeded of which only the name is known."""
        rng, level, entry, node = event
        generator = self.run.kb.generators[rng]
        if self.run.guessing or rng in self.doubted or generator.rule == LIBRARY_SEED:
            return
        self.doubted[rng] = True
        self.report(
            generator.rule,
            node,
            f"`{_drawn_by(node, entry)}` draws random numbers: whether `{level.helper}` seeds "
            f"{generator.title} could not be determined",
            f"call `{generator.seed}` in the program itself, or lint it together with the source of `{level.helper}`",
            subject=rng,
            severity=Severity.ADVICE,
            entry_wide=True,
        )

    def _split(self, rng: str, level: Rng, entry: RngEntry, node: Any) -> None:
        api = _drawn_by(node, entry)
        argument = entry.unless[0].arg
        option = self._none_by_default(node, argument)
        generator = self.run.kb.generators[rng]
        aside = self.run.state.aside
        when = f" when {given_in_words(aside)}" if aside else ""
        reached = self.run.entry is not None
        title = generator.title
        seed = f" and without a {title} seed" if reached else f", and nothing in the project seeds {title}"
        unless, or_else = self._without_option(level, generator.seed)
        if runs_again(self.run):
            help = f"{or_else}: with a constant for `{argument}=` each call draws the same numbers"
            remedy = () if level.option else ("rng", rng)
        elif option:
            help = f"give `{option}` a fixed default" + ("" if level.option == option else f", or {or_else}")
            remedy = ()
        else:
            value = entry.seed_value
            help = f"pass `{argument}={value}`, or {or_else}"
            # What is more than a number may need an import.
            remedy = (argument, value) if value.isdigit() else ("rng", rng)
        severity = Severity.WARNING if level.option or option or aside or not reached else None
        why = f" by default (`{option}` is None)" if option and option != level.option else ""
        found = Split(
            Where(self.run, node, api),
            f"`{api}` without `{argument}=`{why}{seed}{unless}: the result differs between runs{when}",
            help,
            Severity.ADVICE if is_displayed(self.run, node) else severity,
            Confidence(entry.confidence) if entry.confidence != "high" else None,
            remedy,
            "" if reached else MAY_SEED + rng,
        )
        variable = kept_in(self.run, node) if self.run.importing else None
        if variable is not None and is_dead_store(self.run):
            # Another program that imports this module may read what is drawn.
            self.imported_splits.append((variable, found))
        elif self.run.only_viewed(node):
            self._note_viewed(node)
            self.viewed_splits.append(found)
        else:
            self._report_split(found)

    def _none_by_default(self, node: Any, argument: str) -> str:
        """The option whose default, None, a call is given as its seed."""
        given = (one.value for one in getattr(node, "keywords", ()) if one.name == argument)
        value = next((self.run.value_of(one) for one in given), None)
        return v.option_of(value) if value is not None and v.is_none(value) else ""

    def _note_viewed(self, node: Any) -> None:
        if self.run.frame.func is not None:
            self.viewed_in_functions.add(self.run.here(node))

    def _level_of_viewed(self, site: Site) -> Severity:
        return Severity.ADVICE if site in self.viewed_in_functions else Severity.WARNING

    def _of_viewed(self, found: Split) -> Split:
        """What is said of a draw of which the outcome is shown on a screen, where no picture of it is kept."""
        if self.keeps_figures:
            return found
        found = found._replace(severity=self._level_of_viewed(found.place.site))
        return found._replace(help=_FOR_RERUNS, remedy=()) if self.reruns else found

    def _report_split(self, found: Split) -> None:
        self.report(
            "DET109",
            found.place,
            found.message,
            found.help,
            subject=found.place.subject,
            severity=found.severity,
            confidence=found.confidence,
            remedy=found.remedy,
            unless=found.unless,
        )

    def _without_option(self, level: Rng, seed: str) -> tuple[str, str]:
        """Unless which option is given an RNG is unseeded, in words, and what else seeds it than the argument of a call."""
        first = f"call `{seed}` first"
        given = given_option(level.option)
        return self._unless(level.option), self._give_default(given, first) if given else first

    def _unless(self, option: str) -> str:
        if option == A_GPU:
            return ", unless there is no GPU"
        default = self.idle_defaults.get(option)
        if not option or default is None:
            return f", unless {given_in_words(option)}" if option else ""
        return f", unless `{option}` is given a value other than its default {default}, which seeds nothing"

    def _give_default(self, option: str, otherwise: str) -> str:
        """What to do where only an option seeds an RNG: ``otherwise`` where the seed is no value of it."""
        if any(one in self.own_seeds for one in all_of(option)):
            return otherwise
        seeding = " that is taken for a seed" if option in self.idle_defaults else ""
        return f"give {quoted(option)} a default value{seeding}"

    def _seeding_by_default(self, rng: str, option: str, otherwise: str) -> str:
        help = self._give_default(option, otherwise)
        tested = self.tested.get(rng)
        if not tested:
            return help
        test = f"test `{tested} is not None`, as `if {tested}` takes the seed 0 for none"
        # The default 0 then seeds.
        return test if self.idle_defaults.get(option) == "0" else f"{test}, and {help}"

    def _sampling(self, rng: str, level: Rng, entry: RngEntry, node: Any) -> None:
        generator = self.run.kb.generators[rng]
        what = entry.why or "what is sampled differs between runs"
        unless = self._unless(level.option)
        own = next((test.arg for test in entry.unless if test.given is True), "")
        self.report(
            "DET701",
            node,
            f"`{_drawn_by(node, entry)}` draws before {generator.title} is seeded{unless}: {what}",
            f"pass `{own}=`, or call `{generator.seed}` first" if own else f"call `{generator.seed}` first",
            subject=entry.apis[0].rpartition(".")[2],
            severity=Severity.WARNING if level.option else None,
            confidence=Confidence(entry.confidence) if entry.confidence != "high" else None,
            entry_wide=True,
            remedy=("rng", rng),
            cause=(generator.rule, rng),
        )

    @on(GlobalDrawEvent)
    def order_drawn(self, event: GlobalDrawEvent) -> None:
        """The order of a dataset is drawn in code that no entry point reaches."""
        _, level, entry, node = event
        if self.run.entry is None and entry.kind == "tf-shuffle" and level.site is None:
            self._tf_shuffle(level, entry, node)

    def _as_imported(self, seed: str) -> str:
        """A function of Keras by a name under which the program imports that."""
        if self.run.uses("keras"):
            return seed
        if self.run.uses("tf_keras"):
            return f"tf_{seed}"
        return f"tf.{seed}" if self.run.uses("tensorflow") else seed

    def _of_framework(self, generator: GeneratorEntry) -> str:
        """The call with which a framework that the program uses seeds a generator; empty where it uses none that does."""
        return next(
            (
                one.seed
                for one in generator.frameworks
                if any(self.run.uses(module) for module in one.modules)
                and (not one.versions or self.run.kb_matches(one.library, one.versions))
            ),
            "",
        )

    def _graph_seed(self, seed: str) -> str:
        """The call that seeds a graph in programs that build graphs, as in TensorFlow 1; empty for others."""
        if self.run.kb_matches("tensorflow", "<2.0"):
            return f"tf.set_random_seed({seed})"
        return f"tf.compat.v1.set_random_seed({seed})" if self.run.switches.tf_graph else ""

    def _tf_shuffle(self, level: Rng, entry: RngEntry, node: Any) -> None:
        if is_dropped(self.run, node, entry.apis[0]):
            return
        name = entry.apis[0].rpartition(".")[2]
        what = " (shuffles by default)" if any(test.truthy and test.default for test in entry.when) else ""
        takes_seed = any(test.arg == "seed" for test in entry.unless)
        lacks = "without `seed=` and without" if takes_seed else "without"
        unreached = self.run.entry is None
        seed = self._graph_seed("0") or "tf.random.set_seed(0)"
        unless, or_else = self._without_option(level, seed)
        self.report(
            "DET207",
            node,
            f"`{name}`{what}{' without `seed=`' * takes_seed}: the order differs between runs of programs without a "
            "TensorFlow seed"
            if unreached
            else f"`{name}`{what} {lacks} a global TensorFlow seed{unless}: the order differs between runs",
            f"pass `seed=0`, or {or_else}" if takes_seed else or_else,
            subject=entry.apis[0],
            severity=Severity.WARNING if unreached or level.option else None,
            remedy=("seed", "0") if takes_seed else () if level.option else ("rng", "tensorflow"),
            cause=("DET104", "tensorflow", "keras"),
        )

    @on(SeedEvent)
    def seeded(self, event: SeedEvent) -> None:
        """A seeding call: its seed may differ from run to run, and it may follow a draw."""
        entry, args, node, rngs = event
        if self.run.in_worker:
            return
        value = seed_value(args, entry)
        if self._bad_seed(entry, value, args, node, rngs):
            return
        tested = truth_test(self.run, node)
        usual = _default_instead(value)
        if usual is not None and usual.option == self.run.state.aside:
            self.idle_defaults.setdefault(usual.option, partial(repr, usual.value))
        aside = self.run.state.aside
        if isinstance(value, v.Lit) and aside and value.option not in each_of(aside):
            self.own_seeds[aside] = True
        for rng in rngs:
            if tested:
                self.tested.setdefault(rng, lambda: tested)
            if not self.run.state.aside:
                again = {at[1] for at in self.borrowed.known(rng) if not self.borrowed[at]}
                if again:
                    self.seeded_again |= again
            if self.run.starting_worker:
                continue
            place = self._asked_for(rng, node)
            if place is not None and self.run.state.level(rng).level != SEEDED and self.run.entry is not None:
                seed = Late(
                    Where(self.run, node, rng),
                    _drawn_by(node, entry),
                    entry.kind == "seeder" and bool(entry.seed_arg or entry.seed_pos is not None),
                    place,
                    self._early(rng),
                    self.run.state.aside,
                    self._process(),
                )
                self.late.setdefault(rng, partial(Late, *seed))

    def _asked_for(self, rng: str, node: Any) -> Where | None:
        """The first draw on this path before a seed. Those of generators that nothing has asked for anything come later."""
        place, early = self.unseeded.get(self._own(rng)), self._early(rng)
        calls = [(one, self.in_generators.get(one.place.site)) for one in early] if place is not None else []
        waiting = [
            one for one, call in calls if call is not None and call.path and is_waiting(self.run, call, node)
        ]
        for one in waiting:
            self._forgive(one.place.site)
            self.early.pop((rng, one.place.site, one.kept))
        if not waiting or place not in [one.place for one in waiting]:
            return place
        return next((one.place for one in early if one not in waiting), None)

    @on(LateSeedEvent)
    def late_seed(self, event: LateSeedEvent) -> None:
        """What is used was drawn before a seed that has been set since: a default argument, or the weights of a model."""
        rng, entry, node, site, call = event
        draw = self.unseeded.pop(self._own(rng))
        if draw is not None:
            seed = Where(self.run, node if call is None else call, rng)
            seed.site = site
            early = (Early(draw, _drawn_by(node, entry), ""),)
            text = node_text(call, rng) if call is not None else ""
            self.late.setdefault(rng, partial(Late, seed, text, True, draw, early, self.run.state.aside))

    def _bad_seed(
        self, entry: RngEntry, value: v.Value | None, args: v.Args, node: Any, rngs: Sequence[str]
    ) -> bool:
        api, again = _drawn_by(node, entry), runs_again(self.run)
        if entry.kind == "anti-seed":
            decided, aside = own_option(self.run.options), self.run.state.noted_aside
            if decided and decided == aside:
                decided = ""
            self.report(
                "DET107",
                node,
                f"`{api}` draws a new random seed in every run{_condition(self, decided, aside)}",
                f"give {quoted(decided)} a fixed default"
                if decided
                else _FOR_ROUNDS
                if again
                else "use `manual_seed(0)` or another fixed number"
                if "torch" in api
                else "pass a fixed number",
                subject=api,
                severity=Severity.WARNING if decided or aside else None,
                remedy=() if decided else (REPEATED,) if again else ("anti-seed",),
            )
            return True
        if any(map(_of_worker, v.alternatives(value) if value is not None else ())):
            return True
        source = entropy_source(self.run, value)
        if source is not None:
            self._forgive(report_changing_seed(self, source, node, api))
            return True
        if value is not None and v.is_none(value) and entry.none_seed == "raises":
            self.needed_options.add(v.option_of(value))
            return False
        if value is not None and v.is_none(value) and entry.none_seed == "entropy":
            if entry.seed_from:
                # Whether that matters is for ``replaced_seeds`` to say.
                return not takes_over(self.run, entry)
            if any(self.run.kb.role(one, "configured") is not None for one in entry.apis):
                # The command line may give what the configuration lacks.
                name = entry.seed_arg
                message = f"`{api}` without `{name}` in the configuration draws one, and differs between runs"
                help = f"add `{name}` to the configuration"
                self.report("DET107", node, message, help, subject=api, severity=Severity.WARNING)
                return True
            option = v.option_of(value)
            why = f" by default (`{option}` is None)" if option else ""
            by_name = entry.seed_arg and entry.seed_pos is None and not entry.seed_attribute
            keyword = f"{entry.seed_arg}=" if by_name else ""
            handed = "" if option else self._handed_on(node)
            help = f"pass `{keyword}0`" if keyword else "pass a fixed number"
            if entry.seed_attribute:
                help = f"give `{entry.seed_attribute}` of `{entry.seed_arg}` a fixed number"
            if option or handed or again:
                help = f"give `{option}` a fixed default" if option else handed or _FOR_ROUNDS
            found = FromEntropy(
                Where(self.run, node, api),
                f"`{api}` without a seed{why} is seeded from OS entropy and differs between runs",
                help,
                option,
                () if option or handed else (REPEATED,) if again else ("seed", keyword),
            )
            for rng in rngs:
                self.from_entropy[rng, found.place.site] = found
            if self.run.entry is None or self.run.state.aside or list(entry.seeds) != [entry.library]:
                # What is not the function of the library that has the generator may draw itself, and where paths meet
                # of which one needs an option, the other one counts.
                self._report_entropy(found)
            return True
        return False

    @on(GlobalDrawEvent)
    def drawn_from_entropy(self, event: GlobalDrawEvent) -> None:
        """An RNG is drawn from that may have been seeded from entropy."""
        if event.level.level != MAYBE or event.level.parent:
            return
        known = self.from_entropy.known(event.rng)
        # Where paths have met, the place may be that of a seed on the other one.
        last = [key for key in known if key[1] == event.level.site]
        for key in last or known:
            self._report_entropy(self.from_entropy[key])

    def _report_entropy(self, found: FromEntropy) -> None:
        """DET107: an RNG is seeded from entropy, and drawn from."""
        self.report(
            "DET107",
            found.place,
            found.message,
            found.help,
            subject=found.place.subject,
            severity=Severity.WARNING if found.option else None,
            remedy=found.remedy,
        )

    def _handed_on(self, node: Any) -> str:
        """The remedy where the seed is an optional argument of a method: one number for all of its calls would repeat
        what they draw."""
        func = self.run.frame.func
        given = [*node.args, *(one.value for one in node.keywords)] if isinstance(node, m.Call) else []
        if func is None or func.receiver is None or len(given) != 1 or not isinstance(given[0], m.Name):
            return ""
        name, method = given[0].id, func.fn.name
        optional = {one.name for one in func.fn.params if one.default is not None}
        if name not in optional or method == "__init__":
            return ""
        return (
            f"seed only if `{name}` is not None, and pass a number the first time that `{method}` is called"
        )

    @on_method("load_state_dict", OF_ONE_MODULE, "load_weights")
    def weights_loaded(self, call: CallEvent) -> None:
        """Weights may be loaded."""
        self._restored(call.owner)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "loads-weights") is not None)
    def file_loaded(self, call: CallEvent) -> None:
        """Weights are loaded into a model that a function is given, or an object was made with."""
        role = self.run.kb.role(call.api, "loads-weights")
        if role is None or not role.more or is_meant(role, call.args, call.owner):
            for model in filled(self.run.kb, call.api, call.args, call.owner) or (None,):
                self._restored(model)

    def _restored(self, model: v.Value | None) -> None:
        self.load_order = Moment(self.run.steps)
        if not isinstance(model, (v.Inst, v.Obj)):
            self.loads_more = True
        else:
            self.restored.add(model)

    @on_method("restore", "set_weights", "from_pretrained", "load_from_checkpoint")
    def model_loaded(self, call: CallEvent) -> None:
        """A model, or all that there is, may be loaded."""
        self.loads_more = True

    @on(ObjectCallEvent)
    def layer_called(self, event: ObjectCallEvent) -> None:
        """A layer is given something."""
        self._unpickled(event.obj, event.node)
        site = made_at(event.obj)
        if site is None or (("torch", site) not in self.initial and not self._draws_when_called(event.obj)):
            return
        self._by_default([site])
        if not is_loaded(event.obj):
            self.called[site] = Moment(self.run.steps)
            self.called_unloaded.add(self._whole_model(event.obj))

    def _draws_when_called(self, layer: v.Obj) -> bool:
        """Whether a layer draws its initial weights in its first call, after this event."""
        return any(entry.kind == "init" and entry.at == "use" for entry in self.run.kb.rng(layer.api))

    def _whole_model(self, layer: v.Obj) -> v.Inst | v.Obj:
        """The outermost model of whose methods a call of a layer is a part; the layer itself where there is none."""
        for frame in self.run.stack():
            receiver = frame.func.receiver if frame.func is not None else None
            if isinstance(receiver, v.Inst) and is_model(self.run, receiver):
                return receiver
        return layer

    @on_method("forward")
    def forwarded(self, call: CallEvent) -> None:
        """A model is called by the name of its method."""
        self._unpickled(call.owner, call.node)

    def _unpickled(self, model: v.Value | None, node: Any) -> None:
        """A model is used that was loaded from a file as a whole."""
        loaded = model
        while isinstance(loaded, v.Obj) and loaded.api not in LOADING:
            # What `load(path).cuda()` gives is the model still; an item of what was loaded is something else.
            loaded = loaded.owner if loaded.api.rpartition(".")[2].isalpha() else None
        if (
            not isinstance(loaded, v.Obj)
            or self.run.state.aside
            or self.run.state.level("torch")[0] != UNSEEDED
        ):
            return
        only_weights = loaded.args.kw.get("weights_only")
        older = self.run.targets is not None and self.run.targets.may_match("torch", _LOADS_CODE)
        if not older if only_weights is None else v.truth(only_weights) is not False:
            return
        for end in ends_of(self.run, loaded.args.get("f", 0)):
            self.unpickled.setdefault(end, lambda: Where(self.run, node, "torch"))

    @on_method("predict", "predict_on_batch", "evaluate")
    def predicts(self, call: CallEvent) -> None:
        """A model of Keras is used."""
        if isinstance(call.owner, (v.Inst, v.Obj)):
            self._by_default(places_within(self.run, call.owner))

    def _by_default(self, sites: Iterable[Site]) -> None:
        """Layers that were made there are used, possibly with their initial weights if no option is given."""
        loading = where(self.run, LOADS)
        if self.run.state.aside or (loading is not None and not loading.aside):
            return
        # The layers themselves are marked as loaded also where an option has to be given for it.
        loaded = self.run.loaded_weights if loading is not None else frozenset()
        for site in sites:
            if site not in loaded:
                self.called_by_default[site] = True

    @on_method("eval", "train")
    def mode_set(self, call: CallEvent) -> None:
        """A module is put into a mode."""
        self._note_switched(call.owner)
        if isinstance(call.owner, (v.Inst, v.Obj)) and not has_model(self.run, [call.owner]):
            return
        mode = call.args.get("mode", 0)
        self.trains_parts = call.api.endswith("train") and (mode is None or v.truth(mode) is True)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "evaluates-within") is not None)
    def mode_set_within(self, call: CallEvent) -> None:
        """Modules are in evaluation mode while a block runs."""
        for one in call.args.values():
            self._note_switched(one)

    def _note_switched(self, owner: v.Value | None) -> None:
        if isinstance(owner, v.Super):
            owner = owner.receiver
        meant = list(v.alternatives(owner)) if owner is not None else [v.UNKNOWN]
        for one in meant:
            if isinstance(one, (v.Inst, v.Obj)) and has_model(self.run, [one]):
                self.switched.add(one)
                for other in others(self.run, one):
                    self.switched.add(other.value)
            else:
                self.switches_more = True

    @on_method("parameters", "named_parameters")
    def parameters_asked(self, call: CallEvent) -> None:
        """Some module is trained, or looked at."""
        if isinstance(call.owner, (v.Inst, v.Obj)):
            self.optimized.add(call.owner)

    @on_method("backward", "fit", "fit_generator", "train_on_batch", "train", "minimize", "manual_backward")
    def training(self, call: CallEvent) -> None:
        """The program may train here: by now weights have to be loaded."""
        if call.api.endswith(".train") and has_model(self.run, [call.owner]):
            # The mode of a module.
            return
        if fits_alone(self.run, call.owner):
            # The estimator of a library that trains no networks: no weights of a model are changed.
            return
        if isinstance(call.owner, (v.Inst, v.Obj)):
            self.fitted.add(call.owner)
        self._note_loaded()
        for rng in _OF_PARAMETERS:
            if self._own(rng) in self.unseeded:
                self.trained[rng] = True

    @on_method("gradient")
    def differentiated(self, call: CallEvent) -> None:
        """The gradients of a loss are computed by a tape, by the weights of which models is said."""
        if not call.api.endswith("Tape.gradient"):
            return
        asked = list(_weights_among(call.args.get("sources", 1)))
        for model in asked or (call.owner,):
            if isinstance(model, (v.Inst, v.Obj)):
                self.fitted.add(model)
        self._note_loaded()

    def _note_loaded(self) -> None:
        known, here = self.loaded, self.run.loaded_weights
        self.loaded = here if known is None else known & here
        known_aside, here_aside = self.loaded_aside, self.run.loaded_if_given
        self.loaded_aside = here_aside if known_aside is None else known_aside & here_aside

    @on_method("step", "minimize", "fit", "fit_generator", "train_on_batch")
    def stepped(self, call: CallEvent) -> None:
        """Weights are changed."""
        if not self.trains_on and trains_on(self.run, call):
            self.trains_on = True

    def also(self) -> Iterable[tuple[Listening, Callable[[Any], None]]]:
        """Functions that seed, to which something may be assigned by mistake, and methods that write."""
        names = {
            api for one in self.run.kb.rng_entries() if one.seeds and not one.assigned for api in one.apis
        }
        writing = tuple(self.run.kb.calls("writes-methods"))
        return [
            (Listening(AttributeEvent, tuple(sorted(names))), self.seed_assigned),
            (Listening(CallEvent, writing, method=True), self.keeps),
        ]

    def seed_assigned(self, event: AttributeEvent) -> None:
        """A function that seeds is assigned something: where that is no function, the call is what was meant."""
        name, value, node = event
        if not isinstance(value, v.Lit):
            return
        function, place = node.id if isinstance(node, m.Name) else name, Where(self.run, node, name)
        stmt = self.run.statement
        given = stmt.value if isinstance(stmt, m.Assign) and len(stmt.targets) == 1 else None
        seed = given.id if isinstance(given, m.Name) else repr(value.value)
        reason = f"`{function} = {seed}` assigns to the function and does not call it"
        self._not_seeded(name, Assigned(place, reason, f"{function}({seed})"))

    @on(BareNameEvent)
    def seed_named(self, event: BareNameEvent) -> None:
        """A function that seeds is named in a statement that does nothing else."""
        value, node = event
        if not isinstance(value, v.Ext) or not isinstance(node, (m.Name, m.Attr)):
            return
        name, function = self.run.kb.canonical(value.name), written(node)
        reason = f"`{function}` names the function and does not call it"
        self._not_seeded(name, Assigned(Where(self.run, node, name), reason, f"{function}(seed)"))

    def _not_seeded(self, name: str, assigned: Assigned) -> None:
        for entry in self.run.kb.rng(name):
            for generator in entry.seeds if not entry.assigned else ():
                if generator not in self.assigned:
                    self.assigned[generator] = assigned

    @on(IterationEvent)
    def iterated(self, event: IterationEvent) -> None:
        """A value is iterated."""
        self._ask_layers(event.value)

    @on(ItemEvent)
    def item(self, event: ItemEvent) -> None:
        """``owner[key]`` is read."""
        self._ask_layers(event.owner)

    def _ask_layers(self, value: v.Value) -> None:
        """Elements of a value may be called: those of ``model.layers`` are layers, also where no attribute is named."""
        if model_of_layers(self.run, value) is not None:
            self.layers_asked = True

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """The program has ended: report what was drawn without a seed, and seeds that are set after a draw."""
        for key in self.from_entropy.known():
            # Without an option that it needs the program fails: it has no run that differs from another one.
            if self.from_entropy[key].option in self.needed_options:
                self.reporter.withdraw("DET107", key[1])
        for site in self.reporter.sites("DET107"):
            # What only makes a seed is reported once.
            self.reporter.withdraw("DET106", site)
            self._forgive(site)
        for variable, found in self.imported_splits:
            if is_read(self.run, variable, outside=True):
                self._report_split(found)
        for split in self.viewed_splits:
            self._report_split(self._of_viewed(split))
        for site in self.reporter.sites("DET211"):
            # What the workers of a pool draw is reported once: generators for each item need no seed of the process.
            self._forgive(site, of_processes=True)
        if self.run.entry is None:
            return
        layers = () if self.layers_asked else self.built_later.known()
        self.idle = frozenset(
            [
                *(one for one in layers if not uses_kept(self.run, self.built_later[one])),
                *(one for one in self.imported.known() if not is_read(self.run, self.imported[one])),
            ]
        )
        late = {rng: self.late[rng] for rng in self.late.known()}
        training = trains(self.run)
        known: set[tuple[str, str]] = set()
        for rng, seed in sorted(late.items()):
            loaded = where(self.run, LOADS) is not None
            if not seed.aside and not training and loaded and (rng, "") not in self.first:
                continue
            replaced, lost = self._replaced(rng), self._lost()
            counting = {
                x.place.site: x
                for x in reversed(seed.draws)
                if x.place.site not in lost
                and (x.kind not in _REPLACEABLE or x.place.site not in replaced)
                and (x.kept is None or self._is_read(x.kept))
                # A program that only uses a model has one whose checkpoint holds all layers.
                and (self.run.trains_networks or x.kind != "head")
                and (not seed.aside or self._matters_aside(rng, x, seed.aside))
            }
            results = {at: x for at, x in counting.items() if self.keeps_figures or x.kind != "viewed"}
            counting = results or counting
            left = list(reversed(counting.values()))[:MOST_DRAWS]
            if left:
                unread = {x.place.site for x in seed.draws} - counting.keys()
                first = seed.draw if seed.draw.site not in replaced | lost | unread else left[0].place
                seed = seed._replace(draw=first, draws=tuple(left))
                level = None if results else self._level_of_viewed(first.site)
                self._late(self.run.kb.generators[rng], seed, level)
                known.add((rng, seed.aside))
                for one in left:
                    # A split before the seed is one of these draws.
                    self.reporter.withdraw("DET109", one.place.site)
        self._masks_of_unpickled(training)
        # One call may seed several generators: their draws have one remedy, and are reported once.
        generators = sorted(self.run.kb.generators.values(), key=lambda one: -len(self._seeded_with(one)))
        reported: dict[str, GeneratorEntry] = {}
        asked: set[Site] = set()
        for generator in generators:
            if generator.id in late and not late[generator.id].aside:
                continue
            others = (one for one in reported.values() if generator.id in self._seeded_with(one))
            if any(one.rule == generator.rule for one in others):
                continue
            if self._missing(generator, training, asked, known):
                reported[generator.id] = generator

    def _masks_of_unpickled(self, training: bool) -> None:
        """Report models that another program has saved as a whole, and that nothing puts into evaluation mode."""
        if training or self.switches_more or where(self.run, MODE_SET) is not None:
            return
        generator = self.run.kb.generators["torch"]
        for end in self.unpickled.known():
            self.report(
                generator.rule,
                self.unpickled[end],
                f"the model in `{end.rpartition('/')[2]}` has layers that draw random numbers whenever it is used: it is "
                "saved in training mode, and nothing puts it into evaluation mode",
                "call `eval()` on the model before it predicts",
                subject=generator.id,
                severity=Severity.WARNING,
                confidence=Confidence.MEDIUM,
                entry_wide=True,
                remedy=("eval",),
                unless=f"{IF_SAVED}{end}",
            )

    def _is_read(self, kept: Kept) -> bool:
        """Whether anything reads the variable of a module that keeps a model, or another model is made of its classes."""
        others = [variable for cls, variable in self.models.known() if cls in kept.classes]
        return any(one is None or is_read(self.run, one) for one in (kept.variable, *others))

    def _seeded_with(self, generator: GeneratorEntry) -> set[str]:
        """The generators that the call seeds which the help for this one names."""
        api = generator.seed.partition("(")[0]
        return {name for entry in self.run.kb.rng(api) for name in entry.seeds}

    def _late(self, generator: GeneratorEntry, seed: Late, severity: Severity | None) -> None:
        """DET108 stands where the first draw is; the others, and the seed, are in its flow."""
        draw = seed.draw
        api = next((one.text for one in seed.draws if one.place.site == draw.site), generator.id)
        others = [one for one in seed.draws if one.place.site != draw.site]
        steps = [_step(one.place, f"`{one.text}` draws before the seed too") for one in others]
        what = f"`{seed.text}` sets the seed here" if seed.text else "the seed is set here"
        place = draw.with_flow((*draw.flow, *steps, _step(seed.place, what)))
        # A seed at the start of the program is for a graph that is replaced.
        in_graph = bool(seed.text) and any(one.new_graph for one in seed.draws)
        before = (
            f"`{seed.text}` seeds {generator.title}: they differ"
            if seed.text
            else f"{generator.title} is seeded, when the function is defined: the default differs"
        )
        self.report(
            "DET108",
            place,
            f"`{api}` draws random numbers before {before} between runs",
            "draw in the body of the function, with None as the default"
            if not seed.text
            else f"set the seed {_IN_GRAPH}"
            if in_graph
            else f"call `{generator.seed}` {_at_start_of([seed.spawned])}"
            if seed.spawned
            else "move the seed to the start of the program"
            if seed.movable
            else f"call `{generator.seed}` at the start of the program",
            subject=generator.id,
            severity=severity,
            remedy=("graph",) if in_graph else ("process",) if seed.spawned else (),
        )

    def _weights(self, rng: str) -> tuple[First | None, First | None]:
        """The first draw that training makes matter, and the first of layers that a checkpoint may lack; without those
        over whose outcome weights are loaded."""
        weak, head = self._with_training(rng), self.first.get((rng, "head"))
        replaced = self._replaced(rng) if weak is not None or head is not None else None
        if not replaced:
            return weak, head
        initial = {key: self.initial[key] for key in self.initial.known(rng)}
        if weak is not None and weak.place.site in replaced:
            left = [one.first for (_, site), one in initial.items() if not one.head and site not in replaced]
            left += [one for one in (self.first.get((rng, "use")),) if one is not None]
            weak = min(left, key=lambda one: one.place.order, default=None)
        if head is not None and head.place.site in replaced:
            left = [one.first for (_, site), one in initial.items() if one.head and site not in replaced]
            head = min(left, key=lambda one: one.place.order, default=None)
        return weak, head

    def _with_training(self, rng: str) -> First | None:
        """The first draw that training makes matter. Where other weights are loaded on the path of the first one, on which
        the program does not train, or does not any more, it is that on a path on which it does."""
        weak, loads = self.first.get((rng, "weak")), where(self.run, LOADS)
        if weak is None or loads is None or loads.aside or not trains(self.run):
            return weak
        drawn = [self.weights_of[key] for key in self.weights_of.known(rng)]
        if all(one.first.place.order != weak.place.order for one in drawn):
            # No weight.
            return weak
        # Behind the training, a model that gets other weights is one that is only evaluated.
        loaded = self.run.loaded_weights
        here = [
            one.first for one in drawn if self.run.trains_with(one.time, later=one.first.place.site in loaded)
        ]
        behind_options = (self.first.get((rng, "weak aside")), self.first.get((rng, "use aside")))
        if not here and all(one is None for one in behind_options):
            return weak
        return min(here, key=lambda one: one.place.order, default=None)

    def _replaced(self, rng: str) -> frozenset[Site]:
        """The places of initial weights over which others had been loaded before they were used."""
        initial = {key[1]: self.initial[key] for key in self.initial.known(rng)}
        lost = self._lost() | self.restored_values()
        loaded = set(self.loaded or ())
        if not loaded or rng not in _OF_WEIGHTS:
            return lost
        of_keras = rng not in _OF_PARAMETERS
        for one in (*self.optimized, *(self.fitted if of_keras else ())):
            left = places_left(self.run, one, of_keras) if not is_loaded(one) else set[Site]()
            if left is None:
                return lost
            loaded -= left
        left = {site for site, one in initial.items() if one.made and site not in loaded}
        if not left:
            # What is written into parameters before others are loaded is lost too.
            loaded |= {x for x, one in initial.items() if one.first.place.order < self.load_order}
        elif left - lost:
            # Layers that nothing is loaded into show what is drawn: what is written may be lost with those that are loaded.
            loaded |= {
                site
                for site, one in initial.items()
                if not one.made and one.first.place.order < self.load_order
            }
        return lost | loaded

    def _predicted(self, rng: str) -> First | None:
        """In a program that only evaluates with weights that it loads, the first draw on which predictions depend."""
        firsts = [self._never_loaded(rng), self._first(rng, "data")]
        return min((one for one in firsts if one is not None), key=lambda one: one.place.order, default=None)

    def _loaded_if_given(self, rng: str) -> tuple[First | None, str]:
        """In a program that only evaluates, and loads weights only if an option is given, the initial weights of the first
        layer that it uses without the option, with the option."""
        place = where(self.run, LOADS)
        if place is None or not place.aside or rng not in _OF_WEIGHTS:
            return None, ""
        lost = self._lost() | self.restored_values()
        keys = [key for key in self.initial.known() if key[0] == rng and key[1] not in lost]
        firsts = [self.initial[key] for key in keys if key[1] in self.called_by_default]
        # The checkpoint of a program that does not train is taken to hold the layers of the task.
        used = [one.first for one in firsts if not one.head]
        return min(used, key=lambda one: one.place.order, default=None), place.aside

    def _never_loaded(self, rng: str) -> First | None:
        """In a program that only evaluates, the initial weights of the first layer that is used and that nothing was
        loaded into, where it is known what was."""
        models = [one for one in self.restored if has_model(self.run, [one])]
        if rng not in _OF_PARAMETERS or self.loads_more or not models:
            return None
        if not all(map(is_loaded, [*models, *self.optimized])):
            # Some weights only, or they are filled one by one.
            return None
        lost = self._lost()
        initial = {key[1]: self.initial[key] for key in self.initial.known(rng)}
        used = {site for site in self.called.known() if self.called[site] > self.load_order}
        made = set(map(_model_key, models))
        for one in self.called_unloaded:
            # Another call of what makes the model, and loads it, may have left out the load.
            if not is_loaded(one) and _model_key(one) in made:
                used |= places_left(self.run, one) or set()
        left = [
            one.first
            for site, one in initial.items()
            if one.made and not one.head and site in used and site not in lost
        ]
        return min(left, key=lambda one: one.place.order, default=None)

    def _lost(self) -> frozenset[Site]:
        """The places of draws whose outcome does not matter, and of layers that nothing calls."""
        unused = frozenset[Site]()
        if self.only_optimized:
            used = frozenset(self.made_to_use.known())
            parts = {site: self.unused_in[site] for site in self.unused_in.known()}
            unused = frozenset(site for site, one in parts.items() if one and used.isdisjoint(one))
        return self.run.overwritten_draws | self.seeded_again | (self.idle or frozenset()) | unused

    def _first(self, rng: str, kind: Kind, lost: Set[Site] | None = None) -> First | None:
        """The first draw of a kind whose outcome is not overwritten before it is read: at none of the places ``lost``."""
        first = self.first.get((rng, kind))
        if first is None:
            return None
        lost = self._lost() | self.restored_values() if lost is None else lost
        if kind in _IF_GIVEN:
            lost = lost | self.run.shown_if_given
        left = [first] if first.place.site not in lost else []
        if left and len(first.place.given) <= 1:
            return first
        keys = [key for key in self.further.known() if key[:2] == (rng, kind) and key[2] not in lost]
        return _soonest([*left, *(self.further[key] for key in keys)])

    def _mask(self, rng: str) -> First | None:
        """The first draw of a layer whose model nothing puts into evaluation mode."""
        keys = self.masks.known(rng)
        if not keys or self.switches_more or where(self.run, MODE_SET) is not None:
            return None
        known = {site for one in self.switched for site in places_within(self.run, one)}
        left = [self.masks[key] for key in keys if key[1] not in known]
        return min(left, key=lambda one: one.place.order, default=None)

    def _initial_aside(self, rng: str, kind: Kind) -> First | None:
        """The first draw of initial weights behind an option, unless others are loaded over its outcome."""
        first, lost = self.first.get((rng, kind)), set[Site]()
        if first is None:
            return None
        loaded = self.loaded_aside or frozenset()
        if loaded:
            keys = [key for key in self.further.known() if key[:2] == (rng, kind)]
            places = [one.place for one in (first, *(self.further[key] for key in keys))]
            lost = {one.site for one in places if (one.site, one.aside) in loaded}
        return self._first(rng, kind, self._replaced(rng) | lost)

    def _matters_aside(self, rng: str, draw: Early, option: str) -> bool:
        """Whether a draw before a seed to which an option leads is made on that path alone, and matters there."""
        if draw.place.aside != option or (draw.place.site, option) in (self.loaded_aside or ()):
            return False
        time = self.drawn_aside.get((rng, draw.place.site))
        return draw.kind == "aside" or (time is not None and self.run.trains_with(time))

    def _missing(
        self, generator: GeneratorEntry, training: bool, asked: set[Site], known: set[tuple[str, str]]
    ) -> bool:
        """Report the first draw from a generator without a seed; whether there is one that counts. ``asked`` are the
        calls that have been asked for a seed, which seeds all that they draw from, ``known`` the generators of which it
        is reported that the seed comes after draws, with the options that lead there."""
        rng, title = generator.id, generator.title
        strong, aside, viewed = (self._first(rng, kind) for kind in ("", "aside", "viewed"))
        if self.keeps_figures:
            firsts = [one for one in (strong, viewed) if one is not None]
            strong, viewed = min(firsts, key=lambda one: one.place.order, default=None), None
        spares = [self._initial_aside(rng, "weak aside"), self._first(rng, "use aside")]
        spare = _soonest(one for one in spares if one is not None)
        lacking = self._initial_aside(rng, "head aside")
        weak, head = self._weights(rng)
        # What draws an order alone, and is asked for a generator, is reported once.
        order = self._first(rng, "order", frozenset(self.reporter.sites("DET109")))
        if strong is weak is head is None and order is not None and not self.reporter.reported("DET202"):
            # Where it is made, nothing shows that it shuffles.
            weak = order
        imported = self.run.entry is not None and self.run.entry.path in self.run.used_files
        # What options are given to is no smoke test.
        imported = imported and not (self.draws_for_command or self.takes_options)
        if imported and not training and order is not None and not self._shows_draws():
            self.reporter.doubt(generator.rule, rng)
        found: First | None
        demonstrated: First | None = None
        loading = ""
        # One command of a program may train, with a seed, and another one evaluate.
        elsewhere_only = rng in _OF_PARAMETERS and self.loaded is not None and rng not in self.trained
        asides = [one for one in (aside, spare, lacking) if one is not None]
        if not self.run.trains_networks:
            # Estimators of other libraries are fitted to what a model gives, whose checkpoint holds all layers.
            asides = [one for one in asides if one is not lacking]
        tuned = head if self.run.trains_networks else None
        # They change no weights of it either.
        changes = training and (rng not in _OF_WEIGHTS or self.run.trains_networks)
        if changes and not (elsewhere_only and strong is None and tuned is None):
            firsts = [one for one in (weak, tuned, strong) if one is not None]
            found = _soonest(firsts or asides)
        else:
            # Initial weights that are overwritten by loaded ones do not matter to a program that only evaluates.
            loads = where(self.run, LOADS) is not None
            found = strong or (None if imported else self._predicted(rng) if loads else weak) or aside
            found = found or (None if imported or loads else spare)
            if found is None and not training and not imported:
                found, loading = self._loaded_if_given(rng)
            if found is None and imported and not training and not loads and self._shows_draws():
                found = demonstrated = weak
            if found is None and training:
                # Nothing was drawn unseeded where the program trains by default: it may train behind the option.
                times = ((one, self.drawn_aside.get((rng, one.place.site))) for one in asides)
                trained = [one for one, time in times if time is not None and self.run.trains_with(time)]
                found = _soonest(trained)
        if found is None and not imported:
            found = viewed
        if any(found is one and (rng, one.place.aside) in known for one in asides):
            return True
        mask = self._mask(rng) if found is None and not imported else None
        if mask is not None:
            self.report(
                generator.rule,
                mask.place,
                f"`{mask.text}` draws random numbers whenever the model is used: nothing puts it into evaluation mode",
                "call `eval()` on the model before it predicts",
                subject=rng,
                severity=Severity.WARNING,
                confidence=Confidence.MEDIUM,
                entry_wide=True,
                remedy=("eval",),
            )
            return True
        if found is None:
            if weak is not None:
                reason = "the program does not train, and loads weights over the initial ones or is a module of others"
                self.silent(generator.rule, weak.place, reason)
            elif (of_task := head or lacking) is not None:
                reason = "no model is trained, so that the checkpoint is taken to hold the layers of the task"
                self.silent(generator.rule, of_task.place, reason)
            return False
        (
            place,
            api,
            in_worker,
            elsewhere,
            own,
            targets,
            unknown,
            new_graph,
            spawned,
            some_ranks,
            graph,
            estimator,
            each_call,
            or_worker,
        ) = found
        if own and place.site in asked:
            return False
        remedy: tuple[str, ...] = ()
        confidence = None
        # The smoke test of a module that other files import: most show that it runs, and print shapes at most.
        if imported and not self.trains_on and (where(self.run, SAVES) is None or not training):
            shows = found is demonstrated or self._shows_draws() or self._reports_rounds()
            confidence = Confidence.MEDIUM if shows else Confidence.LOW
        if confidence is None and not training and (self._stops_early() or self._asks_form_only(rng)):
            confidence = Confidence.LOW
        severity: Severity | None = None
        if found is demonstrated:
            severity = Severity.ADVICE if where(self.run, SAVES) is None else Severity.WARNING
        seed = generator.seed
        if rng == "tensorflow":
            seed = self._graph_seed("seed") or seed
        elif rng == "keras":
            seed = self._as_imported(seed)
        else:
            seed = self._of_framework(generator) or seed
        where_to_seed = generator.where or f"at the start of {place.entry}"
        kinds = [kind for kind, one in (("", strong), ("weak", weak), ("head", head)) if one is not None]
        begun = {spawned, *(key[2] for key in self.processes.known() if key[0] == rng and key[1] in kinds)}
        if begun != {""} and not generator.where:
            itself = f"{where_to_seed}, and " if "" in begun else ""
            where_to_seed = itself + _at_start_of(sorted(begun - {""}))
            remedy = ("process",)
        elif new_graph and not place.option:
            # A seed at the start of the program is for a graph that is replaced.
            where_to_seed, remedy = _IN_GRAPH, ("graph",)
        if any(found is one for one in (aside, spare, lacking)):
            message = (
                f"`{api}` draws random numbers without a {title} seed when {given_in_words(place.aside)}"
            )
            if spawned and not in_worker:
                message = (
                    f"`{api}` draws random numbers in a new process, in which {title} is not seeded, when "
                    f"{given_in_words(place.aside)}"
                )
            help = f"call `{seed}` {where_to_seed}"
            if place.option and place.option not in (A_GPU, *place.given):
                message += self._unless(place.option)
                help = self._seeding_by_default(rng, place.option, help)
            severity = Severity.WARNING
        elif elsewhere:
            message = (
                f"`{api}` draws random numbers in a graph that is not seeded: a seed is for one graph alone"
            )
            help = f"call `{seed}` {_IN_GRAPH}"
            remedy = ("graph",)
        elif place.option:
            message = f"`{api}` draws random numbers before {title} is seeded{self._unless(place.option)}"
            help = self._seeding_by_default(rng, place.option, f"call `{seed}` {where_to_seed}")
            severity = Severity.WARNING
        else:
            before = (
                f"in a worker, whose seed comes from {title}, before that" if in_worker else f"before {title}"
            )
            message = f"`{api}` draws random numbers {before} is seeded (entry point {place.entry})"
            if spawned and not in_worker:
                # The program itself may have seeded its own.
                message = (
                    f"`{api}` draws random numbers in a new process, in which {title} is not seeded "
                    f"(entry point {place.entry})"
                )
            elif some_ranks:
                message = (
                    f"`{api}` draws random numbers on all ranks, but {title} is seeded on some of them only "
                    f"(entry point {place.entry})"
                )
            help = f"call `{seed}` {where_to_seed}"
            if or_worker and not (spawned or some_ranks):
                other = self.run.kb.generators[or_worker]
                message = (
                    f"`{api}` draws random numbers, here or in a worker, before {title} and {other.title} are seeded "
                    f"(entry point {place.entry})"
                )
            if or_worker:
                help = f"call `{seed}` and `{self.run.kb.generators[or_worker].seed}` {where_to_seed}"
                remedy = remedy or (ALSO, rng, or_worker)
            if each_call and not training:
                message += ": each call of the model makes the layer, so `eval()` does not reach it"
                help = f"make the layer in `__init__`, or {help}"
            if loading:
                message += f": weights are loaded over its outcome only when {given_in_words(loading)}"
                help = f"give {quoted(loading)} a default value, or {help}"
                confidence = confidence or Confidence.MEDIUM
                severity = Severity.WARNING
            if own:
                asked.add(place.site)
                argument, _, attribute = own.partition(".")
                if attribute:
                    help = (
                        f"give `{attribute}` of `{argument}` a fixed number, "
                        f"with which `{api}` seeds all that it draws from"
                    )
                else:
                    help, remedy = (
                        f"pass `{own}=0` to `{api}`, which seeds all that it draws from",
                        (own, "0"),
                    )
            if unknown:
                message = (
                    f"`{api}` makes a model, whose class could not be resolved, before {title} is seeded: "
                    "its initial weights differ between runs"
                )
                confidence = confidence or Confidence.MEDIUM
                severity = Severity.WARNING
            if severity is None and not training and weak is not None and self._tries_a_model(rng):
                severity = Severity.WARNING
            if generator.rule == LIBRARY_SEED and not generator.seeded_with:
                message += ": seeds of other libraries do not reach it"
        if remedy == ("graph",) and graph is not None:
            # The seed goes to the start of its body, or into the configuration of the estimator.
            what = (
                "the estimator is configured here" if estimator else "the graph becomes the default one here"
            )
            step = Step(graph.path, graph.start, graph.end, what)
            place, remedy = place.with_flow((*place.flow, step)), (IN_CONFIG if estimator else IN_GRAPH,)
            if estimator:
                help = f"pass `config={_SEEDED_CONFIG}` to the estimator: it sets the seed of each graph that it builds"
        if found is viewed:
            severity = self._level_of_viewed(place.site)
            if self.reruns:
                help, remedy = _FOR_RERUNS, (REPEATED,)
        option = self.seed_option(place)
        if (
            option is not None
            and not remedy
            and help == f"call `{seed}` {where_to_seed}"
            and not generator.where
        ):
            if (option.label, rng) not in self.seeded_by_option:
                message = f"{message}: `{option.label}` does not seed it"
            call = _with_seed(seed, option.value) if option.value else seed
            behind = "after the options are parsed"
            if not option.value:
                behind = f"with the value of `{option.label}` {behind}"
            help, remedy = f"call `{call}` {behind}", (OF_OPTION, option.value if option.given else "")
            if not option.given:
                help = f"give `{option.label}` a number as its default value, and {help}"
            step = Step(
                option.site.path, option.site.start, option.site.end, f"`{option.label}` is parsed here"
            )
            place = place.with_flow((*place.flow, step))
        assigned = self.assigned.get(rng)
        if assigned is not None:
            message, help, remedy = f"{message}: {assigned.reason}", f"write `{assigned.call}`", (ASSIGNED,)
            place = place.with_flow((*place.flow, _step(assigned.place, assigned.reason)))
        self.report(
            generator.rule,
            place,
            message,
            help,
            subject=rng,
            severity=severity,
            confidence=confidence,
            targets=targets,
            entry_wide=True,
            remedy=remedy,
        )
        return True

    def _forgive(self, site: Site, of_processes: bool = False) -> None:
        """A draw that is reported by another rule, as one that only makes a seed which differs, is reported once; the next
        one takes its place. Where that rule is about processes it says nothing of draws in the program itself."""
        for other in self.further.known():
            if other[2] == site and (self.further[other].spawned or not of_processes):
                self.further.pop(other)
        for key in self.first.known():
            if self.first[key].place.site == site and (self.first[key].spawned or not of_processes):
                self.first.pop(key)
                others = [self.further[one] for one in self.further.known() if one[:2] == key]
                if others:
                    self.first[key] = min(others, key=lambda one: one.place.order)
        for rng, place in self.unseeded.items():
            if place.site == site:
                self.unseeded.pop(rng)


def _soonest(draws: Iterable[First]) -> First | None:
    """The first of some draws; one that needs fewer options comes before the others."""
    return min(draws, key=lambda one: (len(one.place.given), one.place.order), default=None)


_BOOL: Final = "builtins.bool"
_MOST_INSIDE: Final = 2
"""How deep in lists and dictionaries something is looked for that may differ from run to run."""

_ARRAYS: Final = "stores-arrays"
"""The role of what writes all that it is given beside the name of the file."""


def _written_by(run: RunView, api: str) -> RoleEntry | None:
    """What a call writes into a file."""
    kb = run.kb
    return kb.role(api, "writes-data") or kb.role(api, "saves-checkpoint") or kb.role(api, _ARRAYS)


def _data_written(run: RunView, api: str, node: Any) -> list[m.Expr]:
    """The expressions whose values a call writes into a file."""
    role = _written_by(run, api)
    if role is None or not isinstance(node, m.Call):
        return []
    if role.role == _ARRAYS:
        beside = argument_node(node, role.arg, role.pos)
        given = [*node.args, *(one.value for one in node.keywords)]
        return [one for one in given if one is not beside]
    # Without an argument it is the receiver that is written.
    written = argument_node(node, role.arg, role.pos) if role.arg else node.func
    return [written] if written is not None else []


def _calls_within(exprs: Sequence[m.Expr]) -> tuple[int, ...]:
    """Where the calls start in expressions, but for those that ask something for its form."""
    kept = [one for one in exprs if not only_form(one)]
    return tuple(one.start for one in nodes(kept) if isinstance(one, m.Call))


def _shown(run: RunView, expr: Any, value: v.Value, looks: Looks) -> Iterator[str]:
    """The variables of whose elements something printed is computed, where it is a tensor, a number out of one, or a text
    with such parts. What else is computed from tensors, such as whether two are close, may be the same in every run."""
    parts = _parts_of_text(expr)
    if parts:
        for part in parts:
            known = isinstance(part, m.Name) or (
                isinstance(part, m.Subscript) and isinstance(part.value, m.Name)
            )
            yield from _shown(run, part, run.value_of(part) if known else v.UNKNOWN, looks)
    elif isinstance(expr, m.Call) and isinstance(expr.func, m.Name) and "." in expr.func.id:
        name = expr.func.id.partition(".")[0]
        if looks(called_name(expr)) == "method":
            yield from elements(expr, looks)
        elif not only_form(expr) and _may_vary(run, run.value_of(m.Name(name, expr.start, expr.end))):
            yield name
    elif _may_vary(run, value):
        yield from elements(expr, looks)


def _gives_drawn(stmt: m.Stmt, places: Sequence[int]) -> bool:
    """Whether a function returns what is drawn at one of these places, or an element that it chooses. What other calls and
    comparisons make of it may be the same in every run."""
    if not isinstance(stmt, m.Return) or stmt.value is None or not holds(stmt.value, places):
        return False
    return not any(
        isinstance(one, m.Compare)
        or (isinstance(one, m.Call) and one.start not in places and holds(one, places))
        for one in nodes([stmt.value])
    )


def _parts_of_text(expr: Any) -> list[Any]:
    """What a text is made of."""
    if isinstance(expr, m.FString):
        return list(expr.parts)
    if isinstance(expr, m.Call) and isinstance(expr.func, m.Attr) and isinstance(expr.func.value, m.Const):
        # `"{}".format(loss)`
        return [*expr.args, *(one.value for one in expr.keywords)]
    if isinstance(expr, m.BinOp) and isinstance(expr.left, m.Const) and isinstance(expr.left.value, str):
        return list(expr.right.elts) if isinstance(expr.right, m.Seq) else [expr.right]
    return []


def _may_vary(run: RunView, value: v.Value, depth: int = _MOST_INSIDE) -> bool:
    """Whether a value is a tensor, a prediction or something else that may differ from run to run, or holds some."""
    for one in v.alternatives(value):
        if isinstance(one, v.Items | v.Mapping):
            held = one.elts if isinstance(one, v.Items) else one.items.values()
            if depth and any(_may_vary(run, inner, depth - 1) for inner in held):
                return True
        elif isinstance(one, v.Obj) and one.type == _BOOL:
            # Whether two things are close, or equal, may be the same in every run.
            continue
        elif isinstance(one, v.Obj) and one.api == v.TEXT and not is_entropy(one):
            if depth and any(_may_vary(run, inner, depth - 1) for inner in one.args.values()):
                return True
        elif is_entropy(one) or (
            isinstance(one, v.Obj)
            and (one.type == TENSOR or run.kb.role(one.api, "calls-in-inference") is not None)
        ):
            return True
    return False


def _is_command(func: v.Func | None) -> bool:
    """Whether a function takes the options of the command line, by its decorators."""
    decorators = func.decorated if func is not None else ()
    return any(isinstance(one, v.Obj) and one.api.rpartition(".")[2] == "option" for one in decorators)


def _masks(entry: RngEntry) -> bool:
    """Whether a layer or model of modules of PyTorch draws unless it is in evaluation mode."""
    return entry.kind == "dropout" and entry.draws == ["torch"] and entry.at == "use"


def _is_made_in_call(run: RunView) -> bool:
    """Whether the layer that draws was made by the running call of a model, which does not keep it for the next one: it is
    in training mode, whatever mode the model is in."""
    layer = run.used[-1] if run.used else None
    site = made_at(layer) if layer is not None else None
    if layer is None or site is None or has_been_switched(layer):
        return False
    models = [
        frame.func.receiver
        for frame in run.stack()
        if frame.func is not None and frame.func.fn.name != "__init__" and frame.env.birth < layer.birth
    ]
    held = [one for one in models if isinstance(one, v.Inst) and has_model(run, [one])]
    if not any(site in places_within(run, one) for one in held):
        return bool(held)
    functions = [frame.func.fn for frame in run.stack() if frame.func is not None]
    return any(_always_evaluates(one, layer.node) for one in functions if one.name != "__init__")


def _always_evaluates(function: m.Function, node: Any) -> bool:
    """Whether each call of a function evaluates an expression in its body: no test decides about that."""
    above: Any = node
    over = parents(function)
    while id(above) in over:
        above = over[id(above)]
        if isinstance(above, (m.If, m.Try, m.Match, m.IfExp, m.BoolOp, m.While)):
            return False
    return any(above is stmt for stmt in function.body) and above is not node


def _weights_among(value: v.Value | None) -> Iterator[v.Value]:
    """The models of Keras whose weights a value holds, or is joined from."""
    if isinstance(value, v.Member) and value.name in _VARIABLES:
        yield value.owner
    elif isinstance(value, v.Obj) and value.api.endswith(".operator"):
        for one in value.args.values():
            yield from _weights_among(one)


_VARIABLES = frozenset({"trainable_variables", "trainable_weights", "variables", "weights"})


def _may_be_loaded(run: RunView, entry: RngEntry, node: Any) -> bool:
    """Whether a checkpoint may hold the layers that an entry draws: nothing in the call says that they are new, or it is
    in a folder, where a program may have put it. One that is known to have no such layers does not."""
    if not entry.apis[0].endswith(".from_pretrained") or not isinstance(node, m.Call):
        return False
    named = node.args[0] if node.args and not isinstance(node.args[0], m.Star) else None
    given = run.value_of(named) if isinstance(named, (m.Name, m.Const)) else v.UNKNOWN
    text = given.value if isinstance(given, v.Lit) else None
    if isinstance(text, str) and _is_body(text, entry):
        return False
    if not any(one.name in _NEW_LAYERS for one in node.keywords):
        return True
    return named is not None and (not isinstance(text, str) or text.startswith((".", "/", "~")))


def _is_body(name: str, entry: RngEntry) -> bool:
    """Whether a checkpoint of this name has none of the layers of an entry."""
    return any(fnmatchcase(name, pattern) for pattern in entry.bodies)


_NEW_LAYERS = frozenset({"num_labels", "id2label", "label2id", "config", "ignore_mismatched_sizes"})
"""Arguments of ``from_pretrained`` that give a model other layers than its checkpoint has."""


def _with_seed(call: str, value: str) -> str:
    """A call that seeds, with an expression for the seed."""
    return re.sub(r"\(seed(?=[,)])", lambda _: f"({value}", call)


def _drawn_by(node: Any, entry: RngEntry) -> str:
    """What draws, as it is written. Of an entry for several names it is not known which one is meant where the call
    has no name, as `super().__init__(...)` and `table[name](...)`."""
    api = entry.apis[0]
    if isinstance(node, m.Call) and (len(entry.apis) > 1 or not api.replace(".", "").isidentifier()):
        text = written(node.func)
        return node_text(node, api if text.startswith("...") else text)
    return node_text(node, api)


def _initialises(interp: RunView, entry: RngEntry, node: Any) -> bool:
    """Whether a draw makes parameters: inside a constructor, ``self.weight.data.uniform_()``, ``init_weights``."""
    if entry.kind != "draw" or entry.library != "torch":
        return False
    name = scope(interp).rpartition(".")[2].lower()
    if name == "__init__":
        return True
    if entry.id != "torch.inplace":
        return False
    text = node_text(node, "").lower()
    return (
        any(word in text for word in ("weight", "bias", "param"))
        or "init" in name
        or "reset_param" in name
        or name.endswith("_")
    )


def _model_key(model: v.Value) -> tuple[Any, ...] | None:
    """Where a model was made; another one may have been made there too."""
    if isinstance(model, v.Inst):
        return (*class_of(model), model.node.start if model.node is not None else None)
    return made_at(model) if isinstance(model, v.Obj) else None


def entropy_source(run: RunView, value: v.Value | None) -> v.Obj | None:
    """The call that makes a seed differ from run to run, if one does. What is drawn in a worker process is reported by
    itself, where nothing seeds the generator from which the worker got its seed."""
    if value is None:
        return None
    for one in map(differing, v.alternatives(value)):
        if one is not None and not _of_worker(one):
            return _given_by(run, one)
    return None


def _given_by(run: RunView, value: v.Obj) -> v.Obj:
    """The call that gives something that differs from run to run, where a fixed number would do."""
    part = value.attrs.get(DIFFERS_BY)
    source = part if isinstance(part, v.Obj) else value
    made_of = source.attrs.get(DERIVED_FROM)
    if not isinstance(made_of, v.Obj):
        return source
    if _is_generator(run, source) or _is_generator(run, made_of):
        # What is drawn from a generator differs because its seed does.
        return _given_by(run, made_of)
    # A method of what is drawn gives that in another form: ``np.random.randint(10, size=1).item()``.
    is_method = source.api.rpartition(".")[0] in (made_of.api, made_of.type)
    return made_of if is_method and any(entry.kind == "draw" for entry in run.kb.rng(made_of.api)) else source


def _is_generator(run: RunView, value: v.Obj) -> bool:
    return any(entry.kind == "generator" for entry in run.kb.rng(value.api))


def _of_worker(value: v.Value) -> bool:
    """Whether a value is drawn in a worker process, whose generators are as seeded as that which gave it its seed."""
    return isinstance(value, v.Obj) and isinstance(value.data, Entropy) and bool(value.data.parent)


def _source_place(interp: RunView, source: v.Obj, node: Any) -> Where:
    """Where a seed comes from that differs from run to run; the node where that is not known."""
    place = Where(interp, node)
    place.site = made_at(source) or place.site
    return place


_FOR_ROUNDS = (
    "seed with a fixed number once, before the rounds, or with one that is different in each of them"
)
"""What to do about a seed that is set again and again: one number would repeat what is drawn."""


_FOR_RERUNS = (
    "keep a generator with a fixed seed in `st.session_state`, and draw from it: the script runs again for each action on "
    "its page, and a seed at its start would repeat what is shown"
)
"""The same for draws of a page that are only shown."""


def report_changing_seed(rule: Rule, source: v.Obj, node: Any, api: str) -> Site:
    """DET107: what ``api`` is seeded from differs from run to run. Gives the place of that."""
    place = _source_place(rule.run, source, node)
    option = source.data.option if isinstance(source.data, Entropy) else ""
    given = place.aside or (source.data.given if isinstance(source.data, Entropy) else "")
    unless = _condition(rule, option, given)
    why, help = "which changes every run", "use a fixed number, or make the seed an option and log it"
    unseeded = None if option or rule.run.entry is None else _unseeded(rule.run, source)
    remedy: tuple[str, ...] = (NUMBER,)
    if option:
        help = f"give `{option}` a fixed default"
    elif unseeded is not None:
        # A number in its place would leave unseeded what else is drawn, and repeat what is drawn on purpose.
        why = f"which draws before {unseeded.title} is seeded"
        help = f"call `{unseeded.seed}` {unseeded.where or f'at the start of {place.entry}'}"
        remedy = ("rng", unseeded.id)
        unless = f",{unless}" if unless else ""
        seeded_by = rule.run.state.level(unseeded.id).option
        if given_option(seeded_by):
            option, unless = seeded_by, f", unless {given_in_words(seeded_by)}"
            help = f"give {quoted(seeded_by)} a default value"
    elif _is_made_again(rule.run, source):
        help, remedy = _FOR_ROUNDS, (REPEATED,)
    first = origin(source)
    made_by = f"`{first.api}`"
    if first.api == HASHING and first.order is not None and unseeded is None and not option:
        # Which seed it is depends on the text: a stable hash keeps that.
        made_by, why = "`hash()` of text", "which differs between runs (hash randomization)"
        help, remedy = "use a stable hash as the seed: `zlib.crc32(text.encode())`", ()
    rule.report(
        "DET107",
        place,
        f"`{api}` is seeded from {made_by}, {why}{unless}",
        help,
        subject=source.api,
        severity=Severity.WARNING if option or given else None,
        entry_wide=unseeded is not None,
        remedy=remedy,
    )
    return place.site


def _condition(rule: Rule, option: str, given: str) -> str:
    """In words: unless an option is given that is not by default, or when another one is, of which some values may count
    where it is a number by default."""
    if option:
        return f" unless {given_in_words(option)}"
    if not given:
        return ""
    numbers = {one.label for one in rule.options if one.given} if isinstance(rule, SeedOptions) else set()
    return f" for some values of {quoted(given)}" if given in numbers else f" when {given_in_words(given)}"


def _is_made_again(run: RunView, source: v.Obj) -> bool:
    """Whether a seed has a new source each time that it is set, where it is set again and again."""
    if not runs_again(run):
        return False
    if run.repeating:
        return source.birth >= run.repeating
    site, function = made_at(source), run.frame.function
    return (
        site is not None
        and site.path == run.frame.file.path
        and function.start <= site.start < function.end_of_body
    )


def _unseeded(run: RunView, source: v.Obj) -> GeneratorEntry | None:
    """The generator that the whole program shares and that a seed is drawn from, where that generator has no seed."""
    draws = (one for entry in run.kb.rng(source.api) if entry.kind == "draw" for one in entry.draws)
    known = (run.kb.generators.get(one) for one in draws)
    return next((one for one in known if one is not None and one.rule != LIBRARY_SEED), None)


def _default_instead(value: v.Value | None) -> v.Lit | None:
    """The default of the option in whose place a seed is given, also as a number; None where that is None."""
    while isinstance(value, v.Obj) and value.api in _TO_NUMBERS and value.args.pos:
        value = value.args.pos[0]
    usual = value.attrs.get(OTHER_THAN) if isinstance(value, v.Obj) else None
    return usual if isinstance(usual, v.Lit) and usual.value is not None else None


_TO_NUMBERS = ("builtins.int", "builtins.abs")


def _at_start_of(processes: Sequence[str]) -> str:
    """Where to seed in what new processes run."""
    names = [one if one == UNNAMED else f"`{one}()`" for one in processes]
    runs = "run" if len(names) > 1 else "runs"
    return f"at the start of {' and '.join(names)}, which {runs} in new processes{_PER_PROCESS}"


def _step(place: Where, message: str) -> Step:
    return Step(place.site.path, place.site.start, place.site.end, message)


def _index_around(facts: m.FileFacts, at: int) -> int:
    """The innermost function around a place of a file; 0 for the body of the module."""
    return next(reversed(functions_around(facts.functions, at)), 0)
