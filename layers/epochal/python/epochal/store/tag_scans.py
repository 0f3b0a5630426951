"""Pages of tags that no index lists: by a scan, a part of the table at a time.

    place   how many parts the table is read in, which of them is next, and beyond which of its own tags to go on

A place names nothing but numbers and a tag of the caller's own tenant. The key at which a scan of DynamoDB stands
would not do: it may be another tenant's, and a caller could hand in any. So a part is read again for each
page that begins in it, and its tags are taken by their names. A table that one request reads is one part. Any other is
read in `PARTS`, so that one of 8 GB has 8 MB in each.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from dataclasses import dataclass, replace
from typing import Final

from epochal.errors import InvalidInput
from epochal.model.dcb import check_tag
from epochal.plan.values import Key
from epochal.store.listings import Listings

PARTS: Final = 1_024

REQUESTS: Final = 64
"""After which a page ends, where parts are small."""

READ_UNITS: Final = 128
"""After which a page ends too, at the end of a part: 1 MB, some 4,000 entries. Asking should not cost much less than
answering."""


@dataclass(frozen=True, slots=True)
class ScanPosition:
    """Where a page goes on: in the part `part` of `parts`, with the tags that follow `beyond`."""

    parts: int
    part: int = 0
    beyond: str = ""

    def text(self) -> str:
        """Opaque, safe in URLs."""
        raw = json.dumps([self.parts, self.part, self.beyond], ensure_ascii=False).encode()
        return base64.urlsafe_b64encode(raw).decode().rstrip("=")


@dataclass(frozen=True, slots=True)
class Scanned:
    """Tags with their numbers of events, and where the next page goes on; None at the end."""

    events: dict[str, int]
    rest: ScanPosition | None


def read_place(written: str, field: str = "after") -> ScanPosition:
    """Read `ScanPosition.text` back, and nothing else; raises `InvalidInput` naming `field`."""
    try:
        raw = base64.b64decode(written + "=" * (-len(written) % 4), altchars=b"-_", validate=True)
        parts, part, beyond = json.loads(raw)
        place = ScanPosition(parts, part, beyond)
        whole = all(type(number) is int for number in (parts, part)) and isinstance(beyond, str)
        if whole and parts in (1, PARTS) and 0 <= part < parts and place.text() == written:
            if beyond:
                check_tag(beyond, field)
            return place
    except (ValueError, TypeError, RecursionError):
        pass
    raise InvalidInput(field, "must be `next` of the page before")


def scan(listings: Listings, group: str | None, after: ScanPosition | None, limit: int) -> Scanned:
    """At most `limit` tags of a group, or of all. There may be none, and the scan still have moved on."""
    scanned = _Scan(listings, group)
    place = after or ScanPosition(1)
    found: dict[str, int] = {}
    while place.part < place.parts:
        if len(found) == limit or scanned.is_enough():
            return Scanned(found, place)
        events = scanned.part(place)
        if events is None:
            return Scanned(found, ScanPosition(PARTS))
        tags = sorted(tag for tag in events if tag > place.beyond)
        taken = tags[: limit - len(found)]
        found |= {tag: events[tag] for tag in taken}
        if len(taken) < len(tags):
            return Scanned(found, replace(place, beyond=taken[-1]))
        place = ScanPosition(place.parts, place.part + 1)
    return Scanned(found, None)


class _Scan:
    """The requests of one page."""

    def __init__(self, listings: Listings, group: str | None) -> None:
        self._listings = listings
        self._first = listings.tags_page(group)
        self._requests = 0
        self._units = 0.0

    def is_enough(self) -> bool:
        """Whether the page has cost what it may."""
        return self._requests >= REQUESTS or self._units >= READ_UNITS

    def part(self, place: ScanPosition) -> Counter[str] | None:
        """The tenant's tags of a part; None where a table is too large to be one, and was not one before."""
        counts: Counter[str] = Counter()
        after: Key | None = None
        while True:
            op = replace(self._first, after=after, segment=(place.part, place.parts))
            page = self._listings.store.driver.ask(op)
            for item in page.items:
                tag = self._listings.read_tag(item)
                if tag is not None:
                    counts[tag.tag] += tag.events
            after = page.last
            self._requests += 1
            self._units += page.units.read
            if after is None:
                return counts
            if place == ScanPosition(1):
                return None
