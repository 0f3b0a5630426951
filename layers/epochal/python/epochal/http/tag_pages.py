"""Bounded pages of what listings list, each with where the next one goes on: what an HTTP API answers with.

events, entries    go on after a place; a page ends at a number or a size, and never between equal ids
tags of a group    go on after a tag
tags of all        go on at a position in the tags table: to sort them, all must be read

Pages of tags that no index lists: by a scan, a part of the table at a time.

    position   how many parts the table is read in, which of them is next, and beyond which of its own tags to go on

A position names nothing but numbers and a tag of the caller's own tenant. The key at which a scan of DynamoDB stopped
would not do: it may be another tenant's, and a caller could hand in any. So a part is read again for each
page that begins in it, and its tags are taken by their names. A table that one request reads is one part. Any
other is read in `PARTS`, so that one of 8 GB has 8 MB in each.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from epochal.errors import InvalidInput
from epochal.http.answer_size import LARGEST
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.events import OutlinedEvent, Recorded
from epochal.model.kinds import MAX_WHOLE, must_be_whole
from epochal.model.tag_answers import TagCount, TagEntry
from epochal.model.tags import check_tag, group_of
from epochal.plan.values import Key
from epochal.settings import RESPONSE_BYTES
from epochal.store.listings import Listings, check_group

T = TypeVar("T", TagEntry, Recorded)

PARTS: Final = 1_024

REQUESTS: Final = 64
"""Number of requests after which a page ends, where parts are small."""

READ_UNITS: Final = 128
"""Read units after which a page also ends, at the end of a part: 1 MB, some 4,000 entries. A request should not cost
its sender much less than its answer costs the store."""


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """Where a page of a scan goes on: in part `part` of `parts`, with the tags sorted after `beyond`."""

    parts: int
    part: int = 0
    beyond: str = ""

    def text(self) -> str:
        """Encode the position as opaque text that is safe in URLs."""
        raw = json.dumps([self.parts, self.part, self.beyond], ensure_ascii=False).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def read_scan_position(written: str, field: str = "after") -> ScanPosition:
    """Return the position that `ScanPosition.text` has encoded; raise `InvalidInput` for other text.

    Raises:
        InvalidInput: naming `field`: the text is anything else.
    """
    try:
        raw = base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
        parts, part, beyond = json.loads(raw)
        position = ScanPosition(parts, part, beyond)
        whole = all(type(number) is int for number in (parts, part)) and isinstance(beyond, str)
        if whole and parts in (1, PARTS) and 0 <= part < parts and position.text() == written:
            if beyond:
                check_tag(beyond, field)
            return position
    except (ValueError, TypeError, RecursionError):
        pass
    raise InvalidInput(field, "must be `next` of the previous page")


def scan(
    listings: Listings, group: str | None, after: ScanPosition | None, limit: int
) -> tuple[dict[str, int], ScanPosition | None]:
    """Scan the tags table for a page of tags; return their event counts and where the next page begins.

    The next position is None at the end. A page may have no tags and still have moved on.

    Args:
        group: group whose tags are listed; None for all groups.
        after: position that the page begins at; None for the beginning.
        limit: most tags of the page.
    """
    first, requests, units = listings.make_tag_scan(group), 0, 0.0

    def part(position: ScanPosition) -> Counter[str] | None:
        """Return the number of events of each of the tenant's tags in one part of the table, or None.

        Returns:
            None where the scan begins with the table as one part and one request does not read all of it: the table
                must be read in `PARTS`.
        """
        nonlocal requests, units
        counts: Counter[str] = Counter()
        after: Key | None = None
        while True:
            page = listings.store.driver.ask(
                replace(first, after=after, segment=(position.part, position.parts))
            )
            for tag in filter(None, map(listings.read_tag, page.items)):
                counts[tag.tag] += tag.events
            after, requests, units = page.last, requests + 1, units + page.units.read
            if after is None or position == ScanPosition(1):
                return counts if after is None else None

    position = after or ScanPosition(1)
    events_by_tag: dict[str, int] = {}
    while position.part < position.parts:
        if len(events_by_tag) == limit or requests >= REQUESTS or units >= READ_UNITS:
            return events_by_tag, position
        events = part(position)
        if events is None:
            return events_by_tag, ScanPosition(PARTS)
        tags = sorted(tag for tag in events if tag > position.beyond)
        batch = tags[: limit - len(events_by_tag)]
        events_by_tag |= {tag: events[tag] for tag in batch}
        if len(batch) < len(tags):
            return events_by_tag, replace(position, beyond=batch[-1])
        position = ScanPosition(position.parts, position.part + 1)
    return events_by_tag, None


MAX_LIMIT: Final = 1_000

QUERIES: Final = 16
"""Requests, of 500 entries each, that a page of a group's tags takes at most. Where tags have many events, one may
bring a single tag."""

_FIELDS: Final = 300
"""Bytes reckoned for the fields of an event besides its data, and for an entry."""


# No slots: a frozen, slotted, generic class cannot be called with its parameters, `X[Y](...)`, on Python 3.11.
@dataclass(frozen=True, kw_only=True)
class DatedPage(Generic[T]):
    """A page of events or entries in order of their places.

    Attributes:
        next: the `since` of the next page; None at the end.
    """

    items: tuple[T, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPage:
    """A page of tags, which may be empty without being the last.

    Attributes:
        next: the `after` of the next page; None at the end.
    """

    tags: tuple[TagCount, ...]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TagPages:
    """Reads pages of a store's listings, each of at most 1 to 1,000 items."""

    listings: Listings

    def all_events(self, *, since: str | None = None, limit: int) -> DatedPage[Recorded]:
        """Read a page of all events that come after the place `since`."""
        events = self.listings.all_events(since=since, page=_require_limit(limit) + 1)
        return _cut(events, limit, _event_bytes)

    def tagged(self, tag: str, *, since: str | None = None, limit: int) -> DatedPage[Recorded]:
        """Read a page of a tag's events that come after the place `since`, without expired events."""
        events = self.listings.tagged(tag, since=since, page=_require_limit(limit) + 1)
        return _cut(events, limit, _event_bytes)

    def entries(self, tag: str, *, since: str | None = None, limit: int) -> DatedPage[TagEntry]:
        """Read a page of a tag's entries that come after the place `since`."""
        entries = self.listings.entries(tag, since=since, page=_require_limit(limit) + 1)
        return _cut(entries, limit, lambda _: _FIELDS)

    def tags(self, group: str | None = None, *, after: str | None = None, limit: int) -> TagPage:
        """Read a page of the tags of a group, or of all groups where `group` is None, with event counts.

        Args:
            after: `next` of the page before.
        """
        _require_limit(limit)
        if group is None or not self.listings.groups_are_indexed:
            if group is not None:
                check_group(group)
            events, rest = scan(
                self.listings, group, None if after is None else read_scan_position(after), limit
            )
            tags = tuple(self.listings.settled(events))
            return TagPage(tags=tags, next=None if rest is None else rest.text())
        if after is not None and group_of(check_tag(after, "after")) != group:
            raise InvalidInput("after", "must be `next` of a page of the same group")
        names, more = list[str](), False
        for number, page in enumerate(self.listings.tag_name_pages(group, after, page=limit + 1), start=1):
            names += page
            if more := len(names) > limit or number == QUERIES:
                break
        names = names[:limit]
        return TagPage(tags=tuple(self.listings.counted(names)), next=names[-1] if more else None)


def _cut(items: Iterator[T], limit: int, size: Callable[[T], int]) -> DatedPage[T]:
    """Take items up to a page's limit or size; return the page, which never ends between equal places.

    Args:
        limit: most items of the page.
        size: size of an item in bytes.
    """
    page: list[T] = []
    total = 0
    for item in items:
        total += size(item)
        full = len(page) >= limit or total > RESPONSE_BYTES
        if page and full and item.place > page[-1].place:
            return DatedPage(items=tuple(page), next=page[-1].place)
        page.append(item)
    return DatedPage(items=tuple(page), next=None)


def _event_bytes(event: Recorded) -> int:
    """Return the estimated bytes of an event in an answer; `LARGEST` for one with unopened bodies.

    Such an event has been opened as far as an answer has room, so the page ends with it.
    """
    return LARGEST if isinstance(event, OutlinedEvent) else _FIELDS + event.size


def _require_limit(limit: int) -> int:
    """Return a page limit, or raise `InvalidInput` unless it is 1 to 1,000."""
    must_be_whole(limit, "limit", -MAX_WHOLE)
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput("limit", f"must be 1 to {MAX_LIMIT:,}")
    return limit
