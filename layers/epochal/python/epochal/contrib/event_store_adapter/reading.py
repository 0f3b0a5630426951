"""Reading events of an aggregate: which keys to ask for is known, because numbers have no holes.

    by key       up to 100 events a request, in order, strongly consistent; a read unit an event, or more
    by range     a range of the journal, strongly consistent; small events share a read unit. Numbers are unpadded, so
                 others are among those wanted: it is read where these are fewer
    by index     `journal-aid-index`, in order, half the units again; it may lag

What a range or the index does not bring is read by key: the index lags, and a range may hold other aggregates' items,
so that it is read only as far as it would be without them. What is not found by key either is asked for in a
transaction: a plain read may find the head of an append that is being carried out, and not its events. An event that
the head promises and no read finds is corruption.

As unpadded text, numbers come as 1, 10, 100, 101, 11, 2. Between the texts of two numbers of equal length are the
numbers between them, in order; among these are shorter ones, one for ten of them, and longer ones, ten for each. How
many is arithmetic, so what a range costs is known before it is read.

Where no head has the number of the last event, it is searched by key. Existence is monotonic: a few batches of probes,
each narrowing the bounds 26-fold, find the last among millions. Plain reads may not find an event whose append is being
carried out, so the last read is one that waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Final, Literal

from epochal.contrib.event_store_adapter.items import JournalEvent, JournalSite, read_event
from epochal.contrib.event_store_adapter.model import AggregateId
from epochal.errors import CorruptData
from epochal.lazy_dataclasses import dataclass, replace
from epochal.plan.batches import get_all, settled
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import BatchGet, Query, Steps, TransactGet
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
        error = CorruptData(f"{wanted.aggregate}: event {lost} is missing from the journal")
        error.missing = lost
        raise error
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


SORTED_AT_MOST: Final = 20_000
"""Events that are held at once, to be sorted."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """Sort keys from one text up to another, both behind the aggregate's id; `most` of its events are there."""

    low: str
    high: str
    most: int


def worthwhile(first: int, last: int, total: int) -> list[KeyRange]:
    """Ranges that hold fewer than twice the events wanted of them: `first` to `last` of the `total` there are.

    One for all, or one for each length of number, where more events of it are wanted than a request reads by key.
    """
    parts = list(_parts(first, last))
    if len(parts) == 1:
        return [each for each in (_alike(*parts[0], total),) if _is_dense(each, first, last)]
    whole = KeyRange("0", ":", total)
    if last - first < SORTED_AT_MOST and _is_dense(whole, first, last):
        return [whole]
    long = [part for part in parts if part[1] - part[0] >= BATCH_KEYS]
    return [found for part in long if _is_dense(found := _alike(*part, total), *part)]


def beginning(first: int, last: int, total: int) -> KeyRange | None:
    """The range that holds the first of these numbers, all those of equal length, in order; None where another way
    is cheaper.
    """
    end = _end(first, last)
    found = _alike(first, end, total)
    return found if _is_dense(found, first, end) else None


def _parts(first: int, last: int) -> Iterator[tuple[int, int]]:
    """The numbers by their lengths."""
    while first <= last:
        yield first, _end(first, last)
        first = _end(first, last) + 1


def _end(first: int, last: int) -> int:
    longest: int = 10 ** len(str(first)) - 1
    return min(last, longest)


def _is_dense(found: KeyRange, first: int, last: int) -> bool:
    return found.most < 2 * (last - first + 1)


def _alike(first: int, last: int, total: int) -> KeyRange:
    """The range of numbers of equal length."""
    lengths = range(1, len(str(total)) + 1)
    return KeyRange(str(first), str(last), sum(_lying(length, first, last, total) for length in lengths))


def _lying(length: int, first: int, last: int, total: int) -> int:
    """How many numbers of this length, up to `total`, are in the range."""
    digits = len(str(first))
    scale: int = 10 ** abs(length - digits)
    if length > digits:
        # A text is before all those that it begins: those of `first` are in the range, those of `last` are not.
        lowest, highest = first * scale, last * scale - 1
    else:
        lowest, highest = first // scale + (length < digits), last // scale
    return max(0, min(highest, total) - lowest + 1)


PROBES: Final = 25
_POWERS: Final = tuple(1 << exponent for exponent in range(PROBES))


def last_number(site: JournalSite, aggregate: AggregateId) -> Steps[int]:
    """The greatest number in the journal; 0 where there is none."""
    found = yield from _present(site, aggregate, _POWERS)
    low = max(found, default=0)
    high = min((probe for probe in _POWERS if probe > low), default=1 << PROBES)
    while high - low > 1:
        step = max(1, (high - low) // (PROBES + 1))
        probes = tuple(range(low + step, high, step))[:PROBES]
        found = yield from _present(site, aggregate, probes)
        low = max(found, default=low)
        high = min((probe for probe in probes if probe > low), default=high)
    while (yield from _follows(site, aggregate, low)):
        low += 1
    return low


def _follows(site: JournalSite, aggregate: AggregateId, number: int) -> Steps[bool]:
    """Whether there is an event after this one, once no append of it is under way."""
    (found,) = (yield TransactGet(keys=((site.journal, site.keys.key(aggregate, number + 1)),))).items
    return found is not None


def _present(site: JournalSite, aggregate: AggregateId, numbers: tuple[int, ...]) -> Steps[list[int]]:
    keys = tuple(site.keys.key(aggregate, probe) for probe in numbers)
    reply = yield BatchGet(table=site.journal, keys=keys)
    return [int(item["seq_nr"]["N"]) for item in reply.items]
