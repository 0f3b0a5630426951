"""One indexer over the heads of all three layouts."""

from __future__ import annotations

import pytest

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.errors import InvalidInput
from epochal.feed.indexer import Indexer, sources_of
from epochal.feed.stream_records import Record
from epochal.index import ingestion
from epochal.index.epochs import EpochLimits
from epochal.layout import healing
from epochal.layout.registry import partition_of, partitions_of
from epochal.plan.ops import BatchGet, Delete, Query
from epochal.plan.values import Item, number, text
from epochal.settings import Settings
from tests.layouts.stores import ALICE, BOB, HEADS, JOURNAL, START, Layouts, of_table, tag_site


@pytest.fixture
def layouts() -> Layouts:
    return Layouts()


def dropped(layouts: Layouts, table: str) -> None:
    """What the table's stream carried until now never arrives."""
    layouts.records(table)


def happened(kind: str) -> AggregateEvent:
    """An event of an aggregate, to be appended without a snapshot."""
    return AggregateEvent(type=kind, data=b"{}")


# ------------------------------------------------------------------------------------------------------------- sources


def test_each_layouts_appends_are_in_the_partitions_of_its_source_and_in_no_other(layouts: Layouts) -> None:
    layouts.append("Order-1", "Placed", "Paid")
    layouts.persist(ALICE, "Registered")
    layouts.persist(ALICE, "Renamed", "Closed")
    layouts.tag("Enrolled", "course:1", "student:7")
    layouts.tag("Enrolled", "course:1")
    layouts.index()
    assert layouts.feed("tips") == [("Order-1", 0, "Placed"), ("Order-1", 1, "Paid")]
    alice = str(ALICE)
    assert layouts.feed("journal") == [(alice, 0, "Registered"), (alice, 1, "Renamed"), (alice, 2, "Closed")]
    assert layouts.feed("dcb") == [
        ("course:1", 0, "Enrolled"),
        ("student:7", 0, "Enrolled"),
        ("course:1", 1, "Enrolled"),
    ]


@pytest.mark.parametrize("source", START)
def test_a_streams_partition_is_the_sources_base_and_its_own_number_of_partitions(source: str) -> None:
    layouts = Layouts(partitions=3)
    for k in range(12):
        layouts.append(f"Order-{k}", "T")
        layouts.persist(AggregateId(type="order", value=str(k)), "T")
        layouts.tag("T", f"order:{k}")
    layouts.index()
    tails = [each.partition for each in layouts.reader().partitions()]
    assert tails == [base + k for base in START.values() for k in range(3)]
    for k in range(3):
        found = {item.stream for item in layouts.reader().page(START[source] + k).items}
        assert found
        assert {partition_of(stream, 3, START[source]) for stream in found} == {START[source] + k}


def test_records_of_a_table_that_is_no_sources_are_an_error_and_not_an_empty_feed(layouts: Layouts) -> None:
    record = Record(table="events", sequence_number="1", image={"pk": text("EVENT#1"), "sk": text("EVENT#1")})
    with pytest.raises(InvalidInput, match="'events'"):
        layouts.indexer().index([record])


@pytest.mark.parametrize(
    ("source", "variable"),
    [
        ("tips", "EPOCHAL_TIPS_PARTITIONS"),
        ("journal", "EPOCHAL_JOURNAL_PARTITIONS"),
        ("dcb", "EPOCHAL_DCB_PARTITIONS"),
    ],
)
def test_another_number_of_partitions_is_refused_by_the_name_of_its_setting(
    layouts: Layouts, source: str, variable: str
) -> None:
    layouts.indexer().register()
    layouts.indexer().register()
    counts = {name: 2 if name == source else 1 for name in START}
    settings = Settings.of(
        tips_table="tips",
        journal_table="journal",
        snapshot_table="snapshot",
        events_table="events",
        tags_table="tags",
        tips_partitions=counts["tips"],
        journal_partitions=counts["journal"],
        dcb_partitions=counts["dcb"],
    )
    other = Indexer(driver=layouts.driver, index_table="index", sources=sources_of(settings))
    with pytest.raises(InvalidInput, match="must be 1, as recorded in the index") as refusal:
        other.register()
    assert refusal.value.field == variable


def test_a_source_that_is_deployed_later_is_recorded_beside_the_others(layouts: Layouts) -> None:
    tips, journal, dcb = layouts.sources
    for sources in ((tips,), (tips, journal), (dcb,)):
        Indexer(driver=layouts.driver, index_table="index", sources=sources).register()
    assert [each.partition for each in layouts.reader().partitions()] == list(START.values())


def test_a_deployment_has_a_source_for_each_table_of_heads_that_it_names() -> None:
    assert sources_of(Settings()) == ()
    (tips,) = sources_of(Settings.of(tips_table="t"))
    assert (tips.name, tips.table) == ("tips", "t")
    everything = Settings.of(tips_table="t", snapshot_table="s", tags_table="g", dcb_partitions=5)
    assert [(each.name, each.table, each.partitions) for each in sources_of(everything)] == [
        ("tips", "t", 1),
        ("journal", "s", 1),
        ("dcb", "g", 5),
    ]


# ------------------------------------------------------------------------------------------------------------- journal


def test_a_gap_of_an_aggregate_is_read_from_the_journal_by_key(layouts: Layouts) -> None:
    for k in range(60):
        layouts.persist(ALICE, f"T{k}")
    dropped(layouts, "snapshot")
    layouts.persist(ALICE, "last")
    start = len(layouts.ops)
    layouts.index()
    assert layouts.feed("journal") == [(str(ALICE), k, f"T{k}") for k in range(60)] + [
        (str(ALICE), 60, "last")
    ]
    asked = of_table(layouts.ops[start:], "journal")
    assert all(isinstance(op, BatchGet) and op.consistent for op in asked)


def test_an_aggregate_that_another_library_wrote_is_indexed_from_its_first_event(layouts: Layouts) -> None:
    layouts.persist_elsewhere(BOB, *"abc")
    layouts.index()
    assert layouts.feed("journal") == [(str(BOB), 0, "a"), (str(BOB), 1, "b"), (str(BOB), 2, "c")]
    layouts.persist_elsewhere(BOB, *"de")
    layouts.index()
    assert [kind for _, _, kind in layouts.feed("journal")] == list("abcde")


def test_libraries_that_take_turns_on_an_aggregate_leave_no_gap_and_no_double(layouts: Layouts) -> None:
    expected: list[str] = []
    layouts.persist(ALICE, "0")
    expected.append("0")
    for k in range(1, 40):
        kind = str(k)
        expected.append(kind)
        if k % 3:
            layouts.persist_elsewhere(ALICE, kind)
        else:
            layouts.aggregates.append(ALICE, [happened(kind)])
        if k % 7 == 0:
            layouts.index()
    layouts.index()
    assert [(index, kind) for _, index, kind in layouts.feed("journal")] == list(enumerate(expected))


def test_a_batch_that_holds_their_heads_and_ours_indexes_each_event_once(layouts: Layouts) -> None:
    layouts.persist_elsewhere(ALICE, "a", "b")
    layouts.aggregates.append(ALICE, [happened("c")])
    layouts.persist_elsewhere(ALICE, "d")
    layouts.aggregates.append(ALICE, [happened("e"), happened("f")])
    records = layouts.records("snapshot")
    indexer = layouts.indexer()
    indexer.index(records)
    assert [kind for _, _, kind in layouts.feed("journal")] == list("abcdef")
    for again in (records, records[2:], records[:1]):
        assert indexer.index(again).by_partition[10_000].events == 0


@pytest.mark.slow
def test_a_head_of_another_library_costs_a_request_or_two_and_not_the_whole_journal(layouts: Layouts) -> None:
    layouts.persist_elsewhere(BOB, *map(str, range(300)))
    layouts.index()
    layouts.persist_elsewhere(BOB, "one more")
    records, start = layouts.records("snapshot"), len(layouts.ops)
    layouts.indexer().index(records)
    asked = [op for op in of_table(layouts.ops[start:], "journal") if isinstance(op, BatchGet)]
    assert [len(op.keys) for op in asked] == [2]


def test_kept_copies_of_snapshots_tell_nothing(layouts: Layouts) -> None:
    copy: Item = {
        **JOURNAL.keys.key(ALICE, 3),
        "aid": text(str(ALICE)),
        "seq_nr": number(3),
        "version": number(3),
    }
    report = layouts.indexer().index([Record(table="snapshot", sequence_number="1", image=copy)])
    assert (report.by_partition, report.set_aside, layouts.ops) == ({}, 0, [])


def test_an_event_missing_from_the_journal_stops_its_aggregate_alone(layouts: Layouts) -> None:
    layouts.persist(ALICE, "a", "b", "c")
    dropped(layouts, "snapshot")
    layouts.persist(ALICE, "d")
    layouts.persist(BOB, "x")
    layouts.tables.execute(Delete(table="journal", key=JOURNAL.keys.key(ALICE, 2)))
    report = layouts.indexer().index(layouts.records("snapshot"))
    assert (report.failed, report.set_aside) == ((), 1)
    assert layouts.feed("journal") == [(str(BOB), 0, "x")]


def test_an_aggregate_whose_events_are_gone_is_set_aside_and_not_taken_for_an_empty_one(
    layouts: Layouts,
) -> None:
    layouts.persist_elsewhere(BOB, "a")
    layouts.tables.execute(Delete(table="journal", key=JOURNAL.keys.key(BOB, 1)))
    assert layouts.indexer().index(layouts.records("snapshot")).set_aside == 1


# ----------------------------------------------------------------------------------------------------------------- dcb


def test_an_event_without_tags_is_in_the_feed_under_the_reserved_tag(layouts: Layouts) -> None:
    layouts.tag("Announced")
    layouts.tag("Announced")
    layouts.index()
    assert layouts.feed("dcb") == [("", 0, "Announced"), ("", 1, "Announced")]


def test_heads_by_type_and_other_tenants_heads_are_no_streams_of_the_feed() -> None:
    layouts = Layouts(site=tag_site("mine", type_heads=True))
    layouts.tag("Enrolled", "course:1")
    Layouts(tables=layouts.tables, site=tag_site("theirs")).tag("Enrolled", "course:1")
    Layouts(tables=layouts.tables, site=tag_site()).tag("Enrolled", "course:1")
    layouts.index()
    assert layouts.feed("dcb") == [("course:1", 0, "Enrolled")]


@pytest.mark.parametrize("service", ["", "mine"])
def test_a_gap_of_a_tag_is_read_from_its_entries(service: str) -> None:
    layouts = Layouts(site=tag_site(service))
    for k in range(30):
        layouts.tag(f"T{k}", "course:1", f"student:{k % 2}")
    dropped(layouts, "tags")
    layouts.tag("last", "course:1")
    start = len(layouts.ops)
    layouts.index()
    kinds = [kind for stream, _, kind in layouts.feed("dcb") if stream == "course:1"]
    assert kinds == [f"T{k}" for k in range(30)] + ["last"]
    assert all(isinstance(op, Query) and op.consistent for op in of_table(layouts.ops[start:], "tags"))


def test_an_expired_event_is_healed_too_since_its_entry_outlives_it(layouts: Layouts) -> None:
    for k in range(4):
        layouts.tag(f"T{k}", "course:1")
    dropped(layouts, "tags")
    for item in list(layouts.tables.items("events")):
        layouts.tables.execute(Delete(table="events", key={name: item[name] for name in ("pk", "sk")}))
    layouts.tag("last", "course:1")
    layouts.index()
    assert [kind for _, _, kind in layouts.feed("dcb")] == ["T0", "T1", "T2", "T3", "last"]


def test_a_tag_without_one_of_its_entries_is_set_aside(layouts: Layouts) -> None:
    for k in range(4):
        layouts.tag(f"T{k}", "course:1")
    dropped(layouts, "tags")
    layouts.tag("last", "course:1")
    (second,) = [item for item in layouts.tables.items("tags") if item.get("tagIndex") == number(1)]
    layouts.tables.execute(Delete(table="tags", key={name: second[name] for name in ("pk", "sk")}))
    heads = [record for record in layouts.records("tags") if record.image["sk"] == text("#")]
    assert layouts.indexer().index(heads).set_aside == 1
    assert layouts.feed("dcb") == []


# -------------------------------------------------------------------------------------------------------------- poison

BROKEN: dict[str, Item] = {
    "tips": {"p": text("Order-1"), "i": number(2_147_483_647), "n": number(1), "c": {"L": [text("a")]}},
    "snapshot": {
        **JOURNAL.keys.key(ALICE, 0),
        "aid": text(str(ALICE)),
        "seq_nr": number(0),
        "version": number(1),
        "head_version": number(1),
    },
    "tags": {"pk": text("TAG#course:1"), "sk": text("#"), "n": number(1), "a": number(3)},
}


@pytest.mark.parametrize(("table", "source"), list(zip(HEADS, START, strict=True)))
def test_a_malformed_head_is_set_aside_beside_those_of_its_own_source(
    layouts: Layouts, table: str, source: str
) -> None:
    records = [Record(table=table, sequence_number="7", image=BROKEN[table])]
    assert layouts.indexer().index(records).set_aside == 1
    assert layouts.indexer().index(records).set_aside == 0
    poison = [
        item["p"]["S"] for item in layouts.tables.items("index") if item["p"]["S"].startswith("$Poison")
    ]
    assert poison == [f"$Poison-{START[source]}"]


def test_records_of_two_tables_with_one_number_are_both_set_aside(layouts: Layouts) -> None:
    records = [Record(table=table, sequence_number="7", image=BROKEN[table]) for table in HEADS]
    assert layouts.indexer().index(records).set_aside == 3


# ---------------------------------------------------------------------------------------------------------- large gaps


@pytest.mark.slow
@pytest.mark.parametrize("source", START)
def test_a_gap_larger_than_a_piece_is_healed_piece_by_piece_and_counted_once(
    layouts: Layouts, source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(healing, "PIECE", 400)
    monkeypatch.setattr(ingestion, "PIECE", 400)
    layouts.limits = EpochLimits(entries=2)
    for k in range(400):
        match source:
            case "tips":
                layouts.append("Order-1", f"T{k}")
            case "journal":
                layouts.persist(ALICE, f"T{k}")
            case _:
                layouts.tag(f"T{k}", "course:1")
    table = dict(zip(START, HEADS, strict=True))[source]
    heads = layouts.records(table)
    report = layouts.indexer().index(heads[-1:])
    ingested = report.by_partition[START[source]]
    assert (ingested.events, ingested.healed, ingested.pruned) == (400, 399, 0)
    assert [(index, kind) for _, index, kind in layouts.feed(source)] == [(k, f"T{k}") for k in range(400)]
    entries = [len(item["e"]["L"]) for item in layouts.tables.items("index") if "Epoch" in item["p"]["S"]]
    assert sum(entries) >= 2


@pytest.mark.parametrize(
    "settings",
    [
        Settings(),
        Settings.of(tips_table="t", tips_partitions=3),
        Settings.of(snapshot_table="s", journal_partitions=2, dcb_partitions=9),
        Settings.of(tips_table="t", snapshot_table="s", tags_table="g", dcb_partitions=5),
    ],
)
def test_its_partitions_are_those_of_its_sources(settings: Settings) -> None:
    assert partitions_of(settings) == tuple(
        source.base + number for source in sources_of(settings) for number in range(source.partitions)
    )
