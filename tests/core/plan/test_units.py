"""Capacity as arithmetic: what the contract tests do not reach."""

from __future__ import annotations

import pytest

from epochal.plan.conditions import Absent, Present
from epochal.plan.costs import units
from epochal.plan.ops import Put, Transact, Update
from epochal.plan.values import NONE, Item, Key, Units, binary, number, read_units, text, write_units

KEY = {"p": text("a"), "i": number(0)}


@pytest.mark.parametrize(("size", "expected"), [(0, 1), (1, 1), (1024, 1), (1025, 2), (409_600, 400)])
def test_a_write_costs_a_unit_a_kb(size: int, expected: int) -> None:
    assert write_units(size) == expected


@pytest.mark.parametrize(("size", "expected"), [(0, 1), (4096, 1), (4097, 2), (1_048_576, 256)])
def test_a_read_costs_a_unit_by_4_kb_and_half_where_it_may_be_stale(size: int, expected: int) -> None:
    assert read_units(size) == expected
    assert read_units(size, consistent=False) == expected / 2


def test_units_add_up_and_subtract() -> None:
    assert Units(1, 2) + Units(3, 4) - Units(1, 1) == Units(3, 5)
    assert Units(0, 0) == NONE


def nothing(_: str, __: Key) -> Item | None:
    return None


def large(_: str, key: Key) -> Item | None:
    return {**key, "d": binary(bytes(5_000))}


def test_a_refused_write_costs_what_stood_in_the_way_not_what_was_sent() -> None:
    put = Put(table="t", item={**KEY, "d": binary(bytes(9_000))}, condition=Absent("p"))

    assert units(put, nothing) == Units(write=9)
    assert units(put, large) == Units(write=5)
    assert units(Transact(writes=(put,)), large) == Units(write=10)


def test_a_refused_update_of_nothing_costs_the_least() -> None:
    update = Update(table="t", key=KEY, sets=(), removes=("d",), condition=Present("p"))

    assert units(update, nothing) == Units(write=1)
