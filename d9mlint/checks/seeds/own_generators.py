"""DET106, DET109, DET110: generators, samplers and ops that need a seed of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from d9mlint.base.entry_report import IF_READ
from d9mlint.base.findings import Severity
from d9mlint.checks.base import Rule
from d9mlint.checks.drawing import FOR_EACH_ITEM, runs_again
from d9mlint.checks.seeds.draws import entropy_source, report_changing_seed
from d9mlint.checks.seeds.ignored import is_ignored
from d9mlint.interp import values as v
from d9mlint.interp.events import CallEvent, DefaultGeneratorEvent, EndEvent, ObjectCallEvent
from d9mlint.interp.listening import on, on_call_if
from d9mlint.interp.memory import remembered_table
from d9mlint.interp.naming import module_variable, names_with_draws_only
from d9mlint.interp.places import Where
from d9mlint.interp.rng import GENERATOR_TYPES, all_hold, any_holds, assumed, is_quiet
from d9mlint.interp.state import SEEDED, Site
from d9mlint.interp.storage import made_at
from d9mlint.interp.text import call_text
from d9mlint.ir import liveness
from d9mlint.ir import nodes as m
from d9mlint.ir.traversal import nodes, parents
from d9mlint.knowledge.versions import matches, split

if TYPE_CHECKING:
    from d9mlint.knowledge.schema import RngEntry


class OwnGenerators(Rule):
    """DET106, DET109, DET110: generators, samplers and ops that need their own seed."""

    codes = ("DET106", "DET107", "DET109", "DET110")
    made = remembered_table(Site, Where)
    """Where things are made that draw from a generator of their own when they are called."""

    defaults = remembered_table(Site, tuple[Where, CallEvent])
    """Generators that are made as the defaults of parameters."""

    variables = remembered_table(Site, tuple[str, str, bool])
    """Variables of modules, by the path of their file, that hold such generators, and whether these do nothing but draw."""

    @on_call_if(lambda rule, api: bool(rule.run.kb.rng(api)))
    def call(self, call: CallEvent) -> None:
        """Something is made."""
        for entry in self.run.kb.rng(call.api):
            if not self._applies(entry):
                continue
            if entry.kind == "generator" and entry.at == "use":
                self.made.setdefault(self.run.here(call.node), lambda: Where(self.run, call.node, call.api))
            elif entry.kind == "generator" and (
                self.run.unread(call.node)
                or is_ignored(self.run, call.node)
                or names_with_draws_only(self.run, call.node)
            ):
                continue
            elif entry.kind == "generator" and self.run.in_default and self.run.entry is not None:
                site = self.run.here(call.node)
                self.defaults[site] = (Where(self.run, call.node, call.api), call)
            elif entry.kind == "generator":
                self._remember_variable(call)
                _generator(self, call, entry, call.node)
            elif entry.kind == "unseeded-op":
                _unseeded_op(self, call, entry)
            elif entry.kind == "own-sampler":
                _sampler(self, call, entry)

    def _remember_variable(self, call: CallEvent) -> None:
        """A module keeps a generator in a variable."""
        kept = module_variable(self.run, call.node)
        if kept is not None:
            site = self.run.here(call.node)
            file, name = kept
            self.variables[site] = (
                file.path,
                name,
                (self.run.kb.result_type(call.api) or call.api) in GENERATOR_TYPES,
            )

    @on(DefaultGeneratorEvent)
    def default_used(self, event: DefaultGeneratorEvent) -> None:
        """The default of a parameter is used, or the function is called by nobody that is seen."""
        made = self.defaults.get(self.run.here(event.node))
        if made is not None:
            _generator(self, made[1], event.entry, made[0])

    @on(ObjectCallEvent)
    def used(self, event: ObjectCallEvent) -> None:
        """Something that was made is called by itself: as part of another object it gets its seed there."""
        for entry in self.run.kb.rng(event.obj.api):
            if entry.kind == "generator" and entry.at == "use" and self._applies(entry):
                _used(self, event.obj, entry)

    @on(EndEvent)
    def end(self, event: EndEvent) -> None:
        """What was replaced before it was used draws nothing."""
        for site in self.run.overwritten_draws:
            self.reporter.withdraw("DET106", site)
        for site in self.variables.known():
            path, name, draws_only = self.variables[site]
            file = self.run.modules.by_path[path]
            if self.run.entry is None or self.run.reads_variable(file, name):
                continue
            # A generator that no code reads was made for others; one that functions read which nobody calls draws nothing.
            if not draws_only or liveness.readers(self.run.whole(file), name):
                self.reporter.withdraw("DET106", site)

    def _applies(self, entry: RngEntry) -> bool:
        targets = self.run.targets
        return not entry.versions or targets is None or targets.matches(entry.library, entry.versions)


def _seed_argument(call: CallEvent, entry: RngEntry) -> v.Value | None:
    value = (
        call.args.get(entry.seed_arg, entry.seed_pos)
        if entry.seed_arg or entry.seed_pos is not None
        else None
    )
    if value is None and entry.seed_default is not msgspec.UNSET and entry.seed_default is not None:
        return v.Lit(entry.seed_default)
    return value


def _factory(rule: Rule, call: CallEvent) -> str:
    """The argument by which another function is given what makes the generator, as ``field(default_factory=Random)``."""
    node = call.node
    given = [*node.args, *(one.value for one in node.keywords)] if isinstance(node, m.Call) else []
    for one in given:
        value = rule.run.value_of(one) if isinstance(one, m.Name) else None
        if isinstance(value, v.Ext) and rule.run.kb.canonical(value.name) == call.api:
            return one.id if isinstance(one, m.Name) else ""
    return ""


def _generator(rule: Rule, call: CallEvent, entry: RngEntry, place: Any) -> None:
    value = _seed_argument(call, entry)
    source = entropy_source(rule.run, value)
    if source is not None:
        # However many generators are given it, what has to change is one place.
        report_changing_seed(rule, source, call.node, call_text(call))
        return
    takes_seed = bool(entry.seed_arg) or entry.seed_pos is not None
    if takes_seed and value is not None and v.is_none(value) is not True:
        rule.silent("DET106", place, "it is given a seed")
        return
    if (
        entry.none_seed != "entropy"
        or is_quiet(rule.run, call.args, entry)
        or all_hold(call.args, entry.when) is False
        or any_holds(call.args, entry.unless) is True
        or (call.args.dstar and takes_seed)
    ):
        return
    option = v.option_of(value) if value is not None else ""
    why = f" by default (`{option}` is None)" if option else ""
    factory = _factory(rule, call)
    help = _how_to_seed(entry) + _with_others(rule, entry, call.api)
    if factory and entry.seed_pos == 0:
        help = f"pass `lambda: {factory}(0)` instead of `{factory}`"
    anew = takes_seed and not option and not factory and _is_made_anew(rule, call.node)
    if anew:
        draws_only = (rule.run.kb.result_type(call.api) or call.api) in GENERATOR_TYPES
        made = "the generator" if draws_only else f"`{call_text(call)}`"
        help = (
            f"make {made} once, with a seed, or pass a seed that depends on the item: with a fixed one every call "
            "would draw the same numbers" + _with_others(rule, entry, call.api)
        )
    rule.report(
        "DET106",
        place,
        f"`{factory or call_text(call)}` without a seed{why} is seeded from OS entropy and differs between runs",
        f"give `{option}` a fixed default" if option else help,
        subject=call.api,
        severity=Severity.WARNING if option or rule.run.state.aside else None,
        targets=assumed(rule.run, entry),
        remedy=(entry.seed_arg, "0", str(entry.seed_pos))
        if takes_seed and entry.seed_pos is not None and not option and not factory and not anew
        else (),
        unless=_kept(rule, call.node),
    )


def _is_made_anew(rule: Rule, node: Any) -> bool:
    """Whether a generator is made for one use, again and again: in a loop, or by a function that is called for each
    item."""
    run = rule.run
    frame, stmt = run.frame, run.statement
    while isinstance(stmt, m.Return) and stmt.value is node and frame.caller is not None:
        # What a function gives is made again and again where it is called so.
        node, frame = frame.began(), frame.caller
        stmt = _statement_of(frame.function, node)
    func = frame.func
    if not run.loops and (func is None or func.fn.name not in FOR_EACH_ITEM):
        return False
    if isinstance(stmt, m.Assign) and stmt.value is node:
        return all(isinstance(one, m.Name) and "." not in one.id for one in stmt.targets)
    return stmt is not None and (not isinstance(stmt, m.Return) or stmt.value is not node)


def _statement_of(function: m.Function, node: Any) -> m.Stmt | None:
    """The statement that an expression stands in."""
    above = parents(function)
    while node is not None and not isinstance(node, m.Stmt):
        node = above.get(id(node))
    return node


def _kept(rule: Rule, node: Any) -> str:
    """The condition that something reads the attribute in which the running method keeps what an expression gives; empty
    where it does more with it, or the rest of its class, and of what that is derived from, is not known."""
    run = rule.run
    func, stmt = run.frame.func, run.statement
    if func is None or not isinstance(func.receiver, v.Inst) or not isinstance(stmt, m.Assign):
        return ""
    if stmt.value is not node or len(stmt.targets) != 1 or func.fn.cls < 0:
        return ""
    target, spare = stmt.targets[0], ""
    if isinstance(target, m.Seq) and len(target.elts) == 2:
        # A library gives the generator with its seed.
        target, seed = target.elts
        if not isinstance(seed, m.Name) or "." in seed.id:
            return ""
        spare = seed.id
    owner, _, attribute = target.id.partition(".") if isinstance(target, m.Name) else ("", "", "")
    if owner != "self" or not attribute or "." in attribute or not _only_returned(func.fn, spare, stmt):
        return ""
    cls = func.receiver.cls
    if not all(isinstance(base, (v.Cls, v.Ext)) for one in cls.mro() for base in one.bases):
        return ""
    bases = [run.kb.role(run.kb.canonical(base), "base-only") for base in cls.external_bases()]
    if not all(bases) or (run.entry is None and all(one and one.library == "python" for one in bases)):
        # Something else may read it: the base, or who uses an object of the class, which no library calls by rules.
        return ""
    facts = run.whole(func.file)
    others = [
        one
        for one in facts.functions
        if one.cls == func.fn.cls and one.name not in ("__init__", func.fn.name)
    ]
    return f"{IF_READ}{facts.classes[func.fn.cls].name}.{attribute}" if others else ""


def _only_returned(function: m.Function, name: str, stmt: m.Assign) -> bool:
    """Whether a function does nothing with a variable that a statement assigns but return it."""
    returned = {id(one) for ret in nodes(function.body) if isinstance(ret, m.Return) for one in nodes([ret])}
    return all(
        one.start < stmt.end or id(one) in returned
        for one in nodes(function.body)
        if name and isinstance(one, m.Name) and one.id.partition(".")[0] == name
    )


def _used(rule: OwnGenerators, made: v.Obj, entry: RngEntry) -> None:
    """It is reported where it is made."""
    site = made_at(made)
    if site is None or any_holds(made.args, entry.unless) is not False:
        return
    place = rule.made.get(site)
    if place is not None:
        rule.report(
            "DET106",
            place,
            f"`{made.api.rpartition('.')[2]}` draws from its generator, which is seeded from OS entropy and differs between "
            "runs",
            _how_to_seed(entry) + _with_others(rule, entry, made.api),
            subject=made.api,
            targets=assumed(rule.run, entry),
        )


def _how_to_seed(entry: RngEntry) -> str:
    if entry.instead:
        return f"nothing seeds it, a seed that it is given is ignored: use `{entry.instead}`"
    if not entry.seed_arg and entry.seed_pos is None and entry.seeded_by:
        return f"call its method `{entry.seeded_by[0]}(0)`"
    return f"pass `{entry.seed_arg}=0`" if entry.seed_arg and entry.seed_pos is None else "pass a seed"


def _with_others(rule: Rule, entry: RngEntry, api: str) -> str:
    """What to do with other releases, with which the program may be run too and in which the same call draws from a
    global generator."""
    kb, targets = rule.run.kb, rule.run.targets
    if targets is None or not entry.versions:
        return ""
    release = targets.otherwise(entry.library, entry.versions)
    if not release:
        return ""
    for other in kb.rng(api):
        generators = [kb.generators[name] for name in other.draws if name in kb.generators]
        if generators and other.versions and matches(other.versions, release):
            seeded = rule.run.state.level(generators[0].id).level == SEEDED
            bounds = " and ".join(f"{operator} {version}" for operator, version in split(other.versions)[1])
            how = (
                f"the seed of {generators[0].title} reaches it"
                if seeded
                else f"call `{generators[0].seed}` instead"
            )
            return f"; with {entry.library} {bounds}, {how}"
    return ""


def _sampler(rule: Rule, call: CallEvent, entry: RngEntry) -> None:
    value = _seed_argument(call, entry)
    if value is not None and v.is_none(value) is not True:
        return
    if all_hold(call.args, entry.when) is False:
        return
    argument = entry.seed_arg or "seed"
    again = runs_again(rule.run)
    anew = again and entry.seed_value.endswith(")")
    help = f"pass `{argument}={entry.seed_value}`"
    if anew:
        help = f"make `{entry.seed_value}` once and pass it as `{argument}=`: "
        help += "with a new one every call would draw the same numbers"
    elif again:
        help = f"{help}, or a different number in each round if the calls should not draw the same numbers"
    rule.report(
        "DET109",
        call.node,
        f"`{call_text(call)}` without `{argument}=`: "
        + (
            entry.why
            or "its own generator is seeded from OS entropy, so that suggested values differ between runs"
        ),
        help,
        subject=call.api,
        remedy=() if again else (argument, entry.seed_value),
    )


def _unseeded_op(rule: Rule, call: CallEvent, entry: RngEntry) -> None:
    if all_hold(call.args, entry.when) is False or any_holds(call.args, entry.unless) is not False:
        return
    value = _seed_argument(call, entry)
    if value is not None and not (isinstance(value, v.Lit) and value.value in (0, None)):
        return
    rule.report(
        "DET110",
        call.node,
        f"`{call_text(call)}` ignores the global seed unless it also gets its own seed",
        f"pass a non-zero `{entry.seed_arg or 'seed'}=`",
        subject=call.api,
        remedy=(entry.seed_arg, "1") if entry.seed_arg else (),
    )
