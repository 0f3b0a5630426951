"""The index of streams that are pages is verified, mended, and built anew from their table or from an export of it."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from epochal.care.auditor import Auditor
from epochal.care.rebuild import Rebuilder, Rebuilt
from epochal.care.repair import Repairer
from epochal.care.spool import Spool
from epochal.care.table_exports import export_at
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.index.series import register
from epochal.layout.source import Source
from epochal.layout.tables import INDEX
from epochal.model.events import Event
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.pages.port import pages_source
from epochal.plan.ops import Delete, Put
from epochal.plan.values import number, text
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables
from tests.layouts.stores import Layouts
from tests.surfaces.care.damage import SMALL, Damaged, told
from tests.surfaces.care.exporting import export

START = 30_000
STREAM = "Cart-1"


@dataclass
class PagesAlone(Layouts):
    """Streams as pages, and their index."""

    luck: random.Random = field(default_factory=lambda: random.Random(7))

    @property
    def streams(self) -> Streams:
        return Streams(driver=self.driver, table=STREAMS.kind, layout=Pages())

    @property
    def sources(self) -> tuple[Source, ...]:
        return (pages_source(STREAMS.kind, self.partitions),)

    def reader(self) -> FeedReader:
        return FeedReader(driver=self.driver, table="index", histories=(StreamHistory(self.streams),))

    def append(self, stream: str, *types: str) -> None:
        """Events large enough for many pages."""
        self.streams.append(stream, [Event(type=kind, data=self.luck.randbytes(400)) for kind in types])

    def index(self) -> None:
        indexer = self.indexer()
        indexer.register()
        assert indexer.index(self.records(STREAMS.kind)).failed == ()


@pytest.fixture
def world() -> Damaged:
    tables = MemoryTables({spec.kind: spec for spec in (STREAMS, INDEX)} | {"anew": INDEX})
    world = Damaged(PagesAlone(tables=tables, limits=SMALL))
    for turn in range(12):
        world.layouts.append(f"Cart-{turn % 3}", f"a{turn}", f"b{turn}")
        world.layouts.index()
    return world


def fed(world: Damaged, table: str = "index") -> list[tuple[str, int, str]]:
    """All that the feed has, and each stream in its order."""
    pages = replace(world.layouts.reader(), table=table).read(START)
    found = [(item.stream, item.index, item.type) for page in pages for item in page.items]
    for stream in {name for name, _, _ in found}:
        indices = [index for name, index, _ in found if name == stream]
        assert indices == sorted(set(indices))
    return found


def from_table(world: Damaged, _: Path) -> Rebuilt:
    (source,) = world.layouts.sources
    return rebuilder(world).from_tables(source)


def from_export(world: Damaged, folder: Path) -> Rebuilt:
    (source,) = world.layouts.sources
    place = export(folder / "exported", world.tables.items(STREAMS.kind))
    with Spool(folder) as spool:
        return rebuilder(world).from_export(
            source, export_at(place, lambda _: pytest.fail("nobody asked for S3")).items(), spool
        )


def rebuilder(world: Damaged) -> Rebuilder:
    new = Damaged(world.layouts, table="anew")
    new.driver.run(register("anew", {"pages": 1}, new.mender.ids()))
    return Rebuilder(mender=new.mender)


def test_streams_of_many_pages_are_in_order(world: Damaged) -> None:
    pages = [item for item in world.tables.items(STREAMS.kind) if item["p"] == text(STREAM)]
    assert len(pages) > 2
    assert world.said() == []


def test_what_no_stream_record_told_is_indexed_from_the_pages(world: Damaged) -> None:
    world.layouts.append(STREAM, "late", "later")
    world.layouts.append("Cart-9", "new")
    done = [(told(each.finding), each.mended) for each in Repairer(world.verifier()).repair()]
    assert sorted(done) == [("missing: pages Cart-1 8-10", True), ("missing: pages Cart-9 0-1", True)]
    assert world.said() == []
    assert [item for item in fed(world) if item[0] in (STREAM, "Cart-9")][-3:] in (
        [(STREAM, 8, "late"), (STREAM, 9, "later"), ("Cart-9", 0, "new")],
        [("Cart-9", 0, "new"), (STREAM, 8, "late"), (STREAM, 9, "later")],
    )


def test_an_epoch_that_is_lost_is_told(world: Damaged) -> None:
    world.delete_epoch(START, 1)
    assert "epoch lost: pages at 1@0" in world.said()


def test_a_stream_whose_last_page_is_gone_is_told(world: Damaged) -> None:
    last = max(int(item["i"]["N"]) for item in world.tables.items(STREAMS.kind) if item["p"] == text(STREAM))
    world.tables.execute(Delete(table=STREAMS.kind, key={"p": text(STREAM), "i": number(last)}))
    assert any(line.startswith("too far: pages Cart-1") for line in world.said())


def cut_off(world: Damaged, stream: str) -> None:
    """Spoils the last frame of a stream: its beginning can be read, and so its page."""
    item = [each for each in world.tables.items(STREAMS.kind) if each["p"] == text(stream)][-1]
    *frames, last = item["f"]["L"]
    world.tables.execute(
        Put(table=STREAMS.kind, item={**item, "f": {"L": [*frames, {"B": bytes(last["B"])[:-3]}]}})
    )


def test_a_frame_that_is_cut_off_is_told_and_other_streams_are_mended(world: Damaged) -> None:
    world.layouts.append(STREAM, "late", "later")
    world.layouts.append("Cart-9", "new")
    cut_off(world, STREAM)
    done = {told(each.finding): each.why for each in Repairer(world.verifier()).repair()}
    assert done["missing: pages Cart-9 0-1"] == ""
    assert "the data ends too early" in done["missing: pages Cart-1 8-10"]
    assert ("Cart-9", 0, "new") in fed(world)


def test_an_audit_goes_on_after_a_frame_that_is_cut_off(world: Damaged) -> None:
    world.layouts.append(STREAM, "late", "later")
    world.layouts.append("Cart-9", "new")
    cut_off(world, STREAM)
    audit = Auditor(mender=world.mender, sources=world.layouts.sources).audit(60.0)
    assert audit.healed == 1
    assert "the data ends too early" in "".join(audit.troubles)


@pytest.mark.parametrize("rebuild", [from_table, from_export])
def test_a_frame_that_is_cut_off_keeps_no_other_stream_from_an_index_built_anew(
    world: Damaged, rebuild: Callable[[Damaged, Path], Rebuilt], tmp_path: Path
) -> None:
    cut_off(world, STREAM)
    assert "the data ends too early" in "".join(rebuild(world, tmp_path).troubles)
    others = [each for each in fed(world) if each[0] != STREAM]
    assert sorted(each for each in fed(world, "anew") if each[0] != STREAM) == sorted(others)


@pytest.mark.parametrize("rebuild", [from_table, from_export])
def test_an_index_built_anew_has_every_event_that_there_is(
    world: Damaged, rebuild: Callable[[Damaged, Path], Rebuilt], tmp_path: Path
) -> None:
    world.layouts.streams.prune(STREAM, 3)
    world.layouts.streams.delete("Cart-2")
    world.layouts.index()
    before = fed(world)
    assert rebuild(world, tmp_path).troubles == []
    gone = {(STREAM, 0), (STREAM, 1), (STREAM, 2)}
    there = [each for each in before if each[0] != "Cart-2" and each[:2] not in gone]
    assert sorted(fed(world, "anew")) == sorted(there)
    assert Damaged(world.layouts, table="anew").said() == []
