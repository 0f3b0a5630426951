"""Retires copies of snapshots, by a step after the append has committed.

So a failure of that step can never make the append look failed. It takes up a backlog a bounded part at a time. The
newest copy always stays, and the head is no copy. What the step reads does not grow with the copies that wait to
expire: `snapshot-active-ttl-index` has the keys of the others.
"""

from __future__ import annotations

from typing import Final

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import JournalSite
from epochal.lazy_dataclasses import dataclass
from epochal.model.kinds import must_be_whole
from epochal.model.moments import MAX_EXPIRES
from epochal.plan import conditions, ops
from epochal.plan.values import Item, Key, number, text

AT_ONCE: Final = 100
"""Most copies of snapshots that one call retires."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many copies of an aggregate's snapshots are kept, and when older copies expire.

    Attributes:
        keep: number of an aggregate's newest snapshot copies that are kept, at least 1.
        ttl_seconds: seconds after which snapshot copies beyond `keep` expire; None deletes them at once.
    """

    keep: int = 1
    ttl_seconds: int | None = None

    def __post_init__(self) -> None:
        must_be_whole(self.keep, "keep", 1)
        if self.ttl_seconds is not None:
            must_be_whole(self.ttl_seconds, "ttl_seconds", 1, MAX_EXPIRES)


def retire(site: JournalSite, aggregate: AggregateId, retention: Retention, now: int) -> ops.Steps[int]:
    """Delete or set to expire up to 100 snapshot copies beyond those kept, newest first; return how many.

    A copy is deleted, or gets a time to live. Either index may lag. A copy that the index does not show yet is newer
    than those it shows, and one that it still shows had a newer one beside it: so none of the newest copies is ever
    taken for one beyond them.

    Args:
        now: current time in epoch seconds.
    """
    retired, passed, last = 0, 0, None
    while True:
        reply = yield _newest_first(site, aggregate, retention, last)
        for item in reply.items:
            passed += 1
            if passed > retention.keep and retired < AT_ONCE:
                outcome = yield _retired(site, item, retention, now)
                retired += isinstance(outcome, ops.Done)
        if reply.last is None or passed >= retention.keep + AT_ONCE:
            return retired
        last = reply.last


def _newest_first(
    site: JournalSite, aggregate: AggregateId, retention: Retention, after: Key | None
) -> ops.Query:
    """Return the query of an aggregate's copies of snapshots, newest first.

    If copies are to expire, only the keys of those that have no time to live yet; otherwise all copies.
    """
    active = retention.ttl_seconds is not None
    return ops.Query(
        table=site.snapshot,
        index="snapshot-active-ttl-index" if active else "snapshot-aid-index",
        partition=("aid", text(str(aggregate))),
        sort=("active_ttl_seq_nr" if active else "seq_nr", number(1), number(10**15)),
        consistent=False,
        forward=False,
        limit=retention.keep + AT_ONCE,
        after=after,
    )


def _retired(site: JournalSite, item: Item, retention: Retention, now: int) -> ops.Update | ops.Delete:
    """Return the write that retires a copy: a delete, or an update that sets its time to live."""
    key = {"pkey": item["pkey"], "skey": item["skey"]}
    if retention.ttl_seconds is None:
        return ops.Delete(table=site.snapshot, key=key)
    # The index may lag: an update must neither create a copy that was deleted, nor extend a copy's time to live.
    return ops.Update(
        table=site.snapshot,
        key=key,
        sets=(ops.Set("ttl", number(now + retention.ttl_seconds)),),
        removes=("active_ttl_seq_nr",),
        condition=conditions.Present("active_ttl_seq_nr"),
    )
