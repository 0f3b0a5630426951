"""One reaction, events of all three layouts."""

from __future__ import annotations

from epochal import Delivery, Event, reaction
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id
from epochal.reactions.definition import Reaction
from epochal.testing.feeds import MemoryStore

Seen = list[tuple[str, int, str, bytes | object]]


def filled() -> MemoryStore:
    feed = MemoryStore(options={"aggregate_types": ("user-account",)})
    feed.tips.append("Order-1", [Event(type="Placed", data=b"{}"), Event(type="Paid", data=b"1")])
    feed.aggregates.append(
        aggregate_id("user-account", "7"),
        [AggregateEvent(type="Opened", data=b'{"n":1}')],
        snapshot=b'{"n":1}',
    )
    feed.dcb.append([Event(type="Subscribed", data=b"{}", tags=("course:a", "student:b"))])
    feed.dcb.append([Event(type="Noted", data=b"{}", tags=())])
    return feed


def recorder(seen: Seen, **options: object) -> Reaction:
    @reaction(name="recorder", **options)  # type: ignore[arg-type]
    def record(delivery: Delivery) -> None:
        seen.extend((event.stream, event.index, event.type, event.data) for event in delivery.events)

    return record


def test_events_of_every_layout_arrive_with_their_data() -> None:
    seen: Seen = []
    filled().react(recorder(seen))
    assert sorted(seen) == [  # type: ignore[type-var]
        ("", 0, "Noted", b"{}"),
        ("Order-1", 0, "Placed", b"{}"),
        ("Order-1", 1, "Paid", b"1"),
        ("course:a", 0, "Subscribed", b"{}"),
        ("student:b", 0, "Subscribed", b"{}"),
        ("user-account-7", 0, "Opened", b'{"n":1}'),
    ]


def test_an_event_with_several_tags_can_be_had_once() -> None:
    seen: Seen = []
    filled().react(recorder(seen, once=True, sources=["dcb"]))
    assert sorted(stream for stream, *_ in seen) == ["", "course:a"]


def test_categories_are_of_streams_types_of_aggregates_and_groups_of_tags() -> None:
    seen: Seen = []
    filled().react(recorder(seen, categories=["user-account", "student", "Order"]))
    assert sorted({stream for stream, *_ in seen}) == ["Order-1", "student:b", "user-account-7"]


def test_a_parked_stream_of_any_layout_is_replayed_to_its_end() -> None:
    feed, seen, broken = filled(), [], True

    @reaction(name="strict", attempts=1)
    def strict(delivery: Delivery) -> None:
        if broken:
            raise ValueError("no")
        seen.extend((delivery.stream, event.index) for event in delivery.events)

    feed.react(strict)
    parking = feed.parking(strict)
    waiting = [each for tail in feed.feed.partitions() for each in parking.streams(tail.partition)]
    assert {each.stream for each in waiting} >= {"Order-1", "user-account-7", "course:a"}
    feed.aggregates.append(
        aggregate_id("user-account", "7"),
        [AggregateEvent(type="Closed", data=b"{}")],
        expected=feed.aggregates.lock(aggregate_id("user-account", "7")),
    )
    feed.dcb.append([Event(type="Left", data=b"{}", tags=("course:a",))], fail_if=None)
    broken = False
    for each in waiting:
        assert parking.replay(each.partition, each.stream, seconds=60).unparked
    feed.react(strict)
    assert sorted(seen) == sorted(set(seen))
    assert {("user-account-7", 1), ("course:a", 1), ("Order-1", 1)} <= set(seen)
