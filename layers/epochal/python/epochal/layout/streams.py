"""Named streams as the store sees them: what a layout of them answers, and what an append is and how it can end.

A stream has one head, which every append changes. A head says where the stream ends, carries its latest events and its
unfolds, and gives a token that makes the next append on it one request. Layouts keep these rules:

    append      all or nothing, and once, whatever answers are lost; on what is known, or on what is found as expected
    read        the head first; then all events in order, each once; what is pruned is passed over, and shown
    prune       what is below the low-water mark is gone for readers at once, its items a part at a time, where a layout
                can prune: what it may leave out are protocols of their own, as is what it can besides
    etags       fresh ones, 32 hex digits, come from the caller, as the time does: a layout makes neither

All but `room` and `stand` are plans (DESIGN §3).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeAlias, TypeVar, runtime_checkable

from epochal.codec.bodies import EMPTY, Encoded
from epochal.lazy_dataclasses import dataclass
from epochal.model.events import Recorded, Ticks
from epochal.model.versions import ExpectedVersion, Token, meets
from epochal.plan.ops import Steps, TransactionWrite
from epochal.plan.values import Item

IDENTIFIED: Final = b"\x01\x00\x00"
"""What the label of an event with an id and no tags begins with; the 16 bytes of the id follow (FORMATS §8)."""


NEVER: Final = Ticks(0)
"""Before all stamps: the moment of a key that tells none."""


def id_in(label: bytes) -> str:
    """The id in such a label, as a UUID is written."""
    digits = label[len(IDENTIFIED) :].hex()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


class EncodedEvent(NamedTuple):
    """An event with its bodies encoded. The first of an append carries its id. One with tags, or an id that its caller
    chose, says so in its `label`; as it is read, it has the append's `stamp` beside that.

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
    """An unfold with its bodies encoded; `version` is the stream's that it was made from."""

    version: int
    type: str
    data: Encoded
    meta: Encoded = EMPTY
    timestamp: str


class EventSpan(Protocol):
    """Consecutive events, decoded one at a time: one that is broken keeps nobody from its neighbours."""

    @property
    def base(self) -> int:
        """Index of the first."""

    @property
    def next(self) -> int:
        """Index after the last."""

    def read(self, offset: int) -> EncodedEvent:
        """The event at `base + offset`. Raises `CorruptData`."""

    def type(self, offset: int) -> str:
        """The type of an event that may be broken, as far as it tells."""

    def timestamp(self, offset: int) -> str:
        """When it happened, likewise."""


@runtime_checkable
class PlainSpan(Protocol):
    """What a span can besides, where bodies are within its reach."""

    def recorded(self, stream: str, offsets: range) -> list[Recorded] | None:
        """The events there, as a codec would record them; None where one takes a codec, is large, or `read` tells its
        fault.
        """

    def holds_large(self, offsets: range) -> bool:
        """Whether `read` may have to open something large for each of the events there."""


class Head(Protocol):
    """A stream's head, as it was read."""

    @property
    def stream(self) -> str:
        """The stream's name."""

    @property
    def version(self) -> int:
        """The stream's next index."""

    @property
    def etag(self) -> str | None:
        """Of the latest write; None where another library left none."""

    @property
    def low_water(self) -> int:
        """Everything below is pruned."""

    @property
    def deleted(self) -> bool:
        """Whether the stream takes no more events."""

    @property
    def span(self) -> EventSpan:
        """The events that the head carries, the last of the stream."""

    def token(self) -> Token:
        """What makes an append on exactly this head one request."""

    def read_unfolds(self) -> Sequence[EncodedUnfold]:
        """The stream's unfolds. Raises `CorruptData`."""


class ReadCursor(Protocol):
    """Where a read of the stream that `head` heads has got to. A value: it can be kept and resumed."""

    @property
    def head(self) -> Head:
        """As it was read first; only its low-water mark may be raised since, by what was found gone."""

    @property
    def at(self) -> int:
        """Forward, the next index wanted; backward, the index after the next one wanted."""

    @property
    def forward(self) -> bool:
        """The direction."""

    @property
    def at_end(self) -> bool:
        """Nothing is left to read."""


H = TypeVar("H", bound=Head)
C = TypeVar("C", bound=ReadCursor)
S_co = TypeVar("S_co", bound=EventSpan, covariant=True)
H_co = TypeVar("H_co", bound=Head, covariant=True)
C_co = TypeVar("C_co", bound=ReadCursor, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadPart(Generic[S_co, C_co]):
    """A part of a read: spans in the order of reading (each itself oldest first), and where to go on."""

    spans: tuple[S_co, ...]
    cursor: C_co


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One append: all or nothing.

    Attributes:
        events: may be none where unfolds are given.
        unfolds: replace those stored; None keeps them. Their versions are set once the index is known.
        etag: 32 hex digits, fresh; the same over all retries of this append.
        append_id: 16 bytes; the first 8 tell appends apart, the rest their contents.
        now: the writer's clock.
        keyed: `append_id` stems from a caller's idempotency key, so another process may have written it.
        dated: the time of one of the events is its own, and that of the writer's clock. A layout that dates events by
            another moment must keep it.
        above: the moment that the key tells (`KeyedStreams.told_by`).
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
"""In the place of a digest of contents, in the append id of a decision: whatever it has appended is what it decided."""


def decision_id(whose: bytes, events: int) -> bytes:
    """The append id of a decision's events; the first 8 bytes of `whose` tell it from others."""
    return whose[:8] + DECIDED + b"\0" + events.to_bytes(4, "big")


def decided_events(append_id: bytes) -> int | None:
    """How many events a decision has, by its append id; None where it is of another append."""
    return int.from_bytes(append_id[12:], "big") if append_id[8:11] == DECIDED else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """Committed, leaving the head at `token`; `replayed` where an earlier request with the key did it. Then the token
    is of that one: the repeat's own etag was never written.
    """

    first: int
    version: int
    token: Token
    replayed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected(Generic[H_co]):
    """Not committed: this is the head that stood in the way; None where there is no such stream."""

    head: H_co | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Whether it was committed at index `first` can no longer be told."""

    first: int


Settled: TypeAlias = Written | Unknown

Result: TypeAlias = Written | Unknown | Rejected[H]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unmet:
    """Not committed: conditions of what was to go with it do not hold. What stands in the way, by its place there."""

    items: Mapping[int, Item | None]


Answer: TypeAlias = Result[H] | Unmet
"""Of an append that something goes with."""

Results: TypeAlias = tuple[Written | Unknown | Rejected[H] | None, ...]
"""Of an append to several streams, in their order: all are written, or all unknown; or those in the way are rejected,
and of the others there is nothing to tell. Nor is there of a stream that is only read, and as it was."""

Also: TypeAlias = Sequence[TransactionWrite]
"""What goes with an append, to tables that are none of the store's."""

Known: TypeAlias = H | Token | None
"""What a writer knows of the head: all of it, its token, or that there is none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedBefore:
    """What an earlier decision under the key left in each stream, those that it only read among them."""

    streams: Mapping[str, Written]


@dataclass(frozen=True, slots=True, kw_only=True)
class PruneProgress:
    """Events below `low_water` are gone for readers; `done` once their items are deleted too."""

    low_water: int
    deleted: int
    done: bool


class StreamLayout(Protocol[H, C]):
    """Named streams in the items of a table. An instance holds choices of a writer, and no state."""

    @property
    def name(self) -> str:
        """Of the layout, as registered."""

    @property
    def compress_from(self) -> int:
        """Bytes from which on a body is compressed by itself; smaller ones it may compress together."""

    @property
    def keeps_unfolds(self) -> bool:
        """Whether a stream has unfolds; where not, an append with some is refused before it gets here."""

    @property
    def keeps_ids(self) -> bool:
        """Whether an event without tags may have an id; likewise."""

    def room(self, unfolds: Sequence[EncodedUnfold]) -> int:
        """Bytes that an append of events has beside these unfolds, all its fields counted."""

    def append(
        self, table: str, batch: Batch, expected: ExpectedVersion, key: str | None = None
    ) -> Steps[Answer[H]]:
        """Append where the stream is as expected; again on what is found, as long as that is.

        Args:
            key: of a keyed batch: it is one append within its stream, whatever is expected later. `KeyedStreams` alone
                are given one.

        Raises:
            TooLarge: the events do not fit an item of their own.
            InvalidInput: the stream is full; the key was used for other contents.
        """

    def append_on(self, table: str, batch: Batch, known: Known[H]) -> Steps[Result[H]]:
        """Append on exactly what is known (None: no stream yet). Anything else is a rejection, which brings it.

        A keyed batch is a decision's: it is looked for from there on up to the head that comes back.
        """

    def load(
        self, table: str, stream: str, *, consistent: bool = True, whole: bool = False
    ) -> Steps[H | None]:
        """The head; None where there is no such stream.

        Args:
            consistent: False costs half, and the head may be one that has been, or None though there is one by now. An
                append on it is refused, if it is not the head any more.
            whole: all events are wanted. A layout may bring the first of them with the head, which then has them for
                `stand`.
        """

    def begin(
        self, table: str, stream: str, start: int | None, *, forward: bool, limit: int | None = None
    ) -> Steps[C | None]:
        """Read the head and stand so that event `start` is read next, in either direction; None: the first of them, or
        backward the last. The answer None: there is no such stream.

        Args:
            limit: events wanted, where a read from the beginning would bring more with the head.
        """

    def stand(self, head: H, start: int | None, *, forward: bool) -> C:
        """Stand as `begin` does, in a stream whose head is in hand."""

    def advance(
        self, table: str, cursor: C, limit: int | None, *, consistent: bool = True
    ) -> Steps[ReadPart[EventSpan, C]]:
        """One part more. Without spans where the cursor moves over what is gone.

        Args:
            limit: events wanted; more may come.
            consistent: False costs half: what a reply lacks is asked for again, strongly consistent, and what has been
                pruned a moment ago may be there.

        Raises:
            CorruptData: an event is in no item, and was not pruned.
        """


@runtime_checkable
class KeyedStreams(Protocol):
    """What a layout of streams can besides, where it knows again what was appended under a key (`layout.once`)."""

    def decided(self, key: Any, head: Any, since: int) -> Steps[Settled | None]:
        """What came of a decision under a key, from index `since` up to a head; None where there is none. Of its append
        id all counts but the number of its events. Where the key tells a moment, what is above that is searched.
        """

    def told_by(self, key: str, now: Ticks) -> Ticks:
        """A moment that no append under this key is stamped at or before; `NEVER` where a record bounds the search.

        Raises:
            InvalidInput: it is too far ahead.
        """

    def is_new(self, known: Any, above: Ticks) -> bool | None:
        """Whether nothing known of a stream was written after the moment that a key tells; None where it tells none."""

    def load(self, table: str, stream: str, *, consistent: bool = True, whole: bool = False) -> Steps[Any]:
        """`StreamLayout.load`."""


@runtime_checkable
class PrunedStreams(Protocol):
    """What a layout of streams can besides, where a stream may begin later than at its first event, and end."""

    def prune(self, table: str, stream: str, before: int, etag: str) -> Steps[PruneProgress | None]:
        """Make the events below `before` gone. None: there is no such stream."""

    def delete(
        self, table: str, stream: str, expected: ExpectedVersion, etag: str, *, leave_open: bool
    ) -> Steps[PruneProgress | Rejected[Any]]:
        """Prune all of a stream, unfolds included, and leave a tombstone unless it is to stay open."""

    def begin_pruned(self, table: str, batch: Batch, index: int) -> Steps[None]:
        """Begin a stream as if the events below `index` had been pruned; one that is there stays as it is.

        Args:
            batch: of unfolds alone, which have their version already, at most `index`; or of nothing.
        """


@runtime_checkable
class ArchivedStreams(Protocol):
    """What a layout of streams can besides, where a table may keep what is pruned in another."""

    def archive(self, table: str, into: str, stream: str, before: int, etags: Iterator[str]) -> Steps[int]:
        """Copy the events below `before` that the archive, a table of this layout, lacks; the version it has reached.

        Raises:
            InvalidInput: events were pruned before they were archived, or the archive's stream was deleted.
        """


@runtime_checkable
class SeveralStreams(Protocol):
    """What a layout of streams can besides, where one transaction is enough for several."""

    def append_all(
        self,
        table: str,
        appends: Sequence[tuple[Batch, ExpectedVersion]],
        key: str | None = None,
        also: Also = (),
    ) -> Steps[Results[Any] | Unmet]:
        """Append to all of these streams, no two alike, or to none. The batches have one etag and one append id.

        Args:
            key: of keyed batches: it is one append to these streams, whatever is expected later. At most 99.
            also: is written with them. Also by the others.

        Raises:
            TooLarge: the events of a stream do not fit an item of their own, or all of them a transaction.
            InvalidInput: a stream is full; the key was used for other contents.
        """

    def append_all_on(
        self,
        table: str,
        appends: Sequence[tuple[Batch, Known[Any]]],
        reads: Sequence[tuple[str, Known[Any]]],
        key: str | None = None,
        also: Also = (),
    ) -> Steps[Results[Any] | DecidedBefore | Unmet]:
        """Append to all of these streams on exactly what is known of them, where the streams of `reads` are as known,
        too; or to none. What is elsewhere is a rejection, which brings it. Without appends, say whether all of them
        were as known at one moment. Under a key it is one decision on all of them, whoever makes it. At most 99 then.

        Raises:
            InvalidInput: the key was used for an append.
        """

    def decided_all(
        self, table: str, streams: Sequence[str], key: str, now: Ticks
    ) -> Steps[DecidedBefore | None]:
        """What a decision on these streams under the key has left in each; None where there is none."""


@runtime_checkable
class TaggedStreams(Protocol):
    """What a layout of streams can besides, where tags are in the same table."""

    def append_tagged(
        self,
        site: Any,
        appends: Sequence[tuple[Batch, ExpectedVersion]],
        tagged: Any,
        condition: Any,
        key: str | None,
        *,
        reads: Mapping[str, Known[Any]] | None = None,
        decided: bool = False,
    ) -> Steps[Any]:
        """See `pages.tags.append`."""


@runtime_checkable
class JoinedWriters(Protocol):
    """What a layout of streams can besides, where one write may be several appends."""

    def append_together(
        self, table: str, batches: Sequence[Batch], start: Token | None
    ) -> Steps[tuple[Result[Any], ...]]:
        """Append batches of events to the end of one stream, in their order, all or none; what came of each.

        Args:
            start: of the head, as far as the writer knows; None reads it.

        Raises:
            TooLarge: all of them do not fit an item.
            InvalidInput: the stream is full.
        """

    def append_together_on(
        self, table: str, batches: Sequence[Batch], known: Known[Any]
    ) -> Steps[tuple[Result[Any], ...]]:
        """`append_together` on exactly what is known. Whether another process has made a keyed one of them, before or
        meanwhile, the caller finds out (`layout.once`), also where this is unknown.
        """


AnyStreamLayout: TypeAlias = StreamLayout[Any, Any]
"""Some layout, whose heads and cursors are its own: what one of its methods gave, another takes."""


# What a writer expects of a stream, held to the head that is there.


def accepts(expected: ExpectedVersion, head: Head | None) -> bool:
    """Whether a head is what a writer expects."""
    if head is not None and head.deleted:
        return False
    if isinstance(expected, Token):
        version, etag = (0, None) if head is None else (head.version, head.etag)
        return version == expected.version and (expected.etag is None or etag == expected.etag)
    return meets(expected, None if head is None else head.version)
