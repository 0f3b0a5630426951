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
from epochal.model.tags import TagCount, TagEntry, is_reserved
from epochal.model.versions import Reached
from epochal.plan.conditions import Absent
from epochal.plan.ops import BatchGet, Query, Scan, Steps
from epochal.plan.values import Item, Key, decodes, read_number, text

# Listing all events in order, the entries of a tag, the tags of a group.
#
# All events, and tags by group, are found through indexes, which lag by moments: what they return is complete up to
# some moment in the past. Entries of a tag come from the base table, strongly consistent.


def counting_page(site: TagSite, partition: str, since: str | None) -> Query:
    """The first page of counting what `events_page` lists: as much as a request can read."""
    return replace(events_page(site, partition, since), only_count=True)


def events_page(site: TagSite, partition: str, since: str | None, limit: int | None = None) -> Query:
    """The first page of one partition of the index of all events, after `since`."""
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
    """At most 100 events; those that have expired, or never were, are missing from the answer."""
    return BatchGet(table=site.events, keys=tuple(map(site.keys.event, ids)), consistent=consistent)


def group_page(site: TagSite, group: str, beyond: str | None, limit: int) -> Query:
    """A page of the entries of a group's tags, tag by tag; only of the tags that follow `beyond`.

    Tags have no character as low as the one after `beyond`, and a tag of the group none as high as `;` where the
    others have `:`.
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


def tags_page(site: TagSite, after: Key | None = None) -> Scan:
    """A page of what tells which tags there are: heads, and the entries of the original library, which has none.

    Heads have what a listing needs and are few beside the entries, yet only a scan finds them all: it reads
    the entries too, and leaves them out.
    """
    return Scan(table=site.tags, where=Absent("tagIndex"), consistent=False, after=after)


def read_tag(site: TagSite, item: Item) -> TagCount | None:
    """A tag and its number of events, of an item of `tags_page`; None where it is reserved, or another tenant's."""
    tag = site.keys.tag_of(item["pk"]["S"])
    if tag is None or is_reserved(tag):
        return None
    return TagCount(tag=tag, events=read_head(item).reached.count if is_head(item) else 0)


@decodes("dcb")
def read_entry(item: Item) -> TagEntry:
    """Decode a tag's entry."""
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
"""Looks for entries that a head counts and that are not there: milliseconds apart, as long as an append takes."""


@dataclass(frozen=True, slots=True)
class Slice:
    """Entries of one tag, in ascending order; `whole` if none is left in the order of reading."""

    entries: tuple[Item, ...]
    whole: bool


def possible_keys(fenced: Fence, slices: Mapping[str, Slice]) -> set[str]:
    """Sort keys of the entries whose events may match."""
    keys: set[str] = set()
    for tag, part in slices.items():
        types = types_fenced_by(fenced, tag)
        keys.update(key_of(item) for item in part.entries if not types or item["eventType"]["S"] in types)
    return keys


def key_of(entry: Item) -> str:
    """The sort key of an entry."""
    key: str = entry["sk"]["S"]
    return key


def event_id_of(key: str) -> str:
    """The id of the event that the entry with this sort key names."""
    return key.partition("#")[2]


def places_of(entries: Iterable[Item]) -> list[tuple[str, int]]:
    """Keys of entries, with their indices, as a trail has them."""
    return [(key_of(entry), read_number(entry, "tagIndex") or 0) for entry in entries]


def after_id(sortable_id: str | None) -> str:
    """A sort key behind all entries of a sortable id, or before the first: event ids have no character as high as ~."""
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
    """A page of a tag's entries between two sort keys, and where the next goes on.

    Entries of the original library have no index, and are no part of what heads count.
    """
    reply = yield site.entries(tag, *between, forward=forward, limit=limit, after=last)
    return [item for item in reply.items if "tagIndex" in item], reply.last


def whole(
    look: Callable[[], Steps[T | None]],
    site: TagSite,
    tag: str,
    until: Reached,
    given: Sequence[Reached],
    *,
    field: str = "after",
) -> Steps[T]:
    """What `look` finds of a tag up to `until`, once nothing is missing from it: it is None until then.

    Args:
        given: ends that came from outside, in `field`. One that the tag never reached is of another store, or was
            altered. It is looked for last: it may be that of an entry which does not show yet either.

    Raises:
        InvalidInput: an end of `given` is none of the tag's.
        CorruptData: the tag lacks entries that its head counts.
    """
    for _ in range(LOOKS):
        found = yield from look()
        if found is not None:
            return found
    for end in given:
        if not (yield from _was_reached(site, tag, end)):
            rule = f"does not fit what is stored of {tag!r}: it is of another store, or altered"
            raise InvalidInput(field, rule)
    raise CorruptData(f"tag {tag!r}: its head counts {until.count} events, its entries do not")


def _was_reached(site: TagSite, tag: str, reached: Reached) -> Steps[bool]:
    if not reached.count:
        return True
    reply = yield site.entries(tag, reached.last, after_id(reached.last), limit=1)
    return [read_number(item, "tagIndex") for item in reply.items] == [reached.count - 1]


NEAR: Final = 200
"""Entries it is cheaper to read past than to seek for: some 16 read units, in one request."""

PAGE: Final = 1_000
"""Entries a request at most."""

_END: Final = "~"
"""Above every sort key."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Bound:
    """An entry that a seek has met: its index, and the number that its sortable id is."""

    index: int
    place: int


def entries(
    site: TagSite, tag: str, index: int, end: int, *, limit: int = PAGE, after: str | None = None
) -> Steps[list[TagEntry]]:
    """Entries `index` to `end - 1`, at most `limit` of them, and at least one where there are any.

    Args:
        after: the sortable id of entry `index - 1`, where that is known.

    Raises:
        CorruptData: an entry is missing, and stays so: one that is being written may not show yet.
    """
    for _ in range(LOOKS):
        found = yield from _look(site, tag, index, end, limit=limit, after=after)
        if found or index >= end:
            return found
    raise CorruptData(f"tag {tag!r}: it has no entry of its event {index}")


def _look(
    site: TagSite, tag: str, index: int, end: int, *, limit: int, after: str | None
) -> Steps[list[TagEntry]]:
    """Those of the entries that are there, up to one that is missing."""
    found: list[TagEntry] = []
    lowest = f"{after}#{_END}" if after else (yield from _seek(site, tag, index))
    last: Key | None = None
    while index + len(found) < end and len(found) < limit:
        reply = yield site.entries(tag, lowest, _END, limit=min(end - index + NEAR, PAGE), after=last)
        for entry in map(read_entry, reply.items):
            wanted = index + len(found)
            # Entries of the original library have no index, and are no part of the feed.
            if entry.index is None or entry.index < wanted or wanted >= end or len(found) >= limit:
                continue
            if entry.index > wanted:
                return found
            found.append(entry)
        last = reply.last
        if last is None:
            break
    return found


def _seek(site: TagSite, tag: str, index: int) -> Steps[str]:
    """A sort key at or below entry `index`, and at most about `NEAR` entries below it."""
    if index <= NEAR:
        return "0"
    low = yield from _first(site, tag, 0, _END)
    high = yield from _first(site, tag, 0, _END, forward=False)
    halve = False
    while low is not None and high is not None and index - low.index > NEAR and high.place - low.place > 1:
        share = (index - low.index) / max(1, high.index - low.index)
        guess = 0.5 if halve else min(max(share, 0.0), 1.0)
        # Scaled to integers: thirty digits are more than a float has.
        step = (high.place - low.place) * int(guess * 1_000_000) // 1_000_000
        middle = low.place + min(max(step, 1), high.place - low.place - 1)
        met = yield from _first(site, tag, middle, _END)
        if met is not None and met.index <= index:
            low = met
        else:
            high = _Bound(index=high.index if met is None else min(met.index, high.index), place=middle)
        halve = not halve
    return "0" if low is None else f"{low.place:030d}"


def _first(
    site: TagSite, tag: str, place: int, highest: str, *, forward: bool = True
) -> Steps[_Bound | None]:
    """The first entry that has an index, from a place on, or from the end backward."""
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
