"""Dictionaries on each store: a writer finds the one in use, and who has met none finds what a frame names."""

from __future__ import annotations

import pytest

from epochal.codec.dictionaries import id_of, learn
from epochal.model.events import Event, Ticks
from epochal.model.versions import NO_STREAM
from epochal.pages.dictionaries import put_in_use, training_due
from epochal.pages.streams import Pages
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import PATIENT, Place
from tests.support.dictionaries import TRAINED, forget


def test_events_are_packed_under_the_one_in_use_and_read_by_who_has_not_met_it(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(execute=place.execute, meter=Meter(), patience=PATIENT)
    streams = Streams(driver=driver, table=place.table, layout=Pages(dictionaries=True))
    category = place.partition.replace("-", "")
    data = b'{"flight":"AA2279","minutes":104,"gate":"B7"}'
    for _ in range(2):
        driver.run(put_in_use(place.table, category, learn(TRAINED)))
    assert driver.run(training_due(place.table, category, Ticks(10**17)))
    assert not driver.run(training_due(place.table, category, Ticks(10**17)))

    made = streams.append(f"{category}-1", [Event(type="Delayed", data=data)], expected=NO_STREAM)
    assert (made.capacity.requests, made.capacity.read) == (2, 0.5)
    head = streams.head(f"{category}-1")
    assert getattr(head, "dictionaries") == {id_of(TRAINED)}  # noqa: B009  of a page

    forget(monkeypatch)
    assert [event.data for event in streams.read(f"{category}-1")] == [data]
