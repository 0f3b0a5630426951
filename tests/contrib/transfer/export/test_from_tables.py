"""Exports of the tables themselves, and of what DynamoDB exported of them: every event once, with no index."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from epochal import Event
from epochal.care.spooled_tables import SpooledTables
from epochal.care.table_exports import export_at
from epochal.contrib.transfer.export.origins import (
    TablesOrigin,
    begin_feed,
    begin_tables,
    run_feed,
    run_tables,
    segments_of,
)
from epochal.contrib.transfer.export.parts import ExportCounts, ExportScope
from epochal.contrib.transfer.export.runs import write_range
from epochal.errors import InvalidRequest, MissingTable
from epochal.feed.reader import FeedReader
from epochal.layout.source import Source
from epochal.layout.tables import every_table
from epochal.plan.ops import BatchGet, Delete, Execute, Get, Items, Op, Put, Query, Scan, TransactGet
from epochal.plan.values import Item, Key, number, text
from epochal.testing.feeds import MemoryStore
from tests.contrib.transfer.export.test_from_feed import exported as of_the_feed
from tests.contrib.transfer.export.test_from_feed import filled, rows_in
from tests.support.terminal import Terminal
from tests.surfaces.care.damage import Damaged
from tests.surfaces.care.exporting import changes, export

SPECS = {spec.kind: spec for spec in every_table()}
Opener = Callable[[], tuple[FeedReader, tuple[Source, ...]]]


def exported(opener: Opener, folder: Path, **of: Any) -> ExportCounts:
    _, sources = opener()
    begun = begin_tables(folder, ExportScope(source="here", **of), {each.base: 3 for each in sources})
    return run_tables(begun, opener, file_rows=5)


def bare(folder: Path) -> list[dict[str, Any]]:
    """Rows, but not where in the feed they are, in an order of their own."""
    rows = (row | {"position": None, "partition": None} for row in rows_in(folder))
    return sorted(rows, key=repr)


def world() -> Damaged:
    """Every layout, with tagged events, a long stream, and one whose beginning is gone."""
    world = Damaged()
    world.fill(12)
    for turn in range(10):
        world.layouts.append("Long-1", *(f"l{turn}-{k}" for k in range(20)))
    world.layouts.streams.prune("Long-1", 150)
    world.layouts.index()
    return world


def tables_of(world: Damaged) -> tuple[FeedReader, tuple[Source, ...]]:
    return world.layouts.reader(), world.layouts.sources


def on(execute: Execute, world: Damaged) -> Opener:
    """What reads the tables through another interpreter."""
    reader, sources = tables_of(world)
    driver = replace(reader.driver, execute=execute)
    return lambda: (
        replace(reader, driver=driver, histories=tuple(each.on(driver) for each in reader.histories)),
        sources,
    )


@pytest.mark.slow
def test_tables_have_the_rows_of_the_feed_and_need_no_index(tmp_path: Path) -> None:
    there = world()
    begun = from_feed_rows(there.layouts.reader(), tmp_path / "feed")
    there.delete_index()
    counts = exported(lambda: tables_of(there), tmp_path / "tables")
    assert bare(tmp_path / "tables") == [row for row in begun if not row["gone"]]
    assert counts.whole
    assert (counts.again, counts.gone, counts.faults) == (12, 0, 0)
    assert {row["stream"] for row in begun} >= {"Cart-1", "Long-1", None}


def from_feed_rows(reader: FeedReader, folder: Path) -> list[dict[str, Any]]:
    run_feed(begin_feed(reader, folder, ExportScope(source="here")), lambda: reader)
    return bare(folder)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_pages_with_tags_are_exported_likewise(tmp_path: Path, seed: int) -> None:
    feed = filled(seed)
    of_the_feed(feed, tmp_path / "feed")
    sources = tuple(each for each in feed._deployment.sources if each.name == "pages")  # noqa: SLF001
    counts = exported(lambda: (feed.feed, sources), tmp_path / "tables")
    assert bare(tmp_path / "tables") == bare(tmp_path / "feed")
    assert counts.again > 0
    of_the_feed(feed, tmp_path / "orders", categories=("Order",))
    exported(lambda: (feed.feed, sources), tmp_path / "some", categories=("Order",))
    assert bare(tmp_path / "some") == bare(tmp_path / "orders") != []


@pytest.mark.slow
def test_a_run_that_ends_anywhere_is_gone_on_with(tmp_path: Path) -> None:
    there = world()
    exported(lambda: tables_of(there), tmp_path / "whole")
    requests, runs = 1, 0
    while True:
        left = iter(range(requests))

        def dying(op: Op, left: Iterator[int] = left) -> Any:
            if next(left, None) is None:
                raise KeyboardInterrupt
            return there.layouts.tables.execute(op)

        try:
            exported(on(dying, there), tmp_path / "parts")
            break
        except KeyboardInterrupt:
            requests, runs = requests + 3, runs + 1
    assert runs > 5
    assert bare(tmp_path / "parts") == bare(tmp_path / "whole")


@pytest.mark.slow
def test_a_stream_that_is_appended_to_between_two_runs_is_there_once(tmp_path: Path) -> None:
    there = world()
    begun = begin_tables(
        tmp_path / "out", ExportScope(source="here"), {each.base: 3 for each in there.layouts.sources}
    )
    first = begun.ranges[0]
    list(write_range(begun, first, lambda: _origin(there, begun.ranges)))
    for at in range(40):
        there.layouts.append(f"Cart-{at}", "late")
    run_tables(begun, lambda: tables_of(there))
    places = [(row["stream"], row["index"]) for row in bare(tmp_path / "out") if row["stream"]]
    assert len(set(places)) == len(places)


def _origin(there: Damaged, ranges: Any) -> Any:
    reader, sources = tables_of(there)
    return TablesOrigin(reader, {each.base: each for each in sources}, {each.partition: 3 for each in ranges})


@pytest.mark.slow
def test_a_head_that_cannot_be_read_is_a_row_with_its_fault(tmp_path: Path) -> None:
    there = world()
    before = exported(lambda: tables_of(there), tmp_path / "before")
    there.layouts.execute(Put(table="tips", item={"p": text("Broken-1"), "i": number(0), "n": text("x")}))
    counts = exported(lambda: tables_of(there), tmp_path / "after")
    assert (counts.rows, counts.faults) in {(before.rows + 1, 1), (before.rows, 0)}


def test_a_stream_of_many_items_is_read_as_one(tmp_path: Path) -> None:
    feed = MemoryStore()
    for _ in range(30):
        feed.streams.append("Order-1", [Event(type="x", data=random.Random(1).randbytes(2_000))])
    assert sum(1 for _ in feed.tables.items("streams")) > 20
    asked = list[Op]()

    def counted(op: Op) -> Any:
        asked.append(op)
        return feed.tables.execute(op)

    reader = replace(feed.feed, driver=replace(feed.feed.driver, execute=counted))
    reader = replace(reader, histories=tuple(each.on(reader.driver) for each in reader.histories))
    sources = tuple(each for each in feed._deployment.sources if each.name == "pages")  # noqa: SLF001
    assert exported(lambda: (reader, sources), tmp_path / "out").rows == 30
    assert len([op for op in asked if not isinstance(op, Scan)]) <= 3


def test_large_tables_have_more_segments() -> None:
    assert (segments_of(0), segments_of(10**9), segments_of(10**15)) == (16, 15, 4_096) or segments_of(
        10**10
    ) == 150


# What DynamoDB exported.


def spooled(folder: Path, execute_of: Damaged, *after: str) -> SpooledTables:
    folder.mkdir(exist_ok=True)
    tables = SpooledTables(folder / "spool", SPECS)
    for table in ("tips", "journal", "snapshot", "events", "tags"):
        place = export(folder / table, execute_of.tables.items(table))
        assert tables.fill(table, export_at(place, _no_bucket).fields()) > 0
    return tables


def _no_bucket(bucket: str) -> Any:
    raise AssertionError(bucket)


@pytest.mark.slow
def test_exports_of_tables_have_the_rows_of_the_tables(tmp_path: Path) -> None:
    there = world()
    exported(lambda: tables_of(there), tmp_path / "tables")
    tables = spooled(tmp_path / "exports", there)
    exported(on(tables.execute, there), tmp_path / "out")
    assert bare(tmp_path / "out") == bare(tmp_path / "tables")


def drained(execute: Execute, op: Query | Scan) -> list[Item]:
    found, page = list[Item](), None
    while page is None or page.last is not None:
        reply = execute(op if page is None else replace(op, after=page.last))
        assert isinstance(reply, Items)
        found += reply.items
        page = reply
    return found


def test_what_is_spooled_answers_reads_as_the_tables_do(tmp_path: Path) -> None:
    there, luck = world(), random.Random(5)
    tables = spooled(tmp_path, there)
    memory: Execute = there.tables.execute
    for table in ("tips", "journal", "snapshot", "events", "tags"):
        spec, items = SPECS[table], list(there.tables.items(table))
        keys: list[Key] = [{name: item[name] for name in spec.keys} for item in items]
        some = tuple({repr(each): each for each in luck.choices(keys, k=9)}.values())
        for key in some:
            assert tables.execute(Get(table=table, key=key)).item == memory(Get(table=table, key=key)).item  # type: ignore[union-attr]
        assert len(tables.execute(BatchGet(table=table, keys=some)).items) == len(some)  # type: ignore[union-attr]
        gone: Key = {
            name: text("none") if value.keys() == {"S"} else number(-9) for name, value in keys[0].items()
        }
        both = tables.execute(TransactGet(keys=((table, keys[0]), (table, gone))))
        assert [each is None for each in both.items] == [False, True]  # type: ignore[union-attr]
        for index in (None, *(each.name for each in spec.indexes if not each.keys_only)):
            own = next((each for each in spec.indexes if each.name == index), None)
            names = spec.keys if own is None else own.key_names(spec)
            rows = [item for item in items if all(name in item for name in names)]
            for item in luck.sample(rows, min(6, len(rows))):
                for forward in (True, False):
                    query = Query(
                        table=table,
                        index=index,
                        partition=(names[0], item[names[0]]),
                        forward=forward,
                        limit=luck.choice((1, 3, None)),
                        consistent=False,
                    )
                    ranged = replace(query, sort=(names[1], item[names[1]], item[names[1]]))
                    for each in (query, ranged):
                        assert drained(tables.execute, each) == drained(memory, each)
                counted = tables.execute(replace(query, limit=None, only_count=True))
                assert counted.counted == len(drained(memory, query))  # type: ignore[union-attr]
        scanned = [
            item
            for segment in range(3)
            for item in drained(
                tables.execute, Scan(table=table, segment=(segment, 3), limit=luck.choice((2, None)))
            )
        ]
        assert sorted(map(repr, scanned)) == sorted(map(repr, items))


def test_what_is_spooled_is_read_alone(tmp_path: Path) -> None:
    tables = spooled(tmp_path, world())
    with pytest.raises(InvalidRequest, match="only be read"):
        tables.execute(Delete(table="tips", key={"p": text("Cart-1"), "i": number(0)}))
    with pytest.raises(MissingTable):
        tables.execute(Get(table="nowhere", key={"p": text("Cart-1")}))


# The command.


@pytest.fixture
def terminal() -> Terminal:
    made = Terminal()
    for at in range(3):
        made.streams.append(f"Cart-{at}", [Event(type="Opened"), Event(type="Paid", data=b'{"total":1}')])
    made.streams.append("Order-1", [Event(type="Sent", tags=("customer:1",))])
    return made


@pytest.mark.slow
def test_a_store_without_an_index_is_exported_by_its_tables(terminal: Terminal, tmp_path: Path) -> None:
    folder = str(tmp_path / "out")
    (view,) = terminal.documents("export", folder, "--tables")
    assert (view["rows"], view["gone"], view["unreadable"]) == (7, 0, 0)
    result = terminal.run("export", folder)
    assert "a different export" in result.output + str(result.exception)


def test_exports_with_what_changed_since_are_exported(terminal: Terminal, tmp_path: Path) -> None:
    before = {repr(_key(item)): item for item in terminal.tables.items("streams")}
    full = export(tmp_path / "full", before.values(), exportTime="2026-01-01T00:00:00Z")
    terminal.streams.append("Cart-1", [Event(type="Closed")])
    after = {repr(_key(item)): item for item in terminal.tables.items("streams")}
    changed = [(_key(item), item, 1) for name, item in after.items() if before.get(name) != item]
    then = changes(
        tmp_path / "then" / "one",
        changed,
        exportFromTime="2026-01-01T00:00:00Z",
        exportToTime="2026-01-02T00:00:00Z",
    )
    places = ("--from-export", f"streams={full}", "--from-export", f"streams={then}")
    (view,) = terminal.documents("export", str(tmp_path / "out"), *places)
    assert view["rows"] == 8
    (alone,) = terminal.documents("export", str(tmp_path / "old"), *places[:2])
    assert alone["rows"] == 7


def _key(item: Item) -> Key:
    return {name: item[name] for name in ("p", "i")}


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--tables", "--from", "beginning"), "--from applies only to the feed"),
        (("--from-export", "x=y", "--from", "beginning"), "--from applies only to the feed"),
        (("--tables", "--from-export", "streams=y"), "--tables or --from-export"),
        (("--from-export", "x=y"), "--from-export: must be"),
        (("--from-export", "streams"), "--from-export: must be"),
        (("--from-export", "streams=/nowhere"), "cannot be read"),
        (("--tables", "--workers", "2"), "--workers"),
    ],
)
def test_what_no_table_can_answer_is_refused(
    terminal: Terminal, tmp_path: Path, arguments: tuple[str, ...], why: str
) -> None:
    result = terminal.run("export", str(tmp_path / "out"), *arguments)
    assert result.exit_code != 0
    assert why in result.output + str(result.exception)
    assert not (tmp_path / "out").exists()
