"""Facts as bytes: what workers send and the cache keeps."""

from __future__ import annotations

import hashlib
import sys

import msgspec

from d9mlint.ir.failure import TOO_DEEP, failed
from d9mlint.ir.limits import collector_off, frames
from d9mlint.ir.nodes import FRAMES, SCHEMA, FileFacts

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(FileFacts)


def with_code(facts: FileFacts) -> FileFacts:
    """The facts with the digest of their code. Raises what encoding raises."""
    body = _ENCODER.encode((facts.packed, facts.problem))
    return msgspec.structs.replace(facts, code=hashlib.blake2b(body, digest_size=20).hexdigest())


def pack(text: str, facts: FileFacts) -> bytes:
    """The facts of ``text`` as bytes; too much nesting becomes a problem of the file."""
    with frames(FRAMES):
        try:
            return _ENCODER.encode(facts if facts.code else with_code(facts))
        except (RecursionError, OverflowError, UnicodeEncodeError):
            return _ENCODER.encode(failed(text, facts.digest, TOO_DEEP))


def unpack(packed: bytes | memoryview) -> FileFacts | None:
    """The facts in ``packed``, or None where it holds something else."""
    with collector_off(), frames(FRAMES):
        try:
            facts = _DECODER.decode(packed)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            return None
        if facts.schema != SCHEMA:
            return None
        # Files of a project use much the same words; and a part of the bytes would keep all of them alive.
        facts.words[:] = map(sys.intern, facts.words)
        msgspec.structs.force_setattr(facts, "packed", facts.packed.copy())
    return facts
