"""Imports of a history into named streams: the rows of any source, in the order of the source.

kept         types, bodies, times, ids, tags, metadata, and each event's index in its stream
in order     within a stream exactly; between streams no event is written before one that the source has more than
             two windows earlier
few writes   events of a stream within a window are appended together, since an append is billed by the whole KB
bounded      a window of events is held, whatever the source has
resumable    a further run goes on, and writes nothing twice (`importing.writing`)
whole        an event that is rejected, and all events behind it in its stream, are not imported: a further run imports
             them once the event is mended
unknown      a row that does not tell its stream may belong before any event behind it: events with an index continue
             streams that have begun, and all other events wait
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, Final

from epochal.contrib.transfer.copying.digests import Digest, said_by
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.importing.incoming import Gone, Incoming, Misfit, Row
from epochal.contrib.transfer.importing.typed_bodies import must_be_readable
from epochal.contrib.transfer.importing.writing import HistoryWriter, PartWritten, StreamPart, recorded
from epochal.deciders.codecs import EventCodec
from epochal.errors import CorruptData, EventsPruned, InvalidInput, UnknownType
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.bodies import body_size
from epochal.model.tokens import Token
from epochal.store.driver import ahead, pool
from epochal.store.encoding import BodyCodec

RECENT: Final = 20_000
"""Accounts of streams that are kept in memory: some 20 MB."""

_TABLE: Final = "CREATE TABLE s (name TEXT PRIMARY KEY, first, next, digest, stopped) WITHOUT ROWID"
_KEEP: Final = "REPLACE INTO s VALUES (?, ?, ?, ?, ?)"


@dataclass(slots=True)
class Account:
    """State of a stream, as far as the source was read.

    Attributes:
        first: index of the stream's first event in the source
        next: index that its next event must have
        digest: digest of its events so far, chained
        stopped: reason why no more of the stream is imported; empty while the stream goes on
        token: version token that this run left the stream with; None where it is not known, or no longer
    """

    first: int = 0
    next: int = 0
    digest: bytes = b""
    stopped: str = ""
    token: Token | None = None

    def add(self, digest: bytes) -> None:
        """Add the digest of the next event."""
        self.digest = chained(self.digest, digest)
        self.next += 1


def chained(before: bytes, event: bytes) -> bytes:
    """Return the digest of a stream's events with one more event."""
    return hashlib.sha256(before + event).digest()


class Ledger:
    """Accounts of all streams of an import, in memory and in a temporary file; for one thread only."""

    def __init__(self, recent: int = RECENT) -> None:
        self._most = recent
        self._recent: OrderedDict[str, Account] = OrderedDict()
        self._file = sqlite3.connect("")  # temporary file, kept in memory while small
        self._file.execute(_TABLE)
        self._streams = 0

    def of(self, stream: str) -> Account:
        """Return the account of a stream; make one if there is none.

        The account may be changed until the next one is requested.
        """
        account = self._recent.get(stream)
        if account is not None:
            self._recent.move_to_end(stream)
            return account
        query = "SELECT first, next, digest, stopped FROM s WHERE name = ?"
        row = self._file.execute(query, (stream,)).fetchone() if self._streams > len(self._recent) else None
        account = Account() if row is None else Account(*row)
        self._streams += row is None
        self._recent[stream] = account
        if len(self._recent) > self._most:
            self._keep(*self._recent.popitem(last=False))
        return account

    def all(self) -> Iterator[tuple[str, Account]]:
        """Yield the name and the account of every stream, by name."""
        for stream, account in self._recent.items():
            self._keep(stream, account)
        for name, *columns in self._file.execute("SELECT * FROM s ORDER BY name"):
            yield name, Account(*columns)

    def _keep(self, stream: str, account: Account) -> None:
        """Write the account of a stream to the temporary file."""
        columns = (account.first, account.next, account.digest, account.stopped)
        self._file.execute(_KEEP, (stream, *columns))


AT_ONCE: Final = 8
"""Streams that are written concurrently."""

WINDOW: Final = 20_000
"""Rows of the source within which events of a stream are collected into one append."""

HELD_BYTES: Final = 32 * 1024 * 1024
"""Most bytes of bodies that are held in memory."""

BATCH_EVENTS: Final = 200
BATCH_BYTES: Final = 64 * 1024
"""Most bytes of bodies in an append.

An event of 300 bytes takes 0.1 write units in an append of 10, and 0.065 in one of 200. Larger appends save hardly
more, and make reads of single events dearer, since each reads a whole page."""

BATCH_TAGS: Final = 90
"""Most tags in an append: each is an item of a transaction, which has at most 100."""


@dataclass(slots=True, kw_only=True)
class ImportCounts:
    """Counts of an import so far; in a dry run, of what would be written.

    Attributes:
        rows: rows of the source that were read, with those that are gone there
        streams: streams that have events of the source now
        written: events that were appended
        there: events that were stored before, and are the same
        gone: rows of events that are gone at the source
        rejected: rows that were not imported
        waiting: rejected rows that are fine themselves, and wait for earlier ones
        renamed: events with tags, whose ids are replaced by ids of their stream
        emptied: streams all of whose events are gone at the source
        deleted: emptied streams that were deleted in the store
        bytes: bytes of bodies
        units: write units of the streams' table
        verified: events that `verify` read
        digest: digest of all events of all streams; empty before `verify`
        unlike: names of streams that `verify` found to differ from the source
        unread: reasons why `verify` cannot read streams with the codec, one for each such stream
    """

    rows: int = 0
    streams: int = 0
    written: int = 0
    there: int = 0
    gone: int = 0
    rejected: int = 0
    waiting: int = 0
    renamed: int = 0
    emptied: int = 0
    deleted: int = 0
    bytes: int = 0
    units: float = 0.0
    verified: int = 0
    digest: str = ""
    unlike: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)


@dataclass(slots=True)
class _Held:
    """Events of one stream that are held to be appended together.

    Attributes:
        base: index of the first held event
        since: number of rows that were read up to the first held event
        digest: digest of the stream's events before the held ones
        rows: held events
        size: bytes of their bodies
        tags: tags of the held events
    """

    base: int
    since: int
    digest: bytes
    rows: list[Incoming] = field(default_factory=list)
    size: int = 0
    tags: set[str] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class StreamImporter:
    """Imports the rows of a source into streams.

    Attributes:
        writer: writer of batches
        rejects: function called with each row that is not imported; an error that it raises ends the run
        progress: function called with the counts from time to time
        verifying: whether to compute the digests that `verify` compares
        at_once: number of batches that are written concurrently
        window: rows of the source within which events of a stream are collected into one append
        past_unknown: whether to leave out rows that do not tell their stream, so that no other row waits for them
        deleting: whether streams all of whose events are gone at the source are deleted, not begun empty
        codec: codec with which `verify` reads every event of the streams, also those stored before the import
        done: counts so far
        ledger: accounts of the streams
    """

    writer: HistoryWriter
    rejects: Callable[[Misfit], object] = lambda _: None
    progress: Callable[[ImportCounts], object] = lambda _: None
    verifying: bool = False
    at_once: int = AT_ONCE
    window: int = WINDOW
    past_unknown: bool = False
    deleting: bool = False
    codec: EventCodec[Any] | None = None
    done: ImportCounts = field(default_factory=ImportCounts)
    ledger: Ledger = field(default_factory=Ledger)
    _held: OrderedDict[str, _Held] = field(default_factory=OrderedDict)
    _bytes: int = 0
    _unknown: str = ""
    _under_way: deque[tuple[_Held, str, Future[PartWritten]]] = field(default_factory=deque)
    _digest: Digest = field(default_factory=lambda: Digest(said_by(BodyCodec())))

    def run(self, rows: Iterable[Row]) -> ImportCounts:
        """Import all rows of a source, and return the counts.

        Raises:
            EpochalError: the store cannot be reached, or refuses everything. What was written stays, and a further
                run goes on.
        """
        with pool(self.at_once) as calls:
            for row in rows:
                self._take(row, calls)
            while self._held:
                self._send(next(iter(self._held)), calls)
            self._settle(0)
        self._begin_empty()
        self.progress(self.done)
        return self.done

    def _take(self, row: Row, calls: Executor) -> None:
        """Process the next row: hold its event for an append, count it as gone, or reject it."""
        counts = self.done
        counts.rows += 1
        if not counts.rows % self.window or not counts.rows % 1_000:
            self.progress(counts)
        if isinstance(row, Misfit):
            return self._reject(row)
        if isinstance(row, Gone) and row.index is None:  # without indices, gone events leave no gap
            counts.gone += 1
            return None
        account = self.ledger.of(row.stream)
        if account.stopped:
            return self._wait(row, account.stopped)
        if self._unknown and (row.index is None or (row.index != account.next == account.first)):
            return self._wait(row, f"may follow {self._unknown}, whose stream is unknown")
        if why := self._against(row, account):
            return self._reject(Misfit(at=row.at, stream=row.stream, rule=why, raw=row.raw))
        if isinstance(row, Gone):
            counts.gone += 1
            account.first = account.next = account.next + 1
            return None
        self._hold(row, account, calls)
        return self._let_go(calls)

    def _against(self, row: Incoming | Gone, account: Account) -> str:
        """Return why a row cannot come next in its stream, else empty text; a first row sets where it begins.

        The first row of a stream sets the index that the stream begins with.
        """
        begins = account.first == account.next
        if row.index is not None and row.index != account.next:
            if not begins or row.index < account.next:
                gap = row.index > account.next
                why = (
                    f"events from {account.next} on are missing" if gap else "it is out of order or repeated"
                )
                return f"index: is {row.index}, expected {account.next}: {why}"
            account.first = account.next = row.index
        if isinstance(row, Gone) and account.first != account.next:
            return "gone: earlier events of the stream exist, and a stream cannot have holes"
        return ""

    def _hold(self, row: Incoming, account: Account, calls: Executor) -> None:
        """Add an event to the held batch of its stream, after sending the batch if it is full."""
        size = body_size(row.event.data) + body_size(row.event.meta)
        self.done.bytes += size
        held = self._held.get(row.stream)
        if held is not None and self._is_full(held, row, size):
            self._send(row.stream, calls)
            account, held = self.ledger.of(row.stream), None
            if account.stopped:
                return self._wait(row, account.stopped)
        if held is None:
            held = self._held[row.stream] = _Held(account.next, self.done.rows, account.digest)
        held.rows.append(row)
        held.size += size
        held.tags.update(row.event.tags)
        self._bytes += size
        self.done.renamed += row.renamed
        return self._account(row, account)

    def _account(self, row: Incoming, account: Account) -> None:
        """Count an event in its stream's account, with its digest if the import is to be verified."""
        if self.verifying:
            account.add(self._digest.add(recorded(row.stream, account.next, row.event)))
        else:
            account.next += 1

    @staticmethod
    def _is_full(held: _Held, row: Incoming, size: int) -> bool:
        """Whether an append of the held events and one more would exceed its limits."""
        tagged = len(held.tags.union(row.event.tags)) if row.event.tags else 0
        return len(held.rows) >= BATCH_EVENTS or held.size + size > BATCH_BYTES or tagged > BATCH_TAGS

    def _let_go(self, calls: Executor) -> None:
        """Send held batches that waited for a window or exceed memory; await those sent two windows ago.

        Then wait for the result of each batch that was begun two windows ago.
        """
        while self._held:
            stream = next(iter(self._held))
            if self._bytes <= HELD_BYTES and self.done.rows - self._held[stream].since < self.window - 1:
                break
            self._send(stream, calls)
        while self._under_way and self.done.rows - self._under_way[0][0].since >= 2 * self.window:
            self._receive()

    def _send(self, stream: str, calls: Executor) -> None:
        """Submit the held batch of a stream for writing, after awaiting the stream's earlier batches.

        If one of these was refused, the held events were rejected with it, and nothing is sent.
        """
        while any(name == stream for _, name, _ in self._under_way):
            self._receive()
        held = self._held.pop(stream, None)
        if held is None:
            return
        self._bytes -= held.size
        self._settle(self.at_once - 1)
        account = self.ledger.of(stream)
        batch = StreamPart(
            stream=stream,
            base=held.base,
            rows=held.rows,
            token=account.token,
            begins=account.first == held.base,
        )
        self._under_way.append((held, stream, calls.submit(self.writer.write, batch)))

    def _settle(self, remaining: int) -> None:
        """Wait for results until at most `remaining` batches are in flight."""
        while len(self._under_way) > remaining:
            self._receive()

    def _receive(self) -> None:
        """Wait for the result of the oldest batch in flight, count it, and reject the rows that were refused."""
        sent, stream, call = self._under_way.popleft()
        written, account = call.result(), self.ledger.of(stream)
        self.done.streams += written.batch.begins and written.written + written.there > 0
        self.done.written += written.written
        self.done.there += written.there
        self.done.units += written.units
        account.token = written.token
        if written.refused:
            stored = written.there + written.written
            later = [*written.batch.rows[stored:]]
            if written.unfit:
                account.next, account.digest = sent.base, sent.digest
                for row in sent.rows[:stored]:
                    self._account(row, account)
            if held := self._held.pop(stream, None):
                self._bytes -= held.size
                later += held.rows
            row, *later = later
            account.stopped = ""  # it was set by a row behind the refused ones
            self._reject(Misfit(at=row.at, stream=stream, rule=written.refused, raw=row.raw))
            stopped = self.ledger.of(stream).stopped
            for row in later:
                self._wait(row, stopped)

    def _wait(self, row: Incoming | Gone, why: str) -> None:
        """Report a row as waiting for an earlier one, and make later rows of its stream wait for the same."""
        self.done.rejected += 1
        self.done.waiting += 1
        self.ledger.of(row.stream).stopped = why
        self.rejects(Misfit(at=row.at, stream=row.stream, rule=why, raw=row.raw, waits=True))

    def _reject(self, misfit: Misfit) -> None:
        """Report a row as rejected, and stop the import of its stream; events before it are imported.

        If the row does not tell its stream, it may belong to any, and later rows of unknown order wait for it.
        """
        self.done.rejected += 1
        if misfit.stream:
            account = self.ledger.of(misfit.stream)
            account.stopped = account.stopped or f"follows {misfit.at} in its stream, which was rejected"
        elif not (misfit.of_none or self.past_unknown):
            self._unknown = self._unknown or misfit.at
        self.rejects(misfit)

    def _begin_empty(self) -> None:
        """Begin as empty each stream whose events are all gone at the source, or delete it if `deleting`."""
        for stream, account in self.ledger.all() if self.done.gone else ():
            if account.first == account.next and not account.stopped:
                batch = StreamPart(
                    stream=stream, base=account.first, rows=(), begins=True, ends=self.deleting
                )
                written = self.writer.write(batch)
                if written.refused:
                    self._reject(Misfit(at="its end", stream=stream, rule=written.refused))
                self.done.streams += 1
                self.done.emptied += 1
                self.done.deleted += written.deleted
                self.done.units += written.units

    # Reading all streams again after the import, and comparing them with the source.

    def verify(self) -> ImportCounts:
        """Read all imported streams again, compare them with the source, and return the counts.

        Number and digest of events are compared; `unlike` names the streams that differ. Of a stream that a row has
        stopped, the events before that row are compared. Events appended after the import do not count.
        """
        total = hashlib.sha256()
        if self.codec is not None:
            unread = partial(self._unread, self.codec)
            for why in ahead(unread, self.ledger.all(), self.at_once):
                self.done.unread += why
        for stream, digest, events in ahead(self._reread, self.ledger.all(), self.at_once):
            self.done.verified += events
            total.update(f"{stream} {events} ".encode() + digest)
            self.progress(self.done)
        self.done.digest = total.hexdigest()
        return self.done

    def _unread(self, codec: EventCodec[Any], key: tuple[str, Account]) -> list[str]:
        """Return the reason why the codec cannot read a stream, as a list of one; empty if it can read all."""
        stream, account = key
        try:
            for event in self.writer.store.reader().events(stream, account.first, None, "forward"):
                must_be_readable(codec, event)
        except EventsPruned:
            return []
        except (InvalidInput, CorruptData, UnknownType) as error:
            return [str(error)]
        return []

    def _reread(self, key: tuple[str, Account]) -> tuple[str, bytes, int]:
        """Read a stream again; return its name, digest and event count, and add it to `unlike` if it differs."""
        stream, account = key
        reread, digest, count = Digest(said_by(self.writer.store.codec)), b"", account.next - account.first
        try:
            stored = (
                StreamSource(self.writer.store).events(stream, account.first, account.next) if count else ()
            )
            for event in stored:
                digest = chained(digest, reread.add(event))
        except (EventsPruned, CorruptData):
            digest = b"gone"
        if (reread.events, digest) != (count, account.digest):
            self.done.unlike.append(stream)
        return stream, digest, reread.events
