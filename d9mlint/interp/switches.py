"""How a program switches determinism on and off: library calls and variables that set modes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from d9mlint.interp import graphs
from d9mlint.interp import values as v
from d9mlint.interp.devices import runner_of
from d9mlint.interp.events import CallEvent, EnvironmentEvent, ObjectAttributeEvent
from d9mlint.interp.listening import on, on_call, on_object_attribute
from d9mlint.interp.memory import Memory, remembered, remembered_once, remembered_table
from d9mlint.interp.places import Where
from d9mlint.interp.state import Setting, Site
from d9mlint.interp.text import call_text, with_keys
from d9mlint.ir import nodes as m

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp

DETERMINISTIC = "torch.deterministic"
OF_CUDNN = {"deterministic": "torch.cudnn.deterministic", "benchmark": "torch.cudnn.benchmark"}
"""Arguments of trainers and the modes of cuDNN that they set, which releases without a switch also do by default."""
BESIDE_THE_MODE = (OF_CUDNN["deterministic"],)
"""Modes that make some ops deterministic without deterministic mode."""
OP_DETERMINISM = "tf.deterministic"
CUBLAS = "CUBLAS_WORKSPACE_CONFIG"
"""The environment variable with which cuBLAS, and with it cuDNN's recurrent kernels, keep to one workspace."""
WARN_ONLY = "torch.warn_only"
ENABLE = "tf.config.experimental.enable_op_determinism"
ENABLING = (ENABLE, "fwr13y.d9m.tensorflow.enable_determinism")
"""The calls that enable op determinism of TensorFlow."""
TORCH_SWITCHES = (
    "torch.use_deterministic_algorithms",
    "torch.set_deterministic",
    "torch.set_deterministic_debug_mode",
)
"""The calls that turn deterministic mode of PyTorch on and off."""
TF_VARIABLES = ("TF_DETERMINISTIC_OPS", "TF_CUDNN_DETERMINISTIC")
TF_PATCHES = (
    "tfdeterminism.patch",
    "tfdeterminism.patch.patch",
    "fwd9m.tensorflow.enable_determinism",
)
ARGUMENTS = ("transformers.TrainingArguments", "transformers.Seq2SeqTrainingArguments")
FULL = ("transformers.enable_full_determinism", "transformers.trainer_utils.enable_full_determinism")
"""The arguments of Hugging Face's trainers, and the function that does what these do with ``full_determinism=True``."""
SEEDED_BY_TRAINER = "loaders.seeded_by_trainer"
"""The mode in which a trainer gives its loaders a function that seeds their workers."""
LIGHTNING_TRAINERS = (
    "lightning.Trainer",
    "lightning.pytorch.Trainer",
    "lightning.pytorch.trainer.Trainer",
    "pytorch_lightning.Trainer",
    "lightning.Fabric",
)


def unpacked(node: Any) -> str:
    """The ``**options`` of a call as they are written, empty for a call that has none."""
    keywords = node.keywords if isinstance(node, m.Call) else []
    texts = [with_keys(one.value) for one in keywords if one.name is None]
    if not texts:
        return ""
    return f"`{texts[0]}`" if len(texts) == 1 and texts[0] != "..." else "what the trainer is given"


class TrainerSwitch(NamedTuple):
    """How a trainer is made deterministic: the help, and, where it takes the switch in a dictionary, the argument for that
    with the item."""

    help: str
    item: tuple[str, str] | None = None


def in_dictionary(items: dict[str, str], node: Any) -> TrainerSwitch | None:
    """The switch for a call that passes the dictionary already that has to have it: beside it, a second one is a syntax
    error. None for other calls."""
    keywords = node.keywords if isinstance(node, m.Call) else []
    for one in keywords:
        if one.name is not None and one.name in items:
            place = one.value.id if isinstance(one.value, m.Name) else one.name
            return TrainerSwitch(f"add `{items[one.name]}` to `{place}`", (one.name, items[one.name]))
    return None


def _off_in_some(value: v.Value) -> bool:
    """Whether a switch is on in some of the files of which the program is given one, and off in others."""
    return isinstance(value, v.AnyOf) and any(v.truth(one) is False for one in value.values)


def is_on(value: v.Value) -> bool:
    """Whether a variable's value switches something on."""
    return not (isinstance(value, v.Lit) and str(value.value).lower() in ("0", "false", "none", ""))


class Switches:
    """The switches of one run. Rules read its fields."""

    torch_on = remembered(bool)
    """Whether a trainer or a helper has switched deterministic mode on."""
    reset = remembered_once(Where)
    """Where a trainer has turned it off, which was not asked for it."""
    torch_unknown = remembered(bool)
    """Whether one may have."""
    torch_hidden = remembered_table(str, bool)
    """The options of trainers, as they are written, that may hold the switch and of which nobody knows what they hold."""
    without_variable = remembered_table(Site, str)
    """Where deterministic mode was turned on with which the program then trains on a way on which nothing sets the
    variable of cuBLAS, with the option that leads there."""
    early_without_variable = remembered(bool)
    """Whether it trains without the mode on a way on which nothing sets the variable."""
    trained_in_mode = remembered_table(tuple[str, int], bool)
    """Where the program trains with the mode, on one of the ways that lead there, by file and end."""
    trained_with = remembered_table(str, bool)
    trained_without = remembered_table(str, bool)
    """The other modes with which, and without which, it trains: in a process that it starts, those of the process."""
    tf_on = remembered(bool)
    """Whether op determinism was enabled by a call."""
    tf_patched = remembered(bool)
    tf_graph = remembered(bool)
    """Whether the program builds graphs as in TensorFlow 1."""
    tf_graph_unknown = remembered(bool)
    """Whether it may: an option makes it, or it makes what raises where nothing does."""
    tf_variables = remembered_table(str, str)
    """Variables that enable it and were set, with the option that leads there, empty where none does."""

    def __init__(self, interp: Interp) -> None:
        self._interp = interp

    @property
    def memory(self) -> Memory:
        """Where the fields are remembered."""
        return self._interp.memory

    @property
    def torch_unless(self) -> str:
        """What would have to hold the switch, in words, where nothing else says whether deterministic mode is on."""
        hidden = sorted(self.torch_hidden.known())
        if not hidden or self.torch_on or self.torch_unknown:
            return ""
        return f", unless {' or '.join(hidden)} holds `deterministic=True`"

    @property
    def tf_variable(self) -> bool:
        """Whether a variable enables op determinism."""
        return any(name in self.tf_variables for name in TF_VARIABLES)

    @property
    def tf_by_default(self) -> bool:
        """Whether a call or a variable enables op determinism without an option."""
        by_call = self.tf_on and not self._interp.mode(OP_DETERMINISM).option
        return by_call or any(self.tf_variables.get(name) == "" for name in TF_VARIABLES)

    @property
    def tf_wanted(self) -> bool:
        """Whether anything enables op determinism."""
        return self.tf_on or self.tf_variable or self.tf_patched

    @on_call("torch.use_deterministic_algorithms", "torch.set_deterministic")
    def mode(self, call: CallEvent) -> None:
        """Torch's own switch."""
        value = call.args.get("mode", 0) or call.args.get("d", 0) or v.UNKNOWN
        warn = call.args.get("warn_only", 1)
        self._interp.set_mode(DETERMINISTIC, value, call.node)
        self._interp.set_mode(WARN_ONLY, warn if warn is not None else v.FALSE, call.node)

    @on_call("torch.set_deterministic_debug_mode")
    def debug_mode(self, call: CallEvent) -> None:
        """The same by the name of a level."""
        value = call.args.get("debug_mode", 0)
        known = value.value if isinstance(value, v.Lit) else None
        on_ = v.UNKNOWN if known is None else v.Lit(known not in ("default", 0))
        self._interp.set_mode(DETERMINISTIC, on_, call.node)
        self._interp.set_mode(
            WARN_ONLY, v.UNKNOWN if known is None else v.Lit(known in ("warn", 1)), call.node
        )

    @on_call(*LIGHTNING_TRAINERS)
    def lightning(self, call: CallEvent) -> None:
        """``Trainer(deterministic=True)``."""
        deterministic = call.args.kw.get("deterministic")
        found = runner_of(self._interp, call.api, call.args)
        releases = found.entry.switches if found is not None else ""
        if found is not None and releases and not self._interp.kb_matches(found.entry.library, releases):
            # What it is given, False by default, is for cuDNN alone.
            default = v.UNKNOWN if call.args.dstar else v.FALSE
            for name, mode in OF_CUDNN.items():
                self._interp.set_mode(mode, call.args.kw.get(name, default), call.node)
        elif deterministic is not None and unpacked(call.node) and _off_in_some(deterministic):
            self.torch_hidden[unpacked(call.node)] = True
        elif deterministic is not None:
            self._set(deterministic, call.node)
            warns = isinstance(deterministic, v.Lit) and deterministic.value == "warn"
            self._interp.set_mode(WARN_ONLY, v.Lit(warns), call.node)
            if found is not None and v.truth(deterministic) is True and not v.option_of(deterministic):
                for name, text in found.entry.environment.items():
                    # The program says nothing about it, so that there is nothing to say about where it stands.
                    self._interp.state.env[name] = Setting(text, self._interp.here(call.node))
        elif call.args.dstar:
            # That unknown options may hold it is no sign that they do.
            self.torch_hidden[unpacked(call.node)] = True
        elif found is not None and found.entry.resets:
            library, releases = found.entry.library, found.entry.resets
            if self._interp.kb_matches(library, releases) and self._interp.mode(DETERMINISTIC).value is True:
                self._interp.set_mode(DETERMINISTIC, v.FALSE, call.node)
                self.reset = Where(self._interp, call.node, call_text(call))

    @on_call(*ARGUMENTS)
    def arguments(self, call: CallEvent) -> None:
        """``TrainingArguments(full_determinism=True)``."""
        full = call.args.kw.get("full_determinism")
        if full is not None:
            self._set(full, call.node)

    @on_object_attribute("full_determinism")
    def argument_changed(self, event: ObjectAttributeEvent) -> None:
        """The same of arguments that exist already; their trainer reads it when it is made."""
        self._set(event.value, event.node)

    @on_call(*FULL)
    def full(self, call: CallEvent) -> None:
        """The same as a function."""
        self._set(v.TRUE, call.node)
        self._interp.set_mode(WARN_ONLY, call.args.get("warn_only", 1) or v.FALSE, call.node)

    def _set(self, value: v.Value, node: Any) -> None:
        known = v.truth(value)
        if known is None:
            self.torch_unknown = True
        elif known:
            self.torch_on = True
        self._interp.set_mode(
            DETERMINISTIC, v.UNKNOWN if known is None else v.Lit(known, v.option_of(value)), node
        )

    @on_call(*ENABLING)
    def enable(self, call: CallEvent) -> None:
        """TensorFlow's own switch, or a package that switches on what there is."""
        self._interp.set_mode(OP_DETERMINISM, v.TRUE, call.node)
        self.tf_on = True

    @on_call(*TF_PATCHES)
    def patched(self, call: CallEvent) -> None:
        """A package that patches releases without a switch."""
        self.tf_patched = True

    @on_call("tf.compat.v1.disable_v2_behavior", "tf.compat.v1.disable_eager_execution")
    def graph(self, call: CallEvent) -> None:
        """Graphs as in TensorFlow 1, unless an option has to be given for them."""
        if self._interp.state.aside:
            self.tf_graph_unknown = True
        else:
            self.tf_graph = True

    @on_call("tf.compat.v1.placeholder")
    def placeholder(self, call: CallEvent) -> None:
        """It raises where a program executes eagerly."""
        if graphs.is_eager(self._interp):
            self.tf_graph_unknown = True

    @on_call(*graphs.RESETS)
    def new_graph(self, call: CallEvent) -> None:
        """Another graph becomes the default one that the program has without making one."""
        graphs.reset(self._interp, call.node)

    @on(EnvironmentEvent)
    def variable(self, event: EnvironmentEvent) -> None:
        """A variable enables op determinism."""
        if event.name in TF_VARIABLES and is_on(event.value):
            if self.tf_variables.get(event.name) != "":
                self.tf_variables[event.name] = self._interp.state.noted_aside
