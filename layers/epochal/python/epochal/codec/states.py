"""States of projections: gzip, in base64 inside an item, or as an object beside it. This outlives the code.

Compressed as it comes and opened as it is read, a chunk at a time, so that a state of 100 MB is never in
memory twice, or even once. The same state gives the same bytes, hence the same object key.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import IO, Final

from epochal.errors import CorruptData

CHUNK: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS


@dataclass(frozen=True, slots=True, kw_only=True)
class PackedState:
    """A packed state: bytes before and after, and the SHA-256 of the result, in hex."""

    original: int
    compressed: int
    sha256: str


def pack(chunks: Iterable[bytes], into: IO[bytes]) -> PackedState:
    """Compress a state into a file."""
    packer = zlib.compressobj(level=6, wbits=_GZIP)
    digest, original, compressed = hashlib.sha256(), 0, 0
    for chunk in _with_end(chunks):
        packed = packer.flush() if chunk is None else packer.compress(chunk)
        original += 0 if chunk is None else len(chunk)
        compressed += into.write(packed)
        digest.update(packed)
    return PackedState(original=original, compressed=compressed, sha256=digest.hexdigest())


def unpack(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Open a compressed state; raises `CorruptData` where it is not gzip, or cut off."""
    opener = zlib.decompressobj(wbits=_GZIP)
    try:
        for chunk in chunks:
            left = chunk
            while left:
                yield opener.decompress(left, CHUNK)
                left = opener.unconsumed_tail
    except zlib.error as error:
        raise CorruptData("a projection's state is not gzip") from error
    if not opener.eof:
        raise CorruptData("a projection's state is cut off")


def to_text(packed: bytes) -> str:
    """The form inside an item."""
    return base64.b64encode(packed).decode()


def from_text(text: str) -> bytes:
    """Read `to_text` back; raises `CorruptData`."""
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError) as error:
        raise CorruptData("a projection's state is not base64") from error


def _with_end(chunks: Iterable[bytes]) -> Iterator[bytes | None]:
    yield from chunks
    yield None
