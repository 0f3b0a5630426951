"""What the items of named streams as pages say; see `tests.simulation.stream_items`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from epochal.model.tokens import Token
from epochal.pages.frames import read_frame
from epochal.pages.items import STREAMS, is_page, read_page
from epochal.pages.layout import Pages
from epochal.plan.ops import Op, Put, Transact, Update
from epochal.plan.values import AttributeValue, Item
from tests.simulation.stream_items import EventSeen, HeadSeen, Sent, same

PLACE = 16
"""Digits of an etag that tell the page and whether it is full; the others tell its latest write."""

TIME = 8
"""Bytes of a stamp that a retry may change; what follows tells appends apart."""


class PageItems:
    """Pages."""

    spec = STREAMS
    layouts = (Pages(),)

    def whose(self, append_id: bytes) -> bytes:
        return append_id[TIME:]

    def events(self, item: Item) -> Iterator[EventSeen]:
        page = read_page(item)
        index = page.base
        for position in range(len(page.frames)):
            for event in page.read_frame(position):
                yield EventSeen(index=index, append_id=event.append_id, content=event)
                index += 1

    def heads(self, images: Iterable[Item]) -> Iterator[HeadSeen]:
        last, before = 0, None
        for page in map(read_page, filter(is_page, images)):
            bare = replace(page, low_water=0)
            if page.index >= last and bare != before:
                # What is before the last page is written only to be pruned, and a mark alone is no other state.
                last, before = page.index, bare
                yield HeadSeen(
                    version=page.version,
                    etag=page.etag,
                    mark=page.latest[TIME:].hex(),
                    deleted=page.deleted,
                    token=page.token(),
                )

    def low(self, items: Sequence[Item]) -> int:
        pages = sorted(map(read_page, filter(is_page, items)), key=lambda page: page.index)
        if not pages or pages[-1].deleted:
            return pages[-1].version if pages else 0
        there = (page.span.base for page in pages if page.span.base < page.span.next)
        return max(pages[-1].low_water, next(there, pages[-1].version))

    def is_as_good(self, expected: Token, found: Token) -> bool:
        """A page that is full is left as it is: that it is pruned meanwhile changes nothing for an append."""
        return same(expected, found) or (
            (expected.version, (expected.etag or "")[:PLACE]) == (found.version, (found.etag or "")[:PLACE])
            and (expected.etag or "")[8] == "8"
        )

    def sent(self, op: Op, stream: str) -> Sent:
        found = Sent()
        match op:
            case Put(item=item) if is_page(item) and item["p"]["S"] == stream:
                _note(found, item.get("f"), item.get("w"))
            case Update(sets=sets):
                values = {change.name: change.value for change in sets}
                _note(found, values.get("f"), values.get("w"))
            case Transact(writes=writes):
                for write in writes:
                    found.add(self.sent(write, stream))
        return found


def _note(found: Sent, frames: AttributeValue | None, stamp: AttributeValue | None) -> None:
    for frame in (frames or {"L": []})["L"]:
        found.ids.add(read_frame(frame["B"]).stamp[TIME:])
    if stamp is not None:
        found.marks.add(stamp["B"][TIME:].hex())


PAGE_ITEMS = PageItems()
