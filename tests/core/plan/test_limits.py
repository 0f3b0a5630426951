"""What cannot succeed is refused with its size before it is sent."""

from __future__ import annotations

import pytest

from epochal.errors import TooLarge
from epochal.plan.conditions import Absent
from epochal.plan.limits import ITEM_BYTES, check
from epochal.plan.ops import (
    BatchGet,
    Check,
    Delete,
    Extend,
    Get,
    Op,
    Put,
    Query,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import binary, item_size, number, sequence, text

KEY = {"p": text("a"), "i": number(0)}


def put(size: int) -> Put:
    item = {**KEY, "d": binary(b"")}
    return Put(table="t", item={**item, "d": binary(bytes(size - item_size(item)))})


@pytest.mark.parametrize(
    ("op", "size", "limit", "rule"),
    [
        (put(ITEM_BYTES + 1), 409_601, 409_600, "409,601 bytes, at most 409,600 allowed"),
        (
            Update(table="t", key=KEY, sets=(Extend("e", sequence([binary(bytes(409_600))])),)),
            409_604,
            409_600,
            "bytes",
        ),
        (Transact(writes=(put(100),) * 101), 101, 100, "101 items, at most 100 allowed"),
        (Transact(writes=(put(400_000),) * 11), 4_400_000, 4_194_304, "bytes"),
        (Transact(writes=(put(100), put(ITEM_BYTES + 1))), 409_601, 409_600, "bytes"),
        (BatchGet(table="t", keys=(KEY,) * 101), 101, 100, "items"),
        (TransactGet(keys=(("t", KEY),) * 101), 101, 100, "items"),
    ],
    ids=[
        "put",
        "update",
        "items of a transaction",
        "bytes of a transaction",
        "an item of it",
        "keys of a batch",
        "keys of a reading transaction",
    ],
)
def test_what_is_over_a_limit_is_refused_with_size_and_limit(
    op: Op, size: int, limit: int, rule: str
) -> None:
    with pytest.raises(TooLarge, match=rule) as refused:
        check(op)

    assert (refused.value.size, refused.value.limit) == (size, limit)


@pytest.mark.parametrize(
    "op",
    [
        put(ITEM_BYTES),
        Update(table="t", key=KEY, sets=(Set("d", binary(bytes(ITEM_BYTES))),)),
        Transact(writes=(put(100),) * 99 + (Check(table="t", key=KEY, condition=Absent("p")),)),
        Transact(writes=(put(400_000),) * 10),
        BatchGet(table="t", keys=(KEY,) * 100),
        TransactGet(keys=(("t", KEY),) * 100),
        Get(table="t", key=KEY),
        Query(table="t", partition=("p", text("a"))),
        Delete(table="t", key=KEY),
    ],
    ids=lambda op: type(op).__name__,
)
def test_what_is_exactly_at_a_limit_passes(op: Op) -> None:
    check(op)
