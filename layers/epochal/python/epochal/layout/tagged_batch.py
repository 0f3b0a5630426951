"""The tagged events of one append, as the store gives them to a layout."""

from __future__ import annotations

from collections.abc import Mapping

from epochal.codec.bodies import Encoded
from epochal.layout.streams import Also
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.events import Event
from epochal.model.moments import Ticks
from epochal.model.positions import Reached


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedBatch:
    """The tagged events of one append, all or nothing.

    Attributes:
        events: the events, at least one; an event has an id only if the caller chose it.
        bodies: stored data and metadata of each event.
        now: time of the writer's clock.
        append_id: 16 random bytes, the same for all tries.
        etag: 32 random hex digits, the same for all tries.
        dated: whether an event has a timestamp of its own that equals the writer's clock.
        homes: for each event, the named stream that it is appended to and its place among that stream's new events;
            empty without named streams. With a home, an event without tags is stored in its home only.
        also: writes to the program's own tables in the same transaction.
        beside: digest of `also`, 8 bytes, stored in the records of the ids; empty without `also`.
        ends: ends of tags as the process has left them, by tag, which need not be read.
    """

    events: tuple[Event, ...]
    bodies: tuple[tuple[Encoded, Encoded], ...]
    now: Ticks
    append_id: bytes
    etag: str
    dated: bool = False
    homes: tuple[tuple[str, int], ...] = ()
    also: Also = ()
    beside: bytes = b""
    ends: Mapping[str, Reached] = field(default_factory=dict)

    @property
    def ids(self) -> tuple[str, ...]:
        """Ids that the caller chose."""
        return tuple(event.id for event in self.events if event.id is not None)
