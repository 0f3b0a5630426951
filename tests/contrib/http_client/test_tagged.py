"""Tagged events over HTTP: conditions, queries over several pages, positions, ids."""

from __future__ import annotations

import uuid

import pytest

from epochal import Conflict, ConflictError, Event, Query, QueryItem
from epochal.errors import InvalidInput
from tests.contrib.http_client.memory_api import MemoryApi

COURSE = Query(items=(QueryItem(tags=("course:1",)),))


def event(n: int = 0, **more: object) -> Event:
    return Event(type="Subscribed", data=b'{"n":%d}' % n, tags=("student:7", "course:1"), **more)


@pytest.fixture
def memory() -> MemoryApi:
    return MemoryApi()


def test_a_decision_reads_and_appends_after_the_position(memory: MemoryApi) -> None:
    tagged = memory.streams.tagged
    seen = tagged.read(COURSE)
    assert (seen.events, seen.more) == ((), False)
    done = tagged.append([event()], fail_if=COURSE, after=seen.position)
    assert [(one.tags, one.data) for one in done.events] == [(("course:1", "student:7"), b'{"n":0}')]
    assert done.versions == {"course:1": 1, "student:7": 1}
    refused = tagged.try_append([event(1)], fail_if=COURSE, after=seen.position)
    assert isinstance(refused, Conflict)
    assert [one.id for one in refused.events] == [done.events[0].id]
    with pytest.raises(ConflictError, match="stored events match the condition"):
        tagged.append([event(1)], fail_if=COURSE)
    assert tagged.append([event(1)], fail_if=COURSE, after=refused.position).versions["course:1"] == 2
    assert [one.data for one in tagged.read(COURSE, after=done.position).events] == [b'{"n":1}']


@pytest.mark.slow
def test_all_pages_of_a_query_are_read_and_a_limit_ends_where_one_can_go_on() -> None:
    memory = MemoryApi(held=False)
    tagged = memory.streams.tagged
    for start in range(0, 1_200, 40):
        tagged.append([event(n) for n in range(start, start + 40)])
    seen = tagged.read(COURSE)
    assert [one.json()["n"] for one in seen.events] == [*range(1_200)]
    assert memory.api.deployment.streams.tagged.read(COURSE).position == seen.position
    some = tagged.read(COURSE, limit=7)
    assert (len(some.events), some.more) == (7, True)
    following = tagged.read(COURSE, after=some.position, limit=2_000, positions=True)
    assert [one.json()["n"] for one in following.events] == [*range(7, 1_200)]
    assert following.events[-1].position == following.position
    last = tagged.read(COURSE, limit=2, direction="backward")
    assert [one.json()["n"] for one in last.events] == [1_199, 1_198]
    assert last.position == seen.position


def test_events_with_ids_are_repeated_by_them_and_found(memory: MemoryApi) -> None:
    tagged, event_id = memory.streams.tagged, str(uuid.uuid4())
    assert not tagged.append([event(id=event_id)]).replayed
    assert tagged.append([event(id=event_id)]).replayed
    assert "Idempotency-Key" not in memory.requests[0].headers
    found = tagged.event(event_id)
    assert found is not None
    assert found.tags == ("course:1", "student:7")
    assert tagged.event(str(uuid.uuid4())) is None
    with pytest.raises(InvalidInput, match="must all have an id, or all have none"):
        tagged.append([event(id=str(uuid.uuid4())), event()])
