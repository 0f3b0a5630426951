"""Fields of tagged events: what is refused by name, what is stored in one form, and which streams an event is in."""

from __future__ import annotations

from typing import Any

import pytest

from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.testing.stores import memory_tagged_events

OWN = "00000000-0000-4000-8000-00000000000a"
OF_A = Query(items=(QueryItem(tags=frozenset({"a"})),))
OF_TYPE = Query(items=(QueryItem(types=frozenset({"Opened"})),))


@pytest.mark.parametrize("name", ["causation_id", "correlation_id"])
@pytest.mark.parametrize("text", ["x" * 1_025, "é" * 513])
def test_an_id_that_says_why_an_event_came_about_is_refused_by_its_name_where_it_is_none(
    name: str, text: str
) -> None:
    store = memory_tagged_events()
    with pytest.raises(InvalidInput) as refused:
        store.append([Event(type="Opened", tags=("a",)), Event(type="Opened", tags=("a",), **{name: text})])
    assert refused.value.field == f"events[1].{name}"
    assert store.count("a") == 0


@pytest.mark.parametrize("spelled", [OWN.upper(), OWN])
def test_an_event_is_found_and_repeated_by_its_id_however_its_digits_are_written(spelled: str) -> None:
    store = memory_tagged_events()
    (event,) = store.append([Event(type="Opened", tags=("a",), id=spelled)]).events
    assert event.id == OWN
    assert store.event(OWN) == event
    assert store.append([Event(type="Opened", tags=("a",), id=OWN)]).replayed
    assert store.append([Event(type="Opened", tags=("a",), id=OWN.upper())]).replayed
    assert store.count("a") == 1


@pytest.mark.parametrize(
    ("opened", "query"),
    [({"everything": True}, Query.all()), ({"types": ("Opened",)}, OF_TYPE)],
    ids=["everything", "types"],
)
def test_streams_of_tagged_events_write_to_the_heads_that_these_were_opened_for(
    opened: dict[str, Any], query: Query
) -> None:
    store = memory_tagged_events(**opened)
    before = store.read(query).position
    store.streams.append("Cart-1", [Event(type="Opened", tags=("a",))])
    assert [event.stream for event in store.read(query).events] == ["Cart-1"]
    assert [event.stream for event in store.read(query, after=before).events] == ["Cart-1"]
