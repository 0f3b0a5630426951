"""Tagged events whose data are in the bucket already: an append refers to them, and reads bring them."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest

from epochal.contrib.sekiban import memory_dcb_events
from epochal.errors import InvalidInput
from epochal.model.bodies import Claim
from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.store.encoding import BodyCodec
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.stores import MemoryBodies, memory_tagged_events

CONTENT = b'{"seats":1}'
DIGEST = hashlib.sha256(CONTENT).hexdigest()
CLAIM = Claim(key=f"bodies/{DIGEST}", sha256=DIGEST, size=len(CONTENT))
OF_A = Query(items=(QueryItem(tags=frozenset({"a"})),))
ID = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"


def store(*, held: bool = True) -> TaggedEvents:
    bucket = MemoryBodies()
    if held:
        bucket.objects[CLAIM.key] = CONTENT
    return replace(memory_tagged_events(), codec=BodyCodec(bodies=bucket))


def referring(claim: Claim = CLAIM, *, id_: str | None = None) -> Event:
    return Event(type="T", data=claim, tags=("a", "b"), id=id_)


def test_data_in_the_bucket_come_back_or_are_left_there() -> None:
    events = store()
    small = Event(type="T", data=b"1", tags=("a",))
    events.append([referring(), small])
    found, other = events.read(OF_A).events
    assert found.content == CONTENT
    assert found.json() == {"seats": 1}
    assert other.data == b"1"
    left, _ = replace(events, fetch=False).read(OF_A).events
    assert left.data == CLAIM


def test_an_append_is_repeated_by_its_ids_and_is_another_where_its_claim_is() -> None:
    events = store()
    first = events.append([referring(id_=ID)])
    assert events.append([referring(id_=ID)]).replayed
    assert first.events[0].data == CONTENT
    with pytest.raises(InvalidInput, match="exists, but with other contents"):
        events.append([Event(type="T", data=b"2", tags=("a", "b"), id=ID)])


@pytest.mark.parametrize("claim", [CLAIM, replace(CLAIM, size=1)])
def test_what_is_not_there_or_of_another_size_is_refused(claim: Claim) -> None:
    events = store(held=claim != CLAIM)
    with pytest.raises(InvalidInput, match=r"^events\.claim: names no object of that size"):
        events.append([referring(claim)])
    with pytest.raises(InvalidInput, match=r"^events\.claim: names no object of that size"):
        replace(events, codec=BodyCodec()).append([referring(claim)])
    assert events.read(OF_A).events == ()


def test_sekibans_tables_refer_to_no_bucket() -> None:
    with pytest.raises(InvalidInput, match=r"^events\[0\]\.data: must be given inline"):
        memory_dcb_events().append([referring()])
