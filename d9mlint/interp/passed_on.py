"""What passes on the elements of what it is put around: progress bars, `enumerate`, `iter`."""

from __future__ import annotations

from d9mlint.interp import values as v

ENUMERATE = "builtins.enumerate"
PASS_THROUGH = frozenset(
    {
        ENUMERATE,
        "builtins.reversed",
        "builtins.iter",
        "tqdm.tqdm",
        "tqdm.auto.tqdm",
        "tqdm.notebook.tqdm",
        "tqdm.tqdm_notebook",
        "tqdm.autonotebook.tqdm",
        "rich.progress.track",
        "progressbar.progressbar",
        "fastprogress.progress_bar",
        "fastprogress.master_bar",
        "fastprogress.fastprogress.progress_bar",
        "fastprogress.fastprogress.master_bar",
        "alive_progress.alive_it",
        "tensorflow_datasets.as_numpy",
        "itertools.islice",
        "itertools.cycle",
    }
)


def inside(value: v.Obj) -> v.Value | None:
    """What such an object is put around."""
    return value.args.get("iterable", 0)


def passed_on(value: v.Value) -> v.Value:
    """What gives the elements that a value passes on as they are, as a progress bar does."""
    while isinstance(value, v.Obj) and value.api in PASS_THROUGH and value.api != ENUMERATE:
        inner = inside(value)
        if inner is None:
            break
        value = inner
    return value
