"""Importing a file of events of 300 bytes, each stream's as an order's come: few at a time, among those of others.

The dry run is first, and tells the write units that the import is held to. Each runs in a process of its own, which
says what memory it has needed. All is read again in the end, and compared.

    python -m bench.importing 1000000       as many events, without keeping the figures

Bounds: the units that the dry run told, which are 0.25 an event at most, and 512 MB.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.local import dynamodb, local_at
from bench.peak import peak_bytes
from bench.report import Report
from epochal.care.prices import PRICES
from epochal.contrib.local.endpoint import Endpoint
from epochal.contrib.transfer.importing.importer import StreamImporter
from epochal.contrib.transfer.importing.kinds import source_of
from epochal.contrib.transfer.importing.writing import HistoryWriter, make_dry_run_writer
from epochal.dynamo.interpreter import interpreter
from epochal.pages.items import STREAMS
from epochal.pages.layout import Pages
from epochal.store.driver import Driver, Meter
from epochal.store.streams import Streams

UNITS: Final = 0.25
MEMORY: Final = 512 * 1024 * 1024

EVENTS: Final = 100_000
BYTES: Final = 300
A_STREAM: Final = 50
OPEN: Final = 2_000
"""Orders under way at once, of which any may be next; in a short file, half as many as it has events."""

MAP: Final = {"stream": "Order-{order}", "type": "what", "time": "at", "data": "body"}

_ROOT: Final = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """Figures of an import, or of its dry run."""

    written: int
    streams: int
    units: float
    rejected: int
    unlike: int
    seconds: float
    cpu: float
    peak: int


def lines(events: int) -> Iterator[str]:
    """Yield a number of events, one per line."""
    luck, begun = random.Random(7), min(OPEN, events // 2)
    under_way = [[number, 0] for number in range(begun)]
    for number in range(events):
        order = under_way[luck.randrange(len(under_way))]
        body = {"customer": luck.randbytes(16).hex(), "total": luck.randrange(100_000) / 100, "note": ""}
        body["note"] = luck.randbytes((BYTES - len(json.dumps(body))) // 2).hex()
        at = f"2026-01-01T{number // 3_600_000 % 24:02d}:{number // 60_000 % 60:02d}:{number // 1_000 % 60:02d}Z"
        yield json.dumps({"order": order[0], "what": "Changed", "at": at, "body": body}) + "\n"
        order[1] += 1
        if order[1] == A_STREAM:
            order[:] = [begun, 0]
            begun += 1


def compared(endpoint: Endpoint, events: int) -> tuple[Imported, Imported]:
    """Measure the dry run and the import."""
    with TemporaryDirectory() as folder, local_at(endpoint, STREAMS) as local:
        file = Path(folder) / "orders.ndjson"
        with file.open("w", encoding="utf-8") as out:
            out.writelines(lines(events))
        return _apart(str(file)), _apart(str(file), endpoint.url, local.table)


def missed(events: int, dry: Imported, real: Imported) -> list[str]:
    """Return the bounds that were exceeded."""
    faults = []
    if (real.written, real.rejected, real.unlike) != (events, 0, 0):
        faults.append(f"of {events:,} events {real.written:,} are there")
    if real.units > 1.01 * dry.units:
        faults.append(f"{real.units:,.0f} write units, and {dry.units:,.0f} were told")
    if real.units > UNITS * events:
        faults.append(f"{real.units / events:.3f} write units an event")
    if max(dry.peak, real.peak) > MEMORY:
        faults.append(f"an import takes {max(dry.peak, real.peak) / 2**20:.0f} MB")
    return faults


def report(events: int, dry: Imported, real: Imported) -> Report:
    """Return both as a table."""
    return Report(
        title=f"Importing {events:,} events of {BYTES} bytes from NDJSON, {real.streams:,} streams, DynamoDB Local",
        columns=["", "write units", "dollars", "events/s", "CPU µs/event", "peak"],
        rows=[
            (
                way,
                f"{took.units:,.0f}",
                f"{took.units * PRICES['write units']:.4f}",
                f"{events / took.seconds:,.0f}",
                f"{took.cpu / events * 1e6:.1f}",
                f"{took.peak / 2**20:.1f} MB",
            )
            for way, took in (("dry run", dry), ("import, and all read again", real))
        ],
    )


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    with dynamodb() as endpoint:
        dry, real = compared(endpoint, EVENTS)
    report(EVENTS, dry, real).print()
    if faults := missed(EVENTS, dry, real):
        raise SystemExit("; ".join(faults))


def _apart(file: str, *store: str) -> Imported:
    """Run an import in another process."""
    command = [sys.executable, "-m", "bench.importing", file, *store]
    ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=_ROOT)
    return Imported(**json.loads(ran.stdout))


def _imported(file: str, url: str = "", table: str = "") -> Imported:
    began, worked = time.perf_counter(), time.process_time()
    writer = make_dry_run_writer()
    if table:
        driver = Driver(execute=interpreter(Endpoint(url=url).client("dynamodb")), meter=Meter())
        writer = HistoryWriter(Streams(driver=driver, table=table, layout=Pages()))
    importer = StreamImporter(writer=writer, verifying=bool(table))
    done = importer.run(source_of("", file).rows(file, MAP))
    if importer.verifying:
        importer.verify()
    return Imported(
        written=done.written,
        streams=done.streams,
        units=done.units,
        rejected=done.rejected,
        unlike=len(done.unlike),
        seconds=time.perf_counter() - began,
        cpu=time.process_time() - worked,
        peak=peak_bytes(),
    )


def _printed(events: int) -> None:
    with dynamodb() as endpoint:
        dry, real = compared(endpoint, events)
    for name, dry_, real_ in zip(asdict(dry), asdict(dry).values(), asdict(real).values(), strict=True):
        print(f"{name:10}{dry_:>16,.1f}{real_:>16,.1f}")
    print("; ".join(missed(events, dry, real)))


if __name__ == "__main__":
    if sys.argv[1].isdigit():
        _printed(int(sys.argv[1]))
    else:
        print(json.dumps(asdict(_imported(*sys.argv[1:]))))
