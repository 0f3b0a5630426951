"""Listing what there is, and entries of tags: how a read finds those that a head counts, what their sort keys tell.

The sort key of an entry is its event's sortable id and id: `<30 digits>#<uuid>`. It does not tell the entry's index in
the tag, but both grow together, so an index is found as one finds a page in a book: guess from what is at both ends,
look, guess again; every other guess halves what is left, so that no distribution takes long. A reader that goes on from
an entry it knows seeks nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeVar

from epochal.contrib.sekiban.items import TagSite, is_head, read_head
from epochal.errors import CorruptData, InvalidInput
from epochal.layout.queries import Fence, types_fenced_by
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.positions import Reached
from epochal.model.tag_answers import TagCount, TagEntry
from epochal.model.tags import is_reserved
from epochal.plan.conditions import Absent
from epochal.plan.ops import BatchGet, Query, Scan, Steps
from epochal.plan.values import Item, Key, decodes, read_number, text

# Listing all events in order, the entries of a tag, the tags of a group.
#
# All events, and tags by group, are found through indexes, which lag by moments: what they return is complete up to
# some moment in the past. Entries of a tag come from the base table, strongly consistent.


def counting_page(site: TagSite, partition: str, since: str | None) -> Query:
    """Make the query for the first page of counting the events that `events_page` lists.

    It has no limit, so a request counts as many events as it can read.
    """
    return replace(events_page(site, partition, since), only_count=True)


def events_page(site: TagSite, partition: str, since: str | None, limit: int | None = None) -> Query:
    """Make the query for the first page of one partition of the index of all events, after `since`."""
    lowest = "0" if since is None else f"{int(since) + 1:030d}"
    return Query(
        table=site.events,
        index="GSI1",
        partition=("gsi1pk", text(partition)),
        sort=("sortableUniqueId", text(lowest), text("~")),
        consistent=False,
        limit=limit,
    )


def events_by_id(site: TagSite, ids: Sequence[str], *, consistent: bool = True) -> BatchGet:
    """Make the request that reads at most 100 events by id.

    Events that have expired, or never existed, are missing from the reply.
    """
    return BatchGet(table=site.events, keys=tuple(map(site.keys.event, ids)), consistent=consistent)


def group_page(site: TagSite, group: str, beyond: str | None, limit: int) -> Query:
    """Make the query for a page of entries of a group's tags, tag by tag, of tags after `beyond`.

    The bounds are exact: no tag has a character as low as NUL, which follows `beyond` in the lower bound, and the tags
    of the group have `:` where the upper bound has the higher `;`.
    """
    lowest = group if beyond is None else f"{beyond}\0"
    return Query(
        table=site.tags,
        index="GSI1",
        partition=("tagGroup", text(site.keys.in_group(group))),
        sort=("tagString", text(lowest), text(f"{group};")),
        consistent=False,
        limit=limit,
    )


def make_tag_scan(site: TagSite, after: Key | None = None) -> Scan:
    """Make the scan that reads a page of heads, and of entries without index, to find all tags.

    Entries without index were written by the original library, which has no heads.

    A listing needs only the heads, which are few compared to the entries, but only a scan finds all of them: it reads
    the other entries too, and filters them out.
    """
    return Scan(table=site.tags, where=Absent("tagIndex"), consistent=False, after=after)


def read_tag(site: TagSite, item: Item) -> TagCount | None:
    """Decode a tag and its event count (0 without head); None if it is reserved or another tenant's.

    Returns None if the tag is reserved or another tenant's.
    """
    tag = site.keys.tag_of(item["pk"]["S"])
    if tag is None or is_reserved(tag):
        return None
    return TagCount(tag=tag, events=read_head(item).reached.count if is_head(item) else 0)


@decodes("dcb")
def read_entry(item: Item) -> TagEntry:
    """Decode a tag's entry from its item."""
    return TagEntry(
        event_id=item["eventId"]["S"],
        event_type=item["eventType"]["S"],
        place=item["sortableUniqueId"]["S"],
        index=read_number(item, "tagIndex"),
        created_at=item["createdAt"]["S"],
    )


T = TypeVar("T")

# Entries of a tag.

LOOKS: Final = 10
"""Attempts to read entries that a head counts but that are missing: milliseconds apart, as long as an append takes."""


@dataclass(frozen=True, slots=True)
class Slice:
    """A run of one tag's entries in ascending order; `whole` if none remains in the read direction."""

    entries: tuple[Item, ...]
    whole: bool


def possible_keys(fenced: Fence, slices: Mapping[str, Slice]) -> set[str]:
    """Return the sort keys of the entries whose events may match the fenced query."""
    keys: set[str] = set()
    for tag, part in slices.items():
        types = types_fenced_by(fenced, tag)
        keys.update(key_of(item) for item in part.entries if not types or item["eventType"]["S"] in types)
    return keys


def key_of(entry: Item) -> str:
    """Return the sort key of an entry."""
    key: str = entry["sk"]["S"]
    return key


def event_id_of(key: str) -> str:
    """Return the id of the event that an entry's sort key contains."""
    return key.partition("#")[2]


def places_of(entries: Iterable[Item]) -> list[tuple[str, int]]:
    """List the sort keys of entries with the entries' indices, in the form that a trail has."""
    return [(key_of(entry), read_number(entry, "tagIndex") or 0) for entry in entries]


def after_id(sortable_id: str | None) -> str:
    """Return a sort key behind all entries of a sortable id, or before every entry for none.

    Event ids have no character as high as `~`.
    """
    return f"{sortable_id}#~" if sortable_id else "0"


def read_entries(
    site: TagSite,
    tag: str,
    between: tuple[str, str],
    last: Key | None,
    *,
    forward: bool = True,
    limit: int | None = None,
) -> Steps[tuple[list[Item], Key | None]]:
    """Read a page of a tag's indexed entries between two sort keys; return them and the next page's key.

    Entries of the original library have no index, and heads do not count them, so they are left out.
    """
    reply = yield site.entries(tag, *between, forward=forward, limit=limit, after=last)
    return [item for item in reply.items if "tagIndex" in item], reply.last


def retry_until_complete(
    look: Callable[[], Steps[T | None]],
    site: TagSite,
    tag: str,
    until: Reached,
    given: Sequence[Reached],
    *,
    field: str = "after",
) -> Steps[T]:
    """Repeat a read of a tag's entries until none is missing, and return it; raise if one stays missing.

    Args:
        look: the read, which returns None while entries are missing.
        until: count and last sortable id of the tag's head.
        given: ends of the range that came from the caller, in the field `field`. An end that the tag never reached
            belongs to another store, or was altered. These are checked last, since the end may be that of an entry
            which is not visible yet either.

    Raises:
        InvalidInput: the tag never reached one of the ends in `given`.
        CorruptData: the tag lacks entries that its head counts.
    """
    for _ in range(LOOKS):
        read = yield from look()
        if read is not None:
            return read
    for end in given:
        if not (yield from _was_reached(site, tag, end)):
            rule = f"does not match the events of {tag!r}: it belongs to another store or was altered"
            raise InvalidInput(field, rule)
    raise CorruptData(f"tag {tag!r}: its head counts {until.count} events, but its entries differ")


def _was_reached(site: TagSite, tag: str, reached: Reached) -> Steps[bool]:
    """Whether a tag has an entry with the last sortable id and the index that `reached` has."""
    if not reached.count:
        return True
    reply = yield site.entries(tag, reached.last, after_id(reached.last), limit=1)
    return [read_number(item, "tagIndex") for item in reply.items] == [reached.count - 1]


NEAR: Final = 200
"""Number of entries that are cheaper to read past than to seek over: some 16 read units, in one request."""

PAGE: Final = 1_000
"""Entries that one request reads at most."""

_END: Final = "~"
"""A sort key above that of every entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """An entry that a seek has read: its index, and its sortable id as a number."""

    index: int
    place: int


def entries(
    site: TagSite, tag: str, index: int, end: int, *, limit: int = PAGE, after: str | None = None
) -> Steps[list[TagEntry]]:
    """Read up to `limit` of a tag's entries `index` to `end - 1`; raise if the first stays missing.

    Args:
        after: sortable id of entry `index - 1`, if known, which saves a seek.

    Raises:
        CorruptData: an entry is still missing after several reads. An entry that is being written may not be visible
            at the first one.
    """
    for _ in range(LOOKS):
        read = yield from _look(site, tag, index, end, limit=limit, after=after)
        if read or index >= end:
            return read
    raise CorruptData(f"tag {tag!r}: it has no entry for event {index}")


def _look(
    site: TagSite, tag: str, index: int, end: int, *, limit: int, after: str | None
) -> Steps[list[TagEntry]]:
    """Read entries of a tag once, and stop before the first one that is missing."""
    entries_found: list[TagEntry] = []
    lowest = f"{after}#{_END}" if after else (yield from _seek(site, tag, index))
    last: Key | None = None
    while index + len(entries_found) < end and len(entries_found) < limit:
        reply = yield site.entries(tag, lowest, _END, limit=min(end - index + NEAR, PAGE), after=last)
        for entry in map(read_entry, reply.items):
            next_index = index + len(entries_found)
            # Entries of the original library have no index, and are not part of the feed.
            if (
                entry.index is None
                or entry.index < next_index
                or next_index >= end
                or len(entries_found) >= limit
            ):
                continue
            if entry.index > next_index:
                return entries_found
            entries_found.append(entry)
        last = reply.last
        if last is None:
            break
    return entries_found


def _seek(site: TagSite, tag: str, index: int) -> Steps[str]:
    """Find a sort key at or below entry `index` of a tag, at most about `NEAR` entries below it."""
    if index <= NEAR:
        return "0"
    low = yield from _first(site, tag, 0, _END)
    high = yield from _first(site, tag, 0, _END, forward=False)
    halve = False
    while low is not None and high is not None and index - low.index > NEAR and high.place - low.place > 1:
        share = (index - low.index) / max(1, high.index - low.index)
        guess = 0.5 if halve else min(max(share, 0.0), 1.0)
        # Scaled to integers: a float does not hold thirty digits.
        step = (high.place - low.place) * int(guess * 1_000_000) // 1_000_000
        middle = low.place + min(max(step, 1), high.place - low.place - 1)
        first = yield from _first(site, tag, middle, _END)
        if first is not None and first.index <= index:
            low = first
        else:
            high = _Bound(index=high.index if first is None else min(first.index, high.index), place=middle)
        halve = not halve
    return "0" if low is None else f"{low.place:030d}"


def _first(
    site: TagSite, tag: str, place: int, highest: str, *, forward: bool = True
) -> Steps[_Bound | None]:
    """Return the first entry with an index, from a place upward or the end backward; None without one."""
    last: Key | None = None
    limit = 1
    while True:
        reply = yield site.entries(tag, f"{place:030d}", highest, forward=forward, limit=limit, after=last)
        for entry in map(read_entry, reply.items):
            if entry.index is not None:
                return _Bound(index=entry.index, place=int(entry.place))
        last, limit = reply.last, PAGE
        if last is None:
            return None
