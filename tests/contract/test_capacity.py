"""What plans cost by our arithmetic is what the stores charge.

DynamoDB Local judges reads and single writes; transactional writes, of which it charges twice too many units, are
judged by the embedded AWS (whose read figures in turn are wrong). Reads that find nothing cost the least there is, as
AWS charges; DynamoDB Local forgets to charge for some of them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from epochal.plan.conditions import Absent, Present, equals
from epochal.plan.costs import units
from epochal.plan.ops import (
    BatchGet,
    Check,
    Delete,
    Extend,
    Get,
    Op,
    Put,
    Query,
    Refusal,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import Item, Key, Units, binary, number, text
from tests.contract.places import Place, padded, texts

KB = 1024
SIZES = (60, KB, KB + 1, 3 * KB, 4 * KB, 4 * KB + 1, 9 * KB, 100_000)


def predicted(place: Place, op: Op, results: tuple[Item, ...] = ()) -> Units:
    def stored(_: str, key: Key) -> Item | None:
        return place.get(int(key["i"]["N"]))

    return units(op, stored, results)


def charged_as_predicted(place: Place, op: Op) -> float:
    expected = predicted(place, op)
    reply = place.execute(op)
    assert reply.units == expected
    return expected.read + expected.write


@pytest.mark.ddbl
@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize("size", SIZES)
def test_a_get_costs_its_item_by_4_kb(on_ddbl: Place, size: int, consistent: bool) -> None:
    on_ddbl.store_item(padded(on_ddbl.key(), size))

    cost = charged_as_predicted(on_ddbl, Get(table=on_ddbl.table, key=on_ddbl.key(), consistent=consistent))

    assert cost == -(-size // 4096) * (1 if consistent else 0.5)


@pytest.mark.ddbl
def test_a_get_of_nothing_costs_the_least(on_ddbl: Place) -> None:
    assert charged_as_predicted(on_ddbl, Get(table=on_ddbl.table, key=on_ddbl.key())) == 1
    assert charged_as_predicted(on_ddbl, Get(table=on_ddbl.table, key=on_ddbl.key(), consistent=False)) == 0.5


@pytest.mark.ddbl
def test_a_reading_transaction_costs_twice_what_reads_of_its_items_do(on_ddbl: Place) -> None:
    for sort, size in enumerate((100, 4 * KB, 4 * KB + 1)):
        on_ddbl.store_item(padded(on_ddbl.key(sort), size))
    keys = tuple((on_ddbl.table, on_ddbl.key(sort)) for sort in range(4))

    assert charged_as_predicted(on_ddbl, TransactGet(keys=keys)) == 10


@pytest.mark.ddbl
def test_a_batch_rounds_up_each_of_its_items(on_ddbl: Place) -> None:
    for sort, size in enumerate((100, 4 * KB, 4 * KB + 1)):
        on_ddbl.store_item(padded(on_ddbl.key(sort), size))
    keys = tuple(map(on_ddbl.key, range(3)))

    assert charged_as_predicted(on_ddbl, BatchGet(table=on_ddbl.table, keys=keys)) == 4
    assert charged_as_predicted(on_ddbl, BatchGet(table=on_ddbl.table, keys=keys, consistent=False)) == 2


@pytest.mark.ddbl
@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize(
    ("sizes", "blocks"),
    [((100, 100, 100), 1), ((4 * KB, 1 * KB), 2), ((KB,) * 8, 2), ((KB,) * 9, 3), ((3 * KB + 1,) * 4, 4)],
    ids=str,
)
def test_a_query_rounds_up_the_sum_of_its_items(
    on_ddbl: Place, sizes: tuple[int, ...], blocks: int, consistent: bool
) -> None:
    for sort, size in enumerate(sizes):
        on_ddbl.store_item(padded(on_ddbl.key(sort), size))
    query = Query(table=on_ddbl.table, partition=("p", text(on_ddbl.partition)), consistent=consistent)

    reply = on_ddbl.execute(query)

    assert reply.units == predicted(on_ddbl, query, reply.items)
    assert reply.units.read == blocks * (1 if consistent else 0.5)


@pytest.mark.ddbl
@pytest.mark.parametrize("size", SIZES)
def test_a_new_item_costs_its_size_by_kb(on_ddbl: Place, size: int) -> None:
    put = Put(table=on_ddbl.table, item=padded(on_ddbl.key(), size), condition=Absent("i"))

    assert charged_as_predicted(on_ddbl, put) == -(-size // KB)


@pytest.mark.ddbl
@pytest.mark.parametrize(("before", "after"), [(100, 5000), (5000, 100), (5000, 5000), (KB, KB + 1)])
def test_a_put_costs_the_larger_of_the_item_before_and_after(on_ddbl: Place, before: int, after: int) -> None:
    on_ddbl.store_item(padded(on_ddbl.key(), before))
    put = Put(table=on_ddbl.table, item=padded(on_ddbl.key(), after))

    assert charged_as_predicted(on_ddbl, put) == -(-max(before, after) // KB)


@pytest.mark.ddbl
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda: ((Set("n", number(1)),), ()), id="a counter"),
        pytest.param(lambda: ((Extend("e", texts("x" * 3000)),), ()), id="growing"),
        pytest.param(lambda: ((Set("n", number(1)),), ("pad",)), id="shrinking"),
        pytest.param(lambda: ((Set("pad", binary(b"\0" * 6 * KB)),), ()), id="replacing"),
    ],
)
@pytest.mark.parametrize("size", [100, 4 * KB])
def test_an_update_costs_the_whole_item_at_its_larger(
    on_ddbl: Place, size: int, change: Callable[[], tuple[tuple[Set | Extend, ...], tuple[str, ...]]]
) -> None:
    on_ddbl.store_item(padded({**on_ddbl.key(), "e": texts("a")}, size))
    sets, removes = change()

    charged_as_predicted(on_ddbl, Update(table=on_ddbl.table, key=on_ddbl.key(), sets=sets, removes=removes))


@pytest.mark.ddbl
@pytest.mark.parametrize("size", [0, 60, KB, KB + 1, 9 * KB])
def test_a_delete_costs_what_it_deletes_and_of_nothing_the_least(on_ddbl: Place, size: int) -> None:
    if size:
        on_ddbl.store_item(padded(on_ddbl.key(), size))

    cost = charged_as_predicted(on_ddbl, Delete(table=on_ddbl.table, key=on_ddbl.key()))

    assert cost == max(1, -(-size // KB))


@pytest.mark.parametrize("size", [100, 3 * KB])
def test_a_refused_write_is_reckoned_as_a_write_of_what_stood_there(place: Place, size: int) -> None:
    """DynamoDB charges for it but does not say how much; the interpreters reckon alike."""
    place.store_item(padded(place.key(), size))
    put = Put(table=place.table, item=padded(place.key(), 8 * KB), condition=Absent("i"))

    reply = place.execute(put)

    assert isinstance(reply, Refusal)
    assert reply.units == predicted(place, put) == Units(write=-(-size // KB))


@pytest.mark.embedded
def test_a_transaction_costs_each_of_its_writes_twice(on_embedded: Place) -> None:
    table = on_embedded.table
    on_embedded.store_item(padded(on_embedded.key(1), 2 * KB))
    on_embedded.store_item(padded(on_embedded.key(2), 3 * KB))

    cost = charged_as_predicted(
        on_embedded,
        Transact(
            writes=(
                Put(table=table, item=padded(on_embedded.key(0), KB + 1), condition=Absent("i")),
                Update(
                    table=table, key=on_embedded.key(1), sets=(Set("x", text("y")),), condition=Present("i")
                ),
                Delete(table=table, key=on_embedded.key(2)),
            )
        ),
    )

    assert cost == 2 * (2 + 3 + 3)


@pytest.mark.embedded
def test_a_transaction_charges_its_checks_too(on_embedded: Place) -> None:
    table = on_embedded.table
    on_embedded.store_item(padded({**on_embedded.key(0), "n": number(1)}, KB))

    cost = charged_as_predicted(
        on_embedded,
        Transact(
            writes=(
                Check(table=table, key=on_embedded.key(0), condition=equals("n", number(1))),
                Put(table=table, item=on_embedded.key(1)),
            )
        ),
    )

    assert cost == 4
