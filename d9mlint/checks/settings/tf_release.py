"""What depends on the release of TensorFlow in use."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from d9mlint.interp.view import RunView


def version(interp: RunView, spec: str) -> bool:
    """Whether the release may be among those that a specifier such as ``>=2.8`` describes."""
    return interp.kb_matches("tensorflow", spec)


def may_have_switch(interp: RunView) -> bool:
    """Whether the release may have op determinism, also where no release is known."""
    return interp.targets is None or version(interp, ">=2.8")


def switch_for(interp: RunView, process: str = "") -> str:
    """The advice to switch determinism on, as a clause. ``process`` is the function that a new process runs, which has
    to make the call itself."""
    if version(interp, ">=2.8"):
        start = f" of `{process}()`, which runs in new processes" if process else ""
        return f"call `tf.config.experimental.enable_op_determinism()` at the start{start}"
    if version(interp, ">=2.5"):
        return (
            'set os.environ["TF_DETERMINISTIC_OPS"] and os.environ["TF_CUDNN_USE_FRONTEND"] to "1" before TensorFlow is '
            "imported"
        )
    if version(interp, ">=2.1"):
        return 'set os.environ["TF_DETERMINISTIC_OPS"] = "1" before TensorFlow is imported'
    if not version(interp, ">=1.14"):
        return "use TensorFlow 1.14 or newer with `tfdeterminism.patch()`: older releases have no switch"
    return (
        "use `tfdeterminism.patch()`, or set at least `TF_CUDNN_DETERMINISTIC=1`, which covers cuDNN convolutions and max "
        "pooling, not the gradient of `bias_add`"
    )
