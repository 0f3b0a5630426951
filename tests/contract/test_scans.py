"""A scan brings every item of a table once, alike on every store."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from epochal.contrib.sekiban.items import EVENTS, TAGS
from epochal.dynamo.interpreter import interpreter
from epochal.plan.conditions import Absent, equals
from epochal.plan.ops import Delete, Execute, Items, Put, Query, Scan
from epochal.plan.values import Item, Key, item_size, number, read_units, text
from epochal.testing.memory import MemoryTables
from tests.contract.places import padded
from tests.support.tables import Tables


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A store with two empty tables of a test's own, both with an index by group."""

    execute: Execute
    events: str
    tags: str

    def put(self, table: str, *items: Item) -> list[Item]:
        for item in items:
            self.execute(Put(table=table, item=item))
        return list(items)

    def scan(self, table: str, **options: object) -> Items:
        return self.execute(Scan(table=table, **options))

    def all(self, table: str, **options: object) -> list[Item]:
        items, last = [], None
        while True:
            page = self.scan(table, after=last, **options)
            items += page.items
            last = page.last
            if last is None:
                return items


@pytest.fixture(
    params=[
        "memory",
        pytest.param("ddbl", marks=pytest.mark.ddbl),
        pytest.param("embedded", marks=pytest.mark.embedded),
    ]
)
def stored(request: pytest.FixtureRequest) -> Iterator[Stored]:
    if request.param == "memory":
        tables = MemoryTables({"events": EVENTS, "tags": TAGS})
        yield Stored(execute=tables.execute, events="events", tags="tags")
        return
    with Tables(request.getfixturevalue(request.param)) as made:
        yield Stored(execute=interpreter(made.client), events=made.create(EVENTS), tags=made.create(TAGS))


def key(partition: int, sort: int = 0) -> Key:
    return {"pk": text(f"P#{partition}"), "sk": text(f"{sort:03d}")}


def entry(number_: int) -> Item:
    """An item that is in the index by group."""
    return {
        **key(number_ % 4, number_),
        "tagGroup": text(f"g{number_ % 2}"),
        "tagString": text(f"t{number_}"),
        "body": text("x"),
    }


def by_key(items: list[Item]) -> list[Item]:
    return sorted(items, key=lambda item: (item["pk"]["S"], item["sk"]["S"]))


def test_a_scan_brings_every_item_of_a_table_whatever_its_partition(stored: Stored) -> None:
    items = stored.put(stored.tags, *map(entry, range(10)))

    assert by_key(stored.all(stored.tags)) == by_key(items)


@pytest.mark.parametrize("consistent", [True, False])
def test_a_scan_of_an_empty_table_brings_nothing(stored: Stored, consistent: bool) -> None:
    found = stored.scan(stored.tags, consistent=consistent)

    assert (found.items, found.last) == ((), None)


@pytest.mark.parametrize("limit", [1, 3])
def test_pages_of_a_limited_scan_join_without_gap_or_overlap(stored: Stored, limit: int) -> None:
    items = stored.put(stored.tags, *map(entry, range(10)))

    assert len(stored.scan(stored.tags, limit=limit).items) == limit
    assert by_key(stored.all(stored.tags, limit=limit)) == by_key(items)


def test_segments_share_a_table_out_between_them(stored: Stored) -> None:
    items = stored.put(stored.tags, *(key(partition, sort) for partition in range(30) for sort in (1, 2)))

    segments = [stored.all(stored.tags, segment=(at, 4), limit=3) for at in range(4)]

    assert by_key([item for segment in segments for item in segment]) == by_key(items)
    assert max(map(len, segments)) < len(items)


def test_a_scan_goes_on_after_a_key_that_has_been_deleted_since(stored: Stored) -> None:
    items = stored.put(stored.tags, *map(entry, range(6)))
    first = stored.scan(stored.tags, limit=2)
    assert first.last is not None
    stored.execute(Delete(table=stored.tags, key=first.last))

    rest = stored.scan(stored.tags, after=first.last)

    assert by_key([*first.items, *rest.items]) == by_key(items)


def test_what_a_filter_leaves_out_is_read_and_paid_for_and_counts_towards_the_limit(stored: Stored) -> None:
    wanted = stored.put(stored.tags, *({**key(at), "n": number(1)} for at in range(3)))
    stored.put(stored.tags, *(padded({**key(at), "n": number(2)}, 9_000) for at in range(3, 6)))
    only = equals("n", number(1))

    assert by_key(stored.all(stored.tags, where=only)) == by_key(wanted)
    assert by_key(stored.all(stored.tags, where=only, limit=2)) == by_key(wanted)
    assert stored.scan(stored.tags, where=Absent("pk"), limit=4).items == ()
    assert stored.scan(stored.tags, where=Absent("pk"), limit=4).last is not None


def test_a_scan_of_an_index_brings_the_items_that_are_in_it_as_they_are_in_it(stored: Stored) -> None:
    entries = stored.put(stored.tags, *map(entry, range(7)))
    stored.put(stored.tags, key(99))
    keys = [{name: item[name] for name in ("pk", "sk", "tagGroup", "tagString")} for item in entries]

    found = stored.all(stored.tags, index="GSI1", consistent=False, limit=2)

    assert by_key(found) == by_key(keys)


def test_a_scan_of_an_index_of_everything_brings_whole_items(stored: Stored) -> None:
    items = stored.put(
        stored.events,
        *(
            {**key(at), "gsi1pk": text("ALL"), "sortableUniqueId": text(str(at)), "body": text("x")}
            for at in range(3)
        ),
    )

    assert by_key(stored.all(stored.events, index="GSI1", consistent=False)) == by_key(items)


def test_more_than_a_megabyte_comes_in_several_pages(stored: Stored) -> None:
    items = stored.put(stored.tags, *(padded(key(at), 300_000) for at in range(9)))

    first = stored.scan(stored.tags)

    assert len(first.items) < len(items)
    assert by_key(stored.all(stored.tags)) == by_key(items)


@pytest.mark.parametrize("stored", ["memory", pytest.param("ddbl", marks=pytest.mark.ddbl)], indirect=True)
@pytest.mark.parametrize("consistent", [True, False])
def test_a_scan_costs_what_it_reads_as_a_query_of_the_same_does(stored: Stored, consistent: bool) -> None:
    items = stored.put(stored.tags, *(padded(key(0, at), 3_000) for at in range(5)))
    expected = read_units(sum(map(item_size, items)), consistent=consistent)
    query = Query(table=stored.tags, partition=("pk", text("P#0")), consistent=consistent)

    assert stored.scan(stored.tags, consistent=consistent).units.read == expected
    assert stored.execute(query).units.read == expected
    filtered = stored.scan(stored.tags, consistent=consistent, where=Absent("pk"))
    assert (filtered.items, filtered.units.read) == ((), expected)
