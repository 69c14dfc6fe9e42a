"""What is known in the working directory: d9mlint's facts and rules, with those that the configuration names."""

from __future__ import annotations

from typing import TYPE_CHECKING

from d9mlint.base.paths import absolute, boundary
from d9mlint.config.settings import load_settings

if TYPE_CHECKING:
    from d9mlint.knowledge import Knowledge


def known_here() -> Knowledge:
    """The knowledge base as a run in the working directory has it. Raises UsageError and KnowledgeError."""
    from d9mlint.knowledge import load_with
    from d9mlint.knowledge.layers import read_files
    from d9mlint.knowledge.plugins import find_plugins, plugin_files

    here = absolute(".")
    settings = load_settings(here)
    own = read_files(settings.knowledge, settings.origins.get("knowledge", ""))
    plugins = find_plugins(settings.plugins, settings.origins.get("plugins", "plugins"), boundary(here))
    return load_with((*plugin_files(plugins), *own), boundary(here))
