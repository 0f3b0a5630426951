"""A table that does not exist is a named error, whatever the operation, on every store."""

from __future__ import annotations

import pytest

from epochal.errors import MissingTable
from epochal.plan.conditions import Absent
from epochal.plan.ops import (
    BatchGet,
    Check,
    Delete,
    Get,
    Op,
    Put,
    Query,
    Scan,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import number, text
from tests.contract.places import Place

KEY = {"p": text("a"), "i": number(0)}
PUT = Put(table="nowhere", item=KEY)


@pytest.mark.parametrize(
    "op",
    [
        Get(table="nowhere", key=KEY),
        BatchGet(table="nowhere", keys=(KEY,)),
        Query(table="nowhere", partition=("p", KEY["p"])),
        Scan(table="nowhere"),
        PUT,
        Update(table="nowhere", key=KEY, sets=(Set("n", number(1)),)),
        Delete(table="nowhere", key=KEY),
        TransactGet(keys=(("nowhere", KEY),)),
        Transact(writes=(PUT,)),
        Transact(writes=(Check(table="nowhere", key=KEY, condition=Absent("p")),)),
    ],
    ids=lambda op: type(op).__name__,
)
def test_an_operation_on_a_table_that_does_not_exist_names_it(place: Place, op: Op) -> None:
    with pytest.raises(MissingTable, match=r"table nowhere does not exist (here|in .*\)): deploy first"):
        place.execute(op)


def test_a_transaction_over_a_table_that_does_not_exist_writes_nothing_to_the_other(place: Place) -> None:
    there = Put(table=place.table, item={**place.key(), "n": number(1)})

    with pytest.raises(MissingTable, match="nowhere"):
        place.execute(Transact(writes=(there, PUT)))

    assert place.get() is None
