"""The feed of a stage whose aggregates another library writes: indexed, healed and filled in by that library's keys and
payloads, as the settings say.
"""

from __future__ import annotations

import json

import pytest

from epochal.contrib.event_store_adapter import LIBRARIES, PAYLOADS
from epochal.contrib.event_store_adapter.hashes import HASHES
from epochal.contrib.event_store_adapter.ids import aggregate_id
from epochal.contrib.event_store_adapter.items import site_of
from epochal.contrib.event_store_adapter.serializers import SERIALIZERS
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.errors import InvalidInput
from epochal.feed.indexer import Indexer, sources_of
from epochal.feed.reader import reader_of
from epochal.feed.stream_records import Record
from epochal.plan.conditions import equals
from epochal.plan.ops import Put, Set, Transact, Update
from epochal.plan.values import binary, number, text
from epochal.settings import Settings, variable
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec
from epochal.testing.stores import memory_tables

ALICE = aggregate_id("UserAccount", "01H42K4ABWQ5V2XQEP3A48VE0Z")


def settings(keys: str, serializer: str) -> Settings:
    return Settings.of(
        index_table="index",
        journal_table="journal",
        snapshot_table="snapshot",
        journal_keys=keys,
        journal_serializer=serializer,
    )


def body(library: str, kind: str, count: int) -> bytes:
    """What an application of that library has for an event."""
    if library == "javascript":
        return json.dumps({"type": kind, "data": {"n": count}}).encode()
    member = {"go": "TypeName", "php": "typeName"}.get(library, "type")
    return json.dumps({member: kind, "n": count}).encode()


@pytest.mark.parametrize("library", HASHES)
def test_events_of_every_library_come_through_the_feed_with_types_and_data(library: str) -> None:
    told, tables = settings(library, library), memory_tables()
    site = site_of(told)
    driver = Driver(execute=tables.execute, meter=Meter())
    state = b'{"type":"UserAccount","data":{}}' if library == "javascript" else b"{}"
    shared = {"aid": text(str(ALICE))}
    head = {
        **site.keys.key(ALICE, 0),
        **shared,
        "seq_nr": number(0),
        "version": number(1),
        "payload": binary(state),
    }
    row = {**site.keys.key(ALICE, 1), **shared, "seq_nr": number(1), "occurred_at": number(404)}
    tables.execute(Put(table="snapshot", item=head))
    tables.execute(Put(table="journal", item={**row, "payload": binary(body(library, "Created", 1))}))
    raised = Update(
        table="snapshot",
        key=site.keys.key(ALICE, 0),
        sets=(Set("version", number(2)),),
        condition=equals("version", number(1)),
    )
    later = {
        **row,
        **site.keys.key(ALICE, 2),
        "seq_nr": number(2),
        "payload": binary(body(library, "Renamed", 2)),
    }
    tables.execute(Transact(writes=(raised, Put(table="journal", item=later))))

    indexer = Indexer(driver=driver, index_table="index", sources=sources_of(told))
    indexer.register()
    changes = enumerate(tables.changes("snapshot"))
    report = indexer.index(
        [Record(table="snapshot", sequence_number=f"{at:021d}", image=image) for at, image in changes]
    )
    assert (report.failed, report.set_aside) == ((), 0)
    page = reader_of(told, driver, BodyCodec()).page(10_000, data=True)
    found = [(item.index, item.type, item.event.data) for item in page.items if item.event]
    data = (
        [b'{"n":1}', b'{"n":2}']
        if library == "javascript"
        else [body(library, "Created", 1), body(library, "Renamed", 2)]
    )
    assert found == [(0, "Created", data[0]), (1, "Renamed", data[1])]
    assert [each.data for each in AggregateStore(driver=driver, site=site).events_after(ALICE)] == data


def test_a_setting_that_names_no_library_names_its_variable() -> None:
    with pytest.raises(InvalidInput) as caught:
        site_of(settings("dotnet", "plain"))
    assert caught.value.field == variable("journal_keys")
    with pytest.raises(InvalidInput) as caught:
        site_of(settings("go", "dotnet"))
    assert caught.value.field == variable("journal_serializer")
    assert (tuple(HASHES), tuple(SERIALIZERS)) == (LIBRARIES, PAYLOADS)
