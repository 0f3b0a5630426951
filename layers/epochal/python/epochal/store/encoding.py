"""Encodes users' events and unfolds for storage, and decodes stored ones."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from typing import IO, Final, Protocol

from epochal.codec import json
from epochal.codec.bodies import (
    CLAIM,
    DIRECT,
    MAX_DECODED,
    Encoded,
    OversizedBody,
    OversizedTogether,
    check_claim,
    decode,
    encode,
    encode_claim,
)
from epochal.codec.bucket_bodies import UPLOADS, claim_for, overflowing
from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.layout.streams import IDENTIFIED, Also, EncodedEvent, EncodedUnfold, id_in
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.bodies import Body, Claim, content_of
from epochal.model.events import (
    MAX_TYPE_BYTES,
    Event,
    Recorded,
    RecordedUnfold,
    Unfold,
    check_event,
    recorded,
)
from epochal.model.kinds import must_be_text
from epochal.model.moments import time_or_now
from epochal.model.stream_append import StreamAppend
from epochal.model.stream_names import TIMER_SET
from epochal.plan.limits import ITEM_BYTES
from epochal.store.driver import pool

# Bodies of events are encoded when they are stored, moved to the bucket where they are too large, and fetched from
# there when they are read.


_ADVICE: Final = "open the store with bucket=… to keep larger bodies there"

FETCHES = 8
"""Number of objects fetched in parallel."""


class Bodies(Protocol):
    """A place for bodies that are too large for an item: S3, or memory in tests."""

    def put(self, claim: Claim, content: bytes) -> None:
        """Store `content` under the claim's key; storing it again changes nothing."""

    def get(self, claim: Claim) -> bytes:
        """Return the verified content that a claim names.

        Raises:
            MissingBody, DeniedBody: there is no such object, or it may not be read.
            CorruptData: the content is not the one that was claimed.
        """

    def keep(self, claim: Claim) -> bool:
        """Whether the bucket keeps an object of the claimed size; an upload of that size is made permanent."""


class Objects(Protocol):
    """A place for content of plug-ins that is too large for an item, in one object each: S3, or memory."""

    def put(self, key: str, content: IO[bytes]) -> None:
        """Store the content of a file under `key`."""

    def get(self, key: str) -> Iterator[bytes]:
        """Yield the content of an object in chunks.

        Raises:
            MissingBody: there is no such object.
        """

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""

    def old_keys(self, prefix: str) -> Iterator[str]:
        """Yield keys below a prefix of objects too old to be part of a write under way."""


def codec_of(bodies: Bodies | None) -> BodyCodec:
    """Make the codec for bodies of streams; without a bucket (None) all bodies stay in the items."""
    return BodyCodec(bodies=bodies)


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyCodec:
    """Encodes bodies for storage and decodes them again, moving the largest ones to a bucket.

    Without a bucket everything stays in the items, and the bodies may be too large.

    Attributes:
        bodies: the bucket; None for none.
        compress: whether bodies are compressed.
        compress_from: bytes from which on a body is compressed by itself; smaller bodies are, too, where all of them
            would not fit.
    """

    bodies: Bodies | None = None
    compress: bool = True
    compress_from: int = 0

    def pack(self, bodies: Sequence[Body], budget: int, field: str) -> list[Encoded]:
        """Encode bodies; move the largest to the bucket, if there is one, until the rest fits `budget` bytes.

        Raises:
            InvalidInput: a claim of the caller's names no object of that size.
            TooLarge: there is no bucket, and no item holds them.
        """
        check_sizes(bodies, field)
        packed = [self._encode_and_keep(body, field) for body in bodies]
        if self.compress_from and sum(len(body.data) for body in packed) > budget:
            packed = [self._by_itself(body) for body in packed]
        sizes = [len(body.data) for body in packed]
        if self.bodies is not None:
            for position in overflowing(sizes, budget):
                packed[position] = self._move(self.bodies, packed[position])
        elif sum(sizes) > ITEM_BYTES:
            raise TooLarge(field, sum(sizes), ITEM_BYTES, advice=_ADVICE)
        return packed

    def unpack(
        self, bodies: Iterable[Encoded], *, fetch: bool = True, limit: int = MAX_DECODED, together: str = ""
    ) -> list[Body]:
        """Decode bodies of at most `limit` bytes; fetch those in the bucket, several in parallel.

        Args:
            fetch: False leaves bodies in the bucket as claims.
            together: name of the bodies for errors, if `MAX_DECODED` limits their total size; empty if `limit` applies
                to each body.

        Raises:
            CorruptData: a body cannot be decoded, or is larger than `limit`.
            MissingBody, DeniedBody: an object is gone, or may not be read.
        """
        opened = (
            _open_together(bodies, together)
            if together
            else [body.data if body.encoding == DIRECT else decode(body, limit) for body in bodies]
        )
        if not fetch or Claim not in map(type, opened):
            return opened
        with pool(FETCHES) as fetches:
            return list(fetches.map(self._fetch, opened))

    def _encode_and_keep(self, body: Body, field: str) -> Encoded:
        """Encode one body; for a claim of the caller's, make its object permanent first.

        Raises:
            InvalidInput: a claim names no object of that size, or one that expires.
        """
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
        """Compress a body that was left uncompressed."""
        return encode(body.data, compress=self.compress) if body.encoding == DIRECT else body

    def _move(self, bucket: Bodies, body: Encoded) -> Encoded:
        """Store an encoded body in the bucket; return the claim for the body, encoded."""
        claim = claim_for(body)
        bucket.put(claim, body.data)
        return encode_claim(claim)

    def _fetch(self, body: Body) -> Body:
        """Return a body's content, fetched from the bucket if the body is a claim.

        Raises:
            CorruptData: there is no bucket, or the object is itself a claim check.
        """
        if isinstance(body, bytes):
            return body
        if self.bodies is None:
            raise CorruptData(f"the body {body.key} is in a bucket, but the store was opened without one")
        content = decode(Encoded(body.encoding, self.bodies.get(body)))
        if isinstance(content, Claim):
            raise CorruptData(f"the body {body.key} is itself a claim check")
        return content


def check_sizes(bodies: Sequence[Body], field: str) -> None:
    """Raise `TooLarge` if a body has more bytes than any reader decodes (`MAX_DECODED`).

    Args:
        bodies: data and metadata of events, by turns.
        field: name of the argument that holds the events.
    """
    for place, body in enumerate(bodies):
        if isinstance(body, bytes) and len(body) > MAX_DECODED:
            name = f"{field}[{place // 2}].{'meta' if place % 2 else 'data'}"
            raise TooLarge(name, len(body), MAX_DECODED)


def _open_together(bodies: Iterable[Encoded], name: str) -> list[Body]:
    """Decode bodies; raise `CorruptData` if they inflate to more than `MAX_DECODED` bytes in all.

    An item has 400 KB, so this is more than 600 times what is stored: an attack, and not data.

    Raises:
        OversizedTogether: they inflate to more.
        CorruptData: one of them cannot be decoded.
    """
    room, opened = MAX_DECODED, list[Body]()
    for body in bodies:
        if body.encoding == DIRECT:
            opened.append(body.data)
            continue
        try:
            content = decode(body, room)
        except OversizedBody as fault:
            if room == MAX_DECODED:
                raise
            raise OversizedTogether(
                f"{name} exceed {MAX_DECODED >> 20} MB in all when decompressed: `read` opens one at a time"
            ) from fault
        if isinstance(content, bytes):
            room -= len(content)
        opened.append(content)
    return opened


def verified(claim: Claim, content: bytes) -> bytes:
    """Return `content` if it has the claim's SHA-256; else raise `CorruptData`.

    Raises:
        CorruptData: it has another SHA-256.
    """
    if hashlib.sha256(content).hexdigest() != claim.sha256:
        raise CorruptData(f"the body {claim.key} does not have the SHA-256 of its claim")
    return content


EVENTS_INLINE: Final = 240 * 1024
UNFOLDS_INLINE: Final = 140 * 1024
"""Largest number of bytes of unfolds' bodies that an append stores in the head; the largest bodies go to the bucket
until the rest fits. So an item has room for them, whatever the head contains already."""

_FIELDS: Final = 100
"""Bytes that an event takes besides its bodies, type and ids: for the names and fixed-size fields of FORMATS §1."""

MAX_KEY_BYTES: Final = 4_096
"""Largest bytes of an idempotency key. Only its hash is stored."""

AMBIENT: Final[ContextVar[Callable[[Event], Event] | None]] = ContextVar("epochal.metadata", default=None)
"""Function of the `epochal.metadata` blocks around a call that adds metadata to an event; None without a block, so that
nothing more is loaded."""


def with_metadata(events: Sequence[Event]) -> Sequence[Event]:
    """Return events with the metadata that the `metadata` blocks around the call add."""
    adding = AMBIENT.get()
    return events if adding is None else [adding(event) for event in events]


def store_events(
    events: Sequence[Event], now: str, codec: BodyCodec, room: int, *, tagged: bool = False
) -> tuple[EncodedEvent, ...]:
    """Check events, add metadata of the `metadata` block around the call; return them encoded for storage.

    Args:
        now: timestamp for events that have none.
        codec: encodes the bodies.
        room: bytes that the events may take.
        tagged: whether events may have tags, which the caller has checked and stores.

    Raises:
        InvalidInput: names the event and the field.
    """
    events = with_metadata(events)
    for position, event in enumerate(events):
        check_event(event, f"events[{position}]", tags=tagged)
    budget = min(room - sum(map(_fields_size, events)), EVENTS_INLINE)
    bodies = _packed(events, codec, budget, "events")
    return tuple(
        EncodedEvent(
            type=event.type,
            data=named(event, data),
            meta=meta,
            timestamp=time_or_now(event.timestamp, now, f"events[{position}].timestamp"),
            correlation_id=event.correlation_id,
            causation_id=event.causation_id,
            label=b"" if event.id is None else _label_of(event.id, f"events[{position}].id"),
        )
        for position, (event, (data, meta)) in enumerate(zip(events, bodies, strict=True))
    )


def named(event: Event, data: Encoded) -> Encoded:
    """Return an event's data to store; the claim check of a timer's event also gets the timer's name.

    So the name is known even if the object in the bucket gets lost.
    """
    if event.type == TIMER_SET and data.encoding == CLAIM and isinstance(claim := decode(data), Claim):
        return encode_claim(replace(claim, timer=json.loads(content_of(event.data))["name"]))
    return data


def store_unfolds(unfolds: Sequence[Unfold], now: str, codec: BodyCodec) -> tuple[EncodedUnfold, ...]:
    """Check unfolds, and return them encoded for storage, with version 0 until the index is known.

    Args:
        now: timestamp for unfolds that have none.

    Raises:
        InvalidInput: names the unfold and the field.
    """
    for position, unfold in enumerate(unfolds):
        must_be_text(unfold.type, MAX_TYPE_BYTES, f"unfolds[{position}].type")
    bodies = _packed(unfolds, codec, UNFOLDS_INLINE, "unfolds")
    return tuple(
        EncodedUnfold(
            version=0,
            type=unfold.type,
            data=data,
            meta=meta,
            timestamp=time_or_now(unfold.timestamp, now, f"unfolds[{position}].timestamp"),
        )
        for position, (unfold, (data, meta)) in enumerate(zip(unfolds, bodies, strict=True))
    )


def _packed(
    given: Sequence[Event] | Sequence[Unfold], codec: BodyCodec, room: int, field: str
) -> Iterator[tuple[Encoded, Encoded]]:
    """Encode the bodies of events or unfolds; yield data and metadata of each."""
    bodies = iter(codec.pack([body for event in given for body in (event.data, event.meta)], room, field))
    return zip(bodies, bodies, strict=True)


def recorded_events(
    stream: str,
    indices: range,
    events: Sequence[EncodedEvent],
    codec: BodyCodec,
    *,
    fetch: bool = True,
    limit: int = MAX_DECODED,
) -> list[Recorded]:
    """Decode the events of a stream that have the given indices.

    `CorruptData` names the event, unless several were to be decoded within a `limit` of the caller's, who then decodes
    one after another.

    Args:
        limit: largest bytes of a body; unless it is given, several events have that many together.

    Raises:
        CorruptData, MissingBody, DeniedBody: as `BodyCodec.unpack`.
    """
    together = ""
    if limit == MAX_DECODED and len(events) > 1:
        together = f"{stream}: the bodies of events {indices[0]} to {indices[-1]}"
    try:
        packed = [body for event in events for body in (event.data, event.meta)]
        bodies = iter(codec.unpack(packed, fetch=fetch, limit=limit, together=together))
    except OversizedTogether:
        raise
    except CorruptData as fault:
        if len(events) == 1:
            fault.args = (f"{stream} (index {indices[0]}): {fault}",)
        elif limit == MAX_DECODED:
            for index, event in zip(indices, events, strict=True):
                recorded_events(stream, range(index, index + 1), [event], codec, fetch=fetch)
        raise
    return [
        recorded(
            stream, index, kind, data, meta, time, correlation, causation, append_id,
            *(_of_label(event) if label else _NO_LABEL), None,
        )
        for index, event, data, meta in zip(indices, events, bodies, bodies, strict=True)
        for kind, _, time, _, correlation, causation, append_id, label, _ in (event,)
    ]  # fmt: skip


_NO_LABEL: Final = ((), "", "")


def recorded_unfolds(
    unfolds: Iterable[EncodedUnfold], codec: BodyCodec, *, fetch: bool = True, limit: int = MAX_DECODED
) -> tuple[RecordedUnfold, ...]:
    """Decode unfolds; without `fetch` bodies in the bucket are left as claims.

    Args:
        limit: largest bytes of a body.
    """
    listed = list(unfolds)
    bodies = iter(
        codec.unpack(
            [body for unfold in listed for body in (unfold.data, unfold.meta)],
            fetch=fetch,
            limit=limit,
            together="the bodies of unfolds" if len(listed) > 1 else "",
        )
    )
    return tuple(
        RecordedUnfold(
            version=unfold.version, type=unfold.type, data=data, meta=meta, timestamp=unfold.timestamp
        )
        for unfold, data, meta in zip(listed, bodies, bodies, strict=True)
    )


def check_key(key: str) -> None:
    """Raise `InvalidInput` unless a text can be an idempotency key: 1 to 4,096 bytes."""
    must_be_text(key, MAX_KEY_BYTES, "idempotency_key")


def key_digest(stream: str, key: str) -> bytes:
    """Return the first 8 bytes of the append id that an idempotency key determines in one stream."""
    return hashlib.sha256(f"{stream}\0{key}".encode()).digest()[:8]


def identity_of(appends: Sequence[StreamAppend], key: str, also: Also = ()) -> bytes:
    """Compute the 16-byte append id from an idempotency key, the appends and the writes with them.

    The order of the streams does not matter. The first half tells keys apart, the second half contents.
    """
    check_key(key)
    writes_digest = b""
    if also:
        from epochal.store.also import digest  # noqa: PLC0415  few appends have anything with them

        writes_digest = digest(also)
    if len(appends) == 1:
        # The first half is the same with and without `also`: a key is used once in a stream.
        return key_digest(appends[0].stream, key) + _contents_digest(appends[0], writes_digest)
    ordered = sorted(appends, key=lambda append: append.stream)
    names = "\0".join(("", *(append.stream for append in ordered), key))
    contents = b"".join(map(_contents_digest, ordered))
    return hashlib.sha256(names.encode()).digest()[:8] + hashlib.sha256(contents + writes_digest).digest()[:8]


def _contents_digest(append: StreamAppend, also: bytes = b"") -> bytes:
    """Compute 8 bytes that tell the contents of an append from others under the same key.

    Args:
        also: digest of the writes to other tables; empty for none.
    """
    digest = hashlib.sha256(also)
    for event in append.events:
        _feed(digest, event.type, event.data, event.meta, event.timestamp)
        _feed(digest, event.correlation_id or "", b"", b"", event.causation_id)
        if event.id is not None:
            _feed(digest, "id", event.id.encode("utf-8", "surrogatepass"), b"", None)
        if event.tags:
            _feed(digest, "tags", "\0".join(sorted(set(event.tags))).encode(), b"", None)
    if append.unfolds is not None:
        digest.update(b"unfolds")  # replacing the unfolds by none differs from keeping them
    for unfold in append.unfolds or ():
        _feed(digest, unfold.type, unfold.data, unfold.meta, unfold.timestamp)
    return digest.digest()[:8]


def _feed(digest: hashlib._Hash, kind: str, data: Body, meta: Body, timestamp: str | None) -> None:
    """Add the fields of an event or unfold to a digest, each with its length before it."""
    for part in (kind.encode(), _bytes(data), _bytes(meta), (timestamp or "").encode()):
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)


def _bytes(body: Body) -> bytes:
    return body.sha256.encode() if isinstance(body, Claim) else body


def _label_of(event_id: str, field: str) -> bytes:
    """Make the label of an event with an id and no tags.

    Raises:
        InvalidInput: the id is no UUID.
    """
    from epochal.model.tags import parse_event_id  # noqa: PLC0415  most events in streams have no id

    return IDENTIFIED + bytes.fromhex(parse_event_id(event_id, field).replace("-", ""))


def _of_label(event: EncodedEvent) -> tuple[tuple[str, ...], str, str]:
    """Return the tags, the id and the place of a stored event, which its label tells."""
    if event.label.startswith(IDENTIFIED):
        return (), id_in(event.label), ""
    from epochal.pages.tags.entries import parts_of_label  # noqa: PLC0415  most streams have no tags

    return parts_of_label(event)


def _fields_size(event: Event) -> int:
    texts = (event.type, event.correlation_id or "", event.causation_id or "", event.id or "", *event.tags)
    return _FIELDS + len("".join(texts).encode("utf-8", "surrogatepass"))
