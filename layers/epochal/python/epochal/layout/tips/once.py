"""Appends under an idempotency key where any version will do: where to look for an earlier try.

With an expected version the append can only be at that index. Without one, a record says from which index on
an earlier try may stand: put, before the first try, with the version then. A retry reads it back and searches
the stream from there for the append id. The record only bounds the search; what makes the append once is that
every try is conditional on a Tip up to which the search has found nothing.

    p = `$Idempotency-<32 hex digits of SHA-256 over stream, NUL, key>`   i = 0   n = the version then   ttl
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from epochal.layout.tips.append import accepts, append, read, settle
from epochal.layout.tips.batch import Batch, Rejected, Result
from epochal.layout.tips.calving import Calving
from epochal.layout.tips.items import calf_key
from epochal.model.versions import ExpectedVersion
from epochal.plan.conditions import Absent, AnyOf, Compare
from epochal.plan.ops import Done, Put, Steps
from epochal.plan.values import number

PREFIX: Final = "$Idempotency-"
"""Of the names of records, which stand beside the streams that the keys are for."""

WINDOW_SECONDS: Final = 24 * 3600
"""How long a key is remembered. DynamoDB may keep a record longer; it is then taken over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRecord:
    """Where a key is remembered, and until when (epoch seconds)."""

    name: str
    now: int

    @classmethod
    def of(cls, stream: str, key: str, now: int) -> KeyRecord:
        """The record of a caller's `key` for `stream`."""
        digest = hashlib.sha256(f"{stream}\0{key}".encode()).hexdigest()[:32]
        return cls(name=f"{PREFIX}{digest}", now=now)


def append_once(
    table: str, batch: Batch, expected: ExpectedVersion, calving: Calving, record: KeyRecord
) -> Steps[Result]:
    """`append`, where `expected` names no index and `batch.append_id` stems from the recorded key."""
    tip = yield from read(table, batch.stream)
    version = 0 if tip is None else tip.version
    earliest = yield from _remember(table, record, version)
    if earliest is not None and tip is not None:
        settled = yield from settle(table, batch, tip, earliest, repeatable=True)
        if settled is not None:
            return settled
    if not accepts(expected, tip):
        return Rejected(tip=tip)
    return (yield from append(table, batch, expected, calving, tip))


def _remember(table: str, record: KeyRecord, version: int) -> Steps[int | None]:
    """Put the record; where there is one already, the index it holds."""
    reply = yield Put(
        table=table,
        item={
            **calf_key(record.name, 0),
            "n": number(version),
            "ttl": number(record.now + WINDOW_SECONDS),
        },
        condition=AnyOf((Absent("i"), Compare("ttl", "<", number(record.now)))),
    )
    if isinstance(reply, Done):
        return None
    return None if reply.item is None else int(reply.item["n"]["N"])
