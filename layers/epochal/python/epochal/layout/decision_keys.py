"""Decisions on the state of a stream under an idempotency key.

`begin_decision` runs before the decision, and `resume_decision` before each retry on a newer head. Both look for an
earlier decision under the key, and return its outcome or the head to decide on. Each try of the decision is on exactly
such a head, so a second decision under the key is never appended.
"""

from __future__ import annotations

from typing import Any

from epochal.layout.key_records import (
    KeyRecord,
    RecordContents,
    check_contents,
    load_record,
    lower_bound,
    put_record,
)
from epochal.layout.streams import (
    NEVER,
    Batch,
    Head,
    KeyedStreams,
    Known,
    decision_id,
)
from epochal.lazy_dataclasses import dataclass, replace
from epochal.model.moments import Ticks
from epochal.model.outcomes import Appended, Undetermined
from epochal.model.tokens import version_of
from epochal.plan.ops import Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionKey:
    """The idempotency key of a decision on one stream, with the append id that it gives the decision.

    Attributes:
        layout: layout of the stream.
        table: name of the table of streams.
        stream: name of the stream.
        record: the key's record.
        append_id: append id of the decision, without its number of events.
        above: moment of the key (`KeyedStreams.moment_of_key`).
    """

    layout: KeyedStreams
    table: str
    stream: str
    record: KeyRecord
    append_id: bytes
    above: Ticks = NEVER

    def on(self, batch: Batch) -> Batch:
        """Return the batch of a decision with the append id that the key gives it."""
        append_id = decision_id(self.append_id, len(batch.events))
        return replace(batch, append_id=append_id, keyed=True, above=self.above)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyUnused:
    """The answer that no event up to the head was appended under the key.

    Attributes:
        head: the head to decide on, if it was read.
        read: whether the head was read.
    """

    head: Head | None = None
    read: bool = False


def begin_decision(key: DecisionKey, known_head: Known[Any]) -> Steps[Appended | Undetermined | KeyUnused]:
    """Look for an earlier decision under a key, recording the key if needed; return it or `KeyUnused`.

    The answer is the outcome of the earlier decision, or a `KeyUnused` with the head to decide on, if it was read.

    Args:
        known_head: known head of the stream.

    Raises:
        InvalidInput: the key was used for unfolds.
    """
    new = key.layout.is_new(known_head, key.above)
    if new or (
        new is None and (yield from put_record(key.table, key.record, version_of(known_head))) is None
    ):
        return KeyUnused()
    head: Head | None = yield from key.layout.load(key.table, key.stream)
    # The record is read after the head, so that its bound covers every try that the head may contain.
    record = (yield from load_record(key.table, key.record)) or (
        RecordContents(first=0) if new is False else None
    )
    if record is None:
        # The record has expired meanwhile.
        record = yield from put_record(key.table, key.record, version_of(head))
    settled = None if record is None else (yield from _find_decision(key, head, record))
    return settled or KeyUnused(head=head, read=True)


def resume_decision(
    key: DecisionKey, since: Known[Any], known_head: Known[Any]
) -> Steps[Appended | Undetermined | None]:
    """Look for an earlier decision up to another head; return it, or None, with the key's bound lowered.

    Args:
        since: head up to which there was none.
        known_head: the head to decide on.

    Returns:
        The outcome of the earlier decision; None if there is none.
    """
    record: RecordContents | None = None
    if version_of(known_head) < version_of(since):
        # The stream was begun anew, or the token is of another stream. Search from the record's bound instead.
        record = yield from load_record(key.table, key.record)
    return (yield from _find_decision(key, known_head, record or RecordContents(first=version_of(since))))


def _find_decision(
    key: DecisionKey, head: Known[Any], record: RecordContents
) -> Steps[Appended | Undetermined | None]:
    """Return a decision's outcome from the record's bound on; if none, lower the bound and return None.

    If there is none, the record's bound is lowered to the head's version, so that a try may follow.

    Args:
        record: contents of the key's record.
    """
    check_contents(record, None)
    if head is not None:
        settled: Appended | Undetermined | None = yield from key.layout.decided(key, head, record.first)
        if settled is not None:
            return settled
    yield from lower_bound(key.table, key.record, version_of(head), record)
    return None
