"""Appends to several streams at once, and decisions that depend on further streams, as one commit (`commit`).

Under an idempotency key, the commit also writes a record, which says what was appended to each stream. So the record
exists if and only if the append was made: no stream is searched, and no result is undetermined, even after a prune. If
a stream is not as expected, the record is read before the conflict is returned.

    made      for each stream in the order of names: first index, number of events, new etag (16 bytes)
    events    the number of events is only in the record of a decision; the contents of an append determine it
    etag      0 if there is no stream, since a decision may read streams that do not exist
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar, cast

from epochal.errors import CorruptData
from epochal.layout import once
from epochal.layout.key_records import (
    KeyRecord,
    RecordContents,
    check_contents,
    done_record,
    load_record,
    made_record,
    read_record,
)
from epochal.layout.once import UnfoldsRefused
from epochal.layout.outcomes import combine_outcomes, conflict_at, refusing_head
from epochal.layout.streams import Also, Known, accepts, decision_id
from epochal.lazy_dataclasses import dataclass, field, replace
from epochal.model.moments import Ticks, unix_seconds
from epochal.model.versions import (
    NO_STREAM,
    UNREAD,
    Appended,
    Conflict,
    ExpectedVersion,
    Outcome,
    Token,
    Undetermined,
    expected_head,
    version_of,
)
from epochal.pages.appending import append_on, is_new, outcome_after_refusal, outcome_under_key
from epochal.pages.batch import Packed
from epochal.pages.commit import (
    Commit,
    Heads,
    Made,
    Plan,
    Writes,
    commit,
    is_as_known,
    page_of,
    unmoved,
)
from epochal.pages.evidence import KeyedAppend, Unknowable, was_applied
from epochal.pages.frames import ByteReader, Writer, time_of
from epochal.pages.items import Page, page_key, state_of
from epochal.pages.reading import load_head
from epochal.pages.writes import Blocked, head_from
from epochal.plan.ops import Put, Refusal, Steps, Together, TransactGet

T = TypeVar("T")

_ETAG_BYTES: Final = 16
_NO_ETAG: Final = "00" * _ETAG_BYTES
"""Etag in a record for a stream that does not exist; no page has it, since the time of a page is above 0."""

StreamRead = tuple[str, Known[Page]]
"""Name of a stream, and what is known of its last page."""

StreamsEnd: TypeAlias = Conflict | Appended
"""Outcome other than a commit: the streams that are not as expected, or the outcome of an earlier call."""


def append_all(
    table: str, appends: Sequence[tuple[Packed, ExpectedVersion]], key: str | None = None, also: Also = ()
) -> Steps[Outcome]:
    """Append to several streams, or to none of them; return the outcome, with that of each stream.

    The batches are of one append: their stamps differ by time alone.

    Args:
        key: that the batches are known by; to one stream alone it is the stream's own.
        also: goes with them.

    Raises:
        TooLarge: the events of a stream do not fit an item, or all of them a transaction.
        InvalidInput: a stream is full; the key was used for other contents.
    """
    if key is not None and len(appends) == 1:
        ((batch, expected),) = appends
        return _of_one(batch.stream, (yield from append_once(table, batch, expected, key, also)))
    once = None if key is None else SeveralKey.of_append([batch for batch, _ in appends], key)
    part = StreamsPart.of(table, appends, key=once)
    outcome = part.outcome((yield from commit(replace(part.commit, also=also))))
    if isinstance(outcome, Conflict) and outcome.streams and all(batch.ids for batch, _ in appends):
        from epochal.pages import identified  # noqa: PLC0415  a function starts without it

        return (yield from identified.all_before(table, appends)) or outcome
    return outcome


def _of_one(stream: str, outcome: Outcome) -> Outcome:
    """Return the outcome of an append to one stream as that of an append to several."""
    is_unmet = isinstance(outcome, Conflict) and outcome.unmet
    return outcome if is_unmet else combine_outcomes({stream: outcome})


def append_all_on(
    table: str,
    appends: Sequence[tuple[Packed, Known[Page]]],
    reads: Sequence[StreamRead],
    key: str | None = None,
    also: Also = (),
) -> Steps[Outcome]:
    """Append like `append_all`, if the known last pages, and those of `reads`, are unchanged.

    Where nothing is appended, that is all that is asked. Under a key the outcome may be that of an earlier call, which
    includes the streams that were only read; one append alone that is keyed is as `layout.once` wants it.
    """
    if not appends:
        moved = yield from unmoved(table, dict(reads))
        conflicts = {stream: conflict_at(moved[stream]) for stream, _ in reads if stream in moved}
        return Conflict(streams=conflicts) if conflicts else Appended()
    if len(appends) == 1 and appends[0][0].keyed:
        ((batch, known),) = appends
        attempts = PageAttempts(table=table, batch=batch, also=also)
        return _of_one(batch.stream, (yield from attempts.append_on(known, repeatable=True)))
    heads = {batch.stream: known for batch, known in appends}
    names = [*heads, *(stream for stream, _ in reads)]
    once = None if key is None else SeveralKey.of(names, key, appends[0][0].now)
    part = StreamsPart.of(table, [(batch, exactly(known)) for batch, known in appends], dict(reads), once)
    return part.outcome((yield from commit(replace(part.commit, known={**part.reads, **heads}, also=also))))


def decided_all(table: str, streams: Sequence[str], key: str, now: Ticks) -> Steps[Appended | None]:
    """Return the outcome of an earlier decision on these streams under the key; None if there is none."""
    return SeveralKey.of(streams, key, now).before(table)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeveralKey:
    """The key of an append to several streams, or of a decision on them.

    Attributes:
        streams: in the order of names.
        append_id: what is appended; of a decision, whose it is: what it decides may be anything.
        counts: events of each stream, of an append.
        sent: what this call has written under it, as `Commit` has it.
        seen: records that were there, and only bound tries.
    """

    streams: tuple[str, ...]
    record: KeyRecord
    append_id: bytes
    counts: Mapping[str, int] | None = None
    sent: list[Plan] = field(default_factory=list)
    seen: list[RecordContents] = field(default_factory=list)

    @classmethod
    def of(cls, streams: Sequence[str], key: str, now: Ticks) -> SeveralKey:
        """Make the key of a decision on these streams from a caller's `key`."""
        record = KeyRecord.of_all(streams, key, unix_seconds(now))
        append_id = decision_id(record.name.encode()[-8:], 0)
        return cls(streams=tuple(sorted(streams)), record=record, append_id=append_id)

    @classmethod
    def of_append(cls, batches: Sequence[Packed], key: str) -> SeveralKey:
        """Make the key of an append of these batches from a caller's `key`."""
        counts = {batch.stream: batch.count for batch in batches}
        record = KeyRecord.of_all(counts, key, unix_seconds(batches[0].now))
        return cls(
            streams=tuple(sorted(counts)), record=record, append_id=batches[0].append_id, counts=counts
        )

    def note(self, table: str, left: Mapping[str, Appended]) -> Put:
        """Make the write of the key's record, which says what the append leaves in each stream."""
        out = Writer()
        for stream in self.streams:
            out.number(left[stream].first)
            if self.counts is None:
                out.number(left[stream].version - left[stream].first)
            out.add(bytes.fromhex(left[stream].token.etag or _NO_ETAG))
        return made_record(table, self.record, self.append_id, out.written(), self.seen[-1:])

    def before(self, table: str) -> Steps[Appended | None]:
        """Read the key's record and return the outcome that it contains; None if there is no record."""
        record = yield from load_record(table, self.record)
        return None if record is None else (yield from self.told(table, record))

    def told(self, table: str, found: RecordContents) -> Steps[Appended]:
        """Return the outcome that the key's record contains, once every stream shows its events.

        Each token is of the page as the append left it, even if others have written to the page since.

        Raises:
            CorruptData: a stream lacks its events, as in a table that was copied without them.
        """
        check_contents(found, self.append_id)
        source, firsts, tokens = ByteReader(found.made), dict[str, int](), dict[str, Token]()
        for stream in self.streams:
            firsts[stream], counted, etag = left_in(source, counted=self.counts is None)
            version = firsts[stream] + (counted if self.counts is None else self.counts[stream])
            tokens[stream] = Token(version=version, etag=None if etag == _NO_ETAG else etag)
        own = (read_record(record.item) for plan in self.sent for record in plan.records)
        replayed = self.counts is None or found not in own
        streams = {
            stream: Appended(first=firsts[stream], version=token.version, token=token, replayed=replayed)
            for stream, token in (yield from _waited_for(table, firsts, tokens)).items()
        }
        return Appended(streams=streams, replayed=replayed)


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamsPart:
    """The part of a commit for named streams: appends at expected versions, and streams that were read."""

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
        """Make the part of a commit that appends to these streams, each of which is named once."""
        return cls(
            table=table,
            batches={batch.stream: batch for batch, _ in appends},
            expected={batch.stream: expected for batch, expected in appends},
            reads=reads or {},
            key=key,
        )

    @property
    def commit(self) -> Commit[StreamsEnd]:
        """Commit that makes these appends if the streams are as expected and as they were read."""
        known = {
            stream: known
            for stream, expectation in self.expected.items()
            if (known := expected_head(expectation)) is not UNREAD
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
            sent=[] if self.key is None else self.key.sent,
        )

    def batch(self, stream: str, _: Writes) -> Packed:
        """Return the batch that a stream gets."""
        return self.batches[stream]

    def matters(self, moved: Heads) -> Steps[StreamsEnd | None]:
        """Return the streams that are not as expected, or the outcome of an earlier call under the key."""
        conflicts = {
            stream: conflict_at(head) for stream, head in moved.items() if not self._accepts(stream, head)
        }
        if conflicts and self.key is not None:
            return (yield from self.key.before(self.table)) or Conflict(streams=conflicts)
        yield from ()
        return Conflict(streams=conflicts) if conflicts else None

    def records(self, writes: Writes) -> Sequence[Put]:
        """Make the write of the key's record; empty without a key."""
        if self.key is None:
            return ()
        read = {stream: _as_read(known) for stream, known in self.reads.items()}
        return (
            self.key.note(self.table, read | {stream: write.appended for stream, write in writes.items()}),
        )

    def before(self, _: Writes, refusal: Refusal) -> Steps[StreamsEnd | None]:
        """Return the outcome of an earlier call under the key, after a refusal; None if there is none.

        If only the caller's own conditions are said to have failed, the record is read.
        """
        if self.key is None:
            return None
        if (item := refusal.items[-1]) is not None:
            return (yield from self.key.told(self.table, read_record(item)))
        return None if refusal.failed else (yield from self.key.before(self.table))

    def outcome(self, ended: Made | StreamsEnd) -> Outcome:
        """Make the outcome of the append, with that of each stream, in the order of the appends."""
        if isinstance(ended, Made):
            return outcome_of_streams(ended, self.batches)
        if isinstance(ended, Appended):
            return ended
        order = [stream for stream in (*self.batches, *self.reads) if stream in ended.streams]
        return replace(ended, streams={stream: ended.streams[stream] for stream in order})

    def _accepts(self, stream: str, head: Page | None) -> bool:
        """Whether a stream's head is as it was read, or has the expected version."""
        if stream in self.reads:
            return is_as_known(self.reads[stream], head)
        return accepts(self.expected[stream], head)


def outcome_of_streams(made: Made, streams: Iterable[str]) -> Appended | Undetermined:
    """Make the outcome of a commit that was applied, or may have been, with that of each of these streams."""
    if made.certain:
        return Appended(streams={stream: made.writes[stream].appended for stream in streams})
    return Undetermined(streams={stream: Undetermined(first=made.writes[stream].first) for stream in streams})


def exactly(known: Known[Page]) -> ExpectedVersion:
    """Return the expected version that only this last page meets."""
    return NO_STREAM if known is None else Token(version=known.version, etag=known.etag)


def _as_read(known: Known[Page]) -> Appended:
    """Make the outcome of a stream that was only read: a write without events."""
    version = version_of(known)
    token = Token(version=version, etag=None if known is None else known.etag)
    return Appended(first=version, version=version, token=token)


def left_in(source: ByteReader, *, counted: bool) -> tuple[int, int, str]:
    """Read the next stream's first index, number of events (0 if not counted) and etag in `made`."""
    return source.number(), source.number() if counted else 0, source.take(_ETAG_BYTES).hex()


def _waited_for(table: str, first: Mapping[str, int], left: Mapping[str, Token]) -> Steps[dict[str, Token]]:
    """Return the tokens after reading their pages; raise `CorruptData` if a page lacks its events.

    If a page has not changed since, its own token is returned.
    """
    states = {stream: state_of(token.etag or "") for stream, token in left.items()}
    places = {stream: state for stream, state in states.items() if state is not None}
    keys = tuple((table, page_key(stream, state.index)) for stream, state in places.items())
    pages: Together = yield TransactGet(keys=keys)
    heads = dict(left)
    for (stream, state), item in zip(places.items(), pages.items, strict=True):
        page, token = page_of(item, table), left[stream]
        if page is None or not _has(page, first[stream], token.version, state.time):
            raise CorruptData(f"{stream}: lacks what was appended under this key, whose record came alone")
        if page.etag == token.etag:
            heads[stream] = page.token()
    return heads


def _has(page: Page, first: int, version: int, time: Ticks) -> bool:
    """Whether a page shows the write at `time` that appended events `first` to `version - 1`.

    A write without events, or with pruned ones, is shown by the page's time alone.
    """
    has_write = (
        first == version or page.base > first or any(time_of(frame.stamp) == time for frame in page.frames)
    )
    return has_write and page.time >= time


def searched(
    batch: Packed, wanted: Commit[T], *, repeatable: bool
) -> Steps[Made | Conflict | T | Appended | Undetermined]:
    """Commit a batch under a key that has no record of its result.

    If the commit was refused, the stream is searched for an append under the key: by another process, or by a try whose
    answer was lost. Pages do not tell which of the two, as others may have used the key at the same moment.
    """
    ended = yield from commit(replace(wanted, keyed=True))
    if isinstance(ended, Made):
        return ended
    moved = ended.streams.get(batch.stream) if isinstance(ended, Conflict) else None
    head = (yield from load_head(wanted.table, batch.stream)) if moved is None else refusing_head(moved)
    planned = wanted.sent[-1].writes[batch.stream] if wanted.sent else None
    refused = Blocked(page=head, planned=planned, lost=planned is not None)
    since = version_of(wanted.known[batch.stream])
    outcome = yield from outcome_after_refusal(batch, head, since, refused, repeatable=repeatable)
    return ended if outcome is None else combine_outcomes({batch.stream: outcome})


# The attempts that `layout.once` makes with a batch under an idempotency key.


def append_once(
    table: str, batch: Packed, expected: ExpectedVersion, key: str, also: Also = ()
) -> Steps[Outcome]:
    """Append a batch under a caller's key, unless an earlier call has appended it."""
    attempts = PageAttempts(table=table, batch=batch, also=also)
    record = KeyRecord.of(batch.stream, key, unix_seconds(batch.now))
    if batch.count:
        return (yield from once.append_once(attempts, expected, record))
    return (yield from once.unfold_once(attempts, expected, record))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAttempts:
    """The requests that a batch under an idempotency key can be tried with (`layout.once.Attempts`)."""

    table: str
    batch: Packed
    also: Also = ()

    def load(self) -> Steps[Page | None]:
        """Read the stream's last page."""
        return load_head(self.table, self.batch.stream)

    def append_on(self, known: Known[Page], *, repeatable: bool) -> Steps[Outcome]:
        """Append on exactly the known last page, in one commit with the writes of `also`."""
        if not self.also:
            return (yield from append_on(self.table, self.batch, known, repeatable=repeatable))
        part = StreamsPart.of(self.table, [(self.batch, exactly(known))])
        commit_on_head = replace(part.commit, known={self.batch.stream: known}, also=self.also)
        ended = yield from searched(self.batch, commit_on_head, repeatable=repeatable)
        outcome = outcome_of_streams(ended, part.batches) if isinstance(ended, Made) else ended
        return outcome.streams.get(self.batch.stream, outcome)

    def is_new(self, known: Known[Page]) -> bool | None:
        """Whether the known last page is not newer than the key's moment; None if the key has no moment."""
        return is_new(known, self.batch.above)

    def settle(self, head: Page, since: int, *, repeatable: bool) -> Steps[Appended | Undetermined | None]:
        """Look for an append of the batch's events under its key from index `since` on; None if none."""
        return outcome_under_key(self.batch, head, since, later=repeatable)

    def unfold_on(
        self, known: Known[Page], record: KeyRecord, seen: RecordContents | None
    ) -> Steps[Token | UnfoldsRefused[Page] | Conflict]:
        """Write unfolds alone, with the key's record and the writes of `also`, in one commit."""
        stream = self.batch.stream
        part = StreamsPart.of(self.table, [(self.batch, exactly(known))]).commit

        def records(writes: Writes) -> tuple[Put]:
            leaving = replace(self.batch, etag=writes[stream].token.etag or "")
            return (done_record(self.table, record, leaving, version_of(known), seen),)

        def refused(head: Steps[Page | None], said: RecordContents | None) -> UnfoldsRefused[Page]:
            etag = part.sent[-1].writes[stream].token.etag if part.sent else None
            return UnfoldsRefused(head=head, seen=said, etag=etag)

        def matters(moved: Heads) -> Steps[UnfoldsRefused[Page] | None]:
            yield from ()
            return refused(_read(moved[stream]), seen) if moved else None

        def before(_: Writes, refusal: Refusal) -> Steps[UnfoldsRefused[Page] | None]:
            """Return the refusal if the key's record is there or has changed; None otherwise."""
            page, item = refusal.items
            stored = None if item is None else read_record(item)
            if stored is None and not refusal.failed:
                # The reply names only the caller's own conditions. If the commit was applied, the record exists.
                stored = yield from load_record(self.table, record)
            if stored is None or stored == seen:
                return None
            return refused(head_from(self.table, stream, page_of(page, self.table)), stored)

        wanted = cast("Commit[UnfoldsRefused[Page]]", replace(part, known={stream: known}, keyed=True))
        ended = yield from commit(
            replace(wanted, matters=matters, records=records, before=before, also=self.also)
        )
        return ended.writes[stream].token if isinstance(ended, Made) else ended

    def is_pruned(self, head: Page, since: int) -> Steps[bool]:
        """Whether events from index `since` on are pruned that may have been appended under the key."""
        verdict = yield from was_applied(KeyedAppend.of(self.batch, since, later=True), [head])
        return isinstance(verdict, Unknowable)


def _read(head: Page | None) -> Steps[Page | None]:
    """Return a head that was read already, as a step without requests."""
    yield from ()
    return head
