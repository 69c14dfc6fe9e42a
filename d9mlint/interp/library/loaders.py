"""Data loaders: their datasets, collate functions and samplers run when they are iterated.

In which process they run decides which RNG state they see. With workers, PyTorch seeds ``torch`` and
``random`` in each worker from the loader's base seed (and NumPy's global state too from 1.9 on), so there
these RNGs are as seeded as ``torch`` was; before 1.9 NumPy's state is a copy of the parent's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from d9mlint.interp import rng, shares
from d9mlint.interp import values as v
from d9mlint.interp.collated import keep_item
from d9mlint.interp.containers import BASE
from d9mlint.interp.context import CPU_CONTEXT, LOADER_WORKER, NOT_ITERATED, SPAWNED, THREAD
from d9mlint.interp.data import MOVED, inherited_loader, inherits_items, is_graph_dataset, is_number
from d9mlint.interp.device_names import ACCELERATORS, selecting_option, together
from d9mlint.interp.devices import named
from d9mlint.interp.events import CallEvent, ItemEvent, IterationEvent, Loop
from d9mlint.interp.heap import HEAP
from d9mlint.interp.idle import is_idle
from d9mlint.interp.listening import on, on_method
from d9mlint.interp.naming import for_others, needs_form_only
from d9mlint.interp.passed_on import PASS_THROUGH, inside
from d9mlint.interp.state import SEEDED, Rng, Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.tensors import TENSOR, device
from d9mlint.interp.usage import flatten, use

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.interp.view import RunView

LOADER = "torch.utils.data.DataLoader"
EARLIER_DRAWS = "@earlier draws"
"""Attribute of a loader that is iterated: whether what is drawn for that depends on what the program has drawn before, or
else it has seeded torch each time after the loader was made, and drawn nothing since."""


def make_loader(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``DataLoader(...)``: nothing is drawn until it is iterated, at the latest when the program ends, then by the process
    or thread that made it."""
    loader = v.Obj(LOADER, "", args, node)
    loader.file = interp.frame.file
    frame, unused, idle = interp.frame, is_idle(interp, node), for_others(interp, node)
    if unused:
        loader.attrs[_IDLE] = v.TRUE

    elsewhere = [name for name in (SPAWNED, THREAD) if name in interp.contexts]
    made_in = interp.state, interp.spawned, interp.workers

    def later() -> None:
        if unused or idle():
            return
        interp.frame, kept = frame, interp.frame
        outer = interp.state, interp.spawned, interp.workers
        if elsewhere:
            interp.state, interp.spawned, interp.workers = made_in
        with interp.within(*elsewhere, NOT_ITERATED):
            consume(interp, loader)
        if elsewhere:
            interp.state, interp.spawned, interp.workers = outer
        interp.frame = kept

    interp.pending.append(later)
    return loader


_IDLE = "@idle"
"""Attribute of a loader of whose batches nothing is used."""


GIVES_BATCHES: Final = "gives-batches"


class _Consumed(NamedTuple):
    """``Obj.data`` of a loader that has been iterated: in which loops, by their keys, and in how many places, and the same
    where an option leads that does not have its default value."""

    loops: frozenset[str] = frozenset()
    times: int = 0
    loops_aside: frozenset[str] = frozenset()
    times_aside: int = 0


_MOST_TIMES = 3
"""The draws of a loader are followed where it is iterated in so many places."""


def consume(interp: Interp, loader: v.Obj) -> None:
    """A loader is iterated: its sampler and dataset run now, and again in a loop in which they have not yet run. A look at
    a batch before a loop does not stand for what each of the loop's rounds draws."""
    if _IDLE in loader.attrs:
        return
    loops = frozenset(loop.key for loop in interp.loops)
    known = loader.data if isinstance(loader.data, _Consumed) else _Consumed()
    aside = bool(interp.state.aside)
    before, times = (known.loops_aside, known.times_aside) if aside else (known.loops, known.times)
    if times and (loops <= before or times == _MOST_TIMES):
        return
    if aside:
        loader.data = known._replace(loops_aside=loops | before, times_aside=times + 1)
    else:
        loader.data = known._replace(loops=loops | before, times=times + 1)
    interp.partings.used.append(loader)
    _iterate(interp, loader)
    interp.partings.used.pop()


def _iterate(interp: Interp, loader: v.Obj) -> None:
    args, node = loader.args, loader.node
    for value in (args.get("sampler", 3), args.get("batch_sampler")):
        for one in v.alternatives(value) if value is not None else ():
            if isinstance(one, v.Inst):
                with interp.in_file(loader.file):
                    use(interp, one, node)
            elif isinstance(one, v.Obj):
                # A sampler draws indices; it does not touch the items of the dataset it was given.
                with interp.in_file(one.file):
                    rng.apply(interp, interp.kb.rng(one.api), one.args, one.node or node, at="use")
    with interp.in_file(loader.file):
        rng.apply(interp, interp.kb.rng(LOADER), args, node, at="use")
    workers = args.get("num_workers", 5)
    in_workers = _has_workers(interp, workers) if workers is not None else False
    before = interp.state.rng.save()
    generator = args.get("generator", 12)
    if in_workers is not False and generator is not None and v.is_none(generator) is False:
        # It gives the base seed, from which PyTorch seeds torch and Python's `random` in each worker.
        interp.state.rng["torch"] = Rng(SEEDED)
    from_torch = ("python", "numpy") if interp.workers_seed_numpy() else ("python",)
    if in_workers:
        parent = interp.state.level("torch")._replace(parent="torch")
        for name in from_torch:
            interp.state.rng[name] = parent
    elif in_workers is None:
        # Here or in workers: only what is unseeded in both is surely unseeded.
        for name in ("python", "numpy"):
            level = interp.state.level(name)
            if interp.state.level("torch").level > level.level:
                interp.state.rng[name] = interp.state.level("torch")
            elif name in from_torch and level.level != SEEDED:
                interp.state.rng[name] = level._replace(or_worker="torch")
    dataset = args.get("dataset", 0)
    # What it was given is used in other files than the one in which it was made.
    theirs = {"python", "numpy", "torch"}
    outer, interp.loading = interp.loading, HEAP.clock if in_workers else interp.loading
    contexts = (CPU_CONTEXT, LOADER_WORKER) if in_workers else (CPU_CONTEXT,)
    with interp.within(*contexts), interp.in_file(loader.file):
        if in_workers is not False:
            was = {name: interp.state.level(name) for name in ("python", "numpy")}
            interp.state.flags.pop(rng.OF_WORKERS, None)
            theirs |= _start_worker(interp, args.get("worker_init_fn", 9), node)
            if in_workers and rng.OF_WORKERS in interp.state.flags:
                # What is seeded there with the seed of the worker is as good as torch, which has given it.
                for name, level in was.items():
                    if interp.state.level(name) != level:
                        interp.state.rng[name] = interp.state.level("torch")._replace(parent="torch")
        given = use(interp, dataset, node) if dataset is not None else []
        keep_item(loader, dataset, given)
        given += _collate(interp, args.get("collate_fn"), node)
    interp.loading = outer
    items = [one for value in given for one in flatten(value)]
    moved = _device_of(interp, items) or device(list(_held_tensors(dataset)))
    if (moved in ACCELERATORS or selecting_option(moved)) and MOVED not in loader.attrs:
        # The dataset itself puts its items on a device.
        loader.attrs[MOVED] = v.Lit(moved)
    if in_workers is not False:
        # What workers seed and draw is theirs.
        left = {name: rng for name, rng in interp.state.rng.held.items() if name not in theirs}
        interp.state.rng.restore({**left, **before})


_MOST_NESTED = 4
"""So many datasets inside one another are looked into."""


def _held_tensors(dataset: v.Value | None, depth: int = 0) -> Iterator[v.Obj]:
    """The tensors that a dataset of a library was made of, or parts of it: its items are where these are."""
    if not isinstance(dataset, v.Obj) or depth > _MOST_NESTED:
        return
    for value in dataset.args.values():
        for one in flatten(value):
            if isinstance(one, v.Obj) and (one.type == TENSOR or one.form is not None):
                yield one
            elif isinstance(one, v.Obj):
                yield from _held_tensors(one, depth + 1)


def _device_of(interp: Interp, items: list[v.Value]) -> str:
    """The device of what a dataset gives, or its transforms: where nothing is known of what they are called with, that to
    which it is moved."""
    moved = [
        one
        for one in items
        if isinstance(one, v.Obj) and one.api.startswith("?.") and one.api.endswith(".to")
    ]
    return device(items) or together([named(interp, one.args.get("device", 0)) for one in moved])


def _has_workers(interp: Interp, number: v.Value) -> bool | None:
    """Whether a number of workers is more than zero: as many as there are processors are, also where some are left out, and
    a part of some, rounded up."""
    known = v.truth(number)
    if known is None and all(
        v.truth(one) or counts_processors(interp, one) or shares.is_positive(one)
        for one in v.alternatives(number)
    ):
        return True
    return known


def counts_processors(interp: RunView, number: v.Value) -> bool:
    """Whether a number is that of the processors, or a part of it."""
    role = interp.kb.role(number.api, "processor-count") if isinstance(number, v.Obj) else None
    # There may be no other devices at all.
    return role is not None and role.library == "python"


def _start_worker(interp: Interp, init: v.Value | None, node: Any) -> set[str]:
    """``worker_init_fn`` runs in each worker before anything is loaded: what it seeds is seeded there. The result names the
    RNGs of which nothing was known before, such as those that take their seeds from another one."""
    known = set(interp.state.rng.held)
    interp.starting_worker = True
    try:
        for one in v.alternatives(init) if init is not None else ():
            if isinstance(one, (v.Func, v.Partial, v.Inst)):
                interp.call(one, v.Args([v.UNKNOWN]), node)
    finally:
        interp.starting_worker = False
    return set(interp.state.rng.held) - known


def _collate(interp: Interp, collate: v.Value | None, node: Any) -> list[v.Value]:
    if isinstance(collate, (v.Func, v.Partial)):
        return [interp.call(collate, v.Args([v.UNKNOWN]), node)]
    if isinstance(collate, v.AnyOf) and collate.option:
        return [interp.call(collate, v.Args([v.UNKNOWN]), node)]
    return use(interp, collate, node) if isinstance(collate, (v.Inst, v.Obj, v.Lit)) else []


def is_seeded_before(loader: v.Value) -> tuple[Site, bool] | None:
    """Where a loader was made that is iterated now, and whether the program has always seeded torch right before that."""
    site = made_at(loader) if isinstance(loader, v.Obj) and loader.type == LOADER else None
    if site is None or not isinstance(loader, v.Obj):
        return None
    return site, v.truth(loader.attrs.get(EARLIER_DRAWS) or v.TRUE) is False


class Loaders:
    """Loaders draw when they are iterated."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp

    @on(IterationEvent)
    def iterated(self, event: IterationEvent) -> None:
        """A value is iterated: a loader is consumed, and another object of a library draws what it draws at use."""
        value = event.value
        if isinstance(value, v.Inst):
            made_by = dataset_of(value)
            if made_by is not None and self._makes_items(made_by) and value.cls.find("__iter__") is None:
                self._use(made_by)
            return
        if not isinstance(value, v.Obj):
            return
        if value.type == LOADER:
            if not rng.begins_alike(self._interp, "torch", self._around(value), value.birth):
                value.attrs[EARLIER_DRAWS] = v.TRUE
            elif EARLIER_DRAWS not in value.attrs:
                value.attrs[EARLIER_DRAWS] = v.FALSE
            consume(self._interp, value)
        elif self._makes_items(value):
            self._use(value)
        elif value.node is not None and (entries := self._interp.kb.rng(value.api)):
            drawn = tuple(one for one in entries if one.iterated)
            with self._interp.in_file(value.file):
                rng.apply(self._interp, drawn, value.args, value.node, at="use")

    @on(ItemEvent)
    def item(self, event: ItemEvent) -> None:
        """``dataset[i]`` of a dataset of a library, or of a class that inherits from one: the item is made."""
        self._make_item(event.owner, event.key, event.node)

    @on_method("__getitem__")
    def item_called(self, call: CallEvent) -> None:
        """``dataset.__getitem__(i)`` makes one too."""
        self._make_item(call.owner, call.args.get("", 0) or v.UNKNOWN, call.node)

    @on_method("next", "__next__")
    def next_called(self, call: CallEvent) -> None:
        """``iterator.next()`` makes a batch, where an object of a library is such an iterator."""
        owner = call.owner
        if isinstance(owner, v.Obj) and self._interp.kb.role(owner.api, GIVES_BATCHES) is not None:
            self._use(owner)

    def _make_item(self, owner: v.Value | None, index: v.Value, node: Any) -> None:
        made_by = dataset_of(owner)
        if made_by is None or not self._makes_items(made_by):
            return
        if is_graph_dataset([made_by.api]) and not is_number(index):
            # It gives a part of the dataset.
            return
        if not needs_form_only(self._interp, node):
            self._use(made_by)

    def _around(self, loader: v.Obj) -> Sequence[Loop]:
        """The loops that run when a loader is iterated, without the one that iterates it."""
        loops = self._interp.loops
        over = loops[-1].over if loops else None
        while isinstance(over, v.Obj) and over.api in PASS_THROUGH:
            over = inside(over)
        over = inherited_loader(over) if isinstance(over, v.Inst) else over
        return loops[:-1] if loops and over is loader else loops

    def _makes_items(self, value: v.Obj) -> bool:
        """Whether an object of a library is a dataset whose transforms run, or whose parts are used, for each item."""
        if value.node is None or value.type == LOADER:
            return False
        kb = self._interp.kb
        return (
            kb.role(value.api, "calls-at-use") is not None
            or kb.role(value.api, "takes-items") is not None
            or kb.role(value.api, GIVES_BATCHES) is not None
        )

    def _use(self, dataset: v.Obj) -> None:
        with self._interp.within(CPU_CONTEXT), self._interp.in_file(dataset.file):
            use(self._interp, dataset, dataset.node)


def given_batches(interp: Interp, value: v.Value) -> list[v.Obj]:
    """The iterators of a library that give batches where a value is iterated: it is one, or gives what several do."""
    parts = value.args.pos if isinstance(value, v.Obj) and value.api == "builtins.zip" else [value]
    return [
        one for one in parts if isinstance(one, v.Obj) and interp.kb.role(one.api, GIVES_BATCHES) is not None
    ]


def dataset_of(value: v.Value | None) -> v.Obj | None:
    """The object of a library that makes what the item of a value is, if one does."""
    if isinstance(value, v.Obj):
        return value
    inherited = value.attrs.get(BASE) if isinstance(value, v.Inst) else None
    if not isinstance(inherited, v.Obj) or not isinstance(value, v.Inst):
        return None
    return inherited if inherits_items(value.cls) else None


def split(interp: Interp, api: str, args: v.Args, node: Any) -> v.Value | None:
    """``random_split(dataset, lengths)``: parts of the dataset."""
    dataset = args.get("dataset", 0)
    part = v.Obj("torch.utils.data.Subset", "", v.Args([dataset] if dataset is not None else []), node)
    return v.Items("l", [part], open=True)


LOADER_MODELS = {LOADER: make_loader, "torch.utils.data.random_split": split}
