"""Keeps the newest copies of a snapshot: the older ones are deleted, or given a time to live.

A step of its own after the append has committed, so that its failure can never make the append look failed.
It takes up a backlog a bounded part at a time. The newest copy always stays, and the head is no copy. What it reads
does not grow with the copies that wait to expire: `snapshot-active-ttl-index` has the keys of the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from epochal.layout.journal.writes import JournalSite
from epochal.model.aggregates import AggregateId
from epochal.model.kinds import must_be_whole
from epochal.model.times import MAX_EXPIRES
from epochal.plan.conditions import Present
from epochal.plan.ops import Delete, Done, Query, Set, Steps, Update
from epochal.plan.values import Item, Key, number, text

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
        must_be_whole(self.keep, "keep", 1)
        if self.ttl_seconds is not None:
            must_be_whole(self.ttl_seconds, "ttl_seconds", 1, MAX_EXPIRES)


def retire(site: JournalSite, aggregate: AggregateId, retention: Retention, now: int) -> Steps[int]:
    """Retire the copies beyond those kept, newest first; how many were retired.

    Either index may lag. What it does not show yet is newer than what it shows, and what it still shows had a newer
    one beside it: so it never takes one of the newest copies for one beyond them.

    Args:
        now: epoch seconds.
    """
    retired, passed, last = 0, 0, None
    while True:
        reply = yield _newest_first(site, aggregate, retention, last)
        for item in reply.items:
            passed += 1
            if passed > retention.keep and retired < AT_ONCE:
                done = yield _retired(site, item, retention, now)
                retired += isinstance(done, Done)
        if reply.last is None or passed >= retention.keep + AT_ONCE:
            return retired
        last = reply.last


def _newest_first(
    site: JournalSite, aggregate: AggregateId, retention: Retention, after: Key | None
) -> Query:
    """Copies, newest first: those without a time to live where others are to get one, by their keys alone; else all."""
    active = retention.ttl_seconds is not None
    return Query(
        table=site.snapshot,
        index="snapshot-active-ttl-index" if active else "snapshot-aid-index",
        partition=("aid", text(str(aggregate))),
        sort=("active_ttl_seq_nr" if active else "seq_nr", number(1), number(10**15)),
        consistent=False,
        forward=False,
        limit=retention.keep + AT_ONCE,
        after=after,
    )


def _retired(site: JournalSite, item: Item, retention: Retention, now: int) -> Update | Delete:
    key = {"pkey": item["pkey"], "skey": item["skey"]}
    if retention.ttl_seconds is None:
        return Delete(table=site.snapshot, key=key)
    # The index may lag: an update must neither bring a copy back as a stump, nor give one more time.
    return Update(
        table=site.snapshot,
        key=key,
        sets=(Set("ttl", number(now + retention.ttl_seconds)),),
        removes=("active_ttl_seq_nr",),
        condition=Present("active_ttl_seq_nr"),
    )
