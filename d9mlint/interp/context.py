"""Names that the abstract run keeps among its active contexts besides those of libraries."""

from __future__ import annotations

CPU_CONTEXT = "on the CPU"
"""Active inside ``with tf.device("/CPU:0")`` and in the stages of input pipelines."""

TRAINING_CONTEXT = "@training"
"""A layer is called with ``training=True``: what it draws counts whether or not the program trains."""
THREAD = "@thread"
"""Active in what another thread or process runs."""
FROZEN = "frozen"
"""Active in a module whose parameters do not require grad."""

NO_GRADIENT = frozenset({"torch.no_grad", "torch.inference_mode"})
GRADIENT = frozenset({"torch.enable_grad"})
GRADIENT_MODES = NO_GRADIENT | GRADIENT
"""Contexts in which no gradient is recorded, and in which it is again."""
