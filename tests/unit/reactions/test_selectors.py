"""Reactions narrowed to streams, a prefix, a query of tags, a conversation, metadata; and what that saves."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from epochal import Delivery, Event, Query, QueryItem, Selector, reaction
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.results import FeedEvent
from epochal.model.spans import Span
from epochal.plan.ops import Op, Reply
from epochal.testing.feeds import MemoryFeed
from tests.unit.reactions.world import World


def given(feed: MemoryFeed, only: Selector, **more: Any) -> list[tuple[str, int]]:
    """What a reaction is given that is narrowed so."""
    handled: list[tuple[str, int]] = []

    @reaction(name="narrow", only=only, **more)
    def narrow(delivery: Delivery) -> None:
        handled.extend((delivery.stream, event.index) for event in delivery.events)

    feed.react(narrow)
    return sorted(handled)


@pytest.fixture
def feed() -> MemoryFeed:
    feed = MemoryFeed()
    meta = b'{"tenant": "acme", "deep": {"n": 1}}'
    feed.streams.append("Order-1", [Event.json("Placed", {})])
    feed.streams.append("Order-12", [Event.json("Placed", {}, meta=meta), Event.json("Paid", {})])
    feed.streams.append(
        "Cart-1", [Event.json("Placed", {}, correlation_id="talk", meta=b'{"tenant": "other"}')]
    )
    return feed


def test_one_stream_alone_is_delivered(feed: MemoryFeed) -> None:
    assert given(feed, Selector(streams=["Order-1"])) == [("Order-1", 0)]


def test_a_prefix_of_names_narrows(feed: MemoryFeed) -> None:
    assert given(feed, Selector(prefix="Order-1")) == [("Order-1", 0), ("Order-12", 0), ("Order-12", 1)]
    assert given(feed, Selector(prefix="Order-12"), types=["Paid"]) == []


def test_types_and_a_prefix_hold_together(feed: MemoryFeed) -> None:
    assert given(feed, Selector(prefix="Order-12"), types=["Paid"]) == [("Order-12", 1)]


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"tenant": "acme"}, [("Order-12", 0)]),
        ({"tenant": "acme", "deep": {"n": 1}}, [("Order-12", 0)]),
        ({"tenant": "acme", "deep": {"n": 2}}, []),
        ({"absent": None}, []),
    ],
)
def test_metadata_narrow(feed: MemoryFeed, metadata: dict[str, Any], found: list[tuple[str, int]]) -> None:
    assert given(feed, Selector(metadata=metadata)) == found


def test_a_conversation_is_delivered_with_the_event_that_began_it(feed: MemoryFeed) -> None:
    assert given(feed, Selector(correlation_id="talk")) == [("Cart-1", 0)]


def test_the_first_event_of_a_conversation_belongs_to_it(feed: MemoryFeed) -> None:
    feed.streams.append("Parcel-1", [Event.json("Sent", {}, correlation_id="Order-1@0")])
    assert given(feed, Selector(correlation_id="Order-1@0")) == [("Order-1", 0), ("Parcel-1", 0)]


def test_an_event_that_a_query_asks_for_is_delivered_once_whatever_its_tags(feed: MemoryFeed) -> None:
    feed.tagged.append([Event.json("Enrolled", {}, tags=("course:1", "student:2", "term:a"))])
    feed.tagged.append([Event.json("Enrolled", {}, tags=("course:1", "student:3"))])
    feed.tagged.append([Event.json("Left", {}, tags=("course:1", "student:2"))])

    def item(*tags: str, types: tuple[str, ...] = ()) -> QueryItem:
        return QueryItem(tags=frozenset(tags), types=frozenset(types))

    pair = item("course:1", "student:2")
    assert given(feed, Selector(query=Query(items=(pair,)))) == [("$tag-course:1", 0), ("$tag-course:1", 2)]
    feed = renewed(feed)
    typed = item("student:2", types=("Enrolled",))
    both = Selector(query=Query(items=(typed, pair)))
    assert given(feed, both) == [("$tag-course:1", 2), ("$tag-student:2", 0)]


def renewed(feed: MemoryFeed) -> MemoryFeed:
    """The same, without the group."""
    feed.groups.delete("narrow")
    return feed


def test_types_without_tags_come_through_their_first_stream_alone(feed: MemoryFeed) -> None:
    feed.tagged.append([Event.json("Enrolled", {}, tags=("course:1", "student:2"))])
    query = Query(items=(QueryItem(types=frozenset({"Enrolled", "Paid"})),))
    assert given(feed, Selector(query=query)) == [("$tag-course:1", 0), ("Order-12", 1)]


def test_streams_that_the_index_shows_to_be_others_are_not_read() -> None:
    figures: dict[str, int] = {}
    selectors = {
        "streams": Selector(streams=["A-7"]),
        "prefix": Selector(prefix="A-7"),
        "query": Selector(query=Query(items=(QueryItem(tags=frozenset({"A-7"})),))),
        "metadata": Selector(metadata={"tenant": "acme"}),
    }
    for name, only in selectors.items():
        world = World()
        for number in range(20):
            world.feeds.append(f"A-{number}", "x")
        world.index()
        reads: list[Op] = []

        def execute(op: Op, world: World = world, reads: list[Op] = reads) -> Reply:
            if getattr(op, "table", "") == "tips":
                reads.append(op)
            return world.feeds.tables.execute(op)

        real = world.reactor(only=only)
        reader = real.member.reader.on(replace(world.feeds.driver, execute=execute))
        replace(real, member=replace(real.member, reader=reader)).run(0, seconds=60)
        figures[name] = len(reads)
    assert figures == {"streams": 1, "prefix": 1, "query": 1, "metadata": 20}


def test_an_event_that_cannot_be_read_is_not_passed_in_silence() -> None:
    broken = FeedEvent(stream="A-1", index=0, type="", fault=CorruptData("no"))
    pruned = FeedEvent(stream="A-1", index=0, type="", gone="pruned")
    for only in (Selector(metadata={"a": 1}), Selector(correlation_id="x")):
        assert only.takes_event(broken)
        assert not only.takes_event(pruned)
    assert Selector(streams=["A-1"]).takes_event(pruned)


def test_one_name_is_no_list_of_names() -> None:
    with pytest.raises(InvalidInput, match="streams"):
        Selector(streams="Order-1")


def test_a_dry_run_counts_what_a_selector_lets_through(feed: MemoryFeed) -> None:
    @reaction(name="narrow", only=Selector(prefix="Order-12"))
    def narrow(_: Delivery) -> None:
        """Nothing."""

    feed.react(narrow)
    told = feed.groups.reset(narrow, "beginning", dry_run=True)
    assert sum(each.again for each in told) == 2


def test_a_selector_is_a_readers_too(feed: MemoryFeed) -> None:
    feed.index()
    page = feed.reader.page(30_000, predicate=Selector(prefix="Cart-").takes)
    assert [item.stream for item in page.items] == ["Cart-1"]
    assert Selector(prefix="x").takes(Span("y-1", 0, ("T",))) is False
