"""Appending: one conditional write of the Tip, and everything that can come back from it.

    what is known      Tip or token: the write goes out at once       nothing: the Tip is read first
    too heavy          a calf is put first (see `calve`), then the Tip is written
    refused            the Tip that came back is the new state to decide on, no second read (DESIGN §5.2)
      ├ it is our own write                       appended: a response was lost, or the key was used before
      ├ our first event stands at our index       appended: others have appended since
      ├ our index has been pruned                 undetermined
      └ none of these                             conflict; or, where any version will do, again on the new Tip

Every write names the exact state it changes (etag, or absence), so a request that lands late is refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from epochal.errors import CorruptData, InvalidInput, TooLarge
from epochal.layout.expectations import UNREAD, Unread, accepts, told, version_of
from epochal.layout.streams import Rejected, Settled, Unknown, Written, decided_events
from epochal.layout.tips.batch import Known, Result, WireBatch, keyed_etag
from epochal.layout.tips.calve import calve, calve_at_once
from epochal.layout.tips.calving import Calving
from epochal.layout.tips.find import Earlier, MarkedAppend, find
from epochal.layout.tips.items import Tip, read_tip
from epochal.layout.tips.reading import load_tip
from epochal.layout.tips.writes import create, etag_over, extend, growth_of, restart, token_of
from epochal.model.versions import MAX_VERSION, AtVersion, Expected, ExpectedVersion, Token
from epochal.plan.ops import ITEM_BYTES, Done, Overflow, Refusal, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class _Blocked:
    """A write did not go through: this Tip stood in the way."""

    tip: Tip | None
    ambiguous: bool = False


def append(
    table: str, batch: WireBatch, expected: ExpectedVersion, calving: Calving, start: Known | Unread = UNREAD
) -> Steps[Result]:
    """Append `batch`, beginning from `start` or, where that is unread, from what `expected` tells.

    Raises:
        TooLarge: the events do not fit an item even with a Tip of their own.
        InvalidInput: the idempotency key was used for other events; the stream is full.
    """
    known: Known | Unread = told(expected) if start is UNREAD else start
    if known is UNREAD:
        known = yield from load_tip(table, batch.stream)
        if not accepts(expected, known):
            return (yield from _too_late(table, batch, expected, known))
    repeatable = expected in (Expected.ANY, Expected.STREAM_EXISTS)
    while True:
        result = yield from append_on(table, batch, known, calving, repeatable=repeatable)
        if not isinstance(result, Rejected) or not accepts(expected, result.head):
            return result
        known = result.head
        if not batch.count:
            batch = replace(batch, etag=etag_over(batch.etag, known))


def append_on(
    table: str, batch: WireBatch, known: Known, calving: Calving, *, repeatable: bool = False
) -> Steps[Result]:
    """Append on exactly the Tip that is known (None: no stream yet). Any other is a rejection, which brings it back.

    Args:
        repeatable: unfolds alone may be written again where nobody can tell whether they were; events under a key may
            stand later than on what is known, by another process.
    """
    sent = yield from _write(table, batch, known, calving)
    if isinstance(sent, Token):
        return Written(first=sent.version - batch.count, version=sent.version, token=sent)
    settled = yield from _settle(table, batch, sent, version_of(known), repeatable=repeatable)
    return Rejected(head=sent.tip) if settled is None else settled


def settle(table: str, batch: WireBatch, tip: Tip, since: int, *, repeatable: bool) -> Steps[Settled | None]:
    """What an existing Tip says about an append that another process may have made from index `since` on."""
    return (yield from _settle(table, batch, _Blocked(tip=tip), since, repeatable=repeatable))


def decided(table: str, tip: Tip, append_id: bytes, since: int) -> Steps[Settled | None]:
    """What came of a decision that is known by a key, from index `since` on; None where there is none."""
    found = yield from find(table, tip, append_id, since, or_later=True)
    if isinstance(found, MarkedAppend):
        return _decided(tip, found)
    return Unknown(first=since) if found is Earlier.PRUNED else None


def _settle(
    table: str, batch: WireBatch, blocked: _Blocked, since: int, *, repeatable: bool
) -> Steps[Settled | None]:
    """How the append has already ended, or None: it has not been made."""
    tip = blocked.tip
    if tip is None:
        return None
    last = tip.version - batch.count
    is_decision = batch.keyed and decided_events(batch.append_id) is not None
    # Two that decide under one key may have decided otherwise, and be as many events: only these tell.
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
            return Unknown(first=since)
    return None


def _by_another(batch: WireBatch, blocked: _Blocked, found: int, tried: int) -> bool:
    """Whether it was another call with the key that made the append: this one tried at one index only."""
    return batch.keyed and not (blocked.ambiguous and found == tried)


def _too_late(table: str, batch: WireBatch, expected: ExpectedVersion, tip: Tip | None) -> Steps[Result]:
    """A Tip read first is not what was expected: a conflict, unless this append is itself the cause."""
    if tip is not None and isinstance(expected, AtVersion | Token):
        settled = yield from settle(table, batch, tip, expected.version, repeatable=False)
        if settled is not None:
            return settled
    return Rejected(head=tip)


def _earlier(
    table: str, batch: WireBatch, tip: Tip, since: int, *, repeatable: bool
) -> Steps[MarkedAppend | Earlier]:
    if batch.count:
        # Every try names the state it changes, so ours stands where we tried, if anywhere. Only a try of another
        # process, known by a key, may stand later.
        or_later = batch.keyed and repeatable
        return (yield from find(table, tip, batch.append_id, since, or_later=or_later))
    # Unfolds alone leave no trace once replaced; where they may be, they are written again.
    return Earlier.ABSENT if repeatable and not tip.deleted else Earlier.PRUNED


def _already(batch: WireBatch, tip: Tip, first: int, *, replayed: bool) -> Written:
    """The token is of the Tip that the append left, never of one that another has written since, if only unfolds: an
    append on that would replace what its writer has not seen.
    """
    return _left(tip, first, batch.count, batch.etag_at(first), replayed=replayed)


def _decided(tip: Tip, found: MarkedAppend) -> Written:
    events = decided_events(found.append_id) or 0
    return _left(tip, found.first, events, keyed_etag(found.append_id, found.first), replayed=True)


def _left(tip: Tip, first: int, count: int, etag: str, *, replayed: bool) -> Written:
    version = first + count
    token = tip.token() if tip.etag == etag else Token(version=version, etag=etag)
    return Written(first=first, version=version, token=token, replayed=replayed)


def _write(table: str, batch: WireBatch, known: Known, calving: Calving) -> Steps[Token | _Blocked]:
    """One attempt: the token it leaves, or the Tip that blocked it."""
    if version_of(known) + batch.count > MAX_VERSION:
        raise InvalidInput("events", f"a stream holds at most {MAX_VERSION:,} events")
    if known is None:
        put, token = create(table, batch)
        return _sent((yield put), token)
    if batch.count and calving.calves(token_of(known), growth_of(batch, known)):
        return (yield from calve_and_write(table, batch, known, calving))
    update, token = extend(table, batch, known)
    reply = yield update
    if isinstance(reply, Overflow):
        return (yield from calve_and_write(table, batch, known, calving))
    return _sent(reply, token)


def calve_and_write(
    table: str, batch: WireBatch, known: Tip | Token, calving: Calving
) -> Steps[Token | _Blocked]:
    """Write on a Tip whose events go into a calf first: the token left, or the Tip that blocked it."""
    tip = known if isinstance(known, Tip) else (yield from load_tip(table, batch.stream))
    if tip is None or (tip.etag, tip.version) != (known.etag, known.version):
        return _Blocked(tip=tip)
    update, token = restart(table, batch, tip)
    if calving.mode == "transactional":
        reply = yield from calve_at_once(table, tip, update)
    else:
        reply = (yield update) if (yield from calve(table, tip)) else None
    if reply is None:
        return _Blocked(tip=(yield from _moved_on(table, tip)))
    return _sent(reply, token)


def _moved_on(table: str, stale: Tip) -> Steps[Tip | None]:
    """The Tip that has replaced a stale one: calves show that it is stale."""
    tip = yield from load_tip(table, stale.stream)
    if tip is not None and (tip.etag, tip.version) == (stale.etag, stale.version):
        raise CorruptData(f"{tip.stream}: a calf reaches beyond the Tip")
    return tip


def _sent(reply: Done | Refusal | Overflow, token: Token) -> Token | _Blocked:
    if isinstance(reply, Done):
        return token
    if isinstance(reply, Overflow):
        raise TooLarge("events", token.size, ITEM_BYTES)
    tip = None if reply.item is None else read_tip(reply.item)
    return _Blocked(tip=tip, ambiguous=reply.ambiguous)
