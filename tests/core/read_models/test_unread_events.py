"""A caller may wait for the version of its append, whatever types the last events have that the model does not read."""

from __future__ import annotations

from datetime import timedelta
from typing import ClassVar

import pytest

from epochal import Delivery, Event, FeedEvent, cancel, later, reaction
from epochal.errors import InvalidInput
from epochal.layout.tables import READ_MODELS, store_tables
from epochal.plan.ops import Op, Reply
from epochal.reactions import Reaction
from epochal.read_models import Documents, ReadModel
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables

LENT = Event(type="Lent")
TIMER = later("reminder", [Event(type="Reminded")], at=timedelta(days=1))


class RecordedTables(MemoryTables):
    """Tables in memory that note which of them are asked."""

    tables: ClassVar[list[str]] = []

    def execute(self, op: Op) -> Reply:
        self.tables.append(getattr(op, "table", ""))
        return super().execute(op)


def show(documents: Documents, event: FeedEvent) -> None:
    documents.put(event.stream, {"last": event.type})


def keeping(model: ReadModel[object], types: list[str] | None) -> Reaction:
    @reaction(name="loans-1", categories=["Loan"], types=types)
    def keep(delivery: Delivery) -> None:
        model.apply(delivery, show)

    return keep


@pytest.mark.parametrize(
    ("types", "appended"),
    [
        (None, [LENT, TIMER]),
        (None, [LENT, TIMER, cancel("reminder")]),
        (["Lent"], [LENT, Event(type="Noted"), Event(type="Noted")]),
        (["Lent"], [Event(type="Noted"), LENT, TIMER]),
        (None, [Event(type="Lent", tags=("member:ann",)), TIMER]),
        (["Lent"], [Event(type="Lent", tags=("member:ann", "copy:1")), Event(type="Noted"), TIMER]),
    ],
)
def test_the_version_of_an_append_is_reached_that_ends_with_types_the_model_does_not_read(
    types: list[str] | None, appended: list[Event]
) -> None:
    feed = MemoryStore()
    model = feed.read_models.open("loans", 1)
    version = feed.streams.append("Loan-1", appended).version
    feed.react(keeping(model, types))
    assert model.get("Loan-1") == {"last": "Lent"}
    assert model.place("Loan-1") == version
    assert model.wait_for("Loan-1", version, seconds=0)


def test_an_append_of_unread_types_alone_is_passed_with_skip() -> None:
    feed = MemoryStore()
    model = feed.read_models.open("loans", 1)

    @reaction(name="loans-1", categories=["Loan"], skipped=model.skip)
    def keep(delivery: Delivery) -> None:
        model.apply(delivery, show)

    for events in ([TIMER], [LENT], [TIMER], [cancel("reminder")], [LENT, TIMER]):
        version = feed.streams.append("Loan-1", events).version
        assert not model.wait_for("Loan-1", version, seconds=0)
        feed.react(keep)
        assert model.wait_for("Loan-1", version, seconds=0)
    feed.streams.append("Loan-2", [LENT])
    version = feed.streams.append("Loan-2", [TIMER]).version
    feed.react(keep)
    assert model.place("Loan-2") == version


def test_what_is_skipped_is_not_read_and_takes_a_write_a_stream() -> None:
    tables = RecordedTables({spec.kind: spec for spec in (*store_tables(), READ_MODELS)})
    feed, deliveries = MemoryStore(tables=tables), list[Delivery]()

    @reaction(name="loans-1", types=["Lent"], categories=["Loan"], skipped=deliveries.append)
    def keep(delivery: Delivery) -> None:
        deliveries.append(delivery)

    feed.react(keep)
    deliveries.clear()
    for _ in range(5):
        feed.streams.append("Loan-1", [Event(type="Noted")])
        feed.streams.append("Cart-1", [Event(type="Noted")])
    feed.index()
    tables.tables.clear()
    feed.react(keep)
    assert [(each.stream, each.events, each.next) for each in deliveries] == [("Loan-1", (), 5)]
    assert "index" in tables.tables
    assert "streams" not in tables.tables


@pytest.mark.parametrize("in_order", [False, True])
def test_what_follows_skipped_events_covers_them(in_order: bool) -> None:
    feed, deliveries = MemoryStore(), list[tuple[str, list[int], int | None]]()

    def note(delivery: Delivery) -> None:
        deliveries.append((delivery.stream, [event.index for event in delivery.events], delivery.next))

    keep = reaction(name="loans-1", types=["Lent"], in_order=in_order, skipped=note)(note)
    noted = Event(type="Noted")
    for events in ([noted], [LENT, noted], [noted], [LENT], [noted], [noted]):
        feed.streams.append("Loan-1", events)
    feed.react(keep)
    assert deliveries == [("Loan-1", [1, 4], 7)]


def test_a_skip_that_keeps_failing_parks_its_stream_and_is_replayed() -> None:
    feed, fails = MemoryStore(), True
    model = feed.read_models.open("loans", 1)

    def skip(delivery: Delivery) -> None:
        if fails:
            raise RuntimeError("no")
        model.skip(delivery)

    @reaction(name="loans-1", categories=["Loan"], skipped=skip, attempts=2)
    def keep(delivery: Delivery) -> None:
        model.apply(delivery, show)

    feed.streams.append("Loan-1", [LENT])
    feed.react(keep)
    version = feed.streams.append("Loan-1", [TIMER]).version
    parked_streams = [failure for ran in feed.react(keep) for failure in ran.parked]
    assert [(failure.stream, failure.index) for failure in parked_streams] == [("Loan-1", 1)]
    fails = False
    (parked,) = feed.parking(keep).streams(ran_partition(feed))
    assert feed.parking(keep).replay(parked.partition, "Loan-1", seconds=10).unparked
    assert model.wait_for("Loan-1", version, seconds=0)


def ran_partition(feed: MemoryStore) -> int:
    (partition,) = (each.partition for each in feed.feed.partitions() if each.tail)
    return partition


def test_events_that_are_folded_are_passed_when_they_come_again_with_more() -> None:
    model = MemoryStore().read_models.open("loans", 1)
    events = (FeedEvent(stream="Loan-1", index=0, type="Lent"),)
    model.apply(Delivery(group="g", partition=0, stream="Loan-1", events=events), show)
    again = Delivery(group="g", partition=0, stream="Loan-1", events=events, next=3)
    assert (model.apply(again, show), model.place("Loan-1")) == (0, 3)
    assert not model.skip(Delivery(group="g", partition=0, stream="Loan-1", events=(), next=2))
    assert model.place("Loan-1") == 3


def test_a_model_with_other_keys_than_its_generation_can_skip_nothing() -> None:
    """Its mark would be on the stream's progress, and keep out the model with the right keys."""
    models = MemoryStore().read_models
    model = models.open("loans", 1, keys={"last": lambda document: document["last"]})
    other = models.open("loans", 1, keys={})

    def delivery(stream: str, *events: FeedEvent, following: int) -> Delivery:
        return Delivery(group="loans-1", partition=0, stream=stream, events=events, next=following)

    model.apply(delivery("Loan-1", FeedEvent(stream="Loan-1", index=0, type="Lent"), following=1), show)
    with pytest.raises(InvalidInput, match="was built with others"):
        other.skip(delivery("Loan-2", following=1))

    event = FeedEvent(stream="Loan-2", index=1, type="Lent")
    assert model.apply(delivery("Loan-2", event, following=2), show) == 1
    assert model.place("Loan-2") == 2


def test_a_generation_with_keys_begins_with_what_it_skips() -> None:
    feed = MemoryStore()
    model = feed.read_models.open("loans", 1, keys={})

    @reaction(name="loans-1", categories=["Loan"], skipped=model.skip)
    def keep(delivery: Delivery) -> None:
        model.apply(delivery, show)

    feed.streams.append("Loan-1", [TIMER])
    feed.react(keep)
    assert model.list().items == ()
