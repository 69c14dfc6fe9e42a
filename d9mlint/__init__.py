"""d9mlint: a linter for determinism hazards in deep-learning code."""

__version__ = "0.1.0"

SITE = ""
"""The address of the documentation, without a slash at its end; empty until it is published."""
