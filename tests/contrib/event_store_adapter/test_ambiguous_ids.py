"""Aggregates whose ids could be read in two ways: `user-account-1` is account 1 of `user-account`, or account-1 of
`user`. One reading holds for a table; what was written under another is set aside, never mixed in and never lost.
"""

from __future__ import annotations

import pytest

from epochal.care.quarantined import PoisonRecords
from epochal.contrib.event_store_adapter.history import AggregateHistory
from epochal.contrib.event_store_adapter.ids import AggregateId, AggregateTypes, aggregate_id
from epochal.contrib.event_store_adapter.items import JournalSite, KeyResolver
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.port import journal_source
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.errors import CorruptData, InvalidInput
from epochal.feed.indexer import Indexer, sources_of
from epochal.feed.reader import FeedReader
from epochal.feed.stream_records import Record
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables

SHORT = aggregate_id("user", "account-1")
LONG = aggregate_id("user-account", "1")
EITHER = (SHORT, LONG)


def site(*declared: str, shards: int = 64) -> JournalSite:
    return JournalSite(
        journal="journal",
        snapshot="snapshot",
        keys=KeyResolver(shards=shards),
        types=AggregateTypes(declared),
    )


def store(tables: MemoryTables, *declared: str, shards: int = 64) -> AggregateStore:
    return AggregateStore(driver=driver(tables), site=site(*declared, shards=shards))


def driver(tables: MemoryTables) -> Driver:
    return Driver(execute=tables.execute, meter=Meter())


def append(tables: MemoryTables, which: AggregateId, count: int = 3, shards: int = 64) -> None:
    """What a writer does for whom the aggregate's own type is the only one."""
    theirs = store(tables, which.type, shards=shards)
    for number in range(count):
        data = f'{{"of":"{which.type}","n":{number}}}'.encode()
        theirs.append(which, [AggregateEvent(type="Noted", data=data)], snapshot=b"{}")


def indexer(tables: MemoryTables, *declared: str) -> Indexer:
    found = Indexer(driver=driver(tables), index_table="index", sources=(journal_source(site(*declared)),))
    found.register()
    return found


def index(tables: MemoryTables, *declared: str) -> int:
    """Index all there is; how many records were set aside."""
    changes = enumerate(tables.changes("snapshot"))
    records = [Record(table="snapshot", sequence_number=f"{at:021d}", image=image) for at, image in changes]
    report = indexer(tables, *declared).index(records)
    assert report.failed == ()
    return report.set_aside


def feed(tables: MemoryTables, *declared: str, categories: list[str] | None = None) -> list[bytes | object]:
    """The bodies of all events of the feed."""
    ours = store(tables, *declared)
    reader = FeedReader(driver=driver(tables), table="index", histories=(AggregateHistory(ours),))
    page = reader.page(10_000, data=True, categories=categories)
    return [item.event.data for item in page.items if item.event is not None]


def noted(which: AggregateId, count: int = 3) -> list[bytes]:
    return [f'{{"of":"{which.type}","n":{number}}}'.encode() for number in range(count)]


def test_a_type_that_holds_a_dash_is_refused_until_it_is_declared() -> None:
    tables = memory_tables()
    with pytest.raises(InvalidInput, match="'user-account' contains - but is not among the types declared"):
        store(tables).append(LONG, [AggregateEvent(type="A", data=b"1")], snapshot=b"{}")
    for read in (store(tables).lock, store(tables).replay, store(tables).latest_snapshot):
        with pytest.raises(InvalidInput, match="type: "):
            read(LONG)
    assert list(tables.items("journal")) == []
    append(tables, LONG)
    assert store(tables, "user-account").replay(LONG) is not None


def test_an_id_that_a_declared_type_begins_is_refused_to_every_other_type() -> None:
    with pytest.raises(InvalidInput, match="user-account-1 is an id of the declared type 'user-account'"):
        store(memory_tables(), "user-account").append(SHORT, [AggregateEvent(type="A", data=b"1")])
    store(memory_tables(), "user-account").replay(aggregate_id("user", "1"))


@pytest.mark.parametrize("declared", [(), ("user-account",)])
def test_of_two_aggregates_with_one_id_the_feed_has_one_and_the_other_is_set_aside(
    declared: tuple[str, ...],
) -> None:
    tables = memory_tables()
    for which in EITHER:
        append(tables, which)
    mine, other = (LONG, SHORT) if declared else (SHORT, LONG)
    assert index(tables, *declared) == 3
    assert feed(tables, *declared) == noted(mine)
    waiting = list(PoisonRecords(indexer=indexer(tables, *declared)).waiting())
    told = f"user-account-1 is stored under type {other.type!r}, but is an id of type {mine.type!r}"
    assert len(waiting) == 3
    assert all(told in record.cause for record in waiting)


def test_what_was_set_aside_comes_once_its_type_is_declared() -> None:
    tables = memory_tables()
    append(tables, LONG)
    assert (index(tables), feed(tables)) == (3, [])
    records = PoisonRecords(indexer=indexer(tables, "user-account"))
    for record in list(records.waiting()):
        records.retry(record.source, record.index)
    assert feed(tables, "user-account") == noted(LONG)


def test_a_category_is_the_type_that_an_id_is_read_as() -> None:
    tables = memory_tables()
    append(tables, LONG)
    append(tables, aggregate_id("user", "1"), 1)
    index(tables, "user-account")
    assert feed(tables, "user-account", categories=["user"]) == noted(aggregate_id("user", "1"), 1)
    assert feed(tables, "user-account", categories=["user-account"]) == noted(LONG)

    tables = memory_tables()
    append(tables, SHORT)
    index(tables)
    assert feed(tables, categories=["user-account"]) == []
    assert feed(tables, categories=["user"]) == noted(SHORT)


def test_what_is_stored_by_other_shards_than_readers_use_is_set_aside_and_not_promised() -> None:
    tables = memory_tables()
    append(tables, SHORT, shards=7)
    assert index(tables) == 3
    (cause, *_) = (record.cause for record in PoisonRecords(indexer=indexer(tables)).waiting())
    assert "is stored under user-" in cause
    assert "the shards or the keys differ" in cause


def test_a_stage_declares_its_types_to_the_indexer_too() -> None:
    settings = Settings.of(
        snapshot_table="snapshot", journal_table="journal", aggregate_types=("user-account",)
    )
    tables = memory_tables()
    append(tables, SHORT, 1)
    (source,) = sources_of(settings)
    with pytest.raises(CorruptData, match="is stored under type 'user'"):
        source.appended(tables.changes("snapshot")[-1])
    with pytest.raises(CorruptData, match="is stored under type 'user'"):
        source.stored(list(tables.items("journal"))[-1])
    other = settings.having(aggregate_types=())
    assert sources_of(other)[0].stored(list(tables.items("journal"))[-1]) is not None
