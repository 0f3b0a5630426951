"""Writes of a stream's next events: at exactly the version that the source tells, and no event twice.

    the stream is new           it is begun, on the condition that it does not exist
    it has the right version    the events are appended with that expected version
    it has some of the events   these are compared, equal ones skipped, and the rest appended
    it has other events         nothing is appended, and the stream is refused

So a run that was killed, even between a write and its response, is run again from the beginning of its source: the
events that it had written are recognised by their content. No checkpoint is saved, so none can be wrong.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from typing import Final

from epochal.contrib.transfer.copying.digests import Digest, said_by
from epochal.contrib.transfer.copying.sources import StreamSource
from epochal.contrib.transfer.copying.stream_copy import StreamCopier
from epochal.contrib.transfer.export.runs import end_with_parent
from epochal.contrib.transfer.importing.incoming import Incoming
from epochal.errors import ConflictError, EventsPruned, InvalidInput, MissingBody, WrongTable
from epochal.layout.registry import layout_named
from epochal.layout.streams import Head
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.bodies import Claim
from epochal.model.events import Event, Recorded
from epochal.model.expected_version import NO_STREAM, AtVersion, ExpectedVersion
from epochal.model.outcomes import Appended, Conflict
from epochal.model.tokens import Token
from epochal.plan.costs import units
from epochal.plan.ops import BatchGet, Done, Found, Get, Items, Op, Query, Reply, Scan, Together, TransactGet
from epochal.plan.values import write_units
from epochal.plugins import NATIVE
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.store.encoding import BodyCodec, codec_of
from epochal.store.streams import Streams, streams_of
from epochal.store.tagged_importer import marked

ATTEMPTS: Final = 4
"""Attempts at a batch. If another import runs too, the next attempt continues behind the events appended there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamPart:
    """Batch of consecutive events of one stream, to be written together.

    Attributes:
        stream: name of the stream
        base: index of the first event
        rows: events
        token: version token that this run left the stream with; None where it is not known. A version beyond `base`
            is that of an earlier run.
        begins: whether the source has no events of the stream before these; if `base` is above 0, they are gone
            there
        ends: whether to delete the stream, if it is empty in the store, too
    """

    stream: str
    base: int
    rows: Sequence[Incoming]
    token: Token | None = None
    begins: bool = False
    ends: bool = False


@dataclass(slots=True, kw_only=True)
class PartWritten:
    """Result of writing a batch.

    Attributes:
        batch: batch that was written
        written: number of events that were appended
        there: number of events that were stored before, and are the same
        units: write units that were spent
        token: version token of the stream; None where it is not known
        refused: reason why nothing was written from event `there + written` on; empty where all events are stored
        unfit: whether the store does not accept that event at all, whatever is stored
        deleted: whether the stream was deleted
    """

    batch: StreamPart
    written: int = 0
    there: int = 0
    units: float = 0.0
    token: Token | None = None
    refused: str = ""
    unfit: bool = False
    deleted: bool = False


@dataclass(slots=True, kw_only=True)
class Pace:
    """Limits writers, all together, to a number of write units a second.

    Attributes:
        rate: write units a second; 0 for no limit
        clock: monotonic clock in seconds
        sleep: function that waits for a number of seconds
    """

    rate: float = 0.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], object] = time.sleep
    _paid: float = float("-inf")
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def spend(self, spent: float) -> None:
        """Charge write units, and wait until those charged before are within the rate."""
        if not self.rate:
            return
        with self._lock:
            now = self.clock()
            wait = self._paid - now
            self._paid = max(now, self._paid) + spent / self.rate
        if wait > 0:
            self.sleep(wait)


@dataclass(slots=True)
class HistoryWriter:
    """Writes batches to a store; safe under threads, as long as no two batches are of one stream.

    Attributes:
        store: store of the streams
        pace: limit of write units a second
        dry: whether the store is that of `make_dry_run_writer`, which keeps nothing
    """

    store: Streams
    pace: Pace = field(default_factory=Pace)
    dry: bool = False
    likely_there: bool = True
    """Whether the last new stream of the source existed in the store already. Then the head of the next one is read
    before it is written, since a refused write costs more than a read."""

    def write(self, batch: StreamPart) -> PartWritten:
        """Write a batch's events that are not stored yet, wait for the pace, and return the result.

        An event that cannot be written is no error: the result says why.

        Raises:
            EpochalError: the store cannot be reached, or refuses everything.
        """
        store, meter = self.store.metered()
        writing = _Writing(self, store, batch)
        writing.run()
        written = writing.done
        written.units = max(written.units, meter.capacity.write)
        self.pace.spend(written.units)
        return written


class _Writing:
    """Writing of one batch; the result is in `done`."""

    def __init__(self, writer: HistoryWriter, store: Streams, batch: StreamPart) -> None:
        self.writer, self.store, self.batch = writer, store, batch
        self.done = PartWritten(batch=batch)

    def run(self) -> None:
        """Append the batch at the version the import knows, or else compare it with the stored events first."""
        batch = self.batch
        if self.writer.dry:
            return self._simulate_write()
        token = batch.token if batch.token is not None and batch.token.version == batch.base else None
        if token is not None and self._append(batch.rows, token):
            return None
        blind = batch.begins and not (batch.base or self.writer.likely_there)
        if token is None and batch.rows and blind and self._append(batch.rows, NO_STREAM):
            return None
        for _ in range(ATTEMPTS):
            if self._append_after_stored():
                return None
        self._refuse("other writers keep appending to it")
        return None

    def _simulate_write(self) -> None:
        """Append the batch to a store that keeps nothing, and count what that would cost.

        A stream whose first events are gone is begun by a write of its own.
        """
        if self.batch.begins and self.batch.base:
            self.done.units += 1 + self.batch.ends
            self.done.deleted = self.batch.ends
        if self.batch.rows:
            self._append(self.batch.rows, self.batch.token or NO_STREAM)

    @property
    def _reached(self) -> int:
        """Number of events of the batch that are stored."""
        return self.done.there + self.done.written

    def _refuse(self, why: str) -> bool:
        """Note the reason why the rest of the batch is not written; always True, as nothing is left to do."""
        self.done.refused = why
        return True

    def _append_after_stored(self) -> bool:
        """Compare the batch with the stored events and append the rest; False if others appended meanwhile.

        True means that nothing is left to do: all events are stored, or the batch was refused.
        """
        batch = self.batch
        head = self.store.head(batch.stream)
        if batch.begins:
            self.writer.likely_there = head is not None
            head = self._begin_pruned() if head is None and batch.base else head
            if head is None:
                return self._append(batch.rows, NO_STREAM)
        if head is None:
            return self._refuse("no longer exists")
        if head.deleted and batch.ends:
            self.done.deleted = head.version == batch.base
        if head.deleted and not self.done.deleted:
            return self._refuse("was deleted in the store and takes no more events")
        if head.version < batch.base:
            return self._refuse(
                f"is at version {head.version} in the store, but the source continues with event {batch.base}"
            )
        stored = min(head.version - batch.base, len(batch.rows))
        if not self._refuse_unless_equal(stored):
            return True
        self.done.token = head.token()
        if batch.ends and not self.done.deleted and not self._end(head):
            return False
        return not batch.rows[stored:] or self._append(batch.rows[stored:], head.token())

    def _begin_pruned(self) -> Head | None:
        """Begin an empty stream that counts as pruned below the batch's first index, and return its head."""
        copier = StreamCopier(source=StreamSource(self.store), target=self.store)
        copier.begun(self.batch.stream, self.batch.base)
        return self.store.head(self.batch.stream)

    def _end(self, head: Head) -> bool:
        """Delete the stream if it is empty; False if others have appended since `head` was read."""
        target_head = StreamSource(self.store).head(self.batch.stream)
        if target_head is not None and target_head.empty:
            try:
                self.store.delete(self.batch.stream, expected=AtVersion(version=head.version))
            except ConflictError:
                return False
            self.done.deleted = True
        return True

    def _refuse_unless_equal(self, there: int) -> bool:
        """Whether the first `there` events of the batch equal the stored ones; if not, the batch is refused."""
        batch, reached = self.batch, self._reached
        ours, theirs = Digest(said_by(BodyCodec())), Digest(said_by(self.store.codec))
        try:
            stored = (
                StreamSource(self.store).events(batch.stream, batch.base + reached, batch.base + there)
                if reached < there
                else ()
            )
            for row, event in zip(batch.rows[reached:there], stored, strict=True):
                if ours.add(recorded(batch.stream, event.index, row.event)) != theirs.add(event):
                    self._refuse(f"event {event.index} differs in the store")
                    return False
                self.done.there += 1
        except EventsPruned as error:
            self._refuse(str(error))
            return False
        return True

    def _append(self, rows: Sequence[Incoming], expected: ExpectedVersion) -> bool:
        """Append rows or refuse them and return True; False if the version is another, or the ids are stored.

        A write that the store does not accept is halved until the event at fault is known. Then the batch is refused,
        and the answer is True. If the store has the events by their ids, as from an earlier run, the answer is False,
        so that the events are compared: ids do not tell what an event says.
        """
        try:
            events = [marked(row.event) for row in rows]
            outcome = self.store.try_append(self.batch.stream, events, expected=expected)
        except WrongTable:
            raise
        except InvalidInput as error:
            if len(rows) == 1:
                self.done.unfit = True
                return self._refuse(error.rule)
            half = len(rows) // 2
            if not self._append(rows[:half], expected):
                return False
            return bool(self.done.refused) or self._append(rows[half:], self.done.token or NO_STREAM)
        first = expected is NO_STREAM
        if isinstance(outcome, Appended) and not outcome.replayed:
            if first:
                self.writer.likely_there = False
            self.done.written += len(rows)
            self.done.token = outcome.token
            if self.writer.dry:  # an update costs its whole page, which the dry-run store lacks
                self.done.units += max(outcome.capacity.write, write_units(outcome.token.size))
            return True
        if isinstance(outcome, Conflict) and outcome.deleted:
            return self._refuse("was deleted in the store and takes no more events")
        if first:
            self.writer.likely_there = True
        return False


def recorded(stream: str, index: int, event: Event) -> Recorded:
    """Make the stored form of an event, for comparison with what the store has."""
    return Recorded(
        stream=stream,
        index=index,
        type=event.type,
        data=event.data,
        meta=event.meta,
        timestamp=event.timestamp or "",
        correlation_id=event.correlation_id,
        causation_id=event.causation_id,
        tags=tuple(sorted(event.tags)),
        id=event.id or "",
    )


# Dry runs: a store that only counts what an import would cost, before there is a table.


class _Nowhere:
    """Bucket for large bodies that accepts everything and keeps nothing."""

    def put(self, claim: Claim, content: bytes) -> None:
        """Discard a body."""

    def get(self, claim: Claim) -> bytes:
        """Raise `MissingBody`, since nothing is kept."""
        raise MissingBody(claim.key)

    def keep(self, claim: Claim) -> bool:  # noqa: ARG002  as `Bodies` has it
        """Whether the bucket has a body: never."""
        return False


def make_dry_run_writer() -> HistoryWriter:
    """Make a dry-run writer to a store that accepts everything and always reads as empty."""
    driver = Driver(execute=_answer_as_empty, meter=Meter())
    store = streams_of(Settings.of(**{layout_named(NATIVE).table: "nowhere"}), driver, codec_of(_Nowhere()))
    return HistoryWriter(store, dry=True)


def _answer_as_empty(op: Op) -> Reply:
    """Answer an operation as an empty store does that accepts everything."""
    match op:
        case Get():
            return Found(item=None)
        case TransactGet(keys=keys):
            return Together(items=(None,) * len(keys))
        case BatchGet() | Query() | Scan():
            return Items(items=())
        case _:
            return Done(units=units(op, lambda *_: None))


# Worker processes that write the batches of one reading process: encoding and sending take more CPU than reading does.
# The reading process keeps order, ledger and pace, as it does without workers. A worker gets a batch, returns its
# result, and ends with the reading process.

_WRITER: Final[list[HistoryWriter]] = []
"""Writer of this worker process."""


@dataclass(slots=True, kw_only=True)
class SideBySideWriter(HistoryWriter):
    """Writer that has its batches written by worker processes, as many at once as there are workers.

    Attributes:
        calls: pool of the worker processes
    """

    calls: ProcessPoolExecutor = field(repr=False)

    def write(self, batch: StreamPart) -> PartWritten:
        """Write a batch's missing events in a worker process, wait for the pace, and return the result.

        An event that cannot be written is no error: the result says why.

        Raises:
            EpochalError: the store cannot be reached, or refuses everything.
        """
        rows = [replace(row, raw=None) for row in batch.rows]  # raw rows are not sent to the worker
        written = self.calls.submit(_write, replace(batch, rows=rows)).result()
        written.batch = batch
        self.pace.spend(written.units)
        return written


@contextmanager
def writing(writer: HistoryWriter, workers: int, opener: Callable[[], Streams]) -> Iterator[HistoryWriter]:
    """Yield a writer with the same pace that writes in worker processes, for the length of a block.

    Args:
        writer: writer of this process
        workers: number of worker processes
        opener: function with which each worker opens the store
    """
    with ProcessPoolExecutor(workers, get_context("spawn"), _begin, (opener,)) as calls:
        yield SideBySideWriter(writer.store, pace=writer.pace, calls=calls)


def _begin(opener: Callable[[], Streams]) -> None:
    """Prepare a worker process: open its store, and let it end with its parent."""
    end_with_parent()
    _WRITER.append(HistoryWriter(opener()))


def _write(batch: StreamPart) -> PartWritten:
    """Write a batch in a worker process, and return the result without the rows."""
    written = _WRITER[0].write(batch)
    written.batch = replace(batch, rows=())
    return written
