"""The store: aggregates with snapshots, on tables that event-store-adapter's libraries share.

`append` takes several events at once; `persist_event` and `persist_event_and_snapshot` are the libraries' own
calls. An append is one request, a replay two: the head, and the events after its snapshot.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from epochal.codec import json
from epochal.contrib.event_store_adapter import AdapterOptions
from epochal.contrib.event_store_adapter.append import append, base_of, check_form, made_under, read
from epochal.contrib.event_store_adapter.ids import AggregateId
from epochal.contrib.event_store_adapter.items import (
    KNOWN_VERSIONS,
    AggregateHead,
    JournalEvent,
    JournalSite,
    of_known_versions,
    site_of,
)
from epochal.contrib.event_store_adapter.model import (
    AggregateEvent,
    AggregateSnapshot,
    ExpectedLock,
    Lock,
    RecordedAggregateEvent,
)
from epochal.contrib.event_store_adapter.outcomes import AggregateAppended, AggregateConflict, Replay
from epochal.contrib.event_store_adapter.reading import EventRange, Via, events
from epochal.contrib.event_store_adapter.retention import Retention, retire
from epochal.contrib.event_store_adapter.serializers import Form
from epochal.contrib.event_store_adapter.transaction import AggregateBatch, Base, IdempotencyKey
from epochal.deployment import Deployment
from epochal.errors import CorruptData, EpochalError, InvalidInput, TooLarge, WrongExpectedVersion, WrongTable
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.expected_version import ANY, NO_STREAM, AtVersion, Expected
from epochal.model.kinds import must_be, must_be_list, must_be_text, must_be_whole
from epochal.model.moments import format_ticks, from_unix_nanoseconds, time_or_now
from epochal.model.stream_names import MAX_NAME_BYTES, no_step
from epochal.plan.ops import Steps
from epochal.settings import Settings
from epochal.store.driver import Driver, Meter
from epochal.store.outcomes import describe_expected

MAX_PAYLOAD_BYTES: Final = 390_000
"""Bytes of one payload: an item holds 400 KB, and other libraries could not read a claim check."""

MAX_TYPE_BYTES: Final = 512

MAX_KEY_BYTES: Final = 4_096
"""Bytes of an idempotency key. Only its hash is stored."""

DECIDED: Final = b"a decision".ljust(16, b"\0")
"""Value in place of a digest of contents in the record of a decision's key."""

_NUMBER_NAMES: Final = (
    "seq_nr",
    "sequenceNumber",
    "seqNr",
    "sequence_number",
    "SeqNr",
    "SequenceNumber",
    "seq_nr_counter",
)


R = TypeVar("R")


def run_on_tables(driver: Driver, steps: Steps[R]) -> R:
    """Run steps on tables of aggregates and return the result; explain the error of a table of other keys.

    Raises:
        WrongTable: a table has other keys, as those of newer versions have.
    """
    try:
        return driver.run(steps)
    except WrongTable as error:
        advice = f"it may belong to a version of event-store-adapter newer than those supported here: {KNOWN_VERSIONS}"
        raise WrongTable(error.table, error.wanted, error.found, advice) from error


def aggregates_of(settings: Settings, driver: Driver) -> AggregateStore:
    """Make the store of aggregates of these settings, with retention of snapshots if they say so."""
    chosen, retention = settings.of_plugin(AdapterOptions), None
    if chosen.snapshot_copies:
        seconds = chosen.snapshot_ttl_days * 24 * 60 * 60
        retention = Retention(keep=chosen.snapshot_copies, ttl_seconds=seconds or None)
    return AggregateStore(driver=driver, site=site_of(settings), retention=retention)


def opened(deployment: Deployment) -> AggregateStore:
    """Open the store of aggregates of a deployment."""
    return aggregates_of(deployment.settings, deployment.driver)


def number_in(data: bytes) -> int | None:
    """Find the number of the last folded event in another library's JSON snapshot; None if unnamed.

    It is searched under the names that the libraries use for it.
    """
    try:
        state: Any = json.loads(data)
    except ValueError:
        return None
    if not isinstance(state, dict):
        return None
    numbers = (state[name] for name in _NUMBER_NAMES if isinstance(state.get(name), int))
    return next(numbers, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregateStore:
    """Appends, reads and replays aggregates with snapshots, in a journal and a snapshot table.

    Attributes:
        driver: the driver that sends requests to DynamoDB.
        site: names of the tables, the way keys are made, the declared types, and the format of payloads, which belong
            together.
        retention: how many copies of an aggregate's snapshots are kept, and how long; None keeps the latest snapshot
            alone.
        via: where events are read from: `table`, or `index` for the journal's index, as event-store-adapter does.
        number_of: function that finds the last folded event's number in the data of a snapshot that another library
            wrote.
        now: function that returns the time in nanoseconds since 1970.
        fresh: function that returns a given number of random bytes, for append ids.

    Besides what a method names, any raises `InvalidInput` for a malformed argument, `Unavailable`, `MissingTable`,
    `Refused` and `CorruptData`.
    """

    driver: Driver
    site: JournalSite
    retention: Retention | None = None
    via: Via = "table"
    number_of: Callable[[bytes], int | None] = number_in
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom

    def append(
        self,
        aggregate: AggregateId,
        new: Sequence[AggregateEvent],
        *,
        snapshot: bytes | None = None,
        expected: ExpectedLock = ANY,
        idempotency_key: str | None = None,
    ) -> AggregateAppended:
        """Append events, and the snapshot if given, to an aggregate in one transaction; raise on a conflict.

        Args:
            aggregate: id of the aggregate.
            new: events to append, at least one; with the head, a kept copy and the record of a key at most 100 items
                and 4 MB.
            snapshot: state after these events, UTF-8 JSON; an aggregate's first append needs it, later None leaves the
                snapshot as it is.
            expected: expected version: a `Lock`, which makes this one request, a lock's version, or any, no or some
                aggregate.
            idempotency_key: key of one append to its aggregate: for 24 hours, repeats of the call with the same key,
                events and snapshot are answered like the first, whatever they expect and from wherever they come.

        Raises:
            InvalidInput: no events, a first append without snapshot, a lock whose number does not join, a key used for
                other contents.
            TooLarge: a payload or the transaction is too large.
            ConflictError: the aggregate is not what was expected; carries an `AggregateConflict`.
        """
        outcome = self.try_append(
            aggregate, new, snapshot=snapshot, expected=expected, idempotency_key=idempotency_key
        )
        if isinstance(outcome, AggregateAppended):
            return outcome
        raise WrongExpectedVersion(str(aggregate), _describe_expected(expected), outcome.version, outcome)

    def try_append(
        self,
        aggregate: AggregateId,
        new: Sequence[AggregateEvent],
        *,
        snapshot: bytes | None = None,
        expected: ExpectedLock = ANY,
        idempotency_key: str | None = None,
        decided: bool = False,
        made_with: str = "",
    ) -> AggregateAppended | AggregateConflict:
        """Append events like `append`, but return a conflict instead of raising it.

        Args:
            aggregate, new, snapshot, expected, idempotency_key: as for `append`.
            decided: whether the append is a decision: a repeat under its key may then have other contents.
            made_with: class and version that the snapshot was made with, which is stored beside it; empty if unknown.
        """
        self._check_id(aggregate)
        no_step(aggregate.type, "aggregate.type")
        no_step(aggregate.value, "aggregate.value")
        must_be_list(AggregateEvent, new, "events")
        must_be((bytes, type(None)), snapshot, "snapshot", "bytes")
        must_be(
            (Expected, AtVersion, Lock),
            expected,
            "expected",
            "ANY, NO_STREAM, STREAM_EXISTS, AtVersion(version=…) or a Lock",
        )
        if isinstance(expected, Lock):
            must_be_whole(expected.version, "expected.version", 1)
            must_be_whole(expected.seq_nr, "expected.seq_nr")
        if not new:
            raise InvalidInput("events", "must not be empty")
        nanoseconds, serializer = self.now(), self.site.serializer
        batch = AggregateBatch(
            aggregate=aggregate,
            events=_stored(serializer.events, new, format_ticks(from_unix_nanoseconds(nanoseconds))),
            payload=None
            if snapshot is None
            else _payload(serializer.snapshots, aggregate.type, snapshot, "snapshot"),
            append_id=self.fresh(16),
            now=nanoseconds // 1_000_000,
            made_with=made_with,
            keep_copy=self.retention is not None,
            key=None
            if idempotency_key is None
            else _key(
                aggregate,
                idempotency_key,
                DECIDED if decided else _digest(new, snapshot),
                nanoseconds,
            ),
        )
        store, meter = self.metered()
        with meter:
            result = run_on_tables(store.driver, append(self.site, batch, expected))
        if isinstance(result, AggregateConflict):
            return replace(result, capacity=meter.capacity)
        error = None if result.replayed else store._retire_after(aggregate, batch)  # noqa: SLF001  its own
        return replace(result, retention_error=error, capacity=meter.capacity)

    def decided(self, aggregate: AggregateId, idempotency_key: str) -> AggregateAppended | None:
        """Find the append that a decision made under an idempotency key; None if there is none.

        Args:
            aggregate: id of the aggregate.
            idempotency_key: key of the decision.

        Raises:
            InvalidInput: the key was used for an append that is no decision.
        """
        self._check_id(aggregate)
        key = _key(aggregate, idempotency_key, DECIDED, self.now())
        earlier = run_on_tables(self.driver, made_under(self.site, aggregate, key))
        return None if earlier is None else replace(earlier, replayed=True)

    def persist_event(self, aggregate: AggregateId, event: AggregateEvent, lock: Lock) -> AggregateAppended:
        """Append one event to an aggregate at `lock`, without a new snapshot; raise on a conflict.

        Args:
            aggregate: id of the aggregate.
            event: event to append.
            lock: lock that the aggregate was read with.
        """
        return self.append(aggregate, (event,), expected=lock)

    def persist_event_and_snapshot(
        self, aggregate: AggregateId, event: AggregateEvent, snapshot: bytes, lock: Lock | None = None
    ) -> AggregateAppended:
        """Append one event at `lock`, or as the first, with a snapshot that includes it; raise on a conflict.

        Without a lock, it is the aggregate's first event.

        Args:
            aggregate: id of the aggregate.
            event: event to append.
            snapshot: snapshot of the state after the event.
            lock: lock that the aggregate was read with; None for a new aggregate.
        """
        return self.append(aggregate, (event,), snapshot=snapshot, expected=lock or NO_STREAM)

    def lock(self, aggregate: AggregateId) -> Lock | None:
        """Read an aggregate's version and last event number, strongly consistent; None if it does not exist.

        Args:
            aggregate: id of the aggregate.
        """
        head = self._head(aggregate)
        check_form(self.site, head)
        return self._base(head, aggregate).lock

    def latest_snapshot(self, aggregate: AggregateId) -> AggregateSnapshot | None:
        """Read an aggregate's latest snapshot, strongly consistent; None if there is no such aggregate.

        Args:
            aggregate: id of the aggregate.
        """
        head = self._head(aggregate)
        return None if head is None else self._held(head)

    def replay(self, aggregate: AggregateId) -> Replay | None:
        """Read an aggregate's latest snapshot and all events after it; None if there is no such aggregate.

        Args:
            aggregate: id of the aggregate.
        """
        store, meter = self.metered()
        with meter:
            head = store._head(aggregate)  # noqa: SLF001  its own, as those below
            if head is None:
                return None
            snapshot = store._held(head)  # noqa: SLF001
            replayed = store._replayed(snapshot, snapshot.seq_nr)  # noqa: SLF001
        return replace(replayed, capacity=meter.capacity)

    def since(self, head: AggregateHead, seq_nr: int) -> Replay:
        """Read the events after `seq_nr`, and return them with the snapshot in `head`, which a conflict has.

        One request if the events are not many, and none if there are none: the head is not read again.

        Args:
            head: head that came with the refusal.
            seq_nr: number of the last event that the caller has.
        """
        store, meter = self.metered()
        with meter:
            replayed = store._replayed(store._held(head), seq_nr)  # noqa: SLF001  its own
        return replace(replayed, capacity=meter.capacity)

    def events_after(
        self, aggregate: AggregateId, seq_nr: int = 0, *, limit: int | None = None
    ) -> list[RecordedAggregateEvent]:
        """Read an aggregate's events with numbers greater than `seq_nr`, in order, at most `limit`.

        Args:
            aggregate: id of the aggregate.
            seq_nr: number of an event, from 1; 0 for all events.
            limit: number of events at most; None for all.
        """
        self._check_id(aggregate)
        must_be_whole(seq_nr, "seq_nr")
        if limit is not None:
            must_be_whole(limit, "limit", 1)
        total = self._base(self._head(aggregate), aggregate).first - 1
        return self._events(aggregate, seq_nr, total if limit is None else min(total, seq_nr + limit), total)

    def retire(self, aggregate: AggregateId) -> int:
        """Delete up to 100 snapshot copies beyond `retention`, or set them to expire; return how many.

        Call it again until it returns 0.

        Args:
            aggregate: id of the aggregate.

        Raises:
            InvalidInput: the store has no retention.
        """
        self._check_id(aggregate)
        if self.retention is None:
            raise InvalidInput("retention", "is turned off")
        seconds = self.now() // 1_000_000_000
        return run_on_tables(self.driver, retire(self.site, aggregate, self.retention, seconds))

    def metered(self) -> tuple[AggregateStore, Meter]:
        """Return a copy of the store, and a meter that adds up the DynamoDB capacity that the copy consumes.

        The meter serves calls whose results carry no capacity, and several calls at once. The meter of this store
        counts it, too.
        """
        driver, meter = self.driver.metered()
        return replace(self, driver=driver), meter

    def recorded(self, aggregate: AggregateId, event: JournalEvent) -> RecordedAggregateEvent:
        """Convert an event as the journal stores it into a `RecordedAggregateEvent`, with its payload decoded.

        Args:
            aggregate: id of the aggregate.
            event: event as the journal stores it.

        Raises:
            CorruptData: the serializer cannot read the payload.
        """
        kind, data = of_known_versions(event.unknown, lambda: self.site.serializer.event(event.payload))
        return RecordedAggregateEvent(
            aggregate=aggregate,
            seq_nr=event.seq_nr,
            type=event.event_type or kind,
            data=data,
            occurred_at=event.occurred_at,
        )

    def _check_id(self, aggregate: AggregateId) -> None:
        """Refuse a malformed id of an aggregate, or one that reads back as another aggregate."""
        must_be(AggregateId, aggregate, "aggregate", "an AggregateId, as aggregate_id(type, value) returns")
        for name, text in (("type", aggregate.type), ("value", aggregate.value)):
            must_be_text(text, MAX_NAME_BYTES, f"aggregate.{name}")
        self.site.types.check(aggregate)

    def _head(self, aggregate: AggregateId) -> AggregateHead | None:
        """Check an aggregate's id and read its head."""
        self._check_id(aggregate)
        return run_on_tables(self.driver, read(self.site, aggregate))

    def _base(self, head: AggregateHead | None, aggregate: AggregateId) -> Base:
        """Return the state that an append on this head would build on."""
        return run_on_tables(self.driver, base_of(self.site, head, aggregate))

    def _held(self, head: AggregateHead) -> AggregateSnapshot:
        """Decode the snapshot in a head, with its lock; raise `CorruptData` if it cannot be used.

        Raises:
            CorruptData: the snapshot cannot be read, names no event number, or is ahead of its events.
        """
        aggregate = head.aggregate
        lock = self._base(head, aggregate).lock or Lock(version=head.version, seq_nr=0)
        data = of_known_versions(head.unknown, lambda: self.site.serializer.snapshot(head.payload))
        seq_nr = self._folded(head, data)
        if seq_nr > lock.seq_nr:
            raise CorruptData(f"{aggregate}: its snapshot is ahead of its events")
        return AggregateSnapshot(
            aggregate=aggregate, data=data, seq_nr=seq_nr, lock=lock, made_with=head.made_with
        )

    def _replayed(self, snapshot: AggregateSnapshot, seq_nr: int) -> Replay:
        """Read the events after `seq_nr` up to the snapshot's lock, and put them beside the snapshot."""
        last = snapshot.lock.seq_nr
        return Replay(snapshot=snapshot, events=tuple(self._events(snapshot.aggregate, seq_nr, last, last)))

    def _events(
        self, aggregate: AggregateId, seq_nr: int, last: int, total: int
    ) -> list[RecordedAggregateEvent]:
        """Read events `seq_nr + 1` to `last` of an aggregate that has `total` events."""
        numbers = EventRange(aggregate=aggregate, first=seq_nr + 1, last=last, total=total)
        return [
            self.recorded(aggregate, event)
            for event in run_on_tables(self.driver, events(self.site, numbers, self.via))
        ]

    def _folded(self, head: AggregateHead, data: bytes) -> int:
        """Return the number of the last event in a snapshot; raise `CorruptData` if nothing tells it.

        If another library wrote the snapshot, its state must name the number.

        Raises:
            CorruptData: the state names no number.
        """
        number = head.payload_seq_nr if head.payload_seq_nr is not None else self.number_of(data)
        if number is None:
            raise CorruptData(
                f"{head.aggregate}: another library wrote its snapshot, and `number_of` finds no number in it"
            )
        return number

    def _retire_after(self, aggregate: AggregateId, batch: AggregateBatch) -> EpochalError | None:
        """After an append with a snapshot, delete old copies or set them to expire; return an error or None.

        The append is committed whatever happens here.
        """
        if self.retention is None or batch.payload is None:
            return None
        try:
            self.retire(aggregate)
        except EpochalError as error:
            return error
        return None


def _describe_expected(expected: ExpectedLock) -> str:
    """Describe a writer's expected version in words, for error messages."""
    if isinstance(expected, Lock):
        return f"version {expected.version} with last event {expected.seq_nr}"
    return describe_expected(expected)


def _stored(form: Form, new: Sequence[AggregateEvent], now: str) -> tuple[JournalEvent, ...]:
    """Encode events as journal events without numbers, and check their types, payloads and times.

    An event without a time gets `now`.
    """
    for position, event in enumerate(new):
        must_be_text(event.type, MAX_TYPE_BYTES, f"events[{position}].type")
    return tuple(
        JournalEvent(
            seq_nr=0,
            payload=_payload(form, event.type, event.data, f"events[{position}].data"),
            occurred_at=time_or_now(event.occurred_at, now, f"events[{position}].occurred_at"),
            event_type=event.type,
        )
        for position, event in enumerate(new)
    )


def _key(aggregate: AggregateId, key: str, contents: bytes, now: int) -> IdempotencyKey:
    """Make the record of a caller's idempotency key, and check the key's length."""
    must_be_text(key, MAX_KEY_BYTES, "idempotency_key")
    return IdempotencyKey.of(aggregate, key, contents, now // 1_000_000_000)


def _digest(new: Sequence[AggregateEvent], snapshot: bytes | None) -> bytes:
    """Return a digest of events and snapshot, which tells a repeat from a key used twice."""
    digest = hashlib.sha256()
    parts = [part for event in new for part in (event.type.encode(), event.data, event.occurred_at)]
    for part in (*parts, snapshot):
        data = part.encode() if isinstance(part, str) else part
        digest.update(b"-" if data is None else b"%d:" % len(data) + data)
    return digest.digest()[:16]


def _payload(form: Form, kind: str, data: bytes, field: str) -> bytes:
    """Make a payload of a type and its data; raise, naming `field`, if it does not fit or is too large.

    Raises:
        InvalidInput: the form cannot hold the data.
        TooLarge: the payload exceeds 390,000 bytes.
    """
    try:
        payload = form.write(kind, data)
    except InvalidInput as error:
        raise InvalidInput(field, error.rule) from error
    if len(payload) > MAX_PAYLOAD_BYTES:
        raise TooLarge(field, len(payload), MAX_PAYLOAD_BYTES)
    return payload
