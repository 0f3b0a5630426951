"""Batches of an import that other processes write."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from bench.local import local_at
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.transfer.importing.importer import StreamImporter
from epochal.contrib.transfer.importing.incoming import Incoming, Misfit
from epochal.contrib.transfer.importing.writing import (
    HistoryWriter,
    Pace,
    PartWritten,
    SideBySideWriter,
    writing,
)
from epochal.dynamo.interpreter import interpreter
from epochal.errors import MissingTable
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contrib.transfer.importing.test_importer import contents, interleaved, row, wanted


def opened(url: str, table: str) -> Streams:
    driver = Driver(execute=interpreter(Endpoint(url=url).client("dynamodb")), meter=Meter())
    return Streams(driver=driver, table=table, layout=Pages())


@pytest.mark.slow
@pytest.mark.ddbl
def test_workers_write_what_one_process_writes_for_the_same_units(ddbl: Endpoint) -> None:
    rows = interleaved(events=600)
    bad = row("S-3", 10_000, at=7)
    with local_at(ddbl, STREAMS) as alone, local_at(ddbl, STREAMS) as together:
        store = opened(ddbl.url, alone.table)
        one = StreamImporter(writer=HistoryWriter(store), window=100).run(rows)
        there = opened(ddbl.url, together.table)
        rejected = list[Misfit]()
        with writing(HistoryWriter(there), 2, partial(opened, ddbl.url, together.table)) as writer:
            importer = StreamImporter(writer=writer, window=100, verifying=True, rejects=rejected.append)
            two = importer.run([*rows, replace(bad, raw={"what": "the source has"})])
            assert importer.verify().unlike == []
        assert contents(there) == contents(store) == wanted(rows)
        assert (two.written, two.units, two.rejected) == (one.written, one.units, 1)
        assert [each.raw for each in rejected] == [{"what": "the source has"}]


@pytest.mark.slow
@pytest.mark.ddbl
def test_what_a_worker_is_refused_comes_with_its_row_and_what_fails_there_fails_here(ddbl: Endpoint) -> None:
    with local_at(ddbl, STREAMS) as local:
        store = opened(ddbl.url, local.table)
        store.append("S-1", [replace(row("S-1", 0).event, data=b"another")])
        rejected = list[Misfit]()
        with writing(HistoryWriter(store), 2, partial(opened, ddbl.url, local.table)) as writer:
            rows = [replace(row("S-1", number, at=number), raw=number) for number in range(3)]
            done = StreamImporter(writer=writer, rejects=rejected.append).run(rows)
        assert (done.written, done.rejected, done.waiting) == (0, 3, 2)
        assert [each.raw for each in rejected] == [0, 1, 2]
        with (
            writing(HistoryWriter(store), 1, partial(opened, ddbl.url, "nowhere")) as writer,
            pytest.raises(MissingTable),
        ):
            StreamImporter(writer=writer).run([row("S-2", 0)])


def test_the_pace_is_that_of_all_workers_together() -> None:
    slept, calls = list[float](), Calls()
    pace = Pace(rate=2, clock=lambda: 0.0, sleep=slept.append)
    writer = SideBySideWriter(HistoryWriter(opened("http://nowhere", "t")).store, pace=pace, calls=calls)  # type: ignore[arg-type]
    StreamImporter(writer=writer, window=1, at_once=1).run([row(f"S-{at}", 0) for at in range(3)])
    assert slept == [5.0, 10.0]
    assert all(
        isinstance(each, Incoming) and each.raw is None for batch in calls.given for each in batch.rows
    )


class Calls:
    """Workers that answer at once: each batch took ten units."""

    def __init__(self) -> None:
        self.given = list[Any]()

    def submit(self, _: Callable[..., Any], batch: Any) -> Any:
        self.given.append(batch)
        done = Future[PartWritten]()
        done.set_result(PartWritten(batch=replace(batch, rows=()), written=len(batch.rows), units=10.0))
        return done
