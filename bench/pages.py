"""What streams on pages cost, and what they store: write units and billed bytes an event, against bounds.

The workloads of `bench.workloads` go through the library on the memory interpreter, whose units are DynamoDB's rules
applied to the real items; a test holds one of them to DynamoDB Local. Billed bytes are an item's and 100 more.

    alone       one stream, 1,000 appends of one event by token
    snapshot    likewise, each with a snapshot of 1 KB
    kept        events of 300 bytes by token, and a snapshot of this size with the first and each hundredth
    ids         1,000 appends of one event with an id by token
    sent again  likewise, to whatever stream there is: the last pages are looked at for the id
    ten         100 appends of ten events by token
    streams     200 streams, 10 appends of one event each
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from bench.calving import STREAM, play
from bench.corpus import UNFOLD_BYTES, Kind, Workload, body
from bench.report import Report, progress
from bench.rounds import Compared, by_turns
from epochal.codec.bodies import DIRECT, Encoded, decode, encode
from epochal.index.tip import read_event, write_event
from epochal.layout.streams import EncodedEvent
from epochal.model.events import Event, Unfold
from epochal.model.expected_version import ANY, NO_STREAM, ExpectedVersion
from epochal.model.moments import format_ticks, parse_time
from epochal.pages.frames import Frame, pack_events, read_frame, stamp_of
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.values import item_size
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.memory import MemoryTables

T = TypeVar("T")

_NOW: Final = 1_357_000_000_000_000_000
_ITEM: Final = 100
"""Bytes that an item is billed for besides its own, while it is stored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Figures of one event."""

    units: float
    stored: float
    reads: float = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A workload, and the bounds of one event's figures.

    Attributes:
        append: function that makes the appends, and returns their number of events.
        stored: bound of the billed bytes; None for no bound.
    """

    name: str
    size: int
    kind: Kind
    append: Callable[[Streams, int, Kind], int]
    units: float
    stored: float | None = None


def alone(streams: Streams, size: int, kind: Kind) -> int:
    """Append events one at a time."""
    return _long(streams, Workload(size=size, kind=kind))


def with_snapshot(streams: Streams, size: int, kind: Kind) -> int:
    """Append events one at a time, each with a snapshot."""
    return _long(streams, Workload(size=size, kind=kind, unfold=UNFOLD_BYTES))


def kept_snapshot(streams: Streams, size: int, kind: Kind) -> int:
    """Append events of 300 bytes one at a time, with an occasional snapshot of `size` that the others keep."""
    rng = random.Random(1)
    token: ExpectedVersion = NO_STREAM
    for number in range(1000):
        unfolds = None if number % 100 else [Unfold(type="State", data=body(rng, size, kind))]
        token = streams.append(STREAM, [_event(rng, 300, kind)], unfolds=unfolds, expected=token).token
    return 1000


def with_ids(streams: Streams, size: int, kind: Kind, *, anywhere: bool = False) -> int:
    """Append events one at a time, each with an id, which `anywhere` searches for in the whole stream."""
    rng = random.Random(1)
    token: ExpectedVersion = ANY if anywhere else NO_STREAM
    for _ in range(1000):
        event = replace(_event(rng, size, kind), id=str(uuid.UUID(bytes=rng.randbytes(16), version=4)))
        appended = streams.append(STREAM, [event], expected=token)
        token = token if anywhere else appended.token
    return 1000


def ten_at_once(streams: Streams, size: int, kind: Kind) -> int:
    """Append ten events at a time."""
    rng = random.Random(1)
    for _ in range(100):
        streams.append(STREAM, [_event(rng, size, kind) for _ in range(10)])
    return 1000


def many_streams(streams: Streams, size: int, kind: Kind) -> int:
    """Append ten events to each of many streams."""
    rng = random.Random(1)
    for _ in range(10):
        for number in range(200):
            streams.append(f"Account-{number:03}", [_event(rng, size, kind)], expected=ANY)
    return 2000


CASES: Final = (
    Case(name="alone", size=300, kind="json", append=alone, units=1.01),
    Case(name="alone", size=1000, kind="json", append=alone, units=1.01),
    Case(name="alone", size=300, kind="direct", append=alone, units=1.01),
    Case(name="alone", size=900, kind="direct", append=alone, units=1.01),
    Case(name="alone", size=1000, kind="direct", append=alone, units=2.01),
    Case(name="snapshot", size=300, kind="json", append=with_snapshot, units=1.05),
    Case(name="snapshot", size=1000, kind="json", append=with_snapshot, units=1.04),
    Case(name="kept", size=1000, kind="direct", append=kept_snapshot, units=1.02),
    Case(name="kept", size=4000, kind="direct", append=kept_snapshot, units=1.05),
    Case(name="kept", size=8000, kind="direct", append=kept_snapshot, units=1.1),
    Case(name="kept", size=20_000, kind="direct", append=kept_snapshot, units=1.23),
    Case(name="ids", size=300, kind="json", append=with_ids, units=1.01),
    Case(name="sent again", size=300, kind="json", append=partial(with_ids, anywhere=True), units=1.01),
    Case(name="ten", size=300, kind="json", append=ten_at_once, units=0.13),
    Case(name="ten", size=1000, kind="json", append=ten_at_once, units=0.4),
    Case(name="streams", size=300, kind="json", append=many_streams, units=1.01, stored=274),
    Case(name="streams", size=1000, kind="json", append=many_streams, units=1.01, stored=687),
)


def cost(case: Case) -> Cost:
    """Measure an event of a case in memory."""
    tables = MemoryTables({"streams": STREAMS})
    streams = store(Driver(execute=tables.execute, meter=Meter()), "streams")
    events = case.append(streams, case.size, case.kind)
    stored = sum(item_size(item) + _ITEM for item in tables.items("streams"))
    units = streams.driver.meter.units
    return Cost(units=units.write / events, stored=stored / events, reads=units.read / events)


def store(driver: Driver, table: str) -> Streams:
    """Return a store on pages with a fixed clock and fixed ids."""
    fresh = random.Random(1).randbytes
    return Streams(driver=driver, table=table, layout=Pages(), now=lambda: _NOW, fresh=fresh)


def _long(streams: Streams, workload: Workload) -> int:
    play(streams, workload)
    return workload.length


def _event(rng: random.Random, size: int, kind: Kind) -> Event:
    return Event(type="Happened", data=body(rng, size, kind))


# ----------------------------------------------------------------------------------------------------------------- CPU


@dataclass(frozen=True, slots=True, kw_only=True)
class Took:
    """CPU seconds."""

    seconds: float


def encoding(events: int, size: int = 300) -> Compared[Took]:
    """Convert appends of a number of events to their stored form and back, as Tips and as frames."""
    rng = random.Random(1)
    appends = [[body(rng, size, "json") for _ in range(events)] for _ in range(100)]
    return by_turns({"tips": lambda: _timed(_as_tips, appends), "pages": lambda: _timed(_as_frame, appends)})


def _timed(convert: Callable[[T], object], appends: Iterable[T]) -> Took:
    began = time.process_time()
    for append in appends:
        convert(append)
    return Took(seconds=time.process_time() - began)


_MOMENT: Final = parse_time("2013-01-01T00:26:40Z")
_STAMP: Final = stamp_of(_MOMENT, bytes(8))


def _as_tips(bodies: list[bytes]) -> None:
    for body_ in bodies:
        event = _stored(encode(body_))
        decode(read_event(event.type, write_event(event._replace(append_id=_STAMP))).data)


def _as_frame(bodies: list[bytes]) -> None:
    events = [_stored(Encoded(DIRECT, body_)) for body_ in bodies]
    frame = Frame(_STAMP, len(events), *pack_events(events, _MOMENT))
    for event in read_frame(frame.binary()).events():
        decode(event.data)


def _stored(data: Encoded) -> EncodedEvent:
    return EncodedEvent(type="Happened", data=data, timestamp=format_ticks(_MOMENT))


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    costs = dict(zip(CASES, progress("pages", map(cost, CASES), len(CASES)), strict=True))
    Report(
        title="Streams on pages: an event's write units, and bytes as their storage is billed",
        columns=["workload", "event", "body", "write", "bound", "read", "stored", "bound of bytes"],
        rows=[
            (
                case.name,
                f"{case.size:,} B",
                "direct" if case.kind == "direct" else "brotli",
                f"{took.units:.3f}",
                f"{case.units}",
                f"{took.reads:.2f}",
                f"{took.stored:.0f}",
                f"{case.stored or ''}",
            )
            for case, took in costs.items()
        ],
    ).print()
    Report(
        title="CPU of an append's events to their stored form and back, beside the Tip's form",
        columns=["events", "times"],
        rows=[(f"{events}", f"{1 / encoding(events).ratio('pages', 'tips'):.2f}") for events in (1, 10)],
    ).print()
    over = [case for case, took in costs.items() if not within(case, took)]
    if over:
        raise SystemExit(f"over the bound: {over}")


def within(case: Case, took: Cost) -> bool:
    """Return whether a case keeps its bounds."""
    return took.units <= case.units and (case.stored is None or round(took.stored) <= case.stored)


if __name__ == "__main__":
    main()
