"""What an analysis run does not follow: it is noted for the coverage, and is no hazard by itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from d9mlint.base.coverage import BY_ATTRIBUTE, BY_CONFIGURATION, Coverage, Gap
from d9mlint.checks.base import Rule
from d9mlint.checks.ops.given import receiver_node
from d9mlint.interp import values as v
from d9mlint.interp.devices import named
from d9mlint.interp.events import CallEvent
from d9mlint.interp.library.builtins import MODELS
from d9mlint.interp.library.reflection import READING
from d9mlint.interp.listening import on_call_if
from d9mlint.interp.passed_on import PASS_THROUGH
from d9mlint.interp.tensors import TENSOR
from d9mlint.interp.text import written
from d9mlint.interp.usage import handed_over
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import called_name
from d9mlint.ir.unread import UNKNOWN

if TYPE_CHECKING:
    from d9mlint.base.entry_report import EntryReport
    from d9mlint.interp.entry_run import Project
    from d9mlint.interp.view import RunView
    from d9mlint.knowledge import Knowledge
    from d9mlint.project.modules import ModuleFile

# Types of plain values, as those of options, have methods that train nothing.
PLAIN = frozenset({*sys.stdlib_module_names, "builtins", "object", "super", v.GIVEN}) | frozenset(
    kind.__name__ for kind in (tuple, list, set, dict, str, bytes, int, float, bool, complex, type(None))
)
_MODELS = ("torch.nn.", "tf.keras.", "keras.", "lightning.", "pytorch_lightning.", "flax.")
_OPTIMIZERS = ("torch.optim.", "tf.keras.optimizers.", "keras.optimizers.", "optax.")
_LOADERS = ("torch.utils.data.DataLoader", "tf.data.Dataset", "torch_geometric.loader.")


def _may_matter(kb: Knowledge, api: str) -> bool:
    """Whether calls of a name are looked at."""
    if api == "torch.device" or api.endswith(".to") or kb.role(api, "made-by-configuration") is not None:
        return True
    return is_unknown(kb, api)


def is_unknown(kb: Knowledge, api: str) -> bool:
    """Whether nothing is known of what is called, nor of its library."""
    root = api.partition(".")[0]
    if root in PLAIN or root in kb.libraries or api in MODELS or api in PASS_THROUGH:
        return False
    return not (kb.roles(api) or kb.call_is("writes-functions", api) or kb.call_is("tells", api))


class NotFollowed(Rule):
    """Notes calls that nothing is known of."""

    @on_call_if(lambda rule, api: rule.run.entry is not None and _may_matter(rule.run.kb, api))
    def call(self, call: CallEvent) -> None:
        """Something is called."""
        _call(self.run, call)


def _call(interp: RunView, call: CallEvent) -> None:
    node = call.node
    if not isinstance(node, m.Call) or (isinstance(node.func, m.Name) and node.func.id == UNKNOWN):
        # What does not parse is reported for itself.
        return
    api = call.api
    if api == "torch.device" or api.endswith(".to"):
        _device(interp, call)
        return
    root, _, rest = api.partition(".")
    if root == "?" and not rest:
        # A name that holds no known function, or an expression that is computed: `getattr(module, name)(model)`.
        what = _received(interp, call.args) or ("" if _looked_up(node.func) else None)
        if what is not None:
            given = f" and receives {what}" if what else ""
            decided = BY_ATTRIBUTE if _is_attribute(interp, node.func) else "is decided at run time"
            interp.gap("dynamic-call", f"the call of `{written(node.func)}` {decided}{given}", node)
        return
    made = interp.kb.role(api, "made-by-configuration")
    if made is not None and not _configured(call.args.get(made.arg, made.pos), *made.more):
        what = _received(interp, call.args)
        given = f" and receives {what}" if what else ""
        interp.gap("dynamic-call", f"what `{rest}` makes {BY_CONFIGURATION}{given}", node)
        return
    if not is_unknown(interp.kb, api):
        return
    what = _received(interp, call.args, losses=root != "?") or (
        "" if root == "?" else _played(interp, call.args)
    )
    if not what:
        return
    if root == "?":
        interp.gap("dynamic-call", f"the object whose `{rest}` receives {what} is not known", node)
    else:
        interp.gap("library-call", f"nothing is known of `{api}`, which receives {what}", node)


def _configured(config: v.Value | None, key: str) -> bool:
    """Whether the configuration that an object is built from names its class under this key, or those of its parts."""
    if isinstance(config, v.Lit):
        # A text that is known names it.
        return isinstance(config.value, str)
    if isinstance(config, v.Inst):
        return isinstance(config.attrs.get(key), v.Lit)
    if isinstance(config, v.Mapping) and key in config.items:
        return isinstance(config.items[key], v.Lit)
    if not isinstance(config, v.Mapping | v.Items) or config.open:
        return False
    parts = config.elts if isinstance(config, v.Items) else config.items.values()
    return all(_configured(one, key) for one in parts if isinstance(one, v.Mapping | v.Items))


def _looked_up(func: m.Expr) -> bool:
    """Whether what is called is found by a computation: a call, a subscript."""
    return isinstance(func, (m.Call, m.Subscript))


def _is_attribute(interp: RunView, func: m.Expr) -> bool:
    """Whether what is called is an attribute by its name of objects of known classes, of such a class or of a library's
    module: these have no functions but those that code names, or that their own classes define."""
    if not isinstance(func, m.Call) or called_name(func) not in READING or not func.args:
        return False
    holder = func.args[0] if called_name(func) == "getattr" else receiver_node(func)
    owners = v.alternatives(interp.value_of(holder)) if holder is not None else ()
    return bool(owners) and all(isinstance(one, v.Inst | v.Cls | v.Ext) for one in owners)


def _received(interp: RunView, args: v.Args, losses: bool = True) -> str:
    """What of a training a call is given: empty for nothing."""
    bare = {id(one) for value in args.values() for one in v.alternatives(value)} if losses else ()
    for one in handed_over(args):
        found = _role(interp, one)
        # What has losses in a mapping writes them into a log.
        if found and (found != "a loss" or id(one) in bare):
            return found
    return ""


def _role(interp: RunView, value: v.Value) -> str:
    if isinstance(value, v.Inst):
        for base in value.cls.external_bases():
            name = interp.kb.canonical(base)
            found = _named(name)
            if found:
                return found
        return ""
    if not isinstance(value, v.Obj):
        return ""
    if value.type == TENSOR:
        form = value.form
        return "a loss" if form is not None and form.grad and form.sizes == () else ""
    return _named(value.type)


def _played(interp: RunView, args: v.Args) -> str:
    """What of the program a call is given whose methods a library calls: a dataset or environment; empty for neither."""
    for one in handed_over(args):
        for base in one.cls.external_bases() if isinstance(one, v.Inst) else ():
            role = interp.kb.role(interp.kb.canonical(base), "derived-for-libraries")
            if role is not None:
                return role.more[0]
    return ""


def _named(name: str) -> str:
    if name.startswith(_OPTIMIZERS):
        return "an optimizer"
    if name.startswith(_LOADERS):
        return "a loader"
    if not name.startswith(_MODELS):
        return ""
    return "a loss" if name.endswith(("Loss", "Crossentropy", "Error")) else "a model"


def _device(interp: RunView, call: CallEvent) -> None:
    """A device that the code does not show is taken for a GPU."""
    if call.api == "torch.device":
        name = call.args.get("type", 0)
        written = name is None or all(isinstance(one, v.Lit) for one in v.alternatives(name))
        unknown = not written and not named(interp, name)
    else:
        target = call.args.get("device", 0)
        moves = call.owner is not None and _role(interp, call.owner) == "a model"
        member = isinstance(target, v.Member) and not named(interp, target)
        unknown = moves and (target is v.UNKNOWN or member) and not _is_dtype(call.node)
    if unknown:
        interp.gap("device", "the device is not known; it may be a GPU", call.node)


def _is_dtype(node: m.Call) -> bool:
    """Whether a module is moved to the element type of something: ``layer.to(other.weight.dtype)``."""
    first = node.args[0] if node.args else None
    return first is not None and written(first).endswith(".dtype")


def coverage_of(project: Project, report: EntryReport) -> Coverage:
    """The coverage of an entry point by its report."""
    followed = total = 0
    reached = report.functions_reached()
    for index in report.files:
        file = project.modules.files[index]
        if file.facts.problem is not None:
            # It was imported, and could not be parsed: that is reported for itself.
            continue
        counts = _statements(file)
        total += sum(counts)
        followed += sum(counts[function] for function in reached.get(index, ()))
    gaps = {*report.gaps, *(Gap(c.path, c.start, c.end, "budget", c.reason) for c in report.cuts)}
    if report.failure:
        gaps.add(Gap(report.entry, 0, 0, "budget", report.failure))
    # Calls of which one goes on with what the other gives begin at one place.
    places = {(gap.path, gap.start, gap.kind, gap.text): gap for gap in sorted(gaps, reverse=True)}
    return Coverage(
        report.entry,
        report.function,
        len(report.files),
        followed,
        total - followed,
        tuple(sorted(places.values())),
    )


def _statements(file: ModuleFile) -> list[int]:
    """How many statements each function of a file has; those of a class count where it is defined."""
    if not file.statements:
        counts = [fn.statements for fn in file.facts.functions]
        for cls in file.facts.classes:
            counts[max(cls.parent, 0)] += cls.statements
        file.statements = counts
    return file.statements
