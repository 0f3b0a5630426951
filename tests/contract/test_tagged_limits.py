"""What is too large for an append of tagged events is refused with its size, and nothing of it is written."""

from __future__ import annotations

import pytest

from epochal.contrib.sekiban.listings import TagListings
from epochal.contrib.sekiban.store import DcbEvents
from epochal.errors import TooLarge
from epochal.model.events import Event
from epochal.model.outcomes import Appended
from epochal.model.tags import Query
from tests.contract.tagged import OpensDcb, asks, event


@pytest.fixture
def layout() -> str:
    """Sekiban's tables alone: how many items an append takes is theirs."""
    return "dcb"


@pytest.mark.parametrize("type_heads", [False, True], ids=["tags only", "with type heads"])
@pytest.mark.parametrize("tags", [0, 5, *(pytest.param(each, marks=pytest.mark.proof) for each in (1, 2))])
def test_an_append_of_a_hundred_items_is_written_and_one_of_more_is_refused_with_their_number(
    opened: OpensDcb, tags: int, type_heads: bool
) -> None:
    store = opened(type_heads=type_heads)
    sizes = {count: items_of(count, tags, type_heads=type_heads) for count in range(1, 60)}
    most = max(count for count, items in sizes.items() if items <= 100)

    def batch(count: int) -> list[Event]:
        return [event(f"T{n}", *(f"t{k}:{n}" for k in range(tags))) for n in range(count)]

    assert isinstance(store.append(batch(most)), Appended)
    with pytest.raises(TooLarge, match="items, at most 100 allowed") as refused:
        store.append(batch(most + 1))

    assert refused.value.size == sizes[most + 1]
    assert TagListings(store=store).count() == most


def items_of(events: int, tags: int, *, type_heads: bool) -> int:
    """Items of an append of events with types and tags of their own: themselves, and an entry and a head for each tag.

    Events without tags share a head, and where type heads are on, all events share one more.
    """
    entries, heads = events * max(tags, 1), events * tags or 1
    return events + entries + heads + (events * 2 + events + 1 if type_heads else 0)


@pytest.mark.parametrize(
    ("type_heads", "most"), [(False, 49), (True, 47)], ids=["tags only", "with type heads"]
)
def test_an_event_may_have_as_many_tags_as_a_transaction_holds(
    opened: OpensDcb, type_heads: bool, most: int
) -> None:
    store = opened(type_heads=type_heads)
    tags = [f"t:{number:03}" for number in range(100)]

    assert isinstance(store.append([event("A", *tags[:most])]), Appended)
    for count in (most + 1, 100):
        with pytest.raises(TooLarge, match="items, at most 100 allowed") as refused:
            store.append([event("A", *tags[:count])])
        assert refused.value.size == items_of(1, count, type_heads=type_heads)
    assert [found.events for found in TagListings(store=store).tags("t")] == [1] * most


def test_fences_count_among_the_hundred_items(store: DcbEvents) -> None:
    """98 fences beside an event, its entry and its head are one too many."""
    query = Query(items=tuple(asks("", f"fence:{number:02}") for number in range(98)))
    with pytest.raises(TooLarge, match="101 items"):
        store.append([event("A", "t:1")], fail_if=query)
    fewer = Query(items=query.items[:97])
    assert isinstance(store.append([event("A", "t:1")], fail_if=fewer), Appended)


def test_an_append_of_more_than_four_megabytes_is_refused_with_its_size_and_just_below_is_written(
    store: DcbEvents,
) -> None:
    def batch(count: int) -> list[Event]:
        return [event("Large", "t:1", data=f'"{"x" * 380_000}"') for _ in range(count)]

    with pytest.raises(TooLarge, match="bytes, at most 4,194,304 allowed") as refused:
        store.append(batch(12))
    assert 12 * 380_000 < refused.value.size < 12 * 380_000 + 20_000
    assert TagListings(store=store).count() == 0
    assert isinstance(store.append(batch(11)), Appended)
    assert TagListings(store=store).count() == 11


def test_an_event_that_fits_no_item_is_refused_with_its_size_and_nothing_is_written(
    store: DcbEvents,
) -> None:
    with pytest.raises(TooLarge, match="at most 409,600 allowed"):
        store.append([event("A", "t:1"), event("Large", "t:1", data=f'"{"x" * 409_600}"')])
    assert TagListings(store=store).count() == 0
