"""Audits the index a bit at a time, for ever: it compares heads with the index, and indexes what is missing.

An invocation scans some pages of each source's table from where the last one stopped, so its time and its price are
bounded whatever the size of the store. What seems to be missing may only be late: it is looked at again after a while.
Where events are packed under dictionaries, what was scanned is trained on, one category at a time.
The cursors move on once the findings are mended, so an invocation that dies is repeated.

It sees what is missing at the ends of streams. `verify` tells whether the chains are right inside.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from epochal.care.catch_up import Behind, Mender, ScannedHead, UnreadableHead, by_partition, read_head
from epochal.care.head_scan import scan
from epochal.care.training import Sample
from epochal.errors import CorruptData
from epochal.index.cursors import AuditCursor, read_cursor, write_cursor
from epochal.layout.port import Source
from epochal.model.times import from_unix_nanoseconds
from epochal.model.training import Trained

PAGES: Final = 100
"""Pages of an invocation, 1 MB each: 12,800 read units, less than half a cent."""

SUSPECTS: Final = 1_000
"""Heads that may be late; with more of them an invocation goes on the next time."""


@dataclass(slots=True, kw_only=True)
class Audit:
    """What an invocation came to.

    Attributes:
        checked: heads that were looked at.
        missing: streams that had events which the index lacked.
        healed: events that were indexed.
        ended: sources whose tables have been scanned to the end.
        troubles: what could neither be read nor mended, in words.
        trained: what became of dictionaries that were trained.
    """

    checked: int = 0
    missing: int = 0
    healed: int = 0
    ended: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    trained: list[Trained] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Scanning:
    """A source under audit, with the heads that may be late."""

    source: Source
    cursor: AuditCursor
    over: bool = False
    late: list[ScannedHead] = field(default_factory=list)
    sample: Sample = field(init=False)

    def __post_init__(self) -> None:
        """Nothing has been met yet."""
        self.sample = Sample(self.source)


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditor:
    """Audits an index.

    Attributes:
        mender: knows the index.
        sources: of the index.
        pages: at most so many an invocation, over all sources.
        settle: seconds that an event may be late.
    """

    mender: Mender
    sources: tuple[Source, ...]
    pages: int = PAGES
    settle: float = 5.0

    def audit(self, seconds: float) -> Audit:
        """Go on for some pages or seconds, at most to the end of each table; then wait, look again, and mend."""
        audit = Audit()
        scanned = [_Scanning(source=source, cursor=self._cursor(source)) for source in self.sources]
        for scanning in self._turns(scanned, self.mender.driver.clock() + seconds):
            self._scan(scanning, audit)
        if any(scanning.late for scanning in scanned):
            self.mender.driver.sleep(self.settle)
        for scanning in scanned:
            self._mend(scanning.source, scanning.late, audit)
            self._keep(scanning, audit)
        now = from_unix_nanoseconds(self.mender.now())
        for scanning in scanned:
            trained = scanning.sample.train(self.mender.driver, now, audit.troubles)
            audit.trained += [] if trained is None else [trained]
        return audit

    def _turns(self, scanned: list[_Scanning], ends: float) -> Iterator[_Scanning]:
        """The sources in turn, a page each, so that a large one does not keep the others waiting."""
        pages = 0
        while going := [scanning for scanning in scanned if not scanning.over]:
            for scanning in going:
                late = sum(len(each.late) for each in scanned)
                if pages == self.pages or late >= SUSPECTS or self.mender.driver.clock() >= ends:
                    return
                pages += 1
                yield scanning

    def _scan(self, scanning: _Scanning, audit: Audit) -> None:
        """A page, read without consistency: half the price, and an old head is looked at again the next time."""
        source, cursor = scanning.source, scanning.cursor
        page = self.mender.driver.ask(scan(source, after=cursor.after, consistent=False))
        heads: list[ScannedHead] = []
        for image in page.items:
            head = read_head(source, image)
            if isinstance(head, UnreadableHead):
                audit.troubles.append(f"{source.name}: the head {head.key} cannot be read: {head.cause}")
            elif head is not None:
                heads.append(head)
        audit.checked += len(heads)
        scanning.sample.take(page.items)
        behind = self._behind(source, heads, audit)
        # What it should have had by now; what comes while we wait is the indexer's business.
        scanning.late += [
            ScannedHead(source=source.name, image=each.head.key, end=replace(each.head.end, next=each.end))
            for each in behind
        ]
        scanning.over = page.last is None
        scanning.cursor = replace(cursor, after=page.last, heads=cursor.heads + len(heads))

    def _mend(self, source: Source, late: list[ScannedHead], audit: Audit) -> None:
        fresh = (self.mender.again(source, each.head.key) for each in self._behind(source, late, audit))
        # A stream may have been pruned since, and so have come up.
        behind = self._behind(source, [head for head in fresh if head is not None], audit)
        for number, heads in by_partition(source, [each.head for each in behind]).items():
            done = self.mender.mend(source, number, heads)
            audit.missing += len(heads)
            audit.healed += done.events
            for stream, unhealed in done.unhealed.items():
                audit.troubles.append(f"{source.name} {number} {stream}: {unhealed.cause}")

    def _behind(self, source: Source, heads: list[ScannedHead], audit: Audit) -> list[Behind]:
        """Heads that the index lacks something of, where it can be read."""
        found: list[Behind] = []
        for number, mine in by_partition(source, heads).items():
            try:
                found += self.mender.behind(source, number, mine)
            except CorruptData as error:
                audit.troubles.append(f"{source.name} {number}: {error}")
        return found

    def _cursor(self, source: Source) -> AuditCursor:
        cursor = self.mender.driver.run(read_cursor(self.mender.index_table, source.base))
        return cursor if cursor.began else replace(cursor, began=self.mender.ids().timestamp)

    def _keep(self, scanning: _Scanning, audit: Audit) -> None:
        cursor = scanning.cursor
        if scanning.over:
            audit.ended.append(scanning.source.name)
            cursor = AuditCursor(ended=self.mender.ids().timestamp)
        self.mender.driver.run(write_cursor(self.mender.index_table, scanning.source.base, cursor))
