"""Body encodings (FORMATS §1). This outlives the code: numbers are never reused.

    0   direct
    1   raw deflate        read only
    2   brotli
    3   retired        zstd under a dictionary, in frames alone; refused like an unknown one
    64  claim check        UTF-8 JSON naming an object in the bucket; 64 to 127 are Epochal's own

Deflate may end without a final block: FsCodec before 3.0 took what it had written after a flush for the whole.

A body is compressed where it is at least 48 bytes and gains more than 4, as FsCodec does. Quality 5, because
11 takes fifteen times as long for 2 to 9 % (JSON of 300 bytes to 20 KB): 1 ms for 1 KB. Where that saves a write unit,
it is worth forty times what it costs (`denser`).
"""

from __future__ import annotations

import json
import zlib
from typing import Final, NamedTuple

import brotli

from epochal.errors import CorruptData, UnknownEncoding
from epochal.model.bodies import Claim

DIRECT: Final = 0
DEFLATE: Final = 1
BROTLI: Final = 2
CLAIM: Final = 64

MIN_SIZE: Final = 48
MIN_GAIN: Final = 4
QUALITY: Final = 5
DENSEST: Final = 11

LATE_GAIN: Final = 10
"""Of so many bytes under brotli, `denser` saves about one."""

LATE_MOST: Final = 2 * 1024
"""What is larger under brotli stays as it is: from 5 ms on, an event loop would notice."""

_FLUSHED: Final = b"\x00\x00\xff\xff"
"""How a flush ends: with an empty block, which is not marked as the last one."""

_ONE_BLOCK: Final = b"\x1b"
"""What brotli begins with where one block is all, and is of as many bytes as 16 bits say (RFC 7932, section 9)."""

ONE_BLOCK: Final = 1 << 16
"""Bytes that such a block has at most."""

_LAST_BLOCK: Final = b"\x01\x00\x00\xff\xff"
"""The same block, marked as the last one."""

MAX_DECODED: Final = 256 * 1024 * 1024
"""A stored body that inflates past this is taken for an attack or corruption, not for data."""

CHUNK: Final = 256 * 1024
"""Bytes of an object in the bucket that are read at a time."""

MAX_KEY_BYTES: Final = 1024
"""Bytes of an object's key, in S3."""


class Encoded(NamedTuple):
    """A body in its stored form: the number of its encoding, and bytes."""

    encoding: int
    data: bytes


EMPTY: Final = Encoded(DIRECT, b"")


class OversizedBody(CorruptData):
    """A compressed body, which may be sound, is larger than the limit that it was opened with."""


class OversizedTogether(CorruptData):
    """Compressed bodies of one item, which may be sound, are larger together than any item's may be."""


def encode(body: bytes, *, compress: bool = True, quality: int = QUALITY) -> Encoded:
    """Compress a body with brotli if that saves bytes; otherwise keep it as it is."""
    if compress and len(body) >= MIN_SIZE:
        packed: bytes = brotli.compress(body, quality=quality)
        if len(packed) < len(body) - MIN_GAIN:
            return Encoded(BROTLI, packed)
    return Encoded(DIRECT, body)


def may_be_large(encoded: Encoded) -> bool:
    """Return whether a body may decode to more than `ONE_BLOCK` bytes, judged by its first byte."""
    encoding, data = encoded
    if encoding == BROTLI:
        return data[:1] != _ONE_BLOCK
    return encoding == DEFLATE or (encoding == DIRECT and len(data) > ONE_BLOCK)


def exceeds(encoded: Encoded, largest: int) -> bool:
    """Return whether a body that is stored as it is has more than `largest` bytes."""
    return encoded.encoding == DIRECT and len(encoded.data) > largest


def may_gain(encoded: Encoded) -> int:
    """Estimate how many bytes `denser` would save on this body."""
    fits = encoded.encoding == BROTLI and len(encoded.data) <= LATE_MOST
    return len(encoded.data) // LATE_GAIN if fits else 0


def denser(encoded: Encoded) -> Encoded:
    """Compress a body again at brotli's highest quality, which takes fifteen times the CPU."""
    if not may_gain(encoded):
        return encoded
    packed: bytes = brotli.compress(decode_inline(encoded), quality=DENSEST)
    return Encoded(BROTLI, packed) if len(packed) < len(encoded.data) else encoded


def encode_claim(claim: Claim) -> Encoded:
    """Encode the claim check that replaces a body in the bucket."""
    fields: dict[str, str | int] = {"key": claim.key, "sha256": claim.sha256, "bytes": claim.size}
    if claim.encoding:
        fields["encoding"] = claim.encoding
    fields |= {"timer": claim.timer} if claim.timer else {}
    return Encoded(CLAIM, json.dumps(fields, separators=(",", ":")).encode())


def decode(encoded: Encoded, limit: int = MAX_DECODED) -> bytes | Claim:
    """Decode a stored body into bytes, or into a `Claim` if it is in the bucket.

    Args:
        limit: bytes that it inflates to at most.

    Raises:
        UnknownEncoding: the encoding is none of the table above.
        CorruptData: the bytes are not what the encoding says; `OversizedBody` where the limit ended it.
    """
    encoding, data = encoded
    if encoding == DIRECT:
        return data
    if encoding == BROTLI:
        return unbrotli(data, limit)
    if encoding == DEFLATE:
        return _inflate(data, limit)
    if encoding == CLAIM:
        return _read_claim(data)
    raise UnknownEncoding(encoding)


def decode_inline(encoded: Encoded, limit: int = MAX_DECODED) -> bytes:
    """Decode a body that is never in the bucket; a claim check counts as corruption."""
    decoded = decode(encoded, limit)
    if isinstance(decoded, Claim):
        raise CorruptData("a claim check is stored where the body itself must be")
    return decoded


def unbrotli(data: bytes, limit: int) -> bytes:
    """Decompress a brotli body; raise `CorruptData` if it is damaged or exceeds `limit` bytes."""
    try:
        if (
            data[:1] == _ONE_BLOCK and limit >= ONE_BLOCK
        ):  # it keeps its limit by itself, in a fifth less time
            return brotli.decompress(data)  # type: ignore[no-any-return]
        expander = brotli.Decompressor()
        decoded: bytes = expander.process(data, output_buffer_limit=limit)
    except brotli.error as error:
        raise CorruptData("a body under encoding 2 is not brotli") from error
    if not expander.is_finished():
        raise _unfinished(decoded, limit)(
            f"a body under encoding 2 is cut off or too large: at most {limit:,} bytes are read"
        )
    return decoded


def _unfinished(decoded: bytes, limit: int) -> type[CorruptData]:
    return OversizedBody if len(decoded) >= limit else CorruptData


def _inflate(data: bytes, limit: int) -> bytes:
    """Decompress a raw deflate body; raise `CorruptData` if it is damaged or exceeds `limit` bytes."""
    inflater = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        decoded = inflater.decompress(data, limit)
    except zlib.error as error:
        raise CorruptData("a body under encoding 1 is not raw deflate") from error
    if not inflater.eof and not _was_flushed(inflater, data):
        raise _unfinished(decoded, limit)(
            f"a body under encoding 1 is cut off or too large: at most {limit:,} bytes are read"
        )
    return decoded


def _was_flushed(inflater: zlib._Decompress, data: bytes) -> bool:
    """Return whether deflate data end complete with a flush instead of a last block.

    FsCodec before 3.0 ended bodies so. All of the data must be decompressed, and a last block must be able to follow.
    """
    if inflater.unconsumed_tail or not data.endswith(_FLUSHED):
        return False
    try:
        rest = inflater.decompress(_LAST_BLOCK, 1)
    except zlib.error:
        return False
    return inflater.eof and not rest and not inflater.unused_data


def _read_claim(data: bytes) -> Claim:
    """Parse and check a stored claim check; raise `CorruptData` if it is malformed."""
    try:
        fields = json.loads(data)
        claim = Claim(
            key=fields["key"],
            sha256=fields["sha256"],
            size=fields["bytes"],
            encoding=fields.get("encoding", DIRECT),
            timer=fields.get("timer", ""),
        )
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise CorruptData("a body under encoding 64 is not a claim check") from error
    texts, numbers = (claim.key, claim.sha256, claim.timer), (claim.size, claim.encoding)
    if not all(type(text) is str for text in texts) or not all(type(number) is int for number in numbers):
        raise CorruptData("a body under encoding 64 is a claim check with a field of the wrong type")
    check_claim(claim)
    return claim


def check_claim(claim: Claim) -> None:
    """Raise `CorruptData` for a claim check that no bucket can satisfy.

    A request for it would fail and keep back more than this one event.
    """
    if claim.encoding == CLAIM:
        raise CorruptData("a claim check names the object of another claim check")
    if claim.encoding not in (DIRECT, DEFLATE, BROTLI):
        raise UnknownEncoding(claim.encoding)
    key = len(claim.key.encode("utf-8", "surrogatepass"))
    if not 0 < key <= MAX_KEY_BYTES or claim.size < 0 or not _in_utf8(claim.key + claim.sha256):
        raise CorruptData("a claim check names an object that no bucket can hold")


def _in_utf8(text: str) -> bool:
    """Return whether UTF-8 can hold a text, which lone surrogates prevent."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
