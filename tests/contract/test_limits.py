"""What is too large is refused by size before it is sent, or answered as an overflow; a missing table is named."""

from __future__ import annotations

import pytest

from epochal.errors import MissingTable, TooLarge
from epochal.plan.conditions import Absent
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import (
    BatchGet,
    Delete,
    Done,
    Extend,
    Get,
    Op,
    Overflow,
    Put,
    Query,
    Refusal,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import binary, item_size, number, text
from tests.contract.places import Place, padded, texts


def test_an_item_of_exactly_400_kb_is_stored_and_one_byte_more_is_refused(place: Place) -> None:
    full = padded(place.key(), ITEM_BYTES)

    assert isinstance(place.execute(Put(table=place.table, item=full)), Done)
    with pytest.raises(TooLarge) as refused:
        place.execute(Put(table=place.table, item=padded(place.key(1), ITEM_BYTES + 1)))

    assert (refused.value.size, refused.value.limit) == (ITEM_BYTES + 1, ITEM_BYTES)
    assert place.get(1) is None


def test_an_update_may_fill_an_item_to_exactly_400_kb_and_overflows_with_one_byte_more(place: Place) -> None:
    item = padded(place.key(), ITEM_BYTES - 100)
    place.store_item(item)
    room = 100 - len("x")

    over = place.execute(
        Update(table=place.table, key=place.key(), sets=(Set("x", binary(b"\0" * (room + 1))),))
    )
    assert isinstance(over, Overflow)
    assert place.get() == item

    fits = Update(table=place.table, key=place.key(), sets=(Set("x", binary(b"\0" * room)),))
    assert isinstance(place.execute(fits), Done)
    stored = place.get()
    assert stored is not None
    assert item_size(stored) == ITEM_BYTES


def test_extending_a_list_beyond_400_kb_overflows(place: Place) -> None:
    item = padded({**place.key(), "e": texts("a")}, ITEM_BYTES - 10)
    place.store_item(item)

    reply = place.execute(Update(table=place.table, key=place.key(), sets=(Extend("e", texts("b" * 20)),)))

    assert isinstance(reply, Overflow)
    assert place.get() == item


def test_a_failing_condition_is_told_before_an_overflow(place: Place) -> None:
    """Exactly-once depends on it: a retry of an applied append must see the Tip that it left behind."""
    item = padded(place.key(), ITEM_BYTES - 10)
    place.store_item(item)
    update = Update(
        table=place.table, key=place.key(), sets=(Set("x", text("y" * 50)),), condition=Absent("pad")
    )

    reply = place.execute(update)

    assert isinstance(reply, Refusal)
    assert reply.item == item


def test_an_update_in_a_transaction_overflows_too_and_nothing_is_written(place: Place) -> None:
    item = padded(place.key(), ITEM_BYTES - 10)
    place.store_item(item)
    update = Update(table=place.table, key=place.key(), sets=(Set("x", text("y" * 50)),))

    reply = place.execute(Transact(writes=(Put(table=place.table, item=place.key(1)), update)))

    assert isinstance(reply, Overflow)
    assert place.all() == [item]


def test_an_update_that_carries_more_than_an_item_holds_is_refused_unsent(place: Place) -> None:
    update = Update(table=place.table, key=place.key(), sets=(Set("x", binary(b"\0" * (ITEM_BYTES + 1))),))

    with pytest.raises(TooLarge):
        place.execute(update)


def test_a_transaction_of_more_than_100_items_is_refused_and_nothing_is_written(place: Place) -> None:
    writes = tuple(Put(table=place.table, item=place.key(sort)) for sort in range(101))

    with pytest.raises(TooLarge) as refused:
        place.execute(Transact(writes=writes))

    assert (refused.value.size, refused.value.limit) == (101, 100)
    assert place.all() == []


def test_a_transaction_of_more_than_4_mb_is_refused_and_nothing_is_written(place: Place) -> None:
    writes = tuple(Put(table=place.table, item=padded(place.key(sort), 400_000)) for sort in range(11))

    with pytest.raises(TooLarge) as refused:
        place.execute(Transact(writes=writes))

    assert (refused.value.size, refused.value.limit) == (4_400_000, 4 * 1024 * 1024)
    assert place.all() == []


def test_a_batch_of_more_than_100_keys_is_refused(place: Place) -> None:
    with pytest.raises(TooLarge) as refused:
        place.execute(BatchGet(table=place.table, keys=tuple(map(place.key, range(101)))))

    assert (refused.value.size, refused.value.limit) == (101, 100)


def test_a_reading_transaction_of_more_than_100_keys_is_refused(place: Place) -> None:
    keys = tuple((place.table, place.key(sort)) for sort in range(101))

    with pytest.raises(TooLarge) as refused:
        place.execute(TransactGet(keys=keys))

    assert (refused.value.size, refused.value.limit) == (101, 100)
    assert place.execute(TransactGet(keys=keys[:100])).items == (None,) * 100


@pytest.mark.parametrize("kind", ["get", "batch", "query", "put", "update", "delete", "transact", "together"])
def test_every_operation_on_a_table_that_does_not_exist_names_it(place: Place, kind: str) -> None:
    table, key = "contract-missing", place.key()
    put = Put(table=table, item=key)
    ops: dict[str, Op] = {
        "get": Get(table=table, key=key),
        "batch": BatchGet(table=table, keys=(key,)),
        "query": Query(table=table, partition=("p", key["p"])),
        "put": put,
        "update": Update(table=table, key=key, sets=(Set("n", number(1)),)),
        "delete": Delete(table=table, key=key),
        "transact": Transact(writes=(put,)),
        "together": TransactGet(keys=((table, key),)),
    }

    with pytest.raises(MissingTable) as missing:
        place.execute(ops[kind])

    assert missing.value.table == table
