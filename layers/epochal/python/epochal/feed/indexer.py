"""The indexer: takes batches of stream records, and appends each partition's changes to the index at once.

It answers with the records that must come again: all of a partition that could not be written. What comes
twice is dropped by the index, and told to reactions again: whoever wrote it may have died before. A record that can
never be indexed is set aside with its cause, in a stream of its own, and its neighbours go on; so is a record whose
stream has a gap that its corrupt store cannot fill.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, TypeVar

from epochal.codec.bodies import Encoded, encode
from epochal.errors import CorruptData, EpochalError, InvalidInput, Unavailable
from epochal.index.checkpoints import BEGINNING, MAX_KEY_BYTES, Checkpoint, mark_name, poison_stream
from epochal.index.entries import MAX_ENTRY_BYTES
from epochal.index.epochs import STANDARD, EpochLimits, register
from epochal.index.ingestion import Indexing, Ingested, Partition, Times, no_times
from epochal.index.tip import load_tip
from epochal.index.tip_append import Ids, append_once, batch_of
from epochal.layout.changes import Change, Span, Touched
from epochal.layout.healing import Heal
from epochal.layout.key_records import KeyRecord, lower, remember
from epochal.layout.registry import base_of, head_key, layouts_in
from epochal.layout.source import Source
from epochal.layout.streams import EncodedEvent
from epochal.lazy_dataclasses import dataclass, field
from epochal.model.moments import Ticks, parse_time, unix_seconds
from epochal.model.stream_names import is_fed
from epochal.model.versions import version_of
from epochal.plan.ops import Steps
from epochal.plan.values import AttributeValue, Item, item_size
from epochal.settings import Settings
from epochal.store.driver import Driver

if TYPE_CHECKING:
    from mypy_boto3_sns.client import SNSClient
    from mypy_boto3_sns.type_defs import PublishBatchRequestEntryTypeDef


S = TypeVar("S")
T = TypeVar("T")


def nobody(_positions: Mapping[int, Checkpoint]) -> None:
    """Publish nothing: the default if no reaction is to be notified."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexWriter:
    """Writes to the epochs of partitions, and keeps what it has read of them between calls.

    Attributes:
        driver: runs requests on the index and on the sources' tables.
        index_table: table of epochs, marks and the series.
        limits: when an epoch closes; the same for all who write to one index.
        now: returns nanoseconds since 1970.
        fresh: returns random bytes.
        publish: notifies reactions of the positions of partitions.
    """

    driver: Driver
    index_table: str
    limits: EpochLimits = STANDARD
    now: Callable[[], int] = time.time_ns
    fresh: Callable[[int], bytes] = os.urandom
    publish: Callable[[Mapping[int, Checkpoint]], object] = nobody
    _held: dict[int, Partition] = field(default_factory=dict)
    _told: dict[int, Checkpoint] = field(default_factory=dict)
    _untold: dict[int, Checkpoint] = field(default_factory=dict)

    def ingest(self, heal: Heal, partition: int, changes: list[Change], times: Times = no_times) -> Ingested:
        """Index the changes of a partition; raise `CorruptData` if its newest epochs cannot be read."""
        indexing = Indexing(
            table=self.index_table, heal=heal, ids=self.ids, limits=self.limits, pause=self._pause
        )
        ingested = self.on_partition(partition, partial(indexing.ingest, times=times), changes)
        position = self._held[partition].position
        if self._told.get(partition, BEGINNING) != position:
            self._untold[partition] = position
        return ingested

    def tell(self) -> int:
        """Notify reactions of partitions that have moved; return how many there were.

        Another process may have written the entries and died before it notified anyone. What cannot be published is
        published the next time.
        """
        told = dict(self._untold)
        if told:
            self.publish(told)
            self._told.update(told)
            self._untold.clear()
        return len(told)

    def on_partition(self, number: int, steps: Callable[[Partition, list[S]], Steps[T]], given: list[S]) -> T:
        """Run steps on the cached state of a partition; after an error the state is read anew."""
        held = self._held.pop(number, None) or Partition(number=number)
        outcome = self.driver.run(steps(held, given))
        self._held[number] = held
        return outcome

    def ids(self) -> Ids:
        """Draw the identity of a write to the index."""
        return Ids.drawn(self.now(), self.fresh)

    def _pause(self, longest: float) -> bool:
        """Wait for a random part of so many seconds (full jitter); return whether there was a wait."""
        if longest:
            self.driver.sleep(longest * self.driver.luck())
        return longest > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A change of an item of a table: its new image, and its place in the table's change stream.

    Attributes:
        table: name of the table.
        sequence_number: place in the change stream.
        image: the item after the change.
        change: id of the change, if the change stream may have it twice; else empty.
    """

    table: str
    sequence_number: str
    image: Item
    change: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The result of indexing a batch.

    Attributes:
        by_partition: what was indexed, of partitions that could be indexed.
        failed: sequence numbers of the records to be delivered again.
        set_aside: number of records set aside now, not counting those that had been before.
        told: number of partitions of which reactions were notified.
        untold: why they were not notified.
        errors: why records failed.
        failing: by source, the first record that failed, by its sequence number, and why.
    """

    by_partition: dict[int, Ingested]
    failed: tuple[str, ...]
    set_aside: int
    told: int = 0
    untold: Exception | None = None
    errors: tuple[EpochalError, ...] = ()
    failing: Mapping[str, tuple[str, EpochalError]] = field(default_factory=dict)


@dataclass(slots=True)
class _Outcome:
    """Collects the results of a batch for its report."""

    by_partition: dict[int, Ingested] = field(default_factory=dict)
    failed: list[str] = field(default_factory=list)
    set_aside: int = 0
    told: int = 0
    untold: Exception | None = None
    errors: list[EpochalError] = field(default_factory=list)
    failing: dict[str, tuple[str, EpochalError]] = field(default_factory=dict)

    def fail(self, source: Source, records: Iterable[Record], error: EpochalError) -> None:
        """Note that records of a source failed, and why."""
        numbers = [record.sequence_number for record in records]
        self.failed += numbers
        self.errors.append(error)
        self.failing.setdefault(source.name, (numbers[0], error))

    def report(self) -> Report:
        """Build the report."""
        return Report(
            by_partition=self.by_partition,
            failed=tuple(self.failed),
            set_aside=self.set_aside,
            told=self.told,
            untold=self.untold,
            errors=tuple(self.errors),
            failing=self.failing,
        )


@dataclass(slots=True, kw_only=True)
class _Batch:
    """The changes of one partition in a batch of records."""

    source: Source
    changes: list[tuple[Record, Change]] = field(default_factory=list)

    def times(self) -> dict[tuple[str, int], Ticks]:
        """Return the times of the appends in the batch, by stream and next index."""
        made = (
            (change, self.source.written(record.image))
            for record, change in self.changes
            if isinstance(change, Span)
        )
        return {(change.stream, change.next): time for change, time in made if time is not None}


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexer(IndexWriter):
    """Indexes the changes that stream records report.

    Attributes:
        sources: sources whose records come here.
    """

    sources: tuple[Source, ...]

    def register(self) -> None:
        """Record the sources' numbers of partitions in the index, once per process.

        Raises:
            InvalidInput: the index has another number on record; changing it means a rebuild.
        """
        counts = {source.name: source.partitions for source in self.sources}
        recorded = self.driver.run(register(self.index_table, counts, self.ids()))
        for source in self.sources:
            if recorded[source.name] != source.partitions:
                rule = f"the index has {recorded[source.name]} on record; another number needs a rebuild"
                raise InvalidInput(source.setting, rule)

    def index(self, records: Iterable[Record]) -> Report:
        """Index a batch of records in order; return what was indexed and which records must come again.

        Raises:
            InvalidInput: a record is of a table that is no source's.
        """
        outcome = _Outcome()
        batches: dict[int, _Batch] = {}
        given = list(records)
        for record in given:
            source = self._source(record.table)
            try:
                change = source.appended(record.image)
                if change is None or not is_fed(change.stream):
                    continue
                number = _partition(source, change.stream)
            except CorruptData as cause:
                self._set_aside(source, record, cause, outcome)
            else:
                batches.setdefault(number, _Batch(source=source)).changes.append((record, change))
        for number, batch in batches.items():
            self._index_partition(number, batch, outcome)
        self._tell(given, outcome)
        return outcome.report()

    def _tell(self, records: Iterable[Record], outcome: _Outcome) -> None:
        """Notify reactions; if that fails, have the records delivered again if they added anything.

        Then nothing is new, and the index does not wait for a topic that is unavailable.
        """
        try:
            outcome.told = self.tell()
        except Exception as error:  # noqa: BLE001  # whatever a client raises, the index is written
            outcome.untold = error
            if any(each.events or each.removals for each in outcome.by_partition.values()):
                outcome.failed = [record.sequence_number for record in records]

    def index_now(self, table: str, image: Item) -> Ingested | None:
        """Index one image and raise its error instead of setting it aside; return None if it adds nothing.

        Raises:
            CorruptData: it is malformed, or its stream cannot be healed.
        """
        source = self._source(table)
        change = source.appended(image)
        if change is None or not is_fed(change.stream):
            return None
        ingested = self.ingest(source.heal, _partition(source, change.stream), [change])
        if change.stream in ingested.unhealed:
            raise ingested.unhealed[change.stream].cause
        return ingested

    def _source(self, table: str) -> Source:
        """Return the source of a table; raise `InvalidInput` if it is none of this indexer's."""
        for source in self.sources:
            if source.table == table:
                return source
        raise InvalidInput("table", f"{table!r} is the table of no source of this indexer")

    def _index_partition(self, number: int, batch: _Batch, outcome: _Outcome) -> None:
        """Index the changes of one partition; set aside records whose streams could not be read."""
        try:
            changes = [change for _, change in batch.changes]
            ingested = self.ingest(batch.source.heal, number, changes, batch.times)
        except EpochalError as error:
            outcome.fail(batch.source, (record for record, _ in batch.changes), error)
            return
        outcome.by_partition[number] = ingested
        for record, change in batch.changes:
            unhealed = ingested.unhealed.get(change.stream)
            if unhealed is not None and (isinstance(change, Touched) or change.next > unhealed.index):
                self._set_aside(batch.source, record, unhealed.cause, outcome)

    def _set_aside(self, source: Source, record: Record, cause: Exception, outcome: _Outcome) -> None:
        """Store a record that cannot be indexed; if even that fails, have it delivered again."""
        poison = UnreadableRecord(
            source=source.name,
            sequence_number=record.change or record.sequence_number,
            image=record.image,
            cause=cause,
        )
        steps = set_aside(self.index_table, poison, self.ids())
        try:
            outcome.set_aside += self.driver.run(steps)
        except EpochalError as error:
            outcome.fail(source, [record], error)


def _partition(source: Source, stream: str) -> int:
    """Return a stream's partition; raise `CorruptData` if its name is too long for a mark."""
    number = source.partition_of(stream)
    if len(mark_name(number, stream).encode()) > MAX_KEY_BYTES:
        raise CorruptData("the name of the stream is so long that it could have no mark")
    return number


# Records that can never be indexed: kept once, with what is wrong with them, so that their neighbours go on.
#
# They are events of a stream of the index, one for each source. A record that is delivered again has the same append
# id and is found. This outlives the code: FORMATS §4.

SET_ASIDE: Final = "SetAside"


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableRecord:
    """A record of a source that cannot be indexed, and why."""

    source: str
    sequence_number: str
    image: Item
    cause: Exception


def set_aside(table: str, poison: UnreadableRecord, ids: Ids) -> Steps[bool]:
    """Store a record that cannot be indexed, once; return False if it had been stored before."""
    stream = poison_stream(base_of(poison.source))
    batch = batch_of(
        stream,
        [EncodedEvent(type=SET_ASIDE, data=_body(poison), timestamp=ids.timestamp)],
        etag=ids.etag,
        append_id=hashlib.sha256(poison.sequence_number.encode()).digest()[:16],
        keyed=True,
    )
    key = KeyRecord.of(stream, poison.sequence_number, unix_seconds(parse_time(ids.timestamp)))
    tip = yield from load_tip(table, stream)
    # After the Tip, so that what it says covers every try that the Tip may have in it.
    seen = yield from remember(table, key, version_of(tip))
    if seen is None:
        return (yield from append_once(table, batch, tip, version_of(tip)))
    seen = yield from lower(table, key, version_of(tip), seen)
    return (yield from append_once(table, batch, tip, seen.first))


def _body(poison: UnreadableRecord) -> Encoded:
    """Encode a record and its cause; only the image's keys if the image is too large for an entry."""
    cause, image = poison.cause, poison.image
    fields: dict[str, Any] = {"cause": f"{type(cause).__name__}: {cause}", "image": image}
    body = _encoded(fields)
    if len(body.data) <= MAX_ENTRY_BYTES:
        return body
    return _encoded({**fields, "image": head_key(poison.source, image), "omitted": item_size(image)})


def _encoded(fields: dict[str, Any]) -> Encoded:
    """Encode fields as a JSON body."""
    return encode(json.dumps(fields, default=_readable, separators=(",", ":")).encode())


def _readable(value: Any) -> str:
    """Write a binary value as hexadecimal text, since JSON has no form for it."""
    return value.hex() if isinstance(value, bytes) else repr(value)


# The sources that a deployment has: those of the layouts whose tables of heads its settings name.


def sources_of(settings: Settings) -> tuple[Source, ...]:
    """Return the source of each layout of a deployment."""
    return tuple(each.port.source(settings) for each in layouts_in(settings))


def indexer_of(settings: Settings, driver: Driver) -> Indexer:
    """Build the indexer of a deployment."""
    return Indexer(driver=driver, index_table=settings.index_table, sources=sources_of(settings))


# Records as the function receives them, to the images that it reads:
#
#     a table's stream    each change of an item once, in order
#     Kinesis             what DynamoDB sends there: new and old image, now and then twice, or after a later one
#
# Order is no condition: what the index has is dropped, what it lacks is read from the store. But reading costs, so a
# batch of Kinesis is put into the order in which the changes were made.

_A_SECOND: Final = {"MILLISECOND": 1_000, "MICROSECOND": 1_000_000}
"""Units of a change's time. One without a unit is from when there were milliseconds alone."""


def read_records(records: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """Convert the records of a Lambda event into changes with their new image; deletions are skipped.

    Binary values are base64 text in an event.

    Raises:
        InvalidInput: the table's stream carries no new images, so that nothing could ever be indexed.
    """
    sent = list(records)
    if sent and "kinesis" in sent[0]:
        yield from _of_kinesis([each["kinesis"] for each in sent])
        return
    for record in sent:
        change = record["dynamodb"]
        if record.get("eventName") == "REMOVE":
            continue
        if "NewImage" not in change:
            raise InvalidInput("StreamViewType", "must be one that carries new images")
        yield Record(
            table=table_of(record["eventSourceARN"]),
            sequence_number=change["SequenceNumber"],
            image=_image(change),
        )


def numbers_of(records: Iterable[dict[str, Any]]) -> list[str]:
    """Return the sequence numbers of records, by which an answer names them."""
    return [
        each["kinesis"]["sequenceNumber"] if "kinesis" in each else each["dynamodb"]["SequenceNumber"]
        for each in records
    ]


def table_of(arn: str) -> str:
    """Extract the table's name from the ARN of its change stream: `arn:...:table/<name>/stream/<label>`."""
    return arn.partition(":table/")[2].partition("/")[0]


def read_value(value: dict[str, Any], binary: Callable[[str], bytes] = base64.b64decode) -> AttributeValue:
    """Convert a value in the JSON of events and exports, where binaries are text, base64 by default."""
    ((kind, content),) = value.items()
    match kind:
        case "B":
            return {"B": binary(content) if isinstance(content, str) else content}
        case "BS":
            return {"BS": [read_value({"B": each}, binary)["B"] for each in content]}
        case "L":
            return {"L": [read_value(each, binary) for each in content]}
        case "M":
            return {"M": {name: read_value(each, binary) for name, each in content.items()}}
        case _:
            return {kind: content}


def _of_kinesis(records: Iterable[dict[str, Any]]) -> Iterator[Record]:
    """Convert records from Kinesis into changes, sorted by time as far as the times tell."""
    changes = [(json.loads(base64.b64decode(each["data"])), each["sequenceNumber"]) for each in records]
    changes.sort(key=lambda each: _made(each[0]["dynamodb"]))
    for record, number in changes:
        change = record["dynamodb"]
        if record["eventName"] != "REMOVE":
            yield Record(
                table=record["tableName"], sequence_number=number, image=_image(change), change=_same(change)
            )


def _made(change: dict[str, Any]) -> float:
    """Return when a change was made, in seconds."""
    unit = change.get("ApproximateCreationDateTimePrecision", "MILLISECOND")
    return float(change["ApproximateCreationDateTime"]) / _A_SECOND[unit]


def _same(change: dict[str, Any]) -> str:
    """Return an id of a change that is the same if it comes twice: of the item and the time."""
    item = hashlib.sha256(json.dumps(change["Keys"], sort_keys=True).encode()).hexdigest()
    return f"{change['ApproximateCreationDateTime']}-{item[:32]}"


def _image(change: dict[str, Any]) -> dict[str, AttributeValue]:
    """Convert the new image of a change into an item."""
    return {name: read_value(value) for name, value in change["NewImage"].items()}


# Notices: which partitions of the index have moved, and how far, to an SNS FIFO topic (FORMATS §5).
#
# A notice is a wake-up, not data: one message for each partition, with its position. Its receiver reads the index.

AT_ONCE: Final = 10
"""Entries of one request, at most."""


def sent(to: str, things: Iterable[T], request: Callable[[list[T]], Any]) -> int:
    """Send entries to a topic or queue in batches; return how many, or raise `Unavailable` if one fails.

    Raises:
        Unavailable: one was not taken.
    """
    remaining, count = iter(things), 0
    while batch := list(islice(remaining, AT_ONCE)):
        if failed := request(batch).get("Failed"):
            raise Unavailable(f"{to} refused {len(failed)} of {len(batch)}: {failed[0]['Code']}")
        count += len(batch)
    return count


@dataclass(frozen=True, slots=True)
class Topic:
    """An SNS FIFO topic."""

    client: SNSClient
    arn: str

    def publish(self, positions: Mapping[int, Checkpoint]) -> int:
        """Publish the positions of partitions to the topic; return how many there were.

        Raises:
            Unavailable: an entry was not taken. All may be published again: the topic drops what it has had.
        """

        def request(batch: list[tuple[int, Checkpoint]]) -> Any:
            """Publish one batch of positions."""
            entries = [_entry(*each) for each in batch]
            return self.client.publish_batch(TopicArn=self.arn, PublishBatchRequestEntries=entries)

        return sent("the topic", sorted(positions.items()), request)


def _entry(number: int, checkpoint: Checkpoint) -> PublishBatchRequestEntryTypeDef:
    """Build the entry of a batch that publishes one partition's position."""
    partition, position = str(number), str(int(checkpoint))
    return {
        "Id": partition,
        "Message": position,
        "MessageAttributes": {
            "Partition": {"DataType": "String", "StringValue": partition},
            "Position": {"DataType": "String", "StringValue": position},
        },
        "MessageGroupId": partition,
        # With the separator, or 1 and 23 would look like 12 and 3.
        "MessageDeduplicationId": f"{partition}-{position}",
    }
