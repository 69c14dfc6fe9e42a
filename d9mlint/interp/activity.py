"""What a program does: whether it trains, with which library, on which device, and what it leaves behind.

These are no findings of their own. They are noted as flags of the state (see ``Interp.flag``), with the
first place as ``Where`` in ``interp.places`` for the findings that are made at the end of an entry point.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Literal

from d9mlint.base.options import given_in_words, quoted
from d9mlint.interp import graph_devices, tensors
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold
from d9mlint.interp.calls import can_train, hands_over_training, has_model, owner_types
from d9mlint.interp.context import HANDED, OTHER_DEVICE, QUIET, SPAWNED, STRUCTURE, THREAD, within_cpu
from d9mlint.interp.data import PART_OF, changed, own_option
from d9mlint.interp.device_names import ACCELERATORS, selecting_option
from d9mlint.interp.devices import (
    DEFAULT_DEVICE,
    DEVICE,
    ON_MPS,
    Runner,
    asked,
    is_on_mps,
    named,
    runner,
    runner_of,
)
from d9mlint.interp.environment import (
    DEFAULT_BACKEND,
    EARLIER_BACKENDS,
    keras_backend,
    keras_device,
    of_keras,
)
from d9mlint.interp.events import (
    CallEvent,
    ContextEvent,
    DecoratorEvent,
    DeviceEvent,
    EndEvent,
    EnvironmentEvent,
    ObjectAttributeEvent,
    ObjectCallEvent,
)
from d9mlint.interp.file_names import ends_of
from d9mlint.interp.library import own_gradients
from d9mlint.interp.library.weights import (
    LOADING_METHODS,
    OF_ONE_MODULE,
    are_initial,
    is_meant,
    layers_within,
)
from d9mlint.interp.library_modules import is_module
from d9mlint.interp.listening import (
    Listening,
    listened_by,
    on,
    on_always,
    on_call,
    on_call_if,
    on_method,
    on_object_attribute,
)
from d9mlint.interp.memory import Memory, Tick, noted, remembered, remembered_table
from d9mlint.interp.methods import BINDING
from d9mlint.interp.moved_models import may_be_moved, may_be_moved_by, may_be_replaced
from d9mlint.interp.optimizers import optimized_by
from d9mlint.interp.places import Where, given_beside, running
from d9mlint.interp.state import Setting
from d9mlint.interp.switches import (
    BESIDE_THE_MODE,
    CUBLAS,
    DETERMINISTIC,
    OP_DETERMINISM,
    TF_VARIABLES,
    TrainerSwitch,
    in_dictionary,
    unpacked,
)
from d9mlint.interp.usage import flatten, handed_over, masks
from d9mlint.interp.weights_on_cpu import MODELS_MOVED
from d9mlint.ir import nodes as m
from d9mlint.ir.endings import calls_before_failing
from d9mlint.ir.liveness import ATTRIBUTES_BY_TEXT, attribute_readers
from d9mlint.ir.traversal import called_name, nodes, receiver

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import RunnerEntry

TORCH_TRAIN = "train:torch"
TF_TRAIN = "train:tensorflow"
TF_FIT = "train:tensorflow:fit"
TF_TAPE = "train:tensorflow:tape"
TF_TAKEN = "gradient:tensorflow"
"""Where a tape is first asked for gradients of what is not seen to be variables: nothing may be trained with them."""
TF_WATCHED = "watched:tensorflow"
"""Where gradients are asked for of tensors that the program names, whatever they are used for."""
TF_STEPS = "train:tensorflow:steps"
"""Where something may change variables by a gradient that was taken before."""
TORCH_TRAIN_CPU = "train:torch:cpu"
TORCH_TRAIN_CUDA = "train:torch:cuda"
"""Where torch trains, unless it is known to do so on the CPU or an accelerator without CUDA."""
TORCH_TRAIN_ON = "train:torch:on"
"""The same, but for gradients that are taken outside of loops."""
TORCH_TRAIN_FRESH = "train:torch:fresh"
"""Training in a new process that shares nothing with the program, in which nothing has turned deterministic mode on."""
TORCH_TRAIN_EARLY = "train:torch:early"
"""Training in the program itself at a time at which nothing has turned deterministic mode on."""
GIVEN = {one: f"given:{one}" for one in (TORCH_TRAIN, TORCH_TRAIN_CPU, TORCH_TRAIN_CUDA)}
"""Where `torch.autograd.grad` computes a gradient, by what it stands for where nothing trains."""
TF_TRAIN_CPU = "train:tensorflow:cpu"
TF_TRAIN_FRESH = "train:tensorflow:fresh"
"""The same of TensorFlow, in which no call has turned op determinism on."""
TF_TRAIN_EARLY = "train:tensorflow:early"
"""Training in the program itself at a time at which nothing has enabled op determinism."""
TRAIN = "train"
TRAINS_IN_ROUNDS = "train:rounds"
"""Where a gradient is taken in a loop within another one, as for the batches of each epoch."""
GRADIENT = "train:gradient"
"""Where ``backward()`` takes a gradient outside of loops,"""
STEPS = "train:steps"
"""where what may be an optimizer takes a step,"""
_GRADIENT_OF = "grad"
"""The attribute of a tensor that holds its gradient, and the function of torch that gives gradients."""
TRAINS_OTHERWISE = "train:otherwise"
"""Where the program trains by other means than ``backward()`` or such a function,"""
TRAINS_ON = "train:on"
"""and where a program does more: it takes gradients in a loop or by other means, or takes what may be a step, or calls what
is not known."""
CUDA = "cuda"
NO_GPU = "no-gpu"
"""Where all GPUs are hidden,"""
GPU_BY_OPTION = "gpu-by-option"
"""Where they are hidden by the default of an option,"""
NO_GPU_FOR = "no-gpu:"
"""or hidden from the library whose name follows."""
ASKS_GPU_FOR = "asks-gpu:"
"""Where the program asks the library whose name follows for a GPU, or says how it is to use one."""
CPU_BUILD = ": the project asks for the build for the CPU"
"""Of findings about GPUs in a program whose project asks for no build for them."""
_CUDA_FLAGS = (CUDA, "cuda-api", "cuda-device")
CUDA_ALWAYS = "cuda:always"
"""Where work is put on a GPU whatever options are given."""
OTHER_ACCELERATORS = ("xpu", "mps")
GRAPH_STEP = "graph-step"
GRAPH_STEP_CPU = "graph-step:cpu"
"""Where a graph of TensorFlow 1 was given a step that trains, and one that is put on the CPU."""
GRAPH_HANDED = "graph-handed"
"""Where the program makes or calls what may run a graph, since a step was made: a session, or a function not known."""
GRAPH_RUN = "graph-run"
"""Where a session ran something of a graph."""
SPECIFIED = "graph-step:specified"
"""Where an estimator of TensorFlow is given a step: it runs it where it trains,"""
ESTIMATOR_TRAINS = "estimator:trains"
ESTIMATOR_USED = "estimator:used"
"""and it does not where it predicts or evaluates."""
GRAPH_GRADIENT = "graph-gradient"
GRAPH_APPLIED = "graph-gradient:applied"
"""Where a gradient was added to a graph of TensorFlow, and where a step that applies one."""
LOADS = "loads-weights"
INFERS = "infers"
MODE_SET = "sets the mode of a model"
"""Where a trainer puts a model into evaluation mode."""
_FITS_ALONE = "fits an estimator"
"""Stands for training, among the times, where no network is trained."""
GIVES_STATE = "gives a model a state"
RESUMES = "gives something a state"
"""Where a model is given a state that is no other one's here, and where something else is."""
GIVES_OPTIMIZER = "gives an optimizer a state"
"""Where something of which nothing else is known is given a state that is called what only training needs."""
GIVES_NO_MODEL = "gives what is no model a state"
"""Where something is given a state that is known to be no model."""
ENTERED = "enters-by-hand"
SAVES = "saves"
KEEPS = "saves:kept"
HANDS_OVER = "hands over"
"""Where something is written or shown, where it is kept longer than it is shown, and where more than fixed texts are
printed, or given to the system or to a library of which nothing is known."""

_CALLED = "__call__"
_BACKWARD = "backward"
_OF_AUTOGRAD = "torch.autograd.grad"
_AGAIN = frozenset({HANDED, SPAWNED, THREAD})
"""What is running may run again and again where one of these is active."""

_BUILDS_ONLY = ("tf.", "builtins.")
"""The beginnings of names of what runs no graph unless it is known to: TensorFlow's functions add to it."""
_GROUPS = frozenset({"tf.group", "tf.tuple", "tf.identity", "tf.compat.v1.group", "tf.compat.v1.tuple"})
_ESTIMATORS = "Estimator"
_SPECIFIES = "EstimatorSpec"
"""Ends of the names of the estimators of TensorFlow, and of what their functions give."""
_PARTS_BY_NAME = ("get_collection", "get_operation", "get_tensor_by_name", "as_graph_element")
"""Functions and methods that give parts of a graph by their names."""
_READ_BY_TEXT = ATTRIBUTES_BY_TEXT - {"pickle", "__getstate__"}
"""Names in files that may reach parts of a graph, which cannot be pickled, without naming attributes."""
_STEPS_DEPTH = 4
_TAKEN = "gradient"
_STATE_GRADIENTS = "grads"
"""The argument of ``apply_gradients`` in which a training state of JAX is given gradients; TensorFlow's is
``grads_and_vars``."""
_KERAS_ONLY = ("fit_generator", "train_on_batch")
"""Methods of models of Keras whose names no other library has."""
_TF_LIBRARIES = ("tf.", "keras.", "keras_hub.", "keras_nlp.", "keras_cv.")


def note(interp: Interp, flag: str, node: Any, subject: str = "", option: str = "", kind: str = "") -> None:
    """Set a flag and remember its first place in this run, with the option that has to be given for it: the first that
    needs no option, if there is one. ``kind`` is what stands for the flag among the times, if that is something else."""
    interp.flag(flag, node)
    if flag in (TRAIN, GIVES_STATE):
        loops = frozenset(loop.key for loop in interp.loops)
        interp.activity.times.add((kind or flag, Tick(interp.now), loops))
        if flag == TRAIN and subject not in (_BACKWARD, _OF_AUTOGRAD):
            interp.activity.optimized_by_others = True
            note(interp, TRAINS_OTHERWISE, node, subject, option)
        if flag == TRAIN and interp.loops.nested:
            note(interp, TRAINS_IN_ROUNDS, node, subject, option)
        if flag == TRAIN:
            note(interp, GRADIENT if _is_once(interp, subject) else TRAINS_ON, node, subject, option)
    log = interp.import_log
    aside = interp.state.noted_aside
    first = _is_first(interp, interp.places, flag, aside)
    if first or (log is not None and _is_first(interp, log.places, flag, aside)):
        place = Where(interp, node, subject, option)
        if first:
            interp.places[flag] = place
        if log is not None and _is_first(interp, log.places, flag, aside):
            log.places[flag] = place
    if flag == TRAIN and not kind:
        own_gradients.take_gradients(interp, node)
    if flag in _CUDA_FLAGS and not option and CUDA_ALWAYS not in interp.places and not aside:
        note(interp, CUDA_ALWAYS, node, subject)


def _is_once(interp: Interp, subject: str) -> bool:
    """Whether a gradient is taken outside of loops."""
    return subject == _BACKWARD and not interp.loops and not interp.contexts.within(_AGAIN)


def _computes(function: m.Function | None, name: str) -> bool:
    """Whether a function puts what a name stands for into evaluation mode, or calls it: then it is a model."""
    return function is not None and any(
        (isinstance(one.func, m.Name) and one.func.id == name)
        or (called_name(one) == "eval" and receiver(one) == name)
        for one in nodes(function.body)
        if isinstance(one, m.Call)
    )


def _is_first(interp: Interp, places: dict[str, Where], flag: str, aside: str) -> bool:
    known = places.get(flag)
    if known is None or not known.aside:
        return known is None
    # Of several branches with a gradient, that one counts for which fewer options have to be given.
    fewer = flag in (TORCH_TRAIN_CUDA, TORCH_TRAIN_ON) and len(given_beside(interp)) < len(known.others)
    return not aside or fewer


def where(interp: RunView, flag: str) -> Where | None:
    """The first place at which a flag was set in this run."""
    return interp.places.get(flag)


def trains_on_cuda(interp: RunView) -> Where | None:
    """Where torch trains on CUDA: not where a gradient is taken that no step uses, if the program trains behind it."""
    first, on, step = (where(interp, flag) for flag in (TORCH_TRAIN_CUDA, TORCH_TRAIN_ON, STEPS))
    if first is None or on is None or (on.aside and not first.aside):
        return first
    return on if step is None or step.order > on.order else first


def takes_steps(interp: RunView, place: Where) -> bool:
    """Whether more than a gradient is seen to be computed at a place where torch trains: a trainer does it, or the program
    takes what may be a step of an optimizer."""
    return place.subject not in (_BACKWARD, _OF_AUTOGRAD) or STEPS in interp.places


def takes_tf_steps(interp: RunView, place: Where) -> bool:
    """Whether more than a gradient is seen to be computed at a place where TensorFlow trains."""
    gradient = place.subject == _TAKEN or interp.kb.role(place.subject, "graph-gradient") is not None
    steps = (TF_STEPS, GRAPH_STEP, GRAPH_STEP_CPU)
    return not gradient or any(one in interp.places for one in steps) or interp.exhausted


def trains(interp: RunView) -> bool:
    """Whether the run reached training of any kind."""
    return TRAIN in interp.places


def _trains_too(interp: Interp) -> bool:
    """Whether a program may train on the path on which a model is given a state, unless that is frozen. One whose options
    choose between the two goes on with nothing."""
    times = interp.activity.times
    given = [
        one
        for one in times
        if one[0] == GIVES_STATE
        and not interp.activity.is_frozen(one[1])
        and not interp.activity.is_not_optimized(one[1])
    ]
    return any(
        bool(loops & others) or not interp.partings.exclusive(time, other)
        for flag, time, loops in times
        if flag == TRAIN
        for _, other, others in given
    )


def states(interp: Interp) -> Literal["", "evaluates", "begins", "resumes", "unreached"]:
    """What loaded states are given to: to models that are not trained here, to what may be models that are, or to something
    else; where no entry point reaches the code, whether they may be given to one of the last two."""
    found = _states(interp)
    return "unreached" if found and interp.entry is None else found


def _states(interp: Interp) -> Literal["", "evaluates", "begins", "resumes"]:
    """The same, where it makes no difference who reaches the code."""
    only_infers = _only_infers(interp)
    if (
        interp.activity.trains_networks
        or GIVES_OPTIMIZER in interp.places
        or (GIVES_NO_MODEL in interp.places and not only_infers)
        or (INFERS not in interp.places and not only_infers)
    ):
        # What is not known to be a model, in a program that only infers, is one.
        if GIVES_NO_MODEL in interp.places:
            return "resumes"
        if RESUMES in interp.places or (GIVES_STATE in interp.places and _trains_too(interp)):
            return "begins"
    return "evaluates" if GIVES_STATE in interp.places and interp.entry is not None else ""


def _only_infers(interp: Interp) -> bool:
    """Whether the run uses models, trains none, and calls nothing that may: an optimizer that a method gives its state
    beside the weights then takes no step. One that saves no checkpoint, and shows what it computes, uses them too."""
    places = interp.places
    shows = (HANDS_OVER in places or KEEPS in places) and not interp.activity.saved_files
    followed = all(gap.kind in ("constant", "device") for gap in interp.gaps)
    return followed and (INFERS in places or shows) and TRAIN not in places and not interp.exhausted


def only_tries_gradient(interp: RunView) -> bool:
    """Whether a program takes a gradient outside of loops, or one that its code never reads, and neither updates weights
    with it nor keeps what comes of it: what it shows is that there is one, its size, or how long that takes."""
    places = interp.places
    if interp.entry is None or interp.entry.notebook or interp.exhausted or KEEPS in places:
        return False
    return (GRADIENT in places and TRAINS_ON not in places) or _is_unread(interp)


def _is_unread(interp: RunView) -> bool:
    """Whether gradients are taken, and no code of the program has a name by which it may read them, or take a step."""
    places = interp.places
    if TRAIN not in places or STEPS in places or TRAINS_OTHERWISE in places:
        return False
    hooks = (
        one for one in interp.kb.role_entries() if one.role == "registers-hook" and "backward" in one.more
    )
    reading = {_GRADIENT_OF, *(api.rpartition(".")[2] for one in hooks for api in one.apis)}
    return not any(map(interp.uses_word, reading))


def infers(interp: RunView) -> bool:
    """Whether the run uses a model that it does not train: nothing trains, and weights are loaded, a model is put
    into evaluation mode, or gradients are switched off."""
    return not trains(interp) and (LOADS in interp.places or INFERS in interp.places)


def fits_alone(interp: RunView, owner: v.Value | None) -> bool:
    """Whether what is fitted is an estimator of a library that trains no networks, and has none of the program in it."""
    types = owner_types(interp, owner) if owner is not None else []
    if not types or interp.kb.role(types[0].partition(".")[0], "own-estimators") is None:
        return False
    given = (
        handed_over(owner.args)
        if isinstance(owner, v.Obj)
        else [*owner.attrs.values()]
        if isinstance(owner, v.Inst)
        else []
    )
    return not has_model(interp, given) and not any(
        isinstance(one, v.Cls) or (isinstance(one, v.Obj) and runner(interp, one) is not None)
        for one in given
    )


_VISIBLE = ("tf.config.set_visible_devices", "tf.config.experimental.set_visible_devices")


class Activity:
    """Listens for training, devices and GPU use."""

    times = remembered(set[tuple[str, Tick, frozenset[str]]])
    """When the program trains and gives a model a state, and in which loops."""
    given_states = remembered_table(Tick, tuple[v.Value, ...])
    """What the model may be that is given a state, by the time."""
    optimized = remembered(int)
    """When the last optimizer was made, or was given parameters, that takes a step,"""
    optimized_by_others = remembered(bool)
    """and whether anything else may train."""
    optimized_models = remembered_table(Tick, tuple[v.Value, ...])
    """The models whose parameters the optimizers were given that take steps, by when these were made: none where that is not
    known."""
    passed_on = remembered(bool)
    """Whether weights may be given from one model to another."""
    loaded_files = remembered(set[str])
    saved_files = remembered(set[str])
    """How the files end that the program loads, and in which it saves something: an empty text where that is not known."""
    saved_in_training = remembered(set[str])
    """How the files end in which it saves whole models with layers that draw whenever they are called."""
    applied = noted(list[own_gradients.Applied])
    """What was applied whose gradient the program computes itself,"""
    gone_back = remembered(int)
    """and for how much of that a gradient was taken."""
    trainer_switches = remembered_table(tuple[str, int], TrainerSwitch)
    """How the trainers that train are made deterministic, by the file and the end of the call that lets them train."""

    steps = remembered(list[str])
    """The attributes in which steps of graphs are stored; empty for one that is not stored in one alone."""
    step_names = remembered(set[str])
    """The names that graphs have given to steps; empty for one that is not known."""
    gradients_on_cpu = remembered(set[bool])
    """Whether the gradients that are added to graphs of TensorFlow by themselves are put on the CPU."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp
        self.kb = interp.kb

    @property
    def memory(self) -> Memory:
        """Where the fields are remembered."""
        return self._interp.memory

    @on_method("backward")
    def backward(self, call: CallEvent) -> None:
        """A gradient is taken of a loss."""
        if self._is_elsewhere(call.owner):
            note(self._interp, TRAIN, call.node, _BACKWARD)
            return
        # Autograd Functions call backward of their own; a loss has a tensor, a scaler or nothing known before the dot.
        found = runner(self._interp, call.owner)
        first = call.args.get("loss", 0)
        tensor = isinstance(call.owner, v.Obj) and call.owner.type == tensors.TENSOR
        loss = call.owner if tensor or first is None else first
        device = _place(found, tensors.gradient_device([loss]))
        if not device and keras_backend(self._interp) == "torch" and _by_keras(loss):
            device = keras_device(self._interp)
        _trains_torch(self._interp, call.node, _BACKWARD, device)

    @on_method("step")
    def step(self, call: CallEvent) -> None:
        """What may be an optimizer takes a step."""
        note(self._interp, STEPS, call.node, call.api)
        note(self._interp, TRAINS_ON, call.node, call.api)
        owners = v.alternatives(call.owner) if call.owner is not None else ()
        for one in (*owners, *(x for given in call.args.pos for x in v.alternatives(given))):
            if isinstance(one, v.Obj) and one.type.startswith("torch.optim."):
                self.optimized = max(self.optimized, one.birth)
                self.optimized_models.setdefault(Tick(one.birth), _made_of(one))
            elif one in owners and not (isinstance(one, v.Obj) and one.type.startswith("torch.")):
                self.optimized_by_others = True
        self.trained(call)

    @on_method("add_param_group")
    def more_parameters(self, call: CallEvent) -> None:
        """An optimizer is given more parameters."""
        self.optimized = max(self.optimized, self._interp.now)
        self.optimized_models[Tick(self._interp.now)] = ()

    def _is_elsewhere(self, loss: v.Value | None) -> bool:
        """Whether a gradient is that of a package other than PyTorch: the loss comes from it, or the program uses it and
        does not use PyTorch."""
        if isinstance(loss, v.Obj) and self._has_own_gradients(loss.api.partition(".")[0]):
            return True
        known = isinstance(loss, v.Obj) and loss.type == tensors.TENSOR
        if known or self._interp.uses("torch"):
            return False
        packages = [api for one in self.kb.role_entries() if one.role == "own-gradients" for api in one.apis]
        return any(map(self._interp.uses, packages))

    def _has_own_gradients(self, package: str) -> bool:
        return self.kb.role(package, "own-gradients") is not None

    @on_method(
        "fit",
        "fit_generator",
        "train_on_batch",
        "fit_one_cycle",
        "fine_tune",
        "learn",
        "train",
        "run",
        "tune",
        "search",
    )
    def fit(self, call: CallEvent) -> None:
        """A method that trains, in some library."""
        name = call.api.rpartition(".")[2]
        found = runner(self._interp, call.owner)
        if found is not None and name in found.entry.trains:
            self._runs(found, call, name)
            return
        if found is None and isinstance(call.owner, v.Obj) and can_train(self._interp, call.owner.args, name):
            # An object of which only what it was given is known: a trainer that a configuration names.
            _trains_torch(self._interp, call.node, name, tensors.device(handed_over(call.owner.args)))
            _note_devices(self._interp, call.owner.args.kw.get("device"), call.node)
            return
        if found is not None or name in ("train", "run", "tune", "search"):
            return
        types = owner_types(self._interp, call.owner) if call.owner is not None else []
        if types and self.kb.role(types[0], "fits-data") is not None:
            return
        alone = fits_alone(self._interp, call.owner)
        note(self._interp, TRAIN, call.node, "fit", kind=_FITS_ALONE if alone else "")
        given = flatten(call.args.kw.get("callbacks", v.UNKNOWN))
        if any(isinstance(one, v.Obj) and self.kb.role(one.api, "saves-in-training") for one in given):
            _saves(self._interp, call)
        if any(t.startswith(_TF_LIBRARIES) for t in types) or (
            any(self._interp.uses(name) for name in ("tensorflow", "keras"))
            and (_unknown(types) or name in _KERAS_ONLY)
            and not self._interp.uses("torch")
        ):
            _fits_keras(self._interp, call.node)

    def is_frozen(self, time: Tick) -> bool:
        """Whether no parameter of the model that was given a state then requires grad when the program ends."""
        models = self.given_states.get(time) or ()
        return bool(models) and all(
            isinstance(one, (v.Inst, v.Obj)) and tensors.frozen(one) for one in models
        )

    def is_not_optimized(self, time: Tick) -> bool:
        """Whether the model that was given a state then was made after all optimizers that take steps, of nothing older, as
        one is that evaluates a checkpoint beside the model that is trained, or they are known to have parameters of others
        alone."""
        models, last = self.given_states.get(time) or (), self.optimized
        if not (models and last) or self.optimized_by_others:
            return False
        return all(_is_newer(one, last) for one in models) or self._optimizes_others(models)

    def _optimizes_others(self, models: Iterable[v.Value]) -> bool:
        """Whether all optimizers that take steps have parameters of models that share no part with some."""
        optimized = [self.optimized_models[time] for time in self.optimized_models.known()]
        if self.passed_on or not all(optimized):
            return False
        # A copy was made where what it was copied from was.
        trained = {id(one.node or one) for given in optimized for one in _models_within(self._interp, given)}
        return trained.isdisjoint(id(one.node or one) for one in _models_within(self._interp, models))

    @property
    def trains_networks(self) -> bool:
        """Whether the program trains what may be a network: estimators of libraries that have none do not count."""
        return any(flag == TRAIN for flag, _, _ in self.times) or any(
            one in self._interp.places for one in (TF_TRAIN, TF_TRAIN_CPU)
        )

    def trains_with(self, time: int, later: bool = False) -> bool:
        """Whether the program may train on a path on which it did something at a time, or does so ``later``."""
        return any(
            flag == TRAIN and not self._interp.partings.exclusive(time, other)
            for flag, other, _ in self.times
            if not later or other > time
        )

    @property
    def training_loops(self) -> frozenset[str]:
        """The loops, by their keys, in which the program trains."""
        return frozenset(loop for flag, _, loops in self.times if flag != GIVES_STATE for loop in loops)

    def also(self) -> Iterable[tuple[Listening, Callable[[CallEvent], None]]]:
        """Methods of trainers, and those that write, by names that only the knowledge base has."""
        heard = {name for _, to in listened_by(self) if to.method for name in to.names}
        names = tuple(name for name in self.kb.training_methods if name not in heard)
        found = [(Listening(CallEvent, names, method=True), self.trained)] if names else []
        more = (
            (tuple(self.kb.evaluating_methods), self.evaluated),
            (tuple(self.kb.calls("writes-methods")), self.writes),
        )
        return [
            *found,
            *((Listening(CallEvent, names, method=True), heard_by) for names, heard_by in more if names),
        ]

    def evaluated(self, call: CallEvent) -> None:
        """What may be a trainer's own method that puts a model into evaluation mode and calls it."""
        found = runner(self._interp, call.owner)
        if found is not None and call.api.rpartition(".")[2] in found.entry.evaluates:
            note(self._interp, MODE_SET, call.node, call.api)

    def trained(self, call: CallEvent) -> None:
        """What may be a trainer's own method that trains."""
        name = call.api.rpartition(".")[2]
        found = runner(self._interp, call.owner)
        if found is not None and name in found.entry.trains:
            self._runs(found, call, name)

    def _switch(self, entry: RunnerEntry, api: str, node: Any) -> TrainerSwitch:
        """How to make a trainer deterministic, where its release can be. An argument that ``**options`` may hold already is
        given there: beside them, it would raise TypeError. So is what belongs into a dictionary that the call passes."""
        there = not entry.switches or self._interp.kb_matches(entry.library, entry.switches)
        options = unpacked(node) if entry.switch.endswith(f"`{api.rpartition('.')[2]}`") else ""
        if there and options:
            wanted = entry.switch.removeprefix("pass ").partition(" to ")[0]
            return TrainerSwitch(f"set {wanted} in {options}")
        if not there:
            return TrainerSwitch("")
        item = next(iter(entry.switch_in.items()), None)
        return in_dictionary(entry.switch_in, node) or TrainerSwitch(entry.switch, item)

    def _switched_by(self, switch: TrainerSwitch, node: Any) -> None:
        here = self._interp.here(node)
        self.trainer_switches.setdefault((here.path, here.end), lambda: switch)

    def _runs(self, found: Runner, call: CallEvent, name: str) -> None:
        if found.entry.library == "tensorflow":
            _trains_tf(self._interp, call.node, "fit")
            return
        made = (call.owner.api, call.owner.node) if isinstance(call.owner, v.Obj) else ("", None)
        self._switched_by(self._switch(found.entry, *made), call.node)
        device = asked(self._interp, found.entry, call.args) or found.device
        _trains_torch(self._interp, call.node, name, device or tensors.device(call.args.values()))

    @on(ObjectCallEvent)
    def object_called(self, event: ObjectCallEvent) -> None:
        """An object is called: what takes a step when it is called with a loss."""
        found = runner_of(self._interp, event.obj.api, event.obj.args)
        if found is not None and _CALLED in found.entry.trains:
            device = tensors.device(event.args.values())
            _trains_torch(self._interp, event.node, event.obj.api, _place(found, device))

    @on_call_if(lambda activity, api: bool(activity.kb.runners(api)))
    def constructed(self, call: CallEvent) -> None:
        """What trains when it is made."""
        found = runner_of(self._interp, call.api, call.args)
        if found is None:
            return
        if found.entry.constructs and found.entry.library == "tensorflow":
            _trains_tf(self._interp, call.node, call.api)
        elif found.entry.constructs:
            self._switched_by(self._switch(found.entry, call.api, call.node), call.node)
            _trains_torch(self._interp, call.node, call.api, found.device)
        if found.entry.returns and found.device in ACCELERATORS:
            note(self._interp, found.device, call.node, call.api)

    @on_method("minimize", "apply_gradients", "gradient")
    def tf_train(self, call: CallEvent) -> None:
        """An optimizer steps."""
        if _STATE_GRADIENTS in call.args.kw:
            return
        types = owner_types(self._interp, call.owner) if call.owner is not None else []
        if self._interp.uses("tensorflow") and (_unknown(types) or types[0].startswith(_TF_LIBRARIES)):
            name = call.api.rpartition(".")[2]
            if name != "gradient" and self._interp.kb_matches("tensorflow", "<2.0"):
                # A step of a graph, which a session may run.
                # What computes its gradients is put where it is made, or where they were made before.
                cpu = within_cpu(self._interp.contexts) and (
                    name == "minimize" or self.gradients_on_cpu == {True}
                )
                place = Where(self._interp, call.node, name)
                self.steps.append(_attribute_that_holds(self._interp.statement, call.node))
                self.step_names.add(_name_of_step(call))
                self._interp.places.setdefault(GRAPH_STEP_CPU if cpu else GRAPH_STEP, place)
                return
            named = TF_WATCHED in self._interp.places or _of_variables(
                self._interp, call.args.get("sources", 1)
            )
            if name == "gradient" and not named:
                note(self._interp, TF_TAKEN, call.node, name)
                return
            if name != "gradient":
                note(self._interp, TF_STEPS, call.node, name)
            _applied(self._interp)
            _trains_tf(self._interp, call.node, "minimize" if name == "minimize" else _TAKEN)

    @on_method("compute_gradients", "gradient")
    def optimizer_gradient(self, call: CallEvent) -> None:
        """``optimizer.compute_gradients(loss)``, or ``tape.gradient(loss, variables)``."""
        self.gradients_on_cpu.add(within_cpu(self._interp.contexts))

    @on_call_if(lambda activity, api: activity.kb.role(api, "takes-gradients") is not None)
    def tf_named(self, call: CallEvent) -> None:
        """``tape.watch(inputs)``."""
        self._interp.places.setdefault(TF_WATCHED, Where(self._interp, call.node, call.api))

    @on_method("apply", "assign", "assign_sub", "assign_add")
    def tf_update(self, call: CallEvent) -> None:
        """A variable is changed, perhaps by a gradient."""
        note(self._interp, TF_STEPS, call.node, call.api)
        _applied(self._interp)

    @on_call_if(lambda activity, api: activity.kb.role(api, "graph-gradient") is not None)
    def graph_gradient(self, call: CallEvent) -> None:
        """``tf.gradients(loss, inputs)``."""
        role = self.kb.role(call.api, "graph-gradient")
        self.gradients_on_cpu.add(within_cpu(self._interp.contexts))
        if role is not None and not within_cpu(self._interp.contexts):
            flag = GRAPH_APPLIED if "applied" in role.more else GRAPH_GRADIENT
            self._interp.places.setdefault(flag, Where(self._interp, call.node, call.api))

    @on(CallEvent)
    def graph_step(self, call: CallEvent) -> None:
        """A session, or a function, is given a step of a graph."""
        if not _has_step(self._interp) or call.api in _GROUPS:
            return
        plain = isinstance(call.owner, (v.Lit, v.Items, v.Mapping)) or self._interp.kb.call_is(
            "tells", call.api
        )
        if not plain and not call.api.startswith(_BUILDS_ONLY):
            self._interp.places.setdefault(GRAPH_HANDED, Where(self._interp, call.node, call.api))
        runs = call.api.rpartition(".")[2] == "run"
        given = [one for value in call.args.values() for one in _nested(value)]
        steps = any(_is_step(one) for one in given) or (runs and self._is_step_by_name(call))
        if steps and call.api.startswith("tf.") and call.api.endswith(_SPECIFIES):
            note(self._interp, SPECIFIED, call.node, call.api)
            return
        if runs and steps and self._interp.orders.loops:
            # A model that was there before the loop changes in its order.
            born = [one.birth for one in given if isinstance(one, v.Obj) and _is_step(one)]
            if born:
                self._interp.orders.decide_loops(min(born))
        if steps or (runs and any(one is v.UNKNOWN for one in given[:1]) and self._may_be_at_hand()):
            _run_graph(self._interp)
        elif runs:
            self._interp.places.setdefault(GRAPH_RUN, Where(self._interp, call.node, call.api))

    def _is_step_by_name(self, call: CallEvent) -> bool:
        """Whether a session is given the name of a step, or what a graph has under that name."""
        fetches = call.args.get("fetches", 0)
        names = {_name_in_graph(one) for one in _nested(fetches)} if fetches is not None else set()
        return not (names - {""}).isdisjoint(self.step_names)

    def _may_be_at_hand(self) -> bool:
        """Whether something unknown may be a step: not where each is in an attribute that no function that has run reads."""
        interp = self._interp
        files = interp.run_files()
        if interp.entry is None or interp.exhausted or "" in self.steps or interp.mentions(_PARTS_BY_NAME):
            return True
        if any(not _READ_BY_TEXT.isdisjoint(interp.whole(file).words) for file in files):
            return True
        for name in set(self.steps):
            for file in files:
                readers = attribute_readers(interp.whole(file), name)
                if readers is None or any((file.path, index) in interp.visited for index in readers):
                    return True
        return False

    @on_call_if(lambda activity, api: activity.kb.role(api, "runs-graph") is not None)
    def may_run(self, call: CallEvent) -> None:
        """Something is made, or called, that runs graphs."""
        self._interp.places.setdefault(GRAPH_HANDED, Where(self._interp, call.node, call.api))

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """The program has ended."""
        if GIVEN.keys().isdisjoint(self._interp.places):
            # Nothing trains: the gradient itself is what the program is about.
            for flag, given in GIVEN.items():
                if given in self._interp.places:
                    self._interp.places[flag] = self._interp.places[given]
        places = self._interp.places
        # What only predicts or evaluates has the weights of an earlier program, and leaves them as they are.
        uses = ESTIMATOR_USED in places and ESTIMATOR_TRAINS not in places
        gradient = places.get(GRAPH_GRADIENT) or (places.get(GRAPH_APPLIED) if not uses else None)
        trains = (
            _has_step(self._interp) or TF_TRAIN in self._interp.places or TF_TRAIN_CPU in self._interp.places
        )
        if gradient is not None and not trains:
            # Nothing trains: the gradient itself is what the program is about.
            for flag in (TF_FIT, TRAIN, TF_TRAIN):
                self._interp.places.setdefault(flag, gradient)
        if uses and (SPECIFIED in places or GRAPH_APPLIED in places or not _has_step(self._interp)):
            places.setdefault(LOADS, places[ESTIMATOR_USED])
        elif _has_step(self._interp) and (SPECIFIED in places or self._may_be_run()):
            # Whatever runs it was not followed.
            _run_graph(self._interp)

    def _may_be_run(self) -> bool:
        """Whether a step of a graph that no session was seen to run may be run nevertheless."""
        places = self._interp.places
        return GRAPH_RUN not in places and (GRAPH_HANDED in places or self._interp.entry is None)

    @on_call_if(lambda activity, api: activity.kb.role(api, "gives-gradients") is not None)
    def jax_train(self, call: CallEvent) -> None:
        """A gradient is taken by JAX."""
        note(self._interp, TRAIN, call.node, call.api)

    @on_call("torch.autograd.backward")
    def autograd(self, call: CallEvent) -> None:
        """A gradient is taken."""
        _trains_torch(self._interp, call.node, _BACKWARD, tensors.gradient_device(call.args.values()))

    @on_call(_OF_AUTOGRAD)
    def gradient_given(self, call: CallEvent) -> None:
        """A gradient is computed and given, as for an attack or a penalty."""
        device = tensors.gradient_device(call.args.values())
        note(self._interp, GRADIENT if _is_once(self._interp, _BACKWARD) else TRAINS_ON, call.node, call.api)
        if device == "cpu" or within_cpu(self._interp.contexts):
            note(self._interp, GIVEN[TORCH_TRAIN_CPU], call.node, call.api)
            return
        for flag in (TORCH_TRAIN, *(() if device in OTHER_ACCELERATORS else (TORCH_TRAIN_CUDA,))):
            note(self._interp, GIVEN[flag], call.node, call.api, selecting_option(device))

    @on_call("torch.set_default_device", "torch.set_default_tensor_type")
    def default_device(self, call: CallEvent) -> None:
        """The default device is set."""
        given = call.args.get("device", 0) or call.args.get("t", 0)
        name = named(self._interp, given)
        if isinstance(given, (v.Lit, v.Ext)) and not name:
            text = given.name if isinstance(given, v.Ext) else str(given.value)
            name = "cuda" if text.startswith("torch.cuda.") else "cpu"
        self._interp.set_mode(DEFAULT_DEVICE, v.Lit(name) if name else v.UNKNOWN, call.node)
        _note_mps(self._interp, given, call.node)
        if name in ACCELERATORS:
            note(self._interp, name, call.node, call.api)

    @on_call("torch.set_grad_enabled")
    def recording(self, call: CallEvent) -> None:
        """Gradients are switched on or off."""
        known = v.truth(call.args.get("mode", 0) or v.UNKNOWN)
        self._interp.set_mode(QUIET, v.UNKNOWN if known is None else v.Lit(not known), call.node)

    @on_method("__enter__")
    def entered(self, call: CallEvent) -> None:
        """A context is entered by hand."""
        # A tape that is entered by hand records until it is left by hand, wherever that is.
        note(self._interp, ENTERED, call.node, call.api)

    @on_call("torch.no_grad", "torch.inference_mode")
    def without_gradients(self, call: CallEvent) -> None:
        """Gradients are switched off."""
        note(self._interp, INFERS, call.node, call.api)

    @on_method("eval")
    def evaluates(self, call: CallEvent) -> None:
        """A model is put into evaluation mode."""
        note(self._interp, INFERS, call.node, call.api)

    @on_method("train", "fit")
    @on_call_if(lambda activity, api: activity.kb.role(api, "trains-estimator") is not None)
    def estimator_trains(self, call: CallEvent) -> None:
        """An estimator may train."""
        note(self._interp, ESTIMATOR_TRAINS, call.node, call.api)

    @on_method("predict", "evaluate")
    def estimator_used(self, call: CallEvent) -> None:
        """An estimator predicts, or is evaluated."""
        kind = call.owner.type if isinstance(call.owner, v.Obj) else ""
        if kind.startswith("tf.") and kind.endswith(_ESTIMATORS):
            note(self._interp, ESTIMATOR_USED, call.node, call.api)

    @on_method("cuda")
    def cuda_method(self, call: CallEvent) -> None:
        """Something is moved to a GPU."""
        note(self._interp, CUDA, call.node, "cuda")
        self._may_move(call, None)

    @on_method("to")
    def to(self, call: CallEvent) -> None:
        """Something is moved."""
        given = call.args.get("device", 0)
        _note_devices(self._interp, given, call.node)
        self._may_move(call, given)
        if (
            given is not None
            and has_model(self._interp, [call.owner])
            and _from_elsewhere(self._interp, given)
        ):
            # A configuration that is not there, or a variable, says where: that may be a GPU.
            note(self._interp, "cuda-device", call.node, "to")

    @on_method("to_empty", "ipu", "type")
    def moved_otherwise(self, call: CallEvent) -> None:
        """A module is moved by another method."""
        self._may_move(call, call.args.get("device"))

    def _may_move(self, call: CallEvent, device: v.Value | None) -> None:
        if may_be_moved(self._interp, call.owner, device) and MODELS_MOVED not in self._interp.state.modes:
            _moved_models(self._interp, call.node)

    @on(ContextEvent)
    def context(self, event: ContextEvent) -> None:
        """Modules that are made within a device are made there."""
        if isinstance(event.context, v.Obj) and event.context.api == DEVICE:
            _moved_models(self._interp, event.stmt)

    @on_method("scope")
    def strategy(self, call: CallEvent) -> None:
        """A model is made for the devices of a strategy."""
        made = list(v.alternatives(call.owner)) if call.owner is not None else []
        if made and all(isinstance(one, v.Obj) and self._interp.kb.role(one.api, "no-gpu") for one in made):
            if _surely_runs(self._interp):
                note(self._interp, NO_GPU_FOR + "tensorflow", call.node, "TPUStrategy")

    @on_call_if(lambda activity, api: activity.kb.role(api, "stays-on-cpu") is not None, always=True)
    def on_cpu(self, call: CallEvent) -> None:
        """A library is configured to compute on the CPU."""
        role = self.kb.role(call.api, "stays-on-cpu")
        if role is not None and all_hold(call.args, role.when) is True and _surely_runs(self._interp):
            note(self._interp, NO_GPU_FOR + role.library, call.node, call.api)

    @on_call_if(lambda activity, api: activity.kb.role(api, "asks-for-gpu") is not None)
    def asks_for_gpu(self, call: CallEvent) -> None:
        """A library is asked for a GPU, or the program says how it uses one."""
        role = self.kb.role(call.api, "asks-for-gpu")
        if role is not None and all_hold(call.args, role.when) is not False:
            note(self._interp, ASKS_GPU_FOR + role.library, call.node, call.api)

    @on(DeviceEvent)
    def within_device(self, event: DeviceEvent) -> None:
        """The program says on which device TensorFlow computes: on a GPU, or on one that is not known."""
        if not event.kinds.isdisjoint((graph_devices.GPU, graph_devices.UNKNOWN)):
            note(self._interp, ASKS_GPU_FOR + "tensorflow", event.node, graph_devices.DEVICE)

    @on_object_attribute("allow_growth", "per_process_gpu_memory_fraction", "visible_device_list")
    def sets_options(self, event: ObjectAttributeEvent) -> None:
        """The program says how a library uses its GPU: an attribute of options for GPUs is set."""
        owner = event.owner
        of = owner.owner if isinstance(owner, v.Member) else None
        if isinstance(of, v.Obj) and isinstance(owner, v.Member):
            role = self.kb.role(f"{of.api}.{owner.name}", "asks-for-gpu")
            if role is not None:
                note(self._interp, ASKS_GPU_FOR + role.library, event.node, owner.name)

    @on_object_attribute("data")
    def replaces_weights(self, event: ObjectAttributeEvent) -> None:
        """Weights of a module may be replaced by others."""
        self.passed_on = True
        if may_be_replaced(self._interp, event) and MODELS_MOVED not in self._interp.state.modes:
            _moved_models(self._interp, event.node)

    @on_method("xpu")
    def xpu_method(self, call: CallEvent) -> None:
        """Something is moved to an XPU."""
        note(self._interp, "xpu", call.node, "xpu")
        self._may_move(call, None)

    @on_method(*LOADING_METHODS)
    def loads(self, call: CallEvent) -> None:
        """Weights are loaded, unless they are the initial ones of another model."""
        state = call.args.pos[0] if call.args.pos else None
        if state is None or not are_initial(state):
            note(self._interp, LOADS, call.node, call.api)

    @on_method("copy_")
    def fills(self, call: CallEvent) -> None:
        """Weights are loaded one by one, into the tensors of the state that a model gives."""
        self.passed_on = True
        state = call.owner.attrs.get(PART_OF) if isinstance(call.owner, v.Obj) else None
        given = call.args.pos[0] if call.args.pos else None
        source = given.attrs.get(PART_OF) if isinstance(given, v.Obj) else None
        if state is not None and not (source is not None and are_initial(source)):
            changed(state)
            note(self._interp, LOADS, call.node, call.api)

    @on_method("load_state_dict", OF_ONE_MODULE)
    def state_given(self, call: CallEvent) -> None:
        """Something is given a state: a model, or what else is needed to go on with training."""
        state = call.args.pos[0] if call.args.pos else None
        if state is not None and self._is_of_this_run(state):
            self.passed_on = True
            return
        of_module = call.api.endswith(OF_ONE_MODULE)
        model = of_module or (call.owner is not None and has_model(self._interp, v.alternatives(call.owner)))
        note(self._interp, GIVES_STATE if model else RESUMES, call.node, call.api)
        if model and call.owner is not None:
            self.given_states[Tick(self._interp.now)] = tuple(v.alternatives(call.owner))
        kind = call.owner.type if isinstance(call.owner, v.Obj) else ""
        name = receiver(call.node)
        known = not model and kind.partition(".")[0] == "torch"
        if known:
            note(self._interp, GIVES_NO_MODEL, call.node, call.api)
        elif not model and not _computes(running(self._interp), name):
            note(self._interp, GIVES_OPTIMIZER, call.node, call.api)

    def _is_of_this_run(self, state: v.Value) -> bool:
        """Whether a state is one that an object of the program gave before, as the best one so far, and none of a file."""
        given = v.alternatives(state)
        known = [one for one in given if isinstance(one, v.Obj) and one.api.endswith(".state_dict")]
        if len(known) == len(given):
            return True
        # What else it may be is what stood there before the first one, such as None, or is made of such states, if no file
        # has been loaded.
        return not self.loaded_files and (bool(known) or all(isinstance(one, v.Mapping) for one in given))

    @on_call(*sorted(tensors.LOADING))
    def loads_named(self, call: CallEvent) -> None:
        """A file is loaded."""
        self.loaded_files.update(ends_of(self._interp, call.args.get("f", 0)) or {""})

    @on_call_if(lambda activity, api: activity.kb.role(api, "saves-checkpoint") is not None)
    def saves_named(self, call: CallEvent) -> None:
        """Something is saved in a file."""
        ends = ends_of(self._interp, call.args.get("f", 1))
        self.saved_files.update(ends or {""})
        saved = call.args.get("obj", 0)
        if ends and isinstance(saved, (v.Inst, v.Obj)) and _is_whole(self._interp, saved):
            if any(masks(self._interp, one) for one in layers_within(self._interp, saved)):
                self.saved_in_training.update(ends)

    @on_call_if(lambda activity, api: activity.kb.role(api, "loads-weights") is not None)
    def loads_file(self, call: CallEvent) -> None:
        """Weights are loaded into a model that a function is given, or an object was made with."""
        role = self.kb.role(call.api, "loads-weights")
        if role is not None and is_meant(role, call.args, call.owner):
            note(self._interp, LOADS, call.node, call.api)

    @on_call("tf.train.init_from_checkpoint", "tf.compat.v1.train.init_from_checkpoint")
    def from_checkpoint(self, call: CallEvent) -> None:
        """Weights are loaded."""
        note(self._interp, LOADS, call.node, call.api)

    def writes(self, call: CallEvent) -> None:
        """Something is written, other than a picture of the parts of a model."""
        owner = call.owner
        if isinstance(owner, v.Obj) and self.kb.role(owner.api, "shows-structure") is not None:
            return
        _saves(self._interp, call)

    @on_call_if(lambda activity, api: activity.kb.call_is("tells", api) or _may_keep(activity.kb, api))
    def hands_over(self, call: CallEvent) -> None:
        """Something is printed, or given to a library of which nothing is known: it may keep it. What is printed before the
        program fails is no result."""
        if self.kb.call_is("tells", call.api) and self._fails_behind(call.node):
            return
        if not all(isinstance(one, v.Lit) for one in call.args.values()):
            note(self._interp, HANDS_OVER, call.node, call.api)
            if not self.kb.call_is("tells", call.api):
                note(self._interp, TRAINS_ON, call.node, call.api)

    def _fails_behind(self, node: Any) -> bool:
        frame = self._interp.frame
        return not frame.is_class and any(one is node for one in calls_before_failing(frame.function))

    @on(DecoratorEvent)
    def decorated(self, event: DecoratorEvent) -> None:
        """A library is given a function: it may keep what that returns, as a server does."""
        if not (isinstance(event.decorator, v.Ext) and event.decorator.name in BINDING):
            note(self._interp, HANDS_OVER, event.node)

    @on(CallEvent)
    def call(self, call: CallEvent) -> None:
        """Something is called."""
        args = call.args
        if args.pos or args.kw:
            _any_call(self._interp, call)
        elif isinstance(call.owner, (v.Inst, v.Super)):
            _hands_on(self._interp, call)

    @on_call_if(
        lambda activity, api: (
            api in _TELLING or _uses_cuda(api) or activity.kb.call_is("writes-functions", api)
        )
    )
    def telling_call(self, call: CallEvent) -> None:
        """A function is called whose name tells what the program does."""
        _telling_call(self._interp, call)

    @on_always(CallEvent, *_VISIBLE)
    def visible(self, call: CallEvent) -> None:
        """Some devices are shown to a library. The packages around unreached code are imported before it runs."""
        first = call.args.get("devices", 0)
        if isinstance(first, v.Items) and not first.elts and not first.open and _surely_runs(self._interp):
            note(self._interp, NO_GPU_FOR + "tensorflow", call.node, call.api)

    @on_always(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable is set."""
        _env(self._interp, event.name, event.value, event.node)


def _may_keep(kb: Knowledge, api: str) -> bool:
    """Whether a call is one of a library of which nothing is known, nor that it only computes or draws nothing."""
    root = api.partition(".")[0]
    known = root in kb.libraries or root in sys.stdlib_module_names or root == "builtins"
    return not known and not kb.roles(api) and not kb.call_is("draws-nothing", api)


def _is_whole(interp: Interp, value: v.Inst | v.Obj) -> bool:
    """Whether what is saved is a model, with its code, and not its weights."""
    return value.cls.find("forward") is not None if isinstance(value, v.Inst) else is_module(interp, value)


def _by_keras(value: v.Value | None, depth: int = 0) -> bool:
    """Whether a layer, model or loss of Keras gives a tensor, or what it is computed of."""
    if isinstance(value, v.Items):
        return any(_by_keras(one, depth) for one in value.elts)
    if not isinstance(value, v.Obj) or depth > _STEPS_DEPTH:
        return False
    if of_keras(value.api) and value.api.endswith(_OF_A_CALL):
        return True
    return any(_by_keras(one, depth + 1) for one in (*value.args.values(), value.owner))


def _is_newer(model: v.Value, time: int) -> bool:
    """Whether a model was made after a time, and has no part that is older."""
    if not isinstance(model, (v.Inst, v.Obj)) or model.birth <= time:
        return False
    parts = [
        *model.args.values(),
        *model.attrs.values(),
        *([model.owner] if isinstance(model, v.Obj) else []),
    ]
    return all(
        one.birth > time
        for part in parts
        if part is not None
        for one in v.alternatives(part)
        if isinstance(one, (v.Inst, v.Obj))
    )


def _made_of(optimizer: v.Obj) -> Callable[[], tuple[v.Value, ...]]:
    return lambda: tuple(optimized_by(optimizer))


def _models_within(interp: Interp, values: Iterable[v.Value]) -> Iterator[v.Inst | v.Obj]:
    """Models, and those that are parts of them or that they were made of, whatever calls and objects are between them."""
    seen, found = set[int](), [one for value in values for one in v.alternatives(value)]
    while found:
        one = found.pop()
        if isinstance(one, (v.Items, v.Mapping)):
            inner = list(one.elts if isinstance(one, v.Items) else one.items.values())
        elif id(one) in seen or not isinstance(one, (v.Inst, v.Obj)):
            continue
        else:
            seen.add(id(one))
            if has_model(interp, [one]):
                yield one
            inner = [*one.args.values(), *one.attrs.values()]
            inner += [one.owner] if isinstance(one, v.Obj) and one.owner is not None else []
        found += [part for value in inner for part in v.alternatives(value)]


def _unknown(types: list[str]) -> bool:
    return not types or types == ["?"] or types[0].startswith("?")


def _place(found: Runner | None, device: str) -> str:
    """Where a loss is: its own device, or that of the library that takes its gradient."""
    return device or (found.device if found is not None else "")


def _trains_torch(interp: Interp, node: Any, subject: str, device: str) -> None:
    """A gradient is taken on a device ("" for unknown)."""
    note(interp, TRAIN, node, subject)
    if device in ACCELERATORS or selecting_option(device):
        note(interp, device if device in ACCELERATORS else CUDA, node, subject, selecting_option(device))
    if device != "cpu" and not within_cpu(interp.contexts):
        note(interp, TORCH_TRAIN, node, subject, selecting_option(device))
        if device in OTHER_ACCELERATORS:
            return
        note(interp, TORCH_TRAIN_CUDA, node, subject, selecting_option(device))
        if not _is_once(interp, subject):
            note(interp, TORCH_TRAIN_ON, node, subject, selecting_option(device))
        _in_mode(interp, node, subject, device)
    else:
        note(interp, TORCH_TRAIN_CPU, node, subject)


def _in_mode(interp: Interp, node: Any, subject: str, device: str) -> None:
    """Note whether deterministic mode, and the variable that it needs, are on where the program trains on CUDA. What is
    known at its end does not tell one of several commands, or one branch, from the others."""
    for name in BESIDE_THE_MODE:
        on = interp.mode(name).value is True
        (interp.switches.trained_with if on else interp.switches.trained_without)[name] = True
    setting, fresh = interp.mode(DETERMINISTIC), SPAWNED in interp.contexts
    if setting.value is False and not setting.option:
        flag, what = (TORCH_TRAIN_FRESH, interp.spawned) if fresh else (TORCH_TRAIN_EARLY, subject)
        note(interp, flag, node, what, selecting_option(device))
        if not fresh and CUBLAS not in interp.state.env:
            interp.switches.early_without_variable = True
    elif setting.value is True and not fresh:
        here = interp.here(node)
        interp.switches.trained_in_mode[here.path, here.end] = True
        if setting.site is not None and CUBLAS not in interp.state.env:
            interp.switches.without_variable.setdefault(setting.site, lambda: interp.state.noted_aside)


def _trains_tf(interp: Interp, node: Any, subject: str) -> None:
    note(interp, TF_TAPE if subject == _TAKEN else TF_FIT, node, subject)
    note(interp, TRAIN, node, subject)
    note(interp, TF_TRAIN_CPU if within_cpu(interp.contexts) else TF_TRAIN, node, subject)
    if SPAWNED in interp.contexts and interp.mode(OP_DETERMINISM).value is False:
        note(interp, TF_TRAIN_FRESH, node, interp.spawned)
    elif interp.mode(OP_DETERMINISM) == _NOT_SET and not any(
        name in interp.state.env for name in TF_VARIABLES
    ):
        note(interp, TF_TRAIN_EARLY, node, subject)


def _applied(interp: Interp) -> None:
    """Gradients that were taken may change variables: the program trains where they are taken."""
    taken = interp.places.get(TF_TAKEN)
    if taken is not None:
        for flag in (TF_TAPE, TRAIN, TF_TRAIN_CPU if within_cpu(interp.contexts) else TF_TRAIN):
            interp.places.setdefault(flag, taken)


def _of_variables(interp: Interp, sources: v.Value | None) -> bool:
    """Whether gradients are taken of variables, as far as is seen: of no outputs of layers and no constants."""
    if isinstance(sources, v.Items):
        return any(_of_variables(interp, one) for one in sources.elts)
    given = list(v.alternatives(sources)) if sources is not None else []
    return not given or any(
        isinstance(one, v.Member) or (isinstance(one, v.Obj) and not _is_computed(interp, one))
        for one in given
    )


def _is_computed(interp: Interp, value: v.Obj) -> bool:
    """Whether a tensor is what a layer gives, or one in which no variable takes part."""
    role = interp.kb.role(value.api, "no-variable")
    return value.api.endswith(_OF_A_CALL) or (role is not None and not role.when)


_OF_A_CALL = ".__call__"
_NOT_SET = Setting(False, None)
"""A mode that nothing has set."""


def _fits_keras(interp: Interp, node: Any) -> None:
    """A model of Keras is trained, by its backend."""
    backend = keras_backend(interp)
    if backend == DEFAULT_BACKEND:
        _trains_tf(interp, node, "fit")
    elif backend == "torch":
        _trains_torch(interp, node, "fit", keras_device(interp))
    elif backend in EARLIER_BACKENDS:
        note(interp, TRAIN, node, "fit")


def _has_step(interp: Interp) -> bool:
    return GRAPH_STEP in interp.places or GRAPH_STEP_CPU in interp.places


def _run_graph(interp: Interp) -> None:
    """The step of a graph is run: the place at which it was made is where the program trains."""
    places = interp.places
    step = places.get(GRAPH_STEP) or places[GRAPH_STEP_CPU]
    # The device around the call that runs it changes nothing.
    cpu = GRAPH_STEP not in places and OTHER_DEVICE not in interp.state.flags
    for flag in (TF_FIT, TRAIN, TF_TRAIN_CPU if cpu else TF_TRAIN):
        interp.places.setdefault(flag, step)


def _is_step(value: v.Value, depth: int = 0) -> bool:
    """Whether a value is the step of an optimizer, or an operation that runs one."""
    if not isinstance(value, v.Obj) or depth > _STEPS_DEPTH:
        return False
    if value.api.rpartition(".")[2] in ("minimize", "apply_gradients"):
        return True
    return value.api in _GROUPS and any(
        _is_step(one, depth + 1) for given in value.args.values() for one in _nested(given)
    )


def _name_of_step(call: CallEvent) -> str:
    """The name that a graph gives to a step, without its scopes; empty for one that is not known."""
    name = call.args.kw.get("name")
    if isinstance(name, v.Lit) and isinstance(name.value, str):
        return name.value
    # An optimizer gives its own name to what is given none.
    owner = call.owner.api.rpartition(".")[2] if isinstance(call.owner, v.Obj) else ""
    named = isinstance(call.owner, v.Obj) and "name" in call.owner.args.kw
    return owner.removesuffix("Optimizer") if name is None and not named else ""


def _name_in_graph(value: v.Value) -> str:
    """The name of an operation or tensor, without scopes and number, that is a text or what a graph is asked for by it."""
    if isinstance(value, v.Obj) and value.api.rpartition(".")[2] in _BY_NAME:
        value = value.args.get("name", 0) or value.args.get("obj", 0) or v.UNKNOWN
    text = value.value if isinstance(value, v.Lit) else None
    return text.partition(":")[0].rpartition("/")[2] if isinstance(text, str) else ""


_BY_NAME = ("get_operation_by_name", "get_tensor_by_name", "as_graph_element")


def _attribute_that_holds(stmt: m.Stmt | None, node: Any) -> str:
    """The attribute in which a statement stores what a call gives, and nowhere else; empty for none."""
    if not isinstance(stmt, m.Assign) or stmt.value is not node or len(stmt.targets) != 1:
        return ""
    target = stmt.targets[0]
    return target.id.rpartition(".")[2] if isinstance(target, m.Name) and "." in target.id else ""


def _nested(value: v.Value, depth: int = 0) -> list[v.Value]:
    """A value, and those in a sequence or dictionary."""
    if depth > _STEPS_DEPTH:
        return [value]
    if isinstance(value, v.Items):
        return [part for one in value.elts for part in _nested(one, depth + 1)]
    if isinstance(value, v.Mapping):
        return [part for one in value.items.values() for part in _nested(one, depth + 1)]
    return list(v.alternatives(value))


def _note_devices(interp: Interp, value: v.Value | None, node: Any) -> None:
    """Remember the accelerators that a device value names."""
    _note_mps(interp, value, node)
    for one in v.alternatives(value) if value is not None else ():
        name = named(interp, one)
        if name in ACCELERATORS:
            note(interp, name, node, name)
        elif selecting_option(name):
            note(interp, "cuda-device", node, DEVICE, selecting_option(name))
        elif (
            not name and isinstance(one, v.Obj) and one.api == DEVICE and _chosen_elsewhere(interp, one.args)
        ):
            note(interp, "cuda-device", node, DEVICE)


def _note_mps(interp: Interp, value: v.Value | None, node: Any) -> None:
    if is_on_mps(interp, value):
        interp.set_mode(ON_MPS, v.TRUE, node)


def accelerators(interp: RunView) -> list[str]:
    """The accelerators that this run puts torch work on, or may, CUDA first."""
    if interp.device == "cpu":
        return []
    if interp.device != CUDA:
        # A device that is chosen outside of the code is the one that the program is said to run on.
        flags = (interp.device, f"{interp.device}-device", "cuda-device")
        return [interp.device] if any(flag in interp.places for flag in flags) else []
    others = [x for x in OTHER_ACCELERATORS if x in interp.places or f"{x}-device" in interp.places]
    return ["cuda", *others] if may_use_cuda(interp) else others


def trained_on(interp: RunView) -> Literal["", "cpu", "other"]:
    """What this run puts torch work on: "cpu" where it trains on the CPU, and where else it might is not unknown."""
    if accelerators(interp) or TORCH_TRAIN in interp.places:
        return "other"
    return "cpu" if TORCH_TRAIN_CPU in interp.places else ""


def _chosen_elsewhere(interp: RunView, args: v.Args) -> bool:
    """Whether a device's name is not in the code: a configuration that chooses it may choose a GPU."""
    name = args.get("type", 0)
    if isinstance(name, v.Lit) and name.value is None and name.option:
        # It raises for None: an option without a default has to be given.
        return True
    return name is v.UNKNOWN or isinstance(name, v.Member) or _of_configuration(interp, name)


def _of_configuration(interp: RunView, value: v.Value | None) -> bool:
    """Whether a value is an item of a mapping of which nothing is known, or that a file holds, or the default that the
    program names for it, the value of an option that has to be given, or a setting of the command line."""
    if isinstance(value, v.Ext):
        return interp.kb.role(value.name, "gives-setting") is not None
    if not isinstance(value, v.Obj):
        return False
    held, _, method = value.api.rpartition(".")
    if method in _SAME_NAME and isinstance(value.owner, v.Obj):
        return _of_configuration(interp, value.owner)
    if value.api == v.GIVEN or interp.kb.role(value.api, "gives-setting") is not None:
        return True
    key = value.args.pos[0] if value.args.pos else None
    named = isinstance(key, v.Lit) and isinstance(key.value, str)
    return method == "get" and named and (held == "?" or interp.kb.role(held, "reads-data") is not None)


def _from_elsewhere(interp: RunView, value: v.Value) -> bool:
    """Whether nothing is known of what a module is moved to: it is no device of another value, and no element type."""
    for one in v.alternatives(value):
        if one is v.UNKNOWN or _of_configuration(interp, one):
            return True
        if isinstance(one, v.Member) and one.name not in ("dtype", "type"):
            owner = one.owner
            held = isinstance(owner, v.Inst) or (isinstance(owner, v.Obj) and owner.type == tensors.TENSOR)
            if not held and not has_model(interp, [owner]):
                return True
    return False


_SAME_NAME = frozenset({"strip", "lower"})
"""Methods of a text that leave the name of a device as it is."""
_DEVICE_FREE = frozenset(
    {
        "torch.cuda.is_available",
        "torch.cuda.manual_seed",
        "torch.cuda.manual_seed_all",
        "torch.cuda.device_count",
    }
)


_EXEC = frozenset({"os.execv", "os.execve", "os.execvp", "os.execl", "os.execvpe"})
_TELLING: frozenset[str] = frozenset({DEVICE, *_EXEC})


def _uses_cuda(api: str) -> bool:
    return api.startswith("torch.cuda.") and api not in _DEVICE_FREE


def _any_call(interp: Interp, call: CallEvent) -> None:
    api, given = call.api, call.args.kw
    if hands_over_training(interp, api, call.args) and runner(interp, call.owner) is None:
        note(interp, TRAIN, call.node, api)
        note(interp, TORCH_TRAIN, call.node, api)
        note(interp, TORCH_TRAIN_CUDA, call.node, api)
    if "device" in given and api != DEVICE and not _uses_cuda(api):
        _note_devices(interp, given["device"], call.node)
    if "device_map" in given:
        _note_mps(interp, given["device_map"], call.node)
    if "device_ids" in given and v.is_none(given["device_ids"]) is not True:
        note(interp, CUDA, call.node, api)
    _hands_on(interp, call)


def _saves(interp: Interp, call: CallEvent) -> None:
    """Something is written or shown."""
    if STRUCTURE in interp.contexts:
        # The parts and sizes of a model are the same in each run.
        return
    note(interp, SAVES, call.node, call.api)
    if not interp.kb.call_is("shows", call.api):
        note(interp, KEEPS, call.node, call.api)


def _hands_on(interp: Interp, call: CallEvent) -> None:
    """A function may move the weights of modules."""
    # Most move none. Whether any were moved before is asked last: a call that asks is run again behind the first move.
    if may_be_moved_by(interp, call) and MODELS_MOVED not in interp.state.modes:
        _moved_models(interp, call.node)


def _moved_models(interp: Interp, node: Any) -> None:
    """Modules may have been moved, whatever becomes of the path on which that is."""
    note(interp, MODELS_MOVED, node)
    interp.set_mode(MODELS_MOVED, v.TRUE, node)


def _telling_call(interp: Interp, call: CallEvent) -> None:
    api = call.api
    if interp.kb.call_is("writes-functions", api):
        _saves(interp, call)
    elif _uses_cuda(api):
        note(interp, "cuda-api", call.node, api)
    elif api == DEVICE and not interp.importing and not interp.unread(call.node):
        # One that a module defines for others counts where it is used, and one that nothing reads is not used.
        name = named(interp, call.args.get("type", 0))
        if selecting_option(name):
            note(interp, "cuda-device", call.node, api, selecting_option(name))
        elif name in ACCELERATORS or (not name and _chosen_elsewhere(interp, call.args)):
            note(interp, f"{name or 'cuda'}-device", call.node, api)
    elif api in _EXEC:
        note(interp, "exec", call.node, api)


def _env(interp: Interp, name: str, value: v.Value, node: Any) -> None:
    hidden = isinstance(value, v.Lit) and str(value.value) in ("-1", "")
    if name == "CUDA_VISIBLE_DEVICES" and hidden and _surely_runs(interp):
        # The value is the default of an option, or that of one has led here.
        option = v.option_of(value) or own_option(interp.options)
        note(interp, GPU_BY_OPTION if option else NO_GPU, node, name, option)


def _surely_runs(interp: RunView) -> bool:
    """Whether what runs now runs in every run: in no branch that is only possible or that an option opens."""
    return not interp.branching and not interp.state.aside


def may_use_cuda(interp: RunView) -> bool:
    """Whether this run puts torch work on a GPU, or may."""
    if interp.device != CUDA or NO_GPU in interp.places:
        return False
    return any(flag in interp.places for flag in _CUDA_FLAGS)


def may_be_given_cuda(interp: RunView) -> bool:
    """Whether code of which the callers are not known may be given a GPU to work on."""
    return interp.device == CUDA and NO_GPU not in interp.places and not of_cpu_build(interp, "torch")


def without_gpu(interp: RunView, library: str) -> bool:
    """Whether the program hides all GPUs, or hides them from a library."""
    return NO_GPU in interp.places or NO_GPU_FOR + library in interp.places


def of_cpu_build(interp: RunView, library: str) -> bool:
    """Whether the project asks for the build of a library for the CPU, and the program says nothing of a GPU."""
    visible = interp.state.env.get("CUDA_VISIBLE_DEVICES")
    if interp.targets is None or visible is not None or ASKS_GPU_FOR + library in interp.places:
        return False
    return interp.targets.cpu_build(library)


def when_on_cuda(interp: RunView) -> str:
    """Which option puts work on a GPU, in words that follow a statement about it; empty where work is put there
    without any."""
    given = when_given_gpus(interp)
    if given or CUDA_ALWAYS in interp.places:
        return given
    return _when_at(interp, _CUDA_FLAGS)


def when_on(interp: RunView, kind: str) -> str:
    """The same of an accelerator of any kind."""
    return when_on_cuda(interp) if kind == CUDA else _when_at(interp, (kind, f"{kind}-device"))


def _when_at(interp: RunView, flags: Iterable[str]) -> str:
    """Which option leads to the places of flags, in words; empty where one is reached without any."""
    found = [interp.places[flag] for flag in flags if flag in interp.places]
    conditions = [
        when_selected(place.option) or (f" when {given_in_words(place.aside)}" if place.aside else "")
        for place in found
    ]
    return conditions[0] if conditions and all(conditions) else ""


def when_given_gpus(interp: RunView) -> str:
    """Which option has to be given for the program to see a GPU, in words that follow a statement about it."""
    return when_selected(interp.places[GPU_BY_OPTION].option) if GPU_BY_OPTION in interp.places else ""


def when_selected(option: str) -> str:
    """That something holds where an option selects a GPU, in words that follow it; empty without an option."""
    return f" when {quoted(option)} selects a GPU" if option else ""
