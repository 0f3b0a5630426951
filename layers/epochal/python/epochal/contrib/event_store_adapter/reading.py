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

from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import JournalEvent, JournalSite, read_event
from epochal.errors import CorruptData
from epochal.lazy_dataclasses import dataclass, replace
from epochal.plan.batches import get_all, settled
from epochal.plan.limits import BATCH_KEYS
from epochal.plan.ops import BatchGet, Query, Steps, TransactGet
from epochal.plan.values import Item, number, text

Via = Literal["table", "index"]


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRange:
    """A range of an aggregate's events to read.

    Attributes:
        aggregate: id of the aggregate.
        first: number of the first event.
        last: number of the last event, included.
        total: number of events that the aggregate has; None if unknown, which leaves reading by key.
    """

    aggregate: AggregateId
    first: int
    last: int
    total: int | None

    @property
    def count(self) -> int:
        """Number of events in the range."""
        return max(0, self.last - self.first + 1)

    def holds(self, item: Item) -> bool:
        """Whether a journal item is an event of this range.

        Sort keys of other aggregates may lie between.
        """
        return item["aid"]["S"] == str(self.aggregate) and self.first <= int(item["seq_nr"]["N"]) <= self.last


def events(site: JournalSite, range_: EventRange, via: Via) -> Steps[list[JournalEvent]]:
    """Return all events of a range in order, read by queries, else by key; raise if one is missing.

    Raises:
        CorruptData: an event is missing.
    """
    by_number: dict[int, JournalEvent] = {}
    for query in _queries(site, range_, via):
        by_number |= yield from _in_pages(query, range_)
    missing = [seq_nr for seq_nr in range(range_.first, range_.last + 1) if seq_nr not in by_number]
    by_number |= yield from _by_key(site, range_.aggregate, missing)
    unseen = [seq_nr for seq_nr in missing if seq_nr not in by_number]
    by_number |= yield from _read_in_transactions(site, range_.aggregate, unseen)
    # Compare the numbers in the items: an item under the right key may have another number.
    lost = next((seq_nr for seq_nr in range(range_.first, range_.last + 1) if seq_nr not in by_number), None)
    if lost is not None:
        error = CorruptData(f"{range_.aggregate}: event {lost} is missing from the journal")
        error.missing = lost
        raise error
    return [by_number[seq_nr] for seq_nr in range(range_.first, range_.last + 1)]


def onward(site: JournalSite, range_: EventRange) -> Steps[list[JournalEvent]]:
    """Read the first events of a range: as many as one request brings, and at least one.

    Raises:
        CorruptData: the first is missing.
    """
    ranges = None if range_.total is None else beginning(range_.first, range_.last, range_.total)
    if ranges is not None:
        reply = yield _range(site, range_.aggregate, ranges)
        by_number = _numbered(item for item in reply.items if range_.holds(item))
        numbers = takewhile(by_number.__contains__, range(range_.first, range_.last + 1))
        if contiguous := [by_number[seq_nr] for seq_nr in numbers]:
            return contiguous
    batch = replace(range_, last=min(range_.last, range_.first + BATCH_KEYS - 1))
    return (yield from events(site, batch, "table"))


def _queries(site: JournalSite, range_: EventRange, via: Via) -> list[Query]:
    """Return the queries to read a range with, by index or key range; none where reading by key is better.

    Events that the queries do not bring are read by key afterwards.
    """
    if range_.count == 0:
        return []
    if via == "index":
        return [_index(site, range_)]
    if range_.total is None:
        return []
    ranges = worthwhile(range_.first, range_.last, range_.total)
    return [_range(site, range_.aggregate, numbers) for numbers in ranges]


def _by_key(
    site: JournalSite, aggregate: AggregateId, numbers: Sequence[int]
) -> Steps[dict[int, JournalEvent]]:
    """Read events by their keys, and return those that are there by number."""
    keys = (site.keys.key(aggregate, seq_nr) for seq_nr in numbers)
    return _numbered((yield from get_all(site.journal, keys)))


def _read_in_transactions(
    site: JournalSite, aggregate: AggregateId, numbers: Sequence[int]
) -> Steps[dict[int, JournalEvent]]:
    """Read events in transactions, which wait for appends under way, up to the first missing one."""
    by_number: dict[int, JournalEvent] = {}
    for read in settled((site.journal, site.keys.key(aggregate, seq_nr)) for seq_nr in numbers):
        reply = yield read
        by_number |= _numbered(item for item in reply.items if item is not None)
        if None in reply.items:
            break
    return by_number


def _range(site: JournalSite, aggregate: AggregateId, within: KeyRange) -> Query:
    """Return the query of a range of sort keys in an aggregate's partition of the journal."""
    return Query(
        table=site.journal,
        partition=("pkey", site.keys.key(aggregate, 0)["pkey"]),
        sort=site.keys.sort_range(aggregate, within.low, within.high),
        limit=within.most,
    )


def _index(site: JournalSite, range_: EventRange) -> Query:
    """Return the query of a range of events by `journal-aid-index`, which may lag."""
    return Query(
        table=site.journal,
        index="journal-aid-index",
        partition=("aid", text(str(range_.aggregate))),
        sort=("seq_nr", number(range_.first), number(range_.last)),
        limit=range_.count,
        consistent=False,
    )


def _in_pages(query: Query, range_: EventRange) -> Steps[dict[int, JournalEvent]]:
    """Run a query page by page up to its limit, and return the events of the range by number."""
    by_number: dict[int, JournalEvent] = {}
    while True:
        reply = yield query
        by_number |= _numbered(item for item in reply.items if range_.holds(item))
        remaining = (query.limit or 0) - len(reply.items)
        if reply.last is None or remaining <= 0:
            return by_number
        query = replace(query, after=reply.last, limit=remaining)


def _numbered(items: Iterable[Item]) -> dict[int, JournalEvent]:
    """Decode journal items, and return the events by number."""
    return {event.seq_nr: event for event in map(read_event, items)}


SORTED_AT_MOST: Final = 20_000
"""Most events that are held in memory at once, to be sorted."""


@dataclass(frozen=True, slots=True)
class KeyRange:
    """A range of sort keys, and how many of an aggregate's events are in it.

    Attributes:
        low: text of the first number, behind the aggregate's id.
        high: text of the last number.
        most: number of the aggregate's events whose sort keys are in the range.
    """

    low: str
    high: str
    most: int


def worthwhile(first: int, last: int, total: int) -> list[KeyRange]:
    """Return the key ranges over half of whose events are of those wanted; empty if there are none.

    There is one range for all, or one for each length of number of which more events are wanted than one request reads
    by key.

    Args:
        total: number of events that the aggregate has.
    """
    parts = list(_parts(first, last))
    if len(parts) == 1:
        return [
            alike_keys for alike_keys in (_alike(*parts[0], total),) if _is_dense(alike_keys, first, last)
        ]
    all_keys = KeyRange("0", ":", total)
    if last - first < SORTED_AT_MOST and _is_dense(all_keys, first, last):
        return [all_keys]
    long = [part for part in parts if part[1] - part[0] >= BATCH_KEYS]
    return [alike for part in long if _is_dense(alike := _alike(*part, total), *part)]


def beginning(first: int, last: int, total: int) -> KeyRange | None:
    """Return the key range of the numbers from `first` on of equal length; None if few in it are wanted.

    The numbers come in order. None if reading by key is cheaper.
    """
    end = _end(first, last)
    alike = _alike(first, end, total)
    return alike if _is_dense(alike, first, end) else None


def _parts(first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield the ranges of numbers of equal length that make up `first` to `last`."""
    while first <= last:
        yield first, _end(first, last)
        first = _end(first, last) + 1


def _end(first: int, last: int) -> int:
    """Return the last number up to `last` that has as many digits as `first`."""
    longest: int = 10 ** len(str(first)) - 1
    return min(last, longest)


def _is_dense(key_range: KeyRange, first: int, last: int) -> bool:
    """Whether more than half of the events in a key range are those wanted."""
    return key_range.most < 2 * (last - first + 1)


def _alike(first: int, last: int, total: int) -> KeyRange:
    """Return the key range of the numbers `first` to `last`, which are of equal length."""
    lengths = range(1, len(str(total)) + 1)
    return KeyRange(str(first), str(last), sum(_lying(length, first, last, total) for length in lengths))


def _lying(length: int, first: int, last: int, total: int) -> int:
    """Count the numbers of a given length, up to `total`, whose text lies in a key range."""
    digits = len(str(first))
    scale: int = 10 ** abs(length - digits)
    if length > digits:
        # A text sorts before all texts that begin with it: those that begin with `first` are in the range, those that
        # begin with `last` are not.
        lowest, highest = first * scale, last * scale - 1
    else:
        lowest, highest = first // scale + (length < digits), last // scale
    return max(0, min(highest, total) - lowest + 1)


PROBES: Final = 25
_POWERS: Final = tuple(1 << exponent for exponent in range(PROBES))


def last_number(site: JournalSite, aggregate: AggregateId) -> Steps[int]:
    """Search the journal for the greatest event number of an aggregate; 0 if there is none."""
    present = yield from _present(site, aggregate, _POWERS)
    low = max(present, default=0)
    high = min((probe for probe in _POWERS if probe > low), default=1 << PROBES)
    while high - low > 1:
        step = max(1, (high - low) // (PROBES + 1))
        probes = tuple(range(low + step, high, step))[:PROBES]
        present = yield from _present(site, aggregate, probes)
        low = max(present, default=low)
        high = min((probe for probe in probes if probe > low), default=high)
    while (yield from _follows(site, aggregate, low)):
        low += 1
    return low


def _follows(site: JournalSite, aggregate: AggregateId, number: int) -> Steps[bool]:
    """Whether there is an event after this number, once no append of it is under way."""
    (item,) = (yield TransactGet(keys=((site.journal, site.keys.key(aggregate, number + 1)),))).items
    return item is not None


def _present(site: JournalSite, aggregate: AggregateId, numbers: tuple[int, ...]) -> Steps[list[int]]:
    """Read some event numbers by key, and return those that are there."""
    keys = tuple(site.keys.key(aggregate, probe) for probe in numbers)
    reply = yield BatchGet(table=site.journal, keys=keys)
    return [int(item["seq_nr"]["N"]) for item in reply.items]
