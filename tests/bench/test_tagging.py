from pathlib import Path

import pytest

from bench import tag_races
from bench.index_capacity import index_units
from bench.tagging import SPECS, asking, event, opened, price, requests, units_by_tags, units_of_ten
from epochal.contrib.sekiban.items import EVENTS, TAGS
from epochal.plan.ops import Check, Transact
from epochal.plan.values import item_size, write_units
from epochal.testing.memory import MemoryTables

COST = Path(__file__).parents[2] / "docs" / "reference" / "cost.md"


def documented() -> list[tuple[str, ...]]:
    """The table of the section on tagged events in Sekiban's tables, without its heading."""
    section = COST.read_text().split("## Tagged events in Sekiban's tables", 1)[1].split("\n## ", 1)[0]
    return [cells(line) for line in section.splitlines() if line.startswith("| ")][1:]


def cells(line: str) -> tuple[str, ...]:
    return tuple(cell.strip() for cell in line.strip("|").split("|"))


def test_the_documented_figures_are_the_librarys():
    by_tags = [(tags, whole, with_heads) for tags, _, _, _, whole, _, _, _, with_heads in units_by_tags()]
    assert documented() == by_tags[:4]
    (of_ten,) = (without for tags, without, _ in units_of_ten() if tags == "1")
    assert f"Ten events in one append with one tag take {of_ten} units each" in COST.read_text()


def test_a_conditional_append_is_one_request_with_the_position_of_its_read_and_three_without():
    took = dict(requests())

    assert took["with a condition, and the position of its read"] == "1"
    assert took["with a condition, no position"] == "3"


@pytest.mark.parametrize("tags", [1, 2, 5, 10])
def test_each_tag_costs_five_units_and_the_event_three(tags):
    assert price(tags, type_heads=False).whole == 3 + 5 * tags
    assert price(tags, type_heads=True).whole == 3 + 5 * tags + 8


def test_a_fence_among_an_events_own_tags_costs_nothing_and_any_other_two_units():
    tables = MemoryTables(SPECS)
    store = opened(tables.execute, EVENTS.kind, TAGS.kind, type_heads=False)
    store.append([event(2)])

    def spent(tags, query):
        position = store.read(query).position
        before = store.driver.meter.units.write
        store.append([event(tags)], fail_if=query, after=position)
        return store.driver.meter.units.write - before

    assert spent(2, asking(2)) == price(2, type_heads=False).tables
    assert spent(0, asking(2)) == price(0, type_heads=False).tables + 2


def written(tags: int, *, type_heads: bool) -> list[Transact]:
    """Two appends, the first of which makes the heads."""
    tables, made = MemoryTables(SPECS), []

    def execute(op):
        made.extend([op] if isinstance(op, Transact) else [])
        return tables.execute(op)

    store = opened(execute, EVENTS.kind, TAGS.kind, type_heads=type_heads)
    for number in range(2):
        store.append([event(tags, number)])
    return made


@pytest.mark.parametrize("type_heads", [False, True], ids=["tags only", "with type heads"])
@pytest.mark.parametrize("tags", [0, 1, 3])
def test_every_item_of_an_append_and_its_index_entries_are_charged_as_reckoned(ddbl_tables, tags, type_heads):
    """Each written alone, since DynamoDB Local doubles transactions once too often."""
    names = {spec.kind: ddbl_tables.create(spec) for spec in SPECS.values()}
    stored = {}
    for op in written(tags, type_heads=type_heads):
        for put in op.writes:
            assert not isinstance(put, Check)
            place = (put.table, put.item["pk"]["S"], put.item["sk"]["S"])
            before, stored[place] = stored.get(place), put.item
            charged = ddbl_tables.client.put_item(
                TableName=names[put.table], Item=put.item, ReturnConsumedCapacity="INDEXES"
            )["ConsumedCapacity"]
            largest = max(item_size(put.item), 0 if before is None else item_size(before))
            assert charged["Table"]["CapacityUnits"] == write_units(largest)
            indexes = charged.get("GlobalSecondaryIndexes", {}).values()
            assert sum(index["CapacityUnits"] for index in indexes) == index_units(
                SPECS[put.table], before, put.item
            )


def test_an_index_entry_is_charged_as_reckoned_when_it_appears_changes_moves_or_goes(ddbl_tables):
    name = ddbl_tables.create(EVENTS)
    key = {"pk": {"S": "EVENT#1"}, "sk": {"S": "EVENT#1"}}
    here = {"gsi1pk": {"S": "ALL_EVENTS"}, "sortableUniqueId": {"S": "1"}}
    moved = {"gsi1pk": {"S": "ALL_EVENTS#1"}, "sortableUniqueId": {"S": "1"}}
    large = {"payload": {"S": "x" * 3000}}
    before, seen = None, []
    for left in (
        key,
        {**key, **here},
        {**key, **here},
        {**key, **here, **large},
        {**key, **moved},
        key,
        None,
    ):
        if left is None:
            answer = ddbl_tables.client.delete_item(TableName=name, Key=key, ReturnConsumedCapacity="INDEXES")
        else:
            answer = ddbl_tables.client.put_item(TableName=name, Item=left, ReturnConsumedCapacity="INDEXES")
        indexes = answer["ConsumedCapacity"].get("GlobalSecondaryIndexes", {}).values()
        seen.append((sum(index["CapacityUnits"] for index in indexes), index_units(EVENTS, before, left)))
        before = left

    assert seen == [(0, 0), (1, 1), (0, 0), (3, 3), (4, 4), (1, 1), (0, 0)]


def test_unrelated_appends_of_many_writers_take_two_requests_each_and_none_fails(ddbl):
    assert tag_races.contend(ddbl, type_heads=False, rounds=2) == 2.0
