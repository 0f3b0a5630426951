"""Whole workloads, as an application makes them, beside what was recorded of other stores (`bench.rivals`).

    W1  200 streams × 10 × (load, append one event)     a decider that folds every event, one with a cache, and a
                                                        program that folds what it loads
    W2  one stream, 1,000 appends by token              with and without a snapshot of 1 KB each time
    W3  100 appends of 10 events by token
    W4  a replay of 5,000 events of 1 KB
    W5  8 writers, 160 appends to one stream            deciders that try again on conflict, with and without a cache,
                                                        and a program that does so with plain calls

Events have 300 bytes where nothing else is said. Each workload runs on pages and on tips, with bodies that no
compression shortens, and with JSON, which brotli does. The first three run on the memory interpreter, which charges
what DynamoDB Local does to the unit (`tests/bench/test_pages.py`, `tests/bench/test_capacity.py`).
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final, Literal

from bench.calving import STREAM, play
from bench.corpus import Kind, Workload, body
from bench.local import SPECS, Laid, local_at
from bench.replay import Long, Read, Way, measure
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.local.endpoint import Endpoint
from epochal.deciders.cache import Cache
from epochal.deciders.codecs import EventCodec
from epochal.deciders.loading import ALLOW_LAG, REQUIRE_LOAD, AllowStale, Load
from epochal.deciders.on_streams import Decider, Deciders
from epochal.errors import ConflictError
from epochal.model.events import Event
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.pages.layout import Pages
from epochal.plan.ops import Execute, Op, Refusal, Reply
from epochal.plan.values import Units, item_size
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables

STREAMS, EACH = 200, 10
_ITEM = 100
"""Bytes that an item is billed for besides its own, while it is stored."""

WRITERS, APPENDS = 8, 160

DECIDER = Decider[bytes, int, bytes](
    initial=lambda: 0, evolve=lambda count, _: count + 1, decide=lambda command, _: [command]
)
"""Its state is how many events there are, its commands are the bodies to append."""

CODEC = EventCodec[bytes](
    encode=lambda data: Event(type="Happened", data=data), decode=lambda stored: stored.data
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Figures of a workload per event; bytes as storage is billed."""

    units: Units
    calls: float
    stored: float

    @property
    def dollars(self) -> float:
        """Dollars for a million events, at 0.625 a million write units and 0.125 a million read units."""
        return 0.625 * self.units.write + 0.125 * self.units.read


Loads = Literal["program", "read", "lagging", "cached"]
"""A program reads a state, or a decider; or it reads where that may lag; or it decides on the one it knows. The last
two the append's condition holds to what there is."""

_LOADS: Final[Mapping[Loads, Load | AllowStale]] = {
    "read": REQUIRE_LOAD,
    "lagging": ALLOW_LAG,
    "cached": AllowStale(),
}


def load_and_append(laid: Laid, kind: Kind, size: int = 300, loads: Loads = "read") -> Cost:
    """Run W1: load, then append, with a decider."""
    rng, streams = random.Random(1), _in_memory(laid)
    cache = Cache() if loads == "cached" else None
    deciders = Deciders(streams=streams, decider=DECIDER, codec=CODEC, cache=cache)
    for _ in range(EACH):
        for number in range(STREAMS):
            name, data = f"Account-{number:03}", body(rng, size, kind)
            if loads == "program":
                by_hand(streams, name, data)
            else:
                deciders.handle(name, data, load=_LOADS[loads])
    return _cost(streams, STREAMS * EACH)


def by_hand(streams: Streams, name: str, data: bytes) -> None:
    """Run W1 without a decider: a program that folds what it loads, with plain calls."""
    state = streams.load(name)
    if state is not None and len(state.events) < state.version:
        state = streams.load(name, start=0)
    count = DECIDER.initial() if state is None else len(state.events)
    assert count == (0 if state is None else state.version)
    expected = NO_STREAM if state is None else state.token
    streams.append(name, [Event(type="Happened", data=data)], expected=expected)


def long_stream(laid: Laid, kind: Kind, unfold: int) -> Cost:
    """Run W2: append to one long stream by token."""
    workload, streams = Workload(size=300, kind=kind, unfold=unfold), _in_memory(laid)
    play(streams, workload)
    return _cost(streams, workload.length)


def in_batches(laid: Laid, kind: Kind, batches: int = 100, events: int = 10) -> Cost:
    """Run W3: append batches of events by token."""
    rng, streams = random.Random(1), _in_memory(laid)
    expected: ExpectedVersion = NO_STREAM
    for _ in range(batches):
        batch = [Event(type="Happened", data=body(rng, 300, kind)) for _ in range(events)]
        expected = streams.append(STREAM, batch, expected=expected).token
    return _cost(streams, batches * events)


def replay(endpoint: Endpoint, laid: Laid, kind: Kind) -> dict[Way, Read]:
    """Run W4: replay a stream."""
    attempts = 1 if laid == "tips" or kind == "direct" else 2
    return measure(endpoint, Long(layout=laid, events=5000, size=1000, kind=kind, each=attempts))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """Figures of contending writers on one stream: stored events, write units of refused appends, and read units."""

    stored: int
    wasted: float
    read: float


def contend(endpoint: Endpoint, laid: Laid, kind: Kind, loads: Loads = "read") -> Contention:
    """Run W5: contending writers. If decisions use cached states, each writer has its own cache."""
    rng, refused = random.Random(1), Meter()
    shares = [[body(rng, 300, kind) for _ in range(APPENDS // WRITERS)] for _ in range(WRITERS)]
    with local_at(endpoint, SPECS[laid]) as local:
        streams = local.streams
        driver = replace(streams.driver, execute=counting(streams.driver.execute, refused))

        def write(share: Sequence[bytes]) -> None:
            deciders = Deciders(
                streams=replace(streams, driver=driver),
                decider=DECIDER,
                codec=CODEC,
                cache=Cache() if loads == "cached" else None,
                attempts=APPENDS * WRITERS,
            )
            for data in share:
                if loads == "program":
                    until_appended(deciders.streams, data)
                else:
                    deciders.handle(STREAM, data, load=_LOADS[loads])

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, shares))
        read = driver.meter.units.read
        return Contention(stored=sum(1 for _ in streams.read(STREAM)), wasted=refused.units.write, read=read)


def until_appended(streams: Streams, data: bytes) -> None:
    """Retry after conflicts, with plain calls."""
    appended = False
    while not appended:
        with suppress(ConflictError):
            by_hand(streams, STREAM, data)
            appended = True


def counting(perform: Execute, refused: Meter) -> Execute:
    """Return an executor that also counts the units of refused requests."""

    def execute(op: Op) -> Reply:
        reply = perform(op)
        if isinstance(reply, Refusal):
            refused.add(reply.units)
        return reply

    return execute


def _in_memory(laid: Laid) -> Streams:
    """Return a store on an empty table in memory."""
    spec = SPECS[laid]
    driver = Driver(execute=MemoryTables({spec.kind: spec}).execute, meter=Meter())
    return Streams(driver=driver, table=spec.kind, layout=Pages() if laid == "pages" else Tips())


def _cost(streams: Streams, events: int) -> Cost:
    meter = streams.driver.meter
    tables: MemoryTables = streams.driver.execute.__self__  # type: ignore[attr-defined]
    stored = sum(item_size(item) + _ITEM for item in tables.items(streams.table))
    return Cost(
        units=Units(meter.units.read / events, meter.units.write / events),
        calls=meter.requests / events,
        stored=stored / events,
    )
