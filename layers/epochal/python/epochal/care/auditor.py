"""Audits the index a bit at a time, for ever: it compares heads with the index, and indexes what is missing.

An invocation scans some pages of each source's table from where the last one stopped, so its time and its price are
bounded whatever the size of the store. What seems to be missing may only be late: it is looked at again after a while.
The cursors move on once the findings are mended, so an invocation that dies is repeated.

It sees what is missing at the ends of streams. `verify` tells whether the chains are right inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Final

from epochal.care.audit_cursor import AuditCursor, read_cursor, write_cursor
from epochal.care.heads import ScannedHead, heads_by_partition, read_heads, scan, streams_by_partition
from epochal.care.mender import Behind, Mender
from epochal.errors import CorruptData, EpochalError
from epochal.feed.indexer import sources_of
from epochal.layout.source import Source
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.moments import from_unix_nanoseconds
from epochal.settings import Settings
from epochal.store.driver import Driver

if TYPE_CHECKING:
    from epochal.care.retention import Overdue, Rule
    from epochal.store.streams import Streams


PAGES: Final = 100
"""Pages of an invocation, 1 MB each: 12,800 read units, less than half a cent."""

MOST_ITEMS: Final = 1_000
"""Items emptied for retention, after which an invocation has done enough: one stream's are up to 500."""

SUSPECTS: Final = 1_000
"""Heads that may be late; with more of them an invocation goes on the next time."""


@dataclass(slots=True, kw_only=True)
class Audit:
    """The result of one invocation of the auditor.

    Attributes:
        checked: number of heads compared with the index.
        missing: number of streams of which the index lacked events.
        healed: number of events that the auditor has indexed.
        removals: number of removals of events that the auditor has indexed.
        pruned: number of streams from which events were pruned by a rule of retention.
        ended: names of the sources whose tables have been scanned to the end.
        troubles: messages about what could be neither read nor mended.
    """

    checked: int = 0
    missing: int = 0
    healed: int = 0
    removals: int = 0
    pruned: int = 0
    ended: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Scanning:
    """A source under audit, and the heads of which the index seems to lack something."""

    source: Source
    cursor: AuditCursor
    retention: Overdue | None = None
    over: bool = False
    late: list[ScannedHead] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Auditor:
    """Scans some pages of each source's table in each invocation, and indexes what the index lacks.

    Attributes:
        mender: compares heads with the index, and mends it.
        sources: the sources that the index covers.
        pages: maximum number of pages scanned in an invocation, over all sources.
        settle: seconds to wait before an event that seems missing is looked for again.
        rules: rules of retention, by category.
        streams: opens the store that prunes streams; None where the stage has no rules.
    """

    mender: Mender
    sources: tuple[Source, ...]
    pages: int = PAGES
    settle: float = 5.0
    rules: dict[str, Rule] = field(default_factory=dict)
    streams: Callable[[], Streams] | None = None

    def audit(self, seconds: float) -> Audit:
        """Scan pages within the limits, wait for late indexing, then mend and prune; return the counts."""
        audit, ends = Audit(), self.mender.driver.clock() + 2 * seconds
        scanned = [
            _Scanning(source=source, cursor=self._cursor(source), retention=self._retention())
            for source in self.sources
        ]
        for scanning in self._turns(scanned, self.mender.driver.clock() + seconds):
            self._scan(scanning, audit)
        if any(scanning.late for scanning in scanned):
            self.mender.driver.sleep(self.settle)
        for scanning in scanned:
            self._mend(scanning.source, scanning.late, audit)
            if scanning.retention is not None:
                self._prune(scanning.source, scanning.retention, ends, audit)
            self._keep(scanning, audit)
        return audit

    def _turns(self, scanned: list[_Scanning], ends: float) -> Iterator[_Scanning]:
        """Yield unfinished sources in turn, one page each, until a limit of pages, late heads or time.

        A large table does not keep the others waiting.
        """
        pages = 0
        while unfinished := [scanning for scanning in scanned if not scanning.over]:
            for scanning in unfinished:
                late = sum(len(scan.late) for scan in scanned)
                if pages == self.pages or late >= SUSPECTS or self.mender.driver.clock() >= ends:
                    return
                pages += 1
                yield scanning

    def _scan(self, scanning: _Scanning, audit: Audit) -> None:
        """Scan one page of a source's table; note heads that the index is behind, and streams to prune."""
        source, cursor = scanning.source, scanning.cursor
        page = self.mender.driver.ask(scan(source, after=cursor.after, consistent=False))
        heads = read_heads(source, page.items, lambda head: audit.troubles.append(str(head)))
        audit.checked += len(heads)
        if scanning.retention is not None:
            scanning.retention.take(source, heads, from_unix_nanoseconds(self.mender.now()))
        # The page is read without consistency, at half the price: an old head is looked at again the next time.
        behind = self._behind(source, heads, audit)
        # What it should have had by now; what comes while we wait is the indexer's business.
        scanning.late += [
            ScannedHead(source=source.name, image=entry.head.key, end=replace(entry.head.end, next=entry.end))
            for entry in behind
        ]
        scanning.over = page.last is None
        scanning.cursor = replace(cursor, after=page.last, heads=cursor.heads + len(heads))

    def _mend(self, source: Source, late: list[ScannedHead], audit: Audit) -> None:
        """Look again at heads that seemed late; index what is still missing, count it, notify reactions."""
        fresh = (self.mender.again(source, entry.head.key) for entry in self._behind(source, late, audit))
        # A stream may have been pruned since, and so have come up.
        behind = self._behind(source, [head for head in fresh if head is not None], audit)
        lacking = Counter(entry.partition for entry in behind if entry.end > entry.index)
        for partition, heads in heads_by_partition(source, [entry.head for entry in behind]).items():
            mended = self.mender.mend(source, partition, heads)
            audit.missing += lacking[partition]
            audit.healed += mended.events
            audit.removals += mended.removals
            for stream, unhealed in mended.unhealed.items():
                audit.troubles.append(f"{source.name} {partition} {stream}: {unhealed.cause}")
        try:
            self.mender.notify()
        except Exception as error:  # noqa: BLE001  # whatever a client raises, the index is mended
            audit.troubles.append(f"{source.name}: reactions could not be notified: {type(error).__name__}")

    def _retention(self) -> Overdue | None:
        """Return a new collector of streams to prune; None where the stage has no rules of retention."""
        if not self.rules or self.streams is None:
            return None
        from epochal.care.retention import Overdue  # noqa: PLC0415  few stages ask for it

        return Overdue(rules=self.rules, streams=self.streams)

    def _prune(self, source: Source, retention: Overdue, ends: float, audit: Audit) -> None:
        """Prune streams beyond the retention rules, only of events that the index has, within the limits."""
        some, items = retention.some(), 0
        for partition, streams in streams_by_partition(source, some).items():
            try:
                indexed = self.mender.reached(partition, streams)
            except CorruptData as error:
                audit.troubles.append(f"{source.name} {partition}: {error}")
                continue
            for stream in streams:
                if items >= MOST_ITEMS or self.mender.driver.clock() >= ends:
                    return
                try:
                    pruned = retention.prune(stream, min(some[stream], indexed[stream]))
                except EpochalError as error:
                    audit.troubles.append(f"{source.name}: {stream} is not pruned: {error}")
                    continue
                emptied = 0 if pruned is None else pruned.deleted
                audit.pruned += emptied > 0
                items += emptied

    def _behind(self, source: Source, heads: list[ScannedHead], audit: Audit) -> list[Behind]:
        """Return the heads of which the index lacks something; an unreadable partition is noted as trouble."""
        behind: list[Behind] = []
        for partition, heads_there in heads_by_partition(source, heads).items():
            try:
                behind += self.mender.behind(source, partition, heads_there)
            except CorruptData as error:
                audit.troubles.append(f"{source.name} {partition}: {error}")
        return behind

    def _cursor(self, source: Source) -> AuditCursor:
        """Read the cursor of a source's scan; a pass that has not begun begins now."""
        cursor = self.mender.driver.run(read_cursor(self.mender.index_table, source.base))
        return cursor if cursor.began else replace(cursor, began=self.mender.ids().timestamp)

    def _keep(self, scanning: _Scanning, audit: Audit) -> None:
        """Write the cursor of a source's scan, or begin a new pass at the end of the table."""
        cursor = scanning.cursor
        if scanning.over:
            audit.ended.append(scanning.source.name)
            cursor = AuditCursor(ended=self.mender.ids().timestamp)
        self.mender.driver.run(write_cursor(self.mender.index_table, scanning.source.base, cursor))


def auditor_of(settings: Settings, driver: Driver) -> Auditor:
    """Make the auditor of a deployment from its settings."""
    mender = Mender(driver=driver, index_table=settings.index_table)
    sources = sources_of(settings)
    if not settings.keep:
        return Auditor(mender=mender, sources=sources)
    from epochal.care.retention import rules_of  # noqa: PLC0415  likewise

    return Auditor(
        mender=mender,
        sources=sources,
        rules=rules_of(settings.keep),
        streams=partial(_streams, settings, driver),
    )


def _streams(settings: Settings, driver: Driver) -> Streams:
    """Open the store of streams for pruning; bodies are copied to an archive unopened."""
    from epochal.store.encoding import BodyCodec  # noqa: PLC0415  likewise
    from epochal.store.streams import streams_of  # noqa: PLC0415

    return streams_of(settings, driver, BodyCodec())
