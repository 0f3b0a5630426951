"""A run in figures: each operation's throughput, answers and latency, the way to the feed, and the verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from bench.load.measures import Operation, percentiles
from bench.load.run import Load
from bench.report import Report

AFTERWARDS = "reading back"
"""What verifies is no part of the load."""


def report(load: Load) -> Iterator[Report]:
    """Yield the tables of a run."""
    shown = {
        name: operation for name, operation in sorted(load.measures.operations.items()) if name != AFTERWARDS
    }
    yield Report(
        title=f"{load.seconds:,.0f} s of load",
        columns=(
            "operation",
            "a second",
            "p50 ms",
            "p90 ms",
            "p99 ms",
            "max ms",
            "write units each",
            "read units each",
        ),
        rows=[_timed(name, operation, load.seconds) for name, operation in shown.items()],
    )
    yield Report(
        title="Answers",
        columns=("operation", "answers", "sent again", "by status"),
        rows=[_answered(name, operation) for name, operation in shown.items()],
    )
    yield Report(title="In all", columns=("", ""), rows=list(_whole(load)))


def _timed(name: str, operation: Operation, seconds: float) -> Sequence[str]:
    times = [f"{1_000 * value:,.0f}" for value in percentiles(operation.seconds)]
    appends = operation.statuses[201]
    units = [f"{total / appends:.2f}" if appends else "" for total in (operation.write, operation.read)]
    return (name, f"{len(operation.seconds) / seconds:.1f}", *times, *units)


def _answered(name: str, operation: Operation) -> Sequence[str]:
    statuses = ", ".join(
        f"{'none' if status == 0 else status} × {count:,}"
        for status, count in sorted(operation.statuses.items())
    )
    return name, f"{len(operation.seconds):,}", f"{operation.retried:,}", statuses


def _whole(load: Load) -> Iterator[tuple[str, str]]:
    counts = Counter(_layout(name) for name, events in load.stored.items() for _ in events)
    yield "events", ", ".join(f"{count:,} {layout}" for layout, count in sorted(counts.items()))
    yield (
        "appends",
        f"{load.measures.answered(201):,}, {load.measures.answered(201) / load.seconds:.1f} a second",
    )
    yield "conflicts", f"{load.ledger.conflicts:,}"
    yield (
        "from answer to feed",
        "p50 {:.2f} s, p90 {:.2f} s, p99 {:.2f} s, max {:.2f} s".format(*percentiles(load.lag.seconds)),
    )


def _layout(name: str) -> str:
    if ":" in name:
        return "of tags"
    return "of streams" if name.startswith("Load-") else "of aggregates"
