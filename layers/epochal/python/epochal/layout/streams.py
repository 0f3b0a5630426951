"""The interface between the store and the layouts of named streams: heads, reads, batches and appends.

A stream has one head, which every append changes. A head says where the stream ends, carries its latest events and its
unfolds, and gives a token that makes the next append on it one request. Layouts keep these rules:

    append      all or nothing, and only once, even if responses are lost; on the known head, or on one that meets the
                expected version
    read        the head first; then all events in order, each once; pruned events are skipped, and the hole is shown
    prune       events below the low-water mark are gone for readers at once; items are deleted a part at a time
    etags       each write leaves a new one of 32 hex digits: a layout derives it from the write, or takes `Batch.etag`

Optional abilities, such as pruning, are protocols of their own.

Randomness and time come from the caller. All methods but `room`, `stand`, `moment_of_key` and `is_new` are plans
(DESIGN §3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    NamedTuple,
    Protocol,
    TypeAlias,
    TypeVar,
    runtime_checkable,
)

from epochal.codec.bodies import EMPTY, Encoded
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Recorded
from epochal.model.expected_version import ExpectedVersion, state_meets
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import Token
from epochal.plan.ops import Steps, TransactionWrite

if TYPE_CHECKING:
    from epochal.layout.queries import AppendCondition
    from epochal.layout.tag_streams import TagStreams
    from epochal.layout.tagged_batch import TaggedBatch

IDENTIFIED: Final = b"\x01\x00\x00"
"""What the label of an event with an id and no tags begins with; the 16 bytes of the id follow (FORMATS §8)."""


NEVER: Final = Ticks(0)
"""A moment before all stamps: the moment of a key that does not contain one."""


def id_in(label: bytes) -> str:
    """Return the id in the label of an event without tags, written as a UUID."""
    digits = label[len(IDENTIFIED) :].hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class EncodedEvent(NamedTuple):
    """An event with its bodies encoded.

    The first event of an append carries the append's id. An event with tags, or with an id that its caller chose, has
    a `label` that tells them; as the event is read, it has the append's `stamp`, too.

    A tuple, because a long read makes one of each event, and a frozen dataclass takes three times as long to make.
    """

    type: str
    data: Encoded
    timestamp: str
    meta: Encoded = EMPTY
    correlation_id: str | None = None
    causation_id: str | None = None
    append_id: bytes | None = None
    label: bytes = b""
    stamp: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedUnfold:
    """An unfold with its bodies encoded; `version` is the stream's version that it was made from."""

    version: int
    type: str
    data: Encoded
    meta: Encoded = EMPTY
    timestamp: str


class EventSpan(Protocol):
    """Consecutive events of a stream, decoded one at a time, so that a broken one affects no other."""

    @property
    def base(self) -> int:
        """Index of the first event."""

    @property
    def next(self) -> int:
        """Index after the last event."""

    def read(self, offset: int) -> EncodedEvent:
        """Decode the event at index `base + offset`.

        Raises:
            CorruptData: the event cannot be decoded.
        """

    def type(self, offset: int) -> str:
        """Return the type of the event at `base + offset`, as far as it is readable if the event is broken."""

    def timestamp(self, offset: int) -> str:
        """Return the timestamp of the event at `base + offset`, as far as it is readable."""


@runtime_checkable
class PlainSpan(Protocol):
    """The further methods of a span that can read uncompressed bodies without a codec."""

    def recorded(self, stream: str, offsets: range) -> list[Recorded] | None:
        """Return the events at these offsets; None if one needs a codec, is large or cannot be read."""

    def holds_large(self, offsets: range) -> bool:
        """Whether `read` may have to decompress something large for each of the events at these offsets."""


class Head(Protocol):
    """The head of a stream, as it was read."""

    @property
    def stream(self) -> str:
        """Name of the stream."""

    @property
    def version(self) -> int:
        """The stream's next index."""

    @property
    def etag(self) -> str | None:
        """Etag of the latest write; None where another library left none."""

    @property
    def low_water(self) -> int:
        """Index below which all events are pruned."""

    @property
    def deleted(self) -> bool:
        """Whether the stream takes no more events."""

    @property
    def span(self) -> EventSpan:
        """The events that the head carries, the last ones of the stream."""

    @property
    def earlier_spans(self) -> Sequence[EventSpan]:
        """Small events that came with the head and precede those that it carries, without gaps, oldest first."""

    def token(self) -> Token:
        """Return the token of this head, with which an append on exactly this head takes one request."""

    def read_unfolds(self) -> Sequence[EncodedUnfold]:
        """Decode the stream's unfolds, but not their bodies.

        Raises:
            CorruptData: one of them cannot be decoded.
        """


class ReadCursor(Protocol):
    """The position of a read in a stream; an immutable value that can be kept and resumed."""

    @property
    def head(self) -> Head:
        """The head that was read first; its low-water mark is raised if events turn out to be pruned."""

    @property
    def at(self) -> int:
        """Forward, the next index wanted; backward, the index after the next one wanted."""

    @property
    def forward(self) -> bool:
        """Whether the read goes forward."""

    @property
    def at_end(self) -> bool:
        """Whether nothing is left to read."""


H = TypeVar("H", bound=Head)
C = TypeVar("C", bound=ReadCursor)
S_co = TypeVar("S_co", bound=EventSpan, covariant=True)
H_co = TypeVar("H_co", bound=Head, covariant=True)
C_co = TypeVar("C_co", bound=ReadCursor, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart(Generic[S_co, C_co]):
    """A part of a read, and the cursor of the next part.

    Attributes:
        spans: spans of events in the order of reading, each itself oldest first.
        cursor: position at which the next part begins.
    """

    spans: tuple[S_co, ...]
    cursor: C_co


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The encoded events and unfolds of one append to one stream, written all or nothing.

    Attributes:
        stream: name of the stream.
        events: the events; none are needed where unfolds are given.
        unfolds: unfolds that replace the stored ones; None keeps those. Their versions are set once the index is known.
        etag: 32 random hex digits; the same for all retries of this append.
        append_id: 16 bytes; the first 8 identify the append, the others its contents.
        now: reading of the writer's clock.
        keyed: whether `append_id` stems from a caller's idempotency key, so that another process may have written it.
        dated: whether an event has a timestamp of its own that equals the writer's clock. A layout that dates events by
            another moment must keep it.
        above: moment of the key (`KeyedStreams.moment_of_key`).
    """

    stream: str
    events: tuple[EncodedEvent, ...]
    unfolds: tuple[EncodedUnfold, ...] | None = None
    etag: str
    append_id: bytes
    now: Ticks
    keyed: bool = False
    dated: bool = False
    above: Ticks = NEVER


DECIDED: Final = b"dec"
"""Bytes that replace the digest of contents in the append id of a decision, whose contents may differ between tries."""


def decision_id(whose: bytes, events: int) -> bytes:
    """Compute the append id of a decision from the first 8 bytes of `whose` and its number of events."""
    return whose[:8] + DECIDED + b"\0" + events.to_bytes(4, "big")


def decided_events(append_id: bytes) -> int | None:
    """Return the number of events of a decision, from its append id; None for another append's id."""
    return int.from_bytes(append_id[12:], "big") if append_id[8:11] == DECIDED else None


Also: TypeAlias = Sequence[TransactionWrite]
"""Writes that go with an append, to tables that are not the store's."""

Known: TypeAlias = H | Token | None
"""A head as a writer knows it: the whole head, its token, or None for a stream that does not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneProgress:
    """The progress of a prune: events below `low_water` are gone for readers.

    Attributes:
        low_water: index below which events are gone.
        deleted: number of items that were deleted.
        done: whether all items of these events are deleted.
    """

    low_water: int
    deleted: int
    done: bool


class StreamLayout(Protocol[H, C]):
    """A layout that stores named streams in the items of a table; it holds no state."""

    @property
    def name(self) -> str:
        """Name of the layout, as registered."""

    @property
    def compress_from(self) -> int:
        """Bytes from which on a body is compressed by itself; smaller ones may be compressed together."""

    @property
    def keeps_unfolds(self) -> bool:
        """Whether a stream has unfolds; where not, the store refuses appends with unfolds."""

    @property
    def keeps_ids(self) -> bool:
        """Whether an event without tags may have an id; where not, the store refuses such events."""

    def room(self, unfolds: Sequence[EncodedUnfold]) -> int:
        """Return the bytes that an append has for events beside these unfolds, all fields counted."""

    def append(
        self, table: str, batch: Batch, expected: ExpectedVersion, key: str | None = None
    ) -> Steps[Outcome]:
        """Append a batch if the stream has the expected version, retrying on newer heads; return the outcome.

        Args:
            key: idempotency key of a keyed batch, which is appended once within its stream, whatever version is
                expected later. Only `KeyedStreams` get a key.

        Raises:
            TooLarge: the events do not fit an item of their own.
            InvalidInput: the stream is full; the key was used for other contents.
        """

    def append_on(self, table: str, batch: Batch, known_head: Known[H]) -> Steps[Outcome]:
        """Append a batch on exactly the known head (None: no stream yet); else answer with a conflict.

        A keyed batch is that of a decision: it is looked for from the known head up to the head that comes back.
        """

    def load(
        self, table: str, stream: str, *, consistent: bool = True, whole: bool = False, recent: bool = False
    ) -> Steps[H | None]:
        """Read the head of a stream; None if there is no such stream.

        Args:
            consistent: False costs half, and may return an older head, or None though the stream exists by now. An
                append on a head that is no longer current is refused.
            whole: whether all events are wanted. A layout may read the first of them with the head, which then has
                them for `stand`.
            recent: whether the newest events are wanted. A layout may read some of them with the head, in the same
                request, which then has them as `earlier_spans` and for `stand`.
        """

    def begin(
        self, table: str, stream: str, start: int | None, *, forward: bool, limit: int | None = None
    ) -> Steps[C | None]:
        """Read the head and return a cursor before event `start`; None if there is no such stream.

        Args:
            limit: number of events wanted, where a read from the beginning would bring more with the head.
            start: index of the first event to read, in either direction; None: the first event, or backward the last.
        """

    def stand(self, head: H, start: int | None, *, forward: bool) -> C:
        """Return a cursor before event `start`, as `begin` does, in a stream whose head is known."""

    def advance(
        self, table: str, cursor: C, limit: int | None, *, consistent: bool = True
    ) -> Steps[ReadPart[EventSpan, C]]:
        """Read the next part of a stream; a part has no spans where the cursor passes pruned events.

        Args:
            limit: number of events wanted; more may come.
            consistent: False costs half: events that a reply lacks are requested again, strongly consistent, and
                events that were pruned a moment ago may be there.

        Raises:
            CorruptData: an event is in no item, but was not pruned.
        """


@runtime_checkable
class BatchedReads(Protocol):
    """The further methods of a layout that can begin reads of several streams with one request for items by key."""

    def is_batched(self, start: int) -> bool:
        """Whether a read from event `start` on is likely to be one that `begin_batch` can begin."""

    def begin_batch(self, table: str, starts: Mapping[str, int]) -> Steps[Mapping[str, Any]]:
        """Begin reads of several streams with one batch of items; return cursors by stream, if it suffices.

        All events from `start` on are in that head, so reading them takes no further request. A stream that is left out
        may exist, and is read by `begin`.

        Args:
            starts: by stream, index of the first event to read; at most `plan.limits.BATCH_KEYS` streams.
        """


@runtime_checkable
class KeyedStreams(Protocol):
    """The further methods of a layout that finds appends by their idempotency key (`layout.once`)."""

    def decided(self, key: Any, head: Any, since: int) -> Steps[Appended | Undetermined | None]:
        """Look for a decision under a key, from index `since` up to a head; None if there is none.

        The whole append id is compared, except for the number of events. Where the key tells a moment, only events
        above that moment are searched.
        """

    def moment_of_key(self, key: str, now: Ticks) -> Ticks:
        """Return a moment that all appends under this key are stamped after; `NEVER` if the key tells none.

        With `NEVER`, a record bounds the search for the key.
        """

    def is_new(self, known_head: Any, above: Ticks) -> bool | None:
        """Whether nothing known of a stream was written after the moment of a key; None without a moment."""

    def load(self, table: str, stream: str, *, consistent: bool = True, whole: bool = False) -> Steps[Any]:
        """Read the head of a stream (`StreamLayout.load`)."""


@runtime_checkable
class PrunedStreams(Protocol):
    """The further methods of a layout that can prune events and delete streams."""

    def prune(self, table: str, stream: str, before: int, etag: str) -> Steps[PruneProgress | None]:
        """Delete the events below index `before`; None if there is no such stream."""

    def delete(
        self, table: str, stream: str, expected: ExpectedVersion, etag: str, *, leave_open: bool
    ) -> Steps[PruneProgress | Conflict]:
        """Prune all of a stream, unfolds included, and leave a tombstone unless `leave_open`."""

    def begin_pruned(self, table: str, batch: Batch, index: int) -> Steps[None]:
        """Begin a stream as if the events below `index` had been pruned; keep a stream that exists.

        Args:
            batch: batch of unfolds alone, whose versions are set already, at most `index`; or an empty batch.
        """


@runtime_checkable
class ArchivedStreams(Protocol):
    """The further methods of a layout that can copy events to an archive table before a prune."""

    def archive(self, table: str, into: str, stream: str, before: int, etags: Iterator[str]) -> Steps[int]:
        """Copy events below `before` that the archive lacks; return the version that the archive has reached.

        Args:
            into: name of the archive table, which has the same layout.
            etags: fresh etags for the writes.

        Raises:
            InvalidInput: events were pruned before they were archived, or the archive's stream was deleted.
        """


@runtime_checkable
class SeveralStreams(Protocol):
    """The further methods of a layout that can append to several streams in one transaction."""

    def append_all(
        self,
        table: str,
        appends: Sequence[tuple[Batch, ExpectedVersion]],
        key: str | None = None,
        also: Also = (),
    ) -> Steps[Outcome]:
        """Append to all of these streams, or to none; return one outcome with the outcome of each stream.

        No two batches are of the same stream, and all have one etag and one append id.

        Args:
            key: idempotency key of keyed batches, which are appended once to these streams, whatever versions are
                expected later. At most 99 streams.
            also: writes to other tables in the same transaction.

        Raises:
            TooLarge: the events of a stream do not fit an item of their own, or all of them a transaction.
            InvalidInput: a stream is full; the key was used for other contents.
        """

    def append_all_on(
        self,
        table: str,
        appends: Sequence[tuple[Batch, Known[Any]]],
        read_heads: Sequence[tuple[str, Known[Any]]],
        key: str | None = None,
        also: Also = (),
    ) -> Steps[Outcome]:
        """Append to all of these streams on exactly their known heads, or to none; return the outcome.

        The streams of `read_heads` must have their known heads, too. The streams with other heads are in conflict.
        Without appends, the outcome is whether all of them had these heads at one moment. Under a key it is one
        decision on all of the streams, whoever makes it; then at most 99 streams. The outcome of an earlier decision is
        `replayed`, and includes the streams that it only read.

        Raises:
            InvalidInput: the key was used for an append.
        """

    def decided_all(self, table: str, streams: Sequence[str], key: str, now: Ticks) -> Steps[Outcome | None]:
        """Return the outcome of a decision under the key in each of these streams; None if there is none."""


@runtime_checkable
class TaggedStreams(Protocol):
    """The further method of a layout that keeps tags in the same table as streams."""

    def append_tagged(
        self,
        site: TagStreams,
        appends: Sequence[tuple[Batch, ExpectedVersion]],
        tagged: TaggedBatch,
        condition: AppendCondition | None,
        key: str | None,
        *,
        read_heads: Mapping[str, Known[Any]] | None = None,
    ) -> Steps[Outcome]:
        """Append events with tags to streams, all or nothing, unless new events match the condition.

        Args:
            site: table of the tags, which is the one of the streams.
            appends: batches with the versions that their streams must have.
            tagged: the events of all batches, in order.
            condition: condition on other events; None for none.
            key: idempotency key of the append, or of the decision; None for none.
            read_heads: known heads of streams that a decision only read, which must be unchanged; None for an append.
        """


@runtime_checkable
class JoinedWriters(Protocol):
    """The further methods of a layout that can make several appends to a stream in one write."""

    def append_together(
        self, table: str, batches: Sequence[Batch], start: Token | None
    ) -> Steps[tuple[Outcome, ...]]:
        """Append batches to the end of one stream, in order, all or none; return an outcome for each.

        Args:
            start: token of the head, as far as the writer knows; None reads the head.

        Raises:
            TooLarge: all of them do not fit an item.
            InvalidInput: the stream is full.
        """

    def append_together_on(
        self, table: str, batches: Sequence[Batch], known_head: Known[Any]
    ) -> Steps[tuple[Outcome, ...]]:
        """Append batches as `append_together` does, on exactly the known head; return an outcome for each.

        Whether another process has made one of the keyed batches, before or meanwhile, is for the caller to find out
        (`layout.once`), also where the outcome is undetermined.
        """


AnyStreamLayout: TypeAlias = StreamLayout[Any, Any]
"""Any layout. Its methods take only the heads and cursors that its own methods return."""


# Comparison of an expected version with the current head.


def accepts(expected: ExpectedVersion, head: Head | None) -> bool:
    """Return whether a stream with this head meets an expected version; a deleted stream meets none."""
    if head is None:
        return state_meets(expected, None, None)
    return not head.deleted and state_meets(expected, head.version, head.etag)
