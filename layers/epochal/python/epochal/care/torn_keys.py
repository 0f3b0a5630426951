"""Finds records of idempotency keys whose appends were replicated in part or not at all.

A record does not say whose it is, but of each stream which page its append left, with what first event, and when, to
100 ns. It is compared with the pages that were written last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from epochal.care.torn import Kind, Torn
from epochal.layout.key_records import RecordContents
from epochal.layout.streams import decided_events
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.moments import Ticks, format_ticks
from epochal.pages.frames import ByteReader, time_of
from epochal.pages.items import Page, state_of
from epochal.pages.several_key import read_stream

MOST: Final = 500_000
"""Writes that are remembered before those that are too old are forgotten."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A write of a page: the page's index, the time, and the first event or, without any, the version."""

    index: int
    time: Ticks
    first: int
    state: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Later:
    """A page that was written to, and may have held earlier writes of which it shows nothing any more.

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
        """Return whether the page may have held the write `part`, which it does not show."""
        if self.time <= part.time or self.version < part.first:
            return False
        if self.base > part.first:
            return True
        # An append to several streams is of events, where nothing is seen of a state.
        is_certain = not self.stateless or part.state
        return is_certain and all(
            (write.first < part.first) == (write.time < part.time) for write in self.writes
        )


@dataclass(slots=True, kw_only=True)
class RecentWrites:
    """The writes of pages in the seconds before the latest write, and the records of keys of that time.

    Attributes:
        until: the present; a write with a later time comes from a clock that is ahead, and does not count as latest.
        within: how far before the latest write to remember writes, in ticks.
        latest: time of the latest write.
        writes: the writes, each with the streams that have a page with it.
        pages: pages that were written to, by their index.
        records: by the name of a key's record, the writes of its append.
        most: number of writes after which those that are too old are forgotten.
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
        """Time from which writes and records are remembered."""
        return self.latest - self.within

    def add(self, page: Page) -> None:
        """Remember the writes that a page shows, if it was written to recently."""
        if page.time <= self.until:
            self.latest = max(self.latest, page.time)
        if page.time < self.since:
            return
        writes = tuple(_writes(page))
        for write in writes:
            if write.time >= self.since:
                self.writes.setdefault(write, set()).add(page.stream)
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

    def remember(self, name: str, write: RecordContents) -> None:
        """Remember a record of a key, if it says what its append wrote."""
        parts = tuple(_parts(write))
        if any(part.time >= self.since for part in parts):
            self.records[name] = parts

    def torn(self) -> Iterator[tuple[str, Torn]]:
        """Yield each recent record's name and finding, if its append has come only in part, or not at all."""
        for name, parts in self.records.items():
            moment = max(part.time for part in parts)
            streams = {part: self.writes.get(part, ()) for part in parts}
            missing = [part for part, count in Counter(parts).items() if len(streams[part]) < count]
            if moment < self.since or not missing:
                continue
            present = {stream for part in parts for stream in streams[part]}
            kind: Kind = "doubt" if any(map(self._may_be, missing)) else "part" if present else "key"
            has = f", which is in {', '.join(sorted(present))}" if present else ""
            yield name, Torn(kind=kind, stream=name, cause=f"of an append at {format_ticks(moment)}{has}")

    def _may_be(self, part: _Part) -> bool:
        """Whether a page that was written to since may have held this write."""
        return any(later.may_have_had(part) for later in self.pages.get(part.index, ()))

    def _forget(self) -> None:
        """Forget the writes and pages that are too old, and set the number at which it is done again."""
        self.writes = {place: write for place, write in self.writes.items() if place.time >= self.since}
        remaining = {
            index: [page for page in pages if page.time >= self.since] for index, pages in self.pages.items()
        }
        self.pages = {index: pages for index, pages in remaining.items() if pages}
        self.most = max(self.most, 2 * len(self.writes))


def _writes(page: Page) -> Iterator[_Part]:
    """Yield the writes that a page shows."""
    index = page.base
    for frame in page.frames:
        yield _Part(index=page.index, time=time_of(frame.stamp), first=index)
        index += frame.count
    if page.stamp is not None:
        yield _Part(index=page.index, time=page.time, first=page.version)


def _parts(write: RecordContents) -> Iterator[_Part]:
    """Yield what the append of a record wrote to each of its streams."""
    if write.etag is not None and (state := state_of(write.etag)) is not None:
        yield _Part(index=state.index, time=state.time, first=write.first, state=True)
    source = ByteReader(write.made)
    decided = write.append_id is not None and decided_events(write.append_id) is not None
    while not source.at_end:
        first, events, etag = read_stream(source, counted=decided)
        state = state_of(etag)
        if (events or not decided) and state is not None and state.time:
            yield _Part(index=state.index, time=state.time, first=first)
