"""Whole workloads, as an application makes them, beside what was recorded of other stores (`bench.rivals`).

    W1  200 streams × 10 × (load, append one event)     a decider that folds every event, and one with a cache
    W2  one stream, 1,000 appends by token              with and without a snapshot of 1 KB each time
    W3  100 appends of 10 events by token
    W4  a replay of 5,000 events of 1 KB
    W5  8 writers, 160 appends to one stream            deciders that try again on conflict

Events have 300 bytes where nothing else is said. Each workload runs with bodies that no compression shortens, and with
JSON, which brotli does.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from bench.calving import STREAM, play
from bench.corpus import Kind, Workload, body
from bench.local import Local, local_at
from bench.replay import Long, Read, Way, measure
from epochal.local.endpoint import Endpoint
from epochal.model.events import Event
from epochal.model.outcomes import Appended
from epochal.model.versions import NO_STREAM, ExpectedVersion
from epochal.plan.ops import Execute, Op, Refusal, Reply
from epochal.plan.units import Units
from epochal.store.cache import Cache
from epochal.store.codecs import EventCodec
from epochal.store.deciders import Decider, Deciders
from epochal.store.driver import Meter
from epochal.store.loading import REQUIRE_LOAD, AllowStale
from epochal.store.streams import Streams

STREAMS, EACH = 200, 10
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
    """What a workload took, an event."""

    units: Units
    calls: float
    stored: float

    @property
    def dollars(self) -> float:
        """Of a million events, at 0.625 a million write units and 0.125 a million read units."""
        return 0.625 * self.units.write + 0.125 * self.units.read


def load_and_append(endpoint: Endpoint, kind: Kind, size: int = 300, *, cached: bool = False) -> Cost:
    """W1. `cached`: each writer decides on the state it knows, which the append's condition holds it to."""
    rng = random.Random(1)
    with local_at(endpoint) as local:
        cache = Cache() if cached else None
        deciders = Deciders(streams=local.streams, decider=DECIDER, codec=CODEC, cache=cache)
        for _ in range(EACH):
            for number in range(STREAMS):
                load = AllowStale() if cached else REQUIRE_LOAD
                deciders.handle(f"Account-{number:03}", body(rng, size, kind), load=load)
        return _cost(local, deciders.streams, STREAMS * EACH)


def long_stream(endpoint: Endpoint, kind: Kind, unfold: int) -> Cost:
    """W2."""
    workload = Workload(size=300, kind=kind, unfold=unfold)
    with local_at(endpoint) as local:
        streams = local.streams
        play(streams, workload)
        return _cost(local, streams, workload.length)


def in_batches(endpoint: Endpoint, kind: Kind, batches: int = 100, events: int = 10) -> Cost:
    """W3."""
    rng = random.Random(1)
    with local_at(endpoint) as local:
        streams = local.streams
        expected: ExpectedVersion = NO_STREAM
        for _ in range(batches):
            batch = [Event(type="Happened", data=body(rng, 300, kind)) for _ in range(events)]
            outcome = streams.append(STREAM, batch, expected=expected)
            assert isinstance(outcome, Appended)
            expected = outcome.token
        return _cost(local, streams, batches * events)


def replay(endpoint: Endpoint, kind: Kind) -> dict[Way, Read]:
    """W4."""
    return measure(endpoint, Long(events=5000, size=1000, kind=kind, calf=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Contention:
    """What writers on one stream cost each other: events kept, write units of refused appends, all read units."""

    kept: int
    wasted: float
    read: float


def contend(endpoint: Endpoint, kind: Kind, *, cached: bool = False) -> Contention:
    """W5. `cached`: each writer has a cache of its own."""
    rng, refused = random.Random(1), Meter()
    shares = [[body(rng, 300, kind) for _ in range(APPENDS // WRITERS)] for _ in range(WRITERS)]
    with local_at(endpoint) as local:
        streams = local.streams
        driver = replace(streams.driver, execute=counting(streams.driver.execute, refused))

        def write(share: Sequence[bytes]) -> None:
            deciders = Deciders(
                streams=replace(streams, driver=driver),
                decider=DECIDER,
                codec=CODEC,
                cache=Cache() if cached else None,
                attempts=APPENDS * WRITERS,
            )
            for data in share:
                deciders.handle(STREAM, data, load=AllowStale() if cached else REQUIRE_LOAD)

        with ThreadPoolExecutor(WRITERS) as pool:
            list(pool.map(write, shares))
        read = driver.meter.units.read
        return Contention(kept=sum(1 for _ in streams.read(STREAM)), wasted=refused.units.write, read=read)


def counting(perform: Execute, refused: Meter) -> Execute:
    """An interpreter that also counts what refusals cost."""

    def execute(op: Op) -> Reply:
        reply = perform(op)
        if isinstance(reply, Refusal):
            refused.add(reply.units)
        return reply

    return execute


def _cost(local: Local, streams: Streams, events: int) -> Cost:
    meter = streams.driver.meter
    return Cost(
        units=Units(meter.units.read / events, meter.units.write / events),
        calls=meter.requests / events,
        stored=local.stored_bytes() / events,
    )
