"""Reading events of an aggregate: which keys to ask for is known, because numbers have no holes.

    by key       up to 100 events a request, in order, strongly consistent
    by range     the aggregate's stretch of the journal, strongly consistent, a quarter of the read units for
    small
                 events; numbers are unpadded, so the stretch comes in the order of text and is sorted here
    by index     `journal-aid-index`, in order, half the units again; it may lag, so what it lacks is read by
    key

An event that the head promises and no read finds is corruption.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from epochal.errors import CorruptData
from epochal.layout.journal.items import StoredEvent, read_event
from epochal.layout.journal.writes import Site
from epochal.model.aggregates import AggregateId
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import BatchGet, Query, Steps
from epochal.plan.values import Item, Key, number, text

Via = Literal["table", "index"]

SORTED_AT_MOST: Final = 20_000
"""Events that are held at once to be sorted; longer stretches are read by key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Events `first` to `last` of an aggregate, both included, of the `total` that it has."""

    aggregate: AggregateId
    first: int
    last: int
    total: int

    @property
    def count(self) -> int:
        """How many."""
        return max(0, self.last - self.first + 1)

    def holds(self, item: Item) -> bool:
        """Whether a journal item is one of these events: sort keys of other aggregates may lie between."""
        return item["aid"]["S"] == str(self.aggregate) and self.first <= int(item["seq_nr"]["N"]) <= self.last


def events(site: Site, stretch: Stretch, via: Via) -> Steps[list[StoredEvent]]:
    """All of a stretch, in order. Raises `CorruptData` where an event is missing."""
    if via == "index":
        found = yield from _by_index(site, stretch)
    elif BATCH_KEYS < stretch.count <= SORTED_AT_MOST and stretch.count * 2 > stretch.total:
        found = yield from _by_range(site, stretch)
    else:
        found = {}
    missing = [seq_nr for seq_nr in range(stretch.first, stretch.last + 1) if seq_nr not in found]
    found |= yield from _by_key(site, stretch.aggregate, missing)
    if len(found) != stretch.count:
        lost = next(seq_nr for seq_nr in missing if seq_nr not in found)
        raise CorruptData(f"{stretch.aggregate}: event {lost} is missing from the journal")
    return [found[seq_nr] for seq_nr in range(stretch.first, stretch.last + 1)]


def _by_key(site: Site, aggregate: AggregateId, numbers: Sequence[int]) -> Steps[dict[int, StoredEvent]]:
    found: dict[int, StoredEvent] = {}
    for start in range(0, len(numbers), BATCH_KEYS):
        keys = tuple(site.keys.key(aggregate, seq_nr) for seq_nr in numbers[start : start + BATCH_KEYS])
        reply = yield BatchGet(table=site.journal, keys=keys)
        found |= _numbered(reply.items)
    return found


def _by_range(site: Site, stretch: Stretch) -> Steps[dict[int, StoredEvent]]:
    partition = site.keys.key(stretch.aggregate, 0)["pkey"]
    query = Query(
        table=site.journal, partition=("pkey", partition), sort=site.keys.sort_range(stretch.aggregate)
    )
    return (yield from _all_pages(query, stretch))


def _by_index(site: Site, stretch: Stretch) -> Steps[dict[int, StoredEvent]]:
    query = Query(
        table=site.journal,
        index="journal-aid-index",
        partition=("aid", text(str(stretch.aggregate))),
        sort=("seq_nr", number(stretch.first), number(stretch.last)),
        consistent=False,
    )
    return (yield from _all_pages(query, stretch))


def _all_pages(query: Query, stretch: Stretch) -> Steps[dict[int, StoredEvent]]:
    found: dict[int, StoredEvent] = {}
    last: Key | None = None
    while True:
        reply = yield replace(query, after=last)
        found |= _numbered(item for item in reply.items if stretch.holds(item))
        if reply.last is None:
            return found
        last = reply.last


def _numbered(items: Iterable[Item]) -> dict[int, StoredEvent]:
    return {event.seq_nr: event for event in map(read_event, items)}
