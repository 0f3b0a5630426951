"""Audits the index a bit at a time, for ever: it compares heads with the index, and indexes what is missing.

An invocation scans some pages of each source's table from where the last one stopped, so its time and its price are
bounded whatever the size of the store. What seems to be missing may only be late: it is looked at again after a while.
Where events are packed under dictionaries, what was scanned is trained on, one category at a time.
The cursors move on once the findings are mended, so an invocation that dies is repeated.

It sees what is missing at the ends of streams. `verify` tells whether the chains are right inside.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from epochal.care.catch_up import Behind, Mender, ScannedHead, by_partition, grouped, read_heads, scan
from epochal.errors import CorruptData, EpochalError, InvalidInput
from epochal.index.checkpoints import calf_key
from epochal.indexer import sources_of
from epochal.layout.port import Source, layout_named
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.events import TAG_STREAMS, Ticks, category_of, from_unix_nanoseconds
from epochal.plan.ops import Found, Get, Put, Steps
from epochal.plan.values import Item, Key, mapping, number, read_number, read_text, text
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Trained:
    """A dictionary was trained on events of some streams, and measured on appends of others.

    Attributes:
        streams: that it was trained on, and
        events: of these.
        measured: appends that it was measured on.
        before: bytes that their events take as writers pack them now,
        after: and under this dictionary.
        dictionary: its id; None where there was too little to train on, or nothing that enough streams share.
        in_use: it pays, and writers take it from now on.
    """

    category: str
    streams: int
    events: int
    measured: int
    before: int
    after: int
    dictionary: str | None
    in_use: bool


@dataclass(slots=True, kw_only=True)
class Audit:
    """What an invocation came to.

    Attributes:
        checked: heads that were looked at.
        missing: streams that had events which the index lacked.
        healed: events that were indexed,
        removals: and removals of events.
        pruned: streams that had more than a stage keeps.
        ended: sources whose tables have been scanned to the end.
        troubles: what could neither be read nor mended, in words.
        trained: what became of dictionaries that were trained.
    """

    checked: int = 0
    missing: int = 0
    healed: int = 0
    removals: int = 0
    pruned: int = 0
    ended: list[str] = field(default_factory=list)
    troubles: list[str] = field(default_factory=list)
    trained: list[Trained] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class _Scanning:
    """A source under audit, with the heads that may be late."""

    source: Source
    cursor: AuditCursor
    retention: Overdue | None = None
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
        rules: what streams keep, by category.
        streams: opens what prunes them.
    """

    mender: Mender
    sources: tuple[Source, ...]
    pages: int = PAGES
    settle: float = 5.0
    rules: dict[str, Rule] = field(default_factory=dict)
    streams: Callable[[], Streams] | None = None

    def audit(self, seconds: float) -> Audit:
        """Go on for some pages or seconds, at most to the end of each table; then wait, look again, and mend."""
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
        heads = read_heads(source, page.items, lambda head: audit.troubles.append(str(head)))
        audit.checked += len(heads)
        scanning.sample.take(page.items)
        if scanning.retention is not None:
            scanning.retention.take(source, heads, from_unix_nanoseconds(self.mender.now()))
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
        lacking = Counter(each.partition for each in behind if each.end > each.index)
        for partition, heads in by_partition(source, [each.head for each in behind]).items():
            done = self.mender.mend(source, partition, heads)
            audit.missing += lacking[partition]
            audit.healed += done.events
            audit.removals += done.removals
            for stream, unhealed in done.unhealed.items():
                audit.troubles.append(f"{source.name} {partition} {stream}: {unhealed.cause}")
        try:
            self.mender.tell()
        except Exception as error:  # noqa: BLE001  # whatever a client raises, the index is mended
            audit.troubles.append(f"{source.name}: reactions could not be told: {type(error).__name__}")

    def _retention(self) -> Overdue | None:
        if not self.rules or self.streams is None:
            return None
        from epochal.care.retention import Overdue  # noqa: PLC0415  few stages ask for it

        return Overdue(rules=self.rules, streams=self.streams)

    def _prune(self, source: Source, retention: Overdue, ends: float, audit: Audit) -> None:
        """Prune some streams of what they do not keep, and the index has."""
        some, items = retention.some(), 0
        for partition, streams in grouped(source, some).items():
            try:
                known = self.mender.reached(partition, streams)
            except CorruptData as error:
                audit.troubles.append(f"{source.name} {partition}: {error}")
                continue
            for stream in streams:
                if items >= MOST_ITEMS or self.mender.driver.clock() >= ends:
                    return
                try:
                    done = retention.prune(stream, min(some[stream], known[stream]))
                except EpochalError as error:
                    audit.troubles.append(f"{source.name}: {stream} is not pruned: {error}")
                    continue
                emptied = 0 if done is None else done.deleted
                audit.pruned += emptied > 0
                items += emptied

    def _behind(self, source: Source, heads: list[ScannedHead], audit: Audit) -> list[Behind]:
        """Heads that the index lacks something of, where it can be read."""
        found: list[Behind] = []
        for partition, mine in by_partition(source, heads).items():
            try:
                found += self.mender.behind(source, partition, mine)
            except CorruptData as error:
                audit.troubles.append(f"{source.name} {partition}: {error}")
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


# Where the auditor stands in each source's table, so that it goes on there the next time. FORMATS §4.
#
# A pass is one scan of a table from its beginning to its end. A cursor only saves work: lost or set back, some heads
# are looked at again.


def auditor_of(settings: Settings, driver: Driver) -> Auditor:
    """The auditor of a deployment."""
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
    """The store, for prunes: what is copied to an archive is not opened."""
    from epochal.store.encoding import BodyCodec  # noqa: PLC0415  likewise
    from epochal.store.streams import streams_of  # noqa: PLC0415

    return streams_of(settings, driver, BodyCodec())


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditCursor:
    """A pass under way.

    Attributes:
        after: the last key that was scanned; None before the first.
        began: when the pass did.
        heads: looked at in it.
        ended: when the pass before it did; empty while there was none.
    """

    after: Key | None = None
    began: str = ""
    heads: int = 0
    ended: str = ""


def cursor_name(base: int) -> str:
    """Partition key of the cursor of the source whose first partition is `base`."""
    return f"$Audit-{base}"


def read_cursor(table: str, base: int) -> Steps[AuditCursor]:
    """Where the auditor of a source stands."""
    reply: Found = yield Get(table=table, key=calf_key(cursor_name(base), 0))
    item = reply.item
    if item is None:
        return AuditCursor()
    return AuditCursor(
        after=item["k"]["M"] if "k" in item else None,
        began=read_text(item, "t") or "",
        heads=read_number(item, "n") or 0,
        ended=read_text(item, "x") or "",
    )


def write_cursor(table: str, base: int, cursor: AuditCursor) -> Steps[None]:
    """Keep where the auditor of a source stands; the last write wins between two auditors."""
    item = {**calf_key(cursor_name(base), 0), "n": number(cursor.heads)}
    for name, value in (("t", cursor.began), ("x", cursor.ended)):
        if value:
            item[name] = text(value)
    if cursor.after is not None:
        item["k"] = mapping(cursor.after)
    yield Put(table=table, item=item)


# Training dictionaries for categories of streams, on what a scan of their table finds of them.

HEADS: Final = 400
"""Heads of a category that are looked at: one is a few events, and some hundred events are enough."""

SAMPLED_PAGES: Final = 100
"""Pages of a scan at most, 1 MB each; a category that is rarer is trained on what is found by then."""


def train(driver: Driver, source: Source, category: str) -> Trained:
    """Train a dictionary for a category, and put it in use where it pays.

    Raises:
        InvalidInput: the source's events are not packed under dictionaries.
    """
    training = training_of(source)
    if training is None:
        raise InvalidInput("source", f"{source.name} has no dictionaries")
    images = list(_sample(driver, source, category))
    trained: Trained = driver.run(training.retrain(source.table, category, images))
    return trained


def training_of(source: Source) -> Any:
    """What trains dictionaries for a source, as `care.training` does; None where it has none."""
    return layout_named(source.name).part("training")


def in_category(source: Source, images: Iterable[Item]) -> Iterator[tuple[str, Item]]:
    """Heads that can be read, each with its category. Events of tags are not packed under dictionaries."""
    for head in read_heads(source, images):
        if not head.end.stream.startswith(TAG_STREAMS):
            yield category_of(head.end.stream), head.image


def _sample(driver: Driver, source: Source, category: str) -> Iterator[Item]:
    found = 0
    pages = driver.pages(scan(source, consistent=False))
    for _, page in zip(range(SAMPLED_PAGES), pages, strict=False):
        for name, image in in_category(source, page.items):
            if name == category:
                yield image
                found += 1
        if found >= HEADS:
            return


# Training dictionaries on what an audit meets anyway: at most one category at a time, and each once a week.

ENOUGH: Final = 100
"""Heads of a category, met in one audit, from which on it is worth a try."""

KEPT: Final = 200
"""Of those, images that are held: a few hundred events are as good as all."""

CATEGORIES: Final = 20
"""Held at once, so that a table of many does not fill the memory: some 4 MB."""


@dataclass(slots=True)
class Sample:
    """Heads of a source's categories, as an audit meets them."""

    source: Source
    met: dict[str, int] = field(default_factory=dict)
    kept: dict[str, list[Item]] = field(default_factory=dict)

    def take(self, images: Iterable[Item]) -> None:
        """Take in a page of a scan."""
        if training_of(self.source) is None:
            return
        for category, image in in_category(self.source, images):
            if category not in self.kept and len(self.kept) == CATEGORIES:
                continue
            kept = self.kept.setdefault(category, [])
            self.met[category] = self.met.get(category, 0) + 1
            if len(kept) < KEPT:
                kept.append(image)

    def train(self, driver: Driver, now: Ticks, troubles: list[str]) -> Trained | None:
        """Train for the largest category whose turn it is; None where there is none."""
        training, table = training_of(self.source), self.source.table
        for category in sorted(self.met, key=lambda each: (-self.met[each], each)):
            if self.met[category] < ENOUGH:
                return None
            try:
                retraining = training.retrain_if_due(table, category, self.kept[category], now)
                trained: Trained | None = driver.run(retraining)
            except EpochalError as error:
                troubles.append(f"{self.source.name}: no dictionary for {category}: {error}")
                return None
            if trained is not None:
                return trained
        return None
