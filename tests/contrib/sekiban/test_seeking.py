"""Finding a tag's entries by index: right in every distribution of sortable ids, and cheap in the usual ones."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from epochal.contrib.sekiban.entries import NEAR, entries
from epochal.contrib.sekiban.items import write_entry
from epochal.errors import CorruptData
from epochal.model.events import Recorded
from epochal.plan.ops import Delete, Op, Put, Reply
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.layouts.stores import tag_site

SITE = tag_site()
TAG = "course:1"


def steady(k: int) -> int:
    return 10**28 + k * 10**18


def bursts(k: int) -> int:
    """Half a year of silence after every 50."""
    return 10**28 + (k // 50) * 10**26 + k


def ever_faster(k: int) -> int:
    return 10**28 + 10**27 - 10**27 // (k + 1) + k


def all_at_once_at_the_end(k: int) -> int:
    return 7 * 10**29 + k if k else 1


class Tag:
    """A tag of so many entries, with their sortable ids where `place` has them."""

    def __init__(self, count: int, place: Callable[[int], int]) -> None:
        self.tables: MemoryTables = memory_tables()
        self.ops: list[Op] = []
        for index in range(count):
            self.put(index, place(index))

    def put(self, index: int | None, place: int) -> None:
        event = Recorded(
            id=f"{place}",
            place=str(f"{place:030d}"),
            type=f"T{index}",
            data=b"{}",
            tags=(TAG,),
            timestamp="2013-01-01T00:00:00.0000000+00:00",
        )
        item = dict(write_entry(SITE.keys, TAG, index or 0, event))
        if index is None:
            del item["tagIndex"]
        self.tables.execute(Put(table="tags", item=item))

    def execute(self, op: Op) -> Reply:
        self.ops.append(op)
        return self.tables.execute(op)

    def read(self, first: int, end: int, **options: int) -> list[str]:
        driver = Driver(execute=self.execute, meter=Meter())
        found: list[str] = []
        while first < end:
            page = driver.run(entries(SITE, TAG, first, end, **options))  # type: ignore[arg-type]
            assert [entry.index for entry in page] == list(range(first, first + len(page)))
            found += [entry.event_type for entry in page]
            first += len(page)
        return found


@pytest.mark.slow
@pytest.mark.parametrize("place", [steady, bursts, ever_faster, all_at_once_at_the_end])
def test_entries_are_found_by_index_however_their_ids_are_spread(place: Callable[[int], int]) -> None:
    tag = Tag(3_000, place)
    for first in (0, 1, NEAR, NEAR + 1, 777, 1_499, 2_700, 2_998, 2_999):
        start = len(tag.ops)
        assert tag.read(first, min(first + 5, 3_000)) == [
            f"T{k}" for k in range(first, min(first + 5, 3_000))
        ]
        assert len(tag.ops) - start <= 60
    assert tag.read(100, 2_950) == [f"T{k}" for k in range(100, 2_950)]


def test_in_a_steady_tag_four_requests_find_any_entry() -> None:
    tag = Tag(3_000, steady)
    for first in range(NEAR + 1, 3_000, 97):
        start = len(tag.ops)
        tag.read(first, first + 1)
        assert len(tag.ops) - start <= 4


def test_entries_of_the_original_library_among_ours_are_passed_over() -> None:
    tag = Tag(900, steady)
    rng = random.Random(1)
    for _ in range(400):
        tag.put(None, steady(rng.randrange(900)) + 1 + rng.randrange(1_000))
    for first in (0, 150, 433, 895):
        assert tag.read(first, first + 5) == [f"T{k}" for k in range(first, first + 5)]


@pytest.mark.parametrize("missing", [0, 5, 600])
def test_an_entry_that_is_missing_is_corruption(missing: int) -> None:
    tag = Tag(700, steady)
    (item,) = [item for item in tag.tables.items("tags") if item["tagIndex"]["N"] == str(missing)]
    tag.tables.execute(Delete(table="tags", key={name: item[name] for name in ("pk", "sk")}))
    with pytest.raises(CorruptData, match=f"event {missing}"):
        tag.read(missing, missing + 3)
    with pytest.raises(CorruptData, match=f"event {missing}"):
        tag.read(max(0, missing - 3), missing + 3)


def test_an_entry_beyond_the_last_is_corruption() -> None:
    with pytest.raises(CorruptData, match="event 10"):
        Tag(10, steady).read(10, 11)
