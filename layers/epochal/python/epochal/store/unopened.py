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
    """A stream's head whose bodies are decoded on demand; those in the bucket stay claims."""

    head: Head
    codec: BodyCodec

    @property
    def count(self) -> int:
        """Number of events that the head carries."""
        return self.head.span.next - self.head.span.base

    def unfolds(self) -> tuple[RecordedUnfold, ...]:
        """Decode the stream's unfolds.

        Raises:
            CorruptData: one of them cannot be decoded.
        """
        return recorded_unfolds(self.head.read_unfolds(), self.codec, fetch=False)

    def outlines(self) -> list[Recorded]:
        """Return the events that the head carries, without their bodies.

        Raises:
            CorruptData: one of them cannot be decoded.
        """
        bare = [event._replace(data=EMPTY, meta=EMPTY) for event in self._stored()]
        return recorded_events(self.head.stream, self._indices, bare, self.codec)

    def may_be_large(self, place: int) -> bool:
        """Whether a body of an event in the head may be large.

        Args:
            place: position of the event among those that the head carries.
        """
        stored = self.head.span.read(place)
        return may_be_large(stored.data) or may_be_large(stored.meta)

    def event(self, place: int, largest: int) -> Recorded | None:
        """Decode one event of the head; None if its data or metadata have more than `largest` bytes.

        Args:
            place: position of the event among those that the head carries.

        Raises:
            CorruptData: the event cannot be decoded.
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
