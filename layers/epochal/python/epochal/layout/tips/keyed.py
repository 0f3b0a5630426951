"""Appends under an idempotency key, of whatever they consist (see `layout.once`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

from epochal.errors import TooLarge
from epochal.layout import once
from epochal.layout.expectations import version_of
from epochal.layout.key_records import KeyRecord, Remembered, done_record, read_record
from epochal.layout.once import UnfoldsRefused
from epochal.layout.streams import Settled
from epochal.layout.tips.append import append_on, calve_and_write, settle
from epochal.layout.tips.batch import Known, Result, WireBatch
from epochal.layout.tips.calving import Calving
from epochal.layout.tips.find import Earlier, find
from epochal.layout.tips.items import Tip, read_tip
from epochal.layout.tips.reading import load_tip
from epochal.layout.tips.writes import create, etag_over, extend
from epochal.model.versions import ExpectedVersion, Token
from epochal.plan.ops import ITEM_BYTES, Done, Overflow, Refusal, Steps, Transact
from epochal.plan.values import Item


def append_once(
    table: str, batch: WireBatch, expected: ExpectedVersion, calving: Calving, record: KeyRecord
) -> Steps[Result]:
    """Append a batch, whose append id stems from the recorded key, once."""
    attempts = TipAttempts(table=table, batch=batch, calving=calving)
    if batch.count:
        return (yield from once.append_once(attempts, expected, record))
    return (yield from once.unfold_once(attempts, expected, record))


@dataclass(frozen=True, slots=True, kw_only=True)
class TipAttempts:
    """See `layout.once.Attempts`."""

    table: str
    batch: WireBatch
    calving: Calving

    def load(self) -> Steps[Tip | None]:
        """The Tip."""
        return load_tip(self.table, self.batch.stream)

    def append_on(self, known: Known, *, repeatable: bool) -> Steps[Result]:
        """See `append.append_on`."""
        return append_on(self.table, self.batch, known, self.calving, repeatable=repeatable)

    def settle(self, head: Tip, since: int, *, repeatable: bool) -> Steps[Settled | None]:
        """See `append.settle`."""
        return settle(self.table, self.batch, head, since, repeatable=repeatable)

    def unfold_on(
        self, known: Known, record: KeyRecord, seen: Remembered | None
    ) -> Steps[Token | UnfoldsRefused[Tip]]:
        """The Tip and the record in one transaction, once there is room."""
        table, batch = self.table, self.batch
        while True:
            write, token = create(table, batch) if known is None else extend(table, batch, known)
            note = done_record(table, record, batch, version_of(known), seen)
            reply: Done | Refusal | Overflow = yield Transact(writes=(write, note))
            if isinstance(reply, Done):
                return token
            if isinstance(reply, Refusal):
                tip, said = reply.items
                return UnfoldsRefused(
                    head=self.load() if said is not None else _read(tip),
                    seen=seen if said is None else read_record(said),
                    etag=token.etag,
                )
            known = yield from self._emptied(known, token.size)

    def is_pruned(self, head: Tip, since: int) -> Steps[bool]:
        """See `find`."""
        found = yield from find(self.table, head, self.batch.append_id, since, or_later=True)
        return found is Earlier.PRUNED

    def _emptied(self, known: Known, size: int) -> Steps[Known]:
        """What is known once the Tip's events are in a calf, which makes room for the unfolds."""
        tip = known if isinstance(known, Tip) else (yield from self.load())
        if tip is None or not tip.span.events:
            raise TooLarge("unfolds", size, ITEM_BYTES)
        if isinstance(known, Token) and known.etag != tip.etag:
            return known  # the next try is refused, and says what the Tip is
        bare = replace(self.batch, unfolds=None, etag=etag_over(self.batch.etag, tip))
        left = yield from calve_and_write(self.table, bare, tip, self.calving)
        return left if isinstance(left, Token) else known


def _read(item: Item | None) -> Steps[Tip | None]:
    """The Tip that came back with a refusal."""
    yield from ()
    return None if item is None else read_tip(item)
