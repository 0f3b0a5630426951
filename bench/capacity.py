"""Write units of single appends, by DynamoDB Local's own figures.

1,000 appends of one event each to one stream, each on the token of the one before. What the library plans and what
DynamoDB charges is the same to the unit; the memory interpreter's figure, which the benchmark of calving relies on,
is held to it here.

Bounds: 1.5 write units an event of 300 bytes stored direct, 1.35 where brotli brings 300 bytes of JSON to some 200.
"""

from __future__ import annotations

from bench.calving import play, run
from bench.corpus import UNFOLD_BYTES, Workload
from bench.local import dynamodb, local_at
from bench.report import Report, progress
from epochal.contrib.equinox.calving import ByCost
from epochal.contrib.local.endpoint import Endpoint
from epochal.plan.values import Units

BOUNDS = {Workload(size=300): 1.5, Workload(size=300, kind="json"): 1.35}
"""Workloads with the write units an event that they may take."""

UNBOUND = (
    Workload(size=300, unfold=UNFOLD_BYTES),
    Workload(size=300, unfold=UNFOLD_BYTES, kind="json"),
    Workload(size=1000),
    Workload(size=1000, kind="json"),
)
"""Shown beside them."""


def charged(endpoint: Endpoint, workload: Workload) -> Units:
    """Return the write units that DynamoDB Local charges for a workload."""
    with local_at(endpoint) as local:
        return play(local.streams, workload)


def main() -> None:
    """Measure, print the figures, and exit with an error if a bound is exceeded."""
    workloads = [*BOUNDS, *UNBOUND]
    with dynamodb() as endpoint:
        figures = (charged(endpoint, workload) for workload in workloads)
        units = dict(zip(workloads, progress("capacity", figures, len(workloads)), strict=True))
    Report(
        title="1,000 single appends to one stream by token: units an event, DynamoDB Local",
        columns=["event", "stored", "unfold", "write", "bound", "in memory", "read"],
        rows=[
            (
                f"{workload.size:,} B",
                "direct" if workload.kind == "direct" else "brotli",
                f"{workload.unfold:,} B" if workload.unfold else "",
                f"{spent.write / workload.length:.3f}",
                str(BOUNDS.get(workload, "")),
                f"{run(workload, ByCost()).write / workload.length:.3f}",
                f"{spent.read / workload.length:.3f}",
            )
            for workload, spent in units.items()
        ],
    ).print()
    over = [workload for workload, bound in BOUNDS.items() if units[workload].write / workload.length > bound]
    if over:
        raise SystemExit(f"over the bound: {over}")


if __name__ == "__main__":
    main()
