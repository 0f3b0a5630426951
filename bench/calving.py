"""The calving rule against the offline optimum: write units per event, over a seeded corpus of streams.

The streams go through the real library on the memory interpreter, whose units are DynamoDB's rules applied to the real
items. Writers either pass on the token of the append before (one request an append) or load the Tip before every
append. The optimum (`bench.optimum`) is not only computed: its course is run through the library too, and must cost
what was computed.

Bound: for every size from 100 B to 4 KB, with and without a 1 KB unfold, over 1,000 appends at most 10 % above the
optimum.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from typing import Literal, cast

from bench.corpus import UNFOLD_BYTES, Workload
from bench.optimum import Optimum, optimum
from bench.report import Report, progress
from epochal.contrib.equinox import memory_tips
from epochal.contrib.equinox.calving import ByCost, Calving, Fixed
from epochal.contrib.equinox.streams import Tips
from epochal.index.calf_costs import Growth
from epochal.index.tip import Tip
from epochal.index.wire_batch import WireBatch, batch_of
from epochal.model.expected_version import NO_STREAM, ExpectedVersion
from epochal.model.moments import format_ticks, from_unix_nanoseconds
from epochal.model.outcomes import Appended
from epochal.model.tokens import Token
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Update
from epochal.plan.values import Units
from epochal.store.encoding import BodyCodec, store_events, store_unfolds
from epochal.store.streams import Streams

BOUND = 1.10
SIZES = (100, 150, 200, 300, 400, 500, 700, 850, 1000, 1500, 2000, 3000, 4096)
SHAPES = (
    Workload(size=0),
    Workload(size=0, jitter=0.5),
    Workload(size=0, long_tail=True),
    Workload(size=0, jitter=0.3, kind="json"),
)
"""How sizes are distributed about each, and the kind of bodies."""

LENGTHS = (1000, 100, 20)
UNFOLDS = (0, UNFOLD_BYTES)
STREAM = "Bench-1"

ALTERNATIVES: dict[str, Calving] = {
    "by cost, two steps": ByCost(),
    "by cost, one transaction": ByCost(mode="transactional"),
    "32 KiB, two steps": Fixed(mode="two-step"),
    "32 KiB, one transaction": Fixed(),
}

_NOW = 1_357_000_000_000_000_000
"""A moment of 2013, in nanoseconds: stored timestamps are as long at any other."""

Writer = Literal["token", "load"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Script:
    """A calving rule that calves at versions of the stream that were chosen beforehand."""

    at: Collection[int]
    mode: Literal["two-step", "transactional"] = "two-step"

    def calves(self, tip: Token, new: Growth) -> bool:
        """Return whether to calve the Tip's events before writing `new`."""
        del new
        return tip.version in self.at

    def calve(self, table: str, tip: Tip, update: Update) -> Steps[Done | Refusal | Overflow | None]:
        """Move the Tip's events into calves, and update the Tip."""
        return Fixed(mode=self.mode).calve(table, tip, update)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """Write units of one workload: of the optimum, and of the rule for each kind of writer."""

    workload: Workload
    best: int
    token: Units
    load: Units

    @property
    def dearest(self) -> float:
        """Write units of the rule, for the kind of writer that pays more."""
        return max(self.token.write, self.load.write)

    @property
    def excess(self) -> float:
        """`dearest` as a multiple of the optimum."""
        return self.dearest / self.best


def corpus(
    sizes: Iterable[int] = SIZES, unfolds: Iterable[int] = UNFOLDS, lengths: Iterable[int] = LENGTHS
) -> list[Workload]:
    """Return workloads of every size, shape and length, with and without an unfold."""
    return [
        replace(shape, size=size, unfold=unfold, length=length)
        for length, size, unfold, shape in product(lengths, sizes, unfolds, SHAPES)
    ]


def measure(workload: Workload) -> Result:
    """Run a workload with the rule, and with the optimal choices."""
    best = best_course(workload)
    units = run(workload, Script(at=best.calves))
    if units.write != best.units:
        raise AssertionError(f"{workload}: the best course was priced {best.units}, but costs {units.write}")
    return Result(
        workload=workload,
        best=best.units,
        token=run(workload, ByCost()),
        load=run(workload, ByCost(), writer="load"),
    )


def best_course(workload: Workload, *, transactional: bool = False) -> Optimum:
    """Compute the optimal choices for a workload."""
    return optimum(list(batches(workload)), transactional=transactional)


def batches(workload: Workload) -> Iterator[WireBatch]:
    """Encode a workload's appends as batches of the layout."""
    codec, now, fresh = BodyCodec(), format_ticks(from_unix_nanoseconds(_NOW)), _seeded(workload)
    for events, unfolds in workload.appends():
        stored = None if unfolds is None else store_unfolds(unfolds, now, codec)
        yield batch_of(
            STREAM,
            store_events(events, now, codec, Tips().room(stored or ())),
            stored,
            etag=fresh(16).hex(),
            append_id=fresh(16),
        )


def run(workload: Workload, calving: Calving | Script, *, writer: Writer = "token") -> Units:
    """Return the write units that the library uses for a workload in memory."""
    # A script is no way to calve that a store offers, so its type does not know it.
    rule = cast("Calving", calving)
    return play(replace(memory_tips(), layout=Tips(calving=rule)), workload, writer=writer)


def play(streams: Streams, workload: Workload, *, writer: Writer = "token") -> Units:
    """Make a workload's appends to a new store, and return their units."""
    streams = replace(streams, now=lambda: _NOW, fresh=_seeded(workload))
    expected: ExpectedVersion = NO_STREAM
    for events, unfolds in workload.appends():
        outcome = streams.append(STREAM, events, unfolds=unfolds, expected=expected)
        assert isinstance(outcome, Appended)
        expected = outcome.token if writer == "token" else _loaded(streams)
    return streams.driver.meter.units


def _loaded(streams: Streams) -> Token:
    state = streams.load(STREAM)
    assert state is not None
    return state.token


def _seeded(workload: Workload) -> Callable[[int], bytes]:
    return random.Random(workload.seed).randbytes


def main() -> None:
    """Measure the corpus, print the figures, and exit with an error if a bound is exceeded."""
    workloads = corpus()
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        measured = pool.map(measure, workloads, chunksize=4)
        results = list(progress("calving", measured, len(workloads)))
    _print_classes([result for result in results if result.workload.length == max(LENGTHS)])
    _print_lengths(results)
    _print_alternatives()
    over = [r for r in results if r.workload.length == max(LENGTHS) and r.excess > BOUND]
    if over:
        raise SystemExit(f"more than {BOUND - 1:.0%} above the optimum: {over}")


def _print_classes(results: list[Result]) -> None:
    Report(
        title=f"{max(LENGTHS):,} appends: write units an event, and how far above the optimum, by shape",
        columns=["event", "unfold", *(column for shape in SHAPES for column in (shape.shape, "above"))],
        rows=[
            (f"{size:,} B", f"{unfold:,} B" if unfold else "", *_cells(results, size, unfold))
            for size, unfold in product(SIZES, UNFOLDS)
        ],
    ).print()


def _cells(results: list[Result], size: int, unfold: int) -> Iterator[str]:
    for result in results:
        if (result.workload.size, result.workload.unfold) == (size, unfold):
            yield f"{result.dearest / result.workload.length:.2f}"
            yield f"{result.excess - 1:.1%}"


def _print_lengths(results: list[Result]) -> None:
    rows = []
    for length in LENGTHS:
        these = [r for r in results if r.workload.length == length]
        over = sum(r.dearest for r in these) / sum(r.best for r in these)
        rows.append(
            (f"{length:,}", f"{len(these)}", f"{over - 1:.1%}", f"{max(r.excess for r in these) - 1:.1%}")
        )
    Report(
        title="Units above the optimum, by length of stream",
        columns=["appends", "streams", "all", "worst"],
        rows=rows,
    ).print()


def _print_alternatives() -> None:
    rows = []
    for name, calving in ALTERNATIVES.items():
        figures = [run(Workload(size=300, unfold=unfold), calving) for unfold in UNFOLDS]
        rows.append(
            (name, *(f"{units.write / 1000:.2f}" for units in figures), f"{figures[0].read / 1000:.2f}")
        )
    Report(
        title="300-byte events stored direct, 1,000 appends by token, units an event",
        columns=["calving", "write", "with 1 KB unfold", "read"],
        rows=rows,
    ).print()


if __name__ == "__main__":
    main()
