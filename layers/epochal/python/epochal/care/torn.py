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
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from types import MappingProxyType
from typing import Final, Literal

from epochal.care.catch_up import heads
from epochal.errors import CorruptData
from epochal.layout.once import PREFIX, Remembered, read_record
from epochal.layout.streams import decided_events
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import PER_SECOND, Ticks, format_ticks, from_unix_nanoseconds
from epochal.model.versions import MAX_VERSION
from epochal.pages.frames import ByteReader, stamp_of, time_of
from epochal.pages.items import Page, is_page, page_key, read_page, state_of, write_page
from epochal.pages.port import pages_source
from epochal.pages.pruning import prune
from epochal.pages.reading import query
from epochal.pages.several import left_in
from epochal.pages.writes import MARK_BYTES, as_read, marking
from epochal.plan.conditions import Absent, Present
from epochal.plan.ops import Delete, Get, Put
from epochal.plan.values import Item
from epochal.store.driver import Driver

SECONDS: Final = 10.0
"""Before the latest write: what is older has come whole. Replication takes a second or two, and an alarm tells of more
than a minute."""

QUIET: Final = 60 * PER_SECOND
"""Without a write before a record is removed: one whose append is under way would be removed in vain, and for good."""

MOST: Final = 500_000
"""Writes that are remembered before those that are too old are forgotten."""

Kind = Literal["pruned", "open", "state", "key", "part", "doubt", "hole", "unreadable"]

ADVICE: Final = MappingProxyType[Kind, str](
    {
        "part": "append what is wanted of the rest under another key",
        "doubt": "before a repeat is believed, look whether its events are there",
        "hole": "append anew what is wanted, to another stream, or put the first region's pages there",
        "unreadable": "put the first region's item there",
    }
)
"""What to do about what stays; all else can be mended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Torn:
    """Something that came in part.

    Attributes:
        stream: whose pages these are; of a key, the name of its record.
        index, end: events `index` to `end` - 1 are concerned.
        cause: what else is known.
        mended: it is no longer so.
    """

    kind: Kind
    stream: str
    index: int = 0
    end: int = 0
    cause: str = ""
    mended: bool = False

    @property
    def advice(self) -> str:
        """What to do about what stays; empty where it can be mended."""
        return ADVICE.get(self.kind, "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replica:
    """A table of streams that was a replica, and that nobody writes to.

    Attributes:
        mend: what can be.
        seconds: before the latest write, from when on keys are looked at.
        segments: of the scan, which are read at the same time.
        now: the clock, in nanoseconds since 1970.
    """

    driver: Driver
    table: str
    mend: bool = False
    seconds: float = SECONDS
    segments: int = 1
    now: int = field(default_factory=time.time_ns)

    def findings(self) -> Iterator[Torn]:
        """All that came in part: of streams, then of keys."""
        written = _Written(until=from_unix_nanoseconds(self.now), within=int(self.seconds * PER_SECOND))
        looked_at = set[str]()
        everything = replace(pages_source(self.table), where=Present("n"))
        for items in heads(self.driver, everything, self.segments):
            streams = dict[str, list[_Facts]]()
            for item in items:
                name = item["p"]["S"]
                if is_page(item):
                    try:
                        page = read_page(item, self.table)
                    except CorruptData as error:
                        yield Torn(kind="unreadable", stream=name, cause=str(error))
                        continue
                    written.add(page)
                    streams.setdefault(name, []).append(_Facts.of(page))
                elif name.startswith(PREFIX):
                    written.remember(name, read_record(item))
            for stream, pages in streams.items():
                if stream not in looked_at and any(_torn(stream, pages)):
                    looked_at.add(stream)
                    yield from self._of_stream(stream)
        yield from self._of_keys(written)

    def _of_stream(self, stream: str) -> Iterator[Torn]:
        pages = self._pages(stream)
        found, mended, cause = [*_torn(stream, pages)], False, ""
        if self.mend and any(not each.advice for each in found):
            try:
                self._mend(stream, pages)
                mended = True
            except CorruptData as error:
                cause = str(error)
        yield from (each if each.advice else replace(each, mended=mended, cause=cause) for each in found)

    def _of_keys(self, written: _Written) -> Iterator[Torn]:
        quiet = written.until - written.latest >= QUIET
        for name, found in written.torn():
            mended = self.mend and quiet and not found.advice
            if mended:
                self.driver.ask(Delete(table=self.table, key=page_key(name, 0)))
            busy = "" if quiet else "; somebody has written in the last minute"
            yield replace(found, mended=mended, cause=f"{found.cause}{busy}")

    def _pages(self, stream: str) -> list[_Facts]:
        parts = self.driver.pages(query(self.table, stream, 0, MAX_VERSION))
        items = (item for part in parts for item in part.items)
        return [_Facts.of(page) for page in _readable(items, self.table)]

    def _mend(self, stream: str, pages: Sequence[_Facts]) -> None:
        """Take back what the first page says of events that have not come, and what the last says of unfolds; fill and
        close what is between; then prune to the end.
        """
        etag, mark, first, head = secrets.token_hex(16), _gone(pages), pages[0], pages[-1]
        told = first.low_water >= first.version and (first is not head or first.low_water > head.version)
        if first.index == 0 and told:
            page = self._page(stream, first)
            self._put(replace(page, low_water=page.base), page)
        if _is_without_state(pages):
            page = self._page(stream, head)
            self._put(replace(page, unfolds=b"", stamp=marking(etag, page)), page)
        at, before = 0, None
        for facts in pages:
            if at < facts.index <= mark:
                self._fill(stream, before, at, facts, etag)
            elif before is not None and not before.full and at == facts.index:
                page = self._page(stream, before)
                stamp = stamp_of(Ticks(page.time + 1), bytes.fromhex(etag)[:MARK_BYTES])
                self._put(replace(page, full=True, stamp=stamp), page)
            at, before = facts.version, facts
        while mark and (went := self.driver.run(prune(self.table, stream, mark, etag))) and not went.done:
            pass

    def _fill(self, stream: str, before: _Facts | None, at: int, following: _Facts, etag: str) -> None:
        """An empty page up to the following one: the one before, where that has not been left."""
        if before is not None and not before.full:
            page = self._page(stream, before)
            gone = replace(page, version=following.index, frames=(), unfolds=b"", full=True)
            self._put(replace(gone, stamp=marking(etag, page)), page)
            return
        stamp = marking(etag, self._page(stream, following))
        empty = Page(stream=stream, index=at, version=following.index, full=True, stamp=stamp)
        self.driver.ask(Put(table=self.table, item=write_page(empty), condition=Absent("i")))

    def _page(self, stream: str, facts: _Facts) -> Page:
        item = self.driver.ask(Get(table=self.table, key=page_key(stream, facts.index))).item
        if item is None:
            raise CorruptData(f"{stream}: page {facts.index} has been removed")
        return read_page(item, self.table)

    def _put(self, wanted: Page, page: Page) -> None:
        self.driver.ask(Put(table=self.table, item=write_page(wanted), condition=as_read(page)))


# The pages of one stream.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What a page says besides its events.

    Attributes:
        base: the first event that it was not emptied of.
        held: the first that readers get.
        state: it has unfolds itself.
        unfolds_at: the page that has them, where that is another.
    """

    index: int
    version: int
    base: int
    held: int
    low_water: int
    full: bool
    state: bool
    unfolds_at: int | None

    @classmethod
    def of(cls, page: Page) -> _Facts:
        return cls(
            index=page.index,
            version=page.version,
            base=page.base,
            held=page.span.base,
            low_water=page.low_water,
            full=page.full,
            state=bool(page.unfolds) and page.unfolds_at is None,
            unfolds_at=page.unfolds_at,
        )


def _readable(items: Iterable[Item], table: str) -> Iterator[Page]:
    for item in items:
        try:
            yield read_page(item, table)
        except CorruptData:
            continue


def _gone(pages: Sequence[_Facts]) -> int:
    """Below which all is gone, as far as the stream has come: up to what is missing, and was not pruned."""
    end = pages[-1].version
    told = (each.low_water for each in pages if each.low_water <= end)
    mark = max(0, *told, *(each.base for each in pages if each.base > each.index))
    at = 0
    for page in pages:
        if page.index > max(at, mark):
            return min(mark, at)
        at = page.version
    return mark


def _torn(stream: str, pages: Sequence[_Facts]) -> Iterator[Torn]:
    """What is wrong with pages that are all of a stream."""
    mark, head, at = _gone(pages), pages[-1], 0
    lacking = head.low_water < mark and any(page.held < min(page.version, mark) for page in pages)
    if lacking or pages[0].low_water > head.version or any(_filled(pages, mark)):
        yield Torn(kind="pruned", stream=stream, end=mark)
    for page in pages:
        if page.index > max(at, mark) or page.index < at:
            yield Torn(kind="hole", stream=stream, index=min(at, page.index), end=max(at, page.index))
        at = page.version
    for page, following in pairwise(pages):
        if not page.full and page.version == following.index:
            yield Torn(kind="open", stream=stream, index=page.index, end=page.version)
    if _is_without_state(pages):
        yield Torn(kind="state", stream=stream, index=head.unfolds_at or 0, end=head.version)


def _is_without_state(pages: Sequence[_Facts]) -> bool:
    """Whether the page that has the unfolds is not there, or not as it was left."""
    at = pages[-1].unfolds_at
    return at is not None and not any(page.index == at and page.state and page.full for page in pages)


def _filled(pages: Sequence[_Facts], mark: int) -> Iterator[int]:
    """Where pages lack whose events are gone."""
    ends = (0, *(page.version for page in pages))
    return (page.index for page, end in zip(pages, ends, strict=False) if end < page.index <= mark)


# The records of keys, against what was written last.


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A write of a page: the page's index, the time, and the first event or, without any, the version. A `state` is
    known to have none.
    """

    index: int
    time: Ticks
    first: int
    state: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Later:
    """A page that was written to, so that it may lack what it has had: events since they were pruned, and a state since
    it has another, or none.

    Attributes:
        writes: those that it tells of.
        stateless: it has no unfolds, and nothing says that it was emptied.
    """

    time: Ticks
    version: int
    base: int
    writes: tuple[_Part, ...]
    stateless: bool

    def may_have_had(self, part: _Part) -> bool:
        """Whether it may have had a write that it does not tell of, which then was before and after what it does."""
        if self.time <= part.time or self.version < part.first:
            return False
        if self.base > part.first:
            return True
        # An append to several streams is of events, where nothing is seen of a state.
        told = not self.stateless or part.state
        return told and all((each.first < part.first) == (each.time < part.time) for each in self.writes)


@dataclass(slots=True, kw_only=True)
class _Written:
    """What was written in the time before the latest write.

    Attributes:
        until: no write was later; a clock that is ahead does not count.
        within: ticks before the latest write.
        latest: time of that.
        writes: each, with the streams of whose pages it is.
        pages: by the index.
    """

    until: Ticks
    within: int
    latest: int = 0
    writes: dict[_Part, set[str]] = field(default_factory=dict)
    pages: dict[int, list[_Later]] = field(default_factory=dict)
    records: dict[str, tuple[_Part, ...]] = field(default_factory=dict)
    most: int = MOST

    @property
    def since(self) -> int:
        """What was before is not looked at."""
        return self.latest - self.within

    def add(self, page: Page) -> None:
        """Remember a page, if it was written to."""
        if page.time <= self.until:
            self.latest = max(self.latest, page.time)
        if page.time < self.since:
            return
        writes = tuple(_writes(page))
        for each in writes:
            if each.time >= self.since:
                self.writes.setdefault(each, set()).add(page.stream)
        later = _Later(
            time=page.time,
            version=page.version,
            base=page.base,
            writes=writes,
            stateless=not page.unfolds and not page.low_water,
        )
        self.pages.setdefault(page.index, []).append(later)
        if len(self.writes) > self.most:
            self._forget()

    def remember(self, name: str, found: Remembered) -> None:
        """Remember a record, if it says what was made."""
        parts = tuple(_parts(found))
        if any(part.time >= self.since for part in parts):
            self.records[name] = parts

    def torn(self) -> Iterator[tuple[str, Torn]]:
        """Records that have come without all of their appends."""
        for name, parts in self.records.items():
            moment = max(part.time for part in parts)
            streams = {part: self.writes.get(part, ()) for part in parts}
            missing = [part for part, count in Counter(parts).items() if len(streams[part]) < count]
            if moment < self.since or not missing:
                continue
            there = {stream for part in parts for stream in streams[part]}
            kind: Kind = "doubt" if any(map(self._may_be, missing)) else "part" if there else "key"
            has = f", which is in {', '.join(sorted(there))}" if there else ""
            yield name, Torn(kind=kind, stream=name, cause=f"of an append at {format_ticks(moment)}{has}")

    def _may_be(self, part: _Part) -> bool:
        """Whether a page that was written to since may have had the part."""
        return any(each.may_have_had(part) for each in self.pages.get(part.index, ()))

    def _forget(self) -> None:
        self.writes = {place: each for place, each in self.writes.items() if place.time >= self.since}
        kept = {
            index: [each for each in pages if each.time >= self.since] for index, pages in self.pages.items()
        }
        self.pages = {index: pages for index, pages in kept.items() if pages}
        self.most = max(self.most, 2 * len(self.writes))


def _writes(page: Page) -> Iterator[_Part]:
    """Those that a page tells of."""
    at = page.base
    for frame in page.frames:
        yield _Part(index=page.index, time=time_of(frame.stamp), first=at)
        at += frame.count
    if page.stamp is not None:
        yield _Part(index=page.index, time=page.time, first=page.version)


def _parts(found: Remembered) -> Iterator[_Part]:
    """What the append of a record left of each stream that it wrote to."""
    if found.etag is not None and (state := state_of(found.etag)) is not None:
        yield _Part(index=state.index, time=state.time, first=found.first, state=True)
    source = ByteReader(found.made)
    decided = found.append_id is not None and decided_events(found.append_id) is not None
    while not source.at_end:
        first, events, etag = left_in(source, counted=decided)
        state = state_of(etag)
        if (events or not decided) and state is not None and state.time:
            yield _Part(index=state.index, time=state.time, first=first)
