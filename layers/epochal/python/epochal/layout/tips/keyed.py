"""Appends under an idempotency key, of whatever they consist."""

from __future__ import annotations

from epochal.layout.key_records import KeyRecord
from epochal.layout.tips import once, unfolding
from epochal.layout.tips.batch import Result, WireBatch
from epochal.layout.tips.calving import Calving
from epochal.model.versions import ExpectedVersion
from epochal.plan.ops import Steps


def append(
    table: str, batch: WireBatch, expected: ExpectedVersion, calving: Calving, key: str, *, now: int
) -> Steps[Result]:
    """Append a batch, whose append id stems from the key, once. `now` is in epoch seconds."""
    record = KeyRecord.of(batch.stream, key, now)
    if batch.count:
        return (yield from once.append_once(table, batch, expected, calving, record))
    return (yield from unfolding.unfold_once(table, batch, expected, calving, record))
