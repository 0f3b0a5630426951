"""Items and tables of newer versions of event-store-adapter's libraries, which are not read, are named as such."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from epochal.contrib.event_store_adapter.event_pages import page, walk
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT, read_event, read_head, site_of
from epochal.contrib.event_store_adapter.model import AggregateEvent, Lock
from epochal.contrib.event_store_adapter.port import journal_source
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.errors import CorruptData, WrongTable
from epochal.plan.ops import Put
from epochal.plan.tables import KeyAttribute, TableSpec
from epochal.plan.values import Item, binary, number, text
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables

ALICE: Final = aggregate_id("UserAccount", "1")
AID: Final = {"aid": text(str(ALICE))}
ENVELOPE: Final[Item] = {
    "seq_nr": number(1),
    "occurred_at": {"N": "1790000000000000000"},
    "manifest": text("Created"),
    "payload": binary(b"{}"),
}
CONFIGURED: Final[Item] = {"store_id": text("0d0e"), "layout_version": number(1)}

NEWER: Final[dict[str, Item]] = {
    "an event": {**AID, **ENVELOPE},
    "a head": {
        **AID,
        "type_name": text("UserAccount"),
        "seq_nr": number(1),
        "events": {"L": [{"M": ENVELOPE}]},
    },
    "a snapshot": {
        **AID,
        "skey": number(0),
        "seq_nr": number(1),
        "manifest": text("1"),
        "payload": binary(b"{}"),
    },
    "the configuration in the journal": {"aid": text("__config__"), "seq_nr": number(0), **CONFIGURED},
    "the configuration in the snapshots": {"aid": text("__config__"), "skey": number(0), **CONFIGURED},
    "the configuration in the heads": {"aid": text("__config__"), **CONFIGURED},
}
"""Items of the layout of three tables, version 1, as the libraries write them."""

NAMED: Final = (
    r"newer than those supported here: JavaScript 2\.2\.94, Rust 1\.3\.17, Go 1\.0\.178, Java 1\.2\.85"
)


@pytest.mark.parametrize("kind", NEWER)
def test_an_item_of_a_newer_version_is_named_by_whatever_cannot_read_it(kind: str) -> None:
    item, source = NEWER[kind], journal_source(site_of(Settings.of(journal_table="j", snapshot_table="s")))
    if kind not in {"an event", "a snapshot"}:  # whose own attributes are those of an event
        with pytest.raises(CorruptData, match=NAMED):
            read_event(item)
    with pytest.raises(CorruptData, match=NAMED):
        read_head(item, ALICE)
    with pytest.raises(CorruptData, match=NAMED):
        source.stored(item)


@pytest.mark.parametrize("kind", NEWER)
def test_the_feed_takes_nothing_of_a_newer_version_for_a_head(kind: str) -> None:
    source = journal_source(site_of(Settings.of(journal_table="j", snapshot_table="s")))
    assert [read(NEWER[kind]) for read in (source.appended, source.end, source.change_up_to)] == [None] * 3


def of_three_tables() -> AggregateStore:
    """A store on the journal and the snapshots of a newer version, with what its library puts there."""
    aid = KeyAttribute(name="aid", type="S")
    tables = MemoryTables(
        {
            JOURNAL.kind: TableSpec(
                kind=JOURNAL.kind, partition=aid, sort=KeyAttribute(name="seq_nr", type="N")
            ),
            SNAPSHOT.kind: TableSpec(
                kind=SNAPSHOT.kind, partition=aid, sort=KeyAttribute(name="skey", type="N")
            ),
        }
    )
    for table, kinds in (
        (JOURNAL.kind, ("an event", "the configuration in the journal")),
        (SNAPSHOT.kind, ("a snapshot", "the configuration in the snapshots")),
    ):
        for kind in kinds:
            tables.execute(Put(table=table, item=NEWER[kind]))
    site = site_of(Settings.of(journal_table=JOURNAL.kind, snapshot_table=SNAPSHOT.kind))
    return AggregateStore(driver=Driver(execute=tables.execute, meter=Meter()), site=site)


LOCK: Final = Lock(version=1, seq_nr=3)
CALLS: Final[dict[str, Callable[[AggregateStore], Any]]] = {
    "append": lambda store: store.append(ALICE, [AggregateEvent(type="A", data=b"{}")], snapshot=b"{}"),
    "lock": lambda store: store.lock(ALICE),
    "latest_snapshot": lambda store: store.latest_snapshot(ALICE),
    "replay": lambda store: store.replay(ALICE),
    "events_after": lambda store: store.events_after(ALICE),
    "page": lambda store: page(store, ALICE, LOCK, start=1, limit=10, max_bytes=10**6),
    "walk": lambda store: list(walk(store, ALICE, LOCK, start=1)),
}


@pytest.mark.parametrize("call", CALLS)
def test_tables_of_a_newer_version_are_named_where_a_store_is_opened_on_them(call: str) -> None:
    with pytest.raises(WrongTable, match=f"{NAMED}"):
        CALLS[call](of_three_tables())
