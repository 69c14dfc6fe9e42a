"""Whether an object of the project has an attribute, as far as the code of the program shows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.interp import values as v
from d9mlint.interp.containers import NAMELESS
from d9mlint.ir.scopes import assigned_attributes

if TYPE_CHECKING:
    from d9mlint.interp.interpreter import Interp


def has(interp: Interp, value: v.Inst, name: str) -> bool | None:
    """Whether an object of a class of the project has an attribute."""
    found = has_now(interp, value, name)
    if found is False and (
        name.startswith("_")
        or any(name in assigned_attributes(interp.whole(one)) for one in interp.run_files())
    ):
        return None
    return found


def has_now(interp: Interp, value: v.Inst, name: str) -> bool | None:
    """Whether an object of a class of the project has an attribute, by what its class gives and what has been stored in it
    as far as is seen."""
    if name in value.attrs or value.cls.find(name) is not None:
        return True
    if any(key.startswith(NAMELESS) for key in value.attrs if isinstance(key, str)):
        return None
    if any(value.cls.find(one) is not None for one in ("__getattr__", "__getattribute__")):
        return None
    if any(one.decorated or one.metaclass is not None for one in value.cls.mro()):
        return None
    if not all(lacks(interp, base, name) for base in value.cls.external_bases()):
        return None
    return False


def lacks(interp: Interp, base: str, name: str) -> bool:
    """Whether a class that is not the project's is known not to give its objects an attribute of some name."""
    known = interp.kb.role(interp.kb.canonical(base), "has-only")
    return base == "object" or (known is not None and name not in known.more and not name.startswith("_"))
