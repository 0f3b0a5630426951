"""What the memory interpreter offers tests beyond DynamoDB's own operations, which the contract suite holds it to."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

from epochal.contrib.equinox.port import TIPS
from epochal.layout.port import INDEX
from epochal.plan.ops import Absent, Delete, Done, Extend, Get, Put, Refusal, Set, Transact, Update
from epochal.plan.values import number, sequence, text
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
