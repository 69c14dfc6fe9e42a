"""What is active where the run is: contexts of libraries, some of its own, and options that decide branches.

A remembered call is taken over wherever all that it asked has the same answer, so whoever asks what is active is noted
in the running activation (see ``heap``). Most calls ask nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

from d9mlint.interp.heap import HEAP

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
THREAD = "@thread"
"""Active in what another thread or process runs."""
SPAWNED = "@spawned"
"""Active in what a new process runs that shares nothing with the program."""
RESTORED = "@restored"
"""Active while an instance is made into which the weights of a checkpoint are loaded, as far as that has them."""
NOT_ITERATED = "@not-iterated"
"""Active while what a loader would draw is looked at that the program was not seen to iterate."""
ASKED_FOR_FORM = "@asked for form"
"""Active while an item is made that the program asks for nothing but its form."""
PARSED = "@parsed"
"""Active while an instance is made whose fields the command line or a file may give."""
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

Question = tuple[str, str, Any]
"""What was asked: the kind, how, and for which names, or which object."""
_ANY, _INNERMOST, _OTHER, _ALL = "any", "innermost", "other", "all"


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


def within_cpu(contexts: Active) -> bool:
    """Whether what is made here is put on the CPU: the innermost context of a device decides."""
    return contexts.innermost(_DEVICES) == CPU_CONTEXT
