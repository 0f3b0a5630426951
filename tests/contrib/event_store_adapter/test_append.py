from __future__ import annotations

import threading

import pytest

from epochal.contrib.event_store_adapter.model import AggregateEvent, Lock
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict
from epochal.errors import InvalidInput, TooLarge
from epochal.model.expected_version import ANY, NO_STREAM, STREAM_EXISTS, AtVersion
from tests.contrib.event_store_adapter.world import ALICE, World, event, numbers


@pytest.fixture
def world() -> World:
    return World()


def begun(world: World) -> Lock:
    appended = world.store().try_append(ALICE, [event(0)], snapshot=b'{"n":0}', expected=NO_STREAM)
    assert isinstance(appended, AggregateAppended)
    return appended.lock


def test_a_first_append_starts_at_number_one_and_version_one(world: World) -> None:
    assert begun(world) == Lock(version=1, seq_nr=1)


def test_several_events_in_one_append_raise_the_version_once(world: World) -> None:
    lock = begun(world)
    appended = world.store().try_append(ALICE, [event(1), event(2), event(3)], expected=lock)
    assert appended == AggregateAppended(first=2, lock=Lock(version=2, seq_nr=4))
    assert numbers(world.store()) == [0, 1, 2, 3]


def test_an_append_with_its_lock_is_one_request(world: World) -> None:
    lock = begun(world)
    before = world.meter.requests
    world.store().append(ALICE, [event(1)], expected=lock)
    assert world.meter.requests == before + 1


def test_a_conflict_costs_one_request_and_changes_nothing(world: World) -> None:
    lock = begun(world)
    world.store().append(ALICE, [event(1)], expected=lock)
    items = sorted(map(repr, world.tables.items("journal")))
    before = world.meter.requests
    assert world.store().try_append(ALICE, [event(2)], expected=lock) == AggregateConflict(version=2)
    assert world.meter.requests == before + 1
    assert sorted(map(repr, world.tables.items("journal"))) == items


@pytest.mark.parametrize(
    ("expected", "accepted"),
    [
        (ANY, True),
        (STREAM_EXISTS, True),
        (NO_STREAM, False),
        (AtVersion(version=1), True),
        (AtVersion(version=2), False),
        (AtVersion(version=0), False),
    ],
)
def test_expectations_are_judged_by_the_heads_version(world: World, expected: object, accepted: bool) -> None:
    begun(world)
    answer = world.store().try_append(ALICE, [event(1)], snapshot=b"{}", expected=expected)  # type: ignore[arg-type]
    assert isinstance(answer, AggregateAppended) is accepted


def test_a_lost_answer_is_recognised_by_the_head(world: World) -> None:
    lock = begun(world)
    world.lose_next_append()
    assert world.store().try_append(ALICE, [event(1)], expected=lock) == AggregateAppended(
        first=2, lock=Lock(version=2, seq_nr=2)
    )
    assert numbers(world.store()) == [0, 1]


def test_a_lost_answer_hidden_by_an_equal_append_is_recognised_by_the_journal(world: World) -> None:
    lock = begun(world)
    world.lose_next_append(meanwhile=lambda: World.store(world).try_append(ALICE, [event(1)]))
    assert world.store().try_append(ALICE, [event(1)], expected=lock) == AggregateAppended(
        first=2, lock=Lock(version=2, seq_nr=2)
    )
    assert numbers(world.store()) == [0, 1, 1]


def test_another_writers_equal_event_is_not_taken_for_our_own(world: World) -> None:
    lock = begun(world)
    world.store().append(ALICE, [event(1)], expected=lock)
    assert world.store().try_append(ALICE, [event(1)], expected=lock) == AggregateConflict(version=2)


def test_a_lost_first_append_is_applied_once(world: World) -> None:
    world.lose_next_append()
    appended = world.store().try_append(ALICE, [event(0)], snapshot=b"{}", expected=NO_STREAM)
    assert appended == AggregateAppended(first=1, lock=Lock(version=1, seq_nr=1))
    assert numbers(world.store()) == [0]


@pytest.mark.parametrize("racers", [2, 8, 32])
def test_of_racers_with_one_lock_exactly_one_wins(world: World, racers: int) -> None:
    lock = begun(world)
    barrier = threading.Barrier(racers)
    answers: list[object] = []

    def race(number: int) -> None:
        barrier.wait()
        answers.append(world.store().try_append(ALICE, [event(number)], expected=lock))

    threads = [threading.Thread(target=race, args=(number,)) for number in range(1, racers + 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(isinstance(answer, AggregateAppended) for answer in answers) == 1
    assert len(numbers(world.store())) == 2


def test_writers_that_take_any_version_lose_nothing(world: World) -> None:
    begun(world)
    threads = [
        threading.Thread(target=lambda n=n: world.store().try_append(ALICE, [event(n)])) for n in range(1, 21)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(numbers(world.store())) == list(range(21))


def test_a_number_that_does_not_join_is_refused_and_named(world: World) -> None:
    begun(world)
    with pytest.raises(InvalidInput, match=r"seq_nr: 6 does not follow the last event, 1"):
        world.store().append(ALICE, [event(1)], expected=Lock(version=1, seq_nr=5))
    assert numbers(world.store()) == [0]


def test_a_first_append_without_a_snapshot_is_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="snapshot: is required with the first event of an aggregate"):
        world.store().append(ALICE, [event(0)])
    assert list(world.tables.items("snapshot")) == []


def test_an_append_without_events_is_refused(world: World) -> None:
    with pytest.raises(InvalidInput, match="events: must not be empty"):
        world.store().append(ALICE, [])


def test_payloads_over_the_limit_are_refused_with_their_size(world: World) -> None:
    lock = begun(world)
    large = AggregateEvent(type="Large", data=b'"' + b"x" * 400_000 + b'"')
    with pytest.raises(TooLarge, match=r"events\[0\]\.data") as caught:
        world.store().append(ALICE, [large], expected=lock)
    assert caught.value.size > caught.value.limit
    assert numbers(world.store()) == [0]


def test_more_events_than_a_transaction_holds_are_refused_whole(world: World) -> None:
    lock = begun(world)
    with pytest.raises(TooLarge, match="101 items"):
        world.store().append(ALICE, [event(n) for n in range(100)], expected=lock)
    assert numbers(world.store()) == [0]


@pytest.mark.parametrize("data", [b"{", b"", b"NaN", b"\xff", b"1e9999999999999999999", b"[" * 100_000])
def test_data_that_is_not_json_is_refused(world: World, data: bytes) -> None:
    lock = begun(world)
    with pytest.raises(InvalidInput, match="data: must be UTF-8 JSON"):
        world.store().append(ALICE, [AggregateEvent(type="X", data=data)], expected=lock)


def test_a_head_without_room_for_the_types_of_the_events_is_told_and_nothing_is_written(world: World) -> None:
    large = b'"' + b"x" * 389_000 + b'"'
    world.store().append(ALICE, [event(0)], snapshot=large)
    many = [event(number, "T" * 512) for number in range(99)]
    with pytest.raises(TooLarge) as refused:
        world.store().append(ALICE, many)
    assert (refused.value.field, refused.value.limit) == ("events", 409_600)
    assert 439_000 < refused.value.size < 441_000
    assert world.store().lock(ALICE) == Lock(version=1, seq_nr=1)


@pytest.mark.parametrize("kind", ["", "\ud800", "T" * 513])
def test_a_type_that_cannot_be_stored_or_is_too_long_is_refused(world: World, kind: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        world.store().append(ALICE, [event(0), event(1, kind)], snapshot=b"{}")
    assert refused.value.field == "events[1].type"
    assert list(world.tables.items("journal")) == []
