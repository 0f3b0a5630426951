"""Appends under an idempotency key, of events, unfolds or both (see `layout.once`)."""

from __future__ import annotations

from epochal.contrib.equinox.append import append_on, settle
from epochal.contrib.equinox.append_search import Earlier, find
from epochal.contrib.equinox.calving import Calving
from epochal.errors import TooLarge
from epochal.index.tip import Tip, load_tip, read_tip
from epochal.index.tip_append import TipOrToken, calve_and_write
from epochal.index.tip_writes import create_tip, extend_tip, retry_etag
from epochal.index.wire_batch import WireBatch
from epochal.layout import once
from epochal.layout.key_records import KeyRecord, RecordContents, make_unfolds_record_put, read_record
from epochal.layout.once import UnfoldsRefused
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.expected_version import ExpectedVersion
from epochal.model.outcomes import Appended, Outcome, Undetermined
from epochal.model.tokens import Token, version_of
from epochal.plan.limits import ITEM_BYTES
from epochal.plan.ops import Done, Overflow, Refusal, Steps, Transact
from epochal.plan.values import Item


def append_once(
    table: str, batch: WireBatch, expected: ExpectedVersion, calving: Calving, record: KeyRecord
) -> Steps[Outcome]:
    """Append a batch, or unfolds alone, once under the idempotency key of `record`; return the outcome.

    Args:
        record: record of the key.
    """
    attempts = TipAttempts(table=table, batch=batch, calving=calving)
    if batch.count:
        return (yield from once.append_once(attempts, expected, record))
    return (yield from once.unfold_once(attempts, expected, record))


@dataclass(frozen=True, slots=True, kw_only=True)
class TipAttempts:
    """The attempts of one keyed batch on a Tip, which `layout.once` runs (see `layout.once.Attempts`).

    Attributes:
        table: name of the table.
        batch: batch that is appended.
        calving: rule that says when events leave the Tip.
    """

    table: str
    batch: WireBatch
    calving: Calving

    def load(self, *, recent: bool = False) -> Steps[Tip | None]:  # noqa: ARG002  earlier events are read apart
        """Read the Tip of the batch's stream; None if there is no such stream."""
        return load_tip(self.table, self.batch.stream)

    def append_on(self, known_head: TipOrToken, *, repeatable: bool) -> Steps[Outcome]:
        """Append the batch on exactly the Tip that is known; see `append.append_on`."""
        return append_on(self.table, self.batch, known_head, self.calving, repeatable=repeatable)

    def is_new(self, known_head: TipOrToken) -> None:
        """Return None: a key has no moment here (see `KeyedStreams.is_new`)."""

    def settle(self, head: Tip, since: int, *, repeatable: bool) -> Steps[Appended | Undetermined | None]:
        """Return how the append ended if another process made it; None if not (see `append.settle`)."""
        return settle(self.table, self.batch, head, since, repeatable=repeatable)

    def unfold_on(
        self, known_head: TipOrToken, record: KeyRecord, seen: RecordContents | None
    ) -> Steps[Token | UnfoldsRefused[Tip]]:
        """Write unfolds into a known Tip and the key's record at once; return the Tip's token, or the refusal.

        If the Tip has no room, its events are put into a calf first. Returns the Tip's token, or the Tip and record
        that refused the write.
        """
        table, batch = self.table, self.batch
        while True:
            write, token = (
                create_tip(table, batch) if known_head is None else extend_tip(table, batch, known_head)
            )
            note = make_unfolds_record_put(table, record, batch, version_of(known_head), seen)
            reply: Done | Refusal | Overflow = yield Transact(writes=(write, note))
            if isinstance(reply, Done):
                return token
            if isinstance(reply, Refusal):
                tip, response = reply.items
                return UnfoldsRefused(
                    head=self.load() if response is not None else _read(tip),
                    seen=seen if response is None else read_record(response),
                    etag=token.etag,
                )
            known_head = yield from self._move_events_to_calf(known_head, token.size)

    def is_pruned(self, head: Tip, since: int) -> Steps[bool]:
        """Whether events that may hold the append, from index `since` on, are pruned; see `find`."""
        marked = yield from find(self.table, head, self.batch.append_id, since, or_later=True)
        return marked is Earlier.PRUNED

    def _move_events_to_calf(self, known_head: TipOrToken, size: int) -> Steps[TipOrToken]:
        """Put a Tip's events into a calf; return the Tip or token after that, or raise if it has no events.

        Raises:
            TooLarge: the Tip has no events, so the unfolds alone do not fit.
        """
        tip = known_head if isinstance(known_head, Tip) else (yield from self.load())
        if tip is None or not tip.span.events:
            raise TooLarge("unfolds", size, ITEM_BYTES)
        if isinstance(known_head, Token) and known_head.etag != tip.etag:
            return known_head  # the next try is refused, and says what the Tip is
        bare = replace(self.batch, unfolds=None, etag=retry_etag(self.batch.etag, tip))
        outcome = yield from calve_and_write(self.table, bare, tip, self.calving)
        return outcome if isinstance(outcome, Token) else known_head


def _read(item: Item | None) -> Steps[Tip | None]:
    """Return the Tip that came back with a refusal, without a request."""
    yield from ()
    return None if item is None else read_tip(item)
