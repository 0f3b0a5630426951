"""Run benchmarks: `python -m bench`, or some of them by name. Ends with an error if any misses its bound.

What they print is kept in `docs/reference/figures.json`, too.
"""

from __future__ import annotations

import sys
import time
from datetime import date

from bench import (
    append_cpu,
    append_kinds,
    bill,
    bulk,
    calving,
    capacity,
    catching_up,
    comparison,
    contention,
    exporting,
    fullness,
    hot_stream,
    importing,
    imports,
    index_contention,
    indexing,
    lake,
    members,
    new_streams,
    page_replay,
    pages,
    reacting,
    replay,
    services,
    shared_tag,
    steps,
    tag_races,
    tagging,
    tail,
    telemetry,
    timers,
)
from bench.report import keep

BENCHMARKS = {
    "calving": calving.main,
    "fullness": fullness.main,
    "pages": pages.main,
    "append-kinds": append_kinds.main,
    "bulk": bulk.main,
    "page-replay": page_replay.main,
    "capacity": capacity.main,
    "workloads": comparison.main,
    "contention": contention.main,
    "hot-stream": hot_stream.main,
    "replay": replay.main,
    "indexing": indexing.main,
    "index-contention": index_contention.main,
    "new-streams": new_streams.main,
    "catching-up": catching_up.main,
    "export": exporting.main,
    "import": importing.main,
    "reacting": reacting.main,
    "steps": steps.main,
    "members": members.main,
    "tagging": tagging.main,
    "tag-races": tag_races.main,
    "shared-tag": shared_tag.main,
    "telemetry": telemetry.main,
    "timers": timers.main,
    "imports": imports.main,
    "append-cpu": append_cpu.main,
    "bill": bill.main,
    "services": services.main,
    "tail": tail.main,
    "lake": lake.main,
}


def main(names: list[str]) -> None:
    """Run the named benchmarks, or all of them, and report which exceeded their bounds."""
    unknown = set(names) - set(BENCHMARKS)
    if unknown:
        raise SystemExit(f"no such benchmark: {', '.join(unknown)}; there are {', '.join(BENCHMARKS)}")
    missed = [name for name in names or BENCHMARKS if not _held(name)]
    if missed:
        raise SystemExit(f"bounds missed: {', '.join(missed)}")


def _held(name: str) -> bool:
    """Run a benchmark, and return whether it kept its bounds."""
    began = time.perf_counter()
    try:
        BENCHMARKS[name]()
    except SystemExit as missed:
        print(f"{name}: {missed}", file=sys.stderr)
        return False
    finally:
        keep(name, date.today())  # noqa: DTZ011  whoever reads it wants the day where it was measured
    print(f"{name}: {time.perf_counter() - began:.0f} s\n")
    return True


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
