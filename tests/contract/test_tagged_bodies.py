"""Bodies of tagged events: JSON text where other libraries look for it, any bytes beside it; metadata."""

from __future__ import annotations

import json

import pytest

from epochal.errors import InvalidInput
from epochal.model.dcb import Query, TaggedBody, TaggedEvent
from epochal.plan.ops import Get
from epochal.store.importing import Importer, imported
from epochal.store.tag_listings import TagListings
from epochal.store.tagged import TaggedEvents
from epochal.testing.stores import memory_tagged_events
from tests.contract.tagged import asks

BODIES: tuple[TaggedBody, ...] = (
    b"",
    b"\0\xff",
    b"{}",
    b"not JSON",
    '{"grade":1.50}',
    "null",
    '"\U0001f701"',
)
OF_T = Query(items=(asks("", "t:1"),))


@pytest.mark.parametrize("data", BODIES, ids=repr)
@pytest.mark.parametrize("meta", [b"", b"\0", '{"by":"ops"}'], ids=repr)
def test_bodies_come_back_as_what_they_were(store: TaggedEvents, data: TaggedBody, meta: TaggedBody) -> None:
    (made,) = store.append([TaggedEvent(type="A", data=data, meta=meta, tags=("t:1",))]).events

    found = store.event(made.id)
    assert found == made
    assert (made.data, made.meta) == (data, meta)
    assert store.read(OF_T).events == (made,)
    assert list(TagListings(store=store).all_events()) == [made]


@pytest.mark.parametrize("data", BODIES, ids=repr)
def test_readers_of_the_original_library_find_json_in_the_payload_of_every_event(
    store: TaggedEvents, data: TaggedBody
) -> None:
    (made,) = store.append([TaggedEvent(type="A", data=data)]).events
    item = store.driver.ask(Get(table=store.site.events, key=store.site.keys.event(made.id))).item

    assert item is not None
    payload = item["payload"]["S"]
    assert payload == (data if isinstance(data, str) else "null")
    json.loads(payload)


def test_an_event_with_its_id_is_the_same_only_with_the_same_bodies(store: TaggedEvents) -> None:
    once = TaggedEvent(type="A", data=b"1", meta=b"m", id="1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11")
    made = store.append([once])

    assert store.append([once]).events == made.events
    for other in (
        TaggedEvent(type="A", data="1", meta=b"m", id=once.id),
        TaggedEvent(type="A", data=b"1", id=once.id),
        TaggedEvent(type="A", data=b"1", meta='"m"', id=once.id),
    ):
        with pytest.raises(InvalidInput, match="other contents"):
            store.append([other])


def test_bodies_are_imported_as_what_they_are(store: TaggedEvents) -> None:
    for data in BODIES:
        store.append([TaggedEvent(type="A", data=data, meta=b"m", tags=("t:1",))])
    elsewhere = memory_tagged_events()
    Importer(store=elsewhere).run(map(imported, TagListings(store=store).all_events()))

    assert elsewhere.read(OF_T).events == store.read(OF_T).events


def test_the_last_events_of_a_query_and_their_positions(store: TaggedEvents) -> None:
    for number in range(30):
        store.append([TaggedEvent(type="A", data=str(number), tags=("t:1",))])
    last = store.read(OF_T, limit=3, direction="backward")

    assert [event.data for event in last.events] == ["29", "28", "27"]
    assert last.position == store.read(OF_T).position
    assert [event.data for event in store.read(OF_T, after=last.events[2].position).events] == ["28", "29"]
    assert [event.data for event in store.read(OF_T, direction="backward").events] == [
        str(number) for number in reversed(range(30))
    ]
