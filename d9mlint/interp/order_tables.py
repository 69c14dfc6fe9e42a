"""Tables of which the program asks only what is the same in any order of their rows: how many there are, which values
they have, the rows of another table by a key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from d9mlint.interp import values as v
from d9mlint.interp.attribute_kinds import value_of
from d9mlint.interp.idle import takes_nothing
from d9mlint.interp.order_groups import GROUPING
from d9mlint.interp.order_kinds import NUMBER
from d9mlint.interp.order_labels import are_by_label, names_elements, receiver_of
from d9mlint.interp.order_looks import is_only_shown
from d9mlint.interp.order_reductions import is_met
from d9mlint.ir import nodes as m
from d9mlint.ir.forms import FORM
from d9mlint.ir.liveness import may_be_shared
from d9mlint.ir.traversal import called_name, parents, variables

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp
    from d9mlint.knowledge.schema import OrderEntry, Role

_LISTED = frozenset({"tolist", "to_list"})
_SOME = frozenset({"head", "tail", "sample", "shift", "diff", "drop_duplicates", "truncate"})
"""Methods that give another table in another order of the rows."""


def is_in_any_order(interp: Interp, node: m.Expr, fn: m.Function | None) -> bool:
    """Whether all uses of the table that a call makes are such."""
    return fn is not None and isinstance(node, m.Call) and _Uses(interp, fn, node).free(node)


class _Uses:
    """One question, about the table that a call makes; ``asked`` are variables that hold it."""

    def __init__(self, interp: Interp, fn: m.Function, made: m.Call) -> None:
        self.interp = interp
        self.made = made
        self.fn = fn
        self.above = parents(fn)
        self.asked: set[str] = set()

    def free(self, node: Any) -> bool:
        """Whether a table, or a column of one, is used in such ways only."""
        user = self.above.get(id(node))
        if isinstance(user, m.Attr):
            return self._path(user, user.name.split("."))
        if isinstance(user, m.Subscript):
            if user.value is not node:
                # Rows that a mask selects.
                return True
            return self._item(user)
        if isinstance(user, m.Compare):
            member = user.ops[0] in ("in", "not in") and user.left is not node
            return member or self.free(user)
        if isinstance(user, m.BinOp | m.Unary):
            return self.free(user)
        if isinstance(user, m.ExprStmt | m.Assert):
            return True
        if isinstance(user, m.Assign):
            return all(self._stored(one) for one in user.targets)
        if isinstance(user, m.For | m.Generator):
            return user.iter is node
        if isinstance(user, m.Seq):
            # `table = concat([table, more])`
            above = self.above.get(id(user))
            return (
                isinstance(above, m.Call)
                and self._is_table(above)
                and (above is self.made or self.free(above))
            )
        if isinstance(user, m.Keyword):
            call = self.above.get(id(user))
            return isinstance(call, m.Call) and self._given(call, user.name or "")
        return isinstance(user, m.Call) and any(
            one is node and self._given(user, place) for place, one in enumerate(user.args)
        )

    def _path(self, node: Any, names: list[str]) -> bool:
        """Attributes of a table, the last of which may be a method that is called."""
        if not FORM.isdisjoint(names):
            return True
        user = self.above.get(id(node))
        if isinstance(user, m.Call) and user.func is node:
            return self._method(user, names[-1])
        return self.free(node)

    def _item(self, node: m.Subscript) -> bool:
        user = self.above.get(id(node))
        if isinstance(user, m.Assign) and any(one is node for one in user.targets):
            return True
        if self._is_by_name(node):
            return True
        position = isinstance(node.index, m.Const) and not isinstance(node.index.value, str)
        if (position or isinstance(node.index, m.Slice)) and not _is_of_texts(node.value):
            return is_only_shown(self.interp, node, self.fn)
        return self.free(node)

    def _stored(self, target: m.Expr) -> bool:
        if isinstance(target, m.Subscript | m.Attr):
            return self._root(target) in self.asked
        if not isinstance(target, m.Name):
            return False
        name, _, attribute = target.id.partition(".")
        if attribute or name in self.asked:
            return name in self.asked
        self.asked.add(name)
        if may_be_shared(self.interp.whole(self.interp.frame.file), self.fn, {name}):
            return False
        return all(map(self._read, variables(self.fn).get(name, ())))

    def _root(self, node: Any) -> str:
        while isinstance(node, m.Subscript | m.Attr):
            node = node.value
        return node.id.partition(".")[0] if isinstance(node, m.Name) else ""

    def _read(self, name: m.Name) -> bool:
        user = self.above.get(id(name))
        if isinstance(user, m.Assign) and any(one is name for one in user.targets):
            return True
        attributes = name.id.split(".")[1:]
        return self._path(name, attributes) if attributes else self.free(name)

    def _has_role(self, name: str, role: Role) -> bool:
        """Whether a method or attribute of the table has a role."""
        called = value_of(self.interp, self.made.func) if isinstance(self.made.func, m.Name) else v.UNKNOWN
        api = self.interp.kb.canonical(called.name) if isinstance(called, v.Ext) else ""
        table = self.interp.kb.result_type(api) or api
        return bool(table) and self.interp.kb.role(f"{table}.{name}", role) is not None

    def _is_by_name(self, node: m.Subscript) -> bool:
        """Whether a subscript takes rows by names that the table has given them: ``frame.loc[name]``."""
        path = node.value
        if isinstance(path, m.Name):
            owner, _, name = path.id.rpartition(".")
            named = self._has_names(m.Name(owner, path.start, path.end))
        elif isinstance(path, m.Attr):
            name, named = path.name, self._has_names(path.value)
        else:
            return False
        return named and self._has_role(name, "rows-by-name") and names_elements(self.fn, node.index)

    def _has_names(self, node: Any) -> bool:
        """Whether an expression is the table with names of its rows."""
        if isinstance(node, m.Call):
            return self._has_role(called_name(node), "names-rows")
        if not isinstance(node, m.Name):
            return False
        for one in variables(self.fn).get(node.id, ()):
            user = self.above.get(id(one))
            if isinstance(user, m.Assign) and isinstance(user.value, m.Call):
                named = self._has_role(called_name(user.value), "names-rows")
            else:
                in_place = isinstance(user, m.Call) and any(two.name == "inplace" for two in user.keywords)
                named = in_place and self._has_role(one.id.rpartition(".")[2], "names-rows")
            if named:
                return True
        return False

    def _method(self, call: m.Call, name: str) -> bool:
        if self._has_role(name, "rows-by-name") and self._has_names(receiver_of(call)):
            return True
        if name in GROUPING:
            return self._grouped(call)
        entry = self.interp.kb.order(f"?.{name}", True)
        if entry is not None and (entry.reduces or entry.sorts or entry.shows):
            return is_met(self.interp, entry, call)
        if are_by_label(self.interp, call, self.fn):
            return True
        if entry is not None and entry.role == "end" and entry.value:
            return True
        if name in _SOME or (entry is not None and entry.role == "type"):
            return is_only_shown(self.interp, call, self.fn)
        if name in _LISTED:
            # The order of a list is followed.
            return True
        if name in self.interp.kb.table_methods or (entry is not None and entry.role == "carry"):
            return self.free(call)
        return False

    def _grouped(self, node: Any) -> bool:
        """Whether groups are only counted, or asked for what is the same in any order of their rows."""
        user = self.above.get(id(node))
        while isinstance(user, m.Attr | m.Subscript):
            node, user = user, self.above.get(id(user))
        if not isinstance(user, m.Call) or user.func is not node:
            return False
        return self._reduces(called_name(user)) or (
            bool(user.args)
            and not user.keywords
            and all(
                isinstance(one, m.Const) and isinstance(one.value, str) and self._reduces(one.value)
                for one in user.args
            )
        )

    def _reduces(self, name: str) -> bool:
        entry = self.interp.kb.order(f"?.{name}", True)
        return entry is not None and (bool(entry.reduces) or entry.value == NUMBER)

    def _is_table(self, call: m.Call) -> bool:
        called = value_of(self.interp, call.func) if isinstance(call.func, m.Name) else v.UNKNOWN
        if not isinstance(called, v.Ext):
            return False
        entry = self.interp.kb.order(self.interp.kb.canonical(called.name))
        return entry is not None and entry.table

    def _given(self, call: m.Call, place: int | str) -> bool:
        """The same for an argument."""
        called = value_of(self.interp, call.func) if isinstance(call.func, m.Name) else v.UNKNOWN
        entry: OrderEntry | None
        if isinstance(called, v.Ext):
            entry = self.interp.kb.order(self.interp.kb.canonical(called.name))
        elif isinstance(called, v.Func | v.Cls | v.Partial | v.Inst | v.AnyOf):
            return False
        else:
            entry = self.interp.kb.order(f"?.{called_name(call)}", True)
        if entry is None:
            return False
        if entry.reduces or entry.sorts or entry.shows or entry.role in ("show", "pair"):
            # The order of pairs is followed.
            return is_met(self.interp, entry, call)
        if takes_nothing(self.interp, entry, call):
            return True
        named = {*entry.tested, *entry.tested.values(), *entry.looked_up, *entry.looked_up.values()}
        return place in named


def _is_of_texts(node: m.Expr) -> bool:
    """Whether a subscript takes a part of each text in a column: ``names.str[:3]``."""
    path = node.id if isinstance(node, m.Name) else node.name if isinstance(node, m.Attr) else ""
    return path.rpartition(".")[2] == "str"
