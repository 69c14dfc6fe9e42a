"""DET208: several workers feed one Keras model."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeGuard

from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule, argument_node
from d9mlint.checks.derivation import derives
from d9mlint.checks.drawing import GlobalDraws, item_draws, what_is_drawn
from d9mlint.interp import values as v
from d9mlint.interp.argtests import all_hold, any_holds
from d9mlint.interp.calls import owner_types
from d9mlint.interp.containers import BASE
from d9mlint.interp.environment import DEFAULT_BACKEND, keras_backend
from d9mlint.interp.events import AnyDrawEvent, CallEvent
from d9mlint.interp.library.loaders import counts_processors
from d9mlint.interp.listening import on, on_method
from d9mlint.interp.named_sizes import assignments, assignments_in_parts
from d9mlint.interp.naming import written_arguments
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView

_NAMES = {"numpy": "NumPy", "python": "Python"}
_OWN = {"numpy": "np.random.default_rng(seed)", "python": "random.Random(seed)"}


class _Generator(NamedTuple):
    """What makes a generator: a generator function, or a function that calls one and gives back what that gives, with
    what it is called with; and the generator function, by its key."""

    call: v.Partial
    key: tuple[str, int]


class _Phase(NamedTuple):
    """The RNGs that a pipeline draws from; whether it draws from NumPy's while it prepares a batch; and whether it draws
    from that or seeds it at all."""

    drawn: set[str]
    draws: bool
    changes: bool


class _Batches(GlobalDraws):
    """The RNGs that a generator draws from; with ``rounds``, those that it draws from in loops. And the iterators of a
    library that it makes, by the calls that make them."""

    def __init__(self, run: RunView, key: tuple[str, int], rounds: bool = False) -> None:
        super().__init__(run)
        self._key = key
        self._around = len(run.loops) if rounds else -1
        self.iterators: list[v.Obj | CallEvent] = []

    @on(AnyDrawEvent)
    def drew(self, event: AnyDrawEvent) -> None:
        """An RNG is drawn from."""
        if len(self.run.loops) > self._around and self._is_within():
            super().drew(event)

    @on(CallEvent)
    def called(self, event: CallEvent) -> None:
        """Something of a library is called."""
        made = any(entry.kind == "shuffle" for entry in self.run.kb.rng(event.api))
        if made and self._is_within():
            self.iterators.append(event)

    def _is_within(self) -> bool:
        return any(frame.func is not None and frame.func.key == self._key for frame in self.run.stack())


def _draws_for_elements(run: RunView, made: v.Obj | CallEvent) -> bool:
    """Whether an iterator of a library draws for the elements of a batch, in the threads that prepare them. A seed that
    it sets before each of its batches is set for all threads."""
    return any(
        all_hold(made.args, entry.when, made.owner) is True
        and any_holds(made.args, [one for one in entry.unless if one.given is not True], made.owner) is False
        for entry in run.kb.rng(made.api)
        if entry.kind == "transform"
    )


def _seeds_each_batch(run: RunView, made: v.Obj | CallEvent) -> bool:
    """Whether an iterator of a library has a seed, with which it seeds the global RNG before each of its batches."""
    return any(
        any_holds(made.args, [one for one in entry.unless if one.given is True], made.owner) is True
        for entry in run.kb.rng(made.api)
        if entry.kind == "transform"
    )


def _several(workers: v.Value | None) -> TypeGuard[v.Lit]:
    """Whether a known number of workers is more than one."""
    return isinstance(workers, v.Lit) and isinstance(workers.value, int) and workers.value > 1


def _always_draws(run: RunView, made: v.Obj | CallEvent) -> bool:
    """Whether an iterator of a library draws from the global RNG for the elements of a batch, also where it changes none."""
    role = run.kb.role(made.api, "always-draws")
    if role is None or (run.uses("keras") and run.kb_matches("keras", "<2.2")):
        return False
    return run.kb_matches(role.library, role.versions)


def _maker(made: v.Value | None) -> tuple[str, int] | None:
    """The generator function of which a value is a result, if it is not None."""
    given = [one for one in v.alternatives(made) if v.is_none(one) is not True] if made is not None else []
    makers = {one.maker if isinstance(one, v.Items) else None for one in given}
    return makers.pop() if len(makers) == 1 else None


_STORES = (m.AugAssign, m.AnnAssign)
_WORKERS = ("workers", "nb_worker")
_PROCESSES = ("use_multiprocessing", "pickle_safe")
"""Arguments, with their names in Keras 1, which Keras 2 takes too."""


def _given(call: CallEvent, names: tuple[str, ...]) -> tuple[str, v.Value | None]:
    """The name under which an argument is given, and its value."""
    return next(((name, call.args.kw[name]) for name in names if name in call.args.kw), (names[0], None))


class KerasWorkers(Rule):
    """DET208: several workers feed one Keras model."""

    codes = ("DET208",)

    @on_method("fit", "fit_generator")
    def fit(self, call: CallEvent) -> None:
        """A model is trained."""
        if not self._is_model(call):
            return
        data = call.args.get("x", 0) or call.args.kw.get("generator")
        if self._is_at_hand(call, data):
            return
        name, workers = _given(call, _WORKERS)
        option, processes = _given(call, _PROCESSES)
        validation = call.args.kw.get("validation_data")
        message = ""
        targets: tuple[str, ...] = ()
        # Without workers, nothing is prepared ahead.
        ahead = validation is not None and not (isinstance(workers, v.Lit) and workers.value == 0)
        pipeline = ahead and self._one_pipeline(data, validation)
        shared = self._drawn_by_both(call, data, validation) if ahead and not pipeline else ""
        remedy = "use one worker, or a generator per element"
        copied = isinstance(processes, v.Lit) and processes.value is True
        if _several(workers) and self._draws_between(data) and self._is_fixed(validation, between=True):
            message = (
                f"`{name}={workers.value}`: `on_epoch_end` draws in a thread that prepares batches ahead, "
                "so what it draws depends on timing"
            )
            remedy = "use one worker"
        elif _several(workers) and copied:
            message = (
                f"`{name}={workers.value}` with `{option}=True`: every process gets a copy of the RNG states, "
                "and which of them prepares a batch depends on scheduling"
            )
        elif _several(workers):
            message = (
                f"`{name}={workers.value}`: workers share RNG state, so draw order depends on scheduling"
            )
        elif copied:
            message = f"`{option}=True`: every process gets a copy of the RNG states"
        elif pipeline:
            message = "training and validation share one pipeline and race for it unless `workers=0`"
        elif shared:
            message = f"training and validation share the {shared} RNG and race for it unless `workers=0`"
            target = self.run.targets.version("tensorflow") if self.run.targets is not None else None
            targets = (f"tensorflow {target.version}", target.source) if target is not None else ()
        elif self._counted(call, workers, data):
            message = (
                "`workers` is computed from the number of processors: workers share RNG state, "
                "so draw order depends on scheduling"
            )
        elif isinstance(data, v.Inst) and self.run.kb_matches("tensorflow", ">=2.16"):
            base = data.attrs.get(BASE)
            count = (base if isinstance(base, v.Obj) else data).args.kw.get("workers")
            if isinstance(count, v.Lit) and isinstance(count.value, int) and count.value > 1:
                message = f"`PyDataset` with `workers={count.value}`: draw order depends on scheduling"
        if not message and ahead and validation is not None and data is not None:
            self._further_batch(call, data, validation)
        if message:
            fixed = self._draws_nothing(data) and self._is_fixed(validation)
            if fixed:
                what = message.partition(":")[0].partition(" and race")[0]
                message = f"{what}: nothing is drawn for the batches now; draws added later would depend on scheduling"
            self.report(
                "DET208",
                call.node,
                message,
                "pass `workers=0`, as training and validation draw from one generator"
                if pipeline or shared
                else remedy,
                subject="fit",
                severity=Severity.ADVICE if fixed else None,
                targets=targets,
                remedy=("0" if pipeline or shared else "1",),
            )

    def _is_at_hand(self, call: CallEvent, data: v.Value | None) -> bool:
        """Whether the data are arrays, which have their targets beside them, or a dataset of TensorFlow: no worker prepares
        batches of these, whatever their number is."""
        targets = call.args.get("y", 1) if call.api.endswith(".fit") else None
        if targets is not None and not isinstance(targets, v.Lit) and v.is_none(targets) is not True:
            return True
        types = owner_types(self.run, data) if data is not None else []
        return any(self.run.kb.role(one, "needs-no-workers") is not None for one in types)

    def _counted(self, call: CallEvent, workers: v.Value | None, data: v.Value | None) -> bool:
        """Whether there are as many workers as processors, or a part of these, and something is drawn for the batches
        that they prepare."""
        if workers is None or data is None:
            return False
        if not any(counts_processors(self.run, one) for one in v.alternatives(workers)):
            source = derives(self.run, argument_node(call.node, "workers"), "processor-count")
            role = self.run.kb.role(source, "processor-count") if source else None
            known = any(isinstance(one, v.Lit) for one in v.alternatives(workers))
            if known or role is None or role.library != "python":
                return False
        made = argument_node(call.node, "generator", 0) or argument_node(call.node, "x")
        if self._generator(data, made) is not None:
            return bool(self._drawn(data, made))
        return self._draws_for_batches(data)

    def _further_batch(self, call: CallEvent, data: v.Value, validation: v.Value) -> None:
        """Since TensorFlow 2.2 a thread prepares the next batch for training while the model is validated, if there is a
        further one: of a generator function always, of an iterator where the epoch ends before its last batch."""
        if not self.run.kb_matches("tensorflow", ">=2.2") or keras_backend(self.run) != DEFAULT_BACKEND:
            return
        written = argument_node(call.node, "generator", 0) or argument_node(call.node, "x")
        held = argument_node(call.node, "validation_data")
        generators = self._generator(data, written), self._generator(validation, held)
        if generators[0] is not None and generators[1] is not None:
            common = self._drawn_in_rounds(generators[0]) & self._drawn_in_rounds(generators[1])
            found = next((name for name in _NAMES if name in common), "")
            remedy = f"let each of the generators draw from its own `{_OWN.get(found)}`"
        elif isinstance(data, v.Obj) and self._draws_for_batches(data) and self._ends_early(call):
            always = isinstance(validation, v.Obj) and _always_draws(self.run, validation)
            drawn = self._drawn(validation, None) | (
                {"numpy"} if always or self._draws_for_batches(validation) else set()
            )
            found = "numpy" if "numpy" in drawn else ""
            remedy = "leave `steps_per_epoch=` out: an epoch then ends with the last batch"
        else:
            return
        if found:
            self.report(
                "DET208",
                call.node,
                "a thread prepares the next training batch while validation begins, and both draw from the global "
                f"{_NAMES[found]} RNG: what they draw depends on timing",
                remedy,
                subject="fit",
            )

    def _drawn_in_rounds(self, generator: _Generator, rounds: bool = True) -> set[str]:
        """What a generator draws from for its batches: what it draws before, it draws for the first one alone."""
        batches = _Batches(self.run, generator.key, rounds)
        return what_is_drawn(self.run, [generator.call], batches, given=v.NO_ARGS) & batches.drawn

    def _ends_early(self, call: CallEvent) -> bool:
        """Whether the number of steps is rounded down, so that an epoch may end before the last batch."""
        steps = argument_node(call.node, "steps_per_epoch")
        if isinstance(steps, m.Name):
            values = list(assignments(self.run, steps.id))
            steps = values[0] if len(values) == 1 else None
        if (
            isinstance(steps, m.Call)
            and isinstance(steps.func, m.Name)
            and steps.func.id == "int"
            and steps.args
        ):
            return isinstance(steps.args[0], m.BinOp) and steps.args[0].op == "/"
        return isinstance(steps, m.BinOp) and steps.op == "//"

    @on_method("predict", "predict_generator", "evaluate", "evaluate_generator")
    def applied(self, call: CallEvent) -> None:
        """A model is applied to batches, for which something may be drawn."""
        name, workers = _given(call, _WORKERS)
        if not _several(workers):
            return
        data = call.args.get("x", 0) or call.args.kw.get("generator")
        if v.is_zero(call.args.kw.get("steps", v.NONE)):
            return
        if self._is_model(call) and data is not None and self._draws_for_batches(data):
            self._report_sharing(call, f"{name}={workers.value}", "predict", call.args)

    @on_method("start")
    def started(self, call: CallEvent) -> None:
        """A queue starts workers, which prepare the batches of its sequence."""
        role = self.run.kb.role(call.api, "starts-workers")
        owner = call.owner.attrs.get(BASE, call.owner) if isinstance(call.owner, v.Inst) else call.owner
        if role is None or not isinstance(owner, v.Obj):
            return
        data = owner.args.get(role.arg, role.pos)
        name, workers = role.more[0], call.args.get(role.more[0], 0)
        if not _several(workers):
            return
        if data is not None and self._draws_for_batches(data):
            self._report_sharing(call, f"{name}={workers.value}", "start", owner.args)

    def _report_sharing(self, call: CallEvent, given: str, subject: str, args: v.Args) -> None:
        """``args`` say whether the workers are processes."""
        name, processes = next(((one, args.kw[one]) for one in _PROCESSES if one in args.kw), ("", None))
        option = name if isinstance(processes, v.Lit) and processes.value is True else ""
        self.report(
            "DET208",
            call.node,
            f"`{given}` with `{option}=True`: every process gets a copy of the RNG states, so what is drawn for a batch "
            "depends on scheduling"
            if option
            else f"`{given}`: workers share RNG state, so what is drawn for a batch depends on scheduling",
            "use one worker, or a generator per element",
            subject=subject,
            remedy=("1",),
        )

    def _is_model(self, call: CallEvent) -> bool:
        """Whether the receiver of a method is a model of Keras, or may be one in a program that uses Keras."""
        types = owner_types(self.run, call.owner) if call.owner is not None else []
        if any(t.startswith("tf.keras.") for t in types):
            return True
        # A method that only Keras has tells what an object of an import that was not found is.
        inferred = self.run.kb.inferred(f"?.{call.api.rpartition('.')[2]}")
        open_ = types[:1] == ["?"] or (
            inferred is not None and inferred.library == "keras" and isinstance(call.owner, v.Obj)
        )
        return open_ and (self.run.uses("tensorflow") or self.run.uses("keras"))

    def _draws_for_batches(self, data: v.Value) -> bool:
        """Whether something is drawn for each batch, in the threads that prepare them."""
        if isinstance(data, v.Inst):
            return not self._is_empty(data) and bool(self._drawn(data, None))
        return isinstance(data, v.Obj) and _draws_for_elements(self.run, data)

    def _draws_between(self, data: v.Value | None) -> bool:
        """Whether a sequence draws in ``on_epoch_end`` alone, and nothing for its batches. A thread of the queue calls
        that behind the last batch, if the model has not stopped the queue by then."""
        if not isinstance(data, v.Inst) or not isinstance(data.cls.find("on_epoch_end"), v.Func):
            return False
        return not self._draws_nothing(data) and self._draws_nothing(data, ends=False)

    def _is_fixed(self, validation: v.Value | None, between: bool = False) -> bool:
        """Whether there are no data for validation, or arrays, or a sequence that draws nothing; or, with ``between``,
        nothing for its batches."""
        if validation is None or v.is_none(validation) is True:
            return True
        arrays = isinstance(validation, v.Items) and validation.maker is None
        return arrays or self._draws_nothing(validation, ends=not between)

    def _draws_nothing(self, data: v.Value | None, ends: bool = True) -> bool:
        """Whether a sequence surely draws nothing and each of its batches depends on its number alone, whoever prepares
        it; where ``ends`` is false, whatever ``on_epoch_end`` draws."""
        if not isinstance(data, v.Inst) or not isinstance(data.cls.find("__getitem__"), v.Func):
            return False
        ended = data.cls.find("on_epoch_end") if ends else None
        found = item_draws(self.run, [data, ended.bind(data)] if isinstance(ended, v.Func) else [data])
        surely = not (found.drawn or found.unknown or found.libraries or found.op_seeds)
        return surely and not self._carries(data.cls, "__getitem__", set())

    def _carries(self, cls: v.Cls, name: str, seen: set[str]) -> bool:
        """Whether a method, or one of the same object that it calls, sets an attribute of its object."""
        func = cls.find(name)
        if not isinstance(func, v.Func) or not func.fn.params or name in seen:
            return False
        seen.add(name)
        own = f"{func.fn.params[0].name}."
        for one in nodes(self.run.body(func)):
            targets = (
                one.targets if isinstance(one, m.Assign) else [one.target] if isinstance(one, _STORES) else []
            )
            if any(isinstance(each, m.Name) and each.id.startswith(own) for each in nodes(targets)):
                if not all(isinstance(each, m.Subscript) for each in targets):
                    return True
            called = one.func.id if isinstance(one, m.Call) and isinstance(one.func, m.Name) else ""
            if called.startswith(own) and self._carries(cls, called.removeprefix(own), seen):
                return True
        return False

    def _is_empty(self, data: v.Inst) -> bool:
        """Whether a sequence has no batches."""
        counted = data.cls.find("__len__")
        if not isinstance(counted, v.Func):
            return False
        with self.run.fork() as fork:
            count = fork.call(counted.bind(data), v.NO_ARGS, None)
        return v.is_zero(count) and not v.option_of(count)

    def _one_pipeline(self, data: v.Value | None, validation: v.Value | None) -> bool:
        """Whether training and validation read one object, each in another thread."""
        one = validation is data and isinstance(data, v.Inst)
        return one and not self.run.kb_matches("tensorflow", ">=2.16")

    def _drawn_by_both(self, call: CallEvent, data: v.Value | None, validation: v.Value | None) -> str:
        """The global RNG from which both pipelines draw. With TensorFlow 1 each has a thread that prepares batches
        ahead, so that what one draws depends on how far the other is."""
        if validation is None or data is None or not self.run.kb_matches("tensorflow", "<2"):
            return ""
        written = argument_node(call.node, "generator", 0) or argument_node(call.node, "x")
        held = argument_node(call.node, "validation_data")
        # What a generator draws before its first batch, `tf.keras` has drawn when it begins to validate; Keras itself starts
        # both threads at once.
        training = self._phase(data, written, rounds=not self.run.uses("keras"))
        validating = self._phase(validation, held)
        common = training.drawn & validating.drawn
        if (training.draws and validating.changes) or (validating.draws and training.changes):
            common |= {"numpy"}
        return next((text for name, text in _NAMES.items() if name in common), "")

    def _phase(self, pipeline: v.Value, written: m.Expr | None, rounds: bool = False) -> _Phase:
        """What the thread does that prepares the batches of training, or those of validation; with ``rounds``, what it does
        for those after the first one."""
        made = None if isinstance(pipeline, v.Obj) else self._generator(pipeline, written)
        iterators: list[v.Obj | CallEvent] = [pipeline] if isinstance(pipeline, v.Obj) else []
        if made is not None:
            batches = _Batches(self.run, made.key, rounds)
            drawn = what_is_drawn(self.run, [made.call], batches, given=v.NO_ARGS) & batches.drawn
            iterators = batches.iterators
        else:
            drawn = self._drawn(pipeline, written)
        own = "numpy" in drawn
        draws = any(_draws_for_elements(self.run, one) for one in iterators)
        seeds = any(_seeds_each_batch(self.run, one) or _always_draws(self.run, one) for one in iterators)
        return _Phase(drawn, draws or (own and not isinstance(pipeline, v.Obj)), own or seeds)

    def _drawn(self, pipeline: v.Value, written: m.Expr | None) -> set[str]:
        if isinstance(pipeline, v.Obj):
            # An iterator of a library, which draws again in every epoch.
            args, owner = pipeline.args, pipeline.owner
            return {
                name
                for entry in self.run.kb.rng(pipeline.api)
                if entry.kind == "shuffle" and all_hold(args, entry.when, owner)
                if any_holds(args, entry.unless, owner) is False
                for name in entry.draws
            }
        made = self._generator(pipeline, written)
        if made is not None:
            return self._drawn_in_rounds(made, rounds=False)
        ended = pipeline.cls.find("on_epoch_end") if isinstance(pipeline, v.Inst) else None
        parts = [pipeline, ended.bind(pipeline)] if isinstance(ended, v.Func) else [pipeline]
        return what_is_drawn(self.run, parts)

    def _generator(self, made: v.Value | None, written: m.Expr | None) -> _Generator | None:
        """The generator that an argument is: a call of a generator function of the project, or of a function that gives
        back what such a call gives, alone, among others or where it does not give None; also where its one assignment
        is to a name."""
        values = list(assignments_in_parts(self.run, written.id)) if isinstance(written, m.Name) else []
        call = written if not values else values[0][0] if len(values) == 1 else None
        if isinstance(call, m.Subscript):
            call = call.value
        if not isinstance(call, m.Call):
            return None
        function = self.run.value_of(call.func)
        if not isinstance(function, v.Func):
            return None
        key = function.key if function.fn.is_generator else _maker(made)
        return (
            _Generator(v.Partial(function, written_arguments(self.run, call)), key)
            if key is not None
            else None
        )
