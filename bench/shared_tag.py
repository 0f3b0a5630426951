"""Writers under one tag, in a simulated schedule: what they cost each other, within one process and between processes.

    python -m bench.shared_tag

Each writer makes one append after another without a break. A request takes 20 ms of simulated time, a tenth more or
less, and comes to pass in the middle. Writers of one process share a store; between processes each has its own. The
units are exact, the rates are those of the schedule:

    own streams     events of a stream of the writer's own, all under one tag: a transaction on the stream and the tag
    no stream       events under the tag alone: one conditional write of the tag's page
    decisions       on the events of the tag, which are read first, each with one new event under it
    Sekiban         events under the tag alone in Sekiban's tables: a transaction of event, entry and head

`alone` is a single writer that makes as many appends one after another. A rate is given as a part of its rate.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from bench.contention import Place, Schedule, process_over
from bench.report import Report
from epochal.deciders.on_queries import Decisions
from epochal.deciders.projections import projection
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.tags import Query, QueryItem
from epochal.store.driver import Driver, Meter
from epochal.store.tagged import TaggedStore
from epochal.testing.stores import memory_tables

TAG: Final = "course:1"
WRITERS: Final = (8, 32)
EACH: Final = 20
REQUEST: Final = 0.02
SEED: Final = 1

Append = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Bounds: largest write units of refused appends, per append, and least rate relative to a single writer."""

    wasted: float
    rate: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A way of appending.

    Attributes:
        name: name of the row.
        writer: makes the function which a writer calls for each append, from its stores and its number.
        within: bounds by number of writers, for writers of one process.
        between: bounds by number of writers, for writers of as many processes.
        store: makes the store of tagged events in which the events are counted.
    """

    name: str
    writer: Callable[[Place, int], Append]
    within: dict[int, Bound]
    between: dict[int, Bound]
    store: Callable[[Place], TaggedStore] = lambda place: place.tagged


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """Figures of all writers together.

    Attributes:
        stored: number of events that are stored in the end.
        appends: number of appends that were made.
        wasted: write units of refused requests, per append.
        written: all write units, per append.
        read: read units, per append.
        requests: number of requests, per append.
        rate: appends per second.
        longest: seconds of the longest append.
    """

    stored: int
    appends: int
    wasted: float
    written: float
    read: float
    requests: float
    rate: float
    longest: float


def _own_streams(place: Place, number: int) -> Append:
    streams, expected = place.streams, NO_STREAM

    def append() -> None:
        nonlocal expected
        token: ExpectedVersion = expected
        expected = streams.append(f"Student-{number}", [_event()], expected=token).token  # type: ignore[assignment]

    return append


def _no_stream(place: Place, number: int) -> Append:  # noqa: ARG001  all alike
    return partial(place.tagged.append, [_event()])


def _decisions(place: Place, number: int) -> Append:  # noqa: ARG001  all alike
    decisions = Decisions(store=place.tagged, attempts=10_000)
    count = projection(tags=[TAG], initial=0, on={"Enrolled": lambda count, _: count + 1})
    return partial(decisions.handle, {"count": count}, lambda _: [_event()])


def _sekiban(place: Place, number: int) -> Append:  # noqa: ARG001  all alike
    return partial(place.dcb.append, [_event()])


def _event() -> Event:
    return Event(type="Enrolled", data=b'{"seat": 17}', tags=(TAG,))


SUBJECTS: Final = (
    Subject(
        name="own streams",
        writer=_own_streams,
        within={8: Bound(wasted=2, rate=0.8), 32: Bound(wasted=4, rate=0.8)},
        between={8: Bound(wasted=5, rate=0.8), 32: Bound(wasted=10, rate=0.8)},
    ),
    Subject(
        name="no stream",
        writer=_no_stream,
        within={8: Bound(wasted=0.05, rate=0.8), 32: Bound(wasted=0.05, rate=0.8)},
        between={8: Bound(wasted=2, rate=0.8), 32: Bound(wasted=4, rate=0.8)},
    ),
    Subject(
        name="decisions",
        writer=_decisions,
        within={8: Bound(wasted=0.05, rate=0.8), 32: Bound(wasted=0.05, rate=0.8)},
        between={8: Bound(wasted=2, rate=0.8), 32: Bound(wasted=4, rate=0.8)},
    ),
    Subject(
        name="Sekiban",
        writer=_sekiban,
        store=lambda place: place.dcb,
        within={8: Bound(wasted=0.05, rate=0.8), 32: Bound(wasted=0.05, rate=0.8)},
        between={8: Bound(wasted=8, rate=0.8), 32: Bound(wasted=16, rate=0.8)},
    ),
)


def share(
    subject: Subject, writers: int, *, between: bool = False, appends: int = EACH, seed: int = SEED
) -> Shared:
    """Let writers append until all of them have made their appends.

    Args:
        between: whether each writer has a store of its own, as in a process of its own.
        appends: number of appends of each writer.
    """
    dice, schedule, refused, meter = random.Random(seed), Schedule(), Meter(), Meter()
    tables = memory_tables()

    place = partial(
        process_over, tables, schedule, dice, meter=meter, refused=refused, request=REQUEST, spread=0.05
    )
    took: list[float] = []

    def write(append: Append) -> None:
        schedule.sleep(REQUEST * dice.random())
        for _ in range(appends):
            began = schedule.now
            append()
            took.append(schedule.now - began)

    one = place()
    for number in range(writers):
        schedule.begin(partial(write, subject.writer(place() if between else one, number)))
    schedule.run()
    count = len(took)
    reader = subject.store(replace(one, driver=Driver(execute=tables.execute, meter=Meter())))
    return Shared(
        stored=len(reader.read(Query(items=(QueryItem(tags=[TAG]),))).events),
        appends=count,
        wasted=refused.units.write / count,
        written=meter.units.write / count,
        read=meter.units.read / count,
        requests=meter.requests / count,
        rate=count / schedule.now,
        longest=max(took),
    )


def holds(bound: Bound, shared: Shared, alone: Shared) -> bool:
    """Return whether no event was lost, and the bounds are kept."""
    return (
        shared.stored == shared.appends
        and shared.wasted <= bound.wasted
        and shared.rate >= bound.rate * alone.rate
    )


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    rows, missed = list[tuple[str, ...]](), list[str]()
    for subject in SUBJECTS:
        for between, bounds in ((False, subject.within), (True, subject.between)):
            for writers, bound in bounds.items():
                alone = share(subject, 1, appends=writers * EACH)
                if not between:
                    rows.append(_row(f"{subject.name}, alone", alone, alone))
                shared = share(subject, writers, between=between)
                where = "processes" if between else "writers of one process"
                name = f"{subject.name}, {writers} {where}"
                rows.append(_row(name, shared, alone))
                if not holds(bound, shared, alone):
                    missed.append(name)
    Report(
        title=f"{EACH} appends of each writer under one tag, simulated with {REQUEST * 1000:.0f} ms for a request",
        columns=[
            "",
            "wasted write units an append",
            "write units",
            "read units",
            "requests",
            "appends a second",
            "of one writer's",
            "longest append",
        ],
        rows=rows,
    ).print()
    if missed:
        raise SystemExit(f"events lost, too many wasted units, or too slow: {', '.join(missed)}")


def _row(name: str, shared: Shared, alone: Shared) -> tuple[str, ...]:
    return (
        name,
        f"{shared.wasted:.2f}",
        f"{shared.written:.2f}",
        f"{shared.read:.2f}",
        f"{shared.requests:.2f}",
        f"{shared.rate:.1f}",
        f"{shared.rate / alone.rate:.2f}",
        f"{shared.longest:.1f} s",
    )


if __name__ == "__main__":
    main()
