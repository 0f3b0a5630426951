"""A history is imported into whatever keeps the contract, for the units that a dry run told, and gone on with."""

from __future__ import annotations

from collections.abc import Iterator

from epochal.contrib.transfer.importing.importer import StreamImporter
from epochal.contrib.transfer.importing.incoming import Gone, Incoming, Row
from epochal.contrib.transfer.importing.writing import HistoryWriter, make_dry_run_writer
from epochal.model.events import Event
from epochal.pages.layout import Pages
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import PATIENT, Place


def rows(place: Place, events: int) -> Iterator[Row]:
    yield Gone(at="", stream=f"{place.partition}.3", index=0)
    for number in range(events):
        event = Event.json("Counted", {"n": number}, timestamp=f"2024-01-02T03:04:05.{number:06}Z")
        stream, index = number % 4, number // 4
        yield Incoming(at="", stream=f"{place.partition}.{stream}", index=index + (stream == 3), event=event)


def test_a_history_is_imported_for_what_was_told_and_gone_on_with(place: Place) -> None:
    driver = Driver(execute=place.execute, meter=Meter(), patience=PATIENT)
    store = Streams(driver=driver, table=place.table, layout=Pages())
    units = StreamImporter(writer=make_dry_run_writer(), window=100).run(rows(place, 300)).units
    first = StreamImporter(writer=HistoryWriter(store), window=100).run(rows(place, 300))
    assert (first.written, first.rejected) == (300, 0)
    assert units == first.units
    importer = StreamImporter(writer=HistoryWriter(store), verifying=True)
    again = importer.run(rows(place, 400))
    assert (again.there, again.written, again.rejected) == (300, 100, 0)
    assert importer.verify().unlike == []
    assert [event.index for event in store.read(f"{place.partition}.3")] == [*range(1, 101)]
