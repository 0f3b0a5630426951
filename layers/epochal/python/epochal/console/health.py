"""Whether the index is well, as far as that can be told cheaply: what is on record, what waits, how far audits are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from epochal.care.catch_up import Mender, ScannedHead, by_partition, read_head
from epochal.care.head_scan import scan
from epochal.care.quarantined import PoisonRecord, PoisonRecords
from epochal.deployment import Deployment
from epochal.errors import InvalidInput
from epochal.index.cursors import AuditCursor, read_cursor
from epochal.index.names import poison_stream
from epochal.index.series import read_series
from epochal.index.stored import load_tip
from epochal.layout.port import Source

NOTES: Final = 200
"""Of what was set aside and resolved: with more of them, only their number is told."""

COMPARED: Final = 200
"""Heads that are compared with the index, at most."""

SCANNED: Final = 500
"""Items of a request that looks for heads: keys of idempotency and full pages stand among them."""

SCANS: Final = 4
"""Requests that look for heads, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """Of a source.

    Attributes:
        recorded: partitions on record; None where the indexer has never run.
        partitions: that the deployment has.
        notes: records set aside, and resolutions of such, ever.
        waiting: those that nothing has been done about; None where there are too many notes to read them here.
        audit: where the auditor stands.
    """

    source: str
    recorded: int | None
    partitions: int
    notes: int
    waiting: tuple[PoisonRecord, ...] | None
    audit: AuditCursor


def show(deployment: Deployment, arguments: Mapping[str, str]) -> dict[str, Any]:
    """Each source; with `check`, the first heads of that source compared with the index."""
    driver, table = deployment.driver, deployment.settings.index_table
    recorded = driver.run(read_series(table)).partitions
    found = [_health(deployment, each, recorded.get(each.name)) for each in deployment.sources]
    return {"found": found, "checked": _checked(deployment, arguments.get("check", ""))}


def set_aside(deployment: Deployment, source: Source) -> tuple[int, tuple[PoisonRecord, ...] | None]:
    """How many notes there are, and the records that wait; None where there are too many notes to read them here."""
    tip = deployment.driver.run(load_tip(deployment.settings.index_table, poison_stream(source.base)))
    notes = 0 if tip is None else tip.version
    if notes > NOTES:
        return notes, None
    records = PoisonRecords(indexer=deployment.indexer)
    return notes, tuple(each for each in records.waiting() if each.source == source.name) if notes else ()


def _health(deployment: Deployment, source: Source, recorded: int | None) -> Health:
    driver, table = deployment.driver, deployment.settings.index_table
    notes, waiting = set_aside(deployment, source)
    return Health(
        source=source.name,
        recorded=recorded,
        partitions=source.partitions,
        notes=notes,
        waiting=waiting,
        audit=driver.run(read_cursor(table, source.base)),
    )


def _checked(deployment: Deployment, name: str) -> dict[str, Any] | None:
    """How many heads were looked at, and those whose last events the index lacks, or lacks yet."""
    if not name:
        return None
    sources = {each.name: each for each in deployment.sources}
    if name not in sources:
        raise InvalidInput("check", f"must be one of {', '.join(sources)}")
    source = sources[name]
    heads, after = list[ScannedHead](), None
    for _ in range(SCANS):
        page = deployment.driver.ask(replace(scan(source, after=after, consistent=False), limit=SCANNED))
        heads += (
            each
            for each in (read_head(source, image) for image in page.items)
            if isinstance(each, ScannedHead)
        )
        after = page.last
        if after is None or len(heads) >= COMPARED:
            break
    every = after is None and len(heads) <= COMPARED
    heads = heads[:COMPARED]
    mender = Mender(driver=deployment.driver, index_table=deployment.settings.index_table)
    late = [
        behind
        for number, mine in by_partition(source, heads).items()
        for behind in mender.behind(source, number, mine)
    ]
    return {"source": name, "heads": len(heads), "late": late, "all": every}
