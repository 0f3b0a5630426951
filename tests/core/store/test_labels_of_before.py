"""Tagged events as they were written while labels had a user, and told text from bytes. These bytes are stored: where
one of these fails, what is stored is lost.
"""

from __future__ import annotations

from typing import Final

import pytest

from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.tags import Query, QueryItem
from epochal.plan.ops import Put
from epochal.plan.values import binary, number, text
from epochal.store.tagged_pages import TaggedEvents
from epochal.testing.stores import memory_tables, memory_tagged_events

OF_A: Final = Query(items=(QueryItem(tags=frozenset({"a"})),))
ID: Final = "1f0c5f8e-6c1b-4b6a-9e3f-0d6b9f3f8a11"
FRAME: Final = bytes.fromhex(
    "0008df17ea7d304000000000000000000004010154077b226e223a317d143a000003616461007b226279223a226f7073227d01015401ff17"
    "0301001f0c5f8e6c1b4b6a9e3f0d6b9f3f8a1103626f620101540133081a020002637900ff01015401340738030000226d22"
)


def stored() -> TaggedEvents:
    """Four events under one tag: of users ada, bob and cy, and of nobody."""
    tables = memory_tables()
    page = {"p": text("$tag-a"), "i": number(0), "n": number(4), "r": number(639255968000000000)}
    record = {"p": text(f"$event-{ID}"), "i": number(0), "s": text("$tag-a"), "n": number(1)}
    for item in ({**page, "f": {"L": [binary(FRAME)]}}, record):
        tables.execute(Put(table="streams", item=item))
    return memory_tagged_events(tables)


def test_text_is_read_as_its_bytes_and_a_user_as_a_member_of_the_metadata() -> None:
    found = stored().read(OF_A).events
    assert [event.data for event in found] == [b'{"n":1}', b"\xff", b"3", b"4"]
    assert [event.meta for event in found] == [
        b'{"user":"ada","by":"ops"}',
        b'{"user":"bob"}',
        b"\xff",  # is no object, and stays what it is
        b'"m"',
    ]
    assert found[0].json() == {"n": 1}


def test_an_event_is_found_by_its_id_and_repeated_without_its_user() -> None:
    store = stored()
    found = store.event(ID)
    assert found is not None
    again = store.append([Event(type="T", data=b"\xff", tags=("a",), id=ID)])
    assert again.replayed
    assert again.events[0].meta == b'{"user":"bob"}'
    with pytest.raises(InvalidInput, match="exists, but with other contents"):
        store.append([Event(type="T", data=b"2", tags=("a",), id=ID)])


def test_the_tag_goes_on_after_them_and_their_place_and_id_are_what_they_were() -> None:
    store = stored()
    seen = store.read(OF_A)
    made = store.append([Event(type="T", tags=("a",))], fail_if=OF_A, after=seen.position)
    assert made.versions == {"a": 5}
    assert [(event.place[-1], event.id[:8]) for event in seen.events] == [
        ("0", "7c063998"),
        ("1", ID[:8]),
        ("2", "f9513322"),
        ("3", "6a8063c8"),
    ]
    assert seen.events[0].place == "063925596800000000000000000000"
