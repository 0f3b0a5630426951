"""Reading events of an aggregate: which keys to ask for is known, because numbers have no holes.

    by key       up to 100 events a request, in order, strongly consistent; a read unit an event, or more
    by range     a range of the journal, strongly consistent; small events share a read unit. Numbers are unpadded, so
                 others are among those wanted: it is read where these are fewer (`ranges`)
    by index     `journal-aid-index`, in order, half the units again; it may lag

What a range or the index does not bring is read by key: the index lags, and a range may hold other aggregates' items,
so that it is read only as far as it would be without them. What is not found by key either is asked for in a
transaction: a plain read may find the head of an append that is being carried out, and not its events. An event that
the head promises and no read finds is corruption.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Literal

from epochal.errors import CorruptData
from epochal.layout.journal.items import JournalEvent, read_event
from epochal.layout.journal.ranges import KeyRange, beginning, worthwhile
from epochal.layout.journal.writes import JournalSite
from epochal.model.aggregates import AggregateId
from epochal.plan.batches import get_all, settled
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import Query, Steps
from epochal.plan.values import Item, number, text

Via = Literal["table", "index"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRange:
    """Events `first` to `last` of an aggregate, both included, of the `total` that it has; None: not known, which
    leaves reading by key.
    """

    aggregate: AggregateId
    first: int
    last: int
    total: int | None

    @property
    def count(self) -> int:
        """How many."""
        return max(0, self.last - self.first + 1)

    def holds(self, item: Item) -> bool:
        """Whether a journal item is one of these events: sort keys of other aggregates may be between."""
        return item["aid"]["S"] == str(self.aggregate) and self.first <= int(item["seq_nr"]["N"]) <= self.last


def events(site: JournalSite, wanted: EventRange, via: Via) -> Steps[list[JournalEvent]]:
    """All of them, in order. Raises `CorruptData` where an event is missing."""
    found: dict[int, JournalEvent] = {}
    for query in _queries(site, wanted, via):
        found |= yield from _in_pages(query, wanted)
    missing = [seq_nr for seq_nr in range(wanted.first, wanted.last + 1) if seq_nr not in found]
    found |= yield from _by_key(site, wanted.aggregate, missing)
    unseen = [seq_nr for seq_nr in missing if seq_nr not in found]
    found |= yield from _settled(site, wanted.aggregate, unseen)
    # Told by their numbers: an item under the right key may say another one.
    lost = next((seq_nr for seq_nr in range(wanted.first, wanted.last + 1) if seq_nr not in found), None)
    if lost is not None:
        raise CorruptData(f"{wanted.aggregate}: event {lost} is missing from the journal")
    return [found[seq_nr] for seq_nr in range(wanted.first, wanted.last + 1)]


def onward(site: JournalSite, wanted: EventRange) -> Steps[list[JournalEvent]]:
    """The first of these events: as many as one request brings, and at least one.

    Raises:
        CorruptData: the first is missing.
    """
    known = None if wanted.total is None else beginning(wanted.first, wanted.last, wanted.total)
    if known is not None:
        reply = yield _range(site, wanted.aggregate, known)
        found = _numbered(item for item in reply.items if wanted.holds(item))
        numbers = takewhile(found.__contains__, range(wanted.first, wanted.last + 1))
        if taken := [found[seq_nr] for seq_nr in numbers]:
            return taken
    batch = replace(wanted, last=min(wanted.last, wanted.first + BATCH_KEYS - 1))
    return (yield from events(site, batch, "table"))


def _queries(site: JournalSite, wanted: EventRange, via: Via) -> list[Query]:
    """The query that comes first; what it lacks is read by key."""
    if wanted.count == 0:
        return []
    if via == "index":
        return [_index(site, wanted)]
    if wanted.total is None:
        return []
    ranges = worthwhile(wanted.first, wanted.last, wanted.total)
    return [_range(site, wanted.aggregate, each) for each in ranges]


def _by_key(
    site: JournalSite, aggregate: AggregateId, numbers: Sequence[int]
) -> Steps[dict[int, JournalEvent]]:
    keys = (site.keys.key(aggregate, seq_nr) for seq_nr in numbers)
    return _numbered((yield from get_all(site.journal, keys)))


def _settled(
    site: JournalSite, aggregate: AggregateId, numbers: Sequence[int]
) -> Steps[dict[int, JournalEvent]]:
    """Events, once no append of them is under way; up to the first that is missing for good."""
    found: dict[int, JournalEvent] = {}
    for read in settled((site.journal, site.keys.key(aggregate, seq_nr)) for seq_nr in numbers):
        reply = yield read
        found |= _numbered(item for item in reply.items if item is not None)
        if None in reply.items:
            break
    return found


def _range(site: JournalSite, aggregate: AggregateId, within: KeyRange) -> Query:
    return Query(
        table=site.journal,
        partition=("pkey", site.keys.key(aggregate, 0)["pkey"]),
        sort=site.keys.sort_range(aggregate, within.low, within.high),
        limit=within.most,
    )


def _index(site: JournalSite, wanted: EventRange) -> Query:
    return Query(
        table=site.journal,
        index="journal-aid-index",
        partition=("aid", text(str(wanted.aggregate))),
        sort=("seq_nr", number(wanted.first), number(wanted.last)),
        limit=wanted.count,
        consistent=False,
    )


def _in_pages(query: Query, wanted: EventRange) -> Steps[dict[int, JournalEvent]]:
    """What a query finds of these events, up to its limit."""
    found: dict[int, JournalEvent] = {}
    while True:
        reply = yield query
        found |= _numbered(item for item in reply.items if wanted.holds(item))
        left = (query.limit or 0) - len(reply.items)
        if reply.last is None or left <= 0:
            return found
        query = replace(query, after=reply.last, limit=left)


def _numbered(items: Iterable[Item]) -> dict[int, JournalEvent]:
    return {event.seq_nr: event for event in map(read_event, items)}
