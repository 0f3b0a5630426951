"""What appends of tagged events, reads of them and listings of their tags answer with."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from epochal.errors import InvalidInput
from epochal.model.events import Event, Recorded
from epochal.model.outcomes import NOTHING, Capacity
from epochal.model.positions import read_position, write_position
from epochal.model.times import Ticks
from epochal.model.versions import Position, Reached

REST: Final = "from"
"""The field in which a page says where the next one goes on."""

Reach = Mapping[str, Reached]
"""How far each tag has been read."""

_KEY: Final = re.compile(r"\d{30}#[0-9a-f-]{36}", re.ASCII)

_PARTS: Final = 3

Takes = Callable[[Recorded], bool]
"""Whether there is room for one more event. Asked of each in order, the first of which is taken in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Events in order of their places, or newest first, and the position that a read of them has reached.

    Attributes:
        more: there are others, beyond the limit. A read forward has then not seen these; one backward
            has: its position is that of the newest event.
    """

    events: tuple[Recorded, ...]
    position: Position
    more: bool = False
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaggedPage:
    """Some events of a read. It may have none, and still have moved on.

    Attributes:
        position: to append after, once nothing is left; None before.
        rest: where the next page goes on; None at the end.
    """

    events: tuple[Recorded, ...]
    position: Position | None
    rest: Rest | None
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackwardPage:
    """Some events of a read, newest first. `position` is that of the newest event there is: to append after.

    `rest` is where the next page goes on; None at the end.
    """

    events: tuple[Recorded, ...]
    position: Position
    rest: Down | None
    capacity: Capacity = field(default=NOTHING, compare=False, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """Where the next page begins: how far the tags have been read, and the position of the read.

    The text form is not trusted: a place that does not fit what is stored is refused as input.
    """

    at: Reach
    position: Position

    def text(self) -> str:
        """An opaque text, safe in URLs."""
        return f"{write_position(Position(seen=self.at))}.{write_position(self.position)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Down:
    """Where the next page begins, backward: at the key `upto`, in the read of this position.

    Where tags are streams, `at` is how far up each of them is still to be read.
    """

    upto: str
    position: Position
    at: Reach = field(default_factory=dict)

    def text(self) -> str:
        """An opaque text, safe in URLs. It need not be trusted: it can show only what the query asks for."""
        at = f".{write_position(Position(seen=self.at))}" if self.at else ""
        return f"{write_position(self.position)}.{self.upto.replace('#', '.')}{at}"


def parse_rest(written: str) -> Rest:
    """Read `Rest.text` back; raises `InvalidInput` naming `REST`."""
    at, dot, end = written.partition(".")
    if dot:
        begun, position = read_position(at, REST), read_position(end, REST)
        if begun <= position:
            return Rest(at=begun.seen, position=position)
    raise InvalidInput(REST, "must be what `next` of the page before says")


def parse_down(written: str) -> Down:
    """Read `Down.text` back; raises `InvalidInput` naming `REST`."""
    position, *parts = written.split(".")
    upto = "#".join(parts[:2])
    if not _KEY.fullmatch(upto) or len(parts) > _PARTS:
        raise InvalidInput(REST, "must be what `next` of the page before says")
    at = read_position(parts[2], REST).seen if len(parts) == _PARTS else {}
    return Down(upto=upto, position=read_position(position, REST), at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class TagEntry:
    """A tag's entry for one of its events. `index` counts from 0; None on entries of the original library."""

    event_id: str
    event_type: str
    place: str
    index: int | None
    created_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TagCount:
    """A tag and how many events it has, as its head counts them."""

    tag: str
    events: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DatedEvent:
    """An event to import, checked.

    Attributes:
        happened: its timestamp.
        place: the one that it had, or that follows from the rest.
    """

    event: Event
    timestamp: str
    happened: Ticks
    place: str
