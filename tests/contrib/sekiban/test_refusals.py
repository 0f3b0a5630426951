"""Whatever an append of tagged events refuses is refused by both stores with its reason, and nothing is written."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from epochal.contrib.sekiban import memory_dcb_events
from epochal.contrib.sekiban.items import TaggedEvent
from epochal.deciders.projections import projection
from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.tags import QueryItem
from epochal.store.listings import listings_of
from epochal.testing.stores import memory_tagged_events

CLAIM = Event(type="NameClaimed", data=b"{}", tags=("name:ann",))
ONCE = replace(CLAIM, id=str(UUID(int=7)))
REFUSED = {
    "events: must not be empty": [],
    "reserved": [replace(CLAIM, tags=("$all",))],
    "must not begin with :": [replace(CLAIM, tags=(":x",))],
    "at most 512 bytes": [replace(CLAIM, tags=("x" * 513,))],
    "must be a UUID": [replace(CLAIM, id="1")],
    "must not contain an id twice": [ONCE, ONCE],
    "exists, but with other contents": [replace(ONCE, data=b"[]")],
}


@pytest.mark.parametrize("opened", [memory_tagged_events, memory_dcb_events])
@pytest.mark.parametrize("reason", REFUSED)
def test_a_refused_append_says_why_and_writes_nothing(opened: Any, reason: str) -> None:
    store = opened()
    store.append([ONCE])
    with pytest.raises(InvalidInput, match=reason):
        store.append(REFUSED[reason])
    assert [event.id for event in listings_of(store).tagged("name:ann")] == [ONCE.id]


@pytest.mark.parametrize(
    ("opened", "events", "reason"),
    [
        (memory_tagged_events, [TaggedEvent(type="T", expires=2_000_000_000)], "only Sekiban's"),
        (
            memory_tagged_events,
            [replace(CLAIM, tags=tuple(f"t:{n}" for n in range(101)))],
            "101 items, at most 100",
        ),
        (memory_dcb_events, [replace(CLAIM, tags=(f"t:{n}",)) for n in range(34)], "102 items, at most 100"),
    ],
)
def test_each_store_refuses_what_its_tables_cannot_hold(
    opened: Any, events: list[Event], reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        opened().append(events)


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"tags": frozenset({"$all"})}, "tags: .* reserved"),
        ({"tags": frozenset({":x"})}, "tags: .* must not begin with :"),
        ({"tags": frozenset({""})}, "tags: .* must not be empty"),
        ({"tags": frozenset({"x" * 513})}, "tags: .* at most 512 bytes"),
        ({"types": frozenset({"x" * 513})}, "types: .* 1 to 512 bytes"),
        ({"types": frozenset({"a\nb"})}, "types: .* printable"),
    ],
)
def test_a_query_refuses_what_no_event_has(asked: dict[str, frozenset[str]], reason: str) -> None:
    with pytest.raises(InvalidInput, match=reason):
        QueryItem(**asked)


def test_an_item_of_a_query_takes_any_collection_of_names() -> None:
    item = QueryItem(types=["T"], tags=("a:1", "a:1"))
    assert item == QueryItem(types={"T": 1}, tags=frozenset({"a:1"}))
    assert (item.types, item.tags, len({item})) == ({"T"}, {"a:1"}, 1)
    with pytest.raises(InvalidInput, match="tags: must be a list of names, not one"):
        projection(tags="a:1", initial=0, on={})
