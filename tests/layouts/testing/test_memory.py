"""What the memory interpreter offers tests beyond DynamoDB's own operations, which the contract suite holds it to."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from epochal.contrib.equinox.port import TIPS
from epochal.layout.tables import INDEX
from epochal.plan.conditions import Absent, Present
from epochal.plan.costs import units
from epochal.plan.ops import (
    BatchGet,
    Check,
    Delete,
    Done,
    Extend,
    Get,
    Overflow,
    Put,
    Refusal,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import Item, Key, number, sequence, text
from epochal.testing.memory import MemoryTables


def key(sort: int = 0) -> dict[str, object]:
    return {"p": text("a"), "i": number(sort)}


def tables() -> MemoryTables:
    return MemoryTables({"tips": TIPS, "index": INDEX})


def test_changes_are_every_new_image_in_the_order_of_writing_as_a_stream_carries_them() -> None:
    memory = tables()
    memory.execute(Put(table="tips", item={**key(), "n": number(1)}))
    memory.execute(Put(table="tips", item={**key(), "n": number(1)}))
    memory.execute(Put(table="tips", item={**key(), "n": number(2)}, condition=Absent("i")))
    memory.execute(Update(table="tips", key=key(), sets=(Set("n", number(3)),)))
    memory.execute(Delete(table="tips", key=key()))
    memory.execute(Transact(writes=(Put(table="tips", item=key(1)), Put(table="index", item=key(2)))))

    assert [item.get("n") for item in memory.changes("tips")] == [number(1), number(3), None]
    assert memory.changes("index") == (key(2),)


def test_a_copy_goes_its_own_way() -> None:
    memory = tables()
    memory.execute(Put(table="tips", item={**key(), "e": sequence([text("x")])}))
    token = Transact(writes=(Put(table="tips", item=key(1)),), token="t")
    memory.execute(token)

    twin = memory.copy()
    twin.execute(Update(table="tips", key=key(), sets=(Extend("e", sequence([text("y")])),)))
    twin.execute(Delete(table="tips", key=key(1)))
    twin.execute(token)

    assert list(memory.items("tips")) == [{**key(), "e": sequence([text("x")])}, key(1)]
    assert list(twin.items("tips")) == [{**key(), "e": sequence([text("x"), text("y")])}]
    assert (len(memory.changes("tips")), len(twin.changes("tips"))) == (2, 3)


def test_an_item_that_was_handed_out_does_not_change_any_more() -> None:
    memory = tables()
    memory.execute(Put(table="tips", item={**key(), "e": sequence([text("x")])}))
    before = memory.execute(Get(table="tips", key=key())).item

    memory.execute(
        Update(table="tips", key=key(), sets=(Extend("e", sequence([text("y")])),), removes=("n",))
    )

    assert before == {**key(), "e": sequence([text("x")])}


def test_threads_find_every_operation_atomic() -> None:
    memory, barrier = tables(), threading.Barrier(8)

    def create(number_of_thread: int) -> bool:
        barrier.wait()
        reply = memory.execute(
            Put(table="tips", item={**key(), "n": number(number_of_thread)}, condition=Absent("i"))
        )
        assert isinstance(reply, Done | Refusal)
        return isinstance(reply, Done)

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(create, range(8))) == 1


def test_every_operation_costs_what_plans_reckon() -> None:
    memory = tables()

    def stored(table: str, place: Key) -> Item | None:
        return next((each for each in memory.items(table) if each["i"] == place["i"]), None)

    def large(sort: int, kb: int) -> Item:
        return {**key(sort), "d": text("x" * 1024 * kb)}

    checked = Check(table="tips", key=key(2), condition=Present("d"))
    paired = Transact(writes=(Put(table="tips", item=large(1, 9)), checked), token="t")
    replies = []
    for op in (
        Put(table="tips", item=large(1, 3)),
        Put(table="tips", item=large(1, 1)),
        Put(table="tips", item=large(2, 5), condition=Present("p")),
        Put(table="tips", item=large(2, 5)),
        Update(table="tips", key=key(2), sets=(Set("d", text("y")),), condition=Absent("d")),
        paired,
        paired,
        Transact(writes=paired.writes[:1], token="t"),
        Transact(writes=(Put(table="tips", item=large(1, 2), condition=Absent("p")), checked)),
        Update(table="tips", key=key(1), sets=(Set("e", text("x" * 395 * 1024)),)),
        Get(table="tips", key=key(1), consistent=False),
        Get(table="tips", key=key(7)),
        BatchGet(table="tips", keys=(key(1), key(2))),
        TransactGet(keys=(("tips", key(1)), ("tips", key(7)))),
        Delete(table="tips", key=key(1)),
    ):
        cost = units(op, stored)
        reply = memory.execute(op)
        assert reply.units == cost, op
        replies.append(type(reply))
    assert replies.count(Refusal) == 4
    assert replies.count(Overflow) == 1
