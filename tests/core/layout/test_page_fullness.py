"""When a page is full: a pure function of a token, however absurd the token."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from epochal.model.tokens import Token
from epochal.pages.fullness import ROOM, fits, is_full
from epochal.plan.limits import ITEM_BYTES
from tests.support.steps import steps

BARE = 40


def holding(appends: int, each: int, *, unfolds: int = 0) -> Token:
    carried = appends * each
    return Token(
        version=appends,
        size=BARE + carried + unfolds,
        carried=carried,
        unfolds=unfolds,
        events=appends,
        appends=appends,
    )


@pytest.mark.parametrize(("appends", "full"), [(1, False), (2, False), (3, True)])
def test_a_page_is_full_where_one_more_append_takes_another_unit(appends: int, full: bool) -> None:
    assert is_full(holding(appends, 320)) == full


@pytest.mark.parametrize("each", [900, 1010, 1100, 5000])
def test_a_page_whose_first_append_leaves_no_room_for_another_is_full(each: int) -> None:
    assert is_full(holding(1, each))


def test_where_sizes_stray_room_is_left_for_a_larger_append() -> None:
    before = holding(1, 300)
    left = replace(holding(2, 320), carried=640)

    assert not is_full(left, before)
    assert is_full(left, replace(before, carried=160))


def test_on_a_new_page_sizes_stray_from_those_of_the_page_before() -> None:
    left = replace(holding(1, 480), version=9)

    assert not is_full(left, holding(8, 480))
    assert not is_full(left, replace(left, carried=900))  # unfolds alone: nothing was appended
    assert is_full(left, holding(8, 600))


def test_unfolds_that_are_dear_to_leave_behind_let_a_page_grow() -> None:
    assert not is_full(holding(3, 320, unfolds=20_000))
    assert is_full(holding(40, 320, unfolds=20_000))
    assert is_full(holding(1, 320, unfolds=500))


def test_a_page_is_not_called_full_where_saying_so_costs_as_much_as_the_next_append() -> None:
    assert is_full(holding(3, 327))  # 1021 bytes, and the mark fits
    assert not is_full(holding(3, 328))  # 1024


def test_appends_that_met_are_taken_to_meet_again() -> None:
    left = holding(6, 900 // 6)

    assert not is_full(holding(6, 80), joined=0)
    assert is_full(holding(6, 80), joined=600)
    assert not is_full(holding(6, 80), holding(1, 80), joined=400), "no caution: their number does not stray"
    assert is_full(left, joined=160)


def test_a_page_near_the_limit_of_an_item_is_full_whatever_it_costs() -> None:
    assert is_full(holding(1, 100, unfolds=ITEM_BYTES - ROOM))


def test_a_page_takes_what_an_item_takes_with_some_room() -> None:
    page = holding(1, 100)

    assert fits(page, ITEM_BYTES - ROOM - page.size)
    assert not fits(page, ITEM_BYTES - ROOM - page.size + 1)


FIGURES = st.integers(0, 9_999_999)


@given(size=FIGURES, carried=FIGURES, unfolds=FIGURES, events=FIGURES, appends=FIGURES)
def test_any_token_that_parses_is_decided_on(
    size: int, carried: int, unfolds: int, events: int, appends: int
) -> None:
    token = Token(version=1, size=size, carried=carried, unfolds=unfolds, events=events, appends=appends)

    assert is_full(token) in (True, False)


@pytest.mark.parametrize("size", [100, 9_999, ITEM_BYTES - ROOM - 1, 9_999_999])
def test_no_forged_token_keeps_the_rule_reckoning(size: int) -> None:
    """It comes from outside: the fewer bytes it claims for an append, the longer a page's life to reckon with."""
    forged = Token(version=1, size=size, carried=0, events=9_999_999, appends=9_999_999)

    assert steps(lambda: is_full(forged)) < 10_000
