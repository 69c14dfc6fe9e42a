"""DET401-DET405 and DET407: ops without run-to-run guarantee, judged by the target version."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from d9mlint.base.entry_report import AND, NEVER_CALLS, NO_GRADIENT, NOT_GIVEN, ON_GPU, RETURNED
from d9mlint.base.findings import SWITCHED, VARIABLE, WARNS, Confidence, Severity
from d9mlint.base.known_calls import KnownCall
from d9mlint.base.options import A_GPU
from d9mlint.checks.base import MODE, Rule, argument_node, silent
from d9mlint.checks.derivation import default
from d9mlint.checks.ops.calls import known_call
from d9mlint.checks.ops.collisions import collide
from d9mlint.checks.ops.consumers import returned_places, stops_gradient
from d9mlint.checks.ops.dimensions import has_more
from d9mlint.checks.ops.feeds import ANY_INPUT, CALLED, Feeds, feed_of, is_fixed, left_by, reached_by
from d9mlint.checks.ops.fractions import writes_fraction
from d9mlint.checks.ops.given import parameter_behind, receiver_node
from d9mlint.checks.ops.graph_losses import LOSSES, STEPS, beside_losses
from d9mlint.checks.ops.halves import reads_each_once
from d9mlint.checks.ops.parts import asks_part, leaves_last_part
from d9mlint.checks.ops.squeezed import takes_one
from d9mlint.checks.ops.tests_of_results import takes_no_gradient
from d9mlint.checks.ops.ways import Mode, ModesByWay
from d9mlint.checks.xla_devices import XlaDevices
from d9mlint.interp import values as v
from d9mlint.interp.activity import (
    CPU_BUILD,
    ENTERED,
    GRAPH_STEP,
    GRAPH_STEP_CPU,
    TF_FIT,
    TF_TAPE,
    TF_TRAIN,
    TF_TRAIN_CPU,
    TF_TRAIN_EARLY,
    TORCH_TRAIN,
    TORCH_TRAIN_CPU,
    accelerators,
    of_cpu_build,
    when_given_gpus,
    when_on,
    when_selected,
    where,
    without_gpu,
)
from d9mlint.interp.argtests import all_hold, any_holds
from d9mlint.interp.called_methods import may_be_called
from d9mlint.interp.calls import owner_types
from d9mlint.interp.context import within_cpu
from d9mlint.interp.device_names import DEVICES, selecting_option
from d9mlint.interp.devices import DEFAULT_DEVICE, MPS
from d9mlint.interp.environment import DEFAULT_BACKEND, keras_backend, of_keras, permits
from d9mlint.interp.events import (
    CallEvent,
    EndEvent,
    ItemEvent,
    ItemUpdateEvent,
    ItemWriteEvent,
    ObjectAttributeEvent,
    ObjectCallEvent,
    OperatorEvent,
)
from d9mlint.interp.library import gradients, index_updates
from d9mlint.interp.listening import Listening, on, on_call, on_call_if, on_method
from d9mlint.interp.memory import noted, remembered, remembered_table
from d9mlint.interp.naming import is_left_in_program, kept_layer, module_variable, needs_form_only
from d9mlint.interp.places import Moment, Where, running
from d9mlint.interp.shapes import MASKS, TF_TENSOR, form, has_one_element, is_number
from d9mlint.interp.state import Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.switches import CUBLAS, WARN_ONLY
from d9mlint.interp.tensors import (
    PART,
    TENSOR,
    deciding,
    detached,
    device,
    frozen,
    is_frozen_weight,
    may_be_frozen,
    no_gradient,
    stays_on_cpu,
    together,
)
from d9mlint.interp.text import call_text
from d9mlint.interp.weights_on_cpu import are_on_cpu
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.scopes import library_name
from d9mlint.ir.traversal import alike, called_name, is_none, nodes, parents
from d9mlint.knowledge.schema import OpHistory
from d9mlint.knowledge.versions import matches, parse, split

if TYPE_CHECKING:
    from d9mlint.interp.places import Replay
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge.schema import OpEntry, Other
    from d9mlint.project.modules import ModuleFile

TF_LIBRARIES = frozenset({"tensorflow", "keras"})
# Libraries that run on the GPU by themselves, without torch or TensorFlow code that shows it.
OWN_DEVICE = frozenset({"catboost", "lightgbm", "xgboost", "jax", "cupy", "cuml"})
CODES = frozenset({"DET401", "DET402", "DET403", "DET404", "DET405", "DET407"})
GET_ITEM = "torch.Tensor.__getitem__"
PRODUCT = f"{TENSOR}.__matmul__"
SET_ITEM = "torch.Tensor.__setitem__"
TAKE_ITEM = "jax.numpy.ndarray.__getitem__"
RUNS = ("forward", "call")
"""The methods that run a module or layer."""
MODE_MISSING = ("DET306", "tensorflow")
"""The finding that no op determinism is on: its remedy is that of ops which have a deterministic implementation."""
MODE_CALL = "use_deterministic_algorithms"
TRUE = ["1", "true", "True"]
"""The values with which TensorFlow takes a variable for set."""
BLOCKING = "CUDA_LAUNCH_BLOCKING"
_OF_CUDA_10_1 = ">=1.3,<1.5"
_RNN_SETTINGS = (
    (CUBLAS, (":16:8", ":4096:2", ":4096:8"), ">=1.3"),
    (BLOCKING, ("1",), _OF_CUDA_10_1),
)
"""The variables with the values that settle recurrent kernels, and in which releases: until 1.4, torch was built for CUDA
10.1."""
_OLDER_CALL = "set_deterministic"
_NAMED = "1.8"
"""The release of torch in which deterministic mode got its name."""
_MODE_RELEASES = ((1, 7), (1, 8))
"""The releases of torch that brought deterministic mode."""


_SURENESS = (Confidence.HIGH, Confidence.MEDIUM, Confidence.LOW)


class Candidate(NamedTuple):
    """An op that was called: judged at the end of the run, when modes and devices are known."""

    place: Where
    text: str
    entry: OpEntry
    past: OpHistory
    sure: Confidence
    api: str
    call: KnownCall
    device: str
    in_tape: bool
    fed: bool
    """Whether what it is given requires no grad where a model of Keras is built: the gradient does not go that far."""
    fixed: bool
    """Whether no variable takes part in the input that its gradient is of."""
    untrained: bool
    """Whether its gradient is that of a variable that it makes and does not train."""
    ranked: Site | None
    """Where positions are made that it is given, of which it is not known whether they are those of one vector."""
    beside: bool
    """Whether it is in a graph of TensorFlow whose losses what it gives is no part of."""
    instead: str
    """The remedy where a mode is switched off that the usual one needs."""
    unless: str
    """What all files of the project together may show that makes it no finding."""
    unread: bool
    """Whether nothing reads what varies of what it gives: it matters only that it may raise."""
    mode: Mode
    """Whether the deterministic mode is on, on the way that leads there."""
    by: tuple[str, str] = ("", "")
    """The argument that has one of several values, of which this one makes the call the op."""
    graded: bool = False
    """Whether nothing reads what varies of what it gives, but a gradient may be taken of the rest and go where that says."""

    def replayed(self, replay: Replay) -> Candidate:
        """The same in another run; see ``Where.replayed``."""
        return self._replace(place=self.place.replayed(replay))


class Ops(ModesByWay, XlaDevices, Feeds, Rule):
    """DET401-DET405 and DET407: all calls of ops that the knowledge base knows."""

    codes = tuple(sorted(CODES))
    candidates = noted(list[Candidate])
    called_on = remembered_table(tuple[str, int], str)
    """Where modules that are ops are made, by the file and the end of the call, and on which device all tensors are that
    they were called with, "" where that is not one that is known."""
    graded = remembered_table(tuple[str, int], bool)
    """The same of whether one was called where a gradient may be taken of what it gives."""
    called = remembered_table(tuple[str, int, str], bool)
    """The same of whether one was called as its entry, which is named, does not excuse."""
    instead = remembered_table(tuple[str, int, str], str)
    """What to do about one, by its entry, where a mode is switched off at each of its calls."""
    used = remembered_table(tuple[str, int], KnownCall)
    """What is known of all calls of a module together, by where it is made."""
    first_called = remembered_table(tuple[str, int], Where)
    """Where a function that no entry point reaches first calls one, by where it is made."""
    weighted = remembered_table(tuple[str, int], bool)
    """Where modules are called whose own weights require grad, by the file and the end of the call."""
    with_variables = remembered_table(tuple[str, int], bool)
    """The same of whether one was called with something in which a variable of TensorFlow may take part."""
    composed = noted(list[bool])
    """Models of Keras that are called with what others gave: gradients may go through them to their inputs."""
    vectors = noted(list[Site])
    """Where positions in a vector are made, which elements of that are taken by."""
    switched = remembered_table(tuple[str, int], bool)
    """Whether the variable of a layer is trained that a later assignment decides it of, by where the layer is made."""
    unfrozen = remembered(bool)
    """Whether something is trained from an assignment on of which it is not known what it holds."""
    one_thread = noted(list[bool])
    """For each call that sets the number of threads on the CPU: whether that is one."""

    watches = remembered(bool)
    """Whether gradients are taken of more than variables."""

    differentiated = remembered(int)
    """When gradients were added to a graph of TensorFlow for the last time."""

    built_on_cpu = remembered_table(tuple[str, int], bool)
    """Where parts of models of Keras are made under a device context that names the CPU."""
    compiled = remembered_table(tuple[str, int], bool)
    """Where losses are made that `compile` is given."""
    variables = remembered_table(tuple[str, int], tuple[str, str])
    """Variables of modules that hold losses and other layers, by where these are made."""
    attributes = remembered_table(tuple[str, int], tuple[str, str, frozenset[tuple[str, int]]])
    """Attributes that hold layers and the classes of what has them, by where the layers are made."""
    evaluates = remembered(bool)
    """Whether a compiled model computes its loss."""

    def also(self) -> Iterable[tuple[Listening, Callable[[Any], None]]]:
        """What decides of layers whether they are trained is data."""
        names = tuple(sorted(self.run.kb.trained_by))
        return [(Listening(ObjectAttributeEvent, names), self.training_switched)] if names else []

    def training_switched(self, event: ObjectAttributeEvent) -> None:
        """An attribute is set that decides whether what a layer or a model holds is trained."""
        off = v.truth(event.value) is False and not v.option_of(event.value) and not self.run.branching
        owner = event.owner
        if isinstance(owner, v.Obj) and any(entry.untrained for entry in self.run.kb.ops(owner.api)):
            if owner.node is not None and owner.file is not None:
                self.switched[owner.file.path, owner.node.end] = not off
        elif not off:
            self.unfrozen = True

    @on_method("compile")
    def model_compiled(self, call: CallEvent) -> None:
        """A model is given a loss, which `fit` and `evaluate` compute."""
        given = [part for value in call.args.values() for part in (value, *_parts_of(value))]
        for value in given:
            if isinstance(value, v.Obj) and value.node is not None and value.file is not None:
                self.compiled[value.file.path, value.node.end] = True
        types = owner_types(self.run, call.owner) if call.owner is not None else []
        likely = types[:1] == ["?"]
        if not likely and not any(of_keras(one) for one in types):
            return
        node = argument_node(call.node, "loss", 1) or call.node
        made = self.run.here(node)
        for name in _named(call.args.get("loss", 1)):
            for entry in self.run.kb.losses(name):
                loss = CallEvent(entry.apis[0], v.Args(), node)
                self.compiled[made.path, made.end] = True
                _candidate(self, loss, entry, likely, text=name)

    @on_method("fit", "fit_generator", "train_on_batch", "evaluate", "evaluate_generator", "test_on_batch")
    def loss_computed(self, call: CallEvent) -> None:
        """A compiled model computes its loss."""
        self.evaluates = True

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "takes-gradients") is not None)
    def watched(self, call: CallEvent) -> None:
        """Gradients are taken of what the program names."""
        self.watches = True

    @on_method(*STEPS)
    def step_made(self, call: CallEvent) -> None:
        """Gradients of a loss are added to a graph."""
        self.differentiated = Moment(self.run.steps)

    @on_call_if(lambda rule, api: rule.run.kb.role(api, "graph-gradient") is not None)
    def gradients_made(self, call: CallEvent) -> None:
        """Gradients are added to a graph."""
        self.differentiated = Moment(self.run.steps)

    @on_call("torch.set_num_threads")
    def set_threads(self, call: CallEvent) -> None:
        """The number of threads is set."""
        number = call.args.get("int", 0)
        self.one_thread.add(isinstance(number, v.Lit) and number.value == 1)

    @on(ObjectCallEvent)
    def module(self, event: ObjectCallEvent) -> None:
        """A module that was made earlier is called."""
        obj, args, node = event
        for part in _made_of(obj):
            # `nn.TransformerEncoder(layer, 2)`: where a module works, the layers that it is made of do.
            if part.node is not None and part.file is not None and self.run.kb.ops(part.api):
                self._called_on((part.file.path, part.node.end), obj, args)
        if self.run.kb.role(f"{obj.api}.fit", "trains") and not all(map(detached, args.values())):
            self.composed.add(True)
            for site in reached_by(self.run, obj, args):
                self.reached.add(site)
            for site in left_by(self.run, obj, args) if _in_tape(self.run) else ():
                self.left.add(site)
        for entry in self.run.kb.ops(obj.api):
            if entry.only_seen and entry.at == "use" and gradients.is_taken_of_layer(self.run, obj):
                looked_up = CallEvent(f"{obj.api}{CALLED}", args, node)
                repeated = all(_may_repeat(self.run, looked_up, index) for index in entry.repeats)
                if repeated and not stops_gradient(self.run, node):
                    _candidate(
                        self, looked_up, entry, likely=False, text=call_text(looked_up).removesuffix(CALLED)
                    )
        if obj.node is None or obj.file is None or not self.run.kb.ops(obj.api):
            return
        made = (obj.file.path, obj.node.end)
        if any(entry.at == "use" for entry in self.run.kb.ops(obj.api)):
            tensor, used = self.run.kb.tensor(obj.api), self.run.here(node)
            self.weighted[used.path, used.end] = (
                tensor is not None and tensor.grad == "weights" and not may_be_frozen(obj)
            )
        if self.run.entry is None and made not in self.first_called:
            here = Where(self.run, node, obj.api)
            if here.function in self.run.judged:
                self.first_called[made] = here
        known, before = known_call(self.run.kb, args), self.used.get(made)
        self.used[made] = known if before is None else before.agreed(known)
        self._called_on(made, obj, args)
        if not self.graded.get(made):
            # What is called in a graph of TensorFlow may be run later, in a context that is not seen here.
            graph = any(entry.library in TF_LIBRARIES for entry in self.run.kb.ops(obj.api))
            tensor = self.run.kb.tensor(obj.api)
            quiet = frozen(obj) or (tensor is not None and tensor.grad not in (None, "weights"))
            through = [args.get(x.arg, x.pos) for one in self.run.kb.ops(obj.api) for x in one.through]
            given = [one for one in through if one is not None] or args.values()
            still = quiet and all(map(detached, given))
            ends = no_gradient(self.run) or (not graph and returned_places(self.run, node, TENSOR) == set())
            self.graded[made] = graph or not (still or ends)
        if not self.with_variables.get(made):
            first = args.pos[0] if args.pos else None
            self.with_variables[made] = first is None or not is_fixed(self.run, first)
        if self.run.kb.role(obj.api, "no-weights") is not None:
            self._fed(obj, [feed_of(self.run, value) for value in args.values()])
        for entry in self.run.kb.ops(obj.api):
            key = (*made, entry.id)
            if entry.unless_called and not self.called.get(key):
                self.called[key] = any_holds(args, entry.unless_called) is not True
            if entry.at == "use" and entry.remedy_when:
                # What the module was made with decides; its call has other arguments at their positions.
                named = {
                    **obj.args.kw,
                    **{name: part for name, part in obj.attrs.items() if name.isidentifier()},
                }
                _offer(self, node, entry, v.Args(obj.args.pos, named, obj.args.star, obj.args.dstar))
            if entry.remedy_off or entry.remedy_on:
                text = _remedy_by_modes(self.run, entry)
                self.instead[key] = text if self.instead.get(key) in (None, text) else ""

    def _called_on(self, made: tuple[str, int], module: v.Obj, args: v.Args) -> None:
        """A layer, by where it is made, works where its weights are, or what it is called with."""
        on_cpu = are_on_cpu(self.run, module)
        device = "cpu" if on_cpu else together(self.run, deciding(self.run, module.api, args))
        self.called_on[made] = device if self.called_on.get(made) in (None, device) else ""

    @on_call_if(lambda rule, api: api.startswith("?.") or bool(rule.run.kb.ops(api.removesuffix(CALLED))))
    def call(self, call: CallEvent) -> None:
        """Something is called that may be an op."""
        used = call.api.endswith(CALLED)
        entries = self.run.kb.ops(call.api.removesuffix(CALLED))
        entries = tuple(
            entry for entry in entries if (entry.at == "use") is used and not (used and entry.only_seen)
        )
        likely = False
        if not entries and call.owner is not None and call.api.startswith("?."):
            name = call.api.rpartition(".")[2]
            # Some names are a tensor's even where nothing is known of the receiver.
            entries = tuple(
                entry for entry in self.run.kb.op_methods(name) if name.endswith("_") or entry.only_tensors
            )
            likely = True
        entries = tuple(entry for entry in entries if not entry.only_seen or _is_seen(self.run, call, entry))
        is_class = _makes_layer(call)
        if entries and is_class and self.run.unread(call.node):
            for entry in entries:
                _silent(self.run, entry, call.node, "nothing reads the variable in which it is kept")
            return
        for entry in entries:
            if (entry.losses or is_class) and not likely:
                self._keep(call.node)
            if _code(entry) in CODES:
                _candidate(self, call, entry, likely)
        if entries and is_class:
            layer = kept_layer(self.run, call.node)
            if layer is not None:
                made = self.run.here(call.node)
                file, name, classes = layer
                before = self.attributes.get((made.path, made.end))
                self.attributes[made.path, made.end] = (
                    file.path,
                    name,
                    classes | before[2] if before is not None else classes,
                )

    def _keep(self, node: Any) -> None:
        """Remember the variable of a module that a loss, or another layer, is kept in."""
        kept = module_variable(self.run, node)
        if kept is not None:
            made = self.run.here(node)
            self.variables[made.path, made.end] = kept[0].path, kept[1]

    @on(ItemWriteEvent)
    def write_item(self, event: ItemWriteEvent) -> None:
        """An element is written."""
        self._write(event.owner, event.key, event.value, event.node)

    @on(ItemUpdateEvent)
    def update_item(self, event: ItemUpdateEvent) -> None:
        """Something is added to an element."""
        self._write(event.owner, event.key, event.value, event.node)

    def _write(self, owner: v.Value, index: v.Value, value: v.Value, node: Any) -> None:
        # `x[index] = v` and `x[index] += v` with a tensor as index: index_put_ under another spelling.
        if _are_one(value):
            return
        places = [one for one in _indices(index) if _is_tensor(one)]
        if not places:
            return
        if _name_once(places):
            return
        role = self.run.kb.role(index.api, "gives-indices") if isinstance(index, v.Obj) else None
        if role is not None and isinstance(index, v.Obj) and all_hold(index.args, role.when) is True:
            return
        # Of fractions that are written where they were rounded to, several may have one place.
        several = writes_fraction(self.run, node)
        chosen = any(index_updates.has_duplicates(self.run, one) for one in places)
        stmt = self.run.statement
        if _is_tensor(owner) and isinstance(stmt, m.Assign | m.AugAssign):
            chosen = chosen or collide(self.run, _indices(index), node, [stmt.value])
        if several or _is_tensor(owner):
            known = known_call(self.run.kb, v.Args([index, value]), owner)
            call = CallEvent(SET_ITEM, v.NO_ARGS, node, owner)
            for entry in self.run.kb.ops(SET_ITEM):
                named = (several or chosen) and isinstance(stmt, m.Assign) and isinstance(node.value, m.Name)
                text = f"{node.value.id}[...] = ..." if named else ""
                _candidate(self, call, entry, likely=True, known=known, text=text, shown=several or chosen)

    @on(ItemEvent)
    def item_read(self, event: ItemEvent) -> None:
        """An element is read."""
        # The gradient of `x[index]` adds up rows that were taken several times.
        owner, index, node = event
        if isinstance(owner, v.Obj) and gradients.is_taken(self.run, owner):
            taken = CallEvent(TAKE_ITEM, v.Args([index]), node, owner)
            for entry in self.run.kb.ops(TAKE_ITEM):
                if _is_seen(self.run, taken, entry):
                    _candidate(self, taken, entry, likely=False)
        if self.run.entry is None or not _is_tensor(owner) or detached(owner):
            return
        for one in _indices(index):
            if _is_tensor(one):
                call = CallEvent(GET_ITEM, v.Args([one]), node, owner)
                for entry in self.run.kb.ops(GET_ITEM):
                    _candidate(
                        self, call, entry, likely=False, known=known_call(self.run.kb, v.Args([index]), owner)
                    )

    @on(OperatorEvent)
    def multiplied(self, event: OperatorEvent) -> None:
        """An operator is applied: the product of a sparse matrix is another op than that of a dense one."""
        if event.op != "@" or self.run.entry is None or not form(event.left).sparse:
            return
        call = CallEvent(PRODUCT, v.Args([event.right]), event.node, event.left)
        for entry in self.run.kb.ops(PRODUCT):
            if entry.when:
                _candidate(self, call, entry, likely=False)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What the program does is known."""
        _end(self)


def _may_run_layer(run: RunView, file: ModuleFile, name: str, classes: frozenset[tuple[str, int]]) -> bool:
    """Whether anything may run a layer that instances of some classes, the first of which is in a file, keep in an
    attribute."""
    if run.calls_elements(_GIVING_LAYERS, RUNS):
        return True
    if run.entry is not None:
        return run.reads_attribute(file, name, classes)
    facts = run.whole(file)
    runs_itself = any(
        one.name in RUNS and one.cls >= 0 and (file.path, facts.classes[one.cls].start) in classes
        for one in facts.functions
    )
    return not runs_itself or run.uses_attribute(file, name, classes)


def _in_one_thread(rule: Ops) -> bool:
    """Whether the program sets one thread for PyTorch's ops on the CPU: nothing races there."""
    variable = rule.run.state.env.get("OMP_NUM_THREADS")
    return (bool(rule.one_thread) and all(rule.one_thread)) or (
        variable is not None and variable.value == "1"
    )


def _is_tensor(value: v.Value) -> bool:
    return isinstance(value, v.Obj) and value.type == "torch.Tensor"


def _indices(index: v.Value) -> list[v.Value]:
    return index.elts if isinstance(index, v.Items) else [index]


def _may_repeat(run: RunView, call: CallEvent, index: Other) -> bool:
    """Whether an index of a call, as far as is seen, names elements several times: it is not made of one that names each
    once, and what is not known was given to the running function."""
    value = call.args.get(index.arg, index.pos)
    answer = index_updates.repeats(run, value)
    if answer is not None or (isinstance(value, v.Obj) and not index_updates.is_of_different(run, value)):
        return answer is not False
    func, node = run.frame.func, argument_node(call.node, index.arg, index.pos)
    return value is v.UNKNOWN and func is not None and bool(parameter_behind(run, func.fn, node))


def _is_seen(run: RunView, call: CallEvent, entry: OpEntry) -> bool:
    """Whether a call is seen to have an index that may name an element several times, and a gradient is seen to be taken
    of what it works on."""
    place = call.owner
    if place is None:
        repeated = all(_may_repeat(run, call, one) for one in entry.repeats)
    else:
        # The methods of a place of an array are called without the index, which the place has.
        of_place = isinstance(place, v.Obj) and call.api.startswith(f"{place.api}.")
        args = place.args if isinstance(place, v.Obj) and of_place else call.args
        repeated = all(index_updates.repeats(run, args.get(one.arg, one.pos)) for one in entry.repeats)
    if not repeated or (entry.passes == "backward" and stops_gradient(run, call.node)):
        return False
    inputs = [call.args.get(one.arg, one.pos) for one in entry.through] or [place]
    return entry.passes != "backward" or any(gradients.is_taken(run, one) for one in inputs)


def _writes_one_place(run: RunView, call: CallEvent, entry: OpEntry) -> bool:
    """Whether a call is seen to write different values to places of which several may well be one."""
    if not entry.overwritten:
        return False
    index, values = entry.overwritten
    places, written = (call.args.get(one.arg, one.pos) for one in entry.overwritten)
    if places is None or written is None or _are_one(written) or _name_once(_indices(places)):
        return False
    if any(index_updates.has_duplicates(run, one) for one in _indices(places)):
        return True
    target = argument_node(call.node, index.arg, index.pos)
    source = argument_node(call.node, values.arg, values.pos)
    return target is not None and source is not None and collide(run, _indices(places), target, [source])


def _name_once(indices: Iterable[v.Value]) -> bool:
    """Whether each place is named at most once: by different positions, or by a mask."""
    return any(form(one).distinct or form(one).dtype in MASKS for one in indices)


def _are_one(written: v.Value) -> bool:
    """Whether one number is written to all places: whatever is written last, it is the same."""
    return all(is_number(one) or has_one_element(form(one)) for one in v.alternatives(written))


def _code(entry: OpEntry) -> str:
    return entry.rule or ("DET403" if entry.library in TF_LIBRARIES else "DET401")


def history(interp: RunView, entry: OpEntry) -> OpHistory | None:
    """What the op does in the target version."""
    if interp.targets is None:
        return None
    for item in entry.history:
        if interp.targets.matches(entry.library, item.versions):
            return item
    if entry.library == "torch" and interp.targets.matches("torch", "<1.7") and _begins_with_the_mode(entry):
        return OpHistory(versions="<1.7", behaviour="silent", note="there is no deterministic mode")
    return None


def _deciding(interp: RunView, entry: OpEntry, past: OpHistory) -> tuple[str, str]:
    """The library with the release that decides what the op does, and how that is known: of another library that the history
    names where no release of the op's own is known. Without a release the second is empty."""
    if interp.targets is None:
        return entry.library, ""
    library, named = entry.library, split(past.versions)[0]
    if named and not interp.targets.version(library).version:
        library = named
    target = interp.targets.version(library)
    return f"{library} {target.version}".strip(), target.source if target.version else ""


def _begins_with_the_mode(entry: OpEntry) -> bool:
    """Whether a history begins with the releases that brought deterministic mode: the kernels are older."""
    bounds = [
        text for item in entry.history for operator, text in split(item.versions)[1] if operator == ">="
    ]
    return min((parse(text) for text in bounds), default=()) in _MODE_RELEASES


def _shared(interp: RunView, call: CallEvent) -> v.Args:
    """The arguments of a call, where those that are written alike are one value: windows as large as their steps."""
    if not isinstance(call.node, m.Call):
        return call.args
    pos, kw = list(call.args.pos), dict(call.args.kw)
    written: list[tuple[m.Expr, v.Value]] = []
    for at, node in enumerate(call.node.args[: len(pos)]):
        if isinstance(node, m.Star):
            return call.args
        pos[at] = _first_alike(interp, written, node, pos[at])
    for keyword in call.node.keywords:
        if keyword.name in kw:
            kw[keyword.name] = _first_alike(interp, written, keyword.value, kw[keyword.name])
    return v.Args(pos, kw, call.args.star, call.args.dstar)


def _first_alike(
    interp: RunView, written: list[tuple[m.Expr, v.Value]], node: m.Expr, value: v.Value
) -> v.Value:
    """The value of the first expression that is written like this one, and that only reads."""
    for other, known in written:
        if alike(other, node):
            return known
    if not isinstance(value, v.Lit) and _only_reads(interp, node):
        if value is v.UNKNOWN:
            value = v.Obj("an expression")
            value.something = True
        written.append((node, value))
    return value


def _only_reads(interp: RunView, node: m.Expr) -> bool:
    """Whether an expression gives the same twice: names, arithmetic, and methods that look at the form of a tensor."""
    for one in nodes([node]):
        if isinstance(one, (m.Wait, m.Walrus, m.Comp, m.Lambda)):
            return False
        if isinstance(one, m.Call):
            if interp.kb.role(f"{TENSOR}.{called_name(one)}", "looks-only") is None:
                return False
    return True


def _named(value: v.Value | None) -> list[str]:
    """The names that a value holds, each once."""
    match value:
        case v.Lit():
            return _texts(value.value)
        case v.Items():
            parts = list(value.elts)
        case v.Mapping():
            parts = list(value.items.values())
        case _:
            return []
    return list(dict.fromkeys(name for part in parts for name in _named(part)))


def _parts_of(value: v.Value) -> list[v.Value]:
    """What a list, or a mapping by names of outputs, holds."""
    if isinstance(value, v.Items):
        return list(value.elts)
    return list(value.items.values()) if isinstance(value, v.Mapping) else []


_DEEPEST = 4
"""So deep in sequences and mappings the layers are looked for that a module is made of."""


def _made_of(module: v.Obj) -> Iterator[v.Obj]:
    """The objects of libraries that one was made with, also in sequences and mappings, as where each stands beside the names
    of what it takes and gives."""
    pending = [(value, 0) for value in module.args.values()]
    while pending:
        value, depth = pending.pop()
        if isinstance(value, v.Obj):
            yield value
        elif depth < _DEEPEST:
            pending += [(part, depth + 1) for part in _parts_of(value)]


def _texts(value: Any) -> list[str]:
    """The strings that a literal holds."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in _texts(part)]
    return [value] if isinstance(value, str) else []


def _candidate(
    rule: Ops,
    call: CallEvent,
    entry: OpEntry,
    likely: bool,
    known: KnownCall | None = None,
    text: str = "",
    shown: bool = False,
) -> None:
    """Note an op that is called; ``shown`` where what is beside the call says that it varies."""
    answer = all_hold(call.args, entry.when, call.owner)
    if answer is None:
        answer = all_hold(_shared(rule.run, call), entry.when, call.owner)
    excused = any_holds(call.args, entry.unless, call.owner)
    if excused is None and takes_one(rule.run, call):
        _silent(rule.run, entry, call.node, "one element is taken in each row, as `squeeze` says")
        return
    if answer is False or excused is True or (answer is None and entry.only_seen):
        return
    if entry.passes == "backward" and reads_each_once(rule.run, call):
        # No element is read twice, but where there is no deterministic version the mode raises all the same.
        entry = msgspec.structs.replace(entry, default_mode="deterministic")
    if answer is None and has_more(rule.run, call, entry):
        _silent(rule.run, entry, call.node, "its input has more than one dimension")
        return
    if answer is None and call.args.dstar:
        # What hands `*args, **kwargs` on is written for the arguments that most callers give.
        if all_hold(v.Args(call.args.pos, call.args.kw), entry.when, call.owner) is False:
            _silent(rule.run, entry, call.node, "it would need an argument that only `**kwargs` may hold")
            return
    if rule.run.entry is None and (answer is None or excused is None):
        # Nobody is seen to pass anything else than what a parameter stands for by default.
        usual = _by_default(rule.run, call)
        left_out = all_hold(usual, entry.when, call.owner) is False
        if left_out or any_holds(usual, entry.unless, call.owner) is True:
            _silent(
                rule.run,
                entry,
                call.node,
                "the default of a parameter excludes it, and no other value is seen",
            )
            return
    if call.base_of is not None and _runs_otherwise(call.base_of.cls):
        _silent(
            rule.run, entry, call.node, "the class that is derived from it has its own `forward` or `call`"
        )
        return
    if entry.only_env and permits(rule.run, entry.only_env) is not True:
        _silent(rule.run, entry, call.node, f"it holds only with {_listed(entry.only_env)}")
        return
    if entry.library in TF_LIBRARIES and of_keras(call.api) and keras_backend(rule.run) != DEFAULT_BACKEND:
        _silent(rule.run, entry, call.node, "the backend of Keras is not TensorFlow, or may be another")
        return
    if entry.library in TF_LIBRARIES and _only_predicts(call):
        _silent(rule.run, entry, call.node, "the layer is called with `training=False`")
        return
    returned: set[int] | None = None
    if entry.passes == "backward":
        if entry.library == "torch" and _writes_out(rule.run, call):
            reason = "only its backward pass varies, and what is written into `out=` has none"
            _silent(rule.run, entry, call.node, reason)
            return
        if no_gradient(rule.run):
            reason = "only its backward pass varies, and gradients are switched off here"
            _silent(rule.run, entry, call.node, reason)
            return
        of_tf = entry.library in TF_LIBRARIES
        if entry.library not in OWN_DEVICE:
            returned = returned_places(rule.run, call.node, TF_TENSOR if of_tf else TENSOR)
        if returned is not None and not returned:
            reason = "only its backward pass varies, and no gradient comes back to its result"
            _silent(rule.run, entry, call.node, reason)
            return
        here = rule.run.here(call.node)
        weighted = entry.at == "use" and rule.weighted.get((here.path, here.end))
        if not of_tf and not weighted and _needs_no_gradient(rule.run, call, entry):
            reason = "only its backward pass varies, and its input does not require grad"
            _silent(rule.run, entry, call.node, reason)
            return
    if entry.graded:
        asked = asks_part(rule.run, call.node, entry.parts, entry.graded)
        if asked is False:
            _silent(rule.run, entry, call.node, f"nothing is computed from `{entry.graded}`")
            return
        shown = shown or asked is True
    fixed = (
        entry.library in TF_LIBRARIES
        and entry.passes == "backward"
        and _without_variables(rule.run, call, entry)
    )
    if _excluded(rule.run, entry):
        _silent(rule.run, entry, call.node, "the program excludes the kernel that varies")
        return
    if entry.passes == "backward" and _is_beside_training(rule.run):
        _silent(rule.run, entry, call.node, "no gradient is taken of data, and of what a metric computes")
        return
    ranked, own = _ranked(rule.run, call, entry)
    if ranked is not None and own:
        rule.vectors.add(ranked)
        _silent(rule.run, entry, call.node, "a vector is taken in the order of its elements, each once")
        return
    shown = shown or _writes_one_place(rule.run, call, entry)
    past = history(rule.run, entry)
    if past is None or past.behaviour == "deterministic":
        _silent(rule.run, entry, call.node, _in_version(rule.run, entry, past))
        return
    sure = Confidence.HIGH
    if (
        (not entry.static and not shown)
        or entry.confidence == "low"
        or not entry.practical
        or (answer is None and entry.if_unknown == "low")
        or (excused is None and _if_not_excused(rule.run, call, entry) == "low")
    ):
        sure = Confidence.LOW
    elif (
        likely
        or answer is None
        or excused is None
        or entry.confidence == "medium"
        or _likely_only(call.owner)
    ):
        sure = Confidence.MEDIUM
    known = known or known_call(rule.run.kb, call.args, call.owner)
    where_ = Where(rule.run, call.node, call.api)
    device = _device(rule.run, call)
    if device == "cpu" and entry.library in TF_LIBRARIES and _runs_later(rule.run, call):
        rule.built_on_cpu[where_.site.path, where_.site.end] = True
    forward = entry.library == "torch" and entry.passes == "forward"
    left = forward and _leaves_varying(rule.run, call, entry)
    graded = left and _may_be_graded(rule.run, call, entry)
    found = Candidate(
        where_,
        text or call_text(call),
        entry,
        past,
        sure,
        call.api,
        known,
        device,
        _in_tape(rule.run),
        entry.passes == "backward"
        and entry.library in TF_LIBRARIES
        and _needs_no_gradient(rule.run, call, entry),
        fixed,
        any_holds(call.args, entry.untrained) is True,
        ranked,
        entry.passes == "backward" and entry.library in TF_LIBRARIES and beside_losses(rule.run, call.node),
        _remedy_by_modes(rule.run, entry),
        _unless(_given(rule.run, call, entry), entry, None if _is_hook(rule.run) else returned),
        (forward and ((left and not graded) or _is_unread(rule.run, call, entry)))
        or _is_overwritten(rule.run, call, entry),
        rule.mode_here(where_, entry.library in TF_LIBRARIES),
        _chosen_by(call.args, entry) if answer is None else ("", ""),
        graded,
    )
    rule.candidates.add(found)
    if entry.at != "use" and entry.remedy_when:
        _offer(rule, call.node, entry, call.args)


def _chosen_by(args: v.Args, entry: OpEntry) -> tuple[str, str]:
    """The argument whose value decides whether a call is an op, and that value, where it is one of several."""
    for test in entry.when:
        value = args.get(test.arg, test.pos) if isinstance(test.equals, str) else None
        several = v.alternatives(value) if value is not None else ()
        if len(several) > 1 and any(isinstance(one, v.Lit) and one.value == test.equals for one in several):
            return test.arg, test.equals
    return "", ""


def _unless(given: str, entry: OpEntry, returned: set[int] | None) -> str:
    """What all files of the project together may show that makes a finding about an op false."""
    parts = [f"{NO_GRADIENT if entry.passes == 'backward' else NOT_GIVEN}{given}"] if given else []
    if returned:
        parts.append(RETURNED + ",".join(map(str, sorted(returned))))
    return AND.join(parts)


def _is_hook(run: RunView) -> bool:
    """Whether the running function is a method that a library may call: the project does not show what is done with what it
    returns."""
    func = run.frame.func
    receiver = func.receiver if func is not None else None
    return (
        func is not None and isinstance(receiver, v.Inst) and may_be_called(run, receiver.cls, func.fn.name)
    )


def _given(run: RunView, call: CallEvent, entry: OpEntry) -> str:
    """The parameters of a function that no entry point reaches whose gradient an op takes; of another op, the one that it is
    about, where that is None by default."""
    func = run.frame.func
    if (
        run.entry is not None
        or func is None
        or entry.library in TF_LIBRARIES
        or not isinstance(call.node, m.Call)
    ):
        return ""
    if entry.through:
        inputs = [argument_node(call.node, one.arg, one.pos) for one in entry.through]
    else:
        inputs = [
            receiver_node(call.node) if call.owner is not None else argument_node(call.node, "input", 0)
        ]
    names = {parameter_behind(run, func.fn, node) for node in inputs if node is not None}
    if entry.passes != "backward":
        unset = {one.name for one in func.fn.params if is_none(one.default)}
        return names.pop() if len(names) == 1 and names <= unset else ""
    return ",".join(sorted(names)) if all(names) else ""


def _remedy_by_modes(run: RunView, entry: OpEntry) -> str:
    """What to do where a mode is switched off that the remedy of an op needs, or is on that it asks for; empty where none
    is."""
    modes = run.state.modes
    for given, wanted in ((entry.remedy_off, False), (entry.remedy_on, True)):
        for name, text in given.items():
            if name in modes and modes[name].value is wanted:
                return text
    return ""


def _is_unread(run: RunView, call: CallEvent, entry: OpEntry) -> bool:
    """Whether the program reads no element that varies of what an op gives, and the op changes nothing else."""
    api, stmt = call.api.removesuffix(CALLED), run.statement
    if api.endswith("_") or entry.in_place or run.kb.tensor(api) is None or _writes_out(run, call):
        return False
    if isinstance(stmt, m.ExprStmt) and stmt.value is call.node:
        # A notebook shows what the last expression of a cell gives.
        return not run.frame.file.notebook
    if needs_form_only(run, call.node):
        return True
    if not isinstance(stmt, m.Assign) or not _only_computes(run, stmt.value, call.node):
        return False
    return run.unread(call.node) or (not run.frame.file.notebook and is_left_in_program(run, call.node))


def _is_overwritten(run: RunView, call: CallEvent, entry: OpEntry) -> bool:
    """Whether what a function of TensorFlow gives is kept in a variable that nothing reads, as where the next loss takes its
    place. A loss that the library collects is read by others."""
    stmt = run.statement
    return (
        entry.library in TF_LIBRARIES
        and entry.passes == "both"
        and call.owner is None
        and isinstance(stmt, m.Assign)
        and call.api.rpartition(".")[0].rpartition(".")[2] != LOSSES
        and _is_computed_from(run, stmt.value, call.node)
        and run.unread(stmt.value)
    )


def _is_computed_from(run: RunView, value: m.Expr, node: Any) -> bool:
    """Whether an expression is a given node, or is computed from it by functions of libraries that do nothing else."""
    function = running(run)
    above = parents(function) if function is not None else {}
    while node is not value:
        node = above.get(id(node))
        if isinstance(node, m.BinOp | m.Unary):
            continue
        if function is None or not isinstance(node, m.Call) or not isinstance(node.func, m.Name):
            return False
        name = run.kb.canonical(library_name(run.whole(run.frame.file), function, node.func.id))
        if all(run.kb.role(name, role) is None for role in ("computes", "tensor")):
            return False
    return True


def _leaves_varying(run: RunView, call: CallEvent, entry: OpEntry) -> bool:
    """Whether a function reads all of the tensors that an op gives but the last, which varies."""
    return (
        bool(entry.parts)
        and not entry.graded
        and not _writes_out(run, call)
        and leaves_last_part(run, call.node, entry.parts)
    )


def _may_be_graded(run: RunView, call: CallEvent, entry: OpEntry) -> bool:
    """Whether a gradient may be taken of the tensors that do not vary: it goes where the one says that does."""
    if no_gradient(run) or _needs_no_gradient(run, call, entry):
        return False
    return returned_places(run, call.node, TENSOR, 0) != set()


def _only_computes(run: RunView, value: m.Expr, node: Any) -> bool:
    """Whether what is called in an expression on what a node of it gives is methods of tensors that compute others."""
    methods = [one.func for one in nodes([value]) if isinstance(one, m.Call) and isinstance(one.func, m.Attr)]
    return all(
        run.kb.tensor(f"{TENSOR}.{method.name}") is not None and not method.name.endswith("_")
        for method in methods
        if liveness.gives(method.value, node)
    )


def _offer(rule: Ops, node: Any, entry: OpEntry, args: v.Args) -> None:
    """Note what to do about an op where its arguments allow more than is right for every call of it; nothing where several
    calls at one place differ in that."""
    place = rule.run.here(node)
    key = (place.path, place.end, entry.id)
    text = next((one.remedy for one in entry.remedy_when if all_hold(args, one.when) is True), "")
    rule.instead[key] = text if rule.instead.get(key) in (None, text) else ""


def _is_beside_training(run: RunView) -> bool:
    """Whether a metric is computed here, or data are prepared, by methods of a class for that."""
    for frame in run.stack():
        cls = frame.func.cls if frame.func is not None else None
        if cls is not None and any(
            run.kb.role(run.kb.canonical(base), "without-gradient") is not None
            for base in cls.external_bases()
        ):
            return True
    return False


def _ranked(run: RunView, call: CallEvent, entry: OpEntry) -> tuple[Site | None, bool]:
    """Where the positions are made by which elements are taken, if they are those of the largest or of all in their
    order; and whether they are taken of the tensor itself that was put in order, which is a vector then."""
    tests = [test for test in entry.unless if test.distinct is True]
    if not tests or not entry.through:
        return None, False
    at = call.args.get(tests[0].arg, tests[0].pos)
    if isinstance(at, v.Member) and at.name == "indices":
        at = at.owner
    elif isinstance(at, v.Obj) and at.api == PART and at.args.pos:
        at = at.args.pos[0]
    role = run.kb.role(at.api, "ranks") if isinstance(at, v.Obj) else None
    if role is None or not isinstance(at, v.Obj):
        return None, False
    of = at.args.get(role.arg, role.pos)
    taken = call.args.get(entry.through[0].arg, entry.through[0].pos)
    if of is v.UNKNOWN and taken is v.UNKNOWN:
        # Parameters that nothing is known of: they are written alike.
        first, second = (one.args[:1] if isinstance(one, m.Call) else [] for one in (at.node, call.node))
        return made_at(at), bool(first and second) and alike(first[0], second[0])
    return made_at(at), of is not None and of is taken


def _by_default(run: RunView, call: CallEvent) -> v.Args:
    """The arguments of a call, with the literals that parameters of the running function stand for by default."""
    node, args = call.node, call.args
    if not isinstance(node, m.Call) or len(node.args) != len(args.pos) or args.star:
        return args
    named = {keyword.name: keyword.value for keyword in node.keywords}
    pos = [_usual(run, value, one) for value, one in zip(args.pos, node.args, strict=True)]
    kw = {name: _usual(run, value, named.get(name)) for name, value in args.kw.items()}
    return v.Args(pos, kw)


def _usual(run: RunView, value: v.Value, node: m.Expr | None) -> v.Value:
    known = default(run, node) if value is v.UNKNOWN else None
    return value if known is None else v.Lit(known)


def _silent(interp: RunView, entry: OpEntry, place: Any, reason: str) -> None:
    """Why an op is not reported, for ``d9mlint explain``."""
    if interp.silences is not None:
        silent(interp, _code(entry), place, f"{entry.id}: {reason}")


def _in_version(interp: RunView, entry: OpEntry, past: OpHistory | None) -> str:
    """Why the op does not vary in the target version, for ``silent``."""
    if interp.targets is None or interp.silences is None:
        return ""
    version = f"{entry.library} {interp.targets.version(entry.library).version}".strip()
    return (
        f"it is deterministic in {version}" if past is not None else f"it is not known to vary in {version}"
    )


def _needs_no_gradient(run: RunView, call: CallEvent, entry: OpEntry) -> bool:
    """Whether the inputs that the op's backward pass is about require no grad, so that it does not run."""
    through = [call.args.get(one.arg, one.pos) for one in entry.through]
    if not entry.through and entry.library not in (*TF_LIBRARIES, "torch"):
        # Of which arguments it takes gradients is not known.
        return False
    if not entry.through:
        through = [call.owner if call.owner is not None else call.args.get("input", 0)]
    known = [value for value in through if value is not None and v.is_none(value) is not True]
    return bool(known) and all(detached(value) or is_frozen_weight(run, value) for value in known)


def _writes_out(run: RunView, call: CallEvent) -> bool:
    """Whether an op writes into a tensor that it is given as `out=`: PyTorch raises where a gradient would be taken."""
    out = call.args.kw.get("out")
    if out is None or v.is_none(out) is True:
        return False
    func, node = run.frame.func, argument_node(call.node, "out", None)
    if v.is_none(out) is False or func is None or not isinstance(node, m.Name):
        return True
    # A parameter that is None unless somebody gives it.
    unset = [
        one.default for one in func.fn.params if one.name == node.id and isinstance(one.default, m.Const)
    ]
    return not any(one.value is None for one in unset)


def _runs_otherwise(cls: v.Cls) -> bool:
    """Whether a class of the project runs in another way than the class of a library that it is derived from: its
    own method never asks for the one of that class."""
    for name in RUNS:
        method = cls.find(name)
        if isinstance(method, v.Func):
            return not any(isinstance(node, m.Attr) and node.name == name for node in nodes(method.fn.body))
    return False


def _without_variables(interp: RunView, call: CallEvent, entry: OpEntry) -> bool:
    """Whether no trainable variable takes part in the inputs of an op of TensorFlow that its gradient is of."""
    inputs = [call.args.get(one.arg, one.pos) for one in entry.through]
    return bool(inputs) and all(value is not None and is_fixed(interp, value) for value in inputs)


_GIVING_LAYERS = ("children", "modules", "get_submodule")
"""In the names of methods and attributes that give the layers of a module without naming them."""


def _only_fed(rule: Ops, made: tuple[str, int]) -> bool:
    """Whether a layer works on inputs of models of which no gradient is taken, and on nothing else."""
    feed = rule.fed_by.get(made)
    if feed is None or not feed.whole or rule.watches:
        return False
    if TF_TAPE in rule.run.places and not (feed.inputs and feed.inputs.issubset(rule.left)):
        # What the tape sees a model be given may depend on variables.
        return False
    return feed.inputs.isdisjoint(rule.reached) and ANY_INPUT not in set(rule.reached)


def _in_tape(interp: RunView) -> bool:
    return "tf.GradientTape" in interp.contexts


def _device(interp: RunView, call: CallEvent) -> str:
    """The device on which the op works, "" for unknown."""
    # A layer is moved with the tensors that it is made with.
    inputs = [] if _makes_layer(call) else deciding(interp, call.api, call.args, call.owner)
    found = together(interp, inputs)
    # Tensors of several devices are not used together.
    here = interp.entry is None and device(inputs) == "cpu" and any(stays_on_cpu(interp, x) for x in inputs)
    return found or ("cpu" if here or within_cpu(interp.contexts) or _by_default_on_cpu(interp) else "")


def _makes_layer(call: CallEvent) -> bool:
    """Whether a call makes an object of a class, which works when it is called."""
    return call.owner is None and v.names_class(call.api)


def _runs_later(interp: RunView, call: CallEvent) -> bool:
    """Whether a part of a model of Keras is made, which is put on a device where the model is called or trained."""
    graph = interp.switches.tf_graph or not interp.kb_matches("tensorflow", ">=2.0")
    return of_keras(call.api) and not graph and within_cpu(interp.contexts)


def _by_default_on_cpu(interp: RunView) -> bool:
    """Whether code that no entry point reaches makes the CPU the default device itself."""
    return interp.entry is None and interp.mode(DEFAULT_DEVICE).value == "cpu"


def _only_predicts(call: CallEvent) -> bool:
    training = call.args.kw.get("training")
    return isinstance(training, v.Lit) and training.value is False and not training.option


def _likely_only(owner: v.Value | None) -> bool:
    return isinstance(owner, v.Obj) and owner.likely


def _end(rule: Ops) -> None:
    mode = rule.run.mode("torch.deterministic")
    of_program = bool(mode.value or (rule.run.switches.torch_on and not mode.option))
    warned = of_program and rule.run.mode(WARN_ONLY).value is True
    unsure = mode.value is None or rule.run.switches.torch_unknown
    of_tf = rule.run.switches.tf_by_default
    by_way = where(rule.run, TF_TRAIN_EARLY) is not None
    used = accelerators(rule.run)
    # Code that no entry point reaches may be given tensors on a GPU that require gradients.
    open_world = rule.run.entry is None
    if open_world:
        unsure = False
        if rule.run.device != "cpu" and rule.run.device not in used:
            used = [rule.run.device, *used]
    by_path = rule.run.modules.by_path
    reported: set[tuple[Site, str]] = set()
    recurrent: set[tuple[object, ...]] = set()
    judged: list[tuple[Candidate, bool, str]] = []
    calls = _agreed(rule)
    trains_elsewhere = TF_TRAIN in rule.run.places and TF_TRAIN_CPU not in rule.run.places
    # Of what is said of one place for several reasons, the surest counts.
    for found in sorted(rule.candidates, key=_first_reported):
        torch_on, warns, torch_unknown = of_program, warned, unsure
        if (
            not open_world
            and (mode.value is None or found.place.aside)
            and rule.stays(found.place, found.mode)
        ):
            torch_on, warns, torch_unknown = found.mode != "off", found.mode == "warns", False
        if warns and found.entry.library != "tensorflow":
            found = found._replace(past=_when_warned(found.past))
        doubted = bool(rule.run.switches.torch_unless) and found.entry.library == "torch" and not torch_on
        if doubted and found.sure is Confidence.HIGH:
            found = found._replace(sure=Confidence.MEDIUM)
        if found.past.silenced_by and _may_be(rule.run, found.past.silenced_by, TRUE):
            found = found._replace(past=msgspec.structs.replace(found.past, behaviour="silent"))
        library = found.entry.library
        is_tf = library in TF_LIBRARIES
        tf_on = of_tf and not (found.mode == "off" and by_way and rule.stays(found.place, found.mode))
        made = (found.place.site.path, found.place.site.end)
        if found.device == "cpu" and trains_elsewhere and made in rule.built_on_cpu:
            found = found._replace(device="")
        kinds = used
        if is_tf or library in OWN_DEVICE:
            hidden = without_gpu(rule.run, "tensorflow" if is_tf else library)
            kinds = ["cuda"] if rule.run.device == "cuda" and not hidden else []
        if found.device:
            selected = selecting_option(found.device)
            there = found.device != "cpu" and rule.run.device in ("cuda", found.device)
            kinds = (["cuda" if selected else found.device]) if there else []
        # What varies wherever its library works is said of no device.
        anywhere = library in OWN_DEVICE and not found.device and "cpu" in found.entry.devices
        gpu = "" if anywhere else next((kind for kind in kinds if kind in found.entry.devices), "")
        raises_on_cpu = torch_on and found.past.behaviour == "raises" and "cpu" in found.entry.devices
        here = found.device == "cpu" or bool(selecting_option(found.device))
        on_cpu = here if found.device or used else True
        races_on_cpu = library == "torch" and on_cpu and found.entry.devices == ["cpu"]
        code = _code(found.entry)
        called_on = rule.called_on.get(made)
        if not found.device and gpu and called_on in DEVICES and called_on not in found.entry.devices:
            on = "the CPU" if called_on == "cpu" else called_on
            reason = (
                f"it varies on {', '.join(found.entry.devices)}, and it is called with tensors on {on} alone"
            )
            _silent(rule.run, found.entry, found.place, reason)
            continue
        if found.entry.passes == "backward" and not open_world and rule.graded.get(made) is False:
            reason = "only its backward pass varies, and no gradient is taken where it is called"
            _silent(rule.run, found.entry, found.place, reason)
            continue
        if rule.called.get((*made, found.entry.id)) is False:
            _silent(rule.run, found.entry, found.place, f"it is not called with {found.entry.condition}")
            continue
        if (
            found.entry.passes == "backward"
            and open_world
            and found.place.function in rule.run.called_without_gradient
        ):
            reason = "only its backward pass varies, and the function is called where no gradient is recorded"
            _silent(rule.run, found.entry, found.place, reason)
            continue
        if races_on_cpu and not gpu and _in_one_thread(rule):
            _silent(rule.run, found.entry, found.place, "the program computes in one thread on the CPU")
            continue
        if not (gpu or anywhere or raises_on_cpu or races_on_cpu):
            _silent(rule.run, found.entry, found.place, _device_reason(rule.run, found, used))
            continue
        if not is_tf and torch_unknown and code != "DET407":
            if not _is_in_both_modes(found):
                reason = "whether deterministic mode is on could not be determined"
                _silent(rule.run, found.entry, found.place, reason)
                continue
            torch_on = False
        if found.fed and TF_TAPE not in rule.run.places and not rule.composed:
            _silent(rule.run, found.entry, found.place, "no gradient is taken of the inputs of the model")
            continue
        if found.ranked is not None and found.ranked in set(rule.vectors):
            _silent(
                rule.run,
                found.entry,
                found.place,
                "its positions are those of a vector's elements, each once",
            )
            continue
        beside = found.beside and not rule.watches and _by_graph(rule.run)
        if is_tf and (beside or _outside_gradients(rule.run, found) or _after_gradients(rule, found)):
            _silent(rule.run, found.entry, found.place, "no gradient of TensorFlow is taken of it")
            continue
        if (
            is_tf
            and not open_world
            and made in rule.compiled
            and not (rule.evaluates or made in rule.called_on)
        ):
            # Whoever the model is handed to may train it.
            if where(rule.run, TF_TRAIN) is None and ENTERED not in rule.run.places:
                _silent(
                    rule.run,
                    found.entry,
                    found.place,
                    "the model that is compiled with it is neither trained nor evaluated",
                )
                continue
        kept = rule.variables.get(made) if made not in rule.called_on and made not in rule.compiled else None
        if kept is not None and not open_world and not rule.run.reads_variable(by_path[kept[0]], kept[1]):
            _silent(rule.run, found.entry, found.place, "nothing that runs reads the variable that holds it")
            continue
        layer = rule.attributes.get(made) if made not in rule.used else None
        if open_world and rule.run.kb.role(found.api, "takes-inputs") is not None:
            # A loss may be there for whoever trains the module.
            layer = None
        if layer is not None and not _may_run_layer(rule.run, by_path[layer[0]], *layer[1:]):
            _silent(rule.run, found.entry, found.place, "nothing reads the attribute that holds the layer")
            continue
        # The gradient of a layer without weights is that of what it is called with.
        fed_constants = (
            is_tf
            and found.entry.passes == "backward"
            and rule.with_variables.get(made) is False
            and rule.run.kb.role(found.api, "no-weights") is not None
        )
        if is_tf and found.entry.passes == "backward" and _only_fed(rule, made):
            _silent(rule.run, found.entry, found.place, "no gradient is taken of the inputs of the model")
            continue
        if found.entry.untrained and not _trains(rule, found, made):
            reason = "only its backward pass varies, and the layer is made not to train"
            _silent(rule.run, found.entry, found.place, reason)
            continue
        if (found.fixed or fed_constants) and not rule.watches:
            _silent(
                rule.run,
                found.entry,
                found.place,
                "only its backward pass varies, and no variable takes part in its input",
            )
            continue
        if any(_may_be(rule.run, name, values) for name, values in found.entry.unless_env.items()):
            names = ", ".join(found.entry.unless_env)
            _silent(rule.run, found.entry, found.place, f"the environment makes it deterministic: {names}")
            continue
        if _excluded(rule.run, found.entry):
            # A module is made before it is used.
            _silent(rule.run, found.entry, found.place, "the program excludes the kernel that varies")
            continue
        if found.entry.library == "jax" and rule.has_cpu_build():
            _silent(rule.run, found.entry, found.place, "the project asks for the build of JAX for the CPU")
            continue
        if found.place.aside == A_GPU and rule.run.device != "cpu" and "cpu" not in found.entry.devices:
            _silent(rule.run, found.entry, found.place, "it runs only where no GPU is found")
            continue
        if found.entry.only_seen and not rule.uses_gpu():
            _silent(rule.run, found.entry, found.place, "the program is not seen to run on a GPU")
            continue
        if found.past.switch and (not tf_on or rule.run.switches.tf_patched):
            # Without any switch DET306 speaks; the patch is the one switch that such ops need.
            _silent(rule.run, found.entry, found.place, "DET306 reports that no deterministic mode is on")
            continue
        training = where(rule.run, TF_TRAIN if is_tf else TORCH_TRAIN)
        if training is None and not gpu:
            training = where(rule.run, TORCH_TRAIN_CPU)
        if (
            found.entry.passes == "backward"
            and training is None
            and library not in OWN_DEVICE
            and not open_world
        ):
            reason = "only its backward pass varies, and the program is not seen to train on this device"
            _silent(rule.run, found.entry, found.place, reason)
            continue
        if found.entry.passes == "backward" and takes_no_gradient(rule.run, found.place.site.path):
            reason = "only its backward pass varies, and it is in a test that takes no gradient"
            _silent(rule.run, found.entry, found.place, reason)
            continue
        if found.graded and training is None and not open_world:
            found = found._replace(unread=True)
        if code == "DET405":
            # One setting is for all layers: those that one function builds are reported as one.
            place = found.place.scope or str(found.place.site.start)
            built = (found.place.site.path, place, found.text, found.sure, found.unread)
            if built in recurrent:
                continue
            recurrent.add(built)
        instead = found.instead or rule.instead.get((*made, found.entry.id)) or ""
        found = found._replace(call=calls[found.place.site, found.entry.id], instead=instead)
        of_module = found.place.function[1] == 0 and found.place.function not in rule.run.judged
        if open_world and of_module and made in rule.first_called:
            # A module makes it, which programs run, for functions that none of them reaches.
            if found.entry.passes == "backward" and rule.graded.get(made) is False:
                _silent(rule.run, found.entry, found.place, "no gradient is taken where it is called")
                continue
            found = found._replace(place=rule.first_called[made])
        judged.append((found, tf_on if is_tf else torch_on, gpu))
    for found, torch_on, gpu, by_value in _by_value(rule.run, judged):
        _judge(rule, found, torch_on, gpu, reported, by_value)


def _by_value(
    run: RunView, judged: list[tuple[Candidate, bool, str]]
) -> Iterator[tuple[Candidate, bool, str, str]]:
    """Ops that are to be reported, those as one of which a call is one by the value of an argument: of these the one of
    which least is to be said, with the remedies by that value where they differ."""
    groups: dict[Any, list[tuple[Candidate, bool, str]]] = {}
    for one in judged:
        found, on, _ = one
        key = (found.place.site, found.text, _code(found.entry), found.by[0])
        groups.setdefault(key if found.by[0] and not on else (len(groups),), []).append(one)
    for several in groups.values():
        remedies: dict[str, list[str]] = {}
        for found, on, _ in several:
            remedy = found.instead or _remedy(run, found.entry, found.past, on)
            remedies.setdefault(remedy, []).append(f'"{found.by[1]}"')
        least = min(several, key=lambda one: one[0].past.behaviour == "raises")
        by = (f"with {', '.join(dict.fromkeys(values))}, {_lower(text)}" for text, values in remedies.items())
        argument = least[0].by[0]
        by_value = (
            ""
            if len(remedies) == 1
            else f"Depends on `{argument}`: {'; '.join(one.rstrip('.') for one in by)}."
        )
        yield (*least, by_value)


def _trains(rule: Ops, found: Candidate, made: tuple[str, int]) -> bool:
    """Whether the variable of a layer is trained, or may be."""
    decided = rule.switched.get(made)
    return (not found.untrained if decided is None else decided) or bool(rule.unfrozen)


def _first_reported(found: Candidate) -> tuple[int, int]:
    """By what candidates are sorted: of those that are reported as one, that which is surest and needs fewest options."""
    return _SURENESS.index(found.sure), len(found.place.given)


def _when_warned(past: OpHistory) -> OpHistory:
    """What an op does where deterministic mode only warns of what has no deterministic implementation."""
    if past.behaviour == "raises" or past.strict_only:
        return msgspec.structs.replace(past, behaviour="silent")
    return past


def _is_in_both_modes(found: Candidate) -> bool:
    """Whether an op varies without deterministic mode, and differs or raises with it too. What is reported of recurrent
    layers does not depend on the mode."""
    varies = found.entry.default_mode != "deterministic" and found.past.behaviour in ("raises", "silent")
    return varies or _code(found.entry) == "DET405"


def _agreed(rule: Ops) -> dict[tuple[Site, str], KnownCall]:
    """What is known of all calls that are made at one place, with what the modules that they make are called with."""
    agreed: dict[tuple[Site, str], KnownCall] = {}
    for found in rule.candidates:
        at = (found.place.site, found.entry.id)
        agreed[at] = agreed[at].agreed(found.call) if at in agreed else found.call
    uses = {at: rule.used.get((at[0].path, at[0].end)) for at in agreed}
    return {at: msgspec.structs.replace(call, use=uses[at]) for at, call in agreed.items()}


def _device_reason(interp: RunView, found: Candidate, used: list[str]) -> str:
    """Why no device on which the op varies is used, for ``silent``."""
    devices = ", ".join(found.entry.devices)
    if interp.device == "cpu":
        return f"it varies on {devices}, and the configuration says that the program runs on the CPU"
    if found.device:
        return f"it varies on {devices}, and its inputs are on {found.device}"
    return f"it varies on {devices}, and the program is seen to use {', '.join(used) or 'the CPU only'}"


def _outside_gradients(interp: RunView, found: Candidate) -> bool:
    """Whether no gradient is taken of an op of TensorFlow: the program takes gradients in tapes alone, and it is
    in none."""
    # A layer is made in one place and called in others.
    if found.entry.passes != "backward" or found.in_tape or v.names_class(found.api):
        return False
    if ENTERED in interp.places or interp.switches.tf_graph:
        return False
    return TF_TAPE in interp.places and TF_FIT not in interp.places


def _after_gradients(rule: Ops, found: Candidate) -> bool:
    """Whether an op is added to a graph of TensorFlow 1 after all gradients of what was in it."""
    if found.entry.passes != "backward" or not rule.differentiated:
        return False
    if not rule.run.kb_matches("tensorflow", "<2.0"):
        return False
    return _by_graph(rule.run) and found.place.order > rule.differentiated


def _by_graph(interp: RunView) -> bool:
    """Whether nothing but the steps of a graph of TensorFlow 1 trains."""
    if TF_TAPE in interp.places or ENTERED in interp.places:
        return False
    steps = [interp.places[one] for one in (GRAPH_STEP, GRAPH_STEP_CPU) if one in interp.places]
    fits = interp.places.get(TF_FIT)
    return fits is None or any(fits is one for one in steps)


def _listed(variables: dict[str, list[str]]) -> str:
    return ", ".join(f"{name}={' or '.join(values)}" for name, values in variables.items())


def _if_not_excused(run: RunView, call: CallEvent, entry: OpEntry) -> str:
    """The confidence of a finding where nobody knows whether one of ``unless`` holds."""
    if entry.unless_unknown != "medium-if-given":
        return entry.unless_unknown or entry.if_unknown
    func = run.frame.func
    if run.entry is not None or func is None or not isinstance(call.node, m.Call):
        return "low"
    node = receiver_node(call.node) if call.owner is not None else argument_node(call.node, "input", 0)
    return "medium" if parameter_behind(run, func.fn, node, same_type=True) else "low"


def _excluded(interp: RunView, entry: OpEntry) -> bool:
    """Whether a mode that is on, or one that is switched off, keeps the kernel from running."""
    modes = interp.state.modes
    off = any(name in modes and modes[name].value is False for name in entry.unless_off)
    return off or any(interp.mode(name).value for name in entry.unless_mode)


def _may_be(interp: RunView, variable: str, values: list[str]) -> bool:
    """Whether an environment variable has, or may have, one of the values, which may contain ``*``."""
    setting = interp.state.env.get(variable)
    if setting is None:
        return False
    return setting.value is None or any(fnmatchcase(str(setting.value), value) for value in values)


def _has_cpu_build(rule: Ops, library: str) -> bool:
    """Whether the project requires the distribution of a library that is built for the CPU, and nothing speaks of a GPU."""
    if library == "jax":
        return of_cpu_build(rule.run, "jax") and not rule.uses_gpu()
    return library in TF_LIBRARIES and of_cpu_build(rule.run, "tensorflow")


def _as_named(found: Candidate) -> str:
    """What is called as it is written, with the name of the library's op where that differs."""
    api = found.api.removesuffix(CALLED)
    last = api.rpartition(".")[2]
    same = last == found.text or last.startswith("__") or not found.text.isidentifier()
    return f"`{found.text}`" if same else f"`{found.text}` (`{api}`)"


def _judge(
    rule: Ops, found: Candidate, on: bool, gpu: str, reported: set[tuple[Site, str]], by_value: str
) -> None:
    """Report an op that varies, or that raises because the mode is on. Of several ops that one name may stand for, one
    is reported where the same is to be said of each. ``by_value`` is the help where a value decides which one it is."""
    entry, past = found.entry, found.past
    code = _code(entry)
    strict = history(rule.run, entry) or past
    raises = strict.behaviour == "raises"
    varies = raises and entry.default_mode != "deterministic" and found.sure is not Confidence.LOW
    if not found.unread and (strict.strict_only or (on and varies)):
        rule.reporter.varies_warned()
    version, source = _deciding(rule.run, entry, past)
    # The build for the CPU has no kernel that races on a GPU.
    spare = gpu == "cuda" and not found.device and _has_cpu_build(rule, entry.library)
    severity = Severity.ADVICE if spare else Severity.WARNING
    when = _when(rule.run, found, gpu) if gpu else ""
    on_gpu = (
        f" on {entry.hardware or gpu.upper()}{when}"
        if gpu
        else " on CPU with several threads"
        if entry.devices == ["cpu"]
        else ""
    )
    blocks = False
    named = _as_named(found)
    part = {"forward": "its result", "backward": "its gradient"}.get(entry.passes, "its result and gradient")
    if code == "DET405":
        for name, values, release in _RNN_SETTINGS:
            setting = rule.run.state.env.get(name) if rule.run.kb_matches("torch", release) else None
            if setting is not None and (setting.value is None or setting.value in values):
                _silent(rule.run, entry, found.place, f"{name} is set")
                return
        blocks = rule.run.kb_matches("torch", _OF_CUDA_10_1)
        variable = BLOCKING if blocks else CUBLAS
        message = (
            f"{named} on CUDA{when} without {variable}: cuDNN's recurrent kernels may differ between runs"
        )
    elif on and past.behaviour == "raises":
        if code == "DET401":
            code = "DET402"
        severity = Severity.WARNING if when else Severity.ERROR
        argument, value = found.by
        chosen = f' with `{argument}="{value}"`' if argument else ""
        message = f"{named} {_raises(entry)}{on_gpu}{chosen} ({version})"
    elif on and past.behaviour == "deterministic_alternative" and not (_own_switch(entry) or past.switch):
        reason = "deterministic mode is on, in which the op has a deterministic implementation"
        _silent(rule.run, entry, found.place, reason)
        return
    elif entry.default_mode == "deterministic" or found.unread:
        # What it does under the mode alone counts: without it there is nothing to say.
        kept = entry.library in TF_LIBRARIES or found.sure is Confidence.LOW
        if not kept and _raises_in_mode(rule.run, entry, strict):
            options = tuple(f"`{one}`" for one in found.place.given)
            rule.reporter.spare(found.text, _remedy(rule.run, entry, past, on), options)
        reason = (
            "nothing reads what varies of its result"
            if found.unread
            else "it is deterministic unless deterministic mode is on"
        )
        _silent(rule.run, found.entry, found.place, reason)
        return
    elif on and code != "DET404":
        message = f"{named}{on_gpu}: {part} may differ between runs even in deterministic mode ({version})"
    else:
        # What a deterministic mode would change may be changed already.
        unless = rule.run.switches.torch_unless if entry.library == "torch" else ""
        message = f"{named}{on_gpu}: {part} may differ between runs ({version}){unless}"
        if past.behaviour == "raises":
            message += f"; no deterministic implementation{_raising(rule.run, entry)}"
    said = (found.place.site, message)
    if said in reported:
        return
    reported.add(said)
    targets: tuple[str, ...] = (version, source) if source else ()
    older = _older(rule.run, entry, past)
    if older:
        targets = (*targets, older)
    message += CPU_BUILD if spare else ""
    help = by_value or found.instead or _remedy(rule.run, entry, past, on)
    if on and raises and entry.default_mode == "deterministic" and rule.run.kb_matches("torch", ">=1.11"):
        help = f"{help.rstrip('.')}; or pass `warn_only=True` to `torch.{MODE_CALL}`: it is deterministic in any case"
    # The remedies of what is deterministic in deterministic mode begin with the call that switches it on.
    alternative = past.behaviour == "deterministic_alternative" and not on
    switched = alternative and help.startswith(f"Call torch.{MODE_CALL}")
    by_mode = code == "DET403" and alternative and not past.switch
    remedy: tuple[str, ...] = (SWITCHED,) if by_mode else ()
    if code == "DET405":
        remedy = () if blocks else (VARIABLE,)
        help = f"Set {BLOCKING}=1 before torch is imported." if blocks else help
    if switched:
        remedy = (MODE,) if rule.run.kb_matches("torch", "<1.11") else (MODE, WARNS)
    rule.report(
        code,
        found.place,
        message,
        help,
        subject=found.api,
        severity=severity,
        confidence=found.sure,
        targets=targets,
        op="" if by_value else entry.id,
        call=found.call,
        cause=MODE_MISSING if by_mode else (),
        remedy=remedy,
        unless=AND.join(filter(None, (_unless_on_cpu(rule.run, found, gpu), _unless_called(rule, found)))),
        raises=found.text
        if (code == "DET403" or entry.library not in TF_LIBRARIES) and _raises_in_mode(rule.run, entry, past)
        else "",
        unchanged=found.text
        if code in _OWN_PLACE and gpu != MPS and _is_unchanged(rule.run, entry, past)
        else "",
    )


def _raises_in_mode(run: RunView, entry: OpEntry, past: OpHistory) -> bool:
    """Whether an op raises in deterministic mode: in that of a newer release, where the targeted one has none."""
    if past.behaviour == "raises" or entry.library != "torch" or not run.kb_matches("torch", "<1.7"):
        return past.behaviour == "raises"
    return any(
        one.behaviour == "raises" and any(matches(one.versions, release) for release in _WITH_MODE)
        for one in entry.history
    )


def _is_unchanged(run: RunView, entry: OpEntry, past: OpHistory) -> bool:
    """Whether an op differs in PyTorch's deterministic mode as it does without it, also in the modes of newer releases,
    where the targeted one has none."""
    if entry.library in TF_LIBRARIES or entry.library in OWN_DEVICE or past.behaviour != "silent":
        return False
    return not run.kb_matches("torch", "<1.7") or all(one.behaviour == "silent" for one in entry.history)


_OWN_PLACE = ("DET401", "DET407")
"""The rules of ops that are replaced where they are called."""
_WITH_MODE = ("1.8", "1.13")
"""The first and the last release of PyTorch 1 that has the mode, under the name that it has now."""


def _unless_called(rule: Ops, found: Candidate) -> str:
    """That a layer of PyTorch is called nowhere in a program that trains nothing, where that is so."""
    made = (found.place.site.path, found.place.site.end)
    is_layer = found.entry.at != "use" and v.names_class(found.api)
    trains = any(flag in rule.run.places for flag in (TORCH_TRAIN, TORCH_TRAIN_CPU))
    idle = is_layer and not trains and made not in rule.used and rule.run.entry is not None
    return NEVER_CALLS if idle and found.entry.library not in TF_LIBRARIES else ""


def _unless_on_cpu(interp: RunView, found: Candidate, gpu: str) -> str:
    """What makes a finding false; also, in code that no entry point reaches, that its programs run on the CPU."""
    assumed = gpu and interp.entry is None and not found.device and found.entry.library == "torch"
    return AND.join(filter(None, (found.unless, ON_GPU if assumed else "")))


def _raises(entry: OpEntry) -> str:
    """What an op does in deterministic mode that has no deterministic implementation, in words."""
    if entry.library != "tensorflow":
        return "raises RuntimeError in deterministic mode"
    return (
        f"raises {'an error' if entry.default_mode == 'random' else 'UnimplementedError'} with op determinism"
    )


def _raising(run: RunView, entry: OpEntry) -> str:
    """The same behind a colon; empty where the targeted PyTorch has no such mode yet."""
    return (
        f": {_raises(entry)}" if entry.library in TF_LIBRARIES or not run.kb_matches("torch", "<1.7") else ""
    )


def _when(interp: RunView, found: Candidate, gpu: str) -> str:
    """Which option puts an op on a GPU, in words; empty where none has to be given."""
    if gpu != "cuda" and found.device:
        return when_selected(selecting_option(found.device))
    if found.entry.library in TF_LIBRARIES or found.entry.library in OWN_DEVICE:
        return when_given_gpus(interp)
    if found.device:
        return when_selected(selecting_option(found.device)) or when_given_gpus(interp)
    return when_on(interp, gpu)


def _alternatives(entry: OpEntry) -> list[str]:
    """The ranges of versions in which an op has a deterministic implementation for deterministic mode."""
    return [one.versions for one in entry.history if one.behaviour == "deterministic_alternative"]


def _for_release(interp: RunView, entry: OpEntry, past: OpHistory) -> str:
    """The part of a remedy that is for the target version, where each part says for which releases of TensorFlow it
    is: ``TF >= 2.8: this; TF 2.1-2.7: that. Older: another``. The switch of a release is none for ops that have no
    deterministic implementation in it yet; for ops that never get one, the parts name other ops."""
    first, *rest = _PART.split(entry.remedy)
    parts = list(zip(rest[::2], rest[1::2], strict=True))
    if first or not parts or interp.targets is None:
        return entry.remedy
    newer = next(iter(_alternatives(entry)), None)
    if past.behaviour in ("silent", "raises") and newer is not None:
        other = dict(parts).get(_OLDER, "use another op").strip("; .")
        release = newer.partition(",")[0].removeprefix(">=")
        return f"{other}, or use TensorFlow {release} or newer with op determinism" if release else other
    for releases, text in parts:
        if releases == _OLDER or interp.targets.matches("tensorflow", _range(releases)):
            return text.strip("; .")
    releases, text = parts[-1]
    return f"use another op, or {releases}: {text.strip('; .')}"


_OLDER = "Older"
_PART = re.compile(rf"(?:^|(?<=[;.]) )(TF >= [\d.]+|TF [\d.]+-[\d.]+|{_OLDER}): ")


def _range(releases: str) -> str:
    """``TF 2.1-2.7`` as a range of versions: all patch releases belong to the last one."""
    lowest, _, last = releases.removeprefix("TF ").removeprefix(">= ").partition("-")
    if not last:
        return f">={lowest}"
    major, minor = last.split(".")
    return f">={lowest},<{major}.{int(minor) + 1}"


def _remedy(interp: RunView, entry: OpEntry, past: OpHistory, on: bool) -> str:
    """What to do. Where the mode raises or changes nothing, it is a remedy only in the releases that have another
    algorithm."""
    remedy = _for_release(interp, entry, past) or "enable deterministic mode, or use another op"
    if MODE_CALL in remedy and not on and interp.kb_matches("torch", "<1.8"):
        return _in_old_release(interp, entry, past, remedy)
    if MODE_CALL in remedy and (past.behaviour == "silent" or (past.behaviour == "raises" and not on)):
        release = _first_release(entry)
        if not release:
            return "use another op" if past.behaviour == "raises" else remedy
        # Some remedies name the release themselves.
        return remedy if release in remedy else f"with {release}, {_lower(remedy)}"
    return remedy


def _first_release(entry: OpEntry) -> str:
    """The releases in which the mode makes an op deterministic, as ``torch >= 2.1``; empty where none does."""
    found = _alternatives(entry)
    if not found:
        return ""
    better = found[0]
    if len(found) > 1 and found == [one.versions for one in entry.history[-len(found) :]]:
        # Later releases have one too.
        better = better.partition(",")[0]
    library = split(better)[0] or entry.library
    return f"{library} {better.removeprefix(library)}".replace(">=", ">= ")


def _in_old_release(interp: RunView, entry: OpEntry, past: OpHistory, remedy: str) -> str:
    """A remedy that names deterministic mode, for a release of torch that has no such mode or another name for it."""
    found = _alternatives(entry)
    if past.behaviour == "deterministic_alternative" and interp.kb_matches("torch", ">=1.7"):
        return remedy.replace(MODE_CALL, _OLDER_CALL)
    if "torch >=" in remedy or not found:
        return remedy if found else "use another op"
    bounds = [text for one in found for operator, text in split(one)[1] if operator == ">="]
    lowest = max((min(bounds, key=parse, default=_NAMED), _NAMED), key=parse)
    newer = f"with torch >= {lowest}, {_lower(remedy)}"
    return f"{entry.remedy_old}, or {newer}" if entry.remedy_old else newer


def _lower(sentence: str) -> str:
    """A sentence as the rest of another one."""
    return sentence[:1].lower() + sentence[1:]


def _own_switch(entry: OpEntry) -> bool:
    """Whether an argument of the call is what makes it deterministic, whatever torch's mode."""
    return any(test.arg == "deterministic" for test in entry.when)


def _older(interp: RunView, entry: OpEntry, past: OpHistory) -> str:
    """A note when an older release in the project's range behaves differently."""
    if interp.targets is None:
        return ""
    older = interp.targets.differs(entry.library, past.versions)
    return f"{entry.library} {older}, which the project also allows, behaves differently" if older else ""
