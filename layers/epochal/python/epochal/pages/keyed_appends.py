"""Appends to one stream under an idempotency key: the requests of `layout.once`, for pages.

Events are searched for in the stream. Unfolds alone leave no trace once replaced, so they are written with the key's
record, in one commit.
"""

from __future__ import annotations

from typing import Never

from epochal.layout import once
from epochal.layout.key_records import (
    KeyRecord,
    RecordContents,
    load_record,
    make_unfolds_record_put,
    read_record,
)
from epochal.layout.once import UnfoldsRefused
from epochal.layout.outcomes import combine_outcomes, refusing_head
from epochal.layout.streams import Also, Known
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.expected_version import ExpectedVersion
from epochal.model.moments import unix_seconds
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import Token, version_of
from epochal.pages.appending import append_on, is_new, outcome_after_refusal, outcome_under_key
from epochal.pages.attempts import Blocked, head_from
from epochal.pages.batch import Packed
from epochal.pages.commit import Commit, CommitPart, Heads, Tries, Writes, page_of, run_commit
from epochal.pages.evidence import KeyedAppend, Unknowable, was_applied
from epochal.pages.items import Page
from epochal.pages.reading import load_head, load_recent
from epochal.pages.streams_part import StreamsPart, exactly
from epochal.plan.ops import Put, Refusal, Steps


def append_once(
    table: str, batch: Packed, expected: ExpectedVersion, key: str, also: Also = ()
) -> Steps[Outcome]:
    """Append a batch under a caller's key once; return the outcome, also if an earlier call appended it."""
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

    def load(self, *, recent: bool = False) -> Steps[Page | None]:
        """Read the stream's last page; with `recent`, also the pages before it that a search begins with."""
        load = load_recent if recent else load_head
        return load(self.table, self.batch.stream)

    def append_on(self, known_head: Known[Page], *, repeatable: bool) -> Steps[Outcome]:
        """Append on exactly the known last page, in one commit with the writes of `also`; return the outcome."""
        if not self.also:
            return (yield from append_on(self.table, self.batch, known_head, repeatable=repeatable))
        part, stream = StreamsPart.of(self.table, [(self.batch, exactly(known_head))]), self.batch.stream
        commit = replace(part.commit, known_heads={stream: known_head}, also=self.also)
        outcome = yield from commit_or_search(self.batch, commit, part, repeatable=repeatable)
        return outcome.streams.get(stream, outcome)

    def is_new(self, known_head: Known[Page]) -> bool | None:
        """Whether the known last page is not newer than the key's moment; None if the key has no moment."""
        return is_new(known_head, self.batch.above)

    def settle(self, head: Page, since: int, *, repeatable: bool) -> Steps[Appended | Undetermined | None]:
        """Look for an append of the batch's events under its key from index `since` on; None if none."""
        return outcome_under_key(self.batch, head, since, later=repeatable)

    def unfold_on(
        self, known_head: Known[Page], record: KeyRecord, seen: RecordContents | None
    ) -> Steps[Token | UnfoldsRefused[Page] | Conflict]:
        """Write unfolds alone with the key's record and `also`; return the token, the refusal or the conflict."""
        part = UnfoldsPart(
            table=self.table, unfolds=self.batch, known_head=known_head, record=record, seen=seen
        )
        outcome = (yield from run_commit(replace(part.commit, also=self.also), part)).outcome
        assert not isinstance(outcome, Undetermined)  # noqa: S101  the record tells whether the commit was applied
        return outcome.token if isinstance(outcome, Appended) else outcome

    def is_pruned(self, head: Page, since: int) -> Steps[bool]:
        """Whether events from index `since` on are pruned that may have been appended under the key."""
        verdict = yield from was_applied(KeyedAppend.of(self.batch, since, later=True), [head])
        return isinstance(verdict, Unknowable)


def commit_or_search(
    batch: Packed, commit: Commit, part: CommitPart[Never], *, repeatable: bool
) -> Steps[Outcome]:
    """Commit a keyed batch with no record of its outcome, or find it in its stream; return the outcome.

    If the commit was refused, the stream is searched for an append under the key: by another process, or by a try whose
    answer was lost. Pages do not tell which of the two, as others may have used the key at the same moment.
    """
    ended = yield from run_commit(replace(commit, keyed=True), part)
    if isinstance(ended.outcome, Appended):
        return ended.outcome
    moved = ended.outcome.streams.get(batch.stream)
    head = (
        refusing_head(moved)
        if isinstance(moved, Conflict)
        else (yield from load_head(commit.table, batch.stream))
    )
    planned = ended.tries[-1].writes[batch.stream] if ended.tries else None
    refused = Blocked(page=head, planned=planned, lost=planned is not None)
    since = version_of(commit.known_heads[batch.stream])
    outcome = yield from outcome_after_refusal(batch, head, since, refused, repeatable=repeatable)
    return ended.outcome if outcome is None else combine_outcomes({batch.stream: outcome})


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfoldsPart:
    """A commit of unfolds alone on exactly a known last page, with the record of their key.

    Attributes:
        table: name of the table of streams.
        unfolds: batch of the unfolds.
        known_head: known last page of the stream.
        record: the key's record.
        seen: contents that the record must still have; None for no record.
    """

    table: str
    unfolds: Packed
    known_head: Known[Page]
    record: KeyRecord
    seen: RecordContents | None

    @property
    def commit(self) -> Commit:
        """Commit that writes the unfolds; the record tells whether it was applied."""
        stream = self.unfolds.stream
        return Commit(table=self.table, known_heads={stream: self.known_head}, writes=(stream,), keyed=True)

    def batch(self, stream: str, writes: Writes) -> Packed:  # noqa: ARG002  there is one stream
        """Return the batch of the unfolds."""
        return self.unfolds

    def records(self, writes: Writes) -> tuple[Put]:
        """Make the write of the key's record, with the etag that the unfolds leave."""
        etag = writes[self.unfolds.stream].token.etag or ""
        unfolds = replace(self.unfolds, etag=etag)
        return (
            make_unfolds_record_put(self.table, self.record, unfolds, version_of(self.known_head), self.seen),
        )

    def ending(self, moved: Heads, tries: Tries) -> Steps[UnfoldsRefused[Page] | None]:
        """Return the refusal if the last page has moved."""
        yield from ()
        return self._refused(_read(moved[self.unfolds.stream]), self.seen, tries) if moved else None

    def load_earlier_outcome(
        self,
        writes: Writes,  # noqa: ARG002  the record tells
        refusal: Refusal,
        tries: Tries,
    ) -> Steps[UnfoldsRefused[Page] | None]:
        """Return the refusal if the key's record is there or has changed; None otherwise."""
        page, item = refusal.items
        stored = None if item is None else read_record(item)
        if stored is None and not refusal.failed:
            # The reply names only the caller's own conditions. If the commit was applied, the record exists.
            stored = yield from load_record(self.table, self.record)
        if stored is None or stored == self.seen:
            return None
        head = head_from(self.table, self.unfolds.stream, page_of(page, self.table))
        return self._refused(head, stored, tries)

    def appended(self, writes: Writes) -> Appended:
        """Make the outcome of the unfolds that were written."""
        return writes[self.unfolds.stream].appended

    def _refused(
        self, head: Steps[Page | None], seen: RecordContents | None, tries: Tries
    ) -> UnfoldsRefused[Page]:
        etag = tries[-1].writes[self.unfolds.stream].token.etag if tries else None
        return UnfoldsRefused(head=head, seen=seen, etag=etag)


def _read(head: Page | None) -> Steps[Page | None]:
    """Return a head that was read already, as a step without requests."""
    yield from ()
    return head
