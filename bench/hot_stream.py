"""Writers on one stream or aggregate, in a simulated schedule: what they cost each other, in one process and between.

    python -m bench.hot_stream

Each writer makes one append after another without a break, together 320. A request takes 20 ms of simulated time, a
tenth more or less, and comes to pass in the middle. Writers of one process share a store and a cache; between processes
each has its own. The units are exact, the rates are those of the schedule:

    decider         loads the stream, and appends one event to the state that it has read
    cached          the same on the state in the cache (`AllowStale`)
    any version     appends without an expected version
    with a key      the same under an idempotency key, of which each append has its own
    aggregate       a decider of aggregates loads one, and appends one event to the state that it has read
    known           the same on the state that the writer's last decision has left

A rate is of all writers together, in appends a second. An append that is given up with `Contended`, after ten attempts,
is missing in the events kept: of 32 processes that decide on one stream without a break, some give up.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final

from bench.contention import AGGREGATE, Place, Schedule, process_over
from bench.report import Report
from bench.workloads import CODEC, DECIDER
from epochal.contrib.event_store_adapter.deciders import AggregateDeciders, Standing
from epochal.contrib.event_store_adapter.snapshot_policies import every
from epochal.contrib.event_store_adapter.state_codecs import StateCodec
from epochal.deciders.cache import Cache
from epochal.deciders.loading import AllowStale
from epochal.deciders.on_streams import Deciders
from epochal.errors import Contended
from epochal.model.events import Event
from epochal.store.driver import Driver, Meter
from epochal.testing.stores import memory_tables

STREAM: Final = "Bench-1"
WRITERS: Final = (8, 32)
APPENDS: Final = 320
REQUEST: Final = 0.02
SEED: Final = 1

STATE: Final = StateCodec[int](encode=lambda count: b"%d" % count, decode=int)

Append = Callable[[], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Largest figures of an append.

    Attributes:
        wasted: write units of refused appends.
        requests: number of requests.
        given_up: share of the appends that are given up.
    """

    wasted: float
    requests: float
    given_up: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Subject:
    """A way of appending.

    Attributes:
        name: name of the row.
        writer: function that makes the function which a writer calls for each append, from its stores and its process's
            cache.
        count: function that counts the stored events.
        within: bounds by number of writers, in one process.
        between: bounds by number of writers, each in another process.
    """

    name: str
    writer: Callable[[Place, Cache], Append]
    within: dict[int, Bound]
    between: dict[int, Bound]
    count: Callable[[Place], int] = lambda place: sum(1 for _ in place.streams.read(STREAM))


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """Figures per append of all writers; `rate` is that of all writers together."""

    stored: int
    wasted: float
    write: float
    read: float
    requests: float
    rate: float
    longest: float


def _decider(place: Place, _: Cache) -> Append:
    return partial(Deciders(streams=place.streams, decider=DECIDER, codec=CODEC).handle, STREAM, b"{}")


def _cached(place: Place, cache: Cache) -> Append:
    deciders = Deciders(streams=place.streams, decider=DECIDER, codec=CODEC, cache=cache)
    return partial(deciders.handle, STREAM, b"{}", load=AllowStale())


def _any_version(place: Place, _: Cache) -> Append:
    return partial(place.streams.append, STREAM, [Event(type="Happened", data=b"{}")])


def _with_a_key(place: Place, _: Cache) -> Append:
    events = [Event(type="Happened", data=b"{}")]
    return lambda: place.streams.append(STREAM, events, idempotency_key=place.dice.randbytes(16).hex())


def _aggregates(place: Place) -> AggregateDeciders[bytes, int, bytes]:
    return AggregateDeciders(
        store=place.aggregates, decider=DECIDER, codec=CODEC, state=STATE, policy=every(10)
    )


def _aggregate(place: Place, _: Cache) -> Append:
    return partial(_aggregates(place).handle, AGGREGATE, b"{}")


def _known(place: Place, _: Cache) -> Append:
    deciders = _aggregates(place)
    standing: Standing[int] | None = None

    def append() -> None:
        nonlocal standing
        standing = deciders.handle(AGGREGATE, b"{}", known=standing).standing

    return append


def _events_of_aggregate(place: Place) -> int:
    return sum(1 for _ in place.aggregates.events_after(AGGREGATE, 0))


SUBJECTS: Final = (
    Subject(
        name="decider",
        writer=_decider,
        within={8: Bound(wasted=0.05, requests=2.1), 32: Bound(wasted=0.05, requests=2.1)},
        between={
            8: Bound(wasted=1.5, requests=5, given_up=0.02),
            32: Bound(wasted=3, requests=8, given_up=0.1),
        },
    ),
    Subject(
        name="cached",
        writer=_cached,
        within={8: Bound(wasted=0.05, requests=1.1), 32: Bound(wasted=0.05, requests=1.1)},
        between={
            8: Bound(wasted=0.5, requests=2.5, given_up=0.02),
            32: Bound(wasted=2, requests=5, given_up=0.1),
        },
    ),
    Subject(
        name="any version",
        writer=_any_version,
        within={8: Bound(wasted=0.05, requests=1.1), 32: Bound(wasted=0.05, requests=1.2)},
        between={8: Bound(wasted=2, requests=5), 32: Bound(wasted=4, requests=10)},
    ),
    Subject(
        name="with a key",
        writer=_with_a_key,
        within={8: Bound(wasted=0.05, requests=3.1), 32: Bound(wasted=0.05, requests=3.1)},
        between={8: Bound(wasted=2, requests=8), 32: Bound(wasted=5, requests=18)},
    ),
    Subject(
        name="aggregate",
        writer=_aggregate,
        count=_events_of_aggregate,
        within={8: Bound(wasted=0.05, requests=3.1), 32: Bound(wasted=0.05, requests=3.1)},
        between={
            8: Bound(wasted=6, requests=8, given_up=0.02),
            32: Bound(wasted=15, requests=15, given_up=0.15),
        },
    ),
    Subject(
        name="known",
        writer=_known,
        count=_events_of_aggregate,
        within={8: Bound(wasted=0.05, requests=1.3), 32: Bound(wasted=0.05, requests=1.5)},
        between={
            8: Bound(wasted=2, requests=3, given_up=0.02),
            32: Bound(wasted=8, requests=8, given_up=0.1),
        },
    ),
)


def contend(subject: Subject, writers: int, *, processes: bool, seed: int = SEED) -> Taken:
    """Let writers append until all of them have made their appends.

    `processes`: whether each writer is in a process of its own.
    """
    dice, schedule, refused, meter = random.Random(seed), Schedule(), Meter(), Meter()
    tables, took = memory_tables(), list[float]()

    place_of = partial(
        process_over, tables, schedule, dice, meter=meter, refused=refused, request=REQUEST, spread=0.05
    )

    def write(place: Place, cache: Cache) -> None:
        append = subject.writer(place, cache)
        for _ in range(APPENDS // writers):
            began = schedule.now
            with suppress(Contended):
                append()
            took.append(schedule.now - began)

    shared = place_of(), Cache()
    for _ in range(writers):
        schedule.begin(partial(write, *((place_of(), Cache()) if processes else shared)))
    schedule.run()
    spent = meter.capacity
    place = replace(shared[0], driver=Driver(execute=tables.execute, meter=Meter()))
    return Taken(
        stored=subject.count(place),
        wasted=refused.units.write / APPENDS,
        write=spent.write / APPENDS,
        read=spent.read / APPENDS,
        requests=spent.requests / APPENDS,
        rate=APPENDS / schedule.now,
        longest=max(took),
    )


def bound_of(subject: Subject, writers: int, *, processes: bool) -> Bound:
    """Return the bounds of a row."""
    return (subject.between if processes else subject.within)[writers]


def is_within(taken: Taken, bound: Bound) -> bool:
    """Return whether few enough appends were given up, and the bounds are kept."""
    within = taken.wasted <= bound.wasted and taken.requests <= bound.requests
    return within and (1 - bound.given_up) * APPENDS <= taken.stored <= APPENDS


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    results = {
        (subject, writers, processes): contend(subject, writers, processes=processes)
        for subject in SUBJECTS
        for processes in (False, True)
        for writers in WRITERS
    }
    Report(
        title="One append to one stream or aggregate that others append to, requests of 20 ms, simulated",
        columns=[
            "",
            "events kept",
            "wasted write units",
            "write units",
            "read units",
            "requests",
            "a second",
            "longest",
        ],
        rows=[
            (
                f"{subject.name}: {writers} writers {'between processes' if processes else 'in one process'}",
                f"{took.stored}",
                f"{took.wasted:.2f}",
                f"{took.write:.2f}",
                f"{took.read:.2f}",
                f"{took.requests:.2f}",
                f"{took.rate:.1f}",
                f"{took.longest:.2f} s",
            )
            for (subject, writers, processes), took in results.items()
        ],
    ).print()
    over = [
        f"{subject.name}, {writers} writers{', between processes' * processes}"
        for (subject, writers, processes), took in results.items()
        if not is_within(took, bound_of(subject, writers, processes=processes))
    ]
    if over:
        raise SystemExit(f"events lost, or beyond a bound: {'; '.join(over)}")


if __name__ == "__main__":
    main()
