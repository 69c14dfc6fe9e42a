"""Environment markers of requirements: ``python_version < "3.8" and sys_platform == "linux"``.

They are judged for a Linux machine with the running version of Python: where a program is trained is what
counts, not where it is linted, and that is Linux nearly always. What is not known holds.
"""

from __future__ import annotations

import re
from functools import lru_cache

ENVIRONMENT = {
    "implementation_name": "cpython",
    "os_name": "posix",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "platform_system": "Linux",
    "sys_platform": "linux",
}
_UNKNOWN = re.compile(r"\b(?:extras?|dependency_groups|platform_release|platform_version)\b")
"""What depends on how and where the project is installed."""


@lru_cache(maxsize=1024)
def holds(marker: str) -> bool:
    """Whether a marker holds; one that cannot be understood does, and the empty one."""
    if not marker or _UNKNOWN.search(marker):
        return True
    # Imported only where the version of a library depends on a marker: it takes as long as all of d9mlint's start.
    from packaging.markers import InvalidMarker, Marker, UndefinedComparison, UndefinedEnvironmentName

    try:
        return Marker(marker).evaluate(dict(ENVIRONMENT))
    except (InvalidMarker, UndefinedComparison, UndefinedEnvironmentName, ValueError, RecursionError):
        return True
