"""Many appends in one call, on each store: as one after the other, and those to one stream as one write."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from epochal import NO_STREAM, Appended, AtVersion, Event
from epochal.pages.layout import Pages
from epochal.store.bulk import Bulk, BulkAppend
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import PATIENT, Place


@pytest.fixture
def streams(place: Place) -> Streams:
    driver = Driver(execute=place.execute, meter=Meter(), patience=PATIENT)
    return Streams(driver=driver, table=place.table, layout=Pages())


def one(stream: str, number: int, **more: object) -> BulkAppend:
    event = Event(type="Moved", data=b"%d" % number)
    return BulkAppend(stream=stream, events=[event], **more)  # type: ignore[arg-type]


def test_each_has_its_answer_and_those_to_one_stream_are_one_write(streams: Streams, place: Place) -> None:
    first, second = f"{place.partition}a", f"{place.partition}b"
    answers = Bulk(streams).append(
        [
            one(first, 0, expected=NO_STREAM),
            one(second, 0, expected=NO_STREAM, idempotency_key="k"),
            one(first, 1, expected=AtVersion(1)),
            one(first, 9, expected=NO_STREAM),
            one(first, 2, expected=AtVersion(2)),
        ]
    )
    assert [type(each).__name__ for each in answers] == [
        "Appended",
        "Appended",
        "Appended",
        "Conflict",
        "Appended",
    ]
    assert [event.data for event in streams.read(first)] == [b"0", b"1", b"2"]
    assert streams.driver.meter.units.write == 3.0, "one of each stream, and the key's"


def test_callers_who_race_for_one_stream_with_the_same_keys_make_each_append_once(
    streams: Streams, place: Place
) -> None:
    stream = f"{place.partition}a"
    appends = [one(stream, number, idempotency_key=f"k{number}") for number in range(6)]
    with ThreadPoolExecutor(4) as callers:
        told = list(callers.map(lambda _: Bulk(streams).append(appends), range(4)))
    found = [event.data for event in streams.read(stream)]
    assert sorted(map(repr, found)) == sorted(repr(b"%d" % number) for number in range(6))
    for answers in told:
        firsts = [each.first for each in answers if isinstance(each, Appended)]
        assert [found[first] for first in firsts] == [b"%d" % number for number in range(6)]
