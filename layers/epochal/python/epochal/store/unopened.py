"""A stream's head as it was read: its bodies are opened when a caller asks for them, since they may be large."""

from __future__ import annotations

from collections.abc import Iterator

from epochal.codec.bodies import EMPTY, may_be_large
from epochal.layout.streams import EncodedEvent, Head
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Recorded, RecordedUnfold
from epochal.store.encoding import BodyCodec, recorded_events, recorded_unfolds
from epochal.store.reading import UnopenedEvent, Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class UnopenedHead:
    """A head, and the codec of the bodies in it. Bodies in the bucket are left as claims."""

    head: Head
    codec: BodyCodec

    @property
    def count(self) -> int:
        """How many events the head carries."""
        return self.head.span.next - self.head.span.base

    def unfolds(self) -> tuple[RecordedUnfold, ...]:
        """The stream's unfolds. Raises `CorruptData`."""
        return recorded_unfolds(self.head.read_unfolds(), self.codec, fetch=False)

    def outlines(self) -> list[Recorded]:
        """The events that the head carries, each without its bodies. Raises `CorruptData`."""
        bare = [event._replace(data=EMPTY, meta=EMPTY) for event in self._stored()]
        return recorded_events(self.head.stream, self._indices, bare, self.codec)

    def may_be_large(self, place: int) -> bool:
        """Whether a body of the event at a place among those that the head carries may be large."""
        stored = self.head.span.read(place)
        return may_be_large(stored.data) or may_be_large(stored.meta)

    def event(self, place: int, largest: int) -> Recorded | None:
        """The event at a place among those that the head carries; None where its data or its metadata have more than
        `largest` bytes. Raises `CorruptData`.
        """
        unopened = UnopenedEvent(
            stream=self.head.stream, span=self.head.span, offset=place, codec=self.codec, fetch=False
        )
        found = unopened.open(largest)
        if isinstance(found, Unreadable):
            raise found.fault
        return found

    @property
    def _indices(self) -> range:
        return range(self.head.span.base, self.head.span.next)

    def _stored(self) -> Iterator[EncodedEvent]:
        return map(self.head.span.read, range(self.count))
