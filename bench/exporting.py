"""Exporting a feed of events of 300 bytes to Parquet, beside boto3 alone that makes the very same requests.

The bare requests are those of `bench.hydrating`: in their order, as many at a time, and nobody looks at what they
bring. So nothing that reads these events can be faster by much. The export runs in a process of its own, which says
what memory it has needed.

It is one process that reads one range: workers side by side read as many ranges at once.

Bounds: 0.8 of the speed of bare boto3, and 512 MB.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.hydrating import Recorder, Took, made_again
from bench.local import Local, dynamodb, local_at
from bench.peak import peak_bytes
from bench.report import Report
from bench.rounds import ROUNDS, Compared, by_turns
from epochal import Event
from epochal.contrib.local.endpoint import KEY, REGION, SECRET, Endpoint
from epochal.contrib.transfer.export.origins import begin_feed, run_feed
from epochal.contrib.transfer.export.parts import ExportScope
from epochal.dynamo.carriers import LightCarrier
from epochal.dynamo.interpreter import carrier_interpreter, interpreter
from epochal.dynamo.wire.environment import Service
from epochal.dynamo.wire.signatures import FixedKeys
from epochal.feed.reader import FeedReader
from epochal.feed.stream_history import StreamHistory
from epochal.layout.tables import INDEX
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.plan.ops import Execute
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams
from epochal.testing.feeds import MemoryStore

SPEED = 0.8
MEMORY = 512 * 1024 * 1024

EVENTS = 100_000
BYTES = 300
A_STREAM = 50
AN_APPEND = 5
INDEXED = 50
"""Appends of a batch of the indexer."""

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A feed with its events on DynamoDB Local."""

    url: str
    streams: str
    index: str

    def reader(self, execute: Execute) -> FeedReader:
        """Return a reader with its own meter."""
        driver = Driver(execute=execute, meter=Meter())
        history = StreamHistory(Streams(driver=driver, table=self.streams, layout=Pages()))
        return FeedReader(driver=driver, table=self.index, histories=(history,))


def filled(events: int) -> MemoryStore:
    """Store `events` events in streams that grow concurrently."""
    feed, luck = MemoryStore(), random.Random(7)
    streams = max(1, events // A_STREAM)
    for number in range(events // AN_APPEND):
        feed.streams.append(f"Order-{number % streams:08d}", [_event(luck) for _ in range(AN_APPEND)])
        if number % INDEXED == INDEXED - 1:
            feed.index()
    feed.index()
    return feed


def _event(luck: random.Random) -> Event:
    body = {"customer": luck.randbytes(16).hex(), "total": luck.randrange(100_000) / 100, "note": ""}
    body["note"] = luck.randbytes((BYTES - len(json.dumps(body))) // 2).hex()
    return Event(type=luck.choice(("Placed", "Paid", "Packed", "Sent")), data=json.dumps(body).encode())


@contextmanager
def stored_at(endpoint: Endpoint, events: int) -> Iterator[tuple[Stored, Local]]:
    """Store events and their feed on DynamoDB Local, for the duration of a block."""
    feed = filled(events)
    with ExitStack() as stack:
        streams = stack.enter_context(local_at(endpoint, STREAMS))
        index = stack.enter_context(local_at(endpoint, INDEX))
        streams.fill(feed.tables.items(STREAMS.kind))
        index.fill(feed.tables.items(INDEX.kind))
        del feed
        yield Stored(url=endpoint.url, streams=streams.table, index=index.table), streams


def compared(endpoint: Endpoint, events: int, rounds: int = ROUNDS) -> Compared[Took]:
    """Measure an export, and its requests alone."""
    with stored_at(endpoint, events) as (stored, local):
        recorder = Recorder(interpreter(local.client))
        _export(stored.reader(recorder.execute))
        ways: dict[str, Callable[[], Took]] = {
            "requests": lambda: made_again(endpoint.client("dynamodb"), recorder.ops),
            "export": lambda: _apart(stored),
        }
        return by_turns(ways, rounds)


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is missed."""
    with dynamodb() as endpoint:
        comparison = compared(endpoint, EVENTS)
    ways = ("requests", "export")
    Report(
        title=f"Exporting {EVENTS:,} events of {BYTES} bytes to Parquet, DynamoDB Local",
        columns=["way", "requests", "read units", "events/s", "CPU µs/event", "peak", "of requests"],
        rows=[
            (
                way,
                f"{took.requests:,}",
                f"{took.read_units:,.0f}",
                f"{EVENTS / took.seconds:,.0f}",
                f"{took.cpu / EVENTS * 1e6:.1f}",
                f"{took.peak / 2**20:.1f} MB" if took.peak else "",
                f"{comparison.ratio(way, 'requests'):.2f}",
            )
            for way in ways
            for took in (comparison.took(way),)
        ],
    ).print()
    missed = []
    if (ratio := comparison.ratio("export", "requests")) < SPEED:
        missed.append(f"an export at {ratio:.2f} of the bare requests")
    if (peak := max(round_["export"].peak for round_ in comparison.rounds)) > MEMORY:
        missed.append(f"an export takes {peak / 2**20:.0f} MB")
    if missed:
        raise SystemExit("; ".join(missed))


def _apart(stored: Stored) -> Took:
    """Run an export in another process."""
    command = [sys.executable, "-m", "bench.exporting", stored.url, stored.streams, stored.index]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=_ROOT)
    return Took(**json.loads(ran.stdout))


def _export(reader: FeedReader) -> Took:
    began, worked = time.perf_counter(), time.process_time()
    with TemporaryDirectory() as folder:
        export = begin_feed(reader, Path(folder), ExportScope(source="bench"))
        events = run_feed(export, lambda: reader).rows
    meter = reader.driver.meter
    return Took(
        requests=meter.requests,
        read_units=meter.units.read,
        seconds=time.perf_counter() - began,
        cpu=time.process_time() - worked,
        events=events,
        peak=peak_bytes(),
    )


if __name__ == "__main__":
    url, streams, index = sys.argv[1:]
    service = Service(url=url, region=REGION, credentials=FixedKeys(KEY, SECRET))
    found = _export(
        Stored(url=url, streams=streams, index=index).reader(carrier_interpreter(LightCarrier(service)))
    )
    print(json.dumps(asdict(found)))
