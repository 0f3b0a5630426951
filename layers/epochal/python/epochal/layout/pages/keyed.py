"""What `layout.once` tries with a batch under an idempotency key."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

from epochal.errors import TooLarge
from epochal.layout import once
from epochal.layout.key_records import KeyRecord, Remembered, done_record, read_record, recall
from epochal.layout.once import UnfoldsRefused
from epochal.layout.pages.append import Earlier, append_on, find, settle
from epochal.layout.pages.batch import Packed
from epochal.layout.pages.commit import Writes, check_over, check_own, commit, unmet
from epochal.layout.pages.items import Page, read_page
from epochal.layout.pages.reading import load_head
from epochal.layout.pages.several import StreamsPart, exactly
from epochal.layout.pages.writes import Blocked, Planned, can_be_left, head_from, next_write
from epochal.layout.streams import Also, Answer, Known, Rejected, Settled, Unmet, version_of
from epochal.model.versions import ExpectedVersion, Token
from epochal.plan.ops import ITEM_BYTES, Done, Overflow, Refusal, Steps, Transact


def append_once(
    table: str, batch: Packed, expected: ExpectedVersion, record: KeyRecord, also: Also = ()
) -> Steps[Answer[Page]]:
    """`append`, where the batch is known by the recorded key."""
    attempts = PageAttempts(table=table, batch=batch, also=also)
    if batch.count:
        return (yield from once.append_once(attempts, expected, record))
    return (yield from once.unfold_once(attempts, expected, record))


@dataclass(frozen=True, slots=True, kw_only=True)
class PageAttempts:
    """See `layout.once.Attempts`."""

    table: str
    batch: Packed
    also: Also = ()

    def load(self) -> Steps[Page | None]:
        """The last page."""
        return load_head(self.table, self.batch.stream)

    def append_on(self, known: Known[Page], *, repeatable: bool) -> Steps[Answer[Page]]:
        """See `append.append_on`. What goes with it is part of the commit, whose page tells of all of it."""
        if not self.also:
            return (yield from append_on(self.table, self.batch, known, repeatable=repeatable))
        # Whether it was made the stream is searched for: others have the key, and may have the moment, too.
        part, sent = StreamsPart.of(self.table, [(self.batch, exactly(known))]), list[Planned]()

        def records(writes: Writes) -> tuple[()]:
            sent.extend(writes.values())
            return ()

        wanted = replace(
            part.commit, known={self.batch.stream: known}, records=records, also=self.also, keyed=True
        )
        came = yield from commit(wanted)
        result = cast("Answer[Page]", came if isinstance(came, Unmet) else part.results(came)[0])
        if not isinstance(result, Rejected | Unmet):
            return result
        head = result.head if isinstance(result, Rejected) else (yield from self.load())
        if head is None:
            return result
        planned = sent[-1] if sent else None
        since = version_of(known)
        settled = yield from settle(
            self.table, self.batch, head, since, repeatable=repeatable, planned=planned
        )
        return settled or result

    def settle(self, head: Page, since: int, *, repeatable: bool) -> Steps[Settled | None]:
        """See `append.settle`."""
        return settle(self.table, self.batch, head, since, repeatable=repeatable)

    def unfold_on(
        self, known: Known[Page], record: KeyRecord, seen: Remembered | None
    ) -> Steps[Token | UnfoldsRefused[Page] | Unmet]:
        """A page, the record, and what goes with them, in one transaction."""
        extending = True
        while True:
            planned = yield from next_write(self.table, self.batch, known, extending=extending)
            if isinstance(planned, Blocked):
                return self._refused(planned.page, seen, None)
            leaving = replace(self.batch, etag=planned.token.etag or "")
            note = done_record(self.table, record, leaving, version_of(known), seen)
            reply: Done | Refusal | Overflow = yield Transact(writes=(planned.write, note, *self.also))
            if isinstance(reply, Done):
                return planned.token
            if isinstance(reply, Refusal):
                if not any(reply.failed[:2]):
                    return (yield from self._unmet(reply, record, seen, planned.token.etag))
                page, said = reply.items[:2]
                return self._refused(
                    None if page is None else read_page(page, self.table),
                    seen if said is None else read_record(said),
                    planned.token.etag,
                )
            check_own(reply, 2)
            if not extending or not can_be_left(known):
                raise TooLarge("unfolds", planned.token.size, ITEM_BYTES)
            extending = False

    def is_pruned(self, head: Page, since: int) -> Steps[bool]:
        """See `find`."""
        found = yield from find(self.table, head, self.batch, since, or_later=True)
        return found is Earlier.PRUNED

    def _unmet(
        self, refusal: Refusal, record: KeyRecord, seen: Remembered | None, etag: str | None
    ) -> Steps[UnfoldsRefused[Page] | Unmet]:
        """Only the caller's own conditions are said to have failed; but the record is there if all was written."""
        found = yield from recall(self.table, record)
        if found is not None and found != seen:
            return UnfoldsRefused(head=self.load(), seen=found, etag=etag)
        check_over(refusal, ())
        return Unmet(items=unmet(refusal, 2))

    def _refused(self, page: Page | None, seen: Remembered | None, etag: str | None) -> UnfoldsRefused[Page]:
        return UnfoldsRefused(head=head_from(self.table, self.batch.stream, page), seen=seen, etag=etag)
