"""What a range of the journal holds, held to all numbers written out as text."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from epochal.contrib.event_store_adapter.reading import KeyRange, beginning, worthwhile

TOTALS = st.integers(1, 30_000)


@st.composite
def stretches(draw: st.DrawFn) -> tuple[int, int, int]:
    """Numbers from a first to a last of a total."""
    total = draw(TOTALS)
    first = draw(st.integers(1, total))
    return first, draw(st.integers(first, total)), total


def held(by: KeyRange, total: int) -> list[int]:
    """The numbers whose texts lie in a range, in the order that a query finds them in."""
    texts = sorted(str(n) for n in range(1, total + 1))
    return [int(each) for each in texts if by.low <= each <= by.high]


@given(stretches())
def test_how_many_events_lie_in_a_range_is_known_exactly(stretch: tuple[int, int, int]) -> None:
    first, last, total = stretch
    for found in worthwhile(first, last, total):
        assert found.most == len(held(found, total))


@given(stretches())
def test_of_what_a_range_holds_more_than_half_is_wanted(stretch: tuple[int, int, int]) -> None:
    first, last, total = stretch
    for found in worthwhile(first, last, total):
        wanted = [n for n in held(found, total) if first <= n <= last]
        assert found.most < 2 * len(wanted)


@given(stretches())
def test_a_stretch_begins_with_a_range_of_equally_long_numbers_in_order(
    stretch: tuple[int, int, int],
) -> None:
    first, last, total = stretch
    found = beginning(first, last, total)
    if found is not None:
        wanted = [n for n in held(found, total) if len(str(n)) == len(str(first))]
        assert wanted == [n for n in range(first, last + 1) if len(str(n)) == len(str(first))]


def test_the_latest_events_of_a_long_aggregate_are_a_range_and_its_first_are_not() -> None:
    assert worthwhile(50_001, 50_100, 60_000) == [KeyRange("50001", "50100", 111)]
    assert worthwhile(501, 600, 60_000) == []
    assert beginning(501, 600, 60_000) is None


def test_an_aggregate_that_is_read_whole_is_one_range() -> None:
    assert worthwhile(1, 25, 25) == [KeyRange("0", ":", 25)]
    assert worthwhile(3, 1_200, 1_200) == [KeyRange("0", ":", 1_200)]


def test_of_more_events_than_are_sorted_the_longest_numbers_are_a_range() -> None:
    assert worthwhile(1, 25_000, 25_000) == [KeyRange("10000", "25000", 16_667)]
