"""Keeping the newest copies of a snapshot and no more: the older ones are deleted, or given a time to live.

A step of its own after the append has committed, so that its failure can never make the append look failed.
It takes up a backlog a bounded part at a time. The newest copy always stays, and the head is no copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.errors import InvalidInput
from epochal.layout.journal.items import NO_TTL
from epochal.layout.journal.writes import Site
from epochal.model.aggregates import AggregateId
from epochal.plan.conditions import Present
from epochal.plan.ops import Delete, Query, Set, Steps, Update
from epochal.plan.values import Item, Key, number, read_number, text

AT_ONCE: Final = 100
"""Copies retired in one call at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How copies of snapshots are kept.

    Attributes:
        keep: how many of the newest stay, at least 1.
        ttl_seconds: the others expire so much later; None deletes them at once.
    """

    keep: int = 1
    ttl_seconds: int | None = None

    def __post_init__(self) -> None:
        if self.keep < 1:
            raise InvalidInput("keep", "must be at least 1: the newest copy is never removed")
        if self.ttl_seconds is not None and self.ttl_seconds < 1:
            raise InvalidInput("ttl_seconds", "must be at least 1")


def retire(site: Site, aggregate: AggregateId, retention: Retention, now: int) -> Steps[int]:
    """Retire the copies beyond those kept, newest first; how many were retired.

    Copies that have their time to live already are passed over.

    Args:
        now: epoch seconds.
    """
    retired, passed, last = 0, 0, None
    while retired < AT_ONCE:
        reply = yield _newest_first(site, aggregate, last)
        for item in reply.items:
            passed += 1
            live = (read_number(item, "ttl") or NO_TTL) == NO_TTL
            if passed > retention.keep and live and retired < AT_ONCE:
                yield _retired(site, item, retention, now)
                retired += 1
        if reply.last is None:
            break
        last = reply.last
    return retired


def _newest_first(site: Site, aggregate: AggregateId, after: Key | None) -> Query:
    return Query(
        table=site.snapshot,
        index="snapshot-aid-index",
        partition=("aid", text(str(aggregate))),
        sort=("seq_nr", number(1), number(10**15)),
        consistent=False,
        forward=False,
        after=after,
    )


def _retired(site: Site, item: Item, retention: Retention, now: int) -> Update | Delete:
    key = {"pkey": item["pkey"], "skey": item["skey"]}
    if retention.ttl_seconds is None:
        return Delete(table=site.snapshot, key=key)
    # The index may lag behind a deletion: an update must not bring a copy back as a stump.
    return Update(
        table=site.snapshot,
        key=key,
        sets=(Set("ttl", number(now + retention.ttl_seconds)),),
        removes=("active_ttl_seq_nr",),
        condition=Present("pkey"),
    )
