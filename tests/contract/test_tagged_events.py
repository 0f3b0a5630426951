"""Tagged events on AWS's own DynamoDB and in memory, held to the same answers."""

from __future__ import annotations

import json
import random

import pytest

from epochal.errors import InvalidInput
from epochal.model.events import Event
from epochal.model.outcomes import Appended, Conflict
from epochal.model.position_text import read_position, write_position
from epochal.model.tags import Query
from epochal.store.tagged import TaggedStore
from tests.contract.tagged import COURSE, SUBSCRIBED, Opens, asks, event, every_event, of_tag

LARGE = json.dumps(random.Random(1).randbytes(700).hex())
"""A body of over a kilobyte, however it is compressed."""

OWN = "00000000-0000-4000-8000-000000000001"


def test_with_type_heads_conditions_need_no_tags(opened: Opens) -> None:
    everywhere = opened(type_heads=True)
    by_type = Query(items=(asks("Opened", ""),))
    assert isinstance(everywhere.try_append([event("Opened")], fail_if=by_type), Appended)
    assert isinstance(everywhere.try_append([event("Opened")], fail_if=by_type), Conflict)
    assert isinstance(everywhere.try_append([event("Closed")], fail_if=by_type), Conflict)
    assert isinstance(
        everywhere.try_append([event("Closed")], fail_if=Query(items=(asks("Closed", ""),))), Appended
    )


@pytest.mark.parametrize("count", [1, 2, 3, 20])
def test_a_condition_after_a_position_meets_what_its_tag_has_got_since(
    store: TaggedStore, count: int
) -> None:
    """Events of a kilobyte take a page each where streams are stored as pages."""
    store.append([event("Subscribed", "course:1", data=LARGE)])
    seen = store.read(COURSE)
    for _ in range(count):
        store.append([event("Subscribed", "course:1", data=LARGE)])

    refused = store.try_append([SUBSCRIBED], fail_if=COURSE, after=seen.position)

    assert isinstance(refused, Conflict)
    assert len(refused.events) == count
    assert isinstance(store.try_append([SUBSCRIBED], fail_if=COURSE, after=refused.position), Appended)


def test_a_position_in_its_text_form_is_good_for_reading_on_and_for_appending(store: TaggedStore) -> None:
    store.append([event("Subscribed", "course:1", data=str(number)) for number in range(3)])
    first = store.read(COURSE)
    position = read_position(write_position(first.position))
    store.append([event("Renamed", "course:1"), event("Subscribed", "course:1", data="3")])

    new = store.read(COURSE, after=position)

    assert [found.data for found in new.events] == [b"3"]
    assert first.position <= new.position
    assert isinstance(store.try_append([SUBSCRIBED], fail_if=COURSE, after=position), Conflict)
    assert isinstance(store.try_append([SUBSCRIBED], fail_if=COURSE, after=new.position), Appended)


@pytest.mark.parametrize(
    "count", [101, *(pytest.param(count, marks=pytest.mark.proof) for count in (99, 100, 205))]
)
def test_a_read_by_tag_is_complete_however_many_batches_it_takes(store: TaggedStore, count: int) -> None:
    for start in range(0, count, 40):
        batch = [event("Counted", "all:1", data=str(n)) for n in range(start, min(start + 40, count))]
        store.append(batch)
    found = store.read(Query(items=(asks("Counted", "all:1"),))).events
    assert [int(each.data) for each in found] == list(range(count))


def test_tags_and_data_keep_every_character(store: TaggedStore) -> None:
    odd, data = "günü:née #x \N{SNOWMAN}:y", '{"a":"\N{GRINNING FACE}\\u0000"}'
    kept = Event(type="Ünï", data=data.encode(), tags=(odd,), id=OWN, causation_id="c")
    store.append([kept])
    (found,) = of_tag(store, odd)
    assert (found.type, found.data, found.tags) == ("Ünï", data.encode(), (odd,))
    assert (found.causation_id, found.correlation_id) == ("c", None)
    assert store.event(found.id) == found


def test_an_id_that_exists_is_success_with_the_same_contents_and_an_error_with_others(
    store: TaggedStore,
) -> None:
    first = store.try_append([event("A", "t:1", id_=OWN)])
    again = store.try_append([event("A", "t:1", id_=OWN)])
    assert isinstance(again, Appended)
    assert again.replayed
    assert again.events == first.events
    with pytest.raises(InvalidInput, match="exists, but with other contents"):
        store.append([event("A", "t:1", id_=OWN, data="[]")])
    with pytest.raises(InvalidInput, match="some ids are stored already"):
        store.append([event("A", "t:1", id_=OWN), event("A", "t:1")])
    assert len(every_event(store)) == 1
