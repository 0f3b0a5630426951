"""What is copied: named streams of any layout, and what plug-ins have, read in the same way."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, Protocol

from epochal.codec.bodies import DIRECT, encode_claim
from epochal.errors import EventsPruned, InvalidInput
from epochal.layout.streams import Head
from epochal.model.events import TAG_STREAMS, Body, Claim, RecordedUnfold, content_of
from epochal.model.spans import Span
from epochal.model.times import Ticks, from_unix_nanoseconds, parse_time
from epochal.store.encoding import BodyCodec, recorded_unfolds
from epochal.store.streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """A stream, as it was read.

    Attributes:
        version: its next index.
        first: events below are pruned, and in no archive.
        unfolds: those stored, bodies in the bucket as claims.
    """

    version: int
    first: int = 0
    deleted: bool = False
    unfolds: tuple[RecordedUnfold, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether it holds nothing that could be lost."""
        return self.deleted or (self.first == self.version and not self.unfolds)


class CopySource(Protocol):
    """Where streams are copied from."""

    @property
    def layout(self) -> str:
        """As registered."""

    @property
    def said(self) -> Said:
        """Digests of its bodies."""

    def head(self, stream: str) -> Original | None:
        """A stream as it is now; None where there is none."""

    def events(self, stream: str, first: int, end: int) -> Iterator[CopiedEvent]:
        """Events `first` to `end - 1`, bodies in the bucket as claims. Raises where one is gone or cannot be read."""

    def elsewhere(self, span: Span) -> bool:
        """Whether all events of a span are in other streams, and copied with these."""

    def content(self, claim: Claim) -> bytes:
        """What the bucket holds of a body."""


@dataclass(frozen=True, slots=True)
class StreamSource:
    """Named streams."""

    store: Streams

    @property
    def layout(self) -> str:
        """How they are stored."""
        return self.store.layout.name

    @property
    def said(self) -> Said:
        """Digests of bodies in its bucket and in its items."""
        return said_by(self.store.codec)

    def head(self, stream: str) -> Original | None:
        """The stream's head. An archive has what is pruned; without one, the first event that is found is the first."""
        head = self.store.head(stream)
        if head is None:
            return None
        unfolds = recorded_unfolds(head.read_unfolds(), self.store.codec, fetch=False)
        first = 0 if head.deleted else self._first(head)
        return Original(version=head.version, first=first, deleted=head.deleted, unfolds=unfolds)

    def events(self, stream: str, first: int, end: int) -> Iterator[CopiedEvent]:
        """Events, and no hole between them. A stream that was deleted since its head was read has none."""
        at = first
        for event in self.store.reader(fetch=False).events(stream, first, end - first, "forward"):
            yield event
            at = event.index + 1
        if at < end:
            raise EventsPruned(stream, at, end)

    def elsewhere(self, span: Span) -> bool:
        """Events of a tag are where each has a home."""
        if not span.stream.startswith(TAG_STREAMS):
            return False
        tag = span.stream.removeprefix(TAG_STREAMS)
        found = self.store.tagged.between(tag, span.index, span.next, fetch=False)
        return all(event.stream for event in found)

    def content(self, claim: Claim) -> bytes:
        """An object of its bucket."""
        bodies = self.store.codec.bodies
        if bodies is None:
            raise InvalidInput("bucket", f"must be given: the body {claim.key} lies in one")
        return bodies.get(claim)

    def _first(self, head: Head) -> int:
        """Looked for by an item at a time: a read of the stream would take a megabyte of it."""
        store = self.store
        cursor = store.layout.stand(head, 0, forward=True)
        first = head.version
        while not cursor.at_end:
            part = store.driver.run(store.layout.advance(store.table, cursor, 1))
            if part.spans:
                first = part.spans[0].base
                break
            cursor = part.cursor
        archived = (
            StreamSource(store.archive).head(head.stream) if first and store.archive is not None else None
        )
        return archived.first if archived is not None and archived.version >= first else first


# What of an event must be the same in the copy, and a digest of it. Pure, but for bodies that are in a bucket.
#
# Layouts write times and bodies in forms of their own: times are compared to the 100 ns, bodies by what they say. An
# event's append id is not copied: it tells writes apart, and the copy is another write.

Said = Callable[[Body], bytes]
"""The SHA-256 of what a body says."""

_NANOSECONDS: Final = 17
"""Digits from which on a number that another library stores for a time counts nanoseconds; below, milliseconds."""


class CopiedEvent(Protocol):
    """An event of any layout, as it is stored or as the feed shows it."""

    @property
    def index(self) -> int:
        """Its place in the stream."""

    @property
    def type(self) -> str:
        """Its type."""

    @property
    def data(self) -> Body:
        """The payload."""

    @property
    def meta(self) -> Body:
        """Metadata."""

    @property
    def timestamp(self) -> str:
        """As stored."""

    @property
    def tags(self) -> tuple[str, ...]:
        """In order."""

    @property
    def correlation_id(self) -> str | None:
        """The conversation."""

    @property
    def causation_id(self) -> str | None:
        """The cause."""


def time_of(timestamp: str) -> Ticks:
    """When an event happened. A number is Unix time: libraries of event-store-adapter store one.

    Raises:
        InvalidInput: it is no time.
    """
    if not (timestamp.isascii() and timestamp.isdigit()):
        return parse_time(timestamp)
    return from_unix_nanoseconds(int(timestamp) * (1 if len(timestamp) >= _NANOSECONDS else 1_000_000))


def said_by(codec: BodyCodec) -> Said:
    """The digest of a body. It is fetched only where its claim does not tell: where it is compressed in the bucket."""

    def said(body: Body) -> bytes:
        if isinstance(body, Claim):
            if body.encoding == DIRECT:
                return bytes.fromhex(body.sha256)
            (body,) = codec.unpack([encode_claim(body)])
        return hashlib.sha256(content_of(body)).digest()

    return said


@dataclass(slots=True)
class Digest:
    """A digest of the events of a stream, in their order."""

    said: Said
    events: int = 0
    _hash: hashlib._Hash = field(default_factory=hashlib.sha256)

    def add(self, event: CopiedEvent) -> bytes:
        """Take in the next event; what it adds, by which two events can be compared."""
        texts = (event.type, event.correlation_id, event.causation_id, *event.tags)
        parts = [
            f"{event.index} {time_of(event.timestamp)}".encode(),
            self.said(event.data),
            self.said(event.meta),
        ]
        parts += [b"-" if text is None else b"+" + text.encode() for text in texts]
        added = hashlib.sha256(b"".join(len(part).to_bytes(4, "big") + part for part in parts)).digest()
        self._hash.update(added)
        self.events += 1
        return added

    def hex(self) -> str:
        """64 hex digits."""
        return self._hash.hexdigest()
