"""Appends to streams whose events carry tags, on each store: in both or in none, whoever races for it."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest

from epochal import NO_STREAM, Event, Query, QueryItem
from epochal.model.outcomes import Appended
from epochal.pages.layout import Pages
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from tests.contract.places import PATIENT, Place


@pytest.fixture
def streams(place: Place) -> Streams:
    driver = Driver(execute=place.execute, meter=Meter(), patience=PATIENT)
    return Streams(driver=driver, table=place.table, layout=Pages())


@pytest.fixture
def course(place: Place) -> str:
    return f"course:{place.partition}"


def of(tag: str) -> Query:
    return Query(items=(QueryItem(tags=frozenset({tag})),))


def test_those_who_race_for_the_last_seats_get_as_many_as_there_are(
    streams: Streams, place: Place, course: str
) -> None:
    seats, luck = 3, random.Random(11)
    bodies = {student: luck.randbytes(luck.choice((10, 1_500))) for student in range(8)}

    def enrol(student: int) -> bool:
        name = f"{place.partition}-{student}"
        while True:
            seen = streams.tagged.read(of(course))
            if len(seen.events) >= seats:
                return False
            event = Event(type="Enrolled", data=bodies[student], tags=(course, f"{course}:b"))
            made = streams.try_append(
                name, [event], expected=NO_STREAM, fail_if=of(course), after=seen.position
            )
            if isinstance(made, Appended):
                return True

    with ThreadPoolExecutor(8) as threads:
        got = [student for student, made in enumerate(threads.map(enrol, range(8))) if made]
    assert len(got) == seats
    for tag in (course, f"{course}:b"):
        found = streams.tagged.read(of(tag)).events
        assert sorted(event.stream for event in found) == sorted(f"{place.partition}-{n}" for n in got)
        for event in found:
            (read,) = streams.read(event.stream)
            assert (read.data, read.id, read.tags) == (event.data, event.id, event.tags)


def test_a_stream_and_a_tag_are_one_request_that_costs_four_units(
    streams: Streams, place: Place, course: str
) -> None:
    event = Event(type="Enrolled", data=b"x" * 300, tags=(course,))
    first = streams.append(place.partition, [event], expected=NO_STREAM, fail_if=of(course))
    made = streams.append(
        place.partition, [event], expected=first.token, fail_if=of(course), after=first.position
    )
    assert (made.capacity.requests, made.capacity.write) == (1, 4)


def test_a_transaction_takes_a_stream_its_tags_and_a_key_up_to_a_hundred(
    streams: Streams, place: Place, course: str
) -> None:
    event = Event(type="Enrolled", tags=tuple(f"{course}:{n}" for n in range(98)))
    call = {"expected": NO_STREAM, "idempotency_key": "k"}
    made = [streams.append(place.partition, [event], **call) for _ in range(2)]  # type: ignore[arg-type]
    assert [(each.version, each.replayed) for each in made] == [(1, False), (1, True)]
    assert streams.tagged.count(f"{course}:97") == 1
