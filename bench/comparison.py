"""The workloads' tables: recorded figures of other stores, then ours, measured now."""

from __future__ import annotations

from typing import get_args

from bench import rivals
from bench.corpus import UNFOLD_BYTES, Kind
from bench.local import dynamodb
from bench.report import Report, progress
from bench.workloads import Cost, contend, in_batches, load_and_append, long_stream, replay
from epochal.local.endpoint import Endpoint

KINDS: tuple[Kind, ...] = get_args(Kind)


def main() -> None:
    """Run every workload, then print the tables."""
    workloads = (w1, w2, w3, w4, w5)
    with dynamodb() as endpoint:
        found = (workload(endpoint) for workload in workloads)
        for report in list(progress("workloads", found, len(workloads))):
            report.print()


def w1(endpoint: Endpoint) -> Report:
    """Load and append."""
    ours = {}
    for kind in KINDS:
        large = load_and_append(endpoint, kind, size=1000)
        ours[f"Epochal, {kind}"] = _load_and_append(load_and_append(endpoint, kind), large)
        large = load_and_append(endpoint, kind, size=1000, cached=True)
        ours[f"Epochal, {kind}, cached"] = _load_and_append(
            load_and_append(endpoint, kind, cached=True), large
        )
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


def w2(endpoint: Endpoint) -> Report:
    """A long stream."""
    ours = {
        f"Epochal, {kind}": [
            f"{long_stream(endpoint, kind, unfold).units.write:.2f}" for unfold in (0, UNFOLD_BYTES)
        ]
        for kind in KINDS
    }
    return Report(
        title="W2: one stream, 1,000 appends of 300 B; write units an event",
        columns=("", "events alone", "with a snapshot of 1 KB"),
        rows=_beside(rivals.LONG_STREAM, ours),
    )


def w3(endpoint: Endpoint) -> Report:
    """Batches."""
    ours = {f"Epochal, {kind}": [f"{in_batches(endpoint, kind).units.write:.2f}"] for kind in KINDS}
    return Report(
        title="W3: batches of 10 events; write units an event",
        columns=("", "write"),
        rows=_beside(rivals.BATCHES, ours),
    )


def w4(endpoint: Endpoint) -> Report:
    """A replay."""
    ours = {}
    for kind in KINDS:
        for way, took in replay(endpoint, kind).items():
            name = f"Epochal, {kind}" if way == "library" else f"bare boto3, same items, {kind}"
            speed = f"{took.events / took.seconds / 1000:.1f}k"
            ours[name] = (f"{took.events:,}", f"{took.read_units:,.0f}", speed)
    return Report(
        title="W4: replay of 5,000 × 1 KB",
        columns=("", "events returned", "read units", "events/s"),
        rows=_beside(rivals.REPLAY, ours),
    )


def w5(endpoint: Endpoint) -> Report:
    """Contention."""
    ours = {}
    for kind in KINDS:
        for cached in (False, True):
            took = contend(endpoint, kind, cached=cached)
            name = f"Epochal, {kind}, cached" if cached else f"Epochal, {kind}"
            ours[name] = (f"{took.kept}", f"{took.wasted:,.0f}", f"{took.read:,.0f}")
    return Report(
        title="W5: 8 writers on one stream, 160 appends",
        columns=("", "events kept", "wasted write units", "read units"),
        rows=_beside(rivals.CONTENTION, ours),
    )


def _beside(recorded: rivals.Rows, ours: rivals.Rows) -> tuple[tuple[str, ...], ...]:
    return tuple((name, *figures) for name, figures in (*recorded.items(), *ours.items()))


if __name__ == "__main__":
    main()
