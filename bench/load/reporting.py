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
    shown = {name: each for name, each in sorted(load.measures.operations.items()) if name != AFTERWARDS}
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
        rows=[_timed(name, each, load.seconds) for name, each in shown.items()],
    )
    yield Report(
        title="Answers",
        columns=("operation", "answers", "sent again", "by status"),
        rows=[_answered(name, each) for name, each in shown.items()],
    )
    yield Report(title="In all", columns=("", ""), rows=list(_whole(load)))


def _timed(name: str, each: Operation, seconds: float) -> Sequence[str]:
    times = [f"{1_000 * value:,.0f}" for value in percentiles(each.seconds)]
    appends = each.statuses[201]
    units = [f"{total / appends:.2f}" if appends else "" for total in (each.write, each.read)]
    return (name, f"{len(each.seconds) / seconds:.1f}", *times, *units)


def _answered(name: str, each: Operation) -> Sequence[str]:
    statuses = ", ".join(
        f"{'none' if status == 0 else status} × {count:,}" for status, count in sorted(each.statuses.items())
    )
    return name, f"{len(each.seconds):,}", f"{each.retried:,}", statuses


def _whole(load: Load) -> Iterator[tuple[str, str]]:
    kept = Counter(_layout(name) for name, found in load.stored.items() for _ in found)
    yield "events", ", ".join(f"{count:,} {layout}" for layout, count in sorted(kept.items()))
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
