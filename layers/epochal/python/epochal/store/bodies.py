"""Bodies between users and items: encoded on the way in, claimed where they are too large, fetched on the way out."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from epochal.codec.bodies import DIRECT, Encoded, check_claim, decode, encode, encode_claim
from epochal.codec.claims import UPLOADS, claim_for, overflowing
from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.model.events import Body, Claim
from epochal.plan.limits import ITEM_BYTES
from epochal.store.pools import pool

_ADVICE: Final = "in a store that is opened with bucket=… larger bodies go there"

FETCHES = 8
"""Objects fetched at once."""


class Bodies(Protocol):
    """Where bodies are that an item has no room for: S3, or memory in tests."""

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key; doing so again changes nothing."""

    def get(self, claim: Claim) -> bytes:
        """The content a claim names, verified; raises `MissingBody`, `DeniedBody` or `CorruptData`."""

    def keep(self, claim: Claim) -> bool:
        """Whether an object of the claimed size is there to stay; an upload of it is made to stay."""


def codec_of(bodies: Bodies | None) -> BodyCodec:
    """How bodies of streams are read and written where these are; None where there is no bucket."""
    return BodyCodec(bodies=bodies)


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyCodec:
    """Encodes and decodes bodies. Without a bucket everything stays in the items, and they may be too large.

    Attributes:
        compress_from: bytes from which on a body is compressed by itself; smaller ones too where all would not fit.
    """

    bodies: Bodies | None = None
    compress: bool = True
    compress_from: int = 0

    def pack(self, bodies: Sequence[Body], budget: int, field: str) -> list[Encoded]:
        """Encode bodies, and move the largest to the bucket until the rest fits `budget` bytes.

        Raises:
            InvalidInput: a claim of the caller's names no object of that size.
            TooLarge: there is no bucket, and no item holds them.
        """
        packed = [self._encode(body, field) for body in bodies]
        if self.compress_from and sum(len(body.data) for body in packed) > budget:
            packed = [self._by_itself(body) for body in packed]
        sizes = [len(body.data) for body in packed]
        if self.bodies is not None:
            for position in overflowing(sizes, budget):
                packed[position] = self._move(self.bodies, packed[position])
        elif sum(sizes) > ITEM_BYTES:
            raise TooLarge(field, sum(sizes), ITEM_BYTES, advice=_ADVICE)
        return packed

    def unpack(self, bodies: Iterable[Encoded], *, fetch: bool = True) -> list[Body]:
        """Decode bodies; claims are fetched, several at once, or left as they are."""
        opened = [body.data if body.encoding == DIRECT else decode(body) for body in bodies]
        if not fetch or Claim not in map(type, opened):
            return opened
        with pool(FETCHES) as fetches:
            return list(fetches.map(self._fetch, opened))

    def _encode(self, body: Body, field: str) -> Encoded:
        if isinstance(body, bytes):
            return encode(body, compress=self.compress and len(body) >= self.compress_from)
        try:
            check_claim(body)
        except CorruptData as error:
            raise InvalidInput(f"{field}.claim", f"could not be read: {error}") from error
        if body.key.startswith(UPLOADS):
            raise InvalidInput(f"{field}.claim", f"must not lie in {UPLOADS}, where objects expire")
        if self.bodies is None or not self.bodies.keep(body):
            raise InvalidInput(f"{field}.claim", "names no object of that size in the bucket")
        return encode_claim(body)

    def _by_itself(self, body: Encoded) -> Encoded:
        return encode(body.data, compress=self.compress) if body.encoding == DIRECT else body

    def _move(self, bucket: Bodies, body: Encoded) -> Encoded:
        claim = claim_for(body)
        bucket.put(claim, body.data)
        return encode_claim(claim)

    def _fetch(self, body: Body) -> Body:
        if isinstance(body, bytes):
            return body
        if self.bodies is None:
            raise CorruptData(f"the body {body.key} lies in a bucket, and this store was given none")
        content = decode(Encoded(body.encoding, self.bodies.get(body)))
        if isinstance(content, Claim):
            raise CorruptData(f"the body {body.key} is itself a claim check")
        return content


def verified(claim: Claim, content: bytes) -> bytes:
    """`content`, if it is what was claimed; raises `CorruptData` otherwise."""
    if hashlib.sha256(content).hexdigest() != claim.sha256:
        raise CorruptData(f"the body {claim.key} is not the one that was claimed")
    return content
