"""A transaction whose refusal has no room in one response is sent again in parts, and stays exactly-once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from epochal import Event, StreamAppend
from epochal.errors import InvalidRequest
from epochal.model.capacity import Capacity
from epochal.model.outcomes import Appended, Conflict
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.conditions import Absent
from epochal.plan.ops import (
    Delete,
    Done,
    Op,
    Oversized,
    Put,
    Refusal,
    Reply,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import Item, binary, number, text
from epochal.store.driver import Driver, Meter, Patience
from epochal.store.streams import Streams
from epochal.testing.memory import Fault, Faults, Late, MemoryTables

ROOM = 1_000
"""Bytes of a response here: of four small pages, two have room."""

NAMES = ("A-1", "A-2", "A-3", "A-4")
FAULTS = (Fault.THROTTLED, Fault.LOST, Fault.UNANSWERED, Late(), Late(3))


def item(sort: int) -> Item:
    return {"p": text("a"), "i": number(sort), "pad": binary(b"x" * 400)}


def update(sort: int) -> Update:
    return Update(
        table="streams",
        key={"p": text("a"), "i": number(sort)},
        sets=(Set("x", number(1)),),
        condition=Absent("i"),
    )


UPDATES = Transact(writes=tuple(map(update, range(4))))


@pytest.fixture
def tables() -> MemoryTables:
    made = MemoryTables({"streams": STREAMS}, response_bytes=ROOM)
    for sort in range(4):
        made.execute(Put(table="streams", item=item(sort)))
    return made


def driver(execute: object) -> Driver:
    return Driver(execute=execute, meter=Meter(), patience=Patience(seconds=1e9), sleep=lambda _: None)


def remove(tables: MemoryTables) -> None:
    for sort in range(4):
        tables.execute(Delete(table="streams", key=update(sort).key))


def test_it_is_refused_with_every_item_after_a_request_for_each_half(tables: MemoryTables) -> None:
    drives = driver(tables.execute)

    reply = drives.ask(UPDATES)

    assert (reply.failed, reply.items) == ((True,) * 4, tuple(map(item, range(4))))
    assert not reply.ambiguous
    assert drives.meter.requests == 3


def test_it_is_done_where_what_stood_in_the_way_is_gone_by_the_repeat(tables: MemoryTables) -> None:
    def execute(op: Op) -> Reply:
        reply = tables.execute(op)
        if isinstance(reply, Oversized):
            remove(tables)
        return reply

    assert isinstance(driver(execute).ask(UPDATES), Done)
    assert all("x" in each for each in tables.items("streams"))


def test_every_request_of_a_refusal_costs_the_write_of_all_that_stood_in_the_way() -> None:
    tables = MemoryTables({"streams": STREAMS}, response_bytes=3_000)
    for sort, size in enumerate((400, 1_100, 2_100, 900)):
        tables.execute(Put(table="streams", item={**item(sort), "pad": binary(b"x" * size)}))
    outer = Meter()
    drives = replace(driver(tables.execute), meter=Meter(within=outer))

    drives.ask(UPDATES)

    requests = 5  # for all four, for two each, and for the last two one by one
    assert drives.meter.capacity == Capacity(write=requests * 2 * (1 + 2 + 3 + 1), requests=requests)
    assert outer.capacity == drives.meter.capacity


def test_a_refusal_in_parts_costs_as_much_as_the_write_that_is_done_after_it(tables: MemoryTables) -> None:
    def execute(op: Op) -> Reply:
        reply = tables.execute(op)
        if isinstance(reply, Oversized):
            remove(tables)
            tables.execute(Put(table="streams", item={**update(9).key, "pad": binary(b"x" * 5_000)}))
        return reply

    drives = driver(execute)

    assert isinstance(
        drives.ask(Transact(writes=(*UPDATES.writes, Delete(table="streams", key=update(9).key)))), Done
    )
    assert drives.meter.capacity == Capacity(write=2 * 2 * (4 + 5), requests=2)


def test_an_item_that_has_no_room_by_itself_is_an_error_and_is_not_asked_for_for_ever() -> None:
    tables = MemoryTables({"streams": STREAMS}, response_bytes=3_000)
    for sort in range(2):
        tables.execute(Put(table="streams", item={**item(sort), "pad": binary(b"x" * 5_000)}))
    keys = tuple(("streams", update(sort).key) for sort in range(2))

    for op in (Transact(writes=UPDATES.writes[:2]), TransactGet(keys=keys)):
        with pytest.raises(InvalidRequest, match="Payload in response is too large"):
            driver(tables.execute).ask(op)


def test_a_lost_answer_makes_the_refusal_ambiguous_whichever_request_lost_it(tables: MemoryTables) -> None:
    for number_ in range(3):
        faulty = Faults(tables.execute, {number_: Fault.UNANSWERED})
        assert driver(faulty.execute).ask(UPDATES).ambiguous, number_


def test_what_a_carrier_retried_by_itself_stays_ambiguous(tables: MemoryTables) -> None:
    def execute(op: Op) -> Reply:
        reply = tables.execute(op)
        return replace(reply, ambiguous=True) if isinstance(reply, Oversized) else reply

    assert driver(execute).ask(UPDATES).ambiguous


@pytest.mark.parametrize("retried", range(3))
def test_a_refusal_is_ambiguous_whichever_of_its_parts_a_carrier_retried(retried: int) -> None:
    """Half of the items have no room either, so that three responses say only that they are too large."""
    tables, oversized = MemoryTables({"streams": STREAMS}, response_bytes=500), list[Oversized]()
    for sort in range(4):
        tables.execute(Put(table="streams", item=item(sort)))

    def execute(op: Op) -> Reply:
        reply = tables.execute(op)
        if not isinstance(reply, Oversized):
            return reply
        oversized.append(reply)
        return replace(reply, ambiguous=len(oversized) == retried + 1)

    assert driver(execute).ask(UPDATES).ambiguous
    assert len(oversized) == 3


def test_a_token_that_went_with_another_transaction_ends_the_requests_for_parts(tables: MemoryTables) -> None:
    """The first request may arrive late and be applied. The token is its own then, and no part is refused for items."""
    reused = Refusal(items=(None,) * 4, failed=(False,) * 4, ambiguous=True, reused=True)
    replies: Iterator[Reply] = iter([Oversized(), reused])

    reply = driver(lambda _: next(replies)).ask(UPDATES)

    assert reply == reused


def test_writes_that_only_others_half_was_refused_for_are_asked_for_again(tables: MemoryTables) -> None:
    """Each half is refused for a write of the other one: neither says what stood in the way."""
    halves: Iterator[Reply] = iter(
        [
            Oversized(),
            Refusal(items=(None,) * 4, failed=(False, False, True, False)),
            Refusal(items=(None,) * 4, failed=(True, False, False, False)),
        ]
    )
    reply = driver(lambda op: next(halves, None) or tables.execute(op)).ask(UPDATES)

    assert reply.items == tuple(map(item, range(4)))


def test_items_read_together_come_in_their_order(tables: MemoryTables) -> None:
    keys = tuple(("streams", update(sort).key) for sort in (3, 9, 1, 0, 2))

    read = driver(tables.execute).ask(TransactGet(keys=keys))

    assert read.items == (item(3), None, item(1), item(0), item(2))


@pytest.mark.parametrize("stale", [False, True])
@pytest.mark.parametrize("fault", FAULTS, ids=str)
@pytest.mark.parametrize("number_", range(6))
def test_an_append_to_several_streams_is_made_once_whichever_request_meets_a_fault(
    number_: int, fault: Fault | Late, stale: bool
) -> None:
    tables = MemoryTables({"streams": STREAMS}, response_bytes=ROOM)
    quiet = Streams(driver=driver(tables.execute), table="streams", layout=Pages())
    tokens = {name: quiet.append(name, [Event(type="Large", data=bytes(range(256)))]).token for name in NAMES}
    if stale:
        for name in NAMES:
            quiet.append(name, [Event(type="Later", data=bytes(range(255, -1, -1)))])
    faulty = Faults(tables.execute, {number_: fault, number_ + 1: Fault.UNANSWERED})
    store = replace(quiet, driver=driver(faulty.execute))

    made = store.try_append_all(
        [StreamAppend(stream=name, events=[Event(type="Small")], expected=tokens[name]) for name in NAMES]
    )
    faulty.land()

    assert isinstance(made, Conflict if stale else Appended)
    counts = {sum(event.type == "Small" for event in quiet.read(name)) for name in NAMES}
    assert counts == {0 if stale else 1}
