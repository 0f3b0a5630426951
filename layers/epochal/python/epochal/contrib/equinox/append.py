"""Appending: one conditional write of the Tip, and everything that can come back from it.

    what is known      Tip or token: the write goes out at once       nothing: the Tip is read first
    too heavy          a calf is put first (see `Calving`), then the Tip is written
    refused            the Tip that came back is the new state to decide on, no second read (DESIGN §5.2)
      ├ it is our own write                       appended: a response was lost, or the key was used before
      ├ our first event stands at our index       appended: others have appended since
      ├ our index has been pruned                 undetermined
      └ none of these                             conflict; or, where any version will do, again on the new Tip

Every write names the exact state it changes (etag, or absence), so a request that lands late is refused.
"""

from __future__ import annotations

from epochal.contrib.equinox.append_search import Earlier, MarkedAppend, find
from epochal.contrib.equinox.calving import Calving
from epochal.index.tip import Tip, load_tip
from epochal.index.tip_append import BlockedByTip, TipOrToken, attempt
from epochal.index.tip_writes import retry_etag
from epochal.index.wire_batch import WireBatch, keyed_etag
from epochal.layout import decision_keys
from epochal.layout.outcomes import conflict_at, refusing_head
from epochal.layout.streams import accepts, decided_events
from epochal.lazy_dataclasses import replace
from epochal.model.expected_version import UNREAD, AtVersion, Expected, ExpectedVersion, Unread, expected_head
from epochal.model.outcomes import Appended, Conflict, Outcome, Undetermined
from epochal.model.tokens import Token, version_of
from epochal.plan.ops import Steps


def append(
    table: str,
    batch: WireBatch,
    expected: ExpectedVersion,
    calving: Calving,
    start: TipOrToken | Unread = UNREAD,
) -> Steps[Outcome]:
    """Append a batch to a stream at the expected version, retrying after races; return the outcome.

    Returns the committed append, or the Tip that was not as expected.

    Args:
        start: Tip or token to try first; unread, the first try follows from `expected`, or from reading the Tip.

    Raises:
        TooLarge: the events do not fit an item even with a Tip of their own.
        InvalidInput: the idempotency key was used for other events; the stream is full.
    """
    begin = expected_head(expected) if start is UNREAD else start
    base: TipOrToken
    if begin is UNREAD:
        tip = yield from load_tip(table, batch.stream)
        if not accepts(expected, tip):
            return (yield from _too_late(table, batch, expected, tip))
        base = tip
    else:
        base = begin
    repeatable = expected in (Expected.ANY, Expected.STREAM_EXISTS)
    while True:
        result = yield from append_on(table, batch, base, calving, repeatable=repeatable)
        if not isinstance(result, Conflict):
            return result
        tip = refusing_head(result)
        if not accepts(expected, tip):
            return result
        base = tip
        if not batch.count:
            batch = replace(batch, etag=retry_etag(batch.etag, tip))


def append_on(
    table: str, batch: WireBatch, known_head: TipOrToken, calving: Calving, *, repeatable: bool = False
) -> Steps[Outcome]:
    """Append a batch on exactly the Tip that is known; return the outcome, a conflict for any other Tip.

    Args:
        known_head: Tip or token that the stream must have; None if there must be no stream yet.
        repeatable: whether unfolds alone may be written again if nobody can tell whether they were, and events under a
            key may have been written by another process at a later index than on the known Tip.
    """
    sent = yield from attempt(table, batch, known_head, calving)
    if isinstance(sent, Token):
        return Appended(first=sent.version - batch.count, version=sent.version, token=sent)
    settled = yield from _settle(table, batch, sent, version_of(known_head), repeatable=repeatable)
    return conflict_at(sent.tip) if settled is None else settled


def settle(
    table: str, batch: WireBatch, tip: Tip, since: int, *, repeatable: bool
) -> Steps[Appended | Undetermined | None]:
    """Return the result of a batch's append that an existing Tip shows as made; None if it was not made.

    Args:
        tip: Tip that the stream has.
        since: index from which on another process may have made the append.
    """
    return (yield from _settle(table, batch, BlockedByTip(tip=tip), since, repeatable=repeatable))


def decided(key: decision_keys.DecisionKey, head: Tip, since: int) -> Steps[Appended | Undetermined | None]:
    """Return how a decision under a key ended, from index `since` on; None if there is none."""
    marked = yield from find(key.table, head, key.append_id, since, or_later=True)
    if isinstance(marked, MarkedAppend):
        return _decided(head, marked)
    return Undetermined(first=since) if marked is Earlier.PRUNED else None


def _settle(
    table: str, batch: WireBatch, blocked: BlockedByTip, since: int, *, repeatable: bool
) -> Steps[Appended | Undetermined | None]:
    """Return the result of a refused append that was made earlier all the same; None if it was not."""
    tip = blocked.tip
    if tip is None:
        return None
    last = tip.version - batch.count
    is_decision = batch.keyed and decided_events(batch.append_id) is not None
    # Two decisions under one key may differ and yet have equally many events: only the events tell them apart.
    if tip.etag == batch.etag_at(last) and not is_decision:
        return _already(batch, tip, last, replayed=_by_another(batch, blocked, last, since))
    if blocked.ambiguous or batch.keyed:
        earlier = yield from _earlier(table, batch, tip, since, repeatable=repeatable)
        if isinstance(earlier, MarkedAppend):
            if is_decision:
                return _decided(tip, earlier)
            first = earlier.first
            return _already(batch, tip, first, replayed=_by_another(batch, blocked, first, since))
        if earlier is Earlier.PRUNED:
            return Undetermined(first=since)
    return None


def _by_another(batch: WireBatch, blocked: BlockedByTip, first: int, tried: int) -> bool:
    """Whether another call with the key made an append: this call tried at one index only."""
    return batch.keyed and not (blocked.ambiguous and first == tried)


def _too_late(table: str, batch: WireBatch, expected: ExpectedVersion, tip: Tip | None) -> Steps[Outcome]:
    """Return a conflict for an append on an unexpected Tip, or the result of its own earlier try."""
    if tip is not None and isinstance(expected, AtVersion | Token):
        settled = yield from settle(table, batch, tip, expected.version, repeatable=False)
        if settled is not None:
            return settled
    return conflict_at(tip)


def _earlier(
    table: str, batch: WireBatch, tip: Tip, since: int, *, repeatable: bool
) -> Steps[MarkedAppend | Earlier]:
    """Search for an earlier try's append; return it, or that it is absent or pruned."""
    if batch.count:
        # Every try is conditional on the state it changes, so ours can only be at the index where we tried. Only a try
        # of another process, under a key, may be at a later index.
        or_later = batch.keyed and repeatable
        return (yield from find(table, tip, batch.append_id, since, or_later=or_later))
    # Unfolds alone leave no trace once others replace them; if they may be repeated, they are written again.
    return Earlier.ABSENT if repeatable and not tip.deleted else Earlier.PRUNED


def _already(batch: WireBatch, tip: Tip, first: int, *, replayed: bool) -> Appended:
    """Return the result of an append that was made earlier, with the token that it left.

    The token is of the Tip that the append left, never of a Tip that another writer has written since, even with
    unfolds alone: an append on that would replace unfolds that its writer has not seen.
    """
    return _appended_earlier(tip, first, batch.count, batch.etag_at(first), replayed=replayed)


def _decided(tip: Tip, marked: MarkedAppend) -> Appended:
    """Return the result of a decision that was made earlier, by the append that was found."""
    events = decided_events(marked.append_id) or 0
    return _appended_earlier(
        tip, marked.first, events, keyed_etag(marked.append_id, marked.first), replayed=True
    )


def _appended_earlier(tip: Tip, first: int, count: int, etag: str, *, replayed: bool) -> Appended:
    """Return the result of an append of `count` events, with the Tip's token if it is still the latest."""
    version = first + count
    token = tip.token() if tip.etag == etag else Token(version=version, etag=etag)
    return Appended(first=first, version=version, token=token, replayed=replayed)
