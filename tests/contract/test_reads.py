"""Get, BatchGet and Query answer alike on every store."""

from __future__ import annotations

import pytest

from epochal.plan.ops import BatchGet, Get
from epochal.plan.values import binary, mapping, number, sequence, text
from tests.contract.places import Place, padded

RICH = {
    "s": text("grüße, 世界 🜁"),
    "n": number(2_147_483_646),
    "b": binary(bytes(range(256))),
    "l": sequence([text("a"), number(1), mapping({"x": binary(b"\0")})]),
    "m": mapping({"deep": mapping({"er": sequence([])})}),
    "t": {"BOOL": True},
    "z": {"NULL": True},
}


def test_an_item_comes_back_as_it_was_put_whatever_its_types(place: Place) -> None:
    item = place.put(**RICH)

    assert place.get() == item


def test_an_absent_item_is_found_to_be_none(place: Place) -> None:
    place.put(1)

    assert place.get(0) is None


@pytest.mark.parametrize("consistent", [True, False])
def test_a_read_may_be_strong_or_not(place: Place, consistent: bool) -> None:
    item = place.put(n=number(1))

    assert place.execute(Get(table=place.table, key=place.key(), consistent=consistent)).item == item


def test_a_batch_brings_the_items_that_exist_and_no_others(place: Place) -> None:
    stored = [place.put(sort, n=number(sort)) for sort in (1, 3, 5)]
    keys = tuple(place.key(sort) for sort in range(7))

    found = place.execute(BatchGet(table=place.table, keys=keys))

    assert sorted(found.items, key=lambda item: int(item["i"]["N"])) == stored
    assert found.last is None


def test_a_batch_of_a_hundred_large_items_is_complete(place: Place) -> None:
    """16 MB are more than one answer of DynamoDB's holds; what it leaves out is asked for again."""
    count, size = (60, 390_000) if place.store == "ddbl" else (10, 390_000)
    for sort in range(count):
        place.store_item(padded(place.key(sort), size))
    keys = tuple(place.key(sort) for sort in range(count))

    found = place.execute(BatchGet(table=place.table, keys=keys))

    assert sorted(int(item["i"]["N"]) for item in found.items) == list(range(count))


def sorts(items: tuple[dict, ...]) -> list[int]:
    return [int(item["i"]["N"]) for item in items]


@pytest.mark.parametrize("forward", [True, False])
def test_a_query_orders_by_number_not_by_text(place: Place, forward: bool) -> None:
    for sort in (10, 9, 100, 0, 2_147_483_647):
        place.put(sort)

    ordered = [0, 9, 10, 100, 2_147_483_647]
    assert sorts(place.query(forward=forward).items) == (ordered if forward else ordered[::-1])


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (2, 4, [2, 3, 4]),
        (0, 0, [0]),
        (4, 99, [4, 5]),
        (6, 99, []),
    ],
    ids=str,
)
@pytest.mark.parametrize("forward", [True, False])
def test_bounds_are_inclusive_in_both_directions(
    place: Place, low: int, high: int, expected: list[int], forward: bool
) -> None:
    for sort in range(6):
        place.put(sort)

    found = place.query(sort=("i", number(low), number(high)), forward=forward)

    assert sorts(found.items) == (expected if forward else expected[::-1])
    assert found.last is None


def test_a_query_sees_only_its_own_partition(place: Place) -> None:
    place.put(0)
    place.at(place.partition + "0").put(1)
    place.at(place.partition[:-1]).put(2)

    assert sorts(place.query().items) == [0]


def test_a_query_of_a_partition_that_does_not_exist_is_empty(place: Place) -> None:
    found = place.query()

    assert (found.items, found.last) == ((), None)


@pytest.mark.parametrize("forward", [True, False])
def test_a_limit_ends_a_page_and_names_the_key_to_go_on_after(place: Place, forward: bool) -> None:
    for sort in range(5):
        place.put(sort)
    ordered = list(range(5)) if forward else list(range(4, -1, -1))

    first = place.query(limit=2, forward=forward)
    second = place.query(limit=2, forward=forward, after=first.last)

    assert sorts(first.items) == ordered[:2]
    assert first.last == place.key(ordered[1])
    assert sorts(second.items) == ordered[2:4]


def test_a_limit_reached_at_the_last_item_still_names_a_key_and_nothing_follows_it(place: Place) -> None:
    for sort in range(2):
        place.put(sort)

    exact = place.query(limit=2)
    rest = place.query(limit=2, after=exact.last)

    assert exact.last == place.key(1)
    assert (rest.items, rest.last) == ((), None)


@pytest.mark.parametrize("forward", [True, False])
def test_the_key_to_go_on_after_works_within_bounds(place: Place, forward: bool) -> None:
    for sort in range(8):
        place.put(sort)
    bounds = ("i", number(2), number(6))

    first = place.query(sort=bounds, limit=2, forward=forward)
    rest = place.query(sort=bounds, after=first.last, forward=forward)

    ordered = [2, 3, 4, 5, 6] if forward else [6, 5, 4, 3, 2]
    assert sorts(first.items) + sorts(rest.items) == ordered


def test_a_page_may_go_on_after_a_key_that_has_been_deleted_since(place: Place) -> None:
    for sort in (0, 2, 3):
        place.put(sort)

    assert sorts(place.query(after=place.key(1)).items) == [2, 3]


@pytest.mark.parametrize("forward", [True, False])
def test_more_than_a_megabyte_comes_in_several_pages_that_join_without_gap_or_overlap(
    place: Place, forward: bool
) -> None:
    for sort in range(9):
        place.store_item(padded(place.key(sort), 300_000))

    pages, last = [], None
    while True:
        page = place.query(after=last, forward=forward)
        pages.append(sorts(page.items))
        last = page.last
        if last is None:
            break

    ordered = list(range(9)) if forward else list(range(8, -1, -1))
    assert [sort for page in pages for sort in page] == ordered
    # A page ends with the item that crosses 1 MB; the embedded AWS ends it one earlier.
    assert max(map(len, pages)) == (3 if place.store == "ministack" else 4)


def test_counting_names_how_many_there_are_and_brings_none(place: Place) -> None:
    for sort in range(6):
        place.put(sort)

    part = place.query(only_count=True, limit=4)
    rest = place.query(only_count=True, after=part.last)

    assert (part.items, part.counted, part.last) == ((), 4, place.key(3))
    assert (rest.items, rest.counted, rest.last) == ((), 2, None)
    assert place.query().counted is None


def test_counting_ends_at_a_megabyte_and_goes_on(place: Place) -> None:
    for sort in range(4):
        place.store_item(padded(place.key(sort), 390_000))

    part = place.query(only_count=True)
    rest = place.query(only_count=True, after=part.last)

    read = place.query()
    assert 0 < len(read.items) < 4
    assert (part.counted, rest.counted, rest.last) == (len(read.items), 4 - len(read.items), None)
    assert part.units == read.units
