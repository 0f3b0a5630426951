"""What docs/guide/backup.md says of restored tables that are not of one moment: consumers, and what is torn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from epochal import Delivery, Event, reaction
from epochal.care.mender import Mender
from epochal.care.rebuild import Rebuilder
from epochal.care.repair import Repairer
from epochal.care.verify import Verifier
from epochal.contrib.equinox.port import tips_source
from epochal.contrib.event_store_adapter import AggregateEvent, aggregate_id
from epochal.contrib.event_store_adapter.port import journal_source
from epochal.contrib.sekiban.port import dcb_source
from epochal.errors import CorruptData
from epochal.layout.source import Source
from epochal.layout.tables import INDEX, READ_MODELS, store_tables
from epochal.plan.ops import Put
from epochal.plan.values import Item
from epochal.reactions.definition import Reaction, Start
from epochal.testing.feeds import MemoryStore
from epochal.testing.memory import MemoryTables

ORDER = aggregate_id("order", "1")
Moment = Mapping[str, Sequence[Item]]


def append(feed: MemoryStore, *streams: str) -> None:
    for stream in streams:
        feed.tips.append(stream, [Event(type="Added")])


def happen(feed: MemoryStore) -> None:
    """Something in every layout."""
    append(feed, "Cart-1")
    feed.aggregates.append(ORDER, [AggregateEvent(type="Paid", data=b"{}")], snapshot=b"{}")
    feed.dcb.append([Event(type="Booked", data=b"1", tags=("room:1",))])


def moment(feed: MemoryStore) -> Moment:
    return {spec.kind: list(feed.tables.items(spec.kind)) for spec in store_tables()}


def restored(stores: Moment, **others: Moment) -> MemoryStore:
    """Tables as they were at one moment, those that are named as at another; without an index unless named."""
    tables = MemoryTables({spec.kind: spec for spec in (*store_tables(), READ_MODELS)})
    for spec in store_tables():
        if spec is not INDEX or "index" in others:
            for item in others.get(spec.kind, stores)[spec.kind]:
                tables.execute(Put(table=spec.kind, item=item))
    return MemoryStore(tables=tables)


def sources(feed: MemoryStore) -> tuple[Source, ...]:
    return tips_source("tips"), journal_source(feed.aggregates.site), dcb_source(feed.dcb.site)


def mender(feed: MemoryStore) -> Mender:
    return Mender(driver=feed.tips.driver, index_table=INDEX.kind)


def verifier(feed: MemoryStore) -> Verifier:
    return Verifier(mender=mender(feed), sources=sources(feed), settle=0)


def rebuild(feed: MemoryStore) -> list[str]:
    """Streams that could not be indexed to their end."""
    rebuilder = Rebuilder(mender=mender(feed))
    return [trouble for source in sources(feed) for trouble in rebuilder.from_tables(source).troubles]


def telling(told: list[str], start: Start = "beginning") -> Reaction:
    @reaction(name="board", categories=["Cart"], start=start)
    def board(delivery: Delivery) -> None:
        told.extend(delivery.key(event) for event in delivery.events)

    return board


def keys(*events: str) -> list[str]:
    return [f"board/0/{event}" for event in events]


def test_a_group_goes_on_in_an_index_that_is_older_than_the_stores() -> None:
    old = MemoryStore()
    append(old, "Cart-1", "Cart-2")
    old.react(telling([]))
    earlier = moment(old)
    append(old, "Cart-1", "Cart-3")
    old.react(telling([]))
    feed = restored(moment(old), index=earlier)

    assert all(each.mended for each in Repairer(verifier(feed)).repair())
    assert list(verifier(feed).findings()) == []
    told: list[str] = []
    feed.react(telling(told))

    assert sorted(told) == keys("Cart-1@1", "Cart-3@0")


def test_an_index_that_is_newer_than_the_stores_is_refused() -> None:
    old = MemoryStore()
    append(old, "Cart-1")
    stores = moment(old)
    append(old, "Cart-1")
    old.index()

    assert list(verifier(restored(stores, index=moment(old))).findings())


@pytest.mark.filterwarnings("ignore:no stream of the category 'Cart' has been seen since the group began")
def test_with_a_rebuilt_index_a_group_begins_anew_where_its_reaction_says() -> None:
    old = MemoryStore()
    append(old, "Cart-1", "Cart-1")
    old.react(telling([]))
    for start, expected in (("beginning", keys("Cart-1@0", "Cart-1@1")), ("tail", [])):
        feed = restored(moment(old))
        assert rebuild(feed) == []
        told: list[str] = []
        feed.react(telling(told, start))  # type: ignore[arg-type]  # both are words that it knows
        assert told == expected


def test_what_follows_has_the_keys_of_what_was_lost() -> None:
    old, before, after = MemoryStore(), list[str](), list[str]()
    append(old, "Cart-1")
    stores = moment(old)
    append(old, "Cart-1")
    old.react(telling(before))
    feed = restored(stores)
    append(feed, "Cart-1")
    feed.react(telling(after))
    assert before == after == keys("Cart-1@0", "Cart-1@1")


@pytest.mark.parametrize(("appends", "named"), [(1, False), (2, True)])
def test_a_head_that_is_newer_than_the_journal_cannot_be_read_and_is_named_from_two_appends_on(
    appends: int, named: bool
) -> None:
    """Of the latest append the head itself knows what the index needs."""
    old = MemoryStore()
    happen(old)
    stores = moment(old)
    for _ in range(appends):
        happen(old)
    feed = restored(stores, snapshot=moment(old))
    assert bool(rebuild(feed)) is named
    with pytest.raises(CorruptData, match="missing from the journal"):
        list(feed.aggregates.events_after(ORDER))


def test_a_journal_that_is_newer_than_its_head_is_not_named_and_takes_no_append() -> None:
    old = MemoryStore()
    happen(old)
    stores = moment(old)
    happen(old)
    feed = restored(stores, journal=moment(old))
    assert rebuild(feed) == []
    with pytest.raises(CorruptData, match="event 2 is in the journal, but its head is at 1"):
        feed.aggregates.append(ORDER, [AggregateEvent(type="Paid", data=b"{}")])


@pytest.mark.parametrize("newer", ["events", "tags"])
def test_tagged_events_of_two_moments_are_not_named(newer: str) -> None:
    old = MemoryStore()
    happen(old)
    stores = moment(old)
    happen(old)
    assert rebuild(restored(stores, **{newer: moment(old)})) == []
