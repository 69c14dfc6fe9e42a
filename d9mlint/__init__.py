"""d9mlint: a linter for determinism hazards in deep-learning code."""

__version__ = "0.1.0"
