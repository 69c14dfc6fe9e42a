"""What is active where the run is: contexts of libraries, some of its own, and options that decide branches.

A remembered call is taken over wherever all that it asked has the same answer, so whoever asks what is active is noted
in the running activation (see ``heap``). Most calls ask nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex, overload

from d9mlint.interp.heap import HEAP

if TYPE_CHECKING:
    from d9mlint.interp.events import Loop

CPU_CONTEXT = "on the CPU"
"""Active inside ``with tf.device("/CPU:0")`` and in the stages of input pipelines."""

OTHER_DEVICE = "on another device"
"""Active inside ``with tf.device(name)`` of any other name; a flag of the program from then on."""
_DEVICES = frozenset({CPU_CONTEXT, OTHER_DEVICE})

TRAINING_CONTEXT = "@training"
"""A layer is called with ``training=True``: what it draws counts whether or not the program trains."""
INFERENCE_CONTEXT = "@inference"
"""A layer is called with ``training=False``,"""
EITHER_MODE = "@either-mode"
"""or with both, or it is not known with which."""
HANDED = "@handed"
"""A function is looked at that is handed to a library, which runs it with other arguments later."""
TAKEN_UP = "@taken up"
"""A function is looked at that a library wraps or describes, while it has not begun to compute."""
EACH_ELEMENT = "@each element"
"""Active in the part of a comprehension that is computed for each element of what it goes through."""
THREAD = "@thread"
"""Active in what another thread or process runs."""
LOADER_WORKER = "@loader worker"
"""Active in what a worker process of a loader runs."""
SPAWNED = "@spawned"
"""Active in what a new process runs that shares nothing with the program."""
RESTORED = "@restored"
"""Active while an instance is made into which the weights of a checkpoint are loaded, as far as that has them."""
NOT_ITERATED = "@not-iterated"
"""Active while what a loader would draw is looked at that the program was not seen to iterate."""
NEVER_TAKEN = "@never taken"
"""Active in a function that a library traces for the elements of something of which nothing takes one."""
CALLED_BACK = "@called back"
"""Active in a function that a library was given, which may call it later than it is followed."""
STRUCTURE = "@structure"
"""Active in a function to which a library gives the parts and sizes of a model, line by line."""
PLAYED = "@played"
"""Active in the methods of an environment that a library plays with: the seed that it hands over is known elsewhere."""
ASKED_FOR_FORM = "@asked for form"
"""Active while an item is made that the program asks for nothing but its form."""
PARSED = "@parsed"
"""Active while an instance is made whose fields the command line or a file may give."""
REUSED = "@reused"
"""Active where TensorFlow 1 takes variables that there are in place of new ones."""
FROZEN = "frozen"
"""Active in a module whose parameters do not require grad."""

DIFFERENTIATED = "@differentiated"
"""Active in a function of which a library takes a gradient; the mark of what it is taken of."""
TRAINED_WEIGHTS = "@trained weights"
"""Active there in a module that is given its weights, which the gradient is taken of,"""
FIXED_WEIGHTS = "@fixed weights"
"""or others."""

QUIET = "torch.no_grad"
"""Active where a library has switched gradients off."""
NO_GRADIENT = frozenset({QUIET, "torch.inference_mode"})
GRADIENT = frozenset({"torch.enable_grad"})
GRADIENT_MODES = NO_GRADIENT | GRADIENT
"""Contexts in which no gradient is recorded, and in which it is again."""

CONTEXT, OPTION = "context", "option"
"""Kinds of what is active: context managers and decorators; options whose defaults decided branches."""
INSTEAD = "instead"
"""Asked for the birth of an object: what stands in its place if an option is given, see ``given_instead``."""
RESULT = "result"
"""Asked of a call: whether what it returns, or what that holds somewhere, is idle in its caller, see ``idle``."""
LOOPS = "loops"
"""Asked of the loops around a call: whether there are any, how many, or which."""

Question = tuple[str, str, Any]
"""What was asked: the kind, how, and for which names, or which object."""
REPEATED = "repeated"
"""Asked of the loops for the one of which one round is run for many: which that is."""
_ANY, _INNERMOST, _WITHIN, _OTHER, _ALL, _COUNT = "any", "innermost", "within", "other", "all", "count"
_NOTHING: frozenset[str] = frozenset()


class Active(Sequence[str]):
    """Names that are active, the innermost last. Every way to look at them but ``held`` is noted."""

    __slots__ = ("_kind", "held")

    def __init__(self, kind: str, held: Iterable[str] = ()) -> None:
        self._kind = kind
        self.held = list(held)
        """The names, for those whose answer does not depend on them."""

    def copy(self) -> Active:
        """An independent copy; making one asks nothing."""
        return Active(self._kind, self.held)

    def innermost(self, names: frozenset[str]) -> str | None:
        """The innermost of these names that is active, None where none of them is."""
        found: str | None = self._asked(_INNERMOST, names)
        return found

    def within(self, names: frozenset[str], ended_by: frozenset[str] = _NOTHING) -> bool | None:
        """Whether one of these names is active, and none inside of it that ends what they do; None where none of all of them
        is. Which one it is makes no difference to who asks this."""
        found: bool | None = self._asked(_WITHIN, (names, ended_by))
        return found

    def innermost_but(self, name: str) -> str:
        """The innermost active name that is not this one; empty where there is none."""
        found: str = self._asked(_OTHER, name)
        return found

    def _asked(self, how: str, names: Any) -> Any:
        question = (self._kind, how, names)
        HEAP.act.circumstances.add(question)
        return self.answer(question)

    def answer(self, question: Question) -> Any:
        """The answer to a question, which is not noted."""
        _, how, names = question
        if how is _ANY:
            return names in self.held
        if how is _INNERMOST:
            return next((one for one in reversed(self.held) if one in names), None)
        if how is _WITHIN:
            inside, ended_by = names
            return next(
                (one in inside for one in reversed(self.held) if one in inside or one in ended_by), None
            )
        if how is _OTHER:
            return next((one for one in reversed(self.held) if one != names), "")
        return tuple(self.held)

    def __contains__(self, name: object) -> bool:
        found: bool = self._asked(_ANY, name)
        return found

    def __len__(self) -> int:
        return len(self._asked(_ALL, None))

    def __iter__(self) -> Iterator[str]:
        return iter(self._asked(_ALL, None))

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[str]: ...

    def __getitem__(self, index: int | slice) -> str | Sequence[str]:
        found: str | Sequence[str] = self._asked(_ALL, None)[index]
        return found


class Running(list["Loop"]):
    """The loops that are running, the outermost first. Whoever looks at loops around the running activation is noted:
    what a rule notes under a loop is missing for the next loop that makes the same call if that is taken over."""

    __slots__ = ()

    def copy(self) -> Running:
        """An independent copy; making one asks nothing."""
        return Running(list.__iter__(self))

    @property
    def depth(self) -> int:
        """How many there are, for those who only bound what is run; asks nothing."""
        return list.__len__(self)

    def marked(self, name: str, since: int = 0) -> tuple[str, ...]:
        """The keys of the loops that began ``since`` then, for who notes of each of them that something happens in it.
        Nothing is asked: where a call in which that happens is taken over, a ``RepeatedEvent`` tells that it happens in the
        loops that run there."""
        HEAP.act.in_loops.add(name)
        return tuple(loop.key for loop in list.__iter__(self) if loop.start > since)

    def repeated(self, start: int) -> str:
        """The key of the loop that began at ``start``, which is the one of which one round is run for many."""
        if start <= HEAP.act.began:
            HEAP.act.circumstances.add((LOOPS, REPEATED, None))
        return self.key_of(start)

    def key_of(self, start: int) -> str:
        """The key of the loop that began then, which is not noted; empty where none did."""
        return next((loop.key for loop in list.__iter__(self) if loop.start == start), "")

    def within(self, keys: frozenset[str]) -> bool:
        """Whether one of the loops with these keys is running."""
        question = (LOOPS, _WITHIN, keys)
        HEAP.act.circumstances.add(question)
        found: bool = self.answer(question)
        return found

    @property
    def nested(self) -> bool:
        """Whether there are several. Of the loops around the running activation only whether there are any is asked."""
        own, began = 0, HEAP.act.began
        for loop in list.__reversed__(self):
            if loop.start <= began:
                break
            own += 1
            if own > 1:
                return True
        HEAP.act.circumstances.add((LOOPS, _ANY if own else _COUNT, None))
        return list.__len__(self) > 1

    def answer(self, question: Question) -> Any:
        """The answer to a question where a call is made, which is not noted."""
        how, count = question[1], list.__len__(self)
        if how is _ANY:
            return count > 0
        if how is _WITHIN:
            return any(loop.key in question[2] for loop in list.__iter__(self))
        if how is _COUNT:
            return count
        if how is _INNERMOST:
            return list.__getitem__(self, -1).key if count else ""
        return tuple(loop.key for loop in list.__iter__(self))

    def _is_own(self) -> bool:
        """Whether the innermost loop began in the running activation."""
        return list.__len__(self) > 0 and list.__getitem__(self, -1).start > HEAP.act.began

    def __bool__(self) -> bool:
        if self._is_own():
            return True
        HEAP.act.circumstances.add((LOOPS, _ANY, None))
        return list.__len__(self) > 0

    def __len__(self) -> int:
        HEAP.act.circumstances.add((LOOPS, _COUNT, None))
        return list.__len__(self)

    def __iter__(self) -> Iterator[Loop]:
        HEAP.act.circumstances.add((LOOPS, _ALL, None))
        return list.__iter__(self)

    def __reversed__(self) -> Iterator[Loop]:
        began = HEAP.act.began
        loops = list(list.__iter__(self))
        while loops and loops[-1].start > began:
            yield loops.pop()
        HEAP.act.circumstances.add((LOOPS, _ALL, None))
        yield from reversed(loops)

    @overload
    def __getitem__(self, index: SupportsIndex) -> Loop: ...

    @overload
    def __getitem__(self, index: slice) -> list[Loop]: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Loop | list[Loop]:
        if index != -1:
            HEAP.act.circumstances.add((LOOPS, _ALL, None))
        elif not self._is_own():
            HEAP.act.circumstances.add((LOOPS, _INNERMOST, None))
        return list.__getitem__(self, index)


def within_cpu(contexts: Active) -> bool:
    """Whether what is made here is put on the CPU: the innermost context of a device decides."""
    return contexts.innermost(_DEVICES) == CPU_CONTEXT
