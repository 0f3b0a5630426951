"""An event keeps its own time to 100 ns, whatever moment its append is stamped with."""

from __future__ import annotations

from dataclasses import replace

import pytest

from epochal.model.events import Event
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.model.stream_append import StreamAppend
from epochal.model.tags import Query, QueryItem
from epochal.testing.stores import memory_streams, memory_tables, memory_tagged_events

NOON = 1_790_000_000_000_000_000
OWN = format_ticks(from_unix_nanoseconds(NOON))
OF_A = Query(items=(QueryItem(tags=frozenset({"a"})),))


def test_a_time_that_is_the_writers_clock_is_kept_in_a_stream_whose_stamps_are_ahead() -> None:
    streams = replace(memory_streams(), now=lambda: NOON)
    for _ in range(3):
        streams.append("Door-1", [Event(type="Opened", timestamp=OWN)])
    assert [event.timestamp for event in streams.read("Door-1")] == [OWN] * 3


def test_so_is_it_in_streams_that_are_appended_to_together() -> None:
    streams = replace(memory_streams(), now=lambda: NOON)
    both = [
        StreamAppend(stream=name, events=[Event(type="Opened", timestamp=OWN)]) for name in ("D-1", "D-2")
    ]
    for _ in range(2):
        streams.append_all(both)
    assert [event.timestamp for name in ("D-1", "D-2") for event in streams.read(name)] == [OWN] * 4


def test_so_is_it_under_tags_and_in_the_answer() -> None:
    store = replace(memory_tagged_events(), now=lambda: NOON)
    made = [store.append([Event(type="T", tags=("a",), timestamp=OWN)]).events[0] for _ in range(3)]
    assert [event.timestamp for event in made] == [OWN] * 3
    assert store.read(OF_A).events == tuple(made)


def test_any_other_time_is_kept_under_tags_and_none_is_the_moment_of_the_append() -> None:
    store = replace(memory_tagged_events(), now=lambda: NOON)
    own, bare = store.append(
        [Event(type="T", tags=("a",), timestamp="1997-05-23T21:20:00+02:00"), Event(type="T", tags=("a",))]
    ).events
    assert (own.timestamp, bare.timestamp) == ("1997-05-23T19:20:00.0000000+00:00", OWN)
    assert store.read(OF_A).events == (own, bare)


@pytest.mark.parametrize("tags", [("a",), ("a", "b")])
def test_the_answer_and_a_read_agree_on_the_time_of_an_event_without_one_beside_an_event_with_one(
    tags: tuple[str, ...],
) -> None:
    """Stamps run ahead of a clock that stands still, so they differ from the times of the events."""
    store = replace(memory_tagged_events(), now=lambda: NOON)
    events = [Event(type="T", tags=tags, timestamp=OWN), Event(type="T", tags=tags)]
    appended = [event for _ in range(3) for event in store.append(events).events]
    assert [event.timestamp for event in appended] == [OWN] * 6
    assert [event.timestamp for event in store.read(OF_A).events] == [OWN] * 6


def test_an_event_of_a_stream_with_tags_has_one_time_in_all_of_its_streams() -> None:
    streams = replace(memory_streams(memory_tables()), now=lambda: NOON)
    for _ in range(2):
        streams.append("Door-1", [Event(type="Opened", tags=("a",), timestamp=OWN)])
    assert [event.timestamp for event in streams.read("Door-1")] == [OWN] * 2
    assert [event.timestamp for event in streams.tagged.read(OF_A).events] == [OWN] * 2
