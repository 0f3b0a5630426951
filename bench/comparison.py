"""The workloads' tables: recorded figures of other stores, then ours, measured now."""

from __future__ import annotations

from itertools import product
from typing import get_args

from bench import rivals
from bench.corpus import UNFOLD_BYTES, Kind
from bench.local import Laid, dynamodb
from bench.report import Report, progress
from bench.workloads import Cost, Loads, contend, in_batches, load_and_append, long_stream, replay
from epochal.contrib.local.endpoint import Endpoint

EVERY: tuple[tuple[Laid, Kind], ...] = tuple(product(get_args(Laid), get_args(Kind)))

W1: tuple[tuple[Laid, Kind, Loads], ...] = (
    ("pages", "json", "program"),
    ("pages", "json", "read"),
    ("pages", "json", "lagging"),
    ("pages", "json", "cached"),
    ("pages", "direct", "read"),
    ("tips", "json", "read"),
    ("tips", "json", "cached"),
    ("tips", "direct", "read"),
)


W5: tuple[Loads, ...] = ("program", "read", "cached")


def named(laid: Laid, kind: Kind) -> str:
    """Name of our store in the tables."""
    return f"Epochal, {laid}, {kind}"


def main() -> None:
    """Run every workload, and print the tables."""
    with dynamodb() as endpoint:
        workloads = (w1, w2, w3, lambda: w4(endpoint), lambda: w5(endpoint))
        tables = (workload() for workload in workloads)
        for report in list(progress("workloads", tables, len(workloads))):
            report.print()


def w1() -> Report:
    """Print the table of loads and appends."""
    ours = {}
    for laid, kind, loads in W1:
        small, large = (load_and_append(laid, kind, size, loads) for size in (300, 1000))
        name = named(laid, kind) + ("" if loads == "read" else f", {loads}")
        ours[name] = _load_and_append(small, large)
    return Report(
        title="W1: 200 streams × 10 × (load, append one 300-byte event); an event; $ a million events",
        columns=("", "write", "read", "calls", "$", "$ at 1 KB", "bytes stored"),
        rows=_beside(rivals.LOAD_AND_APPEND, ours),
    )


def _load_and_append(cost: Cost, large: Cost) -> tuple[str, ...]:
    return (
        f"{cost.units.write:.2f}",
        f"{cost.units.read:.2f}",
        f"{cost.calls:.1f}",
        f"{cost.dollars:.2f}",
        f"{large.dollars:.2f}",
        f"{cost.stored:.0f}",
    )


def w2() -> Report:
    """Print the table of a long stream."""
    ours = {
        named(laid, kind): [
            f"{long_stream(laid, kind, unfold).units.write:.2f}" for unfold in (0, UNFOLD_BYTES)
        ]
        for laid, kind in EVERY
    }
    return Report(
        title="W2: one stream, 1,000 appends of 300 B; write units an event",
        columns=("", "events alone", "with a snapshot of 1 KB"),
        rows=_beside(rivals.LONG_STREAM, ours),
    )


def w3() -> Report:
    """Print the table of batches."""
    ours = {named(laid, kind): [f"{in_batches(laid, kind).units.write:.2f}"] for laid, kind in EVERY}
    return Report(
        title="W3: batches of 10 events; write units an event",
        columns=("", "write"),
        rows=_beside(rivals.BATCHES, ours),
    )


def w4(endpoint: Endpoint) -> Report:
    """Print the table of a replay."""
    ours = {}
    for laid, kind in EVERY:
        for way, took in replay(endpoint, laid, kind).items():
            name = named(laid, kind) if way == "library" else f"bare boto3, the same items, {laid}, {kind}"
            speed = f"{took.events / took.seconds / 1000:.1f}k"
            ours[name] = (f"{took.events:,}", f"{took.read_units:,.0f}", speed)
    return Report(
        title="W4: replay of 5,000 × 1 KB",
        columns=("", "events returned", "read units", "events/s"),
        rows=_beside(rivals.REPLAY, ours),
    )


def w5(endpoint: Endpoint) -> Report:
    """Print the table of contending writers."""
    ours = {}
    for laid, kind in EVERY:
        for loads in W5:
            took = contend(endpoint, laid, kind, loads)
            name = named(laid, kind) + ("" if loads == "read" else f", {loads}")
            ours[name] = (f"{took.stored}", f"{took.wasted:,.0f}", f"{took.read:,.0f}")
    return Report(
        title="W5: 8 writers on one stream, 160 appends",
        columns=("", "events kept", "wasted write units", "read units"),
        rows=_beside(rivals.CONTENTION, ours),
    )


def _beside(recorded: rivals.Rows, ours: rivals.Rows) -> tuple[tuple[str, ...], ...]:
    return tuple((name, *figures) for name, figures in (*recorded.items(), *ours.items()))


if __name__ == "__main__":
    main()
