"""Catching up: reading an index of a million events, and hydrating them, beside boto3 alone.

    without data    the library's spans and items beside boto3 that pages through the same epochs, unpacks the same
                    entries and makes a tuple of each event; and beside the bytes alone, which nobody can use
    with data       the library's pages beside boto3 that makes the very same requests (`bench.hydrating`)

The ways take turns in one run (`bench.rounds`). Entries of ten appends are what a batching window of a second makes of
ten appends a second; a trickle makes entries of one, a load entries of hundreds.

Bounds: 0.8 of bare boto3 without data, 0.6 where entries have hundreds of events, 0.7 with data; memory does not grow
with the index.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from bench.flight_feed import bare_index, put
from bench.hydrating import Took, feed_at
from bench.local import Local, dynamodb, local_at
from bench.report import Report
from bench.rounds import ROUNDS, Compared, by_turns
from epochal.contrib.local.endpoint import Endpoint
from epochal.layout.tables import INDEX

WITHOUT_DATA, WITH_DATA = 0.8, 0.7
MANY_AN_ENTRY = 0.6
"""0.65 to 0.73 were measured, and 0.54 while entries were read as any JSON is."""

MORE_MEMORY = 8 * 1024 * 1024
"""How much more a long index may take than a short one: what the interpreter does not give back at once."""

WAYS = ("bytes", "bare", "spans", "items")

_ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """An index of a number of events, with a number of appends per entry."""

    events: int
    appends: int


SHORT, LONG = Load(events=100_000, appends=10), Load(events=1_000_000, appends=10)
TRICKLE, LOADED = Load(events=100_000, appends=1), Load(events=1_000_000, appends=200)
HYDRATED = Load(events=10_000, appends=10)


def without_data(endpoint: Endpoint, load: Load, rounds: int = ROUNDS) -> Compared[Took]:
    """Read an index in every way, without events' data."""
    tables = bare_index(load.events, load.appends)
    with local_at(endpoint) as local:
        put(tables, INDEX.kind, local)
        del tables
        return by_turns({way: _reading(endpoint, local, way) for way in WAYS}, rounds)


def with_data(endpoint: Endpoint, load: Load, rounds: int = ROUNDS) -> Compared[Took]:
    """Read a feed with its events, and make the same requests with boto3 alone."""
    with feed_at(endpoint, load.events, load.appends) as feed:
        requests = feed.recorded()
        return by_turns({"requests": lambda: feed.bare(requests), "library": feed.library}, rounds)


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is missed."""
    with dynamodb() as endpoint:
        indexes = {load: without_data(endpoint, load) for load in (LONG, SHORT, TRICKLE, LOADED)}
        hydrated = with_data(endpoint, HYDRATED)
    _print("Reading an index without data, DynamoDB Local", indexes, WAYS, "bare")
    _print(
        "Reading a feed with its events, DynamoDB Local",
        {HYDRATED: hydrated},
        ("requests", "library"),
        "requests",
    )
    grown = indexes[LONG].took("items").peak - indexes[SHORT].took("items").peak
    print(f"An index ten times as long takes {grown / 2**20:.1f} MB more.")
    missed = [
        f"{load}: {way} at {indexes[load].ratio(way, 'bare'):.2f} of bare boto3"
        for load, bound in ((LONG, WITHOUT_DATA), (TRICKLE, WITHOUT_DATA), (LOADED, MANY_AN_ENTRY))
        for way in ("items",)
        if indexes[load].ratio(way, "bare") < bound
    ]
    if (ratio := hydrated.ratio("library", "requests")) < WITH_DATA:
        missed.append(f"with data at {ratio:.2f} of the bare requests")
    if grown > MORE_MEMORY:
        missed.append(f"memory grows with the index: {grown / 2**20:.1f} MB")
    if missed:
        raise SystemExit("; ".join(missed))


def _print(title: str, results: Mapping[Load, Compared[Took]], ways: tuple[str, ...], beside: str) -> None:
    Report(
        title=title,
        columns=[
            "events",
            "appends/entry",
            "way",
            "requests",
            "read units",
            "events/s",
            "CPU µs/event",
            "peak",
            f"of {beside}",
        ],
        rows=[
            _row(load, way, compared.took(way), compared.ratio(way, beside))
            for load, compared in results.items()
            for way in ways
        ],
    ).print()


def _row(load: Load, way: str, took: Took, ratio: float) -> tuple[str, ...]:
    return (
        f"{load.events:,}",
        f"{load.appends}",
        way,
        f"{took.requests:,}",
        f"{took.read_units:,.0f}",
        f"{load.events / took.seconds:,.0f}",
        f"{took.cpu / load.events * 1e6:.1f}",
        f"{took.peak / 2**20:.1f} MB" if took.peak else "",
        f"{ratio:.2f}",
    )


def _reading(endpoint: Endpoint, local: Local, way: str) -> Callable[[], Took]:
    """Return a function that reads the index in another process, and returns the figures of that process."""
    command = [sys.executable, "-m", "bench.catcher", endpoint.url, local.table, way]

    def read() -> Took:
        ran = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, cwd=_ROOT)
        return Took(**json.loads(ran.stdout))

    return read


if __name__ == "__main__":
    main()
