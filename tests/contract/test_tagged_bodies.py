"""Bodies of tagged events: any bytes; metadata."""

from __future__ import annotations

from itertools import product

import pytest

from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.tags import Query
from epochal.store.tagged import TaggedStore
from tests.contract.tagged import asks, every_event, of_tag

OWN = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"

BODIES: tuple[bytes, ...] = (
    b"",
    b"\0\xff",
    b"{}",
    b"not JSON",
    b'{"grade":1.50}',
    b"null",
    '"\U0001f701"'.encode(),
)
OF_T = Query(items=(asks("", "t:1"),))


def test_bodies_come_back_as_what_they_were(store: TaggedStore) -> None:
    all_made = []
    for number, (data, meta) in enumerate(product(BODIES, (b"", b"\0", b'{"by":"ops"}'))):
        tag, own = f"t:{number}", f"{OWN[:-2]}{number:02}"
        (made,) = store.append([Event(type="A", data=data, meta=meta, tags=(tag,), id=own)]).events
        all_made.append(made)

        assert store.event(made.id) == made
        assert (made.data, made.meta) == (data, meta)
        assert of_tag(store, tag) == (made,)
    assert every_event(store) == all_made


def test_an_event_with_its_id_is_the_same_only_with_the_same_data_and_keeps_its_first_metadata(
    store: TaggedStore,
) -> None:
    once = Event(type="A", data=b"1", meta=b"m", id=OWN)
    made = store.append([once])

    assert store.append([once]).events == made.events
    for other in (
        Event(type="A", data=b"2", meta=b"m", id=once.id),
        Event(type="A", data=b"1", meta=b"m", id=once.id, tags=("t:1",)),
    ):
        with pytest.raises(InvalidInput, match="other contents"):
            store.append([other])
    for again in (
        Event(type="A", data=b"1", id=once.id),
        Event(type="A", data=b"1", meta=b'"n"', id=once.id, correlation_id="c", causation_id="e"),
    ):
        answer = store.append([again])
        assert answer.replayed
        assert answer.events == made.events


def test_the_last_events_of_a_query_and_their_positions(store: TaggedStore) -> None:
    for number in range(30):
        store.append([Event(type="A", data=str(number).encode(), tags=("t:1",))])
    last = store.read(OF_T, limit=3, direction="backward")

    assert [event.data for event in last.events] == [b"29", b"28", b"27"]
    assert last.position == store.read(OF_T).position
    assert [event.data for event in store.read(OF_T, after=last.events[2].position).events] == [b"28", b"29"]
    assert [event.data for event in store.read(OF_T, direction="backward").events] == [
        b"%d" % number for number in reversed(range(30))
    ]
