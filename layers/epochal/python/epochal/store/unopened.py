"""A stream's head whose bodies are decoded only when a caller asks for them, since they may be large."""

from __future__ import annotations

from collections.abc import Iterator

from epochal.codec.bodies import EMPTY, MAX_DECODED, OversizedBody, exceeds, may_be_large
from epochal.layout.streams import EncodedEvent, EncodedUnfold, EventSpan, Head
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Recorded, RecordedUnfold
from epochal.store.encoding import BodyCodec, recorded_events, recorded_unfolds
from epochal.store.reading import UnopenedEvent, Unreadable


@dataclass(frozen=True, slots=True, kw_only=True)
class UnopenedUnfold:
    """An unfold as it is stored, whose bodies are decoded on demand; those in the bucket stay claims."""

    stored: EncodedUnfold
    codec: BodyCodec

    @property
    def may_be_large(self) -> bool:
        """Whether a body of the unfold may be large."""
        return may_be_large(self.stored.data) or may_be_large(self.stored.meta)

    def decode(self, largest: int) -> RecordedUnfold | None:
        """Decode the unfold; None if its data or its metadata have more than `largest` bytes.

        Raises:
            CorruptData: the unfold cannot be decoded.
        """
        if any(exceeds(body, largest) for body in (self.stored.data, self.stored.meta)):
            return None
        try:
            return recorded_unfolds((self.stored,), self.codec, fetch=False, limit=largest)[0]
        except OversizedBody:
            if largest >= MAX_DECODED:
                raise
            return None


@dataclass(frozen=True, slots=True, kw_only=True)
class UnopenedHead:
    """A stream's head whose bodies are decoded on demand; those in the bucket stay claims.

    The head makes a new span each time, and a span keeps what it has decoded: so one is kept here. Otherwise a frame of
    many events would be decoded for each of them.
    """

    head: Head
    codec: BodyCodec
    _span: EventSpan = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_span", self.head.span)

    @property
    def count(self) -> int:
        """Number of events that the head carries."""
        return self._span.next - self._span.base

    def unfolds(self) -> list[UnopenedUnfold]:
        """Read the stream's unfolds, but not their bodies.

        Raises:
            CorruptData: one of them cannot be read.
        """
        return [UnopenedUnfold(stored=stored, codec=self.codec) for stored in self.head.read_unfolds()]

    def outlines(self) -> list[Recorded]:
        """Return the events that the head carries, without their bodies.

        Raises:
            CorruptData: one of them cannot be decoded.
        """
        bare = [event._replace(data=EMPTY, meta=EMPTY) for event in self._stored()]
        return recorded_events(self.head.stream, self._indices, bare, self.codec)

    def may_be_large(self, place: int) -> bool:
        """Return whether a body of an event in the head may decode to more than `ONE_BLOCK` bytes.

        Args:
            place: position of the event among those that the head carries.
        """
        stored = self._span.read(place)
        return may_be_large(stored.data) or may_be_large(stored.meta)

    def event(self, place: int, largest: int) -> Recorded | None:
        """Decode one event of the head; None if its data or metadata have more than `largest` bytes.

        Args:
            place: position of the event among those that the head carries.

        Raises:
            CorruptData: the event cannot be decoded.
        """
        unopened = UnopenedEvent(
            stream=self.head.stream, span=self._span, offset=place, codec=self.codec, fetch=False
        )
        opened = unopened.decode(largest)
        if isinstance(opened, Unreadable):
            raise opened.fault
        return opened

    @property
    def _indices(self) -> range:
        return range(self._span.base, self._span.next)

    def _stored(self) -> Iterator[EncodedEvent]:
        return map(self._span.read, range(self.count))
