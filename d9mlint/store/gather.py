"""The facts of many files: from the cache where it has them, else parsed, in other processes.

A process serves one file after another; a file that brings its process down, or keeps it too long, costs
that file. The facts of a file don't depend on where or in which order it is parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from d9mlint.base.notebooks import Cell
from d9mlint.ir.codec import pack, unpack
from d9mlint.ir.failure import CRASHED, NOT_ISOLATED, failed
from d9mlint.ir.limits import collector_off
from d9mlint.ir.nodes import FileFacts
from d9mlint.ir.unread import read_rest
from d9mlint.store.facts_cache import Cache

SHARE = 60_000
"""Characters that are worth one more process."""

BATCH = 4000
"""So many files are read before their facts go to the cache: a run that is ended by hand need not read them again."""


class SourceLike(Protocol):
    """What is known of a file: its text, and a digest of its content."""

    @property
    def path(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def digest(self) -> str: ...
    @property
    def cells(self) -> Sequence[Cell] | None: ...


class _Text(NamedTuple):
    """What is left of a notebook."""

    path: str
    text: str
    digest: str
    cells: Sequence[Cell] | None = None


def gather(
    sources: Sequence[SourceLike],
    *,
    jobs: int,
    cache: Cache | str | None = None,
    warn: Callable[[str], None] | None = None,
    spent: Callable[[str, float], None] | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[FileFacts]:
    """The facts of ``sources``, in their order.

    ``cache`` is a cache or its directory; ``warn`` gets, once, the reason why it could not be written;
    ``spent`` gets the CPU seconds that each file took, by its path; ``progress`` how many of how many files that are
    not in the cache have been read.
    """
    if isinstance(cache, str):
        cache = Cache(cache)
    with collector_off():
        known: dict[str, FileFacts] = {}
        missing: dict[str, SourceLike] = {}
        for source in sources:
            digest = source.digest
            if digest in known or digest in missing:
                continue
            found = cache.get(digest) if cache is not None else None
            if found is None:
                missing[digest] = source
            else:
                known[digest] = found
        unread = list(missing.values())
        for begin in range(0, len(unread), BATCH):
            count = None if progress is None else _counted(progress, begin, len(unread))
            packed, seconds = _parse(unread[begin : begin + BATCH], jobs, count)
            if spent is not None:
                for digest in seconds:
                    spent(missing[digest].path, seconds[digest])
            new: dict[str, bytes] = {}
            for source in unread[begin : begin + BATCH]:
                digest = source.digest
                one, final = packed.pop(digest)
                facts = unpack(one) or failed(source.text, digest, CRASHED)
                if facts.problem is not None and facts.problem.code == "DET001":
                    facts = _rest(source, facts)
                    one = pack(source.text, facts)
                known[digest] = facts
                if final and cache is not None:
                    new[digest] = one
            if cache is not None:
                cache.put(new)
        if unread and cache is not None and cache.warning is not None and warn is not None:
            warn(cache.warning)
        return [known[source.digest] for source in sources]


def _counted(progress: Callable[[int, int], None], begin: int, total: int) -> Callable[[int], None]:
    return lambda done: progress(begin + done, total)


def _parse(
    sources: Sequence[SourceLike], jobs: int, progress: Callable[[int], None] | None = None
) -> tuple[dict[str, tuple[bytes, bool]], dict[str, float]]:
    """Packed facts by digest, and whether they are a matter of the text alone (a crash or a time limit
    may not come again: they are not for the cache); and the CPU seconds that each text took."""
    from d9mlint.store.pool import Pool

    sizes = {source.digest: len(source.text) for source in sources}
    total = sum(sizes.values())
    largest_first = sorted(sources, key=lambda s: (-sizes[s.digest], s.digest))
    workers = max(1, min(jobs, len(sources), total // SHARE))
    pool = Pool(workers)
    packed = pool.run(largest_first, progress)
    for source in sources:
        if source.digest not in packed:
            packed[source.digest] = _parse_here(source)
    return packed, pool.spent


def _rest(source: SourceLike, facts: FileFacts) -> FileFacts:
    """The facts of what can be read of a text."""

    def parse(texts: list[str]) -> list[FileFacts]:
        parts = [_Text(source.path, text, f"{number}") for number, text in enumerate(texts)]
        packed, _ = _parse(parts, 1)
        return [unpack(packed[x.digest][0]) or failed(x.text, x.digest, CRASHED) for x in parts]

    return read_rest(source.text, source.cells or (), facts, parse)


def parse_one(source: SourceLike) -> FileFacts:
    """The facts of a file that is being edited: in this process, but for what might bring it down."""
    from d9mlint.frontend.extract import extract, is_safe

    if is_safe(source.text) and not source.cells:
        return extract(source.text, source.digest)
    return gather([source], jobs=1)[0]


def _parse_here(source: SourceLike) -> tuple[bytes, bool]:
    """The same where no process can be started, for what can be parsed without risk."""
    from d9mlint.frontend.extract import extract, is_safe

    text, digest = source.text, source.digest
    if is_safe(text):
        return pack(text, extract(text, digest)), True
    return pack(text, failed(text, digest, NOT_ISOLATED)), False
