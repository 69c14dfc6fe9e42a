"""Calls that give the states of RNGs, and those that restore them, as the facts name them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from d9mlint.knowledge import Knowledge
    from d9mlint.knowledge.schema import Role

_CUDA = {"torch_cuda": "cuda"}
"""The generator that checkpoints call otherwise than the facts do."""


def state_given(kb: Knowledge, api: str) -> str:
    """The RNG whose state a call gives; empty for none."""
    return _named_by(kb, api, "gives-rng-state")


def state_restored(kb: Knowledge, api: str) -> str:
    """The RNG whose state a call restores; empty for none."""
    return _named_by(kb, api, "restores-rng")


def whole_state_given(kb: Knowledge, api: str) -> str:
    """The RNG whose state a call gives, for all devices where it has one for each; empty for none."""
    role = kb.role(api, "gives-rng-state")
    return state_given(kb, api) if role is not None and not role.arg else ""


def _named_by(kb: Knowledge, api: str, part: Role) -> str:
    role = kb.role(api, part)
    return _CUDA.get(role.more[0], role.more[0]) if role is not None else ""
