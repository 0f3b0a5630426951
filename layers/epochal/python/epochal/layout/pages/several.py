"""Appends to several named streams at once, and decisions on what was read of others: one commit (`commit`).

Under an idempotency key a record is written with it, which says what each stream got. So the record is there if and
only if the append was made: no search is needed, nor is anything undetermined, whatever is pruned since. Where a stream
is not as expected, the record is asked for before that is told.

    made      for each stream in the order of names: first index, events (numbers), the etag that was left (16 bytes)
    events    only of a decision: an append tells how many by its contents
    etag      0 where there is no stream: a decision has streams that it has only read
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from epochal.layout.key_records import (
    KeyRecord,
    Remembered,
    check_contents,
    made_record,
    read_record,
    recall,
)
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.commit import (
    Commit,
    Heads,
    Made,
    Writes,
    commit,
    is_as_known,
    page_of,
    unmoved,
)
from epochal.layout.pages.frames import ByteReader, Writer
from epochal.layout.pages.items import Page, page_key, state_of
from epochal.layout.pages.writes import Planned
from epochal.layout.streams import (
    UNREAD,
    Also,
    DecidedBefore,
    Known,
    Rejected,
    Results,
    Unknown,
    Unmet,
    Written,
    accepts,
    decision_id,
    told,
    version_of,
)
from epochal.model.times import Ticks, unix_seconds
from epochal.model.versions import NO_STREAM, ExpectedVersion, Token
from epochal.plan.ops import Put, Refusal, Steps, Together, TransactGet

_ETAG_BYTES: Final = 16
_NO_ETAG: Final = "00" * _ETAG_BYTES
"""Where there is no stream; no page has it, since its time is above 0."""

StreamRead = tuple[str, Known[Page]]
"""A stream, and what is known of its last page."""

StreamsEnd: TypeAlias = dict[str, Rejected[Page]] | DecidedBefore
"""The streams that are not as expected; or what an earlier call has left."""


def append_all(
    table: str,
    appends: Sequence[tuple[Packed, ExpectedVersion]],
    record: KeyRecord | None = None,
    also: Also = (),
) -> Steps[Results[Page] | Unmet]:
    """Append to every stream, or to none. The batches are of one append: their stamps differ by time alone.

    Args:
        record: of the key that the batches are known by.
        also: goes with them.

    Raises:
        TooLarge: the events of a stream do not fit an item, or all of them a transaction.
        InvalidInput: a stream is full; the key was used for other contents.
    """
    key = None if record is None else SeveralKey.of_append([batch for batch, _ in appends], record)
    part = StreamsPart.of(table, appends, key=key)
    came = yield from commit(replace(part.commit, also=also))
    return came if isinstance(came, Unmet) else part.results(came)


def append_all_on(
    table: str,
    appends: Sequence[tuple[Packed, Known[Page]]],
    reads: Sequence[StreamRead],
    key: SeveralKey | None = None,
    also: Also = (),
) -> Steps[Results[Page] | DecidedBefore | Unmet]:
    """`append_all` on exactly the last pages that are known, where those of `reads` are as known, too.

    Where nothing is appended, that is all that is asked. Results are of the appends, and then of the reads; None where
    a stream that was only read is in nobody's way. Under a key they may be those of an earlier call.
    """
    if not appends:
        moved = yield from unmoved(table, dict(reads))
        return tuple(Rejected(head=moved[stream]) if stream in moved else None for stream, _ in reads)
    part = StreamsPart.of(table, [(batch, exactly(known)) for batch, known in appends], dict(reads), key)
    given = {batch.stream: known for batch, known in appends}
    came = yield from commit(replace(part.commit, known={**part.reads, **given}, also=also))
    return came if isinstance(came, DecidedBefore | Unmet) else part.results(came)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralKey:
    """The key of an append to several streams, or of a decision on them.

    Attributes:
        streams: in the order of names.
        append_id: what is appended; of a decision, whose it is: what it decides may be anything.
        counts: events of each stream, of an append.
        sent: what records have said that were written under it by this call.
    """

    streams: tuple[str, ...]
    record: KeyRecord
    append_id: bytes
    counts: Mapping[str, int] | None = None
    sent: set[bytes] = field(default_factory=set)

    @classmethod
    def of(cls, streams: Sequence[str], key: str, now: Ticks) -> SeveralKey:
        """That of a caller's `key` for a decision."""
        record = KeyRecord.of_all(streams, key, unix_seconds(now))
        append_id = decision_id(record.name.encode()[-8:], 0)
        return cls(streams=tuple(sorted(streams)), record=record, append_id=append_id)

    @classmethod
    def of_append(cls, batches: Sequence[Packed], record: KeyRecord) -> SeveralKey:
        """That of batches that are known by a recorded key."""
        counts = {batch.stream: batch.count for batch in batches}
        return cls(
            streams=tuple(sorted(counts)), record=record, append_id=batches[0].append_id, counts=counts
        )

    def note(self, table: str, left: Mapping[str, Written]) -> Put:
        """The record that goes out with writes that leave this."""
        out = Writer()
        for stream in self.streams:
            out.number(left[stream].first)
            if self.counts is None:
                out.number(left[stream].version - left[stream].first)
            out.add(bytes.fromhex(left[stream].token.etag or _NO_ETAG))
        self.sent.add(out.written())
        return made_record(table, self.record, self.append_id, out.written())

    def before(self, table: str) -> Steps[DecidedBefore | None]:
        """What the record says, if it is there."""
        found = yield from recall(table, self.record)
        return None if found is None else (yield from self.told(table, found))

    def told(self, table: str, found: Remembered) -> Steps[DecidedBefore]:
        """The outcome that the record holds, once every stream shows it: a caller that gets it finds its events.

        A token is of the page that the append left, also if others have written to it since.
        """
        check_contents(found, self.append_id)
        source, firsts, tokens = ByteReader(found.made), dict[str, int](), dict[str, Token]()
        for stream in self.streams:
            firsts[stream] = source.number()
            count = source.number() if self.counts is None else self.counts[stream]
            etag = source.take(_ETAG_BYTES).hex()
            version = firsts[stream] + count
            tokens[stream] = Token(version=version, etag=None if etag == _NO_ETAG else etag)
        replayed = self.counts is None or found.made not in self.sent
        return DecidedBefore(
            streams={
                stream: Written(first=firsts[stream], version=token.version, token=token, replayed=replayed)
                for stream, token in (yield from _waited_for(table, tokens)).items()
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPart:
    """What a commit has of named streams: appends as they are expected, where others are as they were read."""

    table: str
    batches: Mapping[str, Packed]
    expected: Mapping[str, ExpectedVersion]
    reads: Mapping[str, Known[Page]]
    key: SeveralKey | None

    @classmethod
    def of(
        cls,
        table: str,
        appends: Sequence[tuple[Packed, ExpectedVersion]],
        reads: Mapping[str, Known[Page]] | None = None,
        key: SeveralKey | None = None,
    ) -> StreamsPart:
        """Of appends, no two to one stream."""
        return cls(
            table=table,
            batches={batch.stream: batch for batch, _ in appends},
            expected={batch.stream: expected for batch, expected in appends},
            reads=reads or {},
            key=key,
        )

    @property
    def commit(self) -> Commit[StreamsEnd]:
        """As a commit."""
        known = {
            stream: known for stream, each in self.expected.items() if (known := told(each)) is not UNREAD
        }
        return Commit(
            table=self.table,
            known={**known, **self.reads},
            writes=tuple(self.batches),
            batch=self.batch,
            fences=tuple(self.reads),
            matters=self.matters,
            records=self.records,
            before=self.before,
            keyed=self.key is not None,
        )

    def batch(self, stream: str, _: Writes) -> Packed:
        """What a stream gets."""
        return self.batches[stream]

    def matters(self, moved: Heads) -> Steps[StreamsEnd | None]:
        """The streams that are not as expected; unless it was by an earlier call."""
        rejected = {
            stream: Rejected(head=head) for stream, head in moved.items() if not self._accepts(stream, head)
        }
        if rejected and self.key is not None:
            return (yield from self.key.before(self.table)) or rejected
        yield from ()
        return rejected or None

    def records(self, writes: Writes) -> Sequence[Put]:
        """That of the key."""
        if self.key is None:
            return ()
        read = {stream: _as_read(known) for stream, known in self.reads.items()}
        return (
            self.key.note(self.table, read | {stream: _written(each) for stream, each in writes.items()}),
        )

    def before(self, _: Writes, refusal: Refusal) -> Steps[StreamsEnd | None]:
        """What the key's record says, if it stood in the way; where only what goes with it did, it is asked for."""
        if self.key is None:
            return None
        if (item := refusal.items[-1]) is not None:
            return (yield from self.key.told(self.table, read_record(item)))
        return None if refusal.failed else (yield from self.key.before(self.table))

    def results(self, came: Made | StreamsEnd) -> Results[Page]:
        """In the order of the appends, then of the reads."""
        match came:
            case Made():
                writes = came.writes.values()
                results = (_written(each) if came.certain else Unknown(first=each.first) for each in writes)
                return (*results, *(None for _ in self.reads))
            case DecidedBefore():
                return tuple(came.streams[stream] for stream in self.batches)
            case _:
                return tuple(came.get(stream) for stream in (*self.batches, *self.reads))

    def _accepts(self, stream: str, head: Page | None) -> bool:
        if stream in self.reads:
            return is_as_known(self.reads[stream], head)
        return accepts(self.expected[stream], head)


def exactly(known: Known[Page]) -> ExpectedVersion:
    """That a stream is as it is known."""
    return NO_STREAM if known is None else Token(version=known.version, etag=known.etag)


def _written(planned: Planned) -> Written:
    token = planned.token
    return Written(first=planned.first, version=token.version, token=token)


def _as_read(known: Known[Page]) -> Written:
    version = version_of(known)
    token = Token(version=version, etag=None if known is None else known.etag)
    return Written(first=version, version=version, token=token)


def _waited_for(table: str, left: Mapping[str, Token]) -> Steps[dict[str, Token]]:
    """The tokens that were left, once every stream shows their pages."""
    places = {
        stream: state.index
        for stream, token in left.items()
        if (state := state_of(token.etag or "")) is not None
    }
    keys = tuple((table, page_key(stream, index)) for stream, index in places.items())
    pages: Together = yield TransactGet(keys=keys)
    found = dict(left)
    for stream, item in zip(places, pages.items, strict=True):
        page = page_of(item, table)
        if page is not None and page.etag == left[stream].etag:
            found[stream] = page.token()
    return found
