"""Sources of streams to copy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from epochal.contrib.transfer.copying.digests import CopiedEvent, Said, said_by
from epochal.errors import EventsPruned, InvalidInput
from epochal.layout.changes import Span
from epochal.layout.streams import Head
from epochal.lazy_dataclasses import dataclass
from epochal.model.bodies import Claim
from epochal.model.events import RecordedUnfold
from epochal.model.stream_names import TAG_STREAMS
from epochal.store.encoding import recorded_unfolds
from epochal.store.streams import Streams


@dataclass(frozen=True, slots=True, kw_only=True)
class Original:
    """Head of a stream, as it was read.

    Attributes:
        version: index of the next event
        first: index of the first event that exists; those below are pruned, and in no archive
        deleted: whether the stream was deleted
        unfolds: stored unfolds, with bodies in the bucket as claims
    """

    version: int
    first: int = 0
    deleted: bool = False
    unfolds: tuple[RecordedUnfold, ...] = ()

    @property
    def empty(self) -> bool:
        """Whether the stream holds nothing that could be lost."""
        return self.deleted or (self.first == self.version and not self.unfolds)


class CopySource(Protocol):
    """Source of streams to copy."""

    @property
    def layout(self) -> str:
        """Name of the layout that the streams are stored in."""

    @property
    def said(self) -> Said:
        """Function that computes the digest of a body."""

    def head(self, stream: str) -> Original | None:
        """Read the head of a stream; None if there is no such stream."""

    def events(self, stream: str, first: int, end: int) -> Iterator[CopiedEvent]:
        """Yield events `first` to `end - 1` of a stream, with bodies in the bucket as claims.

        Raises:
            EpochalError: an event is gone, or cannot be read.
        """

    def belongs_to_other_streams(self, span: Span) -> bool:
        """Whether all events of a span belong to other streams, and are copied with these."""

    def content(self, claim: Claim) -> bytes:
        """Fetch the content of a body from the bucket."""


@dataclass(frozen=True, slots=True)
class StreamSource:
    """Source of named streams in a store.

    Attributes:
        store: store of the streams
    """

    store: Streams

    @property
    def layout(self) -> str:
        """Name of the layout that the streams are stored in."""
        return self.store.layout.name

    @property
    def said(self) -> Said:
        """Function that computes the digest of a body, in an item or in the bucket."""
        return said_by(self.store.codec)

    def head(self, stream: str) -> Original | None:
        """Read the head of a stream, with the index of its first event; None if there is no such stream.

        Pruned events that an archive holds count as there.
        """
        head = self.store.head(stream)
        if head is None:
            return None
        unfolds = recorded_unfolds(head.read_unfolds(), self.store.codec, fetch=False)
        first = 0 if head.deleted else self._first(head)
        return Original(version=head.version, first=first, deleted=head.deleted, unfolds=unfolds)

    def events(self, stream: str, first: int, end: int) -> Iterator[CopiedEvent]:
        """Yield events `first` to `end - 1`, with claims for bodies in a bucket; raise if some are missing.

        Raises:
            EventsPruned: an event is missing at the end, as where the stream was deleted since its head was read.
        """
        next_index = first
        for event in self.store.reader(fetch=False).events(stream, first, end - first, "forward"):
            yield event
            next_index = event.index + 1
        if next_index < end:
            raise EventsPruned(stream, next_index, end)

    def belongs_to_other_streams(self, span: Span) -> bool:
        """Whether all events in a span of a tag's stream have a home stream, and are copied with that."""
        if not span.stream.startswith(TAG_STREAMS):
            return False
        tag = span.stream.removeprefix(TAG_STREAMS)
        entries = self.store.tagged.between(tag, span.index, span.next, fetch=False)
        return all(event.stream for event in entries)

    def content(self, claim: Claim) -> bytes:
        """Fetch the content of a body from the store's bucket; raise `InvalidInput` if it has no bucket.

        Raises:
            InvalidInput: the store has no bucket.
        """
        bodies = self.store.codec.bodies
        if bodies is None:
            raise InvalidInput("bucket", f"must be given: the body {claim.key} is stored in a bucket")
        return bodies.get(claim)

    def _first(self, head: Head) -> int:
        """Return the index of the first event left in a stream or its archive; its version if none is left.

        Items are read one at a time, since a read of the stream would fetch a megabyte.
        """
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
