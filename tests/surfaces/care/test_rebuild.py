"""An index built anew in another table, from the stores or from exports of their tables: every event once, in order."""

from __future__ import annotations

import gzip
import io
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from botocore.response import StreamingBody

from epochal.care.mender import Mender
from epochal.care.rebuild import Rebuilder, Rebuilt
from epochal.care.spool import Spool
from epochal.care.table_exports import export_at
from epochal.contrib.equinox.port import tips_source
from epochal.dynamo.s3_objects import S3Objects
from epochal.errors import CorruptData, InvalidInput
from epochal.index.checkpoints import TIP, tip_key
from epochal.index.epochs import EpochLimits
from epochal.index.marks import Leaves, read_marks
from epochal.index.series import register
from epochal.layout.tables import INDEX, store_tables
from epochal.plan.ops import Get, Put, Query, Update
from epochal.plan.values import Item, number, text
from epochal.store.driver import Driver, Meter
from epochal.testing.memory import MemoryTables
from epochal.testing.stores import memory_tables
from tests.layouts.stores import ALICE, Layouts
from tests.simulation.scheduler import Killed, mortal
from tests.surfaces.care.damage import SMALL, Damaged
from tests.surfaces.care.exporting import PREFIX, export

SOURCES = ("tips", "journal", "dcb")
EXPORTED = {"tips": "tips", "journal": "journal", "dcb": "tags"}
"""The table whose export a source is rebuilt from."""

Feed = dict[str, dict[str, list[str]]]


@pytest.fixture
def world() -> Damaged:
    """Stores whose streams are spread over many epochs, with calves, pruned ones, and another library's appends."""
    tables = MemoryTables({spec.kind: spec for spec in store_tables()} | {"anew": INDEX})
    world = Damaged(Layouts(tables=tables, limits=SMALL))
    world.fill(12)
    for turn in range(60):
        world.layouts.append("Long-1", *(f"l{turn}-{k}" for k in range(20)))
    world.layouts.streams.prune("Long-1", 500)
    world.layouts.persist_elsewhere(ALICE, "x", "y")
    world.layouts.tag("untagged")
    world.layouts.index()
    return world


def anew(world: Damaged) -> Damaged:
    """The same stores with the new index."""
    return Damaged(world.layouts, table="anew")


def rebuilder(world: Damaged, **options: Any) -> Rebuilder:
    new = anew(world)
    counts = {source.name: source.partitions for source in world.layouts.sources}
    new.driver.run(register("anew", counts, new.mender.ids()))
    return Rebuilder(mender=new.mender, **options)


def from_tables(world: Damaged, **options: Any) -> list[Rebuilt]:
    return [rebuilder(world, **options).from_tables(source) for source in world.layouts.sources]


def from_exports(world: Damaged, folder: Path) -> list[Rebuilt]:
    done: list[Rebuilt] = []
    for source in world.layouts.sources:
        place = export(folder / source.name, world.tables.items(EXPORTED[source.name]))
        with Spool(folder) as spool:
            items = export_at(place, no_s3).items()
            done.append(rebuilder(world).from_export(source, items, spool))
    return done


def no_s3(_: str) -> Any:
    raise AssertionError("nobody asked for S3")


def fed(world: Damaged, table: str) -> Feed:
    """Types by stream and source, in the order of the feed."""
    found: Feed = {}
    for source in SOURCES:
        streams = found.setdefault(source, {})
        reader = replace(world.layouts.reader(), table=table)
        for page in reader.read({"tips": 0, "journal": 10_000, "dcb": 20_000}[source]):
            for item in page.items:
                streams.setdefault(item.stream, []).append(item.type)
    return found


def without_pruned(feed: Feed) -> Feed:
    return {**feed, "tips": {**feed["tips"], "Long-1": feed["tips"]["Long-1"][500:]}}


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"readers": 4, "segments": 3}])
def test_an_index_built_from_tables_has_every_event_that_there_is(world: Damaged, options: Any) -> None:
    from_tables(world, **options)
    assert fed(world, "anew") == without_pruned(fed(world, "index"))
    assert anew(world).said() == []


def test_an_index_built_from_exports_is_the_same_and_no_store_was_asked(
    world: Damaged, tmp_path: Path
) -> None:
    world.layouts.ops.clear()
    done = from_exports(world, tmp_path)
    assert {op.table for op in world.layouts.ops if hasattr(op, "table")} == {"anew"}
    assert [each.troubles for each in done] == [[], [], []]
    assert fed(world, "anew") == without_pruned(fed(world, "index"))
    assert anew(world).said() == []


def test_epochs_of_a_new_index_close_at_the_indexers_limits_and_leave_marks(world: Damaged) -> None:
    world.layouts.limits = EpochLimits(streams=3)
    for turn in range(4):
        from_tables(world)
        assert anew(world).said() == []
        for k in range(3):
            world.layouts.append(f"New-{turn}{k}", "added")
    assert anew(world).last_epoch(0) == 3
    found = anew(world).mender.driver.run(read_marks("anew", 0, Leaves(), ["Cart-1"]))
    assert found["Cart-1"] > 0


def test_a_rebuild_that_was_interrupted_is_begun_again_and_nothing_comes_twice(world: Damaged) -> None:
    for requests in (3, 7, 12):
        driver = Driver(execute=mortal(world.layouts.execute, requests), meter=Meter())
        dying = replace(rebuilder(world), mender=replace(anew(world).mender, driver=driver))
        with pytest.raises(Killed):
            list(map(dying.from_tables, world.layouts.sources))
    from_tables(world)
    assert fed(world, "anew") == without_pruned(fed(world, "index"))


def test_what_is_there_already_is_neither_read_from_the_store_nor_written(world: Damaged) -> None:
    from_tables(world)
    world.layouts.ops.clear()
    done = from_tables(world)
    assert [each.events for each in done] == [0, 0, 0]
    assert not [op for op in world.layouts.ops if isinstance(op, Put | Update) and "$AppendsEpoch" in str(op)]
    assert not [op for op in world.layouts.ops if isinstance(op, Get | Query) and op.table == "tips"]


def test_most_streams_are_indexed_from_their_heads_alone(world: Damaged) -> None:
    world.layouts.ops.clear()
    rebuilder(world).from_tables(world.layouts.sources[0])
    read = [op for op in world.layouts.ops if isinstance(op, Get | Query) and op.table == "tips"]
    assert {str(op).count("Long-1") > 0 for op in read} == {True}


def test_the_old_index_is_not_needed_and_the_new_one_may_have_other_partitions(world: Damaged) -> None:
    world.delete_index()
    world.layouts.partitions = 3
    from_tables(world)
    assert anew(world).said() == []
    mine = {each for n in range(3) for each in streams_of(world, n)}
    assert mine == {"Cart-0", "Cart-1", "Cart-2", "Long-1"}


def streams_of(world: Damaged, partition: int) -> set[str]:
    reader = replace(world.layouts.reader(), table="anew")
    return {item.stream for page in reader.read(partition) for item in page.items}


def test_the_last_repair_brings_what_came_after_the_scan(world: Damaged) -> None:
    from_tables(world)
    world.layouts.append("Cart-1", "late")
    world.layouts.append("Cart-77", "new")
    assert sorted(anew(world).said()) == ["missing: tips Cart-1 8-9", "missing: tips Cart-77 0-1"]
    from_tables(world)
    assert anew(world).said() == []


def test_a_hole_in_an_export_ends_its_stream_and_the_live_tables_have_the_rest(
    world: Damaged, tmp_path: Path
) -> None:
    source = world.layouts.sources[1]
    items = [item for item in world.tables.items("journal") if item["seq_nr"] != number(3)]
    with Spool(tmp_path) as spool:
        done = rebuilder(world).from_export(source, items, spool)
    assert sorted(done.troubles) == [
        "user-account-alice-1: event 2 is not in the export, so it and all later events are left out",
        "user-account-bob: event 2 is not in the export, so it and all later events are left out",
    ]
    from_tables(world)
    assert fed(world, "anew") == without_pruned(fed(world, "index"))


def test_heads_and_items_that_cannot_be_read_are_told_and_stop_nothing(
    world: Damaged, tmp_path: Path
) -> None:
    world.tables.execute(Put(table="tips", item=dict(tip_key("Broken-1"))))
    (tips, *_) = from_tables(world)
    assert tips.troubles[0].startswith("tips: the head {'p': {'S': 'Broken-1'}")
    exported, *_ = from_exports(world, tmp_path)
    assert exported.troubles[0].startswith("tips: the item {'p': {'S': 'Broken-1'}")


@pytest.mark.parametrize(
    ("summary", "rule"),
    [
        ({"outputFormat": "ION"}, "must be in DYNAMODB_JSON"),
        ({"exportType": "INCREMENTAL_EXPORT"}, "must be a full export"),
    ],
)
def test_exports_of_another_kind_are_refused(tmp_path: Path, summary: Any, rule: str) -> None:
    place = export(tmp_path / "export", [], **summary)
    with pytest.raises(InvalidInput, match=rule):
        list(export_at(place, no_s3).items())


def test_a_folder_that_is_no_export_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="manifest-summary.json cannot be read"):
        list(export_at(str(tmp_path), no_s3).items())


def test_a_file_of_an_export_that_is_cut_short_or_lacks_items_is_told(tmp_path: Path) -> None:
    items = [{"p": text(f"S-{n}"), "i": number(TIP)} for n in range(9)]
    place = export(tmp_path / "export", items)
    file = Path(place) / "data" / "part1.json.gz"
    whole = file.read_bytes()
    file.write_bytes(whole[:-6])
    with pytest.raises(CorruptData, match="part1.json.gz cannot be read"):
        list(export_at(place, no_s3).items())
    file.write_bytes(gzip.compress(b"".join(gzip.decompress(whole).splitlines(keepends=True)[1:])))
    with pytest.raises(CorruptData, match="part1.json.gz has 2 items, the manifest says 3"):
        list(export_at(place, no_s3).items())


def test_an_export_is_read_from_its_bucket_by_the_keys_of_the_manifest(
    world: Damaged, tmp_path: Path
) -> None:
    place = Path(export(tmp_path / "export", world.tables.items("tips")))

    class Bucket:
        def get_object(self, *, Bucket: str, Key: str) -> Any:  # noqa: N803  # boto's names
            assert Bucket == "backups-bucket"
            assert Key.startswith(PREFIX)
            content = (place / Key.removeprefix(PREFIX + "/")).read_bytes()
            return {"Body": StreamingBody(io.BytesIO(content), len(content))}

    export_ = export_at(f"s3://backups-bucket/{PREFIX}", lambda name: S3Objects(Bucket(), name).open)
    found = list(export_.items())
    assert sorted(map(str, found)) == sorted(map(str, world.tables.items("tips")))


@pytest.mark.proof
def test_memory_does_not_grow_with_an_export(tmp_path: Path) -> None:
    def items(streams: int) -> Iterator[Item]:
        for at in range(streams):
            kinds = {"L": [text("added")]}
            yield {"p": text(f"S-{at:06}"), "i": number(TIP), "n": number(1), "c": kinds, "a": number(1)}

    def peak(streams: int) -> int:
        tables = memory_tables()
        # The index itself is what a database would hold: only what is left besides is of interest.
        mender = Mender(driver=Driver(execute=tables.execute, meter=Meter()), index_table="index")
        tracemalloc.start()
        with Spool(tmp_path) as spool:
            Rebuilder(mender=mender).from_export(tips_source("tips"), items(streams), spool)
            _, most = tracemalloc.get_traced_memory()
            held, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most - held

    few = peak(2_000)
    assert peak(8_000) < 2 * few
