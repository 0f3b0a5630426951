"""The index looked after on AWS's own DynamoDB: scans of heads, cursors, what is lost and mended, a rebuild."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from epochal.care.audit_cursor import read_cursor
from epochal.care.auditor import Auditor
from epochal.care.mender import Mender
from epochal.care.rebuild import Rebuilder
from epochal.care.repair import Repairer
from epochal.care.spool import Spool
from epochal.care.status import standings
from epochal.care.verify import Verifier
from epochal.contrib.equinox.port import TIPS
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import JOURNAL, SNAPSHOT, site_of
from epochal.contrib.event_store_adapter.model import AggregateEvent
from epochal.contrib.event_store_adapter.store import AggregateStore
from epochal.contrib.sekiban.items import EVENTS, TAGS, tag_site_of
from epochal.contrib.sekiban.store import DcbEvents
from epochal.dynamo.interpreter import interpreter
from epochal.errors import CorruptData
from epochal.feed.indexer import sources_of
from epochal.index.checkpoints import calf_key, marks_name
from epochal.index.epochs import EpochLimits
from epochal.index.marks import FLOOR, Leaves, read_marks, write_marks
from epochal.index.series import register
from epochal.layout.source import Source
from epochal.layout.tables import INDEX
from epochal.model.events import Event
from epochal.plan.ops import Delete, Scan
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.support.tables import Tables
from tests.surfaces.care.damage import told

pytestmark = pytest.mark.ddbl

SMALL = EpochLimits(streams=2)


class Stores:
    """Tables of all layouts, two of an index, and nobody who indexes."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.driver = Driver(execute=interpreter(tables.client), meter=Meter(), sleep=lambda _: None)
        self.settings = Settings.of(
            tips_table=tables.create(TIPS),
            index_table=tables.create(INDEX),
            journal_table=tables.create(JOURNAL),
            snapshot_table=tables.create(SNAPSHOT),
            events_table=tables.create(EVENTS),
            tags_table=tables.create(TAGS),
            tips_partitions=2,
        )

    @property
    def sources(self) -> tuple[Source, ...]:
        return sources_of(self.settings)

    def mender(self, table: str = "") -> Mender:
        return Mender(driver=self.driver, index_table=table or self.settings.index_table, limits=SMALL)

    def verifier(self, table: str = "", **options: Any) -> Verifier:
        return Verifier(mender=self.mender(table), sources=self.sources, **options)

    def said(self, table: str = "", **options: Any) -> list[str]:
        return sorted(map(told, self.verifier(table, **options).findings()))

    def fill(self, turn: int) -> None:
        """Events of every layout; one stream is long enough for calves."""
        streams = Streams(driver=self.driver, table=self.settings.table("tips"), layout=Tips())
        streams.append("Long-1", [Event(type=f"l{turn}", data=bytes(30_000)) for _ in range(4)])
        for number in range(6):
            streams.append(f"Cart-{number}", [Event(type="added")])
        aggregates = AggregateStore(driver=self.driver, site=site_of(self.settings))
        event = AggregateEvent(type="Paid", data=b"{}")
        aggregates.append(AggregateId(type="order", value="a-1"), [event], snapshot=b"{}")
        tagged = DcbEvents(driver=self.driver, site=tag_site_of(self.settings))
        tagged.append([Event(type="Booked", data=b"{}", tags=("room:1", f"guest:{turn}"))])


@pytest.fixture
def stores(ddbl_tables: Tables) -> Stores:
    return Stores(ddbl_tables)


def test_an_index_is_made_from_nothing_verified_damaged_and_mended(stores: Stores) -> None:
    for turn in range(3):
        stores.fill(turn)
        done = list(Repairer(stores.verifier(segments=3)).repair())
        assert done
        assert all(each.mended for each in done)
    assert stores.said(segments=4, streams=3) == []
    source = stores.sources[0]
    lost = next(f"Cart-{n}" for n in range(6) if source.partition_of(f"Cart-{n}") == 0)
    key = calf_key(marks_name(20_000), FLOOR)
    stores.driver.run(delete(stores.settings.index_table, key))
    stores.driver.run(delete(stores.settings.index_table, calf_key("$AppendsEpoch-0_0", 2_147_483_647)))
    said = stores.said()
    assert {"epoch lost: tips at 0@0", "mark low: dcb guest:0 0-1"} <= set(said)
    assert any(line.startswith(f"gap: tips {lost} 0-") for line in said)
    assert {each.source for each in standings(stores.driver, stores.settings.index_table)} == {
        "tips",
        "journal",
        "dcb",
    }


def test_the_auditor_goes_on_where_its_cursor_stands(stores: Stores) -> None:
    stores.fill(0)
    table = stores.settings.index_table
    auditor = Auditor(mender=stores.mender(), sources=stores.sources)
    assert auditor.audit(60).healed == 4 + 6 + 1 + 2
    assert auditor.audit(60).healed == 0
    cursor = stores.driver.run(read_cursor(table, 0))
    assert cursor.after is None
    assert cursor.ended
    assert stores.said() == ["unregistered: dcb", "unregistered: journal", "unregistered: tips"]


def test_a_rebuild_from_tables_and_one_from_exported_items_are_right(stores: Stores, tmp_path: Path) -> None:
    for turn in range(3):
        stores.fill(turn)
    counts = {source.name: source.partitions for source in stores.sources}
    tables = {
        "tips": stores.settings.table("tips"),
        "journal": stores.settings.table("journal"),
        "dcb": stores.settings.table("tags"),
    }
    for exported in (False, True):
        anew = stores.tables.create(INDEX)
        mender = stores.mender(anew)
        stores.driver.run(register(anew, counts, mender.ids()))
        rebuilder = Rebuilder(mender=mender, readers=4, segments=2)
        for source in stores.sources:
            if exported:
                with Spool(tmp_path) as spool:
                    items = stores.driver.execute(Scan(table=tables[source.name])).items  # type: ignore[union-attr]
                    done = rebuilder.from_export(source, items, spool)
            else:
                done = rebuilder.from_tables(source)
            assert not done.troubles
            assert done.events
        assert stores.said(anew) == []


def delete(table: str, key: Any) -> Any:
    yield Delete(table=table, key=key)


def test_leaves_of_marks_split_merge_and_are_found_and_told_when_they_are_lost(stores: Stores) -> None:
    table, held = stores.settings.index_table, Leaves()
    many = {f"Order-{number}": number + 1 for number in range(3_000)}
    stores.driver.run(write_marks(table, 0, held, list(many.items())[:200]))
    stores.driver.run(write_marks(table, 0, Leaves(), many.items()))
    stores.driver.run(write_marks(table, 0, held, [("Order-7", 900), ("Order-8", 1)]))
    expected = {**many, "Order-7": 900}
    assert stores.driver.run(read_marks(table, 0, Leaves(), list(many))) == expected
    assert stores.driver.run(read_marks(table, 0, Leaves(), ["Order-7", "None-1"])) == {"Order-7": 900}
    stores.driver.run(delete(table, calf_key(marks_name(0), FLOOR)))
    with pytest.raises(CorruptData, match="marks are missing"):
        stores.driver.run(read_marks(table, 0, Leaves(), list(many)))
    lost = expected.keys() - stores.driver.run(read_marks(table, 0, Leaves(lenient=True), list(many))).keys()
    assert lost
    mended = [(stream, expected[stream]) for stream in sorted(lost)]
    stores.driver.run(write_marks(table, 0, Leaves(lenient=True), mended))
    assert stores.driver.run(read_marks(table, 0, Leaves(), list(many))) == expected
