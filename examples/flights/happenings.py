"""What happened, in order: a flight as events, and all flights in the order of time, grouped into appends.

    FlightScheduled    at the midnight that begins its day, when the day's timetable is known: some flights leave 43
                       minutes early, and nothing departs unscheduled
    FlightDeparted     when it left
    FlightArrived      when it landed, by the destination's clocks. Where that is not on record (458 flights, diverted
                       most of them) it stands at the scheduled arrival, its columns null
    FlightCancelled    at the scheduled departure

Together a flight's events hold all its 19 columns, and one correlation id.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from heapq import merge
from itertools import groupby

from epochal.codec import json
from epochal.model.events import Event
from examples.flights.dataset import Day, Flight
from examples.flights.zones import NEW_YORK, Zone

SCHEDULED = "FlightScheduled"
DEPARTED = "FlightDeparted"
ARRIVED = "FlightArrived"
CANCELLED = "FlightCancelled"
TYPES = (SCHEDULED, DEPARTED, ARRIVED, CANCELLED)

# fmt: off
_PLANNED = ("year", "month", "day", "carrier", "flight", "tailnum", "origin", "dest", "sched_dep_time",
            "sched_arr_time", "distance", "hour", "minute", "time_hour")
_LEFT = ("carrier", "flight", "origin", "dep_time", "dep_delay")
_CAME = ("carrier", "flight", "dest", "arr_time", "arr_delay", "air_time")
_NEITHER = ("carrier", "flight", "origin", "dep_time", "dep_delay", "arr_time", "arr_delay", "air_time")
# fmt: on


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """An event with its stream and its moment."""

    moment: datetime
    stream: str
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Events for one append: those of a stream that come together."""

    stream: str
    events: tuple[Event, ...]


def stream_of(flight: Flight) -> str:
    """The aircraft's stream; flights that never got an aircraft stand in their carrier's."""
    return f"Unassigned-{flight.carrier}" if flight.tailnum is None else f"Aircraft-{flight.tailnum}"


def happenings(flight: Flight, zones: Mapping[str, Zone]) -> Iterator[Happening]:
    """The events of one flight, in their order."""
    there = zones[flight.dest]
    planned = datetime.fromisoformat(flight.time_hour) + timedelta(minutes=flight.minute)
    midnight = NEW_YORK.at(datetime(flight.year, flight.month, flight.day))  # noqa: DTZ001  New York's wall clock
    yield _happening(flight, SCHEDULED, midnight, _PLANNED)
    if flight.dep_time is None or flight.dep_delay is None:
        yield _happening(flight, CANCELLED, NEW_YORK.of(planned), _NEITHER)
        return
    left = planned + timedelta(minutes=flight.dep_delay)
    yield _happening(flight, DEPARTED, NEW_YORK.of(left), _LEFT)
    if flight.arr_time is None:
        came = max(there.next(flight.sched_arr_time, planned), left)
    else:
        came = there.next(flight.arr_time, left)
    yield _happening(flight, ARRIVED, there.of(came), _CAME)


def events_of(day: Day) -> int:
    """How many events a day's flights have: three each, or two where they were cancelled."""
    departure = day.names.index("dep_time")
    cancelled = sum(row.split(",")[departure] == "NA" for row in day.rows.decode().splitlines())
    return 3 * len(day) - cancelled


def in_order(days: Iterable[Day], zones: Mapping[str, Zone]) -> Iterator[Happening]:
    """Everything that happened, in the order of time; what happens at one moment, by stream.

    A day's events may reach into the next, so what lies beyond its end is kept for that one: no more than two days
    are ever held.
    """
    held: list[Happening] = []
    for day in days:
        todays = sorted((each for flight in day.flights() for each in happenings(flight, zones)), key=_order)
        end = NEW_YORK.at(datetime.combine(day.date, datetime.min.time()) + timedelta(days=1))
        waiting = list(merge(held, todays, key=_order))
        held = [each for each in waiting if each.moment >= end]
        yield from waiting[: len(waiting) - len(held)]
    yield from held


def by_moment(happened: Iterable[Happening]) -> Iterator[Batch]:
    """One append for what happens to an aircraft at one moment: its timetable for the day, and each event after it."""
    for (_, stream), group in groupby(happened, key=_order):
        yield Batch(stream=stream, events=tuple(each.event for each in group))


def by_day(happened: Iterable[Happening]) -> Iterator[Batch]:
    """One append for an aircraft's day by New York's clocks: a load of history rather than news as it comes."""
    for _, group in groupby(happened, key=_date):
        streams: dict[str, list[Event]] = {}
        for each in group:
            streams.setdefault(each.stream, []).append(each.event)
        yield from (Batch(stream=stream, events=tuple(events)) for stream, events in streams.items())


def _happening(flight: Flight, kind: str, moment: datetime, columns: tuple[str, ...]) -> Happening:
    identity = (
        f"{flight.year}-{flight.month:02}-{flight.day:02}/{flight.carrier}{flight.flight}/{flight.origin}"
    )
    event = Event(
        type=kind,
        data=json.dumps(flight.columns(*columns)),
        timestamp=moment.isoformat(),
        correlation_id=identity,
    )
    return Happening(moment=moment, stream=stream_of(flight), event=event)


def _order(each: Happening) -> tuple[datetime, str]:
    return each.moment, each.stream


def _date(each: Happening) -> date:
    return NEW_YORK.of(each.moment).date()
