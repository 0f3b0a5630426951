"""Transactions: all or nothing, refusals that name their causes, tokens that apply once."""

from __future__ import annotations

import uuid

from epochal.plan.conditions import Absent, Present, equals
from epochal.plan.ops import (
    Check,
    Delete,
    Done,
    Extend,
    Get,
    Put,
    Refusal,
    Set,
    Transact,
    TransactGet,
    Update,
)
from epochal.plan.values import number
from tests.contract.places import Place, texts


def test_every_kind_of_write_takes_effect_together(place: Place) -> None:
    place.put(1, e=texts("a"))
    place.put(2)
    checked = place.put(3, n=number(7))

    reply = place.execute(
        Transact(
            writes=(
                Put(table=place.table, item=place.key(0), condition=Absent("i")),
                Update(table=place.table, key=place.key(1), sets=(Extend("e", texts("b")),)),
                Delete(table=place.table, key=place.key(2), condition=Present("i")),
                Check(table=place.table, key=place.key(3), condition=equals("n", number(7))),
            )
        )
    )

    assert isinstance(reply, Done)
    assert place.all() == [place.key(0), {**place.key(1), "e": texts("a", "b")}, checked]


def test_one_failing_condition_refuses_all_and_only_its_own_item_comes_back(place: Place) -> None:
    first, second = place.put(0, n=number(1)), place.put(1, n=number(1))

    reply = place.execute(
        Transact(
            writes=(
                Update(table=place.table, key=place.key(0), sets=(Set("n", number(2)),)),
                Put(table=place.table, item=place.key(1), condition=Absent("i")),
                Put(table=place.table, item=place.key(2), condition=Absent("i")),
            )
        )
    )

    assert isinstance(reply, Refusal)
    assert reply.failed == (False, True, False)
    assert reply.items == (None, second, None)
    assert place.all() == [first, second]


def test_several_failing_conditions_bring_all_their_items(place: Place) -> None:
    first, second = place.put(0, n=number(1)), place.put(1, e=texts("x"))

    reply = place.execute(
        Transact(
            writes=(
                Put(table=place.table, item=place.key(0), condition=Absent("i")),
                Update(
                    table=place.table, key=place.key(1), sets=(Set("n", number(2)),), condition=Present("n")
                ),
                Delete(table=place.table, key=place.key(2), condition=Present("i")),
            )
        )
    )

    assert isinstance(reply, Refusal)
    assert reply.failed == (True, True, True)
    assert reply.items == (first, second, None)


def test_a_failing_check_refuses_the_writes_beside_it(place: Place) -> None:
    checked = place.put(0, n=number(1))

    reply = place.execute(
        Transact(
            writes=(
                Check(table=place.table, key=place.key(0), condition=equals("n", number(2))),
                Put(table=place.table, item=place.key(1)),
            )
        )
    )

    assert isinstance(reply, Refusal)
    assert (reply.failed, reply.items) == ((True, False), (checked, None))
    assert place.all() == [checked]


def test_a_transaction_of_one_write_is_refused_like_any(place: Place) -> None:
    item = place.put(0, n=number(1))
    put = Put(table=place.table, item=place.key(0), condition=Absent("i"))

    reply = place.execute(Transact(writes=(put,)))

    assert isinstance(reply, Refusal)
    assert reply.items == (item,)


def test_the_same_token_is_applied_once(place: Place) -> None:
    extend = Update(table=place.table, key=place.key(), sets=(Extend("e", texts("x")),))
    transact = Transact(writes=(extend,), token=uuid.uuid4().hex)

    assert isinstance(place.execute(transact), Done)
    assert isinstance(place.execute(transact), Done)

    assert place.get() == {**place.key(), "e": texts("x")}


def test_a_token_that_went_with_another_transaction_is_refused_and_nothing_is_written(place: Place) -> None:
    token = uuid.uuid4().hex
    place.execute(Transact(writes=(Put(table=place.table, item=place.key(0)),), token=token))

    reply = place.execute(Transact(writes=(Put(table=place.table, item=place.key(1)),), token=token))

    assert isinstance(reply, Refusal)
    assert (reply.reused, reply.failed, reply.ambiguous) == (True, (False,), True)
    assert place.execute(Get(table=place.table, key=place.key(1))).item is None


def test_a_refused_token_may_be_tried_again_once_the_way_is_free(place: Place) -> None:
    place.put(0)
    put = Put(table=place.table, item={**place.key(0), "n": number(1)}, condition=Absent("i"))
    transact = Transact(writes=(put,), token=uuid.uuid4().hex)

    assert isinstance(place.execute(transact), Refusal)
    place.execute(Delete(table=place.table, key=place.key(0)))

    assert isinstance(place.execute(transact), Done)
    assert place.get() == {**place.key(0), "n": number(1)}


def test_other_tokens_are_other_transactions(place: Place) -> None:
    extend = Update(table=place.table, key=place.key(), sets=(Extend("e", texts("x")),))

    for _ in range(2):
        place.execute(Transact(writes=(extend,), token=uuid.uuid4().hex))

    assert place.get() == {**place.key(), "e": texts("x", "x")}


def test_a_hundred_items_fit_one_transaction(place: Place) -> None:
    writes = tuple(Put(table=place.table, item=place.key(sort)) for sort in range(100))

    assert isinstance(place.execute(Transact(writes=writes)), Done)
    assert len(place.all()) == 100


def test_a_reading_transaction_answers_key_by_key_and_says_what_is_not_there(place: Place) -> None:
    first, third = place.put(0, n=number(1)), place.put(2, e=texts("x"))
    keys = [(place.table, place.key(sort)) for sort in (2, 1, 0)]

    assert place.execute(TransactGet(keys=tuple(keys))).items == (third, None, first)
