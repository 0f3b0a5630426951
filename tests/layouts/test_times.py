"""Times that a user gives are datetimes or ISO 8601 text with a time zone, wherever they are given."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from epochal import Delivery, Event, Unfold, reaction
from epochal.deciders import Decider
from epochal.errors import InvalidInput
from epochal.feed.reader import FeedReader
from epochal.scheduling import later
from epochal.testing import MemoryStore, given, memory_streams, memory_tagged_events

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
EVENT = Event(type="Placed")

COUNT = Decider[int, Event, int](
    initial=int, decide=lambda _command, _state: [], evolve=lambda state, _event: state + 1
)

Give = Callable[[Any], object]


def feed_with_one_event() -> MemoryStore:
    feed = MemoryStore()
    feed.streams.append("Order-1", [EVENT])
    feed.index()
    return feed


def reader() -> FeedReader:
    return feed_with_one_event().feed


def partition() -> int:
    return reader().partitions()[0].partition


def react_from(start: Any) -> None:
    def handle(delivery: Delivery) -> None:
        pass

    feed_with_one_event().react(reaction(name="board", start=start)(handle))


def reset_to(time: Any) -> None:
    feed = feed_with_one_event()

    @reaction(name="board")
    def board(delivery: Delivery) -> None:
        pass

    feed.react(board)
    feed.groups.reset("board", time)


PLACES: dict[str, tuple[str, Give]] = {
    "the timestamp of an event": (
        "events[0].timestamp",
        lambda time: memory_streams().append("Order-1", [Event(type="Placed", timestamp=time)]),
    ),
    "the timestamp of an unfold": (
        "unfolds[0].timestamp",
        lambda time: memory_streams().append(
            "Order-1", [EVENT], unfolds=[Unfold(type="State", data=b"1", timestamp=time)]
        ),
    ),
    "the timestamp of a tagged event": (
        "events[0].timestamp",
        lambda time: memory_tagged_events().append([Event(type="Placed", timestamp=time, tags=("order:1",))]),
    ),
    "the bounds of a read": ("since", lambda time: list(memory_streams().read("Order-1", since=time))),
    "the other bound of a read": ("until", lambda time: list(memory_streams().read("Order-1", until=time))),
    "a state as of a moment": (
        "as_of",
        lambda time: feed_with_one_event().streams.load("Order-1", as_of=time),
    ),
    "the start of a page": ("start", lambda time: reader().page(partition(), start=time)),
    "the start of a read": ("start", lambda time: list(reader().read(partition(), start=time))),
    "the start in one order": ("start", lambda time: list(reader().ordered(within=10, start=time))),
    "the start of a list of streams": ("start", lambda time: reader().streams(start=time)),
    "the start of a list by partition": ("start", lambda time: reader().streams(start={partition(): time})),
    "the start of a reaction": ("start", react_from),
    "the start of a reaction by partition": (
        f"start[{partition()}]",
        lambda time: react_from({partition(): time}),
    ),
    "the target of a reset": ("start", reset_to),
    "the due time of a timer": ("at", lambda time: later("remind", [EVENT], at=time)),
    "the time of an example": (
        "now",
        lambda time: given(COUNT, now=time),
    ),  # type: ignore[arg-type]
}


@pytest.mark.parametrize(("field", "give"), PLACES.values(), ids=PLACES)
@pytest.mark.parametrize(
    "naive",
    [datetime(2026, 6, 1, 12), "2026-06-01T12:00:00", "2026-06-01 12:00"],  # noqa: DTZ001
)
def test_a_time_without_a_time_zone_is_refused_with_what_to_write(field: str, give: Give, naive: Any) -> None:
    with pytest.raises(InvalidInput) as refused:
        give(naive)
    fields = {field, "timestamp"} if isinstance(naive, datetime) and field.endswith("timestamp") else {field}
    assert refused.value.field in fields
    text = str(refused.value)
    assert "must have a time zone" in text
    assert str(naive)[:10] in text
    assert ("datetime.now(UTC)" if isinstance(naive, datetime) else "2026-01-31T12:00:00Z") in text


@pytest.mark.parametrize(("field", "give"), PLACES.values(), ids=PLACES)
@pytest.mark.parametrize(
    "zoned",
    [NOON, NOON.astimezone(timezone(timedelta(hours=-7))), "2026-06-01T12:00:00Z", "2026-06-01 14:00+02:00"],
)
def test_a_datetime_or_text_with_a_time_zone_is_taken(field: str, give: Give, zoned: Any) -> None:
    give(zoned)
