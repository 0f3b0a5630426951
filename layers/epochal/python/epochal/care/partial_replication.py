"""What a replica of the table of streams has of single writes in part, and its mending before writers return.

Items are replicated one by one, each in the order of its own writes. So after a failover each is as it was at some
moment of the last seconds, and one may show a write whose other items lack it.

    pruned       events are gone on a page, and not below it, or not where the stream ends
                     mended: as the prune that came in part leaves all pages; what has not come is not called pruned
    open         a page is not full, though another follows
                     mended: closed
    state        the last page names another for its unfolds, which has come without them, or not
                     mended: it has none; they can be made again of the events, where these are not pruned
    key          the record of a key has come, and nothing of its append
                     mended: removed, so that a repeat makes the append
    part         the record has come, and some of its append             left
    doubt        likewise, or pages that others wrote since would tell   left
    hole         events are in no page, and were not pruned              left
    unreadable   an item looks like a page, and contradicts itself       left

A record does not say whose it is, but of each stream which page its append left, with what first event, and when, to
100 ns: as many streams have had such a write as it tells of.

Streams are looked at as they come in a scan, and read by themselves where that seems wrong: a scan may come upon one in
several pieces. Memory is that of what was written in the last `seconds`.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from epochal.care.heads import heads
from epochal.care.torn import Torn
from epochal.care.torn_keys import RecentWrites
from epochal.care.torn_pages import PageFacts, lacks_state, pruned_below, torn_pages
from epochal.errors import CorruptData
from epochal.layout.key_records import PREFIX, read_record
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.moments import PER_SECOND, Ticks, from_unix_nanoseconds
from epochal.model.tokens import MAX_VERSION
from epochal.pages.batch import MARK_BYTES
from epochal.pages.frames import stamp_of
from epochal.pages.items import Page, is_page, page_key, read_page, write_page
from epochal.pages.port import pages_source
from epochal.pages.pruning import prune
from epochal.pages.reading import query
from epochal.pages.writes import as_read, marking
from epochal.plan.conditions import Absent, Present
from epochal.plan.ops import Delete, Get, Put
from epochal.plan.values import Item
from epochal.store.driver import Driver

SECONDS: Final = 10.0
"""Before the latest write: what is older has come whole. Replication takes a second or two, and an alarm tells of more
than a minute."""

QUIET: Final = 60 * PER_SECOND
"""Without a write before a record is removed: one whose append is under way would be removed in vain, and for good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A table of streams that was a replica, and that nobody writes to any more.

    Attributes:
        mend: whether to mend what can be mended.
        seconds: how far before the latest write records of keys are checked.
        segments: number of segments of the table that are scanned at once.
        now: the clock, in nanoseconds since 1970.
    """

    driver: Driver
    table: str
    mend: bool = False
    seconds: float = SECONDS
    segments: int = 1
    now: int = field(default_factory=time.time_ns)

    def findings(self) -> Iterator[Torn]:
        """Yield what the replica has only in part, of streams, then of keys; with `mend`, repair it."""
        written = RecentWrites(until=from_unix_nanoseconds(self.now), within=int(self.seconds * PER_SECOND))
        looked_at = set[str]()
        everything = replace(pages_source(self.table), where=Present("n"))
        for items in heads(self.driver, everything, self.segments):
            streams = dict[str, list[PageFacts]]()
            for item in items:
                name = item["p"]["S"]
                if is_page(item):
                    try:
                        page = read_page(item, self.table)
                    except CorruptData as error:
                        yield Torn(kind="unreadable", stream=name, cause=str(error))
                        continue
                    written.add(page)
                    streams.setdefault(name, []).append(PageFacts.of(page))
                elif name.startswith(PREFIX):
                    written.remember(name, read_record(item))
            for stream, pages in streams.items():
                if stream not in looked_at and any(torn_pages(stream, pages)):
                    looked_at.add(stream)
                    yield from self._of_stream(stream)
        yield from self._of_keys(written)

    def _of_stream(self, stream: str) -> Iterator[Torn]:
        """Read one stream's pages again, mend them if `mend` is set, and yield what was wrong with them."""
        pages = self._pages(stream)
        findings, mended, cause = [*torn_pages(stream, pages)], False, ""
        if self.mend and any(not finding.advice for finding in findings):
            try:
                self._mend(stream, pages)
                mended = True
            except CorruptData as error:
                cause = str(error)
        yield from (
            finding if finding.advice else replace(finding, mended=mended, cause=cause)
            for finding in findings
        )

    def _of_keys(self, written: RecentWrites) -> Iterator[Torn]:
        """Yield key records whose append has not fully arrived; with `mend`, delete those that are safe to."""
        quiet = written.until - written.latest >= QUIET
        for name, torn in written.torn():
            mended = self.mend and quiet and not torn.advice
            if mended:
                self.driver.ask(Delete(table=self.table, key=page_key(name, 0)))
            busy = "" if quiet else "; there were writes in the last minute"
            yield replace(torn, mended=mended, cause=f"{torn.cause}{busy}")

    def _pages(self, stream: str) -> list[PageFacts]:
        parts = self.driver.pages(query(self.table, stream, 0, MAX_VERSION))
        items = (item for part in parts for item in part.items)
        return [PageFacts.of(page) for page in _readable(items, self.table)]

    def _mend(self, stream: str, pages: Sequence[PageFacts]) -> None:
        """Mend a stream: correct what its first and last pages claim, fill and close pages, then prune."""
        etag, mark, first, head = secrets.token_hex(16), pruned_below(pages), pages[0], pages[-1]
        claims_too_much = first.low_water >= first.version and (
            first is not head or first.low_water > head.version
        )
        if first.index == 0 and claims_too_much:
            page = self._page(stream, first)
            self._put(replace(page, low_water=page.base), page)
        if lacks_state(pages):
            page = self._page(stream, head)
            self._put(replace(page, unfolds=b"", stamp=marking(etag, page)), page)
        start, before = 0, None
        for facts in pages:
            if start < facts.index <= mark:
                self._fill(stream, before, start, facts, etag)
            elif before is not None and not before.full and start == facts.index:
                page = self._page(stream, before)
                stamp = stamp_of(Ticks(page.time + 1), bytes.fromhex(etag)[:MARK_BYTES])
                self._put(replace(page, full=True, stamp=stamp), page)
            start, before = facts.version, facts
        while (
            mark
            and (progress := self.driver.run(prune(self.table, stream, mark, etag)))
            and not progress.done
        ):
            pass

    def _fill(
        self, stream: str, before: PageFacts | None, index: int, following: PageFacts, etag: str
    ) -> None:
        """Fill a gap up to `following`: empty and extend the open page before it, or put an empty page there."""
        if before is not None and not before.full:
            page = self._page(stream, before)
            emptied = replace(page, version=following.index, frames=(), unfolds=b"", full=True)
            self._put(replace(emptied, stamp=marking(etag, page)), page)
            return
        stamp = marking(etag, self._page(stream, following))
        empty = Page(stream=stream, index=index, version=following.index, full=True, stamp=stamp)
        self.driver.ask(Put(table=self.table, item=write_page(empty), condition=Absent("i")))

    def _page(self, stream: str, facts: PageFacts) -> Page:
        item = self.driver.ask(Get(table=self.table, key=page_key(stream, facts.index))).item
        if item is None:
            raise CorruptData(f"{stream}: page {facts.index} has been removed")
        return read_page(item, self.table)

    def _put(self, missing: Page, page: Page) -> None:
        self.driver.ask(Put(table=self.table, item=write_page(missing), condition=as_read(page)))


def _readable(items: Iterable[Item], table: str) -> Iterator[Page]:
    for item in items:
        try:
            yield read_page(item, table)
        except CorruptData:
            continue
