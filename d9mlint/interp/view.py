"""What rules see of a run: they ask, and change nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from d9mlint.base.coverage import GapKind
    from d9mlint.config.targets import Targets
    from d9mlint.interp import values as v
    from d9mlint.interp.context import Active, Running
    from d9mlint.interp.frames import Frame
    from d9mlint.interp.given_instead import Instead
    from d9mlint.interp.memory import Memory
    from d9mlint.interp.orders import Orders
    from d9mlint.interp.places import Where
    from d9mlint.interp.state import Rng, Setting, Site, StateTable, Ways
    from d9mlint.interp.switches import Switches, TrainerSwitch
    from d9mlint.ir import nodes as m
    from d9mlint.knowledge import Knowledge
    from d9mlint.project.modules import ModuleFile, Modules


class StateView(Protocol):
    """What is known at a point of a path: seeds, modes, variables."""

    @property
    def aside(self) -> str:
        """The option that has to be given for the program to come here."""

    @property
    def noted_aside(self) -> str:
        """The same, for what is recorded about a place; see ``state.State``."""

    @property
    def lost(self) -> bool:
        """Whether the path has ended where the program asks for a name that nothing defines."""

    @property
    def env(self) -> Mapping[str, Setting]:
        """Environment variables that were set."""

    @property
    def modes(self) -> Mapping[str, Setting]:
        """Determinism modes that were set."""

    def level(self, rng: str) -> Rng:
        """Whether an RNG is seeded."""


class Fork(Protocol):
    """A run in speculation: what is done in it is forgotten."""

    def forget_seeds(self) -> None:
        """Whether any RNG is seeded is not known from here."""

    def forget_later_variables(self, time: int) -> None:
        """What variables were given after a time, where an option is given, is not held by what was made before."""

    def call(self, func: v.Value, args: v.Args, node: Any) -> v.Value:
        """Call a value."""

    def use(self, value: v.Value) -> None:
        """Use a dataset, a sampler or a transform, as a loader does."""

    def within(self, *names: str) -> AbstractContextManager[None]:
        """Run with these context managers active."""


class RunView(Protocol):
    """One run of an entry point, or, with ``entry`` None, over code that none reaches."""

    @property
    def kb(self) -> Knowledge:
        """The knowledge base."""

    @property
    def modules(self) -> Modules:
        """The modules of the project."""

    @property
    def targets(self) -> Targets | None:
        """The versions of libraries that are judged by."""

    @property
    def device(self) -> str:
        """The device that the configuration names."""

    @property
    def device_given(self) -> bool:
        """Whether the user named it."""

    @property
    def entry(self) -> ModuleFile | None:
        """The file that the run starts from."""

    @property
    def spawned(self) -> str:
        """The function that a process runs which the program starts; empty in the program itself and in its threads."""

    @property
    def process_began(self) -> int:
        """When that process began, as the starts of loops are counted; 0 in the program itself."""

    @property
    def imported_files(self) -> frozenset[str]:
        """Paths of the files that other files of the project import."""

    @property
    def used_files(self) -> frozenset[str]:
        """Those of them that some file imports which is no test."""

    @property
    def judged(self) -> frozenset[tuple[str, int]]:
        """In a run over unreached code: the functions that are judged."""

    @property
    def state(self) -> StateView:
        """What is known here."""

    @property
    def frame(self) -> Frame:
        """The activation that is running."""

    @property
    def statement(self) -> Any:
        """The statement that is running, None outside of any code."""

    @property
    def worker(self) -> str:
        """What names the thread or process that runs what is running; empty for the main one of the program."""

    @property
    def places(self) -> Mapping[str, Where]:
        """The first places at which the program did something; see ``activity``."""

    @property
    def contexts(self) -> Active:
        """Context managers and decorators that are active, by canonical names."""

    @property
    def loops(self) -> Running:
        """Loops that are running, outermost first."""

    @property
    def repeating(self) -> int:
        """When the innermost loop began whose body is run once for all of its rounds; 0 outside of such loops."""

    @property
    def options(self) -> Active:
        """Options whose defaults decided the branches that are running."""

    @property
    def orders(self) -> Orders:
        """Arbitrary orders and what they decide."""

    @property
    def switches(self) -> Switches:
        """How determinism is switched on and off."""

    def trainer_switch(self, site: Site) -> TrainerSwitch | None:
        """How the trainer that trains at a place is made deterministic."""

    @property
    def training_loops(self) -> frozenset[str]:
        """The loops, by their keys, in which this run trains."""

    @property
    def memory(self) -> Memory:
        """What listeners remember; they reach it through their fields."""

    @property
    def marks(self) -> StateTable[Any]:
        """Marks of the present path; listeners reach theirs through their fields."""

    @property
    def loaded_weights(self) -> frozenset[Site]:
        """Where the modules were made over whose initial weights others have been loaded."""

    @property
    def loaded_if_given(self) -> frozenset[tuple[Site, str]]:
        """Where the modules were made over whose initial weights others have been loaded if an option is given, with the
        option."""

    @property
    def asides(self) -> list[str]:
        """The options of the branches that are running which their defaults do not take."""

    @property
    def given(self) -> list[Ways]:
        """What has to hold of options for these branches to be taken."""

    @property
    def assumed(self) -> tuple[str, ...]:
        """What the command line is taken to choose where a configuration leaves it open: ``data=mnist``."""

    @property
    def given_instead(self) -> dict[int, list[Instead]]:
        """What stands in the place of an object if an option is given, with the option, by the birth of the object."""

    @property
    def in_default(self) -> bool:
        """Whether the default of a parameter is evaluated."""

    @property
    def called_without_gradient(self) -> frozenset[tuple[str, int]]:
        """In a run over unreached code: the functions that are called only where no gradient is recorded."""

    @property
    def overwritten_draws(self) -> frozenset[Site]:
        """Where values were drawn that were overwritten before they were read."""

    @property
    def shown_if_given(self) -> frozenset[Site]:
        """Where values were drawn of which only the form is looked at, if an option is given."""

    def unread(self, node: m.Expr) -> bool:
        """Whether the statement that is running stores what an expression gives in variables that nothing reads."""

    def only_viewed(self, node: m.Expr) -> bool:
        """Whether what an expression draws, and what is chosen by it, is only shown to a person on a screen or page."""

    @property
    def in_worker(self) -> bool:
        """Whether this is what a worker process runs when it starts."""

    @property
    def starting_worker(self) -> bool:
        """Whether a worker of a loader starts now, which seeds nothing in the process of the program."""

    @property
    def loading(self) -> int:
        """When the worker processes of a loader began that run this: with an iteration of the loader. 0 where it is not sure
        that this runs in one."""

    @property
    def importing(self) -> int:
        """How many imports are running."""

    @property
    def guessing(self) -> int:
        """How many calls are running whose target is guessed."""

    @property
    def branching(self) -> int:
        """How many branches are running that may not happen."""

    @property
    def uncertain(self) -> int:
        """How many calls are running that may not happen at all."""

    @property
    def exhausted(self) -> bool:
        """Whether the budget is used up."""

    @property
    def now(self) -> int:
        """The time of the run: objects that are made later have a later birth."""

    @property
    def trains_networks(self) -> bool:
        """Whether the program trains what may be a network."""

    def trains_with(self, time: int, later: bool = False) -> bool:
        """Whether the program may train on a path on which it did something at a time, or does so ``later``."""

    @property
    def used(self) -> Sequence[v.Obj]:
        """The objects of libraries that are being used, outermost first."""

    def instead(self, time: int) -> bool:
        """Whether the run came here through one of several objects that a variable may hold, another one of which was
        made in the branch that was running then."""

    def of_other_branches(self, one: int, other: int) -> bool:
        """Whether two times lie in branches of which only one is taken."""

    def exclusive(self, time: int) -> bool:
        """Whether the run came here through something made in a branch that excludes the one that was running then."""

    @property
    def steps(self) -> int:
        """Statements run so far."""

    @property
    def silences(self) -> Callable[[str, Site, str], None] | None:
        """Takes why a rule does not report a place that it has looked at, where somebody asks."""

    def stack(self) -> list[Frame]:
        """The frames from the entry point to here."""

    def here(self, node: Any = None) -> Site:
        """The place of a node in the current file."""

    def body(self, func: v.Func) -> list[m.Stmt]:
        """The statements of a function that is looked at without running it. Which ones were is noted: what is found
        holds as long as they stay."""

    def reads_variable(self, file: ModuleFile, name: str, outside: bool = False) -> bool:
        """Whether anything that has run may have read a variable of a module; ``outside`` of its body."""

    def reads_attribute(
        self,
        file: ModuleFile,
        name: str,
        classes: frozenset[tuple[str, int]] | None = None,
        by_run: bool = False,
    ) -> bool:
        """Whether the program may do more with attributes of a name, of instances of a class in a file, than assign them,
        store items in them and ask what is in them. What methods do with their own objects counts in these classes alone,
        by file and where each begins, if they are known. With ``by_run``, what methods do that have not run does not count
        where all of the program was followed."""

    def uses_attribute(self, file: ModuleFile, name: str, classes: frozenset[tuple[str, int]]) -> bool:
        """Whether the code of a file may do more with attributes of a name, of instances of its classes, than assign them.
        For code that no program reaches: that of other files is not looked at."""

    def methods_named(self, name: str) -> list[tuple[v.Cls, v.Func]]:
        """Methods of this name in the project classes seen so far."""

    def mentions(self, parts: Iterable[str]) -> bool:
        """Whether a file of the program that has run, or may have, uses names which contain one of these texts."""

    def uses_word(self, word: str, besides: ModuleFile | None = None) -> bool:
        """Whether a file of the program that has run, or may have, but one of them, uses a name."""

    def calls_elements(self, parts: Iterable[str], methods: tuple[str, ...]) -> bool:
        """Whether a file of the program that has run, or may have, may call what attributes or methods give whose names
        contain one of these texts, or call one of some methods of it."""

    def whole(self, file: ModuleFile) -> m.FileFacts:
        """All code of a file that is looked at without running it, noted as ``body`` is."""

    def uses(self, library: str) -> bool:
        """Whether the program has imported a library."""

    def in_doubt(self, birth: int) -> bool:
        """Whether what is done to an object may not happen to it: the branch may not, and the object is older."""

    def mode(self, name: str) -> Setting:
        """A mode's setting here; its value is False where nothing set it, None for unknown."""

    def kb_matches(self, library: str, spec: str) -> bool:
        """Whether the target version of a library lies in a range; False without targets."""

    def workers_seed_numpy(self) -> bool:
        """Whether DataLoader workers seed NumPy's global state."""

    def value_of(self, node: m.Expr) -> v.Value:
        """The abstract value of an expression, read once more: what it calls is neither done nor observed again."""

    def in_frame(self, frame: Frame) -> AbstractContextManager[None]:
        """Look at expressions as they stand in another activation that is running."""

    def later(self, judge: Callable[[], None]) -> None:
        """Judge when the program has run to its end, or the entry point's next command begins."""

    def fork(
        self, *observers: object, frame: Frame | None = None, worker: bool = False
    ) -> AbstractContextManager[Fork]:
        """Speculate: what happens inside leaves no trace but violations at their places.

        ``observers`` get what happens there, ``frame`` is the activation from which it is done, and with
        ``worker`` it is what a worker process runs when it starts."""

    def gap(self, kind: GapKind, text: str, node: Any) -> None:
        """Something that may matter is not followed here."""

    def gap_at(self, kind: GapKind, text: str, site: Site) -> None:
        """Something that may matter is not followed at a place."""

    def has_gap(self, kind: GapKind, site: Site) -> bool:
        """Whether something of this kind is not followed at a place."""

    def has_run(self, function: tuple[str, int]) -> bool:
        """Whether a function of the project, by its file and its index there, has run."""
