"""Reactions narrowed to streams, a prefix, a query of tags, a conversation, metadata; and what that saves."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from typing import Any, NoReturn

import pytest

from epochal import Delivery, Event, Query, QueryItem, Selector, reaction
from epochal.errors import CorruptData, InvalidInput, MissingBody
from epochal.feed.events import FeedEvent
from epochal.layout.changes import Span
from epochal.model.bodies import Claim
from epochal.plan.ops import Op, Reply
from epochal.testing.feeds import MemoryStore
from epochal.testing.stores import MemoryBodies
from tests.core.feed.feeds import streams_of
from tests.core.reactions.world import World


def given(feed: MemoryStore, only: Selector, **more: Any) -> list[tuple[str, int]]:
    """What a reaction is given that is narrowed so."""
    handled: list[tuple[str, int]] = []

    @reaction(**{"name": "narrow", "only": only, **more})
    def narrow(delivery: Delivery) -> None:
        handled.extend((delivery.stream, event.index) for event in delivery.events)

    feed.react(narrow)
    return sorted(handled)


@pytest.fixture
def feed() -> MemoryStore:
    feed = MemoryStore()
    meta = b'{"tenant": "acme", "deep": {"n": 1}}'
    feed.streams.append("Order-1", [Event.json("Placed", {})])
    feed.streams.append("Order-12", [Event.json("Placed", {}, meta=meta), Event.json("Paid", {})])
    feed.streams.append(
        "Cart-1", [Event.json("Placed", {}, correlation_id="talk", meta=b'{"tenant": "other"}')]
    )
    return feed


def test_one_stream_alone_is_delivered(feed: MemoryStore) -> None:
    assert given(feed, Selector(streams=["Order-1"])) == [("Order-1", 0)]


def test_a_prefix_of_names_narrows(feed: MemoryStore) -> None:
    assert given(feed, Selector(prefix="Order-1")) == [("Order-1", 0), ("Order-12", 0), ("Order-12", 1)]
    assert given(feed, Selector(prefix="Order-12"), types=["Paid"]) == []


def test_types_and_a_prefix_hold_together(feed: MemoryStore) -> None:
    assert given(feed, Selector(prefix="Order-12"), types=["Paid"]) == [("Order-12", 1)]


@pytest.mark.parametrize(
    ("metadata", "found"),
    [
        ({"tenant": "acme"}, [("Order-12", 0)]),
        ({"tenant": "acme", "deep": {"n": 1}}, [("Order-12", 0)]),
        ({"tenant": "acme", "deep": {"n": 2}}, []),
        ({"absent": None}, []),
        ({"deep": {"n": True}}, []),
        ({"deep": {"n": 1.0}}, [("Order-12", 0)]),
    ],
)
def test_metadata_narrow(feed: MemoryStore, metadata: dict[str, Any], found: list[tuple[str, int]]) -> None:
    assert given(feed, Selector(metadata=metadata)) == found


@pytest.mark.parametrize(
    ("asked", "had"), [(1, True), (0, False), ({"n": 1}, {"n": True}), ([1], [True]), ([1, 2], [1]), ({}, [])]
)
def test_a_number_is_not_a_boolean_in_metadata(feed: MemoryStore, asked: object, had: object) -> None:
    feed.streams.append("Flag-1", [Event.json("Set", {}, meta=json.dumps({"flag": had}).encode())])
    assert given(feed, Selector(metadata={"flag": asked})) == []
    assert given(feed, Selector(metadata={"flag": had}), name="other") == [("Flag-1", 0)]


def test_a_conversation_is_delivered_with_the_event_that_began_it(feed: MemoryStore) -> None:
    assert given(feed, Selector(correlation_id="talk")) == [("Cart-1", 0)]


def test_the_first_event_of_a_conversation_belongs_to_it(feed: MemoryStore) -> None:
    feed.streams.append("Parcel-1", [Event.json("Sent", {}, correlation_id="Order-1@0")])
    assert given(feed, Selector(correlation_id="Order-1@0")) == [("Order-1", 0), ("Parcel-1", 0)]


def test_an_event_that_a_query_asks_for_is_delivered_once_whatever_its_tags(feed: MemoryStore) -> None:
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


def renewed(feed: MemoryStore) -> MemoryStore:
    """The same, without the group."""
    feed.groups.delete("narrow")
    return feed


def test_types_without_tags_come_through_their_first_stream_alone(feed: MemoryStore) -> None:
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
        reads: list[str] = []

        def execute(op: Op, world: World = world, reads: list[str] = reads) -> Reply:
            if getattr(op, "table", "") == "streams":
                reads.extend(streams_of([op]))
            return world.feeds.tables.execute(op)

        real = world.reactor(only=only)
        reader = real.member.reader.on(replace(world.feeds.driver, execute=execute))
        replace(real, member=replace(real.member, reader=reader)).run(0, seconds=60)
        figures[name] = len(reads)
    assert figures == {"streams": 1, "prefix": 1, "query": 1, "metadata": 20}


def query_of(*items: tuple[set[str], set[str]]) -> Query:
    """A query of tags and types."""
    return Query(
        items=tuple(QueryItem(tags=frozenset(tags), types=frozenset(types)) for tags, types in items)
    )


def test_an_event_of_which_little_is_known_is_taken_unless_that_says_no() -> None:
    fault = CorruptData("no")
    pair = query_of(({"c:1", "s:1"}, set()))
    hidden = [
        FeedEvent(stream="A-1", index=0, type="", gone="pruned"),
        FeedEvent(stream="A-1", index=0, type="", fault=fault),
        FeedEvent(stream="A-1", index=0, type="Scanned", fault=fault),
    ]
    for event in hidden:
        for only in (Selector(metadata={"a": 1}), Selector(correlation_id="x"), Selector(streams=["A-1"])):
            assert only.takes_event(event)
        assert Selector(query=query_of((set(), {"Scanned"}))).takes_event(event)
        assert Selector(query=pair).takes_event(replace(event, stream="$tag-c:1"))
        assert not Selector(query=pair).takes_event(replace(event, stream="$tag-s:1"))
    other = query_of(({"c:1"}, {"Paid"}))
    assert [Selector(query=other).takes_event(replace(each, stream="c:1")) for each in hidden] == [
        True,
        True,
        False,
    ]


def test_an_event_that_lacks_a_body_alone_is_judged_by_the_rest() -> None:
    lost = FeedEvent(
        stream="$tag-c:1", index=0, type="Scanned", tags=("c:1",), correlation_id="x", fault=CorruptData("no")
    )
    assert Selector(correlation_id="x").takes_event(lost)
    assert not Selector(correlation_id="y").takes_event(lost)
    assert Selector(query=query_of(({"c:1"}, set()))).takes_event(lost)
    assert not Selector(query=query_of(({"c:1", "s:1"}, set()))).takes_event(lost)
    assert Selector(metadata={"a": 1}).takes_event(lost)


@pytest.mark.parametrize(
    "only",
    [
        Selector(correlation_id="talk"),
        Selector(metadata={"a": 1}),
        Selector(query=query_of((set(), {"Scanned"}))),
    ],
)
def test_an_event_whose_body_is_missing_parks_its_stream_whatever_narrows_the_reaction(
    monkeypatch: pytest.MonkeyPatch, only: Selector
) -> None:
    def get(_: MemoryBodies, claim: Claim) -> NoReturn:
        raise MissingBody(claim.key)

    feed = MemoryStore()
    feed.streams.append("Order-1", [Event(type="Scanned", data=os.urandom(600_000), correlation_id="talk")])
    monkeypatch.setattr(MemoryBodies, "get", get)

    @reaction(name="narrow", only=only)
    def narrow(_: Delivery) -> None:
        """Nothing."""

    parked = [failure.stream for ran in feed.react(narrow) for failure in ran.parked]
    assert parked == ["Order-1"]


@pytest.mark.parametrize("only", [None, Selector(correlation_id="talk"), Selector(metadata={"a": 1})])
def test_what_is_pruned_is_delivered_as_such_where_a_selector_cannot_judge_it(only: Selector | None) -> None:
    feed = MemoryStore()
    feed.streams.append("A-1", [Event(type="x", meta=b'{"a":1}', correlation_id="talk")] * 3)
    feed.index()
    while not feed.streams.prune("A-1", 2).done:
        pass
    gone: list[str | None] = []

    @reaction(name="narrow", only=only)
    def narrow(delivery: Delivery) -> None:
        gone.extend(event.gone for event in delivery.events)

    feed.react(narrow)
    assert gone == ["pruned", "pruned", None]


@pytest.mark.parametrize("once", [False, True])
def test_once_takes_nothing_from_a_query_which_has_an_event_once(once: bool) -> None:
    feed = MemoryStore()
    feed.streams.append("Order-2", [Event.json("Placed", {}, tags=("a:1", "z:1"))])
    only = Selector(query=query_of(({"z:1"}, set())))
    assert given(feed, only, once=once) == [("$tag-z:1", 0)]


def test_an_event_of_a_stream_that_is_named_like_a_tag_of_its_own_comes_once() -> None:
    feed = MemoryStore()
    feed.streams.append("Order-1", [Event.json("Placed", {}, tags=("Order-1",))])
    feed.streams.append("Order-2", [Event.json("Placed", {}, tags=("Order-1", "z:1"))])
    only = Selector(query=query_of(({"Order-1"}, set())))
    assert given(feed, only) == [("$tag-Order-1", 0), ("$tag-Order-1", 1)]


def test_one_name_is_no_list_of_names() -> None:
    with pytest.raises(InvalidInput, match="streams"):
        Selector(streams="Order-1")


def test_a_dry_run_counts_what_a_selector_lets_through(feed: MemoryStore) -> None:
    @reaction(name="narrow", only=Selector(prefix="Order-12"))
    def narrow(_: Delivery) -> None:
        """Nothing."""

    feed.react(narrow)
    told = feed.groups.reset(narrow, "beginning", dry_run=True)
    assert sum(each.again for each in told) == 2


def test_a_selector_is_a_readers_too(feed: MemoryStore) -> None:
    feed.index()
    page = feed.feed.page(30_000, predicate=Selector(prefix="Cart-").takes)
    assert [item.stream for item in page.items] == ["Cart-1"]
    assert Selector(prefix="x").takes(Span("y-1", 0, ("T",))) is False
