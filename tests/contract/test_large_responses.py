"""Transactions whose items have no room in one response: conflicts stay conflicts, and reads are complete."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from epochal import NO_STREAM, ConflictError, Event, StreamAppend
from epochal.contrib.local.endpoint import Endpoint
from epochal.dynamo.clients import dynamodb_client
from epochal.dynamo.interpreter import interpreter
from epochal.model.capacity import Capacity
from epochal.model.outcomes import Conflict
from epochal.pages.layout import Pages
from epochal.plan.conditions import Absent, Present
from epochal.plan.failures import Lost
from epochal.plan.limits import ITEM_BYTES, RESPONSE_BYTES
from epochal.plan.ops import (
    BatchGet,
    Done,
    Op,
    Oversized,
    Refusal,
    Reply,
    Set,
    Together,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import NONE, item_size, number, write_units
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import PATIENT, Place, padded

pytestmark = pytest.mark.slow

PER_ITEM = 4
"""Bytes that each item adds to its size in a response."""

KINDER = {"ministack": "sends responses of any size, since it does not know the limit"}
"""Stand-ins that differ from DynamoDB Local, and how."""


def driver(place: Place) -> Driver:
    return Driver(execute=place.execute, meter=Meter(), patience=PATIENT)


def fill(place: Place, total: int, count: int) -> None:
    """Items that take exactly `total` bytes of a response."""
    each = total // count
    for sort in range(count):
        size = each + (total - each * count if sort == 0 else 0) - PER_ITEM
        place.store_item(padded(place.key(sort), size))


def updates(place: Place, count: int) -> tuple[Update, ...]:
    return tuple(
        Update(table=place.table, key=place.key(sort), sets=(Set("x", number(1)),), condition=Absent("i"))
        for sort in range(count)
    )


@pytest.mark.parametrize("count", [11, 30])
def test_a_response_has_room_for_4_mb_of_items_to_the_byte(place: Place, count: int) -> None:
    refused = Transact(writes=updates(place, count))
    read = TransactGet(keys=tuple((place.table, place.key(sort)) for sort in range(count)))

    fill(place, RESPONSE_BYTES, count)
    assert isinstance(place.execute(refused), Refusal)
    assert isinstance(place.execute(read), Together)

    fill(place, RESPONSE_BYTES + 1, count)
    kinder = place.store in KINDER
    assert isinstance(place.execute(refused), Refusal if kinder else Oversized)
    assert isinstance(place.execute(read), Together if kinder else Oversized)


@pytest.mark.parametrize("missing", [1, 3])
def test_an_item_that_is_not_there_takes_room_where_it_is_read_and_where_a_write_is_refused_for_it(
    place: Place, missing: int
) -> None:
    count = 11
    read = TransactGet(keys=tuple((place.table, place.key(sort)) for sort in range(count + missing)))
    absent = tuple(
        Update(
            table=place.table,
            key=place.key(count + more),
            sets=(Set("x", number(1)),),
            condition=Present("i"),
        )
        for more in range(missing)
    )

    refused = Transact(writes=(*updates(place, count), *absent))

    fill(place, RESPONSE_BYTES - missing * PER_ITEM, count)
    assert isinstance(place.execute(read), Together)
    assert isinstance(place.execute(refused), Refusal)

    fill(place, RESPONSE_BYTES - missing * PER_ITEM + 1, count)
    assert isinstance(place.execute(read), Together if place.store in KINDER else Oversized)
    assert isinstance(place.execute(refused), Refusal if place.store in KINDER else Oversized)


def test_a_refusal_of_any_size_has_every_item_that_stood_in_the_way(place: Place) -> None:
    luck = random.Random(8)
    for _ in range(3):
        sizes = [luck.choice([100, 45_000, 200_000, ITEM_BYTES - 1_000]) for _ in range(30)]
        stored = [place.store_item(padded(place.key(sort), size)) for sort, size in enumerate(sizes)]
        # Every third write is of an item that is not there, and is not refused.
        free = [
            replace(each, key=place.key(100 + sort)) if sort % 3 == 0 else each
            for sort, each in enumerate(updates(place, len(sizes)))
        ]

        reply = driver(place).ask(Transact(writes=tuple(free)))
        together = driver(place).ask(
            TransactGet(keys=tuple((place.table, place.key(sort)) for sort in range(len(sizes))))
        )

        wanted = tuple(None if sort % 3 == 0 else item for sort, item in enumerate(stored))
        failed = tuple(item is not None for item in wanted)
        assert replace(reply, units=NONE) == Refusal(items=wanted, failed=failed)
        assert together.items == tuple(stored)
        assert place.get(100) is None


@pytest.mark.parametrize("size", [200_000, 300_001])
def test_every_request_that_a_refusal_took_is_counted_with_all_items_that_stood_in_the_way(
    place: Place, size: int
) -> None:
    """DynamoDB does not say what a refusal cost, and memory reckons as the interpreters do."""
    for sort in range(24):
        place.store_item(padded(place.key(sort), size))
    drives = driver(place)

    reply = drives.ask(Transact(writes=updates(place, 25)))

    assert reply.failed == (*(True,) * 24, False)
    requests = 1 if place.store in KINDER else {200_000: 3, 300_001: 3}[size]
    cost = 2 * (24 * write_units(size) + 1)
    assert drives.meter.capacity == Capacity(read=0, write=requests * cost, requests=requests)


@pytest.mark.parametrize(("streams", "size"), [(25, 200_000), (99, 45_000)])
def test_a_conflict_over_large_pages_is_a_conflict_and_can_be_decided_again(
    place: Place, streams: int, size: int
) -> None:
    store = Streams(driver=driver(place), table=place.table, layout=Pages())
    names = [f"{place.partition}-{number_}" for number_ in range(streams)]
    large = Event(type="Large", data=random.Random(streams).randbytes(size))
    stale = [StreamAppend(stream=name, events=[Event(type="Small")], expected=NO_STREAM) for name in names]
    tokens = {name: store.append(name, [large]).token for name in names}

    with pytest.raises(ConflictError):
        store.append_all(stale)
    refused = store.try_append_all(stale)
    made = store.append_all([replace(each, expected=tokens[each.stream]) for each in stale])

    assert isinstance(refused, Conflict)
    assert set(refused.streams) == set(names)
    assert {each.version for each in made.streams.values()} == {2}


def test_a_large_append_whose_response_was_lost_is_known_again(place: Place) -> None:
    """The refusal of the retry is too large, too."""
    lost = [True]

    def execute(op: Op) -> Reply:
        reply = place.execute(op)
        if isinstance(op, Transact) and isinstance(reply, Done) and lost:
            lost.pop()
            raise Lost("a response that was dropped")
        return reply

    store = Streams(driver=driver(place), table=place.table, layout=Pages())
    names = [f"{place.partition}-{number_}" for number_ in range(25)]
    large = Event(type="Large", data=random.Random(25).randbytes(200_000))
    tokens = {name: store.append(name, [large]).token for name in names}
    doubtful = replace(store, driver=replace(store.driver, execute=execute))
    appends = [
        StreamAppend(stream=name, events=[Event(type="Small")], expected=tokens[name]) for name in names
    ]

    made = doubtful.append_all(appends)

    assert not lost
    assert {each.version for each in made.streams.values()} == {2}
    assert all([event.type for event in store.read(name)] == ["Large", "Small"] for name in names[::8])


def test_a_query_of_more_than_1_mb_comes_in_pages_and_a_batch_of_more_than_16_mb_is_whole(
    place: Place,
) -> None:
    luck = random.Random(16)
    sizes = [luck.randint(ITEM_BYTES - 50_000, ITEM_BYTES) for _ in range(45)]
    stored = [place.store_item(padded(place.key(sort), size)) for sort, size in enumerate(sizes)]
    assert sum(map(item_size, stored)) > 16 * 1024 * 1024

    first = place.query()
    batch = driver(place).ask(BatchGet(table=place.table, keys=tuple(map(place.key, range(len(sizes))))))

    assert len(first.items) < len(sizes)
    assert first.last is not None
    assert place.all() == stored
    assert sorted(batch.items, key=lambda item: int(item["i"]["N"])) == stored


@pytest.mark.ddbl
def test_a_client_of_boto3s_learns_of_a_large_conflict_as_the_light_carrier_does(
    on_ddbl: Place, ddbl: Endpoint
) -> None:
    place = replace(on_ddbl, execute=interpreter(dynamodb_client(endpoint=ddbl.url, region=ddbl.region)))
    fill(place, RESPONSE_BYTES + 1, 30)

    assert isinstance(place.execute(Transact(writes=updates(place, 30))), Oversized)
    reply = driver(place).ask(Transact(writes=updates(place, 30)))

    assert isinstance(reply, Refusal)
    assert reply.failed == (True,) * 30
    assert None not in reply.items
