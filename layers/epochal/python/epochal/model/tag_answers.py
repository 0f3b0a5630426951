"""The answers to appends of tagged events, reads of them and listings of their tags."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from epochal.errors import InvalidInput
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.capacity import NOTHING, Capacity
from epochal.model.events import Event, Recorded
from epochal.model.moments import Ticks
from epochal.model.position_text import read_position, write_position
from epochal.model.positions import Position, Reached

REST: Final = "from"
"""The field in which a page says where the next one goes on."""

Reach = Mapping[str, Reached]
"""For each tag, how far its events have been read by a read that goes page by page."""

_KEY: Final = re.compile(r"\d{30}#[0-9a-f-]{36}", re.ASCII)

_PARTS: Final = 3

Takes = Callable[[Recorded], bool]
"""A function that returns whether an answer has room for one more event. It is called for each event in order; the
first event is included in any case.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The events that a read of tagged events returned, in order or newest first, and the position that it reached.

    Attributes:
        events: events that match the query, in the order of the read.
        position: position that the read reached; pass it as `after` to an append.
        more: whether more events match than the limit allowed. The position of a forward read does not include the
            events left out; that of a backward read does, because it is the position of the newest event.
        capacity: read units and requests that the read took.
    """

    events: tuple[Recorded, ...]
    position: Position
    more: bool = False
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedPage:
    """One page of a forward read of tagged events. It may be empty although the read moved on.

    Attributes:
        events: events of the page, in order.
        position: on the last page, the position of the whole read, to pass as `after` to an append; None on earlier
            pages.
        rest: place where the next page begins; None on the last page.
        capacity: read units and requests that the page took.
    """

    events: tuple[Recorded, ...]
    position: Position | None
    rest: Rest | None
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardPage:
    """One page of a backward read of tagged events, newest first.

    Attributes:
        events: events of the page, newest first.
        position: position of the query after its newest event, for an append `after` it.
        rest: where the next page begins; None at the end.
        capacity: number of read units and requests that the page took.
    """

    events: tuple[Recorded, ...]
    position: Position
    rest: Down | None
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """The place at which the next page of a forward read of tagged events begins.

    The text form is not trusted: a place that does not fit what is stored is refused as input.

    Attributes:
        at: how far the events of each tag have been read, by tag; the next page goes on there.
        position: position that the whole read, with all of its pages, reaches; pass it as `after` to an append.
    """

    at: Reach
    position: Position

    def text(self) -> str:
        """Encode the place where the page begins as opaque text that is safe in URLs."""
        return f"{write_position(Position(seen=self.at))}.{write_position(self.position)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """The place at which the next page of a backward read of tagged events begins.

    Attributes:
        upto: sort key below which the events of the next page are.
        position: position of the whole read, to append `after`.
        at: for each tag, up to where its events are still to be read, if tags are stored as streams.
    """

    upto: str
    position: Position
    at: Reach = field(default_factory=dict)

    def text(self) -> str:
        """Encode this start of a page as opaque text that is safe in URLs.

        It need not be trusted: it can show only what the query asks for.
        """
        position = f".{write_position(Position(seen=self.at))}" if self.at else ""
        return f"{write_position(self.position)}.{self.upto.replace('#', '.')}{position}"


def parse_rest(written: str) -> Rest:
    """Decode the text of `Rest.text`; raise `InvalidInput` naming `from`."""
    reach_text, dot, end = written.partition(".")
    if dot:
        start, position = read_position(reach_text, REST), read_position(end, REST)
        if start <= position:
            return Rest(at=start.seen, position=position)
    raise InvalidInput(REST, "must be the `next` value of the previous page, unchanged")


def parse_down(written: str) -> Down:
    """Decode the text of `Down.text`; raise `InvalidInput` naming `from`."""
    position, *parts = written.split(".")
    upto = "#".join(parts[:2])
    if not _KEY.fullmatch(upto) or len(parts) > _PARTS:
        raise InvalidInput(REST, "must be the `next` value of the previous page, unchanged")
    reached = read_position(parts[2], REST).seen if len(parts) == _PARTS else {}
    return Down(upto=upto, position=read_position(position, REST), at=reached)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagEntry:
    """One entry in the list of a tag's events.

    `index` counts from 0; it is None on entries that Sekiban wrote.

    Attributes:
        event_id: id of the event.
        event_type: type of the event.
        place: place of the event: sortable text by which the tag's entries are ordered.
        index: index of the event in the tag, from 0; None on entries that Sekiban wrote.
        created_at: time of the event: ISO 8601.
    """

    event_id: str
    event_type: str
    place: str
    index: int | None
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """A tag and the number of its events.

    Attributes:
        tag: tag whose events are counted.
        events: number of events with the tag.
    """

    tag: str
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedEvent:
    """A checked event that is ready to be imported.

    Attributes:
        timestamp: time of the event in its stored form.
        happened: the same time in ticks.
        place: place that the event had in its source, or that follows from its other fields.
    """

    event: Event
    timestamp: str
    happened: Ticks
    place: str
