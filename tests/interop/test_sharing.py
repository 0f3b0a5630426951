from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from epochal.contrib.event_store_adapter.copies import AggregateSource
from epochal.contrib.event_store_adapter.ids import AggregateId, aggregate_id
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.model.expected_version import NO_STREAM
from epochal.testing.stores import memory_streams
from tests.interop.adapter import Adapter, OptimisticLock

ALICE = aggregate_id("user-account", "01H42K4ABWQ5V2XQEP3A48VE0Z")


def event(number: int) -> AggregateEvent:
    """An event that their converter can read: it wants the aggregate's id inside."""
    data = {"number": number, "aggregateId": {"typeName": ALICE.type, "value": ALICE.value}}
    return AggregateEvent(type="Renamed", data=json.dumps(data).encode())


def state(number: int, seq_nr: int) -> bytes:
    body = {
        "id": {"typeName": ALICE.type, "value": ALICE.value},
        "typeName": ALICE.type,
        "sequenceNumber": seq_nr,
        "number": number,
    }
    return json.dumps(body).encode()


def numbers(store: AggregateStore, aggregate: AggregateId = ALICE) -> list[int]:
    return [json.loads(found.data)["number"] for found in store.events_after(aggregate)]


def test_what_they_write_we_replay(theirs: Adapter, ours: AggregateStore) -> None:
    theirs.create(ALICE, 0)
    theirs.persist(ALICE, 1, seq_nr=2, version=1)
    theirs.persist(ALICE, 2, seq_nr=3, version=2, snapshot=True)
    theirs.persist(ALICE, 3, seq_nr=4, version=3)
    replay = ours.replay(ALICE)
    assert replay is not None
    assert json.loads(replay.snapshot.data)["number"] == 2
    assert (replay.snapshot.seq_nr, replay.snapshot.lock.version) == (3, 4)
    assert [(found.seq_nr, found.type, found.occurred_at) for found in replay.events] == [
        (4, "Renamed", "404")
    ]
    assert numbers(ours) == [0, 1, 2, 3]


def test_what_they_write_is_copied_to_a_stream(theirs: Adapter, ours: AggregateStore) -> None:
    theirs.create(ALICE, 0)
    theirs.persist(ALICE, 1, seq_nr=2, version=1)
    theirs.persist(ALICE, 2, seq_nr=3, version=2, snapshot=True)
    name, streams = f"{ALICE.type}-{ALICE.value}", memory_streams()
    copier = StreamCopier(source=AggregateSource(ours, snapshots="state"), target=streams)
    done = copier.copy(name)
    assert (done.copied, done.sound) == (3, True)
    copied = [*streams.read(name)]
    assert [(each.index, each.type, each.json()["number"]) for each in copied] == [
        (at, "Renamed", at) for at in range(3)
    ]
    assert {each.timestamp for each in copied} == {"1970-01-01T00:00:00.4040000+00:00"}
    state = streams.load(name)
    assert state is not None
    assert [(each.type, each.version) for each in state.unfolds] == [("state", 3)]
    assert copier.copy(name).ending == "unchanged"


def test_what_we_write_they_replay(theirs: Adapter, ours: AggregateStore) -> None:
    appended = ours.try_append(ALICE, [event(0)], snapshot=state(0, 1), expected=NO_STREAM)
    assert isinstance(appended, AggregateAppended)
    appended = ours.try_append(ALICE, [event(1), event(2)], expected=appended.lock)
    assert isinstance(appended, AggregateAppended)
    ours.append(ALICE, [event(3)], snapshot=state(3, 4), expected=appended.lock)
    snapshot = theirs.snapshot(ALICE)
    assert snapshot is not None
    assert (snapshot["number"], snapshot["version"]) == (3, 3)
    assert theirs.numbers(ALICE) == [0, 1, 2, 3]
    assert theirs.numbers(ALICE, since=3) == [2, 3]


def test_both_write_the_same_aggregate_in_turns(theirs: Adapter, ours: AggregateStore) -> None:
    theirs.create(ALICE, 0)
    for number in range(1, 20, 2):
        appended = ours.try_append(ALICE, [event(number)])
        assert isinstance(appended, AggregateAppended)
        assert appended.lock.seq_nr == number + 1
        theirs.persist(
            ALICE,
            number + 1,
            seq_nr=number + 2,
            version=appended.lock.version,
            snapshot=number % 3 == 0,
        )
    assert numbers(ours) == theirs.numbers(ALICE) == list(range(20 + 1))


def test_they_see_our_append_as_a_conflict_and_we_see_theirs(theirs: Adapter, ours: AggregateStore) -> None:
    appended = ours.try_append(ALICE, [event(0)], snapshot=state(0, 1), expected=NO_STREAM)
    assert isinstance(appended, AggregateAppended)
    theirs.persist(ALICE, 1, seq_nr=2, version=1)
    assert ours.try_append(ALICE, [event(9)], expected=appended.lock) == AggregateConflict(version=2)
    ours.append(ALICE, [event(2)])
    with pytest.raises(OptimisticLock):
        theirs.persist(ALICE, 9, seq_nr=3, version=2)
    assert numbers(ours) == theirs.numbers(ALICE) == [0, 1, 2]


@pytest.mark.parametrize("each", [4, pytest.param(10, marks=pytest.mark.proof)])
def test_both_at_once_lose_and_double_nothing(
    start_theirs: Callable[[], Adapter], ours: AggregateStore, each: int
) -> None:
    ours.append(ALICE, [event(0)], snapshot=state(0, 1), expected=NO_STREAM)

    def they(first: int) -> None:
        adapter = start_theirs()
        for number in range(first, first + each):
            while True:
                head = ours.latest_snapshot(ALICE)
                assert head is not None
                lock = head.lock
                try:
                    adapter.persist(ALICE, number, seq_nr=lock.seq_nr + 1, version=lock.version)
                    break
                except OptimisticLock:
                    continue

    def we(first: int) -> None:
        for number in range(first, first + each):
            assert isinstance(ours.try_append(ALICE, [event(number)]), AggregateAppended)

    with ThreadPoolExecutor(4) as pool:
        for done in [pool.submit(work, first) for work, first in ((they, 1), (we, 11), (they, 21), (we, 31))]:
            done.result()
    found = numbers(ours)
    assert sorted(found) == [
        0,
        *(number for first in (1, 11, 21, 31) for number in range(first, first + each)),
    ]
    assert numbers(replace(ours, via="index")) == found
    for first in (1, 11, 21, 31):
        own = [number for number in found if first <= number < first + 10]
        assert own == sorted(own)


@pytest.mark.parametrize("with_snapshot", [False, True])
def test_an_append_costs_no_more_than_theirs_on_the_same_tables(
    theirs: Adapter, ours: AggregateStore, *, with_snapshot: bool
) -> None:
    bob = aggregate_id("user-account", "bob")
    theirs.create(ALICE, 0)
    appended = ours.try_append(bob, [event(0)], snapshot=state(0, 1), expected=NO_STREAM)
    assert isinstance(appended, AggregateAppended)
    spent, ours_before = theirs.consumed(), ours.driver.meter.units.write
    for number in range(1, 11):
        theirs.persist(ALICE, number, seq_nr=number + 1, version=number, snapshot=with_snapshot)
        snapshot = state(number, number + 1) if with_snapshot else None
        appended = ours.try_append(bob, [event(number)], snapshot=snapshot, expected=appended.lock)
        assert isinstance(appended, AggregateAppended)
    assert ours.driver.meter.units.write - ours_before <= theirs.consumed() - spent
    # Ten events in one append: the head is paid for once.
    before = ours.driver.meter.units.write
    ours.append(bob, [event(number) for number in range(11, 21)], expected=appended.lock)
    assert ours.driver.meter.units.write - before < (theirs.consumed() - spent) * 0.6
