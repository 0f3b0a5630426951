"""The verification finds whatever may be wrong with a feed, and nothing where nothing is."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from epochal.model.events import Event
from examples.flights.happenings import TYPES
from examples.flights.ledger import Ledger
from examples.flights.stores import Item
from examples.flights.verification import Verification

STREAMS = ("Aircraft-A", "Aircraft-B", "Unassigned-UA")

events = st.builds(Event, type=st.sampled_from(TYPES), data=st.binary(max_size=4))
histories = st.dictionaries(st.sampled_from(STREAMS), st.lists(events, min_size=2, max_size=6), min_size=1)


@st.composite
def feeds(draw: st.DrawFn) -> tuple[Ledger, list[Item]]:
    """A ledger, and a feed that is right: each stream in its order, streams interleaved anyhow."""
    history = draw(histories)
    ledger = Ledger()
    for stream, sent in history.items():
        ledger.add(stream, sent)
    order = draw(st.permutations([stream for stream, sent in history.items() for _ in sent]))
    reached = dict.fromkeys(history, 0)
    items: list[Item] = []
    for stream in order:
        index = reached[stream]
        event = history[stream][index]
        assert isinstance(event.data, bytes)
        items.append(Item(stream=stream, index=index, type=event.type, body=event.data))
        reached[stream] += 1
    return ledger, items


def problems(ledger: Ledger, items: list[Item], *, bodies: bool = True) -> list[str]:
    verification = Verification(ledger=ledger, bodies=bodies)
    found = [
        difference
        for item in items
        for difference in verification.check(item.stream, item.index, item.type, item.body)
    ]
    return [str(difference) for difference in [*found, *verification.finish()]]


@given(feeds())
def test_a_right_feed_has_no_differences_however_streams_interleave(feed: tuple[Ledger, list[Item]]) -> None:
    assert problems(*feed) == []


@given(feeds(), st.data())
def test_an_event_left_out_is_found_by_its_index(
    feed: tuple[Ledger, list[Item]], data: st.DataObject
) -> None:
    ledger, items = feed
    missing = items.pop(data.draw(st.integers(0, len(items) - 1)))
    (found,) = problems(ledger, items)
    assert found.startswith(f"{missing.stream} #{missing.index}: is missing")


@given(feeds(), st.data())
def test_an_event_that_comes_twice_is_found(feed: tuple[Ledger, list[Item]], data: st.DataObject) -> None:
    ledger, items = feed
    first = data.draw(st.integers(0, len(items) - 1))
    items.insert(data.draw(st.integers(first + 1, len(items))), items[first])
    (found,) = problems(ledger, items)
    assert found.startswith(f"{items[first].stream} #{items[first].index}: comes again, or late")


@given(feeds(), st.data())
def test_two_events_of_a_stream_in_the_wrong_order_are_found(
    feed: tuple[Ledger, list[Item]], data: st.DataObject
) -> None:
    ledger, items = feed
    stream = data.draw(st.sampled_from(sorted(ledger.streams)))
    mine = [position for position, item in enumerate(items) if item.stream == stream]
    earlier = data.draw(st.integers(0, len(mine) - 2))
    one, other = mine[earlier], mine[earlier + 1]
    items[one], items[other] = items[other], items[one]
    assert problems(ledger, items) == [
        f"{stream} #{earlier}: is missing: #{earlier + 1} came instead",
        f"{stream} #{earlier}: comes again, or late: the feed was at #{earlier + 2}",
    ]


@given(feeds(), st.data())
def test_another_body_another_type_and_no_body_are_found(
    feed: tuple[Ledger, list[Item]], data: st.DataObject
) -> None:
    ledger, items = feed
    position = data.draw(st.integers(0, len(items) - 1))
    right = items[position]
    place = f"{right.stream} #{right.index}"
    for wrong, problem in (
        (replace(right, body=(right.body or b"") + b"!"), "has another body than was sent"),
        (replace(right, body=None), "comes without its body"),
        (replace(right, type="Other"), f"is a Other, sent was a {right.type}"),
    ):
        items[position] = wrong
        assert problems(ledger, items) == [f"{place}: {problem}"]


def test_events_that_nobody_sent_are_found_in_known_streams_and_unknown_ones() -> None:
    ledger = Ledger()
    ledger.add("Aircraft-A", [Event(type="FlightScheduled", data=b"{}")])
    right = Item(stream="Aircraft-A", index=0, type="FlightScheduled", body=b"{}")
    assert problems(ledger, [right, replace(right, index=1)]) == ["Aircraft-A #1: was never sent"]
    assert problems(ledger, [right, replace(right, stream="Aircraft-B")]) == ["Aircraft-B #0: was never sent"]


def test_an_empty_feed_misses_everything() -> None:
    ledger = Ledger()
    ledger.add("Aircraft-A", [Event(type="FlightScheduled"), Event(type="FlightDeparted")])
    assert problems(ledger, []) == [
        "Aircraft-A #0: is missing: the feed ended before it",
        "Aircraft-A #1: is missing: the feed ended before it",
    ]


def test_without_bodies_only_the_index_is_compared() -> None:
    ledger = Ledger()
    ledger.add("Aircraft-A", [Event(type="FlightScheduled", data=b"{}")])
    bare = Item(stream="Aircraft-A", index=0, type="FlightScheduled", body=None)
    assert problems(ledger, [bare], bodies=False) == []
