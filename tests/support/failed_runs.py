"""A failed run of a group, as a function puts it on record."""

from __future__ import annotations

from epochal.index.failed_runs import FailedRun, digest_of, record_failed_run
from epochal.index.groups import group_stream, load
from epochal.store.driver import Driver

LAST = "2026-07-01T12:00:00.0000000+00:00"
DUE = "2200-07-01T12:00:45.0000000+00:00"


def block(driver: Driver, table: str, stream: str, group: str = "board", partition: int = 0) -> None:
    """Record that a stream blocks a partition of a group."""
    state = driver.run(load(table, group_stream(partition, group))).state
    assert state is not None
    failed = FailedRun(
        member=0,
        cause="ValueError",
        since=LAST,
        last=LAST,
        due=DUE,
        stream=stream,
        index=0,
        state=digest_of(state, 0),
    )
    driver.run(record_failed_run(table, group, partition, failed))
