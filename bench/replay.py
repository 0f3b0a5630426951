"""Reading a long stream from its beginning, of pages or tips: memory, and speed beside bare boto3 querying its items.

Each read runs in a process of its own (`bench.replayer`) against DynamoDB Local, which takes most of the time of both
and is no measure of DynamoDB; processor time of the reading process is what the library can answer for.

Bound: 100,000 events, completely and in order, within 64 MB above an idle interpreter. A client of boto3 alone takes
some 39 of them.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from bench.corpus import Kind, body
from bench.local import SPECS, Laid, Local, dynamodb, local_at
from bench.report import Report, progress
from epochal.contrib.equinox.streams import Tips
from epochal.contrib.local.endpoint import Endpoint
from epochal.index.checkpoints import tip_key
from epochal.index.tip import StoredSpan, event_bytes, events_attributes, write_event
from epochal.index.tip_writes import put_calf
from epochal.layout.streams import AnyStreamLayout, EncodedEvent
from epochal.model.events import Event
from epochal.model.moments import Ticks, format_ticks, from_unix_nanoseconds
from epochal.pages.frames import Frame, pack_events, stamp_of
from epochal.pages.items import Page, write_page
from epochal.pages.layout import Pages
from epochal.plan.values import AttributeValue, Item, number, text
from epochal.store.encoding import BodyCodec, store_events

BOUND = 64 * 1024 * 1024
STREAM, TYPE = "Bench-1", "Happened"

Way = Literal["bare", "library"]

_ROOT = Path(__file__).resolve().parent.parent
_IDLE = "from bench.peak import peak_bytes; print(peak_bytes())"
_MOMENT = from_unix_nanoseconds(1_357_000_000_000_000_000)
_NOW = format_ticks(_MOMENT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Long:
    """A stream after appends of single events: full pages or calves of a fixed number of events, and a rest.

    Attributes:
        each: events an item, as the layout's own rule makes them of events of this size.
    """

    layout: Laid = "pages"
    events: int = 100_000
    size: int = 300
    kind: Kind = "direct"
    each: int = 2

    def bodies(self) -> Iterator[bytes]:
        """Yield the bodies of the events in order."""
        rng = random.Random(self.events)
        return (body(rng, self.size, self.kind) for _ in range(self.events))

    def checksum(self) -> int:
        """Return the checksum of all bodies in order."""
        return reduce(lambda checksum, data: zlib.crc32(data, checksum), self.bodies(), 0)

    def items(self) -> Iterator[Item]:
        """Yield the stream's items, written by the layout; the one that takes appends is the last."""
        return self._pages() if self.layout == "pages" else self._tips()

    def _pages(self) -> Iterator[Item]:
        rng, bodies = random.Random(1), self.bodies()
        for base in range(0, self.events, self.each):
            frames = tuple(
                Frame(
                    stamp_of(Ticks(_MOMENT + base + k), rng.randbytes(8)),
                    1,
                    *pack_events(_stored(data, Pages()), _MOMENT),
                )
                for k, data in enumerate(islice(bodies, self.each))
            )
            version = base + len(frames)
            full = version < self.events
            yield write_page(Page(stream=STREAM, index=base, version=version, frames=frames, full=full))

    def _tips(self) -> Iterator[Item]:
        wire, calved = self._wire(), 0
        for base in range(0, self.events, self.each):
            events = tuple(islice(wire, self.each))
            span = StoredSpan(base=base, events=events, types=(TYPE,) * len(events))
            if span.next < self.events:
                calved += event_bytes(span)
                yield put_calf("", STREAM, span).item
            else:
                yield _tip(span, calved)

    def _wire(self) -> Iterator[AttributeValue]:
        """Yield events as items store them, each with its own append id."""
        rng = random.Random(1)
        for data in self.bodies():
            (event,) = _stored(data, Tips())
            yield write_event(event._replace(append_id=rng.randbytes(16)))


def _stored(data: bytes, layout: AnyStreamLayout) -> tuple[EncodedEvent, ...]:
    codec = BodyCodec(compress_from=layout.compress_from)
    return store_events([Event(type=TYPE, data=data)], _NOW, codec, layout.room(()))


def _tip(span: StoredSpan, calved: int) -> Item:
    return {
        **tip_key(STREAM),
        "n": number(span.next),
        "a": number(1),
        "b": number(calved),
        "etag": text(random.Random(1).randbytes(16).hex()),
        **events_attributes(span),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Read:
    """Result and figures of a process that read a stream.

    Attributes:
        seconds: from the first request to the last event.
        cpu: seconds of processor time of the reading process.
        above_idle: bytes of memory at the peak, above those of an interpreter that does nothing.
        complete: every event; read by the library, also each in its turn and with the body that was stored.
    """

    events: int
    requests: int
    read_units: float
    seconds: float
    cpu: float
    above_idle: int
    complete: bool


def read(endpoint: Endpoint, local: Local, long: Long, way: Way) -> Read:
    """Read the stream in a new process."""
    result = json.loads(_run("-m", "bench.replayer", endpoint.url, local.table, STREAM, long.layout, way))
    return Read(
        events=result["events"],
        requests=result["requests"],
        read_units=result["read_units"],
        seconds=result["seconds"],
        cpu=result["cpu"],
        above_idle=result["peak"] - int(_run("-c", _IDLE)),
        complete=result["events"] == long.events and (way == "bare" or _in_order(result, long)),
    )


def _in_order(result: dict[str, Any], long: Long) -> bool:
    return bool(result["ordered"] and result["checksum"] == long.checksum())


LONG = (
    Long(),
    Long(kind="json", each=4),
    Long(layout="tips"),
    Long(layout="tips", events=30_000, kind="json", each=3),
)


def _run(*arguments: str) -> str:
    command = [sys.executable, *arguments]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=_ROOT).stdout


def measure(endpoint: Endpoint, long: Long) -> dict[Way, Read]:
    """Read a stream with the library and with boto3 alone, from the same items."""
    with local_at(endpoint, SPECS[long.layout]) as local:
        local.fill(
            progress(f"replay: storing {long.events:,} events", long.items(), -(-long.events // long.each))
        )
        return {way: read(endpoint, local, long, way) for way in ("bare", "library")}


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded or an event is missing."""
    with dynamodb() as endpoint:
        results = [(long, measure(endpoint, long)) for long in LONG]
    Report(
        title="Reading whole streams, DynamoDB Local",
        columns=[
            "stream",
            "way",
            "events",
            "requests",
            "read units",
            "events/s",
            "CPU µs/event",
            "peak above idle",
        ],
        rows=[
            (
                f"{long.layout}, {long.size:,} B {long.kind}",
                way,
                f"{took.events:,}",
                f"{took.requests:,}",
                f"{took.read_units:,.0f}",
                f"{took.events / took.seconds:,.0f}",
                f"{took.cpu / took.events * 1e6:.0f}",
                f"{took.above_idle / 2**20:.1f} MB",
            )
            for long, ways in results
            for way, took in ways.items()
        ],
    ).print()
    for long, ways in results:
        speed = ways["bare"].seconds / ways["library"].seconds
        effort = ways["library"].cpu / ways["bare"].cpu
        print(
            f"{long.layout}, {long.size} B {long.kind}: "
            f"{speed:.2f} times the speed of bare boto3, {effort:.2f} times its CPU"
        )
        if not all(took.complete for took in ways.values()) or ways["library"].above_idle > BOUND:
            raise SystemExit(f"incomplete, out of order, or over {BOUND / 2**20:.0f} MB: {ways}")


if __name__ == "__main__":
    main()
